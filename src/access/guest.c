/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Quotas of nodes: the descriptors and the memory of softibd that their programs use. */
#include "access/guest.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "abi/session.h"
#include "rdma/ib_verbs.h"
#include "runtime/posix/log.h"

#define NEWCOMERS_MAX 128 /* connections without an opening message, while descriptors are scarce */
#define SCARCE	      4	  /* descriptors are scarce when less than this part, a quarter, is free */
#define RESERVE	      8	  /* the last eighth is reserved for nodes that have less than an equal share */

/** struct guest_node - what is charged to a node. It exists while anything is */
struct guest_node {
	struct list_head node; /* struct guests.nodes */
	struct rt *rt;
	char name[ABI_NAME_BYTES]; /* "": all names that no node has */
	unsigned int refs; /* sessions, and charges of memory */
	unsigned int fds;
	size_t bytes;
	bool full; /* the last program was refused; it is logged once */
};

/** struct guests - the quotas of a fabric. It exists while it has nodes or newcomers */
struct guests {
	struct list_head nodes;
	struct list_head newcomers; /* oldest first */
	unsigned int num_newcomers;
};

static struct guests *guests_of(const struct rt *rt)
{
	return rt_local(rt, RT_LOCAL_GUEST);
}

static void init_guests(struct rt *rt, void *state)
{
	struct guests *guests = state;

	INIT_LIST_HEAD(&guests->nodes);
	INIT_LIST_HEAD(&guests->newcomers);
}

/* Return: NULL: no memory */
static struct guests *guests_get(struct rt *rt)
{
	return rt_local_get(rt, RT_LOCAL_GUEST, sizeof(struct guests), init_guests);
}

static void guests_put(struct rt *rt)
{
	const struct guests *guests = guests_of(rt);

	if (list_empty(&guests->nodes) && list_empty(&guests->newcomers))
		rt_local_free(rt, RT_LOCAL_GUEST);
}

/* --- the nodes --- */

static int found(struct ib_device *device, void *ctx)
{
	return 1;
}

static struct guest_node *node_get(struct rt *rt, const char *name)
{
	struct guests *guests = guests_get(rt);
	struct guest_node *n;

	if (!guests)
		return NULL;

	/* All invented names share one quota. */
	if (!ib_device_for_each_of_node(rt, name, found, NULL))
		name = "";
	list_for_each_entry(n, &guests->nodes, node)
		if (!strcmp(n->name, name))
			goto out;
	n = rt_zalloc(sizeof(*n));
	if (!n) {
		guests_put(rt);
		return NULL;
	}
	n->rt = rt;
	snprintf(n->name, sizeof(n->name), "%s", name);
	list_add_tail(&n->node, &guests->nodes);
out:
	n->refs++;
	return n;
}

static void node_put(struct guest_node *n)
{
	struct rt *rt = n->rt;

	if (--n->refs)
		return;
	list_del(&n->node);
	rt_free(n);
	guests_put(rt);
}

static unsigned int num_nodes(const struct rt *rt)
{
	const struct guest_node *n;
	unsigned int num = 0;

	list_for_each_entry(n, &guests_of(rt)->nodes, node)
		num++;
	return num;
}

/* May @n, which has @own of a resource, have @more, if there is @most of it in all? The last eighth is
 * reserved for nodes with less than an equal share. The number of shares includes one for a node that
 * has nothing yet. */
static bool is_fair(const struct guest_node *n, uint64_t own, uint64_t used, uint64_t more,
		    uint64_t most)
{
	return used + more <= most - most / RESERVE || own + more <= most / (num_nodes(n->rt) + 1);
}

/* --- descriptors --- */

/* The kernel assigns the lowest free number, so @fd shows how many descriptors are in use. */
static bool are_scarce(int fd, struct rlimit *limit)
{
	return getrlimit(RLIMIT_NOFILE, limit) == 0 && limit->rlim_cur != RLIM_INFINITY &&
	       (rlim_t)fd >= limit->rlim_cur - limit->rlim_cur / SCARCE;
}

static void stop_waiting(struct guest *g)
{
	if (!g->drop)
		return;
	list_del(&g->newcomer);
	g->drop = NULL;
	guests_of(g->rt)->num_newcomers--;
	guests_put(g->rt);
}

void guest_arrive(struct guest *g, struct rt *rt, int fd, unsigned int fds,
		  void (*drop)(struct guest *guest))
{
	struct guests *guests = guests_get(rt);
	struct rlimit limit;

	g->rt = rt;
	g->fd = fd;
	g->fds = fds;
	if (!guests) /* the session is not counted, and guest_open() will fail */
		return;
	g->drop = drop;
	list_add_tail(&g->newcomer, &guests->newcomers);
	guests->num_newcomers++;
	/* @g is the youngest, so that @guests outlives the loop */
	while (guests->num_newcomers > NEWCOMERS_MAX && are_scarce(fd, &limit)) {
		struct guest *oldest = list_first_entry(&guests->newcomers, struct guest, newcomer);

		oldest->drop(oldest);
	}
}

static bool has_descriptors(struct guest_node *n, const struct guest *g)
{
	struct rlimit limit;
	bool fair = !are_scarce(g->fd, &limit) ||
		    is_fair(n, n->fds, (uint64_t)g->fd, g->fds, limit.rlim_cur);

	if (!fair && !n->full)
		rt_log("programs on %s are turned away: they have their share of softibd's "
		       "descriptors (ulimit -n)",
		       n->name[0] ? n->name : "nodes that do not exist");
	n->full = !fair;
	return fair;
}

static void charge(struct guest *g, struct guest_node *n)
{
	n->fds += g->fds;
	g->node = n;
}

int guest_open(struct guest *g, const char *name)
{
	struct guest_node *n = node_get(g->rt, name);

	if (!n)
		return -ENOMEM;
	if (!has_descriptors(n, g)) {
		node_put(n);
		return -EMFILE;
	}
	stop_waiting(g);
	charge(g, n);
	return 0;
}

int guest_join(struct guest *g, const struct guest *of, int fd, unsigned int fds)
{
	g->rt = of->rt;
	g->fd = fd;
	g->fds = fds;
	if (!has_descriptors(of->node, g))
		return -EMFILE;
	of->node->refs++;
	charge(g, of->node);
	return 0;
}

void guest_leave(struct guest *g)
{
	stop_waiting(g);
	if (!g->node)
		return;
	g->node->fds -= g->fds;
	node_put(g->node);
	g->node = NULL;
}

/* --- memory --- */

static bool has_memory(const struct guest_node *n, size_t more)
{
	const struct guest_node *other;
	size_t used = 0;

	if (n->bytes + more > GUEST_NODE_BYTES)
		return false;
	list_for_each_entry(other, &guests_of(n->rt)->nodes, node)
		used += other->bytes;
	return is_fair(n, n->bytes, used, more, GUEST_TOTAL_BYTES);
}

struct guest_node *guest_take(struct guest *g, size_t bytes)
{
	if (g->bytes + bytes > GUEST_FREE_BYTES && !has_memory(g->node, bytes))
		return NULL;
	g->bytes += bytes;
	g->node->bytes += bytes;
	g->node->refs++;
	return g->node;
}

void guest_give(struct guest_node *n, struct guest *g, size_t bytes)
{
	if (g)
		g->bytes -= bytes;
	n->bytes -= bytes;
	node_put(n);
}
