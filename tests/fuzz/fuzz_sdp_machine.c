/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A peer that sends any messages to one end of an SDP connection, while its program writes,
 * reads, lends room and closes in any order. No slot is lost or used twice, no byte is read
 * outside of a message, no sink is lost, and the end accepts no message after it has ended.
 * An end that is suspended has no memory lent to the peer, and none of the peer's to read.
 */
#include <string.h>

#include "check.h"
#include "sdp/sdp.h"

#define SLOTS	  8
#define RCV_BYTES 512
#define SINK_BYTES_MAX 127
#define ADVERTS 2 /* of the peer, at once */

struct input {
	const uint8_t *at;
	size_t left;
};

struct end {
	struct sdp sdp;
	uint8_t slot[SLOTS][RCV_BYTES];
	uint32_t bytes[SLOTS]; /* of the message in a slot that the stream holds */
	uint32_t posted, free, held; /* bits: each slot is in one of them */
	bool reading;
	uint32_t sinks; /* that the peer may write to, now or later */
	uint64_t advertised; /* bytes that are neither taken nor returned */
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t take(struct input *in)
{
	if (!in->left)
		return 0;
	in->left--;
	return *in->at++;
}

static void open_end(struct end *e, bool pipelines)
{
	const struct sdp_config config = {
		.slots = SLOTS, .rcv_bytes = 300, .rcv_max = RCV_BYTES, .send_bytes = 500,
		.max_adverts = ADVERTS, .advert_bytes = 600, .pipelines = pipelines};
	struct wire_sdp_msg hello = {.bsdh = {.mid = WIRE_SDP_HELLO, .bufs = 16},
				     .hello = {.version = WIRE_SDP_VERSION,
					       .ip_version = 4,
					       .max_adverts = 2,
					       .local_rcv_bytes = 400}};
	uint8_t bytes[WIRE_SDP_HELLO_BYTES], ack[WIRE_SDP_HELLO_ACK_BYTES];
	struct sdp_address address;

	memset(e, 0, sizeof(*e));
	e->posted = (1u << SLOTS) - 1;
	check(!sdp_init(&e->sdp, &config));
	wire_sdp_write(&hello, bytes);
	check(!sdp_accept(&e->sdp, bytes, sizeof(bytes), &address, ack));
}

/* The numbers are right, mostly: else no message would get farther. */
static void receive(struct end *e, struct input *in)
{
	const uint8_t how = take(in), len = take(in);
	const uint16_t slot = (uint16_t)__builtin_ctz(e->posted | 1u << SLOTS);
	struct sdp_input result;
	uint8_t *m;

	if (slot == SLOTS)
		return;
	m = e->slot[slot];
	memset(m, 0, RCV_BYTES);
	for (unsigned int i = 0; i < len; i++)
		m[i] = take(in);
	if (!(how & 1)) {
		uint32_t seq = e->sdp.rx_seq + 1, limit = e->sdp.tx_limit + (how >> 4);
		uint16_t bufs = (uint16_t)(limit - e->sdp.tx_seq);

		memcpy(m + 2, (uint8_t[]){bufs >> 8, bufs & 0xff, 0, 0, 0, len}, 6);
		for (int i = 0; i < 4; i++) {
			m[8 + i] = (uint8_t)(seq >> (24 - 8 * i));
			m[12 + i] = (uint8_t)(e->sdp.tx_seq >> (24 - 8 * i));
		}
	}
	e->posted &= ~(1u << slot);
	if (sdp_received(&e->sdp, slot, m, len, &result))
		check(e->sdp.state == SDP_ENDED && e->sdp.end == SDP_BROKEN);
	*(result.holds_slot ? &e->held : &e->free) |= 1u << slot;
	e->bytes[slot] = len;
	check(result.taken <= e->advertised);
	e->advertised = result.returned ? 0 : e->advertised - result.taken;
	check(result.sinks_unused <= e->sinks);
	e->sinks -= result.sinks_unused;
	if (m[0] == WIRE_SDP_RDMA_WR_COMPL && e->sdp.state == SDP_OPEN)
		e->sinks--;
	check(e->sdp.state != SDP_OPEN || e->sinks == e->sdp.num_own_sinks);
}

static void lend(struct end *e, uint8_t how)
{
	const struct sdp_sink sink = {.bytes = how & SINK_BYTES_MAX};

	if (how & 0x80)
		e->sinks -= sdp_cancel_sinks(&e->sdp);
	else
		e->sinks += sdp_offer_sink(&e->sdp, &sink);
}

static void deliver(struct end *e, uint8_t how)
{
	struct sdp_item *head = sdp_rx_head(&e->sdp);
	uint16_t slot;

	if (!head)
		return;
	slot = head->slot;
	if (head->in_sink) {
		check(head->bytes && head->bytes <= SINK_BYTES_MAX && !head->left);
		sdp_rx_took(&e->sdp, 1 + how % head->bytes);
	} else if (head->bytes) {
		check(e->held & 1u << slot);
		check(range_covers(0, e->bytes[slot], head->offset, head->bytes));
		if (!sdp_rx_took(&e->sdp, 1 + how % head->bytes))
			return;
		e->held &= ~(1u << slot);
		e->free |= 1u << slot;
	} else if (!e->reading) {
		check(head->left > 0);
		e->reading = true;
		sdp_rx_reading(&e->sdp, 1 + how % head->left);
	} else {
		e->reading = false;
		sdp_rx_read(&e->sdp);
	}
}

static void send(struct end *e, uint8_t how)
{
	const struct sdp_offer offer = {.bytes = how * 8u,
					.oob = how & 1,
					.region_bytes = how & 2 ? how * 8u : 0};
	struct wire_sdp_msg msg;
	uint8_t headers[256];

	if (!sdp_next(&e->sdp, &offer, &msg))
		return;
	check(msg.payload_bytes <= offer.bytes);
	if (msg.bsdh.mid == WIRE_SDP_SRC_AVAIL)
		e->advertised += offer.region_bytes - msg.payload_bytes;
	if (msg.bsdh.mid == WIRE_SDP_RDMA_WR_COMPL)
		check(msg.count.bytes <= MIN(offer.region_bytes, e->sdp.target.bytes));
	check(wire_sdp_write(&msg, headers) > 0 && msg.bsdh.len <= e->sdp.peer_rcv_bytes);
	check((int32_t)(e->sdp.tx_limit - e->sdp.tx_seq) >= 0);
}

/* Is there memory of the peer's that was not read? */
static bool lends_us(const struct sdp *sdp)
{
	for (uint32_t i = 0; i < sdp->num_items; i++)
		if (sdp->item[(sdp->first + i) % SDP_ITEMS_MAX].left)
			return true;
	return false;
}

/* The stream moves, and that comes to nothing. Nothing is lent any more when both have agreed. */
static void leave(struct end *e, uint8_t how)
{
	if (e->sdp.state == SDP_SUSPENDED)
		check(!e->sdp.num_adverts && !e->sdp.sinks_out && !lends_us(&e->sdp));
	if (how & 1)
		sdp_suspend(&e->sdp, how);
	else
		sdp_not_resumed(&e->sdp);
}

static void post(struct end *e)
{
	if (!e->free)
		return;
	e->posted |= e->free & -e->free;
	e->free &= e->free - 1;
	sdp_posted(&e->sdp);
}

static void step(struct end *e, struct input *in)
{
	const uint8_t what = take(in);

	switch (what % 16) {
	case 0:
		sdp_shutdown(&e->sdp);
		break;
	case 1:
		sdp_close(&e->sdp);
		break;
	case 2:
		sdp_cancel_adverts(&e->sdp);
		break;
	case 3:
		sdp_abort(&e->sdp);
		break;
	case 4:
		if (e->sdp.tx_unacked)
			sdp_sent(&e->sdp);
		break;
	case 5:
		post(e);
		break;
	case 6:
	case 7:
		send(e, take(in));
		break;
	case 8:
	case 9:
		deliver(e, take(in));
		break;
	case 10:
		lend(e, take(in));
		break;
	case 11:
		leave(e, take(in));
		break;
	default:
		receive(e, in);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	struct end e;

	open_end(&e, size % 2);
	while (in.left) {
		step(&e, &in);
		check(!(e.posted & e.free) && !(e.posted & e.held) && !(e.free & e.held));
		check((e.posted | e.free | e.held) == (1u << SLOTS) - 1);
		check(e.sdp.num_items <= SDP_ITEMS_MAX && e.sdp.num_sinks <= ADVERTS);
		check(e.sdp.slot_bytes >= SDP_RCV_BYTES_MIN && e.sdp.slot_bytes <= RCV_BYTES);
		check(e.sdp.small_posted <= e.sdp.posted);
		check(e.sdp.state != SDP_OPEN ||
		      e.sdp.posted == (uint32_t)__builtin_popcount(e.posted));
	}
	return 0;
}
