/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Communication management (IBA v1 chapter 12): two consumers that know a service
 * id and a path establish and release a connection of queue pairs. The layer is
 * pure: its inputs are messages, calls of the consumer and expired timers, with the
 * time as an argument; its outputs are messages to send, timers to arm and events
 * for the consumer ("news"), through struct cm_ops. It allocates no memory.
 *
 * A struct cm is the communication manager of one adapter. A struct cm_conn is
 * one *communication id*: a listener, one end of a connection, or one request
 * for the resolution of a service id. Its owner embeds it. If the consumer closes
 * an id that still has to send or to receive a message, the id becomes an *orphan*:
 * it completes the exchange without events, and ops->gone() frees it.
 *
 *  machine.c  the table: (state, input) -> (state, actions, news)
 *  act.c      the actions
 *  call.c     calls of the consumer
 *  receive.c  finds the connection of a message, and turns it into an input
 *  redirect.c asks the port or CM that an answer names instead (12.6.7.2)
 *  refuse.c   rejects REQs, and answers messages that belong to no connection
 *  terms.c    the parameters of the queue pair and its paths in the messages
 *  table.c    tables of communication ids, peers, remote QPs and listeners
 *
 * Context: the caller serialises per struct cm. cm_receive() and cm_expire() call
 * ops->event() last, so it may call any function of this layer.
 */
#ifndef SOFTIB_CM_CM_H
#define SOFTIB_CM_CM_H

#include "base/list.h"
#include "base/types.h"
#include "wire/cm.h"

#define CM_BUCKETS	      16384 /* of each hash table: a power of 2. Zeroed pages cost nothing until they are used */
#define CM_PRIVATE_MAX	      224
#define CM_ROW_WORDS	      2
#define CM_ARI_MAX	      72 /* additional reject information: a ClassPortInfo */
#define CM_SERVICE_MASK_EXACT UINT64_MAX

/** cm_time_ns() - a 5-bit time of a message: 4.096 us * 2^enc (12.7) */
static inline uint64_t cm_time_ns(uint8_t enc)
{
	return 4096ull << (enc & 31);
}

/** enum cm_state - state of a communication id (12.9.7). The name contains the message
 *  that was sent or received last; in CM_MRA_... an MRA was sent or received after that. */
enum cm_state {
	CM_IDLE,
	CM_LISTEN,
	CM_REQ_SENT,
	CM_REQ_RCVD,
	CM_MRA_REQ_SENT,
	CM_MRA_REQ_RCVD,
	CM_REP_SENT,
	CM_REP_RCVD,
	CM_MRA_REP_SENT,
	CM_MRA_REP_RCVD,
	CM_ESTABLISHED,
	CM_DREQ_SENT,
	CM_DREQ_RCVD,
	CM_TIMEWAIT,
	CM_SIDR_REQ_SENT,
	CM_SIDR_REQ_RCVD,
	CM_NR_STATES,
};

/** enum cm_lap_state - of loading an alternate path, while ESTABLISHED (12.9.8) */
enum cm_lap_state {
	CM_LAP_UNINIT, /* no alternate path was loaded yet */
	CM_LAP_IDLE,
	CM_LAP_SENT,
	CM_LAP_RCVD,
	CM_MRA_LAP_SENT,
	CM_MRA_LAP_RCVD,
	CM_NR_LAP_STATES,
};

/** enum cm_news - events for the consumer. A ..._RECEIVED comes with its message; an
 *  ..._ERROR means that there was no answer. */
enum cm_news {
	CM_NO_NEWS,
	CM_REQ_ERROR,
	CM_REQ_RECEIVED,
	CM_REP_ERROR,
	CM_REP_RECEIVED,
	CM_RTU_RECEIVED,
	CM_USER_ESTABLISHED, /* cm_establish() came before the RTU */
	CM_DREQ_ERROR,
	CM_DREQ_RECEIVED,
	CM_DREP_RECEIVED,
	CM_TIMEWAIT_EXIT,
	CM_MRA_RECEIVED,
	CM_REJ_RECEIVED,
	CM_LAP_ERROR,
	CM_LAP_RECEIVED,
	CM_APR_RECEIVED,
	CM_SIDR_REQ_ERROR,
	CM_SIDR_REQ_RECEIVED,
	CM_SIDR_REP_RECEIVED,
	CM_NR_NEWS,
};

/**
 * struct cm_route - the path of a message to or from the peer's CM
 * @path_bits: of the local LID
 * @global: there is a GRH, and @sgid to @flow_label are valid
 * @qpn, @qkey: of the peer's CM, if it was redirected from QP1; @qpn 0: QP1
 * @own_qpn: of a message that arrived: the QP to which this CM was redirected; 0: QP1
 */
struct cm_route {
	uint8_t port;
	uint8_t path_bits;
	uint8_t sl;
	uint8_t rate; /* enum wire_rate; 0: the rate of the port */
	bool global;
	uint16_t dlid;
	uint16_t pkey;
	union wire_gid sgid, dgid;
	uint8_t hop_limit, tclass;
	uint32_t flow_label;
	uint32_t qpn, qkey;
	uint32_t own_qpn;
};

/** union cm_message - the fields of any message */
union cm_message {
	struct wire_cm_req req;
	struct wire_cm_mra mra;
	struct wire_cm_rej rej;
	struct wire_cm_rep rep;
	struct wire_cm_rtu rtu;
	struct wire_cm_dreq dreq;
	struct wire_cm_drep drep;
	struct wire_cm_lap lap;
	struct wire_cm_apr apr;
	struct wire_cm_sidr_req sidr_req;
	struct wire_cm_sidr_rep sidr_rep;
};

/**
 * struct cm_event - an event for the consumer
 * @message: the message of a ..._RECEIVED; valid until the handler returns
 * @route: path of @message, as seen from this end
 * @listener: for a REQ or SIDR_REQ the listening id; for peer to peer the id itself
 */
struct cm_event {
	enum cm_news news;
	const union cm_message *message;
	const struct cm_route *route;
	struct cm_conn *listener;
};

/**
 * struct cm_redirection - where to ask instead (12.6.7.2, 12.11.2)
 * @gid: of the port
 * @lid, @pkey: of the path to it; 0: any, or as before
 * @qpn, @qkey: of the CM, as in struct cm_route
 * @attr, @answer: the message that redirects, a REJ or SIDR_REP
 */
struct cm_redirection {
	union wire_gid gid;
	uint16_t lid, pkey;
	uint32_t qpn, qkey;
	uint16_t attr;
	union cm_message answer;
};

/** struct cm_alternate - the alternate path, valid if @loaded */
struct cm_alternate {
	bool loaded;
	uint8_t ack_timeout_enc;
	struct cm_route route;
};

/** struct cm_terms - the parameters of this end's queue pair, negotiated by REQ and REP */
struct cm_terms {
	uint8_t service; /* enum wire_cm_service */
	uint8_t extended_transport;
	uint8_t path_mtu;
	uint8_t retry_count, rnr_retry_count;
	uint8_t responder_resources; /* outstanding RDMA READs that this end can serve */
	uint8_t initiator_depth;     /* outstanding RDMA READs that it may request */
	uint8_t ack_timeout_enc;
	uint8_t target_ack_delay_enc;
	bool srq, remote_srq;
	uint16_t pkey;
	uint32_t local_qpn, remote_qpn;
	uint32_t local_qkey, remote_qkey;
	psn_t sq_psn, rq_psn;
	uint64_t remote_ca_guid;
	struct cm_route primary;
	struct cm_alternate alternate;
};

struct cm;
struct cm_conn;

/** struct cm_port - the properties of a port against which REQs are checked (12.6.7.2)
 *  @redirect: the class is redirected: an encoded ClassPortInfo of CM_ARI_MAX bytes, with
 *  which requests that arrive at QP1 are answered; NULL */
struct cm_port {
	const uint8_t *redirect;
	uint8_t number;
	uint16_t lid;
	uint8_t lmc;
	uint8_t max_mtu; /* enum wire_mtu */
	union wire_gid gid;
};

/** enum cm_trace_kind - what ops->trace() reports */
enum cm_trace_kind {
	CM_TRACE_SENT,	   /* a message, also one that is sent again or could not be sent */
	CM_TRACE_RECEIVED, /* a message of the class, before it is processed */
	CM_TRACE_IGNORED,  /* the message that was received last had no effect */
	CM_TRACE_STATE,
	CM_TRACE_LAP_STATE,
	CM_TRACE_NEWS, /* an event for the consumer, before it is told */
};

/** struct cm_trace - one event for whoever debugs
 *  @conn: NULL: a message that belongs to no connection, or whose connection is not known yet
 *  @mad: of a message that was sent or received, WIRE_MAD_BYTES
 *  @from, @to: states, as enum cm_state or cm_lap_state */
struct cm_trace {
	enum cm_trace_kind kind;
	const struct cm_conn *conn;
	const struct cm_route *route;
	const uint8_t *mad;
	int error; /* of ops->send() */
	int from, to;
	enum cm_news news;
};

/** struct cm_ops - the environment, provided by the owner of a struct cm */
struct cm_ops {
	/** send() - send one MAD of WIRE_MAD_BYTES
	 *  Return: 0; -errno it could not be sent. A call of the consumer returns this
	 *  error; in other cases the MAD is treated as lost. */
	int (*send)(struct cm *cm, const struct cm_route *route, const void *mad);
	/** arm() - call cm_expire() at @when, which replaces an earlier time; MONO_NEVER:
	 *  never */
	void (*arm)(struct cm_conn *conn, mono_t when);
	/** accept() - allocate a conn for a request to @listener, opened with cm_conn_open()
	 *  Return: NULL if there is no room, which is reported to the peer */
	struct cm_conn *(*accept)(struct cm *cm, struct cm_conn *listener);
	/** gone() - the orphan @conn is finished and may be freed */
	void (*gone)(struct cm_conn *conn);
	void (*event)(struct cm_conn *conn, const struct cm_event *event);
	/** find_port() - find the port @port, or if that is 0 the port with @gid
	 *  Return: true if it exists */
	bool (*find_port)(struct cm *cm, uint8_t port, const union wire_gid *gid,
			  struct cm_port *found);
	/** redirect() - find the path to the port that @to names. Later, unless @conn goes or
	 *  is redirected anew, cm_redirect() or cm_redirect_fail() is called once. They do
	 *  nothing if the id is connected or closed by then. @to: valid until return
	 *  Return: 0; -errno: the consumer gets the answer as an event. NULL: it always does */
	int (*redirect)(struct cm_conn *conn, const struct cm_redirection *to);
	/** trace() - called while *cm->traced is not 0; may be NULL */
	void (*trace)(struct cm *cm, const struct cm_trace *trace);
};

/** struct cm_stats - messages by attribute (WIRE_CM_REQ first), as the kernel counts them
 */
#define CM_NR_MESSAGES (WIRE_CM_APR - WIRE_CM_REQ + 1)
struct cm_stats {
	uint64_t sent[CM_NR_MESSAGES];
	uint64_t retries[CM_NR_MESSAGES];
	uint64_t received[CM_NR_MESSAGES];
	uint64_t duplicates[CM_NR_MESSAGES];
	uint64_t ignored; /* messages that were malformed, belonged to no connection, or are not allowed in its state */
};

/** struct cm - owned by the caller, who zeroes it and calls cm_init() */
struct cm {
	void *owner;
	const struct cm_ops *ops;
	const uint8_t *traced; /* the owner's: turns ops->trace() on; NULL: never */
	uint64_t ca_guid;
	uint32_t next_id, next_tid, tid_high;
	uint64_t next_service_id;
	unsigned int num_conns;
	struct cm_stats stats;
	uint64_t rows[CM_ROW_WORDS]; /* a bit for each row of the tables that was used: for
						tests */
	struct list_head ids[CM_BUCKETS];      /* all conns, by local_id */
	struct list_head peers[CM_BUCKETS];    /* by remote CA and communication id */
	struct list_head qps[CM_BUCKETS];      /* by remote CA and QP */
	struct list_head services[CM_BUCKETS]; /* listeners of one service id */
	struct list_head masked;	       /* listeners of several */
};

/** struct cm_conn - one communication id; allocated by its owner */
struct cm_conn {
	struct cm *cm;
	enum cm_state state;
	enum cm_lap_state lap_state;
	uint32_t local_id, remote_id; /* remote_id 0: not known yet */
	uint64_t remote_ca_guid;      /* for a SIDR_REQ: the peer's address */
	uint64_t service_id, service_mask;
	bool active;	   /* this end sent the REQ */
	bool peer_to_peer; /* both ends may send a REQ */
	bool orphan;	   /* the consumer closed it */
	bool redirecting;  /* a path is being looked up; no message is under way */
	uint8_t redirects; /* how many more redirections are followed */
	bool settling;	   /* the consumer knows of the end and gets only TIMEWAIT_EXIT */
	uint16_t sent;	   /* attribute of the message in mad; 0: none */
	uint8_t tries;	   /* remaining retries of the message that awaits its answer */
	uint8_t max_tries;
	uint8_t packet_life_enc;
	uint64_t response_ns; /* how long the peer may take to answer */
	uint64_t time_wait_ns;
	struct cm_route route; /* to the peer's CM */
	struct cm_terms terms;
	struct cm_alternate before_lap; /* restored if the LAP is rejected */
	uint64_t tid;			/* transaction id of the current exchange */
	uint64_t lap_tid;
	struct list_head id_node, peer_node, qp_node, service_node;
	uint8_t mad[WIRE_MAD_BYTES];	 /* the last message of the connection */
	uint8_t lap_mad[WIRE_MAD_BYTES]; /* the last LAP, APR or MRA of a LAP */
};

/** struct cm_target - the destination of a request
 *  @tries: how often it is sent, 1 or more
 *  @redirects: how many redirections are followed; a further one is an event for the consumer */
struct cm_target {
	struct cm_route route;
	struct cm_route alternate; /* dlid 0: there is none */
	uint8_t packet_life_enc;
	uint8_t tries;
	uint8_t redirects;
	uint64_t response_ns;
	bool peer_to_peer;
};

/**
 * cm_init() - @cm: zeroed
 * @ca_guid: of the adapter, for REQ and REP
 * @random: the first communication and transaction ids, so that ids that were
 *  used before a restart are not reused soon (12.9.8.3)
 */
void cm_init(struct cm *cm, const struct cm_ops *ops, uint64_t ca_guid, uint64_t random);
/** cm_shut() - the adapter is removed: free orphans without sending a message. All
 *  conns of consumers must have been closed by cm_conn_close(). */
void cm_shut(struct cm *cm);

/** cm_conn_open() - make the zeroed @conn an idle communication id of @cm */
void cm_conn_open(struct cm *cm, struct cm_conn *conn);
/**
 * cm_conn_close() - close @conn
 * The peer is notified by a REJ, by a DREQ that is repeated until it is answered, or
 * by a DREP. There are no further calls of ops->event() for @conn; ops->gone() is
 * called, perhaps before this function returns.
 */
void cm_conn_close(struct cm_conn *conn, mono_t now);

/**
 * cm_listen() - listen for requests for a service id
 * @mask: bits of @service_id that are compared; CM_SERVICE_MASK_EXACT
 * Return: 0; -EINVAL not idle; -EBUSY another listener has such a service id
 */
int cm_listen(struct cm_conn *conn, uint64_t service_id, uint64_t mask);
/** cm_assign_service_id() - an unused service id of the range for local assignment
 *  (A3.2.3.3) */
uint64_t cm_assign_service_id(struct cm *cm);

/** cm_send_req() - request a connection
 *  @req: local_comm_id and local_ca_guid are filled in
 *  Return: 0; -EINVAL not idle, or a field is out of range; -errno of ops->send() */
int cm_send_req(struct cm_conn *conn, struct wire_cm_req *req,
		const struct cm_target *target, mono_t now);
/** cm_send_sidr_req() - request the QP of a service id; request_id is filled in */
int cm_send_sidr_req(struct cm_conn *conn, struct wire_cm_sidr_req *req,
		     const struct cm_target *target, mono_t now);
/**
 * cm_send() - send any other message
 * @attr: WIRE_CM_MRA to WIRE_CM_APR
 * @message: its fields; communication ids, the QP of a DREQ, and the message field of MRA
 *  and REJ are filled in
 * @alternate: for a LAP, and an APR that accepts, the route of the new path; otherwise NULL
 * Return: 0; -EINVAL the state does not allow it, or a field is out of range; -errno of
 * ops->send()
 */
int cm_send(struct cm_conn *conn, enum wire_cm_attr attr, union cm_message *message,
	    const struct cm_route *alternate, mono_t now);
/** cm_establish() - data arrived on the connection, so the peer has sent its RTU
 *  CM_USER_ESTABLISHED is delivered before this function returns.
 *  Return: 0; -EINVAL; -EISCONN it is established already */
int cm_establish(struct cm_conn *conn, mono_t now);
/** cm_migrated() - the connection has migrated: send messages on the alternate path too
 *  Return: 0; -EINVAL */
int cm_migrated(struct cm_conn *conn);

/**
 * cm_redirect() - ops->redirect() has found a path: send the request again, on it
 * The request gets a new communication id and transaction id (12.9.8.3) and all its tries.
 * Its alternate path is dropped, because that leads to the port that redirected.
 * @primary: of a REQ: the new path
 * Return: 0; -EINVAL nothing is looked up for @conn; -errno of ops->send()
 */
int cm_redirect(struct cm_conn *conn, const struct cm_route *route,
		const struct wire_cm_path *primary, uint8_t packet_life_enc, mono_t now);
/** cm_redirect_fail() - there is no path: the consumer gets @to->answer as an event */
void cm_redirect_fail(struct cm_conn *conn, const struct cm_redirection *to, mono_t now);

/** cm_wants() - is a received MAD of class CM for a communication id or a listener of @cm?
 *  @route: as of cm_receive(). Return: false: cm_receive() would at most refuse it */
bool cm_wants(struct cm *cm, const void *mad, const struct cm_route *route);
/** cm_receive() - process a received MAD of class CM
 *  @route: the path for an answer */
void cm_receive(struct cm *cm, const void *mad, const struct cm_route *route, mono_t now);
/** cm_expire() - the time given to ops->arm() has been reached */
void cm_expire(struct cm_conn *conn, mono_t now);

/** cm_state_name() - for resource show and traces; cm_news_name() likewise */
const char *cm_state_name(enum cm_state state);
const char *cm_news_name(enum cm_news news);
const char *cm_lap_state_name(enum cm_lap_state state);
/** cm_message_name() - "REQ" of WIRE_CM_REQ; "?" if it is none of the class */
const char *cm_message_name(uint16_t attr);
/** cm_private_max() - length of a message's private data (12.6, 12.8, 12.11) */
unsigned int cm_private_max(enum wire_cm_attr attr);

#endif
