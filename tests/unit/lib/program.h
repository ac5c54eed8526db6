/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A program with two QPs, which are connected to each other: the port of its softibd is cabled
 * to itself. */
#ifndef SOFTIB_TESTS_LIB_PROGRAM_H
#define SOFTIB_TESTS_LIB_PROGRAM_H

#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/ib_user_verbs.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../test.h"
#include "fake_softibd.h"

#define BYTES 20000 /* five packets */
#define QKEY 0x11111111

struct program {
	struct fake_softibd *fake;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp[2];
	struct ibv_mr *mr;
	bool reached; /* the end, by a thread */
	uint8_t *memory; /* BYTES to send, BYTES to receive into */
};

static inline int setup(void **state)
{
	struct program *p = calloc(1, sizeof(*p));
	struct ibv_device **list;
	int n;

	p->fake = fake_start();
	list = ibv_get_device_list(&n);
	assert_non_null(list);
	assert_int_equal(n, 1);
	p->context = ibv_open_device(list[0]);
	assert_non_null(p->context);
	ibv_free_device_list(list);
	p->pd = ibv_alloc_pd(p->context);
	p->channel = ibv_create_comp_channel(p->context);
	p->cq = ibv_create_cq(p->context, 64, p, p->channel, 0);
	p->memory = calloc(2, BYTES);
	p->mr = ibv_reg_mr(p->pd, p->memory, 2 * BYTES,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ);
	assert_true(p->pd && p->channel && p->cq && p->mr);
	for (int i = 0; i < BYTES; i++)
		p->memory[i] = (uint8_t)(i * 7 + 1);
	*state = p;
	return 0;
}

static inline int teardown(void **state)
{
	struct program *p = *state;

	for (int i = 0; i < 2; i++)
		if (p->qp[i])
			assert_int_equal(ibv_destroy_qp(p->qp[i]), 0);
	assert_int_equal(ibv_destroy_cq(p->cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(p->channel), 0);
	assert_int_equal(ibv_dereg_mr(p->mr), 0);
	assert_int_equal(ibv_dealloc_pd(p->pd), 0);
	assert_int_equal(ibv_close_device(p->context), 0);
	fake_stop(p->fake);
	free(p->memory);
	free(p);
	return 0;
}

static inline struct ibv_qp *make_qp(struct program *p, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = {
		.send_cq = p->cq, .recv_cq = p->cq, .qp_type = type,
		.cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 2,
			.max_recv_sge = 2, .max_inline_data = 64},
	};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY,
				   .qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
						      IBV_ACCESS_REMOTE_READ};
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
	struct ibv_qp *qp = ibv_create_qp(p->pd, &init);

	assert_non_null(qp);
	mask |= type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
	assert_int_equal(ibv_modify_qp(qp, &attr, mask), 0);
	return qp;
}

/* An answer may take as long as a loaded machine takes to run a thread: with
 * a short timeout the peer of a QP that gave up waits for ever. */
#define TIMEOUT_ENC_PATIENT 20 /* 4.3 s */
#define TIMEOUT_ENC_SHORT 10   /* 4 ms */

static inline void connect_rc(struct ibv_qp *qp, uint32_t dest_qpn, uint8_t timeout_enc)
{
	struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_4096,
				  .dest_qp_num = dest_qpn, .max_dest_rd_atomic = 4,
				  .min_rnr_timer = 1,
				  .ah_attr = {.dlid = FAKE_LID, .port_num = 1}};
	struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS, .timeout = timeout_enc, .retry_cnt = 3,
				  .rnr_retry = 7, .max_rd_atomic = 4};

	assert_int_equal(ibv_modify_qp(qp, &rtr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER), 0);
	assert_int_equal(ibv_modify_qp(qp, &rts, IBV_QP_STATE | IBV_QP_TIMEOUT |
				       IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				       IBV_QP_MAX_QP_RD_ATOMIC), 0);
}

static inline void make_rc_pair(struct program *p)
{
	p->qp[0] = make_qp(p, IBV_QPT_RC);
	p->qp[1] = make_qp(p, IBV_QPT_RC);
	connect_rc(p->qp[0], p->qp[1]->qp_num, TIMEOUT_ENC_PATIENT);
	connect_rc(p->qp[1], p->qp[0]->qp_num, TIMEOUT_ENC_PATIENT);
}

static inline void post(struct program *p, enum ibv_wr_opcode opcode, uint64_t wr_id)
{
	struct ibv_sge sge = {(uintptr_t)p->memory, BYTES, p->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1, .opcode = opcode,
				 .send_flags = IBV_SEND_SIGNALED}, *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)(p->memory + BYTES);
	wr.wr.rdma.rkey = p->mr->rkey;
	assert_int_equal(ibv_post_send(p->qp[0], &wr, &bad), 0);
}

static inline void post_recv(struct program *p, uint64_t wr_id)
{
	struct ibv_sge sge = {(uintptr_t)(p->memory + BYTES), BYTES, p->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

	assert_int_equal(ibv_post_recv(p->qp[1], &wr, &bad), 0);
}

/* Busy polling, as latency-minded programs do: ends with the completion. */
static inline struct ibv_wc poll_one(struct program *p)
{
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(p->cq, 1, &wc)))
		;
	assert_int_equal(n, 1);
	return wc;
}

static inline void expect_received(struct program *p)
{
	assert_memory_equal(p->memory, p->memory + BYTES, BYTES);
}

static inline struct ibv_dm *alloc_dm(struct program *p, size_t length, uint32_t log_align)
{
	struct ibv_alloc_dm_attr attr = {.length = length, .log_align_req = log_align};

	return ibv_alloc_dm(p->context, &attr);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
