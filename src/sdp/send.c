/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Which message is sent next, and whether there is a credit for it.
 *
 *   credits left	what may be sent
 *   more than 4	anything
 *   2 to 4		anything but data and advertisements
 *   1			a grant that raises what the peer may send; AbortConn
 *
 * A grant is a Data message without data. It is sent when half of the slots were freed
 * unnoticed, or when the peer may have too few credits for data. The second reason must
 * not let two ends that wait for their programs exchange grants for ever: each grant
 * occupies and frees one slot. So one slot that was freed by a grant alone is no reason;
 * two are, and the exchange dies out.
 */
#include "sdp/sdp.h"

#include "sdp/private.h"

#define CREDITS_FOR_CONTROL 2

/* --- grants --- */

static uint32_t ungranted(const struct sdp *sdp)
{
	return sdp->rx_seq + sdp->posted - sdp->rx_limit;
}

static bool needs_grant(const struct sdp *sdp)
{
	const uint32_t n = ungranted(sdp);
	const uint32_t peer_credits = sdp->rx_limit - sdp->rx_seq;

	return n >= sdp->config.slots / 2u ||
	       (peer_credits <= SDP_RESERVED && (n > 1 || (n && sdp->freed_by_message)));
}

/* --- data --- */

/* May the stream go on, by whatever message? */
static bool may_send(const struct sdp *sdp)
{
	return sdp->state == SDP_OPEN && !sdp->disconn_sent && !sdp->abort_due &&
	       !sdp_is_leaving(sdp) && sdp_credits(sdp) > SDP_RESERVED;
}

/* No data passes memory that was advertised. */
static bool may_send_data(const struct sdp *sdp)
{
	return may_send(sdp) && !sdp->num_adverts;
}

uint32_t sdp_room(const struct sdp *sdp)
{
	uint32_t bytes = sdp->peer_rcv_bytes;

	if (!may_send_data(sdp))
		return 0;
	if (sdp->config.send_bytes)
		bytes = MIN(bytes, sdp->config.send_bytes);
	return bytes - (uint32_t)wire_sdp_header_bytes(WIRE_SDP_DATA);
}

/* A4.6: how many SrcAvails may be outstanding in which mode. A source that pipelines changes
 * from the combined mode first. What it knows of sinks is used before (memory.c). */
static uint32_t adverts_allowed(const struct sdp *sdp)
{
	if (sdp->tx_mode == WIRE_SDP_BUFFERED || sdp->num_sinks)
		return 0;
	if (sdp->tx_mode == WIRE_SDP_COMBINED)
		return 1;
	return MIN((uint32_t)sdp->peer_adverts, SDP_ADVERTS_MAX);
}

bool sdp_may_advertise(const struct sdp *sdp)
{
	return sdp->config.advert_bytes && may_send(sdp) && !sdp->cancel_due &&
	       !sdp->cancel_sent && sdp->num_adverts < adverts_allowed(sdp) &&
	       sdp->num_adverts + sdp->sinks_out < sdp->peer_adverts;
}

/* Is the offered region worth an advertisement? */
static bool is_bulk(const struct sdp *sdp, const struct sdp_offer *offer)
{
	return offer->region_bytes >= sdp->config.advert_bytes &&
	       !(offer->oob && offer->region_bytes == offer->bytes);
}

/* In the combined mode the message has the first bytes itself, so that the peer's program
 * knows that there is something to read; one is enough. */
static void advertise(struct sdp *sdp, const struct sdp_offer *offer,
		      struct wire_sdp_msg *msg)
{
	msg->bsdh.mid = WIRE_SDP_SRC_AVAIL;
	msg->src = (struct wire_sdp_src_avail){.bytes = offer->region_bytes,
					       .rkey = offer->rkey,
					       .address = offer->address};
	msg->payload_bytes = sdp->tx_mode == WIRE_SDP_COMBINED;
	if (msg->payload_bytes)
		sdp_count_tx_data(sdp);
	sdp->advert[sdp->num_adverts++] = offer->region_bytes - msg->payload_bytes;
}

/* The oldest sink of the peer is used for data for which messages would take longer. */
static void write_to_sink(struct sdp *sdp, const struct sdp_offer *offer,
			  struct wire_sdp_msg *msg)
{
	sdp->target = sdp->sink[0];
	sdp_count_tx_data(sdp);
	msg->bsdh.mid = WIRE_SDP_RDMA_WR_COMPL;
	msg->count.bytes = MIN(offer->region_bytes, sdp->target.bytes);
}

static void send_data(struct sdp *sdp, const struct sdp_offer *offer,
		      struct wire_sdp_msg *msg)
{
	const uint32_t room = sdp_room(sdp);

	msg->bsdh.mid = WIRE_SDP_DATA;
	msg->payload_bytes = MIN(offer->bytes, room);
	sdp_note_data_sent(sdp, msg->payload_bytes, room);
	sdp_count_tx_data(sdp);
}

static bool next_data(struct sdp *sdp, const struct sdp_offer *offer,
		      struct wire_sdp_msg *msg)
{
	const bool bulk = sdp->config.advert_bytes && is_bulk(sdp, offer);

	if (!offer->bytes)
		return false;
	if (bulk && sdp->config.pipelines && sdp->tx_mode == WIRE_SDP_COMBINED &&
	    may_send_data(sdp)) {
		msg->bsdh.mid = WIRE_SDP_MODE_CHANGE;
		sdp_note(sdp, SDP_TRACE_TX_MODE, sdp->tx_mode, WIRE_SDP_PIPELINED);
		msg->mode.mode = sdp->tx_mode = WIRE_SDP_PIPELINED;
		return true;
	}
	if (bulk && sdp_may_advertise(sdp))
		advertise(sdp, offer, msg);
	else if (!may_send_data(sdp))
		return false;
	else if (bulk && sdp->num_sinks)
		write_to_sink(sdp, offer, msg);
	else
		send_data(sdp, offer, msg);
	if (offer->oob)
		msg->bsdh.flags = msg->payload_bytes == offer->bytes ? WIRE_SDP_OOB_PRES
								     : WIRE_SDP_OOB_PEND;
	return true;
}

/* --- all others, the most urgent first --- */

static bool take(bool *due)
{
	bool was = *due;

	*due = false;
	return was;
}

static bool next_read_compl(struct sdp *sdp, struct wire_sdp_msg *msg)
{
	if (!sdp->num_reads_due)
		return false;
	msg->bsdh.mid = WIRE_SDP_RDMA_RD_COMPL;
	msg->count.bytes = sdp->read_due[0];
	sdp->num_reads_due--;
	for (uint32_t i = 0; i < sdp->num_reads_due; i++)
		sdp->read_due[i] = sdp->read_due[i + 1];
	return true;
}

static bool next_sink(struct sdp *sdp, struct wire_sdp_msg *msg)
{
	const struct sdp_sink *sink = &sdp->own_sink[sdp->sinks_out];

	if (!sdp_may_send_sink(sdp))
		return false;
	msg->bsdh.mid = WIRE_SDP_SINK_AVAIL;
	msg->sink = (struct wire_sdp_sink_avail){.bytes = sink->bytes,
						 .rkey = sink->rkey,
						 .address = sink->address,
						 .non_discards = sdp->rx_data};
	sdp->sinks_out++;
	return true;
}

/* What was read is reported before the rest is asked for as data. */
static bool next_answer(struct sdp *sdp, struct wire_sdp_msg *msg)
{
	if (next_read_compl(sdp, msg))
		return true;
	if (take(&sdp->send_sm_due)) {
		msg->bsdh.mid = WIRE_SDP_SEND_SM;
	} else if (take(&sdp->rcv_buf_ack_due)) {
		msg->bsdh.mid = WIRE_SDP_CH_RCV_BUF_ACK;
		msg->count.bytes = sdp->rcv_grant;
		sdp_note_grant_sent(sdp);
	} else if (take(&sdp->sink_cancel_ack_due)) {
		msg->bsdh.mid = WIRE_SDP_SINK_CANCEL_ACK;
	} else {
		return false;
	}
	return true;
}

/* requests of this end's own */
static bool next_request(struct sdp *sdp, struct wire_sdp_msg *msg)
{
	if (take(&sdp->cancel_due)) {
		msg->bsdh.mid = WIRE_SDP_SRC_AVAIL_CANCEL;
		sdp->cancel_sent = true;
	} else if (take(&sdp->sink_cancel_due)) {
		msg->bsdh.mid = WIRE_SDP_SINK_AVAIL_CANCEL;
		sdp->sink_cancel_sent = true;
	} else if (take(&sdp->rcv_buf_due)) {
		msg->bsdh.mid = WIRE_SDP_CH_RCV_BUF;
		msg->count.bytes = sdp->rcv_buf_ask;
		sdp->rcv_buf_asked = true;
	} else if (take(&sdp->combined_due)) {
		msg->bsdh.mid = WIRE_SDP_MODE_CHANGE;
		msg->mode.send = true;
		sdp_note(sdp, SDP_TRACE_RX_MODE, sdp->rx_mode, WIRE_SDP_COMBINED);
		msg->mode.mode = sdp->rx_mode = WIRE_SDP_COMBINED;
	} else {
		return next_sink(sdp, msg);
	}
	return true;
}

static bool next_disconn(struct sdp *sdp, const struct sdp_offer *offer,
			 struct wire_sdp_msg *msg)
{
	if (!sdp->tx_shut || sdp->disconn_sent || offer->bytes || sdp->num_adverts ||
	    sdp_is_leaving(sdp))
		return false;
	msg->bsdh.mid = WIRE_SDP_DISCONN;
	sdp->disconn_sent = true;
	return true;
}

static bool next_grant(struct sdp *sdp, struct wire_sdp_msg *msg)
{
	msg->bsdh.mid = WIRE_SDP_DATA;
	return needs_grant(sdp);
}

static bool next_abort(struct sdp *sdp, struct wire_sdp_msg *msg)
{
	if (sdp->abort_sent)
		return false;
	msg->bsdh.mid = WIRE_SDP_ABORT_CONN;
	sdp->abort_sent = true;
	return true;
}

static bool choose(struct sdp *sdp, const struct sdp_offer *offer,
		   struct wire_sdp_msg *msg)
{
	const uint32_t credits = sdp_credits(sdp);

	if (!credits)
		return false;
	if (sdp->abort_due)
		return next_abort(sdp, msg);
	if (credits >= CREDITS_FOR_CONTROL &&
	    (next_answer(sdp, msg) || next_request(sdp, msg) || sdp_next_suspend(sdp, msg) ||
	     next_data(sdp, offer, msg) || next_disconn(sdp, offer, msg)))
		return true;
	return next_grant(sdp, msg);
}

bool sdp_next(struct sdp *sdp, const struct sdp_offer *offer, struct wire_sdp_msg *msg)
{
	*msg = (struct wire_sdp_msg){.bsdh = {0}};
	if (sdp->state != SDP_OPEN || sdp->susp_ack_sent || !choose(sdp, offer, msg))
		return false;
	msg->bsdh.bufs = (uint16_t)sdp->posted;
	msg->bsdh.mseq = ++sdp->tx_seq;
	msg->bsdh.mseq_ack = sdp->rx_seq;
	msg->bsdh.len =
		(uint32_t)wire_sdp_header_bytes(msg->bsdh.mid) + msg->payload_bytes;
	sdp->rx_limit = sdp->rx_seq + sdp->posted;
	sdp->freed_by_message = false;
	sdp->tx_unacked++;
	return true;
}

void sdp_sent(struct sdp *sdp)
{
	sdp->tx_unacked--;
	sdp_check_closed(sdp);
}
