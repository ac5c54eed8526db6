/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Commands that report a state: of the unit, of its modes, of the target's units and of
 * the table of commands. */
#include "scsi/private.h"

void scsi_test_unit_ready(struct scsi_call *call)
{
}

/* Sense data travels with its command: what is left to ask for is a pending unit
 * attention, or that there is no unit (SPC-4 6.39). */
void scsi_request_sense(struct scsi_call *call)
{
	enum scsi_sense sense = call->unit ? scsi_take_attention(call) : SCSI_NO_UNIT;
	uint8_t data[SCSI_SENSE_BYTES];

	if (call->task->cdb[1] & 1) {
		/* descriptor format: its header says all there is */
		memset(data, 0, 8);
		data[0] = 0x72;
		data[1] = (uint8_t)(sense >> 16);
		put_be16(data + 2, (uint16_t)sense);
		scsi_reply(call, data, 8, call->task->cdb[4]);
	} else {
		scsi_put_sense(data, sense);
		scsi_reply(call, data, sizeof(data), call->task->cdb[4]);
	}
}

void scsi_read_capacity_10(struct scsi_call *call)
{
	uint8_t data[8];

	put_be32(data, (uint32_t)MIN(call->unit->nr_blocks - 1, (uint64_t)UINT32_MAX));
	put_be32(data + 4, call->unit->block_bytes);
	scsi_reply(call, data, sizeof(data), sizeof(data));
}

void scsi_read_capacity_16(struct scsi_call *call)
{
	uint8_t data[32] = {0};

	put_be64(data, call->unit->nr_blocks - 1);
	put_be32(data + 8, call->unit->block_bytes);
	if (call->unit->backend->discard)
		data[14] = 0xc0; /* LBPME, LBPRZ */
	scsi_reply(call, data, sizeof(data), get_be32(call->task->cdb + 10));
}

/* SELECT REPORT: 0 and 2 all units; 1 well-known units, of which there is none */
void scsi_report_luns(struct scsi_call *call)
{
	const uint8_t *cdb = call->task->cdb;
	uint8_t data[8 + 8 * SCSI_MAX_LUNS] = {0};
	size_t bytes = 8;

	if (cdb[2] > 2) {
		scsi_bad_cdb(call, 2);
		return;
	}
	for (unsigned i = 0; cdb[2] != 1 && i < SCSI_MAX_LUNS; i++)
		if (call->target->units[i]) {
			data[bytes + 1] = (uint8_t)i;
			bytes += 8;
		}
	put_be32(data, (uint32_t)(bytes - 8));
	scsi_reply(call, data, bytes, get_be32(cdb + 6));
	call->task->luns_reported = cdb[2] != 1;
}

/* --- MODE SENSE --- */

enum { CURRENT, CHANGEABLE, DEFAULT, SAVED }; /* page control */
enum { ALL_PAGES = 0x3f, ALL_SUBPAGES = 0xff, WRITE_PROTECT = 0x80, DPO_FUA = 0x10 };

#define MODE_PAGES_BYTES (20 + 12)

/* Caching (SBC-3 6.5.5) and control (SPC-4 7.5.8); nothing of them can be changed.
 * Return: bytes */
static size_t put_pages(const struct scsi_unit *u, uint8_t code, uint8_t control,
			uint8_t *to)
{
	uint8_t *at = to;

	memset(to, 0, MODE_PAGES_BYTES);
	if (code == 0x08 || code == ALL_PAGES) {
		at[0] = 0x08;
		at[1] = 18;
		if (control != CHANGEABLE && u->write_back)
			at[2] = 0x04; /* WCE */
		at += 20;
	}
	if (code == 0x0a || code == ALL_PAGES) {
		at[0] = 0x0a;
		at[1] = 10;
		if (control != CHANGEABLE) {
			at[3] = 0x10; /* unrestricted reordering */
			at[5] = 0x40; /* TAS: what another initiator aborts is answered */
		}
		at += 12;
	}
	return (size_t)(at - to);
}

/* Return: bytes; 8, or 16 with LLBAA: the capacity in 64 bits (SBC-3 6.5.2) */
static size_t put_block_descriptor(const struct scsi_unit *u, bool is_long, uint8_t *to)
{
	memset(to, 0, 16);
	if (is_long) {
		put_be64(to, u->nr_blocks);
		put_be32(to + 12, u->block_bytes);
		return 16;
	}
	put_be32(to, (uint32_t)MIN(u->nr_blocks, (uint64_t)UINT32_MAX));
	put_be24(to + 5, u->block_bytes);
	return 8;
}

void scsi_mode_sense(struct scsi_call *call)
{
	const uint8_t *cdb = call->task->cdb;
	const bool is_10 = cdb[0] == 0x5a, is_long = is_10 && cdb[1] & 0x10;
	const uint8_t control = cdb[2] >> 6, code = cdb[2] & 0x3f;
	const uint8_t device = DPO_FUA | (call->unit->read_only ? WRITE_PROTECT : 0);
	uint8_t data[8 + 16 + MODE_PAGES_BYTES] = {0};
	size_t header = is_10 ? 8 : 4, bytes = header, blocks = 0, pages;

	if (control == SAVED) {
		scsi_fail(call, SCSI_SAVING_UNSUPPORTED);
		return;
	}
	if (!(cdb[1] & 0x08)) /* DBD */
		bytes += blocks =
			put_block_descriptor(call->unit, is_long, data + header);
	pages = put_pages(call->unit, code, control, data + bytes);
	if (!pages || (cdb[3] && !(cdb[3] == ALL_SUBPAGES && code == ALL_PAGES))) {
		scsi_bad_cdb(call, pages ? 3 : 2);
		return;
	}
	bytes += pages;
	if (is_10) {
		put_be16(data, (uint16_t)(bytes - 2));
		data[3] = device;
		data[4] = is_long;
		put_be16(data + 6, (uint16_t)blocks);
	} else {
		data[0] = (uint8_t)(bytes - 1);
		data[2] = device;
		data[3] = (uint8_t)blocks;
	}
	scsi_reply(call, data, bytes, is_10 ? get_be16(cdb + 7) : cdb[4]);
}

/* --- REPORT SUPPORTED OPERATION CODES (SPC-4 6.35) --- */

enum { ALL_COMMANDS, BY_OPCODE, BY_ACTION, BY_EITHER }; /* reporting options */

enum { RCTD = 0x80 };

#define MAX_COMMANDS   64
#define TIMEOUTS_BYTES 12

/* RCTD asks for times behind each command, of which none is known.
 * Return: bytes */
static size_t put_timeouts(const struct scsi_call *call, uint8_t *to)
{
	if (!(call->task->cdb[2] & RCTD))
		return 0;
	memset(to, 0, TIMEOUTS_BYTES);
	put_be16(to, TIMEOUTS_BYTES - 2);
	return TIMEOUTS_BYTES;
}

static void report_all(struct scsi_call *call, size_t room)
{
	uint8_t data[4 + (8 + TIMEOUTS_BYTES) * MAX_COMMANDS] = {0}, *at = data + 4;

	for (size_t i = 0; i < MIN(scsi_nr_commands, (size_t)MAX_COMMANDS); i++) {
		const struct scsi_command *c = &scsi_commands[i];
		size_t times;

		if (!scsi_knows(call->unit, c))
			continue;
		times = put_timeouts(call, at + 8);
		at[0] = c->opcode;
		at[5] = times ? 2 : 0; /* CTDP */
		if (c->flags & SCSI_ACTION) {
			at[3] = c->action;
			at[5] |= 1; /* SERVACTV */
		}
		put_be16(at + 6, (uint16_t)scsi_cdb_length(c->opcode));
		at += 8 + times;
	}
	put_be32(data, (uint32_t)(at - data - 4));
	scsi_reply(call, data, (size_t)(at - data), room);
}

static void report_one(struct scsi_call *call, const struct scsi_command *c, size_t room)
{
	uint8_t data[4 + 16 + TIMEOUTS_BYTES] = {[1] = 1}; /* not supported */
	size_t length = 0, times = 0;

	if (c) {
		length = scsi_cdb_length(c->opcode);
		data[1] = 3; /* supported as the standard says */
		memcpy(data + 4, c->usage, length);
		if (c->flags & SCSI_ACTION)
			data[5] = c->action;
		times = put_timeouts(call, data + 4 + length);
		data[1] |= times ? 0x80 : 0; /* CTDP */
	}
	put_be16(data + 2, (uint16_t)length);
	scsi_reply(call, data, 4 + length + times, room);
}

void scsi_report_opcodes(struct scsi_call *call)
{
	const uint8_t *cdb = call->task->cdb;
	const uint8_t wanted[2] = {cdb[3], cdb[5]};
	const uint8_t options = cdb[2] & 7;
	const bool actions = scsi_has_actions(wanted[0]);
	const size_t room = get_be32(cdb + 6);

	if (options > BY_EITHER)
		scsi_bad_cdb(call, 2);
	else if (options == ALL_COMMANDS)
		report_all(call, room);
	else if ((options == BY_OPCODE && actions) || (options == BY_ACTION && !actions))
		scsi_bad_cdb(call, 3);
	else if (actions ? cdb[4] || wanted[1] > 0x1f
			 : options == BY_EITHER && (cdb[4] || cdb[5]))
		report_one(call, NULL, room);
	else
		report_one(call, scsi_find_command(call->unit, wanted), room);
}
