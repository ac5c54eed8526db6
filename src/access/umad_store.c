/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A received message that is too long for one record on the socket goes to the program as a
 * memfd. softibd moves it there from its segments, some in each turn of the loop, when it is the
 * oldest record of the session; later records wait meanwhile. A store moves the segments
 * (STORE_MOVES), then waits for room in the socket (STORE_MOVED).
 */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "abi/fds.h"
#include "access/umad_private.h"

#define BYTES_PER_TURN (128u << 10)

enum store_state { STORE_MOVES, STORE_MOVED };

/** struct umad_store - the oldest record of a session, on its way into a memfd */
struct umad_store {
	struct umad_session *session;
	struct umad_record *record; /* the first of the session's queue */
	enum store_state state;
	int fd;
	off_t written;
	struct rt_work work;
	uint8_t bytes[BYTES_PER_TURN];
};

static int write_all(struct umad_store *store, const void *buf, size_t bytes)
{
	size_t done = 0;

	while (done < bytes) {
		ssize_t n = pwrite(store->fd, (const char *)buf + done, bytes - done,
				   store->written);
		if (n <= 0)
			return n ? -errno : -EIO;
		done += (size_t)n;
		store->written += n;
	}
	return 0;
}

static void store_work(struct rt_work *work)
{
	struct umad_store *store = container_of(work, struct umad_store, work);
	size_t n = ib_take_recv_mad(store->record->segments, store->bytes, BYTES_PER_TURN);
	struct umad_session *s = store->session;

	if (n > 0 && !write_all(store, store->bytes, n)) {
		rt_work_queue(s->rt, work);
		return;
	}
	if (n > 0) { /* no memory for the memfd: the record is lost */
		umad_store_drop(s);
		umad_queue_pop(s);
	} else {
		store->state = STORE_MOVED;
	}
	umad_queue_flush(s);
}

int umad_store_begin(struct umad_session *s, struct umad_record *record)
{
	struct umad_store *store = rt_zalloc(sizeof(*store));
	int ret;

	if (!store)
		return -ENOMEM;
	store->session = s;
	store->record = record;
	store->fd = memfd_create("softib-mad", MFD_CLOEXEC);
	ret = store->fd < 0 ? -errno : write_all(store, &record->mad, sizeof(record->mad));
	if (ret) {
		if (store->fd >= 0)
			close(store->fd);
		rt_free(store);
		return ret;
	}
	rt_work_init(&store->work, store_work);
	rt_work_queue(s->rt, &store->work);
	s->store = store;
	return 0;
}

bool umad_store_moves(const struct umad_session *s)
{
	return s->store && s->store->state == STORE_MOVES;
}

int umad_store_send(struct umad_session *s)
{
	const struct umad_record *r = s->store->record;

	return abi_send_fds(s->fd, &r->mad, sizeof(r->mad), &s->store->fd, 1, MSG_DONTWAIT);
}

void umad_store_drop(struct umad_session *s)
{
	if (!s->store)
		return;
	rt_work_cancel(&s->store->work);
	close(s->store->fd);
	rt_free(s->store);
	s->store = NULL;
}
