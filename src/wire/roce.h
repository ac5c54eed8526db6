/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * InfiniBand over UDP (RoCEv2, IBA v1 annex A17): the BTH starts behind the
 * UDP header, and the ICRC at the end covers the IP and UDP headers too.
 */
#ifndef SOFTIB_WIRE_ROCE_H
#define SOFTIB_WIRE_ROCE_H

#include "wire/packet.h"

#define WIRE_ROCE_UDP_PORT 4791

#define WIRE_ROCE_HEADERS_MAX (18 + WIRE_GRH_BYTES + 8) /* Ethernet with a tag, IPv6, UDP */

/**
 * struct wire_roce_headers - what RoCEv2 has in front of the BTH
 * @vlan_id: 0: no tag
 * @priority: in the tag: 0 to 7
 * @grh: the IP header follows from it: IPv4's if both GIDs are mapped IPv4 addresses (A17.4.5.2)
 */
struct wire_roce_headers {
	uint8_t dst_mac[6], src_mac[6];
	uint16_t vlan_id;
	uint8_t priority;
	struct wire_grh grh;
};

/** wire_roce_headers_encode() - from the Ethernet header to that of UDP
 *  @bytes: from the BTH to the last pad byte
 *  @buf: of WIRE_ROCE_HEADERS_MAX
 *  Return: bytes of the headers */
size_t wire_roce_headers_encode(const struct wire_roce_headers *h, size_t bytes, void *buf);

/**
 * wire_roce_icrc() - ICRC of a RoCEv2 packet (A17.3.3)
 * @ip: first byte of the IPv4 or IPv6 header; its version nibble decides
 * @len: bytes from there to the last pad byte, without the ICRC
 * @icrc: set on success, in host order (the wire's first byte is the highest)
 * Return: 0; -EINVAL not an IP packet with UDP and a BTH.
 */
int wire_roce_icrc(const void *ip, size_t len, uint32_t *icrc);

/**
 * wire_bth_decode() - BTH, extended headers and payload, without LRH and GRH
 * @buf: from the BTH to the last pad byte
 * Return: bytes of headers; -EINVAL as wire_packet_decode().
 */
int wire_bth_decode(const void *buf, size_t len, struct wire_packet *pkt);

/**
 * wire_bth_encode() - BTH and extended headers; pad_bytes is written back
 * Return: bytes of headers; -EINVAL for an unknown opcode.
 */
int wire_bth_encode(struct wire_packet *pkt, void *buf);

#endif
