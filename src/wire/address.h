/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The addresses by which ports are told apart. Whoever asks "did this port send that
 * packet?" or "is it for this port?" asks here, and knows nothing of LIDs: a port of
 * another link layer (RoCEv2) needs a wire_port_addrs of its own and a packet whose
 * wire_packet_source() it is, for example the number of an IP address in the port's table,
 * and no check changes.
 */
#ifndef SOFTIB_WIRE_ADDRESS_H
#define SOFTIB_WIRE_ADDRESS_H

#include "wire/packet.h"

/** wire_addr_t - an address of a port, comparable with others of its link layer alone.
 *  Of InfiniBand: a LID. Build with wire_addr_of_lid() */
typedef struct {
	uint32_t v;
} wire_addr_t;

#define WIRE_ADDR_NONE UINT32_MAX /* no packet has it */

/** struct wire_port_addrs - all addresses of one port: those that are @base under @mask */
struct wire_port_addrs {
	uint32_t base, mask;
};

static inline wire_addr_t wire_addr_of_lid(uint16_t lid)
{
	return (wire_addr_t){lid};
}

/** wire_port_addrs() - of a port that has 2^@lmc LIDs from @lid on (7.11), or, with any of
 *  these as @lid, of the same port. 0: the port has no address yet */
static inline struct wire_port_addrs wire_port_addrs(uint16_t lid, unsigned lmc)
{
	const uint32_t mask = UINT32_MAX << lmc;

	return (struct wire_port_addrs){lid ? lid & mask : WIRE_ADDR_NONE, mask};
}

static inline bool wire_addr_is_of(wire_addr_t addr, struct wire_port_addrs port)
{
	return (addr.v & port.mask) == port.base;
}

/** wire_packet_source(), wire_packet_dest() - of a unicast packet with an LRH */
static inline wire_addr_t wire_packet_source(const struct wire_packet *pkt)
{
	return wire_addr_of_lid(pkt->lrh.slid);
}

static inline wire_addr_t wire_packet_dest(const struct wire_packet *pkt)
{
	return wire_addr_of_lid(pkt->lrh.dlid);
}

#endif
