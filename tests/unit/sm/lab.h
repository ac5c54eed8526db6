/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A subnet in plain memory for tests of the manager: nodes that answer SMPs by
 * directed route, under the virtual clock, with losses on command. Adapters
 * are n1.. on port 1.. of the switches, cables between switches come first.
 */
#ifndef SOFTIB_TESTS_SM_LAB_H
#define SOFTIB_TESTS_SM_LAB_H

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/sim/rt_sim.h"
#include "sm/internal.h"

#define LAB_NODES 32
#define LAB_PORTS 12
#define LAB_PREFIX 0xfe80000000000000ull

struct lab_node {
	struct wire_node_info info;
	struct wire_switch_info sw;
	struct wire_port_info port[LAB_PORTS + 1];
	struct lab_node *peer[LAB_PORTS + 1];
	uint8_t peer_port[LAB_PORTS + 1];
	uint8_t lft[1024];
	uint16_t mft[WIRE_MFT_PER_BLOCK];
	uint32_t n_sets;
	bool mute; /* answers nothing */
	int refuses; /* so many Set(PortInfo), echoing what was asked */
};

struct lab {
	struct rt *rt;
	struct sm_io io;
	struct sm *sm;
	struct sm_options opt;
	struct lab_node nodes[LAB_NODES];
	uint32_t n_nodes;
	uint32_t drop_every; /* lose each n-th request */
	uint32_t n_requests;
	struct wire_sm_info *other_sm; /* told by the second adapter */
	int ups, errors, standbys;
	int handovers; /* to the other manager */
	/* what the administrator sent last, and how many */
	uint8_t sa[1 << 16];
	size_t sa_len;
	uint32_t n_sa;
};

/* An answer under way: delivered by the loop, not on the sender's stack. */
struct lab_mail {
	struct rt_work work;
	struct lab *lab;
	int status;
	uint8_t mad[WIRE_MAD_BYTES];
};

static inline struct lab_node *lab_node(struct lab *lab, uint8_t type, int ports)
{
	struct lab_node *n = &lab->nodes[lab->n_nodes++];

	assert(lab->n_nodes <= LAB_NODES && ports <= LAB_PORTS);
	n->info = (struct wire_node_info){
		.base_version = 1, .class_version = 1, .node_type = type, .nr_ports = ports,
		.node_guid = 0x100 * lab->n_nodes, .port_guid = 0x100 * lab->n_nodes + 1,
	};
	n->sw = (struct wire_switch_info){.lft_cap = 1024, .mft_cap = 32};
	for (int p = 0; p <= ports; p++)
		n->port[p] = (struct wire_port_info){
			.local_port = p, .state = WIRE_PORT_DOWN, .mtu_cap = WIRE_MTU_4096,
			.vl_cap = 4, .link_width_active = WIRE_WIDTH_4X,
			.link_speed_active = WIRE_SPEED_QDR,
			.phys_state = WIRE_PHYS_POLLING,
		};
	if (type == WIRE_NODE_SWITCH)
		n->port[0].state = WIRE_PORT_ACTIVE;
	memset(n->lft, ROUTE_NO_PORT, sizeof(n->lft));
	return n;
}

static inline void lab_link_state(struct lab_node *n, int port, uint8_t state)
{
	n->port[port].state = state;
	n->port[port].phys_state = state == WIRE_PORT_DOWN ? WIRE_PHYS_POLLING
							    : WIRE_PHYS_LINK_UP;
}

static inline void lab_cable(struct lab_node *a, int pa, struct lab_node *b, int pb)
{
	a->peer[pa] = b;
	a->peer_port[pa] = pb;
	b->peer[pb] = a;
	b->peer_port[pb] = pa;
	lab_link_state(a, pa, WIRE_PORT_INIT);
	lab_link_state(b, pb, WIRE_PORT_INIT);
}

static inline void lab_set_port(struct lab_node *n, struct wire_port_info *p,
				const struct wire_port_info *set)
{
	struct wire_port_info old = *p;

	*p = *set;
	p->local_port = old.local_port;
	p->state = set->state ?: old.state;
	p->phys_state = set->phys_state ?: old.phys_state;
	n->n_sets++;
}

/* One attribute of one node, as its agent would do it. Return: MAD status */
static inline uint16_t lab_attribute(struct lab *lab, struct lab_node *n, uint8_t in_port,
				     bool set, uint16_t attr, uint32_t mod, uint8_t *data)
{
	bool is_switch = n->info.node_type == WIRE_NODE_SWITCH;
	uint8_t num = is_switch ? mod & 0xff : in_port ?: 1;
	struct wire_pkey_table keys = {{0x7fff}};
	struct wire_node_info info = n->info;
	struct wire_port_info pi;

	switch (attr) {
	case WIRE_SMP_NODE_INFO:
		info.local_port = in_port ?: (is_switch ? 0 : 1);
		wire_node_info_encode(&info, data);
		return 0;
	case WIRE_SMP_NODE_DESCRIPTION:
		memset(data, 0, 64);
		memcpy(data, is_switch ? "switch" : "adapter", 6);
		return 0;
	case WIRE_SMP_PORT_INFO:
		if (num > n->info.nr_ports)
			return WIRE_STATUS_BAD_FIELD;
		wire_port_info_decode(data, 64, &pi);
		if (set && n->refuses && n->refuses--)
			return WIRE_STATUS_BAD_FIELD;
		if (set)
			lab_set_port(n, &n->port[num], &pi);
		wire_port_info_encode(&n->port[num], data);
		return 0;
	case WIRE_SMP_SWITCH_INFO:
		if (set)
			wire_switch_info_decode(data, 64, &n->sw);
		n->sw.port_state_change &= !set;
		wire_switch_info_encode(&n->sw, data);
		return 0;
	case WIRE_SMP_PKEY_TABLE:
		if (!set)
			wire_pkey_table_encode(&keys, data);
		return 0;
	case WIRE_SMP_LFT:
		if (mod >= sizeof(n->lft) / 64)
			return WIRE_STATUS_BAD_FIELD;
		n->n_sets += set;
		memcpy(set ? n->lft + mod * 64 : data, set ? data : n->lft + mod * 64, 64);
		return 0;
	case WIRE_SMP_MFT:
		for (int i = 0; set && i < WIRE_MFT_PER_BLOCK && !(mod >> 28); i++)
			n->mft[i] = get_be16(data + 2 * i);
		return 0;
	case WIRE_SMP_SM_INFO:
		if (!lab->other_sm)
			return WIRE_STATUS_BAD_METHOD_ATTR;
		lab->handovers += set && mod == WIRE_SM_HANDOVER;
		if (!set)
			wire_sm_info_encode(lab->other_sm, data);
		return 0;
	default:
		return WIRE_STATUS_BAD_METHOD_ATTR;
	}
}

/* Walk the initial path from the first adapter. Return: who is there, or NULL */
static inline struct lab_node *lab_walk(struct lab *lab, const struct wire_smp *s, uint8_t *in)
{
	struct lab_node *n = &lab->nodes[0];

	*in = 0;
	for (int hop = 1; hop <= s->hop_count; hop++) {
		uint8_t out = s->initial_path[hop];

		if (out > n->info.nr_ports || !n->peer[out] ||
		    n->port[out].state == WIRE_PORT_DOWN)
			return NULL;
		*in = n->peer_port[out];
		n = n->peer[out];
	}
	return n->mute ? NULL : n;
}

static inline void lab_deliver(struct rt_work *w)
{
	struct lab_mail *m = container_of(w, struct lab_mail, work);
	struct sm_addr from = {.lid = 0xffff};

	sm_receive(m->lab->sm, SM_AGENT_DIRECT, m->status, &from, m->mad, sizeof(m->mad));
	free(m);
}

static inline int lab_send(struct sm_io *io, enum sm_agent agent, const struct sm_addr *to,
			   const void *mad, size_t len, unsigned int timeout_ms)
{
	struct lab *lab = container_of(io, struct lab, io);
	struct wire_smp smp;
	struct lab_mail *m;
	struct lab_node *n;
	uint8_t in;

	if (agent == SM_AGENT_SA) {
		assert(len <= sizeof(lab->sa));
		memcpy(lab->sa, mad, len);
		lab->sa_len = len;
		lab->n_sa++;
		return 0;
	}
	if (wire_smp_decode(mad, len, &smp) < 0 || !timeout_ms)
		return 0;
	n = lab_walk(lab, &smp, &in);
	if (!n || (lab->drop_every && ++lab->n_requests % lab->drop_every == 0))
		return 0;
	m = calloc(1, sizeof(*m));
	m->lab = lab;
	memcpy(m->mad, mad, len);
	smp.mad.status = lab_attribute(lab, n, in, smp.mad.method == WIRE_METHOD_SET,
				       smp.mad.attr_id, smp.mad.attr_mod,
				       m->mad + WIRE_SMP_DATA_OFFSET);
	smp.mad.method = WIRE_METHOD_GET_RESP;
	smp.direction = true;
	wire_smp_encode(&smp, m->mad);
	rt_work_init(&m->work, lab_deliver);
	rt_work_queue(lab->rt, &m->work);
	return 0;
}

static inline void lab_event(void *ctx, enum sm_event e)
{
	struct lab *lab = ctx;

	lab->ups += e == SM_EVENT_SUBNET_UP;
	lab->errors += e == SM_EVENT_SWEEP_ERRORS;
	lab->standbys += e == SM_EVENT_STANDBY;
}

/* The world: two switches with two cables between them, two adapters each. */
static inline struct lab *lab_new(void)
{
	struct lab *lab = calloc(1, sizeof(*lab));
	struct lab_node *a[4], *s1, *s2;

	assert(!rt_sim_create(7, &lab->rt));
	lab->io.send = lab_send;
	for (int i = 0; i < 4; i++)
		a[i] = lab_node(lab, WIRE_NODE_CA, 1);
	s1 = lab_node(lab, WIRE_NODE_SWITCH, 8);
	s2 = lab_node(lab, WIRE_NODE_SWITCH, 8);
	lab_cable(s1, 7, s2, 7);
	lab_cable(s1, 8, s2, 8);
	lab_cable(a[0], 1, s1, 1);
	lab_cable(a[1], 1, s1, 2);
	lab_cable(a[2], 1, s2, 1);
	lab_cable(a[3], 1, s2, 2);
	sm_options_default(&lab->opt);
	lab->opt.port_guid = a[0]->info.port_guid;
	lab->opt.sweep_ns = 0;
	lab->opt.event = lab_event;
	lab->opt.ctx = lab;
	return lab;
}

static inline void lab_run(struct lab *lab)
{
	assert(!sm_create(lab->rt, &lab->io, &lab->opt, &lab->sm));
	sm_start(lab->sm);
	assert(rt_sim_run(lab->rt, 100000));
}

static inline void lab_free(struct lab *lab)
{
	sm_destroy(lab->sm);
	rt_sim_run(lab->rt, 1000);
	rt_sim_destroy(lab->rt);
	free(lab);
}

#endif
