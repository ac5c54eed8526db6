/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A long payload's copy into a lane: by plain stores or past the caches?
 *
 * Plain stores fetch each line from where it was read last, to overwrite all of
 * it, or at least ask for it. Between threads of one core that costs little, and so
 * it does between cores that share a cache, if the lines come from there (a wide
 * ring) or are not fetched (a long copy is `rep movsb`): 20 to 80 GB/s, against 8 to
 * 20 past the caches. Where they do not share one it may cost most: 1 to 25 GB/s,
 * against 12 to 25. Nobody tells how the two processes stand, and it changes as they
 * are moved: so that plain copies are timed, and now and then the beginning of a
 * copy is one. That one finds lines that were past the caches, and is slow
 * itself: in a wide ring 2.5 to 4 bytes a tick near, and 0.5 to 1.2 far.
 *
 * States (eng_lane_out.copy)
 *   plain    each copy is timed
 *   streams  one of PROBE_EVERY begins with PROBE_BYTES of plain, timed
 * Events: FLIPS times running the time speaks for the other state. That of a copy into
 * new pages says nothing.
 */
#include "base/copy.h"
#include "engine/private.h"

#define STREAM_BYTES 8192u /* shorter copies are plain, and not timed: latency counts */
#define PROBE_BYTES 16384u
#define DRAINED_BYTES 32768u /* of fewer, the stores that still wait for their lines are many */
#define PROBE_EVERY 64
#define FLIPS 2
/* bytes a tick of the time stamp counter, and less: 4 to 6 GB/s */
#define SLOW 2

void eng_copy_note(struct eng_copy *c, uint32_t bytes, uint64_t ticks)
{
	bool slow = bytes < ticks * SLOW;

	if (slow == c->streams) {
		c->against = 0;
	} else if (++c->against == FLIPS) {
		c->against = 0;
		c->streams = slow;
	}
}

#ifdef __SSE2__
#include <x86intrin.h>

static void copy_timed(struct eng_copy *c, uint8_t *to, const uint8_t *from, uint32_t len)
{
	uint64_t start = __rdtsc();

	memcpy(to, from, len);
	if (len < DRAINED_BYTES)
		_mm_mfence(); /* stores that wait for their lines count */
	else
		_mm_lfence(); /* those few are not waited for: the next copy begins meanwhile */
	if (to + len > c->untouched)
		c->untouched = to + len;
	else
		eng_copy_note(c, len, __rdtsc() - start);
}

void eng_copy(struct eng_copy *c, uint8_t *to, const uint8_t *from, uint32_t len)
{
	if (len < STREAM_BYTES || (uintptr_t)to % 16) {
		memcpy(to, from, len);
	} else if (!c->streams) {
		copy_timed(c, to, from, len);
	} else {
		uint32_t probe = ++c->streamed % PROBE_EVERY ? 0 : MIN(len, PROBE_BYTES);

		if (probe)
			copy_timed(c, to, from, probe);
		copy_stream(to + probe, from + probe, len - probe);
	}
}
#else
void eng_copy(struct eng_copy *c, uint8_t *to, const uint8_t *from, uint32_t len)
{
	memcpy(to, from, len);
}
#endif
