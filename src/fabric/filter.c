/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Filters of captures. A term has a name and reads up to two values from a
 * packet ("lid": those of source and destination); it matches if one of
 * them is in the given range. A new term needs one row of the table.
 *
 *	expression  = alternative {"or" alternative}
 *	alternative = factor {["and"] factor}
 *	factor	    = "not" factor | "(" expression ")" | name [value]
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/filter.h"
#include "wire/mad.h"

/** struct view - a packet's fields, decoded once for all terms */
struct view {
	const struct fab_sight *sight;
	struct wire_packet pkt;
	bool is_mad;
	struct wire_mad mad;
};

/* @value: set to up to two values. Return: how many of them this packet has */
typedef int get_fn(const struct view *view, uint64_t value[2]);

/* --- what a packet has --------------------------------------------------- */

#define GET(name, has, expression)                                                       \
	static int get_##name(const struct view *v, uint64_t value[2])                   \
	{                                                                                \
		value[0] = (uint64_t)(expression);                                       \
		return (has) ? 1 : 0;                                                    \
	}

static bool has(const struct view *v, uint32_t flag)
{
	return wire_opcodes[v->pkt.bth.opcode].flags & flag;
}

static int get_lid(const struct view *v, uint64_t value[2])
{
	value[0] = v->pkt.lrh.slid;
	value[1] = v->pkt.lrh.dlid;
	return 2;
}

static int get_qpn(const struct view *v, uint64_t value[2])
{
	value[0] = v->pkt.bth.dest_qpn;
	value[1] = v->pkt.deth.src_qpn;
	return has(v, WIRE_HAS_DETH) ? 2 : 1;
}

static bool is_smp(const struct view *v)
{
	return v->is_mad && (v->mad.mgmt_class == WIRE_CLASS_SM_LID ||
			     v->mad.mgmt_class == WIRE_CLASS_SM_DIRECT);
}

GET(slid, true, v->pkt.lrh.slid)
GET(dlid, true, v->pkt.lrh.dlid)
GET(sl, true, v->pkt.lrh.sl)
GET(vl, true, v->sight->vl)
GET(pkey, true, v->pkt.bth.pkey)
GET(dqpn, true, v->pkt.bth.dest_qpn)
GET(sqpn, has(v, WIRE_HAS_DETH), v->pkt.deth.src_qpn)
GET(psn, true, v->pkt.bth.psn.v)
GET(opcode, true, v->pkt.bth.opcode)
GET(transport, true, WIRE_TRANSPORT_MASK & v->pkt.bth.opcode)
GET(class, v->is_mad, v->mad.mgmt_class)
GET(method, v->is_mad, v->mad.method)
GET(attr, v->is_mad, v->mad.attr_id)
GET(node, true, v->sight->node)
GET(port, true, v->sight->port)
GET(bytes, true, v->sight->len)
/* these terms have no value: they match if the getter returns 1 */
GET(sent, v->sight->sent, 0)
GET(received, !v->sight->sent, 0)
GET(mad, v->is_mad, 0)
GET(smp, is_smp(v), 0)
GET(multicast,
    v->pkt.lrh.dlid >= WIRE_LID_MULTICAST && v->pkt.lrh.dlid != WIRE_LID_PERMISSIVE, 0)
GET(grh, v->pkt.lrh.lnh == WIRE_LNH_GRH, 0)
GET(send, has(v, WIRE_IS_SEND), 0)
GET(write, has(v, WIRE_IS_WRITE), 0)
GET(read, has(v, WIRE_IS_READ), 0)
GET(atomic, has(v, WIRE_IS_ATOMIC), 0)
GET(ack, (v->pkt.bth.opcode & ~WIRE_TRANSPORT_MASK) == WIRE_ACKNOWLEDGE, 0)
GET(response, has(v, WIRE_IS_RESPONSE), 0)

/* --- the terms ----------------------------------------------------------- */

struct value_name {
	const char *name;
	uint64_t low, high;
};

static const struct value_name transports[] = {
	{"rc", WIRE_RC, WIRE_RC}, {"uc", WIRE_UC, WIRE_UC},    {"rd", WIRE_RD, WIRE_RD},
	{"ud", WIRE_UD, WIRE_UD}, {"xrc", WIRE_XRC, WIRE_XRC}, {0},
};

static const struct value_name classes[] = {
	{"sm", WIRE_CLASS_SM_LID, WIRE_CLASS_SM_LID},
	{"sm-direct", WIRE_CLASS_SM_DIRECT, WIRE_CLASS_SM_DIRECT},
	{"sa", WIRE_CLASS_SA, WIRE_CLASS_SA},
	{"perf", WIRE_CLASS_PERF, WIRE_CLASS_PERF},
	{"bm", WIRE_CLASS_BM, WIRE_CLASS_BM},
	{"dm", WIRE_CLASS_DM, WIRE_CLASS_DM},
	{"cm", WIRE_CLASS_CM, WIRE_CLASS_CM},
	{"cc", WIRE_CLASS_CC, WIRE_CLASS_CC},
	{"vendor", WIRE_CLASS_VENDOR_HIGH, WIRE_CLASS_VENDOR_HIGH_LAST},
	{0},
};

enum value_kind { NO_VALUE, NUMBER, NODE };

static const struct filter_term {
	const char *name;
	get_fn *get;
	enum value_kind kind;
	const struct value_name *names; /* names for values */
	uint64_t most;			/* the largest value in a packet */
} terms[] = {
	{"lid", get_lid, NUMBER, NULL, 0xffff},
	{"slid", get_slid, NUMBER, NULL, 0xffff},
	{"dlid", get_dlid, NUMBER, NULL, 0xffff},
	{"sl", get_sl, NUMBER, NULL, 15},
	{"vl", get_vl, NUMBER, NULL, 15},
	{"pkey", get_pkey, NUMBER, NULL, 0xffff},
	{"qpn", get_qpn, NUMBER, NULL, 0xffffff},
	{"dqpn", get_dqpn, NUMBER, NULL, 0xffffff},
	{"sqpn", get_sqpn, NUMBER, NULL, 0xffffff},
	{"psn", get_psn, NUMBER, NULL, 0xffffff},
	{"opcode", get_opcode, NUMBER, NULL, 0xff},
	{"transport", get_transport, NUMBER, transports, 7},
	{"class", get_class, NUMBER, classes, 0xff},
	{"method", get_method, NUMBER, NULL, 0xff},
	{"attr", get_attr, NUMBER, NULL, 0xffff},
	{"node", get_node, NODE, NULL},
	{"port", get_port, NUMBER, NULL, 0xff},
	{"bytes", get_bytes, NUMBER, NULL, 5000},
	{"sent", get_sent, NO_VALUE, NULL},
	{"received", get_received, NO_VALUE, NULL},
	{"mad", get_mad, NO_VALUE, NULL},
	{"smp", get_smp, NO_VALUE, NULL},
	{"multicast", get_multicast, NO_VALUE, NULL},
	{"grh", get_grh, NO_VALUE, NULL},
	{"send", get_send, NO_VALUE, NULL},
	{"write", get_write, NO_VALUE, NULL},
	{"read", get_read, NO_VALUE, NULL},
	{"atomic", get_atomic, NO_VALUE, NULL},
	{"ack", get_ack, NO_VALUE, NULL},
	{"response", get_response, NO_VALUE, NULL},
};

/* --- matching ------------------------------------------------------------ */

static bool decode(struct view *view, const struct fab_sight *sight)
{
	const struct wire_packet *p = &view->pkt;

	view->sight = sight;
	if (wire_packet_decode(sight->bytes, sight->len, &view->pkt) < 0)
		return false;
	view->is_mad = has(view, WIRE_HAS_DETH) && p->payload_bytes == WIRE_MAD_BYTES &&
		       (p->bth.dest_qpn <= 1 || p->deth.src_qpn <= 1);
	if (view->is_mad)
		wire_mad_decode(p->payload, p->payload_bytes, &view->mad);
	return true;
}

static bool holds(const struct fab_filter_op *op, const struct view *view)
{
	uint64_t value[2];
	int n = op->term->get(view, value);

	for (int i = 0; i < n; i++)
		if (value[i] >= op->low && value[i] <= op->high)
			return true;
	return false;
}

bool fab_filter_match(const struct fab_filter *filter, const struct fab_sight *sight)
{
	uint64_t stack = 1; /* of truth values; its lowest bit is the top */
	struct view view;

	if (filter->num_ops && !decode(&view, sight))
		return false;
	for (int i = 0; i < filter->num_ops; i++) {
		const struct fab_filter_op *op = &filter->op[i];

		switch (op->kind) {
		case 't':
			stack = stack << 1 | holds(op, &view);
			break;
		case '!':
			stack ^= 1;
			break;
		case '&':
			stack = (stack >> 1 & ~1ull) | (stack & stack >> 1 & 1);
			break;
		case '|':
			stack = stack >> 1 | (stack & 1);
			break;
		}
	}
	return stack & 1;
}

/* --- parsing ------------------------------------------------------------- */

struct parser {
	const char *at;
	char word[80]; /* "(" and ")" are words; "" is the end */
	const struct topology *topo;
	struct fab_filter *filter;
	char *err;
	size_t err_bytes;
};

__attribute__((format(printf, 2, 3))) static bool fail(struct parser *p, const char *fmt,
						       ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(p->err, p->err_bytes, fmt, ap);
	va_end(ap);
	return false;
}

static void next(struct parser *p)
{
	size_t n = 0;

	while (isspace((unsigned char)*p->at))
		p->at++;
	while (p->at[n] && !isspace((unsigned char)p->at[n]) && !strchr("()", p->at[n]))
		n++;
	n = n || !*p->at ? n : 1;
	snprintf(p->word, sizeof(p->word), "%.*s", (int)n, p->at);
	p->at += n;
}

static bool is(const struct parser *p, const char *word)
{
	return !strcmp(p->word, word);
}

static bool emit(struct parser *p, struct fab_filter_op op)
{
	if (p->filter->num_ops == FAB_FILTER_OPS_MAX)
		return fail(p, "the filter has more than %d terms", FAB_FILTER_OPS_MAX);
	p->filter->op[p->filter->num_ops++] = op;
	return true;
}

/* N or N-M, decimal or 0x */
static bool parse_number(const char *text, struct fab_filter_op *op)
{
	char *end;

	if (!isdigit((unsigned char)*text))
		return false;
	op->low = op->high = strtoull(text, &end, 0);
	if (*end == '-' && isdigit((unsigned char)end[1]))
		op->high = strtoull(end + 1, &end, 0);
	return !*end && op->low <= op->high;
}

static bool fail_value(struct parser *p, const struct filter_term *term)
{
	char list[100] = "";
	size_t n = 0;

	for (const struct value_name *v = term->names; v && v->name; v++)
		n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s",
				      n ? ", " : ", or a name: ", v->name);
	return fail(p, "\"%s %s\": expected a number or a range such as 3-5, at most %" PRIu64 "%s",
		    term->name, p->word, term->most, list);
}

static bool parse_value(struct parser *p, struct fab_filter_op *op)
{
	const struct value_name *name = op->term->names;
	int node;

	if (op->term->kind == NODE) {
		node = p->word[0] ? topo_find(p->topo, p->word) : -1;
		op->low = op->high = (uint64_t)node;
		return node >= 0 || fail(p, "no node \"%s\" in this fabric", p->word);
	}
	for (; name && name->name; name++) {
		if (is(p, name->name)) {
			op->low = name->low;
			op->high = name->high;
			return true;
		}
	}
	return (parse_number(p->word, op) && op->low <= op->term->most) || fail_value(p, op->term);
}

static bool list_terms(struct parser *p)
{
	char list[400];
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(terms); i++)
		n += (size_t)snprintf(list + n, sizeof(list) - n, " %s", terms[i].name);
	return p->word[0] ? fail(p, "no term \"%s\"; expected one of%s", p->word, list)
			  : fail(p, "the filter ends too early; expected one of%s", list);
}

static bool parse_term(struct parser *p)
{
	struct fab_filter_op op = {.kind = 't'};

	for (size_t i = 0; i < ARRAY_SIZE(terms); i++)
		if (is(p, terms[i].name))
			op.term = &terms[i];
	if (!op.term)
		return list_terms(p);
	next(p);
	if (op.term->kind == NO_VALUE)
		return emit(p, op);
	if (!parse_value(p, &op))
		return false;
	next(p);
	return emit(p, op);
}

static bool parse_expression(struct parser *p, int depth);

static bool parse_factor(struct parser *p, int depth)
{
	bool negated = false;

	if (depth > FAB_FILTER_OPS_MAX)
		return fail(p, "the filter has too many parentheses");
	for (; is(p, "not"); next(p))
		negated = !negated;
	if (is(p, "(")) {
		next(p);
		if (!parse_expression(p, depth + 1))
			return false;
		if (!is(p, ")"))
			return p->word[0] ? fail(p, "a \")\" is missing before \"%s\"", p->word)
					  : fail(p, "a \")\" is missing at the end");
		next(p);
	} else if (!parse_term(p)) {
		return false;
	}
	return !negated || emit(p, (struct fab_filter_op){.kind = '!'});
}

static bool parse_alternative(struct parser *p, int depth)
{
	if (!parse_factor(p, depth))
		return false;
	while (p->word[0] && !is(p, "or") && !is(p, ")")) {
		if (is(p, "and"))
			next(p);
		if (!parse_factor(p, depth) ||
		    !emit(p, (struct fab_filter_op){.kind = '&'}))
			return false;
	}
	return true;
}

static bool parse_expression(struct parser *p, int depth)
{
	if (!parse_alternative(p, depth))
		return false;
	while (is(p, "or")) {
		next(p);
		if (!parse_alternative(p, depth) ||
		    !emit(p, (struct fab_filter_op){.kind = '|'}))
			return false;
	}
	return true;
}

int fab_filter_parse(const char *text, const struct topology *topo,
		     struct fab_filter *filter, char *err, size_t err_bytes)
{
	struct parser p = {.at = text,
			   .topo = topo,
			   .filter = filter,
			   .err = err,
			   .err_bytes = err_bytes};

	filter->num_ops = 0;
	next(&p);
	if (!p.word[0])
		return 0;
	if (parse_expression(&p, 0) && !p.word[0])
		return 0;
	if (!strcmp(p.word, ")"))
		fail(&p, "a \")\" without its \"(\"");
	return -EINVAL;
}
