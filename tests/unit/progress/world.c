/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "world.h"

#include <stdlib.h>
#include <string.h>

#define WAKE_MIN_NS (1 * US) /* from a wake-up to the thread's first step */
#define WAKE_MAX_NS (100 * US)
#define CROWDED_PERCENT 2

/* --- chance --- */

static uint64_t draw(struct world *w)
{
	w->seed ^= w->seed << 13;
	w->seed ^= w->seed >> 7;
	w->seed ^= w->seed << 17;
	return w->seed;
}

uint64_t world_random(struct world *w, uint64_t from, uint64_t to)
{
	unsigned octaves = 0;
	uint64_t low;

	while (from << octaves < to)
		octaves++;
	low = from << (octaves ? draw(w) % octaves : 0);
	low += draw(w) % low;
	return MIN(to, low);
}

bool world_chance(struct world *w, unsigned percent)
{
	return draw(w) % 100 < percent;
}

/* --- waking up --- */

static void wake(struct world *w, struct actor *actor)
{
	actor->next = MIN(actor->next, w->now + world_random(w, WAKE_MIN_NS, WAKE_MAX_NS));
}

static void wake_sleeper(struct world *w)
{
	if (w->thread.at == AT_DOORBELLS)
		wake(w, &w->thread);
	for (int i = 0; i < WAITERS; i++)
		if (w->program[i].at == AT_DOORBELLS)
			wake(w, &w->program[i]);
}

static void ring(struct world *w)
{
	w->doorbell = true;
	wake_sleeper(w);
}

static void kick(struct world *w)
{
	w->kick = true;
	if (w->thread.at == AT_DOORBELLS || w->thread.at == AT_APART)
		wake(w, &w->thread);
}

static unsigned report(struct world *w, enum prog_event event)
{
	static const struct prog_seen nothing;
	unsigned actions = prog_step(&w->prog, event, &nothing, (mono_t){w->now}).actions;

	if (actions & PROG_KICK)
		kick(w);
	return actions & ~(unsigned)PROG_KICK;
}

/* --- the engine --- */

/* whoever waits for events finds one */
static void raise_event(struct world *w)
{
	w->armed = false;
	w->events++;
	w->queued++;
	for (int i = 0; i < WAITERS; i++) {
		struct actor *a = &w->program[i];

		if (a->at == AT_DOORBELLS)
			w->own = true;
		if (a->at == AT_CHANNEL || a->at == AT_DOORBELLS)
			wake(w, a);
	}
}

/* Return: true when there was something to read */
static bool run_engine(struct world *w)
{
	if (!w->unread)
		return false;
	oracle_read(w, w->oldest_unread);
	w->read += w->unread;
	w->unread = 0;
	w->next_overdue = NEVER;
	if (w->armed)
		raise_event(w);
	return true;
}

/* Return: false when records wait, which nobody would ring for */
static bool arm_sleep(struct world *w)
{
	if (w->unread)
		return false;
	w->asleep = true;
	return true;
}

static void begin_doorbells(struct world *w, struct actor *a)
{
	if (w->thread.at == AT_DOORBELLS)
		w->failed = "two threads sleep on the doorbells";
	for (int i = 0; i < WAITERS; i++)
		if (w->program[i].at == AT_DOORBELLS)
			w->failed = "two threads sleep on the doorbells";
	a->at = AT_DOORBELLS;
	if (w->doorbell || w->own)
		wake(w, a);
}

/* --- records --- */

/* bursts, now and then, and long silences */
static uint64_t record_gap(struct world *w)
{
	if (world_chance(w, 80))
		return world_random(w, US, 200 * US);
	if (world_chance(w, 80))
		return world_random(w, 100 * US, 200 * MS);
	return world_random(w, 500 * MS, 5000 * MS);
}

static void record_comes(struct world *w)
{
	w->num_records++;
	w->last_record = w->now;
	if (!w->unread++)
		w->oldest_unread = w->now;
	if (w->asleep) {
		w->asleep = false;
		ring(w);
	} else if (w->sender_polls && w->next_overdue == NEVER) {
		w->next_overdue = w->now + PROG_OVERDUE_NS + world_random(w, US, PROG_OVERDUE_NS);
	}
	for (int i = 0; i < WAITERS; i++)
		if (w->program[i].at == AT_SPIN)
			wake(w, &w->program[i]);
	if (w->kind == KIND_POLL)
		w->program[0].next = MIN(w->program[0].next, w->now + w->poll_ns);
	w->next_record = w->now + record_gap(w);
	w->sender_polls = world_chance(w, 50);
}

/* softibd has news for the thread */
static void news_come(struct world *w)
{
	w->last_news = w->now;
	w->num_news++;
	w->next_news = w->now + world_random(w, MS, 10000 * MS);
	kick(w);
}

static void overdue(struct world *w)
{
	w->next_overdue = NEVER;
	ring(w);
}

/* --- the program --- */

uint64_t world_polls(const struct world *w)
{
	return w->polls_before + (w->kind == KIND_POLL ? (w->now - w->kind_since) / w->poll_ns : 0);
}

static void arm(struct world *w, bool *cq)
{
	*cq = true;
	w->arms++;
	w->last_arm = w->now;
	report(w, PROG_ARM);
}

static void leave(struct world *w, struct actor *a)
{
	bool driver = a->role & (PROG_DRIVE | PROG_DRIVE_SOON);

	if (!a->role)
		return;
	if (driver && a->at == AT_DOORBELLS)
		w->asleep = false;
	a->role = 0;
	a->at = AT_LOOP;
	w->last_visit = w->now;
	report(w, driver ? PROG_DRIVER_LEAVE : PROG_OTHER_LEAVE);
}

/* An event is handled. */
static void take_event(struct world *w, struct actor *a)
{
	w->queued--;
	leave(w, a);
	a->at = AT_LOOP;
	a->next = w->now + world_random(w, US, 50 * US);
}

static void sleep_on_channel(struct world *w, struct actor *a, uint64_t timeout_ns)
{
	a->at = AT_CHANNEL;
	a->next = timeout_ns == NEVER ? NEVER : w->now + timeout_ns;
}

static void sleep_as_driver(struct world *w, struct actor *a)
{
	if (a->role == PROG_DRIVE_SOON)
		a->role = report(w, PROG_RETRY);
	if (a->role == PROG_DRIVE_SOON) {
		sleep_on_channel(w, a, PROG_HANDOVER_NS);
	} else if (arm_sleep(w)) {
		a->next = NEVER;
		begin_doorbells(w, a);
	} else {
		a->at = AT_SPIN;
		a->next = w->now + US;
	}
}

static void enter(struct world *w, struct actor *a)
{
	a->role = report(w, PROG_ENTER);
	w->last_visit = w->now;
	if (a->role == PROG_WAIT) {
		sleep_on_channel(w, a, NEVER);
		return;
	}
	a->at = AT_SPIN;
	a->next = w->now + w->prog.spin_ns;
}

/* arms, polls, and waits in the way of the program */
static void loop(struct world *w, struct actor *a)
{
	w->polls_before++;
	arm(w, &w->armed);
	run_engine(w);
	if (w->queued)
		take_event(w, a);
	else if (w->kind == KIND_OWN_POLL)
		sleep_on_channel(w, a, NEVER);
	else
		enter(w, a);
}

static void in_get_event(struct world *w, struct actor *a)
{
	if (a->at == AT_DOORBELLS)
		w->asleep = w->doorbell = w->own = false;
	a->at = AT_SPIN;
	if (a->role & (PROG_DRIVE | PROG_DRIVE_SOON))
		run_engine(w);
	if (w->queued)
		take_event(w, a);
	else if (a->role == PROG_WAIT)
		sleep_on_channel(w, a, NEVER);
	else
		sleep_as_driver(w, a);
}

static void program_step(struct world *w, struct actor *a)
{
	a->next = NEVER;
	if (w->kind == KIND_POLL)
		run_engine(w);
	else if (a->at == AT_LOOP)
		loop(w, a);
	else if (a->role)
		in_get_event(w, a);
	else if (w->queued)
		take_event(w, a);
	else
		sleep_on_channel(w, a, NEVER);
}

void world_becomes(struct world *w, enum kind kind)
{
	unsigned threads = kind == KIND_WAIT_MANY ? WAITERS : 1;

	w->polls_before = world_polls(w);
	for (int i = 0; i < WAITERS; i++) {
		leave(w, &w->program[i]);
		w->program[i] = (struct actor){.next = NEVER};
	}
	w->kind = kind;
	w->kind_since = w->now;
	if (kind == KIND_POLL) {
		w->poll_ns = world_random(w, US / 4, PROG_POLL_NS);
		if (world_chance(w, 50))
			arm(w, &w->other_armed);
		else
			w->other_armed = false;
		w->program[0].next = w->now + w->poll_ns;
	} else if (kind < KIND_COMPUTE) {
		for (unsigned i = 0; i < threads; i++)
			w->program[i].next = w->now + world_random(w, US, 20 * US);
	}
}

/* --- the progress thread --- */

static void begin_action(struct world *w)
{
	struct actor *t = &w->thread;
	unsigned actions = w->order.actions;

	t->at = AT_ACTION;
	w->thread_slept_at = w->now;
	if (actions & (PROG_RUN | PROG_YIELD)) {
		t->next = w->now + world_random(w, US / 2, 5 * US);
		return;
	}
	t->next = w->order.sleep_ns == PROG_FOREVER ?
			  NEVER :
			  w->now + ALIGN_UP(w->order.sleep_ns, NSEC_PER_MSEC);
	if (actions & PROG_SLEEP_APART) {
		t->at = AT_APART;
	} else if (actions & PROG_SLEEP_ARMED && !arm_sleep(w)) {
		t->next = w->now + US;
		return;
	} else {
		begin_doorbells(w, t);
	}
	if (w->kick)
		wake(w, t);
}

static enum prog_event end_action(struct world *w, struct prog_seen *seen)
{
	bool on_doorbells = w->thread.at == AT_DOORBELLS;

	if (w->order.actions & PROG_RUN) {
		w->thread_runs++;
		seen->worked = run_engine(w);
		return PROG_RAN;
	}
	if (w->order.actions & PROG_YIELD)
		return world_chance(w, CROWDED_PERCENT) ? PROG_CROWDED : PROG_READY;
	w->kick = false;
	w->thread_wakes++;
	oracle_woke(w);
	w->thread.at = AT_ACTION;
	if (on_doorbells) {
		seen->rang = w->doorbell;
		w->helps += w->doorbell;
		w->doorbell = w->own = false;
		if (w->order.actions & PROG_SLEEP_ARMED)
			w->asleep = false;
	}
	return PROG_WOKE;
}

static void thread_step(struct world *w)
{
	struct prog_seen seen = {0};
	enum prog_event event = end_action(w, &seen);

	seen.polls = world_polls(w);
	seen.arms = w->arms;
	seen.armed = w->armed + w->other_armed;
	seen.events = w->events;
	seen.unread = w->unread > 0;
	seen.read = w->read;
	seen.slept_ns = w->now - w->thread_slept_at;
	seen.cpu_ns = w->kind == KIND_POLL || w->kind == KIND_COMPUTE ? seen.slept_ns : 0;
	w->order = prog_step(&w->prog, event, &seen, (mono_t){w->now});
	begin_action(w);
}

/* --- everyone --- */

void world_init(struct world *w, uint64_t seed)
{
	memset(w, 0, sizeof(*w));
	w->seed = seed * 0x9e3779b97f4a7c15ull + 1;
	w->now = NSEC_PER_SEC;
	prog_init(&w->prog, PROG_SPIN_NS, (mono_t){w->now});
	w->kind = KIND_SLEEP;
	w->kind_since = w->now;
	for (int i = 0; i < WAITERS; i++)
		w->program[i].next = NEVER;
	w->next_overdue = NEVER;
	w->next_record = w->next_news = w->now + MS;
	w->order.actions = PROG_YIELD;
	w->thread.at = AT_ACTION;
	w->thread.next = w->now;
}

bool world_step(struct world *w)
{
	uint64_t records = MIN(w->next_record, w->next_overdue);
	uint64_t others = MIN(w->thread.next, w->next_news), next = MIN(records, others);
	struct actor *program = NULL;

	for (int i = 0; i < WAITERS; i++) {
		if (w->program[i].next < next) {
			program = &w->program[i];
			next = program->next;
		}
	}
	if (next == NEVER)
		return false;
	w->now = MAX(w->now, next);
	if (program)
		program_step(w, program);
	else if (next == w->thread.next)
		thread_step(w);
	else if (next == w->next_news)
		news_come(w);
	else if (next == w->next_record)
		record_comes(w);
	else
		overdue(w);
	return true;
}
