/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What an endpoint is made of: its attributes, and how a consumer asks for them and
 * changes them. */
#include "ulp/kdapl/private.h"

/* --- attributes --- */

static DAT_COUNT at_most(int limit, DAT_COUNT count)
{
	return limit < count ? limit : count;
}

static int max_iov(const struct ib_device_attr *limits)
{
	return at_most(KD_MAX_IOV, at_most(limits->max_send_sge, limits->max_recv_sge));
}

DAT_EP_ATTR kd_ep_default_attr(const struct kd_ia *ia)
{
	const struct ib_device_attr *limits = &ia->device->attrs;
	struct ib_port_attr port = {.max_msg_sz = 0};
	DAT_COUNT iov = at_most(max_iov(limits), KD_DEFAULT_IOV);

	ib_query_port(ia->device, ia->port, &port);
	return (DAT_EP_ATTR){.service_type = DAT_SERVICE_TYPE_RC,
			     .max_message_size = port.max_msg_sz,
			     .max_rdma_size = port.max_msg_sz,
			     .qos = DAT_QOS_BEST_EFFORT,
			     .max_recv_dtos = at_most(limits->max_qp_wr, KD_DEFAULT_DTOS),
			     .max_request_dtos =
				     at_most(limits->max_qp_wr - 1, KD_DEFAULT_DTOS),
			     .max_recv_iov = iov,
			     .max_request_iov = iov,
			     .max_rdma_read_in = limits->max_qp_rd_atom,
			     .max_rdma_read_out = limits->max_qp_init_rd_atom,
			     .srq_soft_hw = DAT_WATERMARK_INFINITE,
			     .max_rdma_read_iov = iov,
			     .max_rdma_write_iov = iov};
}

static bool within(DAT_COUNT count, int limit)
{
	return count >= 0 && count <= limit;
}

bool kd_ep_attr_is_good(const struct kd_ia *ia, const DAT_EP_ATTR *a)
{
	const struct ib_device_attr *limits = &ia->device->attrs;
	const DAT_EP_ATTR most = kd_ep_default_attr(ia);
	const unsigned int recv_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG |
					DAT_COMPLETION_UNSIGNALLED_FLAG,
			   request_flags = recv_flags | DAT_COMPLETION_SUPPRESS_FLAG |
					   DAT_COMPLETION_BARRIER_FENCE_FLAG;
	int iov = max_iov(limits);

	return a->service_type == DAT_SERVICE_TYPE_RC && a->qos == DAT_QOS_BEST_EFFORT &&
	       a->max_message_size <= most.max_message_size &&
	       a->max_rdma_size <= most.max_rdma_size &&
	       !(a->recv_completion_flags & ~recv_flags) &&
	       !(a->request_completion_flags & ~request_flags) &&
	       within(a->max_recv_dtos, limits->max_qp_wr) &&
	       within(a->max_request_dtos, limits->max_qp_wr - 1) &&
	       within(a->max_recv_iov, iov) && within(a->max_request_iov, iov) &&
	       within(a->max_rdma_read_iov, iov) && within(a->max_rdma_write_iov, iov) &&
	       within(a->max_rdma_read_in, limits->max_qp_rd_atom) &&
	       within(a->max_rdma_read_out, limits->max_qp_init_rd_atom);
}

/* --- query, modify --- */

static DAT_PORT_QUAL port_of(const struct sockaddr_storage *addr)
{
	/* both families have it at the same place */
	return ntohs(((const struct sockaddr_in *)addr)->sin_port);
}

static DAT_IA_ADDRESS_PTR addr_of(struct sockaddr_storage *addr)
{
	return addr->ss_family ? (DAT_IA_ADDRESS_PTR)addr : NULL;
}

DAT_RETURN dat_ep_query(DAT_EP_HANDLE ep_handle, DAT_EP_PARAM_MASK ep_param_mask,
			DAT_EP_PARAM *ep_param)
{
	struct kd_ep *ep = kd_get(ep_handle, DAT_HANDLE_TYPE_EP);

	if (!ep)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	if (ep_param_mask & ~DAT_EP_FIELD_ALL)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (!ep_param)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	*ep_param = (DAT_EP_PARAM){.ia_handle = ep->object.ia,
				   .ep_state = ep->state,
				   .local_ia_address_ptr = addr_of(&ep->local),
				   .local_port_qual = port_of(&ep->local),
				   .remote_ia_address_ptr = addr_of(&ep->remote),
				   .remote_port_qual = port_of(&ep->remote),
				   .pz_handle = ep->pz,
				   .recv_evd_handle = ep->recv_evd,
				   .request_evd_handle = ep->request_evd,
				   .connect_evd_handle = ep->connect_evd,
				   .srq_handle = ep->srq,
				   .ep_attr = ep->attr};
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(dat_ep_query);

/* Copy the fields of the mask: which handle or attribute each bit stands for. */
static void merge(DAT_EP_PARAM *to, const DAT_EP_PARAM *from, DAT_EP_PARAM_MASK mask)
{
#define FIELD(bit, name)                                                                 \
	do {                                                                             \
		if (mask & DAT_EP_FIELD_##bit)                                           \
			to->name = from->name;                                           \
	} while (0)
	FIELD(PZ_HANDLE, pz_handle);
	FIELD(RECV_EVD_HANDLE, recv_evd_handle);
	FIELD(REQUEST_EVD_HANDLE, request_evd_handle);
	FIELD(CONNECT_EVD_HANDLE, connect_evd_handle);
	FIELD(SRQ_HANDLE, srq_handle);
	FIELD(EP_ATTR_SERVICE_TYPE, ep_attr.service_type);
	FIELD(EP_ATTR_MAX_MESSAGE_SIZE, ep_attr.max_message_size);
	FIELD(EP_ATTR_MAX_RDMA_SIZE, ep_attr.max_rdma_size);
	FIELD(EP_ATTR_QOS, ep_attr.qos);
	FIELD(EP_ATTR_RECV_COMPLETION_FLAGS, ep_attr.recv_completion_flags);
	FIELD(EP_ATTR_REQUEST_COMPLETION_FLAGS, ep_attr.request_completion_flags);
	FIELD(EP_ATTR_MAX_RECV_DTOS, ep_attr.max_recv_dtos);
	FIELD(EP_ATTR_MAX_REQUEST_DTOS, ep_attr.max_request_dtos);
	FIELD(EP_ATTR_MAX_RECV_IOV, ep_attr.max_recv_iov);
	FIELD(EP_ATTR_MAX_REQUEST_IOV, ep_attr.max_request_iov);
	FIELD(EP_ATTR_MAX_RDMA_READ_IN, ep_attr.max_rdma_read_in);
	FIELD(EP_ATTR_MAX_RDMA_READ_OUT, ep_attr.max_rdma_read_out);
	FIELD(EP_ATTR_MAX_RDMA_READ_IOV, ep_attr.max_rdma_read_iov);
	FIELD(EP_ATTR_MAX_RDMA_WRITE_IOV, ep_attr.max_rdma_write_iov);
#undef FIELD
}

/* may PZ, EVDs and attributes change in this state? */
static bool may_modify(const struct kd_ep *ep)
{
	DAT_EP_STATE state = kd_state_configured(ep->state);

	return state == DAT_EP_STATE_UNCONNECTED || state == DAT_EP_STATE_RESERVED ||
	       state == DAT_EP_STATE_PASSIVE_CONNECTION_PENDING ||
	       state == DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING;
}

DAT_RETURN dat_ep_modify(DAT_EP_HANDLE ep_handle, DAT_EP_PARAM_MASK ep_param_mask,
			 const DAT_EP_PARAM *ep_param)
{
	const DAT_EP_PARAM_MASK fixed =
		DAT_EP_FIELD_IA_HANDLE | DAT_EP_FIELD_EP_STATE |
		DAT_EP_FIELD_LOCAL_IA_ADDRESS_PTR | DAT_EP_FIELD_LOCAL_PORT_QUAL |
		DAT_EP_FIELD_REMOTE_IA_ADDRESS_PTR | DAT_EP_FIELD_REMOTE_PORT_QUAL;
	struct kd_ep *ep = kd_get(ep_handle, DAT_HANDLE_TYPE_EP);
	DAT_EP_PARAM old, new;

	if (!ep)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	if (ep_param_mask & (~DAT_EP_FIELD_ALL | fixed))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (!ep_param)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (!may_modify(ep) || kd_dtos_count(&ep->recv))
		return DAT_ERROR(DAT_INVALID_STATE, kd_state_subtype(ep->state));
	dat_ep_query(ep_handle, DAT_EP_FIELD_ALL, &old);
	new = old;
	merge(&new, ep_param, ep_param_mask);
	if (!kd_ep_attr_is_good(ep->object.ia, &new.ep_attr))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	return kd_ep_rebuild(ep, &old, &new);
}
EXPORT_SYMBOL(dat_ep_modify);
