/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Unaffiliated events (IBA v1 11.6.3): of ports and of the device as a whole.
 * A dispatched event waits in the device's queue; the loop then refreshes the
 * caches and calls the handlers, so that a handler sees the values that the
 * event is about. Affiliated events (QP, CQ, SRQ) go from the driver straight
 * to their object's event_handler, also from the loop.
 */
#include "core/private.h"

struct queued_event {
	struct rt_work work;
	struct list_head node; /* in device->event_queue */
	struct ib_event event;
};

/* Handlers may register and unregister handlers, themselves included: each is
 * moved back to its list before its turn. One that registers meanwhile does
 * not get this event. */
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

static void deliver(struct rt_work *work)
{
	struct queued_event *queued = container_of(work, struct queued_event, work);
	struct ib_event event = queued->event;

	list_del(&queued->node);
	rt_free(queued);
	core_cache_update(event.device, &event);
	call_handlers(event.device, &event);
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
	rt_work_init(&queued->work, deliver);
	list_add_tail(&queued->node, &event->device->event_queue);
	rt_work_queue(event->device->rt, &queued->work);
}

void core_events_drop(struct ib_device *device)
{
	struct queued_event *queued, *next;

	list_for_each_entry_safe(queued, next, &device->event_queue, node) {
		rt_work_cancel(&queued->work);
		list_del(&queued->node);
		rt_free(queued);
	}
}

void ib_register_event_handler(struct ib_event_handler *handler)
{
	list_add_tail(&handler->list, &handler->device->event_handler_list);
}

void ib_unregister_event_handler(struct ib_event_handler *handler)
{
	list_del(&handler->list);
}
