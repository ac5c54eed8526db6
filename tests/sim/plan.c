/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A scenario from a seed. */
#include "plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const plan_kind_names[KIND_NUM] = {
	[KIND_CALM] = "calm",	    [KIND_PACKETS] = "packets", [KIND_LINKS] = "links",
	[KIND_MANAGER] = "manager", [KIND_DEATH] = "death",	[KIND_MEMORY] = "memory",
	[KIND_CHAOS] = "chaos",	    [KIND_VIOLATIONS] = "violations",
};
const char *const plan_fault_names[FAULT_NUM] = {
	[FAULT_DROP] = "drop",	     [FAULT_DUPLICATE] = "duplicate",
	[FAULT_DELAY] = "delay",     [FAULT_REORDER] = "reorder",
	[FAULT_CORRUPT] = "corrupt", [FAULT_RNR] = "rnr",
	[FAULT_LINK] = "link",	     [FAULT_SWITCH] = "switch",
	[FAULT_MANAGER] = "manager", [FAULT_PROGRAM] = "program",
	[FAULT_ALLOC] = "alloc",     [FAULT_CLOCK] = "clock",
};
static const char *const verb_names[VERB_NUM] = {
	"send", "send-imm", "write", "write-imm", "read", "fetch-add", "cmp-swap",
};
static const char *const transport_names[] = {"RC", "UC", "UD"};
static const char *const violation_names[VIOLATION_NUM] = {
	[VIOLATION_RKEY] = "rkey",	     [VIOLATION_RIGHT] = "right",
	[VIOLATION_BEYOND] = "beyond",	     [VIOLATION_PD] = "pd",
	[VIOLATION_UNALIGNED] = "unaligned", [VIOLATION_TOO_LONG] = "too-long",
	[VIOLATION_LKEY] = "lkey",	     [VIOLATION_OWN_BEYOND] = "own-beyond",
	[VIOLATION_OWN_RIGHT] = "own-right", [VIOLATION_RECEIVE] = "receive",
	[VIOLATION_NO_RECEIVE] = "no-receive",
};

/* --- requests --- */

static uint8_t draw_verb(struct rng *r, enum plan_transport transport)
{
	switch (transport) {
	case PLAN_UD:
		return rng_chance(r, 70) ? VERB_SEND : VERB_SEND_IMM;
	case PLAN_UC:
		return (uint8_t)rng_below(r, VERB_WRITE_IMM + 1);
	default:
		return (uint8_t)rng_below(r, VERB_NUM);
	}
}

static uint32_t draw_bytes(struct rng *r, const struct plan_conn *c)
{
	switch (rng_below(r, 5)) {
	case 0: /* around a packet */
		return MIN(c->slot_bytes, c->mtu_bytes + rng_below(r, 3) - 1);
	case 1: /* around two */
		return MIN(c->slot_bytes, 2 * c->mtu_bytes + rng_below(r, 3) - 1);
	case 2:
		return c->slot_bytes;
	default:
		return 8 + rng_below(r, MIN(c->slot_bytes, 512u) - 8);
	}
}

static void draw_op(struct rng *r, const struct plan *p, const struct plan_conn *c,
		    struct plan_op *op)
{
	op->verb = draw_verb(r, c->transport);
	op->at_ns = rng_between(r, 0, p->window_ns);
	op->bytes = MAX(8u, draw_bytes(r, c));
	if (op->verb >= VERB_FETCH_ADD)
		op->bytes = 8;
	op->num_sge = (uint8_t)(1 + rng_below(r, 3));
	op->inlined = op->bytes <= 64 && op->verb < VERB_READ && rng_chance(r, 30);
	op->signalled = rng_chance(r, 70);
	op->solicited = rng_chance(r, 30);
	op->fenced = rng_chance(r, 15);
}

static int by_time(const void *a, const void *b)
{
	const struct plan_op *x = a, *y = b;

	return x->at_ns < y->at_ns ? -1 : x->at_ns > y->at_ns;
}

static void draw_ops(struct rng *r, const struct plan *p, struct plan_conn *c, int side)
{
	uint32_t n = rng_chance(r, 20)
			     ? 0
			     : 1 + rng_below(r, rng_chance(r, 30) ? PLAN_OPS : 80);

	c->num_ops[side] = n;
	for (uint32_t i = 0; i < n; i++)
		draw_op(r, p, c, &c->op[side][i]);
	qsort(c->op[side], n, sizeof(c->op[side][0]), by_time);
}

/* --- connections --- */

static void draw_conn(struct rng *r, const struct plan *p, struct plan_conn *c)
{
	uint32_t transport = rng_below(r, 10);

	c->transport = transport < 6 ? PLAN_RC : transport < 8 ? PLAN_UC : PLAN_UD;
	c->program[0] = (int)rng_below(r, (uint32_t)p->num_programs);
	c->program[1] = (int)rng_below(r, (uint32_t)p->num_programs);
	c->mtu_bytes = 256u << rng_below(r, 5);
	c->slot_bytes =
		c->transport == PLAN_UD ? c->mtu_bytes : 64u << (3 + rng_below(r, 7));
	c->timeout_enc = (uint8_t)(8 + rng_below(r, 6)); /* 1 to 33 ms */
	c->retry_cnt = (uint8_t)(3 + rng_below(r, 5));
	c->rnr_retry =
		p->kind == KIND_CALM || rng_chance(r, 60) ? 7 : (uint8_t)rng_below(r, 7);
	c->rnr_timer_enc = (uint8_t)(1 + rng_below(r, 14));
	c->rd_atomic = (uint8_t)(1 + rng_below(r, 4));
	c->sq_depth = 2u << rng_below(r, 5);
	c->rq_depth = c->transport == PLAN_RC ? 1u << rng_below(r, 6) : 64;
	c->sig_all = rng_chance(r, 30);
	c->grh = rng_chance(r, 30);
	for (int side = 0; side < 2; side++) {
		c->start_psn[side] = rng_chance(r, 50) ? 0xfffff0 + rng_below(r, 16)
						       : rng_below(r, 1 << 24);
		c->srq[side] = rng_chance(r, 20);
		c->repost_ns[side] =
			rng_chance(r, 25) ? rng_between(r, 1, 3 * NSEC_PER_MSEC) : 0;
		draw_ops(r, p, c, side);
	}
}

/* --- violations --- */

#define VERBS_SEND   (1u << VERB_SEND | 1u << VERB_SEND_IMM)
#define VERBS_WRITE  (1u << VERB_WRITE | 1u << VERB_WRITE_IMM)
#define VERBS_ATOMIC (1u << VERB_FETCH_ADD | 1u << VERB_CMP_SWAP)
#define VERBS_REMOTE (VERBS_WRITE | 1u << VERB_READ | VERBS_ATOMIC)

static const uint8_t violation_verbs[VIOLATION_NUM] = {
	[VIOLATION_RKEY] = VERBS_REMOTE,
	[VIOLATION_RIGHT] = VERBS_REMOTE,
	[VIOLATION_BEYOND] = VERBS_REMOTE,
	[VIOLATION_PD] = VERBS_REMOTE,
	[VIOLATION_UNALIGNED] = VERBS_ATOMIC,
	[VIOLATION_TOO_LONG] = VERBS_SEND,
	[VIOLATION_LKEY] = VERBS_SEND | VERBS_REMOTE,
	[VIOLATION_OWN_BEYOND] = VERBS_SEND | VERBS_REMOTE,
	[VIOLATION_OWN_RIGHT] = 1u << VERB_READ | VERBS_ATOMIC,
	[VIOLATION_RECEIVE] = VERBS_SEND,
	[VIOLATION_NO_RECEIVE] = VERBS_SEND,
};
static const uint8_t transport_verbs[] = {
	[PLAN_RC] = (1u << VERB_NUM) - 1,
	[PLAN_UC] = VERBS_SEND | VERBS_WRITE,
	[PLAN_UD] = VERBS_SEND,
};

static bool is_possible(const struct plan_conn *c, uint32_t kind, uint32_t verb)
{
	/* how long a sender waits is bounded only for some */
	if (kind == VIOLATION_NO_RECEIVE && (c->transport != PLAN_RC || c->rnr_retry == 7))
		return false;
	/* a datagram longer than a packet is not even posted */
	if (kind == VIOLATION_TOO_LONG && c->transport == PLAN_UD && c->slot_bytes == PLAN_PORT_MTU)
		return false;
	return violation_verbs[kind] & transport_verbs[c->transport] & 1u << verb;
}

static void draw_violation(struct rng *r, const struct plan *p, const struct plan_conn *c,
			   int side, struct plan_violation *v)
{
	uint32_t kind, verb, most = c->slot_bytes;

	do {
		kind = rng_below(r, VIOLATION_NUM);
		verb = rng_below(r, VERB_NUM);
	} while (!is_possible(c, kind, verb));
	v->kind = (uint8_t)kind;
	v->op = (struct plan_op){.at_ns = rng_between(r, 0, p->window_ns),
				 .verb = (uint8_t)verb,
				 .num_sge = 1,
				 .signalled = true,
				 .fenced = rng_chance(r, 15)};
	if (c->num_ops[side] && rng_chance(r, 50)) /* right behind an honest one */
		v->op.at_ns = c->op[side][rng_below(r, c->num_ops[side])].at_ns;
	v->op.bytes = MAX(8u, draw_bytes(r, c));
	if (verb >= VERB_FETCH_ADD)
		v->op.bytes = 8;
	if (kind == VIOLATION_TOO_LONG)
		v->op.bytes = most + 1 + rng_below(r, most);
	if (c->transport == PLAN_UD)
		v->op.bytes = MIN(v->op.bytes, PLAN_PORT_MTU);
}

static int violation_by_time(const void *a, const void *b)
{
	const struct plan_violation *x = a, *y = b;

	return by_time(&x->op, &y->op);
}

static void draw_violations(struct rng *r, struct plan *p)
{
	for (int i = 0; i < p->num_conns; i++)
		for (int side = 0; side < 2; side++) {
			struct plan_conn *c = &p->conn[i];
			uint32_t n = rng_below(r, PLAN_VIOLATIONS + 1);

			c->num_violations[side] = n;
			for (uint32_t j = 0; j < n; j++)
				draw_violation(r, p, c, side, &c->violation[side][j]);
			qsort(c->violation[side], n, sizeof(c->violation[side][0]),
			      violation_by_time);
		}
}

/* --- faults --- */

static enum plan_fault_kind draw_fault_kind(struct rng *r, enum plan_kind kind)
{
	switch (kind) {
	case KIND_PACKETS:
		return (enum plan_fault_kind)rng_below(r, FAULT_RNR + 1);
	case KIND_LINKS:
		return rng_chance(r, 60) ? FAULT_LINK : FAULT_SWITCH;
	case KIND_MANAGER:
		return rng_chance(r, 60) ? FAULT_MANAGER : FAULT_LINK;
	case KIND_DEATH:
		return rng_chance(r, 80) ? FAULT_PROGRAM : FAULT_DROP;
	case KIND_MEMORY:
		return rng_chance(r, 80) ? FAULT_ALLOC : FAULT_PROGRAM;
	default:
		return (enum plan_fault_kind)rng_below(r, FAULT_NUM);
	}
}

static void draw_fault(struct rng *r, const struct plan *p, struct plan_fault *f)
{
	f->kind = draw_fault_kind(r, p->kind);
	f->at_ns = rng_between(r, 0, p->window_ns);
	f->for_ns =
		rng_between(r, 1000, rng_chance(r, 30) ? 5 * NSEC_PER_SEC : p->window_ns);
	f->which = (uint32_t)rng_next(r);
	f->permille = rng_chance(r, 20) ? 1000 : 1 + rng_below(r, 200);
	f->kept = true;
	switch (f->kind) {
	case FAULT_ALLOC:
		f->amount = 1 + rng_below(r, rng_chance(r, 50) ? 8 : 200);
		break;
	case FAULT_CLOCK:
		f->amount = rng_between(r, NSEC_PER_MSEC, 20 * NSEC_PER_SEC);
		break;
	default:
		f->amount = rng_between(r, 1000,
					rng_chance(r, 20) ? 100 * NSEC_PER_MSEC
							  : 200 * NSEC_PER_USEC);
	}
}

/* --- questions to the administrator --- */

static int by_time_asked(const void *a, const void *b)
{
	const struct plan_query *x = a, *y = b;

	return x->at_ns < y->at_ns ? -1 : x->at_ns > y->at_ns;
}

static void draw_queries(struct rng *r, struct plan *p, int program)
{
	uint32_t n = rng_below(r, PLAN_QUERIES + 1);

	p->num_queries[program] = n;
	for (uint32_t i = 0; i < n; i++)
		p->query[program][i] = (struct plan_query){
			.at_ns = rng_between(r, 0, p->window_ns),
			.path = rng_chance(r, 50),
			.to = rng_below(r, PLAN_PROGRAMS),
		};
	qsort(p->query[program], n, sizeof(p->query[program][0]), by_time_asked);
}

/* --- the whole --- */

static void draw_topology(struct rng *r, struct plan *p)
{
	static const char *const shapes[] = {
		"direct",    "pair",	    "star:2",	       "star:4",
		"star:6",    "fattree:2,2", "fattree:2,4",     "torus:4",
		"torus:2x2", "torus:3x3",   "dragonfly:2,2,1",
	};

	snprintf(p->topology, sizeof(p->topology), "%s",
		 shapes[rng_below(r, ARRAY_SIZE(shapes))]);
}

static void draw_lids(struct rng *r, struct plan *p)
{
	p->lmc = rng_chance(r, 25) ? (uint8_t)(1 + rng_below(r, 3)) : 0;
	for (int i = 0; i < p->num_conns; i++)
		for (int side = 0; side < 2; side++)
			p->conn[i].path_bits[side] = (uint8_t)rng_below(r, 1u << p->lmc);
}

void plan_make(struct plan *p, uint64_t seed, int kind)
{
	static const uint64_t windows[] = {5 * NSEC_PER_MSEC, 100 * NSEC_PER_MSEC,
					   3 * NSEC_PER_SEC};
	struct rng r = {seed * 2 + 1}, more = {seed * 2}, lids = {~seed},
		   violations = {seed ^ 0x5bd1e995}, rd = {seed ^ 0x52440000}, pairs = {seed ^ 0x70610000},
		   registration = {seed ^ 0x52470000}, sdp = {seed ^ 0x53440000};

	memset(p, 0, sizeof(*p));
	p->seed = seed;
	p->kind = (enum plan_kind)rng_below(&r, KIND_VIOLATIONS);
	if (kind >= 0)
		p->kind = (enum plan_kind)kind;
	draw_topology(&r, p);
	p->num_programs = 2 + (int)rng_below(&r, PLAN_PROGRAMS - 1);
	for (int i = 0; i < p->num_programs; i++)
		p->program_node[i] = rng_chance(&r, 20) ? 0 : (uint32_t)i;
	p->lanes = rng_chance(&r, 60);
	p->sleepy = rng_chance(&r, 30);
	p->think_ns = 100ull << rng_below(&r, 9);
	p->window_ns = windows[rng_below(&r, ARRAY_SIZE(windows))];
	p->standby = p->kind == KIND_MANAGER || rng_chance(&r, 40);
	p->num_conns = 1 + (int)rng_below(&r, PLAN_CONNS);
	for (int i = 0; i < p->num_conns; i++)
		draw_conn(&r, p, &p->conn[i]);
	/* a stream of its own: seeds mean what they meant before these were */
	p->multicast = rng_chance(&more, 40);
	p->windows = rng_chance(&more, 50);
	for (int i = 0; i < p->num_programs; i++)
		draw_queries(&more, p, i);
	draw_lids(&lids, p);
	p->violations = rng_chance(&violations, 25) || p->kind == KIND_VIOLATIONS;
	if (p->violations)
		draw_violations(&violations, p);
	p->rd = rng_chance(&rd, 25);
	p->sdp = rng_chance(&sdp, 40);
	p->fast_registration = rng_chance(&registration, 25);
	for (int i = 0; i < PLAN_PAIRS; i++)
		p->pair[i] = rng_chance(&pairs, 30);
	p->num_faults = plan_is_faultless(p->kind) ? 0 : 1 + (int)rng_below(&r, PLAN_FAULTS);
	for (int i = 0; i < p->num_faults; i++)
		draw_fault(&r, p, &p->fault[i]);
}

void plan_keep(struct plan *p, const char *list)
{
	for (int i = 0; i < p->num_faults; i++)
		p->fault[i].kept = false;
	while (*list) {
		char *end;
		long i = strtol(list, &end, 10);

		if (end == list)
			break;
		if (i >= 0 && i < p->num_faults)
			p->fault[i].kept = true;
		list = *end == ',' ? end + 1 : end;
	}
}

void plan_trim(struct plan *p, uint32_t max)
{
	for (int i = 0; i < p->num_conns; i++)
		for (int side = 0; side < 2; side++) {
			struct plan_conn *c = &p->conn[i];

			c->num_ops[side] = MIN(c->num_ops[side], max);
			c->num_violations[side] = MIN(c->num_violations[side], max);
		}
}

/* --- for people --- */

static void print_violations(const struct plan_conn *c, int side)
{
	for (uint32_t i = 0; i < c->num_violations[side]; i++) {
		const struct plan_violation *v = &c->violation[side][i];

		printf("    side %d at %" PRIu64 " ns: violation %s, %s of %u bytes\n", side,
		       v->op.at_ns, violation_names[v->kind], verb_names[v->op.verb],
		       v->op.bytes);
	}
}

static void print_conn(const struct plan_conn *c, int index)
{
	printf("  conn %d: %s programs %d and %d, MTU %u, timeout %u, retry %u, rnr %u, "
	       "sq %u, "
	       "rq %u, PSNs %x %x%s%s%s%s\n",
	       index, transport_names[c->transport], c->program[0], c->program[1],
	       c->mtu_bytes, c->timeout_enc, c->retry_cnt, c->rnr_retry, c->sq_depth,
	       c->rq_depth, c->start_psn[0], c->start_psn[1], c->grh ? " grh" : "",
	       c->srq[0] ? " srq0" : "", c->srq[1] ? " srq1" : "",
	       c->sig_all ? " sig-all" : "");
	for (int side = 0; side < 2; side++) {
		for (uint32_t i = 0; i < c->num_ops[side] && i < 4; i++)
			printf("    side %d at %" PRIu64 " ns: %s of %u bytes%s\n", side,
			       c->op[side][i].at_ns, verb_names[c->op[side][i].verb],
			       c->op[side][i].bytes, i == 3 ? " ..." : "");
		print_violations(c, side);
	}
}

void plan_print(const struct plan *p)
{
	printf("seed %" PRIu64 ": %s on %s, %d programs%s%s%s%s%s%s%s%s%s%s%s%s, LMC %u, window %" PRIu64
	       " ns\n",
	       p->seed, plan_kind_names[p->kind], p->topology, p->num_programs,
	       p->lanes ? ", lanes" : "", p->sleepy ? ", sleepy" : "",
	       p->standby ? ", standby" : "", p->multicast ? ", multicast" : "",
	       p->windows ? ", windows" : "", p->rd ? ", reliable datagrams" : "",
	       p->sdp ? ", SDP" : "",
	       p->pair[0] ? ", memory windows" : "",
	       p->pair[1] ? ", XRC" : "", p->pair[2] ? ", FLUSH" : "",
	       p->pair[3] ? ", tag matching" : "",
	       p->fast_registration ? ", fast registration" : "", p->lmc, p->window_ns);
	for (int i = 0; i < p->num_conns; i++)
		print_conn(&p->conn[i], i);
	for (int i = 0; i < p->num_faults; i++)
		printf("  fault %d%s: %s at %" PRIu64 " ns for %" PRIu64
		       " ns, which %u, %u/1000, "
		       "amount %" PRIu64 "\n",
		       i, p->fault[i].kept ? "" : " (left out)",
		       plan_fault_names[p->fault[i].kind], p->fault[i].at_ns,
		       p->fault[i].for_ns, p->fault[i].which, p->fault[i].permille,
		       p->fault[i].amount);
}
