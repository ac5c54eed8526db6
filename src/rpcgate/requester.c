/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The requester: calls come by TCP and leave by RDMA, replies the other way. A call arrives in
 * registered memory, so that a long one is lent as it is; so is memory for a long reply. */
#include <errno.h>

#include "rpcgate/gate.h"

static uint32_t under_way(const struct link *link)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < link->slots; i++)
		n += link->slot[i].state > SLOT_FILLING;
	return n;
}

/* The memory of a slot is registered when it is first used; where not all of it can be, fewer slots do. */
static uint8_t *to_fill(struct link *link)
{
	uint32_t longest = link->gate->opt.longest;
	struct slot *slot = link_find(link, SLOT_FREE, 0);
	int error;

	if (!slot || under_way(link) >= link->limit)
		return NULL;
	error = link_memory(link, &slot->call, longest, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	if (!error)
		error = link_memory(link, &slot->reply, longest,
				    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (error && under_way(link))
		return NULL;
	if (error) {
		link_end(link,
			 "no memory can be registered for a call: raise the limit of locked memory "
			 "(ulimit -l), or lower --longest",
			 -error);
		return NULL;
	}
	slot->state = SLOT_FILLING;
	link->filling = slot;
	return slot->call.at;
}

static struct rpcrdma_segment segment_of(const struct memory *memory)
{
	return (struct rpcrdma_segment){memory->mr->rkey, (uint32_t)memory->bytes, (uintptr_t)memory->at};
}

static void on_message(struct link *link, uint8_t *message, size_t bytes)
{
	struct slot *slot = link->filling;
	struct rpcrdma_segment call = segment_of(&slot->call), reply = segment_of(&slot->reply);

	if (rpc_kind(message) != RPC_CALL) {
		link_end(link, "the client sent what is no call", 0);
		return;
	}
	slot->state = SLOT_FREE;
	slot->xid = rpc_xid(message);
	/* The same call once more: the reply to the first one answers both. */
	if (link_find(link, SLOT_CALLED, slot->xid))
		return;
	rpcrdma_call(&slot->header, slot->xid, link->slots, bytes, link->threshold, &call, &reply);
	slot->state = SLOT_CALLED;
	link_send(link, slot, &slot->header, message, slot->header.proc == RPCRDMA_MSG ? bytes : 0);
}

/* to the client */
static void pass_on(struct link *link, struct slot *slot, const uint8_t *message, size_t bytes)
{
	int error;

	if (bytes < RPC_SHORTEST || rpc_xid(message) != slot->xid || rpc_kind(message) != RPC_REPLY) {
		link_end(link, "the responder sent what is no reply to the call", 0);
		return;
	}
	error = stream_send(&link->tcp, message, bytes);
	if (error) {
		link_end(link, "writing to TCP", -error);
		return;
	}
	slot->state = slot->is_sending ? SLOT_SENDING : SLOT_FREE;
	link_feed(link);
}

static void on_recv(struct link *link, const struct rpcrdma_header *h, int error, const uint8_t *body, size_t bytes)
{
	struct slot *slot = link_find(link, SLOT_CALLED, h->xid);
	uint8_t refusal[RPC_ERROR_BYTES];
	int64_t n;

	if (error || !slot) {
		link_end(link, error ? "the responder sent a header that cannot be read"
				     : "the responder answered what was not asked", 0);
		return;
	}
	link->limit = h->credits ? MIN(h->credits, link->slots) : 1;
	n = rpcrdma_reply_bytes(h, &slot->header.reply.segment[0]);
	if (n == -EREMOTEIO) {
		gate_say("the responder could not handle a call (error %d): its client is told so", h->error);
		rpc_system_error(slot->xid, refusal);
		pass_on(link, slot, refusal, sizeof(refusal));
	} else if (n < 0) {
		link_end(link, "the responder says that it wrote what it was not offered", 0);
	} else if (n) {
		pass_on(link, slot, slot->reply.at, (size_t)n);
	} else {
		pass_on(link, slot, body, bytes);
	}
}

const struct link_ops requester_ops = {
	.to_fill = to_fill,
	.on_message = on_message,
	.on_recv = on_recv,
};
