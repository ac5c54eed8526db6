/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Subnet management packets (IBA v1 14.2): the directed-route SMP as bytes
 * of the wire, and what its status field says about its direction.
 */
#ifndef RDMA_IB_SMI_H
#define RDMA_IB_SMI_H

#include "rdma/ib_mad.h"

#pragma GCC visibility push(default)

#define IB_SMP_DATA_SIZE 64
#define IB_SMP_MAX_PATH_HOPS 64

/** struct ib_smp - 14.2.1.2; every field in wire order */
struct ib_smp {
	u8 base_version;
	u8 mgmt_class;
	u8 class_version;
	u8 method;
	__be16 status; /* bit 15 is D, the direction */
	u8 hop_ptr;
	u8 hop_cnt;
	__be64 tid;
	__be16 attr_id;
	__be16 resv;
	__be32 attr_mod;
	__be64 mkey;
	__be16 dr_slid;
	__be16 dr_dlid;
	u8 reserved[28];
	u8 data[IB_SMP_DATA_SIZE];
	u8 initial_path[IB_SMP_MAX_PATH_HOPS];
	u8 return_path[IB_SMP_MAX_PATH_HOPS];
} __attribute__((packed));

#define IB_SMP_DIRECTION cpu_to_be16(0x8000)

#define IB_SMP_ATTR_NOTICE cpu_to_be16(0x0002)
#define IB_SMP_ATTR_NODE_INFO cpu_to_be16(0x0011)
#define IB_SMP_ATTR_PORT_INFO cpu_to_be16(0x0015)
#define IB_SMP_ATTR_SM_INFO cpu_to_be16(0x0020)

static inline u8 ib_get_smp_direction(const struct ib_smp *smp)
{
	return !!(smp->status & IB_SMP_DIRECTION);
}

#pragma GCC visibility pop

#endif
