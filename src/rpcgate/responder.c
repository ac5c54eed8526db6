/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The responder: calls come by RDMA and leave by TCP, replies the other way. A long call is
 * fetched piece by piece, one READ at a time; a long reply is written into its requester's memory,
 * and the SEND behind the WRITEs says so. */
#include <errno.h>
#include <string.h>

#include "rpcgate/gate.h"

/* to the server, when all of it is there */
static void pass_on(struct link *link, struct slot *slot, const uint8_t *call, size_t bytes)
{
	int error;

	if (rpc_xid(call) != slot->header.xid || rpc_kind(call) != RPC_CALL) {
		link_end(link, "the requester sent what is no call", 0);
		return;
	}
	slot->state = SLOT_CALLED;
	error = stream_send(&link->tcp, call, bytes);
	if (error)
		link_end(link, "writing to TCP", -error);
}

static void refuse(struct link *link, struct slot *slot, int why)
{
	struct rpcrdma_header h;

	rpcrdma_refuse(&h, &slot->header, link->slots, why);
	slot->state = SLOT_SENDING;
	link_send(link, slot, &h, NULL, 0);
}

static void fetch_next(struct link *link, struct slot *slot)
{
	const struct rpcrdma_plan *plan = &slot->plan;

	while (slot->next < plan->pieces && plan->piece[slot->next].is_sent)
		slot->next++;
	if (slot->next == plan->pieces) {
		pass_on(link, slot, slot->call.at, plan->bytes);
		return;
	}
	const struct rpcrdma_piece *piece = &plan->piece[slot->next];
	struct ibv_sge sge = {(uintptr_t)slot->call.at + piece->at, piece->bytes, slot->call.mr->lkey};
	struct ibv_send_wr wr = {
		.wr_id = link_slot_id(link, slot, IBV_WR_RDMA_READ),
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_READ,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {piece->from.offset, piece->from.handle},
	};

	link_post(link, &wr);
}

static void on_fetched(struct link *link, struct slot *slot)
{
	slot->next++;
	fetch_next(link, slot);
}

static void begin_fetching(struct link *link, struct slot *slot, const uint8_t *sent)
{
	const struct rpcrdma_plan *plan = &slot->plan;
	int error = link_memory(link, &slot->call, link->gate->opt.longest, IBV_ACCESS_LOCAL_WRITE);

	if (error) {
		link_end(link,
			 "no memory can be registered for a call: raise the limit of locked memory "
			 "(ulimit -l), or lower --longest",
			 -error);
		return;
	}
	memset(slot->call.at, 0, plan->bytes);
	for (uint32_t i = 0; i < plan->pieces; i++)
		if (plan->piece[i].is_sent)
			memcpy(slot->call.at + plan->piece[i].at, sent + plan->piece[i].from.offset,
			       plan->piece[i].bytes);
	slot->next = 0;
	slot->state = SLOT_FETCHING;
	fetch_next(link, slot);
}

static void on_recv(struct link *link, const struct rpcrdma_header *h, int error, const uint8_t *body, size_t bytes)
{
	struct slot *slot = link_find(link, SLOT_FREE, 0);

	if (h->proc == RPCRDMA_DONE) /* of an old requester: RFC 8166, 4.2.4 */
		return;
	if (h->proc == RPCRDMA_ERROR) {
		link_end(link, "the requester sent an error", 0);
		return;
	}
	if (!slot) {
		link_end(link, "the requester sent more calls than it has credits", 0);
		return;
	}
	slot->header = *h;
	slot->xid = h->xid;
	if (!error)
		error = rpcrdma_plan(h, bytes, link->gate->opt.longest, &slot->plan);
	if (error)
		refuse(link, slot, error);
	else if (!h->reads)
		pass_on(link, slot, body, bytes);
	else
		begin_fetching(link, slot, body);
}

/* --- replies ------------------------------------------------------------------------- */

static uint8_t *to_fill(struct link *link)
{
	return link->incoming;
}

/* the reply goes into the segments of @h's Reply chunk */
static bool write_reply(struct link *link, struct slot *slot, const struct rpcrdma_header *h)
{
	struct ibv_send_wr wr[RPCRDMA_SEGMENTS] = {0};
	struct ibv_sge sge[RPCRDMA_SEGMENTS];
	uint64_t at = (uintptr_t)slot->reply.at;
	uint32_t n = 0;

	for (uint32_t i = 0; i < h->reply.segments && h->reply.segment[i].bytes; i++, n++) {
		const struct rpcrdma_segment *s = &h->reply.segment[i];

		sge[i] = (struct ibv_sge){at, s->bytes, slot->reply.mr->lkey};
		wr[i].wr_id = link_slot_id(link, slot, IBV_WR_RDMA_WRITE);
		wr[i].sg_list = &sge[i];
		wr[i].num_sge = 1;
		wr[i].opcode = IBV_WR_RDMA_WRITE;
		wr[i].wr.rdma.remote_addr = s->offset;
		wr[i].wr.rdma.rkey = s->handle;
		if (i)
			wr[i - 1].next = &wr[i];
		at += s->bytes;
	}
	return link_post(link, wr);
}

static void on_message(struct link *link, uint8_t *message, size_t bytes)
{
	struct slot *slot = link_find(link, SLOT_CALLED, rpc_xid(message));
	struct rpcrdma_header h;
	int error;

	if (!slot || rpc_kind(message) != RPC_REPLY) {
		link_end(link, slot ? "the server sent what is no reply" : "the server answered what was not asked", 0);
		return;
	}
	slot->state = SLOT_SENDING;
	rpcrdma_reply(&h, &slot->header, link->slots, bytes, link->threshold);
	if (h.proc != RPCRDMA_NOMSG) {
		link_send(link, slot, &h, message, h.proc == RPCRDMA_MSG ? bytes : 0);
		return;
	}
	error = link_memory(link, &slot->reply, link->gate->opt.longest, 0);
	if (error) {
		link_end(link,
			 "no memory can be registered for a reply: raise the limit of locked memory "
			 "(ulimit -l), or lower --longest",
			 -error);
		return;
	}
	memcpy(slot->reply.at, message, bytes);
	if (write_reply(link, slot, &h))
		link_send(link, slot, &h, NULL, 0);
}

const struct link_ops responder_ops = {
	.to_fill = to_fill,
	.on_message = on_message,
	.on_recv = on_recv,
	.on_fetched = on_fetched,
};
