/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Shared by the files of this layer: inputs and actions of the table, lookups. */
#ifndef SOFTIB_CM_PRIVATE_H
#define SOFTIB_CM_PRIVATE_H

#include "cm/cm.h"

/** cm_traced() - shall ops->trace() be called? */
static inline bool cm_traced(const struct cm *cm)
{
	return __builtin_expect(cm->traced && *cm->traced, 0);
}

/** enum cm_input_kind - inputs of the state machine */
enum cm_input_kind {
	/* --- calls of the consumer --- */
	CM_CALL_LISTEN,
	CM_CALL_REQ,
	CM_CALL_REP,
	CM_CALL_RTU,
	CM_CALL_MRA,
	CM_CALL_REJ,
	CM_CALL_DREQ,
	CM_CALL_DREP,
	CM_CALL_LAP,
	CM_CALL_APR,
	CM_CALL_SIDR_REQ,
	CM_CALL_SIDR_REP,
	CM_CALL_ESTABLISH,
	CM_CALL_CLOSE,
	CM_CALL_REDIRECT, /* the path to another port or CM is known, or there is none */
	CM_CALL_REDIRECT_FAIL,
	/* --- messages --- */
	CM_GOT_REQ,
	CM_GOT_REQ_AGAIN, /* a duplicate of the REQ of this connection */
	CM_GOT_REP,
	CM_GOT_RTU,
	CM_GOT_MRA_REQ, /* an MRA for this end's REQ, REP or LAP */
	CM_GOT_MRA_REP,
	CM_GOT_MRA_LAP,
	CM_GOT_REJ,
	CM_GOT_REDIRECT, /* a REJ or SIDR_REP whose redirection is followed */
	CM_GOT_DREQ,
	CM_GOT_DREP,
	CM_GOT_LAP,
	CM_GOT_APR,
	CM_GOT_SIDR_REQ,
	CM_GOT_SIDR_REQ_AGAIN,
	CM_GOT_SIDR_REP,
	CM_STALE, /* the peer no longer knows the connection (12.9.8.3.1) */
	/* --- time --- */
	CM_TIMER,
	CM_NR_INPUTS,
};

/** struct cm_input - one input and its arguments */
struct cm_input {
	enum cm_input_kind kind;
	mono_t now;
	/* --- calls: the MAD to send, and its attribute --- */
	const uint8_t *mad;
	uint16_t attr;
	/* --- messages --- */
	const union cm_message *message;
	const struct cm_route *route;
	struct cm_conn *listener;
	uint64_t tid;
};

/** enum cm_action - actions of a row. enter() in machine.c has those of each state. */
enum cm_action {
	CM_DO_SEND = 1 << 0,   /* send the call's message, and store it for retransmission */
	CM_DO_RESEND = 1 << 1, /* send the stored message again */
	CM_DO_AWAIT = 1 << 2,  /* arm the timer for its answer, with all retries */
	CM_DO_RETRY = 1 << 3,  /* send it again and arm the timer, with one retry less */
	CM_DO_EXTEND = 1 << 4, /* arm the timer for the time that the MRA requests */
	CM_DO_MEET = 1 << 5,   /* the peer is known: add the conn to the tables */
	CM_DO_DREQ = 1 << 6,   /* build a DREQ, store and send it */
	CM_DO_KEEP_DREQ =
		1 << 7,	     /* build and store a DREQ, which is sent when the answer is late */
	CM_DO_DREP = 1 << 8, /* build a DREP, store and send it */
	CM_DO_REJ_TIMEOUT = 1 << 9, /* build a REJ, store and send it */
	CM_DO_REJ_CONSUMER = 1 << 10,
	CM_DO_REJ_STALE = 1 << 11,
	CM_DO_REJ_UNKNOWN = 1 << 12,
	CM_DO_SIDR_REFUSE = 1 << 13, /* build and send a SIDR_REP that rejects */
	CM_DO_SETTLE = 1 << 14,	     /* the consumer gets no event but TIMEWAIT_EXIT */
	CM_DO_LEAVE = 1 << 15, /* the peer knows this id no longer; stop the timer */
};

/** struct cm_row - a row of the table
 *  @states: bits; @when: condition, NULL: always; @next: CM_SAME: no change */
#define CM_SAME 0xff
struct cm_row {
	uint32_t states;
	enum cm_input_kind input;
	bool (*when)(const struct cm_conn *conn, const struct cm_input *in);
	uint8_t next;
	uint32_t actions;
	enum cm_news news;
	const char *name;
};

/* --- machine.c --- */

/**
 * cm_step() - process one input
 * ops->event() is called last; after that @conn may be freed, or in any state.
 * Return: 0; -EINVAL there is no row: the state does not allow the call, or the
 * message was ignored; -errno of ops->send() for a call, which then changed nothing.
 */
int cm_step(struct cm_conn *conn, const struct cm_input *in);
unsigned int cm_nr_rows(void);
/** cm_row() - row @i of the two tables: for tests */
const struct cm_row *cm_row(unsigned int i);

/* --- act.c --- */

/** cm_act() - perform the actions of a row
 *  @lap: the row is in the second table
 *  Return: 0; -errno a call's message could not be sent, and nothing was done */
int cm_act(struct cm_conn *conn, uint32_t actions, const struct cm_input *in, bool lap);
/** cm_transmit() - send @mad, count it and trace it. @conn: NULL: it belongs to none
 *  Return: 0; -errno of ops->send() */
int cm_transmit(struct cm *cm, const struct cm_conn *conn, const struct cm_route *route,
		const uint8_t *mad);

/* --- call.c --- */

/** cm_header() - begin a message. @options: of enhanced connection establishment; 0: none */
void cm_header(struct cm *cm, uint8_t *mad, uint16_t attr, uint64_t tid, uint32_t options);
uint64_t cm_new_tid(struct cm *cm);
/** cm_call() - encode @message and process the call @kind, which sends it
 *  Return: 0; -EINVAL; -errno of ops->send() */
int cm_call(struct cm_conn *conn, enum cm_input_kind kind, enum wire_cm_attr attr,
	    const void *message, uint64_t tid, mono_t now);
/** cm_answered_message() - the message to which an MRA or REJ of this end refers: 0 REQ, 1
 *  REP, 2 LAP or none (12.6.6, 12.6.7.2) */
uint8_t cm_answered_message(const struct cm_conn *conn);
/** cm_complete_rej() - set the message to which a REJ refers and, if the peer's id is
 *  unknown, this adapter's GUID, by which the peer finds its id (12.6.7.2) */
void cm_complete_rej(const struct cm_conn *conn, struct wire_cm_rej *rej);

/* --- redirect.c --- */

/** cm_follow() - does @answer, a message @attr, redirect @conn, and is that followed?
 *  Return: true: the environment looks for the path */
bool cm_follow(struct cm_conn *conn, uint16_t attr, const union cm_message *answer);

/* --- refuse.c --- */

/** cm_refusal() - does @req have to be rejected?
 *  Return: false: no; true: @rej has the reason and its additional information (12.6.7.2) */
bool cm_refusal(struct cm *cm, const struct wire_cm_req *req,
		const struct cm_route *route, struct wire_cm_rej *rej);
/* answers for messages that belong to no conn */
void cm_reply_rej(struct cm *cm, const struct cm_route *route, uint64_t tid,
		  const struct wire_cm_rej *rej);
void cm_reply_drep(struct cm *cm, const struct cm_route *route, uint64_t tid,
		   const struct wire_cm_dreq *dreq);
void cm_reply_sidr(struct cm *cm, const struct cm_route *route, uint64_t tid,
		   const struct wire_cm_sidr_req *req, enum wire_cm_sidr_status status);
/** cm_redirects_sidr() - answer @req if the class is redirected. Return: was it? */
bool cm_redirects_sidr(struct cm *cm, const struct cm_route *route, uint64_t tid,
		       const struct wire_cm_sidr_req *req);

/* --- terms.c --- */

/** cm_route_of_path() - the reverse of a REQ's or LAP's path
 *  Return: false if the path does not end at this adapter */
bool cm_route_of_path(struct cm *cm, const struct wire_cm_path *path, uint16_t pkey,
		      struct cm_route *route);
/* update the connection from each kind of message */
void cm_terms_of_own_req(struct cm_conn *conn, const struct wire_cm_req *req,
			 const struct cm_target *target);
void cm_terms_of_req(struct cm_conn *conn, const struct wire_cm_req *req,
		     const struct cm_route *route);
void cm_terms_of_own_rep(struct cm_conn *conn, const struct wire_cm_rep *rep);
void cm_terms_of_rep(struct cm_conn *conn, const struct wire_cm_rep *rep);
/** cm_note_alternate() - a LAP proposes @alternate
 *  cm_drop_alternate() - it was rejected */
void cm_note_alternate(struct cm_conn *conn, const struct cm_route *alternate,
		       uint8_t ack_timeout_enc);
void cm_drop_alternate(struct cm_conn *conn);

/* --- table.c --- */

struct cm_conn *cm_find_local(struct cm *cm, uint32_t local_id);
struct cm_conn *cm_find_peer(struct cm *cm, uint64_t ca_guid, uint32_t remote_id);
/** cm_find_qp() - find the conn, other than @not, with this remote QP */
struct cm_conn *cm_find_qp(struct cm *cm, uint64_t ca_guid, uint32_t qpn,
			   const struct cm_conn * not );
struct cm_conn *cm_find_listener(struct cm *cm, uint64_t service_id);
/** cm_find_caller() - find the conn that sent a peer-to-peer REQ to this service and port */
struct cm_conn *cm_find_caller(struct cm *cm, const struct wire_cm_req *req);
/** cm_meet() - the peer's ids are known: add the conn to the tables */
void cm_meet(struct cm_conn *conn);
static inline bool cm_met(const struct cm_conn *conn)
{
	return !list_empty(&conn->peer_node);
}
void cm_forget(struct cm_conn *conn);
/** cm_renumber() - assign a new communication id, for the next attempt */
void cm_renumber(struct cm_conn *conn);
/** cm_call_service() - record that @conn requests a service id, so that the REQ of a
 *  peer-to-peer partner finds it */
void cm_call_service(struct cm_conn *conn, uint64_t service_id);
/** cm_conn_leave() - remove @conn from all tables */
void cm_conn_leave(struct cm_conn *conn);

#endif
