/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* An interface's raw packet QP: the frames that it sends and receives, and its rules. */
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "ulp/eth/private.h"

#define CQ_BUDGET 128 /* completions per turn of the loop */
/* Priorities of the rules: behind those of programs, and those of an interface of a VLAN before those of
 * the untagged one, which takes the frames of other VLANs for its host. */
#define LAST	  UINT16_MAX
#define LAST_VLAN (LAST - 1)
#define VLAN_BITS 0x0fff /* of a tag: the id */

/* --- sends --- */

struct eth_send *eth_send_alloc(struct eth *eth)
{
	struct eth_send *s;

	if (eth->num_sends == ETH_SENDS)
		return NULL;
	if (eth->num_spare) {
		s = list_first_entry(&eth->spare_sends, struct eth_send, node);
		list_del(&s->node);
		eth->num_spare--;
	} else {
		s = rt_alloc(sizeof(*s));
	}
	if (!s)
		return NULL;
	s->eth = eth;
	eth->num_sends++;
	return s;
}

void eth_send_free(struct eth_send *s)
{
	struct eth *eth = s->eth;

	eth->num_sends--;
	if (eth->num_spare < ETH_SPARE && !eth->closing) {
		list_add(&s->node, &eth->spare_sends);
		eth->num_spare++;
	} else {
		rt_free(s);
	}
	if (eth->host_waits && eth->num_sends + ETH_SEGMENTS <= ETH_SENDS)
		eth_host_resume(eth);
}

static void sent(struct ib_cq *cq, struct ib_wc *wc)
{
	struct eth_send *s = container_of(wc->wr_cqe, struct eth_send, cqe);
	struct eth *eth = s->eth;

	if (wc->status == IB_WC_SUCCESS) {
		eth->stats.tx_packets++;
		eth->stats.tx_bytes += s->bytes;
	} else {
		eth->stats.tx_errors++;
		if (wc->status != IB_WC_WR_FLUSH_ERR && !eth->closing)
			rt_work_queue(eth->device->rt, &eth->restart);
	}
	eth_send_free(s);
}

void eth_post(struct eth_send *s)
{
	struct eth *eth = s->eth;
	struct ib_sge sge = {
		.addr = ib_dma_map_single(eth->device, s->frame, s->bytes, DMA_TO_DEVICE),
		.length = (u32)s->bytes,
		.lkey = eth->pd->local_dma_lkey,
	};
	struct ib_send_wr wr = {.wr_cqe = &s->cqe,
				.sg_list = &sge,
				.num_sge = 1,
				.opcode = IB_WR_SEND,
				.send_flags = IB_SEND_SIGNALED};

	s->cqe.done = sent;
	if (ib_post_send(eth->qp, &wr, NULL)) {
		eth->stats.tx_errors++;
		eth_send_free(s);
	}
}

/* --- receives --- */

static int post_receive(struct eth *eth, struct eth_receive *r)
{
	struct ib_sge sge = {
		.addr = ib_dma_map_single(eth->device, r->frame, ETH_FRAME_MAX, DMA_FROM_DEVICE),
		.length = ETH_FRAME_MAX,
		.lkey = eth->pd->local_dma_lkey,
	};
	struct ib_recv_wr wr = {.wr_cqe = &r->cqe, .sg_list = &sge, .num_sge = 1};

	return ib_post_recv(eth->qp, &wr, NULL);
}

static void received(struct ib_cq *cq, struct ib_wc *wc)
{
	struct eth_receive *r = container_of(wc->wr_cqe, struct eth_receive, cqe);
	struct eth *eth = r->eth;

	if (wc->status == IB_WC_WR_FLUSH_ERR)
		return;
	if (wc->status == IB_WC_SUCCESS)
		eth_received(eth, r->frame, wc->byte_len);
	else
		eth->stats.rx_errors++;
	if (!eth->closing && post_receive(eth, r))
		rt_work_queue(eth->device->rt, &eth->restart);
}

static int post_receives(struct eth *eth)
{
	int ret = 0;

	for (unsigned int i = 0; i < ETH_RECEIVES && !ret; i++)
		ret = post_receive(eth, &eth->receive[i]);
	return ret;
}

/* The memory of a frame is touched when the first one comes there. */
static int alloc_receives(struct eth *eth)
{
	eth->receive_frames = rt_alloc((size_t)ETH_RECEIVES * ETH_FRAME_MAX);
	if (!eth->receive_frames)
		return -ENOMEM;
	for (unsigned int i = 0; i < ETH_RECEIVES; i++)
		eth->receive[i] = (struct eth_receive){.cqe = {.done = received},
						       .eth = eth,
						       .frame = eth->receive_frames + (size_t)i * ETH_FRAME_MAX};
	return 0;
}

/* --- the completion queue --- */

static void drain_cq(struct eth *eth, unsigned int budget)
{
	struct ib_wc wc[16];
	int n;

	do {
		while ((n = ib_poll_cq(eth->cq, ARRAY_SIZE(wc), wc)) > 0) {
			for (int i = 0; i < n; i++)
				wc[i].wr_cqe->done(eth->cq, &wc[i]);
			budget -= MIN(budget, (unsigned int)n);
			if (!budget) {
				rt_work_queue(eth->device->rt, &eth->drain);
				return;
			}
		}
	} while (ib_req_notify_cq(eth->cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS) > 0);
}

static void comp_handler(struct ib_cq *cq, void *cq_context)
{
	drain_cq(cq_context, CQ_BUDGET);
}

void eth_queue_poll(struct eth *eth)
{
	drain_cq(eth, CQ_BUDGET);
}

static void drain_work(struct rt_work *work)
{
	drain_cq(container_of(work, struct eth, drain), CQ_BUDGET);
}

/* --- rules --- */

static struct ib_flow *add_rule(struct eth *eth, const u8 mac[ETH_MAC_BYTES],
				const u8 mask[ETH_MAC_BYTES])
{
	struct ib_flow_attr attr = {.type = IB_FLOW_ATTR_NORMAL,
				    .priority = eth->vlan_id ? LAST_VLAN : LAST,
				    .port = (u8)eth->port_num};

	memcpy(attr.value + offsetof(struct wire_frame_key, dst_mac), mac, ETH_MAC_BYTES);
	memcpy(attr.mask + offsetof(struct wire_frame_key, dst_mac), mask, ETH_MAC_BYTES);
	if (eth->vlan_id) {
		put_be16(attr.value + offsetof(struct wire_frame_key, vlan_tag), eth->vlan_id);
		put_be16(attr.mask + offsetof(struct wire_frame_key, vlan_tag), VLAN_BITS);
	}
	return ib_create_flow(eth->qp, &attr);
}

static int add_rules(struct eth *eth)
{
	static const u8 group_bit[ETH_MAC_BYTES] = {1},
			all[ETH_MAC_BYTES] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

	for (int i = 0; i < ETH_RULES; i++) {
		struct ib_flow *flow = i == ETH_RULE_OWN ? add_rule(eth, eth->mac, all) :
							   add_rule(eth, group_bit, group_bit);

		if (IS_ERR(flow))
			return (int)PTR_ERR(flow);
		eth->flow[i] = flow;
	}
	return 0;
}

/* --- the queue pair --- */

static int start_qp(struct eth *eth)
{
	struct ib_qp_attr attr = {.qp_state = IB_QPS_INIT, .port_num = (u8)eth->port_num};
	int ret = ib_modify_qp(eth->qp, &attr, IB_QP_STATE | IB_QP_PORT);

	attr.qp_state = IB_QPS_RTR;
	if (!ret)
		ret = ib_modify_qp(eth->qp, &attr, IB_QP_STATE);
	attr.qp_state = IB_QPS_RTS;
	if (!ret)
		ret = ib_modify_qp(eth->qp, &attr, IB_QP_STATE);
	return ret ? ret : post_receives(eth);
}

/* An asynchronous error left the queue pair in the state Error (IBA v1 11.6.3.2). */
static void qp_event(struct ib_event *event, void *qp_context)
{
	struct eth *eth = qp_context;

	if (event->event == IB_EVENT_QP_FATAL || event->event == IB_EVENT_QP_REQ_ERR ||
	    event->event == IB_EVENT_QP_ACCESS_ERR)
		rt_work_queue(eth->device->rt, &eth->restart);
}

static int open_qp(struct eth *eth)
{
	struct ib_qp_init_attr init = {
		.event_handler = qp_event,
		.qp_context = eth,
		.send_cq = eth->cq,
		.recv_cq = eth->cq,
		.cap = {.max_send_wr = ETH_SENDS,
			.max_recv_wr = ETH_RECEIVES,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.sq_sig_type = IB_SIGNAL_ALL_WR,
		.qp_type = IB_QPT_RAW_PACKET,
	};
	struct ib_qp *qp = ib_create_qp(eth->pd, &init);

	if (IS_ERR(qp))
		return (int)PTR_ERR(qp);
	eth->qp = qp;
	return start_qp(eth);
}

void eth_queue_init(struct eth *eth)
{
	INIT_LIST_HEAD(&eth->spare_sends);
	rt_work_init(&eth->drain, drain_work);
}

int eth_queue_open(struct eth *eth)
{
	struct ib_cq_init_attr attr = {.cqe = ETH_SENDS + ETH_RECEIVES};
	struct ib_pd *pd = ib_alloc_pd(eth->device, 0);
	struct ib_cq *cq;
	int ret = alloc_receives(eth);

	if (IS_ERR(pd))
		return (int)PTR_ERR(pd);
	eth->pd = pd;
	if (ret)
		return ret;
	cq = ib_create_cq(eth->device, comp_handler, NULL, eth, &attr);
	if (IS_ERR(cq))
		return (int)PTR_ERR(cq);
	eth->cq = cq;
	ret = ib_req_notify_cq(cq, IB_CQ_NEXT_COMP);
	if (ret >= 0)
		ret = open_qp(eth);
	return ret ? ret : add_rules(eth);
}

void eth_queue_restart(struct eth *eth)
{
	struct ib_qp_attr attr = {.qp_state = IB_QPS_ERR};

	eth->stats.restarts++;
	trace_eth_queue(ETH_TRACE_AT(eth), "restart");
	if (ib_modify_qp(eth->qp, &attr, IB_QP_STATE))
		return;
	drain_cq(eth, UINT32_MAX);
	attr.qp_state = IB_QPS_RESET;
	if (!ib_modify_qp(eth->qp, &attr, IB_QP_STATE))
		start_qp(eth);
}

void eth_queue_close(struct eth *eth)
{
	struct ib_qp_attr attr = {.qp_state = IB_QPS_ERR};
	struct eth_send *s, *next;

	for (int i = 0; i < ETH_RULES; i++)
		if (eth->flow[i])
			ib_destroy_flow(eth->flow[i]);
	if (eth->qp && !ib_modify_qp(eth->qp, &attr, IB_QP_STATE))
		drain_cq(eth, UINT32_MAX); /* what was posted comes back, flushed */
	if (eth->qp)
		ib_destroy_qp(eth->qp);
	rt_work_cancel(&eth->drain);
	list_for_each_entry_safe(s, next, &eth->spare_sends, node)
		rt_free(s);
	if (eth->cq)
		ib_destroy_cq(eth->cq);
	if (eth->pd)
		ib_dealloc_pd(eth->pd);
	rt_free(eth->receive_frames);
}
