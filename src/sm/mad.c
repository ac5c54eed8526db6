/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Calls: requests that expect an answer. Up to a window of SMPs may be in flight, and
 * beside them up to a window of reports. Each call has a slot, whose number is the low half of its TID (13.4.6.4; the port
 * assigns the high half). All time-outs are equal, so the list of calls in flight is
 * sorted by deadline and one timer suffices.
 *
 * A window adapts to the fabric, since agents drop MADs that arrive too fast
 * (13.4.6.2): it is halved when answers are missing (once for a burst of losses) and
 * grows by one for every window of answers, up to the user's limit.
 *
 * A missing answer is reported by the port, or by the manager's own timer, which
 * expires a little later.
 */
#include "sm/internal.h"
#include "sm/trace.h"

#include <string.h>

#define GRACE_NS (100 * NSEC_PER_MSEC)
#define SLOTS 1024u /* two windows of the largest size */
#define WINDOW_MIN 4u

static void timed_out(struct rt_timer *t);

static void window_init(struct sm_call_window *w, uint32_t size)
{
	INIT_LIST_HEAD(&w->queue);
	w->size = size;
}

int sm_calls_init(struct sm *sm)
{
	struct sm_calls *c = &sm->calls;

	window_init(&c->smps, sm->opt.window);
	window_init(&c->reports, sm->opt.window);
	INIT_LIST_HEAD(&c->flight);
	rt_timer_init(sm->rt, &c->timer, timed_out);
	c->next_tid = rt_random(sm->rt); /* no program can guess the next one */
	c->by_slot = rt_zalloc(SLOTS * sizeof(*c->by_slot));
	return c->by_slot ? 0 : -ENOMEM;
}

void sm_calls_close(struct sm *sm)
{
	struct sm_calls *c = &sm->calls;
	struct sm_call *call, *tmp;

	rt_timer_disarm(&c->timer);
	list_splice_tail_init(&c->smps.queue, &c->flight);
	list_splice_tail_init(&c->reports.queue, &c->flight);
	list_for_each_entry_safe(call, tmp, &c->flight, node) {
		list_del(&call->node);
		rt_free(call);
	}
	rt_free(c->by_slot);
	c->by_slot = NULL;
}

static void arm_timer(struct sm *sm)
{
	struct sm_calls *c = &sm->calls;

	if (list_empty(&c->flight))
		rt_timer_disarm(&c->timer);
	else
		rt_timer_arm(&c->timer,
			     list_first_entry(&c->flight, struct sm_call, node)->deadline);
}

static struct sm_call_window *window_of(struct sm *sm, const struct sm_call *call)
{
	return call->agent == SM_AGENT_SA ? &sm->calls.reports : &sm->calls.smps;
}

bool sm_calls_are_done(const struct sm *sm)
{
	return !sm->calls.smps.n_flight && list_empty(&sm->calls.smps.queue);
}

static bool has_room(const struct sm_call_window *w)
{
	return w->n_flight < w->size;
}

bool sm_calls_have_room(const struct sm *sm)
{
	return has_room(&sm->calls.smps);
}

/* Send a request for the first time, or again. */
static void transmit(struct sm *sm, struct sm_call *call)
{
	struct sm_calls *c = &sm->calls;

	call->tries++;
	call->deadline = mono_add(rt_now(sm->rt),
				  sm->opt.timeout_ms * NSEC_PER_MSEC + GRACE_NS);
	list_add_tail(&call->node, &c->flight);
	/* a send that fails is treated like a packet that was lost */
	sm->io->send(sm->io, call->agent, &call->to, call->mad, WIRE_MAD_BYTES,
		     sm->opt.timeout_ms);
	arm_timer(sm);
}

static void launch(struct sm *sm, struct sm_call_window *w)
{
	struct sm_calls *c = &sm->calls;

	while (!list_empty(&w->queue) && has_room(w)) {
		struct sm_call *call = list_first_entry(&w->queue, struct sm_call, node);

		while (c->by_slot[c->next_tid % SLOTS])
			c->next_tid++;
		call->tid = c->next_tid++;
		put_be64(call->mad + 8, call->tid);
		c->by_slot[call->tid % SLOTS] = call;
		w->n_flight++;
		list_del(&call->node);
		transmit(sm, call);
	}
}

void sm_calls_launch(struct sm *sm)
{
	launch(sm, &sm->calls.smps);
	launch(sm, &sm->calls.reports);
}

static void window_grow(struct sm *sm, struct sm_call_window *w)
{
	if (++w->answered < w->size || w->size >= sm->opt.window)
		return;
	w->answered = 0;
	w->size++;
}

static void window_shrink(struct sm *sm, struct sm_call_window *w)
{
	if (mono_before(rt_now(sm->rt), w->shrunk_until))
		return;
	w->shrunk_until = mono_add(rt_now(sm->rt), sm->opt.timeout_ms * NSEC_PER_MSEC);
	if (w->size / 2 >= WINDOW_MIN)
		w->size /= 2;
	w->answered = 0;
}

static void finish(struct sm *sm, struct sm_call *call, int status, const uint8_t *mad)
{
	struct sm_call_window *w = window_of(sm, call);
	bool smp = w == &sm->calls.smps;
	struct sm_reply r = {
		.status = status,
		.mad = mad,
		.data = mad ? mad + (smp ? WIRE_SMP_DATA_OFFSET : WIRE_SA_DATA_OFFSET) : NULL,
		.obj = call->obj,
		.arg = call->arg,
		.mod = call->mod,
	};

	list_del(&call->node);
	sm->calls.by_slot[call->tid % SLOTS] = NULL;
	w->n_flight--;
	if (status != -ETIMEDOUT)
		window_grow(sm, w);
	else if (smp)
		sm->unanswered++;
	if (call->fn)
		call->fn(sm, &r);
	rt_free(call);
	arm_timer(sm);
	rt_work_queue(sm->rt, &sm->work);
}

static void give_up_or_retry(struct sm *sm, struct sm_call *call)
{
	window_shrink(sm, window_of(sm, call));
	trace_sm_timeout(SM_TRACE_AT(sm), call->mad[3], wire_mad_attr_id(call->mad), call->mod,
			 call->tries > sm->opt.retries ? 0 : sm->opt.retries + 1 - call->tries);
	if (call->tries > sm->opt.retries) {
		finish(sm, call, -ETIMEDOUT, NULL);
		return;
	}
	list_del(&call->node);
	transmit(sm, call);
}

static void timed_out(struct rt_timer *t)
{
	struct sm *sm = container_of(t, struct sm, calls.timer);
	struct sm_calls *c = &sm->calls;

	while (!list_empty(&c->flight)) {
		struct sm_call *call = list_first_entry(&c->flight, struct sm_call, node);

		if (mono_before(rt_now(sm->rt), call->deadline))
			break;
		give_up_or_retry(sm, call);
	}
	arm_timer(sm);
}

void sm_calls_answer(struct sm *sm, int status, const void *mad, size_t len)
{
	uint32_t tid = (uint32_t)get_be64((const uint8_t *)mad + 8);
	struct sm_call *call = sm->calls.by_slot[tid % SLOTS];
	struct wire_mad h;

	if (!call || call->tid != tid || wire_mad_decode(mad, len, &h) < 0)
		return; /* the answer is too late */
	if (status)
		give_up_or_retry(sm, call);
	else if (len >= WIRE_MAD_BYTES)
		finish(sm, call, h.status & ~WIRE_STATUS_DIRECTION, mad);
}

static void enqueue(struct sm *sm, struct sm_call *call)
{
	list_add_tail(&call->node, &window_of(sm, call)->queue);
	rt_work_queue(sm->rt, &sm->work);
}

static struct sm_call *make_smp(struct sm *sm, const struct sm_path *path, uint8_t method,
				uint16_t attr, uint32_t mod)
{
	struct sm_call *call = rt_zalloc(sizeof(*call));
	struct wire_smp smp = {
		.mad = {.base_version = WIRE_MAD_BASE_VERSION,
			.mgmt_class = WIRE_CLASS_SM_DIRECT,
			.class_version = WIRE_SMP_CLASS_VERSION,
			.method = method, .attr_id = attr, .attr_mod = mod},
		.mkey = sm->opt.mkey,
		.hop_count = path->hops,
		.dr_slid = 0xffff, .dr_dlid = 0xffff, /* directed all the way */
	};

	if (!call) {
		sm->unanswered++;
		return NULL;
	}
	memcpy(smp.initial_path, path->out, sizeof(smp.initial_path));
	wire_smp_encode(&smp, call->mad);
	call->agent = SM_AGENT_DIRECT;
	call->to.lid = 0xffff;
	call->mod = mod;
	return call;
}

void sm_get(struct sm *sm, const struct sm_path *path, uint16_t attr, uint32_t mod,
	    sm_reply_fn fn, void *obj, uint32_t arg)
{
	struct sm_call *call = make_smp(sm, path, WIRE_METHOD_GET, attr, mod);

	if (!call)
		return;
	call->fn = fn;
	call->obj = obj;
	call->arg = arg;
	enqueue(sm, call);
}

void sm_set(struct sm *sm, const struct sm_path *path, uint16_t attr, uint32_t mod,
	    const struct wire_codec *codec, const void *value, sm_reply_fn fn, void *obj,
	    uint32_t arg)
{
	struct sm_call *call = make_smp(sm, path, WIRE_METHOD_SET, attr, mod);

	if (!call)
		return;
	call->fn = fn;
	call->obj = obj;
	call->arg = arg;
	if (wire_fields_encode(codec, value, call->mad + WIRE_SMP_DATA_OFFSET) < 0) {
		sm_log(sm, SM_LOG_ERROR, "cannot encode %s", codec->name);
		rt_free(call);
		return;
	}
	enqueue(sm, call);
}

void sm_call_report(struct sm *sm, const struct sm_addr *to, const void *mad, sm_reply_fn fn,
		    uint32_t arg)
{
	struct sm_call *call = rt_zalloc(sizeof(*call));

	if (!call)
		return;
	call->fn = fn;
	call->arg = arg;
	call->agent = SM_AGENT_SA;
	call->to = *to;
	memcpy(call->mad, mad, WIRE_MAD_BYTES);
	enqueue(sm, call);
}

void sm_respond(struct sm *sm, enum sm_agent agent, const struct sm_addr *to,
		const void *mad, size_t len)
{
	int err = sm->io->send(sm->io, agent, to, mad, len, 0);

	if (err)
		sm_log(sm, SM_LOG_WARNING, "cannot send a response to LID %u: %s", to->lid,
		       strerror(-err));
}
