/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What is looked at: status, topo, counters, resource. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fabric/topology.h"
#include "softib.h"

static error_t parse_common_only(int key, char *arg, struct argp_state *state)
{
	if (key != ARGP_KEY_INIT)
		return ARGP_ERR_UNKNOWN;
	state->child_inputs[0] = state->child_inputs[1] = state->input;
	return 0;
}

static const struct argp_child common_children[] = {
	{.argp = &argp_fabric}, {.argp = &argp_json}, {0}};

static void print_title(const char *text, int width)
{
	paint("1", text, width);
}

/* --- status --------------------------------------------------------------------- */

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
		printf("%s, lid %lld\n", text_of(sm, "node"),
		       (long long)number_of(sm, "lid"));
	else if (sm)
		printf("gone: no port has its lid %lld\n",
		       (long long)number_of(sm, "lid"));
	else
		printf("none seen yet\n");
	print_line("time-outs");
	printf("for an ACK %lld us or longer\n",
	       (long long)number_of(st, "min_ack_timeout_us"));
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

int cmd_status(int argc, char **argv)
{
	static const struct argp argp = {
		.parser = parse_common_only,
		.children = common_children,
		.doc = "Show how a fabric is: its ports' states, its subnet manager.\v"
		       "Examples:\n  softib status\n  softib status --fabric lab --json\n"};
	struct common common = {0};
	struct json_object *answer;
	char dir[PATH_MAX];

	argp_parse(&argp, argc, argv, 0, NULL, &common);
	if (place_choose(common.fabric, dir))
		return EXIT_FAILURE;
	answer = client_call(dir, request("status"));
	if (!answer)
		return EXIT_FAILURE;
	if (common.json)
		print_json(answer);
	else
		print_status(answer, dir);
	json_object_put(answer);
	return EXIT_SUCCESS;
}

/* --- topo ------------------------------------------------------------------------ */

struct topo_args {
	struct common common;
	const char *format, *topology, *output;
};

static error_t parse_topo(int key, char *arg, struct argp_state *state)
{
	static const char *const formats[] = {"text", "dot", "svg", "ibnetdiscover",
					      "json"};
	struct topo_args *args = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = state->child_inputs[1] = &args->common;
		return 0;
	case 'F':
		for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
			if (!strcmp(arg, formats[i]))
				args->format = arg;
		if (args->format != arg)
			argp_error(
				state,
				"--format takes text, dot, svg, ibnetdiscover or json, "
				"not '%s'",
				arg);
		return 0;
	case 't':
		args->topology = arg;
		return 0;
	case 'o':
		args->output = arg;
		return 0;
	case ARGP_KEY_END:
		if (args->topology && (args->common.json || !strcmp(args->format, "json")))
			argp_error(state, "json is of a fabric that is up: leave out "
					  "--topology");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* what @command prints, to stdout by us: `dot` is content when nobody takes its
 * output. Return: exit status */
static int print_output_of(const char *command)
{
	FILE *pipe = popen(command, "r");
	char text[4096];
	size_t n;

	if (!pipe)
		return complain("cannot run dot: %s", strerror(errno));
	while ((n = fread(text, 1, sizeof(text), pipe)) > 0)
		fwrite(text, 1, n, stdout);
	return pclose(pipe) ? complain("dot failed") : EXIT_SUCCESS;
}

/* @dot through Graphviz. Return: exit status */
static int draw_svg(const char *dot)
{
	char command[32];
	FILE *file;
	int status;

	file = tmpfile();
	if (!file)
		return complain("cannot make a temporary file: %s", strerror(errno));
	snprintf(command, sizeof(command), "dot -Tsvg <&%d", fileno(file));
	if (fputs(dot, file) < 0 || fseek(file, 0, SEEK_SET))
		status = complain("cannot write a temporary file: %s", strerror(errno));
	else
		status = print_output_of(command);
	fclose(file);
	return status;
}

/* of a fabric that is up. Return: the text, the caller's; NULL (said) */
static char *ask_text(const struct topo_args *args, const char *format)
{
	struct json_object *req = request("topo"), *answer;
	char *text;

	request_text(req, "format", format);
	if (!strcmp(format, "text") && use_colour(stdout))
		json_object_object_add(req, "colour", json_object_new_boolean(1));
	answer = client_ask(&args->common, req);
	if (!answer)
		return NULL;
	if (!strcmp(format, "json"))
		text = strdup(json_object_to_json_string_ext(
			answer, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED |
					JSON_C_TO_STRING_NOSLASHESCAPE));
	else
		text = strdup(text_of(answer, "text"));
	json_object_put(answer);
	return text;
}

/* of a shape or a file that no softibd serves. Return: as above */
static char *print_spec(const struct topo_args *args, const char *format)
{
	struct topo_view view = {.colour = use_colour(stdout)};
	struct topology *topo;
	char err[512] = "", *text = NULL;
	size_t bytes = 0;
	FILE *out;

	if (topo_load(args->topology, &topo, err, sizeof(err))) {
		complain("%s", err);
		return NULL;
	}
	say_warning(topo);
	out = open_memstream(&text, &bytes);
	if (out) {
		if (!strcmp(format, "dot"))
			topo_print_dot(topo, &view, out);
		else if (!strcmp(format, "ibnetdiscover"))
			topo_print_ibnetdiscover(topo, &view, out);
		else
			topo_print_text(topo, &view, out);
		fclose(out);
	}
	topo_free(topo);
	return text;
}

int cmd_topo(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"format", 'F', "FORMAT", 0,
		 "text (default), dot, svg, ibnetdiscover (loads again with --topology) or json",
		 0},
		{"topology", 't', "SPEC", 0,
		 "of this shape or file instead of a fabric that is up", 0},
		{"output", 'o', "FILE", 0, "write there", 0},
		{0},
	};
	static const struct argp argp = {
		.options = options,
		.parser = parse_topo,
		.children = common_children,
		.doc = "Show or draw a topology, with the states of its links.\v"
		       "Examples:\n"
		       "  softib topo\n"
		       "  softib topo --format svg -o fabric.svg\n"
		       "  softib topo --topology dragonfly:4,2,2 --format ibnetdiscover\n"};
	struct topo_args args = {.format = "text"};
	bool svg;
	char *text;
	int status = EXIT_SUCCESS;

	argp_parse(&argp, argc, argv, 0, NULL, &args);
	if (args.common.json)
		args.format = "json";
	svg = !strcmp(args.format, "svg");
	if (svg && system("command -v dot >/dev/null 2>&1"))
		return complain(
			"--format svg needs Graphviz's 'dot': apt-get install graphviz "
			"(--format dot works without)");
	text = args.topology ? print_spec(&args, svg ? "dot" : args.format)
			     : ask_text(&args, svg ? "dot" : args.format);
	if (!text)
		return EXIT_FAILURE;
	if (args.output && !freopen(args.output, "w", stdout))
		status = complain("cannot write %s: %s", args.output, strerror(errno));
	else if (svg)
		status = draw_svg(text);
	else
		printf("%s%s", text, strcmp(args.format, "json") ? "" : "\n");
	free(text);
	return status;
}

/* --- counters ----------------------------------------------------------------------- */

#define PORT_ALL LONG_MIN /* none was named */

struct counters_args {
	struct common common;
	const char *node;
	long port;
};

static error_t parse_counters(int key, char *arg, struct argp_state *state)
{
	struct counters_args *args = state->input;
	char *colon, *end;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = state->child_inputs[1] = &args->common;
		return 0;
	case ARGP_KEY_ARG:
		if (state->arg_num)
			argp_error(state, "one node or port only, not '%s' as well", arg);
		args->node = arg;
		colon = strrchr(arg, ':');
		if (!colon || !colon[1])
			return 0;
		args->port = strtol(colon + 1, &end, 10);
		if (*end)
			args->port = PORT_ALL; /* a colon of the description's own */
		else
			*colon = '\0';
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* members that are traffic; whatever else is not 0 is printed by its name */
static const char *const traffic[] = {"xmit_bytes", "rcv_bytes", "xmit_packets",
				      "rcv_packets"};
static const char *const quiet[] = {"node",
				    "port",
				    "unicast_xmit_packets",
				    "unicast_rcv_packets",
				    "multicast_xmit_packets",
				    "multicast_rcv_packets"};

static bool is_in(const char *key, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(list[i], key))
			return true;
	return false;
}

static void print_counters(struct json_object *row)
{
	char port[96], text[16];
	const char *gap = "  ";

	snprintf(port, sizeof(port), "%s:%lld", text_of(row, "node"),
		 (long long)number_of(row, "port"));
	printf("%-12s", port);
	for (size_t i = 0; i < ARRAY_SIZE(traffic); i++) {
		uint64_t n = (uint64_t)number_of(row, traffic[i]);

		if (i < 2)
			printf("%12s", human_bytes(n, text));
		else
			printf("%14llu", (unsigned long long)n);
	}
	json_object_object_foreach (row, key, value) {
		if (is_in(key, traffic, ARRAY_SIZE(traffic)) ||
		    is_in(key, quiet, ARRAY_SIZE(quiet)) || !json_object_get_int64(value))
			continue;
		printf("%s", gap);
		snprintf(port, sizeof(port), "%s %lld", key,
			 (long long)json_object_get_int64(value));
		paint("33", port, 0);
		gap = ", ";
	}
	putchar('\n');
}

int cmd_counters(int argc, char **argv)
{
	static const struct argp argp = {
		.parser = parse_counters,
		.children = common_children,
		.args_doc = "[NODE[:PORT]]",
		.doc = "Show what ports counted since their last reset: as perfquery does, in bytes.\v"
		       "Examples:\n  softib counters\n  softib counters s1\n  softib counters n2:1 --json\n"};
	struct counters_args args = {.port = PORT_ALL};
	struct json_object *req = request("counters"), *answer, *list;

	argp_parse(&argp, argc, argv, 0, NULL, &args);
	if (args.node)
		request_text(req, "node", args.node);
	if (args.port != PORT_ALL)
		request_number(req, "port", args.port);
	answer = client_ask(&args.common, req);
	if (!answer)
		return EXIT_FAILURE;
	list = member_of(answer, "counters");
	if (args.common.json) {
		print_json(answer);
	} else {
		print_title("PORT", 12);
		print_title("        SENT    RECEIVED  PACKETS SENT      RECEIVED  OTHER",
			    0);
		putchar('\n');
		for (size_t i = 0; i < count_of(list); i++)
			print_counters(item_of(list, i));
	}
	json_object_put(answer);
	return EXIT_SUCCESS;
}

/* --- resource ------------------------------------------------------------------------ */

struct resource_args {
	struct common common;
	const char *node;
	bool show;
};

static error_t parse_resource(int key, char *arg, struct argp_state *state)
{
	struct resource_args *args = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = state->child_inputs[1] = &args->common;
		return 0;
	case ARGP_KEY_ARG:
		if (state->arg_num == 0 && !strcmp(arg, "show"))
			args->show = true;
		else if (state->arg_num == 1)
			args->node = arg;
		else
			argp_error(state, "'%s': expected 'show' and at most a node",
				   arg);
		return 0;
	case ARGP_KEY_END:
		if (!args->show)
			argp_error(state, "what? For example: softib resource show");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static void print_resource(struct json_object *row)
{
	printf("%-8s%-10s", text_of(row, "node"), text_of(row, "device"));
	paint("36", text_of(row, "type"), 7);
	printf("%-8lld%-10s%-9lld%s\n", (long long)number_of(row, "handle"),
	       text_of(row, "qpn"), (long long)number_of(row, "pid"),
	       text_of(row, "comm"));
}

int cmd_resource(int argc, char **argv)
{
	static const struct argp argp = {
		.parser = parse_resource,
		.children = common_children,
		.args_doc = "show [NODE]",
		.doc = "Show what programs, and softibd itself (pid 0), hold: contexts, protection "
		       "domains, queues, memory regions. What the dead leave must vanish from here.\v"
		       "Examples:\n  softib resource show\n  softib resource show n2 --json\n"};
	struct resource_args args = {0};
	struct json_object *req = request("resources"), *answer, *list;

	argp_parse(&argp, argc, argv, 0, NULL, &args);
	if (args.node)
		request_text(req, "node", args.node);
	answer = client_ask(&args.common, req);
	if (!answer)
		return EXIT_FAILURE;
	list = member_of(answer, "resources");
	if (args.common.json) {
		print_json(list);
	} else {
		print_title("NODE    DEVICE    TYPE   HANDLE  QPN       PID      OWNER",
			    0);
		putchar('\n');
		for (size_t i = 0; i < count_of(list); i++)
			print_resource(item_of(list, i));
	}
	json_object_put(answer);
	return EXIT_SUCCESS;
}
