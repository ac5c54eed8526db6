/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The formats of IP over InfiniBand: link addresses, groups, ARP. */
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "ulp/ipoib/frame.h"

#define ARP_HARDWARE   32     /* InfiniBand, IANA's number */
#define IPV4_SIGNATURE 0x401b /* RFC 4391 section 4 */
#define IPV6_SIGNATURE 0x601b
#define PKEY_FULL      0x8000
#define FLAG_RC	       0x80 /* RFC 4755 section 3.1: of the first byte of a link address */

bool ipoib_is_same_link(const struct ipoib_link *a, const struct ipoib_link *b)
{
	return a->qpn == b->qpn && a->connected == b->connected &&
	       !memcmp(&a->gid, &b->gid, sizeof(a->gid));
}

void ipoib_put_link(const struct ipoib_link *link, u8 to[IPOIB_LINK_BYTES])
{
	put_be32(to, link->qpn);
	to[0] = link->connected ? FLAG_RC : 0;
	memcpy(to + 4, link->gid.raw, sizeof(link->gid.raw));
}

bool ipoib_get_link(const u8 from[IPOIB_LINK_BYTES], struct ipoib_link *link)
{
	static const union ib_gid none;

	link->qpn = get_be24(from + 1);
	link->connected = from[0] & FLAG_RC;
	memcpy(link->gid.raw, from + 4, sizeof(link->gid.raw));
	return link->qpn > 1 && link->qpn != 0xffffff && link->gid.raw[0] != 0xff &&
	       memcmp(&link->gid, &none, sizeof(none));
}

/* --- IP addresses --- */

struct in6_addr ipoib_from_v4(__be32 v4)
{
	struct in6_addr ip = {.s6_addr = {[10] = 0xff, [11] = 0xff}};

	memcpy(&ip.s6_addr[12], &v4, sizeof(v4));
	return ip;
}

__be32 ipoib_to_v4(const struct in6_addr *ip)
{
	__be32 v4;

	memcpy(&v4, &ip->s6_addr[12], sizeof(v4));
	return v4;
}

static int read_v4(const u8 *ip, size_t bytes, struct ipoib_packet *p)
{
	size_t header = (ip[0] & 15) * 4u;
	__be32 address;

	if (header < 20 || bytes < header || get_be16(ip + 2) < header ||
	    get_be16(ip + 2) > bytes)
		return -EINVAL;
	p->type = IPOIB_IPV4;
	memcpy(&address, ip + 12, sizeof(address));
	p->src = ipoib_from_v4(address);
	memcpy(&address, ip + 16, sizeof(address));
	p->dst = ipoib_from_v4(address);
	p->tos = ip[1];
	p->hop_limit = ip[8];
	p->protocol = ip[9];
	p->payload = ip + header;
	p->payload_bytes = get_be16(ip + 2) - header;
	if (get_be16(ip + 6) &
	    0x1fff) /* a later fragment has no header of the protocol */
		p->protocol = IPPROTO_NONE;
	return 0;
}

static int read_v6(const u8 *ip, size_t bytes, struct ipoib_packet *p)
{
	size_t length = bytes < 40 ? 0 : get_be16(ip + 4), option;

	if (bytes < 40 || length > bytes - 40)
		return -EINVAL;
	p->type = IPOIB_IPV6;
	memcpy(&p->src, ip + 8, sizeof(p->src));
	memcpy(&p->dst, ip + 24, sizeof(p->dst));
	p->tos = (u8)(ip[0] << 4 | ip[1] >> 4);
	p->hop_limit = ip[7];
	p->protocol = ip[6];
	p->payload = ip + 40;
	p->payload_bytes = length;
	if (p->protocol != IPPROTO_HOPOPTS)
		return 0;
	if (length < 8)
		return -EINVAL;
	option = (p->payload[1] + 1u) * 8;
	if (option > length)
		return -EINVAL;
	p->protocol = p->payload[0];
	p->payload += option;
	p->payload_bytes -= option;
	return 0;
}

int ipoib_read_packet(const u8 *ip, size_t bytes, struct ipoib_packet *packet)
{
	if (bytes < 20)
		return -EINVAL;
	switch (ip[0] >> 4) {
	case 4:
		return read_v4(ip, bytes, packet);
	case 6:
		return read_v6(ip, bytes, packet);
	default:
		return -EINVAL;
	}
}

union ib_gid ipoib_mgid(const struct in6_addr *group, u16 pkey, u8 scope)
{
	bool v4 = IN6_IS_ADDR_V4MAPPED(group);
	union ib_gid gid = {.raw = {0xff, (u8)(0x10 | scope)}};
	u32 low;

	put_be16(&gid.raw[2], v4 ? IPV4_SIGNATURE : IPV6_SIGNATURE);
	put_be16(&gid.raw[4], pkey | PKEY_FULL);
	if (!v4) {
		memcpy(&gid.raw[6], &group->s6_addr[6], 10);
		return gid;
	}
	low = get_be32(&group->s6_addr[12]);
	put_be32(&gid.raw[12], low == 0xffffffff ? low : low & 0x0fffffff);
	return gid;
}

bool ipoib_is_group(const struct in6_addr *ip)
{
	u32 v4;

	if (!IN6_IS_ADDR_V4MAPPED(ip))
		return IN6_IS_ADDR_MULTICAST(ip);
	v4 = get_be32(&ip->s6_addr[12]);
	return IN_MULTICAST(v4) || v4 == INADDR_BROADCAST;
}

struct in6_addr ipoib_solicited(const struct in6_addr *ip)
{
	struct in6_addr group = {.s6_addr = {0xff, 2, [11] = 1, [12] = 0xff}};

	memcpy(&group.s6_addr[13], &ip->s6_addr[13], 3);
	return group;
}

/* --- ARP (RFC 826; RFC 4391 section 9.1.1) --- */

#define ARP_SENDER    8
#define ARP_SENDER_IP (ARP_SENDER + IPOIB_LINK_BYTES)
#define ARP_TARGET    (ARP_SENDER_IP + 4)
#define ARP_TARGET_IP (ARP_TARGET + IPOIB_LINK_BYTES)

size_t ipoib_put_arp(u8 to[IPOIB_ARP_BYTES], enum ipoib_ask op,
		     const struct ipoib_link *sender, const struct in6_addr *sender_ip,
		     const struct ipoib_link *target, const struct in6_addr *target_ip)
{
	__be32 v4;

	memset(to, 0, IPOIB_ARP_BYTES);
	put_be16(to, ARP_HARDWARE);
	put_be16(to + 2, IPOIB_IPV4);
	to[4] = IPOIB_LINK_BYTES;
	to[5] = 4;
	put_be16(to + 6, op);
	ipoib_put_link(sender, to + ARP_SENDER);
	v4 = ipoib_to_v4(sender_ip);
	memcpy(to + ARP_SENDER_IP, &v4, 4);
	if (target)
		ipoib_put_link(target, to + ARP_TARGET);
	v4 = ipoib_to_v4(target_ip);
	memcpy(to + ARP_TARGET_IP, &v4, 4);
	return IPOIB_ARP_BYTES;
}

int ipoib_get_arp(const u8 *from, size_t bytes, struct ipoib_resolution *r)
{
	u16 op = bytes < IPOIB_ARP_BYTES ? 0 : get_be16(from + 6);
	__be32 v4;

	if ((op != IPOIB_REQUEST && op != IPOIB_REPLY) ||
	    get_be16(from) != ARP_HARDWARE || get_be16(from + 2) != IPOIB_IPV4 ||
	    from[4] != IPOIB_LINK_BYTES || from[5] != 4)
		return -EINVAL;
	if (!ipoib_get_link(from + ARP_SENDER, &r->sender))
		return -EINVAL;
	r->op = (enum ipoib_ask)op;
	memcpy(&v4, from + ARP_SENDER_IP, 4);
	r->has_sender = v4 != 0;
	r->sender_ip = ipoib_from_v4(v4);
	r->reply_to = r->has_sender ? r->sender_ip : ipoib_from_v4(INADDR_BROADCAST);
	memcpy(&v4, from + ARP_TARGET_IP, 4);
	r->target_ip = ipoib_from_v4(v4);
	return 0;
}
