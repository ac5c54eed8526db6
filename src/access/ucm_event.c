/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Events of a program's ids, which are queued until IB_USER_CM_CMD_EVENT takes them. */
#include <errno.h>
#include <string.h>

#include "access/marshall.h"
#include "access/ucm_private.h"

/* --- conversion of struct ib_cm_event --- */

static void put_info(struct ucm_event *to, const void *info, size_t bytes)
{
	to->news.info_len = (u32)MIN(bytes, sizeof(to->info));
	if (!to->news.info_len)
		return;
	memcpy(to->info, info, to->news.info_len);
	to->news.resp.present |= IB_UCM_PRES_INFO;
}

static void put_req(struct ucm_event *to, const struct ib_cm_event *from)
{
	const struct ib_cm_req_event_param *req = &from->param.req_rcvd;
	struct ib_ucm_req_event_resp *resp = &to->news.resp.u.req_resp;

	*resp = (struct ib_ucm_req_event_resp){
		.remote_ca_guid = req->remote_ca_guid,
		.remote_qkey = req->remote_qkey,
		.remote_qpn = req->remote_qpn,
		.qp_type = req->qp_type,
		.starting_psn = req->starting_psn,
		.responder_resources = req->responder_resources,
		.initiator_depth = req->initiator_depth,
		.local_cm_response_timeout = req->local_cm_response_timeout,
		.flow_control = req->flow_control,
		.remote_cm_response_timeout = req->remote_cm_response_timeout,
		.retry_count = req->retry_count,
		.rnr_retry_count = req->rnr_retry_count,
		.srq = req->srq,
		.port = req->port,
	};
	marshall_path(&resp->primary_path, req->primary_path);
	to->news.resp.present |= IB_UCM_PRES_PRIMARY;
	if (!req->alternate_path)
		return;
	marshall_path(&resp->alternate_path, req->alternate_path);
	to->news.resp.present |= IB_UCM_PRES_ALTERNATE;
}

static void put_rep(struct ucm_event *to, const struct ib_cm_event *from)
{
	const struct ib_cm_rep_event_param *rep = &from->param.rep_rcvd;

	to->news.resp.u.rep_resp = (struct ib_ucm_rep_event_resp){
		.remote_ca_guid = rep->remote_ca_guid,
		.remote_qkey = rep->remote_qkey,
		.remote_qpn = rep->remote_qpn,
		.starting_psn = rep->starting_psn,
		.responder_resources = rep->responder_resources,
		.initiator_depth = rep->initiator_depth,
		.target_ack_delay = rep->target_ack_delay,
		.failover_accepted = rep->failover_accepted,
		.flow_control = rep->flow_control,
		.rnr_retry_count = rep->rnr_retry_count,
		.srq = rep->srq,
	};
}

static void put_rej(struct ucm_event *to, const struct ib_cm_event *from)
{
	to->news.resp.u.rej_resp.reason = from->param.rej_rcvd.reason;
	put_info(to, from->param.rej_rcvd.ari, from->param.rej_rcvd.ari_length);
}

static void put_mra(struct ucm_event *to, const struct ib_cm_event *from)
{
	to->news.resp.u.mra_resp.timeout = from->param.mra_rcvd.service_timeout;
}

static void put_lap(struct ucm_event *to, const struct ib_cm_event *from)
{
	marshall_path(&to->news.resp.u.lap_resp.path, from->param.lap_rcvd.alternate_path);
	to->news.resp.present |= IB_UCM_PRES_ALTERNATE;
}

static void put_apr(struct ucm_event *to, const struct ib_cm_event *from)
{
	to->news.resp.u.apr_resp.status = from->param.apr_rcvd.ap_status;
	put_info(to, from->param.apr_rcvd.apr_info, from->param.apr_rcvd.info_len);
}

static void put_sidr_req(struct ucm_event *to, const struct ib_cm_event *from)
{
	to->news.resp.u.sidr_req_resp.pkey = from->param.sidr_req_rcvd.pkey;
	to->news.resp.u.sidr_req_resp.port = from->param.sidr_req_rcvd.port;
}

static void put_sidr_rep(struct ucm_event *to, const struct ib_cm_event *from)
{
	const struct ib_cm_sidr_rep_event_param *rep = &from->param.sidr_rep_rcvd;

	to->news.resp.u.sidr_rep_resp = (struct ib_ucm_sidr_rep_event_resp){
		.status = rep->status, .qkey = rep->qkey, .qpn = rep->qpn};
	put_info(to, rep->info, rep->info_len);
}

static void put_status(struct ucm_event *to, const struct ib_cm_event *from)
{
	to->news.resp.u.send_status = from->param.send_status;
}

/* by type; @data_len: bytes of private data, all that the message has room for */
static const struct {
	void (*put)(struct ucm_event *to, const struct ib_cm_event *from);
	u8 data_len;
} kinds[] = {
	[IB_CM_REQ_ERROR] = {put_status},
	[IB_CM_REQ_RECEIVED] = {put_req, IB_CM_REQ_PRIVATE_DATA_SIZE},
	[IB_CM_REP_ERROR] = {put_status},
	[IB_CM_REP_RECEIVED] = {put_rep, IB_CM_REP_PRIVATE_DATA_SIZE},
	[IB_CM_RTU_RECEIVED] = {NULL, IB_CM_RTU_PRIVATE_DATA_SIZE},
	[IB_CM_USER_ESTABLISHED] = {NULL},
	[IB_CM_DREQ_ERROR] = {put_status},
	[IB_CM_DREQ_RECEIVED] = {NULL, IB_CM_DREQ_PRIVATE_DATA_SIZE},
	[IB_CM_DREP_RECEIVED] = {NULL, IB_CM_DREP_PRIVATE_DATA_SIZE},
	[IB_CM_TIMEWAIT_EXIT] = {NULL},
	[IB_CM_MRA_RECEIVED] = {put_mra, IB_CM_MRA_PRIVATE_DATA_SIZE},
	[IB_CM_REJ_RECEIVED] = {put_rej, IB_CM_REJ_PRIVATE_DATA_SIZE},
	[IB_CM_LAP_ERROR] = {put_status},
	[IB_CM_LAP_RECEIVED] = {put_lap, IB_CM_LAP_PRIVATE_DATA_SIZE},
	[IB_CM_APR_RECEIVED] = {put_apr, IB_CM_APR_PRIVATE_DATA_SIZE},
	[IB_CM_SIDR_REQ_ERROR] = {put_status},
	[IB_CM_SIDR_REQ_RECEIVED] = {put_sidr_req, IB_CM_SIDR_REQ_PRIVATE_DATA_SIZE},
	[IB_CM_SIDR_REP_RECEIVED] = {put_sidr_rep, IB_CM_SIDR_REP_PRIVATE_DATA_SIZE},
};

static void put_event(struct ucm_event *to, const struct ib_cm_event *from)
{
	to->news.resp.event = from->event;
	if (kinds[from->event].put)
		kinds[from->event].put(to, from);
	if (!from->private_data || !kinds[from->event].data_len)
		return;
	to->news.data_len = kinds[from->event].data_len;
	memcpy(to->data, from->private_data, to->news.data_len);
	to->news.resp.present |= IB_UCM_PRES_DATA;
}

/* --- the queue --- */

size_t ucm_announce(struct event_queue *queue, struct queued_event *event, void *message)
{
	*(u8 *)message = 1;
	return 1;
}

static void free_event(struct ucm_event *event)
{
	list_del(&event->of_id);
	if (event->request) {
		event->request->request = NULL;
		event->id->waiting--;
	}
	quota_give(event->charged, &event->id->session->file.quota, sizeof(*event));
	rt_free(event);
}

void ucm_event_taken(struct ucm_event *event)
{
	event->id->events_reported++;
	event_queue_leave(&event->queued);
	free_event(event);
}

/* The id of a request is destroyed with the event, as it was never reported. */
static u32 drop(struct ucm_event *event)
{
	struct ucm_id *request = event->request;
	u32 announced = event_queue_leave(&event->queued);

	free_event(event);
	if (request)
		announced += ucm_id_drop(request);
	return announced;
}

u32 ucm_events_drop(struct ucm_id *id)
{
	struct ucm_event *event, *next;
	u32 announced = 0;

	if (id->request) {
		event = id->request;
		announced += event_queue_leave(&event->queued);
		free_event(event);
	}
	list_for_each_entry_safe(event, next, &id->events, of_id)
		announced += drop(event);
	return announced;
}

/* --- the handler --- */

/* Add the id of a REQ or SIDR_REQ to the session of its listener. Return: NULL: there is no room for it */
static struct ucm_id *id_of_request(struct ib_cm_id *cm_id, struct ucm_id *listener)
{
	struct ucm_id *id = ucm_id_add(listener->session, 0);

	if (!id)
		return NULL;
	id->cm_id = cm_id;
	id->service_mask = cpu_to_be64(~0ull);
	cm_id->context = id;
	return id;
}

/* Return: NULL: there is no memory, or the node's quota is used up */
static struct ucm_event *alloc_event(struct ucm_session *s)
{
	struct quota_node *charged = quota_take(&s->file.quota, sizeof(struct ucm_event));
	struct ucm_event *event = charged ? rt_zalloc(sizeof(*event)) : NULL;

	if (event)
		event->charged = charged;
	else if (charged)
		quota_give(charged, &s->file.quota, sizeof(*event));
	return event;
}

/* The id of a new request comes with the context of its listener. Return: 0; 1: destroy @cm_id */
int ucm_on_event(struct ib_cm_id *cm_id, const struct ib_cm_event *event)
{
	struct ucm_id *id = cm_id->context, *about = id;
	const bool is_new = cm_id != id->cm_id;
	struct ucm_event *news;

	if (is_new && id->waiting >= UCM_BACKLOG)
		return 1;
	news = alloc_event(id->session);
	if (news && is_new)
		about = id_of_request(cm_id, id);
	if (!news || !about) {
		if (news)
			quota_give(news->charged, &id->session->file.quota, sizeof(*news));
		rt_free(news);
		return is_new; /* a request is rejected; another event is lost, as in a kernel without memory */
	}
	put_event(news, event);
	news->news.resp.uid = id->uid;
	news->news.resp.id = about->number;
	news->id = id;
	news->request = is_new ? about : NULL;
	if (is_new) {
		about->request = news;
		id->waiting++;
	}
	list_add_tail(&news->of_id, &id->events);
	event_queue_add(&id->session->file.queue, &news->queued);
	return 0;
}
