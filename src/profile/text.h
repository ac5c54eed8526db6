/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Lines, numbers and words: what the readers of profiles and of ibv_devinfo's output share. */
#ifndef SOFTIB_PROFILE_TEXT_H
#define SOFTIB_PROFILE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct profile_word;

/** profile_next_line() - the line at *@text, which moves on. Return: false: longer than @bytes */
bool profile_next_line(const char **text, char *line, size_t bytes);
/** profile_trim() - without space at its ends; changes the text */
char *profile_trim(char *text);
/** profile_number() - decimal, or hexadecimal behind 0x. Return: what follows; NULL: there is
 *  none, or it has more than 64 bits */
const char *profile_number(const char *text, uint64_t *value);
/** profile_word() - the row of @name. NULL: there is none */
const struct profile_word *profile_word(const struct profile_word *words, const char *name);
/** profile_word_print() - the name of @value */
void profile_word_print(const struct profile_word *words, uint64_t value, char *text,
			size_t bytes);
/** profile_words_print() - the names of the bits of @value; "none" */
void profile_words_print(const struct profile_word *words, uint64_t value, char *text,
			 size_t bytes);

#endif
