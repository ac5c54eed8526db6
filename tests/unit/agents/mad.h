/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A node under test and MADs to put to it. */
#ifndef SOFTIB_TESTS_AGENTS_MAD_H
#define SOFTIB_TESTS_AGENTS_MAD_H

#include "test.h"

#include "agents/agents.h"

/** struct bench - one node, the last MAD put to it and what came back */
struct bench {
	struct ag_node *node;
	uint8_t port; /* where MADs come in */
	mono_t now;
	uint64_t mkey;
	uint8_t mad[WIRE_MAD_BYTES];
	uint8_t *data; /* the attribute in @mad */
	int result;
	struct ag_effect effect;
};

static inline void *bench_alloc(void *ctx, size_t bytes)
{
	return calloc(1, bytes);
}

static inline struct bench bench_new(uint8_t kind, uint8_t num_ports)
{
	struct ag_node_config config = {
		.kind = kind,
		.num_ports = num_ports,
		.guid = 0x0002c90300001000,
		.vendor_id = 0x2c9,
		.device_id = 4123,
		.desc = kind == WIRE_NODE_SWITCH ? "s1" : "n1",
		.memory = {.alloc = bench_alloc},
	};
	struct bench b = {.port = kind == WIRE_NODE_SWITCH ? 0 : 1};

	b.node = ag_node_init(&config, calloc(1, ag_node_size(&config)));
	return b;
}

static inline void bench_free(struct bench *b)
{
	ag_node_free_tables(b->node, free);
	free(b->node);
}

/* put b->mad to the node; Return: the status, -1 without an answer */
static inline int bench_process(struct bench *b)
{
	struct ag_mad_context ctx = {.now = b->now, .slid = 9, .src_qpn = 0};
	struct wire_mad hdr;

	b->result = ag_process(b->node, b->port, &ctx, b->mad, b->mad, &b->effect);
	if (!(b->result & AG_REPLY))
		return -1;
	wire_mad_decode(b->mad, sizeof(b->mad), &hdr);
	assert_int_equal(hdr.method, WIRE_METHOD_GET_RESP);
	return hdr.status & 0x7fff;
}

/* an SMP with the attribute that lies at b->data (as the last answer left it) */
static inline int bench_smp(struct bench *b, uint8_t method, uint16_t attr, uint32_t mod)
{
	struct wire_smp smp = {
		.mad = {.base_version = 1, .mgmt_class = WIRE_CLASS_SM_LID, .class_version = 1,
			.method = method, .tid = 0x1234, .attr_id = attr, .attr_mod = mod},
		.mkey = b->mkey,
	};

	wire_smp_encode(&smp, b->mad);
	b->data = b->mad + WIRE_SMP_DATA_OFFSET;
	return bench_process(b);
}

static inline int bench_pma(struct bench *b, uint8_t method, uint16_t attr)
{
	struct wire_mad mad = {.base_version = 1, .mgmt_class = WIRE_CLASS_PERF,
			       .class_version = 1, .method = method, .attr_id = attr};

	wire_mad_encode(&mad, b->mad);
	b->data = b->mad + WIRE_PMA_DATA_OFFSET;
	return bench_process(b);
}

static inline struct wire_port_info bench_get_port_info(struct bench *b, uint8_t port)
{
	struct wire_port_info pi;

	assert_int_equal(bench_smp(b, WIRE_METHOD_GET, WIRE_SMP_PORT_INFO, port), 0);
	wire_port_info_decode(b->data, WIRE_SMP_DATA_BYTES, &pi);
	return pi;
}

static inline int bench_set_port_info(struct bench *b, uint8_t port,
				      const struct wire_port_info *pi)
{
	wire_port_info_encode(pi, b->mad + WIRE_SMP_DATA_OFFSET);
	return bench_smp(b, WIRE_METHOD_SET, WIRE_SMP_PORT_INFO, port);
}

#endif
