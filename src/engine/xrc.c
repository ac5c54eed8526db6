/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Extended reliable connections (IBA v1 annex A14). A target has no receive queue, no CQ and
 * no protection domain: each request names a shared receive queue of the target's XRC domain,
 * and what that one has counts for the request. Connection, PSNs and acknowledgements are
 * those of RC.
 *
 *   initiator  IBV_QPT_XRC_SEND: sends requests, receives responses
 *   target     IBV_QPT_XRC_RECV: receives requests, sends responses
 */
#include "engine/private.h"
#include "transport/fast.h"

struct eng_srq *eng_xrc_srq(const struct eng_qp *qp, uint32_t srqn)
{
	struct eng_srq *srq = eng_table_get(&qp->engine->xrc_srqs, srqn & 0xffffff);

	return srq && srq->xrcd == qp->init.xrcd && !srq->cq->overrun ? srq : NULL;
}

void eng_xrc_receive(struct eng_qp *qp, const struct wire_packet *pkt)
{
	uint32_t flags = wire_opcodes[pkt->bth.opcode].flags;
	bool is_target = eng_is_xrc_target(qp);

	if (unlikely(is_target == !!(flags & WIRE_IS_RESPONSE))) {
		qp->engine->stats.rx_malformed++;
		return;
	}
	if (is_target && flags & WIRE_HAS_XRCETH) {
		qp->xrc_srq = eng_xrc_srq(qp, pkt->xrc_srqn);
		/* a duplicate is answered whatever became of its SRQ */
		if (unlikely(!qp->xrc_srq && psn_eq(pkt->bth.psn, tp_expected_psn(qp->tp)))) {
			tp_qp_refuse(qp->tp);
			return;
		}
	}
	tp_qp_receive(qp->tp, pkt, qp->engine->now);
	qp->xrc_srq = NULL;
}

/* A peer's key must be of the PD of the SRQ that its request names. A response that is made
 * later was checked with its request: it has the PD of its key. */
static uint32_t pd_of_request(const struct eng_qp *qp, uint32_t key)
{
	return qp->xrc_srq ? qp->xrc_srq->rq.pd : eng_mr_pd(qp->engine, key);
}

void *eng_xrc_mem(void *ctx, uint32_t key, uint64_t va, uint64_t *len, int access,
		  enum tp_key whose)
{
	struct eng_qp *qp = ctx;

	if (whose == TP_KEY_RECEIVE)
		return eng_mem_run(qp, qp->recv_rq->pd, key, va, len, access, whose);
	return eng_mem_remote(qp, pd_of_request(qp, key), key, va, len, access);
}

bool eng_xrc_grants(void *ctx, uint32_t rkey, int access)
{
	struct eng_qp *qp = ctx;

	return eng_mem_grants(qp, pd_of_request(qp, rkey), rkey, access);
}

bool eng_xrc_recv_get(void *ctx, const struct wire_packet *pkt, struct tp_recv_wr *wr)
{
	struct eng_qp *qp = ctx;
	struct eng_srq *srq = eng_xrc_srq(qp, pkt->xrc_srqn);

	if (!srq || !eng_srq_take(srq, qp, wr))
		return false;
	eng_xrc_receive_into(qp, srq);
	return true;
}

bool eng_xrc_recv_flush(void *ctx, struct tp_recv_wr *wr)
{
	return false; /* receives of an SRQ remain for other QPs */
}

int eng_srq_join_xrcd(struct eng_srq *srq, uint32_t srqn, uint32_t xrcd, struct eng_cq *cq)
{
	struct engine *e = srq->engine;
	int ret;

	eng_lock(e);
	ret = eng_table_add(&e->xrc_srqs, srqn, srq);
	if (!ret) {
		srq->srqn = srqn;
		srq->xrcd = xrcd;
		srq->cq = cq;
		cq->users++;
	}
	eng_unlock(e);
	return ret;
}

void eng_xrc_srq_gone(struct eng_srq *srq)
{
	struct eng_qp *qp;

	if (!srq->cq || srq->tags)
		return;
	list_for_each_entry(qp, &srq->engine->all_qps, all_node) {
		if (qp->recv_rq != &srq->rq)
			continue;
		qp->recv_rq = &qp->rq;
		qp->recv_cq = NULL;
	}
	eng_table_set(&srq->engine->xrc_srqs, srq->srqn, NULL);
	srq->cq->users--;
}
