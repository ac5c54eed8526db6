/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* softib eth: the Ethernet interfaces of nodes, and what softibd has counted at them. */
#include <stdlib.h>
#include <string.h>

#include "base/types.h"
#include "softib.h"

struct eth_args {
	struct common common;
	const char *node;
};

static error_t parse_eth(int key, char *arg, struct argp_state *state)
{
	struct eth_args *args = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = state->child_inputs[1] = &args->common;
		return 0;
	case ARGP_KEY_ARG:
		if (args->node)
			argp_error(state, "one node only, not '%s' as well", arg);
		args->node = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* into @list, if the port of @adapter has an interface; @planned: its row among the node's addresses */
static void add_interface(struct json_object *list, const char *dir, const char *adapter,
			  struct json_object *planned)
{
	struct json_object *req = request("eth"), *answer;

	request_text(req, "node", adapter);
	request_number(req, "port", number_of(planned, "port"));
	if (member_of(planned, "vlan"))
		request_number(req, "vlan", number_of(planned, "vlan"));
	answer = client_call_quiet(dir, req);
	if (!answer || member_of(answer, "error")) {
		json_object_put(answer);
		return;
	}
	request_text(answer, "node", adapter);
	request_text(answer, "interface", text_of(planned, "interface"));
	json_object_array_add(list, answer);
}

/* Return: of all nodes, or of @name alone; the caller's; NULL (printed) */
static struct json_object *ask(const char *dir, const char *name)
{
	static const char *const lists[] = {"addresses", "vlans"};
	struct json_object *req = request("nodes"), *answer, *list, *nodes;

	if (name)
		request_host(req, name);
	answer = client_call(dir, req);
	if (!answer)
		return NULL;
	list = json_object_new_array();
	nodes = member_of(answer, "nodes");
	for (size_t i = 0; i < count_of(nodes) * ARRAY_SIZE(lists); i++) {
		struct json_object *node = item_of(nodes, i / ARRAY_SIZE(lists));
		struct json_object *planned = member_of(node, lists[i % ARRAY_SIZE(lists)]);

		if (strcmp(text_of(node, "host"), text_of(node, "name")))
			continue; /* the node's first adapter lists those of all */
		for (size_t p = 0; p < count_of(planned); p++)
			add_interface(list, dir, text_of(item_of(planned, p), "adapter"),
				      item_of(planned, p));
	}
	json_object_put(answer);
	return list;
}

static void print_table(struct json_object *list)
{
	static const struct {
		const char *title, *key;
	} columns[] = {{"MTU", "mtu"},		  {"RECEIVED", "rx_packets"},
		       {"SENT", "tx_packets"},	  {"RX-ERRORS", "rx_errors"},
		       {"TX-ERRORS", "tx_errors"}};

	paint("1", "NODE", 16);
	paint("1", "INTERFACE", 11);
	for (size_t i = 0; i < ARRAY_SIZE(columns); i++)
		paint("1", columns[i].title, 12);
	putchar('\n');
	for (size_t i = 0; i < count_of(list); i++) {
		struct json_object *o = item_of(list, i);

		printf("%-16s%-11s", text_of(o, "node"), text_of(o, "interface"));
		for (size_t c = 0; c < ARRAY_SIZE(columns); c++)
			printf("%-12lld", (long long)number_of(o, columns[c].key));
		putchar('\n');
	}
}

/* as "ethtool -S" prints the counters of a driver */
static void print_interface(struct json_object *o)
{
	printf("%s %s: %s, MTU %lld\n", text_of(o, "node"), text_of(o, "interface"), text_of(o, "mac"),
	       (long long)number_of(o, "mtu"));
	json_object_object_foreach (o, key, value)
		if (json_object_is_type(value, json_type_int) && strcmp(key, "mtu"))
			printf("     %s: %lld\n", key, (long long)json_object_get_int64(value));
}

/* Return: exit status */
static int show(const struct eth_args *args, const char *dir)
{
	struct json_object *list = ask(dir, args->node);

	if (!list)
		return EXIT_FAILURE;
	if (args->common.json)
		print_json(list);
	else if (!count_of(list))
		complain("no Ethernet interface: 'softib up --link-layer=ethernet --net=node' gives "
			 "nodes one");
	else if (!args->node)
		print_table(list);
	for (size_t i = 0; args->node && !args->common.json && i < count_of(list); i++)
		print_interface(item_of(list, i));
	json_object_put(list);
	return EXIT_SUCCESS;
}

int cmd_eth(int argc, char **argv)
{
	static const struct argp_child children[] = {
		{.argp = &argp_fabric}, {.argp = &argp_json}, {0}};
	static const struct argp argp = {
		.parser = parse_eth,
		.children = children,
		.args_doc = "[NODE]",
		.doc = "Show the Ethernet interfaces of nodes (eth0, --link-layer=ethernet --net=node), "
		       "with NODE all that softibd has counted there, as ethtool -S shows it for a "
		       "network adapter.\v"
		       "Examples:\n"
		       "  softib eth\n"
		       "  softib eth n1\n"
		       "  softib exec n1 -- ip link set eth0 mtu 9000\n"};
	struct eth_args args = {.node = NULL};
	char dir[PATH_MAX];

	argp_parse(&argp, argc, argv, 0, NULL, &args);
	return place_choose(args.common.fabric, dir) ? EXIT_FAILURE : show(&args, dir);
}
