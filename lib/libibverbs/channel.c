/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Completion channels: a queue of CQ events and a descriptor that counts
 * them (an eventfd used as a semaphore), so that programs may poll it and
 * set O_NONBLOCK. Under the channel's lock the count of the descriptor is the
 * length of the queue.
 */
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
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
	close(channel->fd);
	free(to_channel(channel));
	return 0;
}

/* One unit of the descriptor's count: the caller holds the lock and knows
 * that there is one, so this never blocks. */
static void take_count(struct soft_channel *channel)
{
	uint64_t one;

	while (read(channel->ibv.fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

/** channel_cq_event() - eng_config.cq_event: under the engine's lock */
void channel_cq_event(void *context, void *cq_ctx)
{
	struct soft_object *object = cq_ctx;
	struct soft_cq *cq = container_of(object, struct soft_cq, object);
	struct soft_context *ctx = context;
	uint64_t one = 1;

	if (atomic_exchange(&cq->armed, false))
		atomic_fetch_sub(&ctx->progress.armed, 1);
	if (cq->ibv.channel) {
		struct soft_channel *channel = to_channel(cq->ibv.channel);

		pthread_mutex_lock(&channel->lock);
		/* a CQ stands in the queue once; how often, it counts itself */
		if (!cq->events_queued++)
			list_add_tail(&cq->event, &channel->events);
		while (write(channel->ibv.fd, &one, sizeof(one)) < 0 && errno == EINTR)
			;
		pthread_mutex_unlock(&channel->lock);
	}
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
	for (; cq->events_queued; cq->events_queued--)
		take_count(channel);
	pthread_mutex_unlock(&channel->lock);
}

static struct soft_cq *next_event(struct soft_channel *channel)
{
	struct soft_cq *cq = NULL;

	pthread_mutex_lock(&channel->lock);
	if (!list_empty(&channel->events)) {
		cq = list_first_entry(&channel->events, struct soft_cq, event);
		list_del(&cq->event);
		if (--cq->events_queued)
			list_add_tail(&cq->event, &channel->events);
		cq->events_reported++;
		take_count(channel);
	}
	pthread_mutex_unlock(&channel->lock);
	return cq;
}

/**
 * ibv_get_cq_event() - the next event of the channel
 * Context: sleeps until there is one, unless the descriptor has O_NONBLOCK.
 * Return: 0; -1 and errno (EAGAIN, EINTR)
 */
EXPORT int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq,
			    void **cq_context)
{
	struct pollfd fd = {.fd = channel->fd, .events = POLLIN};
	struct soft_cq *found;

	while (!(found = next_event(to_channel(channel)))) {
		if (fcntl(channel->fd, F_GETFL) & O_NONBLOCK) {
			errno = EAGAIN;
			return -1;
		}
		if (poll(&fd, 1, -1) < 0)
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
