/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Device memory (ibv_alloc_dm(3)): memory of the adapter's own that a program reaches by
 * copies, and peers by regions on it.
 */
#include "core/private.h"

struct ib_dm *ib_alloc_dm_user(struct ib_uobject *uobject, u64 length)
{
	struct ib_udata udata = {.context = uobject->context};
	struct ib_device *device = uobject->context->device;
	struct ib_dm *dm;

	if (!device->ops->alloc_dm || !device->attrs.max_dm_size)
		return ERR_PTR(-EOPNOTSUPP);
	if (!length || length > device->attrs.max_dm_size)
		return ERR_PTR(-EINVAL);
	dm = device->ops->alloc_dm(device, length, &udata);
	if (IS_ERR(dm))
		return dm;
	dm->device = device;
	dm->length = length;
	return dm;
}

int ib_dealloc_dm(struct ib_dm *dm)
{
	if (dm->usecnt)
		return -EBUSY;
	dm->device->ops->dealloc_dm(dm);
	return 0;
}

struct ib_mr *ib_reg_dm_mr_user(struct ib_uobject *uobject, struct ib_pd *pd, struct ib_dm *dm,
				u64 offset, u64 length, int access)
{
	struct ib_udata udata = {.context = uobject->context};
	struct ib_mr *mr;
	int ret = core_mr_check(pd->device, offset, length, 0, access);

	if (!ret && (!(access & IB_ZERO_BASED) || access & IB_ACCESS_ON_DEMAND ||
		     dm->device != pd->device || offset > dm->length ||
		     length > dm->length - offset))
		ret = -EINVAL;
	if (!ret)
		ret = core_has_room(pd->device, RDMA_RESTRACK_MR, uobject);
	if (ret)
		return ERR_PTR(ret);
	mr = pd->device->ops->reg_dm_mr(pd, dm, offset, length, access, &udata);
	if (IS_ERR(mr))
		return mr;
	mr->iova = 0;
	mr->length = length;
	mr->access = access;
	mr->dm = dm;
	mr->dm_offset = offset;
	dm->usecnt++;
	return core_track_mr(pd, mr, uobject);
}
