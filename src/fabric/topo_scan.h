/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A cursor over one line of a topology file. Each scan_*() reads one element and
 * returns true, or leaves the cursor unchanged and returns false. None of them
 * reads beyond the end.
 */
#ifndef SOFTIB_FABRIC_TOPO_SCAN_H
#define SOFTIB_FABRIC_TOPO_SCAN_H

#include "base/types.h"

struct scan {
	const char *at, *end;
};

static inline bool scan_end(const struct scan *sc)
{
	return sc->at == sc->end;
}

static inline bool scan_at(const struct scan *sc, char c)
{
	return sc->at < sc->end && *sc->at == c;
}

static inline bool scan_has_zero(const struct scan *sc)
{
	for (const char *p = sc->at; p < sc->end; p++)
		if (!*p)
			return true;
	return false;
}

static inline void scan_skip(struct scan *sc)
{
	if (sc->at < sc->end)
		sc->at++;
}

static inline void scan_space(struct scan *sc)
{
	while (scan_at(sc, ' ') || scan_at(sc, '\t'))
		sc->at++;
}

static inline bool scan_char(struct scan *sc, char c)
{
	struct scan try = *sc;

	scan_space(&try);
	if (!scan_at(&try, c))
		return false;
	try.at++;
	*sc = try;
	return true;
}

static inline int scan_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 16;
}

static inline bool scan_digits(struct scan *sc, unsigned base, uint64_t *value)
{
	struct scan try = *sc;
	uint64_t v = 0;

	while (try.at < try.end && (unsigned)scan_digit(*try.at) < base) {
		if (v > (UINT64_MAX - 15) / base)
			return false;
		v = v * base + (unsigned)scan_digit(*try.at++);
	}
	if (try.at == sc->at)
		return false;
	*sc = try;
	*value = v;
	return true;
}

/** scan_number() - a decimal number, or a hexadecimal one with 0x; blanks may precede it */
static inline bool scan_number(struct scan *sc, uint64_t *value)
{
	struct scan try = *sc;
	unsigned base = 10;

	scan_space(&try);
	if (try.end - try.at > 2 && try.at[0] == '0' && (try.at[1] | 0x20) == 'x') {
		try.at += 2;
		base = 16;
	}
	if (!scan_digits(&try, base, value))
		return false;
	*sc = try;
	return true;
}

/** scan_hex() - hexadecimal digits, with or without 0x */
static inline bool scan_hex(struct scan *sc, uint64_t *value)
{
	struct scan try = *sc;

	scan_space(&try);
	if (try.end - try.at > 2 && try.at[0] == '0' && (try.at[1] | 0x20) == 'x')
		try.at += 2;
	if (!scan_digits(&try, 16, value))
		return false;
	*sc = try;
	return true;
}

static inline bool scan_is_mask(char c)
{
	return c == 'x' || c == 'X' || c == '*';
}

/** scan_masked() - a number with masked digits: "0x248a0703xxxxxxxx" */
static inline bool scan_masked(struct scan *sc)
{
	struct scan try = *sc;
	bool masked = false;

	scan_space(&try);
	if (try.end - try.at > 2 && try.at[0] == '0' && (try.at[1] | 0x20) == 'x')
		try.at += 2;
	for (; try.at < try.end && (scan_digit(*try.at) < 16 || scan_is_mask(*try.at)); try.at++)
		masked |= scan_is_mask(*try.at);
	if (masked)
		*sc = try;
	return masked;
}

/** scan_string() - "text", 1 to @bytes - 1 bytes of it */
static inline bool scan_string(struct scan *sc, char *text, size_t bytes)
{
	struct scan try = *sc;
	size_t n = 0;

	if (!scan_char(&try, '"'))
		return false;
	while (try.at + n < try.end && try.at[n] != '"')
		n++;
	if (!n || n >= bytes || try.at + n == try.end)
		return false;
	__builtin_memcpy(text, try.at, n);
	text[n] = '\0';
	sc->at = try.at + n + 1;
	return true;
}

/** scan_word() - letters, digits, '-' and '_' */
static inline bool scan_word(struct scan *sc, char *word, size_t bytes)
{
	struct scan try = *sc;
	size_t n = 0;

	scan_space(&try);
	while (try.at + n < try.end && n < bytes) {
		char c = try.at[n];

		if (!(c >= '0' && c <= '9') &&
		    !((c | 0x20) >= 'a' && (c | 0x20) <= 'z') && c != '-' && c != '_' &&
		    c != '?')
			break;
		n++;
	}
	if (!n || n == bytes)
		return false;
	__builtin_memcpy(word, try.at, n);
	word[n] = '\0';
	sc->at = try.at + n;
	return true;
}

/** scan_comment() - the '#' that begins a comment */
static inline bool scan_comment(struct scan *sc)
{
	return scan_char(sc, '#');
}

#endif
