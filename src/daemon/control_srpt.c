/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The operations srp_unit_add, srp_unit_remove and srp_targets: SRP targets of adapters
 * (ulp/srpt). The client opens the file of a unit. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/control_private.h"
#include "ulp/srpt/srpt.h"

/* Return: the adapter of "node"; NULL after answering with an error */
static struct ib_device *find_device(struct control_request *req, int *node)
{
	struct ib_device *device;

	*node = control_node(req);
	if (*node == -1)
		control_fail(req, "\"node\" is missing");
	if (*node < 0)
		return NULL;
	device = control_device(req, *node);
	if (!device)
		control_fail(req, "%s has no adapter: only adapters have SRP targets",
			     control_topology(req)->node[*node].name);
	return device;
}

/* --- srp_unit_add --- */

/** struct unit_call - a client that waits until the files of its unit have been examined */
struct unit_call {
	struct control_later later;
	struct control_client *client;
	struct srpt_adding *adding;
	const char *node;
	unsigned int slot;
	char name[];
};

static const char *why(int error)
{
	switch (error) {
	case -EINVAL:
		return "a unit is a file or block device of at least one block, with "
		       "\"block_bytes\" 512 or 4096";
	case -EACCES:
		return "the file is not open for writing: add the unit with "
		       "\"read_only\" "
		       "(':ro')";
	case -ENOSPC:
		return "the target has as many units as SCSI can address in one level: "
		       "remove one";
	case -EBUSY:
		return "a program on the node answers device management MADs, or a "
		       "listener "
		       "has the service id: end it first";
	case -ENOTSUP:
		return "the unit is memory, which keeps no reservations: leave out "
		       "':aptpl'";
	case -EBADMSG:
		return "the file of its reservations is damaged, or is something else. "
		       "Remove the file if the hosts may register again";
	case -ETXTBSY:
		return "another unit has the file of its reservations: name one of its "
		       "own (':aptpl=PATH')";
	case -EBADF:
		return "what its reservations are to be kept in is no file";
	case -EAGAIN:
		return "softibd still waits for the files of other units, whose servers do not "
		       "answer: end the commands that add them";
	case -ENODEV:
		return "the adapter is gone";
	default:
		return strerror(-error);
	}
}

/* Are all ports of the adapter ports of Ethernet? */
static bool is_ethernet(struct ib_device *device)
{
	struct ib_port_attr attr;

	for (u32 port = 1; port <= device->phys_port_cnt; port++)
		if (ib_query_port(device, port, &attr) ||
		    attr.link_layer != IB_LINK_LAYER_ETHERNET)
			return false;
	return true;
}

/* Return: the number "controller"; 0: it is absent; -1, after answering with an error */
static int find_slot(struct control_request *req)
{
	int64_t slot = control_number(req, "controller", UINT8_MAX);

	if (slot == -2)
		return -1;
	if (!slot || slot > SRP_CONTROLLERS) {
		control_fail(req, "the I/O controllers of an adapter have the numbers 1 to %d",
			     SRP_CONTROLLERS);
		return -1;
	}
	return slot < 0 ? 0 : (int)slot;
}

/* The connection has ended. */
static void drop(struct control_later *later)
{
	struct unit_call *call = container_of(later, struct unit_call, later);

	srpt_adding_forget(call->adding);
	free(call);
}

static void added(void *ctx, int result, unsigned int lun)
{
	struct unit_call *call = ctx;
	struct json_object *out = json_object_new_object();
	char text[400];

	if (result) {
		snprintf(text, sizeof(text), "%s: %s", call->name, why(result));
		control_put_text(out, "error", text);
	} else {
		control_put_text(out, "node", call->node);
		control_put_number(out, "controller", call->slot);
		control_put_number(out, "lun", lun);
	}
	control_client_answer(call->client, out);
	json_object_put(out);
	free(call);
}

/* Return: 0, and the answer comes later; -errno */
static int begin_adding(struct control_request *req, struct ib_device *device, int node,
			const struct srpt_unit_config *config)
{
	const size_t name_bytes = strlen(config->name) + 1;
	struct unit_call *call = calloc(1, sizeof(*call) + name_bytes);
	int ret;

	if (!call)
		return -ENOMEM;
	call->later.drop = drop;
	call->client = req->client;
	call->node = control_topology(req)->node[node].name;
	call->slot = config->slot;
	memcpy(call->name, config->name, name_bytes);
	ret = srpt_unit_add(device, config, added, call, &call->adding);
	if (ret) {
		free(call);
		return ret;
	}
	req->fd[0] = req->fd[1] = -1;
	control_client_later(req->client, &call->later);
	return 0;
}

bool control_op_srp_unit_add(struct control_request *req)
{
	int64_t block_bytes = control_number(req, "block_bytes", SCSI_MAX_BLOCK_BYTES);
	int slot = block_bytes == -2 ? -1 : find_slot(req);
	struct srpt_unit_config config = {
		.slot = slot ? (unsigned int)slot : 1,
		.fd = req->fd[0],
		.kept_fd = req->fd[1],
		.name = control_text(req, "name"),
		.block_bytes = block_bytes < 0 ? 512 : (u32)block_bytes,
		.read_only = control_flag(req, "read_only"),
		.write_through = control_flag(req, "write_through"),
		.sparse = control_flag(req, "sparse"),
	};
	struct ib_device *device;
	int node, ret;

	if (slot < 0)
		return true;
	device = find_device(req, &node);
	if (!device)
		return true;
	if (!config.name || config.fd < 0) {
		control_fail(req, "\"srp_unit_add\" needs a \"name\" and a descriptor of the unit");
		return true;
	}
	if (is_ethernet(device)) {
		control_fail(req, "%s: SRP needs the management of an InfiniBand fabric: the "
				  "adapter's ports are Ethernet", config.name);
		return true;
	}
	ret = begin_adding(req, device, node, &config);
	if (ret)
		control_fail(req, "%s: %s", config.name, why(ret));
	return ret != 0;
}

/* --- srp_unit_remove --- */

bool control_op_srp_unit_remove(struct control_request *req)
{
	int64_t lun = control_number(req, "lun", SCSI_MAX_LUNS - 1);
	struct ib_device *device;
	int slot = lun == -2 ? -1 : find_slot(req), node, ret;

	if (slot < 0)
		return true;
	device = find_device(req, &node);
	if (!device)
		return true;
	ret = lun < 0 ? srpt_remove(device, (unsigned int)slot)
		      : srpt_unit_remove(device, slot ? (unsigned int)slot : 1,
					 (unsigned int)lun);
	if (ret)
		control_fail(req, "%s has no such %s: 'softib srp target list' shows all",
			     control_topology(req)->node[node].name,
			     lun < 0 ? "target" : "unit");
	return true;
}

/* --- srp_targets --- */

static int put_unit(void *ctx, const struct srpt_unit_info *info)
{
	struct json_object *o = json_object_new_object();

	control_put_number(o, "lun", info->lun);
	control_put_text(o, "name", info->name);
	control_put_number(o, "bytes", info->bytes);
	control_put_number(o, "block_bytes", info->block_bytes);
	control_put_bool(o, "read_only", info->read_only);
	control_put_bool(o, "write_through", info->write_through);
	control_put_bool(o, "sparse", info->sparse);
	control_put_bool(o, "in_memory", info->in_memory);
	control_put_bool(o, "keeps_reservations", info->keeps_reservations);
	return json_object_array_add(ctx, o);
}

static int put_channel(void *ctx, const struct srpt_channel_info *info)
{
	struct json_object *o = json_object_new_object();
	char id[2 * sizeof(info->initiator) + 1], gid[INET6_ADDRSTRLEN];

	for (size_t i = 0; i < sizeof(info->initiator); i++)
		snprintf(id + 2 * i, 3, "%02x", info->initiator[i]);
	control_put_text(o, "initiator", id);
	control_put_text(o, "gid", inet_ntop(AF_INET6, info->gid.raw, gid, sizeof(gid)));
	control_put_number(o, "port", info->port_num);
	control_put_number(o, "qpn", info->qpn);
	control_put_number(o, "limit", info->limit);
	control_put_number(o, "outstanding", info->outstanding);
	control_put_number(o, "commands", info->commands);
	return json_object_array_add(ctx, o);
}

static void put_target(struct json_object *list, const char *node, unsigned int slot,
		       struct srpt *srpt)
{
	struct json_object *o = json_object_new_object();
	const unsigned long long guid = srpt_guid(srpt);
	char name[64];

	snprintf(name, sizeof(name), "SRP.T10:%016llx", guid);
	control_put_text(o, "node", node);
	control_put_number(o, "controller", slot);
	control_put_hex(o, "ioc_guid", guid, 16);
	control_put_hex(o, "service_id", srpt_service_id(srpt), 16);
	control_put_text(o, "service_name", name);
	srpt_each_unit(srpt, put_unit, control_put_list(o, "units"));
	srpt_each_channel(srpt, put_channel, control_put_list(o, "channels"));
	json_object_array_add(list, o);
}

bool control_op_srp_targets(struct control_request *req)
{
	const struct topology *topo = control_topology(req);
	struct json_object *list;
	int only = control_node(req);

	if (only == -2)
		return true;
	list = control_put_list(req->out, "targets");
	for (int i = 0; i < topo->num_nodes; i++) {
		struct ib_device *device =
			only < 0 || only == i ? control_device(req, i) : NULL;

		for (unsigned int slot = 1; device && slot <= SRP_CONTROLLERS; slot++) {
			struct srpt *srpt = srpt_find(device, slot);

			if (srpt)
				put_target(list, topo->node[i].name, slot, srpt);
		}
	}
	return true;
}
