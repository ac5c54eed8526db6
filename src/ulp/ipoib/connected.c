/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Connected mode (RFC 4755): reliable connections to neighbours, made by the CM. As in Linux
 * each carries packets one way, from who asked for it; two hosts that send to each other have
 * two. All of them receive into one shared receive queue.
 *
 *   active   CONNECTING -> UP -> ENDING	neighbours send by it; they hear of each step
 *   passive	       UP -> ENDING	the peer sends by it
 *
 * A host has several IP addresses, each a neighbour of its own, and one link address: that is what a
 * connection leads to, so all neighbours with one link address send by one connection.
 *
 * A connection from a peer that has carried nothing for IDLE_MS to twice that is ended, as a
 * peer that has crashed never does. An active one ends with the last of its neighbours.
 *
 * A connection that is ENDING is freed when its CM id has come to rest and what was posted has
 * come back: sends name it until then.
 */
#include <string.h>

#include "base/bytes.h"
#include "ulp/ipoib/private.h"
#include "ulp/ipoib/trace.h"

#define SERVICE_ID   0x1000000000000000ull /* RFC 4755 section 6: and the QPN, not the name */
#define STARTING_PSN 1
#define TIMEOUT_ENC  20 /* 4.3 s */
#define RETRIES	     7	/* of a receiver that is not ready: without end */
#define IDLE_MS	      256000 /* as in Linux */
#define RNR_TIMER_ENC 1	/* 10 us: it takes no longer to give a buffer back */

enum state { CONNECTING, UP, ENDING };

/** struct ipoib_conn - a connection */
struct ipoib_conn {
	struct list_head node; /* of its interface */
	struct ipoib *ipoib;
	enum state state;
	struct ib_cm_id *id; /* NULL: it was destroyed */
	struct ib_qp *qp;
	bool passive;		/* the peer has asked for it, and sends by it */
	struct ipoib_link link; /* active: where it leads */
	struct list_head users; /* active: struct ipoib_conn_user; empty when ENDING */
	unsigned int num_sends; /* under way */
	size_t mtu;		/* the peer's */
	bool used;		/* passive: it has received since the last look */
};

/** struct ipoib_conn_receive - a buffer in the shared receive queue */
struct ipoib_conn_receive {
	struct ib_cqe cqe;
	struct ipoib *ipoib;
	struct list_head node;
	u8 frame[IPOIB_ENCAP_BYTES + IPOIB_CONNECTED_MTU];
};

/** struct private_data - of REQ and REP (section 6.4) */
struct private_data {
	__be32 qpn; /* the sender's datagram QP */
	__be32 mtu; /* the longest message that it can receive */
};

static struct private_data own_data(const struct ipoib *p)
{
	return (struct private_data){
		.qpn = cpu_to_be32(p->own.qpn),
		.mtu = cpu_to_be32(IPOIB_ENCAP_BYTES + IPOIB_CONNECTED_MTU),
	};
}

/* --- receives --- */

static int post_receive(struct ipoib_conn_receive *r)
{
	struct ipoib *p = r->ipoib;
	struct ib_sge sge = {
		.addr = ib_dma_map_single(p->device, r->frame, sizeof(r->frame), DMA_FROM_DEVICE),
		.length = sizeof(r->frame),
		.lkey = p->pd->local_dma_lkey,
	};
	struct ib_recv_wr wr = {.wr_cqe = &r->cqe, .sg_list = &sge, .num_sge = 1};

	return ib_post_srq_recv(p->srq, &wr, NULL);
}

static void drop_receive(struct ipoib_conn_receive *r)
{
	list_del(&r->node);
	rt_free(r);
}

static void received(struct ib_cq *cq, struct ib_wc *wc)
{
	struct ipoib_conn_receive *r = container_of(wc->wr_cqe, struct ipoib_conn_receive, cqe);
	struct ipoib *p = r->ipoib;

	if (wc->status == IB_WC_SUCCESS && wc->byte_len >= IPOIB_ENCAP_BYTES) {
		((struct ipoib_conn *)wc->qp->qp_context)->used = true;
		ipoib_received(p, r->frame, wc->byte_len, false, NULL);
	}
	else if (wc->status != IB_WC_WR_FLUSH_ERR)
		p->stats.rx_errors++;
	if (p->closing || post_receive(r))
		drop_receive(r);
}

static int open_srq(struct ipoib *p)
{
	struct ib_srq_init_attr init = {.attr = {.max_wr = IPOIB_CONN_RECEIVES, .max_sge = 1}};
	struct ib_srq *srq = p->srq ? p->srq : ib_create_srq(p->pd, &init);
	int ret;

	if (IS_ERR(srq))
		return (int)PTR_ERR(srq);
	if (p->srq)
		return 0;
	p->srq = srq;
	ret = ipoib_queue_size(p, p->want_receives);
	if (ret) {
		ib_destroy_srq(srq);
		p->srq = NULL;
		return ret;
	}
	if (p->moderation.frames)
		ipoib_queue_moderate(p);
	for (unsigned int i = 0; i < IPOIB_CONN_RECEIVES; i++) {
		struct ipoib_conn_receive *r = rt_zalloc(sizeof(*r));

		if (!r)
			break; /* fewer do as well: senders wait */
		r->ipoib = p;
		r->cqe.done = received;
		list_add_tail(&r->node, &p->conn_receives);
		if (post_receive(r))
			drop_receive(r);
	}
	return list_empty(&p->conn_receives) ? -ENOMEM : 0;
}

/* --- connections --- */

static struct ipoib_conn *create(struct ipoib *p, bool passive)
{
	struct ib_qp_init_attr init = {
		.send_cq = p->cq,
		.recv_cq = p->cq,
		.cap = {.max_send_wr = passive ? 1 : IPOIB_SENDS_MOST, .max_send_sge = 1},
		.sq_sig_type = IB_SIGNAL_ALL_WR,
		.qp_type = IB_QPT_RC,
	};
	struct ipoib_conn *conn;

	if (p->num_conns == IPOIB_CONNS_MOST || open_srq(p))
		return NULL;
	conn = rt_zalloc(sizeof(*conn));
	if (!conn)
		return NULL;
	init.srq = p->srq;
	init.qp_context = conn;
	conn->ipoib = p;
	conn->passive = passive;
	INIT_LIST_HEAD(&conn->users);
	conn->qp = ib_create_qp(p->pd, &init);
	if (IS_ERR(conn->qp)) {
		rt_free(conn);
		return NULL;
	}
	list_add_tail(&conn->node, &p->conns);
	p->num_conns++;
	return conn;
}

static void destroy(struct ipoib_conn *conn)
{
	list_del(&conn->node);
	conn->ipoib->num_conns--;
	ib_destroy_qp(conn->qp);
	rt_free(conn);
}

static void trace(const struct ipoib_conn *conn, const char *what)
{
	trace_ipoib_connection(IPOIB_TRACE_AT(conn->ipoib), conn->qp->qp_num, conn->passive, what);
}

static int move_qp(struct ipoib_conn *conn, enum ib_qp_state state)
{
	struct ib_qp_attr attr = {.qp_state = state};
	int mask, ret = ib_cm_init_qp_attr(conn->id, &attr, &mask);

	if (state == IB_QPS_RTR && conn->passive)
		attr.rq_psn = STARTING_PSN; /* that the REP will name */
	attr.min_rnr_timer = RNR_TIMER_ENC;
	return ret ? ret : ib_modify_qp(conn->qp, &attr, mask);
}

static void leave_conn(struct ipoib_conn_user *user)
{
	list_del(&user->node);
	user->conn = NULL;
}

static void join_conn(struct ipoib_conn_user *user, struct ipoib_conn *conn)
{
	list_add_tail(&user->node, &conn->users);
	user->conn = conn;
}

static void reap_if_idle(struct ipoib_conn *conn)
{
	if (conn->state == ENDING && !conn->id && !conn->num_sends)
		rt_work_queue(conn->ipoib->device->rt, &conn->ipoib->reap);
}

static void reap(struct rt_work *work)
{
	struct ipoib *p = container_of(work, struct ipoib, reap);
	struct ipoib_conn *conn, *next;

	list_for_each_entry_safe(conn, next, &p->conns, node) {
		if (conn->state != ENDING || conn->num_sends)
			continue;
		if (conn->id)
			ib_destroy_cm_id(conn->id); /* which tells the peer */
		destroy(conn);
	}
}

/* What was posted comes back, flushed. */
static void stop(struct ipoib_conn *conn)
{
	struct ib_qp_attr attr = {.qp_state = IB_QPS_ERR};

	trace(conn, "end");
	conn->state = ENDING;
	ib_modify_qp(conn->qp, &attr, IB_QP_STATE);
	rt_work_queue(conn->ipoib->device->rt, &conn->ipoib->reap);
}

/* @refused: the peer takes no connections. A neighbour that hears of it may ask for the next one,
 * and may be gone afterwards. */
static void fail(struct ipoib_conn *conn, bool refused)
{
	stop(conn);
	while (!list_empty(&conn->users)) {
		struct ipoib_conn_user *user =
			list_first_entry(&conn->users, struct ipoib_conn_user, node);

		leave_conn(user);
		ipoib_neighbour_connected(user, false, refused);
	}
}

/* --- idle connections --- */

static void look_again(struct ipoib *p)
{
	rt_timer_arm(&p->idle, mono_add(rt_now(p->device->rt), IDLE_MS * NSEC_PER_MSEC));
}

static void end_idle(struct rt_timer *timer)
{
	struct ipoib *p = container_of(timer, struct ipoib, idle);
	struct ipoib_conn *conn;
	bool any = false;

	list_for_each_entry(conn, &p->conns, node) {
		if (!conn->passive || conn->state != UP)
			continue;
		if (conn->used)
			any = true;
		else
			stop(conn);
		conn->used = false;
	}
	if (any)
		look_again(p);
}

/* the id is destroyed by the handler's return value */
static int leave(struct ipoib_conn *conn, bool refused)
{
	conn->id = NULL;
	if (conn->state != ENDING)
		fail(conn, refused);
	reap_if_idle(conn);
	return 1;
}

/* --- the passive end --- */

static int accept_req(struct ib_cm_id *id, const struct ib_cm_req_event_param *req)
{
	struct ipoib *p = req->listen_id->context;
	const struct private_data data = own_data(p);
	struct ib_cm_rep_param rep = {
		.starting_psn = STARTING_PSN,
		.private_data = &data,
		.private_data_len = sizeof(data),
		.rnr_retry_count = RETRIES,
		.srq = 1,
	};
	struct ipoib_conn *conn = req->qp_type == IB_QPT_RC ? create(p, true) : NULL;

	if (!conn) {
		ib_send_cm_rej(id, IB_CM_REJ_NO_RESOURCES, NULL, 0, NULL, 0);
		return 1;
	}
	conn->id = id;
	id->context = conn;
	rep.qp_num = conn->qp->qp_num;
	conn->state = UP;
	trace(conn, "up");
	conn->used = true;
	if (!rt_timer_armed(&p->idle))
		look_again(p);
	if (move_qp(conn, IB_QPS_INIT) || move_qp(conn, IB_QPS_RTR) || ib_send_cm_rep(id, &rep))
		return leave(conn, true);
	return 0;
}

static int on_passive(struct ib_cm_id *id, const struct ib_cm_event *event)
{
	switch (event->event) {
	case IB_CM_REQ_RECEIVED:
		return accept_req(id, &event->param.req_rcvd);
	case IB_CM_DREQ_RECEIVED:
		ib_send_cm_drep(id, NULL, 0);
		return 0; /* until the time-wait is over: packets may still be on their way */
	case IB_CM_TIMEWAIT_EXIT:
	case IB_CM_REJ_RECEIVED:
	case IB_CM_REP_ERROR:
		return leave(id->context, true);
	default:
		return 0;
	}
}

/* --- the active end --- */

static void on_reply(struct ipoib_conn *conn, const struct ib_cm_event *event)
{
	const struct private_data *data = event->private_data;
	struct ipoib_conn_user *user;
	size_t mtu = data ? be32_to_cpu(data->mtu) : 0;

	if (conn->state != CONNECTING)
		return;
	if (mtu <= IPOIB_ENCAP_BYTES || move_qp(conn, IB_QPS_RTR) || move_qp(conn, IB_QPS_RTS) ||
	    ib_send_cm_rtu(conn->id, NULL, 0)) {
		fail(conn, true);
		return;
	}
	conn->mtu = MIN(mtu - IPOIB_ENCAP_BYTES, (size_t)IPOIB_CONNECTED_MTU);
	conn->state = UP;
	trace(conn, "up");
	list_for_each_entry(user, &conn->users, node)
		ipoib_neighbour_connected(user, true, false);
}

static int on_active(struct ib_cm_id *id, const struct ib_cm_event *event)
{
	struct ipoib_conn *conn = id->context;

	switch (event->event) {
	case IB_CM_REP_RECEIVED:
		on_reply(conn, event);
		return 0;
	case IB_CM_DREQ_RECEIVED:
		ib_send_cm_drep(id, NULL, 0);
		if (conn->state != ENDING)
			fail(conn, false);
		return 0;
	case IB_CM_REQ_ERROR:
	case IB_CM_REJ_RECEIVED:
		return leave(conn, true);
	case IB_CM_TIMEWAIT_EXIT:
		return leave(conn, false);
	default:
		return 0;
	}
}

static int request_connection(struct ipoib_conn *conn, const struct ipoib_link *link,
			      const struct sa_path_rec *path)
{
	const struct private_data data = own_data(conn->ipoib);
	struct sa_path_rec primary = *path;
	struct ib_cm_req_param req = {
		.primary_path = &primary,
		.service_id = cpu_to_be64(SERVICE_ID | link->qpn),
		.qp_num = conn->qp->qp_num,
		.qp_type = IB_QPT_RC,
		.starting_psn = STARTING_PSN,
		.private_data = &data,
		.private_data_len = sizeof(data),
		.remote_cm_response_timeout = TIMEOUT_ENC,
		.local_cm_response_timeout = TIMEOUT_ENC,
		.retry_count = RETRIES,
		.rnr_retry_count = RETRIES,
		.max_cm_retries = RETRIES,
		.srq = 1,
	};
	int ret = ib_send_cm_req(conn->id, &req);

	return ret ? ret : move_qp(conn, IB_QPS_INIT);
}

static struct ipoib_conn *find_active(const struct ipoib *p, const struct ipoib_link *link)
{
	struct ipoib_conn *conn;

	list_for_each_entry(conn, &p->conns, node)
		if (!conn->passive && conn->state != ENDING &&
		    ipoib_is_same_link(&conn->link, link))
			return conn;
	return NULL;
}

static struct ipoib_conn *begin(struct ipoib *p, const struct ipoib_link *link,
				const struct sa_path_rec *path)
{
	struct ipoib_conn *conn = create(p, false);

	if (!conn)
		return NULL;
	conn->link = *link;
	conn->id = ib_create_cm_id(p->device, on_active, conn);
	if (IS_ERR(conn->id))
		conn->id = NULL;
	trace(conn, "ask");
	if (conn->id && !request_connection(conn, link, path))
		return conn;
	stop(conn);
	return NULL;
}

void ipoib_conn_open(struct ipoib *p, struct ipoib_conn_user *user, const struct ipoib_link *link,
		     const struct sa_path_rec *path)
{
	struct ipoib_conn *conn = find_active(p, link);

	if (!conn)
		conn = begin(p, link, path);
	if (conn)
		join_conn(user, conn);
}

bool ipoib_conn_is_up(const struct ipoib_conn *conn)
{
	return conn->state == UP;
}

void ipoib_conn_close(struct ipoib_conn_user *user)
{
	struct ipoib_conn *conn = user->conn;

	if (!conn)
		return;
	leave_conn(user);
	if (list_empty(&conn->users))
		stop(conn);
}

void ipoib_conn_send(struct ipoib_conn *conn, struct ipoib_send *s)
{
	struct ipoib *p = conn->ipoib;
	struct ib_sge sge = {
		.addr = ib_dma_map_single(p->device, s->frame, s->bytes, DMA_TO_DEVICE),
		.length = (u32)s->bytes,
		.lkey = p->pd->local_dma_lkey,
	};
	struct ib_send_wr wr = {
		.wr_cqe = &s->cqe,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IB_WR_SEND,
		.send_flags = IB_SEND_SIGNALED,
	};

	if (s->bytes - IPOIB_ENCAP_BYTES > conn->mtu) {
		ipoib_too_big(s, conn->mtu);
		return;
	}
	s->cqe.done = ipoib_sent;
	s->conn = conn;
	conn->num_sends++;
	if (!ib_post_send(conn->qp, &wr, NULL))
		return;
	conn->num_sends--;
	p->stats.tx_errors++;
	ipoib_send_free(s);
}

void ipoib_conn_sent(struct ipoib_conn *conn, bool error)
{
	conn->num_sends--;
	if (error && conn->state != ENDING)
		fail(conn, false);
	reap_if_idle(conn);
}

/* --- the interface --- */

void ipoib_connected_init(struct ipoib *p)
{
	INIT_LIST_HEAD(&p->conns);
	INIT_LIST_HEAD(&p->conn_receives);
	rt_work_init(&p->reap, reap);
	rt_timer_init(p->device->rt, &p->idle, end_idle);
}

static int take_requests(struct ipoib *p)
{
	struct ib_cm_id *id = ib_create_cm_id(p->device, on_passive, p);
	int ret;

	if (IS_ERR(id))
		return (int)PTR_ERR(id);
	ret = ib_cm_listen(id, cpu_to_be64(SERVICE_ID | p->own.qpn), 0);
	if (ret)
		ib_destroy_cm_id(id);
	else
		p->listener = id;
	return ret;
}

void ipoib_connected_end(struct ipoib *p)
{
	struct ipoib_conn *conn;

	if (p->listener)
		ib_destroy_cm_id(p->listener);
	p->listener = NULL;
	list_for_each_entry(conn, &p->conns, node)
		if (conn->state != ENDING)
			fail(conn, true);
}

void ipoib_connected_close(struct ipoib *p)
{
	struct ipoib_conn *conn, *next_conn;
	struct ipoib_conn_receive *r, *next;

	rt_work_cancel(&p->reap);
	rt_timer_disarm(&p->idle);
	list_for_each_entry_safe(conn, next_conn, &p->conns, node) {
		if (conn->id)
			ib_destroy_cm_id(conn->id);
		destroy(conn);
	}
	if (p->srq)
		ib_destroy_srq(p->srq);
	p->srq = NULL;
	list_for_each_entry_safe(r, next, &p->conn_receives, node)
		drop_receive(r);
}

int ipoib_set_connected(struct ipoib *p, bool connected)
{
	int ret = connected && !p->listener ? take_requests(p) : 0;

	if (ret || p->own.connected == connected)
		return ret;
	p->own.connected = connected;
	ipoib_set_mtu(p);
	trace_ipoib_interface(IPOIB_TRACE_AT(p), p->pkey, connected ? "connected" : "datagram");
	if (!connected)
		ipoib_connected_end(p);
	ipoib_neighbours_flush(p); /* by the other way from now on */
	ipoib_neighbours_announce(p);
	return 0;
}

bool ipoib_is_connected(const struct ipoib *p)
{
	return p->own.connected;
}

unsigned int ipoib_connections(const struct ipoib *p)
{
	return p->num_conns;
}
