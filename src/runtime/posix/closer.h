/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Descriptors that another process chose. The last close(2) of a file may wait for
 * as long as its maker likes (a TCP socket with SO_LINGER, a file of a FUSE server),
 * and a thread that serves many may not: closer threads do it in its place. Closing a
 * socket counts, too, when descriptors may be on their way in it.
 *
 * A process whose closes wait has two of these threads at most, and what it sends waits behind them. With
 * more than 64 such descriptors it is disconnected, and so is not listened to.
 */
#ifndef SOFTIB_RUNTIME_CLOSER_H
#define SOFTIB_RUNTIME_CLOSER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/** RT_FOREIGN_FDS_MAX - that the kernel lets go with one message. Who serves others has so many numbers
 *  more for descriptors than its limit (RLIMIT_NOFILE) says: rt_receive() raises the limit meanwhile */
#define RT_FOREIGN_FDS_MAX 253

/** rt_closer_begin() - from now on threads close; before, and so in tests and in the
 *  simulator, rt_close_foreign() is close(2) */
void rt_closer_begin(void);

/** rt_close_foreign() - close @fd (-1: nothing) soon, in a thread of its own.
 *  Context: any; never waits */
void rt_close_foreign(int fd);

/** rt_close_foreign_all() - the @n of @fds, which are -1 on return */
void rt_close_foreign_all(int *fds, size_t n);

/** rt_close_socket() - close @sock (-1: nothing) at once: one whose descriptor no other
 *  process has. What its peer sent and nobody read is taken out before, and the
 *  descriptors among it are closed as foreign ones. Never waits */
void rt_close_socket(int sock);

/** rt_note_sender() - @fd, or what is in this socket, comes from the process @pid; 0: nobody knows. Of what
 *  rt_receive() returns that is known already. @fd: -1: nothing */
void rt_note_sender(int fd, pid_t pid);
/** rt_inherit_sender() - @fd was made of @from, whose sender is its sender, too. @fd: -1: nothing */
void rt_inherit_sender(int fd, int from);

/** rt_closer_crowded() - an eighth of all descriptors waits to be closed: nobody new may send any */
bool rt_closer_crowded(void);

/** rt_refuse_fds() - who sends descriptors to @sock, or to a connection that it
 *  accepts, gets EPERM. Older kernels than 6.16 cannot: rt_receive() copes */
void rt_refuse_fds(int sock);
/** rt_allow_fds() - the same; @allow: they may send again */
void rt_allow_fds(int sock, bool allow);

/**
 * rt_receive() - one message, and the descriptors that come with it
 * @flags: of recvmsg(2)
 * @fds: @max of them, filled with -1 behind those that came; the caller's, to be
 *       closed by rt_close_foreign(). Those that exceed @max are closed so.
 * Return: its bytes; 0 when the peer is gone; -errno; -EMFILE: its sender has sent descriptors whose
 *         closes wait, and so many others that it may send no more: the caller disconnects it
 */
ssize_t rt_receive(int sock, void *bytes, size_t len, int flags, int *fds, size_t max);

#endif
