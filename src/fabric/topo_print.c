/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Prints topologies as a tree, or in ibnetdiscover's format. The state of a
 * running fabric (port states, LIDs) comes from a topo_view.
 */
#include <inttypes.h>
#include <string.h>

#include "fabric/topo_address.h"
#include "fabric/topo_private.h"

static const struct topo_view nothing;

static unsigned lid_of(const struct topology *topo, const struct topo_view *view,
		       int node, int port)
{
	const struct topo_node *nd = &topo->node[node];

	if (nd->kind == TOPO_SWITCH)
		port = 0;
	if (nd->port[port].ethernet)
		return 0;
	return view->lid ? view->lid(view->ctx, node, port) : nd->port[port].lid_hint;
}

/* --- for people -------------------------------------------------------- */

#define BOLD "1"
#define DIM  "2"

static void paint(FILE *out, const struct topo_view *view, const char *how,
		  const char *text)
{
	if (view->colour)
		fprintf(out, "\033[%sm%s\033[0m", how, text);
	else
		fputs(text, out);
}

static const struct {
	const char *state, *colour;
} colours[] = {{"Active", "32"}, {"Armed", "33"}, {"Init", "33"}, {"Down", "31"}};

static void print_state(FILE *out, const struct topo_view *view, int node, int port)
{
	const char *state =
		view->port_state ? view->port_state(view->ctx, node, port) : NULL;
	const char *colour = "0";

	if (!state)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(colours); i++)
		if (!strcmp(colours[i].state, state))
			colour = colours[i].colour;
	fputs("  ", out);
	paint(out, view, colour, state);
}

/* print a description unless it only repeats the name */
static void print_desc(const struct topo_node *nd, FILE *out)
{
	size_t len = strlen(nd->name);

	if (strncmp(nd->desc, nd->name, len) || (nd->desc[len] && nd->desc[len] != ' '))
		fprintf(out, "  \"%s\"", nd->desc);
}

static const char *outside(const struct topo_view *view, int node, int p)
{
	return view->outside ? view->outside(view->ctx, node, p) : NULL;
}

static void print_peer(const struct topology *topo, const struct topo_view *view, int node, int p, FILE *out)
{
	const struct topo_port *port = &topo->node[node].port[p];
	unsigned lid;

	if (port->peer_node < 0) {
		paint(out, view, BOLD, outside(view, node, p));
		return;
	}
	lid = lid_of(topo, view, port->peer_node, port->peer_port);
	paint(out, view, BOLD, topo->node[port->peer_node].name);
	fprintf(out, ":%d", port->peer_port);
	if (lid)
		fprintf(out, "  lid %u", lid);
}

static void print_port(const struct topology *topo, const struct topo_view *view,
		       int node, int p, bool last, FILE *out)
{
	const struct topo_port *port = &topo->node[node].port[p];

	paint(out, view, DIM, last ? "└─" : "├─");
	fprintf(out, "%3d  ── %-3s%-5s──  ", p, topo_width_name(port->width_enc),
		topo_speed_name(port->speed_enc));
	print_peer(topo, view, node, p, out);
	if (port->ethernet)
		fputs("  Ethernet", out);
	print_state(out, view, node, p);
	if (port->peer_node >= 0)
		print_desc(&topo->node[port->peer_node], out);
	fputc('\n', out);
}

static bool has_cable(const struct topology *topo, const struct topo_view *view, int node, int p)
{
	return topo->node[node].port[p].peer_node >= 0 || outside(view, node, p);
}

static int last_cable(const struct topology *topo, const struct topo_view *view, int node)
{
	int p = topo->node[node].num_ports;

	while (p && !has_cable(topo, view, node, p))
		p--;
	return p;
}

static void print_node(const struct topology *topo, const struct topo_view *view,
		       int node, FILE *out)
{
	const struct topo_node *nd = &topo->node[node];
	unsigned lid = lid_of(topo, view, node, nd->kind == TOPO_SWITCH ? 0 : 1);
	int last = last_cable(topo, view, node);

	paint(out, view, BOLD, nd->name);
	fprintf(out, "  %s, %d port%s, GUID 0x%016" PRIx64, topo_kind_name(nd->kind),
		nd->num_ports, nd->num_ports == 1 ? "" : "s", nd->guid);
	if (lid)
		fprintf(out, ", lid %u", lid);
	print_desc(nd, out);
	fputc('\n', out);
	for (int p = 1; p <= last; p++)
		if (has_cable(topo, view, node, p))
			print_port(topo, view, node, p, p == last, out);
}

/* an adapter is printed below its switches, or separately if it has none */
static bool has_switch(const struct topology *topo, const struct topo_node *nd)
{
	for (int p = 1; p <= nd->num_ports; p++)
		if (nd->port[p].peer_node >= 0 &&
		    topo->node[nd->port[p].peer_node].kind == TOPO_SWITCH)
			return true;
	return false;
}

static void print_counts(const struct topology *topo, FILE *out)
{
	int count[TOPO_ROUTER + 1] = {0}, cables = 0;

	for (int i = 0; i < topo->num_nodes; i++) {
		count[topo->node[i].kind]++;
		for (int p = 1; p <= topo->node[i].num_ports; p++)
			cables += topo->node[i].port[p].peer_node >= 0;
	}
	fprintf(out, "%d adapter%s, %d switch%s, %d cable%s\n", count[TOPO_CA],
		count[TOPO_CA] == 1 ? "" : "s", count[TOPO_SWITCH],
		count[TOPO_SWITCH] == 1 ? "" : "es", cables / 2, cables == 2 ? "" : "s");
}

void topo_print_text(const struct topology *topo, const struct topo_view *view, FILE *out)
{
	if (!view)
		view = &nothing;
	print_counts(topo, out);
	fputc('\n', out);
	for (int i = 0; i < topo->num_nodes; i++)
		if (topo->node[i].kind == TOPO_SWITCH ||
		    !has_switch(topo, &topo->node[i]))
			print_node(topo, view, i, out);
}

/* --- part of it -------------------------------------------------------- */

/* is @peer connected to a port of @nd before port @p? */
static bool seen_before(const struct topo_node *nd, int p, int peer)
{
	while (--p > 0)
		if (nd->port[p].peer_node == peer)
			return true;
	return false;
}

void topo_print_node(const struct topology *topo, const struct topo_view *view, int node,
		     FILE *out)
{
	const struct topo_node *nd = &topo->node[node];

	view = view ? view : &nothing;
	print_node(topo, view, node, out);
	for (int p = 1; p <= nd->num_ports; p++) {
		int peer = nd->port[p].peer_node;

		if (peer >= 0 && peer != node && topo->node[peer].kind == TOPO_SWITCH &&
		    !seen_before(nd, p, peer))
			print_node(topo, view, peer, out);
	}
}

/* the number of cables of one kind; each is counted at its first end */
struct cables {
	unsigned width_enc, speed_enc;
	const char *state; /* NULL: unknown */
	int count;
};

#define CABLE_KINDS 32

static void count_cable(struct cables *kinds, const struct topo_view *view, int node, int p,
			const struct topo_port *port)
{
	const char *state = view->port_state ? view->port_state(view->ctx, node, p) : NULL;

	for (int i = 0; i < CABLE_KINDS; i++) {
		struct cables *k = &kinds[i];

		if (k->count && (k->width_enc != port->width_enc ||
				 k->speed_enc != port->speed_enc ||
				 (state && strcmp(k->state, state))))
			continue;
		*k = (struct cables){port->width_enc, port->speed_enc, state, k->count + 1};
		return;
	}
}

static void print_cables(const struct topology *topo, const struct topo_view *view, FILE *out)
{
	struct cables kinds[CABLE_KINDS] = {{0}};

	for (int i = 0; i < topo->num_nodes; i++) {
		for (int p = 1; p <= topo->node[i].num_ports; p++) {
			const struct topo_port *port = &topo->node[i].port[p];

			if (port->peer_node > i || (port->peer_node == i && port->peer_port > p))
				count_cable(kinds, view, i, p, port);
		}
	}
	for (int i = 0; i < CABLE_KINDS && kinds[i].count; i++) {
		fprintf(out, "%6d cable%s %s%s", kinds[i].count, kinds[i].count == 1 ? " " : "s",
			topo_width_name(kinds[i].width_enc), topo_speed_name(kinds[i].speed_enc));
		if (kinds[i].state)
			fprintf(out, "  %s", kinds[i].state);
		fputc('\n', out);
	}
}

static void count_peers(const struct topology *topo, int node, int *adapters, int *switches)
{
	const struct topo_node *nd = &topo->node[node];

	for (int p = 1; p <= nd->num_ports; p++) {
		if (nd->port[p].peer_node < 0)
			continue;
		if (topo->node[nd->port[p].peer_node].kind == TOPO_SWITCH)
			++*switches;
		else
			++*adapters;
	}
}

/* switches with equal numbers of ports and of adapters are of one kind */
static void print_switches(const struct topology *topo, FILE *out)
{
	for (int i = 0; i < topo->num_nodes; i++) {
		int up = 0, down = 0, same = 0;
		bool first = true;

		if (topo->node[i].kind != TOPO_SWITCH)
			continue;
		count_peers(topo, i, &down, &up);
		for (int j = 0; j < topo->num_nodes && first; j++) {
			int other_up = 0, other_down = 0;

			if (topo->node[j].kind != TOPO_SWITCH)
				continue;
			count_peers(topo, j, &other_down, &other_up);
			if (other_up != up || other_down != down)
				continue;
			first = j >= i;
			same++;
		}
		if (first)
			fprintf(out, "%6d switch%s with %d cables to adapters and %d to "
				     "switches, %s first\n",
				same, same == 1 ? "  " : "es", down, up, topo->node[i].name);
	}
}

void topo_print_brief(const struct topology *topo, const struct topo_view *view, FILE *out)
{
	view = view ? view : &nothing;
	if (topo->num_nodes < TOPO_MANY) {
		topo_print_text(topo, view, out);
		return;
	}
	print_counts(topo, out);
	print_switches(topo, out);
	print_cables(topo, view, out);
	fputs("(softib topo --all shows every cable, softib topo NODE those of a node)\n", out);
}

/* --- ibnetdiscover's format -------------------------------------------- */

static void print_attrs(const struct topo_node *nd, FILE *out)
{
	static const char *const key[] = {[TOPO_CA] = "caguid",
					  [TOPO_SWITCH] = "switchguid",
					  [TOPO_ROUTER] = "rtguid"};

	fprintf(out, "\nvendid=0x%x\ndevid=0x%x\nsysimgguid=0x%" PRIx64 "\n%s=0x%" PRIx64,
		nd->vendor_id, nd->device_id, nd->sys_guid, key[nd->kind], nd->guid);
	if (nd->kind == TOPO_SWITCH)
		fprintf(out, "(%" PRIx64 ")", topo_port_guid(nd, 0));
	fputc('\n', out);
}

/* what a file gave, the same way */
static void print_addresses(const struct topology *topo, const struct topo_node *nd, int port,
			    FILE *out)
{
	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		const struct topo_address *a = topo_address(topo, nd->number,
							    nd->ports_before + (unsigned)port, ipv6);
		char text[TOPO_ADDRESS_BYTES];

		if (a)
			fprintf(out, " ip=%s", topo_address_text(a, text));
	}
}

static void print_cable(const struct topology *topo, const struct topo_view *view,
			int node, int p, FILE *out)
{
	const struct topo_node *nd = &topo->node[node];
	const struct topo_port *port = &nd->port[p];
	const struct topo_node *peer = &topo->node[port->peer_node];

	fprintf(out, "[%d]", p);
	if (nd->kind != TOPO_SWITCH)
		fprintf(out, "(%" PRIx64 ") ", topo_port_guid(nd, p));
	fprintf(out, "\t\"%s\"[%d]", peer->id, port->peer_port);
	if (peer->kind != TOPO_SWITCH)
		fprintf(out, "(%" PRIx64 ") ", topo_port_guid(peer, port->peer_port));
	fputs("\t\t# ", out);
	if (nd->kind != TOPO_SWITCH)
		fprintf(out, "lid %u lmc 0 ", lid_of(topo, view, node, p));
	fprintf(out, "\"%s\" lid %u %s%s", peer->desc,
		lid_of(topo, view, port->peer_node, port->peer_port),
		topo_width_name(port->width_enc), topo_speed_name(port->speed_enc));
	if (nd->kind == TOPO_CA && p > 1)
		print_addresses(topo, nd, p, out);
	if (nd->kind == TOPO_CA && port->ethernet)
		fputs(" link=ethernet", out);
	fputc('\n', out);
}

static void print_record(const struct topology *topo, const struct topo_view *view,
			 int node, FILE *out)
{
	static const char *const word[] = {
		[TOPO_CA] = "Ca", [TOPO_SWITCH] = "Switch", [TOPO_ROUTER] = "Rt"};
	const struct topo_node *nd = &topo->node[node];

	print_attrs(nd, out);
	fprintf(out, "%s\t%d \"%s\"\t\t# \"%s\"", word[nd->kind], nd->num_ports, nd->id,
		nd->desc);
	if (nd->kind == TOPO_SWITCH)
		fprintf(out, " enhanced port 0 lid %u lmc 0",
			lid_of(topo, view, node, 0));
	if (nd->kind == TOPO_SWITCH && nd->port[0].ethernet)
		fputs(" link=ethernet", out);
	if (nd->kind == TOPO_CA)
		print_addresses(topo, nd, 1, out);
	fputc('\n', out);
	for (int p = 1; p <= nd->num_ports; p++)
		if (nd->port[p].peer_node >= 0)
			print_cable(topo, view, node, p, out);
}

void topo_print_ibnetdiscover(const struct topology *topo, const struct topo_view *view,
			      FILE *out)
{
	static const enum topo_kind order[] = {TOPO_SWITCH, TOPO_CA, TOPO_ROUTER};

	if (!view)
		view = &nothing;
	fprintf(out, "#\n# Topology file: written by softib\n#\n");
	for (size_t k = 0; k < ARRAY_SIZE(order); k++)
		for (int i = 0; i < topo->num_nodes; i++)
			if (topo->node[i].kind == order[k])
				print_record(topo, view, i, out);
}
