/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Events of a program's ids, which are queued until RDMA_USER_CM_CMD_GET_EVENT reads them. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "access/ucma_private.h"

#define TAKEN_REACH 1024 /* events from the front of the queue among which one that was taken is sought */

static void put_data(u8 *to, u8 *to_bytes, const void *data, u8 bytes)
{
	*to_bytes = data ? bytes : 0;
	if (data)
		memcpy(to, data, bytes);
}

static void put_conn(struct rdma_ucm_conn_param *to, const struct rdma_conn_param *from)
{
	put_data(to->private_data, &to->private_data_len, from->private_data,
		 from->private_data_len);
	to->responder_resources = from->responder_resources;
	to->initiator_depth = from->initiator_depth;
	to->flow_control = from->flow_control;
	to->retry_count = from->retry_count;
	to->rnr_retry_count = from->rnr_retry_count;
	to->srq = from->srq;
	to->qp_num = from->qp_num;
}

void ucma_put_ah(struct ib_uverbs_ah_attr *to, const struct rdma_ah_attr *from)
{
	memcpy(to->grh.dgid, from->grh.dgid.raw, sizeof(to->grh.dgid));
	to->grh.flow_label = from->grh.flow_label;
	to->grh.sgid_index = from->grh.sgid_index;
	to->grh.hop_limit = from->grh.hop_limit;
	to->grh.traffic_class = from->grh.traffic_class;
	to->dlid = from->dlid;
	to->sl = from->sl;
	to->src_path_bits = from->src_path_bits;
	to->static_rate = from->static_rate;
	to->is_global = from->ah_flags & IB_AH_GRH;
	to->port_num = from->port_num;
}

static void put_ud(struct rdma_ucm_ud_param *to, const struct rdma_ud_param *from)
{
	put_data(to->private_data, &to->private_data_len, from->private_data,
		 from->private_data_len);
	ucma_put_ah(&to->ah_attr, &from->ah_attr);
	to->qp_num = from->qp_num;
	to->qkey = from->qkey;
}

/* --- the queues --- */

size_t ucma_event_put(struct ucma_session *s, struct ucma_event *event, void *out)
{
	struct abi_cm_event head = {.resp = event->resp, .number = event->number};
	struct ucma_id *about = event->request ? event->request : event->id;

	memcpy(out, &head, sizeof(head));
	if (event->mcast)
		return sizeof(head);
	return sizeof(head) + ucma_put_ahead(ucma_page_of(s), about, event->resp.event,
					     (u8 *)out + sizeof(head),
					     UCMA_RESPONSE_MAX - sizeof(head));
}

#define BATCH 8 /* events that are sent by one system call */

/* Send the first events that wait. Return: how many were sent, at most BATCH */
static unsigned int send_events(struct ucma_session *s)
{
	_Alignas(8) u8 out[BATCH][UCMA_RESPONSE_MAX];
	struct mmsghdr messages[BATCH] = {0};
	struct iovec parts[BATCH];
	struct ucma_event *event;
	unsigned int n = 0;
	int sent;

	list_for_each_entry(event, &s->waiting, node) {
		if (n == BATCH)
			break;
		event->number = s->last_sent + 1 + n;
		parts[n] = (struct iovec){out[n], ucma_event_put(s, event, out[n])};
		messages[n].msg_hdr = (struct msghdr){.msg_iov = &parts[n], .msg_iovlen = 1};
		n++;
	}
	sent = sendmmsg(s->fd, messages, n, MSG_DONTWAIT | MSG_NOSIGNAL);
	return sent > 0 ? (unsigned int)sent : 0;
}

void ucma_flush(struct ucma_session *s)
{
	struct ucma_event *event;
	unsigned int n;

	while (!list_empty(&s->waiting) && (n = send_events(s)))
		for (; n; n--) {
			event = list_first_entry(&s->waiting, struct ucma_event, node);
			event->sent = true;
			s->last_sent++;
			list_del(&event->node);
			list_add_tail(&event->node, &s->sent);
		}
	rt_io_watch(&s->news, true, !list_empty(&s->waiting));
}

static void queue(struct ucma_id *id, struct ucma_id *request, struct ucma_event *event)
{
	struct ucma_session *s = id->session;

	event->id = id;
	event->request = request;
	/* The answers in advance are of the state in which the handler leaves the id */
	if (list_empty(&s->waiting)) /* else the socket is full */
		rt_work_queue(ucma_rt(s), &s->send);
	list_add_tail(&event->node, &s->waiting);
	list_add_tail(&event->of_id, &id->events);
	if (request)
		request->request = event;
}

static void free_event(struct ucma_event *event)
{
	list_del(&event->of_id);
	if (event->request)
		event->request->request = NULL;
	quota_give(event->charged, &event->id->session->quota, sizeof(*event));
	rt_free(event);
}

/* Return: 1: it was sent; 0 */
static u32 leave_queue(struct ucma_event *event)
{
	list_del(&event->node);
	return event->sent;
}

void ucma_event_taken(struct ucma_event *event)
{
	event->id->events_reported++;
	if (event->mcast)
		event->mcast->events_reported++;
	leave_queue(event);
	free_event(event);
}

/* Programs take events in their order, except for threads that do so at the same time. A program that
 * keeps thousands of events and takes the last ones first must not make softibd search. */
struct ucma_event *ucma_event_find(struct ucma_session *s, u32 number)
{
	unsigned int reach = TAKEN_REACH;
	struct ucma_event *event;

	list_for_each_entry(event, &s->sent, node) {
		if (!reach--)
			return NULL;
		if (event->number == number)
			return event;
	}
	return NULL;
}

/* Remove an event from the queue. The id of a connect request is destroyed, as it was never reported. */
static u32 drop(struct ucma_event *event)
{
	struct ucma_id *request = event->request;
	u32 sent = leave_queue(event);

	free_event(event);
	if (request)
		sent += ucma_id_drop(request);
	return sent;
}

u32 ucma_events_drop(struct ucma_id *id, const struct ucma_mcast *mcast)
{
	struct ucma_event *event, *next;
	u32 sent = 0;

	if (!mcast && id->request) {
		event = id->request;
		sent += leave_queue(event);
		free_event(event);
	}
	list_for_each_entry_safe(event, next, &id->events, of_id)
		if (!mcast || event->mcast == mcast)
			sent += drop(event);
	return sent;
}

u32 ucma_events_move(struct ucma_id *id, struct ucma_session *to)
{
	struct ucma_session *from = id->session;
	struct ucma_event *event, *next;
	u32 sent = 0;

	if (from == to)
		return 0;
	list_for_each_entry_safe(event, next, &id->events, of_id) {
		sent += leave_queue(event);
		event->sent = false;
		list_add_tail(&event->node, &to->waiting);
		from->quota.bytes -= sizeof(*event);
		to->quota.bytes += sizeof(*event);
		if (event->request)
			ucma_id_move(event->request, to);
	}
	ucma_flush(to);
	return sent;
}

/* Add the id of a connect request to the session of its listener. The program names it by
 * RDMA_USER_CM_CMD_ACCEPT. */
static struct ucma_id *id_of_request(struct rdma_cm_id *cm_id, struct ucma_id *listener)
{
	struct ucma_id *id = ucma_id_add(listener->session, 0);

	if (!id)
		return NULL;
	id->cm_id = cm_id;
	cm_id->context = id;
	return id;
}

static bool is_of_mcast(const struct rdma_cm_event *event)
{
	return event->event == RDMA_CM_EVENT_MULTICAST_JOIN ||
	       event->event == RDMA_CM_EVENT_MULTICAST_ERROR;
}

static void name_mcast(struct ucma_event *news, const struct rdma_cm_event *event)
{
	news->mcast = (struct ucma_mcast *)(uintptr_t)event->param.ud.private_data;
	news->resp.uid = news->mcast->uid;
	news->resp.id = news->mcast->number;
}

/* Return: NULL: there is no memory, or the node's quota is used up */
static struct ucma_event *alloc(struct ucma_session *s)
{
	struct quota_node *charged = quota_take(&s->quota, sizeof(struct ucma_event));
	struct ucma_event *event = charged ? rt_zalloc(sizeof(*event)) : NULL;

	if (event)
		event->charged = charged;
	else if (charged)
		quota_give(charged, &s->quota, sizeof(*event));
	return event;
}

int ucma_on_event(struct rdma_cm_id *cm_id, struct rdma_cm_event *event)
{
	bool request = event->event == RDMA_CM_EVENT_CONNECT_REQUEST;
	struct ucma_id *id = cm_id->context, *told = id;
	struct ucma_event *news;

	ucma_changed(ucma_page_of(id->session), id->number);
	if (!request && !id->uid)
		return 0;
	news = alloc(id->session);
	if (news && request)
		told = id_of_request(cm_id, id);
	if (!news || !told) {
		if (news)
			quota_give(news->charged, &id->session->quota, sizeof(*news));
		rt_free(news);
		return request; /* a request is rejected; another event is lost, as in a kernel
				   without memory */
	}
	news->resp.uid = id->uid;
	news->resp.id = told->number;
	news->resp.event = event->event;
	news->resp.status = (u32)event->status;
	news->resp.ece = (struct rdma_ucm_ece){.vendor_id = event->ece.vendor_id,
					       .attr_mod = event->ece.attr_mod};
	if (cm_id->qp_type == IB_QPT_UD)
		put_ud(&news->resp.param.ud, &event->param.ud);
	else
		put_conn(&news->resp.param.conn, &event->param.conn);
	if (is_of_mcast(event))
		name_mcast(news, event);
	queue(id, request ? told : NULL, news);
	return 0;
}
