/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Any MADs put to the agents (SMA, PMA, and what refuses the other classes)
 * of an adapter and of a switch, in any order, while links come and go. The
 * input is a list of records, each two bytes of choice and 252 bytes of MAD.
 * After each: the answer belongs to the question, a Get changes nothing, and
 * the node's state is one that the specification allows.
 */
#include <stdlib.h>
#include <string.h>

#include "agents/agents.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define RECORD_BYTES (2 + WIRE_MAD_BYTES - 4)
#define SWITCH_PORTS 3
#define ALLOCS 4096

static void *blocks[ALLOCS];
static unsigned num_blocks;

static void *alloc(void *ctx, size_t bytes)
{
	if (num_blocks == ALLOCS)
		return NULL;
	blocks[num_blocks] = calloc(1, bytes);
	return blocks[num_blocks++];
}

static struct ag_node *make_node(uint8_t kind)
{
	const struct ag_node_config config = {
		.kind = kind,
		.num_ports = kind == WIRE_NODE_SWITCH ? SWITCH_PORTS : 1,
		.guid = 0x100,
		.desc = "fuzz",
		.memory = {.alloc = alloc},
	};

	return ag_node_init(&config, calloc(1, ag_node_size(&config)));
}

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void check_port(const struct ag_node *node, const struct ag_port *p)
{
	const bool own = node->sw && p == node->port;

	check(p->state >= WIRE_PORT_DOWN && p->state <= WIRE_PORT_ACTIVE);
	check(own || p->state == WIRE_PORT_DOWN || p->phys_state == WIRE_PHYS_LINK_UP);
	check(p->lid < WIRE_LID_MULTICAST && p->lmc <= 7 && p->sm_sl <= 15);
	check(p->oper_vls_enc <= p->vl_cap_enc);
	check(p->neighbor_mtu_enc <= WIRE_MTU_4096);
	check(!(p->speed_enabled & ~p->speed_supported));
	check(!(p->width_enabled & ~p->width_supported));
	check(p->guids[0] == p->guid || own || node->sw);
	for (int v = 0; v < 2 * AG_VLARB_ENTRIES; v++)
		check(p->vlarb[v / AG_VLARB_ENTRIES][v % AG_VLARB_ENTRIES].vl <= 15);
}

static void check_node(const struct ag_node *node)
{
	for (int i = node->sw ? 0 : 1; i <= node->num_ports; i++)
		check_port(node, &node->port[i]);
	for (uint32_t lid = 0; node->sw && lid < 0xc000; lid += 61)
		(void)ag_lft_get(node, (uint16_t)lid);
	for (int i = 0; i < AG_TRAPS; i++)
		check(!node->trap[i].used || node->trap[i].sent <= AG_TRAP_SENDS);
}

/* The answer is to this question, and can be read. */
static void check_answer(const uint8_t *in, const uint8_t *out)
{
	struct wire_mad asked, told;

	wire_mad_decode(in, WIRE_MAD_BYTES, &asked);
	wire_mad_decode(out, WIRE_MAD_BYTES, &told);
	check(!(asked.method & WIRE_METHOD_RESPONSE)); /* no answer to an answer */
	check(asked.method != WIRE_METHOD_TRAP);
	check(told.method & WIRE_METHOD_RESPONSE || told.method == WIRE_METHOD_TRAP_REPRESS);
	check(told.mgmt_class == asked.mgmt_class && told.tid == asked.tid);
	check(told.attr_id == asked.attr_id);
}

/* what a question put twice at one time is answered both times */
static void check_get(struct ag_node *node, uint8_t port, const struct ag_mad_context *ctx,
		      const uint8_t *in, const uint8_t *out)
{
	uint8_t again[WIRE_MAD_BYTES] = {0};
	struct ag_effect effect;

	check(ag_process(node, port, ctx, in, again, &effect) & AG_REPLY);
	check(!memcmp(out, again, sizeof(again)));
	check(!(effect.changes & ~(uint32_t)AG_CHANGED_TRAPS));
}

static void put(struct ag_node *node, uint8_t port, const struct ag_mad_context *ctx,
		const uint8_t *in)
{
	uint8_t out[WIRE_MAD_BYTES] = {0}, refused[WIRE_MAD_BYTES];
	struct ag_effect effect = {0};
	int result = ag_process(node, port, ctx, in, out, &effect);

	check(effect.port <= node->num_ports);
	if (result & AG_REPLY) {
		check(result & AG_CONSUMED);
		check_answer(in, out);
		if (in[3] == WIRE_METHOD_GET)
			check_get(node, port, ctx, in, out);
	}
	memcpy(refused, in, sizeof(refused));
	if (result == AG_PASS && ag_refuse(refused))
		check_answer(in, refused);
}

static void take_traps(struct ag_node *node, mono_t now)
{
	uint8_t mad[WIRE_MAD_BYTES], port;
	struct wire_notice notice;

	ag_expire(node, now);
	for (int n = 0; ag_trap_take(node, now, mad, &port); n++) {
		check(n < AG_TRAPS && port <= node->num_ports);
		check(mad[3] == WIRE_METHOD_TRAP);
		wire_smp_notice_decode(mad + WIRE_SMP_DATA_OFFSET, WIRE_SMP_DATA_BYTES, &notice);
		check(!notice.is_generic || wire_trap_codec(notice.trap_number));
	}
}

static void act(struct ag_node *node, const uint8_t *record, mono_t *now)
{
	const uint8_t port = (uint8_t)(node->sw ? record[0] % (SWITCH_PORTS + 1) : 1);
	const struct ag_mad_context ctx = {.now = *now, .slid = record[1], .pkey = 0xffff,
					   .ignore_mkey = record[0] & 0x80};
	static const uint8_t classes[] = {WIRE_CLASS_SM_LID, WIRE_CLASS_SM_DIRECT,
					  WIRE_CLASS_PERF, 0};
	const uint8_t wanted = classes[record[0] >> 5 & 3];
	uint8_t mad[WIRE_MAD_BYTES] = {1, wanted, 1};

	/* a record chooses its class itself, or gives one that is served */
	memcpy(mad + 3, record + 2, sizeof(mad) - 4);
	if (!wanted)
		memcpy(mad, record + 2, sizeof(mad) - 4);
	put(node, port, &ctx, mad);
	if (record[0] & 0x10)
		*now = mono_add(*now, (uint64_t)record[1] * 100 * NSEC_PER_MSEC);
	if (record[0] & 0x08 && (port || !node->sw))
		ag_port_link(node, port, record[1] & 1 ? 2 : 0, record[1] & 1 ? AG_EDR : 0,
			     record[1] & 1 ? WIRE_PHYS_LINK_UP : WIRE_PHYS_POLLING, *now);
	if (record[0] & 0x04)
		ag_trap_pkey(node, port, 0x1234, 5, 6, 0, 7, 8, *now);
	take_traps(node, *now);
	check_node(node);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ag_node *node[2] = {make_node(WIRE_NODE_CA), make_node(WIRE_NODE_SWITCH)};
	mono_t now = {NSEC_PER_SEC};

	for (; size >= RECORD_BYTES; data += RECORD_BYTES, size -= RECORD_BYTES)
		act(node[data[1] >> 7], data, &now);
	free(node[0]);
	free(node[1]);
	while (num_blocks)
		free(blocks[--num_blocks]);
	return 0;
}
