/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What is needed of RPC itself: headers of messages, and records of a stream (RFC 5531).
 */
#include <string.h>

#include "base/bytes.h"
#include "rpcrdma/rpcrdma.h"

#define MARK_LAST 0x80000000u /* the fragment is a record's last one */

enum { MSG_ACCEPTED = 0, AUTH_NONE = 0, SYSTEM_ERR = 5 };

uint32_t rpc_xid(const uint8_t *message)
{
	return get_be32(message);
}

uint32_t rpc_kind(const uint8_t *message)
{
	return get_be32(message + 4);
}

void rpc_system_error(uint32_t xid, uint8_t out[RPC_ERROR_BYTES])
{
	const uint32_t words[] = {xid, RPC_REPLY, MSG_ACCEPTED, AUTH_NONE, 0, SYSTEM_ERR};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		put_be32(out + 4 * i, words[i]);
}

void rpc_record_mark(uint8_t out[RPC_MARK_BYTES], uint32_t bytes)
{
	put_be32(out, MARK_LAST | bytes);
}

/* the mark of the next fragment. Return: bytes used */
static size_t take_mark(struct rpc_record *record, const uint8_t *in, size_t bytes)
{
	size_t part = MIN(bytes, (size_t)(RPC_MARK_BYTES - record->mark_bytes));
	uint32_t mark;

	memcpy(record->mark + record->mark_bytes, in, part);
	record->mark_bytes += (uint32_t)part;
	mark = get_be32(record->mark);
	record->left = record->mark_bytes == RPC_MARK_BYTES ? mark & ~MARK_LAST : 0;
	record->is_last = mark & MARK_LAST;
	return part;
}

/* more of the fragment. Return: bytes used */
static size_t take_fragment(struct rpc_record *record, const uint8_t *in, size_t bytes)
{
	size_t part = MIN(bytes, (size_t)record->left);

	memcpy(record->to + record->bytes, in, part);
	record->bytes += part;
	record->left -= (uint32_t)part;
	return part;
}

enum rpc_record_state rpc_record_take(struct rpc_record *record, const uint8_t *in,
				      size_t bytes, size_t *used)
{
	*used = 0;
	while (*used < bytes) {
		if (record->mark_bytes < RPC_MARK_BYTES)
			*used += take_mark(record, in + *used, bytes - *used);
		if (record->mark_bytes < RPC_MARK_BYTES)
			return RPC_RECORD_MORE;
		if (record->left > record->room - record->bytes)
			return RPC_RECORD_TOO_LONG;
		*used += take_fragment(record, in + *used, bytes - *used);
		if (record->left)
			return RPC_RECORD_MORE;
		if (record->is_last)
			return RPC_RECORD_WHOLE;
		record->mark_bytes = 0;
	}
	return RPC_RECORD_MORE;
}
