/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The table of commands, and what holds for all of them: the length of a CDB, the bits
 * that nobody looks at, units that are not there, unit attentions, reservations and
 * outcomes. */
#include "scsi/private.h"

#define LBA4	0xff, 0xff, 0xff, 0xff
#define LBA8	LBA4, LBA4
#define COUNT2	0xff, 0xff
#define COUNT4	LBA4
#define CONTROL 0 /* NACA needs NORMACA of INQUIRY, which is not set (SAM-5 5.2) */
#define GROUP	0x1f
#define DPO_FUA 0x18

enum { KEEP = SCSI_KEEPS_ATTENTION, ANY = SCSI_ANY_ACTION };

/* clang-format off */
const struct scsi_command scsi_commands[] = {
	{0x00, ANY, 0, scsi_test_unit_ready, NULL, {0x00, 0, 0, 0, 0, CONTROL}},
	{0x03, ANY, SCSI_NO_UNIT_OK | KEEP, scsi_request_sense, NULL, {0x03, 1, 0, 0, 0xff, CONTROL}},
	{0x08, ANY, SCSI_READS, scsi_read, NULL, {0x08, 0x1f, 0xff, 0xff, 0xff, CONTROL}},
	{0x0a, ANY, SCSI_CHANGES, scsi_write, scsi_extent_bytes, {0x0a, 0x1f, 0xff, 0xff, 0xff, CONTROL}},
	{0x12, ANY, SCSI_NO_UNIT_OK | KEEP, scsi_inquiry, NULL, {0x12, 1, 0xff, COUNT2, CONTROL}},
	{0x1a, ANY, 0, scsi_mode_sense, NULL, {0x1a, 0x08, 0xff, 0xff, 0xff, CONTROL}},
	{0x25, ANY, 0, scsi_read_capacity_10, NULL, {0x25}},
	{0x28, ANY, SCSI_READS, scsi_read, NULL, {0x28, DPO_FUA, LBA4, GROUP, COUNT2, CONTROL}},
	{0x2a, ANY, SCSI_CHANGES, scsi_write, scsi_extent_bytes, {0x2a, DPO_FUA, LBA4, GROUP, COUNT2, CONTROL}},
	{0x2f, ANY, SCSI_READS, scsi_verify, scsi_verify_bytes, {0x2f, 0x16, LBA4, GROUP, COUNT2, CONTROL}},
	{0x35, ANY, SCSI_STORES, scsi_synchronize, NULL, {0x35, 0x06, LBA4, GROUP, COUNT2, CONTROL}},
	{0x41, ANY, SCSI_CHANGES, scsi_write_same, scsi_same_bytes, {0x41, 0x08, LBA4, GROUP, COUNT2, CONTROL}},
	{0x42, ANY, SCSI_CHANGES | SCSI_DISCARDS, scsi_unmap, scsi_unmap_bytes, {0x42, 0, 0, 0, 0, 0, GROUP, COUNT2, CONTROL}},
	{0x5a, ANY, 0, scsi_mode_sense, NULL, {0x5a, 0x18, 0xff, 0xff, 0, 0, 0, COUNT2, CONTROL}},
	{0x5e, 0x00, SCSI_ACTION, scsi_read_keys, NULL, {0x5e, 0x1f, [7] = COUNT2, CONTROL}},
	{0x5e, 0x01, SCSI_ACTION, scsi_read_reservation, NULL, {0x5e, 0x1f, [7] = COUNT2, CONTROL}},
	{0x5e, 0x02, SCSI_ACTION, scsi_report_capabilities, NULL, {0x5e, 0x1f, [7] = COUNT2, CONTROL}},
	{0x5e, 0x03, SCSI_ACTION, scsi_read_full_status, NULL, {0x5e, 0x1f, [7] = COUNT2, CONTROL}},
	{0x5f, 0x00, SCSI_ACTION, scsi_reserve_out, scsi_reserve_bytes, {0x5f, 0x1f, 0xff, 0, 0, COUNT4, CONTROL}},
	{0x5f, 0x01, SCSI_ACTION, scsi_reserve_out, scsi_reserve_bytes, {0x5f, 0x1f, 0xff, 0, 0, COUNT4, CONTROL}},
	{0x5f, 0x02, SCSI_ACTION, scsi_reserve_out, scsi_reserve_bytes, {0x5f, 0x1f, 0xff, 0, 0, COUNT4, CONTROL}},
	{0x5f, 0x03, SCSI_ACTION, scsi_reserve_out, scsi_reserve_bytes, {0x5f, 0x1f, 0xff, 0, 0, COUNT4, CONTROL}},
	{0x5f, 0x04, SCSI_ACTION, scsi_reserve_out, scsi_reserve_bytes, {0x5f, 0x1f, 0xff, 0, 0, COUNT4, CONTROL}},
	{0x5f, 0x05, SCSI_ACTION, scsi_reserve_out, scsi_reserve_bytes, {0x5f, 0x1f, 0xff, 0, 0, COUNT4, CONTROL}},
	{0x5f, 0x06, SCSI_ACTION, scsi_reserve_out, scsi_reserve_bytes, {0x5f, 0x1f, 0xff, 0, 0, COUNT4, CONTROL}},
	{0x5f, 0x07, SCSI_ACTION, scsi_reserve_out, scsi_reserve_bytes, {0x5f, 0x1f, 0xff, 0, 0, COUNT4, CONTROL}},
	{0x88, ANY, SCSI_READS, scsi_read, NULL, {0x88, DPO_FUA, LBA8, COUNT4, GROUP, CONTROL}},
	{0x89, ANY, SCSI_CHANGES, scsi_compare_and_write, scsi_swap_bytes, {0x89, DPO_FUA, LBA8, 0, 0, 0, 0xff, GROUP, CONTROL}},
	{0x8a, ANY, SCSI_CHANGES, scsi_write, scsi_extent_bytes, {0x8a, DPO_FUA, LBA8, COUNT4, GROUP, CONTROL}},
	{0x8f, ANY, SCSI_READS, scsi_verify, scsi_verify_bytes, {0x8f, 0x16, LBA8, COUNT4, GROUP, CONTROL}},
	{0x91, ANY, SCSI_STORES, scsi_synchronize, NULL, {0x91, 0x06, LBA8, COUNT4, GROUP, CONTROL}},
	{0x93, ANY, SCSI_CHANGES, scsi_write_same, scsi_same_bytes, {0x93, 0x09, LBA8, COUNT4, GROUP, CONTROL}},
	{0x9e, 0x10, SCSI_ACTION, scsi_read_capacity_16, NULL, {0x9e, 0x1f, [10] = COUNT4, CONTROL}},
	{0xa0, ANY, SCSI_NO_UNIT_OK | KEEP, scsi_report_luns, NULL, {0xa0, 0, 0xff, 0, 0, 0, COUNT4, 0, CONTROL}},
	{0xa3, 0x0c, SCSI_ACTION, scsi_report_opcodes, NULL, {0xa3, 0x1f, 0x87, 0xff, 0xff, 0xff, COUNT4, 0, CONTROL}},
	{0xa8, ANY, SCSI_READS, scsi_read, NULL, {0xa8, DPO_FUA, LBA4, COUNT4, GROUP, CONTROL}},
	{0xaa, ANY, SCSI_CHANGES, scsi_write, scsi_extent_bytes, {0xaa, DPO_FUA, LBA4, COUNT4, GROUP, CONTROL}},
	{0xaf, ANY, SCSI_READS, scsi_verify, scsi_verify_bytes, {0xaf, 0x16, LBA4, COUNT4, GROUP, CONTROL}},
};
/* clang-format on */
const size_t scsi_nr_commands = ARRAY_SIZE(scsi_commands);

size_t scsi_cdb_length(uint8_t opcode)
{
	static const uint8_t bytes[8] = {6, 10, 10, 0, 16, 12, 0, 0};

	return bytes[opcode >> 5];
}

bool scsi_knows(const struct scsi_unit *unit, const struct scsi_command *c)
{
	return !(c->flags & SCSI_DISCARDS) || (unit && unit->backend->discard);
}

const struct scsi_command *scsi_find_command(const struct scsi_unit *unit, const uint8_t *cdb)
{
	for (size_t i = 0; i < scsi_nr_commands; i++) {
		const struct scsi_command *c = &scsi_commands[i];

		if (c->opcode == cdb[0] && scsi_knows(unit, c) &&
		    (!(c->flags & SCSI_ACTION) || c->action == (cdb[1] & 0x1f)))
			return c;
	}
	return NULL;
}

bool scsi_has_actions(uint8_t opcode)
{
	for (size_t i = 0; i < scsi_nr_commands; i++)
		if (scsi_commands[i].opcode == opcode &&
		    scsi_commands[i].flags & SCSI_ACTION)
			return true;
	return false;
}

/* --- outcomes --- */

void scsi_put_sense(uint8_t to[SCSI_SENSE_BYTES], enum scsi_sense sense)
{
	memset(to, 0, SCSI_SENSE_BYTES);
	to[0] = 0x70; /* of this command, fixed format */
	to[2] = (uint8_t)(sense >> 16);
	to[7] = SCSI_SENSE_BYTES - 8;
	put_be16(to + 12, (uint16_t)sense);
}

void scsi_fail(struct scsi_call *call, enum scsi_sense sense)
{
	struct scsi_task *t = call->task;

	t->status = SCSI_CHECK_CONDITION;
	t->in_bytes = 0;
	t->sense_bytes = SCSI_SENSE_BYTES;
	scsi_put_sense(t->sense, sense);
}

/* SPC-4 4.5.2.4.2: the field pointer is valid, and points into the CDB */
void scsi_bad_cdb(struct scsi_call *call, uint8_t byte)
{
	scsi_fail(call, SCSI_INVALID_FIELD_IN_CDB);
	call->task->sense[15] = 0xc0;
	call->task->sense[17] = byte;
}

void scsi_reply(struct scsi_call *call, const void *data, size_t bytes, size_t room)
{
	struct scsi_task *t = call->task;

	t->in_bytes = MIN(bytes, room);
	if (MIN(t->in_bytes, t->in_room))
		memcpy(t->in, data, MIN(t->in_bytes, t->in_room));
}

/* --- dispatch --- */

int scsi_lun_index(const uint8_t lun[8])
{
	static const uint8_t zero[6];
	uint8_t method = lun[0] >> 6;

	if (memcmp(lun + 2, zero, sizeof(zero)) || method > 1 || (!method && lun[0]))
		return -1;
	return (lun[0] & 0x3f) << 8 | lun[1];
}

static struct scsi_unit *find_unit(const struct scsi_target *target, const uint8_t lun[8])
{
	int i = scsi_lun_index(lun);

	return i >= 0 && i < SCSI_MAX_LUNS ? target->units[i] : NULL;
}

/* Return: false: a bit is set that the command does not know, and the command failed */
static bool check_cdb(struct scsi_call *call)
{
	const struct scsi_command *c = call->command;

	for (uint8_t i = 1; i < scsi_cdb_length(c->opcode); i++)
		if (call->task->cdb[i] & ~c->usage[i]) {
			scsi_bad_cdb(call, i);
			return false;
		}
	return true;
}

/* SPC-4 5.14: the first command that may tell it does, and is not performed */
static bool report_attention(struct scsi_call *call)
{
	enum scsi_sense attention = call->command->flags & SCSI_KEEPS_ATTENTION
					    ? SCSI_NO_SENSE
					    : scsi_take_attention(call);

	if (attention)
		scsi_fail(call, attention);
	return attention != SCSI_NO_SENSE;
}

/* Return: false: all that the command takes from the initiator is not there */
static bool check_out(struct scsi_call *call)
{
	const struct scsi_command *c = call->command;
	struct scsi_task *t = call->task;
	uint64_t bytes = c->out_bytes ? c->out_bytes(call->unit, t->cdb) : 0;

	if (bytes > SCSI_MAX_TRANSFER_BYTES) {
		scsi_fail(call, SCSI_INVALID_FIELD_IN_CDB);
		return false;
	}
	if (bytes > t->out_bytes) {
		scsi_fail(call, SCSI_TRANSFER_TOO_SHORT);
		return false;
	}
	t->out_taken = bytes;
	return true;
}

/* An unknown service action is a field that is wrong (SPC-4 6.15.1, 6.16.1). */
static void fail_unknown(struct scsi_call *call, bool has_cdb)
{
	if (has_cdb && scsi_has_actions(call->task->cdb[0]))
		scsi_bad_cdb(call, 1);
	else
		scsi_fail(call, SCSI_INVALID_OPCODE);
}

/* Return: is the CDB as long as its opcode says? */
static bool begin_call(const struct scsi_target *target, struct scsi_task *t,
		       struct scsi_call *call)
{
	const size_t length = t->cdb_bytes ? scsi_cdb_length(t->cdb[0]) : 0;
	const bool whole = length && length <= t->cdb_bytes;

	*call = (struct scsi_call){
		.task = t, .target = target, .unit = find_unit(target, t->lun)};
	call->command = whole ? scsi_find_command(call->unit, t->cdb) : NULL;
	return whole;
}

bool scsi_admit(const struct scsi_target *target, struct scsi_task *t)
{
	struct scsi_call call;
	const bool whole = begin_call(target, t, &call);

	t->status = SCSI_GOOD;
	t->in_bytes = t->out_taken = t->sense_bytes = 0;
	t->luns_reported = false;
	if (!call.unit && (!call.command || !(call.command->flags & SCSI_NO_UNIT_OK)))
		scsi_fail(&call, SCSI_NO_UNIT);
	else if (!call.command)
		fail_unknown(&call, whole);
	else if (scsi_was_preempted(&call))
		t->status = SCSI_TASK_ABORTED;
	else if (report_attention(&call) || !check_cdb(&call) || !scsi_may_access(&call))
		return false;
	else if (call.command->flags & SCSI_CHANGES && call.unit->read_only)
		scsi_fail(&call, SCSI_WRITE_PROTECTED);
	else
		return check_out(&call);
	return false;
}

void scsi_perform(const struct scsi_target *target, struct scsi_task *t)
{
	struct scsi_call call;

	begin_call(target, t, &call);
	call.command->run(&call);
}

void scsi_execute(const struct scsi_target *target, struct scsi_task *t)
{
	if (scsi_admit(target, t))
		scsi_perform(target, t);
}

/* Reads and writes: hosts that have several of the same blocks under way do not care for
 * their order. */
bool scsi_is_parallel(const struct scsi_unit *unit, const uint8_t *cdb, size_t bytes)
{
	const struct scsi_command *c =
		bytes && scsi_cdb_length(cdb[0]) && scsi_cdb_length(cdb[0]) <= bytes
			? scsi_find_command(unit, cdb)
			: NULL;

	return c && (c->run == scsi_read || c->run == scsi_write || c->run == scsi_verify);
}

int64_t scsi_data_out_bytes(const struct scsi_unit *unit, const uint8_t *cdb,
			    size_t bytes)
{
	const struct scsi_command *c;
	uint64_t need;

	if (!bytes || !scsi_cdb_length(cdb[0]) || scsi_cdb_length(cdb[0]) > bytes)
		return -1;
	c = scsi_find_command(unit, cdb);
	need = c && c->out_bytes ? c->out_bytes(unit, cdb) : 0;
	return !c || need > SCSI_MAX_TRANSFER_BYTES ? -1 : (int64_t)need;
}
