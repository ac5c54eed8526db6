/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Messages that clients send: conversion of their parameters to the fields of the messages. */
#include "core/cm_priv.h"

/* Copy private data into a message, which has @room for it (12.6). Return: 0; -EINVAL: there is too
 * much */
static int put_data(u8 *to, size_t room, const void *data, size_t bytes)
{
	if (bytes > room || (bytes && !data))
		return -EINVAL;
	if (bytes)
		memcpy(to, data, bytes);
	return 0;
}

static int send(struct ib_cm_id *cm_id, enum wire_cm_attr attr, union cm_message *message,
		const struct cm_route *alternate)
{
	struct cm_id *id = cm_id_of(cm_id);
	int ret;

	if (!id->dev)
		return -ENODEV;
	ret = cm_send(&id->conn, attr, message, alternate, cm_now(id));
	cm_id_sync(id);
	return ret;
}

/* --- requests --- */

static int transport_of(enum ib_qp_type type, struct wire_cm_req *req)
{
	switch (type) {
	case IB_QPT_RC:
		req->transport_service = WIRE_CM_RC;
		return 0;
	case IB_QPT_UC:
		req->transport_service = WIRE_CM_UC;
		return 0;
	case IB_QPT_XRC_INI:
		req->transport_service = WIRE_CM_EXTENDED;
		req->extended_transport = 1;
		return 0;
	default:
		return -EINVAL;
	}
}

static void fill_req(const struct cm_device *dev, const struct ib_cm_req_param *param,
		     struct wire_cm_req *req)
{
	req->service_id = be64_to_cpu(param->service_id);
	req->local_qpn = param->qp_num;
	req->responder_resources = param->responder_resources;
	req->initiator_depth = param->initiator_depth;
	req->remote_cm_response_timeout_enc = param->remote_cm_response_timeout;
	req->local_cm_response_timeout_enc = param->local_cm_response_timeout;
	req->end_to_end_flow_control = param->flow_control;
	req->vendor_id = param->ece.vendor_id;
	req->ece_options = param->ece.attr_mod;
	req->starting_psn = psn(param->starting_psn);
	req->retry_count = param->retry_count;
	req->rnr_retry_count = param->rnr_retry_count;
	req->max_cm_retries = param->max_cm_retries;
	req->srq = param->srq;
	req->pkey = be16_to_cpu(param->primary_path->pkey);
	req->path_mtu = param->primary_path->mtu;
	cm_path_to_wire(dev, param->primary_path, &req->primary);
	if (param->alternate_path)
		cm_path_to_wire(dev, param->alternate_path, &req->alternate);
}

/* A client that handles redirections itself names the QP of the peer's CM. */
static void aim_at_qp(const struct ib_cm_id *cm_id, struct cm_route *route)
{
	if (cm_id->remote_cm_qpn > 1) {
		route->qpn = cm_id->remote_cm_qpn;
		route->qkey = cm_id->remote_cm_qkey;
	}
}

int ib_send_cm_req(struct ib_cm_id *cm_id, struct ib_cm_req_param *param)
{
	struct cm_id *id = cm_id_of(cm_id);
	struct cm_target target = {
		.tries = (uint8_t)(param->max_cm_retries + 1),
		.peer_to_peer = param->peer_to_peer,
		.redirects = param->max_redirects,
	};
	struct wire_cm_req req = {0};
	int ret;

	if (!id->dev)
		return -ENODEV;
	if (!param->primary_path || transport_of(param->qp_type, &req) ||
	    put_data(req.private_data, sizeof(req.private_data), param->private_data,
		     param->private_data_len))
		return -EINVAL;
	ret = cm_path_route(cm_id->device, param->primary_path, &target.route);
	if (!ret && param->alternate_path)
		ret = cm_path_route(cm_id->device, param->alternate_path,
				    &target.alternate);
	if (ret)
		return ret;
	aim_at_qp(cm_id, &target.route);
	fill_req(id->dev, param, &req);
	target.packet_life_enc = param->primary_path->packet_life_time;
	target.response_ns = cm_time_ns(param->remote_cm_response_timeout) +
			     2 * cm_time_ns(target.packet_life_enc);
	ret = cm_send_req(&id->conn, &req, &target, cm_now(id));
	cm_id_sync(id);
	return ret;
}

int ib_send_cm_sidr_req(struct ib_cm_id *cm_id, struct ib_cm_sidr_req_param *param)
{
	struct cm_id *id = cm_id_of(cm_id);
	struct cm_target target = {
		.tries = (uint8_t)MIN(param->max_cm_retries + 1, 255),
		.redirects = param->max_redirects,
		.response_ns = param->timeout_ms * NSEC_PER_MSEC,
	};
	struct wire_cm_sidr_req req = {.service_id = be64_to_cpu(param->service_id)};
	int ret;

	if (!id->dev)
		return -ENODEV;
	if (!param->path || put_data(req.private_data, sizeof(req.private_data),
				     param->private_data, param->private_data_len))
		return -EINVAL;
	ret = cm_path_route(cm_id->device, param->path, &target.route);
	if (ret)
		return ret;
	aim_at_qp(cm_id, &target.route);
	req.pkey = target.route.pkey;
	target.packet_life_enc = param->path->packet_life_time;
	ret = cm_send_sidr_req(&id->conn, &req, &target, cm_now(id));
	cm_id_sync(id);
	return ret;
}

/* --- answers --- */

int ib_send_cm_rep(struct ib_cm_id *cm_id, struct ib_cm_rep_param *param)
{
	struct cm_id *id = cm_id_of(cm_id);
	union cm_message m = {.rep = {
				      .local_qpn = param->qp_num,
				      .vendor_id_high = (u8)(param->ece.vendor_id >> 16),
				      .vendor_id_mid = (u8)(param->ece.vendor_id >> 8),
				      .vendor_id_low = (u8)param->ece.vendor_id,
				      .ece_options = param->ece.attr_mod,
				      .starting_psn = psn(param->starting_psn),
				      .responder_resources = param->responder_resources,
				      .initiator_depth = param->initiator_depth,
				      .failover_accepted = param->failover_accepted,
				      .end_to_end_flow_control = param->flow_control,
				      .rnr_retry_count = param->rnr_retry_count,
				      .srq = param->srq,
			      }};

	if (param->ece.vendor_id >> 24 ||
	    put_data(m.rep.private_data, sizeof(m.rep.private_data), param->private_data,
		     param->private_data_len))
		return -EINVAL;
	if (id->dev)
		m.rep.target_ack_delay_enc = id->dev->ack_delay_enc;
	return send(cm_id, WIRE_CM_REP, &m, NULL);
}

int ib_send_cm_rtu(struct ib_cm_id *cm_id, const void *private_data, u8 private_data_len)
{
	union cm_message m = {.rtu = {0}};

	if (put_data(m.rtu.private_data, sizeof(m.rtu.private_data), private_data,
		     private_data_len))
		return -EINVAL;
	return send(cm_id, WIRE_CM_RTU, &m, NULL);
}

int ib_send_cm_dreq(struct ib_cm_id *cm_id, const void *private_data, u8 private_data_len)
{
	union cm_message m = {.dreq = {0}};

	if (put_data(m.dreq.private_data, sizeof(m.dreq.private_data), private_data,
		     private_data_len))
		return -EINVAL;
	return send(cm_id, WIRE_CM_DREQ, &m, NULL);
}

int ib_send_cm_drep(struct ib_cm_id *cm_id, const void *private_data, u8 private_data_len)
{
	union cm_message m = {.drep = {0}};

	if (put_data(m.drep.private_data, sizeof(m.drep.private_data), private_data,
		     private_data_len))
		return -EINVAL;
	return send(cm_id, WIRE_CM_DREP, &m, NULL);
}

int ib_send_cm_rej(struct ib_cm_id *cm_id, enum ib_cm_rej_reason reason, void *ari,
		   u8 ari_length, const void *private_data, u8 private_data_len)
{
	union cm_message m = {.rej = {.reason = (u16)reason, .info_bytes = ari_length}};

	if (put_data(m.rej.private_data, sizeof(m.rej.private_data), private_data,
		     private_data_len) ||
	    put_data(m.rej.info, sizeof(m.rej.info), ari, ari_length))
		return -EINVAL;
	return send(cm_id, WIRE_CM_REJ, &m, NULL);
}

int ib_send_cm_mra(struct ib_cm_id *cm_id, u8 service_timeout, const void *private_data,
		   u8 private_data_len)
{
	union cm_message m = {.mra = {.service_timeout_enc = service_timeout}};

	if (put_data(m.mra.private_data, sizeof(m.mra.private_data), private_data,
		     private_data_len))
		return -EINVAL;
	return send(cm_id, WIRE_CM_MRA, &m, NULL);
}

int ib_send_cm_lap(struct ib_cm_id *cm_id, struct sa_path_rec *alternate_path,
		   const void *private_data, u8 private_data_len)
{
	struct cm_id *id = cm_id_of(cm_id);
	union cm_message m = {.lap = {.remote_cm_response_timeout_enc = 20}}; /* 4 s */
	struct cm_route route;
	int ret;

	if (!id->dev)
		return -ENODEV;
	if (put_data(m.lap.private_data, sizeof(m.lap.private_data), private_data,
		     private_data_len))
		return -EINVAL;
	ret = cm_path_route(cm_id->device, alternate_path, &route);
	if (ret)
		return ret;
	cm_path_to_wire(id->dev, alternate_path, &m.lap.alternate);
	return send(cm_id, WIRE_CM_LAP, &m, &route);
}

int ib_send_cm_apr(struct ib_cm_id *cm_id, enum ib_cm_apr_status status, void *info,
		   u8 info_length, const void *private_data, u8 private_data_len)
{
	union cm_message m = {.apr = {.status = (u8)status, .info_bytes = info_length}};

	if (put_data(m.apr.private_data, sizeof(m.apr.private_data), private_data,
		     private_data_len) ||
	    put_data(m.apr.info, sizeof(m.apr.info), info, info_length))
		return -EINVAL;
	return send(cm_id, WIRE_CM_APR, &m, NULL);
}

int ib_send_cm_sidr_rep(struct ib_cm_id *cm_id, struct ib_cm_sidr_rep_param *param)
{
	union cm_message m = {.sidr_rep = {
				      .qpn = param->qp_num,
				      .qkey = param->qkey,
				      .status = (u8)param->status,
				      .info_bytes = param->info_length,
			      }};

	if (put_data(m.sidr_rep.private_data, sizeof(m.sidr_rep.private_data),
		     param->private_data, param->private_data_len) ||
	    put_data(m.sidr_rep.info, sizeof(m.sidr_rep.info), param->info,
		     param->info_length))
		return -EINVAL;
	return send(cm_id, WIRE_CM_SIDR_REP, &m, NULL);
}

/* --- events of the QP --- */

int ib_cm_notify(struct ib_cm_id *cm_id, enum ib_event_type event)
{
	struct cm_id *id = cm_id_of(cm_id);

	if (!id->dev)
		return -ENODEV;
	if (event == IB_EVENT_PATH_MIG)
		return cm_migrated(&id->conn);
	if (event != IB_EVENT_COMM_EST)
		return -EINVAL;
	if (id->conn.state == CM_ESTABLISHED)
		return -EISCONN;
	if (id->conn.state != CM_REP_SENT && id->conn.state != CM_MRA_REP_RCVD)
		return -EINVAL;
	rt_work_queue(cm_id->device->rt, &id->established);
	return 0;
}
