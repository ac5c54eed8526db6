/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The doorbells of a context: all that can wake the thread that sleeps for its
 * engine, in one epoll. They are the doorbell of each lane, softibd's, an alarm
 * clock, and one of the library's own. One thread at a time sleeps on them; the state
 * machine of src/progress decides which.
 */
#ifndef SOFTIB_LIBIBVERBS_DOORBELLS_H
#define SOFTIB_LIBIBVERBS_DOORBELLS_H

#include <stdbool.h>

#include "base/types.h"

/** enum doorbell - which rang, as bits of doorbells_wait() */
enum doorbell {
	DOORBELL_LANE = 1 << 0,    /* the sender of a lane */
	DOORBELL_SOFTIBD = 1 << 1,
	DOORBELL_OWN = 1 << 2,     /* doorbells_ring() */
	DOORBELL_ALARM = 1 << 3,   /* the time has come */
	DOORBELL_CONTROL = 1 << 4, /* the progress thread must read its own descriptors */
};

struct doorbells {
	int epoll_fd;
	int own_fd;   /* eventfd */
	int alarm_fd; /* timerfd */
	int softibd_fd; /* pipe, ABI_FD_PROGRAM_DOORBELL */
	mono_t alarm; /* when alarm_fd rings; MONO_NEVER: does not */
};

/**
 * doorbells_open() - @softibd_fd becomes the doorbells' when this succeeds
 * Return: 0; -errno
 */
int doorbells_open(struct doorbells *doorbells, int softibd_fd);
/** doorbells_close() - also in a forked child, where nothing else may be done */
void doorbells_close(struct doorbells *doorbells);
/** doorbells_add_lane() - @fd stays the caller's to close: its sender keeps the
 *  doorbell open, and when nobody does it leaves the epoll. Return: 0; -errno */
int doorbells_add_lane(struct doorbells *doorbells, int fd);
/** doorbells_add_control() - @fd is watched by somebody else too; edges only.
 *  Return: 0; -errno */
int doorbells_add_control(struct doorbells *doorbells, int fd);
/** doorbells_ring() - wake the thread that sleeps on them. No cancellation point */
void doorbells_ring(struct doorbells *doorbells);
/** doorbells_set_alarm() - wake the thread that sleeps on them at @by, or before.
 *  Context: one thread at a time */
void doorbells_set_alarm(struct doorbells *doorbells, mono_t now, mono_t by);
/**
 * doorbells_wait() - sleep until one of them rings
 * @timeout_ms: -1: for ever
 * Context: one thread at a time; a cancellation point.
 * Return: bits of enum doorbell; 0 when the time is over; -1 and errno: EINTR
 */
int doorbells_wait(struct doorbells *doorbells, int timeout_ms);

#endif
