/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Reliable datagrams: which EE context carries which request, and which RD QP a packet is for
 * (src/transport/rd.c says what the two are). Only the midlayer's own consumers have them.
 *
 * The oldest request of an RD QP names an EE context. If that carries no other request, it takes
 * this one; otherwise the RD QP waits in line, so RD QPs that share an EE context take turns. The
 * EE context completes it in the middle of the transport's functions; eng_ee_turn() completes the
 * RD QP's request later, and begins the next one.
 */
#include <errno.h>

#include "engine/private.h"
#include "runtime/rt.h"
#include "transport/fast.h"

/** struct eng_ee - what an EE context has beside its connection */
struct eng_ee {
	struct list_head waiting; /* RD QPs whose oldest request names it */
	struct eng_qp *from;	  /* whose request it carries; NULL: that QP is gone */
	uint32_t to_qpn;	  /* of the request's destination */
	bool busy;		  /* it carries a request */
	bool done;		  /* which has ended with @status */
	bool resyncing;		  /* it begins anew after one that failed */
	uint8_t status;		  /* enum ibv_wc_status */
	struct eng_qp *to;	  /* for whom the packet is that it receives */
	struct eng_qp *receiver;  /* who has the receive that is in use; NULL */
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

/* 11.6.2: may the EE context carry requests of @qp? */
static enum ibv_wc_status check(const struct eng_qp *qp, const struct eng_qp *carrier)
{
	if (!carrier)
		return IBV_WC_INV_EECN_ERR;
	if (carrier->init.rdd != qp->init.rdd)
		return IBV_WC_LOC_RDD_VIOL_ERR;
	if (tp_qp_state(carrier->tp) != IBV_QPS_RTS)
		return IBV_WC_INV_EEC_STATE_ERR;
	return IBV_WC_SUCCESS;
}

static void carry(struct eng_qp *carrier, struct eng_qp *qp, struct tp_send_wr *wr)
{
	struct eng_ee *ee = carrier->ee;

	wr->flags |= IBV_SEND_SIGNALED;
	wr->remote_qkey = tp_qkey_sent(qp->init.qpn, tp_qp_attr(qp->tp)->qkey, wr->remote_qkey);
	wr->src_qpn = qp->init.qpn;
	ee->busy = true;
	ee->from = qp;
	ee->to_qpn = wr->remote_qpn;
	qp->rd_carrier = carrier;
	if (tp_qp_post_send(carrier->tp, wr)) { /* its queue is empty: the request is not sound */
		ee->done = true;
		ee->status = IBV_WC_LOC_EEC_OP_ERR;
		eng_ee_turn(carrier);
		return;
	}
	eng_qp_touch(carrier);
}

void eng_rd_advance(struct eng_qp *qp)
{
	while (!qp->rd_carrier && list_empty(&qp->rd_node) && tp_qp_held(qp->tp) == TP_HELD_READY) {
		struct tp_sge inline_data;
		struct eng_qp *carrier;
		struct tp_send_wr wr;
		enum ibv_wc_status status;

		tp_qp_held_request(qp->tp, &wr, &inline_data);
		carrier = ee_context_of(qp, wr.ee_context);
		status = check(qp, carrier);
		if (status != IBV_WC_SUCCESS)
			tp_qp_held_failed(qp->tp, status);
		else if (carrier->ee->busy || carrier->ee->resyncing)
			list_add_tail(&qp->rd_node, &carrier->ee->waiting);
		else
			carry(carrier, qp, &wr);
	}
}

/* The message that failed is abandoned: the responder is to expect the PSN behind it. */
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

static void end_request(struct eng_qp *qp)
{
	struct eng_ee *ee = qp->ee;
	struct eng_qp *from = ee->from;

	ee->busy = ee->done = false;
	ee->from = NULL;
	if (ee->status != IBV_WC_SUCCESS && tp_qp_state(qp->tp) == IBV_QPS_RTS)
		begin_resync(qp, from ? from->init.qpn : 0);
	if (!from)
		return;
	from->rd_carrier = NULL;
	if (ee->status == IBV_WC_SUCCESS)
		tp_qp_held_done(from->tp);
	else
		tp_qp_held_failed(from->tp, ee->status);
	eng_rd_advance(from);
}

/* the next in line; all of them, if the EE context carries nothing any more */
static void call_next(struct eng_qp *qp)
{
	struct eng_ee *ee = qp->ee;

	while (!list_empty(&ee->waiting) && !ee->busy && !ee->resyncing) {
		struct eng_qp *next = list_first_entry(&ee->waiting, struct eng_qp, rd_node);

		list_del(&next->rd_node);
		INIT_LIST_HEAD(&next->rd_node);
		eng_rd_advance(next);
	}
}

void eng_ee_turn(struct eng_qp *qp)
{
	struct eng_ee *ee = qp->ee;

	if (tp_qp_state(qp->tp) != IBV_QPS_RTS) {
		ee->resyncing = false;
		if (ee->busy && !ee->done) { /* reset */
			ee->done = true;
			ee->status = IBV_WC_INV_EEC_STATE_ERR;
		}
	}
	if (ee->done)
		end_request(qp);
	call_next(qp);
	eng_qp_touch(qp);
}

/* no EE context does anything for @qp any more */
static void leave_contexts(struct eng_qp *qp)
{
	struct eng_qp *other;

	list_for_each_entry(other, &qp->engine->all_qps, all_node) {
		if (!other->ee)
			continue;
		if (other->ee->from == qp)
			other->ee->from = NULL; /* its request ends when its memory is asked for */
		if (other->ee->receiver == qp)
			other->ee->receiver = NULL;
	}
	qp->rd_carrier = NULL;
	list_del(&qp->rd_node);
	INIT_LIST_HEAD(&qp->rd_node);
}

void eng_rd_leave(struct eng_qp *qp)
{
	struct eng_ee *ee = qp->ee;

	if (!ee) {
		leave_contexts(qp);
		return;
	}
	if (ee->busy) {
		ee->done = true;
		ee->status = IBV_WC_INV_EECN_ERR;
		end_request(qp);
	}
	ee->resyncing = false;
	call_next(qp);
}

/* --- packets --- */

/* 9.6.1.4, 9.7.4.1: the RD QP that a request is for; NULL: there is none for it */
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
	/* a duplicate is answered whatever became of its QP */
	if (is_message && !ee->to && psn_eq(pkt->bth.psn, tp_expected_psn(qp->tp)))
		tp_qp_refuse_rd(qp->tp, pkt);
	else
		tp_qp_receive(qp->tp, pkt, qp->engine->now);
	ee->to = NULL;
	eng_ee_turn(qp);
}

/* --- what the transport asks for --- */

static void *ee_mem(void *ctx, uint32_t key, uint64_t va, uint64_t *len, int access,
		    enum tp_key whose)
{
	struct eng_qp *qp = ctx;
	const struct eng_qp *user = whose == TP_KEY_SEND     ? qp->ee->from :
				    whose == TP_KEY_RECEIVE ? qp->ee->receiver :
							      qp->ee->to;

	/* a response that is made later was checked with its request */
	if (whose == TP_KEY_REMOTE)
		return eng_mem_remote(qp, user ? user->init.pd : eng_mr_pd(qp->engine, key), key,
				      va, len, access);
	return user ? eng_mem_run(qp->engine, user->init.pd, key, va, len, access) : NULL;
}

static bool ee_recv_get(void *ctx, const struct wire_packet *pkt, struct tp_recv_wr *wr)
{
	struct eng_ee *ee = ((struct eng_qp *)ctx)->ee;

	if (!ee->to || !eng_rq_pop(&ee->to->rq, wr))
		return false;
	ee->receiver = ee->to;
	return true;
}

static bool ee_recv_flush(void *ctx, struct tp_recv_wr *wr)
{
	return false; /* receives belong to the RD QPs */
}

static void ee_complete_send(void *ctx, uint64_t wr_id, uint8_t status, uint8_t opcode,
			     uint32_t length_bytes)
{
	struct eng_ee *ee = ((struct eng_qp *)ctx)->ee;

	ee->done = true;
	ee->status = status;
}

static void ee_complete_own(void *ctx, uint8_t status)
{
	((struct eng_qp *)ctx)->ee->resyncing = false;
}

/* 10.3.1: an error of its own receive ends the RD QP, one of its peer does not */
static void ee_complete_recv(void *ctx, const struct tp_wc *wc)
{
	struct eng_qp *qp = ctx, *to = qp->ee->receiver;
	struct tp_wc out = *wc;

	qp->ee->receiver = NULL;
	if (!to)
		return;
	out.pkey_index = tp_qp_attr(qp->tp)->pkey_index;
	eng_complete_recv(to, &out);
	if (wc->status == IBV_WC_LOC_LEN_ERR || wc->status == IBV_WC_LOC_PROT_ERR)
		to->spoilt = qp->engine->spoilt = true;
}

static void ee_event(void *ctx, enum tp_event event)
{
	eng_qp_event(ctx, event);
}

const struct tp_ops eng_ee_ops = {
	.mem = ee_mem,
	.recv_get = ee_recv_get,
	.recv_flush = ee_recv_flush,
	.complete_send = ee_complete_send,
	.complete_own = ee_complete_own,
	.complete_recv = ee_complete_recv,
	.event = ee_event,
};
