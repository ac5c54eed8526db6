/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The extended way to read completions: start_poll, next_poll, a read
 * function per field, end_poll. The CQ holds the completion that is being
 * read. Fields that were not asked for at creation have no read function.
 */
#include <time.h>

#include "soft.h"

static struct soft_cq *from_ex(struct ibv_cq_ex *ex)
{
	return container_of(ex, struct soft_cq, ex);
}

static int take_one(struct soft_cq *cq)
{
	int n = cq_poll(&cq->ibv, 1, &cq->wc);

	if (n < 1)
		return n < 0 ? EIO : ENOENT;
	cq->ex.status = cq->wc.status;
	cq->ex.wr_id = cq->wc.wr_id;
	return 0;
}

/* Return: 0 and a completion; ENOENT none, and no end_poll follows; EINVAL */
static int start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	struct soft_cq *cq = from_ex(ex);
	int rc;

	if (attr && attr->comp_mask)
		return EINVAL;
	if (!cq->single_threaded)
		pthread_mutex_lock(&cq->poll_lock);
	rc = take_one(cq);
	if (rc && !cq->single_threaded)
		pthread_mutex_unlock(&cq->poll_lock);
	return rc;
}

static int next_poll(struct ibv_cq_ex *ex)
{
	return take_one(from_ex(ex));
}

static void end_poll(struct ibv_cq_ex *ex)
{
	struct soft_cq *cq = from_ex(ex);

	if (!cq->single_threaded)
		pthread_mutex_unlock(&cq->poll_lock);
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return timespec_ns(&ts);
}

/* Software takes the time when the completion is read. */
static uint64_t read_completion_ts(struct ibv_cq_ex *ex)
{
	return clock_ns(CLOCK_MONOTONIC) & to_context(ex->context)->attr.completion_timestamp_mask;
}

static uint64_t read_completion_wallclock_ns(struct ibv_cq_ex *ex)
{
	return clock_ns(CLOCK_REALTIME);
}

#define READ(type, name, field)                                                                \
	static type read_##name(struct ibv_cq_ex *ex)                                          \
	{                                                                                      \
		return from_ex(ex)->wc.field;                                                  \
	}

READ(enum ibv_wc_opcode, opcode, opcode)
READ(uint32_t, vendor_err, vendor_err)
READ(uint32_t, byte_len, byte_len)
READ(__be32, imm_data, imm_data)
READ(uint32_t, qp_num, qp_num)
READ(uint32_t, src_qp, src_qp)
READ(unsigned int, wc_flags, wc_flags)
READ(uint32_t, slid, slid)
READ(uint8_t, sl, sl)
READ(uint8_t, dlid_path_bits, dlid_path_bits)

/* The VLAN in which a datagram came, 0 for none. Its number is in the path bits, and the same
 * at all ports. */
static uint16_t read_cvlan(struct ibv_cq_ex *ex)
{
	const struct soft_context *ctx = to_context(ex->context);
	uint8_t path = from_ex(ex)->wc.dlid_path_bits;

	for (uint32_t p = 0; p < ctx->num_ports; p++) {
		const struct abi_devport *port = &ctx->devpage->port[p];

		for (int i = 0; i < port->num_gids; i++)
			if (port->gid_vlan[i] && port->gid_path[i] == path)
				return port->gid_vlan[i];
	}
	return 0;
}

static uint32_t read_flow_tag(struct ibv_cq_ex *ex)
{
	return eng_wc_flow_tag(&from_ex(ex)->wc);
}

static void read_tm_info(struct ibv_cq_ex *ex, struct ibv_wc_tm_info *info)
{
	eng_wc_tm_info(&from_ex(ex)->wc, info);
}

/** cq_ex_fill() - the functions of an extended CQ; opcode, vendor_err and
 *  wc_flags are always there (ibv_create_cq_ex(3)) */
void cq_ex_fill(struct soft_cq *cq, uint64_t wc_flags)
{
	struct ibv_cq_ex *ex = &cq->ex;

	ex->start_poll = start_poll;
	ex->next_poll = next_poll;
	ex->end_poll = end_poll;
	ex->read_opcode = read_opcode;
	ex->read_vendor_err = read_vendor_err;
	ex->read_wc_flags = read_wc_flags;
#define IF(flag, name)                                                                         \
	if (wc_flags & IBV_WC_EX_WITH_##flag)                                                  \
		ex->read_##name = read_##name
	IF(BYTE_LEN, byte_len);
	IF(IMM, imm_data);
	IF(QP_NUM, qp_num);
	IF(SRC_QP, src_qp);
	IF(SLID, slid);
	IF(SL, sl);
	IF(DLID_PATH_BITS, dlid_path_bits);
	IF(COMPLETION_TIMESTAMP, completion_ts);
	IF(COMPLETION_TIMESTAMP_WALLCLOCK, completion_wallclock_ns);
	IF(TM_INFO, tm_info);
	IF(CVLAN, cvlan);
	IF(FLOW_TAG, flow_tag);
#undef IF
}
