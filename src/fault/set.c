/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Applies rules: triggers, verdicts, statistics, the log.
 *
 * A random choice is a function of a rule's seed and of the number of packets that
 * have matched it, and not taken from a shared stream. What a rule does to its
 * n-th packet therefore depends on nothing else.
 */
#include <errno.h>
#include <string.h>

#include "fault/private.h"

/* packets that wait for a limited bandwidth; more stay with the sender */
#define BACKLOG_NS (4 * NSEC_PER_MSEC)

enum draw { DRAW_RATE, DRAW_BIT, DRAW_JITTER };

static uint64_t mix(uint64_t z)
{
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

/* a random number in 0..@below-1 for the packet that matched last */
static uint64_t draw(const struct flt_rule *rule, enum draw what, uint64_t below)
{
	uint64_t n = rule->matched * 4 + what;

	return mix(mix(rule->seed) + n * 0x9e3779b97f4a7c15ull) % below;
}

/* --- rules ------------------------------------------------------------- */

void flt_set_init(struct flt_set *set, uint64_t seed, struct flt_hit *log, uint32_t room)
{
	set->seed = seed;
	set->next_id = 1;
	set->num_rules = 0;
	set->log = log;
	set->log_room = room;
	set->logged = 0;
	set->spent = false;
}

int flt_add(struct flt_set *set, const struct flt_rule *rule)
{
	struct flt_rule *own;

	if (set->num_rules == FLT_RULES_MAX)
		return -ENOSPC;
	own = &set->rule[set->num_rules++];
	*own = *rule;
	own->id = set->next_id++;
	own->matched = own->hits = 0;
	memset(own->free_at, 0, sizeof(own->free_at));
	memset(own->passed, 0, sizeof(own->passed));
	if (!own->seed) /* 32 bits suffice, and are easier to type */
		own->seed = (mix(set->seed + own->id) & 0xffffffff) | 1;
	return (int)own->id;
}

struct flt_rule *flt_find(struct flt_set *set, uint32_t id)
{
	for (unsigned int i = 0; i < set->num_rules; i++)
		if (set->rule[i].id == id)
			return &set->rule[i];
	return NULL;
}

int flt_remove(struct flt_set *set, uint32_t id)
{
	struct flt_rule *rule = flt_find(set, id), *end = set->rule + set->num_rules;

	if (!rule)
		return -ENOENT;
	memmove(rule, rule + 1, (size_t)(end - (rule + 1)) * sizeof(*rule));
	set->num_rules--;
	return 0;
}

bool flt_has_action(const struct flt_set *set, enum flt_action action)
{
	for (unsigned int i = 0; i < set->num_rules; i++)
		if (set->rule[i].action == action)
			return true;
	return false;
}

/* --- the log ----------------------------------------------------------- */

/* Return: the log entry, to which more can be added; NULL if the log has no room */
static struct flt_hit *log_hit(struct flt_set *set, const struct flt_rule *rule,
			       const struct flt_event *ev)
{
	struct flt_hit *hit;

	set->logged++;
	if (!set->log_room)
		return NULL;
	hit = &set->log[(set->logged - 1) % set->log_room];
	hit->serial = set->logged;
	hit->when = ev->now;
	hit->rule = rule->id;
	hit->action = rule->action;
	hit->what = rule->what;
	hit->qpn = rule->action == FLT_EVENT ? rule->qpn : 0;
	hit->from = ev->from;
	hit->to = ev->to;
	hit->present = ev->present;
	memcpy(hit->field, ev->field, sizeof(hit->field));
	return hit;
}

const struct flt_hit *flt_log_at(const struct flt_set *set, uint32_t i)
{
	uint64_t kept = MIN(set->logged, (uint64_t)set->log_room);

	return i < kept ? &set->log[(set->logged - kept + i) % set->log_room] : NULL;
}

/* --- triggers ---------------------------------------------------------- */

static bool is_spent(const struct flt_rule *rule)
{
	return (rule->count && rule->hits >= rule->count) ||
	       (rule->first && rule->matched >= (uint64_t)rule->after + rule->first);
}

/* count one more match, and decide whether it is a hit */
static bool fires(struct flt_set *set, struct flt_rule *rule)
{
	bool was_spent = is_spent(rule);
	uint64_t n = ++rule->matched, k = n - rule->after;

	if (is_spent(rule) && !was_spent)
		set->spent = true;
	if (was_spent || n <= rule->after || (rule->every && k % rule->every))
		return false;
	return rule->rate_ppm >= FLT_PPM || draw(rule, DRAW_RATE, FLT_PPM) < rule->rate_ppm;
}

static struct flt_hit *hit(struct flt_set *set, struct flt_rule *rule, const struct flt_event *ev)
{
	rule->hits++;
	if (rule->count && rule->hits == rule->count)
		set->spent = true;
	return log_hit(set, rule, ev);
}

bool flt_take_spent(struct flt_set *set)
{
	bool spent = set->spent;

	set->spent = false;
	return spent;
}

/* --- packets ----------------------------------------------------------- */

static uint64_t wire_time_ns(const struct flt_rule *rule, uint64_t bytes)
{
	return bytes * NSEC_PER_SEC / rule->bytes_per_s;
}

/* packets that a rule delays stay in order */
static void delay(struct flt_rule *rule, const struct flt_event *ev, unsigned int way,
		  struct flt_verdict *v)
{
	mono_t due = mono_add(ev->now, v->delay_ns), start;

	if (rule->action == FLT_DELAY) {
		due = mono_add(due, rule->delay_ns);
		if (rule->jitter_ns)
			due = mono_add(due, draw(rule, DRAW_JITTER, rule->jitter_ns + 1));
		due.ns = MAX(due.ns, rule->free_at[way].ns);
	} else {
		start.ns = MAX(due.ns, rule->free_at[way].ns);
		due = mono_add(start, wire_time_ns(rule, ev->field[FLT_BYTES]));
	}
	rule->free_at[way] = due;
	v->delay_ns = due.ns - ev->now.ns;
	v->rule = rule->id;
}

static void corrupt(struct flt_rule *rule, const struct flt_event *ev, struct flt_verdict *v)
{
	uint32_t bit;

	v->corrupt = true;
	v->rule = rule->id;
	v->crc = rule->crc;
	v->corrupt_offset = rule->offset;
	v->corrupt_mask = rule->mask;
	if (rule->offset == FLT_RANDOM_BIT) {
		bit = (uint32_t)draw(rule, DRAW_BIT, (uint64_t)ev->field[FLT_BYTES] * 8);
		v->corrupt_offset = bit / 8;
		v->corrupt_mask = 0x80u >> bit % 8;
	}
}

static void apply(struct flt_rule *rule, const struct flt_event *ev, unsigned int way,
		  struct flt_verdict *v)
{
	switch (rule->action) {
	case FLT_DROP:
		v->drop = true;
		v->rule = rule->id;
		break;
	case FLT_DUPLICATE:
		v->copies += rule->copies;
		break;
	case FLT_REORDER:
		v->rule = rule->id;
		v->hold_way = (uint8_t)way;
		v->hold_until = rule->passed[way] + rule->packets;
		v->hold_ns = rule->hold_ns;
		break;
	case FLT_DELAY:
	case FLT_BANDWIDTH:
		delay(rule, ev, way, v);
		break;
	case FLT_CORRUPT:
		corrupt(rule, ev, v);
		break;
	case FLT_RNR:
		v->rnr = true;
		v->timer_enc = rule->timer_enc;
		break;
	case FLT_ERRORS:
		v->errors[rule->what] += rule->add;
		v->counts = true;
		break;
	}
}

/* a packet that is too short to have the byte is not corrupted */
static bool applies(const struct flt_rule *rule, const struct flt_event *ev)
{
	return rule->action != FLT_CORRUPT || rule->offset == FLT_RANDOM_BIT ||
	       rule->offset < ev->field[FLT_BYTES];
}

bool flt_packet(struct flt_set *set, const struct flt_event *ev, struct flt_verdict *verdict)
{
	bool any = false;

	memset(verdict, 0, sizeof(*verdict));
	verdict->now = ev->now;
	for (unsigned int i = 0; i < set->num_rules; i++) {
		struct flt_rule *rule = &set->rule[i];
		unsigned int way;

		if (flt_actions[rule->action].family != FLT_PACKET ||
		    !flt_matches(rule, ev, &way) || !applies(rule, ev))
			continue;
		/* reordered packets wait for packets that pass, not for other reordered ones */
		if (!fires(set, rule)) {
			rule->passed[way]++;
			continue;
		}
		if (verdict->drop || verdict->corrupt || verdict->hold_ns)
			continue;
		any = true;
		apply(rule, ev, way, verdict);
		hit(set, rule, ev);
	}
	return any;
}

bool flt_busy(const struct flt_set *set, const struct flt_event *ev)
{
	for (unsigned int i = 0; i < set->num_rules; i++) {
		const struct flt_rule *rule = &set->rule[i];
		unsigned int way;

		if (rule->action == FLT_BANDWIDTH && !is_spent(rule) &&
		    flt_matches(rule, ev, &way) &&
		    rule->free_at[way].ns > mono_add(ev->now, BACKLOG_NS).ns)
			return true;
	}
	return false;
}

bool flt_hold_over(struct flt_set *set, uint32_t id, uint8_t way, uint64_t until)
{
	const struct flt_rule *rule = flt_find(set, id);

	return !rule || rule->passed[way] >= until;
}

bool flt_watches(const struct flt_set *set, struct flt_end from, struct flt_end to)
{
	struct flt_event ev = {.from = from, .to = to, .first = true};
	unsigned int way;

	for (unsigned int i = 0; i < set->num_rules; i++) {
		struct flt_rule rule = set->rule[i];

		if (flt_actions[rule.action].family != FLT_PACKET || is_spent(&rule) ||
		    rule.conditions & 1u << FLT_CLASS)
			continue;
		if (rule.place == FLT_QP)
			rule.place = FLT_NODE;
		rule.conditions = 0;
		rule.action = FLT_DROP; /* matches every packet; other actions may match only some */
		if (flt_matches(&rule, &ev, &way))
			return true;
	}
	return false;
}

/* --- objects ----------------------------------------------------------- */

/* convert to an event in which only the place, the opcode and the QPN are set */
static struct flt_event as_event(const struct flt_object_event *in)
{
	static const struct {
		uint8_t wc_opcode, operation;
	} operations[] = {{0, FLT_SEND},   {1, FLT_WRITE},  {2, FLT_READ},  {3, FLT_ATOMIC},
			  {4, FLT_ATOMIC}, {128, FLT_RECV}, {129, FLT_RECV}};
	struct flt_event ev = {
		.now = in->now, .from.node = in->node, .to.node = in->node, .first = true,
		.from_qpn = in->qpn,
	};

	if (!in->qpn)
		return ev;
	ev.present = 1u << FLT_OPCODE | 1u << FLT_SRC_QPN;
	ev.field[FLT_OPCODE] = in->opcode;
	ev.field[FLT_SRC_QPN] = in->qpn;
	for (size_t i = 0; i < ARRAY_SIZE(operations); i++)
		if (operations[i].wc_opcode == in->opcode) {
			ev.field[FLT_OPERATION] = operations[i].operation;
			ev.present |= 1u << FLT_OPERATION;
		}
	return ev;
}

/* the first rule of @actions that fires; every rule that matches counts the event */
static struct flt_rule *find_object_rule(struct flt_set *set, const struct flt_object_event *in,
					 uint32_t actions)
{
	struct flt_event ev = as_event(in);
	struct flt_rule *found = NULL;
	struct flt_hit *line;
	unsigned int way;

	for (unsigned int i = 0; i < set->num_rules; i++) {
		struct flt_rule *rule = &set->rule[i];

		if (!(actions & 1u << rule->action) || !flt_matches(rule, &ev, &way))
			continue;
		if (rule->action == FLT_FAIL && rule->what != FLT_OBJECT_ANY &&
		    rule->what != in->kind)
			continue;
		if (!fires(set, rule) || found)
			continue;
		found = rule;
		line = hit(set, rule, &ev);
		if (line && rule->action == FLT_FAIL) /* for "any", log which kind it was */
			line->what = in->kind;
	}
	return found;
}

int flt_object(struct flt_set *set, const struct flt_object_event *ev)
{
	struct flt_rule *rule = find_object_rule(set, ev, 1u << FLT_FAIL);

	return rule ? (int)rule->error : 0;
}

int flt_completion(struct flt_set *set, const struct flt_object_event *ev)
{
	struct flt_rule *rule =
		find_object_rule(set, ev, 1u << FLT_COMPLETION | 1u << FLT_OVERRUN);

	if (!rule)
		return 0;
	return rule->action == FLT_OVERRUN ? FLT_OVERRUN_CQ : (int)rule->what;
}

/* --- states ------------------------------------------------------------ */

bool flt_is_state(enum flt_action action)
{
	return flt_actions[action].family == FLT_STATE;
}

bool flt_state_hit(struct flt_set *set, struct flt_rule *rule, mono_t now)
{
	struct flt_event ev = {
		.now = now,
		.from = {.node = rule->node, .port = rule->port},
		.to = {.node = rule->node, .port = rule->port},
	};

	if (rule->count && rule->hits >= rule->count)
		return false;
	rule->matched++;
	rule->hits++;
	log_hit(set, rule, &ev);
	return true;
}
