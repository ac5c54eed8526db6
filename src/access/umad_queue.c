/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Records for the program. They are queued in the socket, and, while it is full, in a list of
 * bounded length, so softibd never blocks on a reader. A record that is too long for one
 * message is sent as a memfd.
 */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "abi/fds.h"
#include "access/umad_private.h"

#define INLINE_BYTES (sizeof(struct ib_user_mad) + ABI_UMAD_INLINE)

struct umad_record *umad_record_alloc(size_t mad_bytes)
{
	struct umad_record *r = rt_zalloc(sizeof(*r) + mad_bytes);

	if (r)
		r->bytes = sizeof(r->mad) + mad_bytes;
	return r;
}

static int write_all(int fd, const void *buf, size_t bytes)
{
	size_t done = 0;

	while (done < bytes) {
		ssize_t n = pwrite(fd, (const char *)buf + done, bytes - done, (off_t)done);
		if (n <= 0)
			return n ? -errno : -EIO;
		done += (size_t)n;
	}
	return 0;
}

static int send_as_memfd(int fd, const struct umad_record *r)
{
	int memfd = memfd_create("softib-mad", MFD_CLOEXEC);
	int ret;

	if (memfd < 0)
		return -errno;
	ret = write_all(memfd, &r->mad, r->bytes);
	if (!ret)
		ret = abi_send_fds(fd, &r->mad, sizeof(r->mad), &memfd, 1, MSG_DONTWAIT);
	close(memfd);
	return ret;
}

static int send_record(int fd, const struct umad_record *r)
{
	if (r->bytes > INLINE_BYTES)
		return send_as_memfd(fd, r);
	return abi_send_fds(fd, &r->mad, r->bytes, NULL, 0, MSG_DONTWAIT);
}

void umad_watch(struct umad_session *s)
{
	rt_io_watch(&s->data, !s->load, !list_empty(&s->queue));
}

static void drop_first(struct umad_session *s)
{
	struct umad_record *r = list_first_entry(&s->queue, struct umad_record, node);

	list_del(&r->node);
	s->queue_len--;
	s->queue_bytes -= r->bytes;
	rt_free(r);
}

void umad_queue_flush(struct umad_session *s)
{
	while (!list_empty(&s->queue)) {
		struct umad_record *r = list_first_entry(&s->queue, struct umad_record, node);

		if (send_record(s->fd, r) == -EAGAIN)
			break;
		drop_first(s);
	}
	umad_watch(s);
}

void umad_queue(struct umad_session *s, struct umad_record *r)
{
	/* an empty queue accepts a record of any length */
	if (s->queue_len >= UMAD_QUEUE_MAX ||
	    (s->queue_len && s->queue_bytes + r->bytes > UMAD_QUEUE_BYTES)) {
		rt_free(r);
		return;
	}
	list_add_tail(&r->node, &s->queue);
	s->queue_bytes += r->bytes;
	if (s->queue_len++ == 0)
		umad_queue_flush(s);
}

void umad_queue_drop(struct umad_session *s)
{
	while (!list_empty(&s->queue))
		drop_first(s);
}
