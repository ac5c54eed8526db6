/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Extracts the parameters of a connection's queue pair and paths from its messages. REQ
 * and REP are written from their sender's point of view: one end's local is the other's
 * remote.
 */
#include <string.h>

#include "cm/private.h"
#include "wire/address.h"

bool cm_route_of_path(struct cm *cm, const struct wire_cm_path *path, uint16_t pkey,
		      struct cm_route *route)
{
	struct cm_port port;

	if (!path->remote_lid || !cm->ops->find_port(cm, 0, &path->remote_gid, &port))
		return false;
	*route = (struct cm_route){
		.port = port.number,
		.path_bits = wire_path_bits(path->remote_lid, port.lmc),
		.sl = path->sl,
		.rate = path->packet_rate,
		.global = !path->subnet_local,
		.dlid = path->local_lid,
		.pkey = pkey,
		.sgid = path->remote_gid,
		.dgid = path->local_gid,
		.hop_limit = path->hop_limit,
		.tclass = path->tclass,
		.flow_label = path->flow_label,
	};
	return true;
}

/* 12.7.34: twice the packet lifetime and the target's delay, rounded up to a power of 2
 */
static uint8_t add_ack_delay(uint8_t ack_timeout_enc, uint8_t delay_enc)
{
	uint8_t high = MAX(ack_timeout_enc, delay_enc),
		low = MIN(ack_timeout_enc, delay_enc);

	return (uint8_t)MIN(high + (low + 1 >= high), 31);
}

static void count_waits(struct cm_conn *conn)
{
	const struct cm_terms *terms = &conn->terms;
	uint64_t alternate_ns = cm_time_ns(terms->alternate.ack_timeout_enc);

	/* 12.9.8.4: no packet of the connection is older than this */
	conn->time_wait_ns = cm_time_ns(terms->ack_timeout_enc);
	if (terms->alternate.loaded)
		conn->time_wait_ns = MAX(conn->time_wait_ns, alternate_ns);
}

static void terms_of_any_req(struct cm_terms *terms, const struct wire_cm_req *req)
{
	terms->service = req->transport_service;
	terms->extended_transport = req->extended_transport;
	terms->path_mtu = req->path_mtu;
	terms->retry_count = req->retry_count;
	terms->rnr_retry_count = req->rnr_retry_count;
	terms->ack_timeout_enc = req->primary.local_ack_timeout_enc;
	terms->alternate.ack_timeout_enc = req->alternate.local_ack_timeout_enc;
	terms->pkey = req->pkey;
}

void cm_terms_of_own_req(struct cm_conn *conn, const struct wire_cm_req *req,
			 const struct cm_target *target)
{
	struct cm_terms *terms = &conn->terms;

	memset(terms, 0, sizeof(*terms));
	terms_of_any_req(terms, req);
	terms->responder_resources = req->responder_resources;
	terms->initiator_depth = req->initiator_depth;
	terms->srq = req->srq;
	terms->local_qpn = req->local_qpn;
	terms->local_qkey = req->local_qkey;
	terms->rq_psn = req->starting_psn; /* the peer sends from there */
	terms->primary = target->route;
	terms->alternate.route = target->alternate;
	terms->alternate.loaded = target->alternate.dlid != 0;
	conn->packet_life_enc = target->packet_life_enc;
	count_waits(conn);
}

void cm_terms_of_req(struct cm_conn *conn, const struct wire_cm_req *req,
		     const struct cm_route *route)
{
	struct cm_terms *terms = &conn->terms;

	memset(terms, 0, sizeof(*terms));
	terms_of_any_req(terms, req);
	terms->responder_resources = req->initiator_depth;
	terms->initiator_depth = req->responder_resources;
	terms->remote_srq = req->srq;
	terms->remote_qpn = req->local_qpn;
	terms->remote_qkey = req->local_qkey;
	terms->remote_ca_guid = req->local_ca_guid;
	terms->sq_psn = req->starting_psn;
	if (!cm_route_of_path(conn->cm, &req->primary, req->pkey, &terms->primary))
		terms->primary = *route;
	terms->alternate.loaded = cm_route_of_path(conn->cm, &req->alternate, req->pkey,
						   &terms->alternate.route);
	conn->remote_id = req->local_comm_id;
	conn->remote_ca_guid = req->local_ca_guid;
	conn->service_id = req->service_id;
	conn->max_tries = (uint8_t)(req->max_cm_retries + 1);
	/* an ACK's time-out is more than two packet lifetimes */
	conn->packet_life_enc = (uint8_t)(MAX(terms->ack_timeout_enc, 1) - 1);
	conn->response_ns = cm_time_ns(req->local_cm_response_timeout_enc);
	count_waits(conn);
}

void cm_terms_of_own_rep(struct cm_conn *conn, const struct wire_cm_rep *rep)
{
	struct cm_terms *terms = &conn->terms;

	terms->local_qpn = rep->local_qpn;
	terms->local_qkey = rep->local_qkey;
	terms->rq_psn = rep->starting_psn;
	terms->responder_resources = rep->responder_resources;
	terms->initiator_depth = rep->initiator_depth;
	terms->target_ack_delay_enc = rep->target_ack_delay_enc;
	terms->srq = rep->srq;
}

/* 12.7.27: the end that asks has the smaller of what both ends say */
void cm_terms_of_rep(struct cm_conn *conn, const struct wire_cm_rep *rep)
{
	struct cm_terms *terms = &conn->terms;

	terms->remote_qpn = rep->local_qpn;
	terms->remote_qkey = rep->local_qkey;
	terms->remote_ca_guid = rep->local_ca_guid;
	terms->sq_psn = rep->starting_psn;
	terms->rnr_retry_count = rep->rnr_retry_count;
	terms->responder_resources = rep->initiator_depth;
	terms->initiator_depth = rep->responder_resources;
	terms->target_ack_delay_enc = rep->target_ack_delay_enc;
	terms->remote_srq = rep->srq;
	terms->ack_timeout_enc = add_ack_delay((uint8_t)(conn->packet_life_enc + 1),
					       rep->target_ack_delay_enc);
	if (terms->alternate.loaded)
		terms->alternate.ack_timeout_enc = add_ack_delay(
			terms->alternate.ack_timeout_enc, rep->target_ack_delay_enc);
	conn->remote_id = rep->local_comm_id;
	conn->remote_ca_guid = rep->local_ca_guid;
	count_waits(conn);
}

void cm_note_alternate(struct cm_conn *conn, const struct cm_route *alternate,
		       uint8_t ack_timeout_enc)
{
	conn->before_lap = conn->terms.alternate;
	conn->terms.alternate = (struct cm_alternate){true, ack_timeout_enc, *alternate};
	count_waits(conn);
}

void cm_drop_alternate(struct cm_conn *conn)
{
	conn->terms.alternate = conn->before_lap;
	count_waits(conn);
}
