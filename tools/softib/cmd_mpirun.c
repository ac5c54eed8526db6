/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * softib mpirun: Open MPI's mpirun, with its ranks on nodes of a fabric.
 *
 * On a fabric whose nodes share the machine's network, mpirun starts each rank by its "fork
 * agent", here 'softib exec', which takes the node by the rank's number, and leaves it in the
 * network of mpirun, to which it talks by a loopback address.
 *
 * Nodes with a network of their own are hosts: mpirun runs on the first of them and starts its
 * daemons on the others by softib-rsh, so that each rank finds the interfaces of its node.
 * libfabric takes the address of an adapter from its ib0.
 *
 * All else goes by the environment, so that any parameter may be given otherwise on the command
 * line, which mpirun prefers, or in the environment, which is left as it is.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi/session.h"
#include "base/types.h"
#include "softib.h"

#define AGENT "OMPI_MCA_orte_fork_agent"
#define REMOTE_SHELL "OMPI_MCA_plm_rsh_agent"
#define HOSTS "OMPI_MCA_orte_default_dash_host"

/* What Open MPI needs to use a fabric. Debian's configuration excludes UCX;
 * without UCX_TLS UCX takes the memory that all nodes share, which is faster
 * than any fabric. All nodes are one machine, whose cores are not to be counted. */
static const struct {
	const char *key, *value;
	bool root; /* of root alone, who is so in many a container */
} defaults[] = {
	{"OMPI_MCA_pml", "ucx", false},
	{"OMPI_MCA_osc", "ucx,sm", false},
	{"UCX_TLS", "rc,ud,self", false},
	{"OMPI_MCA_rmaps_base_oversubscribe", "1", false},
	{"OMPI_MCA_hwloc_base_binding_policy", "none", false},
	{"OMPI_ALLOW_RUN_AS_ROOT", "1", true},
	{"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", true},
};

struct mpirun_args {
	struct common common;
	const char *nodes;
};

static error_t parse_mpirun(int key, char *arg, struct argp_state *state)
{
	struct mpirun_args *args = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &args->common;
		return 0;
	case 'o':
		args->nodes = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static bool is_one_of(const char *word, const char *const *list)
{
	for (; *list; list++)
		if (!strcmp(word, *list))
			return true;
	return false;
}

/** struct words - a list that ends with NULL */
struct words {
	char **all;
	int count;
};

static void add(struct words *to, char *word)
{
	to->all[to->count++] = word;
}

/* The first words may be ours, or a number of ranks; from the first other one on
 * they are mpirun's, whose options only mpirun can tell from the program. */
static void split_words(char **words, struct words *ours, struct words *theirs)
{
	static const char *const own[] = {"-f", "--fabric", "--nodes", NULL};
	static const char *const own_alone[] = {"--help", "--usage", "-?", NULL};
	static const char *const counts[] = {"-n", "-np", "--n", "--np", "-c", NULL};

	add(ours, *words++);
	add(theirs, "mpirun");
	for (; *words; words++) {
		bool pair = is_one_of(*words, own), count = is_one_of(*words, counts);

		if (!pair && !count && !is_one_of(*words, own_alone) &&
		    strncmp(*words, "--fabric=", 9) && strncmp(*words, "--nodes=", 8))
			break;
		add(count ? theirs : ours, *words);
		if ((pair || count) && words[1])
			add(count ? theirs : ours, *++words);
	}
	while (*words)
		add(theirs, *words++);
}

static void set_defaults(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(defaults); i++)
		if (!defaults[i].root || !geteuid())
			setenv(defaults[i].key, defaults[i].value, 0);
}

/* mpirun stays where it is. Return: 0; -1 (printed) */
static int start_by_fork_agent(const struct node_place *at, const char *nodes)
{
	char self[PATH_MAX], *agent;

	if (place_self_dir(self))
		return -1;
	setenv(ABI_ENV_DIR, at->dir, 1);
	node_prepend("PATH", self); /* mpirun splits the agent's words at blanks */
	if (asprintf(&agent, "softib exec --net=host --devices --ranks=%s --", nodes) < 0)
		return complain("out of memory"), -1;
	setenv(AGENT, agent, 1);
	free(agent);
	return 0;
}

/* the names of all nodes, with commas. Return: the caller's; NULL (printed) */
static char *join_nodes(const struct node_place *at)
{
	size_t count, room;
	struct node_place *all = node_all(at, &count);
	char *names = all ? calloc(count, sizeof(all->node) + 1) : NULL, *end = names;

	if (all && !names)
		complain("out of memory");
	room = count * (sizeof(at->node) + 1);
	for (size_t i = 0; names && i < count; i++)
		end += snprintf(end, room - (size_t)(end - names), "%s%s", i ? "," : "",
				all[i].node);
	free(all);
	return names;
}

/* mpirun goes to the node @at. Return: 0; -1 (printed) */
static int start_by_remote_shell(struct node_place *at, const char *nodes)
{
	char *hosts = strcmp(nodes, NODES_ALL) ? strdup(nodes) : join_nodes(at);
	int error = hosts ? 0 : -1;

	at->devices = true;
	if (!error)
		error = node_enter(at);
	if (!error) {
		setenv(HOSTS, hosts, 1);
		setenv(REMOTE_SHELL, "softib-rsh --devices", 1);
	}
	free(hosts);
	return error;
}

/* Return: 0; -1 (printed) */
static int prepare(struct node_place *at, const char *nodes)
{
	if (node_check_list(at, nodes) || node_first(at, nodes))
		return -1;
	set_defaults();
	return at->net == NET_NODE ? start_by_remote_shell(at, nodes) :
				     start_by_fork_agent(at, nodes);
}

static const struct argp_option mpirun_options[] = {
	{"nodes", 'o', "NODES", 0, "the nodes of the ranks, for example n1,n3; default all",
	 0},
	{0},
};

static const char mpirun_doc[] =
	"Run an MPI program with Open MPI's mpirun and distribute its ranks over the nodes "
	"of a fabric; consecutive ranks share a node. The options below and -n come first; "
	"the first other argument and all that follow are passed to mpirun. By default, ranks "
	"communicate through UCX and only over the fabric (pml ucx, UCX_TLS=rc,ud,self). When "
	"no fabric is up, a private one of two nodes is started.\v"
	"Examples:\n"
	"  softib mpirun -n 2 ./hello\n"
	"  softib mpirun --fabric lab -n 4 --nodes n1,n2 --tag-output ./osu_latency\n"
	"  softib mpirun -n 2 --mca pml ob1 --mca btl openib,self --mca "
	"btl_openib_allow_ib 1 ./hello\n"
	"  softib run --nodes 8 -- softib mpirun -n 8 ./hello\n";

int cmd_mpirun(int argc, char **argv)
{
	static const struct argp_child children[] = {{.argp = &argp_fabric}, {0}};
	static const struct argp argp = {
		.options = mpirun_options,
		.parser = parse_mpirun,
		.children = children,
		.args_doc = "[-n N] [MPIRUN-OPTION...] PROGRAM [ARGUMENT...]",
		.doc = mpirun_doc};
	struct words ours = {calloc((size_t)argc + 1, sizeof(char *)), 0};
	struct words theirs = {calloc((size_t)argc + 1, sizeof(char *)), 0};
	struct mpirun_args args = {.nodes = NODES_ALL};
	struct node_place at = {.node = ""};
	int status = EXIT_FAILURE;

	if (!ours.all || !theirs.all)
		return complain("out of memory");
	split_words(argv, &ours, &theirs);
	argp_parse(&argp, ours.count, ours.all, 0, NULL, &args);
	if (!place_is_there(args.common.fabric))
		status = place_run_private("mpirun", argc, argv);
	else if (!place_choose(args.common.fabric, at.dir) &&
		 !prepare(&at, args.nodes))
		status = node_exec(theirs.all);
	free(ours.all);
	free(theirs.all);
	return status;
}
