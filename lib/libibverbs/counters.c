/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Counters objects: a program chooses what stands at which index of what it reads, and which
 * rules of flow steering are counted. softibd counts the frames of each rule; here the
 * counts of the rules are added up, also of those that have ended.
 */
#include <stdlib.h>

#include "abi/objects.h"
#include "soft.h"

#define POINTS_MOST 64 /* every index is below this */
#define NO_POINT    UINT8_MAX

struct soft_counters {
	struct ibv_counters ibv;
	pthread_mutex_t lock;
	uint8_t point[POINTS_MOST]; /* enum ibv_counter_description, or NO_POINT */
	uint32_t num_points;	    /* one more than the highest index that was chosen */
	struct list_head flows;	    /* struct soft_flow */
	struct abi_read_flow_resp ended;
};

static struct soft_counters *to_counters(struct ibv_counters *counters)
{
	return container_of(counters, struct soft_counters, ibv);
}

struct ibv_counters *counters_create(struct ibv_context *context,
				     struct ibv_counters_init_attr *attr)
{
	struct soft_counters *c;

	if (attr->comp_mask)
		return verbs_null(-EOPNOTSUPP);
	c = calloc(1, sizeof(*c));
	if (!c)
		return verbs_null(-ENOMEM);
	c->ibv.context = context;
	pthread_mutex_init(&c->lock, NULL);
	memset(c->point, NO_POINT, sizeof(c->point));
	INIT_LIST_HEAD(&c->flows);
	return &c->ibv;
}

/** counters_destroy() - ibv_destroy_counters(). 0; EBUSY a rule is counted */
int counters_destroy(struct ibv_counters *counters)
{
	struct soft_counters *c = to_counters(counters);

	if (!list_empty(&c->flows))
		return verbs_err(-EBUSY);
	pthread_mutex_destroy(&c->lock);
	free(c);
	return 0;
}

void counters_take(struct ibv_counters *counters, struct soft_flow *flow)
{
	struct soft_counters *c = to_counters(counters);
	int state = lock_for_calls(&c->lock);

	flow->counters = c;
	list_add_tail(&flow->entry, &c->flows);
	unlock_after_calls(&c->lock, state);
}

/** counters_attach() - ibv_attach_counters_point_flow(): what stands at an index, and, unless
 *  @flow is NULL, that this rule is counted, too
 *  0; EOPNOTSUPP neither packets nor bytes; EINVAL the index is taken or too large, or the rule
 *  has other counters */
int counters_attach(struct ibv_counters *counters, struct ibv_counter_attach_attr *attr,
		    struct ibv_flow *flow)
{
	struct soft_flow *soft = flow ? container_of(flow, struct soft_flow, ibv) : NULL;
	struct soft_counters *c = to_counters(counters);
	bool taken;
	int state;

	if (attr->comp_mask || attr->counter_desc > IBV_COUNTER_BYTES)
		return verbs_err(-EOPNOTSUPP);
	if (attr->index >= POINTS_MOST || (soft && soft->counters && soft->counters != c))
		return verbs_err(-EINVAL);
	state = lock_for_calls(&c->lock);
	taken = c->point[attr->index] != NO_POINT;
	if (!taken) {
		c->point[attr->index] = (uint8_t)attr->counter_desc;
		c->num_points = MAX(c->num_points, attr->index + 1);
	}
	unlock_after_calls(&c->lock, state);
	if (!taken && soft && !soft->counters)
		counters_take(counters, soft);
	return verbs_err(taken ? -EINVAL : 0);
}

static int add_flow(struct soft_flow *flow, struct abi_read_flow_resp *sum)
{
	struct abi_read_flow req = {.flow_handle = flow->ibv.handle};
	struct abi_read_flow_resp resp;
	int rc = session_command(to_context(flow->ibv.context), ABI_CMD_READ_FLOW, &req, sizeof(req),
				 &resp, sizeof(resp));

	if (rc)
		return rc;
	sum->packets += resp.packets;
	sum->bytes += resp.bytes;
	return 0;
}

int counters_leave(struct soft_flow *flow)
{
	struct soft_counters *c = flow->counters;
	int state, rc;

	if (!c)
		return 0;
	state = lock_for_calls(&c->lock);
	rc = add_flow(flow, &c->ended);
	if (rc == -EIO) /* the rule ended with its session: see session_destroy() */
		rc = 0;
	if (!rc)
		list_del(&flow->entry);
	unlock_after_calls(&c->lock, state);
	if (!rc)
		flow->counters = NULL;
	return rc;
}

/** counters_read() - ibv_read_counters(): an index that was not chosen reads as 0
 *  @flags: PREFER_CACHED makes no difference. 0; EINVAL fewer than were chosen, an unknown flag;
 *  EIO */
int counters_read(struct ibv_counters *counters, uint64_t *values, uint32_t num, uint32_t flags)
{
	struct soft_counters *c = to_counters(counters);
	struct abi_read_flow_resp sum;
	struct soft_flow *flow;
	int state, rc = 0;

	if (flags & ~(uint32_t)IBV_READ_COUNTERS_ATTR_PREFER_CACHED || num < c->num_points)
		return verbs_err(-EINVAL);
	state = lock_for_calls(&c->lock);
	sum = c->ended;
	list_for_each_entry(flow, &c->flows, entry)
		if (!rc)
			rc = add_flow(flow, &sum);
	for (uint32_t i = 0; i < num && !rc; i++) {
		uint8_t point = i < POINTS_MOST ? c->point[i] : NO_POINT;

		values[i] = point == IBV_COUNTER_PACKETS ? sum.packets :
			    point == IBV_COUNTER_BYTES	 ? sum.bytes :
							   0;
	}
	unlock_after_calls(&c->lock, state);
	return verbs_err(rc);
}
