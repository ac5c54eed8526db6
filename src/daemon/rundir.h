/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The runtime directory of one fabric: the sockets, the lock that says who
 * serves it, nobody else's files.
 */
#ifndef SOFTIB_DAEMON_RUNDIR_H
#define SOFTIB_DAEMON_RUNDIR_H

#include <stddef.h>

/**
 * rundir_claim() - make @dir (0700) or take it over, and lock it
 * @err: room for a message that says what to do
 *
 * Stale sockets of a softibd that died are removed.
 * Return: the descriptor that holds the lock, until it is closed; -EACCES
 * another user's; -EBUSY another softibd's; -errno
 */
int rundir_claim(const char *dir, char *err, size_t err_bytes);
/** rundir_release() - remove what softibd made in @dir, and @dir when empty */
void rundir_release(const char *dir, int lock_fd);

#endif
