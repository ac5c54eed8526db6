/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * SIGSEGV and SIGBUS of the library's own accesses to registered memory
 * (src/transport/guard.h). All others are passed on to whoever had the signal before: to the
 * program's handler, or to the end of the program.
 *
 * The program may set a handler of its own later. It is looked at when a device is opened,
 * when memory is registered and when a QP is made, and ours is put in front of it again.
 * A program that then restores what it found at first has ours again, and a handler that
 * calls the one it found may so come back to ours: then its fault goes to the one that was
 * there before all of ours.
 *
 * __sigaction() is what sigaction() is in glibc: UCX has put itself in the place of that,
 * and keeps others from these two signals.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "faults.h"
#include "soft.h"
#include "transport/guard.h"

#define CHANGES 64 /* of a signal's handler by the program that are followed */

int __sigaction(int number, const struct sigaction *action, struct sigaction *old);

static const int numbers[] = {SIGSEGV, SIGBUS};

/** struct earlier - the handler that a signal had before ours */
struct earlier {
	struct sigaction action;
	_Atomic bool spent; /* SA_RESETHAND: it was called, and is not called again */
};

/** struct follow - one of the two signals */
struct follow {
	struct earlier earlier[CHANGES]; /* immutable once counted; the newest is the last */
	_Atomic unsigned count;
};

static struct follow follow[ARRAY_SIZE(numbers)];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* --- faults of the program itself --- */

/* End the program at the instruction that failed, not at one of the library's. A signal that was
 * sent by kill() does not occur again by itself, so it is raised. */
static void end(int number, const siginfo_t *info)
{
	struct sigaction by_default = {.sa_handler = SIG_DFL};

	__sigaction(number, &by_default, NULL);
	if (info->si_code <= 0)
		syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), number);
}

static void call(const struct sigaction *a, int number, siginfo_t *info, void *context)
{
	sigset_t this, old;

	pthread_sigmask(SIG_BLOCK, &a->sa_mask, &old);
	if (a->sa_flags & SA_NODEFER) {
		sigemptyset(&this);
		sigaddset(&this, number);
		pthread_sigmask(SIG_UNBLOCK, &this, NULL);
	}
	if (a->sa_flags & SA_SIGINFO)
		a->sa_sigaction(number, info, context);
	else
		a->sa_handler(number);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* Did the handler to which this fault was passed call ours again? A mark in the signal's frame
 * tells: the kernel writes NULL there for each signal and never reads it. */
static bool comes_back(ucontext_t *context)
{
	static ucontext_t mark;
	bool back = context->uc_link == &mark;

	context->uc_link = &mark;
	return back;
}

/* is there a handler, and may it still be called? */
static bool handles(struct earlier *earlier)
{
	const struct sigaction *a = &earlier->action;

	return a->sa_handler != SIG_DFL && a->sa_handler != SIG_IGN &&
	       !(a->sa_flags & SA_RESETHAND && atomic_exchange(&earlier->spent, true));
}

static void pass_on(struct follow *f, int number, siginfo_t *info, void *context)
{
	unsigned count = atomic_load_explicit(&f->count, memory_order_acquire);
	bool back = comes_back(context);
	struct earlier *earlier = &f->earlier[back ? 0 : count - 1];

	if (handles(earlier))
		call(&earlier->action, number, info, context);
	else if (earlier->action.sa_handler != SIG_IGN || info->si_code > 0)
		end(number, info);
}

/* --- the handler --- */

/* where the program continues, and with which stack */
#if defined(__x86_64__)
#define PC(context) ((context)->uc_mcontext.gregs[REG_RIP])
#define SP(context) ((context)->uc_mcontext.gregs[REG_RSP])
#elif defined(__aarch64__)
#define PC(context) ((context)->uc_mcontext.pc)
#define SP(context) ((context)->uc_mcontext.sp)
#endif

#ifdef PC
static bool fix(int number, const siginfo_t *info, ucontext_t *context)
{
	uintptr_t pc = (uintptr_t)PC(context), sp = (uintptr_t)SP(context);
	bool exists = number == SIGSEGV && info->si_code == SEGV_ACCERR;

	if (info->si_code <= 0 || !guard_fix(&pc, &sp, (uintptr_t)info->si_addr, exists))
		return false;
	PC(context) = (__typeof__(PC(context)))pc;
	SP(context) = (__typeof__(SP(context)))sp;
	return true;
}
#else
static bool fix(int number, const siginfo_t *info, ucontext_t *context)
{
	return false;
}
#endif

static void on_fault(int number, siginfo_t *info, void *context)
{
	int error = errno;

	if (!fix(number, info, context))
		pass_on(&follow[number == SIGBUS], number, info, context);
	errno = error;
}

/* --- memory without the right --- */

enum guard_reached (*faults_reach_foreign)(void *program, void *buf, size_t len, bool store);

/* Like an adapter, /proc/self/mem ignores the rights of a mapping. Only what a shared mapping
 * never permitted is refused. Memory of another program is reached through that program. */
static enum guard_reached reach(void *program, void *buf, size_t len, bool store)
{
	enum guard_reached foreign = GUARD_UNKNOWN;
	ssize_t n = -1;
	int fd;

	if (faults_reach_foreign)
		foreign = faults_reach_foreign(program, buf, len, store);
	if (foreign != GUARD_UNKNOWN)
		return foreign;
	fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return GUARD_UNKNOWN;
	if (store)
		n = syscall(SYS_pwrite64, fd, buf, len, (off_t)(uintptr_t)program);
	else
		n = syscall(SYS_pread64, fd, buf, len, (off_t)(uintptr_t)program);
	close(fd);
	return n == (ssize_t)len ? GUARD_REACHED : GUARD_UNKNOWN;
}

/* --- coming --- */

/* under lock */
static void watch(struct follow *f, int number)
{
	/* On the thread's signal stack, if it has one: its own stack may be too small (Go). */
	struct sigaction mine = {.sa_sigaction = on_fault,
				 .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
	unsigned count = atomic_load_explicit(&f->count, memory_order_relaxed);
	struct sigaction now;

	if (__sigaction(number, NULL, &now) ||
	    (now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_fault) || count == CHANGES)
		return;
	f->earlier[count].action = now;
	atomic_store_explicit(&f->count, count + 1, memory_order_release);
	sigemptyset(&mine.sa_mask);
	__sigaction(number, &mine, NULL);
}

static bool is_unwanted(void)
{
	const char *wish = getenv("SOFTIB_GUARD");

	return wish && !strcmp(wish, "0");
}

void faults_watch(void)
{
	int error = errno;

	if (is_unwanted())
		return;
	pthread_mutex_lock(&lock);
	guard_reach = reach;
	for (unsigned i = 0; i < ARRAY_SIZE(numbers); i++)
		watch(&follow[i], numbers[i]);
	pthread_mutex_unlock(&lock);
	errno = error;
}
