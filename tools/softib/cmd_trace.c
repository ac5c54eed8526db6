/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * softib trace: what happens in the stacks of nodes, a line for each event of a trace
 * point, live. The events come through ring_reader.c. The end is ^C, --seconds, --count,
 * the end of the reader of our output, or of softibd.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "abi/trace.h"
#include "base/types.h"
#include "capture_reader.h"
#include "ring_reader.h"
#include "softib.h"

struct trace_args {
	struct common common;
	const char *node;
	char *modules; /* names with commas; NULL: all */
	bool all, list;
	long seconds, count, ring_kib;
};

/** struct event - a record, taken apart */
struct event {
	struct abi_trace_record head;
	const char *module, *name, *node, *device, *text;
};

struct tracer {
	struct ring_reader ring;
	const struct trace_args *args;
	uint64_t printed, lost_said;
};

/* --- events ---------------------------------------------------------------- */

/* The strings are those of modules and programs: a terminal gets nothing else than text. */
static void clean(char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (bytes[i] && (bytes[i] < ' ' || bytes[i] > '~'))
			bytes[i] = '?';
}

/* Return: false if it is no record */
static bool take_apart(char *bytes, size_t len, struct event *e)
{
	const char **strings[ABI_TRACE_STRINGS] = {&e->module, &e->name, &e->node, &e->device,
						   &e->text};
	const char *at = bytes + sizeof(e->head), *end = bytes + len;

	if (len < sizeof(e->head))
		return false;
	memcpy(&e->head, bytes, sizeof(e->head));
	clean(bytes + sizeof(e->head), len - sizeof(e->head));
	for (size_t i = 0; i < ABI_TRACE_STRINGS; i++) {
		const char *zero = memchr(at, 0, (size_t)(end - at));

		if (!zero)
			return false;
		*strings[i] = at;
		at = zero + 1;
	}
	return true;
}

static void print_place(const struct event *e)
{
	fputs(e->node[0] ? e->node : "-", stdout);
	if (e->device[0])
		printf("/%s", e->device);
	if (e->head.port)
		printf("/%u", e->head.port);
}

static void print_line(const struct event *e)
{
	time_t seconds = (time_t)(e->head.time_ns / 1000000000u);
	struct tm tm;
	char text[16];

	localtime_r(&seconds, &tm);
	strftime(text, sizeof(text), "%H:%M:%S", &tm);
	printf("%s.%06u ", text, (unsigned int)(e->head.time_ns % 1000000000u / 1000));
	print_place(e);
	printf(" %s: %s\n", e->name, e->text);
}

/* the values of name=value pairs, as strings: hexadecimal numbers are what users look for */
static struct json_object *pairs_of(const char *text)
{
	struct json_object *o = json_object_new_object();

	while (*text) {
		size_t len = strcspn(text, " "), name = strcspn(text, "=");
		char key[64];

		if (name < len && name < sizeof(key)) {
			memcpy(key, text, name);
			key[name] = 0;
			json_object_object_add(o, key,
					       json_object_new_string_len(text + name + 1,
									  (int)(len - name - 1)));
		}
		text += len;
		text += strspn(text, " ");
	}
	return o;
}

static void print_object(const struct event *e)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "time_ns", json_object_new_uint64(e->head.time_ns));
	json_object_object_add(o, "module", json_object_new_string(e->module));
	json_object_object_add(o, "event", json_object_new_string(e->name));
	json_object_object_add(o, "node", json_object_new_string(e->node));
	json_object_object_add(o, "device", json_object_new_string(e->device));
	json_object_object_add(o, "port", json_object_new_uint64(e->head.port));
	json_object_object_add(o, "args", pairs_of(e->text));
	puts(json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(o);
}

/* a line where events are missing */
static void say_lost(struct tracer *t, uint64_t lost)
{
	unsigned long long n = lost - t->lost_said;

	if (lost <= t->lost_said)
		return;
	if (t->args->common.json)
		printf("{\"lost\":%llu}\n", n);
	else
		printf("--- %llu event%s lost: they came faster than they were read\n", n,
		       n == 1 ? "" : "s");
	t->lost_said = lost;
}

static void put(struct ring_reader *ring, const uint8_t *record, size_t len)
{
	struct tracer *t = container_of(ring, struct tracer, ring);
	char bytes[4096];
	struct event e;

	if (len > sizeof(bytes))
		return;
	memcpy(bytes, record, len);
	if (!take_apart(bytes, len, &e))
		return;
	say_lost(t, e.head.dropped);
	if (t->args->common.json)
		print_object(&e);
	else
		print_line(&e);
	t->printed++;
	if (t->args->count && t->printed >= (uint64_t)t->args->count)
		ring_reader_end(ring);
}

static void idle(struct ring_reader *ring)
{
	struct tracer *t = container_of(ring, struct tracer, ring);

	say_lost(t, ring->dropped);
	if (fflush(stdout))
		ring_reader_end(ring); /* the reader has closed our output */
}

/* --- beginning and end ------------------------------------------------------- */

static void request_modules(struct json_object *req, char *names)
{
	struct json_object *list = json_object_new_array();

	for (char *name = strtok(names, ","); name; name = strtok(NULL, ","))
		json_object_array_add(list, json_object_new_string(name));
	json_object_object_add(req, "modules", list);
}

static void say_unknown(struct json_object *answer)
{
	struct json_object *unknown = member_of(answer, "unknown");

	for (size_t i = 0; i < count_of(unknown); i++)
		complain("there is no module '%s' now; its events are shown once it is loaded. "
			 "'softib trace --list' lists modules",
			 json_object_get_string(item_of(unknown, i)));
}

static int trace(const struct trace_args *args, const char *dir)
{
	struct tracer t = {.ring = {.progress_ms = -1, .put = put, .idle = idle}, .args = args};
	struct json_object *req = request("trace");

	if (args->node)
		request_text(req, "node", args->node);
	if (args->modules)
		request_modules(req, args->modules);
	if (args->ring_kib)
		request_number(req, "ring_bytes", args->ring_kib << 10);
	if (ring_reader_start(&t.ring, dir, req)) {
		ring_reader_close(&t.ring);
		return EXIT_FAILURE;
	}
	say_unknown(t.ring.answer);
	fprintf(stderr, "softib: tracing; ^C ends\n");
	if (args->seconds)
		ring_reader_end_after(&t.ring, (unsigned int)args->seconds);
	ring_reader_run(&t.ring);
	ring_reader_close(&t.ring);
	return check_output();
}

static void print_point(struct json_object *point)
{
	const char *node = text_of(point, "node");

	printf("  %-18s %s\n%21s%s%s%s\n", text_of(point, "event"), text_of(point, "doc"), "",
	       text_of(point, "format"), node[0] ? "  on " : "", node);
}

static int list_points(const struct trace_args *args, const char *dir)
{
	struct json_object *answer = client_call(dir, request("trace_points")), *points;
	const char *module = "";

	if (!answer)
		return EXIT_FAILURE;
	points = member_of(answer, "points");
	if (args->common.json)
		puts(json_object_to_json_string_ext(points, JSON_C_TO_STRING_PLAIN |
								    JSON_C_TO_STRING_NOSLASHESCAPE));
	for (size_t i = 0; i < count_of(points) && !args->common.json; i++) {
		struct json_object *point = item_of(points, i);

		if (strcmp(module, text_of(point, "module")))
			printf("%s%s\n", i ? "\n" : "", text_of(point, "module"));
		module = text_of(point, "module");
		print_point(point);
	}
	json_object_put(answer);
	return EXIT_SUCCESS;
}

/* --- the command line -------------------------------------------------------- */

static void check_modules(struct argp_state *state, char *names)
{
	if (!names[strspn(names, ",")])
		argp_error(state, "--modules takes names with commas, such as cm,sa; "
				  "'softib trace --list' lists them");
}

static error_t parse_trace(int key, char *arg, struct argp_state *state)
{
	struct trace_args *args = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = state->child_inputs[1] = &args->common;
		return 0;
	case 'a':
		args->all = true;
		return 0;
	case 'l':
		args->list = true;
		return 0;
	case 'm':
		check_modules(state, arg);
		args->modules = arg;
		return 0;
	case 's':
		args->seconds = capture_amount_parse(state, "seconds", arg, 86400);
		return 0;
	case 'c':
		args->count = capture_amount_parse(state, "count", arg, LONG_MAX);
		return 0;
	case 'b':
		args->ring_kib = capture_amount_parse(state, "buffer", arg, 262144);
		return 0;
	case ARGP_KEY_ARG:
		if (args->node)
			argp_error(state, "one node only, not '%s' as well", arg);
		args->node = arg;
		return 0;
	case ARGP_KEY_END:
		if (!args->list && !args->node == !args->all)
			argp_error(state, "name one node, or --all nodes");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int cmd_trace(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"all", 'a', NULL, 0, "of all nodes", 0},
		{"modules", 'm', "NAMES", 0,
		 "only of these modules, with commas: cm, sa, mad, qp and so on, or modules that "
		 "are loaded; default: all",
		 0},
		{"list", 'l', NULL, 0, "list the trace points instead, with what they mean", 0},
		{"seconds", 's', "N", 0, "end after N seconds", 0},
		{"count", 'c', "N", 0, "end after N events", 0},
		{"buffer", 'b', "KIB", 0,
		 "size of the buffer that softibd fills; default 1024. Events for which it has no "
		 "room are lost, and counted",
		 0},
		{0},
	};
	static const struct argp_child children[] = {
		{.argp = &argp_fabric}, {.argp = &argp_json}, {0}};
	static const struct argp argp = {
		.options = options,
		.parser = parse_trace,
		.children = children,
		.args_doc = "NODE\n--all\n--list",
		.doc = "Print what happens in the stack of a node, live: a line for each event, with "
		       "its time, its place (node/device/port), its name, and name=value pairs."
		       "\vUntil ^C, --seconds, --count, or the end of the reader or of softibd. "
		       "While nobody traces, trace points cost nothing.\n\n"
		       "Examples:\n"
		       "  softib trace n1\n"
		       "  softib trace --all --modules cm,rdma_cm\n"
		       "  softib trace n1 --modules sa --json | jq .args\n"};
	struct trace_args args = {0};
	char dir[PATH_MAX];

	argp_parse(&argp, argc, argv, 0, NULL, &args);
	if (place_choose(args.common.fabric, dir))
		return EXIT_FAILURE;
	return args.list ? list_points(&args, dir) : trace(&args, dir);
}
