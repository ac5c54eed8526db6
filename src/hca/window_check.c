/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The check whether a program may have a window into the memory of another: all
 * that a responder checks of a packet, by softibd's own state.
 */
#include "hca/window_private.h"

uint16_t hca_qp_pkey(const struct hca_qp *qp)
{
	const struct ib_qp_attr *a = &qp->ib.attr;
	const struct hca *hca = hca_of(qp->ib.device);

	if (!a->port_num || a->port_num > hca->ib.phys_port_cnt ||
	    a->pkey_index >= ABI_PKEYS)
		return 0;
	return hca_devport(hca, a->port_num)->pkey[a->pkey_index];
}

struct fab_way *hca_qp_way(const struct hca_qp *qp)
{
	const struct ib_qp_attr *a = &qp->ib.attr;
	struct hca *hca = hca_of(qp->ib.device);
	uint16_t pkey = hca_qp_pkey(qp);
	struct fab_way *way;

	if (!wire_pkey_is_valid(pkey) || !hca_devport(hca, a->port_num)->lid ||
	    fab_way_create(hca->fab, hca->node, a->port_num, (uint16_t)a->ah_attr.dlid,
			   a->ah_attr.sl, pkey, &way))
		return NULL;
	return way;
}

/* Return: the program's QP at the end of @way that @qp is connected to; NULL */
static const struct hca_qp *peer_of(const struct hca_qp *qp, const struct fab_way *way)
{
	const struct fab_sink *sink = fab_way_sink(way);
	const struct hca_port *port = sink->ctx;
	const struct hca_qp *peer;

	if (sink->deliver != hca_port_deliver || qp->ib.attr.dest_qp_num < 2)
		return NULL;
	peer = eng_table_get(&port->hca->qps, qp->ib.attr.dest_qp_num);
	if (!peer || !peer->user || !hca_qp_may_use_windows(peer) ||
	    peer->ib.attr.port_num != port->port_num)
		return NULL;
	return peer;
}

static bool mtu_fits(const struct window_connection *c)
{
	unsigned bytes = 128u << c->from_qp->ib.attr.path_mtu;

	return c->from_qp->ib.attr.path_mtu == c->to_qp->ib.attr.path_mtu &&
	       bytes <= fab_way_mtu(c->way) && bytes <= fab_way_mtu(c->back);
}

static bool find_qps(struct hca_windows *w, uint32_t qpn, struct window_connection *c)
{
	const struct hca_qp *qp = eng_table_get(&w->user->hca->qps, qpn & 0xffffff);

	/* in the program it is in RTS, of which softibd may read later (ABI_CMD_MODIFIED) */
	if (!qp || qp->user != w->user || !hca_qp_may_use_windows(qp) ||
	    (qp->ib.state != IB_QPS_RTR && qp->ib.state != IB_QPS_RTS))
		return false;
	c->from_qp = qp;
	c->way = hca_qp_way(qp);
	c->to_qp = c->way ? peer_of(qp, c->way) : NULL;
	if (!c->to_qp || !c->to_qp->user->windows || !hca_qp_receives(c->to_qp))
		return false;
	c->to = c->to_qp->user->windows;
	c->back = hca_qp_way(c->to_qp);
	return c->back && peer_of(c->to_qp, c->back) == qp &&
	       wire_pkeys_match(hca_qp_pkey(qp), hca_qp_pkey(c->to_qp)) && mtu_fits(c);
}

static bool is_for_region(const struct hca_key *key, uint32_t rkey, struct window_connection *c)
{
	const struct hca_mr *mr = container_of(key, struct hca_mr, key);

	if (mr->ib.rkey != rkey || mr->ib.pd != c->to_qp->ib.pd)
		return false;
	c->mr = &mr->ib;
	c->access &= mr->ib.access;
	return true;
}

/* Only the target knows what a memory window is bound to, and its current key, so softibd leaves
 * the check of these to the target. A target that answers wrongly grants no more than access to
 * its own memory, to a peer that it is connected to. */
static bool is_for_window(const struct hca_key *key, const struct window_connection *c)
{
	return container_of(key, struct hca_mw, key)->ib.pd == c->to_qp->ib.pd;
}

static bool find_key(uint32_t rkey, struct window_connection *c)
{
	const struct hca_key *key = eng_table_get(&c->to->user->hca->keys, rkey >> 8);

	if (!key)
		return false;
	c->access = (int)(c->to_qp->ib.attr.qp_access_flags & REMOTE_RIGHTS);
	if (!(key->is_window ? is_for_window(key, c) : is_for_region(key, rkey, c)))
		return false;
	if (!c->to_qp->ib.attr.max_dest_rd_atomic)
		c->access &= IBV_ACCESS_REMOTE_WRITE;
	return c->access != 0;
}

void hca_window_free_ways(struct window_connection *c)
{
	if (c->way)
		fab_way_free(c->way);
	if (c->back)
		fab_way_free(c->back);
}

bool hca_window_find(struct hca_windows *w, uint32_t qpn, uint32_t rkey, struct window_connection *c)
{
	*c = (struct window_connection){0};
	if (find_qps(w, qpn, c) && find_key(rkey, c))
		return true;
	hca_window_free_ways(c);
	return false;
}
