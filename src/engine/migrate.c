/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Automatic path migration (IBA v1 17.2.8): a connected QP with an alternate path goes over to
 * it when the primary path fails, and its peer follows.
 *
 *   MIGRATED  no alternate path, or it is the one in use. Packets have MigReq set
 *   REARM     the program has loaded an alternate path. Packets have MigReq clear
 *   ARMED     the peer has, too: a packet came with MigReq clear. The QP migrates when
 *             - its retries are exhausted, or its port is down when it has to send again,
 *             - a packet comes from the alternate path with MigReq set: the peer has migrated,
 *             - the program says MIGRATED
 *
 * After a migration the alternate path is the primary one, and there is none until the program
 * loads another. What was not acknowledged is sent again by the new path, so that nothing is
 * lost and nothing is executed twice.
 */
#include "engine/private.h"

void eng_path_loaded(struct eng_qp *qp, int mask)
{
	qp->has_alternate |= !!(mask & IBV_QP_ALT_PATH);
	qp->awaits_migration =
		qp->attr.path_mig_state != IBV_MIG_MIGRATED && qp->has_alternate;
	qp->migration_refused = false;
}

bool eng_path_may_be(const struct eng_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	bool has_alternate = qp->has_alternate || mask & IBV_QP_ALT_PATH;

	if (mask & IBV_QP_ALT_PATH &&
	    (attr->alt_port_num < 1 ||
	     attr->alt_port_num > qp->engine->cfg.devpage->num_ports ||
	     attr->alt_pkey_index >= ABI_PKEYS))
		return false;
	return !(mask & IBV_QP_PATH_MIG_STATE) || attr->path_mig_state == IBV_MIG_MIGRATED ||
	       (attr->path_mig_state <= IBV_MIG_ARMED && has_alternate);
}

void eng_migrate(struct eng_qp *qp)
{
	struct tp_attr *t = tp_qp_attr(qp->tp);
	struct ibv_qp_attr *q = &qp->attr;

	q->ah_attr = q->alt_ah_attr;
	q->ah_attr.port_num = q->port_num = q->alt_port_num;
	q->pkey_index = q->alt_pkey_index;
	q->timeout = q->alt_timeout;
	q->path_mig_state = IBV_MIG_MIGRATED;
	t->av = eng_av_of(&q->ah_attr);
	t->port_num = q->port_num;
	t->pkey_index = q->pkey_index;
	t->timeout_enc = q->timeout & 0x1f;
	qp->has_alternate = qp->awaits_migration = false;
	qp->held_bytes = 0; /* a packet that waits for room on the old path is lost */
	tp_qp_path_changed(qp->tp);
	eng_find_pkey(qp);
	eng_flow_drop(qp);
	qp->engine->cfg.async_event(qp->engine->cfg.ctx, IBV_EVENT_PATH_MIG, qp->init.ctx);
}

static bool is_port_up(const struct eng_qp *qp)
{
	uint8_t state = eng_port(qp->engine, qp->attr.port_num)->state;

	return state == IBV_PORT_ACTIVE || state == IBV_PORT_ACTIVE_DEFER;
}

bool eng_path_failed(void *ctx, bool exhausted)
{
	struct eng_qp *qp = ctx;

	if (qp->attr.path_mig_state != IBV_MIG_ARMED || (!exhausted && is_port_up(qp)))
		return false;
	eng_migrate(qp);
	return true;
}

static bool is_from_alternate(const struct eng_qp *qp, wire_addr_t source, uint16_t pkey)
{
	const struct ibv_qp_attr *q = &qp->attr;
	const struct abi_devport *port = eng_port(qp->engine, q->alt_port_num);

	return wire_addr_is_of(source, eng_addrs_of(qp, q->alt_port_num, q->alt_ah_attr.dlid)) &&
	       wire_pkeys_match(port->pkey[q->alt_pkey_index], pkey);
}

void eng_path_watch(struct eng_qp *qp, wire_addr_t source, uint16_t pkey, bool mig_req)
{
	struct ibv_qp_attr *q = &qp->attr;

	if (q->path_mig_state == IBV_MIG_REARM) {
		if (!mig_req &&
		    wire_addr_is_of(source, eng_addrs_of(qp, q->port_num, q->ah_attr.dlid)))
			q->path_mig_state = IBV_MIG_ARMED;
	} else if (mig_req) { /* ARMED */
		if (is_from_alternate(qp, source, pkey)) {
			eng_migrate(qp);
		} else if (!qp->migration_refused) {
			/* one event, however many packets with MigReq come */
			qp->migration_refused = true;
			qp->engine->cfg.async_event(qp->engine->cfg.ctx, IBV_EVENT_PATH_MIG_ERR,
						    qp->init.ctx);
		}
	}
}
