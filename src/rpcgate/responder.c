/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The responder: calls come by RDMA and leave by TCP, replies the other way. A long call
 * is fetched piece by piece, one READ at a time; a long reply is written into its
 * requester's memory, and the SEND behind the WRITEs says so. */
#include <errno.h>
#include <string.h>

#include "rpcgate/gate.h"

/* to the server, when all of it is there */
static void pass_on(struct relay *relay, struct slot *slot, const uint8_t *call,
		    size_t bytes)
{
	int error;

	if (rpc_xid(call) != slot->header.xid || rpc_kind(call) != RPC_CALL) {
		relay_end(relay, "the requester sent what is no call", 0);
		return;
	}
	slot->state = SLOT_CALLED;
	error = stream_send(&relay->tcp, call, bytes);
	if (error)
		relay_end(relay, "writing to TCP", -error);
}

static void refuse(struct relay *relay, struct slot *slot, int why)
{
	struct rpcrdma_header h;

	rpcrdma_refuse(&h, &slot->header, relay->slots, why);
	slot->state = SLOT_SENDING;
	relay_send(relay, slot, &h, NULL, 0);
}

static void fetch_next(struct relay *relay, struct slot *slot)
{
	const struct rpcrdma_plan *plan = &slot->plan;

	while (slot->next < plan->pieces && plan->piece[slot->next].is_sent)
		slot->next++;
	if (slot->next == plan->pieces) {
		pass_on(relay, slot, slot->call.at, plan->bytes);
		return;
	}
	const struct rpcrdma_piece *piece = &plan->piece[slot->next];
	struct ibv_sge sge = {(uintptr_t)slot->call.at + piece->at, piece->bytes,
			      slot->call.mr->lkey};
	struct ibv_send_wr wr = {
		.wr_id = relay_slot_id(relay, slot, IBV_WR_RDMA_READ),
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_READ,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {piece->from.offset, piece->from.handle},
	};

	relay_post(relay, &wr);
}

static void on_fetched(struct relay *relay, struct slot *slot)
{
	slot->next++;
	fetch_next(relay, slot);
}

static void begin_fetching(struct relay *relay, struct slot *slot, const uint8_t *sent)
{
	const struct rpcrdma_plan *plan = &slot->plan;
	int error = relay_memory(relay, &slot->call, relay->gate->opt.longest,
				 IBV_ACCESS_LOCAL_WRITE);

	if (error) {
		relay_end(relay,
			  "no memory can be registered for a call: raise the limit of "
			  "locked memory "
			  "(ulimit -l), or lower --longest",
			  -error);
		return;
	}
	memset(slot->call.at, 0, plan->bytes);
	for (uint32_t i = 0; i < plan->pieces; i++)
		if (plan->piece[i].is_sent)
			memcpy(slot->call.at + plan->piece[i].at,
			       sent + plan->piece[i].from.offset, plan->piece[i].bytes);
	slot->next = 0;
	slot->state = SLOT_FETCHING;
	fetch_next(relay, slot);
}

static void on_recv(struct relay *relay, const struct rpcrdma_header *h, int error,
		    const uint8_t *body, size_t bytes)
{
	struct slot *slot = relay_find(relay, SLOT_FREE, 0);

	if (h->proc == RPCRDMA_DONE) /* of an old requester: RFC 8166, 4.2.4 */
		return;
	if (h->proc == RPCRDMA_ERROR) {
		relay_end(relay, "the requester sent an error", 0);
		return;
	}
	if (!slot) {
		relay_end(relay, "the requester sent more calls than it has credits", 0);
		return;
	}
	slot->header = *h;
	slot->xid = h->xid;
	if (!error)
		error = rpcrdma_plan(h, bytes, relay->gate->opt.longest, &slot->plan);
	if (error)
		refuse(relay, slot, error);
	else if (!h->reads)
		pass_on(relay, slot, body, bytes);
	else
		begin_fetching(relay, slot, body);
}

/* --- replies --- */

static uint8_t *to_fill(struct relay *relay)
{
	return relay->incoming;
}

/* the reply goes into the segments of @h's Reply chunk */
static bool write_reply(struct relay *relay, struct slot *slot,
			const struct rpcrdma_header *h)
{
	struct ibv_send_wr wr[RPCRDMA_SEGMENTS] = {0};
	struct ibv_sge sge[RPCRDMA_SEGMENTS];
	uint64_t at = (uintptr_t)slot->reply.at;
	uint32_t n = 0;

	for (uint32_t i = 0; i < h->reply.segments && h->reply.segment[i].bytes;
	     i++, n++) {
		const struct rpcrdma_segment *s = &h->reply.segment[i];

		sge[i] = (struct ibv_sge){at, s->bytes, slot->reply.mr->lkey};
		wr[i].wr_id = relay_slot_id(relay, slot, IBV_WR_RDMA_WRITE);
		wr[i].sg_list = &sge[i];
		wr[i].num_sge = 1;
		wr[i].opcode = IBV_WR_RDMA_WRITE;
		wr[i].wr.rdma.remote_addr = s->offset;
		wr[i].wr.rdma.rkey = s->handle;
		if (i)
			wr[i - 1].next = &wr[i];
		at += s->bytes;
	}
	return relay_post(relay, wr);
}

static void on_message(struct relay *relay, uint8_t *message, size_t bytes)
{
	struct slot *slot = relay_find(relay, SLOT_CALLED, rpc_xid(message));
	struct rpcrdma_header h;
	int error;

	if (!slot || rpc_kind(message) != RPC_REPLY) {
		relay_end(relay,
			  slot ? "the server sent what is no reply"
			       : "the server answered what was not asked",
			  0);
		return;
	}
	slot->state = SLOT_SENDING;
	rpcrdma_reply(&h, &slot->header, relay->slots, bytes, relay->threshold);
	if (h.proc != RPCRDMA_NOMSG) {
		relay_send(relay, slot, &h, message, h.proc == RPCRDMA_MSG ? bytes : 0);
		return;
	}
	error = relay_memory(relay, &slot->reply, relay->gate->opt.longest, 0);
	if (error) {
		relay_end(relay,
			  "no memory can be registered for a reply: raise the limit of "
			  "locked memory "
			  "(ulimit -l), or lower --longest",
			  -error);
		return;
	}
	memcpy(slot->reply.at, message, bytes);
	if (write_reply(relay, slot, &h))
		relay_send(relay, slot, &h, NULL, 0);
}

const struct relay_ops responder_ops = {
	.to_fill = to_fill,
	.on_message = on_message,
	.on_recv = on_recv,
	.on_fetched = on_fetched,
};
