/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Wake-ups that are deferred until the engine's lock is released. A thread that
 * is woken under that lock runs at once where cores are few, and the first thing
 * that it wants is the lock, which its waker still holds. So the thread that has
 * the lock only notes which doorbells of lanes and of softibd, and which
 * completion channels' descriptors, are to be rung, and rings them when it has
 * given the lock back (eng_config.unlocked). What is noted must exist until then:
 * whoever would free it waits (wakeups_wait).
 */
#include "soft.h"

#define DEFERRED_MAX 8 /* of a kind; what is more is rung at once */

static __thread struct {
	struct lane_out *lane[DEFERRED_MAX];
	struct soft_channel *channel[DEFERRED_MAX];
	unsigned num_lanes, num_channels;
	bool softibd;
} deferred;

static bool defers_any(void)
{
	return deferred.num_lanes || deferred.num_channels || deferred.softibd;
}

static void begin(struct soft_context *ctx)
{
	if (!defers_any())
		atomic_fetch_add(&ctx->wakeups, 1);
}

static bool defer_lane(struct soft_context *ctx, struct lane_out *lane)
{
	if (deferred.num_lanes == DEFERRED_MAX)
		return false;
	begin(ctx);
	deferred.lane[deferred.num_lanes++] = lane;
	return true;
}

static void defer_softibd(struct soft_context *ctx)
{
	begin(ctx);
	deferred.softibd = true;
}

const struct link_wakeups link_wakeups = {
	.lane = defer_lane, .softibd = defer_softibd, .bad_qkey = lanes_bad_qkey};

/** wakeups_defer_channel() - @channel has an event. False: there is no room to note it */
bool wakeups_defer_channel(struct soft_context *ctx, struct soft_channel *channel)
{
	for (unsigned i = 0; i < deferred.num_channels; i++)
		if (deferred.channel[i] == channel)
			return true;
	if (deferred.num_channels == DEFERRED_MAX)
		return false;
	begin(ctx);
	deferred.channel[deferred.num_channels++] = channel;
	return true;
}

/** wakeups_run() - eng_config.unlocked. Peers come first, because they still have work to do before the
 *  program gets an answer */
void wakeups_run(void *arg)
{
	struct soft_context *ctx = arg;

	if (!defers_any())
		return;
	for (unsigned i = 0; i < deferred.num_lanes; i++)
		lanes_ring(&ctx->link.lanes, &deferred.lane[i]->eng);
	if (deferred.softibd)
		progress_ring(ctx->link.doorbell_fd, 1);
	for (unsigned i = 0; i < deferred.num_channels; i++)
		channel_notify(deferred.channel[i]);
	deferred.num_lanes = deferred.num_channels = 0;
	deferred.softibd = false;
	atomic_fetch_sub(&ctx->wakeups, 1);
}
