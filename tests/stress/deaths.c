/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Sudden death: a pair of programs plays traffic.c, one of them is killed at
 * any instant of its life (setting up, posting, polling, asleep), after it was
 * stopped and continued, maybe. The survivor must then see every request and
 * every receive complete exactly once, in order, well and then with an error,
 * within GRACE_S; what the dead one had seen complete must have arrived, and
 * what arrived must be what was posted. Then the next victim comes.
 *
 *   deaths [--count N] [--seed N] [--pairs N] [--nodes A B]
 *
 * Processes: a director per pair, which knows no verbs and kills; a survivor
 * for LIVES deaths; a victim for each. They meet in shared memory.
 */
#include "traffic.h"

#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LIVES 25
#define OWN_WINDOWS 8
#define GRACE_S 10
#define SLOT_BYTES 8192
#define LIFE_US 12000 /* a victim's, at most */
#define STOP_US 8000
#define TIMEOUT_ENC 9 /* 2 ms */
#define RETRIES 3

enum role { SURVIVOR, VICTIM };

/* what a pair's processes share */
struct stage {
	_Atomic uint32_t news;	 /* how often one of those below changed: a futex */
	_Atomic uint32_t victim; /* number of the one that lives or has died */
	_Atomic uint32_t dead;	 /* number of the last that died */
	_Atomic uint32_t buried; /* ... and was found complete by the survivor */
	_Atomic uint32_t ready[2];
	struct side_address address[2];
	struct traffic_seen seen[2];
	uint64_t seed;
	uint64_t setup_deaths, messages; /* by the survivor */
	_Atomic int step; /* of the survivor, for the report of a hang */
};

static const char *node[2] = {"n1", "n2"};
static uint32_t count = 200, pairs = 2;
static uint64_t seed = 1;

/* --- what they tell each other --- */

static void tell(struct stage *s, _Atomic uint32_t *word, uint32_t value)
{
	atomic_store(word, value);
	atomic_fetch_add(&s->news, 1);
	syscall(SYS_futex, &s->news, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* @seen: the news before the caller looked. Return: what they are now */
static uint32_t wait_news(struct stage *s, uint32_t seen, const struct timespec *limit)
{
	syscall(SYS_futex, &s->news, FUTEX_WAIT, seen, limit, NULL, 0);
	return atomic_load(&s->news);
}

/* until @word, or one of two, is @value */
static void await_either(struct stage *s, _Atomic uint32_t *word, _Atomic uint32_t *other,
			 uint32_t value)
{
	uint32_t news = atomic_load(&s->news);

	while (atomic_load(word) != value && atomic_load(other) != value)
		news = wait_news(s, news, NULL);
}

static void await_word(struct stage *s, _Atomic uint32_t *word, uint32_t value)
{
	await_either(s, word, word, value);
}

/* the same with a limit, for whom another's end concerns. Return: it is so */
static bool await_for(struct stage *s, _Atomic uint32_t *word, uint32_t value, unsigned seconds)
{
	const struct timespec limit = {.tv_sec = seconds};
	const uint64_t end = now_ns() + seconds * 1000000000ull;
	uint32_t news = atomic_load(&s->news);

	while (atomic_load(word) != value && now_ns() < end)
		news = wait_news(s, news, &limit);
	return atomic_load(word) == value;
}

/* --- both roles --- */

static bool polls(const struct stage *s, enum role role)
{
	/* half of them wait in ibv_get_cq_event() */
	return (s->seed >> role & 1) != 0;
}

static void create(struct side_qp *q, struct side *side, struct stage *s, enum role role)
{
	struct side_options options = {.depth = 2 * TRAFFIC_WINDOW, .inline_bytes = TRAFFIC_INLINE,
				       .timeout_enc = TIMEOUT_ENC, .retries = RETRIES,
				       .events = !polls(s, role), .unsignaled = true};

	side_qp_create(q, side, &options);
}

/* Say where we are. */
static void announce(struct traffic *t, struct side_qp *q, struct stage *s, enum role role)
{
	memset(&s->seen[role], 0, sizeof(s->seen[role]));
	traffic_init(t, q, 0, SLOT_BYTES, s->seed * 2 + role, &s->seen[role]);
	s->address[role] = side_qp_address(q);
	tell(s, &s->ready[role], s->victim);
}

static void take_all(struct traffic *t)
{
	struct ibv_wc wc;

	while (poll_one(t->q, &wc))
		traffic_take(t, &wc);
}

/* Wait as programs do that sleep: arm, look once more, sleep. */
static void rest(struct traffic *t)
{
	uint64_t before = t->completed + t->received + t->flushed_receives;
	struct ibv_cq *cq;
	void *context;

	ibv_req_notify_cq(t->q->cq, 0);
	take_all(t);
	if (before != t->completed + t->received + t->flushed_receives)
		return;
	if (ibv_get_cq_event(t->q->channel, &cq, &context))
		fail("ibv_get_cq_event: %s", strerror(errno));
	ibv_ack_cq_events(cq, 1);
}

static void play(struct traffic *t)
{
	while (rng_below(&t->rng, 8) && traffic_post(t))
		;
	take_all(t);
}

/* --- the victim --- */

static void victim(struct stage *s)
{
	struct side side;
	struct side_qp q;
	struct traffic t;

	side_open(&side, node[VICTIM], traffic_bytes(SLOT_BYTES));
	create(&q, &side, s, VICTIM);
	await_word(s, &s->ready[SURVIVOR], s->victim);
	announce(&t, &q, s, VICTIM);
	side_qp_connect(&q, &s->address[SURVIVOR]);
	while (!t.broken) { /* it is, when it was stopped for long */
		play(&t);
		if (!polls(s, VICTIM) && t.posted - t.completed > 4)
			rest(&t);
	}
	for (;;)
		pause();
}

/* --- the survivor --- */

static void must_hurry(uint64_t since, const char *what, const struct traffic *t)
{
	if (now_ns() - since > GRACE_S * 1000000000ull)
		fail("%s: %lu of %lu requests completed, %lu and %u of %lu receives", what,
		     (unsigned long)t->completed, (unsigned long)t->posted,
		     (unsigned long)t->received, t->flushed_receives,
		     (unsigned long)t->receives);
}

/* Until an error says that the peer is gone. What is waited for is sure to
 * come: whoever sleeps has requests under way. */
static void live_with(struct traffic *t, struct stage *s)
{
	uint64_t died = 0;

	while (!t->broken) {
		play(t);
		if (!polls(s, SURVIVOR) && t->posted - t->completed > 4)
			rest(t);
		if (!died && atomic_load(&s->dead) == s->victim)
			died = now_ns();
		if (died)
			must_hurry(died, "no error", t);
	}
	died = now_ns();
	while (!traffic_drained(t)) {
		must_hurry(died, "not all is flushed", t);
		take_all(t);
	}
}

static void inquest(const struct traffic *t, const struct stage *s)
{
	const struct traffic_seen *dead = &s->seen[VICTIM], *mine = &s->seen[SURVIVOR];
	uint64_t sum = *(volatile uint64_t *)t->q->side->buffer;

	if (dead->messages_completed > t->received || t->received > dead->messages_posted)
		fail("%lu messages arrived; the dead sent %lu and knows of %lu that did",
		     (unsigned long)t->received, (unsigned long)dead->messages_posted,
		     (unsigned long)dead->messages_completed);
	if (dead->adds_completed > sum || sum > dead->adds_posted)
		fail("the sum is %lu; the dead added %lu times and knows of %lu",
		     (unsigned long)sum, (unsigned long)dead->adds_posted,
		     (unsigned long)dead->adds_completed);
	if (dead->messages_received > mine->messages_posted)
		fail("the dead received %lu messages of %lu", (unsigned long)dead->messages_received,
		     (unsigned long)mine->messages_posted);
}

/* one life and death, seen from the other side */
static void outlive(struct side *side, struct stage *s)
{
	struct side_qp q;
	struct traffic t;
	struct ibv_wc wc;

	s->step = 1;
	create(&q, side, s, SURVIVOR);
	announce(&t, &q, s, SURVIVOR);
	s->step = 2;
	await_either(s, &s->ready[VICTIM], &s->dead, s->victim);
	if (atomic_load(&s->ready[VICTIM]) == s->victim) {
		s->step = 3;
		side_qp_connect(&q, &s->address[VICTIM]);
		s->step = 4;
		live_with(&t, s);
		s->step = 5;
		await_word(s, &s->dead, s->victim);
		inquest(&t, s);
		s->messages += t.received + t.messages;
	} else {
		s->setup_deaths++;
	}
	s->step = 6;
	if (t.broken && poll_one(&q, &wc))
		fail("a completion too many: wr_id 0x%lx", (unsigned long)wc.wr_id);
	side_qp_destroy(&q);
	s->step = 7;
}

static unsigned entries(const char *dir)
{
	DIR *d = opendir(dir);
	unsigned n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

/* @name: of a memfd */
static unsigned mapped(const char *name)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];
	unsigned n = 0;

	while (f && fgets(line, sizeof(line), f))
		n += strstr(line, name) != NULL;
	if (f)
		fclose(f);
	return n;
}

struct held {
	unsigned fds, lanes, windows;
};

static struct held held(void)
{
	return (struct held){entries("/proc/self/fd"), mapped("softib-lane"),
			     mapped("softib-window")};
}

/* What the dead left in the survivor goes when softibd tells; that is soon. The
 * library's threads hear it, and no event says that they have.
 * @before: when the first had died; since then the survivor's own memory may
 * have become a window or some, but not one with every death. */
static void expect_nothing_left(struct held before)
{
	uint64_t start = now_ns();
	struct held left = held();

	for (; left.fds > before.fds + OWN_WINDOWS || left.lanes ||
	       left.windows > before.windows + OWN_WINDOWS;
	     left = held()) {
		if (now_ns() - start > GRACE_S * 1000000000ull)
			fail("after one death %u descriptors, %u lanes, %u windows, then %u, %u, %u",
			     before.fds, before.lanes, before.windows, left.fds, left.lanes,
			     left.windows);
		usleep(1000);
	}
}

static void survivor(struct stage *s, uint32_t first, uint32_t last)
{
	struct side side;
	struct held early = {0};

	side_open(&side, node[SURVIVOR], traffic_bytes(SLOT_BYTES));
	for (uint32_t n = first; n < last; n++) {
		await_word(s, &s->victim, n);
		outlive(&side, s);
		if (!early.fds && atomic_load(&s->ready[VICTIM]) == n)
			early = held();
		tell(s, &s->buried, n);
	}
	if (early.fds)
		expect_nothing_left(early);
	side_close(&side);
	_exit(0);
}

/* --- the director --- */

/* fork(), and what is forked goes when its parent does */
static pid_t child(void)
{
	pid_t pid = fork();

	if (pid < 0)
		fail("fork: %s", strerror(errno));
	if (pid == 0)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

static void wait_us(uint32_t us)
{
	struct timespec ts = {.tv_nsec = us * 1000l};

	nanosleep(&ts, NULL);
}

/* Stop one of the two for a while. */
static void freeze(struct rng *rng, pid_t who)
{
	kill(who, SIGSTOP);
	wait_us(rng_below(rng, STOP_US));
	kill(who, SIGCONT);
}

static void expect_buried(struct stage *s, uint32_t n, pid_t survivor_pid)
{
	uint64_t start = now_ns();
	int status;

	while (!await_for(s, &s->buried, n, 1)) {
		if (waitpid(survivor_pid, &status, WNOHANG))
			fail("death %u, seed %lu: the survivor ends with status %d", n,
			     (unsigned long)s->seed, status);
		if (now_ns() - start > 3 * GRACE_S * 1000000000ull) {
			fprintf(stderr, "death %u, seed %lu: the survivor hangs in step %d\n", n,
				(unsigned long)s->seed, s->step);
			if (getenv("DEATHS_WAIT"))
				pause();
			kill(survivor_pid, SIGKILL);
			fail("pid %d", survivor_pid);
		}
	}
}

static void started(struct stage *s, uint32_t n)
{
	if (!await_for(s, &s->ready[VICTIM], n, GRACE_S))
		fail("death %u, seed %lu: the victim does not start", n, (unsigned long)s->seed);
}

static void one_death(struct stage *s, uint32_t n, pid_t survivor_pid, struct rng *rng)
{
	int status;
	pid_t pid;

	s->seed = rng_next(rng);
	tell(s, &s->victim, n);
	pid = child();
	if (pid == 0)
		victim(s);
	if (rng_below(rng, 2)) /* else at any time, which is while it sets up mostly */
		started(s, n);
	wait_us(rng_below(rng, LIFE_US));
	if (rng_below(rng, 4) == 0)
		freeze(rng, rng_below(rng, 2) ? pid : survivor_pid);
	kill(pid, SIGKILL);
	if (waitpid(pid, &status, 0) != pid || !WIFSIGNALED(status))
		fail("death %u, seed %lu: the victim ends with status %d", n,
		     (unsigned long)s->seed, status);
	tell(s, &s->dead, n);
	expect_buried(s, n, survivor_pid);
}

static void director(struct stage *s, uint32_t deaths, uint64_t my_seed)
{
	struct rng rng = {my_seed};
	int status;

	for (uint32_t n = 1; n <= deaths;) {
		uint32_t last = n + LIVES < deaths + 1 ? n + LIVES : deaths + 1;
		pid_t pid = child();

		if (pid == 0)
			survivor(s, n, last);
		for (; n < last; n++)
			one_death(s, n, pid, &rng);
		if (waitpid(pid, &status, 0) != pid || status)
			fail("the survivor ends with status %d", status);
	}
	_exit(0);
}

static void options(int argc, char **argv)
{
	static const struct option longs[] = {{"count", 1, NULL, 'c'},
					      {"seed", 1, NULL, 's'},
					      {"pairs", 1, NULL, 'p'},
					      {"nodes", 1, NULL, 'n'},
					      {0}};
	int c;

	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (c == 'c')
			count = (uint32_t)strtoul(optarg, NULL, 0);
		else if (c == 's')
			seed = strtoull(optarg, NULL, 0);
		else if (c == 'p')
			pairs = (uint32_t)strtoul(optarg, NULL, 0);
		else if (c == 'n' && optind < argc) {
			node[0] = optarg;
			node[1] = argv[optind++];
		} else
			fail("usage: deaths [--count N] [--seed N] [--pairs N] [--nodes A B]");
	}
}

int main(int argc, char **argv)
{
	struct stage *stages;
	uint64_t start = now_ns(), setups = 0, messages = 0;
	int status, bad = 0;

	options(argc, argv);
	stages = mmap(NULL, pairs * sizeof(*stages), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (uint32_t i = 0; i < pairs; i++)
		if (child() == 0)
			director(&stages[i], count / pairs + (i < count % pairs),
				 seed * 1000 + i);
	for (uint32_t i = 0; i < pairs; i++)
		if (wait(&status) < 0 || status)
			bad = 1;
	for (uint32_t i = 0; i < pairs; i++) {
		setups += stages[i].setup_deaths;
		messages += stages[i].messages;
	}
	if (!bad)
		printf("%u deaths (%lu while setting up), %lu messages, %.1f a second, seed %lu\n",
		       count, (unsigned long)setups, (unsigned long)messages,
		       count / ((double)(now_ns() - start) / 1e9), (unsigned long)seed);
	return bad;
}
