/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * libsdp.so, a library to be preloaded: socket programs use SDP in place of TCP.
 *
 *  calls.c	the functions of libc that it takes the place of
 *  bytes.c	those that move bytes
 *  establish.c	bind, listen, connect and accept of SDP
 *  place.c	how another socket takes a descriptor's place
 *  session.c	the conversation with softibd's "sdp" socket (abi/sdp.h)
 *  name.c	what a descriptor is: its name, which is in the kernel
 *  options.c	socket options, as a TCP socket has them
 *  memory.c	connections whose memory this process has mapped
 *  stream.c	bytes through this memory, or through the socket
 *  user.c	pointers that the program has passed
 *  wait.c	select() and poll() of it
 *  epoll.c	epoll
 *  rules.c	libsdp.conf: who uses SDP for what
 *
 * The library keeps nothing about descriptors in memory that it needs, because they are inherited
 * over fork() and exec(), duplicated and passed on. A descriptor becomes one of SDP at bind(),
 * listen() or connect(): until then it is a TCP socket of the kernel's, which has the
 * options that the program sets.
 */
#ifndef SOFTIB_LIBSDP_PRIVATE_H
#define SOFTIB_LIBSDP_PRIVATE_H

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>

#include "abi/sdp.h"
#include "abi/sdp_ring.h"

/* --- calls.c: libc's functions behind ours --- */

struct sdp_libc {
	int (*socket)(int, int, int);
	int (*bind)(int, const struct sockaddr *, socklen_t);
	int (*listen)(int, int);
	int (*connect)(int, const struct sockaddr *, socklen_t);
	int (*accept4)(int, struct sockaddr *, socklen_t *, int);
	int (*getsockname)(int, struct sockaddr *, socklen_t *);
	int (*getpeername)(int, struct sockaddr *, socklen_t *);
	int (*getsockopt)(int, int, int, void *, socklen_t *);
	int (*setsockopt)(int, int, int, const void *, socklen_t);
	int (*close)(int);
	ssize_t (*read)(int, void *, size_t);
	ssize_t (*readv)(int, const struct iovec *, int);
	ssize_t (*recv)(int, void *, size_t, int);
	ssize_t (*recvfrom)(int, void *, size_t, int, struct sockaddr *, socklen_t *);
	ssize_t (*recvmsg)(int, struct msghdr *, int);
	ssize_t (*write)(int, const void *, size_t);
	ssize_t (*writev)(int, const struct iovec *, int);
	ssize_t (*send)(int, const void *, size_t, int);
	ssize_t (*sendto)(int, const void *, size_t, int, const struct sockaddr *, socklen_t);
	ssize_t (*sendmsg)(int, const struct msghdr *, int);
	int (*poll)(struct pollfd *, nfds_t, int);
	int (*ppoll)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);
	int (*select)(int, fd_set *, fd_set *, fd_set *, struct timeval *);
	int (*epoll_create)(int);
	int (*epoll_create1)(int);
	int (*epoll_ctl)(int, int, int, struct epoll_event *);
	int (*epoll_pwait)(int, struct epoll_event *, int, int, const sigset_t *);
	int (*epoll_pwait2)(int, struct epoll_event *, int, const struct timespec *, const sigset_t *);
};
extern struct sdp_libc sdp_libc;

/** struct sdp_env - what the environment has said of the fabric when the library was loaded; servers
 *  such as nginx clear it afterwards. NULL: nothing */
extern struct sdp_env {
	char *dir, *node;
} sdp_env;

/** sdp_begin() - find them, if that was not done yet. Return: is the program on a node? */
bool sdp_begin(void);

/* --- rules.c --- */

enum sdp_use { SDP_USE_TCP, SDP_USE_SDP, SDP_USE_BOTH };
enum sdp_role { SDP_SERVER, SDP_CLIENT };

/** sdp_rules_load() - the file that LIBSDP_CONFIG_FILE names, or /etc/libsdp.conf; errors
 *  are reported on stderr, and the line is ignored */
void sdp_rules_load(void);
/** sdp_rules_parse() - add the rule of one line. Return: NULL; what is wrong with it */
const char *sdp_rules_parse(const char *line);
/** sdp_rules_use() - the first rule that matches; both, if none does */
enum sdp_use sdp_rules_use(enum sdp_role role, const struct sockaddr *addr);

/* --- name.c --- */

enum sdp_kind {
	SDP_BOUND = 'b',     /* and maybe it listens */
	SDP_CONNECTED = 'c',
	SDP_PENDING = 'p',   /* connect() did not wait: sdp_outcome() */
};

/* options of SOL_SOCKET and IPPROTO_IPV6 that a Unix socket does not keep */
enum sdp_flags { SDP_REUSEPORT = 1 << 0, SDP_V6ONLY = 1 << 1 };

/** struct sdp_name - what is known of a socket of SDP. @flags: enum sdp_flags */
struct sdp_name {
	enum sdp_kind kind;
	uint8_t flags;
	struct abi_sdp_names names;
};

/** sdp_name_get() - Return: is @fd a socket of SDP? Then *@name is what is known of it */
bool sdp_name_get(int fd, struct sdp_name *name);
/** sdp_name_set() - 0; -errno */
int sdp_name_set(int fd, const struct sdp_name *name);
/** sdp_outcome() - of a socket of kind SDP_PENDING. Return: 0: it is connected; -EINPROGRESS;
 *  -errno: why it is not */
int sdp_outcome(int fd);
/** sdp_is_connected() - is it connected now? */
bool sdp_is_connected(int fd, const struct sdp_name *name);
/** sdp_is_tcp() - is @fd a stream socket of AF_INET or AF_INET6? *@family: which */
bool sdp_is_tcp(int fd, int *family);
/** sdp_force() - let a TCP socket know that it is one of AF_INET_SDP */
int sdp_force(int fd);
bool sdp_is_forced(int fd);
/** sdp_set_listening(), sdp_is_listening() - of a socket of kind SDP_BOUND */
void sdp_set_listening(int fd);
bool sdp_is_listening(int fd);
/** sdp_address_of() - Return: false: too short, or neither AF_INET nor AF_INET6 */
bool sdp_address_of(union abi_sdp_address *to, const struct sockaddr *addr, socklen_t len);
/** sdp_address_put() - as getsockname(2) returns addresses. @addr: NULL: nobody wants it. Return:
 *  0; -1 and errno: EFAULT, EINVAL */
int sdp_address_put(const union abi_sdp_address *from, struct sockaddr *addr, socklen_t *len);
/** sdp_address_is_loopback(), sdp_address_is_any() - 127.0.0.0/8 or ::1; 0.0.0.0, :: or none */
bool sdp_address_is_loopback(const union abi_sdp_address *address);
bool sdp_address_is_any(const union abi_sdp_address *address);
/** sdp_address_copy_ip() - the IP address of @from becomes that of @to, which keeps its port */
void sdp_address_copy_ip(union abi_sdp_address *to, const union abi_sdp_address *from);
/** sdp_address_map() - an IPv4 address as one of @family */
void sdp_address_map(union abi_sdp_address *address, int family);

/* --- user.c --- */

/** sdp_copy_in(), sdp_copy_out() - @bytes from, or to, a pointer of the program's. Return: 0;
 *  -EFAULT */
int sdp_copy_in(void *to, const void *from, size_t bytes);
int sdp_copy_out(void *to, const void *from, size_t bytes);
/** sdp_put() - a result of @bytes for the program, which has room for *@len. @whole: *@len becomes
 *  @bytes even if it is more. Return: 0; -1 and errno: EFAULT, EINVAL */
int sdp_put(void *to, socklen_t *len, const void *from, socklen_t bytes, bool whole);

/* --- place.c --- */

/**
 * sdp_take_place() - let the socket @other be what @fd was, and close @other
 * Copies of @fd in this process become @other, too, and epoll instances watch it with the
 * same events and data. Copies in other processes stay what they are.
 * Return: 0; -errno
 */
int sdp_take_place(int fd, int other);
/** sdp_is_epoll() - Return: is @fd an epoll instance? */
bool sdp_is_epoll(int fd);

/* --- session.c --- */

/** sdp_session_open() - Return: a connection; -errno */
int sdp_session_open(void);
/**
 * sdp_session_ask() - one request on @session, and its answer
 * @fds: @num_fds, to go with it. @returned: a descriptor of the answer; -1: none
 * Return: 0; -errno
 */
int sdp_session_ask(int session, const struct abi_sdp_request *request, const int *fds,
		    unsigned int num_fds, struct abi_sdp_names *names, int *returned);
/** sdp_session_accept() - the next connection of a listening session. @memory: set to its memory;
 *  -1: none. Return: its descriptor (close-on-exec); -errno; -ENETDOWN: softibd is gone */
int sdp_session_accept(int session, struct abi_sdp_names *names, int *memory);

/* --- memory.c --- */

/** struct sdp_memory - of the connection whose socket is @inode of @device; @side: index in
 *  abi_sdp_memory.half of what this end sends */
struct sdp_memory {
	struct abi_sdp_memory *memory;
	dev_t device;
	ino_t inode;
	int side;
	_Atomic bool reads_much; /* this process has called for that */
	_Atomic unsigned int calls[2]; /* for little: reads, writes */
};

/** sdp_memory_keep() - @fd is a connection with memory @memory_fd, which is closed; -1: none */
void sdp_memory_keep(int fd, int memory_fd, int side);
/** sdp_memory_forget() - before @fd is closed */
void sdp_memory_forget(int fd);
/** sdp_memory_enter() - Return: what @fd was when that was looked at last, which stays until
 *  sdp_memory_leave(); NULL: nothing is known */
struct sdp_memory *sdp_memory_enter(int fd);
void sdp_memory_leave(int fd);
/** sdp_memory_is_of() - is @fd that connection still? */
bool sdp_memory_is_of(const struct sdp_memory *m, int fd);
/** sdp_memory_take_error() - Return: the error by which the connection has ended, if the program
 *  was not told yet; 0: none, as far as is known */
int sdp_memory_take_error(int fd);
/** sdp_memory_note_linger() - let softibd know whether SO_LINGER of @fd makes close() a reset */
void sdp_memory_note_linger(int fd);

/* --- stream.c --- */

/** sdp_write(), sdp_read() - as sendmsg(2) and recvmsg(2), *@n being the result. Return: false:
 *  that is the kernel's matter, and nothing was done */
bool sdp_write(int fd, const struct msghdr *msg, int flags, ssize_t *n);
bool sdp_read(int fd, const struct msghdr *msg, int flags, ssize_t *n);

/* --- wait.c --- */

#define SDP_WATCHES_MAX 64

/** struct sdp_watch - a connection from which much is read, for one call. @index: of its pollfd.
 *  @has_seen: bytes up to @seen are no news */
struct sdp_watch {
	int fd;
	nfds_t index;
	struct sdp_memory *memory;
	struct abi_sdp_half *half;
	uint64_t seen;
	bool has_seen;
};

struct sdp_watches {
	struct sdp_watch of[SDP_WATCHES_MAX];
	unsigned int num;
};

/** sdp_watch_add() - @one, of which the memory is looked up. Return: false: not much is read from
 *  it, or nothing is known of it */
bool sdp_watch_add(struct sdp_watches *w, const struct sdp_watch *one);
/** sdp_watch_want() - let softibd know that a lease would be of use */
void sdp_watch_want(const struct sdp_watch *w);
bool sdp_watch_has_news(const struct sdp_watch *w);
/** sdp_watches_are_leased() - are bytes to be expected in a ring? */
bool sdp_watches_are_leased(const struct sdp_watches *w);
/** sdp_watches_begin() - @waits: the thread may wait. Return: has a ring news? If not, and @waits,
 *  the writers use the sockets, until sdp_watches_end() */
bool sdp_watches_begin(const struct sdp_watches *w, bool waits);
/** sdp_watches_end() - @waited: the thread was one that the socket wakes */
void sdp_watches_end(const struct sdp_watches *w, bool waited);

/* --- epoll.c --- */

/** sdp_epoll_forget() - @fd is not the number of an instance any more */
void sdp_epoll_forget(int fd);
/** sdp_epoll_is_polled() - the program waits for @fd, which may be an instance, by other calls */
void sdp_epoll_is_polled(int fd);

/* --- establish.c: as the calls of libc, of a socket that is or becomes one of SDP --- */

int sdp_bind(int fd, const struct sockaddr *addr, socklen_t len);
int sdp_listen(int fd, int backlog);
int sdp_connect(int fd, const struct sockaddr *addr, socklen_t len);
int sdp_accept_on(int fd, const struct sdp_name *name, struct sockaddr *addr,
		  socklen_t *len, int flags);

/* --- options.c --- */

int sdp_getsockopt(int fd, const struct sdp_name *name, int level, int option,
		   void *value, socklen_t *len);
int sdp_setsockopt(int fd, int level, int option, const void *value, socklen_t len);
/** sdp_copy_options() - what the program has set on @from before it became @to */
void sdp_copy_options(int from, int to);

#endif
