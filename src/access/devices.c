/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The list of the adapters of a node, and the check of the message that opens one. */
#include "access/devices.h"

#include <stdio.h>
#include <string.h>

#include "access/listener.h"

#define BOARD_ID "softib"
#define LIST_MAX 64 /* adapters of one node */

/** struct listing - the answer to ABI_OPEN_LIST while adapters are added to it */
struct listing {
	struct abi_device_info info[LIST_MAX];
	unsigned int num;
	uint32_t next_umad;
};

static void describe(const struct ib_device *device, struct abi_device_info *info)
{
	*info = (struct abi_device_info){
		.board_id = BOARD_ID,
		.node_guid = be64_to_cpu(device->node_guid),
		.sys_image_guid = be64_to_cpu(device->attrs.sys_image_guid),
		.vendor_id = device->attrs.vendor_id,
		.vendor_part_id = device->attrs.vendor_part_id,
		.hw_ver = device->attrs.hw_ver,
		.num_ports = device->phys_port_cnt,
		.index = device->index,
	};
	snprintf(info->name, sizeof(info->name), "%s", device->name);
	snprintf(info->node_desc, sizeof(info->node_desc), "%.*s", ABI_NAME_BYTES - 1,
		 device->node_desc);
	snprintf(info->fw_ver, sizeof(info->fw_ver), "%s", device->attrs.fw_ver);
}

static int list_one(struct ib_device *device, void *ctx)
{
	struct listing *list = ctx;

	if (list->num == LIST_MAX)
		return 1;
	describe(device, &list->info[list->num]);
	list->info[list->num++].umad_base = list->next_umad;
	list->next_umad += device->phys_port_cnt;
	return 0;
}

int devices_answer_list(const struct rt *rt, int fd, const char *node)
{
	struct listing *list = rt_zalloc(sizeof(*list)); /* too large for the stack */
	int ret;

	if (!list)
		return endpoint_send(fd, -ENOMEM, NULL, 0, NULL, 0);
	ib_device_for_each_of_node(rt, node, list_one, list);
	ret = endpoint_send(fd, list->num ? 0 : -ENOENT, list->info,
			    list->num * sizeof(*list->info), NULL, 0);
	rt_free(list);
	return ret;
}

static int first_node(struct ib_device *device, void *ctx)
{
	*(const char **)ctx = device->node_name;
	return 1;
}

const char *devices_node(const struct rt *rt, const char *name)
{
	const char *node = NULL;

	if (name[0])
		return name;
	ib_device_for_each(rt, first_node, &node);
	return node;
}

static bool is_terminated(const char *name)
{
	return memchr(name, 0, ABI_NAME_BYTES) != NULL;
}

int devices_open_is_sound(const void *message, size_t bytes, struct abi_open *open)
{
	if (bytes != sizeof(*open))
		return -EINVAL;
	memcpy(open, message, sizeof(*open));
	if (open->magic != ABI_MAGIC || !is_terminated(open->node) ||
	    !is_terminated(open->device))
		return -EINVAL;
	return open->version == ABI_VERSION ? 0 : -EPROTONOSUPPORT;
}
