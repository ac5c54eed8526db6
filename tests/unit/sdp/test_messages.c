/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What one end does with each message, proper and improper ones. */
#include "../test.h"

#include <errno.h>

#include "one_end.h"

static void addresses_come_through(void **state)
{
	static const struct sdp_address cases[] = {
		{.src = {[10] = 0xff, 0xff, 10, 1, 2, 3},
		 .dst = {[10] = 0xff, 0xff, 10, 1, 2, 4},
		 .src_port = 4711},
		{.src = {0xfd, [15] = 1}, .dst = {0xfd, [15] = 2}, .src_port = 99},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint8_t hello[WIRE_SDP_HELLO_BYTES], ack[WIRE_SDP_HELLO_ACK_BYTES];
		struct sdp_address seen;
		struct sdp a, b;

		sdp_init(&a, &config);
		sdp_init(&b, &config);
		sdp_hello(&a, &cases[i], hello);
		assert_int_equal(sdp_accept(&b, hello, sizeof(hello), &seen, ack), 0);
		assert_memory_equal(&seen, &cases[i], sizeof(seen));
		assert_int_equal(sdp_accepted(&a, ack, sizeof(ack)), 0);
	}
}

static void a_hello_that_cannot_be_accepted(void **state)
{
	static const struct wire_sdp_msg good = {
		.bsdh = {.mid = WIRE_SDP_HELLO, .bufs = 8},
		.hello = {.version = WIRE_SDP_VERSION,
			  .ip_version = 4,
			  .max_adverts = 1,
			  .local_rcv_bytes = 256}};
	struct wire_sdp_msg bad[6];
	uint8_t hello[WIRE_SDP_HELLO_BYTES], ack[WIRE_SDP_HELLO_ACK_BYTES];
	struct sdp_address address;
	struct sdp sdp;

	for (int i = 0; i < 6; i++)
		bad[i] = good;
	bad[1].hello.version = 0x32;
	bad[2].hello.ip_version = 5;
	bad[3].hello.max_adverts = 0;
	bad[4].hello.local_rcv_bytes = 255;
	bad[5].bsdh.bufs = 4;
	for (int i = 0; i < 6; i++) {
		sdp_init(&sdp, &config);
		wire_sdp_write(&bad[i], hello);
		assert_int_equal(sdp_accept(&sdp, hello, sizeof(hello), &address, ack),
				 i ? -EPROTO : 0);
		assert_int_equal(
			sdp_accept(&sdp, hello, sizeof(hello) - 1, &address, ack),
			-EPROTO);
	}
}

static void what_a_peer_may_not_send(void **state)
{
	static const struct {
		struct wire_sdp_msg before, msg;
	} cases[] = {
		{.msg = {.bsdh = {.mid = WIRE_SDP_HELLO}}},
		{.msg = {.bsdh = {.mid = WIRE_SDP_HELLO_ACK}}},
		{.before = {.bsdh = {.mid = WIRE_SDP_SUSP_COMM}}, .msg = {.bsdh = {.mid = WIRE_SDP_SUSP_COMM}}},
		{.before = {.bsdh = {.mid = WIRE_SDP_SUSP_COMM}},
		 .msg = {.bsdh = {.mid = WIRE_SDP_DATA}, .payload_bytes = 1}},
		{.before = {.bsdh = {.mid = WIRE_SDP_SUSP_COMM}},
		 .msg = {.bsdh = {.mid = WIRE_SDP_SRC_AVAIL}, .src = {.bytes = 9}, .payload_bytes = 1}},
		{.before = {.bsdh = {.mid = WIRE_SDP_SUSP_COMM}}, .msg = {.bsdh = {.mid = WIRE_SDP_DISCONN}}},
		{.msg = {.bsdh = {.mid = WIRE_SDP_SUSP_COMM_ACK}}},
		{.msg = {.bsdh = {.mid = WIRE_SDP_CH_RCV_BUF_ACK}}},
		{.msg = {.bsdh = {.mid = WIRE_SDP_SINK_CANCEL_ACK}}},
		{.msg = {.bsdh = {.mid = WIRE_SDP_RDMA_WR_COMPL}, .count = {1}}},
		/* about an advertisement that is not there */
		{.msg = {.bsdh = {.mid = WIRE_SDP_SEND_SM}}},
		{.msg = {.bsdh = {.mid = WIRE_SDP_RDMA_RD_COMPL}, .count = {1}}},
		/* in the wrong mode, or from a mode to one that is not its neighbour */
		{.msg = {.bsdh = {.mid = WIRE_SDP_SINK_AVAIL}, .sink = {.bytes = 9}}},
		{.msg = {.bsdh = {.mid = WIRE_SDP_MODE_CHANGE}, .mode = {true, 3}}},
		{.msg = {.bsdh = {.mid = WIRE_SDP_MODE_CHANGE}, .mode = {true, 1}}},
		/* the other end chooses these */
		{.msg = {.bsdh = {.mid = WIRE_SDP_MODE_CHANGE}, .mode = {true, 2}}},
		{.msg = {.bsdh = {.mid = WIRE_SDP_MODE_CHANGE}, .mode = {true, 0}}},
		{.before = {.bsdh = {.mid = WIRE_SDP_MODE_CHANGE}, .mode = {false, 0}},
		 .msg = {.bsdh = {.mid = WIRE_SDP_MODE_CHANGE}, .mode = {false, 1}}},
		/* a SrcAvail has bytes in the combined mode alone */
		{.msg = {.bsdh = {.mid = WIRE_SDP_SRC_AVAIL}, .src = {.bytes = 9}}},
		{.before = {.bsdh = {.mid = WIRE_SDP_MODE_CHANGE}, .mode = {false, 2}},
		 .msg = {.bsdh = {.mid = WIRE_SDP_SRC_AVAIL},
			 .src = {.bytes = 9},
			 .payload_bytes = 1}},
		{.before = {.bsdh = {.mid = WIRE_SDP_MODE_CHANGE}, .mode = {false, 0}},
		 .msg = {.bsdh = {.mid = WIRE_SDP_MODE_CHANGE}, .mode = {false, 2}}},
		{.before = {.bsdh = {.mid = WIRE_SDP_MODE_CHANGE}, .mode = {false, 0}},
		 .msg = {.bsdh = {.mid = WIRE_SDP_SRC_AVAIL}, .src = {.bytes = 9}}},
		/* past what is outstanding */
		{.before = {.bsdh = {.mid = WIRE_SDP_SRC_AVAIL}, .src = {.bytes = 9}, .payload_bytes = 1},
		 .msg = {.bsdh = {.mid = WIRE_SDP_DATA}, .payload_bytes = 1}},
		{.before = {.bsdh = {.mid = WIRE_SDP_SRC_AVAIL}, .src = {.bytes = 9}, .payload_bytes = 1},
		 .msg = {.bsdh = {.mid = WIRE_SDP_SRC_AVAIL}, .src = {.bytes = 9}, .payload_bytes = 1}},
		/* memory of which the message has it all */
		{.msg = {.bsdh = {.mid = WIRE_SDP_SRC_AVAIL},
			 .src = {.bytes = 9},
			 .payload_bytes = 9}},
		{.msg = {.bsdh = {.mid = WIRE_SDP_SRC_AVAIL}}},
		/* behind the end */
		{.before = {.bsdh = {.mid = WIRE_SDP_DISCONN}},
		 .msg = {.bsdh = {.mid = WIRE_SDP_DATA}, .payload_bytes = 1}},
		{.before = {.bsdh = {.mid = WIRE_SDP_DISCONN}},
		 .msg = {.bsdh = {.mid = WIRE_SDP_DISCONN}}},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct sdp sdp = an_open_end();
		struct sdp_input input;

		if (cases[i].before.bsdh.mid)
			assert_int_equal(receive(&sdp, cases[i].before, &input), 0);
		if (receive(&sdp, cases[i].msg, &input) != -EPROTO ||
		    sdp.end != SDP_BROKEN)
			fail_msg("case %zu was accepted", i);
		assert_false(input.holds_slot);
	}
}

static void numbers_that_lie_are_refused(void **state)
{
	static const struct wire_sdp_bsdh cases[] = {
		{.mseq = 1, .mseq_ack = 0, .bufs = 16}, /* good */
		{.mseq = 2, .mseq_ack = 0, .bufs = 16}, /* a gap */
		{.mseq = 0, .mseq_ack = 0, .bufs = 16}, /* again */
		{.mseq = 1, .mseq_ack = 1, .bufs = 16}, /* not sent yet */
		{.mseq = 1, .mseq_ack = 0, .bufs = 15}, /* takes a credit back */
		{.mseq = 1, .mseq_ack = -1u, .bufs = 16},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct wire_sdp_msg msg = {.bsdh = cases[i]};
		struct sdp sdp = an_open_end();
		struct sdp_input input;
		uint8_t buf[16];

		msg.bsdh.mid = WIRE_SDP_DATA;
		wire_sdp_write(&msg, buf);
		assert_int_equal(sdp_received(&sdp, 0, buf, 16, &input), i ? -EPROTO : 0);
	}
}

/* with 16 credits: 12 for data, then control messages down to one, and none is left */
static void credits_are_kept_for_others(void **state)
{
	const struct sdp_offer much = {.bytes = 1000000};
	struct sdp sdp = an_open_end();
	struct sdp_input input;
	struct wire_sdp_msg msg;

	for (int i = 0; i < 12; i++) {
		assert_int_equal(sdp_room(&sdp), 2048 - 16);
		assert_int_equal(next_mid(&sdp, much, &msg), WIRE_SDP_DATA);
		assert_int_equal(msg.payload_bytes, 2032);
		assert_int_equal(msg.bsdh.mseq, i + 1);
		assert_int_equal(msg.bsdh.bufs, 8);
	}
	assert_int_equal(sdp_room(&sdp), 0);
	assert_int_equal(next_mid(&sdp, much, &msg), 0);
	for (int i = 0; i < 4; i++) {
		struct wire_sdp_msg ask = {.bsdh = {.mid = WIRE_SDP_CH_RCV_BUF}};
		uint8_t buf[32];

		/* grants nothing new */
		ask.bsdh.mseq = sdp.rx_seq + 1;
		ask.bsdh.bufs = 16;
		wire_sdp_write(&ask, buf);
		assert_int_equal(sdp_received(&sdp, 0, buf, 20, &input), 0);
		if (i < 3) {
			assert_int_equal(next_mid(&sdp, much, &msg),
					 WIRE_SDP_CH_RCV_BUF_ACK);
			assert_int_equal(msg.count.bytes, config.rcv_bytes);
		} else {
			assert_int_equal(next_mid(&sdp, much, &msg), 0);
		}
	}
	/* the last one is for a grant, once there is something to grant */
	sdp_posted(&sdp);
	assert_int_equal(next_mid(&sdp, much, &msg), WIRE_SDP_DATA);
	assert_int_equal(msg.payload_bytes, 0);
	sdp_posted(&sdp);
	assert_int_equal(next_mid(&sdp, much, &msg), 0);
}

/* The peer may claim buffers of any size, in its Hello too. A message does not outgrow the sender's
 * own buffer: neither one of data, nor what is sent of a region that was given back. */
static void a_message_fits_the_senders_buffer(void **state)
{
	struct sdp_config limited = config;
	uint8_t hello[WIRE_SDP_HELLO_BYTES], ack[WIRE_SDP_HELLO_ACK_BYTES];
	const struct wire_sdp_msg peer = {.bsdh = {.mid = WIRE_SDP_HELLO, .bufs = 16},
					  .hello = {.version = WIRE_SDP_VERSION,
						    .ip_version = 4,
						    .max_adverts = 1,
						    .local_rcv_bytes = UINT32_MAX}};
	struct wire_sdp_msg msg = peer;
	struct sdp_address address;
	struct sdp sdp;

	limited.send_bytes = 700;
	limited.advert_bytes = 0;
	assert_int_equal(sdp_init(&sdp, &limited), 0);
	wire_sdp_write(&msg, hello);
	assert_int_equal(sdp_accept(&sdp, hello, sizeof(hello), &address, ack), 0);
	assert_int_equal(sdp_room(&sdp), 700 - 16);
	assert_int_equal(next_mid(&sdp,
				  (struct sdp_offer){.bytes = 5000, .region_bytes = 5000, .rkey = 1}, &msg),
			 WIRE_SDP_DATA);
	assert_int_equal(msg.payload_bytes, 700 - 16);
}

static void memory_is_advertised_and_read(void **state)
{
	const struct sdp_offer region = {
		.bytes = 5000, .region_bytes = 4000, .rkey = 7, .address = 0x1000};
	const struct wire_sdp_msg some = {.bsdh = {.mid = WIRE_SDP_RDMA_RD_COMPL},
					  .count = {1000}};
	struct sdp sdp = an_open_end();
	struct sdp_input input;
	struct wire_sdp_msg msg;

	assert_int_equal(next_mid(&sdp, region, &msg), WIRE_SDP_SRC_AVAIL);
	assert_int_equal(msg.payload_bytes, 1);
	assert_int_equal(msg.src.bytes, 4000);
	assert_int_equal(sdp_room(&sdp), 0); /* nothing passes it */
	assert_int_equal(receive(&sdp, some, &input), 0);
	assert_int_equal(input.taken, 1000);
	sdp_cancel_adverts(&sdp);
	assert_int_equal(next_mid(&sdp, region, &msg), WIRE_SDP_SRC_AVAIL_CANCEL);
	assert_int_equal(next_mid(&sdp, region, &msg), 0);
	assert_int_equal(receive(&sdp, some, &input), 0); /* was under way */
	assert_int_equal(receive(&sdp,
				 (struct wire_sdp_msg){.bsdh = {.mid = WIRE_SDP_SEND_SM}},
				 &input),
			 0);
	assert_int_equal(next_mid(&sdp, (struct sdp_offer){.bytes = 10}, &msg),
			 WIRE_SDP_DATA);
}

static void memory_of_the_peer_is_read(void **state)
{
	const struct wire_sdp_msg src = {
		.bsdh = {.mid = WIRE_SDP_SRC_AVAIL},
		.src = {.bytes = 1000, .rkey = 5, .address = 0x4000},
		.payload_bytes = 10};
	const struct sdp_offer none = {0};
	struct sdp sdp = an_open_end();
	struct sdp_input input;
	struct sdp_item *head;
	struct wire_sdp_msg msg;

	assert_int_equal(receive(&sdp, src, &input), 0);
	assert_true(input.holds_slot);
	head = sdp_rx_head(&sdp);
	assert_int_equal(head->bytes, 10);
	assert_int_equal(head->offset, 32);
	assert_int_equal(head->slot, 3);
	assert_true(sdp_rx_took(&sdp, 10));
	head = sdp_rx_head(&sdp);
	assert_int_equal(head->left, 990);
	assert_int_equal(head->address, 0x4000 + 10);
	sdp_rx_reading(&sdp, 400);
	assert_int_equal(
		receive(&sdp,
			(struct wire_sdp_msg){.bsdh = {.mid = WIRE_SDP_SRC_AVAIL_CANCEL}},
			&input),
		0);
	assert_int_equal(next_mid(&sdp, none, &msg), 0); /* the read is under way */
	sdp_rx_read(&sdp);
	assert_int_equal(next_mid(&sdp, none, &msg), WIRE_SDP_RDMA_RD_COMPL);
	assert_int_equal(msg.count.bytes, 400);
	assert_int_equal(next_mid(&sdp, none, &msg), WIRE_SDP_SEND_SM);
	assert_null(sdp_rx_head(&sdp));
}

static void closing_with_data_unread_aborts(void **state)
{
	const struct wire_sdp_msg data = {.bsdh = {.mid = WIRE_SDP_DATA},
					  .payload_bytes = 5};
	const struct sdp_offer none = {0};
	struct sdp_input input;
	struct wire_sdp_msg msg;
	struct sdp sdp;

	for (int first = 0; first < 2; first++) { /* the data comes before, or after */
		sdp = an_open_end();
		if (first)
			assert_int_equal(receive(&sdp, data, &input), 0);
		sdp_close(&sdp);
		if (!first) {
			assert_int_equal(next_mid(&sdp, none, &msg), WIRE_SDP_DISCONN);
			assert_int_equal(receive(&sdp, data, &input), 0);
			assert_false(input.holds_slot);
		}
		assert_int_equal(next_mid(&sdp, none, &msg), WIRE_SDP_ABORT_CONN);
		assert_int_equal(sdp.state, SDP_OPEN);
		for (int i = 0; i < 2 - first; i++)
			sdp_sent(&sdp);
		assert_int_equal(sdp.end, SDP_ABORTED);
	}
}

static void limits_of_the_configuration(void **state)
{
	static const struct sdp_config bad[] = {
		{.slots = 7, .rcv_bytes = 1024, .max_adverts = 1},
		{.slots = 65, .rcv_bytes = 1024, .max_adverts = 1},
		{.slots = 8, .rcv_bytes = 255, .max_adverts = 1},
		{.slots = 8, .rcv_bytes = 1024, .max_adverts = 0},
		{.slots = 8, .rcv_bytes = 1024, .max_adverts = 9},
		{.slots = 8, .rcv_bytes = 1024, .rcv_max = 1023, .max_adverts = 1},
	};
	struct sdp sdp;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(sdp_init(&sdp, &bad[i]), -EINVAL);
}

/* --- the size of receive buffers --- */

static struct sdp an_end_that_resizes(void)
{
	struct sdp sdp = an_open_end();

	sdp.config.rcv_max = 4096;
	sdp.config.send_bytes = 8192;
	return sdp;
}

static int ask_for(struct sdp *sdp, uint32_t bytes)
{
	const struct wire_sdp_msg msg = {.bsdh = {.mid = WIRE_SDP_CH_RCV_BUF}, .count = {bytes}};
	struct sdp_input input;

	return receive(sdp, msg, &input);
}

static int answer_with(struct sdp *sdp, uint32_t bytes)
{
	const struct wire_sdp_msg msg = {.bsdh = {.mid = WIRE_SDP_CH_RCV_BUF_ACK}, .count = {bytes}};
	struct sdp_input input;

	return receive(sdp, msg, &input);
}

/* a message without data, whose slot is posted again */
static void use_a_slot(struct sdp *sdp)
{
	struct sdp_input input;

	assert_int_equal(receive(sdp, (struct wire_sdp_msg){.bsdh = {.mid = WIRE_SDP_DATA}}, &input), 0);
	sdp_posted(sdp);
}

/* what a grown end answers, when its 7 smaller slots are used up */
static void larger_buffers_are_granted_when_the_smaller_are_used(void **state)
{
	static const uint32_t asked[][2] = {{2000, 2000}, {4096, 4096}, {UINT32_MAX, 4096}};

	for (size_t i = 0; i < ARRAY_SIZE(asked); i++) {
		struct sdp sdp = an_end_that_resizes();
		struct wire_sdp_msg msg;

		assert_int_equal(ask_for(&sdp, asked[i][0]), 0);
		assert_int_equal(sdp.slot_bytes, asked[i][1]);
		sdp_posted(&sdp);
		for (int used = 0; used < 7; used++) {
			while (sdp_next(&sdp, &(struct sdp_offer){0}, &msg))
				assert_int_not_equal(msg.bsdh.mid, WIRE_SDP_CH_RCV_BUF_ACK);
			use_a_slot(&sdp);
		}
		assert_int_equal(next_mid(&sdp, (struct sdp_offer){0}, &msg), WIRE_SDP_CH_RCV_BUF_ACK);
		assert_int_equal(msg.count.bytes, asked[i][1]);
		assert_int_equal(ask_for(&sdp, 4096), 0); /* the next request may come */
	}
}

/* Smaller slots are posted when the answer is sent, not before: credits for them follow it. */
static void smaller_buffers_follow_the_answer(void **state)
{
	static const uint32_t asked[][2] = {{500, 500}, {0, SDP_RCV_BYTES_MIN}};

	for (size_t i = 0; i < ARRAY_SIZE(asked); i++) {
		struct sdp sdp = an_end_that_resizes();
		struct wire_sdp_msg msg;

		assert_int_equal(ask_for(&sdp, asked[i][0]), 0);
		use_a_slot(&sdp); /* was under way */
		assert_int_equal(sdp.slot_bytes, 1024);
		assert_int_equal(next_mid(&sdp, (struct sdp_offer){0}, &msg), WIRE_SDP_CH_RCV_BUF_ACK);
		assert_int_equal(msg.count.bytes, asked[i][1]);
		assert_int_equal(sdp.slot_bytes, asked[i][1]);
	}
}

static void a_size_is_refused_by_answering_with_the_old_one(void **state)
{
	const struct wire_sdp_msg end = {.bsdh = {.mid = WIRE_SDP_DISCONN}};
	struct sdp_input input;
	struct wire_sdp_msg msg;

	for (int ended = 0; ended < 2; ended++) {
		struct sdp sdp = an_end_that_resizes();

		if (ended)
			assert_int_equal(receive(&sdp, end, &input), 0);
		else
			sdp.config.rcv_max = 0; /* this end resizes never */
		assert_int_equal(ask_for(&sdp, 2000), 0);
		assert_int_equal(next_mid(&sdp, (struct sdp_offer){0}, &msg), WIRE_SDP_CH_RCV_BUF_ACK);
		assert_int_equal(msg.count.bytes, 1024);
		assert_int_equal(sdp.slot_bytes, 1024);
	}
}

static void a_second_request_before_the_answer_is_a_violation(void **state)
{
	static const uint32_t first[] = {2000, 1024, 500};

	for (size_t i = 0; i < ARRAY_SIZE(first); i++) {
		struct sdp sdp = an_end_that_resizes();

		assert_int_equal(ask_for(&sdp, first[i]), 0);
		assert_int_equal(ask_for(&sdp, 2000), -EPROTO);
	}
}

/* 16 credits: messages that fill 2,048 bytes */
static void ask_by_full_messages(struct sdp *sdp)
{
	const struct sdp_offer much = {.bytes = 1000000};
	struct wire_sdp_msg msg;

	for (int i = 0; i < 4; i++)
		assert_int_equal(next_mid(sdp, much, &msg), WIRE_SDP_DATA);
	assert_int_equal(next_mid(sdp, much, &msg), WIRE_SDP_CH_RCV_BUF);
	assert_int_equal(msg.count.bytes, 8192);
	assert_int_equal(sdp_room(sdp), 2048 - 16);
	assert_false(sdp_ask_buffers(sdp, 300));
}

static void full_messages_ask_for_larger_buffers(void **state)
{
	static const struct {
		uint32_t bytes;
		int ret;
	} answers[] = {{8192, 0}, {4000, 0}, {2048, 0}, {UINT32_MAX, 0}, {2047, -EPROTO}, {0, -EPROTO}};

	for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
		const struct sdp_offer much = {.bytes = 1000000};
		struct sdp sdp = an_end_that_resizes();
		struct wire_sdp_msg msg;

		ask_by_full_messages(&sdp);
		assert_int_equal(answer_with(&sdp, answers[i].bytes), answers[i].ret);
		if (answers[i].ret)
			continue;
		assert_int_equal(sdp_room(&sdp), MIN(answers[i].bytes, 8192u) - 16);
		for (int n = 0; n < 8; n++) /* granted, or refused: it is not asked again */
			assert_int_equal(next_mid(&sdp, much, &msg), WIRE_SDP_DATA);
	}
}

static void short_messages_give_the_buffers_back(void **state)
{
	static const uint32_t answers[] = {1024, 2048, 255, 2049};

	for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
		struct sdp sdp = an_end_that_resizes();
		struct wire_sdp_msg msg;

		for (int n = 0; n < 256; n++) {
			assert_int_equal(next_mid(&sdp, (struct sdp_offer){.bytes = 10}, &msg), WIRE_SDP_DATA);
			use_a_slot(&sdp);
		}
		assert_int_equal(next_mid(&sdp, (struct sdp_offer){.bytes = 10}, &msg), WIRE_SDP_CH_RCV_BUF);
		assert_int_equal(msg.count.bytes, config.rcv_bytes);
		assert_int_equal(answer_with(&sdp, answers[i]), i < 2 ? 0 : -EPROTO);
		assert_true(i >= 2 || sdp_room(&sdp) == answers[i] - 16);
	}
}

/* --- moving to another connection --- */

static const struct wire_sdp_msg susp_comm = {.bsdh = {.mid = WIRE_SDP_SUSP_COMM}, .susp = {0x10099}},
				 susp_comm_ack = {.bsdh = {.mid = WIRE_SDP_SUSP_COMM_ACK}};
static const struct sdp_offer some_data = {.bytes = 10};

static void a_request_to_suspend(void **state)
{
	struct sdp sdp = an_open_end();
	struct wire_sdp_msg msg;
	struct sdp_input input;

	assert_true(sdp_suspend(&sdp, 0x10077));
	assert_false(sdp_suspend(&sdp, 0x10078));
	assert_int_equal(sdp_room(&sdp), 0);
	assert_int_equal(next_mid(&sdp, some_data, &msg), WIRE_SDP_SUSP_COMM);
	assert_true(msg.susp.service_id == 0x10077);
	/* no data behind it, nor the end of the stream; the peer's still comes */
	sdp_shutdown(&sdp);
	assert_int_equal(next_mid(&sdp, some_data, &msg), 0);
	assert_int_equal(next_mid(&sdp, (struct sdp_offer){0}, &msg), 0);
	assert_false(sdp_ask_buffers(&sdp, 4096));
	assert_int_equal(receive(&sdp, (struct wire_sdp_msg){.bsdh = {.mid = WIRE_SDP_DATA}, .payload_bytes = 5}, &input), 0);
	assert_true(input.holds_slot);
	assert_int_equal(receive(&sdp, susp_comm_ack, &input), 0);
	assert_int_equal(sdp.state, SDP_SUSPENDED);
	assert_false(sdp.susp_received);
	/* the peer leaves; what has come is there, and is not the end of the stream */
	sdp_disconnected(&sdp);
	assert_int_equal(sdp.state, SDP_SUSPENDED);
	assert_int_equal(sdp_rx_head(&sdp)->bytes, 5);
	assert_true(sdp_rx_took(&sdp, 5));
	assert_false(sdp_rx_ended(&sdp));
	sdp_not_resumed(&sdp);
	assert_int_equal(sdp.end, SDP_LOST);
	assert_true(sdp_rx_ended(&sdp));
}

/* The acknowledgement of a SuspCommAck may be lost with the connection. */
static void the_peer_asks_to_suspend(void **state)
{
	for (int lost = 0; lost < 2; lost++) {
		struct sdp sdp = an_open_end();
		struct wire_sdp_msg msg;
		struct sdp_input input;

		assert_int_equal(receive(&sdp, susp_comm, &input), 0);
		assert_true(sdp.susp_received && sdp.susp_service == 0x10099);
		assert_false(sdp_suspend(&sdp, 1));
		assert_int_equal(next_mid(&sdp, some_data, &msg), WIRE_SDP_SUSP_COMM_ACK);
		assert_int_equal(next_mid(&sdp, some_data, &msg), 0);
		assert_int_equal(sdp.state, SDP_OPEN);
		if (lost)
			sdp_disconnected(&sdp);
		else
			sdp_sent(&sdp);
		assert_int_equal(sdp.state, SDP_SUSPENDED);
	}
}

/* The memory that either end has lent is taken back before it leaves. */
static void memory_is_wanted_back_before_leaving(void **state)
{
	const struct sdp_offer region = {.bytes = 600, .region_bytes = 600, .rkey = 1, .address = 0x1000};
	const struct wire_sdp_msg send_sm = {.bsdh = {.mid = WIRE_SDP_SEND_SM}};

	for (int asks = 0; asks < 2; asks++) {
		struct sdp sdp = an_open_end();
		struct wire_sdp_msg msg;
		struct sdp_input input;

		assert_int_equal(next_mid(&sdp, region, &msg), WIRE_SDP_SRC_AVAIL);
		if (asks)
			assert_true(sdp_suspend(&sdp, 1));
		else
			assert_int_equal(receive(&sdp, susp_comm, &input), 0);
		assert_int_equal(next_mid(&sdp, some_data, &msg), WIRE_SDP_SRC_AVAIL_CANCEL);
		assert_int_equal(next_mid(&sdp, some_data, &msg), 0);
		assert_int_equal(receive(&sdp, send_sm, &input), 0);
		assert_true(input.returned);
		assert_int_equal(next_mid(&sdp, some_data, &msg),
				 asks ? WIRE_SDP_SUSP_COMM : WIRE_SDP_SUSP_COMM_ACK);
	}
}

/* A peer that leaves while it lends memory gets that back, also if it is just being read. */
static void memory_of_a_peer_that_leaves(void **state)
{
	const struct wire_sdp_msg src = {.bsdh = {.mid = WIRE_SDP_SRC_AVAIL}, .src = {.bytes = 9}, .payload_bytes = 1};

	for (int reading = 0; reading < 2; reading++) {
		struct sdp sdp = an_open_end();
		struct wire_sdp_msg msg;
		struct sdp_input input;

		assert_int_equal(receive(&sdp, src, &input), 0);
		assert_true(sdp_rx_took(&sdp, 1));
		if (reading)
			sdp_rx_reading(&sdp, 3);
		assert_int_equal(receive(&sdp, susp_comm, &input), 0);
		if (reading) {
			assert_int_equal(next_mid(&sdp, some_data, &msg), 0);
			sdp_rx_read(&sdp);
			assert_int_equal(next_mid(&sdp, some_data, &msg), WIRE_SDP_RDMA_RD_COMPL);
			assert_int_equal(msg.count.bytes, 3);
		}
		assert_int_equal(next_mid(&sdp, some_data, &msg), WIRE_SDP_SEND_SM);
		assert_int_equal(next_mid(&sdp, some_data, &msg), WIRE_SDP_SUSP_COMM_ACK);
	}
}

/* Both ends have asked: the end that had sent the Hello is followed. */
static void both_ask_to_suspend(void **state)
{
	for (int active = 0; active < 2; active++) {
		struct sdp sdp = an_open_end();
		struct wire_sdp_msg msg;
		struct sdp_input input;

		sdp.active = active;
		assert_true(sdp_suspend(&sdp, 0x10077));
		assert_int_equal(next_mid(&sdp, some_data, &msg), WIRE_SDP_SUSP_COMM);
		assert_int_equal(receive(&sdp, susp_comm, &input), 0);
		assert_int_equal(next_mid(&sdp, some_data, &msg), active ? 0 : WIRE_SDP_SUSP_COMM_ACK);
		assert_true(sdp.susp_service == (active ? 0x10077 : 0x10099));
		assert_int_equal(receive(&sdp, susp_comm_ack, &input), active ? 0 : -EPROTO);
	}
}

/* An ack with memory of the peer's outstanding: the peer would read, or write, behind its last word. */
static void an_ack_that_comes_too_early(void **state)
{
	const struct wire_sdp_msg src = {.bsdh = {.mid = WIRE_SDP_SRC_AVAIL}, .src = {.bytes = 9}, .payload_bytes = 1};
	struct sdp sdp = an_open_end();
	struct wire_sdp_msg msg;
	struct sdp_input input;

	assert_true(sdp_suspend(&sdp, 1));
	assert_int_equal(next_mid(&sdp, some_data, &msg), WIRE_SDP_SUSP_COMM);
	assert_int_equal(receive(&sdp, src, &input), 0);
	assert_int_equal(receive(&sdp, susp_comm_ack, &input), -EPROTO);
}

/* It is over, though no AbortConn could be sent any more. */
static void an_abort_before_the_ack(void **state)
{
	struct sdp sdp = an_open_end();
	struct wire_sdp_msg msg;
	struct sdp_input input;

	assert_true(sdp_suspend(&sdp, 1));
	assert_int_equal(next_mid(&sdp, some_data, &msg), WIRE_SDP_SUSP_COMM);
	sdp_abort(&sdp);
	assert_int_equal(receive(&sdp, susp_comm_ack, &input), 0);
	assert_int_equal(sdp.end, SDP_ABORTED);
}

static void what_has_ended_cannot_be_suspended(void **state)
{
	struct sdp sdp = an_open_end();
	struct wire_sdp_msg msg;
	struct sdp_input input;

	assert_int_equal(receive(&sdp, (struct wire_sdp_msg){.bsdh = {.mid = WIRE_SDP_DISCONN}}, &input), 0);
	sdp_shutdown(&sdp);
	assert_int_equal(next_mid(&sdp, (struct sdp_offer){0}, &msg), WIRE_SDP_DISCONN);
	assert_false(sdp_suspend(&sdp, 1));
	sdp = an_open_end();
	sdp_abort(&sdp);
	assert_false(sdp_suspend(&sdp, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_come_through),
		cmocka_unit_test(a_hello_that_cannot_be_accepted),
		cmocka_unit_test(what_a_peer_may_not_send),
		cmocka_unit_test(numbers_that_lie_are_refused),
		cmocka_unit_test(credits_are_kept_for_others),
		cmocka_unit_test(a_message_fits_the_senders_buffer),
		cmocka_unit_test(memory_is_advertised_and_read),
		cmocka_unit_test(memory_of_the_peer_is_read),
		cmocka_unit_test(closing_with_data_unread_aborts),
		cmocka_unit_test(limits_of_the_configuration),
		cmocka_unit_test(larger_buffers_are_granted_when_the_smaller_are_used),
		cmocka_unit_test(smaller_buffers_follow_the_answer),
		cmocka_unit_test(a_size_is_refused_by_answering_with_the_old_one),
		cmocka_unit_test(a_second_request_before_the_answer_is_a_violation),
		cmocka_unit_test(full_messages_ask_for_larger_buffers),
		cmocka_unit_test(short_messages_give_the_buffers_back),
		cmocka_unit_test(a_request_to_suspend),
		cmocka_unit_test(the_peer_asks_to_suspend),
		cmocka_unit_test(memory_is_wanted_back_before_leaving),
		cmocka_unit_test(memory_of_a_peer_that_leaves),
		cmocka_unit_test(both_ask_to_suspend),
		cmocka_unit_test(an_ack_that_comes_too_early),
		cmocka_unit_test(an_abort_before_the_ack),
		cmocka_unit_test(what_has_ended_cannot_be_suspended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
