/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The requester: calls come by TCP and leave by RDMA, replies the other way. A call
 * arrives in registered memory, so that a long one is lent as it is; so is memory for a
 * long reply. */
#include <errno.h>

#include "rpcgate/gate.h"

static uint32_t under_way(const struct relay *relay)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < relay->slots; i++)
		n += relay->slot[i].state > SLOT_FILLING;
	return n;
}

/* The memory of a slot is registered when it is first used; where not all of it can be,
 * fewer slots do. */
static uint8_t *to_fill(struct relay *relay)
{
	uint32_t longest = relay->gate->opt.longest;
	struct slot *slot = relay_find(relay, SLOT_FREE, 0);
	int error;

	if (!slot || under_way(relay) >= relay->limit)
		return NULL;
	error = relay_memory(relay, &slot->call, longest,
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	if (!error)
		error = relay_memory(relay, &slot->reply, longest,
				     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (error && under_way(relay))
		return NULL;
	if (error) {
		relay_end(relay,
			  "no memory can be registered for a call: raise the limit of "
			  "locked memory "
			  "(ulimit -l), or lower --longest",
			  -error);
		return NULL;
	}
	slot->state = SLOT_FILLING;
	relay->filling = slot;
	return slot->call.at;
}

static struct rpcrdma_segment segment_of(const struct memory *memory)
{
	return (struct rpcrdma_segment){memory->mr->rkey, (uint32_t)memory->bytes,
					(uintptr_t)memory->at};
}

static void on_message(struct relay *relay, uint8_t *message, size_t bytes)
{
	struct slot *slot = relay->filling;
	struct rpcrdma_segment call = segment_of(&slot->call),
			       reply = segment_of(&slot->reply);

	if (rpc_kind(message) != RPC_CALL) {
		relay_end(relay, "the client sent what is no call", 0);
		return;
	}
	slot->state = SLOT_FREE;
	slot->xid = rpc_xid(message);
	/* The same call once more: the reply to the first one answers both. */
	if (relay_find(relay, SLOT_CALLED, slot->xid))
		return;
	rpcrdma_call(&slot->header, slot->xid, relay->slots, bytes, relay->threshold,
		     &call, &reply);
	slot->state = SLOT_CALLED;
	relay_send(relay, slot, &slot->header, message,
		   slot->header.proc == RPCRDMA_MSG ? bytes : 0);
}

/* to the client */
static void pass_on(struct relay *relay, struct slot *slot, const uint8_t *message,
		    size_t bytes)
{
	int error;

	if (bytes < RPC_SHORTEST || rpc_xid(message) != slot->xid ||
	    rpc_kind(message) != RPC_REPLY) {
		relay_end(relay, "the responder sent what is no reply to the call", 0);
		return;
	}
	error = stream_send(&relay->tcp, message, bytes);
	if (error) {
		relay_end(relay, "writing to TCP", -error);
		return;
	}
	slot->state = slot->is_sending ? SLOT_SENDING : SLOT_FREE;
	relay_feed(relay);
}

static void on_recv(struct relay *relay, const struct rpcrdma_header *h, int error,
		    const uint8_t *body, size_t bytes)
{
	struct slot *slot = relay_find(relay, SLOT_CALLED, h->xid);
	uint8_t refusal[RPC_ERROR_BYTES];
	int64_t n;

	if (error || !slot) {
		relay_end(relay,
			  error ? "the responder sent a header that cannot be read"
				: "the responder answered what was not asked",
			  0);
		return;
	}
	relay->limit = h->credits ? MIN(h->credits, relay->slots) : 1;
	n = rpcrdma_reply_bytes(h, &slot->header.reply.segment[0]);
	if (n == -EREMOTEIO) {
		gate_say("the responder could not handle a call (error %d): its client "
			 "is told so",
			 h->error);
		rpc_system_error(slot->xid, refusal);
		pass_on(relay, slot, refusal, sizeof(refusal));
	} else if (n < 0) {
		relay_end(relay,
			  "the responder says that it wrote what it was not offered", 0);
	} else if (n) {
		pass_on(relay, slot, slot->reply.at, (size_t)n);
	} else {
		pass_on(relay, slot, body, bytes);
	}
}

const struct relay_ops requester_ops = {
	.to_fill = to_fill,
	.on_message = on_message,
	.on_recv = on_recv,
};
