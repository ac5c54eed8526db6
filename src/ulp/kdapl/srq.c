/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Shared receive queues. Their receives complete in any order, so that each has an index.
 */
#include "ulp/kdapl/private.h"

static void on_event(struct ib_event *event, void *srq_context)
{
	struct kd_srq *srq = srq_context;

	if (event->event == IB_EVENT_SRQ_LIMIT_REACHED) {
		srq->low_watermark = DAT_SRQ_LW_DEFAULT; /* the adapter tells once */
		kd_async(&srq->object, DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR,
			 DAT_SRQ_LOW_WATERMARK_EVENT);
		return;
	}
	srq->failed = true;
	kd_async(&srq->object, DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR,
		 DAT_SRQ_TRANSFER_TO_ERROR);
}

/* Give it @size slots; those that are in use keep their index. */
static bool grow(struct kd_srq *srq, u32 size)
{
	struct kd_dto *slot = kcalloc(size, sizeof(*slot), GFP_KERNEL);
	u32 *free = kcalloc(size, sizeof(*free), GFP_KERNEL);

	if (!slot || !free) {
		kfree(slot);
		kfree(free);
		return false;
	}
	if (srq->size) {
		memcpy(slot, srq->slot, srq->size * sizeof(*slot));
		memcpy(free, srq->free, srq->num_free * sizeof(*free));
	}
	for (u32 i = srq->size; i < size; i++)
		free[srq->num_free++] = i;
	kfree(srq->slot);
	kfree(srq->free);
	srq->slot = slot;
	srq->free = free;
	srq->size = size;
	return true;
}

const struct kd_dto *kd_srq_done(struct kd_srq *srq, u32 index)
{
	if (index >= srq->size || srq->num_free == srq->size)
		return NULL;
	srq->free[srq->num_free++] = index;
	return &srq->slot[index];
}

static DAT_RETURN set_limit(struct kd_srq *srq, DAT_COUNT limit)
{
	struct ib_srq_attr attr = {.srq_limit = (u32)limit};
	int ret = ib_modify_srq(srq->srq, &attr, IB_SRQ_LIMIT);

	if (!ret)
		srq->low_watermark = limit;
	return kd_error(ret, DAT_RESOURCE_SRQ);
}

static DAT_RETURN attr_check(const struct kd_ia *ia, const DAT_SRQ_ATTR *attr)
{
	const struct ib_device_attr *limits = &ia->device->attrs;
	bool good = attr && attr->max_recv_dtos > 0 &&
		    attr->max_recv_dtos <= limits->max_srq_wr && attr->max_recv_iov > 0 &&
		    attr->max_recv_iov <= limits->max_srq_sge &&
		    attr->max_recv_iov <= KD_MAX_IOV && attr->low_watermark >= 0 &&
		    attr->low_watermark <= attr->max_recv_dtos;

	return good ? DAT_SUCCESS : DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
}

static DAT_RETURN create(struct kd_srq *srq, const DAT_SRQ_ATTR *attr)
{
	struct ib_srq_init_attr init = {.event_handler = on_event,
					.srq_context = srq,
					.attr = {.max_wr = (u32)attr->max_recv_dtos,
						 .max_sge = (u32)attr->max_recv_iov}};

	if (!grow(srq, (u32)attr->max_recv_dtos))
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	srq->srq = ib_create_srq(srq->pz->pd, &init);
	if (IS_ERR(srq->srq)) {
		DAT_RETURN ret = kd_error(PTR_ERR(srq->srq), DAT_RESOURCE_SRQ);

		srq->srq = NULL;
		return ret;
	}
	srq->max_iov = attr->max_recv_iov;
	return attr->low_watermark ? set_limit(srq, attr->low_watermark) : DAT_SUCCESS;
}

void kd_srq_stop(struct kd_srq *srq)
{
	if (srq->srq)
		ib_destroy_srq(srq->srq);
	srq->srq = NULL;
	kfree(srq->slot);
	kfree(srq->free);
	srq->slot = NULL;
	srq->free = NULL;
	srq->size = srq->num_free = 0;
}

static void destroy(struct kd_srq *srq)
{
	kd_srq_stop(srq);
	kd_use(&srq->pz->object, -1);
	kd_release(&srq->object);
}

DAT_RETURN dat_srq_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle,
			  DAT_SRQ_ATTR *srq_attr, DAT_SRQ_HANDLE *srq_handle)
{
	struct kd_ia *ia = kd_get(ia_handle, DAT_HANDLE_TYPE_IA);
	struct kd_pz *pz = kd_get(pz_handle, DAT_HANDLE_TYPE_PZ);
	struct kd_srq *srq;
	DAT_RETURN ret;

	if (!ia)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (!pz || pz->object.ia != ia)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
	ret = attr_check(ia, srq_attr);
	if (ret != DAT_SUCCESS)
		return ret;
	if (!srq_handle)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	srq = kd_alloc(ia, DAT_HANDLE_TYPE_SRQ, sizeof(*srq));
	if (!srq)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	srq->pz = pz;
	kd_use(&pz->object, 1);
	ret = create(srq, srq_attr);
	if (ret == DAT_SUCCESS)
		*srq_handle = srq;
	else
		destroy(srq);
	return ret;
}
EXPORT_SYMBOL(dat_srq_create);

DAT_RETURN dat_srq_free(DAT_SRQ_HANDLE srq_handle)
{
	struct kd_srq *srq = kd_get(srq_handle, DAT_HANDLE_TYPE_SRQ);

	if (!srq)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
	if (srq->object.users)
		return DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_SRQ_IN_USE);
	destroy(srq);
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(dat_srq_free);

DAT_RETURN dat_srq_post_recv(DAT_SRQ_HANDLE srq_handle, DAT_COUNT num_segments,
			     DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie)
{
	struct kd_srq *srq = kd_get(srq_handle, DAT_HANDLE_TYPE_SRQ);
	struct ib_sge sge[KD_MAX_IOV];
	struct ib_recv_wr wr = {.sg_list = sge};
	DAT_VLEN length;
	DAT_RETURN ret;
	u32 index;

	if (!srq)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
	if (srq->failed)
		return DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_SRQ_ERROR);
	ret = kd_dto_sges(local_iov, num_segments, srq->max_iov, sge, &wr.num_sge,
			  &length);
	if (ret != DAT_SUCCESS)
		return ret;
	if (!srq->num_free)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_SRQ);
	index = srq->free[srq->num_free - 1];
	srq->slot[index] = (struct kd_dto){.cookie = user_cookie, .op = KD_RECV};
	wr.wr_id = KD_WR_RECV | index;
	if (ib_post_srq_recv(srq->srq, &wr, NULL))
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_SRQ);
	srq->num_free--;
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(dat_srq_post_recv);

DAT_RETURN dat_srq_query(DAT_SRQ_HANDLE srq_handle, DAT_SRQ_PARAM_MASK srq_param_mask,
			 DAT_SRQ_PARAM *srq_param)
{
	const struct kd_srq *srq = kd_get(srq_handle, DAT_HANDLE_TYPE_SRQ);

	if (!srq)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
	if (srq_param_mask & ~(unsigned int)DAT_SRQ_FIELD_ALL)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (!srq_param)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	*srq_param = (DAT_SRQ_PARAM){.ia_handle = srq->object.ia,
				     .srq_state = srq->failed ? DAT_SRQ_STATE_ERROR
							      : DAT_SRQ_STATE_OPERATIONAL,
				     .pz_handle = srq->pz,
				     .max_recv_dtos = (DAT_COUNT)srq->size,
				     .max_recv_iov = srq->max_iov,
				     .low_watermark = srq->low_watermark,
				     /* which of those that are not complete hold a
					message, the adapter alone knows */
				     .available_dto_count = DAT_VALUE_UNKNOWN,
				     .outstanding_dto_count =
					     (DAT_COUNT)(srq->size - srq->num_free)};
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(dat_srq_query);

DAT_RETURN dat_srq_resize(DAT_SRQ_HANDLE srq_handle, DAT_COUNT srq_max_recv_dto)
{
	struct kd_srq *srq = kd_get(srq_handle, DAT_HANDLE_TYPE_SRQ);
	struct ib_srq_attr attr = {.max_wr = (u32)srq_max_recv_dto};
	int ret;

	if (!srq)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
	if (srq_max_recv_dto <= 0 ||
	    srq_max_recv_dto > srq->object.ia->device->attrs.max_srq_wr)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	/* smaller than it is: it already has room for as many */
	if ((u32)srq_max_recv_dto <= srq->size)
		return DAT_SUCCESS;
	ret = ib_modify_srq(srq->srq, &attr, IB_SRQ_MAX_WR);
	if (ret)
		return kd_error(ret, DAT_RESOURCE_SRQ);
	return grow(srq, (u32)srq_max_recv_dto)
		       ? DAT_SUCCESS
		       : DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
}
EXPORT_SYMBOL(dat_srq_resize);

DAT_RETURN dat_srq_set_lw(DAT_SRQ_HANDLE srq_handle, DAT_COUNT low_watermark)
{
	struct kd_srq *srq = kd_get(srq_handle, DAT_HANDLE_TYPE_SRQ);

	if (!srq)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
	if (low_watermark < 0 || (u32)low_watermark > srq->size)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	return set_limit(srq, low_watermark);
}
EXPORT_SYMBOL(dat_srq_set_lw);
