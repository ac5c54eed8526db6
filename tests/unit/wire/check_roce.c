/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * check_roce - read RoCEv2 packets from standard input, each a 32-bit
 * little-endian length and that many bytes from the IP header to the ICRC;
 * decode each, check its ICRC, encode it again. Prints a line per packet: its
 * opcode and "ok", or what is wrong. Ends with 1 when something was.
 */
#include <endian.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "wire/packet.h"
#include "wire/roce.h"

#define UDP_BYTES 8
#define FRAME_MAX 65536

/* Return: what is wrong, or NULL */
static const char *check(const uint8_t *ip, size_t len, uint8_t *opcode)
{
	size_t bth = (ip[0] >> 4 == 4 ? 20 : 40) + UDP_BYTES;
	size_t end = len - WIRE_ICRC_BYTES;
	uint8_t again[WIRE_HEADERS_MAX];
	struct wire_packet p;
	uint32_t icrc;
	int n;

	if (len < bth + WIRE_BTH_BYTES + WIRE_ICRC_BYTES)
		return "too short";
	*opcode = ip[bth];
	if (wire_roce_icrc(ip, end, &icrc) < 0)
		return "not a RoCEv2 packet";
	if (icrc != get_be32(ip + end))
		return "ICRC differs";
	n = wire_bth_decode(ip + bth, end - bth, &p);
	if (n < 0)
		return "does not decode";
	if (wire_bth_encode(&p, again) != n || memcmp(again, ip + bth, (size_t)n))
		return "headers encode differently";
	if (p.payload != ip + bth + n ||
	    (size_t)n + p.payload_bytes + p.bth.pad_bytes != end - bth)
		return "payload is elsewhere";
	return NULL;
}

int main(void)
{
	static uint8_t ip[FRAME_MAX];
	uint32_t len;
	int bad = 0;

	while (fread(&len, sizeof(len), 1, stdin) == 1) {
		const char *wrong;
		uint8_t opcode = 0xff;

		len = le32toh(len);
		if (len < 20 || len > sizeof(ip) || fread(ip, 1, len, stdin) != len) {
			fprintf(stderr, "check_roce: input is cut off\n");
			return 2;
		}
		wrong = check(ip, len, &opcode);
		printf("%02x %s\n", opcode, wrong ? wrong : "ok");
		bad |= wrong != NULL;
	}
	return bad;
}
