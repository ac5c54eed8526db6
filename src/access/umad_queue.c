/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Records for the program. They are queued in the socket, and, while it is full, in a list of
 * bounded length, so softibd never blocks on a reader. A record that is too long for one
 * message is sent as a memfd (umad_store.c).
 */
#include <errno.h>

#include "abi/fds.h"
#include "access/umad_private.h"

#define INLINE_BYTES (sizeof(struct ib_user_mad) + ABI_UMAD_INLINE)

struct umad_record *umad_record_of(struct ib_mad_recv_wc *wc)
{
	bool is_long = sizeof(struct ib_user_mad) + (size_t)wc->mad_len > INLINE_BYTES;
	struct umad_record *r = umad_record_alloc(is_long ? 0 : (size_t)wc->mad_len);

	if (!r || !is_long) {
		if (r)
			ib_coalesce_recv_mad(wc, r->mad.data);
		ib_free_recv_mad(wc);
		return r;
	}
	r->bytes += (size_t)wc->mad_len;
	r->segments = wc;
	return r;
}

struct umad_record *umad_record_alloc(size_t mad_bytes)
{
	struct umad_record *r = rt_zalloc(sizeof(*r) + mad_bytes);

	if (r)
		r->bytes = sizeof(r->mad) + mad_bytes;
	return r;
}

/* Send the oldest record. Return: 0; -EAGAIN: later, it remains; -errno: it is lost */
static int send_first(struct umad_session *s)
{
	struct umad_record *r = list_first_entry(&s->queue, struct umad_record, node);
	int ret;

	if (!r->segments)
		return abi_send_fds(s->fd, &r->mad, r->bytes, NULL, 0, MSG_DONTWAIT);
	if (!s->store) {
		ret = umad_store_begin(s, r);
		return ret ? ret : -EAGAIN;
	}
	ret = umad_store_moves(s) ? -EAGAIN : umad_store_send(s);
	if (ret != -EAGAIN)
		umad_store_drop(s);
	return ret;
}

void umad_watch(struct umad_session *s)
{
	rt_io_watch(&s->data, !s->load, !list_empty(&s->queue) && !umad_store_moves(s));
}

static void free_record(struct umad_record *r)
{
	if (r->segments)
		ib_free_recv_mad(r->segments);
	rt_free(r);
}

void umad_queue_pop(struct umad_session *s)
{
	struct umad_record *r = list_first_entry(&s->queue, struct umad_record, node);

	list_del(&r->node);
	s->queue_len--;
	s->queue_bytes -= r->bytes;
	free_record(r);
}

void umad_queue_flush(struct umad_session *s)
{
	while (!list_empty(&s->queue) && send_first(s) != -EAGAIN)
		umad_queue_pop(s);
	umad_watch(s);
}

void umad_queue(struct umad_session *s, struct umad_record *r)
{
	/* an empty queue accepts a record of any length */
	if (s->queue_len >= UMAD_QUEUE_MAX ||
	    (s->queue_len && s->queue_bytes + r->bytes > UMAD_QUEUE_BYTES)) {
		free_record(r);
		return;
	}
	list_add_tail(&r->node, &s->queue);
	s->queue_bytes += r->bytes;
	if (s->queue_len++ == 0)
		umad_queue_flush(s);
}

void umad_queue_drop(struct umad_session *s)
{
	umad_store_drop(s);
	while (!list_empty(&s->queue))
		umad_queue_pop(s);
}
