/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Waking others under the engine's lock hands the core to them with the lock
 * held, and the first thing they do is to want it. So the bells of lanes and
 * of softibd, and the descriptors of completion channels, are only noted under
 * the lock, by the thread that has it, and rung by that thread when the lock
 * is given back (eng_config.unlocked). What is noted stays until then: who
 * would free it waits (later_wait).
 */
#include "soft.h"

#define NOTES 8 /* of a kind; what is more is done at once */

static __thread struct {
	struct lane_out *lane[NOTES];
	struct soft_channel *channel[NOTES];
	unsigned num_lanes, num_channels;
	bool softibd;
} notes;

static void begin(struct soft_context *ctx)
{
	if (!notes.num_lanes && !notes.num_channels && !notes.softibd)
		atomic_fetch_add(&ctx->later, 1);
}

static bool ring_lane(struct soft_context *ctx, struct lane_out *lane)
{
	if (notes.num_lanes == NOTES)
		return false;
	begin(ctx);
	notes.lane[notes.num_lanes++] = lane;
	return true;
}

static void ring_softibd(struct soft_context *ctx)
{
	begin(ctx);
	notes.softibd = true;
}

const struct link_later link_later = {
	.lane = ring_lane, .softibd = ring_softibd, .bad_qkey = lanes_bad_qkey};

/** later_tell() - @channel has an event. False: there is no room to note it */
bool later_tell(struct soft_context *ctx, struct soft_channel *channel)
{
	for (unsigned i = 0; i < notes.num_channels; i++)
		if (notes.channel[i] == channel)
			return true;
	if (notes.num_channels == NOTES)
		return false;
	begin(ctx);
	notes.channel[notes.num_channels++] = channel;
	return true;
}

/** later_run() - eng_config.unlocked. Peers first: they have farther to go */
void later_run(void *arg)
{
	struct soft_context *ctx = arg;

	if (!notes.num_lanes && !notes.num_channels && !notes.softibd)
		return;
	for (unsigned i = 0; i < notes.num_lanes; i++)
		lanes_ring(&ctx->link.lanes, &notes.lane[i]->eng);
	if (notes.softibd)
		progress_ring(ctx->link.doorbell_fd, 1);
	for (unsigned i = 0; i < notes.num_channels; i++)
		channel_tell(notes.channel[i]);
	notes.num_lanes = notes.num_channels = 0;
	notes.softibd = false;
	atomic_fetch_sub(&ctx->later, 1);
}
