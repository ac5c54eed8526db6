/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Memory that one end lends to the other (A4.6), and the modes in which it may.
 *
 * A source advertises data by SrcAvail. The sink reads it and says so by RdmaRdCompl. A
 * source that wants its memory back sends SrcAvailCancel; the sink then refuses what it has
 * not read by one SendSm for all, and the source sends that as data.
 *
 * A sink advertises room by SinkAvail, in the pipelined mode alone. The source writes to it
 * and says so by RdmaWrCompl, which ends the use of that sink. A sink that wants its memory
 * back sends SinkAvailCancel. The source forgets the sinks that it has; if there were any,
 * it answers by SinkCancelAck.
 *
 * Messages may cross. Both ends resolve that by the same rules, without a further message:
 *
 *  - Each message with data uses up one sink, the oldest. A source has counted the messages
 *    with data for which it knew no sink (tx_data), and a sink those for which it had
 *    advertised none (rx_data). SinkAvail carries the sink's count. If the source has
 *    counted more, a message with data is under way that will use up this sink: the source
 *    forgets both.
 *  - A SrcAvail that meets an outstanding SinkAvail at the sink is void. The source learns of
 *    it by that SinkAvail, and offers the data again.
 *
 * So a source sends no SrcAvail while it knows a sink, and never leaves the pipelined mode,
 * where the counts could not be kept equal.
 */
#include <errno.h>
#include <string.h>

#include "sdp/private.h"

/* --- queues of a few: the oldest is at 0 --- */

static void pop_sinks(struct sdp_sink *sink, uint32_t *num, uint32_t n)
{
	*num -= n;
	memmove(sink, sink + n, *num * sizeof(*sink));
}

static void pop_advert(struct sdp *sdp)
{
	sdp->num_adverts--;
	memmove(sdp->advert, sdp->advert + 1, sdp->num_adverts * sizeof(*sdp->advert));
}

/* --- the peer's data: this end is the sink --- */

unsigned int sdp_num_sources(struct sdp *sdp)
{
	unsigned int n = 0;

	for (uint32_t i = 0; i < sdp->num_items; i++)
		n += sdp_item_at(sdp, i)->left > 0;
	return n;
}

/* Does the peer have as many advertisements outstanding as it may? Those whose end it does
 * not know yet count as well; one that was read in part counts once. */
static bool has_too_many(struct sdp *sdp)
{
	const struct sdp_item *head = sdp_rx_head(sdp);
	const bool twice = head && head->left && head->read_noted && sdp->num_reads_due;

	return sdp_num_sources(sdp) + sdp->num_reads_due - twice + sdp->num_sinks >=
	       sdp->config.max_adverts;
}

/* A4.6.2: in the combined mode the message has the first bytes itself, in the pipelined
 * mode it has none. */
int sdp_on_src_avail(struct sdp *sdp, uint16_t slot, const struct wire_sdp_msg *msg,
		     struct sdp_input *input)
{
	const uint32_t inlined = msg->payload_bytes;
	const struct sdp_item item = {
		.slot = slot,
		.holds_slot = inlined,
		.oob = msg->bsdh.flags & WIRE_SDP_OOB_PRES,
		.offset = (uint32_t)wire_sdp_header_bytes(WIRE_SDP_SRC_AVAIL),
		.bytes = inlined,
		.left = msg->src.bytes - inlined,
		.rkey = msg->src.rkey,
		.address = msg->src.address + inlined,
	};
	int ret;

	if (sdp->rx_mode == WIRE_SDP_BUFFERED || inlined >= msg->src.bytes ||
	    !inlined != (sdp->rx_mode == WIRE_SDP_PIPELINED))
		return -EPROTO;
	if (sdp->sinks_out)
		return 0; /* void */
	if (has_too_many(sdp))
		return -EPROTO;
	ret = sdp_add_item(sdp, &item);
	if (ret || sdp->rx_shut)
		return ret;
	if (inlined)
		sdp_count_rx_data(sdp, input);
	input->holds_slot = inlined;
	return 0;
}

/* Pieces that are refused stand anywhere. A program that does not read may not let them
 * pile up, however often the peer advertises and cancels. */
static void drop_empty(struct sdp *sdp)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < sdp->num_items; i++) {
		const struct sdp_item item = *sdp_item_at(sdp, i);

		if (item.bytes || item.left)
			*sdp_item_at(sdp, kept++) = item;
	}
	sdp->num_items = kept;
}

/* The peer sends as data what was not read of the sources that it has cancelled. SendSm
 * comes behind the reports of what was read. */
static void refuse_cancelled(struct sdp *sdp)
{
	for (uint32_t i = 0; i < sdp->num_items; i++) {
		struct sdp_item *item = sdp_item_at(sdp, i);

		if (!item->left || !item->cancelled)
			continue;
		item->left = 0;
		sdp->send_sm_due = true;
	}
	drop_empty(sdp);
}

/* A cancellation finds no source whose last byte was read before. */
void sdp_refuse_sources(struct sdp *sdp)
{
	bool reading = false;

	for (uint32_t i = 0; i < sdp->num_items; i++) {
		sdp_item_at(sdp, i)->cancelled = true;
		reading |= sdp_item_at(sdp, i)->reading > 0;
	}
	if (!reading)
		refuse_cancelled(sdp);
}

int sdp_on_src_cancel(struct sdp *sdp, uint16_t slot, const struct wire_sdp_msg *msg,
		      struct sdp_input *input)
{
	sdp_refuse_sources(sdp);
	return 0;
}

void sdp_rx_reading(struct sdp *sdp, uint32_t bytes)
{
	sdp_item_at(sdp, 0)->reading = bytes;
}

/* Each RdmaRdCompl is about one source: only parts of the same one are added up. */
static void note_read(struct sdp *sdp, struct sdp_item *item)
{
	if (!sdp->num_reads_due || !item->read_noted)
		sdp->read_due[sdp->num_reads_due++] = 0;
	sdp->read_due[sdp->num_reads_due - 1] += item->reading;
	item->read_noted = true;
}

void sdp_rx_read(struct sdp *sdp)
{
	struct sdp_item *head = sdp_rx_head(sdp);

	if (!head || !head->reading) /* the connection has ended meanwhile */
		return;
	note_read(sdp, head);
	head->left -= head->reading;
	head->address += head->reading;
	head->reading = 0;
	refuse_cancelled(sdp);
}

/* --- this end's sinks --- */

/* @n of the oldest were used up. Nothing acknowledges a cancellation then that finds none. */
static void end_sinks(struct sdp *sdp, uint32_t n)
{
	pop_sinks(sdp->own_sink, &sdp->num_own_sinks, n);
	sdp->sinks_out -= n;
	if (!sdp->sinks_out)
		sdp->sink_cancel_due = sdp->sink_cancel_sent = false;
}

void sdp_count_rx_data(struct sdp *sdp, struct sdp_input *input)
{
	if (sdp->sinks_out) {
		end_sinks(sdp, 1);
		input->sinks_unused++;
	} else {
		sdp->rx_data++;
	}
}

static bool may_have_sinks(const struct sdp *sdp)
{
	return sdp->state == SDP_OPEN && sdp->rx_mode == WIRE_SDP_PIPELINED &&
	       !sdp_is_leaving(sdp) && !sdp->no_sinks && !sdp->rx_shut && !sdp->disconn_received;
}

bool sdp_offer_sink(struct sdp *sdp, const struct sdp_sink *sink)
{
	if (!may_have_sinks(sdp) || !sink->bytes ||
	    sdp->num_own_sinks >= MIN((uint32_t)sdp->peer_adverts, SDP_ADVERTS_MAX))
		return false;
	sdp->own_sink[sdp->num_own_sinks++] = *sink;
	return true;
}

/* Room is advertised only when the program has got everything: else the peer is ahead, and
 * would find a sink that has been used up. */
bool sdp_may_send_sink(const struct sdp *sdp)
{
	return may_have_sinks(sdp) && sdp->num_own_sinks > sdp->sinks_out &&
	       !sdp->num_items && !sdp->sink_cancel_due && !sdp->sink_cancel_sent &&
	       sdp->num_adverts + sdp->sinks_out < sdp->peer_adverts;
}

uint32_t sdp_cancel_sinks(struct sdp *sdp)
{
	const uint32_t unsent = sdp->num_own_sinks - sdp->sinks_out;

	sdp->num_own_sinks = sdp->sinks_out;
	if (sdp->sinks_out && !sdp->sink_cancel_sent)
		sdp->sink_cancel_due = true;
	return unsent;
}

int sdp_on_sink_cancel_ack(struct sdp *sdp, uint16_t slot, const struct wire_sdp_msg *msg,
			   struct sdp_input *input)
{
	if (!sdp->sink_cancel_sent)
		return -EPROTO;
	input->sinks_unused = sdp->sinks_out;
	end_sinks(sdp, sdp->sinks_out);
	return 0;
}

int sdp_on_write_compl(struct sdp *sdp, uint16_t slot, const struct wire_sdp_msg *msg,
		       struct sdp_input *input)
{
	const struct sdp_item item = {.in_sink = true,
				      .bytes = msg->count.bytes,
				      .address = sdp->own_sink[0].address};

	if (!sdp->sinks_out || !item.bytes || item.bytes > sdp->own_sink[0].bytes)
		return -EPROTO;
	end_sinks(sdp, 1);
	return sdp_add_item(sdp, &item);
}

/* --- this end's data: it is the source --- */

static void forget_adverts(struct sdp *sdp, struct sdp_input *input)
{
	input->returned = sdp->num_adverts > 0;
	sdp->num_adverts = 0;
	sdp->cancel_due = sdp->cancel_sent = false;
}

int sdp_on_read_compl(struct sdp *sdp, uint16_t slot, const struct wire_sdp_msg *msg,
		      struct sdp_input *input)
{
	if (!msg->count.bytes || !sdp->num_adverts || msg->count.bytes > sdp->advert[0])
		return -EPROTO;
	sdp->advert[0] -= msg->count.bytes;
	input->taken = msg->count.bytes;
	if (!sdp->advert[0])
		pop_advert(sdp);
	if (!sdp->num_adverts)
		sdp->cancel_due = sdp->cancel_sent = false;
	return 0;
}

int sdp_on_send_sm(struct sdp *sdp, uint16_t slot, const struct wire_sdp_msg *msg,
		   struct sdp_input *input)
{
	if (!sdp->num_adverts)
		return -EPROTO;
	forget_adverts(sdp, input);
	return 0;
}

void sdp_cancel_adverts(struct sdp *sdp)
{
	if (sdp->num_adverts && !sdp->cancel_sent)
		sdp->cancel_due = true;
}

void sdp_count_tx_data(struct sdp *sdp)
{
	if (sdp->num_sinks)
		pop_sinks(sdp->sink, &sdp->num_sinks, 1);
	else
		sdp->tx_data++;
}

int sdp_on_sink_avail(struct sdp *sdp, uint16_t slot, const struct wire_sdp_msg *msg,
		      struct sdp_input *input)
{
	if (msg->payload_bytes || !msg->sink.bytes) /* data with it: not in use anywhere */
		return -EPROTO;
	if (sdp->tx_mode != WIRE_SDP_PIPELINED)
		return -EPROTO;
	if (msg->sink.non_discards != sdp->tx_data) { /* used up */
		sdp->tx_data--;
		return 0;
	}
	if (has_too_many(sdp))
		return -EPROTO;
	forget_adverts(sdp, input);
	sdp->sink[sdp->num_sinks++] = (struct sdp_sink){
		msg->sink.bytes, msg->sink.rkey, msg->sink.address};
	return 0;
}

int sdp_on_sink_cancel(struct sdp *sdp, uint16_t slot, const struct wire_sdp_msg *msg,
		       struct sdp_input *input)
{
	sdp->sink_cancel_ack_due |= sdp->num_sinks > 0;
	sdp->num_sinks = 0;
	return 0;
}

/* --- modes --- */

/** struct change - a ModeChange that a peer may send. @send: it is about the receiver's
 *  sending half, so the peer is its sink */
struct change {
	bool send;
	uint8_t from, to;
};

/* A4.6.1: the source chooses, but the sink ends the buffered mode */
static const struct change changes[] = {
	{false, WIRE_SDP_COMBINED, WIRE_SDP_BUFFERED},
	{true, WIRE_SDP_BUFFERED, WIRE_SDP_COMBINED},
	{false, WIRE_SDP_COMBINED, WIRE_SDP_PIPELINED},
	{false, WIRE_SDP_PIPELINED, WIRE_SDP_COMBINED},
};

/* The peer sends from now on in @mode. It forgets the sinks when it leaves the pipelined
 * one. The buffered mode is ended once, and not again if the peer insists. */
static int source_changed(struct sdp *sdp, uint8_t mode, struct sdp_input *input)
{
	if (mode == WIRE_SDP_BUFFERED) {
		if (sdp_num_sources(sdp))
			return -EPROTO;
		sdp->combined_due = !sdp->combined_asked;
		sdp->combined_asked = true;
	} else if (mode == WIRE_SDP_COMBINED) {
		input->sinks_unused = sdp->num_own_sinks;
		end_sinks(sdp, sdp->sinks_out);
		sdp->num_own_sinks = 0;
		sdp->no_sinks = true;
	}
	sdp_note(sdp, SDP_TRACE_RX_MODE, sdp->rx_mode, mode);
	sdp->rx_mode = mode;
	return 0;
}

int sdp_on_mode_change(struct sdp *sdp, uint16_t slot, const struct wire_sdp_msg *msg,
		       struct sdp_input *input)
{
	const uint8_t now = msg->mode.send ? sdp->tx_mode : sdp->rx_mode;

	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		if (changes[i].send != msg->mode.send || changes[i].from != now ||
		    changes[i].to != msg->mode.mode)
			continue;
		if (!msg->mode.send)
			return source_changed(sdp, msg->mode.mode, input);
		sdp_note(sdp, SDP_TRACE_TX_MODE, sdp->tx_mode, msg->mode.mode);
		sdp->tx_mode = msg->mode.mode;
		return 0;
	}
	return -EPROTO;
}
