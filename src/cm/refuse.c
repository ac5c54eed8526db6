/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Rejects REQs without involving a consumer (12.6.7.2), and answers messages that
 * belong to no communication id.
 */
#include <string.h>

#include "cm/private.h"
#include "wire/address.h"

static void put_be(uint8_t *to, uint64_t value, unsigned int bytes)
{
	for (unsigned int i = 0; i < bytes; i++)
		to[i] = (uint8_t)(value >> 8 * (bytes - 1 - i));
}

/* The additional information is the value that would have been accepted. */
static bool refuse(struct wire_cm_rej *rej, uint16_t reason, uint64_t value,
		   unsigned int bytes)
{
	rej->reason = reason;
	rej->info_bytes = (uint8_t)bytes;
	put_be(rej->info, value, bytes);
	return true;
}

static bool refuse_gid(struct wire_cm_rej *rej, uint16_t reason,
		       const union wire_gid *gid)
{
	rej->reason = reason;
	rej->info_bytes = sizeof(*gid);
	memcpy(rej->info, gid, sizeof(*gid));
	return true;
}

static bool lid_is_of(uint16_t lid, const struct cm_port *port)
{
	return wire_addr_is_of(wire_addr_of_lid(lid), wire_port_addrs(port->lid, port->lmc));
}

static bool refuse_alternate(struct cm *cm, const struct wire_cm_path *path,
			     const struct cm_port *primary, struct wire_cm_rej *rej)
{
	struct cm_port port;

	if (!path->remote_lid && !path->local_lid) /* no path is given */
		return false;
	if (!cm->ops->find_port(cm, 0, &path->remote_gid, &port))
		return refuse_gid(rej, WIRE_CM_REJ_ALTERNATE_GID, &primary->gid);
	if (path->subnet_local && !lid_is_of(path->remote_lid, &port))
		return refuse(rej, WIRE_CM_REJ_ALTERNATE_LID, port.lid, 2);
	return false;
}

bool cm_refusal(struct cm *cm, const struct wire_cm_req *req,
		const struct cm_route *route, struct wire_cm_rej *rej)
{
	struct cm_port port;

	*rej = (struct wire_cm_rej){.remote_comm_id = req->local_comm_id};
	if (req->transport_service == WIRE_CM_RD ||
	    (req->transport_service == WIRE_CM_EXTENDED && req->extended_transport != 1))
		return refuse(rej, WIRE_CM_REJ_INVALID_TRANSPORT, 0, 0);
	if (!cm->ops->find_port(cm, 0, &req->primary.remote_gid, &port)) {
		if (!cm->ops->find_port(cm, route->port, NULL, &port))
			return refuse(rej, WIRE_CM_REJ_PRIMARY_GID, 0, 0);
		return refuse_gid(rej, WIRE_CM_REJ_PRIMARY_GID, &port.gid);
	}
	if (port.redirect && !route->own_qpn) { /* 13.5.2 */
		rej->reason = WIRE_CM_REJ_PORT_CM_REDIRECT;
		rej->info_bytes = CM_ARI_MAX;
		memcpy(rej->info, port.redirect, CM_ARI_MAX);
		return true;
	}
	if (req->primary.subnet_local && !lid_is_of(req->primary.remote_lid, &port))
		return refuse(rej, WIRE_CM_REJ_PRIMARY_LID, port.lid, 2);
	if (!req->path_mtu || req->path_mtu > port.max_mtu)
		return refuse(rej, WIRE_CM_REJ_INVALID_MTU, port.max_mtu, 1);
	return refuse_alternate(cm, &req->alternate, &port, rej);
}

void cm_reply_rej(struct cm *cm, const struct cm_route *route, uint64_t tid,
		  const struct wire_cm_rej *rej)
{
	uint8_t mad[WIRE_MAD_BYTES];

	cm_header(cm, mad, WIRE_CM_REJ, tid, 0);
	wire_cm_rej_encode(rej, mad + WIRE_CM_DATA_OFFSET);
	cm_transmit(cm, NULL, route, mad);
}

void cm_reply_drep(struct cm *cm, const struct cm_route *route, uint64_t tid,
		   const struct wire_cm_dreq *dreq)
{
	const struct wire_cm_drep drep = {
		.local_comm_id = dreq->remote_comm_id,
		.remote_comm_id = dreq->local_comm_id,
	};
	uint8_t mad[WIRE_MAD_BYTES];

	cm_header(cm, mad, WIRE_CM_DREP, tid, 0);
	wire_cm_drep_encode(&drep, mad + WIRE_CM_DATA_OFFSET);
	cm_transmit(cm, NULL, route, mad);
}

static void reply_sidr(struct cm *cm, const struct cm_route *route, uint64_t tid,
		       const struct wire_cm_sidr_rep *rep)
{
	uint8_t mad[WIRE_MAD_BYTES];

	cm_header(cm, mad, WIRE_CM_SIDR_REP, tid, 0);
	wire_cm_sidr_rep_encode(rep, mad + WIRE_CM_DATA_OFFSET);
	cm_transmit(cm, NULL, route, mad);
}

void cm_reply_sidr(struct cm *cm, const struct cm_route *route, uint64_t tid,
		   const struct wire_cm_sidr_req *req, enum wire_cm_sidr_status status)
{
	const struct wire_cm_sidr_rep rep = {
		.request_id = req->request_id,
		.status = (uint8_t)status,
		.service_id = req->service_id,
	};

	reply_sidr(cm, route, tid, &rep);
}

bool cm_redirects_sidr(struct cm *cm, const struct cm_route *route, uint64_t tid,
		       const struct wire_cm_sidr_req *req)
{
	struct wire_cm_sidr_rep rep = {
		.request_id = req->request_id,
		.status = WIRE_CM_SIDR_REDIRECT,
		.info_bytes = CM_ARI_MAX,
		.service_id = req->service_id,
	};
	struct cm_port port;

	if (route->own_qpn || !cm->ops->find_port(cm, route->port, NULL, &port) ||
	    !port.redirect)
		return false;
	memcpy(rep.info, port.redirect, CM_ARI_MAX);
	reply_sidr(cm, route, tid, &rep);
	return true;
}
