/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* softib pair: a server on one node, its client on another. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pair.h"

#define PLACEHOLDER "{}"

struct pair_args {
	struct common common;
	const char *nodes[2]; /* NULL: the first two */
	char **words;	      /* the command, or the server's, "--" and the client's */
	struct pair pair;
};

/* [NODE NODE] -- COMMAND, or a COMMAND alone; @words ends with NULL */
static void split_words(struct pair_args *args, char **words, struct argp_state *state)
{
	bool quoted = state->quoted && words - state->argv >= state->quoted;

	args->words = words;
	if (quoted || !words[0] || !words[1])
		return;
	if (!strcmp(words[1], "--"))
		argp_error(state,
			   "one node is not enough: name two, or none for the first two");
	if (!words[2] || strcmp(words[2], "--"))
		return;
	args->nodes[0] = words[0];
	args->nodes[1] = words[1];
	args->words = words + 3;
}

static error_t parse_pair(int key, char *arg, struct argp_state *state)
{
	struct pair_args *args = state->input;
	char *end;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &args->common;
		return 0;
	case 'r':
		args->pair.ready_text = arg;
		return 0;
	case 'w':
		args->pair.no_wait = true;
		return 0;
	case 'e':
		args->pair.end_server = true;
		return 0;
	case 'q':
		args->pair.quiet = true;
		return 0;
	case KEY_NET:
		args->pair.server.at.net = args->pair.client.at.net =
			node_parse_net(state, arg);
		return 0;
	case 'D':
		args->pair.server.at.devices = args->pair.client.at.devices = true;
		return 0;
	case 'S':
		args->pair.server.at.sdp = args->pair.client.at.sdp = true;
		return 0;
	case 'N':
		args->pair.server.at.no_namespace = args->pair.client.at.no_namespace =
			true;
		return 0;
	case 'T':
		errno = 0;
		args->pair.timeout_s = strtol(arg, &end, 10);
		if (errno || *end || end == arg || args->pair.timeout_s < 0 ||
		    args->pair.timeout_s > 86400)
			argp_error(state, "--timeout takes 0 to 86400 seconds, not '%s'",
				   arg);
		return 0;
	case ARGP_KEY_ARG:
		split_words(args, state->argv + state->next - 1, state);
		state->next = state->argc;
		return 0;
	case ARGP_KEY_END:
		if (args->pair.server.at.net == NET_NODE && args->pair.server.at.no_namespace)
			argp_error(state, ERR_NET);
		if (!args->words || !args->words[0])
			argp_error(state, "which program? For example: softib pair -- "
					  "ib_write_bw -a");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* --- the two commands ------------------------------------------------------------ */

/* @word with each "{}" replaced by the server's address. Return: the caller's */
static char *put_address(const char *word, const char *address, bool *found)
{
	const char *at;
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);

	while (out && (at = strstr(word, PLACEHOLDER))) {
		fprintf(out, "%.*s%s", (int)(at - word), word, address);
		word = at + strlen(PLACEHOLDER);
		*found = true;
	}
	if (!out)
		return NULL;
	fputs(word, out);
	return fclose(out) ? NULL : text;
}

static size_t count_words(char **words)
{
	size_t n = 0;

	while (words[n])
		n++;
	return n;
}

/* The argv of one of the two. @append: the address behind the last word, unless a
 * word has a place for it. Return: 0; -ENOMEM */
static int make_command(struct pair_side *side, char **words, const char *address, bool append)
{
	size_t n = count_words(words);
	bool placed = false;

	side->argv = calloc(n + 2, sizeof(char *));
	if (!side->argv)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		side->argv[i] = put_address(words[i], address, &placed);
		if (!side->argv[i])
			return -ENOMEM;
	}
	if (append && !placed)
		side->argv[n] = strdup(address);
	return append && !placed && !side->argv[n] ? -ENOMEM : 0;
}

static int make_commands(struct pair *pair, char **words)
{
	char **client = words, **second;

	for (second = words; *second && strcmp(*second, "--"); second++)
		;
	if (*second) {
		*second = NULL; /* the server's words end here */
		client = second + 1;
	}
	return make_command(&pair->server, words, pair->server.at.address, false) ||
			       make_command(&pair->client, client, pair->server.at.address, true)
		       ? -ENOMEM
		       : 0;
}

static void free_command(struct pair_side *side)
{
	for (char **word = side->argv; word && *word; word++)
		free(*word);
	free(side->argv);
}

/* --- the nodes -----------------------------------------------------------------------
 */

/* Return: 0; -1 (printed) */
static int find_nodes(struct pair_args *args)
{
	struct pair_side *sides[] = {&args->pair.server, &args->pair.client};
	struct node_place *at = &args->pair.server.at;

	if (place_choose(args->common.fabric, at->dir))
		return -1;
	strcpy(args->pair.client.at.dir, at->dir);
	for (int i = 0; i < 2; i++)
		if (args->nodes[i] ? node_find(&sides[i]->at, args->nodes[i])
				   : node_nth(&sides[i]->at, (size_t)i))
			return -1;
	return 0;
}

static const struct argp_option pair_options[] = {
	{"ready", 'r', "TEXT", 0,
	 "start the client when the server has printed TEXT; default: when it listens on "
	 "a TCP or SDP port",
	 0},
	{"no-wait", 'w', NULL, 0, "start the client at once", 0},
	{"end-server", 'e', NULL, 0,
	 "end the server when the client has ended, for a server that never ends", 0},
	{"quiet", 'q', NULL, 0,
	 "show the server's output only if the server or the client fails", 0},
	{"timeout", 'T', "SECONDS", 0,
	 "how long to wait for the server to be ready; default 120, 0 for ever", 0},
	{"net", KEY_NET, "NET", 0, OPTION_NET ", in place of the fabric's setting", 0},
	{"sdp", 'S', NULL, 0, OPTION_SDP, 0},
	{"no-namespace", 'N', NULL, 0,
	 "show the machine's own /sys and /dev; ibstat does not work then", 0},
	{"devices", 'D', NULL, 0,
	 "provide device files in /dev/infiniband for programs that check for them, such as UCX",
	 0},
	{0},
};

static const char pair_doc[] =
	"Run COMMAND on one node (n1) as the server. When it listens, run COMMAND on "
	"another node (n2) as the client, with the server's address as a further argument. "
	"A second COMMAND behind another '--' is the client instead; '{}' in its arguments "
	"is replaced by the address. The client has the standard input and output; the "
	"server's output goes to standard error, each line prefixed with the node's name. "
	"The exit status is the higher of the two. When no fabric is up, the pair runs on "
	"a private one of two nodes.\v"
	"Examples:\n"
	"  softib pair -- ib_write_bw -a\n"
	"  softib pair --fabric lab n3 n7 -- ib_send_lat -s 4096\n"
	"  softib pair --devices -- ucx_perftest -t tag_lat\n"
	"  softib pair --sdp --end-server -- iperf3 -s -- iperf3 -c {}\n"
	"  softib pair --end-server -- ./server --port 7000 -- ./client --to {}:7000\n"
	"  softib run --topology fattree:2,4 -- softib pair n1 n4 -- ibv_rc_pingpong\n";

int cmd_pair(int argc, char **argv)
{
	static const struct argp_child children[] = {{.argp = &argp_fabric}, {0}};
	static const struct argp argp = {
		.options = pair_options,
		.parser = parse_pair,
		.children = children,
		.args_doc =
			"[NODE NODE] -- COMMAND [ARGUMENT...] [-- COMMAND [ARGUMENT...]]",
		.doc = pair_doc};
	struct pair_args args = {.pair.timeout_s = 120};
	int status = EXIT_FAILURE;

	argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &args);
	if (!place_is_there(args.common.fabric))
		return place_run_private("pair", argc, argv);
	if (find_nodes(&args))
		return EXIT_FAILURE;
	if (args.pair.server.at.devices)
		node_say_ucx(args.words);
	if (make_commands(&args.pair, args.words))
		complain("out of memory");
	else
		status = pair_run(&args.pair);
	free_command(&args.pair.server);
	free_command(&args.pair.client);
	return status;
}
