/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The reader's side of a capture. */
#include <stdlib.h>
#include <string.h>

#include "capture_reader.h"
#include "softib.h"
#include "wire/packet.h"

static void put(struct ring_reader *ring, const uint8_t *bytes, size_t len)
{
	struct capture_reader *r = container_of(ring, struct capture_reader, ring);
	struct abi_capture_record record;

	if (len < sizeof(record) || len - sizeof(record) > WIRE_PACKET_MAX)
		return;
	memcpy(&record, bytes, sizeof(record));
	r->put(r, &record, bytes + sizeof(record), len - sizeof(record));
}

static void idle(struct ring_reader *ring)
{
	struct capture_reader *r = container_of(ring, struct capture_reader, ring);

	r->idle(r);
}

int capture_reader_start(struct capture_reader *r, const char *dir)
{
	struct json_object *req = request("capture");

	if (r->place.node)
		request_text(req, "node", r->place.node);
	if (r->place.port != CAPTURE_PORT_ALL)
		request_number(req, "port", r->place.port);
	if (r->filter)
		request_text(req, "filter", r->filter);
	request_number(req, "snap", r->snap);
	if (r->ring_bytes)
		request_number(req, "ring_bytes", r->ring_bytes);
	r->ring.put = put;
	r->ring.idle = idle;
	return ring_reader_start(&r->ring, dir, req);
}

/* --- names ------------------------------------------------------------------ */

void capture_place_parse(struct capture_place *place, char *arg)
{
	if (!strcmp(arg, "all"))
		return;
	place->port = node_split_port(arg, CAPTURE_PORT_ALL);
	place->node = arg;
}

long capture_amount_parse(struct argp_state *state, const char *option, const char *arg,
			  long most)
{
	char *end;
	long n = strtol(arg, &end, 10);

	if (*end || end == arg || n < 1 || n > most)
		argp_error(state, "--%s takes a number from 1 to %ld, not '%s'", option,
			   most, arg);
	return n;
}

struct json_object *capture_nodes(const char *dir)
{
	struct json_object *answer = client_call(dir, request("topo")), *nodes;

	if (!answer)
		return NULL;
	nodes = json_object_get(member_of(answer, "nodes"));
	json_object_put(answer);
	return nodes;
}
