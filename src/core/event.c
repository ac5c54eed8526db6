/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Asynchronous events (IBA v1 11.6.3). A dispatched event is queued by the
 * device until the loop delivers it. An affiliated event goes to the handler of
 * its QP, CQ or SRQ. Before an unaffiliated event is delivered the caches are
 * updated, so that handlers see the new values. The queued events of an object
 * are discarded when the object is destroyed.
 */
#include "core/private.h"
#include "core/trace.h"

struct queued_event {
	struct rt_work work;
	struct list_head node; /* in device->event_queue */
	struct ib_event event;
};

/* Handlers may register and unregister handlers, including themselves. So the
 * whole list is moved away first, and each handler is moved back before it is
 * called. A handler that is registered meanwhile does not get this event. */
static void call_handlers(struct ib_device *device, const struct ib_event *event)
{
	LIST_HEAD(turn);

	list_splice_tail_init(&device->event_handler_list, &turn);
	while (!list_empty(&turn)) {
		struct ib_event_handler *handler =
			list_first_entry(&turn, struct ib_event_handler, list);
		struct ib_event copy = *event;

		list_del(&handler->list);
		list_add_tail(&handler->list, &device->event_handler_list);
		handler->handler(handler, &copy);
	}
}

/* The object that each event is about. An event that is not in this table is about a port or the
 * device. */
enum subject { SUBJECT_DEVICE, SUBJECT_QP, SUBJECT_CQ, SUBJECT_SRQ };

static enum subject subject_of(enum ib_event_type type)
{
	static const enum subject subjects[] = {
		[IB_EVENT_CQ_ERR] = SUBJECT_CQ,
		[IB_EVENT_QP_FATAL] = SUBJECT_QP,
		[IB_EVENT_QP_REQ_ERR] = SUBJECT_QP,
		[IB_EVENT_QP_ACCESS_ERR] = SUBJECT_QP,
		[IB_EVENT_COMM_EST] = SUBJECT_QP,
		[IB_EVENT_SQ_DRAINED] = SUBJECT_QP,
		[IB_EVENT_PATH_MIG] = SUBJECT_QP,
		[IB_EVENT_PATH_MIG_ERR] = SUBJECT_QP,
		[IB_EVENT_SRQ_ERR] = SUBJECT_SRQ,
		[IB_EVENT_SRQ_LIMIT_REACHED] = SUBJECT_SRQ,
		[IB_EVENT_QP_LAST_WQE_REACHED] = SUBJECT_QP,
	};

	return type < ARRAY_SIZE(subjects) ? subjects[type] : SUBJECT_DEVICE;
}

static void call_owner(struct ib_event *event, enum subject subject)
{
	const struct ib_qp *qp = event->element.qp;
	const struct ib_cq *cq = event->element.cq;
	const struct ib_srq *srq = event->element.srq;

	if (subject == SUBJECT_QP && qp->event_handler)
		qp->event_handler(event, qp->qp_context);
	else if (subject == SUBJECT_CQ && cq->event_handler)
		cq->event_handler(event, cq->cq_context);
	else if (subject == SUBJECT_SRQ && srq->event_handler)
		srq->event_handler(event, srq->srq_context);
}

static void trace(const struct ib_event *event, enum subject subject)
{
	const char *name = trace_event_name(event->event);

	if (subject == SUBJECT_QP)
		trace_qp_event(RT_TRACE_AT(event->device, 0), event->element.qp->qp_num, name);
	else
		trace_hca_event(RT_TRACE_AT(event->device, subject == SUBJECT_DEVICE ?
							   event->element.port_num : 0), name);
}

static void deliver(struct queued_event *queued)
{
	struct ib_event event = queued->event;
	enum subject subject = subject_of(event.event);

	list_del(&queued->node);
	rt_free(queued);
	trace(&event, subject);
	if (subject != SUBJECT_DEVICE) {
		call_owner(&event, subject);
		return;
	}
	core_cache_update(event.device, &event);
	call_handlers(event.device, &event);
}

static void on_work(struct rt_work *work)
{
	deliver(container_of(work, struct queued_event, work));
}

/* Handlers may dispatch further events, and destroy the objects of queued events. */
bool core_events_poll(struct ib_device *device)
{
	struct list_head *last = device->event_queue.prev;
	struct queued_event *queued;
	bool any = false, more = !list_empty(&device->event_queue);

	while (more && !list_empty(&device->event_queue)) {
		queued = list_first_entry(&device->event_queue, struct queued_event, node);
		more = &queued->node != last;
		deliver(queued);
		any = true;
	}
	return any;
}

void ib_dispatch_event(const struct ib_event *event)
{
	struct queued_event *queued;

	if (!event->device->registered)
		return;
	queued = rt_zalloc(sizeof(*queued));
	if (!queued) /* as in a kernel out of memory, the event is lost */
		return;
	queued->event = *event;
	rt_work_init(&queued->work, on_work);
	list_add_tail(&queued->node, &event->device->event_queue);
	if (!event->device->polled)
		rt_work_queue(event->device->rt, &queued->work);
}

static void forget(struct queued_event *queued)
{
	rt_work_cancel(&queued->work);
	list_del(&queued->node);
	rt_free(queued);
}

void core_events_drop(struct ib_device *device)
{
	struct queued_event *queued, *next;

	list_for_each_entry_safe(queued, next, &device->event_queue, node)
		forget(queued);
}

void core_events_forget(struct ib_device *device, const void *object)
{
	struct queued_event *queued, *next;

	list_for_each_entry_safe(queued, next, &device->event_queue, node)
		if (subject_of(queued->event.event) != SUBJECT_DEVICE &&
		    queued->event.element.qp == object)
			forget(queued);
}

void ib_register_event_handler(struct ib_event_handler *handler)
{
	list_add_tail(&handler->list, &handler->device->event_handler_list);
}

void ib_unregister_event_handler(struct ib_event_handler *handler)
{
	list_del(&handler->list);
}
