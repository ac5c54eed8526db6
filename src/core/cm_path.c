/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Conversions between path records, the paths in messages, and the routes of the CM's own messages. */
#include <string.h>

#include "core/cm_priv.h"
#include "wire/address.h"

static_assert(sizeof(union wire_gid) == sizeof(union ib_gid), "one kind of GID");

bool cm_find_port(struct cm *cm, uint8_t number, const union wire_gid *gid,
		  struct cm_port *found)
{
	struct cm_device *dev = cm->owner;
	struct ib_device *device = dev->device;
	struct ib_port_attr attr;
	struct cm_agent *agent;
	union ib_gid own;
	u32 port_num = number;

	if (!number) {
		memcpy(&own, gid, sizeof(own)); /* the GID in a message may not be aligned */
		if (ib_find_cached_gid(device, &own, &port_num, NULL))
			return false;
	}
	if (ib_query_port(device, port_num, &attr))
		return false;
	agent = cm_agent_of(dev, port_num);
	*found = (struct cm_port){
		.redirect = agent->redirected ? agent->redirect : NULL,
		.number = (u8)port_num,
		.lid = (u16)attr.lid,
		.lmc = attr.lmc,
		.max_mtu = (u8)attr.active_mtu,
	};
	if (ib_get_cached_gid(device, port_num, 0, &own))
		return false;
	memcpy(&found->gid, &own, sizeof(own));
	return true;
}

int cm_path_route(struct ib_device *device, const struct sa_path_rec *path,
		  struct cm_route *route)
{
	u32 port_num;
	u16 index;
	u8 lmc;

	if (ib_find_cached_gid(device, &path->sgid, &port_num, NULL) ||
	    ib_find_cached_pkey(device, port_num, be16_to_cpu(path->pkey), &index) ||
	    ib_get_cached_lmc(device, port_num, &lmc))
		return -EINVAL;
	*route = (struct cm_route){
		.port = (u8)port_num,
		.path_bits = wire_path_bits(be16_to_cpu(path->slid), lmc),
		.sl = path->sl,
		.rate = path->rate,
		.global = path->hop_limit > 1,
		.dlid = be16_to_cpu(path->dlid),
		.pkey = be16_to_cpu(path->pkey),
		.hop_limit = path->hop_limit,
		.tclass = path->traffic_class,
		.flow_label = be32_to_cpu(path->flow_label),
	};
	memcpy(&route->sgid, &path->sgid, sizeof(route->sgid));
	memcpy(&route->dgid, &path->dgid, sizeof(route->dgid));
	return 0;
}

/* 12.7.34: the time-out is two packet lifetimes and the adapter's ACK delay, rounded up */
static u8 ack_timeout(u8 packet_life_enc, u8 delay_enc)
{
	u8 high = MAX(packet_life_enc + 1, delay_enc),
	   low = MIN(packet_life_enc + 1, delay_enc);

	return (u8)MIN(high + (low + 1 >= high), 31);
}

void cm_path_to_wire(const struct cm_device *dev, const struct sa_path_rec *path,
		     struct wire_cm_path *wire)
{
	*wire = (struct wire_cm_path){
		.local_lid = be16_to_cpu(path->slid),
		.remote_lid = be16_to_cpu(path->dlid),
		.flow_label = be32_to_cpu(path->flow_label),
		.packet_rate = path->rate,
		.tclass = path->traffic_class,
		.hop_limit = path->hop_limit,
		.sl = path->sl,
		.subnet_local = path->hop_limit <= 1,
		.local_ack_timeout_enc =
			ack_timeout(path->packet_life_time, dev->ack_delay_enc),
	};
	memcpy(&wire->local_gid, &path->sgid, sizeof(wire->local_gid));
	memcpy(&wire->remote_gid, &path->dgid, sizeof(wire->remote_gid));
}

void cm_path_from_wire(const struct wire_cm_path *wire, u16 pkey, u8 mtu,
		       struct sa_path_rec *path)
{
	u8 ack = wire->local_ack_timeout_enc;

	memset(path, 0, sizeof(*path));
	memcpy(&path->dgid, &wire->local_gid, sizeof(path->dgid));
	memcpy(&path->sgid, &wire->remote_gid, sizeof(path->sgid));
	sa_path_set_dlid(path, wire->local_lid);
	sa_path_set_slid(path, wire->remote_lid);
	path->flow_label = cpu_to_be32(wire->flow_label);
	path->hop_limit = wire->hop_limit;
	path->traffic_class = wire->tclass;
	path->reversible = 1;
	path->pkey = cpu_to_be16(pkey);
	path->sl = wire->sl;
	path->mtu_selector = path->rate_selector = path->packet_life_time_selector =
		IB_SA_EQ;
	path->mtu = mtu;
	path->rate = wire->packet_rate;
	path->packet_life_time = ack ? ack - 1 : 0;
}

int cm_route_ah(struct ib_device *device, const struct cm_route *route,
		struct rdma_ah_attr *attr)
{
	u32 port_num;
	u16 index;

	*attr = (struct rdma_ah_attr){
		.dlid = route->dlid,
		.sl = route->sl,
		.src_path_bits = route->path_bits,
		.static_rate = route->rate,
		.port_num = route->port,
	};
	if (!route->global)
		return 0;
	if (ib_find_cached_gid(device, (const union ib_gid *)&route->sgid, &port_num,
			       &index) ||
	    port_num != route->port)
		return -ENOENT;
	attr->ah_flags = IB_AH_GRH;
	memcpy(&attr->grh.dgid, &route->dgid, sizeof(attr->grh.dgid));
	attr->grh.sgid_index = (u8)index;
	attr->grh.flow_label = route->flow_label;
	attr->grh.hop_limit = route->hop_limit;
	attr->grh.traffic_class = route->tclass;
	return 0;
}

void cm_route_of_wc(struct ib_device *device, const struct ib_wc *wc,
		    const struct ib_grh *grh, struct cm_route *route)
{
	struct rdma_ah_attr attr = {0};

	ib_init_ah_attr_from_wc(device, wc->port_num, wc, grh, &attr);
	*route = (struct cm_route){
		.port = (u8)wc->port_num,
		.path_bits = attr.src_path_bits,
		.sl = attr.sl,
		.global = attr.ah_flags & IB_AH_GRH,
		.dlid = attr.dlid,
		.hop_limit = attr.grh.hop_limit,
		.tclass = attr.grh.traffic_class,
		.flow_label = attr.grh.flow_label,
	};
	ib_get_cached_pkey(device, wc->port_num, wc->pkey_index, &route->pkey);
	if (!route->global)
		return;
	memcpy(&route->dgid, &attr.grh.dgid, sizeof(route->dgid));
	ib_get_cached_gid(device, wc->port_num, attr.grh.sgid_index,
			  (union ib_gid *)&route->sgid);
}
