/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * PathRecord and MultiPathRecord (15.2.5.16, 15.2.5.19): what a path can carry
 * is found by walking the forwarding tables as a packet would.
 */
#include "sm/sa.h"

#include <string.h>

#define HOPS_MAX 64
#define NUMB_PATH_MAX 127

/** struct path - what a walk found */
struct path {
	uint16_t slid, dlid;
	uint8_t mtu;
	uint8_t rate;
};

static void cross(struct path *path, const struct sm_port *p)
{
	uint8_t mtu = sm_port_mtu(p), rate = sm_rate_enc(&p->info);

	path->mtu = MIN(path->mtu, mtu);
	if (wire_rate_mbps(rate) < wire_rate_mbps(path->rate))
		path->rate = rate;
}

/* Follow path->dlid from @src to @dst. Return: it arrives */
static bool walk(const struct sm_port *src, const struct sm_port *dst, struct path *path)
{
	const struct sm_node *n = src->node;

	path->mtu = src->info.mtu_cap ?: WIRE_MTU_256;
	path->rate = src->num ? sm_rate_enc(&src->info) : WIRE_RATE_600G;
	if (src == dst)
		return true;
	if (src->num) {
		if (!src->peer)
			return false;
		cross(path, src);
		if (src->peer == dst)
			return true;
		n = src->peer->node;
	}
	for (int hops = 0; hops < HOPS_MAX && sm_is_switch(n); hops++) {
		uint8_t out = sm_next_hop(n, path->dlid);

		if (out == 0)
			return &n->ports[0] == dst;
		if (out > n->n_ports || !n->ports[out].peer)
			return false;
		cross(path, &n->ports[out]);
		if (n->ports[out].peer == dst)
			return true;
		n = n->ports[out].peer->node;
	}
	return false;
}

/* Put what @path can do beside what the request @r wants; @life: the subnet's packet lifetime,
 * encoded. Return: it serves */
static bool fit_path(uint32_t life, uint64_t mask, const struct wire_path_record *want,
		     const struct path *path, struct wire_path_record *r)
{
	uint32_t mtu = path->mtu, mbps = wire_rate_mbps(path->rate);

	if (!sm_fitted(mask, WIRE_PR_MTU_SELECTOR, WIRE_PR_MTU, want->mtu_selector,
		       want->mtu, &mtu) ||
	    !sm_fitted(mask, WIRE_PR_RATE_SELECTOR, WIRE_PR_RATE, want->rate_selector,
		       wire_rate_mbps(want->rate), &mbps))
		return false;
	/* for a lifetime, less is better: the largest selector means smallest */
	if (mask & WIRE_PR_LIFE) {
		uint8_t sel = mask & WIRE_PR_LIFE_SELECTOR ? want->life_selector
							    : WIRE_SELECT_EXACTLY;

		if ((sel == WIRE_SELECT_EXACTLY && life > want->life_enc) ||
		    (sel == WIRE_SELECT_LESS && life >= want->life_enc))
			return false;
		if (sel == WIRE_SELECT_EXACTLY || (sel == WIRE_SELECT_GREATER &&
						   life <= want->life_enc))
			life = want->life_enc + (sel == WIRE_SELECT_GREATER);
	}
	r->mtu = mtu;
	r->rate = sm_rate_at_most(mbps);
	r->life_enc = life & 0x3f;
	r->mtu_selector = r->rate_selector = r->life_selector = WIRE_SELECT_EXACTLY;
	return r->rate != 0;
}

/* A P_Key of @p that equals @pkey but for membership; 0 none. */
static uint16_t member_of(const struct sm_port *p, uint16_t pkey)
{
	uint16_t best = 0;

	for (uint32_t i = 0; i < WIRE_PKEYS_PER_BLOCK; i++)
		if (wire_pkeys_alike(p->pkeys[i], pkey) && p->pkeys[i] > best)
			best = p->pkeys[i];
	return best;
}

/* The partition two ports talk in (10.9.3): one must be a full member. */
static uint16_t shared_pkey(const struct sm_port *a, const struct sm_port *b, uint16_t want)
{
	for (uint32_t i = 0; i < WIRE_PKEYS_PER_BLOCK; i++) {
		uint16_t mine = a->pkeys[i];

		if (wire_pkeys_alike(mine, want ? want : mine) &&
		    wire_pkeys_match(mine, member_of(b, mine)))
			return mine;
	}
	/* tables that a port does not tell are taken for the default */
	if ((!a->pkeys_known || !b->pkeys_known) &&
	    (!want || wire_pkeys_alike(want, WIRE_PKEY_DEFAULT)))
		return WIRE_PKEY_DEFAULT;
	return 0;
}

static bool emit_path(struct sm_query *q, uint64_t mask, const struct wire_path_record *want,
		      const struct sm_port *src, const struct sm_port *dst, struct path *path)
{
	struct wire_path_record r = *want;

	if (!walk(src, dst, path) ||
	    !fit_path(q->sm->opt.packet_life_enc, mask, want, path, &r))
		return false;
	r.pkey = shared_pkey(src, dst, mask & WIRE_PR_PKEY ? want->pkey : 0);
	if (!r.pkey)
		return false;
	r.sgid = sm_gid(q->sm->opt.gid_prefix, src->guid);
	r.dgid = sm_gid(q->sm->opt.gid_prefix, dst->guid);
	r.slid = path->slid;
	r.dlid = path->dlid;
	r.raw_traffic = false;
	r.reversible = true;
	r.numb_path = 0;
	r.sl = 0;
	if (!(mask & WIRE_PR_HOP_LIMIT))
		r.hop_limit = 0;
	sm_emit(q, &r);
	return true;
}

/* All paths between two ports, LID by LID, at most @limit. Return: how many */
static uint32_t emit_pair(struct sm_query *q, uint64_t mask,
			  const struct wire_path_record *want, const struct sm_port *src,
			  const struct sm_port *dst, uint32_t limit)
{
	uint32_t lids = 1u << dst->lmc, n = 0;

	for (uint32_t k = 0; k < lids && n < limit; k++) {
		struct path path = {
			.slid = src->lid + k % (1u << src->lmc),
			.dlid = dst->lid + k,
		};

		if (mask & WIRE_PR_SLID)
			path.slid = want->slid;
		if (mask & WIRE_PR_DLID && path.dlid != want->dlid)
			continue;
		n += emit_path(q, mask, want, src, dst, &path);
	}
	return n;
}

/** struct ends - the ports a request can mean on one side */
struct ends {
	const struct sm_port *only; /* NULL: all */
	bool none;
};

static struct ends find_ends(struct sm_query *q, bool by_lid, uint16_t lid, bool by_gid,
			     const union wire_gid *gid)
{
	const struct sm_subnet *s = q->sm->subnet;
	struct ends e = {0};

	if (by_gid) {
		e.only = get_be64(gid->raw) == q->sm->opt.gid_prefix
				 ? sm_subnet_port(s, sm_gid_guid(gid))
				 : NULL;
		if (!e.only)
			q->status = WIRE_SA_INVALID_GID; /* 15.2.1.1.3 */
	}
	if (by_lid) {
		const struct sm_port *p = sm_subnet_lid(s, lid);

		e.none = !p || (e.only && e.only != p);
		e.only = p;
	}
	return e;
}

static bool is_multicast(const union wire_gid *gid)
{
	return gid->raw[0] == 0xff;
}

/* A path to a group: what its record says (15.2.5.16). */
static void emit_group_path(struct sm_query *q, const struct sm_port *src)
{
	const struct wire_path_record *want = q->key;
	const struct sm_group *g = sm_group_find(q->sm, &want->dgid);
	struct wire_path_record r = *want;

	if (!g || !src) {
		q->status = g ? WIRE_SA_NO_RECORDS : WIRE_SA_INVALID_GID;
		return;
	}
	r.sgid = sm_gid(q->sm->opt.gid_prefix, src->guid);
	r.slid = src->lid;
	r.dlid = g->rec.mlid;
	r.pkey = g->rec.pkey;
	r.mtu = g->rec.mtu;
	r.rate = g->rec.rate;
	r.life_enc = g->rec.life_enc;
	r.mtu_selector = r.rate_selector = r.life_selector = WIRE_SELECT_EXACTLY;
	r.sl = g->rec.sl;
	r.flow_label = g->rec.flow_label;
	r.tclass = g->rec.tclass;
	r.hop_limit = g->rec.hop_limit;
	sm_emit(q, &r);
}

static void emit_all_pairs(struct sm_query *q, uint64_t mask, const struct ends *src,
			   const struct ends *dst, uint32_t limit)
{
	const struct sm_subnet *s = q->sm->subnet;

	sm_for_each_end_port(s, a) {
		if (!a->lid || (src->only && a != src->only))
			continue;
		if (dst->only) {
			emit_pair(q, mask, q->key, a, dst->only, limit);
			continue;
		}
		for (uint32_t i = 1; i <= s->lid_max; i++)
			if (s->by_lid[i] && s->by_lid[i]->lid == i)
				emit_pair(q, mask, q->key, a, s->by_lid[i], limit);
	}
}

void sm_path_each(struct sm_query *q)
{
	const struct wire_path_record *want = q->key;
	bool single = q->hdr.mad.method == WIRE_METHOD_GET;
	uint64_t mask = q->mask;
	uint32_t limit = NUMB_PATH_MAX;
	struct ends src, dst;

	q->mask = 0; /* everything is judged here */
	if (mask & WIRE_PR_NUMB_PATH && want->numb_path)
		limit = want->numb_path;
	if (single)
		limit = 1; /* 15.4.6: Get is answered with one path */
	src = find_ends(q, mask & WIRE_PR_SLID, want->slid, mask & WIRE_PR_SGID, &want->sgid);
	if (mask & WIRE_PR_DGID && is_multicast(&want->dgid)) {
		if (!q->status)
			emit_group_path(q, src.only ?: q->requester);
		return;
	}
	dst = find_ends(q, mask & WIRE_PR_DLID, want->dlid, mask & WIRE_PR_DGID, &want->dgid);
	if (q->status || src.none || dst.none)
		return;
	if (single && !dst.only) {
		q->status = WIRE_SA_INSUFFICIENT_COMPONENTS;
		return;
	}
	if (single && !src.only)
		src.only = q->requester;
	if (mask & WIRE_PR_RAW_TRAFFIC && want->raw_traffic)
		return; /* no raw packets here */
	if (mask & WIRE_PR_SL && want->sl)
		return; /* one service level so far */
	emit_all_pairs(q, mask, &src, &dst, limit);
}

/* The request in the terms of a PathRecord, component bits too. */
static uint64_t path_terms(uint64_t mask, const struct wire_multipath_record *m,
			   struct wire_path_record *r)
{
	static const struct {
		uint32_t multi, path;
	} bits[] = {
		{WIRE_MPR_PKEY, WIRE_PR_PKEY},
		{WIRE_MPR_MTU_SELECTOR, WIRE_PR_MTU_SELECTOR}, {WIRE_MPR_MTU, WIRE_PR_MTU},
		{WIRE_MPR_RATE_SELECTOR, WIRE_PR_RATE_SELECTOR}, {WIRE_MPR_RATE, WIRE_PR_RATE},
		{WIRE_MPR_LIFE_SELECTOR, WIRE_PR_LIFE_SELECTOR}, {WIRE_MPR_LIFE, WIRE_PR_LIFE},
		{WIRE_MPR_HOP_LIMIT, WIRE_PR_HOP_LIMIT},
	};
	uint64_t out = 0;

	*r = (struct wire_path_record){
		.flow_label = m->flow_label, .hop_limit = m->hop_limit, .tclass = m->tclass,
		.pkey = m->pkey, .qos_class = m->qos_class,
		.mtu_selector = m->mtu_selector, .mtu = m->mtu,
		.rate_selector = m->rate_selector, .rate = m->rate,
		.life_selector = m->life_selector, .life_enc = m->life_enc,
	};
	for (size_t i = 0; i < ARRAY_SIZE(bits); i++)
		if (mask & bits[i].multi)
			out |= bits[i].path;
	return out;
}

void sm_path_multi(struct sm_query *q)
{
	const struct wire_multipath_record *m = q->key;
	const uint8_t *gids = q->mad + WIRE_SA_DATA_OFFSET + wire_multipath_record_codec.bytes;
	uint32_t n_src = m->sgid_count, n_dst = m->dgid_count;
	uint32_t left = q->mask & WIRE_MPR_NUMB_PATH && m->numb_path ? m->numb_path
								       : NUMB_PATH_MAX;
	struct wire_path_record want;
	uint64_t mask = path_terms(q->mask, m, &want);

	if (!n_src || !n_dst) {
		q->status = WIRE_SA_INSUFFICIENT_COMPONENTS;
		return;
	}
	if (gids + (n_src + n_dst) * 16 > q->mad + q->len) {
		q->status = WIRE_SA_REQUEST_INVALID;
		return;
	}
	for (uint32_t i = 0; i < n_src * n_dst && left; i++) {
		const struct sm_subnet *s = q->sm->subnet;
		const uint8_t *sgid = gids + i / n_dst * 16;
		const uint8_t *dgid = gids + (n_src + i % n_dst) * 16;
		const struct sm_port *a = sm_subnet_port(s, get_be64(sgid + 8));
		const struct sm_port *b = sm_subnet_port(s, get_be64(dgid + 8));

		if (!a || !b) {
			q->status = WIRE_SA_INVALID_GID;
			return;
		}
		left -= emit_pair(q, mask, &want, a, b, left);
	}
}
