/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* softib: find the sub-command, hand over to it. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "abi/session.h"
#include "base/types.h"
#include "runtime/posix/log.h"
#include "softib.h"
#include "sysfs.h"

/* argp finds it by name, so it may not be hidden */
__attribute__((visibility("default"))) const char *argp_program_version = "softib " SOFTIB_VERSION;

static int cmd_help(int argc, char **argv);

static const struct command commands[] = {
	{"run", "run a command on a private fabric", cmd_run},
	{"up", "start a fabric in the background", cmd_up},
	{"down", "take a fabric down", cmd_down},
	{"list", "list the fabrics that are up", cmd_list},
	{"exec", "run a command on a node of a fabric", cmd_exec},
	{"pair", "run a server on one node and its client on another", cmd_pair},
	{"mpirun", "run an MPI program with its ranks on the nodes", cmd_mpirun},
	{"status", "show the state of a fabric", cmd_status},
	{"topo", "show or draw a topology", cmd_topo},
	{"path", "show the path between two nodes", cmd_path},
	{"eth", "show the Ethernet interfaces of nodes", cmd_eth},
	{"ipoib", "show the IP interfaces of nodes", cmd_ipoib},
	{"sdp", "move SDP connections to other paths", cmd_sdp},
	{"srp", "serve disks to other nodes by SRP", cmd_srp},
	{"wait", "wait until every cabled port is Active", cmd_wait},
	{"link", "plug or pull a cable", cmd_link},
	{"cable", "join a port to another fabric", cmd_cable},
	{"counters", "show the counters of ports", cmd_counters},
	{"resource", "show what programs hold", cmd_resource},
	{"capture", "capture packets for tshark", cmd_capture},
	{"mad", "show management datagrams live, decoded", cmd_mad},
	{"trace", "show what happens in the stacks of nodes, live", cmd_trace},
	{"fault", "inject faults into packets, links and nodes", cmd_fault},
	{"profile", "show and record what adapters report", cmd_profile},
	{"modprobe", "load a module into a node's stack", cmd_modprobe},
	{"rmmod", "unload a module", cmd_rmmod},
	{"lsmod", "list the modules of nodes", cmd_lsmod},
	{"new-module", "write a module that builds and loads", cmd_new_module},
	{"help", "explain a command", cmd_help},
	{"rsh", NULL, cmd_rsh}, /* of launchers, as softib-rsh */
	{"node-files", NULL, sysfs_serve}, /* our own use */
};

int complain(const char *fmt, ...)
{
	va_list ap;

	fputs("softib: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	return EXIT_FAILURE;
}

/* --- options that many commands have ----------------------------------- */

void parse_name(struct argp_state *state, const char *name)
{
	if (!place_name_is_good(name))
		argp_error(state,
			   "'%s' is no name for a fabric: letters, digits, '.', '_' and "
			   "'-', at most %d",
			   name, ABI_NAME_BYTES - 1);
}

void parse_node_port(struct argp_state *state, char *arg, char **node, long *port)
{
	char *colon = strrchr(arg, ':'), *end;

	*port = colon ? strtol(colon + 1, &end, 10) : 0;
	if (!colon || colon == arg || end == colon + 1 || *end || *port < 1)
		argp_error(state, "'%s' is no NODE:PORT, for example s1:2", arg);
	*colon = '\0';
	*node = arg;
}

static error_t parse_common(int key, char *arg, struct argp_state *state)
{
	struct common *common = state->input;

	switch (key) {
	case 'f':
		parse_name(state, arg);
		common->fabric = arg;
		return 0;
	case 'j':
		common->json = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option fabric_options[] = {
	{"fabric", 'f', "NAME", 0,
	 "the fabric of 'softib up NAME'; default: SOFTIB_DIR, else the only one", 0},
	{0},
};
static const struct argp_option json_options[] = {
	{"json", 'j', NULL, 0, "print JSON", 0},
	{0},
};
const struct argp argp_fabric = {.options = fabric_options, .parser = parse_common};
const struct argp argp_json = {.options = json_options, .parser = parse_common};

/* --- the table's user ---------------------------------------------------- */

static void list_commands(FILE *out)
{
	fputs("Usage: softib COMMAND [OPTION...]\n"
	      "InfiniBand fabrics in user space: adapters, switches, subnet manager.\n\n"
	      "Commands:\n",
	      out);
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (commands[i].summary)
			fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].summary);
	fputs("\nExamples:\n"
	      "  softib run -- ibv_devinfo                   a fabric for one command\n"
	      "  softib pair -- ib_write_bw -a               a server and its client, on "
	      "two nodes\n"
	      "  softib run --topology star:4 -- bash        a fabric for a shell; in "
	      "it:\n"
	      "      softib exec n3 -- ibv_devinfo             a program on another "
	      "node\n"
	      "      softib pair n2 n4 -- ib_send_lat          server and client on two "
	      "of them\n"
	      "  softib up lab --topology fattree:2,4        one that stays\n"
	      "  softib topo --fabric lab\n"
	      "  softib down lab\n\n"
	      "'softib COMMAND --help' tells more, and so does softib(1).\n",
	      out);
}

static error_t parse_main(int key, char *arg, struct argp_state *state)
{
	int *at = state->input;

	switch (key) {
	case '?':
	case 'h':
		list_commands(stdout);
		exit(EXIT_SUCCESS);
	case 'V':
		puts(argp_program_version);
		exit(EXIT_SUCCESS);
	case ARGP_KEY_ARG:
		*at = state->next - 1;
		state->next = state->argc;
		return 0;
	case ARGP_KEY_END:
		if (*at)
			return 0;
		list_commands(stderr);
		exit(EX_USAGE);
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

bool asks_for_help(const char *arg)
{
	return arg && (!strcmp(arg, "--help") || !strcmp(arg, "-?") || !strcmp(arg, "-h"));
}

/* argv[0] is the command's name. Return: exit status */
static int dispatch(int argc, char **argv)
{
	static char help[] = "--help"; /* -h would be an unknown option to argp */
	char title[64];

	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		if (strcmp(commands[i].name, argv[0]))
			continue;
		snprintf(title, sizeof(title), "softib %s", commands[i].name);
		argv[0] = title; /* what argp calls the program */
		if (asks_for_help(argv[1]))
			argv[1] = help;
		return commands[i].run(argc, argv);
	}
	complain("there is no command '%s'; 'softib help' lists them", argv[0]);
	return EX_USAGE;
}

/* 'help fault add' is 'fault add --help'; others have no verbs to explain */
static int cmd_help(int argc, char **argv)
{
	char help[] = "--help";
	char *verb[] = {argv[1], argc > 2 ? argv[2] : NULL, help, NULL};
	char *command[] = {argv[1], help, NULL};

	if (argc > 1 && strcmp(argv[1], "help") && !asks_for_help(argv[1]))
		return verb[1] && !strcmp(argv[1], "fault") ? dispatch(3, verb)
							     : dispatch(2, command);
	list_commands(stdout);
	return EXIT_SUCCESS;
}

/* whichever way the process ends: argp exits by itself after --help */
static void end_output(void)
{
	if (check_output())
		_exit(EXIT_FAILURE);
}

int main(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"help", '?', NULL, 0, "this list", 0},
		{NULL, 'h', NULL, 0, NULL, 0},
		{"version", 'V', NULL, 0, "print the version", 0},
		{0},
	};
	static const struct argp argp = {.options = options, .parser = parse_main};
	int at = 0; /* the command's name */

	rt_hold_standard_fds();
	atexit(end_output);
	if (!strcmp(program_invocation_short_name, "softib-rsh"))
		return cmd_rsh(argc, argv);
	argp_parse(&argp, argc, argv, ARGP_IN_ORDER | ARGP_NO_HELP, NULL, &at);
	return dispatch(argc - at, argv + at);
}
