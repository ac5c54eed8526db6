/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A mixture of requests on one RC QP that checks itself: every completion
 * once and in order, every byte, and what each request may count on of those
 * before it (IBA v1 9.5, table 79). Both sides run it on their ends at once.
 *
 *   rule                            how it is seen
 *   WRITE, then SEND                a message names the last WRITE before it: the
 *                                   receiver finds that or a later one
 *   WRITE with immediate            its data is there when its receive completes
 *   WRITE, then READ                the READ brings what was written last
 *   SEND, then READ                 a READ of the peer's receive buffer brings the
 *                                   message
 *   atomic, then READ               the READ brings the sum
 *   atomic, then atomic             each returns the sum before it
 *   READ, then WRITE with a fence   what was read is written
 *   READ, then a WRITE, SEND or atomic with a fence to the same place: the
 *                                   READ brings what was there before
 *   messages                        arrive once, in order, whole
 */
#ifndef SOFTIB_TESTS_STRESS_TRAFFIC_H
#define SOFTIB_TESTS_STRESS_TRAFFIC_H

#include "side.h"

#define TRAFFIC_WINDOW 16 /* requests under way, and receives posted */
#define TRAFFIC_INLINE 64

/** struct traffic_seen - what a side vouches for; may lie in shared memory,
 *  where it outlives its writer */
struct traffic_seen {
	_Atomic uint64_t messages_posted;    /* before the request is posted */
	_Atomic uint64_t messages_completed; /* after its completion is polled */
	_Atomic uint64_t messages_received;  /* after the receive's is polled */
	_Atomic uint64_t adds_posted, adds_completed;
};

/* what a slot of the peer's memory holds once all that is posted is done */
struct traffic_slot {
	uint64_t value;
	uint32_t bytes;	  /* 0: never written */
	uint64_t read_by; /* the last READ of it, counted from 1 */
};

struct traffic {
	struct side_qp *q;
	struct rng rng;
	size_t base;		/* of its memory, at the same offset on both sides */
	uint32_t slot_bytes;	/* the longest request */
	struct traffic_seen *seen;
	uint64_t posted, completed; /* requests of the send queue */
	uint64_t receives, received; /* posted, completed well */
	uint64_t messages, adds;
	uint64_t sum_read_by;
	uint64_t sent_read_by[TRAFFIC_WINDOW]; /* the last READ of each slot of messages */
	bool fence; /* the next request has one */
	uint64_t last_write; /* the last WRITE's value; 0: none */
	uint64_t last_send;  /* the last SEND's number; 0: none */
	uint32_t last_send_bytes;
	struct traffic_slot written[TRAFFIC_WINDOW], copied[TRAFFIC_WINDOW];
	struct traffic_pending {
		uint8_t kind; /* enum, traffic.c */
		bool signaled;
		uint32_t bytes; /* to be checked */
		uint64_t expect;
	} pending[TRAFFIC_WINDOW];
	bool broken; /* a completion with an error: only such from now on */
	unsigned flushed_receives;
};

/** traffic_bytes() - how much memory at @base it wants */
size_t traffic_bytes(uint32_t slot_bytes);
/** traffic_init() - posts the receives; before the peer posts anything. The
 *  QP has depth 2 * TRAFFIC_WINDOW, inline TRAFFIC_INLINE, is unsignaled */
void traffic_init(struct traffic *t, struct side_qp *q, size_t base, uint32_t slot_bytes,
		  uint64_t seed, struct traffic_seen *seen);
/** traffic_post() - one request or two, when the window has room.
 *  Return: false when it had none */
bool traffic_post(struct traffic *t);
/** traffic_take() - judge one completion; a wrong one ends the program */
void traffic_take(struct traffic *t, const struct ibv_wc *wc);
/** traffic_idle() - nothing is under way in the send queue */
static inline bool traffic_idle(const struct traffic *t)
{
	return t->posted == t->completed;
}
/** traffic_flush() - one signaled request, so that all complete */
void traffic_flush(struct traffic *t);
/** traffic_drained() - after an error: all has completed */
bool traffic_drained(const struct traffic *t);

#endif
