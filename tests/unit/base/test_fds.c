/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Descriptors that go with a message, and what becomes of too many. */
#include <fcntl.h>
#include <stdio.h>

#include "../test.h"

#include "abi/fds.h"

struct ends {
	int sock[2];
};

static struct ends connected(void)
{
	struct ends e;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, e.sock), 0);
	return e;
}

static void part(struct ends *e)
{
	close(e->sock[0]);
	close(e->sock[1]);
}

/* Return: how many descriptors came, the first @max of them in @fds */
static unsigned hear(int sock, char *text, size_t bytes, int *fds, unsigned max)
{
	char control[CMSG_SPACE(ABI_FDS_MAX * sizeof(int))];
	struct iovec iov = {text, bytes};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control,
			     .msg_controllen = sizeof(control)};

	assert_int_equal(recvmsg(sock, &msg, MSG_CMSG_CLOEXEC), bytes);
	return abi_take_fds(&msg, fds, max);
}

static bool same_file(int a, int b)
{
	struct stat sa, sb;

	return !fstat(a, &sa) && !fstat(b, &sb) && sa.st_ino == sb.st_ino;
}

static void they_arrive_in_order(void **state)
{
	struct ends e = connected();
	int out[2], in[2];
	char text[3];

	assert_int_equal(pipe(out), 0);
	assert_int_equal(abi_send_fds(e.sock[0], "abc", 3, out, 2, 0), 0);
	assert_int_equal(hear(e.sock[1], text, 3, in, 2), 2);
	assert_memory_equal(text, "abc", 3);
	assert_true(same_file(in[0], out[0]) && same_file(in[1], out[1]));
	assert_int_equal(fcntl(in[1], F_GETFL) & O_ACCMODE, O_WRONLY);
	for (int i = 0; i < 2; i++) {
		close(in[i]);
		close(out[i]);
	}
	part(&e);
}

static void none_need_go(void **state)
{
	struct iovec parts[2] = {{"ab", 2}, {"c", 1}};
	struct ends e = connected();
	char text[3];
	int fd;

	assert_int_equal(abi_sendv_fds(e.sock[0], parts, 2, NULL, 0, 0), 0);
	assert_int_equal(hear(e.sock[1], text, 3, &fd, 1), 0);
	assert_memory_equal(text, "abc", 3);
	part(&e);
}

static void what_is_not_wanted_is_closed(void **state)
{
	struct ends e = connected();
	int out[2], in, next;
	char text[1];

	assert_int_equal(pipe(out), 0);
	assert_int_equal(abi_send_fds(e.sock[0], "a", 1, out, 2, 0), 0);
	assert_int_equal(hear(e.sock[1], text, 1, &in, 1), 1);
	next = dup(in); /* the lowest that is free */
	assert_int_equal(next, in + 1);
	close(next);
	close(in);
	close(out[0]);
	close(out[1]);
	part(&e);
}

static void failures_are_told(void **state)
{
	struct ends e = connected();
	int fds[ABI_FDS_MAX + 1] = {0};

	assert_int_equal(abi_send_fds(e.sock[0], "a", 1, fds, ABI_FDS_MAX + 1, 0), -EINVAL);
	while (!abi_send_fds(e.sock[0], "a", 1, NULL, 0, MSG_DONTWAIT))
		;
	assert_int_equal(abi_send_fds(e.sock[0], "a", 1, NULL, 0, MSG_DONTWAIT), -EAGAIN);
	part(&e);
	e = connected();
	close(e.sock[1]);
	assert_int_equal(abi_send_fds(e.sock[0], "a", 1, NULL, 0, 0), -EPIPE); /* no signal */
	close(e.sock[0]);
}

/* Who closes a socket without having read everything resets it. */
static void a_reset_hides_no_answer(void **state)
{
	struct ends e = connected();
	char text[4] = "";
	struct iovec part = {text, 3};
	int passed[2] = {0, 0};

	assert_int_equal(abi_send_fds(e.sock[0], "unread", 6, NULL, 0, 0), 0);
	assert_int_equal(abi_send_fds(e.sock[1], "answer", 6, NULL, 0, 0), 0);
	close(e.sock[1]);
	errno = 0;
	assert_int_equal(abi_receive_answer(e.sock[0], &part, 1, passed, 2), 6);
	assert_int_equal(errno, 0); /* not that of the call that was reset */
	assert_string_equal(text, "ans");
	assert_int_equal(passed[0], -1);
	assert_int_equal(passed[1], -1);
	assert_int_equal(abi_receive_answer(e.sock[0], &part, 1, NULL, 0), 0);
	close(e.sock[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(they_arrive_in_order),
		cmocka_unit_test(none_need_go),
		cmocka_unit_test(what_is_not_wanted_is_closed),
		cmocka_unit_test(failures_are_told),
		cmocka_unit_test(a_reset_hides_no_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
