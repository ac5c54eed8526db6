/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Checks whether the words of a rule, each of which is valid, may be combined. */
#include "fault/parser.h"

/* an event of a port needs a place that names a port or node, one of a QP a queue pair */
static int check_event(struct parser *p)
{
	const struct flt_param *param = find_param("name", FLT_EVENT);
	const char *name = flt_word_name(param->words, p->rule->what);
	bool of_qp = flt_event_of_qp(p->rule->what);

	if (of_qp == (p->rule->place == FLT_QP))
		return 0;
	flt_text_add(&p->err, name);
	fail(p, of_qp ? " is of a queue pair" : " is of a port", NULL,
	     of_qp ? "qp NODE:QPN event " : "port NODE:PORT event ");
	flt_text_add(&p->err, name);
	if (of_qp)
		flt_text_add(&p->err, "; 'softib resource show' lists queue pairs");
	return -EINVAL;
}

/* "op=recv" exists for completions only, and "op=ack" for packets only */
static int check_operation(struct parser *p)
{
	const struct flt_range *op = &p->rule->field[FLT_OPERATION];
	bool packet = flt_actions[p->rule->action].family == FLT_PACKET;
	uint32_t never = packet ? FLT_RECV : FLT_ACK;

	if (!(p->rule->conditions & 1u << FLT_OPERATION) || op->low != op->high || op->low != never)
		return 0;
	return fail(p, packet ? "no packet is a" : "no completion is of an",
		    packet ? "recv" : "ack",
		    packet ? "send, write, read, atomic or ack" :
			     "send, write, read, atomic or recv");
}

int flt_check(struct parser *p)
{
	const struct flt_rule *r = p->rule;
	const struct flt_action_info *info = &flt_actions[r->action];
	bool is_switch = false;

	if (info->needs_argument &&
	    !(p->params & 1ull << (find_param(info->argument, (enum flt_action)r->action) -
				   flt_params))) {
		const struct flt_param *param = find_param(info->argument, (enum flt_action)r->action);

		return param->words ? fail_words(p, info->name, "", param->words) :
				      fail(p, info->name, "", flt_unit_example(param->unit));
	}
	if (r->node >= 0)
		p->names->num_ports(p->names->ctx, r->node, &is_switch);
	if (is_switch && (info->family == FLT_OBJECT || r->action == FLT_REMOVE ||
			  r->action == FLT_EVENT))
		return fail(p, info->name, "", "an adapter's node, not a switch");
	if (r->node >= 0 && !is_switch && r->action == FLT_DEATH)
		return fail(p, info->name, "", "a switch; an adapter's node can be removed");
	if (r->action == FLT_CORRUPT && r->offset == FLT_RANDOM_BIT && r->mask != 1)
		return fail(p, "a mask without", "offset", "both, or neither: a random bit");
	if (flt_is_state(r->action) && r->period_ns && r->period_ns <= r->for_ns)
		return fail(p, "the period is not longer than", "for", NULL);
	if (flt_is_state(r->action) && r->period_ns && !r->for_ns && r->action != FLT_EVENT)
		return fail(p, "a period without", "for", "how long it lasts each time");
	if (r->every > r->first && r->first)
		return fail(p, "nothing is hit: greater than first (nth means 1) is", "every",
			    "at most first, or one of the two alone");
	return r->action == FLT_EVENT ? check_event(p) : check_operation(p);
}
