/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Lanes between two fake ends in one process: the order of packets when a
 * flow changes ways, counts, sleepers and their doorbell, a receiver without
 * room, a sender that forges or writes nonsense. The clock is the test's.
 */
#include "../test.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include "base/bytes.h"
#include "../../../lib/libibverbs/lanes.h"

#define SLID 7
#define DLID 9
#define QPN 0x123
#define PACKET_BYTES 64

struct ends {
	struct abi_devpage *page;
	struct abi_ring *to_softibd;
	struct abi_ring_tx softibd_tx;
	struct abi_ring_rx softibd_rx; /* softibd's own view */
	struct abi_lane *memory;
	struct lanes sender, receiver;
	struct lane_out out;
	struct lane_in in;
	unsigned wakes;
	uint32_t sent; /* each packet bears its number */
};

static mono_t clock_now;

static mono_t now(void *ctx)
{
	return clock_now;
}

static void woken(void *ctx)
{
	((struct ends *)ctx)->wakes++;
}

static struct abi_ring *make_ring(void)
{
	struct abi_ring *ring = aligned_alloc(64, abi_ring_bytes(ABI_LANE_RING_BYTES));

	assert_non_null(ring);
	memset(ring, 0, abi_ring_bytes(ABI_LANE_RING_BYTES));
	abi_ring_init(ring, ABI_LANE_RING_BYTES);
	return ring;
}

static int setup(void **state)
{
	struct ends *e = calloc(1, sizeof(*e));

	e->page = calloc(1, abi_devpage_bytes(1));
	e->page->route_epoch = 5;
	e->to_softibd = make_ring();
	e->softibd_tx = (struct abi_ring_tx){.ring = e->to_softibd, .size = ABI_LANE_RING_BYTES};
	e->softibd_rx = (struct abi_ring_rx){.ring = e->to_softibd, .size = ABI_LANE_RING_BYTES};
	e->memory = aligned_alloc(64, abi_lane_bytes());
	memset(e->memory, 0, abi_lane_bytes());
	abi_ring_init(&e->memory->ring, ABI_LANE_RING_BYTES);
	unsetenv("SOFTIB_LANES");
	lanes_init(&e->sender, e->page, &e->softibd_tx, now, woken, e);
	lanes_init(&e->receiver, e->page, NULL, now, woken, e);
	e->out = (struct lane_out){.id = 1, .memory = e->memory,
				   .tx = {.ring = &e->memory->ring, .size = ABI_LANE_RING_BYTES},
				   .doorbell_fd = eventfd(0, EFD_NONBLOCK)};
	list_add_tail(&e->out.node, &e->sender.out);
	e->in = (struct lane_in){.id = 1, .memory = e->memory, .slid = SLID, .slid_mask = 0xffff,
				 .rx = {.ring = &e->memory->ring, .size = ABI_LANE_RING_BYTES}};
	list_add_tail(&e->in.node, &e->receiver.in);
	*state = e;
	return 0;
}

static int teardown(void **state)
{
	struct ends *e = *state;

	close(e->out.doorbell_fd);
	free(e->memory);
	free(e->to_softibd);
	free(e->page);
	free(e);
	return 0;
}

/* --- the sender --- */

static const struct wire_packet packet = {
	.lrh = {.slid = SLID, .dlid = DLID},
	.bth = {.dest_qpn = QPN, .pkey = 0xffff},
	.payload_bytes = 32,
};

static void fill(struct ends *e, uint8_t *room, uint16_t slid)
{
	memset(room, 0, PACKET_BYTES);
	put_be16(room + 6, slid);
	put_be32(room + 8, e->sent++);
}

/* Return: the way the packet took, or would not; LANES_WAIT also without room */
static enum lanes_way send_one(struct ends *e)
{
	struct flow *f;
	enum lanes_way way = lanes_choose(&e->sender, &packet, 1, &f);
	void *room;

	if (way == LANES_BY_SOFTIBD) {
		fill(e, abi_ring_reserve(&e->softibd_tx, PACKET_BYTES), SLID);
		abi_ring_commit(&e->softibd_tx, PACKET_BYTES);
	} else if (way == LANES_BY_LANE) {
		room = lanes_reserve(&e->sender, f, PACKET_BYTES);
		if (!room)
			return lanes_stuck(&e->sender, f) ? LANES_LOST : LANES_WAIT;
		fill(e, room, SLID);
		lanes_commit(&e->sender, f, PACKET_BYTES);
	}
	lanes_flush(&e->sender);
	abi_ring_publish(&e->softibd_tx);
	return way;
}

/* softibd answers the question that the sender asked */
static void answer(struct ends *e)
{
	struct abi_resolve_resp resp = {.lane = 1, .flow = 3, .epoch = e->page->route_epoch,
					.mtu_bytes = 2048};

	assert_int_equal(e->sender.num_questions, 1);
	e->sender.num_questions = 0;
	lanes_known(&e->sender, &e->sender.question[0], &resp, &e->out);
}

static unsigned softibd_reads(struct ends *e, unsigned most)
{
	unsigned n = 0;
	size_t len;

	while (n < most && abi_ring_peek(&e->softibd_rx, &len)) {
		abi_ring_skip(&e->softibd_rx);
		n++;
	}
	abi_ring_release(&e->softibd_rx);
	return n;
}

/* --- the receiver: a round. Return: how many came, in order from @first --- */

static unsigned receive_all(struct ends *e, uint32_t first)
{
	const uint8_t *bytes;
	unsigned n = 0;
	size_t len;

	lanes_look(&e->receiver);
	while ((bytes = lanes_receive(&e->receiver, &len))) {
		assert_int_equal(len, PACKET_BYTES);
		assert_int_equal(get_be32(bytes + 8), first + n);
		lanes_release(&e->receiver);
		n++;
	}
	return n;
}

static void by_lane(struct ends *e)
{
	assert_int_equal(send_one(e), LANES_BY_SOFTIBD);
	answer(e);
	softibd_reads(e, 1);
	assert_int_equal(send_one(e), LANES_BY_LANE);
	assert_int_equal(receive_all(e, 1), 1);
}

/* --- tests --- */

static void the_first_packet_asks_and_goes_by_softibd(void **state)
{
	struct ends *e = *state;

	assert_int_equal(send_one(e), LANES_BY_SOFTIBD);
	assert_int_equal(e->wakes, 1);
	assert_int_equal(e->sender.question[0].dlid, DLID);
	assert_int_equal(e->sender.question[0].dest_qpn, QPN);
	assert_int_equal(send_one(e), LANES_BY_SOFTIBD);
	assert_int_equal(e->wakes, 1); /* one question is enough */
}

static void a_flow_enters_when_softibd_has_read_all(void **state)
{
	struct ends *e = *state;

	send_one(e);
	answer(e);
	assert_int_equal(send_one(e), LANES_BY_SOFTIBD);
	softibd_reads(e, 1);
	assert_int_equal(send_one(e), LANES_BY_SOFTIBD); /* one of its own is unread */
	softibd_reads(e, 2);
	assert_int_equal(send_one(e), LANES_BY_LANE);
	assert_int_equal(receive_all(e, 3), 1);
}

/* Others keep the ring to softibd filled: the flow must get in all the same. */
static void a_busy_ring_to_softibd_starves_nobody(void **state)
{
	struct ends *e = *state;
	enum lanes_way way;
	unsigned waits = 0;

	send_one(e);
	answer(e);
	while ((way = send_one(e)) == LANES_BY_SOFTIBD)
		assert_true(e->sent < 1000);
	assert_int_equal(way, LANES_WAIT);
	for (; way == LANES_WAIT; waits++) {
		assert_true(waits < 1000);
		abi_ring_reserve(&e->softibd_tx, PACKET_BYTES); /* another's packet */
		abi_ring_commit(&e->softibd_tx, PACKET_BYTES);
		abi_ring_publish(&e->softibd_tx);
		assert_int_equal(softibd_reads(e, 1), 1);
		way = send_one(e);
	}
	assert_int_equal(way, LANES_BY_LANE);
	assert_true(softibd_reads(e, 10000) > 0); /* never was it empty */
}

static void a_new_epoch_sends_it_back_in_order(void **state)
{
	struct ends *e = *state;

	by_lane(e);
	assert_int_equal(send_one(e), LANES_BY_LANE); /* unread */
	e->page->route_epoch++;
	assert_int_equal(send_one(e), LANES_WAIT);
	assert_int_equal(receive_all(e, 2), 1);
	assert_int_equal(send_one(e), LANES_BY_SOFTIBD);
	assert_int_equal(e->sender.num_questions, 1); /* and asks for the new way */
	answer(e);
	softibd_reads(e, 1);
	assert_int_equal(send_one(e), LANES_BY_LANE);
}

/* The answer to a question may be old before it is used. */
static void an_old_answer_is_not_used(void **state)
{
	struct ends *e = *state;

	send_one(e);
	softibd_reads(e, 1);
	answer(e);
	e->page->route_epoch++;
	assert_int_equal(send_one(e), LANES_BY_SOFTIBD);
}

static void a_payload_beyond_the_way_goes_to_softibd(void **state)
{
	struct ends *e = *state;
	struct wire_packet large = packet;
	struct flow *f;

	by_lane(e);
	large.payload_bytes = 4096;
	assert_int_equal(lanes_choose(&e->sender, &large, 1, &f), LANES_BY_SOFTIBD);
}

static void multicast_and_management_take_no_lane(void **state)
{
	struct ends *e = *state;
	struct wire_packet pkt = packet;
	struct flow *f;

	pkt.lrh.dlid = 0xc001;
	assert_int_equal(lanes_choose(&e->sender, &pkt, 1, &f), LANES_BY_SOFTIBD);
	pkt = packet;
	pkt.bth.dest_qpn = 1;
	assert_int_equal(lanes_choose(&e->sender, &pkt, 1, &f), LANES_BY_SOFTIBD);
	assert_int_equal(e->sender.num_questions, 0);
}

static void a_receiver_without_room_costs_its_packets_only_after_a_while(void **state)
{
	struct ends *e = *state;
	uint32_t lost_at;

	by_lane(e);
	while (send_one(e) == LANES_BY_LANE)
		assert_true(e->sent < ABI_LANE_RING_BYTES / PACKET_BYTES);
	assert_int_equal(send_one(e), LANES_WAIT);
	clock_now.ns += NSEC_PER_SEC - 1;
	assert_int_equal(send_one(e), LANES_WAIT);
	clock_now.ns++;
	assert_int_equal(send_one(e), LANES_LOST);
	assert_int_equal(send_one(e), LANES_WAIT); /* the next has its own second */
	lost_at = e->sent;
	assert_int_equal(receive_all(e, 2), lost_at - 2);
	assert_int_equal(send_one(e), LANES_BY_LANE);
	assert_int_equal(receive_all(e, lost_at), 1);
}

static void counts_are_exact(void **state)
{
	struct ends *e = *state;

	by_lane(e);
	for (int i = 0; i < 9; i++)
		send_one(e);
	assert_int_equal(e->memory->flow[3].packets, 10);
	/* LRH:PktLen: from the LRH to the ICRC, in words */
	assert_int_equal(e->memory->flow[3].dwords, 10 * (PACKET_BYTES / 4 + 1));
	assert_int_equal(e->memory->flow[2].packets, 0);
}

static unsigned rings(struct ends *e)
{
	uint64_t n = 0;

	return read(e->out.doorbell_fd, &n, sizeof(n)) == sizeof(n) ? (unsigned)n : 0;
}

static void only_a_sleeper_is_rung_and_once(void **state)
{
	struct ends *e = *state;

	by_lane(e);
	assert_int_equal(rings(e), 0);
	assert_true(lanes_sleep(&e->receiver));
	send_one(e);
	send_one(e);
	assert_int_equal(rings(e), 1);
	assert_false(lanes_sleep(&e->receiver)); /* packets wait */
	send_one(e);
	assert_int_equal(rings(e), 0); /* it did not sleep */
	assert_int_equal(receive_all(e, 2), 3);
	assert_true(lanes_sleep(&e->receiver));
}

/* What comes after the look is not read in this round: softibd's ring, read
 * in between, may hold what was sent before it. */
static void a_round_ends_where_it_looked(void **state)
{
	struct ends *e = *state;
	size_t len;

	by_lane(e);
	send_one(e);
	lanes_look(&e->receiver);
	send_one(e);
	assert_non_null(lanes_receive(&e->receiver, &len));
	lanes_release(&e->receiver);
	assert_null(lanes_receive(&e->receiver, &len));
	assert_int_equal(receive_all(e, 3), 1);
}

static void who_forges_a_source_is_not_heard(void **state)
{
	struct ends *e = *state;
	uint8_t *room;

	by_lane(e);
	room = abi_ring_reserve(&e->out.tx, PACKET_BYTES);
	fill(e, room, SLID + 1);
	abi_ring_commit(&e->out.tx, PACKET_BYTES);
	abi_ring_publish(&e->out.tx);
	send_one(e);
	assert_int_equal(receive_all(e, 3), 1);
}

static void nonsense_is_skipped_and_hangs_nobody(void **state)
{
	static const uint64_t lies[] = {8, 24, ABI_LANE_RING_BYTES, UINT64_MAX / 2};
	struct ends *e = *state;

	by_lane(e);
	for (unsigned i = 0; i < sizeof(lies) / sizeof(*lies); i++) {
		uint64_t pos = atomic_load(&e->memory->ring.head) & (ABI_LANE_RING_BYTES - 1);

		memset(e->memory->ring.data + pos, 0x7f, 4);
		atomic_fetch_add(&e->memory->ring.tail, lies[i]);
		assert_int_equal(receive_all(e, 0), 0);
		assert_true(lanes_sleep(&e->receiver));
	}
}

static void flows_that_share_a_slot_keep_their_order(void **state)
{
	struct ends *e = *state;
	struct wire_packet other = packet;
	struct flow *f, *mine = NULL;

	by_lane(e);
	lanes_choose(&e->sender, &packet, 1, &mine);
	send_one(e); /* unread */
	for (other.bth.dest_qpn++;; other.bth.dest_qpn++) {
		enum lanes_way way = lanes_choose(&e->sender, &other, 1, &f);

		assert_true(other.bth.dest_qpn < 0x100000);
		assert_int_equal(way, LANES_BY_SOFTIBD);
		if (!f) /* the slot is taken by packets under way */
			break;
	}
	assert_int_equal(send_one(e), LANES_BY_LANE);
	assert_int_equal(receive_all(e, 2), 2);
	assert_int_equal(lanes_choose(&e->sender, &other, 1, &f), LANES_BY_SOFTIBD);
	assert_ptr_equal(f, mine); /* now it may have the slot */
}

static void the_environment_turns_lanes_off(void **state)
{
	struct ends *e = *state;

	setenv("SOFTIB_LANES", "0", 1);
	lanes_init(&e->sender, e->page, &e->softibd_tx, now, woken, e);
	assert_int_equal(send_one(e), LANES_BY_SOFTIBD);
	assert_int_equal(e->sender.num_questions, 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(the_first_packet_asks_and_goes_by_softibd),
		CASE(a_flow_enters_when_softibd_has_read_all),
		CASE(a_busy_ring_to_softibd_starves_nobody),
		CASE(a_new_epoch_sends_it_back_in_order),
		CASE(an_old_answer_is_not_used),
		CASE(a_payload_beyond_the_way_goes_to_softibd),
		CASE(multicast_and_management_take_no_lane),
		CASE(a_receiver_without_room_costs_its_packets_only_after_a_while),
		CASE(counts_are_exact),
		CASE(only_a_sleeper_is_rung_and_once),
		CASE(a_round_ends_where_it_looked),
		CASE(who_forges_a_source_is_not_heard),
		CASE(nonsense_is_skipped_and_hangs_nobody),
		CASE(flows_that_share_a_slot_keep_their_order),
		CASE(the_environment_turns_lanes_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
