/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Page faults in registered memory that the program has unmapped or protected (guard.h). The signal
 * handler lets execution continue behind the access that faulted, which then reports that it failed. For
 * a short access in assembly, a table that the linker assembles has this place (struct entry). A long
 * copy has noted it by __builtin_setjmp() (struct guard).
 */
#include "transport/guard.h"

#define PAGE_BYTES 4096u /* the smallest size of a page */

enum guard_reached (*guard_reach)(void *program, void *buf, size_t len, bool store);
bool (*guard_reach_atomic)(uint64_t *word, const struct guard_atomic *what, uint64_t *was);

/** struct guard - a long copy that is in progress in this thread */
struct guard {
	void *back[5]; /* of __builtin_setjmp() */
	uintptr_t program;
	size_t len;
	struct guard *before;
};

/* A signal handler reads these: none may be allocated when it is touched first. */
#define TLS static __thread __attribute__((tls_model("initial-exec")))
TLS struct guard *current;
TLS bool page_exists; /* of the last fault */

/* --- long copies --- */

noinline bool guard_run(guard_copy_fn *copy, void *ctx, void *to, const void *from, size_t len,
			const void *program)
{
	struct guard g = {.program = (uintptr_t)program, .len = len, .before = current};

	if (__builtin_setjmp(g.back)) {
		current = current->before;
		return false;
	}
	current = &g;
	atomic_signal_fence(memory_order_seq_cst);
	copy(ctx, to, from, len);
	atomic_signal_fence(memory_order_seq_cst);
	current = g.before;
	return true;
}

static void plain(void *ctx, void *to, const void *from, size_t len)
{
	memcpy(to, from, len);
}

static size_t in_page(const void *at, size_t len)
{
	return MIN(len, PAGE_BYTES - (uintptr_t)at % PAGE_BYTES);
}

/* Copy bytes of one page. Return: false: the page does not exist */
static bool move(void *to, const void *from, size_t len, void *program, void *buf, bool store)
{
	if (guard_run(plain, NULL, to, from, len, program))
		return true;
	if (!page_exists)
		return false;
	switch (guard_reach ? guard_reach(program, buf, len, store) : GUARD_UNKNOWN) {
	case GUARD_GONE:
		return false;
	case GUARD_UNKNOWN: /* the program's own handler knows why it took the right away */
		memcpy(to, from, len);
		break;
	case GUARD_REACHED:
		break;
	}
	return true;
}

bool guard_load_rest(void *to, const void *from, size_t len)
{
	char *t = to, *f = (char *)(uintptr_t)from;

	if (likely(guard_run(plain, NULL, t, f, len, f)))
		return true;
	for (size_t n; len; t += n, f += n, len -= n) {
		n = in_page(f, len);
		if (!move(t, f, n, f, t, false))
			return false;
	}
	return true;
}

void guard_store_rest(void *to, const void *from, size_t len)
{
	char *t = to, *f = (char *)(uintptr_t)from;

	if (likely(guard_run(plain, NULL, t, f, len, t)))
		return;
	for (size_t n; len; t += n, f += n, len -= n) {
		n = in_page(t, len);
		move(t, f, n, t, f, true);
	}
}

bool guard_probe(const void *at, size_t len)
{
	const char *page = at;
	char byte;

	for (size_t n; len; page += n, len -= n) {
		n = in_page(page, len);
		if (!guard_load(&byte, page, 1))
			return false;
	}
	return true;
}

bool guard_probe_write(void *at, size_t len)
{
	char *page = at;
	uint64_t was;

	for (size_t n; len; page += n, len -= n) {
		n = in_page(page, len);
		/* the word may begin before @at, in the same page: it stays what it is */
		if (!guard_fetch_add((uint64_t *)((uintptr_t)page & ~(uintptr_t)7), 0, &was))
			return false;
	}
	return true;
}

/* --- atomics --- */

/* An atomic faulted. If its page exists and only the access right is missing, somebody else may
 * perform it (guard_reach_atomic). Return: false: nobody has */
static bool atomic_elsewhere(uint64_t *word, const struct guard_atomic *a, uint64_t *was)
{
	return page_exists && guard_reach_atomic && guard_reach_atomic(word, a, was);
}

#if GUARD_INLINE

bool guard_fetch_add(uint64_t *word, uint64_t add, uint64_t *was)
{
	const struct guard_atomic a = {.operand = add};

	asm volatile goto("1: lock xaddq %0, %1\n\t" GUARD_ENTRY
			  : "+r"(add), "+m"(*word)
			  :
			  : "memory", "cc"
			  : gone);
	asm volatile("");
	*was = add;
	return true;
gone:
	return atomic_elsewhere(word, &a, was);
}

bool guard_compare_swap(uint64_t *word, uint64_t compare, uint64_t swap, uint64_t *was)
{
	const struct guard_atomic a = {compare, swap, .is_swap = true};

	asm volatile goto("1: lock cmpxchgq %2, %1\n\t" GUARD_ENTRY
			  : "+a"(compare), "+m"(*word)
			  : "r"(swap)
			  : "memory", "cc"
			  : gone);
	asm volatile("");
	*was = compare;
	return true;
gone:
	return atomic_elsewhere(word, &a, was);
}

#else

static void spun_on(void *ctx, void *to, const void *from, size_t len)
{
	copy_word_spun_on(to, from, len);
}

void guard_store_word_spun_on(void *to, const void *from, size_t len)
{
	if (!guard_run(spun_on, NULL, to, from, len, to))
		guard_store_rest(to, from, len);
}

struct atomic {
	const struct guard_atomic *what;
	uint64_t was;
};

static void atomic(void *ctx, void *word, const void *unused, size_t len)
{
	struct atomic *a = ctx;

	a->was = a->what->operand;
	if (a->what->is_swap)
		__atomic_compare_exchange_n((uint64_t *)word, &a->was, a->what->swap, false,
					    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	else
		a->was = __atomic_fetch_add((uint64_t *)word, a->what->operand, __ATOMIC_SEQ_CST);
}

static bool run_atomic(uint64_t *word, const struct guard_atomic *what, uint64_t *was)
{
	struct atomic a = {.what = what};
	bool done = guard_run(atomic, &a, word, NULL, sizeof(*word), word);

	*was = a.was;
	return done || atomic_elsewhere(word, what, was);
}

bool guard_fetch_add(uint64_t *word, uint64_t add, uint64_t *was)
{
	return run_atomic(word, &(struct guard_atomic){.operand = add}, was);
}

bool guard_compare_swap(uint64_t *word, uint64_t compare, uint64_t swap, uint64_t *was)
{
	return run_atomic(word, &(struct guard_atomic){compare, swap, .is_swap = true}, was);
}

#endif

/* --- the signal --- */

/* execution continues here instead of at the instruction that failed */
_Noreturn static void go_back(void)
{
	__builtin_longjmp(current->back, 1);
}

/* The stack pointer for a function that begins to run in the place of the one that faulted. The
 * latter may use 128 bytes below its stack pointer (x86-64's red zone). */
static uintptr_t stack_of_callee(uintptr_t sp)
{
	sp = (sp - 128) & ~(uintptr_t)15;
#ifdef __x86_64__
	sp -= sizeof(sp); /* where to return to */
#endif
	return sp;
}

static bool fix_run(uintptr_t *pc, uintptr_t *sp, uintptr_t address)
{
	if (!current || address - current->program >= current->len)
		return false;
	*pc = (uintptr_t)go_back;
	*sp = stack_of_callee(*sp);
	return true;
}

#if GUARD_INLINE

/** struct entry - an entry of the table; both offsets are relative to their own address */
struct entry {
	int32_t at, to;
};

extern const struct entry __start_softib_guards[] __attribute__((visibility("hidden")));
extern const struct entry __stop_softib_guards[] __attribute__((visibility("hidden")));

static uintptr_t place(const int32_t *relative)
{
	return (uintptr_t)relative + (uintptr_t)(intptr_t)*relative;
}

static bool fix_few(uintptr_t *pc)
{
	for (const struct entry *e = __start_softib_guards; e < __stop_softib_guards; e++) {
		if (place(&e->at) == *pc) {
			*pc = place(&e->to);
			return true;
		}
	}
	return false;
}

#else

static bool fix_few(uintptr_t *pc)
{
	return false;
}

#endif

bool guard_fix(uintptr_t *pc, uintptr_t *sp, uintptr_t address, bool exists)
{
	if (!fix_few(pc) && !fix_run(pc, sp, address))
		return false;
	page_exists = exists;
	return true;
}
