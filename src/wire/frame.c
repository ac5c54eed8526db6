/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Reads the headers of Ethernet frames (IEEE 802.3, 802.1Q; RFC 791, 8200, 768, 9293). */
#include "wire/frame.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/bytes.h"

#define ETHER_TYPE_IPV4 0x0800
#define ETHER_TYPE_IPV6 0x86dd
#define ETHER_TYPE_VLAN 0x8100
#define IPV4_MIN	20
#define IPV6_BYTES	40
#define PROTO_TCP	6
#define PROTO_UDP	17
#define PORTS_BYTES	4
#define KEY_WORDS	(sizeof(struct wire_frame_key) / sizeof(uint64_t))

static_assert(sizeof(struct wire_frame_key) == 64, "compared in words, and part of the ABI");

static void parse_ports(const uint8_t *b, size_t len, struct wire_frame_key *key)
{
	if (len < PORTS_BYTES || (key->ip_proto != PROTO_TCP && key->ip_proto != PROTO_UDP))
		return;
	key->has |= key->ip_proto == PROTO_TCP ? WIRE_FRAME_TCP : WIRE_FRAME_UDP;
	memcpy(key->src_port, b, sizeof(key->src_port));
	memcpy(key->dst_port, b + 2, sizeof(key->dst_port));
}

static void parse_ipv4(const uint8_t *b, size_t len, struct wire_frame_key *key)
{
	size_t header = len ? (b[0] & 0x0fu) * 4 : 0;

	if (len < IPV4_MIN || b[0] >> 4 != 4 || header < IPV4_MIN)
		return;
	key->has |= WIRE_FRAME_IPV4;
	key->tos = b[1];
	key->ip_flags = b[6] >> 5;
	key->ttl = b[8];
	key->ip_proto = b[9];
	memcpy(key->src_ip, b + 12, 4);
	memcpy(key->dst_ip, b + 16, 4);
	if (header <= len && !(get_be16(b + 6) & 0x1fff)) /* later fragments have no ports */
		parse_ports(b + header, len - header, key);
}

static void parse_ipv6(const uint8_t *b, size_t len, struct wire_frame_key *key)
{
	if (len < IPV6_BYTES || b[0] >> 4 != 6)
		return;
	key->has |= WIRE_FRAME_IPV6;
	key->tos = (uint8_t)(get_be16(b) >> 4);
	key->flow_label[0] = b[1] & 0x0f;
	memcpy(key->flow_label + 1, b + 2, 2);
	key->ip_proto = b[6];
	key->ttl = b[7];
	memcpy(key->src_ip, b + 8, 16);
	memcpy(key->dst_ip, b + 24, 16);
	parse_ports(b + IPV6_BYTES, len - IPV6_BYTES, key);
}

int wire_frame_parse(const void *frame, size_t len, struct wire_frame_key *key)
{
	const uint8_t *b = frame, *type = b + 12;
	size_t header = WIRE_FRAME_MIN;

	if (len < WIRE_FRAME_MIN)
		return -EINVAL;
	memset(key, 0, sizeof(*key));
	memcpy(key->dst_mac, b, 6);
	memcpy(key->src_mac, b + 6, 6);
	if (get_be16(type) == ETHER_TYPE_VLAN && len >= WIRE_FRAME_OVERHEAD) {
		key->has |= WIRE_FRAME_VLAN;
		memcpy(key->vlan_tag, type + 2, sizeof(key->vlan_tag));
		type += 4;
		header += 4;
	}
	memcpy(key->ether_type, type, sizeof(key->ether_type));
	if (get_be16(type) == ETHER_TYPE_IPV4)
		parse_ipv4(b + header, len - header, key);
	else if (get_be16(type) == ETHER_TYPE_IPV6)
		parse_ipv6(b + header, len - header, key);
	return 0;
}

bool wire_frame_matches(const struct wire_frame_key *key, const struct wire_frame_key *value,
			const struct wire_frame_key *mask)
{
	uint64_t k[KEY_WORDS], v[KEY_WORDS], m[KEY_WORDS], differs = 0;

	memcpy(k, key, sizeof(k));
	memcpy(v, value, sizeof(v));
	memcpy(m, mask, sizeof(m));
	for (size_t i = 0; i < KEY_WORDS; i++)
		differs |= (k[i] ^ v[i]) & m[i];
	return !differs;
}

/* each bit of the data that is set adds the 32 bits of the key that begin at its place */
uint32_t wire_toeplitz(const uint8_t key[WIRE_TOEPLITZ_KEY_BYTES], const uint8_t *data, size_t len)
{
	uint32_t window = get_be32(key), hash = 0;

	for (size_t i = 0; i < len; i++)
		for (int bit = 7; bit >= 0; bit--) {
			if (data[i] >> bit & 1)
				hash ^= window;
			window = window << 1 | (key[i + 4] >> bit & 1u);
		}
	return hash;
}
