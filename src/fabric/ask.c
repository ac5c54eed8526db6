/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Asking for a host outside of an Ethernet fabric: before a program's packets can go to a GID, somebody has to
 * have learned whose it is (outside.c), as a kernel has to before it sends RoCE. A port asks by ARP (RFC 826) or by a neighbour
 * solicitation (RFC 4861 section 4.3), in the VLAN of the path; the answer teaches the address.
 */
#include <string.h>

#include "base/bytes.h"
#include "fabric/ethernet_private.h"
#include "wire/inet.h"

#define ETHER_TYPE_VLAN 0x8100
#define ETHER_TYPE_ARP	0x0806
#define ETHER_TYPE_IPV6 0x86dd
#define IPV4_AT		12 /* in a mapped GID */
#define ARP_BYTES	28
#define SOLICIT_BYTES	32 /* with the option that has the sender's MAC address */
#define FRAME_BYTES	(WIRE_FRAME_OVERHEAD + WIRE_GRH_BYTES + SOLICIT_BYTES)

static const uint8_t mapped[IPV4_AT] = {[10] = 0xff, [11] = 0xff};

/** struct question - who has @gid? */
struct question {
	const union wire_gid *gid;
	union wire_gid from; /* the port's address of the same family in the VLAN */
	uint8_t mac[FAB_MAC_BYTES];
	uint16_t vlan_id;
};

static bool is_ipv4(const union wire_gid *gid)
{
	return !memcmp(gid->raw, mapped, sizeof(mapped));
}

static size_t put_header(const struct question *q, const uint8_t dst[FAB_MAC_BYTES], uint16_t type, uint8_t *b)
{
	size_t at = 2 * FAB_MAC_BYTES;

	memcpy(b, dst, FAB_MAC_BYTES);
	memcpy(b + FAB_MAC_BYTES, q->mac, FAB_MAC_BYTES);
	if (q->vlan_id) {
		put_be16(b + at, ETHER_TYPE_VLAN);
		put_be16(b + at + 2, q->vlan_id);
		at += 4;
	}
	put_be16(b + at, type);
	return at + 2;
}

static size_t put_arp(const struct question *q, uint8_t *b)
{
	static const uint8_t all[FAB_MAC_BYTES] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
			     request[] = {0, 1, 8, 0, FAB_MAC_BYTES, 4, 0, 1};
	size_t at = put_header(q, all, ETHER_TYPE_ARP, b);

	memset(b + at, 0, ARP_BYTES);
	memcpy(b + at, request, sizeof(request));
	memcpy(b + at + 8, q->mac, FAB_MAC_BYTES);
	memcpy(b + at + 14, q->from.raw + IPV4_AT, 4);
	memcpy(b + at + 24, q->gid->raw + IPV4_AT, 4);
	return at + ARP_BYTES;
}

static size_t put_solicitation(const struct question *q, uint8_t *b)
{
	struct wire_grh ip = {.ip_version = 6, .payload_bytes = SOLICIT_BYTES, .hop_limit = 255, .sgid = q->from,
			      .dgid.raw = {0xff, 0x02, [11] = 1, [12] = 0xff}}; /* RFC 4291 section 2.7.1 */
	uint8_t mac[FAB_MAC_BYTES], *icmp;
	size_t at;

	memcpy(ip.dgid.raw + 13, q->gid->raw + 13, 3);
	fab_ethernet_group_mac(ip.dgid.raw, mac);
	at = put_header(q, mac, ETHER_TYPE_IPV6, b);
	wire_grh_encode(&ip, b + at);
	b[at + 6] = ETH_PROTO_ICMPV6;
	icmp = b + at + WIRE_GRH_BYTES;
	memset(icmp, 0, SOLICIT_BYTES);
	icmp[0] = ETH_ND_SOLICIT;
	memcpy(icmp + 8, q->gid->raw, sizeof(q->gid->raw));
	icmp[24] = icmp[25] = 1; /* source link-layer address, of 8 bytes */
	memcpy(icmp + 26, q->mac, FAB_MAC_BYTES);
	put_be16(icmp + 2, wire_inet_fold(wire_inet_sum(icmp, SOLICIT_BYTES,
							wire_inet_pseudo_sum(b + at, ETH_PROTO_ICMPV6, SOLICIT_BYTES))));
	return at + WIRE_GRH_BYTES + SOLICIT_BYTES;
}

/* the port's first address of the family in the VLAN. Return: false: it has none there */
static bool find_source(const struct fabric *fab, const struct fab_port *port, unsigned int path, struct question *q)
{
	struct fab_roce_gid gids[FAB_ROCE_GIDS];
	unsigned int n = fab_ethernet_gids(fab, port->node, port->num, gids);

	for (unsigned int i = 0; i < n; i++)
		if (gids[i].path == path && is_ipv4(&gids[i].gid) == is_ipv4(q->gid) && !eth_gid_is_none(&gids[i].gid)) {
			q->from = gids[i].gid;
			q->vlan_id = gids[i].vlan_id;
			return true;
		}
	return false;
}

static void send_to_all(struct fab_port *port, const uint8_t *frame, size_t len)
{
	uint8_t bytes[FRAME_BYTES + WIRE_HEADERS_MAX];
	struct fab_packet pkt;
	struct fab_step step;

	if (fab_packet_decode(&pkt, bytes, eth_datagram(fab_ag_port(port)->lid, FAB_STATION_ALL, frame, len, bytes)))
		return;
	pkt.source = 1 + (uint32_t)port->node;
	step = fab_step_of(port, port, &pkt);
	fab_count_sent(&step, &pkt);
	fab_land(&step, &pkt);
}

bool fab_ethernet_has_outlet(const struct fabric *fab)
{
	for (int i = fab->num_nodes; fab->ethernet && i < fab->num_nodes + FAB_OUTLETS_MAX; i++) {
		const struct fab_node *node = &fab->node[i];

		if (node->ag && !node->dead && fab_is_ethernet(fab, node->port[1].peer_node, node->port[1].peer_port))
			return true;
	}
	return false;
}

bool fab_ethernet_ask(struct fabric *fab, int node, int num, const union wire_gid *gid, unsigned int path)
{
	struct fab_port *port = &fab->node[node].port[num];
	struct question q = {.gid = gid};
	uint8_t frame[FRAME_BYTES];

	if (!fab_ethernet_has_outlet(fab) || !fab_peer(port) || fab_ag_port(port)->state != WIRE_PORT_ACTIVE ||
	    !eth_is_unicast(gid) || !find_source(fab, port, path, &q))
		return false;
	fab_ethernet_mac(fab, fab_ag_port(port)->lid, q.mac);
	send_to_all(port, frame, (is_ipv4(gid) ? put_arp : put_solicitation)(&q, frame));
	return true;
}
