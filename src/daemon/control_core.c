/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The midlayer's resource tracking, as the control socket asks for it. */
#include "daemon/control.h"
#include "rdma/ib_verbs.h"

struct walk {
	const struct fabric *fab;
	int only; /* node, or -1 */
	int node;
	struct ib_device *device;
	int (*fn)(void *arg, const struct control_resource *res);
	void *arg;
};

static int show_entry(const struct rdma_restrack_entry *entry, void *ctx)
{
	const struct walk *walk = ctx;
	struct control_resource res = {
		.node = walk->node,
		.device = walk->device->name,
		.type = rdma_restrack_name(entry->type),
		.id = entry->id,
		.pid = entry->user ? entry->pid : 0,
		.comm = entry->comm,
	};

	if (entry->type == RDMA_RESTRACK_QP)
		res.qpn = container_of(entry, struct ib_qp, res)->qp_num;
	return walk->fn(walk->arg, &res);
}

static int show_device(struct ib_device *device, void *ctx)
{
	struct walk *walk = ctx;
	int ret = 0;

	walk->device = device;
	walk->node = topo_find(fab_topology(walk->fab), device->node_name);
	if (walk->node < 0 || (walk->only >= 0 && walk->node != walk->only))
		return 0;
	for (int type = 0; !ret && type < RDMA_RESTRACK_MAX; type++)
		ret = rdma_restrack_for_each(device, type, show_entry, walk);
	return ret;
}

static int count_device(struct ib_device *device, void *ctx)
{
	for (int type = 0; type < RDMA_RESTRACK_MAX; type++)
		*(uint64_t *)ctx += rdma_restrack_count(device, type);
	return 0;
}

uint64_t control_core_num_resources(void *ctx, const struct fabric *fab)
{
	uint64_t n = 0;

	ib_device_for_each(fab_rt(fab), count_device, &n);
	return n;
}

int control_core_resources(void *ctx, const struct fabric *fab, int node,
			   int (*fn)(void *arg, const struct control_resource *res),
			   void *arg)
{
	struct walk walk = {.fab = fab, .only = node, .fn = fn, .arg = arg};

	return ib_device_for_each(fab_rt(fab), show_device, &walk);
}
