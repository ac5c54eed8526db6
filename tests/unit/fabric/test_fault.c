/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Rules at work on packets: what arrives, in which order, when, and which
 * counter says so. */
#include "net.h"

struct lab {
	struct net net;
	/* --- what reached N1, in order: the first payload byte --- */
	char order[256];
	mono_t when[256];
	int arrived;
	bool full;
};

static int record(void *ctx, const struct fab_packet *in)
{
	struct lab *lab = ctx;
	struct wire_packet pkt;

	if (lab->full)
		return -EAGAIN;
	assert_true(wire_packet_decode(in->bytes, in->len, &pkt) > 0);
	assert_true(lab->arrived < 255);
	lab->when[lab->arrived] = rt_now(lab->net.rt);
	lab->order[lab->arrived++] = (char)pkt.payload[0];
	lab->order[lab->arrived] = 0;
	return net_deliver(&lab->net.sink[N1], in);
}

static struct lab *make(void)
{
	struct lab *lab = calloc(1, sizeof(*lab));
	struct fab_sink sink = {record, NULL, lab};

	net_pair_cable(&lab->net);
	fab_attach(lab->net.fab, N1, 1, &sink);
	net_pair_activate(&lab->net);
	return lab;
}

static void end(struct lab *lab)
{
	net_stop(&lab->net);
	free(lab);
}

static uint32_t add(struct lab *lab, const char *rule)
{
	return net_fault(&lab->net, rule);
}

/* a packet from N0 to N1 that bears @letter. Return: fab_send()'s */
static int send(struct lab *lab, char letter)
{
	struct net_packet np = {.slid = 1, .dlid = 2, .dest_qpn = 0x42, .src_qpn = 0x17, .payload = 100};
	uint8_t payload[100] = {(uint8_t)letter}, buf[300];
	size_t len = net_encode(&np, payload, buf);

	return net_send_bytes(&lab->net, N0, buf, len);
}

static void send_all(struct lab *lab, const char *letters)
{
	for (; *letters; letters++)
		assert_int_equal(send(lab, *letters), 0);
}

static void drop(void **state)
{
	struct lab *lab = make();
	struct net *net = &lab->net;

	add(lab, "link n0:1 drop every=3");
	send_all(lab, "abcdefgh");
	assert_string_equal(lab->order, "abdegh");
	/* it left, and did not come: the counters show where */
	assert_int_equal(net_count(net, N0, 1, AG_XMIT_PACKETS), 8);
	assert_int_equal(net_count(net, S2, 1, AG_RCV_PACKETS), 6);
	assert_int_equal(net_count(net, S2, 2, AG_XMIT_PACKETS), 6);
	assert_int_equal(fab_faults(net->fab)->logged, 2);
	assert_int_equal(fab_fault_clear(net->fab, 1), 0);
	assert_int_equal(fab_fault_clear(net->fab, 1), -ENOENT);
	send_all(lab, "ijk");
	assert_string_equal(lab->order, "abdeghijk");
	end(lab);
}

static void corrupt_is_found_at_the_next_port(void **state)
{
	struct lab *lab = make();
	struct net *net = &lab->net;

	add(lab, "port s2:2 corrupt nth=2");
	send_all(lab, "abc");
	assert_string_equal(lab->order, "ac");
	assert_int_equal(net_count(net, S2, 2, AG_XMIT_PACKETS), 3);
	assert_int_equal(net_count(net, N1, 1, AG_RCV_PACKETS), 2);
	assert_int_equal(net_count(net, N1, 1, AG_RCV_ERRORS), 1);
	assert_int_equal(net_count(net, N1, 1, AG_SYMBOL_ERRORS), 1);
	assert_int_equal(net_count(net, S2, 2, AG_RCV_ERRORS), 0);
	end(lab);
}

static void corrupt_by_a_switch_is_found_at_the_end(void **state)
{
	struct lab *lab = make();
	struct net *net = &lab->net;

	add(lab, "link n0:1 corrupt nth=2 offset=40 mask=0x20 crc=vcrc"); /* payload */
	send_all(lab, "abc");
	assert_string_equal(lab->order, "ac");
	assert_int_equal(net_count(net, S2, 1, AG_RCV_ERRORS), 0);
	assert_int_equal(net_count(net, N1, 1, AG_RCV_PACKETS), 3);
	assert_int_equal(net_count(net, N1, 1, AG_RCV_ERRORS), 1);
	assert_int_equal(net_count(net, N1, 1, AG_SYMBOL_ERRORS), 0);
	/* FECN is not covered by the ICRC: nobody finds it */
	fab_fault_clear(net->fab, 0);
	add(lab, "link n0:1 corrupt nth=1 offset=12 mask=0x80 crc=vcrc");
	send_all(lab, "d");
	assert_string_equal(lab->order, "acd");
	assert_int_equal(net->sink[N1].last[12], 0x80);
	end(lab);
}

static void corrupt_and_mended_is_delivered(void **state)
{
	struct lab *lab = make();
	struct net *net = &lab->net;

	add(lab, "link n0:1 corrupt nth=1 offset=28 mask=0x02 crc=fixed"); /* 'a' to 'c' */
	send_all(lab, "ab");
	assert_string_equal(lab->order, "cb");
	/* a DLID that has no route ends at the switch */
	add(lab, "link n0:1 corrupt nth=1 offset=2 mask=0x40 crc=fixed");
	send_all(lab, "d");
	assert_string_equal(lab->order, "cb");
	assert_int_equal(net_count(net, S2, 1, AG_RCV_SWITCH_RELAY), 1);
	/* a header that makes no sense is no packet */
	add(lab, "link n0:1 corrupt nth=1 offset=5 mask=0x01 crc=fixed");
	send_all(lab, "e");
	assert_string_equal(lab->order, "cb");
	assert_int_equal(net_count(net, S2, 1, AG_RCV_MALFORMED), 1);
	end(lab);
}

static void duplicate(void **state)
{
	struct lab *lab = make();

	add(lab, "link n0:1 duplicate nth=2 copies=2");
	send_all(lab, "abc");
	assert_string_equal(lab->order, "abbbc");
	assert_int_equal(net_count(&lab->net, S2, 1, AG_RCV_PACKETS), 5);
	/* what was multiplied once is not again on the next link */
	add(lab, "link s2:2 duplicate");
	fab_fault_clear(lab->net.fab, 1);
	add(lab, "link n0:1 duplicate");
	send_all(lab, "d");
	assert_string_equal(lab->order, "abbbcdd");
	end(lab);
}

static void reorder(void **state)
{
	struct lab *lab = make();

	add(lab, "link n0:1 reorder 2 nth=2");
	send_all(lab, "abcde");
	assert_string_equal(lab->order, "acdbe");
	end(lab);
}

static void reorder_ends_by_time(void **state)
{
	struct lab *lab = make();
	mono_t start = rt_now(lab->net.rt);

	add(lab, "link n0:1 reorder 5 nth=2 time=3ms");
	send_all(lab, "abc");
	assert_string_equal(lab->order, "ac");
	rt_sim_run_for(lab->net.rt, 10 * NSEC_PER_MSEC);
	assert_string_equal(lab->order, "acb");
	assert_int_equal(lab->when[2].ns - start.ns, 3 * NSEC_PER_MSEC);
	end(lab);
}

static void delay(void **state)
{
	struct lab *lab = make();
	mono_t start = rt_now(lab->net.rt);

	add(lab, "link n0:1 delay 250us");
	add(lab, "link s2:2 delay 1ms");
	send_all(lab, "abc");
	assert_int_equal(lab->arrived, 0);
	assert_int_equal(net_count(&lab->net, N0, 1, AG_XMIT_PACKETS), 3);
	assert_int_equal(net_count(&lab->net, S2, 1, AG_RCV_PACKETS), 0);
	rt_sim_run_for(lab->net.rt, 10 * NSEC_PER_MSEC);
	assert_string_equal(lab->order, "abc");
	for (int i = 0; i < 3; i++)
		assert_int_equal(lab->when[i].ns - start.ns, 1250000);
	end(lab);
}

static void a_link_that_falls_loses_what_is_on_it(void **state)
{
	struct lab *lab = make();

	add(lab, "link n0:1 delay 1ms");
	send_all(lab, "a");
	fab_link_set(lab->net.fab, N0, 1, false);
	rt_sim_run_for(lab->net.rt, 10 * NSEC_PER_MSEC);
	assert_int_equal(lab->arrived, 0);
	assert_int_equal(net_count(&lab->net, S2, 1, AG_RCV_PACKETS), 0);
	end(lab);
}

static void bandwidth(void **state)
{
	struct lab *lab = make();
	mono_t start = rt_now(lab->net.rt);
	int sent = 0;

	add(lab, "link n0:1 bandwidth 128kB/s"); /* 128 bytes each: 1 ms */
	for (int turns = 0; sent < 100 && turns < 100000; turns++) {
		int ret = send(lab, 'x');

		assert_true(ret == 0 || ret == -EAGAIN);
		sent += ret == 0;
		if (ret)
			rt_sim_run_for(lab->net.rt, 100 * NSEC_PER_USEC);
	}
	assert_int_equal(sent, 100);
	rt_sim_run_for(lab->net.rt, 10 * NSEC_PER_MSEC);
	assert_int_equal(lab->arrived, 100);
	assert_int_equal(lab->when[99].ns - start.ns, 100 * NSEC_PER_MSEC);
	assert_int_equal(net_count(&lab->net, N0, 1, AG_XMIT_DISCARDS), 0);
	end(lab);
}

/* a rule has looked at it, so it is not offered again: it waits, and those
 * behind it with their sender; nothing is lost and nothing overtakes */
static void full_destination_under_rules(void **state)
{
	struct lab *lab = make();

	add(lab, "link n0:1 note");
	lab->full = true;
	assert_int_equal(send(lab, 'a'), 0);
	assert_int_equal(send(lab, 'b'), -EAGAIN);
	rt_sim_run_for(lab->net.rt, 10 * NSEC_PER_MSEC);
	assert_int_equal(send(lab, 'b'), -EAGAIN);
	lab->full = false;
	rt_sim_run_for(lab->net.rt, 1 * NSEC_PER_MSEC);
	assert_int_equal(send(lab, 'b'), 0);
	assert_string_equal(lab->order, "ab");
	assert_int_equal(fab_faults(lab->net.fab)->logged, 2); /* looked at once each */
	/* for good: lost after the head-of-queue lifetime, and counted */
	lab->full = true;
	assert_int_equal(send(lab, 'c'), 0);
	rt_sim_run_for(lab->net.rt, 2 * NSEC_PER_SEC);
	assert_int_equal(net_count(&lab->net, N1, 1, AG_XMIT_DISCARDS), 1);
	lab->full = false;
	assert_int_equal(send(lab, 'd'), 0);
	assert_string_equal(lab->order, "abd");
	end(lab);
}

static void rnr_marks_what_is_delivered(void **state)
{
	struct lab *lab = make();
	uint8_t buf[200];
	struct wire_packet p = {
		.lrh = {.lnh = WIRE_LNH_BTH, .dlid = 2, .slid = 1},
		.bth = {.opcode = WIRE_SEND_ONLY, .dest_qpn = 0x42, .pkey = 0xffff},
		.payload_bytes = 4,
	};
	int n = wire_packet_encode(&p, buf);
	struct wire_lrh lrh;

	memset(buf + n, 'r', 4);
	add(lab, "link n0:1 rnr timer=5 nth=1");
	for (int i = 0; i < 2; i++) {
		assert_int_equal(net_send_bytes(&lab->net, N0, buf, (size_t)n + 4), 0);
		wire_lrh_decode(lab->net.sink[N1].last, 8, &lrh);
		assert_int_equal(lrh.rnr_mark, i == 0 ? WIRE_RNR_TIMER | 5 : 0);
	}
	send_all(lab, "u"); /* a datagram is not refused */
	assert_int_equal(flt_find(fab_faults(lab->net.fab), 1)->matched, 2);
	end(lab);
}

static void errors_are_counted(void **state)
{
	struct lab *lab = make();

	add(lab, "link n0:1 errors local-integrity-errors add=3 every=2 dir=out");
	send_all(lab, "abcd");
	assert_string_equal(lab->order, "abcd");
	assert_int_equal(net_count(&lab->net, S2, 1, AG_LOCAL_INTEGRITY), 6);
	end(lab);
}

static void loopback(void **state)
{
	struct lab *lab = make();
	struct net_packet np = {.dlid = 1};

	add(lab, "link n0:1 drop");
	assert_int_equal(net_send(&lab->net, N0, np), 0);
	assert_int_equal(lab->net.sink[N0].packets, 1); /* no link was crossed */
	add(lab, "port n0:1 drop nth=1");
	net_send(&lab->net, N0, np);
	assert_int_equal(lab->net.sink[N0].packets, 1);
	add(lab, "node n0 duplicate nth=1");
	net_send(&lab->net, N0, np);
	assert_int_equal(lab->net.sink[N0].packets, 3);
	assert_int_equal(net_count(&lab->net, N0, 1, AG_XMIT_PACKETS), 0);
	end(lab);
}

static void mads_by_class(void **state)
{
	struct lab *lab = make();

	add(lab, "class sm drop method=get attr=0x11 nth=1");
	net_ask_node_info(&lab->net, N0, 3);
	rt_sim_run(lab->net.rt, 100);
	assert_int_equal(lab->net.sink[N0].packets, 0);
	net_ask_node_info(&lab->net, N0, 3);
	rt_sim_run(lab->net.rt, 100);
	assert_int_equal(lab->net.sink[N0].packets, 1);
	/* the answer, delayed on its link */
	add(lab, "link n0:1 delay 1ms dir=in");
	net_ask_node_info(&lab->net, N0, 3);
	rt_sim_run_for(lab->net.rt, 500 * NSEC_PER_USEC);
	assert_int_equal(lab->net.sink[N0].packets, 1);
	rt_sim_run_for(lab->net.rt, 600 * NSEC_PER_USEC);
	assert_int_equal(lab->net.sink[N0].packets, 2);
	end(lab);
}

static void multicast_copies(void **state)
{
	struct lab *lab = make();
	struct net_packet np = {.dlid = 0xc001, .dest_qpn = 0xffffff};

	net_mft(&lab->net, S2, 0xc001, 1 << 1 | 1 << 2);
	add(lab, "link s2:2 drop nth=1");
	add(lab, "link n0:1 delay 1ms dir=out nth=2");
	net_send(&lab->net, N0, np);
	assert_int_equal(lab->arrived, 0);
	net_send(&lab->net, N0, np);
	assert_int_equal(lab->arrived, 0);
	rt_sim_run_for(lab->net.rt, 2 * NSEC_PER_MSEC);
	assert_int_equal(lab->arrived, 1);
	end(lab);
}

static bool has_way(struct lab *lab)
{
	struct fab_way *way;

	if (fab_way_create(lab->net.fab, N0, 1, 2, 0, 0xffff, &way))
		return false;
	fab_way_free(way);
	return true;
}

static void short_cuts_end_and_come_back(void **state)
{
	struct lab *lab = make();
	uint32_t epoch = fab_epoch(lab->net.fab);

	assert_true(has_way(lab));
	add(lab, "link s2:2 drop count=1");
	assert_int_not_equal(fab_epoch(lab->net.fab), epoch);
	assert_false(has_way(lab));
	epoch = fab_epoch(lab->net.fab);
	send_all(lab, "ab"); /* the rule is spent */
	assert_string_equal(lab->order, "b");
	assert_int_not_equal(fab_epoch(lab->net.fab), epoch);
	assert_true(has_way(lab));
	add(lab, "class sa drop");
	assert_true(has_way(lab));
	add(lab, "all delay 1ms");
	assert_false(has_way(lab));
	epoch = fab_epoch(lab->net.fab);
	fab_fault_clear(lab->net.fab, 0);
	assert_int_not_equal(fab_epoch(lab->net.fab), epoch);
	assert_true(has_way(lab));
	end(lab);
}

static void same_seed_same_losses(void **state)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char first[256] = "", err[256];

	for (int i = 0; i < 2; i++) {
		struct lab *lab = make();

		if (i) { /* a rule beside it, and other ids */
			add(lab, "link n0:1 errors symbol-errors rate=50%");
		}
		assert_true(fab_fault_add(lab->net.fab, "link n0:1 drop rate=30%", 42, err,
					  sizeof(err)) > 0);
		send_all(lab, letters);
		assert_true(lab->arrived < 52 && lab->arrived > 20);
		if (i)
			assert_string_equal(lab->order, first);
		strcpy(first, lab->order);
		end(lab);
	}
}

static void a_routing_loop_ends(void **state)
{
	struct lab *lab = make();

	end(lab);
	lab = calloc(1, sizeof(*lab));
	net_add(&lab->net, TOPO_CA, 1);
	net_add(&lab->net, TOPO_SWITCH, 4);
	net_add(&lab->net, TOPO_SWITCH, 4);
	net_cable(&lab->net, 0, 1, 1, 1);
	net_cable(&lab->net, 1, 2, 2, 1);
	net_cable(&lab->net, 1, 3, 2, 2);
	net_start(&lab->net);
	net_activate(&lab->net);
	net_lft(&lab->net, 1, 9, 2); /* round and round */
	net_lft(&lab->net, 2, 9, 2);
	add(lab, "link s1:2 duplicate copies=3");
	add(lab, "link s1:3 delay 1ms");
	add(lab, "link s1:2 corrupt offset=12 mask=0x80 crc=fixed");
	net_send(&lab->net, 0, (struct net_packet){.dlid = 9});
	rt_sim_run_for(lab->net.rt, NSEC_PER_SEC);
	assert_true(fab_faults(lab->net.fab)->logged < 1000);
	end(lab);
}

static void refused(void **state)
{
	struct lab *lab = make();
	char err[256] = "";

	assert_int_equal(fab_fault_add(lab->net.fab, "link n9:1 drop", 0, err, sizeof(err)), -EINVAL);
	assert_non_null(strstr(err, "no node \"n9\""));
	assert_int_equal(fab_fault_add(lab->net.fab, "link s2:3 drop", 0, err, sizeof(err)), -EINVAL);
	assert_non_null(strstr(err, "no cable"));
	assert_int_equal(fab_fault_add(lab->net.fab, "node n0 remove", 0, err, sizeof(err)),
			 -EOPNOTSUPP);
	assert_int_equal(fab_fault_clear(lab->net.fab, 3), -ENOENT);
	assert_int_equal(fab_fault_clear(lab->net.fab, 0), 0);
	for (int i = 0; i < FLT_RULES_MAX; i++)
		add(lab, "all drop");
	assert_int_equal(fab_fault_add(lab->net.fab, "all drop", 0, err, sizeof(err)), -ENOSPC);
	assert_non_null(strstr(err, "128 rules already"));
	end(lab);
}

static void rules_go_with_their_queue_pair(void **state)
{
	struct lab *lab = make();

	add(lab, "qp n1:0x42 drop");
	add(lab, "qp n1:0x43 drop");
	add(lab, "node n1 duplicate");
	fab_fault_gone(lab->net.fab, N1, 0x42);
	assert_null(flt_find(fab_faults(lab->net.fab), 1));
	assert_non_null(flt_find(fab_faults(lab->net.fab), 2));
	fab_fault_gone(lab->net.fab, N1, 0);
	assert_int_equal(fab_faults(lab->net.fab)->num_rules, 0);
	end(lab);
}

/* who was delayed outlives the rule, and nobody overtakes it: not by softibd,
 * not past it */
static void a_rule_that_goes_leaves_the_order(void **state)
{
	struct lab *lab = make();
	uint32_t rule = add(lab, "link n0:1 delay 1ms");
	struct fab_way *way;

	send(lab, 'a');
	assert_int_equal(fab_fault_clear(lab->net.fab, rule), 0);
	send(lab, 'b');
	assert_int_equal(fab_way_create(lab->net.fab, N0, 1, 2, 0, 0xffff, &way), -ENOENT);
	assert_int_equal(lab->arrived, 0);
	rt_sim_run_for(lab->net.rt, 2 * NSEC_PER_MSEC);
	send(lab, 'c');
	assert_string_equal(lab->order, "abc");
	assert_int_equal(lab->when[1].ns, lab->when[0].ns);
	assert_int_equal(fab_way_create(lab->net.fab, N0, 1, 2, 0, 0xffff, &way), 0);
	fab_way_free(way);
	end(lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(drop),
		cmocka_unit_test(a_rule_that_goes_leaves_the_order),
		cmocka_unit_test(corrupt_is_found_at_the_next_port),
		cmocka_unit_test(corrupt_by_a_switch_is_found_at_the_end),
		cmocka_unit_test(corrupt_and_mended_is_delivered),
		cmocka_unit_test(duplicate),
		cmocka_unit_test(reorder),
		cmocka_unit_test(reorder_ends_by_time),
		cmocka_unit_test(delay),
		cmocka_unit_test(a_link_that_falls_loses_what_is_on_it),
		cmocka_unit_test(bandwidth),
		cmocka_unit_test(full_destination_under_rules),
		cmocka_unit_test(rnr_marks_what_is_delivered),
		cmocka_unit_test(errors_are_counted),
		cmocka_unit_test(loopback),
		cmocka_unit_test(mads_by_class),
		cmocka_unit_test(multicast_copies),
		cmocka_unit_test(short_cuts_end_and_come_back),
		cmocka_unit_test(same_seed_same_losses),
		cmocka_unit_test(a_routing_loop_ends),
		cmocka_unit_test(refused),
		cmocka_unit_test(rules_go_with_their_queue_pair),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
