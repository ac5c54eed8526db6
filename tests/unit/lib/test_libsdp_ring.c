/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * lib/libsdp/stream.c at both ends of a connection, this test being softibd: the order of bytes in
 * the socket and in the ring, and control words that a peer fills with nonsense.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "sdp_private.h"

#define MUCH 20000 /* a size for which the ring may be used */

struct sdp_libc sdp_libc;

bool sdp_begin(void)
{
	return true;
}

/** struct link - the sender's and the receiver's descriptor, softibd's ends, and the memory */
struct link {
	int sender, receiver, from_sender, to_receiver;
	struct abi_sdp_memory *memory;
	struct abi_sdp_half *half;
};

static uint8_t out[MUCH * 40], in[sizeof(out) + 16];

static void open_end(int fds[2], int memory_fd, int side)
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	sdp_memory_keep(fds[0], dup(memory_fd), side);
}

static void open_link(struct link *l)
{
	int fd = memfd_create("test", 0), sender[2], receiver[2];

	assert_int_equal(ftruncate(fd, sizeof(*l->memory)), 0);
	l->memory = mmap(NULL, sizeof(*l->memory), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(l->memory != MAP_FAILED);
	open_end(sender, fd, 0);
	open_end(receiver, fd, 1);
	close(fd);
	*l = (struct link){sender[0], receiver[0], sender[1], receiver[1], l->memory,
			   &l->memory->half[0]};
}

static void close_link(struct link *l)
{
	sdp_memory_forget(l->sender);
	sdp_memory_forget(l->receiver);
	munmap(l->memory, sizeof(*l->memory));
	close(l->sender);
	close(l->receiver);
	close(l->from_sender);
	close(l->to_receiver);
}

static ssize_t write_to(int fd, const void *bytes, size_t n)
{
	struct iovec part = {(void *)bytes, n};
	const struct msghdr msg = {.msg_iov = &part, .msg_iovlen = 1};
	ssize_t ret;

	return sdp_write(fd, &msg, MSG_NOSIGNAL, &ret) ? ret : send(fd, bytes, n, MSG_NOSIGNAL);
}

static ssize_t read_from(int fd, void *bytes, size_t n, int flags)
{
	struct iovec part = {bytes, n};
	const struct msghdr msg = {.msg_iov = &part, .msg_iovlen = 1};
	ssize_t ret;

	return sdp_read(fd, &msg, flags, &ret) ? ret : recv(fd, bytes, n, flags);
}

static void grant(struct link *l)
{
	atomic_store(&l->half->lease, atomic_load(&l->half->lease) + 1);
}

/* Without a lease, the ring stays empty; with one, nothing but bytes in the socket keeps the
 * writer from it, and the reader takes those of its socket first. */
static void uses_the_ring_in_order(void **state)
{
	struct link l;

	open_link(&l);
	assert_int_equal(write_to(l.sender, out, MUCH), MUCH);
	assert_int_equal(abi_sdp_used(l.half), 0);
	grant(&l);
	assert_int_equal(write_to(l.sender, out + MUCH, MUCH), MUCH);
	assert_int_equal(abi_sdp_used(l.half), 0);
	assert_int_equal(recv(l.from_sender, in, sizeof(in), 0), 2 * MUCH);
	assert_memory_equal(in, out, 2 * MUCH);
	assert_int_equal(write_to(l.sender, out + 100, MUCH), MUCH);
	assert_int_equal(write_to(l.sender, out + 100 + MUCH, 1), 1); /* little, too */
	assert_int_equal(abi_sdp_used(l.half), MUCH + 1);

	assert_int_equal(send(l.to_receiver, out, 100, 0), 100);
	assert_int_equal(read_from(l.receiver, in, MUCH, MSG_PEEK), 100);
	assert_int_equal(read_from(l.receiver, in, 7, 0), 7);
	assert_int_equal(read_from(l.receiver, in + 7, 2 * MUCH, 0), MUCH + 94);
	assert_memory_equal(in, out, MUCH + 101);
	assert_int_equal(read_from(l.receiver, in, MUCH, 0), -1);
	assert_int_equal(errno, EAGAIN);
	close_link(&l);
}

static ssize_t read_in_parts(int fd, size_t first, size_t second)
{
	struct iovec part[2] = {{in, first}, {in + first, second}};
	const struct msghdr msg = {.msg_iov = part, .msg_iovlen = 2};
	ssize_t ret;

	assert_true(sdp_read(fd, &msg, 0, &ret));
	return ret;
}

/* A read that does not fill its buffers has left nothing: neither in the socket, for the second
 * buffer, nor in the ring behind the socket. */
static void reads_all_there_is(void **state)
{
	struct link l;

	open_link(&l);
	assert_int_equal(send(l.to_receiver, out, MUCH, 0), MUCH);
	assert_int_equal(read_in_parts(l.receiver, 100, sizeof(in) - 100), MUCH);
	assert_memory_equal(in, out, MUCH);
	grant(&l);
	assert_int_equal(send(l.to_receiver, out, 100, 0), 100);
	assert_int_equal(write_to(l.sender, out + 100, MUCH), MUCH);
	assert_int_equal(read_in_parts(l.receiver, 50, sizeof(in) - 50), MUCH + 100);
	assert_memory_equal(in, out, MUCH + 100);
	close_link(&l);
}

/* What the ring has when the lease ends is softibd's: neither end touches it. */
static void leaves_the_ring_when_the_lease_ends(void **state)
{
	struct link l;

	open_link(&l);
	grant(&l);
	assert_int_equal(write_to(l.sender, out, MUCH), MUCH);
	grant(&l); /* even: it has ended */
	assert_int_equal(read_from(l.receiver, in, MUCH, 0), -1);
	assert_int_equal(write_to(l.sender, out, MUCH), MUCH);
	assert_int_equal(abi_sdp_used(l.half), MUCH);
	assert_int_equal(recv(l.from_sender, in, sizeof(in), 0), MUCH);
	close_link(&l);
}

/* byte number @at of a long stream */
static uint8_t byte_at(size_t at)
{
	return (uint8_t)(at * 7 + (at >> 12));
}

static size_t write_stream(const struct link *l, size_t at, size_t n)
{
	static uint8_t bytes[MUCH];

	for (size_t i = 0; i < n; i++)
		bytes[i] = byte_at(at + i);
	assert_int_equal(write_to(l->sender, bytes, n), n);
	return n;
}

static size_t read_stream(const struct link *l, size_t at, size_t n)
{
	const ssize_t got = read_from(l->receiver, in, n, 0);

	for (ssize_t i = 0; i < got; i++)
		assert_int_equal(in[i], byte_at(at + (size_t)i));
	return got > 0 ? (size_t)got : 0;
}

/* The ring is filled and emptied many times, in pieces of all sizes. */
static void wraps(void **state)
{
	size_t sent = 0, got = 0;
	struct link l;

	open_link(&l);
	grant(&l);
	while (sent < 10 * ABI_SDP_RING_BYTES) {
		while (sent - got < ABI_SDP_RING_BYTES - MUCH)
			sent += write_stream(&l, sent, 1 + (size_t)rand() % MUCH);
		while (got < sent)
			got += read_stream(&l, got, 1 + (size_t)rand() % (4 * MUCH));
	}
	assert_int_equal(abi_sdp_used(l.half), 0);
	close_link(&l);
}

/* poll() and select() find what is in the ring, which the kernel does not know. */
static void polls_the_ring(void **state)
{
	struct timeval zero = {0};
	struct pollfd p[2];
	struct link l;
	fd_set set;

	open_link(&l);
	p[0] = (struct pollfd){.fd = l.to_receiver, .events = POLLOUT};
	p[1] = (struct pollfd){.fd = l.receiver, .events = POLLIN};
	assert_int_equal(read_from(l.receiver, in, MUCH, 0), -1);
	grant(&l);
	assert_int_equal(poll(p, 2, 0), 1);
	assert_int_equal(p[1].revents, 0);
	assert_int_equal(write_to(l.sender, out, MUCH), MUCH);
	assert_int_equal(poll(p, 2, -1), 2);
	assert_int_equal(p[1].revents, POLLIN);
	FD_ZERO(&set);
	FD_SET(l.receiver, &set);
	assert_int_equal(select(l.receiver + 1, &set, NULL, NULL, NULL), 1);
	assert_true(FD_ISSET(l.receiver, &set));
	assert_int_equal(read_from(l.receiver, in, 2 * MUCH, 0), MUCH);
	assert_int_equal(select(l.receiver + 1, &set, NULL, NULL, &zero), 0);
	assert_int_equal(atomic_load(&l.half->readers_in_kernel), 0);
	close_link(&l);
}

static struct link *ends_under_way; /* its lease, when the library asks the kernel */

/* softibd takes what the ring has, and passes it on by the socket */
static void end_lease(void)
{
	struct link *l = ends_under_way;

	ends_under_way = NULL;
	if (!l)
		return;
	grant(l);
	atomic_store(&l->half->head, atomic_load(&l->half->tail));
	assert_int_equal(send(l->to_receiver, out, MUCH, 0), MUCH);
}

static int ending_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask)
{
	static int (*kernels)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);
	int ret;

	if (!kernels)
		*(void **)&kernels = dlsym(RTLD_NEXT, "ppoll");
	ret = kernels(fds, n, timeout, mask);
	end_lease();
	return ret;
}

static int ending_select(int n, fd_set *reads, fd_set *writes, fd_set *excepts, struct timeval *timeout)
{
	static int (*kernels)(int, fd_set *, fd_set *, fd_set *, struct timeval *);
	int ret;

	if (!kernels)
		*(void **)&kernels = dlsym(RTLD_NEXT, "select");
	ret = kernels(n, reads, writes, excepts, timeout);
	end_lease();
	return ret;
}

/* The ring has bytes, so the kernel is not waited for; then the lease ends, and it has none. A program that
 * waits without limit is not told that its time is over (netcat would leave). */
static void waits_on_when_the_lease_ends(void **state)
{
	struct pollfd p = {.events = POLLIN};
	struct link l;
	fd_set set;

	open_link(&l);
	p.fd = l.receiver;
	FD_ZERO(&set);
	FD_SET(l.receiver, &set);
	assert_int_equal(read_from(l.receiver, in, MUCH, 0), -1);
	for (int i = 0; i < 2; i++) {
		grant(&l);
		assert_int_equal(write_to(l.sender, out, MUCH), MUCH);
		assert_int_equal(abi_sdp_used(l.half), MUCH);
		ends_under_way = &l;
		if (i)
			assert_int_equal(select(l.receiver + 1, &set, NULL, NULL, NULL), 1);
		else
			assert_int_equal(poll(&p, 1, -1), 1);
		assert_null(ends_under_way);
		assert_int_equal(read_from(l.receiver, in, MUCH, 0), MUCH);
	}
	assert_true(FD_ISSET(l.receiver, &set));
	close_link(&l);
}

/* --- epoll --- */

/** struct watched - a link whose receiver an epoll instance watches, and which has a lease */
struct watched {
	struct link l;
	int epoll;
	struct epoll_event event[4];
};

static void watch(struct watched *w, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.u64 = 77};

	open_link(&w->l);
	w->epoll = epoll_create1(0);
	assert_int_equal(epoll_ctl(w->epoll, EPOLL_CTL_ADD, w->l.receiver, &event), 0);
	assert_int_equal(read_from(w->l.receiver, in, MUCH, 0), -1); /* one that reads much */
	assert_int_equal(epoll_wait(w->epoll, w->event, 4, 0), 0);
	assert_int_equal(atomic_load(&w->l.half->reads_much), !(events & (EPOLLONESHOT | EPOLLEXCLUSIVE)));
	grant(&w->l);
}

static void unwatch(struct watched *w)
{
	assert_int_equal(atomic_load(&w->l.half->readers_in_kernel), 0);
	sdp_epoll_forget(w->epoll);
	close(w->epoll);
	close_link(&w->l);
}

static void write_much(struct watched *w)
{
	assert_int_equal(write_to(w->l.sender, out, MUCH), MUCH);
	assert_true(abi_sdp_used(w->l.half) >= MUCH);
}

/* Level-triggered: as long as the ring has bytes. EPOLLOUT of the kernel is part of the same event. */
static void epoll_reports_a_level(void **state)
{
	struct timespec second = {.tv_sec = 1};
	struct watched w;
	int num;

	watch(&w, EPOLLIN);
	write_much(&w);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(epoll_wait(w.epoll, w.event, 4, -1), 1);
		assert_int_equal(w.event[0].events, EPOLLIN);
		assert_int_equal(w.event[0].data.u64, 77);
	}
	num = epoll_pwait2(w.epoll, w.event, 4, &second, NULL);
	assert_true(num == 1 || (num < 0 && errno == ENOSYS)); /* Linux has it since 5.11, qemu-user not */
	assert_int_equal(read_from(w.l.receiver, in, 2 * MUCH, 0), MUCH);
	assert_int_equal(epoll_wait(w.epoll, w.event, 4, 0), 0);
	w.event[0] = (struct epoll_event){.events = EPOLLIN | EPOLLOUT, .data.u64 = 78};
	assert_int_equal(epoll_ctl(w.epoll, EPOLL_CTL_MOD, w.l.receiver, w.event), 0);
	write_much(&w);
	assert_int_equal(epoll_wait(w.epoll, w.event, 4, -1), 1);
	assert_int_equal(w.event[0].events, EPOLLIN | EPOLLOUT);
	assert_int_equal(w.event[0].data.u64, 78);
	assert_int_equal(epoll_ctl(w.epoll, EPOLL_CTL_DEL, w.l.receiver, NULL), 0);
	assert_int_equal(epoll_wait(w.epoll, w.event, 4, 0), 0);
	unwatch(&w);
}

/* Edge-triggered: once for what is new, and again when it is registered anew. */
static void epoll_reports_an_edge(void **state)
{
	struct epoll_event same = {.events = EPOLLIN | EPOLLET, .data.u64 = 79};
	struct watched w;

	watch(&w, EPOLLIN | EPOLLET);
	for (int i = 0; i < 2; i++) {
		write_much(&w);
		assert_int_equal(epoll_wait(w.epoll, w.event, 4, -1), 1);
		assert_int_equal(epoll_wait(w.epoll, w.event, 4, 0), 0);
	}
	assert_int_equal(read_from(w.l.receiver, in, 100, 0), 100);
	assert_int_equal(epoll_wait(w.epoll, w.event, 4, 0), 0);
	assert_int_equal(epoll_ctl(w.epoll, EPOLL_CTL_MOD, w.l.receiver, &same), 0);
	assert_int_equal(epoll_wait(w.epoll, w.event, 4, 0), 1);
	assert_int_equal(w.event[0].data.u64, 79);
	assert_int_equal(epoll_wait(w.epoll, w.event, 4, 0), 0);
	unwatch(&w);
}

/* A program that asks for one event at a time gets those of rings and of the kernel in turn. */
static void epoll_is_fair(void **state)
{
	struct epoll_event other = {.events = EPOLLOUT, .data.u64 = 80};
	int seen[2] = {0};
	struct watched w;

	watch(&w, EPOLLIN);
	assert_int_equal(epoll_ctl(w.epoll, EPOLL_CTL_ADD, w.l.sender, &other), 0);
	write_much(&w);
	for (int i = 0; i < 8; i++) {
		assert_int_equal(epoll_wait(w.epoll, w.event, 1, -1), 1);
		seen[w.event[0].data.u64 == 80]++;
	}
	assert_int_equal(seen[0], 4);
	assert_int_equal(seen[1], 4);
	unwatch(&w);
}

/* What the library cannot do as the kernel does is left to the socket: softibd grants no lease to
 * a reader that has not asked for one, and ends one that nobody reads. */
static void epoll_leaves_some_to_the_kernel(void **state)
{
	static const uint32_t kinds[] = {EPOLLIN | EPOLLONESHOT, EPOLLIN | EPOLLEXCLUSIVE};
	struct epoll_event event = {.events = EPOLLIN};
	struct watched w;
	int outer;

	for (size_t i = 0; i < 2; i++) {
		watch(&w, kinds[i]);
		write_much(&w);
		assert_int_equal(epoll_wait(w.epoll, w.event, 4, 0), 0);
		unwatch(&w);
	}
	watch(&w, EPOLLIN);
	outer = epoll_create1(0);
	assert_int_equal(epoll_ctl(outer, EPOLL_CTL_ADD, w.epoll, &event), 0);
	write_much(&w);
	assert_int_equal(epoll_wait(outer, w.event, 4, 0), 0);
	assert_int_equal(epoll_wait(w.epoll, w.event, 4, 0), 0);
	close(outer);
	unwatch(&w);
}

/* A registration that was removed by a copy of the instance's descriptor is not reported, nor is
 * another instance that has its number. */
static void epoll_asks_the_kernel(void **state)
{
	struct watched w;
	int copy;

	watch(&w, EPOLLIN);
	copy = dup(w.epoll);
	assert_int_equal(epoll_ctl(copy, EPOLL_CTL_DEL, w.l.receiver, NULL), 0);
	write_much(&w);
	assert_int_equal(epoll_wait(w.epoll, w.event, 4, 0), 0);
	close(copy);
	unwatch(&w);

	watch(&w, EPOLLIN);
	write_much(&w);
	copy = sdp_libc.epoll_create1(0);
	assert_int_equal(dup2(copy, w.epoll), w.epoll);
	assert_int_equal(epoll_wait(w.epoll, w.event, 4, 0), 0);
	close(copy);
	unwatch(&w);
}

static void *wait_by_epoll(void *watched)
{
	struct watched *w = watched;

	return epoll_wait(w->epoll, w->event, 4, -1) == 1 ? watched : NULL;
}

/* As wakes_a_reader_in_the_kernel. */
static void epoll_is_woken_by_the_socket(void **state)
{
	pthread_t thread;
	struct watched w;
	void *woken;

	watch(&w, EPOLLIN | EPOLLET);
	assert_int_equal(pthread_create(&thread, NULL, wait_by_epoll, &w), 0);
	while (!atomic_load(&w.l.half->readers_in_kernel))
		sched_yield();
	assert_int_equal(write_to(w.l.sender, out, MUCH), MUCH);
	assert_int_equal(abi_sdp_used(w.l.half), 0);
	assert_int_equal(send(w.l.to_receiver, out, MUCH, 0), MUCH); /* softibd passes it on */
	assert_int_equal(pthread_join(thread, &woken), 0);
	assert_ptr_equal(woken, &w);
	unwatch(&w);
}

/* A writer that may not wait fills the socket when the ring is full: else the kernel would never
 * tell it that there is room. */
static void fills_the_socket_behind_the_ring(void **state)
{
	struct pollfd p;
	struct link l;
	ssize_t n;

	open_link(&l);
	grant(&l);
	do
		n = write_to(l.sender, out, sizeof(out));
	while (n == sizeof(out));
	assert_int_equal(abi_sdp_used(l.half), ABI_SDP_RING_BYTES);
	p = (struct pollfd){.fd = l.sender, .events = POLLOUT};
	assert_int_equal(poll(&p, 1, 0), 0);
	close_link(&l);
}

/* The mark of out-of-band data ends a read, though more is there: the program looks for it. */
static void stops_at_the_mark(void **state)
{
	const int on = 1;
	struct link l;

	open_link(&l);
	grant(&l);
	assert_int_equal(setsockopt(l.receiver, SOL_SOCKET, SO_OOBINLINE, &on, sizeof(on)), 0);
	assert_int_equal(send(l.to_receiver, out, 100, 0), 100);
	if (send(l.to_receiver, "!", 1, MSG_OOB) != 1) {
		close_link(&l);
		skip(); /* Linux before 5.15 */
	}
	assert_int_equal(send(l.to_receiver, out, 50, 0), 50);
	assert_int_equal(read_from(l.receiver, in, MUCH, 0), 100);
	assert_int_equal(read_from(l.receiver, in, MUCH, 0), 51);
	assert_int_equal(in[0], '!');
	close_link(&l);
}

static void *receive(void *receiver)
{
	return read_from(*(int *)receiver, in, MUCH, 0) == MUCH ? receiver : NULL;
}

static _Atomic bool waits_in_kernel;

/* The library has looked for a lease before: what begins now does not call the thread back. */
static ssize_t note_recvmsg(int fd, struct msghdr *msg, int flags)
{
	if (!(flags & MSG_DONTWAIT))
		atomic_store(&waits_in_kernel, true);
	return recvmsg(fd, msg, flags);
}

/* A reader that waits for long, without a lease, does so in the kernel: a lease that begins then
 * does not keep the bytes from it. */
static void rests_in_the_kernel(void **state)
{
	pthread_t thread;
	struct link l;
	void *woken;

	open_link(&l);
	assert_int_equal(fcntl(l.receiver, F_SETFL, 0), 0);
	assert_int_equal(write_to(l.sender, out, MUCH), MUCH); /* one that writes much */
	assert_int_equal(recv(l.from_sender, in, sizeof(in), 0), MUCH);
	atomic_store(&waits_in_kernel, false);
	assert_int_equal(pthread_create(&thread, NULL, receive, &l.receiver), 0);
	while (!atomic_load(&waits_in_kernel))
		sched_yield();
	assert_int_equal(atomic_load(&l.half->readers_in_kernel), 1);
	grant(&l);
	assert_int_equal(write_to(l.sender, out, MUCH), MUCH);
	assert_int_equal(abi_sdp_used(l.half), 0);
	assert_int_equal(send(l.to_receiver, out, MUCH, 0), MUCH); /* softibd passes it on */
	assert_int_equal(pthread_join(thread, &woken), 0);
	assert_ptr_equal(woken, &l.receiver);
	close_link(&l);
}

static void *wait_for_it(void *receiver)
{
	struct pollfd p = {.fd = *(int *)receiver, .events = POLLIN};

	return poll(&p, 1, -1) == 1 ? receiver : NULL;
}

/* A reader that waits in the kernel is woken by its socket, so nothing goes into the ring. */
static void wakes_a_reader_in_the_kernel(void **state)
{
	pthread_t thread;
	struct link l;
	void *woken;
	ssize_t n;

	open_link(&l);
	assert_int_equal(read_from(l.receiver, in, MUCH, 0), -1);
	grant(&l);
	assert_int_equal(pthread_create(&thread, NULL, wait_for_it, &l.receiver), 0);
	while (!atomic_load(&l.half->readers_in_kernel))
		sched_yield();
	assert_int_equal(write_to(l.sender, out, MUCH), MUCH);
	assert_int_equal(abi_sdp_used(l.half), 0);
	n = recv(l.from_sender, in, sizeof(in), 0); /* softibd passes it on */
	assert_int_equal(send(l.to_receiver, in, (size_t)n, 0), MUCH);
	assert_int_equal(pthread_join(thread, &woken), 0);
	assert_ptr_equal(woken, &l.receiver);
	assert_int_equal(atomic_load(&l.half->readers_in_kernel), 0);
	close_link(&l);
}

/* A descriptor that has become another's is the kernel's matter. */
static void knows_that_a_descriptor_was_replaced(void **state)
{
	struct link l;
	int other[2];

	open_link(&l);
	grant(&l);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, other), 0);
	assert_int_equal(dup2(other[0], l.sender), l.sender);
	assert_int_equal(write_to(l.sender, out, MUCH), MUCH);
	assert_int_equal(abi_sdp_used(l.half), 0);
	assert_int_equal(recv(other[1], in, sizeof(in), 0), MUCH);
	close(other[0]);
	close(other[1]);
	close_link(&l);
}

/** struct duplex - a link both of whose directions have a lease; the sender's end belongs to two threads, the
 *  receiver's to the test. @sent: bytes to the receiver; @answered: bytes back; what was got of them */
struct duplex {
	struct link l;
	_Atomic size_t sent, got, answered, answer_got;
	_Atomic bool wrong, closed;
};

#define DUPLEX_BYTES (4 * ABI_SDP_RING_BYTES)
#define IN_FLIGHT    (ABI_SDP_RING_BYTES - 2 * MUCH)

/* Return: bytes; 0: none now; -1: the descriptor is closed */
static ssize_t write_piece(int fd, size_t at, uint8_t bytes[MUCH])
{
	const size_t n = 1 + at % (MUCH - 1);
	ssize_t ret;

	for (size_t i = 0; i < n; i++)
		bytes[i] = byte_at(at + i);
	ret = write_to(fd, bytes, n);
	return ret < 0 && errno == EAGAIN ? 0 : ret;
}

static ssize_t read_piece(int fd, size_t at, uint8_t bytes[MUCH], _Atomic bool *wrong)
{
	ssize_t ret = read_from(fd, bytes, MUCH, 0);

	for (ssize_t i = 0; i < ret; i++)
		if (bytes[i] != byte_at(at + (size_t)i))
			atomic_store(wrong, true);
	if (ret < 0 && errno == EAGAIN)
		return 0;
	return ret ? ret : -1;
}

static void *write_all(void *duplex)
{
	struct duplex *d = duplex;
	uint8_t bytes[MUCH];
	ssize_t n = 0;

	while (n >= 0) {
		n = d->closed || d->sent - d->got < IN_FLIGHT ? write_piece(d->l.sender, d->sent, bytes) : 0;
		d->sent += n > 0 ? (size_t)n : 0;
		sched_yield();
	}
	return NULL;
}

static void *read_all(void *duplex)
{
	struct duplex *d = duplex;
	uint8_t bytes[MUCH];
	ssize_t n = 0;

	while (n >= 0) {
		n = read_piece(d->l.sender, d->answer_got, bytes, &d->wrong);
		d->answer_got += n > 0 ? (size_t)n : 0;
		sched_yield();
	}
	return NULL;
}

/* One thread writes to a connection, another one reads from it, and a third one closes it: both streams are in
 * order until then, and both threads hear of the end (the sanitizers look at the rest). */
static void threads_share_a_connection(void **state)
{
	static struct duplex d;
	static uint8_t bytes[MUCH];
	pthread_t writer, reader;

	d = (struct duplex){.sent = 0};
	open_link(&d.l);
	grant(&d.l);
	atomic_store(&d.l.memory->half[1].lease, 1);
	assert_int_equal(pthread_create(&writer, NULL, write_all, &d), 0);
	assert_int_equal(pthread_create(&reader, NULL, read_all, &d), 0);
	while (d.got < DUPLEX_BYTES || d.answer_got < DUPLEX_BYTES) {
		ssize_t n = read_piece(d.l.receiver, d.got, bytes, &d.wrong);

		assert_true(n >= 0);
		d.got += (size_t)n;
		n = d.answered - d.answer_got < IN_FLIGHT ? write_piece(d.l.receiver, d.answered, bytes) : 0;
		assert_true(n >= 0);
		d.answered += (size_t)n;
	}
	sdp_memory_forget(d.l.sender);
	shutdown(d.l.sender, SHUT_RDWR); /* as close(), but that the number is nobody else's meanwhile */
	d.closed = true;
	assert_int_equal(pthread_join(writer, NULL), 0);
	assert_int_equal(pthread_join(reader, NULL), 0);
	assert_false(d.wrong);
	close_link(&d.l);
}

/* Any values in the control words: calls return, never with more than was asked for, and touch
 * nothing but their buffers (the sanitizers look, too). */
static void survives_rubbish(void **state)
{
	struct link l;

	srand(1);
	open_link(&l);
	for (int i = 0; i < 3000; i++) {
		uint32_t *word = (uint32_t *)l.memory + rand() % (sizeof(struct abi_sdp_half) / 2);
		const size_t n = 1 + (size_t)rand() % (2 * MUCH);
		ssize_t ret;

		*word = rand() % 4 ? (uint32_t)rand() % 4 : (uint32_t)rand() << 1;
		memset(in + n, 0xa5, 16);
		ret = i % 2 ? write_to(l.sender, out, n) : read_from(l.receiver, in, n, 0);
		assert_true(ret == -1 || (size_t)ret <= n);
		for (int k = 0; k < 16; k++)
			assert_int_equal(in[n + (size_t)k], 0xa5);
		while (recv(l.from_sender, in, sizeof(in), 0) > 0)
			;
		if (atomic_load(&l.half->hold))
			atomic_store(&l.half->hold, 0); /* else the writer waits 20 ms */
	}
	close_link(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(uses_the_ring_in_order),
		cmocka_unit_test(reads_all_there_is),
		cmocka_unit_test(leaves_the_ring_when_the_lease_ends),
		cmocka_unit_test(wraps),
		cmocka_unit_test(stops_at_the_mark),
		cmocka_unit_test(rests_in_the_kernel),
		cmocka_unit_test(polls_the_ring),
		cmocka_unit_test(waits_on_when_the_lease_ends),
		cmocka_unit_test(epoll_reports_a_level),
		cmocka_unit_test(epoll_reports_an_edge),
		cmocka_unit_test(epoll_is_fair),
		cmocka_unit_test(epoll_leaves_some_to_the_kernel),
		cmocka_unit_test(epoll_asks_the_kernel),
		cmocka_unit_test(epoll_is_woken_by_the_socket),
		cmocka_unit_test(fills_the_socket_behind_the_ring),
		cmocka_unit_test(wakes_a_reader_in_the_kernel),
		cmocka_unit_test(knows_that_a_descriptor_was_replaced),
		cmocka_unit_test(threads_share_a_connection),
		cmocka_unit_test(survives_rubbish),
	};

	sdp_libc = (struct sdp_libc){.getsockopt = getsockopt, .sendmsg = sendmsg, .recvmsg = note_recvmsg,
				      .ppoll = ending_ppoll, .select = ending_select};
	*(void **)&sdp_libc.epoll_create1 = dlsym(RTLD_NEXT, "epoll_create1");
	*(void **)&sdp_libc.epoll_ctl = dlsym(RTLD_NEXT, "epoll_ctl");
	*(void **)&sdp_libc.epoll_pwait = dlsym(RTLD_NEXT, "epoll_pwait");
	*(void **)&sdp_libc.epoll_pwait2 = dlsym(RTLD_NEXT, "epoll_pwait2");
	for (size_t i = 0; i < sizeof(out); i++)
		out[i] = (uint8_t)rand();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
