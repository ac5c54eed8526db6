/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The PMA's optional attributes (IBA v1 16.1.4.3 to 16.1.4.12, A10.5):
 *
 *   by opcode  PortOpRcvCounters, PortVLOpPackets, PortVLOpData: packets that
 *              arrive with the one opcode that a Set selects. Counting begins
 *              with that Set; a Set that selects no counter ends it.
 *   by VL      PortVLXmitWaitCounters
 *   at rest    counters of events that do not occur on simulated links: flow
 *              control packets, block errors of lanes, congestion marks
 */
#include "agents/agents_private.h"

/* --- by opcode --------------------------------------------------------- */

void ag_op_count(struct ag_port *port, uint8_t opcode, uint8_t vl, uint32_t dwords)
{
	for (int i = 0; i < AG_OPS; i++) {
		struct ag_op_count *op = &port->seldom->op[i];

		if (!(port->op_counted >> i & 1) || op->opcode != opcode)
			continue;
		switch ((enum ag_op)i) {
		case AG_OP_RCV:
			op->count[0]++;
			op->count[1] += dwords;
			break;
		case AG_OP_VL_PACKETS:
			op->count[vl]++;
			break;
		case AG_OP_VL_DATA:
			op->count[vl] += dwords;
			break;
		case AG_OPS:
			break;
		}
	}
}

/** struct vl_object - any of these attributes, host order and full width */
struct vl_object {
	uint8_t port_select, opcode;
	uint16_t select;
	uint64_t count[AG_VLS];
};

static uint16_t op_set(struct ag_request *rq, enum ag_op which, const struct vl_object *obj)
{
	unsigned int first, last;

	if (!ag_pma_ports(rq, obj->port_select, &first, &last))
		return WIRE_STATUS_BAD_FIELD;
	for (unsigned int p = first; p <= last; p++) {
		struct ag_port *port = &rq->node->port[p];
		struct ag_op_count *op = &port->seldom->op[which];

		port->op_counted &= (uint8_t)~(1u << which);
		port->op_counted |= (uint8_t)((obj->select != 0) << which);
		op->opcode = obj->opcode;
		for (unsigned int i = 0; i < AG_VLS; i++)
			if (obj->select >> i & 1)
				op->count[i] = obj->count[i];
	}
	/* flows must stop, or may start, to bypass the fabric */
	rq->effect->changes |= AG_CHANGED_ROUTES;
	return WIRE_STATUS_OK;
}

/* the sum over the ports, saturated at @max */
static uint16_t op_get(struct ag_request *rq, enum ag_op which, uint64_t max,
		       struct vl_object *obj)
{
	unsigned int first, last;

	if (!ag_pma_ports(rq, obj->port_select, &first, &last))
		return WIRE_STATUS_BAD_FIELD;
	obj->opcode = rq->node->port[first].seldom->op[which].opcode;
	for (unsigned int i = 0; i < AG_VLS; i++) {
		obj->count[i] = 0;
		for (unsigned int p = first; p <= last; p++)
			obj->count[i] += rq->node->port[p].seldom->op[which].count[i];
		obj->count[i] = MIN(obj->count[i], max);
	}
	return WIRE_STATUS_OK;
}

uint16_t ag_op_rcv_get(struct ag_request *rq)
{
	struct wire_port_op_rcv_counters a;
	struct vl_object obj;
	uint16_t status;

	wire_port_op_rcv_counters_decode(rq->data, WIRE_PMA_DATA_BYTES, &a);
	obj.port_select = a.port_select;
	status = op_get(rq, AG_OP_RCV, UINT32_MAX, &obj);
	if (status)
		return status;
	a.op_code = obj.opcode;
	a.rcv_pkts = (uint32_t)obj.count[0];
	a.rcv_data_dwords = (uint32_t)obj.count[1];
	wire_port_op_rcv_counters_encode(&a, rq->data);
	return WIRE_STATUS_OK;
}

uint16_t ag_op_rcv_set(struct ag_request *rq)
{
	struct wire_port_op_rcv_counters a;
	struct vl_object obj;

	wire_port_op_rcv_counters_decode(rq->data, WIRE_PMA_DATA_BYTES, &a);
	obj = (struct vl_object){a.port_select, a.op_code, a.counter_select,
				 {a.rcv_pkts, a.rcv_data_dwords}};
	return op_set(rq, AG_OP_RCV, &obj);
}

/* PortVLOpPackets and PortVLOpData differ in the width of their counters */
#define VL_OP_ATTR(name, which, member, type, max)                                       \
	uint16_t ag_##name##_get(struct ag_request *rq)                                  \
	{                                                                                \
		struct wire_port_##name a;                                               \
		struct vl_object obj;                                                    \
		uint16_t status;                                                         \
                                                                                         \
		wire_port_##name##_decode(rq->data, WIRE_PMA_DATA_BYTES, &a);            \
		obj.port_select = a.port_select;                                         \
		status = op_get(rq, which, max, &obj);                                   \
		if (status)                                                              \
			return status;                                                   \
		a.op_code = obj.opcode;                                                  \
		for (unsigned int vl = 0; vl < AG_VLS; vl++)                             \
			a.member[vl] = (type)obj.count[vl];                              \
		wire_port_##name##_encode(&a, rq->data);                                 \
		return WIRE_STATUS_OK;                                                   \
	}                                                                                \
	uint16_t ag_##name##_set(struct ag_request *rq)                                  \
	{                                                                                \
		struct wire_port_##name a;                                               \
		struct vl_object obj;                                                    \
                                                                                         \
		wire_port_##name##_decode(rq->data, WIRE_PMA_DATA_BYTES, &a);            \
		obj = (struct vl_object){a.port_select, a.op_code, a.counter_select, {0}}; \
		for (unsigned int vl = 0; vl < AG_VLS; vl++)                             \
			obj.count[vl] = a.member[vl];                                    \
		return op_set(rq, which, &obj);                                          \
	}
VL_OP_ATTR(vl_op_packets, AG_OP_VL_PACKETS, pkts, uint16_t, UINT16_MAX)
VL_OP_ATTR(vl_op_data, AG_OP_VL_DATA, data_dwords, uint32_t, UINT32_MAX)

/* --- by VL ------------------------------------------------------------- */

static uint16_t vl_xmit_wait(struct ag_request *rq, bool set)
{
	struct wire_port_vl_xmit_wait_counters a;
	unsigned int first, last;

	wire_port_vl_xmit_wait_counters_decode(rq->data, WIRE_PMA_DATA_BYTES, &a);
	if (!ag_pma_ports(rq, a.port_select, &first, &last))
		return WIRE_STATUS_BAD_FIELD;
	for (unsigned int vl = 0; vl < AG_VLS; vl++) {
		uint64_t sum = 0;

		for (unsigned int p = first; p <= last; p++) {
			uint64_t *wait = &rq->node->port[p].seldom->xmit_wait_vl[vl];

			if (set && a.counter_select >> vl & 1)
				*wait = a.wait[vl];
			sum += *wait;
		}
		a.wait[vl] = (uint16_t)MIN(sum, (uint64_t)UINT16_MAX);
	}
	if (!set)
		wire_port_vl_xmit_wait_counters_encode(&a, rq->data);
	return WIRE_STATUS_OK;
}

uint16_t ag_vl_xmit_wait_get(struct ag_request *rq)
{
	return vl_xmit_wait(rq, false);
}

uint16_t ag_vl_xmit_wait_set(struct ag_request *rq)
{
	return vl_xmit_wait(rq, true);
}

/* --- at rest ----------------------------------------------------------- */

/* each of these attributes begins with PortSelect; the counters follow */
union rest_object {
	uint8_t port_select;
	struct wire_port_flow_ctl_counters flow;
	struct wire_port_vl_xmit_flow_ctl_update_errors updates;
	struct wire_port_ext_speeds_counters speeds;
	struct wire_sw_port_vl_congestion congestion;
	struct wire_port_rcv_con_ctrl rcv;
	struct wire_port_sl_rcv_fecn fecn;
	struct wire_port_sl_rcv_becn becn;
	struct wire_port_xmit_con_ctrl xmit;
	struct wire_port_vl_xmit_time_cong time;
};

static uint16_t at_rest(struct ag_request *rq, const struct wire_codec *codec)
{
	union rest_object obj;
	unsigned int first, last;
	uint8_t select;

	wire_fields_decode(codec, rq->data, WIRE_PMA_DATA_BYTES, &obj);
	select = obj.port_select;
	if (!ag_pma_ports(rq, select, &first, &last))
		return WIRE_STATUS_BAD_FIELD;
	/* the counters are always zero, so a Set, which resets them, changes nothing */
	obj = (union rest_object){.speeds = {0}};
	obj.port_select = select;
	wire_fields_encode(codec, &obj, rq->data);
	return WIRE_STATUS_OK;
}

#define AT_REST(name)                                                                    \
	uint16_t ag_##name(struct ag_request *rq)                                        \
	{                                                                                \
		return at_rest(rq, &wire_##name##_codec);                                \
	}
AT_REST(port_flow_ctl_counters)
AT_REST(port_vl_xmit_flow_ctl_update_errors)
AT_REST(port_ext_speeds_counters)
AT_REST(sw_port_vl_congestion)
AT_REST(port_rcv_con_ctrl)
AT_REST(port_sl_rcv_fecn)
AT_REST(port_sl_rcv_becn)
AT_REST(port_xmit_con_ctrl)
AT_REST(port_vl_xmit_time_cong)
