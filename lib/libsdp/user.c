/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Access to memory by pointers that the program has passed. Where libsdp answers in place of the kernel,
 * a bad pointer results in EFAULT, as in a system call, because the kernel does the copying.
 */
#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "sdp_private.h"

/* @n: result of the kernel's copy. Where the kernel does not permit a process to copy its own memory,
 * memcpy() is used, and a bad pointer ends the program by SIGSEGV. */
static int finish(ssize_t n, void *to, const void *from, size_t bytes)
{
	if (n < 0 && errno != EFAULT)
		memcpy(to, from, bytes);
	else if (n != (ssize_t)bytes)
		return -EFAULT;
	return 0;
}

int sdp_copy_in(void *to, const void *from, size_t bytes)
{
	const struct iovec own = {to, bytes}, theirs = {(void *)from, bytes};

	return bytes ? finish(process_vm_readv(getpid(), &own, 1, &theirs, 1, 0), to, from, bytes) :
		       0;
}

int sdp_copy_out(void *to, const void *from, size_t bytes)
{
	const struct iovec own = {(void *)from, bytes}, theirs = {to, bytes};

	return bytes ? finish(process_vm_writev(getpid(), &own, 1, &theirs, 1, 0), to, from,
			      bytes) :
		       0;
}

int sdp_put(void *to, socklen_t *len, const void *from, socklen_t bytes, bool whole)
{
	socklen_t room;
	int ret = sdp_copy_in(&room, len, sizeof(room));

	if (!ret && room > INT32_MAX)
		ret = -EINVAL;
	if (!ret)
		ret = sdp_copy_out(to, from, room < bytes ? room : bytes);
	if (!ret)
		ret = sdp_copy_out(len, whole || bytes < room ? &bytes : &room, sizeof(room));
	if (!ret)
		return 0;
	errno = -ret;
	return -1;
}
