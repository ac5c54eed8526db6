/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Events of a program's ids, which are queued until RDMA_USER_CM_CMD_GET_EVENT reads them. */
#include <errno.h>
#include <string.h>

#include "access/marshall.h"
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

static void put_ud(struct rdma_ucm_ud_param *to, const struct rdma_ud_param *from)
{
	put_data(to->private_data, &to->private_data_len, from->private_data,
		 from->private_data_len);
	marshall_ah(&to->ah_attr, &from->ah_attr);
	to->qp_num = from->qp_num;
	to->qkey = from->qkey;
}

/* --- the queue --- */

size_t ucma_event_put(struct event_queue *queue, struct queued_event *queued, void *out)
{
	struct ucma_session *s = container_of(queue, struct ucma_session, file.queue);
	struct ucma_event *event = container_of(queued, struct ucma_event, queued);
	struct abi_cm_event head = {.resp = event->resp, .number = queued->number};
	struct ucma_id *about = event->request ? event->request : event->id;

	memcpy(out, &head, sizeof(head));
	if (event->mcast)
		return sizeof(head);
	return sizeof(head) + ucma_put_ahead(ucma_page_of(s), about, event->resp.event,
					     (u8 *)out + sizeof(head),
					     UCMA_RESPONSE_MAX - sizeof(head));
}

static void queue(struct ucma_id *id, struct ucma_id *request, struct ucma_event *event)
{
	event->id = id;
	event->request = request;
	list_add_tail(&event->of_id, &id->events);
	if (request)
		request->request = event;
	event_queue_add(&id->session->file.queue, &event->queued);
}

static void free_event(struct ucma_event *event)
{
	list_del(&event->of_id);
	if (event->request)
		event->request->request = NULL;
	quota_give(event->charged, &event->id->session->file.quota, sizeof(*event));
	rt_free(event);
}

void ucma_event_taken(struct ucma_event *event)
{
	event->id->events_reported++;
	if (event->mcast)
		event->mcast->events_reported++;
	event_queue_leave(&event->queued);
	free_event(event);
}

/* Programs take events in their order, except for threads that do so at the same time. A program that
 * keeps thousands of events and takes the last ones first must not make softibd search. */
struct ucma_event *ucma_event_find(struct ucma_session *s, u32 number)
{
	unsigned int reach = TAKEN_REACH;
	struct ucma_event *event;

	list_for_each_entry(event, &s->file.queue.sent, queued.node) {
		if (!reach--)
			return NULL;
		if (event->queued.number == number)
			return event;
	}
	return NULL;
}

/* Remove an event from the queue. The id of a connect request is destroyed, as it was never reported. */
static u32 drop(struct ucma_event *event)
{
	struct ucma_id *request = event->request;
	u32 sent = event_queue_leave(&event->queued);

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
		sent += event_queue_leave(&event->queued);
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
		sent += event_queue_leave(&event->queued);
		event_queue_add(&to->file.queue, &event->queued);
		from->file.quota.bytes -= sizeof(*event);
		to->file.quota.bytes += sizeof(*event);
		if (event->request)
			ucma_id_move(event->request, to);
	}
	event_queue_flush(&to->file.queue);
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
	struct quota_node *charged = quota_take(&s->file.quota, sizeof(struct ucma_event));
	struct ucma_event *event = charged ? rt_zalloc(sizeof(*event)) : NULL;

	if (event)
		event->charged = charged;
	else if (charged)
		quota_give(charged, &s->file.quota, sizeof(*event));
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
			quota_give(news->charged, &id->session->file.quota, sizeof(*news));
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
