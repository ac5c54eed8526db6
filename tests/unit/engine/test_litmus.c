/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Lock-free code on a processor that orders memory weakly (litmus.h): the ring to softibd, a
 * lane, the sleep of their receivers, the engine's biased lock, the section of a window and the
 * page of port attributes.
 * Each case passes with all seeds, and fails with some as soon as an order that the code asks
 * for is left out.
 */
#include "../test.h"

#include "litmus.h"

#include "abi/lane.h"
#define SPINS 2 /* so that threads wait in line, too */
#include "engine/lock.c"
#include "engine/window_fast.h"

/* --- the ring --- */

#define RING_BYTES 64u /* four records of eight bytes: it wraps, and its room is used again */
#define RECORDS 12u

static struct {
	alignas(64) uint8_t bytes[sizeof(struct abi_ring) + RING_BYTES];
} ring_memory;
static struct abi_ring *const ring = (struct abi_ring *)&ring_memory;

static void begin_ring(void)
{
	memset(&ring_memory, 0, sizeof(ring_memory));
	ring->size = RING_BYTES;
}

static void produce(void *arg)
{
	struct abi_ring_tx tx = {.ring = ring, .size = RING_BYTES};

	for (uint32_t n = 1; n <= RECORDS;) {
		void *room = abi_ring_reserve(&tx, 8);
		uint32_t payload[2] = {n, ~n};

		if (!room)
			continue;
		memcpy(room, payload, sizeof(payload));
		abi_ring_commit(&tx, sizeof(payload));
		if (abi_ring_publish(&tx))
			litmus_ring();
		n++;
	}
}

/* Return: false: there was none */
static bool take_record(struct abi_ring_rx *rx, uint32_t n)
{
	uint32_t payload[2];
	const void *bytes;
	size_t len;

	bytes = abi_ring_peek(rx, &len);
	if (!bytes)
		return false;
	memcpy(payload, bytes, sizeof(payload));
	if (payload[0] != n || payload[1] != ~n)
		litmus_wrong("a record before its payload");
	abi_ring_consume(rx);
	return true;
}

static void consume_polling(void *arg)
{
	struct abi_ring_rx rx = {.ring = ring, .size = RING_BYTES};

	for (uint32_t n = 1; n <= RECORDS;)
		n += take_record(&rx, n);
}

static void consume_sleeping(void *arg)
{
	struct abi_ring_rx rx = {.ring = ring, .size = RING_BYTES};

	for (uint32_t n = 1; n <= RECORDS;) {
		if (take_record(&rx, n))
			n++;
		else if (abi_ring_sleep(&rx))
			litmus_sleep();
	}
}

static void a_packet_is_complete(void **state)
{
	static const struct scene s = {&ring_memory, sizeof(ring_memory), begin_ring, produce,
				       consume_polling};

	holds(&s);
	needs(&s, LITMUS_NO_ACQUIRE);
}

static void a_sleeping_reader_of_packets_is_woken(void **state)
{
	static const struct scene s = {&ring_memory, sizeof(ring_memory), begin_ring, produce,
				       consume_sleeping};

	holds(&s);
	needs(&s, LITMUS_NO_FENCE);
}

/* --- a lane --- */

static struct abi_lane lane;

static void begin_lane(void)
{
	memset(lane.cell, 0, RECORDS * sizeof(lane.cell[0]));
	memset(lane.bulk, 0, RECORDS * ABI_BULK_ALIGN);
	atomic_init(&lane.asleep, 0);
	atomic_init(&lane.has_membarrier, 1);
}

/* every other payload is in bulk */
static void send_records(void *arg)
{
	static struct abi_lane_tx tx;

	abi_lane_tx_init(&tx, &lane, true);
	for (uint32_t n = 1; n <= RECORDS; n++) {
		struct abi_record record = {.psn = n, .length_bytes = 4, .packets = 1};
		struct abi_cell *cell = abi_lane_cell(&lane, tx.tail);
		uint8_t *to = cell->data;

		if (n % 2) {
			to = abi_lane_put_bulk(&tx, cell, 4);
			record.flags = ABI_RECORD_BULK;
		}
		memcpy(to, &n, 4);
		abi_lane_publish(&tx, &record);
		if (abi_lane_must_ring(&tx))
			litmus_ring();
	}
}

static bool take_from_lane(struct abi_lane_rx *rx, uint32_t n)
{
	const struct abi_cell *cell;
	uint32_t payload, bulk;
	uint64_t word[3];

	cell = abi_lane_next(rx, word);
	if (!cell)
		return false;
	memcpy(&bulk, cell->data + ABI_CELL_BULK, 4);
	memcpy(&payload, n % 2 ? lane.bulk + bulk % ABI_LANE_BULK : cell->data, 4);
	if (abi_record_psn(word) != n || abi_record_bytes(word) != 4 || payload != n)
		litmus_wrong("a record before its payload");
	rx->head++;
	return true;
}

/* as lanes_arm_sleep() */
static bool sleep_on_lane(struct abi_lane_rx *rx)
{
	atomic_store_explicit(&lane.asleep, 1, memory_order_relaxed);
	litmus_membarrier(NULL);
	if (!abi_lane_waiting(rx))
		return true;
	atomic_store_explicit(&lane.asleep, 0, memory_order_relaxed);
	return false;
}

static void receive_records(void *arg)
{
	struct abi_lane_rx rx = {.memory = &lane};

	for (uint32_t n = 1; n <= RECORDS;) {
		if (take_from_lane(&rx, n))
			n++;
		else if (sleep_on_lane(&rx))
			litmus_sleep();
	}
}

static void poll_records(void *arg)
{
	struct abi_lane_rx rx = {.memory = &lane};

	for (uint32_t n = 1; n <= RECORDS;)
		n += take_from_lane(&rx, n);
}

static void a_record_is_complete(void **state)
{
	static const struct scene s = {&lane, sizeof(lane), begin_lane, send_records, poll_records};

	holds(&s);
	needs(&s, LITMUS_NO_RELEASE);
	needs(&s, LITMUS_NO_ACQUIRE);
}

static void a_sleeping_receiver_of_records_is_woken(void **state)
{
	static const struct scene s = {&lane, sizeof(lane), begin_lane, send_records,
				       receive_records};

	holds(&s);
	needs(&s, LITMUS_NO_FENCE);
}

/* --- the biased lock --- */

#define TURNS 6u

static struct {
	struct eng_lock lock;
	uint32_t inside, sum;
} guarded;

static void begin_lock(void)
{
	memset(&guarded, 0, sizeof(guarded));
	guarded.lock.barrier = litmus_membarrier;
}

/* @number: not 0, of each thread its own */
static void hold_lock(uint32_t number)
{
	uint32_t sum, who;

	memcpy(&guarded.inside, &number, 4);
	memcpy(&sum, &guarded.sum, 4);
	sum++;
	memcpy(&guarded.sum, &sum, 4);
	memcpy(&who, &guarded.inside, 4);
	if (who != number || sum > 2 * TURNS)
		litmus_wrong("two threads have the lock");
}

static void take_turns(uint32_t number)
{
	for (unsigned n = 0; n < TURNS; n++) {
		eng_lock_take(&guarded.lock);
		hold_lock(number);
		eng_lock_give(&guarded.lock);
	}
}

/* the thread that owns the bias: it was given it under the lock, and has left */
static void own_bias(void *arg)
{
	eng_lock_take(&guarded.lock);
	give_bias(&guarded.lock, eng_lock_self());
	eng_lock_give(&guarded.lock);
	take_turns(1);
}

static void take_byte(void *arg)
{
	take_turns(2);
}

/* the same without a bias: the lock is left to the heir, or free */
static void stream(void *arg)
{
	guarded.lock.barrier = NULL;
	take_turns(1);
}

static void threads_in_line_are_never_inside_both(void **state)
{
	static const struct scene s = {&guarded, sizeof(guarded), begin_lock, stream, take_byte};

	holds(&s);
	needs(&s, LITMUS_NO_RELEASE);
	needs(&s, LITMUS_NO_ACQUIRE);
}

static void two_threads_are_never_inside(void **state)
{
	static const struct scene s = {&guarded, sizeof(guarded), begin_lock, own_bias, take_byte};

	holds(&s);
	needs(&s, LITMUS_NO_FENCE);
	needs(&s, LITMUS_NO_RELEASE);
	needs(&s, LITMUS_NO_ACQUIRE);
}

/* --- the section of a window --- */

#define INITIATOR 7u

static struct {
	struct abi_window_page page; /* the initiator's */
	_Atomic uint64_t token, other_token;
	uint32_t word; /* the target's memory */
} windowed;
static struct abi_devpage devpage;
static struct engine engine;
static uint32_t performed; /* WRITEs, the last of which stored this number */
static bool taken_back;

static void begin_window(void)
{
	memset(&windowed, 0, sizeof(windowed));
	engine.cfg.devpage = &devpage;
	performed = 0;
	taken_back = false;
}

static void write_by_window(void *arg)
{
	const struct eng_grant grant = {.peer = INITIATOR,
					.qp_token = &windowed.token,
					.window_token = &windowed.other_token};

	for (unsigned n = 0; n < TURNS && window_enter(&engine, &windowed.page, &grant, false);
	     n++) {
		uint32_t number = performed + 1;

		memcpy(&windowed.word, &number, 4);
		performed = number;
		litmus_step();
		if (taken_back)
			litmus_wrong("an initiator is inside after the target has waited");
		window_leave(&windowed.page);
	}
}

/* as eng_window_revoke() and windows_sections_end() */
static void take_back(void *arg)
{
	uint32_t number;

	for (unsigned n = litmus_below(40); n; n--)
		litmus_step();
	eng_window_add(&windowed.token, 1);
	litmus_membarrier(NULL);
	while (atomic_load_explicit(&windowed.page.section, memory_order_acquire) == INITIATOR)
		sched_yield();
	taken_back = true;
	memcpy(&number, &windowed.word, 4);
	if (number != performed)
		litmus_wrong("a WRITE is lost");
}

static void a_target_waits_for_sections(void **state)
{
	static const struct scene s = {&windowed, sizeof(windowed), begin_window, write_by_window,
				       take_back};

	holds(&s);
	needs(&s, LITMUS_NO_FENCE);
	needs(&s, LITMUS_NO_RELEASE);
	needs(&s, LITMUS_NO_ACQUIRE);
}

/* --- the page of port attributes --- */

#define CHANGES 4u

static union {
	struct abi_devpage page;
	uint8_t bytes[sizeof(struct abi_devpage) + sizeof(struct abi_devport)];
} attributes;

static void begin_attributes(void)
{
	memset(&attributes, 0, sizeof(attributes));
}

static void change_attributes(void *arg)
{
	for (uint32_t n = 1; n <= CHANGES; n++)
		abi_devpage_store(&attributes.page, attributes.page.port, (uint32_t[2]){n, n},
				  2 * sizeof(n));
}

static void read_attributes(void *arg)
{
	uint32_t copy[2] = {0, 0}, last = 0;

	while (copy[0] < CHANGES) {
		if (!abi_devpage_load(&attributes.page, copy, attributes.page.port, sizeof(copy))) {
			sched_yield();
			copy[0] = last;
			continue;
		}
		if (copy[0] != copy[1])
			litmus_wrong("attributes of two times");
		if (copy[0] < last)
			litmus_wrong("attributes that are older than the last");
		last = copy[0];
	}
}

static void attributes_are_of_one_time(void **state)
{
	static const struct scene s = {&attributes, sizeof(attributes), begin_attributes,
				       change_attributes, read_attributes};

	holds(&s);
	needs(&s, LITMUS_NO_RELEASE);
	needs(&s, LITMUS_NO_ACQUIRE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_packet_is_complete),
		cmocka_unit_test(a_sleeping_reader_of_packets_is_woken),
		cmocka_unit_test(a_record_is_complete),
		cmocka_unit_test(a_sleeping_receiver_of_records_is_woken),
		cmocka_unit_test(two_threads_are_never_inside),
		cmocka_unit_test(threads_in_line_are_never_inside_both),
		cmocka_unit_test(a_target_waits_for_sections),
		cmocka_unit_test(attributes_are_of_one_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
