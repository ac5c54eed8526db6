/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * XRC (annex A14): each end has an initiator, and a target that serves the SRQs of a domain: two of
 * its own program, and one of another program of the node, if there is one, which has joined the
 * domain and receives by the same target. One more SRQ of the program is of another domain.
 *
 * What is verified: a message takes the next receive of the SRQ that it names, in the program of
 * that SRQ, in order and once, with its bytes; READs and atomics reach the memory of that program.
 * Requests that name an SRQ of another domain, or none, fail (violation); whoever fails otherwise
 * has a cause (reliable).
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "conn.h"
#include "pair.h"

#define FOREIGN 2 /* of another domain */
#define OTHERS	3 /* of another program */
#define SRQS	4
#define COUNTER 0 /* in memory: a number that the peer counts up, what it reads, what it writes */
#define FIXED	64
#define WRITTEN 512
#define PART	448

enum verb { SEND, SEND_IMM, WRITE_IMM, READ, ADD };

/** struct expected - a message that is on its way to an SRQ */
struct expected {
	uint64_t value;
	uint32_t bytes;
	uint8_t verb;
};

struct xsrq {
	struct program *program; /* NULL: it is not there */
	struct ib_xrcd *xrcd;
	struct ib_srq *srq;
	struct eng_srq *eng;
	uint32_t xrcd_handle, srq_handle;
	struct region rx, memory;
	uint32_t rq_head, rq_tail;
	struct expected expected[2 * PAIR_SQ]; /* from the peer */
	uint32_t first, last;
	uint64_t counted;
};

struct own {
	struct xsrq srq[SRQS];
};

static struct own *own_of(const struct pair_end *e)
{
	return e->own;
}

/* --- objects --- */

/** struct making - what the functions that make objects work on */
struct making {
	struct pair_end *e;
	struct xsrq *x;
	bool foreign;
};

static void *make_xrcd(struct ib_uobject *u, void *arg)
{
	const struct making *m = arg;
	struct ib_xrcd_file file = {1, (u64)(m->e->pair->index * 2 + m->e->side + 1)};

	return ib_alloc_xrcd_user(u, m->foreign ? NULL : &file, O_CREAT);
}

static void *make_srq(struct ib_uobject *u, void *arg)
{
	const struct making *m = arg;
	struct ib_srq_init_attr attr = {.attr = {.max_wr = PAIR_RQ, .max_sge = 1},
					.xrcd = m->x->xrcd,
					.cq = m->x->program->cq};

	return ib_create_srq_user(u, m->x->program->pd, &attr);
}

static void *make_target(struct ib_uobject *u, void *arg)
{
	struct ib_qp_init_attr attr = {.qp_type = IB_QPT_XRC_TGT, .xrcd = own_of(arg)->srq[0].xrcd};

	return ib_create_qp_user(u, NULL, &attr);
}

static void post_recv(struct pair_end *e, struct xsrq *x)
{
	uint32_t slot = x->rq_tail % PAIR_RQ;
	struct ibv_sge sge = {x->rx.iova + slot * PAIR_SLOT, PAIR_SLOT, x->rx.key};
	struct ibv_recv_wr wr = {.wr_id = pair_recv_id(e, x->rq_tail) |
					  (uint64_t)(x - own_of(e)->srq) << 32,
				 .sg_list = &sge,
				 .num_sge = 1}, *bad;

	if (eng_srq_post_recv(x->eng, &wr, &bad))
		sim_fail(e->pair->sim, ORACLE_ORDER, "pair %d.%d: a receive of an SRQ was refused",
			 e->pair->index, e->side);
	x->rq_tail++;
}

static int make_one(struct pair_end *e, struct xsrq *x, struct program *p)
{
	struct making m = {e, x, x == &own_of(e)->srq[FOREIGN]};
	int ret = region_make(p, &x->rx, PAIR_RQ * PAIR_SLOT, IBV_ACCESS_LOCAL_WRITE);

	x->program = p;
	ret = ret ?: region_make(p, &x->memory, PAIR_SLOT,
				 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
					 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	if (ret)
		return ret;
	memset(x->memory.bytes, 0, PAIR_SLOT);
	pair_fill(x->memory.bytes + FIXED, PART, x->memory.iova);
	x->xrcd = program_object(p, IB_UOBJECT_XRCD, &x->xrcd_handle, make_xrcd, &m);
	if (!x->xrcd)
		return -ENOMEM;
	x->srq = program_object(p, IB_UOBJECT_SRQ, &x->srq_handle, make_srq, &m);
	if (!x->srq)
		return -ENOMEM;
	ret = eng_srq_create(p->soft.engine, 1, PAIR_RQ, 1, 0, NULL, &x->eng);
	ret = ret ?: eng_srq_join_xrcd(x->eng, x->srq->srq_num, x->xrcd->domain->number, p->eng_cq);
	for (int i = 0; i < PAIR_RQ && !ret; i++)
		post_recv(e, x);
	return ret;
}

/* It may hold a target itself whose SRQs this one has, or send to this target. */
static struct program *find_other(const struct pair_end *e)
{
	const struct sim *sim = e->pair->sim;

	for (int i = 0; i < sim->plan->num_programs; i++) {
		struct program *p = sim->program[i];

		if (p != e->program && p->node == e->program->node && p->alive)
			return p;
	}
	return NULL;
}

static int make(struct pair_end *e)
{
	struct eng_qp_init init = {.type = IBV_QPT_XRC_RECV, .ctx = e};
	struct own *own = e->own = calloc(1, sizeof(*own));
	struct program *other = find_other(e);
	int ret = 0;

	for (int i = 0; i < SRQS && !ret; i++)
		if (i != OTHERS || other)
			ret = make_one(e, &own->srq[i], i == OTHERS ? other : e->program);
	if (ret)
		return ret;
	e->target.qp = program_object(e->program, IB_UOBJECT_QP, &e->target.handle, make_target, e);
	if (!e->target.qp)
		return -ENOMEM;
	init.qpn = e->target.qp->qp_num;
	init.xrcd = own->srq[0].xrcd->domain->number;
	return eng_qp_create(e->program->soft.engine, &init, &e->target.eng);
}

static void free_one(struct xsrq *x)
{
	struct program *p = x->program;

	if (!p)
		return;
	if (p->alive && x->eng)
		eng_srq_destroy(x->eng);
	if (p->alive && x->srq)
		ib_uobject_destroy(p->context, IB_UOBJECT_SRQ, x->srq_handle);
	if (p->alive && x->xrcd)
		ib_uobject_destroy(p->context, IB_UOBJECT_XRCD, x->xrcd_handle);
	region_free(p, &x->rx);
	region_free(p, &x->memory);
	x->program = NULL;
	x->srq = NULL;
	x->eng = NULL;
	x->xrcd = NULL;
}

static void free_own(struct pair_end *e)
{
	struct own *own = own_of(e);

	if (!own)
		return;
	if (e->program->alive && e->target.qp)
		ib_uobject_destroy(e->program->context, IB_UOBJECT_QP, e->target.handle);
	if (e->program->alive && e->target.eng)
		eng_target_close(e->target.eng, false);
	e->target = (struct pair_target){0};
	for (int i = SRQS; i--;)
		free_one(&own->srq[i]);
	free(own);
	e->own = NULL;
}

static bool of_dead(struct pair_end *e, struct program *p)
{
	struct own *own = own_of(e);
	bool touched = false;

	for (int i = 0; own && i < SRQS; i++) {
		if (own->srq[i].program != p || p == e->program)
			continue;
		free_one(&own->srq[i]);
		touched = true;
	}
	return touched;
}

/* --- asking --- */

static void name(struct ibv_send_wr *wr, const struct xsrq *x, uint32_t at, uint32_t key)
{
	wr->qp_type.xrc.remote_srqn = x->srq->srq_num;
	if (wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr->wr.atomic.remote_addr = x->memory.iova + at;
		wr->wr.atomic.rkey = key;
		wr->wr.atomic.compare_add = 1;
	} else {
		wr->wr.rdma.remote_addr = x->memory.iova + at;
		wr->wr.rdma.rkey = key;
	}
}

static void post_message(struct pair_end *e, struct ibv_send_wr *wr, struct pair_request what,
			 struct xsrq *x)
{
	what.value = rng_next(&e->rng) >> 8;
	what.bytes = 1 + rng_below(&e->rng, what.verb == WRITE_IMM ? PART : PAIR_SLOT);
	wr->imm_data = htobe32((uint32_t)what.value);
	if (what.bytes <= 64 && rng_chance(&e->rng, 50))
		wr->send_flags = IBV_SEND_INLINE;
	pair_fill(pair_slot(e, e->sq_tail), what.bytes, what.value);
	if (!what.must_fail)
		x->expected[x->last++ % (2 * PAIR_SQ)] =
			(struct expected){what.value, what.bytes, what.verb};
	pair_post(e, wr, what);
}

static void post_question(struct pair_end *e, struct ibv_send_wr *wr, struct pair_request what,
			  struct xsrq *x)
{
	what.bytes = what.verb == ADD ? 8 : 1 + rng_below(&e->rng, PART);
	if (what.verb == ADD && !what.must_fail)
		what.value = x->counted++;
	memset(pair_slot(e, e->sq_tail), PAIR_UNREAD, what.bytes);
	pair_post(e, wr, what);
}

static void ask(struct pair_end *e, struct xsrq *x, uint8_t which)
{
	static const enum ibv_wr_opcode opcodes[] = {
		[SEND] = IBV_WR_SEND, [SEND_IMM] = IBV_WR_SEND_WITH_IMM,
		[WRITE_IMM] = IBV_WR_RDMA_WRITE_WITH_IMM, [READ] = IBV_WR_RDMA_READ,
		[ADD] = IBV_WR_ATOMIC_FETCH_AND_ADD};
	static const uint32_t at[] = {[WRITE_IMM] = WRITTEN, [READ] = FIXED, [ADD] = COUNTER};
	struct pair_request what = {.verb = (uint8_t)rng_below(&e->rng, ARRAY_SIZE(opcodes)),
				    .which = which, .fenced = rng_chance(&e->rng, 10)};
	struct ibv_send_wr wr = {.opcode = opcodes[what.verb]};
	const struct xsrq *foreign = &own_of(pair_peer(e))->srq[FOREIGN];

	name(&wr, x, at[what.verb], x->memory.key);
	if (pair_may_break_rules(e) && rng_chance(&e->rng, 1)) {
		what.must_fail = true;
		wr.qp_type.xrc.remote_srqn =
			rng_chance(&e->rng, 50) ? foreign->srq->srq_num : 0x654321;
	}
	(what.verb <= WRITE_IMM ? post_message : post_question)(e, &wr, what, x);
}

static void act(struct pair_end *e)
{
	struct own *peer = own_of(pair_peer(e));
	uint32_t i = rng_below(&e->rng, SRQS), n = 1 + rng_below(&e->rng, 4);

	if (!peer || i == FOREIGN || !peer->srq[i].program)
		return;
	while (n--)
		ask(e, &peer->srq[i], (uint8_t)i);
}

/* --- what comes of it --- */

_Noreturn static void wrong(const struct pair_end *e, const struct xsrq *x, const char *what)
{
	sim_fail(e->pair->sim, ORACLE_XRC, "pair %d.%d: %s SRQ %x: %s", e->pair->index, e->side,
		 x == &own_of(e)->srq[OTHERS] ? "another program's" : "", x->srq->srq_num, what);
}

static void succeeded(struct pair_end *e, const struct pair_request *r)
{
	struct own *peer = own_of(pair_peer(e));
	const uint8_t *slot = pair_slot(e, e->sq_head);
	uint8_t bytes[PART];
	uint64_t was;

	if (r->verb == ADD) {
		memcpy(&was, slot, 8);
		if (was != r->value)
			sim_fail(e->pair->sim, ORACLE_DATA, "pair %d.%d: an atomic saw %llu, not %llu",
				 e->pair->index, e->side, (unsigned long long)was,
				 (unsigned long long)r->value);
	}
	if (r->verb != READ || !peer || !peer->srq[r->which].program)
		return;
	pair_fill(bytes, r->bytes, peer->srq[r->which].memory.iova);
	if (memcmp(bytes, slot, r->bytes))
		sim_fail(e->pair->sim, ORACLE_DATA, "pair %d.%d: a READ by XRC has other bytes",
			 e->pair->index, e->side);
}

static bool may_fail(struct pair_end *e, const struct pair_request *r, enum ibv_wc_status status)
{
	const struct own *peer = own_of(pair_peer(e));

	/* the program of that SRQ has died */
	if (status != IBV_WC_REM_INV_REQ_ERR)
		return false;
	return r->must_fail || !peer || !peer->srq[r->which].program;
}

static void check_message(struct pair_end *e, struct xsrq *x, const struct ibv_wc *wc,
			  const uint8_t *bytes)
{
	const struct expected *due = &x->expected[x->first % (2 * PAIR_SQ)];
	bool is_write = due->verb == WRITE_IMM, has_imm = due->verb != SEND;
	uint8_t want[PAIR_SLOT];

	if (x->first == x->last || sim_sabotage(e->pair->sim, ORACLE_XRC))
		wrong(e, x, "it took a message that was not for it, or once more");
	pair_fill(want, due->bytes, due->value);
	if (wc->byte_len != due->bytes || is_write != (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM) ||
	    has_imm != !!(wc->wc_flags & IBV_WC_WITH_IMM) ||
	    (has_imm && wc->imm_data != htobe32((uint32_t)due->value)) ||
	    (!is_write && memcmp(bytes, want, due->bytes)))
		wrong(e, x, "it took another message than was next");
	x->first++;
}

static void taken(struct pair_end *e, const struct ibv_wc *wc)
{
	struct xsrq *x = &own_of(e)->srq[wc->wr_id >> 32 & 0xf];
	uint32_t seq = (uint32_t)wc->wr_id;

	if (seq != x->rq_head++)
		wrong(e, x, "its receives complete in another order");
	if (!e->target.qp || wc->qp_num != e->target.qp->qp_num)
		wrong(e, x, "a receive names another QP than the target");
	if (wc->status == IBV_WC_SUCCESS)
		check_message(e, x, wc, x->rx.bytes + (size_t)(seq % PAIR_RQ) * PAIR_SLOT);
	else if (!pair_peer(e)->failed && !e->struck && e->pair->state == PAIR_UP)
		wrong(e, x, "a receive failed without cause");
	post_recv(e, x);
}

static void aim(struct pair_end *e, struct ibv_send_wr *wr)
{
	const struct own *peer = own_of(pair_peer(e));

	if (peer)
		wr->qp_type.xrc.remote_srqn = peer->srq[0].srq->srq_num;
}

static bool settled(struct pair_end *e)
{
	for (int i = 0; i < SRQS; i++)
		if (own_of(e)->srq[i].first != own_of(e)->srq[i].last)
			return false;
	return true;
}

static void look(struct pair_end *e)
{
}

const struct pair_ops pair_xrc_ops = {
	.make = make,
	.free = free_own,
	.act = act,
	.look = look,
	.succeeded = succeeded,
	.may_fail = may_fail,
	.taken = taken,
	.aim = aim,
	.settled = settled,
	.of_dead = of_dead,
};
