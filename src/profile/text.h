/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Lines, numbers and words, for the readers of profiles and of ibv_devinfo's output. */
#ifndef SOFTIB_PROFILE_TEXT_H
#define SOFTIB_PROFILE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct profile_word;

/** profile_next_line() - copy the line at *@text and advance *@text
 *  Return: false if it is longer than @bytes */
bool profile_next_line(const char **text, char *line, size_t bytes);
/** profile_trim() - remove space at both ends of the text, in place */
char *profile_trim(char *text);
/** profile_number() - read a decimal or hexadecimal (0x) number
 *  Return: the text after it; NULL if there is none, or it has more than 64 bits */
const char *profile_number(const char *text, uint64_t *value);
/** profile_word() - find the row of @name; NULL if there is none */
const struct profile_word *profile_word(const struct profile_word *words, const char *name);
/** profile_word_print() - print the name of @value */
void profile_word_print(const struct profile_word *words, uint64_t value, char *text,
			size_t bytes);
/** profile_words_print() - print the names of the bits of @value, or "none" */
void profile_words_print(const struct profile_word *words, uint64_t value, char *text,
			 size_t bytes);

#endif
