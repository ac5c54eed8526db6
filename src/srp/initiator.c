/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Messages of an initiator, and what a target's messages mean. */
#include <errno.h>
#include <string.h>

#include "srp/initiator.h"

#define TASK_BIT (1ull << 63) /* of the tags of task management */

#define TI_IU_BYTES_MOST 8192

/* --- login --------------------------------------------------------------------------- */

size_t srpi_login_build(const uint8_t initiator[16], const uint8_t target[16], bool first,
			uint8_t to[SRPI_IU_BYTES])
{
	struct wire_srp_login_req req = {
		.opcode = WIRE_SRP_LOGIN_REQ,
		.tag = 1,
		.it_iu_bytes = SRPI_IU_BYTES,
		.formats = WIRE_SRP_DIRECT_OK,
		.flags = first ? WIRE_SRP_SINGLE : WIRE_SRP_MULTI,
	};
	int bytes;

	memcpy(req.initiator, initiator, sizeof(req.initiator));
	memcpy(req.target, target, sizeof(req.target));
	bytes = wire_srp_login_req_encode(&req, to);
	return bytes < 0 ? 0 : (size_t)bytes;
}

int srpi_login_take(const void *data, size_t len, struct srpi_terms *terms)
{
	const uint8_t *iu = data;
	struct wire_srp_login_rsp rsp;
	struct wire_srp_login_rej rej;

	*terms = (struct srpi_terms){0};
	if (len && iu[0] == WIRE_SRP_LOGIN_REJ && wire_srp_login_rej_decode(iu, len, &rej) > 0) {
		terms->reject = rej.reason ? rej.reason : WIRE_SRP_REJECT_UNSPECIFIED;
		return 0;
	}
	if (!len || iu[0] != WIRE_SRP_LOGIN_RSP || wire_srp_login_rsp_decode(iu, len, &rsp) < 0)
		return -EINVAL;
	/* one request for a command, one for task management */
	if (rsp.it_iu_bytes < WIRE_SRP_MIN_IU_BYTES || rsp.ti_iu_bytes < WIRE_SRP_RSP_BYTES ||
	    rsp.ti_iu_bytes > TI_IU_BYTES_MOST || rsp.limit_delta < 2 ||
	    rsp.limit_delta > INT32_MAX)
		return -EINVAL;
	terms->limit = rsp.limit_delta;
	terms->ti_iu_bytes = rsp.ti_iu_bytes;
	terms->it_iu_bytes = MIN(rsp.it_iu_bytes, (uint32_t)SRPI_IU_BYTES);
	terms->indirect = rsp.formats & WIRE_SRP_INDIRECT_OK &&
			  terms->it_iu_bytes >= WIRE_SRP_CMD_BYTES + WIRE_SRP_TABLE_BYTES;
	return 0;
}

const char *srpi_reject_text(uint32_t reason)
{
	static const char *const texts[] = {
		"for no reason that it tells",
		"it has no room for one more channel",
		"the messages of the initiator are too long for it",
		"the port identifier is not that of a target there",
		"it does not know direct data buffers",
		"it does not keep other channels",
		"the initiator has as many channels as it allows",
	};
	uint32_t i = reason - WIRE_SRP_REJECT_UNSPECIFIED;

	return i < ARRAY_SIZE(texts) ? texts[i] : "for a reason that is not known";
}

/* --- requests -------------------------------------------------------------------------- */

static uint64_t next_tag(struct srpi_channel *ch, unsigned int slot, uint64_t kind)
{
	ch->serial++;
	return kind | (ch->serial << 8 & ~TASK_BIT) | slot;
}

static uint32_t descs_here(const struct srpi_channel *ch, uint32_t nr)
{
	const uint32_t room = ch->iu_bytes - WIRE_SRP_CMD_BYTES - WIRE_SRP_TABLE_BYTES;

	return MIN(nr, room / WIRE_SRP_DESC_BYTES);
}

bool srpi_command_fetched(const struct srpi_channel *ch, uint32_t nr_pieces)
{
	return nr_pieces > 1 && descs_here(ch, nr_pieces) < nr_pieces;
}

static void describe_table(const struct srpi_channel *ch, const struct srpi_command *command,
			   struct wire_srp_data *data)
{
	data->format = WIRE_SRP_INDIRECT;
	data->where = command->table_at;
	data->where.bytes = command->nr_pieces * WIRE_SRP_DESC_BYTES;
	data->nr_descs = command->nr_pieces;
	data->nr_here = descs_here(ch, command->nr_pieces);
	data->here = command->table;
	for (uint32_t i = 0; i < command->nr_pieces; i++)
		wire_srp_desc_encode(&command->piece[i],
				     command->table + (size_t)i * WIRE_SRP_DESC_BYTES);
}

size_t srpi_command_build(struct srpi_channel *ch, unsigned int slot,
			  const struct srpi_command *command, uint8_t to[SRPI_IU_BYTES])
{
	struct wire_srp_cmd_parts parts = {0};
	struct wire_srp_data *data = command->out ? &parts.out : &parts.in;
	struct wire_srp_cmd cmd = {
		.opcode = WIRE_SRP_CMD,
		.tag = next_tag(ch, slot, 0),
		.task_attr = WIRE_SRP_SIMPLE,
	};
	int bytes;

	memcpy(cmd.lun, command->lun, sizeof(cmd.lun));
	memcpy(cmd.cdb, command->cdb, sizeof(cmd.cdb));
	if (command->nr_pieces > 1 && !ch->indirect)
		return 0;
	data->bytes = command->bytes;
	if (command->bytes && command->nr_pieces == 1) {
		data->format = WIRE_SRP_DIRECT;
		data->where = command->piece[0];
	} else if (command->bytes) {
		describe_table(ch, command, data);
	}
	bytes = wire_srp_cmd_build(&cmd, &parts, to, SRPI_IU_BYTES);
	if (bytes <= 0)
		return 0;
	ch->command[slot] = cmd.tag;
	ch->limit--;
	return (size_t)bytes;
}

size_t srpi_task_build(struct srpi_channel *ch, unsigned int slot, const uint8_t lun[8],
		       enum wire_srp_task_function function, uint8_t to[SRPI_IU_BYTES])
{
	struct wire_srp_tsk_mgmt task = {
		.opcode = WIRE_SRP_TSK_MGMT,
		.function = function,
		.task_tag = ch->command[slot],
	};
	int bytes;

	if (ch->task[slot] || !ch->command[slot] || ch->limit < 1)
		return 0;
	task.tag = next_tag(ch, slot, TASK_BIT);
	memcpy(task.lun, lun, sizeof(task.lun));
	bytes = wire_srp_tsk_mgmt_encode(&task, to);
	if (bytes <= 0)
		return 0;
	ch->task[slot] = task.tag;
	ch->limit--;
	return (size_t)bytes;
}

/* --- messages of the target -------------------------------------------------------------- */

static void add_limit(struct srpi_channel *ch, uint32_t delta)
{
	ch->limit += (int32_t)delta;
}

static void take_task(struct srpi_channel *ch, const struct wire_srp_rsp *rsp,
		      const uint8_t *response, struct srpi_news *news)
{
	bool valid = response && rsp->response_bytes >= 4;

	ch->task[news->slot] = 0;
	news->event = SRPI_TASK_DONE;
	news->ok = valid && response[3] == WIRE_SRP_RESPONSE_OK;
	if (news->ok) /* its command is not answered any more (SRP 6.10) */
		ch->command[news->slot] = 0;
}

static void take_command(struct srpi_channel *ch, const struct wire_srp_rsp *rsp,
			 const uint8_t *response, const uint8_t *sense, struct srpi_news *news)
{
	ch->command[news->slot] = 0;
	news->event = SRPI_COMPLETED;
	news->ok = !response || rsp->response_bytes < 4 || response[3] == WIRE_SRP_RESPONSE_OK;
	news->status = rsp->status;
	news->sense = sense;
	news->sense_bytes = rsp->sense_bytes;
	if (rsp->flags & WIRE_SRP_OUT_UNDER)
		news->residual_bytes = rsp->out_residual_bytes;
	else if (rsp->flags & WIRE_SRP_IN_UNDER)
		news->residual_bytes = rsp->in_residual_bytes;
}

static void take_rsp(struct srpi_channel *ch, const uint8_t *iu, size_t len,
		     struct srpi_news *news)
{
	const uint8_t *response, *sense;
	struct wire_srp_rsp rsp;
	unsigned int slot;

	if (wire_srp_rsp_decode(iu, len, &rsp) < 0 ||
	    wire_srp_rsp_split(&rsp, iu, len, &response, &sense)) {
		news->event = SRPI_VIOLATION;
		return;
	}
	add_limit(ch, rsp.limit_delta);
	slot = rsp.tag & 0xff;
	if (slot >= SRPI_SLOTS)
		return;
	news->slot = slot;
	if (rsp.tag == ch->task[slot] && rsp.tag)
		take_task(ch, &rsp, response, news);
	else if (rsp.tag == ch->command[slot] && rsp.tag)
		take_command(ch, &rsp, response, sense, news);
}

static void answer(struct srpi_news *news, uint8_t opcode, uint64_t tag)
{
	const struct wire_srp_i_logout message = {opcode, tag};
	int bytes = wire_srp_i_logout_encode(&message, news->answer);

	news->answer_bytes = bytes > 0 ? (size_t)bytes : 0;
}

static void take_cred(struct srpi_channel *ch, const uint8_t *iu, size_t len,
		      struct srpi_news *news)
{
	struct wire_srp_cred_req req;

	if (wire_srp_cred_req_decode(iu, len, &req) < 0) {
		news->event = SRPI_VIOLATION;
		return;
	}
	add_limit(ch, req.limit_delta);
	answer(news, WIRE_SRP_CRED_RSP, req.tag);
}

static void take_aer(struct srpi_channel *ch, const uint8_t *iu, size_t len,
		     struct srpi_news *news)
{
	struct wire_srp_aer_req req;

	if (wire_srp_aer_req_decode(iu, len, &req) < 0 ||
	    wire_srp_aer_split(&req, iu, len, &news->sense)) {
		news->event = SRPI_VIOLATION;
		return;
	}
	add_limit(ch, req.limit_delta);
	news->event = SRPI_REPORT;
	news->sense_bytes = req.sense_bytes;
	answer(news, WIRE_SRP_AER_RSP, req.tag);
}

void srpi_take(struct srpi_channel *ch, const uint8_t *iu, size_t len, struct srpi_news *news)
{
	struct wire_srp_t_logout logout;

	*news = (struct srpi_news){.event = SRPI_NOTHING};
	switch (len ? iu[0] : 0) {
	case WIRE_SRP_RSP:
		take_rsp(ch, iu, len, news);
		break;
	case WIRE_SRP_CRED_REQ:
		take_cred(ch, iu, len, news);
		break;
	case WIRE_SRP_AER_REQ:
		take_aer(ch, iu, len, news);
		break;
	case WIRE_SRP_T_LOGOUT:
		news->event = SRPI_LOGOUT;
		if (wire_srp_t_logout_decode(iu, len, &logout) > 0)
			news->reason = logout.reason;
		break;
	default:
		news->event = SRPI_VIOLATION;
		break;
	}
}
