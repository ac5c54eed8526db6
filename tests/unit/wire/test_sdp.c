/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* SDP: the places of fields on the wire, and lengths that lie. */
#include "../test.h"

#include <errno.h>

#include "base/bytes.h"
#include "wire/sdp.h"

/* the sum of A4.3.1's table of messages: MID, bytes of headers, may it have a payload? */
static const struct {
	uint8_t mid, header_bytes;
	bool payload;
} messages[] = {
	{WIRE_SDP_HELLO, 92, false},
	{WIRE_SDP_HELLO_ACK, 196, false},
	{WIRE_SDP_DISCONN, 16, false},
	{WIRE_SDP_ABORT_CONN, 16, false},
	{WIRE_SDP_SEND_SM, 16, false},
	{WIRE_SDP_RDMA_WR_COMPL, 20, false},
	{WIRE_SDP_RDMA_RD_COMPL, 20, false},
	{WIRE_SDP_MODE_CHANGE, 20, false},
	{WIRE_SDP_SRC_AVAIL_CANCEL, 16, false},
	{WIRE_SDP_SINK_AVAIL_CANCEL, 16, false},
	{WIRE_SDP_SINK_CANCEL_ACK, 16, false},
	{WIRE_SDP_CH_RCV_BUF, 20, false},
	{WIRE_SDP_CH_RCV_BUF_ACK, 20, false},
	{WIRE_SDP_SUSP_COMM, 24, false},
	{WIRE_SDP_SUSP_COMM_ACK, 16, false},
	{WIRE_SDP_SINK_AVAIL, 36, true},
	{WIRE_SDP_SRC_AVAIL, 32, true},
	{WIRE_SDP_DATA, 16, true},
};

static int read_copy(const uint8_t *buf, size_t len, struct wire_sdp_msg *msg)
{
	/* of its own, so that a sanitizer sees a byte too far */
	uint8_t *copy = malloc(len ? len : 1);
	int ret;

	assert_non_null(copy);
	memcpy(copy, buf, len);
	ret = wire_sdp_read(copy, len, msg);
	free(copy);
	return ret;
}

/* the places of fields as the header rdma_sdp.h of FreeBSD has them */
static void hello_on_the_wire(void **state)
{
	struct wire_sdp_msg msg = {.bsdh = {.mid = WIRE_SDP_HELLO, .bufs = 0x1234},
				   .hello = {.version = WIRE_SDP_VERSION,
					     .ip_version = 4,
					     .ext_max_adverts_valid = true,
					     .max_adverts = 3,
					     .desired_rcv_bytes = 0x8010,
					     .local_rcv_bytes = 0x4010,
					     .local_port = 0xabcd,
					     .src_ip = {[12] = 10, [15] = 1},
					     .dst_ip = {[12] = 10, [15] = 2},
					     .ext_max_adverts = 0x0506}};
	uint8_t buf[WIRE_SDP_HELLO_BYTES];

	memset(buf, 0xff, sizeof(buf));
	assert_int_equal(wire_sdp_write(&msg, buf), WIRE_SDP_HELLO_BYTES);
	assert_int_equal(buf[0], 0);
	assert_int_equal(get_be16(buf + 2), 0x1234);
	assert_int_equal(get_be32(buf + 4), WIRE_SDP_HELLO_BYTES);
	assert_int_equal(buf[16], 0x22);
	assert_int_equal(buf[17], 0x42);
	assert_int_equal(buf[18], 0);
	assert_int_equal(buf[19], 3);
	assert_int_equal(get_be32(buf + 20), 0x8010);
	assert_int_equal(get_be32(buf + 24), 0x4010);
	assert_int_equal(get_be16(buf + 28), 0xabcd);
	assert_int_equal(get_be32(buf + 44), 0x0a000001);
	assert_int_equal(get_be32(buf + 60), 0x0a000002);
	assert_int_equal(get_be16(buf + 66), 0x0506);
	assert_int_equal(buf[91], 0);
}

static void advertisements_on_the_wire(void **state)
{
	struct wire_sdp_msg msg = {
		.bsdh = {.mid = WIRE_SDP_SINK_AVAIL, .mseq = 7, .mseq_ack = 8},
		.sink = {.bytes = 0x10000,
			 .rkey = 0x99,
			 .address = 0x1122334455667788,
			 .non_discards = 5},
		.payload_bytes = 100};
	uint8_t buf[WIRE_SDP_HEADER_MAX];

	assert_int_equal(wire_sdp_write(&msg, buf), 36);
	assert_int_equal(get_be32(buf + 4), 136);
	assert_int_equal(get_be32(buf + 8), 7);
	assert_int_equal(get_be32(buf + 12), 8);
	assert_int_equal(get_be32(buf + 16), 0x10000);
	assert_int_equal(get_be32(buf + 20), 0x99);
	assert_int_equal(get_be64(buf + 24), 0x1122334455667788);
	assert_int_equal(get_be32(buf + 32), 5);
	msg.bsdh.mid = WIRE_SDP_MODE_CHANGE;
	msg.payload_bytes = 0;
	msg.mode =
		(struct wire_sdp_mode_change){.send = true, .mode = WIRE_SDP_PIPELINED};
	assert_int_equal(wire_sdp_write(&msg, buf), 20);
	assert_int_equal(buf[16], 0xa0);
}

static void each_message_has_its_headers(void **state)
{
	unsigned int known = 0;

	for (unsigned int mid = 0; mid < 256; mid++)
		known += wire_sdp_header_bytes((uint8_t)mid) > 0;
	assert_int_equal(known, ARRAY_SIZE(messages));
	for (size_t i = 0; i < ARRAY_SIZE(messages); i++) {
		assert_int_equal(wire_sdp_header_bytes(messages[i].mid),
				 messages[i].header_bytes);
		assert_string_not_equal(wire_sdp_mid_name(messages[i].mid), "?");
	}
	assert_string_equal(wire_sdp_mid_name(0x80), "?");
}

static void lengths_that_lie_are_refused(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(messages); i++) {
		struct wire_sdp_msg msg = {.bsdh = {.mid = messages[i].mid}}, found;
		const uint32_t headers = messages[i].header_bytes;
		const bool payload = messages[i].payload;
		uint8_t buf[256] = {0};

		assert_int_equal(wire_sdp_write(&msg, buf), headers);
		for (uint32_t len = 0; len < headers; len++)
			assert_int_equal(read_copy(buf, len, &found), -EINVAL);
		assert_int_equal(read_copy(buf, headers, &found), 0);
		assert_int_equal(found.payload_bytes, 0);
		assert_int_equal(read_copy(buf, headers + 9, &found), 0); /* padding */
		put_be32(buf + 4, headers - 1);
		assert_int_equal(read_copy(buf, headers, &found), -EINVAL);
		put_be32(buf + 4, headers + 9);
		assert_int_equal(read_copy(buf, headers + 8, &found), -EINVAL);
		assert_int_equal(read_copy(buf, headers + 9, &found),
				 payload ? 0 : -EINVAL);
		assert_true(!payload || found.payload_bytes == 9);
		msg.payload_bytes = 9;
		assert_int_equal(wire_sdp_write(&msg, buf),
				 payload ? (int)headers : -EINVAL);
	}
}

static void unknown_messages_are_refused(void **state)
{
	struct wire_sdp_msg msg = {.bsdh = {.mid = 0x0f}};
	uint8_t buf[64] = {0x0f, [7] = 16};

	assert_int_equal(wire_sdp_write(&msg, buf), -EINVAL);
	assert_int_equal(read_copy(buf, 16, &msg), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hello_on_the_wire),
		cmocka_unit_test(advertisements_on_the_wire),
		cmocka_unit_test(each_message_has_its_headers),
		cmocka_unit_test(lengths_that_lie_are_refused),
		cmocka_unit_test(unknown_messages_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
