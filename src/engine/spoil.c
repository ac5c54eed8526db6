/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Completion faults: rules of softibd say what a request that has succeeded
 * shall end with instead. As after any completion in error the QP fails; but
 * a completion comes out of the transport's midst, so the QP only is marked,
 * and goes to ERR when the transport has returned.
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
