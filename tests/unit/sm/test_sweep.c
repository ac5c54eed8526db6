/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The manager against a subnet in memory: sweeps, losses, election. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>
#include <cmocka.h>

#include "lab.h"

static void assert_all_active(const struct lab *lab)
{
	for (uint32_t i = 0; i < lab->n_nodes; i++)
		for (int p = 1; p <= lab->nodes[i].info.nr_ports; p++)
			if (lab->nodes[i].peer[p])
				assert_int_equal(lab->nodes[i].port[p].state,
						 WIRE_PORT_ACTIVE);
}

/* Follow the tables in the switches themselves, not the manager's idea. */
static void assert_reaches(const struct lab *lab, int from, int to)
{
	const struct lab_node *n = lab->nodes[from].peer[1];
	uint16_t lid = lab->nodes[to].port[1].lid;

	for (int hops = 0; hops < 4; hops++) {
		uint8_t out = n->lft[lid];

		assert_int_not_equal(out, ROUTE_NO_PORT);
		n = n->peer[out];
		if (n == &lab->nodes[to])
			return;
	}
	fail_msg("node %d does not reach node %d", from, to);
}

static void assert_connected(const struct lab *lab)
{
	for (int i = 0; i < 4; i++)
		for (int j = 0; j < 4; j++)
			if (i != j)
				assert_reaches(lab, i, j);
}

static void test_subnet_comes_up(void **state)
{
	struct lab *lab = lab_new();
	struct sm_summary s;

	lab_run(lab);
	assert_int_equal(lab->ups, 1);
	assert_all_active(lab);
	assert_connected(lab);
	sm_summarise(lab->sm, &s);
	assert_int_equal(s.switches, 2);
	assert_int_equal(s.cas, 4);
	assert_int_equal(s.links, 6);
	assert_int_equal(s.state, WIRE_SM_MASTER);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(lab->nodes[i].port[1].sm_lid, lab->nodes[0].port[1].lid);
		assert_int_equal(lab->nodes[i].port[1].neighbor_mtu, WIRE_MTU_4096);
	}
	lab_free(lab);
}

static void test_losses_are_made_good(void **state)
{
	struct lab *lab = lab_new();

	lab->drop_every = 5;
	lab->opt.retries = 10;
	lab_run(lab);
	assert_int_equal(lab->ups, 1);
	assert_all_active(lab);
	assert_connected(lab);
	lab_free(lab);
}

static void test_a_mute_node_is_reported(void **state)
{
	struct lab *lab = lab_new();

	lab->nodes[3].mute = true;
	lab_run(lab);
	assert_int_equal(lab->ups, 0);
	assert_int_equal(lab->errors, 1);
	assert_reaches(lab, 0, 2);
	lab_free(lab);
}

/* ask for a sweep; it has ended within a tenth of a millisecond */
static bool sweeps_at_once(struct lab *lab)
{
	uint64_t sweeps = lab->sm->sweeps;

	sm_resweep(lab->sm);
	rt_sim_run_for(lab->rt, NSEC_PER_MSEC / 10);
	return lab->sm->sweeps > sweeps;
}

/* Two changes are acted upon at once. After that a link that flaps each 10 ms costs a sweep
 * each 100 ms, the last change is not forgotten, and a second of peace ends all that. */
static void test_a_link_that_flaps_costs_few_sweeps(void **state)
{
	struct lab *lab = lab_new();
	uint64_t sweeps;

	lab_run(lab);
	rt_sim_run_for(lab->rt, 2 * NSEC_PER_SEC);
	assert_true(sweeps_at_once(lab));
	assert_true(sweeps_at_once(lab));
	sweeps = lab->sm->sweeps;
	for (int i = 0; i < 1000; i++) {
		sm_resweep(lab->sm);
		rt_sim_run_for(lab->rt, 10 * NSEC_PER_MSEC);
	}
	assert_in_range(lab->sm->sweeps - sweeps, 50, 110);
	rt_sim_run_for(lab->rt, NSEC_PER_SEC);
	lab_link_state(&lab->nodes[3], 1, WIRE_PORT_INIT);
	lab_link_state(&lab->nodes[5], 2, WIRE_PORT_INIT);
	sm_resweep(lab->sm);
	rt_sim_run_for(lab->rt, NSEC_PER_SEC / 2);
	assert_int_equal(lab->nodes[3].port[1].state, WIRE_PORT_ACTIVE);
	rt_sim_run_for(lab->rt, 2 * NSEC_PER_SEC);
	assert_true(sweeps_at_once(lab));
	assert_true(sweeps_at_once(lab));
	lab_free(lab);
}

/* A third switch says of its port 5 that the port it looks at is one whose cable
 * leads to the second switch. */
static void test_a_port_that_answers_on_two_cables(void **state)
{
	struct lab *lab = lab_new();
	struct lab_node *s1 = &lab->nodes[4], *s2 = &lab->nodes[5];
	struct lab_node *liar = lab_node(lab, WIRE_NODE_SWITCH, 8);

	lab_link_state(s1, 7, WIRE_PORT_DOWN);
	lab_link_state(s2, 7, WIRE_PORT_DOWN);
	s1->peer[7] = s2->peer[7] = NULL;
	lab_cable(s2, 3, liar, 3);
	lab_link_state(liar, 5, WIRE_PORT_INIT);
	liar->peer[5] = s1;
	liar->peer_port[5] = 8;
	lab_run(lab);
	assert_int_equal(lab->ups, 1);
	assert_connected(lab);
	assert_int_equal(s1->port[8].state, WIRE_PORT_ACTIVE);
	assert_int_equal(s2->port[8].state, WIRE_PORT_ACTIVE);
	assert_int_equal(liar->port[5].state, WIRE_PORT_INIT); /* who came first stays */
	lab_free(lab);
}

static void test_second_sweep_sets_nothing(void **state)
{
	struct lab *lab = lab_new();
	uint32_t sets[LAB_NODES];

	lab_run(lab);
	for (uint32_t i = 0; i < lab->n_nodes; i++)
		sets[i] = lab->nodes[i].n_sets;
	sm_resweep(lab->sm);
	assert_true(rt_sim_run(lab->rt, 100000));
	assert_int_equal(lab->ups, 2);
	for (uint32_t i = 0; i < lab->n_nodes; i++)
		assert_int_equal(lab->nodes[i].n_sets, sets[i]);
	lab_free(lab);
}

static void send_trap(struct lab *lab, uint16_t number, uint16_t lid)
{
	struct wire_smp smp = {
		.mad = {.base_version = 1, .mgmt_class = WIRE_CLASS_SM_LID,
			.class_version = 1, .method = WIRE_METHOD_TRAP,
			.attr_id = WIRE_SMP_NOTICE, .tid = 99},
	};
	struct wire_notice n = {.is_generic = true, .type = WIRE_NOTICE_URGENT,
				.producer = WIRE_PRODUCER_SWITCH, .trap_number = number,
				.issuer_lid = lid};
	struct sm_addr from = {.lid = lid};
	uint8_t mad[WIRE_MAD_BYTES] = {0};

	wire_smp_encode(&smp, mad);
	wire_smp_notice_encode(&n, mad + WIRE_SMP_DATA_OFFSET);
	sm_receive(lab->sm, SM_AGENT_LID, 0, &from, mad, sizeof(mad));
	assert_true(rt_sim_run(lab->rt, 100000));
}

static void test_trap_128_reroutes(void **state)
{
	struct lab *lab = lab_new();
	struct lab_node *s1 = &lab->nodes[4], *s2 = &lab->nodes[5];

	lab_run(lab);
	lab_link_state(s1, 7, WIRE_PORT_DOWN);
	lab_link_state(s2, 7, WIRE_PORT_DOWN);
	send_trap(lab, WIRE_TRAP_LINK_STATE, s1->port[0].lid);
	assert_int_equal(lab->ups, 2);
	assert_connected(lab);
	for (int i = 2; i < 4; i++)
		assert_int_equal(s1->lft[lab->nodes[i].port[1].lid], 8);
	lab_free(lab);
}

static void test_light_sweep_sees_a_change(void **state)
{
	struct lab *lab = lab_new();

	lab->opt.sweep_ns = 10 * NSEC_PER_SEC;
	assert_int_equal(sm_create(lab->rt, &lab->io, &lab->opt, &lab->sm), 0);
	sm_start(lab->sm);
	rt_sim_run_for(lab->rt, 25 * NSEC_PER_SEC);
	assert_int_equal(lab->ups, 1); /* two light sweeps, nothing new */
	lab->nodes[5].sw.port_state_change = true;
	rt_sim_run_for(lab->rt, 10 * NSEC_PER_SEC);
	assert_int_equal(lab->ups, 2);
	assert_false(lab->nodes[5].sw.port_state_change);
	lab_free(lab);
}

/* The manager's own switch loses power: no trap says so, nor that it is back. */
static void test_the_own_switch_comes_back(void **state)
{
	struct lab *lab = lab_new();
	struct lab_node *self = lab->nodes;

	lab->opt.sweep_ns = 3600 * NSEC_PER_SEC;
	assert_int_equal(sm_create(lab->rt, &lab->io, &lab->opt, &lab->sm), 0);
	sm_start(lab->sm);
	rt_sim_run_for(lab->rt, 5 * NSEC_PER_SEC);
	assert_int_equal(lab->ups, 1);
	lab_link_state(self, 1, WIRE_PORT_INIT);
	rt_sim_run_for(lab->rt, 2 * NSEC_PER_SEC);
	assert_int_equal(lab->ups, 2);
	assert_int_equal(self->port[1].state, WIRE_PORT_ACTIVE);
	lab_free(lab);
}

static void test_lids_survive_a_restart(void **state)
{
	char path[] = "/tmp/softib-lids-XXXXXX";
	struct lab *lab = lab_new();
	uint16_t lids[4];

	close(mkstemp(path));
	lab->opt.lid_cache = path;
	lab_run(lab);
	for (int i = 0; i < 4; i++)
		lids[i] = lab->nodes[i].port[1].lid;
	sm_destroy(lab->sm);
	/* all adapters forget theirs, and one claims another's */
	for (int i = 0; i < 4; i++)
		lab->nodes[i].port[1].lid = i == 1 ? lids[2] : 0;
	lab_run(lab);
	for (int i = 0; i < 4; i++)
		assert_int_equal(lab->nodes[i].port[1].lid, lids[i]);
	unlink(path);
	lab_free(lab);
}

static void test_lmc_aligns(void **state)
{
	struct lab *lab = lab_new();

	lab->opt.lmc = 2;
	lab_run(lab);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(lab->nodes[i].port[1].lid % 4, 0);
		assert_int_equal(lab->nodes[i].port[1].lmc, 2);
	}
	assert_int_equal(lab->nodes[4].port[0].lmc, 0);
	lab_free(lab);
}

static void test_steps_aside_for_a_master(void **state)
{
	struct lab *lab = lab_new();
	struct wire_sm_info other = {.guid = 0x201, .sm_key = 1, .priority = 3, .state = WIRE_SM_MASTER};

	lab->other_sm = &other;
	lab->nodes[1].port[1].cap_mask = WIRE_PORT_CAP_IS_SM;
	assert_int_equal(sm_create(lab->rt, &lab->io, &lab->opt, &lab->sm), 0);
	sm_start(lab->sm);
	rt_sim_run_for(lab->rt, 60 * NSEC_PER_SEC);
	assert_int_equal(lab->standbys, 1);
	assert_int_equal(lab->ups, 0);
	for (uint32_t i = 0; i < lab->n_nodes; i++)
		assert_int_equal(lab->nodes[i].n_sets, 0); /* hands off */
	/* the master dies: three polls, then it takes over */
	lab->nodes[1].mute = true;
	rt_sim_run_for(lab->rt, 60 * NSEC_PER_SEC);
	assert_int_equal(lab->errors, 1); /* up, but the dead do not answer */
	assert_reaches(lab, 0, 2);
	lab_free(lab);
}

static void test_weaker_newcomer_does_not_stop_us(void **state)
{
	struct lab *lab = lab_new();
	struct wire_sm_info other = {.guid = 0x201, .sm_key = 1, .priority = 0, .state = WIRE_SM_STANDBY};

	lab->opt.priority = 5;
	lab->other_sm = &other;
	lab->nodes[1].port[1].cap_mask = WIRE_PORT_CAP_IS_SM;
	lab_run(lab);
	assert_int_equal(lab->ups, 1);
	lab_free(lab);
}

static void test_stronger_standby_gets_the_subnet(void **state)
{
	struct lab *lab = lab_new();
	struct wire_sm_info other = {.guid = 0x201, .sm_key = 1, .priority = 9, .state = WIRE_SM_STANDBY};

	lab->other_sm = &other;
	lab->nodes[1].port[1].cap_mask = WIRE_PORT_CAP_IS_SM;
	assert_int_equal(sm_create(lab->rt, &lab->io, &lab->opt, &lab->sm), 0);
	sm_start(lab->sm);
	rt_sim_run_for(lab->rt, NSEC_PER_SEC);
	assert_int_equal(lab->ups, 1); /* it finishes what it began */
	assert_int_equal(lab->standbys, 1);
	lab_free(lab);
}

/* Two subnets became one: the weaker master, whose port the other has set up,
 * sees it at its next light sweep, hands over, and keeps its hands off. */
static void test_weaker_master_gives_up(void **state)
{
	struct lab *lab = lab_new();
	struct wire_sm_info other = {.guid = 0x201, .sm_key = 1, .priority = 9, .state = WIRE_SM_MASTER};

	lab->opt.sweep_ns = 10 * NSEC_PER_SEC;
	assert_int_equal(sm_create(lab->rt, &lab->io, &lab->opt, &lab->sm), 0);
	sm_start(lab->sm);
	rt_sim_run_for(lab->rt, NSEC_PER_SEC);
	assert_int_equal(lab->ups, 1);
	lab->other_sm = &other;
	lab->nodes[1].port[1].cap_mask = WIRE_PORT_CAP_IS_SM;
	lab->nodes[0].port[1].sm_lid = lab->nodes[1].port[1].lid;
	rt_sim_run_for(lab->rt, 10 * NSEC_PER_SEC);
	assert_int_equal(lab->standbys, 1);
	assert_int_equal(lab->handovers, 1);
	lab_free(lab);
}

/* A manager with another key is none of this subnet: neither a master nor a standby,
 * however strong, gets it. */
static void test_another_key_is_anothers(void **state)
{
	for (uint8_t s = WIRE_SM_DISCOVERING; s <= WIRE_SM_MASTER; s++) {
		struct lab *lab = lab_new();
		struct wire_sm_info other = {.guid = 0x201, .sm_key = 7, .priority = 9, .state = s};

		lab->other_sm = &other;
		lab->nodes[1].port[1].cap_mask = WIRE_PORT_CAP_IS_SM;
		assert_int_equal(sm_create(lab->rt, &lab->io, &lab->opt, &lab->sm), 0);
		sm_start(lab->sm);
		rt_sim_run_for(lab->rt, NSEC_PER_SEC);
		assert_int_equal(lab->ups, 1);
		assert_int_equal(lab->standbys, 0);
		assert_int_equal(lab->handovers, 0);
		lab_free(lab);
	}
}

static void receive_handover(struct lab *lab, uint64_t sm_key, uint8_t state)
{
	struct wire_sm_info by = {.guid = 0x201, .sm_key = sm_key, .state = state};
	struct wire_smp smp = {
		.mad = {.base_version = WIRE_MAD_BASE_VERSION, .mgmt_class = WIRE_CLASS_SM_LID,
			.class_version = WIRE_SMP_CLASS_VERSION, .method = WIRE_METHOD_SET,
			.attr_id = WIRE_SMP_SM_INFO, .attr_mod = WIRE_SM_HANDOVER}};
	uint8_t mad[WIRE_MAD_BYTES] = {0};
	struct sm_addr from = {.lid = lab->nodes[1].port[1].lid};

	wire_smp_encode(&smp, mad);
	wire_sm_info_encode(&by, mad + WIRE_SMP_DATA_OFFSET);
	sm_receive(lab->sm, SM_AGENT_LID, 0, &from, mad, sizeof(mad));
}

/* What the weaker master wrote into a switch is not taken for our own. */
static void test_another_masters_tables_are_replaced(void **state)
{
	struct lab *lab = lab_new();
	struct lab_node *sw;

	lab_run(lab);
	sw = &lab->nodes[4];
	memset(sw->lft, ROUTE_NO_PORT, sizeof(sw->lft));
	sw->port[0].sm_lid = lab->nodes[1].port[1].lid;
	sm_resweep(lab->sm);
	assert_true(rt_sim_run(lab->rt, 100000));
	assert_int_equal(lab->ups, 2);
	assert_reaches(lab, 0, 2);
	assert_reaches(lab, 2, 0);
	/* a late write of the other, after our sweep: its handover says so */
	memset(sw->lft, ROUTE_NO_PORT, sizeof(sw->lft));
	receive_handover(lab, 7, WIRE_SM_MASTER); /* a stranger's, and no master's */
	receive_handover(lab, 1, WIRE_SM_STANDBY);
	assert_true(rt_sim_run(lab->rt, 100000));
	assert_int_equal(lab->ups, 2);
	receive_handover(lab, 1, WIRE_SM_MASTER);
	assert_true(rt_sim_run(lab->rt, 100000));
	assert_int_equal(lab->ups, 3);
	assert_reaches(lab, 0, 2);
	lab_free(lab);
}

/* A refusal's PortInfo is not the port's: the link is finished next time. */
static void test_a_refused_port_is_set_up_later(void **state)
{
	struct lab *lab = lab_new();

	lab->opt.sweep_ns = 10 * NSEC_PER_SEC;
	lab->nodes[2].refuses = 3;
	assert_int_equal(sm_create(lab->rt, &lab->io, &lab->opt, &lab->sm), 0);
	sm_start(lab->sm);
	rt_sim_run_for(lab->rt, 5 * NSEC_PER_SEC);
	assert_int_not_equal(lab->nodes[2].port[1].state, WIRE_PORT_ACTIVE);
	rt_sim_run_for(lab->rt, 10 * NSEC_PER_SEC);
	assert_int_equal(lab->nodes[2].port[1].state, WIRE_PORT_ACTIVE);
	lab_free(lab);
}

/* A node that did not answer is asked again, though no link has changed. */
static void test_who_was_mute_joins_later(void **state)
{
	struct lab *lab = lab_new();

	lab->opt.sweep_ns = 10 * NSEC_PER_SEC;
	lab->nodes[3].mute = true;
	assert_int_equal(sm_create(lab->rt, &lab->io, &lab->opt, &lab->sm), 0);
	sm_start(lab->sm);
	rt_sim_run_for(lab->rt, 5 * NSEC_PER_SEC);
	assert_int_equal(lab->errors, 1);
	lab->nodes[3].mute = false;
	rt_sim_run_for(lab->rt, 10 * NSEC_PER_SEC);
	assert_int_equal(lab->ups, 1);
	assert_reaches(lab, 0, 3);
	lab_free(lab);
}

static void test_options_are_checked(void **state)
{
	struct lab *lab = lab_new();

	lab->opt.priority = 16;
	assert_int_equal(sm_create(lab->rt, &lab->io, &lab->opt, &lab->sm), -EINVAL);
	lab->opt.priority = 0;
	lab->opt.lmc = 8;
	assert_int_equal(sm_create(lab->rt, &lab->io, &lab->opt, &lab->sm), -EINVAL);
	lab_free(lab);
}

/* Whatever allocation fails, the manager neither crashes nor hangs. */
static void test_memory_runs_out(void **state)
{
	for (uint64_t nth = 1; nth < 400; nth += 3) {
		struct lab *lab = lab_new();

		rt_fail_alloc(nth);
		if (!sm_create(lab->rt, &lab->io, &lab->opt, &lab->sm)) {
			sm_start(lab->sm);
			assert_true(rt_sim_run(lab->rt, 100000));
		}
		rt_fail_alloc(0);
		lab_free(lab);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_subnet_comes_up),
		cmocka_unit_test(test_losses_are_made_good),
		cmocka_unit_test(test_a_mute_node_is_reported),
		cmocka_unit_test(test_a_link_that_flaps_costs_few_sweeps),
		cmocka_unit_test(test_a_port_that_answers_on_two_cables),
		cmocka_unit_test(test_second_sweep_sets_nothing),
		cmocka_unit_test(test_trap_128_reroutes),
		cmocka_unit_test(test_light_sweep_sees_a_change),
		cmocka_unit_test(test_the_own_switch_comes_back),
		cmocka_unit_test(test_lids_survive_a_restart),
		cmocka_unit_test(test_lmc_aligns),
		cmocka_unit_test(test_steps_aside_for_a_master),
		cmocka_unit_test(test_weaker_newcomer_does_not_stop_us),
		cmocka_unit_test(test_stronger_standby_gets_the_subnet),
		cmocka_unit_test(test_another_key_is_anothers),
		cmocka_unit_test(test_weaker_master_gives_up),
		cmocka_unit_test(test_another_masters_tables_are_replaced),
		cmocka_unit_test(test_who_was_mute_joins_later),
		cmocka_unit_test(test_a_refused_port_is_set_up_later),
		cmocka_unit_test(test_options_are_checked),
		cmocka_unit_test(test_memory_runs_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
