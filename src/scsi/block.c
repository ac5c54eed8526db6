/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Commands that move, compare or discard blocks (SBC-3 chapter 5). */
#include <errno.h>

#include "scsi/private.h"

enum { FUA = 0x08, SAME_UNMAP = 0x08, SAME_NO_DATA = 0x01 };
enum { COMPARE_AND_WRITE = 0x89, WRITE_SAME_16 = 0x93 };

struct scsi_extent scsi_cdb_extent(const uint8_t *cdb)
{
	switch (scsi_cdb_length(cdb[0])) {
	case 6:
		return (struct scsi_extent){get_be24(cdb + 1) & 0x1fffff,
					    cdb[4] ? cdb[4] : 256};
	case 10:
		return (struct scsi_extent){get_be32(cdb + 2), get_be16(cdb + 7)};
	case 12:
		return (struct scsi_extent){get_be32(cdb + 2), get_be32(cdb + 6)};
	default:
		return (struct scsi_extent){
			get_be64(cdb + 2),
			cdb[0] == COMPARE_AND_WRITE ? cdb[13] : get_be32(cdb + 10)};
	}
}

uint64_t scsi_extent_bytes(const struct scsi_unit *unit, const uint8_t *cdb)
{
	return scsi_cdb_extent(cdb).nr * unit->block_bytes;
}

bool scsi_in_range(struct scsi_call *call, struct scsi_extent e)
{
	if (e.lba <= call->unit->nr_blocks && e.nr <= call->unit->nr_blocks - e.lba)
		return true;
	scsi_fail(call, SCSI_LBA_OUT_OF_RANGE);
	return false;
}

bool scsi_medium(struct scsi_call *call, int err, enum scsi_sense otherwise)
{
	if (err)
		scsi_fail(call, err == -ENOSPC ? SCSI_SPACE_EXHAUSTED : otherwise);
	return !err;
}

bool scsi_flush(struct scsi_call *call)
{
	const struct scsi_backend *b = call->unit->backend;

	return !b->flush ||
	       scsi_medium(call, b->flush(call->unit->ctx), SCSI_WRITE_ERROR);
}

static bool write_blocks(struct scsi_call *call, uint64_t lba, const void *from,
			 size_t bytes)
{
	struct scsi_unit *u = call->unit;

	return scsi_medium(call,
			   u->backend->write(u->ctx, lba * u->block_bytes, from, bytes),
			   SCSI_WRITE_ERROR);
}

static bool read_blocks(struct scsi_call *call, uint64_t lba, void *to, size_t bytes)
{
	struct scsi_unit *u = call->unit;

	return scsi_medium(call,
			   u->backend->read(u->ctx, lba * u->block_bytes, to, bytes),
			   SCSI_READ_ERROR);
}

static bool wants_flush(const struct scsi_call *call)
{
	const uint8_t *cdb = call->task->cdb;

	return scsi_cdb_length(cdb[0]) != 6 && cdb[1] & FUA;
}

/* A buffer that is too small gets the blocks that it has whole room for, and the rest of
 * the last one is cut: the transport says so by its residual count. */
void scsi_read(struct scsi_call *call)
{
	struct scsi_extent e = scsi_cdb_extent(call->task->cdb);
	struct scsi_task *t = call->task;
	uint64_t bytes = e.nr * call->unit->block_bytes;
	uint8_t last[SCSI_MAX_BLOCK_BYTES];
	size_t whole, cut;

	if (!scsi_in_range(call, e))
		return;
	if (bytes > SCSI_MAX_TRANSFER_BYTES) {
		scsi_fail(call, SCSI_INVALID_FIELD_IN_CDB);
		return;
	}
	cut = MIN(t->in_room, bytes) % call->unit->block_bytes;
	whole = MIN(t->in_room, bytes) - cut;
	if (whole && !read_blocks(call, e.lba, t->in, whole))
		return;
	if (cut) {
		if (!read_blocks(call, e.lba + whole / call->unit->block_bytes, last,
				 call->unit->block_bytes))
			return;
		memcpy(t->in + whole, last, cut);
	}
	t->in_bytes = bytes;
}

void scsi_write(struct scsi_call *call)
{
	struct scsi_extent e = scsi_cdb_extent(call->task->cdb);
	struct scsi_task *t = call->task;

	if (!scsi_in_range(call, e))
		return;
	if (e.nr && !write_blocks(call, e.lba, t->out, t->out_taken))
		return;
	if (wants_flush(call))
		scsi_flush(call);
}

void scsi_synchronize(struct scsi_call *call)
{
	if (scsi_in_range(call, scsi_cdb_extent(call->task->cdb)))
		scsi_flush(call);
}

/* --- comparing --- */

/* BYTCHK: 0 only reads; 1 compares all blocks; 3 compares each with one */
static uint8_t byte_check(const uint8_t *cdb)
{
	return cdb[1] >> 1 & 3;
}

uint64_t scsi_verify_bytes(const struct scsi_unit *unit, const uint8_t *cdb)
{
	uint64_t nr = scsi_cdb_extent(cdb).nr;

	switch (byte_check(cdb)) {
	case 1:
		return nr * unit->block_bytes;
	case 3:
		return nr ? unit->block_bytes : 0;
	default:
		return 0;
	}
}

/* The information field says where they differ (SBC-3 5.2). */
static void fail_compare(struct scsi_call *call, const uint8_t *a, const uint8_t *b,
			 uint64_t before)
{
	uint32_t at = 0;

	while (a[at] == b[at])
		at++;
	scsi_fail(call, SCSI_MISCOMPARE);
	call->task->sense[0] |= 0x80; /* INFORMATION is valid */
	put_be32(call->task->sense + 3, (uint32_t)(before + at));
}

/* Return: true: the blocks are readable and, if @with is set, equal to @with, which
 * advances @step bytes per block */
static bool compare(struct scsi_call *call, struct scsi_extent e, const uint8_t *with,
		    size_t step)
{
	const uint32_t size = call->unit->block_bytes;
	uint8_t block[SCSI_MAX_BLOCK_BYTES];

	for (uint64_t i = 0; i < e.nr; i++) {
		if (!read_blocks(call, e.lba + i, block, size))
			return false;
		if (with && memcmp(block, with + i * step, size)) {
			fail_compare(call, block, with + i * step, i * step);
			return false;
		}
	}
	return true;
}

void scsi_verify(struct scsi_call *call)
{
	struct scsi_extent e = scsi_cdb_extent(call->task->cdb);
	uint8_t check = byte_check(call->task->cdb);

	if (check == 2)
		scsi_bad_cdb(call, 1);
	else if (!scsi_in_range(call, e))
		return;
	else if (e.nr * call->unit->block_bytes > SCSI_MAX_TRANSFER_BYTES)
		scsi_fail(call, SCSI_INVALID_FIELD_IN_CDB);
	else
		compare(call, e, check ? call->task->out : NULL,
			check == 1 ? call->unit->block_bytes : 0);
}

uint64_t scsi_swap_bytes(const struct scsi_unit *unit, const uint8_t *cdb)
{
	return 2 * scsi_extent_bytes(unit, cdb);
}

/* All of it is compared before anything is written (SBC-3 5.2). */
void scsi_compare_and_write(struct scsi_call *call)
{
	struct scsi_extent e = scsi_cdb_extent(call->task->cdb);
	size_t half = call->task->out_taken / 2;

	if (!scsi_in_range(call, e) || !e.nr ||
	    !compare(call, e, call->task->out, call->unit->block_bytes) ||
	    !write_blocks(call, e.lba, call->task->out + half, half))
		return;
	if (wants_flush(call))
		scsi_flush(call);
}

/* --- discarding --- */

static bool discard(struct scsi_call *call, struct scsi_extent e)
{
	struct scsi_unit *u = call->unit;

	return !e.nr || scsi_medium(call,
				    u->backend->discard(u->ctx, e.lba * u->block_bytes,
							e.nr * u->block_bytes),
				    SCSI_WRITE_ERROR);
}

uint64_t scsi_unmap_bytes(const struct scsi_unit *unit, const uint8_t *cdb)
{
	return get_be16(cdb + 7);
}

/* Every range is checked before the first is discarded. */
void scsi_unmap(struct scsi_call *call)
{
	const uint8_t *list = call->task->out;
	size_t bytes = call->task->out_taken, nr;

	if (!bytes)
		return;
	if (bytes < 8) {
		scsi_fail(call, SCSI_PARAMETER_LIST_LENGTH);
		return;
	}
	nr = MIN((size_t)get_be16(list + 2), bytes - 8) / 16;
	if (nr > SCSI_MAX_UNMAP_DESCS) {
		scsi_fail(call, SCSI_INVALID_FIELD_IN_PARAMETERS);
		return;
	}
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < nr; i++) {
			const uint8_t *desc = list + 8 + i * 16;
			struct scsi_extent e = {get_be64(desc), get_be32(desc + 8)};

			if (!(pass ? discard(call, e) : scsi_in_range(call, e)))
				return;
		}
}

static bool no_data(const uint8_t *cdb)
{
	return cdb[0] == WRITE_SAME_16 && cdb[1] & SAME_NO_DATA;
}

uint64_t scsi_same_bytes(const struct scsi_unit *unit, const uint8_t *cdb)
{
	return no_data(cdb) ? 0 : unit->block_bytes;
}

/* What was unmapped reads as zero: another block has to be written all the same. */
void scsi_write_same(struct scsi_call *call)
{
	static const uint8_t zero[SCSI_MAX_BLOCK_BYTES];
	const uint8_t *cdb = call->task->cdb;
	const uint8_t *block = no_data(cdb) ? zero : call->task->out;
	struct scsi_extent e = scsi_cdb_extent(cdb);
	const uint32_t size = call->unit->block_bytes;

	if (!scsi_in_range(call, e))
		return;
	if (!e.nr || e.nr * size > SCSI_MAX_SAME_BYTES) { /* WSNZ of page B0; its limit */
		scsi_bad_cdb(call, cdb[0] == WRITE_SAME_16 ? 10 : 7);
		return;
	}
	if (cdb[1] & SAME_UNMAP && !call->unit->backend->discard) { /* LBPWS of page B2 */
		scsi_bad_cdb(call, 1);
		return;
	}
	if (cdb[1] & SAME_UNMAP && !memcmp(block, zero, size)) {
		discard(call, e);
		return;
	}
	for (uint64_t i = 0; i < e.nr; i++)
		if (!write_blocks(call, e.lba + i, block, size))
			return;
}
