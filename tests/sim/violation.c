/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Requests that break a rule: keys, rights, bounds, protection domains, lengths, alignment,
 * receives that are missing or whose memory may not be written. A table says what each makes
 * of both ends (9.9.2, 9.9.3): the status of the request, the asynchronous event of the peer's
 * QP, the status of the peer's receive. An incarnation of a connection sees one of each end,
 * since most of them end it; those that UC and UD drop without a word do not, and what comes
 * after them must arrive.
 *
 * And the fence (10.8.3), which the wire shows: no packet of a fenced request leaves before
 * the answers of all READs and atomics in front of it are in memory.
 */
#include <string.h>

#include "conn.h"
#include "transport/transport.h"

#define FOREIGN_BYTE  0x5a
#define REPEATS_MOST  (SQ_MAX - 2) /* as many messages an end has room for */

/** struct outcome - what a kind makes of RC QPs; 0: nothing */
struct outcome {
	enum ibv_wc_status request; /* of the violating request */
	enum ibv_event_type event;  /* of the peer's QP */
	enum ibv_wc_status receive; /* of the receive that it found at the peer */
	bool local;		    /* UC and UD end so as well */
	bool delivers;		    /* the request itself is one that may succeed */
};

static const struct outcome outcomes[VIOLATION_NUM] = {
	[VIOLATION_RKEY] = {IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR},
	[VIOLATION_RIGHT] = {IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR},
	[VIOLATION_BEYOND] = {IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR},
	[VIOLATION_PD] = {IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR},
	[VIOLATION_UNALIGNED] = {IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR},
	[VIOLATION_TOO_LONG] = {IBV_WC_REM_INV_REQ_ERR, 0, IBV_WC_LOC_LEN_ERR},
	[VIOLATION_LKEY] = {.request = IBV_WC_LOC_PROT_ERR, .local = true},
	[VIOLATION_OWN_BEYOND] = {.request = IBV_WC_LOC_PROT_ERR, .local = true},
	[VIOLATION_OWN_RIGHT] = {.request = IBV_WC_LOC_PROT_ERR, .local = true},
	[VIOLATION_RECEIVE] = {IBV_WC_REM_OP_ERR, 0, IBV_WC_LOC_PROT_ERR, .delivers = true},
	[VIOLATION_NO_RECEIVE] = {.request = IBV_WC_RNR_RETRY_EXC_ERR, .delivers = true},
};

static bool is_rc(const struct end *e)
{
	return e->conn->plan->transport == PLAN_RC;
}

/* how the request @v of @e has to end */
static enum ibv_wc_status due_status(const struct end *e, const struct plan_violation *v)
{
	return is_rc(e) || outcomes[v->kind].local ? outcomes[v->kind].request : IBV_WC_SUCCESS;
}

/* --- asking --- */

static const struct plan_violation *next_of(const struct end *e)
{
	const struct plan_conn *plan = e->conn->plan;

	if (e->rules.again)
		return e->rules.did;
	if (e->rules.did || e->next_violation == plan->num_violations[e->side])
		return NULL;
	return &plan->violation[e->side][e->next_violation];
}

const struct plan_violation *violation_due(struct end *e, mono_t *next)
{
	const struct plan_violation *v = next_of(e);
	const struct sim *sim = e->conn->sim;
	mono_t at;

	if (!v || sim->calm)
		return NULL;
	at = mono_add(sim->traffic_began, v->op.at_ns);
	if (!mono_before(rt_now(sim->rt), at))
		return v;
	*next = mono_min(*next, at);
	return NULL;
}

void violation_begins(struct end *e, const struct plan_violation *v)
{
	struct end *peer = peer_of(e);

	sim_log(e->conn->sim, "conn %d.%d: violation %u", e->conn->index, e->side, v->kind);
	if (!e->rules.again)
		e->next_violation++;
	e->rules.again = false;
	e->rules.did = v;
	e->rules.did_complete = false;
	if (v->kind == VIOLATION_NO_RECEIVE)
		peer->rules.dry = true;
	if (v->kind == VIOLATION_RECEIVE && !peer->rules.spoiled)
		peer->rules.spoil_next = true;
}

/* no key: one that was freed long ago, or one that never was */
static uint32_t no_key(const struct plan_violation *v, uint32_t key)
{
	return v->op.bytes % 2 ? key ^ 0x80 : 0x7fff0000 | (key & 0xff);
}

static void point_at(struct ibv_send_wr *wr, uint64_t va, uint32_t rkey)
{
	bool atomic = wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ||
		      wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP;

	*(atomic ? &wr->wr.atomic.remote_addr : &wr->wr.rdma.remote_addr) = va;
	*(atomic ? &wr->wr.atomic.rkey : &wr->wr.rdma.rkey) = rkey;
}

/* the region of @peer that @verb uses, and one that lacks the right for it */
static const struct region *right_region(const struct end *peer, uint32_t verb)
{
	return verb >= VERB_FETCH_ADD ? &peer->counter :
	       verb == VERB_READ      ? &peer->fixed :
					&peer->target;
}

static const struct region *wrong_region(const struct end *peer, uint32_t verb)
{
	return verb >= VERB_FETCH_ADD ? &peer->target :
	       verb == VERB_READ      ? &peer->rx :
					&peer->fixed;
}

static void shape_remote(struct end *e, const struct plan_violation *v, struct ibv_send_wr *wr)
{
	const struct region *right = right_region(peer_of(e), v->op.verb),
			    *wrong = wrong_region(peer_of(e), v->op.verb),
			    *foreign = &peer_of(e)->foreign;

	switch (v->kind) {
	case VIOLATION_RKEY:
		point_at(wr, right->iova, no_key(v, right->key));
		return;
	case VIOLATION_RIGHT:
		point_at(wr, wrong->iova, wrong->key);
		return;
	case VIOLATION_BEYOND: /* an atomic has to be aligned, or it breaks another rule */
		point_at(wr, right->iova + right->len - (v->op.verb >= VERB_FETCH_ADD ? 0 : 4),
			 right->key);
		return;
	case VIOLATION_PD:
		point_at(wr, foreign->iova, foreign->key);
		return;
	case VIOLATION_UNALIGNED:
		point_at(wr, right->iova + 4, right->key);
		return;
	default:
		return;
	}
}

void violation_shape(struct end *e, const struct plan_violation *v, struct ibv_send_wr *wr)
{
	struct ibv_sge *sge = wr->sg_list;

	shape_remote(e, v, wr);
	switch (v->kind) {
	case VIOLATION_TOO_LONG: /* of two slots */
		sge->addr = e->src.iova;
		return;
	case VIOLATION_LKEY:
		sge->lkey = no_key(v, sge->lkey);
		return;
	case VIOLATION_OWN_BEYOND:
		sge->addr = e->src.iova + e->src.len - 4;
		return;
	case VIOLATION_OWN_RIGHT:
		sge->addr = e->fixed.iova;
		sge->lkey = e->fixed.key;
		return;
	default:
		return;
	}
}

/* --- receives --- */

void violation_shape_recv(struct end *e, struct ibv_sge *sge, unsigned num_sge)
{
	if (!e->rules.spoil_next)
		return;
	e->rules.spoil_next = false;
	e->rules.spoiled = true;
	e->rules.spoiled_seq = e->rq_tail;
	for (unsigned i = 0; i < num_sge; i++) {
		sge[i].addr = e->fixed.iova;
		sge[i].lkey = e->fixed.key;
	}
}

bool violation_withholds(struct end *e)
{
	if (!e->rules.dry || !e->conn->sim->calm)
		return e->rules.dry;
	e->rules.dry = false;
	for (; e->rules.withheld; e->rules.withheld--)
		traffic_post_recv(e);
	return false;
}

/* --- what comes of it --- */

bool violation_delivers(const struct plan_violation *v)
{
	return outcomes[v->kind].delivers;
}

void violation_succeeded(struct end *e, const struct posted *posted)
{
	const struct plan_violation *v = posted->violation;

	if (v->kind == VIOLATION_NO_RECEIVE && e->rules.repeats >= e->conn->plan->rq_depth)
		sim_fail(e->conn->sim, ORACLE_VIOLATION,
			 "conn %d.%d: %u messages arrived, the peer had %u receives",
			 e->conn->index, e->side, e->rules.repeats + 1,
			 e->conn->plan->rq_depth);
	if (outcomes[v->kind].delivers) {
		e->rules.again = ++e->rules.repeats < REPEATS_MOST;
		return;
	}
	if (due_status(e, v) != IBV_WC_SUCCESS)
		sim_fail(e->conn->sim, ORACLE_VIOLATION,
			 "conn %d.%d: violation %u of %u bytes succeeded", e->conn->index,
			 e->side, v->kind, v->op.bytes);
	e->conn->sim->result->violations++;
	e->rules.did_complete = true;
	/* 9.9.3.1 class D: it was dropped, and more may come. Class E, a receive taken from a
	 * shared queue: it ended in error */
	if (!is_rc(e) && !(v->kind == VIOLATION_TOO_LONG && peer_of(e)->srq))
		e->rules.did = NULL;
}

/* 9.7.5.2.8: it was tried rnr_retry times again, each time after the peer's delay */
static void check_patience(const struct end *e, const struct posted *posted)
{
	const struct plan_conn *plan = e->conn->plan;
	uint64_t least = plan->rnr_retry * tp_rnr_ns(plan->rnr_timer_enc);

	if (plan_is_faultless(e->conn->sim->plan->kind) &&
	    rt_now(e->conn->sim->rt).ns - posted->at.ns < least)
		sim_fail(e->conn->sim, ORACLE_VIOLATION,
			 "conn %d.%d gave up too early for want of a receive", e->conn->index,
			 e->side);
}

bool violation_failed(struct end *e, const struct posted *posted, enum ibv_wc_status status)
{
	const struct plan_violation *v = posted->violation;
	const struct outcome *due = &outcomes[v->kind];
	struct end *peer = peer_of(e);

	if (sim_sabotage(e->conn->sim, ORACLE_VIOLATION))
		status = IBV_WC_FATAL_ERR;
	if (status != due_status(e, v))
		return false;
	if (v->kind == VIOLATION_NO_RECEIVE)
		check_patience(e, posted);
	if (is_rc(e) && due->event && peer->eng && peer->rules.event != (int)due->event)
		sim_fail(e->conn->sim, ORACLE_VIOLATION,
			 "conn %d.%d: violation %u ended with status %d here, and with event "
			 "%d at the peer, not %d",
			 e->conn->index, e->side, v->kind, status, peer->rules.event,
			 (int)due->event);
	e->rules.did_complete = true;
	e->conn->sim->result->violations++;
	return true;
}

bool violation_excuses(struct end *e, enum ibv_wc_status status)
{
	if (status == IBV_WC_WR_FLUSH_ERR)
		return e->rules.event >= 0 || e->rules.recv_failed;
	return status == IBV_WC_REM_OP_ERR && is_rc(e) && peer_of(e)->rules.spoiled;
}

/* does the peer's violation end a receive of @e so? */
static bool is_due_recv(struct end *e, uint32_t seq, enum ibv_wc_status status)
{
	const struct plan_violation *v = peer_of(e)->rules.did;

	if (e->rules.spoiled && seq == e->rules.spoiled_seq)
		return status == IBV_WC_LOC_PROT_ERR;
	return v && v->kind == VIOLATION_TOO_LONG && status == outcomes[v->kind].receive &&
	       (is_rc(e) || e->srq);
}

bool violation_excuses_recv(struct end *e, uint32_t seq, enum ibv_wc_status status)
{
	if (status == IBV_WC_WR_FLUSH_ERR)
		return e->rules.event >= 0 || e->rules.recv_failed;
	if (!is_due_recv(e, seq, status))
		return false;
	e->rules.recv_failed = status;
	if (!is_rc(e)) /* nobody else will notice */
		conn_broken(e->conn);
	return true;
}

void violation_event(struct end *e, enum ibv_event_type type)
{
	const struct plan_violation *v = peer_of(e)->rules.did;

	if (type != IBV_EVENT_QP_ACCESS_ERR && type != IBV_EVENT_QP_REQ_ERR)
		return;
	if (!v || !is_rc(e) || outcomes[v->kind].event != type || e->rules.event >= 0)
		sim_fail(e->conn->sim, ORACLE_VIOLATION,
			 "conn %d.%d: its QP had event %d, the peer had not asked for that",
			 e->conn->index, e->side, (int)type);
	e->rules.event = (int)type;
}

bool violation_broke(const struct conn *c)
{
	return c->end[0].failed || c->end[1].failed || c->end[0].rules.recv_failed ||
	       c->end[1].rules.recv_failed;
}

/* --- incarnations --- */

void violation_open(struct end *e)
{
	e->rules = (struct broken_rules){.event = -1};
	if (e->foreign.block)
		memset(e->foreign.bytes, FOREIGN_BYTE, e->foreign.len);
}

void violation_close(struct end *e)
{
	const struct plan_violation *v = e->rules.did;
	const struct end *peer = peer_of(e);

	for (size_t i = 0; e->foreign.block && i < e->foreign.len; i++)
		if (e->foreign.bytes[i] != FOREIGN_BYTE)
			sim_fail(e->conn->sim, ORACLE_VIOLATION,
				 "conn %d.%d: memory of another PD was written",
				 e->conn->index, e->side);
	/* UC and UD: it was lost, maybe, or the other end broke the connection before */
	if (!v || !e->rules.did_complete || !peer->eng ||
	    (!is_rc(e) && (!plan_is_faultless(e->conn->sim->plan->kind) || violation_broke(e->conn))))
		return;
	if (outcomes[v->kind].receive && peer->rules.recv_failed != outcomes[v->kind].receive)
		sim_fail(e->conn->sim, ORACLE_VIOLATION,
			 "conn %d.%d: violation %u ended here, and the peer's receive had "
			 "status %d, not %d",
			 e->conn->index, e->side, v->kind, peer->rules.recv_failed,
			 outcomes[v->kind].receive);
}

/* --- the fence --- */

static bool wants_answer(const struct plan_op *op)
{
	return op->verb >= VERB_READ;
}

void violation_check_fence(const struct end *e, psn_t at)
{
	const bool all = sim_sabotage(e->conn->sim, ORACLE_FENCE);
	uint32_t i = e->sq_head;

	if (!is_rc(e) || e->conn->sim->plan->windows)
		return;
	while (i != e->sq_tail && !psn_eq(e->sq[i % SQ_MAX].psn, at))
		i++;
	if (i == e->sq_tail || !(all || traffic_op(e, i)->fenced))
		return;
	for (uint32_t j = e->sq_head; j != i; j++)
		if (wants_answer(traffic_op(e, j)) && !traffic_answered(e, j))
			sim_fail(e->conn->sim, ORACLE_FENCE,
				 "conn %d.%d: request %u passed the fence, %u has no answer",
				 e->conn->index, e->side, i, j);
}
