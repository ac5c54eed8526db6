/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Faults as they happen: each of the plan has a timer that begins it and one
 * that ends it. What happens to packets, links and switches is done by the
 * fabric's own rules (src/fault), of which each fault here is a line of text;
 * programs, managers, memory and the clock are ours.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conn.h"
#include "runtime/sim/rt_sim.h"

struct fault {
	struct faults *all;
	const struct plan_fault *plan;
	struct rt_timer begin, end;
	bool active;
	int rule; /* of the fabric; 0: none */
};

struct faults {
	struct sim *sim;
	struct fault fault[PLAN_FAULTS];
};

/* --- rules of the fabric --- */

static int nth_node(const struct sim *sim, enum topo_kind kind, uint32_t which)
{
	uint32_t n = 0;

	for (int i = 0; i < sim->topo->num_nodes; i++)
		n += sim->topo->node[i].kind == kind;
	if (!n)
		return -1;
	which %= n;
	for (int i = 0;; i++)
		if (sim->topo->node[i].kind == kind && which-- == 0)
			return i;
}

/* the end of a cable; every node has one */
static int nth_cable(const struct sim *sim, uint32_t which, int *port)
{
	int node = (int)(which % (uint32_t)sim->topo->num_nodes);
	const struct topo_node *n = &sim->topo->node[node];

	*port = 1 + (int)(which / 7 % n->num_ports);
	while (n->port[*port].peer_node < 0)
		*port = *port % n->num_ports + 1;
	return node;
}

/* where a fault of packets acts: a cable, a node, or everywhere */
static void write_place(const struct fault *f, char *text, size_t bytes)
{
	const struct sim *sim = f->all->sim;
	uint32_t which = f->plan->which;
	int port, node = nth_cable(sim, which, &port);
	const char *name = sim->topo->node[node].name;

	switch (which % 5) {
	case 0:
		snprintf(text, bytes, "all");
		break;
	case 1:
	case 2:
		snprintf(text, bytes, "link %s:%d", name, port);
		break;
	default:
		snprintf(text, bytes, "node %s", name);
	}
}

/* a switch, or now and then an adapter */
static int victim(const struct fault *f)
{
	uint32_t which = f->plan->which;

	return nth_node(f->all->sim, which % 4 ? TOPO_SWITCH : TOPO_CA, which / 4);
}

static bool write_rule(const struct fault *f, char *text, size_t bytes)
{
	const struct sim *sim = f->all->sim;
	const struct plan_fault *plan = f->plan;
	uint32_t ppm = plan->permille * 1000;
	uint64_t amount = plan->amount;
	int port, node = nth_cable(sim, plan->which, &port);
	char place[80];

	write_place(f, place, sizeof(place));
	switch (plan->kind) {
	case FAULT_DROP:
		snprintf(text, bytes, "%s drop rate=%uppm", place, ppm);
		return true;
	case FAULT_DUPLICATE:
		snprintf(text, bytes, "%s duplicate copies=%u rate=%uppm", place,
			 1 + plan->which % 3, ppm);
		return true;
	case FAULT_DELAY:
		snprintf(text, bytes,
			 "%s delay %" PRIu64 "ns jitter=%" PRIu64 "ns rate=%uppm", place,
			 amount / 2, amount, ppm);
		return true;
	case FAULT_REORDER:
		snprintf(text, bytes,
			 "%s reorder packets=%u time=%" PRIu64 "ns rate=%uppm", place,
			 1 + plan->which % 9, amount, ppm);
		return true;
	case FAULT_CORRUPT:
		snprintf(text, bytes, "%s corrupt crc=%s rate=%uppm", place,
			 plan_spoils_vcrc(plan) ? "bad" : "vcrc", ppm);
		return true;
	case FAULT_RNR:
		snprintf(text, bytes, "%s rnr rate=%uppm", place, ppm);
		return true;
	case FAULT_LINK:
		snprintf(text, bytes, "link %s:%d down", sim->topo->node[node].name,
			 port);
		return true;
	case FAULT_SWITCH:
		node = victim(f);
		if (node >= 0)
			snprintf(text, bytes, "node %s death",
				 sim->topo->node[node].name);
		return node >= 0;
	default:
		return false;
	}
}

static void lay_rule(struct fault *f, bool on)
{
	struct fabric *fab = f->all->sim->fab;
	char text[FLT_TEXT_MAX], err[400] = "";

	if (!on) {
		if (f->rule > 0)
			fab_fault_clear(fab, (uint32_t)f->rule);
		return;
	}
	if (!write_rule(f, text, sizeof(text)))
		return;
	f->rule = fab_fault_add(fab, text,
				f->all->sim->plan->seed * 64 + f->plan->which + 1, err,
				sizeof(err));
	sim_log(f->all->sim, "rule %d: %s %s", f->rule, text, err);
	if (f->rule < 0 && f->rule != -ENOMEM && f->rule != -EBUSY)
		sim_fail(f->all->sim, ORACLE_RECOVERY, "%s: %s", text, err);
}

/* --- processes, memory, time --- */

static void kill_manager(struct fault *f, bool on)
{
	struct sim *sim = f->all->sim;
	uint32_t i = sim->plan->standby ? f->plan->which % 2 : 0;

	if (on) {
		manager_kill(sim->manager[i]);
		sim->manager[i] = NULL;
	} else if (!sim->manager[i]) {
		sim->manager[i] = manager_start(sim, sim->manager_node[i], i ? 1 : 5);
	}
}

static void kill_program(struct fault *f, bool on)
{
	struct sim *sim = f->all->sim;
	struct program *p =
		sim->program[f->plan->which % (uint32_t)sim->plan->num_programs];

	if (on)
		program_kill(p);
	else if (!p->alive)
		program_start(p);
}

/* the power of a node goes: its programs and its manager go with it, and come
 * back when all faults are over */
static void kill_node(struct fault *f, bool on)
{
	struct sim *sim = f->all->sim;
	int node = victim(f);

	if (node < 0) /* no switch here */
		return;
	for (int i = 0; on && i < sim->plan->num_programs; i++)
		if (sim->program[i]->node == node)
			program_kill(sim->program[i]);
	for (int i = 0; on && i < 2; i++) {
		if (sim->manager_node[i] != node)
			continue;
		manager_kill(sim->manager[i]);
		sim->manager[i] = NULL;
	}
	if (sim->topo->node[node].kind == TOPO_SWITCH)
		lay_rule(f, on);
	else
		fab_node_power(sim->fab, node, !on);
}

static void fail_memory(struct fault *f, bool on)
{
	rt_fail_alloc(on ? f->plan->amount : 0);
}

static void jump_clock(struct fault *f, bool on)
{
	if (on)
		rt_sim_jump(f->all->sim->rt, f->plan->amount);
}

static void (*const actions[FAULT_NUM])(struct fault *f, bool on) = {
	[FAULT_DROP] = lay_rule,	[FAULT_DUPLICATE] = lay_rule,
	[FAULT_DELAY] = lay_rule,	[FAULT_REORDER] = lay_rule,
	[FAULT_CORRUPT] = lay_rule,	[FAULT_RNR] = lay_rule,
	[FAULT_LINK] = lay_rule,	[FAULT_SWITCH] = kill_node,
	[FAULT_MANAGER] = kill_manager, [FAULT_PROGRAM] = kill_program,
	[FAULT_ALLOC] = fail_memory,	[FAULT_CLOCK] = jump_clock,
};

/* --- all of them --- */

static void act(struct fault *f, bool on)
{
	if (f->active == on)
		return;
	f->active = on;
	sim_log(f->all->sim, "fault %d, %s: %s", (int)(f - f->all->fault),
		plan_fault_names[f->plan->kind], on ? "begins" : "ends");
	actions[f->plan->kind](f, on);
}

static void begin(struct rt_timer *timer)
{
	act(container_of(timer, struct fault, begin), true);
}

static void end(struct rt_timer *timer)
{
	act(container_of(timer, struct fault, end), false);
}

void faults_start(struct sim *sim)
{
	struct faults *all = calloc(1, sizeof(*all));

	all->sim = sim;
	sim->faults = all;
	for (int i = 0; i < sim->plan->num_faults; i++) {
		struct fault *f = &all->fault[i];
		mono_t at = mono_add(rt_now(sim->rt), sim->plan->fault[i].at_ns);

		f->all = all;
		f->plan = &sim->plan->fault[i];
		rt_timer_init(sim->rt, &f->begin, begin);
		rt_timer_init(sim->rt, &f->end, end);
		if (!f->plan->kept)
			continue;
		rt_timer_arm(&f->begin, at);
		rt_timer_arm(&f->end, mono_add(at, f->plan->for_ns));
	}
}

bool faults_over(const struct sim *sim)
{
	for (int i = 0; i < sim->plan->num_faults; i++)
		if (rt_timer_armed(&sim->faults->fault[i].begin) ||
		    rt_timer_armed(&sim->faults->fault[i].end))
			return false;
	return true;
}

void faults_stop(struct sim *sim)
{
	if (!sim->faults)
		return;
	for (int i = 0; i < sim->plan->num_faults; i++) {
		rt_timer_disarm(&sim->faults->fault[i].begin);
		rt_timer_disarm(&sim->faults->fault[i].end);
		act(&sim->faults->fault[i], false);
	}
	free(sim->faults);
	sim->faults = NULL;
}
