/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What stands in the place of a subnet manager where links are Ethernet's (ethernet.h):
 * numbers for the stations, Active ports, and the tables of the switches. Unicast frames take
 * a shortest way, frames to all stations a spanning tree. Both are computed anew, in one piece
 * of deferred work, after links have come or gone.
 */
#include "fabric/ethernet_private.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "base/bytes.h"

#define RETRY_NS NSEC_PER_SEC

/* --- addresses --- */

#define MAC_PREFIX 0x02736900u
static const uint8_t link_local_prefix[8] = {0xfe, 0x80};
static const uint8_t ipv4_prefix[12] = {[10] = 0xff, [11] = 0xff};

bool fab_is_ethernet(const struct fabric *fab, int node, int port)
{
	return fab->ethernet && fab->topo->node[node].port[port].ethernet;
}

static uint16_t station_number(const struct fab_ethernet *eth, int node, int port)
{
	unsigned int place = eth->first[node];

	for (int p = 1; p < port; p++)
		place += eth->fab->topo->node[node].port[p].ethernet;
	return eth_number_at(eth, place);
}

/* the number of paths, with that of the untagged network */
static unsigned int num_paths(const struct fab_ethernet *eth)
{
	return 1u << eth->lmc;
}

uint16_t fab_ethernet_vlan(const struct fabric *fab, uint16_t number)
{
	return fab->ethernet->vlan_id[number & (num_paths(fab->ethernet) - 1)];
}

static bool is_in(const struct fab_ethernet *eth, unsigned int place, unsigned int path)
{
	return !path || eth->joined[place] >> (path - 1) & 1;
}

bool fab_ethernet_is_member(const struct fabric *fab, int node, int port, unsigned int path)
{
	return path < num_paths(fab->ethernet) &&
	       is_in(fab->ethernet, eth_place_of(fab->ethernet, station_number(fab->ethernet, node, port)), path);
}

static void mac_at(const struct fab_ethernet *eth, unsigned int place, uint8_t mac[FAB_MAC_BYTES])
{
	if (place >= eth->num_stations && place - eth->num_stations < eth->outside.num) {
		memcpy(mac, eth->outside.host[place - eth->num_stations].mac, FAB_MAC_BYTES);
		return;
	}
	memcpy(mac, eth->mac_prefix, FAB_MAC_PREFIX_BYTES);
	put_be16(mac + FAB_MAC_PREFIX_BYTES, (uint16_t)(place + 1));
}

void fab_ethernet_mac(const struct fabric *fab, uint16_t number, uint8_t mac[FAB_MAC_BYTES])
{
	mac_at(fab->ethernet, eth_place_of(fab->ethernet, number), mac);
}

void fab_ethernet_group_mac(const uint8_t gid[16], uint8_t mac[FAB_MAC_BYTES])
{
	mac[0] = mac[1] = 0x33;
	memcpy(mac + 2, gid + 12, 4);
}

int eth_own_place(const struct fab_ethernet *eth, const uint8_t mac[FAB_MAC_BYTES])
{
	unsigned int place = get_be16(mac + FAB_MAC_PREFIX_BYTES) - 1u;

	return memcmp(mac, eth->mac_prefix, FAB_MAC_PREFIX_BYTES) || place >= eth->num_stations ? -1 : (int)place;
}

uint16_t fab_ethernet_find_mac(const struct fabric *fab, const uint8_t mac[FAB_MAC_BYTES])
{
	int place = eth_own_place(fab->ethernet, mac);
	uint16_t outside = place < 0 ? eth_outside_find_mac(fab->ethernet, mac) : 0;

	if (place >= 0)
		return eth_number_at(fab->ethernet, (unsigned int)place);
	return outside ? outside : FAB_STATION_ALL;
}

/* RFC 4291, appendix A */
static void link_local_gid(const struct fab_ethernet *eth, unsigned int place, union wire_gid *gid)
{
	uint8_t mac[FAB_MAC_BYTES];

	mac_at(eth, place, mac);
	memcpy(gid->raw, link_local_prefix, 8);
	gid->raw[8] = mac[0] ^ 0x02;
	memcpy(gid->raw + 9, mac + 1, 2);
	gid->raw[11] = 0xff;
	gid->raw[12] = 0xfe;
	memcpy(gid->raw + 13, mac + 3, 3);
}

/* The interface of a VLAN has the MAC address of the port, and IP addresses of its own. */
static void gids_in_vlan(const struct fab_ethernet *eth, int node, int port, unsigned int v,
			 struct fab_roce_gid gids[FAB_ROCE_GIDS_EACH])
{
	union wire_gid address[FAB_ROCE_GIDS_EACH / 2] = {0};
	const struct topo_node *nd = &eth->fab->topo->node[node];
	unsigned int of_host = topo_plan_network(&eth->plan, nd->ports_before + (unsigned int)port, v);
	struct in6_addr in6;

	link_local_gid(eth, eth_place_of(eth, station_number(eth, node, port)), &address[0]);
	memcpy(address[1].raw, ipv4_prefix, sizeof(ipv4_prefix));
	put_be32(address[1].raw + sizeof(ipv4_prefix),
		 topo_plan_ipv4_of(&eth->plan, nd->number, of_host));
	topo_plan_ipv6_of(&eth->plan, nd->number, of_host, &in6);
	memcpy(address[2].raw, &in6, sizeof(in6));
	for (unsigned int i = 0; i < FAB_ROCE_GIDS_EACH; i++)
		gids[i] = (struct fab_roce_gid){.gid = address[i % ARRAY_SIZE(address)],
						.v2 = i < ARRAY_SIZE(address),
						.path = (uint8_t)v,
						.vlan_id = v ? eth->vlans.id[v - 1] : 0};
}

bool eth_gid_is_none(const union wire_gid *gid)
{
	static const union wire_gid none;

	return !memcmp(gid->raw, none.raw, sizeof(none.raw));
}

/* Return: entries up to the last that is not zero, @room at most */
static unsigned int gids_added(const struct fab_ethernet *eth, int node, int port,
			       struct fab_roce_gid *gids, unsigned int room)
{
	const struct eth_gid *added = eth->added[eth_place_of(eth, station_number(eth, node, port))];
	unsigned int last = 0;

	for (unsigned int i = 0; added && i < 2 * FAB_ROCE_ADDED && i < room; i++) {
		gids[i] = (struct fab_roce_gid){.gid = added[i / 2].gid,
						.v2 = !(i % 2),
						.path = added[i / 2].path,
						.vlan_id = eth->vlan_id[added[i / 2].path]};
		if (!eth_gid_is_none(&added[i / 2].gid))
			last = i + 1;
	}
	return last;
}

unsigned int fab_ethernet_gids(const struct fabric *fab, int node, int port,
			       struct fab_roce_gid gids[FAB_ROCE_GIDS])
{
	const struct fab_ethernet *eth = fab->ethernet;
	unsigned int n = 0;

	for (unsigned int v = 0; v <= eth->vlans.num; v++) {
		if (!fab_vlans_has(&eth->vlans, node, v))
			continue;
		gids_in_vlan(eth, node, port, v, gids + n);
		n += FAB_ROCE_GIDS_EACH;
	}
	return n + gids_added(eth, node, port, gids + n, FAB_ROCE_GIDS - n);
}

/* is it one of the entries that the port has by the plan and its MAC address? */
static bool is_planned(const struct fab_ethernet *eth, int node, int port, const struct eth_gid *a)
{
	struct fab_roce_gid own[FAB_ROCE_GIDS_EACH];

	if (!fab_vlans_has(&eth->vlans, node, a->path))
		return false;
	gids_in_vlan(eth, node, port, a->path, own);
	for (unsigned int i = 0; i < FAB_ROCE_GIDS_EACH; i++)
		if (!memcmp(own[i].gid.raw, a->gid.raw, sizeof(a->gid.raw)))
			return true;
	return false;
}

unsigned int eth_gid_find(const struct eth_gid *list, unsigned int num, const struct eth_gid *gid)
{
	unsigned int i = 0;

	while (i < num && (list[i].path != gid->path || memcmp(list[i].gid.raw, gid->gid.raw, sizeof(gid->gid.raw))))
		i++;
	return i;
}

static bool has_gid(const struct eth_gid *list, unsigned int num, const struct eth_gid *gid)
{
	return eth_gid_find(list, num, gid) < num;
}

/* Return: false: no free entry */
static bool add_gid(struct eth_gid *added, const struct eth_gid *a)
{
	for (unsigned int i = 0; i < FAB_ROCE_ADDED; i++)
		if (eth_gid_is_none(&added[i].gid)) {
			added[i] = *a;
			return true;
		}
	return false;
}

/* The entries of an address stay where they are. Return: true if an entry has changed */
static bool replace_added(struct fab_ethernet *eth, int node, int port, const struct eth_gid *want,
			  unsigned int num)
{
	unsigned int place = eth_place_of(eth, station_number(eth, node, port));
	struct eth_gid *added = eth->added[place];
	bool changed = false;

	for (unsigned int i = 0; added && i < FAB_ROCE_ADDED; i++)
		if (!eth_gid_is_none(&added[i].gid) && !has_gid(want, num, &added[i])) {
			added[i] = (struct eth_gid){.path = 0};
			changed = true;
		}
	for (unsigned int i = 0; i < num; i++) {
		if (is_planned(eth, node, port, &want[i]) || (added && has_gid(added, FAB_ROCE_ADDED, &want[i])))
			continue;
		if (!added)
			added = eth->added[place] = rt_zalloc(FAB_ROCE_ADDED * sizeof(*added));
		changed |= added && add_gid(added, &want[i]);
	}
	return changed;
}

static bool is_used(const struct fab_ethernet *eth, unsigned int path)
{
	for (unsigned int place = 0; place < eth->num_stations; place++)
		if (is_in(eth, place, path))
			return true;
	return path <= eth->vlans.num;
}

unsigned int eth_find_vlan(const struct fab_ethernet *eth, uint16_t vlan_id)
{
	for (unsigned int path = 1; path < eth->used_paths && vlan_id; path++)
		if (eth->vlan_id[path] == vlan_id && is_used(eth, path))
			return path;
	return 0;
}

/* Return: the path of a VLAN, which may be a new one; 0: all paths are used, or untagged */
static unsigned int get_vlan(struct fab_ethernet *eth, uint16_t vlan_id)
{
	unsigned int path = eth_find_vlan(eth, vlan_id);

	if (path || !vlan_id)
		return path;
	for (path = 1; path < num_paths(eth) && is_used(eth, path); path++)
		;
	if (path == num_paths(eth))
		return 0;
	eth->vlan_id[path] = vlan_id;
	eth->used_paths = MAX(eth->used_paths, path + 1);
	return path;
}

static uint8_t bit_of(unsigned int path)
{
	return path ? (uint8_t)(1u << (path - 1)) : 0;
}

static uint8_t planned_vlans(const struct fab_ethernet *eth, int node)
{
	return eth->vlans.num ? eth->vlans.member[node] : 0;
}

void fab_ethernet_set_added(struct fabric *fab, int node, int port,
			    const struct fab_roce_address *address, unsigned int num)
{
	struct fab_ethernet *eth = fab->ethernet;
	unsigned int place = eth_place_of(eth, station_number(eth, node, port)), kept = 0;
	struct eth_gid want[FAB_ROCE_GIDS];
	uint8_t before = eth->joined[place];
	uint8_t stays = planned_vlans(eth, node);

	for (unsigned int i = 0; i < num; i++)
		stays |= bit_of(eth_find_vlan(eth, address[i].vlan_id));
	eth->joined[place] = stays; /* what the port has left may be another VLAN's now */
	for (unsigned int i = 0; i < num && kept < ARRAY_SIZE(want); i++) {
		unsigned int path = get_vlan(eth, address[i].vlan_id);

		if (address[i].vlan_id && !path)
			continue;
		eth->joined[place] |= bit_of(path);
		want[kept++] = (struct eth_gid){.gid = address[i].gid, .path = (uint8_t)path};
	}
	if (replace_added(eth, node, port, want, kept))
		fab_changed(&fab->node[node].port[port], AG_CHANGED_GIDS);
	if (eth->joined[place] != before)
		rt_work_queue(fab->rt, &eth->work);
}

/* --- the MTU --- */

/* what RDMA has in front of and behind its payload, at most: GRH or IPv6, UDP, BTH, XRCETH, AtomicETH
 * and ICRC (A16, A17) */
#define ROCE_OVERHEAD                                                                          \
	(WIRE_GRH_BYTES + 8 + WIRE_BTH_BYTES + WIRE_XRCETH_BYTES + WIRE_ATOMIC_ETH_BYTES +     \
	 WIRE_ICRC_BYTES)

static uint8_t active_mtu_enc(unsigned int bytes)
{
	uint8_t enc = WIRE_MTU_4096;

	while (enc > WIRE_MTU_256 && (128u << enc) + ROCE_OVERHEAD > bytes)
		enc--;
	return enc;
}

void fab_ethernet_set_mtu(struct fabric *fab, int node, int num, unsigned int bytes)
{
	struct fab_port *port = &fab->node[node].port[num];
	uint16_t mtu = (uint16_t)MIN(bytes, (unsigned int)WIRE_FRAME_MTU_MAX);

	if (port->frame_mtu == mtu)
		return;
	port->frame_mtu = mtu;
	fab_ag_port(port)->neighbor_mtu_enc = active_mtu_enc(mtu);
	fab_changed(port, AG_CHANGED_ATTRIBUTES);
}

uint16_t fab_ethernet_mtu(const struct fabric *fab, int node, int port)
{
	return fab->node[node].port[port].frame_mtu;
}

/* --- who has an address --- */

/* @network: of the address by the plan; the VLAN must be @path */
static uint16_t planned_station(const struct fab_ethernet *eth, unsigned int number,
				unsigned int network, unsigned int path)
{
	unsigned int port = network;
	int node;

	if (!number || number > eth->num_hosts || topo_plan_vlan(&eth->plan, &port) != path)
		return 0;
	node = topo_host_adapter(eth->fab->topo, eth->host[number - 1], &port);
	return node < 0 || !fab_is_ethernet(eth->fab, node, (int)port) ||
			       !fab_vlans_has(&eth->vlans, node, path) ?
		       0 : (uint16_t)(station_number(eth, node, (int)port) + path);
}

static uint16_t local_station(const struct fab_ethernet *eth, const union wire_gid *gid,
			      unsigned int path)
{
	unsigned int place = get_be16(gid->raw + 14) - 1u;
	union wire_gid local;

	link_local_gid(eth, place, &local);
	return place < eth->num_stations && !memcmp(&local, gid, sizeof(local)) &&
			       is_in(eth, place, path) ?
		       (uint16_t)(eth_number_at(eth, place) + path) : 0;
}

/* who has it beside the addresses of the plan */
static uint16_t added_station(const struct fab_ethernet *eth, const union wire_gid *gid,
			      unsigned int path)
{
	const struct eth_gid wanted = {.gid = *gid, .path = (uint8_t)path};

	for (unsigned int place = 0; place < eth->num_stations; place++)
		if (eth->added[place] && has_gid(eth->added[place], FAB_ROCE_ADDED, &wanted))
			return (uint16_t)(eth_number_at(eth, place) + path);
	return 0;
}

static uint16_t station_by_plan(const struct fab_ethernet *eth, const union wire_gid *gid,
				unsigned int path)
{
	unsigned int adapter, network;
	struct in6_addr in6;

	if (!memcmp(gid->raw, link_local_prefix, sizeof(link_local_prefix)))
		return local_station(eth, gid, path);
	memcpy(&in6, gid->raw, sizeof(in6));
	if (!memcmp(gid->raw, ipv4_prefix, sizeof(ipv4_prefix)) ?
		    topo_plan_find_ipv4(&eth->plan, get_be32(gid->raw + sizeof(ipv4_prefix)),
					&adapter, &network) :
		    topo_plan_find_ipv6(&eth->plan, &in6, &adapter, &network))
		return planned_station(eth, adapter, network, path);
	return 0;
}

uint16_t eth_own_station(const struct fab_ethernet *eth, const union wire_gid *gid, unsigned int path)
{
	uint16_t number = station_by_plan(eth, gid, path);

	return number || eth_gid_is_none(gid) ? number : added_station(eth, gid, path);
}

uint16_t fab_ethernet_find_gid(const struct fabric *fab, const union wire_gid *gid,
			       unsigned int path)
{
	uint16_t number;

	if (gid->raw[0] == 0xff)
		return (uint16_t)(FAB_STATION_ALL + path);
	number = eth_own_station(fab->ethernet, gid, path);
	return number || eth_gid_is_none(gid) ? number : eth_outside_find_gid(fab->ethernet, gid, path);
}

bool fab_ethernet_find_outside(const struct fabric *fab, const union wire_gid *gid, unsigned int *path)
{
	for (*path = 0; fab->ethernet && *path < fab->ethernet->used_paths; (*path)++)
		if (eth_outside_find_gid(fab->ethernet, gid, *path))
			return true;
	return false;
}

bool fab_ethernet_find_port(const struct fabric *fab, const union wire_gid *gid, int *node,
			    unsigned int *port, unsigned int *path)
{
	const struct fab_port *station;
	uint16_t number = fab->ethernet ? eth_own_station(fab->ethernet, gid, 0) : 0;

	*path = 0;
	for (unsigned int v = 1; fab->ethernet && !number && v < fab->ethernet->used_paths; v++) {
		number = added_station(fab->ethernet, gid, v);
		*path = v;
	}
	if (!number)
		return false;
	station = fab->ethernet->station[eth_place_of(fab->ethernet, number)];
	*node = station->node;
	*port = station->num;
	return true;
}

bool fab_ethernet_may_send(const struct fabric *fab, int node, int port, uint16_t slid,
			   uint16_t dlid)
{
	unsigned int mask = num_paths(fab->ethernet) - 1;

	return !((slid ^ dlid) & mask) && fab_ethernet_is_member(fab, node, port, dlid & mask);
}

/* --- ports --- */

/* Return: true if the port now has an address or a state that it did not have */
static bool settle_port(struct ag_port *port, uint16_t number, uint8_t lmc)
{
	bool changed = number && port->lid != number;

	if (number) {
		port->lid = number;
		port->lmc = lmc;
	}
	if (port->state == WIRE_PORT_INIT || port->state == WIRE_PORT_ARMED) {
		port->state = WIRE_PORT_ACTIVE;
		changed = true;
	}
	return changed;
}

static void settle_ports(struct fab_ethernet *eth)
{
	struct fabric *fab = eth->fab;
	unsigned int place = 0;

	for (int n = 0; n < fab->num_nodes; n++) {
		bool is_switch = fab->node[n].ag->sw;

		for (unsigned int p = 1; p <= fab->node[n].ag->num_ports; p++)
			if (fab_is_ethernet(fab, n, (int)p) &&
			    settle_port(&fab->node[n].ag->port[p],
					is_switch ? 0 : eth_number_at(eth, place++), eth->lmc))
				fab_changed(&fab->node[n].port[p],
					    AG_CHANGED_ATTRIBUTES | AG_CHANGED_GIDS);
	}
}

/* --- the tables of the switches --- */

static bool is_ethernet_switch(const struct fabric *fab, int node)
{
	return fab->node[node].ag->sw && fab_is_ethernet(fab, node, 0);
}

/* the switch at the other end of a link that carries data; NULL */
static struct fab_port *next_switch(const struct fab_port *port)
{
	struct fab_port *peer = fab_peer(port);

	return peer && fab_is_switch(peer) && fab_ag_port(port)->state == WIRE_PORT_ACTIVE ? peer :
											     NULL;
}

/* Find the switches that a way leads to from @root, the nearest first, which are not in
 * eth->toward yet. Return: how many there are in eth->queue; the first is @root */
static int search(struct fab_ethernet *eth, int root)
{
	int taken = 0, found = 1;

	eth->queue[0] = root;
	eth->toward[root] = 0;
	while (taken < found) {
		struct fab_node *node = &eth->fab->node[eth->queue[taken++]];

		for (unsigned int p = 1; p <= node->ag->num_ports; p++) {
			const struct fab_port *next = next_switch(&node->port[p]);

			if (!next || eth->toward[next->node] != WIRE_LFT_NO_PORT)
				continue;
			eth->toward[next->node] = next->num;
			eth->queue[found++] = next->node;
		}
	}
	return found;
}

static void forget_search(struct fab_ethernet *eth)
{
	memset(eth->toward, WIRE_LFT_NO_PORT, (size_t)eth->fab->num_nodes);
}

/* Return: 0; -ENOMEM */
static int route_station(struct fab_ethernet *eth, uint16_t number, const struct fab_port *edge)
{
	int ret = 0;

	for (int n = 0; n < eth->fab->num_nodes && !ret; n++) {
		uint8_t out = edge ? eth->toward[n] : WIRE_LFT_NO_PORT;

		if (!is_ethernet_switch(eth->fab, n))
			continue;
		if (edge && n == edge->node)
			out = edge->num;
		ret = ag_lft_put(eth->fab->node[n].ag, number, out);
	}
	return ret;
}

/* the switch that a host outside is reached by; NULL */
static const struct fab_port *edge_of(const struct eth_host *host)
{
	const struct fab_port *near = host->near, *peer = near ? fab_peer(near) : NULL;

	return peer && fab_is_outlet(peer) && fab_is_switch(near) && fab_ag_port(near)->state == WIRE_PORT_ACTIVE ?
		       near : NULL;
}

/* A host outside is reached in all VLANs. Return: 0; -ENOMEM */
static int route_host(struct fab_ethernet *eth, unsigned int host)
{
	const struct fab_port *edge = edge_of(&eth->outside.host[host]);
	int ret = 0;

	forget_search(eth);
	if (edge)
		search(eth, edge->node);
	for (unsigned int v = 0; v < eth->used_paths && !ret; v++)
		ret = route_station(eth, (uint16_t)(eth_number_at(eth, eth->num_stations + host) + v), edge);
	return ret;
}

/* one search serves the stations of a switch, most of which follow each other */
static int route_stations(struct fab_ethernet *eth)
{
	int searched = -1, ret = 0;

	for (unsigned int i = 0; i < eth->num_stations && !ret; i++) {
		const struct fab_port *edge = next_switch(eth->station[i]);

		if (edge && edge->node != searched) {
			forget_search(eth);
			search(eth, edge->node);
			searched = edge->node;
		}
		for (unsigned int v = 0; v < eth->used_paths && !ret; v++)
			ret = route_station(eth, (uint16_t)(eth_number_at(eth, i) + v),
					    is_in(eth, i, v) ? edge : NULL);
	}
	for (unsigned int i = 0; i < eth->outside.num && !ret; i++)
		ret = route_host(eth, i);
	return ret;
}

/* is the link at @port in the spanning tree, or does it lead to a member of the VLAN? */
static bool spreads(const struct fab_ethernet *eth, const struct fab_port *port, unsigned int v)
{
	const struct fab_port *peer = fab_peer(port);

	if (!peer || fab_ag_port(port)->state != WIRE_PORT_ACTIVE)
		return false;
	if (fab_is_outlet(peer)) /* hosts there may be in any VLAN */
		return true;
	if (!fab_is_switch(peer))
		return fab_ethernet_is_member(eth->fab, peer->node, peer->num, v);
	return eth->toward[port->node] == port->num ||
	       eth->toward[peer->node] == peer->num;
}

static int spread_to_all(struct fab_ethernet *eth)
{
	struct fabric *fab = eth->fab;
	int ret = 0;

	forget_search(eth);
	for (int n = 0; n < fab->num_nodes; n++)
		if (is_ethernet_switch(fab, n) && eth->toward[n] == WIRE_LFT_NO_PORT)
			search(eth, n);
	for (int n = 0; n < fab->num_nodes; n++) {
		struct fab_node *node = &fab->node[n];

		if (!is_ethernet_switch(fab, n))
			continue;
		for (unsigned int p = 1; p <= node->ag->num_ports; p++)
			for (unsigned int v = 0; v < eth->used_paths && !ret; v++)
				ret = ag_mft_put(node->ag, (uint16_t)(FAB_STATION_ALL + v), (uint8_t)p,
						 spreads(eth, &node->port[p], v));
	}
	return ret;
}

static void try_again(struct rt_timer *timer)
{
	rt_work_queue(timer->rt, &container_of(timer, struct fab_ethernet, retry)->work);
}

static void tell_switches(struct fab_ethernet *eth)
{
	for (int n = 0; n < eth->fab->num_nodes; n++)
		if (is_ethernet_switch(eth->fab, n))
			fab_routes_changed(&eth->fab->node[n]);
}

void eth_route_host(struct fab_ethernet *eth, unsigned int host, bool was_used)
{
	if (route_host(eth, host))
		rt_timer_arm(&eth->retry, mono_add(rt_now(eth->fab->rt), RETRY_NS));
	if (was_used)
		tell_switches(eth);
}

static void learn(struct rt_work *work)
{
	struct fab_ethernet *eth = container_of(work, struct fab_ethernet, work);

	settle_ports(eth);
	if (route_stations(eth) || spread_to_all(eth))
		rt_timer_arm(&eth->retry, mono_add(rt_now(eth->fab->rt), RETRY_NS));
	tell_switches(eth);
}

void fab_ethernet_outlet_gone(const struct fab_port *near)
{
	if (near->fab->ethernet)
		eth_outside_forget(near->fab->ethernet, near);
}

void fab_ethernet_link_changed(struct fabric *fab)
{
	if (fab->ethernet)
		rt_work_queue(fab->rt, &fab->ethernet->work);
}

/* --- coming and going --- */

static void number_stations(struct fab_ethernet *eth)
{
	struct fabric *fab = eth->fab;

	for (int n = 0; n < fab->num_nodes; n++) {
		if (fab->node[n].ag->sw)
			continue;
		eth->first[n] = (uint16_t)eth->num_stations;
		eth->host[fab->topo->node[n].number - 1] = fab->topo->node[n].host;
		eth->num_hosts = MAX(eth->num_hosts, fab->topo->node[n].number);
		for (unsigned int p = 1; p <= fab->node[n].ag->num_ports; p++)
			if (fab_is_ethernet(fab, n, (int)p)) {
				eth->joined[eth->num_stations] = planned_vlans(eth, n);
				eth->station[eth->num_stations++] = &fab->node[n].port[p];
			}
	}
}

/* So many low bits tell the VLANs apart, and the untagged network: with room for further VLANs
 * if the stations leave it. Return: the bits; -1: there are more stations than numbers */
static int path_bits(const struct fab_vlans *vlans, unsigned int stations, unsigned int numbers)
{
	int lmc = vlans ? FAB_PATH_BITS : 0;

	while (lmc && stations >= numbers >> lmc)
		lmc--;
	return stations < numbers >> lmc && 1u << lmc > (vlans ? vlans->num : 0) ? lmc : -1;
}

/* Return: 0; -ENOMEM */
static int alloc_stations(struct fab_ethernet *eth, unsigned int stations)
{
	size_t nodes = (size_t)eth->fab->num_nodes + 1;

	eth->station = rt_zalloc((stations + 1) * sizeof(*eth->station));
	eth->joined = rt_zalloc(stations + 1);
	eth->added = rt_zalloc((stations + 1) * sizeof(*eth->added));
	eth->first = rt_zalloc(nodes * sizeof(*eth->first));
	eth->host = rt_zalloc(nodes * sizeof(*eth->host));
	eth->toward = rt_zalloc(nodes);
	eth->queue = rt_zalloc(nodes * sizeof(*eth->queue));
	return eth->station && eth->joined && eth->added && eth->first && eth->host && eth->toward &&
			       eth->queue ?
		       0 : -ENOMEM;
}

static void set_vlans(struct fab_ethernet *eth, const struct fab_vlans *vlans)
{
	eth->vlans = *vlans;
	eth->used_paths = 1 + vlans->num;
	for (unsigned int v = 1; v <= vlans->num; v++)
		eth->vlan_id[v] = vlans->id[v - 1];
}

static unsigned int count_stations(const struct fabric *fab)
{
	unsigned int stations = 0;

	for (int n = 0; n < fab->num_nodes; n++)
		for (unsigned int p = 1; !fab->node[n].ag->sw && p <= fab->node[n].ag->num_ports; p++)
			stations += fab->topo->node[n].port[p].ethernet;
	return stations;
}

int fab_ethernet_start(struct fabric *fab, const struct topo_plan *plan,
		       const struct fab_vlans *vlans)
{
	uint16_t before = topo_has_link(fab->topo, false) ? FAB_STATION_MIXED : 0;
	unsigned int stations = count_stations(fab);
	int lmc = path_bits(vlans, stations, (unsigned int)WIRE_LID_MULTICAST - before);
	struct fab_ethernet *eth;

	if (lmc < 0)
		return -ENOSPC;
	eth = rt_zalloc(sizeof(*eth));
	if (!eth)
		return -ENOMEM;
	fab->ethernet = eth;
	eth->fab = fab;
	eth->plan = *plan;
	eth->before = before;
	eth->lmc = (uint8_t)lmc;
	eth->used_paths = 1;
	if (vlans)
		set_vlans(eth, vlans);
	put_be32(eth->mac_prefix, MAC_PREFIX + (plan->ipv4_skip & 0xffff));
	rt_work_init(&eth->work, learn);
	rt_timer_init(fab->rt, &eth->retry, try_again);
	if (alloc_stations(eth, stations) ||
	    eth_outside_init(eth, (((unsigned int)WIRE_LID_MULTICAST - before) >> lmc) - 1 - stations)) {
		fab_ethernet_free(fab);
		return -ENOMEM;
	}
	number_stations(eth);
	learn(&eth->work);
	return 0;
}

void fab_ethernet_free(struct fabric *fab)
{
	struct fab_ethernet *eth = fab->ethernet;

	if (!eth)
		return;
	rt_work_cancel(&eth->work);
	rt_timer_disarm(&eth->retry);
	for (unsigned int i = 0; eth->added && i < eth->num_stations; i++)
		rt_free(eth->added[i]);
	rt_free(eth->added);
	eth_outside_free(eth);
	rt_free(eth->joined);
	rt_free(eth->station);
	rt_free(eth->first);
	rt_free(eth->host);
	rt_free(eth->toward);
	rt_free(eth->queue);
	rt_free(eth);
	fab->ethernet = NULL;
}
