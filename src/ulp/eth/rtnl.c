/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The routing socket (rtnetlink(7)) of the host's network namespace, by which the kernel tells the
 * interface's MTU, the VLAN interfaces upon it, and the addresses of all of them. A notification is a
 * reason to ask for all links and then for all addresses. The MTU and the GID table of the port follow
 * what is listed (IBA v1 A17.4.2). An interface of a VLAN asks for its own MTU alone: the port's untagged
 * one hears of its addresses.
 */
#include <errno.h>
#include <linux/if_addr.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <string.h>
#include <sys/socket.h>

#include "base/bytes.h"
#include "runtime/posix/closer.h"
#include "ulp/eth/private.h"

/* --- questions --- */

/* without room for the request the next notification asks again */
static bool dump(const struct eth *eth, u16 type)
{
	const struct {
		struct nlmsghdr header;
		union {
			struct ifinfomsg link;
			struct ifaddrmsg address;
		};
	} request = {
		.header = {.nlmsg_len = sizeof(request),
			   .nlmsg_type = type,
			   .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
	};

	return send(eth->rtnl_fd, &request, sizeof(request), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

static void ask(struct eth *eth)
{
	if (eth->rtnl_lists != ETH_LISTS_NOTHING || !eth->rtnl_wanted || !dump(eth, RTM_GETLINK))
		return;
	eth->rtnl_lists = ETH_LISTS_LINKS;
	eth->rtnl_wanted = false;
	eth->num_vlans = 0;
}

static void ask_addresses(struct eth *eth)
{
	eth->num_addresses = 0;
	eth->rtnl_lists = dump(eth, RTM_GETADDR) ? ETH_LISTS_ADDRESSES : ETH_LISTS_NOTHING;
	eth->rtnl_wanted |= eth->rtnl_lists == ETH_LISTS_NOTHING;
}

/* --- links --- */

/* Set @found[type] to each attribute of the @bytes at @at whose type is below @num. */
static void read_attributes(const struct rtattr *at, size_t bytes, const struct rtattr **found,
			    unsigned int num)
{
	int left = (int)bytes;

	memset(found, 0, num * sizeof(*found));
	for (; RTA_OK(at, left); at = RTA_NEXT(at, left))
		if ((at->rta_type & NLA_TYPE_MASK) < num)
			found[at->rta_type & NLA_TYPE_MASK] = at;
}

/* Return: false: it is not there, or not so long */
static bool read_number(const struct rtattr *a, void *to, size_t bytes)
{
	if (!a || RTA_PAYLOAD(a) < bytes)
		return false;
	memcpy(to, RTA_DATA(a), bytes);
	return true;
}

/* Return: the id of a VLAN interface of IEEE 802.1Q; 0: it is something else */
static u16 vlan_id(const struct rtattr *info)
{
	const struct rtattr *part[IFLA_INFO_MAX + 1], *vlan[IFLA_VLAN_MAX + 1], *kind;
	u16 id = 0, protocol;

	if (!info)
		return 0;
	read_attributes(RTA_DATA(info), RTA_PAYLOAD(info), part, ARRAY_SIZE(part));
	kind = part[IFLA_INFO_KIND];
	if (!kind || !part[IFLA_INFO_DATA] || RTA_PAYLOAD(kind) < sizeof("vlan") ||
	    memcmp(RTA_DATA(kind), "vlan", sizeof("vlan")))
		return 0;
	read_attributes(RTA_DATA(part[IFLA_INFO_DATA]), RTA_PAYLOAD(part[IFLA_INFO_DATA]), vlan,
			ARRAY_SIZE(vlan));
	if (read_number(vlan[IFLA_VLAN_PROTOCOL], &protocol, sizeof(protocol)) &&
	    protocol != htobe16(ETH_P_8021Q))
		return 0;
	read_number(vlan[IFLA_VLAN_ID], &id, sizeof(id));
	return id;
}

/* The interface itself, whose MTU counts while it is up, or an interface of a VLAN upon it. */
static void link_message(struct eth *eth, const struct nlmsghdr *h)
{
	const struct ifinfomsg *m = NLMSG_DATA(h);
	const struct rtattr *attr[IFLA_LINKINFO + 1];
	u32 below = 0, mtu;
	u16 id;

	if (h->nlmsg_len < NLMSG_LENGTH(sizeof(*m)))
		return;
	if (!(h->nlmsg_flags & NLM_F_MULTI)) {
		eth->rtnl_wanted = true;
		return;
	}
	read_attributes(IFLA_RTA(m), IFLA_PAYLOAD(h), attr, ARRAY_SIZE(attr));
	if ((unsigned int)m->ifi_index == eth->ifindex) {
		if (m->ifi_flags & IFF_UP && read_number(attr[IFLA_MTU], &mtu, sizeof(mtu)))
			eth_set_mtu(eth, mtu);
		return;
	}
	id = vlan_id(attr[IFLA_LINKINFO]);
	if (id && read_number(attr[IFLA_LINK], &below, sizeof(below)) && below == eth->ifindex &&
	    m->ifi_flags & IFF_UP && eth->num_vlans < ETH_VLANS)
		eth->vlan[eth->num_vlans++] = (struct eth_vlan){(unsigned int)m->ifi_index, id};
}

/* --- addresses --- */

/* Return: false: it is no interface of ours; otherwise *@id is its VLAN, 0 for none */
static bool find_interface(const struct eth *eth, unsigned int ifindex, u16 *id)
{
	const struct eth *own = eth_find_index(eth, ifindex);

	*id = own ? own->vlan_id : 0;
	if (own)
		return true;
	for (unsigned int i = 0; i < eth->num_vlans; i++)
		if (eth->vlan[i].ifindex == ifindex)
			*id = eth->vlan[i].id;
	return *id;
}

/* Return: false: it is no address of IP */
static bool read_address(const struct nlmsghdr *h, union ib_gid *gid)
{
	const struct ifaddrmsg *m = NLMSG_DATA(h);
	const struct rtattr *attr[IFA_LOCAL + 1], *found;

	read_attributes(IFA_RTA(m), IFA_PAYLOAD(h), attr, ARRAY_SIZE(attr));
	found = attr[IFA_LOCAL] ? attr[IFA_LOCAL] : attr[IFA_ADDRESS];
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
	struct ib_port_address *to = &eth->address[eth->num_addresses];

	if (h->nlmsg_len < NLMSG_LENGTH(sizeof(*m)))
		return;
	if (!(h->nlmsg_flags & NLM_F_MULTI)) {
		eth->rtnl_wanted = true;
		return;
	}
	if (eth->num_addresses == ETH_ADDRESSES || m->ifa_flags & (IFA_F_TENTATIVE | IFA_F_DADFAILED))
		return;
	if (find_interface(eth, m->ifa_index, &to->vlan_id) && read_address(h, &to->gid))
		eth->num_addresses++;
}

/* --- answers --- */

static void listed(struct eth *eth)
{
	if (eth->rtnl_lists == ETH_LISTS_LINKS && !eth->vlan_id) {
		ask_addresses(eth);
		return;
	}
	eth->rtnl_lists = ETH_LISTS_NOTHING;
	if (eth->vlan_id)
		return;
	for (unsigned int i = 0; i < eth->num_addresses; i++)
		trace_eth_address(ETH_TRACE_AT(eth), eth->address[i].gid.raw, eth->address[i].vlan_id);
	ib_set_addresses(eth->device, eth->port_num, eth->address, eth->num_addresses);
}

static void take_message(struct eth *eth, const struct nlmsghdr *h)
{
	if (h->nlmsg_flags & NLM_F_DUMP_INTR) /* changed while it was listed */
		eth->rtnl_wanted = true;
	switch (h->nlmsg_type) {
	case NLMSG_DONE:
		listed(eth);
		break;
	case NLMSG_ERROR:
		eth->rtnl_lists = ETH_LISTS_NOTHING;
		break;
	case RTM_NEWLINK:
	case RTM_DELLINK:
		link_message(eth, h);
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
	if (!eth->vlan_id)
		ib_set_addresses(eth->device, eth->port_num, NULL, 0);
	rt_close_foreign(eth->rtnl_fd);
}
