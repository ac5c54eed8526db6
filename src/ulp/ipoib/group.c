/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Multicast: the groups that the interface is a member of, because its host is, and those
 * that it only sends to. The broadcast group of the partition comes first: the others are
 * made as it is (RFC 4391 sections 5 and 6).
 */
#include <errno.h>
#include <string.h>

#include "ulp/ipoib/private.h"
#include "ulp/ipoib/trace.h"

#define RETRY_FIRST_MS 250
#define RETRY_LAST_MS  16000u
#define SENDER_LIFE_MS 60000 /* a group that nobody sends to any more is left */
#define GROUPS_MOST    256

/** struct ipoib_group - a multicast group of the partition */
struct ipoib_group {
	struct list_head node;
	struct ipoib *ipoib;
	union ib_gid mgid;
	bool member; /* the host is: it receives; else it only sends */
	bool used;   /* since the timer was armed */
	unsigned int retry_ms;
	struct ib_sa_multicast *membership; /* joined, or under way */
	struct ib_ah *ah;		    /* joined */
	bool attached;
	struct ipoib_waiting waiting;
	struct rt_timer timer; /* to join again, or to leave what is not used */
};

static struct ipoib_group *find(struct ipoib *p, const union ib_gid *mgid)
{
	struct ipoib_group *g;

	list_for_each_entry(g, &p->groups, node)
		if (!memcmp(&g->mgid, mgid, sizeof(*mgid)))
			return g;
	return NULL;
}

static void trace(const struct ipoib_group *g, const char *what, int status)
{
	trace_ipoib_group(IPOIB_TRACE_AT(g->ipoib), g->mgid.raw, g->member, what, status);
}

static void arm(struct ipoib_group *g, unsigned int ms)
{
	rt_timer_arm(&g->timer,
		     mono_add(rt_now(g->ipoib->device->rt), ms * NSEC_PER_MSEC));
}

static void send_waiting(struct ipoib_waiting *w, struct ipoib_send *s)
{
	ipoib_post(s, container_of(w, struct ipoib_group, waiting)->ah, IB_MULTICAST_QPN);
}

static void drop_waiting(struct ipoib_group *g)
{
	struct ipoib_send *s;

	while ((s = ipoib_wait_end(&g->waiting))) {
		g->ipoib->stats.tx_dropped++;
		ipoib_send_free(s);
	}
}

/* as long as the membership is there */
static void detach(struct ipoib_group *g)
{
	if (g->attached)
		ib_detach_mcast(g->ipoib->qp, &g->mgid,
				be16_to_cpu(g->membership->rec.mlid));
	g->attached = false;
	ipoib_hold(&g->waiting);
	if (g->ah)
		ib_destroy_ah(g->ah);
	g->ah = NULL;
}

static void leave(struct ipoib_group *g)
{
	detach(g);
	if (g->membership) {
		trace(g, "leave", 0);
		ib_sa_free_multicast(g->membership);
	}
	g->membership = NULL;
}

static void forget(struct ipoib_group *g)
{
	rt_timer_disarm(&g->timer);
	leave(g);
	drop_waiting(g);
	list_del(&g->node);
	if (g->ipoib->broadcast == g)
		g->ipoib->broadcast = NULL;
	rt_free(g);
}

/* --- joining --- */

static void join(struct ipoib_group *g);
static void make_standing(struct ipoib *p);

/* Return: 0; -errno the group is of no use */
static int take_part(struct ipoib_group *g, const struct ib_sa_mcmember_rec *rec)
{
	struct ipoib *p = g->ipoib;
	struct rdma_ah_attr attr;
	int ret = 0;

	if (g == p->broadcast)
		ret = ipoib_queue_set_mtu(p, ib_mtu_enum_to_int(rec->mtu));
	if (g == p->broadcast && !ret)
		ret = ipoib_set_qkey(p, be32_to_cpu(rec->qkey));
	if (!ret && g->member)
		ret = ib_attach_mcast(p->qp, &g->mgid, be16_to_cpu(rec->mlid));
	if (ret)
		return ret;
	g->attached = g->member;
	ret = ib_init_ah_from_mcmember(p->device, p->port_num, rec, &attr);
	if (ret)
		return ret;
	g->ah = ib_create_ah(p->pd, &attr);
	if (!IS_ERR(g->ah))
		return 0;
	ret = (int)PTR_ERR(g->ah);
	g->ah = NULL;
	return ret;
}

static void is_joined(struct ipoib_group *g)
{
	struct ipoib *p = g->ipoib;

	g->retry_ms = RETRY_FIRST_MS;
	g->used = true;
	if (!g->member)
		arm(g, SENDER_LIFE_MS);
	ipoib_release(p, &g->waiting);
	if (g != p->broadcast)
		return;
	make_standing(p);
	ipoib_neighbours_ask(p);
	ipoib_conflict_joined(p);
}

/* The membership is freed by who called, when this returns other than 0. */
static int joined(int status, struct ib_sa_multicast *membership)
{
	struct ipoib_group *g = membership->context;

	if (!status)
		status = take_part(g, &membership->rec);
	trace(g, status == -ENETRESET ? "lost" : status ? "refused" : "joined", status);
	if (!status) {
		is_joined(g);
		return 0;
	}
	detach(g);
	g->membership = NULL;
	if (!g->member && status != -ENETRESET) /* there is none that anybody hears */
		drop_waiting(g);
	arm(g, status == -ENETRESET ? 0 : g->retry_ms);
	g->retry_ms = MIN(2 * g->retry_ms, RETRY_LAST_MS);
	return status;
}

#define CREATE                                                                           \
	(IB_SA_MCMEMBER_REC_QKEY | IB_SA_MCMEMBER_REC_MTU_SELECTOR |                     \
	 IB_SA_MCMEMBER_REC_MTU | IB_SA_MCMEMBER_REC_TRAFFIC_CLASS |                     \
	 IB_SA_MCMEMBER_REC_RATE_SELECTOR | IB_SA_MCMEMBER_REC_RATE |                    \
	 IB_SA_MCMEMBER_REC_SL | IB_SA_MCMEMBER_REC_FLOW_LABEL |                         \
	 IB_SA_MCMEMBER_REC_HOP_LIMIT)

static void join(struct ipoib_group *g)
{
	struct ipoib *p = g->ipoib;
	ib_sa_comp_mask mask = IB_SA_MCMEMBER_REC_MGID | IB_SA_MCMEMBER_REC_PORT_GID |
			       IB_SA_MCMEMBER_REC_PKEY | IB_SA_MCMEMBER_REC_JOIN_STATE;
	struct ib_sa_mcmember_rec rec = {0};

	if (p->stopped)
		return; /* ipoib_groups_join() comes back */
	if (g != p->broadcast && !(p->broadcast && p->broadcast->ah))
		return; /* is_joined() of that one comes back */
	if (g != p->broadcast && g->member) {
		rec = p->broadcast->membership->rec;
		rec.mtu_selector = rec.rate_selector = IB_SA_EQ;
		mask |= CREATE;
	}
	rec.mgid = g->mgid;
	rec.port_gid = p->own.gid;
	rec.pkey = cpu_to_be16(p->pkey);
	rec.join_state =
		(u8)(1 << (g->member ? FULLMEMBER_JOIN : SENDONLY_NONMEBER_JOIN));
	rt_timer_disarm(&g->timer); /* of an attempt that the broadcast group's return overtook */
	trace(g, "join", 0);
	g->membership = ib_sa_join_multicast(&p->sa, p->device, p->port_num, &rec, mask,
					     GFP_KERNEL, joined, g);
	if (IS_ERR(g->membership)) {
		g->membership = NULL;
		arm(g, g->retry_ms);
	}
}

static void tick(struct rt_timer *timer)
{
	struct ipoib_group *g = container_of(timer, struct ipoib_group, timer);

	if (g->membership && g->used) { /* it only sends, and does */
		g->used = false;
		arm(g, SENDER_LIFE_MS);
	} else if (g->membership || (!g->member && !g->waiting.num)) {
		forget(g);
	} else {
		join(g);
	}
}

static struct ipoib_group *make(struct ipoib *p, const union ib_gid *mgid, bool member)
{
	struct ipoib_group *g, *other;
	unsigned int num = 0;

	list_for_each_entry(other, &p->groups, node)
		num++;
	g = num >= GROUPS_MOST ? NULL : rt_zalloc(sizeof(*g));
	if (!g)
		return NULL;
	g->ipoib = p;
	g->mgid = *mgid;
	g->member = member;
	g->retry_ms = RETRY_FIRST_MS;
	ipoib_waiting_init(&g->waiting, send_waiting);
	rt_timer_init(p->device->rt, &g->timer, tick);
	list_add_tail(&g->node, &p->groups);
	return g;
}

/* the groups of every host, and those that wait for the broadcast group */
static void make_standing(struct ipoib *p)
{
	static const struct in6_addr all_v6 = {.s6_addr = {0xff, 2, [15] = 1}};
	struct in6_addr all_v4 = ipoib_from_v4(cpu_to_be32(INADDR_ALLHOSTS_GROUP));
	struct ipoib_group *g;

	ipoib_group_member(p, &all_v4, true);
	ipoib_group_member(p, &all_v6, true);
	list_for_each_entry(g, &p->groups, node)
		if (!g->membership)
			join(g);
}

/* --- what the others use --- */

void ipoib_group_member(struct ipoib *p, const struct in6_addr *group, bool member)
{
	union ib_gid mgid = ipoib_mgid(group, p->pkey, IPOIB_BROADCAST_SCOPE);
	struct ipoib_group *g = find(p, &mgid);

	if (g && g == p->broadcast)
		return;
	if (!member) {
		if (g && g->member)
			forget(g);
		return;
	}
	if (g && g->member)
		return;
	if (g) { /* it was a sender's */
		rt_timer_disarm(&g->timer);
		leave(g);
		g->member = true;
	} else {
		g = make(p, &mgid, true);
	}
	if (g)
		join(g);
}

void ipoib_send_to_group(struct ipoib *p, const struct in6_addr *group,
			 struct ipoib_send *s)
{
	struct in6_addr all = ipoib_from_v4(INADDR_BROADCAST);
	bool local = IN6_IS_ADDR_UNSPECIFIED(group); /* that of the interface's network */
	union ib_gid mgid =
		ipoib_mgid(local ? &all : group, p->pkey, IPOIB_BROADCAST_SCOPE);
	struct ipoib_group *g = find(p, &mgid);
	bool is_new = !g;

	if (ipoib_longest(s) > IPOIB_ENCAP_BYTES + ipoib_datagram_mtu(p)) { /* groups are reached by datagrams */
		p->stats.tx_errors++;
		ipoib_send_free(s);
		return;
	}
	if (is_new)
		g = make(p, &mgid, false);
	if (g && g->ah) {
		g->used = true;
		ipoib_post(s, g->ah, IB_MULTICAST_QPN);
		return;
	}
	if (ipoib_wait(g ? &g->waiting : NULL, s) && !g->membership && (is_new || !rt_timer_armed(&g->timer)))
		join(g);
}

int ipoib_groups_open(struct ipoib *p)
{
	struct in6_addr all = ipoib_from_v4(INADDR_BROADCAST);
	union ib_gid mgid = ipoib_mgid(&all, p->pkey, IPOIB_BROADCAST_SCOPE);

	p->broadcast = make(p, &mgid, true);
	if (!p->broadcast)
		return -ENOMEM;
	join(p->broadcast);
	return 0;
}

void ipoib_groups_close(struct ipoib *p)
{
	while (!list_empty(&p->groups))
		forget(list_first_entry(&p->groups, struct ipoib_group, node));
}

void ipoib_groups_leave(struct ipoib *p)
{
	struct ipoib_group *g, *next;

	list_for_each_entry_safe(g, next, &p->groups, node) {
		rt_timer_disarm(&g->timer);
		if (g->member) {
			leave(g);
			drop_waiting(g);
		} else {
			forget(g);
		}
	}
	p->qkey = 0;
}

void ipoib_groups_join(struct ipoib *p)
{
	p->broadcast->retry_ms = RETRY_FIRST_MS;
	join(p->broadcast); /* is_joined() of that one joins the others */
}

void ipoib_groups_flush(struct ipoib *p)
{
	struct ipoib_group *g;

	list_for_each_entry(g, &p->groups, node)
		if (!g->membership)
			arm(g, 0);
}

bool ipoib_is_joined(const struct ipoib *p)
{
	return p->broadcast && p->broadcast->ah;
}

int ipoib_each_group(struct ipoib *p,
		     int (*fn)(void *ctx, const union ib_gid *mgid, bool send_only,
			       bool joined),
		     void *ctx)
{
	struct ipoib_group *g;
	int ret;

	list_for_each_entry(g, &p->groups, node) {
		ret = fn(ctx, &g->mgid, !g->member, g->ah);
		if (ret)
			return ret;
	}
	return 0;
}
