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
 *   sum       FETCH_ADD by all threads of both sides on one word, and
 *             COMPARE_SWAP on another: no addition is lost, no swap wins twice
 *   uc        UC messages: whole, in order, none twice; some may be lost
 *   ud        datagrams: whole, in order, none twice; some may be lost
 *
 *   litmus [--seconds N] [--seed N] [--threads N] [--nodes A B]
 *
 * With --threads as one process for both sides (for ThreadSanitizer).
 */
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

#define NUM_MIXTURES 2
#define SLOT_BYTES 16384
#define AREA_BYTES (2u << 20) /* of each script's memory, on both sides */
#define DATAGRAM 1024
#define LOSSY_WINDOW 32
#define GRACE_S 30 /* a link may be down and a sweep under way */
#define GRH 40

struct script;

/* what both processes see, and only main writes but for the counts */
struct shared {
	_Atomic bool stop;
	_Atomic uint64_t rounds[16]; /* by script */
	_Atomic uint64_t adds;	     /* of all threads, done */
	_Atomic uint64_t swaps;
	_Atomic uint64_t lost;
	_Atomic unsigned ended; /* scripts that will add no more */
};

/* one thread's share of the work, on one side */
struct actor {
	const struct script *script;
	struct side *side;
	int me, fd;	/* fd: to the peer's actor of the same script */
	size_t base;
	struct side_qp q;
	struct rng rng;
	unsigned index;
	pthread_t thread;
};

struct script {
	const char *name;
	void (*run)(struct actor *a);
	struct side_options options;
};

static const char *node[2] = {"n1", "n2"};
static double seconds = 10;
static uint64_t seed = 1;
static bool one_process;
static struct shared *shared;

static bool over(void)
{
	return atomic_load_explicit(&shared->stop, memory_order_relaxed);
}

static void count(struct actor *a)
{
	atomic_fetch_add_explicit(&shared->rounds[a->index], 1, memory_order_relaxed);
}

static volatile _Atomic uint64_t *word(struct actor *a, size_t offset)
{
	return (volatile _Atomic uint64_t *)(a->side->buffer + a->base + offset);
}

static void must_hurry(struct actor *a, uint64_t since, const char *what)
{
	if (now_ns() - since > GRACE_S * 1000000000ull)
		fail("%s of %s: %s for %u s", a->script->name, node[a->me], what, GRACE_S);
}

/* Both sides leave a script together: nobody waits for one who is gone. */
static void part(struct actor *a)
{
	char bye = 0;

	if (!meet(a->fd, &bye, &bye, 1))
		fail("%s: the peer is gone", a->script->name);
}

/* --- mixture --- */

static void drain(struct traffic *t, uint64_t since, struct actor *a)
{
	struct ibv_wc wc;

	while (poll_one(t->q, &wc))
		traffic_take(t, &wc);
	if (t->broken)
		fail("mixture: the connection broke");
	must_hurry(a, since, "a request is under way");
}

static void mixture(struct actor *a)
{
	struct traffic_seen seen = {0}, its = {0};
	struct traffic t;
	uint64_t last, done = 0;

	traffic_init(&t, &a->q, a->base, SLOT_BYTES, rng_next(&a->rng), &seen);
	part(a);
	for (last = now_ns(); !over();) {
		while (rng_below(&t.rng, 6) && traffic_post(&t))
			count(a);
		if (t.completed != done)
			last = now_ns();
		done = t.completed;
		drain(&t, last, a);
	}
	traffic_flush(&t);
	for (last = now_ns(); !traffic_idle(&t);)
		drain(&t, last, a);
	if (!meet(a->fd, &seen, &its, sizeof(seen)))
		fail("mixture: the peer is gone");
	for (last = now_ns(); t.received != its.messages_posted;)
		drain(&t, last, a);
	part(a);
}

/* --- flag and tail --- */

static void wait_word(struct actor *a, size_t offset, uint64_t value)
{
	uint64_t since = now_ns();

	for (unsigned i = 1; atomic_load_explicit(word(a, offset), memory_order_acquire) != value;
	     i++) {
		if (i % 64 == 0)
			sched_yield();
		if (i % 65536 == 0)
			must_hurry(a, since, "no WRITE is seen");
	}
}

static void reap(struct actor *a, unsigned left)
{
	static _Thread_local unsigned under_way;
	struct ibv_wc wc;

	for (under_way++; under_way > left;) {
		if (!poll_one(&a->q, &wc))
			continue;
		if (wc.status)
			fail("%s: %s", a->script->name, ibv_wc_status_str(wc.status));
		under_way--;
	}
}

#define FLAG 0
#define DATA 4096
#define FROM (AREA_BYTES / 2) /* where what is sent stands */

static void write_at(struct actor *a, size_t to, uint32_t bytes, uint64_t value)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = send_wr(&a->q, &sge, IBV_WR_RDMA_WRITE, value, a->base + FROM + to,
					bytes);

	for (uint32_t i = 0; i < bytes; i += 8)
		atomic_store_explicit(word(a, FROM + to + i), value, memory_order_relaxed);
	wr.wr.rdma.remote_addr = a->q.peer.addr + a->base + to;
	if (bytes <= TRAFFIC_INLINE && value % 3 == 0)
		wr.send_flags |= IBV_SEND_INLINE;
	post(&a->q, &wr);
	reap(a, 0);
}

static void check_data(struct actor *a, uint32_t bytes, uint64_t value)
{
	for (uint32_t i = 0; i < bytes; i += 8) {
		uint64_t found = atomic_load_explicit(word(a, DATA + i), memory_order_relaxed);

		if (found != value)
			fail("%s: byte %u of %u is of round %lu, not %lu", a->script->name, i, bytes,
			     (unsigned long)found, (unsigned long)value);
	}
}

/* both draw the same sizes: the generators are alike */
static uint32_t draw(struct actor *a)
{
	uint32_t most = rng_below(&a->rng, 4) ? 512 : 40000;

	return (8 + rng_below(&a->rng, most)) & ~7u;
}

/* one direction a round: @value odd, from side 0. The round in which the two
 * part is agreed upon: the flag says 0 beside its value */
static void turn_by_turn(struct actor *a, bool with_flag)
{
	for (uint64_t value = 1;; value++) {
		uint32_t bytes = draw(a);
		size_t end = with_flag ? FLAG : DATA + bytes - 8;

		if ((value & 1) == (uint64_t)!a->me) {
			write_at(a, FLAG + 8, 8, over() ? value : 0);
			write_at(a, DATA, bytes, value);
			if (with_flag)
				write_at(a, FLAG, 8, value);
		} else {
			wait_word(a, end, value);
			check_data(a, bytes, value);
		}
		count(a);
		if (*word(a, (value & 1) == (uint64_t)!a->me ? FROM + FLAG + 8 : FLAG + 8) == value)
			return part(a);
	}
}

static void flag(struct actor *a)
{
	part(a);
	turn_by_turn(a, true);
}

static void tail(struct actor *a)
{
	part(a);
	turn_by_turn(a, false);
}

/* --- sum --- */

#define SUM 0
#define LOCK 64
#define TRIES 64

/* On side 0's words, also from itself. Others than the first of the two sides
 * reach them through their own QPs. */
static uint64_t atomic_at(struct actor *a, enum ibv_wr_opcode opcode, size_t at, uint64_t compare,
			  uint64_t value)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = send_wr(&a->q, &sge, opcode, 1, a->base + FROM, 8);

	wr.wr.atomic.remote_addr = a->q.peer.addr + at;
	wr.wr.atomic.rkey = a->q.peer.rkey;
	wr.wr.atomic.compare_add = compare;
	wr.wr.atomic.swap = value;
	post(&a->q, &wr);
	await(&a->q, GRACE_S);
	return *word(a, FROM);
}

/* at most one owner of the word at a time: it writes its own name into it */
static void swap(struct actor *a)
{
	uint64_t name = 1 + (uint64_t)a->index;

	if (atomic_at(a, IBV_WR_ATOMIC_CMP_AND_SWP, LOCK, 0, name) != 0)
		return;
	if (atomic_at(a, IBV_WR_ATOMIC_CMP_AND_SWP, LOCK, name, 0) != name)
		fail("two have swapped themselves in");
	atomic_fetch_add(&shared->swaps, 1);
}

/* Side 1's actors add to side 0's words, all at once. */
static void sum(struct actor *a)
{
	uint64_t last = 0, found;

	part(a);
	while (a->me == 1 && !over()) {
		found = atomic_at(a, IBV_WR_ATOMIC_FETCH_AND_ADD, SUM, 1, 0);
		if (last && found < last)
			fail("the sum went from %lu to %lu", (unsigned long)last,
			     (unsigned long)found);
		last = found + 1;
		atomic_fetch_add(&shared->adds, 1);
		if (rng_below(&a->rng, 4) == 0)
			swap(a);
		count(a);
	}
	if (a->me == 1)
		atomic_fetch_add(&shared->ended, 1);
	part(a);
}

/* --- uc, ud --- */

struct lossy {
	uint64_t sent, under_way, next; /* of the peer's: at least this */
	uint64_t posted;		/* receives */
	size_t slot_bytes;
};

static void lossy_receive(struct actor *a, struct lossy *l)
{
	post_recv(&a->q, l->posted << 1 | 1, a->base + (l->posted % LOSSY_WINDOW) * l->slot_bytes,
		  (uint32_t)l->slot_bytes);
	l->posted++;
}

static void lossy_send(struct actor *a, struct lossy *l)
{
	bool ud = a->script->options.type == IBV_QPT_UD;
	uint32_t most = ud ? DATAGRAM : SLOT_BYTES, bytes = (8 + rng_below(&a->rng, most - 7)) & ~7u;
	size_t at = FROM + (l->sent % LOSSY_WINDOW) * l->slot_bytes;
	struct ibv_sge sge;
	struct ibv_send_wr wr = send_wr(&a->q, &sge, IBV_WR_SEND, l->sent << 1, a->base + at, bytes);

	l->sent++;
	for (uint32_t i = 0; i < bytes; i += 8)
		*word(a, at + i) = l->sent;
	post(&a->q, &wr);
	l->under_way++;
}

static void lossy_message(struct actor *a, struct lossy *l, const struct ibv_wc *wc)
{
	uint64_t n = wc->wr_id >> 1, value;
	uint32_t from = a->script->options.type == IBV_QPT_UD ? GRH : 0;
	size_t at = (n % LOSSY_WINDOW) * l->slot_bytes;

	value = *word(a, at + from);
	if (value <= l->next || n + LOSSY_WINDOW != l->posted)
		fail("%s: message %lu after %lu, in receive %lu of %lu", a->script->name,
		     (unsigned long)value, (unsigned long)l->next, (unsigned long)n,
		     (unsigned long)l->posted);
	for (uint32_t i = from; i < wc->byte_len; i += 8)
		if (*word(a, at + i) != value)
			fail("%s: message %lu is torn at %u of %u", a->script->name,
			     (unsigned long)value, i, wc->byte_len);
	atomic_fetch_add(&shared->lost, value - l->next - 1);
	l->next = value;
	lossy_receive(a, l);
	count(a);
}

static void lossy_take(struct actor *a, struct lossy *l)
{
	struct ibv_wc wc;

	while (poll_one(&a->q, &wc)) {
		if (wc.status)
			fail("%s: %s", a->script->name, ibv_wc_status_str(wc.status));
		if (wc.wr_id & 1) {
			lossy_message(a, l, &wc);
			continue;
		}
		if (wc.wr_id >> 1 != l->sent - l->under_way)
			fail("%s: request %lu completes out of turn", a->script->name,
			     (unsigned long)(wc.wr_id >> 1));
		l->under_way--;
	}
}

static void lossy(struct actor *a)
{
	struct lossy l = {.slot_bytes = SLOT_BYTES + 64};
	uint64_t since;

	for (int i = 0; i < LOSSY_WINDOW; i++)
		lossy_receive(a, &l);
	part(a);
	while (!over()) {
		if (l.under_way < LOSSY_WINDOW && rng_below(&a->rng, 4))
			lossy_send(a, &l);
		else
			lossy_take(a, &l);
	}
	for (since = now_ns(); l.under_way; must_hurry(a, since, "a request is under way"))
		lossy_take(a, &l);
	part(a);
}

/* --- the cast --- */

static const struct script scripts[] = {
	{"mixture", mixture, {.depth = 2 * TRAFFIC_WINDOW, .inline_bytes = TRAFFIC_INLINE,
			      .unsignaled = true}},
	{"mixture 2", mixture, {.depth = 2 * TRAFFIC_WINDOW, .inline_bytes = TRAFFIC_INLINE,
				.unsignaled = true}},
	{"flag", flag, {.inline_bytes = TRAFFIC_INLINE}},
	{"tail", tail, {.inline_bytes = TRAFFIC_INLINE}},
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
 * each script. */
static void *run_side(void *arg)
{
	static struct side sides[2];
	static struct actor actors[2][NUM_SCRIPTS];
	int me = (int)(intptr_t)((int *)arg)[0], *fds = (int *)arg + 1;
	struct side *side = &sides[me];
	char both = 0;

	side_open(side, node[me], 4096 + NUM_SCRIPTS * (size_t)AREA_BYTES);
	for (unsigned i = 0; i < NUM_SCRIPTS; i++) {
		struct actor *a = &actors[me][i];

		*a = (struct actor){.script = &scripts[i], .side = side, .me = me, .fd = fds[i],
				    .base = 4096 + i * (size_t)AREA_BYTES, .index = i,
				    .rng = {seed * 64 + i}};
		side_qp_create(&a->q, side, &scripts[i].options);
	}
	/* nobody writes before all memory is there */
	if (!meet(fds[0], &both, &both, 1))
		fail("the peer is gone");
	for (unsigned i = 0; i < NUM_SCRIPTS; i++)
		if (pthread_create(&actors[me][i].thread, NULL, act, &actors[me][i]))
			fail("pthread_create");
	for (unsigned i = 0; i < NUM_SCRIPTS; i++)
		pthread_join(actors[me][i].thread, NULL);
	if (me == 0)
		check_sum(side);
	for (unsigned i = 0; i < NUM_SCRIPTS; i++)
		side_qp_destroy(&actors[me][i].q);
	side_close(side);
	return NULL;
}

static void options(int argc, char **argv)
{
	static const struct option longs[] = {{"seconds", 1, NULL, 't'},
					      {"seed", 1, NULL, 's'},
					      {"threads", 0, NULL, 'o'},
					      {"nodes", 1, NULL, 'n'},
					      {0}};
	int c;

	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (c == 't')
			seconds = strtod(optarg, NULL);
		else if (c == 's')
			seed = strtoull(optarg, NULL, 0);
		else if (c == 'o')
			one_process = true;
		else if (c == 'n' && optind < argc) {
			node[0] = optarg;
			node[1] = argv[optind++];
		} else
			fail("usage: litmus [--seconds N] [--seed N] [--threads] [--nodes A B]");
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

/* Return: false when a side failed */
static bool two_processes(int (*args)[1 + NUM_SCRIPTS])
{
	uint64_t end = now_ns() + (uint64_t)(seconds * 1e9);
	unsigned running = 2;
	bool good = true;
	pid_t pid[2];
	int status;

	for (int me = 0; me < 2; me++) {
		pid[me] = fork();
		if (pid[me] == 0) {
			run_side(args[me]);
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
		if (now_ns() > end)
			atomic_store(&shared->stop, true);
	}
	for (int me = 0; me < 2 && !good; me++)
		kill(pid[me], SIGKILL);
	return good;
}

static void two_threads(int (*args)[1 + NUM_SCRIPTS])
{
	pthread_t thread;

	/* the device of a side is that of the environment: one after the other */
	pthread_create(&thread, NULL, run_side, args[0]);
	usleep(300000);
	pthread_t other;
	pthread_create(&other, NULL, run_side, args[1]);
	usleep((useconds_t)(seconds * 1e6));
	atomic_store(&shared->stop, true);
	pthread_join(thread, NULL);
	pthread_join(other, NULL);
}

int main(int argc, char **argv)
{
	int args[2][1 + NUM_SCRIPTS] = {{0}, {1}}, pair[2];
	bool good = true;

	options(argc, argv);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	for (unsigned i = 0; i < NUM_SCRIPTS; i++) {
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
			fail("socketpair");
		args[0][1 + i] = pair[0];
		args[1][1 + i] = pair[1];
	}
	if (one_process)
		two_threads(args);
	else
		good = two_processes(args);
	if (good)
		report();
	return good ? 0 : 1;
}
