/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Connections, by the RDMA CM: a connection qualifier is a port of RDMA_PS_TCP, so that
 * kernel consumers reach programs on librdmacm and uDAPL, and are reached by them.
 */
#include "ulp/kdapl/trace.h"

#define RETRIES 7

static bool is_in(const struct kd_ep *ep, DAT_EP_STATE state)
{
	return ep->state == state;
}

/* --- events --- */

void kd_ep_event(struct kd_ep *ep, DAT_EVENT_NUMBER number)
{
	const DAT_EVENT event = {
		.event_number = number,
		.event_data.connect_event_data = {
			.ep_handle = ep,
			.private_data_size = ep->private_bytes,
			.private_data = ep->private_bytes ? ep->private_data : NULL}};

	trace_kdapl_event(ep->object.ia->device, ep->object.ia->port, ep->qp ? ep->qp->qp_num : 0,
			  number);
	kd_evd_post(ep->connect_evd, &event);
}

void kd_ep_end(struct kd_ep *ep, DAT_EVENT_NUMBER number)
{
	del_timer(&ep->timeout);
	kd_ep_fail_qp(ep);
	if (ep->id)
		rdma_disconnect(ep->id); /* -EINVAL: there is no connection any more */
	kd_ep_enter(ep, DAT_EP_STATE_DISCONNECTED);
	if (number != DAT_CONNECTION_EVENT_PEER_REJECTED)
		ep->private_bytes = 0;
	kd_ep_event(ep, number);
}

void kd_ep_drop_id(struct kd_ep *ep)
{
	if (ep->id)
		rdma_destroy_id(ep->id);
	ep->id = NULL;
}

static void take_private_data(struct kd_ep *ep, const struct rdma_conn_param *param)
{
	ep->private_bytes = param->private_data ? param->private_data_len : 0;
	memcpy(ep->private_data, param->private_data ? param->private_data : "",
	       ep->private_bytes);
}

struct rdma_conn_param kd_ep_terms(const struct kd_ep *ep, const void *data, u8 bytes)
{
	return (struct rdma_conn_param){.private_data = data,
					.private_data_len = bytes,
					.responder_resources =
						(u8)ep->attr.max_rdma_read_in,
					.initiator_depth = (u8)ep->attr.max_rdma_read_out,
					.flow_control = 1,
					.retry_count = RETRIES,
					.rnr_retry_count = RETRIES,
					.srq = ep->srq != NULL,
					.qp_num = ep->qp->qp_num};
}

static void establish(struct kd_ep *ep)
{
	del_timer(&ep->timeout);
	kd_ep_enter(ep, DAT_EP_STATE_CONNECTED);
	ep->local = ep->id->route.addr.src_addr;
	ep->remote = ep->id->route.addr.dst_addr;
	kd_ep_event(ep, DAT_CONNECTION_EVENT_ESTABLISHED);
}

static int on_response(struct kd_ep *ep, const struct rdma_cm_event *event)
{
	int ret = kd_ep_modify_qp(ep, IB_QPS_INIT);

	if (!ret)
		ret = kd_ep_modify_qp(ep, IB_QPS_RTR);
	if (!ret)
		ret = kd_ep_modify_qp(ep, IB_QPS_RTS);
	if (!ret)
		ret = rdma_accept(ep->id, NULL);
	if (ret)
		return ret;
	take_private_data(ep, &event->param.conn);
	establish(ep);
	return 0;
}

static int ask(struct kd_ep *ep)
{
	struct rdma_conn_param param =
		kd_ep_terms(ep, ep->private_data, ep->private_bytes);

	return rdma_connect(ep->id, &param);
}

static void on_reject(struct kd_ep *ep, const struct rdma_cm_event *event)
{
	bool by_consumer = event->status == IB_CM_REJ_CONSUMER_DEFINED;

	take_private_data(ep, &event->param.conn);
	kd_ep_end(ep, by_consumer ? DAT_CONNECTION_EVENT_PEER_REJECTED
				  : DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
}

static void on_connecting(struct kd_ep *ep, const struct rdma_cm_event *event)
{
	int ret = 0;

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		ret = rdma_resolve_route(ep->id, KD_RESOLVE_MS);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		ret = ask(ep);
		break;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		ret = on_response(ep, event);
		break;
	case RDMA_CM_EVENT_REJECTED:
		on_reject(ep, event);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_DISCONNECTED:
		ret = -EHOSTUNREACH;
		break;
	default:
		break;
	}
	if (ret)
		kd_ep_end(ep, DAT_CONNECTION_EVENT_UNREACHABLE);
}

static void on_accepting(struct kd_ep *ep, const struct rdma_cm_event *event)
{
	switch (event->event) {
	case RDMA_CM_EVENT_ESTABLISHED:
		ep->private_bytes = 0;
		establish(ep);
		break;
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_REJECTED:
	case RDMA_CM_EVENT_DISCONNECTED:
		kd_ep_end(ep, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
		break;
	default:
		break;
	}
}

int kd_ep_cm(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct kd_ep *ep = id->context;

	if (is_in(ep, DAT_EP_STATE_ACTIVE_CONNECTION_PENDING))
		on_connecting(ep, event);
	else if (is_in(ep, DAT_EP_STATE_COMPLETION_PENDING))
		on_accepting(ep, event);
	else if (event->event == RDMA_CM_EVENT_DISCONNECTED &&
		 (is_in(ep, DAT_EP_STATE_CONNECTED) ||
		  is_in(ep, DAT_EP_STATE_DISCONNECT_PENDING)))
		kd_ep_end(ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	return 0;
}

static void on_timeout(struct timer_list *timer)
{
	struct kd_ep *ep = from_timer(ep, timer, timeout);

	kd_ep_drop_id(ep);
	kd_ep_end(ep, DAT_CONNECTION_EVENT_TIMED_OUT);
}

void kd_ep_timer_init(struct kd_ep *ep)
{
	timer_setup(&ep->timeout, on_timeout, 0);
}

/* --- connect --- */

static bool is_multicast(const struct sockaddr *addr)
{
	const struct sockaddr_in *four = (const struct sockaddr_in *)(const void *)addr;
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)(const void *)addr;

	if (addr->sa_family == AF_INET6)
		return IN6_IS_ADDR_MULTICAST(&six->sin6_addr);
	return IN_MULTICAST(ntohl(four->sin_addr.s_addr)) ||
	       four->sin_addr.s_addr == htonl(INADDR_BROADCAST);
}

static DAT_RETURN take_remote(struct kd_ep *ep, const struct sockaddr *addr,
			      DAT_CONN_QUAL qual)
{
	if (!addr || (addr->sa_family != AF_INET && addr->sa_family != AF_INET6))
		return DAT_ERROR(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_MALFORMED);
	if (is_multicast(addr))
		return DAT_ERROR(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNSUPPORTED);
	memset(&ep->remote, 0, sizeof(ep->remote));
	memcpy(&ep->remote, addr,
	       addr->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
					   : sizeof(struct sockaddr_in));
	((struct sockaddr_in *)&ep->remote)->sin_port = htons((u16)qual);
	ep->conn_qual = qual;
	return DAT_SUCCESS;
}

static DAT_RETURN start(struct kd_ep *ep, DAT_TIMEOUT timeout)
{
	const struct kd_ia *ia = ep->object.ia;
	struct sockaddr_storage own;
	int ret;

	if (rdma_port_addr(ia->device, ia->port, ep->remote.ss_family, &own))
		return DAT_ERROR(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNREACHABLE);
	ep->id = rdma_create_id(&init_net, kd_ep_cm, ep, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(ep->id)) {
		ep->id = NULL;
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEP);
	}
	ret = rdma_resolve_addr(ep->id, (struct sockaddr *)&own,
				(struct sockaddr *)&ep->remote, KD_RESOLVE_MS);
	if (ret) {
		kd_ep_drop_id(ep);
		return DAT_ERROR(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNREACHABLE);
	}
	kd_ep_enter(ep, DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
	if (timeout != DAT_TIMEOUT_INFINITE)
		mod_timer(&ep->timeout, jiffies + usecs_to_jiffies(timeout));
	return DAT_SUCCESS;
}

static DAT_RETURN connect_check(const struct kd_ep *ep, DAT_CONN_QUAL qual,
				DAT_TIMEOUT timeout, DAT_COUNT bytes, const void *data)
{
	if (!ep)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	if (!is_in(ep, DAT_EP_STATE_UNCONNECTED))
		return DAT_ERROR(DAT_INVALID_STATE, kd_state_subtype(ep->state));
	if (!qual || qual > UINT16_MAX)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (!timeout)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	if (bytes < 0 || bytes > KD_PRIVATE_DATA)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	if (bytes && !data)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
	return DAT_SUCCESS;
}

DAT_RETURN dat_ep_connect(DAT_EP_HANDLE ep_handle, DAT_IA_ADDRESS_PTR remote_ia_address,
			  DAT_CONN_QUAL remote_conn_qual, DAT_TIMEOUT timeout,
			  DAT_COUNT private_data_size, const DAT_PVOID private_data,
			  DAT_QOS quality_of_service, DAT_CONNECT_FLAGS connect_flags)
{
	struct kd_ep *ep = kd_get(ep_handle, DAT_HANDLE_TYPE_EP);
	DAT_RETURN ret = connect_check(ep, remote_conn_qual, timeout, private_data_size,
				       private_data);

	if (ret != DAT_SUCCESS)
		return ret;
	if (quality_of_service != DAT_QOS_BEST_EFFORT ||
	    connect_flags & DAT_CONNECT_MULTIPATH_FLAG)
		return DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, 0);
	if (connect_flags != DAT_CONNECT_DEFAULT_FLAG)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG8);
	ret = take_remote(ep, remote_ia_address, remote_conn_qual);
	if (ret != DAT_SUCCESS)
		return ret;
	ep->private_bytes = (u8)private_data_size;
	memcpy(ep->private_data, private_data ? private_data : "", ep->private_bytes);
	return start(ep, timeout);
}
EXPORT_SYMBOL(dat_ep_connect);

DAT_RETURN dat_ep_dup_connect(DAT_EP_HANDLE ep_handle, DAT_EP_HANDLE ep_dup_handle,
			      DAT_TIMEOUT timeout, DAT_COUNT private_data_size,
			      const DAT_PVOID private_data, DAT_QOS quality_of_service)
{
	const struct kd_ep *dup = kd_get(ep_dup_handle, DAT_HANDLE_TYPE_EP);
	struct sockaddr_storage remote;

	if (!kd_get(ep_handle, DAT_HANDLE_TYPE_EP))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	if (!dup)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE2);
	/* one that was connected to does not know where its peer listens */
	if (!is_in(dup, DAT_EP_STATE_CONNECTED) || !dup->conn_qual)
		return DAT_ERROR(DAT_INVALID_STATE, kd_state_subtype(dup->state));
	remote = dup->remote;
	return dat_ep_connect(ep_handle, (DAT_IA_ADDRESS_PTR)&remote, dup->conn_qual,
			      timeout, private_data_size, private_data,
			      quality_of_service, DAT_CONNECT_DEFAULT_FLAG);
}
EXPORT_SYMBOL(dat_ep_dup_connect);

/* --- disconnect --- */

/* A write of no bytes completes after all requests before it, and changes
 * nothing: 9.7.7.1. */
static int post_drain(struct kd_ep *ep)
{
	struct kd_dto *dto = kd_dtos_next(&ep->request);
	struct ib_rdma_wr wr = {
		.wr = {.opcode = IB_WR_RDMA_WRITE, .send_flags = IB_SEND_SIGNALED}};
	int ret;

	if (!dto)
		return -ENOMEM;
	*dto = (struct kd_dto){.op = KD_DRAIN};
	wr.wr.wr_id = ep->request.tail;
	ret = ib_post_send(ep->qp, &wr.wr, NULL);
	if (!ret)
		kd_dtos_posted(&ep->request);
	return ret;
}

DAT_RETURN dat_ep_disconnect(DAT_EP_HANDLE ep_handle, DAT_CLOSE_FLAGS close_flags)
{
	struct kd_ep *ep = kd_get(ep_handle, DAT_HANDLE_TYPE_EP);
	bool graceful = close_flags == DAT_CLOSE_GRACEFUL_FLAG;

	if (!ep)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	if (!graceful && close_flags != DAT_CLOSE_ABRUPT_FLAG)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	switch (ep->state) {
	case DAT_EP_STATE_DISCONNECTED:
		return DAT_SUCCESS;
	case DAT_EP_STATE_DISCONNECT_PENDING:
		if (graceful)
			return DAT_SUCCESS;
		break;
	case DAT_EP_STATE_CONNECTED:
		if (graceful && !post_drain(ep)) {
			kd_ep_enter(ep, DAT_EP_STATE_DISCONNECT_PENDING);
			return DAT_SUCCESS;
		}
		break;
	case DAT_EP_STATE_ACTIVE_CONNECTION_PENDING:
	case DAT_EP_STATE_COMPLETION_PENDING:
		kd_ep_drop_id(ep);
		break;
	default:
		return DAT_ERROR(DAT_INVALID_STATE, kd_state_subtype(ep->state));
	}
	kd_ep_end(ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(dat_ep_disconnect);
