/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Lock-free code of the libraries on a processor that orders memory weakly (unit/engine/litmus.h):
 * a completion channel's driver and the events that come for it, the table of libsdp's shared
 * memories, and the ring of a flow of SDP.
 */
#include "../test.h"

#include "../engine/litmus.h"

#include "../../../lib/libibverbs/channel_driver.h"

#include <sys/mman.h>
#define munmap(at, bytes) ((void)(at))
#define free(m) note_freed(m)
static void note_freed(void *m);
#include "../../../lib/libsdp/memory.c"
#undef free
#undef munmap

/* --- a completion channel --- */

#define EVENTS 3u

static struct channel_state channel;

static void begin_channel(void)
{
	memset(&channel, 0, sizeof(channel));
}

/* as channel_cq_event() and channel_notify() */
static void raise_events(void *arg)
{
	for (unsigned n = 0; n < EVENTS; n++) {
		channel_state_add(&channel);
		if (!channel_state_driver_looks(&channel) && channel_state_sleeper_waits(&channel))
			litmus_ring();
	}
}

/* as drive() and sleep_as_driver() */
static void wait_for_events(void *arg)
{
	channel_state_awake(&channel);
	for (unsigned n = 0; n < EVENTS;) {
		if (channel_state_has_event(&channel)) {
			channel_state_take(&channel, 1);
			n++;
			continue;
		}
		if (channel_state_sleeps(&channel))
			litmus_sleep();
		channel_state_awake(&channel);
	}
}

static void a_driver_that_sleeps_is_woken(void **state)
{
	static const struct scene s = {&channel, sizeof(channel), begin_channel, raise_events,
				       wait_for_events};

	holds(&s);
	needs(&s, LITMUS_NO_FENCE);
}

static bool told;
static unsigned ended;

static void begin_leaving(void)
{
	begin_channel();
	channel_state_awake(&channel);
	told = false;
	ended = 0;
}

/* @tells: this side makes the descriptor show the event. The side that ends last judges */
static void end_of_side(bool tells)
{
	told |= tells;
	if (++ended == 2 && !told)
		litmus_wrong("the descriptor does not show an event");
}

static void event_comes(void *arg)
{
	channel_state_add(&channel);
	end_of_side(!channel_state_driver_looks(&channel));
}

static void driver_leaves(void *arg)
{
	end_of_side(!channel_state_leaves(&channel));
}

static void an_event_is_shown_after_the_driver(void **state)
{
	static const struct scene s = {&channel, sizeof(channel), begin_leaving, event_comes,
				       driver_leaves};

	holds(&s);
	needs(&s, LITMUS_NO_FENCE);
}

/* --- libsdp's table of shared memories --- */

#define FD 3
#define USES 6u

struct sdp_libc sdp_libc;

static struct sdp_memory connection;
static bool freed;

static void note_freed(void *m)
{
	freed = true;
}

static void begin_table(void)
{
	memset(&table[FD], 0, sizeof(table[FD]));
	connection.next_kept = NULL;
	table[FD].memory = &connection;
	kept = NULL;
	freed = false;
}

static void use_memory(void *arg)
{
	for (unsigned n = 0; n < USES; n++) {
		struct sdp_memory *m = sdp_memory_enter(FD);

		if (!m)
			return;
		for (unsigned step = 0; step < 4; step++) {
			litmus_step();
			if (freed)
				litmus_wrong("memory is freed that a thread uses");
		}
		sdp_memory_leave(FD);
	}
}

static void forget_memory(void *arg)
{
	for (unsigned n = litmus_below(30); n; n--)
		litmus_step();
	sdp_memory_forget(FD);
	if (!freed && !kept)
		litmus_wrong("memory is lost");
}

static void memory_in_use_is_not_freed(void **state)
{
	static const struct scene s = {&table[FD], sizeof(table[FD]), begin_table, use_memory,
				       forget_memory};

	holds(&s);
	needs(&s, LITMUS_NO_FENCE);
}

/* --- the ring of a flow of SDP --- */

#define VALUES 6u

static struct abi_sdp_memory ring_memory;
static struct abi_sdp_half *const half = &ring_memory.half[1]; /* the one that stands before the rings */
static uint8_t *const ring = ring_memory.ring[0];

static void begin_ring(void)
{
	memset(&ring_memory, 0, sizeof(ring_memory));
}

/* as put() of libsdp's stream.c */
static void write_values(void *arg)
{
	for (uint32_t n = 0; n < VALUES; n++) {
		const uint32_t value = n + 1;

		abi_sdp_put(half, ring, n * sizeof(value), &value, sizeof(value));
		abi_sdp_wake(&half->reader_sleeps);
	}
}

/* as get() and wait_in_turns() there */
static void read_values(void *arg)
{
	uint64_t head = 0;
	uint32_t value;

	while (head < VALUES * sizeof(value)) {
		if (!abi_sdp_used(half)) {
			abi_sdp_will_sleep(&half->reader_sleeps);
			if (!abi_sdp_used(half))
				abi_sdp_sleep(&half->reader_sleeps, 1, ABI_SDP_NAP_MS);
			continue;
		}
		abi_sdp_get(ring, head, &value, sizeof(value));
		head += sizeof(value);
		if (value != head / sizeof(value))
			litmus_wrong("the bytes of a flow are not those that were written");
		atomic_store_explicit(&half->head, head, memory_order_release);
	}
}

static void a_reader_of_a_flow_is_woken_and_reads_what_was_written(void **state)
{
	static struct scene s = {&ring_memory.half[1], 0, begin_ring, write_values, read_values};

	s.bytes = (size_t)(ring - (uint8_t *)half) + VALUES * sizeof(uint32_t);
	holds(&s);
	needs(&s, LITMUS_NO_RELEASE);
	needs(&s, LITMUS_NO_ACQUIRE);
	needs(&s, LITMUS_NO_FENCE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_driver_that_sleeps_is_woken),
		cmocka_unit_test(an_event_is_shown_after_the_driver),
		cmocka_unit_test(memory_in_use_is_not_freed),
		cmocka_unit_test(a_reader_of_a_flow_is_woken_and_reads_what_was_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
