/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* One end of a connection, to which a test is the peer. */
#ifndef SOFTIB_TEST_SDP_ONE_END_H
#define SOFTIB_TEST_SDP_ONE_END_H

#include "sdp/sdp.h"

static const struct sdp_config config = {
	.slots = 8, .rcv_bytes = 1024, .max_adverts = 1, .advert_bytes = 512};

/* an end as after Hello and HelloAck with a peer of 16 buffers of 2,048 bytes */
static inline struct sdp an_open_end(void)
{
	struct wire_sdp_msg msg = {.bsdh = {.mid = WIRE_SDP_HELLO_ACK, .bufs = 16},
				   .hello_ack = {.version = WIRE_SDP_VERSION,
						 .max_adverts = 1,
						 .actual_rcv_bytes = 2048}};
	uint8_t hello[WIRE_SDP_HELLO_BYTES], ack[WIRE_SDP_HELLO_ACK_BYTES];
	const struct sdp_address address = {.src_port = 1};
	struct sdp sdp;

	assert_int_equal(sdp_init(&sdp, &config), 0);
	sdp_hello(&sdp, &address, hello);
	wire_sdp_write(&msg, ack);
	assert_int_equal(sdp_accepted(&sdp, ack, sizeof(ack)), 0);
	assert_int_equal(sdp.state, SDP_OPEN);
	return sdp;
}

/* the peer's next message, with the numbers that are due */
static inline int receive(struct sdp *sdp, struct wire_sdp_msg msg, struct sdp_input *input)
{
	uint8_t buf[1024] = {0};

	msg.bsdh.mseq = sdp->rx_seq + 1;
	msg.bsdh.mseq_ack = sdp->tx_seq;
	msg.bsdh.bufs = 16;
	assert_true(wire_sdp_write(&msg, buf) > 0);
	return sdp_received(sdp, 3, buf, msg.bsdh.len, input);
}

static inline uint8_t next_mid(struct sdp *sdp, struct sdp_offer offer, struct wire_sdp_msg *msg)
{
	return sdp_next(sdp, &offer, msg) ? msg->bsdh.mid : 0;
}

#endif
