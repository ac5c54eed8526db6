/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* softib path: what the subnet manager says of the way between two nodes, and
 * the links that packets take on it. */
#include <stdlib.h>

#include "softib.h"

struct path_args {
	struct common common;
	char *from;
	long port;
	const char *to;
};

static error_t parse_path(int key, char *arg, struct argp_state *state)
{
	struct path_args *args = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = state->child_inputs[1] = &args->common;
		return 0;
	case ARGP_KEY_ARG:
		if (state->arg_num == 0)
			args->port = node_split_port(args->from = arg, 1);
		else if (state->arg_num == 1)
			args->to = arg;
		else
			argp_error(state, "'%s': two nodes are enough", arg);
		return 0;
	case ARGP_KEY_END:
		if (!args->to)
			argp_error(state, "from which node to which? For example: softib path n1 n2");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static void print_path(struct json_object *path)
{
	struct json_object *links = member_of(path, "links");

	printf("%s:%lld to %s: LID %lld to %lld, SL %lld, P_Key %s, MTU %lld, %lld Gb/s\n",
	       text_of(path, "from"), (long long)number_of(path, "port"), text_of(path, "to"),
	       (long long)number_of(path, "slid"), (long long)number_of(path, "dlid"),
	       (long long)number_of(path, "sl"), text_of(path, "pkey"),
	       (long long)number_of(path, "mtu_bytes"),
	       (long long)number_of(path, "rate_mbps") / 1000);
	for (size_t i = 0; i < count_of(links); i++) {
		struct json_object *link = item_of(links, i);

		printf("  %s:%lld -- %s:%lld  VL %lld\n", text_of(link, "node"),
		       (long long)number_of(link, "port"), text_of(link, "peer"),
		       (long long)number_of(link, "peer_port"), (long long)number_of(link, "vl"));
	}
}

int cmd_path(int argc, char **argv)
{
	static const struct argp_child children[] = {
		{.argp = &argp_fabric}, {.argp = &argp_json}, {0}};
	static const struct argp argp = {
		.parser = parse_path,
		.children = children,
		.args_doc = "NODE[:PORT] NODE",
		.doc = "Show the path from an adapter's port (default 1) to another node: the path "
		       "record that the subnet administrator returns, and the links that packets "
		       "take according to the current forwarding tables. The exit status is 1 when "
		       "packets do not arrive.\v"
		       "Examples:\n"
		       "  softib path n1 n7\n"
		       "  softib path --fabric lab n1:2 s3 --json\n"};
	struct path_args args = {0};
	struct json_object *req = request("path"), *answer;
	bool lost;

	argp_parse(&argp, argc, argv, 0, NULL, &args);
	request_text(req, "node", args.from);
	request_number(req, "port", args.port);
	request_text(req, "to", args.to);
	answer = client_ask(&args.common, req);
	if (!answer)
		return EXIT_FAILURE;
	lost = member_of(answer, "lost");
	if (args.common.json)
		print_json(answer);
	else
		print_path(answer);
	if (lost)
		complain("packets are lost at %s:%lld: %s", text_of(answer, "lost_at"),
			 (long long)number_of(answer, "lost_port"), text_of(answer, "lost"));
	json_object_put(answer);
	return lost ? EXIT_FAILURE : EXIT_SUCCESS;
}
