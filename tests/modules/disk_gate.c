/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A disk that is as slow as a test wants: preloaded into softibd, this lets each write to a
 * file wait at a gate, the FIFO that the variable DISK_GATE names. A write that arrives there
 * opens the FIFO for reading; who opens it for writing knows that it is there, and closing lets
 * it go. Without a FIFO there is no gate.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

static void pass_gate(void)
{
	const char *gate = getenv("DISK_GATE");
	int fd = gate ? open(gate, O_RDONLY | O_CLOEXEC) : -1;
	char byte;

	if (fd < 0)
		return;
	while (read(fd, &byte, 1) > 0)
		;
	close(fd);
}

/* that of 64-bit offsets, as in all of the tree */
__attribute__((visibility("default"))) ssize_t pwritev2(int fd, const struct iovec *iov, int nr,
							 off_t offset, int flags)
{
	ssize_t (*next)(int, const struct iovec *, int, off_t, int) =
		dlsym(RTLD_NEXT, "pwritev64v2");

	pass_gate();
	return next(fd, iov, nr, offset, flags);
}
