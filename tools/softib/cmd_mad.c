/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * softib mad snoop: the management datagrams that cross cables, decoded, a line each. It
 * is a capture (capture_reader.c) of which mad_text.c makes text.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "capture_reader.h"
#include "mad_text.h"
#include "softib.h"
#include "wire/mad.h"
#include "wire/packet.h"

struct mad_args {
	struct common common;
	struct capture_place place;
	const char *filter;
	bool fields;
	long count;
};

/** struct snoop - a capture of MADs that are printed as they come */
struct snoop {
	struct capture_reader reader;
	const struct mad_args *args;
	struct json_object *nodes;
	uint64_t printed, dropped_said;
};

static void print_time(uint64_t time_ns)
{
	time_t seconds = (time_t)(time_ns / 1000000000u);
	struct tm tm;
	char text[16];

	localtime_r(&seconds, &tm);
	strftime(text, sizeof(text), "%H:%M:%S", &tm);
	printf("%s.%06u ", text, (unsigned int)(time_ns % 1000000000u / 1000));
}

static void print_packet(struct snoop *s, const struct abi_capture_record *record,
			 const struct wire_packet *pkt)
{
	print_time(record->time_ns);
	printf("%s:%u %s lid %u qp%u > lid %u qp%u ",
	       text_of(item_of(s->nodes, record->node), "name"), record->port,
	       record->sent ? "sent" : "received", pkt->lrh.slid, pkt->deth.src_qpn,
	       pkt->lrh.dlid, pkt->bth.dest_qpn);
	mad_text(stdout, pkt->payload, pkt->payload_bytes, s->args->fields);
	putchar('\n');
}

static void put(struct capture_reader *r, const struct abi_capture_record *record,
		const uint8_t *bytes, size_t len)
{
	struct snoop *s = container_of(r, struct snoop, reader);
	struct wire_packet pkt;

	if (wire_packet_decode(bytes, len, &pkt) < 0)
		return; /* a fault rule has corrupted the headers */
	print_packet(s, record, &pkt);
	s->printed++;
	if (s->args->count && s->printed >= (uint64_t)s->args->count)
		ring_reader_end(&r->ring);
}

static void idle(struct capture_reader *r)
{
	struct snoop *s = container_of(r, struct snoop, reader);

	if (r->ring.dropped > s->dropped_said)
		complain("%llu MADs were dropped, since they came faster than they were "
			 "printed: select fewer with --filter",
			 (unsigned long long)(r->ring.dropped - s->dropped_said));
	s->dropped_said = r->ring.dropped;
	if (fflush(stdout))
		ring_reader_end(&r->ring); /* the reader has closed our output */
}

static int snoop(const struct mad_args *args, const char *dir)
{
	char filter[1024];
	struct snoop s = {
		.reader = {.place = args->place,
			   .filter = filter,
			   .ring.progress_ms = -1,
			   .put = put,
			   .idle = idle},
		.args = args,
	};
	int len = snprintf(filter, sizeof(filter), args->filter ? "mad and (%s)" : "mad",
			   args->filter);

	if ((size_t)len >= sizeof(filter))
		return complain("the filter is too long: at most %zu bytes",
				sizeof(filter) - sizeof("mad and ()"));
	s.nodes = capture_nodes(dir);
	if (!s.nodes)
		return EXIT_FAILURE;
	if (capture_reader_start(&s.reader, dir)) {
		json_object_put(s.nodes);
		return EXIT_FAILURE;
	}
	fprintf(stderr, "softib: capturing MADs; ^C ends\n");
	ring_reader_run(&s.reader.ring);
	ring_reader_close(&s.reader.ring);
	json_object_put(s.nodes);
	return EXIT_SUCCESS;
}

/* --- the command line ----------------------------------------------------- */

static error_t parse_mad(int key, char *arg, struct argp_state *state)
{
	struct mad_args *args = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &args->common;
		return 0;
	case 'F':
		args->filter = arg;
		return 0;
	case 'v':
		args->fields = true;
		return 0;
	case 'c':
		args->count = capture_amount_parse(state, "count", arg, LONG_MAX);
		return 0;
	case ARGP_KEY_ARG:
		if (state->arg_num > 1)
			argp_error(state, "one node or port only, not '%s' as well", arg);
		if (state->arg_num)
			capture_place_parse(&args->place, arg);
		else if (strcmp(arg, "snoop"))
			argp_error(state, "'softib mad snoop [NODE]', not '%s'", arg);
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "'softib mad snoop [NODE]' shows MADs");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int cmd_mad(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"fields", 'v', NULL, 0,
		 "also print the attribute's fields that are not zero", 0},
		{"filter", 'F', "EXPR", 0,
		 "which MADs, such as 'class sa' or 'not smp and sent'; a wrong one lists "
		 "the terms",
		 0},
		{"count", 'c', "N", 0, "end after N MADs", 0},
		{0},
	};
	static const struct argp_child children[] = {{.argp = &argp_fabric}, {0}};
	static const struct argp argp = {
		.options = options,
		.parser = parse_mad,
		.children = children,
		.args_doc = "snoop [NODE:PORT|NODE|all]",
		.doc = "Print the management datagrams (MADs) that cross cables, decoded, a "
		       "line "
		       "each.\v"
		       "Until ^C, --count, the end of the reader or of softibd. What stays "
		       "inside an adapter, as an SM's talk with its own node, crosses no "
		       "cable. 'all' (the default) sees each MAD at both ends of every cable: "
		       "-F sent leaves one.\n\n"
		       "Examples:\n"
		       "  softib mad snoop n1\n"
		       "  softib mad snoop --fields --filter 'class sa' n1\n"
		       "  softib mad snoop -F 'class cm and sent'\n"};
	struct mad_args args = {.place.port = CAPTURE_PORT_ALL};
	char dir[PATH_MAX];

	argp_parse(&argp, argc, argv, 0, NULL, &args);
	if (place_choose(args.common.fabric, dir))
		return EXIT_FAILURE;
	return snoop(&args, dir);
}
