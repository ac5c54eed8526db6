/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a network interface does to packets of IP for its host: it computes the Internet checksum
 * (RFC 1071), and cuts a large TCP segment into packets, each with headers of its own. Both IPoIB
 * and the adapter (IB_WR_LSO, IB_SEND_IP_CSUM) do so. Pure.
 */
#ifndef SOFTIB_WIRE_INET_H
#define SOFTIB_WIRE_INET_H

#include <endian.h>
#include <string.h>

#include "base/bytes.h"
#include "base/types.h"

/** wire_inet_sum_blocks() - the sum of @blocks of 32 bytes. Four sums of words in the host's byte
 *  order make vector instructions of it; 2^16 is 1 modulo 0xffff, so that exchanging the bytes
 *  of the folded sum gives the one in network order (RFC 1071 section 2) */
static inline uint64_t wire_inet_sum_blocks(const uint8_t *p, size_t blocks)
{
	typedef uint32_t words __attribute__((vector_size(16)));
	typedef uint64_t sums __attribute__((vector_size(16)));
	sums even = {0}, odd = {0};
	uint64_t sum;
	words w[2];

	for (; blocks; p += sizeof(w), blocks--) {
		memcpy(w, p, sizeof(w));
		for (int i = 0; i < 2; i++) {
			even += (sums)w[i] & 0xffffffffu;
			odd += (sums)w[i] >> 32;
		}
	}
	even = (even & 0xffffffffu) + (even >> 32) + (odd & 0xffffffffu) + (odd >> 32);
	sum = even[0] + even[1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return be16toh((uint16_t)sum);
}

/** wire_inet_sum() - add @bytes to the sum @before: four at a time, as 2^16 is 1 modulo
 *  0xffff */
static inline uint64_t wire_inet_sum(const uint8_t *p, size_t bytes, uint64_t before)
{
	if (bytes >= 64) {
		before += wire_inet_sum_blocks(p, bytes / 32);
		p += bytes & ~(size_t)31;
		bytes &= 31;
	}
	for (; bytes >= 4; p += 4, bytes -= 4)
		before += get_be32(p);
	if (bytes >= 2) {
		before += get_be16(p);
		p += 2;
		bytes -= 2;
	}
	return bytes ? before + (uint64_t)(p[0] << 8) : before;
}

/** wire_inet_fold() - the checksum that a sum makes */
static inline uint16_t wire_inet_fold(uint64_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

/** wire_inet_is_v4() - of a packet of IPv4 or IPv6 */
static inline bool wire_inet_is_v4(const uint8_t *packet)
{
	return packet[0] >> 4 == 4;
}

/** wire_inet_pseudo_sum() - the sum of the pseudo-header (RFC 9293 section 3.1, RFC 8200 section 8.1)
 *  @bytes: of the header of @protocol and of what follows it */
static inline uint64_t wire_inet_pseudo_sum(const uint8_t *packet, uint8_t protocol, size_t bytes)
{
	bool v4 = wire_inet_is_v4(packet);

	return wire_inet_sum(packet + (v4 ? 12 : 8), v4 ? 8 : 32, protocol + bytes);
}

/** struct wire_tcp_part - a packet that is cut from a large TCP segment */
struct wire_tcp_part {
	size_t ip_bytes, header_bytes; /* of the IP header alone; with that of TCP */
	size_t payload_bytes;
	size_t offset; /* of its payload in that of the segment */
	uint16_t index;
	bool last;
};

/** wire_tcp_headers() - the headers of a packet that begins with those of IP and TCP, and with no
 *  others. @bytes: so many are there. Return: their length, and *@ip_bytes that of IP's; 0: it is
 *  something else, or they are longer than @bytes */
size_t wire_tcp_headers(const uint8_t *packet, size_t bytes, size_t *ip_bytes);
/** wire_tcp_finish() - make the headers in front of the payload of @part, which are those of the
 *  segment, its own: length, identification, sequence number, flags and checksums */
void wire_tcp_finish(uint8_t *packet, const struct wire_tcp_part *part);
/** wire_inet_transport() - the header of TCP or UDP directly behind that of IP. Return: where it is, and
 *  *@field: in it, the checksum; 0: it is no such packet of @bytes */
size_t wire_inet_transport(const uint8_t *packet, size_t bytes, size_t *field);
/** wire_inet_finish() - compute the checksums of an IPv4 header, and of TCP or UDP behind a header of
 *  IP. Return: false: it is no such packet of @bytes, and nothing was changed */
bool wire_inet_finish(uint8_t *packet, size_t bytes);

#endif
