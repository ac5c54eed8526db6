/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Completion channels: a queue of CQ events and a descriptor that counts them (an eventfd used as a
 * semaphore), so that programs may poll it and set O_NONBLOCK. Under the channel's lock the count of
 * the descriptor is the length of the queue. An exception is the time in which a driver, an event
 * waiter that runs the engine (event_waiter.c), looks at the queue itself: the descriptor then
 * follows when the driver leaves. While the driver sleeps, the context's own doorbell wakes it.
 *
 * What a driver and an event tell each other without the lock, and in which memory order, is in
 * channel_driver.h. Of the other atomics
 *
 *   telling      is incremented under the lock, before the queue's length counts as told, and
 *                decremented after the write to the descriptor. take_count(), under the lock, reads
 *                it before it reads the descriptor. If it reads 0, with acquire, the write of a
 *                thread that has decremented it, with release, is in the descriptor. Then EAGAIN
 *                says that the program has taken the count itself.
 *   blocking_at  is a time and says nothing of other memory, so its order is relaxed. Another
 *                thread's older answer makes a call ask again, or lets it wait as long as its own
 *                older answer would.
 */
#include <sched.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <fcntl.h>

#include "soft.h"

static struct soft_channel *to_channel(struct ibv_comp_channel *channel)
{
	return container_of(channel, struct soft_channel, ibv);
}

EXPORT struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct soft_channel *channel = calloc(1, sizeof(*channel));

	if (!channel)
		return verbs_null(-ENOMEM);
	channel->ibv.fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
	if (channel->ibv.fd < 0) {
		free(channel);
		return verbs_null(-errno);
	}
	channel->ibv.context = context;
	INIT_LIST_HEAD(&channel->events);
	pthread_mutex_init(&channel->lock, NULL);
	return &channel->ibv;
}

/** ibv_destroy_comp_channel() - Return: 0; EBUSY while a CQ uses it */
EXPORT int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	bool busy;

	pthread_mutex_lock(&channel->context->mutex);
	busy = channel->refcnt > 0;
	pthread_mutex_unlock(&channel->context->mutex);
	if (busy)
		return verbs_err(-EBUSY);
	wakeups_wait(to_context(channel->context));
	close(channel->fd);
	free(to_channel(channel));
	return 0;
}

/* Take one from the descriptor's count. The thread that queued the event may not have written to
 * the descriptor yet (telling). It holds no lock then, and writes soon. */
static void take_count(struct soft_channel *channel)
{
	uint64_t one;
	bool telling;

	do {
		telling = atomic_load_explicit(&channel->telling, memory_order_acquire);
		if (syscall(SYS_read, channel->ibv.fd, &one, sizeof(one)) > 0)
			return;
		if (errno == EAGAIN) /* because the program set O_NONBLOCK on it */
			sched_yield();
	} while (errno == EINTR || (errno == EAGAIN && telling));
}

/* Make the descriptor's count the length of the queue. The caller holds the
 * lock. Return: what to add to the count without the lock, which whoever that wakes
 * wants */
static unsigned sync_count(struct soft_channel *channel)
{
	unsigned queued, counted;

	if (atomic_load(&channel->state.driver) != CHANNEL_HAS_NO_DRIVER)
		return 0;
	queued = atomic_load_explicit(&channel->state.queued, memory_order_relaxed);
	counted = atomic_load_explicit(&channel->state.counted, memory_order_relaxed);
	for (; counted > queued; counted--)
		take_count(channel);
	if (queued > counted)
		atomic_fetch_add_explicit(&channel->telling, 1, memory_order_relaxed);
	atomic_store_explicit(&channel->state.counted, queued, memory_order_relaxed);
	return queued - counted;
}

static void unlock_and_add(struct soft_channel *channel, unsigned more)
{
	pthread_mutex_unlock(&channel->lock);
	if (!more)
		return;
	progress_ring(channel->ibv.fd, more);
	atomic_fetch_sub_explicit(&channel->telling, 1, memory_order_release);
}

/** channel_driver_leaves() - the descriptor counts from now on what is in the queue */
void channel_driver_leaves(struct soft_channel *channel)
{
	if (likely(channel_state_leaves(&channel->state)))
		return;
	pthread_mutex_lock(&channel->lock);
	unlock_and_add(channel, sync_count(channel));
}

/** channel_cq_event() - eng_config.cq_event: under the engine's lock */
void channel_cq_event(void *context, void *cq_ctx)
{
	struct soft_object *object = cq_ctx;
	struct soft_cq *cq = container_of(object, struct soft_cq, object);
	struct soft_context *ctx = context;

	progress_disarmed(ctx, cq);
	atomic_fetch_add_explicit(&ctx->progress.events, 1, memory_order_relaxed);
	if (cq->ibv.channel) {
		struct soft_channel *channel = to_channel(cq->ibv.channel);

		pthread_mutex_lock(&channel->lock);
		/* A CQ is in the queue once. It counts its own events. */
		if (!cq->events_queued++)
			list_add_tail(&cq->event, &channel->events);
		channel_state_add(&channel->state);
		pthread_mutex_unlock(&channel->lock);
		if (!channel_state_driver_looks(&channel->state) &&
		    !wakeups_defer_channel(ctx, channel))
			channel_notify(channel);
	}
}

/** channel_notify() - @channel may have an event: wake whoever waits for it */
void channel_notify(struct soft_channel *channel)
{
	bool asleep;

	pthread_mutex_lock(&channel->lock);
	asleep = channel_state_sleeper_waits(&channel->state);
	unlock_and_add(channel, sync_count(channel));
	if (asleep)
		doorbells_ring(&to_context(channel->ibv.context)->progress.doorbells);
}

/** channel_forget_cq() - the CQ goes: take its unread events along */
void channel_forget_cq(struct soft_cq *cq)
{
	struct soft_channel *channel;

	if (!cq->ibv.channel)
		return;
	channel = to_channel(cq->ibv.channel);
	pthread_mutex_lock(&channel->lock);
	if (cq->events_queued)
		list_del(&cq->event);
	channel_state_take(&channel->state, cq->events_queued);
	cq->events_queued = 0;
	unlock_and_add(channel, sync_count(channel));
}

/** channel_take() - the next event's CQ; NULL */
struct soft_cq *channel_take(struct soft_channel *channel)
{
	struct soft_cq *cq = NULL;
	unsigned more = 0;

	if (!channel_state_has_event(&channel->state))
		return NULL;
	pthread_mutex_lock(&channel->lock);
	if (!list_empty(&channel->events)) {
		cq = list_first_entry(&channel->events, struct soft_cq, event);
		list_del(&cq->event);
		if (--cq->events_queued)
			list_add_tail(&cq->event, &channel->events);
		cq->events_reported++;
		channel_state_take(&channel->state, 1);
		more = sync_count(channel);
	}
	unlock_and_add(channel, more);
	return cq;
}

static uint64_t coarse_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return timespec_ns(&ts);
}

/* Nobody notifies the library when a program sets O_NONBLOCK, and fcntl() costs a tenth of a
 * sleep. An answer is therefore used until the clock's next tick, but not for a sleep that may
 * be long. */
static bool blocked_in_this_tick(const struct soft_channel *channel)
{
	return atomic_load_explicit(&channel->blocking_at, memory_order_relaxed) == coarse_ns();
}

static bool blocks(struct soft_channel *channel)
{
	if (fcntl(channel->ibv.fd, F_GETFL) & O_NONBLOCK)
		return false;
	atomic_store_explicit(&channel->blocking_at, coarse_ns(), memory_order_relaxed);
	return true;
}

/**
 * ibv_get_cq_event() - the next event of the channel
 * Context: sleeps until there is one, unless the descriptor has O_NONBLOCK; a cancellation point. If the
 * program sets O_NONBLOCK after a call has slept, the next call may still sleep, for a millisecond.
 * Return: 0; -1 and errno (EAGAIN, EINTR)
 */
EXPORT int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq,
			    void **cq_context)
{
	struct soft_channel *c = to_channel(channel);
	struct soft_cq *found = channel_take(c);
	bool asks = !found && !blocked_in_this_tick(c);

	for (; !found; asks = true) {
		if (asks && !blocks(c)) {
			errno = EAGAIN;
			return -1;
		}
		found = event_waiter_wait(c, asks);
		if (!found && errno)
			return -1;
	}
	*cq = &found->ibv;
	*cq_context = found->ibv.cq_context;
	return 0;
}

EXPORT void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	pthread_mutex_lock(&cq->mutex);
	cq->comp_events_completed += nevents;
	pthread_cond_signal(&cq->cond);
	pthread_mutex_unlock(&cq->mutex);
}
