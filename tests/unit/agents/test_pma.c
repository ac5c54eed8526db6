/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The PMA: counters at both widths, saturation, selective writes, sampling. */
#include <stdlib.h>
#include <sys/mman.h>

#include "mad.h"

static struct wire_port_counters counters(struct bench *b, uint8_t port)
{
	struct wire_port_counters c = {.port_select = port};

	wire_port_counters_encode(&c, b->mad + WIRE_PMA_DATA_OFFSET);
	assert_int_equal(bench_pma(b, WIRE_METHOD_GET, WIRE_PMA_PORT_COUNTERS), 0);
	wire_port_counters_decode(b->data, WIRE_PMA_DATA_BYTES, &c);
	return c;
}

static struct wire_port_counters_extended extended(struct bench *b, uint8_t port)
{
	struct wire_port_counters_extended c = {.port_select = port};

	wire_port_counters_extended_encode(&c, b->mad + WIRE_PMA_DATA_OFFSET);
	assert_int_equal(bench_pma(b, WIRE_METHOD_GET, WIRE_PMA_PORT_COUNTERS_EXTENDED), 0);
	wire_port_counters_extended_decode(b->data, WIRE_PMA_DATA_BYTES, &c);
	return c;
}

static void read_both_widths(void **state)
{
	struct bench b = bench_new(WIRE_NODE_CA, 1);
	uint64_t *raw = b.node->port[1].count.raw;

	raw[AG_XMIT_DATA] = 0x123456789;
	raw[AG_SYMBOL_ERRORS] = 70000;
	raw[AG_LOCAL_INTEGRITY] = 16;
	raw[AG_XMIT_WAIT] = 5;
	assert_int_equal(counters(&b, 1).xmit_data_dwords, UINT32_MAX); /* saturated */
	assert_int_equal(counters(&b, 1).symbol_errors, UINT16_MAX);
	assert_int_equal(counters(&b, 1).local_link_integrity_errors, 15);
	assert_int_equal(counters(&b, 1).xmit_wait, 5);
	assert_int_equal(extended(&b, 1).xmit_data_dwords, 0x123456789);
	assert_int_equal(extended(&b, 1).symbol_errors, 70000);
	bench_free(&b);
}

static void write_what_is_selected(void **state)
{
	struct bench b = bench_new(WIRE_NODE_CA, 1);
	uint64_t *raw = b.node->port[1].count.raw;
	struct wire_port_counters c = {
		.port_select = 1, .counter_select = WIRE_PC_XMIT_DATA | WIRE_PC_RCV_PKTS,
		.rcv_pkts = 7, /* a Set writes a value, not only zero */
	};

	raw[AG_XMIT_DATA] = raw[AG_RCV_DATA] = raw[AG_RCV_PACKETS] = raw[AG_XMIT_WAIT] = 100;
	wire_port_counters_encode(&c, b.mad + WIRE_PMA_DATA_OFFSET);
	assert_int_equal(bench_pma(&b, WIRE_METHOD_SET, WIRE_PMA_PORT_COUNTERS), 0);
	raw[AG_XMIT_DATA] += 3;
	c = counters(&b, 1);
	assert_int_equal(c.xmit_data_dwords, 3);
	assert_int_equal(c.rcv_pkts, 7);
	assert_int_equal(c.rcv_data_dwords, 100);
	assert_int_equal(c.xmit_wait, 100);
	/* the other attribute's view of the same counter is its own */
	assert_int_equal(extended(&b, 1).xmit_data_dwords, 103);
	c = (struct wire_port_counters){.port_select = 1, .counter_select2 = WIRE_PC2_XMIT_WAIT};
	wire_port_counters_encode(&c, b.mad + WIRE_PMA_DATA_OFFSET);
	bench_pma(&b, WIRE_METHOD_SET, WIRE_PMA_PORT_COUNTERS);
	assert_int_equal(counters(&b, 1).xmit_wait, 0);
	bench_free(&b);
}

static void saturated_stays_until_written(void **state)
{
	struct bench b = bench_new(WIRE_NODE_CA, 1);
	struct wire_port_counters c = {.port_select = 1, .counter_select = WIRE_PC_LINK_DOWNED};

	b.node->port[1].count.raw[AG_LINK_DOWNED] = 300;
	assert_int_equal(counters(&b, 1).link_downed, 255);
	b.node->port[1].count.raw[AG_LINK_DOWNED]++;
	assert_int_equal(counters(&b, 1).link_downed, 255);
	wire_port_counters_encode(&c, b.mad + WIRE_PMA_DATA_OFFSET);
	bench_pma(&b, WIRE_METHOD_SET, WIRE_PMA_PORT_COUNTERS);
	assert_int_equal(counters(&b, 1).link_downed, 0);
	bench_free(&b);
}

static void all_ports(void **state)
{
	struct bench b = bench_new(WIRE_NODE_SWITCH, 3);
	struct wire_port_counters_extended c = {.port_select = 255, .counter_select = 0xff};

	for (int i = 1; i <= 3; i++)
		b.node->port[i].count.raw[AG_XMIT_PACKETS] = (uint64_t)i;
	assert_int_equal(counters(&b, 255).xmit_pkts, 6);
	assert_int_equal(counters(&b, 2).xmit_pkts, 2);
	wire_port_counters_extended_encode(&c, b.mad + WIRE_PMA_DATA_OFFSET);
	assert_int_equal(bench_pma(&b, WIRE_METHOD_SET, WIRE_PMA_PORT_COUNTERS_EXTENDED), 0);
	assert_int_equal(extended(&b, 3).xmit_pkts, 0);
	assert_int_equal(counters(&b, 255).xmit_pkts, 6);
	bench_free(&b);
}

static void wrong_port_and_method(void **state)
{
	struct bench b = bench_new(WIRE_NODE_CA, 1);

	b.mad[WIRE_PMA_DATA_OFFSET + 1] = 2;
	assert_int_equal(bench_pma(&b, WIRE_METHOD_GET, WIRE_PMA_PORT_COUNTERS),
			 WIRE_STATUS_BAD_FIELD);
	b.mad[WIRE_PMA_DATA_OFFSET + 1] = 0; /* a CA has no port 0 */
	assert_int_equal(bench_pma(&b, WIRE_METHOD_GET, WIRE_PMA_PORT_COUNTERS),
			 WIRE_STATUS_BAD_FIELD);
	assert_int_equal(bench_pma(&b, WIRE_METHOD_SET, WIRE_PMA_CLASS_PORT_INFO),
			 WIRE_STATUS_BAD_METHOD_ATTR);
	assert_int_equal(bench_pma(&b, WIRE_METHOD_GET, 0x0040), WIRE_STATUS_BAD_METHOD_ATTR);
	/* its VLs congest at a switch only */
	assert_int_equal(bench_pma(&b, WIRE_METHOD_GET, WIRE_PMA_SW_PORT_VL_CONGESTION),
			 WIRE_STATUS_BAD_METHOD_ATTR);
	assert_int_equal(bench_pma(&b, WIRE_METHOD_GET_TABLE, WIRE_PMA_PORT_COUNTERS),
			 WIRE_STATUS_BAD_METHOD);
	bench_pma(&b, WIRE_METHOD_GET_RESP, WIRE_PMA_PORT_COUNTERS);
	assert_int_equal(b.result, AG_PASS); /* for whoever asked */
	bench_free(&b);
}

/* a Set chooses the opcode and begins; one that selects nothing ends */
static void by_opcode(void **state)
{
	struct bench b = bench_new(WIRE_NODE_SWITCH, 2);
	struct ag_port *port = &b.node->port[2];
	struct wire_port_op_rcv_counters op = {
		.op_code = 0x64, .port_select = 2, .counter_select = 3, .rcv_pkts = 10};

	wire_port_op_rcv_counters_encode(&op, b.mad + WIRE_PMA_DATA_OFFSET);
	assert_int_equal(bench_pma(&b, WIRE_METHOD_SET, WIRE_PMA_PORT_OP_RCV_COUNTERS), 0);
	assert_true(b.effect.changes & AG_CHANGED_ROUTES);
	assert_true(port->op_counted);
	ag_op_count(port, 0x64, 3, 72);
	ag_op_count(port, 0x64, 15, 72);
	ag_op_count(port, 0x04, 3, 99);
	bench_pma(&b, WIRE_METHOD_GET, WIRE_PMA_PORT_OP_RCV_COUNTERS);
	wire_port_op_rcv_counters_decode(b.data, WIRE_PMA_DATA_BYTES, &op);
	assert_int_equal(op.op_code, 0x64);
	assert_int_equal(op.rcv_pkts, 12);
	assert_int_equal(op.rcv_data_dwords, 144);
	op.counter_select = 0;
	wire_port_op_rcv_counters_encode(&op, b.mad + WIRE_PMA_DATA_OFFSET);
	bench_pma(&b, WIRE_METHOD_SET, WIRE_PMA_PORT_OP_RCV_COUNTERS);
	assert_false(port->op_counted);
	bench_free(&b);
}

static void by_opcode_and_vl(void **state)
{
	struct bench b = bench_new(WIRE_NODE_SWITCH, 2);
	struct wire_port_vl_op_packets pkts = {
		.op_code = 4, .port_select = 255, .counter_select = 0xffff};
	struct wire_port_vl_op_data data = {
		.op_code = 6, .port_select = 1, .counter_select = 0xffff};

	wire_port_vl_op_packets_encode(&pkts, b.mad + WIRE_PMA_DATA_OFFSET);
	assert_int_equal(bench_pma(&b, WIRE_METHOD_SET, WIRE_PMA_PORT_VL_OP_PACKETS), 0);
	wire_port_vl_op_data_encode(&data, b.mad + WIRE_PMA_DATA_OFFSET);
	assert_int_equal(bench_pma(&b, WIRE_METHOD_SET, WIRE_PMA_PORT_VL_OP_DATA), 0);
	ag_op_count(&b.node->port[1], 4, 0, 10);
	ag_op_count(&b.node->port[2], 4, 7, 10);
	ag_op_count(&b.node->port[1], 6, 7, 10);
	bench_pma(&b, WIRE_METHOD_GET, WIRE_PMA_PORT_VL_OP_DATA);
	wire_port_vl_op_data_decode(b.data, WIRE_PMA_DATA_BYTES, &data);
	assert_int_equal(data.data_dwords[0], 0);
	assert_int_equal(data.data_dwords[7], 10);
	wire_port_vl_op_packets_encode(&pkts, b.mad + WIRE_PMA_DATA_OFFSET);
	bench_pma(&b, WIRE_METHOD_GET, WIRE_PMA_PORT_VL_OP_PACKETS);
	wire_port_vl_op_packets_decode(b.data, WIRE_PMA_DATA_BYTES, &pkts);
	assert_int_equal(pkts.pkts[0], 1); /* both ports */
	assert_int_equal(pkts.pkts[7], 1);
	bench_free(&b);
}

static void waits_by_vl(void **state)
{
	struct bench b = bench_new(WIRE_NODE_CA, 1);
	struct wire_port_vl_xmit_wait_counters wait = {.port_select = 1, .counter_select = 1 << 2};

	b.node->port[1].seldom->xmit_wait_vl[2] = 70000;
	b.node->port[1].seldom->xmit_wait_vl[3] = 4;
	wire_port_vl_xmit_wait_counters_encode(&wait, b.mad + WIRE_PMA_DATA_OFFSET);
	bench_pma(&b, WIRE_METHOD_GET, WIRE_PMA_PORT_VL_XMIT_WAIT_COUNTERS);
	wire_port_vl_xmit_wait_counters_decode(b.data, WIRE_PMA_DATA_BYTES, &wait);
	assert_int_equal(wait.wait[2], UINT16_MAX);
	wait.wait[2] = wait.wait[3] = 0;
	wire_port_vl_xmit_wait_counters_encode(&wait, b.mad + WIRE_PMA_DATA_OFFSET);
	bench_pma(&b, WIRE_METHOD_SET, WIRE_PMA_PORT_VL_XMIT_WAIT_COUNTERS);
	bench_pma(&b, WIRE_METHOD_GET, WIRE_PMA_PORT_VL_XMIT_WAIT_COUNTERS);
	wire_port_vl_xmit_wait_counters_decode(b.data, WIRE_PMA_DATA_BYTES, &wait);
	assert_int_equal(wait.wait[2], 0);
	assert_int_equal(wait.wait[3], 4); /* was not selected */
	bench_free(&b);
}

/* what no link here has is zero, and stays so when it is written */
static void at_rest(void **state)
{
	static const uint16_t attrs[] = {
		WIRE_PMA_PORT_FLOW_CTL_COUNTERS, WIRE_PMA_PORT_VL_XMIT_FLOW_CTL_UPDATE_ERRORS,
		WIRE_PMA_PORT_EXT_SPEEDS_COUNTERS, WIRE_PMA_SW_PORT_VL_CONGESTION,
		WIRE_PMA_PORT_RCV_CON_CTRL, WIRE_PMA_PORT_SL_RCV_FECN,
		WIRE_PMA_PORT_SL_RCV_BECN, WIRE_PMA_PORT_XMIT_CON_CTRL,
		WIRE_PMA_PORT_VL_XMIT_TIME_CONG};
	struct bench b = bench_new(WIRE_NODE_SWITCH, 2);

	for (size_t i = 0; i < ARRAY_SIZE(attrs); i++) {
		for (int set = 0; set <= 1; set++) {
			memset(b.mad, 0xff, sizeof(b.mad));
			b.mad[WIRE_PMA_DATA_OFFSET + 1] = 2;
			assert_int_equal(bench_pma(&b, set ? WIRE_METHOD_SET : WIRE_METHOD_GET,
						   attrs[i]), 0);
			assert_int_equal(b.data[1], 2);
			for (int k = 4; k < 8; k++)
				assert_int_equal(b.data[k], 0);
		}
		b.mad[WIRE_PMA_DATA_OFFSET + 1] = 3;
		assert_int_equal(bench_pma(&b, WIRE_METHOD_GET, attrs[i]), WIRE_STATUS_BAD_FIELD);
	}
	bench_free(&b);
}

static void what_it_can(void **state)
{
	struct bench b = bench_new(WIRE_NODE_CA, 1);
	struct wire_class_port_info info;

	assert_int_equal(bench_pma(&b, WIRE_METHOD_GET, WIRE_PMA_CLASS_PORT_INFO), 0);
	wire_class_port_info_decode(b.data, WIRE_PMA_DATA_BYTES, &info);
	assert_int_equal(info.class_version, 1);
	assert_true(info.cap_mask & WIRE_PMA_CAP_EXTENDED_COUNTERS);
	assert_true(info.cap_mask & WIRE_PMA_CAP_ALL_PORTS);
	assert_true(info.cap_mask & WIRE_PMA_CAP_XMIT_WAIT);
	bench_free(&b);
}

static void details(void **state)
{
	struct bench b = bench_new(WIRE_NODE_SWITCH, 2);
	struct wire_port_rcv_error_details rcv;
	struct wire_port_xmit_discard_details xmit;
	struct wire_port_rcv_data_sl sl;

	b.node->port[1].count.raw[AG_RCV_LOOPING] = 3;
	b.node->port[1].count.raw[AG_DISCARD_NEIGHBOR_MTU] = 4;
	b.node->port[1].seldom->rcv_sl[7] = 5;
	memset(b.mad, 0, sizeof(b.mad));
	b.mad[WIRE_PMA_DATA_OFFSET + 1] = 1;
	assert_int_equal(bench_pma(&b, WIRE_METHOD_GET, WIRE_PMA_PORT_RCV_ERROR_DETAILS), 0);
	wire_port_rcv_error_details_decode(b.data, WIRE_PMA_DATA_BYTES, &rcv);
	assert_int_equal(rcv.looping_errors, 3);
	assert_int_equal(bench_pma(&b, WIRE_METHOD_GET, WIRE_PMA_PORT_XMIT_DISCARD_DETAILS), 0);
	wire_port_xmit_discard_details_decode(b.data, WIRE_PMA_DATA_BYTES, &xmit);
	assert_int_equal(xmit.neighbor_mtu_discards, 4);
	assert_int_equal(bench_pma(&b, WIRE_METHOD_GET, WIRE_PMA_PORT_RCV_DATA_SL), 0);
	wire_port_rcv_data_sl_decode(b.data, WIRE_PMA_DATA_BYTES, &sl);
	assert_int_equal(sl.data_dwords[7], 5);
	sl = (struct wire_port_rcv_data_sl){.port_select = 1, .counter_select = 1 << 7};
	wire_port_rcv_data_sl_encode(&sl, b.data);
	assert_int_equal(bench_pma(&b, WIRE_METHOD_SET, WIRE_PMA_PORT_RCV_DATA_SL), 0);
	wire_port_rcv_data_sl_decode(b.data, WIRE_PMA_DATA_BYTES, &sl);
	assert_int_equal(sl.data_dwords[7], 0);
	bench_free(&b);
}

static uint8_t sample_status(struct bench *b, struct wire_port_samples_result *result)
{
	assert_int_equal(bench_pma(b, WIRE_METHOD_GET, WIRE_PMA_PORT_SAMPLES_RESULT), 0);
	wire_port_samples_result_decode(b->data, WIRE_PMA_DATA_BYTES, result);
	return result->sample_status;
}

static void sampling(void **state)
{
	struct bench b = bench_new(WIRE_NODE_CA, 1);
	struct wire_port_samples_control control = {
		.port_select = 1, .tag = 0xbeef, .sample_start = 100, .sample_interval = 1000,
		.counter_select = {1, 4},
	};
	struct wire_port_samples_result result;
	uint64_t *raw = b.node->port[1].count.raw;

	wire_port_samples_control_encode(&control, b.mad + WIRE_PMA_DATA_OFFSET);
	assert_int_equal(bench_pma(&b, WIRE_METHOD_SET, WIRE_PMA_PORT_SAMPLES_CONTROL), 0);
	assert_int_equal(sample_status(&b, &result), AG_SAMPLE_WAITS);
	assert_int_equal(ag_expiry(b.node).ns, 100 * AG_TICK_NS);
	raw[AG_XMIT_DATA] = 50; /* before the interval */
	b.now = ag_expiry(b.node);
	assert_int_equal(sample_status(&b, &result), AG_SAMPLE_RUNS);
	raw[AG_XMIT_DATA] = 80;
	raw[AG_RCV_PACKETS] = 2;
	assert_int_equal(ag_expiry(b.node).ns, 1100 * AG_TICK_NS);
	b.now = ag_expiry(b.node);
	ag_expire(b.node, b.now);
	raw[AG_XMIT_DATA] = 999; /* after it */
	assert_int_equal(sample_status(&b, &result), AG_SAMPLE_DONE);
	assert_int_equal(result.tag, 0xbeef);
	assert_int_equal(result.counter[0], 30);
	assert_int_equal(result.counter[1], 2);
	control.counter_select[0] = 99;
	wire_port_samples_control_encode(&control, b.mad + WIRE_PMA_DATA_OFFSET);
	assert_int_equal(bench_pma(&b, WIRE_METHOD_SET, WIRE_PMA_PORT_SAMPLES_CONTROL),
			 WIRE_STATUS_BAD_FIELD);
	bench_free(&b);
}

/* A page that was only read may count as memory of the process. The timer of a node with nothing to
 * do therefore leaves the rarely used state of its ports alone: here it cannot be read at all. */
static void an_idle_node_reads_nothing_that_is_rarely_used(void **state)
{
	static const uint8_t kinds[] = {WIRE_NODE_CA, WIRE_NODE_SWITCH};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct ag_node_config config = {.kind = kinds[i],
						.num_ports = 4,
						.guid = 256,
						.desc = "idle",
						.memory = {.alloc = bench_alloc}};
		size_t bytes = ag_node_seldom_size(&config);
		uint8_t mad[WIRE_MAD_BYTES], port;
		struct ag_node *node;
		void *memory;

		config.seldom = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		assert_true(config.seldom != MAP_FAILED);
		memory = calloc(1, ag_node_size(&config));
		node = ag_node_init(&config, memory);
		assert_int_equal(ag_expiry(node).ns, MONO_NEVER.ns);
		ag_expire(node, (mono_t){1});
		assert_false(ag_trap_take(node, (mono_t){1}, mad, &port));
		free(memory);
		munmap(config.seldom, bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(read_both_widths),
		cmocka_unit_test(write_what_is_selected),
		cmocka_unit_test(saturated_stays_until_written),
		cmocka_unit_test(all_ports),
		cmocka_unit_test(wrong_port_and_method),
		cmocka_unit_test(by_opcode),
		cmocka_unit_test(by_opcode_and_vl),
		cmocka_unit_test(waits_by_vl),
		cmocka_unit_test(at_rest),
		cmocka_unit_test(what_it_can),
		cmocka_unit_test(details),
		cmocka_unit_test(sampling),
		cmocka_unit_test(an_idle_node_reads_nothing_that_is_rarely_used),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
