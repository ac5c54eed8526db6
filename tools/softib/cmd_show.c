/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What ports counted and what programs hold: counters, resource. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/types.h"
#include "softib.h"

static const struct argp_child common_children[] = {
	{.argp = &argp_fabric}, {.argp = &argp_json}, {0}};

static void print_title(const char *text, int width)
{
	paint("1", text, width);
}

/* --- counters ----------------------------------------------------------------------- */

#define PORT_ALL LONG_MIN /* none was named */

struct counters_args {
	struct common common;
	const char *node;
	long port;
};

static error_t parse_counters(int key, char *arg, struct argp_state *state)
{
	struct counters_args *args = state->input;
	char *colon, *end;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = state->child_inputs[1] = &args->common;
		return 0;
	case ARGP_KEY_ARG:
		if (state->arg_num)
			argp_error(state, "one node or port only, not '%s' as well", arg);
		args->node = arg;
		colon = strrchr(arg, ':');
		if (!colon || !colon[1])
			return 0;
		args->port = strtol(colon + 1, &end, 10);
		if (*end)
			args->port = PORT_ALL; /* a colon of the description's own */
		else
			*colon = '\0';
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* members that are traffic; whatever else is not 0 is printed by its name */
static const char *const traffic[] = {"xmit_bytes", "rcv_bytes", "xmit_packets",
				      "rcv_packets"};
static const char *const quiet[] = {"node",
				    "port",
				    "unicast_xmit_packets",
				    "unicast_rcv_packets",
				    "multicast_xmit_packets",
				    "multicast_rcv_packets"};

static bool is_in(const char *key, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(list[i], key))
			return true;
	return false;
}

static void print_counters(struct json_object *row)
{
	char port[96], text[16];
	const char *gap = "  ";

	snprintf(port, sizeof(port), "%s:%lld", text_of(row, "node"),
		 (long long)number_of(row, "port"));
	printf("%-12s", port);
	for (size_t i = 0; i < ARRAY_SIZE(traffic); i++) {
		uint64_t n = (uint64_t)number_of(row, traffic[i]);

		if (i < 2)
			printf("%12s", human_bytes(n, text));
		else
			printf("%14llu", (unsigned long long)n);
	}
	json_object_object_foreach (row, key, value) {
		if (is_in(key, traffic, ARRAY_SIZE(traffic)) ||
		    is_in(key, quiet, ARRAY_SIZE(quiet)) || !json_object_get_int64(value))
			continue;
		printf("%s", gap);
		snprintf(port, sizeof(port), "%s %lld", key,
			 (long long)json_object_get_int64(value));
		paint("33", port, 0);
		gap = ", ";
	}
	putchar('\n');
}

int cmd_counters(int argc, char **argv)
{
	static const struct argp argp = {
		.parser = parse_counters,
		.children = common_children,
		.args_doc = "[NODE[:PORT]]",
		.doc = "Show the ports' counters since their last reset, as perfquery does, but in bytes.\v"
		       "Examples:\n  softib counters\n  softib counters s1\n  softib counters n2:1 --json\n"};
	struct counters_args args = {.port = PORT_ALL};
	struct json_object *req = request("counters"), *answer, *list;

	argp_parse(&argp, argc, argv, 0, NULL, &args);
	if (args.node)
		request_text(req, "node", args.node);
	if (args.port != PORT_ALL)
		request_number(req, "port", args.port);
	answer = client_ask(&args.common, req);
	if (!answer)
		return EXIT_FAILURE;
	list = member_of(answer, "counters");
	if (args.common.json) {
		print_json(answer);
	} else {
		print_title("PORT", 12);
		print_title("        SENT    RECEIVED  PACKETS SENT      RECEIVED  OTHER",
			    0);
		putchar('\n');
		for (size_t i = 0; i < count_of(list); i++)
			print_counters(item_of(list, i));
	}
	json_object_put(answer);
	return EXIT_SUCCESS;
}

/* --- resource ------------------------------------------------------------------------ */

struct resource_args {
	struct common common;
	const char *node;
	bool show;
};

static error_t parse_resource(int key, char *arg, struct argp_state *state)
{
	struct resource_args *args = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = state->child_inputs[1] = &args->common;
		return 0;
	case ARGP_KEY_ARG:
		if (state->arg_num == 0 && !strcmp(arg, "show"))
			args->show = true;
		else if (state->arg_num == 1)
			args->node = arg;
		else
			argp_error(state, "'%s': expected 'show' and at most a node",
				   arg);
		return 0;
	case ARGP_KEY_END:
		if (!args->show)
			argp_error(state, "expected 'show', for example: softib resource show");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static void print_resource(struct json_object *row)
{
	printf("%-8s%-10s", text_of(row, "node"), text_of(row, "device"));
	paint("36", text_of(row, "type"), 10);
	printf("%-8lld%-10s%-9lld%-16s%s\n", (long long)number_of(row, "handle"),
	       text_of(row, "qpn"), (long long)number_of(row, "pid"),
	       text_of(row, "comm"), text_of(row, "details"));
}

int cmd_resource(int argc, char **argv)
{
	static const struct argp argp = {
		.parser = parse_resource,
		.children = common_children,
		.args_doc = "show [NODE]",
		.doc = "Show what programs, and softibd itself (pid 0), hold: contexts, protection "
		       "domains, queues and memory regions. Objects of a program vanish when it ends.\v"
		       "Examples:\n  softib resource show\n  softib resource show n2 --json\n"};
	struct resource_args args = {0};
	struct json_object *req = request("resources"), *list;

	argp_parse(&argp, argc, argv, 0, NULL, &args);
	if (args.node)
		request_text(req, "node", args.node);
	list = client_ask_list(&args.common, req, "resources");
	if (!list)
		return EXIT_FAILURE;
	if (args.common.json) {
		print_json(list);
	} else {
		print_title("NODE    DEVICE    TYPE      HANDLE  QPN       PID      OWNER           STATE",
			    0);
		putchar('\n');
		for (size_t i = 0; i < count_of(list); i++)
			print_resource(item_of(list, i));
	}
	json_object_put(list);
	return EXIT_SUCCESS;
}
