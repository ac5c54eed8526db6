/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How a long payload is copied into a lane: by which copy kernel (base/copy.h), and into
 * a narrow or a wide ring (abi/lane.h). Both together are a way.
 *
 * The ways differ by a factor of four and more, and the fastest one depends on the
 * processor, on where the two processes run and on the sizes that they send. A 256 KiB
 * ring keeps the payloads in the cache that both processes have; but where each core has
 * one of its own, each line has to be fetched from the other core's (AMD EPYC 9004: 9
 * GB/s), while those of a 2 MiB ring have left both for the cache that the cores share
 * (40 GB/s). Plain stores fetch the lines that they overwrite, stores past the caches
 * leave the peer to fetch them from memory, and `rep movsb` collapses on some processors
 * when source and destination share their low address bits. No program can ask how that
 * is. The lane therefore tries the ways by turns on the traffic that it carries, and
 * compares.
 *
 * The traffic is cut into spans of SPAN_BYTES. The time of a span, waits for room
 * included, is the cost of its way: that is what the user gets, and it counts what a way
 * of the sender costs the receiver. The least of several spans counts, because an
 * interrupt only adds to one. The first span after a change settles: the ring changes its
 * width within 2 MiB, and new pages are touched for the first time.
 *
 * States (struct eng_copy)
 *   young    fewer than YOUNG_BYTES passed: way 0, nothing is timed
 *   resting  to_try is 0: the best way is in use; recent_ns is its cost of late
 *   trying   to_try ways, this one included, are still to be tried: this is one
 * Events, each at the end of a span; a receiver's spans (put.c) differ, not the states
 *   young ends                   try all ways
 *   a way had its ROUNDS         keep it if it is the best, go on with the next, or rest
 *   rest_spans of rest are over  try one way; rest twice as long if it was no better
 *   the best way costs half more try all ways: the traffic, or the place of a process, is
 *                                another one
 */
#include "base/copy.h"
#include "engine/private.h"

#define SHORT_BYTES 8192u /* shorter payloads are copied by memcpy(), because latency counts */
#define YOUNG_BYTES (8u << 20)
#define SPAN_BYTES  (4u << 20) /* twice the widest ring, so that waits for room count */
#define ROUNDS	    2
#define REST_LEAST  64u /* spans: 256 MiB */
#define REST_MOST   512u
#define WINDOW	    16u /* the least cost of so many resting spans is compared */
/* Each such lane takes up a part of the shared cache that others lack. */
#define WIDE_LANES 16

static bool is_wide(const struct eng_copy *c)
{
	return c->way >= COPY_KERNELS;
}

static void use(struct eng_copy *c, unsigned way)
{
	c->settles = true;
	c->way = (uint8_t)way;
	c->spans = 0;
	c->recent_ns = UINT64_MAX;
}

/* The cost of the way in use is unknown, so the first way that is tried becomes the best one. */
static void try_all(struct eng_copy *c)
{
	c->to_try = c->num_ways;
	c->rest_spans = REST_LEAST;
	c->rested = 0;
	c->best_ns = UINT64_MAX;
	use(c, 0);
}

static void try_one(struct eng_copy *c)
{
	c->last_tried = (uint8_t)((c->last_tried + 1) % c->num_ways);
	if (c->last_tried == c->best)
		c->last_tried = (uint8_t)((c->last_tried + 1) % c->num_ways);
	c->to_try = 1;
	use(c, c->last_tried);
}

/* Among ways of nearly the same cost the one in use stays. */
static bool is_better(uint64_t ns, uint64_t than_ns)
{
	return ns < than_ns - than_ns / 16;
}

static void end_trial(struct eng_copy *c)
{
	bool better = is_better(c->recent_ns, c->best_ns), all = !c->rested;

	if (better) {
		c->best = c->way;
		c->best_ns = c->recent_ns;
	}
	if (--c->to_try) {
		use(c, c->way + 1u);
		return;
	}
	if (!all)
		c->rest_spans = better ? REST_LEAST : MIN(2 * c->rest_spans, REST_MOST);
	c->rested = 0;
	use(c, c->best);
}

static void rest(struct eng_copy *c)
{
	bool moved = false;

	c->rested++;
	if (c->spans == WINDOW) {
		moved = c->recent_ns / 3 > c->best_ns / 2;
		c->best_ns = c->recent_ns;
		c->recent_ns = UINT64_MAX;
		c->spans = 0;
	}
	if (moved && c->rested >= REST_LEAST)
		try_all(c);
	else if (c->rested >= c->rest_spans)
		try_one(c);
}

void eng_copy_init(struct eng_copy *c, unsigned num_ways)
{
	*c = (struct eng_copy){.num_ways = (uint8_t)num_ways};
	if (c->num_ways > 1)
		try_all(c);
}

void eng_copy_note(struct eng_copy *c, uint64_t ns)
{
	if (c->num_ways <= 1)
		return;
	if (c->settles) {
		c->settles = false;
		return;
	}
	c->spans++;
	c->recent_ns = MIN(c->recent_ns, ns);
	if (!c->to_try)
		rest(c);
	else if (c->spans == ROUNDS)
		end_trial(c);
}

void eng_copy_span(struct engine *e, struct eng_lane_out *lane)
{
	struct eng_copy *c = &lane->copy;
	mono_t now = e->cfg.now(e->cfg.ctx);

	if (c->num_ways) {
		eng_copy_note(c, now.ns - c->since.ns);
	} else {
		if (!lane->wide && e->wide_lanes < WIDE_LANES) {
			lane->wide = &e->wide_lanes;
			e->wide_lanes++;
		}
		eng_copy_init(c, lane->wide ? ENG_COPY_WAYS : COPY_KERNELS);
	}
	lane->tx.wants_wide = is_wide(c);
	c->since = now;
	c->ends_at = lane->tx.bulk_tail + SPAN_BYTES;
}

void eng_copy_begin(struct eng_copy *c)
{
	c->ends_at = YOUNG_BYTES;
}

void eng_copy(const struct eng_copy *c, uint8_t *to, const uint8_t *from, uint32_t len)
{
	if (len < SHORT_BYTES)
		memcpy(to, from, len);
	else
		copy_by(c->way % COPY_KERNELS, to, from, len);
}
