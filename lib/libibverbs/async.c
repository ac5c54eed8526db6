/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Asynchronous events: a queue of struct ib_uverbs_async_event_desc in a
 * socket pair, so that it can be polled, blocks and honours O_NONBLOCK.
 * softibd writes the events of ports and of the device, the engine those of
 * its QPs, CQs and SRQs. An event names an object by an id; the object counts
 * what was reported of it, and its destruction waits until all that is
 * acknowledged (ibv_ack_async_event(3)) and takes unread events along.
 */
#include <stdlib.h>
#include <sys/socket.h>

#include "soft.h"

/* The object that the event names; unless @affiliated, the event is the port's or the device's
 * (11.6.3). */
static enum soft_kind kind_of(enum ibv_event_type type, bool *affiliated)
{
	*affiliated = true;
	switch (type) {
	case IBV_EVENT_CQ_ERR:
		return SOFT_CQ;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		return SOFT_SRQ;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
	case IBV_EVENT_WQ_FATAL: /* of the QP inside it */
		return SOFT_QP;
	default:
		*affiliated = false;
		return SOFT_QP;
	}
}

/** object_init() - give @object the id that events will name it by */
void object_init(struct soft_context *ctx, struct soft_object *object, enum soft_kind kind)
{
	object->kind = kind;
	object->events_reported = 0;
	INIT_LIST_HEAD(&object->entry);
	pthread_mutex_lock(&ctx->objects_lock);
	object->id = ++ctx->next_id;
	pthread_mutex_unlock(&ctx->objects_lock);
}

/** object_show() - @object is complete: events find it */
void object_show(struct soft_context *ctx, struct soft_object *object)
{
	pthread_mutex_lock(&ctx->objects_lock);
	list_add_tail(&object->entry, &ctx->objects);
	pthread_mutex_unlock(&ctx->objects_lock);
}

/** object_hide() - first step of destruction: events no longer find it */
void object_hide(struct soft_context *ctx, struct soft_object *object)
{
	pthread_mutex_lock(&ctx->objects_lock);
	list_del_init(&object->entry);
	pthread_mutex_unlock(&ctx->objects_lock);
}

/**
 * object_purge() - last step: no engine and no softibd knows the object any
 * more; take its unread events out of the queue. All that is there is read,
 * the others' are put back.
 */
void object_purge(struct soft_context *ctx, struct soft_object *object)
{
	struct ib_uverbs_async_event_desc *kept = NULL, *more, desc;
	bool affiliated;
	size_t n = 0;
	int state;

	if (ctx->forked)
		return;
	state = lock_for_calls(&ctx->async_lock);
	while (recv(ctx->v.context.async_fd, &desc, sizeof(desc), MSG_DONTWAIT) ==
	       (ssize_t)sizeof(desc)) {
		kind_of((enum ibv_event_type)desc.event_type, &affiliated);
		if (affiliated && desc.element == object->id)
			continue;
		more = realloc(kept, (n + 1) * sizeof(*kept));
		if (!more)
			break;
		kept = more;
		kept[n++] = desc;
	}
	for (size_t i = 0; i < n; i++)
		send(ctx->async_write_fd, &kept[i], sizeof(desc), MSG_DONTWAIT | MSG_NOSIGNAL);
	unlock_after_calls(&ctx->async_lock, state);
	free(kept);
}

/** object_wait() - until every reported event was acknowledged. In a forked child nobody does that */
void object_wait(struct soft_context *ctx, struct soft_object *object, pthread_mutex_t *mutex,
		 pthread_cond_t *cond, uint32_t *completed)
{
	if (ctx->forked)
		return;
	pthread_mutex_lock(mutex);
	while (*completed != object->events_reported)
		pthread_cond_wait(cond, mutex);
	pthread_mutex_unlock(mutex);
}

/** async_raise() - queue an event; a full queue loses it, as hardware does */
void async_raise(struct soft_context *ctx, enum ibv_event_type type, uint64_t element)
{
	struct ib_uverbs_async_event_desc desc = {.element = element, .event_type = type};
	int state = lock_for_calls(&ctx->async_lock);

	send(ctx->async_write_fd, &desc, sizeof(desc), MSG_DONTWAIT | MSG_NOSIGNAL);
	unlock_after_calls(&ctx->async_lock, state);
}

/** async_engine_event() - eng_config.async_event: under the engine's lock */
void async_engine_event(void *ctx, enum ibv_event_type type, void *element_ctx)
{
	struct soft_object *object = element_ctx;

	async_raise(ctx, type, object ? object->id : 0);
}

/* A work queue (struct ibv_wq) has a QP inside it, which the program does not know. An event of that QP
 * is reported as one of the work queue. Return: false: it is not reported */
static bool name_qp(struct soft_qp *qp, struct ibv_async_event *event)
{
	event->element.qp = &qp->ibv;
	if (!qp->wq)
		return true;
	event->element.wq = qp->wq;
	if (event->event_type != IBV_EVENT_QP_FATAL)
		return false;
	event->event_type = IBV_EVENT_WQ_FATAL;
	return true;
}

/* Fill @event from a queue entry. False: its object is gone, or the program's are not concerned. */
static bool translate(struct soft_context *ctx, const struct ib_uverbs_async_event_desc *desc,
		      struct ibv_async_event *event)
{
	enum ibv_event_type type = (enum ibv_event_type)desc->event_type;
	struct soft_object *object;
	bool affiliated, found = false;
	enum soft_kind kind = kind_of(type, &affiliated);

	event->event_type = type;
	event->element.port_num = (int)desc->element;
	if (!affiliated)
		return true;
	pthread_mutex_lock(&ctx->objects_lock);
	list_for_each_entry(object, &ctx->objects, entry) {
		if (object->id != desc->element || object->kind != kind)
			continue;
		found = true;
		if (kind == SOFT_CQ)
			event->element.cq = &container_of(object, struct soft_cq, object)->ibv;
		else if (kind == SOFT_SRQ)
			event->element.srq = &container_of(object, struct soft_srq, object)->ibv;
		else
			found = name_qp(container_of(object, struct soft_qp, object), event);
		object->events_reported += found;
		break;
	}
	pthread_mutex_unlock(&ctx->objects_lock);
	return found;
}

/**
 * ibv_get_async_event() - the next event of the device
 * Context: sleeps until there is one, unless async_fd has O_NONBLOCK.
 * Return: 0; -1 and errno (EAGAIN, EINTR)
 */
EXPORT int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	struct ib_uverbs_async_event_desc desc;

	for (;;) {
		ssize_t n = recv(context->async_fd, &desc, sizeof(desc), 0);

		if (n == (ssize_t)sizeof(desc)) {
			if (translate(to_context(context), &desc, event))
				return 0;
			continue;
		}
		if (n >= 0)
			errno = EIO;
		return -1;
	}
}

static void acknowledge(pthread_mutex_t *mutex, pthread_cond_t *cond, uint32_t *completed)
{
	pthread_mutex_lock(mutex);
	++*completed;
	pthread_cond_signal(cond);
	pthread_mutex_unlock(mutex);
}

/** qp_acknowledge() - one more event of @qp, which its destruction waits for, is acknowledged */
void qp_acknowledge(struct ibv_qp *qp)
{
	acknowledge(&qp->mutex, &qp->cond, &qp->events_completed);
}

EXPORT void ibv_ack_async_event(struct ibv_async_event *event)
{
	struct ibv_srq *srq = event->element.srq;
	struct ibv_cq *cq = event->element.cq;
	struct ibv_qp *qp = event->element.qp;
	bool affiliated;
	enum soft_kind kind = kind_of(event->event_type, &affiliated);

	if (!affiliated)
		return;
	if (kind == SOFT_CQ)
		acknowledge(&cq->mutex, &cq->cond, &cq->async_events_completed);
	else if (kind == SOFT_SRQ)
		acknowledge(&srq->mutex, &srq->cond, &srq->events_completed);
	else if (event->event_type == IBV_EVENT_WQ_FATAL)
		wq_acknowledge(event->element.wq);
	else
		qp_acknowledge(qp);
}
