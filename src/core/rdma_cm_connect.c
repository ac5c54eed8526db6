/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Connection requests and their answers, and the CM's events about them. */
#include "core/rdma_cm_priv.h"

#define RESPONSE_TIMEOUT_ENC 20 /* 4.3 s */
#define MAX_CM_RETRIES	     15

/* --- events of the CM for an end of a connection --- */

static void on_rep(struct rdma_cm_event *event, const struct ib_cm_event *cm_event)
{
	const struct ib_cm_rep_event_param *rep = &cm_event->param.rep_rcvd;

	event->event = RDMA_CM_EVENT_CONNECT_RESPONSE;
	event->ece = rep->ece;
	event->param.conn = (struct rdma_conn_param){
		.private_data = cm_event->private_data,
		.private_data_len = IB_CM_REP_PRIVATE_DATA_SIZE,
		.responder_resources = rep->responder_resources,
		.initiator_depth = rep->initiator_depth,
		.flow_control = rep->flow_control,
		.rnr_retry_count = rep->rnr_retry_count & 7,
		.srq = rep->srq,
		.qp_num = rep->remote_qpn,
		.qkey = rep->remote_qkey,
	};
}

static void on_rej(struct rdma_cm_event *event, const struct ib_cm_event *cm_event)
{
	event->event = RDMA_CM_EVENT_REJECTED;
	event->status = (int)cm_event->param.rej_rcvd.reason;
	event->param.conn.private_data = cm_event->private_data;
	event->param.conn.private_data_len = IB_CM_REJ_PRIVATE_DATA_SIZE;
}

static void on_rtu(struct rdma_cm_event *event, const struct ib_cm_event *cm_event)
{
	event->event = RDMA_CM_EVENT_ESTABLISHED;
}

static void on_no_answer(struct rdma_cm_event *event, const struct ib_cm_event *cm_event)
{
	event->event = RDMA_CM_EVENT_UNREACHABLE;
	event->status = -ETIMEDOUT;
}

static void on_end(struct rdma_cm_event *event, const struct ib_cm_event *cm_event)
{
	event->event = RDMA_CM_EVENT_DISCONNECTED;
	event->status = cm_event->event == IB_CM_DREQ_ERROR ? -ETIMEDOUT : 0;
}

static void on_timewait_exit(struct rdma_cm_event *event,
			     const struct ib_cm_event *cm_event)
{
	event->event = RDMA_CM_EVENT_TIMEWAIT_EXIT;
}

static void (*const translations[])(struct rdma_cm_event *event,
				    const struct ib_cm_event *cm_event) = {
	[IB_CM_REQ_ERROR] = on_no_answer,
	[IB_CM_REP_ERROR] = on_no_answer,
	[IB_CM_REP_RECEIVED] = on_rep,
	[IB_CM_RTU_RECEIVED] = on_rtu,
	[IB_CM_USER_ESTABLISHED] = on_rtu,
	[IB_CM_DREQ_ERROR] = on_end,
	[IB_CM_DREQ_RECEIVED] = on_end,
	[IB_CM_DREP_RECEIVED] = on_end,
	[IB_CM_TIMEWAIT_EXIT] = on_timewait_exit,
	[IB_CM_REJ_RECEIVED] = on_rej,
};

/* The handler of a connection's ib_cm_id. */
static int on_connection(struct ib_cm_id *cm, const struct ib_cm_event *cm_event)
{
	struct rdma_cm_event event = {0};
	struct rcm_id *id = cm->context;

	if (cm_event->event >= ARRAY_SIZE(translations) || !translations[cm_event->event])
		return 0;
	translations[cm_event->event](&event, cm_event);
	rcm_qp_follow(id, &event);
	if (event.event == RDMA_CM_EVENT_DISCONNECTED) {
		if (id->state == RCM_DISCONNECT) /* it has been reported already */
			return 0;
		id->state = RCM_DISCONNECT;
	}
	/* if the handler destroys the id, that destroys @cm, too */
	if (id->id.event_handler(&id->id, &event) == 0)
		return 0;
	id->cm = NULL;
	rdma_destroy_id(&id->id);
	return 1;
}

/* --- requests that arrive --- */

static void fill_request(const struct rcm_id *id, struct rdma_cm_event *event,
			 const struct ib_cm_event *cm_event)
{
	const size_t header = rcm_header_bytes(id);
	const struct ib_cm_req_event_param *req = &cm_event->param.req_rcvd;

	event->event = RDMA_CM_EVENT_CONNECT_REQUEST;
	event->ece = req->ece;
	event->param.conn = (struct rdma_conn_param){
		.private_data =
			(const u8 *)cm_event->private_data + header,
		.private_data_len = (u8)(IB_CM_REQ_PRIVATE_DATA_SIZE - header),
		.responder_resources = req->responder_resources,
		.initiator_depth = req->initiator_depth,
		.flow_control = req->flow_control,
		.retry_count = req->retry_count & 7,
		.rnr_retry_count = req->rnr_retry_count & 7,
		.srq = req->srq,
		.qp_num = req->remote_qpn,
		.qkey = req->remote_qkey,
	};
}

static void fill_datagram_request(const struct rcm_id *id, struct rdma_cm_event *event,
				  const struct ib_cm_event *cm_event)
{
	const size_t header = rcm_header_bytes(id);

	event->event = RDMA_CM_EVENT_CONNECT_REQUEST;
	event->param.ud.private_data = (const u8 *)cm_event->private_data + header;
	event->param.ud.private_data_len = (u8)(IB_CM_SIDR_REQ_PRIVATE_DATA_SIZE - header);
}

static bool takes_request(const struct rcm_id *listener, const struct ib_cm_event *event)
{
	return (event->event == IB_CM_SIDR_REQ_RECEIVED) == is_datagram(listener) &&
	       (!listener->backlog || listener->waiting < listener->backlog);
}

/* Find the listener of a request, and the addresses of the request. If the request has an IP header,
 * it selects among the listeners with an IP address. A listener with a GID gets the requests that
 * are for none of these. The request of a datagram service has no GID. */
static struct rcm_id *find_listener(const struct rcm_service *service, __be64 service_id,
				    const struct ib_cm_event *event, struct rdma_addr *addr)
{
	struct rcm_id *listener = NULL;

	if (!rcm_get_header(rcm_service_port_space(service), event->private_data,
			    rcm_service_port(service), addr))
		listener = rcm_find_listener(service, &addr->src_addr);
	if (listener)
		return listener;
	if (event->event == IB_CM_REQ_RECEIVED) {
		rcm_ib_addr_of_path(event->param.req_rcvd.primary_path, service_id, addr);
		return rcm_find_listener(service, &addr->src_addr);
	}
	listener = rcm_find_ib_listener(service);
	if (listener)
		*addr = (struct rdma_addr){.src_addr = listener->id.route.addr.src_addr};
	return listener;
}

static struct rcm_id *accept_request(const struct rcm_service *service,
				     struct ib_cm_id *cm, const struct ib_cm_event *event)
{
	const struct rdma_cm_id *from;
	struct rcm_id *id, *listener;
	struct rdma_addr addr;

	listener = find_listener(service, cm->service_id, event, &addr);
	if (!listener || !takes_request(listener, event))
		return NULL;
	from = &listener->id;
	id = rcm_alloc(listener->rt, listener->node_name, from->event_handler,
		       from->context, from->ps, from->qp_type);
	if (!id)
		return NULL;
	id->id.route.addr = addr;
	rdma_set_owner(&id->id, listener->pid, listener->comm);
	rcm_attach(id, cm->device,
		   is_datagram(id) ? event->param.sidr_req_rcvd.port : event->param.req_rcvd.port);
	ib_get_cached_gid(cm->device, id->id.port_num, 0, &id->id.route.sgid);
	ib_get_cached_pkey(cm->device, id->id.port_num, 0, &id->pkey);
	id->state = RCM_CONNECT;
	id->listener = listener;
	listener->waiting++;
	id->cm = cm;
	rcm_own(id, cm);
	return id;
}

int rcm_on_listener(struct ib_cm_id *cm, const struct ib_cm_event *cm_event)
{
	bool datagram = cm_event->event == IB_CM_SIDR_REQ_RECEIVED;
	struct rdma_cm_event event = {0};
	struct rcm_id *id;

	if (cm_event->event != IB_CM_REQ_RECEIVED && !datagram)
		return 0;
	id = accept_request(cm->context, cm, cm_event);
	if (!id)
		return 1; /* the caller destroys @cm, which rejects the request */
	cm->context = id;
	cm->cm_handler = on_connection;
	if (datagram) {
		fill_datagram_request(id, &event, cm_event);
	} else {
		id->path = *cm_event->param.req_rcvd.primary_path;
		id->id.route.path_rec = &id->path;
		id->id.route.num_paths = 1;
		id->id.route.dgid = id->path.dgid;
		fill_request(id, &event, cm_event);
	}
	if (!id->id.event_handler(&id->id, &event))
		return 0;
	id->cm = NULL;
	rdma_destroy_id(&id->id);
	return 1;
}

/* --- sending requests --- */

/* Write the core's IP header, then the client's data. Return: the number of bytes; -EINVAL */
static int put_private_data(const struct rcm_id *id, const struct rdma_conn_param *param,
			    u8 *data, size_t room)
{
	const size_t header = rcm_header_bytes(id);

	if (param->private_data_len > room - header)
		return -EINVAL;
	rcm_put_header(id, data);
	if (param->private_data_len)
		memcpy(data + header, param->private_data, param->private_data_len);
	return (int)header + param->private_data_len;
}

static __be64 service_of_peer(const struct rcm_id *id)
{
	return rcm_service_id(id->id.ps, &id->id.route.addr.dst_addr);
}

static int send_req(struct rcm_id *id, const struct rdma_conn_param *param)
{
	u8 data[IB_CM_REQ_PRIVATE_DATA_SIZE];
	int bytes = put_private_data(id, param, data, sizeof(data));
	struct ib_cm_req_param req = {
		.primary_path = &id->path,
		.service_id = service_of_peer(id),
		.qp_num = rcm_qp_num(id, param),
		.qp_type = id->id.qp_type,
		.starting_psn = id->seq_num,
		.private_data = data,
		.private_data_len = (u8)bytes,
		.responder_resources = param->responder_resources,
		.initiator_depth = param->initiator_depth,
		.flow_control = param->flow_control,
		.retry_count = MIN(param->retry_count, 7),
		.rnr_retry_count = MIN(param->rnr_retry_count, 7),
		.remote_cm_response_timeout = RESPONSE_TIMEOUT_ENC,
		.local_cm_response_timeout = RESPONSE_TIMEOUT_ENC,
		.max_cm_retries = MAX_CM_RETRIES,
		.srq = rcm_qp_has_srq(id, param),
		.ece = id->ece,
		.max_redirects = IB_CM_MAX_REDIRECTS,
	};

	return bytes < 0 ? bytes : ib_send_cm_req(id->cm, &req);
}

/* The handler of the ib_cm_id that resolves a datagram service. */
static int on_sidr_rep(struct ib_cm_id *cm, const struct ib_cm_event *cm_event)
{
	const struct ib_cm_sidr_rep_event_param *rep = &cm_event->param.sidr_rep_rcvd;
	struct rdma_cm_event event = {.event = RDMA_CM_EVENT_UNREACHABLE,
				      .status = -ETIMEDOUT};
	struct rcm_id *id = cm->context;

	if (cm_event->event == IB_CM_SIDR_REP_RECEIVED) {
		event.param.ud.private_data = cm_event->private_data;
		event.param.ud.private_data_len = IB_CM_SIDR_REP_PRIVATE_DATA_SIZE;
		event.event = RDMA_CM_EVENT_ESTABLISHED;
		event.status = (int)rep->status;
		if (rep->status != IB_SIDR_SUCCESS)
			event.event = RDMA_CM_EVENT_UNREACHABLE;
		event.param.ud.qp_num = rep->qpn;
		event.param.ud.qkey = rep->qkey;
		ib_cm_init_ah_attr(cm, &event.param.ud.ah_attr);
	}
	if (!id->id.event_handler(&id->id, &event))
		return 0;
	id->cm = NULL;
	rdma_destroy_id(&id->id);
	return 1;
}

static int send_sidr_req(struct rcm_id *id, const struct rdma_conn_param *param)
{
	u8 data[IB_CM_SIDR_REQ_PRIVATE_DATA_SIZE];
	int bytes = put_private_data(id, param, data, sizeof(data));
	struct ib_cm_sidr_req_param req = {
		.path = &id->path,
		.service_id = service_of_peer(id),
		.timeout_ms = 1ul << (RESPONSE_TIMEOUT_ENC - 8),
		.private_data = data,
		.private_data_len = (u8)bytes,
		.max_cm_retries = MAX_CM_RETRIES,
		.max_redirects = IB_CM_MAX_REDIRECTS,
	};

	return bytes < 0 ? bytes : ib_send_cm_sidr_req(id->cm, &req);
}

int rdma_connect(struct rdma_cm_id *rdma_id, struct rdma_conn_param *conn_param)
{
	struct rcm_id *id = rcm_of(rdma_id);
	struct ib_cm_id *cm;
	int ret;

	rcm_trace_call(id, "connect");
	if (id->state != RCM_ROUTE_RESOLVED)
		return -EINVAL;
	cm = ib_create_cm_id_(rdma_id->device, is_datagram(id) ? on_sidr_rep : on_connection, id,
			      "rdma_cm");
	if (IS_ERR(cm))
		return (int)PTR_ERR(cm);
	id->cm = cm;
	rcm_own(id, cm);
	ret = is_datagram(id) ? send_sidr_req(id, conn_param) : send_req(id, conn_param);
	if (ret) {
		ib_destroy_cm_id(cm);
		id->cm = NULL;
	} else {
		id->state = RCM_CONNECT;
	}
	return ret;
}

int rdma_connect_ece(struct rdma_cm_id *id, struct rdma_conn_param *conn_param,
		     const struct ib_cm_ece *ece)
{
	rcm_of(id)->ece = *ece;
	return rdma_connect(id, conn_param);
}

/* --- sending answers --- */

/* The QP of the id is moved to RTS first, because the peer may send as soon as it has the REP. */
static int send_rep(struct rcm_id *id, const struct rdma_conn_param *param)
{
	struct ib_cm_rep_param rep = {
		.qp_num = rcm_qp_num(id, param),
		.starting_psn = id->seq_num,
		.private_data = param->private_data,
		.private_data_len = param->private_data_len,
		.responder_resources = param->responder_resources,
		.initiator_depth = param->initiator_depth,
		.flow_control = param->flow_control,
		.rnr_retry_count = MIN(param->rnr_retry_count, 7),
		.srq = rcm_qp_has_srq(id, param),
		.ece = id->ece,
	};
	int ret = rcm_qp_connect(id, param);

	if (!ret)
		ret = ib_send_cm_rep(id->cm, &rep);
	if (ret)
		rcm_qp_fail(id);
	return ret;
}

static int send_sidr_rep(struct rcm_id *id, enum ib_cm_sidr_status status,
			 const struct rdma_conn_param *param)
{
	struct ib_cm_sidr_rep_param rep = {.status = status};

	if (param) {
		rep.qp_num = rcm_qp_num(id, param);
		rep.qkey = param->qkey ? param->qkey : id->qkey;
		rep.private_data = param->private_data;
		rep.private_data_len = param->private_data_len;
	}
	return ib_send_cm_sidr_rep(id->cm, &rep);
}

int rdma_accept(struct rdma_cm_id *rdma_id, struct rdma_conn_param *conn_param)
{
	struct rcm_id *id = rcm_of(rdma_id);
	int ret;

	rcm_trace_call(id, "accept");
	if (id->state != RCM_CONNECT || !id->cm)
		return -EINVAL;
	if (is_datagram(id))
		ret = send_sidr_rep(id, IB_SIDR_SUCCESS, conn_param);
	else
		ret = conn_param ? send_rep(id, conn_param)
				 : ib_send_cm_rtu(id->cm, NULL, 0);
	if (!ret)
		rcm_leave_listener(id);
	return ret;
}

int rdma_accept_ece(struct rdma_cm_id *id, struct rdma_conn_param *conn_param,
		    const struct ib_cm_ece *ece)
{
	rcm_of(id)->ece = *ece;
	return rdma_accept(id, conn_param);
}

int rdma_reject(struct rdma_cm_id *rdma_id, const void *private_data, u8 private_data_len,
		u8 reason)
{
	struct rcm_id *id = rcm_of(rdma_id);
	int ret;

	rcm_trace_call(id, "reject");
	if (!id->cm || id->state != RCM_CONNECT)
		return -EINVAL;
	if (is_datagram(id)) {
		const struct rdma_conn_param param = {.private_data = private_data,
						      .private_data_len =
							      private_data_len};

		ret = send_sidr_rep(id, IB_SIDR_REJECT, &param);
	} else {
		ret = ib_send_cm_rej(id->cm, reason ? reason : IB_CM_REJ_CONSUMER_DEFINED,
				     NULL, 0, private_data, private_data_len);
	}
	if (!ret)
		rcm_leave_listener(id);
	return ret;
}

int rdma_notify(struct rdma_cm_id *rdma_id, enum ib_event_type event)
{
	struct rcm_id *id = rcm_of(rdma_id);

	return id->cm ? ib_cm_notify(id->cm, event) : -EINVAL;
}

int rdma_disconnect(struct rdma_cm_id *rdma_id)
{
	struct rcm_id *id = rcm_of(rdma_id);

	rcm_trace_call(id, "disconnect");
	if (!id->cm || is_datagram(id))
		return -EINVAL;
	rcm_qp_fail(id);
	if (ib_send_cm_dreq(id->cm, NULL, 0))
		return ib_send_cm_drep(id->cm, NULL, 0); /* the peer has sent a DREQ before */
	return 0;
}
