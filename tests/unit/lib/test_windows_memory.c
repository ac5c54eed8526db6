/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Memory that moves under a memfd and back while threads and system calls
 * write it: nothing is lost, nobody fails, a child has a copy of its own.
 *
 *   test_lib_windows_memory [nobody]
 *
 * As nobody: what an ordinary user's program gets, whoever runs this.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "../test.h"

#include "../../../lib/libibverbs/threads.h"
#include "../../../lib/libibverbs/windows_memory.h"

/* The copy is made while nobody can write: an order that ThreadSanitizer does
 * not see. */
__attribute__((visibility("default"))) const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
	return "race:^fill$\n";
}

#define PAGE ((size_t)4096)
#define BYTES ((size_t)5 << 20) /* a huge page and what is around it */
#define ROUNDS 20
#ifndef PROCMAP_QUERY /* Linux 6.11 */
#define PROCMAP_QUERY _IOC(_IOC_READ | _IOC_WRITE, 'f', 17, 104)
#endif

static char *some_memory(void)
{
	char *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(p != MAP_FAILED);
	return p;
}

/* where the system does not let us hold off writers, nothing may move */
static void needs_userfaultfd(void)
{
	if (memory_moves() == MEMORY_STAYS)
		skip();
	while (!memory_can_move()) /* a thread that was joined may be there still */
		sched_yield();
}

static struct extent moved(char *addr, size_t bytes)
{
	struct extent x = {.addr = addr, .bytes = bytes};

	assert_int_equal(memory_move_out(&x), 0);
	assert_int_equal(x.bytes, bytes);
	return x;
}

static void contents_stay_with(int advice)
{
	char *p = some_memory(), *other;
	struct extent x;

	needs_userfaultfd();
	madvise(p, BYTES, advice);
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

static void contents_stay(void **state)
{
	contents_stay_with(MADV_NORMAL);
	contents_stay_with(MADV_HUGEPAGE);
}

static void untouched_memory_is_zero(void **state)
{
	char *p = some_memory();
	struct extent x;

	needs_userfaultfd();
	p[PAGE] = 'a';
	x = moved(p, BYTES);
	for (size_t i = 0; i < BYTES; i++)
		assert_int_equal(p[i], i == PAGE ? 'a' : 0);
	memory_take_back(&x);
	for (size_t i = 0; i < BYTES; i++)
		assert_int_equal(p[i], i == PAGE ? 'a' : 0);
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
	p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(memory_area_at(p, &a) && !a.movable);
	munmap(p, BYTES);
}

/* as if Linux had no PROCMAP_QUERY: every ioctl() of /proc is unknown */
static void forbid_queries(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PROCMAP_QUERY, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOTTY),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

	assert_int_equal(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	assert_int_equal(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

static bool same_area(const struct area *a, const struct area *b)
{
	return a->start == b->start && a->end == b->end && a->offset == b->offset &&
	       a->dev == b->dev && a->inode == b->inode && a->prot == b->prot &&
	       a->movable == b->movable;
}

static void older_systems_tell_the_same(void **state)
{
	char *p = some_memory();
	const char *where[] = {p, p + PAGE, p + 3 * PAGE, (char *)forbid_queries,
			       __builtin_frame_address(0)};
	struct area before[5], now;
	struct extent x;
	int status;
	pid_t child;

	needs_userfaultfd();
	mprotect(p + PAGE, PAGE, PROT_READ);
	x = moved(p + 2 * PAGE, 4 * PAGE);
	for (int i = 0; i < 5; i++)
		assert_true(memory_area_at(where[i], &before[i]));
	child = fork();
	if (!child) {
		forbid_queries();
		for (int i = 0; i < 5; i++)
			if (!memory_area_at(where[i], &now) || !same_area(&now, &before[i]))
				_exit(1 + i);
		_exit(memory_area_at(NULL, &now) ? 9 : 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	memory_take_back(&x);
	munmap(p, BYTES);
}

/* Return: a descriptor of this process that is /proc/PID/maps; -1 */
static int opened_maps(void)
{
	char path[64], target[64];

	for (int fd = 0; fd < 64; fd++) {
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n = readlink(path, target, sizeof(target));
		if (n > 5 && !memcmp(target + n - 5, "/maps", 5))
			return fd;
	}
	return -1;
}

/* The file stays open; a program may close what it did not open, and have
 * another file there; and a child's memory is not its parent's. */
static void areas_are_told_by_ones_own_file(void **state)
{
	char *p = some_memory();
	struct area a;
	int fd, again, null, status;
	pid_t child;

	assert_true(memory_area_at(p, &a));
	fd = opened_maps();
	if (fd < 0) /* the system tells by text alone */
		skip();
	child = fork();
	if (!child) {
		munmap(p, PAGE);
		_exit(memory_area_at(p, &a) ? 1 : 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	null = open("/dev/null", O_RDONLY);
	assert_int_equal(dup2(null, fd), fd);
	assert_true(memory_area_at(p, &a) && a.start <= p && a.end > p);
	assert_true(fcntl(fd, F_GETFD) >= 0);
	again = opened_maps();
	assert_true(again >= 0 && again != fd);
	assert_int_equal(dup2(null, again), again);
	memory_areas_forget(); /* as a child does */
	assert_true(fcntl(again, F_GETFD) >= 0);
	close(again);
	close(null);
	close(fd);
	munmap(p, BYTES);
}

static void a_file_stays(void **state)
{
	int fd = memfd_create("another's", MFD_CLOEXEC);
	struct area a;
	char *p;

	assert_int_equal(ftruncate(fd, (off_t)PAGE), 0);
	p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	assert_true(p != MAP_FAILED && memory_area_at(p, &a) && !a.movable && a.inode);
	munmap(p, PAGE);
	close(fd);
}

static void locked_memory_stays(void **state)
{
	char *p = some_memory();
	struct extent x = {.addr = p, .bytes = 4 * PAGE};

	needs_userfaultfd();
	if (syscall(SYS_mlock, p + PAGE, PAGE)) /* mlock() of a sanitizer does nothing */
		skip();
	assert_int_equal(memory_move_out(&x), -EBUSY);
	munmap(p, BYTES);
}

/* --- writers --- */

struct writer {
	char *memory;
	unsigned index;
	_Atomic bool stop;
	_Atomic uint64_t rounds;
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
		uint64_t round = ++w->rounds;

		for (size_t at = w->index * 8; !w->error && at < BYTES; at += PAGE)
			if (write(fds[1], &round, 8) != 8 || read(fds[0], w->memory + at, 8) != 8)
				w->error = errno;
	}
	close(fds[0]);
	close(fds[1]);
	return NULL;
}

static void start_writers(struct writer w[3], pthread_t thread[3], char *p)
{
	void *(*const what[])(void *) = {add, add, read_into};

	for (unsigned i = 0; i < 3; i++) {
		w[i] = (struct writer){.memory = p, .index = i};
		assert_int_equal(pthread_create(&thread[i], NULL, what[i], &w[i]), 0);
	}
}

static void stop_writers(struct writer w[3], pthread_t thread[3], const char *p)
{
	for (unsigned i = 0; i < 3; i++) {
		atomic_store(&w[i].stop, true);
		pthread_join(thread[i], NULL);
		assert_int_equal(w[i].error, 0);
		for (size_t at = i * 8; at < BYTES; at += PAGE)
			assert_int_equal(*(uint64_t *)(p + at), w[i].rounds);
	}
}

static void nothing_is_lost_under_writers(void **state)
{
	struct writer w[3];
	pthread_t thread[3];
	char *p = some_memory();

	needs_userfaultfd();
	start_writers(w, thread, p);
	assert_int_equal(memory_can_move(), memory_moves() == MEMORY_MOVES);
	for (int i = 0; i < ROUNDS && memory_can_move(); i++) {
		struct extent x = moved(p + PAGE, BYTES - 3 * PAGE);

		memory_take_back(&x);
	}
	stop_writers(w, thread, p);
	munmap(p, BYTES);
}

static void *add_as_one_of_ours(void *arg)
{
	threads_begin();
	add(arg);
	threads_end();
	return NULL;
}

/* the engine's thread receives packets while the program registers memory */
static void nothing_of_our_own_threads_is_lost(void **state)
{
	struct writer w[2];
	pthread_t thread[2];
	char *p = some_memory();

	needs_userfaultfd();
	for (unsigned i = 0; i < 2; i++) {
		w[i] = (struct writer){.memory = p, .index = i};
		assert_int_equal(pthread_create(&thread[i], NULL, add_as_one_of_ours, &w[i]), 0);
		threads_created();
	}
	for (int i = 0; i < ROUNDS; i++) {
		struct extent x;

		assert_true(memory_can_move());
		x = moved(p + PAGE, BYTES - 3 * PAGE);
		memory_take_back(&x);
	}
	for (unsigned i = 0; i < 2; i++) {
		atomic_store(&w[i].stop, true);
		pthread_join(thread[i], NULL);
		for (size_t at = i * 8; at < BYTES; at += PAGE)
			assert_int_equal(*(uint64_t *)(p + at), w[i].rounds);
	}
	munmap(p, BYTES);
}

/* a program that moved alone, and has threads when its region ends */
static void nothing_is_lost_when_taken_from_writers(void **state)
{
	struct writer w[3];
	pthread_t thread[3];
	char *p = some_memory();

	for (int i = 0; i < ROUNDS; i++) {
		struct extent x;

		needs_userfaultfd();
		x = moved(p + PAGE, BYTES - 3 * PAGE);
		memset(p, 0, BYTES);
		start_writers(w, thread, p);
		while (!atomic_load(&w[2].rounds))
			sched_yield();
		memory_take_back(&x);
		stop_writers(w, thread, p);
	}
	munmap(p, BYTES);
}

/* --- the mover's own --- */

static char *signalled;
static volatile sig_atomic_t num_signals;

static void on_alarm(int number)
{
	for (size_t at = 0; at < BYTES; at += 64 * PAGE)
		++*(volatile uint64_t *)(signalled + at);
	num_signals++;
}

static void a_handler_may_write(void **state)
{
	struct itimerval often = {{0, 100}, {0, 100}}, never = {{0}};
	struct sigaction act = {.sa_handler = on_alarm}, old;
	char *p = signalled = some_memory();

	needs_userfaultfd();
	sigaction(SIGALRM, &act, &old);
	num_signals = 0; /* before the first one can come */
	setitimer(ITIMER_REAL, &often, NULL);
	while (num_signals < 200) {
		struct extent x = moved(p, BYTES);

		memory_take_back(&x);
	}
	setitimer(ITIMER_REAL, &never, NULL);
	sigaction(SIGALRM, &old, NULL);
	for (size_t at = 0; at < BYTES; at += 64 * PAGE)
		assert_int_equal(*(uint64_t *)(p + at), num_signals);
	munmap(p, BYTES);
}

static struct extent of_stack;
static int answer;

static void move_the_stack(void)
{
	answer = memory_move_out(&of_stack);
}

static void the_stack_that_it_runs_on_stays(void **state)
{
	char *p = some_memory();
	ucontext_t there, back;

	needs_userfaultfd();
	getcontext(&there);
	there.uc_stack.ss_sp = p;
	there.uc_stack.ss_size = BYTES;
	there.uc_link = &back;
	makecontext(&there, move_the_stack, 0);
	of_stack = (struct extent){.addr = p, .bytes = BYTES};
	swapcontext(&back, &there);
	assert_int_equal(answer, -ENOMEM);
	munmap(p, BYTES);
}

static void a_limit_of_file_sizes_kills_nobody(void **state)
{
	char *p = some_memory();
	int status;
	pid_t child;

	needs_userfaultfd();
	child = fork();
	if (!child) {
		struct rlimit small = {1 << 20, 1 << 20};
		struct extent x = {.addr = p, .bytes = PAGE};

		setrlimit(RLIMIT_FSIZE, &small);
		_exit(memory_move_out(&x) == -EFBIG ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	munmap(p, BYTES);
}

/* --- a memfd that is made ahead --- */

static void a_file_made_ahead_is_used(void **state)
{
	char *p = some_memory();
	struct extent x = {.addr = p, .bytes = PAGE};
	ino_t inode;
	int fd;

	needs_userfaultfd();
	p[0] = 'a';
	assert_int_equal(memory_make_file(&x), 0);
	fd = x.memfd;
	inode = x.inode;
	assert_int_equal(memory_move_out(&x), 0);
	assert_int_equal(x.memfd, fd);
	assert_int_equal(x.inode, inode);
	assert_int_equal(pread(fd, p + PAGE, 1, x.offset), 1);
	assert_int_equal(p[PAGE], 'a');
	memory_take_back(&x);
	munmap(p, BYTES);
}

/* A peer that holds the file can neither take pages from us, nor change its seals */
static void a_file_is_sealed(void **state)
{
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW;
	struct extent x = {0};

	assert_int_equal(memory_make_file(&x), 0);
	assert_int_equal(fcntl(x.memfd, F_GET_SEALS), seals);
	assert_int_equal(ftruncate(x.memfd, 0), -1);
	assert_true(memory_seal(&x, false));
	assert_true(memory_seal(&x, false));
	assert_false(memory_seal(&x, true)); /* somebody may write it by now */
	assert_int_equal(fcntl(x.memfd, F_GET_SEALS), seals | F_SEAL_SEAL);
	memory_drop_file(&x);
}

static void *wait_for_end(void *arg)
{
	pthread_mutex_lock(arg);
	pthread_mutex_unlock(arg);
	return NULL;
}

/* nor, when it is for reading, write it: we do, and have it back as any other */
static void a_file_for_reading_is_written_by_its_owner_alone(void **state)
{
	pthread_mutex_t until = PTHREAD_MUTEX_INITIALIZER;
	char *p = some_memory(), path[32];
	struct extent x;
	pthread_t thread;
	int again;

	needs_userfaultfd();
	memset(p, 'a', BYTES);
	x = moved(p, BYTES);
	assert_true(memory_seal(&x, true));
	p[1] = 'b';
	snprintf(path, sizeof(path), "/proc/self/fd/%d", x.memfd);
	again = open(path, O_RDWR | O_CLOEXEC);
	assert_true(again >= 0);
	assert_int_equal(pwrite(again, "x", 1, x.offset), -1);
	assert_ptr_equal(mmap(NULL, PAGE, PROT_WRITE, MAP_SHARED, again, x.offset), MAP_FAILED);
	assert_int_equal(pread(again, path, 2, x.offset), 2);
	assert_memory_equal(path, "ab", 2);
	pthread_mutex_lock(&until);
	pthread_create(&thread, NULL, wait_for_end, &until);
	memory_take_back(&x);
	assert_int_equal(p[1], 'b');
	assert_int_equal(p[BYTES - 1], 'a');
	assert_int_equal(madvise(p, PAGE, MADV_DONTNEED), 0);
	assert_int_equal(p[1], 0);
	assert_int_equal(p[PAGE], 'a');
	pthread_mutex_unlock(&until);
	pthread_join(thread, NULL);
	close(again);
	munmap(p, BYTES);
}

/* the program closed it, and opened one of its own */
static void another_file_under_its_number_is_left_alone(void **state)
{
	char *p = some_memory();
	struct extent x = {.addr = p, .bytes = PAGE};
	int other = memfd_create("program's", MFD_CLOEXEC), fd;

	needs_userfaultfd();
	assert_int_equal(memory_make_file(&x), 0);
	fd = x.memfd;
	assert_int_equal(dup2(other, fd), fd);
	assert_int_equal(memory_move_out(&x), 0);
	assert_int_not_equal(x.memfd, fd);
	assert_int_equal(lseek(fd, 0, SEEK_END), 0);
	memory_take_back(&x);
	assert_int_equal(memory_make_file(&x), 0);
	fd = x.memfd;
	assert_int_equal(dup2(other, fd), fd);
	memory_drop_file(&x);
	assert_int_equal(close(fd), 0);
	close(other);
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

static void rights_stay(void **state)
{
	char *p = some_memory();
	struct extent x;
	struct area a;

	needs_userfaultfd();
	memset(p, 'a', 8 * PAGE);
	x = moved(p, 8 * PAGE);
	mprotect(p + 2 * PAGE, PAGE, PROT_READ);
	mprotect(p + 4 * PAGE, PAGE, PROT_NONE);
	memory_take_back(&x);
	assert_true(memory_area_at(p + 2 * PAGE, &a) && a.prot == PROT_READ);
	assert_true(memory_area_at(p + 4 * PAGE, &a) && a.prot == PROT_NONE);
	mprotect(p + 4 * PAGE, PAGE, PROT_READ);
	for (size_t at = 0; at < 8 * PAGE; at += PAGE)
		assert_int_equal(p[at], 'a');
	munmap(p, BYTES);
}

/* What is given up is zero, as private memory's; and it may move again. The
 * other thread has it taken back in the way that is always possible. */
static void what_is_given_up_is_zero(void **state)
{
	pthread_mutex_t until = PTHREAD_MUTEX_INITIALIZER;
	char *p = some_memory();
	pthread_t thread;
	struct extent x;
	struct area a;

	needs_userfaultfd();
	memset(p, 'a', BYTES);
	x = moved(p, BYTES);
	pthread_mutex_lock(&until);
	pthread_create(&thread, NULL, wait_for_end, &until);
	memory_take_back(&x);
	assert_int_equal(p[0], 'a');
	assert_int_equal(p[BYTES - 1], 'a');
	assert_int_equal(madvise(p, 4 * PAGE, MADV_DONTNEED), 0);
	for (size_t i = 0; i < 4 * PAGE; i++)
		assert_int_equal(p[i], 0);
	assert_int_equal(p[4 * PAGE], 'a');
	pthread_mutex_unlock(&until);
	pthread_join(thread, NULL);
	needs_userfaultfd();
	assert_true(memory_area_at(p, &a) && a.movable);
	x = moved(p, BYTES);
	assert_int_equal(p[3], 0);
	assert_int_equal(p[4 * PAGE], 'a');
	memory_take_back(&x);
	assert_true(memory_area_at(p, &a) && !a.inode);
	munmap(p, BYTES);
}

/* address space for small things, not for copies of an extent */
static void want_room(void)
{
	unsigned long pages = 0;
	FILE *statm = fopen("/proc/self/statm", "r");
	struct rlimit most;

	if (fscanf(statm, "%lu", &pages) != 1)
		_exit(2);
	fclose(statm);
	most.rlim_cur = most.rlim_max = (pages + BYTES / PAGE / 2) * PAGE;
	if (setrlimit(RLIMIT_AS, &most))
		_exit(3);
}

static void child_has_its_own(bool has_room)
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
		if (!has_room)
			want_room();
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

static void a_child_has_its_own(void **state)
{
	child_has_its_own(true);
}

static void a_child_without_room_has_its_own(void **state)
{
	child_has_its_own(false);
}

static void be_nobody(void)
{
	const gid_t nogroup = 65534;

	if (geteuid())
		return;
	assert_int_equal(setgroups(0, NULL) || setresgid(nogroup, nogroup, nogroup) ||
				 setresuid(65534, 65534, 65534), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(contents_stay),
		cmocka_unit_test(untouched_memory_is_zero),
		cmocka_unit_test(areas_are_told_apart),
		cmocka_unit_test(older_systems_tell_the_same),
		cmocka_unit_test(areas_are_told_by_ones_own_file),
		cmocka_unit_test(a_file_stays),
		cmocka_unit_test(locked_memory_stays),
		cmocka_unit_test(nothing_is_lost_under_writers),
		cmocka_unit_test(nothing_of_our_own_threads_is_lost),
		cmocka_unit_test(nothing_is_lost_when_taken_from_writers),
		cmocka_unit_test(a_handler_may_write),
		cmocka_unit_test(the_stack_that_it_runs_on_stays),
		cmocka_unit_test(a_limit_of_file_sizes_kills_nobody),
		cmocka_unit_test(a_file_made_ahead_is_used),
		cmocka_unit_test(a_file_is_sealed),
		cmocka_unit_test(a_file_for_reading_is_written_by_its_owner_alone),
		cmocka_unit_test(another_file_under_its_number_is_left_alone),
		cmocka_unit_test(it_may_be_unmapped_and_grown),
		cmocka_unit_test(rights_stay),
		cmocka_unit_test(what_is_given_up_is_zero),
		cmocka_unit_test(a_child_has_its_own),
		cmocka_unit_test(a_child_without_room_has_its_own),
	};

	if (argc > 1)
		be_nobody();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
