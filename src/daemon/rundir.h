/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The runtime directory of one fabric. It contains the sockets and the lock of the
 * softibd that serves it.
 */
#ifndef SOFTIB_DAEMON_RUNDIR_H
#define SOFTIB_DAEMON_RUNDIR_H

#include <stddef.h>

/**
 * rundir_claim() - create @dir (0700) or use the existing one, and lock it
 * @err: set to a message on failure
 *
 * It removes stale sockets of a softibd that has died.
 * Return: the descriptor that holds the lock, until it is closed; -EACCES the
 * directory belongs to another user; -EBUSY another softibd serves it; -errno
 */
int rundir_claim(const char *dir, char *err, size_t err_bytes);
/** rundir_release() - remove softibd's files in @dir, and @dir if it is then empty */
void rundir_release(const char *dir, int lock_fd);

#endif
