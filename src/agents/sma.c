/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The subnet management agent (IBA v1 14.2.5, 14.3): the table of attributes,
 * and the attributes of the whole node. PortInfo is in port_info.c, the tables
 * of a port or switch are in tables.c.
 */
#include <string.h>

#include "agents/agents_private.h"
#include "wire/cm.h"

static uint16_t node_description_get(struct ag_request *rq)
{
	memcpy(rq->data, rq->node->desc, sizeof(rq->node->desc));
	return WIRE_STATUS_OK;
}

static uint16_t node_description_set(struct ag_request *rq)
{
	memcpy(rq->node->desc, rq->data, sizeof(rq->node->desc));
	rq->effect->changes |= AG_CHANGED_NAME;
	return WIRE_STATUS_OK;
}

static uint16_t node_info_get(struct ag_request *rq)
{
	const struct ag_node *node = rq->node;
	struct wire_node_info info = {
		.base_version = WIRE_MAD_BASE_VERSION,
		.class_version = WIRE_SMP_CLASS_VERSION,
		.node_type = node->kind,
		.nr_ports = node->num_ports,
		.system_guid = node->sys_guid,
		.node_guid = node->guid,
		.port_guid = rq->port->guid,
		.partition_cap = rq->port->num_pkeys,
		.device_id = node->device_id,
		.revision = node->revision,
		.local_port = rq->in_port,
		.vendor_id = node->vendor_id,
	};

	wire_node_info_encode(&info, rq->data);
	return WIRE_STATUS_OK;
}

static uint16_t switch_info_get(struct ag_request *rq)
{
	const struct ag_switch *sw = rq->node->sw;
	struct wire_switch_info info = {
		.lft_cap = AG_LFT_BLOCKS * WIRE_LFT_PER_BLOCK,
		.mft_cap = AG_MFT_BLOCKS * WIRE_MFT_PER_BLOCK,
		.lft_top = sw->lft_top,
		.default_port = sw->default_port,
		.default_mcast_primary_port = sw->default_mcast_primary,
		.default_mcast_not_primary_port = sw->default_mcast_other,
		.life_time_enc = sw->life_time_enc,
		.port_state_change = sw->port_state_change,
		.optimized_sl_to_vl = sw->optimized_sl2vl,
		.partition_enforcement_cap = AG_PKEYS_SWITCH,
		.inbound_enforcement_cap = true,
		.outbound_enforcement_cap = true,
		.enhanced_port0 = sw->enhanced_port0,
		.mft_top = sw->mft_top,
	};

	wire_switch_info_encode(&info, rq->data);
	return WIRE_STATUS_OK;
}

static uint16_t switch_info_set(struct ag_request *rq)
{
	struct ag_switch *sw = rq->node->sw;
	struct wire_switch_info info;

	wire_switch_info_decode(rq->data, WIRE_SMP_DATA_BYTES, &info);
	if (info.lft_top >= AG_LFT_BLOCKS * WIRE_LFT_PER_BLOCK)
		return WIRE_STATUS_BAD_FIELD;
	sw->lft_top = info.lft_top;
	sw->default_port = info.default_port;
	sw->default_mcast_primary = info.default_mcast_primary_port;
	sw->default_mcast_other = info.default_mcast_not_primary_port;
	sw->life_time_enc = info.life_time_enc;
	sw->optimized_sl2vl = info.optimized_sl_to_vl & 1;
	sw->mft_top = info.mft_top;
	if (info.port_state_change) /* C14-24: written as 1 to clear */
		sw->port_state_change = false;
	rq->effect->changes |= AG_CHANGED_ROUTES;
	return WIRE_STATUS_OK;
}

/* FEC is not modelled: no mode is supported, so none can be requested */
static uint16_t port_info_extended_get(struct ag_request *rq)
{
	struct wire_port_info_extended info = {0};

	if (!ag_port_exists(rq->node, rq->attr_mod) && rq->attr_mod)
		return WIRE_STATUS_BAD_FIELD;
	wire_port_info_extended_encode(&info, rq->data);
	return WIRE_STATUS_OK;
}

static uint16_t mlnx_ext_port_info_get(struct ag_request *rq)
{
	uint8_t num = rq->attr_mod ? (uint8_t)rq->attr_mod : rq->port_num;
	struct wire_mlnx_ext_port_info info;
	const struct ag_port *port;

	if (rq->attr_mod > UINT8_MAX || !ag_port_exists(rq->node, num))
		return WIRE_STATUS_BAD_FIELD;
	port = &rq->node->port[num];
	info = (struct wire_mlnx_ext_port_info){
		.link_speed_supported = !!(port->speed_supported & AG_FDR10),
		.link_speed_enabled = !!(port->speed_enabled & AG_FDR10),
		.link_speed_active = port->speed_active == AG_FDR10,
	};
	wire_mlnx_ext_port_info_encode(&info, rq->data);
	return WIRE_STATUS_OK;
}

static uint16_t mlnx_ext_port_info_set(struct ag_request *rq)
{
	uint8_t num = rq->attr_mod ? (uint8_t)rq->attr_mod : rq->port_num;
	struct wire_mlnx_ext_port_info info;
	struct ag_port *port;

	wire_mlnx_ext_port_info_decode(rq->data, WIRE_SMP_DATA_BYTES, &info);
	if (rq->attr_mod > UINT8_MAX || !ag_port_exists(rq->node, num))
		return WIRE_STATUS_BAD_FIELD;
	port = &rq->node->port[num];
	if (info.link_speed_enabled > !!(port->speed_supported & AG_FDR10))
		return WIRE_STATUS_BAD_FIELD;
	port->speed_enabled &= (uint16_t)~AG_FDR10;
	port->speed_enabled |= info.link_speed_enabled ? AG_FDR10 : 0;
	return WIRE_STATUS_OK;
}

static const struct ag_attr attributes[] = {
	{WIRE_SMP_NODE_DESCRIPTION, false, node_description_get, node_description_set},
	{WIRE_SMP_NODE_INFO, false, node_info_get, NULL},
	{WIRE_SMP_SWITCH_INFO, true, switch_info_get, switch_info_set},
	{WIRE_SMP_GUID_INFO, false, ag_guid_info_get, ag_guid_info_set},
	{WIRE_SMP_PORT_INFO, false, ag_port_info_get, ag_port_info_set},
	{WIRE_SMP_PKEY_TABLE, false, ag_pkey_table_get, ag_pkey_table_set},
	{WIRE_SMP_SL_TO_VL, false, ag_sl_to_vl_get, ag_sl_to_vl_set},
	{WIRE_SMP_VL_ARB, false, ag_vl_arb_get, ag_vl_arb_set},
	{WIRE_SMP_LFT, true, ag_lft_block_get, ag_lft_block_set},
	{WIRE_SMP_MFT, true, ag_mft_block_get, ag_mft_block_set},
	{WIRE_SMP_PORT_INFO_EXTENDED, false, port_info_extended_get, NULL},
	{WIRE_SMP_MLNX_EXT_PORT_INFO, false, mlnx_ext_port_info_get, mlnx_ext_port_info_set},
};

uint16_t ag_attr_run(const struct ag_attr *table, size_t n, uint16_t attr_id,
		     struct ag_request *rq)
{
	uint16_t status = WIRE_STATUS_OK;

	for (size_t i = 0; i < n; i++) {
		const struct ag_attr *attr = &table[i];

		if (attr->id != attr_id)
			continue;
		if ((rq->set ? !attr->set : !attr->get) ||
		    (attr->switch_only && !rq->node->sw))
			return WIRE_STATUS_BAD_METHOD_ATTR;
		if (rq->set)
			status = attr->set(rq);
		/* the answer to a Set contains the resulting values (13.4.5) */
		if (attr->get && (!rq->set || status == WIRE_STATUS_OK))
			status = attr->get(rq);
		return status;
	}
	return WIRE_STATUS_BAD_METHOD_ATTR;
}

static bool for_agent(const struct wire_smp *smp)
{
	if (smp->mad.attr_id == WIRE_SMP_SM_INFO || smp->direction)
		return false;
	return !(smp->mad.method & WIRE_METHOD_RESPONSE) && smp->mad.method != WIRE_METHOD_TRAP;
}

static uint16_t answer(struct ag_request *rq, const struct wire_smp *smp)
{
	if (smp->mad.base_version != WIRE_MAD_BASE_VERSION ||
	    smp->mad.class_version != WIRE_SMP_CLASS_VERSION)
		return WIRE_STATUS_BAD_VERSION;
	if (smp->mad.method != WIRE_METHOD_GET && smp->mad.method != WIRE_METHOD_SET)
		return WIRE_STATUS_BAD_METHOD;
	return ag_attr_run(attributes, ARRAY_SIZE(attributes), smp->mad.attr_id, rq);
}

int ag_sma(struct ag_node *node, uint8_t in_port, const struct ag_mad_context *ctx, uint8_t *mad,
	   struct ag_effect *effect)
{
	uint8_t num = ag_base_port(node, in_port);
	struct wire_smp smp;
	struct ag_request rq = {
		.node = node, .port = &node->port[num], .port_num = num, .in_port = in_port,
		.ctx = ctx, .data = mad + WIRE_SMP_DATA_OFFSET, .effect = effect,
	};

	if (wire_smp_decode(mad, WIRE_MAD_BYTES, &smp) < 0 || !for_agent(&smp))
		return AG_PASS;
	rq.set = smp.mad.method == WIRE_METHOD_SET;
	rq.attr_mod = smp.mad.attr_mod;
	rq.mkey = smp.mkey;
	effect->port = num;
	if (!ag_mkey_check(&rq, &smp))
		return AG_CONSUMED;
	if (smp.mad.method == WIRE_METHOD_TRAP_REPRESS) {
		if (ag_trap_repress(node, smp.mad.tid, rq.data))
			effect->changes |= AG_CHANGED_TRAPS;
		return AG_CONSUMED;
	}
	if (!ag_is_request(smp.mad.method))
		return AG_CONSUMED;
	smp.mad.status = answer(&rq, &smp);
	smp.mad.method = WIRE_METHOD_GET_RESP;
	smp.direction = true;
	wire_smp_encode(&smp, mad);
	return AG_CONSUMED | AG_REPLY;
}

int ag_process(struct ag_node *node, uint8_t port, const struct ag_mad_context *ctx,
	       const uint8_t *in, uint8_t *out, struct ag_effect *effect)
{
	uint8_t mad[WIRE_MAD_BYTES];
	int result = AG_PASS;

	memcpy(mad, in, sizeof(mad));
	*effect = (struct ag_effect){.port = port};
	if (!ag_port_exists(node, port))
		return AG_PASS;
	ag_expire(node, ctx->now);
	switch (mad[1]) { /* MgmtClass */
	case WIRE_CLASS_SM_LID:
	case WIRE_CLASS_SM_DIRECT:
		result = ag_sma(node, port, ctx, mad, effect);
		break;
	case WIRE_CLASS_PERF:
		result = ag_pma(node, port, ctx, mad, effect);
		break;
	}
	if (result & AG_REPLY)
		memcpy(out, mad, sizeof(mad));
	return result;
}

bool ag_is_request(uint8_t method)
{
	switch (method) {
	case WIRE_METHOD_SEND:
	case WIRE_METHOD_TRAP:
	case WIRE_METHOD_REPORT:
	case WIRE_METHOD_TRAP_REPRESS:
		return false;
	}
	return !(method & WIRE_METHOD_RESPONSE);
}

bool ag_refuse(uint8_t *mad)
{
	struct wire_smp smp;
	struct wire_mad hdr;

	if (wire_cm_refuse(mad))
		return true;
	wire_mad_decode(mad, WIRE_MAD_BYTES, &hdr);
	if (!ag_is_request(hdr.method))
		return false;
	if (wire_smp_decode(mad, WIRE_MAD_BYTES, &smp) > 0) {
		if (smp.direction)
			return false;
		smp.mad.status = WIRE_STATUS_BAD_METHOD_ATTR;
		smp.mad.method = WIRE_METHOD_GET_RESP;
		smp.direction = true;
		wire_smp_encode(&smp, mad);
		return true;
	}
	hdr.status = WIRE_STATUS_BAD_METHOD_ATTR; /* the status that the midlayer of a host sends */
	/* the response to a Set is a GetResp too (13.4.5) */
	hdr.method = hdr.method == WIRE_METHOD_SET ? WIRE_METHOD_GET_RESP :
						     hdr.method | WIRE_METHOD_RESPONSE;
	wire_mad_encode(&hdr, mad);
	return true;
}

static mono_t port_expiry(const struct ag_port *port)
{
	mono_t t = port->mkey_lease_end;

	if (!port->sampled)
		return t;
	if (port->seldom->samples.status == AG_SAMPLE_WAITS)
		t = mono_min(t, port->seldom->samples.start);
	if (port->seldom->samples.status == AG_SAMPLE_RUNS)
		t = mono_min(t, port->seldom->samples.end);
	return t;
}

mono_t ag_expiry(const struct ag_node *node)
{
	mono_t t = MONO_NEVER;

	for (size_t i = 0; node->trapped && i < AG_TRAPS; i++)
		if (node->trap[i].used)
			t = mono_min(t, node->trap[i].due);
	for (unsigned int i = 0; i <= node->num_ports; i++)
		t = mono_min(t, port_expiry(&node->port[i]));
	return t;
}

void ag_expire(struct ag_node *node, mono_t now)
{
	for (unsigned int i = 0; i <= node->num_ports; i++) {
		struct ag_port *port = &node->port[i];

		if (!mono_before(now, port->mkey_lease_end)) {
			port->mkey_protect = 0; /* C14-16 */
			port->mkey_lease_end = MONO_NEVER;
		}
		ag_samples_expire(port, now);
	}
}
