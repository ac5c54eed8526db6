/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A connection: two QPs and the books of what was asked of them. The books
 * outlive QPs: a connection that broke is made anew and goes on. */
#ifndef SOFTIB_SIM_CONN_H
#define SOFTIB_SIM_CONN_H

#include "program.h"

#define SQ_MAX 64

/** struct posted - a send request whose fate is not known yet */
struct posted {
	uint32_t op; /* of the plan's; of a violation, how often it was asked for */
	bool signalled;
	bool is_probe;
	const struct plan_violation *violation; /* NULL: an honest request */
	mono_t at;
	psn_t psn; /* of its first packet, where nothing goes by windows */
};

/** struct message - a request that takes a receive at the peer */
struct message {
	uint64_t key; /* of its bytes */
	uint32_t bytes, imm;
	bool has_imm, is_write;
	bool seen;
};

/** struct broken_rules - what this end did, and what was done to it (violation.c) */
struct broken_rules {
	const struct plan_violation *did; /* this end asked for it; NULL: nothing */
	bool did_complete;     /* as it had to */
	bool again;	       /* it is to be asked for once more */
	uint32_t repeats;
	bool dry;	       /* posts no receives ... */
	uint32_t withheld;     /* ... so many */
	bool spoil_next;       /* the next receive is one of memory that it may only read */
	bool spoiled;	       /* a receive is: */
	uint32_t spoiled_seq;
	int event;	       /* enum ibv_event_type of its QP; -1: none */
	enum ibv_wc_status recv_failed; /* a receive's; 0: none */
};

struct end {
	struct conn *conn;
	int side;
	struct program *program;
	/* --- of one incarnation --- */
	struct ib_qp *qp;
	struct eng_qp *eng;
	struct ib_srq *srq;
	struct eng_srq *eng_srq;
	uint32_t handle, srq_handle, peer_qpn;
	struct tp_av av; /* to the peer */
	struct region src, rx, target, fixed, counter;
	struct region foreign; /* of another PD, all rights */
	struct posted sq[SQ_MAX];
	uint32_t sq_head, sq_tail;
	struct message message[PLAN_OPS + 2 + SQ_MAX];
	uint32_t num_messages; /* that this end sent */
	uint32_t reported;     /* of those: completed with success */
	uint32_t delivered;    /* of the peer's: taken here, or passed over */
	bool failed;	       /* an error completion came */
	uint32_t rq_head, rq_tail;
	uint64_t repost[SQ_MAX]; /* when each slot is posted again */
	uint32_t num_reposts, repost_head;
	uint64_t counter_low, counter_high; /* the peer's, as far as is known */
	bool psn_known;
	bool mixed_up; /* what it sends is not told from what another end sends */
	psn_t psn_next;	  /* of requests on the wire */
	uint32_t msn_seen;
	psn_t psn_posted; /* behind the last request that was posted */
	struct broken_rules rules;
	/* --- of the whole run --- */
	uint32_t next_violation;
	uint32_t next_op;
	bool probed;
	uint32_t ok, errors, lost;
};

enum conn_state { CONN_DOWN, CONN_UP, CONN_BROKEN };

struct conn {
	struct sim *sim;
	const struct plan_conn *plan;
	int index;
	enum conn_state state;
	bool made_in_calm;
	uint32_t incarnations;
	struct rt_timer timer;
	struct end end[2];
};

static inline struct end *peer_of(struct end *e)
{
	return &e->conn->end[!e->side];
}

/* --- conn.c --- */
/** end_lid() - of the LIDs of its port the one that this end is reached by */
uint16_t end_lid(const struct end *e);
void conns_init(struct sim *sim);
void conns_exit(struct sim *sim);
/** conn_broken() - an error completion: take it down and make it anew */
void conn_broken(struct conn *c);
/** conns_of_dead() - @p dies: its ends are gone */
void conns_of_dead(struct program *p);
/** conns_end_of() - the end in @p that this QP belongs to; NULL */
struct end *conns_end_of(struct program *p, uint32_t qpn);
/** conns_flow_of() - that of this QP of @p, while its connection is up */
bool conns_flow_of(struct program *p, uint32_t qpn, struct window_flow *flow);
/** conns_done() - everything planned was asked and answered */
bool conns_done(struct sim *sim);
/** conns_describe_undone() - for the message of a failure */
void conns_describe_undone(struct sim *sim, char *text, size_t bytes);
/** conns_begin_calm() - no more faults: errors are no longer excused */
void conns_begin_calm(struct sim *sim);

/* --- traffic.c --- */
/** traffic_link_ops() - the library's link, overheard: PSNs, MSNs, the digest */
const struct eng_link_ops *traffic_link_ops(void);
/** traffic_turn() - post what is due, for all ends of @p. True: it posted;
 *  *@next is made earlier when something is due later */
bool traffic_turn(struct program *p, mono_t *next);
void traffic_completion(struct program *p, const struct ibv_wc *wc);
/** traffic_watch_lanes() - look at what @p wrote into its lanes */
void traffic_watch_lanes(struct program *p);
/** traffic_open() - a new incarnation of both ends is in RTS: empty books */
void traffic_open(struct end *e);
/** traffic_close() - the last look at the books of an end that is alive */
void traffic_close(struct end *e);
/** traffic_op() - the request at @seq of its send queue */
const struct plan_op *traffic_op(const struct end *e, uint32_t seq);
/** traffic_answered() - is the answer of the READ or atomic request @seq in its memory? */
bool traffic_answered(const struct end *e, uint32_t seq);
/** traffic_post_recv() - in the next slot, which is free */
void traffic_post_recv(struct end *e);
/** traffic_fixed() - do regions that nobody may write hold what they held? */
void traffic_fixed(struct end *e);

/* --- violation.c --- */
/** violation_open(), violation_close() - of an incarnation of an end; the books of both
 *  ends are closed before */
void violation_open(struct end *e);
void violation_close(struct end *e);
/** violation_due() - what @e has to ask for now, against a rule. NULL: nothing; *@next is
 *  made earlier when something is due later */
const struct plan_violation *violation_due(struct end *e, mono_t *next);
/** violation_begins() - it is posted next */
void violation_begins(struct end *e, const struct plan_violation *v);
/** violation_shape() - make the honest request @wr of @e into one that breaks the rule */
void violation_shape(struct end *e, const struct plan_violation *v, struct ibv_send_wr *wr);
/** violation_shape_recv() - so that of a receive, if it is to be spoilt */
void violation_shape_recv(struct end *e, struct ibv_sge *sge, unsigned num_sge);
/** violation_withholds() - no receive is posted again now */
bool violation_withholds(struct end *e);
/** violation_delivers() - does the peer get the message of such a request? */
bool violation_delivers(const struct plan_violation *v);
/** violation_succeeded(), violation_failed() - the request that broke a rule completed.
 *  Return: of failed, whether it had to fail so */
void violation_succeeded(struct end *e, const struct posted *posted);
bool violation_failed(struct end *e, const struct posted *posted, enum ibv_wc_status status);
/** violation_excuses() - an honest request fails for what an end did. */
bool violation_excuses(struct end *e, enum ibv_wc_status status);
/** violation_excuses_recv() - so does receive @seq */
bool violation_excuses_recv(struct end *e, uint32_t seq, enum ibv_wc_status status);
/** violation_event() - an asynchronous event of the QP of @e */
void violation_event(struct end *e, enum ibv_event_type type);
/** violation_broke() - is a QP of this connection in error by what an end did? */
bool violation_broke(const struct conn *c);
/** violation_check_fence() - @e sends request packet @at for the first time */
void violation_check_fence(const struct end *e, psn_t at);

#endif
