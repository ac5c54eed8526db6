/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The state of the rule parser, shared by parse.c and check.c. */
#ifndef SOFTIB_FAULT_PARSER_H
#define SOFTIB_FAULT_PARSER_H

#include <errno.h>

#include "fault/private.h"

#define WORDS_MAX 40

struct parser {
	const struct flt_names *names;
	struct flt_rule *rule;
	struct flt_text err;
	char text[FLT_TEXT_MAX];
	const char *word[WORDS_MAX + 1]; /* ended by NULL */
	const char **at;
	uint64_t params; /* a bit for each parameter that was given */
	bool directed;	 /* "dir" was given */
};

/** flt_check() - check the combination of a rule's words. Return: 0; -EINVAL */
int flt_check(struct parser *p);

/** find_param() - find a parameter of an action by its name; NULL */
static inline const struct flt_param *find_param(const char *name, enum flt_action action)
{
	for (const struct flt_param *param = flt_params; param->name; param++)
		if (param->actions & 1u << action && flt_same_word(param->name, name))
			return param;
	return NULL;
}

/* --- messages --- */

static inline int fail(struct parser *p, const char *what, const char *word,
		       const char *expected)
{
	flt_text_add(&p->err, what);
	if (word) {
		flt_text_add(&p->err, " \"");
		flt_text_add(&p->err, word);
		flt_text_add(&p->err, "\"");
	}
	if (expected) {
		flt_text_add(&p->err, "; expected ");
		flt_text_add(&p->err, expected);
	}
	return -EINVAL;
}

static inline void add_item(struct parser *p, const char *name, bool *first)
{
	if (!*first)
		flt_text_add(&p->err, ", ");
	*first = false;
	flt_text_add(&p->err, name);
}

static inline int fail_words(struct parser *p, const char *what, const char *word,
			     const struct flt_word *words)
{
	bool first = true;

	fail(p, what, word, "");
	for (; words->name; words++)
		add_item(p, words->name, &first);
	return -EINVAL;
}

#endif
