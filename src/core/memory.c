/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Memory regions and windows (IBA v1 11.2.8): checks, reference counts and tracking around the
 * driver's operations. Fast memory regions are in fmr.c.
 */
#include "core/private.h"

#define PAGE_SHIFT_MIN 12
#define PAGE_SHIFT_MAX 31
#define MAPPED_PAGES_MAX (1u << 24) /* for ib_reg_phys_mr(), whose list has 8 bytes for each page */

/* --- regions --- */

/* 10.6.3.3: write access for peers requires local write access */
bool core_access_ok(int access)
{
	if (access & (IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC) &&
	    !(access & IB_ACCESS_LOCAL_WRITE))
		return false;
	return true;
}

struct ib_mr *core_track_mr(struct ib_pd *pd, struct ib_mr *mr, struct ib_uobject *uobject)
{
	struct core_owner owner = core_heir(pd, uobject);

	if (IS_ERR(mr))
		return mr;
	mr->device = pd->device;
	mr->pd = pd;
	mr->uobject = uobject;
	INIT_LIST_HEAD(&mr->qp_entry);
	pd->usecnt++;
	core_track(pd->device, &mr->res, RDMA_RESTRACK_MR, &owner);
	return mr;
}

struct ib_mr *ib_get_dma_mr(struct ib_pd *pd, int access)
{
	struct ib_mr *mr;

	if (!core_access_ok(access))
		return ERR_PTR(-EINVAL);
	mr = core_track_mr(pd, pd->device->ops->get_dma_mr(pd, access), NULL);
	if (!IS_ERR(mr))
		mr->access = access;
	return mr;
}

/* Is it an implicit region: all of the program's memory by one key, paged on demand? */
static bool is_implicit(u64 start, u64 length, int access)
{
	return access & IB_ACCESS_ON_DEMAND && !start && length == UINT64_MAX;
}

int core_mr_check(const struct ib_device *device, u64 start, u64 length, u64 iova, int access)
{
	const int known = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ |
			  IB_ACCESS_REMOTE_ATOMIC | IB_ACCESS_MW_BIND | IB_ZERO_BASED |
			  IB_ACCESS_ON_DEMAND | IB_ACCESS_HUGETLB | IB_ACCESS_FLUSH_GLOBAL |
			  IB_ACCESS_OPTIONAL;

	if (access & IB_ACCESS_ON_DEMAND && !(device->attrs.odp_caps.general_caps & IB_ODP_SUPPORT))
		return -EOPNOTSUPP;
	if (is_implicit(start, length, access) &&
	    (iova || !(device->attrs.odp_caps.general_caps & IB_ODP_SUPPORT_IMPLICIT)))
		return -EINVAL;
	if (access & IB_ACCESS_REMOTE_ATOMIC && device->attrs.atomic_cap == IB_ATOMIC_NONE)
		return -EOPNOTSUPP;
	if (access & IB_ACCESS_FLUSH_GLOBAL &&
	    !(device->attrs.device_cap_flags & IB_DEVICE_FLUSH_GLOBAL))
		return -EINVAL; /* the kernel's core returns this, too */
	if (access & ~known || !core_access_ok(access) || length > device->attrs.max_mr_size ||
	    start + length < start ||
	    iova + length < iova)
		return -EINVAL;
	return 0;
}

#define PAGE_BYTES 4096

/* The kernel pins the pages that a region touches, and refuses one that touches none: no bytes at
 * the beginning of a page. */
static bool touches_a_page(u64 start, u64 length)
{
	return length || start % PAGE_BYTES;
}

struct ib_mr *ib_reg_user_mr(struct ib_uobject *uobject, struct ib_pd *pd, u64 start, u64 length,
			     u64 iova, int access)
{
	struct ib_udata udata = {.context = uobject->context};
	struct ib_mr *mr;
	int ret = core_mr_check(pd->device, start, length, iova, access);

	if (!touches_a_page(start, length))
		ret = -EINVAL;
	if (!pd->device->ops->reg_user_mr)
		ret = -EOPNOTSUPP;
	if (!ret)
		ret = core_has_room(pd->device, RDMA_RESTRACK_MR, uobject);
	if (ret)
		return ERR_PTR(ret);
	mr = pd->device->ops->reg_user_mr(pd, start, length, iova, access, &udata);
	if (IS_ERR(mr))
		return mr;
	mr->iova = iova;
	mr->length = length;
	mr->access = access;
	return core_track_mr(pd, mr, uobject);
}

int ib_rereg_user_mr(struct ib_mr *mr, int flags, u64 start, u64 length, u64 iova, int access,
		     struct ib_pd *pd)
{
	u64 new_iova = flags & IB_MR_REREG_TRANS ? iova : mr->iova;
	u64 new_length = flags & IB_MR_REREG_TRANS ? length : mr->length;
	int new_access = flags & IB_MR_REREG_ACCESS ? access : mr->access;
	struct ib_pd *new_pd = flags & IB_MR_REREG_PD ? pd : mr->pd;
	int ret;

	if (!mr->device->ops->rereg_user_mr || mr->dm)
		return -EOPNOTSUPP;
	if (!flags || flags & ~IB_MR_REREG_SUPPORTED ||
	    (flags & IB_MR_REREG_TRANS && !touches_a_page(start, length)))
		return -EINVAL;
	ret = core_mr_check(mr->device, flags & IB_MR_REREG_TRANS ? start : 0, new_length,
			    new_iova, new_access);
	if (!ret)
		ret = mr->device->ops->rereg_user_mr(mr, flags, start, new_length, new_iova,
						     new_access, new_pd);
	if (ret)
		return ret;
	mr->pd->usecnt--;
	new_pd->usecnt++;
	mr->pd = new_pd;
	mr->iova = new_iova;
	mr->length = new_length;
	mr->access = new_access;
	return 0;
}

int ib_query_mr(struct ib_mr *mr, struct ib_mr_attr *attr)
{
	*attr = (struct ib_mr_attr){
		.pd = mr->pd,
		.device_virt_addr = mr->iova,
		.size = mr->length,
		.mr_access_flags = mr->access,
		.lkey = mr->lkey,
		.rkey = mr->rkey,
	};
	return 0;
}

int ib_dereg_mr(struct ib_mr *mr)
{
	const struct ib_device_ops *ops = mr->device->ops;

	if (ops->mr_is_bound && ops->mr_is_bound(mr))
		return -EBUSY;
	list_del(&mr->qp_entry);
	mr->pd->usecnt--;
	if (mr->dm)
		mr->dm->usecnt--;
	rdma_restrack_del(mr->device, &mr->res);
	rt_free(mr->page_list);
	ops->dereg_mr(mr);
	return 0;
}

/* --- regions that are made of pages --- */

bool core_has_pages(const struct ib_device *device)
{
	return device->ops->alloc_mr && device->ops->map_mr && device->ops->stage_mr;
}

/* The size of a page is limited by the lowest bit that is set in an address at which one buffer
 * ends or the next one begins. */
static int page_shift_of(const struct ib_phys_buf *buf, int num, u64 iova)
{
	u64 edges = (iova ^ buf[0].addr) | 1ull << PAGE_SHIFT_MAX;

	for (int i = 0; i < num; i++) {
		if (!buf[i].size || buf[i].addr + buf[i].size < buf[i].addr)
			return -EINVAL;
		edges |= i ? buf[i].addr : 0;
		edges |= i < num - 1 ? buf[i].addr + buf[i].size : 0;
	}
	return __builtin_ctzll(edges) < PAGE_SHIFT_MIN ? -EINVAL : __builtin_ctzll(edges);
}

static u64 pages_of(const struct ib_phys_buf *buf, unsigned shift)
{
	return ((buf->addr + buf->size - 1) >> shift) - (buf->addr >> shift) + 1;
}

/* Make the list of the pages of some buffers. Return: 0, and the caller frees pages->page; -errno */
static int list_pages(const struct ib_phys_buf *buf, int num, u64 iova, struct ib_pages *pages)
{
	int shift = num > 0 ? page_shift_of(buf, num, iova) : -EINVAL;
	u64 *page, total = 0;
	u32 n = 0;

	if (shift < 0)
		return shift;
	*pages = (struct ib_pages){.iova = iova, .shift = (unsigned)shift};
	for (int i = 0; i < num; i++) {
		pages->length += buf[i].size;
		total += pages_of(&buf[i], pages->shift);
	}
	if (total > MAPPED_PAGES_MAX || iova + pages->length < iova)
		return -EINVAL;
	page = rt_zalloc(total * sizeof(*page));
	if (!page)
		return -ENOMEM;
	for (int i = 0; i < num; i++)
		for (u64 p = 0; p < pages_of(&buf[i], pages->shift); p++)
			page[n++] = ((buf[i].addr >> shift) + p) << shift;
	pages->page = page;
	pages->num = n;
	return 0;
}

/* Keep the list of pages in the region, which owns it from now on. */
static void remember_pages(struct ib_mr *mr, const struct ib_pages *pages, int access)
{
	mr->made_of = IB_MR_BUFFERS;
	mr->page_list = (u64 *)pages->page;
	mr->num_pages = pages->num;
	mr->page_size = 1u << pages->shift;
	mr->iova = pages->iova;
	mr->length = pages->length;
	mr->access = access;
}

struct ib_mr *ib_reg_phys_mr(struct ib_pd *pd, struct ib_phys_buf *buf, int num, int access,
			     u64 *iova_start)
{
	struct ib_pages pages;
	struct ib_mr *mr;
	int ret;

	if (!core_has_pages(pd->device))
		return ERR_PTR(-EOPNOTSUPP);
	ret = core_access_ok(access) ? list_pages(buf, num, *iova_start, &pages) : -EINVAL;
	if (ret)
		return ERR_PTR(ret);
	mr = core_has_room(pd->device, RDMA_RESTRACK_MR, NULL) ?
		     ERR_PTR(-ENOMEM) :
		     pd->device->ops->alloc_mr(pd, pages.num);
	ret = PTR_ERR_OR_ZERO(mr);
	if (!ret) {
		ret = pd->device->ops->map_mr(mr, pd, access, &pages);
		if (ret)
			pd->device->ops->dereg_mr(mr);
	}
	if (ret) {
		rt_free((void *)pages.page);
		return ERR_PTR(ret);
	}
	remember_pages(mr, &pages, access);
	return core_track_mr(pd, mr, NULL);
}

int ib_rereg_phys_mr(struct ib_mr *mr, int mask, struct ib_pd *pd, struct ib_phys_buf *buf, int num,
		     int access, u64 *iova_start)
{
	struct ib_pd *new_pd = mask & IB_MR_REREG_PD ? pd : mr->pd;
	int ret, new_access = mask & IB_MR_REREG_ACCESS ? access : mr->access;
	struct ib_pages pages = {mr->iova, mr->length, 0, mr->num_pages, mr->page_list};

	if (mr->made_of != IB_MR_BUFFERS || !mask || mask & ~IB_MR_REREG_SUPPORTED ||
	    !core_access_ok(new_access))
		return -EINVAL;
	pages.shift = (unsigned)__builtin_ctz(mr->page_size);
	ret = mask & IB_MR_REREG_TRANS ? list_pages(buf, num, *iova_start, &pages) : 0;
	if (ret)
		return ret;
	ret = mr->device->ops->map_mr(mr, new_pd, new_access, &pages);
	if (ret) {
		if (pages.page != mr->page_list)
			rt_free((void *)pages.page);
		return ret;
	}
	if (pages.page != mr->page_list)
		rt_free(mr->page_list);
	mr->pd->usecnt--;
	new_pd->usecnt++;
	mr->pd = new_pd;
	remember_pages(mr, &pages, new_access);
	return 0;
}

/* --- fast registration --- */

struct ib_mr *ib_alloc_mr(struct ib_pd *pd, enum ib_mr_type type, u32 max_pages)
{
	struct ib_device *device = pd->device;
	struct ib_mr *mr;
	u64 *list;

	if (type != IB_MR_TYPE_MEM_REG || !core_has_pages(device))
		return ERR_PTR(-EOPNOTSUPP);
	if (!max_pages || max_pages > device->attrs.max_fast_reg_page_list_len)
		return ERR_PTR(-EINVAL);
	list = core_has_room(device, RDMA_RESTRACK_MR, NULL) ? NULL : rt_zalloc(max_pages * sizeof(*list));
	if (!list)
		return ERR_PTR(-ENOMEM);
	mr = device->ops->alloc_mr(pd, max_pages);
	if (IS_ERR(mr)) {
		rt_free(list);
		return mr;
	}
	mr->made_of = IB_MR_FAST;
	mr->page_list = list;
	mr->num_pages = max_pages;
	return core_track_mr(pd, mr, NULL);
}

/* Add the pages of [@from, @to) to the list. Return: false: there is no room for all of them */
static bool add_pages(struct ib_mr *mr, struct ib_pages *pages, u64 from, u64 to)
{
	const u64 size = 1ull << pages->shift;

	for (u64 page = from & ~(size - 1); page < to; page += size) {
		if (pages->num && page < from)
			continue; /* the entry before ends in this page */
		if (pages->num == mr->num_pages)
			return false;
		mr->page_list[pages->num++] = page;
	}
	return true;
}

/* @iova_mask: the bits of the first byte's address that the region's address has */
static int map_entries(struct ib_mr *mr, struct scatterlist *list, int nents,
		       const unsigned int *sg_offset, unsigned int page_size, u64 iova_mask)
{
	unsigned int skip = sg_offset ? *sg_offset : 0;
	struct ib_pages pages = {.page = mr->page_list};
	struct scatterlist *sg;
	int i, ret;
	u64 end = 0;

	if (mr->made_of != IB_MR_FAST || nents < 1 || page_size < 1u << PAGE_SHIFT_MIN ||
	    page_size & (page_size - 1) || skip >= sg_dma_len(list))
		return -EINVAL;
	pages.shift = (unsigned)__builtin_ctz(page_size);
	pages.iova = (sg_dma_address(list) + skip) & iova_mask;
	for_each_sg(list, sg, nents, i) {
		u64 from = sg_dma_address(sg) + (i ? 0 : skip);
		u32 had = pages.num;

		if (i && from != end && (from | end) & (page_size - 1))
			break;
		end = sg_dma_address(sg) + sg_dma_len(sg);
		if (!add_pages(mr, &pages, from, end)) {
			pages.num = had;
			break;
		}
		pages.length += end - from;
	}
	ret = i ? mr->device->ops->stage_mr(mr, &pages) : 0;
	if (ret || !i)
		return ret;
	mr->page_size = page_size;
	mr->iova = pages.iova;
	mr->length = pages.length;
	return i;
}

int ib_map_mr_sg(struct ib_mr *mr, struct scatterlist *list, int nents, unsigned int *sg_offset,
		 unsigned int page_size)
{
	return map_entries(mr, list, nents, sg_offset, page_size, UINT64_MAX);
}

int ib_map_mr_sg_zbva(struct ib_mr *mr, struct scatterlist *list, int nents,
		      unsigned int *sg_offset, unsigned int page_size)
{
	return map_entries(mr, list, nents, sg_offset, page_size, page_size - 1);
}

/* --- windows --- */

static bool has_windows(const struct ib_device *device, enum ib_mw_type type)
{
	const u64 type_2 = IB_DEVICE_MEM_WINDOW_TYPE_2A | IB_DEVICE_MEM_WINDOW_TYPE_2B;

	return device->attrs.device_cap_flags &
	       (type == IB_MW_TYPE_1 ? (u64)IB_DEVICE_MEM_WINDOW : type_2);
}

static struct ib_mw *alloc_mw(struct ib_uobject *uobject, struct ib_pd *pd, enum ib_mw_type type)
{
	struct core_owner owner = core_heir(pd, uobject);
	struct ib_udata udata;
	struct ib_mw *mw;

	if (type != IB_MW_TYPE_1 && type != IB_MW_TYPE_2)
		return ERR_PTR(-EINVAL);
	if (!pd->device->ops->alloc_mw || !has_windows(pd->device, type))
		return ERR_PTR(-EOPNOTSUPP);
	if (core_has_room(pd->device, RDMA_RESTRACK_MW, uobject))
		return ERR_PTR(-ENOMEM);
	mw = pd->device->ops->alloc_mw(pd, type, core_udata(&owner, &udata));
	if (IS_ERR(mw))
		return mw;
	mw->device = pd->device;
	mw->pd = pd;
	mw->uobject = uobject;
	mw->type = type;
	pd->usecnt++;
	core_track(pd->device, &mw->res, RDMA_RESTRACK_MW, &owner);
	return mw;
}

struct ib_mw *ib_alloc_mw_user(struct ib_uobject *uobject, struct ib_pd *pd,
			       enum ib_mw_type type)
{
	return alloc_mw(uobject, pd, type);
}

struct ib_mw *ib_alloc_mw_(struct ib_pd *pd, enum ib_mw_type type)
{
	return alloc_mw(NULL, pd, type);
}

int ib_bind_mw(struct ib_qp *qp, struct ib_mw *mw, struct ib_mw_bind *bind)
{
	const struct ib_bind_mw_wr wr = {
		.wr = {.wr_id = bind->wr_id,
		       .opcode = IB_WR_BIND_MW,
		       .send_flags = bind->send_flags},
		.mw = mw,
		.rkey = ib_inc_rkey(mw->rkey),
		.bind_info = bind->bind_info,
	};
	int ret = mw->type == IB_MW_TYPE_1 ? ib_post_send(qp, &wr.wr, NULL) : -EINVAL;

	if (!ret)
		mw->rkey = wr.rkey;
	return ret;
}

int ib_dealloc_mw(struct ib_mw *mw)
{
	mw->pd->usecnt--;
	rdma_restrack_del(mw->device, &mw->res);
	mw->device->ops->dealloc_mw(mw);
	return 0;
}
