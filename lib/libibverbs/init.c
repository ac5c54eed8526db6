/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The list of devices: the adapters of one node of one fabric, which the environment names
 * (SOFTIB_DIR, SOFTIB_NODE). Without SOFTIB_DIR the list is empty, and a message on stderr says
 * so. An ibv_device is the same pointer in every list and is never freed, because programs
 * compare and keep the pointers.
 */
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>

#include "abi/hint.h"
#include "soft.h"

static pthread_mutex_t devices_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(devices); /* --- protected by devices_lock --- */

static bool same_device(const struct soft_device *dev, const char *dir, const char *node,
			const struct abi_device_info *info)
{
	return !strcmp(dev->dir, dir) && !strcmp(dev->node, node) &&
	       !strcmp(dev->info.name, info->name) && dev->info.node_guid == info->node_guid;
}

static struct soft_device *make_device(const char *dir, const char *node,
				       const struct abi_device_info *info)
{
	struct soft_device *dev = calloc(1, sizeof(*dev));

	if (!dev)
		return NULL;
	dev->ibv.node_type = IBV_NODE_CA;
	dev->ibv.transport_type = IBV_TRANSPORT_IB;
	snprintf(dev->ibv.name, sizeof(dev->ibv.name), "%s", info->name);
	snprintf(dev->ibv.dev_name, sizeof(dev->ibv.dev_name), "uverbs%u", info->index);
	snprintf(dev->ibv.dev_path, sizeof(dev->ibv.dev_path),
		 "%s/class/infiniband_verbs/%.40s", ibv_get_sysfs_path(), dev->ibv.dev_name);
	snprintf(dev->ibv.ibdev_path, sizeof(dev->ibv.ibdev_path), "%s/class/infiniband/%.63s",
		 ibv_get_sysfs_path(), dev->ibv.name);
	dev->not_a_provider = dev;
	snprintf(dev->dir, sizeof(dev->dir), "%s", dir);
	snprintf(dev->node, sizeof(dev->node), "%s", node);
	list_add_tail(&dev->entry, &devices);
	return dev;
}

static struct ibv_device *find_device(const char *dir, const char *node,
				      const struct abi_device_info *info)
{
	struct soft_device *dev;

	list_for_each_entry(dev, &devices, entry) {
		if (same_device(dev, dir, node, info))
			goto found;
	}
	dev = make_device(dir, node, info);
	if (!dev)
		return NULL;
found:
	dev->info = *info;
	return &dev->ibv;
}

static void terminate(struct abi_device_info *info)
{
	info->name[sizeof(info->name) - 1] = '\0';
	info->node_desc[sizeof(info->node_desc) - 1] = '\0';
	info->fw_ver[sizeof(info->fw_ver) - 1] = '\0';
	info->board_id[sizeof(info->board_id) - 1] = '\0';
}

/* Print a message if a fabric was named but does not answer. The program itself will report only
 * that it found no device. */
static void explain(const char *dir, const char *node, int rc)
{
	if (rc == -ENOENT)
		fprintf(stderr,
			"libibverbs: no adapter on node \"%s\" (%s) of the fabric in %s: a "
			"fault pulled it ('softib fault list'), or the name is wrong\n",
			node, ABI_ENV_NODE, dir);
	else if (rc != -ETIMEDOUT) /* which was said */
		fprintf(stderr, "libibverbs: cannot reach softibd in %s (%s): %s\n", dir,
			ABI_ENV_DIR, strerror(-rc));
}

/**
 * ibv_get_device_list() - the node's adapters
 * Return: a NULL-terminated array for ibv_free_device_list(); NULL and errno
 * Man page: ibv_get_device_list(3)
 */
EXPORT struct ibv_device **ibv_get_device_list(int *num_devices)
{
	const char *dir = getenv(ABI_ENV_DIR), *node = getenv(ABI_ENV_NODE);
	struct abi_device_info *infos = NULL;
	struct ibv_device **list;
	int n = 0, kept = 0;

	if (num_devices)
		*num_devices = 0;
	node = node ? node : "";
	if (dir && *dir)
		n = session_list(dir, node, &infos);
	else
		abi_say_no_fabric("libibverbs");
	if (n < 0) {
		explain(dir, node, n);
		n = 0;
	}
	list = calloc((size_t)n + 1, sizeof(*list));
	if (!list) {
		free(infos);
		return verbs_null(-ENOMEM);
	}
	pthread_mutex_lock(&devices_lock);
	for (int i = 0; i < n; i++) {
		terminate(&infos[i]);
		list[kept] = find_device(dir, node, &infos[i]);
		kept += list[kept] != NULL;
	}
	pthread_mutex_unlock(&devices_lock);
	free(infos);
	if (num_devices)
		*num_devices = kept;
	return list;
}

/** device_named() - an adapter of any node. Return: the device; NULL and errno: ENODEV, ENOMEM,
 *  ECONNREFUSED no softibd */
struct soft_device *device_named(const char *dir, const char *node, const char *name)
{
	struct abi_device_info *infos = NULL;
	struct ibv_device *device = NULL;
	int n = session_list(dir, node, &infos);
	int rc = n < 0 ? n : -ENODEV;

	pthread_mutex_lock(&devices_lock);
	for (int i = 0; i < n; i++) {
		terminate(&infos[i]);
		if (strcmp(infos[i].name, name))
			continue;
		device = find_device(dir, node, &infos[i]);
		rc = device ? 0 : -ENOMEM;
	}
	pthread_mutex_unlock(&devices_lock);
	if (n >= 0)
		free(infos);
	return rc ? verbs_null(rc) : container_of(device, struct soft_device, ibv);
}

EXPORT void ibv_free_device_list(struct ibv_device **list)
{
	free(list);
}

EXPORT const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

EXPORT __be64 ibv_get_device_guid(struct ibv_device *device)
{
	return htobe64(container_of(device, struct soft_device, ibv)->info.node_guid);
}

EXPORT int ibv_get_device_index(struct ibv_device *device)
{
	return (int)container_of(device, struct soft_device, ibv)->info.index;
}

int verbs_failed(int rc)
{
	errno = -rc;
	return -rc;
}
