/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The doorbell of a lane: a descriptor that the lane's sender rings, and that the
 * receiver has in an edge-triggered epoll. Both have the same open file, and
 * neither trusts the other. An eventfd would serve but for one thing: a program
 * that fills it and makes it blocking lets the next sender that rings it sleep in
 * write(2). So the doorbell is a timerfd, whose count of expirations can be set
 * (timerfd_create(2), TFD_IOC_SET_TICKS): it is never full, and nothing that
 * either side does to it makes the other's call wait.
 */
#ifndef SOFTIB_ABI_DOORBELL_H
#define SOFTIB_ABI_DOORBELL_H

#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/timerfd.h>

#define ABI_DOORBELL_TICKS _IOW('T', 0, uint64_t) /* TFD_IOC_SET_TICKS of linux/timerfd.h */

/** abi_doorbell_open() - Return: a doorbell; -1 and errno */
static inline int abi_doorbell_open(void)
{
	return timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
}

/** abi_doorbell_ring() - each call makes an edge, also when nobody reads the
 *  descriptor. Never waits, no cancellation point */
static inline void abi_doorbell_ring(int fd)
{
	static const struct itimerspec at_once = {.it_value = {.tv_nsec = 1}};
	uint64_t one = 1;

	/* without CONFIG_CHECKPOINT_RESTORE: a timer that expires now, at a higher cost */
	if (ioctl(fd, ABI_DOORBELL_TICKS, &one))
		timerfd_settime(fd, 0, &at_once, NULL);
}

#endif
