/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The reader's side of a capture.
 *
 * The end comes from outside (SIGINT, SIGTERM, SIGHUP), from the reader's user or from
 * softibd. In each case the connection to softibd is closed first; when softibd has
 * closed it too, the ring holds all there will be, and is read to its end.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture_reader.h"
#include "softib.h"
#include "wire/packet.h"

/* The handler finds here what to close. It closes it itself, so that no signal can come
 * between a look at a flag and the sleep. */
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

void capture_reader_end(struct capture_reader *r)
{
	if (!r->ended)
		shutdown(r->control_fd, SHUT_WR);
	r->ended = true;
}

/* --- the ring ------------------------------------------------------------- */

/* Return: false when it is empty */
static bool take_one(struct capture_reader *r)
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
		r->put(r, &record, bytes + sizeof(record), len - sizeof(record));
	}
	abi_ring_consume(&r->rx);
	return true;
}

static void take_all(struct capture_reader *r)
{
	while (take_one(r))
		;
	r->dropped = atomic_load(&r->shared->dropped);
	r->idle(r);
}

/* Return: false when softibd has closed the connection */
static bool wait_for_more(struct capture_reader *r)
{
	struct pollfd fd[2] = {{.fd = r->doorbell_fd, .events = POLLIN},
			       {.fd = r->control_fd, .events = POLLIN}};
	char rings[64];

	if (!abi_ring_sleep(&r->rx))
		return true;
	poll(fd, ARRAY_SIZE(fd), r->progress_ms);
	abi_ring_wake(&r->rx);
	if (fd[0].revents && read(r->doorbell_fd, rings, sizeof(rings)) < 0) {
		/* EAGAIN: rung for what was seen already */
	}
	return !fd[1].revents;
}

void capture_reader_run(struct capture_reader *r)
{
	do {
		take_all(r);
	} while (wait_for_more(r));
	take_all(r); /* what came before softibd closed */
}

/* --- beginning and end ---------------------------------------------------- */

static int map_ring(struct capture_reader *r, int memory_fd, uint64_t ring_bytes)
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

int capture_reader_start(struct capture_reader *r, const char *dir)
{
	struct json_object *req = request("capture"), *answer;
	int fd[2] = {-1, -1}, status;

	if (r->place.node)
		request_text(req, "node", r->place.node);
	if (r->place.port != CAPTURE_PORT_ALL)
		request_number(req, "port", r->place.port);
	if (r->filter)
		request_text(req, "filter", r->filter);
	request_number(req, "snap", r->snap);
	if (r->ring_bytes)
		request_number(req, "ring_bytes", r->ring_bytes);
	answer = client_call_hold(dir, req, &r->control_fd, fd);
	if (!answer)
		return EXIT_FAILURE;
	r->doorbell_fd = fd[1];
	status = map_ring(r, fd[0], (uint64_t)number_of(answer, "ring_bytes"));
	close(fd[0]);
	json_object_put(answer);
	if (!status)
		catch_signals(r->control_fd);
	return status;
}

void capture_reader_close(struct capture_reader *r)
{
	if (r->shared)
		munmap(r->shared, r->shared_bytes);
	r->shared = NULL;
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
