/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Prints topologies as drawings in Graphviz's language. Switches are boxes,
 * arranged in levels, with adapters below their switch. The width of a line shows
 * the speed of the link, its colour the state. A large fabric is condensed to fit
 * a page: the adapters of one switch are one box, parallel cables are one line
 * with their number, and levels go from left to right.
 */
#include <inttypes.h>
#include <string.h>

#include "fabric/topo_private.h"
#include "runtime/rt.h"

#define FEW_ADAPTERS 72	 /* up to this number they are drawn individually */
#define FEW_CABLES   400 /* up to this number they are drawn as curves */

struct drawing {
	const struct topology *topo;
	const struct topo_view *view;
	FILE *out;
	int *level; /* 0 for adapters; for switches the distance from an adapter; -1 unconnected */
	int deepest, adapters, cables;
	bool together; /* draw adapters in groups and cables in bundles */
	bool placed;   /* the shape defines the positions of nodes: topo_place.c */
	const struct topo_port *usual; /* the most frequent kind of cable, which has no label */
};

/* A mesh of switches without a level above them is not drawn in ranks */
static bool in_ranks(const struct drawing *d)
{
	return d->deepest > 1 || d->topo->num_nodes - d->adapters <= 3;
}

/* Green is an Active link */
static const struct {
	const char *state, *colour, *style;
} looks[] = {
	{"Active", "#2e7d32", "solid"},
	{"Armed", "#f9a825", "solid"},
	{"Init", "#ef6c00", "solid"},
	{"Down", "#c62828", "dashed"},
};

static void quoted(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fputc('\\', out);
		fputc((unsigned char)*text < ' ' ? ' ' : *text, out);
	}
}

/* --- levels ------------------------------------------------------------ */

static void visit(struct drawing *d, int *queue, int *tail, int node, int level)
{
	if (d->level[node] >= 0)
		return;
	d->level[node] = level;
	d->deepest = MAX(d->deepest, level);
	queue[(*tail)++] = node;
}

static int count_adapters(const struct drawing *d, int node)
{
	const struct topo_node *nd = &d->topo->node[node];
	int n = 0;

	for (int p = 1; p <= nd->num_ports; p++)
		n += nd->port[p].peer_node >= 0 &&
		     d->topo->node[nd->port[p].peer_node].kind != TOPO_SWITCH;
	return n;
}

/* The search starts at the adapters and their leaf switches. A spine switch with an
 * aggregation node at its last port is not a leaf, because a leaf has many adapters. */
static void seed_levels(struct drawing *d, int *queue, int *tail)
{
	int most = 0;

	for (int i = 0; i < d->topo->num_nodes; i++)
		if (d->topo->node[i].kind == TOPO_SWITCH)
			most = MAX(most, count_adapters(d, i));
	for (int i = 0; i < d->topo->num_nodes; i++) {
		if (d->topo->node[i].kind != TOPO_SWITCH)
			d->level[i] = 0;
		else if (most && count_adapters(d, i) >= MAX(1, most / 4))
			visit(d, queue, tail, i, 1);
	}
}

static bool find_levels(struct drawing *d)
{
	int n = d->topo->num_nodes, head = 0, tail = 0;
	int *queue = rt_zalloc((size_t)n * sizeof(*queue));

	d->level = rt_zalloc((size_t)n * sizeof(*d->level));
	if (!queue || !d->level) {
		rt_free(queue);
		return false;
	}
	memset(d->level, 0xff, (size_t)n * sizeof(*d->level));
	seed_levels(d, queue, &tail);
	for (; head < tail; head++) {
		const struct topo_node *nd = &d->topo->node[queue[head]];

		for (int p = 1; p <= nd->num_ports; p++)
			if (nd->port[p].peer_node >= 0)
				visit(d, queue, &tail, nd->port[p].peer_node,
				      d->level[queue[head]] + 1);
	}
	rt_free(queue);
	return true;
}

/* --- nodes ------------------------------------------------------------- */

/* the number of switches, or of adapters at switch @at, that precede node @i */
static int number_of_node(const struct drawing *d, int i, int at)
{
	int n = 0;

	while (--i >= 0)
		if (at < 0 ? d->topo->node[i].kind == TOPO_SWITCH
			   : d->topo->node[i].kind != TOPO_SWITCH &&
				     d->topo->node[i].port[1].peer_node == at)
			n++;
	return n;
}

static void draw_place(const struct drawing *d, int sw, int host)
{
	double x, y;

	if (!d->placed || sw < 0)
		return;
	if (host < 0)
		topo_place_switch(d->topo, number_of_node(d, sw, -1), &x, &y);
	else
		topo_place_host(d->topo, number_of_node(d, sw, -1), host, &x, &y);
	fprintf(d->out, ", pos=\"%.2f,%.2f!\"", x, y);
}

static void draw_node(const struct drawing *d, int i)
{
	const struct topo_node *nd = &d->topo->node[i];
	bool own = !strncmp(nd->desc, nd->name, strlen(nd->name));
	int p = nd->kind == TOPO_SWITCH ? 0 : 1;
	unsigned lid =
		d->view->lid ? d->view->lid(d->view->ctx, i, p) : nd->port[p].lid_hint;

	fprintf(d->out, "  %s [label=\"%s", nd->name, nd->name);
	if (!own) {
		fputs("\\n", d->out);
		quoted(d->out, nd->desc);
	}
	if (lid)
		fprintf(d->out, "\\nlid %u", lid);
	fprintf(d->out, "\", tooltip=\"%s, %d ports, 0x%016" PRIx64 "\"%s",
		topo_kind_name(nd->kind), nd->num_ports, nd->guid,
		nd->kind == TOPO_SWITCH
			? ", shape=box, style=\"filled,rounded\", "
			  "fillcolor=\"#cfe0f3\", color=\"#1f4e79\", penwidth=1.6"
			: ", shape=box, style=filled, fillcolor=\"#f6f1e3\", "
			  "color=\"#8d7b4f\"");
	if (nd->kind == TOPO_SWITCH)
		draw_place(d, i, -1);
	else
		draw_place(d, nd->port[1].peer_node, number_of_node(d, i, nd->port[1].peer_node));
	fputs("]\n", d->out);
}

/* An adapter with several cables is drawn once, at the switch of its first cable */
static bool hangs_on(const struct topo_node *ca, int sw, int port)
{
	for (int p = 1; p <= ca->num_ports; p++)
		if (ca->port[p].peer_node >= 0)
			return ca->port[p].peer_node == sw &&
			       ca->port[p].peer_port == port;
	return false;
}

/* the adapters whose first cable ends at switch @sw, as one box */
static void draw_group(const struct drawing *d, int sw)
{
	const struct topo_node *nd = &d->topo->node[sw];
	const char *first = NULL, *last = NULL;
	int count = 0;

	for (int p = 1; p <= nd->num_ports; p++) {
		int peer = nd->port[p].peer_node;

		if (peer < 0 || d->topo->node[peer].kind == TOPO_SWITCH ||
		    !hangs_on(&d->topo->node[peer], sw, p))
			continue;
		last = d->topo->node[peer].name;
		first = first ? first : last;
		count++;
	}
	if (!count)
		return;
	fprintf(d->out,
		"  hosts_%s [label=\"%d adapter%s\\n%s%s%s\", shape=box3d, style=filled, "
		"fillcolor=\"#f6f1e3\", color=\"#8d7b4f\"",
		nd->name, count, count == 1 ? "" : "s", first, count == 1 ? "" : " … ",
		count == 1 ? "" : last);
	draw_place(d, sw, 0);
	fprintf(d->out, "]\n  %s -- hosts_%s [color=\"#8d7b4f\", penwidth=%d]\n", nd->name,
		nd->name, count > 8 ? 4 : 2);
}

/* Draw the nodes of one level in the order of their names. An invisible edge keeps the
 * next node to the right, since dot would put n10 before n2. Below the top level the
 * edge has no weight, so that switches stay above their adapters. */
static void draw_level(const struct drawing *d, int level)
{
	const char *before = NULL;

	fputs("  { rank=same;", d->out);
	for (int i = 0; i < d->topo->num_nodes; i++) {
		if (d->level[i] != level)
			continue;
		if (before && !d->together)
			fprintf(d->out, " %s -- %s [style=invis, weight=%d];", before,
				d->topo->node[i].name, level > 1);
		else
			fprintf(d->out, " %s;", d->topo->node[i].name);
		before = d->topo->node[i].name;
	}
	fputs(" }\n", d->out);
}

static void draw_nodes(const struct drawing *d)
{
	for (int i = 0; i < d->topo->num_nodes; i++) {
		bool is_switch = d->topo->node[i].kind == TOPO_SWITCH;

		if (is_switch || !d->together)
			draw_node(d, i);
		if (is_switch && d->together)
			draw_group(d, i);
	}
	for (int level = 0; level <= d->deepest && !d->placed && in_ranks(d); level++) {
		if (level == 0 && d->together)
			continue;
		draw_level(d, level);
	}
}

/* --- cables ------------------------------------------------------------ */

static bool are_alike(const struct topo_port *a, const struct topo_port *b)
{
	return a->width_enc == b->width_enc && a->speed_enc == b->speed_enc;
}

/* find the kind of the majority of cables, by the majority vote algorithm */
static void find_usual(struct drawing *d)
{
	int lead = 0;

	for (int i = 0; i < d->topo->num_nodes; i++) {
		for (int p = 1; p <= d->topo->node[i].num_ports; p++) {
			const struct topo_port *port = &d->topo->node[i].port[p];

			if (port->peer_node < 0)
				continue;
			if (!lead)
				d->usual = port;
			lead += are_alike(d->usual, port) ? 1 : -1;
		}
	}
}

static bool is_usual(const struct drawing *d, const struct topo_port *port)
{
	return are_alike(d->usual, port);
}

static void draw_look(const struct drawing *d, int node, int port)
{
	const struct topo_view *view = d->view;
	const char *state =
		view->port_state ? view->port_state(view->ctx, node, port) : NULL;
	unsigned speed = d->topo->node[node].port[port].speed_enc, weight = 0;

	for (; speed > 1; speed >>= 1)
		weight++;
	fprintf(d->out, ", penwidth=%u.%u", 1 + weight / 4, weight % 4 * 2);
	for (size_t i = 0; state && i < ARRAY_SIZE(looks); i++)
		if (!strcmp(looks[i].state, state))
			fprintf(d->out, ", color=\"%s\", style=%s, tooltip=\"%s\"",
				looks[i].colour, looks[i].style, state);
}

/* the upper end is printed first, because dot puts it above */
static bool is_upper(const struct drawing *d, int node, int peer)
{
	if (d->level[node] != d->level[peer])
		return d->level[node] > d->level[peer];
	return node < peer;
}

static void draw_cable(const struct drawing *d, int node, int p)
{
	const struct topo_port *port = &d->topo->node[node].port[p];
	int peer = port->peer_node;

	if (!is_upper(d, node, peer) && !(node == peer && p < port->peer_port))
		return;
	fprintf(d->out, "  %s -- %s [taillabel=\"%d\", headlabel=\"%d\"",
		d->topo->node[node].name, d->topo->node[peer].name, p, port->peer_port);
	if (!is_usual(d, port))
		fprintf(d->out, ", label=\"%s%s\"", topo_width_name(port->width_enc),
			topo_speed_name(port->speed_enc));
	draw_look(d, node, p);
	fputs("]\n", d->out);
}

/* Draw the cables from @node to the peer of port @p, once, at the first of them. A
 * bundle has the state of its first cable that is not Active. */
static void draw_bundle(const struct drawing *d, int node, int p)
{
	const struct topo_node *nd = &d->topo->node[node];
	const struct topo_view *view = d->view;
	int peer = nd->port[p].peer_node, count = 0, shown = p;

	if (d->topo->node[peer].kind != TOPO_SWITCH || nd->kind != TOPO_SWITCH ||
	    !is_upper(d, node, peer))
		return;
	for (int q = 1; q <= nd->num_ports; q++) {
		const char *state;

		if (nd->port[q].peer_node != peer)
			continue;
		if (q < p)
			return;
		count++;
		state = view->port_state ? view->port_state(view->ctx, node, q) : NULL;
		if (state && strcmp(state, "Active"))
			shown = q;
	}
	fprintf(d->out, "  %s -- %s [%s=\"", nd->name, d->topo->node[peer].name,
		d->cables > FEW_CABLES ? "labeltooltip" : "label"); /* labels would take too much room */
	if (count > 1)
		fprintf(d->out, "%d×", count);
	if (!is_usual(d, &nd->port[p]))
		fprintf(d->out, "%s%s", topo_width_name(nd->port[p].width_enc),
			topo_speed_name(nd->port[p].speed_enc));
	fputc('"', d->out);
	draw_look(d, node, shown);
	fputs("]\n", d->out);
}

static void draw_cables(const struct drawing *d)
{
	for (int i = 0; i < d->topo->num_nodes; i++) {
		for (int p = 1; p <= d->topo->node[i].num_ports; p++) {
			if (d->topo->node[i].port[p].peer_node < 0)
				continue;
			if (d->together)
				draw_bundle(d, i, p);
			else
				draw_cable(d, i, p);
		}
	}
}

/* A torus or a dragonfly has no levels, so a spring layout is clearer than ranks */
static const char *layout(const struct drawing *d)
{
	int switches = d->topo->num_nodes - d->adapters;

	if (d->placed)
		return "neato";
	if (!in_ranks(d))
		return switches > 100 ? "sfdp" : "neato";
	return switches > 400 ? "sfdp" : "dot";
}

static void count_all(struct drawing *d)
{
	for (int i = 0; i < d->topo->num_nodes; i++) {
		const struct topo_node *nd = &d->topo->node[i];

		d->adapters += nd->kind != TOPO_SWITCH;
		for (int p = 1; p <= nd->num_ports; p++)
			d->cables += nd->port[p].peer_node >= 0;
	}
	d->cables /= 2;
	d->together = d->adapters > FEW_ADAPTERS;
	d->placed = topo_is_placed(d->topo);
}

void topo_print_dot(const struct topology *topo, const struct topo_view *view, FILE *out)
{
	static const struct topo_view nothing;
	struct drawing d = {.topo = topo, .view = view ? view : &nothing, .out = out};

	count_all(&d);
	if (!find_levels(&d)) {
		rt_free(d.level);
		return;
	}
	find_usual(&d);
	fprintf(out,
		"graph fabric {\n  graph [layout=%s, rankdir=%s, overlap=%s, splines=%s, "
		"ranksep=1.1, nodesep=0.25, outputorder=edgesfirst, bgcolor=white, "
		"size=\"16.5,16.5\", fontname=\"Helvetica\"",
		layout(&d), d.together ? "LR" : "TB", d.placed ? "true" : "false",
		d.cables > FEW_CABLES ? "line" : "true");
	if (d.usual)
		fprintf(out, ", labelloc=b, fontsize=10, label=\"cables: %s%s where none is named\"",
			topo_width_name(d.usual->width_enc), topo_speed_name(d.usual->speed_enc));
	fputs("]\n  node [fontname=\"Helvetica\", fontsize=11]\n"
	      "  edge [fontname=\"Helvetica\", fontsize=8, fontcolor=\"#555555\", "
	      "color=\"#607d8b\"]\n",
	      out);
	draw_nodes(&d);
	draw_cables(&d);
	fputs("}\n", out);
	rt_free(d.level);
}
