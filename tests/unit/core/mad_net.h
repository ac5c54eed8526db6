/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Devices on one wire, for tests of the MAD layer: node i has LID 10 + i, a
 * packet takes 10 microseconds of virtual time, a hook may lose any of them.
 * A packet to the permissive LID goes to the neighbour (0 and 1, 2 and 3).
 * Only what MADs need is there: UD queue pairs, receives, completions. The
 * wire's own memory never fails: rt_fail_alloc() is for the code under test.
 */
#ifndef SOFTIB_TESTS_MAD_NET_H
#define SOFTIB_TESTS_MAD_NET_H

#include <stdlib.h>

#include "rdma/ib_mad.h"
#include "rdma/ib_smi.h"
#include "runtime/rt.h"
#include "runtime/sim/rt_sim.h"

#define NET_NODES 4
#define NET_LATENCY_NS 10000
#define NET_PACKET_NS 1000 /* a port sends one after the other */
#define NET_RECEIVES 512
#define NET_GIDS 2 /* of a port: fe80:: and its LID, fe80::100 and its LID */

struct net;
struct net_node;

struct net_packet {
	struct rt_timer timer;
	struct net *net;
	struct net_node *from, *to;
	u32 src_qpn, dest_qpn;
	u32 qkey;
	u16 pkey_index;
	bool permissive;
	struct ib_grh grh;
	bool has_grh;
	union {
		struct ib_mad mad;
		struct ib_rmpp_mad rmpp;
		struct ib_smp smp;
	};
};

struct net_wc {
	struct list_head node;
	struct ib_wc wc;
};

struct net_cq {
	struct ib_cq ib;
	struct list_head entries;
	bool armed;
	struct rt_work work;
	struct list_head event_node; /* net_node.cq_events */
};

struct net_qp {
	struct ib_qp ib;
	struct list_head node;
	struct {
		u64 wr_id, addr;
		u32 length;
	} receive[NET_RECEIVES];
	unsigned int head, tail;
};

struct net_ah {
	struct ib_ah ib;
	struct rdma_ah_attr attr;
};

struct net_node {
	struct ib_device ib;
	struct net *net;
	u16 lid;
	u8 lmc;
	mono_t free; /* when its port has sent what it was given */
	struct list_head qps, cq_events;
	int live;	  /* objects */
	int no_receive;	  /* packets dropped for want of one */
	int most_receives;
	u32 cap_mask;
	u8 link_layer;
	u16 sm_lid; /* where its subnet manager is: node 0, unless a test says else */
	bool hold_sends;  /* completions of sends wait for net_release() */
	struct list_head held;
	enum ib_wc_status send_status;
	int (*process_mad)(struct net_node *node, const struct ib_mad *in, struct ib_mad *out);
};

struct net {
	struct rt *rt;
	struct net_node *node[NET_NODES];
	u64 packet_ns; /* NET_PACKET_NS; 0: all at once */
	int packets; /* that were sent */
	int under_way;
	bool (*lose)(struct net *net, const struct net_packet *packet);
	int lose_nth; /* used by net_lose_nth: 1 is the next; 0 none */
};

static inline struct net_node *net_of(struct ib_device *device)
{
	return container_of(device, struct net_node, ib);
}

static inline bool net_lose_nth(struct net *net, const struct net_packet *packet)
{
	return net->lose_nth && --net->lose_nth == 0;
}

static inline bool net_lose_all(struct net *net, const struct net_packet *packet)
{
	return true;
}

#define NET_NEW(device, type)                                                  \
	({                                                                     \
		type *o_ = rt_zalloc(sizeof(type));                            \
		if (o_)                                                        \
			net_of(device)->live++;                                \
		o_;                                                            \
	})
#define NET_FREE(device, o)                                                    \
	do {                                                                   \
		net_of(device)->live--;                                        \
		rt_free(o);                                                    \
	} while (0)

/* --- completions --- */

static inline void net_cq_work(struct rt_work *work)
{
	struct net_cq *cq = container_of(work, struct net_cq, work);

	if (cq->ib.comp_handler)
		cq->ib.comp_handler(&cq->ib, cq->ib.cq_context);
}

static inline void net_complete(struct ib_cq *ib_cq, const struct ib_wc *wc)
{
	struct net_cq *cq = container_of(ib_cq, struct net_cq, ib);
	struct net_wc *e = calloc(1, sizeof(*e));

	e->wc = *wc;
	list_add_tail(&e->node, &cq->entries);
	if (cq->armed) {
		cq->armed = false;
		if (!ib_cq->device->polled)
			rt_work_queue(cq->ib.device->rt, &cq->work);
		else if (list_empty(&cq->event_node))
			list_add_tail(&cq->event_node, &net_of(ib_cq->device)->cq_events);
	}
}

static inline bool net_poll_events(struct ib_device *device)
{
	struct net_node *node = net_of(device);
	struct net_cq *cq;

	if (list_empty(&node->cq_events))
		return false;
	cq = list_first_entry(&node->cq_events, struct net_cq, event_node);
	list_del(&cq->event_node);
	net_cq_work(&cq->work);
	return true;
}

static inline int net_poll_cq(struct ib_cq *ib_cq, int n, struct ib_wc *wc)
{
	struct net_cq *cq = container_of(ib_cq, struct net_cq, ib);
	int got = 0;

	while (got < n && !list_empty(&cq->entries)) {
		struct net_wc *e = list_first_entry(&cq->entries, struct net_wc, node);

		wc[got++] = e->wc;
		list_del(&e->node);
		free(e);
	}
	return got;
}

static inline int net_req_notify_cq(struct ib_cq *ib_cq, enum ib_cq_notify_flags flags)
{
	struct net_cq *cq = container_of(ib_cq, struct net_cq, ib);

	cq->armed = true;
	return !list_empty(&cq->entries) && flags & IB_CQ_REPORT_MISSED_EVENTS;
}

static inline struct ib_cq *net_create_cq(struct ib_device *device,
					  const struct ib_cq_init_attr *attr,
					  struct ib_udata *udata)
{
	struct net_cq *cq = NET_NEW(device, struct net_cq);

	if (!cq)
		return ERR_PTR(-ENOMEM);
	INIT_LIST_HEAD(&cq->entries);
	rt_work_init(&cq->work, net_cq_work);
	INIT_LIST_HEAD(&cq->event_node);
	return &cq->ib;
}

static inline void net_destroy_cq(struct ib_cq *ib_cq)
{
	struct net_cq *cq = container_of(ib_cq, struct net_cq, ib);
	struct ib_wc wc;

	while (net_poll_cq(ib_cq, 1, &wc))
		;
	rt_work_cancel(&cq->work);
	list_del(&cq->event_node);
	NET_FREE(ib_cq->device, cq);
}

/* --- the wire --- */

static inline struct net_qp *net_find_qp(struct net_node *node, u32 qpn)
{
	struct net_qp *qp;

	list_for_each_entry(qp, &node->qps, node)
		if (qp->ib.qp_num == qpn)
			return qp;
	return NULL;
}

static inline void net_arrive(struct rt_timer *timer)
{
	struct net_packet *p = container_of(timer, struct net_packet, timer);
	struct net_qp *qp = p->to ? net_find_qp(p->to, p->dest_qpn) : NULL;
	struct net *net = p->net;
	struct ib_wc wc = {
		.status = IB_WC_SUCCESS,
		.opcode = IB_WC_RECV,
		.byte_len = 40 + sizeof(p->mad),
		.src_qp = p->src_qpn,
		.slid = p->permissive ? IB_LID_PERMISSIVE : p->from->lid,
		.wc_flags = p->has_grh ? IB_WC_GRH : 0,
		.pkey_index = p->pkey_index,
		.port_num = 1,
	};

	if (qp && qp->head == qp->tail)
		p->to->no_receive++;
	if (qp && qp->head != qp->tail) {
		unsigned int i = qp->head++ % NET_RECEIVES;
		u8 *to = (u8 *)(uintptr_t)qp->receive[i].addr;

		memcpy(to, &p->grh, 40);
		memcpy(to + 40, &p->mad, sizeof(p->mad));
		wc.wr_id = qp->receive[i].wr_id;
		wc.qp = &qp->ib;
		net_complete(qp->ib.recv_cq, &wc);
	}
	free(p);
	net->under_way--;
}

static inline struct net_node *net_route(struct net_node *from, u16 dlid)
{
	if (dlid == IB_LID_PERMISSIVE) {
		for (int i = 0; i < NET_NODES; i++)
			if (from->net->node[i] == from)
				return from->net->node[i ^ 1];
	}
	for (int i = 0; i < NET_NODES; i++) {
		struct net_node *n = from->net->node[i];

		if (n && n->lid >> n->lmc == dlid >> n->lmc)
			return n;
	}
	return NULL;
}

static inline int net_query_gid(struct ib_device *device, u32 port, int index, union ib_gid *gid)
{
	*gid = (union ib_gid){.raw = {0xfe, 0x80, [14] = (u8)index, [15] = (u8)net_of(device)->lid}};
	return index < NET_GIDS ? 0 : -EINVAL;
}

static inline void net_send_one(struct ib_qp *qp, const struct ib_ud_wr *wr)
{
	const struct rdma_ah_attr *attr = &container_of(wr->ah, struct net_ah, ib)->attr;
	struct net_packet *p = calloc(1, sizeof(*p));
	struct net_node *node = net_of(qp->device);
	u8 *to = (u8 *)&p->mad;

	p->net = node->net;
	p->from = node;
	p->to = net_route(node, attr->dlid);
	p->src_qpn = qp->qp_num;
	p->dest_qpn = wr->remote_qpn;
	p->qkey = wr->remote_qkey;
	p->pkey_index = wr->pkey_index;
	p->permissive = attr->dlid == IB_LID_PERMISSIVE;
	p->has_grh = attr->ah_flags & IB_AH_GRH;
	if (p->has_grh) {
		p->grh.dgid = attr->grh.dgid;
		net_query_gid(&node->ib, 1, attr->grh.sgid_index, &p->grh.sgid);
	}
	for (int i = 0; i < wr->wr.num_sge; i++) {
		memcpy(to, (void *)(uintptr_t)wr->wr.sg_list[i].addr, wr->wr.sg_list[i].length);
		to += wr->wr.sg_list[i].length;
	}
	p->net->packets++;
	if (p->net->lose && p->net->lose(p->net, p)) {
		free(p);
		return;
	}
	p->net->under_way++;
	rt_timer_init(p->net->rt, &p->timer, net_arrive);
	if (mono_before(node->free, rt_now(p->net->rt)))
		node->free = rt_now(p->net->rt);
	node->free = mono_add(node->free, node->net->packet_ns);
	rt_timer_arm(&p->timer, mono_add(node->free, NET_LATENCY_NS));
}

static inline void net_release(struct net_node *node)
{
	node->hold_sends = false;
	while (!list_empty(&node->held)) {
		struct net_wc *e = list_first_entry(&node->held, struct net_wc, node);

		list_del(&e->node);
		net_complete(e->wc.qp->send_cq, &e->wc);
		free(e);
	}
}

static inline int net_post_send(struct ib_qp *qp, const struct ib_send_wr *wr,
				const struct ib_send_wr **bad_wr)
{
	struct net_node *node = net_of(qp->device);
	struct ib_wc wc = {.wr_id = wr->wr_id, .status = node->send_status,
			   .opcode = IB_WC_SEND, .qp = qp};
	struct net_wc *held;

	if (node->send_status == IB_WC_SUCCESS)
		net_send_one(qp, ud_wr(wr));
	if (!node->hold_sends) {
		net_complete(qp->send_cq, &wc);
		return 0;
	}
	held = calloc(1, sizeof(*held));
	held->wc = wc;
	list_add_tail(&held->node, &node->held);
	return 0;
}

static inline int net_post_recv(struct ib_qp *ib_qp, const struct ib_recv_wr *wr,
				const struct ib_recv_wr **bad_wr)
{
	struct net_qp *qp = container_of(ib_qp, struct net_qp, ib);
	unsigned int i = qp->tail % NET_RECEIVES;

	if (qp->tail - qp->head == NET_RECEIVES)
		return -ENOMEM;
	qp->receive[i].wr_id = wr->wr_id;
	qp->receive[i].addr = wr->sg_list[0].addr;
	qp->receive[i].length = wr->sg_list[0].length;
	qp->tail++;
	net_of(ib_qp->device)->most_receives =
		MAX(net_of(ib_qp->device)->most_receives, (int)(qp->tail - qp->head));
	return 0;
}

/* --- objects and queries --- */

static inline int net_query_device(struct ib_device *device, struct ib_device_attr *attr)
{
	*attr = (struct ib_device_attr){.fw_ver = "9.9", .vendor_part_id = 7,
				       .qp_types = UINT32_MAX, .max_mcast_grp = 16, .max_mcast_qp_attach = 16,
				       .max_total_mcast_qp_attach = 256, .max_res_rd_atom = 1 << 20,
				       .max_qp_wr = 1024, .max_send_sge = 4, .max_recv_sge = 4,
					.max_cqe = 10000, .max_pkeys = 1,
					.max_qp = 64, .max_cq = 64, .max_pd = 64,
					.max_qp_rd_atom = 16, .max_qp_init_rd_atom = 16,
					.max_mr = 64, .max_ah = 10000};
	return 0;
}

static inline int net_query_port(struct ib_device *device, u32 port, struct ib_port_attr *attr)
{
	*attr = (struct ib_port_attr){.state = IB_PORT_ACTIVE, .lid = net_of(device)->lid,
				      .lmc = net_of(device)->lmc, .gid_tbl_len = NET_GIDS,
				      .pkey_tbl_len = 1, .sm_lid = net_of(device)->sm_lid, .phys_state = 5,
				      .active_width = 2, .active_speed = 32,
				      .port_cap_flags = net_of(device)->cap_mask, .max_mtu = IB_MTU_4096,
				      .active_mtu = IB_MTU_4096,
				      .link_layer = net_of(device)->link_layer};
	return 0;
}

/* of Ethernet: a LID is the end of a GID here, too */
static inline int net_find_station(struct ib_device *device, u32 port_num, unsigned int sgid_index,
				   const union ib_gid *gid, u16 *station)
{
	*station = gid->raw[15];
	return gid->raw[0] == 0xfe ? 0 : -EHOSTUNREACH;
}

static inline int net_modify_port(struct ib_device *device, u32 port_num, int mask,
				  struct ib_port_modify *modify)
{
	net_of(device)->cap_mask |= modify->set_port_cap_mask;
	net_of(device)->cap_mask &= ~modify->clr_port_cap_mask;
	return 0;
}

static inline int net_query_pkey(struct ib_device *device, u32 port, u16 index, u16 *pkey)
{
	*pkey = 0xffff;
	return 0;
}

static inline struct ib_pd *net_alloc_pd(struct ib_device *device, struct ib_udata *udata)
{
	struct ib_pd *pd = NET_NEW(device, struct ib_pd);

	return pd ? pd : ERR_PTR(-ENOMEM);
}

static inline void net_dealloc_pd(struct ib_pd *pd)
{
	NET_FREE(pd->device, pd);
}

static inline struct ib_ah *net_create_ah(struct ib_pd *pd, const struct rdma_ah_attr *attr,
					  struct ib_udata *udata)
{
	struct net_ah *ah = NET_NEW(pd->device, struct net_ah);

	if (!ah)
		return ERR_PTR(-ENOMEM);
	ah->attr = *attr;
	return &ah->ib;
}

static inline int net_query_ah(struct ib_ah *ah, struct rdma_ah_attr *attr)
{
	*attr = container_of(ah, struct net_ah, ib)->attr;
	return 0;
}

static inline void net_destroy_ah(struct ib_ah *ah)
{
	NET_FREE(ah->device, container_of(ah, struct net_ah, ib));
}

static inline struct ib_qp *net_create_qp(struct ib_pd *pd, struct ib_qp_init_attr *attr,
					  struct ib_udata *udata)
{
	struct net_qp *qp = NET_NEW(pd->device, struct net_qp);

	if (!qp)
		return ERR_PTR(-ENOMEM);
	qp->ib.qp_num = attr->qp_type == IB_QPT_SMI ? 0 : attr->qp_type == IB_QPT_GSI ? 1 : 0x100;
	list_add_tail(&qp->node, &net_of(pd->device)->qps);
	return &qp->ib;
}

static inline int net_modify_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask)
{
	return 0;
}

static inline int net_query_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask,
			       struct ib_qp_init_attr *init)
{
	return 0;
}

static inline void net_destroy_qp(struct ib_qp *qp)
{
	list_del(&container_of(qp, struct net_qp, ib)->node);
	NET_FREE(qp->device, container_of(qp, struct net_qp, ib));
}

static inline struct ib_mr *net_get_dma_mr(struct ib_pd *pd, int access)
{
	struct ib_mr *mr = NET_NEW(pd->device, struct ib_mr);

	return mr ? mr : ERR_PTR(-ENOMEM);
}

static inline void net_dereg_mr(struct ib_mr *mr)
{
	NET_FREE(mr->device, mr);
}

static inline int net_process_mad(struct ib_device *device, int flags, u32 port_num,
				  const struct ib_wc *in_wc, const struct ib_grh *in_grh,
				  const struct ib_mad *in, struct ib_mad *out,
				  size_t *out_mad_bytes, u16 *out_mad_pkey_index)
{
	struct net_node *node = net_of(device);

	return node->process_mad ? node->process_mad(node, in, out) : IB_MAD_RESULT_SUCCESS;
}

static const struct ib_device_ops net_ops = {
	.poll_events = net_poll_events,
	.query_device = net_query_device,
	.query_port = net_query_port,
	.modify_port = net_modify_port,
	.query_gid = net_query_gid,
	.query_pkey = net_query_pkey,
	.find_station = net_find_station,
	.alloc_pd = net_alloc_pd,
	.dealloc_pd = net_dealloc_pd,
	.create_ah = net_create_ah,
	.query_ah = net_query_ah,
	.destroy_ah = net_destroy_ah,
	.create_cq = net_create_cq,
	.destroy_cq = net_destroy_cq,
	.poll_cq = net_poll_cq,
	.req_notify_cq = net_req_notify_cq,
	.create_qp = net_create_qp,
	.modify_qp = net_modify_qp,
	.query_qp = net_query_qp,
	.destroy_qp = net_destroy_qp,
	.post_send = net_post_send,
	.post_recv = net_post_recv,
	.get_dma_mr = net_get_dma_mr,
	.dereg_mr = net_dereg_mr,
	.process_mad = net_process_mad,
};

/* --- setting up --- */

static inline struct net *net_create_on(struct rt *rt, int nodes)
{
	struct net *net = rt_zalloc(sizeof(*net));

	net->rt = rt;
	net->lose = net_lose_nth;
	net->packet_ns = NET_PACKET_NS;
	for (int i = 0; i < nodes; i++) {
		struct net_node *n = ib_alloc_device(struct net_node, ib);

		n->ib.rt = net->rt;
		n->ib.ops = &net_ops;
		/* the same tests of devices that raise no interrupt: meson.build */
		n->ib.polled = getenv("POLLED") != NULL;
		INIT_LIST_HEAD(&n->cq_events);
		n->ib.node_type = RDMA_NODE_IB_CA;
		n->ib.phys_port_cnt = 1;
		n->ib.node_guid = cpu_to_be64(0x1000u + (u64)i);
		snprintf(n->ib.node_name, sizeof(n->ib.node_name), "n%d", i);
		n->net = net;
		n->lid = (u16)(10 + i);
		n->sm_lid = 10;
		INIT_LIST_HEAD(&n->qps);
		INIT_LIST_HEAD(&n->held);
		net->node[i] = n;
	}
	ib_mad_init(net->rt);
	for (int i = 0; i < nodes; i++)
		if (ib_register_device(&net->node[i]->ib, "fake0"))
			abort();
	return net;
}

static inline struct net *net_create(int nodes)
{
	struct rt *rt;

	return rt_sim_create(1, &rt) ? NULL : net_create_on(rt, nodes);
}

/** net_take_down() - nothing is under way any more.
 *  Return: objects that somebody forgot */
static inline int net_take_down(struct net *net)
{
	int left = 0;

	for (int i = 0; i < NET_NODES; i++) {
		if (!net->node[i])
			continue;
		ib_unregister_device(&net->node[i]->ib);
		left += net->node[i]->live;
	}
	ib_mad_cleanup(net->rt);
	for (int i = 0; i < NET_NODES; i++)
		if (net->node[i])
			ib_dealloc_device(&net->node[i]->ib);
	rt_free(net);
	return left;
}

static inline int net_destroy(struct net *net)
{
	struct rt *rt = net->rt;
	int left;

	rt_sim_run_for(rt, NSEC_PER_SEC); /* packets under way */
	left = net_take_down(net);
	rt_sim_destroy(rt);
	return left;
}

#endif
