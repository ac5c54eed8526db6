/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The state machine of a communication id, as one table (12.9.7). An input is handled by
 * the first row for its state and kind whose condition holds. A second table handles
 * the loading of an alternate path in ESTABLISHED (12.9.8).
 *
 * The specification does not define, or leaves to a time-out, what happens if an end
 * closes while its REP or RTU may have been lost. Here that end sends a REJ and then
 * repeats a DREQ until it is answered ("settles"). So the peer learns of the end
 * whichever message was lost; a peer that does not know the connection answers a DREQ
 * with a DREP.
 *
 * Each id has one timer. It runs in the states that wait for the peer, and in
 * TIMEWAIT; entering any other state stops it.
 */
#include <assert.h>
#include <errno.h>

#include "cm/private.h"

#define S(state) (1u << CM_##state)

#define ASKING	    (S(REQ_SENT) | S(MRA_REQ_RCVD)) /* active: waits for the REP */
#define ASKED	    (S(REQ_RCVD) | S(MRA_REQ_SENT)) /* passive: the consumer decides */
#define REPLIED	    (S(REP_SENT) | S(MRA_REP_RCVD)) /* passive: waits for the RTU */
#define GRANTED	    (S(REP_RCVD) | S(MRA_REP_SENT)) /* active: the consumer decides */
#define WAITING	    (ASKING | REPLIED | S(DREQ_SENT) | S(TIMEWAIT) | S(SIDR_REQ_SENT))
#define LAP_AT_REST (1u << CM_LAP_UNINIT | 1u << CM_LAP_IDLE)
#define LAP_ASKING  (1u << CM_LAP_SENT | 1u << CM_MRA_LAP_RCVD)
#define LAP_ASKED   (1u << CM_LAP_RCVD | 1u << CM_MRA_LAP_SENT)

/* --- conditions --- */

static bool tries_left(const struct cm_conn *conn, const struct cm_input *in)
{
	return conn->tries > 0;
}

static bool is_stale(const struct cm_conn *conn, const struct cm_input *in)
{
	return in->message->rej.reason == WIRE_CM_REJ_STALE_CONNECTION;
}

/* A peer that has not sent its REQ yet rejects ours because nobody listens: repeat it (12.10.4). */
static bool peer_is_late(const struct cm_conn *conn, const struct cm_input *in)
{
	return conn->peer_to_peer &&
	       in->message->rej.reason == WIRE_CM_REJ_INVALID_SERVICE_ID;
}

static bool nobody_answers(const struct cm_conn *conn, const struct cm_input *in)
{
	return conn->orphan || conn->settling;
}

static bool sent_rej(const struct cm_conn *conn, const struct cm_input *in)
{
	return conn->sent == WIRE_CM_REJ;
}

static bool sent_rtu(const struct cm_conn *conn, const struct cm_input *in)
{
	return conn->sent == WIRE_CM_RTU;
}

/* Only the end that sent the REQ may load alternate paths (12.8.1). */
static bool is_active(const struct cm_conn *conn, const struct cm_input *in)
{
	return conn->active;
}

static bool is_passive(const struct cm_conn *conn, const struct cm_input *in)
{
	return !conn->active;
}

static bool of_answered_lap(const struct cm_conn *conn, const struct cm_input *in)
{
	return conn->lap_state == CM_LAP_IDLE && !conn->active &&
	       in->tid == conn->lap_tid;
}

/* --- the table --- */

/* clang-format off */
static const struct cm_row table[] = {
/* --- idle: the consumer or a received request begins --- */
{S(IDLE), CM_CALL_LISTEN, NULL, CM_LISTEN, 0, CM_NO_NEWS,
	"listen"},
{S(IDLE), CM_CALL_REQ, NULL, CM_REQ_SENT, CM_DO_SEND | CM_DO_AWAIT, CM_NO_NEWS,
	"ask for a connection"},
{S(IDLE), CM_CALL_SIDR_REQ, NULL, CM_SIDR_REQ_SENT, CM_DO_SEND | CM_DO_AWAIT, CM_NO_NEWS,
	"ask for the QP of a service"},
{S(IDLE), CM_GOT_REQ, NULL, CM_REQ_RCVD, CM_DO_MEET, CM_REQ_RECEIVED,
	"a request for a listener"},
{S(IDLE), CM_GOT_SIDR_REQ, NULL, CM_SIDR_REQ_RCVD, CM_DO_MEET, CM_SIDR_REQ_RECEIVED,
	"a request for the QP of a listener"},
{S(IDLE) | S(LISTEN), CM_CALL_CLOSE, NULL, CM_IDLE, 0, CM_NO_NEWS,
	"nothing to undo"},

/* --- the active end waits for a REP --- */
{S(REQ_SENT), CM_GOT_MRA_REQ, NULL, CM_MRA_REQ_RCVD, CM_DO_EXTEND, CM_MRA_RECEIVED,
	"the peer needs time for the REQ"},
{ASKING, CM_GOT_REP, NULL, CM_REP_RCVD, CM_DO_MEET, CM_REP_RECEIVED,
	"the peer accepts"},
{ASKING, CM_GOT_REQ, NULL, CM_REQ_RCVD, CM_DO_MEET, CM_REQ_RECEIVED,
	"peer to peer: this end becomes the passive one"},
{ASKING, CM_GOT_REDIRECT, NULL, CM_REQ_SENT, CM_DO_LEAVE, CM_NO_NEWS,
	"the peer names another port or CM: look up the path"},
{S(REQ_SENT), CM_CALL_REDIRECT, NULL, CM_SAME, CM_DO_SEND | CM_DO_AWAIT, CM_NO_NEWS,
	"ask there"},
{S(REQ_SENT), CM_CALL_REDIRECT_FAIL, NULL, CM_IDLE, 0, CM_REJ_RECEIVED,
	"no path leads there: the peer refuses"},
{ASKING, CM_GOT_REJ, peer_is_late, CM_SAME, 0, CM_NO_NEWS,
	"peer to peer: the peer has not called yet"},
{ASKING, CM_GOT_REJ, NULL, CM_IDLE, 0, CM_REJ_RECEIVED,
	"the peer refuses"},
{ASKING, CM_TIMER, tries_left, CM_SAME, CM_DO_RETRY, CM_NO_NEWS,
	"ask again"},
{ASKING, CM_TIMER, NULL, CM_IDLE, CM_DO_REJ_TIMEOUT, CM_REQ_ERROR,
	"nobody answers the REQ"},
{ASKING, CM_CALL_REJ, NULL, CM_IDLE, CM_DO_SEND, CM_NO_NEWS,
	"the consumer no longer wants it"},
{ASKING, CM_CALL_CLOSE, NULL, CM_IDLE, CM_DO_REJ_TIMEOUT, CM_NO_NEWS,
	"closed while asking"},

/* --- the passive end's consumer decides --- */
{S(REQ_RCVD), CM_CALL_MRA, NULL, CM_MRA_REQ_SENT, CM_DO_SEND, CM_NO_NEWS,
	"ask for time"},
{ASKED, CM_CALL_REP, NULL, CM_REP_SENT, CM_DO_SEND | CM_DO_AWAIT, CM_NO_NEWS,
	"accept"},
{ASKED, CM_CALL_REJ, NULL, CM_IDLE, CM_DO_SEND, CM_NO_NEWS,
	"refuse"},
{ASKED, CM_CALL_CLOSE, NULL, CM_IDLE, CM_DO_REJ_CONSUMER, CM_NO_NEWS,
	"closed without an answer: refuse"},
{S(MRA_REQ_SENT), CM_GOT_REQ_AGAIN, NULL, CM_SAME, CM_DO_RESEND, CM_NO_NEWS,
	"the MRA was lost"},
{ASKED, CM_GOT_REQ_AGAIN, NULL, CM_SAME, 0, CM_NO_NEWS,
	"the consumer has it already"},
{ASKED, CM_GOT_REJ, NULL, CM_IDLE, 0, CM_REJ_RECEIVED,
	"the active end gave up"},
{ASKED, CM_STALE, NULL, CM_IDLE, 0, CM_REJ_RECEIVED,
	"the active end forgot"},

/* --- the passive end waits for an RTU --- */
{REPLIED, CM_GOT_REQ_AGAIN, NULL, CM_SAME, CM_DO_RESEND, CM_NO_NEWS,
	"the REP was lost"},
{S(REP_SENT), CM_GOT_MRA_REP, NULL, CM_MRA_REP_RCVD, CM_DO_EXTEND, CM_MRA_RECEIVED,
	"the active end needs time for the REP"},
{REPLIED, CM_GOT_RTU, NULL, CM_ESTABLISHED, 0, CM_RTU_RECEIVED,
	"both ends are ready"},
{REPLIED, CM_CALL_ESTABLISH, NULL, CM_ESTABLISHED, 0, CM_USER_ESTABLISHED,
	"data came before the RTU"},
{REPLIED, CM_GOT_REJ, is_stale, CM_TIMEWAIT, 0, CM_REJ_RECEIVED,
	"the active end has an older connection with this QP"},
{REPLIED, CM_GOT_REJ, NULL, CM_IDLE, 0, CM_REJ_RECEIVED,
	"the active end refuses, or gave up"},
{REPLIED, CM_GOT_DREQ, NULL, CM_DREQ_RCVD, 0, CM_DREQ_RECEIVED,
	"the RTU was lost, and the active end disconnects already"},
{REPLIED, CM_TIMER, tries_left, CM_SAME, CM_DO_RETRY, CM_NO_NEWS,
	"accept again"},
{REPLIED, CM_TIMER, NULL, CM_DREQ_SENT,
	CM_DO_REJ_TIMEOUT | CM_DO_KEEP_DREQ | CM_DO_AWAIT | CM_DO_SETTLE, CM_REP_ERROR,
	"nobody answers the REP: settle"},
{REPLIED, CM_CALL_REJ, NULL, CM_DREQ_SENT,
	CM_DO_SEND | CM_DO_KEEP_DREQ | CM_DO_AWAIT | CM_DO_SETTLE, CM_NO_NEWS,
	"refuse after all: the RTU may have been sent, settle"},
{REPLIED, CM_CALL_CLOSE, NULL, CM_DREQ_SENT,
	CM_DO_REJ_CONSUMER | CM_DO_KEEP_DREQ | CM_DO_AWAIT, CM_NO_NEWS,
	"closed: the RTU may have been sent, settle"},
{REPLIED, CM_CALL_DREQ, NULL, CM_DREQ_SENT, CM_DO_SEND | CM_DO_AWAIT, CM_NO_NEWS,
	"disconnect before the RTU"},
{REPLIED, CM_STALE, NULL, CM_TIMEWAIT, 0, CM_REJ_RECEIVED,
	"the active end forgot"},

/* --- the active end's consumer decides --- */
{S(REP_RCVD), CM_CALL_MRA, NULL, CM_MRA_REP_SENT, CM_DO_SEND, CM_NO_NEWS,
	"ask for time"},
{GRANTED, CM_CALL_RTU, NULL, CM_ESTABLISHED, CM_DO_SEND, CM_NO_NEWS,
	"ready"},
{GRANTED, CM_CALL_REJ, NULL, CM_TIMEWAIT, CM_DO_SEND, CM_NO_NEWS,
	"refuse the REP; again, when it is repeated"},
{GRANTED, CM_CALL_CLOSE, NULL, CM_TIMEWAIT, CM_DO_REJ_CONSUMER, CM_NO_NEWS,
	"closed: refuse the REP"},
{S(MRA_REP_SENT), CM_GOT_REP, NULL, CM_SAME, CM_DO_RESEND, CM_NO_NEWS,
	"the MRA was lost"},
{S(REP_RCVD), CM_GOT_REP, NULL, CM_SAME, 0, CM_NO_NEWS,
	"the consumer has it already"},
{GRANTED, CM_GOT_REJ, NULL, CM_TIMEWAIT, 0, CM_REJ_RECEIVED,
	"the passive end gave up"},
{GRANTED, CM_GOT_DREQ, NULL, CM_DREQ_RCVD, 0, CM_DREQ_RECEIVED,
	"the passive end gave up, and its REJ was lost"},
{GRANTED, CM_STALE, NULL, CM_TIMEWAIT, 0, CM_REJ_RECEIVED,
	"the passive end forgot"},

/* --- connected --- */
{S(ESTABLISHED), CM_GOT_REP, sent_rtu, CM_SAME, CM_DO_RESEND, CM_NO_NEWS,
	"the RTU was lost"},
{S(ESTABLISHED), CM_CALL_DREQ, NULL, CM_DREQ_SENT, CM_DO_SEND | CM_DO_AWAIT, CM_NO_NEWS,
	"disconnect"},
{S(ESTABLISHED), CM_CALL_CLOSE, NULL, CM_DREQ_SENT, CM_DO_DREQ | CM_DO_AWAIT, CM_NO_NEWS,
	"closed: disconnect"},
{S(ESTABLISHED), CM_STALE, NULL, CM_DREQ_SENT, CM_DO_DREQ | CM_DO_AWAIT, CM_NO_NEWS,
	"the peer forgot: disconnect"},
{S(ESTABLISHED), CM_GOT_DREQ, NULL, CM_DREQ_RCVD, 0, CM_DREQ_RECEIVED,
	"the peer disconnects"},
{S(ESTABLISHED), CM_GOT_REJ, NULL, CM_TIMEWAIT, 0, CM_REJ_RECEIVED,
	"the peer gave up, or forgot"},

/* --- disconnecting --- */
{S(DREQ_SENT), CM_GOT_DREP, NULL, CM_TIMEWAIT, 0, CM_DREP_RECEIVED,
	"the peer agrees"},
{S(DREQ_SENT), CM_GOT_DREQ, nobody_answers, CM_TIMEWAIT, CM_DO_DREP, CM_NO_NEWS,
	"both disconnect; nobody is there to answer"},
{S(DREQ_SENT), CM_GOT_DREQ, NULL, CM_DREQ_RCVD, 0, CM_DREQ_RECEIVED,
	"both disconnect"},
{S(DREQ_SENT), CM_GOT_REJ, NULL, CM_TIMEWAIT, 0, CM_REJ_RECEIVED,
	"the peer has no such connection"},
{S(DREQ_SENT), CM_TIMER, tries_left, CM_SAME, CM_DO_RETRY, CM_NO_NEWS,
	"disconnect again"},
{S(DREQ_SENT), CM_TIMER, NULL, CM_TIMEWAIT, 0, CM_DREQ_ERROR,
	"nobody answers the DREQ"},
{S(DREQ_SENT) | S(TIMEWAIT), CM_CALL_CLOSE, NULL, CM_SAME, 0, CM_NO_NEWS,
	"closed: go on as an orphan"},
{S(DREQ_RCVD), CM_CALL_DREP, NULL, CM_TIMEWAIT, CM_DO_SEND, CM_NO_NEWS,
	"agree"},
{S(DREQ_RCVD), CM_CALL_CLOSE, NULL, CM_TIMEWAIT, CM_DO_DREP, CM_NO_NEWS,
	"closed: agree"},
{S(DREQ_RCVD), CM_GOT_DREP, NULL, CM_TIMEWAIT, CM_DO_DREP, CM_DREP_RECEIVED,
	"both disconnected, and the peer agreed first"},
{S(DREQ_RCVD), CM_GOT_REJ, NULL, CM_TIMEWAIT, 0, CM_REJ_RECEIVED,
	"the peer did not wait"},
{S(DREQ_RCVD), CM_GOT_DREQ, NULL, CM_SAME, 0, CM_NO_NEWS,
	"the consumer has it already"},

/* --- packets of the connection may still be in flight --- */
{S(TIMEWAIT), CM_TIMER, NULL, CM_IDLE, 0, CM_TIMEWAIT_EXIT,
	"the QP may be used again"},
{S(TIMEWAIT), CM_GOT_DREQ, NULL, CM_SAME, CM_DO_DREP, CM_NO_NEWS,
	"the DREP was lost"},
{S(TIMEWAIT), CM_GOT_REP, sent_rej, CM_SAME, CM_DO_RESEND, CM_NO_NEWS,
	"the REJ of the REP was lost"},
{S(TIMEWAIT), CM_GOT_REP, NULL, CM_SAME, CM_DO_REJ_UNKNOWN, CM_NO_NEWS,
	"the passive end never heard that it was over"},
{S(TIMEWAIT), CM_GOT_REQ_AGAIN, NULL, CM_SAME, CM_DO_REJ_STALE, CM_NO_NEWS,
	"a REQ of a connection that is over"},

/* --- resolving a service id --- */
{S(SIDR_REQ_SENT), CM_GOT_REDIRECT, NULL, CM_SAME, CM_DO_LEAVE, CM_NO_NEWS,
	"the service is at another port or CM: look up the path"},
{S(SIDR_REQ_SENT), CM_CALL_REDIRECT, NULL, CM_SAME, CM_DO_SEND | CM_DO_AWAIT, CM_NO_NEWS,
	"ask there for the QP"},
{S(SIDR_REQ_SENT), CM_CALL_REDIRECT_FAIL, NULL, CM_IDLE, 0, CM_SIDR_REP_RECEIVED,
	"no path leads there: the service answers"},
{S(SIDR_REQ_SENT), CM_GOT_SIDR_REP, NULL, CM_IDLE, 0, CM_SIDR_REP_RECEIVED,
	"the service answers"},
{S(SIDR_REQ_SENT), CM_TIMER, tries_left, CM_SAME, CM_DO_RETRY, CM_NO_NEWS,
	"ask again"},
{S(SIDR_REQ_SENT), CM_TIMER, NULL, CM_IDLE, 0, CM_SIDR_REQ_ERROR,
	"nobody answers"},
{S(SIDR_REQ_SENT), CM_CALL_CLOSE, NULL, CM_IDLE, 0, CM_NO_NEWS,
	"closed while asking"},
{S(SIDR_REQ_RCVD), CM_CALL_SIDR_REP, NULL, CM_IDLE, CM_DO_SEND, CM_NO_NEWS,
	"answer"},
{S(SIDR_REQ_RCVD), CM_CALL_CLOSE, NULL, CM_IDLE, CM_DO_SIDR_REFUSE, CM_NO_NEWS,
	"closed without an answer: refuse"},
{S(SIDR_REQ_RCVD), CM_GOT_SIDR_REQ_AGAIN, NULL, CM_SAME, 0, CM_NO_NEWS,
	"the consumer has it already"},
};

static const struct cm_row lap_table[] = {
{LAP_AT_REST, CM_CALL_LAP, is_active, CM_LAP_SENT, CM_DO_SEND | CM_DO_AWAIT, CM_NO_NEWS,
	"ask for an alternate path"},
{LAP_AT_REST, CM_GOT_LAP, of_answered_lap, CM_SAME, CM_DO_RESEND, CM_NO_NEWS,
	"the APR was lost"},
{LAP_AT_REST, CM_GOT_LAP, is_passive, CM_LAP_RCVD, 0, CM_LAP_RECEIVED,
	"the active end has an alternate path"},
{1u << CM_LAP_SENT, CM_GOT_MRA_LAP, NULL, CM_MRA_LAP_RCVD, CM_DO_EXTEND, CM_MRA_RECEIVED,
	"the peer needs time for the LAP"},
{LAP_ASKING, CM_GOT_APR, NULL, CM_LAP_IDLE, 0, CM_APR_RECEIVED,
	"the peer answers"},
{LAP_ASKING, CM_TIMER, tries_left, CM_SAME, CM_DO_RETRY, CM_NO_NEWS,
	"ask again"},
{LAP_ASKING, CM_TIMER, NULL, CM_LAP_IDLE, 0, CM_LAP_ERROR,
	"nobody answers the LAP"},
{1u << CM_LAP_RCVD, CM_CALL_MRA, NULL, CM_MRA_LAP_SENT, CM_DO_SEND, CM_NO_NEWS,
	"ask for time"},
{LAP_ASKED, CM_CALL_APR, NULL, CM_LAP_IDLE, CM_DO_SEND, CM_NO_NEWS,
	"answer"},
{1u << CM_MRA_LAP_SENT, CM_GOT_LAP, NULL, CM_SAME, CM_DO_RESEND, CM_NO_NEWS,
	"the MRA was lost"},
{1u << CM_LAP_RCVD, CM_GOT_LAP, NULL, CM_SAME, 0, CM_NO_NEWS,
	"the consumer has it already"},
};
/* clang-format on */

#define NR_ROWS (ARRAY_SIZE(table) + ARRAY_SIZE(lap_table))
static_assert(NR_ROWS <= 64 * CM_ROW_WORDS, "a bit for each row in cm.rows");

unsigned int cm_nr_rows(void)
{
	return NR_ROWS;
}

const struct cm_row *cm_row(unsigned int i)
{
	return i < ARRAY_SIZE(table) ? &table[i] : &lap_table[i - ARRAY_SIZE(table)];
}

/* --- one step --- */

static bool is_of_lap(const struct cm_conn *conn, enum cm_input_kind kind)
{
	return conn->state == CM_ESTABLISHED &&
	       (kind == CM_CALL_LAP || kind == CM_CALL_APR || kind == CM_CALL_MRA ||
		kind == CM_GOT_LAP || kind == CM_GOT_APR || kind == CM_GOT_MRA_LAP ||
		kind == CM_TIMER);
}

static const struct cm_row *find_row(struct cm_conn *conn, const struct cm_input *in,
				     bool lap)
{
	const struct cm_row *rows = lap ? lap_table : table;
	size_t nr = lap ? ARRAY_SIZE(lap_table) : ARRAY_SIZE(table);
	uint32_t state = 1u << (lap ? (int)conn->lap_state : (int)conn->state);

	for (const struct cm_row *row = rows; row < rows + nr; row++)
		if ((row->states & state) && row->input == in->kind &&
		    (!row->when || row->when(conn, in))) {
			size_t i = (size_t)(row - rows) + (lap ? ARRAY_SIZE(table) : 0);

			conn->cm->rows[i / 64] |= 1ull << i % 64;
			return row;
		}
	return NULL;
}

static void trace_state(struct cm_conn *conn, enum cm_trace_kind kind, int from, int to)
{
	const struct cm_trace trace = {.kind = kind, .conn = conn, .route = &conn->route,
				       .from = from, .to = to};

	if (cm_traced(conn->cm))
		conn->cm->ops->trace(conn->cm, &trace);
}

static void enter(struct cm_conn *conn, enum cm_state next, mono_t now)
{
	trace_state(conn, CM_TRACE_STATE, (int)conn->state, (int)next);
	conn->state = next;
	if (next == CM_TIMEWAIT)
		conn->cm->ops->arm(conn, mono_add(now, conn->time_wait_ns));
	else if (!(1u << next & WAITING))
		conn->cm->ops->arm(conn, MONO_NEVER);
	if (next != CM_REQ_SENT && next != CM_SIDR_REQ_SENT)
		conn->redirecting = false;
	if (next == CM_IDLE)
		cm_forget(conn);
}

static void enter_lap(struct cm_conn *conn, enum cm_lap_state next)
{
	trace_state(conn, CM_TRACE_LAP_STATE, (int)conn->lap_state, (int)next);
	conn->lap_state = next;
	if (!(1u << next & LAP_ASKING))
		conn->cm->ops->arm(conn, MONO_NEVER);
}

static void report(struct cm_conn *conn, enum cm_news news, const struct cm_input *in)
{
	struct cm_event event = {
		.news = news,
		.message = in->message,
		.route = in->route,
		.listener = in->listener,
	};

	const struct cm_trace trace = {.kind = CM_TRACE_NEWS, .conn = conn, .route = &conn->route,
				       .news = news};

	if (news == CM_NO_NEWS || conn->orphan)
		return;
	if (cm_traced(conn->cm))
		conn->cm->ops->trace(conn->cm, &trace);
	conn->cm->ops->event(conn, &event);
}

int cm_step(struct cm_conn *conn, const struct cm_input *in)
{
	bool lap = is_of_lap(conn, in->kind);
	const struct cm_row *row = find_row(conn, in, lap);
	enum cm_news news;
	int ret;

	if (!row)
		return -EINVAL;
	news = conn->settling && row->news != CM_TIMEWAIT_EXIT ? CM_NO_NEWS : row->news;
	ret = cm_act(conn, row->actions, in, lap);
	if (ret)
		return ret;
	if (row->next != CM_SAME && lap)
		enter_lap(conn, row->next);
	else if (row->next != CM_SAME)
		enter(conn, row->next, in->now);
	if (conn->orphan && conn->state == CM_IDLE) {
		cm_conn_leave(conn);
		conn->cm->ops->gone(conn);
		return 0;
	}
	report(conn, news, in);
	return 0;
}
