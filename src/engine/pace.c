/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Packet pacing: the rate at which a raw packet QP sends (ibv_modify_qp_rate_limit(3)).
 *
 * Every frame is paid for with the time that it takes at the rate, one after the other, and
 * pace.paid_until is when all frames that were sent are paid for. A QP may send as long as this
 * is at most burst_ns ahead of the clock, so an idle or late program can catch up by that much. A
 * QP that must wait is in no list: the engine's timer is set to the moment at which it may go on.
 */
#include "engine/fast.h"
#include "wire/frame.h"

/* Programs and the threads behind them wake up late by tens of microseconds. With less than this
 * they would lose the rate that they have asked for. */
#define DEFAULT_BURST_NS NSEC_PER_MSEC

/* at least what @bytes take, so that no rate is exceeded */
static uint64_t time_of(uint32_t kbps, uint64_t bytes)
{
	return (bytes * 8 * NSEC_PER_MSEC + kbps - 1) / kbps;
}

void eng_pace_set(struct eng_qp *qp, uint32_t kbps, uint32_t burst_bytes, uint32_t frame_bytes)
{
	const struct engine *e = qp->engine;
	const struct abi_devport *port = eng_port(e, tp_qp_attr(qp->tp)->port_num);
	uint64_t burst_ns = DEFAULT_BURST_NS;

	qp->is_paced = kbps > 0;
	qp->attr.rate_limit = kbps;
	if (!kbps)
		return;
	if (!frame_bytes)
		frame_bytes = port->frame_mtu + WIRE_FRAME_OVERHEAD;
	if (burst_bytes) { /* its last frame begins in it, and shall end in it */
		burst_ns = time_of(kbps, burst_bytes);
		burst_ns -= MIN(burst_ns, time_of(kbps, frame_bytes));
	}
	qp->pace = (struct eng_pace){.kbps = kbps,
				     .burst_ns = burst_ns,
				     .paid_until = e->cfg.now(e->cfg.ctx)};
}

mono_t eng_pace_next(const struct eng_qp *qp)
{
	return (mono_t){qp->pace.paid_until.ns - MIN(qp->pace.paid_until.ns, qp->pace.burst_ns)};
}

bool eng_pace_waits(struct eng_qp *qp)
{
	struct engine *e = qp->engine;

	if (qp->held_bytes || !tp_wants_transmit(qp->tp))
		return false;
	e->now = e->cfg.now(e->cfg.ctx);
	return mono_before(e->now, eng_pace_next(qp));
}

void eng_pace_pay(struct eng_qp *qp, uint32_t bytes)
{
	struct eng_pace *p = &qp->pace;

	if (mono_before(p->paid_until, qp->engine->now))
		p->paid_until = qp->engine->now;
	p->paid_until = mono_add(p->paid_until, time_of(p->kbps, bytes));
}

int eng_qp_pace(struct eng_qp *qp, uint32_t kbps, uint32_t burst_bytes, uint32_t frame_bytes)
{
	if (!qp->init.is_raw || (!kbps && (burst_bytes || frame_bytes)))
		return -EINVAL;
	eng_lock_qp(qp);
	eng_pace_set(qp, kbps, burst_bytes, frame_bytes);
	eng_qp_touch(qp);
	eng_tx(qp->engine);
	eng_unlock(qp->engine);
	return 0;
}
