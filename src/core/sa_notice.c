/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Notices of the subnet (13.4.8, 15.3.3). A port subscribes to notices at the SA
 * by Set(InformInfo). The SA then sends Reports to QP1, which are answered and
 * passed to the subscribers of their trap number.
 *
 * States of a subscription, in their order:
 *  IDLE	no request was sent, or the SA refused it
 *  ASKING	Set(InformInfo) is outstanding
 *  STANDS	the SA has accepted it
 *  LEAVING	there is no subscriber any more; a Set that unsubscribes is outstanding
 */
#include <string.h>

#include "core/sa_priv.h"
#include "core/trace.h"
#include "wire/mad.h"

#define ALL_LIDS 0xffff
#define ALL_TYPES 0xffff
#define ALL_PRODUCERS 0xffffff
#define RESP_TIME_ENC 19 /* 2 s: the time within which this port answers a Report */

enum inform_state { IDLE, ASKING, STANDS, LEAVING };

/** struct sa_inform - a port's subscription to one trap number */
struct sa_inform {
	struct list_head node; /* port->notices */
	struct sa_port *port;
	u16 trap_number;
	enum inform_state state;
	struct list_head subscribers;
	unsigned int num; /* number of subscribers, including those whose callback is running */
	unsigned int telling; /* not 0 while callbacks run: then it must not be freed */
	bool stale;	      /* while ASKING: the port has another SA than the one that was asked */
	int error;	      /* why it is IDLE */
};

struct subscriber {
	struct ib_inform_info info;
	struct list_head node;
	struct sa_inform *inform;
	bool reported; /* the callback has been called since it was registered */
	struct rt_work work;
};

static void ask(struct sa_inform *inform, bool subscribe);

/* --- callbacks of subscribers --- */

static void drop(struct subscriber *sub)
{
	rt_work_cancel(&sub->work);
	list_del(&sub->node);
	sub->inform->num--;
	rt_free(sub);
}

/* If the subscription has no subscriber left, end it, now or when the SA has answered. */
static void release(struct sa_inform *inform)
{
	if (inform->num || inform->telling || inform->state == ASKING || inform->state == LEAVING)
		return;
	if (inform->state == STANDS && !inform->port->closing) {
		ask(inform, false);
		return;
	}
	list_del(&inform->node);
	rt_free(inform);
}

static void report(struct subscriber *sub, int status, struct ib_sa_notice *notice)
{
	if (sub->info.callback(status, &sub->info, notice))
		drop(sub);
}

/* Call the callbacks of the subscribers, which may register and unregister others. @unreported: only
 * those that have not been called yet */
static void report_all(struct sa_inform *inform, int status, struct ib_sa_notice *notice,
		       bool unreported)
{
	LIST_HEAD(todo);

	inform->telling++;
	list_splice_tail_init(&inform->subscribers, &todo);
	while (!list_empty(&todo)) {
		struct subscriber *sub = list_first_entry(&todo, struct subscriber, node);

		list_del(&sub->node);
		list_add_tail(&sub->node, &inform->subscribers);
		if (unreported && sub->reported)
			continue;
		sub->reported = true;
		report(sub, status, notice);
	}
	inform->telling--;
	release(inform);
}

/* --- requests to the SA --- */

static void inform_answered(struct ib_sa_query *query, int status, const struct sa_reply *reply)
{
	struct sa_inform *inform = query->context;
	bool left = inform->state == LEAVING;

	inform->state = status || left ? IDLE : STANDS;
	if (inform->port->closing)
		release(inform);
	else if (inform->num && (left || inform->stale))
		ask(inform, true); /* there is a new subscriber or another SA */
	else if (left)
		release(inform);
	else
		report_all(inform, status, NULL, !status);
}

static void report_sent(struct ib_mad_agent *agent, struct ib_mad_send_wc *wc)
{
	rdma_destroy_ah(wc->send_buf->ah, 0);
	ib_free_send_mad(wc->send_buf);
}

static void report_received(struct ib_mad_agent *agent, struct ib_mad_send_buf *buf,
			    struct ib_mad_recv_wc *recv_wc);

static int open_reports(struct sa_port *port)
{
	struct ib_mad_reg_req req = {
		.mgmt_class = IB_MGMT_CLASS_SUBN_ADM,
		.mgmt_class_version = IB_SA_CLASS_VERSION,
		.method_mask = {1ul << IB_MGMT_METHOD_REPORT},
	};
	struct ib_mad_agent *agent;

	if (port->report_agent)
		return 0;
	agent = ib_register_mad_agent_(port->device, port->port_num, IB_QPT_GSI, &req, 0,
				      report_sent, report_received, port, 0, "sa");
	if (IS_ERR(agent))
		return (int)PTR_ERR(agent);
	port->report_agent = agent;
	return 0;
}

static int send_set(struct sa_inform *inform, bool subscribe)
{
	struct wire_inform_info info = {
		.lid_range_begin = ALL_LIDS,
		.is_generic = 1,
		.subscribe = subscribe,
		.type = ALL_TYPES,
		.trap_number = inform->trap_number,
		.qpn = subscribe ? 0 : 1, /* 13.4.8.3: the QP that has subscribed */
		.resp_time_enc = RESP_TIME_ENC,
		.producer = ALL_PRODUCERS,
	};
	struct sa_request request = {.method = IB_MGMT_METHOD_SET,
				     .attr_id = IB_SA_ATTR_INFORM_INFO,
				     .timeout_ms = SA_TIMEOUT_MS,
				     .codec = &wire_inform_info_codec,
				     .record = &info};
	struct ib_sa_query *query = sa_query_alloc(inform->port);
	int ret;

	if (!query)
		return -ENOMEM;
	query->answer = inform_answered;
	query->context = inform;
	ret = sa_query_start(query, sa_client_of(query->port), &request);
	return MIN(ret, 0);
}

/* Send Set(InformInfo). If that fails at once, the callbacks are called from the loop. */
static void ask(struct sa_inform *inform, bool subscribe)
{
	int ret = subscribe ? open_reports(inform->port) : 0;
	struct subscriber *sub;

	if (!ret)
		ret = send_set(inform, subscribe);
	trace_sa_subscribe(RT_TRACE_AT(inform->port->device, inform->port->port_num),
			   inform->trap_number, subscribe ? "subscribe" : "unsubscribe", ret);
	inform->stale = false;
	inform->error = ret;
	if (!ret) {
		inform->state = subscribe ? ASKING : LEAVING;
		return;
	}
	inform->state = IDLE;
	list_for_each_entry(sub, &inform->subscribers, node)
		if (!sub->reported)
			rt_work_queue(inform->port->device->rt, &sub->work);
	release(inform);
}

/* --- Reports --- */

static void answer_report(struct ib_mad_agent *agent, struct ib_mad_recv_wc *recv_wc)
{
	const struct ib_mad *report = recv_wc->recv_buf.mad;
	struct ib_mad_send_buf *buf =
		ib_create_send_mad(agent, recv_wc->wc->src_qp, recv_wc->wc->pkey_index, 0,
				   IB_MGMT_SA_HDR, IB_MGMT_SA_DATA, GFP_ATOMIC,
				   IB_MGMT_BASE_VERSION);
	struct ib_mad *mad;

	if (IS_ERR(buf))
		return; /* the SA sends the Report again */
	buf->ah = ib_create_ah_from_wc(agent->qp->pd, recv_wc->wc, recv_wc->recv_buf.grh,
				       agent->port_num);
	if (!IS_ERR(buf->ah)) {
		mad = buf->mad;
		*mad = *report;
		mad->mad_hdr.method = IB_MGMT_METHOD_REPORT_RESP;
		if (!ib_post_send_mad(buf, NULL))
			return;
		rdma_destroy_ah(buf->ah, 0);
	}
	ib_free_send_mad(buf);
}

static struct sa_inform *find(struct sa_port *port, u16 trap_number)
{
	struct sa_inform *inform;

	list_for_each_entry(inform, &port->notices, node)
		if (inform->trap_number == trap_number)
			return inform;
	return NULL;
}

static void report_received(struct ib_mad_agent *agent, struct ib_mad_send_buf *buf,
			    struct ib_mad_recv_wc *recv_wc)
{
	const struct ib_mad *mad = recv_wc->recv_buf.mad;
	struct ib_sa_notice notice;
	struct sa_inform *inform;
	struct wire_notice wire;

	answer_report(agent, recv_wc);
	wire_notice_decode((const u8 *)mad + IB_MGMT_SA_HDR, IB_MGMT_SA_DATA, &wire);
	trace_sa_notice(RT_TRACE_AT(agent->device, agent->port_num), wire.trap_number,
			wire.issuer_lid);
	inform = mad->mad_hdr.attr_id == cpu_to_be16(IB_SA_ATTR_NOTICE) && wire.is_generic ?
			 find(agent->context, wire.trap_number) :
			 NULL;
	ib_free_recv_mad(recv_wc);
	if (!inform || inform->state != STANDS)
		return;
	notice = (struct ib_sa_notice){
		.is_generic = 1,
		.type = wire.type,
		.producer = wire.producer,
		.trap_number = wire.trap_number,
		.issuer_lid = wire.issuer_lid,
		.count = wire.count,
	};
	memcpy(notice.data_details, wire.details, sizeof(notice.data_details));
	memcpy(&notice.issuer_gid, &wire.issuer_gid, sizeof(notice.issuer_gid));
	report_all(inform, 0, &notice, false);
}

/* --- subscribers --- */

/* Report the state to subscribers that were added when the subscription stood already, or when the
 * request could not be sent. */
static void report_work(struct rt_work *work)
{
	struct subscriber *sub = container_of(work, struct subscriber, work);
	struct sa_inform *inform = sub->inform;
	enum inform_state state = inform->state;

	if (sub->reported || (state != STANDS && state != IDLE))
		return;
	sub->reported = true;
	inform->telling++;
	report(sub, state == STANDS ? 0 : inform->error, NULL);
	inform->telling--;
	release(inform);
}

static struct sa_inform *find_or_make(struct sa_port *port, u16 trap_number)
{
	struct sa_inform *inform = find(port, trap_number);

	if (inform)
		return inform;
	inform = rt_zalloc(sizeof(*inform));
	if (!inform)
		return NULL;
	inform->port = port;
	inform->trap_number = trap_number;
	INIT_LIST_HEAD(&inform->subscribers);
	list_add_tail(&inform->node, &port->notices);
	return inform;
}

struct ib_inform_info *ib_sa_register_inform_info(
	struct ib_sa_client *client, struct ib_device *device, u32 port_num, u16 trap_number,
	gfp_t gfp_mask,
	int (*callback)(int status, struct ib_inform_info *info, struct ib_sa_notice *notice),
	void *context)
{
	struct sa_port *port = sa_port_find(device, port_num);
	struct subscriber *sub = port && !port->closing ? rt_zalloc(sizeof(*sub)) : NULL;
	struct sa_inform *inform = sub ? find_or_make(port, trap_number) : NULL;

	if (!inform) {
		rt_free(sub);
		return ERR_PTR(port && !port->closing ? -ENOMEM : -ENODEV);
	}
	sub->info = (struct ib_inform_info){context, callback, trap_number};
	sub->inform = inform;
	rt_work_init(&sub->work, report_work);
	list_add_tail(&sub->node, &inform->subscribers);
	inform->num++;
	if (inform->state == STANDS)
		rt_work_queue(device->rt, &sub->work);
	else if (inform->state == IDLE)
		ask(inform, true);
	return &sub->info;
}

void ib_sa_unregister_inform_info(struct ib_inform_info *info)
{
	struct subscriber *sub = container_of(info, struct subscriber, info);
	struct sa_inform *inform = sub->inform;

	drop(sub);
	release(inform);
}

/* --- the end of subscriptions --- */

void sa_notices_lost(struct sa_port *port)
{
	LIST_HEAD(todo);

	list_splice_tail_init(&port->notices, &todo);
	while (!list_empty(&todo)) {
		struct sa_inform *inform = list_first_entry(&todo, struct sa_inform, node);

		list_del(&inform->node);
		list_add_tail(&inform->node, &port->notices);
		inform->stale = inform->state == ASKING;
		if (inform->state != STANDS)
			continue;
		inform->state = IDLE;
		report_all(inform, -ENETRESET, NULL, false);
	}
}

/* All clients were removed before and have ended their subscriptions. The ones that are left have no
 * subscriber; they are freed with their queries (sa_queries_end()). */
void sa_notices_close(struct sa_port *port)
{
	struct sa_inform *inform, *tmp;

	list_for_each_entry_safe(inform, tmp, &port->notices, node)
		release(inform);
	if (port->report_agent)
		ib_unregister_mad_agent(port->report_agent);
	port->report_agent = NULL;
}
