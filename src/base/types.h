/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The scalars that are dangerous when they are plain integers, and the few
 * macros that every layer uses. No OS call, no allocation.
 */
#ifndef SOFTIB_BASE_TYPES_H
#define SOFTIB_BASE_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h> /* only struct timespec */

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define DIV_ROUND_UP(n, d) (((n) + (d) - 1) / (d))
#define ALIGN_UP(n, a) (((n) + (a) - 1) & ~((__typeof__(n))(a) - 1))
#define MIN(a, b)                                                              \
	({ __typeof__(a) a_ = (a); __typeof__(b) b_ = (b); a_ < b_ ? a_ : b_; })
#define MAX(a, b)                                                              \
	({ __typeof__(a) a_ = (a); __typeof__(b) b_ = (b); a_ > b_ ? a_ : b_; })

#ifndef container_of
#define container_of(ptr, type, member)                                        \
	((type *)((char *)(ptr) - offsetof(type, member)))
#endif

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
/* of what a short path leaves out: its registers are not the short path's */
#define noinline __attribute__((noinline))

/** range_covers_no_longer() - range_covers() if @len is no more than @length */
static inline bool range_covers_no_longer(uint64_t base, uint64_t length, uint64_t at,
					  uint64_t len)
{
	return at - base <= length - len;
}

/** range_covers() - does [@base, @base + @length) hold all of [@at, @at + @len)? The range
 *  does not wrap, and so what lies below @base is farther from it than any length */
static inline bool range_covers(uint64_t base, uint64_t length, uint64_t at, uint64_t len)
{
	return len <= length && range_covers_no_longer(base, length, at, len);
}

/** psn_t - packet sequence number: 24 bits, compared as a serial number
 *  (IBA v1 9.7.1). Build with psn(), read with .v. */
typedef struct {
	uint32_t v;
} psn_t;

static inline psn_t psn(uint32_t v)
{
	return (psn_t){v & 0xffffff};
}

static inline psn_t psn_add(psn_t a, uint32_t n)
{
	return psn(a.v + n);
}

/** psn_diff() - signed distance a - b, in [-2^23, 2^23) */
static inline int32_t psn_diff(psn_t a, psn_t b)
{
	return (int32_t)((a.v - b.v) << 8) >> 8;
}

static inline bool psn_before(psn_t a, psn_t b)
{
	return psn_diff(a, b) < 0;
}

static inline bool psn_eq(psn_t a, psn_t b)
{
	return a.v == b.v;
}

/** mono_t - a point of monotonic time in nanoseconds; MONO_NEVER sorts last */
typedef struct {
	uint64_t ns;
} mono_t;

#define MONO_NEVER ((mono_t){UINT64_MAX})
#define NSEC_PER_USEC 1000ull
#define NSEC_PER_MSEC 1000000ull
#define NSEC_PER_SEC 1000000000ull

/** timespec_ns() - a time of the operating system in nanoseconds */
static inline uint64_t timespec_ns(const struct timespec *t)
{
	return (uint64_t)t->tv_sec * NSEC_PER_SEC + (uint64_t)t->tv_nsec;
}

static inline mono_t mono_add(mono_t t, uint64_t ns)
{
	return (mono_t){t.ns > UINT64_MAX - ns ? UINT64_MAX : t.ns + ns};
}

static inline bool mono_before(mono_t a, mono_t b)
{
	return a.ns < b.ns;
}

static inline mono_t mono_min(mono_t a, mono_t b)
{
	return a.ns < b.ns ? a : b;
}

#endif
