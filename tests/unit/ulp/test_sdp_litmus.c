/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * softibd's side of the ring of an SDP connection, ulp/sdp/ring.c itself, against a program's, on a
 * processor that orders memory weakly (unit/engine/litmus.h): how a lease begins and ends.
 */
#include "../test.h"

#include "../engine/litmus.h"

#include "../../../src/ulp/sdp/ring.c"

#include <sys/socket.h>

#include "runtime/sim/rt_sim.h"

#define SIDE 1 /* half[1] and ring[1] have nothing but a ring between them */
#define VALUES 8u
#define WRITER 7u /* a thread's ID */

static struct abi_sdp_memory memory;
static struct abi_sdp_half *const half = &memory.half[SIDE];
static struct sdp_channel channel;
static struct sdp_ring *const ring = &channel.ring[SIDE];
static int peer[2]; /* the programs' ends of the connections */
/* --- what a thread has done, which is no memory that the other reads by --- */
static uint32_t written, taken;
static bool over, in_socket;

static int setup(void **state)
{
	int pair[2];

	if (rt_sim_create(1, &channel.rt) || !sdp_fabric_open(channel.rt))
		return -1;
	for (int i = 0; i < 2; i++) {
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
			return -1;
		peer[i] = pair[1];
		channel.end[i] = sdp_conn_create(channel.rt, NULL, pair[0]);
		if (!channel.end[i])
			return -1;
	}
	rt_timer_init(channel.rt, &channel.tick, sdp_channel_tick);
	return 0;
}

static int teardown(void **state)
{
	rt_timer_disarm(&channel.tick);
	for (int i = 0; i < 2; i++) {
		channel.end[i]->channel = NULL;
		close(peer[i]);
	}
	sdp_close_all(channel.rt);
	rt_sim_destroy(channel.rt);
	return 0;
}

static void begin_without_lease(void)
{
	memset(half, 0, sizeof(*half));
	memset(memory.ring[SIDE], 0, VALUES * sizeof(uint32_t));
	*ring = (struct sdp_ring){0};
	channel.memory = &memory;
	sdp_ring_init(ring, &channel, SIDE);
	for (int i = 0; i < 2; i++)
		channel.end[i]->channel = &channel;
	written = taken = 0;
	over = in_socket = false;
}

static void begin_with_lease(void)
{
	begin_without_lease();
	begin(ring);
}

static struct scene scene_of(void (*prepare)(void), void (*a)(void *arg), void (*b)(void *arg))
{
	return (struct scene){half, (size_t)(memory.ring[SIDE] - (uint8_t *)half) + VALUES * sizeof(uint32_t),
			      prepare, a, b};
}

static void put_value(void)
{
	const uint32_t value = written + 1;

	abi_sdp_put(half, memory.ring[SIDE], written * sizeof(value), &value, sizeof(value));
	abi_sdp_wake(&half->reader_sleeps);
	written = value;
}

/* --- a lease ends while a program writes --- */

/* as write_to_ring() of libsdp's stream.c */
static void write_by_lease(void *arg)
{
	while (written < VALUES) {
		const uint32_t lease = atomic_load(&half->lease);

		if (!abi_sdp_is_lease(lease) || !abi_sdp_try_lock(&half->writer, WRITER))
			return;
		if (atomic_load(&half->lease) == lease) {
			put_value();
			if (over)
				litmus_wrong("a program writes to the ring after its lease");
		}
		abi_sdp_unlock(&half->writer);
	}
}

/* as sdp_ring_yields() and sdp_channel_tick(), and then the turns of the connection */
static void end_lease(void *arg)
{
	uint32_t value;

	for (unsigned n = litmus_below(60); n; n--)
		litmus_step();
	sdp_ring_end_lease(ring);
	while (!finish(ring))
		sched_yield();
	over = true;
	while (sdp_ring_take(sender(ring), &value, sizeof(value)))
		if (value != ++taken)
			litmus_wrong("the bytes of the ring are not those that were written");
	if (taken != written)
		litmus_wrong("bytes are left in the ring");
}

static void what_is_written_by_a_lease_is_sent_after_it(void **state)
{
	const struct scene s = scene_of(begin_with_lease, write_by_lease, end_lease);

	holds(&s);
	needs(&s, LITMUS_NO_FENCE);
	needs(&s, LITMUS_NO_ACQUIRE);
}

/* --- a lease ends while a program waits for room --- */

static void begin_with_full_ring(void)
{
	begin_with_lease();
	atomic_init(&half->tail, ABI_SDP_RING_BYTES);
}

static bool is_full(void)
{
	return abi_sdp_used(half) >= ABI_SDP_RING_BYTES &&
	       abi_sdp_is_lease(atomic_load(&half->lease));
}

/* as wait_for_room() there */
static void wait_for_room(void *arg)
{
	while (is_full()) {
		abi_sdp_will_sleep(&half->writer_sleeps);
		if (is_full())
			abi_sdp_sleep(&half->writer_sleeps, 1, ABI_SDP_NAP_MS);
	}
}

static void withdraw_lease(void *arg)
{
	sdp_ring_end_lease(ring);
}

static void who_waits_for_room_is_woken_at_the_end_of_a_lease(void **state)
{
	const struct scene s = scene_of(begin_with_full_ring, wait_for_room, withdraw_lease);

	holds(&s);
	needs(&s, LITMUS_NO_FENCE);
}

/* --- bytes come into the socket of a program that waits --- */

/* as move.c, behind rt_send() */
static void deliver(void *arg)
{
	in_socket = true;
	sdp_ring_delivered(receiver(ring), sizeof(uint32_t));
}

/* as wait_in_turns() there */
static void wait_for_bytes(void *arg)
{
	while (!in_socket) {
		abi_sdp_will_sleep(&half->reader_sleeps);
		if (!in_socket)
			abi_sdp_sleep(&half->reader_sleeps, 1, ABI_SDP_NAP_MS);
	}
}

static void who_waits_for_bytes_is_woken_for_those_of_its_socket(void **state)
{
	const struct scene s = scene_of(begin_without_lease, deliver, wait_for_bytes);

	holds(&s);
	needs(&s, LITMUS_NO_FENCE);
}

/* --- a lease begins while a program goes to wait in the kernel --- */

/* as update(); and as write_to_ring() of the sender's program, which sees the lease */
static void begin_and_write(void *arg)
{
	if (!atomic_load(&half->readers_in_kernel))
		begin(ring);
	if (abi_sdp_is_lease(atomic_load(&half->lease)) && !atomic_load(&half->readers_in_kernel)) {
		put_value();
	} else {
		in_socket = true;
		litmus_ring(); /* the kernel wakes who waits for the socket */
	}
}

/* as wait_in_kernel() there, and then as wait_in_turns() */
static void wait_in_kernel(void *arg)
{
	atomic_fetch_add(&half->readers_in_kernel, 1);
	while (!abi_sdp_is_lease(atomic_load(&half->lease)) && !in_socket)
		litmus_sleep();
	atomic_fetch_sub(&half->readers_in_kernel, 1);
	while (!in_socket && !abi_sdp_used(half))
		sched_yield();
}

static void no_bytes_are_in_the_ring_of_a_reader_in_the_kernel(void **state)
{
	const struct scene s = scene_of(begin_without_lease, begin_and_write, wait_in_kernel);

	holds(&s);
	needs(&s, LITMUS_NO_FENCE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_by_a_lease_is_sent_after_it),
		cmocka_unit_test(who_waits_for_room_is_woken_at_the_end_of_a_lease),
		cmocka_unit_test(who_waits_for_bytes_is_woken_for_those_of_its_socket),
		cmocka_unit_test(no_bytes_are_in_the_ring_of_a_reader_in_the_kernel),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
