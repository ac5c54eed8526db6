/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * State rules: a link that is down, a switch without power, an adapter that
 * is removed, an asynchronous event. Each has a timer:
 *
 *   add		   on
 *   on, "for" over	   off; the next is "period" after the last on
 *   off, "period" over	   on again, until "count" is used up
 *   clear		   off
 *
 * A link or device that several rules hold down comes back when the last of them
 * ends. A cable that was also pulled by fab_link_set() stays unplugged.
 *
 * A node that loses power loses its state: it comes back in its initial state,
 * and a subnet manager has to program it.
 */
#include <errno.h>

#include "fabric/fabric_private.h"

int fab_node_power(struct fabric *fab, int index, bool on)
{
	struct fab_node *node;

	if (index < 0 || index >= fab->num_nodes)
		return -ENOENT;
	node = &fab->node[index];
	if (node->dead == !on)
		return 0;
	node->dead = !on;
	for (unsigned int i = 1; i <= node->ag->num_ports; i++) {
		if (!fab_is_plugged(&node->port[i]))
			continue;
		if (on)
			fab_link_retrain(&node->port[i]);
		else
			fab_link_train(&node->port[i]);
	}
	if (!on)
		fab_node_reset(node);
	fab_routes_changed(node);
	return 0;
}

/* removing an adapter takes its ports down, and ends the use of it by programs */
static int set_adapter(struct fabric *fab, int node, bool present)
{
	const struct fab_fault_ops *ops = &fab->fault_ops;
	int ret = ops->adapter(ops->ctx, node, present);

	if (ret)
		return ret;
	if (!present)
		fab_fault_gone(fab, node, 0);
	return fab_node_power(fab, node, present);
}

static struct fab_port *far_end(const struct fab_port *port)
{
	return &port->fab->node[port->peer_node].port[port->peer_port];
}

/* a cable is out as long as fab_link_set() or a rule requires it */
static int set_cut(struct fab_port *port, bool cut)
{
	port->cut = far_end(port)->cut = cut;
	if (!port->plugged)
		return 0;
	if (cut)
		fab_link_train(port);
	else
		fab_link_retrain(port);
	return 0;
}

/* Return: 0; -errno */
static int set(struct fabric *fab, const struct flt_rule *rule, bool on)
{
	const struct fab_fault_ops *ops = &fab->fault_ops;

	switch (rule->action) {
	case FLT_DOWN:
		return set_cut(fab_port_of(fab, rule->node, rule->port), on);
	case FLT_DEATH:
		return fab_node_power(fab, rule->node, !on);
	case FLT_REMOVE:
		return set_adapter(fab, rule->node, !on);
	default:
		return on ? ops->event(ops->ctx, rule->node, rule->port, rule->qpn, rule->what) : 0;
	}
}

/* --- who holds what ---------------------------------------------------- */

static bool is_at(const struct flt_rule *rule, const struct fab_port *port)
{
	return rule->node == port->node && rule->port == port->num;
}

/* do two rules hold the same thing down? A cable can be named by either end */
static bool is_same(const struct fabric *fab, const struct flt_rule *a, const struct flt_rule *b)
{
	const struct fab_port *port;

	if (a->action != b->action || a->action == FLT_EVENT)
		return false;
	if (a->action != FLT_DOWN)
		return a->node == b->node;
	port = fab_port_of(fab, a->node, a->port);
	return is_at(b, port) || is_at(b, far_end(port));
}

/* the next rule, from the @i-th outage on, that holds the same thing as @what; NULL */
static const struct flt_rule *next_holder(const struct fabric *fab, const struct flt_rule *what,
					  size_t *i)
{
	struct fab_faults *f = fab->faults;

	while (f && *i < ARRAY_SIZE(f->outage)) {
		const struct fab_outage *o = &f->outage[(*i)++];
		const struct flt_rule *rule = o->rule && o->on ? flt_find(&f->set, o->rule) : NULL;

		if (rule && is_same(fab, what, rule))
			return rule;
	}
	return NULL;
}

/* change nothing that another rule holds */
static int set_unless_held(struct fabric *fab, const struct flt_rule *rule, bool on)
{
	size_t i = 0;

	return next_holder(fab, rule, &i) ? 0 : set(fab, rule, on);
}

bool fab_fault_is_on(const struct fabric *fab, uint32_t id)
{
	for (size_t i = 0; fab->faults && i < ARRAY_SIZE(fab->faults->outage); i++)
		if (fab->faults->outage[i].rule == id)
			return fab->faults->outage[i].on;
	return false;
}

static struct flt_rule down_rule(int node, int num)
{
	return (struct flt_rule){.action = FLT_DOWN, .node = node, .port = (uint8_t)num};
}

uint32_t fab_link_holder(const struct fabric *fab, int node, int num)
{
	const struct fab_port *port = fab_port_of(fab, node, num);
	struct flt_rule what = down_rule(node, num);
	const struct flt_rule *rule;
	size_t i = 0;

	rule = port && port->cut ? next_holder(fab, &what, &i) : NULL;
	return rule ? rule->id : 0;
}

bool fab_link_returns(const struct fabric *fab, int node, int num)
{
	const struct fab_port *port = fab_port_of(fab, node, num);
	struct flt_rule what = down_rule(node, num);
	const struct flt_rule *rule;
	size_t i = 0;

	if (!port || !port->plugged || !port->cut)
		return false;
	while ((rule = next_holder(fab, &what, &i)))
		if (!rule->for_ns)
			return false;
	return true;
}

/* --- time -------------------------------------------------------------- */

static void arm(struct fab_outage *o, uint64_t ns)
{
	if (ns)
		rt_timer_arm(&o->timer, mono_add(rt_now(o->fab->rt), ns));
}

/* Return: 0; -errno if it did not take effect: this is no hit, and it is repeated after
 * the rule's period */
static int turn_on(struct fab_faults *f, struct fab_outage *o, const struct flt_rule *rule)
{
	struct flt_rule copy = *rule; /* removing an adapter clears rules, and moves the others in memory */
	int ret;

	if (copy.count && copy.hits >= copy.count)
		return 0;
	ret = set_unless_held(f->fab, &copy, true);
	/* an event has no duration */
	o->on = !ret && copy.action != FLT_EVENT;
	if (!ret)
		flt_state_hit(&f->set, flt_find(&f->set, copy.id), rt_now(f->fab->rt));
	arm(o, o->on ? copy.for_ns : copy.period_ns);
	return ret;
}

static void turn(struct rt_timer *timer)
{
	struct fab_outage *o = container_of(timer, struct fab_outage, timer);
	struct fab_faults *f = o->fab->faults;
	struct flt_rule *rule = flt_find(&f->set, o->rule);

	if (!rule)
		return;
	if (!o->on) {
		turn_on(f, o, rule);
		return;
	}
	o->on = false;
	set_unless_held(f->fab, rule, false);
	if (rule->period_ns)
		arm(o, rule->period_ns - rule->for_ns);
}

static struct fab_outage *find(struct fab_faults *f, uint32_t rule)
{
	for (size_t i = 0; i < ARRAY_SIZE(f->outage); i++)
		if (f->outage[i].rule == rule)
			return &f->outage[i];
	return NULL;
}

int fab_outage_start(struct fab_faults *f, struct flt_rule *rule)
{
	struct fab_outage *o = find(f, 0);
	int ret;

	o->rule = rule->id; /* there are as many outages as rules, so one is free */
	o->fab = f->fab;
	o->on = false;
	rt_timer_init(f->fab->rt, &o->timer, turn);
	ret = turn_on(f, o, rule);
	if (!ret)
		return 0;
	rt_timer_disarm(&o->timer);
	o->rule = 0;
	return ret;
}

void fab_outage_end(struct fab_faults *f, const struct flt_rule *rule)
{
	struct fab_outage *o = find(f, rule->id);

	if (!o)
		return;
	rt_timer_disarm(&o->timer);
	o->rule = 0;
	if (o->on)
		set_unless_held(f->fab, rule, false);
}
