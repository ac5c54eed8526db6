/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * ATOMIC WRITE and FLUSH (annex A19): each end writes numbered contents to places at its peer,
 * stores flags behind them by ATOMIC WRITE, and asks by FLUSH for what it wrote to be visible.
 *
 * What is verified (oracle "placed"): whoever sees a flag sees all that was written before it; when
 * a FLUSH completes, what was written before it into its range, or its region, is there; a flag is
 * a number that was stored, never a part of one, and never goes back. Flags that are not aligned,
 * and FLUSHes beyond a region or of one without the right, fail (violation).
 */
#include <stdlib.h>
#include <string.h>

#include "pair.h"
#include "wire/packet.h"

#define PLACES 8
#define NEEDS  64 /* flags whose needs are known; more than fit into a send queue */

enum verb { WRITE, FLAG, FLUSH, READ };

/** struct need - the number of the last WRITE to each place that came before */
struct need {
	uint64_t number[PLACES];
};

struct own {
	struct region memory;	  /* a flag in the first place, then places */
	struct region unflushable;
	uint64_t flag_seen;	  /* here */
	/* --- of what this end writes at its peer --- */
	struct need posted;
	uint64_t numbers, flags;
	struct need of_flag[NEEDS];
	struct need of_request[PAIR_SQ];
};

static struct own *own_of(const struct pair_end *e)
{
	return e->own;
}

static int make(struct pair_end *e)
{
	const int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
			IBV_ACCESS_REMOTE_ATOMIC;
	struct own *own = e->own = calloc(1, sizeof(*own));
	int ret = region_make(e->program, &own->memory, (PLACES + 1) * PAIR_SLOT,
			      all | TP_ACCESS_FLUSH_GLOBAL);

	ret = ret ?: region_make(e->program, &own->unflushable, PAIR_SLOT, all);
	if (!ret)
		memset(own->memory.bytes, 0, own->memory.len);
	return ret;
}

static void free_own(struct pair_end *e)
{
	struct own *own = own_of(e);

	if (!own)
		return;
	region_free(e->program, &own->memory);
	region_free(e->program, &own->unflushable);
	free(own);
	e->own = NULL;
}

/* --- asking --- */

static uint64_t place_at(uint32_t place)
{
	return (uint64_t)(place + 1) * PAIR_SLOT;
}

/* how much WRITE @number writes, and what */
static uint32_t length_of(uint64_t number)
{
	return 8 + (uint32_t)(number * 0x9e3779b97f4a7c15u >> 32) % (PAIR_SLOT - 8);
}

static void content_of(uint8_t *to, uint64_t number)
{
	pair_fill(to, length_of(number), number);
	memcpy(to, &number, 8);
}

static void write_place(struct pair_end *e, const struct own *peer)
{
	struct own *own = own_of(e);
	uint32_t place = rng_below(&e->rng, PLACES);
	uint64_t number = ++own->numbers;
	struct pair_request what = {.verb = WRITE, .which = (uint8_t)place, .value = number,
				    .bytes = length_of(number), .fenced = rng_chance(&e->rng, 10)};
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE};

	content_of(pair_slot(e, e->sq_tail), number);
	own->posted.number[place] = number;
	wr.wr.rdma.remote_addr = peer->memory.iova + place_at(place);
	wr.wr.rdma.rkey = peer->memory.key;
	pair_post(e, &wr, what);
}

static void store_flag(struct pair_end *e, const struct own *peer, bool wrong)
{
	struct own *own = own_of(e);
	struct pair_request what = {.verb = FLAG, .must_fail = wrong, .bytes = 8,
				    .value = own->flags + !wrong};
	struct ibv_send_wr wr = {.opcode = IBV_WR_ATOMIC_WRITE};

	own->flags = what.value;
	if (!wrong)
		own->of_flag[what.value % NEEDS] = own->posted;
	memcpy(pair_slot(e, e->sq_tail), &what.value, 8);
	wr.wr.rdma.remote_addr = peer->memory.iova + (wrong ? 4 : 0);
	wr.wr.rdma.rkey = peer->memory.key;
	pair_post(e, &wr, what);
}

static void flush(struct pair_end *e, const struct own *peer, bool wrong)
{
	struct own *own = own_of(e);
	bool all = rng_chance(&e->rng, 30);
	uint32_t at = (uint32_t)place_at(rng_below(&e->rng, PLACES)), length = PAIR_SLOT;
	struct pair_request what = {.verb = FLUSH, .must_fail = wrong, .at = all ? 0 : at,
				    .gen = all ? (uint32_t)peer->memory.len : length};
	const struct region *r = wrong && rng_chance(&e->rng, 50) ? &peer->unflushable : &peer->memory;
	struct ibv_send_wr wr = {0};

	if (r == &peer->unflushable)
		at = 0;
	else if (wrong)
		length = (uint32_t)peer->memory.len;
	all &= !wrong;
	own->of_request[e->sq_tail % PAIR_SQ] = own->posted;
	eng_flush_wr(&wr, r->key, r->iova + at, length, WIRE_FLUSH_GLOBAL,
		     all ? WIRE_FLUSH_MR : WIRE_FLUSH_RANGE);
	pair_post(e, &wr, what);
}

static void read_flag(struct pair_end *e, const struct own *peer)
{
	struct pair_request what = {.verb = READ, .bytes = 8, .value = own_of(e)->flags};
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_READ};

	memset(pair_slot(e, e->sq_tail), PAIR_UNREAD, 8);
	wr.wr.rdma.remote_addr = peer->memory.iova;
	wr.wr.rdma.rkey = peer->memory.key;
	pair_post(e, &wr, what);
}

static void act(struct pair_end *e)
{
	const struct own *peer = own_of(pair_peer(e));
	bool wrong = pair_may_break_rules(e) && rng_chance(&e->rng, 1);
	uint32_t what = rng_below(&e->rng, 100), n = 1 + rng_below(&e->rng, 5);

	if (!peer)
		return;
	if (what < 40)
		while (n--)
			write_place(e, peer);
	else if (what < 65)
		store_flag(e, peer, wrong);
	else if (what < 90)
		flush(e, peer, wrong);
	else
		read_flag(e, peer);
}

/* --- what comes of it --- */

/* is WRITE @number, or a later one, in the place of @own? */
static void check_place(const struct pair_end *e, const struct own *own, uint32_t place,
			uint64_t number, const char *who)
{
	const uint8_t *at = own->memory.bytes + place_at(place);
	uint8_t want[PAIR_SLOT];
	uint64_t there;

	memcpy(&there, at, 8);
	content_of(want, number);
	if (there < number || sim_sabotage(e->pair->sim, ORACLE_PLACED) ||
	    (number && there == number && memcmp(at, want, length_of(number))))
		sim_fail(e->pair->sim, ORACLE_PLACED,
			 "pair %d.%d: %s is there, and WRITE %llu, which was before it, is not",
			 e->pair->index, e->side, who, (unsigned long long)number);
}

static void succeeded(struct pair_end *e, const struct pair_request *r)
{
	const struct own *peer = own_of(pair_peer(e));
	const struct need *need = &own_of(e)->of_request[e->sq_head % PAIR_SQ];
	uint64_t value;

	if (!peer || !pair_peer(e)->program->alive)
		return;
	for (uint32_t i = 0; r->verb == FLUSH && i < PLACES; i++)
		if (place_at(i) >= r->at && place_at(i) < r->at + r->gen)
			check_place(e, peer, i, need->number[i], "the answer of a FLUSH");
	memcpy(&value, r->verb == READ ? pair_slot(e, e->sq_head) : peer->memory.bytes, 8);
	if ((r->verb == READ || r->verb == FLAG) && (value < r->value || value > own_of(e)->flags))
		sim_fail(e->pair->sim, ORACLE_PLACED, "pair %d.%d: the flag is %llx, and was %llx",
			 e->pair->index, e->side, (unsigned long long)value,
			 (unsigned long long)r->value);
}

static bool may_fail(struct pair_end *e, const struct pair_request *r, enum ibv_wc_status status)
{
	return r->must_fail &&
	       status == (r->verb == FLAG ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_REM_ACCESS_ERR);
}

static void look(struct pair_end *e)
{
	struct own *own = own_of(e);
	const struct own *peer = own_of(pair_peer(e));
	uint64_t flag;

	memcpy(&flag, own->memory.bytes, 8);
	if (!peer || flag == own->flag_seen)
		return;
	if (flag < own->flag_seen || flag > peer->flags)
		sim_fail(e->pair->sim, ORACLE_PLACED, "pair %d.%d: the flag is %llx after %llx",
			 e->pair->index, e->side, (unsigned long long)flag,
			 (unsigned long long)own->flag_seen);
	own->flag_seen = flag;
	for (uint32_t i = 0; i < PLACES; i++)
		check_place(e, own, i, peer->of_flag[flag % NEEDS].number[i], "a flag");
}

static void received(struct pair_end *e, const struct ibv_wc *wc, const uint8_t *bytes)
{
	sim_fail(e->pair->sim, ORACLE_ORDER, "pair %d.%d: a message that nobody sent", e->pair->index,
		 e->side);
}

const struct pair_ops pair_placement_ops = {.make = make,
					    .free = free_own,
					    .act = act,
					    .look = look,
					    .succeeded = succeeded,
					    .may_fail = may_fail,
					    .received = received};
