/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Local and remote memory regions: regions of physical buffers, and memory windows. */
#include "ulp/kdapl/private.h"

#define PAGE_BYTES 4096ull

static int access_of(DAT_MEM_PRIV_FLAGS priv)
{
	int access = 0;

	if (priv & DAT_MEM_PRIV_LOCAL_WRITE_FLAG)
		access |= IB_ACCESS_LOCAL_WRITE;
	if (priv & DAT_MEM_PRIV_REMOTE_READ_FLAG)
		access |= IB_ACCESS_REMOTE_READ;
	if (priv &
	    DAT_MEM_PRIV_REMOTE_WRITE_FLAG) /* 10.6.3.1: remote write needs local write */
		access |= IB_ACCESS_REMOTE_WRITE | IB_ACCESS_LOCAL_WRITE;
	return access;
}

static bool priv_is_known(DAT_MEM_PRIV_FLAGS priv)
{
	return !(priv & ~(unsigned int)DAT_MEM_PRIV_ALL_FLAG);
}

/* --- what a region is made of --- */

static DAT_RETURN one_buffer(struct kd_lmr *lmr, u64 addr, u64 size)
{
	lmr->buf = kcalloc(1, sizeof(*lmr->buf), GFP_KERNEL);
	if (!lmr->buf)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	lmr->buf[0] = (struct ib_phys_buf){.addr = addr, .size = size};
	lmr->num_bufs = 1;
	return DAT_SUCCESS;
}

static DAT_RETURN pages(struct kd_lmr *lmr, const DAT_PADDR *page, DAT_VLEN n)
{
	if (!page)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (n > INT_MAX / sizeof(*lmr->buf))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	lmr->buf = kcalloc(n, sizeof(*lmr->buf), GFP_KERNEL);
	if (!lmr->buf)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	for (DAT_VLEN i = 0; i < n; i++)
		lmr->buf[i] = (struct ib_phys_buf){.addr = page[i], .size = PAGE_BYTES};
	lmr->num_bufs = (int)n;
	return DAT_SUCCESS;
}

static DAT_RETURN same_as(struct kd_lmr *lmr, DAT_LMR_HANDLE handle)
{
	const struct kd_lmr *other = kd_get(handle, DAT_HANDLE_TYPE_LMR);

	if (!other || other->object.ia != lmr->object.ia)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
	lmr->buf = kcalloc((size_t)other->num_bufs, sizeof(*lmr->buf), GFP_KERNEL);
	if (!lmr->buf)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	memcpy(lmr->buf, other->buf, (size_t)other->num_bufs * sizeof(*lmr->buf));
	lmr->num_bufs = other->num_bufs;
	lmr->param.registered_address = other->param.registered_address;
	return DAT_SUCCESS;
}

/* Return: DAT_SUCCESS, and lmr->buf */
static DAT_RETURN describe(struct kd_lmr *lmr)
{
	const DAT_LMR_PARAM *p = &lmr->param;

	if (p->mem_type != DAT_MEM_TYPE_LMR && !p->length)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	switch (p->mem_type) {
	case DAT_MEM_TYPE_VIRTUAL:
		lmr->param.registered_address = (uintptr_t)p->region_desc.for_va;
		return one_buffer(lmr, (uintptr_t)p->region_desc.for_va, p->length);
	case DAT_MEM_TYPE_IA:
		lmr->param.registered_address = p->region_desc.for_pa;
		return one_buffer(lmr, p->region_desc.for_pa, p->length);
	case DAT_MEM_TYPE_PHYSICAL:
		lmr->param.registered_address =
			p->region_desc.for_array ? *p->region_desc.for_physical : 0;
		return pages(lmr, p->region_desc.for_array, p->length);
	case DAT_MEM_TYPE_LMR:
		return same_as(lmr, p->region_desc.for_lmr_handle);
	case DAT_MEM_TYPE_PLATFORM:
	case DAT_MEM_TYPE_BYPASS:
		return DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, 0);
	default:
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	}
}

/* --- LMRs --- */

struct kd_lmr *kd_lmr_find(const struct kd_ia *ia, DAT_LMR_CONTEXT context)
{
	struct kd_object *object;

	list_for_each_entry(object, &ia->objects, node) {
		struct kd_lmr *lmr = (struct kd_lmr *)object;

		if (object->type == DAT_HANDLE_TYPE_LMR &&
		    lmr->param.lmr_context == context)
			return lmr;
	}
	return NULL;
}

static DAT_RETURN reg_mr(struct kd_lmr *lmr)
{
	u64 iova = lmr->param.registered_address;
	struct ib_mr *mr =
		ib_reg_phys_mr(lmr->pz->pd, lmr->buf, lmr->num_bufs,
			       access_of(lmr->param.mem_priv) | IB_ACCESS_MW_BIND, &iova);

	if (PTR_ERR_OR_ZERO(mr) == -EINVAL)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (IS_ERR(mr))
		return kd_error(PTR_ERR(mr), DAT_RESOURCE_MEMORY_REGION);
	lmr->mr = mr;
	lmr->param.lmr_context = mr->lkey;
	lmr->param.rmr_context = mr->rkey;
	lmr->param.registered_size = 0;
	for (int i = 0; i < lmr->num_bufs; i++)
		lmr->param.registered_size += lmr->buf[i].size;
	return DAT_SUCCESS;
}

void kd_lmr_stop(struct kd_lmr *lmr)
{
	if (lmr->mr)
		ib_dereg_mr(lmr->mr);
	lmr->mr = NULL;
	kfree(lmr->buf);
	lmr->buf = NULL;
}

static void lmr_destroy(struct kd_lmr *lmr)
{
	kd_lmr_stop(lmr);
	kd_use(&lmr->pz->object, -1);
	kd_release(&lmr->object);
}

static DAT_RETURN lmr_create(struct kd_ia *ia, struct kd_pz *pz,
			     const DAT_LMR_PARAM *param, struct kd_lmr **out)
{
	struct kd_lmr *lmr = kd_alloc(ia, DAT_HANDLE_TYPE_LMR, sizeof(*lmr));
	DAT_RETURN ret;

	if (!lmr)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	lmr->pz = pz;
	lmr->param = *param;
	kd_use(&pz->object, 1);
	ret = describe(lmr);
	if (ret == DAT_SUCCESS)
		ret = reg_mr(lmr);
	if (ret == DAT_SUCCESS)
		*out = lmr;
	else
		lmr_destroy(lmr);
	return ret;
}

DAT_RETURN dat_lmr_kcreate(DAT_IA_HANDLE ia_handle, DAT_MEM_TYPE mem_type,
			   DAT_REGION_DESCRIPTION region_description, DAT_VLEN length,
			   DAT_PZ_HANDLE pz_handle, DAT_MEM_PRIV_FLAGS privileges,
			   DAT_MEM_OPTIMIZE_FLAGS mem_optimization,
			   DAT_LMR_HANDLE *lmr_handle, DAT_LMR_CONTEXT *lmr_context,
			   DAT_RMR_CONTEXT *rmr_context, DAT_VLEN *registered_length,
			   DAT_VADDR *registered_address)
{
	struct kd_ia *ia = kd_get(ia_handle, DAT_HANDLE_TYPE_IA);
	struct kd_pz *pz = kd_get(pz_handle, DAT_HANDLE_TYPE_PZ);
	const DAT_LMR_PARAM param = {.ia_handle = ia,
				     .mem_type = mem_type,
				     .region_desc = region_description,
				     .length = length,
				     .pz_handle = pz,
				     .mem_priv = privileges};
	struct kd_lmr *lmr = NULL;
	DAT_RETURN ret;

	if (!ia)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (!pz || pz->object.ia != ia)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
	if (!priv_is_known(privileges))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
	if (!lmr_handle)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG8);
	ret = lmr_create(ia, pz, &param, &lmr);
	if (ret != DAT_SUCCESS)
		return ret;
	*lmr_handle = lmr;
	if (lmr_context)
		*lmr_context = lmr->param.lmr_context;
	if (rmr_context)
		*rmr_context = lmr->param.rmr_context;
	if (registered_length)
		*registered_length = lmr->param.registered_size;
	if (registered_address)
		*registered_address = lmr->param.registered_address;
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(dat_lmr_kcreate);

DAT_RETURN dat_lmr_query(DAT_LMR_HANDLE lmr_handle, DAT_LMR_PARAM_MASK lmr_param_mask,
			 DAT_LMR_PARAM *lmr_param)
{
	const struct kd_lmr *lmr = kd_get(lmr_handle, DAT_HANDLE_TYPE_LMR);

	if (!lmr)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
	if (lmr_param_mask & ~(unsigned int)DAT_LMR_FIELD_ALL)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (!lmr_param)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	*lmr_param = lmr->param;
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(dat_lmr_query);

DAT_RETURN dat_lmr_free(DAT_LMR_HANDLE lmr_handle)
{
	struct kd_lmr *lmr = kd_get(lmr_handle, DAT_HANDLE_TYPE_LMR);

	if (!lmr)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
	if (ib_dereg_mr(lmr->mr))
		return DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_IN_USE);
	lmr->mr = NULL;
	lmr_destroy(lmr);
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(dat_lmr_free);

static bool covers(const struct kd_lmr *lmr, const DAT_LMR_TRIPLET *t)
{
	DAT_VADDR start = lmr->param.registered_address;

	return t->virtual_address >= start &&
	       t->virtual_address - start <= lmr->param.registered_size &&
	       t->segment_length <=
		       lmr->param.registered_size - (t->virtual_address - start);
}

static DAT_RETURN check_segments(DAT_IA_HANDLE ia_handle, const DAT_LMR_TRIPLET *segment,
				 DAT_VLEN n)
{
	const struct kd_ia *ia = kd_get(ia_handle, DAT_HANDLE_TYPE_IA);

	if (!ia)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (n && !segment)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	for (DAT_VLEN i = 0; i < n; i++) {
		const struct kd_lmr *lmr = kd_lmr_find(ia, segment[i].lmr_context);

		if (segment[i].segment_length && (!lmr || !covers(lmr, &segment[i])))
			return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	}
	return DAT_SUCCESS;
}

DAT_RETURN dat_lmr_sync_rdma_read(DAT_IA_HANDLE ia_handle,
				  const DAT_LMR_TRIPLET *local_segments,
				  DAT_VLEN num_segments)
{
	return check_segments(ia_handle, local_segments, num_segments);
}
EXPORT_SYMBOL(dat_lmr_sync_rdma_read);

DAT_RETURN dat_lmr_sync_rdma_write(DAT_IA_HANDLE ia_handle,
				   const DAT_LMR_TRIPLET *local_segments,
				   DAT_VLEN num_segments)
{
	return check_segments(ia_handle, local_segments, num_segments);
}
EXPORT_SYMBOL(dat_lmr_sync_rdma_write);

/* --- RMRs --- */

DAT_RETURN dat_rmr_create(DAT_PZ_HANDLE pz_handle, DAT_RMR_HANDLE *rmr_handle)
{
	struct kd_pz *pz = kd_get(pz_handle, DAT_HANDLE_TYPE_PZ);
	struct kd_rmr *rmr;
	struct ib_mw *mw;

	if (!pz)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
	if (!rmr_handle)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	mw = ib_alloc_mw(pz->pd, IB_MW_TYPE_1);
	if (IS_ERR(mw))
		return kd_error(PTR_ERR(mw), DAT_RESOURCE_MEMORY_REGION);
	rmr = kd_alloc(pz->object.ia, DAT_HANDLE_TYPE_RMR, sizeof(*rmr));
	if (!rmr) {
		ib_dealloc_mw(mw);
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	}
	rmr->pz = pz;
	rmr->mw = mw;
	rmr->param = (DAT_RMR_PARAM){.ia_handle = pz->object.ia, .pz_handle = pz};
	kd_use(&pz->object, 1);
	*rmr_handle = rmr;
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(dat_rmr_create);

DAT_RETURN dat_rmr_query(DAT_RMR_HANDLE rmr_handle, DAT_RMR_PARAM_MASK rmr_param_mask,
			 DAT_RMR_PARAM *rmr_param)
{
	const struct kd_rmr *rmr = kd_get(rmr_handle, DAT_HANDLE_TYPE_RMR);

	if (!rmr)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RMR);
	if (rmr_param_mask & ~(unsigned int)DAT_RMR_FIELD_ALL)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (!rmr_param)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	*rmr_param = rmr->param;
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(dat_rmr_query);

/* Return: DAT_SUCCESS, and what to bind the window to */
static DAT_RETURN bind_info(const struct kd_rmr *rmr, const DAT_LMR_TRIPLET *t,
			    DAT_MEM_PRIV_FLAGS priv, struct ib_mw_bind_info *info)
{
	struct kd_lmr *lmr;

	if (!t)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (!priv_is_known(priv))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	*info = (struct ib_mw_bind_info){.mr = NULL};
	if (!t->segment_length)
		return DAT_SUCCESS;
	lmr = kd_lmr_find(rmr->object.ia, t->lmr_context);
	if (!lmr)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (lmr->pz != rmr->pz)
		return DAT_ERROR(DAT_PROTECTION_VIOLATION, DAT_NO_SUBTYPE);
	if (!covers(lmr, t))
		return DAT_ERROR(DAT_LENGTH_ERROR, 0);
	/* 11.2.8.10: a region that cannot be written is not opened to writes */
	if (priv & DAT_MEM_PRIV_REMOTE_WRITE_FLAG &&
	    !(access_of(lmr->param.mem_priv) & IB_ACCESS_LOCAL_WRITE))
		return DAT_ERROR(DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_RDMA_WRITE);
	*info = (struct ib_mw_bind_info){.mr = lmr->mr,
					 .addr = t->virtual_address,
					 .length = t->segment_length,
					 .mw_access_flags = access_of(priv) &
							    ~IB_ACCESS_LOCAL_WRITE};
	return DAT_SUCCESS;
}

static DAT_RETURN post_bind(struct kd_rmr *rmr, struct kd_ep *ep, struct ib_mw_bind *bind,
			    DAT_RMR_COOKIE cookie, DAT_COMPLETION_FLAGS flags)
{
	struct kd_dto *dto = kd_dtos_next(&ep->request);
	bool quiet = false;
	int send_flags = kd_request_flags(ep, flags, &quiet);

	if (send_flags < 0)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
	*dto = (struct kd_dto){
		.cookie = cookie, .rmr = rmr, .op = KD_BIND, .quiet = quiet};
	bind->wr_id = ep->request.tail;
	bind->send_flags = send_flags & ~IB_SEND_SOLICITED;
	if (ib_bind_mw(ep->qp, rmr->mw, bind))
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEP);
	kd_dtos_posted(&ep->request);
	return DAT_SUCCESS;
}

DAT_RETURN dat_rmr_bind(DAT_RMR_HANDLE rmr_handle, const DAT_LMR_TRIPLET *lmr_triplet,
			DAT_MEM_PRIV_FLAGS mem_priv, DAT_EP_HANDLE ep_handle,
			DAT_RMR_COOKIE user_cookie, DAT_COMPLETION_FLAGS completion_flags,
			DAT_RMR_CONTEXT *context)
{
	struct kd_rmr *rmr = kd_get(rmr_handle, DAT_HANDLE_TYPE_RMR);
	struct kd_ep *ep = kd_get(ep_handle, DAT_HANDLE_TYPE_EP);
	struct ib_mw_bind bind = {.wr_id = 0};
	DAT_RETURN ret;

	if (!rmr)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RMR);
	ret = kd_request_check(ep);
	if (ret != DAT_SUCCESS)
		return ret;
	if (!(ep->request_evd->flags & DAT_EVD_RMR_BIND_FLAG))
		return DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_EVD_REQUEST);
	if (ep->pz != rmr->pz)
		return DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_PZ);
	ret = bind_info(rmr, lmr_triplet, mem_priv, &bind.bind_info);
	if (ret == DAT_SUCCESS)
		ret = post_bind(rmr, ep, &bind, user_cookie, completion_flags);
	if (ret != DAT_SUCCESS)
		return ret;
	rmr->param.lmr_triplet = *lmr_triplet;
	rmr->param.mem_priv = mem_priv;
	rmr->param.rmr_context = rmr->mw->rkey;
	if (context)
		*context = rmr->mw->rkey;
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(dat_rmr_bind);

void kd_rmr_stop(struct kd_rmr *rmr)
{
	if (rmr->mw)
		ib_dealloc_mw(rmr->mw);
	rmr->mw = NULL;
}

DAT_RETURN dat_rmr_free(DAT_RMR_HANDLE rmr_handle)
{
	struct kd_rmr *rmr = kd_get(rmr_handle, DAT_HANDLE_TYPE_RMR);

	if (!rmr)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RMR);
	kd_rmr_stop(rmr);
	kd_use(&rmr->pz->object, -1);
	kd_release(&rmr->object);
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(dat_rmr_free);
