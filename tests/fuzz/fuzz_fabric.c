/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Any bytes as what an adapter sends into a fabric and puts to its agents:
 * packets, SMPs by LID and by route, MADs, cables pulled. Two adapters, two
 * switches with two cables between them. The fabric must come to rest, and on
 * every cable what one end sent the other received.
 */
#include <stdlib.h>
#include <string.h>

#include "fabric/fabric.h"
#include "runtime/sim/rt_sim.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CA0, CA1, SW2, SW3, NODES };
#define PORTS 4
#define STEPS_MAX 100000

static struct topo_port ports[NODES][PORTS + 1];
static struct topo_node nodes[NODES];
static const struct topology topo = {nodes, NODES};

static void cable(int a, uint8_t pa, int b, uint8_t pb)
{
	ports[a][pa].peer_node = b;
	ports[a][pa].peer_port = pb;
	ports[b][pb].peer_node = a;
	ports[b][pb].peer_port = pa;
}

static void build(void)
{
	for (int i = 0; i < NODES; i++) {
		nodes[i] = (struct topo_node){
			.kind = i < SW2 ? TOPO_CA : TOPO_SWITCH, .guid = 0x100u * (i + 1u),
			.num_ports = i < SW2 ? 1 : PORTS, .port = ports[i]};
		for (int p = 0; p <= PORTS; p++)
			ports[i][p].peer_node = -1;
	}
	cable(CA0, 1, SW2, 1);
	cable(CA1, 1, SW3, 1);
	cable(SW2, 2, SW3, 2);
	cable(SW2, 3, SW3, 3);
}

/* LIDs 1 to 4, all Active, and tables that lead there */
static void configure(struct fabric *fab)
{
	for (int i = 0; i < NODES; i++) {
		struct ag_node *ag = fab_node(fab, i);

		for (int p = 0; p <= ag->num_ports; p++)
			if (ag->port[p].state == WIRE_PORT_INIT)
				ag->port[p].state = WIRE_PORT_ACTIVE;
		ag->port[i < SW2].lid = (uint16_t)(i + 1);
		ag->port[i < SW2].sm_lid = 1;
		if (!ag->sw)
			continue;
		for (uint16_t lid = 0; lid < WIRE_LFT_PER_BLOCK; lid++)
			if (ag_lft_put(ag, lid, lid < 5 ? (i == SW2 ? "\xff\1\2\0\2" : "\xff\2\1\2\0")[lid] : 0))
				abort();
	}
}

static uint8_t last[WIRE_PACKET_MAX];
static size_t last_len;

static int deliver(void *ctx, const struct fab_packet *pkt)
{
	if (pkt->len > sizeof(last))
		return 0;
	memcpy(last, pkt->bytes, pkt->len);
	last_len = pkt->len;
	return pkt->len % 7 == 6 ? -11 : 0;
}

static void send_bytes(struct fabric *fab, const void *bytes, size_t len)
{
	struct fab_packet pkt;

	if (!fab_packet_decode(&pkt, bytes, len))
		fab_send(fab, CA0, 1, &pkt);
}

static void changed(void *ctx, uint32_t changes)
{
}

/* the MAD at @mad as a packet to @dlid */
static void send_mad(struct fabric *fab, uint16_t dlid, uint32_t qpn, const uint8_t *mad)
{
	struct wire_packet p = {
		.lrh = {.vl = qpn ? 0 : 15, .lnh = WIRE_LNH_BTH, .dlid = dlid, .slid = 1},
		.bth = {.opcode = WIRE_UD | WIRE_SEND_ONLY, .pkey = 0xffff, .dest_qpn = qpn},
		.deth = {.qkey = qpn ? WIRE_QKEY_GSI : 0, .src_qpn = qpn},
		.payload_bytes = WIRE_MAD_BYTES,
	};
	uint8_t buf[512];
	int n = wire_packet_encode(&p, buf);

	memcpy(buf + n, mad, WIRE_MAD_BYTES);
	send_bytes(fab, buf, (size_t)n + WIRE_MAD_BYTES);
}

static void act(struct rt *rt, struct fabric *fab, uint8_t what, const uint8_t *data, size_t len)
{
	struct ag_mad_context context = {.now = rt_now(rt), .slid = 1};
	uint8_t mad[WIRE_MAD_BYTES] = {1, what & 1 ? WIRE_CLASS_SM_LID : WIRE_CLASS_SM_DIRECT, 1};

	memcpy(mad + (what & 0x40 ? 0 : 3), data, len < 253 ? len : 253);
	switch (what >> 1 & 7) {
	case 0:
		send_bytes(fab, data, len);
		break;
	case 1:
		send_mad(fab, WIRE_LID_PERMISSIVE, 0, mad);
		break;
	case 2:
		send_mad(fab, what >> 6, 0, mad);
		break;
	case 3:
		mad[1] = WIRE_CLASS_PERF;
		send_mad(fab, 3, 1, mad);
		break;
	case 4:
		fab_process_mad(fab, len % NODES, len % NODES < SW2, &context, mad, mad);
		break;
	case 5:
		fab_link_set(fab, len % NODES, len / NODES % PORTS, what >> 7);
		break;
	case 6: /* an answer or trap, sent back changed by nothing */
		send_bytes(fab, last, last_len);
		break;
	case 7:
		rt_sim_run_for(rt, (uint64_t)len * NSEC_PER_MSEC);
		break;
	}
}

static void check_cables(struct fabric *fab)
{
	for (int n = 0; n < NODES; n++)
		for (int p = 1; p <= nodes[n].num_ports; p++) {
			const struct topo_port *cab = &ports[n][p];
			const uint64_t *from = fab_node(fab, n)->port[p].count.raw, *to;

			if (cab->peer_node < 0)
				continue;
			to = fab_node(fab, cab->peer_node)->port[cab->peer_port].count.raw;
			if (from[AG_XMIT_PACKETS] != to[AG_RCV_PACKETS] ||
			    from[AG_XMIT_DATA] != to[AG_RCV_DATA])
				abort();
		}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fab_sink sink = {deliver, changed, NULL};
	struct fabric *fab;
	struct rt *rt;

	build();
	last_len = 0;
	if (rt_sim_create(1, &rt) || fab_create(rt, &topo, &fab))
		abort();
	fab_attach(fab, CA0, 1, &sink);
	configure(fab);
	while (size >= 3) {
		size_t len = data[1] | (size_t)(data[2] & 3) << 8;

		len = MIN(len, size - 3);
		act(rt, fab, data[0], data + 3, len);
		data += 3 + len;
		size -= 3 + len;
	}
	/* traps are told AG_TRAP_SENDS times, then all is quiet */
	if (!rt_sim_run(rt, STEPS_MAX))
		abort();
	check_cables(fab);
	fab_destroy(fab);
	rt_sim_destroy(rt);
	return 0;
}
