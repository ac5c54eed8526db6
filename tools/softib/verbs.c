/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The verbs of a command: listed, found, run. */
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "verbs.h"

static void list_verbs(const struct verbs *verbs, FILE *out)
{
	int width = 6;

	for (size_t i = 0; i < verbs->nr; i++)
		if ((int)strlen(verbs->table[i].name) > width)
			width = (int)strlen(verbs->table[i].name);
	fprintf(out, "Usage: %s VERB [OPTION...]\n%s\nVerbs:\n", verbs->name,
		verbs->about);
	for (size_t i = 0; i < verbs->nr; i++)
		fprintf(out, "  %-*s %s\n", width, verbs->table[i].name,
			verbs->table[i].summary);
	fprintf(out, "\nExamples:\n%s", verbs->examples);
}

int verbs_run(const struct verbs *verbs, int argc, char **argv)
{
	static char help[] = "--help";
	char title[64];

	if (asks_for_help(argv[1])) {
		list_verbs(verbs, stdout);
		return EXIT_SUCCESS;
	}
	for (size_t i = 0; argc > 1 && i < verbs->nr; i++) {
		if (strcmp(verbs->table[i].name, argv[1]))
			continue;
		snprintf(title, sizeof(title), "%s %s", verbs->name, argv[1]);
		argv[1] = title;
		if (asks_for_help(argv[2]))
			argv[2] = help;
		return verbs->table[i].run(argc - 1, argv + 1);
	}
	if (argc > 1)
		complain("there is no '%s %s'", verbs->name, argv[1]);
	list_verbs(verbs, stderr);
	return EX_USAGE;
}
