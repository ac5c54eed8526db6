/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The CM's events of the trace, from the reports of src/cm. */
#include <stdio.h>

#include "core/cm_priv.h"
#include "core/trace.h"

#define MORE_BYTES 64

/** struct header - the fields that all messages have
 *  @sender, @receiver: communication ids of the two ends; 0: the message does not have it */
struct header {
	const char *name;
	uint16_t attr;
	uint32_t sender, receiver;
	const uint8_t *data;
};

/* 12.6: a REQ has only the sender's id. SIDR messages have the id of the request, which the
 * requester has chosen. */
static struct header header_of(const uint8_t *mad)
{
	struct header h = {.attr = wire_mad_attr_id(mad), .data = mad + WIRE_CM_DATA_OFFSET};

	h.name = cm_message_name(h.attr);
	if (h.attr == WIRE_CM_SIDR_REP)
		h.receiver = get_be32(h.data);
	else
		h.sender = get_be32(h.data);
	if (h.attr != WIRE_CM_REQ && h.attr != WIRE_CM_SIDR_REQ && h.attr != WIRE_CM_SIDR_REP)
		h.receiver = get_be32(h.data + 4);
	return h;
}

/* Return: the important fields of a message besides its ids, as text */
static const char *more_of(const struct header *h, char text[MORE_BYTES])
{
	union cm_message m;

	text[0] = 0;
	if (h->attr == WIRE_CM_REQ) {
		wire_fields_decode(&wire_cm_req_codec, h->data, WIRE_CM_DATA_BYTES, &m);
		snprintf(text, MORE_BYTES, " service=0x%016" PRIx64 " qpn=0x%06x", m.req.service_id,
			 m.req.local_qpn);
	} else if (h->attr == WIRE_CM_REP) {
		wire_fields_decode(&wire_cm_rep_codec, h->data, WIRE_CM_DATA_BYTES, &m);
		snprintf(text, MORE_BYTES, " qpn=0x%06x", m.rep.local_qpn);
	} else if (h->attr == WIRE_CM_REJ) {
		wire_fields_decode(&wire_cm_rej_codec, h->data, WIRE_CM_DATA_BYTES, &m);
		snprintf(text, MORE_BYTES, " reason=%u", m.rej.reason);
	} else if (h->attr == WIRE_CM_SIDR_REQ) {
		wire_fields_decode(&wire_cm_sidr_req_codec, h->data, WIRE_CM_DATA_BYTES, &m);
		snprintf(text, MORE_BYTES, " service=0x%016" PRIx64, m.sidr_req.service_id);
	} else if (h->attr == WIRE_CM_SIDR_REP) {
		wire_fields_decode(&wire_cm_sidr_rep_codec, h->data, WIRE_CM_DATA_BYTES, &m);
		snprintf(text, MORE_BYTES, " qpn=0x%06x status=%u", m.sidr_rep.qpn,
			 m.sidr_rep.status);
	}
	return text;
}

void cm_id_trace(struct cm *cm, const struct cm_trace *t)
{
	const struct cm_device *dev = cm->owner;
	struct rt_trace_at at = RT_TRACE_AT(dev->device, t->route->port);
	uint32_t id = t->conn ? t->conn->local_id : 0, peer = t->conn ? t->conn->remote_id : 0;
	char more[MORE_BYTES];
	struct header h = {0};

	if (t->mad)
		h = header_of(t->mad);
	switch (t->kind) {
	case CM_TRACE_SENT:
		trace_cm_send(at, h.name, h.sender, h.receiver, more_of(&h, more), t->error);
		break;
	case CM_TRACE_RECEIVED:
		trace_cm_receive(at, h.name, h.receiver, h.sender, more_of(&h, more));
		break;
	case CM_TRACE_IGNORED:
		trace_cm_ignore(at, h.name, h.receiver, h.sender);
		break;
	case CM_TRACE_STATE:
		trace_cm_state(at, id, peer, t->conn->service_id, cm_state_name((enum cm_state)t->from),
			       cm_state_name((enum cm_state)t->to));
		break;
	case CM_TRACE_LAP_STATE:
		trace_cm_lap_state(at, id, peer, cm_lap_state_name((enum cm_lap_state)t->from),
				   cm_lap_state_name((enum cm_lap_state)t->to));
		break;
	case CM_TRACE_NEWS:
		trace_cm_event(at, id, peer, cm_news_name(t->news));
		break;
	}
}
