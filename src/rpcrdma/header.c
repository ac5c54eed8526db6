/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Transport headers and private data: XDR to structures and back (RFC 8166, 4 and RFC
 * 8797). */
#include <errno.h>

#include "base/bytes.h"
#include "rpcrdma/rpcrdma.h"

#define FIXED_BYTES   16 /* transaction id, version, credits, kind */
#define SEGMENT_BYTES 16
#define PRIVATE_MAGIC 0xf6ab0e18
#define PRIVATE_UNIT  1024

/* --- writing --- */

/* XDR goes out; what has no room is counted but not written */
struct writer {
	uint8_t *out;
	size_t room, bytes;
};

static void put_word(struct writer *w, uint32_t word)
{
	if (w->bytes + 4 <= w->room)
		put_be32(w->out + w->bytes, word);
	w->bytes += 4;
}

static void put_segment(struct writer *w, const struct rpcrdma_segment *s)
{
	put_word(w, s->handle);
	put_word(w, s->bytes);
	put_word(w, (uint32_t)(s->offset >> 32));
	put_word(w, (uint32_t)s->offset);
}

static void put_chunk(struct writer *w, const struct rpcrdma_chunk *chunk)
{
	put_word(w, 1);
	put_word(w, chunk->segments);
	for (uint32_t i = 0; i < chunk->segments; i++)
		put_segment(w, &chunk->segment[i]);
}

static void put_lists(struct writer *w, const struct rpcrdma_header *h)
{
	for (uint32_t i = 0; i < h->reads; i++) {
		put_word(w, 1);
		put_word(w, h->read[i].position);
		put_segment(w, &h->read[i].from);
	}
	put_word(w, 0);
	for (uint32_t i = 0; i < h->writes; i++)
		put_chunk(w, &h->write[i]);
	put_word(w, 0);
	if (h->has_reply)
		put_chunk(w, &h->reply);
	else
		put_word(w, 0);
}

size_t rpcrdma_encode(const struct rpcrdma_header *h, uint8_t *out, size_t room)
{
	struct writer w = {out, room, 0};

	put_word(&w, h->xid);
	put_word(&w, h->version);
	put_word(&w, h->credits);
	put_word(&w, h->proc);
	if (h->proc != RPCRDMA_ERROR) {
		put_lists(&w, h);
	} else {
		put_word(&w, h->error);
		if (h->error == RPCRDMA_ERR_VERS) {
			put_word(&w, h->lowest);
			put_word(&w, h->highest);
		}
	}
	return w.bytes <= room ? w.bytes : 0;
}

/* --- reading --- */

/* XDR comes in; what is missing reads as 0 and is_bad */
struct reader {
	const uint8_t *in;
	size_t bytes, at;
	bool is_bad;
};

static uint32_t get_word(struct reader *r)
{
	uint32_t word = 0;

	r->is_bad |= r->bytes - r->at < 4;
	if (!r->is_bad) {
		word = get_be32(r->in + r->at);
		r->at += 4;
	}
	return word;
}

/* an optional item: 0 or 1 says whether it is there */
static bool get_presence(struct reader *r)
{
	uint32_t word = get_word(r);

	r->is_bad |= word > 1;
	return !r->is_bad && word;
}

static struct rpcrdma_segment get_segment(struct reader *r)
{
	struct rpcrdma_segment s;

	s.handle = get_word(r);
	s.bytes = get_word(r);
	s.offset = (uint64_t)get_word(r) << 32;
	s.offset |= get_word(r);
	return s;
}

static void get_chunk(struct reader *r, struct rpcrdma_chunk *chunk)
{
	uint32_t segments = get_word(r);

	chunk->segments = 0;
	r->is_bad |= segments > RPCRDMA_SEGMENTS;
	while (!r->is_bad && chunk->segments < segments)
		chunk->segment[chunk->segments++] = get_segment(r);
}

static void get_lists(struct reader *r, struct rpcrdma_header *h)
{
	while (get_presence(r)) {
		r->is_bad |= h->reads == RPCRDMA_SEGMENTS;
		if (r->is_bad)
			return;
		h->read[h->reads].position = get_word(r);
		h->read[h->reads++].from = get_segment(r);
	}
	while (get_presence(r)) {
		r->is_bad |= h->writes == RPCRDMA_WRITES;
		if (r->is_bad)
			return;
		get_chunk(r, &h->write[h->writes++]);
	}
	h->has_reply = get_presence(r);
	if (h->has_reply)
		get_chunk(r, &h->reply);
}

static void get_error(struct reader *r, struct rpcrdma_header *h)
{
	h->error = get_word(r);
	if (h->error == RPCRDMA_ERR_VERS) {
		h->lowest = get_word(r);
		h->highest = get_word(r);
	}
}

int rpcrdma_decode(struct rpcrdma_header *h, const uint8_t *in, size_t bytes)
{
	struct reader r = {in, bytes, 0, false};

	*h = (struct rpcrdma_header){0};
	if (bytes < FIXED_BYTES)
		return -EPROTO;
	h->xid = get_word(&r);
	h->version = get_word(&r);
	h->credits = get_word(&r);
	h->proc = get_word(&r);
	if (h->version != RPCRDMA_VERSION)
		return -EPROTONOSUPPORT;
	switch (h->proc) {
	case RPCRDMA_MSG:
	case RPCRDMA_NOMSG:
		get_lists(&r, h);
		break;
	case RPCRDMA_ERROR:
		get_error(&r, h);
		break;
	default:
		return -EBADMSG;
	}
	return r.is_bad ? -EBADMSG : (int)r.at;
}

/* --- private data --- */

static uint8_t units(uint32_t bytes)
{
	uint32_t whole = MAX(bytes / PRIVATE_UNIT, 1u);

	return (uint8_t)(MIN(whole, 256u) - 1);
}

void rpcrdma_private_encode(const struct rpcrdma_private *said,
			    uint8_t out[RPCRDMA_PRIVATE_BYTES])
{
	put_be32(out, PRIVATE_MAGIC);
	out[4] = 1; /* version of the format */
	out[5] = 0; /* no remote invalidation */
	out[6] = units(said->send_bytes);
	out[7] = units(said->recv_bytes);
}

struct rpcrdma_private rpcrdma_private_decode(const uint8_t *in, size_t bytes)
{
	struct rpcrdma_private said = {RPCRDMA_THRESHOLD, RPCRDMA_THRESHOLD};

	if (bytes >= RPCRDMA_PRIVATE_BYTES && get_be32(in) == PRIVATE_MAGIC &&
	    in[4] == 1) {
		said.send_bytes = (in[6] + 1u) * PRIVATE_UNIT;
		said.recv_bytes = (in[7] + 1u) * PRIVATE_UNIT;
	}
	return said;
}
