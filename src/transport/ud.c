/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Unreliable datagrams (9.8.3): one packet is one message. Whatever does not
 * fit is dropped silently.
 */
#include "transport/qp.h"

/* 10.2.5: QP1's Q_Key is well known; QP0 has none */
static uint32_t own_qkey(const struct tp_qp *qp)
{
	return qp->qpn == 1 ? WIRE_QKEY_GSI : qp->attr.qkey;
}

void tp_ud_fill(struct tp_qp *qp, uint32_t index, struct tp_packet_out *out)
{
	const struct tp_destination *to = &qp->sq.destinations[index & qp->sq.mask];
	/* 10.2.5: a Q_Key with its high bit is controlled: the QP's own is sent */
	bool controlled = to->qkey & 0x80000000u;

	out->hdr.bth.dest_qpn = to->qpn;
	out->hdr.deth = (struct wire_deth){controlled ? own_qkey(qp) : to->qkey, qp->qpn};
	out->av = &to->av;
}

static bool qkey_passes(const struct tp_qp *qp, const struct wire_packet *pkt)
{
	/* QP0 takes any */
	return qp->qpn == 0 || pkt->deth.qkey == own_qkey(qp);
}

/* 11.4.1.2: the first 40 bytes of the buffer are the GRH's; without one
 * their content is undefined, and here zero */
static enum tp_copy place_grh(struct tp_qp *qp, const struct wire_packet *pkt)
{
	struct tp_responder *r = &qp->resp;
	uint8_t grh[WIRE_GRH_BYTES] = {0};

	if (pkt->lrh.lnh == WIRE_LNH_GRH)
		wire_grh_encode(&pkt->grh, grh);
	r->cursor = (struct tp_cursor){0, 0};
	return tp_scatter(qp, TP_KEY_RECEIVE, r->recv.sge, r->recv.num_sge, &r->cursor, grh, sizeof(grh));
}

static void complete(struct tp_qp *qp, const struct wire_packet *pkt, uint32_t flags)
{
	struct tp_wc wc = {
		.opcode = IBV_WC_RECV,
		.byte_len = WIRE_GRH_BYTES + pkt->payload_bytes,
		.src_qpn = pkt->deth.src_qpn,
		.pkey_index = qp->attr.pkey_index,
		.slid = pkt->lrh.slid,
		.sl = pkt->lrh.sl,
		.dlid_path_bits = pkt->lrh.dlid & 0x7f,
		.solicited = pkt->bth.solicited,
	};

	if (pkt->lrh.lnh == WIRE_LNH_GRH)
		wc.wc_flags |= IBV_WC_GRH;
	if (flags & WIRE_HAS_IMM) {
		wc.wc_flags |= IBV_WC_WITH_IMM;
		wc.imm_or_rkey = pkt->imm;
	}
	tp_recv_complete(qp, &wc);
}

void tp_ud_receive(struct tp_qp *qp, const struct wire_packet *pkt, uint32_t flags)
{
	struct tp_responder *r = &qp->resp;
	enum tp_copy copied;

	if (!(flags & WIRE_IS_SEND) || !qkey_passes(qp, pkt) ||
	    pkt->payload_bytes > tp_mtu(qp) || !tp_recv_take(qp))
		return;
	copied = place_grh(qp, pkt);
	if (likely(copied == TP_COPY_OK))
		copied = tp_scatter(qp, TP_KEY_RECEIVE, r->recv.sge, r->recv.num_sge, &r->cursor,
				    pkt->payload, pkt->payload_bytes);
	if (likely(copied == TP_COPY_OK))
		complete(qp, pkt, flags);
	else
		tp_unreliable_fault(qp, copied == TP_COPY_TOO_SHORT ? TP_RECV_TOO_SHORT :
								      TP_RECV_VIOLATION);
}
