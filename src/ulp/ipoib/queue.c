/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* An interface's queue pair: its buffers, what it sends and what it receives. */
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "ulp/ipoib/private.h"
#include "ulp/net/segment.h"

#define CQ_BUDGET   256 /* completions per turn of the loop */
#define SPARE_SENDS IPOIB_SEGMENTS /* kept for the next ones: those of a large packet */
/* sends that wait for one address or group, and all of them: hosts that do not answer hold up
 * what is sent to them, and nothing else */
#define WAITING_EACH 16
#define WAITING_MOST 512
#define OFFLOAD_CAPS (IB_DEVICE_UD_TSO | IB_DEVICE_UD_IP_CSUM)
#define QUIET_MS     4000 /* after these an interface that knows nobody gives up receives */

/* --- sends --- */

unsigned int ipoib_sends_left(const struct ipoib *p)
{
	unsigned int busy = p->num_sends - p->num_waiting;

	return IPOIB_SENDS_MOST - MIN(busy, (unsigned int)IPOIB_SENDS_MOST);
}

/* What waits keeps no memory beyond its packet: when the hosts of a fabric appear, much does. Return: @s,
 * or what replaces it */
static struct ipoib_send *fitting(struct ipoib_send *s)
{
	const size_t bytes = sizeof(*s) + s->bytes;
	struct ipoib_send *small = s->frame == s->small && s->bytes < s->room / 2 ? rt_alloc(bytes) : NULL;

	if (!small)
		return s;
	memcpy(small, s, bytes);
	small->frame = small->small;
	small->room = (unsigned int)s->bytes - IPOIB_ENCAP_BYTES;
	rt_free(s);
	return small;
}

bool ipoib_wait(struct ipoib_waiting *w, struct ipoib_send *s)
{
	struct ipoib *p = s->ipoib;

	if (!w || w->num == WAITING_EACH || p->num_waiting == WAITING_MOST) {
		p->stats.tx_dropped++;
		ipoib_send_free(s);
		return false;
	}
	s = fitting(s);
	list_add_tail(&s->node, &w->sends);
	w->num++;
	p->num_waiting++;
	return true;
}

struct ipoib_send *ipoib_wait_end(struct ipoib_waiting *w)
{
	struct ipoib_send *s;

	if (list_empty(&w->sends))
		return NULL;
	s = list_first_entry(&w->sends, struct ipoib_send, node);
	list_del(&s->node);
	w->num--;
	s->ipoib->num_waiting--;
	if (!w->num)
		ipoib_hold(w);
	return s;
}

void ipoib_waiting_init(struct ipoib_waiting *w, void (*send)(struct ipoib_waiting *w, struct ipoib_send *s))
{
	INIT_LIST_HEAD(&w->sends);
	INIT_LIST_HEAD(&w->released_node);
	w->send = send;
}

void ipoib_hold(struct ipoib_waiting *w)
{
	list_del_init(&w->released_node);
}

/* Many destinations may become known at once, with more to send than the completion queue has room for.
 * The host's next packets overtake none of it: they are read when there is room, and until then what was
 * released has taken it. */
static void send_released(struct ipoib *p)
{
	while (!list_empty(&p->released) && ipoib_sends_left(p)) {
		struct ipoib_waiting *w = list_first_entry(&p->released, struct ipoib_waiting, released_node);

		w->send(w, ipoib_wait_end(w));
	}
}

void ipoib_release(struct ipoib *p, struct ipoib_waiting *w)
{
	if (w->num && list_empty(&w->released_node))
		list_add_tail(&w->released_node, &p->released);
	send_released(p);
}

struct ipoib_send *ipoib_send_alloc(struct ipoib *p)
{
	struct ipoib_send *s;

	if (!ipoib_sends_left(p))
		return NULL;
	if (!list_empty(&p->spare_sends)) {
		s = list_first_entry(&p->spare_sends, struct ipoib_send, node);
		list_del(&s->node);
		p->num_free_sends--;
	} else { /* clearing it would cost as much as copying the packet */
		s = rt_alloc(sizeof(*s) + IPOIB_ENCAP_BYTES + p->room);
		if (s)
			s->room = p->room;
	}
	if (!s)
		return NULL;
	p->num_begun++;
	s->ipoib = p;
	s->conn = NULL;
	s->bytes = 0;
	s->offloaded = false;
	s->headers = s->mss = 0;
	s->frame = s->small;
	p->num_sends++;
	return s;
}

u8 *ipoib_spare_frame(struct ipoib *p)
{
	if (!p->spare_frame)
		p->spare_frame = rt_alloc(IPOIB_ENCAP_BYTES + NET_LARGE_BYTES);
	return p->spare_frame;
}

bool ipoib_send_enlarge(struct ipoib_send *s)
{
	u8 *large = ipoib_spare_frame(s->ipoib);

	s->ipoib->spare_frame = NULL;
	if (large)
		s->frame = large;
	return large;
}

/* The next large packet comes soon, and need not clear 64 KiB again. */
static void drop_frame(struct ipoib_send *s)
{
	struct ipoib *p = s->ipoib;

	if (s->frame == s->small)
		return;
	if (p->spare_frame)
		rt_free(s->frame);
	else
		p->spare_frame = s->frame;
}

void ipoib_send_free(struct ipoib_send *s)
{
	struct ipoib *p = s->ipoib;

	p->num_sends--;
	drop_frame(s);
	if (p->num_neighbours && p->num_free_sends < SPARE_SENDS && s->room == p->room) {
		list_add(&s->node, &p->spare_sends);
		p->num_free_sends++;
	} else {
		rt_free(s);
	}
	if (p->host_waits && ipoib_sends_left(p) >= IPOIB_SENDS_OF_READ)
		ipoib_host_resume(p);
}

static void trim_sends(struct ipoib *p)
{
	struct ipoib_send *s, *next;

	list_for_each_entry_safe(s, next, &p->spare_sends, node) {
		list_del(&s->node);
		rt_free(s);
	}
	p->num_free_sends = 0;
	rt_free(p->spare_frame);
	p->spare_frame = NULL;
}

void ipoib_set_frame(struct ipoib_send *s, enum ipoib_type type, size_t bytes)
{
	put_be32(s->frame, (u32)type << 16);
	s->bytes = IPOIB_ENCAP_BYTES + bytes;
}

/* 10.3.1: an error in a UD request stops the send queue until it is told to go on */
static void restart_queue(struct ipoib *p)
{
	struct ib_qp_attr attr = {.qp_state = IB_QPS_RTS, .cur_qp_state = IB_QPS_SQE};

	ib_modify_qp(p->qp, &attr, IB_QP_STATE | IB_QP_CUR_STATE);
}

/* as the packets of @s are on the wire */
static void count_sent(struct ipoib_send *s)
{
	struct ipoib_stats *stats = &s->ipoib->stats;
	size_t packets = s->mss ? DIV_ROUND_UP(s->bytes - s->headers, (size_t)s->mss) : 1;

	stats->tx_packets += packets;
	stats->tx_bytes += s->bytes - IPOIB_ENCAP_BYTES;
	if (s->mss)
		stats->tx_bytes += (packets - 1) * (s->headers - (size_t)IPOIB_ENCAP_BYTES);
}

void ipoib_sent(struct ib_cq *cq, struct ib_wc *wc)
{
	struct ipoib_send *s = container_of(wc->wr_cqe, struct ipoib_send, cqe);
	struct ipoib *p = s->ipoib;

	if (wc->status == IB_WC_SUCCESS) {
		count_sent(s);
	} else {
		p->stats.tx_errors++;
		if (wc->status != IB_WC_WR_FLUSH_ERR && !s->conn && !p->closing)
			restart_queue(p);
	}
	if (s->conn)
		ipoib_conn_sent(s->conn, wc->status != IB_WC_SUCCESS);
	ipoib_send_free(s);
}

void ipoib_post(struct ipoib_send *s, struct ib_ah *ah, u32 qpn)
{
	struct ipoib *p = s->ipoib;
	size_t headers = s->mss ? s->headers : 0;
	struct ib_sge sge = {
		.addr = ib_dma_map_single(p->device, s->frame + headers, s->bytes - headers,
					  DMA_TO_DEVICE),
		.length = (u32)(s->bytes - headers),
		.lkey = p->pd->local_dma_lkey,
	};
	struct ib_ud_wr wr = {
		.wr = {.wr_cqe = &s->cqe,
		       .sg_list = &sge,
		       .num_sge = 1,
		       .opcode = s->mss ? IB_WR_LSO : IB_WR_SEND,
		       .send_flags = IB_SEND_SIGNALED | (s->offloaded ? IB_SEND_IP_CSUM : 0)},
		.ah = ah,
		.header = s->frame,
		.hlen = s->headers,
		.mss = s->mss,
		.remote_qpn = qpn,
		.remote_qkey = p->qkey,
		.port_num = p->port_num,
	};

	s->cqe.done = ipoib_sent;
	if (ib_post_send(p->qp, &wr.wr, NULL)) {
		p->stats.tx_errors++;
		ipoib_send_free(s);
	}
}

/* --- receives --- */

static void received(struct ib_cq *cq, struct ib_wc *wc);

static int post_receive(struct ipoib *p, struct ipoib_receive *r)
{
	struct ib_sge sge = {
		.addr = ib_dma_map_single(p->device, r->grh, r->bytes, DMA_FROM_DEVICE),
		.length = r->bytes,
		.lkey = p->pd->local_dma_lkey,
	};
	struct ib_recv_wr wr = {.wr_cqe = &r->cqe, .sg_list = &sge, .num_sge = 1};

	return ib_post_recv(p->qp, &wr, NULL);
}

/* Return: was it posted? */
static bool add_receive(struct ipoib *p, struct ipoib_receives *block, struct ipoib_receive *r)
{
	r->ipoib = p;
	r->block = block;
	r->bytes = (u32)(sizeof(r->grh) + IPOIB_ENCAP_BYTES + p->room);
	r->cqe.done = received;
	if (post_receive(p, r))
		return false;
	list_add_tail(&r->node, &p->receives);
	p->num_receives++;
	block->num++;
	return true;
}

/* Before the broadcast group has told its MTU nothing is received. */
static void add_receives(struct ipoib *p)
{
	const size_t each = ALIGN_UP(sizeof(struct ipoib_receive) + IPOIB_ENCAP_BYTES + p->room,
				     _Alignof(struct ipoib_receive));
	const unsigned int num = p->mtu && p->num_receives < p->want_receives ?
					 p->want_receives - p->num_receives :
					 0;
	const size_t bytes = sizeof(struct ipoib_receives) + num * each;
	struct ipoib_receives *block = num ? rt_alloc_pages(bytes) : NULL;
	u8 *at = (u8 *)(block + 1);

	if (!block)
		return;
	block->bytes = bytes;
	for (unsigned int i = 0; i < num && add_receive(p, block, (void *)at); i++)
		at += each;
	if (!block->num)
		rt_free_pages(block, bytes);
}

int ipoib_queue_set_mtu(struct ipoib *p, int bytes)
{
	unsigned int mtu = (unsigned int)bytes - IPOIB_ENCAP_BYTES;
	bool too_small = p->num_receives && mtu > p->room, changed = mtu != p->mtu;

	if (bytes <= IPOIB_ENCAP_BYTES)
		return -EINVAL;
	p->mtu = mtu;
	if (mtu > p->room) {
		p->room = mtu;
		trim_sends(p);
	}
	if (changed)
		ipoib_set_mtu(p);
	if (too_small) {
		rt_work_queue(p->device->rt, &p->restart);
		return -EAGAIN;
	}
	add_receives(p);
	return p->num_receives ? 0 : -ENOMEM;
}

static void drop_receive(struct ipoib_receive *r)
{
	struct ipoib_receives *block = r->block;

	list_del(&r->node);
	r->ipoib->num_receives--;
	if (!--block->num)
		rt_free_pages(block, block->bytes);
}

static void repost(struct ipoib_receive *r)
{
	struct ipoib *p = r->ipoib;

	if (p->closing || p->stopped || post_receive(p, r))
		drop_receive(r);
}

void ipoib_receives_free(struct ipoib *p, void *const *receive, unsigned int num)
{
	p->num_kept -= num;
	for (unsigned int i = 0; i < num; i++)
		repost(receive[i]);
}

static void want_receives(struct ipoib *p, unsigned int want);

/* Half of the receives are for what arrives meanwhile. */
static void keep(struct ipoib *p)
{
	if (++p->num_kept <= p->want_receives / 2)
		return;
	want_receives(p, 2 * p->want_receives);
	add_receives(p);
	if (p->num_kept > p->num_receives / 2)
		ipoib_host_flush(p);
}

static void received(struct ib_cq *cq, struct ib_wc *wc)
{
	struct ipoib_receive *r = container_of(wc->wr_cqe, struct ipoib_receive, cqe);
	struct ipoib *p = r->ipoib;
	bool kept = false;
	bool own = wc->src_qp == p->own.qpn &&
		   !memcmp(r->grh + offsetof(struct ib_grh, sgid), &p->own.gid, sizeof(p->own.gid));

	if (wc->status == IB_WC_WR_FLUSH_ERR) {
		drop_receive(r);
		return;
	}
	if (wc->status != IB_WC_SUCCESS ||
	    wc->byte_len < sizeof(r->grh) + IPOIB_ENCAP_BYTES)
		p->stats.rx_errors++;
	else if (!(wc->wc_flags & IB_WC_GRH && own)) /* a group's member hears itself */
		kept = ipoib_received(p, r->frame, wc->byte_len - sizeof(r->grh),
				      wc->wc_flags & IB_WC_IP_CSUM_OK, r);
	if (kept)
		keep(p);
	else
		repost(r);
}

/* --- the completion queue --- */

static int cq_entries(const struct ipoib *p, unsigned int receives)
{
	return (int)(IPOIB_SENDS_MOST + receives + (p->srq ? IPOIB_CONN_RECEIVES : 0));
}

int ipoib_queue_size(struct ipoib *p, unsigned int receives)
{
	return ib_resize_cq(p->cq, cq_entries(p, receives));
}

/* Half of the receives are left for what arrives until the event has been taken up. */
int ipoib_queue_moderate(struct ipoib *p)
{
	unsigned int most = (p->srq ? IPOIB_CONN_RECEIVES : p->want_receives) / 2;
	struct ipoib_moderation m = p->moderation;

	if (p->host_waits)
		m.frames = 0;
	return rdma_set_cq_moderation(p->cq, (u16)MIN(m.frames, most), m.usecs);
}

static void want_receives(struct ipoib *p, unsigned int want)
{
	want = MIN(want, (unsigned int)IPOIB_RECEIVES_MOST);
	if (want <= p->want_receives || ipoib_queue_size(p, want))
		return;
	p->want_receives = want;
	if (p->moderation.frames)
		ipoib_queue_moderate(p);
}

void ipoib_queue_expect(struct ipoib *p)
{
	want_receives(p, IPOIB_RECEIVES_KNOWN);
	if (!p->closing && !p->stopped)
		add_receives(p);
}

static void shrink_later(struct ipoib *p)
{
	if (p->closing || p->num_neighbours || p->want_receives <= IPOIB_RECEIVES_FIRST)
		return;
	p->most_used = 0;
	rt_timer_arm(&p->shrink, mono_add(rt_now(p->device->rt), QUIET_MS * NSEC_PER_MSEC));
}

void ipoib_queue_idle(struct ipoib *p)
{
	trim_sends(p);
	shrink_later(p);
}

static void grow_receives(struct ipoib *p, unsigned int used)
{
	p->most_used = MAX(p->most_used, used);
	if (p->closing || p->stopped)
		return;
	if (used > p->want_receives / 2) {
		want_receives(p, 2 * p->want_receives);
		if (!rt_timer_armed(&p->shrink))
			shrink_later(p);
	}
	add_receives(p);
}

static void drain_cq(struct ipoib *p, unsigned int budget)
{
	unsigned int used = 0;
	struct ib_wc wc[16];
	int n;

	do {
		while ((n = ib_poll_cq(p->cq, ARRAY_SIZE(wc), wc)) > 0) {
			for (int i = 0; i < n; i++) {
				used += wc[i].opcode == IB_WC_RECV && wc[i].qp == p->qp;
				wc[i].wr_cqe->done(p->cq, &wc[i]);
			}
			p->stats.completions += (unsigned int)n;
			budget -= MIN(budget, (unsigned int)n);
			if (!budget) {
				grow_receives(p, used);
				send_released(p);
				rt_work_queue(p->device->rt, &p->drain);
				return;
			}
		}
	} while (ib_req_notify_cq(p->cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS) >
		 0);
	grow_receives(p, used);
	send_released(p);
}

static void comp_handler(struct ib_cq *cq, void *cq_context)
{
	struct ipoib *p = cq_context;

	p->stats.events++;
	drain_cq(p, CQ_BUDGET);
}

int ipoib_set_moderation(struct ipoib *p, const struct ipoib_moderation *moderation)
{
	struct ipoib_moderation before = p->moderation;
	int ret;

	p->moderation = *moderation;
	ret = ipoib_queue_moderate(p);
	if (ret)
		p->moderation = before;
	return ret;
}

struct ipoib_moderation ipoib_moderation(const struct ipoib *p)
{
	return p->moderation;
}

void ipoib_queue_poll(struct ipoib *p)
{
	drain_cq(p, CQ_BUDGET);
}

static void drain_work(struct rt_work *work)
{
	drain_cq(container_of(work, struct ipoib, drain), CQ_BUDGET);
}

/* --- the queue pair --- */

int ipoib_set_qkey(struct ipoib *p, u32 qkey)
{
	struct ib_qp_attr attr = {.qp_state = IB_QPS_RTS, .qkey = qkey};
	int ret = ib_modify_qp(p->qp, &attr, IB_QP_QKEY);

	if (!ret)
		p->qkey = qkey;
	return ret;
}

static int start_qp(struct ipoib *p)
{
	struct ib_qp_attr attr = {.qp_state = IB_QPS_INIT, .port_num = (u8)p->port_num};
	int ret = ib_find_cached_pkey(p->device, p->port_num, p->pkey, &attr.pkey_index);

	if (!ret)
		ret = ib_modify_qp(p->qp, &attr,
				   IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
					   IB_QP_QKEY);
	p->pkey_index = attr.pkey_index;
	attr.qp_state = IB_QPS_RTR;
	if (!ret)
		ret = ib_modify_qp(p->qp, &attr, IB_QP_STATE);
	attr.qp_state = IB_QPS_RTS;
	if (!ret)
		ret = ib_modify_qp(p->qp, &attr, IB_QP_STATE | IB_QP_SQ_PSN);
	return ret;
}

/* An asynchronous error left the queue pair in the state Error (IBA v1 11.6.3.2). */
static void qp_event(struct ib_event *event, void *qp_context)
{
	struct ipoib *p = qp_context;

	if (event->event == IB_EVENT_QP_FATAL || event->event == IB_EVENT_QP_REQ_ERR ||
	    event->event == IB_EVENT_QP_ACCESS_ERR)
		rt_work_queue(p->device->rt, &p->restart);
}

static int open_qp(struct ipoib *p)
{
	struct ib_qp_init_attr init = {
		.event_handler = qp_event,
		.qp_context = p,
		.send_cq = p->cq,
		.recv_cq = p->cq,
		.cap = {.max_send_wr = IPOIB_SENDS_MOST,
			.max_recv_wr = IPOIB_RECEIVES_MOST,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.sq_sig_type = IB_SIGNAL_ALL_WR,
		.qp_type = IB_QPT_UD,
		.create_flags = p->offloads ? IB_QP_CREATE_IPOIB_UD_LSO : 0,
	};
	struct ib_qp *qp = ib_create_qp(p->pd, &init);

	if (IS_ERR(qp))
		return (int)PTR_ERR(qp);
	p->qp = qp;
	p->own.qpn = qp->qp_num;
	return start_qp(p);
}

static void shrink(struct rt_timer *timer);

void ipoib_queue_init(struct ipoib *p)
{
	rt_timer_init(p->device->rt, &p->shrink, shrink);
	INIT_LIST_HEAD(&p->receives);
	p->room = IPOIB_MTU;
	INIT_LIST_HEAD(&p->spare_sends);
	INIT_LIST_HEAD(&p->released);
	rt_work_init(&p->drain, drain_work);
}

int ipoib_queue_open(struct ipoib *p)
{
	struct ib_cq_init_attr attr = {.cqe = cq_entries(p, IPOIB_RECEIVES_FIRST)};
	struct ib_pd *pd = ib_alloc_pd(p->device, 0);
	struct ib_cq *cq;
	int ret;

	if (IS_ERR(pd))
		return (int)PTR_ERR(pd);
	p->pd = pd;
	cq = ib_create_cq(p->device, comp_handler, NULL, p, &attr);
	if (IS_ERR(cq))
		return (int)PTR_ERR(cq);
	p->cq = cq;
	p->offloads = (p->device->attrs.device_cap_flags & OFFLOAD_CAPS) == OFFLOAD_CAPS;
	ret = ib_req_notify_cq(cq, IB_CQ_NEXT_COMP);
	if (ret >= 0)
		ret = open_qp(p);
	if (ret)
		return ret;
	p->want_receives = IPOIB_RECEIVES_FIRST;
	return 0;
}

int ipoib_queue_restart(struct ipoib *p)
{
	struct ib_qp_attr attr = {.qp_state = IB_QPS_ERR};
	int ret = ib_modify_qp(p->qp, &attr, IB_QP_STATE);

	if (ret)
		return ret;
	drain_cq(p, UINT32_MAX); /* p->stopped: flushed receives are freed */
	ipoib_host_flush(p);
	attr.qp_state = IB_QPS_RESET;
	ret = ib_modify_qp(p->qp, &attr, IB_QP_STATE);
	if (!ret)
		ret = start_qp(p);
	if (!ret)
		add_receives(p);
	return ret;
}

/* A receive that was posted comes back only by a packet or when the queue pair is reset. That
 * loses nothing: packets wait in the adapter until the queue pair is ready again, in the same
 * turn of the loop, and it stays attached to its groups. */
static void repost_first(struct ipoib *p)
{
	int ret;

	p->want_receives = IPOIB_RECEIVES_FIRST;
	p->stopped = true; /* ipoib_queue_restart() wants it */
	ret = ipoib_queue_restart(p);
	p->stopped = false;
	if (!ret)
		ret = ipoib_set_qkey(p, p->qkey);
	if (!ret)
		ret = ipoib_queue_size(p, IPOIB_RECEIVES_FIRST);
	if (!ret && p->moderation.frames)
		ret = ipoib_queue_moderate(p);
	if (ret)
		rt_work_queue(p->device->rt, &p->restart);
	rt_trim_later(p->device->rt);
}

/* When the hosts of a fabric appear, they all tell it to all others, and receives multiply. */
static void shrink(struct rt_timer *timer)
{
	struct ipoib *p = container_of(timer, struct ipoib, shrink);

	drain_cq(p, UINT32_MAX);
	if (p->stopped || p->most_used > IPOIB_RECEIVES_FIRST / 2 || p->num_sends || p->num_conns)
		shrink_later(p); /* with a neighbour: when it has gone */
	else if (!p->num_neighbours && p->num_receives > IPOIB_RECEIVES_FIRST)
		repost_first(p);
}

void ipoib_queue_close(struct ipoib *p)
{
	struct ipoib_receive *r, *next_receive;
	struct ib_qp_attr attr = {.qp_state = IB_QPS_ERR};

	if (p->qp && !ib_modify_qp(p->qp, &attr, IB_QP_STATE))
		drain_cq(p, UINT32_MAX); /* what was posted comes back, flushed; of connections as well */
	ipoib_host_flush(p);
	if (p->qp)
		ib_destroy_qp(p->qp);
	ipoib_connected_close(p);
	rt_work_cancel(&p->drain);
	rt_timer_disarm(&p->shrink);
	list_for_each_entry_safe(r, next_receive, &p->receives, node)
		drop_receive(r);
	trim_sends(p);
	if (p->cq)
		ib_destroy_cq(p->cq);
	if (p->pd)
		ib_dealloc_pd(p->pd);
}
