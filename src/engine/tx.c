/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * From the transport to the link: each QP that has something to send may send a few packets in a
 * turn. A packet is assembled in the link's own memory, so that its payload is copied once. If the
 * link has no room for a packet, the packet is kept in its QP, and only that QP waits.
 */
#include <string.h>

#include "engine/fast.h"
#include "runtime/rt.h"

void eng_qp_touch(struct eng_qp *qp)
{
	struct engine *e = qp->engine;

	if ((qp->held_bytes || tp_wants_transmit(qp->tp)) && list_empty(&qp->tx_node)) {
		if (unlikely(qp->is_paced) && eng_pace_waits(qp))
			eng_note_expiry(e, eng_pace_next(qp));
		else if (eng_ack_may_wait(qp))
			eng_qp_owes(e, qp);
		else
			list_add_tail(&qp->tx_node, &e->tx);
	}
	eng_note_expiry(e, tp_timer(qp->tp));
}

void eng_fill_grh(const struct engine *e, const struct tp_av *av, struct wire_grh *grh)
{
	const struct abi_devport *port = eng_port(e, av->port_num);

	grh->ip_version = 6;
	grh->traffic_class = av->traffic_class;
	grh->flow_label = av->flow_label;
	grh->next_header = 0x1b;
	grh->hop_limit = av->hop_limit;
	memcpy(grh->sgid.raw, port->gid[av->sgid_index % ABI_GIDS], 16);
	grh->dgid = av->dgid;
}

/* Directed routes begin without addresses: a port that was never set up has none, and two
 * subnets that are connected may have used the same ones. */
static uint16_t source_lid(const struct eng_qp *qp, const struct tp_av *av,
			   const struct abi_devport *port)
{
	if (!port->lid || (qp->init.qpn == 0 && av->dlid == WIRE_LID_PERMISSIVE))
		return WIRE_LID_PERMISSIVE;
	return port->lid | wire_path_bits(av->src_path_bits, port->lmc);
}

unsigned eng_fill_route(const struct eng_qp *qp, const struct tp_av *av, struct wire_packet *pkt)
{
	const struct engine *e = qp->engine;
	unsigned port_num = qp->init.qpn < 2 ? qp->init.port_num : av->port_num;
	const struct abi_devport *port = eng_port(e, port_num);

	pkt->lrh = (struct wire_lrh){
		.vl = qp->init.qpn == 0 ? WIRE_VL_MANAGEMENT : 0,
		.sl = av->sl,
		.lnh = av->is_global ? WIRE_LNH_GRH : WIRE_LNH_BTH,
		.dlid = av->dlid,
		.slid = source_lid(qp, av, port),
	};
	if (av->is_global)
		eng_fill_grh(e, av, &pkt->grh);
	pkt->bth.mig_req = qp->attr.path_mig_state == IBV_MIG_MIGRATED;
	return port_num;
}

/* Return: false: the memory of its payload is gone */
static bool assemble(const struct tp_packet_out *out, const uint8_t *header, size_t header_bytes,
		     uint8_t *to)
{
	memcpy(to, header, header_bytes);
	to += header_bytes;
	for (unsigned i = 0; i < out->num_pieces; i++) {
		if (unlikely(!guard_load(to, out->piece[i].ptr, out->piece[i].len)))
			return false;
		to += out->piece[i].len;
	}
	memset(to, 0, out->hdr.bth.pad_bytes);
	return true;
}

/* IBV_SEND_IP_CSUM: @to is where the link has the packet */
static void compute_checksums(struct engine *e, const struct tp_packet_out *out, uint8_t *to)
{
	if (eng_finish_checksums(to, out->hdr.payload_bytes))
		e->cfg.link_ops->checked(e->cfg.link);
}

void eng_unsent(struct engine *e, struct eng_qp *qp, const struct tp_packet_out *out)
{
	e->probes = true;
	tp_qp_unsent(qp->tp, out);
}

static void committed(struct engine *e, unsigned port_num, size_t len)
{
	e->cfg.link_ops->commit(e->cfg.link, port_num, len);
	e->unflushed = true;
}

/* Return: false: the link still has no room for it */
static bool send_held(struct engine *e, struct eng_qp *qp)
{
	uint8_t *to = e->cfg.link_ops->reserve(e->cfg.link, &qp->held, qp->held_port,
					       qp->held_bytes);

	if (!to)
		return false;
	memcpy(to, qp->held_packet, qp->held_bytes);
	committed(e, qp->held_port, qp->held_bytes);
	qp->held_bytes = 0;
	return true;
}

/* Return: the buffer in which a packet waits for room; NULL: there is no memory, and the packet is lost */
static uint8_t *hold(struct eng_qp *qp, const struct wire_packet *pkt, unsigned port_num, size_t len)
{
	if (!qp->held_packet)
		qp->held_packet = rt_zalloc(WIRE_PACKET_MAX);
	if (!qp->held_packet)
		return NULL;
	qp->held = *pkt;
	qp->held_port = port_num;
	qp->held_bytes = len;
	return qp->held_packet;
}

/* Return: false when the packet could not leave: the QP's turn is over */
static bool send_packet(struct engine *e, struct eng_qp *qp, struct tp_packet_out *out)
{
	uint8_t header[WIRE_HEADERS_MAX], *to;
	unsigned port_num = eng_fill_route(qp, out->av, &out->hdr);
	int n = wire_packet_encode(&out->hdr, header);
	size_t len;

	if (unlikely(n < 0))
		return true;
	len = (size_t)n + out->hdr.payload_bytes + out->hdr.bth.pad_bytes;
	to = e->cfg.link_ops->reserve(e->cfg.link, &out->hdr, port_num, len);
	if (likely(to)) {
		if (unlikely(!assemble(out, header, (size_t)n, to))) {
			eng_unsent(e, qp, out);
			return true;
		}
		if (unlikely(out->ip_checksums && qp->init.max_header))
			compute_checksums(e, out, to + n);
		committed(e, port_num, len);
		return true;
	}
	e->stats.link_full++;
	to = hold(qp, &out->hdr, port_num, len);
	if (to && unlikely(!assemble(out, header, (size_t)n, to))) {
		qp->held_bytes = 0;
		eng_unsent(e, qp, out);
	}
	return false;
}

/* Return: false when the QP's turn is over */
static bool send_one(struct engine *e, struct eng_qp *qp, bool *sent)
{
	struct tp_packet_out out;
	bool over = false;

	switch (eng_lane_medium(e, qp)) {
	case ENG_BY_LANE:
		*sent |= eng_lane_send(e, qp, ENG_TX_BUDGET, &over);
		return !over;
	case ENG_BY_PACKETS:
		if (unlikely(qp->is_paced) && eng_pace_waits(qp))
			return false;
		if (!tp_qp_transmit(qp->tp, &out, e->now))
			return false;
		if (unlikely(qp->is_paced))
			eng_pace_pay(qp, out.hdr.payload_bytes);
		if (unlikely(out.header))
			eng_send_train(e, qp, &out);
		else if (!send_packet(e, qp, &out))
			return false;
		break;
	case ENG_LOST:
		if (!tp_qp_transmit(qp->tp, &out, e->now))
			return false;
		break;
	case ENG_WAIT:
		return false;
	}
	*sent = true;
	return true;
}

/* Return: true when the QP sent something */
static bool send_some(struct engine *e, struct eng_qp *qp)
{
	bool sent = false;

	if (unlikely(qp->held_bytes)) {
		if (!send_held(e, qp))
			return false;
		sent = true;
	}
	for (unsigned n = 0; n < ENG_TX_BUDGET && tp_wants_transmit(qp->tp); n++)
		if (!send_one(e, qp, &sent))
			break;
	return sent;
}

static void flush(struct engine *e)
{
	eng_lane_flush(e);
	if (e->unflushed) {
		e->unflushed = false;
		e->put_off = true;
		e->cfg.link_ops->flush(e->cfg.link);
	}
	if (!list_empty(&e->tx) && e->cfg.kick)
		e->cfg.kick(e->cfg.ctx, mono_add(e->now, ENG_RETRY_NS));
}

void eng_tx_qp(struct engine *e, struct eng_qp *qp)
{
	send_some(e, qp);
	eng_qp_touch(qp);
	flush(e);
}

/* A number that changes with the requests that @qp sends to its peer. An XRC target sends none:
 * what its program answers are requests of XRC initiators to the same program. They carry no ACK of
 * the target, but if it is delayed, it does not leave before the answer that the peer waits for. */
static uint32_t requests_sent(const struct engine *e, const struct eng_qp *qp)
{
	if (likely(!eng_is_xrc_target(qp)))
		return tp_next_psn(qp->tp).v;
	return eng_flow_holds(e, qp) ? qp->flow->lane->xrc_requests : 0;
}

/* Flush the delayed ACK of @qp, unless a request has left meanwhile and carried it. If no other QP
 * is in front, it leaves at once. Return: true: it has left */
static bool flush_ack(struct engine *e, struct eng_qp *qp)
{
	uint32_t sent = requests_sent(e, qp);

	list_del(&qp->ack_node);
	if (!tp_wants_transmit(qp->tp) || !list_empty(&qp->tx_node))
		return false;
	qp->sent_since_ack = qp->lone_ack_sent != NO_LONE_ACK && qp->lone_ack_sent != sent;
	qp->lone_ack_sent = sent;
	if (unlikely(!list_empty(&e->tx) || qp->held_bytes) || !eng_lane_ack(e, qp)) {
		list_add_tail(&qp->tx_node, &e->tx);
		return false;
	}
	eng_qp_touch(qp);
	return true;
}

bool eng_flush_acks(struct engine *e, bool all)
{
	struct eng_qp *qp, *tmp;
	bool left = false;

	list_for_each_entry_safe(qp, tmp, &e->owed_acks, ack_node)
		if (all || !e->more || qp->received_turn != e->turn)
			left |= flush_ack(e, qp);
	if (all)
		list_for_each_entry_safe(qp, tmp, &e->piggyback_acks, ack_node)
			left |= flush_ack(e, qp);
	eng_lane_flush(e);
	return left;
}

bool eng_tx(struct engine *e)
{
	LIST_HEAD(turn);
	bool sent = false;

	list_splice_tail_init(&e->tx, &turn);
	while (!list_empty(&turn)) {
		struct eng_qp *qp = list_first_entry(&turn, struct eng_qp, tx_node);

		list_del(&qp->tx_node);
		sent |= send_some(e, qp);
		eng_qp_touch(qp);
		if (unlikely(qp->ee))
			eng_ee_turn(qp);
	}
	if (unlikely(e->spoilt))
		eng_fail_spoilt(e);
	flush(e);
	return sent;
}
