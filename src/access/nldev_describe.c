/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The attributes of devices, ports and objects in messages of NLDEV, the same as the kernel's. */
#include "access/nldev_private.h"

#include <net/if.h>

#include "core/rdma_cm_priv.h"
#include "core/uobject.h"
#include "ulp/eth/eth.h"

/* --- devices and ports --- */

static bool is_ethernet(struct ib_device *device, u32 port_num)
{
	struct ib_port_attr attr;

	return !ib_query_port(device, port_num, &attr) &&
	       attr.link_layer == IB_LINK_LAYER_ETHERNET;
}

void nldev_put_handle(struct nl_out *out, const struct ib_device *device)
{
	nl_put_u32(out, RDMA_NLDEV_ATTR_DEV_INDEX, device->index);
	nl_put_text(out, RDMA_NLDEV_ATTR_DEV_NAME, device->name);
}

void nldev_put_device(struct nl_out *out, struct ib_device *device)
{
	nldev_put_handle(out, device);
	nl_put_u32(out, RDMA_NLDEV_ATTR_PORT_INDEX, device->phys_port_cnt);
	nl_put_u64(out, RDMA_NLDEV_ATTR_CAP_FLAGS, device->attrs.device_cap_flags);
	nl_put_text(out, RDMA_NLDEV_ATTR_FW_VERSION, device->attrs.fw_ver);
	nl_put_u64(out, RDMA_NLDEV_ATTR_NODE_GUID, be64_to_cpu(device->node_guid));
	nl_put_u64(out, RDMA_NLDEV_ATTR_SYS_IMAGE_GUID,
		   be64_to_cpu(device->attrs.sys_image_guid));
	nl_put_u8(out, RDMA_NLDEV_ATTR_DEV_NODE_TYPE, device->node_type);
	nl_put_u8(out, RDMA_NLDEV_ATTR_DEV_DIM, 0);
	nl_put_text(out, RDMA_NLDEV_ATTR_DEV_PROTOCOL, is_ethernet(device, 1) ? "roce" : "ib");
}

/* Append the network interface of a port of RoCE, if it has one. */
static void put_interface(struct nl_out *out, struct ib_device *device, u32 port_num)
{
	const struct eth *eth = eth_find(device, port_num, 0);
	char name[IFNAMSIZ] = "";

	if (eth)
		eth_name(eth, name);
	if (!name[0])
		return;
	nl_put_u32(out, RDMA_NLDEV_ATTR_NDEV_INDEX, eth_ifindex(eth));
	nl_put_text(out, RDMA_NLDEV_ATTR_NDEV_NAME, name);
}

int nldev_put_port(struct nl_out *out, struct ib_device *device, u32 port_num)
{
	struct ib_port_attr attr;
	int ret = ib_query_port(device, port_num, &attr);

	if (ret)
		return ret;
	nldev_put_handle(out, device);
	nl_put_u32(out, RDMA_NLDEV_ATTR_PORT_INDEX, port_num);
	if (attr.link_layer == IB_LINK_LAYER_INFINIBAND) {
		nl_put_u64(out, RDMA_NLDEV_ATTR_CAP_FLAGS, attr.port_cap_flags);
		nl_put_u64(out, RDMA_NLDEV_ATTR_SUBNET_PREFIX, attr.subnet_prefix);
		nl_put_u32(out, RDMA_NLDEV_ATTR_LID, attr.lid);
		nl_put_u32(out, RDMA_NLDEV_ATTR_SM_LID, attr.sm_lid);
		nl_put_u8(out, RDMA_NLDEV_ATTR_LMC, attr.lmc);
	}
	nl_put_u8(out, RDMA_NLDEV_ATTR_PORT_STATE, (u8)attr.state);
	nl_put_u8(out, RDMA_NLDEV_ATTR_PORT_PHYS_STATE, attr.phys_state);
	put_interface(out, device, port_num);
	return 0;
}

void nldev_put_summary(struct nl_out *out, struct ib_device *device)
{
	static const struct {
		const char *name; /* as in Linux */
		enum rdma_restrack_type type;
	} types[] = {
		{"pd", RDMA_RESTRACK_PD},   {"cq", RDMA_RESTRACK_CQ},
		{"qp", RDMA_RESTRACK_QP},   {"cm_id", RDMA_RESTRACK_RDMA_CM_ID},
		{"mr", RDMA_RESTRACK_MR},   {"ctx", RDMA_RESTRACK_CTX},
		{"srq", RDMA_RESTRACK_SRQ},
	};
	size_t table, entry;

	nldev_put_handle(out, device);
	table = nl_nest(out, RDMA_NLDEV_ATTR_RES_SUMMARY);
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		entry = nl_nest(out, RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY);
		nl_put_text(out, RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_NAME,
			    types[i].name);
		nl_put_u64(out, RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_CURR,
			   rdma_restrack_count(device, types[i].type));
		nl_nest_end(out, entry);
	}
	nl_nest_end(out, table);
}

/* --- objects --- */

static void put_pd_of(struct nl_out *out, const struct ib_pd *pd, const struct ib_uobject *uobject)
{
	if (pd && uobject)
		nl_put_u32(out, RDMA_NLDEV_ATTR_RES_PDN, pd->res.id);
}

static void put_context_of(struct nl_out *out, const struct ib_uobject *uobject)
{
	if (uobject)
		nl_put_u32(out, RDMA_NLDEV_ATTR_RES_CTXN, uobject->context->res.id);
}

static void put_qp(struct nl_out *out, const struct rdma_restrack_entry *entry)
{
	const struct ib_qp *qp = container_of(entry, const struct ib_qp, res);
	bool connected = qp->qp_type == IB_QPT_RC || qp->qp_type == IB_QPT_UC;

	if (qp->port)
		nl_put_u32(out, RDMA_NLDEV_ATTR_PORT_INDEX, qp->port);
	nl_put_u32(out, RDMA_NLDEV_ATTR_RES_LQPN, qp->qp_num);
	if (connected) {
		nl_put_u32(out, RDMA_NLDEV_ATTR_RES_RQPN, qp->attr.dest_qp_num);
		nl_put_u32(out, RDMA_NLDEV_ATTR_RES_RQ_PSN, qp->attr.rq_psn);
	}
	nl_put_u32(out, RDMA_NLDEV_ATTR_RES_SQ_PSN, qp->attr.sq_psn);
	if (connected || qp->qp_type == IB_QPT_XRC_INI || qp->qp_type == IB_QPT_XRC_TGT)
		nl_put_u8(out, RDMA_NLDEV_ATTR_RES_PATH_MIG_STATE, (u8)qp->attr.path_mig_state);
	nl_put_u8(out, RDMA_NLDEV_ATTR_RES_TYPE, (u8)qp->qp_type);
	nl_put_u8(out, RDMA_NLDEV_ATTR_RES_STATE, (u8)qp->state);
	put_pd_of(out, qp->pd, qp->uobject);
}

static void put_cq(struct nl_out *out, const struct rdma_restrack_entry *entry)
{
	const struct ib_cq *cq = container_of(entry, const struct ib_cq, res);

	nl_put_u32(out, RDMA_NLDEV_ATTR_RES_CQE, (u32)cq->cqe);
	nl_put_u64(out, RDMA_NLDEV_ATTR_RES_USECNT, cq->usecnt);
	nl_put_u32(out, RDMA_NLDEV_ATTR_RES_CQN, cq->res.id);
	put_context_of(out, cq->uobject);
}

static void put_mr(struct nl_out *out, const struct rdma_restrack_entry *entry)
{
	const struct ib_mr *mr = container_of(entry, const struct ib_mr, res);

	nl_put_u32(out, RDMA_NLDEV_ATTR_RES_RKEY, mr->rkey);
	nl_put_u32(out, RDMA_NLDEV_ATTR_RES_LKEY, mr->lkey);
	nl_put_u64(out, RDMA_NLDEV_ATTR_RES_MRLEN, mr->length);
	nl_put_u32(out, RDMA_NLDEV_ATTR_RES_MRN, mr->res.id);
	put_pd_of(out, mr->pd, mr->uobject);
}

static void put_pd(struct nl_out *out, const struct rdma_restrack_entry *entry)
{
	const struct ib_pd *pd = container_of(entry, const struct ib_pd, res);

	if (!pd->uobject)
		nl_put_u32(out, RDMA_NLDEV_ATTR_RES_LOCAL_DMA_LKEY, pd->local_dma_lkey);
	nl_put_u64(out, RDMA_NLDEV_ATTR_RES_USECNT, pd->usecnt);
	nl_put_u32(out, RDMA_NLDEV_ATTR_RES_PDN, pd->res.id);
	put_context_of(out, pd->uobject);
}

static void put_address(struct nl_out *out, u16 type, const struct sockaddr_storage *addr)
{
	if (addr->ss_family)
		nl_put(out, type, addr, sizeof(*addr));
}

/* Convert the state of an id to Linux's number (enum rdma_cm_state), for which rdma(8) has a name. */
static u8 state_of(enum rcm_state state)
{
	static const u8 states[] = {
		[RCM_IDLE] = 0,		  [RCM_BOUND] = 7,	[RCM_ADDR_QUERY] = 1,
		[RCM_ADDR_RESOLVED] = 2,  [RCM_ROUTE_QUERY] = 3, [RCM_ROUTE_RESOLVED] = 4,
		[RCM_CONNECT] = 5,	  [RCM_DISCONNECT] = 6, [RCM_LISTEN] = 8,
		[RCM_GONE] = 9,
	};

	return states[state];
}

/* Append the attributes of an id of the RDMA CM. As in Linux, ids of the CM are not shown. */
static void put_cm_id(struct nl_out *out, const struct rdma_restrack_entry *entry)
{
	const struct rcm_id *id = container_of(entry, const struct rcm_tracked, res)->id;
	u32 qp_num = id->id.qp ? id->id.qp->qp_num : id->qp_num;

	if (id->id.port_num)
		nl_put_u32(out, RDMA_NLDEV_ATTR_PORT_INDEX, id->id.port_num);
	if (qp_num) {
		nl_put_u32(out, RDMA_NLDEV_ATTR_RES_LQPN, qp_num);
		nl_put_u8(out, RDMA_NLDEV_ATTR_RES_TYPE, (u8)id->id.qp_type);
	}
	nl_put_u32(out, RDMA_NLDEV_ATTR_RES_PS, id->id.ps);
	nl_put_u8(out, RDMA_NLDEV_ATTR_RES_STATE, state_of(id->state));
	put_address(out, RDMA_NLDEV_ATTR_RES_SRC_ADDR, &id->id.route.addr.src_addr);
	put_address(out, RDMA_NLDEV_ATTR_RES_DST_ADDR, &id->id.route.addr.dst_addr);
	nl_put_u32(out, RDMA_NLDEV_ATTR_RES_CM_IDN, entry->id);
}

static void put_ctx(struct nl_out *out, const struct rdma_restrack_entry *entry)
{
	nl_put_u32(out, RDMA_NLDEV_ATTR_RES_CTXN, entry->id);
}

/** struct users - the QPs of an SRQ, while they are listed: one entry is a range of QPNs */
struct users {
	struct nl_out *out;
	const struct ib_srq *srq;
	u32 first, last; /* the range that is being extended; last < first: there is none */
};

static void put_range(const struct users *users)
{
	size_t entry;

	if (users->last < users->first)
		return;
	entry = nl_nest(users->out, RDMA_NLDEV_ATTR_RES_QP_ENTRY);
	if (users->last == users->first) {
		nl_put_u32(users->out, RDMA_NLDEV_ATTR_RES_LQPN, users->first);
	} else {
		nl_put_u32(users->out, RDMA_NLDEV_ATTR_MIN_RANGE, users->first);
		nl_put_u32(users->out, RDMA_NLDEV_ATTR_MAX_RANGE, users->last);
	}
	nl_nest_end(users->out, entry);
}

static int put_user(const struct rdma_restrack_entry *entry, void *ctx)
{
	const struct ib_qp *qp = container_of(entry, const struct ib_qp, res);
	struct users *users = ctx;

	if (qp->srq != users->srq)
		return 0;
	if (users->last >= users->first && qp->qp_num == users->last + 1) {
		users->last++;
		return 0;
	}
	put_range(users);
	users->first = users->last = qp->qp_num;
	return users->out->bytes > NLDEV_DATAGRAM_BYTES / 2; /* a reader's buffer has room for no more */
}

static void put_users(struct nl_out *out, const struct ib_srq *srq)
{
	struct users users = {.out = out, .srq = srq, .first = 1};
	size_t table = nl_nest(out, RDMA_NLDEV_ATTR_RES_QP);

	rdma_restrack_for_each(srq->device, RDMA_RESTRACK_QP, put_user, &users);
	put_range(&users);
	nl_nest_end(out, table);
}

static void put_srq(struct nl_out *out, const struct rdma_restrack_entry *entry)
{
	enum { BASIC, XRC }; /* enum ib_srq_type */
	const struct ib_srq *srq = container_of(entry, const struct ib_srq, res);

	nl_put_u32(out, RDMA_NLDEV_ATTR_RES_SRQN, srq->res.id);
	nl_put_u8(out, RDMA_NLDEV_ATTR_RES_TYPE, srq->xrcd ? XRC : BASIC);
	put_pd_of(out, srq->pd, srq->uobject);
	if (srq->cq)
		nl_put_u32(out, RDMA_NLDEV_ATTR_RES_CQN, srq->cq->res.id);
	put_users(out, srq);
}

#define TABLE(name, restrack, id_, put_)                                                   \
	{RDMA_NLDEV_CMD_RES_##name##_GET, RDMA_NLDEV_ATTR_RES_##name,                      \
	 RDMA_NLDEV_ATTR_RES_##name##_ENTRY, RDMA_NLDEV_ATTR_RES_##id_, restrack, put_}

static const struct nldev_table tables[] = {
	TABLE(QP, RDMA_RESTRACK_QP, LQPN, put_qp),
	TABLE(CM_ID, RDMA_RESTRACK_RDMA_CM_ID, CM_IDN, put_cm_id),
	TABLE(CQ, RDMA_RESTRACK_CQ, CQN, put_cq),
	TABLE(MR, RDMA_RESTRACK_MR, MRN, put_mr),
	TABLE(PD, RDMA_RESTRACK_PD, PDN, put_pd),
	TABLE(CTX, RDMA_RESTRACK_CTX, CTXN, put_ctx),
	TABLE(SRQ, RDMA_RESTRACK_SRQ, SRQN, put_srq),
};

const struct nldev_table *nldev_table_of(u16 cmd)
{
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
		if (tables[i].cmd == cmd)
			return &tables[i];
	return NULL;
}

u32 nldev_id(const struct rdma_restrack_entry *entry)
{
	if (entry->type == RDMA_RESTRACK_QP)
		return container_of(entry, const struct ib_qp, res)->qp_num;
	return entry->id;
}

bool nldev_is_on(const struct rdma_restrack_entry *entry, u32 port_num)
{
	switch (entry->type) {
	case RDMA_RESTRACK_QP:
		return container_of(entry, const struct ib_qp, res)->port == port_num;
	case RDMA_RESTRACK_RDMA_CM_ID:
		return container_of(entry, const struct rcm_tracked, res)->id->id.port_num == port_num;
	default:
		return false;
	}
}

void nldev_put_object(struct nl_out *out, const struct nldev_table *table,
		      const struct rdma_restrack_entry *entry)
{
	table->put(out, entry);
	if (entry->user)
		nl_put_u32(out, RDMA_NLDEV_ATTR_RES_PID, (u32)entry->pid);
	else
		nl_put_text(out, RDMA_NLDEV_ATTR_RES_KERN_NAME, entry->comm);
}
