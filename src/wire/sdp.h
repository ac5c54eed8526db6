/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The Sockets Direct Protocol (IBA v1 annex A4): its messages. Each begins with the base
 * header (BSDH); some have an extended header behind it, and some carry bytes of the
 * stream after that. Hello and HelloAck travel as private data of the CM's REQ and REP.
 */
#ifndef SOFTIB_WIRE_SDP_H
#define SOFTIB_WIRE_SDP_H

#include "wire/fields.h"

#define WIRE_SDP_VERSION    0x22 /* major and minor, 4 bits each */
#define WIRE_SDP_MAJOR(v)   ((v) >> 4)
#define WIRE_SDP_BSDH_BYTES 16
#define WIRE_SDP_HEADER_MAX                                                              \
	(WIRE_SDP_BSDH_BYTES + 20)   /* of a message on the queue pair */
#define WIRE_SDP_HELLO_BYTES	 92  /* with BSDH: all private data of a REQ */
#define WIRE_SDP_HELLO_ACK_BYTES 196 /* with BSDH: all private data of a REP */

/** enum wire_sdp_mid - message identifiers */
enum wire_sdp_mid {
	WIRE_SDP_HELLO = 0x00,
	WIRE_SDP_HELLO_ACK = 0x01,
	WIRE_SDP_DISCONN = 0x02,
	WIRE_SDP_ABORT_CONN = 0x03,
	WIRE_SDP_SEND_SM = 0x04,
	WIRE_SDP_RDMA_WR_COMPL = 0x05,
	WIRE_SDP_RDMA_RD_COMPL = 0x06,
	WIRE_SDP_MODE_CHANGE = 0x07,
	WIRE_SDP_SRC_AVAIL_CANCEL = 0x08,
	WIRE_SDP_SINK_AVAIL_CANCEL = 0x09,
	WIRE_SDP_SINK_CANCEL_ACK = 0x0a,
	WIRE_SDP_CH_RCV_BUF = 0x0b,
	WIRE_SDP_CH_RCV_BUF_ACK = 0x0c,
	WIRE_SDP_SUSP_COMM = 0x0d,
	WIRE_SDP_SUSP_COMM_ACK = 0x0e,
	WIRE_SDP_SINK_AVAIL = 0xfd,
	WIRE_SDP_SRC_AVAIL = 0xfe,
	WIRE_SDP_DATA = 0xff,
};

enum wire_sdp_flags {
	WIRE_SDP_OOB_PRES = 1 << 0, /* the last byte of the payload is out-of-band data */
	WIRE_SDP_OOB_PEND = 1 << 1, /* out-of-band data follows in a later message */
	WIRE_SDP_REQ_PIPE = 1 << 2, /* the sender asks for the pipelined mode */
};

/** enum wire_sdp_mode - flow control mode of one direction */
enum wire_sdp_mode {
	WIRE_SDP_BUFFERED = 0,
	WIRE_SDP_COMBINED = 1,
	WIRE_SDP_PIPELINED = 2,
};

/** struct wire_sdp_bsdh - the base header */
struct wire_sdp_bsdh {
	uint8_t mid;	   /* enum wire_sdp_mid */
	uint8_t flags;	   /* enum wire_sdp_flags */
	uint16_t bufs;	   /* receive buffers that the sender has posted */
	uint32_t len;	   /* of the whole message with this header */
	uint32_t mseq;	   /* this message's number */
	uint32_t mseq_ack; /* the last message that the sender had received */
};
WIRE_CODEC(sdp_bsdh)

/** struct wire_sdp_hello - the extended header of Hello. IPv4 addresses are the last 4
 *  bytes of their fields */
struct wire_sdp_hello {
	uint8_t version;
	uint8_t ip_version; /* 4 or 6 */
	bool ext_max_adverts_valid, invalidate_cap;
	uint8_t max_adverts; /* SrcAvail and SinkAvail messages that may be outstanding */
	uint32_t desired_rcv_bytes; /* of each of the peer's receive buffers */
	uint32_t local_rcv_bytes;   /* of each of the sender's */
	uint16_t local_port;
	uint8_t src_ip[16], dst_ip[16];
	uint16_t ext_max_adverts;
};
WIRE_CODEC(sdp_hello)

struct wire_sdp_hello_ack {
	uint8_t version;
	uint8_t max_adverts;
	uint32_t actual_rcv_bytes; /* of each of the sender's receive buffers */
};
WIRE_CODEC(sdp_hello_ack)

/** struct wire_sdp_count - the extended header that is one number of bytes: how many were
 *  written or read (RdmaWrCompl, RdmaRdCompl), or are in a buffer (ChRcvBuf and its Ack)
 */
struct wire_sdp_count {
	uint32_t bytes;
};
WIRE_CODEC(sdp_count)

struct wire_sdp_mode_change {
	bool send;    /* of the receiver's sending half; false: of its receiving half */
	uint8_t mode; /* enum wire_sdp_mode */
};
WIRE_CODEC(sdp_mode_change)

struct wire_sdp_susp_comm {
	uint64_t service_id; /* of the connection that will replace this one */
};
WIRE_CODEC(sdp_susp_comm)

/** struct wire_sdp_src_avail - memory of the sender with bytes of the stream. The message
 *  may carry the first of them itself */
struct wire_sdp_src_avail {
	uint32_t bytes;
	uint32_t rkey;
	uint64_t address;
};
WIRE_CODEC(sdp_src_avail)

/** struct wire_sdp_sink_avail - memory of the sender for bytes of the stream.
 *  @non_discards: messages with data that the sender had received and not discarded */
struct wire_sdp_sink_avail {
	uint32_t bytes;
	uint32_t rkey;
	uint64_t address;
	uint32_t non_discards;
};
WIRE_CODEC(sdp_sink_avail)

/** struct wire_sdp_msg - a message: both headers, and where its payload is */
struct wire_sdp_msg {
	struct wire_sdp_bsdh bsdh;
	union {
		struct wire_sdp_hello hello;
		struct wire_sdp_hello_ack hello_ack;
		struct wire_sdp_count count;
		struct wire_sdp_mode_change mode;
		struct wire_sdp_susp_comm susp;
		struct wire_sdp_src_avail src;
		struct wire_sdp_sink_avail sink;
	};
	const uint8_t *payload;
	uint32_t payload_bytes;
};

/** wire_sdp_mid_name() - as the specification spells it; "?" no message has this number
 */
const char *wire_sdp_mid_name(uint8_t mid);

/** wire_sdp_header_bytes() - of both headers. Return: 0 no message has this number */
size_t wire_sdp_header_bytes(uint8_t mid);

/**
 * wire_sdp_read() - check and decode a message
 * @buf: @len bytes, as received; private data may be longer than its message
 * @msg: set on success; its payload points into @buf
 * Return: 0; -EINVAL unknown, too short, its length is not that of its headers or
 * exceeds @len, or bytes follow where none may (A4.3)
 */
int wire_sdp_read(const uint8_t *buf, size_t len, struct wire_sdp_msg *msg);

/**
 * wire_sdp_write() - encode both headers
 * @msg: bsdh.len is not read, but set from payload_bytes; the payload is the caller's
 * @buf: room for wire_sdp_header_bytes()
 * Return: bytes of headers; -EINVAL a value does not fit
 */
int wire_sdp_write(struct wire_sdp_msg *msg, uint8_t *buf);

#endif
