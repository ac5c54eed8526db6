/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * All that can wake who serves an engine (progress.c), in one epoll: the bell
 * of each lane, softibd's, an alarm clock, and a bell of the library's own.
 * One thread sleeps on them at a time.
 */
#ifndef SOFTIB_LIBIBVERBS_BELLS_H
#define SOFTIB_LIBIBVERBS_BELLS_H

#include <stdbool.h>

#include "base/types.h"

/** enum bell - what rang, as bits of bells_wait() */
enum bell {
	BELL_LANE = 1 << 0,    /* the sender of one */
	BELL_SOFTIBD = 1 << 1,
	BELL_OWN = 1 << 2,     /* bells_ring() */
	BELL_ALARM = 1 << 3,   /* the time has come */
	BELL_CONTROL = 1 << 4, /* the thread's own descriptors: look at them */
};

struct bells {
	int epoll_fd;
	int own_fd;   /* eventfd */
	int alarm_fd; /* timerfd */
	int softibd_fd; /* pipe, ABI_FD_BELL */
	mono_t alarm; /* when alarm_fd rings; MONO_NEVER: does not */
};

/**
 * bells_open() - @softibd_fd becomes the bells' when this succeeds
 * Return: 0; -errno
 */
int bells_open(struct bells *bells, int softibd_fd);
/** bells_close() - also in a forked child, where nothing else may be done */
void bells_close(struct bells *bells);
/** bells_add_lane() - @fd, the caller's to close: its sender keeps the bell,
 *  and with the last who does it goes from here. Return: 0; -errno */
int bells_add_lane(struct bells *bells, int fd);
/** bells_add_control() - @fd is watched by somebody else too; edges only.
 *  Return: 0; -errno */
int bells_add_control(struct bells *bells, int fd);
/** bells_ring() - who sleeps wakes. No cancellation point */
void bells_ring(struct bells *bells);
/** bells_set_alarm() - who sleeps then wakes at @by, or before. Context: one at
 *  a time */
void bells_set_alarm(struct bells *bells, mono_t now, mono_t by);
/**
 * bells_wait() - sleep until something rings
 * @timeout_ms: -1: for ever
 * Context: one at a time; a cancellation point.
 * Return: bits of enum bell; 0 when the time is over; -1 and errno: EINTR
 */
int bells_wait(struct bells *bells, int timeout_ms);

#endif
