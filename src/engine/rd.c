/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Reliable datagrams: the assignment of requests to EE contexts, and of packets to RD QPs.
 * src/transport/rd.c describes both objects. Only consumers of the midlayer can have them.
 *
 * The oldest request of an RD QP names an EE context. An idle EE context sends the request at once.
 * Otherwise the RD QP waits in the queue of the EE context, so that RD QPs which share an EE
 * context take turns. The transport completes the request of the EE context within one of its own
 * functions, where no other request may begin. Therefore eng_ee_turn() completes the request of the
 * RD QP later, and begins the next one.
 *
 * States of the oldest request of an RD QP:
 *   waiting	in the queue of its EE context (rd_node), or until its own QP is in RTS
 *   carried	the EE context rd_carrier is sending it
 *   suspended	rd_begun is set and rd_carrier is NULL: the peer had no receive posted, and the
 *		request waits until rd_resume, while the EE context carries requests of other QPs
 */
#include <errno.h>
#include <string.h>

#include "engine/private.h"
#include "runtime/rt.h"
#include "transport/fast.h"

/** struct eng_ee - the state of an EE context beside that of its connection */
struct eng_ee {
	struct list_head waiting; /* RD QPs whose oldest request names it */
	struct eng_qp *from;	  /* the RD QP whose request it carries; NULL: that QP is gone */
	uint32_t to_qpn;	  /* the RD QP that is the destination of that request */
	bool busy;		  /* it carries a request */
	bool done;		  /* the request has ended, with @status */
	bool suspended;		  /* the request is interrupted: the peer had no receive for it */
	bool resyncing;		  /* RESYNC is under way, after a request that failed or was suspended */
	uint8_t status;		  /* enum ibv_wc_status */
	struct eng_qp *to;	  /* the RD QP that the packet being received is for; NULL: none */
	struct eng_qp *receiver;  /* the RD QP whose receive the current message fills; NULL: none */
};

int eng_ee_init(struct eng_qp *qp)
{
	qp->ee = rt_zalloc(sizeof(*qp->ee));
	if (!qp->ee)
		return -ENOMEM;
	INIT_LIST_HEAD(&qp->ee->waiting);
	return 0;
}

/* --- requests --- */

static struct eng_qp *ee_context_of(const struct eng_qp *qp, uint32_t number)
{
	struct eng_qp *carrier = eng_table_get(&qp->engine->qps, number);

	return carrier && carrier->ee ? carrier : NULL;
}

/* Does the EE context carry requests, now (RTS) or after a pause (SQD)? */
static bool is_alive(const struct eng_qp *carrier)
{
	enum ibv_qp_state state = tp_qp_state(carrier->tp);

	return state == IBV_QPS_RTS || state == IBV_QPS_SQD;
}

/* Is the EE context unable to begin a request now? A failed message leaves nothing for a drain (SQD)
 * to wait for, so that a pending RESYNC is sent only after the pause. */
static bool is_occupied(const struct eng_qp *carrier)
{
	return carrier->ee->busy || carrier->ee->resyncing ||
	       tp_qp_state(carrier->tp) != IBV_QPS_RTS;
}

/* 11.6.2: may the EE context carry requests of @qp? */
static enum ibv_wc_status check(const struct eng_qp *qp, const struct eng_qp *carrier)
{
	if (!carrier)
		return IBV_WC_INV_EECN_ERR;
	if (carrier->init.rdd != qp->init.rdd)
		return IBV_WC_LOC_RDD_VIOL_ERR;
	return is_alive(carrier) ? IBV_WC_SUCCESS : IBV_WC_INV_EEC_STATE_ERR;
}

static void carry(struct eng_qp *carrier, struct eng_qp *qp, struct tp_send_wr *wr)
{
	struct eng_ee *ee = carrier->ee;

	tp_qp_held_begin(qp->tp);
	qp->rd_begun = true;
	wr->flags |= IBV_SEND_SIGNALED;
	wr->remote_qkey = tp_qkey_sent(qp->init.qpn, tp_qp_attr(qp->tp)->qkey, wr->remote_qkey);
	wr->src_qpn = qp->init.qpn;
	ee->busy = true;
	ee->from = qp;
	ee->to_qpn = wr->remote_qpn;
	qp->rd_carrier = carrier;
	if (tp_qp_post_send(carrier->tp, wr)) { /* the queue is empty, so the request is invalid */
		ee->done = true;
		ee->status = IBV_WC_LOC_EEC_OP_ERR;
		eng_ee_turn(carrier);
		return;
	}
	eng_qp_touch(carrier);
}

/* May the oldest request of @qp be handed to an EE context now? A suspended request waits until
 * rd_resume. A QP in SQD begins no request, but continues one that it has begun. */
static bool has_turn(struct eng_qp *qp)
{
	if (qp->rd_carrier || !list_empty(&qp->rd_node))
		return false;
	if (!qp->rd_begun)
		return tp_qp_held(qp->tp) == TP_HELD_READY;
	if (!mono_before(qp->engine->now, qp->rd_resume))
		return true;
	eng_note_expiry(qp->engine, qp->rd_resume);
	return false;
}

/* The oldest request of @qp has ended, or was discarded. */
static void forget_request(struct eng_qp *qp)
{
	qp->rd_carrier = NULL;
	qp->rd_begun = false;
	qp->rd_rnrs = 0;
}

void eng_rd_advance(struct eng_qp *qp)
{
	while (has_turn(qp)) {
		struct tp_sge inline_data;
		struct eng_qp *carrier;
		struct tp_send_wr wr;
		enum ibv_wc_status status;

		tp_qp_held_request(qp->tp, &wr, &inline_data);
		carrier = ee_context_of(qp, wr.ee_context);
		status = check(qp, carrier);
		if (status != IBV_WC_SUCCESS) {
			forget_request(qp);
			tp_qp_held_failed(qp->tp, status);
		} else if (is_occupied(carrier)) {
			list_add_tail(&qp->rd_node, &carrier->ee->waiting);
		} else {
			carry(carrier, qp, &wr);
		}
	}
}

/* A message was abandoned. RESYNC makes the responder expect the PSN that follows the message. */
static void begin_resync(struct eng_qp *qp, uint32_t src_qpn)
{
	const struct tp_send_wr wr = {
		.opcode = TP_WR_RESYNC,
		.flags = TP_SEND_OWN | IBV_SEND_SIGNALED,
		.remote_qpn = qp->ee->to_qpn,
		.src_qpn = src_qpn,
	};

	qp->ee->resyncing = !tp_qp_post_send(qp->tp, &wr);
}

static void call_next(struct eng_ee *ee)
{
	struct eng_qp *next = list_first_entry(&ee->waiting, struct eng_qp, rd_node);

	list_del(&next->rd_node);
	eng_rd_advance(next);
}

/* Let the waiting RD QPs advance, until one of them occupies the EE context. If the EE context carries
 * no requests any more, all of them advance, and their requests fail. */
static void call_waiting(struct eng_qp *qp)
{
	while (!list_empty(&qp->ee->waiting) && (!is_occupied(qp) || !is_alive(qp)))
		call_next(qp->ee);
}

static void end_request(struct eng_qp *qp)
{
	struct eng_ee *ee = qp->ee;
	struct eng_qp *from = ee->from;
	bool suspended = ee->suspended;

	ee->busy = ee->done = ee->suspended = false;
	ee->from = NULL;
	if (ee->status != IBV_WC_SUCCESS && is_alive(qp))
		begin_resync(qp, from ? from->init.qpn : 0);
	if (!from)
		return;
	if (suspended && is_alive(qp)) {
		from->rd_carrier = NULL;
	} else {
		forget_request(from);
		if (ee->status == IBV_WC_SUCCESS)
			tp_qp_held_done(from->tp);
		else
			tp_qp_held_failed(from->tp, ee->status);
	}
	call_waiting(qp); /* they have waited longer than the next request of @from */
	eng_rd_advance(from);
}

void eng_ee_turn(struct eng_qp *qp)
{
	struct eng_ee *ee = qp->ee;

	if (!is_alive(qp)) {
		ee->resyncing = false;
		if (ee->busy && !ee->done) { /* the EE context was reset */
			ee->done = true;
			ee->status = IBV_WC_INV_EEC_STATE_ERR;
		}
	}
	if (ee->done)
		end_request(qp);
	call_waiting(qp);
	eng_qp_touch(qp);
}

/* Detach @qp from all EE contexts. In the error state, a receive of @qp that a message had begun to
 * fill is flushed, as its other receives are. */
static void leave_contexts(struct eng_qp *qp)
{
	struct eng_qp *other;

	list_for_each_entry(other, &qp->engine->all_qps, all_node) {
		if (!other->ee)
			continue;
		if (other->ee->from == qp)
			other->ee->from = NULL; /* ee_mem() finds no memory for its request, which ends it */
		if (other->ee->receiver == qp && tp_qp_state(qp->tp) == IBV_QPS_ERR)
			tp_qp_drop_receive(other->tp, IBV_WC_WR_FLUSH_ERR);
		if (other->ee->receiver == qp)
			other->ee->receiver = NULL;
	}
	forget_request(qp);
	list_del(&qp->rd_node);
}

void eng_rd_reset(struct eng_qp *qp)
{
	if (qp->ee) /* the rest of the message that it is receiving will not come */
		tp_qp_drop_receive(qp->tp, IBV_WC_REM_ABORT_ERR);
	else
		leave_contexts(qp);
}

void eng_rd_leave(struct eng_qp *qp)
{
	struct eng_ee *ee = qp->ee;

	eng_rd_reset(qp);
	if (!ee)
		return;
	if (ee->busy) {
		ee->done = true;
		ee->status = IBV_WC_INV_EECN_ERR;
		end_request(qp);
	}
	ee->resyncing = false;
	while (!list_empty(&ee->waiting))
		call_next(ee);
}

/* --- packets --- */

/* Return: the RD QP that may receive a request (9.6.1.4, 9.7.4.1); NULL: there is none */
static struct eng_qp *destination(const struct eng_qp *qp, const struct wire_packet *pkt)
{
	struct eng_qp *to = eng_table_get(&qp->engine->qps, pkt->bth.dest_qpn);

	if (!to || !to->init.is_rd || to->init.rdd != qp->init.rdd ||
	    !tp_state_receives(tp_qp_state(to->tp)) ||
	    !tp_qkey_passes(to->init.qpn, tp_qp_attr(to->tp)->qkey, pkt->deth.qkey))
		return NULL;
	return to;
}

void eng_ee_receive(struct eng_qp *qp, const struct wire_packet *pkt)
{
	bool is_request = !(wire_opcodes[pkt->bth.opcode].flags & WIRE_IS_RESPONSE);
	bool is_message = is_request && pkt->bth.opcode != (WIRE_RD | WIRE_RESYNC);
	struct eng_ee *ee = qp->ee;

	ee->to = is_message ? destination(qp, pkt) : NULL;
	if (ee->to)
		tp_qp_attr(qp->tp)->qp_access_flags = tp_qp_attr(ee->to->tp)->qp_access_flags;
	/* A duplicate is answered even if its destination QP is gone: it was received before. */
	if (is_message && !ee->to && psn_eq(pkt->bth.psn, tp_expected_psn(qp->tp)))
		tp_qp_refuse_rd(qp->tp, pkt);
	else
		tp_qp_receive(qp->tp, pkt, qp->engine->now);
	ee->to = NULL;
	eng_ee_turn(qp);
}

/* --- callbacks of the transport (struct tp_ops) --- */

static void *ee_mem(void *ctx, uint32_t key, uint64_t va, uint64_t *len, int access,
		    enum tp_key whose)
{
	struct eng_qp *qp = ctx;
	const struct eng_qp *user = whose == TP_KEY_REMOTE  ? qp->ee->to :
				    whose == TP_KEY_RECEIVE ? qp->ee->receiver :
							      qp->ee->from;

	/* A response may be generated after its RD QP is gone; its request passed the check. */
	if (whose == TP_KEY_REMOTE)
		return eng_mem_remote(qp, user ? user->init.pd : eng_mr_pd(qp->engine, key), key,
				      va, len, access);
	if (!user)
		return NULL;
	return eng_mem_run(qp, whose == TP_KEY_RECEIVE ? user->recv_rq->pd : user->init.pd, key,
			   va, len, access, whose);
}

static bool ee_recv_get(void *ctx, const struct wire_packet *pkt, struct tp_recv_wr *wr)
{
	struct eng_qp *qp = ctx;
	struct eng_ee *ee = qp->ee;

	if (!ee->to || !eng_tp_ops.recv_get(ee->to, pkt, wr))
		return false;
	/* The RD QP receives from other EE contexts meanwhile, which reuse the place of these SGEs. */
	memcpy(qp->srq_sge, wr->sge, wr->num_sge * sizeof(*wr->sge));
	wr->sge = qp->srq_sge;
	ee->receiver = ee->to;
	return true;
}

static bool ee_recv_flush(void *ctx, struct tp_recv_wr *wr)
{
	return false; /* an EE context has no receives: they belong to the RD QPs */
}

static void ee_complete_send(void *ctx, uint64_t wr_id, uint8_t status, uint8_t opcode,
			     uint32_t length_bytes)
{
	struct eng_ee *ee = ((struct eng_qp *)ctx)->ee;

	ee->done = true;
	ee->status = status;
}

static bool ee_suspend(void *ctx, mono_t until)
{
	struct eng_qp *qp = ctx, *from = qp->ee->from;
	unsigned most = tp_qp_attr(qp->tp)->rnr_retry;

	if (!from || (most != 7 && from->rd_rnrs == most))
		return false;
	from->rd_rnrs += most != 7;
	from->rd_resume = until;
	qp->ee->suspended = true;
	return true;
}

static void ee_complete_own(void *ctx, uint8_t status)
{
	((struct eng_qp *)ctx)->ee->resyncing = false;
}

/* An error of the receive itself moves the RD QP to the error state, an error of its peer does not
 * (10.3.1). */
static void ee_complete_recv(void *ctx, const struct tp_wc *wc)
{
	struct eng_qp *qp = ctx, *to = qp->ee->receiver;
	struct tp_wc out = *wc;

	qp->ee->receiver = NULL;
	if (!to)
		return;
	out.pkey_index = tp_qp_attr(qp->tp)->pkey_index;
	out.ee_context = qp->init.qpn;
	eng_complete_recv(to, &out);
	if (wc->status == IBV_WC_LOC_LEN_ERR || wc->status == IBV_WC_LOC_PROT_ERR)
		to->spoilt = qp->engine->spoilt = true;
}

const struct tp_ops eng_ee_ops = {
	.mem = ee_mem,
	.recv_get = ee_recv_get,
	.recv_flush = ee_recv_flush,
	.complete_send = ee_complete_send,
	.complete_own = ee_complete_own,
	.complete_recv = ee_complete_recv,
	.event = eng_qp_event,
	.path_failed = eng_path_failed,
	.suspend = ee_suspend,
	.count = eng_qp_count,
};
