/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The completer (9.7.5, 9.7.6, 9.9.2) processes the responses to an RC requester, and the time-out
 * when a response does not come.
 *
 * Events: ACK, NAK, RNR NAK, READ response, atomic response, the timer. A response with the PSN p
 * acknowledges every SEND and WRITE packet up to p. It does not have the data of an earlier READ or
 * atomic. If such a response is missing, it was lost, which is an implied NAK. After every loss the
 * requester goes back to the oldest unacknowledged PSN and sends again from there.
 *
 * Two counters limit the attempts: retries_left (time-outs, sequence NAKs, implied NAKs) and
 * rnr_left (RNR NAKs). Both are set to their first values again whenever una advances.
 */
#include "transport/fast.h"

/* 9.9.2: what ends a request, by NAK code */
static const uint8_t nak_status[] = {
	[WIRE_NAK_INVALID_REQUEST] = IBV_WC_REM_INV_REQ_ERR,
	[WIRE_NAK_REMOTE_ACCESS] = IBV_WC_REM_ACCESS_ERR,
	[WIRE_NAK_REMOTE_OPERATIONAL] = IBV_WC_REM_OP_ERR,
	[WIRE_NAK_INVALID_RD_REQUEST] = IBV_WC_REM_INV_RD_REQ_ERR,
};

/* una moves to @to */
static void advance_una(struct tp_sq *sq, psn_t to)
{
	/* packets that were acknowledged need not be sent, or sent again */
	if (tp_psn_distance(sq->nxt, sq->una) < tp_psn_distance(to, sq->una))
		sq->nxt = to;
	sq->una = to;
}

/* is all of the request @sqe, whose oldest unacknowledged PSN is @una, before @end? */
static inline bool is_before(const struct tp_sqe *sqe, psn_t una, psn_t end)
{
	return psn_eq(sqe->last_psn, una) ||
	       tp_psn_distance(end, una) > tp_psn_distance(sqe->last_psn, una);
}

/* Is nothing being sent again? If so, tail does not pass next. */
static inline bool sends_new(const struct tp_sq *sq)
{
	return psn_eq(sq->nxt, sq->sent);
}

/* Complete requests up to @end, for acknowledge(). @silent, a constant: stop at the first
 * request that has a completion; this variant calls no function, and is for a send queue in
 * which nothing is being sent again. */
__attribute__((always_inline)) static inline bool acknowledge_some(struct tp_qp *qp, psn_t end,
								    const bool silent)
{
	struct tp_sq *sq = &qp->sq;
	uint32_t tail = sq->tail;
	bool arrived = true;
	psn_t una = sq->una;

	do {
		const struct tp_sqe *sqe = tp_sqe(qp, tail);

		if (silent && sqe->flags & (TP_SQE_KIND | IBV_SEND_SIGNALED)) {
			arrived = false;
			break;
		}
		if (!silent && unlikely(sqe->flags & TP_SQE_KIND)) {
			if (sqe->flags & TP_SQE_RESPONDS) {
				arrived = false;
				break;
			}
			sq->uncounted_tail++; /* a local operation, which owns no PSN */
		} else if (!is_before(sqe, una, end)) {
			una = end;
			break;
		}
		una = psn_add(sqe->last_psn, 1);
		/* this is tp_sq_complete() for a request that ends without a response */
		tail++;
		if (!silent && sqe->flags & IBV_SEND_SIGNALED)
			tp_sq_report(qp, sqe, IBV_WC_SUCCESS);
	} while (!psn_eq(una, end));
	if (silent || likely(sends_new(sq))) {
		sq->tail = tail;
		sq->una = una;
	} else {
		tp_sq_retire(sq, tail - sq->tail);
		advance_una(sq, una);
	}
	return arrived;
}

/**
 * acknowledge() - every packet before @end, which is beyond una, has arrived
 * Return: false when a READ or atomic before @end still lacks its response;
 * una then stands at the first PSN that is missing
 */
static bool acknowledge(struct tp_qp *qp, psn_t end)
{
	return acknowledge_some(qp, end, false);
}

/* acknowledge() for a response with the PSN @at, which belongs to the oldest request after that */
static bool acknowledge_before(struct tp_qp *qp, psn_t at)
{
	bool arrived = psn_eq(at, qp->sq.una) || acknowledge(qp, at);

	tp_sq_complete_executed(qp);
	return arrived;
}

/* restart the wait for an acknowledgement if anything is unacknowledged */
static inline void wait_afresh(struct tp_qp *qp, mono_t now)
{
	if (psn_eq(qp->sq.nxt, qp->sq.una))
		qp->sq.timer = MONO_NEVER;
	else
		tp_ack_wait(qp, now);
}

/* the rest of progressed() for a queue in which something held requests back */
noinline static bool lift_blocks(struct tp_qp *qp, mono_t now)
{
	struct tp_sq *sq = &qp->sq;

	sq->block &= (uint8_t)~TP_BLOCK_PROGRESS;
	if (!(sq->block & TP_BLOCK_RNR))
		wait_afresh(qp, now);
	tp_sq_complete_executed(qp);
	tp_sq_at_end(qp);
	return qp->state != IBV_QPS_ERR;
}

/* una has advanced, so the wait for an acknowledgement restarts. Return: false: this ended the
 * QP, because the next request in order had failed */
static inline bool progressed(struct tp_qp *qp, mono_t now)
{
	tp_sq_progressed(qp);
	if (unlikely(qp->sq.block | qp->sq.stop | qp->sq.executed))
		return lift_blocks(qp, now);
	wait_afresh(qp, now);
	return true;
}

/* call progressed() if acknowledge() has advanced una from @before */
static bool note_progress(struct tp_qp *qp, psn_t before, mono_t now)
{
	return psn_eq(qp->sq.una, before) || progressed(qp, now);
}

static void retry(struct tp_qp *qp)
{
	struct tp_sq *sq = &qp->sq;

	if (sq->block & TP_BLOCK_RNR)
		return; /* everything is sent again when the timer expires */
	if (!qp->ops->path_failed || !qp->ops->path_failed(qp->ctx, !sq->retries_left)) {
		if (!sq->retries_left) {
			tp_count(qp, TP_RETRY_EXCEEDED);
			tp_sq_fail_oldest(qp, IBV_WC_RETRY_EXC_ERR);
			return;
		}
		sq->retries_left--;
	}
	tp_count(qp, TP_RETRY);
	sq->recovering = true;
	tp_requester_rewind(qp);
}

/* An implied NAK. Responses that are already under way would repeat it, so it counts once. */
static void lost_response(struct tp_qp *qp)
{
	if (!qp->sq.recovering)
		retry(qp);
}

static void fail_not_ready(struct tp_qp *qp)
{
	tp_count(qp, TP_RNR_RETRY_EXCEEDED);
	tp_sq_fail_oldest(qp, IBV_WC_RNR_RETRY_EXC_ERR);
}

/* the peer has no receive for the message of an EE context, which may carry others meanwhile */
static void suspend(struct tp_qp *qp, mono_t until)
{
	if (qp->ops->suspend(qp->ctx, until))
		tp_ee_abandon(qp);
	else
		fail_not_ready(qp);
}

static void receiver_not_ready(struct tp_qp *qp, uint8_t rnr_enc, mono_t now)
{
	struct tp_sq *sq = &qp->sq;

	tp_count(qp, TP_RNR_NAK_RECEIVED);
	if (sq->block & TP_BLOCK_RNR)
		return; /* a second copy */
	/* the peer may have found a receive for a packet that was sent twice, so the message
	 * must not begin anew */
	if (qp->can & TP_EE_CONTEXT && sq->retries_left == qp->attr.retry_cnt) {
		suspend(qp, mono_add(now, tp_rnr_ns(rnr_enc)));
		return;
	}
	if (qp->attr.rnr_retry != 7) {
		if (sq->rnr_left == 0) {
			fail_not_ready(qp);
			return;
		}
		sq->rnr_left--;
	}
	tp_requester_rewind(qp);
	sq->block |= TP_BLOCK_RNR;
	sq->timer = mono_add(now, tp_rnr_ns(rnr_enc));
}

static bool is_ack(const struct wire_packet *pkt, uint32_t flags)
{
	return flags & WIRE_HAS_AETH &&
	       (pkt->aeth.syndrome & WIRE_AETH_KIND_MASK) == WIRE_AETH_ACK;
}

/* 9.7.7.2: how many more messages the peer has receives for */
static void note_credits(struct tp_sq *sq, const struct wire_aeth *aeth)
{
	uint8_t code = aeth->syndrome & WIRE_AETH_VALUE_MASK;

	sq->limited = code != WIRE_AETH_CREDIT_INVALID;
	if (!sq->limited)
		return;
	sq->fast_left = 0;
	sq->limit_ssn = aeth->msn + tp_credits[code];
}

static void nak(struct tp_qp *qp, const struct wire_packet *pkt, mono_t now)
{
	uint8_t kind = pkt->aeth.syndrome & WIRE_AETH_KIND_MASK;
	uint8_t value = pkt->aeth.syndrome & WIRE_AETH_VALUE_MASK;
	psn_t before = qp->sq.una;
	bool arrived = acknowledge_before(qp, pkt->bth.psn);

	if (!note_progress(qp, before, now))
		return;
	if (!arrived)
		lost_response(qp);
	else if (kind == WIRE_AETH_RNR_NAK)
		receiver_not_ready(qp, value, now);
	else if (value == WIRE_NAK_PSN_SEQUENCE) {
		tp_count(qp, TP_SEQUENCE_NAK_RECEIVED);
		retry(qp);
	} else if (value < ARRAY_SIZE(nak_status)) {
		tp_sq_fail_oldest(qp, nak_status[value]);
	}
}

/* the rest of ack(); @moved: una has advanced */
noinline static void ack_rest(struct tp_qp *qp, psn_t end, mono_t now, bool moved)
{
	psn_t before = qp->sq.una;
	bool arrived = acknowledge(qp, end);

	if (unlikely(!moved && psn_eq(qp->sq.una, before)))
		lost_response(qp);
	else if (progressed(qp, now) && unlikely(!arrived))
		lost_response(qp);
}

/* All packets up to @at, which was not acknowledged before, have arrived. In the most frequent
 * case, requests without completions, no function is called and no register is saved. */
static inline void ack(struct tp_qp *qp, psn_t at, mono_t now)
{
	psn_t end = psn_add(at, 1), before = qp->sq.una;

	if (likely(sends_new(&qp->sq) && acknowledge_some(qp, end, true)))
		progressed(qp, now);
	else
		ack_rest(qp, end, now, !psn_eq(qp->sq.una, before));
}

/* Every acknowledgement is old for a QP that has nothing outstanding, such as one that is
 * unreliable, has failed or is not set up yet. */
static inline bool is_old(const struct tp_sq *sq, psn_t at)
{
	return tp_psn_distance(at, sq->una) >= tp_psn_distance(sq->sent, sq->una);
}

/* an ACK without credits, as all ACKs that travel with a request are */
static void ack_without_credits(struct tp_qp *qp, psn_t at, mono_t now)
{
	qp->sq.limited = false;
	ack(qp, at, now);
}

void tp_qp_acked(struct tp_qp *qp, psn_t at, mono_t now)
{
	if (likely(!is_old(&qp->sq, at)))
		ack_without_credits(qp, at, now);
}

bool tp_fast_acked(struct tp_qp *qp, psn_t at, uint8_t syndrome, mono_t now)
{
	if (qp->state != IBV_QPS_RTS || syndrome != TP_ACK_NO_CREDITS || is_old(&qp->sq, at))
		return false;
	qp->stats.rx_packets++;
	ack_without_credits(qp, at, now);
	return true;
}

/* copy the data of a response, which begins at the PSN una, into the memory of the oldest
 * request */
static enum ibv_wc_status take_data(struct tp_qp *qp, const struct tp_sqe *sqe,
				    const void *data, uint32_t len)
{
	struct tp_sq *sq = &qp->sq;
	const struct tp_sge *sge = tp_sges(qp, sq->tail);
	uint32_t offset = tp_psn_distance(sq->una, sqe->first_psn) << qp->mtu_shift;
	struct tp_cursor at = tp_cursor_at(sge, sqe->num_sge, offset);

	switch (tp_scatter(qp, tp_key_of(sqe), sge, sqe->num_sge, &at, data, len)) {
	case TP_COPY_OK:
		return IBV_WC_SUCCESS;
	case TP_COPY_TOO_SHORT:
		return IBV_WC_LOC_LEN_ERR;
	default:
		return IBV_WC_LOC_PROT_ERR;
	}
}

static enum ibv_wc_status read_data(struct tp_qp *qp, const struct tp_sqe *sqe,
				    const struct wire_packet *pkt, uint32_t flags)
{
	uint32_t offset = tp_psn_distance(qp->sq.una, sqe->first_psn) << qp->mtu_shift;
	uint32_t left = tp_psn_distance(sqe->last_psn, qp->sq.una) + 1;
	bool last = pkt->packets == left;
	uint32_t len = last ? sqe->length_bytes - offset :
			      (uint32_t)pkt->packets << qp->mtu_shift;

	if (tp_op(sqe)->flags & TP_OP_EMPTY)
		len = 0;
	/* 9.9.2: the response must be the one that was asked for */
	if (!(flags & WIRE_IS_LAST) != !last || pkt->packets > left ||
	    pkt->payload_bytes != len)
		return IBV_WC_BAD_RESP_ERR;
	return len ? take_data(qp, sqe, pkt->payload, len) : IBV_WC_SUCCESS;
}

/* una moves past @packets of a response */
static void response_done(struct tp_qp *qp, const struct tp_sqe *sqe, uint32_t packets)
{
	struct tp_sq *sq = &qp->sq;
	bool last = tp_psn_distance(sqe->last_psn, sq->una) + 1 == packets;

	if (sq->next != sq->tail)
		sq->read_psns -= packets;
	advance_una(sq, psn_add(sq->una, packets));
	if (last)
		tp_sq_complete(qp, IBV_WC_SUCCESS);
}

/* a READ or atomic response */
static void response(struct tp_qp *qp, const struct wire_packet *pkt, uint32_t flags,
		     mono_t now)
{
	struct tp_sq *sq = &qp->sq;
	psn_t before = sq->una;
	bool arrived = acknowledge_before(qp, pkt->bth.psn);
	/* the kinds of request that end with such a response */
	uint8_t kinds = flags & WIRE_IS_READ ? TP_OP_READ | TP_OP_EMPTY : TP_OP_ATOMIC;
	const struct tp_sqe *sqe = tp_sqe(qp, sq->tail);
	enum ibv_wc_status status;

	if (is_ack(pkt, flags))
		note_credits(sq, &pkt->aeth);
	if (!arrived) {
		if (note_progress(qp, before, now))
			lost_response(qp);
		return;
	}
	if (!(tp_op(sqe)->flags & kinds))
		status = IBV_WC_BAD_RESP_ERR;
	else if (flags & WIRE_IS_READ)
		status = read_data(qp, sqe, pkt, flags);
	else
		status = take_data(qp, sqe, &pkt->atomic_ack, sizeof(pkt->atomic_ack));
	if (unlikely(status != IBV_WC_SUCCESS)) {
		tp_sq_fail_oldest(qp, status);
		return;
	}
	response_done(qp, sqe, flags & WIRE_IS_READ ? pkt->packets : 1);
	note_progress(qp, before, now);
}

/* a segment whose first @behind packets were received before */
static void rest_of_response(struct tp_qp *qp, const struct wire_packet *pkt, uint32_t flags,
			     uint32_t behind, mono_t now)
{
	struct wire_packet rest;

	if (pkt->payload_bytes <= behind << qp->mtu_shift)
		return;
	tp_trim(qp, pkt, behind, &rest);
	response(qp, &rest, flags & ~(uint32_t)WIRE_IS_FIRST, now);
}

/* A response outside the range of outstanding PSNs is dropped. A repetition of the
 * newest ACK may still bring fresh credits (9.7.7.2). */
static void stale_response(struct tp_qp *qp, const struct wire_packet *pkt, uint32_t flags)
{
	struct tp_sq *sq = &qp->sq;

	tp_count(qp, TP_DUPLICATE_RESPONSE);
	if (!is_ack(pkt, flags) || !psn_eq(psn_add(pkt->bth.psn, 1), sq->una))
		return;
	note_credits(sq, &pkt->aeth);
	sq->block &= (uint8_t)~TP_BLOCK_CREDIT;
}

void tp_completer_receive(struct tp_qp *qp, const struct wire_packet *pkt, uint32_t flags,
			  mono_t now)
{
	struct tp_sq *sq = &qp->sq;
	uint32_t behind = tp_psn_distance(sq->una, pkt->bth.psn);

	if (unlikely(is_old(sq, pkt->bth.psn))) {
		stale_response(qp, pkt, flags);
		if (behind < pkt->packets && flags & WIRE_IS_READ && !psn_eq(sq->sent, sq->una))
			rest_of_response(qp, pkt, flags, behind, now);
		return;
	}
	if (flags & (WIRE_IS_READ | WIRE_IS_ATOMIC)) {
		response(qp, pkt, flags, now);
	} else if (is_ack(pkt, flags)) {
		note_credits(sq, &pkt->aeth);
		ack(qp, pkt->bth.psn, now);
	} else {
		nak(qp, pkt, now);
	}
}

void tp_completer_expire(struct tp_qp *qp, mono_t now)
{
	struct tp_sq *sq = &qp->sq;

	if (sq->block & TP_BLOCK_RNR) {
		sq->block &= (uint8_t)~TP_BLOCK_RNR;
		sq->timer = MONO_NEVER;
		return;
	}
	if (!sq->half_waited) {
		tp_ack_wait(qp, now);
		sq->half_waited = true;
		return;
	}
	tp_count(qp, TP_TIMEOUT);
	retry(qp);
}
