/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Posting requests and taking completions; a failure ends the program. */
#include <stdio.h>
#include <stdlib.h>

#include "verbs.h"

#define INLINE_MAX 64u

/** post() - one that prepare() made */
void post(struct end *e, unsigned qp, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	if (unlikely(ibv_post_send(e->qp[qp], wr, &bad)))
		measure_check(0, "ibv_post_send");
}

static void aim(struct end *e, unsigned qp, struct ibv_send_wr *wr)
{
	if (e->ah) {
		wr->wr.ud.ah = e->ah;
		wr->wr.ud.remote_qpn = e->peer_qpn[qp];
		wr->wr.ud.remote_qkey = QKEY;
		return;
	}
	if (e->xrcd)
		wr->qp_type.xrc.remote_srqn = e->peer.srqn;
	wr->wr.rdma.remote_addr = e->peer.memory;
	wr->wr.rdma.rkey = e->peer.rkey;
}

static bool may_inline(enum ibv_wr_opcode opcode, size_t size)
{
	return size <= INLINE_MAX && opcode != IBV_WR_RDMA_READ;
}

/** prepare() - a request of the first @size bytes, and of the header before them, to (or from)
 *  the first of the peer's.
 *  @r stays where it is */
void prepare(struct end *e, struct request *r, unsigned qp, enum ibv_wr_opcode opcode,
	     size_t size)
{
	struct ibv_send_wr *wr = &r->wr;

	r->sge = (struct ibv_sge){.addr = (uintptr_t)e->memory,
				  .length = (uint32_t)(e->header_bytes + size),
				  .lkey = e->mr->lkey};
	/* field by field: to clear all of it costs as much as a post */
	wr->wr_id = qp;
	wr->next = NULL;
	wr->sg_list = &r->sge;
	wr->num_sge = 1;
	wr->opcode = opcode;
	wr->send_flags = may_inline(opcode, size) ? IBV_SEND_INLINE : 0u;
	aim(e, qp, wr);
}

/** post_requests() - what prepare() made, @n times; the last or, with @each, all of them
 *  signaled */
void post_requests(struct end *e, struct request *r, size_t n, bool each)
{
	unsigned qp = (unsigned)r->wr.wr_id;

	if (each)
		r->wr.send_flags |= IBV_SEND_SIGNALED;
	for (; n > 1; n--)
		post(e, qp, &r->wr);
	r->wr.send_flags |= IBV_SEND_SIGNALED;
	post(e, qp, &r->wr);
	r->wr.send_flags &= ~(unsigned)IBV_SEND_SIGNALED;
}

/** post_send() - one that is posted once */
void post_send(struct end *e, unsigned qp, enum ibv_wr_opcode opcode, size_t size,
	       bool signaled)
{
	struct request r;

	prepare(e, &r, qp, opcode, size);
	if (signaled)
		r.wr.send_flags |= IBV_SEND_SIGNALED;
	post(e, qp, &r.wr);
}

/** post_at() - one READ or atomic of @size bytes, @at bytes into the peer's memory */
void post_at(struct end *e, enum ibv_wr_opcode opcode, size_t at, size_t size)
{
	struct ibv_sge sge = {.addr = (uintptr_t)e->memory,
			      .length = (uint32_t)size,
			      .lkey = e->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = opcode,
				 .send_flags = IBV_SEND_SIGNALED};

	if (opcode == IBV_WR_RDMA_READ) {
		wr.wr.rdma.remote_addr = e->peer.memory + at;
		wr.wr.rdma.rkey = e->peer.rkey;
	} else {
		wr.wr.atomic.remote_addr = e->peer.memory + at;
		wr.wr.atomic.rkey = e->peer.rkey;
		wr.wr.atomic.compare_add = 1;
	}
	post(e, 0, &wr);
}

/** post_receives() - @n of them in one list, 16 at most */
void post_receives(struct end *e, unsigned qp, size_t size, unsigned n)
{
	struct ibv_sge sge = {.addr = (uintptr_t)e->memory + e->header_bytes,
			      .length = (uint32_t)size,
			      .lkey = e->mr->lkey};
	struct ibv_recv_wr wr[16], *bad;

	for (unsigned i = 0; i < n; i++)
		wr[i] = (struct ibv_recv_wr){.wr_id = qp,
					     .sg_list = &sge,
					     .num_sge = 1,
					     .next = i + 1 < n ? &wr[i + 1] : NULL};
	if (e->srq)
		srq_post(e, wr);
	else if (unlikely(ibv_post_recv(e->qp[qp], wr, &bad)))
		measure_check(0, "ibv_post_recv");
}

static void failed(const struct ibv_wc *wc)
{
	fprintf(stderr, "verbs: completion: %s\n", ibv_wc_status_str(wc->status));
	exit(1);
}

/** poll() - what completed, none of it with an error */
unsigned poll(struct end *e, struct ibv_wc *wc, int max)
{
	int n = ibv_poll_cq(e->cq, max, wc);

	for (int i = 0; i < n; i++)
		if (unlikely(wc[i].status != IBV_WC_SUCCESS))
			failed(&wc[i]);
	return n > 0 ? (unsigned)n : 0;
}

/** await() - poll until @n more requests completed */
void await(struct end *e, unsigned n)
{
	struct ibv_wc wc[16];

	while (n)
		n -= poll(e, wc, (int)MIN(n, 16u));
}

/** done_at_once() - 8 bytes of the first QP's. Return: true: the completion was there
 *  when ibv_post_send() returned; many times running, a window has done it */
bool done_at_once(struct end *e, enum ibv_wr_opcode opcode)
{
	struct ibv_wc wc;

	post_send(e, 0, opcode, 8, true);
	if (poll(e, &wc, 1))
		return true;
	await(e, 1);
	return false;
}
