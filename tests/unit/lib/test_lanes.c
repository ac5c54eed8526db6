/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Lanes between two fake ends in one process: the order of packets when a
 * flow changes ways, sleepers and their doorbell, a receiver without room, a
 * sender that writes nonsense. The clock is the test's.
 */
#include "../test.h"

#include <unistd.h>

#include "../../../lib/libibverbs/lanes.h"
#include "abi/doorbell.h"

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
	struct abi_ring *ring = aligned_alloc(64, abi_ring_bytes(ABI_LINK_RING_BYTES));

	assert_non_null(ring);
	memset(ring, 0, abi_ring_bytes(ABI_LINK_RING_BYTES));
	abi_ring_init(ring, ABI_LINK_RING_BYTES);
	return ring;
}

static int setup(void **state)
{
	struct ends *e = calloc(1, sizeof(*e));

	e->page = calloc(1, abi_devpage_bytes(1));
	e->page->route_epoch = 5;
	e->to_softibd = make_ring();
	e->softibd_tx = (struct abi_ring_tx){.ring = e->to_softibd, .size = ABI_LINK_RING_BYTES};
	e->softibd_rx = (struct abi_ring_rx){.ring = e->to_softibd, .size = ABI_LINK_RING_BYTES};
	e->memory = aligned_alloc(64, abi_lane_bytes());
	memset(e->memory, 0, abi_lane_bytes());
	unsetenv("SOFTIB_LANES");
	assert_int_equal(lanes_init(&e->sender, e->page, &e->softibd_tx, now, woken, e), 0);
	assert_int_equal(lanes_init(&e->receiver, e->page, NULL, now, woken, e), 0);
	e->out = (struct lane_out){.id = 1, .doorbell_fd = abi_doorbell_open()};
	INIT_LIST_HEAD(&e->out.flows);
	eng_lane_out_init(&e->out.eng, e->memory, e->sender.has_membarrier);
	list_add_tail(&e->out.node, &e->sender.out);
	e->in = (struct lane_in){.id = 1, .eng.rx.memory = e->memory};
	e->memory->has_membarrier = e->receiver.has_membarrier;
	list_add_tail(&e->in.node, &e->receiver.in);
	*state = e;
	return 0;
}

static int teardown(void **state)
{
	struct ends *e = *state;

	close(e->out.doorbell_fd);
	free(e->sender.flow);
	free(e->receiver.flow);
	free(e->memory);
	free(e->to_softibd);
	free(e->page);
	free(e);
	return 0;
}

/* --- the sender --- */

static const struct eng_path path = {
	.dest_qpn = QPN, .dlid = DLID, .pkey = 0xffff, .port_num = 1};

static void put_in_lane(struct ends *e, struct eng_lane_out *lane)
{
	struct abi_cell *cell = abi_lane_cell(lane->tx.memory, lane->tx.tail);

	memcpy(cell->data, &e->sent, sizeof(e->sent));
	abi_lane_publish(&lane->tx, &(struct abi_record){.dest_qpn = QPN, .length_bytes = 4});
	if (abi_lane_must_ring(&lane->tx))
		lanes_ring(&e->sender, lane);
	e->sent++;
}

/* Return: the medium of the packet; ENG_WAIT also if the lane had no room for it */
static enum eng_medium send_one(struct ends *e)
{
	struct eng_flow *f;
	enum eng_medium medium = lanes_choose(&e->sender, &path, 32, &f);

	if (medium == ENG_BY_PACKETS) {
		memcpy(abi_ring_reserve(&e->softibd_tx, PACKET_BYTES), &e->sent, sizeof(e->sent));
		abi_ring_commit(&e->softibd_tx, PACKET_BYTES);
		e->sent++;
	} else if (medium == ENG_BY_LANE) {
		if (!abi_lane_has_cell(&f->lane->tx))
			return lanes_stuck(&e->sender, f);
		put_in_lane(e, f->lane);
	}
	abi_ring_publish(&e->softibd_tx);
	return medium;
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

/* --- the receiver. Return: how many came, in order from @first --- */

static unsigned receive_all(struct ends *e, uint32_t first)
{
	struct abi_lane_rx *rx = &e->in.eng.rx;
	const struct abi_cell *cell;
	struct abi_record record;
	uint64_t word[3];
	unsigned n = 0;
	uint32_t number;

	for (; (cell = abi_lane_next(rx, word)); n++) {
		abi_record_unpack(word, &record);
		memcpy(&number, cell->data, sizeof(number));
		assert_int_equal(number, first + n);
		assert_int_equal(record.dest_qpn, QPN);
		abi_lane_consumed(rx, 1, false);
	}
	abi_lane_release(rx);
	return n;
}

static void by_lane(struct ends *e)
{
	assert_int_equal(send_one(e), ENG_BY_PACKETS);
	answer(e);
	softibd_reads(e, 1);
	assert_int_equal(send_one(e), ENG_BY_LANE);
	assert_int_equal(receive_all(e, 1), 1);
}

/* --- tests --- */

static void the_first_packet_asks_and_goes_by_softibd(void **state)
{
	struct ends *e = *state;

	assert_int_equal(send_one(e), ENG_BY_PACKETS);
	assert_int_equal(e->wakes, 1);
	assert_int_equal(e->sender.question[0].dlid, DLID);
	assert_int_equal(e->sender.question[0].dest_qpn, QPN);
	assert_int_equal(send_one(e), ENG_BY_PACKETS);
	assert_int_equal(e->wakes, 1); /* one question is enough */
}

static void a_flow_enters_when_softibd_has_read_all(void **state)
{
	struct ends *e = *state;

	send_one(e);
	answer(e);
	assert_int_equal(send_one(e), ENG_BY_PACKETS);
	softibd_reads(e, 1);
	assert_int_equal(send_one(e), ENG_BY_PACKETS); /* one of its own is unread */
	softibd_reads(e, 2);
	assert_int_equal(send_one(e), ENG_BY_LANE);
	assert_int_equal(receive_all(e, 3), 1);
}

/* Others keep the ring to softibd filled: the flow must get in all the same. */
static void a_busy_ring_to_softibd_starves_nobody(void **state)
{
	struct ends *e = *state;
	enum eng_medium medium;
	unsigned waits = 0;

	send_one(e);
	answer(e);
	while ((medium = send_one(e)) == ENG_BY_PACKETS)
		assert_true(e->sent < 1000);
	assert_int_equal(medium, ENG_WAIT);
	for (; medium == ENG_WAIT; waits++) {
		assert_true(waits < 1000);
		abi_ring_reserve(&e->softibd_tx, PACKET_BYTES); /* another's packet */
		abi_ring_commit(&e->softibd_tx, PACKET_BYTES);
		abi_ring_publish(&e->softibd_tx);
		assert_int_equal(softibd_reads(e, 1), 1);
		medium = send_one(e);
	}
	assert_int_equal(medium, ENG_BY_LANE);
	assert_true(softibd_reads(e, 10000) > 0); /* never was it empty */
}

static void a_new_epoch_sends_it_back_in_order(void **state)
{
	struct ends *e = *state;

	by_lane(e);
	assert_int_equal(send_one(e), ENG_BY_LANE); /* unread */
	e->page->route_epoch++;
	assert_int_equal(send_one(e), ENG_WAIT);
	assert_int_equal(receive_all(e, 2), 1);
	assert_int_equal(send_one(e), ENG_BY_PACKETS);
	assert_int_equal(e->sender.num_questions, 1); /* and asks for the new medium */
	answer(e);
	softibd_reads(e, 1);
	assert_int_equal(send_one(e), ENG_BY_LANE);
}

/* The answer to a question may be old before it is used. */
static void an_old_answer_is_not_used(void **state)
{
	struct ends *e = *state;

	send_one(e);
	softibd_reads(e, 1);
	answer(e);
	e->page->route_epoch++;
	assert_int_equal(send_one(e), ENG_BY_PACKETS);
}

static void a_payload_beyond_the_way_goes_to_softibd(void **state)
{
	struct ends *e = *state;
	struct eng_flow *f;

	by_lane(e);
	assert_int_equal(lanes_choose(&e->sender, &path, 4096, &f), ENG_BY_PACKETS);
}

static void multicast_and_management_take_no_lane(void **state)
{
	struct ends *e = *state;
	struct eng_path other = path;
	struct eng_flow *f;

	other.dlid = 0xc001;
	assert_int_equal(lanes_choose(&e->sender, &other, 0, &f), ENG_BY_PACKETS);
	other = path;
	other.dest_qpn = 1;
	assert_int_equal(lanes_choose(&e->sender, &other, 0, &f), ENG_BY_PACKETS);
	assert_int_equal(e->sender.num_questions, 0);
}

/* A thread that connects a QP asks about its flow itself: no other has to wake up. */
static void who_asks_wakes_nobody(void **state)
{
	struct eng_path other = path;
	struct ends *e = *state;
	struct eng_flow *f;

	e->sender.caller_asks = true;
	assert_int_equal(lanes_choose(&e->sender, &path, 0, &f), ENG_BY_PACKETS);
	assert_int_equal(e->wakes, 0);
	e->sender.caller_asks = false;
	assert_int_equal(lanes_choose(&e->sender, &path, 0, &f), ENG_BY_PACKETS); /* it was asked about */
	assert_int_equal(e->wakes, 0);
	assert_int_equal(e->sender.num_questions, 0);
	other.dest_qpn++;
	assert_int_equal(lanes_choose(&e->sender, &other, 0, &f), ENG_BY_PACKETS);
	assert_int_equal(e->wakes, 1);
	assert_int_equal(e->sender.num_questions, 1);
}

static void a_receiver_without_room_costs_its_packets_only_after_a_while(void **state)
{
	struct ends *e = *state;
	uint32_t lost_at;

	by_lane(e);
	while (send_one(e) == ENG_BY_LANE)
		assert_true(e->sent < 2 * ABI_LANE_CELLS);
	assert_int_equal(send_one(e), ENG_WAIT);
	clock_now.ns += NSEC_PER_SEC - 1;
	assert_int_equal(send_one(e), ENG_WAIT);
	clock_now.ns++;
	assert_int_equal(send_one(e), ENG_LOST);
	assert_int_equal(send_one(e), ENG_WAIT); /* the next has its own second */
	lost_at = e->sent;
	assert_int_equal(receive_all(e, 2), lost_at - 2);
	assert_int_equal(send_one(e), ENG_BY_LANE);
	assert_int_equal(receive_all(e, lost_at), 1);
}

/* A slow receiver is not one without room: waiting starts anew with each packet
 * that it made room for. */
static void a_receiver_that_is_slow_loses_nothing(void **state)
{
	struct ends *e = *state;
	uint32_t first = 2;

	by_lane(e);
	for (int i = 0; i < 4; i++) {
		while (send_one(e) == ENG_BY_LANE)
			assert_true(e->sent - first < 2 * ABI_LANE_CELLS);
		clock_now.ns += NSEC_PER_SEC * 6 / 10;
		assert_int_equal(send_one(e), ENG_WAIT);
		first += receive_all(e, first);
	}
}

/* QPs that know their flow see that it is no longer what they knew. */
static void a_flow_that_changes_has_another_serial(void **state)
{
	struct ends *e = *state;
	struct eng_flow *f;
	uint32_t serial;

	by_lane(e);
	assert_int_equal(lanes_choose(&e->sender, &path, 0, &f), ENG_BY_LANE);
	assert_ptr_equal(f->count, &e->memory->flow[3]);
	serial = f->serial;
	e->page->route_epoch++;
	assert_int_equal(send_one(e), ENG_BY_PACKETS);
	assert_int_not_equal(f->serial, serial);
	serial = f->serial;
	answer(e);
	assert_int_not_equal(f->serial, serial);
	serial = f->serial;
	lanes_forget(&e->out);
	assert_int_not_equal(f->serial, serial);
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
	assert_true(lanes_arm_sleep(&e->receiver));
	send_one(e);
	send_one(e);
	assert_int_equal(rings(e), 1);
	assert_false(lanes_arm_sleep(&e->receiver)); /* packets wait */
	send_one(e);
	assert_int_equal(rings(e), 0); /* it did not sleep */
	assert_int_equal(receive_all(e, 2), 3);
	assert_true(lanes_arm_sleep(&e->receiver));
}

static void a_receiver_that_turned_away_is_rung_in_time(void **state)
{
	struct ends *e = *state;

	by_lane(e);
	assert_false(lanes_ring_overdue(&e->sender, clock_now)); /* all is read */
	send_one(e);
	assert_true(lanes_ring_overdue(&e->sender, clock_now));
	clock_now.ns += PROG_OVERDUE_NS - 1;
	assert_true(lanes_ring_overdue(&e->sender, clock_now));
	assert_int_equal(rings(e), 0);
	clock_now.ns++;
	lanes_ring_overdue(&e->sender, clock_now);
	assert_int_equal(rings(e), 1);
	clock_now.ns += 10 * PROG_OVERDUE_NS; /* once is enough */
	assert_false(lanes_ring_overdue(&e->sender, clock_now));
	assert_int_equal(rings(e), 0);
	receive_all(e, e->sent - 1);
	send_one(e);
	assert_true(lanes_ring_overdue(&e->sender, clock_now)); /* anew */
	assert_int_equal(rings(e), 0);
}

static void a_receiver_that_reads_slowly_is_not_rung(void **state)
{
	struct ends *e = *state;

	by_lane(e);
	for (int i = 0; i < 10; i++) {
		send_one(e);
		assert_true(lanes_ring_overdue(&e->sender, clock_now));
		clock_now.ns += PROG_OVERDUE_NS - 1;
		lanes_ring_overdue(&e->sender, clock_now);
		receive_all(e, e->sent - 1);
	}
	assert_int_equal(rings(e), 0);
}

/* Who sleeps after every message leaves the fence to its senders; one that
 * takes many in between does not. */
static void who_sleeps_often_leaves_the_fence_to_senders(void **state)
{
	struct ends *e = *state;

	if (!e->receiver.has_membarrier)
		skip();
	by_lane(e);
	for (int i = 0; i < 100; i++) {
		assert_true(lanes_arm_sleep(&e->receiver));
		lanes_disarm_sleep(&e->receiver);
		send_one(e);
		receive_all(e, e->sent - 1);
	}
	assert_false(e->memory->has_membarrier);
	for (int i = 0; i < 100; i++)
		send_one(e);
	receive_all(e, e->sent - 100);
	assert_true(lanes_arm_sleep(&e->receiver));
	assert_true(e->memory->has_membarrier);
	send_one(e);
	assert_int_equal(rings(e), 1);
}

static void payloads_fill_bulk_and_come_round(void **state)
{
	struct ends *e = *state;
	struct abi_lane_tx *tx = &e->out.eng.tx;
	uint32_t sizes[] = {65536, 100, 65536, 65536, 40000};
	uint32_t at[ARRAY_SIZE(sizes)];

	for (unsigned i = 0; i < ARRAY_SIZE(sizes); i++) {
		assert_true(abi_lane_room(tx, 4096, sizes[i]) >= sizes[i]);
		at[i] = abi_lane_take_bulk(tx, sizes[i]);
		put_in_lane(e, &e->out.eng);
	}
	for (unsigned i = 1; i < ARRAY_SIZE(sizes); i++)
		assert_true(at[i] >= at[i - 1] + sizes[i - 1]);
	/* the rest to the end, and not over it */
	assert_int_equal(abi_lane_room(tx, 4096, 65536),
			 ABI_LANE_NARROW - ALIGN_UP(at[4] + sizes[4], 64u));
	/* what wants more than that begins at the start, which is not free */
	assert_int_equal(abi_lane_room(tx, 50000, 65536), 0);
	assert_int_equal(receive_all(e, 0), ARRAY_SIZE(sizes));
	assert_int_equal(abi_lane_room(tx, 50000, 65536), 65536);
	assert_int_equal(abi_lane_take_bulk(tx, 50000), 0);
}

/* --- a ring that changes its width, with payloads under way --- */

#define UNDER_WAY 200u

/* the last payloads, where they are */
struct flock {
	uint32_t at[UNDER_WAY], bytes[UNDER_WAY], sent, read;
};

static void take_one(struct ends *e, struct flock *f)
{
	atomic_store(&e->memory->head, ++f->read);
}

static bool fits(struct abi_lane_tx *tx, uint32_t bytes)
{
	bool yes = abi_lane_fits(tx, bytes);

	assert_int_equal(yes, abi_lane_room(tx, bytes, bytes) >= bytes);
	return yes;
}

/* one more, as soon as there is room: inside the ring, and clear of all that are under way */
static void put_one(struct ends *e, struct flock *f, uint32_t bytes)
{
	struct abi_lane_tx *tx = &e->out.eng.tx;
	uint32_t at;

	while (f->sent - f->read == UNDER_WAY || !fits(tx, bytes))
		take_one(e, f);
	at = abi_lane_take_bulk(tx, bytes);
	assert_true(at + bytes <= tx->bulk_bytes);
	for (uint32_t i = f->read; i < f->sent; i++) {
		uint32_t other = f->at[i % UNDER_WAY], len = f->bytes[i % UNDER_WAY];

		assert_true(at >= other + len || at + bytes <= other);
	}
	put_in_lane(e, &e->out.eng);
	f->at[f->sent % UNDER_WAY] = at;
	f->bytes[f->sent++ % UNDER_WAY] = bytes;
}

/* until that much went through */
static void put_many(struct ends *e, struct flock *f, uint32_t bytes, uint32_t total)
{
	for (uint32_t done = 0; done < total; done += bytes)
		put_one(e, f, bytes);
}

static void a_ring_is_as_wide_as_its_sender_wants(void **state)
{
	struct flock f = {.sent = 0};
	struct ends *e = *state;
	struct abi_lane_tx *tx = &e->out.eng.tx;

	put_many(e, &f, 9000, 3 * ABI_LANE_BULK);
	assert_int_equal(tx->bulk_bytes, ABI_LANE_NARROW);
	for (unsigned i = 0; i < 20; i++) {
		tx->wants_wide = true;
		for (unsigned n = 0; n < 4; n++) {
			put_many(e, &f, 9000 + 1000 * i, 2 * ABI_LANE_BULK);
			assert_int_equal(tx->bulk_bytes, ABI_LANE_BULK);
		}
		tx->wants_wide = false;
		put_many(e, &f, 60000 - 500 * i, 2 * ABI_LANE_BULK);
		assert_int_equal(tx->bulk_bytes, ABI_LANE_NARROW);
	}
}

/* A receiver's head that runs ahead of what was sent, or back, is not believed. */
static void a_receiver_that_lies_gets_nothing(void **state)
{
	static const uint32_t lies[] = {1, ABI_LANE_CELLS + 2, UINT32_MAX};
	struct ends *e = *state;

	for (unsigned i = 0; i < ABI_LANE_CELLS; i++)
		put_in_lane(e, &e->out.eng);
	assert_int_equal(receive_all(e, 0), ABI_LANE_CELLS);
	assert_true(abi_lane_has_cell(&e->out.eng.tx));
	for (unsigned i = 0; i < ABI_LANE_CELLS; i++)
		put_in_lane(e, &e->out.eng);
	for (unsigned i = 0; i < ARRAY_SIZE(lies); i++) {
		e->memory->head = ABI_LANE_CELLS + (lies[i] == UINT32_MAX ? lies[i] : ABI_LANE_CELLS + lies[i]);
		assert_false(abi_lane_has_cell(&e->out.eng.tx));
	}
}

/* the @n-th other flow that may have the same slots as path */
static struct eng_path rival(unsigned n)
{
	struct eng_path p = path;

	p.dest_qpn += n * (LANES_FLOWS / LANES_WAYS);
	return p;
}

/* Return: the medium of @p; softibd has answered that it may have the lane */
static enum eng_medium enter(struct ends *e, const struct eng_path *p, struct eng_flow **f)
{
	const struct abi_resolve key = {.dest_qpn = p->dest_qpn, .dlid = p->dlid,
					.pkey = p->pkey, .port_num = p->port_num};
	const struct abi_resolve_resp resp = {.lane = 1, .flow = 3, .epoch = e->page->route_epoch,
					      .mtu_bytes = 2048};

	lanes_choose(&e->sender, p, 0, f);
	lanes_known(&e->sender, &key, &resp, &e->out);
	return lanes_choose(&e->sender, p, 0, f);
}

static void flows_that_share_slots_keep_their_order(void **state)
{
	struct eng_path others[LANES_WAYS + 1];
	struct eng_flow *f, *mine = NULL;
	struct ends *e = *state;

	by_lane(e);
	for (unsigned i = 1; i <= LANES_WAYS; i++)
		others[i] = rival(i);
	for (unsigned i = 1; i < LANES_WAYS; i++)
		assert_int_equal(enter(e, &others[i], &f), ENG_BY_LANE);
	lanes_choose(&e->sender, &path, 0, &mine);
	send_one(e); /* unread: the lane has something of all of them */
	assert_int_equal(lanes_choose(&e->sender, &others[LANES_WAYS], 0, &f), ENG_BY_PACKETS);
	assert_null(f); /* no slot may be taken */
	assert_int_equal(send_one(e), ENG_BY_LANE);
	assert_int_equal(receive_all(e, 2), 2);
	assert_int_equal(lanes_choose(&e->sender, &others[LANES_WAYS], 0, &f), ENG_BY_PACKETS);
	assert_ptr_equal(f, mine); /* now it may have the slot */
}

/* As many as a program may connect: each keeps its lane. */
static void ten_thousand_flows_have_their_slots(void **state)
{
	struct ends *e = *state;
	struct eng_path p = path;
	struct eng_flow *f;

	by_lane(e);
	for (; p.dest_qpn < path.dest_qpn + 10000; p.dest_qpn++)
		assert_int_equal(enter(e, &p, &f), ENG_BY_LANE);
	for (p = path; p.dest_qpn < path.dest_qpn + 10000; p.dest_qpn++)
		assert_int_equal(lanes_choose(&e->sender, &p, 0, &f), ENG_BY_LANE);
	lanes_forget(&e->out);
	for (p = path; p.dest_qpn < path.dest_qpn + 10000; p.dest_qpn++)
		assert_int_equal(lanes_choose(&e->sender, &p, 0, &f), ENG_BY_PACKETS);
}

static void the_environment_turns_lanes_off(void **state)
{
	struct ends *e = *state;

	setenv("SOFTIB_LANES", "0", 1);
	free(e->sender.flow);
	assert_int_equal(lanes_init(&e->sender, e->page, &e->softibd_tx, now, woken, e), 0);
	assert_int_equal(send_one(e), ENG_BY_PACKETS);
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
		CASE(a_receiver_that_is_slow_loses_nothing),
		CASE(a_flow_that_changes_has_another_serial),
		CASE(only_a_sleeper_is_rung_and_once),
		CASE(a_receiver_that_turned_away_is_rung_in_time),
		CASE(who_asks_wakes_nobody),
		CASE(a_receiver_that_reads_slowly_is_not_rung),
		CASE(who_sleeps_often_leaves_the_fence_to_senders),
		CASE(payloads_fill_bulk_and_come_round),
		CASE(a_ring_is_as_wide_as_its_sender_wants),
		CASE(a_receiver_that_lies_gets_nothing),
		CASE(flows_that_share_slots_keep_their_order),
		CASE(ten_thousand_flows_have_their_slots),
		CASE(the_environment_turns_lanes_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
