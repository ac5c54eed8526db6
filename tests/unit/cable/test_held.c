/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Packets of a cable that wait for room: their order, and that they hold up nobody else. */
#include <errno.h>

#include "../test.h"

#include "cable/held.h"
#include "runtime/sim/rt_sim.h"

#define QPNS 600

struct place {
	struct rt *rt;
	struct cable_held held;
	bool full[QPNS];	/* destinations without room, by QPN */
	uint8_t next[QPNS];	/* number that the next packet for this one has to have */
	bool seen[QPNS];	/* it was offered before, and has to be offered @again */
	int delivered, discarded, offers;
	int room; /* of those without room: for so many packets there is */
	size_t bytes;
};

static int offer(void *ctx, struct fab_packet *pkt, bool again)
{
	struct place *place = ctx;
	const uint32_t qpn = pkt->dest_qpn;

	place->offers++;
	assert_int_equal(again, place->seen[qpn]);
	place->seen[qpn] = place->full[qpn] && !place->room;
	if (place->seen[qpn])
		return -EAGAIN;
	place->room -= place->full[qpn];
	assert_int_equal(pkt->bytes[0], place->next[qpn]++);
	return 0;
}

static void done(void *ctx, size_t bytes, bool discarded)
{
	struct place *place = ctx;

	place->bytes += bytes;
	if (discarded)
		place->discarded++;
	else
		place->delivered++;
}

static const struct cable_held_ops ops = {.offer = offer, .done = done};

static struct place *make(void)
{
	struct place *place = calloc(1, sizeof(*place));

	assert_int_equal(rt_sim_create(1, &place->rt), 0);
	cable_held_init(&place->held, place->rt, &ops, place);
	return place;
}

static void end(struct place *place)
{
	cable_held_exit(&place->held);
	rt_sim_destroy(place->rt);
	free(place);
}

/* packet number @n for @qpn arrives */
static void arrive(struct place *place, uint32_t qpn, uint8_t n)
{
	uint8_t bytes[100] = {n};
	struct fab_packet pkt = {.bytes = bytes, .len = sizeof(bytes), .dest_qpn = qpn, .lrh = {.dlid = 7}};

	cable_held_packet(&place->held, &pkt);
	memset(bytes, 0xff, sizeof(bytes));
}

static void with_room_nothing_waits(void **state)
{
	struct place *place = make();

	for (uint8_t i = 0; i < 10; i++)
		arrive(place, 1, i);
	assert_int_equal(place->delivered, 10);
	assert_int_equal(place->bytes, 1000);
	assert_false(rt_timer_armed(&place->held.retry));
	end(place);
}

static void packets_wait_in_order(void **state)
{
	struct place *place = make();

	place->full[1] = true;
	for (uint8_t i = 0; i < 10; i++)
		arrive(place, 1, i);
	assert_int_equal(place->offers, 1); /* the others stay behind the first */
	rt_sim_run_for(place->rt, 100 * NSEC_PER_MSEC);
	assert_int_equal(place->delivered, 0);
	place->full[1] = false;
	rt_sim_run_for(place->rt, 2 * NSEC_PER_MSEC);
	assert_int_equal(place->delivered, 10);
	assert_int_equal(place->bytes, 1000);
	assert_int_equal(place->discarded, 0);
	assert_false(rt_timer_armed(&place->held.retry));
	arrive(place, 1, 10);
	assert_int_equal(place->delivered, 11);
	end(place);
}

/* One that arrives while others wait does not overtake them, even if there is room by now. */
static void nothing_overtakes_what_waits(void **state)
{
	struct place *place = make();

	place->full[1] = true;
	arrive(place, 1, 0);
	place->full[1] = false;
	arrive(place, 1, 1);
	assert_int_equal(place->delivered, 0);
	rt_sim_run_for(place->rt, NSEC_PER_MSEC);
	assert_int_equal(place->delivered, 2);
	end(place);
}

static void others_are_not_held_up(void **state)
{
	struct place *place = make();

	place->full[1] = true;
	arrive(place, 1, 0);
	for (uint8_t i = 0; i < 10; i++)
		arrive(place, 2, i);
	assert_int_equal(place->delivered, 10);
	end(place);
}

static void who_accepts_nothing_loses_what_waits(void **state)
{
	struct place *place = make();

	place->full[1] = true;
	for (uint8_t i = 0; i < 10; i++)
		arrive(place, 1, i);
	rt_sim_run_for(place->rt, 900 * NSEC_PER_MSEC);
	assert_int_equal(place->discarded, 0);
	rt_sim_run_for(place->rt, 200 * NSEC_PER_MSEC);
	assert_int_equal(place->discarded, 10);
	assert_int_equal(place->bytes, 1000); /* whose credits return */
	place->seen[1] = false;
	arrive(place, 1, 10); /* and does not make anybody wait again */
	assert_int_equal(place->discarded, 11);
	place->full[1] = place->seen[1] = false;
	place->next[1] = 11;
	arrive(place, 1, 11); /* until it has room */
	assert_int_equal(place->delivered, 1);
	end(place);
}

/* The lifetime is that of the head: who accepts slowly keeps its packets. */
static void who_accepts_slowly_loses_nothing(void **state)
{
	struct place *place = make();

	place->full[1] = true;
	for (uint8_t i = 0; i < 8; i++)
		arrive(place, 1, i);
	for (int i = 1; i <= 8; i++) {
		rt_sim_run_for(place->rt, 600 * NSEC_PER_MSEC);
		place->room = 1;
		rt_sim_run_for(place->rt, 2 * NSEC_PER_MSEC);
		assert_int_equal(place->delivered, i);
	}
	assert_int_equal(place->discarded, 0);
	end(place);
}

static void destinations_are_bounded(void **state)
{
	struct place *place = make();

	for (uint32_t qpn = 0; qpn < QPNS; qpn++) {
		place->full[qpn] = true;
		arrive(place, qpn, 0);
	}
	assert_int_equal(place->discarded, QPNS - 256);
	end(place);
}

static void without_memory_packets_are_dropped(void **state)
{
	struct place *place = make();

	place->full[1] = true;
	for (int nth = 1; nth <= 2; nth++) {
		place->seen[1] = false;
		rt_fail_alloc((uint64_t)nth);
		arrive(place, 1, 0);
		rt_fail_alloc(0);
		assert_int_equal(place->discarded, nth);
	}
	end(place);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(with_room_nothing_waits),
		cmocka_unit_test(packets_wait_in_order),
		cmocka_unit_test(nothing_overtakes_what_waits),
		cmocka_unit_test(others_are_not_held_up),
		cmocka_unit_test(who_accepts_nothing_loses_what_waits),
		cmocka_unit_test(who_accepts_slowly_loses_nothing),
		cmocka_unit_test(destinations_are_bounded),
		cmocka_unit_test(without_memory_packets_are_dropped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
