/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Next hops. The host has chosen this interface for a packet before it writes it to the TUN
 * device, but the device carries no link address: which gateway the packet goes to follows
 * from the host's routes that lead to this interface, of which the longest prefix wins, and
 * then the lowest metric.
 *
 * Routes are kept only while one of them has a gateway. All tables but the local one count,
 * since which of them a rule of the host's (ip-rule(8)) has chosen is not known here.
 */
#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "ulp/ipoib/private.h"

#define ROUTES_MOST 4096 /* more are left out */

/** struct ipoib_route - a route by the interface */
struct ipoib_route {
	struct in6_addr dst;
	struct in6_addr via; /* :: no gateway, the destination itself is on the link */
	u8 prefix_bits;	     /* of 128 */
	bool v4;
	u32 metric;
};

struct ipoib_routes {
	unsigned int num, room, gateways;
	struct ipoib_route route[];
};

/* --- reading --- */

static void add(struct ipoib *p, const struct ipoib_route *route)
{
	struct ipoib_routes *all = p->listed_routes, *grown;
	unsigned int room = all ? 2 * all->room : 8;

	if (!all || all->num == all->room) {
		grown = room > ROUTES_MOST ? NULL : rt_zalloc(sizeof(*grown) + room * sizeof(*route));
		if (!grown)
			return;
		if (all)
			memcpy(grown, all, sizeof(*all) + all->num * sizeof(*route));
		grown->room = room;
		rt_free(all);
		p->listed_routes = all = grown;
	}
	all->route[all->num++] = *route;
	all->gateways += !IN6_IS_ADDR_UNSPECIFIED(&route->via);
}

/** struct parsed - a message about a route, or a next hop of one */
struct parsed {
	struct ipoib_route route;
	u32 table, ifindex;
	struct rtattr *hops; /* RTA_MULTIPATH; NULL: the route has one next hop */
	bool valid;
};

static u32 number(const struct rtattr *a)
{
	u32 n = 0;

	if (RTA_PAYLOAD(a) == sizeof(n))
		memcpy(&n, RTA_DATA(a), sizeof(n));
	return n;
}

/* of another family than the destination (RFC 5549) */
static bool read_via(const struct rtattr *a, struct in6_addr *via)
{
	const struct rtvia *v = RTA_DATA(a);

	return RTA_PAYLOAD(a) >= sizeof(*v) &&
	       ipoib_rtnl_address(v->rtvia_family, v->rtvia_addr, RTA_PAYLOAD(a) - sizeof(*v), via);
}

static void read_attribute(struct parsed *r, int family, struct rtattr *a)
{
	switch (a->rta_type) {
	case RTA_DST:
		r->valid &= ipoib_rtnl_address(family, RTA_DATA(a), RTA_PAYLOAD(a), &r->route.dst);
		break;
	case RTA_GATEWAY:
		r->valid &= ipoib_rtnl_address(family, RTA_DATA(a), RTA_PAYLOAD(a), &r->route.via);
		break;
	case RTA_VIA:
		r->valid &= read_via(a, &r->route.via);
		break;
	case RTA_OIF:
		r->ifindex = number(a);
		break;
	case RTA_PRIORITY:
		r->route.metric = number(a);
		break;
	case RTA_TABLE:
		r->table = number(a);
		break;
	case RTA_MULTIPATH:
		r->hops = a;
		break;
	default:
		break;
	}
}

static void add_hops(struct ipoib *p, const struct parsed *of, int family)
{
	struct rtnexthop *hop = RTA_DATA(of->hops);
	int left = (int)RTA_PAYLOAD(of->hops);

	for (; RTNH_OK(hop, left); left -= (int)RTNH_ALIGN(hop->rtnh_len), hop = RTNH_NEXT(hop)) {
		struct rtattr *a = RTNH_DATA(hop);
		int bytes = hop->rtnh_len - (int)sizeof(*hop);
		struct parsed r = *of;

		for (; RTA_OK(a, bytes); a = RTA_NEXT(a, bytes))
			if (a->rta_type == RTA_GATEWAY || a->rta_type == RTA_VIA)
				read_attribute(&r, family, a);
		if (r.valid && (unsigned int)hop->rtnh_ifindex == p->ifindex &&
		    !(hop->rtnh_flags & RTNH_F_DEAD))
			add(p, &r.route);
	}
}

void ipoib_route_message(struct ipoib *p, const struct nlmsghdr *h)
{
	struct rtmsg *m = NLMSG_DATA(h);
	int left = (int)RTM_PAYLOAD(h);
	struct parsed r = {.valid = true};

	if (h->nlmsg_len < NLMSG_LENGTH(sizeof(*m)) || m->rtm_type != RTN_UNICAST ||
	    m->rtm_flags & (RTM_F_CLONED | RTNH_F_DEAD) ||
	    (m->rtm_family != AF_INET && m->rtm_family != AF_INET6))
		return;
	r.route.v4 = m->rtm_family == AF_INET;
	r.table = m->rtm_table;
	if (m->rtm_dst_len > (r.route.v4 ? 32 : 128))
		return;
	r.route.prefix_bits = (u8)(m->rtm_dst_len + (r.route.v4 ? 96 : 0));
	if (r.route.v4)
		r.route.dst = ipoib_from_v4(INADDR_ANY);
	for (struct rtattr *a = RTM_RTA(m); RTA_OK(a, left); a = RTA_NEXT(a, left))
		read_attribute(&r, m->rtm_family, a);
	if (!r.valid || r.table == RT_TABLE_LOCAL)
		return;
	if (r.hops)
		add_hops(p, &r, m->rtm_family);
	else if (r.ifindex == p->ifindex)
		add(p, &r.route);
}

/* --- the table --- */

static int by_precedence(const void *a, const void *b)
{
	const struct ipoib_route *x = a, *y = b;

	if (x->prefix_bits != y->prefix_bits)
		return y->prefix_bits - x->prefix_bits;
	if (x->metric != y->metric)
		return x->metric < y->metric ? -1 : 1;
	return memcmp(x, y, offsetof(struct ipoib_route, prefix_bits));
}

void ipoib_routes_begin(struct ipoib *p)
{
	rt_free(p->listed_routes);
	p->listed_routes = NULL;
}

void ipoib_routes_end(struct ipoib *p)
{
	struct ipoib_routes *all = p->listed_routes;

	rt_free(p->routes);
	p->routes = p->listed_routes = NULL;
	if (!all || !all->gateways) {
		rt_free(all);
		return;
	}
	qsort(all->route, all->num, sizeof(all->route[0]), by_precedence);
	p->routes = all;
}

void ipoib_routes_free(struct ipoib *p)
{
	rt_free(p->routes);
	rt_free(p->listed_routes);
	p->routes = p->listed_routes = NULL;
}

static bool is_equal(const struct ipoib_route *a, const struct ipoib_route *b)
{
	return a->prefix_bits == b->prefix_bits && a->metric == b->metric && a->v4 == b->v4 &&
	       !memcmp(&a->dst, &b->dst, sizeof(a->dst));
}

/* Of several gateways for one prefix each destination has its own. */
static const struct ipoib_route *choose(const struct ipoib_routes *all, unsigned int first,
					const struct in6_addr *dst)
{
	unsigned int last = first;

	while (last + 1 < all->num && is_equal(&all->route[first], &all->route[last + 1]))
		last++;
	return &all->route[first + dst->s6_addr[15] % (last - first + 1)];
}

const struct in6_addr *ipoib_next_hop(const struct ipoib *p, const struct in6_addr *dst)
{
	const struct ipoib_routes *all = p->routes;
	bool v4 = IN6_IS_ADDR_V4MAPPED(dst);

	for (unsigned int i = 0; all && i < all->num; i++) {
		const struct ipoib_route *r = &all->route[i];

		if (r->v4 != v4 || !ipoib_prefix_matches(&r->dst, dst, r->prefix_bits))
			continue;
		r = choose(all, i, dst);
		return IN6_IS_ADDR_UNSPECIFIED(&r->via) ? dst : &r->via;
	}
	return dst;
}
