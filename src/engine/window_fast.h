/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The fast path of a one-sided request through a window. It takes an atomic, or a
 * WRITE or READ with one scatter/gather entry that is no longer than a slice, if
 * the QP used the same window slot last. It has the effect of eng_window_do(), but
 * no loops over entries and slices, no search for the slot and no count of
 * failures. It checks before it changes anything: a request that it does not take
 * is left to eng_window_do(), or to packets.
 *
 * The first half of the file has the steps that the fast path and eng_window_do()
 * share.
 */
#ifndef SOFTIB_ENGINE_WINDOW_FAST_H
#define SOFTIB_ENGINE_WINDOW_FAST_H

#include "base/copy.h"
#include "engine/window_slots.h"
#include "engine/fast.h"

/* --- the memory --- */

/** window_inside() - does the grant cover these bytes, with this right? */
static inline bool window_inside(const struct eng_grant *g, uint64_t va, uint32_t length_bytes,
				 int right)
{
	return range_covers(g->va, g->length_bytes, va, length_bytes) && g->access & right;
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

/** window_atomic() - Return: what the word was before */
static inline uint64_t window_atomic(const struct ibv_send_wr *wr, void *word)
{
	uint64_t was = wr->wr.atomic.compare_add;

	if (wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		return __atomic_fetch_add((uint64_t *)word, was, __ATOMIC_SEQ_CST);
	__atomic_compare_exchange_n((uint64_t *)word, &was, wr->wr.atomic.swap, false,
				    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	return was;
}

/* --- afterwards --- */

/** window_count_more() - a request of several packets: those beyond the first */
static noinline void window_count_more(const struct slot *s, int right, uint32_t length_bytes)
{
	uint32_t more = (length_bytes - 1) >> __builtin_ctz(s->mtu_bytes);

	if (right == IBV_ACCESS_REMOTE_WRITE) {
		eng_window_add(&s->count->write_more, more);
		return;
	}
	eng_window_add(&s->count->read_more, more);
	eng_window_add(&s->count->long_reads, 1);
}

/** window_count() - what the packets that this would have been follow from */
static inline void window_count(const struct slot *s, int right, uint32_t length_bytes)
{
	struct abi_window_count *c = s->count;
	uint32_t dwords = (length_bytes + 3u) / 4;

	if (right == IBV_ACCESS_REMOTE_ATOMIC) {
		eng_window_add(&c->atomics, 1);
		return;
	}
	if (right == IBV_ACCESS_REMOTE_WRITE) {
		eng_window_add(&c->writes, 1);
		eng_window_add(&c->write_dwords, dwords);
	} else {
		eng_window_add(&c->reads, 1);
		eng_window_add(&c->read_dwords, dwords);
	}
	if (unlikely(length_bytes > s->mtu_bytes))
		window_count_more(s, right, length_bytes);
}

/** window_count_word() - the same of a WRITE of a word */
static inline void window_count_word(const struct slot *s, uint32_t length_bytes)
{
	struct abi_window_count *c = s->count;

	eng_window_add(&c->writes, 1);
	eng_window_add(&c->write_dwords, (length_bytes + 3u) / 4);
}

/** window_signals() - is it to have a completion? */
static inline bool window_signals(const struct eng_qp *qp, const struct ibv_send_wr *wr)
{
	return wr->send_flags & IBV_SEND_SIGNALED || qp->init.sq_sig_all;
}

/** window_complete() - its completion, of @opcode, if it is to have one */
static inline void window_complete(struct eng_qp *qp, const struct ibv_send_wr *wr,
				   enum ibv_wc_opcode opcode, uint32_t length_bytes)
{
	struct eng_cq *cq = qp->send_cq;

	if (!window_signals(qp, wr))
		return;
	eng_wc_sent(qp, wr->wr_id, IBV_WC_SUCCESS, opcode, length_bytes, eng_cq_next(cq));
	eng_cq_added(cq, false);
}

/* the same for who posts, and so does not poll, of a CQ that has room and wakes nobody */
static inline void fast_complete_word(struct eng_qp *qp, const struct ibv_send_wr *wr,
					  uint32_t length_bytes)
{
	struct eng_cq *cq = qp->send_cq;

	eng_wc_sent(qp, wr->wr_id, IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE, length_bytes,
		    &cq->ring[cq->tail & cq->mask]);
	cq->tail++;
}

/* --- the fast path --- */

static inline char *in_window(const struct slot *s, uint64_t va)
{
	return s->g.base + (va - s->g.va);
}

/* all but the local memory: does the slot that the QP used last allow it? */
static inline bool fast_may(const struct eng_qp *qp, const struct ibv_send_wr *wr, uint64_t va,
				uint32_t rkey, uint32_t len, enum slot_use use)
{
	const struct slot *s = qp->slot;

	return len - 1 < s->fast_bytes[use] && is_for(s, qp->init.qpn, rkey) &&
	       range_covers(s->g.va, s->g.length_bytes, va, len) && tp_idle(qp->tp) &&
	       !(window_signals(qp, wr) && eng_cq_is_full(qp->send_cq));
}

/* where a READ's or an atomic's bytes come; NULL: not by a window */
static inline void *fast_place(struct engine *e, const struct eng_qp *qp,
				   const struct ibv_send_wr *wr)
{
	const struct ibv_sge *sge = wr->sg_list;

	if (unlikely(wr->send_flags & IBV_SEND_INLINE || !tp_may_read(qp->tp)))
		return NULL;
	return eng_mem_recent(e, qp->init.pd, sge->lkey, sge->addr, sge->length,
			      IBV_ACCESS_LOCAL_WRITE);
}

static inline void fast_end(struct eng_qp *qp, const struct slot *s,
				const struct ibv_send_wr *wr, int right,
				enum ibv_wc_opcode opcode, uint32_t len)
{
	window_count(s, right, len);
	qp->window_run = 0;
	window_complete(qp, wr, opcode, len);
}

/* what a WRITE sends; NULL: not by a window, or with @word not known */
__attribute__((always_inline)) static inline const void *
fast_source(struct engine *e, const struct eng_qp *qp,
					  const struct ibv_send_wr *wr, const bool word)
{
	const struct tp_sge *sge = (const struct tp_sge *)wr->sg_list;

	if (wr->send_flags & IBV_SEND_INLINE &&
	    unlikely(sge->length_bytes > qp->init.max_inline))
		return NULL;
	return eng_source(e, qp, sge, wr->send_flags, word);
}

/* @word: of eight bytes at most, for which nothing has to be looked up and whose completion
 * wakes nobody: no function is called, so that all can stay in registers */
__attribute__((always_inline)) static inline bool
fast_write(struct engine *e, struct eng_qp *qp, const struct ibv_send_wr *wr, const bool word)
{
	struct abi_window_page *page;
	const struct slot *s = qp->slot;
	uint64_t va = wr->wr.rdma.remote_addr;
	uint32_t len = wr->sg_list->length;
	const void *local;
	bool there;

	if (word && (len > sizeof(uint64_t) || eng_cq_must_notify(qp->send_cq, false)))
		return false;
	if (unlikely(!fast_may(qp, wr, va, wr->wr.rdma.rkey, len, SLOT_WRITES)))
		return false;
	local = fast_source(e, qp, wr, word);
	page = e->windows->cfg.page;
	if (unlikely(!local || !window_enter(e, page, &s->g, false)))
		return false;
	if (word)
		there = guard_load_word_spun_on(in_window(s, va), local, len);
	else
		there = guard_load_spun_on(in_window(s, va), local, len);
	window_leave(page);
	if (unlikely(!there)) {
		e->probes = true;
		return false;
	}
	if (!word) {
		fast_end(qp, s, wr, IBV_ACCESS_REMOTE_WRITE, IBV_WC_RDMA_WRITE, len);
		return true;
	}
	window_count_word(s, len);
	qp->window_run = 0;
	if (window_signals(qp, wr))
		fast_complete_word(qp, wr, len);
	return true;
}

static inline bool fast_read(struct engine *e, struct eng_qp *qp,
				 const struct ibv_send_wr *wr)
{
	struct abi_window_page *page;
	const struct slot *s = qp->slot;
	uint64_t va = wr->wr.rdma.remote_addr;
	uint32_t len = wr->sg_list->length;
	void *local;

	if (!fast_may(qp, wr, va, wr->wr.rdma.rkey, len, SLOT_READS))
		return false;
	local = fast_place(e, qp, wr);
	page = e->windows->cfg.page;
	if (unlikely(!local || !window_enter(e, page, &s->g, false)))
		return false;
	guard_store(local, in_window(s, va), len);
	window_leave(page);
	fast_end(qp, s, wr, IBV_ACCESS_REMOTE_READ, IBV_WC_RDMA_READ, len);
	return true;
}

static inline bool fast_atomic(struct engine *e, struct eng_qp *qp,
				   const struct ibv_send_wr *wr)
{
	bool add = wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
	struct abi_window_page *page;
	const struct slot *s = qp->slot;
	uint64_t va = wr->wr.atomic.remote_addr, was;
	void *local;

	if (wr->sg_list->length != 8 || va % 8 ||
	    !fast_may(qp, wr, va, wr->wr.atomic.rkey, 8, SLOT_ATOMICS))
		return false;
	local = fast_place(e, qp, wr);
	page = e->windows->cfg.page;
	if (unlikely(!local || !window_enter(e, page, &s->g, false)))
		return false;
	was = window_atomic(wr, in_window(s, va));
	guard_store(local, &was, 8);
	window_leave(page);
	fast_end(qp, s, wr, IBV_ACCESS_REMOTE_ATOMIC, add ? IBV_WC_FETCH_ADD : IBV_WC_COMP_SWAP, 8);
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
		return fast_write(e, qp, wr, false);
	if (wr->opcode == IBV_WR_RDMA_READ)
		return fast_read(e, qp, wr);
	if (wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP)
		return fast_atomic(e, qp, wr);
	return false;
}

/** eng_window_write_word() - the same of a WRITE of eight bytes at most, without a call */
static inline bool eng_window_write_word(struct engine *e, struct eng_qp *qp,
					 const struct ibv_send_wr *wr)
{
	return wr->num_sge == 1 && fast_write(e, qp, wr, true);
}

#endif
