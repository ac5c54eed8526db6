/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What modules that test something find wrong: it is said in the log, and counted. */
#ifndef SOFTIB_TEST_EXPECT_H
#define SOFTIB_TEST_EXPECT_H

#include <linux/module.h>

static int failures;

/** expect() - @what: its name, for the log; @got and @want: numbers that shall be the same */
#define expect(what, got, want)                                                          \
	do {                                                                             \
		u64 g_ = (u64)(got), w_ = (u64)(want);                                   \
		if (g_ != w_) {                                                          \
			failures++;                                                      \
			pr_err("%s: %#llx, not %#llx (line %d)\n", what,                 \
			       (unsigned long long)g_, (unsigned long long)w_,           \
			       __LINE__);                                                \
		}                                                                        \
	} while (0)

#endif
