/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the drop-in libraries tell a person whose program asks for adapters where
 * there is no fabric: the program itself only says that it found none. */
#ifndef SOFTIB_ABI_HINT_H
#define SOFTIB_ABI_HINT_H

#include <stdatomic.h>
#include <stdio.h>

#include "abi/session.h"

/** abi_say_no_fabric() - on stderr, once for each library of a process
 *  @library: the one that speaks
 *  Context: any thread */
static inline void abi_say_no_fabric(const char *library)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;

	if (!atomic_flag_test_and_set(&said))
		fprintf(stderr,
			"%s: no fabric here (%s is not set): 'softib exec NODE -- "
			"COMMAND' runs "
			"COMMAND on a node of one that is up, 'softib run -- COMMAND' on "
			"one of "
			"its own\n",
			library, ABI_ENV_DIR);
}

#endif
