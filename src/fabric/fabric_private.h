/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the fabric's files share.
 *
 *   fabric.c   nodes, adapters, effects of MADs, read-outs
 *   link.c     cables: training, down, up
 *   packet.c   the headers a switch looks at
 *   route.c    the way of a unicast packet, worked out and remembered
 *   way.c      ways of flows that short-cut the fabric
 *   watch.c    captures: who sees the packets at a port
 *   forward.c  unicast and multicast packets on their way, counted
 *   smp.c      packets on VL15, directed routes
 *   fault.c    rules: what they do to a packet on a link
 *   hold.c     packets that come later, or wait for room
 *   outage.c   links, switches and adapters that rules take away
 *   agents.c   MADs for nodes' own agents, their answers, traps
 */
#ifndef SOFTIB_FABRIC_PRIVATE_H
#define SOFTIB_FABRIC_PRIVATE_H

#include "fabric/fabric.h"
#include "wire/address.h"

#define FAB_MAX_HOPS 64	     /* switches on a way: ends loops of tables */
#define FAB_CACHED_HOPS 8    /* links of a way that is remembered */
#define FAB_CACHE_ENTRIES 2048 /* a power of two */
#define FAB_JOBS_MAX 8192    /* MADs that wait for agents */

/** struct fab_port - a port's cable and who listens behind it */
struct fab_port {
	struct fab_sink sink; /* deliver NULL: no adapter */
	const struct fab_tap *tap;
	struct fabric *fab;
	int node, peer_node;
	uint8_t num, peer_port;
	uint16_t watches; /* that have it in their scope */
	bool plugged; /* as its owner wants it */
	bool cut;     /* rules hold it out */
	bool fall_first; /* of @training: down, and up the next time */
	uint32_t pending; /* enum ag_change bits not yet told to the sink */
	struct list_head pending_node;
	struct rt_timer training;
	uint32_t late; /* data packets that left here and are still on the link */
	mono_t late_until; /* when the last of them arrives */
	struct list_head waiting;      /* struct fab_hold: arrived, no room behind */
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

/** enum fab_verdict - how a packet's way ends */
enum fab_verdict {
	FAB_DELIVER,
	FAB_AGENT,	   /* at a switch's port 0 */
	FAB_DROP_INACTIVE, /* the port to leave by is not Active */
	FAB_DROP_NOT_READY, /* the port to arrive at is Down or Init */
	FAB_DROP_MTU,
	FAB_DROP_PKEY_OUT,
	FAB_DROP_PKEY_IN,
	FAB_DROP_NO_ROUTE,
	FAB_DROP_LOOPING,  /* out by the port it came in */
	FAB_DROP_VL,	   /* SLtoVL says 15, or more VLs than there are */
	FAB_DROP_LIFETIME, /* more hops than any fabric has */
	FAB_DROP_DLID,	   /* a CA whose LID this is not */
};

/** struct fab_step - one link of a way, and the virtual lane taken there */
struct fab_step {
	struct ag_port *from, *to;
	struct fab_port *from_port, *to_port;
	uint8_t vl;
};

/** struct fab_path - the way of a packet, as far as it comes */
struct fab_path {
	enum fab_verdict verdict;
	int num_steps;
	struct fab_port *end; /* where the verdict was made */
	uint16_t min_mtu_bytes;
	bool arming; /* a port on it is Armed and will become Active */
	struct fab_step step[FAB_MAX_HOPS + 1];
};

/** struct fab_route - a way that was remembered: delivered, all Active */
struct fab_route {
	uint32_t epoch; /* 0: empty */
	struct fab_port *start, *end;
	uint16_t dlid, pkey, min_mtu_bytes;
	uint8_t sl, num_steps;
	struct fab_step step[FAB_CACHED_HOPS];
};

/** struct fab_job - a MAD that waits for a node's agents */
struct fab_job {
	struct list_head node;
	struct fab_port *at; /* the port it came in by */
	uint16_t slid, pkey;
	uint8_t sl;
	uint32_t qpn, src_qpn; /* qpn: 0 or 1 */
	uint8_t mad[WIRE_MAD_BYTES];
};

/** struct fab_hold - a packet on a link, or behind one without room to go on */
struct fab_hold {
	struct list_head node;
	struct fab_step step; /* of the link that it is on */
	mono_t due;	      /* when it arrives; when waiting, since when */
	uint32_t rule;	      /* reorder: flt_hold_over()'s; 0: by time only */
	bool late;	      /* counted in the port that it left */
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

/** struct fab_faults - all of a fabric's faults; made with the first rule or tap */
struct fab_faults {
	struct flt_set set;
	struct flt_hit *log;
	unsigned int num_packet_rules, num_qp_rules;
	struct fab_outage outage[FLT_RULES_MAX];
	/* --- hold.c --- */
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
	struct fab_node *node;
	int num_nodes;
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
	struct list_head pending;   /* ports with changes to tell */
	struct rt_work pending_work;
	psn_t next_psn; /* of the agents' own packets */
	struct fab_fault_ops fault_ops;
	struct fab_faults *faults; /* NULL before the first rule or tap */
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

/** fab_is_plugged() - is a cable in, and no rule holds it out? */
static inline bool fab_is_plugged(const struct fab_port *port)
{
	return port->peer_node >= 0 && port->plugged && !port->cut;
}

/** fab_peer() - the port at the cable's other end; NULL none, pulled, or one of
 *  the two without power */
static inline struct fab_port *fab_peer(const struct fab_port *port)
{
	struct fab_node *node = port->fab->node;

	if (!fab_is_plugged(port) || node[port->node].dead || node[port->peer_node].dead)
		return NULL;
	return &node[port->peer_node].port[port->peer_port];
}

/** fab_inspects() - must packets go link by link? Else they take remembered ways */
static inline bool fab_inspects(const struct fabric *fab)
{
	const struct fab_faults *f = fab->faults;

	return fab->num_taps || (f && (f->num_packet_rules || !list_empty(&f->holds)));
}

/** fab_is_inside() - a step that turns round in an adapter instead of a link */
static inline bool fab_is_inside(const struct fab_step *step)
{
	return step->from_port == step->to_port;
}

/** fab_port_has_lid() - is unicast @lid one of an end port's? (7.11) */
static inline bool fab_port_has_lid(const struct ag_port *port, uint16_t lid)
{
	return wire_addr_is_of(wire_addr_of_lid(lid), wire_port_addrs(port->lid, port->lmc));
}

/** fab_inside() - the step of a packet that turns round at @port */
static inline struct fab_step fab_inside(struct fab_port *port)
{
	return (struct fab_step){fab_ag_port(port), fab_ag_port(port), port, port, 0};
}

/* --- fabric.c --- */
/** fab_changed() - changes at a port: routes, adapter and traps follow */
void fab_changed(struct fab_port *port, uint32_t changes);
/** fab_rearm() - the agents' next expiry may have moved */
void fab_rearm(struct fab_node *node);
/** fab_node_reset() - as it was made: no table, no LID, no count */
void fab_node_reset(struct fab_node *node);
/** fab_port_of() - NULL: there is none */
struct fab_port *fab_port_of(const struct fabric *fab, int node, int port);

/* --- link.c --- */
void fab_link_init(struct fab_port *port);
/** fab_link_train() - bring a cable to what both its ends ask for, now */
void fab_link_train(struct fab_port *port);
/** fab_link_retrain() - the same after the time that links need */
void fab_link_retrain(struct fab_port *port);

/* --- packet.c --- */
/** fab_mad_encode() - a MAD as a UD packet. @buf: 512 bytes. Return: its length */
size_t fab_mad_encode(const struct fab_job *job, uint16_t slid, uint16_t dlid, psn_t psn,
		      uint8_t *buf);

/* --- route.c --- */
/** fab_route_find() - a remembered way; NULL */
const struct fab_route *fab_route_find(struct fab_port *start, const struct fab_packet *pkt);
/** fab_route_walk() - work a unicast packet's way out
 *  @start: a CA's port it leaves by, or a switch's port 0 */
void fab_route_walk(struct fab_port *start, const struct fab_packet *pkt, struct fab_path *path);
void fab_route_remember(struct fab_port *start, const struct fab_packet *pkt,
			const struct fab_path *path);
/** fab_switch_relay() - where a switch sends unicast @dlid: a port; 0 is
 *  itself; WIRE_LFT_NO_PORT */
uint8_t fab_switch_relay(const struct ag_node *sw, uint16_t dlid);
/** fab_step_of() - the link from @out onward for a packet that came in by @in;
 *  its VL is by SLtoVL (7.6.6) unless it is VL15's */
struct fab_step fab_step_of(const struct fab_port *in, struct fab_port *out,
			    const struct fab_packet *pkt);
/** fab_step_check() - may @pkt leave by @out of a switch or CA and enter the
 *  peer's port? @in: the switch's port it came in by. FAB_DELIVER: yes */
enum fab_verdict fab_step_check(struct fab_port *in, struct fab_port *out,
				const struct fab_packet *pkt);
/** fab_enter_check() - of that the part at the door in */
enum fab_verdict fab_enter_check(const struct fab_port *to, const struct fab_packet *pkt);

/* --- forward.c --- */
/** fab_forward() - a unicast or multicast data packet. Return: 0; -EAGAIN */
int fab_forward(struct fab_port *start, const struct fab_packet *pkt);
/** fab_deliver() - to the adapter; where there is none the node's agents
 *  answer as firmware does. Return: 0; -EAGAIN no room */
int fab_deliver(struct fab_port *to, const struct fab_packet *pkt);
/** fab_count_step() - a packet crossed a link: sent, and received */
void fab_count_step(const struct fab_step *step, const struct fab_packet *pkt);
void fab_count_sent(const struct fab_step *step, const struct fab_packet *pkt);
void fab_count_received(const struct fab_step *step, const struct fab_packet *pkt);
/** fab_count_drop() - why one ended, at the port where it did */
void fab_count_drop(struct fab_port *at, enum fab_verdict verdict, const struct fab_packet *pkt);
/** fab_arrive() - a packet that was held up on its way comes in by @in: it goes
 *  on by the tables of this moment. Return: 0; -EAGAIN no room, try again */
int fab_arrive(struct fab_port *in, const struct fab_packet *pkt);
/** fab_activate() - data crossed a link: an Armed port behind it is Active */
void fab_activate(const struct fab_step *step);
/** fab_tap() - let the tap at a port see it. False: lost there */
bool fab_tap(const struct fab_port *port, bool sent, const struct fab_packet *pkt);

/* --- fault.c --- */
/**
 * fab_cross() - taps and rules look at a packet on a link
 * @hops: links before it on this way
 * Return: true: it is at the other end as it was, and not counted yet; false:
 * it is lost, or changed, or comes later, and that was counted and seen to
 */
bool fab_cross(const struct fab_step *step, const struct fab_packet *pkt, int hops);
/** fab_busy() - must a packet stay with its sender: is a link of its way full? */
bool fab_busy(const struct fab_step *steps, int n, const struct fab_packet *pkt);
/** fab_way_watched() - do rules want the packets of a link? */
bool fab_way_watched(const struct fab_step *step);
/** fab_faults_make() - make room for rules and held packets. False: no memory */
bool fab_faults_make(struct fabric *fab);
void fab_faults_free(struct fabric *fab);

/* --- way.c --- */
/** fab_routes_changed() - something of @node changed: remembered routes are void, and
 *  users of ways that it ended are told */
void fab_routes_changed(struct fab_node *node);
/** fab_rules_changed() - remembered routes and all ways are void */
void fab_rules_changed(struct fabric *fab);

/* --- hold.c --- */
void fab_holds_init(struct fab_faults *f);
void fab_holds_free(struct fab_faults *f);
/** fab_is_late() - are there data packets on this link that @pkt may not
 *  overtake? They outlive the rule that delayed them */
bool fab_is_late(const struct fab_step *step, const struct fab_packet *pkt);
/** fab_hold_behind() - @pkt arrives with the last of them */
void fab_hold_behind(const struct fab_step *step, const struct fab_packet *pkt);
/** fab_hold() - @pkt is on the link for @ns, or until reorder's rule lets it go */
void fab_hold(const struct fab_step *step, const struct fab_packet *pkt,
	      const struct flt_verdict *v);
/** fab_land() - it arrives at the end of the link: counted there, and on its way */
void fab_land(const struct fab_step *step, const struct fab_packet *pkt);
/** fab_hold_back() - it arrived at @in and found no room: it waits there, up to
 *  the head-of-queue lifetime; lost and counted when there is no memory */
void fab_hold_back(struct fab_port *in, const struct fab_packet *pkt);
/** fab_holds_release() - those of reorder that have waited long enough */
void fab_holds_release(struct fab_faults *f);
/** fab_holds_full() - are more bytes on links than links hold? */
bool fab_holds_full(const struct fab_faults *f);

/* --- outage.c --- */
/** fab_outage_start() - a state rule takes effect. Return: 0; -errno */
int fab_outage_start(struct fab_faults *f, struct flt_rule *rule);
/** fab_outage_end() - a state rule is cleared */
void fab_outage_end(struct fab_faults *f, const struct flt_rule *rule);

/* --- watch.c --- */
/** fab_show() - to the watches of one end: a packet was sent, or received */
void fab_show(const struct fab_step *step, const struct fab_packet *pkt, bool sent);

/* --- smp.c --- */
/** fab_smp_send() - a packet on VL15 leaves a port (a switch's 0: by its
 *  tables); @len bytes are copied */
void fab_smp_send(struct fab_port *start, const struct fab_packet *pkt);
/** fab_smp_arrive() - one that was held up comes in by @in */
void fab_smp_arrive(struct fab_port *in, const struct fab_packet *pkt);
/** fab_smp_leave() - one of a directed route leaves a switch by @out */
void fab_smp_leave(struct fab_port *out, const struct fab_packet *pkt);

/* --- agents.c --- */
void fab_agents_init(struct fabric *fab);
void fab_agents_exit(struct fabric *fab);
/** fab_agents_queue() - a MAD reached a node's own agents at port @at */
void fab_agents_queue(struct fab_port *at, const struct fab_packet *pkt);
/** fab_agents_traps() - send what is due of a node's traps */
void fab_agents_traps(struct fab_node *node);

#endif
