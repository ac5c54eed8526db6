/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What must hold. Oracles that watch one thing stand where it happens
 * (traffic.c: PSNs, completions, bytes; program.c: wake-ups); here are those
 * that look at the whole.
 */
#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "conn.h"
#include "fabric/fabric_private.h"
#include "hca/private.h"
#include "rdma/restrack.h"

const char *const oracle_names[ORACLE_NUM] = {
	[ORACLE_PSN] = "psn",		[ORACLE_ORDER] = "order",
	[ORACLE_DATA] = "data",		[ORACLE_GUARD] = "guard",
	[ORACLE_RELIABLE] = "reliable", [ORACLE_CREDIT] = "credit",
	[ORACLE_WAKE] = "wake",		[ORACLE_LEAK] = "leak",
	[ORACLE_TABLES] = "tables",	[ORACLE_RECOVERY] = "recovery",
	[ORACLE_PATHS] = "paths",	[ORACLE_KEYS] = "keys",
	[ORACLE_COUNT] = "count",	[ORACLE_VIOLATION] = "violation",
	[ORACLE_FENCE] = "fence",	[ORACLE_BOUND] = "bound",
	[ORACLE_XRC] = "xrc",		[ORACLE_PLACED] = "placed",
	[ORACLE_TAGS] = "tags",		[ORACLE_SDP] = "sdp",
};

bool sim_sabotage(const struct sim *sim, enum oracle oracle)
{
	return unlikely(sim->options->sabotage == (int)oracle);
}

/* --- memory --- */

static bool guard_is_whole(const uint8_t *bytes, uint8_t value)
{
	uint64_t word, want = value * 0x0101010101010101ull, differ = 0;

	for (size_t i = 0; i < GUARD_BYTES; i += sizeof(word)) {
		memcpy(&word, bytes + i, sizeof(word));
		differ |= word ^ want;
	}
	return !differ;
}

static void check_guards(struct sim *sim, const struct program *p)
{
	const struct region *r;

	list_for_each_entry(r, &p->regions, node)
		if (!guard_is_whole(r->block, r->guard) ||
		    !guard_is_whole(r->bytes + r->len, r->guard))
			sim_fail(sim, ORACLE_GUARD,
				 "program %d: bytes beside the region with key %x were written",
				 p->index, r->key);
}

void oracle_guards(struct sim *sim)
{
	for (int i = 0; i < sim->plan->num_programs; i++)
		if (sim->program[i]->alive)
			check_guards(sim, sim->program[i]);
}

/* --- rings --- */

/* 7.9: no more is on its way than there is room for */
static void check_ring(struct sim *sim, const struct program *p,
		       const struct abi_ring *ring)
{
	uint64_t tail = atomic_load(&ring->tail), head = atomic_load(&ring->head);

	if (head > tail || tail - head > ring->size)
		sim_fail(sim, ORACLE_CREDIT,
			 "program %d: a ring of %llu bytes holds %lld", p->index,
			 (unsigned long long)ring->size, (long long)(tail - head));
}

static void check_lane(struct sim *sim, const struct program *p,
		       const struct abi_lane_tx *tx)
{
	uint32_t head = atomic_load(&tx->memory->head);

	if (tx->tail - head > ABI_LANE_CELLS)
		sim_fail(sim, ORACLE_CREDIT, "program %d: a lane of %u cells holds %d",
			 p->index, ABI_LANE_CELLS, (int)(tx->tail - head));
}

static void check_rings(struct sim *sim, const struct program *p)
{
	const struct lane_out *lane;

	check_ring(sim, p, p->soft.link.tx.ring);
	check_ring(sim, p, p->soft.link.rx.ring);
	list_for_each_entry(lane, &p->soft.link.lanes.out, node)
		check_lane(sim, p, &lane->eng.tx);
}

void oracle_event(struct sim *sim)
{
	struct program *p = sim->program[sim->turn++ % (uint32_t)sim->plan->num_programs];

	for (int i = 0; i < sim->plan->num_programs; i++)
		program_notice(sim->program[i]);
	if (!p->alive)
		return;
	if (sim_sabotage(sim, ORACLE_GUARD) && !list_empty(&p->regions))
		list_first_entry(&p->regions, struct region, node)->bytes[-1] ^= 1;
	check_guards(sim, p);
	check_rings(sim, p);
}

/* --- tables --- */

static bool is_end_port(const struct ag_node *node, int p)
{
	return node->sw ? p == 0 : p > 0;
}

/* follow @lid from switch @n. Return: a node and port in *@n, *@port where the
 * way ends; false: it never does */
static bool follow(struct sim *sim, uint16_t lid, int *n, int *port)
{
	for (int hops = 0; hops < sim->topo->num_nodes + 1; hops++) {
		const struct ag_node *sw = fab_node(sim->fab, *n);
		uint8_t out;

		if (!sw->sw)
			return true;
		out = sw->port[0].lid == lid ? 0 : ag_lft_get(sw, lid);
		*port = 0;
		if (out == 0 || out > sw->num_ports ||
		    !fab_link_plugged(sim->fab, *n, out))
			return true;
		*port = sim->topo->node[*n].port[out].peer_port;
		*n = sim->topo->node[*n].port[out].peer_node;
	}
	return false;
}

static bool reaches(struct sim *sim, int from, uint16_t lid, int to, int to_port)
{
	int n = from, port = 0;

	if (!follow(sim, lid, &n, &port) || sim_sabotage(sim, ORACLE_TABLES))
		sim_fail(sim, ORACLE_TABLES, "LID %u never arrives from %s", lid,
			 sim->topo->node[from].name);
	return n == to && port == to_port;
}

static bool from_everywhere(struct sim *sim, uint16_t lid, int to, int to_port)
{
	bool all = true;

	for (int from = 0; from < sim->topo->num_nodes; from++)
		if (fab_node(sim->fab, from)->sw)
			all &= reaches(sim, from, lid, to, to_port);
	return all;
}

bool oracle_tables(struct sim *sim)
{
	bool all = true;

	for (int n = 0; n < sim->topo->num_nodes; n++) {
		const struct ag_node *node = fab_node(sim->fab, n);

		for (int p = 0; p <= node->num_ports; p++) {
			const struct ag_port *port = &node->port[p];

			if (!is_end_port(node, p) || !port->lid ||
			    (p && sim->topo->node[n].port[p].peer_node < 0))
				continue;
			for (uint32_t bits = 0; bits < 1u << port->lmc; bits++)
				all &= from_everywhere(sim, (uint16_t)(port->lid + bits), n, p);
		}
	}
	return all;
}

/* --- what is lost --- */

static bool only_takes_away(const struct plan *plan)
{
	for (int i = 0; i < plan->num_faults; i++)
		if (plan->fault[i].kept && plan->fault[i].kind != FAULT_DROP &&
		    plan->fault[i].kind != FAULT_CORRUPT)
			return false;
	return plan->kind == KIND_PACKETS;
}

/* Where packets are only taken away, each takes one datagram at most with it:
 * UC and UD lose what the fault log says, no more. */
void oracle_losses(struct sim *sim)
{
	struct flt_set *set = fab_faults(sim->fab);
	uint64_t taken = set ? set->logged : 0;

	if (!only_takes_away(sim->plan) || sim->starved)
		return;
	if (sim->result->lost > taken)
		sim_fail(sim, ORACLE_RELIABLE,
			 "%u messages of UC and UD are lost, %llu packets were",
			 sim->result->lost, (unsigned long long)taken);
}

/* --- counters --- */

/* what left adapters by softibd: programs' packets, and MADs. Not counted by
 * any cable is what an adapter sends to itself */
static struct {
	uint64_t packets, dwords;
} carried;

/* @own: the port of an adapter that it leaves by */
static void note_carried(const struct ag_port *own, const struct wire_lrh *lrh)
{
	if (fab_port_has_lid(own, lrh->dlid))
		return;
	carried.packets++;
	carried.dwords += lrh->length_dwords;
}

int __real_fab_send(struct fabric *fab, int node, int port, const struct fab_packet *pkt);
int __wrap_fab_send(struct fabric *fab, int node, int port, const struct fab_packet *pkt);

int __wrap_fab_send(struct fabric *fab, int node, int port, const struct fab_packet *pkt)
{
	int ret = __real_fab_send(fab, node, port, pkt);

	if (!ret)
		note_carried(&fab_node(fab, node)->port[port], &pkt->lrh);
	return ret;
}

/* what an adapter's own agents send: answers for ports without QP0 and QP1, traps */
size_t __real_fab_mad_encode(const struct fab_job *job, uint16_t slid, uint16_t dlid, psn_t psn,
			     uint8_t *buf);
size_t __wrap_fab_mad_encode(const struct fab_job *job, uint16_t slid, uint16_t dlid, psn_t psn,
			     uint8_t *buf);

size_t __wrap_fab_mad_encode(const struct fab_job *job, uint16_t slid, uint16_t dlid, psn_t psn,
			     uint8_t *buf)
{
	size_t len = __real_fab_mad_encode(job, slid, dlid, psn, buf);
	struct wire_lrh lrh;

	if (!fab_is_switch(job->at) && wire_lrh_decode(buf, len, &lrh) > 0)
		note_carried(fab_ag_port(job->at), &lrh);
	return len;
}

/* no fault took or doubled a packet, and no cable went while one was on it */
static bool cables_are_whole(const struct plan *plan)
{
	for (int i = 0; i < plan->num_faults; i++)
		if (plan->fault[i].kept && plan->fault[i].kind <= FAULT_SWITCH)
			return false;
	return true;
}

static void check_cable(struct sim *sim, int n, int p)
{
	const struct topo_port *cable = &sim->topo->node[n].port[p];
	const uint64_t *from = fab_node(sim->fab, n)->port[p].count.raw;
	const uint64_t *to = fab_node(sim->fab, cable->peer_node)->port[cable->peer_port].count.raw;
	uint64_t sent = from[AG_XMIT_PACKETS] + sim_sabotage(sim, ORACLE_COUNT);

	if (sent != to[AG_RCV_PACKETS] || from[AG_XMIT_DATA] != to[AG_RCV_DATA])
		sim_fail(sim, ORACLE_COUNT,
			 "%s:%d sent %llu packets of %llu words, its peer received %llu of %llu",
			 sim->topo->node[n].name, p, (unsigned long long)sent,
			 (unsigned long long)from[AG_XMIT_DATA],
			 (unsigned long long)to[AG_RCV_PACKETS],
			 (unsigned long long)to[AG_RCV_DATA]);
}

/* Return: what adapters' ports sent, or dropped as they should have */
static uint64_t sum_adapters(const struct sim *sim, uint64_t *dwords)
{
	uint64_t packets = 0;

	for (int n = 0; n < sim->topo->num_nodes; n++) {
		const struct ag_node *node = fab_node(sim->fab, n);

		for (int p = 1; p <= node->num_ports && !node->sw; p++) {
			packets += node->port[p].count.raw[AG_XMIT_PACKETS];
			*dwords += node->port[p].count.raw[AG_XMIT_DATA];
		}
	}
	return packets;
}

/* Where nothing went by windows and nobody died in the middle of his sending,
 * the sum is known from outside: what the adapters gave to the fabric, and the
 * records of lanes. Of lanes their senders alone know the words. */
static void check_sum(struct sim *sim)
{
	uint64_t dwords = 0, packets = sum_adapters(sim, &dwords);

	if (sim->plan->windows || sim->plan->violations || sim->plan->kind != KIND_CALM)
		return;
	if (packets != carried.packets + sim->laned ||
	    (!sim->plan->lanes && dwords != carried.dwords))
		sim_fail(sim, ORACLE_COUNT,
			 "adapters sent %llu packets of %llu words, and count %llu of %llu",
			 (unsigned long long)(carried.packets + sim->laned),
			 (unsigned long long)carried.dwords, (unsigned long long)packets,
			 (unsigned long long)dwords);
}

void oracle_counters(struct sim *sim)
{
	if (!cables_are_whole(sim->plan))
		return;
	for (int n = 0; n < sim->topo->num_nodes; n++)
		for (int p = 1; p <= fab_node(sim->fab, n)->num_ports; p++)
			if (sim->topo->node[n].port[p].peer_node >= 0)
				check_cable(sim, n, p);
	check_sum(sim);
}

/* --- keys --- */

/* A stranger's datagram from the node of @e to the QP of its peer. Were it
 * delivered, the oracle of data would miss it among what the peer was sent. */
static void send_stray(struct end *e, uint16_t pkey, uint32_t qkey)
{
	const struct end *peer = peer_of(e);
	struct wire_packet pkt = {
		/* as they are now: where two subnets met, LIDs changed */
		.lrh = {.lnh = WIRE_LNH_BTH, .dlid = end_lid(peer),
			.slid = end_lid(e)},
		.bth = {.opcode = WIRE_UD | WIRE_SEND_ONLY, .pkey = pkey,
			.dest_qpn = peer->qp->qp_num},
		.deth = {.qkey = qkey, .src_qpn = e->qp->qp_num},
		.payload_bytes = 64,
	};
	uint8_t bytes[256] = {0};
	int head = wire_packet_encode(&pkt, bytes);
	struct fab_packet stray;

	if (!fab_packet_decode(&stray, bytes, (size_t)head + pkt.payload_bytes))
		fab_send(e->conn->sim->fab, e->program->node, 1, &stray);
}

static void check_keys(struct end *e)
{
	const struct program *p = peer_of(e)->program;
	const struct ag_port *port = &fab_node(e->conn->sim->fab, p->node)->port[1];
	const uint32_t qkey = peer_of(e)->qp->attr.qkey;
	const unsigned pkeys = port->pkey_violations, qkeys = port->qkey_violations;

	send_stray(e, 0x8123, qkey);
	send_stray(e, WIRE_PKEY_DEFAULT, qkey + 1 + sim_sabotage(e->conn->sim, ORACLE_KEYS) * UINT32_MAX);
	if (port->pkey_violations != MIN(pkeys + 1, 0xffffu) ||
	    port->qkey_violations != MIN(qkeys + 1, 0xffffu))
		sim_fail(e->conn->sim, ORACLE_KEYS,
			 "program %d: of a wrong P_Key and a wrong Q_Key its port counted %d and %d",
			 p->index, port->pkey_violations - (int)pkeys,
			 port->qkey_violations - (int)qkeys);
}

void oracle_keys(struct sim *sim)
{
	for (int i = 0; i < sim->plan->num_conns; i++)
		for (int side = 0; side < 2; side++)
			if (sim->plan->conn[i].transport == PLAN_UD && sim->conn[i].state == CONN_UP)
				check_keys(&sim->conn[i].end[side]);
}

/* --- what is left --- */

struct search {
	int pid;
	u32 id;
};

static int is_of(const struct rdma_restrack_entry *entry, void *ctx)
{
	struct search *s = ctx;

	s->id = entry->id;
	return entry->user && entry->pid == s->pid;
}

void oracle_forgotten(struct sim *sim, const struct program *p)
{
	struct ib_device *device = &sim->hca[p->node]->ib;
	struct search s = {.pid = program_pid(p)};

	for (int type = 0; type < RDMA_RESTRACK_MAX; type++)
		if (rdma_restrack_for_each(device, (enum rdma_restrack_type)type, is_of,
					   &s))
			sim_fail(sim, ORACLE_LEAK, "program %d is dead, its %s %u is not",
				 p->index,
				 rdma_restrack_name((enum rdma_restrack_type)type), s.id);
}

/* When no program is left, no QP but the midlayer's own two, no key of theirs */
void oracle_numbers(struct sim *sim)
{
	for (int i = 0; i < sim->topo->num_nodes; i++) {
		const struct hca *hca = sim->hca[i];

		for (uint32_t qpn = HCA_FIRST_QPN; hca && qpn < hca->next_qpn; qpn++)
			if (eng_table_get(&hca->qps, qpn))
				sim_fail(sim, ORACLE_LEAK, "QP %x of %s is nobody's", qpn,
					 sim->topo->node[i].name);
		for (uint32_t key = 1; hca && key < hca->next_key; key++) {
			const struct hca_mr *mr = eng_table_get(&hca->keys, key);

			if (mr && !mr->in_engine)
				sim_fail(sim, ORACLE_LEAK, "key %x of %s is nobody's",
					 mr->ib.lkey, sim->topo->node[i].name);
		}
	}
}

static int count_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

void oracle_baseline(struct sim *sim)
{
	sim->balance = rt_alloc_balance();
	sim->descriptors = count_descriptors();
}

void oracle_leaks(struct sim *sim)
{
	int64_t left = rt_alloc_balance() - sim->balance;
	int open = count_descriptors() - sim->descriptors;

	if (sim_sabotage(sim, ORACLE_LEAK))
		left++;
	if (left || open)
		sim_fail(sim, ORACLE_LEAK, "%lld allocations and %d descriptors are left",
			 (long long)left, open);
}
