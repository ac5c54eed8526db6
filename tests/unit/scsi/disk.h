/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A disk in memory, which can be told to fail, and commands to it. */
#ifndef SOFTIB_TEST_SCSI_DISK_H
#define SOFTIB_TEST_SCSI_DISK_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "scsi/scsi.h"

#define DISK_BLOCKS 64
#define DISK_BYTES  (DISK_BLOCKS * 512)

struct disk {
	struct scsi_backend backend;
	struct scsi_unit unit;
	struct scsi_target target;
	struct scsi_nexus nexus;
	struct scsi_task task; /* the last command's */
	uint8_t medium[DISK_BYTES];
	uint8_t in[DISK_BYTES + 4096];
	size_t in_room;
	const uint8_t *initiator; /* of the next commands */
	uint64_t order;		  /* of the next command */
	int err;		  /* what the next calls of the back end return */
	unsigned flushes, discards;
	uint8_t kept[SCSI_SAVED_BYTES]; /* reservations */
	size_t kept_bytes;
};

static inline void disk_check(uint64_t offset, uint64_t bytes)
{
	if (!bytes || offset % 512 || bytes % 512 ||
	    !range_covers(0, DISK_BYTES, offset, bytes))
		abort();
}

static inline int disk_read(void *ctx, uint64_t offset, void *to, size_t bytes)
{
	struct disk *d = ctx;

	disk_check(offset, bytes);
	if (!d->err)
		memcpy(to, d->medium + offset, bytes);
	return d->err;
}

static inline int disk_write(void *ctx, uint64_t offset, const void *from, size_t bytes)
{
	struct disk *d = ctx;

	disk_check(offset, bytes);
	if (!d->err)
		memcpy(d->medium + offset, from, bytes);
	return d->err;
}

static inline int disk_flush(void *ctx)
{
	struct disk *d = ctx;

	d->flushes++;
	return d->err;
}

static inline int disk_discard(void *ctx, uint64_t offset, uint64_t bytes)
{
	struct disk *d = ctx;

	disk_check(offset, bytes);
	d->discards++;
	if (!d->err)
		memset(d->medium + offset, 0, bytes);
	return d->err;
}

static inline int disk_keep(void *ctx, const uint8_t *state, size_t bytes)
{
	struct disk *d = ctx;

	if (d->err)
		return d->err;
	memcpy(d->kept, state, bytes);
	d->kept_bytes = bytes;
	return 0;
}

static inline void disk_init(struct disk *d)
{
	memset(d, 0, sizeof(*d));
	d->backend =
		(struct scsi_backend){disk_read, disk_write, disk_flush, disk_discard};
	d->unit = (struct scsi_unit){.backend = &d->backend,
				     .ctx = d,
				     .nr_blocks = DISK_BLOCKS,
				     .block_bytes = 512,
				     .write_back = true,
				     .id = 0x0123456789abcdef};
	d->target.units[0] = &d->unit;
	d->in_room = sizeof(d->in);
}

/** disk_run() - Return: 0: GOOD; the sense of a CHECK CONDITION; -status otherwise */
static inline int disk_run(struct disk *d, uint16_t lun, const uint8_t cdb[16],
			   const void *out, size_t out_bytes)
{
	struct scsi_task *t = &d->task;

	*t = (struct scsi_task){.cdb = cdb,
				.cdb_bytes = 16,
				.out = out,
				.out_bytes = out_bytes,
				.in = d->in,
				.in_room = d->in_room,
				.nexus = &d->nexus,
				.initiator = d->initiator,
				.order = d->order};
	put_be16(t->lun, lun);
	scsi_execute(&d->target, t);
	if (t->status == SCSI_CHECK_CONDITION)
		return (t->sense[2] & 15) << 16 | get_be16(t->sense + 12);
	return -(int)t->status;
}

#endif
