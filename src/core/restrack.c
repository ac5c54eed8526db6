/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Resource tracking: a list and a count per device and type of object. */
#include <string.h>

#include "core/private.h"

static const char *const names[RDMA_RESTRACK_MAX] = {
	[RDMA_RESTRACK_PD] = "pd",
	[RDMA_RESTRACK_CQ] = "cq",
	[RDMA_RESTRACK_QP] = "qp",
	[RDMA_RESTRACK_CM_ID] = "cm_id",
	[RDMA_RESTRACK_MR] = "mr",
	[RDMA_RESTRACK_CTX] = "ctx",
	[RDMA_RESTRACK_SRQ] = "srq",
	[RDMA_RESTRACK_AH] = "ah",
	[RDMA_RESTRACK_MW] = "mw",
	[RDMA_RESTRACK_FMR] = "fmr",
	[RDMA_RESTRACK_MAD_AGENT] = "mad_agent",
	[RDMA_RESTRACK_SA_QUERY] = "sa_query",
	[RDMA_RESTRACK_RDMA_CM_ID] = "rdma_id",
};

const char *rdma_restrack_name(enum rdma_restrack_type type)
{
	return type < RDMA_RESTRACK_MAX ? names[type] : "unknown";
}

/* The attribute of the device that limits the objects of each type. Types without one are not
 * limited. */
static const size_t limits[RDMA_RESTRACK_MAX] = {
	[RDMA_RESTRACK_PD] = offsetof(struct ib_device_attr, max_pd),
	[RDMA_RESTRACK_CQ] = offsetof(struct ib_device_attr, max_cq),
	[RDMA_RESTRACK_QP] = offsetof(struct ib_device_attr, max_qp),
	[RDMA_RESTRACK_MR] = offsetof(struct ib_device_attr, max_mr),
	[RDMA_RESTRACK_SRQ] = offsetof(struct ib_device_attr, max_srq),
	[RDMA_RESTRACK_AH] = offsetof(struct ib_device_attr, max_ah),
	[RDMA_RESTRACK_MW] = offsetof(struct ib_device_attr, max_mw),
	[RDMA_RESTRACK_FMR] = offsetof(struct ib_device_attr, max_fmr),
};

int core_has_room(const struct ib_device *device, enum rdma_restrack_type type,
		  const struct ib_uobject *uobject)
{
	u32 used = device->res.of_programs[type];
	int most;

	if (!limits[type])
		return 0;
	if (!uobject)
		used = device->res.count[type] - used;
	else if (type == RDMA_RESTRACK_QP && !uobject->qpn)
		used += device->reserved_qps;
	memcpy(&most, (const char *)&device->attrs + limits[type], sizeof(most));
	return used < (u32)most ? 0 : -ENOMEM;
}

void rdma_restrack_init(struct rdma_restrack_root *root)
{
	memset(root, 0, sizeof(*root));
	INIT_LIST_HEAD(&root->cursors);
	for (int type = 0; type < RDMA_RESTRACK_MAX; type++)
		INIT_LIST_HEAD(&root->list[type]);
}

void rdma_restrack_add(struct ib_device *device, struct rdma_restrack_entry *entry,
		       enum rdma_restrack_type type, const char *client, pid_t pid)
{
	struct rdma_restrack_root *root = &device->res;

	entry->type = type;
	entry->id = root->next_id[type]++;
	entry->user = entry->of_program = !client;
	entry->pid = pid;
	entry->comm[0] = 0;
	if (client)
		strncpy(entry->comm, client, sizeof(entry->comm) - 1);
	entry->comm[sizeof(entry->comm) - 1] = 0;
	entry->valid = true;
	list_add_tail(&entry->node, &root->list[type]);
	root->count[type]++;
	root->of_programs[type] += entry->of_program;
}

void rdma_restrack_set_owner(struct rdma_restrack_entry *entry, pid_t pid, const char *comm)
{
	entry->user = true;
	entry->pid = pid;
	strncpy(entry->comm, comm, sizeof(entry->comm) - 1);
	entry->comm[sizeof(entry->comm) - 1] = 0;
}

void rdma_restrack_del(struct ib_device *device, struct rdma_restrack_entry *entry)
{
	struct rdma_restrack_cursor *cursor;

	if (!entry->valid)
		return;
	entry->valid = false;
	list_for_each_entry(cursor, &device->res.cursors, node)
		if (cursor->next == &entry->node)
			cursor->next = entry->node.next;
	list_del(&entry->node);
	device->res.count[entry->type]--;
	device->res.of_programs[entry->type] -= entry->of_program;
}

void rdma_restrack_open(struct ib_device *device, struct rdma_restrack_cursor *cursor,
			enum rdma_restrack_type type)
{
	*cursor = (struct rdma_restrack_cursor){
		.device = device, .type = type, .next = device->res.list[type].next};
	list_add_tail(&cursor->node, &device->res.cursors);
}

const struct rdma_restrack_entry *rdma_restrack_next(struct rdma_restrack_cursor *cursor)
{
	const struct rdma_restrack_entry *entry;

	if (!cursor->device || cursor->next == &cursor->device->res.list[cursor->type])
		return NULL;
	entry = list_entry(cursor->next, struct rdma_restrack_entry, node);
	cursor->next = cursor->next->next;
	return entry;
}

void rdma_restrack_close(struct rdma_restrack_cursor *cursor)
{
	list_del(&cursor->node);
}

void rdma_restrack_leave(struct rdma_restrack_root *root)
{
	while (!list_empty(&root->cursors)) {
		struct rdma_restrack_cursor *cursor =
			list_first_entry(&root->cursors, struct rdma_restrack_cursor, node);

		cursor->device = NULL;
		list_del(&cursor->node);
	}
}

u32 rdma_restrack_count(struct ib_device *device, enum rdma_restrack_type type)
{
	return type < RDMA_RESTRACK_MAX ? device->res.count[type] : 0;
}

int rdma_restrack_for_each(struct ib_device *device, enum rdma_restrack_type type,
			   int (*fn)(const struct rdma_restrack_entry *entry, void *ctx),
			   void *ctx)
{
	struct rdma_restrack_entry *entry;
	int ret = 0;

	if (type >= RDMA_RESTRACK_MAX)
		return -EINVAL;
	list_for_each_entry(entry, &device->res.list[type], node) {
		ret = fn(entry, ctx);
		if (ret)
			break;
	}
	return ret;
}
