/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Processes that this one starts and must not leave behind. They are killed when it
 * dies; their orphans are adopted (PR_SET_CHILD_SUBREAPER) and ended.
 */
#ifndef SOFTIB_TOOLS_CHILDREN_H
#define SOFTIB_TOOLS_CHILDREN_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define END_TIMEOUT_MS 5000 /* between SIGTERM and SIGKILL */

/* tells the process that serves a session to end it, even if its command runs */
#define SESSION_ABANDONED SIGUSR2

/** now_ms() - CLOCK_MONOTONIC in milliseconds */
uint64_t now_ms(void);

/** children_watch() - become the subreaper of orphans, and block the signals that end
 *  programs, SIGCHLD and SESSION_ABANDONED
 *  @old: set to the previous signal mask, for children_begin()
 *  Return: a non-blocking signalfd for these signals, owned by the caller; -1 and errno */
int children_watch(sigset_t *old);

/** children_begin() - to be called first by a forked child, and again after it has
 *  entered a user namespace, which clears the parent-death signal
 *  @death: the signal that it gets when its parent dies
 *  @parent: the process that forked it */
void children_begin(const sigset_t *old, int death, pid_t parent);

/** children_end() - send SIGTERM to all children, and to their orphans; kill those that
 *  do not end within END_TIMEOUT_MS
 *  @signal_fd: of children_watch()
 *  @ended: called with the status of each; may be NULL */
void children_end(int signal_fd, void (*ended)(pid_t pid, int status, void *arg),
		  void *arg);

/** exit_status() - convert a wait status to an exit status as a shell does (128 + signal) */
int exit_status(int status);

/** children_listen() - does a descendant listen on a TCP port, or an SDP port?
 *  It reads /proc, because a connection would be accepted by the server. */
bool children_listen(void);

#endif
