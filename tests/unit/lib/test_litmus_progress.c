/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How the progress thread of libibverbs goes to sleep, on a processor that orders memory weakly
 * (unit/engine/litmus.h): against the sender of a lane, against softibd, which sends packets, and against
 * a thread of the program, which arms CQs. The thread runs lanes.c and link.c themselves.
 */
#include "../test.h"

#include "../engine/litmus.h"

#define holds flow_holds
#include "../../../lib/libibverbs/lanes.c"
#include "../../../lib/libibverbs/link.c"
#undef holds

#define RECORDS 24u
#define RING_BYTES 64u /* four records of eight bytes: its room is used again */

static struct soft_link link_of_thread;
static struct lane_in in;
static struct abi_lane lane;
static union {
	struct abi_ring ring;
	uint8_t bytes[sizeof(struct abi_ring) + RING_BYTES];
} from_softibd;

/* lanes_ask.c's: it would need a softibd to ask */
void lanes_exit(struct lanes *lanes)
{
}

static void begin_link(void)
{
	memset(&from_softibd, 0, sizeof(from_softibd));
	from_softibd.ring.size = RING_BYTES;
	link_of_thread = (struct soft_link){.rx = {.ring = &from_softibd.ring, .size = RING_BYTES}};
	INIT_LIST_HEAD(&link_of_thread.lanes.in);
	INIT_LIST_HEAD(&link_of_thread.lanes.out);
}

/* as sleep_armed(), by progress_arm_sleep() and progress_disarm_sleep() */
static void sleep_for_doorbells(void)
{
	if (!link_arm_sleep(&link_of_thread))
		return;
	litmus_sleep();
	link_disarm_sleep(&link_of_thread);
}

/* --- a lane --- */

static void begin_lane(bool has_membarrier)
{
	begin_link();
	memset(lane.cell, 0, RECORDS * sizeof(lane.cell[0]));
	atomic_init(&lane.head, 0);
	atomic_init(&lane.asleep, 0);
	in = (struct lane_in){.eng.rx.memory = &lane};
	list_add_tail(&in.node, &link_of_thread.lanes.in);
	link_of_thread.lanes.has_membarrier = has_membarrier;
	lanes_announce_fence(&link_of_thread.lanes, &in);
}

static void begin_with_membarrier(void)
{
	begin_lane(true);
}

/* The thread has slept so often that it lets the sender fence before the run is over. */
static void begin_with_many_sleeps(void)
{
	begin_lane(true);
	link_of_thread.lanes.sleeps = SLEEPS_OFTEN - 2;
}

static void begin_without_membarrier(void)
{
	begin_lane(false);
}

static void send_records(void *arg)
{
	static struct abi_lane_tx tx;

	abi_lane_tx_init(&tx, &lane, link_of_thread.lanes.has_membarrier);
	for (uint32_t n = 1; n <= RECORDS; n++) {
		struct abi_record record = {.psn = n, .packets = 1};

		abi_lane_publish(&tx, &record);
		if (abi_lane_must_ring(&tx))
			litmus_ring();
	}
}

static void receive_records(void *arg)
{
	uint64_t word[3];

	for (uint32_t n = 1; n <= RECORDS;) {
		if (!abi_lane_next(&in.eng.rx, word)) {
			sleep_for_doorbells();
			continue;
		}
		if (abi_record_psn(word) != n)
			litmus_wrong("a record is lost");
		abi_lane_consumed(&in.eng.rx, 1, true);
		n++;
	}
}

static void a_thread_that_sleeps_is_rung_for_a_record(void **state)
{
	static struct scene s = {&lane, sizeof(lane), NULL, send_records, receive_records};
	static void (*const begin[])(void) = {begin_with_membarrier, begin_with_many_sleeps,
					      begin_without_membarrier};

	for (size_t i = 0; i < ARRAY_SIZE(begin); i++) {
		s.begin = begin[i];
		holds(&s);
		needs(&s, LITMUS_NO_FENCE);
	}
}

/* --- packets from softibd --- */

static void send_packets(void *arg)
{
	struct abi_ring_tx tx = {.ring = &from_softibd.ring, .size = RING_BYTES};

	for (uint32_t n = 1; n <= RECORDS;) {
		void *room = abi_ring_reserve(&tx, sizeof(n));

		if (!room)
			continue;
		memcpy(room, &n, sizeof(n));
		abi_ring_commit(&tx, sizeof(n));
		if (abi_ring_publish(&tx))
			litmus_ring();
		n++;
	}
}

static void receive_packets(void *arg)
{
	for (uint32_t n = 1, number; n <= RECORDS;) {
		unsigned port_num;
		size_t len;
		const void *packet = receive(&link_of_thread, &len, &port_num);

		if (!packet) {
			sleep_for_doorbells();
			continue;
		}
		memcpy(&number, packet, sizeof(number));
		if (number != n)
			litmus_wrong("a packet before its bytes");
		release(&link_of_thread);
		n++;
	}
}

static void a_thread_that_sleeps_is_rung_for_a_packet(void **state)
{
	static const struct scene s = {&from_softibd, sizeof(from_softibd), begin_link, send_packets,
				       receive_packets};

	holds(&s);
	needs(&s, LITMUS_NO_FENCE);
}

/* --- arming a CQ --- */

#define ARMS 6u

static struct {
	struct arm_count count;
	_Atomic bool armed; /* the CQ */
} armed;

static void begin_arms(void)
{
	memset(&armed, 0, sizeof(armed));
}

/* as progress_armed() and progress_disarmed() */
static void arm_and_disarm(void *arg)
{
	for (unsigned n = 0; n < ARMS; n++) {
		if (arm_count_add(&armed.count, &armed.armed))
			litmus_ring();
		arm_count_remove(&armed.count, &armed.armed);
	}
}

/* as report() beside a program that polls */
static void sleep_beside_poller(void *arg)
{
	uint32_t now, seen = 0;

	while (seen < ARMS) {
		if (!arm_count_set_kicks(&armed.count, true, seen))
			litmus_sleep();
		arm_count_set_kicks(&armed.count, false, seen);
		seen = arm_count_read(&armed.count, &now);
		if (now > 1)
			litmus_wrong("more CQs are armed than there are");
	}
}

static void a_thread_beside_a_poller_hears_that_a_cq_is_armed(void **state)
{
	static const struct scene s = {&armed, sizeof(armed), begin_arms, arm_and_disarm,
				       sleep_beside_poller};

	holds(&s);
	needs(&s, LITMUS_NO_FENCE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thread_that_sleeps_is_rung_for_a_record),
		cmocka_unit_test(a_thread_that_sleeps_is_rung_for_a_packet),
		cmocka_unit_test(a_thread_beside_a_poller_hears_that_a_cq_is_armed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
