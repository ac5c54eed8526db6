/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The IP addresses that a topology file gives to ports of adapters. All other ports have
 * those of the plan (topo_plan.h).
 */
#ifndef SOFTIB_FABRIC_TOPO_ADDRESS_H
#define SOFTIB_FABRIC_TOPO_ADDRESS_H

#include <netinet/in.h>

#include "fabric/topology.h"

/** struct topo_address - an address of a port */
struct topo_address {
	unsigned number;     /* of the node, from 1 */
	unsigned port;	     /* of the node, whose adapters' ports are counted one after another */
	uint8_t prefix_bits; /* of 128 */
	struct in6_addr ip;  /* IPv4: the IPv4-mapped address */
};

/** topo_address() - the address that the file gives to port @port of node @number, which
 *  need not exist. NULL: none */
const struct topo_address *topo_address(const struct topology *topo, unsigned number,
					unsigned port, bool ipv6);
/** topo_address_text() - with the length of its prefix, as in a file. Return: @text */
#define TOPO_ADDRESS_BYTES 64
const char *topo_address_text(const struct topo_address *a, char text[TOPO_ADDRESS_BYTES]);

#endif
