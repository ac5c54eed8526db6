/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * libsdp.so, a library to be preloaded. It makes socket programs use SDP in place of TCP.
 *
 *  calls.c	the functions of libc that it replaces
 *  bytes.c	those of them that send and receive
 *  establish.c	bind, listen, connect and accept of SDP
 *  place.c	replacing the socket of a descriptor by another one
 *  session.c	messages to softibd by its socket "sdp" (abi/sdp.h)
 *  name.c	whether a descriptor is an SDP socket, which its name in the kernel tells
 *  options.c	socket options, as a TCP socket has them
 *  memory.c	connections whose shared memory this process has mapped
 *  stream.c	sending and receiving by this memory, or by the socket
 *  user.c	access to memory by pointers that the program has passed
 *  wait.c	select() and poll() of such connections
 *  epoll.c	epoll of such connections
 *  rules.c	libsdp.conf: which programs use SDP for which addresses
 *
 * Descriptors are inherited over fork() and exec(), duplicated, and passed to other processes. Therefore
 * the library does not depend on anything that it has in memory about them. A descriptor becomes an
 * SDP socket by bind(), listen() or connect(). Before, it is a TCP socket of the kernel, which has the
 * options that the program has set.
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

/* --- calls.c: the functions of libc that the library's own replace --- */

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
	int (*shutdown)(int, int);
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

/** struct sdp_env - the folder of the fabric and the node, from the environment at the time when the
 *  library was loaded, because servers such as nginx clear it afterwards. NULL: it was not set */
extern struct sdp_env {
	char *dir, *node;
} sdp_env;

/** sdp_begin() - at the first call, look up the functions of libc. Return: does the program run on a node? */
bool sdp_begin(void);

/* --- rules.c --- */

enum sdp_use { SDP_USE_TCP, SDP_USE_SDP, SDP_USE_BOTH };
enum sdp_role { SDP_SERVER, SDP_CLIENT };

/** sdp_rules_load() - read the file that LIBSDP_CONFIG_FILE names, or else /etc/libsdp.conf. An invalid
 *  line is reported on stderr and ignored */
void sdp_rules_load(void);
/** sdp_rules_parse() - add the rule of one line. Return: NULL; an error message */
const char *sdp_rules_parse(const char *line);
/** sdp_rules_use() - Return: what the first matching rule says; SDP_USE_BOTH: no rule matches */
enum sdp_use sdp_rules_use(enum sdp_role role, const struct sockaddr *addr);

/* --- name.c --- */

enum sdp_kind {
	SDP_BOUND = ABI_SDP_KIND_BOUND,     /* it may be listening, too: sdp_is_listening() */
	SDP_CONNECTED = 'c',
	SDP_PENDING = 'p',   /* connect() did not wait; sdp_outcome() tells the result */
};

/* Options of SOL_SOCKET and IPPROTO_IPV6 that a Unix socket cannot store. */
enum sdp_flags { SDP_REUSEPORT = 1 << 0, SDP_V6ONLY = 1 << 1, SDP_FORCED = 1 << 2 /* sdp_is_forced() */ };

/** struct sdp_name - the state of an SDP socket. @flags: enum sdp_flags */
struct sdp_name {
	enum sdp_kind kind;
	uint8_t flags;
	struct abi_sdp_names names;
};

/** sdp_name_get() - Return: true: @fd is an SDP socket, and *@name is set to its state */
bool sdp_name_get(int fd, struct sdp_name *name);
/** sdp_name_set() - store the state of an SDP socket as its name in the kernel. Return: 0; -errno */
int sdp_name_set(int fd, const struct sdp_name *name);
/** sdp_outcome() - Return: the result of the connection attempt of a socket of kind SDP_PENDING: 0: it is
 *  connected; -EINPROGRESS; -errno: it has failed */
int sdp_outcome(int fd);
/** sdp_is_connected() - is the socket connected now? It is not any more when both ends have closed the
 *  connection, or it was reset */
bool sdp_is_connected(int fd, const struct sdp_name *name);
/** sdp_is_tcp() - is @fd a stream socket of AF_INET or AF_INET6? Then *@family is set to its family */
bool sdp_is_tcp(int fd, int *family);
/** sdp_force() - mark a TCP socket that the program has created with AF_INET_SDP, for which the rules do
 *  not count. sdp_is_forced() tells whether it is marked */
int sdp_force(int fd);
bool sdp_is_forced(int fd);
/** sdp_set_listening(), sdp_is_listening() - whether a socket of kind SDP_BOUND listens */
void sdp_set_listening(int fd);
bool sdp_is_listening(int fd);
/** sdp_note_bound() - @fd has become a socket of kind SDP_BOUND in this process */
void sdp_note_bound(int fd);
/** sdp_is_unconnected() - is @fd one that sdp_note_bound() was told of, and still of that kind?
 *  It asks the kernel about no other descriptor */
bool sdp_is_unconnected(int fd);
/** sdp_address_of() - copy an address of the program. Return: false: it is too short, or is neither of
 *  AF_INET nor of AF_INET6 */
bool sdp_address_of(union abi_sdp_address *to, const struct sockaddr *addr, socklen_t len);
/** sdp_address_put() - return an address to the program, as getsockname(2) does. @addr: NULL: do nothing
 *  Return: 0; -1 and errno: EFAULT, EINVAL */
int sdp_address_put(const union abi_sdp_address *from, struct sockaddr *addr, socklen_t *len);
/** sdp_address_is_loopback() - is the address in 127.0.0.0/8, or ::1? sdp_address_is_any() - is it 0.0.0.0
 *  or ::, or none? */
bool sdp_address_is_loopback(const union abi_sdp_address *address);
bool sdp_address_is_any(const union abi_sdp_address *address);
/** sdp_address_copy_ip() - set the IP address of @to to that of @from. The port of @to does not change */
void sdp_address_copy_ip(union abi_sdp_address *to, const union abi_sdp_address *from);
/** sdp_address_map() - convert an IPv4 address to @family, which is AF_INET or AF_INET6 */
void sdp_address_map(union abi_sdp_address *address, int family);

/* --- user.c --- */

/** sdp_copy_in(), sdp_copy_out() - copy @bytes from or to memory of the program, by a pointer that it has
 *  passed. Return: 0; -EFAULT */
int sdp_copy_in(void *to, const void *from, size_t bytes);
int sdp_copy_out(void *to, const void *from, size_t bytes);
/** sdp_put() - copy a result of @bytes to the program, which has room for *@len. *@len is set to the bytes
 *  copied, or, with @whole, to @bytes even if not all fitted. Return: 0; -1 and errno: EFAULT, EINVAL */
int sdp_put(void *to, socklen_t *len, const void *from, socklen_t bytes, bool whole);

/* --- place.c --- */

/**
 * sdp_take_place() - replace the socket of descriptor @fd by the socket @other, and close @other
 * Duplicates of @fd in this process are replaced, too, and epoll instances watch the new socket with
 * the same events and data. Duplicates in other processes are not changed, nor is @spare, by which the caller keeps
 * the old socket; -1: none.
 * Return: 0; -errno
 */
int sdp_take_place(int fd, int other, int spare);
/** sdp_is_same() - are both descriptors of one socket? */
bool sdp_is_same(int fd, int other);
/** sdp_is_epoll() - is @fd an epoll instance? */
bool sdp_is_epoll(int fd);

/* --- session.c --- */

/** sdp_session_open() - connect to softibd's socket "sdp". Return: the descriptor; -errno */
int sdp_session_open(void);
/**
 * sdp_session_ask() - send a request on @session, and wait for the answer
 * @fds: @num_fds descriptors to send with the request. @returned: set to the descriptor that comes with
 * the answer; -1: none
 * Return: 0; -errno
 */
int sdp_session_ask(int session, const struct abi_sdp_request *request, const int *fds,
		    unsigned int num_fds, struct abi_sdp_names *names, int *returned);
/** sdp_session_accept() - receive the next connection of a listening session. @memory: set to the
 *  descriptor of its shared memory; -1: none. Return: the descriptor of the connection (close-on-exec);
 *  -errno; -ENETDOWN: softibd has ended */
int sdp_session_accept(int session, struct abi_sdp_names *names, int *memory);

/** sdp_session_talks() - is this thread in one of these functions? Then it, and not the program, sends and
 *  receives on the program's descriptor, which is the session of a socket that is bound */
bool sdp_session_talks(void);

/* --- memory.c --- */

/** struct sdp_memory - the shared memory of a connection, whose socket is @inode of @device. @side: index
 *  in abi_sdp_memory.half of the direction in which this end sends */
struct sdp_memory {
	struct abi_sdp_memory *memory;
	dev_t device;
	ino_t inode;
	int side;
	_Atomic bool reads_much; /* this process has read much: see moves_much() */
	_Atomic unsigned int calls[2]; /* calls for little data: reads, writes */
	struct sdp_memory *next_kept;  /* memory.c */
};

/** sdp_memory_keep() - map the shared memory of connection @fd, and close @memory_fd (-1: there is none) */
void sdp_memory_keep(int fd, int memory_fd, int side);
/** sdp_memory_forget() - remove @fd from the table, before it is closed */
void sdp_memory_forget(int fd);
/** sdp_memory_enter() - Return: the table's entry for @fd, which is not freed before sdp_memory_leave();
 *  NULL: there is none. The entry is a hint: see sdp_memory_is_of() */
struct sdp_memory *sdp_memory_enter(int fd);
void sdp_memory_leave(int fd);
/** sdp_memory_is_of() - is @fd still the connection that @m belongs to? */
bool sdp_memory_is_of(const struct sdp_memory *m, int fd);
/** sdp_memory_take_error() - Return: the error by which the connection has ended, if it has not been
 *  reported to the program; 0: no error is known */
int sdp_memory_take_error(int fd);
/** sdp_memory_has_error() - has the connection ended by an error that has not been reported? */
bool sdp_memory_has_error(int fd);
/** sdp_memory_note_linger() - tell softibd whether close() of @fd resets the connection (SO_LINGER with a
 *  time of 0) */
void sdp_memory_note_linger(int fd);

/** enum sdp_keep - TCP_KEEPIDLE, TCP_KEEPINTVL, TCP_KEEPCNT of a connection */
enum sdp_keep { SDP_KEEP_IDLE, SDP_KEEP_INTERVAL, SDP_KEEP_COUNT, SDP_KEEP_NUM };
/** sdp_memory_set_keep(), sdp_memory_keep_of() - store one in the shared memory of connection @fd, and read it. 0:
 *  none is stored */
void sdp_memory_set_keep(int fd, enum sdp_keep which, uint32_t value);
uint32_t sdp_memory_keep_of(int fd, enum sdp_keep which);

/* --- stream.c --- */

/** sdp_write(), sdp_read() - perform sendmsg(2) and recvmsg(2) with the result *@n. Return: false: nothing
 *  was done, and the caller has to call the kernel */
bool sdp_write(int fd, const struct msghdr *msg, int flags, ssize_t *n);
bool sdp_read(int fd, const struct msghdr *msg, int flags, ssize_t *n);

/* --- wait.c --- */

#define SDP_WATCHES_MAX 64

/** struct sdp_watch - a connection whose ring is polled during one call of select(), poll() or
 *  epoll_wait(). @index: of its pollfd. @has_seen: bytes before @seen have been reported */
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

/** sdp_watch_add() - look up the memory of @one, and add it. Return: false: the connection has no entry in
 *  the table, or the program reads little from it */
bool sdp_watch_add(struct sdp_watches *w, const struct sdp_watch *one);
/** sdp_watch_want() - tell softibd that the program reads much, so that a lease would help */
void sdp_watch_want(const struct sdp_watch *w);
bool sdp_watch_has_news(const struct sdp_watch *w);
/** sdp_watches_are_leased() - has any of the connections a lease, so that bytes may arrive in a ring? */
bool sdp_watches_are_leased(const struct sdp_watches *w);
/** sdp_watches_begin() - begin a wait. @waits: the thread may sleep in the kernel
 *  Return: true: a ring has unreported bytes. If false, and @waits, writers use the sockets, which wake
 *  the thread, until sdp_watches_end() */
bool sdp_watches_begin(const struct sdp_watches *w, bool waits);
/** sdp_watches_end() - end a wait. @waited: sdp_watches_begin() was called with @waits and returned false */
void sdp_watches_end(const struct sdp_watches *w, bool waited);

/* --- epoll.c --- */

/** sdp_epoll_forget() - forget what is known of the instance @fd, which is closed or replaced */
void sdp_epoll_forget(int fd);
/** sdp_epoll_is_polled() - the program waits for @fd by select(), poll() or another instance. If @fd is an
 *  epoll instance, leave it to the kernel */
void sdp_epoll_is_polled(int fd);

/* --- establish.c: these have the arguments and results of libc's functions --- */

int sdp_bind(int fd, const struct sockaddr *addr, socklen_t len);
int sdp_listen(int fd, int backlog);
int sdp_connect(int fd, const struct sockaddr *addr, socklen_t len);
int sdp_accept_on(int fd, const struct sdp_name *name, struct sockaddr *addr,
		  socklen_t *len, int flags);

/* --- options.c --- */

int sdp_getsockopt(int fd, const struct sdp_name *name, int level, int option,
		   void *value, socklen_t *len);
int sdp_setsockopt(int fd, int level, int option, const void *value, socklen_t len);
/** sdp_copy_options() - copy the options that the program has set on the TCP socket @from to @to, the SDP
 *  socket that replaces it */
void sdp_copy_options(int from, int to);
/** sdp_inherit_options() - the same of connection @to, which the listener @from has accepted */
void sdp_inherit_options(int from, int to);
/** struct sdp_connecting_options - those of a TCP socket that its Unix socket does not keep */
struct sdp_connecting_options {
	uint32_t keep[SDP_KEEP_NUM];
};
/** sdp_save_options(), sdp_restore_options() - before a connection takes the place of a TCP socket, and behind */
void sdp_save_options(int fd, struct sdp_connecting_options *saved);
void sdp_restore_options(int fd, const struct sdp_connecting_options *saved);

#endif
