/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * bare [-c CPU,CPU] TEST...: measure limits; prints "name value unit" lines.
 * Without a test it lists them.
 */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bare.h"

#define LIMIT_SECONDS 30 /* a hang, not a measure */

static const struct bare_test *const tables[] = {line_tests, ring_tests,  copy_tests,
						 wake_tests, memfd_tests, tcp_tests};
static int cpus[2] = {0, 1};

static void *map(size_t bytes, int flags)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       flags | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	measure_check(p != MAP_FAILED, "mmap");
	return p;
}

void *bare_alloc(size_t bytes)
{
	return map(bytes, MAP_PRIVATE);
}

void *bare_shared(size_t bytes)
{
	return map(bytes, MAP_SHARED);
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	measure_check(!sched_setaffinity(0, sizeof(set), &set), "sched_setaffinity");
}

static void peer_main(struct duo *d, void (*peer)(struct duo *))
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(LIMIT_SECONDS);
	pin(cpus[1]);
	peer(d);
	_exit(0);
}

double duo_run(const struct bare_test *t, size_t bytes, double (*timed)(struct duo *),
	       void (*peer)(struct duo *))
{
	struct duo d = {.test = t, .mem = bare_shared(bytes)};
	double figure;
	pid_t child;
	int status;

	for (int i = 0; i < 2; i++) {
		d.pipe[i] = eventfd(0, 0);
		measure_check(d.pipe[i] >= 0, "eventfd");
	}
	child = fork();
	measure_check(child >= 0, "fork");
	if (!child)
		peer_main(&d, peer);
	figure = timed(&d);
	measure_check(waitpid(child, &status, 0) == child && status == 0, "peer");
	munmap(d.mem, bytes);
	close(d.pipe[0]);
	close(d.pipe[1]);
	return figure;
}

static void list(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
		for (const struct bare_test *t = tables[i]; t->name; t++)
			printf("%s %s\n", t->name, t->unit);
}

static const struct bare_test *find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
		for (const struct bare_test *t = tables[i]; t->name; t++)
			if (!strcmp(t->name, name))
				return t;
	fprintf(stderr, "bare: no test '%s'\n", name);
	exit(2);
}

int main(int argc, char **argv)
{
	int option;

	while ((option = getopt(argc, argv, "c:")) != -1)
		if (option != 'c' || sscanf(optarg, "%d,%d", &cpus[0], &cpus[1]) != 2)
			return 2;
	if (optind == argc)
		list();
	pin(cpus[0]);
	for (; optind < argc; optind++) {
		const struct bare_test *t = find(argv[optind]);

		alarm(LIMIT_SECONDS);
		printf("%s %.4f %s\n", t->name, t->run(t), t->unit);
		fflush(stdout);
	}
	return 0;
}
