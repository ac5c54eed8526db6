/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The commands of abi/ib_user_cm.h, one function each, and their table. */
#include <errno.h>
#include <string.h>

#include "access/marshall.h"
#include "access/ucm_private.h"

/** struct ucm_call - a command, and the place for its response */
struct ucm_call {
	struct ucm_session *session;
	struct ucm_id *id;    /* the id that the command names, if its row of the table has one */
	struct ib_cm_id *cm_id; /* of @id */
	const void *in;	      /* the command's struct */
	const u8 *rest;	      /* what follows it */
	size_t rest_bytes;
	void *out;
	size_t *out_bytes;
};

static void respond(struct ucm_call *call, const void *resp, size_t bytes)
{
	memcpy(call->out, resp, bytes);
	*call->out_bytes = bytes;
}

/* --- what follows a command's struct --- */

/* Return: the next @bytes; NULL: there are none, or the message is shorter, which is_whole() finds out */
static const void *next_bytes(struct ucm_call *call, size_t bytes)
{
	const u8 *at = call->rest;

	if (!call->rest || bytes > call->rest_bytes) {
		call->rest = NULL;
		call->rest_bytes = 0;
		return NULL;
	}
	call->rest += bytes;
	call->rest_bytes -= bytes;
	return bytes ? at : NULL;
}

/* @address: the program's, of which only 0 means something. Return: @path; NULL as next_bytes() */
static struct sa_path_rec *next_path(struct ucm_call *call, u64 address, struct sa_path_rec *path)
{
	struct ib_user_path_rec from;
	const void *at = address ? next_bytes(call, sizeof(from)) : NULL;

	if (!at)
		return NULL;
	memcpy(&from, at, sizeof(from));
	unmarshall_path(path, &from);
	return path;
}

/* Did the message have all that its struct promised, and no more? */
static bool is_whole(const struct ucm_call *call)
{
	return call->rest && !call->rest_bytes;
}

/* --- ids --- */

static int create_id(struct ucm_call *call)
{
	const struct ib_ucm_create_id *cmd = call->in;
	struct ucm_session *s = call->session;
	struct ib_ucm_create_id_resp resp;
	struct ib_cm_id *cm_id;
	struct ucm_id *id;

	if (!s->device)
		return -ENODEV;
	id = ucm_id_add(s, cmd->uid);
	if (!id)
		return -ENOMEM;
	cm_id = ib_create_cm_id_(s->device, ucm_on_event, id, "ucm");
	if (IS_ERR(cm_id)) {
		ucm_id_drop(id);
		return (int)PTR_ERR(cm_id);
	}
	ib_cm_set_owner(cm_id, s->file.pid, s->file.comm);
	id->cm_id = cm_id;
	resp.id = id->number;
	respond(call, &resp, sizeof(resp));
	return 0;
}

static int destroy_id(struct ucm_call *call)
{
	struct abi_ucm_gone gone = {.events_reported = call->id->events_reported};

	gone.excess = ucm_id_drop(call->id);
	respond(call, &gone, sizeof(gone));
	return 0;
}

static int attr_id(struct ucm_call *call)
{
	const struct ib_ucm_attr_id_resp resp = {
		.service_id = call->cm_id->service_id,
		.service_mask = call->id->service_mask,
		.local_id = call->cm_id->local_id,
		.remote_id = call->cm_id->remote_id,
	};

	respond(call, &resp, sizeof(resp));
	return 0;
}

static int init_qp_attr(struct ucm_call *call)
{
	const struct ib_ucm_init_qp_attr *cmd = call->in;
	struct ib_qp_attr attr = {.qp_state = (enum ib_qp_state)cmd->qp_state};
	struct ib_uverbs_qp_attr resp = {0};
	int mask = 0, ret = ib_cm_init_qp_attr(call->cm_id, &attr, &mask);

	if (ret)
		return ret;
	marshall_qp_attr(&resp, &attr, mask);
	respond(call, &resp, sizeof(resp));
	return 0;
}

/* Would a listener hear requests of the RDMA CM or of SDP, whose ports others have? */
static bool is_of_others(__be64 service_id, __be64 mask)
{
	const struct {
		__be64 service_id, mask;
	} others[] = {
		{IB_CMA_SERVICE_ID, IB_CMA_SERVICE_ID_MASK},
		{IB_SDP_SERVICE_ID, IB_SDP_SERVICE_ID_MASK},
	};

	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (!((service_id ^ others[i].service_id) & mask & others[i].mask))
			return true;
	return false;
}

static int listen_id(struct ucm_call *call)
{
	const struct ib_ucm_listen *cmd = call->in;
	const __be64 mask = cmd->service_mask ? cmd->service_mask : cpu_to_be64(~0ull);
	int ret;

	if (is_of_others(cmd->service_id, mask))
		return -EINVAL;
	ret = ib_cm_listen(call->cm_id, cmd->service_id, cmd->service_mask);
	if (!ret)
		call->id->service_mask = mask;
	return ret;
}

static int notify_id(struct ucm_call *call)
{
	const struct ib_ucm_notify *cmd = call->in;

	return ib_cm_notify(call->cm_id, (enum ib_event_type)cmd->event);
}

/* --- requests --- */

static int send_req(struct ucm_call *call)
{
	const struct ib_ucm_req *cmd = call->in;
	struct sa_path_rec primary, alternate;
	struct ib_cm_req_param param = {
		.service_id = cmd->sid,
		.qp_num = cmd->qpn,
		.qp_type = (enum ib_qp_type)cmd->qp_type,
		.starting_psn = cmd->psn,
		.private_data_len = cmd->len,
		.peer_to_peer = cmd->peer_to_peer,
		.responder_resources = cmd->responder_resources,
		.initiator_depth = cmd->initiator_depth,
		.remote_cm_response_timeout = cmd->remote_cm_response_timeout,
		.flow_control = cmd->flow_control,
		.local_cm_response_timeout = cmd->local_cm_response_timeout,
		.retry_count = cmd->retry_count,
		.rnr_retry_count = cmd->rnr_retry_count,
		.max_cm_retries = cmd->max_cm_retries,
		.srq = cmd->srq,
	};
	int ret;

	param.private_data = next_bytes(call, cmd->len);
	param.primary_path = next_path(call, cmd->primary_path, &primary);
	param.alternate_path = next_path(call, cmd->alternate_path, &alternate);
	if (!is_whole(call))
		return -EINVAL;
	ret = ib_send_cm_req(call->cm_id, &param);
	if (!ret)
		call->id->service_mask = cpu_to_be64(~0ull);
	return ret;
}

static int send_sidr_req(struct ucm_call *call)
{
	const struct ib_ucm_sidr_req *cmd = call->in;
	struct sa_path_rec path;
	struct ib_cm_sidr_req_param param = {
		.service_id = cmd->sid,
		.timeout_ms = cmd->timeout,
		.private_data_len = cmd->len,
		.max_cm_retries = cmd->max_cm_retries,
	};
	int ret;

	param.private_data = next_bytes(call, cmd->len);
	param.path = next_path(call, cmd->path, &path);
	if (!is_whole(call))
		return -EINVAL;
	ret = ib_send_cm_sidr_req(call->cm_id, &param);
	if (!ret)
		call->id->service_mask = cpu_to_be64(~0ull);
	return ret;
}

/* --- answers --- */

/* From here on, events of the id have the program's name for it. */
static int send_rep(struct ucm_call *call)
{
	const struct ib_ucm_rep *cmd = call->in;
	struct ib_cm_rep_param param = {
		.qp_num = cmd->qpn,
		.starting_psn = cmd->psn,
		.private_data = next_bytes(call, cmd->len),
		.private_data_len = cmd->len,
		.responder_resources = cmd->responder_resources,
		.initiator_depth = cmd->initiator_depth,
		.failover_accepted = cmd->failover_accepted,
		.flow_control = cmd->flow_control,
		.rnr_retry_count = cmd->rnr_retry_count,
		.srq = cmd->srq,
	};
	int ret;

	if (!is_whole(call))
		return -EINVAL;
	ret = ib_send_cm_rep(call->cm_id, &param);
	if (!ret)
		call->id->uid = cmd->uid;
	return ret;
}

/* RTU, DREQ, DREP */
static int send_data(struct ucm_call *call, int (*send)(struct ib_cm_id *cm_id, const void *data, u8 bytes))
{
	const struct ib_ucm_private_data *cmd = call->in;
	const void *data = next_bytes(call, cmd->len);

	return is_whole(call) ? send(call->cm_id, data, cmd->len) : -EINVAL;
}

static int send_rtu(struct ucm_call *call)
{
	return send_data(call, ib_send_cm_rtu);
}

static int send_dreq(struct ucm_call *call)
{
	return send_data(call, ib_send_cm_dreq);
}

static int send_drep(struct ucm_call *call)
{
	return send_data(call, ib_send_cm_drep);
}

static int send_rej(struct ucm_call *call)
{
	const struct ib_ucm_info *cmd = call->in;
	const void *data = next_bytes(call, cmd->data_len), *info = next_bytes(call, cmd->info_len);

	if (!is_whole(call))
		return -EINVAL;
	return ib_send_cm_rej(call->cm_id, (enum ib_cm_rej_reason)cmd->status, (void *)info,
			      cmd->info_len, data, cmd->data_len);
}

static int send_apr(struct ucm_call *call)
{
	const struct ib_ucm_info *cmd = call->in;
	const void *data = next_bytes(call, cmd->data_len), *info = next_bytes(call, cmd->info_len);

	if (!is_whole(call))
		return -EINVAL;
	return ib_send_cm_apr(call->cm_id, (enum ib_cm_apr_status)cmd->status, (void *)info,
			      cmd->info_len, data, cmd->data_len);
}

static int send_mra(struct ucm_call *call)
{
	const struct ib_ucm_mra *cmd = call->in;
	const void *data = next_bytes(call, cmd->len);

	return is_whole(call) ? ib_send_cm_mra(call->cm_id, cmd->timeout, data, cmd->len) : -EINVAL;
}

static int send_lap(struct ucm_call *call)
{
	const struct ib_ucm_lap *cmd = call->in;
	const void *data = next_bytes(call, cmd->len);
	struct sa_path_rec path;

	if (!next_path(call, cmd->path, &path) || !is_whole(call))
		return -EINVAL;
	return ib_send_cm_lap(call->cm_id, &path, data, cmd->len);
}

static int send_sidr_rep(struct ucm_call *call)
{
	const struct ib_ucm_sidr_rep *cmd = call->in;
	struct ib_cm_sidr_rep_param param = {
		.qp_num = cmd->qpn,
		.qkey = cmd->qkey,
		.status = (enum ib_cm_sidr_status)cmd->status,
		.info_length = cmd->info_len,
		.private_data_len = cmd->data_len,
	};

	param.private_data = next_bytes(call, cmd->data_len);
	param.info = next_bytes(call, cmd->info_len);
	return is_whole(call) ? ib_send_cm_sidr_rep(call->cm_id, &param) : -EINVAL;
}

/* --- events --- */

static int get_event(struct ucm_call *call)
{
	const struct ib_ucm_event_get *cmd = call->in;
	struct queued_event *first = event_queue_first(&call->session->file.queue);
	struct ucm_event *event;
	u8 *out = call->out;

	if (!first)
		return -EAGAIN;
	event = container_of(first, struct ucm_event, queued);
	if (cmd->data_len < event->news.data_len || cmd->info_len < event->news.info_len)
		return -ENOMEM; /* as Linux has it; the event stays the first */
	respond(call, &event->news, sizeof(event->news));
	memcpy(out + *call->out_bytes, event->data, event->news.data_len);
	*call->out_bytes += event->news.data_len;
	memcpy(out + *call->out_bytes, event->info, event->news.info_len);
	*call->out_bytes += event->news.info_len;
	ucm_event_taken(event);
	return 0;
}

_Static_assert(sizeof(struct abi_ucm_event) + UCM_DATA_MAX + UCM_INFO_MAX <= DEVFILE_RESPONSE_MAX, "it has room");

/* --- the table --- */

#define NO_ID SIZE_MAX
#define OF(type) sizeof(struct ib_ucm_##type), offsetof(struct ib_ucm_##type, id)
#define RESPONSE(type) sizeof(struct ib_ucm_##type##_resp)

static const struct command {
	size_t in_bytes;
	size_t id_at; /* offset of the number of an id of the session; NO_ID */
	int (*run)(struct ucm_call *call);
	size_t resp_bytes; /* for which the program must have room */
} commands[] = {
	[IB_USER_CM_CMD_CREATE_ID] = {sizeof(struct ib_ucm_create_id), NO_ID, create_id, RESPONSE(create_id)},
	[IB_USER_CM_CMD_DESTROY_ID] = {OF(destroy_id), destroy_id, RESPONSE(destroy_id)},
	[IB_USER_CM_CMD_ATTR_ID] = {OF(attr_id), attr_id, RESPONSE(attr_id)},
	[IB_USER_CM_CMD_LISTEN] = {OF(listen), listen_id},
	[IB_USER_CM_CMD_NOTIFY] = {OF(notify), notify_id},
	[IB_USER_CM_CMD_SEND_REQ] = {OF(req), send_req},
	[IB_USER_CM_CMD_SEND_REP] = {OF(rep), send_rep},
	[IB_USER_CM_CMD_SEND_RTU] = {OF(private_data), send_rtu},
	[IB_USER_CM_CMD_SEND_DREQ] = {OF(private_data), send_dreq},
	[IB_USER_CM_CMD_SEND_DREP] = {OF(private_data), send_drep},
	[IB_USER_CM_CMD_SEND_REJ] = {OF(info), send_rej},
	[IB_USER_CM_CMD_SEND_MRA] = {OF(mra), send_mra},
	[IB_USER_CM_CMD_SEND_LAP] = {OF(lap), send_lap},
	[IB_USER_CM_CMD_SEND_APR] = {OF(info), send_apr},
	[IB_USER_CM_CMD_SEND_SIDR_REQ] = {OF(sidr_req), send_sidr_req},
	[IB_USER_CM_CMD_SEND_SIDR_REP] = {OF(sidr_rep), send_sidr_rep},
	[IB_USER_CM_CMD_EVENT] = {sizeof(struct ib_ucm_event_get), NO_ID, get_event, RESPONSE(event)},
	[IB_USER_CM_CMD_INIT_QP_ATTR] = {OF(init_qp_attr), init_qp_attr, sizeof(struct ib_uverbs_qp_attr)},
};

/* Return: 0; -ENOENT: the session has no such id; -ENODEV: the id's adapter was removed */
static int find_id(struct ucm_call *call, const struct command *command)
{
	u32 number;

	if (command->id_at == NO_ID)
		return 0;
	memcpy(&number, (const u8 *)call->in + command->id_at, sizeof(number));
	call->id = ucm_id_find(call->session, number);
	if (!call->id)
		return -ENOENT;
	call->cm_id = call->id->cm_id;
	return call->cm_id || command->run == destroy_id ? 0 : -ENODEV;
}

int ucm_command(struct ucm_session *session, const void *in, size_t bytes, void *out,
		size_t *out_bytes)
{
	const struct ib_ucm_cmd_hdr *hdr = in;
	struct ucm_call call = {.session = session, .in = hdr + 1, .out = out, .out_bytes = out_bytes};
	const struct command *command;
	int ret;

	if (bytes < sizeof(*hdr) || hdr->cmd >= ARRAY_SIZE(commands))
		return -EINVAL;
	command = &commands[hdr->cmd];
	if (hdr->in != command->in_bytes || bytes < sizeof(*hdr) + hdr->in)
		return -EINVAL;
	if (hdr->out < command->resp_bytes)
		return -ENOSPC;
	call.rest = (const u8 *)call.in + hdr->in;
	call.rest_bytes = bytes - sizeof(*hdr) - hdr->in;
	ret = find_id(&call, command);
	return ret ? ret : command->run(&call);
}
