/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* softib modprobe, rmmod, lsmod: modules in the stack of a node. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/types.h"
#include "softib.h"

#define WORDS_MAX 66

struct module_args {
	struct common common;
	const char *word[WORDS_MAX]; /* NODE, FILE or NAME, parameters */
	unsigned int num, least, most;
	bool parameters;
	long watchdog_ms; /* -1: softibd's default */
	const char *wants; /* what is missing, for people */
};

/* Return: @arg, in seconds, as milliseconds; -1: it is no such number */
static long milliseconds(const char *arg)
{
	char *end;
	double seconds = strtod(arg, &end);

	if (end == arg || *end || !(seconds >= 0 && seconds <= 86400))
		return -1;
	return seconds > 0 && seconds < 0.001 ? 1 : (long)(seconds * 1000);
}

static error_t parse_module(int key, char *arg, struct argp_state *state)
{
	struct module_args *args = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = state->child_inputs[1] = &args->common;
		return 0;
	case 'w':
		args->watchdog_ms = milliseconds(arg);
		if (args->watchdog_ms < 0)
			argp_error(state, "--watchdog takes 0 to 86400 seconds, not '%s'", arg);
		return 0;
	case 'P':
		args->parameters = true;
		return 0;
	case ARGP_KEY_ARG:
		if (args->num == args->most)
			argp_error(state, "'%s' is one word too many", arg);
		args->word[args->num++] = arg;
		return 0;
	case ARGP_KEY_END:
		if (args->num < args->least)
			argp_error(state, "%s", args->wants);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* Send @req, which is freed, and say what the answer notes. Return: exit status */
static int call(const char *dir, struct json_object *req, const int *fd)
{
	const struct client_fds fds = {.send = fd, .num_send = fd ? 1 : 0};
	struct json_object *answer = client_call_fds(dir, req, &fds);

	if (!answer)
		return EXIT_FAILURE;
	if (*text_of(answer, "note"))
		fprintf(stderr, "softib: %s\n", text_of(answer, "note"));
	json_object_put(answer);
	return EXIT_SUCCESS;
}

/* --- modprobe ---------------------------------------------------------------- */

/* as the kernel does: the file's name without its end, with '_' for '-' */
static void name_of_file(const char *file, char name[NAME_MAX + 1])
{
	const char *slash = strrchr(file, '/');
	size_t n;

	snprintf(name, NAME_MAX + 1, "%s", slash ? slash + 1 : file);
	n = strlen(name);
	if (n > 3 && !strcmp(name + n - 3, ".so"))
		name[n - 3] = 0;
	for (char *c = name; *c; c++)
		if (*c == '-')
			*c = '_';
}

static struct json_object *load_request(const struct module_args *args)
{
	struct json_object *req = request("module_load"), *params = json_object_new_array();
	char name[NAME_MAX + 1];

	name_of_file(args->word[1], name);
	request_text(req, "node", args->word[0]);
	request_text(req, "name", name);
	if (args->watchdog_ms >= 0)
		request_number(req, "watchdog_ms", args->watchdog_ms);
	for (unsigned int i = 2; i < args->num; i++)
		json_object_array_add(params, json_object_new_string(args->word[i]));
	json_object_object_add(req, "params", params);
	return req;
}

/* Return: the file that @word names, or the module of softib; -1 (said) */
static int open_module(const char *word)
{
	char path[PATH_MAX];
	int fd = open(word, O_RDONLY | O_CLOEXEC), error = errno;

	if (fd < 0 && place_module(word, path))
		fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 && !strchr(word, '/') && !strstr(word, ".so"))
		complain("there is no module '%s' of softib's own, and no file of this name: name "
			 "yours with its path, as ./%s.so", word, word);
	else if (fd < 0)
		complain("cannot read %s: %s", word, strerror(error));
	return fd;
}

int cmd_modprobe(int argc, char **argv)
{
	static const struct argp_child children[] = {{.argp = &argp_fabric}, {0}};
	static const struct argp_option options[] = {
		{"watchdog", 'w', "SECONDS", 0,
		 "end a function of the module that does not return for so long; default 10, "
		 "0: never, for a debugger",
		 0},
		{0}};
	static const struct argp argp = {
		.options = options,
		.parser = parse_module,
		.children = children,
		.args_doc = "NODE FILE.so|MODULE [NAME=VALUE...]",
		.doc = "Load a module into the stack of a node.\v"
		       "A module is a client of the midlayer, built against softib/module.h "
		       "and rdma/*.h, with parameters as modules of the kernel have them. It "
		       "runs inside of softibd, as its user. MODULE is one that softib brings: "
		       "kdapl, the Direct Access Transport interface.\n\n"
		       "Examples:\n  softib modprobe n1 kdapl\n"
		       "  softib modprobe n1 ./hello.so\n"
		       "  softib modprobe n2 ./hello.so count=3 verbose\n"};
	struct module_args args = {
		.least = 2,
		.most = WORDS_MAX,
		.wants = "name a node and a module's file",
		.watchdog_ms = -1};
	char dir[PATH_MAX];
	int fd, ret;

	argp_parse(&argp, argc, argv, 0, NULL, &args);
	if (place_choose(args.common.fabric, dir))
		return EXIT_FAILURE;
	fd = open_module(args.word[1]);
	if (fd < 0)
		return EXIT_FAILURE;
	ret = call(dir, load_request(&args), &fd);
	close(fd);
	return ret;
}

/* --- rmmod ------------------------------------------------------------------- */

int cmd_rmmod(int argc, char **argv)
{
	static const struct argp_child children[] = {{.argp = &argp_fabric}, {0}};
	static const struct argp argp = {
		.parser = parse_module,
		.children = children,
		.args_doc = "NODE NAME",
		.doc = "Unload a module from the stack of a node.\v"
		       "It gives back what it has; what it forgets is freed, and said.\n\n"
		       "Examples:\n  softib rmmod n1 hello\n"};
	struct module_args args = {
		.least = 2, .most = 2, .wants = "name a node and a module; 'softib lsmod' lists them"};
	struct json_object *req;
	char dir[PATH_MAX], name[NAME_MAX + 1];

	argp_parse(&argp, argc, argv, 0, NULL, &args);
	if (place_choose(args.common.fabric, dir))
		return EXIT_FAILURE;
	req = request("module_unload");
	name_of_file(args.word[1], name);
	request_text(req, "node", args.word[0]);
	request_text(req, "name", name);
	return call(dir, req, NULL);
}

/* --- lsmod ------------------------------------------------------------------- */

static void print_table(struct json_object *list)
{
	static const struct {
		const char *title;
		int width;
	} columns[] = {{"NODE", 16}, {"MODULE", 18}, {"SIZE", 10}, {"USED", 6}, {"STATE", 11}, {"USED BY", 0}};

	for (size_t i = 0; i < ARRAY_SIZE(columns); i++)
		paint("1", columns[i].title, columns[i].width);
	putchar('\n');
	for (size_t i = 0; i < count_of(list); i++) {
		struct json_object *o = item_of(list, i);
		const char *state = text_of(o, "state");

		printf("%-16s%-18s%-10lld%-6lld", text_of(o, "node"), text_of(o, "name"),
		       (long long)number_of(o, "bytes"), (long long)number_of(o, "refs"));
		paint(!strcmp(state, "live")	  ? "32"
		      : !strcmp(state, "crashed") ? "31"
						  : "33",
		      state, 11);
		printf("%s\n", text_of(o, "used_by"));
	}
}

static void print_parameters(struct json_object *list)
{
	for (size_t i = 0; i < count_of(list); i++) {
		struct json_object *o = item_of(list, i);

		json_object_object_foreach (member_of(o, "parameters"), name, value) {
			printf("%s %s %s=%s\n", text_of(o, "node"), text_of(o, "name"), name,
			       json_object_get_string(value));
		}
	}
}

int cmd_lsmod(int argc, char **argv)
{
	static const struct argp_child children[] = {
		{.argp = &argp_fabric}, {.argp = &argp_json}, {0}};
	static const struct argp_option options[] = {
		{"parameters", 'P', NULL, 0, "list the values of their parameters", 0}, {0}};
	static const struct argp argp = {
		.options = options,
		.parser = parse_module,
		.children = children,
		.args_doc = "[NODE]",
		.doc = "List the modules of a node, or of all nodes.\v"
		       "Examples:\n  softib lsmod\n  softib lsmod n1 --json\n"
		       "  softib lsmod --parameters\n"};
	struct module_args args = {.most = 1};
	struct json_object *req, *answer;
	char dir[PATH_MAX];

	argp_parse(&argp, argc, argv, 0, NULL, &args);
	if (place_choose(args.common.fabric, dir))
		return EXIT_FAILURE;
	req = request("modules");
	if (args.num)
		request_text(req, "node", args.word[0]);
	answer = client_call(dir, req);
	if (!answer)
		return EXIT_FAILURE;
	if (args.common.json)
		print_json(member_of(answer, "modules"));
	else if (args.parameters)
		print_parameters(member_of(answer, "modules"));
	else
		print_table(member_of(answer, "modules"));
	json_object_put(answer);
	return EXIT_SUCCESS;
}
