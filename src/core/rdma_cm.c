/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Ids of the RDMA CM: their creation, destruction and options, and new and removed devices. */
#include "core/rdma_cm_priv.h"

/* --- host tables --- */

const struct rdma_hosts *rcm_hosts(const struct rt *rt)
{
	const struct core_fabric *fabric = core_fabric_of(rt);

	return fabric ? fabric->hosts : NULL;
}

int rdma_cm_set_hosts(struct rt *rt, const struct rdma_hosts *hosts)
{
	struct core_fabric *fabric = core_fabric_of(rt);

	if (!fabric)
		return hosts ? -ENODEV : 0;
	fabric->hosts = hosts;
	return 0;
}

/* --- ids --- */

struct rcm_id *rcm_alloc(struct rt *rt, const char *node, rdma_cm_event_handler handler,
			 void *context, enum rdma_ucm_port_space ps,
			 enum ib_qp_type qp_type)
{
	struct rcm_id *id = rt_zalloc(sizeof(*id));

	if (!id)
		return NULL;
	id->rt = rt;
	strncpy(id->node_name, node, sizeof(id->node_name) - 1);
	id->id.event_handler = handler;
	id->id.context = context;
	id->id.ps = ps;
	id->id.qp_type = qp_type;
	id->query_id = -1;
	id->seq_num = rt_random(rt) & 0xffffff;
	id->qkey = qp_type == IB_QPT_UD && ps != RDMA_PS_IPOIB ? RDMA_UDP_QKEY : 0;
	INIT_LIST_HEAD(&id->bound_node);
	INIT_LIST_HEAD(&id->gone_node);
	INIT_LIST_HEAD(&id->listens);
	INIT_LIST_HEAD(&id->mcasts);
	rt_work_init(&id->resolved, rcm_resolved);
	rt_timer_init(rt, &id->asked, rcm_asked);
	list_add_tail(&id->node, rcm_ids(id));
	return id;
}

struct rdma_cm_id *rdma_create_id(struct rt *rt, const char *node,
				  rdma_cm_event_handler event_handler, void *context,
				  enum rdma_ucm_port_space ps, enum ib_qp_type qp_type)
{
	struct rcm_id *id;

	if (ps != RDMA_PS_TCP && ps != RDMA_PS_UDP && ps != RDMA_PS_IPOIB && ps != RDMA_PS_IB &&
	    ps != RDMA_PS_SDP)
		return ERR_PTR(-EPROTONOSUPPORT);
	if (!rcm_hosts(rt))
		return ERR_PTR(-ENODEV);
	id = rcm_alloc(rt, node, event_handler, context, ps, qp_type);
	if (id)
		rcm_trace_call(id, "create_id");
	return id ? &id->id : ERR_PTR(-ENOMEM);
}

int rdma_id_for_each(const struct rt *rt, int (*fn)(struct rdma_cm_id *id, void *ctx), void *ctx)
{
	struct core_fabric *fabric = core_fabric_of(rt);
	struct rcm_id *id;
	int ret = 0;

	if (!fabric)
		return 0;
	list_for_each_entry(id, &fabric->rcm_ids, node) {
		ret = fn(&id->id, ctx);
		if (ret)
			break;
	}
	return ret;
}

void rcm_leave_listener(struct rcm_id *id)
{
	if (id->listener)
		id->listener->waiting--;
	id->listener = NULL;
}

/* A request that @listener has not answered yet outlives it. Most ids have no such request,
 * and their end must not cost a walk over all ids: there may be tens of thousands. */
static void forget_requests(struct rcm_id *listener)
{
	struct rcm_id *id;

	if (!listener->waiting)
		return;
	list_for_each_entry(id, rcm_ids(listener), node)
		if (id->listener == listener)
			id->listener = NULL;
}

void rcm_drop_cm(struct rcm_id *id)
{
	if (id->cm)
		ib_destroy_cm_id(id->cm);
	id->cm = NULL;
	rcm_drop_listens(id, NULL);
	rcm_leave_listener(id);
}

void rdma_destroy_id(struct rdma_cm_id *rdma_id)
{
	struct rcm_id *id = rcm_of(rdma_id);

	rcm_trace_call(id, "destroy_id");
	rt_work_cancel(&id->resolved);
	rt_timer_disarm(&id->asked);
	if (id->query_id >= 0)
		ib_sa_cancel_query(id->query_id, id->query);
	rcm_drop_cm(id);
	rcm_drop_mcasts(id);
	rdma_restrack_del(rdma_id->device, &id->tracked.res);
	list_del(&id->node);
	list_del(&id->bound_node);
	list_del(&id->gone_node);
	forget_requests(id);
	core_fabric_put(core_fabric_of(id->rt));
	id->id.event_handler = NULL;
	if (id->query_id < 0) /* otherwise the callback of the query frees the id */
		rt_free(id);
}

bool rcm_deliver(struct rcm_id *id, struct rdma_cm_event *event)
{
	trace_rdma_cm_event((struct rt_trace_at){.rt = id->rt, .node = id->node_name}, id->seq_num,
			    trace_cm_event_name(event->event), event->status,
			    &id->id.route.addr.src_addr, &id->id.route.addr.dst_addr);
	if (!id->id.event_handler(&id->id, event))
		return true;
	rdma_destroy_id(&id->id);
	return false;
}

/* --- the device, and owners --- */

void rcm_track(struct rcm_tracked *tracked, const struct rcm_id *id, struct ib_device *device)
{
	tracked->id = id;
	rdma_restrack_add(device, &tracked->res, RDMA_RESTRACK_RDMA_CM_ID, "rdma_cm", 0);
	if (id->pid)
		rdma_restrack_set_owner(&tracked->res, id->pid, id->comm);
}

void rcm_attach(struct rcm_id *id, struct ib_device *device, u32 port_num)
{
	id->id.device = device;
	id->id.port_num = port_num;
	rcm_track(&id->tracked, id, device);
}

void rdma_set_owner(struct rdma_cm_id *rdma_id, pid_t pid, const char *comm)
{
	struct rcm_id *id = rcm_of(rdma_id);

	id->pid = pid;
	strncpy(id->comm, comm, sizeof(id->comm) - 1);
	if (id->tracked.res.valid)
		rdma_restrack_set_owner(&id->tracked.res, pid, comm);
}

void rcm_own(const struct rcm_id *id, struct ib_cm_id *cm)
{
	if (id->pid)
		ib_cm_set_owner(cm, id->pid, id->comm);
}

/* --- options --- */

int rdma_set_reuseaddr(struct rdma_cm_id *rdma_id, int reuse)
{
	struct rcm_id *id = rcm_of(rdma_id);

	if (id->state != RCM_IDLE && reuse)
		return -EINVAL;
	id->reuse = reuse;
	return 0;
}

int rdma_set_afonly(struct rdma_cm_id *rdma_id, int afonly)
{
	struct rcm_id *id = rcm_of(rdma_id);

	if (id->state != RCM_IDLE)
		return -EINVAL;
	id->afonly = afonly;
	return 0;
}

int rdma_set_ack_timeout(struct rdma_cm_id *rdma_id, u8 timeout_enc)
{
	struct rcm_id *id = rcm_of(rdma_id);

	if (rdma_id->qp_type != IB_QPT_RC)
		return -EINVAL;
	id->has_ack_timeout = true;
	id->ack_timeout_enc = timeout_enc & 0x1f;
	return 0;
}

int rdma_set_min_rnr_timer(struct rdma_cm_id *rdma_id, u8 min_rnr_timer)
{
	if (min_rnr_timer > 31 ||
	    (rdma_id->qp_type != IB_QPT_RC && rdma_id->qp_type != IB_QPT_XRC_TGT))
		return -EINVAL;
	rcm_of(rdma_id)->min_rnr_timer_enc = min_rnr_timer;
	return 0;
}

void rdma_set_service_type(struct rdma_cm_id *id, int tos)
{
	rcm_of(id)->service_type = (u8)tos;
}

/* --- attributes of ids and events --- */

void rdma_read_gids(const struct rdma_cm_id *id, union ib_gid *sgid, union ib_gid *dgid)
{
	if (sgid)
		*sgid = id->route.sgid;
	if (dgid)
		*dgid = id->route.dgid;
}

__be64 rdma_get_service_id(const struct rdma_cm_id *id, const struct sockaddr *addr)
{
	struct sockaddr_storage storage;

	return rcm_take_addr(addr, &storage) ? 0 : rcm_service_id(id->ps, &storage);
}

const char *rdma_reject_msg(const struct rdma_cm_id *id, int reason)
{
	return ibcm_reject_msg(reason);
}

bool rdma_is_consumer_reject(const struct rdma_cm_id *id, int reason)
{
	return reason == IB_CM_REJ_CONSUMER_DEFINED;
}

const void *rdma_consumer_reject_data(const struct rdma_cm_id *id,
				      const struct rdma_cm_event *event, u8 *data_len)
{
	bool refused = event->event == RDMA_CM_EVENT_REJECTED &&
		       rdma_is_consumer_reject(id, event->status);

	*data_len = refused ? event->param.conn.private_data_len : 0;
	return refused ? event->param.conn.private_data : NULL;
}

/* --- devices --- */

static int add_device(struct ib_device *device)
{
	ib_set_client_data(device, NULL, NULL);
	return rcm_listen_at_new_device(device);
}

static bool has_to_hear(const struct rcm_id *id, const struct ib_device *device)
{
	return id->id.device == device && id->state != RCM_GONE;
}

/* Report the removal of the device to each id in @gone. An id is removed from the list before its
 * handler is called, or when it is destroyed; a handler may destroy any id. */
static void tell_gone(struct list_head *gone)
{
	struct rdma_cm_event event = {.event = RDMA_CM_EVENT_DEVICE_REMOVAL};

	while (!list_empty(gone)) {
		struct rcm_id *id = list_first_entry(gone, struct rcm_id, gone_node);

		list_del(&id->gone_node);
		rcm_drop_cm(id);
		rcm_drop_mcasts(id);
		id->state = RCM_GONE;
		rcm_deliver(id, &event);
	}
}

static void remove_device(struct ib_device *device, void *client_data)
{
	struct list_head *ids = &core_fabric_of(device->rt)->rcm_ids;
	struct rcm_id *id;
	LIST_HEAD(gone);

	list_for_each_entry(id, ids, node)
		rcm_drop_listens(id, device);
	do { /* again, because a handler may bind an id to the device */
		tell_gone(&gone);
		list_for_each_entry(id, ids, node)
			if (has_to_hear(id, device))
				list_add_tail(&id->gone_node, &gone);
	} while (!list_empty(&gone));
	list_for_each_entry(id, ids, node)
		if (id->id.device == device) {
			rdma_restrack_del(device, &id->tracked.res);
			id->id.device = NULL;
		}
}

static const struct ib_client client = {
	.name = "rdma_cm",
	.add = add_device,
	.remove = remove_device,
};

int rdma_cm_init(struct rt *rt)
{
	return ib_register_client(rt, &client);
}

void rdma_cm_cleanup(struct rt *rt)
{
	struct core_fabric *fabric = core_fabric_of(rt);

	if (!fabric) /* the RDMA CM was not started in this fabric */
		return;
	rdma_cm_publish(rt, false);
	ib_sa_unregister_client(&fabric->rcm_sa_client);
	ib_unregister_client(rt, &client);
}
