/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Communication management (IBA v1 chapter 12) for clients of the midlayer: connections
 * of queue pairs between consumers that know a service id, and the resolution of service
 * ids to datagram QPs.
 *
 * A *communication id* (struct ib_cm_id) is a listener, one end of a connection or one
 * resolution. News come to its handler, from the loop, one at a time. A handler may call
 * anything here; one that returns other than 0 destroys its id, which it must not do
 * itself. Messages that wait for an answer are repeated by the times and counts of
 * their sender; what arrives twice, too late or for nobody is dealt with here.
 *
 * Names and rules are those of the Linux InfiniBand core.
 */
#ifndef RDMA_IB_CM_H
#define RDMA_IB_CM_H

#include "rdma/ib_mad.h"
#include "rdma/ib_sa.h"

#pragma GCC visibility push(default)

#define IB_CM_CLASS_VERSION 2

/** enum ib_cm_state - of an id (12.9.7) */
enum ib_cm_state {
	IB_CM_IDLE,
	IB_CM_LISTEN,
	IB_CM_REQ_SENT,
	IB_CM_REQ_RCVD,
	IB_CM_MRA_REQ_SENT,
	IB_CM_MRA_REQ_RCVD,
	IB_CM_REP_SENT,
	IB_CM_REP_RCVD,
	IB_CM_MRA_REP_SENT,
	IB_CM_MRA_REP_RCVD,
	IB_CM_ESTABLISHED,
	IB_CM_DREQ_SENT,
	IB_CM_DREQ_RCVD,
	IB_CM_TIMEWAIT,
	IB_CM_SIDR_REQ_SENT,
	IB_CM_SIDR_REQ_RCVD,
};

/** enum ib_cm_lap_state - of loading an alternate path, while established (12.9.8) */
enum ib_cm_lap_state {
	IB_CM_LAP_UNINIT,
	IB_CM_LAP_IDLE,
	IB_CM_LAP_SENT,
	IB_CM_LAP_RCVD,
	IB_CM_MRA_LAP_SENT,
	IB_CM_MRA_LAP_RCVD,
};

/** enum ib_cm_event_type - ..._ERROR: nobody answered that message */
enum ib_cm_event_type {
	IB_CM_REQ_ERROR,
	IB_CM_REQ_RECEIVED,
	IB_CM_REP_ERROR,
	IB_CM_REP_RECEIVED,
	IB_CM_RTU_RECEIVED,
	IB_CM_USER_ESTABLISHED,
	IB_CM_DREQ_ERROR,
	IB_CM_DREQ_RECEIVED,
	IB_CM_DREP_RECEIVED,
	IB_CM_TIMEWAIT_EXIT,
	IB_CM_MRA_RECEIVED,
	IB_CM_REJ_RECEIVED,
	IB_CM_LAP_ERROR,
	IB_CM_LAP_RECEIVED,
	IB_CM_APR_RECEIVED,
	IB_CM_SIDR_REQ_ERROR,
	IB_CM_SIDR_REQ_RECEIVED,
	IB_CM_SIDR_REP_RECEIVED,
};

/** bytes of private data in each message, and of additional information */
enum ib_cm_data_size {
	IB_CM_REQ_PRIVATE_DATA_SIZE = 92,
	IB_CM_MRA_PRIVATE_DATA_SIZE = 222,
	IB_CM_REJ_PRIVATE_DATA_SIZE = 148,
	IB_CM_REP_PRIVATE_DATA_SIZE = 196,
	IB_CM_RTU_PRIVATE_DATA_SIZE = 224,
	IB_CM_DREQ_PRIVATE_DATA_SIZE = 220,
	IB_CM_DREP_PRIVATE_DATA_SIZE = 224,
	IB_CM_REJ_ARI_LENGTH = 72,
	IB_CM_LAP_PRIVATE_DATA_SIZE = 168,
	IB_CM_APR_PRIVATE_DATA_SIZE = 148,
	IB_CM_APR_INFO_LENGTH = 72,
	IB_CM_SIDR_REQ_PRIVATE_DATA_SIZE = 216,
	IB_CM_SIDR_REP_PRIVATE_DATA_SIZE = 136,
	IB_CM_SIDR_REP_INFO_LENGTH = 72,
};

/** enum ib_cm_rej_reason - 12.6.7.2 */
enum ib_cm_rej_reason {
	IB_CM_REJ_NO_QP = 1,
	IB_CM_REJ_NO_EEC = 2,
	IB_CM_REJ_NO_RESOURCES = 3,
	IB_CM_REJ_TIMEOUT = 4,
	IB_CM_REJ_UNSUPPORTED = 5,
	IB_CM_REJ_INVALID_COMM_ID = 6,
	IB_CM_REJ_INVALID_COMM_INSTANCE = 7,
	IB_CM_REJ_INVALID_SERVICE_ID = 8,
	IB_CM_REJ_INVALID_TRANSPORT_TYPE = 9,
	IB_CM_REJ_STALE_CONN = 10,
	IB_CM_REJ_RDC_NOT_EXIST = 11,
	IB_CM_REJ_INVALID_GID = 12,
	IB_CM_REJ_INVALID_LID = 13,
	IB_CM_REJ_INVALID_SL = 14,
	IB_CM_REJ_INVALID_TRAFFIC_CLASS = 15,
	IB_CM_REJ_INVALID_HOP_LIMIT = 16,
	IB_CM_REJ_INVALID_PACKET_RATE = 17,
	IB_CM_REJ_INVALID_ALT_GID = 18,
	IB_CM_REJ_INVALID_ALT_LID = 19,
	IB_CM_REJ_INVALID_ALT_SL = 20,
	IB_CM_REJ_INVALID_ALT_TRAFFIC_CLASS = 21,
	IB_CM_REJ_INVALID_ALT_HOP_LIMIT = 22,
	IB_CM_REJ_INVALID_ALT_PACKET_RATE = 23,
	IB_CM_REJ_PORT_CM_REDIRECT = 24,
	IB_CM_REJ_PORT_REDIRECT = 25,
	IB_CM_REJ_INVALID_MTU = 26,
	IB_CM_REJ_INSUFFICIENT_RESP_RESOURCES = 27,
	IB_CM_REJ_CONSUMER_DEFINED = 28,
	IB_CM_REJ_INVALID_RNR_RETRY = 29,
	IB_CM_REJ_DUPLICATE_LOCAL_COMM_ID = 30,
	IB_CM_REJ_INVALID_CLASS_VERSION = 31,
	IB_CM_REJ_INVALID_FLOW_LABEL = 32,
	IB_CM_REJ_INVALID_ALT_FLOW_LABEL = 33,
};

/** ibcm_reject_msg() - Return: a reason in words; never NULL */
const char *ibcm_reject_msg(int reason);

/** enum ib_cm_apr_status - 12.8.2.1 */
enum ib_cm_apr_status {
	IB_CM_APR_SUCCESS,
	IB_CM_APR_INVALID_COMM_ID,
	IB_CM_APR_UNSUPPORTED,
	IB_CM_APR_REJECT,
	IB_CM_APR_REDIRECT,
	IB_CM_APR_IS_CURRENT,
	IB_CM_APR_INVALID_QPN_EECN,
	IB_CM_APR_INVALID_LID,
	IB_CM_APR_INVALID_GID,
	IB_CM_APR_INVALID_FLOW_LABEL,
	IB_CM_APR_INVALID_TCLASS,
	IB_CM_APR_INVALID_HOP_LIMIT,
	IB_CM_APR_INVALID_PACKET_RATE,
	IB_CM_APR_INVALID_SL,
};

/** enum ib_cm_sidr_status - 12.11.2.1 */
enum ib_cm_sidr_status {
	IB_SIDR_SUCCESS,
	IB_SIDR_UNSUPPORTED,
	IB_SIDR_REJECT,
	IB_SIDR_NO_QP,
	IB_SIDR_REDIRECT,
	IB_SIDR_UNSUPPORTED_VERSION,
};

struct ib_cm_id;

/* --- news --- */

/** struct ib_cm_ece - options for enhanced connection establishment (ECE) that QPs of one
 *  vendor agree on. @vendor_id: 24 bits; 0: there are none. @attr_mod: the vendor's */
struct ib_cm_ece {
	u32 vendor_id, attr_mod;
};

/** struct ib_cm_req_event_param - a request; the id that it comes with is new, and has
 * the handler and context of @listen_id. Paths are seen from here. */
struct ib_cm_req_event_param {
	struct ib_cm_id *listen_id;
	u8 port;
	struct sa_path_rec *primary_path;
	struct sa_path_rec *alternate_path; /* NULL: there is none */
	__be64 remote_ca_guid;
	u32 remote_qkey, remote_qpn;
	enum ib_qp_type qp_type;
	u32 starting_psn;
	struct ib_cm_ece ece; /* the peer's */
	u8 responder_resources; /* at most so many READs this end may serve */
	u8 initiator_depth;	/* and ask for */
	unsigned int local_cm_response_timeout : 5;
	unsigned int flow_control : 1;
	unsigned int remote_cm_response_timeout : 5;
	unsigned int retry_count : 3;
	unsigned int rnr_retry_count : 3;
	unsigned int srq : 1;
	u16 bth_pkey; /* of the REQ itself */
	u16 remote_cm_lid; /* from which the REQ came, whatever path it names */
};

struct ib_cm_rep_event_param {
	__be64 remote_ca_guid;
	u32 remote_qkey, remote_qpn;
	u32 starting_psn;
	struct ib_cm_ece ece; /* the peer's */
	u8 responder_resources, initiator_depth;
	unsigned int target_ack_delay : 5;
	unsigned int failover_accepted : 2;
	unsigned int flow_control : 1;
	unsigned int rnr_retry_count : 3;
	unsigned int srq : 1;
};

struct ib_cm_rej_event_param {
	enum ib_cm_rej_reason reason;
	const void *ari;
	u8 ari_length;
};

struct ib_cm_mra_event_param {
	u8 service_timeout; /* exponent: 4.096 us * 2^n */
};

struct ib_cm_lap_event_param {
	struct sa_path_rec *alternate_path; /* seen from here */
};

struct ib_cm_apr_event_param {
	enum ib_cm_apr_status ap_status;
	const void *apr_info;
	u8 info_len;
};

/** struct ib_cm_sidr_req_event_param - as a REQ: the id is new */
struct ib_cm_sidr_req_event_param {
	struct ib_cm_id *listen_id;
	__be64 service_id;
	u8 port;
	u16 pkey, bth_pkey;
};

struct ib_cm_sidr_rep_event_param {
	enum ib_cm_sidr_status status;
	u32 qkey, qpn;
	const void *info;
	u8 info_len;
};

/** struct ib_cm_event - one piece of news; all of it is valid until the handler returns.
 *  @private_data: of the message, as many bytes as that message has room for; NULL */
struct ib_cm_event {
	enum ib_cm_event_type event;
	union {
		struct ib_cm_req_event_param req_rcvd;
		struct ib_cm_rep_event_param rep_rcvd;
		/* DREQ, DREP and RTU have private data alone */
		struct ib_cm_rej_event_param rej_rcvd;
		struct ib_cm_mra_event_param mra_rcvd;
		struct ib_cm_lap_event_param lap_rcvd;
		struct ib_cm_apr_event_param apr_rcvd;
		struct ib_cm_sidr_req_event_param sidr_req_rcvd;
		struct ib_cm_sidr_rep_event_param sidr_rep_rcvd;
		enum ib_wc_status send_status; /* of an ..._ERROR */
	} param;
	void *private_data;
};

/** ib_cm_handler - Return: 0; other: destroy @cm_id */
typedef int (*ib_cm_handler)(struct ib_cm_id *cm_id, const struct ib_cm_event *event);

/** struct ib_cm_id - the client reads it; @context is the client's to change */
struct ib_cm_id {
	ib_cm_handler cm_handler;
	void *context;
	struct ib_device *device;
	__be64 service_id;
	enum ib_cm_state state;
	enum ib_cm_lap_state lap_state; /* while established */
	__be32 local_id, remote_id;
	u32 remote_cm_qpn;  /* 1, unless redirected: see "redirection" below */
	u32 remote_cm_qkey; /* of @remote_cm_qpn, unless that is 1 */
};

/* --- ids --- */

/**
 * ib_create_cm_id() - an idle communication id on @device
 * Context: may sleep. Return: the id; ERR_PTR(-ENODEV the device goes, -ENOMEM, -EBUSY
 * another agent of the device has the CM class)
 */
struct ib_cm_id *ib_create_cm_id_(struct ib_device *device, ib_cm_handler cm_handler,
				  void *context, const char *client);
#define ib_create_cm_id(device, handler, context)                                        \
	ib_create_cm_id_(device, handler, context, SOFTIB_CLIENT_NAME)
/**
 * ib_destroy_cm_id() - its handler does not run any more
 * The peer of a connection is told: an unanswered request is rejected, an established
 * connection disconnected; the core goes on with that by itself. Not from within the
 * handler of @cm_id. Context: may sleep.
 */
void ib_destroy_cm_id(struct ib_cm_id *cm_id);

#define IB_SERVICE_ID_AGN_MASK	cpu_to_be64(0xFF00000000000000ull)
#define IB_CM_ASSIGN_SERVICE_ID cpu_to_be64(0x0200000000000000ull)
#define IB_CMA_SERVICE_ID	cpu_to_be64(0x0000000001000000ull)
#define IB_CMA_SERVICE_ID_MASK	cpu_to_be64(0xFFFFFFFFFF000000ull)
#define IB_SDP_SERVICE_ID	cpu_to_be64(0x0000000000010000ull)
#define IB_SDP_SERVICE_ID_MASK	cpu_to_be64(0xFFFFFFFFFFFF0000ull)

/**
 * ib_cm_listen() - take requests for a service id
 * @service_id: or IB_CM_ASSIGN_SERVICE_ID: one that is free; cm_id->service_id tells it
 * @service_mask: bits that count; 0 is all of them
 * Return: 0; -EINVAL not idle, or of those that the core assigns; -EBUSY the device has
 * a listener for such a service id
 */
int ib_cm_listen(struct ib_cm_id *cm_id, __be64 service_id, __be64 service_mask);

/* --- connections --- */

/**
 * struct ib_cm_req_param - what to ask for
 * @primary_path: from a port of the device: its SGID says which
 * @alternate_path: to migrate to; NULL
 * @peer_to_peer: the peer may ask for the same at the same time: one connection comes of
 * it
 * @remote_cm_response_timeout: how long the peer may take to answer, but for the way;
 * @local_cm_response_timeout: how long this end may, with the way; exponents, 4.096 us *
 * 2^n
 * @max_cm_retries: how often each end repeats a message
 * @max_redirects: how many redirections the core follows by itself; 0: none, as on Linux
 */
struct ib_cm_req_param {
	struct sa_path_rec *primary_path;
	struct sa_path_rec *alternate_path;
	__be64 service_id;
	u32 qp_num;
	enum ib_qp_type qp_type;
	u32 starting_psn;
	const void *private_data;
	u8 private_data_len;
	u8 peer_to_peer;
	u8 responder_resources, initiator_depth;
	u8 remote_cm_response_timeout;
	u8 flow_control;
	u8 local_cm_response_timeout;
	u8 retry_count, rnr_retry_count;
	u8 max_cm_retries;
	u8 srq;
	struct ib_cm_ece ece;
	u8 max_redirects;
};

/** ib_send_cm_req() - Return: 0; -EINVAL not idle, a value that does not fit, no such
 * port or P_Key; -ENODEV the device went; -ENOMEM. Here and below: context: any; never
 * sleeps */
int ib_send_cm_req(struct ib_cm_id *cm_id, struct ib_cm_req_param *param);

struct ib_cm_rep_param {
	u32 qp_num;
	u32 starting_psn;
	const void *private_data;
	u8 private_data_len;
	u8 responder_resources, initiator_depth;
	u8 failover_accepted;
	u8 flow_control;
	u8 rnr_retry_count;
	u8 srq;
	struct ib_cm_ece ece; /* those of the peer's that are accepted */
};

/** ib_send_cm_rep() - accept. Errors here and below: -EINVAL the state does not allow it,
 *  too much private data; -ENODEV, -ENOMEM */
int ib_send_cm_rep(struct ib_cm_id *cm_id, struct ib_cm_rep_param *param);
/** ib_send_cm_rtu() - the QP that asked is ready to use */
int ib_send_cm_rtu(struct ib_cm_id *cm_id, const void *private_data, u8 private_data_len);
/** ib_send_cm_dreq() - disconnect: IB_CM_DREP_RECEIVED or IB_CM_DREQ_ERROR follows, then
 *  IB_CM_TIMEWAIT_EXIT, after which the QP may be used again */
int ib_send_cm_dreq(struct ib_cm_id *cm_id, const void *private_data,
		    u8 private_data_len);
/** ib_send_cm_drep() - agree to be disconnected */
int ib_send_cm_drep(struct ib_cm_id *cm_id, const void *private_data,
		    u8 private_data_len);
/**
 * ib_cm_notify() - the QP saw something that the id should know
 * @event: IB_EVENT_COMM_EST: data came before the RTU, IB_CM_USER_ESTABLISHED follows;
 *	IB_EVENT_PATH_MIG: the connection uses its alternate path
 * Return: 0; -EINVAL the state or event; -EISCONN it is established already
 */
int ib_cm_notify(struct ib_cm_id *cm_id, enum ib_event_type event);
/** ib_cm_establish() - the name before Linux 2.6.20 */
static inline int ib_cm_establish(struct ib_cm_id *cm_id)
{
	return ib_cm_notify(cm_id, IB_EVENT_COMM_EST);
}
/** ib_send_cm_rej() - refuse a REQ or REP. @ari: additional information, by the reason */
int ib_send_cm_rej(struct ib_cm_id *cm_id, enum ib_cm_rej_reason reason, void *ari,
		   u8 ari_length, const void *private_data, u8 private_data_len);
/** ib_send_cm_mra() - the answer to a REQ, REP or LAP takes longer than the peer expects:
 *  4.096 us * 2^@service_timeout more */
int ib_send_cm_mra(struct ib_cm_id *cm_id, u8 service_timeout, const void *private_data,
		   u8 private_data_len);

/**
 * ib_cm_init_qp_attr() - what the messages say about the QP of this end
 * @qp_attr: in: qp_state is the state to come: INIT, RTR or RTS; out: all that the CM
 * knows. Who accepts and goes to RTR before ib_send_cm_rep() sets rq_psn to the
 * starting_psn that it will send
 * @qp_attr_mask: out: which attributes
 * Return: 0; -EINVAL nothing is known for such a change yet
 */
int ib_cm_init_qp_attr(struct ib_cm_id *cm_id, struct ib_qp_attr *qp_attr,
		       int *qp_attr_mask);

/*
 * --- redirection ---
 *
 * The recipient of a REQ may name another place for the service (IBA v1 12.6.7.2), by
 * ib_send_cm_rej() with additional information:
 *
 *  IB_CM_REJ_PORT_CM_REDIRECT  a struct ib_class_port_info: the port, and the QP and Q_Key
 *			       of the CM there; its GID is required, a LID or P_Key of 0 is
 *			       left to the subnet administrator
 *  IB_CM_REJ_PORT_REDIRECT     the GID of a port (union ib_gid)
 *
 * and the recipient of a SIDR_REQ by IB_SIDR_REDIRECT, with a struct ib_class_port_info. The
 * specification leaves to the requester whether it follows. Clients for Linux expect
 * IB_CM_REJ_RECEIVED, and some follow it themselves: they set remote_cm_qpn (here also
 * remote_cm_qkey) of an idle id and send a REQ on a path to the other port. That is what
 * happens with max_redirects 0. Otherwise the core looks up the path, sends the request
 * again, with a new communication id, and the client gets no event. It gets that of the REJ
 * or SIDR_REP if no path leads there, if the information is incomplete, or if there were
 * max_redirects redirections before. The new request has no alternate path. The RDMA CM
 * follows redirections, because its clients cannot: they know addresses, no CMs.
 */

#define IB_CM_MAX_REDIRECTS 4 /* of the RDMA CM: enough for any plan, and two CMs that name
				 each other do not keep a request forever */

/**
 * ib_cm_redirect() - redirect the CM class of a port
 * @to: where to; capabilities and versions are filled in; copied. NULL: nowhere any more
 * The port answers Get(ClassPortInfo) with @to, and redirects REQs and SIDR_REQs that arrive
 * at QP1. Connections that exist are not affected, nor are messages of a QP of
 * ib_cm_serve_qp().
 * Return: 0; -EINVAL no such port; -ENODEV, -ENOMEM, -EBUSY as ib_create_cm_id()
 */
int ib_cm_redirect(struct ib_device *device, u32 port_num, const struct ib_class_port_info *to);
/**
 * ib_cm_serve_qp() - the CM of a device receives messages by @qp, too (13.5.2)
 * @qp: as for ib_redirect_mad_qp(): completions of the QP go to ib_process_mad_wc() with the
 * agent. The CM sends by QP1.
 * Return: the agent, for ib_unregister_mad_agent(), before @qp is destroyed; ERR_PTR(-EINVAL,
 * -ENODEV, -ENOMEM, -EBUSY)
 */
struct ib_mad_agent *ib_cm_serve_qp(struct ib_qp *qp);

/* --- alternate paths --- */

/** ib_send_cm_lap() - of who sent the REQ: ask for an alternate path. IB_CM_APR_RECEIVED
 * or IB_CM_LAP_ERROR follows */
int ib_send_cm_lap(struct ib_cm_id *cm_id, struct sa_path_rec *alternate_path,
		   const void *private_data, u8 private_data_len);
int ib_send_cm_apr(struct ib_cm_id *cm_id, enum ib_cm_apr_status status, void *info,
		   u8 info_length, const void *private_data, u8 private_data_len);

/* --- service ids --- */

/** struct ib_cm_sidr_req_param - @timeout_ms: of each of @max_cm_retries + 1 tries */
struct ib_cm_sidr_req_param {
	struct sa_path_rec *path;
	__be64 service_id;
	unsigned long timeout_ms;
	const void *private_data;
	u8 private_data_len;
	u8 max_cm_retries;
	u8 max_redirects; /* as of struct ib_cm_req_param */
};

/** ib_send_cm_sidr_req() - which QP serves a service id? IB_CM_SIDR_REP_RECEIVED or
 *  IB_CM_SIDR_REQ_ERROR follows, and the id is idle again */
int ib_send_cm_sidr_req(struct ib_cm_id *cm_id, struct ib_cm_sidr_req_param *param);
/** ib_cm_init_ah_attr() - the port that answered the SIDR_REQ of @cm_id: that of its path,
 *  or the one to which it was redirected. Return: 0; -ENODEV; -ENOENT its GID is gone */
int ib_cm_init_ah_attr(struct ib_cm_id *cm_id, struct rdma_ah_attr *attr);

struct ib_cm_sidr_rep_param {
	u32 qp_num;
	u32 qkey;
	enum ib_cm_sidr_status status;
	const void *info;
	u8 info_length;
	const void *private_data;
	u8 private_data_len;
};

int ib_send_cm_sidr_rep(struct ib_cm_id *cm_id, struct ib_cm_sidr_rep_param *param);

/* --- the core's own --- */

/** ib_cm_init() - start the CM: behind ib_sa_init(). 0; -errno */
int ib_cm_init(struct rt *rt);
void ib_cm_cleanup(struct rt *rt);
/** ib_cm_set_owner() - @id belongs to the process @pid, whose name is @comm, and no longer to
 *  the client that created it. The ids of requests to @id that arrive from now on belong to
 *  that process, too. `softib resource show` prints the owner. @comm is copied */
void ib_cm_set_owner(struct ib_cm_id *id, pid_t pid, const char *comm);

#pragma GCC visibility pop

#endif
