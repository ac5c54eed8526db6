/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The character device of a port, /dev/infiniband/umadN, as the sockets of softibd serve it.
 * Its descriptor is the data socket, which callers may poll; the control socket beside it
 * takes the registrations. One record on the data socket is what one read() or write()
 * moves on the character device; a record too large for that travels as its header with a
 * memfd.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "abi/fds.h"
#include "abi/told.h"
#include "umad_private.h"

#define MAD_BYTES 256
#define INLINE_BYTES (sizeof(struct ib_user_mad) + ABI_UMAD_INLINE)
#define ENDED_PAUSE_US 100000 /* a program that reads on after the end of softibd reads so seldom */

struct open_port {
	struct open_port *next;
	int fd, control;
	int users; /* calls that are in it, and the table */
	pthread_mutex_t control_lock; /* one request at a time */
	pthread_mutex_t recv_lock;    /* a peek and its receive belong together */
	pthread_mutex_t send_lock;
	/* --- protected by send_lock --- */
	struct abi_told ring;
};

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static struct open_port *table;

/* every successful port_get() needs its port_put() */
static struct open_port *port_get(int fd)
{
	struct open_port *p;

	pthread_mutex_lock(&table_lock);
	for (p = table; p && p->fd != fd; p = p->next)
		;
	if (p)
		p->users++;
	pthread_mutex_unlock(&table_lock);
	return p;
}

static void port_put(struct open_port *p)
{
	bool last;

	pthread_mutex_lock(&table_lock);
	last = --p->users == 0;
	pthread_mutex_unlock(&table_lock);
	if (!last)
		return;
	close(p->control);
	abi_told_unmap(&p->ring);
	pthread_mutex_destroy(&p->send_lock);
	pthread_mutex_destroy(&p->control_lock);
	pthread_mutex_destroy(&p->recv_lock);
	free(p);
}

int umad_file_open(const char *device, int port)
{
	struct open_port *p = calloc(1, sizeof(*p));
	int fd;

	if (!p)
		return -ENOMEM;
	fd = umad_session_open(device, port, &p->control);
	if (fd < 0) {
		free(p);
		return fd;
	}
	pthread_mutex_init(&p->control_lock, NULL);
	pthread_mutex_init(&p->recv_lock, NULL);
	pthread_mutex_init(&p->send_lock, NULL);
	p->fd = fd;
	p->users = 1;
	pthread_mutex_lock(&table_lock);
	p->next = table;
	table = p;
	pthread_mutex_unlock(&table_lock);
	return fd;
}

int umad_file_close(int fd)
{
	struct open_port **link, *p;

	pthread_mutex_lock(&table_lock);
	for (link = &table; *link && (*link)->fd != fd; link = &(*link)->next)
		;
	p = *link;
	if (p)
		*link = p->next;
	pthread_mutex_unlock(&table_lock);
	if (!p)
		return -EBADF;
	close(fd);
	port_put(p);
	return 0;
}

int umad_file_ioctl(int fd, unsigned int request, void *arg, size_t bytes)
{
	struct open_port *p = port_get(fd);
	int ret;

	if (!p)
		return -EBADF;
	pthread_mutex_lock(&p->control_lock);
	ret = umad_session_ioctl(p->control, request, arg, bytes);
	pthread_mutex_unlock(&p->control_lock);
	port_put(p);
	return ret;
}

/* --- writing --- */

/* a full socket is waited for: writing to the character device never fails
 * for lack of room */
static int send_record(int fd, const void *bytes, size_t len, const int *fds, unsigned n)
{
	int ret;

	while ((ret = abi_send_fds(fd, bytes, len, fds, n, MSG_DONTWAIT)) == -EAGAIN)
		poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, -1);
	return ret;
}

static int send_large(int fd, const struct ib_user_mad *mad, size_t bytes)
{
	int memfd = memfd_create("umad", MFD_CLOEXEC);
	size_t done = 0;
	int ret = 0;

	if (memfd < 0)
		return -errno;
	while (!ret && done < bytes) {
		ssize_t n = write(memfd, (const char *)mad + done, bytes - done);

		if (n > 0)
			done += (size_t)n;
		else if (errno != EINTR)
			ret = n ? -errno : -EIO;
	}
	if (!ret)
		ret = send_record(fd, mad, sizeof(*mad), &memfd, 1);
	close(memfd);
	return ret;
}

/* Ask for a ring, or, if there is one, let softibd run all that stands in it. Context: send_lock
 * Return: 0; -EEXIST; -errno */
static int ask_for_ring(struct open_port *p, int fds[ABI_TOLD_FDS])
{
	int ret;

	pthread_mutex_lock(&p->control_lock);
	ret = umad_session_ask_for_ring(p->control, fds);
	pthread_mutex_unlock(&p->control_lock);
	return ret;
}

/* A full ring is waited for, as a full socket is. Context: send_lock. Return: 0; -errno */
static int put_record(struct open_port *p, const struct ib_user_mad *mad, size_t bytes)
{
	const struct iovec part = {(void *)mad, bytes};
	int fds[ABI_TOLD_FDS], ret;

	while (!abi_told_put(&p->ring, &part, 1)) {
		abi_told_flush(&p->ring);
		ret = ask_for_ring(p, fds);
		if (ret != -EEXIST)
			return ret ? ret : -EIO;
	}
	abi_told_flush(&p->ring);
	return 0;
}

/* Context: send_lock. Return: as send_record() */
static int send_message(struct open_port *p, const struct ib_user_mad *mad, size_t bytes)
{
	int fds[ABI_TOLD_FDS] = {-1, -1}, ret = send_record(p->fd, mad, bytes, NULL, 0);

	if (!ret && abi_told_asks(&p->ring)) {
		ask_for_ring(p, fds);
		abi_told_map(&p->ring, fds);
	}
	return ret;
}

/* Context: send_lock */
static int write_record(struct open_port *p, const struct ib_user_mad *mad, size_t bytes)
{
	if (bytes > INLINE_BYTES)
		return send_large(p->fd, mad, bytes);
	if (bytes <= ABI_TOLD_RECORD_MAX && abi_told_usable(&p->ring))
		return put_record(p, mad, bytes);
	return send_message(p, mad, bytes);
}

int umad_file_write(int fd, const struct ib_user_mad *mad, size_t bytes)
{
	struct open_port *p = port_get(fd);
	int ret;

	if (!p)
		return -EBADF;
	pthread_mutex_lock(&p->send_lock);
	ret = bytes < sizeof(*mad) ? -EINVAL : write_record(p, mad, bytes);
	pthread_mutex_unlock(&p->send_lock);
	port_put(p);
	return ret;
}

/* --- reading --- */

static int read_memfd(int memfd, void *buf, size_t bytes)
{
	size_t done = 0;

	while (done < bytes) {
		ssize_t n = pread(memfd, (char *)buf + done, bytes - done, (off_t)done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		done += (size_t)n;
	}
	return 0;
}

/* the first segment must fit, so that the message's length can be told */
static int too_small(const struct ib_user_mad *mad, size_t size, size_t needed)
{
	size_t first = sizeof(*mad) + MIN(needed - sizeof(*mad), (size_t)MAD_BYTES);

	return size < first ? -EINVAL : -ENOSPC;
}

/*
 * One record into @mad of @size bytes, as read(2) of the character device:
 * one that does not fit stays first in the queue, and as much of it as one
 * MAD was copied. Return: its bytes; -EINVAL, -ENOSPC too small; -errno
 */
static ssize_t receive_record(int fd, struct ib_user_mad *mad, size_t size)
{
	int memfd = -1, ret = 0;
	ssize_t n = abi_receive(fd, mad, size, MSG_PEEK | MSG_TRUNC, &memfd, 1);
	size_t needed;

	if (n < 0)
		return n;
	needed = memfd >= 0 && n >= (ssize_t)sizeof(*mad) ? mad->length : (size_t)n;
	if (!n) /* softibd has ended, and poll(2) reports the file as readable from now on: opensm, which goes on,
		   would use a whole processor, and fill the disk with its log */
		usleep(ENDED_PAUSE_US);
	if (n < (ssize_t)sizeof(*mad) || needed < sizeof(*mad))
		ret = -EIO;
	else if (needed > size)
		ret = too_small(mad, size, needed);
	if (memfd >= 0 && (!ret || ret == -ENOSPC)) {
		int err = read_memfd(memfd, mad, ret ? sizeof(*mad) + MAD_BYTES : needed);

		ret = err ? err : ret;
	}
	if (memfd >= 0)
		close(memfd);
	if (ret)
		return ret;
	/* take it off the queue; a large one was read from the memfd already */
	n = abi_receive(fd, mad, memfd >= 0 ? sizeof(*mad) : size, 0, &memfd, 1);
	if (memfd >= 0)
		close(memfd);
	return n < 0 ? n : (ssize_t)needed;
}

ssize_t umad_file_read(int fd, struct ib_user_mad *mad, size_t bytes)
{
	struct open_port *p = port_get(fd);
	ssize_t n;

	if (!p)
		return -EBADF;
	pthread_mutex_lock(&p->recv_lock);
	n = receive_record(fd, mad, bytes);
	pthread_mutex_unlock(&p->recv_lock);
	port_put(p);
	return n;
}
