/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Attributes of a connection's queue pair by state (11.2.4.2), and reasons in words. */
#include "core/cm_priv.h"

#define S(state) (1u << CM_##state)
#define PEER_KNOWN                                                                       \
	(S(REQ_RCVD) | S(MRA_REQ_SENT) | S(REP_RCVD) | S(MRA_REP_SENT) | S(REP_SENT) |   \
	 S(MRA_REP_RCVD) | S(ESTABLISHED))
#define CONNECTING (S(REQ_SENT) | S(MRA_REQ_RCVD) | PEER_KNOWN)

static bool is_reliable(const struct cm_terms *terms)
{
	return terms->service != WIRE_CM_UC;
}

static int init_attr(const struct cm_id *id, struct ib_qp_attr *attr, int *mask)
{
	const struct cm_terms *terms = &id->conn.terms;

	if (ib_find_cached_pkey(id->id.device, terms->primary.port, terms->pkey,
				&attr->pkey_index))
		return -EINVAL;
	*mask = IB_QP_STATE | IB_QP_ACCESS_FLAGS | IB_QP_PKEY_INDEX | IB_QP_PORT;
	attr->qp_access_flags = IB_ACCESS_REMOTE_WRITE;
	if (terms->responder_resources)
		attr->qp_access_flags |= IB_ACCESS_REMOTE_READ;
	/* an adapter without atomic operations refuses the flag */
	if (terms->responder_resources && id->id.device->attrs.atomic_cap != IB_ATOMIC_NONE)
		attr->qp_access_flags |= IB_ACCESS_REMOTE_ATOMIC;
	attr->port_num = terms->primary.port;
	return 0;
}

static int alternate_attr(const struct cm_id *id, struct ib_qp_attr *attr)
{
	const struct cm_alternate *alternate = &id->conn.terms.alternate;

	attr->alt_port_num = alternate->route.port;
	attr->alt_timeout = alternate->ack_timeout_enc;
	if (ib_find_cached_pkey(id->id.device, alternate->route.port, id->conn.terms.pkey,
				&attr->alt_pkey_index))
		return -EINVAL;
	return cm_route_ah(id->id.device, &alternate->route, &attr->alt_ah_attr);
}

static int rtr_attr(const struct cm_id *id, struct ib_qp_attr *attr, int *mask)
{
	const struct cm_terms *terms = &id->conn.terms;

	if (cm_route_ah(id->id.device, &terms->primary, &attr->ah_attr))
		return -EINVAL;
	*mask = IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN;
	attr->path_mtu = (enum ib_mtu)terms->path_mtu;
	attr->dest_qp_num = terms->remote_qpn;
	attr->rq_psn = terms->rq_psn.v;
	if (is_reliable(terms)) {
		*mask |= IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER;
		attr->max_dest_rd_atomic = terms->responder_resources;
		attr->min_rnr_timer = 0;
	}
	if (!terms->alternate.loaded)
		return 0;
	*mask |= IB_QP_ALT_PATH;
	return alternate_attr(id, attr) ? -EINVAL : 0;
}

static int rts_attr(const struct cm_id *id, struct ib_qp_attr *attr, int *mask)
{
	const struct cm_terms *terms = &id->conn.terms;

	*mask = IB_QP_STATE;
	if (id->conn.lap_state != CM_LAP_UNINIT) { /* the QP is in RTS: only the alternate path changes */
		*mask |= IB_QP_ALT_PATH | IB_QP_PATH_MIG_STATE;
		attr->path_mig_state = IB_MIG_REARM;
		return alternate_attr(id, attr) ? -EINVAL : 0;
	}
	*mask |= IB_QP_SQ_PSN;
	attr->sq_psn = terms->sq_psn.v;
	if (is_reliable(terms)) {
		*mask |= IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY |
			 IB_QP_MAX_QP_RD_ATOMIC;
		attr->timeout = terms->ack_timeout_enc;
		attr->retry_cnt = terms->retry_count;
		attr->rnr_retry = terms->rnr_retry_count;
		attr->max_rd_atomic = terms->initiator_depth;
	}
	if (terms->alternate.loaded) {
		*mask |= IB_QP_PATH_MIG_STATE;
		attr->path_mig_state = IB_MIG_REARM;
	}
	return 0;
}

int ib_cm_init_qp_attr(struct ib_cm_id *cm_id, struct ib_qp_attr *qp_attr,
		       int *qp_attr_mask)
{
	const struct cm_id *id = cm_id_of(cm_id);
	u32 state = 1u << id->conn.state;

	if (!id->dev)
		return -ENODEV;
	if (qp_attr->qp_state == IB_QPS_INIT && (state & CONNECTING))
		return init_attr(id, qp_attr, qp_attr_mask);
	if (qp_attr->qp_state == IB_QPS_RTR && (state & PEER_KNOWN))
		return rtr_attr(id, qp_attr, qp_attr_mask);
	if (qp_attr->qp_state == IB_QPS_RTS && (state & PEER_KNOWN))
		return rts_attr(id, qp_attr, qp_attr_mask);
	return -EINVAL;
}

const char *ibcm_reject_msg(int reason)
{
	static const char *const names[] = {
		[IB_CM_REJ_NO_QP] = "no QP",
		[IB_CM_REJ_NO_EEC] = "no EEC",
		[IB_CM_REJ_NO_RESOURCES] = "no resources",
		[IB_CM_REJ_TIMEOUT] = "timeout",
		[IB_CM_REJ_UNSUPPORTED] = "unsupported request",
		[IB_CM_REJ_INVALID_COMM_ID] = "invalid communication id",
		[IB_CM_REJ_INVALID_COMM_INSTANCE] = "invalid communication instance",
		[IB_CM_REJ_INVALID_SERVICE_ID] = "nobody listens for the service id",
		[IB_CM_REJ_INVALID_TRANSPORT_TYPE] = "invalid transport service type",
		[IB_CM_REJ_STALE_CONN] = "stale connection",
		[IB_CM_REJ_RDC_NOT_EXIST] = "no RDC",
		[IB_CM_REJ_INVALID_GID] = "invalid primary GID",
		[IB_CM_REJ_INVALID_LID] = "invalid primary LID",
		[IB_CM_REJ_INVALID_SL] = "invalid primary SL",
		[IB_CM_REJ_INVALID_TRAFFIC_CLASS] = "invalid primary traffic class",
		[IB_CM_REJ_INVALID_HOP_LIMIT] = "invalid primary hop limit",
		[IB_CM_REJ_INVALID_PACKET_RATE] = "invalid primary packet rate",
		[IB_CM_REJ_INVALID_ALT_GID] = "invalid alternate GID",
		[IB_CM_REJ_INVALID_ALT_LID] = "invalid alternate LID",
		[IB_CM_REJ_INVALID_ALT_SL] = "invalid alternate SL",
		[IB_CM_REJ_INVALID_ALT_TRAFFIC_CLASS] = "invalid alternate traffic class",
		[IB_CM_REJ_INVALID_ALT_HOP_LIMIT] = "invalid alternate hop limit",
		[IB_CM_REJ_INVALID_ALT_PACKET_RATE] = "invalid alternate packet rate",
		[IB_CM_REJ_PORT_CM_REDIRECT] = "the CM is at another port",
		[IB_CM_REJ_PORT_REDIRECT] = "the service is at another port",
		[IB_CM_REJ_INVALID_MTU] = "invalid path MTU",
		[IB_CM_REJ_INSUFFICIENT_RESP_RESOURCES] =
			"insufficient responder resources",
		[IB_CM_REJ_CONSUMER_DEFINED] = "the consumer refused",
		[IB_CM_REJ_INVALID_RNR_RETRY] = "invalid RNR retry count",
		[IB_CM_REJ_DUPLICATE_LOCAL_COMM_ID] = "duplicate communication id",
		[IB_CM_REJ_INVALID_CLASS_VERSION] = "invalid class version",
		[IB_CM_REJ_INVALID_FLOW_LABEL] = "invalid primary flow label",
		[IB_CM_REJ_INVALID_ALT_FLOW_LABEL] = "invalid alternate flow label",
	};

	if (reason < 0 || (size_t)reason >= ARRAY_SIZE(names) || !names[reason])
		return "unknown reason";
	return names[reason];
}
