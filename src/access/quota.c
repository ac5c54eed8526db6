/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Quotas of nodes: the descriptors and the memory of softibd that their programs use. */
#include "access/quota.h"

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

/** struct quota_node - what is charged to a node. It exists while anything is */
struct quota_node {
	struct list_head node; /* struct quotas.nodes */
	struct rt *rt;
	char name[ABI_NAME_BYTES]; /* "": all names that no node has */
	unsigned int refs; /* sessions, and charges of memory */
	unsigned int fds;
	size_t bytes;
	bool full; /* the last program was refused; it is logged once */
};

/** struct quotas - the quotas of a fabric. It exists while it has nodes or newcomers */
struct quotas {
	struct list_head nodes;
	struct list_head newcomers; /* oldest first */
	unsigned int num_newcomers;
};

static struct quotas *quotas_of(const struct rt *rt)
{
	return rt_local(rt, RT_LOCAL_QUOTA);
}

static void init_quotas(struct rt *rt, void *state)
{
	struct quotas *quotas = state;

	INIT_LIST_HEAD(&quotas->nodes);
	INIT_LIST_HEAD(&quotas->newcomers);
}

/* Return: NULL: no memory */
static struct quotas *quotas_get(struct rt *rt)
{
	return rt_local_get(rt, RT_LOCAL_QUOTA, sizeof(struct quotas), init_quotas);
}

static void quotas_put(struct rt *rt)
{
	const struct quotas *quotas = quotas_of(rt);

	if (list_empty(&quotas->nodes) && list_empty(&quotas->newcomers))
		rt_local_free(rt, RT_LOCAL_QUOTA);
}

/* --- the nodes --- */

static int found(struct ib_device *device, void *ctx)
{
	return 1;
}

static struct quota_node *node_get(struct rt *rt, const char *name)
{
	struct quotas *quotas = quotas_get(rt);
	struct quota_node *n;

	if (!quotas)
		return NULL;

	/* All invented names share one quota. */
	if (!ib_device_for_each_of_node(rt, name, found, NULL))
		name = "";
	list_for_each_entry(n, &quotas->nodes, node)
		if (!strcmp(n->name, name))
			goto out;
	n = rt_zalloc(sizeof(*n));
	if (!n) {
		quotas_put(rt);
		return NULL;
	}
	n->rt = rt;
	snprintf(n->name, sizeof(n->name), "%s", name);
	list_add_tail(&n->node, &quotas->nodes);
out:
	n->refs++;
	return n;
}

static void node_put(struct quota_node *n)
{
	struct rt *rt = n->rt;

	if (--n->refs)
		return;
	list_del(&n->node);
	rt_free(n);
	quotas_put(rt);
}

static unsigned int num_nodes(const struct rt *rt)
{
	const struct quota_node *n;
	unsigned int num = 0;

	list_for_each_entry(n, &quotas_of(rt)->nodes, node)
		num++;
	return num;
}

/* May @n, which has @own of a resource, have @more, if there is @most of it in all? The last eighth is
 * reserved for nodes with less than an equal share. The number of shares includes one for a node that
 * has nothing yet. */
static bool is_fair(const struct quota_node *n, uint64_t own, uint64_t used, uint64_t more,
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

static void stop_waiting(struct quota_share *q)
{
	if (!q->drop)
		return;
	list_del(&q->newcomer);
	q->drop = NULL;
	quotas_of(q->rt)->num_newcomers--;
	quotas_put(q->rt);
}

void quota_arrive(struct quota_share *q, struct rt *rt, int fd, unsigned int fds,
		  void (*drop)(struct quota_share *quota))
{
	struct quotas *quotas = quotas_get(rt);
	struct rlimit limit;

	q->rt = rt;
	q->fd = fd;
	q->fds = fds;
	if (!quotas) /* the session is not counted, and quota_open() will fail */
		return;
	q->drop = drop;
	list_add_tail(&q->newcomer, &quotas->newcomers);
	quotas->num_newcomers++;
	/* @q is the youngest, so that @quotas outlives the loop */
	while (quotas->num_newcomers > NEWCOMERS_MAX && are_scarce(fd, &limit)) {
		struct quota_share *oldest =
			list_first_entry(&quotas->newcomers, struct quota_share, newcomer);

		oldest->drop(oldest);
	}
}

static bool has_descriptors(struct quota_node *n, const struct quota_share *q)
{
	struct rlimit limit;
	bool fair = !are_scarce(q->fd, &limit) ||
		    is_fair(n, n->fds, (uint64_t)q->fd, q->fds, limit.rlim_cur);

	if (!fair && !n->full)
		rt_log("programs on %s are turned away: they have their share of softibd's "
		       "descriptors (ulimit -n)",
		       n->name[0] ? n->name : "nodes that do not exist");
	n->full = !fair;
	return fair;
}

static void charge(struct quota_share *q, struct quota_node *n)
{
	n->fds += q->fds;
	q->node = n;
}

int quota_open(struct quota_share *q, const char *name)
{
	struct quota_node *n = node_get(q->rt, name);

	if (!n)
		return -ENOMEM;
	if (!has_descriptors(n, q)) {
		node_put(n);
		return -EMFILE;
	}
	stop_waiting(q);
	charge(q, n);
	return 0;
}

int quota_join(struct quota_share *q, const struct quota_share *of, int fd, unsigned int fds)
{
	q->rt = of->rt;
	q->fd = fd;
	q->fds = fds;
	if (!has_descriptors(of->node, q))
		return -EMFILE;
	of->node->refs++;
	charge(q, of->node);
	return 0;
}

void quota_leave(struct quota_share *q)
{
	stop_waiting(q);
	if (!q->node)
		return;
	q->node->fds -= q->fds;
	node_put(q->node);
	q->node = NULL;
}

/* --- memory --- */

static bool has_memory(const struct quota_node *n, size_t more)
{
	const struct quota_node *other;
	size_t used = 0;

	if (n->bytes + more > QUOTA_NODE_BYTES)
		return false;
	list_for_each_entry(other, &quotas_of(n->rt)->nodes, node)
		used += other->bytes;
	return is_fair(n, n->bytes, used, more, QUOTA_TOTAL_BYTES);
}

struct quota_node *quota_take(struct quota_share *q, size_t bytes)
{
	if (q->bytes + bytes > QUOTA_FREE_BYTES && !has_memory(q->node, bytes))
		return NULL;
	q->bytes += bytes;
	q->node->bytes += bytes;
	q->node->refs++;
	return q->node;
}

void quota_give(struct quota_node *n, struct quota_share *q, size_t bytes)
{
	if (q)
		q->bytes -= bytes;
	n->bytes -= bytes;
	node_put(n);
}
