/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The MAD layer as a client of every device. Each port has QP0 and QP1 with one completion queue.
 * If the device answers MADs itself, a port gets them with its first agent, and keeps them.
 *
 * A quiet port has few receives posted, so that thousands of idle ports cost little. Their number
 * doubles when one poll of the CQ finds half of them used, so that the port of a subnet manager
 * loses no MADs. If no poll has found that for MAD_RECV_QUIET_NS, used receives are not replaced
 * until there are as few as on a quiet port.
 */
#include <string.h>

#include "core/mad_priv.h"

#define CQ_BUDGET 256 /* completions per turn of the loop */

#define CQ_ENTRIES (MAD_SEND_WRS + MAD_RECV_WRS) /* for a queue pair */

/** struct mad_device - the client data of a device: its ports */
struct mad_device {
	struct ib_pd *pd; /* NULL: no port is open yet */
	struct list_head ports; /* struct mad_port: the open ports */
};

static const struct ib_client mad_client;

static struct mad_port *find_port(struct mad_device *md, u32 port_num)
{
	struct mad_port *port;

	list_for_each_entry(port, &md->ports, node)
		if (port->port_num == port_num)
			return port;
	return NULL;
}

static int each_of_list(struct list_head *agents,
			int (*fn)(struct ib_mad_agent *agent, void *ctx), void *ctx)
{
	struct mad_agent *agent;
	int ret = 0;

	list_for_each_entry(agent, agents, node) {
		ret = fn(&agent->agent, ctx);
		if (ret)
			break;
	}
	return ret;
}

int ib_mad_agent_for_each(struct ib_device *device,
			  int (*fn)(struct ib_mad_agent *agent, void *ctx), void *ctx)
{
	struct mad_device *md = ib_get_client_data(device, &mad_client);
	struct mad_port *port;
	int ret = 0;

	if (!md)
		return 0;
	list_for_each_entry(port, &md->ports, node) {
		ret = each_of_list(&port->agents, fn, ctx);
		for (size_t i = 0; !ret && i < ARRAY_SIZE(port->qp); i++)
			ret = each_of_list(&port->qp[i].snoops, fn, ctx);
		if (ret)
			break;
	}
	return ret;
}

/* --- receives --- */

/* The QP is busy. Posted receives cannot be removed, so when it is quiet again their number
 * decreases by use. */
static void mark_busy(struct mad_qp *mqp)
{
	mqp->busy_until = mono_add(rt_now(mqp->port->device->rt), MAD_RECV_QUIET_NS);
}

struct mad_recv *mad_recv_alloc(struct mad_qp *mqp)
{
	struct mad_recv *recv = rt_zalloc(sizeof(*recv));

	if (!recv)
		return NULL;
	recv->mqp = mqp;
	recv->cqe.done = mad_recv_done;
	recv->recv_wc.wc = &recv->wc;
	recv->recv_wc.recv_buf.grh = &recv->packet.grh;
	recv->recv_wc.recv_buf.mad = &recv->packet.mad;
	recv->recv_wc.mad_seg_size = IB_MGMT_MAD_SIZE;
	INIT_LIST_HEAD(&recv->recv_wc.recv_buf.list);
	INIT_LIST_HEAD(&recv->recv_wc.rmpp_list);
	INIT_LIST_HEAD(&recv->node);
	return recv;
}

static int post_receive(struct mad_qp *mqp, struct mad_recv *recv)
{
	struct ib_sge sge = {
		.addr = ib_dma_map_single(mqp->port->device, &recv->packet,
					  sizeof(recv->packet), DMA_FROM_DEVICE),
		.length = sizeof(recv->packet),
		.lkey = mqp->port->pd->local_dma_lkey,
	};
	struct ib_recv_wr wr = {.wr_cqe = &recv->cqe, .sg_list = &sge, .num_sge = 1};

	return ib_post_recv(mqp->qp, &wr, NULL);
}

void mad_qp_refill(struct mad_qp *mqp)
{
	while (mqp->num_receives < mqp->want_receives) {
		struct mad_recv *recv = mad_recv_alloc(mqp);

		if (!recv)
			return;
		if (post_receive(mqp, recv)) {
			rt_free(recv);
			return;
		}
		list_add_tail(&recv->node, &mqp->receives);
		mqp->num_receives++;
	}
}

void mad_qp_expect_window(struct mad_qp *mqp)
{
	mark_busy(mqp);
	mqp->want_receives = MAD_RECV_WRS;
	mad_qp_refill(mqp);
}

static void refill_and_adapt(struct mad_qp *mqp)
{
	if (mqp->num_receives <= mqp->want_receives / 2) {
		mark_busy(mqp);
		mqp->want_receives = MIN(2 * mqp->want_receives, MAD_RECV_WRS + 0u);
	} else if (!mono_before(rt_now(mqp->port->device->rt), mqp->busy_until)) {
		mqp->want_receives = MIN(mqp->want_receives, MAD_RECV_INITIAL + 0u);
	}
	mad_qp_refill(mqp);
}

/* --- completions --- */

static void drain_cq(struct mad_port *port)
{
	struct ib_wc wc[16];
	int n, budget = CQ_BUDGET;

	do {
		while ((n = ib_poll_cq(port->cq, ARRAY_SIZE(wc), wc)) > 0) {
			for (int i = 0; i < n; i++)
				wc[i].wr_cqe->done(port->cq, &wc[i]);
			refill_and_adapt(&port->qp[IB_QPT_SMI]);
			refill_and_adapt(&port->qp[IB_QPT_GSI]);
			budget -= n;
			if (budget <= 0) {
				rt_work_queue(port->device->rt, &port->drain);
				return;
			}
		}
	} while (ib_req_notify_cq(port->cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS) > 0);
}

static void comp_handler(struct ib_cq *cq, void *cq_context)
{
	drain_cq(cq_context);
}

static void drain_work(struct rt_work *work)
{
	drain_cq(container_of(work, struct mad_port, drain));
}

/* --- ports --- */

void mad_qp_setup(struct mad_qp *mqp, struct mad_port *port, struct ib_qp *qp)
{
	mqp->port = port;
	mqp->qp = qp;
	INIT_LIST_HEAD(&mqp->posted);
	INIT_LIST_HEAD(&mqp->backlog);
	INIT_LIST_HEAD(&mqp->receives);
	INIT_LIST_HEAD(&mqp->snoops);
}

static int start_qp(struct ib_qp *qp)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT,
		.qkey = qp->qp_type == IB_QPT_SMI ? 0 : 0x80010000, /* 10.2.5 */
	};
	int ret = ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_QKEY);

	attr.qp_state = IB_QPS_RTR;
	if (!ret)
		ret = ib_modify_qp(qp, &attr, IB_QP_STATE);
	attr.qp_state = IB_QPS_RTS;
	if (!ret)
		ret = ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_SQ_PSN);
	return ret;
}

static void close_qp(struct mad_qp *mqp)
{
	struct mad_recv *recv, *tmp;

	if (!mqp->qp)
		return;
	ib_destroy_qp(mqp->qp);
	mqp->qp = NULL;
	list_for_each_entry_safe(recv, tmp, &mqp->receives, node)
		rt_free(recv);
}

static int open_qp(struct mad_port *port, enum ib_qp_type type)
{
	struct mad_qp *mqp = &port->qp[type];
	struct ib_qp_init_attr init = {
		.send_cq = port->cq,
		.recv_cq = port->cq,
		.cap = {.max_send_wr = MAD_SEND_WRS,
			.max_recv_wr = MAD_RECV_WRS,
			.max_send_sge = 2,
			.max_recv_sge = 1},
		.sq_sig_type = IB_SIGNAL_ALL_WR,
		.qp_type = type,
		.port_num = port->port_num,
	};
	struct ib_qp *qp = ib_create_qp_(port->pd, &init, "mad");
	int ret;

	if (IS_ERR(qp))
		return (int)PTR_ERR(qp);
	mqp->qp = qp;
	ret = start_qp(qp);
	if (!ret) {
		mqp->want_receives = MAD_RECV_INITIAL;
		mad_qp_refill(mqp);
		ret = mqp->num_receives ? 0 : -ENOMEM;
	}
	if (ret)
		close_qp(mqp);
	return ret;
}

/* Most ports use QP1 alone, and the CQ has room for one queue pair until there are two. */
static int add_qp(struct mad_port *port, enum ib_qp_type type)
{
	enum ib_qp_type other = type == IB_QPT_SMI ? IB_QPT_GSI : IB_QPT_SMI;
	int ret = 0;

	if (port->cq_is_small && port->qp[other].qp) {
		ret = ib_resize_cq(port->cq, 2 * CQ_ENTRIES);
		port->cq_is_small = ret;
	}
	return ret ? ret : open_qp(port, type);
}

/* All agents are unregistered, because clients that registered later are removed first. */
static void close_port(struct mad_port *port)
{
	struct mad_recv *recv, *tmp;
	struct mad_send *send, *next;

	for (int i = 0; i < 2; i++) {
		/* the only sends left are the layer's own replies */
		list_for_each_entry_safe(send, next, &port->qp[i].posted, queue_node)
			mad_send_free(send);
		list_for_each_entry_safe(send, next, &port->qp[i].backlog, queue_node)
			mad_send_free(send);
		close_qp(&port->qp[i]);
	}
	list_for_each_entry_safe(send, next, &port->loopback_sent, queue_node)
		mad_send_free(send);
	list_for_each_entry_safe(recv, tmp, &port->loopback, node)
		rt_free(recv);
	rt_work_cancel(&port->drain);
	rt_work_cancel(&port->loop_work);
	if (port->cq)
		ib_destroy_cq(port->cq);
	list_del(&port->node);
	rt_free(port);
}

static int open_cq(struct mad_port *port)
{
	struct ib_device *device = port->device;
	bool is_small = device->answers_mads && device->ops->resize_cq;
	struct ib_cq_init_attr attr = {.cqe = is_small ? CQ_ENTRIES : 2 * CQ_ENTRIES};
	struct ib_cq *cq = ib_create_cq_(device, comp_handler, NULL, port, &attr, "mad");
	int ret;

	if (IS_ERR(cq))
		return (int)PTR_ERR(cq);
	port->cq = cq;
	port->cq_is_small = is_small;
	ret = ib_req_notify_cq(cq, IB_CQ_NEXT_COMP);
	return ret < 0 ? ret : 0;
}

static int open_pd(struct mad_device *md, struct ib_device *device)
{
	struct ib_pd *pd = md->pd ? md->pd : ib_alloc_pd_(device, 0, "mad");

	if (IS_ERR(pd))
		return (int)PTR_ERR(pd);
	md->pd = pd;
	return 0;
}

static struct mad_port *open_port(struct mad_device *md, struct ib_device *device, u32 port_num)
{
	struct mad_port *port;
	int ret = open_pd(md, device);

	if (ret)
		return ERR_PTR(ret);
	port = rt_zalloc(sizeof(*port));
	if (!port)
		return ERR_PTR(-ENOMEM);
	port->device = device;
	port->pd = md->pd;
	port->port_num = port_num;
	INIT_LIST_HEAD(&port->agents);
	INIT_LIST_HEAD(&port->loopback);
	INIT_LIST_HEAD(&port->loopback_sent);
	rt_work_init(&port->drain, drain_work);
	rt_work_init(&port->loop_work, mad_loop_work);
	list_add_tail(&port->node, &md->ports);
	mad_qp_setup(&port->qp[IB_QPT_SMI], port, NULL);
	mad_qp_setup(&port->qp[IB_QPT_GSI], port, NULL);
	ret = open_cq(port);
	if (!ret)
		return port;
	close_port(port);
	return ERR_PTR(ret);
}

struct mad_port *mad_port_get(struct ib_device *device, u32 port_num, enum ib_qp_type type)
{
	struct mad_device *md = ib_get_client_data(device, &mad_client);
	struct mad_port *port;
	int ret;

	if (!md || !rdma_is_port_valid(device, port_num))
		return ERR_PTR(-ENODEV);
	port = find_port(md, port_num);
	if (!port)
		port = open_port(md, device, port_num);
	if (IS_ERR(port) || port->qp[type].qp)
		return port;
	ret = add_qp(port, type);
	if (!ret)
		return port;
	if (!port->qp[IB_QPT_SMI].qp && !port->qp[IB_QPT_GSI].qp)
		close_port(port);
	return ERR_PTR(ret);
}

static int open_whole_port(struct ib_device *device, u32 port_num)
{
	int ret = PTR_ERR_OR_ZERO(mad_port_get(device, port_num, IB_QPT_SMI));

	return ret ? ret : PTR_ERR_OR_ZERO(mad_port_get(device, port_num, IB_QPT_GSI));
}

static void remove_device(struct ib_device *device, void *client_data)
{
	struct mad_device *md = client_data;
	struct mad_port *port, *tmp;

	if (!md)
		return;
	ib_set_client_data(device, &mad_client, NULL);
	list_for_each_entry_safe(port, tmp, &md->ports, node)
		close_port(port);
	if (md->pd)
		ib_dealloc_pd(md->pd);
	rt_free(md);
}

static int add_device(struct ib_device *device)
{
	struct mad_device *md = rt_zalloc(sizeof(*md));
	int ret = 0;

	if (!md)
		return -ENOMEM;
	INIT_LIST_HEAD(&md->ports);
	ib_set_client_data(device, &mad_client, md);
	if (device->answers_mads)
		return 0;
	for (u32 p = rdma_start_port(device); !ret && p <= rdma_end_port(device); p++)
		ret = open_whole_port(device, p);
	if (ret)
		remove_device(device, md);
	return ret;
}

static const struct ib_client mad_client = {
	.name = "mad",
	.add = add_device,
	.remove = remove_device,
};

int ib_mad_init(struct rt *rt)
{
	return ib_register_client(rt, &mad_client);
}

void ib_mad_cleanup(struct rt *rt)
{
	ib_unregister_client(rt, &mad_client);
}
