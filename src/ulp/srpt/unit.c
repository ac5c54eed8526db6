/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A unit and its medium: a file, a block device or a memfd. What asks a file anything runs in
 * threads of the unit's worker, several at a time, or in the loop if the medium is memory.
 *
 * The life of a unit: srpt_unit_make(), srpt_unit_examine(), srpt_unit_attach(); when it is removed or
 * refused and its last command has ended, srpt_unit_leave(), srpt_unit_free().
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "ulp/srpt/private.h"

/* Report an exceeded quota like a full disk. */
static int error_of(int error)
{
	return error == EDQUOT ? -ENOSPC : -error;
}

static int medium_read(void *ctx, uint64_t offset, void *to, size_t bytes)
{
	const struct srpt_unit *unit = ctx;

	while (bytes) {
		ssize_t n = pread(unit->fd, to, bytes, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) /* the file was truncated since the unit was added */
			return n ? error_of(errno) : -EIO;
		to = (char *)to + n;
		offset += (uint64_t)n;
		bytes -= (size_t)n;
	}
	return 0;
}

static int medium_write(void *ctx, uint64_t offset, const void *from, size_t bytes)
{
	const struct srpt_unit *unit = ctx;
	struct iovec iov = {.iov_base = (void *)(uintptr_t)from, .iov_len = bytes};

	while (iov.iov_len) {
		ssize_t n = pwritev2(
			unit->fd, &iov, 1, (off_t)offset,
			unit->scsi.write_back || unit->in_memory ? 0 : RWF_DSYNC);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? error_of(errno) : -EIO;
		iov.iov_base = (char *)iov.iov_base + n;
		iov.iov_len -= (size_t)n;
		offset += (uint64_t)n;
	}
	return 0;
}

static int medium_flush(void *ctx)
{
	const struct srpt_unit *unit = ctx;

	return unit->in_memory || !fdatasync(unit->fd) ? 0 : error_of(errno);
}

static int write_zeros(struct srpt_unit *unit, uint64_t offset, uint64_t bytes)
{
	static const u8 zeros[1 << 16];
	int ret = 0;

	for (uint64_t at = 0; !ret && at < bytes; at += sizeof(zeros))
		ret = medium_write(unit, offset + at, zeros,
				   MIN(bytes - at, sizeof(zeros)));
	return ret;
}

/* Discarded blocks read as zero; a file system that cannot punch holes stores them. */
static int medium_discard(void *ctx, uint64_t offset, uint64_t bytes)
{
	struct srpt_unit *unit = ctx;

	if (!fallocate(unit->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		       (off_t)offset, (off_t)bytes))
		return unit->scsi.write_back ? 0 : medium_flush(unit);
	return errno == EOPNOTSUPP ? write_zeros(unit, offset, bytes) : error_of(errno);
}

static const struct scsi_backend thick = {
	.read = medium_read,
	.write = medium_write,
	.flush = medium_flush,
};
static const struct scsi_backend thin = {
	.read = medium_read,
	.write = medium_write,
	.flush = medium_flush,
	.discard = medium_discard,
};

/* Check the file of a unit. Return: 0, and *@bytes is its size, *@file identifies it; -errno */
static int measure(int fd, bool read_only, u64 *bytes, u64 *file)
{
	int flags = fcntl(fd, F_GETFL);
	struct stat st;

	if (flags < 0 || fstat(fd, &st))
		return -errno;
	if ((flags & O_ACCMODE) == O_WRONLY ||
	    (!read_only && (flags & O_ACCMODE) != O_RDWR))
		return -EACCES;
	*file = S_ISBLK(st.st_mode) ? st.st_rdev : st.st_dev << 40 ^ st.st_ino;
	if (S_ISREG(st.st_mode)) {
		*bytes = (u64)st.st_size;
		return 0;
	}
	if (!S_ISBLK(st.st_mode))
		return -EINVAL;
	return ioctl(fd, BLKGETSIZE64, bytes) ? -errno : 0;
}

/* Is the file in memory? Only such files have seals. */
static bool is_memory(int fd)
{
	return fcntl(fd, F_GET_SEALS) >= 0;
}

/* --- a unit begins --- */

static void describe(struct srpt_unit *u, const struct srpt_unit_config *config)
{
	u->in_memory = is_memory(config->fd);
	u->sparse = config->sparse || u->in_memory;
	u->backend = u->sparse ? thin : thick;
	u->backend.keep = config->kept_fd >= 0 ? srpt_keep : NULL;
	u->fd = config->fd;
	u->kept_fd = config->kept_fd;
	snprintf(u->name, sizeof(u->name), "%s", config->name);
	u->scsi = (struct scsi_unit){
		.backend = &u->backend,
		.ctx = u,
		.block_bytes = config->block_bytes,
		.read_only = config->read_only,
		.write_back = !config->write_through && !u->in_memory,
	};
}

static void unit_gone(struct rt_work *work);

int srpt_unit_make(struct rt *rt, const struct srpt_unit_config *config, struct srpt_unit **unit)
{
	struct srpt_unit *u;
	int ret = 0;

	if (config->kept_fd >= 0 && is_memory(config->fd))
		return -ENOTSUP;
	if (config->block_bytes != 512 && config->block_bytes != SCSI_MAX_BLOCK_BYTES)
		return -EINVAL;
	u = rt_zalloc(sizeof(*u));
	if (!u)
		return -ENOMEM;
	u->rt = rt;
	describe(u, config);
	if (!u->in_memory)
		ret = srpt_worker_start(rt, &u->worker);
	if (ret) {
		rt_free(u);
		return ret;
	}
	INIT_LIST_HEAD(&u->node);
	pthread_mutex_init(&u->admission, NULL);
	rt_work_init(&u->gone, unit_gone);
	srpt_line_open(u);
	*unit = u;
	return 0;
}

int srpt_unit_examine(struct srpt_unit *u)
{
	u64 bytes = 0;
	int ret = measure(u->fd, u->scsi.read_only, &bytes, &u->file);

	if (ret)
		return ret;
	if (bytes < u->scsi.block_bytes)
		return -EINVAL;
	u->scsi.nr_blocks = bytes / u->scsi.block_bytes;
	return u->kept_fd >= 0 ? srpt_keep_load(u) : 0;
}

/* --- a unit ends --- */

static void close_files(struct srpt_job *job)
{
	struct srpt_unit *u = container_of(job, struct srpt_unit, leave);

	srpt_keep_unlock(u);
	close(u->fd);
	if (u->kept_fd >= 0)
		close(u->kept_fd);
}

static void files_closed(struct srpt_job *job)
{
	struct srpt_unit *u = container_of(job, struct srpt_unit, leave);

	u->closed = true;
	rt_work_queue(u->rt, &u->gone);
}

void srpt_unit_leave(struct srpt_unit *unit)
{
	unit->leave = (struct srpt_job){
		.order = SRPT_ALONE, .run = close_files, .done = files_closed};
	if (unit->worker) {
		srpt_worker_add(unit->worker, &unit->leave);
	} else {
		close_files(&unit->leave);
		files_closed(&unit->leave);
	}
}

/* The last command of a unit that was removed has ended, or its files are closed. */
static void unit_gone(struct rt_work *work)
{
	struct srpt_unit *u = container_of(work, struct srpt_unit, gone);

	if (u->closed)
		srpt_unit_free(u);
	else
		srpt_unit_leave(u);
}

void srpt_unit_free(struct srpt_unit *unit)
{
	struct srpt_fabric *fabric = srpt_fabric_of(unit->rt);

	if (unit->worker)
		srpt_worker_stop(unit->worker);
	rt_work_cancel(&unit->gone);
	rt_work_cancel(&unit->turn);
	list_del(&unit->node);
	if (unit->adding)
		srpt_adding_end(unit->adding, unit->adding->result);
	pthread_mutex_destroy(&unit->admission);
	rt_free(unit);
	srpt_adding_retry(fabric);
}

void srpt_unit_finish(struct srpt_unit *unit)
{
	if (unit->worker)
		srpt_worker_finish(unit->worker);
	if (!unit->leave.run)
		srpt_unit_leave(unit);
	if (unit->worker)
		srpt_worker_finish(unit->worker);
	srpt_unit_free(unit);
}
