/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A TCP socket that does not block: what cannot be written yet waits in a queue, and what
 * was read but cannot be used yet stays in a buffer. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rpcgate/gate.h"

struct waiting {
	struct list_head node;
	size_t bytes, done;
	uint8_t data[];
};

static void on_event(struct ev_loop *loop, struct ev_io *io, int events)
{
	relay_on_tcp(io->data, events);
}

void stream_open(struct stream *s, struct ev_loop *loop, int fd, void *owner)
{
	s->fd = fd;
	s->loop = loop;
	s->at = s->bytes = 0;
	s->at_end = false;
	ev_io_init(&s->in, on_event, fd, EV_READ);
	ev_io_init(&s->out, on_event, fd, EV_WRITE);
	s->in.data = s->out.data = owner;
}

void stream_close(struct stream *s)
{
	struct waiting *w, *next;

	if (s->fd < 0)
		return;
	ev_io_stop(s->loop, &s->in);
	ev_io_stop(s->loop, &s->out);
	close(s->fd);
	s->fd = -1;
	list_for_each_entry_safe(w, next, &s->queue, node)
		free(w);
	INIT_LIST_HEAD(&s->queue);
}

int stream_send(struct stream *s, const uint8_t *message, size_t bytes)
{
	struct waiting *w = malloc(sizeof(*w) + RPC_MARK_BYTES + bytes);

	if (!w)
		return -ENOMEM;
	w->bytes = RPC_MARK_BYTES + bytes;
	w->done = 0;
	rpc_record_mark(w->data, (uint32_t)bytes);
	memcpy(w->data + RPC_MARK_BYTES, message, bytes);
	list_add_tail(&w->node, &s->queue);
	return stream_flush(s);
}

int stream_flush(struct stream *s)
{
	while (!list_empty(&s->queue)) {
		struct waiting *w = list_first_entry(&s->queue, struct waiting, node);
		ssize_t n =
			send(s->fd, w->data + w->done, w->bytes - w->done, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != EAGAIN)
			return -errno;
		if (n < 0) {
			ev_io_start(s->loop, &s->out);
			return 0;
		}
		w->done += (size_t)n;
		if (w->done == w->bytes) {
			list_del(&w->node);
			free(w);
		}
	}
	ev_io_stop(s->loop, &s->out);
	return 0;
}

int stream_fill(struct stream *s)
{
	ssize_t n;

	if (s->bytes || s->at_end)
		return 0;
	do
		n = recv(s->fd, s->buffer, sizeof(s->buffer), 0);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	s->at = 0;
	s->bytes = (size_t)n;
	s->at_end = !n;
	return 0;
}

void stream_want(struct stream *s, bool wanted)
{
	if (wanted && !s->at_end)
		ev_io_start(s->loop, &s->in);
	else
		ev_io_stop(s->loop, &s->in);
}
