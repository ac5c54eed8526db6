/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Hosts behind cables that leave an Ethernet fabric (ethernet.h). A switch learns behind which port a MAC address is;
 * this table learns in addition which IP addresses the host has, as a host's ARP cache does, since packets of RoCE are
 * sent to GIDs.
 *
 *  MAC address   of the sender of any frame
 *  IP addresses  of the sender, from ARP, neighbour discovery, RoCE; from other packets of IP as long as the host has a free
 *                entry, because a router sends on what is from anywhere
 *
 * What a station of the fabric has is never learned. An address that two hosts claim belongs to the one that
 * said so last. The table is bounded: the host that was not heard for the longest time gives its place to a new one, the
 * oldest address of a host to a new one of this host. A place is the station's number; a host keeps it when its
 * cable is pulled, and until somebody else needs it, so that its connections survive.
 */
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "fabric/ethernet_private.h"
#include "wire/roce.h"

#define ETHER_TYPE_ARP 0x0806
#define ARP_BYTES      28
#define ARP_SENDER_MAC 8 /* in the packet */
#define ARP_SENDER_IP  14

/* --- the table --- */

int eth_outside_init(struct fab_ethernet *eth, unsigned int max)
{
	eth->outside.max = MIN(max, (unsigned int)FAB_OUTSIDE_HOSTS);
	eth->outside.host = rt_zalloc((eth->outside.max + 1) * sizeof(*eth->outside.host));
	return eth->outside.host ? 0 : -ENOMEM;
}

void eth_outside_free(struct fab_ethernet *eth)
{
	rt_free(eth->outside.host);
}

static uint16_t number_of(const struct fab_ethernet *eth, unsigned int host)
{
	return eth_number_at(eth, eth->num_stations + host);
}

/* Return: the host with this MAC address, whether its cable is there or not; outside.num: none */
static unsigned int find_host(struct fab_ethernet *eth, const uint8_t mac[FAB_MAC_BYTES])
{
	struct eth_outside *o = &eth->outside;

	if (o->last < o->num && !memcmp(o->host[o->last].mac, mac, FAB_MAC_BYTES))
		return o->last;
	for (unsigned int i = 0; i < o->num; i++)
		if (!memcmp(o->host[i].mac, mac, FAB_MAC_BYTES))
			return o->last = i;
	return o->num;
}

/* a place for a new host: one that nobody had, or that of a host whose cable is gone, or of who was silent longest */
static unsigned int take_place(struct eth_outside *o)
{
	unsigned int oldest = 0;

	if (o->num < o->max)
		return o->num++;
	for (unsigned int i = 1; i < o->num; i++) {
		const struct eth_host *a = &o->host[i], *b = &o->host[oldest];

		if (!a->near != !b->near ? !a->near : mono_before(a->heard, b->heard))
			oldest = i;
	}
	return oldest;
}

uint16_t eth_outside_find_mac(struct fab_ethernet *eth, const uint8_t mac[FAB_MAC_BYTES])
{
	unsigned int host = mac[0] & 1 ? eth->outside.num : find_host(eth, mac);

	return host < eth->outside.num && eth->outside.host[host].near ? number_of(eth, host) : 0;
}

/* Return: the host that has @gid; outside.num: none */
static unsigned int find_owner(const struct eth_outside *o, const struct eth_gid *gid)
{
	unsigned int i = 0;

	while (i < o->num && (!o->host[i].near || eth_gid_find(o->host[i].gid, FAB_OUTSIDE_GIDS, gid) == FAB_OUTSIDE_GIDS))
		i++;
	return i;
}

uint16_t eth_outside_find_gid(const struct fab_ethernet *eth, const union wire_gid *gid, unsigned int path)
{
	const struct eth_gid wanted = {.gid = *gid, .path = (uint8_t)path};
	unsigned int host = find_owner(&eth->outside, &wanted);

	return host < eth->outside.num ? (uint16_t)(number_of(eth, host) + path) : 0;
}

void eth_outside_forget(struct fab_ethernet *eth, const struct fab_port *near)
{
	for (unsigned int i = 0; i < eth->outside.num; i++) {
		struct eth_host *host = &eth->outside.host[i];

		if (host->near != near)
			continue;
		host->near = NULL;
		memset(host->gid, 0, sizeof(host->gid));
		eth_route_host(eth, i, true);
	}
}

/* --- what a frame says --- */

bool eth_is_unicast(const union wire_gid *gid)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff}, loopback[16] = {[15] = 1};
	const uint8_t *ipv4 = gid->raw + sizeof(mapped);

	if (!memcmp(gid->raw, mapped, sizeof(mapped)))
		return ipv4[0] && ipv4[0] != 127 && ipv4[0] < 224;
	return gid->raw[0] != 0xff && !eth_gid_is_none(gid) && memcmp(gid->raw, loopback, sizeof(loopback)) != 0;
}

static union wire_gid mapped_gid(const uint8_t ipv4[4])
{
	union wire_gid gid = {.raw = {[10] = 0xff, [11] = 0xff}};

	memcpy(gid.raw + 12, ipv4, 4);
	return gid;
}

/* The sender of an ARP packet (RFC 826), if it speaks for itself. Return: false: there is none */
static bool arp_sender(const uint8_t *frame, size_t len, const struct wire_frame_key *key, union wire_gid *gid)
{
	static const uint8_t of_ipv4[] = {0, 1, 8, 0, 6, 4}; /* hardware and protocol, and the lengths of their addresses */
	size_t at = key->has & WIRE_FRAME_VLAN ? WIRE_FRAME_OVERHEAD : WIRE_FRAME_MIN;

	if (get_be16(key->ether_type) != ETHER_TYPE_ARP || len < at + ARP_BYTES ||
	    memcmp(frame + at, of_ipv4, sizeof(of_ipv4)) != 0 ||
	    memcmp(frame + at + ARP_SENDER_MAC, key->src_mac, FAB_MAC_BYTES) != 0)
		return false;
	*gid = mapped_gid(frame + at + ARP_SENDER_IP);
	return true;
}

static bool is_neighbour_discovery(const uint8_t *frame, size_t len, const struct wire_frame_key *key)
{
	size_t at = (key->has & WIRE_FRAME_VLAN ? WIRE_FRAME_OVERHEAD : WIRE_FRAME_MIN) + WIRE_GRH_BYTES;

	return key->has & WIRE_FRAME_IPV6 && key->ip_proto == ETH_PROTO_ICMPV6 && len > at &&
	       (frame[at] == ETH_ND_SOLICIT || frame[at] == ETH_ND_ADVERTISE);
}

/* Who has sent the frame. Return: false: it does not say. *@sure: the address is the sender's own, as no router
 * sends such frames on */
static bool sender_gid(const uint8_t *frame, size_t len, const struct wire_frame_key *key, union wire_gid *gid, bool *sure)
{
	*sure = true;
	if (arp_sender(frame, len, key, gid))
		return true;
	*sure = is_neighbour_discovery(frame, len, key) ||
		(key->has & WIRE_FRAME_UDP && get_be16(key->dst_port) == WIRE_ROCE_UDP_PORT);
	if (key->has & WIRE_FRAME_IPV4)
		*gid = mapped_gid(key->src_ip);
	else if (key->has & WIRE_FRAME_IPV6)
		memcpy(gid->raw, key->src_ip, sizeof(gid->raw));
	return key->has & (WIRE_FRAME_IPV4 | WIRE_FRAME_IPV6);
}

static void remove_gid(struct eth_outside *o, const struct eth_gid *gid)
{
	unsigned int owner = find_owner(o, gid);

	if (owner < o->num)
		o->host[owner].gid[eth_gid_find(o->host[owner].gid, FAB_OUTSIDE_GIDS, gid)] = (struct eth_gid){.path = 0};
}

static void learn_gid(struct fab_ethernet *eth, struct eth_host *host, const struct eth_gid *gid, bool sure)
{
	const struct eth_gid none = {.path = 0};
	unsigned int at = eth_gid_find(host->gid, FAB_OUTSIDE_GIDS, gid);

	if (at < FAB_OUTSIDE_GIDS || !eth_is_unicast(&gid->gid) || eth_own_station(eth, &gid->gid, gid->path))
		return;
	at = eth_gid_find(host->gid, FAB_OUTSIDE_GIDS, &none);
	if (!sure && (at == FAB_OUTSIDE_GIDS || find_owner(&eth->outside, gid) < eth->outside.num))
		return;
	remove_gid(&eth->outside, gid);
	if (at == FAB_OUTSIDE_GIDS) {
		at = host->next_gid;
		host->next_gid = (uint8_t)((at + 1) % FAB_OUTSIDE_GIDS);
	}
	host->gid[at] = *gid;
}

static bool learn_mac(struct fab_ethernet *eth, struct fab_port *near, const uint8_t mac[FAB_MAC_BYTES], unsigned int *host)
{
	struct eth_outside *o = &eth->outside;
	struct eth_host *h;
	bool was_used;

	*host = find_host(eth, mac);
	if (*host < o->num && o->host[*host].near == near)
		return true;
	if (!o->max)
		return false;
	was_used = *host < o->num || o->num == o->max;
	if (*host == o->num)
		*host = take_place(o);
	h = &o->host[*host];
	if (memcmp(h->mac, mac, FAB_MAC_BYTES) != 0)
		*h = (struct eth_host){0};
	memcpy(h->mac, mac, FAB_MAC_BYTES);
	h->near = near;
	eth_route_host(eth, *host, was_used);
	return true;
}

uint16_t eth_outside_hear(struct fab_ethernet *eth, struct fab_port *near, const uint8_t *frame, size_t len,
			  const struct wire_frame_key *key)
{
	uint16_t vlan_id = key->has & WIRE_FRAME_VLAN ? get_be16(key->vlan_tag) & 0x0fff : 0;
	unsigned int path = eth_find_vlan(eth, vlan_id), host;
	struct eth_gid gid = {.path = (uint8_t)path};
	bool sure;

	if (!learn_mac(eth, near, key->src_mac, &host))
		return 0;
	eth->outside.host[host].heard = rt_now(eth->fab->rt);
	/* the addresses of a VLAN without members are nobody's business */
	if ((path || !vlan_id) && sender_gid(frame, len, key, &gid.gid, &sure))
		learn_gid(eth, &eth->outside.host[host], &gid, sure);
	return number_of(eth, host);
}
