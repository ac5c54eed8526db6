/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "profile/text.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/fields.h"

bool profile_next_line(const char **text, char *line, size_t bytes)
{
	size_t n = strcspn(*text, "\n");
	bool fits = n < bytes;

	if (fits) {
		memcpy(line, *text, n);
		line[n] = 0;
	}
	*text += n + ((*text)[n] == '\n');
	return fits;
}

char *profile_trim(char *text)
{
	size_t n;

	text += strspn(text, " \t\r");
	for (n = strlen(text); n && isspace((unsigned char)text[n - 1]); n--)
		text[n - 1] = 0;
	return text;
}

const char *profile_number(const char *text, uint64_t *value)
{
	bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return NULL;
	errno = 0;
	*value = strtoull(text, &end, hex ? 16 : 10);
	return errno || end == text + (hex ? 1 : 0) ? NULL : end;
}

const struct profile_word *profile_word(const struct profile_word *words, const char *name)
{
	for (; words->name; words++)
		if (!strcmp(words->name, name))
			return words;
	return NULL;
}

void profile_word_print(const struct profile_word *words, uint64_t value, char *text,
			size_t bytes)
{
	while (words->name && words->value != value)
		words++;
	snprintf(text, bytes, "%s", words->name ? words->name : "?");
}

void profile_words_print(const struct profile_word *words, uint64_t value, char *text,
			 size_t bytes)
{
	size_t n = 0;

	snprintf(text, bytes, "none");
	for (; words->name && n < bytes; words++)
		if (value == UINT64_MAX || value & words->value)
			n += (size_t)snprintf(text + n, bytes - n, "%s%s", n ? " " : "",
					      words->name);
}
