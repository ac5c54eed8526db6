/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "daemon/polled.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int mark(const struct topology *topo, const char *name, bool *polled, char *err,
		size_t err_bytes)
{
	int i = topo_find(topo, name);

	if (i >= 0 && topo->node[i].kind == TOPO_CA) {
		polled[i] = true;
		return 0;
	}
	snprintf(err, err_bytes, "--polled: the topology has no node '%s' with an adapter: name such "
		 "nodes, with commas, or all", name);
	return -EINVAL;
}

static int mark_each(const struct topology *topo, char *names, bool *polled, char *err,
		     size_t err_bytes)
{
	char *name;
	int ret = 0;

	while (!ret && (name = strsep(&names, ",")))
		ret = mark(topo, name, polled, err, err_bytes);
	return ret;
}

int polled_nodes(const struct topology *topo, const char *text, bool **out, char *err,
		 size_t err_bytes)
{
	bool *polled = calloc((size_t)topo->num_nodes, sizeof(*polled));
	char *names = strdup(text);
	int ret = polled && names ? 0 : -ENOMEM;

	if (!ret && !strcmp(text, "all"))
		memset(polled, true, (size_t)topo->num_nodes * sizeof(*polled));
	else if (!ret)
		ret = mark_each(topo, names, polled, err, err_bytes);
	free(names);
	if (ret)
		free(polled);
	else
		*out = polled;
	return ret;
}
