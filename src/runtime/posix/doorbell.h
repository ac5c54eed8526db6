/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Eventfds that programs write to wake softibd. */
#ifndef SOFTIB_RUNTIME_DOORBELL_H
#define SOFTIB_RUNTIME_DOORBELL_H

#include <stdint.h>
#include <sys/uio.h>

/** rt_doorbell_clear() - the doorbell @fd has rung: read it, and never wait. The program shares this eventfd, and
 *  may have made it blocking */
static inline void rt_doorbell_clear(int fd)
{
	uint64_t count;
	const struct iovec iov = {&count, sizeof(count)};

	if (preadv2(fd, &iov, 1, -1, RWF_NOWAIT) < 0)
		return; /* EAGAIN: another process has read it; softibd looks at the ring in any case */
}

#endif
