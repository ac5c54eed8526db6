/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Receive queues: requests in the order of posting, taken by the transport
 * when a message needs one. A shared receive queue is the same ring with a
 * limit that raises an event (IBA v1 10.2.9).
 */
#include <string.h>

#include "engine/private.h"
#include "runtime/rt.h"

int eng_rq_init(struct eng_rq *rq, uint32_t pd, uint32_t depth, uint32_t max_sge,
		struct eng_block *block, const struct eng_memory *memory, enum eng_queue of)
{
	uint32_t size = 1;

	/* one more, because the entry that is being received into keeps its place */
	while (size <= depth)
		size <<= 1;
	*rq = (struct eng_rq){
		.mask = size - 1, .depth = depth, .max_sge = max_sge, .pd = pd};
	rq->stride_bytes = (uint32_t)(sizeof(struct eng_rq_wr) +
				      MAX(max_sge, 1u) * sizeof(struct tp_sge));
	if (!eng_block_alloc(block, memory, of, (size_t)size * rq->stride_bytes))
		return -ENOMEM;
	rq->ring = block->at;
	return 0;
}

bool eng_rq_pop(struct eng_rq *rq, struct tp_recv_wr *wr)
{
	struct eng_rq_wr *from = eng_rq_at(rq, rq->head);

	if (rq->head == rq->tail)
		return false;
	wr->wr_id = from->wr_id;
	wr->num_sge = from->num_sge;
	wr->sge = from->sge;
	rq->head++;
	return true;
}

bool eng_srq_take(struct eng_srq *srq, struct eng_qp *qp, struct tp_recv_wr *wr)
{
	if (!eng_rq_pop(&srq->rq, wr))
		return false;
	/* other QPs take from the SRQ before this receive completes, and it may be resized */
	memcpy(qp->srq_sge, wr->sge, wr->num_sge * sizeof(*wr->sge));
	wr->sge = qp->srq_sge;
	if (unlikely(srq->rq.limit && eng_rq_count(&srq->rq) < srq->rq.limit)) {
		srq->rq.limit = 0; /* one event per arming (10.2.9.2) */
		qp->engine->cfg.async_event(qp->engine->cfg.ctx, IBV_EVENT_SRQ_LIMIT_REACHED,
					    srq->ctx);
	}
	return true;
}

int eng_srq_create_in(struct engine *e, const struct eng_memory *memory, uint32_t pd, uint32_t max_wr,
		      uint32_t max_sge, uint32_t limit, void *ctx, struct eng_srq **srq_out)
{
	struct eng_srq *srq;
	int ret;

	if (max_sge > TP_MAX_SGE || limit > max_wr)
		return -EINVAL;
	srq = rt_zalloc(sizeof(*srq));
	if (!srq)
		return -ENOMEM;
	ret = eng_rq_init(&srq->rq, pd, max_wr, max_sge, &srq->block, memory, ENG_QUEUE_SRQ);
	if (ret) {
		rt_free(srq);
		return ret;
	}
	srq->engine = e;
	srq->memory = memory;
	srq->rq.limit = limit;
	srq->ctx = ctx;
	eng_lock(e);
	list_add_tail(&srq->node, &e->srqs);
	eng_unlock(e);
	*srq_out = srq;
	return 0;
}

/* the requests of @srq move to @ring, which has room for them */
static void move_to(struct eng_srq *srq, struct eng_rq *ring)
{
	struct eng_rq *rq = &srq->rq;

	ring->limit = rq->limit;
	for (; rq->head != rq->tail; rq->head++)
		memcpy(eng_rq_at(ring, ring->tail++), eng_rq_at(rq, rq->head), rq->stride_bytes);
	*rq = *ring;
}

int eng_srq_modify(struct eng_srq *srq, const uint32_t *max_wr, const uint32_t *limit)
{
	struct eng_block block = {0}, old;
	struct eng_rq ring;
	int ret = max_wr ? eng_rq_init(&ring, srq->rq.pd, *max_wr, srq->rq.max_sge, &block,
				       srq->memory, ENG_QUEUE_SRQ) : 0;

	if (ret)
		return ret;
	eng_lock(srq->engine);
	if ((limit && *limit > (max_wr ? *max_wr : srq->rq.depth)) ||
	    (max_wr && *max_wr < eng_rq_count(&srq->rq)))
		ret = -EINVAL;
	if (!ret && max_wr) {
		move_to(srq, &ring);
		old = srq->block;
		srq->block = block;
		block = old;
	}
	if (!ret && limit)
		srq->rq.limit = *limit;
	eng_unlock(srq->engine);
	eng_block_free(&block); /* the one that is not used */
	return ret;
}

void eng_srq_query(struct eng_srq *srq, uint32_t *max_wr, uint32_t *max_sge, uint32_t *limit)
{
	eng_lock(srq->engine);
	*max_wr = srq->rq.depth;
	*max_sge = srq->rq.max_sge;
	*limit = srq->rq.limit;
	eng_unlock(srq->engine);
}

int eng_srq_destroy(struct eng_srq *srq)
{
	bool busy;

	eng_lock(srq->engine);
	busy = srq->users > 0;
	if (!busy) {
		list_del(&srq->node);
		eng_xrc_srq_gone(srq);
		eng_tags_free(srq);
	}
	eng_unlock(srq->engine);
	if (busy)
		return -EBUSY;
	eng_block_free(&srq->block);
	rt_free(srq);
	return 0;
}

int eng_srq_post_recv(struct eng_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	int ret;

	eng_lock(srq->engine);
	ret = eng_rq_post(&srq->rq, &wr);
	eng_unlock(srq->engine);
	if (ret && bad)
		*bad = wr;
	return ret;
}
