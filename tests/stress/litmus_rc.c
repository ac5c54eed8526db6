/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Requests of one RC QP, and what the peer sees of them. */
#include "litmus.h"

#include <sched.h>

#include "traffic.h"

/* --- mixture --- */

static void drain(struct traffic *t, uint64_t since, struct actor *a)
{
	struct ibv_wc wc;

	while (poll_one(t->q, &wc))
		traffic_take(t, &wc);
	if (t->broken)
		fail("mixture: the connection broke");
	must_hurry(a, since, "a request is under way");
}

void mixture(struct actor *a)
{
	struct traffic_seen seen = {0}, its = {0};
	struct traffic t;
	uint64_t last, done = 0;

	traffic_init(&t, &a->q, a->base, SLOT_BYTES, rng_next(&a->rng), &seen);
	part(a);
	for (last = now_ns(); !over();) {
		while (rng_below(&t.rng, 6) && traffic_post(&t))
			count(a);
		if (t.completed != done)
			last = now_ns();
		done = t.completed;
		drain(&t, last, a);
	}
	traffic_flush(&t);
	for (last = now_ns(); !traffic_idle(&t);)
		drain(&t, last, a);
	if (!meet(a->fd, &seen, &its, sizeof(seen)))
		fail("mixture: the peer is gone");
	for (last = now_ns(); t.received != its.messages_posted;)
		drain(&t, last, a);
	part(a);
}

/* --- flag and tail --- */

/* What the peer writes at any time. ThreadSanitizer does not look: what orders
 * it with this read is in the data itself. */
__attribute__((noinline, no_sanitize("thread"))) static uint64_t arrived(struct actor *a,
									  size_t offset)
{
	return atomic_load_explicit(word(a, offset), memory_order_acquire);
}

static void wait_word(struct actor *a, size_t offset, uint64_t value)
{
	uint64_t since = now_ns();

	for (unsigned i = 1; arrived(a, offset) != value; i++) {
		if (i % 64 == 0)
			sched_yield();
		if (i % 65536 == 0)
			must_hurry(a, since, "no WRITE is seen");
	}
}

static void reap(struct actor *a, unsigned left)
{
	static _Thread_local unsigned under_way;
	struct ibv_wc wc;

	for (under_way++; under_way > left;) {
		if (!poll_one(&a->q, &wc))
			continue;
		if (wc.status)
			fail("%s: %s", a->script->name, ibv_wc_status_str(wc.status));
		under_way--;
	}
}

#define FLAG 0
#define DATA 4096

static void write_at(struct actor *a, size_t to, uint32_t bytes, uint64_t value)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = send_wr(&a->q, &sge, IBV_WR_RDMA_WRITE, value, a->base + FROM + to,
					bytes);

	for (uint32_t i = 0; i < bytes; i += 8)
		atomic_store_explicit(word(a, FROM + to + i), value, memory_order_relaxed);
	wr.wr.rdma.remote_addr = a->q.peer.addr + a->base + to;
	if (bytes <= TRAFFIC_INLINE && value % 3 == 0)
		wr.send_flags |= IBV_SEND_INLINE;
	post(&a->q, &wr);
	reap(a, 0);
}

static void check_data(struct actor *a, uint32_t bytes, uint64_t value)
{
	for (uint32_t i = 0; i < bytes; i += 8) {
		uint64_t found = arrived(a, DATA + i);

		if (found != value)
			fail("%s: byte %u of %u is of round %lu, not %lu", a->script->name, i, bytes,
			     (unsigned long)found, (unsigned long)value);
	}
}

/* both draw the same sizes: the generators are alike */
static uint32_t draw(struct actor *a)
{
	uint32_t most = rng_below(&a->rng, 4) ? 512 : 40000;

	return (8 + rng_below(&a->rng, most)) & ~7u;
}

/* one direction a round: @value odd, from side 0. The round in which the two
 * part is agreed upon: the flag says 0 beside its value */
static void turn_by_turn(struct actor *a, bool with_flag)
{
	for (uint64_t value = 1;; value++) {
		uint32_t bytes = draw(a);
		size_t end = with_flag ? FLAG : DATA + bytes - 8;

		if ((value & 1) == (uint64_t)!a->me) {
			write_at(a, FLAG + 8, 8, over() ? value : 0);
			write_at(a, DATA, bytes, value);
			if (with_flag)
				write_at(a, FLAG, 8, value);
		} else {
			wait_word(a, end, value);
			check_data(a, bytes, value);
		}
		count(a);
		if (arrived(a, (value & 1) == (uint64_t)!a->me ? FROM + FLAG + 8 : FLAG + 8) == value)
			return part(a);
	}
}

void flag(struct actor *a)
{
	part(a);
	turn_by_turn(a, true);
}

void tail(struct actor *a)
{
	part(a);
	turn_by_turn(a, false);
}

/* --- ways --- */

#define PLACES (EDGE_PLACES - 1)
#define MANY 48 /* WRITEs: more than the engine bears before it holds the queue for a window */
#define PLAIN_BYTES 8192 /* of a place on whole pages; EDGE_BYTES: of one that no window shows */

/* one round, the same on both sides: they draw alike */
struct plan {
	unsigned num_writes;
	struct {
		size_t at; /* in the buffer */
		uint32_t bytes;
	} write[MANY];
	unsigned read; /* which of them is read back */
	size_t flag;   /* 16 bytes: is it the last round?, the value */
};

static size_t place(struct actor *a, unsigned i, bool edge)
{
	return edge ? a->side->bytes - EDGE + i * EDGE_BYTES : a->base + DATA + i * PLAIN_BYTES;
}

static struct plan draw_plan(struct actor *a)
{
	uint32_t most_writes = rng_below(&a->rng, 4) ? PLACES : MANY;
	struct plan p = {.num_writes = 1 + rng_below(&a->rng, most_writes)};

	for (unsigned i = 0; i < p.num_writes; i++) {
		bool edge = rng_below(&a->rng, 2);
		uint32_t most = edge ? EDGE_BYTES : PLAIN_BYTES;

		p.write[i].at = place(a, i % PLACES, edge);
		p.write[i].bytes = 8 + (rng_below(&a->rng, most - 7) & ~7u);
	}
	p.read = rng_below(&a->rng, p.num_writes);
	p.flag = place(a, PLACES, rng_below(&a->rng, 2));
	return p;
}

static void post_at(struct actor *a, enum ibv_wr_opcode opcode, uint64_t wr_id, size_t from,
		    size_t to, uint32_t bytes)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = send_wr(&a->q, &sge, opcode, wr_id, from, bytes);

	wr.wr.rdma.remote_addr = a->q.peer.addr + to;
	post(&a->q, &wr);
}

static void request_round(struct actor *a, const struct plan *p, uint64_t value, bool last)
{
	size_t from = a->base + FROM, back = from + PLAIN_BYTES, flag = back + 64;

	for (uint32_t i = 0; i < PLAIN_BYTES; i += 8)
		*word(a, FROM + i) = value;
	*word(a, flag - a->base) = last;
	*word(a, flag - a->base + 8) = value;
	for (unsigned i = 0; i < p->num_writes; i++)
		post_at(a, IBV_WR_RDMA_WRITE, i, from, p->write[i].at, p->write[i].bytes);
	post_at(a, IBV_WR_RDMA_READ, p->num_writes, back, p->write[p->read].at, 8);
	post_at(a, IBV_WR_RDMA_WRITE, p->num_writes + 1, flag, p->flag, 16);
	for (unsigned i = 0; i < p->num_writes + 2; i++)
		if (await(&a->q, GRACE_S).wr_id != i)
			fail("ways: a request completes out of turn");
	if (*word(a, back - a->base) != value)
		fail("ways: a READ after a WRITE of %lu sees %lu", (unsigned long)value,
		     (unsigned long)*word(a, back - a->base));
}

static bool check_round(struct actor *a, const struct plan *p, uint64_t value)
{
	wait_word(a, p->flag + 8 - a->base, value);
	for (unsigned i = 0; i < p->num_writes; i++)
		for (uint32_t b = 0; b < p->write[i].bytes; b += 8)
			if (arrived(a, p->write[i].at - a->base + b) != value)
				fail("ways: the last of round %lu is seen before byte %u of %u of "
				     "its WRITE %u",
				     (unsigned long)value, b, p->write[i].bytes, i);
	return arrived(a, p->flag - a->base);
}

/* by turns, as turn_by_turn() */
void ways(struct actor *a)
{
	bool last = false;

	part(a);
	for (uint64_t value = 1; !last; value++) {
		struct plan p = draw_plan(a);

		if ((value & 1) == (uint64_t)!a->me) {
			last = over();
			request_round(a, &p, value, last);
		} else {
			last = check_round(a, &p, value);
		}
		count(a);
	}
	part(a);
}
