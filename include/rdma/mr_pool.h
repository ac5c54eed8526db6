/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Pools of regions for fast registration (ib_alloc_mr()), so that a client which registers memory
 * for each of its requests allocates nothing then. A pool is a list, for which a QP has room:
 * qp->rdma_mrs. Names and rules are those of the Linux InfiniBand core.
 */
#ifndef RDMA_MR_POOL_H
#define RDMA_MR_POOL_H

#include "rdma/ib_verbs.h"

#pragma GCC visibility push(default)

/**
 * ib_mr_pool_init() - fill a pool
 * @list: the pool, an empty list: &qp->rdma_mrs, or one of the client's
 * @nr: regions, in the PD of @qp
 * @max_num_sg: pages that each has room for
 * @max_num_meta_sg: 0: there are no regions with signatures
 *
 * Context: may sleep. Return: 0; -EINVAL @max_num_meta_sg; -errno of ib_alloc_mr(), and the pool
 * is empty
 */
int ib_mr_pool_init(struct ib_qp *qp, struct list_head *list, int nr, enum ib_mr_type type,
		    u32 max_num_sg, u32 max_num_meta_sg);
/** ib_mr_pool_destroy() - free the regions of a pool, to which all have come back. Before @qp is
 *  destroyed. Context: may sleep */
void ib_mr_pool_destroy(struct ib_qp *qp, struct list_head *list);
/** ib_mr_pool_get() - take a region. Context: any; never sleeps. Return: the region, for
 *  ib_mr_pool_put(); NULL: all are in use */
struct ib_mr *ib_mr_pool_get(struct ib_qp *qp, struct list_head *list);
/** ib_mr_pool_put() - give a region back, which has been invalidated. Context: any; never sleeps */
void ib_mr_pool_put(struct ib_qp *qp, struct list_head *list, struct ib_mr *mr);

#pragma GCC visibility pop

#endif
