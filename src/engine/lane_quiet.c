/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Idle lanes. A poll reads one cache line of each lane, so a thousand lanes with silent senders
 * would make every poll a thousand times as expensive. So if there are more than a few lanes, a
 * lane without a record for some thousand polls becomes quiet: polls skip it, and each reading
 * of the clock checks a slice of the quiet lanes. The first record makes a lane active again.
 *
 * The price is the latency of that record: with n quiet lanes it waits for up to n polls. A
 * thread that is about to sleep checks all lanes (eng_tick()).
 */
#include "engine/private.h"

#define POLLED_ALWAYS 8  /* lanes; up to this number none becomes quiet */
#define SILENT_LOOKS 64  /* readings of the clock without a record before a lane becomes quiet */
#define SLICE 64	 /* quiet lanes that are checked at each reading of the clock */

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
