/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Messages of the CM: each is a command, what its addresses point to behind it. */
#include <errno.h>

#include "cm_private.h"

void ibv_copy_path_rec_to_kern(struct ib_user_path_rec *dst, struct ibv_sa_path_rec *src);

/** struct message - a command and what follows it, in the order of abi/ucm.h */
struct message {
	struct iovec parts[CM_PARTS_MAX];
	size_t num;
};

/* Return: the length that the command says: 0 without @data */
static uint8_t add_data(struct message *message, void *data, uint8_t bytes)
{
	if (!data || !bytes)
		return 0;
	message->parts[message->num++] = (struct iovec){data, bytes};
	return bytes;
}

/* @room: for the path, until the message is sent. Return: the address in the command: 0 without @path */
static uint64_t add_path(struct message *message, struct ibv_sa_path_rec *path, struct ib_user_path_rec *room)
{
	if (!path)
		return 0;
	*room = (struct ib_user_path_rec){0};
	ibv_copy_path_rec_to_kern(room, path);
	message->parts[message->num++] = (struct iovec){room, sizeof(*room)};
	return (uintptr_t)path;
}

static int send_message(struct ib_cm_id *cm_id, uint32_t command, const void *cmd, size_t bytes,
			const struct message *message)
{
	return cm_result(cm_command(cm_id->device, command, cmd, bytes, message->parts, message->num, NULL, 0));
}

/* --- requests --- */

int ib_cm_send_req(struct ib_cm_id *cm_id, struct ib_cm_req_param *param)
{
	struct ib_user_path_rec primary, alternate;
	struct message message = {.num = 0};
	struct ib_ucm_req cmd;

	if (!param || !param->primary_path)
		return cm_result(-EINVAL);
	cmd = (struct ib_ucm_req){
		.id = cm_id->handle,
		.qpn = param->qp_num,
		.qp_type = param->qp_type,
		.psn = param->starting_psn,
		.sid = param->service_id,
		.peer_to_peer = param->peer_to_peer,
		.responder_resources = param->responder_resources,
		.initiator_depth = param->initiator_depth,
		.remote_cm_response_timeout = param->remote_cm_response_timeout,
		.flow_control = param->flow_control,
		.local_cm_response_timeout = param->local_cm_response_timeout,
		.retry_count = param->retry_count,
		.rnr_retry_count = param->rnr_retry_count,
		.max_cm_retries = param->max_cm_retries,
		.srq = param->srq,
	};
	cmd.len = add_data(&message, param->private_data, param->private_data_len);
	cmd.primary_path = add_path(&message, param->primary_path, &primary);
	cmd.alternate_path = add_path(&message, param->alternate_path, &alternate);
	return send_message(cm_id, IB_USER_CM_CMD_SEND_REQ, &cmd, sizeof(cmd), &message);
}

int ib_cm_send_sidr_req(struct ib_cm_id *cm_id, struct ib_cm_sidr_req_param *param)
{
	struct message message = {.num = 0};
	struct ib_user_path_rec path;
	struct ib_ucm_sidr_req cmd;

	if (!param || !param->path)
		return cm_result(-EINVAL);
	cmd = (struct ib_ucm_sidr_req){
		.id = cm_id->handle,
		.timeout = (uint32_t)param->timeout_ms,
		.sid = param->service_id,
		.max_cm_retries = param->max_cm_retries,
	};
	cmd.len = add_data(&message, param->private_data, param->private_data_len);
	cmd.path = add_path(&message, param->path, &path);
	return send_message(cm_id, IB_USER_CM_CMD_SEND_SIDR_REQ, &cmd, sizeof(cmd), &message);
}

int ib_cm_send_lap(struct ib_cm_id *cm_id, struct ibv_sa_path_rec *alternate_path, void *private_data,
		   uint8_t private_data_len)
{
	struct ib_ucm_lap cmd = {.id = cm_id->handle};
	struct message message = {.num = 0};
	struct ib_user_path_rec path;

	if (!alternate_path)
		return cm_result(-EINVAL);
	cmd.len = add_data(&message, private_data, private_data_len);
	cmd.path = add_path(&message, alternate_path, &path);
	return send_message(cm_id, IB_USER_CM_CMD_SEND_LAP, &cmd, sizeof(cmd), &message);
}

/* --- answers --- */

int ib_cm_send_rep(struct ib_cm_id *cm_id, struct ib_cm_rep_param *param)
{
	struct message message = {.num = 0};
	struct ib_ucm_rep cmd;

	if (!param)
		return cm_result(-EINVAL);
	cmd = (struct ib_ucm_rep){
		.uid = (uintptr_t)cm_id_of(cm_id),
		.id = cm_id->handle,
		.qpn = param->qp_num,
		.psn = param->starting_psn,
		.responder_resources = param->responder_resources,
		.initiator_depth = param->initiator_depth,
		.target_ack_delay = param->target_ack_delay,
		.failover_accepted = param->failover_accepted,
		.flow_control = param->flow_control,
		.rnr_retry_count = param->rnr_retry_count,
		.srq = param->srq,
	};
	cmd.len = add_data(&message, param->private_data, param->private_data_len);
	return send_message(cm_id, IB_USER_CM_CMD_SEND_REP, &cmd, sizeof(cmd), &message);
}

static int send_data(struct ib_cm_id *cm_id, uint32_t command, void *private_data, uint8_t bytes)
{
	struct ib_ucm_private_data cmd = {.id = cm_id->handle};
	struct message message = {.num = 0};

	cmd.len = add_data(&message, private_data, bytes);
	return send_message(cm_id, command, &cmd, sizeof(cmd), &message);
}

int ib_cm_send_rtu(struct ib_cm_id *cm_id, void *private_data, uint8_t private_data_len)
{
	return send_data(cm_id, IB_USER_CM_CMD_SEND_RTU, private_data, private_data_len);
}

int ib_cm_send_dreq(struct ib_cm_id *cm_id, void *private_data, uint8_t private_data_len)
{
	return send_data(cm_id, IB_USER_CM_CMD_SEND_DREQ, private_data, private_data_len);
}

int ib_cm_send_drep(struct ib_cm_id *cm_id, void *private_data, uint8_t private_data_len)
{
	return send_data(cm_id, IB_USER_CM_CMD_SEND_DREP, private_data, private_data_len);
}

int ib_cm_send_mra(struct ib_cm_id *cm_id, uint8_t service_timeout, void *private_data, uint8_t private_data_len)
{
	struct ib_ucm_mra cmd = {.id = cm_id->handle, .timeout = service_timeout};
	struct message message = {.num = 0};

	cmd.len = add_data(&message, private_data, private_data_len);
	return send_message(cm_id, IB_USER_CM_CMD_SEND_MRA, &cmd, sizeof(cmd), &message);
}

/* REJ, APR */
static int send_status(struct ib_cm_id *cm_id, uint32_t command, uint32_t status, void *info, uint8_t info_bytes,
		       void *private_data, uint8_t bytes)
{
	struct ib_ucm_info cmd = {.id = cm_id->handle, .status = status};
	struct message message = {.num = 0};

	cmd.data_len = add_data(&message, private_data, bytes);
	cmd.info_len = add_data(&message, info, info_bytes);
	return send_message(cm_id, command, &cmd, sizeof(cmd), &message);
}

int ib_cm_send_rej(struct ib_cm_id *cm_id, enum ib_cm_rej_reason reason, void *ari, uint8_t ari_length,
		   void *private_data, uint8_t private_data_len)
{
	return send_status(cm_id, IB_USER_CM_CMD_SEND_REJ, reason, ari, ari_length, private_data, private_data_len);
}

int ib_cm_send_apr(struct ib_cm_id *cm_id, enum ib_cm_apr_status status, void *info, uint8_t info_length,
		   void *private_data, uint8_t private_data_len)
{
	return send_status(cm_id, IB_USER_CM_CMD_SEND_APR, status, info, info_length, private_data, private_data_len);
}

int ib_cm_send_sidr_rep(struct ib_cm_id *cm_id, struct ib_cm_sidr_rep_param *param)
{
	struct message message = {.num = 0};
	struct ib_ucm_sidr_rep cmd;

	if (!param)
		return cm_result(-EINVAL);
	cmd = (struct ib_ucm_sidr_rep){
		.id = cm_id->handle,
		.qpn = param->qp_num,
		.qkey = param->qkey,
		.status = param->status,
	};
	cmd.data_len = add_data(&message, param->private_data, param->private_data_len);
	cmd.info_len = add_data(&message, param->info, param->info_length);
	return send_message(cm_id, IB_USER_CM_CMD_SEND_SIDR_REP, &cmd, sizeof(cmd), &message);
}
