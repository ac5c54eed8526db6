/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The send queue of a QP: sends with a work request, and the backlog behind them. The loopback:
 * an SMP for the port that it would leave by never reaches the wire (C14-9:3), and is received
 * in the next turn of the loop instead. Replies of the layer itself.
 */
#include <string.h>

#include "core/mad_priv.h"
#include "wire/address.h"

/* --- the QP --- */

static int post_wr(struct mad_send *send)
{
	struct mad_qp *mqp = send->mqp;
	struct ib_device *device = mqp->port->device;
	u32 lkey = mqp->qp->pd->local_dma_lkey;
	u32 head = send->rmpp ? (u32)send->buf.hdr_len : IB_MGMT_MAD_SIZE;

	send->sge[0] = (struct ib_sge){
		ib_dma_map_single(device, send->mad, head, DMA_TO_DEVICE), head, lkey};
	if (send->rmpp) {
		u32 bytes = (u32)send->buf.seg_size;
		u8 *data = send->segments + (send->seg_num - 1) * send->buf.seg_size;

		send->sge[1] = (struct ib_sge){
			ib_dma_map_single(device, data, bytes, DMA_TO_DEVICE), bytes, lkey};
	}
	send->wr.wr = (struct ib_send_wr){
		.wr_cqe = &send->cqe,
		.sg_list = send->sge,
		.num_sge = send->rmpp ? 2 : 1,
		.opcode = IB_WR_SEND,
		.send_flags = IB_SEND_SIGNALED,
	};
	send->wr.ah = send->buf.ah;
	return ib_post_send(mqp->qp, &send->wr.wr, NULL);
}

static int hand_over(struct mad_send *send)
{
	int ret = post_wr(send);

	if (ret)
		return ret;
	list_add_tail(&send->queue_node, &send->mqp->posted);
	send->mqp->num_posted++;
	return 0;
}

int mad_post(struct mad_send *send)
{
	struct mad_qp *mqp = send->mqp;
	int ret = 0;

	if (mqp->num_posted < MAD_SEND_WRS && list_empty(&mqp->backlog)) {
		ret = hand_over(send);
	} else {
		list_add_tail(&send->queue_node, &mqp->backlog);
		send->in_backlog = true;
	}
	send->posted = !ret;
	return ret;
}

bool mad_unpost(struct mad_send *send)
{
	if (!send->in_backlog)
		return false;
	list_del(&send->queue_node);
	send->in_backlog = false;
	send->posted = false;
	return true;
}

static void post_backlog(struct mad_qp *mqp)
{
	while (!list_empty(&mqp->backlog) && mqp->num_posted < MAD_SEND_WRS) {
		struct mad_send *send =
			list_first_entry(&mqp->backlog, struct mad_send, queue_node);

		list_del(&send->queue_node);
		send->in_backlog = false;
		if (hand_over(send))
			mad_send_sent(send, IB_WC_GENERAL_ERR);
	}
}

/* 10.3.1: an error in a UD request puts the QP into the state SQE. Return it to RTS, so that
 * the next MADs are sent. */
static void restart_queue(struct mad_qp *mqp)
{
	struct ib_qp_attr attr = {.qp_state = IB_QPS_RTS, .cur_qp_state = IB_QPS_SQE};

	ib_modify_qp(mqp->qp, &attr, IB_QP_STATE | IB_QP_CUR_STATE);
}

void mad_send_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct mad_send *send = container_of(wc->wr_cqe, struct mad_send, cqe);
	struct mad_qp *mqp = send->mqp;

	list_del(&send->queue_node);
	mqp->num_posted--;
	if (wc->status != IB_WC_SUCCESS && wc->status != IB_WC_WR_FLUSH_ERR)
		restart_queue(mqp);
	mad_send_sent(send, wc->status);
	post_backlog(mqp);
}

/* --- loopback --- */

bool mad_loops_back(const struct mad_send *send)
{
	struct mad_port *port = send->mqp->port;
	struct rdma_ah_attr ah;
	struct ib_port_attr attr;

	if (rdma_query_ah(send->buf.ah, &ah) ||
	    ib_query_port(port->device, port->port_num, &attr))
		return false;
	return wire_addr_is_of(wire_addr_of_lid(ah.dlid), wire_port_addrs(attr.lid, attr.lmc));
}

int mad_loopback(struct mad_send *send)
{
	struct mad_port *port = send->mqp->port;
	struct mad_recv *recv = mad_recv_alloc(send->mqp);
	struct rdma_ah_attr ah = {.dlid = IB_LID_PERMISSIVE};

	if (!recv)
		return -ENOMEM;
	rdma_query_ah(send->buf.ah, &ah);
	recv->wc = (struct ib_wc){
		.status = IB_WC_SUCCESS,
		.opcode = IB_WC_RECV,
		.byte_len = sizeof(recv->packet),
		.qp = send->mqp->qp,
		.slid = ah.dlid,
		.pkey_index = send->wr.pkey_index,
		.port_num = port->port_num,
	};
	memcpy(&recv->packet.mad, send->mad, IB_MGMT_MAD_SIZE);
	list_add_tail(&recv->node, &port->loopback);
	list_add_tail(&send->queue_node, &port->loopback_sent);
	send->posted = true;
	rt_work_queue(port->device->rt, &port->loop_work);
	return 0;
}

void mad_loop_work(struct rt_work *work)
{
	struct mad_port *port = container_of(work, struct mad_port, loop_work);
	LIST_HEAD(received);

	list_splice_tail_init(&port->loopback, &received);
	while (!list_empty(&port->loopback_sent)) {
		struct mad_send *send =
			list_first_entry(&port->loopback_sent, struct mad_send, queue_node);

		list_del(&send->queue_node);
		mad_send_sent(send, IB_WC_SUCCESS);
	}
	while (!list_empty(&received)) {
		struct mad_recv *recv = list_first_entry(&received, struct mad_recv, node);

		list_del(&recv->node);
		mad_receive(recv);
	}
}

/* --- the layer's own sends --- */

int mad_reply(struct mad_recv *recv, const struct ib_mad *mad)
{
	struct mad_qp *mqp = recv->mqp;
	struct mad_port *port = mqp->port;
	struct mad_send *send = mad_send_alloc(NULL, mqp, 0, IB_MGMT_MAD_HDR, IB_MGMT_MAD_DATA);
	int ret = 0;

	if (!send)
		return -ENOMEM;
	memcpy(send->mad, mad, IB_MGMT_MAD_SIZE);
	send->wr.remote_qpn = recv->wc.src_qp;
	send->wr.remote_qkey = recv->wc.src_qp ? 0x80010000 : 0;
	send->wr.pkey_index = recv->wc.pkey_index;
	send->wr.port_num = port->port_num;
	send->buf.ah = ib_create_ah_from_wc(mqp->qp->pd, &recv->wc, &recv->packet.grh,
					    port->port_num);
	if (IS_ERR(send->buf.ah)) {
		ret = (int)PTR_ERR(send->buf.ah);
		send->buf.ah = NULL;
	} else if (mad->mad_hdr.mgmt_class == IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE) {
		enum smi_action action = smi_send((void *)send->mad, port->port_num);

		send->loops = action == SMI_LOCAL;
		ret = action == SMI_DISCARD ? -EINVAL : 0;
	} else if (mad->mad_hdr.mgmt_class == IB_MGMT_CLASS_SUBN_LID_ROUTED) {
		send->loops = mad_loops_back(send);
	}
	if (!ret)
		ret = mad_transmit(send);
	if (ret)
		mad_send_free(send);
	return ret;
}
