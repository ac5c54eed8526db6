/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Counters objects: a raw packet QP sends frames to its own port, a rule steers them to it and
 * counts them. Prints "counted" if every call does what ibv_create_counters(3) says.
 *
 * count_frames OWN_MAC (six bytes in hexadecimal, with colons)
 */
#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixture.h"

enum { FRAMES = 5, BYTES = 100, ETHER_TYPE = 0xb588 /* of experiments, big endian */ };

static struct ibv_context *context;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static uint8_t buf[2][4096];

static void open_device(void)
{
	struct ibv_pd *pd;

	context = open_first_device();
	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, 2 * FRAMES, NULL, NULL, 0);
	mr = ibv_reg_mr(pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE);
	CHECK(pd && cq && mr);
	qp = make_raw_qp(pd, cq, FRAMES);
	for (int state = IBV_QPS_INIT; state <= IBV_QPS_RTS; state++)
		move_raw_qp(qp, (enum ibv_qp_state)state);
}

static void send_to_self(const uint8_t mac[6])
{
	struct ibv_sge in = {(uintptr_t)buf[0], sizeof(buf[0]), mr->lkey};
	struct ibv_sge out = {(uintptr_t)buf[1], BYTES, mr->lkey};
	struct ibv_recv_wr recv = {.sg_list = &in, .num_sge = 1}, *bad_recv;
	struct ibv_send_wr send = {.sg_list = &out, .num_sge = 1, .opcode = IBV_WR_SEND,
				   .send_flags = IBV_SEND_SIGNALED}, *bad;
	struct ibv_wc wc;

	memcpy(buf[1], mac, 6);
	memcpy(buf[1] + 6, mac, 6);
	memcpy(buf[1] + 12, &(uint16_t){ETHER_TYPE}, 2);
	for (int i = 0; i < FRAMES; i++)
		CHECK(!ibv_post_recv(qp, &recv, &bad_recv));
	for (int i = 0; i < FRAMES; i++)
		CHECK(!ibv_post_send(qp, &send, &bad));
	for (int left = 2 * FRAMES; left;) {
		int n = ibv_poll_cq(cq, 1, &wc);

		CHECK(n >= 0 && (!n || wc.status == IBV_WC_SUCCESS));
		left -= n;
	}
}

/* A forked child has no session with softibd, as a program has whose softibd died: it can still
 * give back its copies. */
static void end_in_a_child(struct ibv_counters *counters, struct ibv_flow *flow)
{
	pid_t pid = fork();
	int status;

	CHECK(pid >= 0);
	if (!pid) {
		CHECK(!ibv_destroy_flow(flow));
		CHECK(!ibv_destroy_counters(counters));
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

int main(int argc, char **argv)
{
	struct ibv_counter_attach_attr point = {.counter_desc = IBV_COUNTER_BYTES};
	struct ibv_counters_init_attr init = {0};
	struct ibv_counters *counters;
	struct ibv_flow *flow;
	uint64_t value[3];
	uint8_t mac[6];

	CHECK(argc == 2 && sscanf(argv[1], "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &mac[0], &mac[1],
				  &mac[2], &mac[3], &mac[4], &mac[5]) == 6);
	open_device();
	counters = ibv_create_counters(context, &init);
	CHECK(counters);
	CHECK(!ibv_attach_counters_point_flow(counters, &point, NULL));
	CHECK(ibv_attach_counters_point_flow(counters, &point, NULL) == EINVAL); /* taken */
	point = (struct ibv_counter_attach_attr){.counter_desc = IBV_COUNTER_PACKETS, .index = 2};
	CHECK(!ibv_attach_counters_point_flow(counters, &point, NULL));
	point = (struct ibv_counter_attach_attr){.counter_desc = 7, .index = 1};
	CHECK(ibv_attach_counters_point_flow(counters, &point, NULL) == EOPNOTSUPP);
	flow = counting_rule(qp, mac, counters);
	CHECK(flow);
	CHECK(!ibv_read_counters(counters, value, 3, 0) && !value[0] && !value[1] && !value[2]);
	send_to_self(mac);
	CHECK(!ibv_read_counters(counters, value, 3, IBV_READ_COUNTERS_ATTR_PREFER_CACHED));
	CHECK(value[0] == FRAMES * BYTES && value[1] == 0 && value[2] == FRAMES);
	CHECK(ibv_read_counters(counters, value, 2, 0) == EINVAL);
	CHECK(ibv_destroy_counters(counters) == EBUSY);
	end_in_a_child(counters, flow);
	CHECK(!ibv_destroy_flow(flow));
	CHECK(!ibv_read_counters(counters, value, 3, 0) && value[2] == FRAMES);
	CHECK(!ibv_destroy_counters(counters));
	puts("counted");
	return 0;
}
