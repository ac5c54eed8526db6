/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * FLUSH as programs use it that were built with newer verbs than Debian 12's: they find
 * wr_flush() behind the members of struct ibv_qp_ex. Two QPs of one port are connected. Prints
 * "flushed" if each FLUSH ends as annex A19 says, "refused" if the device has none.
 */
#include <errno.h>
#include <string.h>

#include "fixture.h"

enum { /* as verbs.h of rdma-core 46 and later has them */
	ACCESS_FLUSH_GLOBAL = 1 << 8,
	ACCESS_FLUSH_PERSISTENT = 1 << 9,
	QP_EX_WITH_FLUSH = 1 << 11,
	WC_FLUSH = 8,
	FLUSH_GLOBAL = 1,
	FLUSH_PERSISTENT = 2,
	FLUSH_RANGE = 0,
	FLUSH_MR = 1,
};
#define DEVICE_FLUSH_GLOBAL (1ull << 38)

struct newer_qp_ex {
	struct ibv_qp_ex ex;
	void (*wr_flush)(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, size_t len,
			 uint8_t type, uint8_t level);
};

static struct ibv_context *context;
static struct ibv_cq *cq;
static struct ibv_qp_ex *ex; /* of the QP that sends */
static char from[64], to[64];

static struct ibv_qp *make_qp(struct ibv_pd *pd)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RC,
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = 4, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = pd,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | QP_EX_WITH_FLUSH,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(context, &attr);

	CHECK(qp);
	return qp;
}

static void connect_to(struct ibv_qp *qp, const struct ibv_qp *peer)
{
	connect_qp(qp, (struct ibv_qp_attr){
			       .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | ACCESS_FLUSH_GLOBAL,
			       .dest_qp_num = peer->qp_num},
		   lid_of(context), 1);
}

static enum ibv_wc_status completes(uint64_t wr_id)
{
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(cq, 1, &wc)))
		;
	CHECK(n == 1 && wc.wr_id == wr_id);
	CHECK(wc.status != IBV_WC_SUCCESS || wc.opcode == (enum ibv_wc_opcode)WC_FLUSH);
	return wc.status;
}

/* a WRITE without a completion, then a FLUSH of it */
static enum ibv_wc_status flush(const struct ibv_mr *source, const struct ibv_mr *target,
				const char *text, uint8_t type, uint8_t level)
{
	static uint64_t wr_id;

	strcpy(from, text);
	ibv_wr_start(ex);
	ex->wr_id = 0;
	ex->wr_flags = 0;
	ibv_wr_rdma_write(ex, target->rkey, (uintptr_t)to);
	ibv_wr_set_sge(ex, source->lkey, (uintptr_t)from, sizeof(from));
	ex->wr_id = ++wr_id;
	ex->wr_flags = IBV_SEND_SIGNALED;
	((struct newer_qp_ex *)ex)->wr_flush(ex, target->rkey, (uintptr_t)to,
					     level == FLUSH_RANGE ? sizeof(to) : 0, type, level);
	CHECK(!ibv_wr_complete(ex));
	return completes(wr_id);
}

int main(void)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	struct ibv_device_attr_ex attr;
	struct ibv_mr *source, *target;
	struct ibv_qp *qp[2];
	struct ibv_pd *pd;

	context = open_first_device();
	CHECK(!ibv_query_device_ex(context, NULL, &attr));
	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, 8, NULL, NULL, 0);
	CHECK(pd && cq);
	CHECK(!ibv_reg_mr(pd, to, sizeof(to), access | ACCESS_FLUSH_PERSISTENT) && errno == EINVAL);
	target = ibv_reg_mr(pd, to, sizeof(to), access | ACCESS_FLUSH_GLOBAL);
	if (!(attr.device_cap_flags_ex & DEVICE_FLUSH_GLOBAL)) {
		CHECK(!target && errno == EINVAL);
		puts("refused");
		return 0;
	}
	source = ibv_reg_mr(pd, from, sizeof(from), IBV_ACCESS_LOCAL_WRITE);
	CHECK(source && target);
	for (int i = 0; i < 2; i++)
		qp[i] = make_qp(pd);
	for (int i = 0; i < 2; i++)
		connect_to(qp[i], qp[!i]);
	ex = ibv_qp_to_qp_ex(qp[0]);
	CHECK(ex);
	CHECK(flush(source, target, "a range", FLUSH_GLOBAL, FLUSH_RANGE) == IBV_WC_SUCCESS);
	CHECK(!strcmp(to, "a range"));
	CHECK(flush(source, target, "a region", FLUSH_GLOBAL, FLUSH_MR) == IBV_WC_SUCCESS);
	CHECK(!strcmp(to, "a region"));
	CHECK(flush(source, target, "for ever", FLUSH_PERSISTENT, FLUSH_RANGE) ==
	      IBV_WC_REM_ACCESS_ERR);
	puts("flushed");
	return 0;
}
