/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * softib capture: a pcapng file of what crosses the cables, for tshark. The
 * packets come through a ring in shared memory (abi/capture.h); here they get
 * their CRCs and headers. Each port that saw one becomes an interface of the
 * file at its first packet.
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
#include <time.h>
#include <unistd.h>

#include "abi/capture.h"
#include "base/bytes.h"
#include "softib.h"
#include "wire/erf.h"
#include "wire/packet.h"
#include "wire/pcapng.h"

#define BATCH_BYTES (256u << 10)
#define PROGRESS_MS 500
#define PACKET_BLOCK_MAX                                                                 \
	(WIRE_PCAPNG_PACKET_HEAD + WIRE_ERF_BYTES + WIRE_PACKET_MAX +                    \
	 WIRE_PCAPNG_PACKET_TAIL)
#define CRC_BYTES      (WIRE_ICRC_BYTES + WIRE_VCRC_BYTES)
#define INTERFACE_NONE UINT32_MAX
#define PORT_ALL       LONG_MIN /* none was named */

struct capture_args {
	struct common common;
	const char *node, *file, *filter;
	long port, snap, count, ring_mib;
};

/** struct interface - a port in the file */
struct interface {
	uint32_t number; /* INTERFACE_NONE: no packet yet */
	uint64_t packets;
};

/** struct reader - one capture on its way into a file */
struct reader {
	const struct capture_args *args;
	struct json_object *nodes;    /* names, in softibd's order */
	struct interface **interface; /* [node][port] */
	uint32_t num_interfaces;
	/* --- from softibd --- */
	int control_fd, doorbell_fd;
	struct abi_capture *shared;
	size_t shared_bytes;
	struct abi_ring_rx rx;
	/* --- to the file --- */
	int out_fd;
	uint8_t *batch;
	size_t batch_bytes;
	int error;				    /* of writing: -errno */
	uint8_t known[WIRE_PACKET_MAX + CRC_BYTES]; /* the last packet, with its CRCs */
	size_t known_bytes;
	/* --- counters --- */
	uint64_t packets, bytes, dropped_seen, last_time_ns;
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

/* --- the file ------------------------------------------------------------- */

static void flush_batch(struct reader *r)
{
	size_t done = 0;

	while (done < r->batch_bytes && !r->error) {
		ssize_t n = write(r->out_fd, r->batch + done, r->batch_bytes - done);

		if (n >= 0)
			done += (size_t)n;
		else if (errno != EINTR)
			r->error = -errno;
	}
	r->batch_bytes = 0;
	if (r->error)
		ask_for_end(r);
}

/* room for @bytes, of which r->batch_bytes is moved on by who used them */
static uint8_t *batch_room(struct reader *r, size_t bytes)
{
	if (r->batch_bytes + bytes > BATCH_BYTES)
		flush_batch(r);
	return r->batch + r->batch_bytes;
}

static void put_block(struct reader *r, const void *block, int bytes)
{
	memcpy(batch_room(r, (size_t)bytes), block, (size_t)bytes);
	r->batch_bytes += (size_t)bytes;
}

static void describe_port(struct json_object *node, struct json_object *port, char *text,
			  size_t room)
{
	size_t n = (size_t)snprintf(text, room, "%s port %lld", text_of(node, "desc"),
				    (long long)number_of(port, "port"));

	if (member_of(port, "peer") && n < room)
		snprintf(text + n, room - n, ", cable to %s:%lld, %s %s",
			 text_of(port, "peer"), (long long)number_of(port, "peer_port"),
			 text_of(port, "width"), text_of(port, "speed"));
}

static struct json_object *port_of(struct json_object *node, unsigned number)
{
	struct json_object *ports = member_of(node, "ports");

	for (size_t i = 0; i < count_of(ports); i++) {
		struct json_object *port = item_of(ports, i);

		if (number_of(port, "port") == number)
			return port;
	}
	return NULL;
}

static void put_interface(struct reader *r, unsigned node_index, unsigned port_number)
{
	struct json_object *node = item_of(r->nodes, node_index);
	uint8_t block[WIRE_PCAPNG_BLOCK_MAX];
	char name[96], description[WIRE_PCAPNG_TEXT_MAX];
	uint32_t snap = (uint32_t)r->args->snap;

	snprintf(name, sizeof(name), "%s:%u", text_of(node, "name"), port_number);
	describe_port(node, port_of(node, port_number), description, sizeof(description));
	put_block(r, block,
		  wire_pcapng_interface_encode(WIRE_LINKTYPE_ERF,
					       snap ? snap + WIRE_ERF_BYTES : 0, name,
					       description, block));
}

/* of the port that saw @record; NULL: softibd names one that is not there */
static struct interface *interface_of(struct reader *r,
				      const struct abi_capture_record *record)
{
	struct json_object *node = item_of(r->nodes, record->node);
	unsigned ports = node ? (unsigned)number_of(node, "num_ports") : 0;
	struct interface *list;

	if (!node || record->port > ports)
		return NULL;
	list = r->interface[record->node];
	if (!list) {
		list = calloc(ports + 1, sizeof(*list));
		if (!list)
			return NULL;
		for (unsigned i = 0; i <= ports; i++)
			list[i].number = INTERFACE_NONE;
		r->interface[record->node] = list;
	}
	if (list[record->port].number == INTERFACE_NONE) {
		put_interface(r, record->node, record->port);
		list[record->port].number = r->num_interfaces++;
	}
	return &list[record->port];
}

/* behind the @len bytes of a whole packet; one that is seen on several cables
 * comes several times in a row, with the same CRCs */
static void put_crcs(struct reader *r, uint32_t wrong, uint8_t *packet, size_t len)
{
	if (len != r->known_bytes || memcmp(packet, r->known, len)) {
		memcpy(r->known, packet, len);
		put_be32(r->known + len, wire_icrc(packet, len));
		put_be16(r->known + len + WIRE_ICRC_BYTES,
			 wire_vcrc(r->known, len + WIRE_ICRC_BYTES));
		r->known_bytes = len;
	}
	memcpy(packet + len, r->known + len, CRC_BYTES);
	if (wrong & ABI_CAPTURE_WRONG_ICRC) {
		packet[len] ^= 0xff;
		put_be16(packet + len + WIRE_ICRC_BYTES,
			 wire_vcrc(packet, len + WIRE_ICRC_BYTES)); /* covers it as it is */
	}
	if (wrong & ABI_CAPTURE_WRONG_VCRC)
		packet[len + WIRE_ICRC_BYTES] ^= 0xff;
}

/* the packet with its CRCs as far as they are within the limit.
 * Return: its captured bytes */
static uint32_t put_packet_bytes(struct reader *r,
				 const struct abi_capture_record *record,
				 const uint8_t *bytes, size_t len, uint8_t *to)
{
	uint32_t limit = (uint32_t)r->args->snap;

	memcpy(to, bytes, len);
	if (len < record->bytes)
		return (uint32_t)len;
	put_crcs(r, record->wrong_crcs, to, len);
	return limit ? MIN(limit, record->bytes + CRC_BYTES) : record->bytes + CRC_BYTES;
}

static void put_packet(struct reader *r, struct interface *interface,
		       const struct abi_capture_record *record, const uint8_t *bytes,
		       size_t len)
{
	uint8_t *p = batch_room(r, PACKET_BLOCK_MAX);
	uint8_t *packet = p + WIRE_PCAPNG_PACKET_HEAD + WIRE_ERF_BYTES;
	uint32_t whole = record->bytes + CRC_BYTES;
	uint32_t captured = put_packet_bytes(r, record, bytes, len, packet);
	struct wire_pcapng_packet head = {
		.interface = interface->number,
		.time_ns = record->time_ns,
		.captured_bytes = WIRE_ERF_BYTES + captured,
		.bytes = WIRE_ERF_BYTES + whole,
		.sent = record->sent,
		.dropped = record->dropped - r->dropped_seen,
	};

	wire_pcapng_packet_head(&head, p);
	wire_erf_encode(record->time_ns, interface->number, whole, captured,
			p + WIRE_PCAPNG_PACKET_HEAD);
	r->batch_bytes += WIRE_PCAPNG_PACKET_HEAD + head.captured_bytes;
	r->batch_bytes += (size_t)wire_pcapng_packet_tail(&head, packet + captured);
	r->dropped_seen = record->dropped;
	r->last_time_ns = record->time_ns;
	interface->packets++;
	r->packets++;
	r->bytes += whole;
}

static void put_statistics(struct reader *r)
{
	uint64_t dropped = atomic_load(&r->shared->dropped);
	uint8_t block[WIRE_PCAPNG_BLOCK_MAX];
	char comment[96] = "";

	if (dropped)
		snprintf(comment, sizeof(comment),
			 "%llu packets of all ports were dropped: the reader was slow",
			 (unsigned long long)dropped);
	for (size_t n = 0; n < count_of(r->nodes); n++) {
		struct json_object *node = item_of(r->nodes, n);

		for (int64_t p = 0; r->interface[n] && p <= number_of(node, "num_ports");
		     p++) {
			const struct interface *i = &r->interface[n][p];

			if (i->number != INTERFACE_NONE)
				put_block(r, block,
					  wire_pcapng_statistics_encode(
						  i->number, r->last_time_ns, i->packets,
						  comment[0] ? comment : NULL, block));
		}
	}
}

/* --- the ring ------------------------------------------------------------- */

/* Return: false when it is empty */
static bool take_one(struct reader *r)
{
	struct abi_capture_record record;
	struct interface *interface;
	const uint8_t *bytes;
	size_t len;

	bytes = abi_ring_peek(&r->rx, &len);
	if (!bytes)
		return false;
	if (len >= sizeof(record) && len - sizeof(record) <= WIRE_PACKET_MAX &&
	    !r->ended) {
		memcpy(&record, bytes, sizeof(record));
		interface = interface_of(r, &record);
		if (interface)
			put_packet(r, interface, &record, bytes + sizeof(record),
				   len - sizeof(record));
	}
	abi_ring_consume(&r->rx);
	if (r->args->count && r->packets >= (uint64_t)r->args->count)
		ask_for_end(r);
	return true;
}

static void show_progress(struct reader *r, const char *end)
{
	char text[16];

	fprintf(stderr, "%s%llu packets, %s, %llu dropped%s",
		isatty(STDERR_FILENO) ? "\r" : "", (unsigned long long)r->packets,
		human_bytes(r->bytes, text),
		(unsigned long long)atomic_load(&r->shared->dropped), end);
}

/* Return: false when softibd has closed the connection */
static bool wait_for_more(struct reader *r)
{
	struct pollfd fd[2] = {{.fd = r->doorbell_fd, .events = POLLIN},
			       {.fd = r->control_fd, .events = POLLIN}};
	bool terminal = isatty(STDERR_FILENO);
	uint64_t count;

	if (terminal)
		show_progress(r, " ");
	if (!abi_ring_sleep(&r->rx))
		return true;
	poll(fd, ARRAY_SIZE(fd), terminal ? PROGRESS_MS : -1);
	abi_ring_wake(&r->rx);
	if (fd[0].revents && read(r->doorbell_fd, &count, sizeof(count)) < 0) {
		/* EAGAIN: rung for what was seen already */
	}
	return !fd[1].revents;
}

static void read_all(struct reader *r)
{
	uint8_t block[WIRE_PCAPNG_BLOCK_MAX];

	put_block(r, block, wire_pcapng_section_encode("softib " SOFTIB_VERSION, block));
	do {
		while (take_one(r))
			;
		flush_batch(r);
	} while (wait_for_more(r));
	while (take_one(r)) /* what came before softibd closed */
		;
	put_statistics(r);
	flush_batch(r);
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
	if (!r->error || r->error == -EPIPE)
		return EXIT_SUCCESS;
	return complain("cannot write: %s", strerror(-r->error));
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

static void free_reader(struct reader *r)
{
	for (size_t i = 0; r->interface && i < json_object_array_length(r->nodes); i++)
		free(r->interface[i]);
	free(r->interface);
	free(r->batch);
	if (r->shared)
		munmap(r->shared, r->shared_bytes);
	json_object_put(r->nodes);
}

static int run(struct reader *r, const char *dir)
{
	r->interface = calloc(json_object_array_length(r->nodes) + 1, sizeof(*r->interface));
	r->batch = malloc(BATCH_BYTES);
	if (!r->interface || !r->batch)
		return complain("out of memory");
	if (output_is_terminal(r->args) || start(r, dir))
		return EXIT_FAILURE;
	r->out_fd = open_output(r->args); /* a file that is there is not lost before */
	if (r->out_fd < 0)
		return EXIT_FAILURE;
	catch_signals(r->control_fd);
	read_all(r);
	return report(r);
}

static int capture(const struct capture_args *args, const char *dir)
{
	struct reader r = {.args = args};
	int status = EXIT_FAILURE;

	r.nodes = ask_nodes(dir);
	if (r.nodes)
		status = run(&r, dir);
	free_reader(&r);
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
