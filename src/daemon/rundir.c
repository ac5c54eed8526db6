/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Claiming and leaving a fabric's runtime directory. */
#include "daemon/rundir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const our_files[] = {"uverbs", "umad", "ucm", "rdma_cm", "control", "pid"};

/* Users who may write to the parent directory can replace the directory at any moment.
 * Therefore it is opened once, and checked, protected and used through its descriptor.
 * Return: the descriptor; -errno, with a message in @err */
static int open_directory(const char *dir, char *err, size_t err_bytes)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), error = errno;

	if (fd >= 0)
		return fd;
	if (error == ENOTDIR || error == ELOOP)
		snprintf(err, err_bytes, "%s is not a directory; choose another --dir", dir);
	else
		snprintf(err, err_bytes, "cannot open %s: %s; choose another --dir", dir,
			 strerror(error));
	return -error;
}

static int close_to_others(int fd, const char *dir, char *err, size_t err_bytes)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (st.st_uid != geteuid()) {
		snprintf(err, err_bytes,
			 "%s belongs to user %u, not to you (%u); choose another --dir", dir,
			 st.st_uid, geteuid());
		return -EACCES;
	}
	if (st.st_mode & 077 && fchmod(fd, 0700)) {
		snprintf(err, err_bytes, "cannot close %s to others: %s", dir, strerror(errno));
		return -errno;
	}
	return 0;
}

/* Return: a descriptor of @dir, which is created if it does not exist; -errno */
static int own_directory(const char *dir, char *err, size_t err_bytes)
{
	int fd, ret;

	if (mkdir(dir, 0700) && errno != EEXIST) {
		snprintf(err, err_bytes, "cannot make %s: %s; choose another --dir", dir,
			 strerror(errno));
		return -errno;
	}
	fd = open_directory(dir, err, err_bytes);
	if (fd < 0)
		return fd;
	ret = close_to_others(fd, dir, err, err_bytes);
	if (!ret)
		return fd;
	close(fd);
	return ret;
}

static void write_pid(int fd)
{
	char text[16];
	int n = snprintf(text, sizeof(text), "%d\n", getpid());

	if (ftruncate(fd, 0) || pwrite(fd, text, (size_t)n, 0) != n) {
		/* the contents are informative only; the lock identifies the owner */
	}
}

int rundir_claim(const char *dir, char *err, size_t err_bytes)
{
	int dir_fd = own_directory(dir, err, err_bytes), fd, ret;

	if (dir_fd < 0)
		return dir_fd;
	fd = openat(dir_fd, "pid", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0) {
		snprintf(err, err_bytes, "cannot make %s/pid: %s", dir, strerror(errno));
		ret = -errno;
		goto out;
	}
	if (flock(fd, LOCK_EX | LOCK_NB)) {
		snprintf(err, err_bytes,
			 "another softibd serves %s; stop it with 'SOFTIB_DIR=%s softib "
			 "down', or choose another --dir",
			 dir, dir);
		close(fd);
		ret = -EBUSY;
		goto out;
	}
	for (size_t i = 0; i < sizeof(our_files) / sizeof(our_files[0]) - 1; i++)
		unlinkat(dir_fd, our_files[i], 0);
	write_pid(fd);
	ret = fd;
out:
	close(dir_fd);
	return ret;
}

void rundir_release(const char *dir, int lock_fd)
{
	int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (dir_fd >= 0) {
		for (size_t i = 0; i < sizeof(our_files) / sizeof(our_files[0]); i++)
			unlinkat(dir_fd, our_files[i], 0);
		close(dir_fd);
	}
	close(lock_fd);
	rmdir(dir); /* fails if the directory has other files */
}
