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
	assert_int_equal(read_from(l.receiver, in + 7, 2 * MUCH, 0), 93);
	assert_int_equal(read_from(l.receiver, in + 100, 2 * MUCH, 0), MUCH + 1);
	assert_memory_equal(in, out, MUCH + 101);
	assert_int_equal(read_from(l.receiver, in, MUCH, 0), -1);
	assert_int_equal(errno, EAGAIN);
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
		cmocka_unit_test(leaves_the_ring_when_the_lease_ends),
		cmocka_unit_test(wraps),
		cmocka_unit_test(stops_at_the_mark),
		cmocka_unit_test(rests_in_the_kernel),
		cmocka_unit_test(polls_the_ring),
		cmocka_unit_test(wakes_a_reader_in_the_kernel),
		cmocka_unit_test(knows_that_a_descriptor_was_replaced),
		cmocka_unit_test(survives_rubbish),
	};

	sdp_libc = (struct sdp_libc){.getsockopt = getsockopt, .sendmsg = sendmsg, .recvmsg = note_recvmsg};
	*(void **)&sdp_libc.ppoll = dlsym(RTLD_NEXT, "ppoll");
	*(void **)&sdp_libc.select = dlsym(RTLD_NEXT, "select");
	for (size_t i = 0; i < sizeof(out); i++)
		out[i] = (uint8_t)rand();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
