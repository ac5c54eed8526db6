/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Pairs of programs: their QPs, the books of their requests, and their repair. Connections
 * (conn.c) are made and end in the same way.
 */
#include "pair.h"

#include <string.h>

#include "conn.h"

#define RETRY_NS   (2 * NSEC_PER_MSEC)
#define DEATH_NS   (300 * NSEC_PER_MSEC)
#define ACTS	   120 /* of an end, while faults act */
#define CALM_ACTS  20
#define CALM_NS	   (100 * NSEC_PER_USEC)
#define PROBE	   0xff /* a WRITE of no bytes, the last request of all */
#define FLOW_FIRST (2 * PLAN_CONNS) /* window_flow.index */

static const struct pair_ops *const kinds[PLAN_PAIRS] = {&pair_mw_ops, &pair_xrc_ops,
						   &pair_placement_ops, &pair_tags_ops};
static struct pair pairs[PLAN_PAIRS];
static struct sim *running; /* NULL: there are none */

static bool expects_no_error(const struct pair *pair)
{
	return plan_is_faultless(pair->sim->plan->kind) || pair->made_in_calm;
}

bool pair_may_break_rules(const struct pair_end *e)
{
	return e->pair->sim->plan->kind != KIND_CALM && !e->pair->sim->calm;
}

/* --- bytes --- */

uint64_t pair_word(uint64_t value)
{
	uint8_t bytes[8];
	uint64_t word;

	pair_fill(bytes, sizeof(bytes), value);
	memcpy(&word, bytes, sizeof(word));
	return word;
}

void pair_fill(uint8_t *to, uint32_t len, uint64_t value)
{
	for (uint32_t i = 0; i < len; i++)
		to[i] = (i < 8 ? value >> 7 * i : value * 31 + i * 7) & 0x7f;
}

uint8_t *pair_slot(const struct pair_end *e, uint32_t seq)
{
	return e->src.bytes + (size_t)(seq % PAIR_SQ) * PAIR_SLOT;
}

bool pair_answered(const struct pair_end *e, uint32_t seq)
{
	return pair_slot(e, seq)[e->sq[seq % PAIR_SQ].bytes - 1] != PAIR_UNREAD;
}

/* --- posting --- */

void pair_post(struct pair_end *e, struct ibv_send_wr *wr, struct pair_request what)
{
	uint32_t seq = e->sq_tail, slot = seq % PAIR_SQ, half = what.bytes / 2;
	uint64_t at = wr->send_flags & IBV_SEND_INLINE ?
			      (uintptr_t)pair_slot(e, seq) :
			      e->src.iova + slot * PAIR_SLOT;
	struct ibv_sge sge[2] = {{at, half, e->src.key}, {at + half, what.bytes - half, e->src.key}};
	struct ibv_send_wr *bad;
	bool whole = what.bytes <= 8 || rng_chance(&e->rng, 70);
	int ret;

	/* a queue of unsignalled requests alone would never be free again */
	what.signalled = rng_chance(&e->rng, 60) || slot % 8 == 7 || what.verb == PROBE;
	e->sq[slot] = what;
	sge[0].length = whole ? what.bytes : half;
	wr->wr_id = pair_wr_id(e, seq);
	wr->send_flags |= (what.signalled ? IBV_SEND_SIGNALED : 0) |
			  (what.fenced ? IBV_SEND_FENCE : 0) |
			  (rng_chance(&e->rng, 30) ? IBV_SEND_SOLICITED : 0);
	wr->sg_list = sge;
	wr->num_sge = what.bytes ? 2 - whole : 0;
	e->sq_tail++;
	ret = eng_post_send(e->eng, wr, &bad, NULL);
	if (ret)
		sim_fail(e->pair->sim, ORACLE_ORDER, "pair %d.%d: request %u of %u bytes was refused: %d",
			 e->pair->index, e->side, what.verb, what.bytes, ret);
}

static void post_recv(struct pair_end *e)
{
	uint32_t slot = e->rq_tail % PAIR_RQ;
	struct ibv_sge sge = {e->rx.iova + slot * PAIR_SLOT, PAIR_SLOT, e->rx.key};
	struct ibv_recv_wr wr = {.wr_id = pair_recv_id(e, e->rq_tail),
				 .sg_list = &sge, .num_sge = 1}, *bad;
	int ret = eng_post_recv(e->eng, &wr, &bad);

	if (ret)
		sim_fail(e->pair->sim, ORACLE_ORDER, "pair %d.%d: a receive was refused: %d",
			 e->pair->index, e->side, ret);
	e->rq_tail++;
}

/* --- completions --- */

static void broke(struct pair *pair)
{
	if (pair->state != PAIR_UP)
		return;
	sim_log(pair->sim, "pair %d broke", pair->index);
	pair->state = PAIR_BROKEN;
	rt_timer_arm(&pair->timer, mono_add(rt_now(pair->sim->rt), RETRY_NS));
}

static bool excused(struct pair_end *e, const struct pair_request *r, enum ibv_wc_status status)
{
	if (status == IBV_WC_WR_FLUSH_ERR)
		return e->failed || e->struck;
	if (status == IBV_WC_RETRY_EXC_ERR)
		return !expects_no_error(e->pair);
	return r->verb != PROBE && e->pair->ops->may_fail(e, r, status);
}

static void succeeded(struct pair_end *e, const struct pair_request *r)
{
	if (r->must_fail)
		sim_fail(e->pair->sim, ORACLE_VIOLATION,
			 "pair %d.%d: request %u of %u bytes succeeded, which breaks a rule",
			 e->pair->index, e->side, r->verb, r->bytes);
	if (r->verb != PROBE)
		e->pair->ops->succeeded(e, r);
}

static void sent(struct pair_end *e, const struct ibv_wc *wc)
{
	uint32_t seq = (uint32_t)wc->wr_id;
	const struct pair_request *r = &e->sq[seq % PAIR_SQ];

	if (seq - e->sq_head >= e->sq_tail - e->sq_head)
		sim_fail(e->pair->sim, ORACLE_ORDER, "pair %d.%d: request %u completed, open are %u to %u",
			 e->pair->index, e->side, seq, e->sq_head, e->sq_tail);
	for (; e->sq_head != seq; e->sq_head++) {
		if (e->sq[e->sq_head % PAIR_SQ].signalled || e->failed)
			sim_fail(e->pair->sim, ORACLE_ORDER, "pair %d.%d: request %u completed before %u",
				 e->pair->index, e->side, seq, e->sq_head);
		succeeded(e, &e->sq[e->sq_head % PAIR_SQ]);
	}
	if (wc->status == IBV_WC_SUCCESS) {
		if (!r->signalled || e->failed)
			sim_fail(e->pair->sim, ORACLE_ORDER, "pair %d.%d: request %u completed and should not",
				 e->pair->index, e->side, seq);
		succeeded(e, r);
	} else {
		if (!excused(e, r, wc->status))
			sim_fail(e->pair->sim, ORACLE_RELIABLE,
				 "pair %d.%d: request %u, a %u of %u bytes, ended with status %d without cause",
				 e->pair->index, e->side, seq, r->verb, r->bytes, wc->status);
		e->pair->sim->result->violations += r->must_fail;
		e->pair->sim->result->errors++;
		e->failed = true;
	}
	e->sq_head++;
	if (e->failed)
		broke(e->pair);
}

static void received(struct pair_end *e, const struct ibv_wc *wc)
{
	uint32_t seq = (uint32_t)wc->wr_id;

	if (seq != e->rq_head || seq == e->rq_tail)
		sim_fail(e->pair->sim, ORACLE_ORDER, "pair %d.%d: receive %u completed, %u was next",
			 e->pair->index, e->side, seq, e->rq_head);
	e->rq_head++;
	if (wc->status == IBV_WC_SUCCESS) {
		e->pair->ops->received(e, wc, e->rx.bytes + (size_t)(seq % PAIR_RQ) * PAIR_SLOT);
		if (!e->failed)
			post_recv(e);
		return;
	}
	if (wc->status != IBV_WC_WR_FLUSH_ERR || !(e->failed || e->struck))
		sim_fail(e->pair->sim, ORACLE_RELIABLE, "pair %d.%d: receive %u ended with status %d without cause",
			 e->pair->index, e->side, seq, wc->status);
}

void pairs_completion(struct program *p, const struct ibv_wc *wc)
{
	struct pair_end *e = &pairs[wc->wr_id >> 40 & 0xff].end[wc->wr_id >> 36 & 1];

	if (wc->wr_id & PAIR_RECV_BIT && e->pair && e->pair->ops->taken) {
		/* another program's, of a pair that is no more */
		if (e->qp && (wc->wr_id >> 48 & 0xff) == e->pair->incarnation)
			e->pair->ops->taken(e, wc);
		return;
	}
	if (e->program != p || !e->qp || wc->qp_num != e->qp->qp_num)
		sim_fail(p->sim, ORACLE_ORDER, "a completion of QP %x, which is gone", wc->qp_num);
	if (wc->wr_id & PAIR_RECV_BIT)
		received(e, wc);
	else
		sent(e, wc);
}

/* did an end ask for what its peer has to refuse? */
static bool breaks_a_rule(struct pair_end *e, enum ibv_wc_status status)
{
	for (uint32_t i = e->sq_head; i != e->sq_tail; i++)
		if (e->sq[i % PAIR_SQ].verb != PROBE &&
		    e->pair->ops->may_fail(e, &e->sq[i % PAIR_SQ], status))
			return true;
	return false;
}

bool pairs_event(struct program *p, enum ibv_event_type type, const void *element)
{
	const struct pair *pair = element;
	struct pair_end *e;

	if (!running || pair < pairs || pair >= pairs + PLAN_PAIRS)
		return false;
	e = (struct pair_end *)(uintptr_t)element;
	if (type != IBV_EVENT_QP_ACCESS_ERR && type != IBV_EVENT_QP_REQ_ERR)
		return true;
	if (pair_peer(e)->eng &&
	    !breaks_a_rule(pair_peer(e), type == IBV_EVENT_QP_REQ_ERR ? IBV_WC_REM_INV_REQ_ERR :
									IBV_WC_REM_ACCESS_ERR))
		sim_fail(p->sim, ORACLE_VIOLATION, "pair %d.%d: event %d of its QP, the peer did nothing wrong",
			 e->pair->index, e->side, type);
	e->struck = true;
	return true;
}

/* --- life --- */

static void *make_qp(struct ib_uobject *u, void *arg)
{
	struct pair_end *e = arg;
	struct ib_qp_init_attr attr = {
		.send_cq = e->program->cq,
		.recv_cq = e->program->cq,
		.cap = {.max_send_wr = PAIR_SQ, .max_recv_wr = PAIR_RQ, .max_send_sge = 2,
			.max_recv_sge = 1, .max_inline_data = 64},
		.qp_type = IB_QPT_RC,
		.srq = e->ib_srq,
	};

	if (e->target.qp) {
		attr.qp_type = IB_QPT_XRC_INI;
		attr.recv_cq = NULL;
		attr.cap.max_recv_wr = attr.cap.max_recv_sge = 0;
	}
	return ib_create_qp_user(u, e->program->pd, &attr);
}

static int make_objects(struct pair_end *e)
{
	struct eng_qp_init init = {
		.type = IBV_QPT_RC,
		.pd = 1,
		.send_cq = e->program->eng_cq,
		.recv_cq = e->program->eng_cq,
		.max_send_wr = PAIR_SQ,
		.max_recv_wr = PAIR_RQ,
		.max_send_sge = 2,
		.max_recv_sge = 1,
		.max_inline = 64,
		.ctx = e,
	};
	int ret = region_make(e->program, &e->src, PAIR_SQ * PAIR_SLOT, IBV_ACCESS_LOCAL_WRITE);

	ret = ret ?: region_make(e->program, &e->rx, PAIR_RQ * PAIR_SLOT, IBV_ACCESS_LOCAL_WRITE);
	ret = ret ?: e->pair->ops->make(e);
	if (ret)
		return ret;
	e->qp = program_object(e->program, IB_UOBJECT_QP, &e->handle, make_qp, e);
	if (!e->qp)
		return -ENOMEM;
	init.qpn = e->qp->qp_num;
	init.srq = e->srq;
	if (e->target.qp) {
		init.type = IBV_QPT_XRC_SEND;
		init.max_recv_wr = init.max_recv_sge = 0;
	}
	return eng_qp_create(e->program->soft.engine, &init, &e->eng);
}

static uint16_t lid_of(const struct pair_end *e)
{
	return program_port(e->program)->lid;
}

/** struct half - which halves of a connection a QP is */
struct half {
	struct ib_qp *qp;
	struct eng_qp *eng;
	uint32_t dest_qpn;
	bool sends, receives;
};

static int connect_half(struct pair_end *e, const struct half *half)
{
	const struct pair *pair = e->pair;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_ATOMIC | TP_ACCESS_FLUSH_GLOBAL,
		.path_mtu = (enum ibv_mtu)pair->mtu_enc,
		.dest_qp_num = half->dest_qpn,
		.ah_attr = {.dlid = e->dlid, .port_num = 1},
		.rq_psn = pair->psn[!e->side],
		.sq_psn = pair->psn[e->side],
		.max_rd_atomic = pair->rd_atomic,
		.max_dest_rd_atomic = pair->rd_atomic,
		.min_rnr_timer = 1,
		.timeout = pair->timeout_enc,
		.retry_cnt = 7,
		.rnr_retry = 7,
	};
	int ret = program_modify_qp(half->qp, half->eng, &attr,
				    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);

	attr.qp_state = IBV_QPS_RTR;
	ret = ret ?: program_modify_qp(half->qp, half->eng, &attr,
				       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					       IBV_QP_RQ_PSN |
					       (half->receives ? IBV_QP_MAX_DEST_RD_ATOMIC |
									 IBV_QP_MIN_RNR_TIMER :
								 0));
	if (!ret)
		program_prepare_way(e->program, half->eng, half->dest_qpn, e->dlid);
	attr.qp_state = IBV_QPS_RTS;
	return ret ?: program_modify_qp(half->qp, half->eng, &attr,
					IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
						(half->sends ? IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
								       IBV_QP_MAX_QP_RD_ATOMIC :
							       0));
}

static int to_rts(struct pair_end *e)
{
	const struct pair_end *peer = pair_peer(e);
	struct half half = {e->qp, e->eng, peer->qp->qp_num, true, !e->target.qp};
	int ret;

	e->dlid = lid_of(peer);
	if (!e->target.qp)
		return connect_half(e, &half);
	half.dest_qpn = peer->target.qp->qp_num;
	ret = connect_half(e, &half);
	half = (struct half){e->target.qp, e->target.eng, peer->qp->qp_num, false, true};
	return ret ?: connect_half(e, &half);
}

static void free_end(struct pair_end *e)
{
	struct program *p = e->program;

	if (p->alive && e->eng) {
		traffic_watch_lanes(p);
		eng_qp_destroy(e->eng);
	}
	if (p->alive && e->qp)
		ib_uobject_destroy(p->context, IB_UOBJECT_QP, e->handle);
	e->eng = NULL;
	e->qp = NULL;
	e->pair->ops->free(e);
	region_free(p, &e->src);
	region_free(p, &e->rx);
	e->sq_head = e->sq_tail = e->rq_head = e->rq_tail = 0;
	e->failed = e->struck = false;
}

static void last_look(struct pair_end *e)
{
	struct ibv_wc wc;

	while (eng_cq_poll(e->program->eng_cq, 1, &wc) > 0)
		traffic_completion(e->program, &wc);
	e->pair->ops->look(e);
}

static void take_down(struct pair *pair)
{
	for (int side = 0; side < 2; side++)
		if (pair->state != PAIR_DOWN && pair->end[side].eng)
			last_look(&pair->end[side]);
	for (int side = 0; side < 2; side++)
		free_end(&pair->end[side]);
	pair->state = PAIR_DOWN;
}

static bool ready(const struct pair *pair)
{
	for (int side = 0; side < 2; side++) {
		const struct program *p = pair->end[side].program;

		if (!p->alive || program_port(p)->state != IBV_PORT_ACTIVE)
			return false;
	}
	return true;
}

static void draw_attributes(struct pair *pair)
{
	struct rng *r = &pair->end[0].rng;

	for (int side = 0; side < 2; side++)
		pair->psn[side] = rng_chance(r, 50) ? 0xfffff0 + rng_below(r, 16) : rng_below(r, 1 << 24);
	pair->mtu_enc = (uint8_t)(IBV_MTU_256 + rng_below(r, 5));
	pair->timeout_enc = (uint8_t)(8 + rng_below(r, 6));
	pair->rd_atomic = (uint8_t)(1 + rng_below(r, 4));
}

static int build(struct pair *pair)
{
	int ret = 0;

	draw_attributes(pair);
	pair->incarnation++;
	for (int side = 0; side < 2 && !ret; side++)
		ret = make_objects(&pair->end[side]);
	for (int side = 0; side < 2 && !ret; side++)
		ret = to_rts(&pair->end[side]);
	return ret;
}

static void make_anew(struct rt_timer *timer)
{
	struct pair *pair = container_of(timer, struct pair, timer);
	int ret;

	if (pair->state != PAIR_DOWN)
		take_down(pair);
	rt_timer_arm(timer, mono_add(rt_now(pair->sim->rt), RETRY_NS));
	if (!ready(pair))
		return;
	pairs_retire_stale(pair->sim);
	ret = build(pair);
	if (ret) {
		if (ret != -ENOMEM)
			sim_fail(pair->sim, ORACLE_RELIABLE, "pair %d cannot be made: %d", pair->index, ret);
		take_down(pair);
		return;
	}
	rt_timer_disarm(timer);
	pair->state = PAIR_UP;
	pair->made_in_calm = pair->sim->calm;
	for (int side = 0; side < 2; side++) {
		for (int i = 0; i < PAIR_RQ && !pair->ops->taken; i++)
			post_recv(&pair->end[side]);
		program_kick(pair->end[side].program);
	}
	sim_log(pair->sim, "pair %d is up: QPs %x %x", pair->index, pair->end[0].qp->qp_num,
		pair->end[1].qp->qp_num);
}

void pairs_retire_stale(struct sim *sim)
{
	for (int i = 0; running && i < PLAN_PAIRS; i++) {
		struct pair *pair = &pairs[i];

		if (pair->state != PAIR_UP || (pair->end[0].dlid == lid_of(&pair->end[1]) &&
					       pair->end[1].dlid == lid_of(&pair->end[0])))
			continue;
		broke(pair);
		take_down(pair);
	}
}

void pairs_of_dead(struct program *p)
{
	for (int i = 0; running && i < PLAN_PAIRS; i++) {
		struct pair *pair = &pairs[i];
		bool touched = false;

		for (int side = 0; side < 2; side++) {
			if (!pair->ops || pair->end[side].program != p)
				continue;
			free_end(&pair->end[side]);
			touched = true;
		}
		for (int side = 0; pair->ops && pair->ops->of_dead && side < 2; side++)
			touched |= pair->ops->of_dead(&pair->end[side], p);
		if (!touched || pair->state == PAIR_DOWN)
			continue;
		pair->state = PAIR_BROKEN;
		rt_timer_arm(&pair->timer, mono_add(rt_now(p->sim->rt), DEATH_NS));
	}
}

/* --- turns --- */

static bool is_due(struct pair_end *e, mono_t *next)
{
	if (!e->acts_left || e->failed || e->struck || pair_room(e) < 8)
		return false;
	if (!mono_before(rt_now(e->pair->sim->rt), e->next_act))
		return true;
	*next = mono_min(*next, e->next_act);
	return false;
}

static void probe(struct pair_end *e)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE};

	if (e->pair->ops->aim)
		e->pair->ops->aim(e, &wr);
	pair_post(e, &wr, (struct pair_request){.verb = PROBE});
}

static bool turn_of(struct pair_end *e, mono_t *next)
{
	const struct sim *sim = e->pair->sim;
	uint64_t ns = sim->calm ? CALM_NS : MAX(sim->plan->window_ns / ACTS * 2, (uint64_t)1);
	bool acted = false;

	while (is_due(e, next)) {
		e->pair->ops->act(e);
		e->acts_left--;
		e->next_act = mono_add(rt_now(sim->rt), rng_next(&e->rng) % ns);
		acted = true;
	}
	/* what has no completion ends before one that has */
	if (!e->acts_left && e->sq_head != e->sq_tail && !e->failed && pair_room(e) &&
	    !e->sq[(e->sq_tail - 1) % PAIR_SQ].signalled)
		probe(e);
	e->pair->ops->look(e);
	return acted;
}

bool pairs_turn(struct program *p, mono_t *next)
{
	bool acted = false;

	for (int i = 0; running && i < 2 * PLAN_PAIRS; i++) {
		struct pair *pair = &pairs[i / 2];

		if (pair->state == PAIR_UP && pair->end[i % 2].program == p)
			acted |= turn_of(&pair->end[i % 2], next);
	}
	return acted;
}

/* --- all of them --- */

static void start(struct sim *sim, int i)
{
	struct rng r = {sim->plan->seed ^ (uint64_t)i << 56 ^ 0x70616972};
	uint32_t first = rng_below(&r, (uint32_t)sim->plan->num_programs);
	struct pair *pair = &pairs[i];

	*pair = (struct pair){.sim = sim, .ops = kinds[i], .index = i};
	for (int side = 0; side < 2; side++) {
		struct pair_end *e = &pair->end[side];

		*e = (struct pair_end){.pair = pair, .side = side, .acts_left = ACTS,
				       .rng = {rng_next(&r)}};
		e->program = sim->program[first];
		if (sim->plan->num_programs > 1 && rng_chance(&r, 90))
			first = (first + 1) % (uint32_t)sim->plan->num_programs;
	}
	rt_timer_init(sim->rt, &pair->timer, make_anew);
	rt_timer_arm(&pair->timer, mono_add(rt_now(sim->rt), 500u + 1000u * (uint64_t)i));
}

void pairs_start(struct sim *sim)
{
	running = sim;
	memset(pairs, 0, sizeof(pairs));
	for (int i = 0; i < PLAN_PAIRS; i++)
		if (sim->plan->pair[i])
			start(sim, i);
}

void pairs_begin_calm(struct sim *sim)
{
	for (int i = 0; i < 2 * PLAN_PAIRS; i++) {
		struct pair_end *e = &pairs[i / 2].end[i % 2];

		if (!pairs[i / 2].ops)
			continue;
		e->acts_left += CALM_ACTS;
		e->next_act = rt_now(sim->rt);
		if (e->program->alive)
			program_kick(e->program);
	}
}

bool pairs_done(struct sim *sim)
{
	for (int i = 0; i < 2 * PLAN_PAIRS; i++) {
		const struct pair *pair = &pairs[i / 2];
		const struct pair_end *e = &pair->end[i % 2];

		if (pair->ops && (pair->state != PAIR_UP || e->acts_left || e->sq_head != e->sq_tail ||
				  (pair->ops->settled && !pair->ops->settled(&pairs[i / 2].end[i % 2]))))
			return false;
	}
	return true;
}

void pairs_stop(struct sim *sim)
{
	for (int i = 0; i < PLAN_PAIRS; i++) {
		if (!pairs[i].ops)
			continue;
		rt_timer_disarm(&pairs[i].timer);
		take_down(&pairs[i]);
	}
	running = NULL;
}

static struct pair_end *end_of(struct program *p, uint32_t qpn)
{
	for (int i = 0; running && i < 2 * PLAN_PAIRS; i++) {
		struct pair_end *e = &pairs[i / 2].end[i % 2];

		if (pairs[i / 2].ops && e->program == p && e->eng &&
		    (e->qp->qp_num == qpn || (e->target.qp && e->target.qp->qp_num == qpn)))
			return e;
	}
	return NULL;
}

bool pairs_flow_of(struct program *p, uint32_t qpn, struct window_flow *flow)
{
	const struct pair_end *e = end_of(p, qpn), *peer;

	if (!e || e->pair->state != PAIR_UP)
		return false;
	peer = pair_peer(e);
	*flow = (struct window_flow){
		.target = peer->program,
		.peer_qpn = peer->qp->qp_num,
		.dlid = e->dlid,
		.dlid_back = peer->dlid,
		.index = (unsigned)(FLOW_FIRST + e->pair->index * 2 + e->side),
	};
	return true;
}

const struct program *pairs_peer_of(struct program *p, uint32_t qpn)
{
	const struct pair_end *e = end_of(p, qpn);

	return e ? pair_peer(e)->program : NULL;
}
