/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Conversion of NBD requests to SCSI commands. A request that is too large for one command of the
 * unit, or for the descriptors of one command, is performed in parts, one after the other, by the
 * same slot.
 */
#include <errno.h>
#include <string.h>

#include "ulp/srp/private.h"

#define PART_BYTES (32u << 20) /* size of a part without data, if the unit reports no limit */

static u32 least(u32 bytes, u64 limit_blocks, const struct srpi_disk *disk)
{
	return limit_blocks ? (u32)MIN(bytes, limit_blocks * disk->block_bytes) : bytes;
}

void srp_serve_describe(const struct srp_unit *unit, struct nbd_export *export)
{
	const struct srpi_disk *disk = &unit->disk;

	*export = (struct nbd_export){
		.bytes = disk->blocks * disk->block_bytes,
		.block_bytes = disk->block_bytes,
		.max_bytes = SRP_TRANSFER_BYTES,
		.flags = NBD_HAS_FLAGS | NBD_CAN_FLUSH | NBD_CAN_ZERO | NBD_CAN_MULTI_CONN,
	};
	if (disk->read_only)
		export->flags |= NBD_READ_ONLY;
	if (disk->can_fua)
		export->flags |= NBD_CAN_FUA;
	if (disk->can_unmap)
		export->flags |= NBD_CAN_TRIM;
}

/* --- outcomes --- */

static int nbd_error(int error)
{
	static const struct {
		int error;
		enum nbd_error nbd;
	} table[] = {{0, 0},
		     {EPERM, NBD_EPERM},
		     {EINVAL, NBD_EINVAL},
		     {ENOMEM, NBD_ENOMEM},
		     {ENOSPC, NBD_ENOSPC},
		     {ESHUTDOWN, NBD_ESHUTDOWN}};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (table[i].error == error)
			return (int)table[i].nbd;
	return NBD_EIO;
}

static void finish(struct srp_io *io, int error)
{
	if (!io->connection) {
		srp_io_put(io);
		return;
	}
	io->data_bytes = io->request.type == NBD_READ && !error ? io->request.bytes : 0;
	srp_connection_reply(io, nbd_error(error));
}

static void done(struct srp_io *io, int error);

static void submit(struct srp_io *io)
{
	memcpy(io->command.lun, io->unit->lun, sizeof(io->command.lun));
	io->done = done;
	srp_io_submit(io);
}

static void flush(struct srp_io *io)
{
	io->flushing = true;
	srpi_flush(io->command.cdb);
	srp_io_data(io, false, 0, 0);
	submit(io);
}

/* --- parts: each sets io->part --- */

/* A target that supports only direct descriptors gets one piece of memory with each command. */
static void transfer_part(struct srp_io *io, u64 lba)
{
	const struct srpi_disk *disk = &io->unit->disk;
	const u32 from = io->request.bytes - io->left;
	const u32 room = io->session->indirect ? SRP_TRANSFER_BYTES
					       : SRP_PIECE_BYTES - from % SRP_PIECE_BYTES;
	const bool fua = io->request.flags & NBD_FUA, out = io->request.type == NBD_WRITE;

	io->part = least(MIN(io->left, room), disk->max_transfer_blocks, disk);
	(out ? srpi_write : srpi_read)(io->command.cdb, lba, io->part / disk->block_bytes, fua);
	srp_io_data(io, out, from, io->part);
}

static void unmap_part(struct srp_io *io, u64 lba)
{
	const struct srpi_disk *disk = &io->unit->disk;

	io->part = least(MIN(io->left, PART_BYTES), disk->max_unmap_blocks, disk);
	srpi_unmap(io->command.cdb, io->piece[0], lba, io->part / disk->block_bytes);
	srp_io_data(io, true, 0, SRPI_UNMAP_BYTES);
}

static void zero_part(struct srp_io *io, u64 lba)
{
	const struct srpi_disk *disk = &io->unit->disk;
	bool unmap = disk->can_unmap_same && disk->unmapped_is_zero &&
		     !(io->request.flags & NBD_NO_HOLE);

	if (io->unit->no_write_same) {
		io->part = least(MIN(io->left, SRP_PIECE_BYTES), disk->max_transfer_blocks, disk);
		memset(io->piece[0], 0, io->part);
		srpi_write(io->command.cdb, lba, io->part / disk->block_bytes, false);
		srp_io_data(io, true, 0, io->part);
		return;
	}
	io->part = least(MIN(io->left, PART_BYTES), disk->max_same_blocks, disk);
	memset(io->piece[0], 0, disk->block_bytes);
	srpi_write_same(io->command.cdb, lba, io->part / disk->block_bytes, unmap);
	srp_io_data(io, true, 0, disk->block_bytes);
}

static bool is_transfer(const struct srp_io *io)
{
	return io->request.type == NBD_READ || io->request.type == NBD_WRITE;
}

static void next_part(struct srp_io *io)
{
	u64 lba = io->at / io->unit->disk.block_bytes;

	if (is_transfer(io))
		transfer_part(io, lba);
	else if (io->request.type == NBD_TRIM)
		unmap_part(io, lba);
	else
		zero_part(io, lba);
	submit(io);
}

static void part_done(struct srp_io *io, int error)
{
	if (error == EINVAL && io->request.type == NBD_WRITE_ZEROES && !io->unit->no_write_same) {
		io->unit->no_write_same = true; /* WRITE SAME is an optional command */
		next_part(io);
		return;
	}
	io->at += io->part;
	io->left -= io->part;
	if (!error && is_transfer(io) && io->residual_bytes)
		error = EIO;
	if (error)
		finish(io, error);
	else if (io->left)
		next_part(io);
	else if (io->request.flags & NBD_FUA && !is_transfer(io))
		flush(io); /* a command of this kind has no FUA bit, unlike READ and WRITE */
	else
		finish(io, 0);
}

/* --- requests --- */

static void done(struct srp_io *io, int error)
{
	if (error != ESHUTDOWN && !io->flushing)
		part_done(io, error);
	else
		finish(io, error);
}

void srp_serve(struct srp_io *io)
{
	io->flushing = false;
	io->at = io->request.offset;
	io->left = io->request.bytes;
	if (io->request.type == NBD_FLUSH)
		flush(io);
	else
		next_part(io);
}
