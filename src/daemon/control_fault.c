/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The operations on faults: add, list, clear, log. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/control_private.h"
#include "wire/packet.h"

#define LOG_MAX 10000 /* the largest number of hits in one answer */

static struct json_object *rule_json(struct fabric *fab, const struct flt_rule *rule)
{
	struct flt_names names = fab_fault_names(fab);
	struct json_object *o = json_object_new_object();
	char text[FLT_TEXT_MAX];

	flt_print(rule, &names, text, sizeof(text));
	control_put_number(o, "id", rule->id);
	control_put_text(o, "action", flt_action_name((enum flt_action)rule->action));
	control_put_text(o, "rule", text);
	control_put_number(o, "matched", rule->matched);
	control_put_number(o, "hits", rule->hits);
	if (flt_is_state((enum flt_action)rule->action) && rule->action != FLT_EVENT)
		json_object_object_add(o, "on",
				       json_object_new_boolean(fab_fault_is_on(fab, rule->id)));
	return o;
}

/* get "seed", 0 if absent. Return: false, with an error, if it is invalid */
static bool get_seed(struct control_request *req, uint64_t *seed)
{
	int64_t n = control_number(req, "seed", INT64_MAX);

	*seed = n > 0 ? (uint64_t)n : 0;
	if (n == 0)
		control_fail(req, "\"seed\" has to be an integer, at least 1");
	return n != -2 && n != 0;
}

bool control_op_fault_add(struct control_request *req)
{
	struct fabric *fab = control_fabric(req->control);
	const char *text = control_text(req, "rule");
	struct flt_names names = fab_fault_names(fab);
	struct json_object *check;
	struct flt_rule rule;
	char err[512] = "";
	uint64_t seed;
	int id;

	if (!text) {
		control_fail(req, "\"rule\" is missing; expected for example "
				  "\"link n1:1 drop rate=1%%\"");
		return true;
	}
	if (!get_seed(req, &seed))
		return true;
	if (json_object_object_get_ex(req->in, "check", &check) && json_object_get_boolean(check)) {
		if (flt_parse(text, &names, &rule, err, sizeof(err)))
			control_fail(req, "%s", err);
		return true;
	}
	id = fab_fault_add(fab, text, seed, err, sizeof(err));
	if (id < 0) {
		control_fail(req, "%s", err);
		return true;
	}
	json_object_put(req->out);
	req->out = rule_json(fab, flt_find(fab_faults(fab), (uint32_t)id));
	return true;
}

bool control_op_fault_list(struct control_request *req)
{
	struct fabric *fab = control_fabric(req->control);
	struct json_object *list = json_object_new_array();
	struct flt_set *set = fab_faults(fab);

	for (unsigned int i = 0; set && i < set->num_rules; i++)
		json_object_array_add(list, rule_json(fab, &set->rule[i]));
	json_object_object_add(req->out, "rules", list);
	control_put_number(req->out, "logged", set ? set->logged : 0);
	control_put_number(req->out, "now_ns", rt_now(control_rt(req->control)).ns);
	return true;
}

bool control_op_fault_clear(struct control_request *req)
{
	int64_t id = control_number(req, "id", UINT32_MAX);

	if (id == -2)
		return true;
	if (fab_fault_clear(control_fabric(req->control), id > 0 ? (uint32_t)id : 0))
		control_fail(req, "no rule %" PRId64 "; 'softib fault list' lists the rules", id);
	return true;
}

/* --- the log ------------------------------------------------------------ */

static void put_end(struct fabric *fab, struct json_object *o, const char *key, struct flt_end end)
{
	const char *name = control_node_name(fab, end.node);
	char text[96];

	snprintf(text, sizeof(text), "%s:%d", name, end.port);
	control_put_text(o, key, end.port ? text : name);
}

/* Return: the other end of the cable at @near */
static struct flt_end far_end(struct fabric *fab, struct flt_end near)
{
	const struct topo_port *port = &fab_topology(fab)->node[near.node].port[near.port];

	if (port->peer_node < 0) /* the cable leaves the fabric */
		return (struct flt_end){.node = fab_topology(fab)->num_nodes, .port = 1};
	return (struct flt_end){.node = port->peer_node, .port = (uint8_t)port->peer_port};
}

/* Put the place of a hit: two ports for a packet or a cable, otherwise one node or port. */
static void put_place(struct fabric *fab, struct json_object *o, const struct flt_hit *hit)
{
	struct flt_end to = hit->action == FLT_DOWN ? far_end(fab, hit->from) : hit->to;

	if (hit->from.node >= 0)
		put_end(fab, o, "from", hit->from);
	if (to.node >= 0 && (hit->action < FLT_FAIL || hit->action == FLT_DOWN))
		put_end(fab, o, "to", to);
}

static struct json_object *hit_json(struct fabric *fab, const struct flt_hit *hit)
{
	static const struct {
		enum flt_field field;
		const char *name;
	} fields[] = {
		{FLT_SLID, "slid"},   {FLT_DLID, "dlid"},   {FLT_DEST_QPN, "qpn"},
		{FLT_SRC_QPN, "src_qpn"}, {FLT_PSN, "psn"}, {FLT_BYTES, "bytes"},
		{FLT_CLASS, "class"}, {FLT_METHOD, "method"}, {FLT_ATTRIBUTE, "attr"},
	};
	struct json_object *o = json_object_new_object();
	const char *opcode = wire_opcodes[hit->field[FLT_OPCODE] & 0xff].name;

	control_put_number(o, "serial", hit->serial);
	control_put_number(o, "when_ns", hit->when.ns);
	control_put_number(o, "rule", hit->rule);
	control_put_text(o, "action", flt_action_name((enum flt_action)hit->action));
	put_place(fab, o, hit);
	if (flt_hit_what(hit))
		control_put_text(o, "what", flt_hit_what(hit));
	if (hit->qpn)
		control_put_number(o, "qpn", hit->qpn);
	if (hit->present & 1u << FLT_DLID && opcode)
		control_put_text(o, "opcode", opcode);
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if (hit->present & 1u << fields[i].field)
			control_put_number(o, fields[i].name, hit->field[fields[i].field]);
	return o;
}

bool control_op_fault_log(struct control_request *req)
{
	struct fabric *fab = control_fabric(req->control);
	int64_t since = control_number(req, "since", INT64_MAX);
	struct flt_set *set = fab_faults(fab);
	struct json_object *list;
	const struct flt_hit *hit;

	if (since == -2)
		return true;
	list = json_object_new_array();
	for (uint32_t i = 0; set && json_object_array_length(list) < LOG_MAX &&
			     (hit = flt_log_at(set, i)); i++)
		if ((int64_t)hit->serial > since)
			json_object_array_add(list, hit_json(fab, hit));
	json_object_object_add(req->out, "hits", list);
	control_put_number(req->out, "logged", set ? set->logged : 0);
	control_put_number(req->out, "now_ns", rt_now(control_rt(req->control)).ns);
	return true;
}
