/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The module kdapl: `softib modprobe NODE kdapl.so`, and consumers after it. Each node
 * has a copy, which provides the ports of the node's adapters.
 */
#include "ulp/kdapl/private.h"

static void forget_device(const struct ib_device *device)
{
	struct kd_provider *p, *next;
	struct kd_ia *ia;

	list_for_each_entry(ia, &kd_ias, node)
		if (ia->device == device)
			kd_ia_kill(ia);
	list_for_each_entry_safe(p, next, &kd_providers, node)
		if (p->device == device) {
			list_del(&p->node);
			kfree(p);
		}
}

static int add_port(struct ib_device *device, u32 port)
{
	struct kd_provider *p = kzalloc(sizeof(*p), GFP_KERNEL);

	if (!p)
		return -ENOMEM;
	p->device = device;
	p->port = port;
	snprintf(p->name, sizeof(p->name), "%s-%u", device->name, port);
	list_add_tail(&p->node, &kd_providers);
	return 0;
}

static int add_device(struct ib_device *device)
{
	for (u32 port = rdma_start_port(device); port <= rdma_end_port(device); port++)
		if (add_port(device, port)) {
			forget_device(device);
			return -ENOMEM;
		}
	return 0;
}

static void remove_device(struct ib_device *device, void *client_data)
{
	forget_device(device);
}

static struct ib_client client = {
	.name = "kdapl", .add = add_device, .remove = remove_device};

static int __init kdapl_init(void)
{
	kd_objects_init();
	return ib_register_client(&client);
}

/* Adapters go first, as they go when they are pulled: what consumers left is freed then. */
static void __exit kdapl_exit(void)
{
	ib_unregister_client(&client);
	while (!list_empty(&kd_ias)) {
		struct kd_ia *ia = list_first_entry(&kd_ias, struct kd_ia, node);

		pr_warn("a consumer left %s open\n", ia->name);
		kd_ia_close(ia);
	}
	kd_upcalls_stop();
}

EXPORT_SYMBOL(dat_strerror);

module_init(kdapl_init);
module_exit(kdapl_exit);
MODULE_LICENSE("Dual BSD/GPL");
MODULE_DESCRIPTION("kDAPL: the kernel's Direct Access Transport interface, version 1.2");
