/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* softib status: how a fabric is. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "abi/session.h"
#include "base/types.h"
#include "softib.h"

#define FAULTS_SHOWN 5

struct status_args {
	struct common common;
	const char *node; /* NULL: the fabric */
};

static error_t parse_status(int key, char *arg, struct argp_state *state)
{
	struct status_args *args = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = state->child_inputs[1] = &args->common;
		return 0;
	case ARGP_KEY_ARG:
		if (args->node)
			argp_error(state, "expected one node at most");
		args->node = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_child common_children[] = {
	{.argp = &argp_fabric}, {.argp = &argp_json}, {0}};

static void print_title(const char *text, int width)
{
	paint("1", text, width);
}

static void print_line(const char *what)
{
	printf("  ");
	print_title(what, 12);
}

static void print_uptime(int64_t ms)
{
	int64_t s = ms / 1000;

	if (s >= 3600)
		printf("%lld h %lld min\n", (long long)(s / 3600),
		       (long long)(s / 60 % 60));
	else if (s >= 60)
		printf("%lld min %lld s\n", (long long)(s / 60), (long long)(s % 60));
	else
		printf("%lld.%03lld s\n", (long long)s, (long long)(ms % 1000));
}

static void print_ports(struct json_object *ports)
{
	static const struct {
		const char *key, *name;
	} states[] = {{"active", "Active"},
		      {"armed", "Armed"},
		      {"init", "Init"},
		      {"down", "Down"},
		      {"unplugged", "unplugged"}};
	const char *gap = "";

	for (size_t i = 0; i < ARRAY_SIZE(states); i++) {
		int64_t n = number_of(ports, states[i].key);

		if (!n && i)
			continue;
		printf("%s%lld ", gap, (long long)n);
		paint(state_colour(states[i].name), states[i].name, 0);
		gap = ", ";
	}
	putchar('\n');
}

static void print_manager(struct json_object *sm)
{
	if (member_of(sm, "program"))
		printf("%s (pid %lld) on ", text_of(sm, "program"), (long long)number_of(sm, "pid"));
	printf("%s, lid %lld\n", text_of(sm, "node"), (long long)number_of(sm, "lid"));
}

static void print_faults(struct json_object *rules)
{
	size_t n = count_of(rules);

	if (!n)
		return;
	print_line("faults");
	printf("%zu rule%s (softib fault list)\n", n, n == 1 ? "" : "s");
	for (size_t i = 0; i < n && i < FAULTS_SHOWN; i++)
		printf("  %-12s%lld: %s\n", "", (long long)number_of(item_of(rules, i), "id"),
		       text_of(item_of(rules, i), "rule"));
	if (n > FAULTS_SHOWN)
		printf("  %-12s...\n", "");
}

static void print_network(struct json_object *st)
{
	int64_t own = number_of(st, "own_addresses");

	if (strcmp(text_of(st, "net"), "node")) {
		printf("the machine's, which all nodes share\n");
		return;
	}
	printf("one of each node's own: addresses in %s and %s, ", text_of(st, "ipv4"),
	       text_of(st, "ipv6"));
	if (own)
		printf("%lld in the topology file, ", (long long)own);
	printf("%s mode\n", text_of(st, "ipoib_mode"));
}

static void print_protocols(struct json_object *protocols)
{
	static const struct {
		const char *key, *one, *many, *command;
	} rows[] = {
		{"ipoib_interfaces", "IP interface", "IP interfaces", "softib ipoib"},
		{"ethernet_interfaces", "Ethernet interface", "Ethernet interfaces", NULL},
		{"sdp_connections", "SDP connection", "SDP connections", NULL},
		{"srp_targets", "SRP target", "SRP targets", "softib srp target list"},
		{"srp_sessions", "SRP session", "SRP sessions", "softib srp list"},
	};
	const char *title = "protocols";

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int64_t n = number_of(protocols, rows[i].key);

		if (!n)
			continue;
		print_line(title);
		printf("%lld %s", (long long)n, n == 1 ? rows[i].one : rows[i].many);
		printf(rows[i].command ? " (%s)\n" : "\n", rows[i].command);
		title = "";
	}
}

static void print_status(struct json_object *st, const char *dir)
{
	struct json_object *sm = member_of(st, "sm");

	print_line("fabric");
	printf("%s\n", dir);
	print_line("topology");
	printf("%s: %lld adapter%s, %lld switch%s\n", text_of(st, "topology"),
	       (long long)number_of(st, "adapters"),
	       number_of(st, "adapters") == 1 ? "" : "s",
	       (long long)number_of(st, "switches"),
	       number_of(st, "switches") == 1 ? "" : "es");
	print_line("ports");
	print_ports(member_of(st, "ports"));
	print_line("manager");
	if (sm && member_of(sm, "node"))
		print_manager(sm);
	else if (sm && json_object_get_boolean(member_of(sm, "outside")))
		printf("lid %lld, beyond a cable to another fabric\n", (long long)number_of(sm, "lid"));
	else if (sm)
		printf("gone: no port has its lid %lld\n",
		       (long long)number_of(sm, "lid"));
	else
		printf(strcmp(text_of(st, "link_layer"), "ethernet") ? "none seen yet\n" :
			       "none: the links are Ethernet's\n");
	print_line("network");
	print_network(st);
	print_line("profile");
	printf("%s\n", text_of(st, "hca_profile"));
	if (member_of(st, "polled")) {
		print_line("polled");
		printf("%s\n", text_of(st, "polled"));
	}
	print_line("time-outs");
	printf("for an ACK %lld us or longer\n",
	       (long long)number_of(st, "min_ack_timeout_us"));
	print_protocols(member_of(st, "protocols"));
	print_faults(member_of(st, "faults"));
	print_line("softibd");
	printf("%s, pid %lld, up ", text_of(st, "version"),
	       (long long)number_of(st, "pid"));
	print_uptime(number_of(st, "uptime_ms"));
	if (member_of(st, "resources")) {
		print_line("resources");
		printf("%lld (softib resource show)\n",
		       (long long)number_of(st, "resources"));
	}
}

/* --- who manages, what fails ------------------------------------------------- */

/* Does the environment of process @pid say @line? */
static bool has_line(const char *environment, size_t bytes, const char *line)
{
	for (size_t at = 0; at < bytes; at += strlen(environment + at) + 1)
		if (!strcmp(environment + at, line))
			return true;
	return false;
}

static bool is_on_node(int pid, const char *dir, const char *node)
{
	static char text[256 << 10];
	char path[64], dir_line[PATH_MAX + 32], node_line[128];
	size_t bytes = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/environ", pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	bytes = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[bytes] = '\0';
	snprintf(dir_line, sizeof(dir_line), ABI_ENV_DIR "=%s", dir);
	snprintf(node_line, sizeof(node_line), ABI_ENV_NODE "=%s", node);
	return has_line(text, bytes, dir_line) && has_line(text, bytes, node_line);
}

static bool is_manager(int pid, char name[32])
{
	static const char *const managers[] = {"softib-sm", "opensm"};
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	file = fopen(path, "re");
	if (!file || fscanf(file, "%31s", name) != 1)
		name[0] = '\0';
	if (file)
		fclose(file);
	for (size_t i = 0; i < ARRAY_SIZE(managers); i++)
		if (!strcmp(name, managers[i]))
			return true;
	return false;
}

/* The fabric knows the master's port; the program is a process of that node, if
 * this user may look at it. */
static void add_manager(struct json_object *sm, const char *dir)
{
	DIR *proc = sm && member_of(sm, "node") ? opendir("/proc") : NULL;
	struct dirent *entry;
	char name[32];

	while (proc && (entry = readdir(proc))) {
		int pid = atoi(entry->d_name);

		if (pid <= 0 || !is_manager(pid, name) || !is_on_node(pid, dir, text_of(sm, "node")))
			continue;
		request_text(sm, "program", name);
		request_number(sm, "pid", pid);
		break;
	}
	if (proc)
		closedir(proc);
}

static void add_faults(struct json_object *status, const char *dir)
{
	struct json_object *answer = client_call_quiet(dir, request("fault_list"));
	struct json_object *rules = member_of(answer, "rules");

	if (rules)
		json_object_object_add(status, "faults", json_object_get(rules));
	json_object_put(answer);
}

/* @st: the status; @modules: what is loaded into the node */
static void print_node(struct json_object *st, struct json_object *modules, const char *node)
{
	const char *title = "modules";

	print_line("node");
	printf("%s\n", node);
	print_protocols(member_of(st, "protocols"));
	for (size_t i = 0; i < count_of(modules); i++) {
		print_line(title);
		printf("%s\n", text_of(item_of(modules, i), "name"));
		title = "";
	}
}

static int show_node(const char *dir, const struct status_args *args)
{
	struct json_object *ask = request("status"), *ask_modules = request("modules"), *answer, *modules;

	request_text(ask, "node", args->node);
	request_text(ask_modules, "node", args->node);
	answer = client_call(dir, ask);
	modules = client_call_quiet(dir, ask_modules);
	if (answer && args->common.json)
		print_json(answer);
	else if (answer)
		print_node(answer, member_of(modules, "modules"), args->node);
	json_object_put(modules);
	json_object_put(answer);
	return answer ? EXIT_SUCCESS : EXIT_FAILURE;
}

int cmd_status(int argc, char **argv)
{
	static const struct argp argp = {
		.parser = parse_status,
		.args_doc = "[NODE]",
		.children = common_children,
		.doc = "Show the state of a fabric: its ports, subnet manager, fault rules and softibd; or of a "
		       "node: which protocols and modules are in use there.\v"
		       "Examples:\n  softib status\n  softib status n1\n  softib status --fabric lab --json\n"};
	struct status_args args = {0};
	struct json_object *answer;
	char dir[PATH_MAX];

	argp_parse(&argp, argc, argv, 0, NULL, &args);
	if (place_choose(args.common.fabric, dir))
		return EXIT_FAILURE;
	if (args.node)
		return show_node(dir, &args);
	answer = client_call(dir, request("status"));
	if (!answer)
		return EXIT_FAILURE;
	add_manager(member_of(answer, "sm"), dir);
	add_faults(answer, dir);
	if (args.common.json)
		print_json(answer);
	else
		print_status(answer, dir);
	json_object_put(answer);
	return EXIT_SUCCESS;
}
