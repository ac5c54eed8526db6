/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Names of events and completion statuses, for people. */
#include "rdma/ib_attr.h"
#include "rdma/rdma_cm.h"

static const char *const events[] = {
	[IB_EVENT_CQ_ERR] = "CQ error",
	[IB_EVENT_QP_FATAL] = "QP fatal error",
	[IB_EVENT_QP_REQ_ERR] = "QP request error",
	[IB_EVENT_QP_ACCESS_ERR] = "QP access error",
	[IB_EVENT_COMM_EST] = "communication established",
	[IB_EVENT_SQ_DRAINED] = "send queue drained",
	[IB_EVENT_PATH_MIG] = "path migration successful",
	[IB_EVENT_PATH_MIG_ERR] = "path migration failed",
	[IB_EVENT_DEVICE_FATAL] = "device fatal error",
	[IB_EVENT_PORT_ACTIVE] = "port active",
	[IB_EVENT_PORT_ERR] = "port error",
	[IB_EVENT_LID_CHANGE] = "LID changed",
	[IB_EVENT_PKEY_CHANGE] = "P_Key table changed",
	[IB_EVENT_SM_CHANGE] = "subnet manager changed",
	[IB_EVENT_SRQ_ERR] = "SRQ error",
	[IB_EVENT_SRQ_LIMIT_REACHED] = "SRQ limit reached",
	[IB_EVENT_QP_LAST_WQE_REACHED] = "last work request reached",
	[IB_EVENT_CLIENT_REREGISTER] = "clients are to register again",
	[IB_EVENT_GID_CHANGE] = "GID table changed",
};

static const char *const statuses[] = {
	[IB_WC_SUCCESS] = "success",
	[IB_WC_LOC_LEN_ERR] = "local length error",
	[IB_WC_LOC_QP_OP_ERR] = "local QP operation error",
	[IB_WC_LOC_EEC_OP_ERR] = "local EE context operation error",
	[IB_WC_LOC_PROT_ERR] = "local protection error",
	[IB_WC_WR_FLUSH_ERR] = "flushed in error",
	[IB_WC_MW_BIND_ERR] = "memory window bind error",
	[IB_WC_BAD_RESP_ERR] = "bad response",
	[IB_WC_LOC_ACCESS_ERR] = "local access error",
	[IB_WC_REM_INV_REQ_ERR] = "remote: invalid request",
	[IB_WC_REM_ACCESS_ERR] = "remote: access error",
	[IB_WC_REM_OP_ERR] = "remote: operation error",
	[IB_WC_RETRY_EXC_ERR] = "transport retries exceeded",
	[IB_WC_RNR_RETRY_EXC_ERR] = "receiver-not-ready retries exceeded",
	[IB_WC_LOC_RDD_VIOL_ERR] = "local RDD violation",
	[IB_WC_REM_INV_RD_REQ_ERR] = "remote: invalid RD request",
	[IB_WC_REM_ABORT_ERR] = "remote: operation aborted",
	[IB_WC_INV_EECN_ERR] = "invalid EE context number",
	[IB_WC_INV_EEC_STATE_ERR] = "invalid EE context state",
	[IB_WC_FATAL_ERR] = "fatal error",
	[IB_WC_RESP_TIMEOUT_ERR] = "response timed out",
	[IB_WC_GENERAL_ERR] = "general error",
};

const char *ib_event_msg(enum ib_event_type event)
{
	return event < ARRAY_SIZE(events) ? events[event] : "unknown event";
}

const char *ib_wc_status_msg(enum ib_wc_status status)
{
	return status < ARRAY_SIZE(statuses) ? statuses[status] : "unknown status";
}

const char *rdma_event_msg(enum rdma_cm_event_type event)
{
	static const char *const names[] = {
		[RDMA_CM_EVENT_ADDR_RESOLVED] = "address resolved",
		[RDMA_CM_EVENT_ADDR_ERROR] = "address error",
		[RDMA_CM_EVENT_ROUTE_RESOLVED] = "route resolved",
		[RDMA_CM_EVENT_ROUTE_ERROR] = "route error",
		[RDMA_CM_EVENT_CONNECT_REQUEST] = "connect request",
		[RDMA_CM_EVENT_CONNECT_RESPONSE] = "connect response",
		[RDMA_CM_EVENT_CONNECT_ERROR] = "connect error",
		[RDMA_CM_EVENT_UNREACHABLE] = "unreachable",
		[RDMA_CM_EVENT_REJECTED] = "rejected",
		[RDMA_CM_EVENT_ESTABLISHED] = "established",
		[RDMA_CM_EVENT_DISCONNECTED] = "disconnected",
		[RDMA_CM_EVENT_DEVICE_REMOVAL] = "device removal",
		[RDMA_CM_EVENT_MULTICAST_JOIN] = "multicast group joined",
		[RDMA_CM_EVENT_MULTICAST_ERROR] = "multicast error",
		[RDMA_CM_EVENT_ADDR_CHANGE] = "address change",
		[RDMA_CM_EVENT_TIMEWAIT_EXIT] = "time-wait exit",
	};

	return event < ARRAY_SIZE(names) ? names[event] : "unknown event";
}
