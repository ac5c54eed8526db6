/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * PortInfo (IBA v1 14.2.5.6): the attributes of a port that the subnet manager
 * reads and sets.
 *
 * The part of the port state machine that the manager controls (7.2.7, table 146):
 *
 *   Set PortState   allowed in             then
 *   NOP             any
 *   Down            any                    the link falls to PortPhysicalState,
 *                                          or LinkDownDefaultState
 *   Init            never: the link's own
 *   Armed           Init (Armed: no-op)    Armed
 *   Active          Armed (Active: no-op)  Active
 *
 * A Set is validated completely before it changes anything; if it is invalid, its
 * status is 0x1c.
 */
#include "agents/agents_private.h"
#include "wire/address.h"

#define SPEED_BASE (AG_SDR | AG_DDR | AG_QDR)
#define SPEED_AS_SUPPORTED 0xf
#define SPEED_EXT_SHIFT 4 /* AG_FDR is the first extended speed */
#define SPEED_EXT_NONE 30
#define SPEED_EXT_AS_SUPPORTED 31
#define WIDTH_AS_SUPPORTED 0xff
#define MOD_EXTENDED_SPEEDS 0x80000000u /* the manager supports the extended speeds */

/* PortInfo reports FDR10 as QDR; a vendor-specific attribute distinguishes them */
static uint8_t base_speed(uint16_t speeds)
{
	return (speeds & SPEED_BASE) | (speeds & AG_FDR10 ? AG_QDR : 0);
}

static uint8_t base_speed_active(uint16_t speed)
{
	return speed > AG_QDR ? AG_QDR : (uint8_t)speed;
}

static struct ag_port *addressed(const struct ag_request *rq, uint8_t *num)
{
	uint32_t mod = rq->attr_mod & ~MOD_EXTENDED_SPEEDS;

	/* for a CA, 0 selects the ingress port of the SMP */
	*num = mod || rq->node->sw ? (uint8_t)mod : rq->port_num;
	if (mod > UINT8_MAX || !ag_port_exists(rq->node, *num))
		return NULL;
	return &rq->node->port[*num];
}

/* fields of end ports, which a switch's cabled ports do not have */
static void show_endport(const struct ag_request *rq, const struct ag_port *port,
			 struct wire_port_info *pi)
{
	pi->mkey = ag_mkey_shown(rq) ? port->mkey : 0;
	pi->gid_prefix = port->gid_prefix;
	pi->lid = port->lid;
	pi->lmc = port->lmc;
	pi->sm_lid = port->sm_lid;
	pi->sm_sl = port->sm_sl;
	pi->cap_mask = port->cap_mask;
	pi->cap_mask2 = port->cap_mask2;
	pi->mkey_lease_period_s = port->mkey_lease_s;
	pi->mkey_protect_bits = port->mkey_protect;
	pi->mkey_violations = port->mkey_violations;
	pi->qkey_violations = port->qkey_violations;
	pi->guid_cap = port->num_guids;
	pi->subnet_timeout_enc = port->subnet_timeout_enc;
	pi->resp_time_enc = port->resp_time_enc;
	pi->client_reregister = port->client_reregister;
	pi->init_type = port->init_type;
	pi->init_type_reply = port->init_type_reply;
}

static void show_link(const struct ag_port *port, struct wire_port_info *pi)
{
	pi->state = port->state;
	pi->phys_state = port->phys_state;
	pi->link_down_default_state = port->link_down_default;
	pi->link_width_supported = port->width_supported;
	pi->link_width_enabled = port->width_enabled;
	pi->link_width_active = port->width_active ? port->width_active : WIRE_WIDTH_4X;
	pi->link_speed_supported = base_speed(port->speed_supported);
	pi->link_speed_enabled = base_speed(port->speed_enabled);
	pi->link_speed_active = port->speed_active ? base_speed_active(port->speed_active) : AG_SDR;
	pi->link_speed_ext_supported = (port->speed_supported >> SPEED_EXT_SHIFT) & 0xf;
	pi->link_speed_ext_enabled = (port->speed_enabled >> SPEED_EXT_SHIFT) & 0xf;
	pi->link_speed_ext_active = (port->speed_active >> SPEED_EXT_SHIFT) & 0xf;
	pi->mtu_cap = port->mtu_cap_enc;
	pi->neighbor_mtu = port->neighbor_mtu_enc;
	pi->vl_cap = port->vl_cap_enc;
	pi->operational_vls = port->oper_vls_enc;
	pi->vl_high_limit = port->vl_high_limit;
	pi->vl_arb_high_cap = pi->vl_arb_low_cap = AG_VLARB_ENTRIES;
	pi->vl_stall_count = port->vl_stall_count;
	pi->hoq_life_enc = port->hoq_life_enc;
	pi->pkey_violations = port->pkey_violations;
	pi->partition_enforcement_inbound = port->pkey_enforce_in;
	pi->partition_enforcement_outbound = port->pkey_enforce_out;
	pi->filter_raw_inbound = port->filter_raw_in;
	pi->filter_raw_outbound = port->filter_raw_out;
	pi->local_phy_errors = port->local_phys_errors;
	pi->overrun_errors = port->overrun_errors;
	pi->max_credit_hint = port->max_credit_hint;
	pi->link_round_trip_latency = port->roundtrip_latency;
}

uint16_t ag_port_info_get(struct ag_request *rq)
{
	struct wire_port_info pi = {0};
	struct ag_port *port;
	uint8_t num;

	port = addressed(rq, &num);
	if (!port)
		return WIRE_STATUS_BAD_FIELD;
	if (!rq->node->sw || num == 0)
		show_endport(rq, port, &pi);
	show_link(port, &pi);
	pi.local_port = rq->in_port;
	port->client_reregister = false; /* only the answer to the Set reports it */
	return wire_port_info_encode(&pi, rq->data) < 0 ? WIRE_STATUS_BAD_FIELD : WIRE_STATUS_OK;
}

static bool unicast_or_none(uint16_t lid)
{
	return lid < WIRE_LID_MULTICAST;
}

static bool endport_valid(const struct ag_request *rq, const struct wire_port_info *pi)
{
	if (!unicast_or_none(pi->lid) || !unicast_or_none(pi->sm_lid))
		return false;
	/* C14-24: a base LID has LMC zeros; a base switch port 0 has one LID */
	if (wire_path_bits(pi->lid, pi->lmc))
		return false;
	return !rq->node->sw || pi->lmc == 0;
}

static bool subset(unsigned int enabled, unsigned int supported, unsigned int all)
{
	return enabled == all || !(enabled & ~supported);
}

static bool speeds_valid(const struct ag_port *port, const struct wire_port_info *pi)
{
	return subset(pi->link_width_enabled, port->width_supported, WIDTH_AS_SUPPORTED) &&
	       subset(pi->link_speed_enabled, base_speed(port->speed_supported),
		      SPEED_AS_SUPPORTED) &&
	       (pi->link_speed_ext_enabled >= SPEED_EXT_NONE ||
		!(pi->link_speed_ext_enabled & ~(port->speed_supported >> SPEED_EXT_SHIFT)));
}

static bool state_valid(const struct ag_port *port, const struct wire_port_info *pi)
{
	/* setting PortPhysicalState takes the port Down, so no other PortState is allowed with it */
	if (pi->phys_state > WIRE_PHYS_DISABLED)
		return false;
	if (pi->phys_state && pi->state != WIRE_PORT_DOWN && pi->state != WIRE_PORT_NO_CHANGE)
		return false;
	switch (pi->state) {
	case WIRE_PORT_NO_CHANGE:
	case WIRE_PORT_DOWN:
		return true;
	case WIRE_PORT_ARMED:
		return port->state == WIRE_PORT_INIT || port->state == WIRE_PORT_ARMED;
	case WIRE_PORT_ACTIVE:
		return port->state == WIRE_PORT_ARMED || port->state == WIRE_PORT_ACTIVE;
	}
	return false;
}

static bool link_valid(const struct ag_port *port, const struct wire_port_info *pi)
{
	return speeds_valid(port, pi) && state_valid(port, pi) &&
	       pi->link_down_default_state <= WIRE_PHYS_POLLING &&
	       pi->neighbor_mtu >= WIRE_MTU_256 && pi->neighbor_mtu <= port->mtu_cap_enc &&
	       pi->operational_vls <= port->vl_cap_enc;
}

static uint32_t set_endport(struct ag_request *rq, struct ag_port *port,
			    const struct wire_port_info *pi)
{
	uint32_t changes = 0;

	if (port->lid != pi->lid || port->lmc != pi->lmc)
		changes |= AG_CHANGED_LID;
	if (port->sm_lid != pi->sm_lid || port->sm_sl != pi->sm_sl)
		changes |= AG_CHANGED_SM;
	if (port->gid_prefix != pi->gid_prefix)
		changes |= AG_CHANGED_GIDS;
	if (pi->client_reregister)
		changes |= AG_CHANGED_REREGISTER;
	port->mkey = pi->mkey;
	port->mkey_protect = pi->mkey_protect_bits;
	port->mkey_lease_s = pi->mkey_lease_period_s;
	port->gid_prefix = pi->gid_prefix;
	port->lid = pi->lid;
	port->lmc = pi->lmc;
	port->sm_lid = pi->sm_lid;
	port->sm_sl = pi->sm_sl;
	port->subnet_timeout_enc = pi->subnet_timeout_enc;
	port->init_type_reply = pi->init_type_reply;
	port->client_reregister = pi->client_reregister;
	if (pi->mkey_violations == 0) /* violation counters: 0 clears, */
		port->mkey_violations = 0;
	if (pi->qkey_violations == 0) /* anything else is ignored */
		port->qkey_violations = 0;
	return changes;
}

static void set_speeds(struct ag_port *port, const struct wire_port_info *pi)
{
	uint16_t ext = port->speed_enabled >> SPEED_EXT_SHIFT;
	uint16_t fdr10 = port->speed_enabled & AG_FDR10;
	uint16_t base = port->speed_enabled & SPEED_BASE;

	if (pi->link_width_enabled)
		port->width_enabled = pi->link_width_enabled == WIDTH_AS_SUPPORTED ?
					      port->width_supported :
					      pi->link_width_enabled;
	if (pi->link_speed_enabled)
		base = pi->link_speed_enabled == SPEED_AS_SUPPORTED ?
			       port->speed_supported & SPEED_BASE :
			       pi->link_speed_enabled;
	if (pi->link_speed_ext_enabled == SPEED_EXT_AS_SUPPORTED)
		ext = port->speed_supported >> SPEED_EXT_SHIFT;
	else if (pi->link_speed_ext_enabled == SPEED_EXT_NONE)
		ext = 0;
	else if (pi->link_speed_ext_enabled)
		ext = pi->link_speed_ext_enabled;
	port->speed_enabled = (uint16_t)(base | fdr10 | ext << SPEED_EXT_SHIFT);
}

static uint32_t set_link(struct ag_port *port, const struct wire_port_info *pi)
{
	set_speeds(port, pi);
	if (pi->link_down_default_state)
		port->link_down_default = pi->link_down_default_state;
	port->neighbor_mtu_enc = pi->neighbor_mtu;
	if (pi->operational_vls)
		port->oper_vls_enc = pi->operational_vls;
	port->vl_high_limit = pi->vl_high_limit;
	port->vl_stall_count = pi->vl_stall_count;
	port->hoq_life_enc = pi->hoq_life_enc;
	port->pkey_enforce_in = pi->partition_enforcement_inbound;
	port->pkey_enforce_out = pi->partition_enforcement_outbound;
	port->filter_raw_in = pi->filter_raw_inbound;
	port->filter_raw_out = pi->filter_raw_outbound;
	port->local_phys_errors = pi->local_phy_errors;
	port->overrun_errors = pi->overrun_errors;
	if (pi->pkey_violations == 0)
		port->pkey_violations = 0;
	return AG_CHANGED_ATTRIBUTES;
}

static uint32_t set_state(struct ag_port *port, const struct wire_port_info *pi)
{
	if (pi->state == WIRE_PORT_DOWN || pi->phys_state) {
		/* the link goes down only after the answer, which may use it */
		port->phys_request = pi->phys_state ? pi->phys_state : port->link_down_default;
		return AG_CHANGED_PHYS;
	}
	if (pi->state == WIRE_PORT_NO_CHANGE || pi->state == port->state)
		return 0;
	port->state = pi->state;
	return AG_CHANGED_STATE;
}

uint16_t ag_port_info_set(struct ag_request *rq)
{
	struct wire_port_info pi;
	struct ag_port *port;
	bool endport, cabled;
	uint8_t num;

	port = addressed(rq, &num);
	wire_port_info_decode(rq->data, WIRE_SMP_DATA_BYTES, &pi);
	if (!port)
		return WIRE_STATUS_BAD_FIELD;
	endport = !rq->node->sw || num == 0;
	cabled = num != 0; /* a switch's port 0 has no link to set */
	if ((endport && !endport_valid(rq, &pi)) || (cabled && !link_valid(port, &pi)))
		return WIRE_STATUS_BAD_FIELD;
	rq->effect->port = num;
	if (endport)
		rq->effect->changes |= set_endport(rq, port, &pi);
	if (cabled)
		rq->effect->changes |= set_link(port, &pi) | set_state(port, &pi);
	return WIRE_STATUS_OK;
}
