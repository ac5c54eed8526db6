/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What wakes the thread that sleeps for an engine, and what a peer can do to a doorbell of its own. */
#include "../test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "../../../lib/libibverbs/doorbells.h"
#include "abi/doorbell.h"

struct fixture {
	struct doorbells doorbells;
	int softibd; /* the end that it writes */
	int lane[2]; /* doorbells as two peers have them */
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	int ends[2];

	assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
	assert_int_equal(doorbells_open(&f->doorbells, ends[0]), 0);
	f->softibd = ends[1];
	for (int i = 0; i < 2; i++) {
		int bell = abi_doorbell_open();

		assert_int_equal(doorbells_add_lane(&f->doorbells, bell), 0);
		f->lane[i] = dup(bell); /* as if it had come by a socket */
		close(bell);
	}
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	doorbells_close(&f->doorbells);
	close(f->softibd);
	for (int i = 0; i < 2; i++)
		close(f->lane[i]);
	free(f);
	return 0;
}

static void softibd_rings(const struct fixture *f)
{
	assert_int_equal(write(f->softibd, "", 1), 1);
}

static int heard(struct fixture *f)
{
	return doorbells_wait(&f->doorbells, 0);
}

static mono_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (mono_t){(uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec};
}

static void each_ring_is_told_once(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(heard(f), 0);
	for (int i = 0; i < 3; i++) {
		abi_doorbell_ring(f->lane[0]);
		assert_int_equal(heard(f), DOORBELL_LANE);
		assert_int_equal(heard(f), 0);
		softibd_rings(f);
		doorbells_ring(&f->doorbells);
		assert_int_equal(heard(f), DOORBELL_SOFTIBD | DOORBELL_OWN);
		assert_int_equal(heard(f), 0);
	}
}

static void a_peer_that_reads_its_doorbell_silences_nobody_else(void **state)
{
	struct fixture *f = *state;
	uint64_t count;

	abi_doorbell_ring(f->lane[0]);
	abi_doorbell_ring(f->lane[1]);
	assert_int_equal(read(f->lane[0], &count, sizeof(count)), sizeof(count));
	assert_int_equal(heard(f), DOORBELL_LANE);
	abi_doorbell_ring(f->lane[0]);
	assert_int_equal(read(f->lane[0], &count, sizeof(count)), sizeof(count));
	assert_int_equal(heard(f), 0); /* it took its own */
}

/* it has the same open file: all that it can do to it, and then it is rung */
static void nobody_waits_who_rings(void **state)
{
	const struct itimerspec far = {.it_value = {.tv_sec = 1000}};
	const uint64_t full = UINT64_MAX - 1;
	struct fixture *f = *state;

	assert_int_equal(fcntl(f->lane[0], F_SETFL, 0), 0);
	for (unsigned n = 0; n < 2; n++) {
		if (write(f->lane[0], &full, sizeof(full)) < 0)
			assert_int_equal(errno, EINVAL); /* there is nothing to fill */
		assert_int_equal(timerfd_settime(f->lane[0], 0, &far, NULL), 0);
		alarm(30); /* ends who waits */
		abi_doorbell_ring(f->lane[0]);
		alarm(0);
		assert_int_equal(heard(f), DOORBELL_LANE);
		assert_int_equal(heard(f), 0);
		abi_doorbell_ring(f->lane[1]);
		assert_int_equal(heard(f), DOORBELL_LANE);
	}
}

/* what abi_doorbell_ring() does on a kernel without CONFIG_CHECKPOINT_RESTORE */
static void a_doorbell_can_be_rung_by_its_clock(void **state)
{
	const struct itimerspec at_once = {.it_value = {.tv_nsec = 1}};
	struct fixture *f = *state;

	for (unsigned n = 0; n < 3; n++) {
		assert_int_equal(timerfd_settime(f->lane[0], 0, &at_once, NULL), 0);
		assert_int_equal(doorbells_wait(&f->doorbells, -1), DOORBELL_LANE);
	}
}

static void the_doorbell_of_a_peer_that_left_is_gone(void **state)
{
	struct fixture *f = *state;

	abi_doorbell_ring(f->lane[0]);
	close(f->lane[0]);
	assert_int_equal(heard(f), 0);
	abi_doorbell_ring(f->lane[1]);
	assert_int_equal(heard(f), DOORBELL_LANE);
	f->lane[0] = dup(f->lane[1]);
}

static void a_softibd_that_rings_unheard_is_heard_again(void **state)
{
	struct fixture *f = *state;
	uint64_t one = 1;

	while (write(f->softibd, &one, sizeof(one)) == sizeof(one))
		;
	while (heard(f))
		;
	softibd_rings(f);
	assert_int_equal(heard(f), DOORBELL_SOFTIBD);
}

static void a_softibd_that_dies_is_told_once(void **state)
{
	struct fixture *f = *state;

	close(f->softibd);
	assert_int_equal(heard(f), DOORBELL_SOFTIBD);
	assert_int_equal(heard(f), 0);
	f->softibd = dup(f->lane[0]);
}

/* The answers to commands are read by the threads that wait for them. */
static void of_the_command_socket_only_the_end_rings(void **state)
{
	struct fixture *f = *state;
	int sock[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sock), 0);
	assert_int_equal(doorbells_add_end(&f->doorbells, sock[0]), 0);
	assert_int_equal(send(sock[1], "answer", 6, 0), 6);
	assert_int_equal(heard(f), 0);
	close(sock[1]);
	assert_int_equal(heard(f), DOORBELL_CONTROL);
	close(sock[0]);
}

static void an_alarm_rings_in_time(void **state)
{
	struct fixture *f = *state;
	mono_t start = now(), by = mono_add(start, 1 * NSEC_PER_MSEC);

	doorbells_set_alarm(&f->doorbells, start, mono_add(start, NSEC_PER_SEC * 1000));
	doorbells_set_alarm(&f->doorbells, start, by); /* earlier: that counts */
	assert_int_equal(doorbells_wait(&f->doorbells, -1), DOORBELL_ALARM);
	assert_false(mono_before(now(), by));
	/* one that is over is set again */
	start = now();
	doorbells_set_alarm(&f->doorbells, start, start);
	assert_int_equal(doorbells_wait(&f->doorbells, -1), DOORBELL_ALARM);
}

static void a_later_alarm_leaves_the_earlier(void **state)
{
	struct fixture *f = *state;
	mono_t start = now(), by = mono_add(start, 1 * NSEC_PER_MSEC);

	doorbells_set_alarm(&f->doorbells, start, by);
	doorbells_set_alarm(&f->doorbells, start, mono_add(start, NSEC_PER_SEC * 1000));
	assert_int_equal(doorbells_wait(&f->doorbells, -1), DOORBELL_ALARM);
	doorbells_set_alarm(&f->doorbells, start, MONO_NEVER);
	assert_int_equal(heard(f), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(each_ring_is_told_once),
		CASE(a_peer_that_reads_its_doorbell_silences_nobody_else),
		CASE(nobody_waits_who_rings),
		CASE(a_doorbell_can_be_rung_by_its_clock),
		CASE(the_doorbell_of_a_peer_that_left_is_gone),
		CASE(a_softibd_that_rings_unheard_is_heard_again),
		CASE(a_softibd_that_dies_is_told_once),
		CASE(of_the_command_socket_only_the_end_rings),
		CASE(an_alarm_rings_in_time),
		CASE(a_later_alarm_leaves_the_earlier),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
