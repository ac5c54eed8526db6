/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Streamed cells: all of them is there, or none; and a lane in which they and others mix. */
#include "../test.h"

#include <pthread.h>
#include <sched.h>

#include "abi/lane.h"

#define MOST 38u
#define PIECES 4u

static const struct abi_record record = {.opcode = 4,
					 .flags = ABI_RECORD_ACK_REQ | ABI_RECORD_ACK,
					 .sl = 3,
					 .dlid_path_bits = 5,
					 .slid = 0x1234,
					 .pkey = 0xffff,
					 .packets = 1,
					 .psn = 0xfedcba,
					 .ack_psn = 0x123456,
					 .dest_qpn = 0xabcdef,
					 .src_qpn = 0x654321};

static void fill(uint8_t *to, uint32_t bytes, unsigned seed)
{
	for (unsigned i = 0; i < bytes; i++)
		to[i] = (uint8_t)(i * 7 + seed * 31 + 1);
}

static void pack(uint32_t bytes, uint64_t word[3])
{
	struct abi_record r = record;

	r.length_bytes = bytes;
	abi_record_pack(&r, word);
}

static void put(struct abi_cell *cell, uint8_t lap, uint32_t bytes, const uint8_t *data)
{
	uint32_t first = MIN(bytes, ABI_STREAM_FIRST);
	uint64_t word[3];

	pack(bytes, word);
	abi_cell_stream(cell, lap, word, load_few(data, first), data + first, bytes - first);
}

/* as abi_lane_next() */
static const struct abi_cell *get(const struct abi_cell *cell, uint8_t lap, uint64_t word[3],
				  struct abi_cell *whole)
{
	for (unsigned i = 0; i < 3; i++)
		word[i] = cell->word[i];
	assert_true(word[1] & (uint64_t)ABI_RECORD_STREAM << 24);
	return abi_cell_streamed(cell, lap, word, whole);
}

static void few_are_loaded(void **state)
{
	uint8_t from[9], to[8];

	fill(from, sizeof(from), 1);
	for (unsigned len = 0; len <= 8; len++) {
		uint64_t all = load_few(from + 1, len);

		memset(to, 0, sizeof(to));
		memcpy(to, from + 1, len);
		assert_memory_equal(&all, to, 8);
	}
}

__attribute__((unused)) static void every_length_comes_back(void **state)
{
	alignas(64) struct abi_cell cell = {};
	struct abi_cell whole;

	for (uint32_t bytes = 0; bytes <= MOST; bytes++) {
		uint8_t *data = malloc(bytes + 1); /* no byte behind it is read */
		const struct abi_cell *from;
		uint64_t word[3], want[3];

		fill(data, bytes, bytes);
		put(&cell, (uint8_t)bytes, bytes, data);
		from = get(&cell, (uint8_t)bytes, word, &whole);
		assert_non_null(from);
		assert_memory_equal(from->data, data, bytes);
		pack(bytes, want);
		assert_int_equal(word[0], want[0] | bytes << 24);
		assert_int_equal(word[1], want[1]);
		assert_int_equal(word[2], want[2]);
		free(data);
	}
}

/* Of a record's four pieces any are there, the others are still those of the lap
 * before: what is read is the record, or nothing. */
__attribute__((unused)) static void pieces_come_in_any_order(void **state)
{
	alignas(64) struct abi_cell before = {}, after = {}, cell;
	struct abi_cell whole;
	uint8_t old[MOST], data[MOST];
	uint64_t word[3];

	fill(old, MOST, 1);
	fill(data, MOST, 2);
	put(&before, 8, MOST, old);
	for (uint32_t bytes = 0; bytes <= MOST; bytes++) {
		unsigned needed = bytes <= 8 ? 3 : bytes <= 23 ? 7 : 15;

		put(&after, 9, bytes, data);
		/* the first is always there: its lap is looked at before anything else */
		for (unsigned there = 1; there < 1 << PIECES; there += 2) {
			const struct abi_cell *from;

			for (unsigned i = 0; i < PIECES; i++)
				memcpy((char *)&cell + 16 * i,
				       (char *)(there >> i & 1 ? &after : &before) + 16 * i, 16);
			from = get(&cell, 9, word, &whole);
			assert_int_equal(from != NULL, (there & needed) == needed);
			if (from)
				assert_memory_equal(from->data, data, bytes);
		}
	}
}

static void nonsense_is_bounded(void **state)
{
	alignas(64) struct abi_cell cell = {};
	struct abi_cell whole;
	uint64_t word[3] = {0, (uint64_t)ABI_RECORD_STREAM << 24, (9ull | 3 << 8) << 18};

	/* more pieces than there are: two, and they have no lap */
	assert_null(abi_cell_streamed(&cell, 9, word, &whole));
}

/* --- a lane --- */

static struct abi_lane *make_lane(struct abi_lane_tx *tx)
{
	struct abi_lane *memory = aligned_alloc(64, abi_lane_bytes());

	memset(memory, 0, abi_lane_bytes());
	abi_lane_tx_init(tx, memory, true);
	return memory;
}

static void publish(struct abi_lane_tx *tx, uint32_t bytes, const uint8_t *data, bool stream)
{
	struct abi_cell *cell = abi_lane_cell(tx->memory, tx->tail);
	uint32_t first = MIN(bytes, ABI_STREAM_FIRST);
	uint64_t word[3];

	pack(bytes, word);
	if (stream && abi_lane_may_stream(tx)) {
		abi_lane_publish_stream(tx, cell, word, load_few(data, first), data + first,
					bytes - first);
		return;
	}
	memcpy(cell->data, data, bytes);
	abi_lane_publish_words(tx, cell, word);
	if (stream)
		abi_lane_clear(tx, bytes);
}

/* Publish in all cells; return: how many were streamed */
static unsigned one_lap(struct abi_lane_tx *tx, uint32_t bytes, bool stream)
{
	uint8_t data[ABI_CELL_BYTES];
	unsigned n = 0;

	/* the lap that comes next, wherever it might be looked for */
	memset(data, abi_lane_lap(tx->tail) + 1, sizeof(data));
	for (unsigned i = 0; i < ABI_LANE_CELLS; i++) {
		publish(tx, bytes, data, stream);
		n += tx->memory->cell[i].word[1] >> 24 & ABI_RECORD_STREAM ? 1 : 0;
	}
	return n;
}

/* As far as a reader can tell, is no cell streamed in the lap that comes? */
static void expect_no_lap(const struct abi_lane_tx *tx)
{
	uint8_t lap = abi_lane_lap(tx->tail);

	for (unsigned i = 0; i < ABI_LANE_CELLS; i++) {
		const struct abi_cell *cell = &tx->memory->cell[i];

		if (tx->bulk_end[i] & ABI_LANE_PLAIN)
			continue;
		assert_int_not_equal(cell->word[2] >> 18 & 0xff, lap);
		assert_int_not_equal(cell->data[23], lap);
		assert_int_not_equal(cell->data[39], lap);
	}
}

__attribute__((unused)) static void a_plain_record_leaves_no_lap(void **state)
{
	const struct {
		uint32_t bytes;
		bool stream;
		unsigned streamed;
	} laps[] = {
		{8, true, ABI_LANE_CELLS}, /* new ones */
		{38, true, ABI_LANE_CELLS}, {40, false, 0}, {38, true, 0}, /* too long to clear */
		{23, true, 0}, {23, true, ABI_LANE_CELLS}, {24, true, ABI_LANE_CELLS},
		{8, false, 0}, {1, true, 0}, {1, true, ABI_LANE_CELLS},
	};
	struct abi_lane_tx tx;
	struct abi_lane *memory = make_lane(&tx);

	for (unsigned i = 0; i < ARRAY_SIZE(laps); i++) {
		expect_no_lap(&tx);
		assert_int_equal(one_lap(&tx, laps[i].bytes, laps[i].stream), laps[i].streamed);
	}
	/* the lap is 1 again: what was plain has it */
	while (abi_lane_lap(tx.tail) != 0)
		one_lap(&tx, 8, false);
	assert_int_equal(one_lap(&tx, 8, true), 0);
	expect_no_lap(&tx);
	assert_int_equal(one_lap(&tx, 8, true), 0);
	assert_int_equal(one_lap(&tx, 8, true), ABI_LANE_CELLS);
	expect_no_lap(&tx);
	free(memory);
}

/* What is kept of a cell says two things; the room that its payload had is the one */
static void room_comes_back_whole(void **state)
{
	struct abi_lane_tx tx;
	struct abi_lane *memory = make_lane(&tx);
	uint64_t word[3];

	pack(100, word);
	for (unsigned i = 0; i < 3; i++) {
		struct abi_cell *cell = abi_lane_cell(memory, i);

		abi_lane_put_bulk(&tx, cell, 100);
		abi_lane_publish_words(&tx, cell, word);
	}
	memory->head = 3;
	abi_lane_room(&tx, 1, ABI_LANE_NARROW);
	assert_int_equal(tx.bulk_head, 3 * 128);
	assert_int_equal(tx.bulk_head, tx.bulk_tail);
	free(memory);
}

/* --- on real cores --- */

#define RECORDS 60000u
#define TURN 64u /* what one core has to do before the other has its turn */

struct side {
	struct abi_lane_tx tx;
	struct abi_lane_rx rx;
	unsigned streamed;
};

static uint32_t bytes_of(uint32_t n)
{
	return n * 2654435761u >> 16 & 31;
}

static void *send_all(void *arg)
{
	struct side *s = arg;

	for (uint32_t n = 0; n < RECORDS; n++) {
		uint8_t data[32];

		while (!abi_lane_has_cell(&s->tx))
			sched_yield();
		fill(data, bytes_of(n), n);
		publish(&s->tx, bytes_of(n), data, n / 100 % 3);
	}
	return NULL;
}

static void *receive_all(void *arg)
{
	struct side *s = arg;
	uint8_t want[32];

	for (uint32_t n = 0; n < RECORDS; n++) {
		const struct abi_cell *cell;
		uint64_t word[3];

		while (!(cell = abi_lane_next(&s->rx, word)))
			sched_yield();
		fill(want, bytes_of(n), n);
		if (abi_record_bytes(word) != bytes_of(n) ||
		    memcmp(cell->data, want, bytes_of(n)) != 0)
			return arg;
		s->streamed += cell == &s->rx.whole;
		abi_lane_consumed(&s->rx, 1, n % TURN == 0);
	}
	return NULL;
}

__attribute__((unused)) static void a_stream_on_two_cores(void **state)
{
	struct side s = {};
	pthread_t sender, receiver;
	void *wrong;

	s.rx.memory = make_lane(&s.tx);
	assert_int_equal(pthread_create(&receiver, NULL, receive_all, &s), 0);
	assert_int_equal(pthread_create(&sender, NULL, send_all, &s), 0);
	pthread_join(sender, NULL);
	pthread_join(receiver, &wrong);
	assert_null(wrong);
	assert_true(s.streamed > RECORDS / 8);
	free(s.rx.memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(few_are_loaded),
#if ABI_STREAM_BYTES
		cmocka_unit_test(every_length_comes_back),
		cmocka_unit_test(pieces_come_in_any_order),
#endif
		cmocka_unit_test(nonsense_is_bounded),
#if ABI_STREAM_BYTES
		cmocka_unit_test(a_plain_record_leaves_no_lap),
#endif
		cmocka_unit_test(room_comes_back_whole),
#if ABI_STREAM_BYTES
		cmocka_unit_test(a_stream_on_two_cores),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
