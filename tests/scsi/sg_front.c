/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A disk of src/scsi for programs that send SCSI commands by ioctl(SG_IO), as sg3-utils do:
 * preloaded, this makes the file that SG_DISK names one. Each program finds a disk that has just
 * got its power: its medium is the file, its reservations are in the file behind it that ends
 * with ".pr". SG_INITIATOR is the initiator port's number.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <scsi/sg.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/bytes.h"
#include "scsi/scsi.h"

#define VISIBLE	   __attribute__((visibility("default")))
#define SG_VERSION 30536
#define SCSI_GENERIC_MAJOR 21

static int medium_fd = -1;

static const char *disk_path(void)
{
	const char *path = getenv("SG_DISK");

	return path ? path : "";
}

/* --- the disk --- */

static int disk_read(void *ctx, uint64_t offset, void *to, size_t bytes)
{
	return pread(medium_fd, to, bytes, (off_t)offset) == (ssize_t)bytes ? 0 : -EIO;
}

static int disk_write(void *ctx, uint64_t offset, const void *from, size_t bytes)
{
	return pwrite(medium_fd, from, bytes, (off_t)offset) == (ssize_t)bytes ? 0 : -EIO;
}

static int disk_discard(void *ctx, uint64_t offset, uint64_t bytes)
{
	return fallocate(medium_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
			 (off_t)bytes)
		       ? -errno
		       : 0;
}

static FILE *open_kept(const char *mode)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s.pr", disk_path());
	return fopen(path, mode);
}

static int disk_keep(void *ctx, const uint8_t *state, size_t bytes)
{
	FILE *file = open_kept("w");
	size_t n = file ? fwrite(state, 1, bytes, file) : 0;

	return !file || fclose(file) || n != bytes ? -EIO : 0;
}

static const struct scsi_backend backend = {.read = disk_read,
					    .write = disk_write,
					    .discard = disk_discard,
					    .keep = disk_keep};
static struct scsi_unit unit = {.backend = &backend, .block_bytes = 512, .id = 0x1234567};
static const struct scsi_target target = {.units = {&unit}};

static void power_on(void)
{
	uint8_t kept[SCSI_SAVED_BYTES];
	struct stat st;
	FILE *file = open_kept("r");
	size_t bytes = file ? fread(kept, 1, sizeof(kept), file) : 0;

	unit.nr_blocks = stat(disk_path(), &st) ? 0 : (uint64_t)st.st_size / 512;
	if (file)
		fclose(file);
	if (bytes && scsi_reservations_restore(&unit.reservations, kept, bytes))
		abort();
}

/* --- the device --- */

static int perform(struct sg_io_hdr *io)
{
	const char *initiator = getenv("SG_INITIATOR");
	uint8_t id[SCSI_TRANSPORT_ID_BYTES] = {4, [23] = (uint8_t)atoi(initiator ? initiator : "1")};
	const bool out = io->dxfer_direction == SG_DXFER_TO_DEV;
	struct scsi_task t = {
		.cdb = io->cmdp,
		.cdb_bytes = io->cmd_len,
		.out = out ? io->dxferp : NULL,
		.out_bytes = out ? io->dxfer_len : 0,
		.in = out ? NULL : io->dxferp,
		.in_room = out || io->dxfer_direction == SG_DXFER_NONE ? 0 : io->dxfer_len,
		.initiator = id,
	};

	scsi_execute(&target, &t);
	io->status = (unsigned char)t.status;
	io->masked_status = io->status >> 1;
	io->sb_len_wr = (unsigned char)MIN(t.sense_bytes, io->mx_sb_len);
	memcpy(io->sbp, t.sense, io->sb_len_wr);
	io->driver_status = io->sb_len_wr ? 8 : 0; /* sense data are there */
	io->host_status = 0;
	io->resid = (int)(io->dxfer_len - (out ? t.out_taken : MIN(t.in_bytes, t.in_room)));
	io->info = io->status ? SG_INFO_CHECK : SG_INFO_OK;
	return 0;
}

VISIBLE int ioctl(int fd, unsigned long request, ...)
{
	int (*next)(int, unsigned long, ...) = dlsym(RTLD_NEXT, "ioctl");
	va_list args;
	void *arg;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	if (fd != medium_fd || fd < 0)
		return next(fd, request, arg);
	if (request == SG_IO)
		return perform(arg);
	if (request == SG_GET_VERSION_NUM)
		*(int *)arg = SG_VERSION;
	return 0;
}

/* sg3-utils look at the kind of file first. */
VISIBLE int fstat(int fd, struct stat *st)
{
	int (*next)(int, struct stat *) = dlsym(RTLD_NEXT, "fstat64");
	int ret = next(fd, st);

	if (!ret && fd == medium_fd) {
		st->st_mode = S_IFCHR | 0600;
		st->st_rdev = makedev(SCSI_GENERIC_MAJOR, 0);
	}
	return ret;
}

static int open_it(const char *path, int flags, int mode)
{
	int (*next)(const char *, int, ...) = dlsym(RTLD_NEXT, "open64");
	int fd;

	if (strcmp(path, disk_path()) != 0)
		return next(path, flags, mode);
	fd = next(path, (flags & ~O_ACCMODE) | O_RDWR);
	if (medium_fd < 0 && fd >= 0) {
		medium_fd = fd;
		power_on();
	}
	return fd;
}

VISIBLE int open(const char *path, int flags, ...)
{
	va_list args;
	int mode;

	va_start(args, flags);
	mode = va_arg(args, int);
	va_end(args);
	return open_it(path, flags, mode);
}

/* what programs with _FORTIFY_SOURCE call */
int __open64_2(const char *path, int flags);
VISIBLE int __open64_2(const char *path, int flags)
{
	return open_it(path, flags, 0);
}
