/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The midlayer's resource tracking for the control socket: iterates over nodes, their
 * devices and the tables of these, and may pause after each object.
 */
#include <stdio.h>

#include "daemon/control_private.h"
#include "rdma/ib_verbs.h"

struct ib_device *control_device(struct control_request *req, int node)
{
	const struct topology *topo = control_topology(req);
	char name[IB_DEVICE_NAME_BYTES];

	if (topo->node[node].kind != TOPO_CA)
		return NULL;
	snprintf(name, sizeof(name), "softib%u", topo->node[node].device);
	return ib_device_get_by_name(control_rt(req->control), topo_host_name(topo, node), name);
}

struct control_walk {
	const struct fabric *fab;
	int node, last;	   /* the next node, and the last one */
	u32 device_index;  /* lower bound of the index of that node's next device */
	unsigned type;	   /* type of that device's next table */
	bool open;	   /* the cursor is in a table */
	struct rdma_restrack_cursor cursor;
};

struct control_walk *control_walk_begin(const struct fabric *fab, int node)
{
	struct control_walk *walk = rt_zalloc(sizeof(*walk));

	if (!walk)
		return NULL;
	walk->fab = fab;
	/* the devices of all adapters of a host are found by the name of its first adapter */
	walk->node = node < 0 ? 0 : fab_topology(fab)->node[node].host;
	walk->last = node < 0 ? fab_topology(fab)->num_nodes - 1 : walk->node;
	return walk;
}

void control_walk_end(struct control_walk *walk)
{
	if (walk->open)
		rdma_restrack_close(&walk->cursor);
	rt_free(walk);
}

struct choice {
	u32 at_least;
	struct ib_device *device; /* the device with the lowest index that is not below device_index */
};

static int choose_device(struct ib_device *device, void *ctx)
{
	struct choice *choice = ctx;

	if (device->index >= choice->at_least &&
	    (!choice->device || device->index < choice->device->index))
		choice->device = device;
	return 0;
}

/* Return: the device whose tables are next; NULL: the node has no more */
static struct ib_device *device_of(const struct topology *topo, struct control_walk *walk)
{
	struct choice choice = {.at_least = walk->device_index};

	ib_device_for_each_of_node(fab_rt(walk->fab), topo->node[walk->node].name, choose_device,
				   &choice);
	if (choice.device && choice.device->index != walk->device_index) {
		walk->device_index = choice.device->index;
		walk->type = 0;
	}
	return choice.device;
}

/* move the cursor to the next table that is not empty. Return: false if there is none */
static bool open_next(struct control_walk *walk)
{
	const struct topology *topo = fab_topology(walk->fab);

	while (walk->node <= walk->last) {
		struct ib_device *device = device_of(topo, walk);

		if (!device) {
			walk->node++;
			walk->device_index = walk->type = 0;
			continue;
		}
		while (walk->type < RDMA_RESTRACK_MAX) {
			unsigned type = walk->type++;

			if (!rdma_restrack_count(device, type))
				continue;
			rdma_restrack_open(device, &walk->cursor, type);
			return walk->open = true;
		}
		walk->device_index++;
		walk->type = 0;
	}
	return false;
}

static void describe(const struct control_walk *walk, const struct rdma_restrack_entry *entry,
		     struct control_resource *res)
{
	*res = (struct control_resource){
		.node = walk->node,
		.device = walk->cursor.device->name,
		.type = rdma_restrack_name(entry->type),
		.id = entry->id,
		.pid = entry->user ? entry->pid : 0,
		.comm = entry->comm,
	};
	rdma_restrack_describe(entry, res->details);
	if (entry->type == RDMA_RESTRACK_QP)
		res->qpn = container_of(entry, const struct ib_qp, res)->qp_num;
}

bool control_walk_next(struct control_walk *walk, struct control_resource *res)
{
	const struct rdma_restrack_entry *entry = NULL;

	while (!entry) {
		if (!walk->open && !open_next(walk))
			return false;
		entry = rdma_restrack_next(&walk->cursor);
		if (entry)
			break;
		rdma_restrack_close(&walk->cursor);
		walk->open = false;
	}
	describe(walk, entry, res);
	return true;
}

static int count_device(struct ib_device *device, void *ctx)
{
	for (int type = 0; type < RDMA_RESTRACK_MAX; type++)
		*(uint64_t *)ctx += rdma_restrack_count(device, type);
	return 0;
}

uint64_t control_num_resources(const struct fabric *fab)
{
	uint64_t n = 0;

	ib_device_for_each(fab_rt(fab), count_device, &n);
	return n;
}
