/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Memory windows (10.6.6, 10.6.7): each end binds windows of both types to parts of a region, tells
 * its peer their keys by SENDs behind the binds, and frees them again: by LOCAL_INV, by a bind to
 * nothing or to another part, or because the peer says so (SEND_WITH_INV). The peer writes, reads
 * and counts by these keys, which go by packets, and by the key of a plain region, for which
 * data-path windows may be granted; so both ways mix in one queue.
 *
 * What is verified (oracle "bound"): a key that is bound serves; one that is not, not yet or no
 * more, serves nobody, so that after the completion of what freed it the memory does not change and
 * what is asked for later fails; nor does a bound one beyond its range and rights. What the peer
 * sent before a message is there when it arrives, whichever way it went. A fenced bind takes
 * effect behind the answers of the READs and atomics before it (fence).
 */
#include <stdlib.h>
#include <string.h>

#include "engine/private.h"
#include "pair.h"

#define WINDOWS	 4
#define AREAS	 (WINDOWS + 1) /* what an end writes at its peer: its windows, its plain region */
#define PLAIN	 WINDOWS
#define AREA	 PAIR_SLOT

enum verb { BIND, FREE, ANNOUNCE, SEND_INV, WRITE, READ, ADD };

/** struct mw - a window, as its owner sees it */
struct mw {
	struct ibv_mw ibv; /* its key from the last bind on */
	enum ibv_mw_type type;
	uint32_t handle;
	/* --- of the last bind --- */
	uint32_t gen; /* 0: none yet */
	bool bound;   /* it has completed */
	bool ending;  /* what frees it was posted here */
	bool ended;   /* and has completed, or the peer did it: nobody reaches the memory */
	uint32_t at, bytes;
	int access;
	uint8_t poison;
	uint8_t frozen[AREA]; /* of its memory, when it ended */
};

/** struct announcement - the message that tells a key */
struct announcement {
	uint32_t window, gen, key, bytes;
	uint64_t va;
	int access;
	uint32_t number;
};

/** struct known - what an end knows of memory at its peer, which it alone writes */
struct known {
	struct announcement key;
	bool freed; /* a SEND_WITH_INV was posted */
	uint32_t changes, uses;
	uint8_t shadow[AREA];
};

struct own {
	struct mw mw[WINDOWS];
	struct region pool, plain;
	uint32_t told, heard; /* announcements: sent, received */
	struct known area[AREAS];
	/* at the last WRITE of the plain region: its first word, and what was before it */
	uint64_t order_word;
	uint32_t order[AREAS];
};

static struct own *own_of(const struct pair_end *e)
{
	return e->own;
}

static uint8_t *memory_of(const struct own *own, uint32_t area)
{
	return area == PLAIN ? own->plain.bytes : own->pool.bytes + (size_t)area * AREA;
}

/* where the part of it that the peer reaches begins */
static uint8_t *part_of(const struct own *own, uint32_t area)
{
	return memory_of(own, area) + (area == PLAIN ? 0 : own->mw[area].at);
}

_Noreturn static void wrong(const struct pair_end *e, uint32_t window, const char *what)
{
	sim_fail(e->pair->sim, ORACLE_BOUND, "pair %d.%d: memory window %u, bind %u: %s", e->pair->index,
		 e->side, window, own_of(e)->mw[window].gen, what);
}

/* --- objects --- */

static void *make_mw(struct ib_uobject *u, void *arg)
{
	const struct pair_end *e = arg;
	const struct mw *mw = &own_of(e)->mw[own_of(e)->told];

	return ib_alloc_mw_user(u, e->program->pd, (enum ib_mw_type)mw->type);
}

static int make(struct pair_end *e)
{
	const int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
			IBV_ACCESS_REMOTE_ATOMIC;
	struct own *own = e->own = calloc(1, sizeof(*own));
	int ret = region_make(e->program, &own->pool, WINDOWS * AREA,
			      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);

	ret = ret ?: region_make(e->program, &own->plain, AREA, all);
	for (; !ret && own->told < WINDOWS; own->told++) {
		struct mw *mw = &own->mw[own->told];
		struct ib_mw *ib;

		mw->type = own->told % 2 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2;
		ib = program_object(e->program, IB_UOBJECT_MW, &mw->handle, make_mw, e);
		ret = ib ? 0 : -ENOMEM;
		if (!ib)
			break;
		mw->ibv.rkey = ib->rkey;
		ret = eng_mw_add(e->program->soft.engine, ib->rkey, 1, mw->type);
		if (ret)
			ib_uobject_destroy(e->program->context, IB_UOBJECT_MW, mw->handle);
	}
	if (ret)
		return ret;
	memset(own->plain.bytes, 0, AREA);
	own->told = 0;
	return 0;
}

static void free_windows(struct pair_end *e, enum ibv_mw_type type)
{
	for (uint32_t i = 0; i < WINDOWS; i++) {
		struct mw *mw = &own_of(e)->mw[i];

		if (mw->type != type || !mw->ibv.rkey)
			continue;
		eng_mw_del(e->program->soft.engine, mw->ibv.rkey);
		ib_uobject_destroy(e->program->context, IB_UOBJECT_MW, mw->handle);
	}
}

static void free_own(struct pair_end *e)
{
	struct own *own = own_of(e);

	if (!own)
		return;
	if (e->program->alive) {
		free_windows(e, IBV_MW_TYPE_1);
		/* the QP that bound the others is gone */
		if (own->pool.block && eng_mr_is_bound(e->program->soft.engine, own->pool.key))
			wrong(e, 0, "one of type 2 is bound, and its QP is gone");
		free_windows(e, IBV_MW_TYPE_2);
	}
	region_free(e->program, &own->pool);
	region_free(e->program, &own->plain);
	free(own);
	e->own = NULL;
}

/* --- as an owner --- */

static int draw_access(struct rng *r)
{
	static const int rights[] = {
		IBV_ACCESS_REMOTE_WRITE,
		IBV_ACCESS_REMOTE_READ,
		IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
		IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
	};

	return rights[rng_below(r, ARRAY_SIZE(rights))];
}

static void read_plain(struct pair_end *e);

static void post_bind(struct pair_end *e, uint32_t i, uint32_t bytes, uint8_t verb, bool fenced)
{
	struct own *own = own_of(e);
	struct mw *mw = &own->mw[i];
	struct ibv_mr mr = {.lkey = own->pool.key};
	uint32_t key = (mw->ibv.rkey & ~0xffu) | ((mw->ibv.rkey + 1) & 0xff);
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_BIND_MW,
		.bind_mw = {&mw->ibv, key,
			    {&mr, own->pool.iova + i * AREA + mw->at, bytes, (unsigned)mw->access}},
	};

	pair_post(e, &wr, (struct pair_request){.verb = verb, .which = (uint8_t)i, .gen = mw->gen,
						.value = key, .fenced = fenced});
	mw->ibv.rkey = key;
}

static void announce(struct pair_end *e, uint32_t i)
{
	struct own *own = own_of(e);
	const struct mw *mw = &own->mw[i];
	struct announcement a = {
		.window = i,
		.gen = mw->gen,
		.key = mw->ibv.rkey,
		.bytes = mw->bytes,
		.va = mw->access & IBV_ACCESS_ZERO_BASED ? 0 : own->pool.iova + i * AREA + mw->at,
		.access = mw->access,
		.number = own->told++,
	};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND,
				 .send_flags = rng_chance(&e->rng, 50) ? IBV_SEND_INLINE : 0};

	memcpy(pair_slot(e, e->sq_tail), &a, sizeof(a));
	pair_post(e, &wr, (struct pair_request){.verb = ANNOUNCE, .bytes = sizeof(a)});
}

static void bind(struct pair_end *e, uint32_t i)
{
	struct mw *mw = &own_of(e)->mw[i];
	uint8_t *memory = memory_of(own_of(e), i);
	bool fenced = rng_chance(&e->rng, 40);

	mw->gen++;
	mw->bound = mw->ending = mw->ended = false;
	mw->at = 8 * rng_below(&e->rng, AREA / 16);
	mw->bytes = 8 + rng_below(&e->rng, AREA - mw->at - 8);
	mw->access = draw_access(&e->rng);
	if (mw->type == IBV_MW_TYPE_2 && rng_chance(&e->rng, 25))
		mw->access |= IBV_ACCESS_ZERO_BASED;
	mw->poison = 0x80 | (uint8_t)rng_below(&e->rng, 0x40);
	memset(memory, mw->poison, AREA);
	if (fenced)
		read_plain(e);
	post_bind(e, i, mw->bytes, BIND, fenced);
	announce(e, i);
}

static void free_it(struct pair_end *e, uint32_t i)
{
	struct mw *mw = &own_of(e)->mw[i];
	struct ibv_send_wr inv = {.opcode = IBV_WR_LOCAL_INV, .invalidate_rkey = mw->ibv.rkey};
	bool fenced = rng_chance(&e->rng, 30);

	mw->ending = true;
	if (mw->type == IBV_MW_TYPE_1)
		post_bind(e, i, 0, FREE, fenced);
	else
		pair_post(e, &inv, (struct pair_request){.verb = FREE, .which = (uint8_t)i, .gen = mw->gen,
							 .fenced = fenced});
}

/* what the peer knows of window @i, if it is the bind that is in force */
static struct known *users_of(const struct pair_end *e, uint32_t i)
{
	struct own *peer = own_of(pair_peer(e));

	return peer && peer->area[i].key.gen == own_of(e)->mw[i].gen ? &peer->area[i] : NULL;
}

/* nobody has access from now on */
static void ended(struct pair_end *e, uint32_t i)
{
	struct mw *mw = &own_of(e)->mw[i];
	uint8_t *memory = memory_of(own_of(e), i);

	mw->ended = true;
	for (uint32_t k = 0; k < AREA; k++)
		if ((k < mw->at || k >= mw->at + mw->bytes) && memory[k] != mw->poison)
			wrong(e, i, "bytes beside its part were written");
	memcpy(mw->frozen, memory, AREA);
	if (sim_sabotage(e->pair->sim, ORACLE_BOUND))
		memory[mw->at] ^= 1;
}

static void own_act(struct pair_end *e)
{
	uint32_t i = rng_below(&e->rng, WINDOWS);
	struct mw *mw = &own_of(e)->mw[i];
	const struct known *users = users_of(e, i);

	if (!mw->gen || mw->ended) {
		/* a SEND_WITH_INV of the old key may be on its way */
		if (!mw->ending || !users || !users->freed)
			bind(e, i);
	} else if (mw->bound && !mw->ending && users && !users->freed) {
		/* who asks now may be refused */
		if (users->uses && !(pair_may_break_rules(e) && rng_chance(&e->rng, 20)))
			return;
		if (mw->type == IBV_MW_TYPE_1 && !users->uses && rng_chance(&e->rng, 50))
			bind(e, i);
		else
			free_it(e, i);
	}
}

/* --- as a user --- */

static void note_change(struct known *area, uint32_t at, const void *bytes, uint32_t len)
{
	memcpy(area->shadow + at, bytes, len);
	area->changes++;
}

static void post_use(struct pair_end *e, struct ibv_send_wr *wr, struct pair_request what, uint64_t va,
		     uint32_t key)
{
	struct own *own = own_of(e);

	if (wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr->wr.atomic.remote_addr = va;
		wr->wr.atomic.rkey = key;
	} else {
		wr->wr.rdma.remote_addr = va;
		wr->wr.rdma.rkey = key;
	}
	own->area[what.which].uses++;
	what.gen = own->area[what.which].key.gen;
	what.changes = own->area[what.which].changes;
	pair_post(e, wr, what);
}

static void write_to(struct pair_end *e, struct pair_request what, uint64_t va, uint32_t key)
{
	struct known *area = &own_of(e)->area[what.which];
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE};

	what.verb = WRITE;
	what.value = rng_next(&e->rng) >> 8;
	pair_fill(pair_slot(e, e->sq_tail), what.bytes, what.value);
	if (what.bytes <= 64 && rng_chance(&e->rng, 30))
		wr.send_flags = IBV_SEND_INLINE;
	if (!what.must_fail)
		note_change(area, what.at, pair_slot(e, e->sq_tail), what.bytes);
	post_use(e, &wr, what, va, key);
}

static void read_from(struct pair_end *e, struct pair_request what, uint64_t va, uint32_t key)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_READ};

	what.verb = READ;
	memset(pair_slot(e, e->sq_tail), PAIR_UNREAD, what.bytes);
	post_use(e, &wr, what, va, key);
}

static void add_to(struct pair_end *e, struct pair_request what, uint64_t va, uint32_t key)
{
	struct known *area = &own_of(e)->area[what.which];
	struct ibv_send_wr wr = {.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD};
	uint64_t sum;

	what.verb = ADD;
	what.bytes = 8;
	memcpy(&what.value, area->shadow + what.at, 8);
	wr.wr.atomic.compare_add = 1;
	sum = what.value + 1;
	memset(pair_slot(e, e->sq_tail), PAIR_UNREAD, 8);
	if (!what.must_fail)
		note_change(area, what.at, &sum, 8);
	post_use(e, &wr, what, va, key);
}

static void read_plain(struct pair_end *e)
{
	const struct own *peer = own_of(pair_peer(e));

	read_from(e, (struct pair_request){.which = PLAIN, .bytes = 1 + rng_below(&e->rng, AREA - 1)},
		  peer->plain.iova, peer->plain.key);
}

static void use_plain(struct pair_end *e)
{
	struct own *own = own_of(e);
	const struct own *peer = own_of(pair_peer(e));

	if (rng_chance(&e->rng, 30)) {
		read_plain(e);
		return;
	}
	for (uint32_t i = 0; i < WINDOWS; i++)
		own->order[i] = own->area[i].changes;
	write_to(e, (struct pair_request){.which = PLAIN, .bytes = 8 + rng_below(&e->rng, AREA - 8)},
		 peer->plain.iova, peer->plain.key);
	memcpy(&own->order_word, own->area[PLAIN].shadow, 8);
}

/* is the bind that @area tells of in force now? */
static bool in_force(const struct pair_end *e, uint32_t i)
{
	const struct known *area = &own_of(e)->area[i];
	const struct mw *mw = &own_of(pair_peer(e))->mw[i];

	return area->key.gen && mw->gen == area->key.gen && !mw->ending && !mw->ended && !area->freed;
}

/* is it known that it is not, and never again? */
static bool is_over(const struct pair_end *e, uint32_t i, uint32_t gen)
{
	const struct known *area = &own_of(e)->area[i];
	const struct mw *mw = &own_of(pair_peer(e))->mw[i];

	return mw->gen != gen ? mw->bound : mw->ended || (area->freed && area->key.gen == gen);
}

static void use(struct pair_end *e, uint32_t i, bool must_fail)
{
	const struct announcement *key = &own_of(e)->area[i].key;
	struct pair_request what = {.which = (uint8_t)i, .must_fail = must_fail,
				    .fenced = rng_chance(&e->rng, 15)};
	uint32_t verb = rng_below(&e->rng, 3);
	int needed[] = {IBV_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_READ, IBV_ACCESS_REMOTE_ATOMIC};
	bool beyond = false;

	if (pair_may_break_rules(e) && rng_chance(&e->rng, 1)) {
		what.must_fail = true;
		beyond = key->access & needed[verb] && verb < 2;
		if (key->access & needed[verb] && !beyond)
			return;
	} else if (!(key->access & needed[verb])) {
		return;
	}
	what.at = 8 * rng_below(&e->rng, key->bytes / 8);
	what.bytes = 1 + rng_below(&e->rng, key->bytes - what.at);
	if (beyond)
		what.bytes = MIN(key->bytes - what.at + 1, PAIR_SLOT);
	if (what.at + 8 > key->bytes && verb == 2)
		return;
	(verb == 0 ? write_to : verb == 1 ? read_from : add_to)(e, what, key->va + what.at, key->key);
}

static void send_invalidate(struct pair_end *e, uint32_t i)
{
	struct known *area = &own_of(e)->area[i];
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND_WITH_INV, .invalidate_rkey = area->key.key};

	memcpy(pair_slot(e, e->sq_tail), &area->key, sizeof(area->key));
	pair_post(e, &wr, (struct pair_request){.verb = SEND_INV, .which = (uint8_t)i, .gen = area->key.gen,
						.bytes = sizeof(area->key)});
	area->freed = true;
}

static void user_act(struct pair_end *e)
{
	uint32_t i = rng_below(&e->rng, WINDOWS);
	const struct known *area = &own_of(e)->area[i];
	const struct mw *mw = &own_of(pair_peer(e))->mw[i];
	bool late;

	if (in_force(e, i)) {
		if (mw->type == IBV_MW_TYPE_2 && rng_chance(&e->rng, 20))
			send_invalidate(e, i);
		else
			use(e, i, false);
		return;
	}
	late = area->key.gen && (is_over(e, i, area->key.gen) || (mw->gen == area->key.gen && mw->ending));
	if (late && pair_may_break_rules(e) && rng_chance(&e->rng, 8))
		use(e, i, is_over(e, i, area->key.gen));
}

/* --- what comes of it --- */

static void check_use(struct pair_end *e, const struct pair_request *r)
{
	struct own *own = own_of(e);
	const struct own *peer = own_of(pair_peer(e));
	const struct known *area = &own->area[r->which];
	const uint8_t *slot = pair_slot(e, e->sq_head);
	uint64_t was;

	if (r->verb == ADD) {
		memcpy(&was, slot, 8);
		if (was != r->value)
			wrong(e, r->which, "an atomic saw another number than was due");
	}
	if (r->gen != area->key.gen || area->changes != r->changes)
		return;
	if (r->verb == READ && memcmp(slot, area->shadow + r->at, r->bytes))
		wrong(e, r->which % WINDOWS, "a READ did not see what was written before");
	if (r->verb == WRITE && pair_peer(e)->eng && pair_peer(e)->program->alive &&
	    (r->which == PLAIN || in_force(e, r->which)) &&
	    memcmp(part_of(peer, r->which) + r->at, area->shadow + r->at, r->bytes))
		wrong(e, r->which % WINDOWS, "a WRITE that completed is not there");
}

static void succeeded(struct pair_end *e, const struct pair_request *r)
{
	struct own *own = own_of(e);

	switch (r->verb) {
	case BIND:
		own->mw[r->which].bound |= own->mw[r->which].gen == r->gen;
		break;
	case FREE:
		if (own->mw[r->which].gen == r->gen && !own->mw[r->which].ended)
			ended(e, r->which);
		break;
	case WRITE:
	case READ:
	case ADD:
		check_use(e, r);
		own->area[r->which].uses -= r->gen == own->area[r->which].key.gen;
		break;
	default:
		break;
	}
}

static bool may_fail(struct pair_end *e, const struct pair_request *r, enum ibv_wc_status status)
{
	const struct own *peer = own_of(pair_peer(e));
	const struct mw *mw;

	if (status != IBV_WC_REM_ACCESS_ERR || r->verb < WRITE || r->which == PLAIN)
		return false;
	if (r->must_fail || !peer)
		return true;
	mw = &peer->mw[r->which];
	return mw->gen != r->gen || mw->ending || mw->ended;
}

static void heard(struct pair_end *e, const struct announcement *a)
{
	struct own *own = own_of(e);
	struct known *area = &own->area[a->window % WINDOWS];

	if (a->number != own->heard++ || a->window >= WINDOWS || a->gen != area->key.gen + 1)
		wrong(e, 0, "the peer's announcements arrive in another order");
	*area = (struct known){.key = *a, .changes = area->changes + 1};
	memset(area->shadow, own_of(pair_peer(e))->mw[a->window].poison, AREA);
}

static void invalidated(struct pair_end *e, const struct ibv_wc *wc, const struct announcement *a)
{
	struct own *own = own_of(e);
	struct mw *mw = &own->mw[a->window % WINDOWS];
	const struct known *users = users_of(e, a->window % WINDOWS);

	if (wc->invalidated_rkey != a->key || a->key != mw->ibv.rkey || a->gen != mw->gen)
		wrong(e, a->window % WINDOWS, "another key was invalidated than the peer said");
	if (!mw->ended && users &&
	    memcmp(part_of(own, a->window), users->shadow, mw->bytes))
		wrong(e, a->window, "it was invalidated, and what was written before is not there");
	mw->ending = true;
	if (!mw->ended)
		ended(e, a->window);
	/* the message has arrived: nothing of this bind is on its way */
	if (users)
		own_of(pair_peer(e))->area[a->window].freed = true;
	mw->ending = false;
}

static void received(struct pair_end *e, const struct ibv_wc *wc, const uint8_t *bytes)
{
	struct announcement a;

	memcpy(&a, bytes, sizeof(a));
	if (wc->byte_len != sizeof(a))
		wrong(e, 0, "a message has another length");
	if (wc->wc_flags & IBV_WC_WITH_INV)
		invalidated(e, wc, &a);
	else if (!own_of(pair_peer(e)))
		return;
	else
		heard(e, &a);
}

/* --- after each turn --- */

static bool took_effect(const struct pair_end *e, const struct pair_request *r)
{
	const struct mw *mw = &own_of(e)->mw[r->which];
	const struct eng_mr *mr = eng_table_get(&e->program->soft.engine->mrs, mw->ibv.rkey >> 8);

	return r->verb == BIND && mr->attr.key == (uint32_t)r->value && mr->attr.access;
}

static void check_fences(struct pair_end *e)
{
	uint32_t unanswered = e->sq_tail;

	for (uint32_t i = e->sq_head; i != e->sq_tail; i++) {
		const struct pair_request *r = &e->sq[i % PAIR_SQ];

		if ((r->verb == READ || r->verb == ADD) && unanswered == e->sq_tail && !pair_answered(e, i))
			unanswered = i;
		if (r->fenced && unanswered != e->sq_tail && took_effect(e, r))
			sim_fail(e->pair->sim, ORACLE_FENCE,
				 "pair %d.%d: bind %u took effect, request %u before its fence has no answer",
				 e->pair->index, e->side, i, unanswered);
	}
}

/* the peer's plain region was written last of all: what was before it is there */
static void check_order(struct pair_end *e)
{
	struct own *own = own_of(e), *peer = own_of(pair_peer(e));
	uint64_t word;

	memcpy(&word, own->plain.bytes, 8);
	if (!peer || !word || word != peer->order_word)
		return;
	for (uint32_t i = 0; i < WINDOWS; i++)
		if (peer->area[i].changes == peer->order[i] && in_force(pair_peer(e), i) &&
		    memcmp(part_of(own, i), peer->area[i].shadow, own->mw[i].bytes))
			wrong(e, i, "a later WRITE to other memory has overtaken one");
}

static void look(struct pair_end *e)
{
	struct own *own = own_of(e);

	for (uint32_t i = 0; i < WINDOWS; i++)
		if (own->mw[i].ended && memcmp(own->mw[i].frozen, memory_of(own, i), AREA))
			wrong(e, i, "its memory was written after it was freed");
	if (!e->failed && !e->struck) {
		check_fences(e);
		check_order(e);
	}
}

static void act(struct pair_end *e)
{
	uint32_t what = rng_below(&e->rng, 100);

	if (!own_of(pair_peer(e)))
		return;
	if (what < 30)
		own_act(e);
	else if (what < 80)
		user_act(e);
	else
		use_plain(e);
}

const struct pair_ops pair_mw_ops = {make, free_own, act, look, succeeded, may_fail, received};
