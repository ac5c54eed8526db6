/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A node's state: its layout in memory and its initial values, the forwarding
 * tables, and the part of the port state machine (7.2.7) that follows the link:
 * Down to Init when the link comes up, and back when it goes down. The part that
 * the manager controls, Init to Active, is in port_info.c.
 */
#include <string.h>

#include "agents/agents_private.h"

#define DEFAULT_GID_PREFIX 0xfe80000000000000ull
#define DEFAULT_SUBNET_TIMEOUT 18 /* 1.07 s */
#define DEFAULT_RESP_TIME 16	  /* 268 ms */

static const size_t trap_bytes = AG_TRAPS * sizeof(struct ag_trap);

static bool is_switch(const struct ag_node_config *config)
{
	return config->kind == WIRE_NODE_SWITCH;
}

/* the number of the first port: a CA has no port 0 */
static unsigned int first_port(const struct ag_node_config *config)
{
	return is_switch(config) ? 0 : 1;
}

static unsigned int guids_of(const struct ag_node_config *config)
{
	return is_switch(config) ? AG_GUIDS_SWITCH : AG_GUIDS_CA;
}

static unsigned int pkeys_of(const struct ag_node_config *config)
{
	return is_switch(config) ? AG_PKEYS_SWITCH : AG_PKEYS_CA;
}

static unsigned int sl2vl_rows(const struct ag_node_config *config)
{
	return is_switch(config) ? config->num_ports + 1u : 1;
}

static size_t table_bytes(const struct ag_node_config *config)
{
	return guids_of(config) * sizeof(uint64_t) + pkeys_of(config) * sizeof(uint16_t);
}

size_t ag_node_seldom_size(const struct ag_node_config *config)
{
	size_t traps = is_switch(config) ? 0 : trap_bytes;

	return traps + (config->num_ports + 1u) *
			       (sizeof(struct ag_seldom) + sl2vl_rows(config) * AG_VLS);
}

/* the size of the state that is not in ag_node_config.seldom */
static size_t common_size(const struct ag_node_config *config)
{
	size_t sw = is_switch(config) ? sizeof(struct ag_switch) + trap_bytes : 0;
	size_t ports = (config->num_ports + 1u) * sizeof(struct ag_port);
	size_t tables = (config->num_ports + 1u - first_port(config)) * table_bytes(config);

	return ALIGN_UP(sizeof(struct ag_node) + sw + ports + tables, sizeof(uint64_t));
}

size_t ag_node_size(const struct ag_node_config *config)
{
	return common_size(config) + (config->seldom ? 0 : ag_node_seldom_size(config));
}

static void *take(uint8_t **memory, size_t bytes)
{
	void *p = *memory;

	*memory += bytes;
	return p;
}

static uint32_t capabilities(uint8_t kind)
{
	uint32_t caps = WIRE_PORT_CAP_TRAP | WIRE_PORT_CAP_SL_MAPPING | WIRE_PORT_CAP_SYSTEM_GUID |
			WIRE_PORT_CAP_EXT_SPEEDS | WIRE_PORT_CAP_CAP_MASK2 |
			WIRE_PORT_CAP_CLIENT_REREGISTER | WIRE_PORT_CAP_CAP_MASK_NOTICE |
			WIRE_PORT_CAP_OTHER_LOCAL_CHANGES | WIRE_PORT_CAP_DR_NOTICE;

	if (kind == WIRE_NODE_CA)
		caps |= WIRE_PORT_CAP_AUTO_MIGRATION | WIRE_PORT_CAP_CM |
			WIRE_PORT_CAP_VENDOR_CLASS;
	return caps;
}

static void init_port(const struct ag_node_config *config, struct ag_port *port, uint8_t num)
{
	port->guid = is_switch(config) ? config->guid : config->guid + num;
	port->vl_cap_enc = 4; /* VL0 to VL7 */
	port->mtu_cap_enc = WIRE_MTU_4096;
	port->neighbor_mtu_enc = WIRE_MTU_4096;
	port->oper_vls_enc = 4;
	port->speed_supported = AG_SDR | AG_DDR | AG_QDR | AG_FDR | AG_EDR;
	port->speed_enabled = port->speed_supported;
	port->width_supported = WIRE_WIDTH_1X | WIRE_WIDTH_4X;
	port->width_enabled = port->width_supported;
	port->link_down_default = WIRE_PHYS_POLLING;
	port->phys_request = WIRE_PHYS_POLLING;
	port->state = WIRE_PORT_DOWN;
	port->phys_state = WIRE_PHYS_POLLING;
	port->gid_prefix = DEFAULT_GID_PREFIX;
	port->subnet_timeout_enc = DEFAULT_SUBNET_TIMEOUT;
	port->resp_time_enc = DEFAULT_RESP_TIME;
	port->local_phys_errors = port->overrun_errors = 8;
	port->mkey_lease_end = MONO_NEVER;
	port->cap_mask = capabilities(config->kind);
	port->cap_mask2 = WIRE_PORT_CAP2_SET_NODE_DESCRIPTION | WIRE_PORT_CAP2_PORT_INFO_EXTENDED;
	if (is_switch(config) && num == 0) { /* it has no link and is always up (14.2.5.6) */
		port->state = WIRE_PORT_ACTIVE;
		port->phys_state = WIRE_PHYS_LINK_UP;
		port->width_active = WIRE_WIDTH_4X;
		port->speed_active = AG_EDR;
	}
}

/* @memory stays aligned for the GUIDs of the next port, because a table of P_Keys is a whole number of blocks. */
static void init_tables(const struct ag_node_config *config, struct ag_port *port, uint8_t **memory)
{
	port->num_guids = (uint8_t)guids_of(config);
	port->guids = take(memory, port->num_guids * sizeof(*port->guids));
	port->guids[0] = port->guid;
	port->num_pkeys = (uint16_t)pkeys_of(config);
	port->pkeys = take(memory, port->num_pkeys * sizeof(*port->pkeys));
	port->pkeys[0] = WIRE_PKEY_DEFAULT;
}

static void init_switch(struct ag_switch *sw, const struct ag_memory *memory)
{
	sw->memory = *memory;
	sw->default_mcast_primary = WIRE_LFT_NO_PORT;
	sw->default_mcast_other = WIRE_LFT_NO_PORT;
	sw->default_port = WIRE_LFT_NO_PORT;
	sw->life_time_enc = 20; /* no limit */
}

struct ag_node *ag_node_init(const struct ag_node_config *config, void *memory)
{
	uint8_t *m = memory, *seldom = config->seldom;
	struct ag_node *node = take(&m, sizeof(*node));

	if (!seldom)
		seldom = (uint8_t *)memory + common_size(config);
	node->kind = (uint8_t)config->kind;
	node->num_ports = config->num_ports;
	node->guid = config->guid;
	node->sys_guid = config->sys_guid ? config->sys_guid : config->guid;
	node->vendor_id = config->vendor_id;
	node->device_id = config->device_id;
	node->next_tid = 1;
	memcpy(node->desc, config->desc, strnlen(config->desc, sizeof(node->desc)));
	if (is_switch(config)) {
		node->sw = take(&m, sizeof(*node->sw));
		init_switch(node->sw, &config->memory);
	}
	node->trap = take(node->sw ? &m : &seldom, trap_bytes);
	node->port = take(&m, (config->num_ports + 1u) * sizeof(*node->port));
	for (unsigned int i = 0; i <= config->num_ports; i++) {
		node->port[i].seldom = take(&seldom, sizeof(struct ag_seldom));
		node->port[i].sl2vl = take(&seldom, sl2vl_rows(config) * AG_VLS);
		init_port(config, &node->port[i], (uint8_t)i);
	}
	for (unsigned int i = first_port(config); i <= config->num_ports; i++)
		init_tables(config, &node->port[i], &m);
	return node;
}

uint8_t ag_lft_get(const struct ag_node *node, uint16_t lid)
{
	const uint8_t *block;

	if (!node->sw || lid >= WIRE_LID_MULTICAST)
		return WIRE_LFT_NO_PORT;
	block = ag_block(node->sw->lft, lid / WIRE_LFT_PER_BLOCK);
	return block ? block[lid % WIRE_LFT_PER_BLOCK] : WIRE_LFT_NO_PORT;
}

bool ag_mft_get(const struct ag_node *node, uint16_t mlid, uint8_t port)
{
	unsigned int i = mlid - WIRE_LID_MULTICAST;
	const uint16_t *block;

	if (!node->sw || mlid < WIRE_LID_MULTICAST || i / WIRE_MFT_PER_BLOCK >= AG_MFT_BLOCKS)
		return false;
	block = ag_block(node->sw->mft, i / WIRE_MFT_PER_BLOCK);
	if (!block)
		return false;
	return block[port / 16 * WIRE_MFT_PER_BLOCK + i % WIRE_MFT_PER_BLOCK] >> port % 16 & 1;
}

/* Widths in ascending order of lanes, which is not the order of the mask's bits (14.2.5.6) */
static const struct {
	uint8_t width, lanes;
} widths[] = {
	{WIRE_WIDTH_12X, 12}, {WIRE_WIDTH_8X, 8}, {WIRE_WIDTH_4X, 4},
	{WIRE_WIDTH_2X, 2},   {WIRE_WIDTH_1X, 1},
};

uint8_t ag_width_negotiate(uint8_t a, uint8_t b)
{
	for (size_t i = 0; i < ARRAY_SIZE(widths); i++)
		if (a & b & widths[i].width)
			return widths[i].width;
	return 0;
}

unsigned int ag_width_lanes(uint8_t width)
{
	for (size_t i = 0; i < ARRAY_SIZE(widths); i++)
		if (width == widths[i].width)
			return widths[i].lanes;
	return 0;
}

static const struct {
	uint16_t speed;
	unsigned int mbps;
} speeds[] = {
	{AG_NDR, 106250}, {AG_HDR, 53125}, {AG_EDR, 25781}, {AG_FDR, 14063},
	{AG_FDR10, 10313}, {AG_QDR, 10000}, {AG_DDR, 5000},  {AG_SDR, 2500},
};

uint16_t ag_speed_negotiate(uint16_t a, uint16_t b)
{
	for (size_t i = 0; i < ARRAY_SIZE(speeds); i++)
		if (a & b & speeds[i].speed)
			return speeds[i].speed;
	return 0;
}

unsigned int ag_speed_mbps(uint16_t speed)
{
	for (size_t i = 0; i < ARRAY_SIZE(speeds); i++)
		if (speed == speeds[i].speed)
			return speeds[i].mbps;
	return 0;
}

uint32_t ag_port_link(struct ag_node *node, uint8_t num, uint8_t width, uint16_t speed,
		      uint8_t phys_state, mono_t now)
{
	struct ag_port *port = &node->port[num];
	uint8_t before = port->state;

	port->width_active = width;
	port->speed_active = speed;
	port->phys_state = width ? WIRE_PHYS_LINK_UP : phys_state;
	if (width && before == WIRE_PORT_DOWN)
		port->state = WIRE_PORT_INIT;
	if (!width)
		port->state = WIRE_PORT_DOWN;
	if (port->state == before)
		return 0;
	if (!width)
		port->count.raw[AG_LINK_DOWNED]++;
	if (node->sw) {
		node->sw->port_state_change = true;
		ag_trap_link_state(node, now);
	}
	return AG_CHANGED_STATE | (node->sw ? AG_CHANGED_ROUTES | AG_CHANGED_TRAPS : 0);
}

uint32_t ag_set_capability(struct ag_node *node, uint8_t num, uint32_t mask, bool on, mono_t now)
{
	struct ag_port *port = &node->port[num];
	uint32_t before = port->cap_mask;

	if (on)
		port->cap_mask |= mask;
	else
		port->cap_mask &= ~mask;
	if (port->cap_mask == before)
		return 0;
	ag_trap_changes(node, num, 0, now);
	return AG_CHANGED_ATTRIBUTES | AG_CHANGED_TRAPS;
}

void ag_set_description(struct ag_node *node, const char *desc, mono_t now)
{
	memset(node->desc, 0, sizeof(node->desc));
	memcpy(node->desc, desc, strnlen(desc, sizeof(node->desc)));
	ag_trap_changes(node, node->sw ? 0 : 1, WIRE_CHANGE_NODE_DESCRIPTION, now);
}
