/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Checksums of IP packets, and the headers of what a large TCP segment is cut into. */
#include "wire/inet.h"

#include <netinet/in.h>

#define IPV4_HEADER   20
#define IPV6_HEADER   40
#define IPV4_FRAGMENT 0x3fff /* more fragments, or the offset of one */
#define TCP_HEADER    20
#define TCP_CHECKSUM  16
#define UDP_HEADER    8
#define UDP_CHECKSUM  6
enum { TCP_FIN = 0x01, TCP_PSH = 0x08, TCP_CWR = 0x80 };

/* Return: the bytes of an IP header directly in front of another protocol's, which is in
 * *@protocol; 0: it is a fragment, has extension headers, or is longer than @bytes */
static size_t ip_header(const uint8_t *packet, size_t bytes, uint8_t *protocol)
{
	size_t header;

	if (bytes < IPV4_HEADER)
		return 0;
	if (packet[0] >> 4 == 6) {
		*protocol = packet[6];
		return bytes < IPV6_HEADER ? 0 : IPV6_HEADER;
	}
	header = (packet[0] & 15) * 4u;
	*protocol = packet[9];
	if (packet[0] >> 4 != 4 || header < IPV4_HEADER || header > bytes ||
	    get_be16(packet + 6) & IPV4_FRAGMENT)
		return 0;
	return header;
}

size_t wire_tcp_headers(const uint8_t *packet, size_t bytes, size_t *ip_bytes)
{
	uint8_t protocol;
	size_t ip = ip_header(packet, bytes, &protocol), tcp;

	if (!ip || protocol != IPPROTO_TCP || ip + TCP_HEADER > bytes)
		return 0;
	tcp = (packet[ip + 12] >> 4) * 4u;
	*ip_bytes = ip;
	return tcp < TCP_HEADER || ip + tcp > bytes ? 0 : ip + tcp;
}

static void finish_ip(uint8_t *packet, size_t header)
{
	if (!wire_inet_is_v4(packet))
		return;
	put_be16(packet + 10, 0);
	put_be16(packet + 10, wire_inet_fold(wire_inet_sum(packet, header, 0)));
}

/* @field: the place of the checksum in the header of @protocol behind that of IP */
static uint16_t checksum(uint8_t *packet, size_t ip, size_t bytes, uint8_t protocol, size_t field)
{
	put_be16(packet + ip + field, 0);
	return wire_inet_fold(wire_inet_sum(packet + ip, bytes - ip,
					    wire_inet_pseudo_sum(packet, protocol, bytes - ip)));
}

/* RFC 9293 section 3.1; a receiver reacts once to what the segment as a whole says */
void wire_tcp_finish(uint8_t *packet, const struct wire_tcp_part *part)
{
	const size_t bytes = part->header_bytes + part->payload_bytes;
	uint8_t *tcp = packet + part->ip_bytes;

	if (wire_inet_is_v4(packet)) {
		put_be16(packet + 2, (uint16_t)bytes);
		put_be16(packet + 4, (uint16_t)(get_be16(packet + 4) + part->index));
	} else {
		put_be16(packet + 4, (uint16_t)(bytes - IPV6_HEADER));
	}
	finish_ip(packet, part->ip_bytes);
	put_be32(tcp + 4, get_be32(tcp + 4) + (uint32_t)part->offset);
	if (!part->last)
		tcp[13] &= (uint8_t) ~(TCP_FIN | TCP_PSH);
	if (part->index)
		tcp[13] &= (uint8_t)~TCP_CWR;
	put_be16(tcp + TCP_CHECKSUM,
		 checksum(packet, part->ip_bytes, bytes, IPPROTO_TCP, TCP_CHECKSUM));
}

static bool has_length(const uint8_t *packet, size_t bytes)
{
	return wire_inet_is_v4(packet) ? get_be16(packet + 2) == bytes :
					 get_be16(packet + 4) + (size_t)IPV6_HEADER == bytes;
}

size_t wire_inet_transport(const uint8_t *packet, size_t bytes, size_t *field)
{
	uint8_t protocol;
	size_t ip = ip_header(packet, bytes, &protocol);

	if (!ip || !has_length(packet, bytes))
		return 0;
	if (protocol == IPPROTO_TCP) {
		*field = TCP_CHECKSUM;
		return ip + TCP_HEADER <= bytes ? ip : 0;
	}
	*field = UDP_CHECKSUM;
	return protocol == IPPROTO_UDP && ip + UDP_HEADER <= bytes ? ip : 0;
}

/* UDP has no checksum 0 (RFC 768): its complement says the same. */
bool wire_inet_finish(uint8_t *packet, size_t bytes)
{
	size_t field, ip = wire_inet_transport(packet, bytes, &field);
	uint16_t sum;
	bool udp;

	if (!ip)
		return false;
	udp = field == UDP_CHECKSUM;
	finish_ip(packet, ip);
	sum = checksum(packet, ip, bytes, udp ? IPPROTO_UDP : IPPROTO_TCP, field);
	put_be16(packet + ip + field, sum || !udp ? sum : 0xffff);
	return true;
}
