/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The table of routing engines. A new engine needs a file and a row. */
#include "routing/graph.h"

#include <string.h>

const struct route_engine route_engines[] = {
	{"minhop", "shortest paths, balanced over equal links", route_minhop, false},
	{"updn", "paths go up, then down: free of deadlock", route_updn, true},
};
const size_t route_n_engines = ARRAY_SIZE(route_engines);

const struct route_engine *route_engine_find(const char *name)
{
	for (size_t i = 0; i < route_n_engines; i++)
		if (!strcmp(route_engines[i].name, name))
			return &route_engines[i];
	return NULL;
}
