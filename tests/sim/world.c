/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A run, in phases: all is made and the manager brings the subnet up; traffic
 * with faults; the faults end and the subnet must come up again; what was
 * planned is finished, with a probe on every connection; all goes, and
 * nothing may be left.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client.h"
#include "conn.h"
#include "hca/hca.h"
#include "pair.h"
#include "rdma/ib_mad.h"
#include "runtime/sim/rt_sim.h"

#define BOOT_NS	    (60 * NSEC_PER_SEC)
#define RECOVERY_NS (180 * NSEC_PER_SEC)
#define FINISH_NS   (120 * NSEC_PER_SEC)

/* --- what a run tells --- */

static uint64_t mix(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
	return hash ^ hash >> 32;
}

void sim_note(struct sim *sim, uint64_t a, uint64_t b)
{
	uint64_t *digest = &sim->result->digest;

	*digest = mix(mix(mix(*digest, rt_now(sim->rt).ns), a), b);
}

void sim_note_bytes(struct sim *sim, const void *bytes, size_t len)
{
	const uint8_t *at = bytes;
	uint64_t hash = len, word;

	for (; len >= sizeof(word); at += sizeof(word), len -= sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		hash = mix(hash, word);
	}
	word = 0;
	memcpy(&word, at, len);
	sim_note(sim, hash, word);
}

void sim_log(struct sim *sim, const char *fmt, ...)
{
	va_list ap;

	if (!sim->options->verbose)
		return;
	printf("%12.6f ms  ", (double)rt_now(sim->rt).ns / 1e6);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
}

void sim_fail(struct sim *sim, enum oracle oracle, const char *fmt, ...)
{
	struct sim_result *r = sim->result;
	va_list ap;

	r->failed = true;
	r->oracle = (int)oracle;
	if (sim->rt) /* the leak oracle speaks when all is gone */
		r->virtual_ns = rt_now(sim->rt).ns;
	va_start(ap, fmt);
	vsnprintf(r->text, sizeof(r->text), fmt, ap);
	va_end(ap);
	fflush(stdout);
	_exit(1); /* of the child: run_child() reads the result in shared memory */
}

/* --- running --- */

static void on_end(struct rt_timer *timer)
{
	container_of(timer, struct sim, end)->ended = true;
}

/* until @done says so. Return: false when @ns passed first */
static bool run_until(struct sim *sim, uint64_t ns, bool (*done)(struct sim *sim))
{
	rt_timer_arm(&sim->end, mono_add(rt_now(sim->rt), ns));
	sim->ended = false;
	while (!sim->ended && !(done && done(sim))) {
		rt_sim_step(sim->rt);
		sim->result->events++;
		sim_note(sim, 0, 0);
		oracle_event(sim);
	}
	rt_timer_disarm(&sim->end);
	return !sim->ended;
}

/* the first port that has a cable and is not Active */
static bool find_inactive(const struct sim *sim, int *node, int *port)
{
	for (int n = 0; n < sim->topo->num_nodes; n++) {
		const struct ag_node *ag = fab_node(sim->fab, n);

		for (int p = 1; p <= ag->num_ports; p++) {
			if (sim->topo->node[n].port[p].peer_node < 0 ||
			    (ag->port[p].state == WIRE_PORT_ACTIVE &&
			     (ag->sw || ag->port[p].lid)))
				continue;
			*node = n;
			*port = p;
			return true;
		}
	}
	return false;
}

static bool recovered(struct sim *sim)
{
	int node, port, masters = 0;

	for (int i = 0; i < sim->plan->num_programs; i++)
		if (!sim->program[i]->alive)
			return false;
	for (int i = 0; i < 2; i++)
		masters += manager_is_master(sim->manager[i]);
	return masters == 1 && !find_inactive(sim, &node, &port) && oracle_tables(sim) &&
	       !sim_sabotage(sim, ORACLE_RECOVERY);
}

static void expect_up(struct sim *sim, uint64_t ns, const char *when)
{
	int node = 0, port = 0;

	if (run_until(sim, ns, recovered))
		return;
	if (!find_inactive(sim, &node, &port))
		sim_fail(sim, ORACLE_RECOVERY,
			 "%s all ports are Active, but masters are %d and %d, tables %s",
			 when, manager_is_master(sim->manager[0]),
			 manager_is_master(sim->manager[1]),
			 oracle_tables(sim) ? "whole" : "have gaps");
	sim_fail(sim, ORACLE_RECOVERY, "%s %s:%d is not Active but in state %u, LID %u",
		 when, sim->topo->node[node].name, port,
		 fab_node(sim->fab, node)->port[port].state,
		 fab_node(sim->fab, node)->port[port].lid);
}

/* --- making --- */

static int nth_adapter(const struct sim *sim, uint32_t which)
{
	uint32_t n = 0;
	int at = -1;

	for (int i = 0; i < sim->topo->num_nodes; i++)
		n += sim->topo->node[i].kind == TOPO_CA;
	which %= n;
	do
		which -= sim->topo->node[++at].kind == TOPO_CA && which != UINT32_MAX;
	while (which != UINT32_MAX);
	return at;
}

static void must(struct sim *sim, int ret, const char *what)
{
	if (ret)
		sim_fail(sim, ORACLE_RECOVERY, "%s: %d", what, ret);
}

static void make_fabric(struct sim *sim)
{
	char err[200] = "";
	int ret = topo_load(sim->plan->topology, "sim", &sim->topo, err, sizeof(err));

	if (ret)
		sim_fail(sim, ORACLE_RECOVERY, "%s", err);
	must(sim, fab_create(sim->rt, sim->topo, &sim->fab), "fabric");
	must(sim, ib_mad_init(sim->rt), "MAD layer");
	must(sim, hca_set_create(sim->rt, sim->fab, &sim->adapters), "adapters");
	sim->hca = calloc((size_t)sim->topo->num_nodes, sizeof(*sim->hca));
	for (int i = 0; i < sim->topo->num_nodes; i++)
		if (sim->topo->node[i].kind == TOPO_CA)
			must(sim, hca_create(sim->adapters, i, &sim->hca[i]),
			     "adapter");
}

static void make_programs(struct sim *sim)
{
	for (int i = 0; i < sim->plan->num_programs; i++) {
		struct program *p = calloc(1, sizeof(*p));

		sim->program[i] = p;
		p->sim = sim;
		p->index = i;
		p->node = nth_adapter(sim, sim->plan->program_node[i]);
		p->rng.state = sim->plan->seed * 1000 + (uint64_t)i;
		program_init(p);
		program_start(p);
	}
}

static void make_managers(struct sim *sim)
{
	sim->manager_node[0] = nth_adapter(sim, 0);
	sim->manager_node[1] = nth_adapter(sim, 1);
	sim->manager[0] = manager_start(sim, sim->manager_node[0], 5);
	if (sim->plan->standby)
		sim->manager[1] = manager_start(sim, sim->manager_node[1], 1);
}

static void expect_lids(struct sim *sim)
{
	for (int n = 0; n < sim->topo->num_nodes; n++) {
		const struct ag_port *port = &fab_node(sim->fab, n)->port[1];

		if (sim->hca[n] && port->state == WIRE_PORT_ACTIVE && port->lmc != sim->plan->lmc)
			sim_fail(sim, ORACLE_PATHS, "%s has LMC %u, not %u",
				 sim->topo->node[n].name, port->lmc, sim->plan->lmc);
	}
}

/* --- the phases --- */

/* what memory failures or deaths took away comes back, sooner or later */
static void restore(struct sim *sim)
{
	rt_fail_alloc(0);
	for (int i = 0; i < sim->plan->num_programs; i++)
		if (!sim->program[i]->alive)
			program_start(sim->program[i]);
	if (!sim->manager[0])
		sim->manager[0] = manager_start(sim, sim->manager_node[0], 5);
	if (sim->plan->standby && !sim->manager[1])
		sim->manager[1] = manager_start(sim, sim->manager_node[1], 1);
}

static bool traffic_over(struct sim *sim)
{
	return rt_now(sim->rt).ns > sim->traffic_began.ns + sim->plan->window_ns &&
	       faults_over(sim);
}

static void run_traffic(struct sim *sim)
{
	sim->traffic_began = rt_now(sim->rt);
	conns_init(sim);
	clients_start(sim);
	groups_start(sim);
	rds_start(sim);
	pairs_start(sim);
	regs_start(sim);
	sdps_start(sim);
	faults_start(sim);
	run_until(sim, 3600 * NSEC_PER_SEC, traffic_over);
	faults_stop(sim);
	restore(sim);
	expect_up(sim, RECOVERY_NS, "after the last fault");
	run_until(sim, 2 * NSEC_PER_SEC, NULL);
	sim->calm = true;
	conns_begin_calm(sim);
	clients_begin_calm(sim);
	groups_begin_calm(sim);
	rds_begin_calm(sim);
	pairs_begin_calm(sim);
	regs_begin_calm(sim);
	sdps_begin_calm(sim);
}

static bool all_done(struct sim *sim)
{
	return conns_done(sim) && clients_done(sim) && groups_done(sim) && rds_done(sim) &&
	       pairs_done(sim) && regs_done(sim) && sdps_done(sim);
}

static void finish(struct sim *sim)
{
	char text[300];

	if (!run_until(sim, FINISH_NS, all_done)) {
		conns_describe_undone(sim, text, sizeof(text));
		sim_fail(sim, ORACLE_RELIABLE, "not finished:%s%s%s%s%s%s%s", text,
			 clients_done(sim) ? "" : " clients",
			 groups_done(sim) ? "" : " groups",
			 rds_done(sim) ? "" : " reliable datagrams",
			 pairs_done(sim) ? "" : " pairs",
			 regs_done(sim) ? "" : " registration",
			 sdps_done(sim) ? "" : " SDP");
	}
	fab_fold(sim->fab);
	oracle_counters(sim);
	oracle_keys(sim);
	run_until(sim, NSEC_PER_SEC, NULL); /* who got one says so */
	if (!oracle_tables(sim))
		sim_fail(sim, ORACLE_TABLES, "a LID is not reached from everywhere");
	oracle_guards(sim);
}

static void note_counters(struct sim *sim)
{
	for (int n = 0; n < sim->topo->num_nodes; n++) {
		const struct ag_node *node = fab_node(sim->fab, n);

		for (int p = 1; p <= node->num_ports; p++)
			sim_note_bytes(sim, node->port[p].count.raw,
				       sizeof(node->port[p].count.raw));
	}
}

static void take_down(struct sim *sim)
{
	fab_fold(sim->fab);
	note_counters(sim);
	sim->result->virtual_ns = rt_now(sim->rt).ns;
	sim->ending = true;
	conns_exit(sim);
	rds_stop(sim);
	pairs_stop(sim);
	regs_stop(sim);
	sdps_stop(sim);
	oracle_losses(sim);
	groups_stop(sim);
	clients_stop(sim);
	for (int i = 0; i < sim->plan->num_programs; i++)
		program_kill(sim->program[i]);
	for (int i = 0; i < sim->plan->num_programs; i++)
		free(sim->program[i]);
	groups_free(sim);
	windows_free_pages();
	oracle_numbers(sim);
	manager_kill(sim->manager[0]);
	manager_kill(sim->manager[1]);
	for (int i = 0; i < sim->topo->num_nodes; i++)
		if (sim->hca[i])
			hca_destroy(sim->hca[i]);
	free(sim->hca);
	hca_set_destroy(sim->adapters);
	ib_mad_cleanup(sim->rt);
	fab_destroy(sim->fab);
	topo_free(sim->topo);
	rt_sim_destroy(sim->rt);
	sim->rt = NULL;
}

void sim_run(const struct sim_options *options, struct sim_result *result)
{
	static struct plan plan;
	struct sim sim = {.plan = &plan, .options = options, .result = result};

	memset(result, 0, sizeof(*result));
	result->oracle = -1;
	plan_make(&plan, options->seed, options->kind);
	if (options->keep_faults)
		plan_keep(&plan, options->keep_faults);
	if (options->max_ops)
		plan_trim(&plan, options->max_ops);
	if (options->verbose)
		plan_print(&plan);
	oracle_baseline(&sim);
	if (rt_sim_create(options->seed, &sim.rt))
		abort();
	rt_timer_init(sim.rt, &sim.end, on_end);
	make_fabric(&sim);
	make_managers(&sim);
	make_programs(&sim);
	expect_up(&sim, BOOT_NS, "after the start");
	expect_lids(&sim);
	run_traffic(&sim);
	finish(&sim);
	take_down(&sim);
	oracle_leaks(&sim);
}
