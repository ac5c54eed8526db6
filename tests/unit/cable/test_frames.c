/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The protocol of a cable of Ethernet: frames with their lengths in front, as QEMU sends them. */
#include <errno.h>

#include "../test.h"

#include "base/bytes.h"
#include "heard.h"
#include "fabric/ethernet.h"
#include "runtime/sim/rt_sim.h"

#define FRAME 60

struct side {
	struct heard heard;
	struct rt *rt;
	struct topology topo;
	struct topo_node node;
	struct topo_port port[2];
	struct fab_frames frames;
	struct cable_session session;
	uint8_t bytes[FRAME + 100];
	struct fab_packet pkt; /* the last one that arrived */
};

static void packet(void *ctx, struct fab_packet *pkt)
{
	struct side *side = ctx;

	side->heard.packets++;
	side->pkt = *pkt;
	side->pkt.bytes = memcpy(side->bytes, pkt->bytes, MIN(pkt->len, sizeof(side->bytes)));
}

static const struct cable_ops ops = {.opened = heard_opened, .far_link = heard_far_link, .packet = packet};

/* a fabric of one switch, at whose port the cable is */
static struct side *begin(void)
{
	struct side *side = calloc(1, sizeof(*side));
	struct cable_config config = {.ops = &ops, .ctx = side, .frames = &side->frames};
	struct topo_plan plan;

	side->topo = (struct topology){.node = &side->node, .num_nodes = 1};
	side->node = (struct topo_node){.kind = TOPO_SWITCH, .num_ports = 1, .port = side->port, .next = -1, .guid = 1};
	for (int p = 0; p < 2; p++)
		side->port[p] = (struct topo_port){.peer_node = -1, .ethernet = true};
	assert_int_equal(rt_sim_create(1, &side->rt), 0);
	topo_plan_init(&plan);
	assert_int_equal(fab_create(side->rt, &side->topo, &side->frames.fab), 0);
	assert_int_equal(fab_ethernet_start(side->frames.fab, &plan, NULL), 0);
	side->frames.port = 1;
	assert_int_equal(cable_session_init(&side->session, &config), 0);
	return side;
}

static void end(struct side *side)
{
	cable_session_exit(&side->session);
	fab_destroy(side->frames.fab);
	rt_sim_destroy(side->rt);
	free(side);
}

static size_t put(uint8_t *at, size_t len)
{
	memset(at, 0, 4 + len);
	put_be32(at, (uint32_t)len);
	memset(at + 4, 0xff, 6);
	at[4 + 6] = 0x52;
	return 4 + len;
}

static void it_is_open_at_once(void **state)
{
	const struct fab_outlet_link own = {.plugged = false, .phys_request = WIRE_PHYS_SLEEP, .width_enabled = 2, .speed_enabled = 4};
	struct side *side = begin();
	size_t len;

	cable_session_link(&side->session, &own);
	assert_int_equal(side->heard.links, 0);
	cable_session_start(&side->session);
	assert_int_equal(side->heard.opened, 1);
	for (int i = 0; i < 2; i++)
		cable_session_link(&side->session, &own);
	assert_int_equal(side->heard.links, 1);
	assert_true(side->heard.link.plugged && side->heard.link.phys_request == WIRE_PHYS_POLLING);
	assert_int_equal(side->heard.link.speed_enabled, 4);
	cable_session_output(&side->session, &len);
	assert_int_equal(len, 0); /* nothing is said before the first frame */
	end(side);
}

static void frames_arrive_in_any_portions(void **state)
{
	struct side *side = begin();
	uint8_t bytes[3 * (4 + FRAME)];
	size_t n = put(bytes, FRAME), at = 0, have = 0;

	n += put(bytes + n, 14);
	n += put(bytes + n, FRAME);
	cable_session_start(&side->session);
	while (at < n) {
		have++;
		at += (size_t)cable_session_input(&side->session, bytes + at, have - at);
	}
	assert_int_equal(have, n);
	assert_int_equal(side->heard.packets, 3);
	assert_int_equal(side->frames.received, 3);
	end(side);
}

static void what_is_too_long_for_qemu_is_none(void **state)
{
	static uint8_t bytes[4 + 69632];
	struct side *side = begin();

	cable_session_start(&side->session);
	assert_int_equal(cable_session_input(&side->session, bytes, put(bytes, 69632)), 4 + 69632);
	assert_int_equal(side->frames.wrong_length, 1);
	put_be32(bytes, 69633);
	assert_int_equal(cable_session_input(&side->session, bytes, 4), -EPROTO);
	assert_non_null(side->session.error);
	end(side);
}

static void frames_leave_behind_their_length(void **state)
{
	struct side *side = begin();
	struct fab_packet none;
	uint8_t bytes[4 + FRAME];
	const uint8_t *out;
	size_t len, sent = 0;

	cable_session_start(&side->session);
	cable_session_input(&side->session, bytes, put(bytes, FRAME));
	none = side->pkt;
	none.dest_qpn = 5;
	assert_int_equal(cable_session_send(&side->session, &none), 0); /* no packet of Ethernet */
	assert_int_equal(cable_session_send(&side->session, &side->pkt), 0);
	out = cable_session_output(&side->session, &len);
	assert_int_equal(len, sizeof(bytes));
	assert_memory_equal(out, bytes, sizeof(bytes));
	while (cable_session_send(&side->session, &side->pkt) == 0)
		assert_true(++sent < 100000);
	assert_int_equal(side->session.waits, 1);
	cable_session_output(&side->session, &len);
	cable_session_written(&side->session, len);
	assert_int_equal(cable_session_send(&side->session, &side->pkt), 0);
	end(side);
}

static void a_full_side_does_not_read(void **state)
{
	struct side *side = begin();
	uint8_t bytes[4 + 1000];
	size_t n = put(bytes, 1000);

	cable_session_start(&side->session);
	while (!cable_session_is_full(&side->session)) {
		assert_int_equal(cable_session_input(&side->session, bytes, n), n);
		assert_true(side->heard.packets <= (int)(CABLE_WINDOW / 1000 + 1));
	}
	assert_true(side->heard.packets > (int)(CABLE_WINDOW / 1100));
	cable_session_consumed(&side->session, side->pkt.len);
	assert_false(cable_session_is_full(&side->session));
	end(side);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_open_at_once),
		cmocka_unit_test(frames_arrive_in_any_portions),
		cmocka_unit_test(what_is_too_long_for_qemu_is_none),
		cmocka_unit_test(frames_leave_behind_their_length),
		cmocka_unit_test(a_full_side_does_not_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
