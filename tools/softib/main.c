/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* softib: find the sub-command, hand over to it. */
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/types.h"
#include "softib.h"

/* argp finds it by name, so it may not be hidden */
__attribute__((visibility("default"))) const char *argp_program_version = "softib " SOFTIB_VERSION;

static const struct command commands[] = {
	{"run", "run a command on a private fabric", cmd_run},
	{"up", "bring a fabric up, to stay", cmd_up},
	{"down", "take a fabric down", cmd_down},
	{"list", "list the fabrics that are up", cmd_list},
	{"exec", "run a command on a node of a fabric", cmd_exec},
	{"status", "show how a fabric is", cmd_status},
	{"topo", "show or draw a topology", cmd_topo},
	{"wait", "wait until every cabled port is Active", cmd_wait},
	{"link", "plug or pull a cable", cmd_link},
	{"counters", "show the counters of ports", cmd_counters},
	{"resource", "show what programs hold", cmd_resource},
	{"capture", "capture packets for tshark", cmd_capture},
	{"fault", "let packets, links and nodes fail", cmd_fault},
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

static error_t parse_common(int key, char *arg, struct argp_state *state)
{
	struct common *common = state->input;

	switch (key) {
	case 'f':
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
	fputs("Commands:\n", out);
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].summary);
	fputs("\nExamples:\n"
	      "  softib run -- ibv_devinfo                   a fabric for one command\n"
	      "  softib run --topology star:4 -- bash        or for a shell; in it:\n"
	      "      softib exec n2 -- ib_write_bw &           a server on node n2\n"
	      "      ib_write_bw localhost                     its client on node n1\n"
	      "  softib up lab --topology fattree:2,4        one that stays\n"
	      "  softib topo --fabric lab\n"
	      "  softib down lab\n\n"
	      "'softib COMMAND --help' tells more, and so does softib(1).\n",
	      out);
}

static error_t parse_main(int key, char *arg, struct argp_state *state)
{
	char **rest = state->input;

	switch (key) {
	case '?':
		printf("Usage: softib COMMAND [OPTION...]\n"
		       "InfiniBand fabrics in user space: adapters, switches, subnet manager.\n\n");
		list_commands(stdout);
		exit(EXIT_SUCCESS);
	case 'V':
		puts(argp_program_version);
		exit(EXIT_SUCCESS);
	case ARGP_KEY_ARG:
		*rest = arg;
		state->next = state->argc;
		return 0;
	case ARGP_KEY_END:
		if (*rest)
			return 0;
		fputs("Usage: softib COMMAND [OPTION...]\n\n", stderr);
		list_commands(stderr);
		exit(EXIT_FAILURE);
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int dispatch(int argc, char **argv, const char *name)
{
	char title[64];
	int at = 1;

	while (argv[at] != name)
		at++;
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		if (strcmp(commands[i].name, name))
			continue;
		snprintf(title, sizeof(title), "softib %s", commands[i].name);
		argv[at] = title; /* what argp calls the program */
		return commands[i].run(argc - at, argv + at);
	}
	complain("there is no command '%s'", name);
	list_commands(stderr);
	return EXIT_FAILURE;
}

/* --- the standard descriptors --------------------------------------------- */

/* One that is closed would be the number of the next socket, and what is
 * printed would go there. What takes its place refuses reads and writes. */
static void hold_standard_fds(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			(void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
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
		{"version", 'V', NULL, 0, "print the version", 0},
		{0},
	};
	static const struct argp argp = {.options = options, .parser = parse_main};
	char *name = NULL;

	hold_standard_fds();
	atexit(end_output);
	argp_parse(&argp, argc, argv, ARGP_IN_ORDER | ARGP_NO_HELP, NULL, &name);
	return dispatch(argc, argv, name);
}
