/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The part of a fabric whose links are Ethernet's (RoCE). Nobody manages it: its switches
 * learn by themselves, its ports are Active as soon as their links are up, and no program sees
 * a LID. Which ports are Ethernet's the topology says; no cable joins them to ports of
 * InfiniBand, but an adapter may have ports of both.
 *
 * Each port of an adapter is a *station*. Its number is what the fabric forwards by: the tables
 * of the switches have it where a subnet manager would put a LID, so that the data path is the
 * same for both link layers. The stations are counted from 1; beside ports of InfiniBand, whose
 * LIDs begin there, from FAB_STATION_MIXED on, so that an address is that of one port alone.
 * Outside of the fabric a station is known by its MAC address and its GIDs, from which this
 * file finds the number:
 *
 *  MAC           02:73:69:00 and the station's place among all, from 1; locally administered. Where several fabrics share
 *                a network, and the plan begins behind its first address, the prefix is as much higher
 *  GID 0         fe80::/64 and the modified EUI-64 of the MAC address
 *  GID 1         ::ffff: and the IPv4 address of the address plan
 *  GID 2         the IPv6 address of the plan
 *  GID 3 to 5    the same three
 *  GID 6 to 11   the six of the first VLAN of the plan (--vlan) that the port is a member of, and so on
 *  behind them   two of each address that the port's interface, or one of its VLAN interfaces,
 *                has beside those of the plan
 *
 * The first three of six are RoCE version 2, the others version 1 (IBA v1 annexes A17 and A16): who
 * searches the table for an address finds version 2. A frame to a group, or to an unknown MAC address, goes to FAB_STATION_ALL: every
 * station receives it, and selects by its own tables.
 *
 * A VLAN is a path of its own: a station has a number for each, one behind the
 * other, as a port of InfiniBand has by its LMC. Which one a packet goes to the sender's entry
 * of the GID table says, and the switches have ways to the numbers of members alone. The VLANs of
 * the plan (vlan.h) come first; further ones are those in which a port's host has an address.
 *
 * Hosts behind a cable that leaves the fabric (outlet.h) are stations as well. They become so by the first
 * frame that arrives from them (outside.c): their numbers follow those of the fabric's own, their MAC address
 * and their GIDs are what their frames say.
 */
#ifndef SOFTIB_FABRIC_ETHERNET_H
#define SOFTIB_FABRIC_ETHERNET_H

#include "fabric/topo_plan.h"
#include "fabric/vlan.h"
#include "wire/packet.h"

struct fabric;

#define FAB_MAC_BYTES	6
#define FAB_STATION_ALL WIRE_LID_MULTICAST
#define FAB_STATION_MIXED 0x8000
#define FAB_ROCE_GIDS_EACH 6 /* of the port, and of each of its VLANs */
#define FAB_ROCE_GIDS	32
#define FAB_ROCE_ADDED	8 /* addresses of a port beside those of the plan */
#define FAB_PATH_BITS	3 /* at most: of the VLANs, with those that hosts add, and the untagged network */
#define FAB_PATHS	(1 << FAB_PATH_BITS)

/** struct fab_roce_gid - an entry of a port's GID table */
struct fab_roce_gid {
	union wire_gid gid;
	bool v2;	  /* RoCE version 2; otherwise version 1 */
	uint8_t path;	  /* the number of the VLAN in the fabric: the low bits of the station's */
	uint16_t vlan_id; /* 0: untagged */
};

/** struct fab_roce_address - an IP address of a port's interface or of one of its VLAN interfaces */
struct fab_roce_address {
	union wire_gid gid; /* IPv4's is mapped */
	uint16_t vlan_id;   /* 0: untagged */
};

/**
 * fab_ethernet_start() - start the part of a new fabric whose links are Ethernet's
 * @plan: the stations' IP addresses; copied
 * @vlans: those of the plan; copied, @member must outlive the fabric. NULL: there are none, and hosts
 *         add none
 * Return: 0; -ENOSPC more stations than numbers; -ENOMEM
 */
int fab_ethernet_start(struct fabric *fab, const struct topo_plan *plan,
		       const struct fab_vlans *vlans);
/** fab_is_ethernet() - is the link layer of this port Ethernet? Port 0 is a switch's own */
bool fab_is_ethernet(const struct fabric *fab, int node, int port);

/** fab_ethernet_mac() - the MAC address of station @number */
void fab_ethernet_mac(const struct fabric *fab, uint16_t number, uint8_t mac[FAB_MAC_BYTES]);
/** fab_ethernet_vlan() - the id of the VLAN in which @number is a station's, or a group's; 0: untagged */
uint16_t fab_ethernet_vlan(const struct fabric *fab, uint16_t number);
/** fab_ethernet_group_mac() - the MAC address of a multicast GID (RFC 2464, section 7) */
void fab_ethernet_group_mac(const uint8_t gid[16], uint8_t mac[FAB_MAC_BYTES]);
/** fab_ethernet_gids() - the GID table of a CA's port of Ethernet. Return: how many entries */
unsigned int fab_ethernet_gids(const struct fabric *fab, int node, int port,
			       struct fab_roce_gid gids[FAB_ROCE_GIDS]);
/** fab_ethernet_set_added() - the addresses that the interfaces of a CA's port have. Those
 *  that are not the plan's are two entries each of its GID table, version 2 and version 1, which stay
 *  where they are as long as the address is there. The port is a member of their VLANs. Further
 *  addresses and VLANs than there is room for have no entries */
void fab_ethernet_set_added(struct fabric *fab, int node, int port,
			    const struct fab_roce_address *address, unsigned int num);
/** fab_ethernet_set_mtu() - the MTU of the interface of a CA's port, in bytes behind the header of a frame.
 *  The port sends no longer frames, and its active MTU for RDMA is the largest that fits with all
 *  headers. More than WIRE_FRAME_MTU_MAX is that
 *  fab_ethernet_mtu() - what it is now; WIRE_MTU_MAX at first */
void fab_ethernet_set_mtu(struct fabric *fab, int node, int port, unsigned int bytes);
uint16_t fab_ethernet_mtu(const struct fabric *fab, int node, int port);
/** fab_ethernet_find_port() - whose address it is, untagged or else in a VLAN that a host has added
 *  @path: set to the number of the VLAN. Return: false: nobody's */
bool fab_ethernet_find_port(const struct fabric *fab, const union wire_gid *gid, int *node,
			    unsigned int *port, unsigned int *path);
/** fab_ethernet_find_outside() - has a host outside of the fabric this GID?
 *  @path: set to the number of the VLAN */
bool fab_ethernet_find_outside(const struct fabric *fab, const union wire_gid *gid, unsigned int *path);
/** fab_ethernet_has_outlet() - is a cable of Ethernet connected that leaves the fabric? */
bool fab_ethernet_has_outlet(const struct fabric *fab);
/** fab_ethernet_ask() - let a CA's port of Ethernet ask who has an address that nobody is known to have, in the VLAN
 *  @path; fab_ethernet_find_gid() finds it once the answer is there, which nobody tells
 *  Return: false: there is nobody to ask */
bool fab_ethernet_ask(struct fabric *fab, int node, int port, const union wire_gid *gid, unsigned int path);
/** fab_ethernet_is_member() - is a CA's port of Ethernet in the VLAN @path? All are in path 0 */
bool fab_ethernet_is_member(const struct fabric *fab, int node, int port, unsigned int path);
/** fab_ethernet_find_mac() - Return: the station with this MAC address; FAB_STATION_ALL for
 *  a group or an address that no station has */
uint16_t fab_ethernet_find_mac(const struct fabric *fab, const uint8_t mac[FAB_MAC_BYTES]);
/** fab_ethernet_find_gid() - Return: the number, in the VLAN @path, of the station that has
 *  this GID there; FAB_STATION_ALL and the VLAN for a group; 0 no station has it */
uint16_t fab_ethernet_find_gid(const struct fabric *fab, const union wire_gid *gid,
			       unsigned int path);
/** fab_ethernet_may_send() - may a CA's port of Ethernet send a packet with these addresses?
 *  It is a member of their VLAN, which is the same for both */
bool fab_ethernet_may_send(const struct fabric *fab, int node, int port, uint16_t slid,
			   uint16_t dlid);

#endif
