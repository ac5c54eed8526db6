/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * softib fault run: a scenario. Its lines are carried out one after the other;
 * each waits for its trigger, then acts. Whatever ends the run, its rules are
 * cleared.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/types.h"
#include "scenario.h"
#include "softib.h"

#define POLL_US 2000

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

static int await(struct scenario *s, const struct scenario_line *l)
{
	int64_t n;
	int due;

	if (l->trigger == PACKETS) {
		n = scenario_packets(s, l);
		if (n < 0)
			return -1;
		s->base_packets = (uint64_t)n;
	}
	while (!(due = scenario_is_due(s, l)) && !interrupted) {
		if (s->timeout_s > 0 && (double)scenario_since(&s->start) / 1e9 > s->timeout_s)
			return scenario_fail(s, l->number, "not yet after %g s (--timeout): %s", s->timeout_s,
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
		printf("%10.3f s %s\n", (double)scenario_since(&s->start) / 1e9, s->line[i].text);
		if (scenario_act(s, &s->line[i]) || check_output())
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
	s.line = calloc(SCENARIO_LINES_MAX + 1, sizeof(*s.line));
	if (!s.line)
		return complain("out of memory");
	ret = scenario_read(&s);
	if (!ret) {
		catch_signals();
		ret = play(&s);
		if (!args.keep && scenario_clear(&s))
			ret = -1;
	}
	if (interrupted)
		ret = complain("%s ended by a signal (%s), its rules %s", s.file,
			       strsignal(interrupted), args.keep ? "stay" : "are cleared");
	free(s.line);
	return ret ? EXIT_FAILURE : EXIT_SUCCESS;
}
