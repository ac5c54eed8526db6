/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The routing socket (rtnetlink(7)) of the host's network namespace, by which the kernel
 * tells the interface's addresses and routes: lists of them that are asked for, and
 * notifications.
 *
 * A notification about an address is the change itself. One about a route or a link is a
 * reason to ask for all routes, since the kernel removes routes of a link that goes down
 * without a word. It lists one table at a time: rtnl_busy is what it lists, and rtnl_wanted
 * what it is asked for next.
 */
#include <errno.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

#include "base/bytes.h"
#include "runtime/posix/closer.h"
#include "ulp/ipoib/private.h"

#define ADDRESSES 1u
#define ROUTES	  2u
#define SEQ_ORDER 1 /* of a message that asks for nothing */
#define SEQ_ASK	  0xf0000001u /* of ipoib_rtnl_ask(); what others number is a time */
#define RETRY_MS  1000 /* after the kernel had no room for a request */

static void ask_next(struct ipoib *p)
{
	bool addresses = p->rtnl_wanted & ADDRESSES;
	struct {
		struct nlmsghdr header;
		union {
			struct ifaddrmsg address;
			struct rtmsg route;
		} of;
	} request = {
		.header = {.nlmsg_len = sizeof(request),
			   .nlmsg_type = addresses ? RTM_GETADDR : RTM_GETROUTE,
			   .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
	};

	if (p->rtnl_busy || !p->rtnl_wanted)
		return;
	if (send(p->rtnl_fd, &request, sizeof(request), MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
		rt_timer_arm(&p->rtnl_retry, mono_add(rt_now(p->device->rt), RETRY_MS * NSEC_PER_MSEC));
		return;
	}
	p->rtnl_busy = addresses ? ADDRESSES : ROUTES;
	p->rtnl_wanted &= ~p->rtnl_busy;
	if (addresses)
		ipoib_addresses_begin(p);
	else
		ipoib_routes_begin(p);
}

/* The kernel has done it when this returns; it answers errors alone. */
void ipoib_set_mtu(struct ipoib *p)
{
	const struct {
		struct nlmsghdr header;
		struct ifinfomsg link;
		struct rtattr attr;
		u32 mtu;
	} request = {
		.header = {.nlmsg_len = sizeof(request),
			   .nlmsg_type = RTM_SETLINK,
			   .nlmsg_flags = NLM_F_REQUEST,
			   .nlmsg_seq = SEQ_ORDER},
		.link = {.ifi_index = (int)p->ifindex},
		.attr = {.rta_len = RTA_LENGTH(sizeof(request.mtu)), .rta_type = IFLA_MTU},
		.mtu = ipoib_mtu(p),
	};

	send(p->rtnl_fd, &request, sizeof(request), MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void retry(struct rt_timer *timer)
{
	ask_next(container_of(timer, struct ipoib, rtnl_retry));
}

static void list_ended(struct ipoib *p)
{
	if (p->rtnl_busy == ADDRESSES)
		ipoib_addresses_end(p);
	else if (p->rtnl_busy == ROUTES)
		ipoib_routes_end(p);
	p->rtnl_busy = 0;
}

static void change_routes(struct ipoib *p)
{
	p->rtnl_wanted |= ROUTES;
	ipoib_routes_flush(p);
}

static void take_message(struct ipoib *p, const struct nlmsghdr *h)
{
	bool listed = h->nlmsg_flags & NLM_F_MULTI;

	if (h->nlmsg_flags & NLM_F_DUMP_INTR) /* changed while it was listed */
		p->rtnl_wanted |= p->rtnl_busy;
	switch (h->nlmsg_type) {
	case NLMSG_DONE:
		list_ended(p);
		break;
	case NLMSG_ERROR:
		if (h->nlmsg_seq == SEQ_ASK)
			ipoib_route_answer(p, NULL);
		else if (h->nlmsg_seq != SEQ_ORDER)
			p->rtnl_busy = 0;
		break;
	case RTM_NEWADDR:
	case RTM_DELADDR:
		ipoib_address_message(p, h);
		if (!listed)
			change_routes(p);
		break;
	case RTM_NEWROUTE:
		if (h->nlmsg_seq == SEQ_ASK)
			ipoib_route_answer(p, h);
		else if (listed && p->rtnl_busy == ROUTES)
			ipoib_route_message(p, h);
		else
			change_routes(p);
		break;
	case RTM_DELROUTE:
	case RTM_NEWLINK:
		change_routes(p);
		break;
	case RTM_NEWRULE:
	case RTM_DELRULE:
		ipoib_routes_flush(p);
		break;
	default:
		break;
	}
}

/* Return: was something there? */
static bool receive(struct ipoib *p)
{
	static _Alignas(struct nlmsghdr) char buffer[32768]; /* one thread */
	ssize_t n = recv(p->rtnl_fd, buffer, sizeof(buffer), MSG_DONTWAIT);
	unsigned int left = n > 0 ? (unsigned int)n : 0;

	if (n < 0 && errno == ENOBUFS) { /* changes were lost: all of them anew */
		p->rtnl_wanted = ADDRESSES | ROUTES;
		ipoib_routes_flush(p);
	} else if (n <= 0 && !(n < 0 && (errno == EAGAIN || errno == EINTR))) {
		rt_io_watch(&p->rtnl_io, false, false);
	}
	for (struct nlmsghdr *h = (void *)buffer; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left))
		take_message(p, h);
	return n > 0;
}

static void readable(struct rt_io *io, bool in, bool out)
{
	struct ipoib *p = container_of(io, struct ipoib, rtnl_io);

	rt_timer_disarm(&p->rtnl_retry);
	receive(p);
	ask_next(p);
}

/* The kernel answers before send(2) returns; what it has told before comes first. */
void ipoib_rtnl_ask(struct ipoib *p, struct nlmsghdr *request)
{
	request->nlmsg_seq = SEQ_ASK;
	if (send(p->rtnl_fd, request, request->nlmsg_len, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return;
	while (!p->route_told && receive(p))
		;
	ask_next(p);
}

bool ipoib_rtnl_address(int family, const void *data, size_t bytes, struct in6_addr *ip)
{
	__be32 v4;

	if (family == AF_INET && bytes == sizeof(v4)) {
		memcpy(&v4, data, sizeof(v4));
		*ip = ipoib_from_v4(v4);
		return true;
	}
	if (family != AF_INET6 || bytes != sizeof(*ip))
		return false;
	memcpy(ip, data, sizeof(*ip));
	return true;
}

void ipoib_rtnl_open(struct ipoib *p)
{
	rt_io_init(p->device->rt, &p->rtnl_io, p->rtnl_fd, readable);
	rt_io_watch(&p->rtnl_io, true, false);
	rt_timer_init(p->device->rt, &p->rtnl_retry, retry);
	p->rtnl_wanted = ADDRESSES | ROUTES;
	ask_next(p);
}

void ipoib_rtnl_close(struct ipoib *p)
{
	rt_io_watch(&p->rtnl_io, false, false);
	rt_timer_disarm(&p->rtnl_retry);
	rt_close_foreign(p->rtnl_fd);
	ipoib_routes_free(p);
}
