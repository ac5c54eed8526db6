/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Memory that moves under a memfd and back while threads and system calls
 * write it: nothing is lost, nobody fails, a child has a copy of its own.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../test.h"

#include "../../../lib/libibverbs/windows.h"

#define PAGE ((size_t)4096)
#define BYTES ((size_t)5 << 20) /* a huge page and what is around it */
#define ROUNDS 20

static char *some_memory(void)
{
	char *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(p != MAP_FAILED);
	return p;
}

/* where the system does not let us hold off writers, nothing may move */
static void needs_userfaultfd(void)
{
	if (!memory_can_move())
		skip();
}

static struct extent moved(char *addr, size_t bytes)
{
	struct extent x = {.addr = addr, .bytes = bytes};

	assert_int_equal(memory_move_out(&x), 0);
	assert_int_equal(x.bytes, bytes);
	return x;
}

static void contents_stay(void **state)
{
	char *p = some_memory(), *other;
	struct extent x;

	needs_userfaultfd();
	for (size_t i = 0; i < BYTES; i += 64)
		memcpy(p + i, &i, sizeof(i));
	x = moved(p, BYTES);
	other = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, x.memfd, x.offset);
	assert_true(other != MAP_FAILED);
	assert_memory_equal(p, other, BYTES);
	other[70000] = 'x';
	assert_int_equal(p[70000], 'x');
	memory_take_back(&x);
	assert_int_equal(p[70000], 'x');
	for (size_t i = 0; i < BYTES; i += 64)
		assert_true(i == 70000 / 64 * 64 || !memcmp(p + i, &i, sizeof(i)));
	other[0] = 'o'; /* an orphan */
	assert_int_not_equal(p[0], 'o');
	munmap(other, BYTES);
	munmap(p, BYTES);
}

static void areas_are_told_apart(void **state)
{
	char *p = some_memory();
	struct extent x;
	struct area a;

	needs_userfaultfd();
	mprotect(p + PAGE, PAGE, PROT_READ);
	assert_true(memory_area_at(p, &a) && a.movable && a.end == p + PAGE);
	assert_true(memory_area_at(p + PAGE, &a) && !a.movable);
	/* a variable may be elsewhere: AddressSanitizer's own stack */
	assert_true(memory_area_at(__builtin_frame_address(0), &a) && !a.movable);
	assert_true(memory_area_at((char *)areas_are_told_apart, &a) && !a.movable);
	assert_false(memory_area_at(NULL, &a));
	x = moved(p + 2 * PAGE, 4 * PAGE);
	assert_true(memory_area_at(p + 3 * PAGE, &a) && !a.movable && a.inode == x.inode &&
		    a.dev == x.dev && a.offset == x.offset);
	memory_take_back(&x);
	assert_true(memory_area_at(p + 3 * PAGE, &a) && a.movable);
	munmap(p, BYTES);
}

/* --- writers --- */

struct writer {
	char *memory;
	unsigned index;
	_Atomic bool stop;
	uint64_t rounds;
	int error;
};

/* each adds one to a word of its own in every page */
static void *add(void *arg)
{
	struct writer *w = arg;

	while (!atomic_load(&w->stop)) {
		for (size_t at = w->index * 8; at < BYTES; at += PAGE)
			++*(volatile uint64_t *)(w->memory + at);
		w->rounds++;
	}
	return NULL;
}

/* system calls that write: read(2) from a pipe into every page */
static void *read_into(void *arg)
{
	struct writer *w = arg;
	int fds[2];

	w->error = pipe(fds) ? errno : 0;
	while (!w->error && !atomic_load(&w->stop)) {
		w->rounds++;
		for (size_t at = w->index * 8; !w->error && at < BYTES; at += PAGE)
			if (write(fds[1], &w->rounds, 8) != 8 || read(fds[0], w->memory + at, 8) != 8)
				w->error = errno;
	}
	close(fds[0]);
	close(fds[1]);
	return NULL;
}

static void nothing_is_lost_under_writers(void **state)
{
	void *(*const what[])(void *) = {add, add, read_into};
	struct writer w[3] = {{0}};
	pthread_t thread[3];
	char *p = some_memory();

	needs_userfaultfd();
	for (unsigned i = 0; i < 3; i++) {
		w[i].memory = p;
		w[i].index = i;
		assert_int_equal(pthread_create(&thread[i], NULL, what[i], &w[i]), 0);
	}
	for (int i = 0; i < ROUNDS; i++) {
		struct extent x = moved(p + PAGE, BYTES - 3 * PAGE);

		memory_take_back(&x);
	}
	for (unsigned i = 0; i < 3; i++) {
		atomic_store(&w[i].stop, true);
		pthread_join(thread[i], NULL);
		assert_int_equal(w[i].error, 0);
		for (size_t at = i * 8; at < BYTES; at += PAGE)
			assert_int_equal(*(uint64_t *)(p + at), w[i].rounds);
	}
	munmap(p, BYTES);
}

/* --- what programs do with their memory --- */

static void it_may_be_unmapped_and_grown(void **state)
{
	char *p = some_memory(), *grown;
	struct extent x;

	needs_userfaultfd();
	memset(p, 'a', BYTES);
	x = moved(p, 8 * PAGE);
	munmap(p + 2 * PAGE, PAGE);
	grown = mmap(p + 2 * PAGE, PAGE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	grown[0] = 'b';
	memory_take_back(&x);
	assert_int_equal(p[2 * PAGE], 'b'); /* it is another's: left alone */
	assert_int_equal(p[PAGE], 'a');
	assert_int_equal(p[3 * PAGE], 'a');
	x = moved(p + 16 * PAGE, 4 * PAGE);
	grown = mremap(p + 16 * PAGE, 4 * PAGE, 64 * PAGE, MREMAP_MAYMOVE);
	assert_true(grown != MAP_FAILED);
	assert_int_equal(grown[0], 'a');
	assert_int_equal(grown[63 * PAGE], 0);
	memory_take_back(&x);
	munmap(grown, 64 * PAGE);
	munmap(p, BYTES);
}

static void a_child_has_its_own(void **state)
{
	char *p = some_memory();
	struct extent x;
	int status;
	pid_t child;

	needs_userfaultfd();
	memset(p, 'p', BYTES);
	x = moved(p, BYTES);
	child = fork();
	if (!child) {
		memory_copy_for_child(&x);
		if (p[0] != 'p' || p[BYTES - 1] != 'p')
			_exit(1);
		memset(p, 'c', BYTES);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(p[0], 'p');
	assert_int_equal(p[BYTES - 1], 'p');
	memory_take_back(&x);
	munmap(p, BYTES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(contents_stay),
		cmocka_unit_test(areas_are_told_apart),
		cmocka_unit_test(nothing_is_lost_under_writers),
		cmocka_unit_test(it_may_be_unmapped_and_grown),
		cmocka_unit_test(a_child_has_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
