/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Rings of commands that are not answered: what is run, in which order, and what ends a ring. */
#include "../test.h"

#include <errno.h>
#include <sys/wait.h>

#include "access/told.h"
#include "runtime/posix/rt_posix.h"

#define SESSIONS 3

/** struct session - of a program: its ring, and what is run */
struct session {
	struct told *told;
	struct abi_told program;
	int broken;
};

static struct rt *rt;
static struct told_process *process, *other;
static struct session session[SESSIONS]; /* verbs and the RDMA CM of a process; verbs of another one */
static char order[64]; /* one letter for each record that is run */

static void run(void *s, void *bytes, size_t len)
{
	assert_int_equal((uintptr_t)bytes % 8, 0);
	strncat(order, bytes, MIN(len, (size_t)1));
}

static void broken(void *s)
{
	((struct session *)s)->broken++;
}

static const struct told_ops verbs = {.verbs = true, .run = run, .broken = broken};
static const struct told_ops cm = {.run = run, .broken = broken};

static void open_ring(struct session *s, struct told_process *of, const struct told_ops *ops)
{
	int fds[ABI_TOLD_FDS];

	*s = (struct session){0};
	assert_int_equal(told_open(of, ops, s, fds, &s->told), 0);
	assert_true(abi_told_map(&s->program, fds));
}

static int open_all(void **state)
{
	order[0] = '\0';
	assert_int_equal(rt_posix_create(&rt), 0);
	process = told_process_get(rt, 10);
	other = told_process_get(rt, 11);
	assert_ptr_equal(told_process_get(rt, 10), process);
	told_process_put(process);
	open_ring(&session[0], process, &verbs);
	open_ring(&session[1], process, &cm);
	open_ring(&session[2], other, &verbs);
	return 0;
}

static int close_all(void **state)
{
	for (int i = 0; i < SESSIONS; i++) {
		told_close(session[i].told);
		abi_told_unmap(&session[i].program);
	}
	told_process_put(process);
	told_process_put(other);
	rt_posix_destroy(rt);
	return (int)rt_alloc_balance();
}

static void put(struct session *s, const char *letter)
{
	assert_true(abi_told_put(&s->program, &(struct iovec){(char *)letter, strlen(letter)}, 1));
}

static void tell(struct session *s, const char *letter)
{
	put(s, letter);
	abi_told_flush(&s->program);
}

/* Let softibd go to sleep, so that only a doorbell wakes it. */
static void let_sleep(void)
{
	for (int i = 0; i < 2 * RT_POLLER_LINGER; i++)
		rt_posix_turn(rt);
}

static void what_is_told_wakes_softibd(void **state)
{
	let_sleep();
	put(&session[0], "a");
	rt_posix_turn(rt);
	assert_string_equal(order, ""); /* it was put, but softibd may not see it yet */
	abi_told_flush(&session[0].program);
	rt_posix_turn(rt);
	rt_posix_turn(rt);
	assert_string_equal(order, "a");
	tell(&session[0], "b");
	tell(&session[0], "c");
	rt_posix_turn(rt);
	assert_string_equal(order, "abc");
}

/* The queue pair that an ACCEPT is about is known, in whichever order softibd looks at the rings. */
static void verbs_of_the_process_come_first(void **state)
{
	tell(&session[2], "o"); /* another process's are left alone */
	tell(&session[0], "v");
	tell(&session[1], "c");
	assert_true(told_run_one(session[1].told));
	assert_string_equal(order, "vc");
	tell(&session[0], "w");
	assert_true(told_run(process));
	assert_string_equal(order, "vcw");
	tell(&session[1], "d");
	assert_true(told_run_one(session[0].told));
	assert_string_equal(order, "vcw");
	told_run(other);
	assert_string_equal(order, "vcwo");
	assert_true(told_run(process)); /* all rings of the process */
	assert_string_equal(order, "vcwod");
}

/* A turn is short, whatever the program has told, and the message that follows waits. */
static void a_turn_runs_some_of_many(void **state)
{
	int turns = 1;

	tell(&session[1], "c");
	for (int i = 0; i < 40; i++)
		tell(&session[0], "v");
	while (!told_run_one(session[1].told)) {
		assert_null(strchr(order, 'c'));
		assert_false(told_run(process)); /* whoever else asks, in the same turn */
		assert_int_equal(strlen(order), 32);
		rt_posix_turn(rt);
		turns++;
	}
	assert_int_equal(turns, 2);
	assert_int_equal(strlen(order), 41);
	assert_int_equal(order[40], 'c');
	assert_false(told_by_rings(NULL));
	assert_true(told_by_rings(process));
}

static void a_ring_that_is_full_has_room_when_it_was_run(void **state)
{
	char record[ABI_TOLD_RECORD_MAX] = "x";
	const struct iovec part = {record, sizeof(record)};
	int n = 0;

	while (abi_told_put(&session[0].program, &part, 1))
		n++;
	assert_in_range(n, 10, 32);
	abi_told_flush(&session[0].program);
	told_run_one(session[0].told);
	assert_int_equal(strlen(order), n);
	assert_true(abi_told_put(&session[0].program, &part, 1));
}

static void a_record_that_is_too_long_ends_the_ring(void **state)
{
	char record[ABI_TOLD_RECORD_MAX + 8] = "x";

	tell(&session[0], "a");
	assert_true(abi_told_put(&session[0].program, &(struct iovec){record, sizeof(record)}, 1));
	tell(&session[0], "b");
	rt_posix_turn(rt);
	assert_string_equal(order, "a");
	assert_int_equal(session[0].broken, 1);
	told_run_one(session[0].told);
	let_sleep();
	assert_string_equal(order, "a");
	assert_int_equal(session[0].broken, 1);
	tell(&session[1], "c"); /* others go on */
	told_run_one(session[1].told);
	assert_string_equal(order, "ac");
}

static void a_tail_that_lies_ends_the_ring(void **state)
{
	struct abi_ring *ring = session[0].program.tx.ring;

	tell(&session[0], "a");
	told_run_one(session[0].told);
	memset(ring->data + 8, 0xee, 64);
	atomic_store(&ring->tail, (uint64_t)3 * ABI_TOLD_RING_BYTES);
	told_run_one(session[0].told);
	assert_string_equal(order, "a");
	assert_int_equal(session[0].broken, 1);
}

/* A child would be a second producer. */
/* Linux wipes such a page in a forked child; qemu-user says that it does. */
static bool is_wiped_on_fork(void)
{
	char *page = mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int status;
	pid_t child;

	assert_int_equal(madvise(page, 1, MADV_WIPEONFORK), 0);
	*page = 1;
	child = fork();
	if (!child)
		_exit(*page);
	assert_int_equal(waitpid(child, &status, 0), child);
	munmap(page, 1);
	return status == 0;
}

static void a_child_has_no_ring(void **state)
{
	int status;
	pid_t child;

	if (!is_wiped_on_fork())
		skip();
	child = fork();
	if (!child)
		_exit(abi_told_usable(&session[0].program));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_true(abi_told_usable(&session[0].program));
}

static void there_is_no_ring_without_its_descriptors(void **state)
{
	struct abi_told program = {0};

	assert_false(abi_told_map(&program, (int[ABI_TOLD_FDS]){-1, -1}));
	assert_false(abi_told_map(&program, (int[ABI_TOLD_FDS]){dup(0), -1}));
	assert_false(abi_told_usable(&program));
	abi_told_unmap(&program);
}

/* A message of a session looks at all rings of its process. */
static void a_process_has_so_many_rings(void **state)
{
	struct session more[64];
	int fds[ABI_TOLD_FDS];
	struct told *none = NULL;

	for (int i = 2; i < 64; i++)
		open_ring(&more[i], process, &cm);
	assert_int_equal(told_open(process, &cm, NULL, fds, &none), -ENOSPC);
	assert_null(none);
	told_close(more[2].told);
	abi_told_unmap(&more[2].program);
	open_ring(&more[2], process, &cm); /* one goes, another one comes */
	for (int i = 2; i < 64; i++) {
		told_close(more[i].told);
		abi_told_unmap(&more[i].program);
	}
}

static void a_lack_of_memory_leaves_nothing(void **state)
{
	struct told *told = NULL;
	int fds[ABI_TOLD_FDS];

	rt_fail_alloc(1);
	assert_null(told_process_get(rt, 12));
	rt_fail_alloc(1);
	assert_int_equal(told_open(process, &verbs, NULL, fds, &told), -ENOMEM);
	rt_fail_alloc(0);
	assert_null(told);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(what_is_told_wakes_softibd),
		CASE(verbs_of_the_process_come_first),
		CASE(a_turn_runs_some_of_many),
		CASE(a_ring_that_is_full_has_room_when_it_was_run),
		CASE(a_record_that_is_too_long_ends_the_ring),
		CASE(a_tail_that_lies_ends_the_ring),
		CASE(a_child_has_no_ring),
		CASE(there_is_no_ring_without_its_descriptors),
		CASE(a_process_has_so_many_rings),
		CASE(a_lack_of_memory_leaves_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
