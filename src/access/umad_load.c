/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Records that are too long for one message on the socket arrive as a memfd of up to 64 MiB.
 * softibd reads such a record directly into the segments of the MAD message, a batch in each
 * turn of the loop; later records of the session wait until it is complete. A record that
 * cannot be sent is not read at all.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "access/umad_private.h"
#include "runtime/posix/closer.h"

#define SEGMENTS_PER_TURN 512

/** struct umad_load - a record that is being read */
struct umad_load {
	struct umad_session *session;
	struct umad_send *send; /* its headers, and the data that has been read so far */
	int fd;
	int segments; /* number of segments that have been read */
	struct rt_work work;
};

/* softibd reads only memfds, because a read from any other file could block. */
static bool is_memfd(int fd)
{
	return fcntl(fd, F_GET_SEALS) >= 0;
}

static void end_load(struct umad_load *load)
{
	struct umad_session *s = load->session;

	rt_work_cancel(&load->work);
	rt_close_foreign(load->fd);
	rt_free(load);
	s->load = NULL;
	umad_watch(s);
}

void umad_load_drop(struct umad_session *s)
{
	if (!s->load)
		return;
	umad_send_discard(s->load->send);
	end_load(s->load);
}

struct umad_agent *umad_load_agent(const struct umad_session *s)
{
	return s->load ? s->load->send->agent : NULL;
}

/* Return: false if the file is shorter than the record, because it was truncated meanwhile */
static bool read_some(struct umad_load *load)
{
	struct ib_mad_send_buf *msg = load->send->msg;
	off_t from = (off_t)sizeof(struct ib_user_mad) + msg->hdr_len +
		     (off_t)load->segments * msg->seg_size;
	int left = msg->data_len - load->segments * msg->seg_size, n = 0;
	struct iovec iov[SEGMENTS_PER_TURN];
	size_t bytes = 0;

	for (; left > 0 && n < SEGMENTS_PER_TURN; n++) {
		iov[n].iov_base = ib_get_rmpp_segment(msg, load->segments + n + 1);
		iov[n].iov_len = (size_t)MIN(left, msg->seg_size);
		bytes += iov[n].iov_len;
		left -= (int)iov[n].iov_len;
	}
	load->segments += n;
	return preadv(load->fd, iov, n, from) == (ssize_t)bytes;
}

static void load_work(struct rt_work *work)
{
	struct umad_load *load = container_of(work, struct umad_load, work);
	struct umad_session *s = load->session;
	struct umad_send *send = load->send;

	if (!read_some(load)) {
		umad_load_drop(s);
	} else if (load->segments < send->msg->seg_count) {
		rt_work_queue(s->rt, work);
	} else {
		end_load(load);
		umad_send_submit(send);
	}
}

static void start(struct umad_session *s, struct umad_send *send, int fd)
{
	struct umad_load *load = rt_zalloc(sizeof(*load));

	if (!load) {
		umad_send_refuse(send, -ENOMEM);
		rt_close_foreign(fd);
		return;
	}
	*load = (struct umad_load){.session = s, .send = send, .fd = fd};
	rt_work_init(&load->work, load_work);
	s->load = load;
	umad_watch(s);
	rt_work_queue(s->rt, &load->work);
}

void umad_load(struct umad_session *s, int fd)
{
	struct {
		struct ib_user_mad record;
		uint8_t mad[IB_MGMT_MAD_SIZE];
	} head;
	struct umad_send *send = NULL;
	struct stat st;
	ssize_t n = -1;

	if (is_memfd(fd) && !fstat(fd, &st) && st.st_size <= (off_t)UMAD_MESSAGE_MAX)
		n = pread(fd, &head, sizeof(head), 0);
	if (n == (ssize_t)sizeof(head) && st.st_size > n)
		send = umad_send_prepare(s, &head.record,
					 (size_t)st.st_size - sizeof(head.record));
	else if (n > 0)
		umad_write(s, &head.record, (size_t)n);
	if (send)
		start(s, send, fd);
	else
		rt_close_foreign(fd);
}
