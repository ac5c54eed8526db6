/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Reliable datagrams: each adapter has one RD QP, which receives from whomever its EE contexts are
 * connected with, and prints what it is sent. The communication manager connects EE contexts as it
 * connects RC QPs; its private data says which RD QP there is. With the parameter `dguid`, add()
 * connects an EE context with the port of that GUID, sends `text`, and disconnects.
 */
#include <linux/completion.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <rdma/ib_cm.h>
#include <rdma/ib_rd.h>

#define SERVICE_ID   cpu_to_be64(0x0000000053544952ull)
#define TEXT_BYTES   64
#define TIMEOUT_MS   5000
#define CM_TIMEOUT   17 /* 4.096 us * 2^17: half a second */
#define CQ_ENTRIES   64
#define RECEIVES     8
#define QKEY	     0x5344
#define RETRIES	     7
#define STARTING_PSN 0x123456 /* of what the peer sends */

static unsigned long long dguid;
module_param(dguid, ullong, 0444);
MODULE_PARM_DESC(dguid, "GUID of the port to send a message to; 0: none");
static char *text = "hello";
module_param(text, charp, 0444);
MODULE_PARM_DESC(text, "the message");

static struct ib_client client;
static struct ib_sa_client sa_client;

/** struct receive - a buffer of the RD QP */
struct receive {
	struct ib_cqe cqe;
	struct adapter *adapter;
	char text[TEXT_BYTES];
};

/** struct adapter - what each one has: the RD QP sends and receives by all connections */
struct adapter {
	struct ib_device *device;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_rdd *rdd;
	struct ib_qp *qp;
	struct receive receive[RECEIVES];
	struct ib_cm_id *listener;
	struct list_head connections;
};

/** struct peer - the private data of REQ and REP */
struct peer {
	__be32 qpn;
};

/** struct connection - an EE context; its buffer holds one message */
struct connection {
	struct list_head node;
	struct adapter *adapter;
	struct ib_cm_id *id;
	struct ib_eec *eec;
	struct ib_cqe cqe;
	u32 peer_qpn;
	char buffer[TEXT_BYTES];
	struct sa_path_rec path; /* of who connects */
	struct completion over;	 /* a step of who connects */
	int status;
};

/* --- the RD QP --- */

static void on_received(struct ib_cq *cq, struct ib_wc *wc);

static int post_recv(struct receive *r)
{
	struct ib_sge sge = {(uintptr_t)r->text, sizeof(r->text), r->adapter->pd->local_dma_lkey};
	struct ib_recv_wr wr = {.wr_cqe = &r->cqe, .sg_list = &sge, .num_sge = 1};

	return ib_post_recv(r->adapter->qp, &wr, NULL);
}

static void on_received(struct ib_cq *cq, struct ib_wc *wc)
{
	struct receive *r = container_of(wc->wr_cqe, struct receive, cqe);

	if (wc->status == IB_WC_WR_FLUSH_ERR)
		return;
	if (wc->status == IB_WC_SUCCESS)
		pr_info("received '%.*s' from QP 0x%x of lid %u\n", (int)wc->byte_len, r->text,
			wc->src_qp, wc->slid);
	else
		pr_err("%s\n", ib_wc_status_msg(wc->status));
	post_recv(r);
}

static int open_qp(struct adapter *a)
{
	struct ib_qp_attr attr = {.qp_state = IB_QPS_INIT, .qkey = QKEY};
	int ret = ib_modify_qp(a->qp, &attr, IB_QP_STATE | IB_QP_QKEY | IB_QP_ACCESS_FLAGS);

	for (attr.qp_state = IB_QPS_RTR; !ret && attr.qp_state <= IB_QPS_RTS; attr.qp_state++)
		ret = ib_modify_qp(a->qp, &attr, IB_QP_STATE);
	for (int i = 0; !ret && i < RECEIVES; i++) {
		a->receive[i].adapter = a;
		a->receive[i].cqe.done = on_received;
		ret = post_recv(&a->receive[i]);
	}
	return ret;
}

static void on_sent(struct ib_cq *cq, struct ib_wc *wc)
{
	struct connection *c = container_of(wc->wr_cqe, struct connection, cqe);

	if (wc->status != IB_WC_SUCCESS)
		pr_err("%s\n", ib_wc_status_msg(wc->status));
	c->status = wc->status ? -EIO : 0;
	complete(&c->over);
}

static int post_send(struct connection *c)
{
	struct adapter *a = c->adapter;
	struct ib_sge sge = {(uintptr_t)c->buffer, 0, a->pd->local_dma_lkey};
	struct ib_rd_wr wr = {
		.atomic.wr = {.wr_cqe = &c->cqe, .sg_list = &sge, .num_sge = 1, .opcode = IB_WR_SEND},
		.eec = c->eec,
		.remote_qpn = c->peer_qpn,
		.remote_qkey = QKEY,
	};

	sge.length = (u32)snprintf(c->buffer, sizeof(c->buffer), "%.*s", TEXT_BYTES - 1, text);
	return ib_post_send(a->qp, &wr.atomic.wr, NULL);
}

/* --- EE contexts --- */

static struct connection *create_connection(struct adapter *a)
{
	struct connection *c = kzalloc(sizeof(*c), GFP_KERNEL);

	if (!c)
		return NULL;
	c->eec = ib_create_eec(a->rdd, NULL, NULL);
	if (IS_ERR(c->eec)) {
		kfree(c);
		return NULL;
	}
	c->adapter = a;
	c->cqe.done = on_sent;
	init_completion(&c->over);
	list_add_tail(&c->node, &a->connections);
	return c;
}

/* but for its id */
static void destroy_connection(struct connection *c)
{
	list_del(&c->node);
	ib_destroy_eec(c->eec);
	kfree(c);
}

/* The CM's attributes are those of an RC QP. Access rights belong to RD QPs. */
static int move_eec(struct connection *c, enum ib_qp_state state)
{
	struct ib_qp_attr attr = {.qp_state = state};
	int mask, ret = ib_cm_init_qp_attr(c->id, &attr, &mask);

	if (state == IB_QPS_RTR) /* who accepts has not told the CM yet */
		attr.rq_psn = STARTING_PSN;
	return ret ? ret : ib_modify_eec(c->eec, &attr, mask & ~(IB_QP_ACCESS_FLAGS | IB_QP_PATH_MIG_STATE));
}

/* --- who listens --- */

static int accept_connection(struct ib_cm_id *id, const struct ib_cm_req_event_param *req)
{
	struct connection *c = create_connection(req->listen_id->context);
	struct peer us = {};
	struct ib_cm_rep_param rep = {.private_data = &us,
				      .private_data_len = sizeof(us),
				      .starting_psn = STARTING_PSN,
				      .responder_resources = req->responder_resources,
				      .initiator_depth = req->initiator_depth,
				      .flow_control = 1,
				      .rnr_retry_count = RETRIES};

	if (!c) {
		ib_send_cm_rej(id, IB_CM_REJ_NO_RESOURCES, NULL, 0, NULL, 0);
		return -ENOMEM;
	}
	c->id = id;
	id->context = c;
	us.qpn = cpu_to_be32(c->adapter->qp->qp_num);
	rep.qp_num = c->eec->eec_num;
	if (move_eec(c, IB_QPS_INIT) || move_eec(c, IB_QPS_RTR) || ib_send_cm_rep(id, &rep)) {
		destroy_connection(c);
		return -EINVAL; /* which destroys the id: the peer is told */
	}
	return 0;
}

/* Return: 0; other: the id is destroyed */
static int on_served(struct ib_cm_id *id, const struct ib_cm_event *event)
{
	switch (event->event) {
	case IB_CM_REQ_RECEIVED:
		return accept_connection(id, &event->param.req_rcvd);
	case IB_CM_RTU_RECEIVED:
		return 0; /* to receive, RTR is enough */
	case IB_CM_DREQ_RECEIVED:
		ib_send_cm_drep(id, NULL, 0);
		return 0; /* until the time-wait is over: packets may still be on their way */
	case IB_CM_TIMEWAIT_EXIT:
	case IB_CM_REJ_RECEIVED:
	case IB_CM_REP_ERROR:
		destroy_connection(id->context);
		return 1;
	default:
		return 0;
	}
}

/* --- who connects --- */

static int on_reply(struct connection *c, const struct peer *peer)
{
	int ret = move_eec(c, IB_QPS_RTR);

	c->peer_qpn = be32_to_cpu(peer->qpn);
	if (!ret)
		ret = move_eec(c, IB_QPS_RTS);
	if (!ret)
		ret = ib_send_cm_rtu(c->id, NULL, 0);
	return ret ? ret : post_send(c); /* on_sent() goes on */
}

static int on_connected(struct ib_cm_id *id, const struct ib_cm_event *event)
{
	struct connection *c = id->context;

	if (event->event == IB_CM_REP_RECEIVED)
		c->status = on_reply(c, event->private_data);
	else if (event->event == IB_CM_REJ_RECEIVED || event->event == IB_CM_REQ_ERROR)
		c->status = -ECONNREFUSED;
	else
		return 0;
	if (event->event == IB_CM_REJ_RECEIVED)
		pr_err("refused: %s\n", ibcm_reject_msg(event->param.rej_rcvd.reason));
	if (c->status)
		complete(&c->over);
	return 0;
}

static void on_path(int status, struct sa_path_rec *resp, unsigned int num_prs, void *context)
{
	struct connection *c = context;

	c->status = status;
	if (!status)
		c->path = *resp;
	complete(&c->over);
}

/* Return: 0 and c->path; -errno */
static int find_path(struct connection *c)
{
	struct ib_device *device = c->adapter->device;
	u32 port = rdma_start_port(device);
	struct sa_path_rec rec = {.numb_path = 1, .reversible = 1};
	int ret = ib_query_gid(device, port, 0, &rec.sgid);

	if (ret)
		return ret;
	rec.dgid.global.subnet_prefix = rec.sgid.global.subnet_prefix;
	rec.dgid.global.interface_id = cpu_to_be64(dguid);
	ret = ib_sa_path_rec_get(&sa_client, device, port, &rec,
				 IB_SA_PATH_REC_SGID | IB_SA_PATH_REC_DGID | IB_SA_PATH_REC_NUMB_PATH |
					 IB_SA_PATH_REC_REVERSIBLE,
				 TIMEOUT_MS, GFP_KERNEL, on_path, c, NULL);
	if (ret < 0)
		return ret;
	wait_for_completion(&c->over);
	return c->status;
}

static int connect_and_send(struct connection *c)
{
	struct ib_cm_req_param req = {.primary_path = &c->path,
				      .service_id = SERVICE_ID,
				      .qp_num = c->eec->eec_num,
				      .qp_type = IB_QPT_RC,
				      .starting_psn = STARTING_PSN,
				      .responder_resources = 1,
				      .initiator_depth = 1,
				      .remote_cm_response_timeout = CM_TIMEOUT,
				      .local_cm_response_timeout = CM_TIMEOUT,
				      .flow_control = 1,
				      .retry_count = RETRIES,
				      .rnr_retry_count = RETRIES,
				      .max_cm_retries = RETRIES};
	int ret = find_path(c);

	if (ret)
		return ret;
	c->id = ib_create_cm_id(c->adapter->device, on_connected, c);
	if (IS_ERR(c->id))
		return PTR_ERR(c->id);
	ret = ib_send_cm_req(c->id, &req);
	if (!ret)
		ret = move_eec(c, IB_QPS_INIT);
	if (!ret) {
		wait_for_completion(&c->over);
		ret = c->status;
	}
	ib_destroy_cm_id(c->id); /* which disconnects */
	return ret;
}

static void send_message(struct adapter *a)
{
	struct connection *c = create_connection(a);
	int ret = c ? connect_and_send(c) : -ENOMEM;

	if (ret)
		pr_err("no message to 0x%llx: error %d\n", dguid, ret);
	else
		pr_info("sent '%s' to 0x%llx\n", text, dguid);
	if (c)
		destroy_connection(c);
}

/* --- adapters --- */

static void close_adapter(struct adapter *a)
{
	if (!IS_ERR_OR_NULL(a->listener))
		ib_destroy_cm_id(a->listener);
	while (!list_empty(&a->connections)) {
		struct connection *c = list_first_entry(&a->connections, struct connection, node);

		ib_destroy_cm_id(c->id);
		destroy_connection(c);
	}
	if (!IS_ERR_OR_NULL(a->qp))
		ib_destroy_qp(a->qp);
	if (!IS_ERR_OR_NULL(a->rdd))
		ib_dealloc_rdd(a->rdd);
	if (!IS_ERR_OR_NULL(a->cq))
		ib_free_cq(a->cq);
	if (!IS_ERR_OR_NULL(a->pd))
		ib_dealloc_pd(a->pd);
	kfree(a);
}

static int open_adapter(struct adapter *a)
{
	struct ib_qp_init_attr init = {
		.qp_type = IB_QPT_RD,
		.sq_sig_type = IB_SIGNAL_ALL_WR,
		.cap = {.max_send_wr = 4, .max_recv_wr = RECEIVES, .max_send_sge = 1, .max_recv_sge = 1}};
	int ret;

	a->pd = ib_alloc_pd(a->device, 0);
	if (IS_ERR(a->pd))
		return PTR_ERR(a->pd);
	a->cq = ib_alloc_cq(a->device, a, CQ_ENTRIES, 0, IB_POLL_SOFTIRQ);
	if (IS_ERR(a->cq))
		return PTR_ERR(a->cq);
	a->rdd = ib_alloc_rdd(a->device);
	if (IS_ERR(a->rdd))
		return PTR_ERR(a->rdd);
	init.rdd = a->rdd;
	init.send_cq = init.recv_cq = a->cq;
	a->qp = ib_create_qp(a->pd, &init);
	if (IS_ERR(a->qp))
		return PTR_ERR(a->qp);
	ret = open_qp(a);
	if (ret)
		return ret;
	a->listener = ib_create_cm_id(a->device, on_served, a);
	if (IS_ERR(a->listener))
		return PTR_ERR(a->listener);
	return ib_cm_listen(a->listener, SERVICE_ID, 0);
}

static int rd_add(struct ib_device *device)
{
	struct adapter *a = kzalloc(sizeof(*a), GFP_KERNEL);
	int ret;

	if (!a)
		return -ENOMEM;
	a->device = device;
	INIT_LIST_HEAD(&a->connections);
	ret = open_adapter(a);
	if (ret) {
		close_adapter(a);
		return ret;
	}
	ib_set_client_data(device, &client, a);
	if (dguid)
		send_message(a);
	return 0;
}

static void rd_remove(struct ib_device *device, void *client_data)
{
	close_adapter(client_data);
}

static struct ib_client client = {.name = "rd_message", .add = rd_add, .remove = rd_remove};

static int __init rd_init(void)
{
	int ret;

	ib_sa_register_client(&sa_client);
	ret = ib_register_client(&client);
	if (ret)
		ib_sa_unregister_client(&sa_client);
	return ret;
}

static void __exit rd_exit(void)
{
	ib_unregister_client(&client);
	ib_sa_unregister_client(&sa_client);
}

module_init(rd_init);
module_exit(rd_exit);
MODULE_LICENSE("Dual BSD/GPL");
