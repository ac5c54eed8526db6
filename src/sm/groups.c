/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Multicast groups and their members (15.2.5.17): creation, joins, leaves and
 * queries. A group exists as long as it has full members; the IPoIB broadcast
 * group (RFC 4391 section 4) always exists if it is configured.
 */
#include "sm/sa.h"

#include <string.h>

#define IPOIB_QKEY 0x0b1b
#define FULL_JOINS (WIRE_JOIN_FULL | WIRE_JOIN_SEND_ONLY_FULL)
#define JOIN_STATES 0xf
#define SA_SIGNATURE 0xa01b /* in MGIDs that an SA has assigned (15.2.5.17.3) */
#define SCOPE_LINK_LOCAL 2

/* Components that a join requires (o15-0.2.3), and those that a creation requires */
#define NEED_JOIN (WIRE_MCM_MGID | WIRE_MCM_PORT_GID | WIRE_MCM_JOIN_STATE)
#define NEED_CREATE                                                                      \
	(WIRE_MCM_QKEY | WIRE_MCM_PKEY | WIRE_MCM_SL | WIRE_MCM_FLOW_LABEL | WIRE_MCM_TCLASS)
/* Components that the creator sets; those in a join must be equal */
#define SHARED                                                                           \
	(NEED_CREATE | WIRE_MCM_MGID | WIRE_MCM_MLID | WIRE_MCM_HOP_LIMIT)
#define SELECTED                                                                         \
	(WIRE_MCM_MTU_SELECTOR | WIRE_MCM_MTU | WIRE_MCM_RATE_SELECTOR | WIRE_MCM_RATE | \
	 WIRE_MCM_LIFE_SELECTOR | WIRE_MCM_LIFE)

#define SHARE_OF_A_PORT 4 /* of the MLIDs: a quarter */

struct sm_group *sm_group_find(const struct sm *sm, const union wire_gid *mgid)
{
	struct sm_group *g;

	list_for_each_entry(g, &sm->groups, node)
		if (!memcmp(&g->rec.mgid, mgid, sizeof(*mgid)))
			return g;
	return NULL;
}

static struct sm_member *member_find(const struct sm_group *g, const union wire_gid *gid)
{
	struct sm_member *m;

	list_for_each_entry(m, &g->members, node)
		if (!memcmp(&m->port_gid, gid, sizeof(*gid)))
			return m;
	return NULL;
}

/* The number of MLIDs that fit the tables of all switches. */
static uint32_t mlid_room(const struct sm *sm)
{
	uint32_t room = 0xffff - SM_LID_MCAST_FIRST;

	for (uint32_t i = 0; sm->subnet && i < sm->subnet->n_switches; i++)
		if (sm->subnet->switches[i]->sw.mft_cap)
			room = MIN(room, sm->subnet->switches[i]->sw.mft_cap);
	return room;
}

/* The lowest MLID without a group; 0: none left. */
static uint16_t mlid_take(struct sm *sm)
{
	uint64_t used[DIV_ROUND_UP(0x10000 - SM_LID_MCAST_FIRST, 64)] = {0};
	struct sm_group *g;

	list_for_each_entry(g, &sm->groups, node) {
		uint32_t i = g->rec.mlid - SM_LID_MCAST_FIRST;

		used[i / 64] |= 1ull << i % 64;
	}
	for (uint32_t i = 0; i < mlid_room(sm); i++) {
		if (used[i / 64] >> i % 64 & 1)
			continue;
		sm->n_mlids = MAX(sm->n_mlids, i + 1);
		return (uint16_t)(SM_LID_MCAST_FIRST + i);
	}
	return 0;
}

/* The programs of a port may create a share of the groups, so that others find MLIDs, too. */
static bool has_room(const struct sm *sm, uint64_t by)
{
	uint32_t n = 0;
	struct sm_group *g;

	list_for_each_entry(g, &sm->groups, node)
		n += g->by == by;
	return n < MAX(mlid_room(sm) / SHARE_OF_A_PORT, 1u);
}

/* @by: the port GUID of who creates it; 0: the manager */
static struct sm_group *group_add(struct sm *sm, const struct wire_mcmember_record *rec,
				  uint64_t by)
{
	struct sm_group *g = rt_zalloc(sizeof(*g));

	if (!g)
		return NULL;
	g->rec = *rec;
	g->by = by;
	g->rec.mlid = mlid_take(sm);
	if (!g->rec.mlid) {
		rt_free(g);
		return NULL;
	}
	memset(&g->rec.port_gid, 0, sizeof(g->rec.port_gid));
	g->rec.join_state = 0;
	g->rec.proxy_join = false;
	g->rec.mtu_selector = g->rec.rate_selector = g->rec.life_selector =
		WIRE_SELECT_EXACTLY;
	INIT_LIST_HEAD(&g->members);
	list_add_tail(&g->node, &sm->groups);
	return g;
}

static void group_free(struct sm_group *g)
{
	struct sm_member *m, *tmp;

	list_for_each_entry_safe(m, tmp, &g->members, node) {
		list_del(&m->node);
		rt_free(m);
	}
	list_del(&g->node);
	rt_free(g);
}

/* Delete a group without full members (15.2.5.17.2). */
static void group_release(struct sm *sm, struct sm_group *g)
{
	struct sm_member *m;
	union wire_gid mgid = g->rec.mgid;

	if (g->permanent)
		return;
	list_for_each_entry(m, &g->members, node)
		if (m->join_state & FULL_JOINS)
			return;
	group_free(g);
	sm_notify_gid(sm, WIRE_TRAP_MCAST_DELETED, &mgid);
}

void sm_groups_init(struct sm *sm)
{
	struct wire_mcmember_record rec = {
		/* ff12:401b:<P_Key>::ffff:ffff (RFC 4391 section 4) */
		.mgid = {{0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0xff, 0xff,
			  0xff, 0xff}},
		.qkey = IPOIB_QKEY, .pkey = WIRE_PKEY_DEFAULT, .mtu = sm->opt.ipoib_mtu,
		.rate = WIRE_RATE_10G, .life_enc = sm->opt.packet_life_enc, .scope = 2,
	};
	struct sm_group *g = sm->opt.ipoib ? group_add(sm, &rec, 0) : NULL;

	if (g)
		g->permanent = true;
}

void sm_groups_close(struct sm *sm)
{
	struct sm_group *g, *tmp;

	list_for_each_entry_safe(g, tmp, &sm->groups, node)
		group_free(g);
}

void sm_groups_expel(struct sm *sm)
{
	struct sm_group *g, *tmp;

	list_for_each_entry_safe(g, tmp, &sm->groups, node) {
		struct sm_member *m, *next;

		list_for_each_entry_safe(m, next, &g->members, node) {
			if (sm_subnet_port(sm->subnet, sm_gid_guid(&m->port_gid)))
				continue;
			list_del(&m->node);
			rt_free(m);
		}
		group_release(sm, g);
	}
}

/* --- joining --- */

/* MTU, rate and lifetime of a group against the selectors of a request. */
static bool selectors_agree(uint64_t mask, const struct wire_mcmember_record *want,
			    const struct wire_mcmember_record *have)
{
	return sm_selected(mask, WIRE_MCM_MTU_SELECTOR, WIRE_MCM_MTU, want->mtu_selector,
			   want->mtu, have->mtu) &&
	       sm_selected(mask, WIRE_MCM_RATE_SELECTOR, WIRE_MCM_RATE, want->rate_selector,
			   wire_rate_mbps(want->rate), wire_rate_mbps(have->rate)) &&
	       sm_selected(mask, WIRE_MCM_LIFE_SELECTOR, WIRE_MCM_LIFE, want->life_selector,
			   want->life_enc, have->life_enc);
}

/* Assign an MGID to a group whose creator does not give one (15.2.5.17.3): transient, with
 * the requested scope, the signature and a counter. */
static void make_mgid(struct sm *sm, struct wire_mcmember_record *r, uint64_t mask)
{
	uint8_t scope = mask & WIRE_MCM_SCOPE ? r->scope : SCOPE_LINK_LOCAL;

	memset(&r->mgid, 0, sizeof(r->mgid));
	r->mgid.raw[0] = 0xff;
	r->mgid.raw[1] = 0x10 | (scope & 0xf);
	put_be16(r->mgid.raw + 2, SA_SIGNATURE);
	put_be64(r->mgid.raw + 8, sm->opt.port_guid ^ rt_random(sm->rt));
	put_be32(r->mgid.raw + 4, rt_random(sm->rt));
}

/* MTU, rate and packet lifetime of a new group: the requested ones, MTU and rate limited to
 * those of the port. */
static bool choose(const struct sm *sm, uint64_t mask, struct wire_mcmember_record *r,
		   const struct sm_port *p)
{
	uint32_t mtu = sm_port_mtu(p), mbps = wire_rate_mbps(sm_rate_enc(&p->info));

	if (!sm_fitted(mask, WIRE_MCM_MTU_SELECTOR, WIRE_MCM_MTU, r->mtu_selector, r->mtu,
		       &mtu) ||
	    !sm_fitted(mask, WIRE_MCM_RATE_SELECTOR, WIRE_MCM_RATE, r->rate_selector,
		       wire_rate_mbps(r->rate), &mbps))
		return false;
	/* undefined encodings are invalid (o15-0.2.3) */
	if (mask & WIRE_MCM_RATE && r->rate_selector != WIRE_SELECT_LARGEST &&
	    !wire_rate_mbps(r->rate))
		return false;
	r->mtu = mtu;
	r->rate = sm_rate_at_most(mbps);
	r->life_enc = sm_fitted_life(mask & WIRE_MCM_LIFE_SELECTOR, mask & WIRE_MCM_LIFE,
				     r->life_selector, r->life_enc, sm->opt.packet_life_enc);
	return r->mtu >= WIRE_MTU_256 && r->mtu <= WIRE_MTU_4096 && r->rate;
}

/* A multicast GID that may be a group's (4.1.1; o15-0.2.3). */
static bool is_valid_mgid(const union wire_gid *g)
{
	/* MGIDs that an SA assigns are never link-local (o15-0.1.6) */
	if (get_be16(g->raw + 2) == SA_SIGNATURE && (g->raw[1] & 0xf) == SCOPE_LINK_LOCAL)
		return false;
	/* "transient" is the only defined flag (4.1.1) */
	return g->raw[0] == 0xff && g->raw[1] >> 4 <= 1;
}

static void log_refusal(const struct sm_query *q, const char *why)
{
	const struct wire_mcmember_record *r = q->key;

	sm_log(q->sm, SM_LOG_DEBUG,
	       "group %016llx:%016llx %s: join state %u, Q_Key 0x%x, P_Key 0x%x, MTU %u "
	       "(selector %u), rate %u (%u), lifetime %u (%u)",
	       (unsigned long long)get_be64(r->mgid.raw),
	       (unsigned long long)get_be64(r->mgid.raw + 8), why, r->join_state, r->qkey,
	       r->pkey, r->mtu, r->mtu_selector, r->rate, r->rate_selector, r->life_enc,
	       r->life_selector);
}

static struct sm_group *create(struct sm_query *q, const struct sm_port *p)
{
	static const union wire_gid none;
	struct wire_mcmember_record r = *(struct wire_mcmember_record *)q->key;
	const uint64_t by = q->requester ? q->requester->guid : 0;
	struct sm_group *g;

	if ((q->mask & NEED_CREATE) != NEED_CREATE) {
		q->status = WIRE_SA_INSUFFICIENT_COMPONENTS;
		return NULL;
	}
	if (!memcmp(&r.mgid, &none, sizeof(none)))
		make_mgid(q->sm, &r, q->mask);
	else if (!is_valid_mgid(&r.mgid))
		q->status = WIRE_SA_REQUEST_INVALID;
	/* only a full member creates, one that only sends among them (15.2.5.17.2) */
	if (q->status || !(r.join_state & FULL_JOINS) ||
	    !choose(q->sm, q->mask, &r, p)) {
		log_refusal(q, "cannot be created");
		q->status = WIRE_SA_REQUEST_INVALID;
		return NULL;
	}
	r.scope = r.mgid.raw[1] & 0xf;
	g = has_room(q->sm, by) ? group_add(q->sm, &r, by) : NULL;
	if (!g)
		q->status = WIRE_SA_NO_RESOURCES;
	else
		sm_notify_gid(q->sm, WIRE_TRAP_MCAST_CREATED, &r.mgid);
	return g;
}

static bool agrees(const struct sm_query *q, const struct sm_group *g, const struct sm_port *p)
{
	const struct wire_mcmember_record *want = q->key;
	uint64_t shared = q->mask & SHARED;

	return wire_fields_match(&wire_mcmember_record_codec, shared, want, &g->rec) &&
	       selectors_agree(q->mask, want, &g->rec) && sm_port_mtu(p) >= g->rec.mtu &&
	       wire_rate_mbps(sm_rate_enc(&p->info)) >= wire_rate_mbps(g->rec.rate);
}

static void emit_member(struct sm_query *q, const struct sm_group *g,
			const struct sm_member *m)
{
	struct wire_mcmember_record r = g->rec;

	r.port_gid = m->port_gid;
	r.join_state = m->join_state;
	r.proxy_join = m->proxy;
	sm_emit(q, &r);
}

static struct sm_member *member_add(struct sm_group *g, const union wire_gid *gid, bool proxy)
{
	struct sm_member *m = rt_zalloc(sizeof(*m));

	if (!m)
		return NULL;
	m->port_gid = *gid;
	m->proxy = proxy;
	list_add_tail(&m->node, &g->members);
	return m;
}

void sm_mcmember_join(struct sm_query *q)
{
	const struct wire_mcmember_record *want = q->key;
	const struct sm_port *p = sm_subnet_port(q->sm->subnet, sm_gid_guid(&want->port_gid));
	struct sm_group *g;
	struct sm_member *m;

	if ((q->mask & NEED_JOIN) != NEED_JOIN) {
		q->status = WIRE_SA_INSUFFICIENT_COMPONENTS;
		return;
	}
	if (!p || !(want->join_state & JOIN_STATES)) {
		q->status = p ? WIRE_SA_REQUEST_INVALID : WIRE_SA_INVALID_GID;
		return;
	}
	g = sm_group_find(q->sm, &want->mgid);
	if (g && !agrees(q, g, p)) {
		log_refusal(q, "has other parameters");
		q->status = WIRE_SA_REQUEST_INVALID;
		return;
	}
	g = g ?: create(q, p);
	if (!g)
		return;
	m = member_find(g, &want->port_gid) ?:
	    member_add(g, &want->port_gid, q->requester && q->requester != p);
	if (!m) {
		q->status = WIRE_SA_NO_RESOURCES;
		group_release(q->sm, g);
		return;
	}
	m->join_state |= want->join_state & JOIN_STATES;
	q->mask = 0;
	emit_member(q, g, m);
	q->defer = true; /* answered when the switches are programmed */
	sm_want(q->sm, SM_JOB_MCAST);
}

void sm_mcmember_leave(struct sm_query *q)
{
	const struct wire_mcmember_record *want = q->key;
	struct sm_group *g = sm_group_find(q->sm, &want->mgid);
	struct sm_member *m = g ? member_find(g, &want->port_gid) : NULL;

	if ((q->mask & NEED_JOIN) != NEED_JOIN) {
		q->status = WIRE_SA_INSUFFICIENT_COMPONENTS;
		return;
	}
	/* a member can leave only with join states that it has (o15-0.2.14) */
	if (!m || !(want->join_state & m->join_state) ||
	    want->join_state & ~m->join_state & JOIN_STATES) {
		q->status = WIRE_SA_REQUEST_INVALID;
		return;
	}
	m->join_state &= ~want->join_state;
	q->mask = 0;
	emit_member(q, g, m);
	if (!m->join_state) {
		list_del(&m->node);
		rt_free(m);
	}
	group_release(q->sm, g);
	sm_want(q->sm, SM_JOB_MCAST);
}

/*
 * Without the administrator's key a query gets one record for a group, which does not
 * disclose its members (15.2.5.17).
 */
void sm_mcmember_each(struct sm_query *q)
{
	const struct wire_mcmember_record *want = q->key;
	uint64_t mask = q->mask;
	struct sm_group *g;
	struct sm_member *m;

	q->mask &= ~(uint64_t)SELECTED;
	list_for_each_entry(g, &q->sm->groups, node) {
		if (!selectors_agree(mask, want, &g->rec))
			continue;
		if (!sm_query_trusted(q) && !(mask & WIRE_MCM_PORT_GID)) {
			sm_emit(q, &g->rec);
			continue;
		}
		if (list_empty(&g->members))
			sm_emit(q, &g->rec);
		list_for_each_entry(m, &g->members, node)
			emit_member(q, g, m);
	}
}
