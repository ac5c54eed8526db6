/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Which addresses the host has given the interface, as its routing socket tells (rtnl.c).
 */
#include <errno.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

#include "base/bytes.h"
#include "ulp/ipoib/private.h"

static bool is_same(const struct in6_addr *a, const struct in6_addr *b)
{
	return !memcmp(a, b, sizeof(*a));
}

bool ipoib_prefix_matches(const struct in6_addr *a, const struct in6_addr *b, unsigned int bits)
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
		if (ipoib_prefix_matches(&a->ip, ip, a->prefix_bits))
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
		    ipoib_prefix_matches(&a->ip, ip, a->prefix_bits) &&
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

static struct ipoib_address *find(struct ipoib *p, const struct in6_addr *ip)
{
	for (unsigned int i = 0; i < p->num_addresses; i++)
		if (is_same(&p->address[i].ip, ip))
			return &p->address[i];
	return NULL;
}

static void add(struct ipoib *p, const struct in6_addr *ip, unsigned int prefix_bits)
{
	struct ipoib_address *a = find(p, ip);

	if (a) {
		a->listed = true;
		return;
	}
	if (p->num_addresses == IPOIB_ADDRESSES_MAX)
		return;
	p->address[p->num_addresses++] = (struct ipoib_address){*ip, (u8)prefix_bits, true};
	solicit(p, ip, true);
}

static void del(struct ipoib *p, struct ipoib_address *a)
{
	struct in6_addr ip = a->ip;

	*a = p->address[--p->num_addresses];
	solicit(p, &ip, false);
}

void ipoib_address_message(struct ipoib *p, const struct nlmsghdr *h)
{
	struct ifaddrmsg *m = NLMSG_DATA(h);
	int left = (int)IFA_PAYLOAD(h);
	struct ipoib_address *known;
	struct in6_addr ip = {0};
	bool found = false;

	if (h->nlmsg_len < NLMSG_LENGTH(sizeof(*m)) || m->ifa_index != p->ifindex)
		return;
	for (struct rtattr *a = IFA_RTA(m); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		if (a->rta_type != IFA_LOCAL && (a->rta_type != IFA_ADDRESS || found))
			continue; /* of a link between two hosts IFA_ADDRESS is the
				     other's */
		found |= ipoib_rtnl_address(m->ifa_family, RTA_DATA(a), RTA_PAYLOAD(a), &ip);
	}
	if (!found)
		return;
	known = find(p, &ip);
	if (h->nlmsg_type == RTM_NEWADDR)
		add(p, &ip, m->ifa_prefixlen + (m->ifa_family == AF_INET ? 96u : 0));
	else if (known)
		del(p, known);
}

void ipoib_addresses_begin(struct ipoib *p)
{
	for (unsigned int i = 0; i < p->num_addresses; i++)
		p->address[i].listed = false;
}

/* Those that were not listed are gone, and the notification of that was lost. */
void ipoib_addresses_end(struct ipoib *p)
{
	for (unsigned int i = p->num_addresses; i-- > 0;)
		if (!p->address[i].listed)
			del(p, &p->address[i]);
}
