/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The rings by which programs tell softibd of commands that are not answered (abi/told.h). A session has one if its
 * program asks for it.
 *
 * The sessions of a process know each other by struct told_process: what it tells of its queue pairs is run before what it
 * tells the RDMA CM.
 */
#ifndef SOFTIB_ACCESS_TOLD_H
#define SOFTIB_ACCESS_TOLD_H

#include <sys/types.h>

#include "abi/told.h"
#include "runtime/rt.h"

struct told;
struct told_process;

/**
 * struct told_ops - whose ring it is
 * @verbs: of a context, whose commands are run before those that the process tells the RDMA CM
 * @run: run the commands of a record; @bytes: aligned to 8, and the callee's until it returns
 * @broken: the program has written what is no record. The ring is read no more; it is closed later
 */
struct told_ops {
	bool verbs;
	void (*run)(void *session, void *bytes, size_t len);
	void (*broken)(void *session);
};

/** told_process_get() - Return: the process with @pid, for told_process_put(); NULL: no memory */
struct told_process *told_process_get(struct rt *rt, pid_t pid);
/** told_process_put() - @process: NULL: nothing */
void told_process_put(struct told_process *process);

/**
 * told_open() - make a ring for @session
 * @process: which remains as long as the ring
 * @fds: set to the descriptors for the program, which the caller closes
 * Return: 0, and @told; -ENOSPC: the process has enough of them, and goes on by messages; -ENOMEM; -errno of making descriptors and memory
 */
int told_open(struct told_process *process, const struct told_ops *ops, void *session, int fds[ABI_TOLD_FDS],
	      struct told **told);
/** told_close() - remove the ring. @told: NULL: nothing */
void told_close(struct told *told);
/**
 * told_run() - run the records that a process has put into its rings before the call
 *
 * The rings of verbs contexts come first. A ring runs a limited number of records in a turn of the loop, whoever calls.
 * @process: NULL: there is none
 * Return: true if no such record is left. The next message of a session may be read then
 */
bool told_run(struct told_process *process);
/** told_run_one() - told_run() of one ring, after those of the process's verbs contexts. A ring that is paused counts
 *  as empty. @told: NULL: there is none */
bool told_run_one(struct told *told);
/** told_pause() - run no records until it is called once more, with false. @told: NULL: nothing */
void told_pause(struct told *told, bool paused);
/** told_by_rings() - does the process have rings? Then a turn may read one message of a session only, because a ring may
 *  have records that were told before the second one. @process: NULL: it has none */
bool told_by_rings(const struct told_process *process);

#endif
