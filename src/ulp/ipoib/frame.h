/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The formats of IP over InfiniBand (RFC 4391), pure: the encapsulation header,
 * link addresses, ARP and neighbour discovery, and the multicast GIDs of IP groups.
 *
 * IP addresses are struct in6_addr; an IPv4 address is the IPv4-mapped one
 * (::ffff:a.b.c.d, RFC 4291 section 2.5.5.2), so that one table holds both.
 */
#ifndef SOFTIB_ULP_IPOIB_FRAME_H
#define SOFTIB_ULP_IPOIB_FRAME_H

#include <netinet/in.h>

#include "rdma/ib_attr.h"

#define IPOIB_ENCAP_BYTES 4  /* RFC 4391 section 6: EtherType, reserved */
#define IPOIB_LINK_BYTES  20 /* section 9.1.1: flags, QPN, GID */
#define IPOIB_ARP_BYTES	  56
#define IPOIB_ND_BYTES	  88 /* IPv6 header, message, option with a link address */
#define IPOIB_UNREACHABLE_BYTES(packet_bytes)                                            \
	(48 + ((packet_bytes) < 512 ? (packet_bytes) : 512))

/** enum ipoib_type - EtherTypes that IPoIB carries */
enum ipoib_type {
	IPOIB_IPV4 = 0x0800,
	IPOIB_ARP = 0x0806,
	IPOIB_IPV6 = 0x86dd,
};

/** struct ipoib_link - a link address: where an interface receives */
struct ipoib_link {
	u32 qpn;
	union ib_gid gid;
	bool connected; /* it takes reliable connections (RFC 4755 section 3.1) */
};

/** ipoib_is_same_link() - are they the same, flags included? */
bool ipoib_is_same_link(const struct ipoib_link *a, const struct ipoib_link *b);
/** ipoib_put_link() - the 20 bytes of @link */
void ipoib_put_link(const struct ipoib_link *link, u8 to[IPOIB_LINK_BYTES]);
/** ipoib_get_link() - the reverse. Return: false: the GID or QPN is no port's */
bool ipoib_get_link(const u8 from[IPOIB_LINK_BYTES], struct ipoib_link *link);

/* --- IP addresses --- */

/** ipoib_from_v4() - @v4: network order */
struct in6_addr ipoib_from_v4(__be32 v4);
/** ipoib_to_v4() - network order; of an IPv4-mapped address */
__be32 ipoib_to_v4(const struct in6_addr *ip);

/** struct ipoib_packet - what an IP packet says of itself */
struct ipoib_packet {
	enum ipoib_type type;
	struct in6_addr src, dst;
	u8 protocol; /* of IPv6: of the first header behind the fixed one */
	u8 hop_limit;
	u8 tos; /* of IPv6: the traffic class */
	const u8 *payload; /* behind the IP header and an IPv6 hop-by-hop header */
	size_t payload_bytes;
};
/** ipoib_read_packet() - Return: 0; -EINVAL it is no IPv4 or IPv6 packet of @bytes */
int ipoib_read_packet(const u8 *ip, size_t bytes, struct ipoib_packet *packet);

/** ipoib_mgid() - the multicast GID of an IP group in a partition (section 4): IPv4 or
 *  IPv6; 255.255.255.255 is the broadcast group. @scope: of the broadcast group */
union ib_gid ipoib_mgid(const struct in6_addr *group, u16 pkey, u8 scope);
/** ipoib_is_group() - multicast, or 255.255.255.255 */
bool ipoib_is_group(const struct in6_addr *ip);
/** ipoib_solicited() - ff02::1:ffXX:XXXX of an IPv6 address (RFC 4291 section 2.7.1) */
struct in6_addr ipoib_solicited(const struct in6_addr *ip);

/* --- address resolution --- */

enum ipoib_ask { IPOIB_REQUEST = 1, IPOIB_REPLY = 2 };

/** struct ipoib_resolution - an ARP packet, or an NS or NA */
struct ipoib_resolution {
	enum ipoib_ask op;
	struct ipoib_link sender;
	bool has_sender; /* neither an NS of duplicate address detection nor an ARP probe has one:
			  * @sender_ip is 0; of a probe, @sender is who sent it */
	struct in6_addr sender_ip, target_ip;
	struct in6_addr reply_to; /* the destination of a reply: a host, or all of them */
};

/** ipoib_put_arp() - a request for @target_ip, or a reply to @target. Return: bytes.
 *  RFC 5227 section 1.1: @sender_ip of a probe is 0.0.0.0, of an announcement @target_ip */
size_t ipoib_put_arp(u8 to[IPOIB_ARP_BYTES], enum ipoib_ask op,
		     const struct ipoib_link *sender, const struct in6_addr *sender_ip,
		     const struct ipoib_link *target, const struct in6_addr *target_ip);
/** ipoib_get_arp() - Return: 0; -EINVAL malformed, or not of IPv4 over InfiniBand */
int ipoib_get_arp(const u8 *from, size_t bytes, struct ipoib_resolution *r);

/** ipoib_put_nd() - neighbour solicitation for @target_ip to @to_ip, or the advertisement
 *  of it (RFC 4861 sections 4.3, 4.4; RFC 4391 section 9.3), with @link; NULL: without
 *  that option. Return: bytes */
size_t ipoib_put_nd(u8 to[IPOIB_ND_BYTES], enum ipoib_ask op,
		    const struct ipoib_link *link, const struct in6_addr *from_ip,
		    const struct in6_addr *to_ip, const struct in6_addr *target_ip);
/** ipoib_get_nd() - Return: 0; -ENOMSG it is another IPv6 packet, which is the host's;
 *  -EINVAL it is malformed, and to be dropped (RFC 4861 section 7.1) */
int ipoib_get_nd(const struct ipoib_packet *packet, struct ipoib_resolution *r);

/** ipoib_put_unreachable() - what a router says to the sender of @ip when nobody answers:
 *  ICMP or ICMPv6 "host unreachable"; of IPv6 from @self. Return: bytes; 0: nothing is to
 * be said */
size_t ipoib_put_unreachable(u8 *to, const u8 *ip, size_t bytes,
			     const struct in6_addr *self);

/** ipoib_put_too_big() - what a router says when @ip is larger than the @mtu of its next link:
 *  ICMP "fragmentation needed" or ICMPv6 "packet too big". @self, @to, return: as above */
size_t ipoib_put_too_big(u8 *to, const u8 *ip, size_t bytes, const struct in6_addr *self,
			 u16 mtu);

/* --- group membership --- */

/** ipoib_each_report() - call @fn for each group that the host joins or leaves by the
 * IGMP or MLD report @packet (RFC 1112, 2236, 3376, 2710, 3810) */
void ipoib_each_report(const struct ipoib_packet *packet,
		       void (*fn)(void *ctx, const struct in6_addr *group, bool join),
		       void *ctx);

#endif
