/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Interface adapters and the registry of their providers: one for each port of the node's
 * adapters that has an IP address.
 */
#include "ulp/kdapl/private.h"

LIST_HEAD(kd_providers);

/* --- asynchronous errors --- */

void kd_async(struct kd_object *object, DAT_EVENT_NUMBER number, DAT_COUNT reason)
{
	const DAT_EVENT event = {.event_number = number,
				 .event_data.asynch_error_event_data = {
					 .dat_handle = object, .reason = reason}};

	if (object->ia->async_evd)
		kd_evd_post(object->ia->async_evd, &event);
}

static void on_device_event(struct ib_event_handler *handler, struct ib_event *event)
{
	struct kd_ia *ia = container_of(handler, struct kd_ia, events);

	if (event->event == IB_EVENT_DEVICE_FATAL)
		kd_async(&ia->object, DAT_ASYNC_ERROR_IA_CATASTROPHIC,
			 DAT_IA_CATASTROPHIC_ERROR);
	else if (event->event == IB_EVENT_PORT_ERR && event->element.port_num == ia->port)
		kd_async(&ia->object, DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR,
			 DAT_IA_OTHER_ERROR);
}

/* --- the registry --- */

static struct kd_provider *find_provider(const char *name)
{
	struct kd_provider *p;

	list_for_each_entry(p, &kd_providers, node)
		if (!strcmp(p->name, name))
			return p;
	return NULL;
}

DAT_RETURN dat_registry_list_providers(DAT_COUNT max_to_return,
				       DAT_COUNT *entries_returned,
				       DAT_PROVIDER_INFO *dat_provider_list[])
{
	const struct kd_provider *p;
	DAT_COUNT n = 0;

	if (max_to_return < 0)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
	if (!entries_returned)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (max_to_return && !dat_provider_list)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	list_for_each_entry(p, &kd_providers, node) {
		if (max_to_return && n == max_to_return)
			break;
		if (max_to_return) {
			*dat_provider_list[n] = (DAT_PROVIDER_INFO){
				.dapl_version_major = DAT_VERSION_MAJOR,
				.dapl_version_minor = DAT_VERSION_MINOR,
				.is_thread_safe = DAT_TRUE};
			strcpy(dat_provider_list[n]->ia_name, p->name);
		}
		n++;
	}
	*entries_returned = n;
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(dat_registry_list_providers);

/* --- open --- */

static DAT_RETURN own_async_evd(struct kd_ia *ia, DAT_COUNT qlen)
{
	if (qlen < 0 || qlen > ia->device->attrs.max_cqe)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	return kd_evd_create(ia, qlen ? qlen : KD_DEFAULT_ASYNC_QLEN, DAT_EVD_ASYNC_FLAG,
			     &ia->async_evd);
}

static DAT_RETURN open_ia(const struct kd_provider *p, DAT_COUNT qlen,
			  DAT_EVD_HANDLE async_evd, struct kd_ia **out)
{
	struct kd_ia *ia = kd_alloc(NULL, DAT_HANDLE_TYPE_IA, sizeof(*ia));
	DAT_RETURN ret = DAT_SUCCESS;

	if (!ia)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	INIT_LIST_HEAD(&ia->objects);
	ia->device = p->device;
	ia->port = p->port;
	strcpy(ia->name, p->name);
	if (rdma_port_addr(p->device, p->port, AF_INET, &ia->addr))
		ret = DAT_ERROR(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNREACHABLE);
	ia->async_evd = async_evd;
	if (ret == DAT_SUCCESS && !async_evd)
		ret = own_async_evd(ia, qlen);
	if (ret != DAT_SUCCESS) {
		kd_release(&ia->object);
		return ret;
	}
	kd_use(&ia->async_evd->object, 1);
	INIT_IB_EVENT_HANDLER(&ia->events, ia->device, on_device_event);
	ib_register_event_handler(&ia->events);
	list_add_tail(&ia->node, &kd_ias);
	*out = ia;
	return DAT_SUCCESS;
}

DAT_RETURN dat_ia_openv(const DAT_NAME_PTR provider, DAT_COUNT async_evd_min_qlen,
			DAT_EVD_HANDLE *async_evd_handle, DAT_IA_HANDLE *ia_handle,
			DAT_UINT32 dat_major, DAT_UINT32 dat_minor,
			DAT_BOOLEAN thread_safety)
{
	const struct kd_provider *p = provider ? find_provider(provider) : NULL;
	struct kd_evd *async;
	struct kd_ia *ia = NULL;
	DAT_RETURN ret;

	if (!provider)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
	if (!async_evd_handle)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (!ia_handle)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	if (!p)
		return DAT_ERROR(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
	if (dat_major != DAT_VERSION_MAJOR)
		return DAT_ERROR(DAT_PROVIDER_NOT_FOUND, DAT_MAJOR_NOT_FOUND);
	if (dat_minor > DAT_VERSION_MINOR)
		return DAT_ERROR(DAT_PROVIDER_NOT_FOUND, DAT_MINOR_NOT_FOUND);
	async = kd_evd_get(*async_evd_handle, DAT_EVD_ASYNC_FLAG);
	if (*async_evd_handle && (!async || strcmp(async->object.ia->name, p->name) != 0))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_ASYNC);
	ret = open_ia(p, async_evd_min_qlen, async, &ia);
	if (ret != DAT_SUCCESS)
		return ret;
	*async_evd_handle = ia->async_evd;
	*ia_handle = ia;
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(dat_ia_openv);

/* --- query --- */

static DAT_IA_ATTR ia_attr_of(struct kd_ia *ia)
{
	const struct ib_device_attr *limits = &ia->device->attrs;
	struct ib_port_attr port = {.max_msg_sz = 0};
	int sge = limits->max_send_sge < limits->max_recv_sge ? limits->max_send_sge
							      : limits->max_recv_sge;
	int iov = sge < KD_MAX_IOV ? sge : KD_MAX_IOV;
	DAT_IA_ATTR attr = {.hardware_version_major = limits->hw_ver,
			    .ia_address_ptr = (DAT_IA_ADDRESS_PTR)&ia->addr,
			    .max_eps = limits->max_qp,
			    .max_dto_per_ep = limits->max_qp_wr - 1,
			    .max_rdma_read_per_ep_in = limits->max_qp_rd_atom,
			    .max_rdma_read_per_ep_out = limits->max_qp_init_rd_atom,
			    .max_evds = limits->max_cq,
			    .max_evd_qlen = limits->max_cqe,
			    .max_iov_segments_per_dto = iov,
			    .max_lmrs = limits->max_mr,
			    .max_lmr_block_size = limits->max_mr_size,
			    .max_lmr_virtual_address = UINT64_MAX,
			    .max_pzs = limits->max_pd,
			    .max_rmrs = limits->max_mw,
			    .max_rmr_target_address = UINT64_MAX,
			    .max_srqs = limits->max_srq,
			    .max_ep_per_srq = limits->max_qp,
			    .max_recv_per_srq = limits->max_srq_wr,
			    .max_iov_segments_per_rdma_read = iov,
			    .max_iov_segments_per_rdma_write = iov,
			    .max_rdma_read_in = limits->max_res_rd_atom,
			    .max_rdma_read_out = limits->max_res_rd_atom,
			    .max_rdma_read_per_ep_in_guaranteed = DAT_TRUE,
			    .max_rdma_read_per_ep_out_guaranteed = DAT_TRUE};

	ib_query_port(ia->device, ia->port, &port);
	attr.max_message_size = attr.max_rdma_size = port.max_msg_sz;
	snprintf(attr.adapter_name, sizeof(attr.adapter_name), "%s", ia->name);
	snprintf(attr.vendor_name, sizeof(attr.vendor_name), "softib");
	sscanf(limits->fw_ver, "%u.%u", &attr.firmware_version_major,
	       &attr.firmware_version_minor);
	return attr;
}

static void provider_attr_of(const struct kd_ia *ia, DAT_PROVIDER_ATTR *attr)
{
	*attr = (DAT_PROVIDER_ATTR){
		.provider_version_major = 1,
		.dapl_version_major = DAT_VERSION_MAJOR,
		.dapl_version_minor = DAT_VERSION_MINOR,
		.lmr_mem_types_supported =
			(DAT_MEM_TYPE)(DAT_MEM_TYPE_VIRTUAL | DAT_MEM_TYPE_LMR |
				       DAT_MEM_TYPE_PHYSICAL | DAT_MEM_TYPE_IA),
		.iov_ownership_on_return = DAT_IOV_CONSUMER,
		.dat_qos_supported = DAT_QOS_BEST_EFFORT,
		.completion_flags_supported = DAT_COMPLETION_SUPPRESS_FLAG |
					      DAT_COMPLETION_SOLICITED_WAIT_FLAG |
					      DAT_COMPLETION_UNSIGNALLED_FLAG |
					      DAT_COMPLETION_BARRIER_FENCE_FLAG,
		.is_thread_safe = DAT_TRUE,
		.max_private_data_size = KD_PRIVATE_DATA,
		.ep_creator = DAT_PSP_CREATES_EP_IFASKED,
		.upcall_policy = DAT_UPCALL_SINGLE_INSTANCE,
		.optimal_buffer_alignment = 64,
		.srq_supported = DAT_TRUE,
		.srq_watermarks_supported = 1, /* the low one */
		.srq_info_supported = 1,       /* those that are not complete */
		.ep_recv_info_supported = 1,
		.dto_async_return_guaranteed = DAT_TRUE,
	};
	for (int i = 0; i < 6; i++)
		for (int k = 0; k < 6; k++)
			attr->evd_stream_merging_supported[i][k] = DAT_TRUE;
	strcpy(attr->provider_name, ia->name);
}

DAT_RETURN dat_ia_query(DAT_IA_HANDLE ia_handle, DAT_EVD_HANDLE *async_evd_handle,
			DAT_IA_ATTR_MASK ia_attr_mask, DAT_IA_ATTR *ia_attr,
			DAT_PROVIDER_ATTR_MASK provider_attr_mask,
			DAT_PROVIDER_ATTR *provider_attr)
{
	struct kd_ia *ia = kd_get(ia_handle, DAT_HANDLE_TYPE_IA);

	if (!ia)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (ia_attr_mask & ~DAT_IA_FIELD_ALL)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (ia_attr_mask && !ia_attr)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	if (provider_attr_mask & ~DAT_PROVIDER_FIELD_ALL)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	if (provider_attr_mask && !provider_attr)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
	if (async_evd_handle)
		*async_evd_handle = ia->async_evd;
	if (ia_attr)
		*ia_attr = ia_attr_of(ia);
	if (provider_attr)
		provider_attr_of(ia, provider_attr);
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(dat_ia_query);

DAT_RETURN dat_ia_memtype_hint(DAT_IA_HANDLE ia_handle, DAT_MEM_TYPE mem_type,
			       DAT_VLEN length, DAT_MEM_OPTIMIZE_FLAGS mem_optimization,
			       DAT_VLEN *preferred_length, DAT_VADDR *preferred_alignment)
{
	bool paged = mem_type == DAT_MEM_TYPE_PHYSICAL;

	if (!kd_get(ia_handle, DAT_HANDLE_TYPE_IA))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (mem_type == DAT_MEM_TYPE_PLATFORM || mem_type == DAT_MEM_TYPE_BYPASS)
		return DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, 0);
	if (mem_type != DAT_MEM_TYPE_VIRTUAL && mem_type != DAT_MEM_TYPE_LMR &&
	    mem_type != DAT_MEM_TYPE_IA && !paged)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	/* regions begin and end at any byte, but for those of pages */
	if (preferred_length)
		*preferred_length = paged ? PAGE_ALIGN(length) : length;
	if (preferred_alignment)
		*preferred_alignment = paged ? PAGE_SIZE : 64;
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(dat_ia_memtype_hint);

/* --- close --- */

/* in the order in which objects need each other */
static const DAT_HANDLE_TYPE order[] = {
	DAT_HANDLE_TYPE_CR,  DAT_HANDLE_TYPE_PSP, DAT_HANDLE_TYPE_RSP,
	DAT_HANDLE_TYPE_EP,  DAT_HANDLE_TYPE_SRQ, DAT_HANDLE_TYPE_RMR,
	DAT_HANDLE_TYPE_LMR, DAT_HANDLE_TYPE_PZ,  DAT_HANDLE_TYPE_EVD,
};

/* Give the midlayer's part of an object back. */
static void stop(struct kd_object *object)
{
	struct kd_pz *pz = (struct kd_pz *)object;

	switch (object->type) {
	case DAT_HANDLE_TYPE_CR:
		kd_cr_stop((struct kd_cr *)object);
		break;
	case DAT_HANDLE_TYPE_PSP:
	case DAT_HANDLE_TYPE_RSP:
		kd_sp_stop((struct kd_sp *)object);
		break;
	case DAT_HANDLE_TYPE_EP:
		kd_ep_stop((struct kd_ep *)object);
		break;
	case DAT_HANDLE_TYPE_SRQ:
		kd_srq_stop((struct kd_srq *)object);
		break;
	case DAT_HANDLE_TYPE_RMR:
		kd_rmr_stop((struct kd_rmr *)object);
		break;
	case DAT_HANDLE_TYPE_LMR:
		kd_lmr_stop((struct kd_lmr *)object);
		break;
	case DAT_HANDLE_TYPE_PZ:
		if (pz->pd)
			ib_dealloc_pd(pz->pd);
		pz->pd = NULL;
		break;
	case DAT_HANDLE_TYPE_EVD:
		kd_evd_stop((struct kd_evd *)object);
		break;
	default:
		break;
	}
}

static void stop_all(struct kd_ia *ia)
{
	struct kd_object *object;

	for (size_t i = 0; i < ARRAY_SIZE(order); i++)
		list_for_each_entry(object, &ia->objects, node)
			if (object->type == order[i])
				stop(object);
}

void kd_ia_kill(struct kd_ia *ia)
{
	if (!ia->device)
		return;
	kd_async(&ia->object, DAT_ASYNC_ERROR_IA_CATASTROPHIC, DAT_IA_CATASTROPHIC_ERROR);
	stop_all(ia);
	ib_unregister_event_handler(&ia->events);
	ia->device = NULL;
}

void kd_ia_close(struct kd_ia *ia)
{
	struct kd_object *object, *next;

	stop_all(ia);
	if (ia->device)
		ib_unregister_event_handler(&ia->events);
	if (ia->async_evd->object.ia != ia)
		kd_use(&ia->async_evd->object, -1);
	list_for_each_entry_safe(object, next, &ia->objects, node) {
		if (object->type == DAT_HANDLE_TYPE_EVD)
			kd_evd_destroy((struct kd_evd *)object);
		else
			kd_release(object);
	}
	list_del(&ia->node);
	kd_release(&ia->object);
}

/* does another IA use an EVD of this one? */
static bool lends_evd(const struct kd_ia *ia)
{
	return ia->async_evd->object.ia == ia && ia->async_evd->object.users > 1;
}

static bool has_objects(const struct kd_ia *ia)
{
	const struct kd_object *object;

	list_for_each_entry(object, &ia->objects, node)
		if (object != &ia->async_evd->object)
			return true;
	return false;
}

DAT_RETURN dat_ia_close(DAT_IA_HANDLE ia_handle, DAT_CLOSE_FLAGS close_flags)
{
	struct kd_ia *ia = kd_find(ia_handle, DAT_HANDLE_TYPE_IA);

	if (!ia)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (close_flags != DAT_CLOSE_ABRUPT_FLAG &&
	    close_flags != DAT_CLOSE_GRACEFUL_FLAG)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (lends_evd(ia) || (close_flags == DAT_CLOSE_GRACEFUL_FLAG && has_objects(ia)))
		return DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_IA_IN_USE);
	kd_ia_close(ia);
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(dat_ia_close);
