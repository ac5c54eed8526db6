/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The state of the topology parser. The lines (topo_parse.c) name nodes and ends
 * of cables, in any order; after the last line they are joined (topo_join.c).
 */
#ifndef SOFTIB_FABRIC_TOPO_PARSE_H
#define SOFTIB_FABRIC_TOPO_PARSE_H

#include "fabric/topo_address.h"
#include "fabric/topo_private.h"
#include "fabric/topo_scan.h"

/* a node that the file names, by a record or only as a far end */
struct ref {
	char id[72];
	char desc[65];
	int node;  /* -1: no record yet */
	int line;  /* of the record, or of the first mention */
	int ports; /* largest port number mentioned */
};

/* one end of a cable, from a port line */
struct end {
	int line, node, port;
	int ref, far_port; /* ref -1: nothing connected */
	uint64_t far_guid;
	uint8_t width_enc; /* 0: not given */
	uint16_t speed_enc;
	bool ethernet;
};

/* an IP address of an adapter's port */
struct given {
	int line, node;
	struct topo_address address;
};

struct parser {
	struct topo_build b;
	const char *name;
	int line;
	struct ref *ref;
	int refs, ref_room;
	int *slot; /* hash of ref by id: index + 1 */
	int slots; /* power of two */
	struct end *end;
	int ends, end_room;
	struct given *given;
	int givens, given_room;
	/* --- attributes for the next node --- */
	struct {
		uint32_t vendor_id, device_id;
		uint64_t sys_guid, guid, port_guid;
	} next;
	int node;		       /* the node to which the following port lines belong; -1 */
	bool masked;	 /* some GUIDs are masked */
	int masked_line; /* the first of them */
	unsigned width_enc, speed_enc; /* ibsim: defaults from here on */
};

/** parse_fail() - store an error message with the file's name and the line; a message of
 *  the builder has precedence. Return: -EINVAL */
__attribute__((format(printf, 2, 3)))
int parse_fail(struct parser *ps, const char *fmt, ...);
/** parse_ref() - find or add the node @id. Return: its index; -errno */
int parse_ref(struct parser *ps, const char *id);
/** parse_add_end() - store a copy of @end. Return: 0; -ENOMEM */
int parse_add_end(struct parser *ps, const struct end *end);
/** parse_guid_of_id() - "S-0002c90200417670": the GUID of the id; 0 when it has none */
uint64_t parse_guid_of_id(const char *id);
/** parse_is_prompt() - is the line a shell prompt that was copied from a terminal? */
bool parse_is_prompt(const struct parser *ps, const struct scan *sc);
/** parse_guid() - read a GUID; a masked one is recorded for a warning and returned as 0
 *  Return: false if there is none */
bool parse_guid(struct parser *ps, struct scan *sc, uint64_t *guid);
/** parse_id_is_masked() - has an id a masked GUID ("S-0002c902xxxxxxxx")? */
bool parse_id_is_masked(struct parser *ps, const char *id);
/** parse_join() - create the cables after all lines were read. Return: 0; -errno */
int parse_join(struct parser *ps);
/** parse_address() - read what follows "ip=" in the comment of a line about port @port
 *  of @node. Return: 0; -errno */
int parse_address(struct parser *ps, struct scan *sc, int node, int port);
/** parse_addresses() - give the topology its addresses, after parse_join().
 *  Return: 0; -errno */
int parse_addresses(struct parser *ps);
/** parse_name_nodes() - replace GUIDs that several nodes share, and call build_name_nodes()
 *  Return: 0; -errno, with a message that has the file's name */
int parse_name_nodes(struct parser *ps);

#endif
