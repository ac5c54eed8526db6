/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Builds topologies from a shorthand: SHAPE[:NUMBERS][,OPTION=VALUE...]. Each
 * shape is a row of the table at the end: its name, the number of its arguments,
 * and the function that creates its nodes and cables. Every shape has the options
 * speed=, width= and link= (the link layer) of the links, and spare= ports of each switch; ports= of an adapter, adapters= of
 * a host and a link layer for each of a host's ports are allowed by some rows.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/topo_private.h"

#define MAX_NUMBERS 4
#define MAX_LAYERS  16

struct shape_args {
	int num[MAX_NUMBERS];
	int count;
	int hosts; /* torus: the number after the dimensions */
	int ports; /* of an adapter */
	int adapters; /* of a host */
	int spare;    /* ports of each switch that have no cable */
	int layers;   /* that are named, for the ports of a host; 0: all are InfiniBand */
	bool ethernet[MAX_LAYERS];
};

struct shape {
	const char *name;
	int least, most; /* numbers */
	char separator;	 /* between them */
	bool ports;	 /* has the options ports= and adapters=, and link= for each port */
	int largest;	 /* bound of each number */
	const char *usage;
	int (*build)(struct topo_build *b, const struct shape_args *a);
};

/* add consecutive nodes of one kind. Return: the index of the first; -errno */
static int add_nodes(struct topo_build *b, enum topo_kind kind, long count, int ports)
{
	int first = b->topo->num_nodes, spare = kind == TOPO_SWITCH ? b->spare : 0;

	if (count > TOPO_MAX_NODES)
		return build_fail(b, -EINVAL, "too large: %ld nodes; expected at most %d",
				  count, TOPO_MAX_NODES);
	for (long i = 0; i < count; i++) {
		int node = build_node(b, kind, ports + spare);
		if (node < 0)
			return node;
	}
	return first;
}

/* a power of a small number; saturates above all bounds */
static long power(long base, int exponent)
{
	long value = 1;

	while (exponent-- > 0 && value <= TOPO_MAX_NODES)
		value *= base;
	return value;
}

/* Has port @i of a host the link layer Ethernet? The ports of all its adapters are counted,
 * from 0; the last layer that is named is that of all further ports. */
static bool is_ethernet(const struct shape_args *a, int i)
{
	return a->layers && a->ethernet[MIN(i, a->layers - 1)];
}

/* the cable of port @i of a host */
static void host_cable(struct topo_build *b, const struct shape_args *a, int i, int node, int port,
		       int peer, int peer_port)
{
	build_cable(b, node, port, peer, peer_port);
	b->topo->node[node].port[port].ethernet = is_ethernet(a, i);
	b->topo->node[peer].port[peer_port].ethernet = is_ethernet(a, i);
}

/* direct: two hosts with A adapters, P cables from each of them, no switch */
static int build_direct(struct topo_build *b, const struct shape_args *a)
{
	int n = add_nodes(b, TOPO_CA, 2 * a->adapters, a->ports);

	b->adapters = a->adapters;
	for (int i = 0; n >= 0 && i < a->adapters * a->ports; i++)
		host_cable(b, a, i, n + i / a->ports, 1 + i % a->ports,
			   n + a->adapters + i / a->ports, 1 + i % a->ports);
	return n < 0 ? n : 0;
}

/* the switch in the middle of a star, for the ports of one link layer */
struct centre {
	int ports; /* of a host, that have this link layer */
	int sw;	   /* index */
	int taken; /* ports of the switch */
};

/* N hosts, each with A adapters with P ports, around a switch for each link layer */
static int star(struct topo_build *b, const struct shape_args *a, int hosts, int ports)
{
	struct centre centre[2] = {0}; /* [is it Ethernet's?] */
	int of_host = a->adapters * ports, n;

	for (int i = 0; i < of_host; i++)
		centre[is_ethernet(a, i)].ports++;
	if ((long)hosts * MAX(centre[0].ports, centre[1].ports) > TOPO_MAX_NODE_PORTS)
		return build_fail(b, -EINVAL,
				  "too large: one switch has at most %d ports; "
				  "try fattree:2,%d",
				  TOPO_MAX_NODE_PORTS, hosts > 2592 ? 64 : 36);
	b->adapters = a->adapters;
	n = add_nodes(b, TOPO_CA, (long)hosts * a->adapters, ports);
	for (int i = 0; i < 2 && n >= 0; i++) {
		struct centre *c = &centre[is_ethernet(a, 0) ^ (i == 1)];

		c->sw = c->ports ? add_nodes(b, TOPO_SWITCH, 1, hosts * c->ports) : 0;
		if (c->sw < 0)
			return c->sw;
	}
	for (int i = 0; n >= 0 && i < hosts * of_host; i++) {
		struct centre *c = &centre[is_ethernet(a, i % of_host)];

		host_cable(b, a, i % of_host, n + i / ports, 1 + i % ports, c->sw, ++c->taken);
	}
	return n < 0 ? n : 0;
}

static int build_pair(struct topo_build *b, const struct shape_args *a)
{
	return star(b, a, 2, a->count ? a->num[0] : a->ports);
}

static int build_star(struct topo_build *b, const struct shape_args *a)
{
	return star(b, a, a->num[0], a->ports);
}

/*
 * A fat tree of L levels made of switches with 2K ports, the "2K-port L-tree": 2K
 * pods, each a K-ary (L-1)-tree with K^(L-1) hosts, below K^(L-1) top switches. It
 * has 2 K^L hosts, and as many links between two levels as hosts (full bisection
 * bandwidth). fattree:2,18 is the 648-port director.
 */
struct fattree {
	struct topo_build *b;
	int k, levels;
	long width;		   /* switches of one level in a pod: K^(L-2) */
	int hosts, switches, tops; /* indices of the first */
};

static int pod_switch(const struct fattree *t, int pod, int level, long w)
{
	return t->switches + (int)(((long)level * 2 * t->k + pod) * t->width + w);
}

/* Connect the up ports K+1 .. 2K of a pod's switch. The number of a parent differs in
 * digit @level, and that digit is the parent's port; at a top switch the pod is. */
static void wire_up(const struct fattree *t, int pod, int level, long w)
{
	long weight = power(t->k, level);
	int digit = (int)(w / weight % t->k);
	int child = pod_switch(t, pod, level, w);

	for (int up = 0; up < t->k; up++) {
		if (level == t->levels - 2)
			build_cable(t->b, child, t->k + 1 + up,
				    t->tops + (int)(w * t->k) + up, pod + 1);
		else
			build_cable(
				t->b, child, t->k + 1 + up,
				pod_switch(t, pod, level + 1, w + (up - digit) * weight),
				digit + 1);
	}
}

static void wire_pod(const struct fattree *t, int pod)
{
	for (long w = 0; w < t->width; w++) {
		for (int i = 0; i < t->k; i++)
			build_cable(t->b,
				    t->hosts + (int)((pod * t->width + w) * t->k) + i, 1,
				    pod_switch(t, pod, 0, w), i + 1);
		for (int level = 0; level < t->levels - 1; level++)
			wire_up(t, pod, level, w);
	}
}

static int build_fattree(struct topo_build *b, const struct shape_args *a)
{
	struct fattree t = {.b = b, .levels = a->num[0], .k = a->num[1]};
	int ports = 2 * t.k;

	if (ports > TOPO_MAX_NODE_PORTS)
		return build_fail(b, -EINVAL,
				  "K is half the ports of a switch: expected 1 to %d",
				  TOPO_MAX_NODE_PORTS / 2);
	if (t.levels == 1)
		return star(b, a, ports, 1);
	t.width = power(t.k, t.levels - 2);
	t.hosts = add_nodes(b, TOPO_CA, 2 * power(t.k, t.levels), 1);
	if (t.hosts < 0)
		return t.hosts;
	t.switches = add_nodes(b, TOPO_SWITCH, (t.levels - 1) * ports * t.width, ports);
	if (t.switches < 0)
		return t.switches;
	t.tops = add_nodes(b, TOPO_SWITCH, t.width * t.k, ports);
	for (int pod = 0; t.tops >= 0 && pod < ports; pod++)
		wire_pod(&t, pod);
	return t.tops < 0 ? t.tops : 0;
}

/*
 * A torus has a switch at every point of the grid. The first ports of a switch
 * connect its hosts, the next ones the dimensions, two for each. A dimension of
 * size two has one cable instead of two, and one of size one has none.
 */
static int build_torus(struct topo_build *b, const struct shape_args *a)
{
	int hosts = a->hosts, n, s, stride = 1;
	long points = 1;

	for (int d = 0; d < a->count; d++) {
		points *= a->num[d];
		if (points > TOPO_MAX_NODES)
			return build_fail(b, -EINVAL,
					  "too large: a fabric has at most %d nodes",
					  TOPO_MAX_NODES);
	}
	for (int d = 0; d < 3; d++)
		b->topo->grid[d] = d < a->count ? a->num[d] : 1;
	n = add_nodes(b, TOPO_CA, points * hosts, 1);
	s = n < 0 ? n : add_nodes(b, TOPO_SWITCH, points, hosts + 2 * a->count);
	if (s < 0)
		return s;
	for (int i = 0; i < points * hosts; i++)
		build_cable(b, n + i, 1, s + i / hosts, 1 + i % hosts);
	for (int d = 0; d < a->count; stride *= a->num[d++]) {
		for (int i = 0; i < points; i++) {
			int at = i / stride % a->num[d], size = a->num[d];
			int next = at + 1 < size ? i + stride : i - at * stride;

			if (size > 2 || at + 1 < size)
				build_cable(b, s + i, hosts + 2 * d + 1, s + next,
					    hosts + 2 * d + 2);
		}
	}
	return 0;
}

/*
 * A dragonfly (Kim, Dally 2008) of maximum size: groups of @a switches, all
 * connected to each other, with @p hosts and @h global cables per switch. With a*h
 * + 1 groups each pair of groups has one cable. Channel c of group i leads to group
 * i + c + 1 (modulo the number of groups), where it is channel groups - 2 - c.
 */
static int build_dragonfly(struct topo_build *b, const struct shape_args *args)
{
	int a = args->num[0], p = args->num[1], h = args->num[2];
	long groups = (long)a * h + 1;
	int n, s = 0;

	b->topo->group_switches = a;
	n = add_nodes(b, TOPO_CA, groups * a * p, 1);
	s = n < 0 ? n : add_nodes(b, TOPO_SWITCH, groups * a, p + a - 1 + h);
	if (s < 0)
		return s;
	for (int i = 0; i < groups * a * p; i++)
		build_cable(b, n + i, 1, s + i / p, 1 + i % p);
	for (int i = 0; i < groups * a; i++)
		for (int other = i % a + 1; other < a; other++)
			build_cable(b, s + i, p + other, s + i - i % a + other,
				    p + 1 + i % a);
	for (int g = 0; g < groups; g++) {
		for (int c = 0; c < a * h; c++) {
			int far = (int)((g + c + 1) % groups), fc = (int)groups - 2 - c;

			if (g < far)
				build_cable(b, s + g * a + c / h, p + a + c % h,
					    s + far * a + fc / h, p + a + fc % h);
		}
	}
	return 0;
}

static const struct shape shapes[] = {
	{"direct", 0, 0, ',', true, 0, "direct", build_direct},
	{"pair", 0, 1, ',', true, TOPO_MAX_NODE_PORTS, "pair or pair:PORTS", build_pair},
	{"star", 1, 1, ',', true, TOPO_MAX_NODES, "star:HOSTS", build_star},
	{"fattree", 2, 2, ',', false, 127, "fattree:LEVELS,HALF_THE_PORTS_OF_A_SWITCH",
	 build_fattree},
	{"torus", 1, 3, 'x', false, TOPO_MAX_NODES, "torus:XxYxZ[,HOSTS_PER_SWITCH]",
	 build_torus},
	{"dragonfly", 3, 3, ',', false, TOPO_MAX_NODE_PORTS,
	 "dragonfly:SWITCHES_PER_GROUP,HOSTS_PER_SWITCH,GLOBAL_CABLES_PER_SWITCH",
	 build_dragonfly},
};

/* --- reading the shorthand --------------------------------------------- */

struct reader {
	struct topo_build *b;
	const struct shape *shape;
	const char *spec, *at;
	unsigned speed_enc, width_enc;
};

static int bad(struct reader *r, const char *what)
{
	return build_fail(r->b, -EINVAL,
			  "topology \"%s\": %s; expected %s[,speed=EDR][,width=4x][,spare=1]%s",
			  r->spec, what, r->shape->usage,
			  r->shape->ports ? "[,ports=1][,adapters=1][,link=infiniband+ethernet]" :
					    "[,link=infiniband]");
}

static int number(struct reader *r, int most, int *value)
{
	char what[64], *end;
	long n;

	if (*r->at < '0' || *r->at > '9')
		return bad(r, *r->at ? "not a number" : "a number is missing");
	n = strtol(r->at, &end, 10);
	if (n < 1 || n > most) {
		snprintf(what, sizeof(what), "a number that is not from 1 to %d", most);
		return bad(r, what);
	}
	r->at = end;
	*value = (int)n;
	return 0;
}

static const struct {
	const char *name;
	bool ethernet;
} layers[] = {{"infiniband", false}, {"ethernet", true}};

/* the layer with this name. Return: its index; -1 */
static int find_layer(const char *name, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(layers); i++)
		if (strlen(layers[i].name) == len && !memcmp(layers[i].name, name, len))
			return (int)i;
	return -1;
}

/* "infiniband+ethernet": of each port of a host */
static int link_layers(struct reader *r, struct shape_args *a)
{
	for (a->layers = 0;; r->at++) {
		size_t len = strcspn(r->at, "+,");
		int layer = find_layer(r->at, len);

		if (layer < 0)
			return bad(r, "link= takes infiniband or ethernet");
		if (a->layers == (r->shape->ports ? MAX_LAYERS : 1))
			return bad(r, "link= has too many link layers");
		a->ethernet[a->layers++] = layers[layer].ethernet;
		r->at += len;
		if (*r->at != '+')
			return 0;
	}
}

static int option(struct reader *r, struct shape_args *a)
{
	size_t key = strcspn(r->at, "="), len;
	const char *value = r->at + key + 1;

	if (r->at[key] != '=')
		return bad(r, "text that is no option");
	len = strcspn(value, ",");
	r->at = value;
	if (key == 5 && !memcmp(value - 6, "speed", 5)) {
		r->speed_enc = topo_speed_enc(value, len);
		if (!r->speed_enc)
			return bad(
				r,
				"speed= takes SDR, DDR, QDR, FDR10, FDR, EDR, HDR, NDR");
	} else if (key == 5 && !memcmp(value - 6, "width", 5)) {
		r->width_enc = topo_width_enc(value, len);
		if (!r->width_enc)
			return bad(r, "width= takes 1x, 2x, 4x, 8x, 12x");
	} else if (key == 5 && !memcmp(value - 6, "spare", 5)) {
		return number(r, TOPO_MAX_NODE_PORTS, &a->spare);
	} else if (key == 4 && !memcmp(value - 5, "link", 4)) {
		return link_layers(r, a);
	} else if (key == 5 && !memcmp(value - 6, "ports", 5) && r->shape->ports) {
		return number(r, TOPO_MAX_NODE_PORTS, &a->ports);
	} else if (key == 8 && !memcmp(value - 9, "adapters", 8) && r->shape->ports) {
		return number(r, TOPO_MAX_ADAPTERS, &a->adapters);
	} else {
		return bad(r, "no such option");
	}
	r->at += len;
	return 0;
}

static int numbers(struct reader *r, struct shape_args *a)
{
	int error = 0;

	while (!error && a->count < r->shape->most) {
		error = number(r, r->shape->largest, &a->num[a->count]);
		if (error)
			return error;
		a->count++;
		if (*r->at != r->shape->separator || r->at[1] < '0' || r->at[1] > '9')
			break;
		r->at++;
	}
	if (a->count < r->shape->least)
		return bad(r, "a number is missing");
	/* torus: ",HOSTS" after the dimensions */
	if (r->shape->separator == 'x' && *r->at == ',' && r->at[1] >= '0' &&
	    r->at[1] <= '9') {
		r->at++;
		return number(r, TOPO_MAX_NODE_PORTS, &a->hosts);
	}
	return 0;
}

static int arguments(struct reader *r, struct shape_args *a)
{
	int error = 0;

	if (*r->at == ':') {
		r->at++;
		if (r->shape->most)
			error = numbers(r, a);
		else
			return bad(r, "it takes no number");
	} else if (r->shape->least) {
		return bad(r, "its numbers are missing");
	}
	while (!error && *r->at == ',') {
		r->at++;
		error = option(r, a);
	}
	return !error && *r->at ? bad(r, "too much text") : error;
}

static void set_links(struct topology *topo, const struct reader *r)
{
	for (int i = 0; i < topo->num_nodes; i++) {
		for (int p = 0; p <= topo->node[i].num_ports; p++) {
			topo->node[i].port[p].width_enc = (uint8_t)r->width_enc;
			topo->node[i].port[p].speed_enc = (uint16_t)r->speed_enc;
		}
	}
}

/* the shape with whose name @spec begins; NULL if there is none */
static const struct shape *find_shape(const char *spec)
{
	size_t len = strcspn(spec, ":,");

	for (size_t i = 0; i < ARRAY_SIZE(shapes); i++)
		if (strlen(shapes[i].name) == len && !memcmp(shapes[i].name, spec, len))
			return &shapes[i];
	return NULL;
}

bool topo_is_shape(const char *spec)
{
	return find_shape(spec) != NULL;
}

int topo_shape(struct topo_build *b, const char *spec)
{
	struct shape_args args = {.hosts = 1, .ports = 1, .adapters = 1};
	const struct shape *shape = find_shape(spec);
	struct reader r = {b,
			   shape,
			   spec,
			   spec + strcspn(spec, ":,"),
			   TOPO_SPEED_DEFAULT,
			   TOPO_WIDTH_DEFAULT};
	int error;

	if (!shape)
		return -ENOENT;
	error = arguments(&r, &args);
	b->spare = args.spare;
	if (!error)
		error = shape->build(b, &args);
	if (!error)
		set_links(b->topo, &r);
	if (!error && args.layers == 1 && args.ethernet[0])
		topo_set_ethernet(b->topo);
	return error;
}
