/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Follows redirections: a REJ or SIDR_REP that names the port, or the port and CM, where the
 * service is (12.6.7.2, reasons 24 and 25; 12.11.2, status 4). The request is sent again,
 * there, as often as its consumer allows. While the path is looked up, the id has a new
 * number that no peer knows, and is in the state that waits for the answer, without a timer.
 */
#include <errno.h>
#include <string.h>

#include "cm/private.h"
#include "wire/mad.h"

#define QP1 1

static bool is_gid(const union wire_gid *gid)
{
	static const union wire_gid none;

	return memcmp(gid, &none, sizeof(none)) != 0;
}

static bool take_class_port_info(const uint8_t *info, size_t bytes, struct cm_redirection *to)
{
	struct wire_class_port_info cpi;

	if (bytes < CM_ARI_MAX)
		return false;
	wire_class_port_info_decode(info, CM_ARI_MAX, &cpi);
	to->gid = cpi.redirect_gid;
	to->lid = cpi.redirect_lid;
	to->pkey = cpi.redirect_pkey;
	if (cpi.redirect_qpn > QP1) {
		to->qpn = cpi.redirect_qpn;
		to->qkey = cpi.redirect_qkey;
	}
	return is_gid(&to->gid);
}

static bool take_gid(const uint8_t *info, size_t bytes, struct cm_redirection *to)
{
	if (bytes < sizeof(to->gid))
		return false;
	memcpy(&to->gid, info, sizeof(to->gid));
	return is_gid(&to->gid);
}

static bool take_rej(const struct wire_cm_rej *rej, struct cm_redirection *to)
{
	if (rej->message != 0) /* not a REQ */
		return false;
	if (rej->reason == WIRE_CM_REJ_PORT_CM_REDIRECT)
		return take_class_port_info(rej->info, rej->info_bytes, to);
	return rej->reason == WIRE_CM_REJ_PORT_REDIRECT &&
	       take_gid(rej->info, rej->info_bytes, to);
}

static bool take_sidr_rep(const struct wire_cm_sidr_rep *rep, struct cm_redirection *to)
{
	return rep->status == WIRE_CM_SIDR_REDIRECT &&
	       take_class_port_info(rep->info, rep->info_bytes, to);
}

static bool waits_for(const struct cm_conn *conn, uint16_t attr)
{
	if (conn->redirecting)
		return false;
	if (attr == WIRE_CM_SIDR_REP)
		return conn->state == CM_SIDR_REQ_SENT;
	return conn->state == CM_REQ_SENT || conn->state == CM_MRA_REQ_RCVD;
}

bool cm_follow(struct cm_conn *conn, uint16_t attr, const union cm_message *answer)
{
	struct cm_redirection to = {.attr = attr, .answer = *answer};

	if (!conn->redirects || !conn->cm->ops->redirect || !waits_for(conn, attr))
		return false;
	if (!(attr == WIRE_CM_REJ ? take_rej(&answer->rej, &to)
				  : take_sidr_rep(&answer->sidr_rep, &to)))
		return false;
	if (conn->cm->ops->redirect(conn, &to))
		return false;
	conn->redirects--;
	return true;
}

/* --- the request, again --- */

static int ask_again(struct cm_conn *conn, const struct wire_cm_path *primary, mono_t now)
{
	const struct cm_target target = {.route = conn->route,
					 .packet_life_enc = conn->packet_life_enc};
	struct wire_mad header;
	struct wire_cm_req req;

	wire_mad_decode(conn->mad, WIRE_MAD_BYTES, &header);
	wire_cm_req_decode(conn->mad + WIRE_CM_DATA_OFFSET, WIRE_CM_DATA_BYTES, &req);
	req.ece_options = header.attr_mod;
	req.local_comm_id = conn->local_id;
	req.primary = *primary;
	req.pkey = conn->route.pkey;
	memset(&req.alternate, 0, sizeof(req.alternate));
	cm_terms_of_own_req(conn, &req, &target);
	return cm_call(conn, CM_CALL_REDIRECT, WIRE_CM_REQ, &req, conn->tid, now);
}

static int ask_again_sidr(struct cm_conn *conn, mono_t now)
{
	struct wire_cm_sidr_req req;

	wire_cm_sidr_req_decode(conn->mad + WIRE_CM_DATA_OFFSET, WIRE_CM_DATA_BYTES, &req);
	req.request_id = conn->local_id;
	req.pkey = conn->route.pkey;
	return cm_call(conn, CM_CALL_REDIRECT, WIRE_CM_SIDR_REQ, &req, conn->tid, now);
}

int cm_redirect(struct cm_conn *conn, const struct cm_route *route,
		const struct wire_cm_path *primary, uint8_t packet_life_enc, mono_t now)
{
	int ret;

	if (!conn->redirecting)
		return -EINVAL;
	conn->route = *route;
	conn->packet_life_enc = packet_life_enc;
	conn->tid = cm_new_tid(conn->cm);
	ret = conn->state == CM_SIDR_REQ_SENT ? ask_again_sidr(conn, now)
					      : ask_again(conn, primary, now);
	if (!ret)
		conn->redirecting = false;
	return ret;
}

void cm_redirect_fail(struct cm_conn *conn, const struct cm_redirection *to, mono_t now)
{
	const struct cm_input in = {
		.kind = CM_CALL_REDIRECT_FAIL,
		.now = now,
		.message = &to->answer,
		.route = &conn->route,
	};

	if (conn->redirecting)
		cm_step(conn, &in);
}
