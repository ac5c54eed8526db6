/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Checksums and segments of the host's that are left to the interface. */
#include "ulp/net/segment.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "wire/inet.h"

#define TCP_HEADER 20

bool net_is_large(const struct virtio_net_hdr *h)
{
	return h->gso_type != VIRTIO_NET_HDR_GSO_NONE;
}

/* The field holds the sum of the pseudo-header. UDP has no checksum 0 (RFC 768): its
 * complement says the same. */
int net_fill_checksum(const struct virtio_net_hdr *h, u8 *packet, size_t bytes)
{
	size_t start = h->csum_start, field = start + h->csum_offset;
	u16 checksum;

	if (!(h->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM))
		return 0;
	if (field + 2 > bytes)
		return -EINVAL;
	checksum = wire_inet_fold(wire_inet_sum(packet + start, bytes - start, 0));
	put_be16(packet + field, checksum ? checksum : 0xffff);
	return 0;
}

bool net_checksum_is_plain(const struct virtio_net_hdr *h, const u8 *packet, size_t bytes)
{
	size_t ip, field;

	if (!(h->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM))
		return false;
	ip = wire_inet_transport(packet, bytes, &field);
	return ip && h->csum_start == ip && h->csum_offset == field;
}

/* --- cutting --- */

/* Does the header that the host describes agree with what it says of the packet? */
static bool is_tcp(const struct virtio_net_hdr *h, const u8 *packet, size_t bytes)
{
	unsigned type = h->gso_type & ~VIRTIO_NET_HDR_GSO_ECN;

	if (!(h->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) || !h->gso_size ||
	    h->csum_start + (size_t)TCP_HEADER > bytes)
		return false;
	if (type == VIRTIO_NET_HDR_GSO_TCPV4)
		return packet[0] >> 4 == 4 && packet[9] == IPPROTO_TCP &&
		       h->csum_start >= 20 && h->csum_start == (packet[0] & 15) * 4;
	return type == VIRTIO_NET_HDR_GSO_TCPV6 && packet[0] >> 4 == 6 && h->csum_start >= 40;
}

int net_cut_begin(struct net_cut *c, const struct virtio_net_hdr *h, const u8 *packet,
		  size_t bytes, size_t mtu)
{
	size_t tcp_header;

	if (!is_tcp(h, packet, bytes))
		return -EINVAL;
	tcp_header = (packet[h->csum_start + 12] >> 4) * 4u;
	*c = (struct net_cut){
		.packet = packet,
		.bytes = bytes,
		.ip_header = h->csum_start,
		.headers = h->csum_start + tcp_header,
		.mss = h->gso_size,
		.at = h->csum_start + tcp_header,
	};
	return tcp_header < TCP_HEADER || c->headers >= bytes || c->headers + c->mss > mtu
		       ? -EINVAL
		       : 0;
}

bool net_cut_is_plain(const struct net_cut *c)
{
	size_t ip;

	return wire_tcp_headers(c->packet, c->bytes, &ip) == c->headers;
}

bool net_cut_is_done(const struct net_cut *c)
{
	return c->at == c->bytes;
}

size_t net_cut_next(struct net_cut *c, u8 *to)
{
	size_t payload = MIN(c->mss, c->bytes - c->at);

	if (!payload)
		return 0;
	memcpy(to, c->packet, c->headers);
	memcpy(to + c->headers, c->packet + c->at, payload);
	wire_tcp_finish(to, &(struct wire_tcp_part){.ip_bytes = c->ip_header,
						    .header_bytes = c->headers,
						    .payload_bytes = payload,
						    .offset = c->at - c->headers,
						    .index = c->index,
						    .last = c->at + payload == c->bytes});
	c->at += payload;
	c->index++;
	return c->headers + payload;
}
