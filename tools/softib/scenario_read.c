/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A scenario's file: each line is read and checked before anything happens. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/types.h"
#include "fault/fault.h"
#include "scenario.h"
#include "softib.h"

int scenario_fail(const struct scenario *s, int number, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	complain("%s:%d: %s", s->file, number, text);
	return -1;
}

/* the next word of *@at, cut off; "" at the end */
static char *word(char **at)
{
	char *start = *at + strspn(*at, " \t");
	char *end = start + strcspn(start, " \t");

	*at = *end ? end + 1 : end;
	*end = '\0';
	return start;
}

/* what softibd says to @req, before anything happens. Return: the answer, the
 * caller's; NULL: none, or an error of this line (printed) */
static struct json_object *ask_for(const struct scenario *s, int number, struct json_object *req)
{
	struct json_object *answer = client_call_quiet(s->dir, req);

	if (!answer)
		complain("softibd in %s does not answer: %s", s->dir, strerror(errno));
	if (!answer || !member_of(answer, "error"))
		return answer;
	scenario_fail(s, number, "%s", text_of(answer, "error"));
	json_object_put(answer);
	return NULL;
}

/* a port that exists, and where a @cable is wanted has one */
static int check_port(const struct scenario *s, int number, const char *node, long port, bool cable)
{
	struct json_object *req = request("topo"), *answer, *ports, *row = NULL;
	long last = 0;
	int ret = 0;

	request_text(req, "node", node);
	answer = ask_for(s, number, req);
	if (!answer)
		return -1;
	ports = member_of(item_of(member_of(answer, "nodes"), 0), "ports");
	for (size_t i = 0; i < count_of(ports); i++) {
		last = number_of(item_of(ports, i), "port");
		if (last == port)
			row = item_of(ports, i);
	}
	if (!row)
		ret = scenario_fail(s, number, "%s has ports 1 to %ld", node, last);
	else if (cable && !member_of(row, "peer"))
		ret = scenario_fail(s, number, "no cable at %s:%ld", node, port);
	json_object_put(answer);
	return ret;
}

/* NODE:PORT */
static int read_port(const struct scenario *s, int number, char *text, char *node, size_t bytes,
		     long *port)
{
	char *colon = strrchr(text, ':'), *end = NULL;

	if (colon && colon != text)
		*port = strtol(colon + 1, &end, 10);
	if (!end || *end || end == colon + 1 || *port < 1)
		return scenario_fail(s, number, "no port \"%s\"; expected NODE:PORT such as n1:1", text);
	*colon = '\0';
	snprintf(node, bytes, "%s", text);
	return check_port(s, number, node, *port, false);
}

struct rule_name *scenario_rule(struct scenario *s, const char *name)
{
	for (int i = 0; i < s->num_rules; i++)
		if (!strcmp(s->rule[i].name, name))
			return &s->rule[i];
	return NULL;
}

static int known_rule(struct scenario *s, int number, const char *name, char *out)
{
	if (!scenario_rule(s, name))
		return scenario_fail(s, number,
				     "no rule \"%s\" is added above this line; expected a name of \"add NAME: RULE\"",
				     name);
	snprintf(out, SCENARIO_NAME_BYTES, "%s", name);
	return 0;
}

static int read_after(struct scenario *s, struct scenario_line *l, char **at)
{
	char *first = word(at), *end;

	if (!flt_time_parse(first, &l->ns)) {
		l->trigger = AFTER;
		return 0;
	}
	l->count = strtoull(first, &end, 10);
	l->trigger = PACKETS;
	if (*end || end == first || strcmp(word(at), "packets") || strcmp(word(at), "on"))
		return scenario_fail(s, l->number,
				     "after what? Expected a time such as 500ms, or N packets on NODE:PORT");
	return read_port(s, l->number, word(at), l->where, sizeof(l->where), &l->port);
}

static int read_when(struct scenario *s, struct scenario_line *l, char **at)
{
	static const char *const states[] = {"down", "init", "armed", "active"};
	char *what = word(at), *next, *end;

	if (!strcasecmp(what, "subnet")) {
		l->trigger = SUBNET_UP;
		next = word(at);
		return !strcasecmp(next, "up") ? 0 :
			       scenario_fail(s, l->number, "when subnet \"%s\"; expected \"when subnet up\"", next);
	}
	if (!strcmp(what, "port")) {
		l->trigger = PORT_STATE;
		if (read_port(s, l->number, word(at), l->where, sizeof(l->where), &l->port))
			return -1;
		next = word(at);
		snprintf(l->state, sizeof(l->state), "%s", next);
		for (size_t i = 0; i < ARRAY_SIZE(states); i++)
			if (!strcasecmp(states[i], next))
				return 0;
		return scenario_fail(s, l->number, "no state \"%s\"; expected down, init, armed or active", next);
	}
	l->trigger = RULE_HIT;
	l->count = 1;
	if (known_rule(s, l->number, what, l->hit_name))
		return -1;
	if (strcmp(word(at), "hit"))
		return scenario_fail(s, l->number,
				     "when what? Expected \"when port NODE:PORT STATE\", \"when subnet up\" or "
				     "\"when NAME hit [N]\"");
	*at += strspn(*at, " \t");
	if (**at >= '0' && **at <= '9') {
		next = word(at);
		l->count = strtoull(next, &end, 10);
		if (*end || !l->count)
			return scenario_fail(s, l->number, "hit \"%s\"; expected a number from 1 on", next);
	}
	return 0;
}

static int read_trigger(struct scenario *s, struct scenario_line *l, char **at)
{
	char *save = *at + strspn(*at, " \t"), *what;

	l->trigger = NOW;
	if (!strncmp(save, "at ", 3)) {
		word(at);
		what = word(at);
		l->trigger = AT;
		return flt_time_parse(what, &l->ns) ?
			       scenario_fail(s, l->number, "at \"%s\"; expected a time such as 2s or 250ms", what) :
			       0;
	}
	if (!strncmp(save, "after ", 6)) {
		word(at);
		return read_after(s, l, at);
	}
	if (!strncmp(save, "when ", 5)) {
		word(at);
		return read_when(s, l, at);
	}
	return 0;
}

static int check_rule(struct scenario *s, const struct scenario_line *l)
{
	struct json_object *req = request("fault_add"), *answer;

	request_text(req, "rule", l->rest);
	json_object_object_add(req, "check", json_object_new_boolean(true));
	answer = ask_for(s, l->number, req);
	json_object_put(answer);
	return answer ? 0 : -1;
}

static int read_add(struct scenario *s, struct scenario_line *l, char **at)
{
	char *name = word(at);
	size_t len = strlen(name);

	if (len < 2 || name[len - 1] != ':' || len > SCENARIO_NAME_BYTES)
		return scenario_fail(s, l->number, "add \"%s\"; expected \"add NAME: RULE\", the name of at most 30 letters",
				     name);
	name[len - 1] = '\0';
	if (scenario_rule(s, name))
		return scenario_fail(s, l->number, "the name \"%s\" is taken by a rule above", name);
	snprintf(l->name[0], SCENARIO_NAME_BYTES, "%s", name);
	snprintf(l->rest, sizeof(l->rest), "%s", *at);
	if (check_rule(s, l))
		return -1;
	snprintf(s->rule[s->num_rules++].name, SCENARIO_NAME_BYTES, "%s", name);
	return 0;
}

static int read_clear(struct scenario *s, struct scenario_line *l, char **at)
{
	char *name = word(at);

	if (strcmp(name, "all"))
		return known_rule(s, l->number, name, l->name[0]);
	snprintf(l->name[0], SCENARIO_NAME_BYTES, "all");
	return 0;
}

static int read_link(struct scenario *s, struct scenario_line *l, char **at)
{
	char *state;

	if (read_port(s, l->number, word(at), l->rest, sizeof(l->rest), &l->link_port) ||
	    check_port(s, l->number, l->rest, l->link_port, true))
		return -1;
	state = word(at);
	l->up = !strcmp(state, "up");
	if (!l->up && strcmp(state, "down"))
		return scenario_fail(s, l->number, "link \"%s\"; expected up or down", state);
	return 0;
}

static int read_measure(struct scenario *s, struct scenario_line *l, char **at)
{
	return known_rule(s, l->number, word(at), l->name[0]) ||
			       known_rule(s, l->number, word(at), l->name[1]) ?
		       -1 :
		       0;
}

static int read_say(struct scenario *s, struct scenario_line *l, char **at)
{
	snprintf(l->rest, sizeof(l->rest), "%s", *at);
	*at += strlen(*at);
	return 0;
}

static const struct {
	const char *name;
	int (*read)(struct scenario *s, struct scenario_line *l, char **at);
} acts[] = {
	[ADD] = {"add", read_add},	     [CLEAR] = {"clear", read_clear},
	[LINK] = {"link", read_link},	     [MEASURE] = {"measure", read_measure},
	[SAY] = {"say", read_say},
};

static int read_line(struct scenario *s, struct scenario_line *l, char *text)
{
	char *at = text, *what;

	if (read_trigger(s, l, &at))
		return -1;
	what = word(&at);
	for (size_t i = 0; i < ARRAY_SIZE(acts); i++) {
		if (strcmp(acts[i].name, what))
			continue;
		l->act = (enum act)i;
		if (acts[i].read(s, l, &at))
			return -1;
		at += strspn(at, " \t");
		return l->act != ADD && *at ? scenario_fail(s, l->number, "unexpected words at the end of the line: \"%s\"", at) : 0;
	}
	return scenario_fail(s, l->number,
			     "no action \"%s\"; expected add, clear, link, measure or say, or before it "
			     "\"at TIME\", \"after ...\" or \"when ...\"",
			     what);
}

/* what is no text is not to be shown on a terminal. Return: 0; -1 (printed) */
static int check_text(const struct scenario *s, int number, const char *text, size_t len)
{
	if (len >= SCENARIO_LINE_BYTES - 1)
		return scenario_fail(s, number, "a line of more than %d bytes", SCENARIO_LINE_BYTES - 2);
	for (size_t i = 0; i < len; i++)
		if ((uint8_t)text[i] < ' ' && text[i] != '\t')
			return scenario_fail(s, number, "a byte 0x%02x; expected text",
					     (uint8_t)text[i]);
	return 0;
}

/* one line of the file, or nothing when it is empty. Return: 0; -1 (printed) */
static int take_line(struct scenario *s, char *text, size_t len, int number)
{
	struct scenario_line *l = &s->line[s->num_lines];

	if (len && text[len - 1] == '\n')
		len--;
	if (len && text[len - 1] == '\r')
		len--;
	if (check_text(s, number, text, len))
		return -1;
	text[len] = '\0';
	text += strspn(text, " \t");
	if (!*text || *text == '#')
		return 0;
	if (s->num_lines == SCENARIO_LINES_MAX)
		return scenario_fail(s, number, "more than %d lines", SCENARIO_LINES_MAX);
	l->number = number;
	snprintf(l->text, sizeof(l->text), "%s", text);
	s->num_lines++;
	return read_line(s, l, text);
}

int scenario_read(struct scenario *s)
{
	FILE *in = strcmp(s->file, "-") ? fopen(s->file, "re") : stdin;
	int number = 0, ret = 0;
	char *text = NULL;
	size_t room = 0;
	ssize_t len;

	if (!in)
		return complain("%s: %s", s->file, strerror(errno)), -1;
	while (!ret && (len = getline(&text, &room, in)) >= 0)
		ret = take_line(s, text, (size_t)len, ++number);
	if (!ret && ferror(in))
		ret = (complain("%s: %s", s->file, strerror(errno)), -1);
	free(text);
	if (in != stdin)
		fclose(in);
	if (!ret && !s->num_lines)
		ret = (complain("%s: no line in it does anything; see softib-fault(5)", s->file), -1);
	return ret;
}
