/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Parses a rule:
 *
 *	PLACE ACTION [ARGUMENT] [NAME=VALUE ...]
 *
 * PLACE is "all", "link NODE:PORT", "port NODE:PORT", "node NODE",
 * "qp NODE:QPN" or "class CLASS"; a NODE with blanks has to be quoted. The tables of
 * names and values are in words.c; an error message lists what is accepted.
 */
#include <errno.h>
#include <string.h>

#include "fault/parser.h"

/* --- messages ---------------------------------------------------------- */

static int fail_action(struct parser *p, const char *word)
{
	bool first = true;

	fail(p, word ? "no action" : "the action is missing", word, "");
	for (int i = 0; i < FLT_NUM_ACTIONS; i++)
		if (flt_actions[i].places & 1u << p->rule->place)
			add_item(p, flt_actions[i].name, &first);
	return -EINVAL;
}

/* --- places ------------------------------------------------------------ */

static int parse_node(struct parser *p, const char *name)
{
	p->rule->node = p->names->find(p->names->ctx, name);
	return p->rule->node < 0 ?
		       fail(p, "no node", name,
			    "a name such as n1 or s1, a description, an id or a GUID") :
		       0;
}

/* split NODE:REST at the last colon; *@rest points behind it */
static int cut(struct parser *p, const char *word, const char **rest, const char *expected)
{
	char *colon = strrchr(word, ':');

	if (!colon || colon == word || !colon[1])
		return fail(p, "no place", word, expected);
	*colon = 0;
	*rest = colon + 1;
	return parse_node(p, word);
}

static int parse_port(struct parser *p, const char *word)
{
	const char *rest;
	bool is_switch;
	uint64_t n;
	int most;

	if (cut(p, word, &rest, "NODE:PORT such as n1:1"))
		return -EINVAL;
	most = p->names->num_ports(p->names->ctx, p->rule->node, &is_switch);
	if (flt_number(rest, (uint64_t)most, &n) || n == 0) {
		fail(p, "no port", rest, "1 to ");
		flt_text_number(&p->err, (uint64_t)most);
		return -EINVAL;
	}
	p->rule->port = (uint8_t)n;
	if (!p->names->has_cable(p->names->ctx, p->rule->node, (int)n))
		return fail(p, "no cable at port", rest, "a port that has one: see softib topo");
	return 0;
}

static int parse_qp(struct parser *p, const char *word)
{
	const char *rest;
	bool is_switch;
	uint64_t n;

	if (cut(p, word, &rest, "NODE:QPN such as n1:0x12"))
		return -EINVAL;
	p->names->num_ports(p->names->ctx, p->rule->node, &is_switch);
	if (is_switch)
		return fail(p, "queue pairs of a switch", word, "an adapter's node such as n1");
	if (flt_number(rest, 0xffffff, &n))
		return fail(p, "no QPN", rest, "a number such as 0x12: see 'softib resource show'");
	p->rule->qpn = (uint32_t)n;
	if (!p->names->has_qp || p->names->has_qp(p->names->ctx, p->rule->node, (uint32_t)n))
		return 0;
	return fail(p, n < 2 ? "no place: queue pair" : "no queue pair", rest,
		    n < 2 ? "class CLASS, such as class sm or class cm: it carries only MADs" :
			    "one that exists: see 'softib resource show'");
}

static int parse_whole_node(struct parser *p, const char *word)
{
	bool is_switch;

	if (parse_node(p, word))
		return -EINVAL;
	p->names->num_ports(p->names->ctx, p->rule->node, &is_switch);
	if (is_switch) /* a packet through a switch arrives at it once */
		p->rule->direction = FLT_IN;
	return 0;
}

static int condition_value(struct parser *p, enum flt_field field, const char *text);

static int parse_class(struct parser *p, const char *word)
{
	return condition_value(p, FLT_CLASS, word);
}

static const struct {
	const char *name;
	enum flt_place place;
	int (*parse)(struct parser *p, const char *word);
} places[] = {
	{"all", FLT_ANYWHERE, NULL},	     {"link", FLT_LINK, parse_port},
	{"port", FLT_PORT, parse_port},	     {"node", FLT_NODE, parse_whole_node},
	{"qp", FLT_QP, parse_qp},	     {"class", FLT_ANYWHERE, parse_class},
};

static int parse_place(struct parser *p)
{
	static const char expected[] = "all, link NODE:PORT, port NODE:PORT, node NODE, "
				       "qp NODE:QPN or class CLASS";
	const char *word = *p->at;

	if (!word)
		return fail(p, "the rule is empty", NULL, expected);
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		if (!flt_same_word(places[i].name, word))
			continue;
		p->rule->place = places[i].place;
		p->at++;
		if (!places[i].parse)
			return 0;
		if (!*p->at)
			return fail(p, "nothing stands behind", word, expected);
		return places[i].parse(p, *p->at++);
	}
	return fail(p, "no place", word, expected);
}

/* --- values ------------------------------------------------------------ */

static int param_value(struct parser *p, const struct flt_param *param, const char *text)
{
	uint64_t n;
	uint32_t word = 0;
	int ret;

	if (param->words) {
		if (flt_word_value(param->words, text, &word))
			return fail_words(p, param->name, text, param->words);
		n = word;
	} else {
		ret = flt_value(text, param->unit, &n);
		if (ret || n > param->most) {
			fail(p, param->name, text, flt_unit_example(param->unit));
			if (!ret && param->unit <= FLT_UNIT_ZERO) {
				flt_text_add(&p->err, ", at most ");
				flt_text_number(&p->err, param->most);
			}
			return -EINVAL;
		}
	}
	flt_put(p->rule, param, n);
	return 0;
}

static int one_value(enum flt_field field, const char *text, uint32_t *value)
{
	const struct flt_condition *c = &flt_conditions[field];
	uint64_t n;

	if (c->words && !flt_word_value(c->words, text, value))
		return 0;
	if (field == FLT_OPCODE && !flt_opcode_value(text, value))
		return 0;
	if (flt_number(text, c->most, &n))
		return -EINVAL;
	*value = (uint32_t)n;
	return 0;
}

#define OPCODE_NAMES "rc-send-only, rc-rdma-write-first, rc-acknowledge or ud-send-only"

/* a value or LOW-HIGH; names may contain dashes, so a name is tried first */
static int condition_value(struct parser *p, enum flt_field field, const char *text)
{
	const struct flt_condition *c = &flt_conditions[field];
	struct flt_range *range = &p->rule->field[field];
	char *dash = strchr(text, '-');
	bool ok = !one_value(field, text, &range->low);

	range->high = range->low;
	if (!ok && dash) {
		*dash = 0;
		ok = !one_value(field, text, &range->low) &&
		     !one_value(field, dash + 1, &range->high) && range->low <= range->high;
		*dash = '-';
	}
	p->rule->conditions |= 1u << field;
	if (ok)
		return 0;
	if (c->words)
		return fail_words(p, c->name, text, c->words);
	fail(p, c->name, text, field == FLT_OPCODE ?
				       "a name such as " OPCODE_NAMES ", a number or a range LOW-HIGH, at most " :
				       "a number or a range LOW-HIGH, at most ");
	flt_text_number(&p->err, c->most);
	return -EINVAL;
}

/* --- name=value -------------------------------------------------------- */

static int parse_nth(struct parser *p, const char *text)
{
	uint64_t n;

	if (flt_number(text, 0xffffffff, &n) || n == 0)
		return fail(p, "nth", text, "a number such as 10: only that one is hit");
	p->rule->after = (uint32_t)n - 1;
	p->rule->first = 1;
	return 0;
}

static bool may_have(enum flt_action action, enum flt_field field)
{
	if (flt_actions[action].family == FLT_PACKET)
		return true;
	return (action == FLT_COMPLETION || action == FLT_OVERRUN) &&
	       (field == FLT_OPCODE || field == FLT_OPERATION);
}

static int fail_name(struct parser *p, const char *name)
{
	bool first = true;

	flt_text_add(&p->err, flt_actions[p->rule->action].name);
	fail(p, " takes no", name, "");
	for (const struct flt_param *param = flt_params; param->name; param++)
		if (param->actions & 1u << p->rule->action)
			add_item(p, param->name, &first);
	if (!flt_is_state(p->rule->action))
		add_item(p, "nth", &first);
	if (flt_actions[p->rule->action].family == FLT_PACKET)
		add_item(p, "dir", &first);
	for (int i = 0; i < FLT_NUM_FIELDS; i++)
		if (may_have(p->rule->action, (enum flt_field)i))
			add_item(p, flt_conditions[i].name, &first);
	return -EINVAL;
}

static int give_param(struct parser *p, const struct flt_param *param, const char *text)
{
	uint64_t bit = 1ull << (param - flt_params);

	if (p->params & bit)
		return fail(p, "given twice:", param->name, NULL);
	p->params |= bit;
	return param_value(p, param, text);
}

static int parse_pair(struct parser *p, const char *name, const char *text)
{
	const struct flt_param *param = find_param(name, (enum flt_action)p->rule->action);
	uint32_t direction;

	if (param)
		return give_param(p, param, text);
	if (flt_same_word(name, "nth") && !flt_is_state(p->rule->action))
		return parse_nth(p, text);
	if (flt_same_word(name, "dir") && flt_actions[p->rule->action].family == FLT_PACKET) {
		if (p->rule->place == FLT_ANYWHERE)
			return fail(p, "dir", text, "a place that has sides: link, port, node or qp");
		if (flt_word_value(flt_directions, text, &direction))
			return fail_words(p, "dir", text, flt_directions);
		if (p->directed)
			return fail(p, "given twice:", "dir", NULL);
		p->directed = true;
		p->rule->direction = (uint8_t)direction;
		return 0;
	}
	for (int i = 0; i < FLT_NUM_FIELDS; i++)
		if (flt_same_word(name, flt_conditions[i].name) &&
		    may_have((enum flt_action)p->rule->action, (enum flt_field)i))
			return p->rule->conditions & 1u << i ?
				       fail(p, "given twice:", name, NULL) :
				       condition_value(p, (enum flt_field)i, text);
	return fail_name(p, name);
}

/* "1%", "500ppm": values for which "rate=" may be omitted */
static bool is_share(const char *word)
{
	size_t len = strlen(word);

	return (len && word[len - 1] == '%') || (len > 3 && !strcmp(word + len - 3, "ppm"));
}

static int parse_option(struct parser *p, const char *word)
{
	char *equals = strchr(word, '=');

	if (equals) {
		*equals = 0;
		return parse_pair(p, word, equals + 1);
	}
	if (is_share(word) && find_param("rate", (enum flt_action)p->rule->action))
		return parse_pair(p, "rate", word);
	return fail(p, "no option", word, "NAME=VALUE such as count=5, or a share such as 1% or 500ppm");
}

/* --- the action -------------------------------------------------------- */

static int parse_action(struct parser *p)
{
	const struct flt_action_info *info = NULL;
	const char *word = *p->at;

	for (uint8_t i = 0; word && !info && i < FLT_NUM_ACTIONS; i++)
		if (flt_same_word(flt_actions[i].name, word) &&
		    flt_actions[i].places & 1u << p->rule->place) {
			p->rule->action = i;
			info = &flt_actions[i];
		}
	if (!info)
		return fail_action(p, word);
	for (const struct flt_param *param = flt_params; param->name; param++)
		if (param->actions & 1u << p->rule->action)
			flt_put(p->rule, param, param->unset);
	word = *++p->at;
	if (!info->argument || !word || strchr(word, '=') || is_share(word))
		return 0;
	p->at++;
	return give_param(p, find_param(info->argument, (enum flt_action)p->rule->action), word);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* a quoted word may contain blanks, as in "host two:1" */
static int split(struct parser *p, const char *text)
{
	bool inside = false, quoted = false, blank;
	char *to = p->text;
	size_t words = 0;

	if (strlen(text) >= sizeof(p->text))
		return fail(p, "the rule is too long", NULL, "at most 511 bytes");
	for (; *text; text++, inside = !blank) {
		quoted ^= *text == '"';
		blank = !quoted && is_blank(*text);
		if (!blank && !inside) {
			if (words == WORDS_MAX)
				return fail(p, "the rule has too many words", NULL, "at most 40");
			p->word[words++] = to;
		}
		if (blank && inside)
			*to++ = 0;
		else if (!blank && *text != '"')
			*to++ = *text;
	}
	*to = 0;
	if (quoted)
		return fail(p, "a quote is not closed", NULL, "one before and one behind a name");
	p->word[words] = NULL;
	p->at = p->word;
	return 0;
}

int flt_parse(const char *text, const struct flt_names *names, struct flt_rule *out, char *err,
	      size_t err_bytes)
{
	struct flt_rule rule = {.node = -1, .direction = FLT_BOTH, .rate_ppm = FLT_PPM};
	struct parser p = {.names = names, .rule = &rule};
	int ret;

	flt_text_init(&p.err, err, err_bytes);
	ret = split(&p, text);
	if (!ret)
		ret = parse_place(&p);
	if (!ret)
		ret = parse_action(&p);
	while (!ret && *p.at)
		ret = parse_option(&p, *p.at++);
	if (!ret)
		ret = flt_check(&p);
	if (!ret)
		*out = rule;
	return ret;
}
