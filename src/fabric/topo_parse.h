/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A topology's text on its way: its lines (topo_parse.c) name nodes and the
 * ends of cables, in any order; behind the last line they are joined
 * (topo_join.c).
 */
#ifndef SOFTIB_FABRIC_TOPO_PARSE_H
#define SOFTIB_FABRIC_TOPO_PARSE_H

#include "fabric/topo_private.h"
#include "fabric/topo_scan.h"

/* a node as the file names it: by a record, or as a far end only */
struct ref {
	char id[72];
	char desc[65];
	int node;  /* -1: no record yet */
	int line;  /* of the record, or of the first mention */
	int ports; /* largest port number mentioned */
};

/* one end of a cable as a port line gives it */
struct end {
	int line, node, port;
	int ref, far_port; /* ref -1: nothing connected */
	uint64_t far_guid;
	uint8_t width_enc; /* 0: not said */
	uint16_t speed_enc;
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
	/* --- attributes for the next node --- */
	struct {
		uint32_t vendor_id, device_id;
		uint64_t sys_guid, guid, port_guid;
	} next;
	int node;		       /* whose port lines follow; -1 */
	bool masked;	 /* some GUIDs are crossed out */
	int masked_line; /* the first of them */
	unsigned width_enc, speed_enc; /* ibsim: defaults from here on */
};

/** parse_fail() - keep a message with the file's name and the line; that of the
 *  builder, if it has one. Return: -EINVAL */
__attribute__((format(printf, 2, 3)))
int parse_fail(struct parser *ps, const char *fmt, ...);
/** parse_ref() - the number of the node @id, new or known. Return: index; -errno */
int parse_ref(struct parser *ps, const char *id);
/** parse_add_end() - keep a copy of @end. Return: 0; -ENOMEM */
int parse_add_end(struct parser *ps, const struct end *end);
/** parse_guid_of_id() - "S-0002c90200417670": the GUID of the id; 0 when it has none */
uint64_t parse_guid_of_id(const char *id);
/** parse_is_prompt() - is it what a shell shows, as in a copied terminal? */
bool parse_is_prompt(const struct parser *ps, const struct scan *sc);
/** parse_guid() - a GUID; one that is masked is noted, and 0. Return: false: none */
bool parse_guid(struct parser *ps, struct scan *sc, uint64_t *guid);
/** parse_id_is_masked() - "S-0002c902xxxxxxxx": of a node that nothing else describes */
bool parse_id_is_masked(struct parser *ps, const char *id);
/** parse_join() - all lines are read: make the cables. Return: 0; -errno */
int parse_join(struct parser *ps);
/** parse_name_nodes() - build_name_nodes(), its message with the file's name;
 *  GUIDs that several nodes have are replaced before. Return: 0; -errno */
int parse_name_nodes(struct parser *ps);

#endif
