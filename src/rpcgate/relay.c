/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A relay: its queue pair and memory, and the way of messages from one connection to the
 * other. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rpcgate/gate.h"

/* A slot's requests under way at most: a READ, or a WRITE for each segment of a Reply
 * chunk and a SEND. */
#define REQUESTS_OF_SLOT (RPCRDMA_SEGMENTS + 1)

enum wr_kind { WR_RECV, WR_SEND, WR_READ, WR_WRITE };

static uint64_t wr_id(enum wr_kind kind, uint64_t index)
{
	return index << 2 | kind;
}

uint64_t relay_slot_id(const struct relay *relay, const struct slot *slot,
		       enum ibv_wr_opcode opcode)
{
	uint64_t index = (uint64_t)(slot - relay->slot);

	switch (opcode) {
	case IBV_WR_RDMA_READ:
		return wr_id(WR_READ, index);
	case IBV_WR_RDMA_WRITE:
		return wr_id(WR_WRITE, index);
	default:
		return wr_id(WR_SEND, index);
	}
}

static const struct relay_ops *ops(const struct relay *relay)
{
	return relay->gate->opt.serves ? &responder_ops : &requester_ops;
}

/* --- memory --- */

int relay_memory(struct relay *relay, struct memory *memory, size_t bytes, int access)
{
	void *at;

	if (memory->at)
		return memory->bytes < bytes ? -ENOBUFS : 0;
	at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		  0);
	if (at == MAP_FAILED)
		return -errno;
	memory->mr = ibv_reg_mr(relay->pd, at, bytes,
				access | (relay->on_demand ? IBV_ACCESS_ON_DEMAND : 0));
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

/* --- posting --- */

bool relay_post(struct relay *relay, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	int error = ibv_post_send(relay->id->qp, wr, &bad);

	if (error)
		relay_end(relay, "posting a request", error);
	return !error;
}

bool relay_send(struct relay *relay, struct slot *slot, const struct rpcrdma_header *h,
		const uint8_t *message, size_t bytes)
{
	uint32_t room = relay->gate->opt.inline_bytes;
	uint8_t *to = relay->sends.at + (size_t)(slot - relay->slot) * room;
	size_t header_bytes = rpcrdma_encode(h, to, room);
	struct ibv_sge sge = {(uintptr_t)to, (uint32_t)(header_bytes + bytes),
			      relay->sends.mr->lkey};
	struct ibv_send_wr wr = {
		.wr_id = relay_slot_id(relay, slot, IBV_WR_SEND),
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	};

	if (bytes)
		memcpy(to + header_bytes, message, bytes);
	slot->is_sending = true;
	return relay_post(relay, &wr);
}

static bool post_recv(struct relay *relay, uint64_t index)
{
	uint32_t bytes = relay->gate->opt.inline_bytes;
	struct ibv_sge sge = {(uintptr_t)relay->recvs.at + index * bytes, bytes,
			      relay->recvs.mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = wr_id(WR_RECV, index),
				 .sg_list = &sge,
				 .num_sge = 1},
			   *bad;
	int error = ibv_post_recv(relay->id->qp, &wr, &bad);

	if (error)
		relay_end(relay, "posting a receive", error);
	return !error;
}

/* --- completions --- */

static void on_sent(struct relay *relay, struct slot *slot)
{
	slot->is_sending = false;
	if (slot->state == SLOT_SENDING)
		slot->state = SLOT_FREE;
	relay_feed(relay);
}

static void on_received(struct relay *relay, uint64_t index, uint32_t bytes)
{
	const uint8_t *at = relay->recvs.at + index * relay->gate->opt.inline_bytes;
	struct rpcrdma_header h;
	int used = rpcrdma_decode(&h, at, bytes);

	if (used == -EPROTO) {
		relay_end(relay, "the peer sent what is no RPC-over-RDMA message", 0);
		return;
	}
	ops(relay)->on_recv(relay, &h, MIN(used, 0), at + MAX(used, 0),
			    bytes - (uint32_t)MAX(used, 0));
	if (!relay->has_ended)
		post_recv(relay, index);
}

static void complete(struct relay *relay, const struct ibv_wc *wc)
{
	uint64_t index = wc->wr_id >> 2;

	if (wc->status != IBV_WC_SUCCESS) {
		/* the first one says why; the disconnection of a relay may come behind
		 * those that it flushes */
		relay_end(relay,
			  wc->status == IBV_WC_WR_FLUSH_ERR
				  ? NULL
				  : ibv_wc_status_str(wc->status),
			  0);
		return;
	}
	switch ((enum wr_kind)(wc->wr_id & 3)) {
	case WR_RECV:
		on_received(relay, index, wc->byte_len);
		break;
	case WR_SEND:
		on_sent(relay, &relay->slot[index]);
		break;
	case WR_READ:
		ops(relay)->on_fetched(relay, &relay->slot[index]);
		break;
	case WR_WRITE:
		break;
	}
}

static void on_completions(struct ev_loop *loop, struct ev_io *io, int events)
{
	struct relay *relay = io->data;
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *context;

	if (ibv_get_cq_event(relay->completions, &cq, &context))
		return;
	ibv_ack_cq_events(cq, 1);
	ibv_req_notify_cq(cq, 0);
	while (!relay->has_ended && ibv_poll_cq(cq, 1, &wc) > 0)
		complete(relay, &wc);
}

/* --- the beginning --- */

struct relay *relay_new(struct gate *gate)
{
	struct relay *relay =
		calloc(1, sizeof(*relay) + gate->opt.credits * sizeof(relay->slot[0]));

	if (!relay)
		return NULL;
	if (gate->opt.serves && !(relay->incoming = malloc(gate->opt.longest))) {
		free(relay);
		return NULL;
	}
	relay->gate = gate;
	relay->tcp.fd = -1;
	INIT_LIST_HEAD(&relay->tcp.queue);
	relay->slots = gate->opt.credits;
	relay->limit = gate->opt.serves ? relay->slots : 1; /* RFC 8166, 3.3.2 */
	relay->threshold = RPCRDMA_THRESHOLD;
	list_add_tail(&relay->node, &gate->relays);
	return relay;
}

static bool has_on_demand_paging(struct ibv_context *device)
{
	const uint32_t needed = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV |
				IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ;
	struct ibv_device_attr_ex attr;

	return !ibv_query_device_ex(device, NULL, &attr) &&
	       (attr.odp_caps.general_caps & IBV_ODP_SUPPORT) &&
	       (attr.odp_caps.per_transport_caps.rc_odp_caps & needed) == needed;
}

static int make_queues(struct relay *relay)
{
	struct ibv_context *device = relay->id->verbs;
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = relay->slots * REQUESTS_OF_SLOT,
			.max_recv_wr = relay->slots,
			.max_send_sge = 1,
			.max_recv_sge = 1},
	};

	relay->on_demand = has_on_demand_paging(device);
	relay->pd = ibv_alloc_pd(device);
	relay->completions = ibv_create_comp_channel(device);
	if (!relay->pd || !relay->completions)
		return -errno;
	relay->cq =
		ibv_create_cq(device, (int)(attr.cap.max_send_wr + attr.cap.max_recv_wr),
			      NULL, relay->completions, 0);
	attr.send_cq = attr.recv_cq = relay->cq;
	if (!relay->cq || ibv_req_notify_cq(relay->cq, 0) ||
	    rdma_create_qp(relay->id, relay->pd, &attr) ||
	    fcntl(relay->completions->fd, F_SETFL, O_NONBLOCK))
		return -errno;
	return 0;
}

int relay_make_qp(struct relay *relay)
{
	size_t bytes = (size_t)relay->slots * relay->gate->opt.inline_bytes;
	int error = make_queues(relay);

	if (!error)
		error = relay_memory(relay, &relay->recvs, bytes, IBV_ACCESS_LOCAL_WRITE);
	if (!error)
		error = relay_memory(relay, &relay->sends, bytes, 0);
	if (error)
		return error;
	for (uint32_t i = 0; i < relay->slots; i++)
		if (!post_recv(relay, i))
			return -EIO;
	ev_io_init(&relay->on_completions, on_completions, relay->completions->fd,
		   EV_READ);
	relay->on_completions.data = relay;
	ev_io_start(relay->gate->loop, &relay->on_completions);
	return 0;
}

void relay_agree(struct relay *relay, const struct rdma_conn_param *param)
{
	struct rpcrdma_private peer =
		rpcrdma_private_decode(param->private_data, param->private_data_len);

	relay->threshold = MIN(relay->gate->opt.inline_bytes, peer.recv_bytes);
}

void relay_go(struct relay *relay)
{
	relay->is_up = true;
	relay_say(relay, "connected");
	relay_feed(relay);
}

/* --- from TCP --- */

struct slot *relay_find(struct relay *relay, enum slot_state state, uint32_t xid)
{
	for (uint32_t i = 0; i < relay->slots; i++)
		if (relay->slot[i].state == state &&
		    (state == SLOT_FREE || relay->slot[i].xid == xid))
			return &relay->slot[i];
	return NULL;
}

/* a part of a record, from the buffer. Return: false: no part can be taken now */
static bool take_some(struct relay *relay)
{
	struct stream *s = &relay->tcp;
	size_t used;

	if (!relay->record.to)
		relay->record = (struct rpc_record){ops(relay)->to_fill(relay),
						    relay->gate->opt.longest};
	if (!relay->record.to || !s->bytes)
		return false;
	switch (rpc_record_take(&relay->record, s->buffer + s->at, s->bytes, &used)) {
	case RPC_RECORD_TOO_LONG:
		relay_end(relay, "a message by TCP is longer than --longest allows", 0);
		return false;
	case RPC_RECORD_WHOLE:
		if (relay->record.bytes < RPC_SHORTEST) {
			relay_end(relay, "a message by TCP is too short for RPC", 0);
			return false;
		}
		ops(relay)->on_message(relay, relay->record.to, relay->record.bytes);
		relay->record.to = NULL;
		break;
	case RPC_RECORD_MORE:
		break;
	}
	s->at += used;
	s->bytes -= used;
	return !relay->has_ended;
}

static bool is_idle(const struct relay *relay)
{
	for (uint32_t i = 0; i < relay->slots; i++)
		if (relay->slot[i].state > SLOT_FILLING)
			return false;
	return list_empty(&relay->tcp.queue);
}

void relay_feed(struct relay *relay)
{
	int error = 0;

	if (relay->has_ended || !relay->is_up)
		return;
	do {
		while (take_some(relay))
			;
		if (relay->has_ended)
			return;
		if (relay->record.to)
			error = stream_fill(&relay->tcp);
	} while (!error && relay->record.to && relay->tcp.bytes);
	if (error ==
	    -ECONNRESET) /* how clients leave that close a socket with something unread */
		relay_end(relay, NULL, 0);
	else if (error && error != -EAGAIN)
		relay_end(relay, "reading from TCP", -error);
	else if (relay->tcp.at_end && (relay->gate->opt.serves || is_idle(relay)))
		relay_end(relay, NULL, 0);
	else
		stream_want(&relay->tcp, relay->record.to);
}

void relay_on_tcp(struct relay *relay, int events)
{
	int error;

	if (!relay->is_up) {
		gate_on_server(relay);
		return;
	}
	error = events & EV_WRITE ? stream_flush(&relay->tcp) : 0;
	if (error)
		relay_end(relay, "writing to TCP", -error);
	else
		relay_feed(relay);
}

/* --- the end --- */

void relay_end(struct relay *relay, const char *why, int error)
{
	if (relay->has_ended)
		return;
	if (why)
		gate_say("a connection ended: %s%s%s", why, error ? ": " : "",
			 error ? strerror(error) : "");
	else
		relay_say(relay, "disconnected");
	relay->has_ended = true;
	if (relay->is_up)
		rdma_disconnect(relay->id);
	stream_close(&relay->tcp);
	if (relay->on_completions.data)
		ev_io_stop(relay->gate->loop, &relay->on_completions);
	list_del(&relay->node);
	list_add_tail(&relay->node, &relay->gate->ended);
}

void relay_free(struct relay *relay)
{
	list_del(&relay->node);
	if (relay->id && relay->id->qp)
		rdma_destroy_qp(relay->id);
	for (uint32_t i = 0; i < relay->slots; i++) {
		free_memory(&relay->slot[i].call);
		free_memory(&relay->slot[i].reply);
	}
	free_memory(&relay->recvs);
	free_memory(&relay->sends);
	if (relay->cq)
		ibv_destroy_cq(relay->cq);
	if (relay->completions)
		ibv_destroy_comp_channel(relay->completions);
	if (relay->pd)
		ibv_dealloc_pd(relay->pd);
	if (relay->id)
		rdma_destroy_id(relay->id);
	free(relay->incoming);
	free(relay);
}

void relay_say(const struct relay *relay, const char *what)
{
	if (relay->gate->opt.is_verbose)
		gate_say("%s", what);
}
