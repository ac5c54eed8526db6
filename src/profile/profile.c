/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Reads and prints a profile, and applies it to an adapter. */
#include "profile/profile.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/types.h"
#include "profile/fields.h"
#include "profile/text.h"
#include "rdma/ib_verbs.h"

/* --- reading --- */

/** struct reader - the state of reading a profile */
struct reader {
	struct profile *profile;
	const char *name;
	unsigned line;
	unsigned lines[PROFILE_MAX_FIELDS]; /* the line of each field; 0: not read yet */
	char *err;
	size_t err_bytes;
};

__attribute__((format(printf, 2, 3)))
static int wrong(const struct reader *r, const char *fmt, ...)
{
	int n = snprintf(r->err, r->err_bytes, "%s:%u: ", r->name, r->line);
	va_list args;

	va_start(args, fmt);
	if (n >= 0 && (size_t)n < r->err_bytes)
		vsnprintf(r->err + n, r->err_bytes - (size_t)n, fmt, args);
	va_end(args);
	return -EINVAL;
}

static uint64_t most_of(const struct profile_field *f)
{
	if (f->most || f->rule == PROFILE_AT_MOST || f->bytes == 8)
		return f->most ? f->most : UINT64_MAX;
	return (1ull << 8 * f->bytes) - 1;
}

static int read_number(struct reader *r, const struct profile_field *f, const char *text,
		       uint64_t *value)
{
	const char *end = profile_number(text, value);

	if (!end || *end)
		return wrong(r, "%s takes a number, not '%s'", f->name, text);
	if (*value > most_of(f))
		return wrong(r, "%s is %llu at most, not %s", f->name,
			     (unsigned long long)most_of(f), text);
	if (*value < f->least)
		return wrong(r, "%s must be %llu or more: softib itself needs so many", f->name,
			     (unsigned long long)f->least);
	return 0;
}

static int read_words(struct reader *r, const struct profile_field *f, char *text,
		      uint64_t *value)
{
	char known[256], *at = NULL;

	*value = 0;
	if (f->syntax == PROFILE_WORDS && !strcmp(text, "none"))
		return 0;
	for (char *word = strtok_r(text, " \t", &at); word; word = strtok_r(NULL, " \t", &at)) {
		const struct profile_word *w = profile_word(f->words, word);

		if (!w) {
			profile_words_print(f->words, UINT64_MAX, known, sizeof(known));
			return wrong(r, "%s knows %s%s, not '%s'", f->name, known,
				     f->syntax == PROFILE_WORDS ? " and none" : "", word);
		}
		*value |= w->value;
		if (f->syntax == PROFILE_WORD && *at)
			return wrong(r, "%s takes one word, not '%s' as well", f->name, at);
	}
	return 0;
}

static int read_value(struct reader *r, unsigned row, char *text)
{
	const struct profile_field *f = &profile_fields[row];
	struct profile *p = r->profile;

	if (!*text)
		return wrong(r, "%s has no value", f->name);
	if (r->lines[row])
		return wrong(r, "%s stands in line %u already", f->name, r->lines[row]);
	r->lines[row] = r->line;
	p->given |= 1ull << row;
	switch (f->syntax) {
	case PROFILE_NUMBER:
		return read_number(r, f, text, &p->value[row]);
	case PROFILE_TEXT:
		if (strlen(text) >= sizeof(p->fw_ver))
			return wrong(r, "%s takes %zu characters at most", f->name,
				     sizeof(p->fw_ver) - 1);
		strcpy(p->fw_ver, text);
		return 0;
	default:
		return read_words(r, f, text, &p->value[row]);
	}
}

static int read_line(struct reader *r, char *line)
{
	char *colon;

	line[strcspn(line, "#")] = 0;
	line = profile_trim(line);
	if (!*line)
		return 0;
	colon = strchr(line, ':');
	if (!colon)
		return wrong(r, "a line is \"field: value\", not '%s'", line);
	*colon = 0;
	for (unsigned row = 0; row < profile_num_fields; row++)
		if (!strcmp(profile_fields[row].name, profile_trim(line)))
			return read_value(r, row, profile_trim(colon + 1));
	return wrong(r, "there is no field '%s'; 'softib profile show connectx5' prints them", line);
}

int profile_parse(const char *name, const char *text, struct profile *profile, char *err,
		  size_t err_bytes)
{
	struct reader r = {.profile = profile, .name = name, .err = err, .err_bytes = err_bytes};
	char line[512];

	memset(profile, 0, sizeof(*profile));
	snprintf(profile->name, sizeof(profile->name), "%s", name);
	while (*text) {
		int ret;

		r.line++;
		if (!profile_next_line(&text, line, sizeof(line)))
			return wrong(&r, "the line is too long");
		ret = read_line(&r, line);
		if (ret)
			return ret;
	}
	return 0;
}

static void name_builtins(char *text, size_t bytes)
{
	size_t n = 0;

	for (unsigned i = 0; profile_builtin(i) && n < bytes; i++)
		n += (size_t)snprintf(text + n, bytes - n, "%s%s", i ? ", " : "",
				      profile_builtin(i));
}

int profile_load(const char *name, struct profile *profile, char *err, size_t err_bytes)
{
	const char *builtin = profile_builtin_text(name);
	char text[4 * PROFILE_TEXT_BYTES + 1], known[128];
	FILE *file;
	size_t n;

	if (builtin)
		return profile_parse(name, builtin, profile, err, err_bytes);
	file = fopen(name, "re");
	if (!file) {
		int ret = -errno;

		name_builtins(known, sizeof(known));
		snprintf(err, err_bytes, "there is no profile '%s' (%s), and no such file: %s",
			 name, known, strerror(-ret));
		return ret;
	}
	n = fread(text, 1, sizeof(text) - 1, file);
	if (ferror(file)) {
		snprintf(err, err_bytes, "cannot read %s", name); /* a directory */
		fclose(file);
		return -EINVAL;
	}
	fclose(file);
	text[n] = 0;
	if (n == sizeof(text) - 1 || strlen(text) != n) {
		snprintf(err, err_bytes, "%s is no profile: it is %s", name,
			 strlen(text) != n ? "no text" : "too long");
		return -EINVAL;
	}
	return profile_parse(name, text, profile, err, err_bytes);
}

/* --- printing --- */

static void print_value(const struct profile *p, unsigned row, char *text, size_t bytes)
{
	const struct profile_field *f = &profile_fields[row];

	if (f->syntax == PROFILE_TEXT)
		snprintf(text, bytes, "%s", p->fw_ver);
	else if (f->syntax == PROFILE_WORD)
		profile_word_print(f->words, p->value[row], text, bytes);
	else if (f->syntax == PROFILE_WORDS)
		profile_words_print(f->words, p->value[row], text, bytes);
	else
		snprintf(text, bytes, f->hex ? "0x%llx" : "%llu",
			 (unsigned long long)p->value[row]);
}

void profile_print(const struct profile *profile, char *text, size_t bytes)
{
	char value[256];
	size_t n = 0;

	if (bytes)
		*text = 0;
	for (unsigned row = 0; row < profile_num_fields && n < bytes; row++) {
		if (!(profile->given & 1ull << row))
			continue;
		print_value(profile, row, value, sizeof(value));
		n += (size_t)snprintf(text + n, bytes - n, "%s: %s\n", profile_fields[row].name,
				      value);
	}
}

/* --- an adapter of it --- */

static uint64_t load(const struct ib_device_attr *attr, unsigned offset, unsigned bytes)
{
	const void *at = (const char *)attr + offset;

	switch (bytes) {
	case 1:
		return *(const uint8_t *)at;
	case 2:
		return *(const uint16_t *)at;
	case 4:
		return *(const uint32_t *)at;
	default:
		return *(const uint64_t *)at;
	}
}

static void store(struct ib_device_attr *attr, unsigned offset, unsigned bytes, uint64_t value)
{
	void *at = (char *)attr + offset;

	switch (bytes) {
	case 1:
		*(uint8_t *)at = (uint8_t)value;
		break;
	case 2:
		*(uint16_t *)at = (uint16_t)value;
		break;
	case 4:
		*(uint32_t *)at = (uint32_t)value;
		break;
	default:
		*(uint64_t *)at = value;
	}
}

static uint64_t ruled(enum profile_rule rule, uint64_t ours, uint64_t theirs)
{
	switch (rule) {
	case PROFILE_AT_MOST:
		return MIN(ours, theirs);
	case PROFILE_AT_LEAST:
		return MAX(ours, theirs);
	case PROFILE_SUBSET:
		return ours & theirs;
	default:
		return theirs;
	}
}

bool profile_gives(const struct profile *profile, size_t offset)
{
	for (unsigned row = 0; row < profile_num_fields; row++) {
		const struct profile_field *f = &profile_fields[row];

		if (profile->given & 1ull << row && f->syntax != PROFILE_TEXT &&
		    (f->offset == offset || (f->also && f->also == offset)))
			return true;
	}
	return false;
}

/* Should the difference be reported? Fewer capabilities and page sizes are expected. */
static bool is_less(const struct profile_field *f, uint64_t value, uint64_t theirs)
{
	return f->rule == PROFILE_AT_MOST && value < theirs;
}

unsigned profile_apply(const struct profile *profile, struct ib_device_attr *attr, char *less,
		       size_t less_bytes)
{
	unsigned count = 0;
	size_t n = 0;

	for (unsigned row = 0; row < profile_num_fields; row++) {
		const struct profile_field *f = &profile_fields[row];
		uint64_t theirs = profile->value[row], value;

		if (!(profile->given & 1ull << row))
			continue;
		if (f->syntax == PROFILE_TEXT) {
			snprintf(attr->fw_ver, sizeof(attr->fw_ver), "%s", profile->fw_ver);
			continue;
		}
		value = ruled(f->rule, load(attr, f->offset, f->bytes), theirs);
		store(attr, f->offset, f->bytes, value);
		if (f->also)
			store(attr, f->also, f->bytes, value);
		if (!is_less(f, value, theirs))
			continue;
		if (less && n < less_bytes)
			n += (size_t)snprintf(less + n, less_bytes - n, "%s%s %llu (of %llu)",
					      count ? ", " : "", f->name,
					      (unsigned long long)value,
					      (unsigned long long)theirs);
		count++;
	}
	return count;
}
