/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A disk that is as slow or as broken as a test wants, preloaded into softibd. Each write to a file
 * waits at a gate, the FIFO that the variable DISK_GATE names. A write that arrives there opens the
 * FIFO for reading; who opens it for writing knows that it is there, and closing lets it go.
 * Without a FIFO there is no gate. While the file of that name with ".error" behind it exists,
 * reads, writes and flushes fail with the errno in it, in decimal digits.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

#define VISIBLE __attribute__((visibility("default")))

static void pass_gate(const char *gate)
{
	int fd = open(gate, O_RDONLY | O_CLOEXEC);
	char byte;

	if (fd < 0)
		return;
	while (read(fd, &byte, 1) > 0)
		;
	close(fd);
}

/* Return: the errno that a call fails with; 0: it does not */
static int error_of(const char *gate)
{
	char path[4096], digits[16] = "";
	int fd;

	snprintf(path, sizeof(path), "%s.error", gate);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	if (read(fd, digits, sizeof(digits) - 1) < 0)
		digits[0] = 0;
	close(fd);
	return atoi(digits);
}

/* Return: does the call fail? */
static int fails(void)
{
	const char *gate = getenv("DISK_GATE");
	int error = gate ? error_of(gate) : 0;

	if (error)
		errno = error;
	return error != 0;
}

/* those of 64-bit offsets, as in all of the tree */
VISIBLE ssize_t pwritev2(int fd, const struct iovec *iov, int nr, off_t offset, int flags)
{
	ssize_t (*next)(int, const struct iovec *, int, off_t, int) =
		dlsym(RTLD_NEXT, "pwritev64v2");
	const char *gate = getenv("DISK_GATE");

	if (gate)
		pass_gate(gate);
	return fails() ? -1 : next(fd, iov, nr, offset, flags);
}

VISIBLE ssize_t pread(int fd, void *to, size_t bytes, off_t offset)
{
	ssize_t (*next)(int, void *, size_t, off_t) = dlsym(RTLD_NEXT, "pread64");

	return fails() ? -1 : next(fd, to, bytes, offset);
}

VISIBLE int fdatasync(int fd)
{
	int (*next)(int) = dlsym(RTLD_NEXT, "fdatasync");

	return fails() ? -1 : next(fd);
}
