/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Functions of modules that do not return. softibd has one thread, so such a function stops
 * the fabric. A timer's signal looks now and then whether the loop has come to another turn.
 * If it has not for the limit of processor time, or for six times as long altogether, and a
 * function of a module is on the stack, that function is ended as one that crashed.
 *
 * It is ended only where the interrupted instruction is the module's own: elsewhere, in libc
 * or in the midlayer, locks may be held and lists half changed. The signal comes each
 * millisecond until it is so. A function that blocks in a system call is never ended like
 * that: after some seconds more softibd ends, and the log names the module.
 *
 * An idle loop is in one turn for long as well, but with no module on its stack. Processor
 * time does not pass while the machine is too busy to run softibd.
 */
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "modules/private.h"
#include "runtime/posix/rt_posix.h"

#define LOOKS	  8    /* in the limit */
#define BLOCKED	  6    /* times the limit: all time, not that of the processor alone */
#define TRIES_MAX 3000 /* each a millisecond or more after the one before */
#define WATCHDOG_SIGNAL SIGVTALRM

static struct {
	timer_t timer;
	bool made;
	uint64_t least_ns; /* the shortest limit of all modules; 0: there is none */
	uint64_t turns, cpu_ns, now_ns; /* of the loops, when a new turn was seen */
	unsigned int tries;
} dog;

static uint64_t time_of(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return timespec_ns(&ts);
}

static void set_period(uint64_t ns)
{
	struct itimerspec spec = {.it_interval = {(time_t)(ns / NSEC_PER_SEC),
						  (long)(ns % NSEC_PER_SEC)}};

	spec.it_value = spec.it_interval;
	timer_settime(dog.timer, 0, &spec, NULL);
}

static bool is_over(uint64_t limit_ns)
{
	return time_of(CLOCK_THREAD_CPUTIME_ID) - dog.cpu_ns >= limit_ns ||
	       time_of(CLOCK_MONOTONIC) - dog.now_ns >= BLOCKED * limit_ns;
}

/* a new turn: time begins anew */
static void saw_turn(uint64_t turns)
{
	dog.turns = turns;
	dog.cpu_ns = time_of(CLOCK_THREAD_CPUTIME_ID);
	dog.now_ns = time_of(CLOCK_MONOTONIC);
	if (dog.tries)
		set_period(dog.least_ns / LOOKS);
	dog.tries = 0;
}

static void on_signal(int number, siginfo_t *info, void *context)
{
	uint64_t turns = modules_turns();
	struct module_state *state;
	bool is_own;

	if (turns != dog.turns) {
		saw_turn(turns);
		return;
	}
	if (!dog.least_ns || !is_over(dog.least_ns))
		return;
	state = module_interrupted(context, &is_own);
	if (!state || !state->watchdog_ns || !is_over(state->watchdog_ns))
		return;
	if (is_own) {
		module_abandon(context, "does not return");
		saw_turn(turns);
		return;
	}
	if (!dog.tries++)
		set_period(NSEC_PER_MSEC);
	if (dog.tries > TRIES_MAX) {
		module_log(state, "a function of it does not return, and waits where it cannot be "
			   "ended: softibd cannot go on");
		signal(SIGABRT, SIG_DFL);
		raise(SIGABRT);
	}
}

static bool make_timer(void)
{
	struct sigaction action = {.sa_sigaction = on_signal,
				   .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = WATCHDOG_SIGNAL};

	event._sigev_un._tid = gettid();
	if (!dog.made && !sigaction(WATCHDOG_SIGNAL, &action, NULL))
		dog.made = !timer_create(CLOCK_MONOTONIC, &event, &dog.timer);
	return dog.made;
}

void module_watch(uint64_t least_ns)
{
	if (least_ns == dog.least_ns || (least_ns && !make_timer()))
		return;
	dog.least_ns = least_ns;
	if (dog.made)
		set_period(least_ns / LOOKS);
}
