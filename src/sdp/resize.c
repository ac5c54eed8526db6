/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The size of receive buffers (A4.7). The end that sends data asks by ChRcvBuf, one request at a
 * time; the end that receives it answers by ChRcvBufAck with the size that it grants, which holds
 * from there on.
 *
 * Buffers of a receive queue are used in the order in which they were posted. So that no message
 * is longer than the buffer that it meets,
 *
 *  - larger ones are granted when all smaller ones that were posted before are used up: the
 *    answer waits for so many messages;
 *  - smaller ones are granted at once, and posted from the answer on. The peer hears of them, and
 *    may use them, by messages behind the answer alone: what it sent before has credits of older
 *    ones.
 *
 * Policy: four messages in a row that fill their buffers are a reason to ask for those of
 * config.send_bytes, unless the peer has refused; 256 that would fit buffers of the first size are
 * a reason to give the memory back.
 */
#include <errno.h>

#include "sdp/private.h"

#define FULL_RUN  4
#define SMALL_RUN 256

/* --- the peer's requests --- */

static uint32_t grant_for(const struct sdp *sdp, uint32_t asked)
{
	if (!sdp->config.rcv_max || sdp->disconn_received) /* nothing more is to be received */
		return sdp->slot_bytes;
	if (asked < SDP_RCV_BYTES_MIN)
		return SDP_RCV_BYTES_MIN;
	return MIN(asked, sdp->config.rcv_max);
}

int sdp_on_ch_rcv_buf(struct sdp *sdp, uint16_t slot, const struct wire_sdp_msg *msg,
		      struct sdp_input *input)
{
	if (sdp->rcv_buf_ack_due || sdp->small_posted)
		return -EPROTO; /* the last request is not answered yet */
	sdp->rcv_grant = grant_for(sdp, msg->count.bytes);
	if (sdp->rcv_grant > sdp->slot_bytes) {
		sdp->slot_bytes = sdp->rcv_grant;
		sdp->small_posted = sdp->posted;
	}
	sdp->rcv_buf_ack_due = !sdp->small_posted;
	return 0;
}

void sdp_note_slot_used(struct sdp *sdp)
{
	if (sdp->small_posted && !--sdp->small_posted)
		sdp->rcv_buf_ack_due = true;
}

void sdp_note_grant_sent(struct sdp *sdp)
{
	sdp->slot_bytes = sdp->rcv_grant;
}

/* --- own requests --- */

/* What was asked for may be granted in part: no size passes the old one in the other direction. */
int sdp_on_ch_rcv_buf_ack(struct sdp *sdp, uint16_t slot, const struct wire_sdp_msg *msg,
			  struct sdp_input *input)
{
	const uint32_t bytes = msg->count.bytes, now = sdp->peer_rcv_bytes;
	const bool grows = sdp->rcv_buf_ask >= now;

	if (!sdp->rcv_buf_asked || bytes < SDP_RCV_BYTES_MIN ||
	    (grows ? bytes < now : bytes > now))
		return -EPROTO;
	sdp->rcv_buf_asked = false;
	sdp->rcv_buf_refused |= grows && bytes < sdp->rcv_buf_ask;
	sdp->peer_rcv_bytes = bytes;
	return 0;
}

bool sdp_ask_buffers(struct sdp *sdp, uint32_t bytes)
{
	if (sdp->rcv_buf_asked || sdp->rcv_buf_due || sdp->state != SDP_OPEN || sdp->disconn_sent ||
	    sdp_is_leaving(sdp))
		return false;
	sdp->full_run = sdp->small_run = 0;
	sdp->rcv_buf_ask = bytes;
	sdp->rcv_buf_due = true;
	return true;
}

void sdp_note_data_sent(struct sdp *sdp, uint32_t payload, uint32_t room)
{
	const uint32_t bytes = payload + (uint32_t)wire_sdp_header_bytes(WIRE_SDP_DATA);

	sdp->full_run = payload == room ? sdp->full_run + 1 : 0;
	sdp->small_run = bytes <= sdp->config.rcv_bytes ? sdp->small_run + 1 : 0;
	if (!sdp->config.send_bytes)
		return;
	if (sdp->full_run >= FULL_RUN && sdp->peer_rcv_bytes < sdp->config.send_bytes &&
	    !sdp->rcv_buf_refused)
		sdp_ask_buffers(sdp, sdp->config.send_bytes);
	else if (sdp->small_run >= SMALL_RUN && sdp->peer_rcv_bytes > sdp->config.rcv_bytes)
		sdp_ask_buffers(sdp, sdp->config.rcv_bytes);
}
