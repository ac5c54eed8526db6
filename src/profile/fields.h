/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The table of a profile's fields. */
#ifndef SOFTIB_PROFILE_FIELDS_H
#define SOFTIB_PROFILE_FIELDS_H

#include <stdbool.h>
#include <stdint.h>

/** struct profile_word - a name in the value of a field, and its bits */
struct profile_word {
	const char *name;
	uint64_t value;
};

enum profile_syntax {
	PROFILE_NUMBER, /* decimal or 0x; printed according to @hex */
	PROFILE_WORD,	/* one of @words */
	PROFILE_WORDS,	/* any of @words, or "none" */
	PROFILE_TEXT,	/* profile.fw_ver */
};

enum profile_rule {
	PROFILE_AS_IT_IS,
	PROFILE_AT_MOST,  /* a limit: softib's own applies if it is lower */
	PROFILE_AT_LEAST, /* a delay: softib's own applies if it is longer */
	PROFILE_SUBSET,	  /* capabilities: only those that softib has apply */
};

/** struct profile_field - a row */
struct profile_field {
	const char *name;
	const char *devinfo; /* its name in the output of ibv_devinfo; NULL: it is not printed there */
	enum profile_syntax syntax;
	enum profile_rule rule;
	uint16_t offset, also; /* offsets in struct ib_device_attr; @also: a second one, 0 if there is none */
	uint8_t bytes;
	bool hex;
	uint64_t least; /* the smallest value that softib itself needs */
	uint64_t most;	/* the largest value; 0: what the member can hold; a limit may be any number */
	const struct profile_word *words; /* ended by one without a name */
};

extern const struct profile_field profile_fields[];
extern const unsigned profile_num_fields;

#endif
