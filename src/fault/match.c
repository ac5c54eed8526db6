/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Extracts the fields of a packet that rules test, and matches rules. */
#include <errno.h>

#include "base/bytes.h"
#include "fault/private.h"
#include "wire/mad.h"
#include "wire/packet.h"

static void set_field(struct flt_event *ev, enum flt_field field, uint32_t value)
{
	ev->field[field] = value;
	ev->present |= 1u << field;
}

static uint32_t operation_of(uint32_t flags)
{
	return flags & WIRE_IS_SEND   ? FLT_SEND :
	       flags & WIRE_IS_WRITE  ? FLT_WRITE :
	       flags & WIRE_IS_READ   ? FLT_READ :
	       flags & WIRE_IS_ATOMIC ? FLT_ATOMIC :
					FLT_ACK;
}

/* a datagram of 256 bytes to QP0 or QP1 is a MAD (13.4.2) */
static void mad_fields(struct flt_event *ev, const struct wire_packet *pkt)
{
	const uint8_t *mad = pkt->payload;

	if (pkt->payload_bytes != WIRE_MAD_BYTES ||
	    !(wire_opcodes[pkt->bth.opcode].flags & WIRE_HAS_DETH) ||
	    (pkt->bth.dest_qpn > 1 && pkt->deth.src_qpn > 1))
		return;
	set_field(ev, FLT_CLASS, mad[1]);
	set_field(ev, FLT_METHOD, mad[3]);
	set_field(ev, FLT_ATTRIBUTE, wire_mad_attr_id(mad));
	set_field(ev, FLT_MODIFIER, get_be32(mad + 20));
}

int flt_event_packet(struct flt_event *ev, const void *bytes, size_t len)
{
	struct wire_packet pkt;

	if (wire_packet_decode(bytes, len, &pkt) < 0)
		return -EINVAL;
	ev->present = 0;
	set_field(ev, FLT_OPCODE, pkt.bth.opcode);
	set_field(ev, FLT_TRANSPORT, pkt.bth.opcode & WIRE_TRANSPORT_MASK);
	set_field(ev, FLT_OPERATION, operation_of(wire_opcodes[pkt.bth.opcode].flags));
	set_field(ev, FLT_DEST_QPN, pkt.bth.dest_qpn);
	if (wire_opcodes[pkt.bth.opcode].flags & WIRE_HAS_DETH)
		set_field(ev, FLT_SRC_QPN, pkt.deth.src_qpn);
	set_field(ev, FLT_PSN, pkt.bth.psn.v);
	set_field(ev, FLT_VL, pkt.lrh.vl);
	set_field(ev, FLT_SL, pkt.lrh.sl);
	set_field(ev, FLT_SLID, pkt.lrh.slid);
	set_field(ev, FLT_DLID, pkt.lrh.dlid);
	set_field(ev, FLT_PKEY, pkt.bth.pkey);
	set_field(ev, FLT_BYTES, (uint32_t)len);
	mad_fields(ev, &pkt);
	return 0;
}

static bool is_at(const struct flt_rule *rule, const struct flt_end *end)
{
	return end->node == rule->node && end->port == rule->port;
}

/* the directions in which the packet passes the rule's place: bits of enum
 * flt_direction */
static uint32_t ways(const struct flt_rule *rule, const struct flt_event *ev)
{
	bool inside = ev->from.node == ev->to.node && ev->from.port == ev->to.port;
	uint32_t src = ev->present & 1u << FLT_SRC_QPN ? ev->field[FLT_SRC_QPN] : ev->from_qpn;

	switch (rule->place) {
	case FLT_ANYWHERE:
		return ev->first ? FLT_BOTH : 0;
	case FLT_LINK:
		if (inside)
			return 0;
		/* fallthrough */
	case FLT_PORT:
		return (is_at(rule, &ev->to) ? FLT_IN : 0) | (is_at(rule, &ev->from) ? FLT_OUT : 0);
	case FLT_NODE:
		return (ev->to.node == rule->node ? FLT_IN : 0) |
		       (ev->from.node == rule->node ? FLT_OUT : 0);
	default:
		return (ev->to.node == rule->node && !ev->to.is_switch &&
					ev->field[FLT_DEST_QPN] == rule->qpn ?
				FLT_IN :
				0) |
		       (ev->from.node == rule->node && ev->first && src == rule->qpn ? FLT_OUT : 0);
	}
}

/* 9.7.5.2.8: an RNR NAK answers a request of a reliable service that needs a receive */
static bool takes_receive(const struct flt_event *ev)
{
	uint32_t opcode = ev->field[FLT_OPCODE] & 0xff, flags = wire_opcodes[opcode].flags;
	uint32_t transport = opcode & WIRE_TRANSPORT_MASK;

	return (transport == WIRE_RC || transport == WIRE_XRC) && wire_takes_receive(flags);
}

bool flt_matches(const struct flt_rule *rule, const struct flt_event *ev, unsigned int *way)
{
	uint32_t passes = ways(rule, ev) & rule->direction;

	if (!passes || (rule->conditions & ev->present) != rule->conditions)
		return false;
	for (uint32_t i = 0; i < FLT_NUM_FIELDS; i++)
		if (rule->conditions & 1u << i &&
		    (ev->field[i] < rule->field[i].low || ev->field[i] > rule->field[i].high))
			return false;
	*way = passes & FLT_IN ? 0 : 1;
	return rule->action != FLT_RNR || takes_receive(ev);
}
