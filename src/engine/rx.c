/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * From the link to the transport: decode, find the QP, check the partition
 * (IBA v1 9.6.1: QP, P_Key, then the transport's own checks).
 */
#include <string.h>

#include "abi/target.h"
#include "engine/private.h"
#include "transport/fast.h"

/* which port of ours a packet came in by when the link does not say: the one
 * whose address is its destination */
static unsigned port_of(const struct engine *e, const struct wire_packet *pkt)
{
	const struct abi_devpage *page = e->cfg.devpage;

	for (unsigned i = 0; i < page->num_ports && page->num_ports > 1; i++) {
		const struct abi_devport *port = &page->port[i];

		if (wire_addr_is_of(wire_packet_dest(pkt), wire_port_addrs(port->lid, port->lmc)))
			return i + 1;
	}
	return 1;
}

/* C9-34: QP1 receives by any P_Key of its port, and has none of its own. Its P_Key index is therefore that of the
 * packet that it receives, which the completion reports, or of the request that it sends (hca/post.c). */
static bool gsi_takes_pkey(struct eng_qp *qp, uint16_t pkey)
{
	const int index = eng_port_find_pkey(eng_port(qp->engine, qp->init.port_num), pkey);

	if (index < 0)
		return false;
	tp_qp_attr(qp->tp)->pkey_index = (uint16_t)index;
	eng_find_pkey(qp);
	return true;
}

bool eng_pkey_passes(struct eng_qp *qp, uint16_t pkey)
{
	const struct tp_attr *attr = tp_qp_attr(qp->tp);

	switch (qp->init.qpn) {
	case 0: /* C9-33: not checked */
		return true;
	case 1:
		return gsi_takes_pkey(qp, pkey);
	default:
		eng_refresh_pkey(qp);
		return wire_pkeys_match(attr->pkey, pkey);
	}
}

struct wire_port_addrs eng_addrs_of(const struct eng_qp *qp, unsigned port_num, uint16_t lid)
{
	return wire_port_addrs(lid, eng_port(qp->engine, port_num)->lmc);
}

bool eng_is_from_peer(struct eng_qp *qp, struct wire_port_addrs sender, wire_addr_t source,
		      uint16_t pkey, bool mig_req)
{
	if (unlikely(qp->awaits_migration))
		eng_path_watch(qp, source, pkey, mig_req);
	return !tp_is_connected(qp->tp) ||
	       wire_addr_is_of(wire_addr_of_lid(tp_qp_attr(qp->tp)->av.dlid), sender);
}

static void to_qp(struct eng_qp *qp, const struct wire_packet *pkt)
{
	struct wire_port_addrs sender =
		eng_addrs_of(qp, tp_qp_attr(qp->tp)->port_num, pkt->lrh.slid);

	if (unlikely(!eng_is_from_peer(qp, sender, wire_packet_source(pkt), pkt->bth.pkey,
				       pkt->bth.mig_req))) {
		qp->engine->stats.rx_malformed++;
		return;
	}
	if (unlikely(!eng_pkey_passes(qp, pkt->bth.pkey))) {
		qp->engine->stats.rx_bad_pkey++;
		return;
	}
	eng_receive(qp, pkt);
	eng_qp_touch(qp);
}

/* A QP may be attached by several LIDs: is @m its first to the group? */
static bool is_first(const struct eng_mcast *m)
{
	const struct eng_mcast *other;

	list_for_each_entry(other, &m->qp->mcast, in_qp)
		if (!memcmp(&other->gid, &m->gid, sizeof(m->gid)))
			break;
	return other == m;
}

/* Did a QP that does not want its own multicast packets send this one? */
static bool is_unwanted_echo(const struct eng_qp *qp, const struct wire_packet *pkt)
{
	const struct abi_devport *port;

	if (!qp->init.blocks_own_multicast || pkt->deth.src_qpn != qp->init.qpn)
		return false;
	port = eng_port(qp->engine, tp_qp_attr(qp->tp)->port_num);
	return wire_addr_is_of(wire_packet_source(pkt), wire_port_addrs(port->lid, port->lmc));
}

/* 10.5.2: a copy for every QP attached to the group */
static void to_group(struct engine *e, const struct wire_packet *pkt)
{
	struct eng_mcast *m;

	if (pkt->lrh.lnh != WIRE_LNH_GRH)
		return;
	list_for_each_entry(m, &e->mcast, in_engine)
		if (!memcmp(&m->gid, &pkt->grh.dgid, sizeof(m->gid)) && is_first(m) &&
		    !is_unwanted_echo(m->qp, pkt))
			to_qp(m->qp, pkt);
}

/* 9.6.1.1: a packet of RD is for the EE context that it names; the QP comes later */
static void to_ee_context(struct engine *e, const struct wire_packet *pkt)
{
	struct eng_qp *qp = eng_table_get(&e->qps, pkt->rd_ee_context);

	if (qp && qp->ee)
		to_qp(qp, pkt);
	else
		e->stats.rx_no_qp++;
}

static void packet(struct engine *e, const void *bytes, size_t len, unsigned port_num)
{
	struct wire_packet pkt;
	struct eng_qp *qp;

	if (unlikely(*(const uint8_t *)bytes == ABI_TARGET_MARK)) {
		eng_target_message(e, bytes, len);
		return;
	}
	if (unlikely(wire_packet_decode(bytes, len, &pkt) < 0)) {
		e->stats.rx_malformed++;
		return;
	}
	if (e->cfg.link_ops->is_checked)
		pkt.ip_checked = e->cfg.link_ops->is_checked(e->cfg.link);
	if (unlikely(pkt.bth.dest_qpn == WIRE_QPN_MULTICAST)) {
		to_group(e, &pkt);
		return;
	}
	if (unlikely((pkt.bth.opcode & WIRE_TRANSPORT_MASK) == WIRE_RD)) {
		to_ee_context(e, &pkt);
		return;
	}
	if (pkt.bth.dest_qpn < 2 && !port_num)
		port_num = port_of(e, &pkt);
	qp = eng_qp_find(e, pkt.bth.dest_qpn, port_num);
	if (likely(qp != NULL))
		to_qp(qp, &pkt);
	else
		e->stats.rx_no_qp++;
}

unsigned eng_rx_packets(struct engine *e, unsigned most)
{
	const struct eng_link_ops *link = e->cfg.link_ops;
	unsigned n = 0, port_num = 0;
	const void *bytes;
	size_t len;

	while (n < most && (bytes = link->receive(e->cfg.link, &len, &port_num))) {
		if (n++ == 0)
			e->now = e->cfg.now(e->cfg.ctx);
		packet(e, bytes, len, port_num);
		link->release(e->cfg.link);
	}
	return n;
}
