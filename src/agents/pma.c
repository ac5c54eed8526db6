/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The performance management agent (IBA v1 16.1): counters that are read and
 * written by tables. A row of a table connects a field of the wire's struct with
 * a counter of struct ag_counters and with the bit of CounterSelect that selects
 * it. A value that exceeds the field's width saturates.
 *
 * The optional attributes are in pma_vl.c, sampling in pma_samples.c.
 * With PortSelect 255 a Get reads the sum over all ports and a Set writes all ports.
 */
#include <string.h>

#include "agents/agents_private.h"

/** struct pma_field - one counter in an attribute */
struct pma_field {
	uint16_t offset; /* in the wire struct */
	uint8_t size;	 /* bytes there */
	uint8_t bits;	 /* on the wire, where it saturates */
	uint8_t counter; /* enum ag_counter */
	uint64_t select; /* of CounterSelect | CounterSelect2 << 16 */
};

#define FIELD(type, member, bits, counter, select) \
	{offsetof(struct type, member), sizeof(((struct type *)0)->member), bits, counter, select}
#define SELECT2(bit) (1ull << (16 + (bit)))

/* xmit_wait has its bit in CounterSelect2; vl15_dropped's bit also selects qp1_dropped */
static const struct pma_field port_counters[] = {
#define F(m, bits, c, sel) FIELD(wire_port_counters, m, bits, c, sel)
	F(symbol_errors, 16, AG_SYMBOL_ERRORS, WIRE_PC_SYMBOL_ERRORS),
	F(link_error_recovery, 8, AG_LINK_RECOVERY, WIRE_PC_LINK_ERROR_RECOVERY),
	F(link_downed, 8, AG_LINK_DOWNED, WIRE_PC_LINK_DOWNED),
	F(rcv_errors, 16, AG_RCV_ERRORS, WIRE_PC_RCV_ERRORS),
	F(rcv_remote_physical_errors, 16, AG_RCV_REMOTE_PHYSICAL,
	  WIRE_PC_RCV_REMOTE_PHYSICAL_ERRORS),
	F(rcv_switch_relay_errors, 16, AG_RCV_SWITCH_RELAY, WIRE_PC_RCV_SWITCH_RELAY_ERRORS),
	F(xmit_discards, 16, AG_XMIT_DISCARDS, WIRE_PC_XMIT_DISCARDS),
	F(xmit_constraint_errors, 8, AG_XMIT_CONSTRAINT, WIRE_PC_XMIT_CONSTRAINT_ERRORS),
	F(rcv_constraint_errors, 8, AG_RCV_CONSTRAINT, WIRE_PC_RCV_CONSTRAINT_ERRORS),
	F(local_link_integrity_errors, 4, AG_LOCAL_INTEGRITY, WIRE_PC_LOCAL_LINK_INTEGRITY_ERRORS),
	F(excessive_buffer_overrun_errors, 4, AG_BUFFER_OVERRUN,
	  WIRE_PC_EXCESSIVE_BUFFER_OVERRUN_ERRORS),
	F(qp1_dropped, 16, AG_QP1_DROPPED, WIRE_PC_VL15_DROPPED),
	F(vl15_dropped, 16, AG_VL15_DROPPED, WIRE_PC_VL15_DROPPED),
	F(xmit_data_dwords, 32, AG_XMIT_DATA, WIRE_PC_XMIT_DATA),
	F(rcv_data_dwords, 32, AG_RCV_DATA, WIRE_PC_RCV_DATA),
	F(xmit_pkts, 32, AG_XMIT_PACKETS, WIRE_PC_XMIT_PKTS),
	F(rcv_pkts, 32, AG_RCV_PACKETS, WIRE_PC_RCV_PKTS),
	F(xmit_wait, 32, AG_XMIT_WAIT, SELECT2(0)),
#undef F
};

static const struct pma_field port_counters_ext[] = {
#define F(m, c, sel) FIELD(wire_port_counters_extended, m, 64, c, sel)
	F(xmit_data_dwords, AG_XMIT_DATA, WIRE_PCX_XMIT_DATA),
	F(rcv_data_dwords, AG_RCV_DATA, WIRE_PCX_RCV_DATA),
	F(xmit_pkts, AG_XMIT_PACKETS, WIRE_PCX_XMIT_PKTS),
	F(rcv_pkts, AG_RCV_PACKETS, WIRE_PCX_RCV_PKTS),
	F(unicast_xmit_pkts, AG_UNICAST_XMIT, WIRE_PCX_UNICAST_XMIT_PKTS),
	F(unicast_rcv_pkts, AG_UNICAST_RCV, WIRE_PCX_UNICAST_RCV_PKTS),
	F(multicast_xmit_pkts, AG_MULTICAST_XMIT, WIRE_PCX_MULTICAST_XMIT_PKTS),
	F(multicast_rcv_pkts, AG_MULTICAST_RCV, WIRE_PCX_MULTICAST_RCV_PKTS),
	F(symbol_errors, AG_SYMBOL_ERRORS, SELECT2(0)),
	F(link_error_recovery, AG_LINK_RECOVERY, SELECT2(1)),
	F(link_downed, AG_LINK_DOWNED, SELECT2(2)),
	F(rcv_errors, AG_RCV_ERRORS, SELECT2(3)),
	F(rcv_remote_physical_errors, AG_RCV_REMOTE_PHYSICAL, SELECT2(4)),
	F(rcv_switch_relay_errors, AG_RCV_SWITCH_RELAY, SELECT2(5)),
	F(xmit_discards, AG_XMIT_DISCARDS, SELECT2(6)),
	F(xmit_constraint_errors, AG_XMIT_CONSTRAINT, SELECT2(7)),
	F(rcv_constraint_errors, AG_RCV_CONSTRAINT, SELECT2(8)),
	F(local_link_integrity_errors, AG_LOCAL_INTEGRITY, SELECT2(9)),
	F(excessive_buffer_overrun_errors, AG_BUFFER_OVERRUN, SELECT2(10)),
	F(vl15_dropped, AG_VL15_DROPPED, SELECT2(11)),
	F(xmit_wait, AG_XMIT_WAIT, SELECT2(12)),
	F(qp1_dropped, AG_QP1_DROPPED, SELECT2(13)),
#undef F
};

static const struct pma_field rcv_error_details[] = {
#define F(m, c, bit) FIELD(wire_port_rcv_error_details, m, 16, c, 1 << (bit))
	F(local_physical_errors, AG_RCV_LOCAL_PHYSICAL, 0),
	F(malformed_packet_errors, AG_RCV_MALFORMED, 1),
	F(buffer_overrun_errors, AG_RCV_BUFFER_OVERRUN, 2),
	F(dlid_mapping_errors, AG_RCV_DLID_MAPPING, 3),
	F(vl_mapping_errors, AG_RCV_VL_MAPPING, 4),
	F(looping_errors, AG_RCV_LOOPING, 5),
#undef F
};

static const struct pma_field xmit_discard_details[] = {
#define F(m, c, bit) FIELD(wire_port_xmit_discard_details, m, 16, c, 1 << (bit))
	F(inactive_discards, AG_DISCARD_INACTIVE, 0),
	F(neighbor_mtu_discards, AG_DISCARD_NEIGHBOR_MTU, 1),
	F(sw_lifetime_limit_discards, AG_DISCARD_SW_LIFETIME, 2),
	F(sw_hoq_lifetime_limit_discards, AG_DISCARD_SW_HOQ, 3),
#undef F
};

/** struct pma_attr - an attribute that consists of counters of a port */
struct pma_attr {
	const struct wire_codec *codec;
	const struct pma_field *fields;
	size_t nr_fields;
	bool extended; /* it is reset independently: ag_seldom.base_ext */
	uint16_t port_select, select; /* offsets; every attribute has both */
	uint16_t select2; /* offset, 0: none */
	uint8_t select2_size;
};

#define PMA_ATTR(type, table, ext)                                                       \
	.codec = &type##_codec, .fields = table, .nr_fields = ARRAY_SIZE(table),         \
	.extended = ext, .port_select = offsetof(struct type, port_select),              \
	.select = offsetof(struct type, counter_select)
#define PMA_SELECT2(type)                                                                \
	.select2 = offsetof(struct type, counter_select2),                               \
	.select2_size = sizeof(((struct type *)0)->counter_select2)

static const struct pma_attr attr_port_counters = {
	PMA_ATTR(wire_port_counters, port_counters, false), PMA_SELECT2(wire_port_counters)};
static const struct pma_attr attr_port_counters_ext = {
	PMA_ATTR(wire_port_counters_extended, port_counters_ext, true),
	PMA_SELECT2(wire_port_counters_extended)};
static const struct pma_attr attr_rcv_error_details = {
	PMA_ATTR(wire_port_rcv_error_details, rcv_error_details, false)};
static const struct pma_attr attr_xmit_discard_details = {
	PMA_ATTR(wire_port_xmit_discard_details, xmit_discard_details, false)};

union pma_object {
	struct wire_port_counters counters;
	struct wire_port_counters_extended extended;
	struct wire_port_rcv_error_details rcv;
	struct wire_port_xmit_discard_details xmit;
	struct wire_port_xmit_data_sl sl;
	uint8_t bytes[1];
};

static void store(uint8_t *p, unsigned int size, uint64_t value)
{
	switch (size) {
	case 1: *p = (uint8_t)value; break;
	case 2: *(uint16_t *)p = (uint16_t)value; break;
	case 4: *(uint32_t *)p = (uint32_t)value; break;
	case 8: *(uint64_t *)p = value; break;
	}
}

static uint64_t load(const uint8_t *p, unsigned int size)
{
	switch (size) {
	case 1: return *p;
	case 2: return *(const uint16_t *)p;
	case 4: return *(const uint32_t *)p;
	}
	return *(const uint64_t *)p;
}

bool ag_pma_ports(const struct ag_request *rq, uint8_t select, unsigned int *first,
		  unsigned int *last)
{
	*first = *last = select;
	if (select == WIRE_PMA_ALL_PORTS) {
		*first = 1;
		*last = rq->node->num_ports;
		return true;
	}
	return ag_port_exists(rq->node, select);
}

static uint64_t saturate(uint64_t value, unsigned int bits)
{
	uint64_t max = bits == 64 ? UINT64_MAX : (1ull << bits) - 1;

	return MIN(value, max);
}

static uint64_t *base_of(const struct ag_port *port, const struct pma_attr *attr)
{
	return attr->extended ? port->seldom->base_ext : port->seldom->base;
}

static uint16_t counters_get(struct ag_request *rq, const struct pma_attr *attr)
{
	union pma_object obj;
	unsigned int first, last;

	wire_fields_decode(attr->codec, rq->data, WIRE_PMA_DATA_BYTES, &obj);
	if (!ag_pma_ports(rq, obj.bytes[attr->port_select], &first, &last))
		return WIRE_STATUS_BAD_FIELD;
	for (size_t i = 0; i < attr->nr_fields; i++) {
		const struct pma_field *f = &attr->fields[i];
		uint64_t sum = 0;

		for (unsigned int p = first; p <= last; p++) {
			const struct ag_port *port = &rq->node->port[p];

			sum += port->count.raw[f->counter] - base_of(port, attr)[f->counter];
		}
		store(obj.bytes + f->offset, f->size, saturate(sum, f->bits));
	}
	wire_fields_encode(attr->codec, &obj, rq->data);
	return WIRE_STATUS_OK;
}

static uint16_t counters_set(struct ag_request *rq, const struct pma_attr *attr)
{
	union pma_object obj;
	unsigned int first, last;
	uint64_t selected;

	wire_fields_decode(attr->codec, rq->data, WIRE_PMA_DATA_BYTES, &obj);
	if (!ag_pma_ports(rq, obj.bytes[attr->port_select], &first, &last))
		return WIRE_STATUS_BAD_FIELD;
	selected = load(obj.bytes + attr->select, sizeof(uint16_t));
	if (attr->select2)
		selected |= load(obj.bytes + attr->select2, attr->select2_size) << 16;
	for (size_t i = 0; i < attr->nr_fields; i++) {
		const struct pma_field *f = &attr->fields[i];
		uint64_t value = load(obj.bytes + f->offset, f->size);

		for (unsigned int p = first; p <= last && (selected & f->select); p++) {
			const struct ag_port *port = &rq->node->port[p];

			base_of(port, attr)[f->counter] = port->count.raw[f->counter] - value;
		}
	}
	return WIRE_STATUS_OK;
}

#define COUNTER_ATTR(name)                                                               \
	static uint16_t name##_get(struct ag_request *rq)                                \
	{                                                                                \
		return counters_get(rq, &attr_##name);                                   \
	}                                                                                \
	static uint16_t name##_set(struct ag_request *rq)                                \
	{                                                                                \
		return counters_set(rq, &attr_##name);                                   \
	}
COUNTER_ATTR(port_counters)
COUNTER_ATTR(port_counters_ext)
COUNTER_ATTR(rcv_error_details)
COUNTER_ATTR(xmit_discard_details)

/* PortXmitDataSL and PortRcvDataSL: 16 counters each, with the same layout */
static uint16_t data_sl(struct ag_request *rq, bool set, size_t raw, size_t base)
{
	struct wire_port_xmit_data_sl obj;
	unsigned int first, last;

	wire_port_xmit_data_sl_decode(rq->data, WIRE_PMA_DATA_BYTES, &obj);
	if (!ag_pma_ports(rq, obj.port_select, &first, &last))
		return WIRE_STATUS_BAD_FIELD;
	for (unsigned int sl = 0; sl < AG_VLS; sl++) {
		uint64_t sum = 0;

		for (unsigned int p = first; p <= last; p++) {
			struct ag_port *port = &rq->node->port[p];
			uint64_t *r = (uint64_t *)((char *)port->seldom + raw) + sl;
			uint64_t *b = (uint64_t *)((char *)port->seldom + base) + sl;

			if (set && obj.counter_select >> sl & 1)
				*b = *r - obj.data_dwords[sl];
			sum += *r - *b;
		}
		if (!set)
			obj.data_dwords[sl] = (uint32_t)saturate(sum, 32);
	}
	wire_port_xmit_data_sl_encode(&obj, rq->data);
	return WIRE_STATUS_OK;
}

#define DATA_SL_ATTR(dir, set_it, verb)                                                  \
	static uint16_t dir##_data_sl_##verb(struct ag_request *rq)                      \
	{                                                                                \
		return data_sl(rq, set_it, offsetof(struct ag_seldom, dir##_sl),         \
			       offsetof(struct ag_seldom, base_##dir##_sl));             \
	}
DATA_SL_ATTR(xmit, false, get)
DATA_SL_ATTR(xmit, true, set)
DATA_SL_ATTR(rcv, false, get)
DATA_SL_ATTR(rcv, true, set)

static uint16_t class_port_info_get(struct ag_request *rq)
{
	struct wire_class_port_info info = {
		.base_version = WIRE_MAD_BASE_VERSION,
		.class_version = WIRE_PMA_CLASS_VERSION,
		.cap_mask = WIRE_PMA_CAP_ALL_PORTS | WIRE_PMA_CAP_EXTENDED_COUNTERS |
			    WIRE_PMA_CAP_XMIT_WAIT | WIRE_PMA_CAP_QP1_DROPPED,
		.cap_mask2 = WIRE_PMA_CAP2_ADDITIONAL_EXTENDED,
		.resp_time_enc = 18,
	};

	wire_class_port_info_encode(&info, rq->data);
	return WIRE_STATUS_OK;
}

#define AT_REST(name) ag_##name, ag_##name
static const struct ag_attr attributes[] = {
	{WIRE_PMA_CLASS_PORT_INFO, false, class_port_info_get, NULL},
	{WIRE_PMA_PORT_SAMPLES_CONTROL, false, ag_samples_control_get, ag_samples_control_set},
	{WIRE_PMA_PORT_SAMPLES_RESULT, false, ag_samples_result_get, NULL},
	{WIRE_PMA_PORT_SAMPLES_RESULT_EXTENDED, false, ag_samples_result_ext_get, NULL},
	{WIRE_PMA_PORT_COUNTERS, false, port_counters_get, port_counters_set},
	{WIRE_PMA_PORT_RCV_ERROR_DETAILS, false, rcv_error_details_get, rcv_error_details_set},
	{WIRE_PMA_PORT_XMIT_DISCARD_DETAILS, false, xmit_discard_details_get,
	 xmit_discard_details_set},
	{WIRE_PMA_PORT_OP_RCV_COUNTERS, false, ag_op_rcv_get, ag_op_rcv_set},
	{WIRE_PMA_PORT_FLOW_CTL_COUNTERS, false, AT_REST(port_flow_ctl_counters)},
	{WIRE_PMA_PORT_VL_OP_PACKETS, false, ag_vl_op_packets_get, ag_vl_op_packets_set},
	{WIRE_PMA_PORT_VL_OP_DATA, false, ag_vl_op_data_get, ag_vl_op_data_set},
	{WIRE_PMA_PORT_VL_XMIT_FLOW_CTL_UPDATE_ERRORS, false,
	 AT_REST(port_vl_xmit_flow_ctl_update_errors)},
	{WIRE_PMA_PORT_VL_XMIT_WAIT_COUNTERS, false, ag_vl_xmit_wait_get, ag_vl_xmit_wait_set},
	{WIRE_PMA_PORT_COUNTERS_EXTENDED, false, port_counters_ext_get, port_counters_ext_set},
	{WIRE_PMA_PORT_EXT_SPEEDS_COUNTERS, false, AT_REST(port_ext_speeds_counters)},
	{WIRE_PMA_SW_PORT_VL_CONGESTION, true, AT_REST(sw_port_vl_congestion)},
	{WIRE_PMA_PORT_RCV_CON_CTRL, false, AT_REST(port_rcv_con_ctrl)},
	{WIRE_PMA_PORT_SL_RCV_FECN, false, AT_REST(port_sl_rcv_fecn)},
	{WIRE_PMA_PORT_SL_RCV_BECN, false, AT_REST(port_sl_rcv_becn)},
	{WIRE_PMA_PORT_XMIT_CON_CTRL, false, AT_REST(port_xmit_con_ctrl)},
	{WIRE_PMA_PORT_VL_XMIT_TIME_CONG, false, AT_REST(port_vl_xmit_time_cong)},
	{WIRE_PMA_PORT_XMIT_DATA_SL, false, xmit_data_sl_get, xmit_data_sl_set},
	{WIRE_PMA_PORT_RCV_DATA_SL, false, rcv_data_sl_get, rcv_data_sl_set},
};

int ag_pma(struct ag_node *node, uint8_t port, const struct ag_mad_context *ctx, uint8_t *mad,
	   struct ag_effect *effect)
{
	struct wire_mad hdr;
	struct ag_request rq = {
		.node = node, .port = &node->port[port], .port_num = port, .in_port = port,
		.ctx = ctx, .data = mad + WIRE_PMA_DATA_OFFSET, .effect = effect,
	};

	wire_mad_decode(mad, WIRE_MAD_BYTES, &hdr);
	if (hdr.method & WIRE_METHOD_RESPONSE || hdr.method == WIRE_METHOD_TRAP)
		return AG_PASS;
	if (!ag_is_request(hdr.method))
		return AG_CONSUMED;
	rq.set = hdr.method == WIRE_METHOD_SET;
	rq.attr_mod = hdr.attr_mod;
	if (hdr.base_version != WIRE_MAD_BASE_VERSION ||
	    hdr.class_version != WIRE_PMA_CLASS_VERSION)
		hdr.status = WIRE_STATUS_BAD_VERSION;
	else if (hdr.method != WIRE_METHOD_GET && hdr.method != WIRE_METHOD_SET)
		hdr.status = WIRE_STATUS_BAD_METHOD;
	else
		hdr.status = ag_attr_run(attributes, ARRAY_SIZE(attributes), hdr.attr_id, &rq);
	hdr.method = WIRE_METHOD_GET_RESP;
	wire_mad_encode(&hdr, mad);
	return AG_CONSUMED | AG_REPLY;
}
