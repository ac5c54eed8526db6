/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Finds the connection of a received message, and turns the message into an input of
 * the table. Messages are validated: both communication ids must be those of one
 * connection, and a DREQ and a LAP must name its queue pair. A message that belongs to
 * no connection is answered if that lets the peer continue (REQ, REP, DREQ, LAP,
 * SIDR_REQ), and dropped otherwise.
 */
#include <string.h>

#include "cm/private.h"

/** struct receipt - a received message and its path */
struct receipt {
	struct cm *cm;
	const struct cm_route *route;
	uint64_t tid;
	mono_t now;
	uint16_t attr;
	const uint8_t *mad;
	union cm_message message;
};

static void ignore(struct receipt *r)
{
	const struct cm_trace trace = {.kind = CM_TRACE_IGNORED, .route = r->route, .mad = r->mad};

	r->cm->stats.ignored++;
	if (cm_traced(r->cm))
		r->cm->ops->trace(r->cm, &trace);
}

static void input(struct receipt *r, struct cm_conn *conn, enum cm_input_kind kind,
		  struct cm_conn *listener)
{
	const struct cm_input in = {
		.kind = kind,
		.now = r->now,
		.message = &r->message,
		.route = r->route,
		.listener = listener,
		.tid = r->tid,
	};

	if (cm_step(conn, &in))
		ignore(r);
}

static void refuse(struct receipt *r, uint32_t local, uint32_t remote, uint8_t message,
		   enum wire_cm_reject reason)
{
	const struct wire_cm_rej rej = {
		.local_comm_id = local,
		.remote_comm_id = remote,
		.message = message,
		.reason = (uint16_t)reason,
	};

	cm_reply_rej(r->cm, r->route, r->tid, &rej);
}


/* Every message but REQ and SIDR begins with the sender's and the receiver's id. */
static struct cm_conn *find_conn(struct receipt *r)
{
	const struct wire_cm_rtu *ids = &r->message.rtu;
	struct cm_conn *conn = cm_find_local(r->cm, ids->remote_comm_id);

	if (!conn || conn->state == CM_IDLE || conn->state == CM_LISTEN)
		return NULL;
	/* while a REQ awaits its answer, any id of the peer is accepted */
	return !cm_met(conn) || conn->remote_id == ids->local_comm_id ? conn : NULL;
}

static struct cm_conn *find_rejected(struct receipt *r)
{
	const struct wire_cm_rej *rej = &r->message.rej;
	struct cm_conn *conn = cm_find_local(r->cm, rej->remote_comm_id);
	uint64_t guid = 0;

	if (conn && (!cm_met(conn) || !rej->local_comm_id ||
		     conn->remote_id == rej->local_comm_id))
		return conn;
	/* 12.6.7.2: a requester that gives up does not know this end's id, and sends its GUID
	 * instead */
	if ((rej->reason != WIRE_CM_REJ_TIMEOUT && rej->remote_comm_id) ||
	    rej->info_bytes < 8)
		return NULL;
	for (int i = 0; i < 8; i++)
		guid = guid << 8 | rej->info[i];
	return cm_find_peer(r->cm, guid, rej->local_comm_id);
}

/* 12.9.8.3.1: the peer reuses an id or QP of an older connection, which is therefore stale */
static void end_stale(struct receipt *r, struct cm_conn *old)
{
	const union cm_message message = {
		.rej = {.local_comm_id = old->remote_id,
			.remote_comm_id = old->local_id,
			.message = 2,
			.reason = WIRE_CM_REJ_STALE_CONNECTION},
	};
	const struct cm_input in = {
		.kind = CM_STALE, .now = r->now, .message = &message, .route = r->route};

	cm_step(old, &in);
}

/* --- connections begin --- */

static void begin(struct receipt *r, struct cm_conn *conn, struct cm_conn *listener)
{
	conn->active = false;
	conn->tid = r->tid;
	conn->route = *r->route;
	cm_terms_of_req(conn, &r->message.req, r->route);
	input(r, conn, CM_GOT_REQ, listener);
}

/* 12.10.4: the end with the greater GUID, or on one adapter the greater QPN, stays active */
static bool stays_active(const struct cm_conn *conn, const struct wire_cm_req *req)
{
	uint64_t guid = conn->cm->ca_guid;

	if (guid != req->local_ca_guid)
		return guid > req->local_ca_guid;
	return conn->terms.local_qpn > req->local_qpn;
}

static void got_first_req(struct receipt *r)
{
	const struct wire_cm_req *req = &r->message.req;
	struct cm_conn *caller = cm_find_caller(r->cm, req);
	struct cm_conn *listener = cm_find_listener(r->cm, req->service_id);
	struct cm_conn *conn;

	if (caller && stays_active(caller, req)) {
		ignore(r); /* this end's REQ makes the peer passive */
	} else if (caller) {
		begin(r, caller, caller);
	} else if (!listener) {
		refuse(r, 0, req->local_comm_id, 0, WIRE_CM_REJ_INVALID_SERVICE_ID);
	} else {
		conn = r->cm->ops->accept(r->cm, listener);
		if (conn)
			begin(r, conn, listener);
		else
			refuse(r, 0, req->local_comm_id, 0, WIRE_CM_REJ_NO_RESOURCES);
	}
}

static void got_req(struct receipt *r)
{
	const struct wire_cm_req *req = &r->message.req;
	struct cm_conn *conn =
		cm_find_peer(r->cm, req->local_ca_guid, req->local_comm_id);
	struct wire_cm_rej rej;

	if (conn && conn->state != CM_SIDR_REQ_RCVD) {
		r->cm->stats.duplicates[0]++;
		input(r, conn, CM_GOT_REQ_AGAIN, NULL);
		return;
	}
	if (cm_refusal(r->cm, req, r->route, &rej)) {
		cm_reply_rej(r->cm, r->route, r->tid, &rej);
		return;
	}
	conn = cm_find_qp(r->cm, req->local_ca_guid, req->local_qpn, NULL);
	if (conn) {
		refuse(r, 0, req->local_comm_id, 0, WIRE_CM_REJ_STALE_CONNECTION);
		end_stale(r, conn);
		return;
	}
	got_first_req(r);
}

/* --- connections go on --- */

static void got_rep(struct receipt *r)
{
	const struct wire_cm_rep *rep = &r->message.rep;
	struct cm_conn *conn = find_conn(r), *old;

	if (!conn) {
		refuse(r, rep->remote_comm_id, rep->local_comm_id, 1,
		       WIRE_CM_REJ_INVALID_COMM_ID);
		return;
	}
	if (conn->state != CM_REQ_SENT && conn->state != CM_MRA_REQ_RCVD) {
		r->cm->stats.duplicates[WIRE_CM_REP - WIRE_CM_REQ]++;
		input(r, conn, CM_GOT_REP, NULL);
		return;
	}
	old = cm_find_qp(r->cm, rep->local_ca_guid, rep->local_qpn, conn);
	if (old) {
		refuse(r, conn->local_id, rep->local_comm_id, 1,
		       WIRE_CM_REJ_STALE_CONNECTION);
		end_stale(r, old);
		return;
	}
	cm_terms_of_rep(conn, rep);
	input(r, conn, CM_GOT_REP, NULL);
}

static void got_mra(struct receipt *r)
{
	static const enum cm_input_kind kinds[] = {CM_GOT_MRA_REQ, CM_GOT_MRA_REP,
						   CM_GOT_MRA_LAP};
	struct cm_conn *conn = find_conn(r);

	if (!conn || r->message.mra.message >= ARRAY_SIZE(kinds))
		ignore(r);
	else
		input(r, conn, kinds[r->message.mra.message], NULL);
}

/* Peer to peer: the REQ of the end that became the passive one counts no longer (12.10.4). It may have
 * been rejected before, by a peer that had not called yet, or by a CM that is redirected. */
static bool is_of_past_req(const struct cm_conn *conn, const struct wire_cm_rej *rej)
{
	return conn->peer_to_peer && !conn->active && cm_met(conn) &&
	       rej->message == 0; /* the REQ */
}

static void got_rej(struct receipt *r)
{
	struct cm_conn *conn = find_rejected(r);

	if (!conn || is_of_past_req(conn, &r->message.rej))
		ignore(r);
	else if (cm_follow(conn, WIRE_CM_REJ, &r->message))
		input(r, conn, CM_GOT_REDIRECT, NULL);
	else
		input(r, conn, CM_GOT_REJ, NULL);
}

/* The passive end accepted, and closed before its REP arrived. The REP may still arrive, and
 * must then find no connection. To the consumer this is reported as a REJ, which was lost. */
static void peer_gave_up(struct receipt *r, struct cm_conn *conn)
{
	const struct wire_cm_dreq dreq = r->message.dreq;

	cm_reply_drep(r->cm, r->route, r->tid, &dreq);
	memset(&r->message, 0, sizeof(r->message));
	r->message.rej = (struct wire_cm_rej){.local_comm_id = dreq.local_comm_id,
					      .remote_comm_id = dreq.remote_comm_id,
					      .reason = WIRE_CM_REJ_CONSUMER};
	input(r, conn, CM_GOT_REJ, NULL);
}

static void got_dreq(struct receipt *r)
{
	struct cm_conn *conn = find_conn(r);
	const struct wire_cm_dreq *dreq = &r->message.dreq;

	if (!conn) {
		cm_reply_drep(r->cm, r->route, r->tid, dreq);
		return;
	}
	if (conn->terms.local_qpn != dreq->remote_qpn) { /* 12.6.10: a DREQ names this end's QP */
		ignore(r);
		return;
	}
	if (conn->state == CM_REQ_SENT || conn->state == CM_MRA_REQ_RCVD) {
		peer_gave_up(r, conn);
		return;
	}
	if (conn->state == CM_DREQ_RCVD || conn->state == CM_TIMEWAIT)
		r->cm->stats.duplicates[WIRE_CM_DREQ - WIRE_CM_REQ]++;
	if (cm_met(conn))
		conn->tid = r->tid;
	input(r, conn, CM_GOT_DREQ, NULL);
}

/* --- alternate paths --- */

/* 12.8.1: the LAP contains the path from its sender's point of view */
static bool lap_route(struct receipt *r, const struct cm_conn *conn,
		      struct cm_route *route)
{
	const struct wire_cm_lap *lap = &r->message.lap;

	return lap->remote_qpn == conn->terms.local_qpn &&
	       cm_route_of_path(r->cm, &lap->alternate, conn->terms.pkey, route);
}

static void got_lap(struct receipt *r)
{
	const struct wire_cm_lap *lap = &r->message.lap;
	struct cm_conn *conn = find_conn(r);
	struct cm_route route;

	if (!conn) {
		refuse(r, lap->remote_comm_id, lap->local_comm_id, 2,
		       WIRE_CM_REJ_INVALID_COMM_ID);
		return;
	}
	if (!lap_route(r, conn, &route)) {
		ignore(r);
		return;
	}
	if (conn->state == CM_ESTABLISHED && conn->lap_tid != r->tid && !conn->active &&
	    (conn->lap_state == CM_LAP_UNINIT || conn->lap_state == CM_LAP_IDLE)) {
		conn->lap_tid = r->tid;
		cm_note_alternate(conn, &route, lap->alternate.local_ack_timeout_enc);
		input(r, conn, CM_GOT_LAP, NULL);
		return;
	}
	r->cm->stats.duplicates[WIRE_CM_LAP - WIRE_CM_REQ]++;
	input(r, conn, CM_GOT_LAP, NULL);
}

static void got_apr(struct receipt *r)
{
	struct cm_conn *conn = find_conn(r);

	if (!conn || r->tid != conn->lap_tid) {
		ignore(r);
		return;
	}
	if (r->message.apr.status && conn->state == CM_ESTABLISHED &&
	    conn->lap_state != CM_LAP_IDLE)
		cm_drop_alternate(conn);
	input(r, conn, CM_GOT_APR, NULL);
}

/* --- service ids --- */

/* SIDR requests contain no GUID; the port that sent them identifies the peer. */
static uint64_t sidr_source(const struct cm_route *route)
{
	uint64_t id = route->dlid;

	if (route->global)
		memcpy(&id, route->dgid.raw + 8, sizeof(id));
	return ~id;
}

static void got_sidr_req(struct receipt *r)
{
	const struct wire_cm_sidr_req *req = &r->message.sidr_req;
	struct cm_conn *conn =
		cm_find_peer(r->cm, sidr_source(r->route), req->request_id);
	struct cm_conn *listener = cm_find_listener(r->cm, req->service_id);

	if (conn) {
		r->cm->stats.duplicates[WIRE_CM_SIDR_REQ - WIRE_CM_REQ]++;
		input(r, conn, CM_GOT_SIDR_REQ_AGAIN, NULL);
		return;
	}
	if (cm_redirects_sidr(r->cm, r->route, r->tid, req))
		return;
	conn = listener ? r->cm->ops->accept(r->cm, listener) : NULL;
	if (!conn) {
		cm_reply_sidr(r->cm, r->route, r->tid, req,
			      listener ? WIRE_CM_SIDR_NO_QP : WIRE_CM_SIDR_UNSUPPORTED);
		return;
	}
	conn->tid = r->tid;
	conn->route = *r->route;
	conn->remote_id = req->request_id;
	conn->remote_ca_guid = sidr_source(r->route);
	conn->service_id = req->service_id;
	conn->terms.pkey = req->pkey;
	input(r, conn, CM_GOT_SIDR_REQ, listener);
}

static void got_sidr_rep(struct receipt *r)
{
	const struct wire_cm_sidr_rep *rep = &r->message.sidr_rep;
	struct cm_conn *conn = cm_find_local(r->cm, rep->request_id);

	if (!conn)
		ignore(r);
	else if (cm_follow(conn, WIRE_CM_SIDR_REP, &r->message))
		input(r, conn, CM_GOT_REDIRECT, NULL);
	else
		input(r, conn, CM_GOT_SIDR_REP, NULL);
}

/* --- dispatch --- */

static void got_of_conn(struct receipt *r)
{
	enum cm_input_kind kind = r->attr == WIRE_CM_RTU ? CM_GOT_RTU : CM_GOT_DREP;
	struct cm_conn *conn = find_conn(r);

	if (conn && cm_met(conn))
		input(r, conn, kind, NULL);
	else
		ignore(r);
}

static const struct {
	const struct wire_codec *codec;
	void (*got)(struct receipt *r);
} messages[CM_NR_MESSAGES] = {
	[WIRE_CM_REQ - WIRE_CM_REQ] = {&wire_cm_req_codec, got_req},
	[WIRE_CM_MRA - WIRE_CM_REQ] = {&wire_cm_mra_codec, got_mra},
	[WIRE_CM_REJ - WIRE_CM_REQ] = {&wire_cm_rej_codec, got_rej},
	[WIRE_CM_REP - WIRE_CM_REQ] = {&wire_cm_rep_codec, got_rep},
	[WIRE_CM_RTU - WIRE_CM_REQ] = {&wire_cm_rtu_codec, got_of_conn},
	[WIRE_CM_DREQ - WIRE_CM_REQ] = {&wire_cm_dreq_codec, got_dreq},
	[WIRE_CM_DREP - WIRE_CM_REQ] = {&wire_cm_drep_codec, got_of_conn},
	[WIRE_CM_SIDR_REQ - WIRE_CM_REQ] = {&wire_cm_sidr_req_codec, got_sidr_req},
	[WIRE_CM_SIDR_REP - WIRE_CM_REQ] = {&wire_cm_sidr_rep_codec, got_sidr_rep},
	[WIRE_CM_LAP - WIRE_CM_REQ] = {&wire_cm_lap_codec, got_lap},
	[WIRE_CM_APR - WIRE_CM_REQ] = {&wire_cm_apr_codec, got_apr},
};

/* Return: false: it is no message of the CM that this layer understands */
static bool decode(struct receipt *r, struct wire_mad *header)
{
	wire_mad_decode(r->mad, WIRE_MAD_BYTES, header);
	if (header->mgmt_class != WIRE_CLASS_CM || header->method != WIRE_METHOD_SEND ||
	    header->attr_id < WIRE_CM_REQ || header->attr_id > WIRE_CM_APR)
		return false;
	r->tid = header->tid;
	r->attr = header->attr_id;
	wire_fields_decode(messages[r->attr - WIRE_CM_REQ].codec, r->mad + WIRE_CM_DATA_OFFSET,
			   WIRE_CM_DATA_BYTES, &r->message);
	return true;
}

bool cm_wants(struct cm *cm, const void *mad, const struct cm_route *route)
{
	struct receipt r = {.cm = cm, .route = route, .mad = mad};
	const struct wire_cm_sidr_req *sidr = &r.message.sidr_req;
	const struct wire_cm_req *req = &r.message.req;
	struct wire_mad header;

	if (!decode(&r, &header))
		return false;
	switch (r.attr) {
	case WIRE_CM_REQ:
		return cm_find_peer(cm, req->local_ca_guid, req->local_comm_id) ||
		       cm_find_caller(cm, req) || cm_find_listener(cm, req->service_id);
	case WIRE_CM_SIDR_REQ:
		return cm_find_peer(cm, sidr_source(route), sidr->request_id) ||
		       cm_find_listener(cm, sidr->service_id);
	case WIRE_CM_SIDR_REP:
		return cm_find_local(cm, r.message.sidr_rep.request_id);
	case WIRE_CM_REJ:
		return find_rejected(&r);
	default:
		return cm_find_local(cm, r.message.rtu.remote_comm_id);
	}
}

/* 12.6.7.2: a request with an unsupported version is rejected with the supported one */
static void got_other_version(struct receipt *r)
{
	if (r->attr == WIRE_CM_REQ)
		refuse(r, 0, r->message.req.local_comm_id, 0,
		       WIRE_CM_REJ_INVALID_CLASS_VERSION);
	else if (r->attr == WIRE_CM_SIDR_REQ)
		cm_reply_sidr(r->cm, r->route, r->tid, &r->message.sidr_req,
			      WIRE_CM_SIDR_BAD_VERSION);
	else
		ignore(r);
}

void cm_receive(struct cm *cm, const void *mad, const struct cm_route *route, mono_t now)
{
	const struct cm_trace trace = {.kind = CM_TRACE_RECEIVED, .route = route, .mad = mad};
	struct receipt r = {.cm = cm, .route = route, .now = now, .mad = mad};
	struct wire_mad header;

	if (!decode(&r, &header)) {
		ignore(&r);
		return;
	}
	if (r.attr == WIRE_CM_REQ)
		r.message.req.ece_options = header.attr_mod;
	else if (r.attr == WIRE_CM_REP)
		r.message.rep.ece_options = header.attr_mod;
	cm->stats.received[r.attr - WIRE_CM_REQ]++;
	if (cm_traced(cm))
		cm->ops->trace(cm, &trace);
	if (header.class_version == WIRE_CM_CLASS_VERSION)
		messages[r.attr - WIRE_CM_REQ].got(&r);
	else
		got_other_version(&r);
}
