/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The routing socket (rtnetlink(7)) of the host's network namespace, by which the kernel tells the
 * interface's addresses. A notification is a reason to ask for all of them, and the GID table of the
 * port follows what is listed (IBA v1 A17.4.2).
 */
#include <errno.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

#include "runtime/posix/closer.h"
#include "ulp/eth/private.h"

static void ask(struct eth *eth)
{
	const struct {
		struct nlmsghdr header;
		struct ifaddrmsg address;
	} request = {
		.header = {.nlmsg_len = sizeof(request),
			   .nlmsg_type = RTM_GETADDR,
			   .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
	};

	if (eth->rtnl_lists || !eth->rtnl_wanted)
		return;
	/* without room for the request the next notification asks again */
	if (send(eth->rtnl_fd, &request, sizeof(request), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return;
	eth->rtnl_lists = true;
	eth->rtnl_wanted = false;
	eth->num_addresses = 0;
}

/* Return: false: it is no address of IP */
static bool read_address(const struct nlmsghdr *h, union ib_gid *gid)
{
	const struct ifaddrmsg *m = NLMSG_DATA(h);
	unsigned int left = (unsigned int)IFA_PAYLOAD(h);
	const struct rtattr *found = NULL;

	for (const struct rtattr *a = IFA_RTA(m); RTA_OK(a, left); a = RTA_NEXT(a, left))
		if (a->rta_type == IFA_LOCAL || (a->rta_type == IFA_ADDRESS && !found))
			found = a;
	*gid = (union ib_gid){.raw = {[10] = 0xff, [11] = 0xff}};
	if (found && m->ifa_family == AF_INET && RTA_PAYLOAD(found) == 4)
		memcpy(gid->raw + 12, RTA_DATA(found), 4);
	else if (found && m->ifa_family == AF_INET6 && RTA_PAYLOAD(found) == sizeof(gid->raw))
		memcpy(gid->raw, RTA_DATA(found), sizeof(gid->raw));
	else
		return false;
	return true;
}

static void address_message(struct eth *eth, const struct nlmsghdr *h)
{
	const struct ifaddrmsg *m = NLMSG_DATA(h);

	if (h->nlmsg_len < NLMSG_LENGTH(sizeof(*m)) || m->ifa_index != eth->ifindex)
		return;
	if (!(h->nlmsg_flags & NLM_F_MULTI))
		eth->rtnl_wanted = true;
	else if (!(m->ifa_flags & (IFA_F_TENTATIVE | IFA_F_DADFAILED)) &&
		 eth->num_addresses < ETH_ADDRESSES && read_address(h, &eth->address[eth->num_addresses]))
		eth->num_addresses++;
}

static void take_message(struct eth *eth, const struct nlmsghdr *h)
{
	if (h->nlmsg_flags & NLM_F_DUMP_INTR) /* changed while it was listed */
		eth->rtnl_wanted = true;
	switch (h->nlmsg_type) {
	case NLMSG_DONE:
		eth->rtnl_lists = false;
		ib_set_addresses(eth->device, eth->port_num, eth->address, eth->num_addresses);
		break;
	case NLMSG_ERROR:
		eth->rtnl_lists = false;
		break;
	case RTM_NEWADDR:
	case RTM_DELADDR:
		address_message(eth, h);
		break;
	default:
		break;
	}
}

static void readable(struct rt_io *io, bool in, bool out)
{
	static _Alignas(struct nlmsghdr) char buffer[32768]; /* one thread */
	struct eth *eth = container_of(io, struct eth, rtnl_io);
	ssize_t n = recv(eth->rtnl_fd, buffer, sizeof(buffer), MSG_DONTWAIT);
	unsigned int left = n > 0 ? (unsigned int)n : 0;

	if (n < 0 && errno == ENOBUFS) /* changes were lost */
		eth->rtnl_wanted = true;
	else if (n <= 0 && !(n < 0 && (errno == EAGAIN || errno == EINTR)))
		rt_io_watch(&eth->rtnl_io, false, false);
	for (struct nlmsghdr *h = (void *)buffer; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left))
		take_message(eth, h);
	ask(eth);
}

void eth_rtnl_open(struct eth *eth)
{
	rt_io_init(eth->device->rt, &eth->rtnl_io, eth->rtnl_fd, readable);
	rt_io_watch(&eth->rtnl_io, true, false);
	eth->rtnl_wanted = true;
	ask(eth);
}

void eth_rtnl_close(struct eth *eth)
{
	rt_io_watch(&eth->rtnl_io, false, false);
	ib_set_addresses(eth->device, eth->port_num, NULL, 0);
	rt_close_foreign(eth->rtnl_fd);
}
