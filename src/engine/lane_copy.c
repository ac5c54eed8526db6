/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How a long payload is copied into a lane. A copy method is a copy kernel (base/copy.h) together with
 * the width of the ring, narrow or wide (abi/lane.h).
 *
 * The methods differ by a factor of four and more, and the fastest one depends on the
 * processor, on where the two processes run and on the sizes that they send. A 256 KiB
 * ring keeps the payloads in the cache that both processes have; but where each core has
 * one of its own, each line has to be fetched from the other core's (AMD EPYC 9004: 9
 * GB/s), while those of a 2 MiB ring have left both for the cache that the cores share
 * (40 GB/s). Plain stores fetch the lines that they overwrite, stores past the caches
 * leave the peer to fetch them from memory, and `rep movsb` collapses on some processors
 * when source and destination share their low address bits. A program cannot find out which
 * of this applies. The lane therefore tries the methods in turn on the traffic that it carries,
 * and compares their costs.
 *
 * The traffic is divided into spans of SPAN_BYTES. The cost of a method is the duration of a span,
 * including waits for room, because that is what the user experiences, and because it includes
 * what a method of the sender costs the receiver. The shortest of several spans counts, since an
 * interrupt can only lengthen a span. The first span after a change is not timed: the ring
 * changes its width within 2 MiB, and new pages are touched for the first time.
 *
 * States (struct eng_copy)
 *   young    fewer than YOUNG_BYTES have passed: method 0 is in use, and nothing is timed
 *   resting  to_try is 0: the best method is in use; recent_ns is its cost of late
 *   trying   to_try methods, including the one in use, are still to be tried
 * Events, each at the end of a span (a receiver has other spans, put.c, but the same states)
 *   young ends                       try all methods
 *   a method has had ROUNDS spans    keep it if it is the best; try the next one, or rest
 *   rest_spans have passed           try one method; rest twice as long if it is no better
 *   the best method costs half more  try all methods: the traffic has changed, or a process
 *                                    has moved to another core
 */
#include "base/copy.h"
#include "engine/private.h"

/* Methods of nearly the same cost shall not alternate. */
#define MARGIN	    16u
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
	return c->method >= COPY_KERNELS;
}

static void use(struct eng_copy *c, unsigned method)
{
	c->settles = true;
	c->method = (uint8_t)method;
	c->spans = 0;
	c->recent_ns = UINT64_MAX;
}

/* The cost of the method in use is unknown, so the first method that is tried becomes the best one. */
static void try_all(struct eng_copy *c)
{
	c->to_try = c->num_methods;
	c->rest_spans = REST_LEAST;
	c->rested = 0;
	c->best_ns = UINT64_MAX;
	use(c, 0);
}

static void try_one(struct eng_copy *c)
{
	c->last_tried = (uint8_t)((c->last_tried + 1) % c->num_methods);
	if (c->last_tried == c->best)
		c->last_tried = (uint8_t)((c->last_tried + 1) % c->num_methods);
	c->to_try = 1;
	use(c, c->last_tried);
}

static bool is_better(const struct eng_copy *c, uint64_t ns, uint64_t than_ns)
{
	return ns < than_ns - than_ns / c->margin;
}

static void end_trial(struct eng_copy *c)
{
	bool better = is_better(c, c->recent_ns, c->best_ns), all = !c->rested;

	if (better) {
		c->best = c->method;
		c->best_ns = c->recent_ns;
	}
	if (--c->to_try) {
		use(c, c->method + 1u);
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

void eng_copy_init(struct eng_copy *c, unsigned num_methods, unsigned margin)
{
	*c = (struct eng_copy){.num_methods = (uint8_t)num_methods, .margin = (uint8_t)margin};
	if (c->num_methods > 1)
		try_all(c);
}

void eng_copy_note(struct eng_copy *c, uint64_t ns)
{
	if (c->num_methods <= 1)
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

	if (c->num_methods) {
		eng_copy_note(c, now.ns - c->since.ns);
	} else {
		if (!lane->wide && e->wide_lanes < WIDE_LANES) {
			lane->wide = &e->wide_lanes;
			e->wide_lanes++;
		}
		eng_copy_init(c, lane->wide ? ENG_COPY_METHODS : COPY_KERNELS, MARGIN);
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
		copy_by(c->method % COPY_KERNELS, to, from, len);
}
