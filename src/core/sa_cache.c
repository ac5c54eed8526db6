/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The cache of a port's recently queried path records. The same query (the same
 * components and values) is answered without the SA.
 *
 * The cache is discarded when paths may have changed: with an event of the port
 * (sa.c), or a notice of the SA that a GID came into or went out of service, or
 * that a link changed its state. The cache subscribes to these notices with its
 * first query, and is not used before the SA has accepted the subscriptions.
 */
#include <string.h>

#include "core/sa_priv.h"

#define CACHE_MAX 256 /* paths of a port; a new one replaces the oldest */

struct sa_cached {
	struct list_head node; /* port->cache */
	ib_sa_comp_mask comp_mask;
	struct sa_path_rec question, answer;
};

static const u16 watched[SA_WATCHES] = {
	IB_SA_SM_TRAP_GID_IN_SERVICE,
	IB_SA_SM_TRAP_GID_OUT_OF_SERVICE,
	IB_SA_SM_TRAP_PORT_CHANGE_STATE,
};

static void forget(struct sa_port *port, struct sa_cached *cached)
{
	list_del(&cached->node);
	port->num_cached--;
	rt_free(cached);
}

void sa_cache_drop(struct sa_port *port)
{
	struct sa_cached *cached, *tmp;

	port->cache_epoch++;
	list_for_each_entry_safe(cached, tmp, &port->cache, node)
		forget(port, cached);
}

static void drop_gid(struct sa_port *port, const union ib_gid *gid)
{
	struct sa_cached *cached, *tmp;

	port->cache_epoch++;
	list_for_each_entry_safe(cached, tmp, &port->cache, node)
		if (!memcmp(&cached->answer.dgid, gid, sizeof(*gid)) ||
		    !memcmp(&cached->answer.sgid, gid, sizeof(*gid)))
			forget(port, cached);
}

/* --- notices --- */

static size_t watch_of(const struct ib_inform_info *info)
{
	size_t i = 0;

	while (watched[i] != info->trap_number)
		i++;
	return i;
}

static int on_notice(int status, struct ib_inform_info *info, struct ib_sa_notice *notice)
{
	struct sa_port *port = info->context;
	size_t i = watch_of(info);

	if (status) { /* the subscription was refused or lost: the next query subscribes again */
		port->watch[i] = (struct sa_watch){0};
		sa_cache_drop(port);
		return status; /* with an error, the caller frees the subscription */
	}
	if (!notice)
		port->watch[i].stands = true;
	else if (notice->trap_number == IB_SA_SM_TRAP_PORT_CHANGE_STATE)
		sa_cache_drop(port);
	else
		drop_gid(port, ib_sa_notice_gid(notice));
	return 0;
}

static bool all_watched(const struct sa_port *port)
{
	for (size_t i = 0; i < SA_WATCHES; i++)
		if (!port->watch[i].stands)
			return false;
	return true;
}

static void begin_to_watch(struct sa_port *port)
{
	for (size_t i = 0; i < SA_WATCHES && !port->closing; i++) {
		struct ib_inform_info *info;

		if (port->watch[i].info)
			continue;
		info = ib_sa_register_inform_info(sa_client_of(port), port->device, port->port_num,
						  watched[i], GFP_KERNEL, on_notice, port);
		if (!IS_ERR(info))
			port->watch[i].info = info;
	}
}

/* --- queries --- */

const struct sa_path_rec *sa_cache_find(struct sa_port *port, const struct ib_sa_query *query)
{
	struct sa_cached *cached;

	if (!all_watched(port))
		return NULL;
	list_for_each_entry(cached, &port->cache, node)
		if (cached->comp_mask == query->comp_mask &&
		    !memcmp(&cached->question, &query->path, sizeof(query->path)))
			return &cached->answer;
	return NULL;
}

void sa_cache_keep(struct sa_port *port, const struct ib_sa_query *query,
		   const struct sa_path_rec *rec)
{
	struct sa_cached *cached;

	begin_to_watch(port);
	/* the answer may have been made before a notice that arrived earlier */
	if (!all_watched(port) || query->cache_epoch != port->cache_epoch ||
	    sa_cache_find(port, query))
		return;
	cached = rt_zalloc(sizeof(*cached));
	if (!cached)
		return;
	cached->comp_mask = query->comp_mask;
	cached->question = query->path;
	cached->answer = *rec;
	list_add(&cached->node, &port->cache);
	if (++port->num_cached > CACHE_MAX)
		forget(port, container_of(port->cache.prev, struct sa_cached, node));
}

void sa_cache_close(struct sa_port *port)
{
	sa_cache_drop(port);
	for (size_t i = 0; i < SA_WATCHES; i++)
		if (port->watch[i].info)
			ib_sa_unregister_inform_info(port->watch[i].info);
	memset(port->watch, 0, sizeof(port->watch));
}
