/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The shared receive queue of a side: one of an XRC domain, with the queue pair that receives
 * into it, or one that matches tags. */
#include <endian.h>
#include <fcntl.h>
#include <infiniband/tm_types.h>

#include "verbs.h"

#define TAG UINT64_C(0x0123456789abcdef) /* of every message */

static void open_xrc(struct end *e, struct ibv_srq_init_attr_ex *attr)
{
	struct ibv_xrcd_init_attr domain = {.comp_mask = IBV_XRCD_INIT_ATTR_FD |
							 IBV_XRCD_INIT_ATTR_OFLAGS,
					    .fd = -1,
					    .oflags = O_CREAT};

	e->xrcd = ibv_open_xrcd(e->ctx, &domain);
	measure_check(e->xrcd != NULL, "ibv_open_xrcd");
	attr->comp_mask |= IBV_SRQ_INIT_ATTR_XRCD;
	attr->srq_type = IBV_SRQT_XRC;
	attr->xrcd = e->xrcd;
}

/* Each message begins with the header, and its payload is received behind that. */
static void ask_for_tags(struct end *e, struct ibv_srq_init_attr_ex *attr)
{
	struct ibv_tmh *header = (struct ibv_tmh *)e->memory;

	attr->comp_mask |= IBV_SRQ_INIT_ATTR_TM;
	attr->srq_type = IBV_SRQT_TM;
	attr->tm_cap = (struct ibv_tm_cap){.max_num_tags = e->depth, .max_ops = e->depth};
	e->header_bytes = sizeof(*header);
	*header = (struct ibv_tmh){.opcode = IBV_TMH_EAGER, .tag = htobe64(TAG)};
}

/** srq_open() - what @shape wants of it, after the CQ and before the QPs */
void srq_open(struct end *e, const struct shape *shape)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = {.max_wr = e->depth, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ,
		.pd = e->pd,
		.cq = e->cq,
	};

	if (shape->type == IBV_QPT_XRC_SEND)
		open_xrc(e, &attr);
	else if (shape->tagged)
		ask_for_tags(e, &attr);
	else
		return;
	e->srq = ibv_create_srq_ex(e->ctx, &attr);
	measure_check(e->srq != NULL, "ibv_create_srq_ex");
	if (e->xrcd)
		e->target = end_create_qp(e, IBV_QPT_XRC_RECV);
}

/** srq_number() - what the peer's requests name it by; 0: XRC does not */
uint32_t srq_number(struct end *e)
{
	uint32_t number = 0;

	if (e->xrcd)
		measure_check(!ibv_get_srq_num(e->srq, &number), "ibv_get_srq_num");
	return number;
}

static void post_tagged(struct end *e, struct ibv_recv_wr *wr)
{
	struct ibv_ops_wr op = {.opcode = IBV_WR_TAG_ADD}, *bad;

	for (; wr; wr = wr->next) {
		op.tm.add.recv_wr_id = wr->wr_id;
		op.tm.add.sg_list = wr->sg_list;
		op.tm.add.num_sge = wr->num_sge;
		op.tm.add.tag = TAG;
		op.tm.add.mask = UINT64_MAX;
		if (unlikely(ibv_post_srq_ops(e->srq, &op, &bad)))
			measure_check(0, "ibv_post_srq_ops");
	}
}

/** srq_post() - a list of receives, with the tag of every message */
void srq_post(struct end *e, struct ibv_recv_wr *wr)
{
	struct ibv_recv_wr *bad;

	if (e->header_bytes)
		post_tagged(e, wr);
	else if (unlikely(ibv_post_srq_recv(e->srq, wr, &bad)))
		measure_check(0, "ibv_post_srq_recv");
}

/** srq_close() - after the QPs and before the CQ */
void srq_close(struct end *e)
{
	if (e->target)
		ibv_destroy_qp(e->target);
	if (e->srq)
		ibv_destroy_srq(e->srq);
	if (e->xrcd)
		ibv_close_xrcd(e->xrcd);
}
