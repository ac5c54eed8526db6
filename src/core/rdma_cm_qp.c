/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Queue pairs of the RDMA CM's ids: their attributes by state, and the queue pair that belongs to an id
 * (rdma_create_qp()), whose state follows that of the connection:
 *
 *  creation				INIT; in a datagram service RTS
 *  a REP is sent or received		RTR, then RTS, before the peer or the client knows of the connection
 *  REJ received, rdma_disconnect()	ERR: queued requests complete with a flush error
 */
#include "core/rdma_cm_priv.h"

static int attr_before_connection(struct rcm_id *id, struct ib_qp_attr *attr, int *mask)
{
	int ret;

	if (attr->qp_state != IB_QPS_INIT || !id->id.device)
		return -EINVAL;
	if (ib_find_cached_pkey(id->id.device, id->id.port_num, id->pkey,
				&attr->pkey_index))
		return -EINVAL;
	ret = rcm_take_qkey(id);
	if (ret)
		return ret;
	*mask = IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT;
	attr->port_num = (u8)id->id.port_num;
	if (is_datagram(id)) {
		*mask |= IB_QP_QKEY;
		attr->qkey = id->qkey;
	} else {
		*mask |= IB_QP_ACCESS_FLAGS;
		attr->qp_access_flags = 0;
	}
	return 0;
}

int rdma_init_qp_attr(struct rdma_cm_id *rdma_id, struct ib_qp_attr *qp_attr,
		      int *qp_attr_mask)
{
	struct rcm_id *id = rcm_of(rdma_id);
	int ret;

	if (!id->cm || is_datagram(id))
		return attr_before_connection(id, qp_attr, qp_attr_mask);
	ret = ib_cm_init_qp_attr(id->cm, qp_attr, qp_attr_mask);
	if (!ret && id->has_ack_timeout && *qp_attr_mask & IB_QP_TIMEOUT)
		qp_attr->timeout = id->ack_timeout_enc;
	if (!ret && id->min_rnr_timer_enc && *qp_attr_mask & IB_QP_MIN_RNR_TIMER)
		qp_attr->min_rnr_timer = id->min_rnr_timer_enc;
	if (!ret && qp_attr->qp_state == IB_QPS_RTR) /* the peer begins there: REQ or REP says so */
		qp_attr->rq_psn = id->seq_num;
	return ret;
}

/* --- the queue pair that belongs to an id --- */

static bool has_connected_qp(const struct rcm_id *id)
{
	return id->id.qp && !is_datagram(id);
}

u32 rcm_qp_num(struct rcm_id *id, const struct rdma_conn_param *param)
{
	id->qp_num = id->id.qp ? id->id.qp->qp_num : param->qp_num;
	return id->qp_num;
}

bool rcm_qp_has_srq(const struct rcm_id *id, const struct rdma_conn_param *param)
{
	return id->id.qp ? id->id.qp->srq != NULL : param->srq;
}

/* Attributes that one half of an extended reliable connection does not have are those of the other
 * half. */
static int attributes_of(const struct ib_qp *qp)
{
	if (qp->qp_type == IB_QPT_XRC_INI)
		return ~(IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER);
	if (qp->qp_type == IB_QPT_XRC_TGT)
		return ~(IB_QP_MAX_QP_RD_ATOMIC | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY);
	return ~0;
}

static int move_qp(struct rcm_id *id, struct ib_qp *qp, enum ib_qp_state state,
		   const struct rdma_conn_param *param)
{
	struct ib_qp_attr attr = {.qp_state = state};
	int mask, ret = rdma_init_qp_attr(&id->id, &attr, &mask);

	if (ret)
		return ret;
	if (param && state == IB_QPS_RTR)
		attr.max_dest_rd_atomic = param->responder_resources;
	if (param && state == IB_QPS_RTS)
		attr.max_rd_atomic = param->initiator_depth;
	return ib_modify_qp(qp, &attr, mask & attributes_of(qp));
}

/* The queue pair of a datagram service needs no peer, so it is moved to RTS at once. */
static int start_datagrams(struct rcm_id *id, struct ib_qp *qp)
{
	struct ib_qp_attr attr = {.qp_state = IB_QPS_RTR};
	int ret = move_qp(id, qp, IB_QPS_INIT, NULL);

	if (!ret)
		ret = ib_modify_qp(qp, &attr, IB_QP_STATE);
	attr.qp_state = IB_QPS_RTS;
	return ret ? ret : ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_SQ_PSN);
}

int rcm_qp_connect(struct rcm_id *id, const struct rdma_conn_param *param)
{
	int ret = 0;

	/* INIT is set once more, because the request has the access rights of the peer */
	for (enum ib_qp_state state = IB_QPS_INIT; has_connected_qp(id) && !ret && state <= IB_QPS_RTS;
	     state++)
		ret = move_qp(id, id->id.qp, state, param);
	return ret;
}

void rcm_qp_fail(struct rcm_id *id)
{
	struct ib_qp_attr attr = {.qp_state = IB_QPS_ERR};

	if (has_connected_qp(id))
		ib_modify_qp(id->id.qp, &attr, IB_QP_STATE);
}

/* The peer has accepted: complete the connection without the client. */
static void on_answer(struct rcm_id *id, struct rdma_cm_event *event)
{
	event->event = RDMA_CM_EVENT_ESTABLISHED;
	event->status = rcm_qp_connect(id, NULL);
	if (!event->status)
		event->status = ib_send_cm_rtu(id->cm, NULL, 0);
	if (!event->status)
		return;
	event->event = RDMA_CM_EVENT_CONNECT_ERROR;
	rcm_qp_fail(id);
	ib_send_cm_rej(id->cm, IB_CM_REJ_CONSUMER_DEFINED, NULL, 0, NULL, 0);
}

void rcm_qp_follow(struct rcm_id *id, struct rdma_cm_event *event)
{
	if (!has_connected_qp(id))
		return;
	if (event->event == RDMA_CM_EVENT_CONNECT_RESPONSE)
		on_answer(id, event);
	else if (event->event == RDMA_CM_EVENT_REJECTED)
		rcm_qp_fail(id);
}

int rdma_create_qp_(struct rdma_cm_id *rdma_id, struct ib_pd *pd,
		    struct ib_qp_init_attr *qp_init_attr, const char *client)
{
	struct rcm_id *id = rcm_of(rdma_id);
	struct ib_device *device = pd ? pd->device : qp_init_attr->xrcd ? qp_init_attr->xrcd->device : NULL;
	struct ib_qp *qp;
	int ret;

	if (!device || device != rdma_id->device || rdma_id->qp ||
	    qp_init_attr->qp_type != rdma_id->qp_type)
		return -EINVAL;
	qp = ib_create_qp_(pd, qp_init_attr, client);
	if (IS_ERR(qp))
		return (int)PTR_ERR(qp);
	ret = is_datagram(id) ? start_datagrams(id, qp) : move_qp(id, qp, IB_QPS_INIT, NULL);
	if (ret)
		ib_destroy_qp(qp);
	else
		rdma_id->qp = qp;
	return ret;
}

void rdma_destroy_qp(struct rdma_cm_id *id)
{
	if (id->qp)
		ib_destroy_qp(id->qp);
	id->qp = NULL;
}
