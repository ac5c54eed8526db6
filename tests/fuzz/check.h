/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What a target holds to be true, said when it is not. */
#ifndef SOFTIB_TESTS_FUZZ_CHECK_H
#define SOFTIB_TESTS_FUZZ_CHECK_H

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/types.h"

#define check(holds)                                                                     \
	do {                                                                             \
		if (!(holds)) {                                                          \
			fprintf(stderr, "%s:%d: not %s\n", __FILE__, __LINE__, #holds);  \
			abort();                                                         \
		}                                                                        \
	} while (0)

/** open_fds() - how many descriptors below 512 are open */
static inline int open_fds(void)
{
	struct pollfd fds[512];
	int n = 0;

	for (unsigned i = 0; i < ARRAY_SIZE(fds); i++)
		fds[i] = (struct pollfd){.fd = (int)i};
	check(poll(fds, ARRAY_SIZE(fds), 0) >= 0);
	for (unsigned i = 0; i < ARRAY_SIZE(fds); i++)
		n += !(fds[i].revents & POLLNVAL);
	return n;
}

#endif
