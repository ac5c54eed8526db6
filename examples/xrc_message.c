/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Extended reliable connections: each adapter has two shared receive queues, and prints what comes
 * to them. Whoever connects reaches both by the one connection; the private data of the answer
 * says their numbers. With the parameter `server`, an address, init() connects, sends `text` to
 * each queue that the server names, and disconnects. The RDMA CM makes the connections, in the manner
 * of rdma-core's rdma_xserver and rdma_xclient, which know one queue: each may be the other end. The QPs are the ids' (rdma_create_qp()).
 */
#include <arpa/inet.h>
#include <linux/completion.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <rdma/ib_xrc.h>
#include <rdma/rdma_cm.h>

#define QUEUES	   2
#define RECEIVES   4 /* of each queue */
#define TEXT_BYTES 16
#define TIMEOUT_MS 5000
#define RETRIES	   7

static char *server = "";
module_param(server, charp, 0444);
MODULE_PARM_DESC(server, "IPv4 address to send a message to; empty: none");
static char *text = "hello";
module_param(text, charp, 0444);
MODULE_PARM_DESC(text, "the message, of at most 15 bytes");
static int port = 7471;
module_param(port, int, 0444);
MODULE_PARM_DESC(port, "of the service");

static struct ib_client client;
static struct rdma_cm_id *listener;
static LIST_HEAD(served);

/** struct receive - a buffer of a queue */
struct receive {
	struct ib_cqe cqe;
	struct ib_pd *pd;
	struct ib_srq *srq;
	char text[TEXT_BYTES];
};

/** struct adapter - what receives, whichever connection a message comes by */
struct adapter {
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_xrcd *xrcd;
	struct ib_srq *srq[QUEUES];
	struct receive receive[QUEUES][RECEIVES];
};

/** struct answer - the private data that accepts a connection; 0: no queue */
struct answer {
	__be32 srqn[QUEUES];
};

/** struct target - our end of a connection that somebody else made */
struct target {
	struct list_head node; /* in served */
	struct rdma_cm_id *id;
};

/** struct sender - who connects */
struct sender {
	struct rdma_cm_id *id;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_cqe cqe;
	struct answer answer;
	struct completion over; /* a step */
	int status;
	char buffer[TEXT_BYTES];
};

/* --- queues --- */

static int post_recv(struct receive *r)
{
	struct ib_sge sge = {(uintptr_t)r->text, sizeof(r->text), r->pd->local_dma_lkey};
	struct ib_recv_wr wr = {.wr_cqe = &r->cqe, .sg_list = &sge, .num_sge = 1};

	return ib_post_srq_recv(r->srq, &wr, NULL);
}

static void on_received(struct ib_cq *cq, struct ib_wc *wc)
{
	struct receive *r = container_of(wc->wr_cqe, struct receive, cqe);

	if (wc->status == IB_WC_SUCCESS)
		pr_info("SRQ 0x%x received %u bytes '%.*s' by QP 0x%x\n", r->srq->srq_num, wc->byte_len,
			(int)wc->byte_len, r->text, wc->qp->qp_num);
	else
		pr_err("SRQ 0x%x: %s\n", r->srq->srq_num, ib_wc_status_msg(wc->status));
	post_recv(r);
}

static int open_queue(struct adapter *a, int n)
{
	struct ib_srq_init_attr init = {
		.attr = {.max_wr = RECEIVES, .max_sge = 1}, .xrcd = a->xrcd, .cq = a->cq};
	int ret = 0;

	a->srq[n] = ib_create_srq(a->pd, &init);
	if (IS_ERR(a->srq[n]))
		return PTR_ERR(a->srq[n]);
	for (int i = 0; !ret && i < RECEIVES; i++) {
		struct receive *r = &a->receive[n][i];

		r->cqe.done = on_received;
		r->pd = a->pd;
		r->srq = a->srq[n];
		ret = post_recv(r);
	}
	return ret;
}

/* --- who listens --- */

static struct target *create_target(struct rdma_cm_id *id, struct ib_xrcd *xrcd)
{
	struct ib_qp_init_attr init = {.qp_type = IB_QPT_XRC_TGT, .xrcd = xrcd};
	struct target *t = kzalloc(sizeof(*t), GFP_KERNEL);

	if (!t)
		return NULL;
	t->id = id;
	if (rdma_create_qp(id, NULL, &init)) {
		kfree(t);
		return NULL;
	}
	list_add_tail(&t->node, &served);
	return t;
}

/* but for its id */
static void destroy_target(struct target *t)
{
	list_del(&t->node);
	rdma_destroy_qp(t->id);
	kfree(t);
}

static int accept_connection(struct rdma_cm_id *id, const struct rdma_conn_param *peer)
{
	const struct adapter *a = ib_get_client_data(id->device, &client);
	struct target *t = create_target(id, a->xrcd);
	struct answer answer;
	struct rdma_conn_param param = {.private_data = &answer,
					.private_data_len = sizeof(answer),
					.responder_resources = peer->responder_resources,
					.initiator_depth = peer->initiator_depth,
					.srq = 1};
	int ret = t ? 0 : -ENOMEM;

	for (int i = 0; i < QUEUES; i++)
		answer.srqn[i] = cpu_to_be32(a->srq[i]->srq_num);
	if (!ret) {
		id->context = t;
		ret = rdma_accept(id, &param);
	}
	if (ret && t)
		destroy_target(t);
	return ret; /* other than 0 destroys the id: the peer is told */
}

static int on_served(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	switch (event->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		return accept_connection(id, &event->param.conn);
	case RDMA_CM_EVENT_DISCONNECTED:
		rdma_disconnect(id);
		return 0; /* until the time-wait is over: packets may still be on their way */
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_REJECTED:
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		if (id != listener)
			destroy_target(id->context);
		return id != listener;
	default:
		return 0;
	}
}

static int start_listening(void)
{
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	int ret;

	listener = rdma_create_id(&init_net, on_served, NULL, RDMA_PS_IB, IB_QPT_XRC_TGT);
	if (IS_ERR(listener))
		return PTR_ERR(listener);
	ret = rdma_bind_addr(listener, (struct sockaddr *)&any);
	if (!ret)
		ret = rdma_listen(listener, 0);
	if (ret)
		rdma_destroy_id(listener);
	return ret;
}

static void stop_listening(void)
{
	rdma_destroy_id(listener);
	while (!list_empty(&served)) {
		struct target *t = list_first_entry(&served, struct target, node);
		struct rdma_cm_id *id = t->id;

		destroy_target(t);
		rdma_destroy_id(id);
	}
}

/* --- who connects --- */

static void on_sent(struct ib_cq *cq, struct ib_wc *wc)
{
	struct sender *s = container_of(wc->wr_cqe, struct sender, cqe);

	if (wc->status != IB_WC_SUCCESS)
		pr_err("%s\n", ib_wc_status_msg(wc->status));
	s->status = wc->status ? -EIO : 0;
	complete(&s->over);
}

/* news of the connection: each ends a step */
static int on_news(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct sender *s = id->context;

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		s->status = 0;
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		s->answer = *(const struct answer *)event->param.conn.private_data;
		s->status = 0;
		break;
	case RDMA_CM_EVENT_REJECTED:
		s->status = -ECONNREFUSED;
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_CONNECT_ERROR:
		s->status = event->status ? event->status : -EHOSTUNREACH;
		break;
	default:
		return 0;
	}
	complete(&s->over);
	return 0;
}

/* @ret: of the call that begins the step */
static int step(struct sender *s, int ret)
{
	if (ret)
		return ret;
	wait_for_completion(&s->over);
	return s->status;
}

static int create_initiator(struct sender *s)
{
	struct ib_qp_init_attr init = {.qp_type = IB_QPT_XRC_INI,
				       .sq_sig_type = IB_SIGNAL_ALL_WR,
				       .cap = {.max_send_wr = 1, .max_send_sge = 1}};

	s->pd = ib_alloc_pd(s->id->device, 0);
	if (IS_ERR(s->pd))
		return PTR_ERR(s->pd);
	s->cq = init.send_cq = ib_alloc_cq(s->id->device, s, 1, 0, IB_POLL_SOFTIRQ);
	if (IS_ERR(s->cq))
		return PTR_ERR(s->cq);
	return rdma_create_qp(s->id, s->pd, &init);
}

static int connect_to_server(struct sender *s)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	struct rdma_conn_param param = {.retry_count = RETRIES, .rnr_retry_count = RETRIES};
	int ret;

	if (inet_pton(AF_INET, server, &to.sin_addr) != 1)
		return -EINVAL;
	ret = step(s, rdma_resolve_addr(s->id, NULL, (struct sockaddr *)&to, TIMEOUT_MS));
	if (!ret)
		ret = step(s, rdma_resolve_route(s->id, TIMEOUT_MS));
	if (!ret)
		ret = create_initiator(s);
	return ret ? ret : step(s, rdma_connect(s->id, &param));
}

static int post_send(struct sender *s, u32 srqn)
{
	struct ib_sge sge = {(uintptr_t)s->buffer, 0, s->pd->local_dma_lkey};
	struct ib_xrc_wr wr = {
		.atomic.wr = {.wr_cqe = &s->cqe, .sg_list = &sge, .num_sge = 1, .opcode = IB_WR_SEND},
		.remote_srqn = srqn};

	sge.length = (u32)snprintf(s->buffer, sizeof(s->buffer), "%.*s", TEXT_BYTES - 1, text);
	return ib_post_send(s->id->qp, &wr.atomic.wr, NULL);
}

static int connect_and_send(struct sender *s)
{
	int ret = connect_to_server(s);

	for (int i = 0; !ret && i < QUEUES; i++) {
		u32 srqn = be32_to_cpu(s->answer.srqn[i]);

		ret = srqn ? step(s, post_send(s, srqn)) : 0;
		if (srqn && !ret)
			pr_info("sent '%s' to SRQ 0x%x of %s\n", s->buffer, srqn, server);
	}
	return ret;
}

static int send_messages(void)
{
	struct sender *s = kzalloc(sizeof(*s), GFP_KERNEL);
	int ret;

	if (!s)
		return -ENOMEM;
	s->cqe.done = on_sent;
	init_completion(&s->over);
	s->id = rdma_create_id(&init_net, on_news, s, RDMA_PS_IB, IB_QPT_XRC_INI);
	ret = IS_ERR(s->id) ? PTR_ERR(s->id) : connect_and_send(s);
	if (ret)
		pr_err("no message to %s: error %d\n", server, ret);
	if (!IS_ERR_OR_NULL(s->id)) {
		rdma_destroy_qp(s->id);
		rdma_destroy_id(s->id); /* which disconnects */
	}
	if (!IS_ERR_OR_NULL(s->cq))
		ib_free_cq(s->cq);
	if (!IS_ERR_OR_NULL(s->pd))
		ib_dealloc_pd(s->pd);
	kfree(s);
	return ret;
}

/* --- adapters --- */

static void close_adapter(struct adapter *a)
{
	for (int n = 0; n < QUEUES; n++)
		if (!IS_ERR_OR_NULL(a->srq[n]))
			ib_destroy_srq(a->srq[n]);
	if (!IS_ERR_OR_NULL(a->xrcd))
		ib_dealloc_xrcd(a->xrcd);
	if (!IS_ERR_OR_NULL(a->cq))
		ib_free_cq(a->cq);
	if (!IS_ERR_OR_NULL(a->pd))
		ib_dealloc_pd(a->pd);
	kfree(a);
}

static int open_adapter(struct adapter *a, struct ib_device *device)
{
	int ret = 0;

	a->pd = ib_alloc_pd(device, 0);
	if (IS_ERR(a->pd))
		return PTR_ERR(a->pd);
	a->cq = ib_alloc_cq(device, a, QUEUES * RECEIVES, 0, IB_POLL_SOFTIRQ);
	if (IS_ERR(a->cq))
		return PTR_ERR(a->cq);
	a->xrcd = ib_alloc_xrcd(device);
	if (IS_ERR(a->xrcd))
		return PTR_ERR(a->xrcd);
	for (int n = 0; !ret && n < QUEUES; n++)
		ret = open_queue(a, n);
	return ret;
}

static int xrc_add(struct ib_device *device)
{
	struct adapter *a = kzalloc(sizeof(*a), GFP_KERNEL);
	int ret = a ? open_adapter(a, device) : -ENOMEM;

	if (!ret)
		ib_set_client_data(device, &client, a);
	else if (a)
		close_adapter(a);
	return ret;
}

static void xrc_remove(struct ib_device *device, void *client_data)
{
	close_adapter(client_data);
}

static struct ib_client client = {.name = "xrc_message", .add = xrc_add, .remove = xrc_remove};

static int __init xrc_init(void)
{
	int ret = ib_register_client(&client);

	if (ret)
		return ret;
	ret = start_listening();
	if (!ret && *server) {
		ret = send_messages();
		if (ret)
			stop_listening();
	}
	if (ret)
		ib_unregister_client(&client);
	return ret;
}

static void __exit xrc_exit(void)
{
	stop_listening();
	ib_unregister_client(&client);
}

module_init(xrc_init);
module_exit(xrc_exit);
MODULE_LICENSE("Dual BSD/GPL");
