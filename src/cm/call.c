/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Calls of the consumer. A message is encoded first; then the table decides whether the
 * state allows it. The connection is updated from the message only after it was sent.
 */
#include <errno.h>
#include <string.h>

#include "cm/private.h"

struct message_kind {
	const struct wire_codec *codec;
	enum cm_input_kind call;
	unsigned int private_max;
};

static const struct message_kind kinds[CM_NR_MESSAGES] = {
	[WIRE_CM_REQ - WIRE_CM_REQ] = {&wire_cm_req_codec, CM_CALL_REQ, 92},
	[WIRE_CM_MRA - WIRE_CM_REQ] = {&wire_cm_mra_codec, CM_CALL_MRA, 222},
	[WIRE_CM_REJ - WIRE_CM_REQ] = {&wire_cm_rej_codec, CM_CALL_REJ, 148},
	[WIRE_CM_REP - WIRE_CM_REQ] = {&wire_cm_rep_codec, CM_CALL_REP, 196},
	[WIRE_CM_RTU - WIRE_CM_REQ] = {&wire_cm_rtu_codec, CM_CALL_RTU, 224},
	[WIRE_CM_DREQ - WIRE_CM_REQ] = {&wire_cm_dreq_codec, CM_CALL_DREQ, 220},
	[WIRE_CM_DREP - WIRE_CM_REQ] = {&wire_cm_drep_codec, CM_CALL_DREP, 224},
	[WIRE_CM_SIDR_REQ -
		WIRE_CM_REQ] = {&wire_cm_sidr_req_codec, CM_CALL_SIDR_REQ, 216},
	[WIRE_CM_SIDR_REP -
		WIRE_CM_REQ] = {&wire_cm_sidr_rep_codec, CM_CALL_SIDR_REP, 136},
	[WIRE_CM_LAP - WIRE_CM_REQ] = {&wire_cm_lap_codec, CM_CALL_LAP, 168},
	[WIRE_CM_APR - WIRE_CM_REQ] = {&wire_cm_apr_codec, CM_CALL_APR, 148},
};

unsigned int cm_private_max(enum wire_cm_attr attr)
{
	return kinds[attr - WIRE_CM_REQ].private_max;
}

/* --- MADs --- */

void cm_header(struct cm *cm, uint8_t *mad, uint16_t attr, uint64_t tid, uint32_t options)
{
	const struct wire_mad header = {
		.base_version = WIRE_MAD_BASE_VERSION,
		.mgmt_class = WIRE_CLASS_CM,
		.class_version = WIRE_CM_CLASS_VERSION,
		.method = WIRE_METHOD_SEND,
		.tid = tid,
		.attr_id = attr,
		.attr_mod = options,
	};

	memset(mad, 0, WIRE_MAD_BYTES);
	wire_mad_encode(&header, mad);
}

uint64_t cm_new_tid(struct cm *cm)
{
	return (uint64_t)cm->tid_high << 32 | cm->next_tid++;
}

uint8_t cm_answered_message(const struct cm_conn *conn)
{
	switch (conn->state) {
	case CM_REQ_RCVD:
	case CM_MRA_REQ_SENT:
		return 0;
	case CM_REP_RCVD:
	case CM_MRA_REP_SENT:
		return 1;
	default:
		return 2;
	}
}

void cm_complete_rej(const struct cm_conn *conn, struct wire_cm_rej *rej)
{
	rej->message = cm_answered_message(conn);
	if (rej->info_bytes || (cm_met(conn) && rej->reason != WIRE_CM_REJ_TIMEOUT))
		return;
	for (int i = 0; i < 8; i++)
		rej->info[i] = (uint8_t)(conn->cm->ca_guid >> (56 - 8 * i));
	rej->info_bytes = 8;
}

static void fill_ids(const struct cm_conn *conn, enum wire_cm_attr attr,
		     union cm_message *message)
{
	if (attr == WIRE_CM_SIDR_REP) {
		message->sidr_rep.request_id = conn->remote_id;
		message->sidr_rep.service_id = conn->service_id;
		return;
	}
	/* all other messages begin with both ids */
	message->rtu.local_comm_id = conn->local_id;
	message->rtu.remote_comm_id = conn->remote_id;
	if (attr == WIRE_CM_MRA)
		message->mra.message = cm_answered_message(conn);
	else if (attr == WIRE_CM_REJ)
		cm_complete_rej(conn, &message->rej);
	else if (attr == WIRE_CM_REP)
		message->rep.local_ca_guid = conn->cm->ca_guid;
	else if (attr == WIRE_CM_DREQ)
		message->dreq.remote_qpn = conn->terms.remote_qpn;
	else if (attr == WIRE_CM_LAP)
		message->lap.remote_qpn = conn->terms.remote_qpn;
}

/* An answer has the transaction id of the message that it answers. */
static uint64_t tid_of(const struct cm_conn *conn, enum wire_cm_attr attr)
{
	if (attr == WIRE_CM_DREQ)
		return cm_new_tid(conn->cm);
	return conn->state == CM_ESTABLISHED ? conn->lap_tid : conn->tid;
}

static uint32_t ece_options(enum wire_cm_attr attr, const void *message)
{
	if (attr == WIRE_CM_REQ)
		return ((const struct wire_cm_req *)message)->ece_options;
	if (attr == WIRE_CM_REP)
		return ((const struct wire_cm_rep *)message)->ece_options;
	return 0;
}

int cm_call(struct cm_conn *conn, enum cm_input_kind kind, enum wire_cm_attr attr,
	    const void *message, uint64_t tid, mono_t now)
{
	uint8_t mad[WIRE_MAD_BYTES];
	struct cm_input in = {.kind = kind, .now = now, .mad = mad, .attr = attr};
	int ret;

	cm_header(conn->cm, mad, attr, tid, ece_options(attr, message));
	ret = wire_fields_encode(kinds[attr - WIRE_CM_REQ].codec, message,
				 mad + WIRE_CM_DATA_OFFSET);
	return ret < 0 ? ret : cm_step(conn, &in);
}

static int call(struct cm_conn *conn, enum wire_cm_attr attr, const void *message,
		uint64_t tid, mono_t now)
{
	return cm_call(conn, kinds[attr - WIRE_CM_REQ].call, attr, message, tid, now);
}

/* --- requests --- */

static int check_target(const struct cm_conn *conn, const struct cm_target *target)
{
	return conn->state == CM_IDLE && target->tries && target->route.dlid ? 0
									     : -EINVAL;
}

static void aim(struct cm_conn *conn, const struct cm_target *target, uint64_t service_id)
{
	if (conn->sent) /* 12.9.8.3: a further attempt needs a new communication id */
		cm_renumber(conn);
	conn->sent = 0;
	conn->remote_id = 0;
	conn->remote_ca_guid = 0;
	conn->settling = false;
	conn->redirecting = false;
	conn->redirects = target->redirects;
	conn->route = target->route;
	conn->max_tries = target->tries;
	conn->response_ns = target->response_ns;
	conn->peer_to_peer = target->peer_to_peer;
	conn->tid = cm_new_tid(conn->cm);
	cm_call_service(conn, service_id);
}

int cm_send_req(struct cm_conn *conn, struct wire_cm_req *req,
		const struct cm_target *target, mono_t now)
{
	int ret = check_target(conn, target);

	if (ret)
		return ret;
	aim(conn, target, req->service_id);
	req->local_comm_id = conn->local_id;
	req->local_ca_guid = conn->cm->ca_guid;
	conn->active = true;
	conn->lap_state = CM_LAP_UNINIT;
	cm_terms_of_own_req(conn, req, target);
	ret = call(conn, WIRE_CM_REQ, req, conn->tid, now);
	if (ret)
		cm_forget(conn);
	return ret;
}

int cm_send_sidr_req(struct cm_conn *conn, struct wire_cm_sidr_req *req,
		     const struct cm_target *target, mono_t now)
{
	int ret = check_target(conn, target);

	if (ret)
		return ret;
	aim(conn, target, req->service_id);
	req->request_id = conn->local_id;
	ret = call(conn, WIRE_CM_SIDR_REQ, req, conn->tid, now);
	if (ret)
		cm_forget(conn);
	return ret;
}

/* --- other messages --- */

static int send_lap(struct cm_conn *conn, struct wire_cm_lap *lap,
		    const struct cm_route *alternate, mono_t now)
{
	uint64_t tid = cm_new_tid(conn->cm), usual_ns = conn->response_ns;
	int ret;

	if (!alternate)
		return -EINVAL;
	conn->response_ns = cm_time_ns(lap->remote_cm_response_timeout_enc) +
			    2 * cm_time_ns(conn->packet_life_enc);
	ret = call(conn, WIRE_CM_LAP, lap, tid, now);
	if (ret) {
		conn->response_ns = usual_ns;
		return ret;
	}
	conn->lap_tid = tid;
	cm_note_alternate(conn, alternate, lap->alternate.local_ack_timeout_enc);
	return 0;
}

int cm_send(struct cm_conn *conn, enum wire_cm_attr attr, union cm_message *message,
	    const struct cm_route *alternate, mono_t now)
{
	uint64_t tid;
	int ret;

	if (attr < WIRE_CM_MRA || attr > WIRE_CM_APR || attr == WIRE_CM_SIDR_REQ)
		return -EINVAL;
	fill_ids(conn, attr, message);
	if (attr == WIRE_CM_LAP)
		return send_lap(conn, &message->lap, alternate, now);
	tid = tid_of(conn, attr);
	ret = call(conn, attr, message, tid, now);
	if (ret)
		return ret;
	if (attr == WIRE_CM_REP)
		cm_terms_of_own_rep(conn, &message->rep);
	else if (attr == WIRE_CM_DREQ)
		conn->tid = tid;
	else if (attr == WIRE_CM_APR && message->apr.status)
		cm_drop_alternate(conn);
	return 0;
}

int cm_establish(struct cm_conn *conn, mono_t now)
{
	const struct cm_input in = {.kind = CM_CALL_ESTABLISH, .now = now};

	return conn->state == CM_ESTABLISHED ? -EISCONN : cm_step(conn, &in);
}

int cm_migrated(struct cm_conn *conn)
{
	struct cm_alternate *alternate = &conn->terms.alternate;
	struct cm_route old = conn->terms.primary;

	if (conn->state != CM_ESTABLISHED || !alternate->loaded)
		return -EINVAL;
	conn->terms.primary = alternate->route;
	alternate->route = old;
	alternate->loaded = false;
	conn->route = conn->terms.primary;
	return 0;
}

void cm_conn_close(struct cm_conn *conn, mono_t now)
{
	const struct cm_input in = {.kind = CM_CALL_CLOSE, .now = now};

	conn->orphan = true;
	cm_step(conn, &in);
}

void cm_expire(struct cm_conn *conn, mono_t now)
{
	const struct cm_input in = {.kind = CM_TIMER, .now = now};

	cm_step(conn, &in);
}

/* --- names --- */

const char *cm_state_name(enum cm_state state)
{
	static const char *const names[CM_NR_STATES] = {
		[CM_IDLE] = "IDLE",
		[CM_LISTEN] = "LISTEN",
		[CM_REQ_SENT] = "REQ_SENT",
		[CM_REQ_RCVD] = "REQ_RCVD",
		[CM_MRA_REQ_SENT] = "MRA_REQ_SENT",
		[CM_MRA_REQ_RCVD] = "MRA_REQ_RCVD",
		[CM_REP_SENT] = "REP_SENT",
		[CM_REP_RCVD] = "REP_RCVD",
		[CM_MRA_REP_SENT] = "MRA_REP_SENT",
		[CM_MRA_REP_RCVD] = "MRA_REP_RCVD",
		[CM_ESTABLISHED] = "ESTABLISHED",
		[CM_DREQ_SENT] = "DREQ_SENT",
		[CM_DREQ_RCVD] = "DREQ_RCVD",
		[CM_TIMEWAIT] = "TIMEWAIT",
		[CM_SIDR_REQ_SENT] = "SIDR_REQ_SENT",
		[CM_SIDR_REQ_RCVD] = "SIDR_REQ_RCVD",
	};

	return state < CM_NR_STATES ? names[state] : "?";
}

const char *cm_news_name(enum cm_news news)
{
	static const char *const names[CM_NR_NEWS] = {
		[CM_NO_NEWS] = "none",
		[CM_REQ_ERROR] = "REQ_ERROR",
		[CM_REQ_RECEIVED] = "REQ_RECEIVED",
		[CM_REP_ERROR] = "REP_ERROR",
		[CM_REP_RECEIVED] = "REP_RECEIVED",
		[CM_RTU_RECEIVED] = "RTU_RECEIVED",
		[CM_USER_ESTABLISHED] = "USER_ESTABLISHED",
		[CM_DREQ_ERROR] = "DREQ_ERROR",
		[CM_DREQ_RECEIVED] = "DREQ_RECEIVED",
		[CM_DREP_RECEIVED] = "DREP_RECEIVED",
		[CM_TIMEWAIT_EXIT] = "TIMEWAIT_EXIT",
		[CM_MRA_RECEIVED] = "MRA_RECEIVED",
		[CM_REJ_RECEIVED] = "REJ_RECEIVED",
		[CM_LAP_ERROR] = "LAP_ERROR",
		[CM_LAP_RECEIVED] = "LAP_RECEIVED",
		[CM_APR_RECEIVED] = "APR_RECEIVED",
		[CM_SIDR_REQ_ERROR] = "SIDR_REQ_ERROR",
		[CM_SIDR_REQ_RECEIVED] = "SIDR_REQ_RECEIVED",
		[CM_SIDR_REP_RECEIVED] = "SIDR_REP_RECEIVED",
	};

	return news < CM_NR_NEWS ? names[news] : "?";
}

const char *cm_lap_state_name(enum cm_lap_state state)
{
	static const char *const names[CM_NR_LAP_STATES] = {
		[CM_LAP_UNINIT] = "LAP_UNINIT",
		[CM_LAP_IDLE] = "LAP_IDLE",
		[CM_LAP_SENT] = "LAP_SENT",
		[CM_LAP_RCVD] = "LAP_RCVD",
		[CM_MRA_LAP_SENT] = "MRA_LAP_SENT",
		[CM_MRA_LAP_RCVD] = "MRA_LAP_RCVD",
	};

	return state < CM_NR_LAP_STATES ? names[state] : "?";
}

const char *cm_message_name(uint16_t attr)
{
	static const char *const names[CM_NR_MESSAGES] = {
		"REQ",	"MRA",	    "REJ",	"REP", "RTU", "DREQ",
		"DREP", "SIDR_REQ", "SIDR_REP", "LAP", "APR",
	};

	return attr >= WIRE_CM_REQ && attr <= WIRE_CM_APR ? names[attr - WIRE_CM_REQ] : "?";
}
