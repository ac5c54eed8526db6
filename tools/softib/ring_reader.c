/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The reader's side of records in shared memory.
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

#include "base/types.h"
#include "ring_reader.h"
#include "softib.h"

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
	/* The second one kills: who reads our output may have stopped to. A write of output that
	 * the signal interrupts goes on. */
	struct sigaction action = {.sa_handler = on_signal,
				   .sa_flags = (int)SA_RESETHAND | SA_RESTART};

	signalled_fd = control_fd;
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		sigaction(numbers[i], &action, NULL);
	signal(SIGPIPE, SIG_IGN);
}

void ring_reader_end(struct ring_reader *r)
{
	if (!r->ended)
		shutdown(r->control_fd, SHUT_WR);
	r->ended = true;
}

void ring_reader_end_after(struct ring_reader *r, unsigned int seconds)
{
	const struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

	sigaction(SIGALRM, &action, NULL);
	alarm(seconds);
}

/* --- the ring ------------------------------------------------------------- */

/* Return: false when it is empty */
static bool take_one(struct ring_reader *r)
{
	const uint8_t *bytes;
	size_t len;

	bytes = abi_ring_peek(&r->rx, &len);
	if (!bytes)
		return false;
	if (!r->ended)
		r->put(r, bytes, len);
	abi_ring_consume(&r->rx);
	return true;
}

static void take_all(struct ring_reader *r)
{
	while (take_one(r))
		;
	r->dropped = atomic_load(&r->shared->dropped);
	r->idle(r);
}

/* Return: false when softibd has closed the connection */
static bool wait_for_more(struct ring_reader *r)
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

void ring_reader_run(struct ring_reader *r)
{
	do {
		take_all(r);
	} while (wait_for_more(r));
	take_all(r); /* what came before softibd closed */
}

/* --- beginning and end ---------------------------------------------------- */

static int map_ring(struct ring_reader *r, int memory_fd, uint64_t ring_bytes)
{
	struct stat st;

	r->shared_bytes = ABI_READER_RING + abi_ring_bytes(ring_bytes);
	if (fstat(memory_fd, &st) || (uint64_t)st.st_size < r->shared_bytes)
		return complain("softibd's shared memory has an unexpected size");
	r->shared = mmap(NULL, r->shared_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
			 memory_fd, 0);
	if (r->shared == MAP_FAILED) {
		r->shared = NULL;
		return complain("cannot map softibd's shared memory: %s", strerror(errno));
	}
	r->rx = (struct abi_ring_rx){
		.ring = (void *)((char *)r->shared + ABI_READER_RING),
		.size = ring_bytes};
	return 0;
}

int ring_reader_start(struct ring_reader *r, const char *dir, struct json_object *req)
{
	int fd[2] = {-1, -1}, status;

	r->answer = client_call_hold(dir, req, &r->control_fd, fd);
	if (!r->answer)
		return EXIT_FAILURE;
	r->doorbell_fd = fd[1];
	status = map_ring(r, fd[0], (uint64_t)number_of(r->answer, "ring_bytes"));
	close(fd[0]);
	if (!status)
		catch_signals(r->control_fd);
	return status;
}

void ring_reader_close(struct ring_reader *r)
{
	if (r->shared)
		munmap(r->shared, r->shared_bytes);
	r->shared = NULL;
	json_object_put(r->answer);
	r->answer = NULL;
}
