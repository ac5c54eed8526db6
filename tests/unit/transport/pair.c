/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "pair.h"

struct pair_flight {
	struct pair_flight *next;
	mono_t arrival;
	enum pair_side_id to;
	bool is_segment;
	struct wire_packet segment; /* its payload in bytes */
	bool has_ack;
	psn_t ack;
	size_t len;
	uint8_t bytes[];
};

/* --- what a QP asks of its engine --- */

static const struct region {
	uint32_t suffix;
	int access;
} regions[] = {
	{0, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		    IBV_ACCESS_REMOTE_ATOMIC | TP_ACCESS_FLUSH_GLOBAL},
	{PAIR_KEY_RO, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ},
	{PAIR_KEY_LOCAL, IBV_ACCESS_LOCAL_WRITE},
	{PAIR_KEY_CONST, 0},
};

static void *mem(void *ctx, uint32_t key, uint64_t va, uint64_t *length, int access,
		 enum tp_key whose)
{
	uint64_t len = *length;
	struct pair_side *side = ctx;

	assert_true(len > 0);
	if (side->endless && len <= 4096)
		return side->memory;
	if (va < PAIR_IOVA || va - PAIR_IOVA > PAIR_MEMORY ||
	    len > PAIR_MEMORY - (va - PAIR_IOVA) || side->key_revoked)
		return NULL;
	for (unsigned i = 0; i < ARRAY_SIZE(regions); i++)
		if (key == side->key + regions[i].suffix &&
		    !(access & ~regions[i].access))
			return side->memory + (va - PAIR_IOVA);
	return NULL;
}

static bool grants(void *ctx, uint32_t rkey, int access)
{
	uint64_t length = 1;

	return mem(ctx, rkey, PAIR_IOVA, &length, access, TP_KEY_REMOTE);
}

static int invalidate(void *ctx, uint32_t rkey, bool by_peer)
{
	struct pair_side *side = ctx;

	if (rkey != side->key + PAIR_KEY_RO)
		return -1;
	side->invalidated = rkey;
	return 0;
}

static int bind(void *ctx, const struct tp_send_wr *wr)
{
	struct pair_side *side = ctx;

	assert_true(side->binds < ARRAY_SIZE(side->bind));
	side->bind[side->binds++] = (struct pair_bind){wr->imm_or_rkey, side->pair->logged};
	return wr->bind.mr_key == side->key ? 0 : -1;
}

static bool take(struct pair_side *side, struct tp_recv_wr *wr)
{
	if (side->recv_head == side->recv_tail)
		return false;
	*wr = side->recv[side->recv_head++ % PAIR_MAX];
	return true;
}

static bool recv_get(void *ctx, const struct wire_packet *pkt, struct tp_recv_wr *wr)
{
	struct pair_side *side = ctx;

	assert_non_null(pkt);
	return side->choose ? side->choose(side, pkt, wr) : take(side, wr);
}

static bool recv_flush(void *ctx, struct tp_recv_wr *wr)
{
	struct pair_side *side = ctx;

	return !side->srq && take(side, wr);
}

static void tell(struct pair_side *side, const struct tp_wc *wc, bool recv)
{
	struct pair *p = side->pair;

	if (p->done)
		p->done(p, side == &p->side[A] ? A : B, wc, recv);
}

static void complete_send(void *ctx, uint64_t wr_id, uint8_t status, uint8_t opcode,
			  uint32_t length_bytes)
{
	struct pair_side *side = ctx;
	struct tp_wc *wc = &side->send_wc[side->sends];

	assert_true(side->sends++ < PAIR_MAX);
	*wc = (struct tp_wc){
		.wr_id = wr_id, .status = status, .opcode = opcode, .byte_len = length_bytes};
	tell(side, wc, false);
}

static void complete_recv(void *ctx, const struct tp_wc *wc)
{
	struct pair_side *side = ctx;

	assert_true(side->recvs < PAIR_MAX);
	side->recv_wc[side->recvs++] = *wc;
	tell(side, wc, true);
}

static void event(void *ctx, enum tp_event ev)
{
	struct pair_side *side = ctx;

	assert_true(side->events < ARRAY_SIZE(side->event));
	side->event[side->events++] = ev;
}

static const struct tp_ops ops = {
	.mem = mem,
	.grants = grants,
	.invalidate = invalidate,
	.bind = bind,
	.recv_get = recv_get,
	.recv_flush = recv_flush,
	.complete_send = complete_send,
	.complete_recv = complete_recv,
	.event = event,
};

/* --- setting up --- */

static void set_attr(struct pair *p, enum pair_side_id id, const struct pair_options *o)
{
	static const uint32_t default_psn[] = {0x100, 0x200};
	uint32_t mine = o->sq_psn[id] ? o->sq_psn[id] : default_psn[id];
	uint32_t theirs = o->sq_psn[!id] ? o->sq_psn[!id] : default_psn[!id];

	*tp_qp_attr(p->side[id].qp) = (struct tp_attr){
		.dest_qpn = id == A ? 0xb : 0xa,
		.sq_psn = psn(mine),
		.rq_psn = psn(theirs),
		.qkey = 0x1234,
		.pkey = 0xffff,
		.port_num = 1,
		.mtu_bytes = o->mtu_bytes ? o->mtu_bytes : 1024,
		.retry_cnt = o->retry_cnt ? o->retry_cnt : 7,
		.rnr_retry = o->rnr_retry ? o->rnr_retry : 7,
		.timeout_enc = o->timeout_enc ? o->timeout_enc : 8, /* 1 ms */
		.min_rnr_timer_enc = 12,			    /* 0.64 ms */
		.max_rd_atomic = o->max_rd_atomic ? o->max_rd_atomic : 4,
		.max_dest_rd_atomic = o->max_rd_atomic ? o->max_rd_atomic : 4,
		.qp_access_flags = o->no_remote_access ? 0 :
							 IBV_ACCESS_REMOTE_WRITE |
								 IBV_ACCESS_REMOTE_READ |
								 IBV_ACCESS_REMOTE_ATOMIC |
								 TP_ACCESS_FLUSH_GLOBAL,
		.av = {.dlid = id == A ? 2 : 1, .port_num = 1},
	};
}

static uint8_t fresh_memory[2][PAIR_MEMORY];

static void side_init(struct pair *p, enum pair_side_id id, const struct pair_options *o)
{
	struct pair_side *s = &p->side[id];
	struct tp_qp_init init = {
		.type = o->type,
		.qpn = (o->qpn[id] ? o->qpn[id] :
			id == A	   ? 0xa :
				     0xb) &
		       0xffffff,
		.sq_depth = o->sq_depth ? o->sq_depth : 64,
		.max_sge = o->max_sge ? o->max_sge : 4,
		.max_inline = o->max_inline ? o->max_inline : 64,
		.max_dest_rd = 16,
		.max_header = o->max_header,
		.sq_sig_all = o->sq_sig_all,
		.has_srq = o->srq,
		.min_ack_ns = o->min_ack_ns,
		.ops = &ops,
		.ctx = s,
	};
	size_t size = tp_qp_size(init.sq_depth, init.max_sge, init.max_inline, init.max_dest_rd);

	s->pair = p;
	s->srq = o->srq;
	s->key = id == A ? PAIR_KEY_A : PAIR_KEY_B;
	s->memory = aligned_alloc(4096, PAIR_MEMORY);
	s->qp_memory = aligned_alloc(64, (size + 63) / 64 * 64);
	assert_true(s->memory && s->qp_memory);
	if (!fresh_memory[id][0])
		pair_fill(fresh_memory[id], PAIR_MEMORY, id + 1);
	memcpy(s->memory, fresh_memory[id], PAIR_MEMORY);
	memset(s->qp_memory, 0xa5, size);
	s->qp = tp_qp_init(s->qp_memory, &init);
	s->header_memory = malloc(tp_qp_header_bytes(s->qp));
	tp_qp_give_headers(s->qp, s->header_memory);
	set_attr(p, id, o);
	tp_qp_modify(s->qp, IBV_QPS_INIT, p->now);
	tp_qp_modify(s->qp, IBV_QPS_RTR, p->now);
	tp_qp_modify(s->qp, IBV_QPS_RTS, p->now);
	assert_int_equal(tp_qp_state(s->qp), IBV_QPS_RTS);
}

struct pair *pair_new(const struct pair_options *options)
{
	struct pair *p = calloc(1, sizeof(*p));

	assert_non_null(p);
	p->now = (mono_t){NSEC_PER_SEC};
	p->seed = 1;
	side_init(p, A, options);
	side_init(p, B, options);
	return p;
}

void pair_free(struct pair *p)
{
	while (p->flight) {
		struct pair_flight *f = p->flight;
		p->flight = f->next;
		free(f);
	}
	for (unsigned i = 0; i < 2; i++) {
		free(p->side[i].memory);
		free(p->side[i].qp_memory);
		free(p->side[i].header_memory);
	}
	free(p);
}

uint32_t pair_random(struct pair *p, uint32_t below)
{
	p->seed = p->seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)((p->seed >> 33) % below);
}

void pair_fill(uint8_t *at, uint32_t len, uint32_t salt)
{
	uint32_t x = salt * 2654435761u + 12345;

	for (uint32_t i = 0; i < len; i++) {
		x = x * 1664525u + 1013904223u;
		at[i] = (uint8_t)(x >> 24);
	}
}

/* --- the link --- */

static size_t assemble(struct tp_packet_out *out, enum pair_side_id from, uint8_t *to)
{
	size_t at;
	int header;

	out->hdr.lrh = (struct wire_lrh){
		.lnh = out->av->is_global ? WIRE_LNH_GRH : WIRE_LNH_BTH,
		.dlid = out->av->dlid,
		.slid = from == A ? 1 : 2,
		.sl = out->av->sl,
	};
	if (out->av->is_global) {
		memset(&out->hdr.grh, 0, sizeof(out->hdr.grh));
		out->hdr.grh.dgid = out->av->dgid;
		out->hdr.grh.hop_limit = out->av->hop_limit;
	}
	header = wire_packet_encode(&out->hdr, to);
	assert_true(header > 0);
	at = (size_t)header;
	for (unsigned i = 0; i < out->num_pieces; i++) {
		memcpy(to + at, out->piece[i].ptr, out->piece[i].len);
		at += out->piece[i].len;
	}
	assert_int_equal(at - (size_t)header, out->hdr.payload_bytes);
	memset(to + at, 0, out->hdr.bth.pad_bytes);
	return at + out->hdr.bth.pad_bytes;
}

static struct pair_flight *fly(struct pair *p, enum pair_side_id to, const void *bytes,
			       size_t len, uint64_t delay_ns)
{
	struct pair_flight *f = malloc(sizeof(*f) + len), **at = &p->flight;

	assert_non_null(f);
	*f = (struct pair_flight){
		.arrival = mono_add(p->now, delay_ns), .to = to, .len = len};
	memcpy(f->bytes, bytes, len);
	while (*at && !mono_before(f->arrival, (*at)->arrival))
		at = &(*at)->next;
	f->next = *at;
	*at = f;
	return f;
}

static struct pair_packet *log_packet(struct pair *p, enum pair_side_id from,
				      const struct wire_packet *pkt)
{
	struct pair_packet *l;
	uint32_t flags = wire_opcodes[pkt->bth.opcode].flags;

	assert_true(p->logged < ARRAY_SIZE(p->log));
	l = &p->log[p->logged++];
	*l = (struct pair_packet){
		.from = from,
		.opcode = pkt->bth.opcode,
		.psn = pkt->bth.psn,
		.ack_req = pkt->bth.ack_req,
		.solicited = pkt->bth.solicited,
		.payload_bytes = pkt->payload_bytes,
		.packets = pkt->packets,
		.sent = p->now,
	};
	if (flags & WIRE_HAS_AETH) {
		l->syndrome = pkt->aeth.syndrome;
		l->msn = pkt->aeth.msn;
	}
	if (flags & WIRE_HAS_RETH)
		l->reth = pkt->reth;
	return l;
}

/* the same for a segment, which needs no bytes but its payload's */
static bool transmit_segment(struct pair *p, enum pair_side_id from)
{
	static uint8_t bytes[65536];
	struct pair_flight *f;
	struct tp_packet_out out;
	struct pair_packet *l;
	uint8_t *at = bytes;
	psn_t ack = psn(0);

	memset(&out, 0xa5, sizeof(out));
	if (!tp_qp_transmit_segment(p->side[from].qp, &out, p->segment_bytes, p->now))
		return false;
	for (unsigned i = 0; i < out.num_pieces; at += out.piece[i++].len)
		memcpy(at, out.piece[i].ptr, out.piece[i].len);
	assert_int_equal(at - bytes, out.hdr.payload_bytes);
	out.hdr.lrh = (struct wire_lrh){.lnh = WIRE_LNH_BTH, .slid = from == A ? 1 : 2};
	l = log_packet(p, from, &out.hdr);
	l->has_ack = tp_take_ack(p->side[from].qp, wire_opcodes[out.hdr.bth.opcode].flags, &ack);
	l->lost = p->fate && p->fate(p, l) == DROP;
	if (l->lost)
		return true;
	f = fly(p, !from, bytes, out.hdr.payload_bytes, PAIR_LINK_NS);
	f->is_segment = true;
	f->segment = out.hdr;
	f->has_ack = l->has_ack;
	f->ack = ack;
	return true;
}

static bool transmit_one(struct pair *p, enum pair_side_id from)
{
	uint8_t bytes[WIRE_PACKET_MAX];
	struct tp_packet_out out;
	struct pair_packet *l;
	enum pair_fate fate;
	size_t len;

	memset(&out, 0xa5, sizeof(out));
	if (!tp_qp_transmit(p->side[from].qp, &out, p->now))
		return false;
	len = assemble(&out, from, bytes);
	l = log_packet(p, from, &out.hdr);
	fate = p->fate ? p->fate(p, l) : PASS;
	l->lost = fate == DROP;
	if (fate == REFUSE)
		wire_lrh_mark_rnr(bytes, WIRE_RNR_TIMER | 1);
	if (fate != DROP)
		fly(p, !from, bytes, len,
		    fate == LATE ? 20 * PAIR_LINK_NS : PAIR_LINK_NS);
	if (fate == TWICE)
		fly(p, !from, bytes, len, 3 * PAIR_LINK_NS);
	return true;
}

static void transmit_all(struct pair *p)
{
	for (unsigned id = A; id <= B && !p->corked; id++) {
		struct tp_qp *qp = p->side[id].qp;

		while (tp_qp_wants_transmit(qp))
			if (!(p->segment_bytes ? transmit_segment(p, id) : transmit_one(p, id)))
				break;
		/* what cannot go must say so, or an engine would spin */
		assert_false(tp_qp_wants_transmit(qp));
	}
}

static void arrivals(struct pair *p)
{
	while (p->flight && !mono_before(p->now, p->flight->arrival)) {
		struct pair_flight *f = p->flight;
		struct wire_packet pkt;

		p->flight = f->next;
		if (f->is_segment) {
			pkt = f->segment;
			pkt.payload = f->bytes;
			if (f->has_ack)
				tp_qp_acked(p->side[f->to].qp, f->ack, p->now);
		} else {
			assert_true(wire_packet_decode(f->bytes, f->len, &pkt) > 0);
		}
		tp_qp_receive(p->side[f->to].qp, &pkt, p->now);
		free(f);
	}
}

void pair_deliver(struct pair *p, enum pair_side_id to, struct wire_packet *pkt)
{
	pkt->packets = 1;
	tp_qp_receive(p->side[to].qp, pkt, p->now);
}

static mono_t next_event(const struct pair *p)
{
	mono_t t = p->flight ? p->flight->arrival : MONO_NEVER;

	t = mono_min(t, tp_qp_expiry(p->side[A].qp));
	return mono_min(t, tp_qp_expiry(p->side[B].qp));
}

void pair_run_until(struct pair *p, mono_t until)
{
	for (;;) {
		mono_t t;

		arrivals(p);
		tp_qp_expire(p->side[A].qp, p->now);
		tp_qp_expire(p->side[B].qp, p->now);
		transmit_all(p);
		t = next_event(p);
		if (t.ns == MONO_NEVER.ns || mono_before(until, t))
			break;
		p->now = t;
	}
	if (until.ns != MONO_NEVER.ns)
		p->now = until;
}

void pair_run(struct pair *p)
{
	pair_run_until(p, MONO_NEVER);
}

/* --- posting --- */

void pair_recv(struct pair *p, enum pair_side_id id, uint64_t wr_id, uint32_t offset,
	       uint32_t len)
{
	struct pair_side *s = &p->side[id];
	uint32_t at = s->recv_tail++ % PAIR_MAX;

	s->recv_sge[at] = (struct tp_sge){PAIR_IOVA + offset, len, s->key};
	s->recv[at] = (struct tp_recv_wr){wr_id, len > 0, &s->recv_sge[at]};
	tp_qp_posted_recv(s->qp);
}

struct tp_send_wr pair_wr(struct pair *p, enum pair_side_id id, enum ibv_wr_opcode opcode,
			  uint64_t wr_id, uint32_t offset, uint32_t len, uint32_t remote)
{
	static struct tp_sge sge; /* until the next call */

	sge = (struct tp_sge){PAIR_IOVA + offset, len, p->side[id].key};
	return (struct tp_send_wr){
		.wr_id = wr_id,
		.opcode = (uint8_t)opcode,
		.flags = IBV_SEND_SIGNALED,
		.num_sge = len > 0,
		.length_bytes = len,
		.sge = &sge,
		.remote_addr = PAIR_IOVA + remote,
		.rkey = p->side[!id].key,
		.imm_or_rkey = opcode == IBV_WR_SEND_WITH_INV ?
				       p->side[!id].key + PAIR_KEY_RO :
			       opcode == IBV_WR_LOCAL_INV ?
				       p->side[id].key + PAIR_KEY_RO :
				       (uint32_t)(0x1000 + wr_id),
		.bind = {4096, p->side[id].key, IBV_ACCESS_REMOTE_WRITE},
		.remote_qpn = id == A ? 0xb : 0xa,
		.remote_qkey = 0x1234,
		.av = {.dlid = id == A ? 2 : 1, .port_num = 1},
	};
}

void pair_send(struct pair *p, enum pair_side_id id, enum ibv_wr_opcode opcode,
	       uint64_t wr_id, uint32_t offset, uint32_t len, uint32_t remote)
{
	struct tp_send_wr wr = pair_wr(p, id, opcode, wr_id, offset, len, remote);

	if ((unsigned)opcode == TP_WR_FLUSH) { /* its range is the peer's, and it has no data */
		wr.num_sge = 0;
		wr.length_bytes = 0;
		wr.flush = (struct tp_flush){len, {WIRE_FLUSH_GLOBAL, WIRE_FLUSH_RANGE}};
	}
	assert_int_equal(tp_qp_post_send(p->side[id].qp, &wr), 0);
}

/* --- looking --- */

const struct tp_wc *pair_sent(struct pair *p, enum pair_side_id id)
{
	assert_true(p->side[id].send_seen < p->side[id].sends);
	return &p->side[id].send_wc[p->side[id].send_seen++];
}

const struct tp_wc *pair_received(struct pair *p, enum pair_side_id id)
{
	assert_true(p->side[id].recv_seen < p->side[id].recvs);
	return &p->side[id].recv_wc[p->side[id].recv_seen++];
}

void pair_expect_sent(struct pair *p, enum pair_side_id id, uint64_t wr_id,
		      enum ibv_wc_status status)
{
	const struct tp_wc *wc = pair_sent(p, id);

	assert_int_equal(wc->wr_id, wr_id);
	assert_int_equal(wc->status, status);
}

void pair_expect_received(struct pair *p, enum pair_side_id id, uint64_t wr_id,
			  enum ibv_wc_status status)
{
	const struct tp_wc *wc = pair_received(p, id);

	assert_int_equal(wc->wr_id, wr_id);
	assert_int_equal(wc->status, status);
}

void pair_expect_quiet(struct pair *p)
{
	for (unsigned id = A; id <= B; id++) {
		assert_int_equal(p->side[id].send_seen, p->side[id].sends);
		assert_int_equal(p->side[id].recv_seen, p->side[id].recvs);
		assert_int_equal(tp_qp_expiry(p->side[id].qp).ns, MONO_NEVER.ns);
	}
	assert_null(p->flight);
}

bool pair_had_event(const struct pair *p, enum pair_side_id id, enum tp_event ev)
{
	for (unsigned i = 0; i < p->side[id].events; i++)
		if (p->side[id].event[i] == ev)
			return true;
	return false;
}

uint32_t pair_count(const struct pair *p, enum pair_side_id id, uint8_t opcode)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->logged; i++)
		n += p->log[i].from == id && p->log[i].opcode == opcode;
	return n;
}

const struct pair_packet *pair_find(const struct pair *p, enum pair_side_id id,
				    uint8_t opcode, uint32_t nth)
{
	for (uint32_t i = 0; i < p->logged; i++)
		if (p->log[i].from == id && p->log[i].opcode == opcode && nth-- == 0)
			return &p->log[i];
	fail_msg("no such packet");
	return NULL;
}
