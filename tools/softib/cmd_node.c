/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What is done on a fabric that is up: exec, wait, link. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "everywhere.h"
#include "softib.h"

/* Argp hands a child parser no input of its own unless told */
static error_t hand_down(int key, struct argp_state *state, struct common *common,
			 int children)
{
	if (key != ARGP_KEY_INIT)
		return ARGP_ERR_UNKNOWN;
	for (int i = 0; i < children; i++)
		state->child_inputs[i] = common;
	return 0;
}

/* --- exec -------------------------------------------------------------------- */

struct exec_args {
	struct common common;
	const char *node, *ranks;
	char **command;
	bool all, no_namespace, devices, sdp;
	enum node_net net;
};

static error_t parse_exec(int key, char *arg, struct argp_state *state)
{
	struct exec_args *args = state->input;
	bool no_node;

	switch (key) {
	case 'N':
		args->no_namespace = true;
		return 0;
	case 'D':
		args->devices = true;
		return 0;
	case KEY_NET:
		args->net = node_parse_net(state, arg);
		return 0;
	case 'S':
		args->sdp = true;
		return 0;
	case 'a':
		args->all = true;
		return 0;
	case 'r':
		args->ranks = arg;
		return 0;
	case ARGP_KEY_ARG:
		no_node = args->ranks || args->all;
		args->command = state->argv + state->next - no_node;
		if (!no_node)
			args->node = arg;
		if (*args->command && !strcmp(*args->command, "--"))
			args->command++;
		state->next = state->argc;
		return 0;
	case ARGP_KEY_END:
		if (args->net == NET_NODE && args->no_namespace)
			argp_error(state, ERR_NET);
		if (args->all && args->ranks)
			argp_error(state, "--all is every node, --ranks is one: not both");
		if (!args->command || !*args->command)
			argp_error(state, "expected a node and a command, for example: "
					  "softib exec n2 -- ibv_devinfo");
		return 0;
	default:
		return hand_down(key, state, &args->common, 1);
	}
}

int cmd_exec(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"no-namespace", 'N', NULL, 0,
		 "show the machine's own /sys and /dev; ibstat does not work then", 0},
		{"devices", 'D', NULL, 0,
		 "provide device files in /dev/infiniband for programs that check for them, such as UCX",
		 0},
		{"sdp", 'S', NULL, 0, OPTION_SDP, 0},
		{"all", 'a', NULL, 0,
		 "instead of NODE: run on every node at once; each line of output is prefixed "
		 "with the name of its node",
		 0},
		{"net", KEY_NET, "NET", 0, OPTION_NET ", in place of the fabric's setting", 0},
		{"ranks", 'r', "NODES", 0,
		 "instead of NODE: distribute MPI ranks over NODES, for example n1,n2 or "
		 "all, and run on the node of this process's rank",
		 0},
		{0},
	};
	static const struct argp_child children[] = {{.argp = &argp_fabric}, {0}};
	static const struct argp argp = {
		.options = options,
		.parser = parse_exec,
		.children = children,
		.args_doc = "NODE -- COMMAND [ARGUMENT...]\n--all -- COMMAND [ARGUMENT...]\n--ranks=NODES -- COMMAND "
			    "[ARGUMENT...]",
		.doc = "Run COMMAND on NODE (a name such as n2, a description, a GUID). "
		       "The exit status is COMMAND's, with --all the highest one.\v"
		       "Examples:\n"
		       "  softib exec n2 -- ibv_devinfo -v\n"
		       "  softib exec --fabric lab n1 -- ibnetdiscover\n"
		       "  softib exec --devices n1 -- ucx_info -d\n"
		       "  softib exec --sdp n1 -- python3 -m http.server\n"
		       "  softib exec --all -- ibstat -p\n"
		       "  mpiexec -n 4 softib exec --devices --ranks=n1,n2 -- "
		       "./program\n"};
	struct exec_args args = {0};
	struct node_place at = {.node = ""};

	argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &args);
	at.net = args.net;
	at.no_namespace = args.no_namespace;
	at.devices = args.devices;
	at.sdp = args.sdp;
	if (place_choose(args.common.fabric, at.dir))
		return EXIT_FAILURE;
	if (args.devices)
		node_say_ucx(args.command);
	if (args.all)
		return everywhere_run(&at, args.command);
	if (args.ranks ? node_find_by_rank(&at, args.ranks) : node_find(&at, args.node))
		return EXIT_FAILURE;
	return node_enter(&at) ? EXIT_FAILURE : node_exec(args.command);
}

/* --- wait -------------------------------------------------------------------- */

struct wait_args {
	struct common common;
	long timeout_s;
};

static error_t parse_wait(int key, char *arg, struct argp_state *state)
{
	struct wait_args *args = state->input;
	char *end;

	if (key != 'T')
		return hand_down(key, state, &args->common, 2);
	args->timeout_s = strtol(arg, &end, 10);
	if (*end || end == arg || args->timeout_s < 0 || args->timeout_s > 86400)
		argp_error(state, "--timeout takes 0 to 86400 seconds, not '%s'", arg);
	return 0;
}

int cmd_wait(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"timeout", 'T', "SECONDS", 0, "give up after SECONDS; default 120, 0 never", 0},
		{0},
	};
	static const struct argp_child children[] = {
		{.argp = &argp_fabric}, {.argp = &argp_json}, {0}};
	static const struct argp argp = {
		.options = options,
		.parser = parse_wait,
		.children = children,
		.doc = "Wait until every port with a plugged cable is Active, including ports "
		       "whose cable a fault rule has unplugged for a limited time.\v"
		       "Examples:\n"
		       "  softib link s1:2 up && softib wait\n"};
	struct wait_args args = {.timeout_s = 120};
	struct json_object *req = request("wait"), *answer;

	argp_parse(&argp, argc, argv, 0, NULL, &args);
	request_text(req, "until", "active");
	request_number(req, "timeout_ms", args.timeout_s * 1000);
	answer = client_ask(&args.common, req);
	if (!answer)
		return EXIT_FAILURE;
	if (args.common.json)
		print_json(answer);
	json_object_put(answer);
	return EXIT_SUCCESS;
}

/* --- link --------------------------------------------------------------------- */

struct link_args {
	struct common common;
	char *node;
	long port;
	const char *state;
};

static error_t parse_link(int key, char *arg, struct argp_state *state)
{
	struct link_args *args = state->input;

	switch (key) {
	case ARGP_KEY_ARG:
		if (state->arg_num == 0)
			parse_node_port(state, arg, &args->node, &args->port);
		else if (state->arg_num == 1 &&
			 (!strcmp(arg, "up") || !strcmp(arg, "down")))
			args->state = arg;
		else
			argp_error(state, "'%s': expected up or down", arg);
		return 0;
	case ARGP_KEY_END:
		if (!args->state)
			argp_error(state, "expected a port and up or down, for example: "
					  "softib link s1:2 down");
		return 0;
	default:
		return hand_down(key, state, &args->common, 2);
	}
}

int cmd_link(int argc, char **argv)
{
	static const struct argp_child children[] = {
		{.argp = &argp_fabric}, {.argp = &argp_json}, {0}};
	static const struct argp argp = {
		.parser = parse_link,
		.children = children,
		.args_doc = "NODE:PORT up|down",
		.doc = "Unplug the cable at a port (down), or plug it in again (up).\v"
		       "Examples:\n"
		       "  softib link n1:1 down\n"
		       "  softib link --fabric lab s3:17 up\n"};
	struct link_args args = {0};
	struct json_object *req = request("link"), *answer;

	argp_parse(&argp, argc, argv, 0, NULL, &args);
	request_text(req, "node", args.node);
	request_number(req, "port", args.port);
	request_text(req, "state", args.state);
	answer = client_ask(&args.common, req);
	if (!answer)
		return EXIT_FAILURE;
	if (args.common.json)
		print_json(answer);
	else
		printf("%s:%lld -- %s:%lld is %s\n", text_of(answer, "node"),
		       (long long)number_of(answer, "port"), text_of(answer, "peer"),
		       (long long)number_of(answer, "peer_port"),
		       !strcmp(args.state, "up") ? "plugged" : "pulled");
	json_object_put(answer);
	return EXIT_SUCCESS;
}
