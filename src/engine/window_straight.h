/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The straight way of a one-sided request through a window: a WRITE or READ of
 * one piece, no longer than a slice, on the slot that the QP used last. It is
 * what eng_window_do() does with one when all is well, and it looks first:
 * what it does not take goes there, or by packets. What it leaves out: the
 * list of pieces, slices, the search for the slot, and every count of what
 * could not be done.
 *
 * Above it stand the steps that both ways share.
 */
#ifndef SOFTIB_ENGINE_WINDOW_STRAIGHT_H
#define SOFTIB_ENGINE_WINDOW_STRAIGHT_H

#include "base/copy.h"
#include "engine/window_slots.h"
#include "transport/small.h"

#define SLICE_BYTES (256u << 10) /* copied without letting go of the lock */

/** window_inside() - does the grant cover these bytes, with this right? What is
 *  below g->va is farther from it than any length: a region does not wrap */
static inline bool window_inside(const struct eng_grant *g, uint64_t va, uint32_t length_bytes,
				 int right)
{
	return length_bytes <= g->length_bytes &&
	       va - g->va <= g->length_bytes - length_bytes && g->access & right;
}

/* --- the section --- */

static inline void window_leave(struct eng_windows *w)
{
	atomic_store_explicit(&w->cfg.page->section, 0, memory_order_release);
}

/** window_enter() - Return: true between here and window_leave() the target waits
 *  for us, and all that was granted still stands */
static inline bool window_enter(const struct engine *e, const struct eng_grant *g)
{
	struct eng_windows *w = e->windows;

	atomic_store_explicit(&w->cfg.page->section, g->peer, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	if (unlikely(w->cfg.fenced))
		atomic_thread_fence(memory_order_seq_cst);
	if (likely(atomic_load_explicit(&e->cfg.devpage->route_epoch,
					memory_order_acquire) == g->epoch &&
		   atomic_load_explicit(g->qp_token, memory_order_acquire) ==
			   g->qp_value &&
		   atomic_load_explicit(g->window_token, memory_order_acquire) ==
			   g->window_value))
		return true;
	window_leave(w);
	return false;
}

/* --- afterwards --- */

/** window_count() - the packets that this would have been (9.3, 9.4): RETH 4
 *  dwords, AETH 1, AtomicETH 7, AtomicAckETH 2; one acknowledgement for a WRITE */
static inline void window_count(const struct slot *s, int right, uint32_t length_bytes)
{
	struct abi_window_flow *f = s->g.flow;
	uint64_t each = s->packet_dwords, payload = (length_bytes + 3u) / 4;
	uint64_t n = ((uint64_t)length_bytes + (1u << s->mtu_shift) - 1) >> s->mtu_shift;

	switch (right) {
	case IBV_ACCESS_REMOTE_WRITE:
		eng_window_add(&f->packets, n);
		eng_window_add(&f->dwords, n * each + 4 + payload);
		eng_window_add(&f->answer_packets, 1);
		eng_window_add(&f->answer_dwords, each + 1);
		break;
	case IBV_ACCESS_REMOTE_READ:
		eng_window_add(&f->packets, 1);
		eng_window_add(&f->dwords, each + 4);
		eng_window_add(&f->answer_packets, n);
		eng_window_add(&f->answer_dwords, n * each + (n > 1 ? 2 : 1) + payload);
		break;
	default:
		eng_window_add(&f->packets, 1);
		eng_window_add(&f->dwords, each + 7);
		eng_window_add(&f->answer_packets, 1);
		eng_window_add(&f->answer_dwords, each + 3);
	}
}

/** window_complete() - its completion, of @opcode, if it is to have one */
static inline void window_complete(struct eng_qp *qp, const struct ibv_send_wr *wr,
				   enum ibv_wc_opcode opcode, uint32_t length_bytes)
{
	struct eng_cq *cq = qp->send_cq;

	if (!(wr->send_flags & IBV_SEND_SIGNALED) && !qp->init.sq_sig_all)
		return;
	*eng_cq_next(cq) = (struct ibv_wc){
		.wr_id = wr->wr_id,
		.status = IBV_WC_SUCCESS,
		.opcode = opcode,
		.byte_len = length_bytes,
		.qp_num = qp->init.qpn,
	};
	eng_cq_added(cq, false);
}

/* --- the straight way --- */

/** eng_window_straight() - Return: true: @wr is done, and completed; false: not so
 *  simple, nothing changed */
static inline bool eng_window_straight(struct engine *e, struct eng_qp *qp,
				       const struct ibv_send_wr *wr)
{
	const struct ibv_sge *sge = wr->sg_list;
	bool write = wr->opcode == IBV_WR_RDMA_WRITE;
	int right = write ? IBV_ACCESS_REMOTE_WRITE : IBV_ACCESS_REMOTE_READ;
	struct slot *s = qp->slot;
	char *local, *window;
	uint32_t len;

	if ((!write && wr->opcode != IBV_WR_RDMA_READ) || wr->num_sge != 1 || !s)
		return false;
	len = sge->length;
	if (len - 1 >= SLICE_BYTES || !is_for(s, qp->init.qpn, wr->wr.rdma.rkey) ||
	    s->state != SLOT_GRANTED ||
	    !window_inside(&s->g, wr->wr.rdma.remote_addr, len, right) ||
	    !tp_small_idle(qp->tp) || eng_cq_is_full(qp->send_cq) || eng_spoils(e))
		return false;
	local = (char *)(uintptr_t)sge->addr;
	if (wr->send_flags & IBV_SEND_INLINE) {
		if (unlikely(!write || len > qp->init.max_inline))
			return false;
	} else {
		local = eng_mem_recent(e, qp->init.pd, sge->lkey, sge->addr, len,
				       write ? 0 : IBV_ACCESS_LOCAL_WRITE);
		if (unlikely(!local || (!write && !qp->tp->attr.max_rd_atomic)))
			return false;
	}
	if (unlikely(!window_enter(e, &s->g)))
		return false;
	window = s->g.base + (wr->wr.rdma.remote_addr - s->g.va);
	if (write)
		copy_spun_on(window, local, len);
	else
		memcpy(local, window, len);
	window_leave(e->windows);
	window_count(s, right, len);
	eng_window_add(&e->windows->cfg.page->operations, 1);
	qp->window_run = 0;
	window_complete(qp, wr, write ? IBV_WC_RDMA_WRITE : IBV_WC_RDMA_READ, len);
	return true;
}

#endif
