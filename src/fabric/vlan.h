/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The VLANs of a fabric's ports of Ethernet (IEEE 802.1Q). A member of a VLAN is a node; all
 * of its ports of Ethernet then have a VLAN interface, as by "ip link add link eth0 type
 * vlan". All ports are in the untagged network as well. Pure.
 */
#ifndef SOFTIB_FABRIC_VLAN_H
#define SOFTIB_FABRIC_VLAN_H

#include "base/types.h"

struct topology;

#define FAB_VLANS   4
#define FAB_VLAN_ID 4094 /* the largest */

/** struct fab_vlans - number 0 is the untagged network, v is that of id[v - 1] */
struct fab_vlans {
	unsigned int num;
	uint16_t id[FAB_VLANS];
	uint8_t *member; /* by node: bit v - 1; NULL without a VLAN */
};

/**
 * fab_vlans_parse() - read "100" or "100,200:n1+n2": ids, each with the nodes that are its
 * members, or else all
 * @vlans: filled in; free it with fab_vlans_free()
 * @err: on failure a message
 * Return: 0; -EINVAL; -ENOMEM
 */
int fab_vlans_parse(struct fab_vlans *vlans, const struct topology *topo, const char *text,
		    char *err, size_t err_bytes);
void fab_vlans_free(struct fab_vlans *vlans);
/** fab_vlans_has() - is @node a member of VLAN @v? All are of number 0 */
bool fab_vlans_has(const struct fab_vlans *vlans, int node, unsigned int v);

#endif
