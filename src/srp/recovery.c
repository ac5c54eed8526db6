/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * When all channels of a session are down: commands wait (SRPI_BLOCKED) until
 * fast_io_fail_tmo, then fail (SRPI_FAIL_FAST); at dev_loss_tmo the target is given up
 * (SRPI_LOST). A channel that logs in again ends the first two.
 */
#include "srp/initiator.h"

#define PATIENT_ATTEMPTS 10  /* before attempts become rarer */
#define RAREST		 100 /* times reconnect_delay */
#define SECONDS_MOST	 (24 * 3600)

const char *srpi_timeouts_fault(const struct srpi_timeouts *t)
{
	if (t->reconnect_delay < SRPI_OFF || !t->reconnect_delay ||
	    t->reconnect_delay > SECONDS_MOST)
		return "the reconnect delay is 1 to 86400 seconds, or off";
	if (t->fast_io_fail_tmo < SRPI_OFF || t->fast_io_fail_tmo > SECONDS_MOST)
		return "the fast I/O fail time-out is 0 to 86400 seconds, or off";
	if (t->dev_loss_tmo < SRPI_OFF || !t->dev_loss_tmo || t->dev_loss_tmo > SECONDS_MOST)
		return "the device loss time-out is 1 to 86400 seconds, or off";
	if (t->reconnect_delay < 0 && t->fast_io_fail_tmo < 0 && t->dev_loss_tmo < 0)
		return "without a reconnect delay, one of the time-outs must not be off: "
		       "commands would wait for ever";
	if (t->fast_io_fail_tmo >= 0 && t->dev_loss_tmo >= 0 &&
	    t->fast_io_fail_tmo >= t->dev_loss_tmo)
		return "the fast I/O fail time-out is not below the device loss time-out";
	return NULL;
}

static mono_t after(mono_t since, int seconds)
{
	return seconds < 0 ? MONO_NEVER : mono_add(since, (uint64_t)seconds * NSEC_PER_SEC);
}

void srpi_recovery_channels(struct srpi_recovery *r, unsigned int nr, mono_t now)
{
	if (r->state == SRPI_LOST)
		return;
	if (nr) {
		r->state = SRPI_RUNNING;
	} else if (r->state == SRPI_RUNNING) {
		r->state = SRPI_BLOCKED;
		r->since = now;
	}
}

static enum srpi_state next_state(const struct srpi_recovery *r)
{
	return r->state == SRPI_BLOCKED && r->timeouts.fast_io_fail_tmo >= 0 ? SRPI_FAIL_FAST
									      : SRPI_LOST;
}

mono_t srpi_recovery_expiry(const struct srpi_recovery *r)
{
	if (r->state == SRPI_RUNNING || r->state == SRPI_LOST)
		return MONO_NEVER;
	return after(r->since, next_state(r) == SRPI_FAIL_FAST ? r->timeouts.fast_io_fail_tmo
							       : r->timeouts.dev_loss_tmo);
}

bool srpi_recovery_tick(struct srpi_recovery *r, mono_t now)
{
	bool changed = false;

	for (;;) {
		mono_t when = srpi_recovery_expiry(r);

		if (mono_before(now, when))
			return changed;
		r->state = next_state(r);
		changed = true;
	}
}

mono_t srpi_recovery_again(const struct srpi_recovery *r, unsigned int failures, mono_t now)
{
	unsigned int times = failures > PATIENT_ATTEMPTS ? failures - PATIENT_ATTEMPTS : 1;

	if (r->timeouts.reconnect_delay < 0)
		return MONO_NEVER;
	return after(now, (int)MIN(times, RAREST) * r->timeouts.reconnect_delay);
}
