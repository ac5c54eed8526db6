/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Fast memory regions (FMRs): regions that consist of a list of pages, which can be mapped and
 * unmapped without creating a region each time. Each mapping has another key, so that a peer
 * cannot access a mapping by the key of the previous one.
 */
#include "core/private.h"

#define PAGE_SHIFT_MIN 12
#define PAGE_SHIFT_MAX 31
#define PAGES_MAX (1 << 20)

static bool attr_ok(const struct ib_device *device, const struct ib_fmr_attr *attr)
{
	return attr->max_pages >= 1 && attr->max_pages <= PAGES_MAX && attr->max_maps >= 1 &&
	       attr->max_maps <= device->attrs.max_map_per_fmr &&
	       attr->page_shift >= PAGE_SHIFT_MIN && attr->page_shift <= PAGE_SHIFT_MAX;
}

struct ib_fmr *ib_alloc_fmr(struct ib_pd *pd, int access, struct ib_fmr_attr *attr)
{
	struct ib_device *device = pd->device;
	struct core_owner owner = core_heir(pd, NULL);
	struct ib_fmr *fmr;
	int ret;

	if (!core_has_pages(device))
		return ERR_PTR(-EOPNOTSUPP);
	if (!attr_ok(device, attr) || !core_access_ok(access))
		return ERR_PTR(-EINVAL);
	fmr = core_has_room(device, RDMA_RESTRACK_FMR, NULL) ? NULL : rt_zalloc(sizeof(*fmr));
	if (!fmr)
		return ERR_PTR(-ENOMEM);
	fmr->mr = device->ops->alloc_mr(pd, (u32)attr->max_pages);
	if (IS_ERR(fmr->mr)) {
		ret = (int)PTR_ERR(fmr->mr);
		rt_free(fmr);
		return ERR_PTR(ret);
	}
	fmr->mr->device = fmr->device = device;
	fmr->pd = pd;
	INIT_LIST_HEAD(&fmr->list);
	fmr->lkey = fmr->mr->lkey;
	fmr->rkey = fmr->mr->rkey;
	fmr->access = access;
	fmr->max_pages = (u32)attr->max_pages;
	fmr->max_maps = attr->max_maps;
	fmr->page_shift = attr->page_shift;
	pd->usecnt++;
	core_track(device, &fmr->res, RDMA_RESTRACK_FMR, &owner);
	return fmr;
}

int ib_map_phys_fmr(struct ib_fmr *fmr, u64 *page_list, int list_len, u64 iova)
{
	const struct ib_pages pages = {.iova = iova,
				       .length = (u64)list_len << fmr->page_shift,
				       .shift = fmr->page_shift,
				       .num = (u32)list_len,
				       .page = page_list};
	u32 old_key = fmr->mr->lkey;
	int ret;

	if (list_len < 1 || (u32)list_len > fmr->max_pages || iova & ((1ull << fmr->page_shift) - 1))
		return -EINVAL;
	if (fmr->maps >= fmr->max_maps)
		return -ENOMEM;
	ib_update_fast_reg_key(fmr->mr, (u8)(old_key + 1));
	ret = fmr->device->ops->map_mr(fmr->mr, fmr->pd, fmr->access, &pages);
	if (ret) {
		ib_update_fast_reg_key(fmr->mr, (u8)old_key);
		return ret;
	}
	fmr->lkey = fmr->mr->lkey;
	fmr->rkey = fmr->mr->rkey;
	fmr->maps++;
	return 0;
}

int ib_unmap_fmr(struct list_head *fmr_list)
{
	struct ib_fmr *fmr;
	int ret = 0;

	list_for_each_entry(fmr, fmr_list, list) {
		int failed = fmr->device->ops->map_mr(fmr->mr, fmr->pd, 0, NULL);

		if (!failed)
			fmr->maps = 0;
		ret = ret ? ret : failed;
	}
	return ret;
}

int ib_dealloc_fmr(struct ib_fmr *fmr)
{
	fmr->pd->usecnt--;
	rdma_restrack_del(fmr->device, &fmr->res);
	fmr->device->ops->dereg_mr(fmr->mr);
	rt_free(fmr);
	return 0;
}
