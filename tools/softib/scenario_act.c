/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The lines of a scenario: when they are due, and what they do. */
#include <string.h>
#include <time.h>

#include "base/types.h"
#include "scenario.h"
#include "softib.h"

/* --- triggers ---------------------------------------------------------- */

uint64_t scenario_since(const struct timespec *start)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)(now.tv_sec - start->tv_sec) * NSEC_PER_SEC + (uint64_t)now.tv_nsec -
	       (uint64_t)start->tv_nsec;
}

int64_t scenario_packets(struct scenario *s, const struct scenario_line *l)
{
	struct json_object *req = request("counters"), *answer, *row;
	int64_t n;

	request_text(req, "node", l->where);
	request_number(req, "port", l->port);
	answer = client_call(s->dir, req);
	if (!answer)
		return -1;
	row = item_of(member_of(answer, "counters"), 0);
	n = number_of(row, "xmit_packets") + number_of(row, "rcv_packets");
	json_object_put(answer);
	return n;
}

/* Return: is it so? 1, 0; -1 (printed) */
static int port_is(struct scenario *s, const struct scenario_line *l)
{
	struct json_object *req = request("topo"), *answer, *ports;
	int ret = 0;

	request_text(req, "node", l->where);
	answer = client_call(s->dir, req);
	if (!answer)
		return -1;
	ports = member_of(item_of(member_of(answer, "nodes"), 0), "ports");
	for (size_t i = 0; i < count_of(ports); i++) {
		struct json_object *port = item_of(ports, i);

		if (number_of(port, "port") == l->port)
			ret = !strcasecmp(text_of(port, "state"), l->state);
	}
	json_object_put(answer);
	return ret;
}

static int subnet_is_up(struct scenario *s)
{
	struct json_object *answer = client_call(s->dir, request("status")), *ports;
	int ret;

	if (!answer)
		return -1;
	ports = member_of(answer, "ports");
	ret = !number_of(ports, "armed") && !number_of(ports, "init") && !number_of(ports, "down");
	json_object_put(answer);
	return ret;
}

static int rule_was_hit(struct scenario *s, const struct scenario_line *l)
{
	const struct rule_name *rule = scenario_rule(s, l->hit_name);
	struct json_object *answer = client_call(s->dir, request("fault_list")), *list;
	int ret = 0;

	if (!answer)
		return -1;
	list = member_of(answer, "rules");
	for (size_t i = 0; i < count_of(list); i++) {
		struct json_object *row = item_of(list, i);

		if (number_of(row, "id") == rule->id)
			ret = (uint64_t)number_of(row, "hits") >= l->count;
	}
	json_object_put(answer);
	return ret;
}

int scenario_is_due(struct scenario *s, const struct scenario_line *l)
{
	int64_t n;

	switch (l->trigger) {
	case NOW:
		return 1;
	case AT:
		return scenario_since(&s->start) >= l->ns;
	case AFTER:
		return scenario_since(&s->last) >= l->ns;
	case PACKETS:
		n = scenario_packets(s, l);
		return n < 0 ? -1 : (uint64_t)n >= s->base_packets + l->count;
	case PORT_STATE:
		return port_is(s, l);
	case SUBNET_UP:
		return subnet_is_up(s);
	default:
		return rule_was_hit(s, l);
	}
}

/* --- actions ----------------------------------------------------------- */

static int do_add(struct scenario *s, const struct scenario_line *l)
{
	struct json_object *req = request("fault_add"), *answer;

	request_text(req, "rule", l->rest);
	answer = client_call(s->dir, req);
	if (!answer)
		return -1;
	scenario_rule(s, l->name[0])->id = number_of(answer, "id");
	printf("%12s %lld: %s\n", "", (long long)number_of(answer, "id"), text_of(answer, "rule"));
	json_object_put(answer);
	return 0;
}

static int clear(struct scenario *s, struct rule_name *rule)
{
	struct json_object *req, *answer;

	if (!rule->id)
		return 0;
	req = request("fault_clear");
	request_number(req, "id", rule->id);
	rule->id = 0;
	answer = client_call_quiet(s->dir, req); /* it may have gone with its QP */
	json_object_put(answer);
	return answer ? 0 : -1;
}

int scenario_clear(struct scenario *s)
{
	int ret = 0;

	for (int i = s->num_rules; i-- > 0;)
		ret |= clear(s, &s->rule[i]);
	return ret;
}

static int do_link(struct scenario *s, const struct scenario_line *l)
{
	struct json_object *req = request("link"), *answer;

	request_text(req, "node", l->rest);
	request_number(req, "port", l->link_port);
	request_text(req, "state", l->up ? "up" : "down");
	answer = client_call(s->dir, req);
	json_object_put(answer);
	return answer ? 0 : -1;
}

/* the time of a rule's first hit behind @from. Return: ns; 0 none; -1 (printed) */
static int64_t first_hit(struct scenario *s, const char *name, int64_t from)
{
	long long id = scenario_rule(s, name)->id;
	struct json_object *answer = client_call(s->dir, request("fault_log")), *list;
	int64_t when = 0;

	if (!answer)
		return -1;
	list = member_of(answer, "hits");
	for (size_t i = 0; !when && i < count_of(list); i++) {
		struct json_object *hit = item_of(list, i);

		if (number_of(hit, "rule") == id && number_of(hit, "when_ns") >= from)
			when = number_of(hit, "when_ns");
	}
	json_object_put(answer);
	return when;
}

static int do_measure(struct scenario *s, const struct scenario_line *l)
{
	int64_t a = first_hit(s, l->name[0], 0), b = a > 0 ? first_hit(s, l->name[1], a) : a;

	if (a < 0 || b < 0)
		return -1;
	if (!a || !b)
		return scenario_fail(s, l->number, "%s has no hit that the log keeps",
				     a ? l->name[1] : l->name[0]);
	printf("%12s from %s to %s: %.3f ms\n", "", l->name[0], l->name[1], (double)(b - a) / 1e6);
	return 0;
}

int scenario_act(struct scenario *s, const struct scenario_line *l)
{
	switch (l->act) {
	case ADD:
		return do_add(s, l);
	case CLEAR:
		return strcmp(l->name[0], "all") ? clear(s, scenario_rule(s, l->name[0])) : scenario_clear(s);
	case LINK:
		return do_link(s, l);
	case MEASURE:
		return do_measure(s, l);
	default:
		printf("%12s %s\n", "", l->rest);
		return 0;
	}
}
