/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The two CRCs that end a packet (IBA v1 7.8). Only captures and real wires
 * carry them: inside the fabric packets travel without.
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
/* what stands for the LRH in front of an IP header (A17.3.3) */
#define PSEUDO_LRH_BYTES 8
#define MASKED_MAX	 (PSEUDO_LRH_BYTES + IPV6_BYTES + UDP_BYTES + WIRE_BTH_BYTES)

/* The CRC of IEEE 802 over the masked headers, then over the rest as it is.
 * Its four bytes go out lowest first: swapped, they load as a big-endian. */
static uint32_t crc_bytes(const uint8_t *masked, size_t masked_len, const uint8_t *rest,
			  size_t rest_len)
{
	uint32_t crc = crc32_gzip_refl(0, masked, masked_len);

	return __builtin_bswap32(crc32_gzip_refl(crc, rest, rest_len));
}

/* 7.8.1: traffic class, flow label and hop limit may change on the way */
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
 * 7.8.2: x^16 + x^12 + x^3 + x + 1 (0x100b), seed 0xffff, complemented, the
 * low bit of each byte first as in the ICRC: hence the polynomial mirrored.
 * Half a byte a step: captures only, so 16 entries do.
 */
#define VCRC_POLY_MIRRORED 0xd008u
#define VCRC_STEP(c)	   ((c)&1 ? (c) >> 1 ^ VCRC_POLY_MIRRORED : (c) >> 1)
#define VCRC_ENTRY(n)	   VCRC_STEP(VCRC_STEP(VCRC_STEP(VCRC_STEP((n)))))

static const uint16_t vcrc_table[16] = {
    VCRC_ENTRY(0u),  VCRC_ENTRY(1u),  VCRC_ENTRY(2u),  VCRC_ENTRY(3u),
    VCRC_ENTRY(4u),  VCRC_ENTRY(5u),  VCRC_ENTRY(6u),  VCRC_ENTRY(7u),
    VCRC_ENTRY(8u),  VCRC_ENTRY(9u),  VCRC_ENTRY(10u), VCRC_ENTRY(11u),
    VCRC_ENTRY(12u), VCRC_ENTRY(13u), VCRC_ENTRY(14u), VCRC_ENTRY(15u),
};

uint16_t wire_vcrc(const void *buf, size_t len)
{
	const uint8_t *b = buf;
	uint16_t crc = 0xffff;

	for (size_t i = 0; i < len; i++) {
		crc ^= b[i];
		crc = (uint16_t)(crc >> 4 ^ vcrc_table[crc & 15]);
		crc = (uint16_t)(crc >> 4 ^ vcrc_table[crc & 15]);
	}
	return __builtin_bswap16((uint16_t)~crc);
}
