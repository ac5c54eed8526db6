/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Shared by the files of the `softib` command. Each group of sub-commands has a file
 * (cmd_*.c, with capture_*.c, mad_text.c and scenario_*.c). They use the files for
 * directories (place.c), the control socket (client.c), a fabric's processes
 * (session.c, session_manager.c) and their logs (log.c), a node's environment
 * (node*.c) and output (show.c).
 *
 * Functions that fail have printed a message if their docstring says so: "(printed)".
 */
#ifndef SOFTIB_TOOLS_SOFTIB_H
#define SOFTIB_TOOLS_SOFTIB_H

#include <argp.h>
#include <json-c/json.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/** struct command - a row of the table of sub-commands
 *  @summary: NULL: the command is internal and not listed
 *  @run: argv[0] is the command's name; returns the exit status, EX_USAGE for invalid
 *	  arguments */
struct command {
	const char *name, *summary;
	int (*run)(int argc, char **argv);
};

int cmd_run(int argc, char **argv);
int cmd_up(int argc, char **argv);
int cmd_down(int argc, char **argv);
int cmd_list(int argc, char **argv);
int cmd_exec(int argc, char **argv);
/** cmd_rsh() - softib-rsh, which is this program under another name */
int cmd_rsh(int argc, char **argv);
int cmd_pair(int argc, char **argv);
int cmd_mpirun(int argc, char **argv);
int cmd_status(int argc, char **argv);
int cmd_topo(int argc, char **argv);
int cmd_path(int argc, char **argv);
int cmd_eth(int argc, char **argv);
int cmd_ipoib(int argc, char **argv);
int cmd_sdp(int argc, char **argv);
int cmd_srp(int argc, char **argv);
int cmd_wait(int argc, char **argv);
int cmd_link(int argc, char **argv);
int cmd_cable(int argc, char **argv);
int cmd_counters(int argc, char **argv);
int cmd_resource(int argc, char **argv);
int cmd_capture(int argc, char **argv);
int cmd_mad(int argc, char **argv);
int cmd_trace(int argc, char **argv);
int cmd_fault(int argc, char **argv);
int cmd_profile(int argc, char **argv);
int cmd_modprobe(int argc, char **argv);
int cmd_rmmod(int argc, char **argv);
int cmd_lsmod(int argc, char **argv);
int cmd_new_module(int argc, char **argv);
/** fault_run() - 'softib fault run' (cmd_fault_run.c) */
int fault_run(int argc, char **argv);

/** srp_target() - 'softib srp target' (srp_target.c) */
int srp_target(int argc, char **argv);
/** srp_discover(), ... - 'softib srp discover' and so on (srp_initiator.c) */
int srp_discover(int argc, char **argv);
int srp_login(int argc, char **argv);
int srp_list(int argc, char **argv);
int srp_logout(int argc, char **argv);

/** asks_for_help() - is it --help or -h? */
bool asks_for_help(const char *arg);

/** complain() - "softib: ..." on stderr. Return: EXIT_FAILURE */
__attribute__((format(printf, 1, 2)))
int complain(const char *fmt, ...);

/* --- options that many commands have ----------------------------------- */

struct common {
	const char *fabric; /* --fabric */
	bool json;	    /* --json */
};
extern const struct argp argp_fabric; /* --fabric; input: struct common */
extern const struct argp argp_json;   /* --json; input: struct common */

/** parse_name() - check a fabric's name; an invalid one ends the program with a message
 *  and exit status 64 */
void parse_name(struct argp_state *state, const char *name);
/** parse_node_port() - split NODE:PORT; a node's name may have colons, and the last one counts. What is no such
 *  text ends the program with a message
 *  @arg: its last colon becomes the end of *@node */
void parse_node_port(struct argp_state *state, char *arg, char **node, long *port);

/* --- place.c: where things are ----------------------------------------- */

#define DEFAULT_NAME   "default"
#define PRIVATE_PREFIX "run-"
#define PRIVATE_NAME   "run" /* the name of all private fabrics, for softibd */
#define MANAGER_FILES  "osm" /* in a fabric's directory: opensm's caches, lists and log */

/** place_module_headers() - the directory of softib-module.pc, which tells compilers where the
 *  headers of modules are. Return: 0; -1 (printed) */
int place_module_headers(char path[PATH_MAX]);
/** place_base() - the directory of this user's fabrics. Return: 0; -1 (printed) */
int place_base(char base[PATH_MAX], bool make);
/** place_name_is_good() - may a fabric have this name? */
bool place_name_is_good(const char *name);
/** place_named() - the directory of the fabric with the valid name @name
 *  Return: 0; -1 (printed) */
int place_named(const char *name, char dir[PATH_MAX], bool make);
/** place_is_private() - is @name that of a `softib run` fabric? It is selected only by
 *  SOFTIB_DIR, which its own command has, or by its name. */
bool place_is_private(const char *name);
/** place_choose() - select a fabric: @name, else SOFTIB_DIR, else the only one that is
 *  up and not private. Return: 0; -1 (printed) */
int place_choose(const char *name, char dir[PATH_MAX]);
/** place_live() - Return: the number of fabrics that are up and not private */
int place_live(void);
/** place_is_there() - is there a fabric that place_choose() could select? */
bool place_is_there(const char *name);
/** place_run_private() - execute 'softib run -- softib @command' with the arguments @argv
 *  Return: exit status (printed) */
int place_run_private(const char *command, int argc, char **argv);
/** place_say_left() - log_say_left() for all fabrics that are down */
void place_say_left(void);
/** place_is_ours() - is @dir a fabric's directory in place_base()? SOFTIB_DIR may name
 *  any directory, which softib must not remove. */
bool place_is_ours(const char *dir);
/** place_each() - call @fn for each fabric's directory. Return: their number */
int place_each(int (*fn)(const char *name, const char *dir, void *arg), void *arg);
/** place_program() - the path of a program in this one's directory. Return: 0; -1 (printed) */
int place_program(const char *name, char path[PATH_MAX]);
/** place_self_dir(), place_lib_dir() - the directories of programs and libraries */
int place_self_dir(char path[PATH_MAX]);
int place_lib_dir(char path[PATH_MAX]);
/** place_module() - the file of a module that softib brings. False: there is none of this name */
bool place_module(const char *name, char path[PATH_MAX]);

/* --- cmd_profile.c ------------------------------------------------------ */

/** profile_say_less() - print the limits of the profile that the adapters of the fabric in
 *  @dir do not reach */
void profile_say_less(const char *dir);

/* --- client.c: the control socket -------------------------------------- */

#define WAIT_QUIET_MS	 3000 /* before the user is told why it takes long */
#define WAIT_PROGRESS_MS 5000

/** client_open() - connect to the softibd of @dir
 *  Return: a descriptor; -ETIMEDOUT softibd does not accept it (printed); -errno */
int client_open(const char *dir);
/** client_send(), client_receive() - send or receive one message
 *  client_receive() returns the answer, owned by the caller; NULL and errno */
int client_send(int fd, struct json_object *request);
struct json_object *client_receive(int fd);
/** client_call() - send a request and receive its answer; frees @request
 *  Return: the answer, owned by the caller; NULL if there is none or it is an error
 *  (printed) */
struct json_object *client_call(const char *dir, struct json_object *request);
/** client_ask() - the same for the fabric that @common selects */
struct json_object *client_ask(const struct common *common, struct json_object *request);
/** client_ask_list() - request a list that is answered in pages, and join the member @list
 *  of all answers. Return: as client_ask() */
struct json_object *client_ask_list(const struct common *common, struct json_object *request,
				    const char *list);
/** client_call_quiet() - as client_call(), but print only the progress of a wait, and that
 *  softibd does not answer; errno is then ETIMEDOUT */
struct json_object *client_call_quiet(const char *dir, struct json_object *request);
/** client_say_progress() - print to stderr how many ports are Active
 *  @who: the subnet manager; "" if it is unknown
 *  Return: 0; -ETIMEDOUT softibd does not answer (printed) */
int client_say_progress(const char *dir, const char *who);
/** client_check_owner() - Return: 0; -EPERM (printed): the softibd in @dir is another user's, so that nothing of
 *  its nodes is entered, and nothing written into its directory */
int client_check_owner(const char *dir);
/** struct client_fds - descriptors that are passed with a request and with its answer */
struct client_fds {
	const int *send; /* the caller keeps them */
	unsigned num_send;
	bool own_user; /* ask only a softibd of this process' user: others may pass what harms it */
	int *passed; /* set to the received descriptors, owned by the caller, followed by -1 */
	unsigned max_passed;
};
/** client_call_fds() - client_call() with descriptors; the answer must be a small one */
struct json_object *client_call_fds(const char *dir, struct json_object *request,
				    const struct client_fds *fds);
/** client_call_hold() - client_call() for a request that is in effect as long as its
 *  connection @control_fd, and whose answer has two descriptors */
struct json_object *client_call_hold(const char *dir, struct json_object *request, int *control_fd,
				     int passed[2]);
/** request() - {"op": @op} */
struct json_object *request(const char *op);
void request_text(struct json_object *req, const char *key, const char *text);
void request_number(struct json_object *req, const char *key, int64_t n);
/** request_host() - ask for all adapters of the node that @node names */
void request_host(struct json_object *req, const char *node);
/** text_of(), number_of() - the value of a member; "" and 0 if it is absent */
const char *text_of(struct json_object *o, const char *key);
int64_t number_of(struct json_object *o, const char *key);
struct json_object *member_of(struct json_object *o, const char *key);
/** count_of(), item_of() - length and elements of a list; 0 and NULL if it is not a list */
size_t count_of(struct json_object *list);
struct json_object *item_of(struct json_object *list, size_t i);

/** enum node_net - the network of programs on a node */
enum node_net {
	NET_OF_FABRIC, /* as `softib up` chose */
	NET_HOST,      /* that of the process that starts them, which is the machine's */
	NET_NODE       /* the node's own */
};

/* --- session.c: the processes of one fabric ----------------------------- */

struct session {
	const char *topology, *sm; /* sm: "softib-sm", "opensm", "none" */
	char **sm_options;	   /* of the user's, to NULL; NULL: none */
	unsigned timeout_s;	   /* to become Active; 0: no limit */
	bool memlock;		   /* RLIMIT_MEMLOCK is enforced */
	bool net_raw;		   /* CAP_NET_RAW is demanded for frames */
	const char *link_layer;	     /* "ethernet"; NULL: as the topology says */
	const char *vlans;	     /* of the ports of Ethernet; NULL: none */
	const char *polled;	     /* nodes, or "all"; NULL: none */
	const char *ipoib_mode;	     /* "datagram" or "connected"; NULL: softibd's default */
	const char *ipoib_mtu;	     /* "2048" or "4096", of the broadcast group; NULL: 2048 */
	const char *hca_profile;     /* a name or a file; NULL: none */
	const char *min_ack_timeout; /* microseconds; NULL: softibd's default */
	enum node_net net;	   /* the fabric's */
	const char *ip[2];	   /* networks of its nodes' addresses; NULL: softibd's */
	bool no_namespace, devices, sdp; /* of the command: struct node_place */
	char dir[PATH_MAX];
	/* --- private to session.c --- */
	pid_t softibd, manager, command; /* 0: not running */
	int command_status;
	int signal_fd, lock_fd;
	sigset_t old_mask;
};

/** session_start() - start softibd and the subnet manager in @s->dir (created by the
 *  caller, 0700), and wait until all ports are Active
 *  Return: 0; -1 (printed), and both have been ended */
int session_start(struct session *s);
/** session_command() - run @argv on the first node until it or softibd ends
 *  Return: its wait status; -1 (printed) */
int session_command(struct session *s, char **argv);
/** session_serve() - wait until a signal requests the end, or softibd ends */
void session_serve(struct session *s);
/** session_end() - end all processes and remove the directory. A softibd log that is not
 *  empty is kept with @keep_log, and otherwise printed to stderr */
void session_end(struct session *s, bool keep_log);
/** session_owner() - the pid of the softib process that serves @dir; 0 none */
pid_t session_owner(const char *dir);

/* --- log.c: what a fabric's processes say -------------------------------- */

#define LOG_SOFTIBD "softibd.log"
#define LOG_MANAGER "sm.log"

/** log_open() - create a log; an existing one is renamed to NAME.old
 *  Return: a descriptor for writing; -1 and errno */
int log_open(const char *dir, const char *name);
/** log_note() - add an entry of softib to the log of one of its children */
__attribute__((format(printf, 3, 4)))
void log_note(const char *dir, const char *name, const char *fmt, ...);
/** log_show() - print the last lines of a log to stderr */
void log_show(const char *dir, const char *name);
/** log_left() - has @dir a softibd log that is not empty? */
bool log_left(const char *dir);
/** log_say_left() - print the path and the end of that log, if there is one
 *  Return: log_left() */
bool log_say_left(const char *dir);
/** log_sweep() - remove the fabric directory @dir with its contents, without following
 *  links
 *  @keep: keep softibd's log, and @dir, if the log is not empty */
void log_sweep(const char *dir, bool keep);

/* --- node.c: a program on a node ---------------------------------------- */

#define NODES_ALL   "all"
#define KEY_NET	    0x100 /* of --net, which has no letter */
#define KEY_PORTS   0x101 /* of --ports, which has none either */
#define KEY_IPOIB_MTU 0x102 /* of --ipoib-mtu */
#define OPTION_NET  "node: programs have the network of their node; host: that of the machine"
#define OPTION_SDP                                                                        \
	"the program's TCP sockets use the Sockets Direct Protocol where the peer has it: "        \
	"libsdp(7)"
#define ERR_NET	    "--net=node needs the namespaces that --no-namespace leaves out"

#define NODE_PORTS_MAX 16 /* that are told to dapl */

/** struct node_port - one port of a node's adapters */
struct node_port {
	char device[16], interface[16]; /* "softib0", "ib0" */
	char address[48];		/* IPv4; "": none */
	int number;			/* of the adapter's, from 1 */
};

/** struct node_place - where a program is to run */
struct node_place {
	char dir[PATH_MAX];
	char node[64];
	char adapter[64]; /* the one that was named, or the node's first */
	bool no_namespace;
	bool devices; /* with /dev/infiniband */
	bool sdp; /* under libsdp.so */
	enum node_net net;
	/* set with the name: */
	char address[64]; /* of its servers */
	struct node_port ports[NODE_PORTS_MAX];
	int num_ports;
};

/** node_parse_net() - parse "node" or "host"; another word ends the program */
enum node_net node_parse_net(struct argp_state *state, const char *word);

/** node_split_port() - split @word, NODE or NODE:PORT, after the node. Digits after the
 *  last colon are a port; any other colon is part of the node's description.
 *  Return: the port; @otherwise if there is none */
long node_split_port(char *word, long otherwise);

/** node_dat() - name the node's uDAPL providers to its programs, unless DAT_OVERRIDE is set */
void node_dat(const struct node_place *at);
/** node_find() - check that @name is an adapter's node of @at->dir and keep
 *  its short name; NULL: the first one. With NET_OF_FABRIC the fabric's choice is
 *  kept, too. Return: 0; -1 (printed) */
int node_find(struct node_place *at, const char *name);
/** node_nth() - the @n-th (from 0) adapter's node of @at->dir; the last one when
 *  there are fewer. Return: 0; -1 (printed) */
int node_nth(struct node_place *at, size_t n);
/** node_count() - of nodes with an adapter; 0 as well when softibd does not answer (printed)
 */
size_t node_count(const struct node_place *at);
/** node_all() - each adapter's node of @at->dir, with @at->net or the fabric's choice
 *  Return: *@count of them, the caller's; NULL (printed) */
struct node_place *node_all(const struct node_place *at, size_t *count);
/** node_find_by_rank() - the node of this MPI rank among those of @list, names with
 *  commas or NODES_ALL. Return: 0; -1 (printed) */
int node_find_by_rank(struct node_place *at, const char *list);
/** node_check_list() - is each name in such a list that of a node? Return: 0; -1 (printed)
 */
int node_check_list(struct node_place *at, const char *list);
/** node_first() - the first node of such a list. Return: 0; -1 (printed) */
int node_first(struct node_place *at, const char *list);
/** node_index_of_rank() - which of so many nodes */
size_t node_index_of_rank(size_t rank, size_t size, size_t nodes);
/** node_prepend() - @dir in front of the list in the variable @key, unless it stands
 * there */
void node_prepend(const char *key, const char *dir);
/** node_enter() - become a process of the node: environment, and where the
 *  kernel allows /sys/class/infiniband* of its own.
 *  Return: 0; -1 no device files, though @at asks for them (printed) */
int node_enter(const struct node_place *at);
/** node_say_ucx() - tell, once for a tree of processes, how UCX is brought to use
 *  the fabric, unless UCX_TLS stands in the environment or in a word of @argv */
void node_say_ucx(char **argv);
/** node_prompt() - an interactive shell's prompt names the node */
void node_prompt(const char *node);
/** node_exec() - run @argv in place of this process. Return: 126, 127 (printed) */
int node_exec(char **argv);
/** node_sysfs() - lay the node's view of its adapters over /sys/class, in a mount
 *  namespace of this process.
 *  @files: of sysfs_prepare()
 *  Return: 0; -errno: the kernel does not allow it */
int node_sysfs(const char *files);
/** node_lay_class() - the same in the mount namespace that this process is in */
int node_lay_class(const char *files);
/** node_enter_user_namespace() - a new one, in which this user is himself, and a
 *  mount namespace in it. Return: 0; -errno */
int node_enter_user_namespace(void);
/** node_write() - the one line @text into the file @path. Return: was it taken? */
bool node_write(const char *path, const char *text);
struct abi_device_info;
/** node_devices() - the node's adapters, as the drop-in libraries ask for them.
 *  Return: how many, @max at most */
int node_devices(const struct node_place *at, struct abi_device_info *info, int max);
/** node_issm() - the file of a port that a subnet manager holds open.
 *  Return: 0; -ENODEV no such port; -ENAMETOOLONG */
int node_issm(const struct node_place *at, const char *device, unsigned int port,
	      char path[PATH_MAX]);
/** node_keep_mounts() - what is mounted over @below ("/sys", "/dev") from now on
 *  stays within this process's mount namespace. Return: 0; -errno */
int node_keep_mounts(const char *below);
/** node_dev() - lay device files over /dev/infiniband, in the mount namespace of this
 *  process. Return: 0; -errno */
int node_dev(const struct node_place *at);
/** node_files() - make them in @folder, of sysfs_prepare(), for programs that libnodefiles.so leads
 *  there, and set its variable. Return: 0; -errno */
int node_files(const struct node_place *at, const char *folder);

/* --- show.c: for people -------------------------------------------------- */

bool use_colour(FILE *out);
/** paint() - @text in the colour @how ("32") when stdout takes colours */
void paint(const char *how, const char *text, int width);
/** state_colour() - of a port state's name */
const char *state_colour(const char *state);
/** check_output() - was all that was printed written, too? Asked at the end of
 *  every command (main.c), and by those that print as they go.
 *  Return: EXIT_SUCCESS; EXIT_FAILURE (printed, once) */
int check_output(void);
/** print_json() - pretty, and a newline */
void print_json(struct json_object *o);
struct topology;
/** say_warning() - what its file left to be guessed, on stderr */
void say_warning(const struct topology *topo);
/** human_bytes() - "1.5 GB"; @text is room */
const char *human_bytes(uint64_t bytes, char text[16]);

#endif
