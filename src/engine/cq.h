/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Completion queues, and what the completions of a QP say. private.h includes this file behind
 * struct engine and struct eng_qp. Everything here is protected by engine.lock, except for
 * eng_cq_seems_empty().
 */
#ifndef SOFTIB_ENGINE_CQ_H
#define SOFTIB_ENGINE_CQ_H

struct eng_cq {
	struct engine *engine;
	struct list_head node; /* engine.cqs */
	void *ctx;
	struct ibv_wc *ring;
	uint32_t mask;	/* ring size - 1 */
	uint32_t cqe;	/* entries that the program may rely on */
	uint32_t head, tail; /* free running: tail - head entries wait */
	/* While a program that found the CQ empty receives, completions are written to
	 * @direct, which is the array that the program polls into, and not into the ring.
	 * There is room for @direct_left entries. */
	struct ibv_wc *direct;
	uint32_t direct_left;
	unsigned users; /* QPs */
	enum { ENG_DISARMED, ENG_ARMED_SOLICITED, ENG_ARMED } armed;
	bool overrun;
	/* index behind the last entry that was solicited or in error */
	uint32_t matters_tail;
	uint32_t told_head, told_tail; /* values of head and tail at the last event */
	/* the event is raised at this number of entries; 0: at the next entry */
	uint32_t armed_for;
	/* --- moderation --- */
	/* the event is raised after this number of entries; 0: after the first */
	uint32_t event_entries;
	uint64_t event_ns;	/* or when the first entry is so old */
	uint32_t unreported;	/* entries since the CQ was armed that count for its event */
	mono_t event_by;	/* when the event is due, while the CQ is in engine.moderated */
	struct list_head moderated_node;
	struct eng_block block; /* has ring */
	const struct eng_memory *memory;
};

void eng_cq_push(struct eng_cq *cq, const struct ibv_wc *wc, bool solicited);
/** eng_cq_overrun() - put a CQ that has lost a completion into the error state (C10-104). Each of
 *  its QPs gets an event, and moves to ERR before the turn ends */
void eng_cq_overrun(struct eng_cq *cq);
/** eng_cq_clean() - remove the completions of the QP @qpn, which is destroyed */
void eng_cq_clean(struct eng_cq *cq, uint32_t qpn);
/** eng_cq_set() - change a position of a CQ's ring: eng_cq_seems_empty() reads it without the lock */
static inline void eng_cq_set(uint32_t *position, uint32_t to)
{
	__atomic_store_n(position, to, __ATOMIC_RELAXED);
}
/** eng_cq_seems_empty() - does a poll find no entry, and no error? Context: any
 *
 *  The loads have relaxed order. An entry is read only under the engine's lock, which orders it; so an old
 *  value can only make a poll return nothing. Between two threads that have taken any lock, or otherwise
 *  synchronised, after the entry was added, the load finds it, because the stores were before. */
static inline bool eng_cq_seems_empty(const struct eng_cq *cq)
{
	return __atomic_load_n(&cq->tail, __ATOMIC_RELAXED) ==
		       __atomic_load_n(&cq->head, __ATOMIC_RELAXED) &&
	       !__atomic_load_n(&cq->overrun, __ATOMIC_RELAXED);
}
static inline bool eng_cq_is_full(const struct eng_cq *cq)
{
	return cq->tail - cq->head >= cq->cqe;
}
/** eng_cq_room() - Return: the number of contiguous entries that may be filled, from *@at on */
static inline uint32_t eng_cq_room(const struct eng_cq *cq, struct ibv_wc **at)
{
	uint32_t tail = cq->tail & cq->mask;

	if (likely(cq->direct_left)) {
		*at = cq->direct;
		return cq->direct_left;
	}
	*at = &cq->ring[tail];
	return MIN(cq->cqe - (cq->tail - cq->head), cq->mask + 1 - tail);
}
/** eng_cq_must_notify() - is the CQ armed for an entry that is filled now? @matters: the entry is
 *  solicited or in error, and so counts for a CQ armed for solicited completions only */
static inline bool eng_cq_must_notify(const struct eng_cq *cq, bool matters)
{
	return unlikely(cq->armed != ENG_DISARMED && (cq->armed == ENG_ARMED || matters));
}
/** eng_cq_notify() - @n entries were added to an armed CQ: raise its event, unless moderation
 *  delays it */
void eng_cq_notify(struct eng_cq *cq, uint32_t n);
/** eng_cq_events_due() - raise the moderated events that are due */
void eng_cq_events_due(struct engine *e);
/** eng_cq_filled() - add the first @n entries of those that eng_cq_room() returned. @matters: as
 *  for eng_cq_must_notify() */
static inline void eng_cq_filled(struct eng_cq *cq, uint32_t n, bool matters)
{
	if (likely(cq->direct_left)) {
		cq->direct += n;
		cq->direct_left -= n;
	} else {
		eng_cq_set(&cq->tail, cq->tail + n);
		if (unlikely(matters))
			cq->matters_tail = cq->tail;
	}
	if (eng_cq_must_notify(cq, matters))
		eng_cq_notify(cq, n);
}
/** eng_cq_next() - the entry to fill before eng_cq_added(). Context: the CQ is not full */
static inline struct ibv_wc *eng_cq_next(struct eng_cq *cq)
{
	return cq->direct_left ? cq->direct : &cq->ring[cq->tail & cq->mask];
}
/** eng_cq_added() - add the entry of eng_cq_next(), as eng_cq_filled() */
static inline void eng_cq_added(struct eng_cq *cq, bool matters)
{
	eng_cq_filled(cq, 1, matters);
}

/* --- what a completion says --- */

/** eng_own_path_bits() - the path bits in the low bits of a DLID: as many as the LMC of @qp's
 *  port says (11.4.2.1) */
uint8_t eng_own_path_bits(const struct eng_qp *qp, uint8_t dlid_bits);
/** eng_wc_sent() - fill @out, the completion of a send request */
__attribute__((always_inline)) static inline void
eng_wc_sent(const struct eng_qp *qp, uint64_t wr_id, uint8_t status, uint8_t opcode,
	    uint32_t length_bytes, struct ibv_wc *out)
{
	*out = (struct ibv_wc){
		.wr_id = wr_id,
		.status = status,
		.opcode = opcode,
		.byte_len = length_bytes,
		.qp_num = qp->init.qpn,
	};
}
/** eng_cq_add_sent() - add such a completion to @qp's send CQ, which is not full */
__attribute__((always_inline)) static inline void
eng_cq_add_sent(const struct eng_qp *qp, uint64_t wr_id, uint8_t status, uint8_t opcode,
		uint32_t length_bytes)
{
	eng_wc_sent(qp, wr_id, status, opcode, length_bytes, eng_cq_next(qp->send_cq));
	eng_cq_added(qp->send_cq, status != IBV_WC_SUCCESS);
}
/** eng_wc_received() - fill @out, the completion of a receive. Only this function and
 *  eng_wc_sent() fill completions of QPs; those of operations on a list of tags are in tag.c */
static inline void eng_wc_received(const struct eng_qp *qp, const struct tp_wc *wc,
				   struct ibv_wc *out)
{
	eng_wc_sent(qp, wc->wr_id, wc->status, wc->opcode, wc->byte_len, out);
	out->src_qp = wc->src_qpn;
	out->wc_flags = wc->wc_flags;
	out->pkey_index = wc->pkey_index;
	out->slid = wc->slid;
	out->sl = wc->sl;
	out->vendor_err = wc->ee_context; /* eng_wc_ee_context(), eng_wc_flow_tag() */
	if (unlikely(wc->dlid_path_bits))
		out->dlid_path_bits = eng_own_path_bits(qp, wc->dlid_path_bits);
	if (wc->wc_flags & IBV_WC_WITH_INV)
		out->invalidated_rkey = wc->imm_or_rkey;
	else
		out->imm_data = htobe32(wc->imm_or_rkey);
}

#endif
