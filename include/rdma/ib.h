/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Socket addresses of family AF_IB: a GID and a service id, for ids of the RDMA CM that need
 * no IP addresses. Names and layout are those of the kernel's header, which Debian does not ship,
 * and of librdmacm's <infiniband/ib.h>.
 */
#ifndef RDMA_IB_H
#define RDMA_IB_H

#include <stdint.h>

#include <linux/types.h>

#ifndef AF_IB
#define AF_IB 27
#endif

/** A11.3: the parts of a service id that names a port space and a port */
#define RDMA_IB_IP_PS_MASK   0xFFFFFFFFFFFF0000ull
#define RDMA_IB_IP_PORT_MASK 0x000000000000FFFFull

struct ib_addr {
	__u8 sib_raw[16]; /* a GID */
};

/**
 * struct sockaddr_ib - a port and a service of it
 *
 * @sib_pkey: big endian; of all packets
 * @sib_addr: all zero means any
 * @sib_sid: big endian; port space and port are its last four bytes
 * @sib_sid_mask: which bits of @sib_sid are given; without those of the port one is chosen
 */
struct sockaddr_ib {
	unsigned short sib_family; /* AF_IB */
	__be16 sib_pkey;
	__be32 sib_flowinfo;
	struct ib_addr sib_addr;
	__be64 sib_sid;
	__be64 sib_sid_mask;
	__u64 sib_scope_id;
};

#endif
