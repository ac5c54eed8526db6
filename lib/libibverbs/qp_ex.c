/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The builder interface ibv_wr_*: between wr_start and wr_complete requests
 * are collected in arrays that stay with the QP, wr_complete posts them all.
 * A mistake on the way (too many SGEs, a request the QP cannot do) is
 * reported by wr_complete, and then nothing is posted.
 */
#include <stdlib.h>

#include "engine/lock.h"
#include "soft.h"

/** struct soft_builder - requests under construction, and their memory */
struct soft_builder {
	/* From wr_start to wr_complete or wr_abort. A mutex would wait twice a request for
	 * what was stored into the peer's lines */
	struct eng_lock lock;
	int error;
	unsigned num_wr, num_sge, max_wr, max_sge;
	struct request {
		struct ibv_send_wr wr;
		unsigned first_sge;
	} *requests;
	struct ibv_sge *sges;
	uint8_t *inline_data; /* max_inline bytes for each of max_wr, and a word at least */
	uint32_t max_inline;
};

#define IBV_QP_EX_WITH_FLUSH (1 << 11) /* newer than Debian 12's verbs, as wr_flush() is */
_Static_assert(offsetof(struct soft_qp, wr_flush) == sizeof(struct ibv_qp_ex),
	       "programs find wr_flush() behind the members of struct ibv_qp_ex");

#define OP(name) IBV_QP_EX_WITH_##name
#define OPS_UD (OP(SEND) | OP(SEND_WITH_IMM))
#define OPS_UC                                                                                 \
	(OPS_UD | OP(RDMA_WRITE) | OP(RDMA_WRITE_WITH_IMM) | OP(BIND_MW) | OP(LOCAL_INV))
#define OPS_RC                                                                                 \
	(OPS_UC | OP(RDMA_READ) | OP(ATOMIC_CMP_AND_SWP) | OP(ATOMIC_FETCH_AND_ADD) |          \
	 OP(SEND_WITH_INV) | OP(ATOMIC_WRITE) | IBV_QP_EX_WITH_FLUSH)

static struct soft_builder *builder_of(struct ibv_qp_ex *ex)
{
	return container_of(ex, struct soft_qp, ex)->builder;
}

static void wr_start(struct ibv_qp_ex *ex)
{
	struct soft_builder *b = builder_of(ex);

	eng_lock_take(&b->lock);
	b->error = 0;
	b->num_wr = b->num_sge = 0;
}

static void wr_abort(struct ibv_qp_ex *ex)
{
	eng_lock_give(&builder_of(ex)->lock);
}

static int wr_complete(struct ibv_qp_ex *ex)
{
	struct soft_builder *b = builder_of(ex);
	struct eng_qp *qp = container_of(ex, struct soft_qp, ex)->eng;
	int rc = b->error;

	for (unsigned i = 0; i < b->num_wr; i++) {
		struct request *r = &b->requests[i];

		r->wr.sg_list = b->sges + r->first_sge;
		r->wr.next = i + 1 < b->num_wr ? &r[1].wr : NULL;
	}
	if (!rc && b->num_wr)
		rc = verbs_err(b->num_wr == 1 ?
				       eng_post_send(qp, &b->requests[0].wr, NULL, ah_av) :
				       eng_post_send_all(qp, &b->requests[0].wr, ah_av));
	eng_lock_give(&b->lock);
	return rc;
}

/* Return the next request, cleared; a spare one if the queue's depth is reached. */
static struct ibv_send_wr *next_wr(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode)
{
	struct soft_builder *b = builder_of(ex);
	struct request *r;

	if (b->num_wr == b->max_wr) {
		b->error = ENOMEM;
		b->num_wr--;
	}
	r = &b->requests[b->num_wr++];
	r->first_sge = b->num_sge;
	r->wr = (struct ibv_send_wr){.wr_id = ex->wr_id, .opcode = opcode,
				     .send_flags = ex->wr_flags};
	return &r->wr;
}

static struct ibv_send_wr *this_wr(struct soft_builder *b)
{
	static _Thread_local struct ibv_send_wr nothing;

	if (b->num_wr)
		return &b->requests[b->num_wr - 1].wr;
	b->error = EINVAL;
	return &nothing;
}

static void wr_send(struct ibv_qp_ex *ex)
{
	next_wr(ex, IBV_WR_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm_data)
{
	next_wr(ex, IBV_WR_SEND_WITH_IMM)->imm_data = imm_data;
}

static void wr_send_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	next_wr(ex, IBV_WR_SEND_WITH_INV)->invalidate_rkey = rkey;
}

static void wr_local_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	next_wr(ex, IBV_WR_LOCAL_INV)->invalidate_rkey = rkey;
}

static void wr_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *info)
{
	struct ibv_send_wr *wr = next_wr(ex, IBV_WR_BIND_MW);

	wr->bind_mw.mw = mw;
	wr->bind_mw.rkey = rkey;
	wr->bind_mw.bind_info = *info;
}

static struct ibv_send_wr *rdma(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode, uint32_t rkey,
				uint64_t remote_addr)
{
	struct ibv_send_wr *wr = next_wr(ex, opcode);

	wr->wr.rdma.remote_addr = remote_addr;
	wr->wr.rdma.rkey = rkey;
	return wr;
}

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	rdma(ex, IBV_WR_RDMA_READ, rkey, remote_addr);
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	rdma(ex, IBV_WR_RDMA_WRITE, rkey, remote_addr);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
			      __be32 imm_data)
{
	rdma(ex, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, remote_addr)->imm_data = imm_data;
}

static void atomic(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode, uint32_t rkey,
		   uint64_t remote_addr, uint64_t compare_add, uint64_t swap)
{
	struct ibv_send_wr *wr = next_wr(ex, opcode);

	wr->wr.atomic.remote_addr = remote_addr;
	wr->wr.atomic.rkey = rkey;
	wr->wr.atomic.compare_add = compare_add;
	wr->wr.atomic.swap = swap;
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
			      uint64_t compare, uint64_t swap)
{
	atomic(ex, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, remote_addr, compare, swap);
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
				uint64_t add)
{
	atomic(ex, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, remote_addr, add, 0);
}

static void wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t remote_qpn,
			   uint32_t remote_qkey)
{
	struct ibv_send_wr *wr = this_wr(builder_of(ex));

	wr->wr.ud.ah = ah;
	wr->wr.ud.remote_qpn = remote_qpn;
	wr->wr.ud.remote_qkey = remote_qkey;
}

static void wr_set_xrc_srqn(struct ibv_qp_ex *ex, uint32_t remote_srqn)
{
	this_wr(builder_of(ex))->qp_type.xrc.remote_srqn = remote_srqn;
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t num_sge, const struct ibv_sge *list)
{
	struct soft_builder *b = builder_of(ex);
	struct ibv_send_wr *wr = this_wr(b);

	if (num_sge > container_of(ex, struct soft_qp, ex)->cap.max_send_sge ||
	    num_sge > b->max_sge - b->num_sge) {
		b->error = EINVAL;
		return;
	}
	memcpy(b->sges + b->num_sge, list, num_sge * sizeof(*list));
	wr->num_sge = (int)num_sge;
	b->num_sge += (unsigned)num_sge;
}

static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
	struct ibv_sge sge = {.addr = addr, .length = length, .lkey = lkey};

	wr_set_sge_list(ex, length ? 1 : 0, &sge);
}

/* Inline data belongs to the caller again when the call returns, not at wr_complete, so it is
 * copied here. */
static void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t num_buf,
				    const struct ibv_data_buf *list)
{
	struct soft_builder *b = builder_of(ex);
	struct ibv_send_wr *wr = this_wr(b);
	size_t bytes = 0;
	uint8_t *to;

	if (!b->num_wr)
		return;
	to = b->inline_data + (size_t)(b->num_wr - 1) * b->max_inline;
	for (size_t i = 0; i < num_buf; i++) {
		if (list[i].length > b->max_inline - bytes) {
			b->error = EINVAL;
			return;
		}
		memcpy(to + bytes, list[i].addr, list[i].length);
		bytes += list[i].length;
	}
	wr_set_sge(ex, 0, (uintptr_t)to, (uint32_t)bytes);
	wr->send_flags |= IBV_SEND_INLINE;
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	struct ibv_data_buf buf = {.addr = addr, .length = length};

	wr_set_inline_data_list(ex, 1, &buf);
}

/* the word that is stored is sent inline, even if the QP was created without room for inline
 * data */
static void wr_atomic_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
			    const void *atomic_wr)
{
	struct ibv_data_buf word = {.addr = (void *)(uintptr_t)atomic_wr, .length = 8};

	rdma(ex, IBV_WR_ATOMIC_WRITE, rkey, remote_addr);
	wr_set_inline_data_list(ex, 1, &word);
}

static void wr_flush(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, size_t length,
		     uint8_t placement, uint8_t selectivity)
{
	struct ibv_send_wr *wr = next_wr(ex, IBV_WR_SEND); /* until the next line */

	eng_flush_wr(wr, rkey, remote_addr, (uint32_t)length, placement, selectivity);
	if (length > UINT32_MAX)
		builder_of(ex)->error = EINVAL;
}

static struct soft_builder *make_builder(const struct ibv_qp_cap *cap)
{
	struct soft_builder *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->max_wr = MAX(cap->max_send_wr, 1u);
	b->max_sge = b->max_wr * cap->max_send_sge;
	b->max_inline = MAX(cap->max_inline_data, (uint32_t)sizeof(uint64_t));
	b->lock.barrier = context_barrier();
	b->requests = calloc(b->max_wr, sizeof(*b->requests));
	b->sges = calloc(b->max_sge, sizeof(*b->sges));
	b->inline_data = calloc(b->max_wr, b->max_inline);
	if (b->requests && b->sges && b->inline_data)
		return b;
	free(b->requests);
	free(b->sges);
	free(b->inline_data);
	free(b);
	return NULL;
}

/**
 * qp_ex_prepare() - give the QP the functions of @send_ops
 * Return: 0; -EOPNOTSUPP an operation that its type does not have; -ENOMEM
 */
int qp_ex_prepare(struct soft_qp *qp, uint64_t send_ops)
{
	static const uint64_t can[] = {[IBV_QPT_RC] = OPS_RC,
				       [IBV_QPT_UC] = OPS_UC,
				       [IBV_QPT_UD] = OPS_UD,
				       [IBV_QPT_RAW_PACKET] = OP(SEND),
				       [IBV_QPT_XRC_SEND] = OPS_RC,
				       [IBV_QPT_XRC_RECV] = 0};
	struct ibv_qp_ex *ex = &qp->ex;

	if (send_ops & ~can[qp->ibv.qp_type])
		return -EOPNOTSUPP;
	qp->builder = make_builder(&qp->cap);
	if (!qp->builder)
		return -ENOMEM;
	ex->wr_start = wr_start;
	ex->wr_complete = wr_complete;
	ex->wr_abort = wr_abort;
	ex->wr_set_sge = wr_set_sge;
	ex->wr_set_sge_list = wr_set_sge_list;
	ex->wr_set_inline_data = wr_set_inline_data;
	ex->wr_set_inline_data_list = wr_set_inline_data_list;
	if (qp->ibv.qp_type == IBV_QPT_UD)
		ex->wr_set_ud_addr = wr_set_ud_addr;
	if (qp->ibv.qp_type == IBV_QPT_XRC_SEND)
		ex->wr_set_xrc_srqn = wr_set_xrc_srqn;
#define IF(flag, name)                                                                         \
	if (send_ops & OP(flag))                                                               \
		ex->wr_##name = wr_##name
	IF(SEND, send);
	IF(SEND_WITH_IMM, send_imm);
	IF(SEND_WITH_INV, send_inv);
	IF(BIND_MW, bind_mw);
	IF(LOCAL_INV, local_inv);
	IF(RDMA_WRITE, rdma_write);
	IF(RDMA_WRITE_WITH_IMM, rdma_write_imm);
	IF(RDMA_READ, rdma_read);
	IF(ATOMIC_CMP_AND_SWP, atomic_cmp_swp);
	IF(ATOMIC_FETCH_AND_ADD, atomic_fetch_add);
	IF(ATOMIC_WRITE, atomic_write);
#undef IF
	if (send_ops & IBV_QP_EX_WITH_FLUSH)
		qp->wr_flush = wr_flush;
	return 0;
}

void qp_ex_free(struct soft_qp *qp)
{
	if (!qp->builder)
		return;
	free(qp->builder->requests);
	free(qp->builder->sges);
	free(qp->builder->inline_data);
	free(qp->builder);
}

/** ibv_qp_to_qp_ex() - NULL when the QP was made without send_ops_flags */
EXPORT struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *ibqp)
{
	struct soft_qp *qp = to_qp(ibqp);

	return qp->builder ? &qp->ex : NULL;
}
