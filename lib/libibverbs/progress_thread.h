/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The threads and descriptors around the state machine of src/progress, which decides
 * which thread runs a context's engine: the progress thread, which performs the
 * actions that the machine returns (progress_thread.c), sleeping on the doorbells
 * (progress_sleep.c), and the program's threads in ibv_get_cq_event()
 * (event_waiter.c).
 */
#ifndef SOFTIB_LIBIBVERBS_PROGRESS_THREAD_H
#define SOFTIB_LIBIBVERBS_PROGRESS_THREAD_H

#include <pthread.h>
#include <stdatomic.h>

#include "arm_count.h"
#include "base/types.h"
#include "doorbells.h"
#include "poll_yield.h"
#include "progress/progress.h"

struct soft_context;
struct soft_cq;
struct soft_channel;

/** struct soft_progress - of a context */
struct soft_progress {
	/* --- atomic: the state machine's input from the program --- */
	_Atomic uint64_t polls;	 /* of all CQs since the start */
	struct arm_count arms;	 /* of all CQs */
	_Atomic uint32_t events; /* completion events raised since the start */
	/* --- protected by lock --- */
	pthread_mutex_t lock;
	struct prog machine;
	/* --- sleeping on the doorbells --- */
	struct doorbells doorbells;
	uint64_t asleep_until;	     /* protected by the engine's lock; 0: awake */
	_Atomic bool control_unread; /* an event waiter consumed the epoll edge of the
				      * thread's own descriptors: read them */
	_Atomic uint64_t overdue_at; /* ns: the last check for overdue doorbells */
	uint64_t spin_ns;	     /* before a thread that waits for an event sleeps */
	struct poll_yield waiter_yield;
	_Atomic uint64_t crowded_until; /* ns: event waiters do not spin before */
	/* --- the progress thread --- */
	pthread_t thread;
	bool running;
	_Atomic bool stop;
	int kick_fd;  /* eventfd: ends the thread's sleep */
	int lanes_fd; /* softibd's messages about lanes; -1 when closed */
	bool told;    /* softibd has raised IBV_EVENT_DEVICE_FATAL itself */
};

/* --- progress_thread.c --- */

/**
 * progress_start() - start the progress thread, which blocks signals
 * Return: 0; -errno
 */
int progress_start(struct soft_context *ctx);
void progress_stop(struct soft_context *ctx);
/** progress_kick() - end the sleep of the progress thread. No cancellation point */
void progress_kick(struct soft_context *ctx);
/**
 * progress_report() - pass an event from a thread of the program to the state machine
 * Context: any; takes progress.lock.
 * Return: the actions (enum prog_action) that the caller must perform; a kick has been
 * performed already
 */
unsigned progress_report(struct soft_context *ctx, enum prog_event event);
/** progress_armed() - @cq is about to be armed */
void progress_armed(struct soft_context *ctx, struct soft_cq *cq);
/** progress_disarmed() - the event of @cq was raised, or @cq is destroyed */
void progress_disarmed(struct soft_context *ctx, struct soft_cq *cq);

/** progress_polled() - a CQ is polled. Concurrent polls may count as one */
static inline void progress_polled(struct soft_progress *p)
{
	uint64_t n = atomic_load_explicit(&p->polls, memory_order_relaxed);

	atomic_store_explicit(&p->polls, n + 1, memory_order_relaxed);
}

/* --- progress_sleep.c --- */

mono_t progress_now(void *unused);
/** progress_ring() - add @count to an eventfd. Unlike write(), it is no cancellation
 *  point: the caller may hold locks */
void progress_ring(int eventfd, uint64_t count);
/** progress_drain() - reset an eventfd that is readable */
void progress_drain(int eventfd);
/** progress_engine_wants() - eng_config.kick: a timer expires earlier than was known.
 *  Context: under the engine's lock */
void progress_engine_wants(void *ctx, mono_t by);
/** progress_ring_overdue() - ring for peers that have left records unread for long, as they
 *  may have stopped polling. Context: any; it checks at most once in PROG_OVERDUE_NS */
void progress_ring_overdue(struct soft_context *ctx);
/**
 * progress_arm_sleep() - let senders ring until progress_disarm_sleep(), and set the alarm
 * @most_ns: the alarm rings at the engine's next timer, or after this time if that is
 *           earlier
 *
 * Context: the thread to which the state machine gave the doorbells.
 * Return: false: the engine has work, and nothing was armed
 */
bool progress_arm_sleep(struct soft_context *ctx, uint64_t most_ns);
void progress_disarm_sleep(struct soft_context *ctx);
/** progress_sleep_on_doorbells() - sleep until a doorbell rings. @timeout_ms: -1: none.
 *  Context: the progress thread while it has the doorbells. Return: bits of enum doorbell */
int progress_sleep_on_doorbells(struct soft_context *ctx, int timeout_ms);
/** progress_sleep_apart() - sleep until a kick or a message of softibd. @timeout_ms: -1:
 *  none. Context: the progress thread while another thread has the doorbells */
void progress_sleep_apart(struct soft_context *ctx, int timeout_ms);

/* --- event_waiter.c --- */

struct soft_cq *event_waiter_wait(struct soft_channel *channel, bool blocks);

#endif
