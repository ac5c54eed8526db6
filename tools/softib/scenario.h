/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A scenario of 'softib fault run': read and checked by scenario_read.c,
 * its lines waited for and carried out by scenario_act.c, in the order that
 * cmd_fault_run.c keeps. A line is
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

/** struct scenario_line - of a scenario, as parsed */
struct scenario_line {
	int number;
	char text[SCENARIO_LINE_BYTES]; /* as it stands in the file, for progress */
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
	struct timespec start, last; /* of the scenario, of the last action */
	uint64_t base_packets;	     /* of PACKETS, when its line came up */
	double timeout_s;
};

/** scenario_read() - all of s->file, its rules checked by softibd.
 *  Return: 0; -1 (said) */
int scenario_read(struct scenario *s);
/** scenario_fail() - complain with the file's name and the line. Return: -1 */
__attribute__((format(printf, 3, 4)))
int scenario_fail(const struct scenario *s, int number, const char *fmt, ...);
/** scenario_rule() - by its name; NULL */
struct rule_name *scenario_rule(struct scenario *s, const char *name);
/** scenario_since() - ns from @start to now */
uint64_t scenario_since(const struct timespec *start);
/** scenario_packets() - sent and received at the line's port so far; -1 (said) */
int64_t scenario_packets(struct scenario *s, const struct scenario_line *l);
/** scenario_is_due() - has the line's time come? Return: 1, 0; -1 (said) */
int scenario_is_due(struct scenario *s, const struct scenario_line *l);
/** scenario_act() - do what the line says. Return: 0; -1 (said) */
int scenario_act(struct scenario *s, const struct scenario_line *l);
/** scenario_clear() - all rules that it added. Return: 0; -1 one could not be */
int scenario_clear(struct scenario *s);

#endif
