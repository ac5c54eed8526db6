/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Next hops. The host has chosen this interface for a packet before it writes it to the TUN
 * device, but the device carries no link address: to which gateway the packet goes only the
 * host's kernel knows, by its routing tables and by the rules that choose among them (ip-rule(8)).
 * So it is asked about the packet's addresses, its traffic class and its ports (RTM_GETROUTE),
 * which it answers at once. The answer is kept for what follows, until the kernel tells of a
 * change or it is HOP_LIFE_MS old: a redirect (ICMP) is no change that it tells.
 *
 * What a rule may look at and a packet does not show (marks, the interface by which it arrived)
 * does not count. Nothing is asked while no route by the interface has a gateway: they are listed
 * whenever one changes.
 */
#include <errno.h>
#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>
#include <string.h>

#include "base/bytes.h"
#include "ulp/ipoib/private.h"

#define HOPS	    256 /* kept, one for each value of a hash */
#define HOP_LIFE_MS 5000

/** struct ipoib_flow - packets that have one next hop */
struct ipoib_flow {
	struct in6_addr src, dst;
	__be16 ports[2]; /* of TCP and UDP; else 0 */
	u8 tos, protocol;
};

struct ipoib_hop {
	struct ipoib_flow flow;
	struct in6_addr via;
	mono_t until; /* 0: there is none */
};

struct ipoib_hops {
	struct ipoib_hop hop[HOPS];
};

/* --- what the kernel says ------------------------------------------------------- */

/** struct parsed - a message about a route, or a next hop of one */
struct parsed {
	struct in6_addr via; /* :: no gateway, the destination itself is on the link */
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
	case RTA_GATEWAY:
		r->valid &= ipoib_rtnl_address(family, RTA_DATA(a), RTA_PAYLOAD(a), &r->via);
		break;
	case RTA_VIA:
		r->valid &= read_via(a, &r->via);
		break;
	case RTA_OIF:
		r->ifindex = number(a);
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

static bool parse(const struct nlmsghdr *h, struct parsed *r)
{
	struct rtmsg *m = NLMSG_DATA(h);
	int left = (int)RTM_PAYLOAD(h);

	*r = (struct parsed){.valid = true};
	if (h->nlmsg_len < NLMSG_LENGTH(sizeof(*m)) || m->rtm_type != RTN_UNICAST ||
	    m->rtm_flags & RTNH_F_DEAD || (m->rtm_family != AF_INET && m->rtm_family != AF_INET6))
		return false;
	r->table = m->rtm_table;
	for (struct rtattr *a = RTM_RTA(m); RTA_OK(a, left); a = RTA_NEXT(a, left))
		read_attribute(r, m->rtm_family, a);
	return r->valid;
}

/* of next hops of which one is by the interface */
static bool have_gateway(const struct ipoib *p, const struct parsed *of, int family)
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
		    !IN6_IS_ADDR_UNSPECIFIED(&r.via))
			return true;
	}
	return false;
}

void ipoib_route_message(struct ipoib *p, const struct nlmsghdr *h)
{
	const struct rtmsg *m = NLMSG_DATA(h);
	struct parsed r;

	if (!parse(h, &r) || m->rtm_flags & RTM_F_CLONED || r.table == RT_TABLE_LOCAL)
		return;
	if (r.hops)
		p->listed_gateway |= have_gateway(p, &r, m->rtm_family);
	else
		p->listed_gateway |= r.ifindex == p->ifindex && !IN6_IS_ADDR_UNSPECIFIED(&r.via);
}

/* @h NULL: it has no route. An answer by another interface is of a rule that has seen more. */
void ipoib_route_answer(struct ipoib *p, const struct nlmsghdr *h)
{
	struct parsed r;

	p->route_told = true;
	p->route_answered = h && parse(h, &r) && r.ifindex == p->ifindex;
	if (p->route_answered)
		p->route_via = r.via;
}

/* --- the list ---------------------------------------------------------------------- */

void ipoib_routes_begin(struct ipoib *p)
{
	p->listed_gateway = false;
}

void ipoib_routes_flush(struct ipoib *p)
{
	for (unsigned int i = 0; p->hops && i < HOPS; i++)
		p->hops->hop[i].until.ns = 0;
}

void ipoib_routes_end(struct ipoib *p)
{
	p->has_gateway = p->listed_gateway;
	if (p->has_gateway)
		ipoib_routes_flush(p);
	else
		ipoib_routes_free(p);
}

void ipoib_routes_free(struct ipoib *p)
{
	rt_free(p->hops);
	p->hops = NULL;
}

/* --- asking --------------------------------------------------------------------------- */

/** struct question - RTM_GETROUTE, with room for all attributes */
struct question {
	struct nlmsghdr header;
	struct rtmsg route;
	u8 attributes[128];
};

static void add(struct question *q, u16 type, const void *data, size_t bytes)
{
	struct rtattr *a = (void *)((u8 *)q + NLMSG_ALIGN(q->header.nlmsg_len));

	a->rta_type = type;
	a->rta_len = (u16)RTA_LENGTH(bytes);
	memcpy(RTA_DATA(a), data, bytes);
	q->header.nlmsg_len = NLMSG_ALIGN(q->header.nlmsg_len) + RTA_ALIGN(a->rta_len);
}

static void add_address(struct question *q, u16 type, const struct in6_addr *ip)
{
	if (IN6_IS_ADDR_V4MAPPED(ip))
		add(q, type, &ip->s6_addr[12], 4);
	else
		add(q, type, ip, sizeof(*ip));
}

/* @with_source: a packet that the host forwards has a foreign one, about which it refuses to be
 * asked. Return: did it answer? */
static bool ask(struct ipoib *p, const struct ipoib_flow *f, bool with_source)
{
	bool v4 = IN6_IS_ADDR_V4MAPPED(&f->dst);
	struct question q = {
		.header = {.nlmsg_len = NLMSG_LENGTH(sizeof(q.route)), .nlmsg_type = RTM_GETROUTE,
			   .nlmsg_flags = NLM_F_REQUEST},
		.route = {.rtm_family = v4 ? AF_INET : AF_INET6, .rtm_dst_len = v4 ? 32 : 128,
			  .rtm_tos = v4 ? f->tos & 0x1c : f->tos},
	};
	u32 ifindex = p->ifindex;

	add_address(&q, RTA_DST, &f->dst);
	add(&q, RTA_OIF, &ifindex, sizeof(ifindex));
	if (with_source) {
		q.route.rtm_src_len = v4 ? 32 : 128;
		add_address(&q, RTA_SRC, &f->src);
	}
	if (f->protocol) {
		add(&q, RTA_IP_PROTO, &f->protocol, sizeof(f->protocol));
		add(&q, RTA_SPORT, &f->ports[0], sizeof(f->ports[0]));
		add(&q, RTA_DPORT, &f->ports[1], sizeof(f->ports[1]));
	}
	p->route_told = p->route_answered = false;
	ipoib_rtnl_ask(p, &q.header);
	return p->route_answered;
}

static struct ipoib_flow flow_of(const struct ipoib_packet *packet)
{
	struct ipoib_flow f;

	memset(&f, 0, sizeof(f)); /* it is compared with its padding */
	f.src = packet->src;
	f.dst = packet->dst;
	f.tos = packet->tos;
	if ((packet->protocol == IPPROTO_TCP || packet->protocol == IPPROTO_UDP) &&
	    packet->payload_bytes >= sizeof(f.ports)) {
		f.protocol = packet->protocol;
		memcpy(f.ports, packet->payload, sizeof(f.ports));
	}
	return f;
}

static struct ipoib_hop *place_of(struct ipoib *p, const struct ipoib_flow *f)
{
	const u8 *at = (const u8 *)f;
	u32 h = 0;

	if (!p->hops)
		p->hops = rt_zalloc(sizeof(*p->hops));
	for (size_t i = 0; i < sizeof(*f); i++)
		h = h * 31 + at[i];
	return p->hops ? &p->hops->hop[h % HOPS] : NULL;
}

const struct in6_addr *ipoib_next_hop(struct ipoib *p, const struct ipoib_packet *packet)
{
	struct ipoib_flow flow;
	struct ipoib_hop *hop;
	mono_t now;

	if (!p->has_gateway)
		return &packet->dst;
	flow = flow_of(packet);
	hop = place_of(p, &flow);
	now = rt_now(p->device->rt);
	if (hop && mono_before(now, hop->until) && !memcmp(&hop->flow, &flow, sizeof(flow)))
		return &hop->via;
	if (!ask(p, &flow, true) && !ask(p, &flow, false))
		return &packet->dst;
	if (IN6_IS_ADDR_UNSPECIFIED(&p->route_via))
		p->route_via = packet->dst;
	if (!p->hops) /* no memory */
		return &p->route_via;
	hop = place_of(p, &flow);
	*hop = (struct ipoib_hop){.flow = flow, .via = p->route_via,
				  .until = mono_add(now, HOP_LIFE_MS * NSEC_PER_MSEC)};
	return &hop->via;
}
