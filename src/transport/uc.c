/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The UC responder (9.8.2), which sends no responses. A gap in the PSNs silently ends the
 * message in progress, and so does any packet that does not fit. The next first or only packet
 * begins a message at whatever PSN it has. A receive that a lost message had taken serves the
 * next one.
 */
#include "transport/qp.h"

void tp_unreliable_fault(struct tp_qp *qp, enum tp_verdict verdict)
{
	static const uint8_t recv_status[] = {
		[TP_RECV_TOO_SHORT] = IBV_WC_LOC_LEN_ERR,
		[TP_RECV_VIOLATION] = IBV_WC_LOC_PROT_ERR,
	};

	tp_message_abandon(qp);
	/* 9.9.3.1 class D: silently dropped. Class E, with a shared receive
	 * queue: a receive cannot be put back, so it ends in error */
	if (verdict == TP_RECV_VIOLATION ||
	    (verdict == TP_RECV_TOO_SHORT && qp->has_srq)) {
		tp_recv_fail(qp, recv_status[verdict]);
		tp_qp_fail(qp);
	}
}

void tp_uc_receive(struct tp_qp *qp, const struct wire_packet *pkt, uint32_t flags)
{
	struct tp_responder *r = &qp->resp;
	enum tp_verdict verdict;

	if (!(flags & (WIRE_IS_SEND | WIRE_IS_WRITE)))
		return;
	if (!psn_eq(pkt->bth.psn, r->epsn)) { /* 9.8.2.2 */
		tp_count(qp, TP_OUT_OF_SEQUENCE);
		tp_message_abandon(qp);
		r->epsn = pkt->bth.psn;
	}
	tp_expect_next(r, pkt->packets, 0);
	if (flags & WIRE_IS_FIRST)
		tp_message_abandon(qp);
	verdict = tp_message_receive(qp, pkt, flags);
	if (unlikely(verdict != TP_ACCEPT))
		tp_unreliable_fault(qp, verdict);
}
