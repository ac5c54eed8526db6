/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A topology: nodes, their ports and the cables between them. Made from a
 * shorthand ("pair", "star:8", "fattree:2,4", "torus:4x4x4",
 * "dragonfly:4,2,2": softib-topology(5) describes them all) or from a file in
 * ibnetdiscover's or ibsim's format, printed in several. Plain data, owned by
 * the caller.
 */
#ifndef SOFTIB_FABRIC_TOPOLOGY_H
#define SOFTIB_FABRIC_TOPOLOGY_H

#include <stdio.h>

#include "base/types.h"

/* NodeInfo's DeviceID where a topology names none */
#define TOPO_DEVICE_ID(kind) ((uint16_t)(kind))

enum topo_kind { TOPO_CA = 1, TOPO_SWITCH = 2, TOPO_ROUTER = 3 }; /* NodeInfo.NodeType */

/** struct topo_port - port 1..num_ports of a node; [0] is a switch's own */
struct topo_port {
	int peer_node; /* index, -1: no cable */
	uint8_t peer_port;
	uint8_t width_enc; /* LinkWidth: 1, 2 (4x), 4 (8x), 8 (12x), 16 (2x) */
	uint16_t
		speed_enc; /* 1 SDR, 2 DDR, 4 QDR, 8 FDR10, 16 FDR, 32 EDR, 64 HDR, 128 NDR */
	bool ethernet;	   /* the link layer: Ethernet; otherwise InfiniBand */
	uint64_t guid;	   /* 0: derived from the node's */
	uint16_t lid_hint; /* LID printed in the file; informative only */
};

struct topo_node {
	enum topo_kind kind;
	char name[64]; /* short, unique: "n1", "s1"; how users address it; "n1.softib1" */
	char desc[65]; /* NodeDescription */
	char id[72];   /* as in the file: "S-0002c9...", or the ibsim node id */
	uint64_t guid, sys_guid;
	uint32_t vendor_id, device_id;
	uint8_t num_ports;
	struct topo_port *port; /* num_ports + 1 */
	/* --- the host that an adapter is in; a switch is its own --- */
	int host;	       /* index of the host's first adapter */
	int next;	       /* index of the host's next adapter; -1 */
	unsigned number;       /* of the host, from 1; 0: a switch or a router */
	unsigned ports_before; /* of the host's adapters before this one */
	uint8_t device;	       /* its number in the host, from 0: softib0, softib1 */
};

/* Bounds: a LID for every node, a port number in 8 bits, memory for the rest */
#define TOPO_MAX_NODES	    0xbfff
#define TOPO_MAX_NODE_PORTS 254
#define TOPO_MAX_PORTS	    (1 << 20)
#define TOPO_MAX_FILE_BYTES (64u << 20)
#define TOPO_MAX_ADAPTERS   13 /* of a host: the kinds of GUIDs that are left (topo.c) */

struct topo_address;

struct topology {
	struct topo_node *node;
	int num_nodes;
	struct topo_address *address; /* topo_address.h; sorted by adapter, port and kind */
	int num_addresses;
	/* for drawings: the sizes of a torus, 0 of all else; and how many switches,
	 * in their order, make a group of a dragonfly */
	int grid[3], group_switches;
	char warning[512]; /* lines for people: what a file left to be guessed; "" */
};

/**
 * topo_load() - from a shorthand or, when @spec names a file, from it
 * @fabric: the fabric's name. The GUIDs of nodes for which @spec gives none follow from
 *          it: they differ between fabrics of different names, and are the same
 *          whenever a fabric of this name is made
 * @err: room for a message that says file, line, what is wrong and what is
 *       expected
 * Return: 0 and *@topo (free with topo_free); -EINVAL, -ENOENT, -ENOMEM
 */
int topo_load(const char *spec, const char *fabric, struct topology **topo, char *err,
	      size_t err_bytes);
/** topo_is_shape() - does topo_load() take @spec for a shorthand, even where a
 *  file has that name? */
bool topo_is_shape(const char *spec);
/** topo_parse_text() - a file's text; @name for messages (fuzz entry) */
int topo_parse_text(const char *name, const char *fabric, const char *text, size_t len,
		    struct topology **topo, char *err, size_t err_bytes);
void topo_free(struct topology *topo);
/** topo_find() - by name, description, id or GUID (0x...). Return: index; -1 */
int topo_find(const struct topology *topo, const char *name);
/** topo_port_guid() - of port @port, 0 for a switch's own; derived when unset */
uint64_t topo_port_guid(const struct topo_node *node, int port);
/** topo_host_name() - of the host that an adapter is in: the name of its first adapter */
const char *topo_host_name(const struct topology *topo, int node);
/** topo_host_adapter() - the adapter with the host's port @port, which counts those of all
 *  adapters from 1
 *  @host: the host's first adapter
 *  @port: set to the number of the port on this adapter
 *  Return: index; -1 the host has fewer ports */
int topo_host_adapter(const struct topology *topo, int host, unsigned *port);
/** topo_set_ethernet() - give every port the Ethernet link layer
 *  topo_has_link() - does any port have this link layer: Ethernet, or InfiniBand? */
void topo_set_ethernet(struct topology *topo);
bool topo_has_link(const struct topology *topo, bool ethernet);
/** topo_kind_name() - "ca", "switch" or "router" */
const char *topo_kind_name(enum topo_kind kind);
/** topo_width_name() - "4x"; topo_speed_name() - "EDR"; "?" when not known */
const char *topo_width_name(unsigned width_enc);
const char *topo_speed_name(unsigned speed_enc);

/** struct topo_view - what a running fabric adds to a print; members may be NULL */
struct topo_view {
	/** port_state() - "Active", "Init", ...; NULL when not known */
	const char *(*port_state)(void *ctx, int node, int port);
	/** lid() - base LID of a port (0: a switch's own); 0 when none */
	unsigned (*lid)(void *ctx, int node, int port);
	/** outside() - what a cable at this port leads to that leaves the fabric; NULL when there is none */
	const char *(*outside)(void *ctx, int node, int port);
	void *ctx;
	bool colour; /* ANSI colours in text */
};

/** topo_print_*() - write @topo to @out; @view may be NULL. The text is a
 *  tree for people, dot is Graphviz's language, ibnetdiscover's format loads
 *  again and gives the same fabric. */
void topo_print_text(const struct topology *topo, const struct topo_view *view,
		     FILE *out);
/** topo_print_node() - as text: a node, and the switches that it is cabled to */
void topo_print_node(const struct topology *topo, const struct topo_view *view, int node,
		     FILE *out);
/** topo_print_brief() - topo_print_text(), and a summary from TOPO_MANY nodes on */
#define TOPO_MANY 50
void topo_print_brief(const struct topology *topo, const struct topo_view *view,
		      FILE *out);
void topo_print_dot(const struct topology *topo, const struct topo_view *view, FILE *out);
void topo_print_ibnetdiscover(const struct topology *topo, const struct topo_view *view,
			      FILE *out);

#endif
