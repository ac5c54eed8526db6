/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The fast path of a one-sided request through a window. It takes an atomic, or a
 * WRITE or READ with one scatter/gather entry that is no longer than a slice, if
 * the QP used the same window slot last. It has the effect of eng_window_takes(), but
 * no loops over entries and slices, no search for the slot and no count of
 * failures. It checks before it changes anything: a request that it does not take
 * is left to eng_window_takes(), or to packets.
 *
 * The first half of the file has the steps that the fast path and eng_window_takes()
 * share.
 */
#ifndef SOFTIB_ENGINE_WINDOW_FAST_H
#define SOFTIB_ENGINE_WINDOW_FAST_H

#include "base/copy.h"
#include "engine/window_slots.h"
#include "engine/fast.h"

/* --- the memory --- */

/** window_inside() - does the grant cover these bytes? */
static inline bool window_inside(const struct eng_grant *g, uint64_t va, uint32_t length_bytes)
{
	return range_covers(g->va, g->length_bytes, va, length_bytes);
}

static inline char *in_window(const struct slot *s, uint64_t va)
{
	return s->g.base + (va - s->g.va);
}

/* --- the section --- */

static inline void window_leave(struct abi_window_page *page)
{
	atomic_store_explicit(&page->section, 0, memory_order_release);
}

/** window_enter() - Return: true between here and window_leave() the target waits
 *  for us, and all that was granted still stands. @page: ours; @fence: targets
 *  have none on us */
static inline bool window_enter(struct engine *e, struct abi_window_page *page,
				const struct eng_grant *g, bool fence)
{
	e->in_windows = true;
	atomic_store_explicit(&page->section, g->peer, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	if (unlikely(fence))
		atomic_thread_fence(memory_order_seq_cst);
	if (likely(atomic_load_explicit(&e->cfg.devpage->route_epoch,
					memory_order_acquire) == g->epoch &&
		   atomic_load_explicit(g->qp_token, memory_order_acquire) ==
			   g->qp_value &&
		   atomic_load_explicit(g->window_token, memory_order_acquire) ==
			   g->window_value))
		return true;
	window_leave(page);
	return false;
}

/* --- doing it --- */

/** window_atomic() - @opcode on @word, which is aligned. Return: what it was before */
static inline uint64_t window_atomic(unsigned opcode, void *word, uint64_t compare_add,
				     uint64_t swap)
{
	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		return __atomic_fetch_add((uint64_t *)word, compare_add, __ATOMIC_SEQ_CST);
	__atomic_compare_exchange_n((uint64_t *)word, &compare_add, swap, false,
				    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	return compare_add;
}

/* --- afterwards --- */

/** window_count_more() - a request of several packets: those beyond the first */
static noinline void window_count_more(const struct slot *s, enum slot_use use,
				       uint32_t length_bytes)
{
	uint32_t more = (length_bytes - 1) >> __builtin_ctz(s->mtu_bytes);

	if (use == SLOT_WRITES) {
		eng_window_add(&s->count->write_more, more);
		return;
	}
	eng_window_add(&s->count->read_more, more);
	eng_window_add(&s->count->long_reads, 1);
}

/** window_count() - what the packets that this would have been follow from. @word: of one
 *  packet at most; a constant */
__attribute__((always_inline)) static inline void
window_count(const struct slot *s, enum slot_use use, uint32_t length_bytes, const bool word)
{
	struct abi_window_count *c = s->count;
	uint32_t dwords = (length_bytes + 3u) / 4;

	if (use == SLOT_ATOMICS) {
		eng_window_add(&c->atomics, 1);
		return;
	}
	eng_window_add(use == SLOT_WRITES ? &c->writes : &c->reads, 1);
	eng_window_add(use == SLOT_WRITES ? &c->write_dwords : &c->read_dwords, dwords);
	if (!word && unlikely(length_bytes > s->mtu_bytes))
		window_count_more(s, use, length_bytes);
}

/* --- the fast path --- */

/* all but the local memory: does the slot that the QP used last allow it? */
static inline bool fast_may(const struct eng_qp *qp, bool signaled, uint64_t va, uint32_t rkey,
			    uint32_t len, enum slot_use use)
{
	const struct slot *s = qp->slot;

	return len - 1 < s->fast_bytes[use] && is_for(s, qp->init.qpn, rkey) &&
	       window_inside(&s->g, va, len) && tp_idle(qp->tp) &&
	       !(signaled && eng_cq_is_full(qp->send_cq));
}

/* the local memory: what a WRITE sends, or where the bytes of the others come. NULL: not by
 * a window, or with @word not known */
__attribute__((always_inline)) static inline void *
fast_local(struct engine *e, const struct eng_qp *qp, const struct ibv_send_wr *wr,
	   const enum slot_use use, const bool word)
{
	const struct tp_sge *sge = (const struct tp_sge *)wr->sg_list;
	bool is_inline = wr->send_flags & IBV_SEND_INLINE;

	if (use == SLOT_WRITES)
		return is_inline && unlikely(sge->length_bytes > qp->init.max_inline) ?
			       NULL :
			       (void *)eng_source(e, qp, sge, wr->send_flags, word);
	if (unlikely(is_inline || !tp_may_read(qp->tp)))
		return NULL;
	return eng_mem_recent(e, qp->init.pd, sge->lkey, sge->addr, sge->length_bytes,
			      IBV_ACCESS_LOCAL_WRITE);
}

/* Return: false: the program's memory is gone */
__attribute__((always_inline)) static inline bool
fast_move(const struct ibv_send_wr *wr, void *window, void *local, uint32_t len,
	  const enum slot_use use, const bool word)
{
	uint64_t was;

	if (use == SLOT_WRITES)
		return word ? guard_load_word_spun_on(window, local, len) :
			      guard_load_spun_on(window, local, len);
	if (use == SLOT_ATOMICS)
		was = window_atomic(wr->opcode, window, wr->wr.atomic.compare_add,
				    wr->wr.atomic.swap);
	guard_store(local, use == SLOT_ATOMICS ? &was : window, len);
	return true;
}

/* @word: of eight bytes at most, for which nothing has to be looked up and whose completion
 * wakes nobody: no function is called, so that all can stay in registers. Its caller posts,
 * and so does not poll: the completion goes into the ring */
__attribute__((always_inline)) static inline void
fast_complete(struct eng_qp *qp, const struct ibv_send_wr *wr, uint8_t opcode, uint32_t len,
	      const bool word)
{
	struct eng_cq *cq = qp->send_cq;

	if (!word) {
		eng_cq_add_sent(qp, wr->wr_id, IBV_WC_SUCCESS, opcode, len);
		return;
	}
	eng_wc_sent(qp, wr->wr_id, IBV_WC_SUCCESS, opcode, len, &cq->ring[cq->tail & cq->mask]);
	cq->tail++;
}

/* the opcode of @wr, a constant where @use is for one alone */
static inline unsigned fast_opcode(const struct ibv_send_wr *wr, const enum slot_use use)
{
	return use == SLOT_WRITES ? IBV_WR_RDMA_WRITE :
	       use == SLOT_READS  ? IBV_WR_RDMA_READ :
				    wr->opcode;
}

/* a request of one piece. @use, @word: constants */
__attribute__((always_inline)) static inline bool
fast_do(struct engine *e, struct eng_qp *qp, const struct ibv_send_wr *wr,
	const enum slot_use use, const bool word)
{
	const bool is_atomic = use == SLOT_ATOMICS;
	uint64_t va = is_atomic ? wr->wr.atomic.remote_addr : wr->wr.rdma.remote_addr;
	uint32_t rkey = is_atomic ? wr->wr.atomic.rkey : wr->wr.rdma.rkey;
	bool signaled = tp_is_signaled(qp->tp, wr->send_flags), there;
	const struct slot *s = qp->slot;
	uint32_t len = wr->sg_list->length;
	struct abi_window_page *page;
	void *local;

	if (word && (len > sizeof(uint64_t) || eng_cq_must_notify(qp->send_cq, false)))
		return false;
	if ((is_atomic && (len != sizeof(uint64_t) || va % 8)) ||
	    unlikely(!fast_may(qp, signaled, va, rkey, len, use)))
		return false;
	local = fast_local(e, qp, wr, use, word);
	page = e->windows->cfg.page;
	if (unlikely(!local || !window_enter(e, page, &s->g, false)))
		return false;
	there = fast_move(wr, in_window(s, va), local, len, use, word);
	window_leave(page);
	if (unlikely(!there)) {
		e->probes = true;
		return false;
	}
	window_count(s, use, len, word);
	qp->window_run = 0;
	if (signaled)
		fast_complete(qp, wr, tp_wc_opcode(fast_opcode(wr, use)), len, word);
	return true;
}

/** eng_window_fast() - Return: true: @wr is done, and completed; false: not so
 *  simple, nothing changed */
static inline bool eng_window_fast(struct engine *e, struct eng_qp *qp,
				   const struct ibv_send_wr *wr)
{
	if (wr->num_sge != 1)
		return false;
	if (likely(wr->opcode == IBV_WR_RDMA_WRITE))
		return fast_do(e, qp, wr, SLOT_WRITES, false);
	if (wr->opcode == IBV_WR_RDMA_READ)
		return fast_do(e, qp, wr, SLOT_READS, false);
	if (wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP)
		return fast_do(e, qp, wr, SLOT_ATOMICS, false);
	return false;
}

/** eng_window_write_word() - the same of a WRITE of eight bytes at most, without a call */
static inline bool eng_window_write_word(struct engine *e, struct eng_qp *qp,
					 const struct ibv_send_wr *wr)
{
	return wr->num_sge == 1 && fast_do(e, qp, wr, SLOT_WRITES, true);
}

#endif
