/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What people see: colours on a terminal, sizes, JSON. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fabric/topology.h"
#include "softib.h"

bool use_colour(FILE *out)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM"); /* no-color.org */

	return !(no && no[0]) && isatty(fileno(out)) && term && strcmp(term, "dumb");
}

void paint(const char *how, const char *text, int width)
{
	if (use_colour(stdout))
		printf("\033[%sm%-*s\033[0m", how, width, text);
	else
		printf("%-*s", width, text);
}

const char *state_colour(const char *state)
{
	if (!strcmp(state, "Active"))
		return "32";
	return !strcmp(state, "Down") ? "31" : "33";
}

int check_output(void)
{
	static bool said;
	int error = fflush(stdout) ? errno : 0;

	if (!error && !ferror(stdout))
		return EXIT_SUCCESS;
	if (!said)
		complain("cannot write the output%s%s", error ? ": " : "",
			 error ? strerror(error) : "");
	said = true;
	return EXIT_FAILURE;
}

void print_json(struct json_object *o)
{
	puts(json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY |
						       JSON_C_TO_STRING_SPACED |
						       JSON_C_TO_STRING_NOSLASHESCAPE));
}

const char *human_bytes(uint64_t bytes, char text[16])
{
	static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
	double value = (double)bytes;
	int unit = 0;

	while (value >= 1000 && unit < 6) {
		value /= 1000;
		unit++;
	}
	snprintf(text, 16, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
	return text;
}

void say_warning(const struct topology *topo)
{
	for (const char *line = topo->warning; *line;) {
		size_t len = strcspn(line, "\n");

		complain("warning: %.*s", (int)len, line);
		line += len + (line[len] == '\n');
	}
}
