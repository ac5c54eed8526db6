/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A null region: a QP that is connected to another one of its port writes zeros from it, and reads
 * and receives into it. Prints "discarded" if nothing else of the memory changes.
 */
#include <errno.h>

#include "fixture.h"

enum { PART = 100, BYTES = 5 * 4096, ROUNDS = 8 /* the later ones by a data-path window */ };

static struct ibv_cq *cq;
static struct ibv_mr *null, *mr;
static struct ibv_qp *qp[2];
static struct { uint8_t memory[BYTES], other[BYTES]; } all __attribute__((aligned(4096)));
static uint8_t *const memory = all.memory, *const other = all.other;

static struct ibv_qp *make_qp(struct ibv_pd *pd)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = 2, .max_recv_wr = 2, .max_send_sge = 2, .max_recv_sge = 2},
	};
	struct ibv_qp *made = ibv_create_qp(pd, &init);

	CHECK(made);
	return made;
}

static void connect_both(struct ibv_context *context)
{
	for (int i = 0; i < 2; i++)
		connect_qp(qp[i],
			   (struct ibv_qp_attr){.qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
								   IBV_ACCESS_REMOTE_READ,
						.dest_qp_num = qp[!i]->qp_num},
			   lid_of(context), 1);
}

static void wait_for(int completions)
{
	struct ibv_wc wc;

	while (completions) {
		int n = ibv_poll_cq(cq, 1, &wc);

		CHECK(n >= 0 && (!n || wc.status == IBV_WC_SUCCESS));
		completions -= n;
	}
}

/* PART bytes of @memory, the rest from or into the null region, at an address that is nobody's */
static void post(enum ibv_wr_opcode opcode)
{
	struct ibv_sge list[] = {{(uintptr_t)memory, PART, mr->lkey}, {7, BYTES - PART, null->lkey}};
	struct ibv_send_wr wr = {.sg_list = list, .num_sge = 2, .opcode = opcode,
				 .send_flags = IBV_SEND_SIGNALED}, *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)other;
	wr.wr.rdma.rkey = mr->rkey;
	CHECK(!ibv_post_send(qp[0], &wr, &bad));
}

static void post_receive(void)
{
	struct ibv_sge list[] = {{(uintptr_t)memory, PART, mr->lkey}, {0, BYTES - PART, null->lkey}};
	struct ibv_recv_wr wr = {.sg_list = list, .num_sge = 2}, *bad;

	CHECK(!ibv_post_recv(qp[0], &wr, &bad));
}

static void send_all(void)
{
	struct ibv_sge list = {(uintptr_t)other, BYTES, mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &list, .num_sge = 1, .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED}, *bad;

	CHECK(!ibv_post_send(qp[1], &wr, &bad));
}

/* the first PART bytes of both are equal; behind them, @which has @value alone */
static void expect(const uint8_t *which, uint8_t value)
{
	CHECK(!memcmp(memory, other, PART));
	for (int i = PART; i < BYTES; i++)
		CHECK(which[i] == value);
}

static void round_trip(int n)
{
	memset(memory, n + 1, PART);
	memset(other, 0xff, BYTES);
	post(IBV_WR_RDMA_WRITE);
	wait_for(1);
	expect(other, 0);
	memset(other, n + 2, BYTES);
	memset(memory, 0xee, BYTES);
	post(IBV_WR_RDMA_READ);
	wait_for(1);
	expect(memory, 0xee);
	memset(other, n + 3, BYTES);
	post_receive();
	send_all();
	wait_for(2);
	expect(memory, 0xee);
}

int main(void)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	struct ibv_context *context = open_first_device();
	struct ibv_pd *pd = ibv_alloc_pd(context);

	cq = ibv_create_cq(context, 8, NULL, NULL, 0);
	mr = ibv_reg_mr(pd, &all, sizeof(all), access);
	null = ibv_alloc_null_mr(pd);
	CHECK(pd && cq && mr && null);
	for (int i = 0; i < 2; i++)
		qp[i] = make_qp(pd);
	connect_both(context);
	for (int n = 0; n < ROUNDS; n++)
		round_trip(n);
	CHECK(ibv_rereg_mr(null, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, access) ==
		      IBV_REREG_MR_ERR_INPUT && errno == EOPNOTSUPP);
	CHECK(ibv_dealloc_pd(pd) == EBUSY);
	CHECK(!ibv_dereg_mr(null));
	puts("discarded");
	return 0;
}
