/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Requests of QEMU's, and the ways of the guest's CM messages. */
#include <string.h>

#include "pvrdma/mux.h"
#include "wire/cm.h"
#include "wire/mad.h"

_Static_assert(sizeof(struct pvrdma_message) == 360, "as QEMU has it");

bool pvrdma_is_request(const struct pvrdma_message *m)
{
	return m->type == PVRDMA_REQUEST &&
	       (m->operation == PVRDMA_ADD_GID || m->operation == PVRDMA_REMOVE_GID ||
		(m->operation == PVRDMA_MAD && m->mad_bytes == PVRDMA_MAD_BYTES));
}

/* --- the table --- */

static void note(struct pvrdma_routes *routes, uint32_t id, bool is_own, const union wire_gid *gid)
{
	if (id)
		routes->route[routes->num++ % PVRDMA_ROUTES] = (struct pvrdma_route){id, is_own, *gid};
}

/* the latest first: an id may be used again */
static bool find(const struct pvrdma_routes *routes, uint32_t id, bool is_own, union wire_gid *gid)
{
	uint32_t left = MIN(routes->num, PVRDMA_ROUTES);

	for (uint32_t i = routes->num; id && left; left--) {
		const struct pvrdma_route *route = &routes->route[--i % PVRDMA_ROUTES];

		if (route->id != id || route->is_own != is_own)
			continue;
		*gid = route->gid;
		return true;
	}
	return false;
}

/* --- messages --- */

/** union message - what of a message names its way; all but REQ and SIDR begin as an RTU */
union message {
	struct wire_cm_req req;
	struct wire_cm_sidr_req sidr_req;
	struct wire_cm_sidr_rep sidr_rep;
	struct wire_cm_rtu rtu;
};

/* Return: the attribute; 0: no message of the CM */
static uint16_t decode(const uint8_t *mad, union message *m)
{
	static const struct {
		uint16_t attr;
		const struct wire_codec *codec;
	} codecs[] = {
		{WIRE_CM_REQ, &wire_cm_req_codec},
		{WIRE_CM_SIDR_REQ, &wire_cm_sidr_req_codec},
		{WIRE_CM_SIDR_REP, &wire_cm_sidr_rep_codec},
	};
	const struct wire_codec *codec = &wire_cm_rtu_codec;
	struct wire_mad header;

	wire_mad_decode(mad, PVRDMA_MAD_BYTES, &header);
	if (header.mgmt_class != WIRE_CLASS_CM || header.method != WIRE_METHOD_SEND ||
	    header.attr_id < WIRE_CM_REQ || header.attr_id > WIRE_CM_APR)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(codecs); i++)
		if (codecs[i].attr == header.attr_id)
			codec = codecs[i].codec;
	wire_fields_decode(codec, mad + WIRE_CM_DATA_OFFSET, WIRE_CM_DATA_BYTES, m);
	return header.attr_id;
}

/* A11.4: the RDMA CM's private data begins with the IP version in the upper half of its second byte,
 * and has the destination's address at 20; an IPv4 address is in the last of 16 bytes. On RoCE the
 * address makes the GID (A17.4.2). A SIDR_REQ has no other. */
static bool gid_of_address(const uint8_t *private_data, union wire_gid *gid)
{
	static const union wire_gid mapped = {.raw = {[10] = 0xff, [11] = 0xff}};
	uint8_t version = private_data[1] >> 4;

	if (version != 4 && version != 6)
		return false;
	memcpy(gid, private_data + 20, sizeof(*gid));
	if (version == 4)
		memcpy(gid, &mapped, 12);
	return true;
}

bool pvrdma_route_out(struct pvrdma_routes *routes, const uint8_t *mad, union wire_gid *gid)
{
	union message m = {0};

	switch (decode(mad, &m)) {
	case 0:
		return false;
	case WIRE_CM_REQ:
		*gid = m.req.primary.remote_gid;
		note(routes, m.req.local_comm_id, true, gid);
		return true;
	case WIRE_CM_SIDR_REQ:
		return gid_of_address(m.sidr_req.private_data, gid);
	case WIRE_CM_SIDR_REP:
		return find(routes, m.sidr_rep.request_id, false, gid);
	default: /* who gives up before it has an answer does not know the peer's id */
		return find(routes, m.rtu.remote_comm_id, false, gid) ||
		       find(routes, m.rtu.local_comm_id, true, gid);
	}
}

void pvrdma_route_in(struct pvrdma_routes *routes, const uint8_t *mad, const union wire_gid *gid)
{
	union message m = {0};

	switch (decode(mad, &m)) {
	case WIRE_CM_REQ:
		note(routes, m.req.local_comm_id, false, gid);
		break;
	case WIRE_CM_SIDR_REQ:
		note(routes, m.sidr_req.request_id, false, gid);
		break;
	case WIRE_CM_REP:
		note(routes, m.rtu.local_comm_id, false, gid);
		break;
	}
}
