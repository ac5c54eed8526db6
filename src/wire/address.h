/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Addresses of ports, independent of the link layer. The checks "did this port send that
 * packet?" and "is the packet for this port?" use these functions and not LIDs. To support
 * another link layer (RoCEv2), define its wire_port_addrs and the result of
 * wire_packet_source(), for example the index of an IP address in the port's table; the
 * checks do not change.
 */
#ifndef SOFTIB_WIRE_ADDRESS_H
#define SOFTIB_WIRE_ADDRESS_H

#include "wire/packet.h"

#define WIRE_LMC_MAX 7

/** wire_addr_t - an address of a port, comparable only with addresses of the same link
 *  layer. For InfiniBand it is a LID; see wire_addr_of_lid(). */
typedef struct {
	uint32_t v;
} wire_addr_t;

#define WIRE_ADDR_NONE UINT32_MAX /* no packet has it */

/** struct wire_port_addrs - all addresses of one port: those that equal @base under @mask */
struct wire_port_addrs {
	uint32_t base, mask;
};

static inline wire_addr_t wire_addr_of_lid(uint16_t lid)
{
	return (wire_addr_t){lid};
}

/** wire_port_addrs() - the addresses of a port with 2^@lmc LIDs (7.11)
 *  @lid: any of these LIDs; 0: the port has no address yet */
static inline struct wire_port_addrs wire_port_addrs(uint16_t lid, unsigned lmc)
{
	const uint32_t mask = UINT32_MAX << lmc;

	return (struct wire_port_addrs){lid ? lid & mask : WIRE_ADDR_NONE, mask};
}

/** wire_path_bits() - which of the 2^@lmc LIDs of its port @lid is (7.11) */
static inline uint8_t wire_path_bits(uint16_t lid, unsigned lmc)
{
	return (uint8_t)(lid & ~(UINT32_MAX << lmc));
}

static inline bool wire_addr_is_of(wire_addr_t addr, struct wire_port_addrs port)
{
	return (addr.v & port.mask) == port.base;
}

/** wire_packet_source(), wire_packet_dest() - addresses of a unicast packet with an LRH */
static inline wire_addr_t wire_packet_source(const struct wire_packet *pkt)
{
	return wire_addr_of_lid(pkt->lrh.slid);
}

static inline wire_addr_t wire_packet_dest(const struct wire_packet *pkt)
{
	return wire_addr_of_lid(pkt->lrh.dlid);
}

#endif
