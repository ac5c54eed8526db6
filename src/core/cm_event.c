/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Conversion of the events of src/cm to those of a client's handler (struct ib_cm_event). */
#include "core/cm_priv.h"

/** struct translation - memory for the structs that an event points to */
struct translation {
	struct ib_cm_event event;
	struct sa_path_rec primary, alternate;
	union cm_message message; /* a copy of the message, which the client may read */
};

static enum ib_qp_type qp_type_of(const struct wire_cm_req *req)
{
	if (req->transport_service == WIRE_CM_EXTENDED)
		return IB_QPT_XRC_TGT;
	return req->transport_service == WIRE_CM_UC ? IB_QPT_UC : IB_QPT_RC;
}

static void translate_req(struct translation *t, const struct cm_event *news)
{
	struct wire_cm_req *req = &t->message.req;
	struct ib_cm_req_event_param *param = &t->event.param.req_rcvd;

	cm_path_from_wire(&req->primary, req->pkey, req->path_mtu, &t->primary);
	t->primary.service_id = cpu_to_be64(req->service_id);
	if (req->alternate.local_lid) {
		cm_path_from_wire(&req->alternate, req->pkey, req->path_mtu,
				  &t->alternate);
		t->alternate.service_id = t->primary.service_id;
		param->alternate_path = &t->alternate;
	}
	param->listen_id = &cm_id_of_conn(news->listener)->id;
	param->port = news->route->port;
	param->primary_path = &t->primary;
	param->remote_ca_guid = cpu_to_be64(req->local_ca_guid);
	param->remote_qkey = req->local_qkey;
	param->remote_qpn = req->local_qpn;
	param->qp_type = qp_type_of(req);
	param->starting_psn = req->starting_psn.v;
	param->ece.vendor_id = req->vendor_id;
	param->ece.attr_mod = req->ece_options;
	/* the reads that the peer may issue are those that this end serves, and vice versa */
	param->responder_resources = req->initiator_depth;
	param->initiator_depth = req->responder_resources;
	param->local_cm_response_timeout = req->remote_cm_response_timeout_enc & 31;
	param->remote_cm_response_timeout = req->local_cm_response_timeout_enc & 31;
	param->flow_control = req->end_to_end_flow_control;
	param->retry_count = req->retry_count & 7;
	param->rnr_retry_count = req->rnr_retry_count & 7;
	param->srq = req->srq;
	param->bth_pkey = news->route->pkey;
	param->remote_cm_lid = news->route->dlid;
	t->event.private_data = req->private_data;
}

static void translate_rep(struct translation *t, const struct cm_event *news)
{
	struct wire_cm_rep *rep = &t->message.rep;

	t->event.param.rep_rcvd = (struct ib_cm_rep_event_param){
		.remote_ca_guid = cpu_to_be64(rep->local_ca_guid),
		.remote_qkey = rep->local_qkey,
		.remote_qpn = rep->local_qpn,
		.starting_psn = rep->starting_psn.v,
		.ece = {.vendor_id = (u32)rep->vendor_id_high << 16 |
				     (u32)rep->vendor_id_mid << 8 | rep->vendor_id_low,
			.attr_mod = rep->ece_options},
		.responder_resources = rep->initiator_depth,
		.initiator_depth = rep->responder_resources,
		.target_ack_delay = rep->target_ack_delay_enc & 31,
		.failover_accepted = rep->failover_accepted & 3,
		.flow_control = rep->end_to_end_flow_control,
		.rnr_retry_count = rep->rnr_retry_count & 7,
		.srq = rep->srq,
	};
	t->event.private_data = rep->private_data;
}

static void translate_rej(struct translation *t, const struct cm_event *news)
{
	struct wire_cm_rej *rej = &t->message.rej;

	t->event.param.rej_rcvd = (struct ib_cm_rej_event_param){
		.reason = (enum ib_cm_rej_reason)rej->reason,
		.ari = rej->info,
		.ari_length = MIN(rej->info_bytes, sizeof(rej->info)),
	};
	t->event.private_data = rej->private_data;
}

static void translate_mra(struct translation *t, const struct cm_event *news)
{
	t->event.param.mra_rcvd.service_timeout = t->message.mra.service_timeout_enc;
	t->event.private_data = t->message.mra.private_data;
}

static void translate_lap(struct translation *t, const struct cm_event *news)
{
	struct wire_cm_lap *lap = &t->message.lap;

	cm_path_from_wire(&lap->alternate, news->route->pkey, 0, &t->alternate);
	t->event.param.lap_rcvd.alternate_path = &t->alternate;
	t->event.private_data = lap->private_data;
}

static void translate_apr(struct translation *t, const struct cm_event *news)
{
	struct wire_cm_apr *apr = &t->message.apr;

	t->event.param.apr_rcvd = (struct ib_cm_apr_event_param){
		.ap_status = (enum ib_cm_apr_status)apr->status,
		.apr_info = apr->info,
		.info_len = MIN(apr->info_bytes, sizeof(apr->info)),
	};
	t->event.private_data = apr->private_data;
}

static void translate_rtu(struct translation *t, const struct cm_event *news)
{
	t->event.private_data = t->message.rtu.private_data;
}

static void translate_dreq(struct translation *t, const struct cm_event *news)
{
	t->event.private_data = t->message.dreq.private_data;
}

static void translate_drep(struct translation *t, const struct cm_event *news)
{
	t->event.private_data = t->message.drep.private_data;
}

static void translate_sidr_req(struct translation *t, const struct cm_event *news)
{
	struct wire_cm_sidr_req *req = &t->message.sidr_req;

	t->event.param.sidr_req_rcvd = (struct ib_cm_sidr_req_event_param){
		.listen_id = &cm_id_of_conn(news->listener)->id,
		.service_id = cpu_to_be64(req->service_id),
		.port = news->route->port,
		.pkey = req->pkey,
		.bth_pkey = news->route->pkey,
	};
	t->event.private_data = req->private_data;
}

static void translate_sidr_rep(struct translation *t, const struct cm_event *news)
{
	struct wire_cm_sidr_rep *rep = &t->message.sidr_rep;

	t->event.param.sidr_rep_rcvd = (struct ib_cm_sidr_rep_event_param){
		.status = (enum ib_cm_sidr_status)rep->status,
		.qkey = rep->qkey,
		.qpn = rep->qpn,
		.info = rep->info,
		.info_len = MIN(rep->info_bytes, sizeof(rep->info)),
	};
	t->event.private_data = rep->private_data;
}

static void translate_error(struct translation *t, const struct cm_event *news)
{
	t->event.param.send_status = IB_WC_RESP_TIMEOUT_ERR;
}

static const struct {
	enum ib_cm_event_type type;
	void (*translate)(struct translation *t, const struct cm_event *news);
} translations[CM_NR_NEWS] = {
	[CM_REQ_ERROR] = {IB_CM_REQ_ERROR, translate_error},
	[CM_REQ_RECEIVED] = {IB_CM_REQ_RECEIVED, translate_req},
	[CM_REP_ERROR] = {IB_CM_REP_ERROR, translate_error},
	[CM_REP_RECEIVED] = {IB_CM_REP_RECEIVED, translate_rep},
	[CM_RTU_RECEIVED] = {IB_CM_RTU_RECEIVED, translate_rtu},
	[CM_USER_ESTABLISHED] = {IB_CM_USER_ESTABLISHED, NULL},
	[CM_DREQ_ERROR] = {IB_CM_DREQ_ERROR, translate_error},
	[CM_DREQ_RECEIVED] = {IB_CM_DREQ_RECEIVED, translate_dreq},
	[CM_DREP_RECEIVED] = {IB_CM_DREP_RECEIVED, translate_drep},
	[CM_TIMEWAIT_EXIT] = {IB_CM_TIMEWAIT_EXIT, NULL},
	[CM_MRA_RECEIVED] = {IB_CM_MRA_RECEIVED, translate_mra},
	[CM_REJ_RECEIVED] = {IB_CM_REJ_RECEIVED, translate_rej},
	[CM_LAP_ERROR] = {IB_CM_LAP_ERROR, translate_error},
	[CM_LAP_RECEIVED] = {IB_CM_LAP_RECEIVED, translate_lap},
	[CM_APR_RECEIVED] = {IB_CM_APR_RECEIVED, translate_apr},
	[CM_SIDR_REQ_ERROR] = {IB_CM_SIDR_REQ_ERROR, translate_error},
	[CM_SIDR_REQ_RECEIVED] = {IB_CM_SIDR_REQ_RECEIVED, translate_sidr_req},
	[CM_SIDR_REP_RECEIVED] = {IB_CM_SIDR_REP_RECEIVED, translate_sidr_rep},
};

void cm_id_event(struct cm_conn *conn, const struct cm_event *news)
{
	struct cm_id *id = cm_id_of_conn(conn);
	struct translation t;

	memset(&t, 0, offsetof(struct translation, message));
	t.event.event = translations[news->news].type;
	if (news->message)
		t.message = *news->message;
	if (translations[news->news].translate)
		translations[news->news].translate(&t, news);
	cm_id_sync(id);
	if (id->id.cm_handler(&id->id, &t.event))
		ib_destroy_cm_id(&id->id);
}
