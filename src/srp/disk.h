/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A SCSI disk as its initiator sees it (SPC-4, SBC-3), pure: the commands that learn what it
 * is, those that use it, and what a status means. */
#ifndef SOFTIB_SRP_DISK_H
#define SOFTIB_SRP_DISK_H

#include "base/types.h"

#define SRPI_CDB_BYTES	   16
#define SRPI_PROBE_BYTES   255 /* of data that a step of the probe gets, at most */
#define SRPI_UNMAP_BYTES   24  /* of an UNMAP's parameters */
#define SRPI_MAX_UNITS	   256
#define SRPI_IDENTITY_BYTES 64

/** struct srpi_disk - what the unit said of itself */
struct srpi_disk {
	uint64_t blocks;
	uint32_t block_bytes;
	uint32_t max_transfer_blocks; /* 0: no limit; here and below */
	uint32_t max_unmap_blocks;
	uint64_t max_same_blocks; /* of a WRITE SAME */
	bool can_fua, can_unmap, can_unmap_same;
	bool unmapped_is_zero;
	bool read_only, write_back;
	uint8_t identity[SRPI_IDENTITY_BYTES]; /* the beginning of its names; zero: none */
	char vendor[9], product[17];
};

/** enum srpi_probe_step - in this order; a unit that lacks one of the optional pages goes on */
enum srpi_probe_step {
	SRPI_INQUIRY,
	SRPI_READY,
	SRPI_CAPACITY,
	SRPI_LIMITS,	   /* page B0, optional */
	SRPI_PROVISIONING, /* page B2, optional */
	SRPI_MODE,	   /* the caching page, optional */
	SRPI_IDENTITY,	   /* page 83, optional */
	SRPI_PROBED,
};

/** srpi_probe_command() - Return: bytes of data that the command of @step gets */
uint32_t srpi_probe_command(enum srpi_probe_step step, uint8_t cdb[SRPI_CDB_BYTES]);
/** srpi_probe_take() - its outcome
 *  @ok: the command succeeded, and delivered @bytes
 *  Return: 0; -ENODEV: this is no disk that can be used */
int srpi_probe_take(struct srpi_disk *disk, enum srpi_probe_step step, bool ok,
		    const uint8_t *data, uint32_t bytes);

/** srpi_report_luns() - Return: bytes that the list of at most SRPI_MAX_UNITS takes */
uint32_t srpi_report_luns(uint8_t cdb[SRPI_CDB_BYTES]);
/** srpi_lun_nth() - LUN @i of the list. Return: false: there are no more */
bool srpi_lun_nth(const uint8_t *list, uint32_t bytes, uint32_t i, uint8_t lun[8]);

/** srpi_is_same() - is @now still the disk that @before was, for a client that knows its size
 *  and what can be done with it? */
bool srpi_is_same(const struct srpi_disk *before, const struct srpi_disk *now);
/** srpi_units_changed() - does sense data say that units came, went or became others? */
bool srpi_units_changed(const uint8_t *sense, uint32_t bytes);
/** srpi_unit_is_new() - does sense data say that the LUN may have another unit than before? */
bool srpi_unit_is_new(const uint8_t *sense, uint32_t bytes);

/* --- use ---------------------------------------------------------------------------- */

void srpi_read(uint8_t cdb[SRPI_CDB_BYTES], uint64_t lba, uint32_t blocks, bool fua);
void srpi_write(uint8_t cdb[SRPI_CDB_BYTES], uint64_t lba, uint32_t blocks, bool fua);
/** srpi_flush() - of the whole disk */
void srpi_flush(uint8_t cdb[SRPI_CDB_BYTES]);
/** srpi_write_same() - its data is one block; @unmap: blocks may be unmapped if that has the
 *  same outcome */
void srpi_write_same(uint8_t cdb[SRPI_CDB_BYTES], uint64_t lba, uint32_t blocks, bool unmap);
/** srpi_unmap() - @parameters is its data */
void srpi_unmap(uint8_t cdb[SRPI_CDB_BYTES], uint8_t parameters[SRPI_UNMAP_BYTES],
		uint64_t lba, uint32_t blocks);

enum srpi_verdict {
	SRPI_GOOD,
	SRPI_REPEAT, /* nothing was done: the unit had something to tell first */
	SRPI_LATER,  /* it is busy */
	SRPI_FAILED,
};

/** srpi_judge() - what a status means
 *  @sense: NULL: none
 *  @error: set when it failed: EIO, ENOSPC, EPERM, EINVAL, or ENODEV: the unit is gone */
enum srpi_verdict srpi_judge(uint8_t status, const uint8_t *sense, uint32_t bytes, int *error);

#endif
