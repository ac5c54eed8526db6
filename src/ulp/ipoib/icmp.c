/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What IPoIB reads and writes of ICMP, ICMPv6 and IGMP: neighbour discovery, reports of
 * group members, and the message that a host is not reachable.
 */
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "wire/inet.h"
#include "ulp/ipoib/frame.h"

#define IPV4_BYTES   20
#define IPV6_BYTES   40
#define HOPS_OF_LINK 255 /* a packet that no router has passed on (RFC 4861) */

/* --- checksums --- */

/* of an ICMPv6 message behind its IPv6 header at @ip (RFC 8200 section 8.1) */
static u16 sum_v6(const u8 *ip, const u8 *message, size_t bytes)
{
	return wire_inet_fold(wire_inet_sum(message, bytes,
				    wire_inet_sum(ip + 8, 32, bytes + IPPROTO_ICMPV6)));
}

static void put_v6(u8 *to, size_t payload_bytes, const struct in6_addr *from,
		   const struct in6_addr *dst)
{
	put_be32(to, 6u << 28);
	put_be16(to + 4, (u16)payload_bytes);
	to[6] = IPPROTO_ICMPV6;
	to[7] = HOPS_OF_LINK;
	memcpy(to + 8, from, sizeof(*from));
	memcpy(to + 24, dst, sizeof(*dst));
}

/* --- neighbour discovery (RFC 4861) --- */

enum { SOLICITATION = 135, ADVERTISEMENT = 136 };
enum { OPTION_SOURCE = 1, OPTION_TARGET = 2 };
#define ND_HEADER	   24 /* of the message, target address included */
#define OPTION_BYTES	   24 /* type, length in units of 8, reserved, link address */
#define SOLICITED	   0x40000000u
#define OVERRIDE	   0x20000000u

size_t ipoib_put_nd(u8 to[IPOIB_ND_BYTES], enum ipoib_ask op,
		    const struct ipoib_link *link, const struct in6_addr *from_ip,
		    const struct in6_addr *to_ip, const struct in6_addr *target_ip)
{
	u8 *message = to + IPV6_BYTES, *option = message + ND_HEADER;
	const size_t bytes = ND_HEADER + (link ? OPTION_BYTES : 0);

	memset(to, 0, IPOIB_ND_BYTES);
	put_v6(to, bytes, from_ip, to_ip);
	message[0] = op == IPOIB_REQUEST ? SOLICITATION : ADVERTISEMENT;
	if (op == IPOIB_REPLY) /* nobody asked for what all nodes are told (4.4) */
		put_be32(message + 4,
			 OVERRIDE | (ipoib_is_group(to_ip) ? 0 : SOLICITED));
	memcpy(message + 8, target_ip, sizeof(*target_ip));
	if (link) {
		option[0] = op == IPOIB_REQUEST ? OPTION_SOURCE : OPTION_TARGET;
		option[1] = OPTION_BYTES / 8;
		ipoib_put_link(link, option + 4);
	}
	put_be16(message + 2, sum_v6(to, message, bytes));
	return IPV6_BYTES + bytes;
}

/* Return: the link address of the option @type; NULL none; *@bad: options are malformed
 */
static const u8 *find_option(const u8 *at, size_t bytes, u8 type, bool *bad)
{
	const u8 *found = NULL;

	while (bytes >= 8 && at[1] && at[1] * 8u <= bytes) {
		if (at[0] == type && at[1] * 8u == OPTION_BYTES)
			found = at + 4;
		bytes -= at[1] * 8u;
		at += at[1] * 8u;
	}
	*bad = bytes != 0;
	return found;
}

int ipoib_get_nd(const struct ipoib_packet *p, struct ipoib_resolution *r)
{
	const u8 *m = p->payload, *link;
	bool ask, bad;

	if (p->type != IPOIB_IPV6 || p->protocol != IPPROTO_ICMPV6 ||
	    p->payload_bytes < 1 || (m[0] != SOLICITATION && m[0] != ADVERTISEMENT))
		return -ENOMSG;
	ask = m[0] == SOLICITATION;
	if (p->hop_limit != HOPS_OF_LINK || p->payload_bytes < ND_HEADER || m[1] ||
	    sum_v6(m - IPV6_BYTES, m, p->payload_bytes))
		return -EINVAL;
	link = find_option(m + ND_HEADER, p->payload_bytes - ND_HEADER,
			   ask ? OPTION_SOURCE : OPTION_TARGET, &bad);
	if (bad || (link && !ipoib_get_link(link, &r->sender)) || (!ask && !link))
		return -EINVAL;
	r->op = ask ? IPOIB_REQUEST : IPOIB_REPLY;
	r->has_sender = link && !IN6_IS_ADDR_UNSPECIFIED(&p->src);
	memcpy(&r->target_ip, m + 8, sizeof(r->target_ip));
	r->sender_ip = ask ? p->src : r->target_ip;
	r->reply_to = p->src;
	if (ask && !r->has_sender) /* duplicate address detection: all nodes */
		r->reply_to = (struct in6_addr){.s6_addr = {0xff, 2, [15] = 1}};
	return ipoib_is_group(&r->target_ip) ? -EINVAL : 0;
}

/* --- nobody answers (RFC 792, RFC 4443 section 3.1) --- */

/* what an error says: type and code of ICMP and of ICMPv6, and the MTU of the next link */
struct error {
	u8 code_v4, type_v6, code_v6; /* ICMP: all are "destination unreachable" */
	u16 mtu;
};
static const struct error unreachable = {.code_v4 = 1, .type_v6 = 1, .code_v6 = 3};
static const struct error too_big = {.code_v4 = 4, .type_v6 = 2};

/* From the address that does not answer: a host believes no packet from outside that has
 * one of its own. */
static size_t put_error_v4(u8 *to, const u8 *ip, size_t bytes, const struct error *e)
{
	size_t quoted = MIN(bytes, (size_t)(ip[0] & 15) * 4 + 8);
	u8 *icmp = to + IPV4_BYTES;

	memset(to, 0, IPV4_BYTES + 8);
	to[0] = 0x45;
	put_be16(to + 2, (u16)(IPV4_BYTES + 8 + quoted));
	to[8] = 64;
	to[9] = IPPROTO_ICMP;
	memcpy(to + 12, ip + 16, 4);
	memcpy(to + 16, ip + 12, 4);
	put_be16(to + 10, wire_inet_fold(wire_inet_sum(to, IPV4_BYTES, 0)));
	icmp[0] = 3; /* destination unreachable */
	icmp[1] = e->code_v4;
	put_be16(icmp + 6, e->mtu);
	memcpy(icmp + 8, ip, quoted);
	put_be16(icmp + 2, wire_inet_fold(wire_inet_sum(icmp, 8 + quoted, 0)));
	return IPV4_BYTES + 8 + quoted;
}

static size_t put_error_v6(u8 *to, const u8 *ip, size_t bytes, const struct in6_addr *self,
			   const struct error *e)
{
	size_t quoted = MIN(bytes, (size_t)512);
	struct in6_addr dst;
	u8 *icmp = to + IPV6_BYTES;

	memset(to, 0, IPV6_BYTES + 8);
	memcpy(&dst, ip + 8, sizeof(dst));
	put_v6(to, 8 + quoted, self, &dst);
	icmp[0] = e->type_v6;
	icmp[1] = e->code_v6;
	put_be32(icmp + 4, e->mtu);
	memcpy(icmp + 8, ip, quoted);
	put_be16(icmp + 2, sum_v6(to, icmp, 8 + quoted));
	return IPV6_BYTES + 8 + quoted;
}

static size_t put_error(u8 *to, const u8 *ip, size_t bytes, const struct in6_addr *self,
			const struct error *e)
{
	struct ipoib_packet p;

	if (ipoib_read_packet(ip, bytes, &p) || ipoib_is_group(&p.dst))
		return 0; /* RFC 1122 section 3.2.2: no error answers what went to a group */
	if (p.type == IPOIB_IPV4) /* errors are not answered by errors */
		return p.protocol == IPPROTO_ICMP && p.payload_bytes && p.payload[0] == 3
			       ? 0
			       : put_error_v4(to, ip, bytes, e);
	return p.protocol == IPPROTO_ICMPV6 && p.payload_bytes && p.payload[0] < 128
		       ? 0
		       : put_error_v6(to, ip, bytes, self, e);
}

size_t ipoib_put_unreachable(u8 *to, const u8 *ip, size_t bytes, const struct in6_addr *self)
{
	return put_error(to, ip, bytes, self, &unreachable);
}

size_t ipoib_put_too_big(u8 *to, const u8 *ip, size_t bytes, const struct in6_addr *self, u16 mtu)
{
	struct error e = too_big;

	e.mtu = mtu;
	return put_error(to, ip, bytes, self, &e);
}

/* --- group membership --- */

typedef void report_fn(void *ctx, const struct in6_addr *group, bool join);

enum {
	IGMP_V1_REPORT = 0x12,
	IGMP_V2_REPORT = 0x16,
	IGMP_LEAVE = 0x17,
	IGMP_V3_REPORT = 0x22
};
enum { MLD_REPORT = 131, MLD_DONE = 132, MLD_V2_REPORT = 143 };

/* Records of RFC 3376 section 4.2.4: an empty list of included sources is a leave. */
static bool joins(u8 type, u16 sources)
{
	enum { IS_INCLUDE = 1, TO_INCLUDE = 3 };

	return !((type == IS_INCLUDE || type == TO_INCLUDE) && !sources);
}

/* @address_bytes: of a group and of a source: 4, 16 */
static void each_record(const u8 *at, size_t bytes, size_t address_bytes, report_fn *fn,
			void *ctx)
{
	unsigned records = bytes < 8 ? 0 : get_be16(at + 6);
	struct in6_addr group;
	__be32 v4;

	at += MIN(bytes, (size_t)8);
	bytes -= MIN(bytes, (size_t)8);
	for (; records && bytes >= 4 + address_bytes; records--) {
		u16 sources = get_be16(at + 2);
		size_t length = 4 + address_bytes * (1u + sources) + at[1] * 4u;

		if (length > bytes)
			return;
		memcpy(&v4, at + 4, sizeof(v4));
		group = ipoib_from_v4(v4);
		if (address_bytes == sizeof(group))
			memcpy(&group, at + 4, sizeof(group));
		if (ipoib_is_group(&group))
			fn(ctx, &group, joins(at[0], sources));
		at += length;
		bytes -= length;
	}
}

static void igmp(const struct ipoib_packet *p, report_fn *fn, void *ctx)
{
	struct in6_addr group;
	__be32 v4;

	if (p->payload_bytes < 8)
		return;
	if (p->payload[0] == IGMP_V3_REPORT) {
		each_record(p->payload, p->payload_bytes, 4, fn, ctx);
		return;
	}
	memcpy(&v4, p->payload + 4, sizeof(v4));
	group = ipoib_from_v4(v4);
	if (!ipoib_is_group(&group))
		return;
	if (p->payload[0] == IGMP_V1_REPORT || p->payload[0] == IGMP_V2_REPORT)
		fn(ctx, &group, true);
	else if (p->payload[0] == IGMP_LEAVE)
		fn(ctx, &group, false);
}

static void mld(const struct ipoib_packet *p, report_fn *fn, void *ctx)
{
	struct in6_addr group;

	if (p->payload_bytes >= 8 && p->payload[0] == MLD_V2_REPORT) {
		each_record(p->payload, p->payload_bytes, 16, fn, ctx);
		return;
	}
	if (p->payload_bytes < ND_HEADER ||
	    (p->payload[0] != MLD_REPORT && p->payload[0] != MLD_DONE))
		return;
	memcpy(&group, p->payload + 8, sizeof(group));
	if (ipoib_is_group(&group))
		fn(ctx, &group, p->payload[0] == MLD_REPORT);
}

void ipoib_each_report(const struct ipoib_packet *packet, report_fn *fn, void *ctx)
{
	if (packet->type == IPOIB_IPV4 && packet->protocol == IPPROTO_IGMP)
		igmp(packet, fn, ctx);
	else if (packet->type == IPOIB_IPV6 && packet->protocol == IPPROTO_ICMPV6)
		mld(packet, fn, ctx);
}
