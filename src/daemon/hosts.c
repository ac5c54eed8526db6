/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The fabric's host table (hosts.h). */
#include "daemon/hosts.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "fabric/ethernet.h"
#include "runtime/rt.h"

struct hosts {
	struct rdma_hosts table;
	struct rt *rt;
	struct fabric *fab;
	const struct topology *topo;
	struct topo_plan plan;
	const struct fab_vlans *vlans;
	unsigned int num;
	int first[]; /* index of each host's first adapter, from host 1 */
};

#define IPV4_AT 12 /* offset of the IPv4 address in a GID */
static const union wire_gid ipv4_mapped = {.raw = {[10] = 0xff, [11] = 0xff}};

/* @network: number of the network: the port, or a number for a VLAN of it (topo_plan_network()) */
static bool find_in_plan(const struct topo_plan *plan, const struct sockaddr *addr,
			 unsigned int *number, unsigned int *network)
{
	const struct sockaddr_in *in = (const void *)addr;
	const struct sockaddr_in6 *in6 = (const void *)addr;

	if (addr->sa_family == AF_INET6)
		return topo_plan_find_ipv6(plan, &in6->sin6_addr, number, network);
	return addr->sa_family == AF_INET &&
	       topo_plan_find_ipv4(plan, ntohl(in->sin_addr.s_addr), number, network);
}

/* Return: the device of the adapter @node; NULL while it is unplugged */
static struct ib_device *device_of(const struct hosts *hosts, int node)
{
	char name[IB_DEVICE_NAME_BYTES];

	snprintf(name, sizeof(name), "softib%u", hosts->topo->node[node].device);
	return ib_device_get_by_name(hosts->rt, topo_host_name(hosts->topo, node), name);
}

/* Has the port an interface in this VLAN? @vlan: 0: the untagged interface */
static bool is_in(const struct hosts *hosts, int node, unsigned int port, unsigned int vlan)
{
	return !vlan || (hosts->topo->node[node].port[port].ethernet &&
			 fab_ethernet_is_member(hosts->fab, node, (int)port, vlan));
}

/* has it an address there by the plan? */
static bool is_planned(const struct hosts *hosts, int node, unsigned int vlan)
{
	return fab_vlans_has(hosts->vlans, node, vlan);
}

/* Convert an IP address to the GID of RoCE. Return: false: it is not an IP address */
static bool gid_of(const struct sockaddr *addr, union wire_gid *gid)
{
	const struct sockaddr_in *in = (const void *)addr;
	const struct sockaddr_in6 *in6 = (const void *)addr;

	*gid = ipv4_mapped;
	if (addr->sa_family == AF_INET)
		memcpy(gid->raw + IPV4_AT, &in->sin_addr, sizeof(in->sin_addr));
	else if (addr->sa_family == AF_INET6)
		memcpy(gid->raw, &in6->sin6_addr, sizeof(gid->raw));
	else
		return false;
	return true;
}

/** struct place - the interface that has an address
 *  @network: its port, counted over all adapters of the host; @vlan: 0: untagged */
struct place {
	int node; /* the adapter */
	unsigned int port, network, vlan;
};

static bool find_by_plan(const struct hosts *hosts, const struct sockaddr *addr, struct place *at)
{
	unsigned int number;

	if (!find_in_plan(&hosts->plan, addr, &number, &at->network) || number > hosts->num)
		return false;
	at->vlan = topo_plan_vlan(&hosts->plan, &at->network);
	at->port = at->network;
	at->node = topo_host_adapter(hosts->topo, hosts->first[number - 1], &at->port);
	return at->node >= 0 && is_planned(hosts, at->node, at->vlan) &&
	       is_in(hosts, at->node, at->port, at->vlan);
}

/* Find the interface that has @addr. Return: false: no interface has it */
static bool find_place(const struct hosts *hosts, const struct sockaddr *addr, struct place *at)
{
	union wire_gid gid;

	if (find_by_plan(hosts, addr, at))
		return true;
	if (!gid_of(addr, &gid) ||
	    !fab_ethernet_find_port(hosts->fab, &gid, &at->node, &at->port, &at->vlan))
		return false;
	at->network = hosts->topo->node[at->node].ports_before + at->port;
	return true;
}

static int find(void *ctx, const struct sockaddr *addr, struct ib_device **device,
		u32 *port_num)
{
	const struct hosts *hosts = ctx;
	struct ib_device *found;
	struct place at;

	found = find_place(hosts, addr, &at) ? device_of(hosts, at.node) : NULL;
	if (!found)
		return -ENOENT;
	*device = found;
	*port_num = at.port;
	return 0;
}

static void address_in(const struct hosts *hosts, unsigned int number, unsigned int network,
		       sa_family_t family, struct sockaddr_storage *addr)
{
	struct sockaddr_in *in = (struct sockaddr_in *)addr;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)addr;

	memset(addr, 0, sizeof(*addr));
	addr->ss_family = family;
	if (family == AF_INET6)
		topo_plan_ipv6_of(&hosts->plan, number, network, &in6->sin6_addr);
	else
		in->sin_addr.s_addr = htonl(topo_plan_ipv4_of(&hosts->plan, number, network));
}

/* Return: the first port of the host with this link layer, counted over all adapters of the host; 0:
 * none */
static unsigned int first_with_link(const struct topology *topo, int host, bool ethernet)
{
	for (int i = host; i >= 0; i = topo->node[i].next)
		for (unsigned int p = 1; p <= topo->node[i].num_ports; p++)
			if (topo->node[i].port[p].ethernet == ethernet)
				return topo->node[i].ports_before + p;
	return 0;
}

static unsigned int common_bits(const uint8_t a[16], const uint8_t b[16])
{
	unsigned int n = 0;

	while (n < 128 && !((a[n / 8] ^ b[n / 8]) & 0x80 >> n % 8))
		n++;
	return n;
}

static bool is_ipv4(const union wire_gid *gid)
{
	return !memcmp(gid->raw, ipv4_mapped.raw, IPV4_AT);
}

/* Choose the source address for @dst from the port's address in the plan and further addresses of its
 * interface: the one with the longest matching prefix (RFC 6724 section 5, rule 8). */
static void source_for(const struct hosts *hosts, int node, unsigned int port, unsigned int vlan,
		       const struct sockaddr *dst, struct sockaddr_storage *src)
{
	const struct topo_node *nd = &hosts->topo->node[node];
	struct fab_roce_gid gids[FAB_ROCE_GIDS];
	bool found = is_planned(hosts, node, vlan);
	unsigned int n, best = 0;
	union wire_gid to;

	address_in(hosts, nd->number,
		   topo_plan_network(&hosts->plan, nd->ports_before + port, found ? vlan : 0),
		   dst->sa_family, src);
	if (!nd->port[port].ethernet || !gid_of(dst, &to))
		return;
	n = fab_ethernet_gids(hosts->fab, node, (int)port, gids);
	for (unsigned int i = 0; i < n; i++) {
		unsigned int bits = common_bits(gids[i].gid.raw, to.raw);

		if (gids[i].path != vlan || is_ipv4(&gids[i].gid) != is_ipv4(&to) ||
		    (found && bits <= best))
			continue;
		found = true;
		best = bits;
		if (dst->sa_family == AF_INET)
			memcpy(&((struct sockaddr_in *)src)->sin_addr, gids[i].gid.raw + IPV4_AT, 4);
		else
			memcpy(&((struct sockaddr_in6 *)src)->sin6_addr, gids[i].gid.raw, 16);
	}
}

/* Find the port of a host by which @dst outside of the fabric is reached: the one whose network the plan has @dst in, or else its
 * first of Ethernet. Return: false: nobody has shown that he has @dst, and it is in no network of the plan either */
static bool find_outside(const struct hosts *hosts, int own, const struct sockaddr *dst, struct place *at)
{
	unsigned int number, vlan;
	union wire_gid gid;
	bool planned = find_in_plan(&hosts->plan, dst, &number, &at->network), known;

	if (!fab_ethernet_has_outlet(hosts->fab) || !gid_of(dst, &gid))
		return false;
	at->vlan = planned ? topo_plan_vlan(&hosts->plan, &at->network) : 0;
	at->port = planned ? at->network : 0;
	at->node = at->port ? topo_host_adapter(hosts->topo, own, &at->port) : -1;
	known = fab_ethernet_find_outside(hosts->fab, &gid, &vlan);
	if (known)
		at->vlan = vlan;
	if (known && (at->node < 0 || !hosts->topo->node[at->node].port[at->port].ethernet)) {
		at->port = first_with_link(hosts->topo, own, true);
		at->node = topo_host_adapter(hosts->topo, own, &at->port);
	}
	return at->node >= 0 && hosts->topo->node[at->node].port[at->port].ethernet &&
	       is_in(hosts, at->node, at->port, at->vlan);
}

/* Find the port that leads to @dst, and its address. Port i of every host is in network i, so the
 * port has the number of the destination's network. If it has another link layer than the
 * destination, use the host's first port with the same link layer. */
static int toward(void *ctx, const char *node, const struct sockaddr *dst,
		  struct ib_device **device, u32 *port_num, struct sockaddr_storage *src)
{
	const struct hosts *hosts = ctx;
	const struct topology *topo = hosts->topo;
	int own = topo_find(topo, node), i;
	struct place to;
	unsigned int port;
	bool ethernet;

	if (own < 0)
		return -ENOENT;
	own = topo->node[own].host;
	if (!find_place(hosts, dst, &to)) {
		if (!find_outside(hosts, own, dst, &to))
			return -ENOENT;
		to.network = hosts->topo->node[to.node].ports_before + to.port;
	}
	ethernet = topo->node[to.node].port[to.port].ethernet;
	port = to.network;
	i = topo_host_adapter(topo, own, &port);
	if (i < 0 || topo->node[i].port[port].ethernet != ethernet) {
		port = first_with_link(topo, own, ethernet);
		i = topo_host_adapter(topo, own, &port);
	}
	*device = i < 0 || !is_in(hosts, i, port, to.vlan) ? NULL : device_of(hosts, i);
	if (!*device)
		return -ENOENT;
	*port_num = port;
	source_for(hosts, i, port, to.vlan, dst, src);
	return 0;
}

/* Return: the adapter of @device in the topology; NULL */
static const struct topo_node *adapter_of(const struct hosts *hosts,
					  const struct ib_device *device)
{
	int i = topo_find(hosts->topo, device->node_name);

	while (i >= 0 && device_of(hosts, i) != device)
		i = hosts->topo->node[i].next;
	return i < 0 ? NULL : &hosts->topo->node[i];
}

static int outside(void *ctx, struct ib_device *device, u32 port_num, const struct sockaddr *addr)
{
	const struct hosts *hosts = ctx;
	const struct topo_node *adapter = adapter_of(hosts, device);
	struct place at;
	union wire_gid gid;
	unsigned int vlan;

	if (!adapter || !adapter->port[port_num].ethernet || !find_outside(hosts, adapter->host, addr, &at))
		return -ENOENT;
	gid_of(addr, &gid);
	if (fab_ethernet_find_outside(hosts->fab, &gid, &vlan))
		return 0;
	return fab_ethernet_ask(hosts->fab, (int)(adapter - hosts->topo->node), (int)port_num, &gid, at.vlan) ? -EAGAIN :
														   -ENOENT;
}

static int address(void *ctx, struct ib_device *device, u32 port_num, sa_family_t family,
		   struct sockaddr_storage *addr)
{
	const struct hosts *hosts = ctx;
	const struct topo_node *adapter = adapter_of(hosts, device);

	if (!adapter)
		return -ENOENT;
	address_in(hosts, adapter->number, adapter->ports_before + port_num, family, addr);
	return 0;
}

int hosts_create(struct rt *rt, struct fabric *fab, const struct topo_plan *plan,
		 const struct fab_vlans *vlans, struct hosts **out)
{
	const struct topology *topo = fab_topology(fab);
	struct hosts *hosts = rt_zalloc(sizeof(*hosts) +
					(size_t)topo->num_nodes * sizeof(hosts->first[0]));
	int ret;

	if (!hosts)
		return -ENOMEM;
	hosts->rt = rt;
	hosts->fab = fab;
	hosts->topo = topo;
	hosts->plan = *plan;
	hosts->vlans = vlans;
	hosts->table = (struct rdma_hosts){
		.ctx = hosts, .find = find, .address = address, .toward = toward, .outside = outside};
	for (int i = 0; i < topo->num_nodes; i++) {
		const struct topo_node *nd = &topo->node[i];

		if (nd->kind != TOPO_CA)
			continue;
		hosts->first[nd->number - 1] = nd->host;
		hosts->num = MAX(hosts->num, nd->number);
	}
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
