/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The topology builder: the generators (topo_shape.c) and the parser
 * (topo_parse.c, topo_join.c) add nodes and cables with these functions, which
 * check the bounds and store the message of the first error.
 */
#ifndef SOFTIB_FABRIC_TOPO_PRIVATE_H
#define SOFTIB_FABRIC_TOPO_PRIVATE_H

#include "fabric/topology.h"

/** topo_is_placed() - does its shape define the positions of nodes in a drawing? */
bool topo_is_placed(const struct topology *topo);
/** topo_place_switch() - the position of the @nth switch, in inches
 *  topo_place_host() - the position of the @host-th adapter beside it */
void topo_place_switch(const struct topology *topo, int nth, double *x, double *y);
void topo_place_host(const struct topology *topo, int nth, int host, double *x, double *y);

#define TOPO_WIDTH_DEFAULT 2  /* 4x */
#define TOPO_SPEED_DEFAULT 32 /* EDR */

struct topo_build {
	struct topology *topo;
	int room;		    /* nodes allocated */
	int ports;		    /* of all nodes */
	int count[TOPO_ROUTER + 1]; /* nodes of each kind */
	int spare;		    /* ports of each switch that have no cable */
	int adapters;		    /* of each host, if a shape says so; 0: see topo_host.c */
	uint64_t guids;		    /* the common part of the GUIDs that softib assigns */
	char *err;
	size_t err_bytes;
};

/** build_fail() - store the message of the first error. Return: @error */
__attribute__((format(printf, 3, 4)))
int build_fail(struct topo_build *b, int error, const char *fmt, ...);
/** build_begin() - begin a topology without nodes for the fabric called @fabric */
int build_begin(struct topo_build *b, const char *fabric, char *err, size_t err_bytes);
/** build_node() - add a node with @num_ports ports and no cable. Return: index; -errno */
int build_node(struct topo_build *b, enum topo_kind kind, int num_ports);
/** build_cable() - add a cable between two free ports. Return: 0; -EEXIST */
int build_cable(struct topo_build *b, int node, int port, int peer, int peer_port);
/** build_links() - give each port of a switch the link layer that its cables have
 *  Return: 0; -EINVAL a switch has cables of both */
int build_links(struct topo_build *b);
/** build_name_nodes() - name the nodes n1.., s1.., r1.. in their order, and assign missing
 *  GUIDs, ids and descriptions. Return: 0; -EINVAL two nodes share a GUID */
int build_name_nodes(struct topo_build *b);

/** build_hosts() - find the adapters that are in one host. Return: 0; -ENOMEM */
int build_hosts(struct topo_build *b);

/** topo_shape() - build a topology from a shorthand
 *  Return: 0; -ENOENT not a shape's name; -EINVAL; -ENOMEM */
int topo_shape(struct topo_build *b, const char *spec);
/** topo_width_enc(), topo_speed_enc() - encode "4x", "EDR"; 0 if unknown */
unsigned topo_width_enc(const char *name, size_t len);
unsigned topo_speed_enc(const char *name, size_t len);

#endif
