/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The message of the drop-in libraries when a program looks for adapters and there is
 * no fabric. The program itself reports only that it found no device. */
#ifndef SOFTIB_ABI_HINT_H
#define SOFTIB_ABI_HINT_H

#include <stdatomic.h>
#include <stdio.h>

#include "abi/session.h"

/** abi_say_no_fabric() - print the message to stderr, once for each library of a process
 *  @library: the name of the library
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
