/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Connection requests: from their arrival until they are accepted, refused or handed on.
 */
#include "ulp/kdapl/trace.h"

/* The peer may give up before the consumer has decided. */
static int on_cm(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct kd_cr *cr = id->context;

	if (event->event == RDMA_CM_EVENT_DISCONNECTED ||
	    event->event == RDMA_CM_EVENT_REJECTED ||
	    event->event == RDMA_CM_EVENT_UNREACHABLE ||
	    event->event == RDMA_CM_EVENT_CONNECT_ERROR)
		cr->gone = true;
	return 0;
}

struct kd_cr *kd_cr_create(struct kd_sp *sp, struct rdma_cm_id *id,
			   const struct rdma_cm_event *event)
{
	const struct rdma_conn_param *param = &event->param.conn;
	struct kd_cr *cr = kd_alloc(sp->object.ia, DAT_HANDLE_TYPE_CR, sizeof(*cr));

	if (!cr)
		return NULL;
	cr->id = id;
	cr->local = id->route.addr.src_addr;
	cr->remote = id->route.addr.dst_addr;
	cr->responder_resources = param->responder_resources;
	cr->initiator_depth = param->initiator_depth;
	cr->private_bytes = param->private_data ? param->private_data_len : 0;
	memcpy(cr->private_data, param->private_data ? param->private_data : "",
	       cr->private_bytes);
	id->context = cr;
	id->event_handler = on_cm;
	return cr;
}

/* The EP that came with a request that was not accepted: a consumer's is as it was before
 * there was an RSP; a provider's goes. */
void kd_cr_return_ep(struct kd_cr *cr)
{
	struct kd_ep *ep = cr->ep;

	cr->ep = NULL;
	if (!ep)
		return;
	if (ep->state == DAT_EP_STATE_PASSIVE_CONNECTION_PENDING)
		kd_ep_enter(ep, DAT_EP_STATE_UNCONNECTED);
	else if (ep->state == DAT_EP_STATE_UNCONFIGURED_PASSIVE)
		kd_ep_enter(ep, DAT_EP_STATE_UNCONFIGURED_UNCONNECTED);
	else
		kd_ep_destroy(ep);
}

void kd_cr_forget_ep(struct kd_ep *ep)
{
	struct kd_object *object;

	list_for_each_entry(object, &ep->object.ia->objects, node)
		if (object->type == DAT_HANDLE_TYPE_CR &&
		    ((struct kd_cr *)object)->ep == ep)
			((struct kd_cr *)object)->ep = NULL;
}

void kd_cr_stop(struct kd_cr *cr)
{
	if (cr->id)
		rdma_destroy_id(cr->id); /* the peer is told */
	cr->id = NULL;
}

void kd_cr_destroy(struct kd_cr *cr)
{
	kd_cr_stop(cr);
	kd_cr_return_ep(cr);
	kd_release(&cr->object);
}

DAT_RETURN dat_cr_query(DAT_CR_HANDLE cr_handle, DAT_CR_PARAM_MASK cr_param_mask,
			DAT_CR_PARAM *cr_param)
{
	struct kd_cr *cr = kd_get(cr_handle, DAT_HANDLE_TYPE_CR);

	if (!cr)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);
	if (cr_param_mask & ~(unsigned int)DAT_CR_FIELD_ALL)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (!cr_param)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	*cr_param = (DAT_CR_PARAM){
		.remote_ia_address_ptr = (DAT_IA_ADDRESS_PTR)&cr->remote,
		.remote_port_qual = ntohs(((struct sockaddr_in *)&cr->remote)->sin_port),
		.private_data_size = cr->private_bytes,
		.private_data = cr->private_data,
		.local_ep_handle = cr->ep};
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(dat_cr_query);

/* --- accept --- */

/* Return: DAT_SUCCESS, and the EP that accepts */
static DAT_RETURN choose_ep(const struct kd_cr *cr, DAT_EP_HANDLE handle,
			    struct kd_ep **out)
{
	struct kd_ep *ep = cr->ep ? cr->ep : kd_get(handle, DAT_HANDLE_TYPE_EP);
	DAT_EP_STATE state;

	if (!ep || (cr->ep && handle && handle != cr->ep) ||
	    ep->object.ia != cr->object.ia)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	state = ep->state;
	if (state != (cr->ep ? kd_state_configured(state) : DAT_EP_STATE_UNCONNECTED))
		return DAT_ERROR(DAT_INVALID_STATE, kd_state_subtype(state));
	*out = ep;
	return DAT_SUCCESS;
}

static u8 less(u8 a, int b)
{
	return a < b ? a : (u8)b;
}

static int answer(struct kd_ep *ep, const struct kd_cr *cr, const void *data, u8 bytes)
{
	struct rdma_conn_param param = kd_ep_terms(ep, data, bytes);
	int ret = cr->gone ? -ECONNABORTED : kd_ep_modify_qp(ep, IB_QPS_INIT);

	/* no more than the peer asked for */
	param.responder_resources =
		less(cr->responder_resources, param.responder_resources);
	param.initiator_depth = less(cr->initiator_depth, param.initiator_depth);
	if (!ret)
		ret = kd_ep_modify_qp(ep, IB_QPS_RTR);
	if (!ret)
		ret = kd_ep_modify_qp(ep, IB_QPS_RTS);
	return ret ? ret : rdma_accept(ep->id, &param);
}

DAT_RETURN dat_cr_accept(DAT_CR_HANDLE cr_handle, DAT_EP_HANDLE ep_handle,
			 DAT_COUNT private_data_size, const DAT_PVOID private_data)
{
	struct kd_cr *cr = kd_get(cr_handle, DAT_HANDLE_TYPE_CR);
	struct kd_ep *ep;
	DAT_RETURN ret;

	if (!cr)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);
	ret = choose_ep(cr, ep_handle, &ep);
	if (ret != DAT_SUCCESS)
		return ret;
	if (private_data_size < 0 || private_data_size > KD_PRIVATE_DATA)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (private_data_size && !private_data)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	ep->id = cr->id;
	ep->id->context = ep;
	ep->id->event_handler = kd_ep_cm;
	ep->remote = cr->remote;
	ep->conn_qual = 0;
	kd_ep_enter(ep, DAT_EP_STATE_COMPLETION_PENDING);
	if (answer(ep, cr, private_data, (u8)private_data_size))
		kd_ep_end(ep, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
	kd_release(&cr->object);
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(dat_cr_accept);

DAT_RETURN dat_cr_reject(DAT_CR_HANDLE cr_handle)
{
	struct kd_cr *cr = kd_get(cr_handle, DAT_HANDLE_TYPE_CR);

	if (!cr)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);
	rdma_reject(cr->id, NULL, 0, IB_CM_REJ_CONSUMER_DEFINED);
	kd_cr_destroy(cr);
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(dat_cr_reject);

DAT_RETURN dat_cr_handoff(DAT_CR_HANDLE cr_handle, DAT_CONN_QUAL handoff)
{
	struct kd_cr *cr = kd_get(cr_handle, DAT_HANDLE_TYPE_CR), *next;
	struct kd_sp *sp;

	if (!cr)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);
	sp = kd_sp_find(cr->object.ia, handoff);
	if (!sp || sp->flags == DAT_PSP_PROVIDER_FLAG)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	next = kd_alloc(cr->object.ia, DAT_HANDLE_TYPE_CR, sizeof(*next));
	if (!next)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	next->id = cr->id;
	next->local = cr->local;
	next->remote = cr->remote;
	next->responder_resources = cr->responder_resources;
	next->initiator_depth = cr->initiator_depth;
	next->private_bytes = cr->private_bytes;
	next->gone = cr->gone;
	memcpy(next->private_data, cr->private_data, cr->private_bytes);
	if (!kd_cr_arrived(sp, next)) {
		kd_release(&next->object);
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEVD);
	}
	next->id->context = next;
	cr->id = NULL;
	kd_cr_destroy(cr);
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(dat_cr_handoff);
