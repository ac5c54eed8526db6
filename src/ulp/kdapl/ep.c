/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Endpoints. One has a queue pair while it is configured: its PZ and its three EVDs are
 *known. The QP is in INIT then, so that receives can be posted before it is connected.
 *
 *	UNCONNECTED		dat_ep_connect(), dat_cr_accept(), dat_rsp_create()
 *	RESERVED		an RSP has it; a request arrives
 *	PASSIVE_CONNECTION_PENDING, TENTATIVE_CONNECTION_PENDING
 *				a CR has it; accepted or refused
 *	ACTIVE_CONNECTION_PENDING
 *				it connects; established, refused, or the time is over
 *	COMPLETION_PENDING	it accepted; established, or the peer gave up
 *	CONNECTED		disconnected by an end, or broken
 *	DISCONNECT_PENDING	requests that are posted complete first
 *	DISCONNECTED		dat_ep_reset()
 */
#include "ulp/kdapl/trace.h"

/* --- the QP --- */

static void on_qp_event(struct ib_event *event, void *qp_context)
{
	struct kd_ep *ep = qp_context;

	if (event->event == IB_EVENT_COMM_EST) {
		if (ep->id)
			rdma_notify(ep->id, IB_EVENT_COMM_EST);
	} else if (event->event == IB_EVENT_QP_FATAL ||
		   event->event == IB_EVENT_QP_REQ_ERR ||
		   event->event == IB_EVENT_QP_ACCESS_ERR) {
		kd_async(&ep->object, DAT_ASYNC_ERROR_EP_BROKEN,
			 DAT_EP_TRANSFER_TO_ERROR);
		if (ep->state == DAT_EP_STATE_CONNECTED)
			kd_ep_end(ep, DAT_CONNECTION_EVENT_BROKEN);
	}
}

static int init_qp(struct kd_ep *ep)
{
	struct ib_qp_attr attr = {.qp_state = IB_QPS_INIT,
				  .port_num = (u8)ep->object.ia->port,
				  .qp_access_flags =
					  IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE};

	return ib_modify_qp(ep->qp, &attr,
			    IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
				    IB_QP_ACCESS_FLAGS);
}

static u32 most_iov(const DAT_EP_ATTR *a)
{
	DAT_COUNT n = a->max_request_iov;

	n = n < a->max_rdma_read_iov ? a->max_rdma_read_iov : n;
	return (u32)(n < a->max_rdma_write_iov ? a->max_rdma_write_iov : n);
}

static DAT_RETURN create_qp(struct kd_ep *ep)
{
	struct ib_qp_init_attr init = {
		.event_handler = on_qp_event,
		.qp_context = ep,
		.send_cq = ep->request_evd->cq,
		.recv_cq = ep->recv_evd->cq,
		.srq = ep->srq ? ep->srq->srq : NULL,
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.cap = {.max_send_wr = (u32)ep->attr.max_request_dtos + 1,
			.max_recv_wr = ep->srq ? 0 : (u32)ep->attr.max_recv_dtos,
			.max_send_sge = most_iov(&ep->attr),
			.max_recv_sge = ep->srq ? 0 : (u32)ep->attr.max_recv_iov}};
	u32 requests = (u32)ep->attr.max_request_dtos + 1,
	    recvs = (u32)ep->attr.max_recv_dtos;
	struct kd_dto *request = kcalloc(requests, sizeof(*request), GFP_KERNEL);
	struct kd_dto *recv = kcalloc(recvs + 1, sizeof(*recv), GFP_KERNEL);
	struct ib_qp *qp =
		request && recv ? ib_create_qp(ep->pz->pd, &init) : ERR_PTR(-ENOMEM);

	if (IS_ERR(qp)) {
		kfree(request);
		kfree(recv);
		return kd_error(PTR_ERR(qp), DAT_RESOURCE_TEP);
	}
	kd_dtos_init(&ep->request, request, requests);
	kd_dtos_init(&ep->recv, recv, recvs);
	ep->qp = qp;
	return kd_error(init_qp(ep), DAT_RESOURCE_TEP);
}

static void destroy_qp(struct kd_ep *ep)
{
	if (!ep->qp)
		return;
	/* their completions refer to the EP */
	kd_evd_fill(ep->request_evd);
	kd_evd_fill(ep->recv_evd);
	ib_destroy_qp(ep->qp);
	ep->qp = NULL;
	kfree(ep->request.slot);
	kfree(ep->recv.slot);
	kd_dtos_init(&ep->request, NULL, 0);
	kd_dtos_init(&ep->recv, NULL, 0);
}

int kd_ep_modify_qp(struct kd_ep *ep, enum ib_qp_state state)
{
	struct ib_qp_attr attr = {.qp_state = state};
	int mask, ret = rdma_init_qp_attr(ep->id, &attr, &mask);

	if (!ret && state == IB_QPS_INIT)
		attr.qp_access_flags |= IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE;
	return ret ? ret : ib_modify_qp(ep->qp, &attr, mask);
}

void kd_ep_fail_qp(struct kd_ep *ep)
{
	struct ib_qp_attr attr = {.qp_state = IB_QPS_ERR};

	if (ep->qp)
		ib_modify_qp(ep->qp, &attr, IB_QP_STATE);
}

/* --- configuration --- */

static bool is_configured(const struct kd_ep *ep)
{
	return ep->pz && ep->recv_evd && ep->request_evd && ep->connect_evd;
}

static unsigned int *recv_kind(struct kd_ep *ep)
{
	bool solicited =
		ep->attr.recv_completion_flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG;

	return solicited ? &ep->recv_evd->solicited : &ep->recv_evd->signalled;
}

static void count_parts(struct kd_ep *ep, int change)
{
	kd_use_of(ep->pz, change);
	kd_use_of(ep->recv_evd, change);
	kd_use_of(ep->request_evd, change);
	kd_use_of(ep->connect_evd, change);
	kd_use_of(ep->srq, change);
	if (ep->recv_evd)
		*recv_kind(ep) += (unsigned int)change;
}

static DAT_RETURN configure(struct kd_ep *ep)
{
	if (!is_configured(ep)) {
		kd_ep_enter(ep, kd_state_unconfigured(ep->state));
		return DAT_SUCCESS;
	}
	kd_ep_enter(ep, kd_state_configured(ep->state));
	kd_evd_wake(ep->recv_evd);
	kd_evd_wake(ep->request_evd);
	return create_qp(ep);
}

/* Return: DAT_SUCCESS, and the objects of the handles in @ep */
static DAT_RETURN take_handles(struct kd_ep *ep, const DAT_EP_PARAM *param)
{
	const struct kd_ia *ia = ep->object.ia;

	ep->pz = kd_get(param->pz_handle, DAT_HANDLE_TYPE_PZ);
	ep->recv_evd = kd_evd_get(param->recv_evd_handle, DAT_EVD_DTO_FLAG);
	ep->request_evd = kd_evd_get(param->request_evd_handle, DAT_EVD_DTO_FLAG);
	ep->connect_evd = kd_evd_get(param->connect_evd_handle, DAT_EVD_CONNECTION_FLAG);
	ep->srq = kd_get(param->srq_handle, DAT_HANDLE_TYPE_SRQ);
	if ((param->pz_handle && !ep->pz) || (ep->pz && ep->pz->object.ia != ia))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
	if ((param->recv_evd_handle && !ep->recv_evd) ||
	    (ep->recv_evd && ep->recv_evd->object.ia != ia))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_RECV);
	if ((param->request_evd_handle && !ep->request_evd) ||
	    (ep->request_evd && ep->request_evd->object.ia != ia))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_REQUEST);
	if ((param->connect_evd_handle && !ep->connect_evd) ||
	    (ep->connect_evd && ep->connect_evd->object.ia != ia))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CONN);
	if ((param->srq_handle && !ep->srq) || (ep->srq && ep->srq->object.ia != ia))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
	/* 10.2.9.1: the QP would be of one PD, its receives of another */
	if (ep->srq && ep->pz && ep->srq->pz != ep->pz)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
	return DAT_SUCCESS;
}

DAT_RETURN kd_ep_create(struct kd_ia *ia, const DAT_EP_PARAM *param,
			const DAT_EP_ATTR *attr, struct kd_ep **out)
{
	struct kd_ep *ep = kd_alloc(ia, DAT_HANDLE_TYPE_EP, sizeof(*ep));
	DAT_RETURN ret;

	if (!ep)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	kd_ep_enter(ep, DAT_EP_STATE_UNCONNECTED);
	ep->attr = attr ? *attr : kd_ep_default_attr(ia);
	ep->local = ia->addr;
	kd_ep_timer_init(ep);
	ret = take_handles(ep, param);
	if (ret != DAT_SUCCESS) {
		kd_release(&ep->object);
		return ret;
	}
	count_parts(ep, 1);
	ret = configure(ep);
	if (ret == DAT_SUCCESS)
		*out = ep;
	else
		kd_ep_destroy(ep);
	return ret;
}

void kd_ep_stop(struct kd_ep *ep)
{
	del_timer(&ep->timeout);
	kd_ep_enter(ep, DAT_EP_STATE_DISCONNECTED); /* without an event */
	kd_ep_drop_id(ep);
	destroy_qp(ep);
}

void kd_ep_destroy(struct kd_ep *ep)
{
	kd_ep_stop(ep);
	kd_cr_forget_ep(ep);
	count_parts(ep, -1);
	kd_release(&ep->object);
}

static DAT_RETURN create(DAT_IA_HANDLE ia_handle, const DAT_EP_PARAM *param,
			 const DAT_EP_ATTR *attr, DAT_RETURN bad_attr,
			 DAT_EP_HANDLE *ep_handle)
{
	struct kd_ia *ia = kd_get(ia_handle, DAT_HANDLE_TYPE_IA);
	struct kd_ep *ep = NULL;
	DAT_RETURN ret;

	if (!ia)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if ((attr && !kd_ep_attr_is_good(ia, attr)) || !ep_handle)
		return bad_attr;
	ret = kd_ep_create(ia, param, attr, &ep);
	if (ret == DAT_SUCCESS)
		*ep_handle = ep;
	return ret;
}

DAT_RETURN dat_ep_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle,
			 DAT_EVD_HANDLE recv_completion_evd_handle,
			 DAT_EVD_HANDLE request_completion_evd_handle,
			 DAT_EVD_HANDLE connect_evd_handle,
			 const DAT_EP_ATTR *ep_attributes, DAT_EP_HANDLE *ep_handle)
{
	const DAT_EP_PARAM param = {.pz_handle = pz_handle,
				    .recv_evd_handle = recv_completion_evd_handle,
				    .request_evd_handle = request_completion_evd_handle,
				    .connect_evd_handle = connect_evd_handle};

	return create(ia_handle, &param, ep_attributes,
		      DAT_ERROR(DAT_INVALID_PARAMETER,
				ep_handle ? DAT_INVALID_ARG6 : DAT_INVALID_ARG7),
		      ep_handle);
}
EXPORT_SYMBOL(dat_ep_create);

DAT_RETURN
dat_ep_create_with_srq(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle,
		       DAT_EVD_HANDLE recv_evd_handle, DAT_EVD_HANDLE request_evd_handle,
		       DAT_EVD_HANDLE connect_evd_handle, DAT_SRQ_HANDLE srq_handle,
		       const DAT_EP_ATTR *ep_attributes, DAT_EP_HANDLE *ep_handle)
{
	const DAT_EP_PARAM param = {.pz_handle = pz_handle,
				    .recv_evd_handle = recv_evd_handle,
				    .request_evd_handle = request_evd_handle,
				    .connect_evd_handle = connect_evd_handle,
				    .srq_handle = srq_handle};

	if (!kd_get(srq_handle, DAT_HANDLE_TYPE_SRQ))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
	return create(ia_handle, &param, ep_attributes,
		      DAT_ERROR(DAT_INVALID_PARAMETER,
				ep_handle ? DAT_INVALID_ARG7 : DAT_INVALID_ARG8),
		      ep_handle);
}
EXPORT_SYMBOL(dat_ep_create_with_srq);

/* --- changes --- */

/* The QP is made anew. When that fails, @ep is as before, and has one as before. */
DAT_RETURN kd_ep_rebuild(struct kd_ep *ep, const DAT_EP_PARAM *old,
			 const DAT_EP_PARAM *new)
{
	DAT_RETURN ret;

	destroy_qp(ep);
	count_parts(ep, -1);
	ep->attr = new->ep_attr;
	ret = take_handles(ep, new);
	if (ret == DAT_SUCCESS) {
		count_parts(ep, 1);
		ret = configure(ep);
		if (ret == DAT_SUCCESS)
			return ret;
		destroy_qp(ep);
		count_parts(ep, -1);
	}
	ep->attr = old->ep_attr;
	take_handles(ep, old);
	count_parts(ep, 1);
	configure(ep);
	return ret;
}

/* --- status --- */

DAT_RETURN dat_ep_get_status(DAT_EP_HANDLE ep_handle, DAT_EP_STATE *ep_state,
			     DAT_BOOLEAN *recv_idle, DAT_BOOLEAN *request_idle)
{
	const struct kd_ep *ep = kd_get(ep_handle, DAT_HANDLE_TYPE_EP);

	if (!ep)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	if (ep_state)
		*ep_state = ep->state;
	if (recv_idle)
		*recv_idle = kd_dtos_count(&ep->recv) ? DAT_FALSE : DAT_TRUE;
	if (request_idle)
		*request_idle = kd_dtos_count(&ep->request) ? DAT_FALSE : DAT_TRUE;
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(dat_ep_get_status);

/* --- the end --- */

DAT_RETURN dat_ep_reset(DAT_EP_HANDLE ep_handle)
{
	struct kd_ep *ep = kd_get(ep_handle, DAT_HANDLE_TYPE_EP);
	DAT_RETURN ret;

	if (!ep)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	if (ep->state == DAT_EP_STATE_UNCONNECTED)
		return DAT_SUCCESS;
	if (ep->state != DAT_EP_STATE_DISCONNECTED)
		return DAT_ERROR(DAT_INVALID_STATE, kd_state_subtype(ep->state));
	/* A new QP: peers refuse the number of the old one until its time-wait is over
	 * (12.9.8.3). */
	kd_ep_drop_id(ep);
	destroy_qp(ep);
	ret = create_qp(ep);
	if (ret != DAT_SUCCESS)
		return ret;
	memset(&ep->remote, 0, sizeof(ep->remote));
	ep->local = ep->object.ia->addr;
	kd_ep_enter(ep, DAT_EP_STATE_UNCONNECTED);
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(dat_ep_reset);

DAT_RETURN dat_ep_free(DAT_EP_HANDLE ep_handle)
{
	struct kd_ep *ep = kd_get(ep_handle, DAT_HANDLE_TYPE_EP);
	DAT_EP_STATE state =
		ep ? kd_state_configured(ep->state) : DAT_EP_STATE_UNCONNECTED;

	if (!ep)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	if (state == DAT_EP_STATE_RESERVED ||
	    state == DAT_EP_STATE_PASSIVE_CONNECTION_PENDING ||
	    state == DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING)
		return DAT_ERROR(DAT_INVALID_STATE, kd_state_subtype(ep->state));
	kd_ep_destroy(ep);
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(dat_ep_free);

DAT_RETURN dat_ep_recv_query(DAT_EP_HANDLE ep_handle, DAT_COUNT *nbufs_allocated,
			     DAT_COUNT *bufs_alloc_span)
{
	const struct kd_ep *ep = kd_get(ep_handle, DAT_HANDLE_TYPE_EP);

	if (!ep)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	if (ep->srq)
		return DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, 0);
	if (nbufs_allocated)
		*nbufs_allocated = (DAT_COUNT)kd_dtos_count(&ep->recv);
	if (bufs_alloc_span)
		*bufs_alloc_span = (DAT_COUNT)kd_dtos_count(&ep->recv);
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(dat_ep_recv_query);

DAT_RETURN dat_ep_set_watermark(DAT_EP_HANDLE ep_handle, DAT_COUNT soft_high_watermark,
				DAT_COUNT hard_high_watermark)
{
	if (!kd_get(ep_handle, DAT_HANDLE_TYPE_EP))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	return soft_high_watermark == DAT_WATERMARK_INFINITE &&
			       hard_high_watermark == DAT_WATERMARK_INFINITE
		       ? DAT_SUCCESS
		       : DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, 0);
}
EXPORT_SYMBOL(dat_ep_set_watermark);
