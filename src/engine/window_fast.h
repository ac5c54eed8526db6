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

/** window_enter() - begin a section (docs/WINDOWS.md). @page: our window page; @fence: the
 *  section needs a fence of ours, because the target does not use membarrier(2). Return: true:
 *  the grant is valid, and a revocation waits until window_leave(); false: it was revoked */
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

/** window_atomic() - perform the atomic @opcode on @word, which is aligned. Return: its old value */
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

/** window_count_more() - count the packets beyond the first one of a request that has several */
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

/** window_count() - count a request, from which softibd computes the packets that it would have
 *  been. @word: it is no longer than one packet; a constant */
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

/* does the slot that the QP used last allow the request? Checks everything but local memory */
static inline bool fast_may(const struct eng_qp *qp, bool signaled, uint64_t va, uint32_t rkey,
			    uint32_t len, enum slot_use use)
{
	const struct slot *s = qp->slot;

	return len - 1 < s->fast_bytes[use] && is_for(s, qp->init.qpn, rkey) &&
	       range_covers_no_longer(s->g.va, s->g.length_bytes, va, len) && tp_idle(qp->tp) &&
	       !(signaled && eng_cq_is_full(qp->send_cq));
}

/* the local memory of a request: the source of a WRITE, the destination of others. NULL: a
 * window does not perform it, or @word and the key is not in the cache of regions used last */
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

/* The program is in a post and not in a poll, so the completion goes into the ring. @word: at most
 * eight bytes, in memory whose key is in the cache of regions used last, with a CQ that is not
 * armed. No function is called then, so variables stay in registers */
__attribute__((always_inline)) static inline void
fast_complete(struct eng_qp *qp, const struct ibv_send_wr *wr, uint8_t opcode, uint32_t len,
	      const bool word)
{
	struct eng_cq *cq = qp->send_cq;

	eng_wc_sent(qp, wr->wr_id, IBV_WC_SUCCESS, opcode, len, &cq->ring[cq->tail & cq->mask]);
	eng_cq_set(&cq->tail, cq->tail + 1);
	if (!word && eng_cq_must_notify(cq, false))
		eng_cq_notify(cq, 1);
}

/* the opcode of @wr, which is a constant if only one opcode has this @use */
static inline unsigned fast_opcode(const struct ibv_send_wr *wr, const enum slot_use use)
{
	return use == SLOT_WRITES ? IBV_WR_RDMA_WRITE :
	       use == SLOT_READS  ? IBV_WR_RDMA_READ :
				    wr->opcode;
}

/* perform a request that has one piece. @use, @word: constants */
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

/** eng_window_fast() - perform @wr by the fast path. Return: true: it was performed and
 *  completed; false: the fast path does not take it, and nothing changed */
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

/** eng_window_write_word() - eng_window_fast() of a WRITE of at most eight bytes, without a
 *  function call */
static inline bool eng_window_write_word(struct engine *e, struct eng_qp *qp,
					 const struct ibv_send_wr *wr)
{
	return wr->num_sge == 1 && fast_do(e, qp, wr, SLOT_WRITES, true);
}

#endif
