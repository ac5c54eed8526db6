/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "traffic.h"

#include <arpa/inet.h>
#include <stdatomic.h>
#include <string.h>

#define COUNTER_BYTES 4096
#define W TRAFFIC_WINDOW
#define MESSAGE_MIN 16
#define SIGNAL_EVERY 4
#define RECEIVE (1ull << 63) /* in the wr_id of receives */

/* the memory of a side: a counter, and an area of W slots for each use */
enum area { SOURCE, RECEIVED, WRITTEN, IMMEDIATE, COPIED, LANDING, NUM_AREAS };

enum kind { SEND, WRITE, WRITE_IMM, READ_WRITTEN, READ_COPIED, READ_SENT, ADD, READ_SUM, COPY,
	    COPY_WRITE, NUM_KINDS };

/* how often each is drawn */
static const uint8_t weight[NUM_KINDS] = {
	[SEND] = 30, [WRITE] = 22, [WRITE_IMM] = 14, [READ_WRITTEN] = 9, [READ_COPIED] = 4,
	[READ_SENT] = 6, [ADD] = 8, [READ_SUM] = 3, [COPY] = 4,
};

size_t traffic_bytes(uint32_t slot_bytes)
{
	return COUNTER_BYTES + (size_t)NUM_AREAS * W * slot_bytes;
}

static size_t slot(const struct traffic *t, enum area area, uint64_t n)
{
	return t->base + COUNTER_BYTES + ((size_t)area * W + n % W) * t->slot_bytes;
}

static volatile uint64_t *words(const struct traffic *t, size_t offset)
{
	return (volatile uint64_t *)(t->q->side->buffer + offset);
}

static void fill(struct traffic *t, size_t offset, uint64_t value, uint32_t bytes)
{
	volatile uint64_t *word = words(t, offset);

	for (uint32_t i = 0; i < bytes / 8; i++)
		word[i] = value;
}

static void expect(const struct traffic *t, const char *what, size_t offset, uint32_t from,
		   uint32_t bytes, uint64_t value)
{
	volatile uint64_t *word = words(t, offset);

	for (uint32_t i = from / 8; i < bytes / 8; i++)
		if (word[i] != value)
			fail("%s: QP 0x%x, word %u of %u is %lu, not %lu", what,
			     t->q->qp->qp_num, i, bytes / 8, (unsigned long)word[i],
			     (unsigned long)value);
}

static void receive(struct traffic *t, uint64_t n)
{
	post_recv(t->q, n | RECEIVE, slot(t, RECEIVED, n), t->slot_bytes);
	t->receives = n;
}

void traffic_init(struct traffic *t, struct side_qp *q, size_t base, uint32_t slot_bytes,
		  uint64_t seed, struct traffic_seen *seen)
{
	*t = (struct traffic){.q = q, .base = base, .slot_bytes = slot_bytes, .seen = seen,
			      .rng = {seed}};
	memset(q->side->buffer + base, 0, traffic_bytes(slot_bytes));
	/* message numbers count from 1, and so do receives */
	for (uint64_t n = 1; n <= W; n++)
		receive(t, n);
}

/* --- posting --- */

/* mostly small, now and then as long as may be */
static uint32_t draw_bytes(struct traffic *t, uint32_t least)
{
	uint32_t most = rng_below(&t->rng, 4) ? 256 : t->slot_bytes;

	return (least + rng_below(&t->rng, most - least + 1)) & ~7u;
}

static void put(struct traffic *t, enum kind kind, enum ibv_wr_opcode opcode, size_t local,
		size_t remote, uint32_t bytes, uint64_t value)
{
	uint64_t n = t->posted;
	bool fenced = kind == COPY_WRITE || t->fence;
	struct traffic_pending *p = &t->pending[n % W];
	struct ibv_sge sge;
	struct ibv_send_wr wr = send_wr(t->q, &sge, opcode, n, local, bytes);

	*p = (struct traffic_pending){.kind = (uint8_t)kind, .bytes = bytes, .expect = value};
	/* who looks at what it brings must be told; the last of a window, too */
	p->signaled = (kind > WRITE_IMM && kind != COPY_WRITE) || n % SIGNAL_EVERY == 0 ||
		      rng_below(&t->rng, 2);
	wr.send_flags = p->signaled ? IBV_SEND_SIGNALED : 0;
	if (fenced)
		wr.send_flags |= IBV_SEND_FENCE;
	if (kind <= WRITE_IMM && bytes <= TRAFFIC_INLINE && rng_below(&t->rng, 2))
		wr.send_flags |= IBV_SEND_INLINE;
	if (kind == SEND || kind == WRITE_IMM)
		wr.imm_data = htonl((uint32_t)t->messages);
	if (kind == ADD) {
		wr.wr.atomic.remote_addr = t->q->peer.addr + remote;
		wr.wr.atomic.rkey = t->q->peer.rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = t->q->peer.addr + remote;
	}
	t->fence = false;
	t->posted++;
	post(t->q, &wr);
}

/* What a READ under way reads, only a request with a fence may change. */
static void keep_order(struct traffic *t, uint64_t read_by)
{
	t->fence = read_by > t->completed; /* counted from 1; 0: by none */
}

static void put_send(struct traffic *t)
{
	uint32_t bytes = draw_bytes(t, MESSAGE_MIN);
	size_t local = slot(t, SOURCE, t->posted);

	t->seen->messages_posted = ++t->messages;
	keep_order(t, t->sent_read_by[t->messages % W]);
	fill(t, local, t->last_write, bytes);
	words(t, local)[0] = t->messages;
	t->last_send = t->messages;
	t->last_send_bytes = bytes;
	put(t, SEND, IBV_WR_SEND, local, local, bytes, t->messages);
}

static void put_write(struct traffic *t)
{
	uint64_t value = t->posted + 1;
	uint32_t bytes = draw_bytes(t, 8);
	size_t local = slot(t, SOURCE, t->posted);

	fill(t, local, value, bytes);
	t->last_write = value;
	keep_order(t, t->written[value % W].read_by);
	t->written[value % W] = (struct traffic_slot){value, bytes, 0};
	put(t, WRITE, IBV_WR_RDMA_WRITE, local, slot(t, WRITTEN, value), bytes, 0);
}

static void put_write_imm(struct traffic *t)
{
	uint32_t bytes = draw_bytes(t, 8);
	size_t local = slot(t, SOURCE, t->posted);

	t->seen->messages_posted = ++t->messages;
	fill(t, local, t->messages, bytes);
	put(t, WRITE_IMM, IBV_WR_RDMA_WRITE_WITH_IMM, local, slot(t, IMMEDIATE, t->messages), bytes,
	    t->messages);
}

static void put_read(struct traffic *t, enum kind kind, size_t remote, uint32_t bytes,
		     uint64_t value)
{
	put(t, kind, IBV_WR_RDMA_READ, slot(t, LANDING, t->posted), remote, bytes, value);
}

static void put_add(struct traffic *t)
{
	t->seen->adds_posted = t->adds + 1;
	keep_order(t, t->sum_read_by);
	put(t, ADD, IBV_WR_ATOMIC_FETCH_AND_ADD, slot(t, LANDING, t->posted), t->base, 8, t->adds);
	t->adds++;
}

/* READ, and a WRITE with a fence of what it brought */
static void put_copy(struct traffic *t, struct traffic_slot *from)
{
	size_t landing = slot(t, LANDING, t->posted);
	uint64_t to = t->posted;

	fill(t, landing, UINT64_MAX, from->bytes);
	t->copied[to % W] = *from;
	from->read_by = t->posted + 1;
	put_read(t, COPY, slot(t, WRITTEN, from->value), from->bytes, from->value);
	put(t, COPY_WRITE, IBV_WR_RDMA_WRITE, landing, slot(t, COPIED, to), from->bytes, 0);
}

static enum kind draw_kind(struct traffic *t)
{
	unsigned sum = 0, drawn;
	int kind = 0;

	for (int i = 0; i < NUM_KINDS; i++)
		sum += weight[i];
	for (drawn = rng_below(&t->rng, sum); drawn >= weight[kind]; kind++)
		drawn -= weight[kind];
	return (enum kind)kind;
}

static void put_one(struct traffic *t, enum kind kind)
{
	uint32_t n = rng_below(&t->rng, W);
	struct traffic_slot *from;

	switch (kind) {
	case READ_WRITTEN:
	case READ_COPIED:
	case COPY:
		from = kind == READ_COPIED ? &t->copied[n] : &t->written[n];
		if (!from->bytes)
			return put_write(t);
		if (kind == COPY)
			return put_copy(t, from);
		from->read_by = t->posted + 1;
		return put_read(t, kind, slot(t, kind == READ_COPIED ? COPIED : WRITTEN, n),
				from->bytes, from->value);
	case READ_SENT:
		if (!t->last_send)
			return put_send(t);
		t->sent_read_by[t->last_send % W] = t->posted + 1;
		return put_read(t, kind, slot(t, RECEIVED, t->last_send), t->last_send_bytes,
				t->last_send);
	case READ_SUM:
		t->sum_read_by = t->posted + 1;
		return put_read(t, kind, t->base, 8, t->adds);
	case ADD:
		return put_add(t);
	case WRITE:
		return put_write(t);
	case WRITE_IMM:
		return put_write_imm(t);
	default:
		return put_send(t);
	}
}

bool traffic_post(struct traffic *t)
{
	if (t->posted - t->completed > W - 4 || t->broken)
		return false;
	put_one(t, draw_kind(t));
	return true;
}

void traffic_flush(struct traffic *t)
{
	put_read(t, READ_SUM, t->base, 8, t->adds);
}

/* --- judging --- */

static void done(struct traffic *t, uint64_t n)
{
	struct traffic_pending *p = &t->pending[n % W];

	switch ((enum kind)p->kind) {
	case SEND:
	case WRITE_IMM:
		t->seen->messages_completed = p->expect;
		break;
	case ADD:
		expect(t, "an atomic's old value", slot(t, LANDING, n), 0, 8, p->expect);
		t->seen->adds_completed = p->expect + 1;
		break;
	case READ_SENT: /* its words but the first name the WRITE before it */
		expect(t, "READ of a message", slot(t, LANDING, n), 0, 8, p->expect);
		break;
	case READ_WRITTEN:
	case READ_COPIED:
	case READ_SUM:
	case COPY:
		expect(t, p->kind == READ_COPIED ? "READ of a copy" :
			  p->kind == READ_SUM	 ? "READ of the sum" :
						   "READ after WRITE",
		       slot(t, LANDING, n), 0, p->bytes, p->expect);
		break;
	default:
		break;
	}
}

static void take_request(struct traffic *t, const struct ibv_wc *wc)
{
	/* those before it that complete unseen */
	while (!t->broken && t->completed < wc->wr_id && !t->pending[t->completed % W].signaled)
		done(t, t->completed++);
	if (wc->wr_id != t->completed || t->completed == t->posted)
		fail("QP 0x%x: request %lu completes where %lu of %lu is next",
		     t->q->qp->qp_num, (unsigned long)wc->wr_id, (unsigned long)t->completed,
		     (unsigned long)t->posted);
	if (wc->status) {
		/* the first failed; what follows was not looked at */
		if (t->broken ? wc->status != IBV_WC_WR_FLUSH_ERR :
				wc->status != IBV_WC_RETRY_EXC_ERR &&
					wc->status != IBV_WC_WR_FLUSH_ERR)
			fail("QP 0x%x: request %lu: %s", t->q->qp->qp_num,
			     (unsigned long)wc->wr_id, ibv_wc_status_str(wc->status));
		t->broken = true;
	} else if (t->broken) {
		fail("QP 0x%x: request %lu succeeds after one that failed", t->q->qp->qp_num,
		     (unsigned long)wc->wr_id);
	} else {
		done(t, t->completed);
	}
	t->completed++;
}

/* Return: what a WRITE that a message names must have left, or later ones */
static void expect_write(const struct traffic *t, uint64_t value)
{
	uint64_t found = words(t, slot(t, WRITTEN, value))[0];

	if (value && (found < value || found % W != value % W))
		fail("QP 0x%x: a message came before the WRITE %lu: %lu is there",
		     t->q->qp->qp_num, (unsigned long)value, (unsigned long)found);
}

static void expect_message(struct traffic *t, const struct ibv_wc *wc, uint64_t n)
{
	size_t at = slot(t, RECEIVED, n);

	if (wc->opcode == IBV_WC_RECV) {
		expect(t, "a message's number", at, 0, 8, n);
		expect_write(t, words(t, at)[1]);
		expect(t, "a message", at, 8, wc->byte_len, words(t, at)[1]);
		return;
	}
	if (ntohl(wc->imm_data) != (uint32_t)n)
		fail("QP 0x%x: immediate %u, not %lu", t->q->qp->qp_num, ntohl(wc->imm_data),
		     (unsigned long)n);
	at = slot(t, IMMEDIATE, n); /* the peer may be writing the next one there */
	if (words(t, at)[0] < n)
		fail("QP 0x%x: immediate data %lu came before its bytes", t->q->qp->qp_num,
		     (unsigned long)n);
}

static void take_receive(struct traffic *t, const struct ibv_wc *wc)
{
	uint64_t n = t->received + t->flushed_receives + 1;

	if (wc->wr_id != (n | RECEIVE) || n > t->receives)
		fail("QP 0x%x: receive %lu completes where %lu of %lu is next", t->q->qp->qp_num,
		     (unsigned long)(wc->wr_id & ~RECEIVE), (unsigned long)n,
		     (unsigned long)t->receives);
	if (wc->status) {
		if (wc->status != IBV_WC_WR_FLUSH_ERR)
			fail("QP 0x%x: a receive: %s", t->q->qp->qp_num,
			     ibv_wc_status_str(wc->status));
		t->flushed_receives++;
		return;
	}
	if (t->flushed_receives)
		fail("QP 0x%x: a receive succeeds after one that was flushed", t->q->qp->qp_num);
	expect_message(t, wc, n);
	t->seen->messages_received = ++t->received;
	if (!t->broken)
		receive(t, n + W);
}

void traffic_take(struct traffic *t, const struct ibv_wc *wc)
{
	/* of a completion with an error the opcode says nothing */
	if (!(wc->wr_id & RECEIVE) != !(wc->opcode & IBV_WC_RECV) && !wc->status)
		fail("QP 0x%x: opcode %d of wr_id 0x%lx", t->q->qp->qp_num, wc->opcode,
		     (unsigned long)wc->wr_id);
	if (wc->wr_id & RECEIVE)
		take_receive(t, wc);
	else
		take_request(t, wc);
}

bool traffic_drained(const struct traffic *t)
{
	return t->broken && t->posted == t->completed &&
	       t->received + t->flushed_receives == t->receives;
}
