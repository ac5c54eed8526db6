/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * TCP over loopback, which is what a program without RDMA has: back and forth,
 * spinning or sleeping, and a stream. A peer, not a limit.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bare.h"

#define BATCHES	     5
#define ROUNDS	     1000
#define STREAM_BYTES (16ul << 20)

enum { SLEEP, SPIN };

static int listener = -1;

static void listen_anywhere(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
				.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	listener = socket(AF_INET, SOCK_STREAM, 0);
	measure_check(listener >= 0 && !bind(listener, (void *)&a, sizeof(a)) &&
			      !listen(listener, 1),
		      "listen");
}

static int no_delay(int fd)
{
	int one = 1;

	measure_check(fd >= 0, "socket");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

static int connect_to(void)
{
	struct sockaddr_in a;
	socklen_t length = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	getsockname(listener, (void *)&a, &length);
	measure_check(!connect(fd, (void *)&a, sizeof(a)), "connect");
	return no_delay(fd);
}

static void send_all(int fd, const char *data, size_t size, int flags)
{
	for (size_t done = 0; done < size;) {
		ssize_t n = send(fd, data + done, size - done, flags);

		measure_check(n > 0 || errno == EAGAIN, "send");
		done += n > 0 ? (size_t)n : 0;
	}
}

static void receive_all(int fd, char *data, size_t size, int flags)
{
	for (size_t done = 0; done < size;) {
		ssize_t n = recv(fd, data + done, size - done, flags);

		measure_check(n > 0 || (n < 0 && errno == EAGAIN), "recv");
		done += n > 0 ? (size_t)n : 0;
	}
}

static double pingpong_timed(struct duo *d)
{
	int fd = connect_to(), flags = d->test->option == SPIN ? MSG_DONTWAIT : 0;
	char *data = bare_alloc(d->test->size);
	double ns[BATCHES];

	for (int b = 0; b < BATCHES; b++) {
		uint64_t start = measure_now_ns();

		for (int i = 0; i < ROUNDS; i++) {
			send_all(fd, data, d->test->size, flags);
			receive_all(fd, data, d->test->size, flags);
		}
		ns[b] = (double)(measure_now_ns() - start) / (2 * ROUNDS);
	}
	close(fd);
	return measure_median(ns, BATCHES);
}

static void pingpong_peer(struct duo *d)
{
	int fd = no_delay(accept(listener, NULL, NULL));
	int flags = d->test->option == SPIN ? MSG_DONTWAIT : 0;
	char *data = bare_alloc(d->test->size);

	for (int i = 0; i < BATCHES * ROUNDS; i++) {
		receive_all(fd, data, d->test->size, flags);
		send_all(fd, data, d->test->size, flags);
	}
}

static double stream_timed(struct duo *d)
{
	int fd = connect_to();
	size_t size = d->test->size, count = STREAM_BYTES / size;
	char *data = bare_alloc(size);
	double rate[BATCHES];

	for (int b = 0; b < BATCHES; b++) {
		uint64_t start = measure_now_ns();

		for (size_t i = 0; i < count; i++)
			send_all(fd, data, size, 0);
		rate[b] = (double)(count * size) / (double)(measure_now_ns() - start);
	}
	munmap(data, size);
	close(fd);
	return measure_median(rate, BATCHES);
}

static void stream_peer(struct duo *d)
{
	int fd = accept(listener, NULL, NULL);
	char *data = bare_alloc(d->test->size);

	for (size_t i = 0; i < BATCHES * (STREAM_BYTES / d->test->size); i++)
		receive_all(fd, data, d->test->size, MSG_WAITALL);
}

static double pingpong(const struct bare_test *t)
{
	double figure;

	listen_anywhere();
	figure = duo_run(t, 4096, pingpong_timed, pingpong_peer);
	close(listener);
	return figure;
}

static double stream(const struct bare_test *t)
{
	double figure;

	listen_anywhere();
	figure = duo_run(t, 4096, stream_timed, stream_peer);
	close(listener);
	return figure;
}

const struct bare_test tcp_tests[] = {
	{"tcp_spin_2", "ns", pingpong, 2, SPIN},
	{"tcp_spin_64", "ns", pingpong, 64, SPIN},
	{"tcp_spin_4096", "ns", pingpong, 4096, SPIN},
	{"tcp_sleep_8", "ns", pingpong, 8, SLEEP},
	{"tcp_65536", "GB/s", stream, 65536, 0},
	{"tcp_1048576", "GB/s", stream, 1u << 20, 0},
	{"tcp_16777216", "GB/s", stream, 16u << 20, 0},
	{},
};
