/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The fabric's host table (hosts.h). */
#include "daemon/hosts.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "runtime/rt.h"

struct hosts {
	struct rdma_hosts table;
	struct rt *rt;
	struct topo_plan plan;
	unsigned int num;
	char name[][IB_DEVICE_NAME_BYTES]; /* names of the hosts, from 0 */
};

/** struct walk - counts the ports of a node's adapters */
struct walk {
	struct ib_device *device; /* the device to find, or that was found */
	u32 port_num, before;	  /* before: number of ports of preceding adapters */
	bool found;
};

static int count_to_port(struct ib_device *device, void *ctx)
{
	struct walk *walk = ctx;
	u32 left = walk->port_num - walk->before;

	if (left >= device->phys_port_cnt) {
		walk->before += device->phys_port_cnt;
		return 0;
	}
	walk->device = device;
	walk->port_num = left + 1;
	walk->found = true;
	return 1;
}

static int count_to_device(struct ib_device *device, void *ctx)
{
	struct walk *walk = ctx;

	walk->found = device == walk->device;
	if (!walk->found)
		walk->before += device->phys_port_cnt;
	return walk->found;
}

static bool find_in_plan(const struct topo_plan *plan, const struct sockaddr *addr,
			 unsigned int *number, unsigned int *port)
{
	const struct sockaddr_in *in = (const void *)addr;
	const struct sockaddr_in6 *in6 = (const void *)addr;

	if (addr->sa_family == AF_INET6)
		return topo_plan_find_ipv6(plan, &in6->sin6_addr, number, port);
	return addr->sa_family == AF_INET &&
	       topo_plan_find_ipv4(plan, ntohl(in->sin_addr.s_addr), number, port);
}

static int find(void *ctx, const struct sockaddr *addr, struct ib_device **device,
		u32 *port_num)
{
	const struct hosts *hosts = ctx;
	unsigned int number, port;
	struct walk walk = {0};

	if (!find_in_plan(&hosts->plan, addr, &number, &port) || number > hosts->num)
		return -ENOENT;
	walk.port_num = port - 1;
	ib_device_for_each_of_node(hosts->rt, hosts->name[number - 1], count_to_port,
				   &walk);
	if (!walk.found)
		return -ENOENT;
	*device = walk.device;
	*port_num = walk.port_num;
	return 0;
}

static int number_of(const struct hosts *hosts, const char *node)
{
	for (unsigned int i = 0; i < hosts->num; i++)
		if (!strcmp(hosts->name[i], node))
			return (int)i + 1;
	return -ENOENT;
}

static int address(void *ctx, struct ib_device *device, u32 port_num, sa_family_t family,
		   struct sockaddr_storage *addr)
{
	const struct hosts *hosts = ctx;
	struct sockaddr_in *in = (struct sockaddr_in *)addr;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)addr;
	struct walk walk = {.device = device};
	int found = number_of(hosts, device->node_name);
	unsigned int number = (unsigned int)found, port;

	if (found < 0)
		return found;
	ib_device_for_each_of_node(hosts->rt, device->node_name, count_to_device, &walk);
	port = walk.before + port_num;
	memset(addr, 0, sizeof(*addr));
	addr->ss_family = family;
	if (family == AF_INET6)
		topo_plan_ipv6_of(&hosts->plan, number, port, &in6->sin6_addr);
	else
		in->sin_addr.s_addr =
			htonl(topo_plan_ipv4_of(&hosts->plan, number, port));
	return 0;
}

int hosts_create(struct rt *rt, const struct topology *topo, const struct topo_plan *plan,
		 struct hosts **out)
{
	struct hosts *hosts = rt_zalloc(sizeof(*hosts) +
					(size_t)topo->num_nodes * sizeof(hosts->name[0]));
	int ret;

	if (!hosts)
		return -ENOMEM;
	hosts->rt = rt;
	hosts->plan = *plan;
	hosts->table =
		(struct rdma_hosts){.ctx = hosts, .find = find, .address = address};
	for (int i = 0; i < topo->num_nodes; i++)
		if (topo->node[i].kind == TOPO_CA)
			snprintf(hosts->name[hosts->num++], IB_DEVICE_NAME_BYTES, "%s",
				 topo->node[i].name);
	ret = rdma_cm_set_hosts(rt, &hosts->table);
	if (ret)
		rt_free(hosts);
	else
		*out = hosts;
	return ret;
}

void hosts_destroy(struct hosts *hosts)
{
	rdma_cm_set_hosts(hosts->rt, NULL);
	rt_free(hosts);
}
