/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A link: its queue pair and memory, and the way of messages from one connection to the other. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rpcgate/gate.h"

/* A slot's requests under way at most: a READ, or a WRITE for each segment of a Reply chunk and a SEND. */
#define REQUESTS_OF_SLOT (RPCRDMA_SEGMENTS + 1)

enum wr_kind { WR_RECV, WR_SEND, WR_READ, WR_WRITE };

static uint64_t wr_id(enum wr_kind kind, uint64_t index)
{
	return index << 2 | kind;
}

uint64_t link_slot_id(const struct link *link, const struct slot *slot, enum ibv_wr_opcode opcode)
{
	uint64_t index = (uint64_t)(slot - link->slot);

	switch (opcode) {
	case IBV_WR_RDMA_READ:
		return wr_id(WR_READ, index);
	case IBV_WR_RDMA_WRITE:
		return wr_id(WR_WRITE, index);
	default:
		return wr_id(WR_SEND, index);
	}
}

static const struct link_ops *ops(const struct link *link)
{
	return link->gate->opt.serves ? &responder_ops : &requester_ops;
}

/* --- memory -------------------------------------------------------------------------- */

int link_memory(struct link *link, struct memory *memory, size_t bytes, int access)
{
	void *at;

	if (memory->at)
		return memory->bytes < bytes ? -ENOBUFS : 0;
	at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		return -errno;
	memory->mr = ibv_reg_mr(link->pd, at, bytes, access | (link->on_demand ? IBV_ACCESS_ON_DEMAND : 0));
	if (!memory->mr) {
		int error = -errno;

		munmap(at, bytes);
		return error;
	}
	memory->at = at;
	memory->bytes = bytes;
	return 0;
}

static void free_memory(struct memory *memory)
{
	if (!memory->at)
		return;
	ibv_dereg_mr(memory->mr);
	munmap(memory->at, memory->bytes);
	memory->at = NULL;
}

/* --- posting ------------------------------------------------------------------------- */

bool link_post(struct link *link, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	int error = ibv_post_send(link->id->qp, wr, &bad);

	if (error)
		link_end(link, "posting a request", error);
	return !error;
}

bool link_send(struct link *link, struct slot *slot, const struct rpcrdma_header *h, const uint8_t *message,
	       size_t bytes)
{
	uint32_t room = link->gate->opt.inline_bytes;
	uint8_t *to = link->sends.at + (size_t)(slot - link->slot) * room;
	size_t header_bytes = rpcrdma_encode(h, to, room);
	struct ibv_sge sge = {(uintptr_t)to, (uint32_t)(header_bytes + bytes), link->sends.mr->lkey};
	struct ibv_send_wr wr = {
		.wr_id = link_slot_id(link, slot, IBV_WR_SEND),
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	};

	if (bytes)
		memcpy(to + header_bytes, message, bytes);
	slot->is_sending = true;
	return link_post(link, &wr);
}

static bool post_recv(struct link *link, uint64_t index)
{
	uint32_t bytes = link->gate->opt.inline_bytes;
	struct ibv_sge sge = {(uintptr_t)link->recvs.at + index * bytes, bytes, link->recvs.mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = wr_id(WR_RECV, index), .sg_list = &sge, .num_sge = 1}, *bad;
	int error = ibv_post_recv(link->id->qp, &wr, &bad);

	if (error)
		link_end(link, "posting a receive", error);
	return !error;
}

/* --- completions ----------------------------------------------------------------------- */

static void on_sent(struct link *link, struct slot *slot)
{
	slot->is_sending = false;
	if (slot->state == SLOT_SENDING)
		slot->state = SLOT_FREE;
	link_feed(link);
}

static void on_received(struct link *link, uint64_t index, uint32_t bytes)
{
	const uint8_t *at = link->recvs.at + index * link->gate->opt.inline_bytes;
	struct rpcrdma_header h;
	int used = rpcrdma_decode(&h, at, bytes);

	if (used == -EPROTO) {
		link_end(link, "the peer sent what is no RPC-over-RDMA message", 0);
		return;
	}
	ops(link)->on_recv(link, &h, MIN(used, 0), at + MAX(used, 0), bytes - (uint32_t)MAX(used, 0));
	if (!link->has_ended)
		post_recv(link, index);
}

static void complete(struct link *link, const struct ibv_wc *wc)
{
	uint64_t index = wc->wr_id >> 2;

	if (wc->status != IBV_WC_SUCCESS) {
		/* the first one says why; the disconnection of a link may come behind those that it flushes */
		link_end(link, wc->status == IBV_WC_WR_FLUSH_ERR ? NULL : ibv_wc_status_str(wc->status), 0);
		return;
	}
	switch ((enum wr_kind)(wc->wr_id & 3)) {
	case WR_RECV:
		on_received(link, index, wc->byte_len);
		break;
	case WR_SEND:
		on_sent(link, &link->slot[index]);
		break;
	case WR_READ:
		ops(link)->on_fetched(link, &link->slot[index]);
		break;
	case WR_WRITE:
		break;
	}
}

static void on_completions(struct ev_loop *loop, struct ev_io *io, int events)
{
	struct link *link = io->data;
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *context;

	if (ibv_get_cq_event(link->completions, &cq, &context))
		return;
	ibv_ack_cq_events(cq, 1);
	ibv_req_notify_cq(cq, 0);
	while (!link->has_ended && ibv_poll_cq(cq, 1, &wc) > 0)
		complete(link, &wc);
}

/* --- the beginning ---------------------------------------------------------------------- */

struct link *link_new(struct gate *gate)
{
	struct link *link = calloc(1, sizeof(*link) + gate->opt.credits * sizeof(link->slot[0]));

	if (!link)
		return NULL;
	if (gate->opt.serves && !(link->incoming = malloc(gate->opt.longest))) {
		free(link);
		return NULL;
	}
	link->gate = gate;
	link->tcp.fd = -1;
	INIT_LIST_HEAD(&link->tcp.queue);
	link->slots = gate->opt.credits;
	link->limit = gate->opt.serves ? link->slots : 1; /* RFC 8166, 3.3.2 */
	link->threshold = RPCRDMA_THRESHOLD;
	list_add_tail(&link->node, &gate->links);
	return link;
}

static bool has_on_demand_paging(struct ibv_context *device)
{
	const uint32_t needed = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE |
				IBV_ODP_SUPPORT_READ;
	struct ibv_device_attr_ex attr;

	return !ibv_query_device_ex(device, NULL, &attr) && (attr.odp_caps.general_caps & IBV_ODP_SUPPORT) &&
	       (attr.odp_caps.per_transport_caps.rc_odp_caps & needed) == needed;
}

static int make_queues(struct link *link)
{
	struct ibv_context *device = link->id->verbs;
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = link->slots * REQUESTS_OF_SLOT, .max_recv_wr = link->slots,
			.max_send_sge = 1, .max_recv_sge = 1},
	};

	link->on_demand = has_on_demand_paging(device);
	link->pd = ibv_alloc_pd(device);
	link->completions = ibv_create_comp_channel(device);
	if (!link->pd || !link->completions)
		return -errno;
	link->cq = ibv_create_cq(device, (int)(attr.cap.max_send_wr + attr.cap.max_recv_wr), NULL,
				 link->completions, 0);
	attr.send_cq = attr.recv_cq = link->cq;
	if (!link->cq || ibv_req_notify_cq(link->cq, 0) || rdma_create_qp(link->id, link->pd, &attr) ||
	    fcntl(link->completions->fd, F_SETFL, O_NONBLOCK))
		return -errno;
	return 0;
}

int link_make_qp(struct link *link)
{
	size_t bytes = (size_t)link->slots * link->gate->opt.inline_bytes;
	int error = make_queues(link);

	if (!error)
		error = link_memory(link, &link->recvs, bytes, IBV_ACCESS_LOCAL_WRITE);
	if (!error)
		error = link_memory(link, &link->sends, bytes, 0);
	if (error)
		return error;
	for (uint32_t i = 0; i < link->slots; i++)
		if (!post_recv(link, i))
			return -EIO;
	ev_io_init(&link->on_completions, on_completions, link->completions->fd, EV_READ);
	link->on_completions.data = link;
	ev_io_start(link->gate->loop, &link->on_completions);
	return 0;
}

void link_agree(struct link *link, const struct rdma_conn_param *param)
{
	struct rpcrdma_private peer = rpcrdma_private_decode(param->private_data, param->private_data_len);

	link->threshold = MIN(link->gate->opt.inline_bytes, peer.recv_bytes);
}

void link_go(struct link *link)
{
	link->is_up = true;
	link_say(link, "connected");
	link_feed(link);
}

/* --- from TCP ------------------------------------------------------------------------------ */

struct slot *link_find(struct link *link, enum slot_state state, uint32_t xid)
{
	for (uint32_t i = 0; i < link->slots; i++)
		if (link->slot[i].state == state && (state == SLOT_FREE || link->slot[i].xid == xid))
			return &link->slot[i];
	return NULL;
}

/* a part of a record, from the buffer. Return: false: no part can be taken now */
static bool take_some(struct link *link)
{
	struct stream *s = &link->tcp;
	size_t used;

	if (!link->record.to)
		link->record = (struct rpc_record){ops(link)->to_fill(link), link->gate->opt.longest};
	if (!link->record.to || !s->bytes)
		return false;
	switch (rpc_record_take(&link->record, s->buffer + s->at, s->bytes, &used)) {
	case RPC_RECORD_TOO_LONG:
		link_end(link, "a message by TCP is longer than --longest allows", 0);
		return false;
	case RPC_RECORD_WHOLE:
		if (link->record.bytes < RPC_SHORTEST) {
			link_end(link, "a message by TCP is too short for RPC", 0);
			return false;
		}
		ops(link)->on_message(link, link->record.to, link->record.bytes);
		link->record.to = NULL;
		break;
	case RPC_RECORD_MORE:
		break;
	}
	s->at += used;
	s->bytes -= used;
	return !link->has_ended;
}

static bool is_idle(const struct link *link)
{
	for (uint32_t i = 0; i < link->slots; i++)
		if (link->slot[i].state > SLOT_FILLING)
			return false;
	return list_empty(&link->tcp.queue);
}

void link_feed(struct link *link)
{
	int error = 0;

	if (link->has_ended || !link->is_up)
		return;
	do {
		while (take_some(link))
			;
		if (link->has_ended)
			return;
		if (link->record.to)
			error = stream_fill(&link->tcp);
	} while (!error && link->record.to && link->tcp.bytes);
	if (error == -ECONNRESET) /* how clients leave that close a socket with something unread */
		link_end(link, NULL, 0);
	else if (error && error != -EAGAIN)
		link_end(link, "reading from TCP", -error);
	else if (link->tcp.at_end && (link->gate->opt.serves || is_idle(link)))
		link_end(link, NULL, 0);
	else
		stream_want(&link->tcp, link->record.to);
}

void link_on_tcp(struct link *link, int events)
{
	int error;

	if (!link->is_up) {
		gate_on_server(link);
		return;
	}
	error = events & EV_WRITE ? stream_flush(&link->tcp) : 0;
	if (error)
		link_end(link, "writing to TCP", -error);
	else
		link_feed(link);
}

/* --- the end --------------------------------------------------------------------------------- */

void link_end(struct link *link, const char *why, int error)
{
	if (link->has_ended)
		return;
	if (why)
		gate_say("a connection ended: %s%s%s", why, error ? ": " : "", error ? strerror(error) : "");
	else
		link_say(link, "disconnected");
	link->has_ended = true;
	if (link->is_up)
		rdma_disconnect(link->id);
	stream_close(&link->tcp);
	if (link->on_completions.data)
		ev_io_stop(link->gate->loop, &link->on_completions);
	list_del(&link->node);
	list_add_tail(&link->node, &link->gate->ended);
}

void link_free(struct link *link)
{
	list_del(&link->node);
	if (link->id && link->id->qp)
		rdma_destroy_qp(link->id);
	for (uint32_t i = 0; i < link->slots; i++) {
		free_memory(&link->slot[i].call);
		free_memory(&link->slot[i].reply);
	}
	free_memory(&link->recvs);
	free_memory(&link->sends);
	if (link->cq)
		ibv_destroy_cq(link->cq);
	if (link->completions)
		ibv_destroy_comp_channel(link->completions);
	if (link->pd)
		ibv_dealloc_pd(link->pd);
	if (link->id)
		rdma_destroy_id(link->id);
	free(link->incoming);
	free(link);
}

void link_say(const struct link *link, const char *what)
{
	if (link->gate->opt.is_verbose)
		gate_say("%s", what);
}
