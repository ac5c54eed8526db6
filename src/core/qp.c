/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Queue pairs (IBA v1 11.2.4) and their multicast attachments (11.3). A call of
 * modify is checked here against the table of states and the device's limits;
 * the driver gets only legal ones. The attributes are stored in the QP for the
 * next check, for queries of programs' QPs, and for resource tracking.
 */
#include "core/private.h"
#include "core/trace.h"
#include "rdma/rw.h"

/** struct mcast_group - a group that QPs are attached to */
struct mcast_group {
	struct list_head node; /* in device->mcast_groups */
	union ib_gid gid;
	u16 lid;
	u32 num_qps;
};

/** struct mcast - a QP's attachment to a group */
struct mcast {
	struct list_head node; /* in qp->mcast_list */
	struct mcast_group *group;
};

/* --- create --- */

/* Are the objects that a QP of this type needs there, and no others? 11.2.4.1, 11.2.7.1: an EE
 * context has an RD domain and no queues. A14: an XRC target has an XRC domain instead of all other
 * objects, and an initiator does not receive. */
static bool has_parts(const struct ib_pd *pd, const struct ib_qp_init_attr *attr)
{
	if (attr->qp_type == IB_QPT_EEC)
		return attr->rdd && !pd && !attr->send_cq && !attr->recv_cq && !attr->srq;
	if (!attr->rdd != (attr->qp_type != IB_QPT_RD))
		return false;
	if (attr->qp_type == IB_QPT_XRC_TGT)
		return attr->xrcd && !pd && !attr->send_cq && !attr->recv_cq && !attr->srq;
	if (!pd || !attr->send_cq || attr->xrcd)
		return false;
	return attr->qp_type == IB_QPT_XRC_INI ? !attr->recv_cq && !attr->srq : !!attr->recv_cq;
}

static bool is_on(const struct ib_device *device, const struct ib_cq *cq)
{
	return !cq || cq->device == device;
}

static int flags_check(const struct ib_device *device, const struct ib_qp_init_attr *attr)
{
	if (!attr->create_flags)
		return 0;
	if (attr->create_flags != IB_QP_CREATE_IPOIB_UD_LSO || attr->qp_type != IB_QPT_UD)
		return -EINVAL;
	return device->attrs.device_cap_flags & IB_DEVICE_UD_TSO ? 0 : -EOPNOTSUPP;
}

static int init_attr_check(const struct ib_device *device, const struct ib_qp_init_attr *attr)
{
	const struct ib_device_attr *max = &device->attrs;
	const struct ib_qp_cap *cap = &attr->cap;
	int max_inline = attr->qp_type == IB_QPT_UD ? max->max_inline_data_ud :
						      max->max_inline_data;

	if (attr->qp_type > IB_QPT_GSI && !(max->qp_types & 1u << attr->qp_type))
		return -EOPNOTSUPP;
	if (!is_on(device, attr->send_cq) || !is_on(device, attr->recv_cq) ||
	    (attr->srq && (attr->srq->device != device || attr->srq->xrcd)) ||
	    (attr->rdd && attr->rdd->device != device) ||
	    (attr->xrcd && attr->xrcd->device != device))
		return -EINVAL;
	if (attr->qp_type <= IB_QPT_GSI && !rdma_is_port_valid(device, attr->port_num))
		return -EINVAL;
	if (cap->max_send_wr > (unsigned)max->max_qp_wr ||
	    cap->max_recv_wr > (unsigned)max->max_qp_wr ||
	    cap->max_send_sge > (unsigned)max->max_send_sge ||
	    cap->max_recv_sge > (unsigned)max->max_recv_sge ||
	    cap->max_inline_data > (unsigned)max_inline)
		return -EINVAL;
	return flags_check(device, attr);
}

static void use_parts(struct ib_qp *qp, int by)
{
	if (qp->pd)
		qp->pd->usecnt += (unsigned)by;
	if (qp->send_cq)
		qp->send_cq->usecnt += (unsigned)by;
	if (qp->recv_cq)
		qp->recv_cq->usecnt += (unsigned)by;
	if (qp->srq)
		qp->srq->usecnt += (unsigned)by;
	if (qp->xrcd)
		qp->xrcd->usecnt += (unsigned)by;
	if (qp->rdd)
		qp->rdd->usecnt += (unsigned)by;
}

struct ib_qp *core_create_qp(struct ib_pd *pd, struct ib_qp_init_attr *attr,
			     const struct core_owner *owner)
{
	struct ib_device *device;
	struct ib_udata udata;
	struct ib_qp *qp;
	int ret;

	if (attr->qp_type >= IB_QPT_MAX || !has_parts(pd, attr))
		return ERR_PTR(-EINVAL);
	device = pd ? pd->device : attr->rdd ? attr->rdd->device : attr->xrcd->device;
	ret = init_attr_check(device, attr);
	if (ret)
		return ERR_PTR(ret);
	if (core_has_room(device, RDMA_RESTRACK_QP, owner->uobject))
		return ERR_PTR(-ENOMEM);
	qp = device->ops->create_qp(pd, attr, core_udata(owner, &udata));
	if (IS_ERR(qp))
		return qp;
	qp->device = device;
	qp->pd = pd;
	qp->xrcd = attr->xrcd;
	qp->rdd = attr->rdd;
	qp->send_cq = attr->send_cq;
	qp->recv_cq = attr->recv_cq;
	qp->srq = attr->srq;
	qp->uobject = owner->uobject;
	qp->event_handler = attr->event_handler;
	qp->qp_context = attr->qp_context;
	qp->qp_type = attr->qp_type;
	qp->sq_sig_type = attr->sq_sig_type;
	qp->cap = attr->cap;
	qp->port = (u8)(attr->qp_type <= IB_QPT_GSI ? attr->port_num : 0);
	INIT_LIST_HEAD(&qp->mcast_list);
	INIT_LIST_HEAD(&qp->rdma_mrs);
	INIT_LIST_HEAD(&qp->target_node);
	INIT_LIST_HEAD(&qp->openers);
	use_parts(qp, 1);
	if (qp->qp_type == IB_QPT_XRC_TGT)
		core_target_created(qp);
	core_track(device, &qp->res, RDMA_RESTRACK_QP, owner);
	trace_qp_create(RT_TRACE_AT(device, 0), qp->qp_num, (int)qp->qp_type, qp->res.comm,
			(int)qp->res.pid);
	return qp;
}

struct ib_qp *ib_create_qp_(struct ib_pd *pd, struct ib_qp_init_attr *attr, const char *client)
{
	if (pd)
		rdma_rw_init_qp(pd->device, attr);
	return core_create_qp(pd, attr, &(struct core_owner){.client = client});
}

/* A program cannot create QP0 or QP1, which belong to the kernel. */
struct ib_qp *ib_create_qp_user(struct ib_uobject *uobject, struct ib_pd *pd,
				struct ib_qp_init_attr *attr)
{
	if (attr->qp_type <= IB_QPT_GSI)
		return ERR_PTR(-EPERM);
	if (attr->qp_type == IB_QPT_RD || attr->qp_type == IB_QPT_EEC)
		return ERR_PTR(-EOPNOTSUPP); /* libibverbs has no EE contexts */
	return core_create_qp(pd, attr, &(struct core_owner){.uobject = uobject});
}

/* --- modify --- */

static int path_check(struct ib_device *device, struct rdma_ah_attr *path, u8 port_num)
{
	struct rdma_ah_attr attr = *path;
	int ret;

	/* the port number of a path defaults to the QP's port */
	if (!attr.port_num)
		attr.port_num = port_num;
	ret = core_ah_attr_check(device, &attr);
	path->dlid = attr.dlid;
	return ret;
}

static int paths_check(struct ib_device *device, struct ib_qp_attr *attr, int mask, u8 port_num)
{
	int ret = mask & IB_QP_AV ? path_check(device, &attr->ah_attr, port_num) : 0;

	if (!ret && mask & IB_QP_ALT_PATH)
		ret = path_check(device, &attr->alt_ah_attr, attr->alt_port_num);
	return ret;
}

/* Check the alternate path, whose port may be another one, since the QP migrates to it as a whole. */
static bool alternate_fits(struct ib_device *device, const struct ib_qp_attr *attr, int mask)
{
	const struct ib_port_attr *port;

	if (mask & IB_QP_PATH_MIG_STATE && attr->path_mig_state > IB_MIG_ARMED)
		return false;
	if (!(mask & IB_QP_ALT_PATH))
		return true;
	if (!rdma_is_port_valid(device, attr->alt_port_num))
		return false;
	port = core_cached_port(device, attr->alt_port_num);
	return attr->alt_timeout <= 31 && (!port || attr->alt_pkey_index < port->pkey_tbl_len);
}

/* Check the values against the device's limits and the widths of their fields on the wire. */
static int limits_check(struct ib_qp *qp, struct ib_qp_attr *attr, int mask)
{
	const struct ib_device_attr *max = &qp->device->attrs;
	u8 port_num = mask & IB_QP_PORT ? attr->port_num : qp->port;
	const struct ib_port_attr *port = core_cached_port(qp->device, port_num);

	if (mask & IB_QP_PORT && !rdma_is_port_valid(qp->device, attr->port_num))
		return -EINVAL;
	if (mask & IB_QP_ACCESS_FLAGS && attr->qp_access_flags & IB_ACCESS_REMOTE_ATOMIC &&
	    max->atomic_cap == IB_ATOMIC_NONE)
		return -EOPNOTSUPP;
	if (mask & IB_QP_PKEY_INDEX && port && attr->pkey_index >= port->pkey_tbl_len)
		return -EINVAL;
	if (mask & IB_QP_PATH_MTU &&
	    (ib_mtu_enum_to_int(attr->path_mtu) < 0 || (port && attr->path_mtu > port->max_mtu)))
		return -EINVAL;
	if ((mask & IB_QP_MAX_QP_RD_ATOMIC &&
	     attr->max_rd_atomic > max->max_qp_init_rd_atom) ||
	    (mask & IB_QP_MAX_DEST_RD_ATOMIC && attr->max_dest_rd_atomic > max->max_qp_rd_atom))
		return -EINVAL;
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC &&
	    qp->device->rd_resources - qp->attr.max_dest_rd_atomic + attr->max_dest_rd_atomic >
		    (u64)max->max_res_rd_atom)
		return -ENOMEM;
	if ((mask & IB_QP_TIMEOUT && attr->timeout > 31) ||
	    (mask & IB_QP_MIN_RNR_TIMER && attr->min_rnr_timer > 31) ||
	    (mask & IB_QP_RETRY_CNT && attr->retry_cnt > 7) ||
	    (mask & IB_QP_RNR_RETRY && attr->rnr_retry > 7) ||
	    (mask & IB_QP_DEST_QPN && attr->dest_qp_num > IB_QPN_MASK))
		return -EINVAL;
	if (!alternate_fits(qp->device, attr, mask))
		return -EINVAL;
	if (mask & IB_QP_RATE_LIMIT && attr->rate_limit &&
	    (attr->rate_limit < max->min_rate_limit || attr->rate_limit > max->max_rate_limit))
		return -EINVAL;
	return paths_check(qp->device, attr, mask, port_num);
}

static void remember(struct ib_qp *qp, const struct ib_qp_attr *attr, int mask)
{
	struct ib_qp_attr *to = &qp->attr;

	qp->device->rd_resources -= to->max_dest_rd_atomic;
	if (mask & IB_QP_STATE)
		qp->state = attr->qp_state;
	if (qp->state == IB_QPS_RESET)
		memset(to, 0, sizeof(*to));
#define KEEP(bit, field)                                                       \
	if (mask & (bit))                                                      \
		to->field = attr->field
	KEEP(IB_QP_ACCESS_FLAGS, qp_access_flags);
	KEEP(IB_QP_PKEY_INDEX, pkey_index);
	KEEP(IB_QP_PORT, port_num);
	KEEP(IB_QP_QKEY, qkey);
	KEEP(IB_QP_AV, ah_attr);
	KEEP(IB_QP_PATH_MTU, path_mtu);
	KEEP(IB_QP_TIMEOUT, timeout);
	KEEP(IB_QP_RETRY_CNT, retry_cnt);
	KEEP(IB_QP_RNR_RETRY, rnr_retry);
	KEEP(IB_QP_RQ_PSN, rq_psn);
	KEEP(IB_QP_MAX_QP_RD_ATOMIC, max_rd_atomic);
	KEEP(IB_QP_ALT_PATH, alt_ah_attr);
	KEEP(IB_QP_ALT_PATH, alt_pkey_index);
	KEEP(IB_QP_ALT_PATH, alt_port_num);
	KEEP(IB_QP_ALT_PATH, alt_timeout);
	KEEP(IB_QP_MIN_RNR_TIMER, min_rnr_timer);
	KEEP(IB_QP_SQ_PSN, sq_psn);
	KEEP(IB_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
	KEEP(IB_QP_PATH_MIG_STATE, path_mig_state);
	KEEP(IB_QP_DEST_QPN, dest_qp_num);
	KEEP(IB_QP_RATE_LIMIT, rate_limit);
#undef KEEP
	if (mask & IB_QP_PORT)
		qp->port = attr->port_num;
	to->qp_state = to->cur_qp_state = qp->state;
	qp->device->rd_resources += to->max_dest_rd_atomic;
}

/* A QP goes from RTS to SQE by itself, when a request fails, which only its owner can know. */
static bool may_be_in(const struct ib_qp *qp, enum ib_qp_state cur)
{
	return cur == qp->state || (cur == IB_QPS_SQE && qp->state == IB_QPS_RTS);
}

static int modify(struct ib_qp *qp, struct ib_qp_attr *attr, int mask)
{
	enum ib_qp_state cur = mask & IB_QP_CUR_STATE ? attr->cur_qp_state : qp->state;
	enum ib_qp_state next = mask & IB_QP_STATE ? attr->qp_state : cur;
	int ret;

	if (!may_be_in(qp, cur) || !ib_modify_qp_is_ok(cur, next, qp->qp_type, mask))
		return -EINVAL;
	ret = limits_check(qp, attr, mask);
	if (!ret)
		ret = qp->device->ops->modify_qp(qp, attr, mask);
	if (!ret)
		remember(qp, attr, mask);
	return ret;
}

int ib_modify_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask)
{
	enum ib_qp_state from = qp->state;
	int ret = modify(qp, attr, mask);

	trace_qp_modify(RT_TRACE_AT(qp->device, 0), qp->qp_num, trace_qp_state_name(from),
			trace_qp_state_name(mask & IB_QP_STATE ? attr->qp_state : from), mask, ret);
	return ret;
}

int ib_query_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask,
		struct ib_qp_init_attr *init_attr)
{
	*attr = qp->attr;
	attr->qp_state = attr->cur_qp_state = qp->state;
	attr->cap = qp->cap;
	*init_attr = (struct ib_qp_init_attr){
		.event_handler = qp->event_handler,
		.qp_context = qp->qp_context,
		.send_cq = qp->send_cq,
		.recv_cq = qp->recv_cq,
		.srq = qp->srq,
		.cap = qp->cap,
		.sq_sig_type = qp->sq_sig_type,
		.qp_type = qp->qp_type,
		.port_num = qp->qp_type <= IB_QPT_GSI ? qp->port : 0,
	};
	return qp->device->ops->query_qp(qp, attr, mask, init_attr);
}

int ib_destroy_qp(struct ib_qp *qp)
{
	if (qp->usecnt)
		return -EBUSY;
	trace_qp_destroy(RT_TRACE_AT(qp->device, 0), qp->qp_num, trace_qp_state_name(qp->state));
	core_rss_drop(qp);
	qp->device->rd_resources -= qp->attr.max_dest_rd_atomic;
	list_del(&qp->target_node);
	while (!list_empty(&qp->rdma_mrs)) /* the client has not destroyed its pool of regions */
		list_del(qp->rdma_mrs.next);
	use_parts(qp, -1);
	rdma_restrack_del(qp->device, &qp->res);
	core_events_forget(qp->device, qp);
	qp->device->ops->destroy_qp(qp);
	return 0;
}

/* --- multicast --- */

static bool is_group(const struct mcast_group *group, const union ib_gid *gid, u16 lid)
{
	return group->lid == lid && !memcmp(&group->gid, gid, sizeof(*gid));
}

static struct mcast *find_mcast(struct ib_qp *qp, const union ib_gid *gid, u16 lid)
{
	struct mcast *m;

	list_for_each_entry(m, &qp->mcast_list, node)
		if (is_group(m->group, gid, lid))
			return m;
	return NULL;
}

static struct mcast_group *find_group(const struct ib_device *device, const union ib_gid *gid, u16 lid)
{
	struct mcast_group *group;

	list_for_each_entry(group, &device->mcast_groups, node)
		if (is_group(group, gid, lid))
			return group;
	return NULL;
}

static struct mcast_group *make_group(struct ib_device *device, const union ib_gid *gid, u16 lid)
{
	struct mcast_group *group = rt_zalloc(sizeof(*group));

	if (!group)
		return NULL;
	group->gid = *gid;
	group->lid = lid;
	list_add_tail(&group->node, &device->mcast_groups);
	device->num_mcast_groups++;
	return group;
}

/* Count one QP more in the group, which is made if the device does not have it. Return: the
 * group, for leave_group(); NULL: a limit of the device forbids it, or no memory */
static struct mcast_group *join_group(struct ib_device *device, const union ib_gid *gid, u16 lid)
{
	const struct ib_device_attr *max = &device->attrs;
	struct mcast_group *group = find_group(device, gid, lid);
	u32 num_qps = group ? group->num_qps : 0;

	if (device->num_mcast_attached >= (u32)max->max_total_mcast_qp_attach ||
	    num_qps >= (u32)max->max_mcast_qp_attach ||
	    (!group && device->num_mcast_groups >= (u32)max->max_mcast_grp))
		return NULL;
	if (!group)
		group = make_group(device, gid, lid);
	if (!group)
		return NULL;
	group->num_qps++;
	device->num_mcast_attached++;
	return group;
}

static void leave_group(struct ib_device *device, struct mcast_group *group)
{
	device->num_mcast_attached--;
	if (--group->num_qps)
		return;
	device->num_mcast_groups--;
	list_del(&group->node);
	rt_free(group);
}

int ib_attach_mcast(struct ib_qp *qp, const union ib_gid *gid, u16 lid)
{
	struct mcast *m;
	int ret;

	if (!qp->device->ops->attach_mcast || !qp->device->attrs.max_mcast_grp)
		return -EOPNOTSUPP;
	/* 4.1.1: a multicast GID begins with ff; 4.1.3: the LID's range */
	if (qp->qp_type != IB_QPT_UD || gid->raw[0] != 0xff || lid < IB_MULTICAST_LID_BASE ||
	    lid == IB_LID_PERMISSIVE)
		return -EINVAL;
	if (find_mcast(qp, gid, lid))
		return 0;
	m = rt_zalloc(sizeof(*m));
	if (!m)
		return -ENOMEM;
	ret = -ENOMEM;
	m->group = join_group(qp->device, gid, lid);
	if (!m->group)
		goto undo_attachment;
	ret = qp->device->ops->attach_mcast(qp, gid, lid);
	if (ret)
		goto undo_group;
	list_add_tail(&m->node, &qp->mcast_list);
	qp->usecnt++;
	return 0;

undo_group:
	leave_group(qp->device, m->group);
undo_attachment:
	rt_free(m);
	return ret;
}

int ib_detach_mcast(struct ib_qp *qp, const union ib_gid *gid, u16 lid)
{
	struct mcast *m;

	if (!qp->device->ops->detach_mcast)
		return -EOPNOTSUPP;
	m = find_mcast(qp, gid, lid);
	if (!m)
		return -EINVAL;
	qp->device->ops->detach_mcast(qp, gid, lid);
	list_del(&m->node);
	leave_group(qp->device, m->group);
	rt_free(m);
	qp->usecnt--;
	return 0;
}

void core_detach_all(struct ib_qp *qp)
{
	while (!list_empty(&qp->mcast_list)) {
		const struct mcast *m = list_first_entry(&qp->mcast_list, struct mcast, node);
		union ib_gid gid = m->group->gid;

		ib_detach_mcast(qp, &gid, m->group->lid);
	}
}
