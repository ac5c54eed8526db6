/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * RDMA READ, atomics, ATOMIC WRITE and FLUSH at the responder (9.4.4, 9.4.5, 9.7.4.1.4, annex
 * A19). The last max_dest_rd_atomic of them are kept in a ring: first as a queue of responses
 * to send, then to answer their duplicates. A READ reads memory again. An atomic is not
 * executed twice but returns its saved result. An ATOMIC WRITE and a FLUSH return the response
 * of a READ of no bytes. A READ whose memory
 * is gone is an access error; its duplicate, which may be stale, is dropped.
 *
 * A resource is @pending while responses of it are to be sent. It is @replayed if these responses, or
 * the last ones that were sent, answer a duplicate and not the first request.
 */
#include "transport/guard.h"
#include "transport/qp.h"

static struct tp_resource *resource_at(const struct tp_responder *r, uint64_t index)
{
	return &r->res[index % r->res_size];
}

static uint64_t oldest_kept(const struct tp_responder *r)
{
	return r->res_head > r->res_size ? r->res_head - r->res_size : 0;
}

/* The ring gets another size. The youngest resources move, as many as fit; nothing changes as
 * long as one that would not fit has still to be answered. */
noinline static void resize(struct tp_responder *r, uint32_t size)
{
	uint64_t most = MIN(size, r->res_size), from = r->res_head - MIN(r->res_head, most);
	struct tp_resource kept[TP_MAX_DEST_RD];

	for (uint64_t i = oldest_kept(r); i < from; i++)
		if (resource_at(r, i)->pending && !resource_at(r, i)->replayed)
			return;
	for (uint64_t i = from; i < r->res_head; i++)
		kept[i - from] = *resource_at(r, i);
	r->res_size = size;
	r->res_head -= from;
	r->res_scan -= MIN(r->res_scan, from);
	memcpy(r->res, kept, r->res_head * sizeof(*kept));
}

/* 11.2.4.2: the depth may change while the QP receives */
static void look_at_depth(struct tp_qp *qp)
{
	struct tp_responder *r = &qp->resp;
	uint32_t size = MIN((uint32_t)qp->attr.max_dest_rd_atomic, r->res_capacity);

	if (unlikely(size != r->res_size))
		resize(r, size);
}

/* 9.7.4.1.5; an operation the QP is not set up for is an invalid request */
static enum tp_verdict check_read(const struct tp_qp *qp, const struct wire_reth *reth)
{
	if (!(qp->attr.qp_access_flags & IBV_ACCESS_REMOTE_READ) ||
	    reth->length_bytes > TP_MESSAGE_MAX)
		return TP_INVALID_REQUEST;
	return tp_may_access(qp, reth, IBV_ACCESS_REMOTE_READ) ? TP_ACCEPT : TP_REMOTE_ACCESS;
}

/* the word of an atomic operation that needs the right @right: aligned to its size (9.4.5) */
static enum tp_verdict find_word(const struct tp_qp *qp, uint64_t va, uint32_t rkey, int right,
				 uint64_t **word)
{
	uint64_t length = 8;

	if (!(qp->attr.qp_access_flags & right) || va % 8)
		return TP_INVALID_REQUEST;
	*word = qp->ops->mem(qp->ctx, rkey, va, &length, right, TP_KEY_REMOTE);
	if (!*word)
		return TP_REMOTE_ACCESS;
	/* The addresses of a key may be shifted against host addresses. An aligned word lies in
	 * one piece of memory. */
	return (uintptr_t)*word % 8 ? TP_INVALID_REQUEST : TP_ACCEPT;
}

/* what the atomic returns; executed once, when it is expected */
static enum tp_verdict execute_atomic(const struct tp_qp *qp,
				      const struct wire_packet *pkt, uint64_t *original)
{
	const struct wire_atomic_eth *a = &pkt->atomic;
	uint64_t *word;
	enum tp_verdict verdict =
		find_word(qp, a->va, a->rkey, IBV_ACCESS_REMOTE_ATOMIC, &word);
	bool there;

	if (verdict != TP_ACCEPT)
		return verdict;
	if ((pkt->bth.opcode & ~WIRE_TRANSPORT_MASK) == WIRE_FETCH_ADD)
		there = guard_fetch_add(word, a->swap_add, original);
	else
		there = guard_compare_swap(word, a->compare, a->swap_add, original);
	return there ? TP_ACCEPT : TP_REMOTE_ACCESS;
}

/* one store of a word; executed once, when it is expected */
static enum tp_verdict execute_atomic_write(const struct tp_qp *qp,
					    const struct wire_packet *pkt)
{
	const struct wire_reth *reth = &pkt->reth;
	enum tp_verdict verdict = TP_INVALID_REQUEST;
	uint64_t *word;

	if (reth->length_bytes == 8 && pkt->payload_bytes == 8)
		verdict = find_word(qp, reth->va, reth->rkey, IBV_ACCESS_REMOTE_WRITE, &word);
	if (verdict == TP_ACCEPT)
		guard_store_word_spun_on(word, pkt->payload, 8);
	return verdict;
}

/* What a FLUSH asks for is there already: a message is stored before the next one is received,
 * and stores of this processor become visible to all others in their order. Only the key is
 * left to be checked. No memory is persistent: no key has that right (A19.4). */
static enum tp_verdict check_flush(const struct tp_qp *qp, const struct wire_packet *pkt)
{
	bool granted;

	if (!pkt->feth.placement || pkt->feth.placement & ~(WIRE_FLUSH_GLOBAL | WIRE_FLUSH_PERSISTENT) ||
	    pkt->feth.selectivity > WIRE_FLUSH_MR ||
	    !(qp->attr.qp_access_flags & TP_ACCESS_FLUSH_GLOBAL))
		return TP_INVALID_REQUEST;
	if (pkt->feth.placement & WIRE_FLUSH_PERSISTENT)
		return TP_REMOTE_ACCESS;
	if (pkt->feth.selectivity == WIRE_FLUSH_MR)
		granted = qp->ops->grants(qp->ctx, pkt->reth.rkey, TP_ACCESS_FLUSH_GLOBAL);
	else
		granted = tp_may_access(qp, &pkt->reth, TP_ACCESS_FLUSH_GLOBAL);
	return granted ? TP_ACCEPT : TP_REMOTE_ACCESS;
}

/* Is there room in the ring? The oldest resource is dropped unless it has still to be answered. */
static bool has_room(const struct tp_responder *r)
{
	const struct tp_resource *oldest;

	if (r->res_size == 0)
		return false;
	if (r->res_head < r->res_size)
		return true;
	oldest = resource_at(r, r->res_head);
	return !oldest->pending || oldest->replayed;
}

static void queue(struct tp_responder *r, const struct tp_resource *res, uint32_t packets)
{
	*resource_at(r, r->res_head) = *res;
	r->res_head++;
	if (r->res_head - r->res_scan > r->res_size)
		r->res_scan = r->res_head - r->res_size;
	tp_expect_next(r, packets, 1);
	/* the response acknowledges all requests before it */
	r->pending = TP_RESPONSE_RESOURCE;
	tp_owes_nothing(r);
}

static enum tp_resource_kind kind_of(uint32_t flags)
{
	if (flags & WIRE_HAS_FETH)
		return TP_RESOURCE_FLUSH;
	if (!(flags & WIRE_IS_ATOMIC))
		return TP_RESOURCE_READ;
	return flags & WIRE_HAS_RETH ? TP_RESOURCE_ATOMIC_WRITE : TP_RESOURCE_ATOMIC;
}

enum tp_verdict tp_resource_request(struct tp_qp *qp, const struct wire_packet *pkt,
				    uint32_t flags)
{
	struct tp_responder *r = &qp->resp;
	struct tp_resource res = {
		.first_psn = r->epsn,
		.start_psn = r->epsn,
		.nxt_psn = r->epsn,
		.kind = kind_of(flags),
		.pending = true,
		.msn = (r->msn + 1) & 0xffffff,
		.va = pkt->reth.va,
		.rkey = pkt->reth.rkey,
	};
	uint32_t packets = 1;
	enum tp_verdict verdict;

	look_at_depth(qp);
	/* 9.7.4.1.2: not inside a message, not more than was agreed */
	if (r->message != TP_MESSAGE_NONE || !has_room(r))
		return TP_INVALID_REQUEST;
	if (res.kind == TP_RESOURCE_ATOMIC) {
		verdict = execute_atomic(qp, pkt, &res.original);
	} else if (res.kind == TP_RESOURCE_ATOMIC_WRITE) {
		verdict = execute_atomic_write(qp, pkt);
	} else if (res.kind == TP_RESOURCE_FLUSH) {
		verdict = check_flush(qp, pkt);
	} else {
		verdict = check_read(qp, &pkt->reth);
		res.length_bytes = res.stop_bytes = pkt->reth.length_bytes;
		packets = tp_packets(qp, pkt->reth.length_bytes);
	}
	if (verdict != TP_ACCEPT)
		return verdict;
	res.last_psn = res.end_psn = psn_add(r->epsn, packets - 1);
	queue(r, &res, packets);
	return TP_ACCEPT;
}

/* Return: the index of the resource that @at belongs to, or res_head */
static uint64_t find(const struct tp_responder *r, psn_t at)
{
	for (uint64_t i = r->res_head; i-- > oldest_kept(r);) {
		const struct tp_resource *res = resource_at(r, i);

		if (tp_psn_distance(at, res->first_psn) <=
		    tp_psn_distance(res->last_psn, res->first_psn))
			return i;
	}
	return r->res_head;
}

/* A READ is repeated, or the rest of it. It never asks for more than it did first. */
static bool restart_read(const struct tp_qp *qp, struct tp_resource *res,
			 const struct wire_packet *pkt)
{
	uint32_t offset = tp_psn_distance(pkt->bth.psn, res->first_psn) << qp->mtu_shift;
	const struct wire_reth *reth = &pkt->reth;

	if (reth->rkey != res->rkey || reth->va != res->va + offset ||
	    reth->length_bytes > res->length_bytes - offset)
		return false;
	res->start_psn = res->nxt_psn = pkt->bth.psn;
	res->stop_bytes = offset + reth->length_bytes;
	res->end_psn = psn_add(pkt->bth.psn, tp_packets(qp, reth->length_bytes) - 1);
	return true;
}

static void transmit_from(struct tp_responder *r, uint64_t index)
{
	resource_at(r, index)->pending = true;
	r->res_scan = MIN(r->res_scan, index);
	r->pending |= TP_RESPONSE_RESOURCE;
}

void tp_resource_duplicate(struct tp_qp *qp, const struct wire_packet *pkt,
			   uint32_t flags)
{
	struct tp_responder *r = &qp->resp;
	uint64_t index = find(r, pkt->bth.psn);
	struct tp_resource *res;

	if (index == r->res_head)
		return; /* it is no longer kept, so its requester cannot be waiting for it */
	res = resource_at(r, index);
	if (res->kind != kind_of(flags) ||
	    (res->kind == TP_RESOURCE_READ && !restart_read(qp, res, pkt)))
		return;
	res->nxt_psn = pkt->bth.psn;
	if (!res->pending)
		res->replayed = true;
	transmit_from(r, index);
}

void tp_resource_unsent(struct tp_qp *qp, psn_t at)
{
	struct tp_responder *r = &qp->resp;
	uint64_t index = find(r, at);

	if (index == r->res_head)
		return;
	resource_at(r, index)->nxt_psn = at;
	transmit_from(r, index);
}

static void done(struct tp_responder *r, struct tp_resource *res)
{
	res->pending = false;
	if (++r->res_scan == r->res_head)
		r->pending &= (uint8_t)~TP_RESPONSE_RESOURCE;
}

static bool read_response(struct tp_qp *qp, struct tp_resource *res,
			  struct tp_packet_out *out, uint32_t most)
{
	static const uint8_t operation[2][2] = {
		/* [first][last] */
		{WIRE_READ_RESP_MIDDLE, WIRE_READ_RESP_LAST},
		{WIRE_READ_RESP_FIRST, WIRE_READ_RESP_ONLY},
	};
	uint32_t offset = tp_psn_distance(res->nxt_psn, res->first_psn) << qp->mtu_shift;
	bool first = psn_eq(res->nxt_psn, res->start_psn);
	uint32_t left = tp_psn_distance(res->end_psn, res->nxt_psn) + 1;
	uint32_t packets = MIN(left, most);
	bool last = packets == left;
	uint32_t len = last ? res->stop_bytes - offset : packets << qp->mtu_shift;

	tp_fill_response(qp, out, operation[first][last], res->nxt_psn);
	if (unlikely(!tp_add_pieces(qp, TP_KEY_REMOTE, res->rkey, res->va + offset, len,
				    IBV_ACCESS_REMOTE_READ, out)))
		return false;
	out->hdr.aeth = (struct wire_aeth){TP_ACK_NO_CREDITS, res->msn};
	out->hdr.payload_bytes = len;
	out->hdr.packets = (uint16_t)packets;
	res->nxt_psn = psn_add(res->nxt_psn, packets);
	if (last)
		done(&qp->resp, res);
	return true;
}

static void atomic_response(struct tp_qp *qp, struct tp_resource *res, struct tp_packet_out *out)
{
	tp_fill_response(qp, out, WIRE_ATOMIC_ACK, res->first_psn);
	out->hdr.aeth = (struct wire_aeth){TP_ACK_NO_CREDITS, res->msn};
	out->hdr.atomic_ack = res->original;
	done(&qp->resp, res);
}

/* the oldest resource that has to be answered, or NULL */
static struct tp_resource *next_pending(struct tp_responder *r)
{
	for (; r->res_scan < r->res_head; r->res_scan++)
		if (resource_at(r, r->res_scan)->pending)
			return resource_at(r, r->res_scan);
	r->pending &= (uint8_t)~TP_RESPONSE_RESOURCE;
	return NULL;
}

bool tp_resource_transmit(struct tp_qp *qp, struct tp_packet_out *out, uint32_t most)
{
	struct tp_responder *r = &qp->resp;
	struct tp_resource *res;

	while ((res = next_pending(r))) {
		if (res->kind == TP_RESOURCE_ATOMIC) {
			atomic_response(qp, res, out);
			return true;
		}
		if (likely(read_response(qp, res, out, most)))
			return true;
		if (!res->replayed) {
			/* the memory went away before it was read */
			r->pending &= (uint8_t)~TP_RESPONSE_RESOURCE;
			tp_responder_fault(qp, TP_REMOTE_ACCESS, res->nxt_psn);
			return false;
		}
		/* All responses were sent before, and the program may know that its peer has
		 * them. A late duplicate is no reason to fail the QP, so it is dropped. A
		 * requester that does lack a response runs out of retries. */
		done(r, res);
	}
	return false;
}
