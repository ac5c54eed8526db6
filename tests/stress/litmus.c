/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What programs may count on when they look at memory and completions, on
 * real cores: several threads of two processes, each thread with a QP and a
 * script of its own, for as long as was asked.
 *
 *   mixture   traffic.c: the rules of RC between requests of one QP
 *   flag      WRITE of data, WRITE of a flag that the peer spins on: the data
 *             is there (by turns in both directions, and never polled for)
 *   tail      one WRITE: who sees its last bytes sees all (DESIGN: stored last)
 *   ways      rounds of requests to memory that can be a window and to memory
 *             that cannot, all posted before any completes: they complete in
 *             order, a READ among them sees what was written before it, and
 *             who sees the last of them sees all
 *   sum       FETCH_ADD by all threads of both sides on one word, and
 *             COMPARE_SWAP on another: no addition is lost, no swap wins twice
 *   uc        UC messages: whole, in order, none twice; some may be lost
 *   ud        datagrams: whole, in order, none twice; some may be lost
 *
 *   litmus [--seconds N] [--seed N] [--nodes A B]
 *
 * It lasts longer where that is not enough for each script to do something.
 */
#include "litmus.h"
#include "traffic.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

const char *node[2] = {"n1", "n2"};
static double seconds = 10;
static uint64_t seed = 1;
struct shared *shared;

void must_hurry(struct actor *a, uint64_t since, const char *what)
{
	if (now_ns() - since > GRACE_S * 1000000000ull)
		fail("%s of %s: %s for %u s", a->script->name, node[a->me], what, GRACE_S);
}

void part(struct actor *a)
{
	char bye = 0;

	if (!meet(a->fd, &bye, &bye, 1))
		fail("%s: the peer is gone", a->script->name);
}

/* --- the cast --- */

static const struct script scripts[] = {
	{"mixture", mixture, {.depth = 2 * TRAFFIC_WINDOW, .inline_bytes = TRAFFIC_INLINE,
			      .unsignaled = true}},
	{"mixture 2", mixture, {.depth = 2 * TRAFFIC_WINDOW, .inline_bytes = TRAFFIC_INLINE,
				.unsignaled = true}},
	{"flag", flag, {.inline_bytes = TRAFFIC_INLINE}},
	{"tail", tail, {.inline_bytes = TRAFFIC_INLINE}},
	{"ways", ways, {0}},
	{"sum", sum, {0}},
	{"sum 2", sum, {0}},
	{"uc", lossy, {.type = IBV_QPT_UC}},
	{"ud", lossy, {.type = IBV_QPT_UD}},
};
#define NUM_SCRIPTS (sizeof(scripts) / sizeof(scripts[0]))

static void *act(void *arg)
{
	struct actor *a = arg;

	join(&a->q, a->fd);
	a->script->run(a);
	return NULL;
}

static void check_sum(struct side *side)
{
	uint64_t found = *(volatile uint64_t *)side->buffer;

	if (found != atomic_load(&shared->adds))
		fail("the sum is %lu after %lu additions", (unsigned long)found,
		     (unsigned long)atomic_load(&shared->adds));
}

/* One side of everything: 4096 bytes for the words of "sum", then an area for
 * each script, and a page's part for "ways". */
static void run_side(int me, const int *fds)
{
	struct side side;
	struct actor actors[NUM_SCRIPTS];
	char both = 0;

	side_open(&side, node[me], 4096 + NUM_SCRIPTS * (size_t)AREA_BYTES + EDGE);
	for (unsigned i = 0; i < NUM_SCRIPTS; i++) {
		struct actor *a = &actors[i];

		*a = (struct actor){.script = &scripts[i], .side = &side, .me = me, .fd = fds[i],
				    .base = 4096 + i * (size_t)AREA_BYTES, .index = i,
				    .rng = {seed * 64 + i}};
		side_qp_create(&a->q, &side, &scripts[i].options);
	}
	/* nobody writes before all memory is there */
	if (!meet(fds[0], &both, &both, 1))
		fail("the peer is gone");
	for (unsigned i = 0; i < NUM_SCRIPTS; i++)
		if (pthread_create(&actors[i].thread, NULL, act, &actors[i]))
			fail("pthread_create");
	for (unsigned i = 0; i < NUM_SCRIPTS; i++)
		pthread_join(actors[i].thread, NULL);
	if (me == 0)
		check_sum(&side);
	for (unsigned i = 0; i < NUM_SCRIPTS; i++)
		side_qp_destroy(&actors[i].q);
	side_close(&side);
}

static void options(int argc, char **argv)
{
	static const struct option longs[] = {{"seconds", 1, NULL, 't'},
					      {"seed", 1, NULL, 's'},
					      {"nodes", 1, NULL, 'n'},
					      {0}};
	int c;

	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (c == 't')
			seconds = strtod(optarg, NULL);
		else if (c == 's')
			seed = strtoull(optarg, NULL, 0);
		else if (c == 'n' && optind < argc) {
			node[0] = optarg;
			node[1] = argv[optind++];
		} else
			fail("usage: litmus [--seconds N] [--seed N] [--nodes A B]");
	}
}

static void report(void)
{
	printf("seed %lu:", (unsigned long)seed);
	for (unsigned i = 0; i < NUM_SCRIPTS; i++)
		printf(" %s %lu,", scripts[i].name, (unsigned long)shared->rounds[i]);
	printf(" swaps %lu; %lu unacknowledged messages lost\n", (unsigned long)shared->swaps,
	       (unsigned long)shared->lost);
	for (unsigned i = 0; i < NUM_SCRIPTS; i++)
		if (!shared->rounds[i])
			fail("%s did nothing", scripts[i].name);
}

/* has each script done something? */
static bool all_did(void)
{
	for (unsigned i = 0; i < NUM_SCRIPTS; i++)
		if (!atomic_load(&shared->rounds[i]))
			return false;
	return true;
}

/* Return: false when a side failed */
static bool two_processes(int (*fds)[NUM_SCRIPTS])
{
	uint64_t end = now_ns() + (uint64_t)(seconds * 1e9);
	unsigned running = 2;
	bool good = true;
	pid_t pid[2];
	int status;

	for (int me = 0; me < 2; me++) {
		pid[me] = fork();
		if (pid[me] == 0) {
			run_side(me, fds[me]);
			_exit(0);
		}
	}
	while (running) {
		if (waitpid(-1, &status, WNOHANG) > 0) {
			running--;
			good &= status == 0;
			if (!good)
				break;
		}
		usleep(10000);
		if (now_ns() > end + (all_did() ? 0 : GRACE_S * 1000000000ull))
			atomic_store(&shared->stop, true);
	}
	for (int me = 0; me < 2 && !good; me++)
		kill(pid[me], SIGKILL);
	return good;
}

int main(int argc, char **argv)
{
	int fds[2][NUM_SCRIPTS], pair[2];
	bool good;

	options(argc, argv);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	for (unsigned i = 0; i < NUM_SCRIPTS; i++) {
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
			fail("socketpair");
		fds[0][i] = pair[0];
		fds[1][i] = pair[1];
	}
	good = two_processes(fds);
	if (good)
		report();
	return good ? 0 : 1;
}
