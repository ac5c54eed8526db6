/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* RC queue pairs of the midlayer on their way to RTS (IBA v1 10.3.1), for traffic that uses include/rdma. */
#ifndef SOFTIB_SIM_RC_H
#define SOFTIB_SIM_RC_H

#include <rdma/ib_verbs.h>

/** rc_bring_up() - move @qp from RESET to RTS, toward the queue pair @dest_qpn at the port with @dlid. Packets of
 *  both directions begin at @psn. Return: 0; -errno */
static inline int rc_bring_up(struct ib_qp *qp, u16 dlid, u32 dest_qpn, u32 psn, enum ib_mtu mtu)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ,
		.ah_attr = {.dlid = dlid, .port_num = 1},
		.path_mtu = mtu,
		.dest_qp_num = dest_qpn,
		.rq_psn = psn,
		.sq_psn = psn,
		.max_rd_atomic = 2,
		.max_dest_rd_atomic = 2,
		.min_rnr_timer = 1,
		.timeout = 12,
		.retry_cnt = 7,
		.rnr_retry = 7,
	};
	int ret = ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS);

	attr.qp_state = IB_QPS_RTR;
	ret = ret ?: ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN |
						     IB_QP_RQ_PSN | IB_QP_MAX_DEST_RD_ATOMIC |
						     IB_QP_MIN_RNR_TIMER);
	attr.qp_state = IB_QPS_RTS;
	return ret ?: ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_SQ_PSN | IB_QP_TIMEOUT | IB_QP_RETRY_CNT |
						      IB_QP_RNR_RETRY | IB_QP_MAX_QP_RD_ATOMIC);
}

#endif
