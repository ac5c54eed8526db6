/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* softib ipoib: how the IP interfaces of nodes are. */
#include <stdlib.h>
#include <string.h>

#include "base/types.h"
#include "softib.h"

struct ipoib_args {
	struct common common;
	const char *node;
};

static error_t parse_ipoib(int key, char *arg, struct argp_state *state)
{
	struct ipoib_args *args = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = state->child_inputs[1] = &args->common;
		return 0;
	case ARGP_KEY_ARG:
		if (state->arg_num)
			argp_error(state, "one node only, not '%s' as well", arg);
		args->node = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* --- asking ------------------------------------------------------------------ */

static void copy_member(struct json_object *to, struct json_object *from, const char *key)
{
	json_object_object_add(to, key, json_object_get(member_of(from, key)));
}

/* The interface of one port, if it has one, into @list; @planned is its row among the
 * addresses of @node. */
static void add_interface(struct json_object *list, const char *dir,
			  struct json_object *node, struct json_object *planned)
{
	static const char *const planned_keys[] = {"interface", "port", "ipv4", "ipv6",
						   "link_local"};
	struct json_object *req = request("ipoib"), *answer;

	request_text(req, "node", text_of(node, "name"));
	request_number(req, "port", number_of(planned, "port"));
	answer = client_call_quiet(dir, req);
	if (!answer || member_of(answer, "error")) {
		json_object_put(answer);
		return;
	}
	request_text(answer, "node", text_of(node, "name"));
	for (size_t i = 0; i < ARRAY_SIZE(planned_keys); i++)
		copy_member(answer, planned, planned_keys[i]);
	json_object_array_add(list, answer);
}

/* Return: of all nodes, or of @name alone; the caller's; NULL (said) */
static struct json_object *ask(const char *dir, const char *name)
{
	struct json_object *req = request("nodes"), *answer, *list, *nodes;

	if (name)
		request_text(req, "node", name);
	answer = client_call(dir, req);
	if (!answer)
		return NULL;
	list = json_object_new_array();
	nodes = member_of(answer, "nodes");
	for (size_t i = 0; i < count_of(nodes); i++) {
		struct json_object *planned = member_of(item_of(nodes, i), "addresses");

		for (size_t p = 0; p < count_of(planned); p++)
			add_interface(list, dir, item_of(nodes, i), item_of(planned, p));
	}
	json_object_put(answer);
	return list;
}

/* --- for people -------------------------------------------------------------- */

static void print_table(struct json_object *list)
{
	static const struct {
		const char *title;
		int width;
	} columns[] = {{"NODE", 16}, {"INTERFACE", 11}, {"JOINED", 8}, {"RECEIVED", 12},
		       {"SENT", 12}, {"DROPPED", 9},	{"ADDRESS", 0}};

	for (size_t i = 0; i < ARRAY_SIZE(columns); i++)
		paint("1", columns[i].title, columns[i].width);
	putchar('\n');
	for (size_t i = 0; i < count_of(list); i++) {
		struct json_object *o = item_of(list, i);
		bool joined = json_object_get_boolean(member_of(o, "joined"));

		printf("%-16s%-11s", text_of(o, "node"), text_of(o, "interface"));
		paint(joined ? "32" : "33", joined ? "yes" : "no", 8);
		printf("%-12lld%-12lld%-9lld%s\n", (long long)number_of(o, "rx_packets"),
		       (long long)number_of(o, "tx_packets"),
		       (long long)(number_of(o, "rx_dropped") +
				   number_of(o, "tx_dropped")),
		       text_of(o, "ipv4"));
	}
}

static void print_counts(struct json_object *o, const char *title, const char *prefix)
{
	static const char *const names[] = {"packets", "bytes", "errors", "dropped"};
	const char *gap = "";
	char key[32];

	printf("  ");
	paint("1", title, 12);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(key, sizeof(key), "%s_%s", prefix, names[i]);
		printf("%s%lld %s", gap, (long long)number_of(o, key), names[i]);
		gap = ", ";
	}
	putchar('\n');
}

static void print_row(const char *title, const char *what, const char *how)
{
	printf("  ");
	paint("1", title, 12);
	printf("%s%s%s\n", what, *how ? "  " : "", how);
}

static void print_groups(struct json_object *list)
{
	for (size_t i = 0; i < count_of(list); i++) {
		struct json_object *row = item_of(list, i);
		bool joined = json_object_get_boolean(member_of(row, "joined"));
		bool send_only = json_object_get_boolean(member_of(row, "send_only"));

		print_row(i ? "" : "groups", text_of(row, "mgid"),
			  !joined     ? "not joined"
			  : send_only ? "joined to send"
				      : "joined");
	}
}

static void print_neighbours(struct json_object *list)
{
	for (size_t i = 0; i < count_of(list); i++) {
		const char *link = text_of(item_of(list, i), "link");

		print_row(i ? "" : "neighbours", text_of(item_of(list, i), "ip"),
			  *link ? link : "not resolved");
	}
}

static void print_interface(struct json_object *o)
{
	printf("%s %s: %s, %s, %s\n", text_of(o, "node"), text_of(o, "interface"),
	       text_of(o, "ipv4"), text_of(o, "ipv6"), text_of(o, "link_local"));
	print_row("link", text_of(o, "link"), "");
	print_counts(o, "received", "rx");
	print_counts(o, "sent", "tx");
	print_groups(member_of(o, "groups"));
	print_neighbours(member_of(o, "neighbours"));
}

int cmd_ipoib(int argc, char **argv)
{
	static const struct argp_child children[] = {
		{.argp = &argp_fabric}, {.argp = &argp_json}, {0}};
	static const struct argp argp = {
		.parser = parse_ipoib,
		.children = children,
		.args_doc = "[NODE]",
		.doc = "Show the IP interfaces of nodes (ib0, --net=node), with NODE its "
		       "link "
		       "addresses, multicast groups and neighbours.\v"
		       "Examples:\n  softib ipoib\n  softib ipoib n3 --json\n"};
	struct ipoib_args args = {0};
	struct json_object *list;
	char dir[PATH_MAX];

	argp_parse(&argp, argc, argv, 0, NULL, &args);
	if (place_choose(args.common.fabric, dir))
		return EXIT_FAILURE;
	list = ask(dir, args.node);
	if (!list)
		return EXIT_FAILURE;
	if (args.common.json)
		print_json(list);
	else if (!count_of(list))
		complain("no node here has an IP interface: 'softib up --net=node' "
			 "brings them");
	else if (!args.node)
		print_table(list);
	for (size_t i = 0; args.node && !args.common.json && i < count_of(list); i++)
		print_interface(item_of(list, i));
	json_object_put(list);
	return EXIT_SUCCESS;
}
