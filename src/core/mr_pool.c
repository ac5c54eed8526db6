/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Pools of regions for fast registration. */
#include "core/private.h"
#include "rdma/mr_pool.h"

int ib_mr_pool_init(struct ib_qp *qp, struct list_head *list, int nr, enum ib_mr_type type,
		    u32 max_num_sg, u32 max_num_meta_sg)
{
	if (max_num_meta_sg)
		return -EINVAL;
	for (int i = 0; i < nr; i++) {
		struct ib_mr *mr = ib_alloc_mr(qp->pd, type, max_num_sg);

		if (IS_ERR(mr)) {
			ib_mr_pool_destroy(qp, list);
			return (int)PTR_ERR(mr);
		}
		list_add_tail(&mr->qp_entry, list);
	}
	return 0;
}

void ib_mr_pool_destroy(struct ib_qp *qp, struct list_head *list)
{
	struct ib_mr *mr;

	while ((mr = ib_mr_pool_get(qp, list)))
		ib_dereg_mr(mr);
}

struct ib_mr *ib_mr_pool_get(struct ib_qp *qp, struct list_head *list)
{
	struct ib_mr *mr;

	if (list_empty(list))
		return NULL;
	mr = list_first_entry(list, struct ib_mr, qp_entry);
	list_del(&mr->qp_entry);
	return mr;
}

void ib_mr_pool_put(struct ib_qp *qp, struct list_head *list, struct ib_mr *mr)
{
	list_add_tail(&mr->qp_entry, list);
}
