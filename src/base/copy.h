/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Copies: too short to be worth a call; into memory that somebody spins on; and of much. */
#ifndef SOFTIB_BASE_COPY_H
#define SOFTIB_BASE_COPY_H

#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "base/types.h"

#define COPY_BRIEF_BYTES 64 /* at most, by COPY_SHORT() */
#define COPY_SHORT_BYTES 96 /* ... and behind COPY_FIRST() */

#define COPY_PLAIN(n, t, f) memcpy(t, f, n)
#define LOAD_PLAIN(type, at)                                                   \
	({                                                                     \
		type value_;                                                   \
		memcpy(&value_, at, sizeof(value_));                           \
		value_;                                                        \
	})

/* The functions below, by any way to move n bytes or to load a type: that of memory
 * which may be gone is another (transport/guard.h). @t, @f: char pointers */
#define COPY_SHORT(move, t, f, len)                                            \
	do {                                                                   \
		if (likely((len) == 8)) {                                      \
			move(8, t, f);                                         \
		} else if ((len) >= 16) {                                      \
			if ((len) > 32) {                                      \
				if ((len) > 48)                                \
					move(16, (t) + 32, (f) + 32);          \
				move(16, (t) + 16, (f) + 16);                  \
			}                                                      \
			move(16, t, f);                                        \
			move(16, (t) + (len) - 16, (f) + (len) - 16);          \
		} else if ((len) > 8) {                                        \
			move(8, t, f);                                         \
			move(8, (t) + (len) - 8, (f) + (len) - 8);             \
		} else if ((len) >= 4) {                                       \
			move(4, t, f);                                         \
			move(4, (t) + (len) - 4, (f) + (len) - 4);             \
		} else {                                                       \
			for (size_t i_ = 0; i_ < (len); i_++)                  \
				move(1, (t) + i_, (f) + i_);                   \
		}                                                              \
	} while (0)

/* the first bytes of more than COPY_BRIEF_BYTES; the others are left for COPY_SHORT() */
#define COPY_FIRST(move, t, f, len)                                            \
	do {                                                                   \
		move(16, t, f);                                                \
		move(16, (t) + 16, (f) + 16);                                  \
		(t) += 32;                                                     \
		(f) += 32;                                                     \
		(len) -= 32;                                                   \
	} while (0)

#define LOAD_FEW(load, f, len)                                                 \
	({                                                                     \
		uint64_t all_;                                                 \
                                                                               \
		if (likely((len) == 8)) {                                      \
			all_ = load(uint64_t, f);                              \
		} else if ((len) >= 4) {                                       \
			uint32_t low_ = load(uint32_t, f);                     \
			uint32_t high_ = load(uint32_t, (f) + (len) - 4);      \
                                                                               \
			all_ = low_ | (uint64_t)high_ << 8 * ((len) - 4);      \
		} else if (len) {                                              \
			uint64_t first_ = load(uint8_t, f);                    \
			uint64_t mid_ = load(uint8_t, (f) + (len) / 2);        \
			uint64_t last_ = load(uint8_t, (f) + (len) - 1);       \
                                                                               \
			all_ = first_ | mid_ << 8 * ((len) / 2) |              \
			       last_ << 8 * ((len) - 1);                       \
		} else {                                                       \
			all_ = 0;                                              \
		}                                                              \
		all_;                                                          \
	})

/** copy_short() - memcpy() of a few bytes, COPY_SHORT_BYTES at most: up to six moves, which
 *  overlap where the length is no power of two */
static inline void copy_short(void *to, const void *from, size_t len)
{
	char *t = to;
	const char *f = from;

	if (unlikely(len > COPY_BRIEF_BYTES))
		COPY_FIRST(COPY_PLAIN, t, f, len);
	COPY_SHORT(COPY_PLAIN, t, f, len);
}

/** load_few() - @len bytes, 8 at most, the first one lowest; read by loads that no
 *  store before was narrower than, where the program stored them as they are long */
static inline uint64_t load_few(const void *from, size_t len)
{
	const uint8_t *f = from;

	return LOAD_FEW(LOAD_PLAIN, f, len);
}

/** copy_few() - memcpy(), of a few bytes more often than not */
static inline void copy_few(void *to, const void *from, size_t len)
{
	/* the first comparison is that of copy_short() */
	if (unlikely(len > COPY_BRIEF_BYTES && len > COPY_SHORT_BYTES))
		memcpy(to, from, len);
	else
		copy_short(to, from, len);
}

/* one store, when the length has this bit */
#define COPY_STORE(move, n, t, f, len)                                         \
	do {                                                                   \
		if ((len) & (n)) {                                             \
			move(n, t, f);                                         \
			t += (n);                                              \
			f += (n);                                              \
		}                                                              \
	} while (0)

/* copy_word_spun_on() by any way to move; moves @t and @f on */
#define COPY_WORD_SPUN_ON(move, t, f, len)                                     \
	do {                                                                   \
		__atomic_thread_fence(__ATOMIC_RELEASE);                       \
		if (likely((len) == 8)) {                                      \
			move(8, t, f);                                         \
			break;                                                 \
		}                                                              \
		COPY_STORE(move, 4, t, f, len);                                \
		COPY_STORE(move, 2, t, f, len);                                \
		COPY_STORE(move, 1, t, f, len);                                \
	} while (0)

/** copy_word_spun_on() - copy_spun_on(), of eight bytes at most */
static inline void copy_word_spun_on(void *to, const void *from, size_t len)
{
	char *t = to;
	const char *f = from;

	COPY_WORD_SPUN_ON(COPY_PLAIN, t, f, len);
}

/**
 * copy_spun_on() - copy so that the last 8 bytes appear last, and each once
 *
 * Programs spin on the last byte of an RDMA WRITE and may write over it as
 * soon as they have seen it. memcpy() of 8 bytes or fewer stores some twice:
 * the second store would undo what the program wrote.
 */
static inline void copy_spun_on(void *to, const void *from, size_t len)
{
	char *t = to;
	const char *f = from;

	if (len > 8) {
		memcpy(t, f, len - 8);
		t += len - 8;
		f += len - 8;
		len = 8;
	}
	copy_word_spun_on(t, f, len);
}

#ifdef __SSE2__
/* How far ahead a source is asked for. A page where it is in memory, for what the
 * processor asks for by itself ends with each. */
#define COPY_AHEAD_MEMORY 4096
#define COPY_AHEAD_CACHE 512

/* @t is aligned; the callers' constants choose the stores */
__attribute__((always_inline)) static inline void copy_lines(__m128i *t, const __m128i *f,
							     size_t len, int ahead, bool past)
{
	for (; len >= 64; len -= 64, t += 4, f += 4) {
		__m128i a = _mm_loadu_si128(f), b = _mm_loadu_si128(f + 1),
			c = _mm_loadu_si128(f + 2), d = _mm_loadu_si128(f + 3);

		_mm_prefetch((const char *)f + ahead, _MM_HINT_T0);
		if (past) {
			_mm_stream_si128(t, a);
			_mm_stream_si128(t + 1, b);
			_mm_stream_si128(t + 2, c);
			_mm_stream_si128(t + 3, d);
		} else {
			_mm_store_si128(t, a);
			_mm_store_si128(t + 1, b);
			_mm_store_si128(t + 2, c);
			_mm_store_si128(t + 3, d);
		}
	}
	memcpy(t, f, len);
}

__attribute__((always_inline)) static inline void copy_aligned(char *to, const char *from,
							       size_t len, int ahead, bool past)
{
	size_t head = MIN(-(uintptr_t)to & 15, len);

	memcpy(to, from, head);
	copy_lines((void *)(to + head), (const void *)(from + head), len - head, ahead, past);
}
#endif

/**
 * copy_stream() - memcpy() past the caches, for much that another core reads
 *
 * Plain stores fetch each line from the core that had it last, or from memory,
 * to overwrite all of it; these do not. They are done before any store that
 * comes after.
 */
static inline void copy_stream(void *to, const void *from, size_t len)
{
#ifdef __SSE2__
	copy_aligned(to, from, len, COPY_AHEAD_MEMORY, true);
	_mm_sfence();
#else
	memcpy(to, from, len);
#endif
}

/**
 * enum copy_kernel - ways to copy much, none of which is the fastest one everywhere. The
 * first one is in use until it has been compared with the others (engine/lane_copy.c, put.c)
 * @COPY_VECTOR: loads and stores of 32 bytes, or of 16, that ask ahead for their source
 * @COPY_LIBC:   memcpy(), which chooses by the length and the processor's name
 * @COPY_MOVSB:  `rep movsb`: begins slowly, fetches no line that it overwrites, and collapses
 *               on some processors for some low address bits of source and destination
 * @COPY_PAST:   past the caches
 */
#ifdef __SSE2__
enum copy_kernel { COPY_VECTOR, COPY_LIBC, COPY_MOVSB, COPY_PAST, COPY_KERNELS };

typedef char copy_v32 __attribute__((vector_size(32), aligned(1), may_alias));

/* by registers of 32 bytes: half as many loads and stores */
__attribute__((target("avx2"), unused)) static void copy_vector_by_32(char *t, const char *f,
								      size_t len)
{
	size_t head = MIN(-(uintptr_t)t & (sizeof(copy_v32) - 1), len);

	memcpy(t, f, head);
	t += head;
	f += head;
	for (len -= head; len >= 64; len -= 64, t += 64, f += 64) {
		copy_v32 a = *(const copy_v32 *)f, b = *(const copy_v32 *)(f + 32);

		_mm_prefetch(f + COPY_AHEAD_CACHE, _MM_HINT_T0);
		*(copy_v32 *)t = a;
		*(copy_v32 *)(t + 32) = b;
	}
	memcpy(t, f, len);
}

/** copy_vector() - COPY_VECTOR */
static inline void copy_vector(void *to, const void *from, size_t len)
{
	if (likely(__builtin_cpu_supports("avx2")))
		copy_vector_by_32(to, from, len);
	else
		copy_aligned(to, from, len, COPY_AHEAD_CACHE, false);
}

static inline void copy_movsb(void *to, const void *from, size_t len)
{
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(len)::"memory");
}
#else
enum copy_kernel { COPY_LIBC, COPY_KERNELS };

static inline void copy_vector(void *to, const void *from, size_t len)
{
	memcpy(to, from, len);
}
#endif

/** copy_by() - memcpy() by @kernel */
static inline void copy_by(enum copy_kernel kernel, void *to, const void *from, size_t len)
{
	switch (kernel) {
#ifdef __SSE2__
	case COPY_VECTOR:
		copy_vector(to, from, len);
		return;
	case COPY_MOVSB:
		copy_movsb(to, from, len);
		return;
	case COPY_PAST:
		copy_stream(to, from, len);
		return;
#endif
	default:
		memcpy(to, from, len);
	}
}

#endif
