/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Pairs: two programs that use what connections (conn.h) do not. Each end of a pair draws what it
 * does, one act after another, from a stream of its own, while it acts; a pair that broke is made
 * anew. What a kind of pair does and what it verifies stands in a file of its own.
 *
 *   pair_mw.c     memory windows, bound and invalidated
 *   pair_xrc.c    XRC: SRQs of one program or two behind a target
 *   pair_placement.c  ATOMIC WRITE and FLUSH
 *   pair_tags.c   tag matching
 */
#ifndef SOFTIB_SIM_PAIR_H
#define SOFTIB_SIM_PAIR_H

#include "program.h"

#define PAIR_BIT      (1ull << 61) /* in wr_id */
#define PAIR_RECV_BIT (1ull << 60)
#define PAIR_SQ	      32
#define PAIR_RQ	      16
#define PAIR_SLOT     1024u /* the longest message */
#define PAIR_UNREAD   0xdd  /* what a place for an answer holds before */

/** struct pair_request - in a send queue; its fate is not known yet */
struct pair_request {
	uint8_t verb; /* the kind's */
	uint8_t which;
	bool signalled, fenced;
	bool must_fail;	  /* it breaks a rule */
	uint32_t gen;	  /* of @which */
	uint32_t at, bytes;
	uint32_t changes; /* of the memory until then */
	uint64_t value;
};

struct pair_end;

/** struct pair_ops - a kind. All but make() and act() are called in RTS alone */
struct pair_ops {
	/** make(), free() - what an end has beside its QP, before it is there and after it has
	 *  gone. make(): 0; -errno */
	int (*make)(struct pair_end *e);
	void (*free)(struct pair_end *e);
	/** act() - post something, eight requests at most */
	void (*act)(struct pair_end *e);
	/** look() - after each turn of the program: does what must hold? */
	void (*look)(struct pair_end *e);
	void (*succeeded)(struct pair_end *e, const struct pair_request *r);
	/** may_fail() - may @r end so, for what programs did? */
	bool (*may_fail)(struct pair_end *e, const struct pair_request *r,
			 enum ibv_wc_status status);
	/** received() - a message that took a receive is at @bytes */
	void (*received)(struct pair_end *e, const struct ibv_wc *wc, const uint8_t *bytes);

	/* --- of kinds whose QPs receive by SRQs; else NULL --- */

	/** taken() - in the place of received(): of a receive with pair_recv_id() */
	void (*taken)(struct pair_end *e, const struct ibv_wc *wc);
	/** aim() - @wr, which needs no more, is for one of the peer's SRQs */
	void (*aim)(struct pair_end *e, struct ibv_send_wr *wr);
	/** settled() - nothing is on its way to SRQs */
	bool (*settled)(struct pair_end *e);
	/** of_dead() - @p, which is not the end's program, dies. Return: had it a part in the pair? */
	bool (*of_dead)(struct pair_end *e, struct program *p);
};
extern const struct pair_ops pair_mw_ops, pair_xrc_ops, pair_placement_ops, pair_tags_ops;

/** struct pair_target - of XRC: what receives; the QP beside it sends. make() and free() are
 *  those of the kind */
struct pair_target {
	struct ib_qp *qp; /* NULL: the QP both sends and receives */
	struct eng_qp *eng;
	uint32_t handle;
};

struct pair_end {
	struct pair *pair;
	int side;
	struct program *program;
	struct rng rng;
	/* --- of one incarnation --- */
	struct ib_qp *qp;
	struct eng_qp *eng;
	uint32_t handle;
	struct pair_target target;
	struct ib_srq *ib_srq; /* of the QP, made by the kind; NULL: it has receives of its own */
	struct eng_srq *srq;
	uint16_t dlid; /* the peer's */
	struct region src, rx;
	struct pair_request sq[PAIR_SQ];
	uint32_t sq_head, sq_tail, rq_head, rq_tail;
	bool failed, struck; /* an error completion; an event of the QP for what the peer did */
	void *own;	     /* the kind's */
	/* --- of the whole run --- */
	uint32_t acts_left;
	mono_t next_act;
};

enum pair_state { PAIR_DOWN, PAIR_UP, PAIR_BROKEN };

struct pair {
	struct sim *sim;
	const struct pair_ops *ops;
	int index;
	enum pair_state state;
	bool made_in_calm;
	uint8_t incarnation;
	struct rt_timer timer;
	struct pair_end end[2];
	uint32_t psn[2];
	uint8_t mtu_enc, timeout_enc, rd_atomic;
};

static inline struct pair_end *pair_peer(const struct pair_end *e)
{
	return &e->pair->end[!e->side];
}

static inline uint64_t pair_wr_id(const struct pair_end *e, uint32_t seq)
{
	return PAIR_BIT | (uint64_t)e->pair->incarnation << 48 | (uint64_t)e->pair->index << 40 |
	       (uint64_t)e->side << 36 | seq;
}

/** pair_recv_id() - of a receive; bits 32 to 35 are the kind's */
static inline uint64_t pair_recv_id(const struct pair_end *e, uint32_t seq)
{
	return pair_wr_id(e, seq) | PAIR_RECV_BIT;
}

/** pair_room() - how many more requests fit */
static inline uint32_t pair_room(const struct pair_end *e)
{
	return PAIR_SQ - (e->sq_tail - e->sq_head);
}

/** pair_may_break_rules() - may a program ask for what must fail, and ends the connection? */
bool pair_may_break_rules(const struct pair_end *e);
/** pair_slot() - the memory of the request that is posted next, or of request @seq */
uint8_t *pair_slot(const struct pair_end *e, uint32_t seq);
/** pair_post() - @wr, but for its identity, its flags and its memory, which is what.bytes of the
 *  slot. With IBV_SEND_INLINE in its flags, that is inline */
void pair_post(struct pair_end *e, struct ibv_send_wr *wr, struct pair_request what);
/** pair_answered() - is the answer of the READ or atomic @seq in its memory? */
bool pair_answered(const struct pair_end *e, uint32_t seq);
/** pair_fill(), pair_word() - bytes below 0x80 that follow from @value; their first eight are
 *  those of pair_word(), each value's own */
void pair_fill(uint8_t *to, uint32_t len, uint64_t value);
uint64_t pair_word(uint64_t value);

/* --- all of them --- */

void pairs_start(struct sim *sim);
void pairs_begin_calm(struct sim *sim);
bool pairs_done(struct sim *sim);
void pairs_stop(struct sim *sim);
/** pairs_of_dead() - @p dies: its ends are gone */
void pairs_of_dead(struct program *p);
/** pairs_retire_stale() - those whose LIDs are not the ports' any more end */
void pairs_retire_stale(struct sim *sim);
/** pairs_turn() - of all ends in @p. As traffic_turn() */
bool pairs_turn(struct program *p, mono_t *next);
void pairs_completion(struct program *p, const struct ibv_wc *wc);
/** pairs_event() - Return: false: @element is no QP of a pair */
bool pairs_event(struct program *p, enum ibv_event_type type, const void *element);
/** pairs_flow_of() - as conns_flow_of() */
bool pairs_flow_of(struct program *p, uint32_t qpn, struct window_flow *flow);
/** pairs_peer_of() - to whom the QP of @p sends. NULL: it is no pair's */
const struct program *pairs_peer_of(struct program *p, uint32_t qpn);

#endif
