/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Configures ports (14.2.5.6, 14.4.4): LIDs, the manager's LID, MTU and virtual
 * lanes of each link, then Armed at both ends of every link, then Active. Nothing
 * is sent to a port that is configured already.
 */
#include "sm/internal.h"

#include <string.h>

#define HOQ_LIFE_ENC 0x12     /* 4.096 us << 18, about a second */
#define VL_STALL_COUNT 7
#define SWITCH_LIFE_ENC 0x12
#define DEFAULT_PKEY WIRE_PKEY_DEFAULT
#define OPTIMIZED_SL_TO_VL 0x10000u /* all ports in, all ports out: one table */

uint8_t sm_port_mtu(const struct sm_port *p)
{
	uint8_t mtu = p->info.mtu_cap ?: WIRE_MTU_256;

	return p->peer && p->peer->known ? MIN(mtu, p->peer->info.mtu_cap ?: WIRE_MTU_256)
					 : mtu;
}

uint8_t sm_port_vls(const struct sm *sm, const struct sm_port *p)
{
	uint8_t vls = MIN(p->info.vl_cap ?: 1, sm->opt.max_vls_enc);

	return p->peer && p->peer->known ? MIN(vls, p->peer->info.vl_cap ?: 1) : vls;
}

static void set_reply(struct sm *sm, const struct sm_reply *r)
{
	struct sm_port *p = r->obj;
	struct wire_port_info info;

	if (!r->data || wire_port_info_decode(r->data, WIRE_SMP_DATA_BYTES, &info) < 0) {
		sm_log(sm, SM_LOG_WARNING, "port %u of %s does not answer a Set", p->num,
		       sm_node_name(p->node));
		return;
	}
	if (!r->status) {
		p->info = info;
		return;
	}
	/* the attribute in a rejection may be just a copy of the request */
	sm_log(sm, SM_LOG_WARNING, "port %u of %s refuses PortInfo: status 0x%04x", p->num,
	       sm_node_name(p->node), r->status);
}

/* A Set starts from the values that the port has reported; in these fields zero means "no
 * change". */
static struct wire_port_info unchanged(const struct sm_port *p)
{
	struct wire_port_info i = p->info;

	i.state = WIRE_PORT_NO_CHANGE;
	i.phys_state = WIRE_PHYS_NO_CHANGE;
	i.link_down_default_state = 0;
	i.link_width_enabled = 0;
	i.link_speed_enabled = 0;
	i.link_speed_ext_enabled = 0;
	i.client_reregister = false;
	return i;
}

static void send_port(struct sm *sm, struct sm_port *p, const struct wire_port_info *i)
{
	sm_set(sm, p->path, WIRE_SMP_PORT_INFO, p->num, &wire_port_info_codec, i, set_reply,
	       p, 0);
}

/* The fields that only end ports have. */
static void fill_end_port(struct sm *sm, const struct sm_port *p, struct wire_port_info *i)
{
	i->lid = p->lid;
	i->lmc = p->lmc;
	i->sm_lid = sm->next->self->lid;
	i->sm_sl = 0;
	i->gid_prefix = sm->opt.gid_prefix;
	i->mkey = sm->opt.mkey;
	i->mkey_protect_bits = sm->opt.mkey ? 1 : 0;
	i->subnet_timeout_enc = sm->opt.subnet_timeout_enc;
}

static void fill_link(struct sm *sm, const struct sm_port *p, struct wire_port_info *i)
{
	i->neighbor_mtu = sm_port_mtu(p);
	i->operational_vls = sm_port_vls(sm, p);
	if (sm_is_switch(p->node)) {
		i->hoq_life_enc = HOQ_LIFE_ENC;
		i->vl_stall_count = VL_STALL_COUNT;
	}
}

static void configure_port(struct sm *sm, struct sm_port *p)
{
	struct wire_port_info was = unchanged(p), i = was;

	if (sm_is_end_port(p))
		fill_end_port(sm, p, &i);
	if (p->num && sm_port_is_up(p))
		fill_link(sm, p, &i);
	if (memcmp(&i, &was, sizeof(i)))
		send_port(sm, p, &i);
}

/* Call @fn for the ports of the next node. Return: false after the last node. */
static bool each_node(struct sm *sm, void (*fn)(struct sm *sm, struct sm_port *p))
{
	struct sm_subnet *s = sm_model(sm);
	struct sm_node *n;

	if (sm->cursor.node >= s->n_nodes)
		return false;
	n = s->nodes[sm->cursor.node++];
	for (uint32_t i = 0; i <= n->n_ports; i++)
		if (n->ports[i].known)
			fn(sm, &n->ports[i]);
	return true;
}

/* Mark ports that are new since the last sweep, or were reset meanwhile. */
static void mark_fresh(struct sm *sm)
{
	sm_for_each_end_port(sm->next, p) {
		const struct sm_port *old =
			sm->subnet ? sm_subnet_port(sm->subnet, p->guid) : NULL;

		p->fresh = !old || !old->lid ||
			   (p->num && p->info.state == WIRE_PORT_INIT);
	}
}

void sm_lids_begin(struct sm *sm)
{
	if (!sm->next->self || !sm->next->self->known) {
		sm_log(sm, SM_LOG_ERROR, "the agent of the manager's own port does not answer");
		sm_abort_job(sm);
		return;
	}
	if (!sm_lids_assign(sm))
		sm->unanswered++;
	mark_fresh(sm);
}

bool sm_ports_more(struct sm *sm)
{
	return each_node(sm, configure_port);
}

static void change_state(struct sm *sm, struct sm_port *p, uint8_t from, uint8_t to)
{
	struct wire_port_info i;

	/* a link needs both ends to become Active (7.2.7) */
	if (!p->num || p->info.state != from || !p->peer)
		return;
	i = unchanged(p);
	i.state = to;
	send_port(sm, p, &i);
}

static void arm_port(struct sm *sm, struct sm_port *p)
{
	change_state(sm, p, WIRE_PORT_INIT, WIRE_PORT_ARMED);
}

static void activate_port(struct sm *sm, struct sm_port *p)
{
	change_state(sm, p, WIRE_PORT_ARMED, WIRE_PORT_ACTIVE);
}

bool sm_arm_more(struct sm *sm)
{
	return each_node(sm, arm_port);
}

bool sm_activate_more(struct sm *sm)
{
	return each_node(sm, activate_port);
}

/* This manager is new to the port: its clients have to join and register again. */
static void report_client(struct sm *sm, struct sm_port *p)
{
	struct wire_port_info i;

	if (!sm_is_end_port(p) || !(sm->reregister || p->fresh) ||
	    !(p->info.cap_mask & WIRE_PORT_CAP_CLIENT_REREGISTER))
		return;
	i = unchanged(p);
	i.client_reregister = true;
	send_port(sm, p, &i);
}

bool sm_clients_more(struct sm *sm)
{
	if (each_node(sm, report_client))
		return true;
	sm->reregister = false;
	return false;
}

static void switch_reply(struct sm *sm, const struct sm_reply *r)
{
	struct sm_node *n = r->obj;

	if (r->data && !r->status)
		wire_switch_info_decode(r->data, WIRE_SMP_DATA_BYTES, &n->sw);
}

bool sm_switch_info_more(struct sm *sm)
{
	struct wire_switch_info i;
	struct sm_node *n;

	if (sm->cursor.node >= sm->next->n_switches)
		return false;
	n = sm->next->switches[sm->cursor.node++];
	i = n->sw;
	i.lft_top = sm->next->lid_max;
	i.life_time_enc = SWITCH_LIFE_ENC;
	if (memcmp(&i, &n->sw, sizeof(i)) || n->sw.port_state_change) {
		i.port_state_change = true; /* write one to clear (14.2.5.4) */
		sm_set(sm, &n->path, WIRE_SMP_SWITCH_INFO, 0, &wire_switch_info_codec, &i,
		       switch_reply, n, 0);
	}
	return true;
}

/* --- partitions: all ports are full members of the default one (10.9.1.2) --- */

static void set_pkeys(struct sm *sm, struct sm_port *p)
{
	struct wire_pkey_table t;
	uint32_t free_entry = 0;

	if (!sm_is_end_port(p) || !p->pkeys_known)
		return;
	for (uint32_t i = 0; i < WIRE_PKEYS_PER_BLOCK; i++)
		if (p->pkeys[i] == DEFAULT_PKEY)
			return;
	/* make a limited default P_Key a full one, or else use the first empty entry */
	while (free_entry < WIRE_PKEYS_PER_BLOCK && wire_pkey_is_valid(p->pkeys[free_entry]) &&
	       !wire_pkeys_alike(p->pkeys[free_entry], DEFAULT_PKEY))
		free_entry++;
	if (free_entry == WIRE_PKEYS_PER_BLOCK) {
		sm_log(sm, SM_LOG_WARNING, "no room for the default P_Key at %s",
		       sm_node_name(p->node));
		return;
	}
	p->pkeys[free_entry] = DEFAULT_PKEY;
	memcpy(t.pkey, p->pkeys, sizeof(t.pkey));
	sm_set(sm, p->path, WIRE_SMP_PKEY_TABLE, 0, &wire_pkey_table_codec, &t, NULL, NULL,
	       0);
}

bool sm_pkeys_more(struct sm *sm)
{
	return each_node(sm, set_pkeys);
}

/* --- virtual lanes: SLs are distributed evenly over the VLs of a link --- */

static void qos_reply(struct sm *sm, const struct sm_reply *r)
{
	struct sm_port *p = r->obj;

	if (r->data && r->status)
		sm_log(sm, SM_LOG_INFO, "port %u of %s rejects the tables of virtual lanes: status 0x%04x",
		       p->num, sm_node_name(p->node), r->status);
}

static uint8_t n_lanes(uint8_t vls_enc)
{
	static const uint8_t lanes[] = {1, 1, 2, 4, 8, 15}; /* 14.2.5.6, VLCap */

	return vls_enc < ARRAY_SIZE(lanes) ? lanes[vls_enc] : 1;
}

static void set_sl_to_vl(struct sm *sm, struct sm_port *p)
{
	uint8_t lanes = n_lanes(p->info.operational_vls);
	const struct sm_node *n = p->node;
	struct wire_sl_to_vl t;

	for (uint32_t sl = 0; sl < 16; sl++)
		t.vl[sl] = sl % lanes;
	if (!sm_is_switch(n)) {
		sm_set(sm, p->path, WIRE_SMP_SL_TO_VL, 0, &wire_sl_to_vl_codec, &t, qos_reply,
		       p, 0);
	} else if (n->sw.optimized_sl_to_vl & 1) {
		sm_set(sm, p->path, WIRE_SMP_SL_TO_VL, OPTIMIZED_SL_TO_VL | p->num,
		       &wire_sl_to_vl_codec, &t, qos_reply, p, 0);
	} else {
		for (uint32_t in = 0; in <= n->n_ports; in++)
			sm_set(sm, p->path, WIRE_SMP_SL_TO_VL, in << 8 | p->num,
			       &wire_sl_to_vl_codec, &t, qos_reply, p, 0);
	}
}

static void set_vl_arb(struct sm *sm, struct sm_port *p)
{
	uint8_t lanes = n_lanes(p->info.operational_vls);
	uint32_t room = MIN((uint32_t)p->info.vl_arb_low_cap, WIRE_VL_ARB_PER_BLOCK);
	struct wire_vl_arb t = {0};

	for (uint32_t i = 0; i < lanes && i < room; i++) {
		t.entry[i].vl = i;
		t.entry[i].weight = 64; /* 4 KiB at a time */
	}
	if (room)
		sm_set(sm, p->path, WIRE_SMP_VL_ARB, 1u << 16 | p->num, &wire_vl_arb_codec,
		       &t, qos_reply, p, 0);
}

static void set_lanes(struct sm *sm, struct sm_port *p)
{
	if (!p->num || !sm_port_is_up(p) || n_lanes(p->info.vl_cap) == 1)
		return;
	set_sl_to_vl(sm, p);
	set_vl_arb(sm, p);
}

void sm_qos_begin(struct sm *sm)
{
	if (!sm->opt.qos)
		sm->cursor.node = sm->next->n_nodes;
}

bool sm_qos_more(struct sm *sm)
{
	return each_node(sm, set_lanes);
}
