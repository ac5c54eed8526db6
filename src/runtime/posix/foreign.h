/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Calls on sockets that another process shares. O_NONBLOCK is a property of the open file, so this
 * process can clear it at any moment, and accept(2) and connect(2) have no flag that takes its place:
 * a thread that serves many may not make these calls. A thread of their own does.
 */
#ifndef SOFTIB_RUNTIME_FOREIGN_H
#define SOFTIB_RUNTIME_FOREIGN_H

#include <sys/socket.h>

#include "runtime/posix/rt_posix.h"

struct rt_foreign_call;

/**
 * rt_foreign_accept() - accept a connection
 * @fd: a listening socket; remains the caller's, who may close it
 * @done: called by the loop, once, unless the call is abandoned. @result: the connection, a descriptor
 *	that is the callee's; -errno
 * @call: the call, until @done is called
 *
 * Return: 0; -EMFILE; -ENOMEM; -EAGAIN no thread
 */
int rt_foreign_accept(struct rt *rt, int fd, void (*done)(void *ctx, int result), void *ctx,
		      struct rt_foreign_call **call);

/**
 * rt_foreign_connect() - begin to connect a socket
 * @fd, @done, @call: as for rt_foreign_accept(). @result: 0; -EINPROGRESS: the socket becomes writable;
 *	-errno
 * @addr: copied
 */
int rt_foreign_connect(struct rt *rt, int fd, const struct sockaddr *addr, socklen_t len,
		       void (*done)(void *ctx, int result), void *ctx, struct rt_foreign_call **call);

/** rt_foreign_abandon() - @done is not called, and a connection that is accepted nevertheless is closed.
 *  Never waits: the thread ends soon */
void rt_foreign_abandon(struct rt_foreign_call *call);

#endif
