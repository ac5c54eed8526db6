/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * QPs that fail because of a completion: a fault rule of softibd replaces the status of a
 * request that has succeeded, or a CQ has no room for an entry. Completions are made in the
 * middle of the transport's functions, so the QP is only marked, and moves to ERR when the
 * transport has returned.
 */
#include "engine/private.h"

static int ask(const struct engine *e, const struct eng_qp *qp, const struct ibv_wc *wc)
{
	return e->cfg.completion_fault ?
		       e->cfg.completion_fault(e->cfg.ctx, qp->init.qpn, wc->opcode) :
		       IBV_WC_SUCCESS;
}

bool eng_spoil(struct eng_qp *qp, struct eng_cq *cq, struct ibv_wc *wc)
{
	int status;

	if (wc->status != IBV_WC_SUCCESS)
		return true;
	/* 10.3.1: behind the one in error all are flushed */
	status = qp->spoilt ? IBV_WC_WR_FLUSH_ERR : ask(qp->engine, qp, wc);
	if (status == ENG_CQ_OVERRUN) {
		eng_cq_overrun(cq);
		return false;
	}
	wc->status = (enum ibv_wc_status)status;
	if (status != IBV_WC_SUCCESS)
		qp->spoilt = qp->engine->spoilt = true;
	return true;
}

void eng_fail_users(struct eng_cq *cq)
{
	struct engine *e = cq->engine;
	struct eng_srq *srq;
	struct eng_qp *qp;

	list_for_each_entry(qp, &e->all_qps, all_node) {
		if (qp->send_cq != cq && qp->recv_cq != cq)
			continue;
		if (qp->spoilt || tp_qp_state(qp->tp) == IBV_QPS_ERR)
			continue;
		qp->spoilt = e->spoilt = true;
		e->cfg.async_event(e->cfg.ctx, IBV_EVENT_QP_FATAL, qp->init.ctx);
	}
	list_for_each_entry(srq, &e->srqs, node)
		if (srq->cq == cq)
			e->cfg.async_event(e->cfg.ctx, IBV_EVENT_SRQ_ERR, srq->ctx);
}

void eng_fail_spoilt(struct engine *e)
{
	struct eng_qp *qp;

	e->spoilt = false;
	list_for_each_entry(qp, &e->all_qps, all_node) {
		if (!qp->spoilt)
			continue;
		qp->spoilt = false;
		tp_qp_modify(qp->tp, IBV_QPS_ERR, e->now);
		eng_qp_touch(qp);
	}
}
