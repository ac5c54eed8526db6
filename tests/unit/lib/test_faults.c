/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Memory that the program has unmapped: each way to load and to store, of each length, over
 * each end of a page that is gone; and whose the other faults are.
 */
#include "../test.h"

#include <fcntl.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../lib/libibverbs/faults.h"
#include "transport/guard.h"

#define PAGE 4096u
#define PAGES 4
#define BYTES ((PAGES + 2) * PAGE) /* of a mapping: some loads reach beyond the pages */

static uint8_t data[PAGES * PAGE];

static sigjmp_buf out;
static volatile int calls;

static void last_resort(int number)
{
	calls += 10000;
	siglongjmp(out, 1);
}

static int setup(void **state)
{
	const struct sigaction first = {.sa_handler = last_resort};

	for (unsigned i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7 + i / 251);
	sigaction(SIGSEGV, &first, NULL);
	faults_watch();
	return 0;
}

/* the third of some pages is gone; cmocka had set handlers of its own */
static uint8_t *with_hole(void)
{
	uint8_t *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			   0);

	faults_watch();
	assert_ptr_not_equal(at, MAP_FAILED);
#ifdef __SANITIZE_ADDRESS__ /* it remembers what was there before */
	__asan_unpoison_memory_region(at, BYTES);
#endif
	munmap(at + 2 * PAGE, PAGE);
	return at;
}

static void drop(uint8_t *at)
{
	munmap(at, BYTES);
}

static bool in_hole(size_t i)
{
	return i / PAGE == 2;
}

typedef void store_fn(void *to, const void *from, size_t len);

static void store(void *to, const void *from, size_t len)
{
	guard_store(to, from, len);
}

static void store_spun_on(void *to, const void *from, size_t len)
{
	guard_store_spun_on(to, from, len);
}

static void expect_stored(uint8_t *at, size_t from, size_t len)
{
	for (size_t i = from - MIN(from, 70u); i < MIN(from + len + 70, sizeof(data)); i++)
		if (!in_hole(i))
			assert_int_equal(at[i], i >= from && i < from + len ? data[i] : 0);
}

static void what_is_stored_to_no_page_is_dropped(void **state)
{
	static store_fn *const by[] = {store, store_spun_on};
	static const size_t lengths[] = {65, 127, 200, 4096, 5000, 8192, 12000};
	uint8_t *at = with_hole();

	for (unsigned way = 0; way < ARRAY_SIZE(by); way++) {
		for (size_t n = 0; n < 65 + ARRAY_SIZE(lengths); n++) {
			size_t len = n < 65 ? n : lengths[n - 65];

			for (unsigned where = 0; where < 4; where++) {
				/* before it, over either end, in it */
				size_t from[] = {2 * PAGE - MIN(len, 2 * PAGE), 2 * PAGE - len / 2,
						 3 * PAGE - MIN(len, PAGE) / 2, 2 * PAGE + 7};

				if (from[where] + len > sizeof(data))
					continue;
				by[way](at + from[where], data + from[where], len);
				expect_stored(at, from[where], len);
				memset(at, 0, 2 * PAGE);
				memset(at + 3 * PAGE, 0, PAGE);
			}
		}
	}
	drop(at);
}

static void what_is_loaded_from_no_page_fails(void **state)
{
	static const size_t lengths[] = {65, 127, 200, 4096, 5000, 8192};
	uint8_t *at = with_hole(), got[3 * PAGE];

	memcpy(at, data, 2 * PAGE);
	memcpy(at + 3 * PAGE, data + 3 * PAGE, PAGE);
	for (size_t n = 1; n < 65 + ARRAY_SIZE(lengths); n++) {
		size_t len = n < 65 ? n : lengths[n - 65];
		uint64_t word;

		assert_true(guard_load(got, at + 2 * PAGE - len, len));
		assert_memory_equal(got, data + 2 * PAGE - len, len);
		assert_true(guard_probe(at + 2 * PAGE - len, len));
		assert_false(guard_load(got, at + 2 * PAGE - len + 1, len));
		assert_false(guard_load(got, at + 3 * PAGE - 1, len));
		assert_false(guard_probe(at + 2 * PAGE - len + 1, len));
		assert_false(guard_probe(at + 3 * PAGE - 1, len));
		assert_false(guard_load_spun_on(got, at + 2 * PAGE - len + 1, len));
		assert_true(guard_load_spun_on(got, at + 2 * PAGE - len, len));
		assert_memory_equal(got, data + 2 * PAGE - len, len);
		if (len > 8)
			continue;
		assert_true(guard_load_few(at + 2 * PAGE - len, len, &word));
		assert_memory_equal(&word, data + 2 * PAGE - len, len);
		assert_false(guard_load_few(at + 2 * PAGE - len + 1, len, &word));
	}
	drop(at);
}

static void atomics_need_their_word(void **state)
{
	uint8_t *at = with_hole();
	uint64_t *here = (uint64_t *)at, *gone = (uint64_t *)(at + 2 * PAGE), was = 0;

	*here = 40;
	assert_true(guard_fetch_add(here, 2, &was));
	assert_int_equal(was, 40);
	assert_true(guard_compare_swap(here, 41, 1, &was));
	assert_int_equal(was, 42);
	assert_int_equal(*here, 42);
	assert_true(guard_compare_swap(here, 42, 1, &was));
	assert_int_equal(was, 42);
	assert_int_equal(*here, 1);
	assert_false(guard_fetch_add(gone, 2, &was));
	assert_false(guard_compare_swap(gone, 0, 1, &was));
	drop(at);
}

/* an adapter asks for no rights of the program's pages either */
static void rights_do_not_matter(void **state)
{
	static const size_t lengths[] = {1, 8, 33, 64, 65, 2000, 4096};
	uint8_t *at = with_hole(), got[PAGE];

	for (unsigned i = 0; i < ARRAY_SIZE(lengths); i++) {
		uint8_t *from = at + PAGE - lengths[i] / 2;

		mprotect(at, 2 * PAGE, PROT_NONE);
		guard_store(from, data, lengths[i]);
		assert_true(guard_load(got, from, lengths[i]));
		assert_memory_equal(got, data, lengths[i]);
		mprotect(at, 2 * PAGE, PROT_READ);
		guard_store(from, data + 100, lengths[i]);
		assert_memory_equal(from, data + 100, lengths[i]);
	}
	drop(at);
}

/* SIGBUS: there is a mapping, and nothing behind it */
static void a_file_may_be_shorter(void **state)
{
	int fd = memfd_create("short", MFD_CLOEXEC);
	uint8_t *at, got[100];

	faults_watch();
	assert_int_equal(ftruncate(fd, 2 * PAGE), 0);
	at = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(at, MAP_FAILED);
	assert_int_equal(ftruncate(fd, PAGE), 0);
	guard_store(at + PAGE - 50, data, 100);
	assert_memory_equal(at + PAGE - 50, data, 50);
	assert_true(guard_load(got, at + PAGE - 50, 50));
	assert_false(guard_load(got, at + PAGE - 50, 51));
	assert_false(guard_load(got, at + PAGE - 50, 100));
	munmap(at, 2 * PAGE);
	close(fd);
}

/* --- faults that are not ours --- */

static struct sigaction before;

static void leave(int number, siginfo_t *info, void *context)
{
	calls++;
	siglongjmp(out, 1);
}

/* to whoever it found */
static void hand_on(int number, siginfo_t *info, void *context)
{
	calls += 100;
	if (calls % 10000 > 1000)
		_exit(3);
	before.sa_sigaction(number, info, context);
}

static volatile uint8_t *nowhere;

static void fault(void)
{
	if (!sigsetjmp(out, 1))
		*nowhere = 1;
}

static void the_program_s_own_handler_has_its_own(void **state)
{
	const struct sigaction mine = {.sa_sigaction = leave, .sa_flags = SA_SIGINFO};
	const struct sigaction over = {.sa_sigaction = hand_on, .sa_flags = SA_SIGINFO};
	uint8_t *at = with_hole();

	nowhere = at + 2 * PAGE;
	sigaction(SIGSEGV, &mine, &before);
	fault();
	assert_int_equal(calls, 1);
	faults_watch(); /* in front of it again */
	guard_store(at + 2 * PAGE, data, 300);
	fault();
	fault();
	assert_int_equal(calls, 3);
	/* one that hands on what is not its own, to us: both in turn, and no circle */
	sigaction(SIGSEGV, &over, &before);
	fault();
	assert_int_equal(calls, 104);
	guard_store(at + 2 * PAGE, data, 8);
	assert_true(calls > 104); /* it had to hand on each */
	calls = 0;
	/* ours is in front of it again: it comes back, and goes on to who was first of all */
	faults_watch();
	fault();
	assert_int_equal(calls, 10100);
	fault();
	assert_int_equal(calls, 20200);
	guard_store(at + 2 * PAGE, data, 300);
	assert_int_equal(calls, 20200);
	drop(at);
}

static int status_of(void (*fn)(void))
{
	int status, pid = fork();

	if (!pid) {
		fn();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void no_handler(void)
{
	sigaction(SIGSEGV, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
	faults_watch();
}

static void fault_by_default(void)
{
	no_handler();
	*nowhere = 1;
}

static void kill_by_default(void)
{
	no_handler();
	raise(SIGSEGV);
}

static void once(int number)
{
}

static void fault_for_one_call(void)
{
	sigaction(SIGSEGV, &(struct sigaction){.sa_handler = once, .sa_flags = (int)SA_RESETHAND},
		  NULL);
	faults_watch();
	*nowhere = 1;
}

static void who_has_no_handler_ends(void **state)
{
	static void (*const way[])(void) = {fault_by_default, kill_by_default, fault_for_one_call};
	uint8_t *at = with_hole();

	nowhere = at + 2 * PAGE;
	for (unsigned i = 0; i < ARRAY_SIZE(way); i++)
		assert_int_equal(WTERMSIG(status_of(way[i])), SIGSEGV);
	drop(at);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_stored_to_no_page_is_dropped),
		cmocka_unit_test(what_is_loaded_from_no_page_fails),
		cmocka_unit_test(atomics_need_their_word),
		cmocka_unit_test(rights_do_not_matter),
		cmocka_unit_test(a_file_may_be_shorter),
		cmocka_unit_test(who_has_no_handler_ends),
		cmocka_unit_test(the_program_s_own_handler_has_its_own),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
