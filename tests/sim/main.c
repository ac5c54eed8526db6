/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* softib-sim: scenarios from seeds. See docs/SIMULATION.md. */
#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sim.h"

#define MAX_JOBS 64

struct arguments {
	struct sim_options run;
	uint64_t seeds;
	int jobs;
	bool one, no_shrink, both;
};

static const struct argp_option option_list[] = {
	{"seed", 's', "N", 0, "replay this seed, twice, and compare the digests", 0},
	{"seeds", 'n', "COUNT", 0, "run so many seeds, from --first on", 0},
	{"first", 'f', "N", 0, "the first seed of --seeds (default 1)", 0},
	{"faults", 'F', "LIST", 0, "of the plan's faults only these: 0,3; or none", 0},
	{"ops", 'o', "N", 0, "at most so many requests of each end", 0},
	{"kind", 'k', "KIND", 0, "calm, packets, links, manager, death, memory, chaos, violations", 0},
	{"break", 'b', "ORACLE", 0,
	 "break this rule on purpose, to see that it is watched", 0},
	{"general", 'g', NULL, 0, "the programs' engines take their general paths only", 0},
	{"both", 'B', NULL, 0,
	 "each seed with the fast paths and without: packets and completions must be the same", 0},
	{"jobs", 'j', "N", 0, "of --seeds run so many at a time (default: one for each processor)", 0},
	{"no-shrink", 'N', NULL, 0, "report failures as they are", 0},
	{"verbose", 'v', NULL, 0, "print the plan and what happens", 0},
	{0},
};

static int find_name(struct argp_state *state, const char *const *names, int n,
		     const char *name)
{
	char list[256] = "";

	for (int i = 0; i < n; i++) {
		size_t len = strlen(list);

		if (!strcmp(names[i], name))
			return i;
		snprintf(list + len, sizeof(list) - len, "%s%s", i ? ", " : "", names[i]);
	}
	argp_error(state, "'%s' is not known; expected one of %s", name, list);
	return -1;
}

/* the number at *@at, which goes on behind it. Return: 0; -1 there is none */
static int take_number(const char **at, uint64_t *n)
{
	char *end;

	if (**at < '0' || **at > '9')
		return -1;
	errno = 0;
	*n = strtoull(*at, &end, 0);
	*at = end;
	return errno ? -1 : 0;
}

static uint64_t number(struct argp_state *state, const char *what, const char *text,
		       uint64_t least, uint64_t most)
{
	const char *at = text;
	uint64_t n = 0;

	if (take_number(&at, &n) || *at || n < least || n > most)
		argp_error(state, "--%s takes a number from %" PRIu64 " on, not '%s'",
			   what, least, text);
	return n;
}

/* a list of numbers of faults that the seed's plan has; "none" is the empty
 * one. With many seeds their plans differ: any number that a plan may have. */
static void check_faults(struct argp_state *state, struct arguments *a)
{
	static struct plan plan;
	const char *at = a->run.keep_faults;
	uint64_t num = PLAN_FAULTS, n = 0;

	if (!at || !*at || !strcmp(at, "none"))
		return;
	if (a->one) {
		plan_make(&plan, a->run.seed, a->run.kind);
		num = (uint64_t)plan.num_faults;
	}
	do {
		if (take_number(&at, &n) || (*at && *at != ','))
			argp_error(state, "--faults takes numbers such as 0,3, or none, not '%s'",
				   a->run.keep_faults);
		if (n >= num)
			argp_error(state,
				   "there is no fault %" PRIu64 ": the plan has %" PRIu64
				   ", from 0 on; --verbose prints it",
				   n, num);
	} while (*at++ == ',');
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct arguments *a = state->input;

	switch (key) {
	case 's':
		a->one = true;
		a->run.seed = number(state, "seed", arg, 0, UINT64_MAX);
		return 0;
	case 'n':
		a->seeds = number(state, "seeds", arg, 1, UINT64_MAX);
		return 0;
	case 'f':
		a->run.seed = number(state, "first", arg, 0, UINT64_MAX);
		return 0;
	case 'F':
		a->run.keep_faults = arg;
		return 0;
	case 'o':
		a->run.max_ops = (uint32_t)number(state, "ops", arg, 1, UINT32_MAX);
		return 0;
	case 'k':
		a->run.kind = find_name(state, plan_kind_names, KIND_NUM, arg);
		return 0;
	case 'b':
		a->run.sabotage = find_name(state, oracle_names, ORACLE_NUM, arg);
		return 0;
	case 'g':
		a->run.general_only = true;
		return 0;
	case 'B':
		a->both = true;
		return 0;
	case 'j':
		a->jobs = (int)number(state, "jobs", arg, 1, MAX_JOBS);
		return 0;
	case 'N':
		a->no_shrink = true;
		return 0;
	case 'v':
		a->run.verbose = true;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "softib-sim takes no argument '%s'; see --help", arg);
		return EINVAL;
	case ARGP_KEY_END:
		check_faults(state, a);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static void print_replay(const struct sim_options *o, const struct sim_result *r)
{
	printf("FAILED %s: %s\n", r->oracle < 0 ? "run" : oracle_names[r->oracle],
	       r->text);
	printf("  make replay SEED=%" PRIu64, o->seed);
	if (o->kind >= 0)
		printf(" KIND=%s", plan_kind_names[o->kind]);
	if (o->keep_faults)
		printf(" FAULTS='%s'", *o->keep_faults ? o->keep_faults : "none");
	if (o->max_ops)
		printf(" OPS=%u", o->max_ops);
	putchar('\n');
}

static void report(struct sim_options o, struct sim_result r, bool as_it_is)
{
	o.verbose = false;
	if (!as_it_is)
		shrink(&o, &r);
	print_replay(&o, &r);
	fflush(stdout);
}

/* the same seed twice: the digests must agree */
static int replay(const struct arguments *a)
{
	struct sim_options quiet = a->run;
	struct sim_result first, second;

	quiet.verbose = false;
	run_child(&a->run, &first);
	if (first.failed) {
		print_replay(&a->run, &first);
		return EXIT_FAILURE;
	}
	run_child(&quiet, &second);
	printf("seed %" PRIu64 " digest %016" PRIx64 ": %" PRIu64 " events, %" PRIu64
	       " packets (%" PRIu64 " by lanes), %" PRIu64
	       " requests by windows, %" PRIu64
	       " completions, %u errors, %.3f s of virtual time\n",
	       a->run.seed, first.digest, first.events, first.packets, first.by_lane,
	       first.by_window, first.completions, first.errors,
	       (double)first.virtual_ns / 1e9);
	if (first.digest == second.digest)
		return EXIT_SUCCESS;
	printf("FAILED digest: the same seed gave %016" PRIx64 " the second time\n",
	       second.digest);
	return EXIT_FAILURE;
}

/* The engine's fast paths are the general one specialised: what goes by wires and lanes, and
 * what completes, is the same without them, and at the same time. @r: with them */
static void compare(const struct sim_options *options, struct sim_result *r)
{
	struct sim_options o = *options;
	struct sim_result general;

	if (r->failed)
		return;
	o.general_only = true;
	o.verbose = false;
	run_child(&o, &general);
	if (general.failed) {
		*r = general;
		return;
	}
	if (general.digest == r->digest)
		return;
	r->failed = true;
	r->oracle = -1;
	snprintf(r->text, sizeof(r->text),
		 "without the fast paths the digest is %016" PRIx64 " (%" PRIu64 " events, %" PRIu64
		 " packets, %" PRIu64 " completions), with them %016" PRIx64 " (%" PRIu64
		 ", %" PRIu64 ", %" PRIu64 ")",
		 general.digest, general.events, general.packets, general.completions, r->digest,
		 r->events, r->packets, r->completions);
}

struct totals {
	uint64_t runs, failures, events, packets, completions;
};

static double seconds_since(const struct timespec *t)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - t->tv_sec) +
	       (double)(now.tv_nsec - t->tv_nsec) / 1e9;
}

static void print_totals(const struct totals *t, const struct timespec *began,
			 const char *end)
{
	double s = seconds_since(began);

	printf("%" PRIu64 " seeds, %" PRIu64 " failed, %" PRIu64 " events, %" PRIu64
	       " packets, %" PRIu64 " completions in %.1f s: %.0f events/s%s",
	       t->runs, t->failures, t->events, t->packets, t->completions, s,
	       (double)(t->events + t->packets + t->completions) / s, end);
	fflush(stdout);
}

static void run_both(const struct sim_options *options, struct sim_result *result)
{
	run_child(options, result);
	compare(options, result);
}

/* how many seeds run at a time */
static int num_jobs(const struct arguments *a)
{
	const long processors = MAX(sysconf(_SC_NPROCESSORS_ONLN), 1L);

	if (a->run.verbose) /* what they print would be mixed */
		return 1;
	if (a->jobs)
		return a->jobs;
	return (int)MIN(processors, (long)MAX_JOBS);
}

static void count_run(struct totals *t, const struct sim_result *r)
{
	t->runs++;
	t->failures += r->failed;
	t->events += r->events;
	t->packets += r->packets;
	t->completions += r->completions;
}

static int run_seeds(struct arguments *a)
{
	struct sim_job jobs[MAX_JOBS] = {{0}}, *job;
	void (*run)(const struct sim_options *, struct sim_result *) = a->both ? run_both : run_child;
	uint64_t step = MAX(a->seeds / 10, (uint64_t)1), started = 0;
	struct totals t = {0};
	struct timespec began;
	struct sim_result r;
	int num = num_jobs(a);

	clock_gettime(CLOCK_MONOTONIC, &began);
	for (; started < MIN((uint64_t)num, a->seeds); started++, a->run.seed++)
		job_start(&jobs[started], &a->run, run);
	while ((job = job_wait(jobs, num, &r))) {
		count_run(&t, &r);
		if (r.failed)
			report(job->options, r, a->no_shrink || a->both);
		if (t.runs % step == 0 && t.runs < a->seeds)
			print_totals(&t, &began, "\n");
		if (started == a->seeds)
			continue;
		job_start(job, &a->run, run);
		started++;
		a->run.seed++;
	}
	print_totals(&t, &began, "\n");
	printf("simulation: %" PRIu64 " passed, %" PRIu64 " failed\n",
	       t.runs - t.failures, t.failures);
	return t.failures || t.runs < a->seeds ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		.options = option_list,
		.parser = parse_option,
		.doc = "A whole fabric in one process under a virtual clock, from a "
		       "seed.",
	};
	struct arguments a = {.run = {.seed = 1, .sabotage = -1, .kind = -1},
			      .seeds = 100};

	argp_parse(&argp, argc, argv, 0, NULL, &a);
	return a.one ? replay(&a) : run_seeds(&a);
}
