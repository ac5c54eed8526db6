/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Each direction has one buffer, which is refilled only when it is empty, so that a receiver that
 * does not read stops its sender by flow control. The end of a stream is passed on by shutdown().
 */
#include "access/sdp_relay.h"

#include <errno.h>
#include <sys/socket.h>

#include "runtime/posix/closer.h"

#define BUFFER_BYTES 65536
#define ROUNDS_PER_TURN 8 /* reads and writes of one direction in one turn of the loop */

/** struct flow - one direction. @ended: all bytes and the end of the stream have been passed on */
struct flow {
	uint32_t at, bytes; /* of the buffer, @bytes are filled and @at of these delivered */
	bool ended;
	uint8_t buffer[BUFFER_BYTES];
};

struct relay {
	struct list_head node;
	int fd[2];
	struct rt_io io[2];
	struct flow flow[2]; /* flow[i] is from fd[i] to fd[!i] */
	struct quota_share quota;
};

static void end(struct relay *r)
{
	for (int i = 0; i < 2; i++) {
		rt_io_watch(&r->io[i], false, false);
		rt_close_foreign(r->fd[i]);
	}
	quota_leave(&r->quota);
	list_del(&r->node);
	rt_free(r);
}

/* Judge the result @n of send(). Return: true: try again later; false: it succeeded, or the socket failed */
static bool may_wait(ssize_t n)
{
	return n < 0 && (errno == EAGAIN || errno == EINTR);
}

/* Return: the number of bytes read or written; 0: none can be now; -1: a socket failed */
static ssize_t move_some(struct relay *r, int from)
{
	struct flow *f = &r->flow[from];
	ssize_t n;

	if (f->ended)
		return 0;
	if (f->at < f->bytes) {
		n = send(r->fd[!from], f->buffer + f->at, f->bytes - f->at,
			 MSG_DONTWAIT | MSG_NOSIGNAL);
		f->at += n > 0 ? (uint32_t)n : 0;
		return may_wait(n) ? 0 : n;
	}
	n = rt_receive(r->fd[from], f->buffer, sizeof(f->buffer), MSG_DONTWAIT, NULL, 0);
	if (n < 0)
		return n == -EAGAIN || n == -EINTR ? 0 : -1;
	if (!n) {
		shutdown(r->fd[!from], SHUT_WR);
		f->ended = true;
	}
	f->at = 0;
	f->bytes = (uint32_t)n;
	return n;
}

/* Return: false: a socket failed */
static bool move(struct relay *r, int from)
{
	ssize_t n = 1;

	for (int i = 0; i < ROUNDS_PER_TURN && n > 0; i++)
		n = move_some(r, from);
	return n >= 0;
}

static void watch(struct relay *r)
{
	for (int i = 0; i < 2; i++) {
		const struct flow *out = &r->flow[i], *in = &r->flow[!i];

		rt_io_watch(&r->io[i], !out->ended && out->at == out->bytes,
			    in->at < in->bytes);
	}
}

static void turn(struct relay *r)
{
	if (!move(r, 0) || !move(r, 1) || (r->flow[0].ended && r->flow[1].ended))
		end(r);
	else
		watch(r);
}

static void on_program(struct rt_io *io, bool readable, bool writable)
{
	turn(container_of(io, struct relay, io[0]));
}

static void on_tcp(struct rt_io *io, bool readable, bool writable)
{
	turn(container_of(io, struct relay, io[1]));
}

int sdp_relay_begin(struct rt *rt, struct list_head *all, const struct quota_share *of, int program, int tcp)
{
	struct relay *r = rt_zalloc(sizeof(*r));
	int ret = r ? quota_join(&r->quota, of, program, 2) : -ENOMEM;

	if (ret) {
		rt_free(r);
		return ret;
	}
	r->fd[0] = program;
	r->fd[1] = tcp;
	rt_io_init(rt, &r->io[0], program, on_program);
	rt_io_init(rt, &r->io[1], tcp, on_tcp);
	list_add_tail(&r->node, all);
	watch(r);
	return 0;
}

void sdp_relay_end_all(struct list_head *all)
{
	while (!list_empty(all))
		end(list_first_entry(all, struct relay, node));
}
