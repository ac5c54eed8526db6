/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Management packets through the fabric: directed and LID routes, traps. */
#include "net.h"

#include "agents/directed_route.h"
#include "wire/cm.h"

enum { S3 = S2 + 1 };

/* n0 - s2 - s3 - n1: ports 1 to the node, 2 between the switches */
static struct net *line(bool active)
{
	struct net *net = calloc(1, sizeof(*net));

	net_add(net, TOPO_CA, 1);
	net_add(net, TOPO_CA, 1);
	net_add(net, TOPO_SWITCH, 4);
	net_add(net, TOPO_SWITCH, 4);
	net_cable(net, N0, 1, S2, 1);
	net_cable(net, S2, 2, S3, 2);
	net_cable(net, S3, 1, N1, 1);
	net_start(net);
	if (!active)
		return net;
	net_activate(net);
	for (int sw = S2; sw <= S3; sw++) {
		net_lft(net, sw, N0 + 1, sw == S2 ? 1 : 2);
		net_lft(net, sw, N1 + 1, sw == S2 ? 2 : 1);
		net_lft(net, sw, S2 + 1, sw == S2 ? 0 : 2);
		net_lft(net, sw, S3 + 1, sw == S2 ? 2 : 0);
	}
	return net;
}

static void end(struct net *net)
{
	net_stop(net);
	free(net);
}

struct route {
	uint8_t hops;
	uint8_t path[8]; /* from [1] */
	uint16_t dr_slid, dr_dlid; /* 0: permissive */
};

static void get(uint8_t *mad, const struct route *r, uint16_t attr, uint32_t mod)
{
	struct wire_smp smp = {
		.mad = {.base_version = 1, .mgmt_class = WIRE_CLASS_SM_DIRECT, .class_version = 1,
			.method = WIRE_METHOD_GET, .tid = 77, .attr_id = attr, .attr_mod = mod},
		.hop_count = r->hops,
		.dr_slid = r->dr_slid ? r->dr_slid : WIRE_LID_PERMISSIVE,
		.dr_dlid = r->dr_dlid ? r->dr_dlid : WIRE_LID_PERMISSIVE,
	};

	memcpy(smp.initial_path, r->path, sizeof(r->path));
	memset(mad, 0, WIRE_MAD_BYTES);
	wire_smp_encode(&smp, mad);
}

/* as a CA's SMI sends. Return: the answer that came back, or NULL */
static const uint8_t *ask(struct net *net, const struct route *r, uint16_t lid, uint16_t attr)
{
	struct ag_dr_at at = {false, 1, 0};
	uint8_t mad[WIRE_MAD_BYTES], out;
	int before = net->sink[N0].packets;

	get(mad, r, attr, 0);
	assert_int_equal(ag_dr_send(&at, mad, &out), lid ? AG_DR_LID_ROUTE : AG_DR_FORWARD);
	net_send_mad(net, N0, lid ? lid : WIRE_LID_PERMISSIVE, 0, mad);
	assert_int_equal(net->sink[N0].packets, before); /* answered later */
	rt_sim_run(net->rt, 100);
	if (net->sink[N0].packets == before)
		return NULL;
	assert_int_equal(net->sink[N0].packets, before + 1);
	return net_last_mad(net, N0);
}

static uint64_t answered_guid(const uint8_t *mad)
{
	struct wire_node_info info;
	struct wire_smp smp;

	assert_non_null(mad);
	wire_smp_decode(mad, WIRE_MAD_BYTES, &smp);
	assert_int_equal(smp.mad.method, WIRE_METHOD_GET_RESP);
	assert_int_equal(smp.mad.status, 0);
	assert_int_equal(smp.mad.tid, 77);
	assert_true(smp.direction);
	wire_node_info_decode(mad + WIRE_SMP_DATA_OFFSET, WIRE_SMP_DATA_BYTES, &info);
	return info.node_guid;
}

/* no LID is set and every port is Init: as a manager finds a fabric */
static void directed_out_and_back(void **state)
{
	struct net *net = line(false);
	struct wire_node_info info;
	const uint8_t *mad;

	mad = ask(net, &(struct route){1, {0, 1}}, 0, WIRE_SMP_NODE_INFO);
	assert_int_equal(answered_guid(mad), fab_node(net->fab, S2)->guid);
	wire_node_info_decode(mad + WIRE_SMP_DATA_OFFSET, WIRE_SMP_DATA_BYTES, &info);
	assert_int_equal(info.local_port, 1);
	assert_int_equal(mad[4], 0x80); /* D */
	assert_int_equal(mad[6], 1);	/* hop pointer: the asker's SMI takes the last step */
	mad = ask(net, &(struct route){2, {0, 1, 2}}, 0, WIRE_SMP_NODE_INFO);
	assert_int_equal(answered_guid(mad), fab_node(net->fab, S3)->guid);
	wire_node_info_decode(mad + WIRE_SMP_DATA_OFFSET, WIRE_SMP_DATA_BYTES, &info);
	assert_int_equal(info.local_port, 2);
	end(net);
}

/* to a CA: its adapter's SMI gets it; without an adapter its agents answer */
static void directed_to_a_node(void **state)
{
	struct net *net = line(false);
	struct route to_n1 = {3, {0, 1, 2, 1}};
	const uint8_t *mad = ask(net, &to_n1, 0, WIRE_SMP_NODE_INFO);
	struct wire_smp smp;

	assert_null(mad);
	assert_int_equal(net->sink[N1].packets, 1);
	wire_smp_decode(net_last_mad(net, N1), WIRE_MAD_BYTES, &smp);
	assert_int_equal(smp.hop_pointer, 3);
	assert_int_equal(smp.return_path[1], 1);
	assert_int_equal(smp.return_path[2], 2);
	fab_attach(net->fab, N1, 1, NULL);
	mad = ask(net, &to_n1, 0, WIRE_SMP_NODE_INFO);
	assert_int_equal(answered_guid(mad), fab_node(net->fab, N1)->guid);
	end(net);
}

static void directed_astray(void **state)
{
	static const struct route wrong[] = {
		{2, {0, 1, 3}},	      /* no cable */
		{2, {0, 1, 9}},	      /* no such port */
		{2, {0, 1, 0}},	      /* port 0 is no way out */
		{4, {0, 1, 2, 1, 1}}, /* through a CA */
	};
	struct net *net = line(false);

	fab_attach(net->fab, N1, 1, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_null(ask(net, &wrong[i], 0, WIRE_SMP_NODE_INFO));
	assert_int_equal(net_count(net, S2, 3, AG_DISCARD_INACTIVE), 1);
	end(net);
}

static void directed_ports_that_are_down(void **state)
{
	struct net *net = line(false);

	fab_link_set(net->fab, S2, 2, false);
	assert_null(ask(net, &(struct route){2, {0, 1, 2}}, 0, WIRE_SMP_NODE_INFO));
	assert_non_null(ask(net, &(struct route){1, {0, 1}}, 0, WIRE_SMP_NODE_INFO));
	end(net);
}

/* 14.2.2: LID routed to s2 (LID 3), directed from there to s3 */
static void combined_route(void **state)
{
	struct net *net = line(true);
	const uint8_t *mad;

	mad = ask(net, &(struct route){1, {0, 2}, .dr_slid = N0 + 1}, S2 + 1, WIRE_SMP_NODE_INFO);
	assert_int_equal(answered_guid(mad), fab_node(net->fab, S3)->guid);
	/* the same to s3 (LID 4), which is one LID routed hop further */
	mad = ask(net, &(struct route){1, {0, 2}, .dr_slid = N0 + 1}, S3 + 1, WIRE_SMP_NODE_INFO);
	assert_int_equal(answered_guid(mad), fab_node(net->fab, S2)->guid);
	end(net);
}

static const uint8_t *ask_lid(struct net *net, uint16_t lid, uint32_t qpn, uint8_t cls,
			      uint16_t attr)
{
	uint8_t buf[WIRE_MAD_BYTES] = {0};
	struct wire_mad mad = {.base_version = 1, .mgmt_class = cls, .class_version = 1,
			       .method = WIRE_METHOD_GET, .attr_id = attr};
	int before = net->sink[N0].packets;

	wire_mad_encode(&mad, buf);
	assert_int_equal(net_send_mad(net, N0, lid, qpn, buf), 0);
	rt_sim_run(net->rt, 100);
	return net->sink[N0].packets == before + 1 ? net_last_mad(net, N0) : NULL;
}

static void lid_routed(void **state)
{
	struct net *net = line(true);
	const uint8_t *mad = ask_lid(net, S3 + 1, 0, WIRE_CLASS_SM_LID, WIRE_SMP_NODE_INFO);
	struct wire_node_info info;
	struct wire_packet pkt;

	assert_non_null(mad);
	wire_node_info_decode(mad + WIRE_SMP_DATA_OFFSET, WIRE_SMP_DATA_BYTES, &info);
	assert_int_equal(info.node_guid, fab_node(net->fab, S3)->guid);
	assert_true(wire_packet_decode(net->sink[N0].last, net->sink[N0].last_len, &pkt) > 0);
	assert_int_equal(pkt.lrh.slid, S3 + 1);
	assert_int_equal(pkt.lrh.vl, 15);
	assert_null(ask_lid(net, WIRE_LID_PERMISSIVE, 0, WIRE_CLASS_SM_LID, WIRE_SMP_NODE_INFO));
	/* a class on the other queue pair is no one's */
	assert_null(ask_lid(net, S3 + 1, 0, WIRE_CLASS_PERF, WIRE_PMA_PORT_COUNTERS));
	assert_null(ask_lid(net, S3 + 1, 1, WIRE_CLASS_SM_LID, WIRE_SMP_NODE_INFO));
	end(net);
}

/* what a switch does not serve it says, so that no client waits in vain */
static void refusals(void **state)
{
	struct net *net = line(true);
	const uint8_t *mad = ask_lid(net, S2 + 1, 1, WIRE_CLASS_CC, 0x11);
	struct wire_mad hdr;

	assert_non_null(mad);
	wire_mad_decode(mad, WIRE_MAD_BYTES, &hdr);
	assert_int_equal(hdr.status, WIRE_STATUS_BAD_METHOD_ATTR);
	assert_int_equal(hdr.method, WIRE_METHOD_GET_RESP);
	mad = ask_lid(net, S2 + 1, 0, WIRE_CLASS_SM_LID, WIRE_SMP_SM_INFO);
	assert_non_null(mad);
	wire_mad_decode(mad, WIRE_MAD_BYTES, &hdr);
	assert_int_equal(hdr.status, WIRE_STATUS_BAD_METHOD_ATTR);
	end(net);
}

/* Who asks for a connection to a node without a communication manager is told at once. */
static void connections_are_rejected(void **state)
{
	const struct wire_mad hdr = {.base_version = 1, .mgmt_class = WIRE_CLASS_CM,
				     .class_version = WIRE_CM_CLASS_VERSION,
				     .method = WIRE_METHOD_SEND, .attr_id = WIRE_CM_REQ};
	const struct wire_cm_req req = {.local_comm_id = 0x1234, .service_id = 0x1000};
	struct net *net = line(true);
	uint8_t buf[WIRE_MAD_BYTES];
	const uint8_t *mad;
	struct wire_mad answer;
	struct wire_cm_rej rej;

	wire_mad_encode(&hdr, buf);
	wire_cm_req_encode(&req, buf + WIRE_CM_DATA_OFFSET);
	assert_int_equal(net_send_mad(net, N0, S2 + 1, 1, buf), 0);
	rt_sim_run(net->rt, 100);
	assert_int_equal(net->sink[N0].packets, 1);
	mad = net_last_mad(net, N0);
	wire_mad_decode(mad, WIRE_MAD_BYTES, &answer);
	assert_int_equal(answer.method, WIRE_METHOD_SEND);
	assert_int_equal(answer.attr_id, WIRE_CM_REJ);
	wire_cm_rej_decode(mad + WIRE_CM_DATA_OFFSET, WIRE_CM_DATA_BYTES, &rej);
	assert_int_equal(rej.remote_comm_id, 0x1234);
	assert_int_equal(rej.local_comm_id, 0);
	assert_int_equal(rej.reason, WIRE_CM_REJ_INVALID_SERVICE_ID);
	end(net);
}

/* an answer, a trap or a Send is no question */
static void no_refusals(void **state)
{
	static const uint8_t methods[] = {
		WIRE_METHOD_GET_RESP, WIRE_METHOD_SEND, WIRE_METHOD_TRAP, WIRE_METHOD_REPORT,
		WIRE_METHOD_TRAP_REPRESS,
	};
	struct net *net = line(true);

	for (size_t i = 0; i < ARRAY_SIZE(methods); i++) {
		uint8_t mad[WIRE_MAD_BYTES] = {1, WIRE_CLASS_CC, 1, methods[i]};

		net_send_mad(net, N0, S2 + 1, 1, mad);
		mad[1] = WIRE_CLASS_SM_LID;
		net_send_mad(net, N0, S2 + 1, 0, mad);
	}
	rt_sim_run(net->rt, 100);
	assert_int_equal(net->sink[N0].packets, 0);
	end(net);
}

static void counters_of_a_switch(void **state)
{
	struct net *net = line(true);
	const uint8_t *mad = ask_lid(net, S2 + 1, 1, WIRE_CLASS_PERF, WIRE_PMA_PORT_COUNTERS);
	struct wire_packet pkt;

	assert_non_null(mad);
	wire_packet_decode(net->sink[N0].last, net->sink[N0].last_len, &pkt);
	assert_int_equal(pkt.bth.dest_qpn, 1);
	assert_int_equal(pkt.deth.qkey, WIRE_QKEY_GSI);
	assert_int_equal(pkt.lrh.vl, 0);
	end(net);
}

static void vl15_is_dropped_when_full(void **state)
{
	struct net *net = line(true);
	uint8_t mad[WIRE_MAD_BYTES] = {1, 1, 1, 1};

	net->sink[N1].full = true;
	assert_int_equal(net_send_mad(net, N0, N1 + 1, 0, mad), 0);
	assert_int_equal(net_count(net, N1, 1, AG_VL15_DROPPED), 1);
	end(net);
}

/* --- traps: the manager is n0 --- */

static struct wire_notice last_notice(struct net *net)
{
	struct wire_notice notice;
	struct wire_smp smp;

	wire_smp_decode(net_last_mad(net, N0), WIRE_MAD_BYTES, &smp);
	assert_int_equal(smp.mad.method, WIRE_METHOD_TRAP);
	wire_smp_notice_decode(net_last_mad(net, N0) + WIRE_SMP_DATA_OFFSET, WIRE_SMP_DATA_BYTES,
			       &notice);
	return notice;
}

static void trap_of_link_state(void **state)
{
	struct net *net = line(true);
	struct wire_trap_switch details;
	struct wire_notice notice;
	struct wire_smp smp;
	uint8_t mad[WIRE_MAD_BYTES];

	net_set_port(net, S3, 0, 0, net_edit_sm, N0 + 1);
	fab_link_set(net->fab, S3, 1, false);
	rt_sim_run_for(net->rt, NSEC_PER_MSEC);
	assert_int_equal(net->sink[N0].packets, 1);
	notice = last_notice(net);
	assert_int_equal(notice.trap_number, WIRE_TRAP_LINK_STATE);
	assert_int_equal(notice.issuer_lid, S3 + 1);
	assert_int_equal(notice.producer, WIRE_PRODUCER_SWITCH);
	wire_trap_switch_decode(notice.details, sizeof(notice.details), &details);
	assert_int_equal(details.lid, S3 + 1);
	/* told again after the subnet time-out, until repressed */
	rt_sim_run_for(net->rt, 3 * NSEC_PER_SEC);
	assert_int_equal(net->sink[N0].packets, 3);
	memcpy(mad, net_last_mad(net, N0), sizeof(mad));
	wire_smp_decode(mad, sizeof(mad), &smp);
	smp.mad.method = WIRE_METHOD_TRAP_REPRESS;
	wire_smp_encode(&smp, mad);
	net_send_mad(net, N0, S3 + 1, 0, mad);
	rt_sim_run_for(net->rt, 30 * NSEC_PER_SEC);
	assert_int_equal(net->sink[N0].packets, 3);
	end(net);
}

static void trap_gives_up(void **state)
{
	struct net *net = line(true);

	net_set_port(net, S3, 0, 0, net_edit_sm, N0 + 1);
	fab_link_set(net->fab, S3, 1, false);
	assert_true(rt_sim_run(net->rt, 1000));
	assert_int_equal(net->sink[N0].packets, AG_TRAP_SENDS);
	end(net);
}

static void trap_of_capability(void **state)
{
	struct net *net = line(true);
	struct wire_trap_capability details;
	struct wire_notice notice;

	net_set_port(net, N1, 1, 1, net_edit_sm, N0 + 1);
	net->sink[N1].changes = 0;
	fab_set_capability(net->fab, N1, 1, WIRE_PORT_CAP_IS_SM, true);
	rt_sim_run_for(net->rt, NSEC_PER_MSEC);
	notice = last_notice(net);
	assert_int_equal(notice.trap_number, WIRE_TRAP_CAPABILITY_CHANGE);
	wire_trap_capability_decode(notice.details, sizeof(notice.details), &details);
	assert_int_equal(details.lid, N1 + 1);
	assert_true(details.cap_mask & WIRE_PORT_CAP_IS_SM);
	assert_true(net->sink[N1].changes & AG_CHANGED_ATTRIBUTES);
	end(net);
}

static void trap_of_a_switchs_partitions(void **state)
{
	struct net *net = line(true);
	struct wire_trap_switch_pkey details;
	struct wire_notice notice;

	net_set_port(net, S3, 0, 0, net_edit_sm, N0 + 1);
	net_set_port(net, S3, 0, 1, net_edit_enforce, 2);
	net_send(net, N0, (struct net_packet){.dlid = N1 + 1, .pkey = 0x8123});
	rt_sim_run_for(net->rt, NSEC_PER_MSEC);
	notice = last_notice(net);
	assert_int_equal(notice.trap_number, WIRE_TRAP_SWITCH_BAD_PKEY);
	wire_trap_switch_pkey_decode(notice.details, sizeof(notice.details), &details);
	assert_int_equal(details.pkey, 0x8123);
	assert_int_equal(details.lid1, N0 + 1);
	assert_int_equal(details.lid2, N1 + 1);
	assert_int_equal(details.port, 1);
	end(net);
}

/* --- what a manager does to a link by PortInfo --- */

static void disable(struct wire_port_info *pi, int phys)
{
	pi->state = WIRE_PORT_DOWN;
	pi->phys_state = (uint8_t)phys;
}

static void enable(struct wire_port_info *pi, int phys)
{
	pi->phys_state = (uint8_t)phys;
}

static void speed(struct wire_port_info *pi, int enabled)
{
	pi->link_speed_enabled = (uint8_t)enabled;
	pi->link_speed_ext_enabled = 30;
}

static void link_by_the_manager(void **state)
{
	struct net *net = line(true);

	/* speeds count from the next training on */
	assert_int_equal(net_set_port(net, S2, 0, 2, speed, WIRE_SPEED_SDR), 0);
	assert_int_equal(net_port(net, S3, 2)->speed_active, AG_EDR);
	assert_int_equal(net_set_port(net, S2, 0, 2, disable, WIRE_PHYS_POLLING), 0);
	assert_int_equal(net_port(net, S2, 2)->state, WIRE_PORT_ACTIVE); /* not yet */
	rt_sim_run_for(net->rt, 2 * NSEC_PER_MSEC);
	assert_int_equal(net_port(net, S3, 2)->state, WIRE_PORT_DOWN);
	rt_sim_run(net->rt, 100);
	assert_int_equal(net_port(net, S3, 2)->state, WIRE_PORT_INIT);
	assert_int_equal(net_port(net, S3, 2)->speed_active, AG_SDR);
	assert_int_equal(net_port(net, S3, 2)->width_active, WIRE_WIDTH_4X);
	assert_int_equal(net_set_port(net, S2, 0, 2, disable, WIRE_PHYS_DISABLED), 0);
	rt_sim_run(net->rt, 100);
	assert_int_equal(net_port(net, S2, 2)->phys_state, WIRE_PHYS_DISABLED);
	assert_int_equal(net_port(net, S3, 2)->phys_state, WIRE_PHYS_POLLING);
	assert_int_equal(net_set_port(net, S2, 0, 2, enable, WIRE_PHYS_POLLING), 0);
	rt_sim_run(net->rt, 100);
	assert_int_equal(net_port(net, S2, 2)->state, WIRE_PORT_INIT);
	assert_int_equal(net_port(net, S2, 2)->count.raw[AG_LINK_DOWNED], 2);
	end(net);
}

/* both ends asked at the same moment: one fall, one rise */
static void link_reset_from_both_ends(void **state)
{
	struct net *net = line(true);

	net_set_port(net, S2, 0, 2, disable, WIRE_PHYS_POLLING);
	net_set_port(net, S3, 0, 2, disable, WIRE_PHYS_POLLING);
	rt_sim_run(net->rt, 100);
	assert_int_equal(net_port(net, S2, 2)->state, WIRE_PORT_INIT);
	assert_int_equal(net_port(net, S2, 2)->count.raw[AG_LINK_DOWNED], 1);
	end(net);
}

static void out_of_memory(void **state)
{
	struct net *net = calloc(1, sizeof(*net));
	struct fabric *fab;
	int err;

	net_add(net, TOPO_CA, 1);
	net_add(net, TOPO_SWITCH, 2);
	net_cable(net, 0, 1, 1, 1);
	assert_int_equal(rt_sim_create(1, &net->rt), 0);
	for (uint64_t nth = 1;; nth++) {
		rt_fail_alloc(nth);
		err = fab_create(net->rt, &net->topo, &fab);
		rt_fail_alloc(0);
		if (!err)
			break;
		assert_int_equal(err, -ENOMEM);
		assert_true(nth < 20);
	}
	fab_destroy(fab);
	net->port[0][1].peer_port = 2; /* a cable whose ends disagree */
	assert_int_equal(fab_create(net->rt, &net->topo, &fab), -EINVAL);
	rt_sim_destroy(net->rt);
	free(net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(directed_out_and_back),
		cmocka_unit_test(directed_to_a_node),
		cmocka_unit_test(directed_astray),
		cmocka_unit_test(directed_ports_that_are_down),
		cmocka_unit_test(combined_route),
		cmocka_unit_test(lid_routed),
		cmocka_unit_test(refusals),
		cmocka_unit_test(connections_are_rejected),
		cmocka_unit_test(no_refusals),
		cmocka_unit_test(counters_of_a_switch),
		cmocka_unit_test(vl15_is_dropped_when_full),
		cmocka_unit_test(trap_of_link_state),
		cmocka_unit_test(trap_gives_up),
		cmocka_unit_test(trap_of_capability),
		cmocka_unit_test(trap_of_a_switchs_partitions),
		cmocka_unit_test(link_by_the_manager),
		cmocka_unit_test(link_reset_from_both_ends),
		cmocka_unit_test(out_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
