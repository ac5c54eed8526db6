/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Address vectors from the records that the subnet administrator gives. */
#include <string.h>

#include "core/private.h"
#include "rdma/ib_sa.h"
#include "wire/address.h"

/* Set the GRH of @attr: from the port's @sgid to @dgid. Return: 0; -ENOENT: the port does not have
 * @sgid */
static int set_grh(struct ib_device *device, u32 port_num, struct rdma_ah_attr *attr,
		   const union ib_gid *dgid, const union ib_gid *sgid)
{
	u32 found_port;
	u16 index;

	if (ib_find_cached_gid(device, sgid, &found_port, &index) || found_port != port_num)
		return -ENOENT;
	attr->ah_flags = IB_AH_GRH;
	attr->grh.dgid = *dgid;
	attr->grh.sgid_index = (u8)index;
	return 0;
}

int ib_init_ah_from_path(struct ib_device *device, u32 port_num, const struct sa_path_rec *rec,
			 struct rdma_ah_attr *ah_attr)
{
	u8 lmc;

	if (ib_get_cached_lmc(device, port_num, &lmc))
		return -EINVAL;
	*ah_attr = (struct rdma_ah_attr){
		.dlid = be16_to_cpu(rec->ib.dlid),
		.sl = rec->sl,
		.src_path_bits = wire_path_bits(be16_to_cpu(rec->ib.slid), lmc),
		.static_rate = rec->rate,
		.port_num = (u8)port_num,
		.grh = {.flow_label = be32_to_cpu(rec->flow_label),
			.hop_limit = rec->hop_limit,
			.traffic_class = rec->traffic_class},
	};
	if (rec->hop_limit <= 1)
		return 0;
	return set_grh(device, port_num, ah_attr, &rec->dgid, &rec->sgid);
}

int ib_init_ah_from_mcmember(struct ib_device *device, u32 port_num,
			     const struct ib_sa_mcmember_rec *rec, struct rdma_ah_attr *ah_attr)
{
	if (!rdma_is_port_valid(device, port_num))
		return -EINVAL;
	*ah_attr = (struct rdma_ah_attr){
		.dlid = be16_to_cpu(rec->mlid),
		.sl = rec->sl,
		.static_rate = rec->rate,
		.port_num = (u8)port_num,
		.grh = {.flow_label = be32_to_cpu(rec->flow_label),
			.hop_limit = rec->hop_limit,
			.traffic_class = rec->traffic_class},
	};
	return set_grh(device, port_num, ah_attr, &rec->mgid, &rec->port_gid);
}
