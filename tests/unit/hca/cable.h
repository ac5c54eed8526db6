/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A stand-in for the fabric: a cable that notes what leaves, and what the test
 * puts into it arrives. It defines every function of the fabric that the
 * adapter calls; include it once in a test.
 */
#ifndef SOFTIB_TEST_HCA_CABLE_H
#define SOFTIB_TEST_HCA_CABLE_H

#include <string.h>

#include "../test.h"
#include "agents/agents.h"
#include "base/bytes.h"
#include "fabric/ethernet.h"
#include "fabric/fabric.h"

#define LID 8 /* LMC 1: 8 and 9 are the port's */

/* --- the fabric: everything of it that the adapter calls --- */

struct cable {
	struct topology topo;
	struct topo_node node;
	struct ag_node *ag;
	void *ag_memory;
	struct fab_sink sink[3];
	uint8_t sent[64][WIRE_PACKET_MAX]; /* the last ones: packet n at n % 64 */
	size_t sent_len[64];
	int num_sent, sent_port;
	int answer; /* of fab_send() */
	uint16_t full_dlid; /* there is no room there; 0: there is everywhere */
	int discards;
	bool loops; /* what leaves comes back */
	bool ethernet;
	bool foreign_vlan; /* the port is not in that of any packet */
	int is_sm, traps;
} cable;

struct ag_node *fab_node(struct fabric *fab, int index)
{
	return cable.ag;
}

const struct topology *fab_topology(const struct fabric *fab)
{
	return &cable.topo;
}

void fab_attach(struct fabric *fab, int node, int port, const struct fab_sink *sink)
{
	cable.sink[port] = sink ? *sink : (struct fab_sink){0};
}

/* only one node has an adapter */
const struct fab_sink *fab_sink(struct fabric *fab, int node, int port)
{
	return node == 0 ? &cable.sink[port] : NULL;
}

int fab_send(struct fabric *fab, int node, int port, const struct fab_packet *pkt)
{
	if (cable.answer)
		return cable.answer;
	if (cable.full_dlid && pkt->lrh.dlid == cable.full_dlid)
		return -EAGAIN;
	assert_true(pkt->len <= WIRE_PACKET_MAX);
	memcpy(cable.sent[cable.num_sent % 64], pkt->bytes, pkt->len);
	cable.sent_len[cable.num_sent++ % 64] = pkt->len;
	cable.sent_port = port;
	return cable.loops ? cable.sink[port].deliver(cable.sink[port].ctx, pkt) : 0;
}

int fab_send_train(struct fabric *fab, int node, int port, const struct fab_packet *first,
		   const struct fab_train *train)
{
	return -EOPNOTSUPP; /* the cable carries packets one by one */
}

void fab_discard(struct fabric *fab, int node, int port)
{
	cable.discards++;
}

int fab_process_mad(struct fabric *fab, int node, int port, const struct ag_mad_context *context,
		    const void *in, void *out)
{
	return AG_PASS;
}

int fab_link_set(struct fabric *fab, int node, int port, bool up)
{
	return 0;
}

void fab_set_capability(struct fabric *fab, int node, int port, uint32_t mask, bool on)
{
	if (mask & WIRE_PORT_CAP_IS_SM)
		cable.is_sm = on;
}

void fab_traps_changed(struct fabric *fab, int node)
{
	cable.traps++;
}

/* no shortcuts here: their tests run on a real fabric */
int fab_way_create(struct fabric *fab, int node, int port, uint16_t dlid, uint8_t sl, uint16_t pkey,
		   struct fab_way **way)
{
	return -ENOENT;
}

void fab_way_free(struct fab_way *way)
{
}

const struct fab_sink *fab_way_sink(const struct fab_way *way)
{
	return NULL;
}

uint16_t fab_way_mtu(const struct fab_way *way)
{
	return 0;
}

void fab_way_count(struct fab_way *way, uint64_t packets, uint64_t dwords)
{
}

void fab_way_use(struct fab_way *way, const struct fab_way_user *user)
{
}

/* Ethernet, if the test wants it: station 7 is the cable's other end */
bool fab_is_ethernet(const struct fabric *fab, int node, int port)
{
	return cable.ethernet;
}

uint16_t fab_ethernet_find_mac(const struct fabric *fab, const uint8_t mac[FAB_MAC_BYTES])
{
	return mac[0] & 1 ? FAB_STATION_ALL : 7;
}

void fab_ethernet_mac(const struct fabric *fab, uint16_t number, uint8_t mac[FAB_MAC_BYTES])
{
}

void fab_ethernet_group_mac(const uint8_t gid[16], uint8_t mac[FAB_MAC_BYTES])
{
}

unsigned int fab_ethernet_gids(const struct fabric *fab, int node, int port,
			       struct fab_roce_gid gids[FAB_ROCE_GIDS])
{
	return 0;
}

void fab_ethernet_set_added(struct fabric *fab, int node, int port,
			    const struct fab_roce_address *address, unsigned int num)
{
}

void fab_ethernet_set_mtu(struct fabric *fab, int node, int port, unsigned int bytes)
{
}

uint16_t fab_ethernet_mtu(const struct fabric *fab, int node, int port)
{
	return WIRE_MTU_MAX;
}

bool fab_ethernet_may_send(const struct fabric *fab, int node, int port, uint16_t slid,
			   uint16_t dlid)
{
	return !cable.foreign_vlan;
}

uint16_t fab_ethernet_find_gid(const struct fabric *fab, const union wire_gid *gid,
			       unsigned int path)
{
	return 0;
}

bool fab_ethernet_ask(struct fabric *fab, int node, int port, const union wire_gid *gid, unsigned int path)
{
	return false;
}

static void (*rules_changed)(void *ctx);
static void *rules_changed_ctx;

void fab_on_rules(struct fabric *fab, void (*changed)(void *ctx), void *ctx)
{
	rules_changed = changed;
	rules_changed_ctx = ctx;
}

/* the rules of faults are one that the test sets by hand */
static struct {
	enum flt_object_kind kind;
	int error, status, gone;
	struct flt_set *set;
} rule;

int fab_fault_object(struct fabric *fab, int node, enum flt_object_kind kind)
{
	return rule.kind == kind ? rule.error : 0;
}

int fab_fault_completion(struct fabric *fab, int node, uint32_t qpn, uint32_t wc_opcode)
{
	return rule.status;
}

struct flt_set *fab_faults(struct fabric *fab)
{
	return rule.set;
}

void fab_fault_gone(struct fabric *fab, int node, uint32_t qpn)
{
	rule.gone++;
}

#endif
