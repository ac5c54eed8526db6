/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How send requests complete. The oldest request always completes first, so completions are in the
 * order of posting (10.8.3).
 */
#include "transport/qp.h"

void tp_sq_report(struct tp_qp *qp, const struct tp_sqe *sqe, enum ibv_wc_status status)
{
	if (unlikely(sqe->flags & TP_SEND_OWN)) {
		qp->sq.own--;
		qp->ops->complete_own(qp->ctx, (uint8_t)status);
		return;
	}
	qp->ops->complete_send(qp->ctx, sqe->wr_id, (uint8_t)status,
			       tp_wc_opcode(sqe->opcode), sqe->length_bytes);
}

void tp_sq_complete(struct tp_qp *qp, enum ibv_wc_status status)
{
	struct tp_sq *sq = &qp->sq;
	const struct tp_sqe *sqe = tp_sqe(qp, sq->tail);

	if (sq->next != sq->tail && tp_op(sqe)->flags & TP_OP_RESPONDS)
		sq->responses--;
	tp_sq_retire(sq, 1);
	/* 10.8.6: an error is reported even if success would not be */
	if (status != IBV_WC_SUCCESS || sqe->flags & IBV_SEND_SIGNALED)
		tp_sq_report(qp, sqe, status);
}

void tp_sq_complete_uncounted(struct tp_qp *qp)
{
	qp->sq.uncounted_tail++;
	tp_sq_complete(qp, IBV_WC_SUCCESS);
}

void tp_sq_complete_executed(struct tp_qp *qp)
{
	struct tp_sq *sq = &qp->sq;

	while (sq->tail != sq->fresh && tp_sqe(qp, sq->tail)->flags & TP_SQE_LOCAL)
		tp_sq_complete_uncounted(qp);
	if (sq->tail == sq->fresh)
		sq->executed = false;
}

void tp_sq_flush(struct tp_qp *qp)
{
	struct tp_sq *sq = &qp->sq;

	sq->fast_left = 0;
	sq->executed = sq->held_begun = false;
	while (sq->tail != sq->head)
		tp_sq_complete(qp, IBV_WC_WR_FLUSH_ERR);
	sq->next = sq->fresh = sq->end = sq->head;
	sq->una = sq->nxt = sq->sent;
	sq->read_psns = sq->responses = 0;
	sq->block = 0;
	sq->stop = TP_STOP_NONE;
	sq->timer = MONO_NEVER;
}

void tp_sq_fail_oldest(struct tp_qp *qp, enum ibv_wc_status status)
{
	tp_sq_complete(qp, status);
	/* an EE context abandons the message that failed, and fails itself only if the peer is gone */
	if (qp->can & TP_EE_CONTEXT && status != IBV_WC_RETRY_EXC_ERR) {
		tp_ee_abandon(qp);
		return;
	}
	if (qp->can & TP_ACKNOWLEDGED) {
		tp_qp_fail(qp);
		return;
	}
	/* 10.3.1.6: an unreliable QP keeps receiving, only its send queue fails */
	qp->state = IBV_QPS_SQE;
	tp_sq_flush(qp);
}

void tp_sq_fail_next(struct tp_qp *qp, enum ibv_wc_status status)
{
	struct tp_sq *sq = &qp->sq;

	sq->stop = TP_STOP_FAIL;
	sq->fail_status = (uint8_t)status;
	sq->end = sq->next;
	tp_sq_at_end(qp);
}

void tp_sq_at_end(struct tp_qp *qp)
{
	struct tp_sq *sq = &qp->sq;

	if (likely(!sq->stop) || (int32_t)(sq->end - sq->tail) > 0 || sq->held_begun)
		return;
	if (sq->stop == TP_STOP_HOLD) {
		return; /* the engine calls tp_qp_held() */
	} else if (sq->stop == TP_STOP_DRAIN) {
		sq->stop = TP_STOP_NONE;
		qp->ops->event(qp->ctx, TP_EVENT_SQ_DRAINED); /* 10.3.1.5 */
	} else if (sq->tail == sq->end) {
		tp_sq_fail_oldest(qp, sq->fail_status);
	} else if (qp->state == IBV_QPS_SQD) {
		sq->stop = TP_STOP_DRAIN; /* drain() left this state to the failed request */
		sq->end = sq->fresh;
		tp_sq_at_end(qp);
	} else {
		/* the request failed when it was to be sent again, but the peer had received all
		 * of it */
		sq->stop = TP_STOP_NONE;
		sq->end = sq->head;
	}
}
