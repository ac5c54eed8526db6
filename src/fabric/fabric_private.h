/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the fabric's files share.
 *
 *   fabric.c   nodes, adapters, effects of MADs
 *   link.c     cables: training, down, up
 *   outlet.c   cables that leave the fabric
 *   packet.c   decoding of packets, encoding of the agents' MADs
 *   route.c    resolves the way of a unicast packet, and caches it
 *   way.c      ways of flows whose packets bypass the fabric
 *   watch.c    observers of packets (captures)
 *   forward.c  forwards and counts unicast and multicast packets
 *   smp.c      packets on VL15, directed routes
 *   fault.c    applies fault rules to packets on a link
 *   delay.c    packets that are delayed, or wait for room
 *   outage.c   links, switches and adapters that rules take down
 *   agents.c   MADs for the nodes' own agents, their answers, traps
 *   ethernet.c stations and switches of a fabric without subnet manager; ethernet_private.h has its parts
 */
#ifndef SOFTIB_FABRIC_PRIVATE_H
#define SOFTIB_FABRIC_PRIVATE_H

#include "fabric/fabric.h"
#include "fabric/outlet.h"
#include "wire/address.h"

#define FAB_MAX_HOPS 64	     /* switches on a way; ends loops in forwarding tables */
#define FAB_CACHED_HOPS 8    /* links of a way that is cached */
#define FAB_CACHE_ENTRIES 2048 /* a power of two */
#define FAB_JOBS_MAX 8192    /* MADs that wait for agents */

/** struct fab_port - a port, its cable and its adapter */
struct fab_port {
	struct fab_sink sink; /* deliver NULL: no adapter */
	const struct fab_tap *tap;
	struct fabric *fab;
	int node, peer_node;
	uint8_t num, peer_port;
	uint16_t watches; /* number of watches that include this port */
	uint16_t frame_mtu; /* of Ethernet: bytes of a frame that it sends, without the header */
	bool plugged; /* by fab_link_set() */
	bool cut;     /* fault rules hold the cable out */
	bool fall_first; /* @training first takes the link down, and the next time up */
	bool falling;	 /* it has done the first */
	uint32_t pending; /* enum ag_change bits that the sink has not been told yet */
	struct list_head pending_node;
	struct rt_timer training;
	uint32_t late; /* data packets that left here and are still on the link */
	mono_t late_until; /* when the last of them arrives */
	struct list_head waiting;      /* struct fab_delayed: packets that arrived and find no room */
	struct list_head waiting_node; /* in fab_faults.blocked */
};

/** struct fab_node - a CA or switch */
struct fab_node {
	struct fabric *fab;
	struct ag_node *ag;
	void *seldom; /* ag_node_config.seldom */
	struct fab_port *port; /* [0..num_ports] */
	struct rt_timer expiry; /* ag_expiry() */
	struct list_head ways;	/* struct fab_stop.node */
	bool dead;		/* without power */
};

/** enum fab_verdict - the result of forwarding a packet */
enum fab_verdict {
	FAB_DELIVER,
	FAB_AGENT,	   /* it is for a switch's port 0 */
	FAB_DROP_INACTIVE, /* the egress port is not Active */
	FAB_DROP_NOT_READY, /* the ingress port is Down or Init */
	FAB_DROP_MTU,
	FAB_DROP_PKEY_OUT,
	FAB_DROP_PKEY_IN,
	FAB_DROP_NO_ROUTE,
	FAB_DROP_LOOPING,  /* the table sends it out of its ingress port */
	FAB_DROP_VL,	   /* SLtoVL gives 15, or a VL that does not exist */
	FAB_DROP_LIFETIME, /* it has passed too many switches */
	FAB_DROP_DLID,	   /* the CA does not have this LID */
};

/** struct fab_step - one link of a way, and the virtual lane taken there */
struct fab_step {
	struct ag_port *from, *to;
	struct fab_port *from_port, *to_port;
	uint8_t vl;
};

/** struct fab_path - the way of a packet, up to where it is delivered or dropped */
struct fab_path {
	enum fab_verdict verdict;
	int num_steps;
	struct fab_port *end; /* where the verdict was made */
	uint16_t min_mtu_bytes;
	bool arming; /* a port on it is Armed and will become Active */
	struct fab_step step[FAB_MAX_HOPS + 1];
};

/** struct fab_route - a cached way, on which packets are delivered and all ports are Active */
struct fab_route {
	uint32_t epoch; /* 0: empty */
	struct fab_port *start, *end;
	uint16_t dlid, pkey, min_mtu_bytes;
	uint8_t sl, num_steps;
	struct fab_step step[FAB_CACHED_HOPS];
};

/** struct fab_job - a MAD that is queued for a node's agents */
struct fab_job {
	struct list_head node;
	struct fab_port *at; /* its ingress port */
	uint16_t slid, pkey;
	uint8_t sl;
	uint32_t qpn, src_qpn; /* qpn: 0 or 1 */
	uint8_t mad[WIRE_MAD_BYTES];
};

/** struct fab_delayed - a packet that is delayed on a link, or waits for room at its end */
struct fab_delayed {
	struct list_head node;
	struct fab_step step; /* of the link that it is on */
	mono_t due;	      /* when it arrives; for a waiting packet, since when it waits */
	uint32_t rule;	      /* reorder: the argument of flt_hold_over(); 0: released by time only */
	bool late;	      /* it is counted in fab_port.late */
	uint8_t way;
	uint64_t until;
	struct fab_packet pkt; /* of @bytes */
	uint8_t bytes[];
};

/** struct fab_outage - a state rule and its timer */
struct fab_outage {
	uint32_t rule; /* 0: unused */
	bool on;
	struct rt_timer timer;
	struct fabric *fab;
};

/** struct fab_faults - all faults of a fabric; created with the first rule or tap */
struct fab_faults {
	struct flt_set set;
	struct flt_hit *log;
	unsigned int num_packet_rules, num_qp_rules;
	struct fab_outage outage[FLT_RULES_MAX];
	/* --- delay.c --- */
	struct list_head holds; /* by due */
	size_t held_bytes;
	unsigned int num_reordered; /* of holds */
	bool releasing;
	struct rt_timer due, retry;
	struct rt_work reordered;
	struct list_head blocked; /* ports with a waiting packet */
	struct fabric *fab;
};

struct fabric {
	struct rt *rt;
	const struct topology *topo;
	struct fab_node *node; /* [num_nodes + FAB_OUTLETS_MAX] */
	int num_nodes;	       /* of the topology; behind them: the far ends of outlets */
	uint8_t *seldom; /* of all nodes: ag_node_config.seldom */
	uint32_t epoch;
	unsigned int num_taps;
	struct list_head watches;
	void (*rules_changed)(void *ctx); /* see fab_on_rules() */
	void *rules_changed_ctx;
	struct fab_route *cache; /* FAB_CACHE_ENTRIES */
	struct list_head jobs;
	unsigned int num_jobs;
	struct rt_work agents_work; /* runs jobs */
	struct list_head pending;   /* ports whose sinks have to be told of changes */
	struct rt_work pending_work;
	psn_t next_psn; /* of the agents' own packets */
	struct fab_fault_ops fault_ops;
	struct fab_faults *faults; /* NULL before the first rule or tap */
	struct fab_ethernet *ethernet; /* NULL: the links are InfiniBand's */
};

static inline struct fab_node *fab_node_of(const struct fab_port *port)
{
	return &port->fab->node[port->node];
}

static inline struct ag_port *fab_ag_port(const struct fab_port *port)
{
	return &fab_node_of(port)->ag->port[port->num];
}

static inline bool fab_is_switch(const struct fab_port *port)
{
	return fab_node_of(port)->ag->sw != NULL;
}

/** fab_is_outlet() - is this the far end of a cable that leaves the fabric? */
static inline bool fab_is_outlet(const struct fab_port *port)
{
	return port->node >= port->fab->num_nodes;
}

/** fab_is_plugged() - is a cable plugged in, and not held out by a fault rule? */
static inline bool fab_is_plugged(const struct fab_port *port)
{
	return port->peer_node >= 0 && port->plugged && !port->cut;
}

/** fab_peer() - the port at the cable's other end; NULL if there is no cable, it is
 *  pulled, or one of the two nodes has no power */
static inline struct fab_port *fab_peer(const struct fab_port *port)
{
	struct fab_node *node = port->fab->node;

	if (!fab_is_plugged(port) || node[port->node].dead || node[port->peer_node].dead)
		return NULL;
	return &node[port->peer_node].port[port->peer_port];
}

/** fab_inspects() - must a tap or a fault rule see packets on each link? Otherwise they use
 *  cached ways */
static inline bool fab_inspects(const struct fabric *fab)
{
	const struct fab_faults *f = fab->faults;

	return fab->num_taps || (f && (f->num_packet_rules || !list_empty(&f->holds)));
}

/** fab_is_inside() - is this the step of a packet that does not leave the adapter? */
static inline bool fab_is_inside(const struct fab_step *step)
{
	return step->from_port == step->to_port;
}

/** fab_port_has_lid() - does an end port have unicast @lid? (7.11) */
static inline bool fab_port_has_lid(const struct ag_port *port, uint16_t lid)
{
	return wire_addr_is_of(wire_addr_of_lid(lid), wire_port_addrs(port->lid, port->lmc));
}

/** fab_inside() - the step of a packet to @port's own LID, which does not leave the adapter */
static inline struct fab_step fab_inside(struct fab_port *port)
{
	return (struct fab_step){fab_ag_port(port), fab_ag_port(port), port, port, 0};
}

/* --- fabric.c --- */
/** fab_changed() - apply changes of a port's attributes to routes, adapter, link and traps */
void fab_changed(struct fab_port *port, uint32_t changes);
/** fab_rearm() - set the node's timer to the agents' next expiry */
void fab_rearm(struct fab_node *node);
/** fab_node_reset() - return a node to its initial state: no tables, no LID, counters 0 */
void fab_node_reset(struct fab_node *node);
/** fab_port_of() - a port; NULL if it does not exist */
struct fab_port *fab_port_of(const struct fabric *fab, int node, int port);

/* --- ethernet.c --- */
/** fab_ethernet_link_changed() - a link came or went: if it is Ethernet's, its ports and the
 *  switches adapt themselves */
void fab_ethernet_link_changed(struct fabric *fab);
/** fab_ethernet_outlet_gone() - the cable at @near, which left the fabric, was removed */
void fab_ethernet_outlet_gone(const struct fab_port *near);
void fab_ethernet_free(struct fabric *fab);

/* --- link.c --- */
void fab_link_init(struct fab_port *port);
/** fab_link_train() - bring a link to the state that both ends request, at once */
void fab_link_train(struct fab_port *port);
/** fab_link_retrain() - the same after the time that training takes */
void fab_link_retrain(struct fab_port *port);

/* --- outlet.c --- */
/** fab_outlet_tell() - the contribution of @port to the training of its link may have changed: if its cable
 *  leaves the fabric, let the far side know */
void fab_outlet_tell(const struct fab_port *port);

/* --- packet.c --- */
/** fab_mad_encode() - encode a MAD as a UD packet into @buf (512 bytes). Return: its length */
size_t fab_mad_encode(const struct fab_job *job, uint16_t slid, uint16_t dlid, psn_t psn,
		      uint8_t *buf);

/* --- route.c --- */
/** fab_route_find() - look a way up in the cache. Return: NULL if it is not there */
const struct fab_route *fab_route_find(struct fab_port *start, const struct fab_packet *pkt);
/** fab_route_walk() - resolve a unicast packet's way
 *  @start: the CA's port that sends it, or a port of a switch */
void fab_route_walk(struct fab_port *start, const struct fab_packet *pkt, struct fab_path *path);
void fab_route_remember(struct fab_port *start, const struct fab_packet *pkt,
			const struct fab_path *path);
/** fab_switch_relay() - the egress port of a switch for unicast @dlid; 0 is the
 *  switch itself; WIRE_LFT_NO_PORT if there is none */
uint8_t fab_switch_relay(const struct ag_node *sw, uint16_t dlid);
/** fab_step_of() - the step over the link at @out for a packet that arrived at @in
 *  The VL is selected by SLtoVL (7.6.6), unless it is VL15. */
struct fab_step fab_step_of(const struct fab_port *in, struct fab_port *out,
			    const struct fab_packet *pkt);
/** fab_step_check() - may @pkt leave a switch or CA by @out and enter the peer's port?
 *  @in: the switch's ingress port
 *  Return: FAB_DELIVER if it may */
enum fab_verdict fab_step_check(struct fab_port *in, struct fab_port *out,
				const struct fab_packet *pkt);
/** fab_enter_check() - the part of fab_step_check() at the ingress port */
enum fab_verdict fab_enter_check(const struct fab_port *to, const struct fab_packet *pkt);

/* --- forward.c --- */
/** fab_forward() - forward a unicast or multicast data packet. Return: 0; -EAGAIN no room */
int fab_forward(struct fab_port *start, const struct fab_packet *pkt);
/** fab_deliver() - deliver a packet to the adapter, or a MAD to the node's agents if no
 *  adapter takes it. Return: 0; -EAGAIN no room */
int fab_deliver(struct fab_port *to, const struct fab_packet *pkt);
/** fab_count_step() - count a packet at both ends of a link */
void fab_count_step(const struct fab_step *step, const struct fab_packet *pkt);
void fab_count_sent(const struct fab_step *step, const struct fab_packet *pkt);
void fab_count_received(const struct fab_step *step, const struct fab_packet *pkt);
/** fab_count_drop() - count a dropped packet at port @at, by the reason */
void fab_count_drop(struct fab_port *at, enum fab_verdict verdict, const struct fab_packet *pkt);
/** fab_arrive() - a packet that was held up arrives at @in and is forwarded by the
 *  present tables. Return: 0; -EAGAIN no room, try again */
int fab_arrive(struct fab_port *in, const struct fab_packet *pkt);
/** fab_activate() - data crossed a link: if the port at its end is Armed, make it Active */
void fab_activate(const struct fab_step *step);
/** fab_tap() - let the tap at a port see a packet. Return: false if the tap drops it */
bool fab_tap(const struct fab_port *port, bool sent, const struct fab_packet *pkt);

/* --- fault.c --- */
/**
 * fab_cross() - apply taps and fault rules to a packet on a link
 * @hops: links that it has crossed before
 * Return: true if it arrives unchanged and has not been counted yet; false if it
 * is dropped, changed or delayed, all of which this function has completed
 */
bool fab_cross(const struct fab_step *step, const struct fab_packet *pkt, int hops);
/** fab_busy() - must a packet stay with its sender because a link of its way is full? */
bool fab_busy(const struct fab_step *steps, int n, const struct fab_packet *pkt);
/** fab_way_watched() - does a fault rule have to see the packets of a link? */
bool fab_way_watched(const struct fab_step *step);
/** fab_faults_make() - allocate fabric.faults. Return: false if there is no memory */
bool fab_faults_make(struct fabric *fab);
void fab_faults_free(struct fabric *fab);

/* --- way.c --- */
/** fab_routes_changed() - @node has changed: invalidate cached ways, and call moved() of
 *  flows whose way has changed */
void fab_routes_changed(struct fab_node *node);
/** fab_rules_changed() - invalidate cached ways and the ways of all flows */
void fab_rules_changed(struct fabric *fab);

/* --- delay.c --- */
void fab_delayed_init(struct fab_faults *f);
void fab_delayed_free(struct fab_faults *f);
/** fab_is_late() - are there delayed data packets on this link, which @pkt must not
 *  overtake? There may be some after the rule that delayed them was cleared. */
bool fab_is_late(const struct fab_step *step, const struct fab_packet *pkt);
/** fab_delay_behind() - delay @pkt until the last of them arrives */
void fab_delay_behind(const struct fab_step *step, const struct fab_packet *pkt);
/** fab_delay() - delay @pkt on the link by the verdict's times, or until its reorder rule
 *  releases it */
void fab_delay(const struct fab_step *step, const struct fab_packet *pkt,
	      const struct flt_verdict *v);
/** fab_land() - a delayed packet arrives at the end of the link: count and forward it */
void fab_land(const struct fab_step *step, const struct fab_packet *pkt);
/** fab_delay_for_room() - let a packet that arrived at @in and found no room wait there, for
 *  at most the head-of-queue lifetime; without memory it is dropped and counted */
void fab_delay_for_room(struct fab_port *in, const struct fab_packet *pkt);
/** fab_delayed_forget() - drop what is delayed on the link of @port, which goes away */
void fab_delayed_forget(struct fab_faults *f, const struct fab_port *port);
/** fab_delayed_release() - deliver packets whose reorder rule releases them */
void fab_delayed_release(struct fab_faults *f);
/** fab_delayed_full() - has the limit on bytes of delayed packets been exceeded? */
bool fab_delayed_full(const struct fab_faults *f);

/* --- outage.c --- */
/** fab_outage_start() - a state rule takes effect. Return: 0; -errno */
int fab_outage_start(struct fab_faults *f, struct flt_rule *rule);
/** fab_outage_end() - a state rule is cleared */
void fab_outage_end(struct fab_faults *f, const struct flt_rule *rule);

/* --- watch.c --- */
/** fab_show() - report a packet to the watches of one end, as sent or as received */
void fab_show(const struct fab_step *step, const struct fab_packet *pkt, bool sent);

/* --- smp.c --- */
/** fab_smp_send() - send a packet on VL15 from a CA's port, or from a switch's port 0,
 *  where the switch's table routes it; the packet is copied */
void fab_smp_send(struct fab_port *start, const struct fab_packet *pkt);
/** fab_smp_arrive() - a packet on VL15 that was held up arrives at @in */
void fab_smp_arrive(struct fab_port *in, const struct fab_packet *pkt);
/** fab_smp_leave() - send a directed-route SMP from a switch's port @out */
void fab_smp_leave(struct fab_port *out, const struct fab_packet *pkt);

/* --- agents.c --- */
void fab_agents_init(struct fabric *fab);
void fab_agents_exit(struct fabric *fab);
/** fab_agents_queue() - a MAD reached a node's own agents at port @at */
void fab_agents_queue(struct fab_port *at, const struct fab_packet *pkt);
/** fab_agents_traps() - send the traps of a node that are due */
void fab_agents_traps(struct fab_node *node);

#endif
