/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Packet pacing of raw packet QPs: what ibv_modify_qp_rate_limit(3) and IBV_QP_RATE_LIMIT accept,
 * and that a QP keeps to its rate. Prints "paced" if all is as the manual pages say.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "fixture.h"

enum { FRAMES = 20, BYTES = 1000, KBPS = 4000, FRAME_NS = BYTES * 8 * 1000 / KBPS * 1000 };

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static uint8_t frame[BYTES];

static struct ibv_qp *make_ud_qp(void)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_UD, .send_cq = cq, .recv_cq = cq};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	CHECK(qp);
	return qp;
}

static int set_rate(struct ibv_qp *qp, uint32_t rate, uint32_t burst, uint16_t usual)
{
	struct ibv_qp_rate_limit_attr attr = {
		.rate_limit = rate, .max_burst_sz = burst, .typical_pkt_sz = usual};

	return ibv_modify_qp_rate_limit(qp, &attr);
}

static struct ibv_qp *raw_qp(void)
{
	struct ibv_qp *qp = make_raw_qp(pd, cq, FRAMES);
	struct ibv_qp_attr to = {.qp_state = IBV_QPS_RTR, .rate_limit = KBPS};

	move_raw_qp(qp, IBV_QPS_INIT);
	CHECK(set_rate(qp, KBPS, 0, 0) == EINVAL); /* it sends nothing yet */
	CHECK(ibv_modify_qp(qp, &to, IBV_QP_STATE | IBV_QP_RATE_LIMIT) == EINVAL);
	move_raw_qp(qp, IBV_QPS_RTR);
	to.qp_state = IBV_QPS_RTS;
	CHECK(!ibv_modify_qp(qp, &to, IBV_QP_STATE | IBV_QP_RATE_LIMIT));
	return qp;
}

static uint32_t rate_of(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	CHECK(!ibv_query_qp(qp, &attr, IBV_QP_RATE_LIMIT, &init));
	return attr.rate_limit;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Return: the time from the first request to the last completion. There is no station with this
 * address, so nobody receives them */
static uint64_t send_all(struct ibv_qp *qp, uint32_t lkey)
{
	struct ibv_sge sge = {(uintptr_t)frame, BYTES, lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED}, *bad;
	uint64_t since = now_ns();
	struct ibv_wc wc;

	for (int i = 0; i < FRAMES; i++)
		CHECK(!ibv_post_send(qp, &wr, &bad));
	for (int left = FRAMES; left;) {
		int n = ibv_poll_cq(cq, 1, &wc);

		CHECK(n >= 0 && (!n || wc.status == IBV_WC_SUCCESS));
		left -= n;
	}
	return now_ns() - since;
}

static void check_limits(struct ibv_qp *qp)
{
	struct ibv_qp_rate_limit_attr later = {.rate_limit = KBPS, .comp_mask = 1};
	struct ibv_device_attr_ex dev;
	struct ibv_qp_attr attr = {.rate_limit = 1};
	struct ibv_qp *ud = make_ud_qp();

	CHECK(!ibv_query_device_ex(context, NULL, &dev));
	CHECK(dev.packet_pacing_caps.supported_qpts == 1u << IBV_QPT_RAW_PACKET);
	CHECK(!set_rate(qp, dev.packet_pacing_caps.qp_rate_limit_max, 0, 0));
	CHECK(set_rate(qp, dev.packet_pacing_caps.qp_rate_limit_max + 1, 0, 0) == EINVAL);
	CHECK(rate_of(qp) == dev.packet_pacing_caps.qp_rate_limit_max);
	CHECK(set_rate(qp, 0, BYTES, 0) == EINVAL);
	CHECK(set_rate(qp, 0, 0, BYTES) == EINVAL);
	CHECK(ibv_modify_qp_rate_limit(qp, &later) == EINVAL);
	CHECK(set_rate(ud, KBPS, 0, 0) == EOPNOTSUPP);
	CHECK(ibv_modify_qp(ud, &attr, IBV_QP_RATE_LIMIT) == EOPNOTSUPP);
	CHECK(!ibv_destroy_qp(ud));
}

int main(void)
{
	struct ibv_qp *qp;
	struct ibv_mr *mr;

	context = open_first_device();
	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, FRAMES, NULL, NULL, 0);
	mr = ibv_reg_mr(pd, frame, sizeof(frame), 0);
	CHECK(pd && cq && mr);
	memset(frame, 2, 12); /* an address of no station */
	qp = raw_qp();
	CHECK(rate_of(qp) == KBPS);
	check_limits(qp);
	CHECK(!set_rate(qp, KBPS, BYTES, BYTES));
	CHECK(send_all(qp, mr->lkey) >= (FRAMES - 1) * (uint64_t)FRAME_NS);
	CHECK(!set_rate(qp, KBPS, 10 * BYTES, BYTES));
	CHECK(send_all(qp, mr->lkey) >= (FRAMES - 10) * (uint64_t)FRAME_NS);
	CHECK(!set_rate(qp, 1, 0, 0)); /* a frame in eight seconds */
	CHECK(!ibv_destroy_qp(qp));
	puts("paced");
	return 0;
}
