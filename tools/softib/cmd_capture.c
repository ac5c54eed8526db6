/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * softib capture: a pcapng file of what crosses the cables, for tshark. The packets come
 * through capture_reader.c and go into the file by capture_file.c. Beside what ends every
 * reader, --count and a reader that closes its pipe end the capture; statistics end the
 * file.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture_file.h"
#include "capture_reader.h"
#include "softib.h"

#define PROGRESS_MS 500

struct capture_args {
	struct common common;
	struct capture_place place;
	const char *file, *filter;
	long snap, count, ring_mib;
};

/** struct capture - a reader on its way into a file */
struct capture {
	struct capture_reader reader;
	const struct capture_args *args;
	struct capture_file file;
	bool terminal; /* progress is shown in place */
};

static void put(struct capture_reader *r, const struct abi_capture_record *record,
		const uint8_t *bytes, size_t len)
{
	struct capture *c = container_of(r, struct capture, reader);

	capture_file_put(&c->file, record, bytes, len);
	if ((c->args->count && c->file.packets >= (uint64_t)c->args->count) || c->file.error)
		ring_reader_end(&r->ring);
}

static void show_progress(const struct capture *c, const char *end)
{
	char text[16];

	fprintf(stderr, "%s%llu packets, %s, %llu dropped%s", c->terminal ? "\r" : "",
		(unsigned long long)c->file.packets, human_bytes(c->file.bytes, text),
		(unsigned long long)c->reader.ring.dropped, end);
}

static void flush(struct capture_reader *r)
{
	struct capture *c = container_of(r, struct capture, reader);

	capture_file_flush(&c->file);
	if (c->file.error)
		ring_reader_end(&r->ring);
	if (c->terminal)
		show_progress(c, " ");
}

/* --- beginning and end ---------------------------------------------------- */

static bool to_file(const struct capture_args *args)
{
	return args->file && strcmp(args->file, "-");
}

static bool output_is_terminal(const struct capture_args *args)
{
	if (to_file(args) || !isatty(STDOUT_FILENO))
		return false;
	complain("a capture is not for a terminal: 'softib capture -w FILE', or "
		 "'softib capture | tshark -r -'");
	return true;
}

static int open_output(const struct capture_args *args)
{
	int fd;

	if (!to_file(args))
		return STDOUT_FILENO;
	fd = open(args->file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0)
		complain("cannot write %s: %s", args->file, strerror(errno));
	return fd;
}

static int report(const struct capture *c)
{
	show_progress(c, "\n");
	if (!c->file.error || c->file.error == -EPIPE)
		return EXIT_SUCCESS;
	return complain("cannot write: %s", strerror(-c->file.error));
}

static int run(struct capture *c, const char *dir)
{
	if (capture_file_begin(&c->file) || output_is_terminal(c->args) ||
	    capture_reader_start(&c->reader, dir))
		return EXIT_FAILURE;
	c->file.out_fd = open_output(c->args); /* a file that is there is not lost before */
	if (c->file.out_fd < 0)
		return EXIT_FAILURE;
	ring_reader_run(&c->reader.ring);
	capture_file_end(&c->file, c->reader.ring.dropped);
	return report(c);
}

static int capture(const struct capture_args *args, const char *dir)
{
	bool terminal = isatty(STDERR_FILENO);
	struct capture c = {
		.reader = {.place = args->place,
			   .filter = args->filter,
			   .snap = (uint32_t)args->snap,
			   .ring_bytes = (uint32_t)args->ring_mib << 20,
			   .ring.progress_ms = terminal ? PROGRESS_MS : -1,
			   .put = put,
			   .idle = flush},
		.args = args,
		.file.snap = (uint32_t)args->snap,
		.terminal = terminal,
	};
	int status = EXIT_FAILURE;

	c.file.nodes = capture_nodes(dir);
	if (c.file.nodes)
		status = run(&c, dir);
	capture_file_free(&c.file);
	ring_reader_close(&c.reader.ring);
	json_object_put(c.file.nodes);
	return status;
}

/* --- the command line ----------------------------------------------------- */

static error_t parse_capture(int key, char *arg, struct argp_state *state)
{
	struct capture_args *args = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &args->common;
		return 0;
	case 'w':
		args->file = arg;
		return 0;
	case 'F':
		args->filter = arg;
		return 0;
	case 's':
		args->snap = capture_amount_parse(state, "snap", arg, UINT16_MAX);
		return 0;
	case 'c':
		args->count = capture_amount_parse(state, "count", arg, LONG_MAX);
		return 0;
	case 'b':
		args->ring_mib = capture_amount_parse(state, "buffer", arg, 1024);
		return 0;
	case ARGP_KEY_ARG:
		if (state->arg_num)
			argp_error(state, "one node or port only, not '%s' as well", arg);
		capture_place_parse(&args->place, arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int cmd_capture(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"write", 'w', "FILE", 0, "write to FILE instead of standard output", 0},
		{"filter", 'F', "EXPR", 0,
		 "capture only packets that match, such as 'qpn 0x12 and sent' or 'mad "
		 "and not smp'; an unknown term is refused with a list of all terms",
		 0},
		{"snap", 's', "BYTES", 0,
		 "keep at most this many bytes of each packet, from its LRH", 0},
		{"count", 'c', "N", 0, "end after N packets", 0},
		{"buffer", 'b', "MIB", 0, "size of the buffer that softibd fills; default 8",
		 0},
		{0},
	};
	static const struct argp_child children[] = {{.argp = &argp_fabric}, {0}};
	static const struct argp argp = {
		.options = options,
		.parser = parse_capture,
		.children = children,
		.args_doc = "[NODE:PORT|NODE|all]",
		.doc = "Capture the packets on cables as pcapng, the format of tshark and "
		       "Wireshark. Each port is an interface of the file; each packet is "
		       "marked as sent or received by its port.\v"
		       "The capture ends at ^C, after --count packets, or when its reader "
		       "or softibd ends. A capture of one port has each packet on its "
		       "cable once; one of 'all' (the default) has each packet twice, at "
		       "both ends of its cable.\n\n"
		       "Examples:\n"
		       "  softib capture -w all.pcapng\n"
		       "  softib capture n1:1 | tshark -r -\n"
		       "  softib capture s1 --filter 'class sa' | tshark -i - -V\n"};
	struct capture_args args = {.ring_mib = 8, .place.port = CAPTURE_PORT_ALL};
	char dir[PATH_MAX];

	argp_parse(&argp, argc, argv, 0, NULL, &args);
	if (place_choose(args.common.fabric, dir))
		return EXIT_FAILURE;
	return capture(&args, dir);
}
