/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What a program on a node prints, each line behind the name of the node. */
#ifndef SOFTIB_TOOLS_LINES_H
#define SOFTIB_TOOLS_LINES_H

#include <stddef.h>
#include <stdio.h>

/** struct lines - one output of one program; zeroed but for the first two */
struct lines {
	const char *label;
	FILE *to;
	char line[4096]; /* printed without the end of the line yet, as a string */
	size_t length;
};

/** lines_put() - one more character, which may end a line */
void lines_put(struct lines *lines, char c);
/** lines_end() - print what is there of a line that nothing ended */
void lines_end(struct lines *lines);

#endif
