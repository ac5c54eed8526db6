/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A connection: two QPs and the books of what was asked of them. The books
 * outlive QPs: a connection that broke is made anew and goes on. */
#ifndef SOFTIB_SIM_CONN_H
#define SOFTIB_SIM_CONN_H

#include "program.h"

#define SQ_MAX 64

/** struct posted - a send request whose fate is not known yet */
struct posted {
	uint32_t op;
	bool signalled;
	bool is_probe;
};

/** struct message - a request that takes a receive at the peer */
struct message {
	uint64_t key; /* of its bytes */
	uint32_t bytes, imm;
	bool has_imm, is_write;
	bool seen;
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
	struct posted sq[SQ_MAX];
	uint32_t sq_head, sq_tail;
	struct message message[PLAN_OPS + 2];
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
	/* --- of the whole run --- */
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
/** traffic_fixed() - do regions that nobody may write hold what they held? */
void traffic_fixed(struct end *e);

#endif
