/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Any bytes as a topology file, and as a shorthand: an answer or a message,
 * and what loads must print and load again as the same number of nodes.
 */
#include <stdlib.h>
#include <string.h>

#include "fabric/topology.h"
#include "fabric/vlan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void print_and_load(const struct topology *t)
{
	struct topology *again;
	char *text = NULL, err[200];
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		abort();
	topo_print_ibnetdiscover(t, NULL, out);
	fclose(out);
	if (topo_parse_text("again", "fuzz", text, len, &again, err, sizeof(err)) ||
	    again->num_nodes != t->num_nodes)
		abort();
	topo_free(again);
	free(text);
}

static void print_all(const struct topology *t)
{
	FILE *out = fopen("/dev/null", "w");

	if (!out)
		abort();
	topo_print_text(t, NULL, out);
	topo_print_brief(t, NULL, out);
	for (int i = 0; i < t->num_nodes; i++)
		topo_print_node(t, NULL, i, out);
	topo_print_dot(t, NULL, out);
	fclose(out);
}

/* members are nodes, and a VLAN has an id */
static void read_vlans(const char *text)
{
	struct fab_vlans vlans;
	struct topology *t;
	char err[200];

	if (topo_load("star:3,link=ethernet", "fuzz", &t, err, sizeof(err)))
		abort();
	if (!fab_vlans_parse(&vlans, t, text, err, sizeof(err))) {
		for (unsigned int v = 0; v < vlans.num; v++)
			if (vlans.num > FAB_VLANS || !vlans.id[v] || vlans.id[v] > FAB_VLAN_ID ||
			    fab_vlans_has(&vlans, 3, v + 1))
				abort(); /* node 3 is the switch */
		fab_vlans_free(&vlans);
	}
	topo_free(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct topology *t;
	char err[200], spec[64];

	if (!topo_parse_text("fuzz", "fuzz", (const char *)data, size, &t, err, sizeof(err))) {
		print_all(t);
		print_and_load(t);
		topo_free(t);
	}
	if (size && size < sizeof(spec) && !memchr(data, 0, size)) {
		memcpy(spec, data, size);
		spec[size] = '\0';
		read_vlans(spec);
		if (!memchr(data, '/', size) && !topo_load(spec, "fuzz", &t, err, sizeof(err)))
			topo_free(t);
	}
	return 0;
}
