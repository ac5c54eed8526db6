/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Topologies: loading, lookup, and the builder that the generators and the parser
 * share. All bounds are checked in the builder.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/vendor.h"
#include "fabric/topo_private.h"
#include "runtime/rt.h"

/* --- names of encodings ------------------------------------------------ */

/* IBA v1 14.2.5.6: LinkWidth and LinkSpeed of PortInfo; the extended speeds
 * continue the row of bits as ibverbs counts them */
struct encoding {
	unsigned enc;
	const char *name;
};
static const struct encoding widths[] = {
	{1, "1x"}, {2, "4x"}, {4, "8x"}, {8, "12x"}, {16, "2x"},
};
static const struct encoding speeds[] = {
	{1, "SDR"},  {2, "DDR"},  {4, "QDR"},  {8, "FDR10"},
	{16, "FDR"}, {32, "EDR"}, {64, "HDR"}, {128, "NDR"},
};

static const char *name_of(const struct encoding *table, size_t n, unsigned enc)
{
	for (size_t i = 0; i < n; i++)
		if (table[i].enc == enc)
			return table[i].name;
	return "?";
}

static unsigned enc_of(const struct encoding *table, size_t n, const char *name,
		       size_t len)
{
	for (size_t i = 0; i < n; i++)
		if (strlen(table[i].name) == len && !memcmp(table[i].name, name, len))
			return table[i].enc;
	return 0;
}

const char *topo_width_name(unsigned width_enc)
{
	return name_of(widths, ARRAY_SIZE(widths), width_enc);
}

const char *topo_speed_name(unsigned speed_enc)
{
	return name_of(speeds, ARRAY_SIZE(speeds), speed_enc);
}

unsigned topo_width_enc(const char *name, size_t len)
{
	return enc_of(widths, ARRAY_SIZE(widths), name, len);
}

unsigned topo_speed_enc(const char *name, size_t len)
{
	return enc_of(speeds, ARRAY_SIZE(speeds), name, len);
}

const char *topo_kind_name(enum topo_kind kind)
{
	static const char *const names[] = {
		[TOPO_CA] = "ca", [TOPO_SWITCH] = "switch", [TOPO_ROUTER] = "router"};

	return names[kind];
}

/* --- the builder ------------------------------------------------------- */

int build_fail(struct topo_build *b, int error, const char *fmt, ...)
{
	va_list ap;

	if (!b->err_bytes || b->err[0])
		return error;
	va_start(ap, fmt);
	vsnprintf(b->err, b->err_bytes, fmt, ap);
	va_end(ap);
	return error;
}

/*
 * The GUIDs that softib assigns are locally administered EUI-64 identifiers:
 *
 *	0x02 | 28 bits: the fabric's name | 4: the kind | 16: the number | 8: the port
 *
 * The kind is that of the node, and from 4 on that of the second and further adapters of a
 * host, which have its number.
 *
 * The name is hashed (FNV-1a), so that fabrics with different names can form one subnet,
 * and a fabric has the same GUIDs each time it is started.
 */
#define GUID_LOCAL	 0x02ull
#define GUID_FABRIC_BITS 28

static uint64_t guids_of(const char *fabric)
{
	uint64_t hash = 0xcbf29ce484222325;

	for (; *fabric; fabric++)
		hash = (hash ^ (uint8_t)*fabric) * 0x100000001b3;
	hash ^= hash >> GUID_FABRIC_BITS;
	return GUID_LOCAL << 56 | (hash & ((1ull << GUID_FABRIC_BITS) - 1)) << 28;
}

static uint64_t own_guid(const struct topo_build *b, const struct topo_node *nd, int nth)
{
	unsigned kind = nd->device ? TOPO_ROUTER + nd->device : nd->kind;

	return b->guids | (uint64_t)kind << 24 | (uint64_t)nth << 8;
}

int build_begin(struct topo_build *b, const char *fabric, char *err, size_t err_bytes)
{
	*b = (struct topo_build){
		.guids = guids_of(fabric), .err = err, .err_bytes = err_bytes};
	if (err_bytes)
		err[0] = '\0';
	b->topo = rt_zalloc(sizeof(*b->topo));
	return b->topo ? 0 : build_fail(b, -ENOMEM, "out of memory");
}

static int grow(struct topo_build *b)
{
	int room = b->room ? 2 * b->room : 64;
	struct topo_node *node = rt_zalloc((size_t)room * sizeof(*node));

	if (!node)
		return build_fail(b, -ENOMEM, "out of memory");
	if (b->topo->num_nodes)
		memcpy(node, b->topo->node, (size_t)b->topo->num_nodes * sizeof(*node));
	rt_free(b->topo->node);
	b->topo->node = node;
	b->room = room;
	return 0;
}

int build_node(struct topo_build *b, enum topo_kind kind, int num_ports)
{
	struct topology *topo = b->topo;
	struct topo_port *port;

	if (num_ports < 1 || num_ports > TOPO_MAX_NODE_PORTS)
		return build_fail(b, -EINVAL, "a node with %d ports; expected 1 to %d",
				  num_ports, TOPO_MAX_NODE_PORTS);
	if (topo->num_nodes == TOPO_MAX_NODES || b->ports > TOPO_MAX_PORTS - num_ports)
		return build_fail(b, -EINVAL,
				  "too large: a fabric has at most %d nodes and %d ports",
				  TOPO_MAX_NODES, TOPO_MAX_PORTS);
	if (topo->num_nodes == b->room && grow(b))
		return -ENOMEM;
	port = rt_zalloc((size_t)(num_ports + 1) * sizeof(*port));
	if (!port)
		return build_fail(b, -ENOMEM, "out of memory");
	for (int p = 0; p <= num_ports; p++)
		port[p] = (struct topo_port){.peer_node = -1,
					     .width_enc = TOPO_WIDTH_DEFAULT,
					     .speed_enc = TOPO_SPEED_DEFAULT};
	b->ports += num_ports;
	b->count[kind]++;
	topo->node[topo->num_nodes] = (struct topo_node){
		.kind = kind, .num_ports = (uint8_t)num_ports, .port = port};
	return topo->num_nodes++;
}

int build_cable(struct topo_build *b, int node, int port, int peer, int peer_port)
{
	struct topo_port *near = &b->topo->node[node].port[port];
	struct topo_port *far = &b->topo->node[peer].port[peer_port];

	if (near == far || near->peer_node >= 0 || far->peer_node >= 0)
		return -EEXIST;
	near->peer_node = peer;
	near->peer_port = (uint8_t)peer_port;
	far->peer_node = node;
	far->peer_port = (uint8_t)port;
	return 0;
}

/* --- link layers ------------------------------------------------------- */

/* Return: does a cable of @nd have this link layer? */
static bool has_cable(const struct topo_node *nd, bool ethernet)
{
	for (int p = 1; p <= nd->num_ports; p++)
		if (nd->port[p].peer_node >= 0 && nd->port[p].ethernet == ethernet)
			return true;
	return false;
}

int build_links(struct topo_build *b)
{
	for (int i = 0; i < b->topo->num_nodes; i++) {
		struct topo_node *nd = &b->topo->node[i];

		if (nd->kind == TOPO_CA || !has_cable(nd, true))
			continue;
		if (nd->kind == TOPO_ROUTER || has_cable(nd, false))
			return build_fail(b, -EINVAL,
					  nd->kind == TOPO_ROUTER ?
						  "the router \"%s\" has a cable of Ethernet; expected "
						  "InfiniBand, whose subnets it connects" :
						  "\"%s\" has cables of both link layers; expected all "
						  "of Ethernet (link=ethernet) or all of InfiniBand, "
						  "since a switch forwards one of them",
					  nd->id);
		for (int p = 0; p <= nd->num_ports; p++)
			nd->port[p].ethernet = true;
	}
	return 0;
}

void topo_set_ethernet(struct topology *topo)
{
	for (int i = 0; i < topo->num_nodes; i++)
		for (int p = 0; p <= topo->node[i].num_ports; p++)
			topo->node[i].port[p].ethernet = true;
}

bool topo_has_link(const struct topology *topo, bool ethernet)
{
	for (int i = 0; i < topo->num_nodes; i++)
		for (int p = 1; p <= topo->node[i].num_ports; p++)
			if (topo->node[i].port[p].ethernet == ethernet)
				return true;
	return false;
}

/* --- names ------------------------------------------------------------- */

static const char prefix_of[] = {
	[TOPO_CA] = 'n', [TOPO_SWITCH] = 's', [TOPO_ROUTER] = 'r'};

#define DEVICE_PREFIX " softib"

/* Return: the number in a description that softib assigned ("n7 softib0", "s2"), or 0
 * @device: set to that of an adapter's device */
static int number_in_desc(const struct topo_node *nd, unsigned *device)
{
	char *end;
	long n;

	*device = 0;

	if (nd->desc[0] != prefix_of[nd->kind] || nd->desc[1] < '1' || nd->desc[1] > '9')
		return 0;
	n = strtol(nd->desc + 1, &end, 10);
	if (nd->kind == TOPO_CA && !strncmp(end, DEVICE_PREFIX, strlen(DEVICE_PREFIX))) {
		end += strlen(DEVICE_PREFIX);
		*device = isdigit((unsigned char)*end) ? (unsigned)strtoul(end, &end, 10) :
							 TOPO_MAX_ADAPTERS;
	} else if (nd->kind == TOPO_CA) {
		return 0;
	}
	if (*end || *device >= TOPO_MAX_ADAPTERS)
		return 0;
	return n <= TOPO_MAX_NODES ? (int)n : 0;
}

/*
 * The output of ibnetdiscover on a softib fabric lists the nodes in the order of
 * discovery. They keep their names if every description has one.
 */
static bool names_are_in_descs(const struct topology *topo)
{
	size_t bytes = (TOPO_ROUTER + TOPO_MAX_ADAPTERS) * (TOPO_MAX_NODES + 1);
	bool *seen = rt_zalloc(bytes), *slot;
	unsigned device;
	int i, n;

	if (!seen)
		return false;
	for (i = 0; i < topo->num_nodes; i++) {
		n = number_in_desc(&topo->node[i], &device);
		slot = &seen[(device ? TOPO_ROUTER + device : topo->node[i].kind) *
				     (TOPO_MAX_NODES + 1) + (unsigned)n];
		if (!n || *slot)
			break;
		*slot = true;
	}
	rt_free(seen);
	return i == topo->num_nodes;
}

static void name_node(const struct topo_build *b, struct topo_node *nd, int nth)
{
	static const char id_prefix[] = {
		[TOPO_CA] = 'H', [TOPO_SWITCH] = 'S', [TOPO_ROUTER] = 'R'};

	int n = snprintf(nd->name, sizeof(nd->name), "%c%d", prefix_of[nd->kind], nth);

	if (nd->device)
		snprintf(nd->name + n, sizeof(nd->name) - (size_t)n, ".softib%u", nd->device);
	if (!nd->guid)
		nd->guid = own_guid(b, nd, nth);
	if (!nd->sys_guid)
		nd->sys_guid = nd->guid;
	if (!nd->vendor_id) {
		nd->vendor_id = SOFTIB_VENDOR_ID;
		nd->device_id = TOPO_DEVICE_ID(nd->kind);
	}
	if (!nd->id[0])
		snprintf(nd->id, sizeof(nd->id), "%c-%016" PRIx64, id_prefix[nd->kind],
			 nd->guid);
	if (!nd->desc[0])
		snprintf(nd->desc, sizeof(nd->desc), nd->kind == TOPO_CA ? "%c%d softib%u" : "%c%d",
			 prefix_of[nd->kind], nth, nd->device);
}

static int by_guid(const void *a, const void *b)
{
	const struct topo_node *x = *(struct topo_node *const *)a;
	const struct topo_node *y = *(struct topo_node *const *)b;

	return x->guid < y->guid ? -1 : x->guid > y->guid;
}

static int check_guids(struct topo_build *b)
{
	int n = b->topo->num_nodes, error = 0;
	struct topo_node **sorted = rt_zalloc((size_t)n * sizeof(*sorted));

	if (!sorted)
		return build_fail(b, -ENOMEM, "out of memory");
	for (int i = 0; i < n; i++)
		sorted[i] = &b->topo->node[i];
	qsort(sorted, (size_t)n, sizeof(*sorted), by_guid);
	for (int i = 1; i < n && !error; i++)
		if (sorted[i]->guid == sorted[i - 1]->guid)
			error = build_fail(
				b, -EINVAL,
				"\"%s\" and \"%s\" have the same GUID 0x%016" PRIx64
				"; expected one of its own for each node",
				sorted[i - 1]->id, sorted[i]->id, sorted[i]->guid);
	rt_free(sorted);
	return error;
}

int build_name_nodes(struct topo_build *b)
{
	struct topology *topo = b->topo;
	bool described = names_are_in_descs(topo);
	int count[TOPO_ROUTER + 1] = {0}, error = build_hosts(b);
	unsigned device;

	if (error)
		return error;
	for (int i = 0; i < topo->num_nodes; i++) {
		struct topo_node *nd = &topo->node[i];
		int nth = nd->kind == TOPO_CA ? (int)nd->number : ++count[nd->kind];

		name_node(b, nd, described ? number_in_desc(nd, &device) : nth);
	}
	error = check_guids(b);
	return error ? error : build_links(b);
}

/* --- the interface ----------------------------------------------------- */

uint64_t topo_port_guid(const struct topo_node *node, int port)
{
	if (node->kind == TOPO_SWITCH)
		port = 0;
	if (node->port[port].guid)
		return node->port[port].guid;
	return node->guid + (uint64_t)port;
}

void topo_free(struct topology *topo)
{
	if (!topo)
		return;
	for (int i = 0; i < topo->num_nodes; i++)
		rt_free(topo->node[i].port);
	rt_free(topo->node);
	rt_free(topo->address);
	rt_free(topo);
}

static int find_by(const struct topology *topo, const char *name, size_t offset)
{
	for (int i = 0; i < topo->num_nodes; i++)
		if (!strcmp((const char *)&topo->node[i] + offset, name))
			return i;
	return -1;
}

static int find_guid(const struct topology *topo, const char *name)
{
	char *end;
	uint64_t guid = strtoull(name, &end, 16);

	if (strncmp(name, "0x", 2) || *end || !guid)
		return -1;
	for (int i = 0; i < topo->num_nodes; i++) {
		const struct topo_node *nd = &topo->node[i];

		if (nd->guid == guid)
			return i;
		for (int p = 0; nd->kind != TOPO_SWITCH && p <= nd->num_ports; p++)
			if (p && topo_port_guid(nd, p) == guid)
				return i;
	}
	return -1;
}

int topo_find(const struct topology *topo, const char *name)
{
	int i = find_by(topo, name, offsetof(struct topo_node, name));

	if (i < 0)
		i = find_by(topo, name, offsetof(struct topo_node, desc));
	if (i < 0)
		i = find_by(topo, name, offsetof(struct topo_node, id));
	return i < 0 ? find_guid(topo, name) : i;
}

/* read a regular file completely; the caller frees *@text */
static int read_file(struct topo_build *b, const char *path, char **text, size_t *len)
{
	FILE *f = fopen(path, "re");
	struct stat st;
	int error = 0;

	if (!f)
		return build_fail(b, -errno,
				  "%s: %s; expected a topology file, or a shape such as "
				  "pair, star:8, fattree:2,4, torus:4x4, dragonfly:4,2,2",
				  path[0] ? path : "\"\"", strerror(errno));
	if (fstat(fileno(f), &st) || !S_ISREG(st.st_mode))
		error = build_fail(b, -EINVAL, "%s: not a regular file", path);
	else if (st.st_size > TOPO_MAX_FILE_BYTES)
		error = build_fail(b, -EINVAL, "%s: larger than %u MiB", path,
				   TOPO_MAX_FILE_BYTES >> 20);
	else if (!(*text = rt_zalloc((size_t)st.st_size + 1)))
		error = build_fail(b, -ENOMEM, "out of memory");
	else
		*len = fread(*text, 1, (size_t)st.st_size, f);
	fclose(f);
	return error;
}

static int load_file(const char *path, const char *fabric, struct topology **topo,
		     char *err, size_t err_bytes)
{
	struct topo_build b = {.err = err, .err_bytes = err_bytes};
	char *text = NULL;
	size_t len = 0;
	int error;

	if (err_bytes)
		err[0] = '\0';
	error = read_file(&b, path, &text, &len);
	if (!error)
		error = topo_parse_text(path, fabric, text, len, topo, err, err_bytes);
	rt_free(text);
	return error == -ENOENT || error == -ENOMEM ? error : error ? -EINVAL : 0;
}

int topo_load(const char *spec, const char *fabric, struct topology **topo, char *err,
	      size_t err_bytes)
{
	struct topo_build b;
	int error = build_begin(&b, fabric, err, err_bytes);

	if (!error)
		error = topo_shape(&b, spec);
	if (!error)
		error = build_name_nodes(&b);
	if (!error) {
		*topo = b.topo;
		return 0;
	}
	topo_free(b.topo);
	return error == -ENOENT ? load_file(spec, fabric, topo, err, err_bytes) : error;
}
