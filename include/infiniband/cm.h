/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * libibcm: communication management (IBA v1 chapter 12) by programs, without the RDMA CM. They connect queue
 * pairs by service ids and paths, and resolve service ids to datagram queue pairs.
 *
 * rdma-core had this library until version 16, and OFED had it before. Programs that were compiled and linked with
 * it run with this one: names, layouts and symbol versions (IBCM_1.0) are the same. The messages, states
 * and events are those of the midlayer's CM.
 *
 * Functions that return int return 0, or -1 with errno: EINVAL the state of the id does not allow the call,
 * a value does not fit into the message, or there is too much private data; ENOENT there is no such id;
 * ENODEV the adapter or softibd is gone; ENOMEM. Context: any thread. They wait for softibd, and for nobody else
 * unless this is said. Private data are copied; NULL: none.
 */
#ifndef INFINIBAND_CM_H
#define INFINIBAND_CM_H

#include <endian.h>
#include <infiniband/sa.h>
#include <infiniband/verbs.h>
#include <linux/types.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** enum ib_cm_event_type - what an event is about: a message that came, or (ERROR) a message that nobody
 *  answered; that the program called ib_cm_notify(); or that an ended connection has no more packets under way */
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
	IB_CM_SIDR_REP_RECEIVED
};

/** enum ib_cm_data_size - bytes of private data and of additional information that a message has room for */
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
	IB_CM_SIDR_REP_INFO_LENGTH = 72
};

/** struct ib_cm_device - an open adapter. @fd: readable while there is an event; to be polled, and with
 *  O_NONBLOCK ib_cm_get_event() does not wait (EAGAIN) */
struct ib_cm_device {
	struct ibv_context *device_context;
	int fd;
};

/** struct ib_cm_id - a listener, one end of a connection, or a resolution. @context: the program's to change */
struct ib_cm_id {
	void *context;
	struct ib_cm_device *device;
	uint32_t handle;
};

/* --- devices and ids --- */

/** ib_cm_open_device() - open the CM of an adapter, which stays open while it is used
 *  Return: NULL and errno */
struct ib_cm_device *ib_cm_open_device(struct ibv_context *device_context);
/** ib_cm_close_device() - close it when its ids are destroyed and its events acknowledged */
void ib_cm_close_device(struct ib_cm_device *device);

int ib_cm_create_id(struct ib_cm_device *device, struct ib_cm_id **cm_id, void *context);
/** ib_cm_destroy_id() - the peer of a connection or request is told. Waits until the events of the id
 *  that were taken are acknowledged */
int ib_cm_destroy_id(struct ib_cm_id *cm_id);

/** struct ib_cm_attr_param - @service_mask: 0 of an idle id; @local_id, @remote_id: communication ids of the
 *  connection (12.6.1), 0 when not known */
struct ib_cm_attr_param {
	__be64 service_id;
	__be64 service_mask;
	__be32 local_id;
	__be32 remote_id;
};

int ib_cm_attr_id(struct ib_cm_id *cm_id, struct ib_cm_attr_param *param);

/* ids from IB_CM_ASSIGN_SERVICE_ID on, by this mask, are those that the CM assigns */
#define IB_CM_ASSIGN_SERVICE_ID_MASK htobe64(0xFF00000000000000ULL)
#define IB_CM_ASSIGN_SERVICE_ID	     htobe64(0x0200000000000000ULL)

/**
 * ib_cm_listen() - take REQs and SIDR_REQs for a service id
 * @service_id: or IB_CM_ASSIGN_SERVICE_ID: a free one, which ib_cm_attr_id() tells
 * @service_mask: which bits count; 0: all
 * Return: -1 also with EBUSY the adapter has a listener for such an id; EINVAL requests for the RDMA CM or SDP
 * would match
 */
int ib_cm_listen(struct ib_cm_id *cm_id, __be64 service_id, __be64 service_mask);

/* --- connections --- */

/** struct ib_cm_req_param - a request. @primary_path: from a port of the adapter; @alternate_path: or NULL
 *  @remote_cm_response_timeout, @local_cm_response_timeout: time for an answer of the peer, and of this end
 *  with the way: 4.096 us * 2^n; @max_cm_retries: of each message of either end */
struct ib_cm_req_param {
	struct ibv_sa_path_rec *primary_path;
	struct ibv_sa_path_rec *alternate_path;
	__be64 service_id;
	uint32_t qp_num;
	enum ibv_qp_type qp_type;
	uint32_t starting_psn;
	void *private_data;
	uint8_t private_data_len;
	uint8_t peer_to_peer;
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t remote_cm_response_timeout;
	uint8_t flow_control;
	uint8_t local_cm_response_timeout;
	uint8_t retry_count;
	uint8_t rnr_retry_count;
	uint8_t max_cm_retries;
	uint8_t srq;
};

int ib_cm_send_req(struct ib_cm_id *cm_id, struct ib_cm_req_param *param);

/** struct ib_cm_rep_param - the answer that accepts. @target_ack_delay: not used, the adapter's is sent */
struct ib_cm_rep_param {
	uint32_t qp_num;
	uint32_t starting_psn;
	void *private_data;
	uint8_t private_data_len;
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t target_ack_delay;
	uint8_t failover_accepted;
	uint8_t flow_control;
	uint8_t rnr_retry_count;
	uint8_t srq;
};

int ib_cm_send_rep(struct ib_cm_id *cm_id, struct ib_cm_rep_param *param);
/** ib_cm_send_rtu() - the queue pair of the end that asked is ready */
int ib_cm_send_rtu(struct ib_cm_id *cm_id, void *private_data, uint8_t private_data_len);
/** ib_cm_send_dreq() - disconnect; IB_CM_DREP_RECEIVED or IB_CM_DREQ_ERROR follows, and IB_CM_TIMEWAIT_EXIT */
int ib_cm_send_dreq(struct ib_cm_id *cm_id, void *private_data, uint8_t private_data_len);
/** ib_cm_send_drep() - answer to a DREQ */
int ib_cm_send_drep(struct ib_cm_id *cm_id, void *private_data, uint8_t private_data_len);
/** ib_cm_notify() - tell the CM what the queue pair saw: IBV_EVENT_COMM_EST data came before the RTU;
 *  IBV_EVENT_PATH_MIG it uses its alternate path. Return: -1 also with EISCONN: the connection was established */
int ib_cm_notify(struct ib_cm_id *cm_id, enum ibv_event_type event);

/** enum ib_cm_rej_reason - why a request or its answer is refused (12.6.7.2) */
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
	IB_CM_REJ_INVALID_ALT_FLOW_LABEL = 33
};

/** ib_cm_send_rej() - refuse a REQ or REP. @ari: additional information, by the reason; NULL: none */
int ib_cm_send_rej(struct ib_cm_id *cm_id, enum ib_cm_rej_reason reason, void *ari, uint8_t ari_length,
		   void *private_data, uint8_t private_data_len);
/** ib_cm_send_mra() - the answer to a REQ, REP or LAP takes longer: 4.096 us * 2^@service_timeout more */
int ib_cm_send_mra(struct ib_cm_id *cm_id, uint8_t service_timeout, void *private_data,
		   uint8_t private_data_len);

/**
 * ib_cm_init_qp_attr() - what the messages said about the queue pair of this end
 * @qp_attr: in: qp_state is the state to come, INIT, RTR or RTS; out: all that the CM knows. An end that accepts
 *	     and goes to RTR before ib_cm_send_rep() sets rq_psn to the starting_psn that it will send
 * @qp_attr_mask: out: which attributes
 */
int ib_cm_init_qp_attr(struct ib_cm_id *cm_id, struct ibv_qp_attr *qp_attr, int *qp_attr_mask);

/* --- alternate paths --- */

/** ib_cm_send_lap() - of the end that asked for the connection: load an alternate path */
int ib_cm_send_lap(struct ib_cm_id *cm_id, struct ibv_sa_path_rec *alternate_path, void *private_data,
		   uint8_t private_data_len);

/** enum ib_cm_apr_status - answers to a LAP (12.8.2.1) */
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
	IB_CM_APR_INVALID_SL
};

int ib_cm_send_apr(struct ib_cm_id *cm_id, enum ib_cm_apr_status status, void *info, uint8_t info_length,
		   void *private_data, uint8_t private_data_len);

/* --- service ids --- */

/** struct ib_cm_sidr_req_param - @timeout_ms: of each of @max_cm_retries + 1 tries */
struct ib_cm_sidr_req_param {
	struct ibv_sa_path_rec *path;
	__be64 service_id;
	int timeout_ms;
	void *private_data;
	uint8_t private_data_len;
	uint8_t max_cm_retries;
};

/** ib_cm_send_sidr_req() - which queue pair serves a service id? */
int ib_cm_send_sidr_req(struct ib_cm_id *cm_id, struct ib_cm_sidr_req_param *param);

/** enum ib_cm_sidr_status - answers to a SIDR_REQ (12.11.2.1) */
enum ib_cm_sidr_status {
	IB_SIDR_SUCCESS,
	IB_SIDR_UNSUPPORTED,
	IB_SIDR_REJECT,
	IB_SIDR_NO_QP,
	IB_SIDR_REDIRECT,
	IB_SIDR_UNSUPPORTED_VERSION
};

struct ib_cm_sidr_rep_param {
	uint32_t qp_num;
	uint32_t qkey;
	enum ib_cm_sidr_status status;
	void *info;
	uint8_t info_length;
	void *private_data;
	uint8_t private_data_len;
};

int ib_cm_send_sidr_rep(struct ib_cm_id *cm_id, struct ib_cm_sidr_rep_param *param);

/* --- events --- */

/** struct ib_cm_req_event_param - a request; the id of its event is new, and has the context of @listen_id. Paths
 *  are seen from here. @alternate_path: NULL: there is none; @responder_resources, @initiator_depth: READs that
 *  this end may serve and ask for at a time */
struct ib_cm_req_event_param {
	struct ib_cm_id *listen_id;
	uint8_t port;
	struct ibv_sa_path_rec *primary_path;
	struct ibv_sa_path_rec *alternate_path;
	__be64 remote_ca_guid;
	uint32_t remote_qkey;
	uint32_t remote_qpn;
	enum ibv_qp_type qp_type;
	uint32_t starting_psn;
	uint8_t responder_resources;
	uint8_t initiator_depth;
	unsigned int local_cm_response_timeout : 5;
	unsigned int flow_control : 1;
	unsigned int remote_cm_response_timeout : 5;
	unsigned int retry_count : 3;
	unsigned int rnr_retry_count : 3;
	unsigned int srq : 1;
};

struct ib_cm_rep_event_param {
	__be64 remote_ca_guid;
	uint32_t remote_qkey;
	uint32_t remote_qpn;
	uint32_t starting_psn;
	uint8_t responder_resources;
	uint8_t initiator_depth;
	unsigned int target_ack_delay : 5;
	unsigned int failover_accepted : 2;
	unsigned int flow_control : 1;
	unsigned int rnr_retry_count : 3;
	unsigned int srq : 1;
};

struct ib_cm_rej_event_param {
	enum ib_cm_rej_reason reason;
	void *ari;
	uint8_t ari_length;
};

struct ib_cm_mra_event_param {
	uint8_t service_timeout;
};

struct ib_cm_lap_event_param {
	struct ibv_sa_path_rec *alternate_path; /* seen from here */
};

struct ib_cm_apr_event_param {
	enum ib_cm_apr_status ap_status;
	void *apr_info;
	uint8_t info_len;
};

/** struct ib_cm_sidr_req_event_param - as of a REQ, the id of the event is new */
struct ib_cm_sidr_req_event_param {
	struct ib_cm_id *listen_id;
	uint8_t port;
	uint16_t pkey;
};

struct ib_cm_sidr_rep_event_param {
	enum ib_cm_sidr_status status;
	uint32_t qkey;
	uint32_t qpn;
	void *info;
	uint8_t info_len;
};

/** struct ib_cm_event - an event, valid until ib_cm_ack_event(). @private_data: as many bytes as the message has
 *  room for (enum ib_cm_data_size); NULL: the event is no message */
struct ib_cm_event {
	struct ib_cm_id *cm_id;
	enum ib_cm_event_type event;
	union {
		struct ib_cm_req_event_param req_rcvd;
		struct ib_cm_rep_event_param rep_rcvd;
		struct ib_cm_rej_event_param rej_rcvd;
		struct ib_cm_mra_event_param mra_rcvd;
		struct ib_cm_lap_event_param lap_rcvd;
		struct ib_cm_apr_event_param apr_rcvd;
		struct ib_cm_sidr_req_event_param sidr_req_rcvd;
		struct ib_cm_sidr_rep_event_param sidr_rep_rcvd;
		enum ibv_wc_status send_status; /* of an ERROR */
	} param;
	void *private_data;
};

/** ib_cm_get_event() - wait for the next event. Each needs its ib_cm_ack_event(). The program destroys the ids that
 *  come with IB_CM_REQ_RECEIVED and IB_CM_SIDR_REQ_RECEIVED
 *  Return: -1 also with EAGAIN (see struct ib_cm_device), EINTR */
int ib_cm_get_event(struct ib_cm_device *device, struct ib_cm_event **event);
/** ib_cm_ack_event() - free an event */
int ib_cm_ack_event(struct ib_cm_event *event);

#ifdef __cplusplus
}
#endif

#endif
