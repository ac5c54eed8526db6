/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Prints the output of a program on a node, each line after the name of the node. */
#ifndef SOFTIB_TOOLS_LINES_H
#define SOFTIB_TOOLS_LINES_H

#include <stddef.h>
#include <stdio.h>

/** struct lines - one output of one program; zeroed except for the first two members */
struct lines {
	const char *label;
	FILE *to;
	char line[4096]; /* an incomplete line, as a string */
	size_t length;
};

/** lines_put() - add a character, which may end a line */
void lines_put(struct lines *lines, char c);
/** lines_end() - print an incomplete line */
void lines_end(struct lines *lines);

#endif
