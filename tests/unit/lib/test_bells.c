/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What wakes an engine's server, and what a peer can do to a bell of its own. */
#include "../test.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "../../../lib/libibverbs/bells.h"

struct fixture {
	struct bells bells;
	int softibd; /* the end that it writes */
	int lane[2]; /* bells as two peers have them */
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	int ends[2];

	assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
	assert_int_equal(bells_open(&f->bells, ends[0]), 0);
	f->softibd = ends[1];
	for (int i = 0; i < 2; i++) {
		int bell = eventfd(0, EFD_NONBLOCK);

		assert_int_equal(bells_add_lane(&f->bells, bell), 0);
		f->lane[i] = dup(bell); /* as if it had come by a socket */
		close(bell);
	}
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	bells_close(&f->bells);
	close(f->softibd);
	for (int i = 0; i < 2; i++)
		close(f->lane[i]);
	free(f);
	return 0;
}

static void ring(int fd, uint64_t count)
{
	assert_int_equal(write(fd, &count, sizeof(count)), sizeof(count));
}

static int heard(struct fixture *f)
{
	return bells_wait(&f->bells, 0);
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
		ring(f->lane[0], 1);
		assert_int_equal(heard(f), BELL_LANE);
		assert_int_equal(heard(f), 0);
		ring(f->softibd, 1);
		bells_ring(&f->bells);
		assert_int_equal(heard(f), BELL_SOFTIBD | BELL_OWN);
		assert_int_equal(heard(f), 0);
	}
}

static void a_peer_that_reads_its_bell_silences_nobody_else(void **state)
{
	struct fixture *f = *state;
	uint64_t count;

	ring(f->lane[0], 1);
	ring(f->lane[1], 1);
	assert_int_equal(read(f->lane[0], &count, sizeof(count)), sizeof(count));
	assert_int_equal(heard(f), BELL_LANE);
	ring(f->lane[0], 1);
	assert_int_equal(read(f->lane[0], &count, sizeof(count)), sizeof(count));
	assert_int_equal(heard(f), 0); /* it took its own */
}

static void a_peer_that_fills_its_bell_silences_nobody_else(void **state)
{
	struct fixture *f = *state;

	ring(f->lane[0], UINT64_MAX - 1);
	assert_int_equal(heard(f), BELL_LANE);
	assert_int_equal(heard(f), 0);
	ring(f->lane[1], 1);
	assert_int_equal(heard(f), BELL_LANE);
}

static void the_bell_of_a_peer_that_left_is_gone(void **state)
{
	struct fixture *f = *state;

	ring(f->lane[0], 1);
	close(f->lane[0]);
	assert_int_equal(heard(f), 0);
	ring(f->lane[1], 1);
	assert_int_equal(heard(f), BELL_LANE);
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
	ring(f->softibd, 1);
	assert_int_equal(heard(f), BELL_SOFTIBD);
}

static void a_softibd_that_dies_is_told_once(void **state)
{
	struct fixture *f = *state;

	close(f->softibd);
	assert_int_equal(heard(f), BELL_SOFTIBD);
	assert_int_equal(heard(f), 0);
	f->softibd = dup(f->lane[0]);
}

static void an_alarm_rings_in_time(void **state)
{
	struct fixture *f = *state;
	mono_t start = now(), by = mono_add(start, 1 * NSEC_PER_MSEC);

	bells_set_alarm(&f->bells, start, mono_add(start, NSEC_PER_SEC * 1000));
	bells_set_alarm(&f->bells, start, by); /* earlier: that counts */
	assert_int_equal(bells_wait(&f->bells, -1), BELL_ALARM);
	assert_false(mono_before(now(), by));
	/* one that is over is set again */
	start = now();
	bells_set_alarm(&f->bells, start, start);
	assert_int_equal(bells_wait(&f->bells, -1), BELL_ALARM);
}

static void a_later_alarm_leaves_the_earlier(void **state)
{
	struct fixture *f = *state;
	mono_t start = now(), by = mono_add(start, 1 * NSEC_PER_MSEC);

	bells_set_alarm(&f->bells, start, by);
	bells_set_alarm(&f->bells, start, mono_add(start, NSEC_PER_SEC * 1000));
	assert_int_equal(bells_wait(&f->bells, -1), BELL_ALARM);
	bells_set_alarm(&f->bells, start, MONO_NEVER);
	assert_int_equal(heard(f), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(each_ring_is_told_once),
		CASE(a_peer_that_reads_its_bell_silences_nobody_else),
		CASE(a_peer_that_fills_its_bell_silences_nobody_else),
		CASE(the_bell_of_a_peer_that_left_is_gone),
		CASE(a_softibd_that_rings_unheard_is_heard_again),
		CASE(a_softibd_that_dies_is_told_once),
		CASE(an_alarm_rings_in_time),
		CASE(a_later_alarm_leaves_the_earlier),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
