/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Reliable datagrams: RD domains and EE contexts (IBA v1 11.2.1.7, 11.2.7). An EE context has the
 * states and the attributes of an RC QP, so the core represents it by a QP of the type IB_QPT_EEC: one
 * table of state transitions, one check of limits and one list of resources serve both.
 */
#include "core/private.h"

#include "rdma/ib_rd.h"

struct ib_rdd *ib_alloc_rdd(struct ib_device *device)
{
	struct ib_rdd *rdd;

	if (!(device->attrs.qp_types & 1u << IB_QPT_RD))
		return ERR_PTR(-EOPNOTSUPP);
	rdd = rt_zalloc(sizeof(*rdd));
	if (!rdd)
		return ERR_PTR(-ENOMEM);
	if (++device->last_rdd == 0)
		device->last_rdd = 1;
	rdd->device = device;
	rdd->number = device->last_rdd;
	return rdd;
}

int ib_dealloc_rdd(struct ib_rdd *rdd)
{
	if (rdd->usecnt)
		return -EBUSY;
	rt_free(rdd);
	return 0;
}

struct ib_eec *ib_create_eec_(struct ib_rdd *rdd,
			      void (*event_handler)(struct ib_event *event, void *context),
			      void *context, const char *client)
{
	const struct ib_device_attr *max = &rdd->device->attrs;
	/* The send queue has room for one request, of any size that an RD QP may post. */
	struct ib_qp_init_attr attr = {
		.event_handler = event_handler,
		.qp_context = context,
		.rdd = rdd,
		.qp_type = IB_QPT_EEC,
		.cap = {.max_send_wr = 1,
			.max_send_sge = (u32)max->max_send_sge,
			.max_inline_data = (u32)max->max_inline_data},
	};
	struct ib_eec *eec = rt_zalloc(sizeof(*eec));
	struct ib_qp *qp;

	if (!eec)
		return ERR_PTR(-ENOMEM);
	qp = ib_create_qp_(NULL, &attr, client);
	if (IS_ERR(qp)) {
		rt_free(eec);
		return ERR_PTR(PTR_ERR(qp));
	}
	eec->rdd = rdd;
	eec->qp = qp;
	eec->eec_num = qp->qp_num;
	return eec;
}

int ib_modify_eec(struct ib_eec *eec, struct ib_qp_attr *attr, int mask)
{
	return ib_modify_qp(eec->qp, attr, mask);
}

int ib_query_eec(struct ib_eec *eec, struct ib_qp_attr *attr, int mask)
{
	struct ib_qp_init_attr init_attr;

	return ib_query_qp(eec->qp, attr, mask, &init_attr);
}

void ib_destroy_eec(struct ib_eec *eec)
{
	ib_destroy_qp(eec->qp);
	rt_free(eec);
}
