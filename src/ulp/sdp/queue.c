/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The queue pair of a connection. */
#include "ulp/sdp/private.h"
#include "ulp/sdp/trace.h"

#define POLLS_PER_TURN 64
#define WRITES_MAX     SDP_SENDS /* RDMA WRITEs: a message follows each */

/* --- completions --- */

static bool failed(struct sdp_conn *c, const struct ib_wc *wc)
{
	if (wc->status == IB_WC_SUCCESS)
		return false;
	c->qp_failed = true;
	return true;
}

/* The peer asks for larger receive buffers: it gets those for which there may be memory. */
static void pay_for_slots(struct sdp_conn *c)
{
	if (!c->large_slots)
		c->large_slots = sdp_conn_take(c, SDP_SLOTS * (size_t)(SDP_SLOT_MAX - SDP_SLOT_BYTES));
	if (!c->large_slots)
		c->sdp.config.rcv_max = SDP_SLOT_BYTES;
}

static void received(struct ib_cq *cq, struct ib_wc *wc)
{
	struct sdp_buffer *b = container_of(wc->wr_cqe, struct sdp_buffer, cqe);
	struct sdp_conn *c = b->conn;
	struct sdp_input input;
	int error;

	if (failed(c, wc))
		return;
	c->fabric->stats.rx_messages++;
	sdp_options_heard(c);
	if (b->bytes[0] == WIRE_SDP_CH_RCV_BUF)
		pay_for_slots(c);
	error = sdp_received(&c->sdp, b->index, b->bytes, wc->byte_len, &input);
	trace_sdp_receive(sdp_trace_at(c), sdp_trace_qpn(c), sdp_trace_message(b->bytes[0]),
			  wc->byte_len, error);
	if (error)
		return;
	sdp_memory_input(c, &input);
	if (!input.holds_slot)
		sdp_queue_free(c, b->index);
}

static void sent(struct ib_cq *cq, struct ib_wc *wc)
{
	struct sdp_buffer *b = container_of(wc->wr_cqe, struct sdp_buffer, cqe);
	struct sdp_conn *c = b->conn;

	c->free_send[c->num_free_sends++] = b->index;
	if (!failed(c, wc))
		sdp_sent(&c->sdp);
}

static void was_read(struct ib_cq *cq, struct ib_wc *wc)
{
	struct sdp_conn *c = container_of(wc->wr_cqe, struct sdp_conn, read_cqe);

	c->reading = false;
	if (failed(c, wc))
		c->read_bytes = 0;
	else
		sdp_rx_read(&c->sdp);
}

bool sdp_queue_poll(struct sdp_conn *c)
{
	struct ib_wc wc[16];

	for (int done = 0; c->cq && done < POLLS_PER_TURN;) {
		int n = ib_poll_cq(c->cq, ARRAY_SIZE(wc), wc);

		for (int i = 0; i < n; i++)
			wc[i].wr_cqe->done(c->cq, &wc[i]);
		if (n <= 0)
			return ib_req_notify_cq(c->cq, IB_CQ_NEXT_COMP |
							       IB_CQ_REPORT_MISSED_EVENTS) > 0;
		done += n;
	}
	return c->cq != NULL;
}

static void comp_handler(struct ib_cq *cq, void *cq_context)
{
	sdp_conn_wake(cq_context);
}

/* --- work requests --- */

struct ib_sge sdp_sge(struct sdp_conn *c, void *bytes, u32 length,
		      enum dma_data_direction direction)
{
	return (struct ib_sge){
		.addr = ib_dma_map_single(c->id->device, bytes, length, direction),
		.length = length,
		.lkey = c->pd->local_dma_lkey,
	};
}

/* The slot is free. Return: has it room for what the peer may send next? */
static bool fit_slot(struct sdp_buffer *b, u32 room)
{
	if (b->room == room)
		return true;
	rt_free(b->bytes);
	b->bytes = rt_zalloc(room);
	b->room = b->bytes ? room : 0;
	return b->bytes;
}

static int post_slot(struct sdp_conn *c, u16 slot)
{
	struct sdp_buffer *b = &c->slot[slot];
	struct ib_recv_wr wr = {.wr_cqe = &b->cqe, .num_sge = 1};
	struct ib_sge sge;

	if (!fit_slot(b, c->sdp.slot_bytes))
		return -ENOMEM;
	sge = sdp_sge(c, b->bytes, b->room, DMA_FROM_DEVICE);
	wr.sg_list = &sge;
	return ib_post_recv(c->qp, &wr, NULL);
}

void sdp_queue_free(struct sdp_conn *c, u16 slot)
{
	if (c->sdp.state != SDP_OPEN)
		return;
	if (post_slot(c, slot))
		c->qp_failed = true;
	else
		sdp_posted(&c->sdp);
}

void sdp_queue_send(struct sdp_conn *c, struct sdp_buffer *b, struct wire_sdp_msg *msg)
{
	u8 *head = b->bytes + SDP_PAYLOAD_AT - wire_sdp_header_bytes(msg->bsdh.mid);
	struct ib_sge sge = sdp_sge(c, head, msg->bsdh.len, DMA_TO_DEVICE);
	struct ib_send_wr wr = {.wr_cqe = &b->cqe,
				.sg_list = &sge,
				.num_sge = 1,
				.opcode = IB_WR_SEND,
				.send_flags = IB_SEND_SIGNALED};

	c->fabric->stats.tx_messages++;
	trace_sdp_send(sdp_trace_at(c), sdp_trace_qpn(c), sdp_trace_message(msg->bsdh.mid),
		       msg->payload_bytes, c->sdp.tx_limit - c->sdp.tx_seq);
	wire_sdp_write(msg, head);
	if (ib_post_send(c->qp, &wr, NULL)) {
		c->free_send[c->num_free_sends++] = b->index;
		c->qp_failed = true;
	}
}

void sdp_queue_read(struct sdp_conn *c, const struct sdp_item *item, u32 bytes)
{
	struct ib_sge sge = sdp_sge(c, c->read_memory, bytes, DMA_FROM_DEVICE);
	struct ib_rdma_wr wr = {.wr = {.wr_cqe = &c->read_cqe,
				       .sg_list = &sge,
				       .num_sge = 1,
				       .opcode = IB_WR_RDMA_READ,
				       .send_flags = IB_SEND_SIGNALED},
				.remote_addr = item->address,
				.rkey = item->rkey};

	c->reading = true;
	c->read_bytes = bytes;
	c->read_at = 0;
	sdp_rx_reading(&c->sdp, bytes);
	if (ib_post_send(c->qp, &wr.wr, NULL)) {
		c->reading = false;
		c->read_bytes = 0;
		c->qp_failed = true;
	}
}

/* --- opening and closing --- */

/* those from @first on, up to @end: their memory is at @at */
static void add_sends(struct sdp_conn *c, u16 first, u16 end, u8 *at)
{
	for (u16 i = first; i < end; i++, at += SDP_SEND_BYTES) {
		c->send[i] = (struct sdp_buffer){.cqe = {sent}, .conn = c, .index = i, .bytes = at};
		c->free_send[c->num_free_sends++] = i;
	}
}

static void init_buffers(struct sdp_conn *c)
{
	for (u16 i = 0; i < SDP_SLOTS; i++)
		c->slot[i] = (struct sdp_buffer){.cqe = {received}, .conn = c, .index = i};
	add_sends(c, 0, SDP_SENDS_FIRST, c->memory);
	c->read_cqe.done = was_read;
}

void sdp_queue_more_sends(struct sdp_conn *c)
{
	const size_t bytes = (SDP_SENDS - SDP_SENDS_FIRST) * (size_t)SDP_SEND_BYTES;

	if (c->num_free_sends > 1 || c->more_memory || !sdp_conn_take(c, bytes))
		return;
	c->more_memory = rt_zalloc(bytes);
	if (c->more_memory)
		add_sends(c, SDP_SENDS_FIRST, SDP_SENDS, c->more_memory);
}

static int modify(struct sdp_conn *c, enum ib_qp_state state)
{
	struct ib_qp_attr attr = {.qp_state = state};
	int mask, ret = rdma_init_qp_attr(c->id, &attr, &mask);

	if (!ret && state == IB_QPS_INIT) {
		mask |= IB_QP_ACCESS_FLAGS;
		attr.qp_access_flags |= IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE;
	}
	return ret ? ret : ib_modify_qp(c->qp, &attr, mask);
}

static int open_qp(struct sdp_conn *c)
{
	struct ib_qp_init_attr init = {
		.send_cq = c->cq,
		.recv_cq = c->cq,
		.cap = {.max_send_wr = SDP_SENDS + WRITES_MAX + 2, /* a READ, a probe */
			.max_recv_wr = SDP_SLOTS,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.sq_sig_type = IB_SIGNAL_ALL_WR,
		.qp_type = IB_QPT_RC,
	};
	struct ib_qp *qp = ib_create_qp(c->pd, &init);
	int ret;

	if (IS_ERR(qp))
		return (int)PTR_ERR(qp);
	c->qp = qp;
	ret = modify(c, IB_QPS_INIT);
	for (u16 i = 0; !ret && i < SDP_SLOTS; i++)
		ret = post_slot(c, i);
	return ret;
}

int sdp_queue_open(struct sdp_conn *c)
{
	struct ib_cq_init_attr attr = {.cqe = SDP_SLOTS + SDP_SENDS + WRITES_MAX + 2};
	struct ib_pd *pd;
	struct ib_cq *cq;

	c->memory = rt_zalloc(SDP_SENDS_FIRST * (size_t)SDP_SEND_BYTES);
	if (!c->memory)
		return -ENOMEM;
	init_buffers(c);
	pd = ib_alloc_pd(c->id->device, 0);
	if (IS_ERR(pd))
		return (int)PTR_ERR(pd);
	c->pd = pd;
	cq = ib_create_cq(c->id->device, comp_handler, NULL, c, &attr);
	if (IS_ERR(cq))
		return (int)PTR_ERR(cq);
	c->cq = cq;
	ib_req_notify_cq(cq, IB_CQ_NEXT_COMP);
	return open_qp(c);
}

int sdp_queue_connect(struct sdp_conn *c)
{
	int ret = modify(c, IB_QPS_RTR);

	return ret ? ret : modify(c, IB_QPS_RTS);
}

void sdp_queue_close(struct sdp_conn *c)
{
	if (c->qp)
		ib_destroy_qp(c->qp);
	if (c->cq)
		ib_destroy_cq(c->cq);
	sdp_memory_close(c);
	if (c->pd)
		ib_dealloc_pd(c->pd);
	for (u16 i = 0; i < SDP_SLOTS; i++) {
		rt_free(c->slot[i].bytes);
		c->slot[i].bytes = NULL;
		c->slot[i].room = 0;
	}
	rt_free(c->memory);
	rt_free(c->more_memory);
	rt_free(c->read_memory);
	c->qp = NULL;
	c->cq = NULL;
	c->pd = NULL;
	c->memory = c->more_memory = c->read_memory = NULL;
}
