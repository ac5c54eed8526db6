/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A SCSI disk (T10 SPC-4, SBC-3), pure: a command and its data go in, a status, data and
 * sense data come out. The medium is a back end of the caller's; the transport protocol
 * is the caller's, too. Nothing here allocates or locks: the caller serialises the
 * commands of a unit, but those that may run at the same time (scsi_is_parallel()).
 */
#ifndef SOFTIB_SCSI_SCSI_H
#define SOFTIB_SCSI_SCSI_H

#include "base/types.h"

#define SCSI_SENSE_BYTES	18
#define SCSI_MAX_LUNS		256
#define SCSI_MAX_TRANSFER_BYTES (8u << 20) /* of one command, either direction */
#define SCSI_MAX_BLOCK_BYTES	4096
#define SCSI_MAX_REGISTRANTS	64 /* initiator ports with a reservation key at a unit */
#define SCSI_TRANSPORT_ID_BYTES 24
#define SCSI_SAVED_BYTES	(4 + SCSI_MAX_REGISTRANTS * (SCSI_TRANSPORT_ID_BYTES + 9))

enum scsi_status {
	SCSI_GOOD = 0x00,
	SCSI_CHECK_CONDITION = 0x02,
	SCSI_BUSY = 0x08,
	SCSI_RESERVATION_CONFLICT = 0x18,
	SCSI_TASK_SET_FULL = 0x28,
	SCSI_TASK_ABORTED = 0x40,
};

/** enum scsi_sense - sense key, additional sense code and its qualifier: 0xKCCQQ */
enum scsi_sense {
	SCSI_NO_SENSE = 0x00000,
	SCSI_READ_ERROR = 0x31100,
	SCSI_WRITE_ERROR = 0x30c00,
	SCSI_TARGET_FAILURE = 0x44400,
	SCSI_PARAMETER_LIST_LENGTH = 0x51a00,
	SCSI_INVALID_OPCODE = 0x52000,
	SCSI_LBA_OUT_OF_RANGE = 0x52100,
	SCSI_INVALID_FIELD_IN_CDB = 0x52400,
	SCSI_NO_UNIT = 0x52500,
	SCSI_INVALID_FIELD_IN_PARAMETERS = 0x52600,
	SCSI_INVALID_RELEASE = 0x52604,
	SCSI_SAVING_UNSUPPORTED = 0x53900,
	SCSI_INVALID_MESSAGE = 0x54900,
	SCSI_NO_REGISTRATION_RESOURCES = 0x55504,
	SCSI_POWER_ON = 0x62900,
	SCSI_UNIT_RESET = 0x62903,
	SCSI_RESERVATIONS_PREEMPTED = 0x62a03,
	SCSI_RESERVATIONS_RELEASED = 0x62a04,
	SCSI_REGISTRATIONS_PREEMPTED = 0x62a05,
	SCSI_CAPACITY_CHANGED = 0x62a09,
	SCSI_LUNS_CHANGED = 0x63f0e, /* units came or went */
	SCSI_WRITE_PROTECTED = 0x72700,
	SCSI_SPACE_EXHAUSTED = 0x72707,
	SCSI_TRANSFER_TOO_SHORT =
		0xb4b00, /* the initiator's buffer lacks data for the command */
	SCSI_MISCOMPARE = 0xe1d00,
};

/** struct scsi_backend - the medium; offsets and lengths are whole blocks within the
 * unit. Each returns 0 or -errno; -ENOSPC says that a sparse medium has no room left. */
struct scsi_backend {
	int (*read)(void *ctx, uint64_t offset, void *to, size_t bytes);
	int (*write)(void *ctx, uint64_t offset, const void *from, size_t bytes);
	int (*flush)(void *ctx); /* what was written survives; NULL: it always does */
	/** the range then reads as zero and need not take space; NULL: cannot */
	int (*discard)(void *ctx, uint64_t offset, uint64_t bytes);
	/** the @bytes of @state, of scsi_reservations_save(), outlast a loss of power, in place
	 * of those before; NULL: cannot */
	int (*keep)(void *ctx, const uint8_t *state, size_t bytes);
};

/** struct scsi_registrant - an initiator port that has a reservation key, or had one */
struct scsi_registrant {
	bool known; /* false: the rest says nothing */
	bool all_ports;
	uint8_t id[SCSI_TRANSPORT_ID_BYTES];
	uint64_t key;		   /* 0: not registered any more */
	enum scsi_sense attention; /* what its next command is answered with */
	uint64_t aborted_before;   /* its commands of a lower order are aborted */
};

/** struct scsi_reservations - who registered, and who reserved the unit (SPC-4 5.12) */
struct scsi_reservations {
	uint32_t generation;
	bool kept;	/* they outlast a loss of power (APTPL) */
	uint8_t type;	/* of the reservation; 0: there is none */
	uint8_t holder; /* index of its registrant, if not all of them hold it */
	struct scsi_registrant registrants[SCSI_MAX_REGISTRANTS];
};

/** struct scsi_unit - a logical unit; all but the reservations is the caller's to fill in
 */
struct scsi_unit {
	const struct scsi_backend *backend;
	void *ctx; /* the back end's */
	uint64_t nr_blocks;
	uint32_t block_bytes; /* 512 or SCSI_MAX_BLOCK_BYTES */
	bool read_only;
	bool write_back; /* writes are safe on stable storage only after a flush */
	uint64_t id;	 /* names the unit to hosts (page 83); unique in the fabric */
	/** zero at first, or what scsi_reservations_restore() has set */
	struct scsi_reservations reservations;
};

/** struct scsi_target - the units that an initiator reaches: the index is the LUN */
struct scsi_target {
	struct scsi_unit *units[SCSI_MAX_LUNS]; /* NULL: there is none */
};

/** struct scsi_nexus - what a unit has to tell one initiator; zero: nothing */
struct scsi_nexus {
	enum scsi_sense attention; /* reported once, by the next command that may */
};

/** struct scsi_task - one command, and its outcome */
struct scsi_task {
	/* --- set by the caller --- */
	uint8_t lun[8];
	const uint8_t *cdb;
	size_t cdb_bytes;   /* at least 6; what the transport carries beyond is not looked
			       at */
	const uint8_t *out; /* data from the initiator */
	size_t out_bytes;
	uint8_t *in; /* room for data to it */
	size_t in_room;
	struct scsi_nexus *nexus; /* of initiator and unit; NULL: there is none to tell */
	/** TransportID (SPC-4 7.6.4) of the initiator port, by which reservations know
	 * it; NULL: it can register none */
	const uint8_t *initiator;
	uint64_t order; /* of arrival at the unit: PREEMPT AND ABORT ends what came before
			   it */
	/* --- set by scsi_execute() --- */
	enum scsi_status status;
	size_t in_bytes;  /* the command delivers; above in_room: the rest was cut off */
	size_t out_taken; /* the command uses; at most out_bytes */
	/** the units were listed: SCSI_LUNS_CHANGED of this initiator at any unit is over
	 * (SPC-4 6.33) */
	bool luns_reported;
	uint8_t sense[SCSI_SENSE_BYTES];
	size_t sense_bytes; /* 0, or SCSI_SENSE_BYTES with CHECK CONDITION */
};

/** scsi_execute() - perform @task on the unit that its LUN names
 *
 * Context: one at a time for a unit; lasts as long as the back end needs.
 */
void scsi_execute(const struct scsi_target *target, struct scsi_task *task);

/** scsi_is_parallel() - may a unit perform @cdb beside others like it? Such a command is
 *  admitted by scsi_admit(), one at a time, and performed by scsi_perform(), at the same time
 *  as others; no other command of the unit is in work meanwhile. */
bool scsi_is_parallel(const struct scsi_unit *unit, const uint8_t *cdb, size_t bytes);
/** scsi_admit() - the first half of scsi_execute(): everything but the medium
 *  Return: false: @task is over */
bool scsi_admit(const struct scsi_target *target, struct scsi_task *task);
/** scsi_perform() - the second half, of a task that was admitted */
void scsi_perform(const struct scsi_target *target, struct scsi_task *task);

/** scsi_reservations_save() - what of @r is to outlast a loss of power: nothing, unless r->kept
 *  Return: bytes, at most SCSI_SAVED_BYTES */
size_t scsi_reservations_save(const struct scsi_reservations *r,
			      uint8_t to[SCSI_SAVED_BYTES]);
/** scsi_reservations_restore() - of a unit that got its power back
 *  Return: 0; -EINVAL scsi_reservations_save() has not written this: @r is not changed */
int scsi_reservations_restore(struct scsi_reservations *r, const uint8_t *from, size_t bytes);

/** scsi_put_sense() - write sense data in the fixed format (SPC-4 4.5.3), for what a
 * transport finds out before or after a command is performed */
void scsi_put_sense(uint8_t to[SCSI_SENSE_BYTES], enum scsi_sense sense);

/** scsi_lun_index() - Return: the index that single-level addressing (SAM-5 4.7) of a LUN
 *  means; -1: another kind of address */
int scsi_lun_index(const uint8_t lun[8]);

/** scsi_data_out_bytes() - how much data @cdb takes from the initiator, so that a
 *  transport can fetch it. Return: bytes; -1: unknown command, or above the limit */
int64_t scsi_data_out_bytes(const struct scsi_unit *unit, const uint8_t *cdb,
			    size_t bytes);

#endif
