/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Who runs a program's engine: the program's own threads or the library's
 * progress thread. This is a pure state machine, (state, event, time) to
 * (state, actions): it has no clock, thread, descriptor or memory of its own.
 * lib/libibverbs/progress_thread.c and event_waiter.c perform its actions and report events.
 *
 * A program that polls a CQ runs the engine in its polls, and the progress
 * thread stands by. A program that sleeps in ibv_get_cq_event() runs it there, as
 * an *event waiter*. The progress thread runs it for every other program: the
 * target of RDMA that never calls the library, or a program that sleeps in
 * its own poll(). Whoever sleeps for the engine sleeps on the *doorbells*, the
 * descriptors that peers and softibd ring; only one thread does so at a time.
 *
 * States of the progress thread
 *   RUNNING        it runs the engine, or spins.
 *   ASLEEP         it sleeps on the doorbells, and senders ring for each record.
 *   BESIDE_POLLER  the program polls. The thread sleeps on the doorbells until
 *                  its next check of the program, but senders do not ring for
 *                  each record: only for those that are overdue.
 *   BESIDE_WAITER  event waiters come and go. The thread leaves the doorbells
 *                  to them and sleeps until its next check.
 *   PARKED         an event waiter sleeps for long. The thread sleeps until that
 *                  waiter leaves.
 *
 * The table of transitions is in progress.c, the time constants in limits.h.
 */
#ifndef SOFTIB_PROGRESS_PROGRESS_H
#define SOFTIB_PROGRESS_PROGRESS_H

#include "base/types.h"
#include "progress/limits.h"

enum prog_state {
	PROG_RUNNING,
	PROG_ASLEEP,
	PROG_BESIDE_POLLER,
	PROG_BESIDE_WAITER,
	PROG_PARKED,
	PROG_ANY, /* in the table: whatever the state is, it stays */
};

enum prog_event {
	/* --- of the progress thread: the outcome of its last action --- */
	PROG_READY,   /* it may run the engine: at first, and after PROG_YIELD */
	PROG_RAN,     /* after PROG_RUN */
	PROG_CROWDED, /* after PROG_YIELD, when somebody else took the core */
	PROG_WOKE,    /* a sleep is over, or could not begin: the engine has work */
	/* --- of the program's threads --- */
	PROG_ARM,	   /* a CQ was armed */
	PROG_ENTER,	   /* a thread enters ibv_get_cq_event() and will wait */
	PROG_RETRY,	   /* it was told PROG_DRIVE_SOON, and asks again */
	PROG_DRIVER_LEAVE, /* a thread that was told PROG_DRIVE or _SOON leaves */
	PROG_OTHER_LEAVE,  /* a thread that was told PROG_WAIT leaves */
};

/** enum prog_action - bits. The progress thread gets exactly one of the first
 *  five, and perhaps RING_OVERDUE; a waiting thread one of the last three; KICK
 *  goes to a thread of the program. */
enum prog_action {
	PROG_RUN = 1 << 0,	     /* run the engine until it has nothing to do */
	PROG_YIELD = 1 << 1,	     /* offer the core to others: the thread spins */
	PROG_SLEEP_ARMED = 1 << 2,   /* sleep on the doorbells; senders must ring */
	PROG_SLEEP_UNARMED = 1 << 3, /* the same; senders ring for what is overdue */
	PROG_SLEEP_APART = 1 << 4,   /* sleep away from the doorbells, until a kick */
	PROG_RING_OVERDUE = 1 << 5,  /* before that: ring for peers that read late */
	PROG_KICK = 1 << 6,	     /* wake the progress thread up */
	PROG_DRIVE = 1 << 7,	  /* run the engine; the doorbells are yours */
	PROG_DRIVE_SOON = 1 << 8, /* the same when the thread has left them: ask again */
	PROG_WAIT = 1 << 9,	  /* others run the engine: wait for the channel */
};

#define PROG_FOREVER UINT64_MAX

/** struct prog_seen - what whoever reports an event has seen of the program.
 *  Events of the program's threads need nothing of it. */
struct prog_seen {
	uint64_t polls;	 /* of any CQ, ever */
	uint32_t arms;	 /* of any CQ, ever */
	uint32_t armed;	 /* CQs that are armed now */
	uint32_t events; /* completion events raised, ever */
	bool worked;	 /* PROG_RAN: the engine had something to do */
	bool link_down;	 /* softibd is gone */
	/* --- of a PROG_WOKE from PROG_SLEEP_UNARMED or _APART --- */
	bool rang;	   /* a doorbell of a lane's or softibd's */
	bool unread;	   /* records wait */
	uint64_t read;	   /* records read, ever */
	uint64_t slept_ns; /* the sleep's length */
	uint64_t cpu_ns;   /* processor time that the process used meanwhile */
};

/** enum prog_owner - who may sleep on the doorbells */
enum prog_owner { PROG_NOBODY, PROG_THREAD, PROG_WAITER };

/** struct prog - the caller's, who serialises */
struct prog {
	enum prog_state state;
	enum prog_owner doorbells;
	bool kicked;	/* and the thread has not reported since */
	uint64_t spin_ns;
	uint64_t rows;	/* a bit for each row of the table that ever ruled: for tests */
	/* --- event waiters --- */
	uint32_t waiters; /* threads in ibv_get_cq_event() */
	bool driver;	  /* one of them runs the engine */
	uint32_t visits;  /* grows when a driver comes or leaves */
	/* --- what was seen last: of a sample, or of a check --- */
	uint64_t polls_then, read_then;
	uint32_t arms_then, visits_then, events_then;
	bool arms_are_new; /* take a CQ that is armed for newly armed */
	/* --- RUNNING --- */
	mono_t sample_start, armed_at, last_work, yield_start, crowded_until;
	unsigned busy_samples, samples_wanted;
	/* --- BESIDE_POLLER, BESIDE_WAITER --- */
	mono_t check_start;
	uint64_t check_ns;
	uint64_t standby_ns; /* the checks of this standby that are over */
};

/** struct prog_order - what to do. @sleep_ns: for a sleep, how long at most */
struct prog_order {
	unsigned actions; /* bits of enum prog_action */
	uint64_t sleep_ns;
};

/** prog_init() - RUNNING. @spin_ns: PROG_SPIN_NS, or the program's wish */
void prog_init(struct prog *p, uint64_t spin_ns, mono_t now);

/**
 * prog_step() - one transition
 * @seen: what the reporter has seen; only the fields that its event needs
 * Context: any; the caller serialises per object.
 * Return: what the reporter shall do now
 */
struct prog_order prog_step(struct prog *p, enum prog_event event, const struct prog_seen *seen,
			    mono_t now);

/**
 * prog_crowded_ns() - how long not to spin because others want the core
 * @lost_ns: for so long a spin was without the core
 * Return: 0 if that was less than a time slice
 */
uint64_t prog_crowded_ns(uint64_t lost_ns);

/** prog_rows() - Return: how many rows the table has */
unsigned prog_rows(void);
/** prog_row_name() - Return: a row in words */
const char *prog_row_name(unsigned row);

#endif
