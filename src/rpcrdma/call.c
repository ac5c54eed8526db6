/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the ends make of headers: which memory a call lends, how a call is put together
 * from its parts, and which way a reply takes. */
#include <errno.h>
#include <string.h>

#include "rpcrdma/rpcrdma.h"

/* the header of a message without lists */
#define EMPTY_HEADER_BYTES 28

/* --- the requester --- */

#define CALL_HEADER_BYTES                                                                \
	(EMPTY_HEADER_BYTES + 4 + 16) /* with a Reply chunk of one segment */

void rpcrdma_call(struct rpcrdma_header *h, uint32_t xid, uint32_t credits, size_t bytes,
		  size_t threshold, const struct rpcrdma_segment *call,
		  const struct rpcrdma_segment *reply)
{
	*h = (struct rpcrdma_header){
		.xid = xid,
		.version = RPCRDMA_VERSION,
		.credits = credits,
		.proc = RPCRDMA_MSG,
		.has_reply = true,
		.reply = {.segments = 1, .segment = {*reply}},
	};
	if (CALL_HEADER_BYTES + bytes > threshold) {
		h->proc = RPCRDMA_NOMSG;
		h->reads = 1;
		h->read[0] = (struct rpcrdma_read){0, *call};
		h->read[0].from.bytes = (uint32_t)bytes;
	}
}

int64_t rpcrdma_reply_bytes(const struct rpcrdma_header *h,
			    const struct rpcrdma_segment *offered)
{
	const struct rpcrdma_segment *written = &h->reply.segment[0];

	if (h->proc == RPCRDMA_ERROR)
		return -EREMOTEIO;
	if (h->reads || h->writes)
		return -EBADMSG;
	if (h->proc == RPCRDMA_MSG)
		return 0;
	if (!h->has_reply || h->reply.segments != 1 || written->bytes > offered->bytes ||
	    !written->bytes)
		return -EBADMSG;
	return written->bytes;
}

/* --- the responder: calls --- */

/* The message without what Read chunks hold: what was sent behind the header, or the
 * segments of the Position Zero Read chunk. */
struct body {
	const struct rpcrdma_header *h;
	bool is_sent;
	uint32_t zeroes; /* entries of the Read list that are the Position Zero Read chunk
			  */
	uint64_t bytes;	 /* that are left */
	uint32_t entry,
		done; /* where they begin: bytes of an entry, or of what was sent */
};

static int add_piece(struct rpcrdma_plan *plan, const struct rpcrdma_piece *piece)
{
	if (!piece->bytes)
		return 0;
	if (plan->pieces == RPCRDMA_PIECES)
		return -EBADMSG;
	plan->piece[plan->pieces++] = *piece;
	return 0;
}

static struct body body_of(const struct rpcrdma_header *h, size_t sent)
{
	struct body body = {.h = h, .is_sent = h->proc == RPCRDMA_MSG, .bytes = sent};

	while (body.zeroes < h->reads && !h->read[body.zeroes].position)
		body.zeroes++;
	if (body.is_sent)
		return body;
	body.bytes = 0;
	for (uint32_t i = 0; i < body.zeroes; i++)
		body.bytes += h->read[i].from.bytes;
	return body;
}

/* the next @bytes of @body stand at @at of the message */
static int add_body(struct rpcrdma_plan *plan, struct body *body, uint32_t at,
		    uint64_t bytes)
{
	if (bytes > body->bytes)
		return -EBADMSG;
	body->bytes -= bytes;
	if (body->is_sent) {
		struct rpcrdma_piece piece = {
			at, (uint32_t)bytes, true, {.offset = body->done}};

		body->done += (uint32_t)bytes;
		return add_piece(plan, &piece);
	}
	while (bytes) {
		const struct rpcrdma_segment *s = &body->h->read[body->entry].from;
		uint32_t part = (uint32_t)MIN(bytes, (uint64_t)(s->bytes - body->done));
		struct rpcrdma_piece piece = {
			at, part, false, {s->handle, part, s->offset + body->done}};

		if (add_piece(plan, &piece))
			return -EBADMSG;
		at += part;
		bytes -= part;
		body->done += part;
		if (body->done == s->bytes) {
			body->entry++;
			body->done = 0;
		}
	}
	return 0;
}

/* the Read chunk that begins with entry *@i, at the end of what is planned */
static int add_chunk(struct rpcrdma_plan *plan, const struct rpcrdma_header *h,
		     uint32_t *i, size_t longest)
{
	uint32_t position = h->read[*i].position;

	for (; *i < h->reads && h->read[*i].position == position; ++*i) {
		const struct rpcrdma_segment *s = &h->read[*i].from;
		struct rpcrdma_piece piece = {plan->bytes, s->bytes, false, *s};

		if (s->bytes > longest - plan->bytes || add_piece(plan, &piece))
			return -EBADMSG;
		plan->bytes += s->bytes;
	}
	plan->bytes = ALIGN_UP(plan->bytes, 4u);
	return plan->bytes > longest ? -EBADMSG : 0;
}

int rpcrdma_plan(const struct rpcrdma_header *h, size_t sent, size_t longest,
		 struct rpcrdma_plan *plan)
{
	struct body body = body_of(h, sent);
	uint32_t i = body.zeroes;

	plan->bytes = plan->pieces = 0;
	if (h->proc != RPCRDMA_MSG && h->proc != RPCRDMA_NOMSG)
		return -EBADMSG;
	/* a Position Zero Read chunk takes the place of what would be sent */
	if (body.is_sent ? body.zeroes : !body.zeroes || sent)
		return -EBADMSG;
	while (i < h->reads) {
		uint32_t position = h->read[i].position;

		if (position < plan->bytes || position > longest ||
		    add_body(plan, &body, plan->bytes, position - plan->bytes))
			return -EBADMSG;
		plan->bytes = position;
		if (add_chunk(plan, h, &i, longest))
			return -EBADMSG;
	}
	if (body.bytes > longest - plan->bytes)
		return -EBADMSG;
	sent = body.bytes;
	if (add_body(plan, &body, plan->bytes, sent))
		return -EBADMSG;
	plan->bytes += (uint32_t)sent;
	return plan->bytes < RPC_SHORTEST ? -EBADMSG : 0;
}

/* --- the responder: replies --- */

/* @bytes go into the first segments of @chunk, the others get none. Return: false: there
 * are more */
static bool fill(struct rpcrdma_chunk *chunk, size_t bytes)
{
	for (uint32_t i = 0; i < chunk->segments; i++) {
		struct rpcrdma_segment *s = &chunk->segment[i];

		s->bytes = (uint32_t)MIN(bytes, (size_t)s->bytes);
		bytes -= s->bytes;
	}
	return !bytes;
}

static size_t header_bytes(const struct rpcrdma_header *h)
{
	uint8_t scratch[RPCRDMA_HEADER_BYTES];

	return rpcrdma_encode(h, scratch, sizeof(scratch));
}

void rpcrdma_reply(struct rpcrdma_header *h, const struct rpcrdma_header *to,
		   uint32_t credits, size_t bytes, size_t threshold)
{
	*h = (struct rpcrdma_header){
		.xid = to->xid,
		.version = RPCRDMA_VERSION,
		.credits = credits,
		.proc = RPCRDMA_MSG,
		.writes = to->writes, /* none of which is used: RFC 8166, 4.3.3 */
	};
	memcpy(h->write, to->write, sizeof(h->write));
	for (uint32_t i = 0; i < h->writes; i++)
		fill(&h->write[i], 0);
	if (header_bytes(h) + bytes <= threshold)
		return;
	h->proc = RPCRDMA_NOMSG;
	h->has_reply = to->has_reply;
	h->reply = to->reply;
	if (!h->has_reply || !fill(&h->reply, bytes) || header_bytes(h) > threshold)
		rpcrdma_refuse(h, to, credits, -EBADMSG);
}

void rpcrdma_refuse(struct rpcrdma_header *h, const struct rpcrdma_header *to,
		    uint32_t credits, int why)
{
	*h = (struct rpcrdma_header){
		.xid = to->xid,
		.version = RPCRDMA_VERSION,
		.credits = credits,
		.proc = RPCRDMA_ERROR,
		.error = why == -EPROTONOSUPPORT ? RPCRDMA_ERR_VERS : RPCRDMA_ERR_CHUNK,
		.lowest = RPCRDMA_VERSION,
		.highest = RPCRDMA_VERSION,
	};
}
