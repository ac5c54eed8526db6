/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Ethernet frames, as far as flow steering (ibv_create_flow(3)) reads them, and how they
 * travel: a frame is the payload of a datagram to WIRE_QPN_FRAME, which is no queue pair's
 * number. It begins with the destination's MAC address and ends before the FCS.
 */
#ifndef SOFTIB_WIRE_FRAME_H
#define SOFTIB_WIRE_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WIRE_QPN_FRAME	    0xfffffeu
#define WIRE_FRAME_MIN	    14 /* bytes of the header without a VLAN tag */
#define WIRE_FRAME_OVERHEAD 18 /* bytes that the MTU does not count: the header with the tag */

enum wire_frame_has {
	WIRE_FRAME_VLAN = 1,
	WIRE_FRAME_IPV4 = 2,
	WIRE_FRAME_IPV6 = 4,
	WIRE_FRAME_TCP = 8,
	WIRE_FRAME_UDP = 16,
};

/**
 * struct wire_frame_key - the fields of a frame by which it is steered, each with its bytes
 * as on the wire; what the frame does not have is 0. A rule is a key and a mask over it.
 */
struct wire_frame_key {
	uint8_t dst_mac[6], src_mac[6];
	uint8_t ether_type[2]; /* behind the VLAN tag, if there is one */
	uint8_t vlan_tag[2];
	uint8_t has; /* enum wire_frame_has */
	uint8_t ip_proto;
	uint8_t tos;	  /* IPv6: the traffic class */
	uint8_t ttl;	  /* IPv6: the hop limit */
	uint8_t ip_flags; /* of IPv4, in the low three bits */
	uint8_t flow_label[3];
	uint8_t src_ip[16], dst_ip[16]; /* IPv4: the first four bytes */
	uint8_t src_port[2], dst_port[2];
	uint8_t reserved[4];
};

/**
 * wire_frame_parse() - read the fields of a frame
 * A header that is cut short, an IPv4 fragment's ports, and what stands behind IPv6
 * extension headers count as absent.
 * Return: 0; -EINVAL shorter than an Ethernet header
 */
int wire_frame_parse(const void *frame, size_t len, struct wire_frame_key *key);

/** wire_frame_matches() - has @key the bits of @value that @mask selects? */
bool wire_frame_matches(const struct wire_frame_key *key, const struct wire_frame_key *value,
			const struct wire_frame_key *mask);

#define WIRE_TOEPLITZ_KEY_BYTES 40

/** wire_toeplitz() - the hash by which receive side scaling spreads flows
 *  @len: WIRE_TOEPLITZ_KEY_BYTES - 4 at most */
uint32_t wire_toeplitz(const uint8_t key[WIRE_TOEPLITZ_KEY_BYTES], const uint8_t *data, size_t len);

#endif
