/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Received TCP segments, or datagrams of UDP of one length, become one large packet. */
#include "ulp/net/merge.h"

#include <netinet/in.h>
#include <string.h>

#include "wire/inet.h"

#define IPV4_HEADER    20
#define IPV6_HEADER    40
#define TCP_HEADER     20
#define TCP_CHECKSUM   16
#define UDP_HEADER     8
#define UDP_CHECKSUM   6
#define DATAGRAMS_MOST 64 /* that the host cuts one packet into, as of its own */
#define GSO_UDP	       5 /* VIRTIO_NET_HDR_GSO_UDP_L4, of Linux 6.2 and later */
#define DONT_FRAGMENT  0x4000 /* the identification of such a packet says nothing (RFC 6864) */
enum { TCP_PSH = 0x08, TCP_ACK = 0x10 };

static u8 protocol_of(const u8 *packet)
{
	return packet[wire_inet_is_v4(packet) ? 9 : 6];
}

/* Of a group's datagrams programs may see the packets themselves (DHCP), so they stay what they are. */
static bool is_wanted(const u8 *packet)
{
	u8 first = packet[wire_inet_is_v4(packet) ? 16 : 24];

	return protocol_of(packet) == IPPROTO_TCP ||
	       (protocol_of(packet) == IPPROTO_UDP && first < (wire_inet_is_v4(packet) ? 0xe0 : 0xff));
}

/* Return: the bytes of a plain IP header in front of TCP or UDP; 0: it is something else */
static size_t ip_header(const u8 *packet, size_t bytes)
{
	if (bytes < IPV4_HEADER + UDP_HEADER)
		return 0;
	if (packet[0] == 0x45)
		return is_wanted(packet) && get_be16(packet + 2) == bytes &&
				       get_be16(packet + 6) == DONT_FRAGMENT ?
			       IPV4_HEADER : 0;
	if (packet[0] >> 4 != 6 || bytes < IPV6_HEADER + UDP_HEADER)
		return 0;
	return is_wanted(packet) && get_be16(packet + 4) == bytes - IPV6_HEADER ? IPV6_HEADER : 0;
}

static u64 pseudo_sum(const u8 *packet, size_t tcp_bytes)
{
	return wire_inet_pseudo_sum(packet, protocol_of(packet), tcp_bytes);
}

/* of one that has data and a checksum */
static size_t udp_headers(const u8 *packet, size_t bytes, size_t ip)
{
	return get_be16(packet + ip + 4) == bytes - ip && bytes > ip + UDP_HEADER &&
			       get_be16(packet + ip + UDP_CHECKSUM) ?
		       ip + UDP_HEADER : 0;
}

/* Return: the bytes of its headers, if it has data and nothing that a receiver must see for
 * each segment; 0 */
static size_t headers_of(const u8 *packet, size_t bytes)
{
	size_t ip = ip_header(packet, bytes), tcp;

	if (ip && protocol_of(packet) == IPPROTO_UDP)
		return udp_headers(packet, bytes, ip);
	tcp = ip && ip + TCP_HEADER < bytes ? (packet[ip + 12] >> 4) * 4u : 0;
	if (tcp < TCP_HEADER || ip + tcp >= bytes ||
	    (packet[ip + 13] & ~TCP_PSH) != TCP_ACK || packet[ip + 12] & 15)
		return 0;
	return ip + tcp;
}

static bool has_right_checksum(const u8 *packet, size_t bytes)
{
	size_t ip = ip_header(packet, bytes);

	return !wire_inet_fold(wire_inet_sum(packet + ip, bytes - ip, pseudo_sum(packet, bytes - ip)));
}

bool net_merge_is_udp(const u8 *packet)
{
	return protocol_of(packet) == IPPROTO_UDP;
}

bool net_merge_may_begin(const u8 *packet, size_t bytes)
{
	return 2 * bytes <= NET_LARGE_BYTES && headers_of(packet, bytes);
}

/* Do the headers differ in nothing but length, identification, sequence number, PSH, window
 * and checksums? */
static bool is_same_flow(const struct net_merge *m, const u8 *packet)
{
	const u8 *tcp = packet + m->ip_header, *own = m->header + m->ip_header;
	bool same_ip = wire_inet_is_v4(packet) ?
			       !memcmp(packet, m->header, 2) &&
				       !memcmp(packet + 6, m->header + 6, 4) &&
				       !memcmp(packet + 12, m->header + 12, 8) :
			       !memcmp(packet, m->header, 4) &&
				       !memcmp(packet + 6, m->header + 6, 34);

	if (!same_ip || memcmp(tcp, own, 4) || protocol_of(packet) == IPPROTO_UDP)
		return same_ip && !memcmp(tcp, own, 4);
	return get_be32(tcp + 4) == m->next_seq && !memcmp(tcp + 8, own + 8, 5) &&
	       !memcmp(tcp + TCP_HEADER, own + TCP_HEADER,
		       m->headers - m->ip_header - TCP_HEADER);
}

/* Payloads that are copied lie one behind the other, so they are one part. */
static void append_copy(struct net_merge *m, const u8 *payload, size_t bytes)
{
	u8 *to = m->copied + m->bytes - m->headers;
	struct iovec *last = m->num_parts ? &m->part[m->num_parts - 1] : NULL;

	memcpy(to, payload, bytes);
	if (last && (u8 *)last->iov_base + last->iov_len == to)
		last->iov_len += bytes;
	else
		m->part[m->num_parts++] = (struct iovec){to, bytes};
}

static void append(struct net_merge *m, const u8 *packet, size_t bytes, bool stays)
{
	u8 *payload = (u8 *)(uintptr_t)packet + m->headers;
	size_t payload_bytes = bytes - m->headers;
	u8 push;

	if (stays)
		m->part[m->num_parts++] = (struct iovec){payload, payload_bytes};
	else
		append_copy(m, payload, payload_bytes);
	m->bytes += payload_bytes;
	m->count++;
	m->whole = payload_bytes < m->mss || m->count == NET_MERGED_MOST;
	if (protocol_of(packet) == IPPROTO_UDP) {
		m->whole |= m->count == DATAGRAMS_MOST;
		return;
	}
	push = packet[m->ip_header + 13] & TCP_PSH;
	m->header[m->ip_header + 13] |= push;
	m->next_seq += (u32)payload_bytes;
	m->whole |= push != 0;
}

bool net_merge_add(struct net_merge *m, const u8 *packet, size_t bytes, bool checked,
		   bool stays)
{
	size_t headers;

	if (m->count && (m->whole || m->bytes + bytes - m->headers > NET_LARGE_BYTES ||
			 packet[0] >> 4 != m->header[0] >> 4))
		return false;
	headers = headers_of(packet, bytes);
	if (!headers || (!checked && !has_right_checksum(packet, bytes)))
		return false;
	if (!m->count) {
		m->ip_header = wire_inet_is_v4(packet) ? IPV4_HEADER : IPV6_HEADER;
		m->headers = m->bytes = headers;
		m->mss = bytes - headers;
		m->next_seq = get_be32(packet + m->ip_header + 4);
		m->num_parts = 0;
		memcpy(m->header, packet, headers);
	} else if (headers != m->headers || bytes - headers > m->mss ||
		   !is_same_flow(m, packet)) {
		return false;
	}
	append(m, packet, bytes, stays);
	return true;
}

void net_merge_end(struct net_merge *m, struct virtio_net_hdr *h)
{
	bool v4 = wire_inet_is_v4(m->header);
	bool udp = protocol_of(m->header) == IPPROTO_UDP;
	u8 *tcp = m->header + m->ip_header;

	*h = (struct virtio_net_hdr){.gso_type = VIRTIO_NET_HDR_GSO_NONE};
	if (m->count == 1)
		return; /* as it came */
	h->flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
	h->gso_type = udp ? GSO_UDP : v4 ? VIRTIO_NET_HDR_GSO_TCPV4 : VIRTIO_NET_HDR_GSO_TCPV6;
	h->gso_size = (u16)m->mss;
	h->hdr_len = (u16)m->headers;
	h->csum_start = (u16)m->ip_header;
	h->csum_offset = udp ? UDP_CHECKSUM : TCP_CHECKSUM;
	if (udp)
		put_be16(tcp + 4, (u16)(m->bytes - m->ip_header));
	if (v4) {
		put_be16(m->header + 2, (u16)m->bytes);
		put_be16(m->header + 10, 0);
		put_be16(m->header + 10, wire_inet_fold(wire_inet_sum(m->header, IPV4_HEADER, 0)));
	} else {
		put_be16(m->header + 4, (u16)(m->bytes - IPV6_HEADER));
	}
	put_be16(tcp + h->csum_offset,
		 (u16)~wire_inet_fold(pseudo_sum(m->header, m->bytes - m->ip_header)));
}
