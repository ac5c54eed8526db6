/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Devices and clients, and the order in which they learn of each other:
 *
 *  - a device is listed, queried and cached before any client's add() sees it;
 *  - clients are added in the order of their registration and removed in
 *    reverse, so that one may depend on another (the CM on the MAD layer);
 *  - remove() is called while the device still works. A client destroys its
 *    objects there. The contexts of programs are destroyed before, by the
 *    remove() of their endpoint;
 *  - a client of a loaded module is added only to the devices of its node. Its functions may
 *    sleep, and are called by those of the module (struct ib_client_module). The fiber that
 *    unregisters a device may sleep in a module's remove().
 *
 * Devices, clients and names belong to a fabric, and are found through its loop
 * (struct core_fabric). A client of the core is registered with each fabric whose
 * devices it is to be added to.
 */
#include "core/private.h"

/** struct client_entry - the registration of @client with a fabric */
struct client_entry {
	struct list_head node; /* struct core_fabric.clients */
	const struct ib_client *client;
};

/** struct client_data - @client was added to a device; @data belongs to the client. Each device
 *  has one for each client of the core, so a list of one pointer saves memory */
struct client_data {
	struct client_data *next; /* that was added before */
	const struct ib_client *client;
	void *data;
};

/* --- the fabric --- */

static void init_fabric(struct rt *rt, void *state)
{
	struct core_fabric *fabric = state;

	fabric->rt = rt;
	INIT_LIST_HEAD(&fabric->devices);
	INIT_LIST_HEAD(&fabric->clients);
	ib_sa_register_client_(&fabric->sa_client, "sa");
	ib_sa_register_client_(&fabric->cm_sa_client, "cm");
	ib_sa_register_client_(&fabric->rcm_sa_client, "rdma_cm");
	INIT_LIST_HEAD(&fabric->rcm_ids);
	INIT_LIST_HEAD(&fabric->rcm_services);
	for (unsigned int i = 0; i < CORE_NAME_BUCKETS; i++)
		INIT_LIST_HEAD(&fabric->by_node_name[i]);
}

/* Return: the fabric of @rt, which is made if this is its first device or client; NULL: no memory */
static struct core_fabric *fabric_get(struct rt *rt)
{
	return rt_local_get(rt, RT_LOCAL_CORE, sizeof(struct core_fabric), init_fabric);
}

void core_fabric_put(struct core_fabric *fabric)
{
	if (list_empty(&fabric->devices) && list_empty(&fabric->clients) &&
	    list_empty(&fabric->rcm_ids))
		rt_local_free(fabric->rt, RT_LOCAL_CORE);
}

/* --- devices --- */

struct ib_device *ib_alloc_device_(size_t size)
{
	struct ib_device *device = rt_zalloc(size);

	if (!device)
		return NULL;
	INIT_LIST_HEAD(&device->node);
	INIT_LIST_HEAD(&device->name_node);
	INIT_LIST_HEAD(&device->event_handler_list);
	INIT_LIST_HEAD(&device->event_queue);
	INIT_LIST_HEAD(&device->cq_pool);
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

/* Does the device have the operations that every device must have? */
static bool has_mandatory_ops(const struct ib_device_ops *ops)
{
	return ops && ops->query_device && ops->query_port && ops->query_gid &&
	       ops->query_pkey && ops->alloc_pd && ops->dealloc_pd && ops->create_ah &&
	       ops->destroy_ah && ops->create_cq && ops->destroy_cq && ops->poll_cq &&
	       ops->req_notify_cq && ops->create_qp && ops->modify_qp && ops->query_qp &&
	       ops->destroy_qp && ops->post_send && ops->post_recv && ops->get_dma_mr &&
	       ops->dereg_mr;
}

/* Return: the list that has the devices of @node, in the order of their
 * registration, and those of other nodes with the same hash (FNV-1a) */
static struct list_head *bucket_of(struct core_fabric *fabric, const char *node)
{
	u32 hash = 2166136261u;

	for (; *node; node++)
		hash = (hash ^ (u8)*node) * 16777619u;
	return &fabric->by_node_name[hash % CORE_NAME_BUCKETS];
}

static bool is_of_node(const struct ib_device *device, const char *node)
{
	return !strcmp(device->node_name, node);
}

struct ib_device *ib_device_get_by_name(const struct rt *rt, const char *node, const char *name)
{
	struct core_fabric *fabric = core_fabric_of(rt);
	struct ib_device *device;

	if (!fabric)
		return NULL;
	list_for_each_entry(device, bucket_of(fabric, node), name_node)
		if (is_of_node(device, node) && !strcmp(device->name, name))
			return device;
	return NULL;
}

int ib_device_for_each(const struct rt *rt, int (*fn)(struct ib_device *device, void *ctx),
		       void *ctx)
{
	struct core_fabric *fabric = core_fabric_of(rt);
	struct ib_device *device, *next;

	if (!fabric)
		return 0;
	list_for_each_entry_safe(device, next, &fabric->devices, node) {
		int ret = fn(device, ctx);
		if (ret)
			return ret;
	}
	return 0;
}

int ib_device_for_each_of_node(const struct rt *rt, const char *node,
			       int (*fn)(struct ib_device *device, void *ctx), void *ctx)
{
	struct core_fabric *fabric = core_fabric_of(rt);
	struct ib_device *device, *next;

	if (!fabric)
		return 0;
	list_for_each_entry_safe(device, next, bucket_of(fabric, node), name_node) {
		int ret = is_of_node(device, node) ? fn(device, ctx) : 0;
		if (ret)
			return ret;
	}
	return 0;
}

/* Return: the lowest index that no other device of the node has */
static u32 free_index(struct core_fabric *fabric, const struct ib_device *device)
{
	const struct ib_device *other;
	u32 index = 0;

again:
	list_for_each_entry(other, bucket_of(fabric, device->node_name), name_node)
		if (other->index == index && is_of_node(other, device->node_name)) {
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

/* --- adding a client to a device, and removing it --- */

static struct client_data *find_data(struct ib_device *device, const struct ib_client *client)
{
	struct client_data *data = device->client_data;

	while (data && data->client != client)
		data = data->next;
	return data;
}

static void free_data(struct ib_device *device, struct client_data *data)
{
	struct client_data **link = &device->client_data;

	while (*link != data)
		link = &(*link)->next;
	*link = data->next;
	rt_free(data);
}

/* May @client be added to @device? A module's client only if they have the same node */
static bool may_meet(const struct ib_device *device, const struct ib_client *client)
{
	return !client->module ||
	       is_of_node(device, client->module->node);
}

static int call_add(struct ib_device *device, const struct ib_client *client)
{
	if (client->module)
		return client->module->add(client, device);
	return client->add ? client->add(device) : 0;
}

static void add_client(struct ib_device *device, const struct ib_client *client)
{
	struct client_data *data = may_meet(device, client) ? rt_zalloc(sizeof(*data)) : NULL;

	if (!data) /* no memory: the client is not added to this device */
		return;
	*data = (struct client_data){.next = device->client_data, .client = client};
	device->client_data = data;
	if (call_add(device, client) < 0)
		free_data(device, data);
}

static void remove_client(struct ib_device *device, struct client_data *data)
{
	const struct ib_client *client = data->client;

	if (client->module)
		client->module->remove(client, device, data->data);
	else if (client->remove)
		client->remove(device, data->data);
	free_data(device, data);
}

int ib_register_device(struct ib_device *device, const char *name)
{
	struct core_fabric *fabric;
	struct client_entry *entry;
	int ret = prepare(device, name);

	if (ret)
		return ret;
	fabric = fabric_get(device->rt);
	if (!fabric) {
		core_poll_destroy(device);
		core_cache_destroy(device);
		return -ENOMEM;
	}
	device->index = free_index(fabric, device);
	device->registered = true;
	list_add_tail(&device->node, &fabric->devices);
	list_add_tail(&device->name_node, bucket_of(fabric, device->node_name));
	list_for_each_entry(entry, &fabric->clients, node)
		add_client(device, entry->client);
	return 0;
}

void ib_unregister_device(struct ib_device *device)
{
	if (!device->registered)
		return;
	device->registered = false; /* no context can be created any more */
	while (device->client_data)
		remove_client(device, device->client_data);
	list_del(&device->node);
	list_del(&device->name_node);
	core_poll_destroy(device);
	core_events_drop(device);
	core_cache_destroy(device);
	core_fabric_put(core_fabric_of(device->rt));
}

/* --- clients --- */

static struct client_entry *find_entry(struct core_fabric *fabric, const struct ib_client *client)
{
	struct client_entry *entry;

	list_for_each_entry(entry, &fabric->clients, node)
		if (entry->client == client)
			return entry;
	return NULL;
}

int ib_register_client(struct rt *rt, const struct ib_client *client)
{
	struct core_fabric *fabric = fabric_get(rt);
	struct ib_device *device, *next;
	struct client_entry *entry;

	if (!fabric)
		return -ENOMEM;
	if (find_entry(fabric, client))
		return -EEXIST;
	entry = rt_zalloc(sizeof(*entry));
	if (!entry) {
		core_fabric_put(fabric);
		return -ENOMEM;
	}
	entry->client = client;
	list_add_tail(&entry->node, &fabric->clients);
	list_for_each_entry_safe(device, next, &fabric->devices, node)
		if (device->registered) /* otherwise it is being removed */
			add_client(device, client);
	return 0;
}

void ib_unregister_client(struct rt *rt, const struct ib_client *client)
{
	struct core_fabric *fabric = core_fabric_of(rt);
	struct client_entry *entry = fabric ? find_entry(fabric, client) : NULL;
	struct ib_device *device, *next;

	if (!entry)
		return;
	list_for_each_entry_safe(device, next, &fabric->devices, node) {
		struct client_data *data = find_data(device, client);
		if (data)
			remove_client(device, data);
	}
	list_del(&entry->node);
	rt_free(entry);
	core_fabric_put(fabric);
}

void ib_set_client_data(struct ib_device *device, const struct ib_client *client, void *data)
{
	struct client_data *entry = find_data(device, client);

	if (entry)
		entry->data = data;
}

void *ib_get_client_data(struct ib_device *device, const struct ib_client *client)
{
	struct client_data *entry = find_data(device, client);

	return entry ? entry->data : NULL;
}
