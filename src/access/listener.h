/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A SOCK_SEQPACKET socket in the runtime directory on which programs open "device files". The
 * listener accepts connections and identifies the peer; the endpoint interprets the messages.
 */
#ifndef SOFTIB_ACCESS_LISTENER_H
#define SOFTIB_ACCESS_LISTENER_H

#include <sys/socket.h>
#include <sys/types.h>

#include "runtime/posix/rt_posix.h"

struct listener;

/** struct peer - the process at the other end, with its attributes at the time when it connected */
struct peer {
	pid_t pid;
	uid_t uid;
	char comm[16];
	bool may_lock; /* CAP_IPC_LOCK in the initial user namespace: RLIMIT_MEMLOCK
			* does not bind it */
};

/**
 * listener_create() - listen on @dir/@name
 * @accepted: called when a peer that may use the fabric (the same user, or root)
 *            has connected; it takes ownership of @fd, which is non-blocking
 *
 * The socket file of a softibd that has died is replaced. If no descriptor is
 * left, a peer gets struct abi_reply with -EMFILE, and is disconnected.
 * Return: 0; -ENAMETOOLONG; -EADDRINUSE: another process listens there; -errno
 */
int listener_create(struct rt *rt, const char *dir, const char *name,
		    void (*accepted)(void *ctx, int fd, const struct peer *peer), void *ctx,
		    struct listener **listener);
/** listener_refuse_fds() - do not accept descriptors from the peers (rt_refuse_fds()) */
void listener_refuse_fds(struct listener *listener);
/** listener_destroy() - stop listening, and remove the socket file */
void listener_destroy(struct listener *listener);

/** peer_of() - set @peer to the process at the other end of @fd. 0; -errno */
int peer_of(int fd, struct peer *peer);
/** peer_log() - write a line about that process to softibd's log */
__attribute__((format(printf, 2, 3)))
void peer_log(const struct peer *peer, const char *fmt, ...);
/** peer_has_room() - may the process of @peer open one more session of a kind?
 *  @fd: descriptor of the new connection; @n: number of its sessions of this kind so far, each of which
 *  uses @fds_each descriptors of softibd. A process may use a quarter of all descriptors. When only a
 *  quarter is free, it may have two sessions of a kind */
bool peer_has_room(const struct peer *peer, int fd, unsigned int n, unsigned int fds_each);
/** sessions_of_process() - Return: the number of an endpoint's sessions with the process of @peer
 *  @sessions: list of @type, by its member node; @member: its member with the process */
#define sessions_of_process(peer, sessions, type, member)                                           \
	({                                                                                         \
		const struct peer *peer_ = (peer);                                                 \
		const type *session_;                                                              \
		unsigned int num_ = 0;                                                             \
		list_for_each_entry(session_, sessions, node)                                      \
			num_ += peer_ && session_->member == peer_->pid;                           \
		num_;                                                                              \
	})
/**
 * session_alloc() - admit a connection to an endpoint
 * @peer: NULL: it is not subject to limits; @n, @fds_each: as in peer_has_room()
 * @bytes: size of the endpoint's struct for a session
 * Return: that struct, zeroed; NULL: there is no room or no memory. Then the peer has been answered
 * -EMFILE or -ENOMEM, and @fd is closed
 */
void *session_alloc(const struct peer *peer, int fd, unsigned int n, unsigned int fds_each,
		    size_t bytes);
/** peer_memlock_bytes() - Return: the current RLIMIT_MEMLOCK of the process, read by prlimit(2);
 *  UINT64_MAX: it is unlimited or cannot be read */
uint64_t peer_memlock_bytes(const struct peer *peer);
/** peer_may_send_raw() - has the process CAP_NET_RAW now, in the initial user namespace? */
bool peer_may_send_raw(const struct peer *peer);

/**
 * endpoint_send() - send one message: struct abi_reply, then @bytes of @body
 * @fds: the peer receives duplicates; the caller still owns these
 * Never blocks. Return: 0; -EAGAIN the peer does not read; -errno
 */
int endpoint_send(int fd, int error, const void *body, size_t bytes, const int *fds,
		  unsigned int num_fds);
/**
 * endpoint_answer_open() - answer an opening message on @fd by error 0 and one end of a socket of commands
 * @page_fd: a further descriptor, of which the peer receives a duplicate; -1: none
 * @control: set to softibd's end, which refuses descriptors
 * Return: 0; -errno
 */
int endpoint_answer_open(int fd, int page_fd, int *control);

#endif
