/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The IP addresses in the private data of a request (A11.4), and in SDP's Hello (A4.3.2). */
#include <netinet/in.h>

#include "core/rdma_cm_priv.h"
#include "rdma/ib.h"

/** struct header - the layout of the header. An IPv4 address is in the last of the 16 bytes for an
 *  address */
struct header {
	u8 own_bytes; /* length of the header, which is in front of the client's private data */
	u8 version, version_major; /* the byte whose upper half is the version, and its value */
	u8 ip_version;		   /* the byte whose upper half is the IP version */
	u8 port, src, dst;
};

enum { HDR_IP_BYTES = 16 };

static const struct header ip_header = {.own_bytes = RDMA_CM_IP_HEADER_BYTES,
					.ip_version = 1,
					.port = 2,
					.src = 4,
					.dst = 20};
static const struct header sdp_header = {
	.version = 16, .version_major = 2, .ip_version = 17, .port = 28, .src = 32, .dst = 48};

static const struct header no_header;

static const struct header *header_of(enum rdma_ucm_port_space ps, sa_family_t family)
{
	if (family == AF_IB)
		return &no_header;
	return ps == RDMA_PS_SDP ? &sdp_header : &ip_header;
}

size_t rcm_header_bytes(const struct rcm_id *id)
{
	return header_of(id->id.ps, id->id.route.addr.src_addr.ss_family)->own_bytes;
}

void rcm_put_header(const struct rcm_id *id, u8 *private_data)
{
	const struct rdma_addr *addr = &id->id.route.addr;
	const struct header *at = header_of(id->id.ps, addr->src_addr.ss_family);
	const u8 *src, *dst;
	size_t bytes;
	__be16 port;

	if (!at->own_bytes)
		return;
	src = rcm_ip(&addr->src_addr, &bytes);
	dst = rcm_ip(&addr->dst_addr, &bytes);
	port = cpu_to_be16(rcm_port(&addr->src_addr));
	memset(private_data, 0, at->own_bytes);
	private_data[at->ip_version] = (addr->src_addr.ss_family == AF_INET6 ? 6 : 4)
				       << 4;
	memcpy(private_data + at->port, &port, 2);
	memcpy(private_data + at->src + HDR_IP_BYTES - bytes, src, bytes);
	memcpy(private_data + at->dst + HDR_IP_BYTES - bytes, dst, bytes);
}

int rcm_get_header(enum rdma_ucm_port_space ps, const u8 *private_data, u16 local_port,
		   struct rdma_addr *addr)
{
	struct sockaddr_storage *src = &addr->src_addr, *dst = &addr->dst_addr;
	const struct header *at = header_of(ps, AF_INET);
	u8 version = private_data[at->ip_version] >> 4, *own, *peer;
	size_t bytes;
	__be16 port;

	if (private_data[at->version] >> 4 != at->version_major ||
	    (version != 4 && version != 6))
		return -EINVAL;
	memset(addr, 0, sizeof(*addr));
	src->ss_family = dst->ss_family = version == 6 ? AF_INET6 : AF_INET;
	own = rcm_ip(src, &bytes);
	peer = rcm_ip(dst, &bytes);
	memcpy(own, private_data + at->dst + HDR_IP_BYTES - bytes, bytes);
	rcm_set_port(src, local_port);
	memcpy(peer, private_data + at->src + HDR_IP_BYTES - bytes, bytes);
	memcpy(&port, private_data + at->port, 2);
	rcm_set_port(dst, be16_to_cpu(port));
	return 0;
}
