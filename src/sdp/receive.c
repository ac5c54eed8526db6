/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Messages that arrive, and the received stream: a queue of pieces in buffers, in own sinks
 * and in the peer's memory. */
#include "sdp/sdp.h"

#include <errno.h>

#include "sdp/private.h"

/* --- the queue of pieces --- */

struct sdp_item *sdp_rx_head(struct sdp *sdp)
{
	return sdp->num_items ? sdp_item_at(sdp, 0) : NULL;
}

void sdp_drop_done(struct sdp *sdp)
{
	while (sdp->num_items && !sdp_item_at(sdp, 0)->bytes && !sdp_item_at(sdp, 0)->left) {
		sdp->first = (sdp->first + 1) % SDP_ITEMS_MAX;
		sdp->num_items--;
	}
}

void sdp_cut_stream(struct sdp *sdp)
{
	for (uint32_t i = 0; i < sdp->num_items; i++) {
		if (!sdp_item_at(sdp, i)->left)
			continue;
		sdp_item_at(sdp, i)->left = sdp_item_at(sdp, i)->reading = 0;
		sdp->num_items = i + 1; /* it may have bytes in its slot */
	}
	sdp_drop_done(sdp);
}

bool sdp_rx_took(struct sdp *sdp, uint32_t bytes)
{
	struct sdp_item *head = sdp_item_at(sdp, 0);
	bool frees = (head->holds_slot || head->in_sink) && bytes == head->bytes;

	head->offset += bytes;
	head->bytes -= bytes;
	if (frees) {
		sdp->freed_by_message |= head->holds_slot;
		head->holds_slot = head->in_sink = false;
		sdp_drop_done(sdp);
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

/* --- the messages --- */

int sdp_add_item(struct sdp *sdp, const struct sdp_item *item)
{
	if (sdp->disconn_received || sdp->num_items == SDP_ITEMS_MAX)
		return -EPROTO;
	if (sdp->rx_shut) /* as a TCP socket that was closed: nobody will read it */
		sdp_abort(sdp);
	else
		*sdp_item_at(sdp, sdp->num_items++) = *item;
	return 0;
}

/* Data without data is a grant of credits. A4.6.2: in the combined mode no data passes a
 * SrcAvail that is outstanding. */
static int on_data(struct sdp *sdp, uint16_t slot, const struct wire_sdp_msg *msg,
		   struct sdp_input *input)
{
	const struct sdp_item item = {
		.slot = slot,
		.holds_slot = true,
		.oob = msg->bsdh.flags & WIRE_SDP_OOB_PRES,
		.offset = WIRE_SDP_BSDH_BYTES,
		.bytes = msg->payload_bytes,
	};
	int ret;

	if (!msg->payload_bytes)
		return 0;
	if (sdp->rx_mode != WIRE_SDP_PIPELINED && sdp_num_sources(sdp))
		return -EPROTO;
	sdp->oob_pending = msg->bsdh.flags & WIRE_SDP_OOB_PEND;
	ret = sdp_add_item(sdp, &item);
	if (ret || sdp->rx_shut)
		return ret;
	sdp_count_rx_data(sdp, input);
	input->holds_slot = true;
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
static sdp_message_fn *const handlers[256] = {
	[WIRE_SDP_DATA] = on_data,
	[WIRE_SDP_SRC_AVAIL] = sdp_on_src_avail,
	[WIRE_SDP_SINK_AVAIL] = sdp_on_sink_avail,
	[WIRE_SDP_DISCONN] = on_disconn,
	[WIRE_SDP_ABORT_CONN] = on_abort,
	[WIRE_SDP_SEND_SM] = sdp_on_send_sm,
	[WIRE_SDP_RDMA_WR_COMPL] = sdp_on_write_compl,
	[WIRE_SDP_RDMA_RD_COMPL] = sdp_on_read_compl,
	[WIRE_SDP_MODE_CHANGE] = sdp_on_mode_change,
	[WIRE_SDP_SRC_AVAIL_CANCEL] = sdp_on_src_cancel,
	[WIRE_SDP_SINK_AVAIL_CANCEL] = sdp_on_sink_cancel,
	[WIRE_SDP_SINK_CANCEL_ACK] = sdp_on_sink_cancel_ack,
	[WIRE_SDP_CH_RCV_BUF] = sdp_on_ch_rcv_buf,
	[WIRE_SDP_CH_RCV_BUF_ACK] = sdp_on_ch_rcv_buf_ack,
	[WIRE_SDP_SUSP_COMM] = sdp_on_susp_comm,
	[WIRE_SDP_SUSP_COMM_ACK] = sdp_on_susp_comm_ack,
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
	sdp_note_slot_used(sdp);
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
	    !sdp_is_too_late(sdp, &msg) && handlers[msg.bsdh.mid])
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
