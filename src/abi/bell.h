/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The bell of a lane: a descriptor that the lane's sender rings, and that the
 * receiver has in an edge-triggered epoll. Both have the same open file, and
 * neither trusts the other: so it is a timerfd, whose expirations are counted
 * by order (timerfd_create(2), TFD_IOC_SET_TICKS). An eventfd would do but for
 * one thing: whoever holds it may fill it and make it blocking, and then the
 * next who rings sleeps in write(2). This one cannot be full, and nothing that
 * the other does to it makes a call of ours wait.
 */
#ifndef SOFTIB_ABI_BELL_H
#define SOFTIB_ABI_BELL_H

#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/timerfd.h>

#define ABI_BELL_TICKS _IOW('T', 0, uint64_t) /* TFD_IOC_SET_TICKS of linux/timerfd.h */

/** abi_bell_open() - Return: a bell; -1 and errno */
static inline int abi_bell_open(void)
{
	return timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
}

/** abi_bell_ring() - each call is heard, also when nobody reads. Never waits,
 *  no cancellation point */
static inline void abi_bell_ring(int fd)
{
	static const struct itimerspec at_once = {.it_value = {.tv_nsec = 1}};
	uint64_t one = 1;

	/* a kernel without CONFIG_CHECKPOINT_RESTORE: by its clock, which is dearer */
	if (ioctl(fd, ABI_BELL_TICKS, &one))
		timerfd_settime(fd, 0, &at_once, NULL);
}

#endif
