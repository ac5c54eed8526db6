/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Prints a rule as text that flt_parse() accepts. */
#include "fault/private.h"

static void add_name(struct flt_text *t, const char *name)
{
	flt_text_add(t, " ");
	flt_text_add(t, name);
	flt_text_add(t, "=");
}

static void add_bound(struct flt_text *t, const struct flt_condition *c, uint32_t value)
{
	const char *name = flt_word_name(c->words, value);

	if (name)
		flt_text_add(t, name);
	else if (c->hex)
		flt_text_hex(t, value);
	else
		flt_text_number(t, value);
}

static void add_range(struct flt_text *t, const struct flt_condition *c, struct flt_range range)
{
	bool one = range.low == range.high;

	/* ranges are printed as numbers, because names contain dashes */
	add_bound(t, one ? c : &(struct flt_condition){.hex = c->hex}, range.low);
	if (one)
		return;
	flt_text_add(t, "-");
	add_bound(t, &(struct flt_condition){.hex = c->hex}, range.high);
}

/* Return: the condition that the place already expresses; FLT_NUM_FIELDS none */
static unsigned int add_place(struct flt_text *t, const struct flt_rule *rule,
			      const struct flt_names *names)
{
	const struct flt_range *class = &rule->field[FLT_CLASS];

	if (rule->place == FLT_ANYWHERE && rule->conditions & 1u << FLT_CLASS) {
		flt_text_add(t, "class ");
		add_range(t, &flt_conditions[FLT_CLASS], *class);
		return FLT_CLASS;
	}
	flt_text_add(t, flt_places[rule->place]);
	if (rule->node < 0)
		return FLT_NUM_FIELDS;
	flt_text_add(t, " ");
	flt_text_add(t, names->name(names->ctx, rule->node));
	if (rule->place == FLT_LINK || rule->place == FLT_PORT) {
		flt_text_add(t, ":");
		flt_text_number(t, rule->port);
	} else if (rule->place == FLT_QP) {
		flt_text_add(t, ":");
		flt_text_hex(t, rule->qpn);
	}
	return FLT_NUM_FIELDS;
}

static void add_direction(struct flt_text *t, const struct flt_rule *rule,
			  const struct flt_names *names)
{
	bool is_switch = false;

	if (rule->place == FLT_NODE && rule->node >= 0)
		names->num_ports(names->ctx, rule->node, &is_switch);
	if (rule->direction == (is_switch ? FLT_IN : FLT_BOTH))
		return;
	add_name(t, "dir");
	flt_text_add(t, flt_word_name(flt_directions, rule->direction));
}

size_t flt_print(const struct flt_rule *rule, const struct flt_names *names, char *text,
		 size_t bytes)
{
	const struct flt_action_info *info = &flt_actions[rule->action];
	struct flt_text t;
	unsigned int said;

	flt_text_init(&t, text, bytes);
	said = add_place(&t, rule, names);
	flt_text_add(&t, " ");
	flt_text_add(&t, info->name);
	for (const struct flt_param *p = flt_params; p->name; p++) {
		uint64_t n = p->actions & 1u << rule->action ? flt_get(rule, p) : p->unset;

		if (!info->argument || !(p->actions & 1u << rule->action) ||
		    !flt_same_word(p->name, info->argument) || (n == p->unset && !p->words))
			continue;
		flt_text_add(&t, " ");
		flt_text_value(&t, p->unit, n, p->words);
	}
	if (info->family == FLT_PACKET)
		add_direction(&t, rule, names);
	for (unsigned int i = 0; i < FLT_NUM_FIELDS; i++)
		if (rule->conditions & 1u << i && i != said) {
			add_name(&t, flt_conditions[i].name);
			add_range(&t, &flt_conditions[i], rule->field[i]);
		}
	for (const struct flt_param *p = flt_params; p->name; p++) {
		if (!(p->actions & 1u << rule->action) || flt_get(rule, p) == p->unset ||
		    (info->argument && flt_same_word(p->name, info->argument)))
			continue;
		add_name(&t, p->name);
		flt_text_value(&t, p->unit, flt_get(rule, p), p->words);
	}
	return t.len;
}

const char *flt_hit_what(const struct flt_hit *hit)
{
	for (const struct flt_param *p = flt_params; p->name; p++)
		if (p->actions & 1u << hit->action && p->words &&
		    p->offset == offsetof(struct flt_rule, what))
			return flt_word_name(p->words, hit->what);
	return NULL;
}

const char *flt_action_name(enum flt_action action)
{
	return flt_actions[action].name;
}
