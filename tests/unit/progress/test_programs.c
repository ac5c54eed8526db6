/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Programs of every kind against the state machine, for an hour of virtual time
 * from each of some seeds (world.h). A program turns from one way to use the
 * library to another at any moment, while records come in; oracles hold at each
 * step:
 *
 *   - No wake-up is lost: no record is unread for longer than the table in
 *     progress/limits.h says for what the program does.
 *   - An idle program is not woken.
 *   - A program that polls is left alone: the progress thread runs no engine
 *     beside it, and wakes up for its checks only.
 *   - One thread at a time sleeps on the doorbells.
 *   - Every row of the table is needed: each has ruled in some seed.
 *
 *   test_progress_programs [SEED]: one seed alone, with its figures
 */
#include "../test.h"
#include "world.h"

#define SEEDS 12
#define HOUR_NS (3600 * NSEC_PER_SEC)
#define SOON_NS (500 * US)  /* wake-ups and steps take so long, no rule's time counts */
#define ROUND_NS (3 * MS)   /* sleeps are rounded up to milliseconds; two in a row, and SOON */
#define SETTLED_NS (400 * MS) /* the thread has made up its mind: PROG_SAMPLES_MAX and more */

static const char *const kind_name[NUM_KINDS] = {
	"polls", "waits", "waits, several", "own poll()", "computes", "sleeps"};

/* --- oracles --- */

/* The longest that a record may be unread which came while the program did what it
 * does now. */
static uint64_t bound(const struct world *w, uint64_t came)
{
	bool waited = w->last_visit && came - w->last_visit < PROG_BOUND_WAITER_NS + ROUND_NS;

	switch (w->kind) {
	case KIND_POLL:
		return w->poll_ns;
	case KIND_WAIT:
	case KIND_WAIT_MANY:
		return SOON_NS + PROG_HANDOVER_NS;
	case KIND_OWN_POLL:
		return waited ? PROG_BOUND_WAITER_NS + ROUND_NS : SOON_NS;
	default:
		if (waited)
			return PROG_BOUND_POLLER_NS + ROUND_NS;
		return (w->other_armed || w->armed ? PROG_BOUND_ARMED_NS : PROG_BOUND_POLLER_NS) +
		       ROUND_NS;
	}
}

void oracle_read(struct world *w, uint64_t came)
{
	uint64_t unread = w->now - came;

	if (came < w->kind_since) /* it did something else then */
		return;
	w->longest_unread[w->kind] = MAX(w->longest_unread[w->kind], unread);
	if (unread > bound(w, came))
		w->failed = "a record was unread for too long";
}

void oracle_woke(struct world *w)
{
	uint64_t since = MAX(w->kind_since, w->last_record);

	since = MAX(since, w->last_news);
	if (w->kind != KIND_POLL && !w->unread && w->now - since > SETTLED_NS)
		w->failed = "an idle program was woken";
}

/* what the thread did since the program polls steadily, and since it is left alone */
struct beside_poller {
	bool polls, left_alone;
	uint64_t since, wakes, runs, helps, news;
};

/* Twice as often as the limit, since samples cut the time between two polls. */
static bool polls_steadily(const struct world *w)
{
	uint64_t most = w->other_armed ? PROG_POLL_ARMED_NS : PROG_POLL_NS;

	return w->kind == KIND_POLL && w->poll_ns <= most / 2 && !w->armed && !w->queued &&
	       w->now - MAX(w->kind_since, w->last_arm) > PROG_QUIET_NS + 2 * PROG_SAMPLE_NS;
}

static void look_beside_poller(struct world *w, struct beside_poller *b)
{
	uint64_t check = w->other_armed ? PROG_CHECK_ARMED_NS : PROG_CHECK_POLLER_NS;
	bool polls = polls_steadily(w), alone = w->prog.state == PROG_BESIDE_POLLER;

	if (polls && !b->polls)
		*b = (struct beside_poller){true, alone, w->now, w->thread_wakes, w->thread_runs,
					    w->helps, w->num_news};
	b->polls = polls;
	if (!polls)
		return;
	if (alone && !b->left_alone)
		*b = (struct beside_poller){true, true, w->now, w->thread_wakes, w->thread_runs,
					    w->helps, w->num_news};
	if (!b->left_alone && w->thread_wakes - b->wakes > PROG_SAMPLES_MAX + 20)
		w->failed = "a program that polls is never left alone";
	if (!b->left_alone)
		return;
	if (w->thread_runs - b->runs > w->helps - b->helps)
		w->failed = "the thread runs the engine of a program that polls";
	if (w->thread_wakes - b->wakes > (w->now - b->since) / check + w->helps - b->helps +
						  w->num_news - b->news + 6)
		w->failed = "the thread wakes up too often beside a program that polls";
}

/* --- an hour --- */

static void turn_to_something(struct world *w, uint64_t *until)
{
	world_becomes(w, (enum kind)(world_random(w, 1, 1u << 20) % NUM_KINDS));
	*until = w->now + world_random(w, 10 * US, 5000 * MS);
}

/* Return: the rows that have ruled */
static uint64_t an_hour(struct world *w, uint64_t seed)
{
	struct beside_poller beside = {false};
	uint64_t until, end;

	world_init(w, seed);
	end = w->now + HOUR_NS;
	turn_to_something(w, &until);
	while (w->now < end && !w->failed) {
		uint64_t longest = PROG_BOUND_POLLER_NS + ROUND_NS;

		if (w->now >= until || !world_step(w))
			turn_to_something(w, &until);
		look_beside_poller(w, &beside);
		if (w->unread && w->now - w->oldest_unread > longest && !w->failed)
			w->failed = "a wake-up was lost";
	}
	if (w->failed)
		fail_msg("seed %llu at %.6f s: %s; the program %s since %.6f s, the oldest record "
			 "came at %.6f s, state %u",
			 (unsigned long long)seed, (double)w->now / 1e9, w->failed,
			 kind_name[w->kind], (double)w->kind_since / 1e9,
			 (double)w->oldest_unread / 1e9, w->prog.state);
	return w->prog.rows;
}

static void print_figures(const struct world *w)
{
	printf("# %llu records, %llu wake-ups and %llu runs of the thread, %llu visits\n",
	       (unsigned long long)w->num_records, (unsigned long long)w->thread_wakes,
	       (unsigned long long)w->thread_runs, (unsigned long long)w->prog.visits);
	for (int kind = 0; kind < NUM_KINDS; kind++)
		printf("# %-16s unread for %9.3f ms at most\n", kind_name[kind],
		       (double)w->longest_unread[kind] / 1e6);
}

static uint64_t only_seed;

static void programs_of_every_kind(void **state)
{
	static struct world w;
	uint64_t rows = 0;

	for (uint64_t seed = only_seed ? only_seed : 1; seed <= (only_seed ? only_seed : SEEDS); seed++) {
		rows |= an_hour(&w, seed);
		if (only_seed)
			print_figures(&w);
	}
	for (unsigned i = 0; i < prog_rows() && !only_seed; i++)
		if (!(rows >> i & 1))
			fail_msg("no program needed row %u: %s", i, prog_row_name(i));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(programs_of_every_kind),
	};

	only_seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
