/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Shared memory that changes while it is read. In a target built with
 * -fsanitize-coverage=trace-loads clang calls us before each load: a load from
 * the memory that is watched is where the other process writes, as the input
 * says, so that whatever code reads twice it reads differently. The input
 * begins with a byte, the number of changes, and their six bytes each:
 *
 *   how many loads it waits, from which byte on (signed, in words, relative
 *   to what is about to be loaded), and four bytes to write
 *
 * Without that option all of this does nothing.
 */
#ifndef SOFTIB_TESTS_FUZZ_CHANGING_H
#define SOFTIB_TESTS_FUZZ_CHANGING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef CHANGING

#define CHANGE_BYTES 6
#define CHANGING_RANGES 3

static struct {
	struct {
		uint8_t *from;
		size_t bytes;
	} range[CHANGING_RANGES];
	unsigned ranges;
	const uint8_t *script; /* of the changes that are left */
	size_t left;
	unsigned loads; /* since the last change */
	bool happened;
	bool on;	/* it is not the target itself that reads */
} changing;

#define UNTRACED __attribute__((no_sanitize("coverage"))) /* or each load calls us */

static inline UNTRACED void changing_write(unsigned n, uint8_t *loaded)
{
	uint8_t *from = changing.range[n].from;
	ptrdiff_t at = loaded - from + (int8_t)changing.script[1] * 4;

	if (at >= 0 && (size_t)at + 4 <= changing.range[n].bytes)
		memcpy(from + at, changing.script + 2, 4);
	changing.happened = true;
	changing.script += CHANGE_BYTES;
	changing.left--;
	changing.loads = 0;
}

static inline UNTRACED void changing_loads(void *address)
{
	uint8_t *loaded = address;

	if (!changing.on || !changing.left)
		return;
	for (unsigned n = 0; n < changing.ranges; n++)
		if (loaded >= changing.range[n].from &&
		    loaded < changing.range[n].from + changing.range[n].bytes) {
			if (changing.loads++ >= changing.script[0])
				changing_write(n, loaded);
			return;
		}
}

#define CHANGING_AT(bytes)                                                               \
	void __sanitizer_cov_load##bytes(void *address);                                 \
	UNTRACED void __sanitizer_cov_load##bytes(void *address)                         \
	{                                                                                \
		changing_loads(address);                                                 \
	}
CHANGING_AT(1)
CHANGING_AT(2)
CHANGING_AT(4)
CHANGING_AT(8)
CHANGING_AT(16)

/** changing_take() - take the changes off the front of the input */
static inline void changing_take(const uint8_t **data, size_t *size)
{
	memset(&changing, 0, sizeof(changing));
	if (!*size)
		return;
	changing.left = (*data)[0];
	if (changing.left > (*size - 1) / CHANGE_BYTES)
		changing.left = (*size - 1) / CHANGE_BYTES;
	changing.script = *data + 1;
	*data += 1 + changing.left * CHANGE_BYTES;
	*size -= 1 + changing.left * CHANGE_BYTES;
}

/** changing_watch() - this memory is another's, too */
static inline void changing_watch(void *memory, size_t bytes)
{
	changing.range[changing.ranges].from = memory;
	changing.range[changing.ranges++].bytes = bytes;
}

/** changing_on() - what runs from here is what shall bear it; @on false: is not */
static inline void changing_on(bool on)
{
	changing.on = on;
}

/** changing_happened() - was anything changed? */
static inline bool changing_happened(void)
{
	return changing.happened;
}

#else
static inline void changing_take(const uint8_t **data, size_t *size)
{
}
static inline void changing_watch(void *memory, size_t bytes)
{
}
static inline void changing_on(bool on)
{
}
static inline bool changing_happened(void)
{
	return false;
}
#endif
#endif
