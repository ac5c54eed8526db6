/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Queries of port attributes, GID tables and P_Key tables, and cached copies of
 * these for callers that may not sleep. A copy is updated with each event of
 * the device, before handlers are called (event.c).
 */
#include "core/private.h"
#include "wire/packet.h"

/** struct ib_port_cache - the copies of one port's attributes and tables */
struct ib_port_cache {
	struct ib_port_attr attr;
	union ib_gid *gid; /* attr.gid_tbl_len entries */
	u16 *pkey;	   /* attr.pkey_tbl_len entries */
};

/* --- queries --- */

int ib_query_device(struct ib_device *device, struct ib_device_attr *attr)
{
	return device->ops->query_device(device, attr);
}

int ib_query_port(struct ib_device *device, u32 port_num, struct ib_port_attr *attr)
{
	union ib_gid gid;
	int ret;

	if (!rdma_is_port_valid(device, port_num))
		return -EINVAL;
	memset(attr, 0, sizeof(*attr));
	ret = device->ops->query_port(device, port_num, attr);
	if (ret)
		return ret;
	ret = device->ops->query_gid(device, port_num, 0, &gid);
	if (!ret)
		attr->subnet_prefix = be64_to_cpu(gid.global.subnet_prefix);
	return ret;
}

int ib_query_gid(struct ib_device *device, u32 port_num, int index, union ib_gid *gid)
{
	if (!rdma_is_port_valid(device, port_num) || index < 0)
		return -EINVAL;
	return device->ops->query_gid(device, port_num, index, gid);
}

int ib_query_pkey(struct ib_device *device, u32 port_num, u16 index, u16 *pkey)
{
	if (!rdma_is_port_valid(device, port_num))
		return -EINVAL;
	return device->ops->query_pkey(device, port_num, index, pkey);
}

int ib_modify_device(struct ib_device *device, int mask, struct ib_device_modify *modify)
{
	if (!device->ops->modify_device)
		return -EOPNOTSUPP;
	return device->ops->modify_device(device, mask, modify);
}

int ib_modify_port(struct ib_device *device, u32 port_num, int mask,
		   struct ib_port_modify *modify)
{
	if (!rdma_is_port_valid(device, port_num))
		return -EINVAL;
	if (!device->ops->modify_port)
		return -EOPNOTSUPP;
	return device->ops->modify_port(device, port_num, mask, modify);
}

/* --- the copies --- */

static struct ib_port_cache *cache_of(struct ib_device *device, u32 port_num)
{
	if (!device->cache || !rdma_is_port_valid(device, port_num))
		return NULL;
	return &device->cache[port_num - rdma_start_port(device)];
}

static u32 num_ports(const struct ib_device *device)
{
	return rdma_end_port(device) - rdma_start_port(device) + 1;
}

static int read_tables(struct ib_device *device, u32 port_num, struct ib_port_cache *cache)
{
	int ret = 0;

	for (int i = 0; i < cache->attr.gid_tbl_len && !ret; i++)
		ret = ib_query_gid(device, port_num, i, &cache->gid[i]);
	for (int i = 0; i < cache->attr.pkey_tbl_len && !ret; i++)
		ret = ib_query_pkey(device, port_num, (u16)i, &cache->pkey[i]);
	return ret;
}

/* The lengths of a port's tables never change. */
static int refresh(struct ib_device *device, u32 port_num)
{
	struct ib_port_cache *cache = cache_of(device, port_num);
	struct ib_port_attr attr;
	int ret = ib_query_port(device, port_num, &attr);

	if (ret)
		return ret;
	if (!cache->gid) {
		cache->gid = rt_zalloc(sizeof(*cache->gid) * (size_t)MAX(attr.gid_tbl_len, 1));
		cache->pkey = rt_zalloc(sizeof(*cache->pkey) * (size_t)MAX(attr.pkey_tbl_len, 1));
		if (!cache->gid || !cache->pkey)
			return -ENOMEM;
	}
	cache->attr = attr;
	return read_tables(device, port_num, cache);
}

int core_cache_create(struct ib_device *device)
{
	device->cache = rt_zalloc(num_ports(device) * sizeof(*device->cache));
	if (!device->cache)
		return -ENOMEM;
	for (u32 p = rdma_start_port(device); p <= rdma_end_port(device); p++) {
		int ret = refresh(device, p);
		if (ret) {
			core_cache_destroy(device);
			return ret;
		}
	}
	return 0;
}

void core_cache_destroy(struct ib_device *device)
{
	for (u32 i = 0; device->cache && i < num_ports(device); i++) {
		rt_free(device->cache[i].gid);
		rt_free(device->cache[i].pkey);
	}
	rt_free(device->cache);
	device->cache = NULL;
}

void core_cache_update(struct ib_device *device, const struct ib_event *event)
{
	if (ib_subject_of_event(event->event) == IB_EVENT_OF_PORT &&
	    cache_of(device, event->element.port_num))
		refresh(device, event->element.port_num);
}

const struct ib_port_attr *core_cached_port(struct ib_device *device, u32 port_num)
{
	struct ib_port_cache *cache = cache_of(device, port_num);

	return cache ? &cache->attr : NULL;
}

int ib_get_cached_gid(struct ib_device *device, u32 port_num, int index, union ib_gid *gid)
{
	struct ib_port_cache *cache = cache_of(device, port_num);

	if (!cache || index < 0 || index >= cache->attr.gid_tbl_len)
		return -EINVAL;
	*gid = cache->gid[index];
	return 0;
}

int ib_get_cached_pkey(struct ib_device *device, u32 port_num, int index, u16 *pkey)
{
	struct ib_port_cache *cache = cache_of(device, port_num);

	if (!cache || index < 0 || index >= cache->attr.pkey_tbl_len)
		return -EINVAL;
	*pkey = cache->pkey[index];
	return 0;
}

int ib_get_cached_lmc(struct ib_device *device, u32 port_num, u8 *lmc)
{
	struct ib_port_cache *cache = cache_of(device, port_num);

	if (!cache)
		return -EINVAL;
	*lmc = cache->attr.lmc;
	return 0;
}

int ib_get_cached_port_state(struct ib_device *device, u32 port_num, enum ib_port_state *state)
{
	struct ib_port_cache *cache = cache_of(device, port_num);

	if (!cache)
		return -EINVAL;
	*state = cache->attr.state;
	return 0;
}

/* --- searches: one for the live and one for the copied tables --- */

typedef int (*gid_reader)(struct ib_device *device, u32 port_num, int index, union ib_gid *gid);

static int find_gid(struct ib_device *device, const union ib_gid *gid, u32 *port_num, u16 *index,
		    gid_reader read)
{
	union ib_gid entry;

	for (u32 p = rdma_start_port(device); p <= rdma_end_port(device); p++) {
		int len = cache_of(device, p) ? cache_of(device, p)->attr.gid_tbl_len : 0;

		for (int i = 0; i < len; i++) {
			if (read(device, p, i, &entry) || memcmp(&entry, gid, sizeof(entry)))
				continue;
			*port_num = p;
			if (index)
				*index = (u16)i;
			return 0;
		}
	}
	return -ENOENT;
}

int ib_find_gid(struct ib_device *device, const union ib_gid *gid, u32 *port_num, u16 *index)
{
	return find_gid(device, gid, port_num, index, ib_query_gid);
}

int ib_find_cached_gid(struct ib_device *device, const union ib_gid *gid, u32 *port_num,
		       u16 *index)
{
	return find_gid(device, gid, port_num, index, ib_get_cached_gid);
}

static int query_pkey(struct ib_device *device, u32 port_num, int index, u16 *pkey)
{
	return ib_query_pkey(device, port_num, (u16)index, pkey);
}

/* 10.9.1.1: the low 15 bits of a P_Key name the partition; the highest bit means full membership */
static int find_pkey(struct ib_device *device, u32 port_num, u16 pkey, u16 *index,
		     int (*read)(struct ib_device *, u32, int, u16 *))
{
	struct ib_port_cache *cache = cache_of(device, port_num);
	int limited = -1;
	u16 entry;

	if (!cache)
		return -EINVAL;
	for (int i = 0; i < cache->attr.pkey_tbl_len; i++) {
		if (read(device, port_num, i, &entry) || !wire_pkeys_alike(entry, pkey))
			continue;
		if (entry & WIRE_PKEY_FULL) {
			*index = (u16)i;
			return 0;
		}
		if (limited < 0)
			limited = i;
	}
	if (limited < 0)
		return -ENOENT;
	*index = (u16)limited;
	return 0;
}

int ib_find_pkey(struct ib_device *device, u32 port_num, u16 pkey, u16 *index)
{
	return find_pkey(device, port_num, pkey, index, query_pkey);
}

int ib_find_cached_pkey(struct ib_device *device, u32 port_num, u16 pkey, u16 *index)
{
	return find_pkey(device, port_num, pkey, index, ib_get_cached_pkey);
}
