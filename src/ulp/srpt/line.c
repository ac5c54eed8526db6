/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The order of a unit's commands (SAM-5 8.6). A command is performed as soon as its data have arrived, and
 * several reads and writes are performed at a time, so that one may overtake another. Each command is in
 * its unit's line, in the order of arrival, until it has been performed. Barriers limit the overtaking:
 *
 *  barrier     a command that is                   waits for                what waits for it
 *  ordered     ORDERED                             all that came before     all behind, but for HEAD OF QUEUE
 *  held        being performed, and was sent by    -                        all behind
 *              a channel that is gone
 *
 * Without the second kind of barrier, an old write could be stored over a newer one: the initiator logs in
 * again, repeats the old write, and then sends the newer one.
 */
#include "ulp/srpt/private.h"

static bool is_ordered(const struct srpt_request *r)
{
	return r->command.cmd.task_attr == WIRE_SRP_ORDERED;
}

static bool is_urgent(const struct srpt_request *r)
{
	return r->command.cmd.task_attr == WIRE_SRP_HEAD_OF_QUEUE;
}

static void set_barrier(struct srpt_request *r)
{
	r->unit->barriers += !r->barrier;
	r->barrier = true;
}

void srpt_line_join(struct srpt_request *r)
{
	list_add_tail(&r->in_line, &r->unit->line);
	if (is_ordered(r))
		set_barrier(r);
}

void srpt_line_leave(struct srpt_request *r)
{
	struct srpt_unit *unit = r->unit;

	if (!unit || list_empty(&r->in_line))
		return;
	list_del(&r->in_line);
	unit->nr_waiting -= r->waiting;
	unit->barriers -= r->barrier;
	r->waiting = r->barrier = false;
	if (unit->nr_waiting)
		rt_work_queue(unit->rt, &unit->turn);
}

void srpt_line_hold(struct srpt_request *r)
{
	if (r->unit && !list_empty(&r->in_line))
		set_barrier(r);
}

/* Does @r have to wait for @other, which arrived before it? */
static bool waits_for(const struct srpt_request *r, const struct srpt_request *other)
{
	if (is_ordered(r))
		return true;
	return other->barrier && !(is_ordered(other) && is_urgent(r) && !other->channel->ending);
}

static bool has_turn(const struct srpt_request *r)
{
	const struct srpt_request *other;

	if (!r->unit->barriers)
		return true;
	list_for_each_entry(other, &r->unit->line, in_line) {
		if (other == r)
			break;
		if (waits_for(r, other))
			return false;
	}
	return true;
}

static void wait_for_turn(struct srpt_request *r)
{
	r->waiting = true;
	r->unit->nr_waiting++;
}

bool srpt_line_turn(struct srpt_request *r)
{
	if (!r->unit || has_turn(r))
		return true;
	wait_for_turn(r);
	return false;
}

void srpt_line_recall(struct srpt_request *r)
{
	if (r->executing && srpt_worker_cancel(r->unit->worker, &r->job)) {
		r->executing = false;
		wait_for_turn(r);
	}
	if (r->waiting)
		rt_work_queue(r->unit->rt, &r->unit->turn);
}

/* Return: the first waiting command that does not have to wait any more; NULL */
static struct srpt_request *next_turn(struct srpt_unit *unit)
{
	struct srpt_request *r;

	list_for_each_entry(r, &unit->line, in_line)
		if (r->waiting && (r->command.aborted || has_turn(r)))
			return r;
	return NULL;
}

static void take_turns(struct rt_work *work)
{
	struct srpt_unit *unit = container_of(work, struct srpt_unit, turn);
	struct srpt_request *r;

	while (unit->nr_waiting && (r = next_turn(unit))) {
		r->waiting = false;
		unit->nr_waiting--;
		srpt_command_go_on(r);
	}
}

void srpt_line_open(struct srpt_unit *unit)
{
	INIT_LIST_HEAD(&unit->line);
	rt_work_init(&unit->turn, take_turns);
}
