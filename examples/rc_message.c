/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A reliable connection of the RDMA CM, whose queue pairs are the ids' (rdma_create_qp()). The
 * module listens at a port of the node, and returns each message to its sender. With the
 * parameter `server`, an address, init() connects, sends `text`, waits for its return, and
 * disconnects.
 */
#include <arpa/inet.h>
#include <linux/completion.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <rdma/rdma_cm.h>

#define TEXT_BYTES 64
#define TIMEOUT_MS 5000
#define RETRIES	   7

static char *server = "";
module_param(server, charp, 0444);
MODULE_PARM_DESC(server, "IPv4 address to send a message to; empty: none");
static char *text = "hello";
module_param(text, charp, 0444);
MODULE_PARM_DESC(text, "the message, of at most 63 bytes");
static int port = 7473;
module_param(port, int, 0444);
MODULE_PARM_DESC(port, "of the service");

static struct rdma_cm_id *listener;
static LIST_HEAD(served);

/** struct end - of a connection. One message is on its way at a time */
struct end {
	struct list_head node; /* in served, of who listens */
	struct rdma_cm_id *id;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_cqe sent, received;
	struct completion over; /* a step of who connects */
	int status;
	char outgoing[TEXT_BYTES], incoming[TEXT_BYTES];
};

/* --- both ends --- */

static int open_end(struct end *e)
{
	struct ib_qp_init_attr init = {
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_ALL_WR,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};

	e->pd = ib_alloc_pd(e->id->device, 0);
	if (IS_ERR(e->pd))
		return PTR_ERR(e->pd);
	e->cq = ib_alloc_cq(e->id->device, e, 2, 0, IB_POLL_SOFTIRQ);
	if (IS_ERR(e->cq))
		return PTR_ERR(e->cq);
	init.send_cq = init.recv_cq = e->cq;
	return rdma_create_qp(e->id, e->pd, &init);
}

/* but for its id and itself, which a handler may use until the id is destroyed */
static void close_end(struct end *e)
{
	if (!IS_ERR(e->id))
		rdma_destroy_qp(e->id);
	if (!IS_ERR_OR_NULL(e->cq))
		ib_free_cq(e->cq);
	if (!IS_ERR_OR_NULL(e->pd))
		ib_dealloc_pd(e->pd);
}

static int post_recv(struct end *e)
{
	struct ib_sge sge = {(uintptr_t)e->incoming, TEXT_BYTES, e->pd->local_dma_lkey};
	struct ib_recv_wr wr = {.wr_cqe = &e->received, .sg_list = &sge, .num_sge = 1};

	return ib_post_recv(e->id->qp, &wr, NULL);
}

static int post_send(struct end *e, u32 bytes)
{
	struct ib_sge sge = {(uintptr_t)e->outgoing, bytes, e->pd->local_dma_lkey};
	struct ib_send_wr wr = {
		.wr_cqe = &e->sent, .sg_list = &sge, .num_sge = 1, .opcode = IB_WR_SEND};

	return ib_post_send(e->id->qp, &wr, NULL);
}

static void disconnect(struct end *e)
{
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr;

	rdma_disconnect(e->id);
	if (!ib_query_qp(e->id->qp, &attr, IB_QP_STATE, &init))
		pr_info("disconnected, QP 0x%x is in state %d\n", e->id->qp->qp_num, attr.qp_state);
}

/* What is queued when the pair goes to ERR ends with a flush error: that is no failure. */
static bool is_good(const struct ib_wc *wc)
{
	if (wc->status != IB_WC_SUCCESS && wc->status != IB_WC_WR_FLUSH_ERR)
		pr_err("%s\n", ib_wc_status_msg(wc->status));
	return wc->status == IB_WC_SUCCESS;
}

/* --- who listens --- */

static void on_returned(struct ib_cq *cq, struct ib_wc *wc)
{
	is_good(wc);
}

static void on_request(struct ib_cq *cq, struct ib_wc *wc)
{
	struct end *e = container_of(wc->wr_cqe, struct end, received);

	if (!is_good(wc))
		return;
	pr_info("received '%.*s'\n", (int)wc->byte_len, e->incoming);
	memcpy(e->outgoing, e->incoming, wc->byte_len);
	if (post_recv(e) || post_send(e, wc->byte_len))
		pr_err("it cannot be returned\n");
}

static int accept_connection(struct rdma_cm_id *id, const struct rdma_conn_param *peer)
{
	struct rdma_conn_param param = {.responder_resources = peer->responder_resources,
					.initiator_depth = peer->initiator_depth,
					.rnr_retry_count = RETRIES};
	struct end *e = kzalloc(sizeof(*e), GFP_KERNEL);
	int ret;

	if (!e)
		return -ENOMEM;
	e->id = id;
	e->sent.done = on_returned;
	e->received.done = on_request;
	ret = open_end(e);
	if (!ret)
		ret = post_recv(e);
	if (!ret)
		ret = rdma_accept(id, &param);
	if (ret) {
		close_end(e);
		kfree(e);
		return ret; /* which destroys the id: the peer is told */
	}
	id->context = e;
	list_add_tail(&e->node, &served);
	return 0;
}

static int on_served(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct end *e = id->context;

	switch (event->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		return accept_connection(id, &event->param.conn);
	case RDMA_CM_EVENT_DISCONNECTED:
		disconnect(e);
		return 0; /* until the time-wait is over: packets may still be on their way */
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_REJECTED:
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		if (id == listener)
			return 0;
		list_del(&e->node);
		close_end(e);
		kfree(e);
		return 1; /* which destroys the id */
	default:
		return 0;
	}
}

static int start_listening(void)
{
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	int ret;

	listener = rdma_create_id(&init_net, on_served, NULL, RDMA_PS_TCP, IB_QPT_RC);
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
		struct end *e = list_first_entry(&served, struct end, node);

		list_del(&e->node);
		close_end(e);
		rdma_destroy_id(e->id);
		kfree(e);
	}
}

/* --- who connects --- */

/* The step is over when the message has returned, or cannot. */
static void end_step(struct end *e, int status)
{
	e->status = status;
	complete(&e->over);
}

static void on_sent(struct ib_cq *cq, struct ib_wc *wc)
{
	if (!is_good(wc))
		end_step(container_of(wc->wr_cqe, struct end, sent), -EIO);
}

static void on_return(struct ib_cq *cq, struct ib_wc *wc)
{
	struct end *e = container_of(wc->wr_cqe, struct end, received);

	if (is_good(wc))
		pr_info("returned '%.*s'\n", (int)wc->byte_len, e->incoming);
	end_step(e, wc->status ? -EIO : 0);
}

/* news of the connection: each ends a step */
static int on_news(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct end *e = id->context;

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
	case RDMA_CM_EVENT_ESTABLISHED:
		end_step(e, 0);
		break;
	case RDMA_CM_EVENT_REJECTED:
		end_step(e, -ECONNREFUSED);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_CONNECT_ERROR:
		end_step(e, event->status ? event->status : -EHOSTUNREACH);
		break;
	default:
		break;
	}
	return 0;
}

/* @ret: of the call that begins the step */
static int step(struct end *e, int ret)
{
	if (ret)
		return ret;
	wait_for_completion(&e->over);
	return e->status;
}

static int connect_to_server(struct end *e)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	struct rdma_conn_param param = {.responder_resources = 1,
					.initiator_depth = 1,
					.retry_count = RETRIES,
					.rnr_retry_count = RETRIES};
	int ret;

	if (inet_pton(AF_INET, server, &to.sin_addr) != 1)
		return -EINVAL;
	ret = step(e, rdma_resolve_addr(e->id, NULL, (struct sockaddr *)&to, TIMEOUT_MS));
	if (!ret)
		ret = step(e, rdma_resolve_route(e->id, TIMEOUT_MS));
	if (!ret)
		ret = open_end(e);
	return ret ? ret : step(e, rdma_connect(e->id, &param));
}

static int exchange(struct end *e)
{
	int ret = connect_to_server(e);
	int bytes = snprintf(e->outgoing, TEXT_BYTES, "%.*s", TEXT_BYTES - 1, text);

	if (!ret)
		ret = post_recv(e);
	if (!ret)
		ret = step(e, post_send(e, (u32)bytes));
	if (!ret)
		disconnect(e);
	return ret;
}

static int send_message(void)
{
	struct end *e = kzalloc(sizeof(*e), GFP_KERNEL);
	int ret;

	if (!e)
		return -ENOMEM;
	e->sent.done = on_sent;
	e->received.done = on_return;
	init_completion(&e->over);
	e->id = rdma_create_id(&init_net, on_news, e, RDMA_PS_TCP, IB_QPT_RC);
	ret = IS_ERR(e->id) ? PTR_ERR(e->id) : exchange(e);
	if (ret)
		pr_err("no message to %s: error %d\n", server, ret);
	close_end(e);
	if (!IS_ERR(e->id))
		rdma_destroy_id(e->id);
	kfree(e);
	return ret;
}

static int __init rc_init(void)
{
	int ret = start_listening();

	if (!ret && *server) {
		ret = send_message();
		if (ret)
			stop_listening();
	}
	return ret;
}

static void __exit rc_exit(void)
{
	stop_listening();
}

module_init(rc_init);
module_exit(rc_exit);
MODULE_LICENSE("Dual BSD/GPL");
