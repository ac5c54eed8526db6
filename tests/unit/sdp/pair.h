/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Two ends of an SDP connection and what is between them, without time: any of the things
 * that could happen next happens, chosen by a seed. Messages of a direction keep their
 * order, as on a reliable connection; all else is free. Programs write, stall, read
 * little by little, close and die.
 */
#ifndef SOFTIB_TEST_SDP_PAIR_H
#define SOFTIB_TEST_SDP_PAIR_H

#include "sdp/sdp.h"

#define PAIR_MESSAGES_MAX 512
#define PAIR_RCV_MAX	  2048
#define PAIR_REGION_BYTES 8192
#define PAIR_MEMORY	  1000000 /* address of the stream's byte 0 in every region */

/** struct pair_plan - of one end's program. @bytes: it writes so many, then closes its
 *  sending half; @abort_at: abort after so many were written; @close_at: close both
 * halves after so many; @oob_at: the byte with this number is out-of-band. UINT64_MAX:
 *  never. @sink_bytes: it lends so much room at once; 0: none. @cancels: it wants that
 *  back sometimes. @moves: it moves the stream to other connections */
struct pair_plan {
	struct sdp_config config;
	uint64_t bytes, abort_at, close_at, oob_at;
	uint32_t sink_bytes;
	bool cancels, moves;
};

/** struct pair_region - advertised: @left bytes of the stream from byte @at. A sink: the
 *  peer has written @left bytes, its stream from byte @at; 0: it has not yet */
struct pair_region {
	uint64_t key, at;
	uint32_t left;
};

struct pair_message {
	uint32_t len;
	uint8_t bytes[PAIR_RCV_MAX];
};

/** struct pair_end - one end: the machine and its shell */
struct pair_end {
	struct sdp sdp;
	struct pair_plan plan;
	struct pair_end *peer;
	/* messages from the peer that have not arrived */
	struct pair_message *queue;
	unsigned int head, num;
	unsigned int unacked; /* own messages whose completion has not come */
	uint8_t (*slots)[PAIR_RCV_MAX];
	/* the receive queue, oldest first; and the size of each slot */
	uint16_t posted[SDP_SLOTS_MAX];
	uint32_t slot_bytes[SDP_SLOTS_MAX];
	unsigned int num_posted;
	unsigned int unposted[SDP_SLOTS_MAX], num_unposted;
	unsigned int grown, shrunk; /* how often slots were posted with another size */
	uint64_t written, sent, got; /* bytes of the stream */
	struct pair_region region[SDP_ADVERTS_MAX]; /* advertised, oldest first */
	unsigned int num_regions;
	struct pair_region sink[2 * SDP_ADVERTS_MAX]; /* those written to are first */
	unsigned int num_sinks, num_written;
	unsigned int voids, returns, writes, unused, cancels, asks; /* how often it happened */
	bool reading, shut, ended, oob_got;
	uint64_t read_key;
	uint32_t read_bytes;
	uint32_t bounce; /* bytes that were read and not delivered */
};

/** struct pair - @dead: the transport fails at step number so many */
struct pair {
	struct pair_end end[2];
	uint64_t random, steps, dead_at;
	bool stalled; /* the programs do not read */
	uint64_t next_key;
	unsigned int moves, crossed; /* how often: to another connection; both ends had asked */
};

/** pair_open() - both ends after Hello and HelloAck; @dead_at: UINT64_MAX: never */
void pair_open(struct pair *p, const struct pair_plan plan[2], uint64_t seed,
	       uint64_t dead_at);
/** pair_run() - until nothing can happen any more. Fails the test if a rule is broken */
void pair_run(struct pair *p);
void pair_close(struct pair *p);
uint64_t pair_random(struct pair *p, uint64_t below);

#endif
