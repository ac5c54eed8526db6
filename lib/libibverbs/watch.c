/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The engine's thread beside a program that polls or waits by itself: its
 * state WATCH (progress.c has the states and their events). It should cost
 * next to nothing, and yet no packet may wait for long when the program
 * turns to something else.
 */
#include <time.h>

#include "soft.h"

#define LOOK_MS 1
#define LOOK_POLLER_MS 16u /* at most; who waits for its answer rings sooner */
#define LOOK_GUEST_MS 8u
#define LOOK_ARMED_MS 2u /* an event may be waited for */
#define WINDOW_NS (200 * NSEC_PER_USEC)
#define BUSY_POLL_NS (100 * NSEC_PER_USEC) /* a hundred posts fit in between */
#define ARMED_POLL_NS (10 * NSEC_PER_USEC) /* with a CQ armed: who handles events polls less */
#define ARMED_STAY_NS (50 * NSEC_PER_USEC) /* the same of who is left to itself already */
#define ARMED_QUIET_NS (20 * NSEC_PER_MSEC) /* and nothing was armed for so long */
#define ARMS_NONE UINT64_MAX /* of arms_seen: what is armed counts as armed anew */
#define WINDOWS_MIN 2u
#define WINDOWS_MAX 1024u /* 0.2 s */
#define WATCH_SHORT_MS 8u /* a WATCH that ended sooner was a mistake */

/* Return: has the program armed a CQ since it was seen to poll and to arm none? */
static bool armed_anew(struct soft_progress *p)
{
	return atomic_load(&p->armed) && atomic_load(&p->arms) != p->arms_seen;
}

/* In SERVE: is it long ago that a CQ was armed that still is? */
static bool arms_are_old(struct soft_progress *p, mono_t now)
{
	uint64_t arms = atomic_load(&p->arms); /* a later one counts for the next window */
	bool anew = armed_anew(p);

	if (anew)
		p->armed_at = now;
	p->arms_seen = arms;
	return !anew && (!atomic_load(&p->armed) || now.ns - p->armed_at.ns >= ARMED_QUIET_NS);
}

/** watch_wanted() - in SERVE: does the program poll so often that the thread is
 *  only in its way? */
bool watch_wanted(struct soft_progress *p, mono_t now)
{
	uint64_t elapsed = now.ns - p->window_start.ns, polls, each;

	if (elapsed < WINDOW_NS)
		return false;
	polls = atomic_load(&p->polls);
	each = atomic_load(&p->armed) ? ARMED_POLL_NS : BUSY_POLL_NS;
	if (arms_are_old(p, now) && (polls - p->polls_seen) * each >= elapsed)
		p->busy_windows++;
	else
		p->busy_windows = 0;
	p->polls_seen = polls;
	p->window_start = now;
	return p->busy_windows >= WINDOWS_MIN && p->busy_windows >= p->windows_wanted;
}

/** watch_begin() - the thread has served, and steps aside */
void watch_begin(struct soft_progress *p, mono_t now)
{
	p->mode = PROGRESS_WATCH;
	p->look_ms = LOOK_MS;
	p->look_start = now;
}

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

static void start_serving(struct soft_progress *p, bool program_ran)
{
	p->mode = PROGRESS_SERVE;
	p->windows_wanted = MAX(p->windows_wanted, WINDOWS_MIN);
	if (p->watched_ms >= WATCH_SHORT_MS)
		p->windows_wanted /= 2;
	else if (program_ran)
		p->windows_wanted = MIN(p->windows_wanted * 4, WINDOWS_MAX);
	p->watched_ms = 0;
	p->busy_windows = 0;
	p->window_start = progress_now(NULL);
}

/* Sleep for one look as who hears the bells, though packets need not ring.
 * Return: what rang; -1: a guest hears them */
static int look_as_server(struct soft_context *ctx)
{
	struct soft_progress *p = &ctx->progress;
	int nobody = SERVER_NONE, rang = 0;

	if (!atomic_compare_exchange_strong(&p->server, &nobody, SERVER_THREAD))
		return -1;
	/* a guest that came before this, found nobody to send away */
	if (!atomic_load(&p->guest))
		rang = progress_sleep_on_bells(ctx, (int)p->look_ms);
	atomic_store(&p->server, SERVER_NONE);
	return rang;
}

/* Sleep for one look; as long as a guest serves that waits and waits, until
 * it goes or somebody calls. Return: bits of enum bell */
static int sleep_watching(struct soft_context *ctx)
{
	struct soft_progress *p = &ctx->progress;
	bool guest = atomic_load(&p->guest), quiet;
	int rang = -1;

	quiet = guest && p->visits_seen == atomic_load(&p->visits);
	p->visits_seen = atomic_load(&p->visits);
	atomic_store(&p->quiet, quiet);
	atomic_store(&p->watching, true);
	if (!guest && !atomic_load(&p->expects_guest))
		rang = armed_anew(p) ? 0 : look_as_server(ctx);
	/* a guest that goes now sees `quiet`, or is seen to be gone */
	if (rang < 0)
		progress_sleep_alone(ctx, quiet && atomic_load(&p->guest) ? -1 : (int)p->look_ms);
	atomic_store(&p->watching, false);
	atomic_store(&p->quiet, false);
	return MAX(rang, 0);
}

/* Return: true when guests come and go, or one is here */
static bool guests_serve(struct soft_progress *p)
{
	bool guest = atomic_load(&p->guest);
	bool serve = guest || (!atomic_load(&p->inside) &&
			       atomic_load(&p->visits) != p->visits_seen);

	if (serve) {
		p->watched_ms = MAX(p->watched_ms, WATCH_SHORT_MS); /* was no mistake */
		p->arms_seen = ARMS_NONE; /* it may sleep elsewhere when they are gone */
	}
	atomic_store(&p->expects_guest, serve);
	return serve;
}

/* After @ns of a look: does the program still poll, and take packets? */
static bool polls_on(struct soft_context *ctx, uint64_t ns)
{
	struct soft_progress *p = &ctx->progress;
	uint64_t polls = atomic_load(&p->polls), position;
	bool waiting, on;

	position = link_position(&ctx->link, &waiting);
	on = polls != p->polls_seen && !(waiting && position == p->position_seen);
	if (atomic_load(&p->armed) && (polls - p->polls_seen) * ARMED_STAY_NS < ns)
		on = false;
	p->polls_seen = polls;
	p->position_seen = waiting ? position : UINT64_MAX;
	return on;
}

/* With no guest that serves: the program armed a CQ to sleep by itself, or several of
 * its threads wait */
static bool may_sleep(struct soft_progress *p)
{
	return armed_anew(p) || (atomic_load(&p->armed) && atomic_load(&p->inside));
}

/* How long a look is at most: who waits for an event waits for its end */
static unsigned longest_look(struct soft_progress *p, bool guests)
{
	if (guests)
		return LOOK_GUEST_MS;
	return atomic_load(&p->armed) ? LOOK_ARMED_MS : LOOK_POLLER_MS;
}

/* Somebody rings for what the program has not read: do it once for a program
 * that may have no core just now, and look again soon. */
static void help_out(struct soft_context *ctx, mono_t now)
{
	struct soft_progress *p = &ctx->progress;

	progress_work(ctx, now);
	polls_on(ctx, 0);
	p->look_ms = LOOK_MS;
	p->look_start = now;
}

/** watch_look() - one look at a program that polls or waits by itself: short
 *  ones at first */
void watch_look(struct soft_context *ctx)
{
	struct soft_progress *p = &ctx->progress;
	uint64_t cpu = cpu_ns(), slept;
	int rang = sleep_watching(ctx);
	mono_t now = progress_now(NULL);
	bool over, guests = guests_serve(p);

	slept = now.ns - p->look_start.ns;
	over = slept >= p->look_ms * NSEC_PER_MSEC;
	if (!guests && (may_sleep(p) || ctx->link.broken || (over && !polls_on(ctx, slept)))) {
		start_serving(p, cpu_ns() - cpu > slept / 2);
	} else if (rang & (BELL_LANE | BELL_SOFTIBD)) {
		help_out(ctx, now);
	} else if (over) {
		progress_chase(ctx);
		p->watched_ms += p->look_ms;
		p->look_ms = MIN(2 * p->look_ms, longest_look(p, guests));
		p->look_start = now;
	}
}
