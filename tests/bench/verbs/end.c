/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* One side's verbs objects: made, connected, taken down. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "verbs.h"

#define DEPTH	     128u
#define TIMEOUT	     18 /* a second: a core that others have is no lost packet */
#define INLINE_BYTES 64u
#define REMOTE_ACCESS                                                                    \
	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define ACCESS (IBV_ACCESS_LOCAL_WRITE | REMOTE_ACCESS)

static void open_device(struct end *e)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	measure_check(list && list[0], "no device: run it by softib exec");
	e->ctx = ibv_open_device(list[0]);
	measure_check(e->ctx != NULL, "ibv_open_device");
	ibv_free_device_list(list);
	e->pd = ibv_alloc_pd(e->ctx);
	measure_check(e->pd != NULL, "ibv_alloc_pd");
}

struct ibv_qp *end_create_qp(struct end *e, enum ibv_qp_type type)
{
	bool target = type == IBV_QPT_XRC_RECV;
	struct ibv_qp_init_attr_ex init = {
		.send_cq = e->cq,
		.recv_cq = e->cq,
		.srq = e->xrcd ? NULL : e->srq,
		.qp_type = type,
		.cap = {.max_send_wr = e->depth,
			.max_recv_wr = e->depth,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = INLINE_BYTES + (uint32_t)e->header_bytes},
		.comp_mask = target ? IBV_QP_INIT_ATTR_XRCD : IBV_QP_INIT_ATTR_PD,
		.pd = e->pd,
		.xrcd = e->xrcd,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(e->ctx, &init);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
				   .port_num = PORT,
				   .qkey = QKEY,
				   .qp_access_flags = ACCESS};
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
		   (type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);

	measure_check(qp && !ibv_modify_qp(qp, &attr, mask), "ibv_create_qp_ex");
	return qp;
}

static void *populated(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	measure_check(p != MAP_FAILED, "mmap");
	return p;
}

static unsigned cq_entries(struct end *e, unsigned count)
{
	struct ibv_device_attr device;
	unsigned wanted = 2 * e->depth * count;

	measure_check(!ibv_query_device(e->ctx, &device), "ibv_query_device");
	return wanted ? MIN(wanted, (unsigned)device.max_cqe) : 1;
}

static struct ibv_cq *create_cq(struct end *e, unsigned qps)
{
	struct ibv_cq *cq = ibv_create_cq(e->ctx, (int)cq_entries(e, qps), NULL, e->channel, 0);

	measure_check(cq != NULL, "ibv_create_cq");
	return cq;
}

/** end_open() - a device, @count QPs in INIT, and memory registered: pages for
 *  @size bytes and more, or @shape's bytes at @memory */
void end_open(struct end *e, const struct shape *shape, size_t size, unsigned count,
	      char *memory)
{
	enum ibv_qp_type type = shape->type ? shape->type : IBV_QPT_RC;

	open_device(e);
	e->depth = shape->depth ? shape->depth : DEPTH;
	e->bytes = ALIGN_UP(MAX(shape->bytes, size + GRH_BYTES), 4096);
	e->memory = memory ? memory : populated(e->bytes);
	e->mr = ibv_reg_mr(e->pd, e->memory, memory ? shape->bytes : e->bytes,
			   shape->by_mw ? IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND : ACCESS);
	measure_check(e->mr != NULL, "ibv_reg_mr");
	if (shape->by_mw)
		e->mw = ibv_alloc_mw(e->pd, IBV_MW_TYPE_1);
	measure_check(!shape->by_mw || e->mw, "ibv_alloc_mw");
	if (shape->events)
		e->channel = ibv_create_comp_channel(e->ctx);
	e->qp = calloc(count, sizeof(struct ibv_qp *));
	if (shape->cq_each)
		e->cq_of = calloc(count, sizeof(struct ibv_cq *));
	else
		e->cq = create_cq(e, count);
	srq_open(e, shape);
	for (unsigned i = 0; i < count; i++) {
		if (shape->cq_each)
			e->cq = e->cq_of[i] = create_cq(e, 1);
		e->qp[i] = end_create_qp(e, type);
	}
}

uint32_t end_lid(struct end *e)
{
	struct ibv_port_attr attr;

	measure_check(!ibv_query_port(e->ctx, PORT, &attr), "ibv_query_port");
	return attr.lid;
}

static void to_rtr(struct end *e, struct ibv_qp *qp, uint32_t peer_qpn)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_4096,
		.dest_qp_num = peer_qpn,
		.max_dest_rd_atomic = 16,
		.min_rnr_timer = 1,
		.ah_attr = {.dlid = (uint16_t)e->peer.lid, .port_num = PORT},
	};
	int mask = IBV_QP_STATE;

	if (qp->qp_type != IBV_QPT_UD)
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (qp->qp_type == IBV_QPT_RC || qp->qp_type == IBV_QPT_XRC_RECV)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	measure_check(!ibv_modify_qp(qp, &attr, mask), "to RTR");
}

static void to_rts(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS,
				   .timeout = TIMEOUT,
				   .retry_cnt = 7,
				   .rnr_retry = 7,
				   .max_rd_atomic = 16};
	int mask = qp->qp_type == IBV_QPT_UD
			   ? IBV_QP_STATE | IBV_QP_SQ_PSN
			   : IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
				     IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				     IBV_QP_MAX_QP_RD_ATOMIC;

	measure_check(!ibv_modify_qp(qp, &attr, mask), "to RTS");
}

/* by the key that the peer was told */
static void bind_window(struct end *e)
{
	struct ibv_mw_bind bind = {
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = {e->mr, (uintptr_t)e->memory, e->mr->length, REMOTE_ACCESS},
	};

	measure_check(!ibv_bind_mw(e->qp[0], e->mw, &bind), "ibv_bind_mw");
	await(e, 1);
}

/** end_connect() - every QP to its opposite in e->peer and e->peer_qpn */
void end_connect(struct end *e)
{
	struct ibv_ah_attr ah = {.dlid = (uint16_t)e->peer.lid, .port_num = PORT};

	for (unsigned i = 0; i < e->peer.qp_count; i++) {
		to_rtr(e, e->qp[i], e->peer_qpn[i]);
		to_rts(e->qp[i]);
	}
	if (e->target)
		to_rtr(e, e->target, e->peer.initiator_qpn);
	if (e->mw)
		bind_window(e);
	if (e->qp[0]->qp_type != IBV_QPT_UD)
		return;
	e->ah = ibv_create_ah(e->pd, &ah);
	measure_check(e->ah != NULL, "ibv_create_ah");
}

void end_close(struct end *e)
{
	for (unsigned i = 0; i < e->peer.qp_count; i++)
		ibv_destroy_qp(e->qp[i]);
	if (e->ah)
		ibv_destroy_ah(e->ah);
	if (e->mw)
		ibv_dealloc_mw(e->mw);
	srq_close(e);
	for (unsigned i = 0; e->cq_of && i < e->peer.qp_count; i++)
		ibv_destroy_cq(e->cq_of[i]);
	if (!e->cq_of)
		ibv_destroy_cq(e->cq);
	if (e->channel)
		ibv_destroy_comp_channel(e->channel);
	ibv_dereg_mr(e->mr);
	ibv_dealloc_pd(e->pd);
	ibv_close_device(e->ctx);
	free(e->cq_of);
	free(e->qp);
	free(e->peer_qpn);
}
