/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Service points: public ones (PSP) take any number of requests, a reserved one (RSP)
 * takes one, with its endpoint, and is gone then.
 */
#include "ulp/kdapl/trace.h"

#define PORT_TRIES 16

static DAT_CONN_QUAL port_of(const struct rdma_cm_id *id)
{
	/* both families have it at the same place */
	return ntohs(((const struct sockaddr_in *)&id->route.addr.src_addr)->sin_port);
}

/* --- requests --- */

bool kd_cr_arrived(struct kd_sp *sp, struct kd_cr *cr)
{
	const DAT_EVENT event = {
		.event_number = DAT_CONNECTION_REQUEST_EVENT,
		.event_data.cr_arrival_event_data = {
			.sp_handle.psp_handle = sp->ep ? DAT_HANDLE_NULL : sp,
			.local_ia_address_ptr = (DAT_IA_ADDRESS_PTR)&cr->local,
			.conn_qual = sp->conn_qual,
			.cr_handle = cr}};

	return kd_evd_post(sp->evd, &event);
}

/* Return: the request cannot be served without an EP, and there is none */
static bool lacks_ep(struct kd_sp *sp, struct kd_cr *cr)
{
	const DAT_EP_PARAM none = {.ia_handle = sp->object.ia};

	if (sp->flags != DAT_PSP_PROVIDER_FLAG)
		return false;
	if (kd_ep_create(sp->object.ia, &none, NULL, &cr->ep) != DAT_SUCCESS)
		return true;
	kd_ep_enter(cr->ep, DAT_EP_STATE_UNCONFIGURED_TENTATIVE);
	return false;
}

/* The request of an RSP has its EP. */
static void use_up(struct kd_sp *sp, struct kd_cr *cr)
{
	cr->ep = sp->ep;
	kd_ep_enter(cr->ep, cr->ep->state == DAT_EP_STATE_RESERVED
				? DAT_EP_STATE_PASSIVE_CONNECTION_PENDING
				: DAT_EP_STATE_UNCONFIGURED_PASSIVE);
	sp->used = true;
	kd_later(sp);
}

/* The peer hears that it was not the consumer who refused. */
static int refuse(struct rdma_cm_id *id, struct kd_cr *cr)
{
	rdma_reject(id, NULL, 0, IB_CM_REJ_NO_RESOURCES);
	if (cr)
		kd_release(&cr->object);
	return -ECONNREFUSED;
}

/* Return: other than 0: @id is destroyed */
static int on_cm(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct kd_sp *sp = id->context;
	struct kd_cr *cr;

	if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST)
		return 0;
	cr = sp->used ? NULL : kd_cr_create(sp, id, event);
	if (!cr)
		return refuse(id, NULL);
	if (lacks_ep(sp, cr))
		return refuse(id, cr);
	if (!kd_cr_arrived(sp, cr)) {
		kd_cr_return_ep(cr);
		return refuse(id, cr);
	}
	if (sp->ep)
		use_up(sp, cr);
	return 0;
}

/* --- both kinds --- */

struct kd_sp *kd_sp_find(const struct kd_ia *ia, DAT_CONN_QUAL conn_qual)
{
	struct kd_object *object;

	list_for_each_entry(object, &ia->objects, node) {
		struct kd_sp *sp = (struct kd_sp *)object;

		if (object->type == DAT_HANDLE_TYPE_PSP && sp->conn_qual == conn_qual)
			return sp;
	}
	return NULL;
}

/* Return: 0; -ENOENT the port has no address of this family; as rdma_bind_addr() */
static int listen_of(struct kd_sp *sp, sa_family_t family, struct rdma_cm_id **id)
{
	const struct kd_ia *ia = sp->object.ia;
	struct sockaddr_storage addr;
	int ret = rdma_port_addr(ia->device, ia->port, family, &addr);

	if (ret)
		return ret;
	*id = rdma_create_id(&init_net, on_cm, sp, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(*id)) {
		ret = (int)PTR_ERR(*id);
		*id = NULL;
		return ret;
	}
	/* both families have it at the same place */
	((struct sockaddr_in *)&addr)->sin_port = htons((u16)sp->conn_qual);
	ret = rdma_bind_addr(*id, (struct sockaddr *)&addr);
	return ret ? ret : rdma_listen(*id, 0);
}

static DAT_RETURN listen_error(int ret, bool any)
{
	if (ret == -EADDRINUSE)
		return DAT_ERROR(DAT_CONN_QUAL_IN_USE, 0);
	if (ret == -EADDRNOTAVAIL && any)
		return DAT_ERROR(DAT_CONN_QUAL_UNAVAILABLE, 0);
	return ret == -ENOMEM ? DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY)
			      : DAT_ERROR(DAT_INTERNAL_ERROR, 0);
}

/* A port that is free for IPv4 is taken for IPv6 as well, or another is tried. */
static DAT_RETURN listen_at(struct kd_sp *sp)
{
	const DAT_CONN_QUAL wanted = sp->conn_qual;
	int ret = -EADDRINUSE;

	for (int tries = 0; ret == -EADDRINUSE && tries < (wanted ? 1 : PORT_TRIES);
	     tries++) {
		kd_sp_stop(sp);
		sp->conn_qual = wanted;
		ret = listen_of(sp, AF_INET, &sp->id);
		if (ret)
			break;
		sp->conn_qual = port_of(sp->id);
		ret = listen_of(sp, AF_INET6, &sp->id6);
		ret = ret == -ENOENT ? 0 : ret;
	}
	return ret ? listen_error(ret, !wanted) : DAT_SUCCESS;
}

void kd_sp_stop(struct kd_sp *sp)
{
	list_del_init(&sp->expired);
	if (sp->id)
		rdma_destroy_id(sp->id);
	if (sp->id6)
		rdma_destroy_id(sp->id6);
	sp->id = sp->id6 = NULL;
}

void kd_sp_destroy(struct kd_sp *sp)
{
	kd_sp_stop(sp);
	kd_use(&sp->evd->object, -1);
	kd_use_of(sp->ep, -1);
	kd_release(&sp->object);
}

static DAT_RETURN create(struct kd_ia *ia, DAT_HANDLE_TYPE type, DAT_CONN_QUAL conn_qual,
			 struct kd_evd *evd, struct kd_ep *ep, DAT_PSP_FLAGS flags,
			 struct kd_sp **out)
{
	struct kd_sp *sp = kd_alloc(ia, type, sizeof(*sp));
	DAT_RETURN ret;

	if (!sp)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	INIT_LIST_HEAD(&sp->expired);
	sp->evd = evd;
	sp->ep = ep;
	sp->conn_qual = conn_qual;
	sp->flags = flags;
	kd_use(&evd->object, 1);
	kd_use_of(ep, 1);
	ret = listen_at(sp);
	if (ret == DAT_SUCCESS)
		*out = sp;
	else
		kd_sp_destroy(sp);
	return ret;
}

/* --- PSPs --- */

static DAT_RETURN psp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL conn_qual,
			     DAT_EVD_HANDLE evd_handle, DAT_PSP_FLAGS psp_flags,
			     struct kd_sp **sp)
{
	struct kd_ia *ia = kd_get(ia_handle, DAT_HANDLE_TYPE_IA);
	struct kd_evd *evd = kd_evd_get(evd_handle, DAT_EVD_CR_FLAG);

	if (!ia)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (conn_qual > UINT16_MAX)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (!evd || evd->object.ia != ia)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CR);
	if (psp_flags != DAT_PSP_CONSUMER_FLAG && psp_flags != DAT_PSP_PROVIDER_FLAG)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	return create(ia, DAT_HANDLE_TYPE_PSP, conn_qual, evd, NULL, psp_flags, sp);
}

DAT_RETURN dat_psp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL conn_qual,
			  DAT_EVD_HANDLE evd_handle, DAT_PSP_FLAGS psp_flags,
			  DAT_PSP_HANDLE *psp_handle)
{
	struct kd_sp *sp = NULL;
	DAT_RETURN ret;

	if (!conn_qual)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (!psp_handle)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	ret = psp_create(ia_handle, conn_qual, evd_handle, psp_flags, &sp);
	if (ret == DAT_SUCCESS)
		*psp_handle = sp;
	return ret;
}
EXPORT_SYMBOL(dat_psp_create);

DAT_RETURN dat_psp_create_any(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL *conn_qual,
			      DAT_EVD_HANDLE evd_handle, DAT_PSP_FLAGS psp_flags,
			      DAT_PSP_HANDLE *psp_handle)
{
	struct kd_sp *sp = NULL;
	DAT_RETURN ret;

	if (!conn_qual)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (!psp_handle)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	ret = psp_create(ia_handle, 0, evd_handle, psp_flags, &sp);
	if (ret != DAT_SUCCESS)
		return ret;
	*conn_qual = sp->conn_qual;
	*psp_handle = sp;
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(dat_psp_create_any);

DAT_RETURN dat_psp_query(DAT_PSP_HANDLE psp_handle, DAT_PSP_PARAM_MASK psp_param_mask,
			 DAT_PSP_PARAM *psp_param)
{
	const struct kd_sp *sp = kd_get(psp_handle, DAT_HANDLE_TYPE_PSP);

	if (!sp)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PSP);
	if (psp_param_mask & ~(unsigned int)DAT_PSP_FIELD_ALL)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (!psp_param)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	*psp_param = (DAT_PSP_PARAM){.ia_handle = sp->object.ia,
				     .conn_qual = sp->conn_qual,
				     .evd_handle = sp->evd,
				     .psp_flags = sp->flags};
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(dat_psp_query);

DAT_RETURN dat_psp_free(DAT_PSP_HANDLE psp_handle)
{
	struct kd_sp *sp = kd_get(psp_handle, DAT_HANDLE_TYPE_PSP);

	if (!sp)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PSP);
	kd_sp_destroy(sp);
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(dat_psp_free);

/* --- RSPs --- */

DAT_RETURN dat_rsp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL conn_qual,
			  DAT_EP_HANDLE ep_handle, DAT_EVD_HANDLE evd_handle,
			  DAT_RSP_HANDLE *rsp_handle)
{
	struct kd_ia *ia = kd_get(ia_handle, DAT_HANDLE_TYPE_IA);
	struct kd_ep *ep = kd_get(ep_handle, DAT_HANDLE_TYPE_EP);
	struct kd_evd *evd = kd_evd_get(evd_handle, DAT_EVD_CR_FLAG);
	struct kd_sp *sp = NULL;
	DAT_RETURN ret;

	if (!ia)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (!conn_qual || conn_qual > UINT16_MAX)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (!ep || ep->object.ia != ia)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	if (kd_state_configured(ep->state) != DAT_EP_STATE_UNCONNECTED)
		return DAT_ERROR(DAT_INVALID_STATE, kd_state_subtype(ep->state));
	if (!evd || evd->object.ia != ia)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CR);
	if (!rsp_handle)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	ret = create(ia, DAT_HANDLE_TYPE_RSP, conn_qual, evd, ep, DAT_PSP_CONSUMER_FLAG,
		     &sp);
	if (ret != DAT_SUCCESS)
		return ret;
	kd_ep_enter(ep, ep->state == DAT_EP_STATE_UNCONNECTED
			    ? DAT_EP_STATE_RESERVED
			    : DAT_EP_STATE_UNCONFIGURED_RESERVED);
	*rsp_handle = sp;
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(dat_rsp_create);

DAT_RETURN dat_rsp_query(DAT_RSP_HANDLE rsp_handle, DAT_RSP_PARAM_MASK rsp_param_mask,
			 DAT_RSP_PARAM *rsp_param)
{
	const struct kd_sp *sp = kd_get(rsp_handle, DAT_HANDLE_TYPE_RSP);

	if (!sp || sp->used)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RSP);
	if (rsp_param_mask & ~(unsigned int)DAT_RSP_FIELD_ALL)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (!rsp_param)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	*rsp_param = (DAT_RSP_PARAM){.ia_handle = sp->object.ia,
				     .conn_qual = sp->conn_qual,
				     .evd_handle = sp->evd,
				     .ep_handle = sp->ep};
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(dat_rsp_query);

DAT_RETURN dat_rsp_free(DAT_RSP_HANDLE rsp_handle)
{
	struct kd_sp *sp = kd_get(rsp_handle, DAT_HANDLE_TYPE_RSP);

	if (!sp || sp->used)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RSP);
	kd_ep_enter(sp->ep, sp->ep->state == DAT_EP_STATE_RESERVED
				? DAT_EP_STATE_UNCONNECTED
				: DAT_EP_STATE_UNCONFIGURED_UNCONNECTED);
	kd_sp_destroy(sp);
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(dat_rsp_free);
