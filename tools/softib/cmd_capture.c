/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * softib capture: a pcapng file of what crosses the cables, for tshark. The
 * packets come through a ring in shared memory (abi/capture.h), and go into the
 * file by capture_file.c.
 *
 * The end comes from outside (SIGINT, SIGTERM, SIGHUP), by --count, from the
 * reader (a closed pipe) or from softibd. In each case the connection to
 * softibd is closed first; when softibd has closed it too, the ring holds all
 * there will be: it is read to its end, and statistics end the file.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abi/capture.h"
#include "capture_file.h"
#include "softib.h"

#define PROGRESS_MS 500
#define PORT_ALL    LONG_MIN /* none was named */

struct capture_args {
	struct common common;
	const char *node, *file, *filter;
	long port, snap, count, ring_mib;
};

/** struct reader - one capture on its way into a file */
struct reader {
	const struct capture_args *args;
	struct capture_file file;
	/* --- from softibd --- */
	int control_fd, doorbell_fd;
	struct abi_capture *shared;
	size_t shared_bytes;
	struct abi_ring_rx rx;
	bool ended; /* no more is wanted */
};

/* where a signal finds what to close; it is closed from the handler, so that
 * no signal can come between a look at a flag and the sleep */
static int signalled_fd = -1;

static void on_signal(int number)
{
	shutdown(signalled_fd, SHUT_WR);
}

static void catch_signals(int control_fd)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
	/* the second one kills: who reads our output may have stopped to */
	struct sigaction action = {.sa_handler = on_signal,
				   .sa_flags = (int)SA_RESETHAND};

	signalled_fd = control_fd;
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		sigaction(numbers[i], &action, NULL);
	signal(SIGPIPE, SIG_IGN);
}

static void ask_for_end(struct reader *r)
{
	if (!r->ended)
		shutdown(r->control_fd, SHUT_WR);
	r->ended = true;
}

/* --- the ring ------------------------------------------------------------- */

/* Return: false when it is empty */
static bool take_one(struct reader *r)
{
	struct abi_capture_record record;
	const uint8_t *bytes;
	size_t len;

	bytes = abi_ring_peek(&r->rx, &len);
	if (!bytes)
		return false;
	if (len >= sizeof(record) && len - sizeof(record) <= WIRE_PACKET_MAX &&
	    !r->ended) {
		memcpy(&record, bytes, sizeof(record));
		capture_file_put(&r->file, &record, bytes + sizeof(record),
				 len - sizeof(record));
	}
	abi_ring_consume(&r->rx);
	if ((r->args->count && r->file.packets >= (uint64_t)r->args->count) ||
	    r->file.error)
		ask_for_end(r);
	return true;
}

static void show_progress(struct reader *r, const char *end)
{
	char text[16];

	fprintf(stderr, "%s%llu packets, %s, %llu dropped%s",
		isatty(STDERR_FILENO) ? "\r" : "", (unsigned long long)r->file.packets,
		human_bytes(r->file.bytes, text),
		(unsigned long long)atomic_load(&r->shared->dropped), end);
}

/* Return: false when softibd has closed the connection */
static bool wait_for_more(struct reader *r)
{
	struct pollfd fd[2] = {{.fd = r->doorbell_fd, .events = POLLIN},
			       {.fd = r->control_fd, .events = POLLIN}};
	bool terminal = isatty(STDERR_FILENO);
	char rings[64];

	if (terminal)
		show_progress(r, " ");
	if (!abi_ring_sleep(&r->rx))
		return true;
	poll(fd, ARRAY_SIZE(fd), terminal ? PROGRESS_MS : -1);
	abi_ring_wake(&r->rx);
	if (fd[0].revents && read(r->doorbell_fd, rings, sizeof(rings)) < 0) {
		/* EAGAIN: rung for what was seen already */
	}
	return !fd[1].revents;
}

static void read_all(struct reader *r)
{
	do {
		while (take_one(r))
			;
		capture_file_flush(&r->file);
		if (r->file.error)
			ask_for_end(r);
	} while (wait_for_more(r));
	while (take_one(r)) /* what came before softibd closed */
		;
	capture_file_end(&r->file, atomic_load(&r->shared->dropped));
}

/* --- beginning and end ---------------------------------------------------- */

static int map_ring(struct reader *r, int memory_fd, uint64_t ring_bytes)
{
	struct stat st;

	r->shared_bytes = ABI_CAPTURE_RING + abi_ring_bytes(ring_bytes);
	if (fstat(memory_fd, &st) || (uint64_t)st.st_size < r->shared_bytes)
		return complain("softibd's capture has an unexpected size");
	r->shared = mmap(NULL, r->shared_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
			 memory_fd, 0);
	if (r->shared == MAP_FAILED) {
		r->shared = NULL;
		return complain("cannot map the capture: %s", strerror(errno));
	}
	r->rx = (struct abi_ring_rx){
		.ring = (void *)((char *)r->shared + ABI_CAPTURE_RING),
		.size = ring_bytes};
	return 0;
}

static int start(struct reader *r, const char *dir)
{
	const struct capture_args *args = r->args;
	struct json_object *req = request("capture"), *answer;
	int fd[2] = {-1, -1}, status;

	if (args->node)
		request_text(req, "node", args->node);
	if (args->port != PORT_ALL)
		request_number(req, "port", args->port);
	if (args->filter)
		request_text(req, "filter", args->filter);
	request_number(req, "snap", args->snap);
	request_number(req, "ring_bytes", args->ring_mib << 20);
	answer = client_call_hold(dir, req, &r->control_fd, fd);
	if (!answer)
		return EXIT_FAILURE;
	r->doorbell_fd = fd[1];
	status = map_ring(r, fd[0], (uint64_t)number_of(answer, "ring_bytes"));
	close(fd[0]);
	json_object_put(answer);
	return status;
}

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

static int report(struct reader *r)
{
	show_progress(r, "\n");
	if (!r->file.error || r->file.error == -EPIPE)
		return EXIT_SUCCESS;
	return complain("cannot write: %s", strerror(-r->file.error));
}

static struct json_object *ask_nodes(const char *dir)
{
	struct json_object *answer = client_call(dir, request("topo")), *nodes;

	if (!answer)
		return NULL;
	nodes = json_object_get(member_of(answer, "nodes"));
	json_object_put(answer);
	return nodes;
}

static int run(struct reader *r, const char *dir)
{
	if (capture_file_begin(&r->file) || output_is_terminal(r->args) || start(r, dir))
		return EXIT_FAILURE;
	r->file.out_fd = open_output(r->args); /* a file that is there is not lost before */
	if (r->file.out_fd < 0)
		return EXIT_FAILURE;
	catch_signals(r->control_fd);
	read_all(r);
	return report(r);
}

static int capture(const struct capture_args *args, const char *dir)
{
	struct reader r = {.args = args, .file.snap = (uint32_t)args->snap};
	int status = EXIT_FAILURE;

	r.file.nodes = ask_nodes(dir);
	if (r.file.nodes)
		status = run(&r, dir);
	capture_file_free(&r.file);
	if (r.shared)
		munmap(r.shared, r.shared_bytes);
	json_object_put(r.file.nodes);
	return status;
}

/* --- the command line ----------------------------------------------------- */

static long parse_amount(struct argp_state *state, const char *option, const char *arg,
			 long most)
{
	char *end;
	long n = strtol(arg, &end, 10);

	if (*end || end == arg || n < 1 || n > most)
		argp_error(state, "--%s takes a number from 1 to %ld, not '%s'", option,
			   most, arg);
	return n;
}

static void parse_place(struct capture_args *args, char *arg)
{
	char *colon = strrchr(arg, ':'), *end;

	if (!strcmp(arg, "all"))
		return;
	args->node = arg;
	if (!colon || !colon[1])
		return;
	args->port = strtol(colon + 1, &end, 10);
	if (*end)
		args->port = PORT_ALL; /* a colon of the description's own */
	else
		*colon = '\0';
}

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
		args->snap = parse_amount(state, "snap", arg, UINT16_MAX);
		return 0;
	case 'c':
		args->count = parse_amount(state, "count", arg, LONG_MAX);
		return 0;
	case 'b':
		args->ring_mib = parse_amount(state, "buffer", arg, 1024);
		return 0;
	case ARGP_KEY_ARG:
		if (state->arg_num)
			argp_error(state, "one node or port only, not '%s' as well", arg);
		parse_place(args, arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int cmd_capture(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"write", 'w', "FILE", 0, "write there, not on standard output", 0},
		{"filter", 'F', "EXPR", 0,
		 "packets that are meant, such as 'qpn 0x12 and sent' or 'mad and not "
		 "smp'; "
		 "a wrong one lists the terms",
		 0},
		{"snap", 's', "BYTES", 0,
		 "keep that many bytes of a packet, from its LRH", 0},
		{"count", 'c', "N", 0, "end after N packets", 0},
		{"buffer", 'b', "MIB", 0, "between softibd and this command; default 8",
		 0},
		{0},
	};
	static const struct argp_child children[] = {{.argp = &argp_fabric}, {0}};
	static const struct argp argp = {
		.options = options,
		.parser = parse_capture,
		.children = children,
		.args_doc = "[NODE:PORT|NODE|all]",
		.doc = "Capture the packets on cables as pcapng, which tshark and "
		       "Wireshark read; "
		       "an interface of the file is a port, and says whether it sent or "
		       "received.\v"
		       "Until ^C, --count, the end of the reader or of softibd. One port "
		       "sees "
		       "all of its cable once; 'all' (the default) sees each packet at "
		       "both ends "
		       "of every cable.\n\n"
		       "Examples:\n"
		       "  softib capture -w all.pcapng\n"
		       "  softib capture n1:1 | tshark -r -\n"
		       "  softib capture s1 --filter 'class sa' | tshark -i - -V\n"};
	struct capture_args args = {.ring_mib = 8, .port = PORT_ALL};
	char dir[PATH_MAX];

	argp_parse(&argp, argc, argv, 0, NULL, &args);
	if (place_choose(args.common.fabric, dir))
		return EXIT_FAILURE;
	return capture(&args, dir);
}
