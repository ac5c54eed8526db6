/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Datagrams by IP address: queue pairs of the RDMA CM's ids (rdma_create_qp()), a service that is
 * found by address and port, and multicast groups that addresses mean (rdma_join_multicast()). The
 * module listens at a port of the node, and logs each message. With the parameter `group` it is a
 * member of that group; init() sends `text` to the service at `server`, and to the group.
 */
#include <arpa/inet.h>
#include <linux/completion.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include <rdma/rdma_cm.h>

#define TEXT_BYTES 64
#define RECEIVES   8
#define TIMEOUT_MS 5000

static char *server = "";
module_param(server, charp, 0444);
MODULE_PARM_DESC(server, "IPv4 address of a service to send a message to; empty: none");
static char *group = "";
module_param(group, charp, 0444);
MODULE_PARM_DESC(group, "IPv4 multicast address to be a member of; empty: none");
static char *text = "";
module_param(text, charp, 0444);
MODULE_PARM_DESC(text, "the message, of at most 63 bytes; empty: none");
static int port = 7475;
module_param(port, int, 0444);
MODULE_PARM_DESC(port, "of the service");

struct end;

/** struct receive - a buffer for a message, behind the GRH that may come with it */
struct receive {
	struct ib_cqe cqe;
	struct end *end;
	struct ib_grh grh;
	char text[TEXT_BYTES];
};

/** struct end - an id and its queue pair */
struct end {
	struct list_head node; /* in ends */
	struct rdma_cm_id *id;
	const char *what; /* it is: for the log */
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct receive receive[RECEIVES];
	struct ib_cqe sent;
	char outgoing[TEXT_BYTES];
	/* --- where messages go --- */
	struct ib_ah *ah;
	u32 qp_num, qkey;
	struct completion over; /* a step */
	int status;
	/* --- of a member --- */
	struct sockaddr_in address;
	union ib_gid mgid; /* the group that the pair is attached to, */
	u16 mlid;	   /* if it is */
	struct completion answered; /* the request to join */
	int join_status;
	struct work_struct rejoin;
};

static struct rdma_cm_id *listener;
static LIST_HEAD(ends);

static int post_recv(struct receive *r)
{
	struct ib_sge sge = {(uintptr_t)&r->grh, sizeof(r->grh) + sizeof(r->text),
			     r->end->pd->local_dma_lkey};
	struct ib_recv_wr wr = {.wr_cqe = &r->cqe, .sg_list = &sge, .num_sge = 1};

	return ib_post_recv(r->end->id->qp, &wr, NULL);
}

static void on_message(struct ib_cq *cq, struct ib_wc *wc)
{
	struct receive *r = container_of(wc->wr_cqe, struct receive, cqe);

	if (wc->status)
		return;
	pr_info("%s received '%.*s' from QP 0x%x of lid %u\n", r->end->what,
		(int)(wc->byte_len - sizeof(r->grh)), r->text, wc->src_qp, wc->slid);
	if (post_recv(r))
		pr_err("no receive is left\n");
}

static void end_step(struct end *e, int status)
{
	e->status = status;
	complete(&e->over);
}

static void on_sent(struct ib_cq *cq, struct ib_wc *wc)
{
	end_step(container_of(wc->wr_cqe, struct end, sent), wc->status ? -EIO : 0);
}

static int open_qp(struct end *e)
{
	struct ib_qp_init_attr init = {.qp_type = IB_QPT_UD,
				       .sq_sig_type = IB_SIGNAL_ALL_WR,
				       .cap = {.max_send_wr = 1,
					       .max_recv_wr = RECEIVES,
					       .max_send_sge = 1,
					       .max_recv_sge = 1}};
	int ret;

	e->pd = ib_alloc_pd(e->id->device, 0);
	if (IS_ERR(e->pd))
		return PTR_ERR(e->pd);
	e->cq = ib_alloc_cq_any(e->id->device, e, RECEIVES + 1, IB_POLL_SOFTIRQ);
	if (IS_ERR(e->cq))
		return PTR_ERR(e->cq);
	init.send_cq = init.recv_cq = e->cq;
	ret = rdma_create_qp(e->id, e->pd, &init);
	for (int i = 0; !ret && i < RECEIVES; i++) {
		e->receive[i].end = e;
		e->receive[i].cqe.done = on_message;
		ret = post_recv(&e->receive[i]);
	}
	return ret;
}

static void join_again(struct work_struct *work);

static struct end *new_end(const char *what)
{
	struct end *e = kzalloc(sizeof(*e), GFP_KERNEL);

	if (!e)
		return NULL;
	e->what = what;
	e->sent.done = on_sent;
	init_completion(&e->over);
	init_completion(&e->answered);
	INIT_WORK(&e->rejoin, join_again);
	list_add_tail(&e->node, &ends);
	return e;
}

static void forget_where(struct end *e)
{
	if (e->mlid)
		ib_detach_mcast(e->id->qp, &e->mgid, e->mlid);
	if (!IS_ERR_OR_NULL(e->ah))
		rdma_destroy_ah(e->ah, 0);
	e->mlid = 0;
	e->ah = NULL;
}

/* but for its id, which the handler's return may destroy */
static void close_end(struct end *e)
{
	forget_where(e);
	if (!IS_ERR_OR_NULL(e->id))
		rdma_destroy_qp(e->id);
	if (!IS_ERR_OR_NULL(e->cq))
		ib_free_cq(e->cq);
	if (!IS_ERR_OR_NULL(e->pd))
		ib_dealloc_pd(e->pd);
	e->cq = NULL;
	e->pd = NULL;
}

static void free_end(struct end *e)
{
	list_del(&e->node);
	close_end(e);
	kfree(e);
}

static int learn_where(struct end *e, const struct rdma_ud_param *to)
{
	struct rdma_ah_attr attr = to->ah_attr;

	e->qp_num = to->qp_num;
	e->qkey = to->qkey;
	e->ah = rdma_create_ah(e->pd, &attr, RDMA_CREATE_AH_SLEEPABLE);
	return PTR_ERR_OR_ZERO(e->ah);
}

/* --- the service --- */

static int accept_client(struct rdma_cm_id *id)
{
	struct rdma_conn_param param = {0}; /* the number of the pair is the id's */
	struct end *e = new_end("the service");
	int ret;

	if (!e)
		return -ENOMEM;
	e->id = id;
	id->context = e;
	ret = open_qp(e);
	if (!ret)
		ret = rdma_accept(id, &param);
	if (ret)
		free_end(e);
	return ret; /* other than 0 destroys the id: the client is told */
}

static int on_service(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct end *e = id->context;

	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		return accept_client(id);
	if (event->event != RDMA_CM_EVENT_DEVICE_REMOVAL || id == listener)
		return 0;
	free_end(e);
	return 1;
}

static int start_listening(void)
{
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	int ret;

	listener = rdma_create_id(&init_net, on_service, NULL, RDMA_PS_UDP, IB_QPT_UD);
	if (IS_ERR(listener))
		return PTR_ERR(listener);
	ret = rdma_bind_addr(listener, (struct sockaddr *)&any);
	return ret ? ret : rdma_listen(listener, 0);
}

/* --- clients and members --- */

static int on_member(struct end *e, const struct rdma_ud_param *to)
{
	int ret = learn_where(e, to);

	if (!ret)
		ret = ib_attach_mcast(e->id->qp, &to->ah_attr.grh.dgid, to->ah_attr.dlid);
	if (!ret) {
		e->mgid = to->ah_attr.grh.dgid;
		e->mlid = to->ah_attr.dlid;
	}
	return ret;
}

static void end_join(struct end *e, int status)
{
	e->join_status = status;
	complete(&e->answered);
}

static int on_news(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct end *e = id->context;

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		end_step(e, 0);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		end_step(e, learn_where(e, &event->param.ud));
		break;
	case RDMA_CM_EVENT_MULTICAST_JOIN:
		end_join(e, on_member(e, &event->param.ud));
		break;
	case RDMA_CM_EVENT_MULTICAST_ERROR:
		if (e->mlid) /* the membership is lost: a subnet manager may have begun anew */
			schedule_work(&e->rejoin);
		else
			end_join(e, event->status);
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL: /* whoever waits goes on without an id */
		close_end(e);
		e->id = NULL;
		end_join(e, -ENODEV);
		end_step(e, -ENODEV);
		return 1;
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_REJECTED:
		end_step(e, -ECONNREFUSED);
		break;
	default:
		end_step(e, event->status ? event->status : -EHOSTUNREACH);
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

/* An id whose address is resolved, and which has its pair */
static int start(struct end *e, const char *address, struct sockaddr_in *to)
{
	int ret;

	*to = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	e->id = rdma_create_id(&init_net, on_news, e, RDMA_PS_UDP, IB_QPT_UD);
	if (IS_ERR(e->id))
		return PTR_ERR(e->id);
	if (inet_pton(AF_INET, address, &to->sin_addr) != 1)
		return -EINVAL;
	ret = step(e, rdma_resolve_addr(e->id, NULL, (struct sockaddr *)to, TIMEOUT_MS));
	return ret ? ret : open_qp(e);
}

static int send_text(struct end *e)
{
	struct ib_sge sge = {(uintptr_t)e->outgoing, 0, e->pd->local_dma_lkey};
	struct ib_ud_wr wr = {.wr = {.wr_cqe = &e->sent,
				     .sg_list = &sge,
				     .num_sge = 1,
				     .opcode = IB_WR_SEND},
			      .ah = e->ah,
			      .remote_qpn = e->qp_num,
			      .remote_qkey = e->qkey};

	sge.length = (u32)snprintf(e->outgoing, TEXT_BYTES, "%.*s", TEXT_BYTES - 1, text);
	return step(e, ib_post_send(e->id->qp, &wr.wr, NULL));
}

static int send_to_server(void)
{
	struct rdma_conn_param param = {0};
	struct end *e = new_end("the client");
	struct sockaddr_in to;
	int ret = e ? start(e, server, &to) : -ENOMEM;

	if (!ret)
		ret = step(e, rdma_resolve_route(e->id, TIMEOUT_MS));
	if (!ret)
		ret = step(e, rdma_connect(e->id, &param));
	return ret ? ret : send_text(e);
}

static int join(struct end *e)
{
	struct sockaddr *address = (struct sockaddr *)&e->address;
	int ret;

	if (!e->id)
		return -ENODEV;
	do {
		forget_where(e);
		rdma_leave_multicast(e->id, address);
		ret = rdma_join_multicast(e->id, address, 1 << FULLMEMBER_JOIN, e);
		if (ret)
			break;
		wait_for_completion(&e->answered);
		ret = e->join_status;
	} while (ret == -ENETRESET); /* it was lost before it began */
	if (!ret)
		pr_info("a member of %s, MLID 0x%x, QP 0x%x\n", group, e->mlid, e->qp_num);
	return ret;
}

static void join_again(struct work_struct *work)
{
	if (join(container_of(work, struct end, rejoin)))
		pr_err("no member of %s any more\n", group);
}

static int join_group(void)
{
	struct end *e = new_end("the member");
	int ret = e ? start(e, group, &e->address) : -ENOMEM;

	if (!ret)
		ret = join(e);
	return ret || !*text ? ret : send_text(e);
}

static void close_all(void)
{
	if (!IS_ERR(listener))
		rdma_destroy_id(listener);
	while (!list_empty(&ends)) {
		struct end *e = list_first_entry(&ends, struct end, node);
		struct rdma_cm_id *id;

		cancel_work_sync(&e->rejoin);
		id = e->id;
		free_end(e);
		if (!IS_ERR_OR_NULL(id))
			rdma_destroy_id(id); /* which leaves the group */
	}
}

static int __init datagram_init(void)
{
	int ret = start_listening();

	if (!ret && *group)
		ret = join_group();
	if (!ret && *server)
		ret = send_to_server();
	if (ret)
		close_all();
	return ret;
}

static void __exit datagram_exit(void)
{
	close_all();
}

module_init(datagram_init);
module_exit(datagram_exit);
MODULE_LICENSE("Dual BSD/GPL");
