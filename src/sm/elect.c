/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Which manager is master (14.4.1). States and what moves between them:
 *
 *   DISCOVERING -> MASTER    no other master, no stronger one discovering
 *   DISCOVERING -> STANDBY   otherwise
 *   STANDBY     -> DISCOVERING  the master missed POLLS_MISSED polls; DISCOVER
 *   STANDBY     -> MASTER    HANDOVER from the master
 *   STANDBY     -> NOT_ACTIVE DISABLE;  back by STANDBY
 *   MASTER      -> STANDBY   handed over; a stronger master was found
 *   MASTER      -> MASTER    HANDOVER from a weaker master: sweep again
 *
 * The stronger manager has the higher priority, or with equal priorities the lower
 * GUID. Managers of one subnet share the SM_Key (14.2.5.13) and send it, because
 * opensm ignores a manager that does not. A manager with another key is ignored, and
 * its commands are rejected. A master that finds a stronger manager in standby hands
 * over to it at the end of its sweep; one that finds a stronger master (two subnets
 * were joined) does so at once.
 */
#include "sm/internal.h"
#include "sm/trace.h"

#include <string.h>

#define POLLS_MISSED 3

static const char *const state_names[] = {"not active", "discovering", "standby", "master"};

static const char *const trace_names[] = {"NOT_ACTIVE", "DISCOVERING", "STANDBY", "MASTER"};

static void set_state(struct sm *sm, uint8_t state)
{
	if (sm->state == state)
		return;
	sm_log(sm, SM_LOG_INFO, "state: %s", state_names[state]);
	trace_sm_state(SM_TRACE_AT(sm), trace_names[sm->state], trace_names[state]);
	sm->state = state;
	if (state == WIRE_SM_STANDBY) {
		sm->missed_polls = 0;
		if (sm->opt.event)
			sm->opt.event(sm->opt.ctx, SM_EVENT_STANDBY);
	}
	if (state == WIRE_SM_MASTER)
		sm->reregister = sm->distrust = true;
}

void sm_info_fill(const struct sm *sm, struct wire_sm_info *info)
{
	*info = (struct wire_sm_info){
		.guid = sm->opt.port_guid,
		.sm_key = sm->opt.sm_key,
		.act_count = sm->act_count,
		.priority = sm->opt.priority,
		.state = sm->state,
	};
}

void sm_peers_clear(struct sm *sm)
{
	struct sm_peer *p, *tmp;

	list_for_each_entry_safe(p, tmp, &sm->peers, node) {
		list_del(&p->node);
		rt_free(p);
	}
}

static struct sm_peer *find_peer(struct sm *sm, uint64_t port_guid)
{
	struct sm_peer *p;

	list_for_each_entry(p, &sm->peers, node)
		if (p->port_guid == port_guid)
			return p;
	return NULL;
}

static void peer_reply(struct sm *sm, const struct sm_reply *r)
{
	struct sm_peer *p = r->obj;

	p->answered = r->data && !r->status &&
		      wire_sm_info_decode(r->data, WIRE_SMP_DATA_BYTES, &p->info) > 0;
}

static void ask(struct sm *sm, struct sm_peer *p)
{
	p->answered = false;
	sm_get(sm, &p->path, WIRE_SMP_SM_INFO, 0, peer_reply, p, 0);
}

void sm_elect_begin(struct sm *sm)
{
	sm_peers_clear(sm);
	sm_for_each_end_port(sm->next, p) {
		struct sm_peer *peer;

		if (p == sm->next->self || !(p->info.cap_mask & WIRE_PORT_CAP_IS_SM))
			continue;
		peer = rt_zalloc(sizeof(*peer));
		if (!peer)
			continue;
		peer->port_guid = p->guid;
		peer->lid = p->info.lid;
		peer->path = *p->path;
		list_add_tail(&peer->node, &sm->peers);
		ask(sm, peer);
	}
}

/* Return: true if @p is a manager of this subnet, as far as its SM_Key is known */
static bool is_kin(const struct sm *sm, const struct sm_peer *p)
{
	return p->answered && p->info.sm_key == sm->opt.sm_key;
}

static bool is_stronger(const struct sm *sm, const struct sm_peer *p)
{
	if (p->info.priority != sm->opt.priority)
		return p->info.priority > sm->opt.priority;
	return p->info.guid < sm->opt.port_guid;
}

/* Is @p stronger than this manager? */
static bool yields_to(const struct sm *sm, const struct sm_peer *p)
{
	if (!is_kin(sm, p))
		return false;
	if (p->info.state == WIRE_SM_MASTER)
		return sm->state != WIRE_SM_MASTER || is_stronger(sm, p);
	return p->info.state == WIRE_SM_DISCOVERING && is_stronger(sm, p);
}

/* from now on the stronger master configures the subnet */
static void give_up_to(struct sm *sm, struct sm_peer *p)
{
	struct wire_sm_info info;

	sm_info_fill(sm, &info);
	sm_set(sm, &p->path, WIRE_SMP_SM_INFO, WIRE_SM_HANDOVER, &wire_sm_info_codec, &info, NULL,
	       NULL, 0);
}

void sm_elect_decide(struct sm *sm)
{
	struct sm_peer *p;

	list_for_each_entry(p, &sm->peers, node) {
		if (p->answered && !is_kin(sm, p))
			sm_log(sm, SM_LOG_WARNING,
			       "the manager at LID %u has another SM_Key and is ignored: give "
			       "both the same one (--sm-key)", p->lid);
		if (!yields_to(sm, p))
			continue;
		sm->master_guid = p->port_guid;
		sm_log(sm, SM_LOG_INFO, "another manager at LID %u is %s, priority %u",
		       p->lid, state_names[p->info.state & 3], p->info.priority);
		if (sm->state == WIRE_SM_MASTER)
			give_up_to(sm, p);
		set_state(sm, WIRE_SM_STANDBY);
		sm_abort_job(sm);
		return;
	}
	set_state(sm, WIRE_SM_MASTER);
}

/* --- standby: poll the master --- */

void sm_poll_begin(struct sm *sm)
{
	struct sm_peer *p = find_peer(sm, sm->master_guid);

	if (p)
		ask(sm, p);
}

void sm_poll_decide(struct sm *sm)
{
	struct sm_peer *p = find_peer(sm, sm->master_guid);

	if (p && is_kin(sm, p) && p->info.state >= WIRE_SM_DISCOVERING &&
	    (p->info.state != WIRE_SM_STANDBY || is_stronger(sm, p)))
		sm->missed_polls = 0;
	else if (++sm->missed_polls >= POLLS_MISSED) {
		sm_log(sm, SM_LOG_WARNING, "the master is gone: taking over");
		set_state(sm, WIRE_SM_DISCOVERING);
		sm_want(sm, SM_JOB_HEAVY);
	}
}

/* --- master: hand over to a stronger one --- */

static void handover_reply(struct sm *sm, const struct sm_reply *r)
{
	struct sm_peer *p = r->obj;

	if (!r->data || r->status) {
		sm_log(sm, SM_LOG_WARNING, "the manager at LID %u did not take over", p->lid);
		return;
	}
	sm->master_guid = p->port_guid;
	set_state(sm, WIRE_SM_STANDBY);
}

void sm_handover_begin(struct sm *sm)
{
	struct sm_peer *p;
	struct wire_sm_info info;

	list_for_each_entry(p, &sm->peers, node) {
		if (!is_kin(sm, p) || p->info.state != WIRE_SM_STANDBY || !is_stronger(sm, p))
			continue;
		sm_log(sm, SM_LOG_INFO, "handing over to the manager at LID %u", p->lid);
		sm_info_fill(sm, &info);
		sm_set(sm, &p->path, WIRE_SMP_SM_INFO, WIRE_SM_HANDOVER, &wire_sm_info_codec,
		       &info, handover_reply, p, 0);
		return;
	}
}

/* --- requests of other managers --- */

/* Set(SMInfo): accepted commands, by the states of the sender and of this manager, and
 * the next state */
static const struct control {
	uint8_t command, by, in, to;
} controls[] = {
	{WIRE_SM_HANDOVER, WIRE_SM_MASTER, WIRE_SM_STANDBY, WIRE_SM_DISCOVERING},
	{WIRE_SM_HANDOVER, WIRE_SM_MASTER, WIRE_SM_MASTER, WIRE_SM_MASTER},
	{WIRE_SM_ACKNOWLEDGE, WIRE_SM_STANDBY, WIRE_SM_MASTER, WIRE_SM_MASTER},
	{WIRE_SM_ACKNOWLEDGE, WIRE_SM_STANDBY, WIRE_SM_STANDBY, WIRE_SM_STANDBY},
	{WIRE_SM_DISABLE, WIRE_SM_MASTER, WIRE_SM_STANDBY, WIRE_SM_NOT_ACTIVE},
	{WIRE_SM_STANDBY_COMMAND, WIRE_SM_MASTER, WIRE_SM_NOT_ACTIVE, WIRE_SM_STANDBY},
	{WIRE_SM_DISCOVER, WIRE_SM_MASTER, WIRE_SM_STANDBY, WIRE_SM_DISCOVERING},
};

static uint16_t control(struct sm *sm, uint32_t command, const struct wire_sm_info *by)
{
	if (by->sm_key != sm->opt.sm_key)
		return WIRE_STATUS_BAD_FIELD;
	for (size_t i = 0; i < ARRAY_SIZE(controls); i++) {
		const struct control *c = &controls[i];

		if (c->command != command || c->by != by->state || c->in != sm->state)
			continue;
		set_state(sm, c->to);
		if (c->to == WIRE_SM_DISCOVERING || command == WIRE_SM_HANDOVER)
			sm_want(sm, SM_JOB_HEAVY);
		/* The old master leaves its state only after this answer. So continue
		 * as master, and not in DISCOVERING, which would yield to it. */
		if (command == WIRE_SM_HANDOVER) {
			set_state(sm, WIRE_SM_MASTER);
			sm->distrust = true;
		}
		return WIRE_STATUS_OK;
	}
	return WIRE_STATUS_BAD_FIELD; /* 14.4.1: a command that does not apply */
}

void sm_info_receive(struct sm *sm, enum sm_agent agent, const struct sm_addr *from,
		     const uint8_t *mad)
{
	uint8_t answer[WIRE_MAD_BYTES];
	struct wire_smp smp;
	struct wire_sm_info info;

	memcpy(answer, mad, sizeof(answer));
	if (wire_smp_decode(mad, WIRE_MAD_BYTES, &smp) < 0 ||
	    wire_sm_info_decode(mad + WIRE_SMP_DATA_OFFSET, WIRE_SMP_DATA_BYTES, &info) < 0)
		return;
	sm->act_count++;
	smp.mad.status = smp.mad.method == WIRE_METHOD_SET ?
				 control(sm, smp.mad.attr_mod, &info) : WIRE_STATUS_OK;
	smp.mad.method = WIRE_METHOD_GET_RESP;
	smp.direction = true; /* the answer uses the reverse route (14.2.2) */
	sm_info_fill(sm, &info);
	wire_smp_encode(&smp, answer);
	wire_sm_info_encode(&info, answer + WIRE_SMP_DATA_OFFSET);
	sm_respond(sm, agent, from, answer, sizeof(answer));
}
