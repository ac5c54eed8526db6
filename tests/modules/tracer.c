/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A module with trace points of its own: of its init and exit functions, its device, and a timer. */
#include <linux/jiffies.h>
#include <linux/module.h>
#include <linux/timer.h>

#include "softib/trace.h"

TRACE_POINT(tracer_loaded, (const char *word, int n), (word, n), "word=%s n=%d", "The module is loaded.")
TRACE_POINT(tracer_device, (u64 guid), (guid), "guid=0x%016lx", "The module sees a device.")
TRACE_POINT(tracer_tick, (unsigned int n), (n), "n=%u", "A time has passed.")

static struct timer_list timer;
static unsigned int ticks;

static void tick(struct timer_list *t)
{
	trace_tracer_tick(NULL, 0, ++ticks);
	mod_timer(&timer, jiffies + 1);
}

static int add(struct ib_device *device)
{
	trace_tracer_device(device, 1, be64_to_cpu(device->node_guid));
	return 0;
}

static void forget(struct ib_device *device, void *data)
{
}

static struct ib_client client = {.name = "tracer", .add = add, .remove = forget};

static int __init tracer_init(void)
{
	trace_tracer_loaded(NULL, 0, "hello", 7);
	timer_setup(&timer, tick, 0);
	mod_timer(&timer, jiffies + 1);
	return ib_register_client(&client);
}

static void __exit tracer_exit(void)
{
	ib_unregister_client(&client);
	del_timer(&timer);
	pr_info("%u ticks\n", ticks);
}

module_init(tracer_init);
module_exit(tracer_exit);
MODULE_LICENSE("Dual BSD/GPL");
