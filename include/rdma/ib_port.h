/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a port is: its link layer and what follows from it, widths, rates, MTUs, and the entries of
 * its GID table. Included by ib_verbs.h. Names and rules are those of the Linux InfiniBand core.
 */
#ifndef RDMA_IB_PORT_H
#define RDMA_IB_PORT_H

#include "rdma/ib_verbs.h"

#pragma GCC visibility push(default)

/* --- link layers. Context: any --- */

#define rdma_link_layer ib_link_layer /* the name of the enum there */
/** rdma_port_get_link_layer() - Return: IB_LINK_LAYER_UNSPECIFIED: there is no such port */
enum ib_link_layer rdma_port_get_link_layer(struct ib_device *device, u32 port_num);

static inline bool rdma_protocol_ib(struct ib_device *device, u32 port_num)
{
	return rdma_port_get_link_layer(device, port_num) == IB_LINK_LAYER_INFINIBAND;
}

static inline bool rdma_protocol_roce(struct ib_device *device, u32 port_num)
{
	return rdma_port_get_link_layer(device, port_num) == IB_LINK_LAYER_ETHERNET;
}

static inline bool rdma_ib_or_roce(struct ib_device *device, u32 port_num)
{
	return rdma_port_get_link_layer(device, port_num) != IB_LINK_LAYER_UNSPECIFIED;
}

/** rdma_protocol_iwarp() - there is no such adapter */
static inline bool rdma_protocol_iwarp(struct ib_device *device, u32 port_num)
{
	return false;
}

/** rdma_cap_opa_ah() - there is no Omni-Path port */
static inline bool rdma_cap_opa_ah(struct ib_device *device, u32 port_num)
{
	return false;
}

#define rdma_cap_ib_mad	  rdma_ib_or_roce
#define rdma_cap_ib_cm	  rdma_ib_or_roce
#define rdma_cap_ib_smi	  rdma_protocol_ib /* it has QP0 */
#define rdma_cap_ib_sa	  rdma_protocol_ib /* its subnet has an administrator */
#define rdma_cap_ib_mcast rdma_protocol_ib /* which knows the multicast groups */
#define rdma_cap_eth_ah	  rdma_protocol_roce

/** rdma_for_each_port() - a loop; @iter: u32 */
#define rdma_for_each_port(device, iter)                                                 \
	for ((iter) = rdma_start_port(device); (iter) <= rdma_end_port(device); (iter)++)

enum rdma_ah_attr_type { RDMA_AH_ATTR_TYPE_UNDEFINED, RDMA_AH_ATTR_TYPE_IB, RDMA_AH_ATTR_TYPE_ROCE };
/** rdma_ah_find_type() - of the address vectors that leave by a port */
static inline enum rdma_ah_attr_type rdma_ah_find_type(struct ib_device *device, u32 port_num)
{
	return rdma_protocol_roce(device, port_num) ? RDMA_AH_ATTR_TYPE_ROCE : RDMA_AH_ATTR_TYPE_IB;
}

/* --- widths, rates, MTUs. Context: any --- */

enum ib_port_width {
	IB_WIDTH_1X = 1,
	IB_WIDTH_2X = 16,
	IB_WIDTH_4X = 2,
	IB_WIDTH_8X = 4,
	IB_WIDTH_12X = 8,
};

/** ib_width_enum_to_int() - Return: lanes; -1: no such width */
int ib_width_enum_to_int(enum ib_port_width width);

/** enum ib_rate - of an address vector or a path. Spec: IBA v1 table 224 (15.2.5.16) */
enum ib_rate {
	IB_RATE_PORT_CURRENT = 0,
	IB_RATE_2_5_GBPS = 2,
	IB_RATE_10_GBPS = 3,
	IB_RATE_30_GBPS = 4,
	IB_RATE_5_GBPS = 5,
	IB_RATE_20_GBPS = 6,
	IB_RATE_40_GBPS = 7,
	IB_RATE_60_GBPS = 8,
	IB_RATE_80_GBPS = 9,
	IB_RATE_120_GBPS = 10,
	IB_RATE_14_GBPS = 11,
	IB_RATE_56_GBPS = 12,
	IB_RATE_112_GBPS = 13,
	IB_RATE_168_GBPS = 14,
	IB_RATE_25_GBPS = 15,
	IB_RATE_100_GBPS = 16,
	IB_RATE_200_GBPS = 17,
	IB_RATE_300_GBPS = 18,
	IB_RATE_28_GBPS = 19,
	IB_RATE_50_GBPS = 20,
	IB_RATE_400_GBPS = 21,
	IB_RATE_600_GBPS = 22,
};

/** ib_rate_to_mbps() - Return: Mbit/s of the line; -1: no rate of its own */
int ib_rate_to_mbps(enum ib_rate rate);

/** rdma_mtu_enum_to_int() - Return: bytes; -1: no such MTU */
static inline int rdma_mtu_enum_to_int(struct ib_device *device, u32 port_num, int mtu)
{
	return ib_mtu_enum_to_int((enum ib_mtu)mtu);
}

/** rdma_mtu_from_attr() - Return: bytes of a packet's payload that leaves by the port */
static inline int rdma_mtu_from_attr(struct ib_device *device, u32 port_num,
				     const struct ib_port_attr *attr)
{
	return ib_mtu_enum_to_int(attr->active_mtu);
}

/** ib_get_device_fw_str() - @str: IB_FW_VERSION_NAME_MAX bytes */
void ib_get_device_fw_str(struct ib_device *device, char *str);

/* --- entries of GID tables, as of the last event. Context: any --- */

enum ib_gid_type {
	IB_GID_TYPE_IB = 0,
	IB_GID_TYPE_ROCE = 1,
	IB_GID_TYPE_ROCE_UDP_ENCAP = 2, /* RoCE v2: that of every port of Ethernet */
};

struct net_device; /* adapters of softib have none: pass NULL */

/** struct ib_gid_attr - an entry, as it was when it was looked up */
struct ib_gid_attr {
	struct ib_device *device;
	union ib_gid gid;
	enum ib_gid_type gid_type;
	u16 index;
	u32 port_num;
	/* --- the core's --- */
	unsigned int refs;
};

/** rdma_get_gid_attr() - an entry by its number. Return: it, for rdma_put_gid_attr();
 *  ERR_PTR(-EINVAL port or index; -ENODATA it is empty; -ENOMEM) */
const struct ib_gid_attr *rdma_get_gid_attr(struct ib_device *device, u32 port_num, int index);
/** rdma_find_gid_by_port() - an entry of one port by what it says. Return: it, for
 *  rdma_put_gid_attr(); ERR_PTR(-ENOENT; -ENOMEM) */
const struct ib_gid_attr *rdma_find_gid_by_port(struct ib_device *device, const union ib_gid *gid,
						enum ib_gid_type gid_type, u32 port_num,
						struct net_device *ndev);
/** rdma_find_gid() - as rdma_find_gid_by_port(), of the first port that has it */
const struct ib_gid_attr *rdma_find_gid(struct ib_device *device, const union ib_gid *gid,
					enum ib_gid_type gid_type, struct net_device *ndev);
/** rdma_hold_gid_attr() - one more rdma_put_gid_attr() is to come */
void rdma_hold_gid_attr(const struct ib_gid_attr *attr);
/** rdma_put_gid_attr() - @attr is not used any more */
void rdma_put_gid_attr(const struct ib_gid_attr *attr);

#pragma GCC visibility pop

#endif
