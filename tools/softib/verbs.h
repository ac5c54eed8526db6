/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Commands whose next word is a verb with arguments of its own: softib fault add. */
#ifndef SOFTIB_TOOLS_VERBS_H
#define SOFTIB_TOOLS_VERBS_H

#include "softib.h"

/** struct verbs - such a command
 *  @name: of the command as the user types it: "softib fault"
 *  @about: lines that say what it is for, under the usage
 *  @examples: lines */
struct verbs {
	const char *name, *about, *examples;
	const struct command *table;
	size_t nr;
};

/** verbs_run() - run the verb argv[1] with the words behind it; its argv[0] is the
 * command and the verb. Return: its exit status; EX_USAGE if there is no such verb
 * (printed) */
int verbs_run(const struct verbs *verbs, int argc, char **argv);

#endif
