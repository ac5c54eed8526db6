/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Devices that raise no interrupt, as in systems that have none (LegoOS). Such a device keeps
 * what it would have interrupted for: completions of CQs that are armed. The core polls it in
 * each turn of the loop, and delivers its asynchronous events then, too. Handlers find no
 * difference: they are called from the loop, one at a time.
 *
 * softibd's loop asks its pollers before it sleeps, and what a device has to tell comes from a
 * turn of the same loop. So nothing is missed, and an idle device costs a call for each turn.
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

/* nothing comes while the loop sleeps */
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
