/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Runs in child processes: what a run leaves in static variables, and how it
 * dies, is then its own. Jobs: several seeds at a time, each in a process of its own.
 * And the shrinker: fewer faults, less traffic, while the run still fails by the same
 * oracle.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim.h"

/* A run takes some seconds at most, or tens of seconds under an emulator. Beside other programs it may take any real
 * time, so processor time is limited; the other limit is for a run that waits for something. */
#define CPU_S  60
#define REAL_S 900

static void child(const struct sim_options *options, struct sim_result *result)
{
	setitimer(ITIMER_PROF, &(struct itimerval){.it_value.tv_sec = CPU_S}, NULL);
	alarm(REAL_S);
	sim_run(options, result);
	fflush(stdout);
	_exit(0);
}

static void describe_death(struct sim_result *r, int status)
{
	if (r->failed || (WIFEXITED(status) && WEXITSTATUS(status) == 0))
		return;
	r->failed = true;
	r->oracle = -1;
	if (WIFSIGNALED(status))
		snprintf(r->text, sizeof(r->text), "the run ended by signal %d (%s)",
			 WTERMSIG(status),
			 WTERMSIG(status) == SIGPROF || WTERMSIG(status) == SIGALRM ?
				 "no end in sight" :
				 strsignal(WTERMSIG(status)));
	else
		snprintf(r->text, sizeof(r->text), "the run exited with %d",
			 WEXITSTATUS(status));
}

/* a result that a child process fills in */
static struct sim_result *shared_result(void)
{
	struct sim_result *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
					 MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (shared != MAP_FAILED)
		return shared;
	perror("sim");
	exit(2);
}

/* fork(), which does not fail here */
static pid_t start_child(void)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid >= 0)
		return pid;
	perror("sim");
	exit(2);
}

void run_child(const struct sim_options *options, struct sim_result *result)
{
	struct sim_result *shared = shared_result();
	int status = 0;
	pid_t pid = start_child();

	if (pid == 0)
		child(options, shared);
	while (waitpid(pid, &status, 0) < 0)
		;
	describe_death(shared, status);
	*result = *shared;
	munmap(shared, sizeof(*shared));
}

/* --- jobs --- */

void job_start(struct sim_job *job, const struct sim_options *options,
	       void (*run)(const struct sim_options *options, struct sim_result *result))
{
	job->options = *options;
	job->result = shared_result();
	job->pid = start_child();
	if (job->pid)
		return;
	run(options, job->result);
	fflush(stdout);
	_exit(0);
}

struct sim_job *job_wait(struct sim_job *jobs, int num, struct sim_result *result)
{
	int status = 0;
	pid_t pid = wait(&status);

	for (int i = 0; i < num; i++) {
		if (pid <= 0 || jobs[i].pid != pid)
			continue;
		describe_death(jobs[i].result, status);
		*result = *jobs[i].result;
		munmap(jobs[i].result, sizeof(*result));
		jobs[i].pid = 0;
		return &jobs[i];
	}
	return NULL;
}

/* --- the shrinker --- */

static void write_list(char *text, size_t bytes, const bool *kept, int n)
{
	size_t used = 0;

	text[0] = 0;
	for (int i = 0; i < n && used < bytes; i++)
		if (kept[i])
			used += (size_t)snprintf(text + used, bytes - used, "%s%d",
						 used ? "," : "", i);
}

static bool still_fails(const struct sim_options *options, int oracle,
			struct sim_result *result)
{
	struct sim_result r;

	run_child(options, &r);
	if (!r.failed || r.oracle != oracle)
		return false;
	*result = r;
	return true;
}

static void shrink_faults(struct sim_options *options, struct sim_result *result)
{
	static char best[64], attempt[64];
	static struct plan plan;
	bool kept[PLAN_FAULTS];
	bool again = true;

	plan_make(&plan, options->seed, options->kind);
	if (options->keep_faults)
		plan_keep(&plan, options->keep_faults);
	for (int i = 0; i < plan.num_faults; i++)
		kept[i] = plan.fault[i].kept;
	while (again) {
		again = false;
		for (int i = 0; i < plan.num_faults; i++) {
			struct sim_options o = *options;

			if (!kept[i])
				continue;
			kept[i] = false;
			write_list(attempt, sizeof(attempt), kept, plan.num_faults);
			o.keep_faults = attempt;
			if (still_fails(&o, result->oracle, result))
				again = true;
			else
				kept[i] = true;
		}
	}
	write_list(best, sizeof(best), kept, plan.num_faults);
	options->keep_faults = best;
}

static void shrink_traffic(struct sim_options *options, struct sim_result *result)
{
	uint32_t low = 0, high = options->max_ops ? options->max_ops : PLAN_OPS;

	while (low + 1 < high) {
		struct sim_options o = *options;

		o.max_ops = (low + high) / 2;
		if (still_fails(&o, result->oracle, result))
			high = o.max_ops;
		else
			low = o.max_ops;
	}
	if (high < PLAN_OPS)
		options->max_ops = high;
}

void shrink(struct sim_options *options, struct sim_result *result)
{
	shrink_faults(options, result);
	shrink_traffic(options, result);
}
