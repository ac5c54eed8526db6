/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Address handles (IBA v1 11.2.2). The address of a peer is validated when the
 * handle is made. None of these calls sleeps, because they read only the cached
 * tables.
 */
#include "core/private.h"
#include "wire/address.h"

/* A16: packets of RoCE always have a GRH, and the station with the DGID is their destination on the
 * link. The library of a program has looked it up already; softibd checks the source of its packets. */
static int resolve_station(struct ib_device *device, const struct ib_port_attr *port,
			   struct rdma_ah_attr *attr)
{
	u16 station;
	int ret;

	if (!(attr->ah_flags & IB_AH_GRH))
		return -EINVAL;
	ret = device->ops->find_station(device, attr->port_num, attr->grh.sgid_index,
					&attr->grh.dgid, &station);
	if (!ret) {
		attr->dlid = station;
		attr->src_path_bits = wire_path_bits(station, port->lmc);
	}
	return ret;
}

int core_ah_attr_check(struct ib_device *device, struct rdma_ah_attr *attr)
{
	const struct ib_port_attr *port = core_cached_port(device, attr->port_num);

	if (!port || attr->sl > 15 || attr->ah_flags & ~IB_AH_GRH)
		return -EINVAL;
	if (attr->ah_flags & IB_AH_GRH &&
	    (attr->grh.sgid_index >= port->gid_tbl_len || attr->grh.flow_label > 0xfffff))
		return -EINVAL;
	if (port->link_layer == IB_LINK_LAYER_ETHERNET)
		return resolve_station(device, port, attr);
	/* 8.2.3: a multicast packet carries a GRH */
	if (attr->dlid >= IB_MULTICAST_LID_BASE && attr->dlid != IB_LID_PERMISSIVE &&
	    !(attr->ah_flags & IB_AH_GRH))
		return -EINVAL;
	return 0;
}

struct ib_ah *core_create_ah(struct ib_pd *pd, const struct rdma_ah_attr *given,
			     struct ib_uobject *uobject)
{
	struct core_owner owner = core_heir(pd, uobject);
	struct rdma_ah_attr attr = *given;
	int ret = core_ah_attr_check(pd->device, &attr);
	struct ib_udata udata;
	struct ib_ah *ah;

	if (ret)
		return ERR_PTR(ret);
	if (core_has_room(pd->device, RDMA_RESTRACK_AH, uobject))
		return ERR_PTR(-ENOMEM);
	ah = pd->device->ops->create_ah(pd, &attr, core_udata(&owner, &udata));
	if (IS_ERR(ah))
		return ah;
	ah->device = pd->device;
	ah->pd = pd;
	ah->uobject = uobject;
	pd->usecnt++;
	core_track(pd->device, &ah->res, RDMA_RESTRACK_AH, &owner);
	return ah;
}

struct ib_ah *rdma_create_ah(struct ib_pd *pd, struct rdma_ah_attr *attr, u32 flags)
{
	return core_create_ah(pd, attr, NULL);
}

struct ib_ah *ib_create_ah_user(struct ib_uobject *uobject, struct ib_pd *pd,
				const struct rdma_ah_attr *attr)
{
	return core_create_ah(pd, attr, uobject);
}

int rdma_modify_ah(struct ib_ah *ah, struct rdma_ah_attr *attr)
{
	int ret;

	if (!ah->device->ops->modify_ah)
		return -EOPNOTSUPP;
	ret = core_ah_attr_check(ah->device, attr);
	return ret ? ret : ah->device->ops->modify_ah(ah, attr);
}

int rdma_query_ah(struct ib_ah *ah, struct rdma_ah_attr *attr)
{
	if (!ah->device->ops->query_ah)
		return -EOPNOTSUPP;
	return ah->device->ops->query_ah(ah, attr);
}

int rdma_destroy_ah(struct ib_ah *ah, u32 flags)
{
	ah->pd->usecnt--;
	rdma_restrack_del(ah->device, &ah->res);
	ah->device->ops->destroy_ah(ah);
	return 0;
}

/* 13.5.4.3: an answer has the addresses of the GRH exchanged. Its SGID index is
 * the index of the packet's destination in the port's GID table; a packet to a
 * multicast group is answered from the first GID. */
static int reverse_grh(struct ib_device *device, u32 port_num, const struct ib_grh *grh,
		       struct ib_global_route *route)
{
	u32 flow_class = be32_to_cpu(grh->version_tclass_flow), gid_port;
	u16 index = 0;

	if (grh->dgid.raw[0] != 0xff &&
	    (ib_find_cached_gid(device, &grh->dgid, &gid_port, &index) || gid_port != port_num))
		return -EINVAL;
	*route = (struct ib_global_route){
		.dgid = grh->sgid,
		.flow_label = flow_class & 0xfffff,
		.traffic_class = (u8)(flow_class >> 20),
		.sgid_index = (u8)index,
		.hop_limit = 0xff,
	};
	return 0;
}

int ib_init_ah_attr_from_wc(struct ib_device *device, u32 port_num, const struct ib_wc *wc,
			    const struct ib_grh *grh, struct rdma_ah_attr *attr)
{
	if (!rdma_is_port_valid(device, port_num))
		return -EINVAL;
	memset(attr, 0, sizeof(*attr));
	attr->dlid = (u16)wc->slid;
	attr->sl = wc->sl;
	attr->src_path_bits = wc->dlid_path_bits;
	attr->port_num = (u8)port_num;
	if (!(wc->wc_flags & IB_WC_GRH))
		return 0;
	if (!grh)
		return -EINVAL;
	attr->ah_flags = IB_AH_GRH;
	return reverse_grh(device, port_num, grh, &attr->grh);
}

struct ib_ah *ib_create_ah_from_wc(struct ib_pd *pd, const struct ib_wc *wc,
				   const struct ib_grh *grh, u32 port_num)
{
	struct rdma_ah_attr attr;
	int ret = ib_init_ah_attr_from_wc(pd->device, port_num, wc, grh, &attr);

	return ret ? ERR_PTR(ret) : rdma_create_ah(pd, &attr, 0);
}

void ib_set_addresses(struct ib_device *device, u32 port_num, const struct ib_port_address *address,
		      unsigned int num)
{
	if (device->ops->set_addresses)
		device->ops->set_addresses(device, port_num, address, num);
}

void ib_set_mtu(struct ib_device *device, u32 port_num, unsigned int bytes)
{
	if (device->ops->set_mtu)
		device->ops->set_mtu(device, port_num, bytes);
}
