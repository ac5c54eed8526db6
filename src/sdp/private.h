/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The machine's inside: sdp.c (beginning and ending), receive.c, send.c. */
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

#endif
