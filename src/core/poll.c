/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Devices that raise no interrupts, for systems without these (LegoOS). Such a device only records
 * which armed CQs have completions. The core polls it in each turn of the loop, and delivers its
 * asynchronous events at the same time. For handlers there is no difference: they are called from
 * the loop, one at a time.
 *
 * The loop calls its pollers before it sleeps, and the events of a device arise only in turns of the
 * same loop. So no event is missed while the loop sleeps, and an idle device costs one call in each
 * turn.
 */
#include "core/private.h"

struct core_poll {
	struct rt_poller poller;
	struct ib_device *device;
};

static bool poll_device(struct rt_poller *poller)
{
	struct ib_device *device = container_of(poller, struct core_poll, poller)->device;
	bool busy = core_events_poll(device);

	return device->ops->poll_events(device) || busy;
}

/* The device has no events while the loop sleeps, so nothing has to be prepared. */
static bool prepare(struct rt_poller *poller)
{
	return false;
}

static void awake(struct rt_poller *poller)
{
}

int core_poll_create(struct ib_device *device)
{
	struct core_poll *poll;

	if (!device->polled)
		return 0;
	if (!device->ops->poll_events)
		return -EINVAL;
	poll = rt_zalloc(sizeof(*poll));
	if (!poll)
		return -ENOMEM;
	poll->device = device;
	poll->poller = (struct rt_poller){.poll = poll_device, .prepare = prepare, .awake = awake};
	rt_poller_add(device->rt, &poll->poller);
	device->poll = poll;
	return 0;
}

void core_poll_destroy(struct ib_device *device)
{
	if (!device->poll)
		return;
	rt_poller_del(&device->poll->poller);
	rt_free(device->poll);
	device->poll = NULL;
}
