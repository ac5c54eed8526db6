/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* softib sdp: what can be done to the SDP connections of a node. */
#include <stdlib.h>
#include <string.h>

#include "softib.h"

struct sdp_args {
	struct common common;
	const char *verb, *node;
};

static error_t parse_sdp(int key, char *arg, struct argp_state *state)
{
	struct sdp_args *args = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = state->child_inputs[1] = &args->common;
		return 0;
	case ARGP_KEY_ARG:
		if (state->arg_num == 0)
			args->verb = arg;
		else if (state->arg_num == 1)
			args->node = arg;
		else
			argp_error(state, "'%s': one node is enough", arg);
		return 0;
	case ARGP_KEY_END:
		if (!args->verb || strcmp(args->verb, "move") || !args->node)
			argp_error(state, "move the connections of which node? For example: softib sdp move n1");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int cmd_sdp(int argc, char **argv)
{
	static const struct argp_child children[] = {
		{.argp = &argp_fabric}, {.argp = &argp_json}, {0}};
	static const struct argp argp = {
		.parser = parse_sdp,
		.children = children,
		.args_doc = "move NODE",
		.doc = "Move the streams of the node's SDP connections to new connections, by paths "
		       "that the subnet administrator gives now. Programs notice nothing. A connection "
		       "whose peer does not agree within 10 seconds is reset.\v"
		       "Example:\n"
		       "  softib sdp move n1\n"};
	struct sdp_args args = {0};
	struct json_object *req = request("sdp_move"), *answer;
	long long n;

	argp_parse(&argp, argc, argv, 0, NULL, &args);
	request_text(req, "node", args.node);
	answer = client_ask(&args.common, req);
	if (!answer)
		return EXIT_FAILURE;
	n = (long long)number_of(answer, "connections");
	if (args.common.json)
		print_json(answer);
	else
		printf("%lld %s to move\n", n, n == 1 ? "connection begins" : "connections begin");
	json_object_put(answer);
	return EXIT_SUCCESS;
}
