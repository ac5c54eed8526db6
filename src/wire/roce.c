/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The headers of RoCEv2 in front of the BTH (IBA v1 A17.4; RFC 791, 8200, 768; IEEE 802.1Q). */
#include "wire/roce.h"

#include <string.h>

#include "base/bytes.h"

#define ETHER_TYPE_VLAN 0x8100
#define ETHER_TYPE_IPV4 0x0800
#define ETHER_TYPE_IPV6 0x86dd
#define IPV4_BYTES	20
#define IPV4_AT		12 /* of a GID that is mapped */
#define UDP_BYTES	8
#define PROTO_UDP	17
#define DONT_FRAGMENT	0x4000
#define SOURCE_PORT	0xc000 /* A17.4.4.1: one of a flow, of those that are nobody's */

/* a group's address is ff0e::ffff:a.b.c.d, for example */
static bool is_ipv4(const union wire_gid *gid)
{
	static const uint8_t mapped[IPV4_AT] = {[10] = 0xff, [11] = 0xff};
	size_t scope = gid->raw[0] == 0xff ? 2 : 0;

	return !memcmp(gid->raw + scope, mapped + scope, sizeof(mapped) - scope);
}

static size_t put_ethernet(const struct wire_roce_headers *h, uint16_t type, uint8_t *b)
{
	size_t at = 12;

	memcpy(b, h->dst_mac, 6);
	memcpy(b + 6, h->src_mac, 6);
	if (h->vlan_id) {
		put_be16(b + at, ETHER_TYPE_VLAN);
		put_be16(b + at + 2, (uint16_t)((h->priority & 7) << 13 | h->vlan_id));
		at += 4;
	}
	put_be16(b + at, type);
	return at + 2;
}

static uint16_t checksum(const uint8_t *b)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < IPV4_BYTES; i += 2)
		sum += get_be16(b + i);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~(sum + (sum >> 16));
}

static size_t put_ipv4(const struct wire_grh *grh, size_t udp_bytes, uint8_t *b)
{
	memset(b, 0, IPV4_BYTES);
	b[0] = 0x45;
	b[1] = grh->traffic_class;
	put_be16(b + 2, (uint16_t)(IPV4_BYTES + udp_bytes));
	put_be16(b + 6, DONT_FRAGMENT);
	b[8] = grh->hop_limit;
	b[9] = PROTO_UDP;
	memcpy(b + 12, grh->sgid.raw + IPV4_AT, 4);
	memcpy(b + 16, grh->dgid.raw + IPV4_AT, 4);
	put_be16(b + 10, checksum(b));
	return IPV4_BYTES;
}

/* The GRH is an IPv6 header, but for what follows it. */
static size_t put_ipv6(const struct wire_grh *grh, size_t udp_bytes, uint8_t *b)
{
	struct wire_grh ip = *grh;

	ip.payload_bytes = (uint16_t)udp_bytes;
	wire_grh_encode(&ip, b);
	b[6] = PROTO_UDP;
	return WIRE_GRH_BYTES;
}

size_t wire_roce_headers_encode(const struct wire_roce_headers *h, size_t bytes, void *buf)
{
	bool v4 = is_ipv4(&h->grh.sgid) && is_ipv4(&h->grh.dgid);
	size_t udp_bytes = UDP_BYTES + bytes + WIRE_ICRC_BYTES;
	uint8_t *b = buf;
	size_t at = put_ethernet(h, v4 ? ETHER_TYPE_IPV4 : ETHER_TYPE_IPV6, b);

	at += (v4 ? put_ipv4 : put_ipv6)(&h->grh, udp_bytes, b + at);
	put_be16(b + at, (uint16_t)(SOURCE_PORT | (h->grh.flow_label & ~SOURCE_PORT)));
	put_be16(b + at + 2, WIRE_ROCE_UDP_PORT);
	put_be16(b + at + 4, (uint16_t)udp_bytes);
	put_be16(b + at + 6, 0); /* A17.3.1.1: no checksum; the ICRC protects more */
	return at + UDP_BYTES;
}
