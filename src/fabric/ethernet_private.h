/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the files of the fabric's Ethernet part share.
 *
 *   ethernet.c  stations, their addresses, and the tables of the switches
 *   outside.c   hosts behind cables that leave the fabric: stations that are learned
 *   frames.c    frames of such a cable, and the packets that they are in the fabric
 *   ask.c       asks for hosts that have not been learned
 */
#ifndef SOFTIB_FABRIC_ETHERNET_PRIVATE_H
#define SOFTIB_FABRIC_ETHERNET_PRIVATE_H

#include "fabric/ethernet.h"
#include "fabric/fabric_private.h"
#include "wire/frame.h"

#define FAB_MAC_PREFIX_BYTES 4
#define FAB_OUTSIDE_HOSTS 256 /* fewer, if the stations of the fabric leave fewer numbers */
#define FAB_OUTSIDE_GIDS  8   /* of a host */

/* of neighbour discovery (RFC 4861 section 4.3 and 4.4) */
#define ETH_PROTO_ICMPV6 58
#define ETH_ND_SOLICIT	 135
#define ETH_ND_ADVERTISE 136

/** struct eth_gid - an address that a host has given to an interface */
struct eth_gid {
	union wire_gid gid; /* zero: an entry that is free */
	uint8_t path;
};

/** struct eth_host - a host outside of the fabric. It keeps its number, and with it its place, until another one
 *  needs the place */
struct eth_host {
	struct fab_port *near; /* where the cable is plugged in, behind which it was heard last; NULL: that was removed */
	uint8_t mac[FAB_MAC_BYTES];
	uint8_t next_gid; /* the entry that is replaced next */
	mono_t heard;
	struct eth_gid gid[FAB_OUTSIDE_GIDS];
};

/** struct eth_outside - the hosts, in the order of their places */
struct eth_outside {
	struct eth_host *host; /* [max] */
	unsigned int num, max;
	unsigned int last; /* that was found; frames come in rows */
};

/** struct fab_ethernet - the stations, and the memory of the searches */
struct fab_ethernet {
	struct fabric *fab;
	struct topo_plan plan;
	struct fab_vlans vlans;
	uint8_t lmc; /* a station has 2^lmc numbers, one for each VLAN */
	uint16_t vlan_id[FAB_PATHS]; /* by path; behind those of the plan: what hosts have added */
	unsigned int used_paths;     /* others have never had a way */
	struct rt_work work;
	struct rt_timer retry; /* there was no memory for a table */
	unsigned int num_stations, num_hosts;
	uint16_t before;	   /* the number of the first station, less 1 */
	struct fab_port **station; /* [place] */
	uint16_t *first; /* place of the first station of each adapter, by node */
	int *host;	 /* the first adapter of each host: [number in the plan - 1] */
	uint8_t *joined; /* [place]: bit v - 1: the station is in VLAN v */
	struct eth_gid **added; /* [place]: FAB_ROCE_ADDED, or NULL */
	struct eth_outside outside; /* whose places follow those of the stations */
	uint8_t mac_prefix[FAB_MAC_PREFIX_BYTES];
	/* --- search(): by node --- */
	uint8_t *toward; /* egress port to the root; WIRE_LFT_NO_PORT: not reached */
	int *queue;
};

/* --- ethernet.c --- */
/** eth_number_at() - the number of a station in path 0; its place among all, from 0, is what its addresses have
 *  eth_place_of() - the reverse, from a number in any path */
static inline uint16_t eth_number_at(const struct fab_ethernet *eth, unsigned int place)
{
	return (uint16_t)(eth->before + ((place + 1) << eth->lmc));
}

static inline unsigned int eth_place_of(const struct fab_ethernet *eth, uint16_t number)
{
	return ((unsigned int)(number - eth->before) >> eth->lmc) - 1;
}

/** eth_gid_find() - Return: where @gid is in @list; @num: it is not there */
unsigned int eth_gid_find(const struct eth_gid *list, unsigned int num, const struct eth_gid *gid);
bool eth_gid_is_none(const union wire_gid *gid);
/** eth_own_station() - Return: the number of the fabric's own station with this GID in the VLAN @path; 0 */
uint16_t eth_own_station(const struct fab_ethernet *eth, const union wire_gid *gid, unsigned int path);
/** eth_own_place() - Return: the place of the fabric's own station with this MAC address; -1 */
int eth_own_place(const struct fab_ethernet *eth, const uint8_t mac[FAB_MAC_BYTES]);
/** eth_find_vlan() - Return: the path of a VLAN that has members; 0: none has, or untagged */
unsigned int eth_find_vlan(const struct fab_ethernet *eth, uint16_t vlan_id);
/** eth_route_host() - make the tables of the switches lead to a host outside
 *  @was_used: ways to its number may be known */
void eth_route_host(struct fab_ethernet *eth, unsigned int host, bool was_used);

/* --- outside.c --- */
/** eth_outside_init() - Return: 0; -ENOMEM */
int eth_outside_init(struct fab_ethernet *eth, unsigned int max);
void eth_outside_free(struct fab_ethernet *eth);
/** eth_outside_hear() - a frame has arrived by the cable at @near: learn its sender's addresses
 *  @key: of the frame
 *  Return: the sender's number in path 0; 0: there is no room for hosts outside */
uint16_t eth_outside_hear(struct fab_ethernet *eth, struct fab_port *near, const uint8_t *frame, size_t len,
			  const struct wire_frame_key *key);
/** eth_outside_forget() - the cable at @near was removed */
void eth_outside_forget(struct fab_ethernet *eth, const struct fab_port *near);
/** eth_outside_find_mac(), eth_outside_find_gid() - Return: the number, in the VLAN @path; 0: no host has it */
uint16_t eth_outside_find_mac(struct fab_ethernet *eth, const uint8_t mac[FAB_MAC_BYTES]);
uint16_t eth_outside_find_gid(const struct fab_ethernet *eth, const union wire_gid *gid, unsigned int path);
/** eth_is_unicast() - may a host have @gid by itself, on the network? */
bool eth_is_unicast(const union wire_gid *gid);

/* --- frames.c --- */
/** eth_datagram() - the packet as which a frame travels
 *  @bytes: of WIRE_PACKET_MAX, or fewer if the frame is short
 *  Return: bytes of the packet */
size_t eth_datagram(uint16_t slid, uint16_t dlid, const uint8_t *frame, size_t len, uint8_t *bytes);

#endif
