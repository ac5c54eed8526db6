/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Events: an announcement is read, then softibd is asked for the event. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "abi/fds.h"
#include "cm_private.h"

void ibv_copy_path_rec_from_kern(struct ibv_sa_path_rec *dst, struct ib_user_path_rec *src);

#define BYTES_MAX UINT8_MAX /* of private data or additional information */

/** struct cm_event - an event, with all that it points to
 *  @of: the id that it counts for: of a request, the listener's */
struct cm_event {
	struct ib_cm_event ib;
	struct cm_id *of;
	struct ibv_sa_path_rec primary, alternate;
	uint8_t data[BYTES_MAX], info[BYTES_MAX];
};

/** struct response - what softibd answers to EVENT, at most */
struct response {
	struct abi_ucm_event event;
	uint8_t bytes[2 * BYTES_MAX];
};

/* --- conversion --- */

static void get_req(struct cm_event *to, struct abi_ucm_event *from)
{
	struct ib_cm_req_event_param *req = &to->ib.param.req_rcvd;
	struct ib_ucm_req_event_resp *resp = &from->resp.u.req_resp;

	*req = (struct ib_cm_req_event_param){
		.listen_id = &to->of->ib,
		.port = resp->port,
		.primary_path = &to->primary,
		.remote_ca_guid = resp->remote_ca_guid,
		.remote_qkey = resp->remote_qkey,
		.remote_qpn = resp->remote_qpn,
		.qp_type = (enum ibv_qp_type)resp->qp_type,
		.starting_psn = resp->starting_psn,
		.responder_resources = resp->responder_resources,
		.initiator_depth = resp->initiator_depth,
		.local_cm_response_timeout = resp->local_cm_response_timeout & 31,
		.flow_control = resp->flow_control & 1,
		.remote_cm_response_timeout = resp->remote_cm_response_timeout & 31,
		.retry_count = resp->retry_count & 7,
		.rnr_retry_count = resp->rnr_retry_count & 7,
		.srq = resp->srq & 1,
	};
	ibv_copy_path_rec_from_kern(&to->primary, &resp->primary_path);
	if (!(from->resp.present & IB_UCM_PRES_ALTERNATE))
		return;
	ibv_copy_path_rec_from_kern(&to->alternate, &resp->alternate_path);
	req->alternate_path = &to->alternate;
}

static void get_rep(struct cm_event *to, struct abi_ucm_event *from)
{
	const struct ib_ucm_rep_event_resp *resp = &from->resp.u.rep_resp;

	to->ib.param.rep_rcvd = (struct ib_cm_rep_event_param){
		.remote_ca_guid = resp->remote_ca_guid,
		.remote_qkey = resp->remote_qkey,
		.remote_qpn = resp->remote_qpn,
		.starting_psn = resp->starting_psn,
		.responder_resources = resp->responder_resources,
		.initiator_depth = resp->initiator_depth,
		.target_ack_delay = resp->target_ack_delay & 31,
		.failover_accepted = resp->failover_accepted & 3,
		.flow_control = resp->flow_control & 1,
		.rnr_retry_count = resp->rnr_retry_count & 7,
		.srq = resp->srq & 1,
	};
}

static void get_rej(struct cm_event *to, struct abi_ucm_event *from)
{
	to->ib.param.rej_rcvd = (struct ib_cm_rej_event_param){
		.reason = (enum ib_cm_rej_reason)from->resp.u.rej_resp.reason,
		.ari = to->info,
		.ari_length = (uint8_t)from->info_len,
	};
}

static void get_mra(struct cm_event *to, struct abi_ucm_event *from)
{
	to->ib.param.mra_rcvd.service_timeout = from->resp.u.mra_resp.timeout;
}

static void get_lap(struct cm_event *to, struct abi_ucm_event *from)
{
	ibv_copy_path_rec_from_kern(&to->alternate, &from->resp.u.lap_resp.path);
	to->ib.param.lap_rcvd.alternate_path = &to->alternate;
}

static void get_apr(struct cm_event *to, struct abi_ucm_event *from)
{
	to->ib.param.apr_rcvd = (struct ib_cm_apr_event_param){
		.ap_status = (enum ib_cm_apr_status)from->resp.u.apr_resp.status,
		.apr_info = to->info,
		.info_len = (uint8_t)from->info_len,
	};
}

static void get_sidr_req(struct cm_event *to, struct abi_ucm_event *from)
{
	to->ib.param.sidr_req_rcvd = (struct ib_cm_sidr_req_event_param){
		.listen_id = &to->of->ib,
		.port = from->resp.u.sidr_req_resp.port,
		.pkey = from->resp.u.sidr_req_resp.pkey,
	};
}

static void get_sidr_rep(struct cm_event *to, struct abi_ucm_event *from)
{
	to->ib.param.sidr_rep_rcvd = (struct ib_cm_sidr_rep_event_param){
		.status = (enum ib_cm_sidr_status)from->resp.u.sidr_rep_resp.status,
		.qkey = from->resp.u.sidr_rep_resp.qkey,
		.qpn = from->resp.u.sidr_rep_resp.qpn,
		.info = to->info,
		.info_len = (uint8_t)from->info_len,
	};
}

static void get_status(struct cm_event *to, struct abi_ucm_event *from)
{
	to->ib.param.send_status = (enum ibv_wc_status)from->resp.u.send_status;
}

static void (*const conversions[])(struct cm_event *to, struct abi_ucm_event *from) = {
	[IB_CM_REQ_ERROR] = get_status,
	[IB_CM_REQ_RECEIVED] = get_req,
	[IB_CM_REP_ERROR] = get_status,
	[IB_CM_REP_RECEIVED] = get_rep,
	[IB_CM_RTU_RECEIVED] = get_status,
	[IB_CM_USER_ESTABLISHED] = get_status,
	[IB_CM_DREQ_ERROR] = get_status,
	[IB_CM_DREQ_RECEIVED] = get_status,
	[IB_CM_DREP_RECEIVED] = get_status,
	[IB_CM_TIMEWAIT_EXIT] = get_status,
	[IB_CM_MRA_RECEIVED] = get_mra,
	[IB_CM_REJ_RECEIVED] = get_rej,
	[IB_CM_LAP_ERROR] = get_status,
	[IB_CM_LAP_RECEIVED] = get_lap,
	[IB_CM_APR_RECEIVED] = get_apr,
	[IB_CM_SIDR_REQ_ERROR] = get_status,
	[IB_CM_SIDR_REQ_RECEIVED] = get_sidr_req,
	[IB_CM_SIDR_REP_RECEIVED] = get_sidr_rep,
};
#define NUM_EVENTS (sizeof(conversions) / sizeof(conversions[0]))

/* --- the id of an event --- */

/* softibd does not know the program's name for the id of a request before ib_cm_send_rep(). */
static struct cm_id *id_of(struct ib_cm_device *device, const struct ib_ucm_event_resp *resp)
{
	return resp->uid ? (struct cm_id *)(uintptr_t)resp->uid : cm_id_of_request(device, resp->id);
}

static void destroy_unheard(struct ib_cm_device *device, uint32_t handle)
{
	const struct ib_ucm_destroy_id cmd = {.id = handle};
	struct abi_ucm_gone gone;

	cm_command(device, IB_USER_CM_CMD_DESTROY_ID, &cmd, sizeof(cmd), NULL, 0, &gone, sizeof(gone));
}

/* The event is of the listener, and its id is new. Return: NULL: no memory */
static struct cm_id *id_of_new_request(struct cm_id *listener, uint32_t handle)
{
	struct cm_device *device = cm_device_of(listener->ib.device);
	struct cm_id *id = cm_id_alloc(listener->ib.device, listener->ib.context, handle);

	if (!id)
		return NULL;
	pthread_mutex_lock(&device->requests_lock);
	list_add_tail(&id->node, &device->requests);
	pthread_mutex_unlock(&device->requests_lock);
	return id;
}

static bool brings_an_id(const struct cm_event *event, const struct ib_ucm_event_resp *resp)
{
	return (resp->event == IB_CM_REQ_RECEIVED || resp->event == IB_CM_SIDR_REQ_RECEIVED) &&
	       resp->id != event->of->ib.handle; /* else a peer has sent a REQ at the same time */
}

/* --- taking and acknowledging --- */

static void count_ack(struct cm_id *id)
{
	pthread_mutex_lock(&id->lock);
	id->events_acked++;
	pthread_cond_signal(&id->acked);
	pthread_mutex_unlock(&id->lock);
}

/* Return: 0; -EAGAIN: another thread took it, or its id is gone; -errno */
static int ask(struct ib_cm_device *device, struct response *response)
{
	const struct ib_ucm_event_get cmd = {.data_len = BYTES_MAX, .info_len = BYTES_MAX};
	const struct abi_ucm_event *event = &response->event;
	ssize_t n = cm_command(device, IB_USER_CM_CMD_EVENT, &cmd, sizeof(cmd), NULL, 0, response,
			       sizeof(*response));

	if (n < 0)
		return (int)n;
	if (n < (ssize_t)sizeof(*event) || event->data_len > BYTES_MAX || event->info_len > BYTES_MAX ||
	    (size_t)n != sizeof(*event) + event->data_len + event->info_len || event->resp.event >= NUM_EVENTS)
		return -EPROTO;
	return 0;
}

/* Return: 0; -errno */
static int convert(struct ib_cm_device *device, struct response *from, struct cm_event *to)
{
	const struct ib_ucm_event_resp *resp = &from->event.resp;
	struct cm_id *id;

	to->of = id = id_of(device, resp);
	if (!id)
		return -EPROTO;
	if (brings_an_id(to, resp))
		id = id_of_new_request(to->of, resp->id);
	if (!id) {
		destroy_unheard(device, resp->id);
		count_ack(to->of);
		return -ENOMEM;
	}
	to->ib.cm_id = &id->ib;
	to->ib.event = (enum ib_cm_event_type)resp->event;
	conversions[resp->event](to, &from->event);
	memcpy(to->data, from->bytes, from->event.data_len);
	memcpy(to->info, from->bytes + from->event.data_len, from->event.info_len);
	if (resp->present & IB_UCM_PRES_DATA)
		to->ib.private_data = to->data;
	return 0;
}

/* Return: as ask() and convert() */
static int take(struct ib_cm_device *device, struct cm_event *taken)
{
	struct cm_device *private = cm_device_of(device);
	struct response response;
	int ret;

	pthread_mutex_lock(&private->events_lock);
	ret = ask(device, &response);
	if (!ret)
		ret = convert(device, &response, taken);
	pthread_mutex_unlock(&private->events_lock);
	return ret;
}

int ib_cm_get_event(struct ib_cm_device *device, struct ib_cm_event **event)
{
	struct cm_event *taken = event ? calloc(1, sizeof(*taken)) : NULL;
	char byte;
	int ret;

	if (!taken)
		return cm_result(event ? -ENOMEM : -EINVAL);
	do {
		ssize_t n = abi_receive_news(device->fd, &byte, sizeof(byte));

		if (n < 0) {
			ret = (int)n;
			break;
		}
		ret = take(device, taken);
	} while (ret == -EAGAIN);
	if (ret)
		free(taken);
	else
		*event = &taken->ib;
	return cm_result(ret);
}

int ib_cm_ack_event(struct ib_cm_event *event)
{
	struct cm_event *taken;

	if (!event)
		return cm_result(-EINVAL);
	taken = container_of(event, struct cm_event, ib);
	count_ack(taken->of);
	free(taken);
	return 0;
}
