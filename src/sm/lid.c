/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * LIDs (4.1.3, 14.4.4): every end port gets 2^LMC of them, aligned to their
 * number. A port gets its LIDs in the cache, or else those that it reports, or else
 * the lowest free ones, so that ports keep their LIDs whenever possible.
 */
#include "sm/internal.h"

#include <string.h>

/* Port 0 of a switch has one LID (14.2.5.6, LMC of base switch port 0). */
static uint8_t wanted_lmc(const struct sm *sm, const struct sm_port *p)
{
	return sm_is_switch(p->node) ? 0 : sm->opt.lmc;
}

static bool is_free(const struct sm_subnet *s, uint32_t lid, uint8_t lmc)
{
	uint32_t n = 1u << lmc;

	if (!lid || lid & (n - 1) || lid + n - 1 > SM_LID_UCAST_MAX)
		return false;
	for (uint32_t i = 0; i < n; i++)
		if (s->by_lid[lid + i])
			return false;
	return true;
}

static bool take(struct sm_subnet *s, struct sm_port *p, uint32_t lid, uint8_t lmc)
{
	if (!is_free(s, lid, lmc))
		return false;
	for (uint32_t i = 0; i < 1u << lmc; i++)
		s->by_lid[lid + i] = p;
	p->lid = lid;
	p->lmc = lmc;
	s->lid_max = MAX(s->lid_max, lid + (1u << lmc) - 1);
	return true;
}

/* Assign the lowest free LIDs that do not belong to an absent port. */
static bool take_new(struct sm_subnet *s, struct sm_port *p, uint8_t lmc, const uint8_t *kept,
		     uint32_t *hint)
{
	uint32_t step = 1u << lmc;

	for (uint32_t lid = ALIGN_UP(MAX(*hint, 1u), step); lid <= SM_LID_UCAST_MAX;
	     lid += step) {
		bool claimed = false;

		for (uint32_t i = 0; kept && i < step && lid + i <= SM_LID_UCAST_MAX; i++)
			claimed |= kept[lid + i];
		if (!claimed && take(s, p, lid, lmc)) {
			*hint = lid + step;
			return true;
		}
	}
	return false;
}

static void mark_kept(const struct sm_lids *l, uint8_t *kept)
{
	for (uint32_t i = 0; i < l->by_guid.size; i++) {
		const struct sm_lid *e = l->by_guid.slots[i].value;

		for (uint32_t k = 0; e && k < 1u << e->lmc; k++)
			kept[e->lid + k] = 1;
	}
}

static void take_known(struct sm *sm)
{
	struct sm_subnet *s = sm->next;

	sm_for_each_end_port(s, p) {
		const struct sm_lid *e = sm_lids_get(&sm->lids, p->guid);

		if (e && e->lmc >= wanted_lmc(sm, p))
			take(s, p, e->lid, wanted_lmc(sm, p));
	}
	sm_for_each_end_port(s, p) {
		if (!p->lid && p->info.lid && p->info.lmc == wanted_lmc(sm, p) &&
		    !sm_lids_get(&sm->lids, p->guid))
			take(s, p, p->info.lid, p->info.lmc);
	}
}

bool sm_lids_assign(struct sm *sm)
{
	struct sm_subnet *s = sm->next;
	uint8_t *kept = rt_zalloc(SM_LID_UCAST_MAX + 1);
	uint32_t hint = 1, hint_any = 1;
	bool ok = kept;

	if (kept)
		mark_kept(&sm->lids, kept);
	take_known(sm);
	sm_for_each_end_port(s, p) {
		uint8_t lmc = wanted_lmc(sm, p);

		if (!p->lid && !take_new(s, p, lmc, kept, &hint) &&
		    !take_new(s, p, lmc, NULL, &hint_any)) {
			sm_log(sm, SM_LOG_ERROR, "no LIDs left for %s: lower the LMC",
			       sm_node_name(p->node));
			ok = false;
			continue;
		}
		sm_lids_put(&sm->lids, p->guid, p->lid, p->lmc);
	}
	rt_free(kept);
	return ok;
}
