/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Records for the program. Those of one turn of the loop are sent in the next, by one system
 * call for a batch. While the socket is full they wait in a list of bounded length, so softibd
 * never blocks on a reader. A record that is too long for one
 * message is sent as a memfd (umad_store.c).
 */
#include <errno.h>

#include "abi/fds.h"
#include "access/umad_private.h"

#define BATCH	     16
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

/* Send the oldest records, up to one that is long. Return: how many were sent, at least one;
 * -errno: the first was not */
static int send_batch(struct umad_session *s)
{
	struct mmsghdr message[BATCH] = {0};
	struct iovec iov[BATCH];
	struct umad_record *r;
	unsigned int n = 0;
	int sent;

	list_for_each_entry(r, &s->queue, node) {
		if (n == BATCH || r->segments)
			break;
		iov[n] = (struct iovec){&r->mad, r->bytes};
		message[n].msg_hdr.msg_iov = &iov[n];
		message[n].msg_hdr.msg_iovlen = 1;
		n++;
	}
	do
		sent = sendmmsg(s->fd, message, n, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : sent;
}

/* Send the oldest records. Return: the number of records that were sent in one batch; 0: one long
 * record was sent; -EAGAIN: the socket is full, or the oldest record is not ready yet; -errno: it
 * cannot be sent, and is lost */
static int send_first(struct umad_session *s)
{
	struct umad_record *r = list_first_entry(&s->queue, struct umad_record, node);
	int ret;

	if (!r->segments)
		return send_batch(s);
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
	told_pause(s->told, s->load);
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
	quota_give(r->charged, &s->quota, r->bytes);
	free_record(r);
}

void umad_queue_flush(struct umad_session *s)
{
	while (!list_empty(&s->queue)) {
		int done = send_first(s);

		if (done == -EAGAIN)
			break;
		for (done = MAX(done, 1); done > 0; done--)
			umad_queue_pop(s);
	}
	umad_watch(s);
}

static void flush(struct rt_work *work)
{
	umad_queue_flush(container_of(work, struct umad_session, flush));
}

void umad_queue_init(struct umad_session *s)
{
	INIT_LIST_HEAD(&s->queue);
	rt_work_init(&s->flush, flush);
}

void umad_queue(struct umad_session *s, struct umad_record *r)
{
	/* an empty queue accepts a record of any length */
	if (s->queue_len >= UMAD_QUEUE_MAX ||
	    (s->queue_len && s->queue_bytes + r->bytes > UMAD_QUEUE_BYTES))
		r->charged = NULL;
	else
		r->charged = quota_take(&s->quota, r->bytes);
	if (!r->charged) {
		free_record(r);
		return;
	}
	list_add_tail(&r->node, &s->queue);
	s->queue_bytes += r->bytes;
	if (s->queue_len++ == 0)
		rt_work_queue(s->rt, &s->flush);
}

void umad_queue_drop(struct umad_session *s)
{
	rt_work_cancel(&s->flush);
	umad_store_drop(s);
	while (!list_empty(&s->queue))
		umad_queue_pop(s);
}
