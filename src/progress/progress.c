/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The table of transitions. An event is ruled by the first row of its state and
 * event whose condition holds. Conditions only read; what a transition changes
 * besides the state is done by the row's last function.
 *
 * Hard-won, each with a test:
 *   - A CQ may stay armed while the program polls others: UCX waits by events for
 *     new peers and polls for messages of those that it has. Such a program is
 *     left to itself when it polls often and has armed nothing for a while. One
 *     that handles events polls as well, but arms again each time.
 *   - A program that arms anew is served at once: it is about to sleep.
 *   - A program that polled for a moment only looks busy; one that had no core for
 *     a while looks idle. The number of samples adapts to the first, and the
 *     processor time that was used tells the second.
 *   - One event waiter at a time runs the engine, and only while no other thread
 *     waits: several would hand it from one to the next at each event.
 */
#include "progress/progress.h"

#include <assert.h>
#include <string.h>

#define READ_UNKNOWN UINT64_MAX

/* what conditions look at */
struct look {
	const struct prog *p;
	const struct prog_seen *seen;
	mono_t now;
};

/* --- conditions: event waiters --- */

static bool somebody_waits(const struct look *l)
{
	return l->p->waiters > 0;
}

/* besides the driver */
static bool others_wait(const struct look *l)
{
	return l->p->waiters > (l->p->driver ? 1 : 0);
}

static bool thread_has_doorbells(const struct look *l)
{
	return l->p->doorbells == PROG_THREAD;
}

/* A driver is in; or one was since the last check, or since the thread began to run
 * the engine, and may come again. */
static bool drivers_come(const struct look *l)
{
	const struct prog *p = l->p;

	return p->driver || (!p->waiters && p->visits != p->visits_then);
}

/* --- conditions: the program's polls and armed CQs --- */

static bool polls_steadily(const struct look *l)
{
	const struct prog *p = l->p;

	return p->busy_samples >= MAX(p->samples_wanted, PROG_SAMPLES_MIN);
}

/* Has the program armed a CQ since it was seen to poll and to arm none? */
static bool armed_anew(const struct look *l)
{
	return l->seen->armed && (l->p->arms_are_new || l->seen->arms != l->p->arms_then);
}

/* It armed a CQ to sleep by itself, or several of its threads wait for events;
 * or softibd is gone, and what is queued must be flushed. */
static bool needs_thread(const struct look *l)
{
	return armed_anew(l) || (l->seen->armed && others_wait(l)) || l->seen->link_down;
}

static bool check_is_over(const struct look *l)
{
	return l->now.ns - l->p->check_start.ns >= l->p->check_ns;
}

/* During a whole check, the program polled not at all, or too little for an
 * armed CQ, or read nothing of what waited. */
static bool program_stopped(const struct look *l)
{
	const struct prog_seen *seen = l->seen;
	uint64_t polls = seen->polls - l->p->polls_then;

	if (!check_is_over(l))
		return false;
	if (seen->armed && polls * PROG_POLL_KEPT_NS < l->now.ns - l->p->check_start.ns)
		return true;
	return !polls || (seen->unread && seen->read == l->p->read_then);
}

/* A sender rings for what the program has not read: it may have no core now. */
static bool doorbell_rang(const struct look *l)
{
	return l->seen->rang;
}

static bool driver_stays_over(const struct look *l)
{
	return l->p->driver && l->p->visits == l->p->visits_then && check_is_over(l);
}

static bool drivers_come_over(const struct look *l)
{
	return drivers_come(l) && check_is_over(l);
}

/* A program that gets events gets the next one soon, or never. */
static bool may_spin(const struct look *l)
{
	const struct prog *p = l->p;

	return l->now.ns - p->last_work.ns < p->spin_ns && !mono_before(l->now, p->crowded_until) &&
	       (l->seen->events != p->events_then || l->seen->armed);
}

/* --- what transitions change --- */

static void begin_check(struct prog *p, const struct prog_seen *seen, mono_t now, uint64_t ns)
{
	p->check_start = now;
	p->check_ns = ns;
	p->polls_then = seen->polls;
	p->read_then = seen->unread ? seen->read : READ_UNKNOWN;
	p->visits_then = p->visits;
}

static void first_check(struct prog *p, const struct prog_seen *seen, mono_t now)
{
	begin_check(p, seen, now, PROG_CHECK_FIRST_NS);
}

static void next_check(struct prog *p, const struct prog_seen *seen, mono_t now, uint64_t longest)
{
	uint64_t ns = MIN(2 * p->check_ns, longest);

	p->standby_ns += p->check_ns;
	begin_check(p, seen, now, ns);
}

static void next_check_of_poller(struct prog *p, const struct prog_seen *seen, mono_t now)
{
	next_check(p, seen, now, seen->armed ? PROG_CHECK_ARMED_NS : PROG_CHECK_POLLER_NS);
}

/* Leaving the engine to drivers is no mistake; and when they come no more, a CQ
 * that is armed may be armed to sleep elsewhere. */
static void note_drivers(struct prog *p, const struct prog_seen *seen, mono_t now)
{
	p->standby_ns = MAX(p->standby_ns, PROG_STANDBY_SHORT_NS);
	p->arms_are_new = true;
}

static void leave_to_drivers(struct prog *p, const struct prog_seen *seen, mono_t now)
{
	first_check(p, seen, now);
	note_drivers(p, seen, now);
}

static void next_check_of_waiters(struct prog *p, const struct prog_seen *seen, mono_t now)
{
	next_check(p, seen, now, PROG_CHECK_WAITER_NS);
	note_drivers(p, seen, now);
}

static void end_standby(struct prog *p, const struct prog_seen *seen, mono_t now)
{
	unsigned wanted = MAX(p->samples_wanted, PROG_SAMPLES_MIN);

	if (p->standby_ns >= PROG_STANDBY_SHORT_NS)
		wanted /= 2;
	else if (seen->cpu_ns > seen->slept_ns / 2) /* it ran, and did not poll */
		wanted = MIN(wanted * 4, PROG_SAMPLES_MAX);
	p->samples_wanted = wanted;
	p->busy_samples = 0;
	p->sample_start = now;
	p->polls_then = seen->polls;
	p->visits_then = p->visits;
	p->standby_ns = 0;
}

static void note_events(struct prog *p, const struct prog_seen *seen, mono_t now)
{
	p->events_then = seen->events;
}

static void note_yield(struct prog *p, const struct prog_seen *seen, mono_t now)
{
	p->yield_start = now;
}

static void note_crowd(struct prog *p, const struct prog_seen *seen, mono_t now)
{
	uint64_t ns = prog_crowded_ns(now.ns - p->yield_start.ns);

	p->crowded_until = mono_add(now, MAX(ns, PROG_CROWDED_NS));
	p->events_then = seen->events;
}

static void enter(struct prog *p, const struct prog_seen *seen, mono_t now)
{
	p->waiters++;
}

static void take_doorbells(struct prog *p, const struct prog_seen *seen, mono_t now)
{
	p->doorbells = PROG_WAITER;
}

static void enter_as_driver(struct prog *p, const struct prog_seen *seen, mono_t now)
{
	p->waiters++;
	p->driver = true;
	p->visits++;
}

static void enter_and_drive(struct prog *p, const struct prog_seen *seen, mono_t now)
{
	enter_as_driver(p, seen, now);
	take_doorbells(p, seen, now);
}

static void leave(struct prog *p, const struct prog_seen *seen, mono_t now)
{
	assert(p->waiters);
	p->waiters--;
}

static void driver_leaves(struct prog *p, const struct prog_seen *seen, mono_t now)
{
	leave(p, seen, now);
	p->driver = false;
	p->visits++;
	if (p->doorbells == PROG_WAITER)
		p->doorbells = PROG_NOBODY;
}

/* --- the table --- */

typedef bool condition_fn(const struct look *l);
typedef void change_fn(struct prog *p, const struct prog_seen *seen, mono_t now);

struct row {
	enum prog_state state;
	enum prog_event event;
	condition_fn *when; /* NULL: always */
	enum prog_state next;
	unsigned actions; /* 0 for the thread: decide anew, as PROG_READY */
	change_fn *change; /* NULL: nothing */
	const char *name;
};

#define SLEEP_CHECKING (PROG_SLEEP_UNARMED | PROG_RING_OVERDUE)

/* clang-format off */
static const struct row table[] = {
/* --- the thread runs the engine --- */
{PROG_RUNNING, PROG_READY, drivers_come, PROG_BESIDE_WAITER, PROG_SLEEP_APART, leave_to_drivers,
	"an event waiter drives: leave the engine to it"},
{PROG_RUNNING, PROG_READY, polls_steadily, PROG_BESIDE_POLLER, PROG_SLEEP_UNARMED, first_check,
	"the program polls steadily: leave the engine to it"},
{PROG_RUNNING, PROG_READY, NULL, PROG_RUNNING, PROG_RUN, NULL,
	"nobody else runs the engine: run it"},
{PROG_RUNNING, PROG_RAN, drivers_come, PROG_BESIDE_WAITER, PROG_SLEEP_APART, leave_to_drivers,
	"an event waiter came while the engine ran"},
{PROG_RUNNING, PROG_RAN, may_spin, PROG_RUNNING, PROG_YIELD, note_yield,
	"an answer may be near: spin"},
{PROG_RUNNING, PROG_RAN, NULL, PROG_ASLEEP, PROG_SLEEP_ARMED, note_events,
	"nothing is left to do: sleep until a doorbell rings"},
{PROG_RUNNING, PROG_CROWDED, drivers_come, PROG_BESIDE_WAITER, PROG_SLEEP_APART, leave_to_drivers,
	"an event waiter took the core"},
{PROG_RUNNING, PROG_CROWDED, NULL, PROG_ASLEEP, PROG_SLEEP_ARMED, note_crowd,
	"somebody took the core: do not spin"},
{PROG_ASLEEP, PROG_WOKE, NULL, PROG_RUNNING, 0, NULL,
	"a doorbell, a timer or a kick: decide anew"},

/* --- the program polls --- */
{PROG_BESIDE_POLLER, PROG_WOKE, drivers_come, PROG_BESIDE_WAITER, PROG_SLEEP_APART, leave_to_drivers,
	"the program waits in ibv_get_cq_event() now"},
{PROG_BESIDE_POLLER, PROG_WOKE, needs_thread, PROG_RUNNING, 0, end_standby,
	"it armed a CQ to sleep: serve it at once"},
{PROG_BESIDE_POLLER, PROG_WOKE, program_stopped, PROG_RUNNING, 0, end_standby,
	"it stopped polling: serve it"},
{PROG_BESIDE_POLLER, PROG_WOKE, doorbell_rang, PROG_BESIDE_POLLER, PROG_RUN, NULL,
	"records are overdue: help out once"},
{PROG_BESIDE_POLLER, PROG_RAN, drivers_come, PROG_BESIDE_WAITER, PROG_SLEEP_APART, leave_to_drivers,
	"an event waiter came while the thread helped out"},
{PROG_BESIDE_POLLER, PROG_RAN, NULL, PROG_BESIDE_POLLER, PROG_SLEEP_UNARMED, first_check,
	"the thread helped out: check again soon"},
{PROG_BESIDE_POLLER, PROG_WOKE, check_is_over, PROG_BESIDE_POLLER, SLEEP_CHECKING, next_check_of_poller,
	"it still polls: the next check is later"},
{PROG_BESIDE_POLLER, PROG_WOKE, NULL, PROG_BESIDE_POLLER, PROG_SLEEP_UNARMED, NULL,
	"a kick for something else: go on with this check"},
{PROG_BESIDE_POLLER, PROG_ARM, NULL, PROG_ANY, PROG_KICK, NULL,
	"a poller arms a CQ: the thread must look"},

/* --- event waiters come and go --- */
{PROG_BESIDE_WAITER, PROG_WOKE, driver_stays_over, PROG_PARKED, PROG_SLEEP_APART, note_drivers,
	"the driver waits for long: sleep until it leaves"},
{PROG_BESIDE_WAITER, PROG_WOKE, drivers_come_over, PROG_BESIDE_WAITER, PROG_SLEEP_APART | PROG_RING_OVERDUE,
	next_check_of_waiters, "drivers come and go: the next check is later"},
{PROG_BESIDE_WAITER, PROG_WOKE, drivers_come, PROG_BESIDE_WAITER, PROG_SLEEP_APART, note_drivers,
	"a kick while drivers come and go: go on with this check"},
{PROG_BESIDE_WAITER, PROG_WOKE, needs_thread, PROG_RUNNING, 0, end_standby,
	"drivers come no more, and a CQ is armed: serve the program"},
{PROG_BESIDE_WAITER, PROG_WOKE, program_stopped, PROG_RUNNING, 0, end_standby,
	"drivers come no more, and nobody polls: serve the program"},
{PROG_BESIDE_WAITER, PROG_WOKE, NULL, PROG_BESIDE_POLLER, PROG_SLEEP_UNARMED, first_check,
	"drivers come no more, but the program polls"},
{PROG_PARKED, PROG_WOKE, NULL, PROG_PARKED, PROG_SLEEP_APART, NULL,
	"a kick for something else: go on sleeping"},
{PROG_PARKED, PROG_DRIVER_LEAVE, NULL, PROG_BESIDE_WAITER, PROG_KICK, driver_leaves,
	"the driver leaves: the thread checks again"},

/* --- the program's threads, in any state --- */
{PROG_ANY, PROG_ARM, NULL, PROG_ANY, 0, NULL,
	"a CQ is armed, and whoever runs the engine does so already"},
{PROG_ANY, PROG_ENTER, somebody_waits, PROG_ANY, PROG_WAIT, enter,
	"several threads wait: none of them drives"},
{PROG_ANY, PROG_ENTER, thread_has_doorbells, PROG_ANY, PROG_DRIVE_SOON | PROG_KICK, enter_as_driver,
	"the only waiter drives, once the thread has left the doorbells"},
{PROG_ANY, PROG_ENTER, NULL, PROG_ANY, PROG_DRIVE, enter_and_drive,
	"the only waiter drives"},
{PROG_ANY, PROG_RETRY, thread_has_doorbells, PROG_ANY, PROG_DRIVE_SOON | PROG_KICK, NULL,
	"the thread has not left the doorbells yet"},
{PROG_ANY, PROG_RETRY, NULL, PROG_ANY, PROG_DRIVE, take_doorbells,
	"the thread has left the doorbells"},
{PROG_ANY, PROG_DRIVER_LEAVE, others_wait, PROG_ANY, PROG_KICK, driver_leaves,
	"the driver leaves others behind: the thread must serve them"},
{PROG_ANY, PROG_DRIVER_LEAVE, NULL, PROG_ANY, 0, driver_leaves,
	"the driver leaves"},
{PROG_ANY, PROG_OTHER_LEAVE, NULL, PROG_ANY, 0, leave,
	"a thread that waited leaves"},
};
/* clang-format on */

/* --- one step --- */

static bool is_of_thread(enum prog_event event)
{
	return event <= PROG_WOKE;
}

/* At the end of a sample: was it busy? */
static void take_sample(struct prog *p, const struct prog_seen *seen, mono_t now)
{
	const struct look look = {p, seen, now};
	uint64_t elapsed = now.ns - p->sample_start.ns;
	uint64_t each = seen->armed ? PROG_POLL_ARMED_NS : PROG_POLL_NS;
	bool quiet;

	if (elapsed < PROG_SAMPLE_NS)
		return;
	if (armed_anew(&look))
		p->armed_at = now;
	quiet = !seen->armed || now.ns - p->armed_at.ns >= PROG_QUIET_NS;
	if (quiet && (seen->polls - p->polls_then) * each >= elapsed)
		p->busy_samples++;
	else
		p->busy_samples = 0;
	p->arms_then = seen->arms;
	p->arms_are_new = false;
	p->polls_then = seen->polls;
	p->sample_start = now;
}

/* what the thread's report itself says, whichever row rules it */
static void note_report(struct prog *p, enum prog_event event, const struct prog_seen *seen,
			mono_t now)
{
	p->kicked = false;
	if (p->doorbells == PROG_THREAD) /* it is awake */
		p->doorbells = p->driver ? PROG_WAITER : PROG_NOBODY;
	if (event == PROG_RAN && seen->worked)
		p->last_work = now;
	if (p->state == PROG_RUNNING && event == PROG_READY)
		take_sample(p, seen, now);
}

static const struct row *find_row(const struct prog *p, enum prog_event event,
				  const struct prog_seen *seen, mono_t now)
{
	const struct look look = {p, seen, now};

	for (const struct row *row = table; row < table + ARRAY_SIZE(table); row++)
		if (row->event == event && (row->state == p->state || row->state == PROG_ANY) &&
		    (!row->when || row->when(&look)))
			return row;
	return NULL;
}

static uint64_t sleep_time(const struct prog *p, mono_t now)
{
	uint64_t elapsed = now.ns - p->check_start.ns;

	if (p->state == PROG_ASLEEP || p->state == PROG_PARKED)
		return PROG_FOREVER;
	return elapsed < p->check_ns ? p->check_ns - elapsed : 0;
}

void prog_init(struct prog *p, uint64_t spin_ns, mono_t now)
{
	memset(p, 0, sizeof(*p));
	p->spin_ns = spin_ns;
	p->sample_start = now;
}

struct prog_order prog_step(struct prog *p, enum prog_event event, const struct prog_seen *seen,
			    mono_t now)
{
	struct prog_order order = {0};
	const struct row *row;

	if (is_of_thread(event))
		note_report(p, event, seen, now);
	row = find_row(p, event, seen, now);
	assert(row);
	p->rows |= 1ull << (row - table);
	if (row->next != PROG_ANY)
		p->state = row->next;
	if (row->change)
		row->change(p, seen, now);
	if (is_of_thread(event) && !row->actions)
		return prog_step(p, PROG_READY, seen, now);
	order.actions = row->actions;
	if (order.actions & PROG_KICK) {
		if (p->kicked)
			order.actions &= ~(unsigned)PROG_KICK;
		p->kicked = true;
	}
	if (order.actions & (PROG_SLEEP_ARMED | PROG_SLEEP_UNARMED)) {
		assert(p->doorbells == PROG_NOBODY);
		p->doorbells = PROG_THREAD;
	}
	if (is_of_thread(event))
		order.sleep_ns = sleep_time(p, now);
	return order;
}

uint64_t prog_crowded_ns(uint64_t lost_ns)
{
	if (lost_ns < PROG_CROWDED_SLICE_NS)
		return 0;
	if (lost_ns > PROG_CROWDED_MAX_NS / PROG_CROWDED_TIMES)
		return PROG_CROWDED_MAX_NS;
	return lost_ns * PROG_CROWDED_TIMES;
}

static_assert(ARRAY_SIZE(table) <= 64, "a bit for each row in prog.rows");

unsigned prog_rows(void)
{
	return ARRAY_SIZE(table);
}

const char *prog_row_name(unsigned row)
{
	return table[row].name;
}
