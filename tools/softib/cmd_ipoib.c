/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* softib ipoib: how the IP interfaces of nodes are; and those of further partitions. */
#include <stdlib.h>
#include <string.h>

#include "base/types.h"
#include "netdev.h"
#include "softib.h"
#include "wire/packet.h"

enum action { SHOW, CREATE, DELETE, CONNECTED, DATAGRAM, MODERATE };

#define KEY_USECS  0x200
#define KEY_FRAMES 0x201
#define NO_NUMBER  (-1)

struct ipoib_args {
	struct common common;
	const char *node;
	long port;
	enum action action;
	unsigned pkey;
	long rx_usecs, rx_frames; /* of MODERATE, or NO_NUMBER */
};

static enum action parse_action(struct argp_state *state, const char *word)
{
	static const char *const words[] = {[CREATE] = "create",
					    [DELETE] = "delete",
					    [CONNECTED] = "connected",
					    [DATAGRAM] = "datagram",
					    [MODERATE] = "moderate"};

	for (enum action a = CREATE; a <= MODERATE; a++)
		if (!strcmp(word, words[a]))
			return a;
	argp_error(state, "behind the node comes create, delete, connected, datagram or moderate, "
		   "not '%s'", word);
	return SHOW;
}

/* As in Linux's create_child the bit of full membership is set whatever is given. */
static unsigned parse_pkey(struct argp_state *state, const char *word, enum action action)
{
	char *end;
	unsigned long n = strtoul(word, &end, 0);

	if (*end || word[0] == '-' || n > 0xffff || !wire_pkey_is_valid((uint16_t)n))
		argp_error(state, "a P_Key is a number such as 0x8001, not '%s'", word);
	n |= WIRE_PKEY_FULL;
	if (n == WIRE_PKEY_DEFAULT && action <= DELETE)
		argp_error(state, "0x%lx is the partition of ib0 itself, which stays", n);
	return (unsigned)n;
}

static long parse_number(struct argp_state *state, const char *word)
{
	char *end;
	unsigned long n = strtoul(word, &end, 10);

	if (!*word || *end || word[0] == '-' || n > UINT16_MAX)
		argp_error(state, "--rx-usecs and --rx-frames take a number up to 65535, not '%s'",
			   word);
	return (long)n;
}

static void check_words(struct ipoib_args *args, struct argp_state *state)
{
	bool numbers = args->rx_usecs != NO_NUMBER || args->rx_frames != NO_NUMBER;

	if (args->action > DELETE && !args->pkey)
		args->pkey = WIRE_PKEY_DEFAULT;
	if (args->action && !args->pkey)
		argp_error(state, "which partition? For example: softib ipoib n1 create 0x8001");
	if (numbers != (args->action == MODERATE))
		argp_error(state, "moderate comes with --rx-usecs or --rx-frames, and they with it. "
			   "For example: softib ipoib n1 moderate --rx-usecs 50 --rx-frames 16");
}

static void parse_word(struct ipoib_args *args, char *word, struct argp_state *state)
{
	if (state->arg_num == 0) {
		args->port = node_split_port(word, 1);
		args->node = word;
	} else if (state->arg_num == 1) {
		args->action = parse_action(state, word);
	} else if (state->arg_num == 2) {
		args->pkey = parse_pkey(state, word, args->action);
	} else {
		argp_error(state, "one partition only, not '%s' as well", word);
	}
}

static error_t parse_ipoib(int key, char *arg, struct argp_state *state)
{
	struct ipoib_args *args = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = state->child_inputs[1] = &args->common;
		return 0;
	case ARGP_KEY_ARG:
		parse_word(args, arg, state);
		return 0;
	case KEY_USECS:
		args->rx_usecs = parse_number(state, arg);
		return 0;
	case KEY_FRAMES:
		args->rx_frames = parse_number(state, arg);
		return 0;
	case ARGP_KEY_END:
		check_words(args, state);
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

/* Return: the interface of a port in a partition, in @list; NULL: it has none */
static struct json_object *add_interface(struct json_object *list, const char *dir,
					 const char *node, int64_t port, int64_t pkey)
{
	struct json_object *req = request("ipoib"), *answer;

	request_text(req, "node", node);
	request_number(req, "port", port);
	request_number(req, "pkey", pkey);
	answer = client_call_quiet(dir, req);
	if (!answer || member_of(answer, "error")) {
		json_object_put(answer);
		return NULL;
	}
	request_text(answer, "node", node);
	json_object_array_add(list, answer);
	return answer;
}

/* The interfaces of one port, if it has any, into @list; @planned is the row among the
 * addresses of @node that the first one has. */
static void add_interfaces(struct json_object *list, const char *dir,
			   struct json_object *node, struct json_object *planned)
{
	static const char *const planned_keys[] = {"interface", "port", "ipv4", "ipv6",
						   "link_local"};
	const char *name = text_of(planned, "adapter"), *parent = text_of(planned, "interface");
	int64_t port = number_of(planned, "port");
	struct json_object *first, *child, *pkeys;

	first = add_interface(list, dir, name, port, WIRE_PKEY_DEFAULT);
	for (size_t i = 0; first && i < ARRAY_SIZE(planned_keys); i++)
		copy_member(first, planned, planned_keys[i]);
	pkeys = member_of(first, "pkeys");
	for (size_t i = 0; i < count_of(pkeys); i++) {
		int64_t pkey = json_object_get_int64(item_of(pkeys, i));
		char interface[32];

		if (pkey == WIRE_PKEY_DEFAULT)
			continue;
		child = add_interface(list, dir, name, port, pkey);
		if (!child)
			continue; /* just deleted */
		node_child_name(interface, parent, (unsigned)pkey);
		request_text(child, "interface", interface);
		request_number(child, "port", port);
	}
}

/* Return: of all nodes, or of @name alone; the caller's; NULL (printed) */
static struct json_object *ask(const char *dir, const char *name)
{
	struct json_object *req = request("nodes"), *answer, *list, *nodes;

	if (name)
		request_host(req, name);
	answer = client_call(dir, req);
	if (!answer)
		return NULL;
	list = json_object_new_array();
	nodes = member_of(answer, "nodes");
	for (size_t i = 0; i < count_of(nodes); i++) {
		struct json_object *planned = member_of(item_of(nodes, i), "addresses");

		if (strcmp(text_of(item_of(nodes, i), "host"), text_of(item_of(nodes, i), "name")))
			continue; /* the node's first adapter lists those of all */
		for (size_t p = 0; p < count_of(planned); p++)
			add_interfaces(list, dir, item_of(nodes, i), item_of(planned, p));
	}
	json_object_put(answer);
	return list;
}

/* --- for people -------------------------------------------------------------- */

/* Return: the interface's first IPv4 address, or else its first one */
static const char *first_address(struct json_object *o)
{
	struct json_object *list = member_of(o, "addresses");
	const char *first = json_object_get_string(item_of(list, 0));

	for (size_t i = 0; i < count_of(list); i++) {
		const char *text = json_object_get_string(item_of(list, i));

		if (!strchr(text, ':'))
			return text;
	}
	return first ? first : "";
}

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
		       first_address(o));
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
		struct json_object *row = item_of(list, i);
		const char *link = text_of(row, "link");
		char how[128] = "not resolved";

		if (member_of(row, "lid"))
			snprintf(how, sizeof(how), "%s  lid %lld, SL %lld%s", link,
				 (long long)number_of(row, "lid"), (long long)number_of(row, "sl"),
				 json_object_get_boolean(member_of(row, "connected")) ?
					 ", connected" : "");
		else if (*link)
			snprintf(how, sizeof(how), "%s  no path yet", link);
		print_row(i ? "" : "neighbours", text_of(row, "ip"), how);
	}
}

static void print_events(struct json_object *o)
{
	char what[96], how[64] = "";

	snprintf(what, sizeof(what), "%lld, of %lld completions", (long long)number_of(o, "events"),
		 (long long)number_of(o, "completions"));
	if (number_of(o, "rx_usecs") && number_of(o, "rx_frames"))
		snprintf(how, sizeof(how), "rx-usecs %lld, rx-frames %lld",
			 (long long)number_of(o, "rx_usecs"), (long long)number_of(o, "rx_frames"));
	print_row("events", what, how);
}

static void print_conflicts(struct json_object *list)
{
	for (size_t i = 0; i < count_of(list); i++) {
		struct json_object *row = item_of(list, i);
		const char *link = text_of(row, "link");
		char how[128];

		snprintf(how, sizeof(how), "%s%s%s",
			 json_object_get_boolean(member_of(row, "duplicate")) ?
				 "duplicate, not used here" :
				 "used here, claimed by another",
			 *link ? ": " : "", link);
		print_row(i ? "" : "conflicts", text_of(row, "ip"), how);
	}
}

static void print_interface(struct json_object *o)
{
	struct json_object *addresses = member_of(o, "addresses");
	char pkey[16], mtu[32], connections[32];

	printf("%s %s:", text_of(o, "node"), text_of(o, "interface"));
	for (size_t i = 0; i < count_of(addresses); i++)
		printf("%s %s", i ? "," : "",
		       json_object_get_string(item_of(addresses, i)));
	putchar('\n');
	snprintf(pkey, sizeof(pkey), "0x%04llx", (long long)number_of(o, "pkey"));
	print_row("link", text_of(o, "link"), "");
	print_row("partition", pkey, "");
	snprintf(mtu, sizeof(mtu), "MTU %lld", (long long)number_of(o, "mtu"));
	print_row("mode", text_of(o, "mode"), mtu);
	snprintf(connections, sizeof(connections), "%lld", (long long)number_of(o, "connections"));
	if (number_of(o, "connections"))
		print_row("connections", connections, "");
	print_counts(o, "received", "rx");
	print_counts(o, "sent", "tx");
	print_events(o);
	print_conflicts(member_of(o, "address_conflicts"));
	print_groups(member_of(o, "groups"));
	print_neighbours(member_of(o, "neighbours"));
}

/* --- doing ------------------------------------------------------------------- */

static int moderate(const struct node_place *at, const struct ipoib_args *args)
{
	struct json_object *req = request("ipoib_moderation"), *answer;

	request_text(req, "node", at->adapter);
	request_number(req, "port", args->port);
	request_number(req, "pkey", args->pkey);
	if (args->rx_usecs != NO_NUMBER)
		request_number(req, "rx_usecs", args->rx_usecs);
	if (args->rx_frames != NO_NUMBER)
		request_number(req, "rx_frames", args->rx_frames);
	answer = client_call(at->dir, req);
	json_object_put(answer);
	return answer ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Return: exit status */
static int act(const struct ipoib_args *args, const char *dir)
{
	static const enum node_child_action actions[] = {
		[CREATE] = NODE_CHILD_CREATE, [DELETE] = NODE_CHILD_DELETE,
		[CONNECTED] = NODE_CHILD_CONNECTED, [DATAGRAM] = NODE_CHILD_DATAGRAM};
	struct node_place at = {.net = NET_OF_FABRIC};
	const struct node_child child = {
		.at = &at, .port = (unsigned)args->port, .pkey = args->pkey};

	snprintf(at.dir, sizeof(at.dir), "%s", dir);
	if (node_find(&at, args->node))
		return EXIT_FAILURE;
	if (at.net != NET_NODE)
		return complain("%s has no network of its own, and so no IP interfaces: "
				"'softib up --net=node' gives nodes one",
				at.node);
	if (args->action == MODERATE)
		return moderate(&at, args);
	return node_child_act(&child, actions[args->action]) ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Return: exit status */
static int show(const struct ipoib_args *args, const char *dir)
{
	struct json_object *list = ask(dir, args->node);
	bool detailed = args->node && !args->common.json;

	if (!list)
		return EXIT_FAILURE;
	if (args->common.json)
		print_json(list);
	else if (!count_of(list))
		complain("no node of this fabric has an IP interface: 'softib up --net=node' "
			 "creates them");
	else if (!args->node)
		print_table(list);
	for (size_t i = 0; detailed && i < count_of(list); i++)
		print_interface(item_of(list, i));
	json_object_put(list);
	return EXIT_SUCCESS;
}

int cmd_ipoib(int argc, char **argv)
{
	static const struct argp_child children[] = {
		{.argp = &argp_fabric}, {.argp = &argp_json}, {0}};
	static const struct argp_option options[] = {
		{"rx-usecs", KEY_USECS, "N", 0,
		 "with moderate: completions wait N microseconds for others; 0: they do not", 0},
		{"rx-frames", KEY_FRAMES, "N", 0,
		 "with moderate: they wait until there are N; 0: they do not", 0},
		{0}};
	static const struct argp argp = {
		.options = options,
		.parser = parse_ipoib,
		.children = children,
		.args_doc = "[NODE[:PORT] [create|delete PKEY|connected|datagram|moderate [PKEY]]]",
		.doc = "Show the IP interfaces of nodes (ib0, --net=node), with NODE its "
		       "link addresses, multicast groups and neighbours. create and "
		       "delete: the interface of a further partition that the port is a "
		       "member of, such as ib0.8001, which has no IPv4 address until "
		       "it is given one. connected and datagram: the mode of an "
		       "interface; connected mode has an MTU of 65520. moderate: how completions "
		       "of receives wait for others, as ethtool -C does it.\v"
		       "Examples:\n"
		       "  softib ipoib\n"
		       "  softib ipoib n3 --json\n"
		       "  softib ipoib n1 connected\n"
		       "  softib ipoib n1 moderate --rx-usecs 50 --rx-frames 16\n"
		       "  softib ipoib n1 create 0x8001\n"
		       "  softib exec n1 -- ip address add 10.2.0.1/16 dev ib0.8001\n"};
	struct ipoib_args args = {.port = 1, .rx_usecs = NO_NUMBER, .rx_frames = NO_NUMBER};
	char dir[PATH_MAX];

	argp_parse(&argp, argc, argv, 0, NULL, &args);
	if (place_choose(args.common.fabric, dir))
		return EXIT_FAILURE;
	return args.action ? act(&args, dir) : show(&args, dir);
}
