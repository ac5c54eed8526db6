/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The headers of RoCEv2 in front of the BTH (IBA v1 A17.4; RFC 791, 8200, 768; IEEE 802.1Q). */
#include "wire/roce.h"

#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "wire/frame.h"
#include "wire/inet.h"

#define ETHER_TYPE_VLAN 0x8100
#define ETHER_TYPE_IPV4 0x0800
#define ETHER_TYPE_IPV6 0x86dd
#define IPV4_BYTES	20
#define IPV4_AT		12 /* of a GID that is mapped */
#define UDP_BYTES	8
#define PROTO_UDP	17
#define DONT_FRAGMENT	0x4000
#define MORE_FRAGMENTS	1 /* of struct wire_frame_key.ip_flags */
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
	put_be16(b + 10, wire_inet_fold(wire_inet_sum(b, IPV4_BYTES, 0)));
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

size_t wire_roce_encode(const struct wire_roce_headers *h, const void *bth, size_t bytes, void *buf)
{
	size_t ip = h->vlan_id ? WIRE_FRAME_OVERHEAD : WIRE_FRAME_MIN;
	size_t at = wire_roce_headers_encode(h, bytes, buf);
	uint8_t *b = buf;
	uint32_t icrc = 0;

	memcpy(b + at, bth, bytes);
	at += bytes;
	wire_roce_icrc(b + ip, at - ip, &icrc);
	put_be32(b + at, icrc);
	return at + WIRE_ICRC_BYTES;
}

/* --- a frame that came from outside --- */

static void set_mapped(const uint8_t ipv4[4], union wire_gid *gid)
{
	bool group = ipv4[0] >> 4 == 0xe;

	*gid = (union wire_gid){.raw = {[0] = group ? 0xff : 0, [1] = group ? 0x0e : 0, [10] = 0xff, [11] = 0xff}};
	memcpy(gid->raw + IPV4_AT, ipv4, 4);
}

/* Return: bytes of the header; 0: it is malformed. *@inside: what follows it */
static size_t get_ipv4(const uint8_t *b, struct wire_grh *grh, size_t *inside)
{
	if (b[0] != 0x45 || wire_inet_fold(wire_inet_sum(b, IPV4_BYTES, 0)) || get_be16(b + 2) < IPV4_BYTES)
		return 0;
	grh->traffic_class = b[1];
	grh->hop_limit = b[8];
	grh->flow_label = get_be16(b + IPV4_BYTES) & ~SOURCE_PORT;
	set_mapped(b + 12, &grh->sgid);
	set_mapped(b + 16, &grh->dgid);
	*inside = (size_t)get_be16(b + 2) - IPV4_BYTES;
	return IPV4_BYTES;
}

static size_t get_ipv6(const uint8_t *b, struct wire_grh *grh, size_t *inside)
{
	wire_grh_decode(b, grh);
	*inside = grh->payload_bytes;
	return WIRE_GRH_BYTES;
}

/* A checksum of 0 is none, which RoCEv2 allows on IPv6 too (A17.3.1.1). */
static bool udp_is_right(const uint8_t *ip, const uint8_t *udp, size_t bytes)
{
	return get_be16(udp + 4) == bytes &&
	       (!get_be16(udp + 6) || !wire_inet_fold(wire_inet_sum(udp, bytes, wire_inet_pseudo_sum(ip, PROTO_UDP, bytes))));
}

static bool icrc_is_right(const uint8_t *ip, size_t bytes)
{
	uint32_t icrc;

	return !wire_roce_icrc(ip, bytes - WIRE_ICRC_BYTES, &icrc) && icrc == get_be32(ip + bytes - WIRE_ICRC_BYTES);
}

int wire_roce_decode(const void *frame, size_t len, struct wire_roce *roce)
{
	struct wire_roce_headers *h = &roce->headers;
	struct wire_frame_key key;
	const uint8_t *b = frame;
	size_t ip = WIRE_FRAME_MIN, header, bytes;

	if (wire_frame_parse(frame, len, &key) || !(key.has & WIRE_FRAME_UDP) ||
	    get_be16(key.dst_port) != WIRE_ROCE_UDP_PORT)
		return -ENOENT;
	*h = (struct wire_roce_headers){.grh = {.ip_version = 6}};
	if (key.has & WIRE_FRAME_VLAN) {
		h->vlan_id = get_be16(key.vlan_tag) & 0x0fff;
		h->priority = key.vlan_tag[0] >> 5;
		ip = WIRE_FRAME_OVERHEAD;
	}
	memcpy(h->dst_mac, key.dst_mac, sizeof(h->dst_mac));
	memcpy(h->src_mac, key.src_mac, sizeof(h->src_mac));
	header = (key.has & WIRE_FRAME_IPV4 ? get_ipv4 : get_ipv6)(b + ip, &h->grh, &bytes);
	if (!header || key.ip_flags & MORE_FRAGMENTS || header + bytes > len - ip || bytes % 4 ||
	    bytes < UDP_BYTES + WIRE_BTH_BYTES + WIRE_ICRC_BYTES ||
	    !udp_is_right(b + ip, b + ip + header, bytes) || !icrc_is_right(b + ip, header + bytes))
		return -EINVAL;
	h->grh.next_header = WIRE_NEXT_HEADER_BTH;
	h->grh.payload_bytes = (uint16_t)(bytes - UDP_BYTES);
	roce->bth = b + ip + header + UDP_BYTES;
	roce->bytes = bytes - UDP_BYTES - WIRE_ICRC_BYTES;
	return 0;
}
