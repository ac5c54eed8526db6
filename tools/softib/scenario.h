/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A scenario of 'softib fault run'. scenario_read.c reads and checks it;
 * scenario_act.c waits for the trigger of a line and executes it; cmd_fault_run.c
 * executes the lines in order. A line is
 *
 *	[at TIME | after TIME | after N packets on NODE:PORT |
 *	 when port NODE:PORT STATE | when subnet up | when NAME hit [N]] ACTION
 *
 *	add NAME: RULE, clear NAME|all, link NODE:PORT up|down,
 *	measure NAME NAME, say TEXT
 */
#ifndef SOFTIB_TOOLS_SCENARIO_H
#define SOFTIB_TOOLS_SCENARIO_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define SCENARIO_LINES_MAX 1000
#define SCENARIO_LINE_BYTES 700
#define SCENARIO_NAME_BYTES 32

enum trigger { NOW, AT, AFTER, PACKETS, PORT_STATE, SUBNET_UP, RULE_HIT };
enum act { ADD, CLEAR, LINK, MEASURE, SAY };

/** struct scenario_line - a parsed line of a scenario */
struct scenario_line {
	int number;
	char text[SCENARIO_LINE_BYTES]; /* as in the file, to show progress */
	enum trigger trigger;
	uint64_t ns, count;
	char where[96];	    /* NODE of PACKETS, PORT_STATE */
	long port;
	char state[16];	    /* PORT_STATE */
	enum act act;
	char name[2][SCENARIO_NAME_BYTES]; /* rules; [0] of RULE_HIT when act is not ADD ... */
	char hit_name[SCENARIO_NAME_BYTES];
	char rest[SCENARIO_LINE_BYTES]; /* RULE, TEXT, NODE of LINK */
	long link_port;
	bool up;
};

struct rule_name {
	char name[SCENARIO_NAME_BYTES];
	long long id; /* 0: not added yet, or cleared */
};

struct scenario {
	const char *file;
	char dir[PATH_MAX];
	struct scenario_line *line;
	int num_lines;
	struct rule_name rule[SCENARIO_LINES_MAX];
	int num_rules;
	struct timespec start, last; /* time of the scenario's start, and of the last action */
	uint64_t base_packets;	     /* PACKETS: the counters when the line was reached */
	double timeout_s;
};

/** scenario_read() - read s->file, and let softibd check its rules
 *  Return: 0; -1, after printing a message */
int scenario_read(struct scenario *s);
/** scenario_fail() - print a message with the file's name and the line. Return: -1 */
__attribute__((format(printf, 3, 4)))
int scenario_fail(const struct scenario *s, int number, const char *fmt, ...);
/** scenario_rule() - find a rule by its name; NULL */
struct rule_name *scenario_rule(struct scenario *s, const char *name);
/** scenario_since() - ns from @start to now */
uint64_t scenario_since(const struct timespec *start);
/** scenario_packets() - packets sent and received at the line's port; -1, after printing a
 *  message */
int64_t scenario_packets(struct scenario *s, const struct scenario_line *l);
/** scenario_is_due() - has the line's trigger fired? Return: 1, 0; -1, after printing a
 *  message */
int scenario_is_due(struct scenario *s, const struct scenario_line *l);
/** scenario_act() - perform the line's action. Return: 0; -1, after printing a message */
int scenario_act(struct scenario *s, const struct scenario_line *l);
/** scenario_clear() - clear all rules that the scenario added
 *  Return: 0; -1 one could not be cleared */
int scenario_clear(struct scenario *s);

#endif
