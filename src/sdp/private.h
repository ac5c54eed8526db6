/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The machine's inside: sdp.c (beginning and ending), receive.c, resize.c, memory.c,
 * suspend.c, send.c. */
#ifndef SOFTIB_SDP_PRIVATE_H
#define SOFTIB_SDP_PRIVATE_H

#include "sdp/sdp.h"

/* message numbers wrap: a - b as a signed distance */
static inline int32_t sdp_seq_diff(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b);
}

/** sdp_end_as() - the connection has ended; the first reason stays */
void sdp_end_as(struct sdp *sdp, enum sdp_end end);

/** sdp_cut_stream() - the peer's memory cannot be read any more: the stream ends there */
void sdp_cut_stream(struct sdp *sdp);

/** sdp_check_closed() - has everything passed that an orderly end needs? */
void sdp_check_closed(struct sdp *sdp);

/** sdp_credits() - messages that may be sent now */
static inline uint32_t sdp_credits(const struct sdp *sdp)
{
	return (uint32_t)sdp_seq_diff(sdp->tx_limit, sdp->tx_seq);
}

/* --- receive.c: the queue of pieces --- */

/** sdp_item_at() - the piece with number @i, from the oldest */
static inline struct sdp_item *sdp_item_at(struct sdp *sdp, uint32_t i)
{
	return &sdp->item[(sdp->first + i) % SDP_ITEMS_MAX];
}

/** sdp_add_item() - @item is the end of the stream. Return: 0; -EPROTO: it has ended before */
int sdp_add_item(struct sdp *sdp, const struct sdp_item *item);

/** sdp_drop_done() - forget the oldest pieces of which the program has got everything */
void sdp_drop_done(struct sdp *sdp);

/* --- resize.c --- */

/** sdp_note_slot_used() - a slot has left the receive queue */
void sdp_note_slot_used(struct sdp *sdp);

/** sdp_note_data_sent() - a message with @payload bytes of data, of which it had room for @room */
void sdp_note_data_sent(struct sdp *sdp, uint32_t payload, uint32_t room);

/** sdp_note_grant_sent() - the peer's request has its answer */
void sdp_note_grant_sent(struct sdp *sdp);

/* --- suspend.c --- */

/** sdp_is_too_late() - is @msg one of the stream's, behind the SuspComm of its sender? */
bool sdp_is_too_late(const struct sdp *sdp, const struct wire_sdp_msg *msg);

/** sdp_next_suspend() - SuspComm or its Ack, when nothing is under way any more that it has to wait for */
bool sdp_next_suspend(struct sdp *sdp, struct wire_sdp_msg *msg);

/** sdp_set_suspended() - the stream goes on by another connection, or not at all */
void sdp_set_suspended(struct sdp *sdp);

/* --- memory.c --- */

/** sdp_refuse_sources() - what was not read of the peer's memory is to be sent as data */
void sdp_refuse_sources(struct sdp *sdp);

/** sdp_count_data() - a message with data has arrived, or was sent: see memory.c */
void sdp_count_rx_data(struct sdp *sdp, struct sdp_input *input);
void sdp_count_tx_data(struct sdp *sdp);

/** sdp_num_sources() - SrcAvails of the peer whose memory was not read to the end */
unsigned int sdp_num_sources(struct sdp *sdp);

/** sdp_may_send_sink() - may a SinkAvail be sent now, and is there a sink? */
bool sdp_may_send_sink(const struct sdp *sdp);

/** sdp_message_fn - what a message does. Return: 0; -EPROTO */
typedef int sdp_message_fn(struct sdp *sdp, uint16_t slot, const struct wire_sdp_msg *msg,
			   struct sdp_input *input);

sdp_message_fn sdp_on_src_avail, sdp_on_src_cancel, sdp_on_read_compl, sdp_on_send_sm,
	sdp_on_sink_avail, sdp_on_sink_cancel, sdp_on_sink_cancel_ack, sdp_on_write_compl,
	sdp_on_mode_change, sdp_on_ch_rcv_buf, sdp_on_ch_rcv_buf_ack, sdp_on_susp_comm,
	sdp_on_susp_comm_ack;

/** sdp_note() - report a change that is about to happen to whoever traces the owner */
static inline void sdp_note(const struct sdp *sdp, enum sdp_trace what, int from, int to)
{
	const struct sdp_config *config = &sdp->config;

	if (__builtin_expect(config->traced && *config->traced, 0) && from != to)
		config->trace(sdp, what, from, to);
}

#endif
