/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The two CRCs at the end of a packet (IBA v1 7.8), and that of an Ethernet frame. Packets inside the
 * fabric have no CRCs; captures add them.
 */
#include "wire/packet.h"
#include "wire/roce.h"
#include "base/bytes.h"

#include <errno.h>
#include <isa-l/crc.h>

#define BTH_RESV8A	4 /* FECN, BECN, reserved: bytes that switches may change */
#define IPV4_BYTES	20
#define IPV6_BYTES	40
#define UDP_BYTES	8
#define IP_PROTOCOL_UDP 17
/* replaces the LRH in front of an IP header (A17.3.3) */
#define PSEUDO_LRH_BYTES 8
#define MASKED_MAX	 (PSEUDO_LRH_BYTES + IPV6_BYTES + UDP_BYTES + WIRE_BTH_BYTES)

/* The CRC of IEEE 802 over the masked headers and the unmodified rest. Its four bytes are
 * sent lowest first, so the value is byte-swapped to be written as a big-endian number. */
static uint32_t crc_bytes(const uint8_t *masked, size_t masked_len, const uint8_t *rest,
			  size_t rest_len)
{
	uint32_t crc = crc32_gzip_refl(0, masked, masked_len);

	return __builtin_bswap32(crc32_gzip_refl(crc, rest, rest_len));
}

uint32_t wire_fcs(const void *frame, size_t len)
{
	return crc_bytes(NULL, 0, frame, len);
}

/* 7.8.1: traffic class, flow label and hop limit may change in routers */
static void mask_grh(uint8_t *grh)
{
	grh[0] |= 0x0f;
	memset(grh + 1, 0xff, 3);
	grh[7] = 0xff;
}

uint32_t wire_icrc(const void *buf, size_t len)
{
	const uint8_t *b = buf;
	uint8_t masked[WIRE_LRH_BYTES + WIRE_GRH_BYTES + WIRE_BTH_BYTES];
	bool has_grh = len >= 2 && (b[1] & 3) == WIRE_LNH_GRH;
	size_t bth = WIRE_LRH_BYTES + (has_grh ? WIRE_GRH_BYTES : 0);
	size_t n = MIN(len, bth + WIRE_BTH_BYTES);

	memcpy(masked, b, n);
	if (n < bth + WIRE_BTH_BYTES) /* not a packet: nothing to mask */
		return crc_bytes(masked, n, b + n, len - n);
	if (has_grh) {
		memset(masked, 0xff, WIRE_LRH_BYTES);
		mask_grh(masked + WIRE_LRH_BYTES);
	} else {
		masked[0] |= 0xf0; /* the VL */
	}
	masked[bth + BTH_RESV8A] = 0xff;
	return crc_bytes(masked, n, b + n, len - n);
}

/* A17.3.3: TOS or traffic class, TTL, checksums and flow label are masked.
 * Return: bytes of IP and UDP headers; 0 when it is not UDP. */
static size_t mask_ip_udp(uint8_t *ip, size_t len)
{
	size_t udp;

	if (ip[0] >> 4 == 4) {
		udp = (size_t)(ip[0] & 0x0f) * 4;
		if (udp != IPV4_BYTES || ip[9] != IP_PROTOCOL_UDP)
			return 0;
		ip[1] = 0xff;
		ip[8] = 0xff;
		memset(ip + 10, 0xff, 2);
	} else if (ip[0] >> 4 == 6) {
		udp = IPV6_BYTES;
		if (len < IPV6_BYTES || ip[6] != IP_PROTOCOL_UDP)
			return 0;
		mask_grh(ip);
	} else {
		return 0;
	}
	if (len < udp + UDP_BYTES + WIRE_BTH_BYTES)
		return 0;
	memset(ip + udp + 6, 0xff, 2);
	return udp + UDP_BYTES;
}

int wire_roce_icrc(const void *ip, size_t len, uint32_t *icrc)
{
	uint8_t masked[MASKED_MAX];
	const uint8_t *b = ip;
	size_t n = MIN(len, (size_t)MASKED_MAX - PSEUDO_LRH_BYTES), headers;

	if (len < IPV4_BYTES + UDP_BYTES + WIRE_BTH_BYTES)
		return -EINVAL;
	memset(masked, 0xff, PSEUDO_LRH_BYTES);
	memcpy(masked + PSEUDO_LRH_BYTES, b, n);
	headers = mask_ip_udp(masked + PSEUDO_LRH_BYTES, n);
	if (!headers)
		return -EINVAL;
	masked[PSEUDO_LRH_BYTES + headers + BTH_RESV8A] = 0xff;
	headers += WIRE_BTH_BYTES;
	*icrc = crc_bytes(masked, PSEUDO_LRH_BYTES + headers, b + headers, len - headers);
	return 0;
}

/*
 * 7.8.2: x^16 + x^12 + x^3 + x + 1 (0x100b), seed 0xffff, complemented. The low
 * bit of each byte comes first, as in the ICRC, so the polynomial is mirrored
 * (0xd008). Each step processes eight bytes: table[k][n] is the CRC of byte n
 * followed by k zero bytes. A CRC is linear, so an entry is the sum of the CRCs of
 * the bits of n, which are the constants below.
 */
#define BIT(n, b, crc) ((n) & 1 << (b) ? (crc) : 0)
#define SUM(n, c0, c1, c2, c3, c4, c5, c6, c7)                                           \
	(BIT(n, 0, c0) ^ BIT(n, 1, c1) ^ BIT(n, 2, c2) ^ BIT(n, 3, c3) ^ BIT(n, 4, c4) ^ \
	 BIT(n, 5, c5) ^ BIT(n, 6, c6) ^ BIT(n, 7, c7))
#define SUM4(n, ...)                                                                     \
	SUM(n, __VA_ARGS__), SUM(n + 1, __VA_ARGS__), SUM(n + 2, __VA_ARGS__),           \
		SUM(n + 3, __VA_ARGS__)
#define SUM16(n, ...)                                                                    \
	SUM4(n, __VA_ARGS__), SUM4(n + 4, __VA_ARGS__), SUM4(n + 8, __VA_ARGS__),        \
		SUM4(n + 12, __VA_ARGS__)
#define SUM64(n, ...)                                                                    \
	SUM16(n, __VA_ARGS__), SUM16(n + 16, __VA_ARGS__), SUM16(n + 32, __VA_ARGS__),   \
		SUM16(n + 48, __VA_ARGS__)
#define SUM256(...)                                                                      \
	{                                                                                \
		SUM64(0, __VA_ARGS__), SUM64(64, __VA_ARGS__), SUM64(128, __VA_ARGS__),  \
			SUM64(192, __VA_ARGS__)                                          \
	}

static const uint16_t vcrc_table[8][256] = {
	SUM256(0x1ba1, 0x3742, 0x6e84, 0xdd08, 0x1a01, 0x3402, 0x6804, 0xd008),
	SUM256(0xffb0, 0x5f71, 0xbee2, 0xddd5, 0x1bbb, 0x3776, 0x6eec, 0xddd8),
	SUM256(0xfef4, 0x5df9, 0xbbf2, 0xd7f5, 0x0ffb, 0x1ff6, 0x3fec, 0x7fd8),
	SUM256(0xf875, 0x50fb, 0xa1f6, 0xe3fd, 0x67eb, 0xcfd6, 0x3fbd, 0x7f7a),
	SUM256(0x33da, 0x67b4, 0xcf68, 0x3ec1, 0x7d82, 0xfb04, 0x5619, 0xac32),
	SUM256(0x4874, 0x90e8, 0x81c1, 0xa393, 0xe737, 0x6e7f, 0xdcfe, 0x19ed),
	SUM256(0x28cb, 0x5196, 0xa32c, 0xe649, 0x6c83, 0xd906, 0x121d, 0x243a),
	SUM256(0x49cf, 0x939e, 0x872d, 0xae4b, 0xfc87, 0x591f, 0xb23e, 0xc46d),
};

static uint16_t vcrc_byte(uint16_t crc, uint8_t byte)
{
	return (uint16_t)(crc >> 8 ^ vcrc_table[0][(crc ^ byte) & 0xff]);
}

uint16_t wire_vcrc(const void *buf, size_t len)
{
	const uint8_t *b = buf, *end = b + len;
	uint16_t crc = 0xffff;

	for (; end - b >= 8; b += 8)
		crc = vcrc_table[7][b[0] ^ (crc & 0xff)] ^ vcrc_table[6][b[1] ^ crc >> 8] ^
		      vcrc_table[5][b[2]] ^ vcrc_table[4][b[3]] ^ vcrc_table[3][b[4]] ^
		      vcrc_table[2][b[5]] ^ vcrc_table[1][b[6]] ^ vcrc_table[0][b[7]];
	while (b < end)
		crc = vcrc_byte(crc, *b++);
	return __builtin_bswap16((uint16_t)~crc);
}
