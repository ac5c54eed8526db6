/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The table of the midlayer's trace points, and names for them. */
#include <arpa/inet.h>
#include <stdio.h>

#include "core/rdma_cm_priv.h"
#include "core/trace.h"
#include "rdma/ib.h"

const struct rt_trace_point core_trace_points[CORE_NUM_TRACE_POINTS] = {
	CORE_TRACE_POINTS(RT_TRACE_ROW)
};

#define NAME(prefix, name) [prefix##name] = #name

static const char *const qp_states[] = {
	NAME(IB_QPS_, RESET),
	NAME(IB_QPS_, INIT),
	NAME(IB_QPS_, RTR),
	NAME(IB_QPS_, RTS),
	NAME(IB_QPS_, SQD),
	NAME(IB_QPS_, SQE),
	NAME(IB_QPS_, ERR),
};

static const char *const events[] = {
	NAME(IB_EVENT_, CQ_ERR),
	NAME(IB_EVENT_, QP_FATAL),
	NAME(IB_EVENT_, QP_REQ_ERR),
	NAME(IB_EVENT_, QP_ACCESS_ERR),
	NAME(IB_EVENT_, COMM_EST),
	NAME(IB_EVENT_, SQ_DRAINED),
	NAME(IB_EVENT_, PATH_MIG),
	NAME(IB_EVENT_, PATH_MIG_ERR),
	NAME(IB_EVENT_, DEVICE_FATAL),
	NAME(IB_EVENT_, PORT_ACTIVE),
	NAME(IB_EVENT_, PORT_ERR),
	NAME(IB_EVENT_, LID_CHANGE),
	NAME(IB_EVENT_, PKEY_CHANGE),
	NAME(IB_EVENT_, SM_CHANGE),
	NAME(IB_EVENT_, SRQ_ERR),
	NAME(IB_EVENT_, SRQ_LIMIT_REACHED),
	NAME(IB_EVENT_, QP_LAST_WQE_REACHED),
	NAME(IB_EVENT_, CLIENT_REREGISTER),
	NAME(IB_EVENT_, GID_CHANGE),
};

static const char *const cm_events[] = {
	NAME(RDMA_CM_EVENT_, ADDR_RESOLVED),
	NAME(RDMA_CM_EVENT_, ADDR_ERROR),
	NAME(RDMA_CM_EVENT_, ROUTE_RESOLVED),
	NAME(RDMA_CM_EVENT_, ROUTE_ERROR),
	NAME(RDMA_CM_EVENT_, CONNECT_REQUEST),
	NAME(RDMA_CM_EVENT_, CONNECT_RESPONSE),
	NAME(RDMA_CM_EVENT_, CONNECT_ERROR),
	NAME(RDMA_CM_EVENT_, UNREACHABLE),
	NAME(RDMA_CM_EVENT_, REJECTED),
	NAME(RDMA_CM_EVENT_, ESTABLISHED),
	NAME(RDMA_CM_EVENT_, DISCONNECTED),
	NAME(RDMA_CM_EVENT_, DEVICE_REMOVAL),
	NAME(RDMA_CM_EVENT_, MULTICAST_JOIN),
	NAME(RDMA_CM_EVENT_, MULTICAST_ERROR),
	NAME(RDMA_CM_EVENT_, ADDR_CHANGE),
	NAME(RDMA_CM_EVENT_, TIMEWAIT_EXIT),
};

static const char *name_of(const char *const *names, size_t num, unsigned int value)
{
	return value < num && names[value] ? names[value] : "?";
}

const char *trace_qp_state_name(unsigned int state)
{
	return name_of(qp_states, ARRAY_SIZE(qp_states), state);
}

const char *trace_event_name(unsigned int event)
{
	return name_of(events, ARRAY_SIZE(events), event);
}

const char *trace_cm_event_name(unsigned int event)
{
	return name_of(cm_events, ARRAY_SIZE(cm_events), event);
}

const char *trace_address(const struct sockaddr_storage *addr, char text[TRACE_ADDRESS_BYTES])
{
	char ip[INET6_ADDRSTRLEN] = "?";
	size_t bytes;
	const u8 *raw;

	if (addr->ss_family == AF_UNSPEC)
		return "-";
	raw = rcm_ip(addr, &bytes);
	if (addr->ss_family == AF_IB)
		raw = ((const struct sockaddr_ib *)addr)->sib_addr.sib_raw;
	inet_ntop(addr->ss_family == AF_INET ? AF_INET : AF_INET6, raw, ip, sizeof(ip));
	snprintf(text, TRACE_ADDRESS_BYTES, addr->ss_family == AF_INET ? "%s:%u" : "[%s]:%u", ip, rcm_port(addr));
	return text;
}
