/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * softib fault run: a scenario. Its lines are carried out one after the other;
 * each waits for its trigger, then acts:
 *
 *	[at TIME | after TIME | after N packets on NODE:PORT |
 *	 when port NODE:PORT STATE | when subnet up | when NAME hit [N]] ACTION
 *
 *	add NAME: RULE, clear NAME|all, link NODE:PORT up|down,
 *	measure NAME NAME, say TEXT
 *
 * The file is read and checked, rules by softibd, before anything happens.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/types.h"
#include "fault/fault.h"
#include "softib.h"

#define LINES_MAX 1000
#define LINE_BYTES 700
#define NAME_BYTES 32
#define POLL_US	   2000

enum trigger { NOW, AT, AFTER, PACKETS, PORT_STATE, SUBNET_UP, RULE_HIT };
enum act { ADD, CLEAR, LINK, MEASURE, SAY };

/** struct line - of a scenario, as parsed */
struct line {
	int number;
	char text[LINE_BYTES]; /* as it stands in the file, for progress */
	enum trigger trigger;
	uint64_t ns, count;
	char where[96];	    /* NODE of PACKETS, PORT_STATE */
	long port;
	char state[16];	    /* PORT_STATE */
	enum act act;
	char name[2][NAME_BYTES]; /* rules; [0] of RULE_HIT when act is not ADD ... */
	char hit_name[NAME_BYTES];
	char rest[LINE_BYTES]; /* RULE, TEXT, NODE of LINK */
	long link_port;
	bool up;
};

struct rule_name {
	char name[NAME_BYTES];
	long long id; /* 0: not added yet, or cleared */
};

struct scenario {
	const char *file;
	char dir[PATH_MAX];
	struct line *line;
	int num_lines;
	struct rule_name rule[LINES_MAX];
	int num_rules;
	struct timespec start, last; /* of the scenario, of the last action */
	uint64_t base_packets;	     /* of PACKETS, when its line came up */
	double timeout_s;
};

/* --- reading ----------------------------------------------------------- */

__attribute__((format(printf, 3, 4)))
static int fail_line(const struct scenario *s, int number, const char *fmt, ...)
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
 * caller's; NULL: none, or an error of this line (said) */
static struct json_object *ask_for(const struct scenario *s, int number, struct json_object *req)
{
	struct json_object *answer = client_call_quiet(s->dir, req);

	if (!answer)
		complain("softibd in %s does not answer: %s", s->dir, strerror(errno));
	if (!answer || !member_of(answer, "error"))
		return answer;
	fail_line(s, number, "%s", text_of(answer, "error"));
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
		ret = fail_line(s, number, "%s has ports 1 to %ld", node, last);
	else if (cable && !member_of(row, "peer"))
		ret = fail_line(s, number, "no cable at %s:%ld", node, port);
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
		return fail_line(s, number, "no port \"%s\"; expected NODE:PORT such as n1:1", text);
	*colon = '\0';
	snprintf(node, bytes, "%s", text);
	return check_port(s, number, node, *port, false);
}

static struct rule_name *find_rule(struct scenario *s, const char *name)
{
	for (int i = 0; i < s->num_rules; i++)
		if (!strcmp(s->rule[i].name, name))
			return &s->rule[i];
	return NULL;
}

static int known_rule(struct scenario *s, int number, const char *name, char *out)
{
	if (!find_rule(s, name))
		return fail_line(s, number,
				 "no rule \"%s\" is added above this line; expected a name of \"add NAME: RULE\"",
				 name);
	snprintf(out, NAME_BYTES, "%s", name);
	return 0;
}

static int read_after(struct scenario *s, struct line *l, char **at)
{
	char *first = word(at), *end;

	if (!flt_time_parse(first, &l->ns)) {
		l->trigger = AFTER;
		return 0;
	}
	l->count = strtoull(first, &end, 10);
	l->trigger = PACKETS;
	if (*end || end == first || strcmp(word(at), "packets") || strcmp(word(at), "on"))
		return fail_line(s, l->number,
				 "after what? Expected a time such as 500ms, or N packets on NODE:PORT");
	return read_port(s, l->number, word(at), l->where, sizeof(l->where), &l->port);
}

static int read_when(struct scenario *s, struct line *l, char **at)
{
	static const char *const states[] = {"down", "init", "armed", "active"};
	char *what = word(at), *next, *end;

	if (!strcasecmp(what, "subnet")) {
		l->trigger = SUBNET_UP;
		next = word(at);
		return !strcasecmp(next, "up") ? 0 :
			       fail_line(s, l->number, "when subnet \"%s\"; expected \"when subnet up\"", next);
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
		return fail_line(s, l->number, "no state \"%s\"; expected down, init, armed or active", next);
	}
	l->trigger = RULE_HIT;
	l->count = 1;
	if (known_rule(s, l->number, what, l->hit_name))
		return -1;
	if (strcmp(word(at), "hit"))
		return fail_line(s, l->number,
				 "when what? Expected \"when port NODE:PORT STATE\", \"when subnet up\" or "
				 "\"when NAME hit [N]\"");
	*at += strspn(*at, " \t");
	if (**at >= '0' && **at <= '9') {
		next = word(at);
		l->count = strtoull(next, &end, 10);
		if (*end || !l->count)
			return fail_line(s, l->number, "hit \"%s\"; expected a number from 1 on", next);
	}
	return 0;
}

static int read_trigger(struct scenario *s, struct line *l, char **at)
{
	char *save = *at + strspn(*at, " \t"), *what;

	l->trigger = NOW;
	if (!strncmp(save, "at ", 3)) {
		word(at);
		what = word(at);
		l->trigger = AT;
		return flt_time_parse(what, &l->ns) ?
			       fail_line(s, l->number, "at \"%s\"; expected a time such as 2s or 250ms", what) :
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

static int check_rule(struct scenario *s, const struct line *l)
{
	struct json_object *req = request("fault_add"), *answer;

	request_text(req, "rule", l->rest);
	json_object_object_add(req, "check", json_object_new_boolean(true));
	answer = ask_for(s, l->number, req);
	json_object_put(answer);
	return answer ? 0 : -1;
}

static int read_add(struct scenario *s, struct line *l, char **at)
{
	char *name = word(at);
	size_t len = strlen(name);

	if (len < 2 || name[len - 1] != ':' || len > NAME_BYTES)
		return fail_line(s, l->number, "add \"%s\"; expected \"add NAME: RULE\", the name of at most 30 letters",
				 name);
	name[len - 1] = '\0';
	if (find_rule(s, name))
		return fail_line(s, l->number, "the name \"%s\" is taken by a rule above", name);
	snprintf(l->name[0], NAME_BYTES, "%s", name);
	snprintf(l->rest, sizeof(l->rest), "%s", *at);
	if (check_rule(s, l))
		return -1;
	snprintf(s->rule[s->num_rules++].name, NAME_BYTES, "%s", name);
	return 0;
}

static int read_clear(struct scenario *s, struct line *l, char **at)
{
	char *name = word(at);

	if (strcmp(name, "all"))
		return known_rule(s, l->number, name, l->name[0]);
	snprintf(l->name[0], NAME_BYTES, "all");
	return 0;
}

static int read_link(struct scenario *s, struct line *l, char **at)
{
	char *state;

	if (read_port(s, l->number, word(at), l->rest, sizeof(l->rest), &l->link_port) ||
	    check_port(s, l->number, l->rest, l->link_port, true))
		return -1;
	state = word(at);
	l->up = !strcmp(state, "up");
	if (!l->up && strcmp(state, "down"))
		return fail_line(s, l->number, "link \"%s\"; expected up or down", state);
	return 0;
}

static int read_measure(struct scenario *s, struct line *l, char **at)
{
	return known_rule(s, l->number, word(at), l->name[0]) ||
			       known_rule(s, l->number, word(at), l->name[1]) ?
		       -1 :
		       0;
}

static int read_say(struct scenario *s, struct line *l, char **at)
{
	snprintf(l->rest, sizeof(l->rest), "%s", *at);
	*at += strlen(*at);
	return 0;
}

static const struct {
	const char *name;
	int (*read)(struct scenario *s, struct line *l, char **at);
} acts[] = {
	[ADD] = {"add", read_add},	     [CLEAR] = {"clear", read_clear},
	[LINK] = {"link", read_link},	     [MEASURE] = {"measure", read_measure},
	[SAY] = {"say", read_say},
};

static int read_line(struct scenario *s, struct line *l, char *text)
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
		return l->act != ADD && *at ? fail_line(s, l->number, "too much: \"%s\"", at) : 0;
	}
	return fail_line(s, l->number,
			 "no action \"%s\"; expected add, clear, link, measure or say, or before it "
			 "\"at TIME\", \"after ...\" or \"when ...\"",
			 what);
}

/* what is no text is not to be shown on a terminal. Return: 0; -1 (said) */
static int check_text(const struct scenario *s, int number, const char *text, size_t len)
{
	if (len >= LINE_BYTES - 1)
		return fail_line(s, number, "a line of more than %d bytes", LINE_BYTES - 2);
	for (size_t i = 0; i < len; i++)
		if ((uint8_t)text[i] < ' ' && text[i] != '\t')
			return fail_line(s, number, "a byte 0x%02x; expected text",
					 (uint8_t)text[i]);
	return 0;
}

/* one line of the file, or nothing when it is empty. Return: 0; -1 (said) */
static int take_line(struct scenario *s, char *text, size_t len, int number)
{
	struct line *l = &s->line[s->num_lines];

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
	if (s->num_lines == LINES_MAX)
		return fail_line(s, number, "more than %d lines", LINES_MAX);
	l->number = number;
	snprintf(l->text, sizeof(l->text), "%s", text);
	s->num_lines++;
	return read_line(s, l, text);
}

static int read_file(struct scenario *s)
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

/* --- triggers ---------------------------------------------------------- */

static uint64_t since(const struct timespec *start)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)(now.tv_sec - start->tv_sec) * NSEC_PER_SEC + (uint64_t)now.tv_nsec -
	       (uint64_t)start->tv_nsec;
}

/* Return: packets sent and received at a port so far; -1 (said) */
static int64_t packets_at(struct scenario *s, const struct line *l)
{
	struct json_object *req = request("counters"), *answer, *row;
	int64_t n;

	request_text(req, "node", l->where);
	request_number(req, "port", l->port);
	answer = client_call(s->dir, req);
	if (!answer)
		return -1;
	row = item_of(member_of(answer, "counters"), 0);
	n = number_of(row, "xmit_packets") + number_of(row, "rcv_packets");
	json_object_put(answer);
	return n;
}

/* Return: is it so? 1, 0; -1 (said) */
static int port_is(struct scenario *s, const struct line *l)
{
	struct json_object *req = request("topo"), *answer, *ports;
	int ret = 0;

	request_text(req, "node", l->where);
	answer = client_call(s->dir, req);
	if (!answer)
		return -1;
	ports = member_of(item_of(member_of(answer, "nodes"), 0), "ports");
	for (size_t i = 0; i < count_of(ports); i++) {
		struct json_object *port = item_of(ports, i);

		if (number_of(port, "port") == l->port)
			ret = !strcasecmp(text_of(port, "state"), l->state);
	}
	json_object_put(answer);
	return ret;
}

static int subnet_is_up(struct scenario *s)
{
	struct json_object *answer = client_call(s->dir, request("status")), *ports;
	int ret;

	if (!answer)
		return -1;
	ports = member_of(answer, "ports");
	ret = !number_of(ports, "armed") && !number_of(ports, "init") && !number_of(ports, "down");
	json_object_put(answer);
	return ret;
}

static int rule_was_hit(struct scenario *s, const struct line *l)
{
	const struct rule_name *rule = find_rule(s, l->hit_name);
	struct json_object *answer = client_call(s->dir, request("fault_list")), *list;
	int ret = 0;

	if (!answer)
		return -1;
	list = member_of(answer, "rules");
	for (size_t i = 0; i < count_of(list); i++) {
		struct json_object *row = item_of(list, i);

		if (number_of(row, "id") == rule->id)
			ret = (uint64_t)number_of(row, "hits") >= l->count;
	}
	json_object_put(answer);
	return ret;
}

/* has its time come? Return: 1, 0; -1 (said) */
static int is_due(struct scenario *s, const struct line *l)
{
	int64_t n;

	switch (l->trigger) {
	case NOW:
		return 1;
	case AT:
		return since(&s->start) >= l->ns;
	case AFTER:
		return since(&s->last) >= l->ns;
	case PACKETS:
		n = packets_at(s, l);
		return n < 0 ? -1 : (uint64_t)n >= s->base_packets + l->count;
	case PORT_STATE:
		return port_is(s, l);
	case SUBNET_UP:
		return subnet_is_up(s);
	default:
		return rule_was_hit(s, l);
	}
}

/* --- actions ----------------------------------------------------------- */

static int do_add(struct scenario *s, const struct line *l)
{
	struct json_object *req = request("fault_add"), *answer;

	request_text(req, "rule", l->rest);
	answer = client_call(s->dir, req);
	if (!answer)
		return -1;
	find_rule(s, l->name[0])->id = number_of(answer, "id");
	printf("%12s %lld: %s\n", "", (long long)number_of(answer, "id"), text_of(answer, "rule"));
	json_object_put(answer);
	return 0;
}

static int clear(struct scenario *s, struct rule_name *rule)
{
	struct json_object *req, *answer;

	if (!rule->id)
		return 0;
	req = request("fault_clear");
	request_number(req, "id", rule->id);
	rule->id = 0;
	answer = client_call_quiet(s->dir, req); /* it may have gone with its QP */
	json_object_put(answer);
	return answer ? 0 : -1;
}

static int clear_ours(struct scenario *s)
{
	int ret = 0;

	for (int i = s->num_rules; i-- > 0;)
		ret |= clear(s, &s->rule[i]);
	return ret;
}

static int do_link(struct scenario *s, const struct line *l)
{
	struct json_object *req = request("link"), *answer;

	request_text(req, "node", l->rest);
	request_number(req, "port", l->link_port);
	request_text(req, "state", l->up ? "up" : "down");
	answer = client_call(s->dir, req);
	json_object_put(answer);
	return answer ? 0 : -1;
}

/* the time of a rule's first hit behind @from. Return: ns; 0 none; -1 (said) */
static int64_t first_hit(struct scenario *s, const char *name, int64_t from)
{
	long long id = find_rule(s, name)->id;
	struct json_object *answer = client_call(s->dir, request("fault_log")), *list;
	int64_t when = 0;

	if (!answer)
		return -1;
	list = member_of(answer, "hits");
	for (size_t i = 0; !when && i < count_of(list); i++) {
		struct json_object *hit = item_of(list, i);

		if (number_of(hit, "rule") == id && number_of(hit, "when_ns") >= from)
			when = number_of(hit, "when_ns");
	}
	json_object_put(answer);
	return when;
}

static int do_measure(struct scenario *s, const struct line *l)
{
	int64_t a = first_hit(s, l->name[0], 0), b = a > 0 ? first_hit(s, l->name[1], a) : a;

	if (a < 0 || b < 0)
		return -1;
	if (!a || !b)
		return fail_line(s, l->number, "%s has no hit that the log keeps",
				 a ? l->name[1] : l->name[0]);
	printf("%12s from %s to %s: %.3f ms\n", "", l->name[0], l->name[1], (double)(b - a) / 1e6);
	return 0;
}

static int act(struct scenario *s, const struct line *l)
{
	switch (l->act) {
	case ADD:
		return do_add(s, l);
	case CLEAR:
		return strcmp(l->name[0], "all") ? clear(s, find_rule(s, l->name[0])) : clear_ours(s);
	case LINK:
		return do_link(s, l);
	case MEASURE:
		return do_measure(s, l);
	default:
		printf("%12s %s\n", "", l->rest);
		return 0;
	}
}

/* --- the run ----------------------------------------------------------- */

static volatile sig_atomic_t interrupted; /* by the signal of this number */

static void on_signal(int number)
{
	interrupted = number;
}

/* whatever ends the run, its rules are to be cleared. A reader of the output
 * that goes is found by the write. */
static void catch_signals(void)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	struct sigaction stop = {.sa_handler = on_signal}, old;

	signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		if (!sigaction(numbers[i], NULL, &old) &&
		    old.sa_handler != SIG_IGN) /* as nohup has it */
			sigaction(numbers[i], &stop, NULL);
}

static int await(struct scenario *s, const struct line *l)
{
	int64_t n;
	int due;

	if (l->trigger == PACKETS) {
		n = packets_at(s, l);
		if (n < 0)
			return -1;
		s->base_packets = (uint64_t)n;
	}
	while (!(due = is_due(s, l)) && !interrupted) {
		if (s->timeout_s > 0 && (double)since(&s->start) / 1e9 > s->timeout_s)
			return fail_line(s, l->number, "not yet after %g s (--timeout): %s", s->timeout_s,
					 l->text);
		usleep(POLL_US);
	}
	return due < 0 || interrupted ? -1 : 0;
}

static int play(struct scenario *s)
{
	clock_gettime(CLOCK_MONOTONIC, &s->start);
	s->last = s->start;
	for (int i = 0; i < s->num_lines; i++) {
		if (await(s, &s->line[i]))
			return -1;
		printf("%10.3f s %s\n", (double)since(&s->start) / 1e9, s->line[i].text);
		if (act(s, &s->line[i]) || check_output())
			return -1;
		clock_gettime(CLOCK_MONOTONIC, &s->last);
	}
	return 0;
}

struct run_args {
	struct common common;
	const char *file;
	double timeout_s;
	bool keep;
};

static error_t parse_run(int key, char *arg, struct argp_state *state)
{
	struct run_args *args = state->input;
	char *end;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &args->common;
		return 0;
	case 'T':
		args->timeout_s = strtod(arg, &end);
		if (*end || end == arg || !(args->timeout_s > 0))
			argp_error(state, "--timeout takes seconds, not '%s'", arg);
		return 0;
	case 'k':
		args->keep = true;
		return 0;
	case ARGP_KEY_ARG:
		if (state->arg_num)
			argp_error(state, "one FILE, not '%s' as well", arg);
		args->file = arg;
		return 0;
	case ARGP_KEY_END:
		if (!args->file)
			argp_error(state, "which FILE? '-' is the standard input");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int fault_run(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"timeout", 'T', "SECONDS", 0, "give up when it lasts longer; default: never", 0},
		{"keep", 'k', NULL, 0, "leave the rules when it ends", 0},
		{0},
	};
	static const struct argp_child fabric_child[] = {{&argp_fabric, 0, NULL, 0}, {0}};
	static const struct argp argp = {
		.options = options,
		.parser = parse_run,
		.children = fabric_child,
		.args_doc = "FILE",
		.doc = "Play a scenario: its lines in order, each when its time or event comes. "
		       "softib-fault(5) describes the file.\v"
		       "Example of a file:\n"
		       "  when subnet up add loss: link n1:1 drop 1% seed=7\n"
		       "  after 1000 packets on n1:1 clear loss\n"
		       "  after 1s add cut: link s1:3 down for=2s\n"};
	struct run_args args = {0};
	struct scenario s = {0};
	int ret;

	argp_parse(&argp, argc, argv, 0, NULL, &args);
	s.file = args.file;
	s.timeout_s = args.timeout_s;
	if (place_choose(args.common.fabric, s.dir))
		return EXIT_FAILURE;
	s.line = calloc(LINES_MAX + 1, sizeof(*s.line));
	if (!s.line)
		return complain("out of memory");
	ret = read_file(&s);
	if (!ret) {
		catch_signals();
		ret = play(&s);
		if (!args.keep && clear_ours(&s))
			ret = -1;
	}
	if (interrupted)
		ret = complain("%s ended by a signal (%s), its rules %s", s.file,
			       strsignal(interrupted), args.keep ? "stay" : "are cleared");
	free(s.line);
	return ret ? EXIT_FAILURE : EXIT_SUCCESS;
}
