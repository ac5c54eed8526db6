/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Receives traps from agents and represses them (14.4.9), and sends notices as
 * Reports to ports that subscribed with InformInfo (15.4.8, 13.4.8.3).
 */
#include "sm/internal.h"
#include "sm/trace.h"
#include "sm/sa.h"

#include <string.h>

#define SUBSCRIPTIONS_OF_A_PORT 256 /* of the programs of one port */

/* The manager's reaction to a trap (14.2.5.1), besides forwarding it */
static const struct trap_row {
	uint16_t number;
	const char *what;
	bool sweep;
} trap_rows[] = {
	{WIRE_TRAP_LINK_STATE, "a link of the switch changed state", true},
	{WIRE_TRAP_LINK_INTEGRITY, "link integrity threshold reached", false},
	{WIRE_TRAP_BUFFER_OVERRUN, "buffer overrun threshold reached", false},
	{WIRE_TRAP_FLOW_CONTROL_WATCHDOG, "flow control watchdog expired", false},
	{WIRE_TRAP_CAPABILITY_CHANGE, "capabilities or description changed", true},
	{WIRE_TRAP_SYSTEM_GUID_CHANGE, "system image GUID changed", true},
	{WIRE_TRAP_BAD_MKEY, "an M_Key violation", false},
	{WIRE_TRAP_BAD_PKEY, "a P_Key violation", false},
	{WIRE_TRAP_BAD_QKEY, "a Q_Key violation", false},
	{WIRE_TRAP_SWITCH_BAD_PKEY, "a P_Key violation at a switch", false},
};

static const struct trap_row *trap_find(uint16_t number)
{
	for (size_t i = 0; i < ARRAY_SIZE(trap_rows); i++)
		if (trap_rows[i].number == number)
			return &trap_rows[i];
	return NULL;
}

static void repress(struct sm *sm, enum sm_agent agent, const struct sm_addr *from,
		    const uint8_t *mad)
{
	uint8_t answer[WIRE_MAD_BYTES];
	struct wire_smp smp;

	memcpy(answer, mad, sizeof(answer));
	if (wire_smp_decode(mad, WIRE_MAD_BYTES, &smp) < 0)
		return;
	smp.mad.method = WIRE_METHOD_TRAP_REPRESS;
	smp.mad.status = 0;
	smp.mkey = sm->opt.mkey;
	wire_smp_encode(&smp, answer);
	sm_respond(sm, agent, from, answer, sizeof(answer));
}

/* --- Reports to subscribers --- */

static bool lid_matches(const struct wire_inform_info *i, uint16_t lid)
{
	if (i->lid_range_begin == 0xffff)
		return true;
	return lid >= i->lid_range_begin && lid <= MAX(i->lid_range_end, i->lid_range_begin);
}

/* 13.4.8.3: does a subscription cover a notice? */
static bool covers(const struct sm_subscription *s, const struct wire_notice *n)
{
	static const union wire_gid any;
	const struct wire_inform_info *i = &s->info;

	if (!i->is_generic != !n->is_generic)
		return false;
	if (i->type != 0xffff && i->type != n->type)
		return false;
	if (i->trap_number != 0xffff && i->trap_number != n->trap_number)
		return false;
	if (i->producer != 0xffffff && i->producer != n->producer)
		return false;
	if (memcmp(&i->gid, &any, sizeof(any)))
		return !memcmp(&i->gid, &n->issuer_gid, sizeof(any));
	return lid_matches(i, n->issuer_lid);
}

static struct sm_subscription *find_number(struct sm *sm, uint16_t number)
{
	struct sm_subscription *s;

	list_for_each_entry(s, &sm->subscriptions, node)
		if (s->number == number)
			return s;
	return NULL;
}

static void subscription_free(struct sm_subscription *s)
{
	list_del(&s->node);
	rt_free(s);
}

static void report_reply(struct sm *sm, const struct sm_reply *r)
{
	struct sm_subscription *s = find_number(sm, r->arg);

	if (r->data || !s)
		return;
	/* a subscriber that is still alive has to subscribe again (15.4.8) */
	sm_log(sm, SM_LOG_INFO, "LID %u does not answer reports: unsubscribed", s->to.lid);
	subscription_free(s);
}

static void report(struct sm *sm, const struct wire_notice *n)
{
	struct wire_sa h = {
		.mad = {.base_version = WIRE_MAD_BASE_VERSION, .mgmt_class = WIRE_CLASS_SA,
			.class_version = WIRE_SA_CLASS_VERSION, .method = WIRE_METHOD_REPORT,
			.attr_id = WIRE_SA_NOTICE},
	};
	uint8_t mad[WIRE_MAD_BYTES] = {0};
	struct sm_subscription *s;

	wire_sa_encode(&h, mad);
	if (wire_notice_encode(n, mad + WIRE_SA_DATA_OFFSET) < 0)
		return;
	list_for_each_entry(s, &sm->subscriptions, node)
		if (covers(s, n))
			sm_call_report(sm, &s->to, mad, report_reply, s->number);
}

/* Who is told of trap 144 asks for the port at once: what the trap says of it holds until the next
 * sweep has read the port. A sweep under way may have read it before the trap. */
static void take_capability(struct sm *sm, struct sm_port *p, const struct wire_notice *n)
{
	struct sm_port *next = sm->next ? sm_subnet_port(sm->next, p->guid) : NULL;
	struct wire_trap_capability d;

	if (n->is_generic && n->trap_number == WIRE_TRAP_CAPABILITY_CHANGE &&
	    wire_trap_capability_decode(n->details, sizeof(n->details), &d) > 0) {
		p->info.cap_mask = d.cap_mask;
		if (next)
			next->info.cap_mask = d.cap_mask;
	}
}

void sm_trap_receive(struct sm *sm, enum sm_agent agent, const struct sm_addr *from,
		     const uint8_t *mad)
{
	const struct trap_row *row;
	struct sm_port *p;
	struct wire_notice n;

	if (wire_smp_notice_decode(mad + WIRE_SMP_DATA_OFFSET, WIRE_SMP_DATA_BYTES, &n) < 0)
		return;
	if (sm->state != WIRE_SM_MASTER)
		return;
	trace_sm_trap(SM_TRACE_AT(sm), n.trap_number, n.issuer_lid);
	repress(sm, agent, from, mad);
	row = n.is_generic ? trap_find(n.trap_number) : NULL;
	sm_log(sm, SM_LOG_INFO, "trap %u from LID %u: %s", n.trap_number, n.issuer_lid,
	       row ? row->what : "unknown");
	if (row && row->sweep)
		sm_want(sm, SM_JOB_HEAVY);
	p = sm->subnet ? sm_subnet_lid(sm->subnet, n.issuer_lid) : NULL;
	if (p) {
		n.issuer_gid = sm_gid(sm->opt.gid_prefix, p->guid);
		take_capability(sm, p, &n);
	}
	report(sm, &n);
}

void sm_notify_gid(struct sm *sm, uint16_t trap, const union wire_gid *gid)
{
	struct wire_notice n = {
		.is_generic = true,
		.type = WIRE_NOTICE_SM,
		.producer = WIRE_PRODUCER_CLASS_MANAGER,
		.trap_number = trap,
		.issuer_gid = sm_gid(sm->opt.gid_prefix, sm->opt.port_guid),
	};
	struct wire_trap_gid d = {*gid};

	if (sm->subnet && sm->subnet->self)
		n.issuer_lid = sm->subnet->self->lid;
	wire_trap_gid_encode(&d, n.details);
	report(sm, &n);
}

/* Send a notice for every end port of @of that is not in @but. */
static void notify_missing(struct sm *sm, const struct sm_subnet *of,
			   const struct sm_subnet *but, uint16_t trap)
{
	sm_for_each_end_port(of, p) {
		union wire_gid gid = sm_gid(sm->opt.gid_prefix, p->guid);

		if (sm_subnet_port(but, p->guid))
			continue;
		sm_log(sm, SM_LOG_INFO, "%s %s (LID %u)", sm_node_name(p->node),
		       trap == WIRE_TRAP_GID_IN_SERVICE ? "joined" : "left", p->lid);
		sm_notify_gid(sm, trap, &gid);
	}
}

void sm_notify_changes(struct sm *sm, const struct sm_subnet *old)
{
	if (!old)
		return;
	notify_missing(sm, sm->subnet, old, WIRE_TRAP_GID_IN_SERVICE);
	notify_missing(sm, old, sm->subnet, WIRE_TRAP_GID_OUT_OF_SERVICE);
}

void sm_subscriptions_close(struct sm *sm)
{
	struct sm_subscription *s, *tmp;

	list_for_each_entry_safe(s, tmp, &sm->subscriptions, node)
		subscription_free(s);
}

/* --- InformInfo and InformInfoRecord --- */

static struct sm_subscription *find_same(struct sm *sm, const struct sm_addr *from,
					 const struct wire_inform_info *i)
{
	struct sm_subscription *s;

	list_for_each_entry(s, &sm->subscriptions, node)
		if (s->to.lid == from->lid && s->to.qpn == from->qpn &&
		    !memcmp(&s->info.gid, &i->gid, sizeof(i->gid)) &&
		    s->info.lid_range_begin == i->lid_range_begin &&
		    s->info.lid_range_end == i->lid_range_end &&
		    s->info.is_generic == i->is_generic && s->info.type == i->type &&
		    s->info.trap_number == i->trap_number && s->info.producer == i->producer)
			return s;
	return NULL;
}

/* Each event is told to all that want to hear of it, several times if nobody answers. */
static bool has_room(const struct sm *sm, const union wire_gid *gid)
{
	unsigned n = 0;
	struct sm_subscription *s;

	list_for_each_entry(s, &sm->subscriptions, node)
		n += !memcmp(&s->gid, gid, sizeof(*gid));
	return n < SUBSCRIPTIONS_OF_A_PORT;
}

/* Set(InformInfo): subscribe, or end the subscription with the same parameters */
void sm_inform_set(struct sm_query *q)
{
	const struct wire_inform_info *i = q->key;
	struct sm_subscription *s = find_same(q->sm, q->from, i);
	const union wire_gid gid =
		sm_gid(q->sm->opt.gid_prefix, q->requester ? q->requester->guid : 0);

	if (!i->subscribe && !s) {
		q->status = WIRE_SA_REQUEST_INVALID;
		return;
	}
	if (!i->subscribe) {
		subscription_free(s);
	} else if (!s) {
		s = has_room(q->sm, &gid) ? rt_zalloc(sizeof(*s)) : NULL;
		if (!s) {
			q->status = WIRE_SA_NO_RESOURCES;
			return;
		}
		s->info = *i;
		s->to = *q->from;
		s->gid = gid;
		s->number = q->sm->next_subscription++;
		list_add_tail(&s->node, &q->sm->subscriptions);
	}
	q->mask = 0;
	sm_emit(q, i);
}

void sm_inform_each(struct sm_query *q)
{
	struct sm_subscription *s;

	list_for_each_entry(s, &q->sm->subscriptions, node) {
		struct wire_inform_info_record r = {
			.subscriber_gid = s->gid,
			.subscriber_enum = s->number,
			.inform_info = s->info,
		};

		sm_emit(q, &r);
	}
}
