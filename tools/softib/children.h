/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Processes that this one starts and must not leave behind: they die with it,
 * and what they leave behind is adopted (PR_SET_CHILD_SUBREAPER) and ended.
 */
#ifndef SOFTIB_TOOLS_CHILDREN_H
#define SOFTIB_TOOLS_CHILDREN_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define END_TIMEOUT_MS 5000 /* between SIGTERM and SIGKILL */

/* tells the process that serves a session to end it, command or not */
#define SESSION_ABANDONED SIGUSR2

/** now_ms() - CLOCK_MONOTONIC in milliseconds */
uint64_t now_ms(void);

/** children_watch() - become the one that orphans come to, and block the signals
 *  that end programs, SIGCHLD and SESSION_ABANDONED
 *  @old: the signal mask as it was, for children_begin()
 *  Return: a non-blocking signalfd of them, the caller's; -1 and errno */
int children_watch(sigset_t *old);

/** children_begin() - what a fork()ed child does first, and again when it has
 *  entered a user namespace, which drops the parent-death signal
 *  @death: the signal that it gets when its parent dies
 *  @parent: the process that forked it */
void children_begin(const sigset_t *old, int death, pid_t parent);

/** children_end() - ask all children to end, and theirs as they come to us;
 *  kill those that do not within END_TIMEOUT_MS
 *  @signal_fd: of children_watch()
 *  @ended: is told each one's status; may be NULL */
void children_end(int signal_fd, void (*ended)(pid_t pid, int status, void *arg),
		  void *arg);

/** exit_status() - of a wait status, as a shell says it: 128 + a signal's number */
int exit_status(int status);

/** children_listen() - does a process below this one listen on a TCP port?
 *  /proc tells, which no listener notices; connecting to it would be answered. */
bool children_listen(void);

#endif
