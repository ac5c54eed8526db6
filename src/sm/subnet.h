/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The model of a subnet: nodes, their ports, cables, LIDs, and the tables, both as
 * computed and as last programmed. A heavy sweep builds a new model, while the old
 * one is still used to answer queries.
 */
#ifndef SOFTIB_SM_SUBNET_H
#define SOFTIB_SM_SUBNET_H

#include "routing/routing.h"
#include "sm/map.h"
#include "wire/sa.h"

#define SM_LID_UCAST_MAX 0xbfff
#define SM_LID_MCAST_FIRST 0xc000
#define SM_MFT_POSITIONS 16 /* of 16 ports each */

/** struct sm_path - a directed route: leave by port out[1], then out[2] ... */
struct sm_path {
	uint8_t hops;
	uint8_t out[WIRE_SMP_PATH_BYTES];
};

/**
 * struct sm_port - a port of a node
 * @known: PortInfo was read. Of an adapter, only the ports that were reached.
 * @lid:   of end ports (ports of adapters and routers, port 0 of switches)
 * @path:  a way to ask about this port
 */
struct sm_port {
	struct sm_node *node;
	struct sm_port *peer;
	uint64_t guid;
	struct wire_port_info info;
	uint16_t pkeys[WIRE_PKEYS_PER_BLOCK]; /* block 0; end ports */
	uint16_t lid;
	uint8_t num, lmc;
	bool known, pkeys_known;
	bool fresh; /* was not in the subnet before this sweep */
	struct sm_path *path;
};

/** struct sm_tables - forwarding tables of a switch */
struct sm_tables {
	uint8_t *lft;		    /* wanted, by LID, whole blocks */
	uint8_t *lft_set;	    /* as programmed */
	uint8_t *lft_known;	    /* per block: lft_set is what the switch has */
	uint16_t (*mft)[SM_MFT_POSITIONS];     /* wanted, by MLID - 0xc000 */
	uint16_t (*mft_set)[SM_MFT_POSITIONS]; /* as programmed */
	uint32_t lft_size, mft_size;	       /* entries */
	bool mft_known;
};

/** struct sm_node - a switch, adapter or router */
struct sm_node {
	struct wire_node_info info;
	struct wire_node_description desc;
	struct wire_switch_info sw;
	struct sm_tables tables;
	struct sm_path path;
	uint32_t index;	   /* in subnet->nodes */
	uint32_t sw_index; /* in subnet->switches */
	uint16_t n_ports;
	bool foreign; /* a switch that another manager has configured since */
	struct sm_port ports[]; /* 0..n_ports */
};

struct sm_subnet {
	struct sm_node **nodes, **switches;
	uint32_t n_nodes, n_switches, nodes_room, switches_room;
	struct sm_map node_by_guid, port_by_guid;
	struct sm_port **by_lid; /* SM_LID_UCAST_MAX + 1 of them */
	struct sm_port *self;	 /* the manager's own port */
	uint16_t lid_max;
};

static inline bool sm_is_switch(const struct sm_node *n)
{
	return n->info.node_type == WIRE_NODE_SWITCH;
}

/** sm_is_end_port() - does this port have LIDs of its own? */
static inline bool sm_is_end_port(const struct sm_port *p)
{
	return sm_is_switch(p->node) == (p->num == 0);
}

/** sm_end_port() - the port whose LID stands for @p */
static inline const struct sm_port *sm_end_port(const struct sm_port *p)
{
	return sm_is_switch(p->node) ? &p->node->ports[0] : p;
}

static inline bool sm_port_is_up(const struct sm_port *p)
{
	return p->known && p->info.state >= WIRE_PORT_INIT;
}

struct sm_subnet *sm_subnet_create(void);
void sm_subnet_destroy(struct sm_subnet *s);

/** sm_subnet_add() - a node that answered along @path. Return: it, or NULL */
struct sm_node *sm_subnet_add(struct sm_subnet *s, const struct wire_node_info *info,
			      const struct sm_path *path);

static inline struct sm_node *sm_subnet_node(const struct sm_subnet *s, uint64_t guid)
{
	return sm_map_get(&s->node_by_guid, guid);
}

/** sm_subnet_port() - an end port by its port GUID, or NULL */
static inline struct sm_port *sm_subnet_port(const struct sm_subnet *s, uint64_t guid)
{
	return sm_map_get(&s->port_by_guid, guid);
}

/** sm_subnet_lid() - the end port that owns @lid, or NULL */
static inline struct sm_port *sm_subnet_lid(const struct sm_subnet *s, uint16_t lid)
{
	return lid <= SM_LID_UCAST_MAX ? s->by_lid[lid] : NULL;
}

/** sm_port_know() - enter PortInfo and, for end ports, the GUID. 0; -ENOMEM */
int sm_port_know(struct sm_subnet *s, struct sm_port *p, const struct wire_port_info *info);

/** sm_for_each_end_port() - walk all end ports that are known
 *  (declares the cursors itself; do not break out of the outer loop alone) */
#define sm_for_each_port(s, p)                                                        \
	for (uint32_t n_ = 0; n_ < (s)->n_nodes; n_++)                                \
		for (struct sm_port *p = (s)->nodes[n_]->ports;                       \
		     p <= (s)->nodes[n_]->ports + (s)->nodes[n_]->n_ports; p++)       \
			if (p->known)
#define sm_for_each_end_port(s, p) sm_for_each_port(s, p) if (sm_is_end_port(p))

/** sm_tables_size() - room for LIDs up to @lid_max and @n_mlids groups; keeps
 *  what is there. Return: 0; -ENOMEM */
int sm_tables_size(struct sm_tables *t, uint32_t lid_max, uint32_t n_mlids);

/** sm_tables_inherit() - what was programmed into a switch seen before.
 *  Return: 0; -ENOMEM, and nothing is known of it */
int sm_tables_inherit(struct sm_tables *to, const struct sm_tables *from);

/** sm_rate_enc() - the rate of a port's link (enum wire_rate) */
uint8_t sm_rate_enc(const struct wire_port_info *info);
/** sm_rate_at_most() - the fastest encoding that is not above @mbps, or 0 */
uint8_t sm_rate_at_most(uint32_t mbps);

#endif
