/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "lines.h"

#include <unistd.h>

#include "softib.h"

static void print_line(struct lines *lines)
{
	int fd = fileno(lines->to); /* none of a stream in memory */
	bool colour = fd >= 0 && use_colour(lines->to);

	fprintf(lines->to, "%s%s|%s %.*s\n", colour ? "\033[36m" : "", lines->label,
		colour ? "\033[0m" : "", (int)lines->length, lines->line);
	lines->length = 0;
	lines->line[0] = '\0';
}

void lines_put(struct lines *lines, char c)
{
	if (c == '\n' || lines->length == sizeof(lines->line) - 1) {
		print_line(lines);
		if (c == '\n')
			return;
	}
	lines->line[lines->length++] = c ? c : ' ';
	lines->line[lines->length] = '\0';
}

void lines_end(struct lines *lines)
{
	if (lines->length)
		print_line(lines);
}
