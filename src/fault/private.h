/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Shared by the files of the fault engine.
 *
 *   words.c   tables of all words that a rule can have
 *   text.c    parses and prints numbers, times and rates
 *   parse.c   parses a rule
 *   check.c   checks whether its words may be combined
 *   print.c   prints a rule
 *   match.c   extracts a packet's fields and matches rules
 *   set.c     rules, triggers, verdicts, the log
 */
#ifndef SOFTIB_FAULT_PRIVATE_H
#define SOFTIB_FAULT_PRIVATE_H

#include "fault/fault.h"

/* --- words.c --- */

/** enum flt_family - bits, so that a word can belong to several */
enum flt_family { FLT_PACKET = 1, FLT_OBJECT = 2, FLT_STATE = 4 };

/** enum flt_unit - how a parameter's value is written */
enum flt_unit {
	FLT_UNIT_NUMBER, /* 1.. */
	FLT_UNIT_ZERO,	 /* 0.. */
	FLT_UNIT_BYTE,	 /* a mask, hex */
	FLT_UNIT_TIME,	 /* 5ms */
	FLT_UNIT_PPM,	 /* 1%, 500ppm */
	FLT_UNIT_SPEED,	 /* 100MB/s, 1Gbit/s */
	FLT_UNIT_WORD,	 /* one of param.words */
	FLT_UNIT_SEED,	 /* hex */
};

/** struct flt_word - a name of a value; lists end with a NULL name */
struct flt_word {
	const char *name;
	uint32_t value;
};

struct flt_action_info {
	const char *name;
	enum flt_family family;
	uint32_t places;      /* bits of enum flt_place */
	const char *argument; /* the parameter that may follow it without "NAME=" */
	bool needs_argument;
};
extern const struct flt_action_info flt_actions[FLT_NUM_ACTIONS];

/** struct flt_param - "name=value" that sets a member of struct flt_rule */
struct flt_param {
	const char *name;
	uint32_t actions; /* a bit for each action that has it */
	uint16_t offset, size;
	enum flt_unit unit;
	uint64_t unset; /* the default value of the member */
	uint64_t most;
	const struct flt_word *words;
};
extern const struct flt_param flt_params[]; /* ended by a NULL name */

/** struct flt_condition - "name=LOW[-HIGH]" on a field */
struct flt_condition {
	const char *name;
	uint32_t most;
	const struct flt_word *words;
	bool hex;
};
extern const struct flt_condition flt_conditions[FLT_NUM_FIELDS];
extern const char *const flt_places[];
extern const struct flt_word flt_directions[];

/** flt_event_of_qp() - is an event of a queue pair, its CQ or its SRQ? */
bool flt_event_of_qp(uint32_t event);
/** flt_word_value() - find the value of a name. Case, "-" or "_", and a prefix IBV_WC_ or
 *  IBV_EVENT_ are ignored. Return: 0; -EINVAL */
int flt_word_value(const struct flt_word *words, const char *name, uint32_t *value);
const char *flt_word_name(const struct flt_word *words, uint32_t value);
/** flt_opcode_value() - find an opcode by its name in wire_opcodes ("rc-send-only")
 *  Return: 0; -EINVAL */
int flt_opcode_value(const char *name, uint32_t *value);

/** flt_get(), flt_put() - read and write the member of a parameter, whatever its size */
uint64_t flt_get(const struct flt_rule *rule, const struct flt_param *param);
void flt_put(struct flt_rule *rule, const struct flt_param *param, uint64_t value);

/* --- text.c --- */

/** struct flt_text - a text that is being written; truncated when the room ends */
struct flt_text {
	char *at;
	size_t room, len;
};
void flt_text_init(struct flt_text *t, char *at, size_t room);
void flt_text_add(struct flt_text *t, const char *s);
void flt_text_number(struct flt_text *t, uint64_t n);
void flt_text_hex(struct flt_text *t, uint64_t n);
void flt_text_value(struct flt_text *t, enum flt_unit unit, uint64_t n,
		    const struct flt_word *words);

/** flt_number() - parse all of @s as a decimal or hexadecimal (0x) number, at most @most
 *  Return: 0; -EINVAL */
int flt_number(const char *s, uint64_t most, uint64_t *n);
/** flt_value() - parse a value with a unit. Return: 0; -EINVAL */
int flt_value(const char *s, enum flt_unit unit, uint64_t *n);
/** flt_unit_example() - for messages: "a time such as 5ms" */
const char *flt_unit_example(enum flt_unit unit);
bool flt_same_word(const char *a, const char *b);

/* --- match.c --- */
/** flt_matches() - does a rule match a packet?
 *  @way: set to the direction: 0 in, 1 out */
bool flt_matches(const struct flt_rule *rule, const struct flt_event *ev, unsigned int *way);

#endif
