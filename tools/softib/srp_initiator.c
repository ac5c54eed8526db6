/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* softib srp discover, login, logout, list: the SRP initiators of nodes, whose disks programs
 * reach by NBD. */
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "verbs.h"

struct initiator_args {
	struct common common;
	const char *node, *target;
	const char *channels;
	const char *reconnect_delay, *fast_io_fail_tmo, *dev_loss_tmo;
};

enum { KEY_RECONNECT = 256, KEY_FAIL, KEY_LOSS };

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct initiator_args *args = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = state->child_inputs[1] = &args->common;
		return 0;
	case 'c':
		args->channels = arg;
		return 0;
	case KEY_RECONNECT:
		args->reconnect_delay = arg;
		return 0;
	case KEY_FAIL:
		args->fast_io_fail_tmo = arg;
		return 0;
	case KEY_LOSS:
		args->dev_loss_tmo = arg;
		return 0;
	case ARGP_KEY_ARG:
		if (state->arg_num > 1)
			argp_error(state, "'%s' is one word too many", arg);
		*(state->arg_num ? &args->target : &args->node) = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_child children[] = {
	{.argp = &argp_fabric}, {.argp = &argp_json}, {0}};

/* Return: the answer to @op about args->node and args->target, the caller's; NULL (printed) */
static struct json_object *ask(const char *op, const struct initiator_args *args)
{
	struct json_object *req = request(op);
	const struct {
		const char *key, *value;
	} words[] = {{"node", args->node},
		     {"target", args->target},
		     {"reconnect_delay", args->reconnect_delay},
		     {"fast_io_fail_tmo", args->fast_io_fail_tmo},
		     {"dev_loss_tmo", args->dev_loss_tmo}};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (words[i].value)
			request_text(req, words[i].key, words[i].value);
	if (args->channels)
		request_number(req, "channels", (uint64_t)strtoul(args->channels, NULL, 10));
	return client_ask(&args->common, req);
}

/* --- discover -------------------------------------------------------------------- */

static void print_found(struct json_object *target)
{
	paint("1", *text_of(target, "node") ? text_of(target, "node") : "(no node of the topology)",
	      0);
	printf(": I/O controller %s, service %s, %s, by %s\n", text_of(target, "ioc_guid"),
	       text_of(target, "service_id"), text_of(target, "description"),
	       text_of(target, "dgid"));
}

int srp_discover(int argc, char **argv)
{
	static const struct argp argp = {
		.parser = parse,
		.children = children,
		.args_doc = "NODE",
		.doc = "List the SRP targets that a node reaches, as device management describes "
		       "them.\v"
		       "Examples:\n"
		       "  softib srp discover n2\n"};
	static struct initiator_args args;
	struct json_object *answer, *list;

	argp_parse(&argp, argc, argv, 0, NULL, &args);
	if (!args.node || args.target) {
		complain("expected one node, as in 'softib srp discover n2'");
		return EX_USAGE;
	}
	answer = ask("srp_discover", &args);
	if (!answer)
		return EXIT_FAILURE;
	list = member_of(answer, "targets");
	if (args.common.json)
		print_json(list);
	else if (!count_of(list))
		puts("no targets; 'softib srp target add --help' shows how to add one");
	for (size_t i = 0; !args.common.json && i < count_of(list); i++)
		print_found(item_of(list, i));
	json_object_put(answer);
	return EXIT_SUCCESS;
}

/* --- login and list ---------------------------------------------------------------- */

static void print_unit(struct json_object *unit, const char *socket)
{
	char size[16];

	printf("  %10s  %s %s%s, %lld client%s\n", human_bytes((uint64_t)number_of(unit, "bytes"), size),
	       text_of(unit, "vendor"), text_of(unit, "product"),
	       json_object_get_boolean(member_of(unit, "read_only")) ? ", read-only" : "",
	       (long long)number_of(unit, "clients"), number_of(unit, "clients") == 1 ? "" : "s");
	printf("              nbd+unix:///%s?socket=%s\n", text_of(unit, "export"), socket);
}

static void print_channel(struct json_object *channel)
{
	printf("  channel from port %lld to %s: ", (long long)number_of(channel, "port"),
	       text_of(channel, "dgid"));
	if (json_object_get_boolean(member_of(channel, "up")))
		printf("up, %lld commands\n", (long long)number_of(channel, "commands"));
	else
		printf("down: %s\n", text_of(channel, "why"));
}

static void print_session(struct json_object *session)
{
	struct json_object *units = member_of(session, "units");
	struct json_object *channels = member_of(session, "channels");

	paint("1", text_of(session, "node"), 0);
	printf(" at %s: %s, I/O controller %s\n", text_of(session, "target"),
	       text_of(session, "state"), text_of(session, "ioc_guid"));
	for (size_t i = 0; i < count_of(units); i++)
		print_unit(item_of(units, i), text_of(session, "socket"));
	for (size_t i = 0; i < count_of(channels); i++)
		print_channel(item_of(channels, i));
}

int srp_login(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"channels", 'c', "NUMBER", 0,
		 "how many channels, up to 16; default: one for each pair of ports", 0},
		{"reconnect-delay", KEY_RECONNECT, "SECONDS", 0,
		 "between attempts to log in again, or off; default: 10", 0},
		{"fast-io-fail-tmo", KEY_FAIL, "SECONDS", 0,
		 "without a channel, after which commands fail instead of waiting, or off; "
		 "default: 15",
		 0},
		{"dev-loss-tmo", KEY_LOSS, "SECONDS", 0,
		 "without a channel, after which the target is given up, or off; default: 600", 0},
		{0},
	};
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.children = children,
		.args_doc = "NODE TARGET",
		.doc = "Log a node in to an SRP target: a node, or the GUID of an I/O "
		       "controller. Programs reach its units at the printed addresses, by "
		       "NBD.\v"
		       "Examples:\n"
		       "  softib srp login n2 n1\n"
		       "  softib srp login n2 n1 --channels 2 --reconnect-delay 1\n"};
	static struct initiator_args args;
	struct json_object *answer;

	argp_parse(&argp, argc, argv, 0, NULL, &args);
	if (!args.node || !args.target) {
		complain("expected a node and a target, as in 'softib srp login n2 n1'");
		return EX_USAGE;
	}
	answer = ask("srp_login", &args);
	if (!answer)
		return EXIT_FAILURE;
	if (args.common.json)
		print_json(answer);
	else
		print_session(answer);
	json_object_put(answer);
	return EXIT_SUCCESS;
}

int srp_list(int argc, char **argv)
{
	static const struct argp argp = {.parser = parse,
					 .children = children,
					 .args_doc = "[NODE]",
					 .doc = "List the targets that nodes are logged in to, "
						"their units and channels.\v"
						"Examples:\n"
						"  softib srp list\n"
						"  softib srp list n2 --json\n"};
	static struct initiator_args args;
	struct json_object *answer, *list;

	argp_parse(&argp, argc, argv, 0, NULL, &args);
	answer = ask("srp_sessions", &args);
	if (!answer)
		return EXIT_FAILURE;
	list = member_of(answer, "sessions");
	if (args.common.json)
		print_json(list);
	else if (!count_of(list))
		puts("no node is logged in; 'softib srp login --help' shows how");
	for (size_t i = 0; !args.common.json && i < count_of(list); i++)
		print_session(item_of(list, i));
	json_object_put(answer);
	return EXIT_SUCCESS;
}

/* --- logout --------------------------------------------------------------------------- */

int srp_logout(int argc, char **argv)
{
	static const struct argp argp = {
		.parser = parse,
		.children = children,
		.args_doc = "NODE TARGET",
		.doc = "Log a node out. Programs that use the units find their connections "
		       "closed.\v"
		       "Examples:\n"
		       "  softib srp logout n2 n1\n"};
	static struct initiator_args args;
	struct json_object *answer;

	argp_parse(&argp, argc, argv, 0, NULL, &args);
	if (!args.node || !args.target) {
		complain("expected a node and a target, as in 'softib srp logout n2 n1'");
		return EX_USAGE;
	}
	answer = ask("srp_logout", &args);
	json_object_put(answer);
	return answer ? EXIT_SUCCESS : EXIT_FAILURE;
}
