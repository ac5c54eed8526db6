/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A program, its library and a peer under a virtual clock, around the state
 * machine of src/progress as it is. Records come in; whoever runs the engine reads
 * all that wait. Threads need a while to wake up, and everything between two
 * waits is one step; steps of different threads interleave by the clock.
 */
#ifndef SOFTIB_TESTS_PROGRESS_WORLD_H
#define SOFTIB_TESTS_PROGRESS_WORLD_H

#include "progress/progress.h"

#define US NSEC_PER_USEC
#define MS NSEC_PER_MSEC
#define NEVER UINT64_MAX
#define WAITERS 3 /* threads that wait in ibv_get_cq_event(), at most */

/** enum kind - what the program does for a while */
enum kind {
	KIND_POLL,	/* polls */
	KIND_WAIT,	/* sleeps in ibv_get_cq_event() */
	KIND_WAIT_MANY, /* the same by several threads */
	KIND_OWN_POLL,	/* sleeps in its own poll() */
	KIND_COMPUTE,	/* does not call the library, and computes */
	KIND_SLEEP,	/* does not call the library, and sleeps */
	NUM_KINDS
};

/** struct actor - a thread of the program, or the progress thread */
struct actor {
	uint64_t next; /* ns: when its next step is; NEVER: when it is woken */
	enum {
		AT_LOOP,      /* arm, poll, wait */
		AT_SPIN,      /* in ibv_get_cq_event() */
		AT_DOORBELLS, /* asleep */
		AT_CHANNEL,   /* asleep on the channel's descriptor */
		AT_APART,     /* asleep: the progress thread alone */
		AT_ACTION,    /* the progress thread awake */
	} at;
	unsigned role; /* prog_action of a thread in ibv_get_cq_event(); 0: it is not in */
};

struct world {
	uint64_t seed, now;
	struct prog prog;
	/* --- what the program did --- */
	enum kind kind;
	uint64_t kind_since, poll_ns;
	uint64_t polls_before; /* this kind */
	uint32_t arms, events;
	unsigned queued;	/* events in the channel */
	bool armed, other_armed; /* the CQ that records complete on; one that none does */
	uint64_t last_visit;	/* ns: a thread was in ibv_get_cq_event() */
	uint64_t last_arm;
	struct actor thread, program[WAITERS];
	struct prog_order order;
	uint64_t thread_slept_at;
	/* --- records --- */
	uint64_t next_record, oldest_unread, unread, read;
	bool sender_polls;     /* and so rings for what is overdue */
	uint64_t next_overdue;
	uint64_t last_record;
	/* --- doorbells --- */
	bool asleep;   /* senders ring for each record */
	bool doorbell; /* one rang and was not heard yet */
	bool own;      /* the library's own */
	bool kick;
	uint64_t next_news, last_news; /* from softibd: kicks for something else */
	/* --- counted --- */
	uint64_t thread_wakes, thread_runs, helps, num_news;
	uint64_t num_records, longest_unread[NUM_KINDS];
	const char *failed; /* the first oracle that was violated */
};

/* --- world.c --- */
void world_init(struct world *w, uint64_t seed);
/** world_step() - the earliest step of anyone. Return: false when all sleep for ever */
bool world_step(struct world *w);
/** world_becomes() - the program turns to something else. Who waits is cancelled */
void world_becomes(struct world *w, enum kind kind);
uint64_t world_polls(const struct world *w);
/** world_random() - in [from, to], @from > 0, as likely in each octave */
uint64_t world_random(struct world *w, uint64_t from, uint64_t to);
bool world_chance(struct world *w, unsigned percent);

/* --- test_programs.c --- */
/** oracle_read() - records are read now, the oldest of which came at @came */
void oracle_read(struct world *w, uint64_t came);
/** oracle_woke() - the progress thread woke up */
void oracle_woke(struct world *w);

#endif
