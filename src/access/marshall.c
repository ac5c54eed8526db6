/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "access/marshall.h"

#include <string.h>

void marshall_ah(struct ib_uverbs_ah_attr *to, const struct rdma_ah_attr *from)
{
	memcpy(to->grh.dgid, from->grh.dgid.raw, sizeof(to->grh.dgid));
	to->grh.flow_label = from->grh.flow_label;
	to->grh.sgid_index = from->grh.sgid_index;
	to->grh.hop_limit = from->grh.hop_limit;
	to->grh.traffic_class = from->grh.traffic_class;
	to->dlid = from->dlid;
	to->sl = from->sl;
	to->src_path_bits = from->src_path_bits;
	to->static_rate = from->static_rate;
	to->is_global = from->ah_flags & IB_AH_GRH;
	to->port_num = from->port_num;
}

void marshall_qp_attr(struct ib_uverbs_qp_attr *to, const struct ib_qp_attr *from, int mask)
{
	to->qp_attr_mask = (u32)mask;
	to->qp_state = from->qp_state;
	to->path_mtu = from->path_mtu;
	to->path_mig_state = from->path_mig_state;
	to->qkey = from->qkey;
	to->rq_psn = from->rq_psn;
	to->sq_psn = from->sq_psn;
	to->dest_qp_num = from->dest_qp_num;
	to->qp_access_flags = (u32)from->qp_access_flags;
	marshall_ah(&to->ah_attr, &from->ah_attr);
	marshall_ah(&to->alt_ah_attr, &from->alt_ah_attr);
	to->pkey_index = from->pkey_index;
	to->alt_pkey_index = from->alt_pkey_index;
	to->max_rd_atomic = from->max_rd_atomic;
	to->max_dest_rd_atomic = from->max_dest_rd_atomic;
	to->min_rnr_timer = from->min_rnr_timer;
	to->port_num = from->port_num;
	to->timeout = from->timeout;
	to->retry_cnt = from->retry_cnt;
	to->rnr_retry = from->rnr_retry;
	to->alt_port_num = from->alt_port_num;
	to->alt_timeout = from->alt_timeout;
}

void marshall_path(struct ib_user_path_rec *to, const struct sa_path_rec *from)
{
	memcpy(to->dgid, from->dgid.raw, sizeof(to->dgid));
	memcpy(to->sgid, from->sgid.raw, sizeof(to->sgid));
	to->dlid = from->dlid;
	to->slid = from->slid;
	to->raw_traffic = from->raw_traffic;
	to->flow_label = from->flow_label;
	to->reversible = from->reversible;
	to->mtu = from->mtu;
	to->pkey = from->pkey;
	to->hop_limit = from->hop_limit;
	to->traffic_class = from->traffic_class;
	to->numb_path = from->numb_path;
	to->sl = from->sl;
	to->mtu_selector = from->mtu_selector;
	to->rate_selector = from->rate_selector;
	to->rate = from->rate;
	to->packet_life_time_selector = from->packet_life_time_selector;
	to->packet_life_time = from->packet_life_time;
	to->preference = from->preference;
}

void unmarshall_path(struct sa_path_rec *to, const struct ib_user_path_rec *from)
{
	*to = (struct sa_path_rec){
		.flow_label = from->flow_label,
		.reversible = from->reversible != 0,
		.mtu = (u8)from->mtu,
		.pkey = from->pkey,
		.hop_limit = from->hop_limit,
		.traffic_class = from->traffic_class,
		.numb_path = from->numb_path,
		.sl = from->sl,
		.mtu_selector = from->mtu_selector,
		.rate_selector = from->rate_selector,
		.rate = from->rate,
		.packet_life_time_selector = from->packet_life_time_selector,
		.packet_life_time = from->packet_life_time,
		.preference = from->preference,
	};
	memcpy(to->dgid.raw, from->dgid, sizeof(from->dgid));
	memcpy(to->sgid.raw, from->sgid, sizeof(from->sgid));
	to->dlid = from->dlid;
	to->slid = from->slid;
	to->raw_traffic = from->raw_traffic != 0;
}
