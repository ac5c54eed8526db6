/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Keepalive of a connection: a peer from which nothing was heard for some time is probed, by a request
 * that its adapter acknowledges and that moves no data. A peer that answers none of several probes is
 * dead. Pure: the user of this has the clock, and sends.
 */
#ifndef SOFTIB_SDP_KEEPALIVE_H
#define SOFTIB_SDP_KEEPALIVE_H

#include <stdint.h>

/** struct sdp_keepalive - @idle_ns: without a word of the peer until the first probe; 0: none is sent;
 *  @interval_ns: from each probe to the next; @count: how many are sent */
struct sdp_keepalive {
	uint64_t idle_ns, interval_ns;
	uint32_t count;
	uint32_t probes;   /* without an answer */
	uint64_t heard_ns; /* when the peer was last heard of */
	uint64_t probed_ns;
};

enum sdp_keepalive_step { SDP_KEEPALIVE_WAIT, SDP_KEEPALIVE_PROBE, SDP_KEEPALIVE_DEAD };

/** sdp_keepalive_due() - when is sdp_keepalive_step() to be called? UINT64_MAX: never */
uint64_t sdp_keepalive_due(const struct sdp_keepalive *k);

/** sdp_keepalive_heard() - a message of the peer, or its answer to a probe, has come */
void sdp_keepalive_heard(struct sdp_keepalive *k, uint64_t now_ns);

/** sdp_keepalive_step() - Return: WAIT: it is not due; PROBE: send one; DEAD: the connection is lost */
enum sdp_keepalive_step sdp_keepalive_step(struct sdp_keepalive *k, uint64_t now_ns);

#endif
