/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Descriptors that another process chose: they are received whole, and closed. */
#include "../test.h"

#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "abi/fds.h"
#include "runtime/posix/closer.h"

#define MANY 100
#define PATIENCE_S 10 /* a hang, not a measure of speed */

static void make_pipes(int ends[][2], unsigned n)
{
	while (n--)
		assert_int_equal(pipe(ends[n]), 0);
}

/* waits until nobody has the writing end any more */
static void comes_to_its_end(int reading_end)
{
	char byte;

	assert_int_equal(read(reading_end, &byte, 1), 0);
	close(reading_end);
}

static void what_is_handed_over_is_closed(void **state)
{
	int ends[MANY][2], fds[2];

	make_pipes(ends, MANY);
	rt_close_foreign(-1); /* nothing */
	for (int i = 2; i < MANY; i++)
		rt_close_foreign(ends[i][1]);
	fds[0] = ends[0][1];
	fds[1] = ends[1][1];
	rt_close_foreign_all(fds, 2);
	assert_int_equal(fds[0], -1);
	assert_int_equal(fds[1], -1);
	for (int i = 0; i < MANY; i++)
		comes_to_its_end(ends[i][0]);
}

static void what_exceeds_the_room_is_closed(void **state)
{
	int pair[2], ends[ABI_FDS_MAX][2], fds[ABI_FDS_MAX], got[3];
	char in[8];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	make_pipes(ends, ABI_FDS_MAX);
	for (int i = 0; i < ABI_FDS_MAX; i++)
		fds[i] = ends[i][1];
	assert_int_equal(abi_send_fds(pair[0], "hello", 5, fds, ABI_FDS_MAX, 0), 0);
	assert_int_equal(abi_send_fds(pair[0], "alone", 5, fds, 1, 0), 0);
	assert_int_equal(abi_send_fds(pair[0], "none", 4, NULL, 0, 0), 0);
	for (int i = 0; i < ABI_FDS_MAX; i++)
		close(fds[i]);
	assert_int_equal(rt_receive(pair[1], in, sizeof(in), 0, got, 2), 5);
	for (int i = 2; i < ABI_FDS_MAX; i++)
		comes_to_its_end(ends[i][0]);
	rt_close_foreign_all(got, 2);
	comes_to_its_end(ends[1][0]);
	assert_int_equal(rt_receive(pair[1], in, sizeof(in), 0, NULL, 0), 5);
	comes_to_its_end(ends[0][0]);
	got[0] = 7;
	assert_int_equal(rt_receive(pair[1], in, sizeof(in), 0, got, 3), 4);
	assert_int_equal(got[0], -1);
	assert_int_equal(rt_receive(pair[1], in, sizeof(in), MSG_DONTWAIT, got, 3), -EAGAIN);
	close(pair[0]);
	close(pair[1]);
}

/* Return: a TCP socket whose last close waits for what its peer, @peer, does not read */
static int slow_to_close(int *peer)
{
	const struct linger linger = {.l_onoff = 1, .l_linger = 2 * PATIENCE_S};
	struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int listener = socket(AF_INET, SOCK_STREAM, 0), sock = socket(AF_INET, SOCK_STREAM, 0);
	static const char bytes[1 << 16];
	socklen_t len = sizeof(addr);

	assert_int_equal(bind(listener, (struct sockaddr *)&addr, len), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&addr, &len), 0);
	assert_int_equal(connect(sock, (struct sockaddr *)&addr, len), 0);
	*peer = accept(listener, NULL, NULL);
	close(listener);
	while (send(sock, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	assert_int_equal(setsockopt(sock, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
	return sock;
}

/* It comes with a message for which nobody wants descriptors, or which nobody reads. */
static void a_close_that_waits_holds_nobody_up(void **state)
{
	for (int unread = 0; unread < 2; unread++) {
		const time_t start = time(NULL);
		int pair[2], peer, slow = slow_to_close(&peer);
		char in[8];

		assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
		assert_int_equal(abi_send_fds(pair[0], "slow", 4, &slow, 1, 0), 0);
		close(slow);
		if (!unread)
			assert_int_equal(rt_receive(pair[1], in, sizeof(in), 0, NULL, 0), 4);
		rt_close_socket(pair[1]);
		assert_true(time(NULL) - start < PATIENCE_S);
		close(pair[0]);
		close(peer);
	}
}

static void what_nobody_read_is_closed(void **state)
{
	int pair[2], ends[2][2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	make_pipes(ends, 2);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(abi_send_fds(pair[0], "", 0, NULL, 0, 0), 0); /* not the end */
		assert_int_equal(abi_send_fds(pair[0], "unread", 6, &ends[i][1], 1, 0), 0);
		close(ends[i][1]);
	}
	rt_close_socket(pair[1]);
	rt_close_socket(-1); /* nothing */
	assert_int_equal(abi_send_fds(pair[0], "late", 4, NULL, 0, 0), -EPIPE);
	for (int i = 0; i < 2; i++)
		comes_to_its_end(ends[i][0]);
	close(pair[0]);
}

/* Return: a descriptor whose last close waits: a socket pair's end in which a socket that lingers still is */
static int slow_whoever_closes_it(int *peer)
{
	int pair[2], slow = slow_to_close(peer);

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	assert_int_equal(abi_send_fds(pair[0], "slow", 4, &slow, 1, 0), 0);
	close(slow);
	close(pair[0]);
	return pair[1];
}

/* A process that sends descriptors whose closes wait, and then others, until it is turned away. It tells by @begun
 * that it has closed its own copies: the last one is what waits. */
static void send_until_turned_away(int sock, int begun)
{
	int fds[ABI_FDS_MAX], peer[2], slow, ret;

	for (int i = 0; i < 2; i++) {
		slow = slow_whoever_closes_it(&peer[i]);
		assert_int_equal(abi_send_fds(sock, "slow", 4, &slow, 1, 0), 0);
		close(slow);
	}
	assert_int_equal(write(begun, "", 1), 1);
	for (int i = 0; i < ABI_FDS_MAX; i++)
		fds[i] = sock;
	do {
		ret = abi_send_fds(sock, "many", 4, fds, ABI_FDS_MAX, 0);
		if (ret == -ETOOMANYREFS) /* an ordinary user has so many under way at most */
			sched_yield();
	} while (!ret || ret == -ETOOMANYREFS);
}

/* A process whose closes wait has two threads, and is not listened to when too many wait behind them. What
 * others sent is closed. */
static void who_makes_closes_wait_is_turned_away(void **state)
{
	int pair[2], begun[2], ends[2], got[1], heard = 0;
	struct rlimit before, few;
	const int on = 1;
	char in[8];
	ssize_t n;
	pid_t hostile;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = (struct rlimit){8 * MANY, before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	assert_int_equal(setsockopt(pair[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)), 0);
	assert_int_equal(pipe(begun), 0);
	hostile = fork();
	if (!hostile) {
		close(pair[1]);
		send_until_turned_away(pair[0], begun[1]);
		_exit(0);
	}
	close(pair[0]);
	assert_int_equal(read(begun[0], in, 1), 1);
	close(begun[0]);
	close(begun[1]);
	do {
		n = rt_receive(pair[1], in, sizeof(in), 0, got, 1);
		rt_close_foreign(got[0]);
	} while (n == 4 && ++heard < 100 * MANY);
	assert_int_equal(n, -EMFILE);
	assert_int_equal(got[0], -1);
	assert_true(rt_closer_crowded());
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	make_pipes(&ends, 1);
	rt_close_foreign(ends[1]);
	comes_to_its_end(ends[0]);
	rt_close_socket(pair[1]); /* which wakes the process; the peers of the slow ones end with it */
	assert_int_equal(waitpid(hostile, NULL, 0), hostile);
}

static int threads(void **state)
{
	rt_closer_begin();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_handed_over_is_closed),
		cmocka_unit_test(what_exceeds_the_room_is_closed),
		cmocka_unit_test(what_nobody_read_is_closed),
		cmocka_unit_test(a_close_that_waits_holds_nobody_up),
		/* and from here on in threads */
		cmocka_unit_test_setup(what_is_handed_over_is_closed, threads),
		cmocka_unit_test(what_exceeds_the_room_is_closed),
		cmocka_unit_test(what_nobody_read_is_closed),
		cmocka_unit_test(a_close_that_waits_holds_nobody_up),
		cmocka_unit_test(who_makes_closes_wait_is_turned_away),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
