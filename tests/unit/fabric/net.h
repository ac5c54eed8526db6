/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A small fabric under the virtual clock: built in C, its switches programmed
 * by hand, its adapters recording what reaches them.
 */
#ifndef SOFTIB_TESTS_FABRIC_NET_H
#define SOFTIB_TESTS_FABRIC_NET_H

#include <errno.h>

#include "../test.h"

#include "fabric/fabric.h"
#include "runtime/sim/rt_sim.h"

#define NET_NODES 8

/** struct net_sink - an adapter: counts and keeps the last packet */
struct net_sink {
	int packets;
	bool full;
	uint32_t changes;
	uint8_t last[4500];
	size_t last_len;
};

struct net {
	struct rt *rt;
	struct topology topo;
	struct topo_node node[NET_NODES];
	struct topo_port port[NET_NODES][40];
	struct net_sink sink[NET_NODES];
	struct fabric *fab;
	unsigned num_hosts;
};

static inline int net_add(struct net *net, enum topo_kind kind, uint8_t num_ports)
{
	int i = net->topo.num_nodes++;
	struct topo_node *node = &net->node[i];

	net->topo.node = net->node;
	node->kind = kind;
	snprintf(node->name, sizeof(node->name), "%c%d", kind == TOPO_CA ? 'n' : 's', i);
	snprintf(node->desc, sizeof(node->desc), "node %d", i);
	node->guid = 0x1000 + (uint64_t)i * 0x100;
	node->num_ports = num_ports;
	node->host = i;
	node->next = -1;
	node->number = kind == TOPO_CA ? ++net->num_hosts : 0;
	node->port = net->port[i];
	for (int p = 0; p <= num_ports; p++)
		node->port[p].peer_node = -1;
	return i;
}

static inline void net_cable(struct net *net, int a, uint8_t pa, int b, uint8_t pb)
{
	net->port[a][pa].peer_node = b;
	net->port[a][pa].peer_port = pb;
	net->port[b][pb].peer_node = a;
	net->port[b][pb].peer_port = pa;
}

static inline int net_deliver(void *ctx, const struct fab_packet *pkt)
{
	struct net_sink *sink = ctx;

	if (sink->full)
		return -EAGAIN;
	sink->packets++;
	memcpy(sink->last, pkt->bytes, pkt->len);
	sink->last_len = pkt->len;
	return 0;
}

static inline void net_changed(void *ctx, uint32_t changes)
{
	((struct net_sink *)ctx)->changes |= changes;
}

static inline void net_start(struct net *net)
{
	assert_int_equal(rt_sim_create(1, &net->rt), 0);
	assert_int_equal(fab_create(net->rt, &net->topo, &net->fab), 0);
	for (int i = 0; i < net->topo.num_nodes; i++) {
		struct fab_sink sink = {net_deliver, net_changed, &net->sink[i]};

		if (net->node[i].kind == TOPO_CA)
			fab_attach(net->fab, i, 1, &sink);
	}
}

static inline void net_stop(struct net *net)
{
	fab_destroy(net->fab);
	rt_sim_destroy(net->rt);
}

static inline struct ag_port *net_port(struct net *net, int node, int port)
{
	return &fab_node(net->fab, node)->port[port];
}

static inline uint64_t net_count(struct net *net, int node, int port, enum ag_counter counter)
{
	return net_port(net, node, port)->count.raw[counter];
}

/* a Set or Get put right to a node's agents, as its own manager would */
static inline int net_mad(struct net *net, int node, int port, uint8_t method, uint16_t attr,
			  uint32_t mod, uint8_t mad[WIRE_MAD_BYTES])
{
	struct wire_smp smp = {
		.mad = {.base_version = 1, .mgmt_class = WIRE_CLASS_SM_LID, .class_version = 1,
			.method = method, .attr_id = attr, .attr_mod = mod},
	};
	struct ag_mad_context context = {.now = rt_now(net->rt), .ignore_mkey = true};

	wire_smp_encode(&smp, mad);
	assert_int_equal(fab_process_mad(net->fab, node, port, &context, mad, mad),
			 AG_CONSUMED | AG_REPLY);
	wire_smp_decode(mad, WIRE_MAD_BYTES, &smp);
	return smp.mad.status;
}

/* PortInfo of @num through the agent that @via is a port of */
static inline int net_set_port(struct net *net, int node, int via, int num,
			       void (*edit)(struct wire_port_info *pi, int arg), int arg)
{
	uint8_t mad[WIRE_MAD_BYTES] = {0};
	struct wire_port_info pi;

	net_mad(net, node, via, WIRE_METHOD_GET, WIRE_SMP_PORT_INFO, num, mad);
	wire_port_info_decode(mad + WIRE_SMP_DATA_OFFSET, WIRE_SMP_DATA_BYTES, &pi);
	pi.state = pi.phys_state = 0;
	edit(&pi, arg);
	wire_port_info_encode(&pi, mad + WIRE_SMP_DATA_OFFSET);
	return net_mad(net, node, via, WIRE_METHOD_SET, WIRE_SMP_PORT_INFO, num, mad);
}

static inline void net_edit_lid(struct wire_port_info *pi, int lid)
{
	pi->lid = (uint16_t)lid;
}

static inline void net_edit_state(struct wire_port_info *pi, int port_state)
{
	pi->state = (uint8_t)port_state;
}

static inline void net_edit_mtu(struct wire_port_info *pi, int mtu)
{
	pi->neighbor_mtu = (uint8_t)mtu;
}

static inline void net_edit_enforce(struct wire_port_info *pi, int in_out)
{
	pi->partition_enforcement_inbound = in_out & 1;
	pi->partition_enforcement_outbound = in_out >> 1 & 1;
}

static inline void net_edit_sm(struct wire_port_info *pi, int lid)
{
	pi->sm_lid = (uint16_t)lid;
}

/* every port Active; LIDs of nodes: index + 1 */
static inline void net_activate(struct net *net)
{
	for (int i = 0; i < net->topo.num_nodes; i++) {
		bool sw = net->node[i].kind == TOPO_SWITCH;

		assert_int_equal(net_set_port(net, i, !sw, !sw, net_edit_lid, i + 1), 0);
		for (int p = 1; p <= net->node[i].num_ports; p++) {
			if (net->port[i][p].peer_node < 0)
				continue;
			assert_int_equal(net_set_port(net, i, sw ? 0 : p, p, net_edit_state,
						      WIRE_PORT_ARMED), 0);
			assert_int_equal(net_set_port(net, i, sw ? 0 : p, p, net_edit_state,
						      WIRE_PORT_ACTIVE), 0);
		}
	}
	rt_sim_run(net->rt, 100);
}

/* LFT: @lid leaves switch @sw by @port */
static inline void net_lft(struct net *net, int sw, uint16_t lid, uint8_t port)
{
	uint8_t mad[WIRE_MAD_BYTES] = {0};

	net_mad(net, sw, 0, WIRE_METHOD_GET, WIRE_SMP_LFT, lid / 64, mad);
	mad[WIRE_SMP_DATA_OFFSET + lid % 64] = port;
	assert_int_equal(net_mad(net, sw, 0, WIRE_METHOD_SET, WIRE_SMP_LFT, lid / 64, mad), 0);
}

/* --- the smallest fabric: two nodes, one switch --- */

enum { N0, N1, S2 };

static inline void net_pair_cable(struct net *net)
{
	net_add(net, TOPO_CA, 1);
	net_add(net, TOPO_CA, 1);
	net_add(net, TOPO_SWITCH, 4);
	net_cable(net, N0, 1, S2, 1);
	net_cable(net, N1, 1, S2, 2);
	net_start(net);
}

/* LIDs 1, 2, 3, and the way from one node to the other */
static inline void net_pair_activate(struct net *net)
{
	net_activate(net);
	net_lft(net, S2, 1, 1);
	net_lft(net, S2, 2, 2);
}

static inline struct net *net_pair(void)
{
	struct net *net = calloc(1, sizeof(*net));

	net_pair_cable(net);
	net_pair_activate(net);
	return net;
}

static inline void net_end(struct net *net)
{
	net_stop(net);
	free(net);
}

/* a fault from the next packet on. Return: the rule's id */
static inline uint32_t net_fault(struct net *net, const char *rule)
{
	char err[512] = "";
	int id = fab_fault_add(net->fab, rule, 0, err, sizeof(err));

	if (id < 0)
		fail_msg("%s: %s", rule, err);
	return (uint32_t)id;
}

static inline void net_mft(struct net *net, int sw, uint16_t mlid, uint16_t mask)
{
	uint8_t mad[WIRE_MAD_BYTES] = {0};
	struct wire_mft mft;

	net_mad(net, sw, 0, WIRE_METHOD_GET, WIRE_SMP_MFT, (mlid - 0xc000u) / 32, mad);
	wire_mft_decode(mad + WIRE_SMP_DATA_OFFSET, WIRE_SMP_DATA_BYTES, &mft);
	mft.port_mask[mlid % 32] = mask;
	wire_mft_encode(&mft, mad + WIRE_SMP_DATA_OFFSET);
	assert_int_equal(net_mad(net, sw, 0, WIRE_METHOD_SET, WIRE_SMP_MFT, (mlid - 0xc000u) / 32,
				 mad), 0);
}

/** struct net_packet - a UD packet to send */
struct net_packet {
	uint16_t slid, dlid, pkey;
	uint8_t vl, sl;
	uint32_t dest_qpn, src_qpn, qkey, payload;
};

static inline size_t net_encode(const struct net_packet *np, const void *payload, uint8_t *buf)
{
	struct wire_packet p = {
		.lrh = {.vl = np->vl, .sl = np->sl, .lnh = WIRE_LNH_BTH, .dlid = np->dlid,
			.slid = np->slid},
		.bth = {.opcode = WIRE_UD | WIRE_SEND_ONLY, .dest_qpn = np->dest_qpn,
			.pkey = np->pkey ? np->pkey : WIRE_PKEY_DEFAULT},
		.deth = {.qkey = np->qkey, .src_qpn = np->src_qpn},
		.payload_bytes = np->payload,
	};
	int n = wire_packet_encode(&p, buf);

	if (payload)
		memcpy(buf + n, payload, np->payload);
	else
		memset(buf + n, 0xa5, np->payload);
	memset(buf + n + np->payload, 0, p.bth.pad_bytes);
	return (size_t)n + np->payload + p.bth.pad_bytes;
}

/* Return: fab_send()'s; -EINVAL not a packet */
static inline int net_send_bytes(struct net *net, int from, const void *bytes, size_t len)
{
	struct fab_packet pkt;
	int ret = fab_packet_decode(&pkt, bytes, len);

	return ret ? ret : fab_send(net->fab, from, 1, &pkt);
}

static inline int net_send(struct net *net, int from, struct net_packet np)
{
	uint8_t buf[4500];
	size_t len;

	np.slid = np.slid ? np.slid : (uint16_t)(from + 1);
	np.dest_qpn = np.dest_qpn ? np.dest_qpn : 0x42;
	np.payload = np.payload ? np.payload : 100;
	len = net_encode(&np, NULL, buf);
	return net_send_bytes(net, from, buf, len);
}

/* a MAD as a packet from a CA's port 1 */
static inline int net_send_mad(struct net *net, int from, uint16_t dlid, uint32_t qpn,
			       const uint8_t mad[WIRE_MAD_BYTES])
{
	struct net_packet np = {
		.slid = dlid == WIRE_LID_PERMISSIVE ? WIRE_LID_PERMISSIVE : (uint16_t)(from + 1),
		.dlid = dlid, .vl = qpn == 0 ? 15 : 0, .dest_qpn = qpn, .src_qpn = qpn,
		.qkey = qpn ? WIRE_QKEY_GSI : 0, .payload = WIRE_MAD_BYTES,
	};
	uint8_t buf[512];
	size_t len = net_encode(&np, mad, buf);

	return net_send_bytes(net, from, buf, len);
}

/* Get(NodeInfo), by LID */
static inline int net_ask_node_info(struct net *net, int from, uint16_t dlid)
{
	const struct wire_smp smp = {
		.mad = {.base_version = 1, .mgmt_class = WIRE_CLASS_SM_LID, .class_version = 1,
			.method = WIRE_METHOD_GET, .attr_id = WIRE_SMP_NODE_INFO},
	};
	uint8_t mad[WIRE_MAD_BYTES] = {0};

	wire_smp_encode(&smp, mad);
	return net_send_mad(net, from, dlid, 0, mad);
}

/* the MAD in the last packet that reached @node */
static inline const uint8_t *net_last_mad(struct net *net, int node)
{
	return net->sink[node].last + net->sink[node].last_len - WIRE_MAD_BYTES;
}

#endif
