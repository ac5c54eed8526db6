/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * XRC targets that several programs share (abi/target.h). Each program has a responder of such
 * a target in its own engine, for the messages to its own SRQs. Only the one that softibd has
 * given the state of the connection receives packets. It gives the state back when it has sent
 * all that it owes. The messages travel in the rings of packets, in order with the packets.
 *
 * An engine that is told to receive for a target that its program has not opened makes a QP
 * without a handle. It exists until softibd says that the target is destroyed.
 */
#include "abi/target.h"

#include <string.h>

#include "engine/private.h"
#include "runtime/rt.h"

static struct eng_qp *find(struct engine *e, uint32_t qpn)
{
	struct eng_qp *qp = qpn >= 2 ? eng_qp_find(e, qpn & 0xffffff, 0) : NULL;

	return qp && eng_is_xrc_target(qp) ? qp : NULL;
}

/* --- messages from softibd --- */

static struct eng_qp *make(struct engine *e, const struct abi_target_message *m)
{
	const struct eng_qp_init init = {
		.qpn = m->qpn, .type = IBV_QPT_XRC_RECV, .xrcd = m->xrcd};
	struct eng_qp *qp;

	if (m->qpn < 2 || eng_qp_prepare(e, &init, &qp))
		return NULL;
	if (eng_qp_enter(qp)) {
		eng_qp_free(qp);
		return NULL;
	}
	qp->handles = 0;
	return qp;
}

static void connect_to_peer(struct eng_qp *qp, const struct ibv_qp_attr *target)
{
	static const struct {
		enum ibv_qp_state state;
		int mask;
	} steps[] = {
		{IBV_QPS_RESET, 0},
		{IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
		{IBV_QPS_RTR, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER},
		{IBV_QPS_RTS, 0},
	};
	/* what a target in RTR receives raises an event, of one in RTS it does not */
	unsigned num_steps = ARRAY_SIZE(steps) - (target->qp_state == IBV_QPS_RTR);
	struct ibv_qp_attr attr = *target;
	bool revoked;

	for (unsigned i = 0; i < num_steps; i++) {
		attr.qp_state = steps[i].state;
		if (eng_qp_set(qp, &attr, steps[i].mask | IBV_QP_STATE, &revoked))
			return;
	}
}

static void take(struct engine *e, const struct abi_target_message *m)
{
	const struct tp_responder_state state = {
		psn(m->state.epsn), m->state.msn, m->state.nak_sent, m->state.established};
	struct eng_qp *qp = find(e, m->qpn);
	bool is_new = m->is_new || !qp;

	if (!qp)
		qp = make(e, m);
	if (!qp)
		return;
	qp->is_shared = true;
	if (is_new)
		connect_to_peer(qp, &m->attr);
	tp_qp_resume_responder(qp->tp, &state, m->state.is_guess && !is_new);
}

static void tell(struct eng_qp *qp)
{
	qp->is_shared = true;
	if (list_empty(&qp->tell_node))
		list_add_tail(&qp->tell_node, &qp->engine->tellers);
}

static void release(struct eng_qp *qp)
{
	qp->to_release = true;
	eng_flush_acks(qp->engine, true);
	tell(qp);
}

static void fail(struct eng_qp *qp)
{
	const struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	bool revoked;

	eng_qp_set(qp, &attr, IBV_QP_STATE, &revoked);
}

static void forget(struct eng_qp *qp)
{
	if (qp->handles)
		return;
	eng_qp_leave(qp);
	eng_qp_free(qp);
}

void eng_target_message(struct engine *e, const void *bytes, size_t len)
{
	struct abi_target_message m;
	struct eng_qp *qp;

	if (len != sizeof(m)) {
		e->stats.rx_malformed++;
		return;
	}
	memcpy(&m, bytes, sizeof(m));
	if (m.qpn > WIRE_QPN_MULTICAST) { /* the highest number of 24 bits */
		e->stats.rx_malformed++;
		return;
	}
	qp = find(e, m.qpn);
	if (m.kind == ABI_TARGET_TAKE)
		take(e, &m);
	else if (!qp)
		return;
	else if (m.kind == ABI_TARGET_RELEASE)
		release(qp);
	else if (m.kind == ABI_TARGET_SHARED)
		qp->is_shared = true;
	else if (m.kind == ABI_TARGET_FAILED)
		fail(qp);
	else if (m.kind == ABI_TARGET_FORGET)
		forget(qp);
}

/* --- messages to softibd --- */

void eng_target_event(struct eng_qp *qp, enum ibv_event_type type)
{
	qp->events |= 1u << type;
	tell(qp);
}

/* Return: false: there is no room */
static bool send(struct engine *e, const struct abi_target_message *m)
{
	void *to = e->cfg.link_ops->reserve(e->cfg.link, NULL, 0, sizeof(*m));

	if (!to)
		return false;
	memcpy(to, m, sizeof(*m));
	e->cfg.link_ops->commit(e->cfg.link, 0, sizeof(*m));
	e->put_off = true;
	e->cfg.link_ops->flush(e->cfg.link);
	return true;
}

/* Return: true: all messages were sent */
static bool tell_all(struct engine *e, struct eng_qp *qp)
{
	struct abi_target_message m = {.mark = ABI_TARGET_MARK,
				       .kind = ABI_TARGET_EVENT,
				       .qpn = qp->init.qpn,
				       .failed = tp_qp_state(qp->tp) == IBV_QPS_ERR};
	struct tp_responder_state state;

	while (qp->events) {
		m.event = (uint32_t)__builtin_ctz(qp->events);
		if (!send(e, &m))
			return false;
		qp->events &= qp->events - 1;
	}
	if (!qp->to_release)
		return true;
	if (!tp_qp_responder(qp->tp, &state) || qp->held_bytes)
		return false;
	m.kind = ABI_TARGET_RELEASED;
	m.state = (struct abi_target_state){.epsn = state.epsn.v,
					    .msn = state.msn,
					    .nak_sent = state.nak_sent,
					    .established = state.established};
	qp->to_release = !send(e, &m);
	return !qp->to_release;
}

void eng_targets_tell(struct engine *e)
{
	struct eng_qp *qp, *tmp;

	list_for_each_entry_safe(qp, tmp, &e->tellers, tell_node)
		if (tell_all(e, qp))
			list_del(&qp->tell_node);
}

/* --- the program's handles --- */

int eng_target_open(struct engine *e, const struct eng_qp_init *init, struct eng_qp **qp_out)
{
	struct eng_qp *qp;
	int ret = 0;

	eng_lock(e);
	qp = find(e, init->qpn);
	if (qp) {
		qp->handles++;
		qp->init.ctx = init->ctx;
	} else {
		ret = eng_qp_prepare(e, init, &qp);
		if (!ret)
			ret = eng_qp_enter(qp);
	}
	if (!ret) {
		qp->is_shared = true;
		*qp_out = qp;
	}
	eng_unlock(e);
	return ret;
}

bool eng_target_is_shared(const struct eng_qp *qp)
{
	bool shared;

	eng_lock(qp->engine);
	shared = qp->is_shared;
	eng_unlock(qp->engine);
	return shared;
}

void eng_target_close(struct eng_qp *qp, bool lives)
{
	bool goes;

	eng_lock(qp->engine);
	goes = !--qp->handles && !lives;
	if (goes)
		eng_qp_leave(qp);
	qp->is_shared |= lives;
	eng_unlock(qp->engine);
	if (goes)
		eng_qp_free(qp);
}
