/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A connection by the communication manager, and a message over it. Each adapter listens for
 * one service id, and prints what it is sent. With the parameter `dguid`, add() connects to
 * the port of that GUID, sends it `text`, and disconnects.
 */
#include <linux/completion.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <rdma/ib_cm.h>

#define SERVICE_ID   cpu_to_be64(0x0000000053544942ull)
#define TEXT_BYTES   64
#define TIMEOUT_MS   5000
#define CM_TIMEOUT   17 /* 4.096 us * 2^17: half a second */
#define CQ_ENTRIES   64
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

/** struct adapter - what each one has; on its CQ are the completions of all connections */
struct adapter {
	struct ib_device *device;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_cm_id *listener;
	struct list_head connections;
};

/** struct connection - one end; its buffer holds one message */
struct connection {
	struct list_head node;
	struct adapter *adapter;
	struct ib_cm_id *id;
	struct ib_qp *qp;
	struct ib_cqe cqe;
	char buffer[TEXT_BYTES];
	struct sa_path_rec path; /* of who connects */
	struct completion over;	 /* a step of who connects */
	int status;
};

/* --- the queue pair --- */

static void on_completion(struct ib_cq *cq, struct ib_wc *wc)
{
	struct connection *c = container_of(wc->wr_cqe, struct connection, cqe);

	if (wc->status == IB_WC_SUCCESS && wc->opcode == IB_WC_RECV)
		pr_info("received '%.*s'\n", (int)wc->byte_len, c->buffer);
	else if (wc->status != IB_WC_SUCCESS && wc->status != IB_WC_WR_FLUSH_ERR)
		pr_err("%s\n", ib_wc_status_msg(wc->status));
	c->status = wc->status ? -EIO : 0;
	complete(&c->over);
}

static struct connection *create_connection(struct adapter *a)
{
	struct connection *c = kzalloc(sizeof(*c), GFP_KERNEL);
	struct ib_qp_init_attr init = {
		.send_cq = a->cq, .recv_cq = a->cq, .qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_ALL_WR,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};

	if (!c)
		return NULL;
	c->qp = ib_create_qp(a->pd, &init);
	if (IS_ERR(c->qp)) {
		kfree(c);
		return NULL;
	}
	c->adapter = a;
	c->cqe.done = on_completion;
	init_completion(&c->over);
	list_add_tail(&c->node, &a->connections);
	return c;
}

/* but for its id */
static void destroy_connection(struct connection *c)
{
	list_del(&c->node);
	ib_destroy_qp(c->qp);
	kfree(c);
}

static int move_qp(struct connection *c, enum ib_qp_state state)
{
	struct ib_qp_attr attr = {.qp_state = state};
	int mask, ret = ib_cm_init_qp_attr(c->id, &attr, &mask);

	if (state == IB_QPS_RTR) /* who accepts has not told the CM yet */
		attr.rq_psn = STARTING_PSN;
	return ret ? ret : ib_modify_qp(c->qp, &attr, mask);
}

static int post_recv(struct connection *c)
{
	struct ib_sge sge = {(uintptr_t)c->buffer, sizeof(c->buffer), c->adapter->pd->local_dma_lkey};
	struct ib_recv_wr wr = {.wr_cqe = &c->cqe, .sg_list = &sge, .num_sge = 1};

	return ib_post_recv(c->qp, &wr, NULL);
}

static int post_send(struct connection *c)
{
	struct ib_sge sge = {(uintptr_t)c->buffer, 0, c->adapter->pd->local_dma_lkey};
	struct ib_send_wr wr = {
		.wr_cqe = &c->cqe, .sg_list = &sge, .num_sge = 1, .opcode = IB_WR_SEND};

	sge.length = (u32)snprintf(c->buffer, sizeof(c->buffer), "%.*s", TEXT_BYTES - 1, text);
	return ib_post_send(c->qp, &wr, NULL);
}

/* --- who listens --- */

static int accept_connection(struct ib_cm_id *id, const struct ib_cm_req_event_param *req)
{
	struct connection *c = create_connection(req->listen_id->context);
	struct ib_cm_rep_param rep = {.starting_psn = STARTING_PSN,
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
	rep.qp_num = c->qp->qp_num;
	if (move_qp(c, IB_QPS_INIT) || move_qp(c, IB_QPS_RTR) || post_recv(c) ||
	    ib_send_cm_rep(id, &rep)) {
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

static int on_reply(struct connection *c)
{
	int ret = move_qp(c, IB_QPS_RTR);

	if (!ret)
		ret = move_qp(c, IB_QPS_RTS);
	if (!ret)
		ret = ib_send_cm_rtu(c->id, NULL, 0);
	return ret ? ret : post_send(c); /* on_completion() goes on */
}

static int on_connected(struct ib_cm_id *id, const struct ib_cm_event *event)
{
	struct connection *c = id->context;

	if (event->event == IB_CM_REP_RECEIVED)
		c->status = on_reply(c);
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
				      .qp_num = c->qp->qp_num,
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
		ret = move_qp(c, IB_QPS_INIT);
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
	if (!IS_ERR_OR_NULL(a->cq))
		ib_free_cq(a->cq);
	if (!IS_ERR_OR_NULL(a->pd))
		ib_dealloc_pd(a->pd);
	kfree(a);
}

static int open_adapter(struct adapter *a)
{
	a->pd = ib_alloc_pd(a->device, 0);
	if (IS_ERR(a->pd))
		return PTR_ERR(a->pd);
	a->cq = ib_alloc_cq(a->device, a, CQ_ENTRIES, 0, IB_POLL_SOFTIRQ);
	if (IS_ERR(a->cq))
		return PTR_ERR(a->cq);
	a->listener = ib_create_cm_id(a->device, on_served, a);
	if (IS_ERR(a->listener))
		return PTR_ERR(a->listener);
	return ib_cm_listen(a->listener, SERVICE_ID, 0);
}

static int cm_add(struct ib_device *device)
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

static void cm_remove(struct ib_device *device, void *client_data)
{
	close_adapter(client_data);
}

static struct ib_client client = {.name = "cm_message", .add = cm_add, .remove = cm_remove};

static int __init cm_init(void)
{
	int ret;

	ib_sa_register_client(&sa_client);
	ret = ib_register_client(&client);
	if (ret)
		ib_sa_unregister_client(&sa_client);
	return ret;
}

static void __exit cm_exit(void)
{
	ib_unregister_client(&client);
	ib_sa_unregister_client(&sa_client);
}

module_init(cm_init);
module_exit(cm_exit);
MODULE_LICENSE("Dual BSD/GPL");
