/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The address plan of a fabric's IP addresses. Nodes with adapters are numbered from 1 in the
 * order of the topology (n7 is 7); the number is the host part of an address. Each port of a
 * node is in another network: ib0 in that of the plan, ib1 in the next one of the same size.
 * The ports of a node's second adapter are counted after those of its first. With 10.1.0.0/16,
 * ib1 of n7 is 10.2.0.7/16. A plan may begin at another host part, where several fabrics share a network. An address that the topology gives to a port replaces that of the
 * plan. A VLAN interface of a port is in a further network: those of the first VLAN follow the
 * networks of the ports, in the order of these. Pure.
 */
#ifndef SOFTIB_FABRIC_TOPO_PLAN_H
#define SOFTIB_FABRIC_TOPO_PLAN_H

#include "base/types.h"

struct in6_addr;
struct topology;

#define TOPO_PLAN_IPV4 "10.1.0.0/16"
/* a unique local prefix (RFC 4193) whose bytes begin with "softib" in ASCII */
#define TOPO_PLAN_IPV6 "fd73:6f66:7469:6201::/64"

#define TOPO_PLAN_BYTES 64 /* with the length of the prefix */

/** struct topo_plan - the first IPv4 network and the first IPv6 network */
struct topo_plan {
	uint32_t ipv4;
	uint64_t ipv6[2]; /* the upper half first */
	unsigned ipv4_bits, ipv6_bits;
	uint32_t ipv4_skip, ipv6_skip; /* the host part of the first node's address, less 1 */
	const struct topology *topo; /* whose own addresses have precedence; NULL: none */
	unsigned vlans; /* set it before topo_plan_fit() */
	unsigned ports; /* of the node that has most; set by topo_plan_fit() */
};

/** topo_plan_init() - set TOPO_PLAN_IPV4 and TOPO_PLAN_IPV6 */
void topo_plan_init(struct topo_plan *plan);
/** topo_plan_set() - replace the IPv4 or the IPv6 network
 *  @text: "10.1.0.0/16" or "fd00:1::/64"; with a host part, "10.1.0.9/16", it is the first node's
 *  address
 *  @err: set to a message on failure
 *  Return: 0; -EINVAL */
int topo_plan_set(struct topo_plan *plan, const char *text, char *err, size_t err_bytes);
/** topo_plan_fit() - use the plan for @topo, which must outlive it and its copies
 *  Return: 0; -ENOSPC there are not enough addresses for every port of the adapters;
 *  -EADDRINUSE an address that @topo gives to a port is that of another by the plan; both
 *  with a message */
int topo_plan_fit(struct topo_plan *plan, const struct topology *topo, char *err,
		  size_t err_bytes);

/** topo_plan_network() - what stands in the place of a port's number for its VLAN interface
 *  @vlan: from 1; 0: the port itself
 *  topo_plan_vlan() - the reverse: reduce *@port to that of a port. Return: the VLAN; 0 */
unsigned topo_plan_network(const struct topo_plan *plan, unsigned port, unsigned vlan);
unsigned topo_plan_vlan(const struct topo_plan *plan, unsigned *port);

/** topo_plan_ipv4(), topo_plan_ipv6() - the address of port @port (from 1) of node
 *  @number (from 1), for example "10.1.0.7/16"; for node 0 the network itself */
const char *topo_plan_ipv4(const struct topo_plan *plan, unsigned number, unsigned port,
			   char text[TOPO_PLAN_BYTES]);
/** topo_plan_ipv4_of() - the same as a number
 *  topo_plan_find_ipv4() - find the node and port of @address, which need not exist
 *  Return: false if the address is outside the plan */
uint32_t topo_plan_ipv4_of(const struct topo_plan *plan, unsigned number, unsigned port);
bool topo_plan_find_ipv4(const struct topo_plan *plan, uint32_t address, unsigned *number,
			 unsigned *port);
const char *topo_plan_ipv6(const struct topo_plan *plan, unsigned number, unsigned port,
			   char text[TOPO_PLAN_BYTES]);
/** topo_plan_ipv6_of(), topo_plan_find_ipv6() - the same for IPv6 */
void topo_plan_ipv6_of(const struct topo_plan *plan, unsigned number, unsigned port,
		       struct in6_addr *address);
bool topo_plan_find_ipv6(const struct topo_plan *plan, const struct in6_addr *address,
			 unsigned *number, unsigned *port);

/** topo_plan_find_host() - the node whose port has an address by the plan
 *  @text: IPv4 or IPv6, without the length of the prefix
 *  Return: the index of its first adapter in the topology of topo_plan_fit(); -1: no port has it, or
 *  it is no address */
int topo_plan_find_host(const struct topo_plan *plan, const char *text);

/** topo_plan_link_local() - the link-local address of the port with this GUID, for example
 *  "fe80::212:3456:7100:101/64"
 *  Spec: RFC 4391, section 8 */
const char *topo_plan_link_local(uint64_t guid, char text[TOPO_PLAN_BYTES]);

#endif
