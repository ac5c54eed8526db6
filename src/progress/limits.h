/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Every time constant of progress: its name, its value with the unit, and the
 * reason for it. The decisions that use them are in progress.c; those of the
 * last two groups are used by the library around it (lib/libibverbs).
 *
 * How long a record may stay unread follows from these, for each kind of
 * program. tests/unit/progress/test_programs.c holds the state machine to it:
 *
 *   the program                                     a record is read
 *   polls                                           by its next poll
 *   sleeps in ibv_get_cq_event()                    when its doorbell rings
 *   has just begun to, and the thread still serves  PROG_HANDOVER_NS
 *   armed a CQ and sleeps elsewhere                 when its doorbell rings
 *   the same, right after it used ibv_get_cq_event  PROG_BOUND_WAITER_NS
 *   stops polling, with a CQ armed long ago         PROG_BOUND_ARMED_NS
 *   stops polling, with no CQ armed                 PROG_BOUND_POLLER_NS
 *
 * In the last two rows a sender that polls or sleeps shortens the time to twice
 * PROG_OVERDUE_NS, since it rings the doorbell again.
 */
#ifndef SOFTIB_PROGRESS_LIMITS_H
#define SOFTIB_PROGRESS_LIMITS_H

#include "base/types.h"

/* --- does the program poll? --- */

/* The rate of polls is measured over samples of this length: long enough for
 * two polls of a program that posts a hundred requests between them. */
#define PROG_SAMPLE_NS (200 * NSEC_PER_USEC)
/* A program polls steadily when it polls at least this often. */
#define PROG_POLL_NS (100 * NSEC_PER_USEC)
/* The same while a CQ is armed. A program that handles events polls as well,
 * but only a few times for each event; UCX, which keeps a CQ armed for new
 * peers, polls far more often than this. */
#define PROG_POLL_ARMED_NS (10 * NSEC_PER_USEC)
/* The same while a CQ is armed and the thread stands by already. The two
 * limits differ so that a program near one of them does not make the thread
 * come and go (hysteresis). */
#define PROG_POLL_KEPT_NS (50 * NSEC_PER_USEC)
/* A program that armed no CQ for this long does not handle events now. */
#define PROG_QUIET_NS (20 * NSEC_PER_MSEC)

/* The thread steps aside after this many busy samples in a row; the number
 * is multiplied by four each time that this was a mistake, and halved each
 * time that it was not. A program that polls for a moment and then watches its
 * memory (perftest's write latency) looks busy and is not. */
#define PROG_SAMPLES_MIN 2u
#define PROG_SAMPLES_MAX 1024u /* 0.2 s */
/* A standby that ended sooner than this was a mistake. */
#define PROG_STANDBY_SHORT_NS (8 * NSEC_PER_MSEC)

/* --- how often a thread that stands by checks the program --- */

/* The first check is soon, since programs that stop polling mostly do so soon;
 * each is twice as long as the one before it, up to one of the next three. */
#define PROG_CHECK_FIRST_NS (1 * NSEC_PER_MSEC)
/* Beside a polling program: 60 wake-ups a second are 0.1 % of a core. */
#define PROG_CHECK_POLLER_NS (16 * NSEC_PER_MSEC)
/* The same while a CQ is armed: the program may be about to sleep for it. */
#define PROG_CHECK_ARMED_NS (2 * NSEC_PER_MSEC)
/* Beside threads that come and go in ibv_get_cq_event(). */
#define PROG_CHECK_WAITER_NS (8 * NSEC_PER_MSEC)

/* --- spinning before a sleep --- */

/* A thread that waits for an event spins for this long before it sleeps, since
 * an answer is often near and a sleep costs several microseconds.
 * SOFTIB_SPIN_US in the program's environment changes it. */
#define PROG_SPIN_NS (40 * NSEC_PER_USEC)
#define PROG_SPIN_MAX_NS NSEC_PER_SEC
/* Where somebody else wanted the core, the progress thread does not spin again
 * for this long: its time slices are short and come first, so it would hold
 * up the threads that it waits for. */
#define PROG_CROWDED_NS (10 * NSEC_PER_MSEC)
/* A spin, of whichever thread, that was without the core for a time slice (the least
 * of Linux is 0.7 ms) is not followed by another one for this many times as long: on
 * a core with two busy programs each sched_yield() waits 4 to 8 ms, and an event that
 * a sleep would have taken at once waits with it. Such spins then cost 3 % at most. */
#define PROG_CROWDED_SLICE_NS (500 * NSEC_PER_USEC)
#define PROG_CROWDED_TIMES 32
#define PROG_CROWDED_MAX_NS NSEC_PER_SEC

/* --- the library around the state machine --- */

/* A sender rings the doorbell of a receiver that seems to be awake and has
 * read nothing for this long: much longer than a poll, and shorter than what a
 * person or a time-out notices. */
#define PROG_OVERDUE_NS (1 * NSEC_PER_MSEC)
/* An event waiter to which the thread has not yet left the doorbells asks again
 * after this: the thread needs a core to step aside. */
#define PROG_HANDOVER_NS (1 * NSEC_PER_MSEC)
/* A sleep in ibv_get_cq_event() whose descriptor was only assumed to block ends
 * after this, and asks. */
#define PROG_ASSUMED_BLOCKING_NS (1 * NSEC_PER_MSEC)

/* --- the bounds of the table above --- */

/* Two checks: the program may stop right after one. */
#define PROG_BOUND_POLLER_NS (2 * PROG_CHECK_POLLER_NS)
/* Two of the shorter checks; a CQ that is armed during a longer one ends it. */
#define PROG_BOUND_ARMED_NS (2 * PROG_CHECK_ARMED_NS)
#define PROG_BOUND_WAITER_NS (2 * PROG_CHECK_WAITER_NS)

#endif
