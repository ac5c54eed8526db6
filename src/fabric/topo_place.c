/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Positions of nodes in a drawing, for shapes that define them. The switches of a
 * torus are on a grid, with the layers of a third dimension side by side; those of
 * a dragonfly are on circles, one for each group, which are on a circle. Adapters
 * are beside their switch. Distances are in inches, Graphviz's unit.
 */
#include "fabric/topo_private.h"

#define GRID_STEP  1.9 /* between switches of a grid */
#define HOST_STEP  0.75 /* beside a switch */
#define GROUP_STEP 1.3 /* between switches of a group, along its circle */
#define TWO_PI	   6.283185307179586

struct point {
	double x, y;
};

/* cosine and sine by their series, which is exact enough for a drawing and needs no libm */
static struct point on_circle(double radius, double angle)
{
	struct point p = {0, 0};
	double term = 1;

	for (int n = 0; n < 40; n++) {
		if (n % 2)
			p.y += n % 4 == 1 ? term : -term;
		else
			p.x += n % 4 == 0 ? term : -term;
		term *= angle / (n + 1);
	}
	return (struct point){radius * p.x, radius * p.y};
}

/* the radius of a circle with @points points at distances of @step */
static double radius_of(int points, double step)
{
	return points < 2 ? 0 : points * step / TWO_PI + step / 2;
}

static struct point on_grid(const int grid[3], int nth)
{
	int x = nth % grid[0], y = nth / grid[0] % grid[1], z = nth / grid[0] / grid[1];

	return (struct point){(x + z * (grid[0] + 0.6)) * GRID_STEP, -y * GRID_STEP};
}

static struct point in_group(const struct topology *topo, int nth, int switches, double outward)
{
	int size = topo->group_switches, groups = switches / size;
	double own = radius_of(size, GROUP_STEP);
	double angle = TWO_PI * (nth / size) / groups;
	struct point group = on_circle(radius_of(groups, 2 * own + 3.2), angle);
	struct point at = on_circle(own + outward, TWO_PI * (nth % size) / size);

	return (struct point){group.x + at.x, group.y + at.y};
}

static int count_switches(const struct topology *topo)
{
	int n = 0;

	for (int i = 0; i < topo->num_nodes; i++)
		n += topo->node[i].kind == TOPO_SWITCH;
	return n;
}

bool topo_is_placed(const struct topology *topo)
{
	return topo->grid[0] || topo->group_switches;
}

void topo_place_switch(const struct topology *topo, int nth, double *x, double *y)
{
	struct point p = topo->grid[0] ? on_grid(topo->grid, nth)
				       : in_group(topo, nth, count_switches(topo), 0);

	*x = p.x;
	*y = p.y;
}

void topo_place_host(const struct topology *topo, int nth, int host, double *x, double *y)
{
	double out = 1.0 + 1.0 * host;
	struct point p;

	if (topo->grid[0]) {
		p = on_grid(topo->grid, nth);
		p.x += HOST_STEP * (1 + host * 0.7);
		p.y -= HOST_STEP * (1 - host * 0.2);
	} else {
		p = in_group(topo, nth, count_switches(topo), out);
	}
	*x = p.x;
	*y = p.y;
}
