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

enum ib_event_subject ib_subject_of_event(enum ib_event_type type)
{
	static const enum ib_event_subject subjects[] = {
		[IB_EVENT_CQ_ERR] = IB_EVENT_OF_CQ,
		[IB_EVENT_QP_FATAL] = IB_EVENT_OF_QP,
		[IB_EVENT_QP_REQ_ERR] = IB_EVENT_OF_QP,
		[IB_EVENT_QP_ACCESS_ERR] = IB_EVENT_OF_QP,
		[IB_EVENT_COMM_EST] = IB_EVENT_OF_QP,
		[IB_EVENT_SQ_DRAINED] = IB_EVENT_OF_QP,
		[IB_EVENT_PATH_MIG] = IB_EVENT_OF_QP,
		[IB_EVENT_PATH_MIG_ERR] = IB_EVENT_OF_QP,
		[IB_EVENT_DEVICE_FATAL] = IB_EVENT_OF_DEVICE,
		[IB_EVENT_PORT_ACTIVE] = IB_EVENT_OF_PORT,
		[IB_EVENT_PORT_ERR] = IB_EVENT_OF_PORT,
		[IB_EVENT_LID_CHANGE] = IB_EVENT_OF_PORT,
		[IB_EVENT_PKEY_CHANGE] = IB_EVENT_OF_PORT,
		[IB_EVENT_SM_CHANGE] = IB_EVENT_OF_PORT,
		[IB_EVENT_SRQ_ERR] = IB_EVENT_OF_SRQ,
		[IB_EVENT_SRQ_LIMIT_REACHED] = IB_EVENT_OF_SRQ,
		[IB_EVENT_QP_LAST_WQE_REACHED] = IB_EVENT_OF_QP,
		[IB_EVENT_CLIENT_REREGISTER] = IB_EVENT_OF_PORT,
		[IB_EVENT_GID_CHANGE] = IB_EVENT_OF_PORT,
	};

	return type < ARRAY_SIZE(subjects) ? subjects[type] : IB_EVENT_OF_NONE;
}

static bool is_affiliated(enum ib_event_subject subject)
{
	return subject == IB_EVENT_OF_QP || subject == IB_EVENT_OF_CQ || subject == IB_EVENT_OF_SRQ;
}

static void call_owner(struct ib_event *event, enum ib_event_subject subject)
{
	const struct ib_qp *qp = event->element.qp;
	const struct ib_cq *cq = event->element.cq;
	const struct ib_srq *srq = event->element.srq;

	if (subject == IB_EVENT_OF_QP && qp->event_handler)
		qp->event_handler(event, qp->qp_context);
	else if (subject == IB_EVENT_OF_CQ && cq->event_handler)
		cq->event_handler(event, cq->cq_context);
	else if (subject == IB_EVENT_OF_SRQ && srq->event_handler)
		srq->event_handler(event, srq->srq_context);
}

static void trace(const struct ib_event *event, enum ib_event_subject subject)
{
	const char *name = trace_event_name(event->event);

	if (subject == IB_EVENT_OF_QP)
		trace_qp_event(RT_TRACE_AT(event->device, 0), event->element.qp->qp_num, name);
	else
		trace_hca_event(RT_TRACE_AT(event->device,
					    is_affiliated(subject) ? 0 : event->element.port_num),
				name);
}

static void deliver(struct queued_event *queued)
{
	struct ib_event event = queued->event;
	enum ib_event_subject subject = ib_subject_of_event(event.event);

	list_del(&queued->node);
	rt_free(queued);
	trace(&event, subject);
	if (is_affiliated(subject)) {
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
		if (is_affiliated(ib_subject_of_event(queued->event.event)) &&
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
