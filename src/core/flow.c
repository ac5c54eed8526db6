/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Steering of Ethernet frames: rules that direct them to raw packet QPs (ibv_create_flow(3)),
 * and receive side scaling, by which a QP distributes its frames to work queues
 * (ibv_create_rwq_ind_table(3)). A work queue is also a raw packet QP, whose send queue is
 * not used.
 */
#include "core/private.h"

static bool attr_is_sound(struct ib_device *device, const struct ib_flow_attr *attr)
{
	static const u8 none[sizeof(attr->mask)];

	/* a rule for all frames must not have specifications */
	if (attr->type != IB_FLOW_ATTR_NORMAL &&
	    (memcmp(attr->mask, none, sizeof(none)) || attr->drops || attr->tag))
		return false;
	return attr->type <= IB_FLOW_ATTR_SNIFFER && rdma_is_port_valid(device, attr->port);
}

struct ib_flow *ib_create_flow(struct ib_qp *qp, const struct ib_flow_attr *attr)
{
	struct ib_flow *flow;

	if (!qp->device->ops->create_flow ||
	    attr->flags & ~(u32)IB_FLOW_ATTR_FLAGS_DONT_TRAP)
		return ERR_PTR(-EOPNOTSUPP);
	if (qp->qp_type != IB_QPT_RAW_PACKET || !attr_is_sound(qp->device, attr))
		return ERR_PTR(-EINVAL);
	flow = qp->device->ops->create_flow(qp, attr);
	if (IS_ERR(flow))
		return flow;
	flow->qp = qp;
	qp->usecnt++;
	return flow;
}

int ib_destroy_flow(struct ib_flow *flow)
{
	flow->qp->usecnt--;
	flow->qp->device->ops->destroy_flow(flow);
	return 0;
}

static bool is_work_queue(const struct ib_qp *qp, const struct ib_qp *wq)
{
	return wq != qp && wq->qp_type == IB_QPT_RAW_PACKET && !wq->rss && wq->device == qp->device;
}

int ib_set_rss(struct ib_qp *qp, const struct ib_rss *rss)
{
	u32 num = 1u << rss->log_size;

	if (qp->qp_type != IB_QPT_RAW_PACKET || qp->rss || rss->log_size > IB_RSS_MAX_LOG_SIZE)
		return -EINVAL;
	for (u32 i = 0; i < num; i++)
		if (!is_work_queue(qp, rss->wq[i]))
			return -EINVAL;
	qp->rss = rt_zalloc(sizeof(*rss));
	if (!qp->rss)
		return -ENOMEM;
	*qp->rss = *rss;
	for (u32 i = 0; i < num; i++)
		rss->wq[i]->usecnt++;
	return 0;
}

void core_rss_drop(struct ib_qp *qp)
{
	if (!qp->rss)
		return;
	for (u32 i = 0; i < 1u << qp->rss->log_size; i++)
		qp->rss->wq[i]->usecnt--;
	rt_free(qp->rss);
	qp->rss = NULL;
}
