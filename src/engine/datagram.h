/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The straight way of a SEND of UD: as small.h, but that each request names its
 * destination, that it is done when it has left, and that 40 bytes of the receive
 * belong to a GRH, which those that go this way do not have.
 */
#ifndef SOFTIB_ENGINE_DATAGRAM_H
#define SOFTIB_ENGINE_DATAGRAM_H

#include "engine/small.h"

/** eng_datagram_holds() - does @qp's flow lead where @wr goes, as it was noted? */
static inline bool eng_datagram_holds(const struct engine *e, const struct eng_qp *qp,
				      const struct ibv_send_wr *wr, const struct tp_av *av)
{
	const struct eng_path *path = &qp->path;

	return likely(av && eng_flow_holds(e, qp)) && !av->is_global && path->dlid == av->dlid &&
	       path->dest_qpn == (wr->wr.ud.remote_qpn & 0xffffff) && path->sl == av->sl &&
	       path->port_num == av->port_num && path->pkey == qp->tp->attr.pkey &&
	       qp->small_path_bits == av->src_path_bits;
}

/** eng_datagram_streams() - were so many posted since @qp heard of anybody that the next
 *  one's turn is not at once? Nothing tells what became of them */
static inline bool eng_datagram_streams(struct eng_qp *qp)
{
	uint64_t heard = qp->tp->stats.rx_packets;

	if (qp->datagrams_heard != heard) {
		qp->datagrams_heard = heard;
		qp->datagrams_run = 0;
	}
	return ++qp->datagrams_run > TP_STREAM_MESSAGES;
}

/** eng_datagram_put() - into the cell at the tail of the lane of @qp's flow */
static inline void eng_datagram_put(struct eng_qp *qp, const struct ibv_send_wr *wr,
				    const void *payload, uint32_t len)
{
	const struct eng_flow *flow = qp->flow;
	struct abi_lane_tx *tx = &flow->lane->tx;
	struct abi_cell *cell = abi_lane_cell(tx->memory, tx->tail);
	uint32_t qkey = tp_small_qkey(qp->tp, wr->wr.ud.remote_qkey);
	bool solicited = wr->send_flags & IBV_SEND_SOLICITED;
	uint8_t *to = cell->data + ABI_RECORD_QKEY_BYTES;
	uint64_t word[3] = {
		qp->small_word[0] | tp_small_datagram(qp->tp).v,
		qp->small_word[1] | abi_record_flags(solicited * ABI_RECORD_SOLICITED),
		qp->small_word[2] | len | abi_record_pkey(qp->path.pkey),
	};

	if (eng_datagram_streams(qp) && len + ABI_RECORD_QKEY_BYTES <= ABI_STREAM_BYTES && tx->no_fence) {
		uint32_t first = MIN(len, ABI_STREAM_FIRST - ABI_RECORD_QKEY_BYTES);

		eng_stream(qp->engine, tx, cell, word, qkey | load_few(payload, first) << 32,
			   (const uint8_t *)payload + first, len - first, true);
	} else {
		memcpy(cell->data, &qkey, ABI_RECORD_QKEY_BYTES);
		if (len > ABI_CELL_BYTES - ABI_RECORD_QKEY_BYTES) {
			word[1] |= abi_record_flags(ABI_RECORD_BULK);
			to = abi_lane_put_bulk(tx, cell, len);
		}
		copy_few(to, payload, len);
		abi_lane_publish_words(tx, cell, word);
	}
	eng_lane_count(flow->count, 1, qp->flow_dwords + (len + 3) / 4);
}

/** eng_datagram_post() - as eng_small_post() */
static inline bool eng_datagram_post(struct engine *e, struct eng_qp *qp,
				     const struct ibv_send_wr *wr, const struct tp_av *av)
{
	const unsigned may = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE;
	const struct ibv_sge *sge = wr->sg_list;
	unsigned flags = wr->send_flags;
	bool is_inline = flags & IBV_SEND_INLINE;
	const void *payload;

	if (wr->num_sge != 1 || flags & ~may ||
	    !eng_datagram_holds(e, qp, wr, av) || sge->length - 1 >= qp->small_bytes[is_inline] ||
	    !eng_small_has_room(&qp->flow->lane->tx, sge->length + ABI_RECORD_QKEY_BYTES) ||
	    !tp_small_may_post(qp->tp) || eng_cq_is_full(qp->send_cq) || eng_spoils(e))
		return false;
	payload = (const void *)(uintptr_t)sge->addr;
	if (!is_inline) {
		payload = eng_mem_recent(e, qp->init.pd, sge->lkey, sge->addr, sge->length, 0);
		if (unlikely(!payload))
			return false;
	}
	eng_datagram_put(qp, wr, payload, sge->length);
	if (!((flags | qp->tp->sig_all_flag) & IBV_SEND_SIGNALED))
		return true;
	eng_wc_sent(qp, wr->wr_id, IBV_WC_SUCCESS, IBV_WC_SEND, sge->length,
		    eng_cq_next(qp->send_cq));
	eng_cq_added(qp->send_cq, false);
	return true;
}

/** eng_datagram_receive() - the datagram in @cell, whose like has passed, into the receive
 *  that is next. Return: false: not all is as it should be; nothing changed */
static inline bool eng_datagram_receive(struct engine *e, const struct eng_lane_in *lane,
					const struct abi_cell *cell, const uint64_t word[3])
{
	const uint8_t *payload = eng_small_payload(lane->rx.memory, cell, word, ABI_RECORD_QKEY_BYTES);
	const struct eng_small_header *known = lane->known;
	struct eng_qp *qp = known->qp;
	uint32_t len = abi_record_bytes(word), qkey;
	struct eng_rq *rq = qp->recv_rq;
	const struct eng_rq_wr *wr = eng_rq_at(rq, rq->head);
	const struct eng_mr *mr = NULL;
	struct ibv_wc *wc;
	uint8_t *to;

	memcpy(&qkey, cell->data, ABI_RECORD_QKEY_BYTES);
	if (unlikely(!payload || len - known->least_bytes >= known->span_bytes ||
		     !tp_small_hears(qp->tp, qkey) || !eng_small_room(e, known, &wc)))
		return false;
	to = eng_small_place(e, rq->pd, wr, WIRE_GRH_BYTES + len, &mr);
	if (unlikely(!to))
		return false;
	memset(to, 0, WIRE_GRH_BYTES); /* 11.4.1.2: not defined; as the general way has it */
	copy_few(to + WIRE_GRH_BYTES, payload, len);
	qp->tp->stats.rx_packets++;
	eng_small_tell(known, wr, WIRE_GRH_BYTES + len, wc);
	rq->head++;
	eng_cq_filled(qp->recv_cq, 1, abi_record_has(word, ABI_RECORD_SOLICITED));
	return true;
}

#endif
