/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the files of this layer share: inputs and actions of the table, lookups. */
#ifndef SOFTIB_CM_PRIVATE_H
#define SOFTIB_CM_PRIVATE_H

#include "cm/cm.h"

/** enum cm_input_kind - what can happen to a communication id */
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
	/* --- messages --- */
	CM_GOT_REQ,
	CM_GOT_REQ_AGAIN, /* one of the connection that this is */
	CM_GOT_REP,
	CM_GOT_RTU,
	CM_GOT_MRA_REQ, /* an MRA for what this end sent: REQ, REP or LAP */
	CM_GOT_MRA_REP,
	CM_GOT_MRA_LAP,
	CM_GOT_REJ,
	CM_GOT_DREQ,
	CM_GOT_DREP,
	CM_GOT_LAP,
	CM_GOT_APR,
	CM_GOT_SIDR_REQ,
	CM_GOT_SIDR_REQ_AGAIN,
	CM_GOT_SIDR_REP,
	CM_STALE, /* the peer shows that it forgot the connection (12.9.8.3.1) */
	/* --- time --- */
	CM_TIMER,
	CM_NR_INPUTS,
};

/** struct cm_input - one input and what belongs to it */
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

/** actions of a row. Entering a state does the rest (machine.c, enter()). */
enum cm_action {
	CM_DO_SEND = 1 << 0,   /* the call's message; kept, to be sent again */
	CM_DO_RESEND = 1 << 1, /* the message that was kept */
	CM_DO_AWAIT = 1 << 2,  /* arm for its answer, with all tries */
	CM_DO_RETRY = 1 << 3,  /* send it again and arm, with one try less */
	CM_DO_EXTEND = 1 << 4, /* arm for as long as the MRA asks */
	CM_DO_MEET = 1 << 5,   /* the peer is known: enter the tables */
	CM_DO_DREQ = 1 << 6,   /* make a DREQ, keep and send it */
	CM_DO_KEEP_DREQ =
		1 << 7,	     /* make one and keep it: it goes when the answer is late */
	CM_DO_DREP = 1 << 8, /* make a DREP, keep and send it */
	CM_DO_REJ_TIMEOUT = 1 << 9, /* make a REJ, keep and send it */
	CM_DO_REJ_CONSUMER = 1 << 10,
	CM_DO_REJ_STALE = 1 << 11,
	CM_DO_REJ_UNKNOWN = 1 << 12,
	CM_DO_SIDR_REFUSE = 1 << 13, /* make a SIDR_REP that rejects, and send it */
	CM_DO_SETTLE = 1 << 14,	     /* the consumer hears of nothing but TIMEWAIT_EXIT */
};

/** struct cm_row - @states: bits; @when: NULL is always; @next: CM_SAME stays */
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
 * cm_step() - one input
 * News are told last; @conn may then be gone, or in any state.
 * Return: 0; -EINVAL no row: of a call, the state does not allow it; a message
 * without one is ignored. -errno of ops->send() for a call, and nothing has changed.
 */
int cm_step(struct cm_conn *conn, const struct cm_input *in);
unsigned int cm_nr_rows(void);
/** cm_row() - row @i of the two tables: for tests */
const struct cm_row *cm_row(unsigned int i);

/* --- act.c --- */

/** cm_act() - the actions of a row. @lap: it is of the second table. Return: 0; -errno of
 * a call's message that could not leave: nothing was done */
int cm_act(struct cm_conn *conn, uint32_t actions, const struct cm_input *in, bool lap);

/* --- call.c --- */

void cm_header(struct cm *cm, uint8_t *mad, uint16_t attr, uint64_t tid);
uint64_t cm_new_tid(struct cm *cm);
/** cm_answered_message() - what an MRA or REJ of this end is about: 0 REQ, 1 REP, 2
 *  LAP or nothing (12.6.6, 12.6.7.2) */
uint8_t cm_answered_message(const struct cm_conn *conn);
/** cm_complete_rej() - what it is about, and by what a peer whose id is not known finds
 *  its end: this adapter's GUID (12.6.7.2) */
void cm_complete_rej(const struct cm_conn *conn, struct wire_cm_rej *rej);

/* --- refuse.c --- */

/** cm_refusal() - why @req cannot be. Return: false: it can; true: @rej has the reason
 *  and its additional information (12.6.7.2) */
bool cm_refusal(struct cm *cm, const struct wire_cm_req *req,
		const struct cm_route *route, struct wire_cm_rej *rej);
/* answers that belong to no conn */
void cm_reply_rej(struct cm *cm, const struct cm_route *route, uint64_t tid,
		  const struct wire_cm_rej *rej);
void cm_reply_drep(struct cm *cm, const struct cm_route *route, uint64_t tid,
		   const struct wire_cm_dreq *dreq);
void cm_reply_sidr(struct cm *cm, const struct cm_route *route, uint64_t tid,
		   const struct wire_cm_sidr_req *req, enum wire_cm_sidr_status status);

/* --- terms.c --- */

/** cm_route_of_path() - the way back along a REQ's or LAP's path. False: the path does
 *  not end at this adapter */
bool cm_route_of_path(struct cm *cm, const struct wire_cm_path *path, uint16_t pkey,
		      struct cm_route *route);
/* what each message says about the connection */
void cm_terms_of_own_req(struct cm_conn *conn, const struct wire_cm_req *req,
			 const struct cm_target *target);
void cm_terms_of_req(struct cm_conn *conn, const struct wire_cm_req *req,
		     const struct cm_route *route);
void cm_terms_of_own_rep(struct cm_conn *conn, const struct wire_cm_rep *rep);
void cm_terms_of_rep(struct cm_conn *conn, const struct wire_cm_rep *rep);
/** cm_note_alternate() - a LAP is about @alternate; cm_drop_alternate() - it was refused
 */
void cm_note_alternate(struct cm_conn *conn, const struct cm_route *alternate,
		       uint8_t ack_timeout_enc);
void cm_drop_alternate(struct cm_conn *conn);

/* --- table.c --- */

struct cm_conn *cm_find_local(struct cm *cm, uint32_t local_id);
struct cm_conn *cm_find_peer(struct cm *cm, uint64_t ca_guid, uint32_t remote_id);
/** cm_find_qp() - whose remote QP is this one? Besides @not */
struct cm_conn *cm_find_qp(struct cm *cm, uint64_t ca_guid, uint32_t qpn,
			   const struct cm_conn * not );
struct cm_conn *cm_find_listener(struct cm *cm, uint64_t service_id);
/** cm_find_caller() - who sent a peer-to-peer REQ to that service and port? */
struct cm_conn *cm_find_caller(struct cm *cm, const struct wire_cm_req *req);
/** cm_meet() - the peer's ids are known: enter the tables */
void cm_meet(struct cm_conn *conn);
static inline bool cm_met(const struct cm_conn *conn)
{
	return !list_empty(&conn->peer_node);
}
void cm_forget(struct cm_conn *conn);
/** cm_renumber() - a communication id that was never used: of the next attempt */
void cm_renumber(struct cm_conn *conn);
/** cm_call_service() - @conn asks for it; peer to peer, the peer's REQ does as well */
void cm_call_service(struct cm_conn *conn, uint64_t service_id);
/** cm_conn_leave() - no table knows @conn any more */
void cm_conn_leave(struct cm_conn *conn);

#endif
