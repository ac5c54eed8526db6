/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Which addresses the host has given the interface, as the routing socket of its network
 * namespace tells (rtnetlink(7)): all of them at first, then each change.
 */
#include <errno.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

#include "base/bytes.h"
#include "runtime/posix/closer.h"
#include "ulp/ipoib/private.h"

static bool is_same(const struct in6_addr *a, const struct in6_addr *b)
{
	return !memcmp(a, b, sizeof(*a));
}

/* the first @bits of 128 */
static bool prefix_matches(const struct in6_addr *a, const struct in6_addr *b,
			   unsigned int bits)
{
	unsigned int bytes = bits / 8, rest = bits % 8;

	return !memcmp(a, b, bytes) &&
	       (!rest || !((a->s6_addr[bytes] ^ b->s6_addr[bytes]) >> (8 - rest)));
}

bool ipoib_has_address(const struct ipoib *p, const struct in6_addr *ip)
{
	for (unsigned int i = 0; i < p->num_addresses; i++)
		if (is_same(&p->address[i].ip, ip))
			return true;
	return false;
}

const struct in6_addr *ipoib_address_for(const struct ipoib *p, const struct in6_addr *ip)
{
	const struct in6_addr *found = NULL;
	bool v4 = IN6_IS_ADDR_V4MAPPED(ip);

	for (unsigned int i = 0; i < p->num_addresses; i++) {
		const struct ipoib_address *a = &p->address[i];

		if (IN6_IS_ADDR_V4MAPPED(&a->ip) != v4)
			continue;
		if (prefix_matches(&a->ip, ip, a->prefix_bits))
			return &a->ip;
		if (!found)
			found = &a->ip;
	}
	return found;
}

bool ipoib_is_broadcast(const struct ipoib *p, const struct in6_addr *ip)
{
	if (!IN6_IS_ADDR_V4MAPPED(ip))
		return false;
	for (unsigned int i = 0; i < p->num_addresses; i++) {
		const struct ipoib_address *a = &p->address[i];
		u32 hosts =
			a->prefix_bits <= 96 ? 0 : 0xffffffffu >> (a->prefix_bits - 96);

		if (a->prefix_bits < 127 && IN6_IS_ADDR_V4MAPPED(&a->ip) &&
		    prefix_matches(&a->ip, ip, a->prefix_bits) &&
		    (get_be32(&ip->s6_addr[12]) & hosts) == hosts)
			return true;
	}
	return false;
}

/* IPv4 addresses are kept as IPv4-mapped ones, and told with the prefix of their own. */
int ipoib_each_address(const struct ipoib *p,
		       int (*fn)(void *ctx, const struct in6_addr *ip,
				 unsigned int prefix_bits),
		       void *ctx)
{
	int ret = 0;

	for (unsigned int i = 0; i < p->num_addresses && !ret; i++) {
		const struct ipoib_address *a = &p->address[i];
		unsigned int mapped = IN6_IS_ADDR_V4MAPPED(&a->ip) ? 96 : 0;

		ret = fn(ctx, &a->ip, a->prefix_bits - mapped);
	}
	return ret;
}

/* --- changes --- */

/* An IPv6 address is solicited by a group of its own (RFC 4861 section 7.2.1). */
static void solicit(struct ipoib *p, const struct in6_addr *ip, bool join)
{
	struct in6_addr group = ipoib_solicited(ip);

	if (!IN6_IS_ADDR_V4MAPPED(ip))
		ipoib_group_member(p, &group, join);
}

static void add(struct ipoib *p, const struct in6_addr *ip, unsigned int prefix_bits)
{
	if (ipoib_has_address(p, ip) || p->num_addresses == IPOIB_ADDRESSES_MAX)
		return;
	p->address[p->num_addresses++] = (struct ipoib_address){*ip, (u8)prefix_bits};
	solicit(p, ip, true);
}

static void del(struct ipoib *p, const struct in6_addr *ip)
{
	for (unsigned int i = 0; i < p->num_addresses; i++) {
		if (!is_same(&p->address[i].ip, ip))
			continue;
		p->address[i] = p->address[--p->num_addresses];
		solicit(p, ip, false);
		return;
	}
}

static bool read_address(int family, const void *data, size_t bytes, struct in6_addr *ip)
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

static void take_message(struct ipoib *p, const struct nlmsghdr *h)
{
	struct ifaddrmsg *m = NLMSG_DATA(h);
	int left = (int)IFA_PAYLOAD(h);
	struct in6_addr ip = {0};
	bool found = false;

	if ((h->nlmsg_type != RTM_NEWADDR && h->nlmsg_type != RTM_DELADDR) ||
	    m->ifa_index != p->ifindex)
		return;
	for (struct rtattr *a = IFA_RTA(m); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		if (a->rta_type != IFA_LOCAL && (a->rta_type != IFA_ADDRESS || found))
			continue; /* of a link between two hosts IFA_ADDRESS is the
				     other's */
		found |= read_address(m->ifa_family, RTA_DATA(a), RTA_PAYLOAD(a), &ip);
	}
	if (!found)
		return;
	if (h->nlmsg_type == RTM_DELADDR)
		del(p, &ip);
	else
		add(p, &ip, m->ifa_prefixlen + (m->ifa_family == AF_INET ? 96u : 0));
}

static void ask(struct ipoib *p)
{
	struct {
		struct nlmsghdr header;
		struct ifaddrmsg message;
	} request = {
		.header = {.nlmsg_len = sizeof(request),
			   .nlmsg_type = RTM_GETADDR,
			   .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
		.message = {.ifa_family = AF_UNSPEC},
	};

	(void)!send(p->address_fd, &request, sizeof(request),
		    MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void readable(struct rt_io *io, bool in, bool out)
{
	struct ipoib *p = container_of(io, struct ipoib, address_io);
	static _Alignas(struct nlmsghdr) char buffer[16384]; /* one thread */
	ssize_t n = recv(p->address_fd, buffer, sizeof(buffer), MSG_DONTWAIT);
	unsigned int left = n > 0 ? (unsigned int)n : 0;

	if (n < 0 && errno == ENOBUFS) /* changes were lost: all of them anew */
		ask(p);
	else if (n <= 0 && !(n < 0 && (errno == EAGAIN || errno == EINTR)))
		rt_io_watch(io, false, false);
	for (struct nlmsghdr *h = (void *)buffer; NLMSG_OK(h, left);
	     h = NLMSG_NEXT(h, left))
		if (h->nlmsg_len >= NLMSG_LENGTH(sizeof(struct ifaddrmsg)))
			take_message(p, h);
}

void ipoib_addresses_open(struct ipoib *p)
{
	rt_io_init(p->device->rt, &p->address_io, p->address_fd, readable);
	rt_io_watch(&p->address_io, true, false);
	ask(p);
}

void ipoib_addresses_close(struct ipoib *p)
{
	rt_io_watch(&p->address_io, false, false);
	rt_close_foreign(p->address_fd);
}
