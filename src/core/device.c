/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Devices and clients, and the order in which they learn of each other:
 *
 *  - a device is listed, queried and cached before any client's add() sees it;
 *  - clients are added in the order of their registration and removed in
 *    reverse, so that one may rest on another (the CM on the MAD layer);
 *  - remove() runs while the device still works: what a client made there it
 *    destroys there; contexts of programs went before, by their endpoint's
 *    remove();
 *  - a client of a loaded module meets the devices of its node alone, and its functions,
 *    which may sleep, are called by the module's (struct ib_client_module). When a device
 *    goes, the fiber that unregisters it may sleep in a module's remove().
 *
 * The lists, and the hash of one of them, are globals: ib_register_client() has
 * no argument that could carry them. A device belongs to the fabric whose loop
 * (struct rt) it runs in; names and look-ups are of one fabric, clients of all.
 */
#include "core/private.h"

static LIST_HEAD(devices);
static LIST_HEAD(clients);

#define NAME_BUCKETS 4096
static struct list_head by_node_name[NAME_BUCKETS]; /* struct ib_device.name_node */

/** struct client_data - that @client was added to a device */
struct client_data {
	struct list_head node; /* in device->client_data_list, add order */
	struct ib_client *client;
	void *data;
};

/* --- devices --- */

struct ib_device *ib_alloc_device_(size_t size)
{
	struct ib_device *device = rt_zalloc(size);

	if (!device)
		return NULL;
	INIT_LIST_HEAD(&device->node);
	INIT_LIST_HEAD(&device->name_node);
	INIT_LIST_HEAD(&device->client_data_list);
	INIT_LIST_HEAD(&device->event_handler_list);
	INIT_LIST_HEAD(&device->event_queue);
	INIT_LIST_HEAD(&device->mcast_groups);
	INIT_LIST_HEAD(&device->ucontext_list);
	INIT_LIST_HEAD(&device->xrc_domains);
	rdma_restrack_init(&device->res);
	return device;
}

void ib_dealloc_device(struct ib_device *device)
{
	rdma_restrack_leave(&device->res);
	rt_free(device);
}

/* the operations without which a device is of no use */
static bool has_mandatory_ops(const struct ib_device_ops *ops)
{
	return ops && ops->query_device && ops->query_port && ops->query_gid &&
	       ops->query_pkey && ops->alloc_pd && ops->dealloc_pd && ops->create_ah &&
	       ops->destroy_ah && ops->create_cq && ops->destroy_cq && ops->poll_cq &&
	       ops->req_notify_cq && ops->create_qp && ops->modify_qp && ops->query_qp &&
	       ops->destroy_qp && ops->post_send && ops->post_recv && ops->get_dma_mr &&
	       ops->dereg_mr;
}

/* the devices of node @node are in it, in the order of their registration, and
 * those of others with the same hash (FNV-1a) */
static struct list_head *bucket_of(const char *node)
{
	struct list_head *bucket;
	u32 hash = 2166136261u;

	for (; *node; node++)
		hash = (hash ^ (u8)*node) * 16777619u;
	bucket = &by_node_name[hash % NAME_BUCKETS];
	if (!bucket->next)
		INIT_LIST_HEAD(bucket);
	return bucket;
}

static bool is_of_node(const struct ib_device *device, const struct rt *rt, const char *node)
{
	return device->rt == rt && !strcmp(device->node_name, node);
}

struct ib_device *ib_device_get_by_name(const struct rt *rt, const char *node, const char *name)
{
	struct ib_device *device;

	list_for_each_entry(device, bucket_of(node), name_node)
		if (is_of_node(device, rt, node) && !strcmp(device->name, name))
			return device;
	return NULL;
}

int ib_device_for_each(const struct rt *rt, int (*fn)(struct ib_device *device, void *ctx),
		       void *ctx)
{
	struct ib_device *device, *next;

	list_for_each_entry_safe(device, next, &devices, node) {
		int ret = device->rt == rt ? fn(device, ctx) : 0;
		if (ret)
			return ret;
	}
	return 0;
}

int ib_device_for_each_of_node(const struct rt *rt, const char *node,
			       int (*fn)(struct ib_device *device, void *ctx), void *ctx)
{
	struct ib_device *device, *next;

	list_for_each_entry_safe(device, next, bucket_of(node), name_node) {
		int ret = is_of_node(device, rt, node) ? fn(device, ctx) : 0;
		if (ret)
			return ret;
	}
	return 0;
}

/* the lowest number that no other device of the node has */
static u32 free_index(const struct ib_device *device)
{
	const struct ib_device *other;
	u32 index = 0;

again:
	list_for_each_entry(other, bucket_of(device->node_name), name_node)
		if (other->index == index && is_of_node(other, device->rt, device->node_name)) {
			index++;
			goto again;
		}
	return index;
}

static int prepare(struct ib_device *device, const char *name)
{
	int ret;

	if (!has_mandatory_ops(device->ops) || !device->rt || !name[0] ||
	    strlen(name) >= sizeof(device->name))
		return -EINVAL;
	if (device->registered || ib_device_get_by_name(device->rt, device->node_name, name))
		return -EEXIST;
	strcpy(device->name, name);
	ret = device->ops->query_device(device, &device->attrs);
	if (ret)
		return ret;
	ret = core_cache_create(device);
	if (ret)
		return ret;
	ret = core_poll_create(device);
	if (ret)
		core_cache_destroy(device);
	return ret;
}

/* --- the meeting of a client and a device --- */

static struct client_data *find_data(struct ib_device *device, const struct ib_client *client)
{
	struct client_data *data;

	list_for_each_entry(data, &device->client_data_list, node)
		if (data->client == client)
			return data;
	return NULL;
}

/* is the node of @device that of the client's module? */
static bool may_meet(const struct ib_device *device, const struct ib_client *client)
{
	return !client->module ||
	       is_of_node(device, client->module->rt, client->module->node);
}

static int call_add(struct ib_device *device, struct ib_client *client)
{
	if (client->module)
		return client->module->add(client, device);
	return client->add ? client->add(device) : 0;
}

static void add_client(struct ib_device *device, struct ib_client *client)
{
	struct client_data *data = may_meet(device, client) ? rt_zalloc(sizeof(*data)) : NULL;

	if (!data) /* the client is registered without this device */
		return;
	data->client = client;
	list_add_tail(&data->node, &device->client_data_list);
	if (call_add(device, client) < 0) {
		list_del(&data->node);
		rt_free(data);
	}
}

static void remove_client(struct ib_device *device, struct client_data *data)
{
	struct ib_client *client = data->client;

	if (client->module)
		client->module->remove(client, device, data->data);
	else if (client->remove)
		client->remove(device, data->data);
	list_del(&data->node);
	rt_free(data);
}

int ib_register_device(struct ib_device *device, const char *name)
{
	struct ib_client *client;
	int ret = prepare(device, name);

	if (ret)
		return ret;
	device->index = free_index(device);
	device->registered = true;
	list_add_tail(&device->node, &devices);
	list_add_tail(&device->name_node, bucket_of(device->node_name));
	list_for_each_entry(client, &clients, list)
		add_client(device, client);
	return 0;
}

void ib_unregister_device(struct ib_device *device)
{
	if (!device->registered)
		return;
	device->registered = false; /* from here on no new context is created */
	while (!list_empty(&device->client_data_list))
		remove_client(device, list_entry(device->client_data_list.prev,
						 struct client_data, node));
	list_del(&device->node);
	list_del(&device->name_node);
	core_poll_destroy(device);
	core_events_drop(device);
	core_cache_destroy(device);
}

/* --- clients --- */

int ib_register_client(struct ib_client *client)
{
	struct ib_device *device, *next;
	struct ib_client *other;

	list_for_each_entry(other, &clients, list)
		if (other == client)
			return -EEXIST;
	list_add_tail(&client->list, &clients);
	list_for_each_entry_safe(device, next, &devices, node)
		if (device->registered) /* else it is going */
			add_client(device, client);
	return 0;
}

void ib_unregister_client(struct ib_client *client)
{
	struct ib_device *device, *next;

	list_for_each_entry_safe(device, next, &devices, node) {
		struct client_data *data = find_data(device, client);
		if (data)
			remove_client(device, data);
	}
	list_del(&client->list);
}

void ib_set_client_data(struct ib_device *device, struct ib_client *client, void *data)
{
	struct client_data *entry = find_data(device, client);

	if (entry)
		entry->data = data;
}

void *ib_get_client_data(struct ib_device *device, struct ib_client *client)
{
	struct client_data *entry = find_data(device, client);

	return entry ? entry->data : NULL;
}
