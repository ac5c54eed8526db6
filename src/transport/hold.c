/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Held send queues. While a send queue is held, the requests that have begun are finished, and no
 * other one begins. The engine performs the waiting requests in another way (through a window,
 * docs/WINDOWS.md), or releases the queue, and they are sent as packets. A request that was performed
 * in another way uses no PSN, because the peer's transport does not know of it. The send queue of an
 * RD QP is always held: an EE context carries its requests (rd.c).
 */
#include "transport/qp.h"

bool tp_qp_has_unbegun(const struct tp_qp *qp)
{
	return qp->sq.head != qp->sq.fresh && qp->sq.tail != qp->sq.fresh;
}

bool tp_qp_hold(struct tp_qp *qp)
{
	struct tp_sq *sq = &qp->sq;

	if (qp->state != IBV_QPS_RTS || sq->stop)
		return false;
	sq->fast_left = 0;
	sq->stop = TP_STOP_HOLD;
	sq->end = sq->fresh;
	return true;
}

enum tp_held tp_qp_held(const struct tp_qp *qp)
{
	const struct tp_sq *sq = &qp->sq;

	if (sq->stop != TP_STOP_HOLD)
		return TP_HELD_NOT;
	if (sq->tail != sq->end || sq->held_begun)
		return TP_HELD_DRAINING;
	return sq->tail == sq->head ? TP_HELD_EMPTY : TP_HELD_READY;
}

void tp_qp_held_request(const struct tp_qp *qp, struct tp_send_wr *wr, struct tp_sge *inline_data)
{
	uint32_t index = qp->sq.tail;
	const struct tp_sqe *sqe = tp_sqe(qp, index);

	*wr = (struct tp_send_wr){
		.wr_id = sqe->wr_id,
		.opcode = sqe->opcode,
		.flags = sqe->flags & (uint16_t)~TP_SQE_KIND,
		.num_sge = sqe->num_sge,
		.remote_addr = sqe->remote_addr,
		.rkey = sqe->rkey,
		.compare_add = sqe->compare_add,
		.swap = sqe->swap,
		.imm_or_rkey = sqe->imm_or_rkey,
		.length_bytes = sqe->length_bytes,
		.sge = tp_sges(qp, index),
	};
	if (qp->can & TP_ADDRESSED) {
		const struct tp_destination *to = &qp->sq.destinations[index & qp->sq.mask];

		wr->remote_qpn = to->qpn;
		wr->remote_qkey = to->qkey;
		wr->ee_context = to->ee_context;
	}
	if (!(sqe->flags & IBV_SEND_INLINE))
		return;
	*inline_data = (struct tp_sge){.addr = (uintptr_t)tp_data(qp, index),
				       .length_bytes = sqe->length_bytes};
	wr->num_sge = 1;
	wr->sge = inline_data;
}

void tp_qp_held_begin(struct tp_qp *qp)
{
	qp->sq.held_begun = true;
}

void tp_qp_held_done(struct tp_qp *qp)
{
	struct tp_sq *sq = &qp->sq;

	sq->held_begun = false;
	sq->fresh++;
	sq->end++;
	tp_sq_complete_uncounted(qp); /* advances tail, and next with it */
	tp_sq_at_end(qp);
}

void tp_qp_held_failed(struct tp_qp *qp, enum ibv_wc_status status)
{
	tp_sq_fail_oldest(qp, status);
}

void tp_qp_release(struct tp_qp *qp)
{
	struct tp_sq *sq = &qp->sq;

	if (sq->stop != TP_STOP_HOLD)
		return;
	sq->stop = TP_STOP_NONE;
	sq->end = sq->head;
}
