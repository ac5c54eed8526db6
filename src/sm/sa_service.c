/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * ServiceRecord (15.2.5.14): whoever offers a service registers it here, for
 * the time of its lease. A record's identity is its ServiceID, GID and P_Key:
 * who registers it again replaces it. The programs of a port share a bounded number,
 * so that none of them fills the administrator's memory.
 */
#include "sm/sa.h"

#include <string.h>

#define LEASE_FOR_EVER 0xffffffffu
#define SERVICES_OF_A_PORT 256 /* that programs of one port may register */

static void arm_lease_timer(struct sm *sm)
{
	mono_t next = MONO_NEVER;
	struct sm_service *s;

	list_for_each_entry(s, &sm->services, node)
		next = mono_min(next, s->expiry);
	if (next.ns == MONO_NEVER.ns)
		rt_timer_disarm(&sm->lease_timer);
	else
		rt_timer_arm(&sm->lease_timer, next);
}

static void service_free(struct sm_service *s)
{
	list_del(&s->node);
	rt_free(s);
}

void sm_lease_expired(struct rt_timer *t)
{
	struct sm *sm = container_of(t, struct sm, lease_timer);
	struct sm_service *s, *tmp;

	list_for_each_entry_safe(s, tmp, &sm->services, node)
		if (!mono_before(rt_now(sm->rt), s->expiry))
			service_free(s);
	arm_lease_timer(sm);
}

void sm_services_close(struct sm *sm)
{
	struct sm_service *s, *tmp;

	rt_timer_disarm(&sm->lease_timer);
	list_for_each_entry_safe(s, tmp, &sm->services, node)
		service_free(s);
}

static struct sm_service *service_find(struct sm *sm, const struct wire_service_record *r)
{
	struct sm_service *s;

	list_for_each_entry(s, &sm->services, node)
		if (s->rec.id == r->id && s->rec.pkey == r->pkey &&
		    !memcmp(&s->rec.gid, &r->gid, sizeof(r->gid)))
			return s;
	return NULL;
}

static bool has_room(const struct sm *sm, uint64_t by)
{
	unsigned n = 0;
	struct sm_service *s;

	list_for_each_entry(s, &sm->services, node)
		n += s->by == by;
	return n < SERVICES_OF_A_PORT;
}

/* The record as it is shown: the key is a secret, the lease runs. */
static struct wire_service_record shown(const struct sm_query *q, const struct sm_service *s)
{
	struct wire_service_record r = s->rec;
	mono_t now = rt_now(q->sm->rt);

	if (!sm_query_trusted(q))
		memset(r.key, 0, sizeof(r.key));
	if (s->expiry.ns != MONO_NEVER.ns)
		r.lease_s = mono_before(now, s->expiry)
				    ? DIV_ROUND_UP(s->expiry.ns - now.ns, NSEC_PER_SEC) : 0;
	return r;
}

void sm_service_each(struct sm_query *q)
{
	struct sm_service *s;

	/* the lease left changes all the time; a key is not to be guessed at */
	q->mask &= ~(WIRE_SR_LEASE | (sm_query_trusted(q) ? 0 : WIRE_SR_KEY));
	list_for_each_entry(s, &q->sm->services, node) {
		struct wire_service_record r = shown(q, s);

		sm_emit(q, &r);
	}
}

void sm_service_set(struct sm_query *q)
{
	const struct wire_service_record *key = q->key;
	const uint64_t needed = WIRE_SR_ID | WIRE_SR_GID;
	uint64_t by = q->requester ? q->requester->guid : 0;
	struct wire_service_record r;
	struct sm_service *s;

	if ((q->mask & needed) != needed) {
		q->status = WIRE_SA_INSUFFICIENT_COMPONENTS;
		return;
	}
	if (!sm_subnet_port(q->sm->subnet, sm_gid_guid(&key->gid))) {
		q->status = WIRE_SA_INVALID_GID;
		return;
	}
	s = service_find(q->sm, key);
	if (!s) {
		s = has_room(q->sm, by) ? rt_zalloc(sizeof(*s)) : NULL;
		if (!s) {
			q->status = WIRE_SA_NO_RESOURCES;
			return;
		}
		s->by = by;
		list_add_tail(&s->node, &q->sm->services);
	}
	s->rec = *key;
	if (!(q->mask & WIRE_SR_LEASE))
		s->rec.lease_s = LEASE_FOR_EVER;
	s->expiry = s->rec.lease_s == LEASE_FOR_EVER
			    ? MONO_NEVER
			    : mono_add(rt_now(q->sm->rt), s->rec.lease_s * NSEC_PER_SEC);
	arm_lease_timer(q->sm);
	r = shown(q, s);
	q->mask = 0;
	sm_emit(q, &r);
}

/* Who may delete a record: who has its key, its own port, the administrator. */
static bool may_remove(const struct sm_query *q, const struct sm_service *s)
{
	const struct wire_service_record *key = q->key;

	if (q->mask & WIRE_SR_KEY || sm_query_trusted(q))
		return true; /* a key that is given is matched like the rest */
	return !memcmp(s->rec.key, key->key, sizeof(key->key)) ||
	       (q->requester && q->requester->guid == sm_gid_guid(&s->rec.gid));
}

void sm_service_remove(struct sm_query *q)
{
	struct sm_service *s, *tmp;

	q->mask &= ~WIRE_SR_LEASE;
	list_for_each_entry_safe(s, tmp, &q->sm->services, node) {
		struct wire_service_record r;

		if (!may_remove(q, s) ||
		    !wire_fields_match(&wire_service_record_codec, q->mask, q->key, &s->rec))
			continue;
		r = shown(q, s);
		service_free(s);
		q->mask = 0;
		sm_emit(q, &r);
		break;
	}
	arm_lease_timer(q->sm);
}
