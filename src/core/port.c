/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Properties of ports, and the entries of their GID tables. */
#include "core/private.h"
#include "rdma/rdma_cm.h"

enum ib_link_layer rdma_port_get_link_layer(struct ib_device *device, u32 port_num)
{
	const struct ib_port_attr *attr = core_cached_port(device, port_num);

	return attr ? (enum ib_link_layer)attr->link_layer : IB_LINK_LAYER_UNSPECIFIED;
}

int ib_width_enum_to_int(enum ib_port_width width)
{
	switch (width) {
	case IB_WIDTH_1X:
		return 1;
	case IB_WIDTH_2X:
		return 2;
	case IB_WIDTH_4X:
		return 4;
	case IB_WIDTH_8X:
		return 8;
	case IB_WIDTH_12X:
		return 12;
	}
	return -1;
}

int ib_rate_to_mbps(enum ib_rate rate)
{
	static const int mbps[] = {
		[IB_RATE_2_5_GBPS] = 2500,   [IB_RATE_5_GBPS] = 5000,
		[IB_RATE_10_GBPS] = 10000,   [IB_RATE_20_GBPS] = 20000,
		[IB_RATE_30_GBPS] = 30000,   [IB_RATE_40_GBPS] = 40000,
		[IB_RATE_60_GBPS] = 60000,   [IB_RATE_80_GBPS] = 80000,
		[IB_RATE_120_GBPS] = 120000, [IB_RATE_14_GBPS] = 14062,
		[IB_RATE_56_GBPS] = 56250,   [IB_RATE_112_GBPS] = 112500,
		[IB_RATE_168_GBPS] = 168750, [IB_RATE_25_GBPS] = 25781,
		[IB_RATE_100_GBPS] = 103125, [IB_RATE_200_GBPS] = 206250,
		[IB_RATE_300_GBPS] = 309375, [IB_RATE_28_GBPS] = 28125,
		[IB_RATE_50_GBPS] = 53125,   [IB_RATE_400_GBPS] = 425000,
		[IB_RATE_600_GBPS] = 637500,
	};

	return (unsigned)rate < ARRAY_SIZE(mbps) && mbps[rate] ? mbps[rate] : -1;
}

void ib_get_device_fw_str(struct ib_device *device, char *str)
{
	memcpy(str, device->attrs.fw_ver, IB_FW_VERSION_NAME_MAX);
	str[IB_FW_VERSION_NAME_MAX - 1] = 0;
}

/* --- entries of GID tables --- */

static enum ib_gid_type type_of_port(struct ib_device *device, u32 port_num)
{
	return rdma_protocol_roce(device, port_num) ? IB_GID_TYPE_ROCE_UDP_ENCAP : IB_GID_TYPE_IB;
}

const struct ib_gid_attr *rdma_get_gid_attr(struct ib_device *device, u32 port_num, int index)
{
	static const union ib_gid none;
	struct ib_gid_attr *attr;
	union ib_gid gid;
	int ret = ib_get_cached_gid(device, port_num, index, &gid);

	if (ret)
		return ERR_PTR(ret);
	if (!memcmp(&gid, &none, sizeof(gid)))
		return ERR_PTR(-ENODATA);
	attr = rt_zalloc(sizeof(*attr));
	if (!attr)
		return ERR_PTR(-ENOMEM);
	*attr = (struct ib_gid_attr){.device = device,
				     .gid = gid,
				     .gid_type = type_of_port(device, port_num),
				     .index = (u16)index,
				     .port_num = port_num,
				     .refs = 1};
	return attr;
}

const struct ib_gid_attr *rdma_find_gid_by_port(struct ib_device *device, const union ib_gid *gid,
						enum ib_gid_type gid_type, u32 port_num,
						struct net_device *ndev)
{
	union ib_gid entry;

	if (ndev || gid_type != type_of_port(device, port_num))
		return ERR_PTR(-ENOENT);
	for (int i = 0; !ib_get_cached_gid(device, port_num, i, &entry); i++)
		if (!memcmp(&entry, gid, sizeof(entry)))
			return rdma_get_gid_attr(device, port_num, i);
	return ERR_PTR(-ENOENT);
}

const struct ib_gid_attr *rdma_find_gid(struct ib_device *device, const union ib_gid *gid,
					enum ib_gid_type gid_type, struct net_device *ndev)
{
	const struct ib_gid_attr *attr = ERR_PTR(-ENOENT);
	u32 port_num;

	rdma_for_each_port(device, port_num) {
		attr = rdma_find_gid_by_port(device, gid, gid_type, port_num, ndev);
		if (PTR_ERR_OR_ZERO(attr) != -ENOENT)
			break;
	}
	return attr;
}

void rdma_hold_gid_attr(const struct ib_gid_attr *attr)
{
	((struct ib_gid_attr *)attr)->refs++;
}

void rdma_put_gid_attr(const struct ib_gid_attr *attr)
{
	if (!--((struct ib_gid_attr *)attr)->refs)
		rt_free((void *)attr);
}
