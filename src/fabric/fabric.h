/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The fabric: ports, links, switches, and the packets between them. A packet
 * goes hop by hop through the switches' tables as the subnet manager set
 * them; every port on its way counts it. Adapters (src/hca) attach to ports.
 * One thread (struct rt) owns a fabric; nothing here is reentrant.
 */
#ifndef SOFTIB_FABRIC_H
#define SOFTIB_FABRIC_H

#include "agents/agents.h"
#include "fabric/topology.h"
#include "fault/fault.h"
#include "runtime/rt.h"
#include "wire/packet.h"

struct fabric;

/** struct fab_packet - a packet and what is read of it, once, where it begins: the checks
 *  of who may send it, the fabric, and the adapter that it reaches look at this */
struct fab_packet {
	const uint8_t *bytes; /* LRH to pad, without CRCs */
	size_t len;
	struct wire_lrh lrh;
	uint16_t pkey;
	uint8_t opcode;
	uint32_t dest_qpn;
	uint32_t src_qpn, qkey; /* 0 without a DETH */
	uint32_t payload_bytes; /* pad included */
	/* --- what happened to it on its way: the fabric's --- */
	uint8_t hops;	    /* links that it crossed and then was held up at */
	bool copied;	    /* one of several: not multiplied again */
	uint8_t wrong_crcs; /* bits of enum fab_crcs: who checks them finds out */
	uint8_t rnr_mark;   /* struct wire_lrh's, for its destination */
};

/** fab_packet_decode() - @bytes: LRH to pad, without CRCs; they stay the caller's, as long
 *  as *@pkt is used. Return: 0; -EINVAL not a packet */
int fab_packet_decode(struct fab_packet *pkt, const void *bytes, size_t len);
/** fab_packet_grh() - the GRH of a packet that has one (lrh.lnh) */
struct wire_grh fab_packet_grh(const struct fab_packet *pkt);

/** struct fab_sink - an adapter's side of a port; all called from the loop */
struct fab_sink {
	/**
	 * deliver() - a packet reached this port
	 * @pkt: valid during the call
	 * Return: 0 taken or rightly dropped; -EAGAIN no room: the sender
	 * holds it and offers it again (link-level flow control); -ENOENT a
	 * MAD, and nobody is at QP0 or QP1: the node's agents answer it
	 */
	int (*deliver)(void *ctx, const struct fab_packet *pkt);
	/** changed() - port attributes changed: enum ag_change bits */
	void (*changed)(void *ctx, uint32_t changes);
	void *ctx;
};

int fab_create(struct rt *rt, const struct topology *topo, struct fabric **fab);
void fab_destroy(struct fabric *fab);

/** fab_node() - agents' state of node @index (as in the topology) */
struct ag_node *fab_node(struct fabric *fab, int index);
const struct topology *fab_topology(const struct fabric *fab);
/** fab_rt() - the loop that it was made with */
struct rt *fab_rt(const struct fabric *fab);

/** fab_attach() - let an adapter serve port @port (1..) of a CA; @sink is
 *  copied, NULL detaches. Without one the node's agents answer at the port. */
void fab_attach(struct fabric *fab, int node, int port, const struct fab_sink *sink);

/**
 * fab_send() - a packet leaves an adapter's port
 * @pkt: as fab_packet_decode() made it
 * The whole way to the destination is walked at once; a packet for a
 * destination without room is not sent. A multicast packet also comes back
 * to the sender's own port; a unicast one to the port's own LID stays there.
 * The VL is the fabric's to choose by SLtoVL, unless it is 15. The SLID and
 * an SMP's hop pointer are the sender's: ag_dr_send() has been applied.
 * Return: 0 sent, or dropped and counted where the specification says;
 * -EAGAIN the destination is full: the caller holds the packet, offers it
 * again at its next turn, and drops it after the head-of-queue lifetime
 * (fab_discard() counts it).
 */
int fab_send(struct fabric *fab, int node, int port, const struct fab_packet *pkt);

/** fab_discard() - the adapter gave up a held packet: PortXmitDiscards */
void fab_discard(struct fabric *fab, int node, int port);

/** fab_process_mad() - the SMA and PMA of a CA port answer @in
 *  (256 bytes): see ag_process(); effects on the fabric take place. */
int fab_process_mad(struct fabric *fab, int node, int port, const struct ag_mad_context *context,
		    const void *in, void *out);

/** fab_link_set() - plug (@up) or pull the cable at a port; one that is so
 *  already is left alone. 0; -ENOENT; -EBUSY a rule holds it out:
 *  fab_link_holder() */
int fab_link_set(struct fabric *fab, int node, int port, bool up);
/** fab_set_is_sm() - CapabilityMask.IsSM of a CA port: trap 144 */
void fab_set_is_sm(struct fabric *fab, int node, int port, bool on);
/** fab_link_plugged() - is a cable in this port? (Its state is ag_port's.) */
bool fab_link_plugged(const struct fabric *fab, int node, int port);
/** fab_link_holder() - the rule that holds this port's cable out; 0 none */
uint32_t fab_link_holder(const struct fabric *fab, int node, int port);
/** fab_link_returns() - do rules alone hold this port's cable out, and will they
 *  let it in again by themselves ("down for=")? */
bool fab_link_returns(const struct fabric *fab, int node, int port);
/** fab_find_lid() - which port answers to unicast @lid: *@node, *@port.
 *  Return: 0; -ENOENT. Walks all nodes: for people, not for packets. */
int fab_find_lid(const struct fabric *fab, uint16_t lid, int *node, int *port);
/** fab_traps_changed() - the adapter queued a notice (ag_trap_*()) at a CA:
 *  have it sent */
void fab_traps_changed(struct fabric *fab, int node);

/**
 * struct fab_tap - sees, and may take away, each packet at a port: tests' own
 * faults. No flow through a tapped port goes past the fabric.
 */
struct fab_tap {
	/** packet() - @sent: leaves through the port, else arrives. Return:
	 *  false when it is lost here */
	bool (*packet)(void *ctx, int node, int port, bool sent, const void *bytes, size_t len);
	void *ctx;
};
/** fab_tap_set() - @tap stays the caller's; NULL takes it off */
void fab_tap_set(struct fabric *fab, int node, int port, const struct fab_tap *tap);

/** enum fab_crcs - what a fault did to a packet's CRCs */
enum fab_crcs { FAB_WRONG_ICRC = 1, FAB_WRONG_VCRC = 2 };

/** struct fab_sight - a packet as one port sees it on its cable */
struct fab_sight {
	int node, port;
	bool sent;	   /* leaves through the port, else arrives */
	uint8_t vl;	   /* that it travels on; the LRH's is not the wire's */
	uint8_t wrong_crcs; /* bits of enum fab_crcs */
	const void *bytes; /* LRH to pad, without CRCs; valid during the call */
	size_t len;
};

/**
 * struct fab_watch - sees each packet on the cables of some ports and changes
 * nothing about it but speed: routes stay, short-cuts go where it looks
 */
struct fab_watch {
	struct list_head node; /* the fabric's */
	int only_node;	       /* -1: all */
	int only_port;	       /* 0: all */
	/** packet() - after the fault verdict, before the receiver acts on it */
	void (*packet)(void *ctx, const struct fab_sight *sight);
	void *ctx;
};
/** fab_watch_add() - @watch stays the caller's, until fab_watch_del() */
void fab_watch_add(struct fabric *fab, struct fab_watch *watch);
void fab_watch_del(struct fabric *fab, struct fab_watch *watch);

/* --- faults: docs/FAULTS.md --- */

/** struct fab_fault_ops - what rules need of those above the fabric; any may be NULL */
struct fab_fault_ops {
	/** has_qp() - is there such a queue pair at an adapter? */
	bool (*has_qp)(void *ctx, int node, uint32_t qpn);
	/** source_qpn() - of a packet without DETH that leaves @node: the QP that is
	 *  connected to (@dlid, @dest_qpn); 0 none */
	uint32_t (*source_qpn)(void *ctx, int node, uint16_t dlid, uint32_t dest_qpn);
	/** adapter() - "remove": take the adapter of a node away, or bring it back.
	 *  Return: 0; -errno */
	int (*adapter)(void *ctx, int node, bool present);
	/** event() - "event": of a QP when @qpn is not 0, else of a port. 0; -errno */
	int (*event)(void *ctx, int node, int port, uint32_t qpn, uint32_t event);
	void *ctx;
};
/** fab_fault_ops_set() - @ops is copied */
void fab_fault_ops_set(struct fabric *fab, const struct fab_fault_ops *ops);

/**
 * fab_fault_add() - a rule takes effect with the next packet
 * @text: see flt_parse(). @seed: of the rule; 0: what its text says, or chance
 * @err: on failure why, and what is accepted
 * Return: its id; -EINVAL, -ENOSPC, -ENOMEM, -EOPNOTSUPP nobody here can do it
 */
int fab_fault_add(struct fabric *fab, const char *text, uint64_t seed, char *err,
		  size_t err_bytes);
/** fab_fault_clear() - a rule ends, and what it holds on its way goes on;
 *  what it alone took down comes back. @id 0: all. Return: 0; -ENOENT */
int fab_fault_clear(struct fabric *fab, uint32_t id);
/** fab_fault_is_on() - does a state rule hold its link or node at this moment? */
bool fab_fault_is_on(const struct fabric *fab, uint32_t id);
/** fab_fault_gone() - a queue pair (@qpn), or with 0 an adapter, is no more:
 *  its rules go too, but one that would bring it back */
void fab_fault_gone(struct fabric *fab, int node, uint32_t qpn);
/** fab_faults() - the rules and the log; NULL before the first rule */
struct flt_set *fab_faults(struct fabric *fab);
/** fab_fault_names() - this fabric's names, for flt_print() */
struct flt_names fab_fault_names(struct fabric *fab);
/** fab_fault_object(), fab_fault_completion() - flt_object() and
 *  flt_completion() at once where there are no rules */
int fab_fault_object(struct fabric *fab, int node, enum flt_object_kind kind);
int fab_fault_completion(struct fabric *fab, int node, uint32_t qpn, uint32_t wc_opcode);

/** fab_node_power() - a node's power goes, and its neighbours' ports go down;
 *  or comes, with every table as made. 0; -ENOENT */
int fab_node_power(struct fabric *fab, int node, bool on);

#define FAB_TRACE_HOPS 65

/** struct fab_hop - a link: out of one node's port, into another's */
struct fab_hop {
	int from_node, from_port, to_node, to_port;
	uint8_t vl;
};

/** struct fab_trace - the way of unicast packets by the tables of this moment */
struct fab_trace {
	unsigned int num_hops;
	struct fab_hop hop[FAB_TRACE_HOPS];
	uint16_t mtu_bytes; /* of the narrowest link */
	int node, port;	    /* where it ends */
	const char *lost;   /* why it does not arrive; NULL: it does */
};

/** fab_trace() - from a CA's port to @dlid. Return: 0; -ENOENT no such port, or
 *  not a unicast LID. Nothing is counted or sent. */
int fab_trace(struct fabric *fab, int node, int port, uint16_t dlid, uint8_t sl, uint16_t pkey,
	      struct fab_trace *trace);

/**
 * struct fab_way - the way of a flow that needs nothing of the fabric but to
 * be counted: every port Active, nothing dropped, no tap, no watch, no port
 * that counts by opcode
 */
struct fab_way;

/** struct fab_way_user - who sends by a way; both functions only look at the fabric */
struct fab_way_user {
	/** moved() - packets of the flow may no longer go this way unseen. Called
	 *  at most once, before whoever asked for the change can hear of it */
	void (*moved)(void *ctx);
	/** fold() - a counter on the way is about to be read: bring
	 *  fab_way_count() up to date */
	void (*fold)(void *ctx);
	void *ctx;
};

/**
 * fab_way_create() - the way of unicast packets (@dlid, @sl, @pkey) from a
 * CA's port
 * Return: 0 and *@way; -ENOENT there is no such way, or not now; -ENOMEM
 */
int fab_way_create(struct fabric *fab, int node, int port, uint16_t dlid, uint8_t sl, uint16_t pkey,
		   struct fab_way **way);
void fab_way_free(struct fab_way *way);
/** fab_way_use() - tell @user of the way's end and of readers, from here on; @user
 *  is copied */
void fab_way_use(struct fab_way *way, const struct fab_way_user *user);
/** fab_way_sink() - the adapter at its end */
const struct fab_sink *fab_way_sink(const struct fab_way *way);
/** fab_way_mtu() - bytes of payload that fit through every port of it */
uint16_t fab_way_mtu(const struct fab_way *way);
/** fab_way_count() - @packets, @dwords in all, went this way unseen */
void fab_way_count(struct fab_way *way, uint64_t packets, uint64_t dwords);
/** fab_fold() - have all counters brought up to date, before reading ag_port.count */
void fab_fold(struct fabric *fab);
/** fab_fold_node() - the same for the ports of one node: of the flows through it */
void fab_fold_node(struct fabric *fab, int node);

/** fab_epoch() - grows with every change that can matter to a route */
uint32_t fab_epoch(const struct fabric *fab);
/** fab_on_rules() - @changed is called when rules of faults, watches or taps have come
 *  or gone: any way may have ended, whether its user is told of it or not */
void fab_on_rules(struct fabric *fab, void (*changed)(void *ctx), void *ctx);

#endif
