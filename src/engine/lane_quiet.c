/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Lanes by which nothing comes. A poll looks at one cache line of each lane, so that a
 * thousand lanes whose senders are silent would make each poll as expensive as a thousand.
 * Beyond a few lanes, one that had no record for some thousand polls becomes quiet: polls
 * pass over it, and only a slice of the quiet lanes is looked at with each look at the clock.
 * With its first record a lane is polled again.
 *
 * The price is that record's latency: with n quiet lanes, it waits for up to n polls. Who is
 * about to sleep looks at all lanes (eng_tick()).
 */
#include "engine/private.h"

#define POLLED_ALWAYS 8  /* lanes: so few are polled, whatever they do */
#define SILENT_LOOKS 64  /* at the clock, that a lane is silent before it is quiet */
#define SLICE 64	 /* quiet lanes looked at with each look at the clock */

void eng_lane_listen(struct engine *e, struct eng_lane_in *lane)
{
	lane->silent_looks = 0;
	lane->is_quiet = false;
	list_add_tail(&lane->node, &e->lanes);
	e->num_lanes++;
}

void eng_lane_leave(struct engine *e, struct eng_lane_in *lane)
{
	list_del(&lane->node);
	if (lane->is_quiet)
		e->num_quiet--;
	else
		e->num_lanes--;
}

static void note_silence(struct engine *e)
{
	struct eng_lane_in *lane, *next;

	list_for_each_entry_safe(lane, next, &e->lanes, node) {
		if (lane->head_then != lane->rx.head || abi_lane_stirs(&lane->rx)) {
			lane->head_then = lane->rx.head;
			lane->silent_looks = 0;
		} else if (++lane->silent_looks >= SILENT_LOOKS) {
			eng_lane_leave(e, lane);
			lane->is_quiet = true;
			list_add_tail(&lane->node, &e->quiet_lanes);
			e->num_quiet++;
			if (e->num_lanes <= POLLED_ALWAYS)
				break;
		}
	}
}

/* Return: has a lane among the first @most that are quiet a record? */
static bool look_at_quiet(struct engine *e, unsigned most)
{
	bool found = false;

	for (unsigned n = MIN(most, e->num_quiet); n > 0; n--) {
		struct eng_lane_in *lane =
			list_first_entry(&e->quiet_lanes, struct eng_lane_in, node);

		if (abi_lane_stirs(&lane->rx)) {
			eng_lane_leave(e, lane);
			eng_lane_listen(e, lane);
			found = true;
		} else {
			list_del(&lane->node);
			list_add_tail(&lane->node, &e->quiet_lanes);
		}
	}
	return found;
}

bool eng_lanes_mind(struct engine *e, bool all)
{
	if (likely(e->num_lanes <= POLLED_ALWAYS && !e->num_quiet))
		return false;
	if (e->num_lanes > POLLED_ALWAYS)
		note_silence(e);
	return look_at_quiet(e, all ? UINT32_MAX : SLICE);
}
