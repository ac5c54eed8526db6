/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Fabrics that come: run, up. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wordexp.h>

#include "base/types.h"
#include "fabric/topo_plan.h"
#include "fabric/topology.h"
#include "profile/profile.h"
#include "children.h"
#include "node_namespaces.h"
#include "softib.h"

#define DEFAULT_TIMEOUT_S 120

/* --- what run and up share -------------------------------------------------- */

struct fabric_args {
	const char *topology, *sm;
	wordexp_t manager; /* of --sm: its name and its options */
	char star[32]; /* of --nodes */
	long ports, adapters; /* of --ports and --adapters; 0: as the topology says */
	char link[256]; /* the option link= of a shape, of --link-layer; "": as the topology says */
	char spec[PATH_MAX];  /* the topology with these */
	unsigned timeout_s;
	const char *min_ack_timeout, *hca_profile, *link_layer, *vlans, *polled, *ipoib_mode, *ipoib_mtu;
	bool no_namespace, devices, sdp, memlock, net_raw, mixed;
	enum node_net net;
	const char *ip[2];
	const char *name;
	char **command;
};

static const struct argp_option fabric_options[] = {
	{"topology", 't', "SPEC", 0,
	 "a shape (pair, star:8, fattree:2,4, torus:4x4x4, dragonfly:4,2,2) or a file of "
	 "ibnetdiscover's or ibsim's; default pair. softib-topology(5)",
	 0},
	{"nodes", 'n', "N", 0, "N nodes around one switch: --topology star:N", 0},
	{"adapters", 'a', "N", 0,
	 "each node has N adapters, softib0 and so on: the option adapters= of pair, star "
	 "and direct",
	 0},
	{"ports", KEY_PORTS, "N", 0,
	 "each adapter has N ports: the option ports= of pair, star and direct", 0},
	{"sm", 's', "SM", 0,
	 "the subnet manager: softib-sm (default), opensm or none; options may follow, as in "
	 "--sm 'softib-sm --lmc 1'",
	 0},
	{"timeout", 'T', "SECONDS", 0,
	 "how long to wait for all ports to become Active; default 120, 0 for ever", 0},
	{"min-ack-timeout", 'A', "US", 0,
	 "the shortest ACK timeout of a queue pair, in microseconds; default 4000, "
	 "0: exactly what programs ask for",
	 0},
	{"hca-profile", 'p', "PROFILE", 0,
	 "adapters report the limits and capabilities of this one: connectx3, connectx5, "
	 "connectx7, rxe, efa-like, max (default) or a file of 'softib profile record'",
	 0},
	{"polled", 'P', "NODES", 0,
	 "the adapters of these nodes, names with commas or all, raise no interrupt: the midlayer "
	 "polls them",
	 0},
	{"link-layer", 'l', "LAYER[,LAYER..]", 0,
	 "of all ports, or of each port of a node: infiniband (default) or ethernet, for RoCE; the "
	 "last one is that of all further ports",

	 0},
	{"vlan", 'v', "VLAN[,VLAN..]", 0,
	 "VLAN interfaces of the ports of Ethernet: ids, each with :NODE+NODE.. or of all nodes", 0},
	{"net", KEY_NET, "NET", 0, OPTION_NET "; default host", 0},
	{"ip", 'i', "NETWORK", 0,
	 "the IPv4 or IPv6 network of the nodes' addresses; "
	 "defaults " TOPO_PLAN_IPV4 " and " TOPO_PLAN_IPV6,
	 0},
	{"ipoib-mode", 'I', "MODE", 0,
	 "in which each ib0 begins: datagram (default, MTU 2044) or connected (MTU 65520); "
	 "softib ipoib changes it",
	 0},
	{"ipoib-mtu", KEY_IPOIB_MTU, "MTU", 0,
	 "of the broadcast group that the subnet manager makes: 2048 (default) or 4096, with which an "
	 "ib0 in datagram mode has an MTU of 4092",
	 0},
	{"memlock", 'M', NULL, 0,
	 "enforce each program's limit on locked memory (ulimit -l), as the kernel does "
	 "for hardware; by default there is no limit, since softib locks no memory",
	 0},
	{"net-raw", 'R', NULL, 0,
	 "demand CAP_NET_RAW of programs for raw packet queue pairs and flow steering, as Linux "
	 "does; by default every user has them",
	 0},
	{0},
};

static int whole_number(const char *text, long most, long *value)
{
	char *end;

	errno = 0;
	*value = strtol(text, &end, 10);
	return errno || *end || end == text || *value < 0 || *value > most ? -1 : 0;
}

/* Let --link-layer be an option of the shape, or for a file softibd's. Which one a fabric has
 * throughout, softib needs to know. */
static void parse_link_layers(struct fabric_args *args, struct argp_state *state, const char *arg)
{
	char each_of[sizeof(args->link)], *rest = NULL;
	int infiniband = 0, ethernet = 0;

	snprintf(args->link, sizeof(args->link), "%s", arg);
	strcpy(each_of, args->link);
	for (char *each = strtok_r(each_of, ",", &rest); each; each = strtok_r(NULL, ",", &rest)) {
		int *count = strcmp(each, "ethernet") ? &infiniband : &ethernet;

		++*count;
		if (count == &infiniband && strcmp(each, "infiniband"))
			argp_error(state, "--link-layer takes infiniband or ethernet, or one of them "
					  "for each port of a node with commas, not '%s'", each);
	}
	if (infiniband + ethernet == 0)
		argp_error(state, "--link-layer takes infiniband or ethernet, not '%s'", args->link);
	for (char *comma = args->link; (comma = strchr(comma, ','));)
		*comma = '+';
	args->link_layer = ethernet && !infiniband ? "ethernet" : NULL;
	args->mixed = ethernet && infiniband;
}

/* what belongs to InfiniBand */
static void check_ethernet(struct fabric_args *args, struct argp_state *state)
{
	if (args->link_layer && args->sm && strcmp(args->sm, "none"))
		argp_error(state, "--sm: an Ethernet fabric has no subnet manager; leave --sm out");
	if (!args->sm)
		args->sm = args->link_layer ? "none" : "softib-sm";
}

/* --adapters, --ports and --link-layer become options of the shape */
static void apply_counts(struct fabric_args *args, struct argp_state *state)
{
	static const char *const keys[] = {"adapters", "ports"};
	const long values[] = {args->adapters, args->ports};
	bool counts = args->adapters || args->ports, shape = topo_is_shape(args->topology);
	size_t n;

	if (!shape && counts)
		argp_error(state, "--adapters and --ports are for shapes such as star:4; the file "
				  "%s says what its nodes have", args->topology);
	if (!shape && args->mixed)
		argp_error(state, "--link-layer with several link layers is for shapes such as star:4; "
				  "in a file such as %s, link=ethernet in a comment says so",
			   args->topology);
	if (!shape || (!counts && !*args->link))
		return;
	n = (size_t)snprintf(args->spec, sizeof(args->spec), "%s", args->topology);
	for (size_t i = 0; i < ARRAY_SIZE(keys) && n < sizeof(args->spec); i++)
		if (values[i])
			n += (size_t)snprintf(args->spec + n, sizeof(args->spec) - n, ",%s=%ld",
					      keys[i], values[i]);
	if (*args->link && n < sizeof(args->spec))
		snprintf(args->spec + n, sizeof(args->spec) - n, ",link=%s", args->link);
	args->topology = args->spec;
}

static long parse_count(struct argp_state *state, const char *option, const char *arg, long most)
{
	long n;

	if (whole_number(arg, most, &n) || !n)
		argp_error(state, "%s takes 1 to %ld, not '%s'", option, most, arg);
	return n;
}

/* Return: @arg */
static const char *either(struct argp_state *state, const char *option, const char *arg,
			  const char *one, const char *other)
{
	if (strcmp(arg, one) && strcmp(arg, other))
		argp_error(state, "%s takes %s or %s, not '%s'", option, one, other, arg);
	return arg;
}

/* --sm: a name, and options of that program, in a shell's quotes where they need them */
static void parse_manager(struct fabric_args *args, const char *arg, struct argp_state *state)
{
	if (wordexp(arg, &args->manager, WRDE_NOCMD | WRDE_REUSE) || !args->manager.we_wordc)
		argp_error(state, "--sm takes the name of a subnet manager and its options, quoted "
				  "as for a shell, not '%s'", arg);
	args->sm = args->manager.we_wordv[0];
	if (strcmp(args->sm, "softib-sm") && strcmp(args->sm, "opensm") &&
	    strcmp(args->sm, "none"))
		argp_error(state, "--sm takes softib-sm, opensm or none, not '%s'", args->sm);
	if (!strcmp(args->sm, "none") && args->manager.we_wordc > 1)
		argp_error(state, "--sm none takes no options");
}

static error_t parse_fabric(int key, char *arg, struct argp_state *state)
{
	struct fabric_args *args = state->input;
	struct profile profile;
	struct topo_plan plan;
	char err[512];
	long n;

	switch (key) {
	case 't':
		args->topology = arg;
		return 0;
	case 'n':
		if (whole_number(arg, 254, &n) || !n)
			argp_error(state, "--nodes takes 1 to 254, not '%s'; for more see "
					  "--topology fattree:2,K", arg);
		snprintf(args->star, sizeof(args->star), "star:%ld", n);
		args->topology = args->star;
		return 0;
	case 'a':
		args->adapters = parse_count(state, "--adapters", arg, TOPO_MAX_ADAPTERS);
		return 0;
	case KEY_PORTS:
		args->ports = parse_count(state, "--ports", arg, TOPO_MAX_NODE_PORTS);
		return 0;
	case 's':
		parse_manager(args, arg, state);
		return 0;
	case 'T':
		if (whole_number(arg, 86400, &n))
			argp_error(state, "--timeout takes 0 to 86400 seconds, not '%s'", arg);
		args->timeout_s = (unsigned)n;
		return 0;
	case 'A':
		if (whole_number(arg, 1000000, &n))
			argp_error(state,
				   "--min-ack-timeout takes 0 to 1000000 microseconds, not '%s'",
				   arg);
		args->min_ack_timeout = arg;
		return 0;
	case 'l':
		parse_link_layers(args, state, arg);
		return 0;
	case 'P':
	case 'v':
		*(key == 'P' ? &args->polled : &args->vlans) = arg;
		return 0;
	case KEY_NET:
		args->net = node_parse_net(state, arg);
		return 0;
	case 'i':
		if (topo_plan_set(&plan, arg, err, sizeof(err)))
			argp_error(state, "--ip: %s", err);
		args->ip[strchr(arg, ':') ? 1 : 0] = arg;
		return 0;
	case 'I':
		args->ipoib_mode = either(state, "--ipoib-mode", arg, "datagram", "connected");
		return 0;
	case KEY_IPOIB_MTU:
		args->ipoib_mtu = either(state, "--ipoib-mtu", arg, "2048", "4096");
		return 0;
	case 'p':
		if (profile_load(arg, &profile, err, sizeof(err)))
			argp_error(state, "--hca-profile: %s", err);
		args->hca_profile = arg;
		return 0;
	case 'M':
	case 'R':
		*(key == 'M' ? &args->memlock : &args->net_raw) = true;
		return 0;
	case ARGP_KEY_END:
		check_ethernet(args, state);
		apply_counts(args, state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp_fabric_args = {.options = fabric_options,
					     .parser = parse_fabric};

/* Where the kernel allows no namespaces all that needs no address works without. */
static enum node_net choose_net(const struct fabric_args *args)
{
	int error = args->net == NET_NODE ? node_try_network() : 0;

	if (!error)
		return args->net;
	complain("the kernel allows this user no network namespaces: the nodes share the "
		 "machine's network (--net=host). %s. %s",
		 strerror(-error), node_namespace_advice(error));
	return NET_HOST;
}

static void fill_session(struct session *s, const struct fabric_args *args)
{
	s->topology = args->topology;
	s->sm = args->sm;
	s->sm_options = args->manager.we_wordc ? args->manager.we_wordv + 1 : NULL;
	s->timeout_s = args->timeout_s;
	s->memlock = args->memlock;
	s->net_raw = args->net_raw;
	memcpy(s->ip, args->ip, sizeof(s->ip));
	s->net = choose_net(args);
	s->min_ack_timeout = args->min_ack_timeout;
	s->hca_profile = args->hca_profile;
	s->link_layer = args->link_layer;
	s->polled = args->polled;
	s->vlans = args->vlans;
	s->ipoib_mode = args->ipoib_mode;
	s->ipoib_mtu = args->ipoib_mtu;
	s->no_namespace = args->no_namespace;
	s->devices = args->devices;
	s->sdp = args->sdp;
}

/* softibd's log has it too, but nobody reads that of a fabric that came up */
static void warn_of_topology(const struct fabric_args *args)
{
	struct topology *topo;
	char err[256];

	if (topo_is_shape(args->topology) ||
	    topo_load(args->topology, DEFAULT_NAME, &topo, err, sizeof(err)))
		return; /* softibd says what is wrong */
	say_warning(topo);
	topo_free(topo);
}

/* --- run ---------------------------------------------------------------------- */

static error_t parse_run(int key, char *arg, struct argp_state *state)
{
	struct fabric_args *args = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = args;
		return 0;
	case 'N':
		args->no_namespace = true;
		return 0;
	case ARGP_KEY_ARG:
		args->command = state->argv + state->next - 1;
		state->next = state->argc;
		return 0;
	case 'D':
		args->devices = true;
		return 0;
	case 'S':
		args->sdp = true;
		return 0;
	case ARGP_KEY_END:
		if (args->net == NET_NODE && args->no_namespace)
			argp_error(state, ERR_NET);
		if (!args->command)
			argp_error(
				state,
				"which command? For example: softib run -- ibv_devinfo");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* what a `softib run` left that was killed itself */
static int sweep_run(const char *name, const char *dir, void *arg)
{
	if (!place_is_private(name) || session_owner(dir))
		return -1;
	if (client_open(dir) < 0) /* its softibd is ending otherwise */
		log_sweep(dir, false);
	return 0;
}

static int make_run_dir(char dir[PATH_MAX])
{
	char base[PATH_MAX];

	if (place_base(base, true))
		return -1;
	place_each(sweep_run, NULL);
	if (snprintf(dir, PATH_MAX, "%s/" PRIVATE_PREFIX "XXXXXX", base) >= 90) {
		complain(
			"%s is too long for a socket's path: set XDG_RUNTIME_DIR to a shorter one",
			base);
		return -1;
	}
	if (mkdtemp(dir))
		return 0;
	complain("cannot make %s: %s", dir, strerror(errno));
	return -1;
}

/* the whole session, in a process that outlives this one for as long as it
 * takes to end it */
static int keep(struct session *s, const struct fabric_args *args)
{
	int status;

	if (session_start(s)) {
		rmdir(s->dir);
		return EXIT_FAILURE;
	}
	status = session_command(s, args->command);
	session_end(s, false);
	return status < 0 ? EXIT_FAILURE : exit_status(status);
}

/* Signals from the terminal reach the command by themselves; those that
 * somebody sent to this process go to the keeper, and by it to the command. */
static void pass_signal_on(int signal_fd, pid_t keeper)
{
	struct pollfd pfd = {.fd = signal_fd, .events = POLLIN};
	struct signalfd_siginfo info;

	if (poll(&pfd, 1, -1) > 0 &&
	    read(signal_fd, &info, sizeof(info)) == sizeof(info) &&
	    info.ssi_signo != SIGCHLD && info.ssi_code <= 0)
		kill(keeper, (int)info.ssi_signo);
}

/* A keeper that was killed has left everything to this process, which adopts. */
static int await_keeper(struct session *s, pid_t keeper)
{
	sigset_t old;
	int signal_fd = children_watch(&old), status;

	while (waitpid(keeper, &status, WNOHANG) != keeper)
		pass_signal_on(signal_fd, keeper);
	if (WIFSIGNALED(status)) {
		complain("the process that kept the fabric (%d) died by signal %d: the "
			 "fabric ends",
			 keeper, WTERMSIG(status));
		children_end(signal_fd, NULL, NULL);
		log_sweep(s->dir, false);
	}
	return exit_status(status);
}

int cmd_run(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"no-namespace", 'N', NULL, 0,
		 "show the machine's own /sys and /dev; ibstat does not work then", 0},
		{"devices", 'D', NULL, 0,
		 "provide device files in /dev/infiniband for programs that check for them, such as UCX",
		 0},
		{"sdp", 'S', NULL, 0, OPTION_SDP, 0},
		{0},
	};
	static const struct argp_child children[] = {{.argp = &argp_fabric_args}, {0}};
	static const struct argp argp = {
		.options = options,
		.parser = parse_run,
		.children = children,
		.args_doc = "-- COMMAND [ARGUMENT...]",
		.doc = "Run COMMAND on node n1 of a private fabric, which ends when COMMAND "
		       "does. COMMAND can run programs on other nodes with 'softib exec n2 "
		       "-- ...'. The exit status is COMMAND's.\v"
		       "Examples:\n"
		       "  softib run -- ibv_devinfo\n"
		       "  softib run --topology star:4 -- softib pair n2 n4 -- "
		       "ib_send_lat\n"
		       "  softib run --nodes 8 --sm opensm -- ibnetdiscover\n"
		       "  softib run --sdp --net node -- bash\n"
		       "  softib run --topology fattree:2,4 -- bash\n"};
	struct fabric_args args = {
		.topology = "pair", .timeout_s = DEFAULT_TIMEOUT_S};
	struct session s = {.lock_fd = -1};
	pid_t front = getpid(), keeper;

	argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &args);
	fill_session(&s, &args);
	warn_of_topology(&args);
	if (args.devices)
		node_say_ucx(args.command);
	if (make_run_dir(s.dir))
		return EXIT_FAILURE;
	keeper = fork();
	if (keeper < 0)
		return complain("cannot start: %s", strerror(errno));
	if (!keeper) {
		prctl(PR_SET_PDEATHSIG, SESSION_ABANDONED);
		exit(getppid() == front ? keep(&s, &args) : EXIT_FAILURE);
	}
	return await_keeper(&s, keeper);
}

/* --- up ------------------------------------------------------------------------ */

static error_t parse_up(int key, char *arg, struct argp_state *state)
{
	struct fabric_args *args = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = args;
		return 0;
	case ARGP_KEY_ARG:
		if (state->arg_num)
			argp_error(state, "one name only, not '%s' as well", arg);
		parse_name(state, arg);
		args->name = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* from here on nobody listens to us */
static void go_silent(void)
{
	int null = open("/dev/null", O_RDWR);

	if (null < 0)
		return;
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	dup2(null, STDERR_FILENO);
	close(null);
}

/* the process that stays: it starts, says so, and serves until it is told */
static int serve(struct session *s, int ready_fd)
{
	setsid();
	if (session_start(s))
		return EXIT_FAILURE;
	go_silent();
	if (chdir("/") || write(ready_fd, "", 1) != 1) { /* nobody waits any more */
		session_end(s, false);
		return EXIT_FAILURE;
	}
	close(ready_fd);
	session_serve(s);
	session_end(s, true);
	return EXIT_SUCCESS;
}

/* of a file, so that 'softib list' tells it to people elsewhere */
static void absolute_topology(struct fabric_args *args, char path[PATH_MAX])
{
	if (!topo_is_shape(args->topology) && realpath(args->topology, path))
		args->topology = path;
}

/* Programs outside of any node use the machine's own library. It finds no adapter, or fails with ENOSYS
 * where the kernel has no RDMA. */
static void say_how_to_go_on(const char *name)
{
	if (isatty(STDOUT_FILENO))
		printf("fabric '%s' is up: 'softib exec --fabric %s n1 -- COMMAND' runs "
		       "COMMAND on its first node\n",
		       name, name);
}

int cmd_up(int argc, char **argv)
{
	static const struct argp_child children[] = {{.argp = &argp_fabric_args}, {0}};
	static const struct argp argp = {
		.parser = parse_up,
		.children = children,
		.args_doc = "[NAME]",
		.doc = "Start a fabric in the background; 'softib down NAME' stops it. "
		       "Its runtime directory is $XDG_RUNTIME_DIR/softib/NAME.\v"
		       "Examples:\n"
		       "  softib up\n"
		       "  softib up lab --topology torus:4x4\n"
		       "  softib up site --topology cluster.ibnetdiscover --sm opensm\n"};
	struct fabric_args args = {.topology = "pair",
				   .name = DEFAULT_NAME,
				   .timeout_s = DEFAULT_TIMEOUT_S};
	struct session s = {.lock_fd = -1};
	char topology[PATH_MAX], byte;
	int ready[2], status = 0;
	ssize_t n;
	pid_t pid;

	argp_parse(&argp, argc, argv, 0, NULL, &args);
	absolute_topology(&args, topology);
	fill_session(&s, &args);
	warn_of_topology(&args);
	if (place_named(args.name, s.dir, true))
		return EXIT_FAILURE;
	if (pipe2(ready, O_CLOEXEC) || (pid = fork()) < 0)
		return complain("cannot start: %s", strerror(errno));
	if (!pid) {
		close(ready[0]);
		exit(serve(&s, ready[1]));
	}
	close(ready[1]);
	n = read(ready[0], &byte, 1);
	if (n == 1) {
		say_how_to_go_on(args.name);
		return EXIT_SUCCESS;
	}
	waitpid(pid, &status, 0);
	rmdir(s.dir);
	return EXIT_FAILURE;
}
