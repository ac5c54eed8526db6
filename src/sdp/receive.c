/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Messages that arrive, and the received stream: a queue of pieces in buffers and in the
 * peer's memory. */
#include "sdp/sdp.h"

#include <errno.h>

#include "sdp/private.h"

/* --- the queue of pieces --- */

static struct sdp_item *item_at(struct sdp *sdp, uint32_t i)
{
	return &sdp->item[(sdp->first + i) % SDP_ITEMS_MAX];
}

struct sdp_item *sdp_rx_head(struct sdp *sdp)
{
	return sdp->num_items ? item_at(sdp, 0) : NULL;
}

/* SrcAvails whose memory was not read to the end */
static unsigned int num_sources(struct sdp *sdp)
{
	unsigned int n = 0;

	for (uint32_t i = 0; i < sdp->num_items; i++)
		n += item_at(sdp, i)->left > 0;
	return n;
}

static void drop_done(struct sdp *sdp)
{
	while (sdp->num_items && !item_at(sdp, 0)->bytes && !item_at(sdp, 0)->left) {
		sdp->first = (sdp->first + 1) % SDP_ITEMS_MAX;
		sdp->num_items--;
	}
}

void sdp_cut_stream(struct sdp *sdp)
{
	for (uint32_t i = 0; i < sdp->num_items; i++) {
		if (!item_at(sdp, i)->left)
			continue;
		item_at(sdp, i)->left = item_at(sdp, i)->reading = 0;
		sdp->num_items = i + 1; /* it may have bytes in its slot */
	}
	drop_done(sdp);
}

bool sdp_rx_took(struct sdp *sdp, uint32_t bytes)
{
	struct sdp_item *head = item_at(sdp, 0);
	bool frees = head->holds_slot && bytes == head->bytes;

	head->offset += bytes;
	head->bytes -= bytes;
	if (frees) {
		head->holds_slot = false;
		sdp->freed_by_message = true;
		drop_done(sdp);
	}
	return frees;
}

void sdp_posted(struct sdp *sdp)
{
	sdp->posted++;
}

bool sdp_rx_ended(const struct sdp *sdp)
{
	return !sdp->num_items && (sdp->disconn_received || sdp->state == SDP_ENDED);
}

/* --- the peer's memory (A4.6.4: SrcAvail, RdmaRdCompl, SendSm, SrcAvailCancel) --- */

/* The peer sends as data what was not read of the sources that it has cancelled. One
 * SendSm is for all of them, and comes behind the report of what was read. */
static void refuse_cancelled(struct sdp *sdp)
{
	for (uint32_t i = 0; i < sdp->num_items; i++) {
		struct sdp_item *item = item_at(sdp, i);

		if (!item->left || !item->cancelled)
			continue;
		item->left = 0;
		sdp->send_sm_due = true;
	}
	drop_done(sdp);
}

void sdp_rx_reading(struct sdp *sdp, uint32_t bytes)
{
	item_at(sdp, 0)->reading = bytes;
}

void sdp_rx_read(struct sdp *sdp)
{
	struct sdp_item *head = sdp_rx_head(sdp);

	if (!head || !head->reading) /* the connection has ended meanwhile */
		return;
	sdp->read_compl_due += head->reading;
	head->left -= head->reading;
	head->address += head->reading;
	head->reading = 0;
	refuse_cancelled(sdp);
}

/* A cancellation finds no source whose last byte was read before. */
static int on_cancel(struct sdp *sdp, uint16_t slot, const struct wire_sdp_msg *msg,
		     struct sdp_input *input)
{
	bool reading = false;

	for (uint32_t i = 0; i < sdp->num_items; i++) {
		item_at(sdp, i)->cancelled = true;
		reading |= item_at(sdp, i)->reading > 0;
	}
	if (!reading)
		refuse_cancelled(sdp);
	return 0;
}

/* --- the messages --- */

/* Data and SrcAvail: the payload becomes a piece of the stream. */
static int add_item(struct sdp *sdp, uint16_t slot, const struct wire_sdp_msg *msg,
		    const struct wire_sdp_src_avail *src, struct sdp_input *input)
{
	const uint32_t inlined = msg->payload_bytes, all = src ? src->bytes : 0;

	if (sdp->disconn_received || sdp->num_items == SDP_ITEMS_MAX)
		return -EPROTO;
	sdp->oob_pending = msg->bsdh.flags & WIRE_SDP_OOB_PEND;
	if (sdp->rx_shut) { /* as a TCP socket that was closed: nobody will read it */
		sdp_abort(sdp);
		return 0;
	}
	/* A4.6.2: in the combined mode nothing passes a SrcAvail that is outstanding */
	if (sdp->rx_mode != WIRE_SDP_PIPELINED && num_sources(sdp))
		return -EPROTO;
	*item_at(sdp, sdp->num_items++) = (struct sdp_item){
		.slot = slot,
		.holds_slot = inlined,
		.oob = msg->bsdh.flags & WIRE_SDP_OOB_PRES,
		.offset = (uint32_t)wire_sdp_header_bytes(msg->bsdh.mid),
		.bytes = inlined,
		.left = src ? all - inlined : 0,
		.rkey = src ? src->rkey : 0,
		.address = src ? src->address + inlined : 0,
	};
	input->holds_slot = inlined;
	return 0;
}

static int on_data(struct sdp *sdp, uint16_t slot, const struct wire_sdp_msg *msg,
		   struct sdp_input *input)
{
	if (!msg->payload_bytes) /* a grant of credits */
		return 0;
	return add_item(sdp, slot, msg, NULL, input);
}

static int on_src_avail(struct sdp *sdp, uint16_t slot, const struct wire_sdp_msg *msg,
			struct sdp_input *input)
{
	if (sdp->rx_mode == WIRE_SDP_BUFFERED || msg->payload_bytes >= msg->src.bytes ||
	    num_sources(sdp) >= sdp->config.max_adverts)
		return -EPROTO;
	return add_item(sdp, slot, msg, &msg->src, input);
}

static int on_read_compl(struct sdp *sdp, uint16_t slot, const struct wire_sdp_msg *msg,
			 struct sdp_input *input)
{
	if (!msg->count.bytes || msg->count.bytes > sdp->advert.left)
		return -EPROTO;
	sdp->advert.left -= msg->count.bytes;
	input->taken = msg->count.bytes;
	return 0;
}

static int on_send_sm(struct sdp *sdp, uint16_t slot, const struct wire_sdp_msg *msg,
		      struct sdp_input *input)
{
	if (!sdp->advert.left)
		return -EPROTO;
	sdp->advert = (struct sdp_advert){0};
	return 0;
}

/* A4.6.1: from one mode to its neighbour only */
static int on_mode_change(struct sdp *sdp, uint16_t slot, const struct wire_sdp_msg *msg,
			  struct sdp_input *input)
{
	uint8_t *mode = msg->mode.send ? &sdp->tx_mode : &sdp->rx_mode;

	if (msg->mode.mode > WIRE_SDP_PIPELINED ||
	    (msg->mode.mode != *mode + 1 && msg->mode.mode + 1 != *mode))
		return -EPROTO;
	*mode = msg->mode.mode;
	return 0;
}

/* A4.7: the answer says how large the buffers are; this end keeps them as they are. */
static int on_ch_rcv_buf(struct sdp *sdp, uint16_t slot, const struct wire_sdp_msg *msg,
			 struct sdp_input *input)
{
	sdp->rcv_buf_ack_due = true;
	return 0;
}

/* This end sends data as soon as it has some, and thereby discards every SinkAvail that
 * it gets (A4.6.5). A cancelled one is acknowledged. */
static int on_sink_avail(struct sdp *sdp, uint16_t slot, const struct wire_sdp_msg *msg,
			 struct sdp_input *input)
{
	if (msg->payload_bytes) /* data along with it: not in use anywhere */
		return -EPROTO;
	return sdp->tx_mode == WIRE_SDP_PIPELINED ? 0 : -EPROTO;
}

static int on_sink_cancel(struct sdp *sdp, uint16_t slot, const struct wire_sdp_msg *msg,
			  struct sdp_input *input)
{
	sdp->sink_cancel_ack_due = true;
	return 0;
}

static int on_disconn(struct sdp *sdp, uint16_t slot, const struct wire_sdp_msg *msg,
		      struct sdp_input *input)
{
	if (sdp->disconn_received)
		return -EPROTO;
	sdp->disconn_received = true;
	return 0;
}

static int on_abort(struct sdp *sdp, uint16_t slot, const struct wire_sdp_msg *msg,
		    struct sdp_input *input)
{
	sdp_end_as(sdp, SDP_RESET);
	return 0;
}

/* A message without a handler is one that this end never asked for. */
static int (*const handlers[256])(struct sdp *sdp, uint16_t slot,
				  const struct wire_sdp_msg *msg,
				  struct sdp_input *input) = {
	[WIRE_SDP_DATA] = on_data,
	[WIRE_SDP_SRC_AVAIL] = on_src_avail,
	[WIRE_SDP_SINK_AVAIL] = on_sink_avail,
	[WIRE_SDP_DISCONN] = on_disconn,
	[WIRE_SDP_ABORT_CONN] = on_abort,
	[WIRE_SDP_SEND_SM] = on_send_sm,
	[WIRE_SDP_RDMA_RD_COMPL] = on_read_compl,
	[WIRE_SDP_MODE_CHANGE] = on_mode_change,
	[WIRE_SDP_SRC_AVAIL_CANCEL] = on_cancel,
	[WIRE_SDP_SINK_AVAIL_CANCEL] = on_sink_cancel,
	[WIRE_SDP_CH_RCV_BUF] = on_ch_rcv_buf,
};

/* A4.5: numbers have no gap; nobody acknowledges what was not sent, or less than before.
 * The limit may not move backwards. Return: are they right? */
static bool take_numbers(struct sdp *sdp, const struct wire_sdp_bsdh *bsdh)
{
	uint32_t limit = bsdh->mseq_ack + bsdh->bufs;

	if (bsdh->mseq != sdp->rx_seq + 1 || !sdp->posted ||
	    sdp_seq_diff(bsdh->mseq_ack, sdp->tx_seq) > 0 ||
	    sdp_seq_diff(limit, sdp->tx_limit) < 0)
		return false;
	sdp->rx_seq++;
	sdp->posted--;
	sdp->tx_limit = limit;
	return true;
}

static bool is_grant(const struct wire_sdp_msg *msg)
{
	return msg->bsdh.mid == WIRE_SDP_DATA && !msg->payload_bytes;
}

int sdp_received(struct sdp *sdp, uint16_t slot, const uint8_t *buf, size_t len,
		 struct sdp_input *input)
{
	struct wire_sdp_msg msg;
	int ret = -EPROTO;

	*input = (struct sdp_input){0};
	if (sdp->state != SDP_OPEN)
		return 0; /* what was under way when it ended */
	if (!wire_sdp_read(buf, len, &msg) && take_numbers(sdp, &msg.bsdh) &&
	    handlers[msg.bsdh.mid])
		ret = handlers[msg.bsdh.mid](sdp, slot, &msg, input);
	if (ret) {
		*input = (struct sdp_input){0};
		sdp_end_as(sdp, SDP_BROKEN);
		return ret;
	}
	if (!input->holds_slot && !is_grant(&msg))
		sdp->freed_by_message = true;
	sdp_check_closed(sdp);
	return 0;
}
