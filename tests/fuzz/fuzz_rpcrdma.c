/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Any transport header of RPC-over-RDMA, as the requester and the responder take it, and any bytes of
 * a TCP connection, in portions. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "rpcrdma/rpcrdma.h"

#define LONGEST 4096
#define ROOM	512

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* pieces are in order, within the message, and what was sent is within what came */
static void check_plan(const struct rpcrdma_plan *plan, size_t sent)
{
	uint32_t end = 0;

	check(plan->bytes >= RPC_SHORTEST && plan->bytes <= LONGEST && plan->pieces <= RPCRDMA_PIECES);
	for (uint32_t i = 0; i < plan->pieces; i++) {
		const struct rpcrdma_piece *piece = &plan->piece[i];

		check(piece->at >= end && piece->bytes && piece->bytes <= plan->bytes - piece->at);
		check(!piece->is_sent || piece->from.offset + piece->bytes <= sent);
		end = piece->at + piece->bytes;
	}
}

static void check_reply(const struct rpcrdma_header *call, size_t bytes)
{
	struct rpcrdma_header h;
	uint8_t out[RPCRDMA_HEADER_BYTES];
	size_t in_segments = 0;

	rpcrdma_reply(&h, call, 32, bytes, 1024);
	check(rpcrdma_encode(&h, out, h.proc == RPCRDMA_MSG ? 1024 - bytes : 1024));
	for (uint32_t i = 0; i < h.reply.segments; i++) {
		check(h.reply.segment[i].bytes <= call->reply.segment[i].bytes);
		in_segments += h.reply.segment[i].bytes;
	}
	check(h.proc != RPCRDMA_NOMSG || in_segments == bytes);
}

static void take_header(const uint8_t *data, size_t size)
{
	static const struct rpcrdma_segment offered = {1, LONGEST, 0};
	uint8_t again[RPCRDMA_HEADER_BYTES];
	struct rpcrdma_header h;
	struct rpcrdma_plan plan;
	int used = rpcrdma_decode(&h, data, size);

	if (used < 0) {
		rpcrdma_refuse(&h, &h, 32, used);
		check(rpcrdma_encode(&h, again, sizeof(again)));
		return;
	}
	check((size_t)used <= size && rpcrdma_encode(&h, again, sizeof(again)) == (size_t)used);
	check(!memcmp(again, data, (size_t)used));
	check(rpcrdma_reply_bytes(&h, &offered) <= LONGEST);
	if (rpcrdma_plan(&h, size - (size_t)used, LONGEST, &plan))
		return;
	check_plan(&plan, size - (size_t)used);
	check_reply(&h, plan.bytes);
}

static enum rpc_record_state take_stream(const uint8_t *data, size_t size, size_t step, size_t *at, uint8_t *to)
{
	struct rpc_record record = {to, ROOM};
	enum rpc_record_state said = RPC_RECORD_MORE;
	size_t used;

	for (*at = 0; said == RPC_RECORD_MORE && *at < size; *at += used) {
		said = rpc_record_take(&record, data + *at, MIN(step, size - *at), &used);
		check(used <= MIN(step, size - *at) && record.bytes <= ROOM);
	}
	return said;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t whole[ROOM] = {0}, parts[ROOM] = {0};
	struct rpcrdma_private ends = rpcrdma_private_decode(data, size);
	size_t at, again;
	enum rpc_record_state said;

	if (!size)
		return 0;
	check(ends.send_bytes >= RPCRDMA_THRESHOLD && ends.recv_bytes >= RPCRDMA_THRESHOLD);
	take_header(data + 1, size - 1);
	said = take_stream(data + 1, size - 1, size, &at, whole);
	check(take_stream(data + 1, size - 1, data[0] + 1u, &again, parts) == said);
	check(said == RPC_RECORD_TOO_LONG || (again == at && !memcmp(whole, parts, ROOM)));
	return 0;
}
