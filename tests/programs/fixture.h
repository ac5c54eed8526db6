/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What these programs have in common: checks, and QPs on their way to RTS. */
#ifndef SOFTIB_TESTS_PROGRAMS_FIXTURE_H
#define SOFTIB_TESTS_PROGRAMS_FIXTURE_H

#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** CHECK() - end the program unless @truth; its test sees why on either output */
#define CHECK(truth)                                                                       \
	do {                                                                               \
		if (!(truth)) {                                                            \
			fflush(stdout);                                                    \
			fprintf(stderr, "line %d: not %s: %m\n", __LINE__, #truth);        \
			exit(1);                                                           \
		}                                                                          \
	} while (0)

/** open_first_device() - of the node */
static inline struct ibv_context *open_first_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *opened;

	CHECK(list && list[0]);
	opened = ibv_open_device(list[0]);
	CHECK(opened);
	ibv_free_device_list(list);
	return opened;
}

static inline uint16_t lid_of(struct ibv_context *context)
{
	struct ibv_port_attr port;

	CHECK(!ibv_query_port(context, 1, &port));
	return port.lid;
}

/** raise_connected_qp() - an RC or XRC QP in RESET, by INIT and RTR to the state @last, with the
 *  attributes in @attr. Return: 0 or errno, of the first step that failed */
static inline int raise_connected_qp(struct ibv_qp *qp, struct ibv_qp_attr attr,
				     enum ibv_qp_state last)
{
	static const int masks[] = {
		[IBV_QPS_INIT] = IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS,
		[IBV_QPS_RTR] = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
		[IBV_QPS_RTS] = IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC,
	};
	int rc = 0;

	attr.port_num = 1;
	for (int to = IBV_QPS_INIT; !rc && to <= (int)last; to++) {
		attr.qp_state = (enum ibv_qp_state)to;
		rc = ibv_modify_qp(qp, &attr, IBV_QP_STATE | masks[to]);
	}
	return rc;
}

/** raise_datagram_qp() - a UD QP in RESET, to RTS */
static inline void raise_datagram_qp(struct ibv_qp *qp, uint32_t qkey)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = qkey};

	CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
	attr.qp_state = IBV_QPS_RTR;
	CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE));
	attr.qp_state = IBV_QPS_RTS;
	CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN));
}

/**
 * connect_qp() - an RC or XRC QP in RESET, to RTS
 * @attr: what differs from QP to QP: qp_access_flags, dest_qp_num, both PSNs
 * @reads: outstanding READs and atomics of both directions
 */
static inline void connect_qp(struct ibv_qp *qp, struct ibv_qp_attr attr, uint16_t lid,
			      uint8_t reads)
{
	attr.path_mtu = IBV_MTU_1024;
	attr.max_dest_rd_atomic = reads;
	attr.max_rd_atomic = reads;
	attr.min_rnr_timer = 1;
	attr.timeout = 15;
	attr.retry_cnt = 7;
	attr.rnr_retry = 7;
	attr.ah_attr = (struct ibv_ah_attr){.dlid = lid, .port_num = 1};
	CHECK(!raise_connected_qp(qp, attr, IBV_QPS_RTS));
}

/** move_raw_qp() - a raw packet QP, which has no other attributes, to the next state */
static inline void move_raw_qp(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state, .port_num = 1};

	CHECK(!ibv_modify_qp(qp, &attr, state == IBV_QPS_INIT ? IBV_QP_STATE | IBV_QP_PORT :
							       IBV_QP_STATE));
}

/** make_raw_qp() - in RESET, with @depth requests in each of its queues */
static inline struct ibv_qp *make_raw_qp(struct ibv_pd *pd, struct ibv_cq *cq, uint32_t depth)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RAW_PACKET,
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = depth, .max_recv_wr = depth, .max_send_sge = 1,
			.max_recv_sge = 1},
	};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	CHECK(qp);
	return qp;
}

/**
 * counting_rule() - steer frames to the raw packet QP @qp, and count them
 * @mac: their destination; NULL: any
 * Return: the rule; NULL, and errno
 */
static inline struct ibv_flow *counting_rule(struct ibv_qp *qp, const uint8_t *mac,
					     struct ibv_counters *counters)
{
	struct {
		struct ibv_flow_attr attr;
		struct ibv_flow_spec_eth eth;
		struct ibv_flow_spec_counter_action count;
	} __attribute__((packed, aligned(8))) rule = {
		.attr = {.type = IBV_FLOW_ATTR_NORMAL, .size = sizeof(rule), .num_of_specs = 2,
			 .port = 1},
		.eth = {.type = IBV_FLOW_SPEC_ETH, .size = sizeof(rule.eth)},
		.count = {.type = IBV_FLOW_SPEC_ACTION_COUNT, .size = sizeof(rule.count),
			  .counters = counters},
	};

	if (mac) {
		memcpy(rule.eth.val.dst_mac, mac, 6);
		memset(rule.eth.mask.dst_mac, 0xff, 6);
	}
	return ibv_create_flow(qp, (struct ibv_flow_attr *)(void *)&rule);
}

#endif
