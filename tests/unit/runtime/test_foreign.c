/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Calls on sockets that another process shares, and which may wait for as long as that likes. */
#include "../test.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/posix/foreign.h"

struct outcome {
	struct rt *rt;
	int result;
	bool there;
};

static void done(void *ctx, int result)
{
	struct outcome *o = ctx;

	assert_false(o->there);
	o->result = result;
	o->there = true;
}

static int wait_for(struct outcome *o)
{
	while (!o->there)
		rt_posix_turn(o->rt);
	o->there = false;
	return o->result;
}

static int listener(struct sockaddr_in *addr)
{
	socklen_t len = sizeof(*addr);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	*addr = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	assert_int_equal(bind(fd, (struct sockaddr *)addr, len), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)addr, &len), 0);
	return fd;
}

static int setup(void **state)
{
	static struct outcome o;

	o = (struct outcome){0};
	assert_int_equal(rt_posix_create(&o.rt), 0);
	*state = &o;
	return 0;
}

static int teardown(void **state)
{
	struct outcome *o = *state;

	rt_posix_destroy(o->rt);
	return 0;
}

static void a_connection_is_made(void **state)
{
	int from = socket(AF_INET, SOCK_STREAM, 0), to;
	struct rt_foreign_call *call;
	struct outcome *o = *state;
	struct sockaddr_in addr;
	int listening = listener(&addr);

	assert_int_equal(rt_foreign_connect(o->rt, from, (struct sockaddr *)&addr, sizeof(addr), done, o, &call), 0);
	assert_int_equal(wait_for(o), 0);
	assert_int_equal(rt_foreign_accept(o->rt, listening, done, o, &call), 0);
	to = wait_for(o);
	assert_true(to >= 0);
	assert_int_equal(fcntl(to, F_GETFL) & O_NONBLOCK, 0);
	close(from);
	close(to);
	close(listening);
}

static void a_failure_is_told(void **state)
{
	struct rt_foreign_call *call;
	struct outcome *o = *state;
	struct sockaddr_in addr;
	int fd = listener(&addr), from = socket(AF_INET, SOCK_STREAM, 0);

	close(fd);
	assert_int_equal(rt_foreign_connect(o->rt, from, (struct sockaddr *)&addr, sizeof(addr), done, o, &call), 0);
	assert_int_equal(wait_for(o), -ECONNREFUSED);
	assert_int_equal(rt_foreign_accept(o->rt, from, done, o, &call), 0);
	assert_int_equal(wait_for(o), -EINVAL); /* it does not listen */
	assert_int_equal(rt_foreign_accept(o->rt, -1, done, o, &call), -EMFILE);
	close(from);
}

/* Nobody connects, and the socket stays open elsewhere: its thread ends nevertheless, and gives up the
 * last descriptor of the listener, which resets those that connect. */
static void an_accept_that_waits_is_abandoned(void **state)
{
	struct rt_foreign_call *call;
	struct outcome *o = *state;
	struct sockaddr_in addr;
	int fd = listener(&addr), from;

	assert_int_equal(rt_foreign_accept(o->rt, fd, done, o, &call), 0);
	rt_posix_turn(o->rt);
	rt_foreign_abandon(call);
	close(fd);
	do {
		from = socket(AF_INET, SOCK_STREAM, 0);
		errno = 0;
		(void)!connect(from, (struct sockaddr *)&addr, sizeof(addr));
		close(from);
	} while (errno != ECONNREFUSED);
	assert_false(o->there);
}

/* The loop has not heard of the result yet: the connection is closed. */
static void what_was_accepted_for_nobody_is_closed(void **state)
{
	int from = socket(AF_INET, SOCK_STREAM, 0);
	struct rt_foreign_call *call;
	struct outcome *o = *state;
	struct sockaddr_in addr;
	int fd = listener(&addr);
	struct pollfd reset = {.fd = from, .events = POLLIN};

	assert_int_equal(connect(from, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(rt_foreign_accept(o->rt, fd, done, o, &call), 0);
	rt_foreign_abandon(call);
	close(fd); /* whether it was accepted or not, the peer notices */
	assert_int_equal(poll(&reset, 1, -1), 1);
	rt_posix_turn(o->rt);
	assert_false(o->there);
	close(from);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_connection_is_made, setup, teardown),
		cmocka_unit_test_setup_teardown(a_failure_is_told, setup, teardown),
		cmocka_unit_test_setup_teardown(an_accept_that_waits_is_abandoned, setup, teardown),
		cmocka_unit_test_setup_teardown(what_was_accepted_for_nobody_is_closed, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
