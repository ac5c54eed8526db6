/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "side.h"

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define QKEY 0x1234

void fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fprintf(stderr, "[%d] ", getpid());
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	_exit(1);
}

uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		fail("cannot run on processor %d: %s", cpu, strerror(errno));
}

uint32_t rng_next(struct rng *rng)
{
	/* splitmix64 */
	uint64_t z = rng->state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return (uint32_t)(z >> 32);
}

uint32_t rng_below(struct rng *rng, uint32_t limit)
{
	return (uint32_t)((uint64_t)rng_next(rng) * limit >> 32);
}

/* --- device and memory --- */

static struct ibv_context *open_first(const char *node)
{
	struct ibv_device **list;
	struct ibv_context *context;
	int n = 0;

	setenv("SOFTIB_NODE", node, 1);
	list = ibv_get_device_list(&n);
	if (!list || !n)
		fail("no device on %s", node);
	context = ibv_open_device(list[0]);
	if (!context)
		fail("cannot open %s of %s: %s", ibv_get_device_name(list[0]), node,
		     strerror(errno));
	ibv_free_device_list(list);
	return context;
}

void side_open_at(struct side *side, const char *node, void *buffer, size_t bytes)
{
	struct ibv_port_attr port;

	*side = (struct side){.context = open_first(node), .buffer = buffer, .bytes = bytes};
	if (ibv_query_port(side->context, 1, &port) || port.state != IBV_PORT_ACTIVE)
		fail("the port of %s is not active", node);
	side->lid = port.lid;
	side->pd = ibv_alloc_pd(side->context);
	if (!side->pd)
		fail("ibv_alloc_pd: %s", strerror(errno));
	side->mr = ibv_reg_mr(side->pd, buffer, bytes, SIDE_ACCESS);
	if (!side->mr)
		fail("ibv_reg_mr: %s", strerror(errno));
}

void side_open(struct side *side, const char *node, size_t bytes)
{
	void *buffer = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (buffer == MAP_FAILED)
		fail("no memory");
	side_open_at(side, node, buffer, bytes);
}

void side_close(struct side *side)
{
	if (ibv_dereg_mr(side->mr) || ibv_dealloc_pd(side->pd) || ibv_close_device(side->context))
		fail("close: %s", strerror(errno));
}

/* --- queue pairs --- */

static void make_cq(struct side_qp *q, uint32_t depth)
{
	struct ibv_context *context = q->side->context;

	if (q->options.events)
		q->channel = ibv_create_comp_channel(context);
	q->cq = ibv_create_cq(context, (int)(2 * depth + 1), q, q->channel, 0);
	if (!q->cq || (q->options.events && !q->channel))
		fail("ibv_create_cq: %s", strerror(errno));
}

void side_qp_create(struct side_qp *q, struct side *side, const struct side_options *options)
{
	uint32_t depth = options->depth ? options->depth : 128;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1,
				   .qp_access_flags = SIDE_ACCESS, .qkey = QKEY};
	struct ibv_qp_init_attr init;

	*q = (struct side_qp){.side = side, .options = *options};
	if (!q->options.type)
		q->options.type = IBV_QPT_RC;
	make_cq(q, depth);
	init = (struct ibv_qp_init_attr){
		.send_cq = q->cq, .recv_cq = q->cq,
		.cap = {.max_send_wr = depth, .max_recv_wr = depth, .max_send_sge = 1,
			.max_recv_sge = 1, .max_inline_data = options->inline_bytes},
		.qp_type = q->options.type, .sq_sig_all = !options->unsignaled};
	q->qp = ibv_create_qp(side->pd, &init);
	if (!q->qp)
		fail("ibv_create_qp: %s", strerror(errno));
	if (ibv_modify_qp(q->qp, &attr,
			  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				  (q->options.type == IBV_QPT_UD ? IBV_QP_QKEY :
								    IBV_QP_ACCESS_FLAGS)))
		fail("modify to INIT: %s", strerror(errno));
}

struct side_address side_qp_address(const struct side_qp *q)
{
	return (struct side_address){.addr = (uintptr_t)q->side->buffer, .qpn = q->qp->qp_num,
				     .rkey = q->side->mr->rkey, .lid = q->side->lid};
}

static int connect_ud(struct side_qp *q)
{
	struct ibv_ah_attr ah = {.dlid = q->peer.lid, .port_num = 1};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
	int rc = ibv_modify_qp(q->qp, &attr, IBV_QP_STATE);

	attr.qp_state = IBV_QPS_RTS;
	if (!rc)
		rc = ibv_modify_qp(q->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
	if (!rc) {
		q->ah = ibv_create_ah(q->side->pd, &ah);
		rc = q->ah ? 0 : errno;
	}
	return rc;
}

int side_qp_try_connect(struct side_qp *q, const struct side_address *peer)
{
	bool rc_type = q->options.type == IBV_QPT_RC;
	struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_4096,
				  .dest_qp_num = peer->qpn, .rq_psn = peer->qpn,
				  .max_dest_rd_atomic = 16, .min_rnr_timer = 1,
				  .ah_attr = {.dlid = peer->lid, .port_num = 1}};
	struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS, .sq_psn = q->qp->qp_num,
				  .timeout = q->options.timeout_enc ? q->options.timeout_enc : 16,
				  .retry_cnt = q->options.retries ? q->options.retries : 7,
				  .rnr_retry = 7, .max_rd_atomic = 16};
	int rc;

	q->peer = *peer;
	if (q->options.type == IBV_QPT_UD)
		return connect_ud(q);
	rc = ibv_modify_qp(q->qp, &rtr,
			   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				   IBV_QP_RQ_PSN |
				   (rc_type ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0));
	if (rc)
		return rc;
	return ibv_modify_qp(q->qp, &rts,
			     IBV_QP_STATE | IBV_QP_SQ_PSN |
				     (rc_type ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
							IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC :
						0));
}

void side_qp_connect(struct side_qp *q, const struct side_address *peer)
{
	int rc = side_qp_try_connect(q, peer);

	if (rc)
		fail("cannot connect the QP: %s", strerror(rc));
}

void side_qp_destroy(struct side_qp *q)
{
	if (q->ah)
		ibv_destroy_ah(q->ah);
	if (ibv_destroy_qp(q->qp) || ibv_destroy_cq(q->cq))
		fail("destroy: %s", strerror(errno));
	if (q->channel && ibv_destroy_comp_channel(q->channel))
		fail("destroy the channel: %s", strerror(errno));
}

/* --- the two together --- */

bool meet(int fd, const void *mine, void *theirs, size_t bytes)
{
	size_t got = 0;
	ssize_t n;

	if (write(fd, mine, bytes) != (ssize_t)bytes)
		return false;
	while (got < bytes && (n = read(fd, (char *)theirs + got, bytes - got)) > 0)
		got += (size_t)n;
	return got == bytes;
}

void join(struct side_qp *q, int fd)
{
	struct side_address mine = side_qp_address(q), theirs;
	char ready = 0;

	if (!meet(fd, &mine, &theirs, sizeof(mine)))
		fail("the peer is gone");
	side_qp_connect(q, &theirs);
	if (!meet(fd, &ready, &ready, 1))
		fail("the peer is gone");
}

/* --- requests --- */

void post_recv(struct side_qp *q, uint64_t wr_id, size_t offset, uint32_t bytes)
{
	struct ibv_sge sge = {(uintptr_t)q->side->buffer + offset, bytes, q->side->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;
	int rc = ibv_post_recv(q->qp, &wr, &bad);

	if (rc)
		fail("ibv_post_recv: %s", strerror(rc));
}

struct ibv_send_wr send_wr(struct side_qp *q, struct ibv_sge *sge, enum ibv_wr_opcode opcode,
			   uint64_t wr_id, size_t offset, uint32_t bytes)
{
	struct ibv_send_wr wr = {.wr_id = wr_id, .sg_list = sge, .num_sge = 1, .opcode = opcode};

	*sge = (struct ibv_sge){(uintptr_t)q->side->buffer + offset, bytes, q->side->mr->lkey};
	if (q->ah) {
		wr.wr.ud.ah = q->ah;
		wr.wr.ud.remote_qpn = q->peer.qpn;
		wr.wr.ud.remote_qkey = QKEY;
	} else {
		wr.wr.rdma.remote_addr = q->peer.addr + offset;
		wr.wr.rdma.rkey = q->peer.rkey;
	}
	return wr;
}

void post(struct side_qp *q, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	int rc = ibv_post_send(q->qp, wr, &bad);

	if (rc)
		fail("ibv_post_send: %s", strerror(rc));
}

bool poll_one(struct side_qp *q, struct ibv_wc *wc)
{
	int n = ibv_poll_cq(q->cq, 1, wc);

	if (n < 0)
		fail("ibv_poll_cq fails");
	return n == 1;
}

struct ibv_wc await(struct side_qp *q, unsigned limit_s)
{
	uint64_t end = now_ns() + limit_s * 1000000000ull;
	struct ibv_wc wc;

	for (unsigned i = 1; !poll_one(q, &wc); i++)
		if (i % 1024 == 0 && now_ns() > end)
			fail("no completion in %u s", limit_s);
	if (wc.status)
		fail("request %lu ends with %s", (unsigned long)wc.wr_id,
		     ibv_wc_status_str(wc.status));
	return wc;
}
