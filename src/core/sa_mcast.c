/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Multicast groups of a port (15.2.5.17, o15-0.1). Any number of clients may join
 * and leave a group. For the SA, the port is a member as long as a client is. A
 * group counts its members by join state: the first member with a join state
 * causes Set(MCMemberRecord), and the last one causes Delete.
 *
 * A group has one outstanding request at a time. States of its members:
 *  waiting	in group->waiting, in the order of their calls
 *  joined	in group->members
 *  failed	in neither list; the callback has got the error
 * group->at_sa has the join states of the port that the SA knows.
 */
#include <string.h>

#include "core/private.h"
#include "core/sa_priv.h"
#include "core/trace.h"

#define KEY_FIELDS (IB_SA_MCMEMBER_REC_MGID | IB_SA_MCMEMBER_REC_JOIN_STATE)

/** struct sa_group - a multicast group that a port has joined or wants to join */
struct sa_group {
	struct list_head node; /* port->groups */
	struct sa_port *port;
	struct ib_sa_mcmember_rec rec; /* the SA's record; before the answer, the requested one */
	struct list_head waiting, members;
	unsigned int count[NUM_JOIN_MEMBERSHIP_TYPES];
	u8 at_sa;	/* join states in which the SA has this port */
	u8 leaving;	/* join states in the outstanding Delete */
	bool busy;	/* a request is outstanding */
	bool lost;	/* while busy: the answer is to be ignored */
	struct member *joining; /* the member that the request is for; NULL: it was freed */
	unsigned int users;	/* references: members in any state, and callers */
	struct rt_work work;
};

struct member {
	struct ib_sa_multicast multicast;
	struct list_head node;
	struct sa_group *group;
	bool joined;
};

static void go_on(struct sa_group *group);

/* --- groups --- */

static bool is_zero_gid(const union ib_gid *gid)
{
	static const union ib_gid zero;

	return !memcmp(gid, &zero, sizeof(zero));
}

static struct sa_group *find(struct sa_port *port, const union ib_gid *mgid)
{
	struct sa_group *group;

	list_for_each_entry(group, &port->groups, node)
		if (!memcmp(&group->rec.mgid, mgid, sizeof(*mgid)) && !is_zero_gid(mgid))
			return group;
	return NULL;
}

static void group_work(struct rt_work *work)
{
	go_on(container_of(work, struct sa_group, work));
}

/* A membership for which the SA chooses the MGID gets a group of its own. */
static struct sa_group *find_or_make(struct sa_port *port, const union ib_gid *mgid)
{
	struct sa_group *group = find(port, mgid);

	if (group)
		return group;
	group = rt_zalloc(sizeof(*group));
	if (!group)
		return NULL;
	group->port = port;
	group->rec.mgid = *mgid;
	INIT_LIST_HEAD(&group->waiting);
	INIT_LIST_HEAD(&group->members);
	rt_work_init(&group->work, group_work);
	list_add_tail(&group->node, &port->groups);
	return group;
}

static void group_put(struct sa_group *group)
{
	if (--group->users || group->busy || (group->at_sa && !group->port->closing))
		return;
	rt_work_cancel(&group->work);
	list_del(&group->node);
	rt_free(group);
}

/* Continue from the loop, so that callbacks never run on the stack of a caller. */
static void schedule(struct sa_group *group)
{
	rt_work_queue(group->port->device->rt, &group->work);
}

/* --- members --- */

static void count_states(struct sa_group *group, u8 join_state, int by)
{
	for (int i = 0; i < NUM_JOIN_MEMBERSHIP_TYPES; i++)
		if (join_state & 1 << i)
			group->count[i] += (unsigned int)by;
}

static u8 wanted_states(const struct sa_group *group)
{
	u8 states = 0;

	for (int i = 0; i < NUM_JOIN_MEMBERSHIP_TYPES; i++)
		if (group->count[i])
			states |= (u8)(1 << i);
	return states;
}

/* @member is in no list of its group, and in none of its counts */
static void detach(struct member *member)
{
	struct sa_group *group = member->group;

	if (member->joined)
		count_states(group, member->multicast.rec.join_state, -1);
	member->joined = false;
	if (group->joining == member)
		group->joining = NULL;
	list_del(&member->node);
}

static void member_free(struct member *member)
{
	struct sa_group *group = member->group;

	detach(member);
	rt_free(member);
	group_put(group);
}

static void trace(const struct member *member, const char *what, int status)
{
	const struct sa_port *port = member->group->port;

	trace_sa_member(RT_TRACE_AT(port->device, port->port_num), member->multicast.rec.mgid.raw,
			what, member->multicast.rec.join_state, status);
}

static void report(struct member *member, int status)
{
	trace(member, status == -ENETRESET ? "lost" : status ? "refused" : "joined", status);
	if (member->multicast.callback(status, &member->multicast))
		member_free(member);
}

static void join_here(struct member *member)
{
	struct sa_group *group = member->group;
	u8 join_state = member->multicast.rec.join_state;

	list_del(&member->node);
	list_add_tail(&member->node, &group->members);
	count_states(group, join_state, 1);
	member->joined = true;
	member->multicast.rec = group->rec;
	member->multicast.rec.join_state = join_state;
}

/* --- does the group have the requested attributes? --- */

static bool selector_holds(u8 selector, u8 asked, u8 has)
{
	switch (selector) {
	case IB_SA_GT:
		return has > asked;
	case IB_SA_LT:
		return has < asked;
	case IB_SA_EQ:
		return has == asked;
	default:
		return true;
	}
}

/* 15.2.5.17: the value of MTU, rate or lifetime is compared only if its selector is present, too. */
static bool fits(const struct ib_sa_mcmember_rec *asked, ib_sa_comp_mask mask,
		 const struct ib_sa_mcmember_rec *group)
{
	static const struct {
		ib_sa_comp_mask selector, value;
		size_t selector_at, value_at;
	} ranges[] = {
#define RANGE(NAME, name)                                                                          \
	{IB_SA_MCMEMBER_REC_##NAME##_SELECTOR, IB_SA_MCMEMBER_REC_##NAME,                          \
	 offsetof(struct ib_sa_mcmember_rec, name##_selector),                                     \
	 offsetof(struct ib_sa_mcmember_rec, name)}
		RANGE(MTU, mtu),
		RANGE(RATE, rate),
		RANGE(PACKET_LIFE_TIME, packet_life_time),
#undef RANGE
	};
	struct wire_mcmember_record a, b;

	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++) {
		ib_sa_comp_mask both = ranges[i].selector | ranges[i].value;

		if ((mask & both) == both &&
		    !selector_holds(((const u8 *)asked)[ranges[i].selector_at],
				    ((const u8 *)asked)[ranges[i].value_at],
				    ((const u8 *)group)[ranges[i].value_at]))
			return false;
		mask &= ~both;
	}
	mask &= ~(IB_SA_MCMEMBER_REC_JOIN_STATE | IB_SA_MCMEMBER_REC_PORT_GID |
		  IB_SA_MCMEMBER_REC_PROXY_JOIN);
	sa_member_to_wire(asked, &a);
	sa_member_to_wire(group, &b);
	return wire_fields_match(&wire_mcmember_record_codec, mask, &a, &b);
}

/* --- requests --- */

static void left(int status, struct ib_sa_mcmember_rec *resp, void *context)
{
	struct sa_group *group = context;

	group->busy = false;
	group->at_sa &= (u8)~group->leaving; /* even without an answer: the SM removes the port in time */
	group->lost = false;
	go_on(group);
}

static void answered(int status, struct ib_sa_mcmember_rec *resp, void *context)
{
	struct sa_group *group = context;
	struct member *member = group->joining;

	group->busy = false;
	group->joining = NULL;
	group->users++;
	if (group->lost)
		status = -ENETRESET;
	group->lost = false;
	if (!status) {
		group->at_sa |= resp->join_state;
		group->rec = *resp;
	}
	if (member) {
		if (status)
			list_del(&member->node);
		else
			join_here(member);
		report(member, status);
	}
	if (!group->port->closing)
		go_on(group);
	group_put(group);
}

/* Return: 0, and the group is busy; -errno */
static int send_join(struct sa_group *group, struct member *member)
{
	struct ib_sa_mcmember_rec rec = member->multicast.rec;
	ib_sa_comp_mask mask = member->multicast.comp_mask;
	int ret;

	if (!(mask & IB_SA_MCMEMBER_REC_PORT_GID)) {
		ret = ib_get_cached_gid(group->port->device, group->port->port_num, 0,
					&rec.port_gid);
		if (ret)
			return ret;
		mask |= IB_SA_MCMEMBER_REC_PORT_GID;
	}
	if (is_zero_gid(&rec.mgid))
		mask &= ~IB_SA_MCMEMBER_REC_MGID; /* the SA chooses the MGID */
	ret = ib_sa_mcmember_rec_set(sa_client_of(group->port), group->port->device, group->port->port_num, &rec,
				     mask, SA_TIMEOUT_MS, GFP_KERNEL, answered, group, NULL);
	if (ret < 0)
		return ret;
	group->joining = member;
	group->busy = true;
	return 0;
}

static bool is_ethernet(const struct sa_group *group)
{
	return core_cached_port(group->port->device, group->port->port_num)->link_layer ==
	       IB_LINK_LAYER_ETHERNET;
}

/* Ethernet has no administrator of groups. Frames to a group reach every station, so the port is a
 * member without a request. The attributes that an SA would report are set to what the port
 * supports. */
static void join_by_itself(struct sa_group *group, const struct member *member)
{
	const struct ib_port_attr *port =
		core_cached_port(group->port->device, group->port->port_num);
	const struct ib_sa_mcmember_rec *asked = &member->multicast.rec;

	if (!group->at_sa) {
		group->rec = *asked;
		group->rec.mlid = cpu_to_be16(IB_MULTICAST_LID_BASE);
		group->rec.mtu_selector = group->rec.rate_selector =
			group->rec.packet_life_time_selector = IB_SA_EQ;
		group->rec.mtu = (u8)port->active_mtu;
		group->rec.rate = SA_ROCE_RATE_ENC;
		group->rec.packet_life_time = SA_ROCE_LIFE_TIME_ENC;
		group->rec.hop_limit = SA_ROCE_HOP_LIMIT;
	}
	group->at_sa |= asked->join_state;
}

static int send_leave(struct sa_group *group, u8 states)
{
	struct ib_sa_mcmember_rec rec = group->rec;
	int ret;

	if (is_ethernet(group))
		return -ENOENT;
	rec.join_state = states;
	ret = ib_sa_mcmember_rec_delete(sa_client_of(group->port), group->port->device, group->port->port_num,
					&rec, KEY_FIELDS | IB_SA_MCMEMBER_REC_PORT_GID,
					SA_TIMEOUT_MS, GFP_KERNEL, left, group, NULL);
	if (ret < 0)
		return ret;
	group->leaving = states;
	group->busy = true;
	return 0;
}

/* --- the next request of a group --- */

/* Handle the oldest waiting member: it joins without the SA, or by a request, or is refused. */
static void serve(struct sa_group *group, struct member *member)
{
	u8 join_state = member->multicast.rec.join_state;
	int status = 0;

	if (is_ethernet(group))
		join_by_itself(group, member);
	if ((group->at_sa & join_state) != join_state) {
		status = send_join(group, member);
		if (!status)
			return;
	} else if (!fits(&member->multicast.rec, member->multicast.comp_mask, &group->rec)) {
		status = -EINVAL;
	}
	if (status)
		list_del(&member->node);
	else
		join_here(member);
	report(member, status);
}

static void go_on(struct sa_group *group)
{
	group->users++;
	while (!group->busy && !group->port->closing) {
		u8 surplus = group->at_sa & (u8)~wanted_states(group);

		if (!list_empty(&group->waiting))
			serve(group, list_first_entry(&group->waiting, struct member, node));
		else if (surplus && send_leave(group, surplus))
			group->at_sa &= (u8)~surplus; /* there is no SA that has to know */
		else if (!surplus)
			break;
	}
	group_put(group);
}

/* --- the interface --- */

struct ib_sa_multicast *ib_sa_join_multicast(struct ib_sa_client *client,
					     struct ib_device *device, u32 port_num,
					     const struct ib_sa_mcmember_rec *rec,
					     ib_sa_comp_mask comp_mask, gfp_t gfp_mask,
					     int (*callback)(int status,
							     struct ib_sa_multicast *multicast),
					     void *context)
{
	struct sa_port *port = sa_port_find(device, port_num);
	struct sa_group *group;
	struct member *member;

	if (!port || port->closing)
		return ERR_PTR(-ENODEV);
	if ((comp_mask & KEY_FIELDS) != KEY_FIELDS || !rec->join_state ||
	    rec->join_state >> NUM_JOIN_MEMBERSHIP_TYPES)
		return ERR_PTR(-EINVAL);
	member = rt_zalloc(sizeof(*member));
	group = member ? find_or_make(port, &rec->mgid) : NULL;
	if (!group) {
		rt_free(member);
		return ERR_PTR(-ENOMEM);
	}
	member->multicast = (struct ib_sa_multicast){*rec, comp_mask, callback, context};
	member->group = group;
	list_add_tail(&member->node, &group->waiting);
	trace(member, "join", 0);
	group->users++;
	schedule(group);
	return &member->multicast;
}

void ib_sa_free_multicast(struct ib_sa_multicast *multicast)
{
	struct member *member = container_of(multicast, struct member, multicast);
	struct sa_group *group = member->group;

	trace(member, "leave", 0);
	schedule(group); /* the port may have to leave the group */
	member_free(member);
}

int ib_sa_get_mcmember_rec(struct ib_device *device, u32 port_num, const union ib_gid *mgid,
			   struct ib_sa_mcmember_rec *rec)
{
	struct sa_port *port = sa_port_find(device, port_num);
	struct sa_group *group = port ? find(port, mgid) : NULL;

	if (!port)
		return -ENODEV;
	if (!group || !group->at_sa)
		return -EADDRNOTAVAIL;
	*rec = group->rec;
	return 0;
}

/* --- the loss of memberships --- */

static void group_lost(struct sa_group *group)
{
	group->users++;
	group->lost = group->busy;
	group->at_sa = 0;
	while (!list_empty(&group->members)) {
		struct member *member = list_first_entry(&group->members, struct member, node);

		detach(member);
		report(member, -ENETRESET);
	}
	group_put(group);
}

/* Report the loss of memberships. @ends: selects the groups; NULL: all groups */
static void groups_lost(struct sa_port *port, bool (*ends)(const struct sa_group *group))
{
	LIST_HEAD(todo);

	list_splice_tail_init(&port->groups, &todo);
	while (!list_empty(&todo)) {
		struct sa_group *group = list_first_entry(&todo, struct sa_group, node);

		list_del(&group->node);
		list_add_tail(&group->node, &port->groups);
		if (!ends || ends(group))
			group_lost(group);
	}
}

void sa_groups_lost(struct sa_port *port)
{
	groups_lost(port, NULL);
}

static bool pkey_is_gone(const struct sa_group *group)
{
	u16 index;

	return group->at_sa &&
	       ib_find_cached_pkey(group->port->device, group->port->port_num,
				   be16_to_cpu(group->rec.pkey), &index);
}

void sa_groups_check_pkeys(struct sa_port *port)
{
	groups_lost(port, pkey_is_gone);
}

void sa_groups_close(struct sa_port *port)
{
	struct sa_group *group, *tmp;

	list_for_each_entry_safe(group, tmp, &port->groups, node) {
		group->users++;
		group_put(group); /* unless its query ends soon, or a member is left */
	}
}
