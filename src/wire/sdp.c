/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The tables of SDP's headers, and the table of its messages. */
#include "wire/sdp.h"

#include <errno.h>

#include "base/bytes.h"
#include "wire/fields_table.h"

#define S struct wire_sdp_bsdh
static const struct wire_field sdp_bsdh_fields[] = {
	F(mid, 0, 8),	F(flags, 8, 8),	 F(bufs, 16, 16),
	F(len, 32, 32), F(mseq, 64, 32), F(mseq_ack, 96, 32),
};
CODEC(sdp_bsdh, "BSDH", WIRE_SDP_BSDH_BYTES);
#undef S

#define S struct wire_sdp_hello
static const struct wire_field sdp_hello_fields[] = {
	F(version, 0, 8),
	F(ip_version, 8, 4),
	R(12, 2),
	F(ext_max_adverts_valid, 14, 1),
	F(invalidate_cap, 15, 1),
	R(16, 8),
	F(max_adverts, 24, 8),
	F(desired_rcv_bytes, 32, 32),
	F(local_rcv_bytes, 64, 32),
	F(local_port, 96, 16),
	R(112, 16),
	B(src_ip, 128, 16),
	B(dst_ip, 256, 16),
	R(384, 16),
	F(ext_max_adverts, 400, 16),
	R(416, 192),
};
CODEC(sdp_hello, "HelloH", WIRE_SDP_HELLO_BYTES - WIRE_SDP_BSDH_BYTES);
#undef S

#define S struct wire_sdp_hello_ack
static const struct wire_field sdp_hello_ack_fields[] = {
	F(version, 0, 8), R(8, 16), F(max_adverts, 24, 8), F(actual_rcv_bytes, 32, 32),
	R(64, 1376),
};
CODEC(sdp_hello_ack, "HelloAckH", WIRE_SDP_HELLO_ACK_BYTES - WIRE_SDP_BSDH_BYTES);
#undef S

#define S struct wire_sdp_count
static const struct wire_field sdp_count_fields[] = {
	F(bytes, 0, 32),
};
CODEC(sdp_count, "RdmaWrComplH, RdmaRdComplH, ChRcvBufH, ChRcvBufAckH", 4);
#undef S

#define S struct wire_sdp_mode_change
static const struct wire_field sdp_mode_change_fields[] = {
	F(send, 0, 1),
	F(mode, 1, 3),
	R(4, 28),
};
CODEC(sdp_mode_change, "ModeChangeH", 4);
#undef S

#define S struct wire_sdp_susp_comm
static const struct wire_field sdp_susp_comm_fields[] = {
	F(service_id, 0, 64),
};
CODEC(sdp_susp_comm, "SuspCommH", 8);
#undef S

#define S struct wire_sdp_src_avail
static const struct wire_field sdp_src_avail_fields[] = {
	F(bytes, 0, 32),
	F(rkey, 32, 32),
	F(address, 64, 64),
};
CODEC(sdp_src_avail, "SrcAvailH", 16);
#undef S

#define S struct wire_sdp_sink_avail
static const struct wire_field sdp_sink_avail_fields[] = {
	F(bytes, 0, 32),
	F(rkey, 32, 32),
	F(address, 64, 64),
	F(non_discards, 128, 32),
};
CODEC(sdp_sink_avail, "SinkAvailH", 20);
#undef S

/** struct message - a row of the table of messages (A4.3.1, table of MIDs) */
struct message {
	const char *name;
	const struct wire_codec *extended; /* NULL: none */
	bool has_payload;		   /* bytes of the stream may follow */
};

static const struct message messages[256] = {
	[WIRE_SDP_HELLO] = {"Hello", &wire_sdp_hello_codec, false},
	[WIRE_SDP_HELLO_ACK] = {"HelloAck", &wire_sdp_hello_ack_codec, false},
	[WIRE_SDP_DISCONN] = {"DisConn", NULL, false},
	[WIRE_SDP_ABORT_CONN] = {"AbortConn", NULL, false},
	[WIRE_SDP_SEND_SM] = {"SendSm", NULL, false},
	[WIRE_SDP_RDMA_WR_COMPL] = {"RdmaWrCompl", &wire_sdp_count_codec, false},
	[WIRE_SDP_RDMA_RD_COMPL] = {"RdmaRdCompl", &wire_sdp_count_codec, false},
	[WIRE_SDP_MODE_CHANGE] = {"ModeChange", &wire_sdp_mode_change_codec, false},
	[WIRE_SDP_SRC_AVAIL_CANCEL] = {"SrcAvailCancel", NULL, false},
	[WIRE_SDP_SINK_AVAIL_CANCEL] = {"SinkAvailCancel", NULL, false},
	[WIRE_SDP_SINK_CANCEL_ACK] = {"SinkCancelAck", NULL, false},
	[WIRE_SDP_CH_RCV_BUF] = {"ChRcvBuf", &wire_sdp_count_codec, false},
	[WIRE_SDP_CH_RCV_BUF_ACK] = {"ChRcvBufAck", &wire_sdp_count_codec, false},
	[WIRE_SDP_SUSP_COMM] = {"SuspComm", &wire_sdp_susp_comm_codec, false},
	[WIRE_SDP_SUSP_COMM_ACK] = {"SuspCommAck", NULL, false},
	[WIRE_SDP_SINK_AVAIL] = {"SinkAvail", &wire_sdp_sink_avail_codec, true},
	[WIRE_SDP_SRC_AVAIL] = {"SrcAvail", &wire_sdp_src_avail_codec, true},
	[WIRE_SDP_DATA] = {"Data", NULL, true},
};

const char *wire_sdp_mid_name(uint8_t mid)
{
	return messages[mid].name ? messages[mid].name : "?";
}

size_t wire_sdp_header_bytes(uint8_t mid)
{
	const struct message *message = &messages[mid];

	if (!message->name)
		return 0;
	return WIRE_SDP_BSDH_BYTES + (message->extended ? message->extended->bytes : 0u);
}

int wire_sdp_read(const uint8_t *buf, size_t len, struct wire_sdp_msg *msg)
{
	struct wire_sdp_msg found = {.bsdh = {0}};
	const struct message *message;
	size_t headers;

	if (wire_sdp_bsdh_decode(buf, len, &found.bsdh) < 0)
		return -EINVAL;
	message = &messages[found.bsdh.mid];
	headers = wire_sdp_header_bytes(found.bsdh.mid);
	if (!headers || found.bsdh.len < headers || found.bsdh.len > len)
		return -EINVAL;
	if (found.bsdh.len > headers && !message->has_payload)
		return -EINVAL;
	if (message->extended)
		wire_fields_decode(message->extended, buf + WIRE_SDP_BSDH_BYTES,
				   len - WIRE_SDP_BSDH_BYTES, &found.hello);
	found.payload = buf + headers;
	found.payload_bytes = found.bsdh.len - (uint32_t)headers;
	*msg = found;
	return 0;
}

int wire_sdp_write(struct wire_sdp_msg *msg, uint8_t *buf)
{
	const struct message *message = &messages[msg->bsdh.mid];
	size_t headers = wire_sdp_header_bytes(msg->bsdh.mid);
	int ret;

	if (!headers || (msg->payload_bytes && !message->has_payload) ||
	    msg->payload_bytes > UINT32_MAX - headers)
		return -EINVAL;
	msg->bsdh.len = (uint32_t)headers + msg->payload_bytes;
	ret = wire_sdp_bsdh_encode(&msg->bsdh, buf);
	if (ret > 0 && message->extended)
		ret = wire_fields_encode(message->extended, &msg->hello,
					 buf + WIRE_SDP_BSDH_BYTES);
	return ret < 0 ? ret : (int)headers;
}
