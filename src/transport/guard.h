/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Access to the program's registered memory, which the program may have unmapped
 * (docs/MEMORY.md). An adapter pins pages, so that munmap() of memory that is still
 * registered hurts nobody. Here it would be a SIGSEGV, most often in a thread that the
 * program knows nothing of. So each load from registered memory and each store to it is
 * made by one of these functions, and a fault ends the copy and not the program:
 *
 *   a store    to a page that is gone is dropped, as what an adapter writes to a page
 *              that nobody maps any more is never seen
 *   a load     from one fails, since its contents are lost: the caller has an error for it
 *
 * Up to COPY_SHORT_BYTES are moved by single instructions, which a table lists with the place to
 * go on at after a fault: the method of the kernel's copies from and to user memory. They
 * cost what plain loads and stores cost. Longer copies are plain C or memcpy() inside
 * guard_run(), which notes where to go back to: 20 instructions more.
 *
 * A page that is there but lacks the right (mprotect()) is still read and written by an
 * adapter; guard_reach does the same.
 *
 * Who receives the signal calls guard_fix() (lib/libibverbs/faults.c). Where nobody does,
 * as in the simulator, all of these are plain loads and stores.
 */
#ifndef SOFTIB_TRANSPORT_GUARD_H
#define SOFTIB_TRANSPORT_GUARD_H

#include <stdatomic.h>

#include "base/copy.h"

/* a sanitizer sees no access that an asm makes: GCC's, clang's */
#if !defined(__x86_64__) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define GUARD_INLINE 0
#elif defined(__has_feature)
#define GUARD_INLINE (!__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer))
#else
#define GUARD_INLINE 1
#endif

/** guard_copy_fn - a way to copy. It may be left in the middle: it changes nothing but
 *  the bytes at @to, and *@ctx as it pleases */
typedef void guard_copy_fn(void *ctx, void *to, const void *from, size_t len);

/**
 * guard_run() - @copy, where @len bytes at @program, which is @to or @from, are the program's
 * Return: false: a fault there ended it
 */
bool guard_run(guard_copy_fn *copy, void *ctx, void *to, const void *from, size_t len,
	       const void *program);

/** guard_load_rest() - memcpy() of any length from the program's memory, page by page where
 *  a page is missing. Return: false: not all is there */
bool guard_load_rest(void *to, const void *from, size_t len);
/** guard_store_rest() - the same to it; what has no page is dropped */
void guard_store_rest(void *to, const void *from, size_t len);

/** guard_probe() - can all of it be loaded? One load for each page */
bool guard_probe(const void *at, size_t len);

/** guard_probe_write() - can all of it be stored to, nothing changed? An atomic for each page */
bool guard_probe_write(void *at, size_t len);

/** guard_fetch_add() - of an aligned word. Return: false: it is gone; else *@was is its old value */
bool guard_fetch_add(uint64_t *word, uint64_t add, uint64_t *was);
/** guard_compare_swap() - the same, if it is @compare */
bool guard_compare_swap(uint64_t *word, uint64_t compare, uint64_t swap, uint64_t *was);

/** enum guard_reached - what became of bytes on a page that exists without the right */
enum guard_reached {
	GUARD_UNKNOWN, /* it cannot be done: whoever took the right away has a handler, perhaps */
	GUARD_REACHED,
	GUARD_GONE, /* what the page stands for does not exist */
};

/**
 * guard_reach - move @len bytes of one page that exists without the right, at @program: from
 * @buf there if it is a @store, else the other way. NULL: nobody can
 */
extern enum guard_reached (*guard_reach)(void *program, void *buf, size_t len, bool store);

/** struct guard_atomic - add @operand; or is it @operand, then it becomes @swap */
struct guard_atomic {
	uint64_t operand, swap;
	bool is_swap;
};

/** guard_reach_atomic - the same of an aligned word. NULL: nobody can. Return: false: it cannot
 *  be done; else *@was is its old value */
extern bool (*guard_reach_atomic)(uint64_t *word, const struct guard_atomic *what, uint64_t *was);

/**
 * guard_fix() - an instruction of this thread failed to reach @address
 * @pc, @sp: of it; on return, where to go on
 * @exists: the page does, and only the right to it is missing
 *
 * Context: a signal handler. Return: false: the fault is not ours, nothing changed
 */
bool guard_fix(uintptr_t *pc, uintptr_t *sp, uintptr_t address, bool exists);

/* --- a few bytes --- */

#if GUARD_INLINE

/* the instruction at 1, and where to go on when it faults, relative to the entry itself */
#define GUARD_ENTRY                                                                            \
	".pushsection softib_guards, \"a\"\n\t"                                                \
	".long 1b - ., %l[gone] - .\n\t"                                                       \
	".popsection"

/* One load or store of @type at @at. GCC needs the empty asm: without it, it may take the
 * output for known before the load (its bug 110420). */
#define GUARD_GET(type, at)                                                                    \
	({                                                                                     \
		type value_;                                                                   \
		asm volatile goto("1: mov %1, %0\n\t" GUARD_ENTRY                              \
				  : "=r"(value_)                                               \
				  : "m"(*(const type *)(at))                                   \
				  :                                                            \
				  : gone);                                                     \
		asm volatile("");                                                              \
		value_;                                                                        \
	})
#define GUARD_PUT(type, at, value)                                                             \
	asm volatile goto("1: mov %1, %0\n\t" GUARD_ENTRY                                      \
			  : "=m"(*(type *)(at))                                                \
			  : "r"((type)(value))                                                 \
			  :                                                                    \
			  : gone)

#define GUARD_GET_BYTES(n, t, f) GUARD_GET_BYTES_##n(t, f)
#define GUARD_GET_BYTES_16(t, f)                                                               \
	do {                                                                                   \
		__m128i value_;                                                                \
		asm volatile goto("1: movups %1, %0\n\t" GUARD_ENTRY                           \
				  : "=x"(value_)                                               \
				  : "m"(*(const __m128i_u *)(f))                               \
				  :                                                            \
				  : gone);                                                     \
		asm volatile("");                                                              \
		_mm_storeu_si128((__m128i_u *)(t), value_);                                    \
	} while (0)
#define GUARD_GET_BYTES_8(t, f) GUARD_GET_AS(uint64_t, t, f)
#define GUARD_GET_BYTES_4(t, f) GUARD_GET_AS(uint32_t, t, f)
#define GUARD_GET_BYTES_2(t, f) GUARD_GET_AS(uint16_t, t, f)
#define GUARD_GET_BYTES_1(t, f) GUARD_GET_AS(uint8_t, t, f)
#define GUARD_GET_AS(type, t, f)                                                               \
	do {                                                                                   \
		type got_ = GUARD_GET(type, f);                                                \
		memcpy(t, &got_, sizeof(got_));                                                \
	} while (0)

#define GUARD_PUT_BYTES(n, t, f) GUARD_PUT_BYTES_##n(t, f)
#define GUARD_PUT_BYTES_16(t, f)                                                               \
	do {                                                                                   \
		__m128i value_ = _mm_loadu_si128((const __m128i_u *)(f));                      \
		asm volatile goto("1: movups %1, %0\n\t" GUARD_ENTRY                           \
				  : "=m"(*(__m128i_u *)(t))                                    \
				  : "x"(value_)                                                \
				  :                                                            \
				  : gone);                                                     \
	} while (0)
#define GUARD_PUT_BYTES_8(t, f) GUARD_PUT_AS(uint64_t, t, f)
#define GUARD_PUT_BYTES_4(t, f) GUARD_PUT_AS(uint32_t, t, f)
#define GUARD_PUT_BYTES_2(t, f) GUARD_PUT_AS(uint16_t, t, f)
#define GUARD_PUT_BYTES_1(t, f) GUARD_PUT_AS(uint8_t, t, f)
#define GUARD_PUT_AS(type, t, f)                                                               \
	do {                                                                                   \
		type put_;                                                                     \
		memcpy(&put_, f, sizeof(put_));                                                \
		GUARD_PUT(type, t, put_);                                                      \
	} while (0)

/* Copy up to COPY_SHORT_BYTES; more, and memory that is gone, is left to the label "gone". */
#define GUARD_SHORT(move, t, f, len)                                                           \
	do {                                                                                   \
		if (unlikely((len) > COPY_BRIEF_BYTES)) {                                      \
			if ((len) > COPY_SHORT_BYTES)                                          \
				goto gone;                                                     \
			COPY_FIRST(move, t, f, len);                                           \
		}                                                                              \
		COPY_SHORT(move, t, f, len);                                                   \
	} while (0)

/** guard_load() - memcpy() from the program's memory, of a few bytes more often than not.
 *  Return: false: not all is there */
static inline bool guard_load(void *to, const void *from, size_t len)
{
	char *t = to;
	const char *f = from;
	size_t left = len;

	GUARD_SHORT(GUARD_GET_BYTES, t, f, left);
	return true;
gone:
	return guard_load_rest(to, from, len);
}

/** guard_load_few() - load_few() from the program's memory, without a call. Return: false: it
 *  cannot be loaded so; guard_load() knows whether it is gone */
static inline bool guard_load_few(const void *from, size_t len, uint64_t *all)
{
	const uint8_t *f = from;

	*all = LOAD_FEW(GUARD_GET, f, len);
	return true;
gone:
	return false;
}

/** guard_load_word_spun_on() - copy_word_spun_on() from it, as guard_load_few() */
static inline bool guard_load_word_spun_on(void *to, const void *from, size_t len)
{
	char *t = to;
	const char *f = from;

	COPY_WORD_SPUN_ON(GUARD_GET_BYTES, t, f, len);
	return true;
gone:
	return false;
}

/** guard_store() - memcpy() to the program's memory; what is gone is dropped */
static inline void guard_store(void *to, const void *from, size_t len)
{
	char *t = to;
	const char *f = from;
	size_t left = len;

	GUARD_SHORT(GUARD_PUT_BYTES, t, f, left);
	return;
gone:
	guard_store_rest(to, from, len);
}

/** guard_store_word_spun_on() - copy_word_spun_on() to the program's memory */
static inline void guard_store_word_spun_on(void *to, const void *from, size_t len)
{
	char *t = to;
	const char *f = from;

	COPY_WORD_SPUN_ON(GUARD_PUT_BYTES, t, f, len);
	return;
gone:
	guard_store_rest(to, from, len);
}

#else

static inline bool guard_load(void *to, const void *from, size_t len)
{
	return guard_load_rest(to, from, len);
}

static inline bool guard_load_few(const void *from, size_t len, uint64_t *all)
{
	*all = 0;
	return guard_load_rest(all, from, len);
}

static inline bool guard_load_word_spun_on(void *to, const void *from, size_t len)
{
	uint64_t word;

	if (!guard_load_few(from, len, &word))
		return false;
	copy_word_spun_on(to, &word, len);
	return true;
}

static inline void guard_store(void *to, const void *from, size_t len)
{
	guard_store_rest(to, from, len);
}

void guard_store_word_spun_on(void *to, const void *from, size_t len);

#endif

/** guard_store_spun_on() - copy_spun_on() to the program's memory */
static inline void guard_store_spun_on(void *to, const void *from, size_t len)
{
	size_t first = len > 8 ? len - 8 : 0;

	if (first)
		guard_store(to, from, first);
	guard_store_word_spun_on((char *)to + first, (const char *)from + first, len - first);
}

/** guard_load_spun_on() - copy_spun_on() from the program's memory. Return: false: not all
 *  is there; of @to, some may be written */
static inline bool guard_load_spun_on(void *to, const void *from, size_t len)
{
	size_t first = len > 8 ? len - 8 : 0;
	const char *last = (const char *)from + first;
	uint64_t word;

	if (first && unlikely(!guard_load(to, from, first)))
		return false;
	if (likely(guard_load_word_spun_on((char *)to + first, last, len - first)))
		return true;
	if (!guard_load_rest(&word, last, len - first))
		return false;
	copy_word_spun_on((char *)to + first, &word, len - first);
	return true;
}

#endif
