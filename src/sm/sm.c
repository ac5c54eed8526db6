/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The manager's making and end, and the way of a MAD to its file. */
#include "sm/internal.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void sm_options_default(struct sm_options *o)
{
	*o = (struct sm_options){
		.gid_prefix = 0xfe80000000000000ull,
		.sm_key = 1, /* opensm's default */
		.sa_key = 1, /* saquery's and opensm's default */
		.engine = route_engine_find("minhop"),
		.max_vls_enc = 5,
		.ipoib_mtu = WIRE_MTU_2048,
		.subnet_timeout_enc = 18,
		.packet_life_enc = 18, /* a second, as opensm has it */
		.window = 32,
		.timeout_ms = 200,
		.retries = 3,
		.sweep_ns = 10 * NSEC_PER_SEC,
		.log_level = SM_LOG_INFO,
	};
}

void sm_log(const struct sm *sm, enum sm_log_level level, const char *fmt, ...)
{
	char line[512];
	va_list ap;

	if (!sm->opt.log || level > sm->opt.log_level)
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	sm->opt.log(sm->opt.ctx, level, line);
}

const char *sm_node_name(const struct sm_node *n)
{
	static char name[128];

	snprintf(name, sizeof(name), "\"%.64s\" (0x%016" PRIx64 ")",
		 (const char *)n->desc.text, n->info.node_guid);
	return name;
}

static void work(struct rt_work *w)
{
	sm_pump(container_of(w, struct sm, work));
}

static bool options_fit(const struct sm_options *o)
{
	return o->engine && o->priority <= 15 && o->lmc <= 7 && o->window &&
	       o->window <= 512 && o->timeout_ms && o->max_vls_enc >= 1 &&
	       o->max_vls_enc <= 5 && o->subnet_timeout_enc <= 31 &&
	       o->packet_life_enc <= 31 && o->port_guid;
}

static void load_lids(struct sm *sm)
{
	unsigned int line;
	int err = sm_lids_load(&sm->lids, sm->opt.lid_cache, &line);

	if (err == -EINVAL)
		sm_log(sm, SM_LOG_ERROR, "%s:%u: not \"0x<guid> <lid> <lmc>\": cache ignored",
		       sm->opt.lid_cache, line);
	else if (err)
		sm_log(sm, SM_LOG_ERROR, "%s: %s: cache ignored", sm->opt.lid_cache,
		       strerror(-err));
}

int sm_create(struct rt *rt, struct sm_io *io, const struct sm_options *options,
	      struct sm **out)
{
	struct sm *sm;

	if (!options_fit(options))
		return -EINVAL;
	sm = rt_zalloc(sizeof(*sm));
	if (!sm)
		return -ENOMEM;
	sm->rt = rt;
	sm->io = io;
	sm->opt = *options;
	INIT_LIST_HEAD(&sm->peers);
	INIT_LIST_HEAD(&sm->groups);
	INIT_LIST_HEAD(&sm->services);
	INIT_LIST_HEAD(&sm->subscriptions);
	INIT_LIST_HEAD(&sm->deferred);
	rt_work_init(&sm->work, work);
	rt_timer_init(rt, &sm->sweep_timer, sm_sweep_due);
	rt_timer_init(rt, &sm->rest_timer, sm_rest_ends);
	rt_timer_init(rt, &sm->lease_timer, sm_lease_expired);
	if (sm_calls_init(sm)) {
		rt_free(sm);
		return -ENOMEM;
	}
	if (sm->opt.lid_cache)
		load_lids(sm);
	sm_groups_init(sm);
	*out = sm;
	return 0;
}

void sm_destroy(struct sm *sm)
{
	struct sm_deferred *d, *tmp;

	if (!sm)
		return;
	rt_work_cancel(&sm->work);
	rt_timer_disarm(&sm->sweep_timer);
	rt_timer_disarm(&sm->rest_timer);
	sm_calls_close(sm);
	sm_peers_clear(sm);
	sm_groups_close(sm);
	sm_services_close(sm);
	sm_subscriptions_close(sm);
	list_for_each_entry_safe(d, tmp, &sm->deferred, node) {
		list_del(&d->node);
		rt_free(d);
	}
	sm_route_close(sm);
	sm_subnet_destroy(sm->next);
	sm_subnet_destroy(sm->subnet);
	sm_lids_free(&sm->lids);
	rt_free(sm);
}

void sm_start(struct sm *sm)
{
	sm->state = WIRE_SM_DISCOVERING;
	sm_want(sm, SM_JOB_HEAVY);
}

void sm_resweep(struct sm *sm)
{
	sm_want(sm, SM_JOB_HEAVY);
}

/* Subnet management of others: SMInfo and traps, nothing else is ours. */
static void smp_receive(struct sm *sm, enum sm_agent agent, const struct sm_addr *from,
			const uint8_t *mad)
{
	struct wire_mad h;

	if (wire_mad_decode(mad, WIRE_MAD_BYTES, &h) < 0)
		return;
	if (h.method == WIRE_METHOD_TRAP && h.attr_id == WIRE_SMP_NOTICE)
		sm_trap_receive(sm, agent, from, mad);
	else if (h.attr_id == WIRE_SMP_SM_INFO &&
		 (h.method == WIRE_METHOD_GET || h.method == WIRE_METHOD_SET))
		sm_info_receive(sm, agent, from, mad);
}

void sm_receive(struct sm *sm, enum sm_agent agent, int status,
		const struct sm_addr *from, const void *mad, size_t len)
{
	const uint8_t *m = mad;

	if (len < WIRE_MAD_HEADER_BYTES)
		return;
	if (status || m[3] & WIRE_METHOD_RESPONSE || m[3] == WIRE_METHOD_TRAP_REPRESS)
		sm_calls_answer(sm, status, mad, len);
	else if (len < WIRE_MAD_BYTES)
		return;
	else if (agent == SM_AGENT_SA)
		sm_sa_receive(sm, from, mad, len);
	else
		smp_receive(sm, agent, from, mad);
}

void sm_summarise(const struct sm *sm, struct sm_summary *s)
{
	*s = (struct sm_summary){.unanswered = sm->unanswered, .state = sm->state};
	if (!sm->subnet)
		return;
	s->lid_max = sm->subnet->lid_max;
	for (uint32_t i = 0; i < sm->subnet->n_nodes; i++) {
		uint8_t type = sm->subnet->nodes[i]->info.node_type;

		s->switches += type == WIRE_NODE_SWITCH;
		s->cas += type == WIRE_NODE_CA;
		s->routers += type == WIRE_NODE_ROUTER;
	}
	sm_for_each_port(sm->subnet, p) {
		s->end_ports += sm_is_end_port(p);
		s->links += p->peer && (p->peer->node->index > p->node->index ||
					(p->peer->node == p->node && p->peer->num > p->num));
	}
}
