/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * State rules: a link that is down, a switch without power, an adapter that
 * was pulled, an asynchronous event. Each has a timer:
 *
 *   add		   on
 *   on, "for" over	   off; the next is "period" after the last on
 *   off, "period" over	   on again, until "count" is used up
 *   clear		   off
 *
 * A node without power loses what it was told: it comes back as made, and a
 * subnet manager has to program it.
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
		if (node->port[i].peer_node < 0 || !node->port[i].plugged)
			continue;
		if (on)
			fab_link_retrain(&node->port[i]);
		else
			fab_link_train(&node->port[i]);
	}
	if (!on)
		fab_node_reset(node);
	fab_routes_changed(fab);
	return 0;
}

/* an adapter that is pulled takes its ports along, and those who used it */
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

/* Return: 0; -errno */
static int set(struct fabric *fab, const struct flt_rule *rule, bool on)
{
	const struct fab_fault_ops *ops = &fab->fault_ops;

	switch (rule->action) {
	case FLT_DOWN:
		return fab_link_set(fab, rule->node, rule->port, !on);
	case FLT_DEATH:
		return fab_node_power(fab, rule->node, !on);
	case FLT_REMOVE:
		return set_adapter(fab, rule->node, !on);
	default:
		return on ? ops->event(ops->ctx, rule->node, rule->port, rule->qpn, rule->what) : 0;
	}
}

static void arm(struct fab_outage *o, uint64_t ns)
{
	if (ns)
		rt_timer_arm(&o->timer, mono_add(rt_now(o->fab->rt), ns));
}

/* Return: 0; -errno it did not take effect */
static int turn_on(struct fab_faults *f, struct fab_outage *o, struct flt_rule *rule)
{
	struct flt_rule copy = *rule;
	int ret;

	if (!flt_state_hit(&f->set, rule, rt_now(f->fab->rt)))
		return 0;
	o->on = true;
	ret = set(f->fab, &copy, true);
	/* an event is over at once */
	arm(o, copy.action == FLT_EVENT ? copy.period_ns : copy.for_ns);
	return ret;
}

static void turn(struct rt_timer *timer)
{
	struct fab_outage *o = container_of(timer, struct fab_outage, timer);
	struct fab_faults *f = o->fab->faults;
	struct flt_rule *rule = flt_find(&f->set, o->rule);

	if (!rule)
		return;
	if (!o->on || rule->action == FLT_EVENT) {
		turn_on(f, o, rule);
		return;
	}
	o->on = false;
	set(f->fab, rule, false);
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

	o->rule = rule->id; /* there are as many as rules */
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
		set(f->fab, rule, false);
}

bool fab_link_returns(const struct fabric *fab, int node, int num)
{
	const struct fab_port *port = fab_port_of(fab, node, num);
	struct fab_faults *f = fab->faults;

	for (size_t i = 0; f && port && i < ARRAY_SIZE(f->outage); i++) {
		const struct fab_outage *o = &f->outage[i];
		const struct flt_rule *rule = o->rule && o->on ? flt_find(&f->set, o->rule) : NULL;

		if (rule && rule->action == FLT_DOWN && rule->for_ns &&
		    ((rule->node == node && rule->port == num) ||
		     (rule->node == port->peer_node && rule->port == port->peer_port)))
			return true;
	}
	return false;
}
