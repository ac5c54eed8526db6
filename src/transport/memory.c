/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Between packets and registered memory: gather lists, scatter lists.
 */
#include "transport/guard.h"
#include "transport/qp.h"

struct tp_cursor tp_cursor_at(const struct tp_sge *sge, unsigned num_sge, uint32_t offset)
{
	struct tp_cursor at = {0, offset};

	while (at.sge < num_sge && at.offset >= sge[at.sge].length_bytes)
		at.offset -= sge[at.sge++].length_bytes;
	return at;
}

bool tp_add_pieces(struct tp_qp *qp, enum tp_key whose, uint32_t key, uint64_t va,
		   uint32_t length_bytes, int access, struct tp_packet_out *out)
{
	while (length_bytes > 0) {
		uint64_t run = length_bytes;
		const void *from = qp->ops->mem(qp->ctx, key, va, &run, access, whose);

		if (unlikely(!from || out->num_pieces == TP_MAX_PIECES))
			return false;
		out->piece[out->num_pieces].ptr = from;
		out->piece[out->num_pieces++].len = (uint32_t)run;
		va += run;
		length_bytes -= (uint32_t)run;
	}
	return true;
}

enum tp_key tp_key_of(const struct tp_sqe *sqe)
{
	switch (sqe->opcode) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
	case IBV_WR_ATOMIC_WRITE:
		return TP_KEY_WRITE;
	case IBV_WR_RDMA_READ:
		return TP_KEY_READ;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return TP_KEY_ATOMIC;
	default:
		return TP_KEY_SEND;
	}
}

bool tp_gather(struct tp_qp *qp, uint32_t index, struct tp_cursor *at,
	       uint32_t length_bytes, struct tp_packet_out *out)
{
	enum tp_key whose = tp_key_of(tp_sqe(qp, index));
	const struct tp_sge *sge = tp_sges(qp, index);

	out->num_pieces = 0;
	while (length_bytes > 0) {
		const struct tp_sge *s = &sge[at->sge];
		uint32_t len = MIN(tp_piece_left(s, at->offset), length_bytes);

		if (unlikely(!tp_add_pieces(qp, whose, s->lkey, s->addr + at->offset, len, 0,
					    out)))
			return false;
		length_bytes -= len;
		tp_cursor_advance(at, s, len);
	}
	return true;
}

bool tp_may_access(const struct tp_qp *qp, const struct wire_reth *reth, int access)
{
	uint64_t length = reth->length_bytes;

	return length == 0 || qp->ops->mem(qp->ctx, reth->rkey, reth->va, &length, access,
					   TP_KEY_REMOTE);
}

static void put(struct tp_qp *qp, void *to, const void *from, uint32_t len, uint32_t offset)
{
	if (qp->ops->put)
		qp->ops->put(qp->ctx, to, from, len, offset);
	else
		guard_store(to, from, len);
}

enum tp_copy tp_scatter(struct tp_qp *qp, enum tp_key whose, const struct tp_sge *sge,
			unsigned num_sge, struct tp_cursor *at, const void *data,
			uint32_t length_bytes)
{
	const uint8_t *from = data;

	while (length_bytes > 0) {
		const struct tp_sge *s = &sge[at->sge];
		uint32_t len;

		if (unlikely(at->sge >= num_sge))
			return TP_COPY_TOO_SHORT;
		len = MIN(tp_piece_left(s, at->offset), length_bytes);
		if (len > 0) {
			uint64_t run = len;
			void *to = qp->ops->mem(qp->ctx, s->lkey, s->addr + at->offset, &run,
						IBV_ACCESS_LOCAL_WRITE, whose);
			if (unlikely(!to))
				return TP_COPY_VIOLATION;
			len = (uint32_t)run;
			put(qp, to, from, len, at->offset);
			from += len;
		}
		length_bytes -= len;
		tp_cursor_advance(at, s, len);
	}
	return TP_COPY_OK;
}
