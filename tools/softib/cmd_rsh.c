/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * softib-rsh: a remote shell to the nodes of a fabric. Launchers (Open MPI's, MPICH's
 * hydra, pdsh) start their daemons on other hosts by a program that takes the words of
 * ssh(1); node_enter() names this one to them in the environment.
 *
 * The command is one line for a shell, as with ssh. It runs with the environment and in
 * the working directory of the caller: nodes share the files.
 */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/types.h"
#include "softib.h"

struct rsh_args {
	const char *user;
	char *node;
	char **words; /* of the command, NULL: an interactive shell */
	bool no_input, devices;
};

/* ssh's options without, and with, an argument; they mean nothing here */
#define ALONE	 "46AaCfGgKkMNqsTtVvXxYy"
#define WITH_ARG "BbcDEeFIiJLmOopQRSWw"

#define KEY_DEVICES 0x101 /* -D is one of ssh's */

static error_t parse_rsh(int key, char *arg, struct argp_state *state)
{
	struct rsh_args *args = state->input;
	char *at;

	switch (key) {
	case 'l':
		args->user = arg;
		return 0;
	case 'n':
		args->no_input = true;
		return 0;
	case KEY_DEVICES:
		args->devices = true;
		return 0;
	case ARGP_KEY_ARG:
		at = strrchr(arg, '@');
		if (at) {
			*at = '\0';
			args->user = arg;
		}
		args->node = at ? at + 1 : arg;
		args->words = state->argv + state->next;
		state->next = state->argc;
		return 0;
	case ARGP_KEY_END:
		if (!args->node)
			argp_error(state,
				   "which node? For example: softib-rsh n2 uname -n");
		return 0;
	default:
		return key > 0 && key < 0x80 && strchr(ALONE WITH_ARG, key)
			       ? 0
			       : ARGP_ERR_UNKNOWN;
	}
}

/* one row for each of ssh's options that is passed over */
static void add_ssh_options(struct argp_option *to)
{
	for (const char *c = ALONE WITH_ARG; *c; c++, to++)
		*to = (struct argp_option){
			.key = *c,
			.arg = c - (ALONE WITH_ARG) >= (ptrdiff_t)strlen(ALONE) ? "ARG"
										: NULL,
			.flags = OPTION_HIDDEN};
}

/* The nodes know the user of the fabric alone. Return: 0; -1 (printed) */
static int check_user(const char *user)
{
	struct passwd *own = getpwuid(geteuid());

	if (!user || (own && !strcmp(user, own->pw_name)))
		return 0;
	complain("programs on a node run as the user who starts them%s%s: leave out the user "
		 "%s",
		 own ? ", " : "", own ? own->pw_name : "", user);
	return -1;
}

/* Return: the caller's; NULL no memory */
static char *join_words(char **words)
{
	size_t bytes = 1;
	char *line;

	for (char **word = words; *word; word++)
		bytes += strlen(*word) + 1;
	line = calloc(bytes, 1);
	for (char **word = words; line && *word; word++) {
		strcat(line, *word);
		if (word[1])
			strcat(line, " ");
	}
	return line;
}

/* Open MPI's daemons name their folder below /tmp after the host, which nodes with one
 * network are all, and trip over each other when they make it at the same time. */
static void part_daemons(const struct node_place *at)
{
	char path[PATH_MAX + sizeof(at->node) + 16];

	snprintf(path, sizeof(path), "%s/mpi/%s", at->dir, at->node);
	if (at->net != NET_NODE)
		setenv("OMPI_MCA_orte_tmpdir_base", path, 0);
}

static void take_no_input(void)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (null >= 0)
		dup2(null, STDIN_FILENO);
}

/* the user's shell, for a line of a launcher, as sshd has it */
static int run_shell(const struct rsh_args *args)
{
	struct passwd *own = getpwuid(geteuid());
	char *shell = own && own->pw_shell[0] ? own->pw_shell : "/bin/sh";
	char *line = args->words[0] ? join_words(args->words) : NULL;
	char *argv[] = {shell, line ? "-c" : NULL, line, NULL};

	if (args->words[0] && !line)
		return complain("out of memory");
	if (access(shell, X_OK) || strstr(shell, "nologin") || strstr(shell, "/false"))
		argv[0] = "/bin/sh"; /* an account for a service */
	return node_exec(argv);
}

int cmd_rsh(int argc, char **argv)
{
	struct argp_option options[sizeof(ALONE WITH_ARG) + 5] = {
		{NULL, 'l', "USER", 0, "must be the user who runs this command", 0},
		{NULL, 'n', NULL, 0, "no standard input", 0},
		{"devices", KEY_DEVICES, NULL, 0, "provide device files in /dev/infiniband", 0},
	};
	const struct argp argp = {
		.options = options,
		.parser = parse_rsh,
		.args_doc = "[USER@]NODE [COMMAND [ARGUMENT...]]",
		.doc = "Run COMMAND, a line for a shell, on NODE of the fabric that SOFTIB_DIR "
		       "names, or else of the only fabric that is up. Without a COMMAND, run an "
		       "interactive shell. ssh's options are accepted and ignored. 'softib exec' "
		       "makes MPI launchers start their daemons with this command.\v"
		       "Examples:\n"
		       "  softib-rsh n2 uname -n\n"
		       "  softib exec n1 -- mpirun --host n1,n2 ./hello\n"};
	struct rsh_args args = {0};
	struct node_place at = {.node = ""};

	add_ssh_options(options + 3);
	argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &args);
	if (check_user(args.user) || place_choose(NULL, at.dir) ||
	    node_find(&at, args.node))
		return EXIT_FAILURE;
	if (args.no_input)
		take_no_input();
	at.devices = args.devices;
	part_daemons(&at);
	return node_enter(&at) ? EXIT_FAILURE : run_shell(&args);
}
