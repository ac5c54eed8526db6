/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Task management (SRP 6.10, SAM-5 7). A function is answered when all commands that it aborts have
 * ended. A command that a disk has begun to perform is completed; one that it has not begun is taken
 * back. An aborted command of the same channel is not answered; the answer to the function returns
 * its credit to the initiator. An aborted command of another channel is answered with TASK ABORTED.
 */
#include "ulp/srpt/private.h"
#include "ulp/srpt/trace.h"

static void answer(struct srpt_request *r, enum wire_srp_response code)
{
	struct srpt_channel *ch = r->channel;
	u32 delta = srp_credits_return(&ch->credits, 1 + r->credits);

	trace_srpt_task_done(SRPT_TRACE_AT(ch), ch->qp->qp_num, r->task.tag, code);
	srpt_request_answer(r, srp_task_answer(&r->task, code, delta, r->answer));
}

void srpt_task_release(struct srpt_request *r)
{
	struct srpt_request *aborter = r->aborter;

	r->aborter = NULL;
	if (!aborter)
		return;
	list_del(&r->of_aborter);
	aborter->credits += !r->command.tell_aborted;
	if (!list_empty(&aborter->aborted))
		return;
	answer(aborter, WIRE_SRP_RESPONSE_OK);
	srpt_request_finish(aborter);
}

void srpt_task_forget(struct srpt_request *r)
{
	struct srpt_request *c, *next;

	list_for_each_entry_safe(c, next, &r->aborted, of_aborter) {
		list_del(&c->of_aborter);
		c->aborter = NULL;
	}
}

static void abort_command(struct srpt_request *by, struct srpt_request *c)
{
	if (!c->is_command || c->answered || c->command.aborted)
		return;
	c->command.aborted = true;
	c->command.tell_aborted = c->channel != by->channel;
	c->aborter = by;
	list_add_tail(&c->of_aborter, &by->aborted);
	if (c->unit)
		srpt_line_recall(c);
}

/* Abort the commands of a channel on a unit. */
static void abort_of_channel(struct srpt_request *by, struct srpt_channel *ch,
			     const struct srpt_unit *unit)
{
	struct srpt_request *c;

	list_for_each_entry(c, &ch->requests, node)
		if (c->unit == unit)
			abort_command(by, c);
}

/* --- functions: each aborts what it concerns --- */

static void abort_task(struct srpt_request *r, struct srpt_unit *unit)
{
	struct srpt_request *c;

	list_for_each_entry(c, &r->channel->requests, node)
		if (c->is_command && c->unit == unit &&
		    c->command.cmd.tag == r->task.task_tag)
			abort_command(r, c);
}

static void abort_task_set(struct srpt_request *r, struct srpt_unit *unit)
{
	struct srpt_channel *ch;

	list_for_each_entry(ch, &r->channel->srpt->channels, node)
		if (ch->initiator == r->channel->initiator)
			abort_of_channel(r, ch, unit);
}

static void tell_others(struct srpt_request *r, const struct srpt_unit *unit,
			enum scsi_sense attention)
{
	struct srpt_initiator *i;

	list_for_each_entry(i, &r->channel->srpt->initiators, node)
		if (i != r->channel->initiator)
			i->nexus[unit->lun].attention = attention;
}

/* Abort all commands on the unit. Those of other initiators are answered with TASK ABORTED (TAS of
 * the control mode page), so that these need no unit attention (SAM-5 5.6). */
static void clear_task_set(struct srpt_request *r, struct srpt_unit *unit)
{
	struct srpt_channel *ch;

	list_for_each_entry(ch, &r->channel->srpt->channels, node)
		abort_of_channel(r, ch, unit);
}

static void reset_unit(struct srpt_request *r, struct srpt_unit *unit)
{
	clear_task_set(r, unit);
	tell_others(r, unit, SCSI_UNIT_RESET);
	r->channel->initiator->nexus[unit->lun].attention = SCSI_UNIT_RESET;
}

static const struct {
	enum wire_srp_task_function function;
	void (*run)(struct srpt_request *r, struct srpt_unit *unit);
} functions[] = {
	{WIRE_SRP_ABORT_TASK, abort_task},
	{WIRE_SRP_ABORT_TASK_SET, abort_task_set},
	{WIRE_SRP_CLEAR_TASK_SET, clear_task_set},
	{WIRE_SRP_LUN_RESET, reset_unit},
};

/* Perform the function. Return: the code of its answer. OK is sent when all aborted commands have
 * ended */
static enum wire_srp_response perform(struct srpt_request *r)
{
	struct srpt_unit *unit = srpt_unit_of(r->channel->srpt, r->task.lun);

	for (size_t i = 0; i < ARRAY_SIZE(functions); i++) {
		if (functions[i].function != r->task.function)
			continue;
		if (!unit)
			return WIRE_SRP_RESPONSE_FAILED;
		functions[i].run(r, unit);
		return WIRE_SRP_RESPONSE_OK;
	}
	return WIRE_SRP_RESPONSE_UNSUPPORTED;
}

void srpt_task_begin(struct srpt_request *r, const u8 *iu, size_t len)
{
	enum wire_srp_response code;

	wire_srp_tsk_mgmt_decode(iu, len, &r->task);
	code = perform(r);
	trace_srpt_task(SRPT_TRACE_AT(r->channel), r->channel->qp->qp_num, r->task.tag, r->task.function,
			!list_empty(&r->aborted));
	if (!list_empty(&r->aborted))
		return;
	answer(r, code);
	srpt_request_finish(r);
}
