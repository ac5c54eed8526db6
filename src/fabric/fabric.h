/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The fabric: ports, links, switches, and the packets between them. A packet
 * is forwarded hop by hop by the tables that the subnet manager has set in the
 * switches, and every port on its way counts it. Adapters (src/hca) attach to
 * ports. One thread (struct rt) owns a fabric; nothing here is reentrant.
 */
#ifndef SOFTIB_FABRIC_H
#define SOFTIB_FABRIC_H

#include "agents/agents.h"
#include "fabric/topology.h"
#include "fault/fault.h"
#include "runtime/rt.h"
#include "wire/packet.h"

struct fabric;

/* The head-of-queue lifetime (18.2.5.4) of every packet that waits for room at its destination, be it with its sender, at a
 * port, or behind a cable of another fabric; and how often it is offered again: at first, and at the last */
#define FAB_HOQ_NS	 (1 * NSEC_PER_SEC)
#define FAB_RETRY_MIN_NS (20 * NSEC_PER_USEC)
#define FAB_RETRY_MAX_NS (1 * NSEC_PER_MSEC)

/** struct fab_packet - a packet and its decoded headers. They are decoded once, where the
 *  packet enters; the check of its source, the fabric and the destination adapter use them */
struct fab_packet {
	const uint8_t *bytes; /* LRH to pad, without CRCs */
	size_t len;
	struct wire_lrh lrh;
	uint16_t pkey;
	uint8_t opcode;
	uint32_t dest_qpn;
	uint32_t src_qpn, qkey; /* 0 without a DETH */
	uint32_t payload_bytes; /* pad included */
	/* --- the adapter that sends it, and the program; for the adapter that receives it --- */
	uint32_t source; /* 1 + the node of that adapter, which may be gone; 0: an agent */
	uint32_t owner;	 /* 0: the adapter itself */
	/* --- what happened to the packet on its way; used by the fabric only --- */
	uint8_t hops;	    /* links that it had crossed when it was held up */
	bool copied;	    /* it was duplicated, and is not duplicated again */
	uint8_t wrong_crcs; /* bits of enum fab_crcs; the checks of CRCs look here */
	uint8_t rnr_mark;   /* struct wire_lrh's, for its destination */
};

/** fab_packet_decode() - decode the headers of a packet
 *  @bytes: LRH to pad, without CRCs; the caller keeps them as long as *@pkt is used
 *  Return: 0; -EINVAL not a packet */
int fab_packet_decode(struct fab_packet *pkt, const void *bytes, size_t len);
/** fab_packet_grh() - decode the GRH of a packet that has one (lrh.lnh) */
struct wire_grh fab_packet_grh(const struct fab_packet *pkt);

/** struct fab_train - datagrams of one sender to one destination, in a row */
struct fab_train {
	const uint8_t *bytes; /* of all of them, each as in struct fab_packet */
	size_t len;
	uint32_t packets;
	uint32_t dwords; /* the sum of LRH:PktLen */
};

/** struct fab_sink - an adapter's side of a port; all functions are called from the loop */
struct fab_sink {
	/**
	 * deliver() - a packet reached this port
	 * @pkt: valid during the call
	 * Return: 0 accepted, or dropped as the specification says; -EAGAIN no
	 * room: the sender keeps the packet and offers it again (link-level flow
	 * control); -ENOENT a MAD, and nobody uses QP0 or QP1: the node's own
	 * agents answer it
	 */
	int (*deliver)(void *ctx, const struct fab_packet *pkt);
	/** changed() - port attributes changed: enum ag_change bits */
	void (*changed)(void *ctx, uint32_t changes);
	void *ctx;
	/** deliver_train() - deliver() for all of @train, whose first packet is @first. NULL: the
	 *  adapter takes none. Return: 0; -EAGAIN, -EOPNOTSUPP: nothing was accepted, each packet is to
	 *  be sent by itself */
	int (*deliver_train)(void *ctx, const struct fab_packet *first, const struct fab_train *train);
};

int fab_create(struct rt *rt, const struct topology *topo, struct fabric **fab);
void fab_destroy(struct fabric *fab);

/** fab_node() - the agents' state of node @index (its index in the topology) */
struct ag_node *fab_node(struct fabric *fab, int index);
const struct topology *fab_topology(const struct fabric *fab);
/** fab_rt() - the loop that the fabric was created with */
struct rt *fab_rt(const struct fabric *fab);

/** fab_attach() - let an adapter serve port @port (1..) of a CA
 *  @sink: copied; NULL detaches the adapter. Without an adapter the node's own
 *  agents answer at the port. */
void fab_attach(struct fabric *fab, int node, int port, const struct fab_sink *sink);
/** fab_sink() - the adapter that is attached to port @port of @node
 *  Return: NULL: none is, or there is no such port */
const struct fab_sink *fab_sink(struct fabric *fab, int node, int port);

/**
 * fab_send() - a packet leaves an adapter's port
 * @pkt: as fab_packet_decode() made it
 * The packet travels all the way to the destination in this call; a packet for
 * a destination without room is not sent. A multicast packet is also delivered
 * to the sender's own port; a unicast packet to the port's own LID does not
 * leave the adapter. The fabric selects the VL by SLtoVL, unless it is 15. The
 * sender sets the SLID, and has called ag_dr_send() for a directed-route SMP.
 * Return: 0 sent, or dropped and counted where the specification says;
 * -EAGAIN the destination is full: the caller keeps the packet, offers it
 * again at its next turn, and drops it after the head-of-queue lifetime
 * (fab_discard() counts it).
 */
int fab_send(struct fabric *fab, int node, int port, const struct fab_packet *pkt);

/**
 * fab_send_train() - fab_send() of several datagrams at once
 * @first: the first packet, decoded; the others differ from it in PSN, length and payload
 *
 * Their way is resolved once. They are counted on each link as single packets are.
 * Return: 0; -EAGAIN, -EOPNOTSUPP: nothing was sent, because there is no room for all, or because a
 * tap, a capture, a fault rule or a counter on the way, or the destination, wants to see each of them:
 * the caller sends each by itself
 */
int fab_send_train(struct fabric *fab, int node, int port, const struct fab_packet *first,
		   const struct fab_train *train);

/** fab_discard() - count a packet that the adapter dropped after the head-of-queue
 *  lifetime (PortXmitDiscards) */
void fab_discard(struct fabric *fab, int node, int port);

/** fab_process_mad() - let the SMA and PMA of a CA port answer @in (256 bytes)
 *  and apply the effects to the fabric; see ag_process() */
int fab_process_mad(struct fabric *fab, int node, int port, const struct ag_mad_context *context,
		    const void *in, void *out);

/** fab_link_set() - plug in (@up) or pull the cable at a port
 *  Return: 0, also if nothing had to change; -ENOENT no such port or cable;
 *  -EBUSY a fault rule holds the cable out, see fab_link_holder() */
int fab_link_set(struct fabric *fab, int node, int port, bool up);
/** fab_set_capability() - set or clear the bits @mask of a CA port's CapabilityMask; a change
 *  sends trap 144 */
void fab_set_capability(struct fabric *fab, int node, int port, uint32_t mask, bool on);
/** fab_link_plugged() - is a cable plugged into this port? (ag_port has the link's state.) */
bool fab_link_plugged(const struct fabric *fab, int node, int port);
/** fab_link_holder() - the fault rule that holds this port's cable out; 0 none */
uint32_t fab_link_holder(const struct fabric *fab, int node, int port);
/** fab_link_returns() - is this port's cable held out only by fault rules that end by
 *  themselves ("down for=")? */
bool fab_link_returns(const struct fabric *fab, int node, int port);
/** fab_find_lid() - find the port that has unicast @lid: *@node, *@port
 *  It walks all nodes, so it is for control commands and not for packets.
 *  Return: 0; -ENOENT */
int fab_find_lid(const struct fabric *fab, uint16_t lid, int *node, int *port);
/** fab_traps_changed() - send a notice that the adapter has queued at a CA (ag_trap_*()) */
void fab_traps_changed(struct fabric *fab, int node);

/**
 * struct fab_tap - a hook of tests that sees each packet at a port and may drop
 * it. Flows through a tapped port use neither lanes nor windows.
 */
struct fab_tap {
	/** packet() - a packet at the port
	 *  @sent: it leaves through the port; otherwise it arrives
	 *  Return: false to drop it */
	bool (*packet)(void *ctx, int node, int port, bool sent, const void *bytes, size_t len);
	void *ctx;
};
/** fab_tap_set() - set the tap of a port
 *  @tap: owned by the caller; NULL removes the tap */
void fab_tap_set(struct fabric *fab, int node, int port, const struct fab_tap *tap);

/** enum fab_crcs - what a fault did to a packet's CRCs */
enum fab_crcs { FAB_WRONG_ICRC = 1, FAB_WRONG_VCRC = 2 };

/** struct fab_sight - a packet as one port sees it on its cable */
struct fab_sight {
	int node, port;
	bool sent;	   /* it leaves through the port; otherwise it arrives */
	uint8_t vl;	   /* on this cable; the LRH in @bytes does not have it */
	uint8_t wrong_crcs; /* bits of enum fab_crcs */
	const void *bytes; /* LRH to pad, without CRCs; valid during the call */
	size_t len;
};

/**
 * struct fab_watch - an observer of the packets on the cables of some ports. It
 * changes nothing but speed: flows through these ports use neither lanes nor
 * windows
 */
struct fab_watch {
	struct list_head node; /* in the fabric's list */
	int only_node;	       /* -1: all */
	int only_port;	       /* 0: all */
	/** packet() - called after the fault verdict and before the receiver acts on the packet */
	void (*packet)(void *ctx, const struct fab_sight *sight);
	void *ctx;
};
/** fab_watch_add() - add an observer; the caller owns @watch and keeps it until
 *  fab_watch_del() */
void fab_watch_add(struct fabric *fab, struct fab_watch *watch);
void fab_watch_del(struct fabric *fab, struct fab_watch *watch);

/* --- faults: docs/FAULTS.md --- */

/** struct fab_fault_ops - functions that fault rules need from the layers above; any may be
 *  NULL */
struct fab_fault_ops {
	/** has_qp() - does an adapter have this queue pair? */
	bool (*has_qp)(void *ctx, int node, uint32_t qpn);
	/** source_qpn() - find the source of a packet without DETH that leaves @node: the
	 *  QP that is connected to (@dlid, @dest_qpn); 0 none */
	uint32_t (*source_qpn)(void *ctx, int node, uint16_t dlid, uint32_t dest_qpn);
	/** adapter() - remove the adapter of a node, or bring it back ("remove")
	 *  Return: 0; -errno */
	int (*adapter)(void *ctx, int node, bool present);
	/** event() - raise an event of a QP, or of a port if @qpn is 0 ("event")
	 *  Return: 0; -errno */
	int (*event)(void *ctx, int node, int port, uint32_t qpn, uint32_t event);
	void *ctx;
};
/** fab_fault_ops_set() - @ops is copied */
void fab_fault_ops_set(struct fabric *fab, const struct fab_fault_ops *ops);

/**
 * fab_fault_add() - add a fault rule, which takes effect with the next packet
 * @text: see flt_parse()
 * @seed: of the rule; 0: the seed in its text, or a random one
 * @err: on failure a message with the reason and what is accepted
 * Return: its id; -EINVAL; -ENOSPC; -ENOMEM; -EOPNOTSUPP the layers above
 * have no function for it
 */
int fab_fault_add(struct fabric *fab, const char *text, uint64_t seed, char *err,
		  size_t err_bytes);
/** fab_fault_clear() - clear a rule: packets that it delays by "reorder" are released, and
 *  a link or node that it alone holds down comes back
 *  @id: 0: all rules
 *  Return: 0; -ENOENT */
int fab_fault_clear(struct fabric *fab, uint32_t id);
/** fab_fault_is_on() - does a state rule hold its link or node at this moment? */
bool fab_fault_is_on(const struct fabric *fab, uint32_t id);
/** fab_fault_gone() - a queue pair, or with @qpn 0 an adapter, was destroyed: clear its
 *  rules, except those that bring it back when they end */
void fab_fault_gone(struct fabric *fab, int node, uint32_t qpn);
/** fab_faults() - the rules and the log; NULL before the first rule */
struct flt_set *fab_faults(struct fabric *fab);
/** fab_fault_names() - this fabric's names, for flt_print() */
struct flt_names fab_fault_names(struct fabric *fab);
/** fab_fault_object(), fab_fault_completion() - flt_object() and flt_completion(),
 *  which return 0 at once if there are no rules */
int fab_fault_object(struct fabric *fab, int node, enum flt_object_kind kind);
int fab_fault_completion(struct fabric *fab, int node, uint32_t qpn, uint32_t wc_opcode);

/** fab_node_power() - switch a node's power off, which takes its neighbours' ports down,
 *  or on, which resets every table. Return: 0; -ENOENT */
int fab_node_power(struct fabric *fab, int node, bool on);

#define FAB_TRACE_HOPS 65

/** struct fab_hop - a link: out of one node's port, into another's */
struct fab_hop {
	int from_node, from_port, to_node, to_port;
	uint8_t vl;
};

/** struct fab_trace - the way of unicast packets by the present tables */
struct fab_trace {
	unsigned int num_hops;
	struct fab_hop hop[FAB_TRACE_HOPS];
	uint16_t mtu_bytes; /* of the narrowest link */
	int node, port;	    /* where it ends */
	const char *lost;   /* why it does not arrive; NULL: it does */
};

/** fab_trace() - find the way from a CA's port to @dlid, without sending or counting
 *  Return: 0; -ENOENT no such port, or not a unicast LID */
int fab_trace(struct fabric *fab, int node, int port, uint16_t dlid, uint8_t sl, uint16_t pkey,
	      struct fab_trace *trace);

/**
 * struct fab_way - the way of a flow whose packets may bypass the fabric, which
 * then only counts them: every port is Active, nothing is dropped, and no tap,
 * watch, fault rule or counter of opcodes has to see the packets
 */
struct fab_way;

/** struct fab_way_user - the sender of a flow; both functions must not change the fabric */
struct fab_way_user {
	/** moved() - packets of the flow may no longer bypass the fabric. Called at
	 *  most once, before the change is acknowledged to whoever requested it */
	void (*moved)(void *ctx);
	/** fold() - a counter on the way is about to be read: report the packets sent
	 *  so far by fab_way_count() */
	void (*fold)(void *ctx);
	void *ctx;
};

/**
 * fab_way_create() - resolve a flow of unicast packets (@dlid, @sl, @pkey) from a
 * CA's port
 * Return: 0 and *@way; -ENOENT its packets may not bypass the fabric at present;
 * -ENOMEM
 */
int fab_way_create(struct fabric *fab, int node, int port, uint16_t dlid, uint8_t sl, uint16_t pkey,
		   struct fab_way **way);
void fab_way_free(struct fab_way *way);
/** fab_way_use() - set the functions of the flow's sender; @user is copied */
void fab_way_use(struct fab_way *way, const struct fab_way_user *user);
/** fab_way_sink() - the adapter at its end */
const struct fab_sink *fab_way_sink(const struct fab_way *way);
/** fab_way_mtu() - the smallest MTU on the way, in bytes of payload */
uint16_t fab_way_mtu(const struct fab_way *way);
/** fab_way_count() - count @packets with @dwords in total that bypassed the fabric */
void fab_way_count(struct fab_way *way, uint64_t packets, uint64_t dwords);
/** fab_fold() - bring all counters up to date; call it before reading ag_port.count */
void fab_fold(struct fabric *fab);
/** fab_fold_node() - the same for the ports of one node */
void fab_fold_node(struct fabric *fab, int node);

/** fab_epoch() - a number that advances with every change that may affect a route */
uint32_t fab_epoch(const struct fabric *fab);
/** fab_on_rules() - call @changed whenever fault rules, watches or taps were added or
 *  removed. Any way may then have ended, without a call of its moved() */
void fab_on_rules(struct fabric *fab, void (*changed)(void *ctx), void *ctx);

#endif
