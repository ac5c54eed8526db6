/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Logins: accepted, or rejected with the reason that applies first. */
#include <errno.h>
#include <string.h>

#include "srp/target.h"

#define FORMATS (WIRE_SRP_DIRECT_OK | WIRE_SRP_INDIRECT_OK)

int srp_login_read(struct srp_login *login, const void *data, size_t len)
{
	memset(login, 0, sizeof(*login));
	if (wire_srp_login_req_decode(data, len, &login->req) < 0 ||
	    login->req.opcode != WIRE_SRP_LOGIN_REQ)
		return -EINVAL;
	return 0;
}

/* An offset within the fixed part and its descriptors would have data and descriptors
 * overlap; one behind the IU leaves no room for data. */
static bool offset_is_good(const struct wire_srp_login_req *req)
{
	return req->immediate_offset >= WIRE_SRP_CMD_BYTES &&
	       req->immediate_offset < req->it_iu_bytes;
}

static uint32_t find_reason(const struct srp_login *login, const struct srp_port *port)
{
	const struct wire_srp_login_req *req = &login->req;
	const bool multi = (req->flags & WIRE_SRP_MULTICHANNEL) == WIRE_SRP_MULTI;

	if ((req->flags & WIRE_SRP_MULTICHANNEL) > WIRE_SRP_MULTI ||
	    req->it_iu_bytes < WIRE_SRP_MIN_IU_BYTES)
		return WIRE_SRP_REJECT_UNSPECIFIED;
	if (req->it_iu_bytes > SRP_MAX_IU_BYTES)
		return WIRE_SRP_REJECT_IU_TOO_LARGE;
	if (memcmp(req->target, port->id, sizeof(port->id)))
		return WIRE_SRP_REJECT_ASSOCIATION;
	if (req->formats & ~FORMATS)
		return WIRE_SRP_REJECT_FORMATS;
	if (multi && port->others && port->max_channels == 1)
		return WIRE_SRP_REJECT_NO_MULTICHANNEL;
	if (multi && port->others >= port->max_channels)
		return WIRE_SRP_REJECT_CHANNEL_LIMIT;
	return port->has_room ? 0 : WIRE_SRP_REJECT_RESOURCES;
}

void srp_login_judge(struct srp_login *login, const struct srp_port *port)
{
	const struct wire_srp_login_req *req = &login->req;

	login->reject = find_reason(login, port);
	if (login->reject)
		return;
	login->end_others =
		(req->flags & WIRE_SRP_MULTICHANNEL) == WIRE_SRP_SINGLE && port->others;
	login->it_iu_bytes = req->it_iu_bytes;
	if (req->flags & WIRE_SRP_IMMEDIATE && offset_is_good(req))
		login->immediate_offset = req->immediate_offset;
}

static uint8_t others_became(const struct srp_login *login, const struct srp_port *port)
{
	if (!port->others)
		return WIRE_SRP_NONE_BEFORE;
	return login->end_others ? WIRE_SRP_TERMINATED : WIRE_SRP_MAINTAINED;
}

size_t srp_login_answer(const struct srp_login *login, const struct srp_port *port,
			uint8_t to[WIRE_SRP_MIN_IU_BYTES])
{
	const struct wire_srp_login_rej rej = {
		.opcode = WIRE_SRP_LOGIN_REJ,
		.reason = login->reject,
		.tag = login->req.tag,
		.formats = FORMATS,
	};
	const struct wire_srp_login_rsp rsp = {
		.opcode = WIRE_SRP_LOGIN_RSP,
		.limit_delta = port->limit,
		.tag = login->req.tag,
		.it_iu_bytes = login->it_iu_bytes,
		.ti_iu_bytes = SRP_RSP_IU_BYTES > WIRE_SRP_MIN_IU_BYTES
				       ? SRP_RSP_IU_BYTES
				       : WIRE_SRP_MIN_IU_BYTES,
		.formats = FORMATS,
		.flags = (uint8_t)(others_became(login, port) |
				   (login->immediate_offset ? WIRE_SRP_IMMEDIATE : 0)),
	};

	return (size_t)(login->reject ? wire_srp_login_rej_encode(&rej, to)
				      : wire_srp_login_rsp_encode(&rsp, to));
}
