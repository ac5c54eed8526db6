/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the files of this layer share: the table of commands and their outcomes. */
#ifndef SOFTIB_SCSI_PRIVATE_H
#define SOFTIB_SCSI_PRIVATE_H

#include "base/bytes.h"
#include "scsi/scsi.h"

#define SCSI_ANY_ACTION 0xff

enum scsi_command_flags {
	SCSI_ACTION = 1,	  /* byte 1 chooses by service action */
	SCSI_NO_UNIT_OK = 2,	  /* answered for a LUN without a unit, too */
	SCSI_KEEPS_ATTENTION = 4, /* does not report a unit attention (SPC-4 5.14) */
	SCSI_CHANGES = 8,	  /* the medium: refused by a read-only unit */
	SCSI_DISCARDS = 16,	  /* unknown to a unit whose back end cannot discard */
	SCSI_READS = 32,  /* the medium: some reservations exclude others from it */
	SCSI_STORES = 64, /* changes nothing, but reservations treat it as a write */
};

/** struct scsi_call - a task in work: its unit, and its command's row */
struct scsi_call {
	struct scsi_task *task;
	const struct scsi_target *target;
	struct scsi_unit *unit; /* NULL: with SCSI_NO_UNIT_OK alone */
	const struct scsi_command *command;
};

/** struct scsi_command - a row of the table */
struct scsi_command {
	uint8_t opcode, action;
	uint8_t flags; /* enum scsi_command_flags */
	void (*run)(struct scsi_call *call);
	/** how many bytes of data-out a command takes; NULL: none */
	uint64_t (*out_bytes)(const struct scsi_unit *unit, const uint8_t *cdb);
	/** which bits of each byte of the CDB are looked at (SPC-4 6.35.3): those beyond
	 *  the opcode that are 0 here must be 0 */
	uint8_t usage[16];
};

extern const struct scsi_command scsi_commands[];
extern const size_t scsi_nr_commands;

/** scsi_cdb_length() - by the group code of the opcode (SPC-4 4.2.5.1); 0: not defined */
size_t scsi_cdb_length(uint8_t opcode);
/** scsi_knows() - does @unit, which may be NULL, have the command of the row @c? */
bool scsi_knows(const struct scsi_unit *unit, const struct scsi_command *c);
/** scsi_find_command() - Return: the row of the command in @cdb; NULL: @unit has none */
const struct scsi_command *scsi_find_command(const struct scsi_unit *unit,
					     const uint8_t *cdb);
/** scsi_has_actions() - does byte 1 choose between commands of this opcode? */
bool scsi_has_actions(uint8_t opcode);

/* --- outcomes --- */

/** scsi_fail() - CHECK CONDITION with @sense */
void scsi_fail(struct scsi_call *call, enum scsi_sense sense);
/** scsi_bad_cdb() - INVALID FIELD IN CDB that points at @byte */
void scsi_bad_cdb(struct scsi_call *call, uint8_t byte);
/** scsi_reply() - deliver @bytes of @data, of which the initiator allocated room for
 * @room */
void scsi_reply(struct scsi_call *call, const void *data, size_t bytes, size_t room);

/* --- block commands: block.c, range.c --- */

/** struct scsi_extent - blocks that a CDB names */
struct scsi_extent {
	uint64_t lba;
	uint64_t nr;
};
struct scsi_extent scsi_cdb_extent(const uint8_t *cdb);
/** scsi_in_range() - false: the command failed */
bool scsi_in_range(struct scsi_call *call, struct scsi_extent e);
/** scsi_medium() - the outcome of a back end's call. Return: true: it succeeded */
bool scsi_medium(struct scsi_call *call, int err, enum scsi_sense otherwise);
/** scsi_flush() - Return: true: what was written is safe */
bool scsi_flush(struct scsi_call *call);

uint64_t scsi_extent_bytes(const struct scsi_unit *unit, const uint8_t *cdb);
uint64_t scsi_verify_bytes(const struct scsi_unit *unit, const uint8_t *cdb);
uint64_t scsi_same_bytes(const struct scsi_unit *unit, const uint8_t *cdb);
uint64_t scsi_swap_bytes(const struct scsi_unit *unit, const uint8_t *cdb);
uint64_t scsi_unmap_bytes(const struct scsi_unit *unit, const uint8_t *cdb);

void scsi_read(struct scsi_call *call);
void scsi_write(struct scsi_call *call);
void scsi_verify(struct scsi_call *call);
void scsi_synchronize(struct scsi_call *call);
void scsi_unmap(struct scsi_call *call);
void scsi_write_same(struct scsi_call *call);
void scsi_compare_and_write(struct scsi_call *call);

/* --- descriptions of the unit: inquiry.c, report.c --- */

#define SCSI_MAX_UNMAP_DESCS 64
#define SCSI_MAX_SAME_BYTES  (32u << 20)

void scsi_inquiry(struct scsi_call *call);
void scsi_test_unit_ready(struct scsi_call *call);
void scsi_request_sense(struct scsi_call *call);
void scsi_read_capacity_10(struct scsi_call *call);
void scsi_read_capacity_16(struct scsi_call *call);
void scsi_report_luns(struct scsi_call *call);
void scsi_report_opcodes(struct scsi_call *call);
void scsi_mode_sense(struct scsi_call *call);

/* --- persistent reservations: reserve.c --- */

/** scsi_take_attention() - what the initiator is to be told, once */
enum scsi_sense scsi_take_attention(struct scsi_call *call);
/** scsi_was_preempted() - did PREEMPT AND ABORT abort the command? */
bool scsi_was_preempted(const struct scsi_call *call);
/** scsi_may_access() - false: a reservation is in the way, and the command failed */
bool scsi_may_access(struct scsi_call *call);

uint64_t scsi_reserve_bytes(const struct scsi_unit *unit, const uint8_t *cdb);

void scsi_read_keys(struct scsi_call *call);
void scsi_read_reservation(struct scsi_call *call);
void scsi_report_capabilities(struct scsi_call *call);
void scsi_read_full_status(struct scsi_call *call);
bool scsi_is_reservation_type(uint8_t type);
/** scsi_reserve_out() - PERSISTENT RESERVE OUT, every service action */
void scsi_reserve_out(struct scsi_call *call);

#endif
