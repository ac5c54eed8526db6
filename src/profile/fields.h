/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The table of a profile's fields. */
#ifndef SOFTIB_PROFILE_FIELDS_H
#define SOFTIB_PROFILE_FIELDS_H

#include <stdbool.h>
#include <stdint.h>

/** struct profile_word - a name in the value of a field, and the bits that it stands for */
struct profile_word {
	const char *name;
	uint64_t value;
};

enum profile_syntax {
	PROFILE_NUMBER, /* decimal or 0x; printed as @hex says */
	PROFILE_WORD,	/* one of @words */
	PROFILE_WORDS,	/* any of @words, or "none" */
	PROFILE_TEXT,	/* profile.fw_ver */
};

enum profile_rule {
	PROFILE_AS_IT_IS,
	PROFILE_AT_MOST,  /* a limit: softib's own when that is lower */
	PROFILE_AT_LEAST, /* a delay: softib's own when that is longer */
	PROFILE_SUBSET,	  /* capabilities: those that softib has, too */
};

/** struct profile_field - a row */
struct profile_field {
	const char *name;
	const char *devinfo; /* its name in the output of ibv_devinfo; NULL: it has none there */
	enum profile_syntax syntax;
	enum profile_rule rule;
	uint16_t offset, also; /* in struct ib_device_attr; @also 0: in one place only */
	uint8_t bytes;
	bool hex;
	uint64_t least; /* what softib itself needs */
	uint64_t most;	/* 0: what the place has room for; a limit may be any number */
	const struct profile_word *words; /* up to one without a name */
};

extern const struct profile_field profile_fields[];
extern const unsigned profile_num_fields;

#endif
