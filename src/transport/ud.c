/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Unreliable datagrams (9.8.3): one packet is one message. Whatever does not
 * fit is dropped silently. So it is with the frames of raw QPs, which have no Q_Key: the adapter
 * puts the tag of the rule that steered a frame into the field (hca/flow.c).
 */
#include "transport/qp.h"

void tp_ud_fill(struct tp_qp *qp, uint32_t index, struct tp_packet_out *out)
{
	const struct tp_destination *to = &qp->sq.destinations[index & qp->sq.mask];

	out->hdr.bth.dest_qpn = to->qpn;
	out->hdr.deth = (struct wire_deth){tp_qkey_sent(qp->qpn, qp->attr.qkey, to->qkey),
					    qp->qpn};
	out->av = &to->av;
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

static void complete(struct tp_qp *qp, const struct wire_packet *pkt, uint32_t flags,
		     uint32_t length_bytes)
{
	struct tp_wc wc;

	tp_recv_wc(qp, pkt, flags, length_bytes, &wc);
	if (qp->type == TP_RAW)
		wc.flow_tag = pkt->deth.qkey;
	tp_recv_complete(qp, &wc);
}

/* @grh_bytes of the receive are filled. @copied: how that went */
static void place_payload(struct tp_qp *qp, const struct wire_packet *pkt, uint32_t flags,
			  uint32_t grh_bytes, enum tp_copy copied)
{
	struct tp_responder *r = &qp->resp;

	if (likely(copied == TP_COPY_OK))
		copied = tp_scatter(qp, TP_KEY_RECEIVE, r->recv.sge, r->recv.num_sge, &r->cursor,
				    pkt->payload, pkt->payload_bytes);
	if (likely(copied == TP_COPY_OK))
		complete(qp, pkt, flags, grh_bytes + pkt->payload_bytes);
	else
		tp_unreliable_fault(qp, copied == TP_COPY_TOO_SHORT ? TP_RECV_TOO_SHORT :
								      TP_RECV_VIOLATION);
}

void tp_ud_receive(struct tp_qp *qp, const struct wire_packet *pkt, uint32_t flags)
{
	if (!(flags & WIRE_IS_SEND) || !tp_qkey_passes(qp->qpn, qp->attr.qkey, pkt->deth.qkey) ||
	    pkt->payload_bytes > tp_mtu(qp) || !tp_recv_take(qp, pkt))
		return;
	place_payload(qp, pkt, flags, WIRE_GRH_BYTES, place_grh(qp, pkt));
}

void tp_raw_receive(struct tp_qp *qp, const struct wire_packet *pkt, uint32_t flags)
{
	if (!(flags & WIRE_IS_SEND) || pkt->payload_bytes > tp_mtu(qp) || !tp_recv_take(qp, pkt))
		return;
	qp->resp.cursor = (struct tp_cursor){0, 0};
	place_payload(qp, pkt, flags, 0, TP_COPY_OK);
}
