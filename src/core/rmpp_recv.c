/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * RMPP's receiving side (IBA v1 13.6.6.2): segments become a message.
 *
 * States of a reassembly: ACTIVE until all segments have arrived. Then it is
 * COMPLETE for a while, so that the last ACK can be sent again if it was lost.
 * GIVEN_UP if the sender has sent nothing for too long; segments that arrive
 * later are dropped. A reassembly has one timer. In ACTIVE it limits the time
 * without progress, after which the transfer is aborted. In the other states
 * it frees the reassembly.
 *
 * A peer that sends many first segments and nothing else cannot fill the memory. When an agent has
 * more than TRANSFERS_MAX transfers or SEGMENTS_MAX segments, one transfer is stopped (STOP,
 * resources exhausted) and freed. It is a transfer of the peer port that has the most; among its
 * transfers, it is the one that has got no segment for the longest time. So a port with no more than
 * its share loses no transfer on account of others. If the agent's keeper has less room than that,
 * the transfer that needs more room is stopped.
 *
 * The first segment is acknowledged by itself (the initial window is 1), then
 * the last of each window and the last of the message.
 */
#include <string.h>

#include "core/mad_priv.h"

#define TRANSFERS_MAX 16384	/* of an agent, including finished ones that are kept for a while */
#define SEGMENTS_MAX (1u << 19) /* of an agent: more than a message of 64 MiB has */
#define SILENCE_NS (40 * NSEC_PER_SEC)
#define REMEMBER_NS (10 * NSEC_PER_SEC)

enum rmpp_state { ACTIVE, COMPLETE, GIVEN_UP };

/** struct transfer - the fields that identify a transfer (13.6.6.1) */
struct transfer {
	__be64 tid;
	u32 src_qp, slid;
	u8 mgmt_class, class_version, method;
	u8 reserved[5];
};

/** struct source - the transfers from one port to an agent. It exists while there are any */
struct source {
	struct rt_tree_node node; /* in agent->rmpp_sources */
	struct list_head all;	  /* in agent->rmpp_all_sources */
	u32 slid;
	u32 transfers, segments;
	struct list_head by_age; /* struct rmpp_recv, ordered by the arrival of their latest segments */
};

struct rmpp_recv {
	struct mad_agent *agent;
	struct rt_tree_node node;
	struct source *source;
	struct list_head age; /* in source->by_age */
	struct rt_timer timer;
	enum rmpp_state state;
	struct mad_recv *message; /* ACTIVE: the first segment */
	u32 seg_num;  /* the last segment up to which none is missing */
	struct list_head *reached; /* that segment, in message's list */
	u32 newwin;   /* the last segment that the sender may send */
	u32 last_seg; /* number of the message's last segment; 0: not known yet */
	u32 held;     /* number of segments in @message */
	u32 repwin;   /* of a double-sided transfer: the peer's window for our response */
	struct transfer transfer;
};

static u32 seg_of(const struct ib_mad_recv_buf *buf)
{
	return be32_to_cpu(((const struct ib_rmpp_mad *)buf->mad)->rmpp_hdr.seg_num);
}

static struct rmpp_recv *recv_of(struct rt_tree_node *node)
{
	return node ? container_of(node, struct rmpp_recv, node) : NULL;
}

static int compare(const void *key, const struct rt_tree_node *node)
{
	return memcmp(key, &container_of(node, const struct rmpp_recv, node)->transfer,
		      sizeof(struct transfer));
}

static int compare_source(const void *key, const struct rt_tree_node *node)
{
	return memcmp(key, &container_of(node, const struct source, node)->slid, sizeof(u32));
}

void rmpp_recv_init(struct mad_agent *agent)
{
	struct rt *rt = agent->port->device->rt;

	rt_tree_init(rt, &agent->rmpp_recvs, compare);
	rt_tree_init(rt, &agent->rmpp_sources, compare_source);
	INIT_LIST_HEAD(&agent->rmpp_all_sources);
}

static struct transfer transfer_of(const struct mad_recv *recv)
{
	const struct ib_mad_hdr *hdr = &recv->packet.mad.mad_hdr;

	return (struct transfer){hdr->tid, recv->wc.src_qp, recv->wc.slid, hdr->mgmt_class,
				 hdr->class_version, hdr->method};
}

static struct rmpp_recv *find(struct mad_agent *agent, const struct mad_recv *recv)
{
	struct transfer key = transfer_of(recv);

	return recv_of(rt_tree_find(&agent->rmpp_recvs, &key));
}

static bool take(const struct mad_agent *agent, size_t bytes)
{
	return !agent->keeper || agent->keeper->take(agent->agent.context, bytes);
}

static void give(const struct mad_agent *agent, size_t bytes)
{
	if (agent->keeper)
		agent->keeper->give(agent->agent.context, bytes);
}

void ib_mad_agent_set_keeper(struct ib_mad_agent *mad_agent, const struct ib_mad_keeper *keeper)
{
	mad_agent_of(mad_agent)->keeper = keeper;
}

/* Return: the segments that have arrived, owned by the caller; NULL */
static struct mad_recv *release(struct rmpp_recv *r)
{
	struct mad_recv *message = r->message;

	for (u32 i = 0; i < r->held; i++)
		give(r->agent, sizeof(*message));
	r->agent->rmpp_segments -= r->held;
	r->source->segments -= r->held;
	r->held = 0;
	r->message = NULL;
	return message;
}

static void drop_message(struct rmpp_recv *r)
{
	struct mad_recv *message = release(r);

	if (message)
		ib_free_recv_mad(&message->recv_wc);
}

static struct source *find_source(struct mad_agent *agent, u32 slid)
{
	struct rt_tree_node *node = rt_tree_find(&agent->rmpp_sources, &slid);

	return node ? container_of(node, struct source, node) : NULL;
}

/* Return: false if there is no memory */
static bool join_source(struct rmpp_recv *r, u32 slid)
{
	struct mad_agent *agent = r->agent;
	struct source *source = find_source(agent, slid);

	if (!source) {
		source = rt_zalloc(sizeof(*source));
		if (!source)
			return false;
		source->slid = slid;
		INIT_LIST_HEAD(&source->by_age);
		rt_tree_insert(&agent->rmpp_sources, &source->node, &slid);
		list_add_tail(&source->all, &agent->rmpp_all_sources);
	}
	source->transfers++;
	list_add_tail(&r->age, &source->by_age);
	r->source = source;
	return true;
}

static void leave_source(struct rmpp_recv *r)
{
	struct source *source = r->source;

	list_del(&r->age);
	if (--source->transfers)
		return;
	rt_tree_remove(&source->node);
	list_del(&source->all);
	rt_free(source);
}

static void forget(struct rmpp_recv *r)
{
	rt_timer_disarm(&r->timer);
	rt_tree_remove(&r->node);
	drop_message(r);
	leave_source(r);
	give(r->agent, sizeof(*r));
	rt_free(r);
}

static void arm(struct rmpp_recv *r, u64 ns)
{
	rt_timer_arm(&r->timer, mono_add(rt_now(r->timer.rt), ns));
}

static void on_timer(struct rt_timer *timer)
{
	struct rmpp_recv *r = container_of(timer, struct rmpp_recv, timer);

	if (r->state != ACTIVE) {
		forget(r);
		return;
	}
	rmpp_control(r->agent, r->message, IB_MGMT_RMPP_TYPE_ABORT, IB_MGMT_RMPP_STATUS_T2L, 0,
		     0);
	drop_message(r);
	r->state = GIVEN_UP;
	arm(r, REMEMBER_NS);
}

void rmpp_recv_cleanup(struct mad_agent *agent)
{
	struct rmpp_recv *r;

	while ((r = recv_of(rt_tree_first(&agent->rmpp_recvs))))
		forget(r);
}

/* the response is sent to the source of the request */
int rmpp_recv_window(const struct mad_send *send)
{
	const struct ib_mad_hdr *hdr = send->buf.mad;
	struct transfer request = {hdr->tid, send->wr.remote_qpn, 0, hdr->mgmt_class,
				   hdr->class_version, hdr->method & ~IB_MGMT_METHOD_RESP};
	struct rdma_ah_attr attr = {0};
	struct rmpp_recv *r;

	rdma_query_ah(send->buf.ah, &attr);
	request.slid = attr.dlid;
	r = recv_of(rt_tree_find(&send->agent->rmpp_recvs, &request));
	return r && r->repwin ? (int)r->repwin : 1;
}

/* --- ACK, STOP and ABORT --- */

void rmpp_control(struct mad_agent *agent, struct mad_recv *recv, u8 type, u8 status,
		  u32 seg_num, u32 newwin)
{
	union {
		struct ib_mad mad;
		struct ib_rmpp_mad rmpp;
	} out = {.mad = recv->packet.mad};
	int offset = ib_get_mad_data_offset(out.mad.mad_hdr.mgmt_class);

	memset((u8 *)&out + offset, 0, sizeof(out) - (size_t)offset);
	out.rmpp.mad_hdr.method ^= IB_MGMT_METHOD_RESP; /* it travels in the opposite direction */
	out.rmpp.rmpp_hdr = (struct ib_rmpp_hdr){
		.rmpp_version = IB_MGMT_RMPP_VERSION,
		.rmpp_type = type,
		.rmpp_rtime_flags = IB_MGMT_RMPP_NO_RESPTIME << 3 | IB_MGMT_RMPP_FLAG_ACTIVE,
		.rmpp_status = status,
		.seg_num = cpu_to_be32(seg_num),
		.paylen_newwin = cpu_to_be32(newwin),
	};
	mad_reply(recv, &out.mad);
}

void rmpp_abort(struct mad_agent *agent, struct mad_recv *recv, u8 status)
{
	struct mad_send *send = mad_match_find(agent, recv);
	struct rmpp_recv *r = find(agent, recv);

	rmpp_control(agent, recv, IB_MGMT_RMPP_TYPE_ABORT, status, 0, 0);
	if (r)
		forget(r);
	if (send) /* the error is in an ACK for @send, or in the response to it */
		mad_send_finish(send, IB_WC_REM_ABORT_ERR, status);
}

static void acknowledge(struct rmpp_recv *r, struct mad_recv *recv)
{
	rmpp_control(r->agent, recv, IB_MGMT_RMPP_TYPE_ACK, IB_MGMT_RMPP_STATUS_SUCCESS,
		     r->seg_num, r->newwin);
}

/* --- segments --- */

static struct rmpp_recv *start(struct mad_agent *agent, struct mad_recv *recv)
{
	struct rmpp_recv *r;

	if (!take(agent, sizeof(*r)))
		return NULL;
	r = rt_zalloc(sizeof(*r));
	if (!r) {
		give(agent, sizeof(*r));
		return NULL;
	}
	r->agent = agent;
	r->newwin = 1;
	if (!agent->own_qp)
		mad_qp_expect_window(agent->mqp);
	r->transfer = transfer_of(recv);
	rt_timer_init(agent->port->device->rt, &r->timer, on_timer);
	if (!join_source(r, r->transfer.slid)) {
		give(agent, sizeof(*r));
		rt_free(r);
		return NULL;
	}
	rt_tree_insert(&agent->rmpp_recvs, &r->node, &r->transfer);
	return r;
}

/* Return: false if the segment has been received already */
static bool insert(struct rmpp_recv *r, struct mad_recv *recv)
{
	struct ib_mad_recv_buf *buf = &recv->recv_wc.recv_buf, *at;
	struct list_head *segments, *pos;

	if (!r->message) {
		r->message = recv;
		return true;
	}
	segments = &r->message->recv_wc.rmpp_list;
	for (pos = segments->prev; pos != segments; pos = pos->prev) {
		at = list_entry(pos, struct ib_mad_recv_buf, list);
		if (seg_of(at) == seg_of(buf))
			return false;
		if (seg_of(at) < seg_of(buf))
			break;
	}
	list_del(&buf->list);
	list_add(&buf->list, pos);
	return true;
}

/* A message may have 100,000 segments, so the search continues where it ended last time. */
static void advance(struct rmpp_recv *r)
{
	struct list_head *segments = &r->message->recv_wc.rmpp_list, *next;

	if (!r->reached)
		r->reached = segments;
	for (next = r->reached->next; next != segments; next = next->next) {
		if (seg_of(list_entry(next, struct ib_mad_recv_buf, list)) != r->seg_num + 1)
			return;
		r->seg_num++;
		r->reached = next;
	}
}

/* The length of a message: its headers once, and the data of all segments without the padding of the last one */
static int message_length(const struct rmpp_recv *r)
{
	const struct ib_mad_recv_buf *last =
		list_entry(r->message->recv_wc.rmpp_list.prev, struct ib_mad_recv_buf, list);
	const struct ib_rmpp_mad *mad = (const void *)last->mad;
	int offset = ib_get_mad_data_offset(r->transfer.mgmt_class);
	int data = IB_MGMT_MAD_SIZE - offset;
	u32 used = be32_to_cpu(mad->rmpp_hdr.paylen_newwin);
	int total = (int)r->last_seg * data;

	if (r->last_seg == 1 && used == 0) /* some senders leave the length of a single segment open */
		return offset + data;
	if (used > IB_MGMT_RMPP_DATA || (int)(IB_MGMT_RMPP_DATA - used) > data)
		return -1;
	return offset + total - (int)(IB_MGMT_RMPP_DATA - used);
}

static struct mad_recv *complete(struct rmpp_recv *r, struct mad_recv *recv)
{
	int length = message_length(r);
	struct mad_recv *message;

	if (length < 0) {
		rmpp_abort(r->agent, recv, IB_MGMT_RMPP_STATUS_BAD_LEN);
		return NULL;
	}
	acknowledge(r, recv);
	message = release(r);
	message->recv_wc.mad_len = length;
	r->state = COMPLETE;
	arm(r, REMEMBER_NS);
	return message;
}

/* Data shows that the response is under way, so the request is not repeated. */
static void prolong_request(struct mad_agent *agent, struct mad_recv *recv)
{
	struct mad_send *send = mad_match_find(agent, recv);

	if (send && rt_timer_armed(&send->timer))
		mad_send_wait(send, send->buf.timeout_ms);
}

/* Return: the transfer that has to end because the agent has too many transfers or segments; NULL: it
 * does not have too many */
static struct rmpp_recv *surplus(const struct mad_agent *agent)
{
	bool transfers = agent->rmpp_recvs.count > TRANSFERS_MAX;
	struct source *source, *most = NULL;

	if (!transfers && agent->rmpp_segments <= SEGMENTS_MAX)
		return NULL;
	list_for_each_entry(source, &agent->rmpp_all_sources, all)
		if (!most || (transfers ? source->transfers > most->transfers
					: source->segments > most->segments))
			most = source;
	return list_first_entry(&most->by_age, struct rmpp_recv, age);
}

static void stop(struct rmpp_recv *r)
{
	if (r->message)
		rmpp_control(r->agent, r->message, IB_MGMT_RMPP_TYPE_STOP, IB_MGMT_RMPP_STATUS_RESX, 0,
			     0);
	forget(r);
}

/* Account for a segment of @r. Return: false if @r itself was ended to make room */
static bool charge(struct rmpp_recv *r)
{
	struct mad_agent *agent = r->agent;
	struct rmpp_recv *ended = NULL;

	if (!take(agent, sizeof(*r->message))) {
		stop(r);
		return false;
	}
	r->held++;
	r->source->segments++;
	agent->rmpp_segments++;
	list_del(&r->age);
	list_add_tail(&r->age, &r->source->by_age);
	while (ended != r && (ended = surplus(agent)))
		stop(ended);
	return ended != r;
}

static struct mad_recv *take_segment(struct rmpp_recv *r, struct mad_recv *recv)
{
	const struct ib_rmpp_hdr *hdr = &recv->packet.rmpp.rmpp_hdr;
	u32 seg = be32_to_cpu(hdr->seg_num);

	if (r->state != ACTIVE || seg <= r->seg_num) { /* the ACK was lost */
		if (r->state != GIVEN_UP)
			acknowledge(r, recv);
		ib_free_recv_mad(&recv->recv_wc);
		return NULL;
	}
	if (seg > r->newwin || (r->last_seg && seg > r->last_seg) || !insert(r, recv)) {
		ib_free_recv_mad(&recv->recv_wc);
		return NULL;
	}
	if (!charge(r))
		return NULL;
	if (ib_get_rmpp_flags(hdr) & IB_MGMT_RMPP_FLAG_LAST)
		r->last_seg = seg;
	advance(r);
	arm(r, SILENCE_NS);
	prolong_request(r->agent, recv);
	if (r->seg_num == r->last_seg)
		return complete(r, recv);
	if (r->seg_num == r->newwin) {
		r->newwin += RMPP_WINDOW;
		acknowledge(r, recv);
	}
	return NULL;
}

/* --- by type (13.6.2.1) --- */

static struct mad_recv *refuse(struct mad_agent *agent, struct mad_recv *recv, u8 status)
{
	rmpp_abort(agent, recv, status);
	ib_free_recv_mad(&recv->recv_wc);
	return NULL;
}

static struct mad_recv *on_data(struct mad_agent *agent, struct mad_recv *recv)
{
	const struct ib_rmpp_hdr *hdr = &recv->packet.rmpp.rmpp_hdr;
	bool first = ib_get_rmpp_flags(hdr) & IB_MGMT_RMPP_FLAG_FIRST;
	u32 seg = be32_to_cpu(hdr->seg_num);
	struct rmpp_recv *r;

	if (hdr->rmpp_status)
		return refuse(agent, recv, IB_MGMT_RMPP_STATUS_BAD_STATUS);
	if (seg == 0 || (seg == 1) != first)
		return refuse(agent, recv, IB_MGMT_RMPP_STATUS_BAD_SEG);
	r = find(agent, recv);
	if (!r && first)
		r = start(agent, recv);
	if (r)
		return take_segment(r, recv);
	ib_free_recv_mad(&recv->recv_wc); /* a segment of a transfer that is not known any more */
	return NULL;
}

static struct mad_recv *on_ack(struct mad_agent *agent, struct mad_recv *recv)
{
	const struct ib_rmpp_hdr *hdr = &recv->packet.rmpp.rmpp_hdr;
	struct rmpp_recv *r = find(agent, recv);

	if (hdr->rmpp_status)
		return refuse(agent, recv, IB_MGMT_RMPP_STATUS_BAD_STATUS);
	/* 13.6.6.3: an ACK of nothing, after a request of several segments,
	 * turns the direction and tells the window for the response, which
	 * may be under way already */
	if (!hdr->seg_num && r && r->state == COMPLETE)
		r->repwin = be32_to_cpu(hdr->paylen_newwin);
	rmpp_send_ack(agent, recv);
	ib_free_recv_mad(&recv->recv_wc);
	return NULL;
}

static struct mad_recv *on_stop(struct mad_agent *agent, struct mad_recv *recv)
{
	struct rmpp_recv *r = find(agent, recv);

	if (r && r->state == ACTIVE)
		forget(r);
	rmpp_send_stop(agent, recv);
	ib_free_recv_mad(&recv->recv_wc);
	return NULL;
}

bool rmpp_is_active(const struct mad_agent *agent, const struct ib_mad *mad)
{
	const struct ib_rmpp_mad *rmpp = (const void *)mad;

	return agent->agent.rmpp_version && !(agent->agent.flags & IB_MAD_USER_RMPP) &&
	       ib_is_mad_class_rmpp(mad->mad_hdr.mgmt_class) &&
	       (ib_get_rmpp_flags(&rmpp->rmpp_hdr) & IB_MGMT_RMPP_FLAG_ACTIVE);
}

struct mad_recv *rmpp_receive(struct mad_agent *agent, struct mad_recv *recv)
{
	static struct mad_recv *(*const by_type[])(struct mad_agent *, struct mad_recv *) = {
		[IB_MGMT_RMPP_TYPE_DATA] = on_data,
		[IB_MGMT_RMPP_TYPE_ACK] = on_ack,
		[IB_MGMT_RMPP_TYPE_STOP] = on_stop,
		[IB_MGMT_RMPP_TYPE_ABORT] = on_stop,
	};
	const struct ib_rmpp_hdr *hdr = &recv->packet.rmpp.rmpp_hdr;

	if (hdr->rmpp_version != IB_MGMT_RMPP_VERSION)
		return refuse(agent, recv, IB_MGMT_RMPP_STATUS_UNV);
	if (hdr->rmpp_type >= ARRAY_SIZE(by_type) || !by_type[hdr->rmpp_type])
		return refuse(agent, recv, IB_MGMT_RMPP_STATUS_BADT);
	return by_type[hdr->rmpp_type](agent, recv);
}
