/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The protocol of a cable of Ethernet, which is that of QEMU's -netdev stream: session.h. The fabric makes frames
 * and packets of each other (fabric/frames.h).
 */
#include <errno.h>

#include "base/bytes.h"
#include "cable/session_private.h"

#define LENGTH_BYTES 4
#define QEMU_MAX     (4096 + 65536) /* NET_BUFSIZE, the longest that QEMU sends or takes */

static void take_frame(struct cable_session *s, const uint8_t *frame, size_t len)
{
	uint8_t bytes[WIRE_PACKET_MAX];
	struct fab_packet pkt;

	if (fab_frames_arrive(s->config.frames, frame, len, bytes, &pkt))
		return;
	s->packets_received++;
	s->received += pkt.len;
	s->config.ops->packet(s->config.ctx, &pkt);
}

/* What is too long for the fabric is counted there; what QEMU never sends shows that the other side means something else. */
static ssize_t input(struct cable_session *s, const uint8_t *bytes, size_t len)
{
	size_t at = 0;

	while (len - at >= LENGTH_BYTES) {
		const uint32_t n = get_be32(bytes + at);

		if (n > QEMU_MAX)
			return cable_session_break(s, "the other side does not send frames of Ethernet as QEMU does");
		if (len - at < LENGTH_BYTES + n)
			break;
		take_frame(s, bytes + at + LENGTH_BYTES, n);
		at += LENGTH_BYTES + n;
	}
	return (ssize_t)at;
}

static int send(struct cable_session *s, const struct fab_packet *pkt)
{
	uint8_t *at;
	size_t n;

	if (s->state != CABLE_OPEN)
		return -ENOTCONN;
	if (cable_tx_room(s) < LENGTH_BYTES + WIRE_ROCE_FRAME_MAX) {
		s->waits++;
		return -EAGAIN;
	}
	at = cable_tx_reserve(s, LENGTH_BYTES + WIRE_ROCE_FRAME_MAX);
	n = fab_frames_leave(s->config.frames, pkt, at + LENGTH_BYTES);
	put_be32(at, (uint32_t)n);
	s->tx_end -= WIRE_ROCE_FRAME_MAX - n + (n ? 0 : LENGTH_BYTES);
	if (!n)
		return 0;
	s->packets_sent++;
	s->sent += pkt->len;
	return 0;
}

/* The other end says nothing about its link: it trains as this one wants it. */
static void link(struct cable_session *s, const struct fab_outlet_link *own)
{
	struct fab_outlet_link far = *own;

	far.plugged = true;
	far.phys_request = WIRE_PHYS_POLLING;
	if (s->state != CABLE_OPEN || fab_outlet_links_equal(&s->link, &far))
		return;
	s->link = far;
	s->config.ops->far_link(s->config.ctx, &far);
}

const struct cable_protocol cable_frames = {.input = input, .send = send, .link = link};
