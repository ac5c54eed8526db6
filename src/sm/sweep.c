/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Sweeps: the jobs of the manager and their order.
 *
 * A job is a sequence of phases. A phase sends SMPs, and the next phase begins when
 * all of them have ended. One job runs at a time, the first of those requested:
 *
 *   heavy  discovers the subnet again and configures it; at the start, after
 *          traps 128 and 144, and when a light sweep found a change
 *   light  queries every switch for changed ports (PortStateChange)
 *   self   queries the own port, because no trap is sent when the switch at its
 *          other end dies or comes back
 *   mcast  multicast tables are computed and programmed; after joins, leaves
 *   poll   in standby: is the master alive? (14.4.1, "POLLING")
 *
 * Timer: sweep_timer requests a light sweep or a poll every opt.sweep_ns, and job
 * "self" every second in between.
 *
 * A link that flaps asks for a heavy sweep with each trap, and all programs of the fabric would pay for
 * them. So there is a pause between heavy sweeps that follow one another closely: none
 * after the first, since a link that went down is often up again at once, then one that doubles.
 */
#include "sm/internal.h"
#include "sm/trace.h"

#include <string.h>

#define POLL_NS (10 * NSEC_PER_SEC) /* of the master, when there are no sweeps */
#define SELF_NS (1 * NSEC_PER_SEC)
#define REST_NS	    ((uint64_t)NSEC_PER_MSEC) /* the first pause between heavy sweeps */
#define REST_MAX_NS (100 * REST_NS)
#define CLOSE_NS    (1 * NSEC_PER_SEC) /* sweeps with more than this between them are not close */

static const struct sm_phase heavy[] = {
	{"discover", sm_discover_begin},
	{"find other managers", sm_elect_begin},
	{"elect a master", sm_elect_decide},
	{"assign LIDs", sm_lids_begin, sm_ports_more},
	{"compute routes", sm_route_begin},
	{"set switches", NULL, sm_switch_info_more},
	{"program linear tables", NULL, sm_lft_more},
	{"program multicast tables", sm_mcast_begin, sm_mft_more},
	{"set partitions", NULL, sm_pkeys_more},
	{"set virtual lanes", sm_qos_begin, sm_qos_more},
	{"arm ports", NULL, sm_arm_more},
	{"activate ports", NULL, sm_activate_more},
	{"subnet up", sm_up_begin},
	{"tell clients", NULL, sm_clients_more},
	{"hand over", sm_handover_begin},
	{NULL},
};

static const struct sm_phase light[] = {
	{"ask switches", sm_self_begin, sm_light_more},
	{NULL},
};

static const struct sm_phase self[] = {
	{"ask the own port", sm_self_begin},
	{NULL},
};

static const struct sm_phase mcast[] = {
	{"program multicast tables", sm_mcast_begin, sm_mft_more},
	{"answer joins", sm_mcast_done},
	{NULL},
};

static const struct sm_phase poll[] = {
	{"ask the master", sm_poll_begin},
	{"judge the master", sm_poll_decide},
	{NULL},
};

static const struct sm_phase *const jobs[SM_N_JOBS] = {
	[SM_JOB_HEAVY] = heavy,
	[SM_JOB_LIGHT] = light,
	[SM_JOB_SELF] = self,
	[SM_JOB_MCAST] = mcast,
	[SM_JOB_POLL] = poll,
};

void sm_want(struct sm *sm, enum sm_job job)
{
	sm->wanted[job] = true;
	rt_work_queue(sm->rt, &sm->work);
}

void sm_abort_job(struct sm *sm)
{
	sm->aborted = true;
}

static void trace_job(const struct sm *sm, const char *what)
{
	static const char *const names[SM_N_JOBS] = {
		[SM_JOB_HEAVY] = "heavy", [SM_JOB_LIGHT] = "light", [SM_JOB_SELF] = "self",
		[SM_JOB_MCAST] = "mcast", [SM_JOB_POLL] = "poll",
	};

	trace_sm_job(SM_TRACE_AT(sm), names[sm->job], what);
}

/* May @job run in the present state? Standby managers only discover and poll. */
static bool is_allowed(const struct sm *sm, enum sm_job job)
{
	switch (job) {
	case SM_JOB_HEAVY:
		return sm->state == WIRE_SM_MASTER || sm->state == WIRE_SM_DISCOVERING;
	case SM_JOB_POLL:
		return sm->state == WIRE_SM_STANDBY;
	default:
		return sm->state == WIRE_SM_MASTER && sm->subnet;
	}
}

void sm_sweep_due(struct rt_timer *t)
{
	struct sm *sm = container_of(t, struct sm, sweep_timer);

	if (rt_now(sm->rt).ns < sm->sweep_at.ns && is_allowed(sm, SM_JOB_SELF)) {
		sm_want(sm, SM_JOB_SELF);
		return;
	}
	/* a node that did not answer may do so now, without a change of any port */
	sm_want(sm, sm->state == WIRE_SM_STANDBY    ? SM_JOB_POLL :
		    sm->subnet && !sm->incomplete   ? SM_JOB_LIGHT :
						      SM_JOB_HEAVY);
}

void sm_rest_ends(struct rt_timer *t)
{
	struct sm *sm = container_of(t, struct sm, rest_timer);

	rt_work_queue(sm->rt, &sm->work);
}

/* Must this job wait for the end of a pause? Its timer starts it then. */
static bool must_rest(struct sm *sm, enum sm_job job)
{
	if (job != SM_JOB_HEAVY || !mono_before(rt_now(sm->rt), sm->rest_until))
		return false;
	rt_timer_arm(&sm->rest_timer, sm->rest_until);
	return true;
}

/* A heavy sweep has ended: how soon may the next one begin? */
static void rest(struct sm *sm)
{
	mono_t now = rt_now(sm->rt);
	bool is_close = sm->swept_at.ns && mono_before(now, mono_add(sm->swept_at, CLOSE_NS));

	sm->rest_ns = !is_close ? 0 : sm->rest_ns ? MIN(2 * sm->rest_ns, REST_MAX_NS) : REST_NS;
	sm->rest_until = mono_add(now, sm->rest_ns);
	sm->swept_at = now;
}

static bool start_job(struct sm *sm)
{
	for (enum sm_job j = 0; j < SM_N_JOBS; j++) {
		if (!sm->wanted[j] || must_rest(sm, j))
			continue;
		sm->wanted[j] = false;
		if (!is_allowed(sm, j))
			continue;
		sm->job = j;
		sm->phase = jobs[j];
		sm->phase_begun = sm->aborted = false;
		sm->unanswered = 0;
		sm->incomplete |= j == SM_JOB_HEAVY;
		trace_job(sm, "begin");
		return true;
	}
	return false;
}

static void arm_timer(struct sm *sm)
{
	uint64_t pause_ns = sm->opt.sweep_ns;
	mono_t now = rt_now(sm->rt), due;

	if (!pause_ns && sm->state == WIRE_SM_STANDBY)
		pause_ns = POLL_NS;
	if (!pause_ns)
		return;
	if (sm->job != SM_JOB_SELF)
		sm->sweep_at = mono_add(now, pause_ns);
	due = sm->sweep_at;
	if (is_allowed(sm, SM_JOB_SELF))
		due.ns = MIN(due.ns, mono_add(now, SELF_NS).ns);
	rt_timer_arm(&sm->sweep_timer, due);
}

static void end_job(struct sm *sm)
{
	sm->phase = NULL;
	trace_job(sm, sm->aborted ? "abort" : "end");
	if (sm->job == SM_JOB_HEAVY)
		rest(sm);
	if (sm->next) {
		/* the job was aborted, so the new model is incomplete */
		sm_subnet_destroy(sm->next);
		sm->next = NULL;
	}
	arm_timer(sm);
}

/* Make calls until the window is full or the phase has no more to make. */
static bool feed(struct sm *sm)
{
	bool more = true;

	sm_calls_launch(sm);
	while (more && sm_calls_have_room(sm)) {
		more = !sm->aborted && sm->phase->more && sm->phase->more(sm);
		sm_calls_launch(sm);
	}
	return more;
}

void sm_pump(struct sm *sm)
{
	for (;;) {
		if (!sm->phase && !start_job(sm)) {
			sm_calls_launch(sm);
			return;
		}
		if (!sm->phase_begun) {
			sm_log(sm, SM_LOG_DEBUG, "phase: %s", sm->phase->name);
			trace_sm_phase(SM_TRACE_AT(sm), sm->phase->name);
			sm->phase_begun = true;
			memset(&sm->cursor, 0, sizeof(sm->cursor));
			if (sm->phase->begin)
				sm->phase->begin(sm);
		}
		if (feed(sm) || !sm_calls_are_done(sm))
			return;
		sm->phase++;
		sm->phase_begun = false;
		if (sm->aborted || !sm->phase->name)
			end_job(sm);
	}
}

static void light_reply(struct sm *sm, const struct sm_reply *r)
{
	struct sm_node *n = r->obj;
	struct wire_switch_info info;

	if (!r->data) {
		sm_log(sm, SM_LOG_INFO, "%s does not answer any more", sm_node_name(n));
		sm_want(sm, SM_JOB_HEAVY);
		return;
	}
	if (wire_switch_info_decode(r->data, WIRE_SMP_DATA_BYTES, &info) > 0 &&
	    info.port_state_change)
		sm_want(sm, SM_JOB_HEAVY);
}

static void own_port_reply(struct sm *sm, const struct sm_reply *r)
{
	struct sm_port *p = r->obj;
	struct wire_port_info info;

	if (!r->data || wire_port_info_decode(r->data, WIRE_SMP_DATA_BYTES, &info) < 0)
		return;
	/* the link went up or down or was reset, or another manager has configured
	 * the port */
	if (info.state != p->info.state || info.lid != p->lid || info.sm_lid != p->lid)
		sm_want(sm, SM_JOB_HEAVY);
}

void sm_self_begin(struct sm *sm)
{
	static const struct sm_path here;

	if (sm->subnet->self)
		sm_get(sm, &here, WIRE_SMP_PORT_INFO, sm->subnet->self->num, own_port_reply,
		       sm->subnet->self, 0);
}

bool sm_light_more(struct sm *sm)
{
	struct sm_node *n;

	if (sm->cursor.node >= sm->subnet->n_switches)
		return false;
	n = sm->subnet->switches[sm->cursor.node++];
	sm_get(sm, &n->path, WIRE_SMP_SWITCH_INFO, 0, light_reply, n, 0);
	return true;
}

/* For example a link that went down during configuration and is up again */
static bool has_unfinished_links(const struct sm *sm)
{
	sm_for_each_port(sm->subnet, p)
		if (p->known && p->peer && p->info.state >= WIRE_PORT_INIT &&
		    p->info.state < WIRE_PORT_ACTIVE)
			return true;
	return false;
}

/* The new model is configured, and is used for queries from now on. */
void sm_up_begin(struct sm *sm)
{
	struct sm_subnet *old = sm->subnet;
	struct sm_summary s;
	int err = 0;

	sm->subnet = sm->next;
	sm->next = NULL;
	sm->sweeps++;
	sm_groups_expel(sm);
	sm_notify_changes(sm, old);
	sm_subnet_destroy(old);
	if (sm->opt.lid_cache && sm->lids.changed)
		err = sm_lids_save(&sm->lids, sm->opt.lid_cache);
	if (err)
		sm_log(sm, SM_LOG_ERROR, "%s: %s: LIDs may change at a restart",
		       sm->opt.lid_cache, strerror(-err));
	sm_summarise(sm, &s);
	sm->incomplete = s.unanswered || has_unfinished_links(sm);
	sm->distrust = false;
	trace_sm_up(SM_TRACE_AT(sm), s.switches, s.cas, s.links, s.lid_max, s.unanswered);
	sm_log(sm, SM_LOG_INFO, "%u switches, %u adapters, %u links, LIDs up to %u",
	       s.switches, s.cas, s.links, s.lid_max);
	if (s.unanswered)
		sm_log(sm, SM_LOG_WARNING, "%u requests of this sweep were not answered",
		       s.unanswered);
	if (sm->opt.event)
		sm->opt.event(sm->opt.ctx,
			      s.unanswered ? SM_EVENT_SWEEP_ERRORS : SM_EVENT_SUBNET_UP);
}
