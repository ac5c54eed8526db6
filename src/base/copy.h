/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A copy too short to be worth a call. */
#ifndef SOFTIB_BASE_COPY_H
#define SOFTIB_BASE_COPY_H

#include <string.h>

#include "base/types.h"

/** copy_short() - memcpy() of a few bytes, 48 at most: two or three moves that
 *  overlap where the length is no power of two */
static inline void copy_short(void *to, const void *from, size_t len)
{
	char *t = to;
	const char *f = from;

	if (likely(len == 8)) {
		memcpy(t, f, 8);
	} else if (len >= 16) {
		if (len > 32)
			memcpy(t + 16, f + 16, 16);
		memcpy(t, f, 16);
		memcpy(t + len - 16, f + len - 16, 16);
	} else if (len > 8) {
		memcpy(t, f, 8);
		memcpy(t + len - 8, f + len - 8, 8);
	} else if (len >= 4) {
		memcpy(t, f, 4);
		memcpy(t + len - 4, f + len - 4, 4);
	} else {
		for (size_t i = 0; i < len; i++)
			t[i] = f[i];
	}
}

#endif
