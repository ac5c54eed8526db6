/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Address conflicts: two hosts that have one address.
 *
 * Linux verifies an IPv6 address itself (RFC 4862 section 5.4), since `softib` lets it on a TUN
 * device: its solicitation goes to the fabric as any multicast, what it is answered goes to the
 * host, and the kernel marks the address (dadfailed). It does so neither for IPv4 addresses
 * (RFC 5227) nor for those that are given with "nodad"; so the interface verifies each address
 * that the host has begun to use:
 *
 *   verifying  A question without a sender goes to all. Meanwhile the host uses the address.
 *		When another has it, it becomes a duplicate
 *   settled	An IPv4 address is announced, by which others correct what they know. Who claims it
 *		from now on makes the interface announce it again, once in DEFEND_MS
 *
 * For a duplicate the interface neither asks nor answers, so that whoever had the address
 * before is not disturbed. The host has to give the address up; or the link goes down and up,
 * and it is verified anew. One timer serves all addresses of an interface.
 */
#include <string.h>

#include "ulp/ipoib/private.h"

/* RFC 5227 section 1.1, which has three probes and two announcements where we have one of each:
 * a fabric hardly loses packets, and each of these reaches every host, so a thousand hosts that
 * start together would send five million. RFC 4862 has one probe as well. */
#define PROBE_WAIT_MS	 1000 /* at random up to that */
#define ANNOUNCE_WAIT_MS 2000
#define DEFEND_MS	 10000
#define RETRANS_MS	 1000 /* RFC 4861 section 10: until nobody has answered for IPv6 */

static void (*report)(const struct ipoib *ipoib, const struct ipoib_own_address *address);

void ipoib_report_conflicts(void (*fn)(const struct ipoib *ipoib,
				       const struct ipoib_own_address *address))
{
	report = fn;
}

static void tell(const struct ipoib *p, const struct ipoib_address *a)
{
	const struct ipoib_own_address address = {
		.ip = &a->ip,
		.prefix_bits = a->prefix_bits - (IN6_IS_ADDR_V4MAPPED(&a->ip) ? 96u : 0),
		.duplicate = a->duplicate,
		.other = a->has_other ? &a->other : NULL,
	};

	if (report)
		report(p, &address);
}

static bool is_v4(const struct ipoib_address *a)
{
	return IN6_IS_ADDR_V4MAPPED(&a->ip);
}

static mono_t in_ms(struct ipoib *p, unsigned int ms)
{
	return mono_add(rt_now(p->device->rt), ms * NSEC_PER_MSEC);
}

/* --- what is sent ------------------------------------------------------------ */

/* a question about @a, whose sender has no address yet */
static void probe(struct ipoib *p, const struct ipoib_address *a)
{
	struct in6_addr group = ipoib_from_v4(INADDR_BROADCAST), none = ipoib_from_v4(INADDR_ANY);
	struct ipoib_send *s = ipoib_send_alloc(p);
	u8 *at = s ? s->frame + IPOIB_ENCAP_BYTES : NULL;

	if (!s)
		return;
	if (is_v4(a)) {
		ipoib_set_frame(s, IPOIB_ARP,
				ipoib_put_arp(at, IPOIB_REQUEST, &p->own, &none, NULL, &a->ip));
	} else {
		group = ipoib_solicited(&a->ip);
		none = (struct in6_addr){0};
		ipoib_set_frame(s, IPOIB_IPV6, ipoib_put_nd(at, IPOIB_REQUEST, NULL, &none,
							    &group, &a->ip));
	}
	ipoib_send_to_group(p, &group, s);
}

/* RFC 5227 section 2.3; RFC 4861 section 7.2.6 */
static void announce(struct ipoib *p, const struct ipoib_address *a)
{
	struct in6_addr group = ipoib_from_v4(INADDR_BROADCAST);
	struct ipoib_send *s = ipoib_send_alloc(p);
	u8 *at = s ? s->frame + IPOIB_ENCAP_BYTES : NULL;

	if (!s)
		return;
	if (is_v4(a)) {
		ipoib_set_frame(s, IPOIB_ARP,
				ipoib_put_arp(at, IPOIB_REQUEST, &p->own, &a->ip, NULL, &a->ip));
	} else {
		group = (struct in6_addr){.s6_addr = {0xff, 2, [15] = 1}};
		ipoib_set_frame(s, IPOIB_IPV6, ipoib_put_nd(at, IPOIB_REPLY, &p->own, &a->ip,
							    &group, &a->ip));
	}
	ipoib_send_to_group(p, &group, s);
}

/* --- verifying ------------------------------------------------------------------ */

static void step(struct ipoib *p, struct ipoib_address *a)
{
	if (!a->probed) {
		a->probed = true;
		probe(p, a);
		a->due = in_ms(p, is_v4(a) ? ANNOUNCE_WAIT_MS : RETRANS_MS);
		return;
	}
	a->verifying = false;
	if (is_v4(a))
		announce(p, a);
}

static void arm(struct ipoib *p)
{
	const struct ipoib_address *first = NULL;

	for (unsigned int i = 0; i < p->num_addresses; i++) {
		const struct ipoib_address *a = &p->address[i];

		if (a->verifying && (!first || mono_before(a->due, first->due)))
			first = a;
	}
	if (first && ipoib_is_joined(p)) /* or ipoib_conflict_joined() comes back */
		rt_timer_arm(&p->conflict_timer, first->due);
}

static void tick(struct rt_timer *timer)
{
	struct ipoib *p = container_of(timer, struct ipoib, conflict_timer);

	for (unsigned int i = 0; i < p->num_addresses; i++) {
		struct ipoib_address *a = &p->address[i];

		if (a->verifying && ipoib_is_joined(p) &&
		    !mono_before(rt_now(p->device->rt), a->due))
			step(p, a);
	}
	arm(p);
}

void ipoib_conflict_begin(struct ipoib *p, struct ipoib_address *a)
{
	a->duplicate = a->has_other = a->was_defended = false;
	a->verifying = true;
	a->probed = false;
	a->due = in_ms(p, rt_random(p->device->rt) % PROBE_WAIT_MS);
	arm(p);
}

void ipoib_conflict_begin_all(struct ipoib *p)
{
	for (unsigned int i = 0; i < p->num_addresses; i++)
		ipoib_conflict_begin(p, &p->address[i]);
}

void ipoib_conflict_joined(struct ipoib *p)
{
	arm(p);
}

void ipoib_conflict_open(struct ipoib *p)
{
	rt_timer_init(p->device->rt, &p->conflict_timer, tick);
}

void ipoib_conflict_close(struct ipoib *p)
{
	rt_timer_disarm(&p->conflict_timer);
}

/* --- what others claim ------------------------------------------------------------ */

static void become_duplicate(struct ipoib *p, struct ipoib_address *a)
{
	a->duplicate = true;
	a->verifying = false;
	tell(p, a);
}

void ipoib_conflict_failed(struct ipoib *p, struct ipoib_address *a)
{
	if (a->duplicate)
		return;
	p->stats.conflicts++;
	a->has_other = !memcmp(&a->ip, &p->claimed, sizeof(a->ip));
	a->other = p->claimed_by;
	become_duplicate(p, a);
}

/* RFC 5227 section 2.4 (c): a host on a link of servers does not give its address up */
static void defend(struct ipoib *p, struct ipoib_address *a)
{
	if (a->was_defended &&
	    mono_before(rt_now(p->device->rt), mono_add(a->defended, DEFEND_MS * NSEC_PER_MSEC)))
		return;
	a->was_defended = true;
	a->defended = rt_now(p->device->rt);
	announce(p, a);
	tell(p, a);
}

/* whether connections are taken is not who it is */
static bool is_own(const struct ipoib *p, const struct ipoib_link *link)
{
	return link->qpn == p->own.qpn && !memcmp(&link->gid, &p->own.gid, sizeof(link->gid));
}

bool ipoib_conflict_look(struct ipoib *p, const struct ipoib_resolution *r)
{
	struct ipoib_address *a = r->has_sender ? ipoib_find_address(p, &r->sender_ip) : NULL;

	if (!a || is_own(p, &r->sender))
		return false;
	p->stats.conflicts += !a->duplicate;
	a->other = r->sender;
	a->has_other = true;
	if (a->verifying)
		become_duplicate(p, a);
	else if (!a->duplicate)
		defend(p, a);
	return !a->duplicate;
}

/* Whoever announces the address first has it: the other is still verifying then. */
bool ipoib_conflict_is_open(struct ipoib *p, const struct ipoib_resolution *r)
{
	const struct ipoib_address *a = ipoib_find_address(p, &r->target_ip);

	return a && a->verifying && is_v4(a) && !r->has_sender;
}

/* It is told of other hosts' verifying, and of what is claimed to all, but no more of what the
 * interface answers for. */
bool ipoib_conflict_is_hosts(struct ipoib *p, const struct ipoib_resolution *r,
			     const struct in6_addr *to)
{
	if (ipoib_find_address(p, &r->target_ip))
		return false;
	if (r->op == IPOIB_REQUEST)
		return IN6_IS_ADDR_UNSPECIFIED(&r->sender_ip);
	if (!ipoib_is_group(to))
		return false;
	p->claimed = r->target_ip;
	p->claimed_by = r->sender;
	return true;
}
