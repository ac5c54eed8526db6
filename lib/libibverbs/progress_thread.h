/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The shell around the state machine of src/progress, which decides who runs a
 * context's engine: the progress thread that performs what it orders
 * (progress_thread.c), the sleep on the doorbells (progress_sleep.c), and the
 * program's threads that wait in ibv_get_cq_event() (event_waiter.c).
 */
#ifndef SOFTIB_LIBIBVERBS_PROGRESS_THREAD_H
#define SOFTIB_LIBIBVERBS_PROGRESS_THREAD_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/types.h"
#include "doorbells.h"
#include "poll_yield.h"
#include "progress/progress.h"

struct soft_context;
struct soft_cq;
struct soft_channel;

/** struct soft_progress - of a context */
struct soft_progress {
	/* --- atomic: what the state machine sees of the program --- */
	_Atomic uint64_t polls;	 /* of any CQ, ever */
	_Atomic uint64_t arms;	 /* of any CQ, ever, from bit 32 on; below: CQs armed now */
	_Atomic uint32_t events; /* completion events raised, ever */
	_Atomic bool arm_kicks;	 /* arming a CQ is an event of the state machine now */
	/* --- protected by lock --- */
	pthread_mutex_t lock;
	struct prog machine;
	/* --- sleeping on the doorbells --- */
	struct doorbells doorbells;
	uint64_t asleep_until;	     /* protected by the engine's lock; 0: awake */
	_Atomic bool control_unread; /* an event waiter took the edge of the thread's
				      * own descriptors, which are still to be read */
	_Atomic uint64_t overdue_at; /* ns: overdue doorbells were last looked for */
	uint64_t spin_ns;	     /* before a thread that waits for an event sleeps */
	struct poll_yield waiter_yield;
	/* --- the progress thread --- */
	pthread_t thread;
	bool running;
	_Atomic bool stop;
	int kick_fd;  /* eventfd: ends the thread's sleep */
	int lanes_fd; /* softibd tells of lanes here; -1 when closed */
	bool told;    /* softibd has raised IBV_EVENT_DEVICE_FATAL itself */
};

/* --- progress_thread.c --- */

/**
 * progress_start() - start the progress thread; every signal stays with the
 * program's own threads
 * Return: 0; -errno
 */
int progress_start(struct soft_context *ctx);
void progress_stop(struct soft_context *ctx);
/** progress_kick() - end the sleep of the progress thread. No cancellation point */
void progress_kick(struct soft_context *ctx);
/**
 * progress_report() - an event of a thread of the program, for the state machine
 * Context: any; takes progress.lock.
 * Return: enum prog_action bits for the caller; a kick is done already
 */
unsigned progress_report(struct soft_context *ctx, enum prog_event event);
/** progress_armed() - @cq is about to be armed */
void progress_armed(struct soft_context *ctx, struct soft_cq *cq);
/** progress_disarmed() - the event of @cq is raised, or @cq goes */
void progress_disarmed(struct soft_context *ctx, struct soft_cq *cq);

/** progress_polled() - a CQ is polled. Threads that poll at once may count as one */
static inline void progress_polled(struct soft_progress *p)
{
	uint64_t n = atomic_load_explicit(&p->polls, memory_order_relaxed);

	atomic_store_explicit(&p->polls, n + 1, memory_order_relaxed);
}

/* --- progress_sleep.c --- */

mono_t progress_now(void *unused);
/** progress_ring() - add @count to an eventfd. No cancellation point, as
 *  write() would be: the caller may hold locks */
void progress_ring(int eventfd, uint64_t count);
/** progress_drain() - read an eventfd that has a count */
void progress_drain(int eventfd);
/** progress_engine_wants() - eng_config.kick: a timer is earlier than was known.
 *  Context: under the engine's lock */
void progress_engine_wants(void *ctx, mono_t by);
/** progress_ring_overdue() - ring for peers that have not read for long what was
 *  sent to them: they may have stopped polling. Context: any; looks at most
 *  once in PROG_OVERDUE_NS */
void progress_ring_overdue(struct soft_context *ctx);
/**
 * progress_arm_sleep() - make senders ring the doorbells, and set the alarm for
 * the engine's timers and after @most_ns; until progress_disarm_sleep()
 * Context: the thread that the state machine gave the doorbells to.
 * Return: false: the engine has work, and nothing is armed
 */
bool progress_arm_sleep(struct soft_context *ctx, uint64_t most_ns);
void progress_disarm_sleep(struct soft_context *ctx);
/** progress_sleep_on_doorbells() - Context: the progress thread; it has the
 *  doorbells. @timeout_ms: -1 for ever. Return: bits of enum doorbell */
int progress_sleep_on_doorbells(struct soft_context *ctx, int timeout_ms);
/** progress_sleep_apart() - until a kick, or news of softibd's. Context: the
 *  progress thread. @timeout_ms: -1 for ever */
void progress_sleep_apart(struct soft_context *ctx, int timeout_ms);

/* --- event_waiter.c --- */

struct soft_cq *event_waiter_wait(struct soft_channel *channel, bool blocks);

#endif
