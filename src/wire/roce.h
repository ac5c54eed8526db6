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

#define WIRE_ROCE_FRAME_MAX (WIRE_ROCE_HEADERS_MAX + WIRE_PACKET_MAX)

/**
 * wire_roce_encode() - a whole frame, from the Ethernet header to the ICRC, without FCS
 * @bth: from the BTH to the last pad byte, of @bytes
 * @buf: of WIRE_ROCE_FRAME_MAX
 * Return: bytes of the frame, which may be fewer than Ethernet's minimum of 60
 */
size_t wire_roce_encode(const struct wire_roce_headers *h, const void *bth, size_t bytes, void *buf);

/** struct wire_roce - a RoCEv2 frame
 *  @headers: .grh is what InfiniBand would have in front of the BTH: addresses of IPv4 are mapped, those of
 *            its groups are ff0e::ffff:a.b.c.d, and the flow label is from the UDP source port
 *  @bth: in the frame: from the BTH to the last pad byte, @bytes, a multiple of 4 */
struct wire_roce {
	struct wire_roce_headers headers;
	const uint8_t *bth;
	size_t bytes;
};

/**
 * wire_roce_decode() - read a frame without FCS, which may be padded at its end
 * The lengths and checksums of IP and UDP, and the ICRC, are checked; BTH and what follows it are not.
 * Return: 0; -ENOENT it is no RoCEv2; -EINVAL it is, but a length or checksum is wrong, or it is a
 * fragment of IPv4, or IPv4 has options (A17.4.5.1)
 */
int wire_roce_decode(const void *frame, size_t len, struct wire_roce *roce);

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
