/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Memory that is lent in the pipelined mode, what crosses, modes, and sizes of buffers. */
#include "../test.h"

#include <errno.h>

#include "one_end.h"

#define MSG(m, ...) ((struct wire_sdp_msg){.bsdh = {.mid = (m)}, __VA_ARGS__})

static const struct sdp_offer nothing, some = {.bytes = 100};
static const struct sdp_offer region = {
	.bytes = 4000, .region_bytes = 4000, .rkey = 7, .address = 0x1000};

/* an end that allows several advertisements, and a peer that does */
static struct sdp a_pipelining_end(void)
{
	struct sdp sdp = an_open_end();

	sdp.config.max_adverts = 2;
	sdp.config.pipelines = true;
	sdp.peer_adverts = 2;
	return sdp;
}

static struct wire_sdp_msg a_sink(uint32_t bytes, uint32_t non_discards)
{
	return MSG(WIRE_SDP_SINK_AVAIL,
		   .sink = {bytes, 3, 0x8000, .non_discards = non_discards});
}

static void expect(struct sdp *sdp, struct sdp_offer offer, uint8_t mid)
{
	struct wire_sdp_msg msg;

	assert_int_equal(next_mid(sdp, offer, &msg), mid);
}

/* --- the source --- */

static void several_regions_are_advertised(void **state)
{
	struct sdp sdp = a_pipelining_end();
	struct sdp_input input;
	struct wire_sdp_msg msg;

	assert_int_equal(next_mid(&sdp, region, &msg), WIRE_SDP_MODE_CHANGE);
	assert_false(msg.mode.send);
	assert_int_equal(msg.mode.mode, WIRE_SDP_PIPELINED);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(next_mid(&sdp, region, &msg), WIRE_SDP_SRC_AVAIL);
		assert_int_equal(msg.payload_bytes, 0);
	}
	expect(&sdp, region, 0); /* as many as the peer allows */
	/* a report is about the oldest alone */
	assert_int_equal(receive(&sdp, MSG(WIRE_SDP_RDMA_RD_COMPL, .count = {3000}), &input), 0);
	assert_int_equal(receive(&sdp, MSG(WIRE_SDP_RDMA_RD_COMPL, .count = {1000}), &input), 0);
	assert_int_equal(input.taken, 1000);
	expect(&sdp, region, WIRE_SDP_SRC_AVAIL);
	sdp_cancel_adverts(&sdp);
	expect(&sdp, region, WIRE_SDP_SRC_AVAIL_CANCEL);
	assert_int_equal(receive(&sdp, MSG(WIRE_SDP_SEND_SM), &input), 0);
	assert_true(input.returned);
	assert_int_equal(receive(&sdp, MSG(WIRE_SDP_RDMA_RD_COMPL, .count = {1}), &input), -EPROTO);
}

/* A peer that has read more than the source had could have the rest of the program's data told
 * as sent. */
static void more_is_read_than_was_advertised(void **state)
{
	struct sdp sdp = a_pipelining_end();
	struct sdp_input input;
	struct wire_sdp_msg msg;

	assert_int_equal(next_mid(&sdp, region, &msg), WIRE_SDP_MODE_CHANGE);
	for (int i = 0; i < 2; i++)
		expect(&sdp, region, WIRE_SDP_SRC_AVAIL);
	assert_int_equal(receive(&sdp, MSG(WIRE_SDP_RDMA_RD_COMPL, .count = {3000}), &input), 0);
	assert_int_equal(receive(&sdp, MSG(WIRE_SDP_RDMA_RD_COMPL, .count = {1001}), &input), -EPROTO);
}

static struct sdp a_pipelined_source(void)
{
	struct sdp sdp = a_pipelining_end();

	expect(&sdp, region, WIRE_SDP_MODE_CHANGE);
	return sdp;
}

static void a_sink_is_written_to(void **state)
{
	struct sdp sdp = a_pipelined_source();
	struct sdp_input input;
	struct wire_sdp_msg msg;

	assert_int_equal(receive(&sdp, a_sink(3000, 0), &input), 0);
	assert_int_equal(next_mid(&sdp, region, &msg), WIRE_SDP_RDMA_WR_COMPL);
	assert_int_equal(msg.count.bytes, 3000);
	assert_int_equal(sdp.target.rkey, 3);
	assert_int_equal(sdp.target.address, 0x8000);
	expect(&sdp, region, WIRE_SDP_SRC_AVAIL); /* it is used up */
}

/* Data for which there was no sink makes the next sink void, and that alone. */
static void a_sink_that_data_has_passed(void **state)
{
	struct sdp sdp = a_pipelined_source();
	struct sdp_input input;

	expect(&sdp, some, WIRE_SDP_DATA);
	assert_int_equal(receive(&sdp, a_sink(3000, 0), &input), 0);
	assert_int_equal(sdp.num_sinks, 0);
	assert_int_equal(receive(&sdp, a_sink(3000, 0), &input), 0);
	assert_int_equal(sdp.num_sinks, 1);
	expect(&sdp, some, WIRE_SDP_DATA); /* too little to be written: uses it up, too */
	assert_int_equal(sdp.num_sinks, 0);
	assert_int_equal(receive(&sdp, a_sink(3000, 0), &input), 0);
	assert_int_equal(sdp.num_sinks, 1);
}

static void a_sink_that_crosses_an_advertisement(void **state)
{
	struct sdp sdp = a_pipelined_source();
	struct sdp_input input;

	expect(&sdp, region, WIRE_SDP_SRC_AVAIL);
	assert_int_equal(receive(&sdp, a_sink(9000, 0), &input), 0);
	assert_true(input.returned);
	expect(&sdp, region, WIRE_SDP_RDMA_WR_COMPL);
}

static void a_sink_that_is_wanted_back(void **state)
{
	struct sdp sdp = a_pipelined_source();
	struct sdp_input input;

	assert_int_equal(receive(&sdp, MSG(WIRE_SDP_SINK_AVAIL_CANCEL), &input), 0);
	expect(&sdp, nothing, 0); /* there was none */
	assert_int_equal(receive(&sdp, a_sink(3000, 0), &input), 0);
	assert_int_equal(receive(&sdp, MSG(WIRE_SDP_SINK_AVAIL_CANCEL), &input), 0);
	expect(&sdp, some, WIRE_SDP_SINK_CANCEL_ACK);
	expect(&sdp, some, WIRE_SDP_DATA);
}

static void too_many_sinks(void **state)
{
	struct sdp sdp = a_pipelined_source();
	struct sdp_input input;

	for (int i = 0; i < 3; i++)
		assert_int_equal(receive(&sdp, a_sink(3000, 0), &input), i < 2 ? 0 : -EPROTO);
	sdp = an_open_end();
	assert_int_equal(receive(&sdp, a_sink(3000, 0), &input), -EPROTO); /* the mode */
}

/* --- the sink --- */

static struct sdp a_pipelined_sink(unsigned int sinks)
{
	const struct sdp_sink sink = {2000, 9, 0x4000};
	struct sdp sdp = a_pipelining_end();
	struct sdp_input input;

	assert_false(sdp_offer_sink(&sdp, &sink)); /* not in this mode */
	assert_int_equal(
		receive(&sdp, MSG(WIRE_SDP_MODE_CHANGE, .mode = {false, 2}), &input), 0);
	for (unsigned int i = 0; i < sinks; i++) {
		assert_true(sdp_offer_sink(&sdp, &sink));
		expect(&sdp, nothing, WIRE_SDP_SINK_AVAIL);
	}
	return sdp;
}

static void a_peer_writes(void **state)
{
	struct sdp sdp = a_pipelined_sink(2);
	const struct sdp_sink sink = {2000, 9, 0x4000};
	struct sdp_input input;
	struct sdp_item *head;

	assert_false(sdp_offer_sink(&sdp, &sink)); /* as many as the peer allows */
	assert_int_equal(receive(&sdp, MSG(WIRE_SDP_RDMA_WR_COMPL, .count = {1500}), &input), 0);
	head = sdp_rx_head(&sdp);
	assert_true(head->in_sink);
	assert_int_equal(head->bytes, 1500);
	assert_int_equal(head->address, 0x4000);
	assert_true(sdp_offer_sink(&sdp, &sink));
	expect(&sdp, nothing, 0); /* not while the program is behind */
	assert_false(sdp_rx_took(&sdp, 1000));
	assert_true(sdp_rx_took(&sdp, 500));
	expect(&sdp, nothing, WIRE_SDP_SINK_AVAIL);
	assert_int_equal(receive(&sdp, MSG(WIRE_SDP_RDMA_WR_COMPL, .count = {2001}), &input),
			 -EPROTO);
}

static void data_uses_up_a_sink(void **state)
{
	struct sdp sdp = a_pipelined_sink(2);
	struct sdp_input input;

	assert_int_equal(receive(&sdp, MSG(WIRE_SDP_DATA, .payload_bytes = 5), &input), 0);
	assert_int_equal(input.sinks_unused, 1);
	assert_int_equal(sdp.rx_data, 0);
	/* an advertisement that meets the other one is void */
	assert_int_equal(receive(&sdp, MSG(WIRE_SDP_SRC_AVAIL, .src = {.bytes = 9}), &input), 0);
	assert_int_equal(sdp.num_items, 1);
	assert_int_equal(receive(&sdp, MSG(WIRE_SDP_DATA, .payload_bytes = 5), &input), 0);
	assert_int_equal(input.sinks_unused, 1);
	assert_int_equal(receive(&sdp, MSG(WIRE_SDP_DATA, .payload_bytes = 5), &input), 0);
	assert_int_equal(input.sinks_unused, 0);
	assert_int_equal(sdp.rx_data, 1);
}

static void sinks_are_wanted_back(void **state)
{
	struct sdp sdp = a_pipelined_sink(2);
	struct sdp_input input;

	assert_int_equal(sdp_cancel_sinks(&sdp), 0);
	expect(&sdp, nothing, WIRE_SDP_SINK_AVAIL_CANCEL);
	assert_int_equal(receive(&sdp, MSG(WIRE_SDP_SINK_CANCEL_ACK), &input), 0);
	assert_int_equal(input.sinks_unused, 2);
	assert_int_equal(receive(&sdp, MSG(WIRE_SDP_SINK_CANCEL_ACK), &input), -EPROTO);
	/* a source that leaves the mode gives them back; none is offered any more */
	sdp = a_pipelined_sink(1);
	assert_int_equal(
		receive(&sdp, MSG(WIRE_SDP_MODE_CHANGE, .mode = {false, 1}), &input), 0);
	assert_int_equal(input.sinks_unused, 1);
	assert_int_equal(
		receive(&sdp, MSG(WIRE_SDP_MODE_CHANGE, .mode = {false, 2}), &input), 0);
	assert_false(sdp_offer_sink(&sdp, &(struct sdp_sink){2000, 9, 0x4000}));
}

/* What is refused leaves nothing behind, or a peer could fill the queue. */
static void refused_again_and_again(void **state)
{
	struct sdp sdp = a_pipelined_sink(0);
	struct sdp_input input;

	for (int i = 0; i < 2 * SDP_ITEMS_MAX; i++) {
		assert_int_equal(receive(&sdp, MSG(i ? WIRE_SDP_SRC_AVAIL : WIRE_SDP_DATA,
						   .src = {.bytes = i ? 9 : 0},
						   .payload_bytes = !i),
					 &input),
				 0);
		sdp_posted(&sdp);
		assert_int_equal(receive(&sdp, MSG(WIRE_SDP_SRC_AVAIL_CANCEL), &input), 0);
		sdp_posted(&sdp);
		sdp.tx_limit = sdp.tx_seq + 16;
		if (i)
			expect(&sdp, nothing, WIRE_SDP_SEND_SM);
		assert_int_equal(sdp.num_items, 1);
	}
}

/* the byte in a SrcAvail counts as data, at both ends */
static void an_advertisement_with_data_is_counted(void **state)
{
	struct sdp sdp = an_open_end();
	struct sdp_input input;

	expect(&sdp, region, WIRE_SDP_SRC_AVAIL);
	assert_int_equal(sdp.tx_data, 1);
	assert_int_equal(receive(&sdp, MSG(WIRE_SDP_SRC_AVAIL, .src = {.bytes = 9}, .payload_bytes = 1), &input), 0);
	assert_int_equal(sdp.rx_data, 1);
}

/* --- modes and buffers --- */

static void the_sink_ends_the_buffered_mode_once(void **state)
{
	struct sdp sdp = an_open_end();
	struct sdp_input input;
	struct wire_sdp_msg msg;

	for (int i = 0; i < 2; i++) {
		assert_int_equal(
			receive(&sdp, MSG(WIRE_SDP_MODE_CHANGE, .mode = {false, 0}), &input),
			0);
		assert_int_equal(next_mid(&sdp, nothing, &msg), i ? 0 : WIRE_SDP_MODE_CHANGE);
		assert_int_equal(sdp.rx_mode, i ? WIRE_SDP_BUFFERED : WIRE_SDP_COMBINED);
	}
}

static void larger_buffers_are_asked_for(void **state)
{
	struct wire_sdp_msg ack = MSG(WIRE_SDP_CH_RCV_BUF_ACK, .count = {1024});
	struct wire_sdp_msg msg = {
		.bsdh = {.mid = WIRE_SDP_HELLO_ACK, .bufs = 16},
		.hello_ack = {WIRE_SDP_VERSION, 1, .actual_rcv_bytes = 512}};
	uint8_t hello[WIRE_SDP_HELLO_BYTES], bytes[WIRE_SDP_HELLO_ACK_BYTES];
	struct sdp_input input;
	struct sdp sdp;

	for (int i = 0; i < 3; i++) {
		sdp_init(&sdp, &config);
		sdp_hello(&sdp, &(struct sdp_address){.src_port = 1}, hello);
		wire_sdp_write(&msg, bytes);
		assert_int_equal(sdp_accepted(&sdp, bytes, sizeof(bytes)), 0);
		expect(&sdp, nothing, WIRE_SDP_CH_RCV_BUF);
		expect(&sdp, nothing, 0);
		ack.count.bytes = (uint32_t[]){1024, 512, 511}[i];
		assert_int_equal(receive(&sdp, ack, &input), i < 2 ? 0 : -EPROTO);
		assert_int_equal(sdp.peer_rcv_bytes, i ? 512 : 1024);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(several_regions_are_advertised),
		cmocka_unit_test(more_is_read_than_was_advertised),
		cmocka_unit_test(a_sink_is_written_to),
		cmocka_unit_test(a_sink_that_data_has_passed),
		cmocka_unit_test(a_sink_that_crosses_an_advertisement),
		cmocka_unit_test(a_sink_that_is_wanted_back),
		cmocka_unit_test(too_many_sinks),
		cmocka_unit_test(a_peer_writes),
		cmocka_unit_test(data_uses_up_a_sink),
		cmocka_unit_test(sinks_are_wanted_back),
		cmocka_unit_test(refused_again_and_again),
		cmocka_unit_test(an_advertisement_with_data_is_counted),
		cmocka_unit_test(the_sink_ends_the_buffered_mode_once),
		cmocka_unit_test(larger_buffers_are_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
