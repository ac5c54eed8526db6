/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the programs of libibcm have in common: paths, queue pairs by what the CM says of them, and events. */
#ifndef SOFTIB_TESTS_PROGRAMS_IBCM_H
#define SOFTIB_TESTS_PROGRAMS_IBCM_H

#include <errno.h>
#include <infiniband/cm.h>

#include "fixture.h"

#define BYTES 64 /* of a message */
#define CHECK_FAILS(call, error) CHECK((call) == -1 && errno == (error))

/** struct end - one end of a connection. @psn: at which it begins to send */
struct end {
	struct ib_cm_device *device;
	struct ib_cm_id *id;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint32_t psn;
	char memory[BYTES];
};

static inline struct ibv_sa_path_rec path_to(struct ibv_context *context, uint16_t lid, const union ibv_gid *gid)
{
	struct ibv_sa_path_rec path = {
		.dgid = *gid,
		.dlid = htobe16(lid),
		.slid = htobe16(lid_of(context)),
		.pkey = htobe16(0xffff),
		.mtu = IBV_MTU_1024,
		.rate = IBV_RATE_10_GBPS,
		.reversible = 1,
		.packet_life_time = 14,
	};

	CHECK(!ibv_query_gid(context, 1, 0, &path.sgid));
	return path;
}

/** open_end() - an adapter's CM, and a queue pair in RESET with a receive that @memory takes */
static inline void open_end(struct end *end, struct ibv_context *context, uint32_t psn)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
	};

	*end = (struct end){.psn = psn};
	CHECK(end->device = ib_cm_open_device(context));
	CHECK(end->device->device_context == context);
	CHECK(end->pd = ibv_alloc_pd(context));
	CHECK(end->cq = ibv_create_cq(context, 4, NULL, NULL, 0));
	CHECK(end->mr = ibv_reg_mr(end->pd, end->memory, BYTES, IBV_ACCESS_LOCAL_WRITE));
	init.send_cq = init.recv_cq = end->cq;
	CHECK(end->qp = ibv_create_qp(end->pd, &init));
}

static inline void close_end(struct end *end)
{
	CHECK(!ibv_destroy_qp(end->qp));
	CHECK(!ibv_dereg_mr(end->mr));
	CHECK(!ibv_destroy_cq(end->cq));
	CHECK(!ibv_dealloc_pd(end->pd));
	ib_cm_close_device(end->device);
}

/** modify() - to a state, by what the CM says of the connection. @own_psn: of who accepts */
static inline void modify(struct end *end, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};
	int mask;

	CHECK(!ib_cm_init_qp_attr(end->id, &attr, &mask));
	if (state == IBV_QPS_RTR)
		attr.min_rnr_timer = 1;
	CHECK(!ibv_modify_qp(end->qp, &attr, mask));
}

static inline void post_receive(struct end *end)
{
	struct ibv_sge sge = {(uintptr_t)end->memory, BYTES, end->mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	CHECK(!ibv_post_recv(end->qp, &wr, &bad));
}

static inline void await_completion(struct end *end, enum ibv_wc_opcode opcode)
{
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(end->cq, 1, &wc)))
		;
	CHECK(n == 1 && wc.status == IBV_WC_SUCCESS && wc.opcode == opcode);
}

static inline void send_text(struct end *end, const char *text)
{
	struct ibv_sge sge = {(uintptr_t)end->memory, BYTES, end->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED}, *bad;

	snprintf(end->memory, BYTES, "%s", text);
	CHECK(!ibv_post_send(end->qp, &wr, &bad));
	await_completion(end, IBV_WC_SEND);
}

/* --- events --- */

static const char *const event_names[] = {
	[IB_CM_REQ_ERROR] = "REQ_ERROR",	     [IB_CM_REQ_RECEIVED] = "REQ_RECEIVED",
	[IB_CM_REP_ERROR] = "REP_ERROR",	     [IB_CM_REP_RECEIVED] = "REP_RECEIVED",
	[IB_CM_RTU_RECEIVED] = "RTU_RECEIVED",	     [IB_CM_USER_ESTABLISHED] = "USER_ESTABLISHED",
	[IB_CM_DREQ_ERROR] = "DREQ_ERROR",	     [IB_CM_DREQ_RECEIVED] = "DREQ_RECEIVED",
	[IB_CM_DREP_RECEIVED] = "DREP_RECEIVED",     [IB_CM_TIMEWAIT_EXIT] = "TIMEWAIT_EXIT",
	[IB_CM_MRA_RECEIVED] = "MRA_RECEIVED",	     [IB_CM_REJ_RECEIVED] = "REJ_RECEIVED",
	[IB_CM_LAP_ERROR] = "LAP_ERROR",	     [IB_CM_LAP_RECEIVED] = "LAP_RECEIVED",
	[IB_CM_APR_RECEIVED] = "APR_RECEIVED",	     [IB_CM_SIDR_REQ_ERROR] = "SIDR_REQ_ERROR",
	[IB_CM_SIDR_REQ_RECEIVED] = "SIDR_REQ_RECEIVED", [IB_CM_SIDR_REP_RECEIVED] = "SIDR_REP_RECEIVED",
};

/** expect() - wait for an event, which ib_cm_ack_event() frees */
static inline struct ib_cm_event *expect(struct ib_cm_device *device, enum ib_cm_event_type type)
{
	struct ib_cm_event *event;

	CHECK(!ib_cm_get_event(device, &event));
	if (event->event != type)
		printf("%s, not ", event_names[event->event]);
	CHECK(event->event == type);
	return event;
}

/** expect_data() - as expect(), with @text as the private data. Return: the id; the event is acknowledged */
static inline struct ib_cm_id *expect_data(struct ib_cm_device *device, enum ib_cm_event_type type, const char *text)
{
	struct ib_cm_event *event = expect(device, type);
	struct ib_cm_id *id = event->cm_id;

	CHECK(event->private_data && !strcmp(event->private_data, text));
	CHECK(!ib_cm_ack_event(event));
	return id;
}

/* --- steps --- */

static inline struct ib_cm_req_param request_for(const struct end *end, struct ibv_sa_path_rec *path, __be64 service)
{
	return (struct ib_cm_req_param){
		.primary_path = path,
		.service_id = service,
		.qp_num = end->qp->qp_num,
		.qp_type = IBV_QPT_RC,
		.starting_psn = end->psn,
		.private_data = (void *)"request",
		.private_data_len = sizeof("request"),
		.responder_resources = 1,
		.initiator_depth = 1,
		.remote_cm_response_timeout = 20,
		.local_cm_response_timeout = 20,
		.retry_count = 7,
		.rnr_retry_count = 7,
		.max_cm_retries = 15,
	};
}

/** accept_request() - go to RTR, and send the REP */
static inline void accept_request(struct end *end)
{
	struct ib_cm_rep_param rep = {
		.qp_num = end->qp->qp_num,
		.starting_psn = end->psn,
		.private_data = (void *)"reply",
		.private_data_len = sizeof("reply"),
		.responder_resources = 1,
		.initiator_depth = 1,
		.rnr_retry_count = 7,
	};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
	int mask;

	modify(end, IBV_QPS_INIT);
	post_receive(end);
	CHECK(!ib_cm_init_qp_attr(end->id, &attr, &mask));
	attr.rq_psn = end->psn;
	attr.min_rnr_timer = 1;
	CHECK(!ibv_modify_qp(end->qp, &attr, mask));
	CHECK(!ib_cm_send_rep(end->id, &rep));
}

/** finish_request() - after the REP, to RTS */
static inline void finish_request(struct end *end)
{
	modify(end, IBV_QPS_INIT);
	post_receive(end);
	modify(end, IBV_QPS_RTR);
	modify(end, IBV_QPS_RTS);
}

#endif
