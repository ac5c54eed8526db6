/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Queries about an id of the RDMA CM: addresses, GIDs and paths. */
#include <netinet/in.h>
#include <string.h>

#include "access/marshall.h"
#include "access/ucma_private.h"
#include "rdma/ib.h"

int ucma_query_route(struct ucma_call *call)
{
	struct rdma_ucm_query_route_resp resp = {0};
	const struct rdma_cm_id *cm_id = call->id->cm_id;

	memcpy(&resp.src_addr, &cm_id->route.addr.src_addr, sizeof(resp.src_addr));
	memcpy(&resp.dst_addr, &cm_id->route.addr.dst_addr, sizeof(resp.dst_addr));
	if (cm_id->device) {
		resp.node_guid = cm_id->device->node_guid;
		resp.port_num = (u8)cm_id->port_num;
		memcpy(resp.ib_route[0].dgid, cm_id->route.dgid.raw, 16);
		memcpy(resp.ib_route[0].sgid, cm_id->route.sgid.raw, 16);
		resp.ib_route[0].pkey = cpu_to_be16(0xffff);
	}
	if (cm_id->route.path_rec)
		marshall_path(&resp.ib_route[0], cm_id->route.path_rec);
	resp.num_paths = (u32)cm_id->route.num_paths;
	/* Without ibdev_index in the response, librdmacm finds the adapter by its GUID. */
	ucma_respond(call, &resp, offsetof(struct rdma_ucm_query_route_resp, ibdev_index));
	return 0;
}

static size_t addr_bytes(const struct sockaddr_storage *addr)
{
	switch (addr->ss_family) {
	case AF_INET: return sizeof(struct sockaddr_in);
	case AF_INET6: return sizeof(struct sockaddr_in6);
	case AF_IB: return sizeof(struct sockaddr_ib);
	default: return 0;
	}
}

static void put_device(struct rdma_ucm_query_addr_resp *resp, const struct rdma_cm_id *cm_id)
{
	u16 pkey = 0;

	if (!cm_id->device)
		return;
	ib_get_cached_pkey(cm_id->device, cm_id->port_num, 0, &pkey);
	resp->node_guid = cm_id->device->node_guid;
	resp->port_num = (u8)cm_id->port_num;
	resp->pkey = cpu_to_be16(pkey);
}

static int query_addr(struct ucma_call *call)
{
	const struct rdma_addr *addr = &call->id->cm_id->route.addr;
	struct rdma_ucm_query_addr_resp resp = {
		.src_size = (u16)addr_bytes(&addr->src_addr),
		.dst_size = (u16)addr_bytes(&addr->dst_addr),
	};

	memcpy(&resp.src_addr, &addr->src_addr, resp.src_size);
	memcpy(&resp.dst_addr, &addr->dst_addr, resp.dst_size);
	put_device(&resp, call->id->cm_id);
	ucma_respond(call, &resp, offsetof(struct rdma_ucm_query_addr_resp, ibdev_index));
	return 0;
}

static void put_gid(struct __kernel_sockaddr_storage *to, const union ib_gid *gid, __be16 pkey)
{
	struct sockaddr_ib sib = {.sib_family = AF_IB, .sib_pkey = pkey};

	memcpy(&sib.sib_addr, gid, sizeof(sib.sib_addr));
	memcpy(to, &sib, sizeof(sib));
}

static int query_gid(struct ucma_call *call)
{
	const struct rdma_route *route = &call->id->cm_id->route;
	struct rdma_ucm_query_addr_resp resp = {
		.src_size = sizeof(struct sockaddr_ib),
		.dst_size = sizeof(struct sockaddr_ib),
	};

	put_device(&resp, call->id->cm_id);
	put_gid(&resp.src_addr, &route->sgid, resp.pkey);
	put_gid(&resp.dst_addr, &route->dgid, resp.pkey);
	ucma_respond(call, &resp, offsetof(struct rdma_ucm_query_addr_resp, ibdev_index));
	return 0;
}

static int query_path(struct ucma_call *call)
{
	const struct rdma_route *route = &call->id->cm_id->route;
	_Alignas(8) u8 out[sizeof(struct rdma_ucm_query_path_resp) +
			   sizeof(struct ib_path_rec_data)] = {0};
	struct rdma_ucm_query_path_resp *resp = (struct rdma_ucm_query_path_resp *)out;

	if (route->path_rec) {
		resp->num_paths = 1;
		resp->path_data[0].flags =
			IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL;
		ib_sa_pack_path(route->path_rec, resp->path_data[0].path_rec);
	}
	ucma_respond(call, out, resp->num_paths ? sizeof(out) : sizeof(*resp));
	return 0;
}

int ucma_query(struct ucma_call *call)
{
	static int (*const queries[])(struct ucma_call *call) = {
		[RDMA_USER_CM_QUERY_ADDR] = query_addr,
		[RDMA_USER_CM_QUERY_PATH] = query_path,
		[RDMA_USER_CM_QUERY_GID] = query_gid,
	};
	const struct rdma_ucm_query *cmd = call->in;

	return cmd->option < ARRAY_SIZE(queries) ? queries[cmd->option](call) : -ENOSYS;
}
