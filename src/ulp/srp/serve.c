/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * NBD requests as SCSI commands. A read or write is one command; what has no data may be of
 * any length and is performed in pieces, one after the other, by the same slot.
 */
#include <errno.h>
#include <string.h>

#include "ulp/srp/private.h"

#define PIECE_BYTES (32u << 20) /* of a unit that names no limit */

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
		.max_bytes = least(SRP_TRANSFER_BYTES, disk->max_transfer_blocks, disk),
		.flags = NBD_HAS_FLAGS | NBD_CAN_FLUSH | NBD_CAN_ZERO | NBD_CAN_MULTI_CONN,
	};
	if (disk->read_only)
		export->flags |= NBD_READ_ONLY;
	if (disk->can_fua)
		export->flags |= NBD_CAN_FUA;
	if (disk->can_unmap)
		export->flags |= NBD_CAN_TRIM;
}

/* --- outcomes -------------------------------------------------------------------------- */

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
	srp_io_data(io, false, 0);
	submit(io);
}

/* --- what has no data -------------------------------------------------------------------- */

static void unmap_piece(struct srp_io *io, u64 lba)
{
	const struct srpi_disk *disk = &io->unit->disk;

	io->piece = least(MIN(io->left, PIECE_BYTES), disk->max_unmap_blocks, disk);
	srpi_unmap(io->command.cdb, io->buffer, lba, io->piece / disk->block_bytes);
	srp_io_data(io, true, SRPI_UNMAP_BYTES);
}

static void zero_piece(struct srp_io *io, u64 lba)
{
	const struct srpi_disk *disk = &io->unit->disk;
	bool unmap = disk->can_unmap_same && disk->unmapped_is_zero &&
		     !(io->request.flags & NBD_NO_HOLE);

	if (io->unit->no_write_same) {
		io->piece = least(MIN(io->left, SRP_TRANSFER_BYTES), disk->max_transfer_blocks, disk);
		memset(io->buffer, 0, io->piece);
		srpi_write(io->command.cdb, lba, io->piece / disk->block_bytes, false);
		srp_io_data(io, true, io->piece);
		return;
	}
	io->piece = least(MIN(io->left, PIECE_BYTES), disk->max_same_blocks, disk);
	memset(io->buffer, 0, disk->block_bytes);
	srpi_write_same(io->command.cdb, lba, io->piece / disk->block_bytes, unmap);
	srp_io_data(io, true, disk->block_bytes);
}

static void next_piece(struct srp_io *io)
{
	u64 lba = io->at / io->unit->disk.block_bytes;

	if (io->request.type == NBD_TRIM)
		unmap_piece(io, lba);
	else
		zero_piece(io, lba);
	submit(io);
}

static void piece_done(struct srp_io *io, int error)
{
	if (error == EINVAL && io->request.type == NBD_WRITE_ZEROES && !io->unit->no_write_same) {
		io->unit->no_write_same = true; /* an optional command */
		next_piece(io);
		return;
	}
	io->at += io->piece;
	io->left -= io->piece;
	if (error)
		finish(io, error);
	else if (io->left)
		next_piece(io);
	else if (io->request.flags & NBD_FUA)
		flush(io);
	else
		finish(io, 0);
}

/* --- requests ------------------------------------------------------------------------------ */

static void done(struct srp_io *io, int error)
{
	bool pieces = io->request.type == NBD_TRIM || io->request.type == NBD_WRITE_ZEROES;

	if (error != ESHUTDOWN && pieces && !io->flushing)
		piece_done(io, error);
	else
		finish(io, !error && io->residual_bytes ? EIO : error);
}

static void transfer(struct srp_io *io)
{
	const struct nbd_request *r = &io->request;
	u64 lba = r->offset / io->unit->disk.block_bytes;
	u32 blocks = r->bytes / io->unit->disk.block_bytes;

	if (r->type == NBD_READ)
		srpi_read(io->command.cdb, lba, blocks, r->flags & NBD_FUA);
	else
		srpi_write(io->command.cdb, lba, blocks, r->flags & NBD_FUA);
	srp_io_data(io, r->type == NBD_WRITE, r->bytes);
	submit(io);
}

void srp_serve(struct srp_io *io)
{
	io->flushing = false;
	io->at = io->request.offset;
	io->left = io->request.bytes;
	switch (io->request.type) {
	case NBD_READ:
	case NBD_WRITE:
		transfer(io);
		break;
	case NBD_FLUSH:
		flush(io);
		break;
	default:
		next_piece(io);
	}
}
