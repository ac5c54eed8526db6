/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Joins what the lines of a topology's text describe: nodes, whose ids may be
 * mentioned before their record or without one, and ends of cables. When the
 * whole text has been read, the ends are joined to cables.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/topo_parse.h"
#include "runtime/rt.h"

int parse_fail(struct parser *ps, const char *fmt, ...)
{
	char what[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	if (ps->b.err_bytes && ps->b.err[0]) { /* a message of the builder has precedence */
		snprintf(what, sizeof(what), "%s", ps->b.err);
		ps->b.err[0] = '\0';
	}
	return build_fail(&ps->b, -EINVAL, "%s:%d: %s", ps->name, ps->line, what);
}

static int out_of_memory(struct parser *ps)
{
	return build_fail(&ps->b, -ENOMEM, "%s:%d: out of memory", ps->name, ps->line);
}

/* --- the nodes that a file names --------------------------------------- */

static uint32_t hash(const char *id)
{
	uint32_t h = 2166136261u; /* FNV-1a */

	while (*id)
		h = (h ^ (uint8_t)*id++) * 16777619u;
	return h;
}

static int *ref_slot(struct parser *ps, const char *id)
{
	uint32_t mask = (uint32_t)ps->slots - 1;

	for (uint32_t i = hash(id) & mask;; i = (i + 1) & mask)
		if (!ps->slot[i] || !strcmp(ps->ref[ps->slot[i] - 1].id, id))
			return &ps->slot[i];
}

static void *regrow(void *old, size_t old_bytes, size_t new_bytes)
{
	void *p = rt_zalloc(new_bytes);

	if (!p)
		return NULL;
	if (old_bytes)
		memcpy(p, old, old_bytes);
	rt_free(old);
	return p;
}

static int ref_grow(struct parser *ps)
{
	int room = ps->ref_room ? 2 * ps->ref_room : 64;
	struct ref *ref;
	int *slot = rt_zalloc(2 * (size_t)room * sizeof(*slot));

	if (!slot)
		return out_of_memory(ps);
	ref = regrow(ps->ref, (size_t)ps->refs * sizeof(*ref),
		     (size_t)room * sizeof(*ref));
	if (!ref) {
		rt_free(slot);
		return out_of_memory(ps);
	}
	ps->ref = ref;
	ps->ref_room = room;
	rt_free(ps->slot);
	ps->slot = slot;
	ps->slots = 2 * room;
	for (int i = 0; i < ps->refs; i++)
		*ref_slot(ps, ref[i].id) = i + 1;
	return 0;
}

int parse_ref(struct parser *ps, const char *id)
{
	int *slot;

	if (ps->refs == ps->ref_room && ref_grow(ps))
		return -ENOMEM;
	slot = ref_slot(ps, id);
	if (*slot)
		return *slot - 1;
	if (ps->refs > TOPO_MAX_NODES)
		return parse_fail(ps, "too many nodes; expected at most %d", TOPO_MAX_NODES);
	ps->ref[ps->refs] = (struct ref){.node = -1, .line = ps->line};
	strcpy(ps->ref[ps->refs].id, id);
	*slot = ++ps->refs;
	return ps->refs - 1;
}

int parse_add_end(struct parser *ps, const struct end *end)
{
	struct end *grown;
	int room;

	if (ps->ends == ps->end_room) {
		room = ps->end_room ? 2 * ps->end_room : 256;
		grown = regrow(ps->end, (size_t)ps->ends * sizeof(*end),
			       (size_t)room * sizeof(*end));
		if (!grown)
			return out_of_memory(ps);
		ps->end = grown;
		ps->end_room = room;
	}
	ps->end[ps->ends++] = *end;
	return 0;
}

/* --- joining the ends -------------------------------------------------- */

/* a far end without a record: its id must tell its kind */
static int imply_node(struct parser *ps, struct ref *ref)
{
	static const char prefixes[] = {
		[TOPO_CA] = 'H', [TOPO_SWITCH] = 'S', [TOPO_ROUTER] = 'R'};
	uint64_t guid = parse_guid_of_id(ref->id);
	struct topo_node *nd;
	enum topo_kind kind;

	ps->line = ref->line;
	if (!guid && !parse_id_is_masked(ps, ref->id))
		return parse_fail(
			ps,
			"\"%s\" has no record; expected a line such as Switch 8 \"%s\" or "
			"Ca 1 \"%s\"",
			ref->id, ref->id, ref->id);
	for (kind = TOPO_CA; prefixes[kind] != ref->id[0];)
		kind++;
	ref->node = build_node(&ps->b, kind, ref->ports);
	if (ref->node < 0)
		return parse_fail(ps, "no room");
	nd = &ps->b.topo->node[ref->node];
	nd->guid = guid;
	strcpy(nd->id, ref->id);
	strcpy(nd->desc, ref->desc);
	return 0;
}

static void set_link(struct topo_port *port, const struct end *end)
{
	if (end->width_enc)
		port->width_enc = end->width_enc;
	if (end->speed_enc)
		port->speed_enc = end->speed_enc;
}

static int join(struct parser *ps, const struct end *end)
{
	int far = ps->ref[end->ref].node;
	struct topo_node *nd = &ps->b.topo->node[end->node],
			 *peer = &ps->b.topo->node[far];
	struct topo_port *port = &nd->port[end->port];

	ps->line = end->line;
	if (end->far_port > peer->num_ports)
		return parse_fail(ps, "\"%s\" has no port %d; expected 1 to %d", peer->id,
				  end->far_port, peer->num_ports);
	if (port->peer_node != far || port->peer_port != end->far_port) {
		if (port->peer_node >= 0)
			return parse_fail(
				ps,
				"port %d of \"%s\" has a cable to \"%s\"[%d] already; "
				"expected both ends to agree",
				end->port, nd->id, ps->b.topo->node[port->peer_node].id,
				port->peer_port);
		if (build_cable(&ps->b, end->node, end->port, far, end->far_port))
			return parse_fail(
				ps,
				"port %d of \"%s\" is taken or is this port itself; expected "
				"both ends to agree",
				end->far_port, peer->id);
	}
	set_link(port, end);
	set_link(&peer->port[end->far_port], end);
	port->ethernet = peer->port[end->far_port].ethernet =
		end->ethernet || port->ethernet || peer->port[end->far_port].ethernet;
	if (end->far_guid && peer->kind != TOPO_SWITCH && !peer->port[end->far_port].guid)
		peer->port[end->far_port].guid = end->far_guid;
	return 0;
}

int parse_join(struct parser *ps)
{
	int error = 0;

	for (int i = 0; i < ps->refs && !error; i++)
		if (ps->ref[i].node < 0)
			error = imply_node(ps, &ps->ref[i]);
	for (int i = 0; i < ps->ends && !error; i++)
		error = join(ps, &ps->end[i]);
	if (error || ps->ends)
		return error;
	if (!ps->refs) /* the message names no line */
		return build_fail(&ps->b, -EINVAL,
				  "%s: no node in it; expected for example Switch 8 \"s1\"",
				  ps->name);
	ps->line = ps->ref[0].line;
	return parse_fail(
		ps,
		"\"%s\" and the whole file without a cable; expected below it a line such as "
		"[1] \"ID\"[1]",
		ps->ref[0].id);
}
