/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The CM as a client of every device: its MAD agents and ids, and the operations that src/cm needs. */
#include "core/cm_priv.h"
#include "core/trace.h"

#define MASK_BITS (8 * sizeof(long))

/** struct cm_client - the client data of a device, also before its first id */
struct cm_client {
	struct cm_device *dev;
};

static const struct ib_client cm_ib_client;

mono_t cm_now(const struct cm_id *id)
{
	return rt_now(id->id.device->rt);
}

void cm_id_sync(struct cm_id *id)
{
	id->id.state = (enum ib_cm_state)id->conn.state;
	id->id.lap_state = (enum ib_cm_lap_state)id->conn.lap_state;
	id->id.local_id = cpu_to_be32(id->conn.local_id);
	id->id.remote_id = cpu_to_be32(id->conn.remote_id);
	id->id.service_id = cpu_to_be64(id->conn.service_id);
	id->id.remote_cm_qpn = id->conn.state == CM_IDLE ? 1 : MAX(id->conn.route.qpn, 1);
	id->id.remote_cm_qkey = id->conn.route.qkey;
}

static_assert(IB_CM_SIDR_REQ_RCVD == (int)CM_SIDR_REQ_RCVD, "the states have one order");
static_assert(IB_CM_MRA_LAP_RCVD == (int)CM_MRA_LAP_RCVD, "so have those of LAP");

/* --- MADs --- */

struct cm_agent *cm_agent_of(struct cm_device *dev, u32 port_num)
{
	u32 index = port_num - rdma_start_port(dev->device);

	return index < dev->num_ports ? &dev->agents[index] : NULL;
}

void cm_mad_sent(struct ib_mad_agent *agent, struct ib_mad_send_wc *wc)
{
	rdma_destroy_ah(wc->send_buf->ah, 0);
	ib_free_send_mad(wc->send_buf);
}

/* @qpn: the QP of the peer's CM; 0: QP1, whose Q_Key is well-known */
static int send_mad(struct ib_mad_agent *agent, struct rdma_ah_attr *attr, u16 pkey_index,
		    u32 qpn, u32 qkey, const void *mad)
{
	struct ib_mad_send_buf *buf =
		ib_create_send_mad(agent, qpn ? qpn : 1, pkey_index, 0, IB_MGMT_MAD_HDR,
				   IB_MGMT_MAD_DATA, GFP_ATOMIC, 1);
	int ret;

	if (IS_ERR(buf))
		return (int)PTR_ERR(buf);
	if (qpn)
		ib_set_mad_qkey(buf, qkey);
	memcpy(buf->mad, mad, IB_MGMT_MAD_SIZE);
	buf->ah = rdma_create_ah(agent->qp->pd, attr, 0);
	if (IS_ERR(buf->ah)) {
		ret = (int)PTR_ERR(buf->ah);
		ib_free_send_mad(buf);
		return ret;
	}
	ret = ib_post_send_mad(buf, NULL);
	if (ret) {
		rdma_destroy_ah(buf->ah, 0);
		ib_free_send_mad(buf);
	}
	return ret;
}

static int send(struct cm *cm, const struct cm_route *route, const void *mad)
{
	struct cm_device *dev = cm->owner;
	struct cm_agent *agent = cm_agent_of(dev, route->port);
	struct rdma_ah_attr attr;
	u16 pkey_index;
	int ret;

	if (!agent || !agent->agent ||
	    ib_find_cached_pkey(dev->device, route->port, route->pkey, &pkey_index))
		return -EINVAL;
	ret = cm_route_ah(dev->device, route, &attr);
	return ret ? ret
		   : send_mad(agent->agent, &attr, pkey_index, route->qpn, route->qkey, mad);
}

/* 13.4.8.1: ClassPortInfo is the only attribute that a Get can request */
static void answer_get(struct cm_device *dev, struct ib_mad_agent *agent,
		       struct ib_mad_recv_wc *recv_wc)
{
	struct wire_class_port_info info;
	struct ib_mad mad = *recv_wc->recv_buf.mad;
	struct rdma_ah_attr attr = {0};

	mad.mad_hdr.method = IB_MGMT_METHOD_GET_RESP;
	memset(mad.data, 0, sizeof(mad.data));
	cm_class_port_info(cm_agent_of(dev, agent->port_num), &info);
	if (mad.mad_hdr.attr_id == cpu_to_be16(WIRE_CM_CLASS_PORT_INFO))
		wire_class_port_info_encode(&info, mad.data);
	else
		mad.mad_hdr.status =
			cpu_to_be16(IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD_ATTRIB);
	if (!ib_init_ah_attr_from_wc(dev->device, agent->port_num, recv_wc->wc,
				     recv_wc->recv_buf.grh, &attr))
		send_mad(agent, &attr, recv_wc->wc->pkey_index, 0, 0, &mad);
}

void cm_mad_received(struct ib_mad_agent *agent, struct ib_mad_send_buf *send_buf,
		     struct ib_mad_recv_wc *recv_wc)
{
	struct cm_device *dev = agent->context;
	struct cm_route route;

	if (recv_wc->recv_buf.mad->mad_hdr.method == IB_MGMT_METHOD_GET) {
		answer_get(dev, agent, recv_wc);
	} else {
		recv_wc->wc->port_num = agent->port_num;
		cm_route_of_wc(dev->device, recv_wc->wc, recv_wc->recv_buf.grh, &route);
		if (agent->qp->qp_num != 1)
			route.own_qpn = agent->qp->qp_num;
		/* a program may be the CM of somebody else, such as a virtual machine */
		if (!cm_wants(&dev->cm, recv_wc->recv_buf.mad, &route) &&
		    ib_pass_on_recv_mad(agent, recv_wc))
			return;
		cm_receive(&dev->cm, recv_wc->recv_buf.mad, &route,
			   rt_now(dev->device->rt));
	}
	ib_free_recv_mad(recv_wc);
}

static int open_port(struct cm_device *dev, u32 port_num)
{
	struct ib_mad_reg_req req = {
		.mgmt_class = IB_MGMT_CLASS_CM,
		.mgmt_class_version = IB_CM_CLASS_VERSION,
	};
	struct ib_mad_agent *agent;

	req.method_mask[0] = 1ul << IB_MGMT_METHOD_SEND | 1ul << IB_MGMT_METHOD_GET;
	agent = ib_register_mad_agent_(dev->device, port_num, IB_QPT_GSI, &req, 0,
				       cm_mad_sent, cm_mad_received, dev, IB_MAD_SHARES, "cm");
	if (IS_ERR(agent))
		return (int)PTR_ERR(agent);
	cm_agent_of(dev, port_num)->agent = agent;
	return 0;
}

/* --- ids --- */

static void on_timer(struct rt_timer *timer)
{
	struct cm_id *id = container_of(timer, struct cm_id, timer);

	cm_expire(&id->conn, rt_now(timer->rt));
}

static void arm(struct cm_conn *conn, mono_t when)
{
	struct cm_id *id = cm_id_of_conn(conn);

	if (when.ns == MONO_NEVER.ns)
		rt_timer_disarm(&id->timer);
	else
		rt_timer_arm(&id->timer, when);
}

static void on_established(struct rt_work *work)
{
	struct cm_id *id = container_of(work, struct cm_id, established);

	if (id->dev)
		cm_establish(&id->conn, cm_now(id));
}

static struct cm_id *open_id(struct cm_device *dev, ib_cm_handler handler, void *context,
			     const char *client)
{
	struct cm_id *id = rt_zalloc(sizeof(*id));

	if (!id)
		return NULL;
	id->dev = dev;
	id->id.cm_handler = handler;
	id->id.context = context;
	id->id.device = dev->device;
	id->id.remote_cm_qpn = 1;
	rt_timer_init(dev->device->rt, &id->timer, on_timer);
	rt_work_init(&id->established, on_established);
	cm_conn_open(&dev->cm, &id->conn);
	cm_id_sync(id);
	rdma_restrack_add(dev->device, &id->res, RDMA_RESTRACK_CM_ID, client, 0);
	return id;
}

static struct cm_conn *accept_request(struct cm *cm, struct cm_conn *listener)
{
	struct cm_id *from = cm_id_of_conn(listener);
	struct cm_id *id =
		open_id(cm->owner, from->id.cm_handler, from->id.context, from->res.comm);

	if (!id)
		return NULL;
	if (from->res.user)
		ib_cm_set_owner(&id->id, from->res.pid, from->res.comm);
	return &id->conn;
}

/* An orphan has finished, or the device is being removed while clients still have ids. */
static void gone(struct cm_conn *conn)
{
	struct cm_id *id = cm_id_of_conn(conn);

	rt_timer_disarm(&id->timer);
	rt_work_cancel(&id->established);
	cm_lookup_cancel(id);
	id->dev = NULL;
	if (!conn->orphan)
		rdma_restrack_del(id->id.device, &id->res);
	else
		rt_free(id);
}

static const struct cm_ops ops = {
	.send = send,
	.arm = arm,
	.accept = accept_request,
	.gone = gone,
	.event = cm_id_event,
	.find_port = cm_find_port,
	.redirect = cm_id_redirect,
	.trace = cm_id_trace,
};

/* --- devices --- */

static void close_device(struct cm_device *dev)
{
	cm_shut(&dev->cm);
	for (u32 i = 0; i < dev->num_ports; i++)
		if (dev->agents[i].agent)
			ib_unregister_mad_agent(dev->agents[i].agent);
	rt_free(dev);
}

static struct cm_device *open_device(struct ib_device *device)
{
	u32 first = rdma_start_port(device), ports = rdma_end_port(device) - first + 1;
	struct cm_device *dev = rt_zalloc(sizeof(*dev) + ports * sizeof(dev->agents[0]));
	struct rt *rt = device->rt;
	int ret = 0;

	if (!dev)
		return ERR_PTR(-ENOMEM);
	dev->device = device;
	dev->num_ports = ports;
	dev->ack_delay_enc = device->attrs.local_ca_ack_delay;
	dev->cm.owner = dev;
	dev->cm.traced = &rt_trace(rt)->on[RT_TRACE_CM];
	cm_init(&dev->cm, &ops, be64_to_cpu(device->node_guid),
		(u64)rt_random(rt) << 32 | rt_random(rt));
	for (u32 i = 0; i < ports && !ret; i++)
		ret = open_port(dev, first + i);
	if (!ret)
		return dev;
	close_device(dev);
	return ERR_PTR(ret);
}

struct cm_device *cm_device_get(struct ib_device *device)
{
	struct cm_client *client = ib_get_client_data(device, &cm_ib_client);

	if (!client)
		return ERR_PTR(-ENODEV);
	if (!client->dev) {
		struct cm_device *dev = open_device(device);

		if (IS_ERR(dev))
			return dev;
		client->dev = dev;
	}
	return client->dev;
}

static int add_device(struct ib_device *device)
{
	struct cm_client *client = rt_zalloc(sizeof(*client));

	if (!client)
		return -ENOMEM;
	ib_set_client_data(device, &cm_ib_client, client);
	return 0;
}

static void remove_device(struct ib_device *device, void *client_data)
{
	struct cm_client *client = client_data;

	if (!client)
		return;
	ib_set_client_data(device, &cm_ib_client, NULL);
	if (client->dev)
		close_device(client->dev);
	rt_free(client);
}

static const struct ib_client cm_ib_client = {
	.name = "cm",
	.add = add_device,
	.remove = remove_device,
};

int ib_cm_init(struct rt *rt)
{
	return ib_register_client(rt, &cm_ib_client);
}

void ib_cm_cleanup(struct rt *rt)
{
	struct core_fabric *fabric = core_fabric_of(rt);

	if (!fabric) /* the CM was not started in this fabric */
		return;
	ib_sa_unregister_client(&fabric->cm_sa_client);
	ib_unregister_client(rt, &cm_ib_client);
}

/* --- the clients' side --- */

struct ib_cm_id *ib_create_cm_id_(struct ib_device *device, ib_cm_handler cm_handler,
				  void *context, const char *client)
{
	struct cm_device *dev = cm_device_get(device);
	struct cm_id *id;

	if (IS_ERR(dev))
		return (void *)dev;
	id = open_id(dev, cm_handler, context, client);
	return id ? &id->id : ERR_PTR(-ENOMEM);
}

void ib_cm_set_owner(struct ib_cm_id *cm_id, pid_t pid, const char *comm)
{
	rdma_restrack_set_owner(&cm_id_of(cm_id)->res, pid, comm);
}

void ib_destroy_cm_id(struct ib_cm_id *cm_id)
{
	struct cm_id *id = cm_id_of(cm_id);

	if (!id->dev) { /* all else was freed when the device was removed */
		rt_free(id);
		return;
	}
	rt_work_cancel(&id->established);
	rdma_restrack_del(cm_id->device, &id->res);
	cm_conn_close(&id->conn, cm_now(id));
}

int ib_cm_listen(struct ib_cm_id *cm_id, __be64 service_id, __be64 service_mask)
{
	struct cm_id *id = cm_id_of(cm_id);
	u64 mask = service_mask ? be64_to_cpu(service_mask) : CM_SERVICE_MASK_EXACT;
	u64 service = be64_to_cpu(service_id);
	int ret;

	if (!id->dev)
		return -ENODEV;
	if (service_id == IB_CM_ASSIGN_SERVICE_ID) {
		service = cm_assign_service_id(&id->dev->cm);
		mask = CM_SERVICE_MASK_EXACT;
	} else if ((service_id & IB_SERVICE_ID_AGN_MASK) == IB_CM_ASSIGN_SERVICE_ID) {
		return -EINVAL;
	}
	ret = cm_listen(&id->conn, service, mask);
	cm_id_sync(id);
	return ret;
}
