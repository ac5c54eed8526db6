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

struct ipoib_address *ipoib_find_address(struct ipoib *p, const struct in6_addr *ip)
{
	for (unsigned int i = 0; i < p->num_addresses; i++)
		if (is_same(&p->address[i].ip, ip))
			return &p->address[i];
	return NULL;
}

bool ipoib_has_address(struct ipoib *p, const struct in6_addr *ip)
{
	const struct ipoib_address *a = ipoib_find_address(p, ip);

	return a && !a->duplicate;
}

const struct in6_addr *ipoib_address_for(const struct ipoib *p, const struct in6_addr *ip)
{
	const struct in6_addr *found = NULL;
	bool v4 = IN6_IS_ADDR_V4MAPPED(ip);

	for (unsigned int i = 0; i < p->num_addresses; i++) {
		const struct ipoib_address *a = &p->address[i];

		if (IN6_IS_ADDR_V4MAPPED(&a->ip) != v4 || a->duplicate)
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
		       int (*fn)(void *ctx, const struct ipoib_own_address *address), void *ctx)
{
	int ret = 0;

	for (unsigned int i = 0; i < p->num_addresses && !ret; i++) {
		const struct ipoib_address *a = &p->address[i];
		unsigned int mapped = IN6_IS_ADDR_V4MAPPED(&a->ip) ? 96 : 0;
		const struct ipoib_own_address address = {
			.ip = &a->ip,
			.prefix_bits = a->prefix_bits - mapped,
			.duplicate = a->duplicate,
			.verifying = a->verifying,
			.other = a->has_other ? &a->other : NULL,
		};

		ret = fn(ctx, &address);
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

/* @flags: IFA_F_*. The host detects duplicates of its IPv6 addresses itself: one is not its own
 * before that has ended, and stays in the list, marked, when there was one. */
static void add(struct ipoib *p, const struct in6_addr *ip, unsigned int prefix_bits, u32 flags)
{
	struct ipoib_address *a = ipoib_find_address(p, ip);
	bool failed = flags & IFA_F_DADFAILED;

	if (flags & IFA_F_TENTATIVE && !failed)
		return;
	if (!a && p->num_addresses == IPOIB_ADDRESSES_MAX)
		return;
	if (!a) {
		a = &p->address[p->num_addresses++];
		*a = (struct ipoib_address){.ip = *ip, .prefix_bits = (u8)prefix_bits};
		solicit(p, ip, true);
		ipoib_conflict_begin(p, a);
	}
	a->listed = true;
	if (failed)
		ipoib_conflict_failed(p, a);
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
	u32 flags = m->ifa_flags;

	if (h->nlmsg_len < NLMSG_LENGTH(sizeof(*m)) || m->ifa_index != p->ifindex)
		return;
	for (struct rtattr *a = IFA_RTA(m); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		if (a->rta_type == IFA_FLAGS && RTA_PAYLOAD(a) == sizeof(flags))
			memcpy(&flags, RTA_DATA(a), sizeof(flags));
		if (a->rta_type != IFA_LOCAL && (a->rta_type != IFA_ADDRESS || found))
			continue; /* of a link between two hosts IFA_ADDRESS is the
				     other's */
		found |= ipoib_rtnl_address(m->ifa_family, RTA_DATA(a), RTA_PAYLOAD(a), &ip);
	}
	if (!found)
		return;
	known = ipoib_find_address(p, &ip);
	if (h->nlmsg_type == RTM_NEWADDR)
		add(p, &ip, m->ifa_prefixlen + (m->ifa_family == AF_INET ? 96u : 0), flags);
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
