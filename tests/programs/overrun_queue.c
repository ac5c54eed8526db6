/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A work queue whose CQ overruns: a raw packet QP sends frames to its own port, an RSS QP passes
 * them to the work queue, and nobody polls. Prints the names of the asynchronous events that come,
 * up to the one of the work queue.
 *
 * overrun_queue OWN_MAC (six bytes in hexadecimal, with colons)
 */
#include <string.h>

#include "fixture.h"

enum { BYTES = 100, DEPTH = 256, ETHER_TYPE = 0xb588 /* of experiments, big endian */ };

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_wq *wq;
static struct ibv_rwq_ind_table *table;
static struct ibv_mr *mr;
static uint8_t buf[2][4096];

static void make_queue(void)
{
	struct ibv_wq_init_attr init = {.wq_type = IBV_WQT_RQ, .max_wr = DEPTH, .max_sge = 1};
	struct ibv_wq_attr ready = {.attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RDY};
	struct ibv_rwq_ind_table_init_attr one = {.ind_tbl = &wq};
	struct ibv_sge sge = {(uintptr_t)buf[0], sizeof(buf[0]), mr->lkey};
	struct ibv_recv_wr recv = {.sg_list = &sge, .num_sge = 1}, *bad;

	cq = ibv_create_cq(context, 1, NULL, NULL, 0);
	CHECK(cq && cq->cqe < DEPTH);
	init.pd = pd;
	init.cq = cq;
	wq = ibv_create_wq(context, &init);
	CHECK(wq && !ibv_modify_wq(wq, &ready));
	for (int i = 0; i <= cq->cqe; i++)
		CHECK(!ibv_post_wq_recv(wq, &recv, &bad));
	table = ibv_create_rwq_ind_table(context, &one);
	CHECK(table);
}

static struct ibv_qp *make_rss_qp(void)
{
	static uint8_t key[40];
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_RAW_PACKET,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE |
			     IBV_QP_INIT_ATTR_RX_HASH,
		.pd = pd,
		.rwq_ind_tbl = table,
		.rx_hash_conf = {.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ,
				 .rx_hash_key_len = sizeof(key),
				 .rx_hash_key = key,
				 .rx_hash_fields_mask = IBV_RX_HASH_SRC_IPV4},
	};
	struct ibv_qp *qp = ibv_create_qp_ex(context, &init);

	CHECK(qp);
	move_raw_qp(qp, IBV_QPS_INIT);
	move_raw_qp(qp, IBV_QPS_RTR);
	return qp;
}

static struct ibv_flow *steer(struct ibv_qp *qp, const uint8_t mac[6])
{
	struct {
		struct ibv_flow_attr attr;
		struct ibv_flow_spec_eth eth;
	} __attribute__((packed, aligned(8))) rule = {
		.attr = {.type = IBV_FLOW_ATTR_NORMAL, .size = sizeof(rule), .num_of_specs = 1,
			 .port = 1},
		.eth = {.type = IBV_FLOW_SPEC_ETH, .size = sizeof(rule.eth)},
	};

	memcpy(rule.eth.val.dst_mac, mac, 6);
	memset(rule.eth.mask.dst_mac, 0xff, 6);
	return ibv_create_flow(qp, (struct ibv_flow_attr *)(void *)&rule);
}

static void send_to_self(struct ibv_qp *qp, struct ibv_cq *send_cq, const uint8_t mac[6])
{
	struct ibv_sge out = {(uintptr_t)buf[1], BYTES, mr->lkey};
	struct ibv_send_wr send = {.sg_list = &out, .num_sge = 1, .opcode = IBV_WR_SEND,
				   .send_flags = IBV_SEND_SIGNALED}, *bad;
	struct ibv_wc wc;
	int n;

	memcpy(buf[1], mac, 6);
	memcpy(buf[1] + 6, mac, 6);
	memcpy(buf[1] + 12, &(uint16_t){ETHER_TYPE}, 2);
	CHECK(!ibv_post_send(qp, &send, &bad));
	while (!(n = ibv_poll_cq(send_cq, 1, &wc)))
		;
	CHECK(n == 1 && wc.status == IBV_WC_SUCCESS);
}

static void hear_of_it(void)
{
	struct ibv_async_event event;

	do {
		CHECK(!ibv_get_async_event(context, &event));
		puts(ibv_event_type_str(event.event_type));
		if (event.event_type == IBV_EVENT_WQ_FATAL)
			CHECK(event.element.wq == wq);
		else
			CHECK(event.element.cq == cq);
		ibv_ack_async_event(&event);
	} while (event.event_type != IBV_EVENT_WQ_FATAL);
}

int main(int argc, char **argv)
{
	struct ibv_cq *send_cq;
	struct ibv_qp *rss, *qp;
	struct ibv_flow *flow;
	uint8_t mac[6];

	CHECK(argc == 2 && sscanf(argv[1], "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &mac[0], &mac[1],
				  &mac[2], &mac[3], &mac[4], &mac[5]) == 6);
	context = open_first_device();
	pd = ibv_alloc_pd(context);
	send_cq = ibv_create_cq(context, 1, NULL, NULL, 0);
	CHECK(pd && send_cq);
	mr = ibv_reg_mr(pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE);
	CHECK(mr);
	make_queue();
	rss = make_rss_qp();
	flow = steer(rss, mac);
	CHECK(flow);
	qp = make_raw_qp(pd, send_cq, 1);
	for (int state = IBV_QPS_INIT; state <= IBV_QPS_RTS; state++)
		move_raw_qp(qp, (enum ibv_qp_state)state);
	for (int i = 0; i <= cq->cqe; i++)
		send_to_self(qp, send_cq, mac);
	hear_of_it();
	CHECK(!ibv_destroy_flow(flow) && !ibv_destroy_qp(rss));
	CHECK(!ibv_destroy_rwq_ind_table(table) && !ibv_destroy_wq(wq));
	CHECK(!ibv_destroy_cq(cq));
	return 0;
}
