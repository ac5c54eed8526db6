/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A client of the midlayer: it hears of each adapter, and prints the state of its ports. */
#include <linux/module.h>
#include <linux/slab.h>
#include <rdma/ib_verbs.h>

struct adapter {
	struct ib_event_handler events;
};

static struct ib_client client;

static void print_port(struct ib_device *device, u32 port)
{
	struct ib_port_attr attr;

	if (!ib_query_port(device, port, &attr))
		pr_info("%s port %u: lid %u, state %d\n", device->name, port, attr.lid, attr.state);
}

static void on_event(struct ib_event_handler *handler, struct ib_event *event)
{
	pr_info("%s: %s\n", event->device->name, ib_event_msg(event->event));
}

static int client_add(struct ib_device *device)
{
	struct adapter *adapter = kzalloc(sizeof(*adapter), GFP_KERNEL);

	if (!adapter)
		return -ENOMEM;
	INIT_IB_EVENT_HANDLER(&adapter->events, device, on_event);
	ib_register_event_handler(&adapter->events);
	ib_set_client_data(device, &client, adapter);
	for (u32 port = rdma_start_port(device); port <= rdma_end_port(device); port++)
		print_port(device, port);
	return 0;
}

static void client_remove(struct ib_device *device, void *client_data)
{
	struct adapter *adapter = client_data;

	ib_unregister_event_handler(&adapter->events);
	kfree(adapter);
	pr_info("%s is gone\n", device->name);
}

static struct ib_client client = {.name = "client", .add = client_add, .remove = client_remove};

static int __init client_init(void)
{
	return ib_register_client(&client);
}

static void __exit client_exit(void)
{
	ib_unregister_client(&client);
}

module_init(client_init);
module_exit(client_exit);
MODULE_LICENSE("Dual BSD/GPL");
