/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A command: read, sized, moved through its steps, answered.
 *
 *  step               taken if                                      then
 *  FETCH_OUT_TABLE    the IU has not the whole table of data-out    the next below
 *  FETCH_IN_TABLE     ... of data-in
 *  FETCH_DATA         data-out that is not immediate
 *  EXECUTE            the fields are good
 *  PUT_DATA           it delivered data
 *  RESPOND            it was not aborted
 *
 * A step after which something turns out to be wrong (srp_command_fail()) leads to
 * RESPOND.
 */
#include <errno.h>
#include <string.h>

#include "srp/target.h"

/* --- reading --------------------------------------------------------------------------
 */

/* Which logout a command deserves whose parts cannot be found: its length lies. */
static uint32_t logout_reason(const struct wire_srp_cmd *cmd, uint16_t immediate_offset)
{
	const uint8_t most_out =
		immediate_offset ? WIRE_SRP_IMMEDIATE_DATA : WIRE_SRP_INDIRECT;

	if (cmd->out_format > most_out)
		return SRP_LOGOUT_OUT_FORMAT;
	if (cmd->in_format > WIRE_SRP_INDIRECT)
		return SRP_LOGOUT_IN_FORMAT;
	return cmd->out_format ? SRP_LOGOUT_OUT_COUNT : SRP_LOGOUT_IN_COUNT;
}

static bool table_is_elsewhere(const struct wire_srp_data *data)
{
	return data->format == WIRE_SRP_INDIRECT && data->nr_here < data->nr_descs;
}

int srp_command_read(struct srp_command *cmd, const uint8_t *iu, size_t len,
		     uint16_t immediate_offset, uint32_t *logout)
{
	struct wire_srp_cmd_parts *parts = &cmd->parts;

	memset(cmd, 0, offsetof(struct srp_command, cdb));
	cmd->out_table = cmd->in_table = NULL;
	cmd->out_bytes = cmd->in_bytes = 0;
	memset(&cmd->task, 0, sizeof(cmd->task));
	if (wire_srp_cmd_decode(iu, len, &cmd->cmd) < 0) {
		*logout = SRP_LOGOUT_BAD_OPCODE;
		return -EINVAL;
	}
	if (wire_srp_cmd_split(&cmd->cmd, iu, len, immediate_offset, parts)) {
		*logout = logout_reason(&cmd->cmd, immediate_offset);
		return -EINVAL;
	}
	memcpy(cmd->cdb, cmd->cmd.cdb, 16);
	if (parts->more_cdb_bytes)
		memcpy(cmd->cdb + 16, parts->more_cdb, parts->more_cdb_bytes);
	cmd->cdb_bytes = 16 + parts->more_cdb_bytes;
	cmd->bad_fields =
		cmd->cmd.task_attr == 3 || cmd->cmd.task_attr > WIRE_SRP_ACA ||
		(table_is_elsewhere(&parts->out) &&
		 parts->out.nr_descs > SRP_MAX_DESCS) ||
		(table_is_elsewhere(&parts->in) && parts->in.nr_descs > SRP_MAX_DESCS);
	return 0;
}

/* --- steps
 * ------------------------------------------------------------------------------- */

static bool has_step(const struct srp_command *cmd, enum srp_step step)
{
	switch (step) {
	case SRP_FETCH_OUT_TABLE:
		return cmd->out_bytes && table_is_elsewhere(&cmd->parts.out);
	case SRP_FETCH_IN_TABLE:
		return table_is_elsewhere(&cmd->parts.in);
	case SRP_FETCH_DATA:
		return cmd->out_bytes && cmd->parts.out.format != WIRE_SRP_IMMEDIATE_DATA;
	case SRP_PUT_DATA:
		return cmd->in_bytes;
	default:
		return true;
	}
}

enum srp_step srp_command_next(struct srp_command *cmd)
{
	if (cmd->step == SRP_EXECUTE)
		cmd->in_bytes = (uint32_t)MIN(cmd->task.in_bytes,
					      (size_t)srp_command_in_room(cmd));
	if (cmd->aborted && cmd->step < SRP_RESPOND) {
		srp_command_fail(cmd, SCSI_TASK_ABORTED, SCSI_NO_SENSE);
		return cmd->step;
	}
	do
		cmd->step++;
	while (!has_step(cmd, cmd->step));
	return cmd->step;
}

/* A command is fetched only as much data as it takes: the rest is a residual. */
void srp_command_size(struct srp_command *cmd, const struct scsi_unit *unit)
{
	int64_t takes = unit ? scsi_data_out_bytes(unit, cmd->cdb, cmd->cdb_bytes) : 0;

	cmd->out_bytes = takes <= 0 ? 0 : MIN(cmd->parts.out.bytes, (uint32_t)takes);
	cmd->step = SRP_FETCH_OUT_TABLE;
	if (cmd->bad_fields)
		cmd->step = SRP_RESPOND;
	else if (cmd->cmd.task_attr == WIRE_SRP_ACA) /* there is no such condition (SAM-5 8.6.5) */
		srp_command_fail(cmd, SCSI_CHECK_CONDITION, SCSI_INVALID_MESSAGE);
	else if (!has_step(cmd, cmd->step))
		srp_command_next(cmd);
}

uint32_t srp_command_in_room(const struct srp_command *cmd)
{
	return MIN(cmd->parts.in.bytes, SCSI_MAX_TRANSFER_BYTES);
}

void srp_command_task(struct srp_command *cmd, const uint8_t *out, uint8_t *in,
		      struct scsi_nexus *nexus)
{
	const bool immediate = cmd->parts.out.format == WIRE_SRP_IMMEDIATE_DATA;

	cmd->task = (struct scsi_task){
		.cdb = cmd->cdb,
		.cdb_bytes = cmd->cdb_bytes,
		.out = immediate ? cmd->parts.out.here : out,
		.out_bytes = cmd->out_bytes,
		.in = in,
		.in_room = srp_command_in_room(cmd),
		.nexus = nexus,
	};
	memcpy(cmd->task.lun, cmd->cmd.lun, sizeof(cmd->task.lun));
}

void srp_command_fail(struct srp_command *cmd, enum scsi_status status,
		      enum scsi_sense sense)
{
	cmd->task.status = status;
	cmd->task.in_bytes = cmd->task.out_taken = cmd->in_bytes = 0;
	if (sense)
		scsi_put_sense(cmd->task.sense, sense);
	cmd->task.sense_bytes = sense ? SCSI_SENSE_BYTES : 0;
	cmd->step = cmd->aborted && !cmd->tell_aborted ? SRP_DONE : SRP_RESPOND;
}

void srp_command_refuse(struct srp_command *cmd)
{
	cmd->bad_fields = true;
	srp_command_fail(cmd, SCSI_GOOD, SCSI_NO_SENSE);
}

/* --- the initiator's memory
 * ----------------------------------------------------------------- */

static struct wire_srp_desc get_desc(const struct wire_srp_data *data,
				     const uint8_t *table, uint32_t i)
{
	struct wire_srp_desc desc;

	if (data->format == WIRE_SRP_DIRECT || !table)
		return wire_srp_data_desc(data, i);
	wire_srp_desc_decode(table + (size_t)i * WIRE_SRP_DESC_BYTES, WIRE_SRP_DESC_BYTES,
			     &desc);
	return desc;
}

int srp_command_segment(const struct srp_command *cmd, enum srp_direction direction,
			uint32_t at, struct wire_srp_desc *segment)
{
	const struct wire_srp_data *data =
		direction == SRP_OUT ? &cmd->parts.out : &cmd->parts.in;
	const uint8_t *table = direction == SRP_OUT ? cmd->out_table : cmd->in_table;
	uint32_t nr = data->format == WIRE_SRP_DIRECT ? 1
		      : table			      ? data->nr_descs
						      : data->nr_here;

	if (data->format != WIRE_SRP_DIRECT && data->format != WIRE_SRP_INDIRECT)
		return -EINVAL;
	for (uint32_t i = 0; i < nr; i++) {
		struct wire_srp_desc desc = get_desc(data, table, i);

		if (at < desc.bytes) {
			desc.address += at;
			desc.bytes -= at;
			*segment = desc;
			return 0;
		}
		at -= desc.bytes;
	}
	return -EINVAL;
}

/* --- answers
 * ------------------------------------------------------------------------------- */

/* Byte 1 of a request asks for a solicited event when it succeeds (bit 1), or fails (bit
 * 2). */
static uint8_t solicits(uint8_t solicited, bool good)
{
	return solicited >> (good ? 1 : 2) & 1;
}

/* A residual: the buffer's length against what the command moved, or would have */
static void put_residual(struct wire_srp_rsp *rsp, uint32_t buffer, uint64_t moved,
			 uint8_t over, uint8_t under, uint32_t *residual)
{
	if (moved > buffer) {
		rsp->flags |= over;
		*residual = (uint32_t)MIN(moved - buffer, (uint64_t)UINT32_MAX);
	} else if (moved < buffer) {
		rsp->flags |= under;
		*residual = (uint32_t)(buffer - moved);
	}
}

size_t srp_command_answer(const struct srp_command *cmd, uint32_t limit_delta,
			  uint8_t to[SRP_RSP_IU_BYTES])
{
	static const uint8_t bad_fields[4] = {0, 0, 0, WIRE_SRP_RESPONSE_BAD_FIELDS};
	struct wire_srp_rsp rsp = {
		.opcode = WIRE_SRP_RSP,
		.solicited = solicits(cmd->cmd.solicited,
				      !cmd->bad_fields && !cmd->task.status),
		.limit_delta = limit_delta,
		.tag = cmd->cmd.tag,
		.status = (uint8_t)cmd->task.status,
		.sense_bytes = (uint32_t)cmd->task.sense_bytes,
	};

	if (cmd->bad_fields) {
		rsp.flags = WIRE_SRP_RSP_VALID;
		rsp.response_bytes = sizeof(bad_fields);
		rsp.sense_bytes = 0;
		rsp.status = 0;
		return (size_t)wire_srp_rsp_build(&rsp, bad_fields, NULL, to,
						  SRP_RSP_IU_BYTES);
	}
	if (rsp.sense_bytes)
		rsp.flags |= WIRE_SRP_SENSE_VALID;
	put_residual(&rsp, cmd->parts.out.bytes, cmd->task.out_taken, WIRE_SRP_OUT_OVER,
		     WIRE_SRP_OUT_UNDER, &rsp.out_residual_bytes);
	put_residual(&rsp, cmd->parts.in.bytes, cmd->task.in_bytes, WIRE_SRP_IN_OVER,
		     WIRE_SRP_IN_UNDER, &rsp.in_residual_bytes);
	return (size_t)wire_srp_rsp_build(&rsp, NULL, cmd->task.sense, to,
					  SRP_RSP_IU_BYTES);
}

size_t srp_task_answer(const struct wire_srp_tsk_mgmt *task, enum wire_srp_response code,
		       uint32_t limit_delta, uint8_t to[SRP_RSP_IU_BYTES])
{
	const uint8_t response[4] = {0, 0, 0, (uint8_t)code};
	const struct wire_srp_rsp rsp = {
		.opcode = WIRE_SRP_RSP,
		.solicited = solicits(task->solicited, code == WIRE_SRP_RESPONSE_OK),
		.limit_delta = limit_delta,
		.tag = task->tag,
		.flags = WIRE_SRP_RSP_VALID,
		.response_bytes = sizeof(response),
	};

	return (size_t)wire_srp_rsp_build(&rsp, response, NULL, to, SRP_RSP_IU_BYTES);
}

size_t srp_logout_build(uint32_t reason, uint8_t to[SRP_RSP_IU_BYTES])
{
	const struct wire_srp_t_logout logout = {.opcode = WIRE_SRP_T_LOGOUT,
						 .reason = reason};

	return (size_t)wire_srp_t_logout_encode(&logout, to);
}
