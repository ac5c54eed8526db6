/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Destroys all objects that a client of the midlayer has not destroyed when it is unloaded. They
 * are found by the name of the client. An object is destroyed before those that it uses.
 */
#include <string.h>

#include "core/cm_priv.h"
#include "core/private.h"
#include "rdma/ib_fmr_pool.h"

static void forget_cm_id(struct rdma_restrack_entry *res)
{
	ib_destroy_cm_id(&container_of(res, struct cm_id, res)->id);
}

static void forget_qp(struct rdma_restrack_entry *res)
{
	struct ib_qp *qp = container_of(res, struct ib_qp, res);

	core_detach_all(qp);
	ib_destroy_qp(qp);
}

static void forget_srq(struct rdma_restrack_entry *res)
{
	ib_destroy_srq(container_of(res, struct ib_srq, res));
}

static void forget_ah(struct rdma_restrack_entry *res)
{
	rdma_destroy_ah(container_of(res, struct ib_ah, res), 0);
}

static void forget_mr(struct rdma_restrack_entry *res)
{
	ib_dereg_mr(container_of(res, struct ib_mr, res));
}

static void forget_mw(struct rdma_restrack_entry *res)
{
	ib_dealloc_mw(container_of(res, struct ib_mw, res));
}

/* Destroy an FMR. If it belongs to a pool, destroy the pool with all its FMRs. */
static void forget_fmr(struct rdma_restrack_entry *res)
{
	struct ib_fmr *fmr = container_of(res, struct ib_fmr, res);

	if (fmr->pool)
		ib_destroy_fmr_pool(fmr->pool);
	else
		ib_dealloc_fmr(fmr);
}

static void forget_cq(struct rdma_restrack_entry *res)
{
	ib_destroy_cq(container_of(res, struct ib_cq, res));
}

static void forget_pd(struct rdma_restrack_entry *res)
{
	ib_dealloc_pd(container_of(res, struct ib_pd, res));
}

static void (*const forget[RDMA_RESTRACK_MAX])(struct rdma_restrack_entry *res) = {
	[RDMA_RESTRACK_CM_ID] = forget_cm_id, [RDMA_RESTRACK_QP] = forget_qp,
	[RDMA_RESTRACK_SRQ] = forget_srq,     [RDMA_RESTRACK_AH] = forget_ah,
	[RDMA_RESTRACK_MW] = forget_mw,	      [RDMA_RESTRACK_FMR] = forget_fmr,
	[RDMA_RESTRACK_MR] = forget_mr,	      [RDMA_RESTRACK_CQ] = forget_cq,
	[RDMA_RESTRACK_PD] = forget_pd,
};

static const enum rdma_restrack_type in_order[] = {
	RDMA_RESTRACK_CM_ID, RDMA_RESTRACK_QP, RDMA_RESTRACK_SRQ, RDMA_RESTRACK_AH,
	RDMA_RESTRACK_MW,    RDMA_RESTRACK_FMR, RDMA_RESTRACK_MR, RDMA_RESTRACK_CQ,
	RDMA_RESTRACK_PD,
};

static bool is_left(const struct rdma_restrack_entry *entry, const char *client)
{
	const struct ib_mr *mr = container_of(entry, struct ib_mr, res);

	if (entry->user || strncmp(entry->comm, client, sizeof(entry->comm) - 1))
		return false; /* the table has truncated names */
	/* the internal region of a PD is destroyed with the PD */
	return entry->type != RDMA_RESTRACK_MR || !mr->pd || mr->pd->internal_mr != mr;
}

/* The destruction of an object may remove others from the list, so each search begins at its start. */
static struct rdma_restrack_entry *find_left(struct ib_device *device,
					     enum rdma_restrack_type type, const char *client)
{
	struct rdma_restrack_entry *entry;

	list_for_each_entry(entry, &device->res.list[type], node)
		if (is_left(entry, client))
			return entry;
	return NULL;
}

void rdma_restrack_forget(struct ib_device *device, const char *client,
			  u32 count[RDMA_RESTRACK_MAX])
{
	struct rdma_restrack_entry *entry;

	for (size_t i = 0; i < ARRAY_SIZE(in_order); i++) {
		enum rdma_restrack_type type = in_order[i];

		while ((entry = find_left(device, type, client))) {
			u32 before = device->res.count[type];

			forget[type](entry);
			count[type] += before - device->res.count[type];
			if (device->res.count[type] == before)
				break; /* an object of another client uses it: it cannot be destroyed */
		}
	}
}
