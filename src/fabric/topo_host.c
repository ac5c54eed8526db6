/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Which adapters are in one host. A shape says how many each host has. In a file, the
 * descriptions say it: Linux sets the NodeDescription of an adapter to "HOST DEVICE", for
 * example "node7 mlx5_1". Adapters with the same first word and different devices, each of
 * which ends with a digit, are in one host. Its first adapter is the one whose device sorts
 * first by its number.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/topo_private.h"
#include "runtime/rt.h"

/* --- the host in a description --- */

/* Return: the length of the host's name in @desc; 0 if it is not "HOST DEVICE" */
static size_t host_bytes(const char *desc)
{
	size_t bytes = strcspn(desc, " "), all = strlen(desc);

	if (!bytes || all < bytes + 2 || strchr(desc + bytes + 1, ' ') ||
	    !isdigit((unsigned char)desc[all - 1]))
		return 0;
	return bytes;
}

static bool is_one_host(const struct topo_node *a, const struct topo_node *b)
{
	size_t bytes = host_bytes(a->desc);

	return bytes && bytes == host_bytes(b->desc) && !memcmp(a->desc, b->desc, bytes);
}

/* by host, then by the device's number; equal descriptions in the order of the file */
static int by_description(const void *a, const void *b)
{
	const struct topo_node *x = *(struct topo_node *const *)a;
	const struct topo_node *y = *(struct topo_node *const *)b;
	int order = strverscmp(x->desc, y->desc);

	return order ? order : (x > y) - (x < y);
}

/* --- hosts --- */

/* make the adapters @member[0..@n) one host */
static void make_host(struct topology *topo, struct topo_node **member, int n)
{
	unsigned ports = 0;

	for (int i = 0; i < n; i++) {
		member[i]->host = (int)(member[0] - topo->node);
		member[i]->next = i + 1 < n ? (int)(member[i + 1] - topo->node) : -1;
		member[i]->device = (uint8_t)i;
		member[i]->ports_before = ports;
		ports += member[i]->num_ports;
	}
}

/* the number of adapters at the start of @sorted that are one host; 1 if they cannot be, for
 * example because all hosts are called localhost */
static int size_of_host(struct topo_node **sorted, int n)
{
	int size = 1;

	while (size < n && is_one_host(sorted[0], sorted[size]))
		size++;
	for (int i = 1; i < size; i++)
		if (!strcmp(sorted[i - 1]->desc, sorted[i]->desc))
			return 1;
	return size <= TOPO_MAX_ADAPTERS ? size : 1;
}

static void find_hosts(struct topo_build *b, struct topo_node **sorted, int n)
{
	int size;

	if (b->adapters <= 1)
		qsort(sorted, (size_t)n, sizeof(*sorted), by_description);
	for (int i = 0; i < n; i += size) {
		size = b->adapters > 1 ? MIN(b->adapters, n - i) :
					 size_of_host(sorted + i, n - i);
		make_host(b->topo, sorted + i, size);
	}
}

int build_hosts(struct topo_build *b)
{
	struct topology *topo = b->topo;
	struct topo_node **adapter = rt_zalloc(((size_t)topo->num_nodes + 1) * sizeof(*adapter));
	unsigned hosts = 0;
	int n = 0;

	if (!adapter)
		return build_fail(b, -ENOMEM, "out of memory");
	for (int i = 0; i < topo->num_nodes; i++) {
		struct topo_node *nd = &topo->node[i];

		make_host(topo, &nd, 1);
		if (nd->kind == TOPO_CA)
			adapter[n++] = nd;
	}
	find_hosts(b, adapter, n);
	rt_free(adapter);
	for (int i = 0; i < topo->num_nodes; i++) {
		struct topo_node *first = &topo->node[topo->node[i].host];

		if (first->kind == TOPO_CA && !first->number)
			first->number = ++hosts;
		topo->node[i].number = first->number;
	}
	return 0;
}

const char *topo_host_name(const struct topology *topo, int node)
{
	return topo->node[topo->node[node].host].name;
}

int topo_host_adapter(const struct topology *topo, int host, unsigned *port)
{
	int i = host;

	while (i >= 0 && *port > topo->node[i].num_ports) {
		*port -= topo->node[i].num_ports;
		i = topo->node[i].next;
	}
	return *port ? i : -1;
}
