/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Any bytes as commands to a disk: flags, LUN, room for data in 64 bytes, bytes of
 * data-out, 16 bytes of CDB, the data; and so on. The back end stops at an access outside
 * of the medium (disk.h).
 */
#include "../unit/scsi/disk.h"
#include "check.h"

#define HEAD 20

enum { FAIL = 1, READ_ONLY = 2, NO_DISCARD = 4, ATTENTION = 8, HOSTS = 0xf0 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_outcome(const struct disk *d, size_t out_bytes)
{
	const struct scsi_task *t = &d->task;

	check(t->status == SCSI_GOOD || t->status == SCSI_CHECK_CONDITION ||
	      t->status == SCSI_RESERVATION_CONFLICT || t->status == SCSI_TASK_ABORTED);
	check((t->status == SCSI_CHECK_CONDITION) ==
	      (t->sense_bytes == SCSI_SENSE_BYTES));
	check(t->out_taken <= out_bytes);
	check(t->status == SCSI_GOOD || !t->in_bytes);
}

/* A reservation is held by somebody who is registered. */
static void check_reservation(const struct scsi_reservations *r)
{
	bool any = false;

	for (size_t i = 0; i < SCSI_MAX_REGISTRANTS; i++)
		any |= r->registrants[i].key != 0;
	check(!r->type || any);
	check(!r->type || r->type >= 7 || r->registrants[r->holder].key);
}

/* What is kept is what a unit that lost its power gets back. */
static void check_kept(const struct disk *d)
{
	static struct scsi_reservations again;
	uint8_t once_more[SCSI_SAVED_BYTES];

	if (!d->kept_bytes)
		return;
	check(!scsi_reservations_restore(&again, d->kept, d->kept_bytes));
	check_reservation(&again);
	check(scsi_reservations_save(&again, once_more) == d->kept_bytes);
	check(!memcmp(once_more, d->kept, d->kept_bytes));
}

/* Return: bytes of the input that the command was made of */
static size_t run(struct disk *d, const uint8_t *data, size_t size)
{
	size_t room = data[2] * 64u, out_bytes = MIN(data[3] * 64ul, size - HEAD);
	uint8_t *in = malloc(MAX(room, 1ul)), *out = malloc(MAX(out_bytes, 1ul));
	uint8_t host[SCSI_TRANSPORT_ID_BYTES] = {0};
	struct scsi_task *t = &d->task;

	check(in && out);
	memcpy(out, data + HEAD, out_bytes);
	host[0] = data[0] & HOSTS;
	d->err = data[0] & FAIL ? -EIO : 0;
	d->unit.read_only = data[0] & READ_ONLY;
	d->backend.discard = data[0] & NO_DISCARD ? NULL : disk_discard;
	d->nexus.attention = data[0] & ATTENTION ? SCSI_POWER_ON : SCSI_NO_SENSE;
	*t = (struct scsi_task){.lun = {0, data[1] & 1},
				.cdb = data + 4,
				.cdb_bytes = 16,
				.out = out,
				.out_bytes = out_bytes,
				.in = in,
				.in_room = room,
				.nexus = &d->nexus,
				.initiator = host[0] == HOSTS ? NULL : host,
				.order = data[1] >> 1};
	scsi_execute(&d->target, t);
	check_outcome(d, out_bytes);
	check_reservation(&d->unit.reservations);
	check_kept(d);
	free(in);
	free(out);
	return HEAD + out_bytes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct disk d;

	disk_init(&d);
	d.backend.keep = disk_keep;
	while (size >= HEAD) {
		size_t used = run(&d, data, size);

		data += used;
		size -= used;
	}
	return 0;
}
