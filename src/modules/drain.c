/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Draining of queue pairs. A pair in ERR completes its work requests in their order, with a flush
 * error each, so that the completion of one that is posted last comes behind all others.
 */
#include "modules/private.h"
#include "rdma/ib_verbs.h"
#include "runtime/posix/log.h"

/** struct drain - the last request of a queue, on the stack of who waits */
struct drain {
	struct ib_cqe cqe;
	struct completion over;
};

static void on_last(struct ib_cq *cq, struct ib_wc *wc)
{
	complete(&container_of(wc->wr_cqe, struct drain, cqe)->over);
}

static int post_last_send(struct ib_qp *qp, struct drain *d)
{
	struct ib_rdma_wr wr = {.wr = {.wr_cqe = &d->cqe,
				       .opcode = IB_WR_RDMA_WRITE,
				       .send_flags = IB_SEND_SIGNALED}};

	return ib_post_send(qp, &wr.wr, NULL);
}

static int post_last_recv(struct ib_qp *qp, struct drain *d)
{
	struct ib_recv_wr wr = {.wr_cqe = &d->cqe};

	return ib_post_recv(qp, &wr, NULL);
}

static void wait_for(struct drain *d, struct ib_cq *cq)
{
	if (cq->comp_handler) {
		wait_for_completion(&d->over);
		return;
	}
	for (;;) { /* IB_POLL_DIRECT: nobody else polls it meanwhile */
		ib_process_cq_direct(cq, -1);
		if (try_wait_for_completion(&d->over))
			return;
		msleep(1);
	}
}

static void drain(struct ib_qp *qp, struct ib_cq *cq,
		  int (*post_last)(struct ib_qp *qp, struct drain *d))
{
	struct ib_qp_attr attr = {.qp_state = IB_QPS_ERR};
	struct drain d = {.cqe.done = on_last};
	int ret = ib_modify_qp(qp, &attr, IB_QP_STATE);

	init_completion(&d.over);
	if (!ret)
		ret = post_last(qp, &d);
	if (ret)
		rt_log("%s: QP 0x%x is not drained: error %d", qp->device->node_name, qp->qp_num, ret);
	else
		wait_for(&d, cq);
}

void ib_drain_sq(struct ib_qp *qp)
{
	drain(qp, qp->send_cq, post_last_send);
}

void ib_drain_rq(struct ib_qp *qp)
{
	drain(qp, qp->recv_cq, post_last_recv);
}

void ib_drain_qp(struct ib_qp *qp)
{
	ib_drain_sq(qp);
	if (!qp->srq)
		ib_drain_rq(qp);
}
