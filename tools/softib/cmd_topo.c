/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* softib topo: topologies as text, drawings and files. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/types.h"
#include "fabric/topology.h"
#include "softib.h"

static const struct argp_child common_children[] = {
	{.argp = &argp_fabric}, {.argp = &argp_json}, {0}};

struct topo_args {
	struct common common;
	const char *format, *topology, *output, *node;
	bool all;
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
	case 'a':
		args->all = true;
		return 0;
	case ARGP_KEY_ARG:
		if (state->arg_num)
			argp_error(state, "one node only, not '%s' as well", arg);
		args->node = arg;
		return 0;
	case ARGP_KEY_END:
		if (args->node && strcmp(args->format, "text") && strcmp(args->format, "json"))
			argp_error(state, "a node's neighbourhood is text or json, not %s",
				   args->format);
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

/* of a fabric that is up. Return: the text, the caller's; NULL (printed) */
static char *ask_text(const struct topo_args *args, const char *format)
{
	struct json_object *req = request("topo"), *answer;
	char *text;

	request_text(req, "format", format);
	if (args->node)
		request_text(req, "node", args->node);
	if (!args->all)
		json_object_object_add(req, "brief", json_object_new_boolean(1));
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
	const char *fabric = args->common.fabric ? args->common.fabric : DEFAULT_NAME;
	struct topo_view view = {.colour = use_colour(stdout)};
	struct topology *topo;
	char err[512] = "", *text = NULL;
	size_t bytes = 0;
	FILE *out;

	if (topo_load(args->topology, fabric, &topo, err, sizeof(err))) {
		complain("%s", err);
		return NULL;
	}
	say_warning(topo);
	if (args->node && topo_find(topo, args->node) < 0) {
		complain("no node \"%s\" in %s", args->node, args->topology);
		topo_free(topo);
		return NULL;
	}
	out = open_memstream(&text, &bytes);
	if (out) {
		if (!strcmp(format, "dot"))
			topo_print_dot(topo, &view, out);
		else if (!strcmp(format, "ibnetdiscover"))
			topo_print_ibnetdiscover(topo, &view, out);
		else if (args->node)
			topo_print_node(topo, &view, topo_find(topo, args->node), out);
		else
			(args->all ? topo_print_text : topo_print_brief)(topo, &view, out);
		fclose(out);
	}
	topo_free(topo);
	return text;
}

int cmd_topo(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"format", 'F', "FORMAT", 0,
		 "text (default), dot, svg, ibnetdiscover (which --topology reads) or json",
		 0},
		{"topology", 't', "SPEC", 0,
		 "show this shape or file instead of a fabric that is up; --fabric is the name "
		 "that its GUIDs are derived from",
		 0},
		{"output", 'o', "FILE", 0, "write there", 0},
		{"all", 'a', NULL, 0,
		 "list every cable in text, also of a fabric of 50 nodes or more", 0},
		{0},
	};
	static const struct argp argp = {
		.options = options,
		.parser = parse_topo,
		.children = common_children,
		.args_doc = "[NODE]",
		.doc = "Show or draw a topology with the states of its links, or only what NODE "
		       "is cabled to.\v"
		       "Examples:\n"
		       "  softib topo\n"
		       "  softib topo n3\n"
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
