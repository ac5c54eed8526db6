/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Ids with addresses of the family AF_IB. Such an address has a GID, which identifies a port without
 * a host table. Requests have no IP header in their private data.
 */
#include "core/rdma_cm_priv.h"
#include "rdma/ib.h"

static struct sockaddr_ib *ib_of(const struct sockaddr_storage *addr)
{
	return (struct sockaddr_ib *)(uintptr_t)addr;
}

/* The port spaces that a service id may have, for each port space of an id. */
static const struct {
	enum rdma_ucm_port_space own, named;
} port_spaces[] = {
	{RDMA_PS_IB, RDMA_PS_IB},   {RDMA_PS_IB, RDMA_PS_TCP}, {RDMA_PS_IB, RDMA_PS_UDP},
	{RDMA_PS_TCP, RDMA_PS_TCP}, {RDMA_PS_UDP, RDMA_PS_UDP},
};

int rcm_ib_take_port_space(const struct rcm_id *id, struct sockaddr_storage *addr)
{
	struct sockaddr_ib *sib = ib_of(addr);
	u64 mask = be64_to_cpu(sib->sib_sid_mask), sid = be64_to_cpu(sib->sib_sid) & mask;

	for (size_t i = 0; i < ARRAY_SIZE(port_spaces); i++) {
		u64 space = (u64)port_spaces[i].named << 16;

		if (port_spaces[i].own != id->id.ps ||
		    ((sid ^ space) & mask & RDMA_IB_IP_PS_MASK))
			continue;
		sib->sib_sid = cpu_to_be64(space | (sid & RDMA_IB_IP_PORT_MASK));
		sib->sib_sid_mask = cpu_to_be64(~0ull);
		return 0;
	}
	return -EADDRNOTAVAIL;
}

/** struct search - the search for a port of a node */
struct search {
	const union ib_gid *gid; /* NULL: any active port matches */
	bool subnet;		 /* any port in the subnet of @gid matches, too */
	u16 pkey; /* the port has to have it; 0: any */
	struct ib_device *device;
	u32 port_num;
};

static bool has_gid(struct ib_device *device, u32 port_num, const struct search *s)
{
	struct ib_port_attr attr;
	union ib_gid own;

	if (ib_query_port(device, port_num, &attr))
		return false;
	if (!s->gid)
		return attr.state == IB_PORT_ACTIVE;
	for (int i = 0; i < attr.gid_tbl_len; i++) {
		if (ib_get_cached_gid(device, port_num, i, &own))
			break;
		if (!memcmp(own.raw, s->gid->raw, sizeof(own)))
			return true;
		if (s->subnet && attr.state == IB_PORT_ACTIVE &&
		    own.global.subnet_prefix == s->gid->global.subnet_prefix)
			return true;
	}
	return false;
}

static int look_at(struct ib_device *device, void *ctx)
{
	struct search *s = ctx;
	u16 index;
	u32 port;

	for (port = rdma_start_port(device); port <= rdma_end_port(device); port++) {
		if ((s->pkey && ib_find_cached_pkey(device, port, s->pkey, &index)) ||
		    !has_gid(device, port, s))
			continue;
		s->device = device;
		s->port_num = port;
		return 1;
	}
	return 0;
}

static int find(const struct rcm_id *id, struct search *s)
{
	ib_device_for_each_of_node(id->rt, id->node_name, look_at, s);
	return s->device ? 0 : -EADDRNOTAVAIL;
}

int rcm_find_gid(const struct rcm_id *id, const union ib_gid *gid, struct ib_device **device,
		 u32 *port_num)
{
	struct search s = {.gid = gid};
	int ret = find(id, &s);

	*device = s.device;
	*port_num = s.port_num;
	return ret;
}

static int attach(struct rcm_id *id, const struct search *s)
{
	int ret = ib_get_cached_gid(s->device, s->port_num, 0, &id->id.route.sgid);

	if (ret)
		return ret;
	id->pkey = s->pkey;
	rcm_attach(id, s->device, s->port_num);
	return 0;
}

int rcm_ib_bind(struct rcm_id *id, const struct sockaddr_storage *addr)
{
	struct search s = {.gid = (const union ib_gid *)&ib_of(addr)->sib_addr,
			   .pkey = be16_to_cpu(ib_of(addr)->sib_pkey)};
	int ret = s.pkey ? find(id, &s) : -EADDRNOTAVAIL;

	return ret ? ret : attach(id, &s);
}

/* Choose the source: the port that the id is bound to, or else a port in the destination's subnet.
 * For a multicast group or the node itself, any port will do. */
static int choose_source(struct rcm_id *id)
{
	struct rdma_addr *addr = &id->id.route.addr;
	struct sockaddr_ib *src = ib_of(&addr->src_addr), *dst = ib_of(&addr->dst_addr);
	struct search s = {.gid = (const union ib_gid *)&dst->sib_addr,
			   .subnet = true,
			   .pkey = be16_to_cpu(dst->sib_pkey)};
	int ret = 0;

	if (rcm_addr_is_multicast(&addr->dst_addr) || rcm_addr_is_anywhere(&addr->dst_addr))
		s.gid = NULL;
	if (!id->id.device)
		ret = !s.pkey || find(id, &s) ? -ENETUNREACH : attach(id, &s);
	if (ret)
		return ret;
	memcpy(&src->sib_addr, &id->id.route.sgid, sizeof(src->sib_addr));
	src->sib_pkey = dst->sib_pkey;
	return 0;
}

int rcm_ib_find_way(struct rcm_id *id)
{
	struct rdma_route *route = &id->id.route;
	int ret = choose_source(id);

	if (ret)
		return ret;
	if (rcm_addr_is_anywhere(&route->addr.dst_addr))
		route->dgid = route->sgid;
	else
		memcpy(&route->dgid, &ib_of(&route->addr.dst_addr)->sib_addr, sizeof(route->dgid));
	return 0;
}

static void put(struct sockaddr_storage *to, const union ib_gid *gid, __be16 pkey)
{
	struct sockaddr_ib *sib = ib_of(to);

	memset(to, 0, sizeof(*to));
	sib->sib_family = AF_IB;
	sib->sib_pkey = pkey;
	memcpy(&sib->sib_addr, gid, sizeof(sib->sib_addr));
}

void rcm_ib_addr_of_path(const struct sa_path_rec *path, __be64 service_id,
			 struct rdma_addr *addr)
{
	put(&addr->src_addr, &path->sgid, path->pkey);
	ib_of(&addr->src_addr)->sib_sid = service_id;
	ib_of(&addr->src_addr)->sib_sid_mask = cpu_to_be64(~0ull);
	put(&addr->dst_addr, &path->dgid, path->pkey);
}
