/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Rules of flow steering that tag frames. A raw packet QP sends frames of several types to its own
 * port and reads, from the completions of an extended CQ, the tag of the rule that each came by.
 * Prints "tagged".
 *
 * tag_frames OWN_MAC (six bytes in hexadecimal, with colons)
 */
#include <arpa/inet.h>
#include <errno.h>

#include "fixture.h"

enum { FRAMES = 3, BYTES = 100, ETHER_TYPE = 0x88b5 /* of experiments, and the next ones */ };

static const uint32_t tags[FRAMES] = {0x123456, 0, 0xfffffffe};
static struct ibv_qp *qp;
static struct ibv_cq_ex *cq;
static uint8_t in[FRAMES][256], out[FRAMES][BYTES], mac[6];

/* for frames of the @n-th type; @num_tags: 0, 1 or 2 specifications of its tag */
static struct ibv_flow *steer(int n, uint8_t num_tags)
{
	struct {
		struct ibv_flow_attr attr;
		struct ibv_flow_spec_eth eth;
		struct ibv_flow_spec_action_tag tag[2];
	} __attribute__((packed, aligned(8))) rule = {
		.attr = {.type = IBV_FLOW_ATTR_NORMAL, .size = sizeof(rule),
			 .num_of_specs = (uint8_t)(1 + num_tags), .port = 1},
		.eth = {.type = IBV_FLOW_SPEC_ETH, .size = sizeof(rule.eth),
			.val = {.ether_type = htons((uint16_t)(ETHER_TYPE + n))},
			.mask = {.ether_type = 0xffff}},
	};

	for (int i = 0; i < 2; i++)
		rule.tag[i] = (struct ibv_flow_spec_action_tag){
			.type = IBV_FLOW_SPEC_ACTION_TAG, .size = sizeof(rule.tag[i]), .tag_id = tags[n]};
	return ibv_create_flow(qp, (struct ibv_flow_attr *)(void *)&rule);
}

static void exchange(uint32_t lkey)
{
	for (int n = 0; n < FRAMES; n++) {
		struct ibv_sge to = {(uintptr_t)in[n], sizeof(in[n]), lkey};
		struct ibv_sge from = {(uintptr_t)out[n], BYTES, lkey};
		struct ibv_recv_wr recv = {.wr_id = (uint64_t)n, .sg_list = &to, .num_sge = 1}, *bad_recv;
		struct ibv_send_wr wr = {.sg_list = &from, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;
		uint16_t type = htons((uint16_t)(ETHER_TYPE + n));

		memcpy(out[n], mac, 6);
		memcpy(out[n] + 6, mac, 6);
		memcpy(out[n] + 12, &type, sizeof(type));
		CHECK(!ibv_post_recv(qp, &recv, &bad_recv));
		CHECK(!ibv_post_send(qp, &wr, &bad));
	}
}

static void expect_tags(void)
{
	struct ibv_poll_cq_attr attr = {0};

	for (int n = 0; n < FRAMES; n++) {
		int rc;

		while ((rc = ibv_start_poll(cq, &attr)) == ENOENT)
			;
		CHECK(!rc && cq->status == IBV_WC_SUCCESS && cq->wr_id == (uint64_t)n);
		CHECK(ibv_wc_read_flow_tag(cq) == tags[n]);
		ibv_end_poll(cq);
	}
}

int main(int argc, char **argv)
{
	struct ibv_cq_init_attr_ex init = {.cqe = 2 * FRAMES, .wc_flags = IBV_WC_EX_WITH_FLOW_TAG};
	struct ibv_context *context;
	struct ibv_mr *mr;
	struct ibv_pd *pd;

	CHECK(argc == 2 && sscanf(argv[1], "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &mac[0], &mac[1],
				  &mac[2], &mac[3], &mac[4], &mac[5]) == 6);
	context = open_first_device();
	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq_ex(context, &init);
	mr = ibv_reg_mr(pd, NULL, SIZE_MAX, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
	CHECK(pd && cq && mr);
	qp = make_raw_qp(pd, ibv_cq_ex_to_cq(cq), FRAMES);
	for (int state = IBV_QPS_INIT; state <= IBV_QPS_RTS; state++)
		move_raw_qp(qp, (enum ibv_qp_state)state);
	CHECK(!steer(0, 2) && errno == EINVAL);
	CHECK(steer(0, 1) && steer(1, 0) && steer(2, 1));
	exchange(mr->lkey);
	expect_tags();
	puts("tagged");
	return 0;
}
