/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * From the transport to the link: each QP with something to say gets a few
 * packets per turn, each put together in the link's own memory: headers,
 * payload, padding, one copy.
 */
#include <string.h>

#include "engine/private.h"

void eng_qp_touch(struct eng_qp *qp)
{
	struct engine *e = qp->engine;

	if (tp_qp_wants_transmit(qp->tp) && list_empty(&qp->tx_node))
		list_add_tail(&qp->tx_node, &e->tx);
	e->next_expiry = mono_min(e->next_expiry, tp_qp_expiry(qp->tp));
}

static void fill_grh(const struct engine *e, const struct tp_av *av, struct wire_grh *grh)
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

/* where the packet goes: an address vector becomes LRH and GRH. Return: the
 * port by which it leaves */
static unsigned fill_route(const struct eng_qp *qp, const struct tp_av *av,
			   struct wire_packet *pkt)
{
	const struct engine *e = qp->engine;
	unsigned port_num = qp->init.qpn < 2 ? qp->init.port_num : av->port_num;
	const struct abi_devport *port = eng_port(e, port_num);
	uint16_t path_mask = (uint16_t)((1u << port->lmc) - 1);

	pkt->lrh = (struct wire_lrh){
		.vl = qp->init.qpn == 0 ? WIRE_VL_MANAGEMENT : 0,
		.sl = av->sl,
		.lnh = av->is_global ? WIRE_LNH_GRH : WIRE_LNH_BTH,
		.dlid = av->dlid,
		.slid = port->lid ? port->lid | (av->src_path_bits & path_mask) :
				    WIRE_LID_PERMISSIVE,
	};
	if (av->is_global)
		fill_grh(e, av, &pkt->grh);
	pkt->bth.mig_req = true; /* path migration state MIGRATED (17.2.8) */
	return port_num;
}

static size_t assemble(struct tp_packet_out *out, uint8_t *to)
{
	int header = wire_packet_encode(&out->hdr, to);
	size_t at = (size_t)header;

	if (unlikely(header < 0))
		return 0;
	for (unsigned i = 0; i < out->num_pieces; i++) {
		memcpy(to + at, out->piece[i].ptr, out->piece[i].len);
		at += out->piece[i].len;
	}
	memset(to + at, 0, out->hdr.bth.pad_bytes);
	return at + out->hdr.bth.pad_bytes;
}

/* Return: true when the QP sent something */
static bool send_some(struct engine *e, struct eng_qp *qp)
{
	size_t room = WIRE_HEADERS_MAX + tp_qp_attr(qp->tp)->mtu_bytes + 4;
	struct tp_packet_out out;
	bool sent = false;

	for (unsigned n = 0; n < ENG_TX_BUDGET && tp_qp_wants_transmit(qp->tp); n++) {
		uint8_t *to = e->cfg.link_ops->reserve(e->cfg.link, room);
		unsigned port_num;
		size_t len;

		if (!to) {
			e->link_full = true;
			e->stats.link_full++;
			return sent;
		}
		if (!tp_qp_transmit(qp->tp, &out, e->now))
			return sent;
		port_num = fill_route(qp, out.av, &out.hdr);
		len = assemble(&out, to);
		e->cfg.link_ops->commit(e->cfg.link, port_num, len);
		e->stats.tx_packets++;
		e->stats.tx_bytes += len;
		e->unflushed = sent = true;
	}
	return sent;
}

bool eng_tx(struct engine *e)
{
	LIST_HEAD(turn);
	bool sent = false;

	e->link_full = false;
	list_splice_tail_init(&e->tx, &turn);
	while (!list_empty(&turn) && !e->link_full) {
		struct eng_qp *qp = list_first_entry(&turn, struct eng_qp, tx_node);

		list_del(&qp->tx_node);
		sent |= send_some(e, qp);
		eng_qp_touch(qp);
	}
	/* those that had no turn come first next time */
	list_splice_tail_init(&e->tx, &turn);
	list_splice_tail_init(&turn, &e->tx);
	if (e->unflushed) {
		e->unflushed = false;
		e->cfg.link_ops->flush(e->cfg.link);
	}
	if (!list_empty(&e->tx) && e->cfg.kick)
		e->cfg.kick(e->cfg.ctx);
	return sent;
}
