/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The doorbells of a context: an epoll instance with everything that can wake the
 * thread that sleeps for the context's engine. These are the doorbell of each lane,
 * softibd's pipe, a timer, and an eventfd of the library's own. One thread at a time
 * sleeps on them; the state machine of src/progress decides which.
 */
#ifndef SOFTIB_LIBIBVERBS_DOORBELLS_H
#define SOFTIB_LIBIBVERBS_DOORBELLS_H

#include <stdbool.h>

#include "base/types.h"

/** enum doorbell - which doorbells rang; bits that doorbells_wait() returns */
enum doorbell {
	DOORBELL_LANE = 1 << 0,    /* the sender of a lane */
	DOORBELL_SOFTIBD = 1 << 1,
	DOORBELL_OWN = 1 << 2,     /* doorbells_ring() */
	DOORBELL_ALARM = 1 << 3,   /* doorbells_set_alarm() */
	DOORBELL_CONTROL = 1 << 4, /* the progress thread must read its own descriptors */
};

struct doorbells {
	int epoll_fd;
	int own_fd;   /* eventfd */
	int alarm_fd; /* timerfd */
	int softibd_fd; /* pipe, ABI_FD_PROGRAM_DOORBELL */
	mono_t alarm; /* when alarm_fd expires; MONO_NEVER: it is disarmed */
};

/**
 * doorbells_open() - create the epoll instance; on success it owns @softibd_fd
 * Return: 0; -errno
 */
int doorbells_open(struct doorbells *doorbells, int softibd_fd);
/** doorbells_close() - the only function that a forked child may call */
void doorbells_close(struct doorbells *doorbells);
/** doorbells_add_lane() - add a lane's doorbell. The caller closes @fd after this: the
 *  sender's descriptor keeps the doorbell open. Return: 0; -errno */
int doorbells_add_lane(struct doorbells *doorbells, int fd);
/** doorbells_add_control() - add a descriptor of the progress thread, edge-triggered, since
 *  that thread polls it as well. Return: 0; -errno */
int doorbells_add_control(struct doorbells *doorbells, int fd);
/** doorbells_add_end() - the same of a socket of which only the end is of interest: other
 *  threads read what comes. Return: 0; -errno */
int doorbells_add_end(struct doorbells *doorbells, int fd);
/** doorbells_ring() - wake the sleeping thread. Not a cancellation point */
void doorbells_ring(struct doorbells *doorbells);
/** doorbells_set_alarm() - wake the sleeping thread at @by or earlier.
 *  Context: one thread at a time */
void doorbells_set_alarm(struct doorbells *doorbells, mono_t now, mono_t by);
/**
 * doorbells_wait() - sleep until one of them rings
 * @timeout_ms: -1: none
 * Context: one thread at a time; a cancellation point.
 * Return: bits of enum doorbell; 0 after the time-out; -1 and errno: EINTR
 */
int doorbells_wait(struct doorbells *doorbells, int timeout_ms);

#endif
