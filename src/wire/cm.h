/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Communication management (IBA v1 chapter 12): the eleven messages of the
 * connection protocol, each of which is an attribute at byte 24 of a MAD with
 * method Send. Private data fills the rest of the 232 bytes.
 */
#ifndef SOFTIB_WIRE_CM_H
#define SOFTIB_WIRE_CM_H

#include "wire/mad.h"

#define WIRE_CM_CLASS_VERSION 2
#define WIRE_CM_DATA_OFFSET   24
#define WIRE_CM_DATA_BYTES    232

enum wire_cm_attr {
	WIRE_CM_CLASS_PORT_INFO = 0x0001,
	WIRE_CM_REQ = 0x0010,
	WIRE_CM_MRA = 0x0011,
	WIRE_CM_REJ = 0x0012,
	WIRE_CM_REP = 0x0013,
	WIRE_CM_RTU = 0x0014,
	WIRE_CM_DREQ = 0x0015,
	WIRE_CM_DREP = 0x0016,
	WIRE_CM_SIDR_REQ = 0x0017,
	WIRE_CM_SIDR_REP = 0x0018,
	WIRE_CM_LAP = 0x0019,
	WIRE_CM_APR = 0x001a,
};

/* REQ.TransportServiceType (12.7.12) */
enum wire_cm_service {
	WIRE_CM_RC = 0,
	WIRE_CM_UC = 1,
	WIRE_CM_RD = 2,
	WIRE_CM_EXTENDED = 3
};

/** struct wire_cm_path - a path in a REQ or LAP (12.7.10..22) */
struct wire_cm_path {
	uint16_t local_lid, remote_lid;
	union wire_gid local_gid, remote_gid;
	uint32_t flow_label;
	uint8_t packet_rate; /* enum wire_rate */
	uint8_t tclass;
	uint8_t hop_limit;
	uint8_t sl;
	bool subnet_local;
	uint8_t local_ack_timeout_enc;
};
WIRE_CODEC(cm_path)
WIRE_CODEC_OF(cm_lap_path, struct wire_cm_path) /* LAP orders it differently */

/** struct wire_cm_req - connection request (12.6.5)
 *  @vendor_id: 24 bits, whose options for enhanced connection establishment (ECE) these are;
 *	0: none
 *  @ece_options: the attribute modifier of the MAD; the codec leaves it alone */
struct wire_cm_req {
	uint32_t local_comm_id;
	uint64_t service_id;
	uint64_t local_ca_guid;
	uint32_t vendor_id, ece_options;
	uint32_t local_qkey;
	uint32_t local_qpn;
	uint8_t responder_resources;
	uint32_t local_eecn;
	uint8_t initiator_depth;
	uint32_t remote_eecn;
	uint8_t remote_cm_response_timeout_enc;
	uint8_t transport_service; /* enum wire_cm_service */
	bool end_to_end_flow_control;
	psn_t starting_psn;
	uint8_t local_cm_response_timeout_enc;
	uint8_t retry_count;
	uint16_t pkey;
	uint8_t path_mtu; /* enum wire_mtu */
	bool rdc_exists;
	uint8_t rnr_retry_count;
	uint8_t max_cm_retries;
	bool srq;
	uint8_t extended_transport; /* 1: XRC */
	struct wire_cm_path primary, alternate;
	uint8_t private_data[92];
};
WIRE_CODEC(cm_req)

/** struct wire_cm_mra - message receipt acknowledgement (12.6.6) */
struct wire_cm_mra {
	uint32_t local_comm_id, remote_comm_id;
	uint8_t message; /* 0 REQ, 1 REP, 2 LAP */
	uint8_t service_timeout_enc;
	uint8_t private_data[222];
};
WIRE_CODEC(cm_mra)

/* REJ.Reason (12.6.7.2) */
enum wire_cm_reject {
	WIRE_CM_REJ_NO_QP = 1,
	WIRE_CM_REJ_NO_EEC = 2,
	WIRE_CM_REJ_NO_RESOURCES = 3,
	WIRE_CM_REJ_TIMEOUT = 4,
	WIRE_CM_REJ_UNSUPPORTED = 5,
	WIRE_CM_REJ_INVALID_COMM_ID = 6,
	WIRE_CM_REJ_INVALID_COMM_INSTANCE = 7,
	WIRE_CM_REJ_INVALID_SERVICE_ID = 8,
	WIRE_CM_REJ_INVALID_TRANSPORT = 9,
	WIRE_CM_REJ_STALE_CONNECTION = 10,
	WIRE_CM_REJ_RDC_NOT_EXIST = 11,
	WIRE_CM_REJ_PRIMARY_GID = 12,
	WIRE_CM_REJ_PRIMARY_LID = 13,
	WIRE_CM_REJ_PRIMARY_SL = 14,
	WIRE_CM_REJ_PRIMARY_TCLASS = 15,
	WIRE_CM_REJ_PRIMARY_HOP_LIMIT = 16,
	WIRE_CM_REJ_PRIMARY_PACKET_RATE = 17,
	WIRE_CM_REJ_ALTERNATE_GID = 18,
	WIRE_CM_REJ_ALTERNATE_LID = 19,
	WIRE_CM_REJ_ALTERNATE_SL = 20,
	WIRE_CM_REJ_ALTERNATE_TCLASS = 21,
	WIRE_CM_REJ_ALTERNATE_HOP_LIMIT = 22,
	WIRE_CM_REJ_ALTERNATE_PACKET_RATE = 23,
	WIRE_CM_REJ_PORT_CM_REDIRECT = 24,
	WIRE_CM_REJ_PORT_REDIRECT = 25,
	WIRE_CM_REJ_INVALID_MTU = 26,
	WIRE_CM_REJ_INSUFFICIENT_RESPONDER_RESOURCES = 27,
	WIRE_CM_REJ_CONSUMER = 28,
	WIRE_CM_REJ_RNR_RETRY_COUNT = 29,
	WIRE_CM_REJ_DUPLICATE_COMM_ID = 30,
	WIRE_CM_REJ_INVALID_CLASS_VERSION = 31,
	WIRE_CM_REJ_FLOW_LABEL = 32,
	WIRE_CM_REJ_ALTERNATE_FLOW_LABEL = 33,
};

/** struct wire_cm_rej - reject (12.6.7) */
struct wire_cm_rej {
	uint32_t local_comm_id, remote_comm_id;
	uint8_t message;    /* 0 REQ, 1 REP, 2 no message */
	uint8_t info_bytes; /* 7 bits: valid bytes of info */
	uint16_t reason;    /* enum wire_cm_reject */
	uint8_t info[72];
	uint8_t private_data[148];
};
WIRE_CODEC(cm_rej)

/** struct wire_cm_rep - reply (12.6.8)
 *  @vendor_id_high, @vendor_id_mid, @vendor_id_low, @ece_options: as in struct wire_cm_req */
struct wire_cm_rep {
	uint32_t local_comm_id, remote_comm_id;
	uint32_t local_qkey;
	uint32_t local_qpn;
	uint32_t local_eecn;
	uint8_t vendor_id_high, vendor_id_mid, vendor_id_low;
	uint32_t ece_options;
	psn_t starting_psn;
	uint8_t responder_resources, initiator_depth;
	uint8_t target_ack_delay_enc;
	uint8_t failover_accepted;
	bool end_to_end_flow_control;
	uint8_t rnr_retry_count;
	bool srq;
	uint64_t local_ca_guid;
	uint8_t private_data[196];
};
WIRE_CODEC(cm_rep)

/** struct wire_cm_rtu - ready to use (12.6.9) */
struct wire_cm_rtu {
	uint32_t local_comm_id, remote_comm_id;
	uint8_t private_data[224];
};
WIRE_CODEC(cm_rtu)

/** struct wire_cm_dreq - disconnect request (12.6.10) */
struct wire_cm_dreq {
	uint32_t local_comm_id, remote_comm_id;
	uint32_t remote_qpn; /* or EECN */
	uint8_t private_data[220];
};
WIRE_CODEC(cm_dreq)

/** struct wire_cm_drep - disconnect reply (12.6.11) */
struct wire_cm_drep {
	uint32_t local_comm_id, remote_comm_id;
	uint8_t private_data[224];
};
WIRE_CODEC(cm_drep)

/** struct wire_cm_lap - load alternate path (12.8.1) */
struct wire_cm_lap {
	uint32_t local_comm_id, remote_comm_id;
	uint32_t remote_qpn;
	uint8_t remote_cm_response_timeout_enc;
	struct wire_cm_path alternate;
	uint8_t private_data[168];
};
WIRE_CODEC(cm_lap)

/** struct wire_cm_apr - alternate path response (12.8.2) */
struct wire_cm_apr {
	uint32_t local_comm_id, remote_comm_id;
	uint8_t info_bytes;
	uint8_t status;
	uint8_t info[72];
	uint8_t private_data[148];
};
WIRE_CODEC(cm_apr)

/** struct wire_cm_sidr_req - service id resolution request (12.11.1) */
struct wire_cm_sidr_req {
	uint32_t request_id;
	uint16_t pkey;
	uint64_t service_id;
	uint8_t private_data[216];
};
WIRE_CODEC(cm_sidr_req)

/* SIDR_REP.Status (12.11.2.1) */
enum wire_cm_sidr_status {
	WIRE_CM_SIDR_OK = 0,
	WIRE_CM_SIDR_UNSUPPORTED = 1,
	WIRE_CM_SIDR_REJECTED = 2,
	WIRE_CM_SIDR_NO_QP = 3,
	WIRE_CM_SIDR_REDIRECT = 4,
	WIRE_CM_SIDR_BAD_VERSION = 5,
};

/** struct wire_cm_sidr_rep - service id resolution response (12.11.2) */
struct wire_cm_sidr_rep {
	uint32_t request_id;
	uint8_t status; /* enum wire_cm_sidr_status */
	uint8_t info_bytes;
	uint32_t qpn;
	uint64_t service_id;
	uint32_t qkey;
	uint8_t info[72];
	uint8_t private_data[136];
};
WIRE_CODEC(cm_sidr_rep)

/**
 * wire_cm_refuse() - answer a message to a node whose communication manager nobody uses
 * @mad: 256 bytes, the message; it is turned into the answer
 *
 * Nothing listens there and no connection exists: a REQ is rejected, a SIDR_REQ answered,
 * with "invalid service ID", and a DREQ is confirmed (12.9.8). Other messages need no answer.
 * Return: true if @mad is an answer to be sent
 */
bool wire_cm_refuse(uint8_t *mad);

#endif
