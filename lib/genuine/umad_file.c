/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * /dev/infiniband/umadN for the distribution's libibumad: a cross-check of softib's device
 * files by a library that was written for the kernel's. Programs load this library by the
 * name libibumad.so.3 and, through it, the distribution's, whose calls of open(), ioctl(),
 * read(), write() and close() are led here when it has been loaded (redirect.h). For a device
 * file they do what libibumad/file.c does; for every other descriptor they are libc's. What
 * the distribution's library reads in /sys/class/infiniband is softib's as well.
 */
#undef _FILE_OFFSET_BITS /* libibumad calls open(), not open64() */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>

#include "libibumad/umad_private.h"
#include "redirect/redirect.h"

#define DEVICE_FILE "/dev/infiniband/umad"

/* file.c and session.c are shared with a library that prints what it does */
int umad_debug_level;

/* --- opening --- */

/* Return: true: @device and @port are those of the file number @n */
static bool has_file(const struct abi_device_info *info, unsigned int n, int *port)
{
	if (n < info->umad_base || n - info->umad_base >= info->num_ports)
		return false;
	*port = (int)(n - info->umad_base) + 1;
	return true;
}

static int open_device(unsigned int n, int flags)
{
	struct abi_device_info *list;
	int num = umad_session_list(&list), fd = num < 0 ? num : -ENXIO, port;

	for (int i = 0; i < num; i++)
		if (has_file(&list[i], n, &port))
			fd = umad_file_open(list[i].name, port);
	free(list);
	if (fd >= 0 && !(flags & O_NONBLOCK) && fcntl(fd, F_SETFL, 0)) {
		int error = -errno;

		umad_file_close(fd);
		fd = error;
	}
	return fd;
}

static bool is_device(const char *path, unsigned int *n)
{
	const char *digits = path + strlen(DEVICE_FILE);
	char *end;

	if (strncmp(path, DEVICE_FILE, strlen(DEVICE_FILE)) != 0 || *digits < '0' ||
	    *digits > '9')
		return false;
	*n = (unsigned int)strtoul(digits, &end, 10);
	return !*end;
}

/* what a system call returns */
static ssize_t result(ssize_t ret)
{
	if (ret >= 0)
		return ret;
	errno = (int)-ret;
	return -1;
}

static int open_file(const char *path, int flags, ...)
{
	mode_t mode = 0;
	unsigned int n;
	va_list args;

	if (umad_session_dir() && is_device(path, &n))
		return (int)result(open_device(n, flags));
	if (flags & (O_CREAT | O_TMPFILE)) {
		va_start(args, flags);
		mode = va_arg(args, mode_t);
		va_end(args);
	}
	return open(path, flags, mode);
}

/* --- what is done with an open file ---
 *
 * -EBADF of file.c means: not a device file. */

static int close_file(int fd)
{
	return umad_file_close(fd) == -EBADF ? close(fd) : 0;
}

static int ioctl_file(int fd, unsigned long request, ...)
{
	va_list args;
	void *arg;
	int ret;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	ret = umad_file_ioctl(fd, (unsigned int)request, arg, _IOC_SIZE(request));
	return ret == -EBADF ? ioctl(fd, request, arg) : (int)result(ret);
}

static ssize_t read_file(int fd, void *buf, size_t bytes)
{
	ssize_t n = umad_file_read(fd, buf, bytes);

	return n == -EBADF ? read(fd, buf, bytes) : result(n);
}

static ssize_t write_file(int fd, const void *buf, size_t bytes)
{
	int ret = umad_file_write(fd, buf, bytes);

	if (ret == -EBADF)
		return write(fd, buf, bytes);
	return result(ret ? ret : (ssize_t)bytes);
}

/* --- the distribution's library --- */

static const struct redirection redirections[] = {
	{"open", (void (*)(void))open_file},   {"close", (void (*)(void))close_file},
	{"ioctl", (void (*)(void))ioctl_file}, {"read", (void (*)(void))read_file},
	{"write", (void (*)(void))write_file},
};

__attribute__((constructor)) static void redirect(void)
{
	redirect_or_warn(GENUINE, redirections, ARRAY_SIZE(redirections), "libibumad",
			 "softib's device files", "Programs see no MADs; unset SOFTIB_LIBIBUMAD");
}
