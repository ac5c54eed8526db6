/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Parses and prints numbers with units; a pure layer cannot use stdio. */
#include <errno.h>
#include <string.h>

#include "fault/private.h"

/* --- to text --- */

void flt_text_init(struct flt_text *t, char *at, size_t room)
{
	*t = (struct flt_text){at, room, 0};
	if (room)
		*at = 0;
}

void flt_text_add(struct flt_text *t, const char *s)
{
	for (; *s && t->len + 1 < t->room; s++)
		t->at[t->len++] = *s;
	if (t->room)
		t->at[t->len] = 0;
}

static void add_digits(struct flt_text *t, uint64_t n, unsigned int base)
{
	char digits[24], *at = digits + sizeof(digits) - 1;

	*at = 0;
	do {
		*--at = "0123456789abcdef"[n % base];
		n /= base;
	} while (n);
	flt_text_add(t, at);
}

void flt_text_number(struct flt_text *t, uint64_t n)
{
	add_digits(t, n, 10);
}

void flt_text_hex(struct flt_text *t, uint64_t n)
{
	flt_text_add(t, "0x");
	add_digits(t, n, 16);
}

/** struct scale - a suffix and its factor; largest first */
struct scale {
	const char *suffix;
	uint64_t factor;
};

static const struct scale times[] = {
	{"s", NSEC_PER_SEC}, {"ms", NSEC_PER_MSEC}, {"us", NSEC_PER_USEC}, {"ns", 1}, {0}};
static const struct scale rates[] = {{"%", 10000}, {"ppm", 1}, {0}};
/* the forms that are printed come first */
static const struct scale speeds[] = {
	{"GB/s", 1000000000}, {"MB/s", 1000000}, {"kB/s", 1000}, {"B/s", 1},
	{"Gbit/s", 125000000}, {"Mbit/s", 125000}, {"kbit/s", 125}, {0}};

static const struct scale *scales_of(enum flt_unit unit)
{
	return unit == FLT_UNIT_TIME  ? times :
	       unit == FLT_UNIT_PPM   ? rates :
	       unit == FLT_UNIT_SPEED ? speeds :
					NULL;
}

static void add_scaled(struct flt_text *t, const struct scale *scale, uint64_t n)
{
	while (scale[1].suffix && scale->factor != 1 && (n == 0 || n % scale->factor))
		scale++;
	flt_text_number(t, n / scale->factor);
	flt_text_add(t, scale->suffix);
}

void flt_text_value(struct flt_text *t, enum flt_unit unit, uint64_t n,
		    const struct flt_word *words)
{
	const char *name = flt_word_name(words, (uint32_t)n);

	if (name)
		flt_text_add(t, name);
	else if (scales_of(unit))
		add_scaled(t, scales_of(unit), n);
	else if (unit == FLT_UNIT_BYTE || unit == FLT_UNIT_SEED)
		flt_text_hex(t, n);
	else
		flt_text_number(t, n);
}

/* --- from text --- */

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return 16;
}

/* read digits of @base and advance *@s. Return: 0; -EINVAL none, or too many */
static int read_digits(const char **s, int base, uint64_t *n)
{
	const char *start = *s;

	for (*n = 0; digit(**s) < base; (*s)++)
		if (__builtin_mul_overflow(*n, (uint64_t)base, n) ||
		    __builtin_add_overflow(*n, (uint64_t)digit(**s), n))
			return -EINVAL;
	return *s == start ? -EINVAL : 0;
}

int flt_number(const char *s, uint64_t most, uint64_t *n)
{
	bool hex = s[0] == '0' && (s[1] == 'x' || s[1] == 'X');

	if (hex)
		s += 2;
	return read_digits(&s, hex ? 16 : 10, n) || *s || *n > most ? -EINVAL : 0;
}

/* Read a decimal fraction ("1.5") of a unit of @factor and advance *@s. Digits after the
 * point that the unit cannot represent are rejected. */
static int read_decimal(const char **s, uint64_t factor, uint64_t *n)
{
	uint64_t part = factor, whole;

	if (read_digits(s, 10, &whole) || __builtin_mul_overflow(whole, factor, n))
		return -EINVAL;
	if (**s != '.')
		return 0;
	for ((*s)++; digit(**s) < 10; (*s)++) {
		if (part % 10)
			return -EINVAL;
		part /= 10;
		if (__builtin_add_overflow(*n, part * (uint64_t)digit(**s), n))
			return -EINVAL;
	}
	return 0;
}

static int read_scaled(const char *s, const struct scale *scale, uint64_t *n)
{
	const char *suffix = s;

	while (digit(*suffix) < 10 || *suffix == '.')
		suffix++;
	for (; scale->suffix; scale++)
		if (!strcmp(suffix, scale->suffix))
			return read_decimal(&s, scale->factor, n) || s != suffix ? -EINVAL : 0;
	return -EINVAL;
}

int flt_value(const char *s, enum flt_unit unit, uint64_t *n)
{
	const struct scale *scale = scales_of(unit);
	int ret = scale ? read_scaled(s, scale, n) : flt_number(s, UINT64_MAX, n);

	if (!ret && !*n && unit != FLT_UNIT_ZERO)
		return -EINVAL;
	return ret;
}

const char *flt_unit_example(enum flt_unit unit)
{
	static const char *const examples[] = {
		[FLT_UNIT_NUMBER] = "a number such as 10",
		[FLT_UNIT_ZERO] = "a number such as 0",
		[FLT_UNIT_BYTE] = "bits of a byte such as 0x80",
		[FLT_UNIT_TIME] = "a time such as 250us, 5ms or 1.5s",
		[FLT_UNIT_PPM] = "a share such as 1%, 0.1% or 500ppm",
		[FLT_UNIT_SPEED] = "a speed such as 100MB/s or 1Gbit/s",
		[FLT_UNIT_SEED] = "a number such as 42 or 0x2a",
	};

	return examples[unit];
}

int flt_time_parse(const char *text, uint64_t *ns)
{
	return flt_value(text, FLT_UNIT_TIME, ns);
}
