/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Fibers on ucontext(3). Each has the stack of whoever let it run to go back to: the
 * loop's, or that of a fiber that has started another one. A page without rights below
 * the stack turns an overflow into a SIGSEGV. Sanitizers are told of each switch, or
 * they would take one stack for another.
 */
#include "runtime/fiber.h"

#include <errno.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define FIBER_ASAN 1
#elif defined(__has_feature)
#define FIBER_ASAN __has_feature(address_sanitizer)
#endif
#if defined(__SANITIZE_THREAD__)
#define FIBER_TSAN 1
#elif defined(__has_feature)
#define FIBER_TSAN __has_feature(thread_sanitizer)
#endif
#ifndef FIBER_ASAN
#define FIBER_ASAN 0
#endif
#ifndef FIBER_TSAN
#define FIBER_TSAN 0
#endif
#if FIBER_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if FIBER_TSAN
#include <sanitizer/tsan_interface.h>
#endif

#define STACK_BYTES ((size_t)512 << 10) /* the kernel gives memory to pages that are used */

/** struct side - one of the two between which a switch goes, as sanitizers know it */
struct side {
	ucontext_t context;
	const void *stack; /* the lowest address */
	size_t bytes;
	void *fake_stack, *tsan;
};

struct rt_fiber {
	struct side own, resumer;
	struct rt_fiber *outer; /* who ran when this was resumed; NULL: the loop */
	struct rt *rt;
	struct rt_work wake;
	void (*fn)(void *arg);
	void *arg, *owner;
	char *mapping; /* the guard page, then the stack */
	size_t mapping_bytes;
	bool ended;
};

static struct rt_fiber *current; /* fibers are of the one thread that runs the loops */

struct rt_fiber *rt_fiber_current(void)
{
	return current;
}

struct rt *rt_fiber_rt(const struct rt_fiber *fiber)
{
	return fiber->rt;
}

void *rt_fiber_owner(const struct rt_fiber *fiber)
{
	return fiber->owner;
}

void rt_fiber_set_owner(struct rt_fiber *fiber, void *owner)
{
	fiber->owner = owner;
}

/* --- switches --- */

static void leave(struct side *from, const struct side *to, bool for_ever)
{
#if FIBER_ASAN
	__sanitizer_start_switch_fiber(for_ever ? NULL : &from->fake_stack, to->stack, to->bytes);
#endif
#if FIBER_TSAN
	from->tsan = __tsan_get_current_fiber();
	__tsan_switch_to_fiber(to->tsan, 0);
#endif
}

/* @came_from: its stack is known from here on */
static void arrive(struct side *at, struct side *came_from)
{
#if FIBER_ASAN
	__sanitizer_finish_switch_fiber(at->fake_stack, &came_from->stack, &came_from->bytes);
#endif
}

static void unmap(struct rt_fiber *fiber)
{
#if FIBER_TSAN
	__tsan_destroy_fiber(fiber->own.tsan);
#endif
#if FIBER_ASAN /* what its last frames left must not be held against the next mapping */
	__asan_unpoison_memory_region(fiber->own.stack, fiber->own.bytes);
#endif
	munmap(fiber->mapping, fiber->mapping_bytes);
	rt_free(fiber);
}

static void resume(struct rt_fiber *fiber)
{
	fiber->outer = current;
	current = fiber;
	leave(&fiber->resumer, &fiber->own, false);
	swapcontext(&fiber->resumer.context, &fiber->own.context);
	arrive(&fiber->resumer, &fiber->own);
	current = fiber->outer;
	if (!fiber->ended)
		return;
	rt_work_cancel(&fiber->wake);
	unmap(fiber);
}

static void run(void)
{
	struct rt_fiber *fiber = current;

	arrive(&fiber->own, &fiber->resumer);
	fiber->fn(fiber->arg);
	fiber->ended = true;
	leave(&fiber->own, &fiber->resumer, true);
	setcontext(&fiber->resumer.context);
	__builtin_unreachable();
}

void rt_fiber_sleep(void)
{
	struct rt_fiber *fiber = current;

	leave(&fiber->own, &fiber->resumer, false);
	swapcontext(&fiber->own.context, &fiber->resumer.context);
	arrive(&fiber->own, &fiber->resumer);
}

/* --- a fiber's life --- */

static void on_wake(struct rt_work *work)
{
	resume(container_of(work, struct rt_fiber, wake));
}

void rt_fiber_wake(struct rt_fiber *fiber)
{
	rt_work_queue(fiber->rt, &fiber->wake);
}

static bool map(struct rt_fiber *fiber)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	fiber->mapping_bytes = page + STACK_BYTES;
	fiber->mapping = mmap(NULL, fiber->mapping_bytes, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
	if (fiber->mapping == MAP_FAILED)
		return false;
	if (mprotect(fiber->mapping, page, PROT_NONE)) {
		munmap(fiber->mapping, fiber->mapping_bytes);
		return false;
	}
	fiber->own.stack = fiber->mapping + page;
	fiber->own.bytes = STACK_BYTES;
	return true;
}

int rt_fiber_start(struct rt *rt, void (*fn)(void *arg), void *arg, void *owner)
{
	struct rt_fiber *fiber = rt_zalloc(sizeof(*fiber));

	if (!fiber || !map(fiber)) {
		rt_free(fiber);
		return -ENOMEM;
	}
	fiber->rt = rt;
	fiber->fn = fn;
	fiber->arg = arg;
	fiber->owner = owner;
	rt_work_init(&fiber->wake, on_wake);
	getcontext(&fiber->own.context);
	fiber->own.context.uc_stack.ss_sp = (void *)fiber->own.stack;
	fiber->own.context.uc_stack.ss_size = fiber->own.bytes;
	makecontext(&fiber->own.context, run, 0);
#if FIBER_TSAN
	fiber->own.tsan = __tsan_create_fiber(0);
#endif
	resume(fiber);
	return 0;
}
