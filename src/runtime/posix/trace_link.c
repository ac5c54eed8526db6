/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A program's side of the trace points that it has for a fabric. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "runtime/posix/trace_link.h"

#define REQUEST_BYTES 16384

struct rt_trace_link {
	struct rt *rt;
	struct rt_trace_sink sink;
	struct rt_io io;
	enum rt_trace_module module;
	int control_fd; /* the trace points last as long as this connection */
	int fd;
};

static void see(struct rt_trace_sink *sink, const struct rt_trace_event *e)
{
	struct rt_trace_link *link = container_of(sink, struct rt_trace_link, sink);
	char message[RT_TRACE_TEXT_BYTES + 64];
	int len = snprintf(message, sizeof(message), "%s%c%s", e->name, 0, e->text);

	if (len > 0 && (size_t)len < sizeof(message) &&
	    send(link->fd, message, (size_t)len + 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
		/* EAGAIN: softibd is busy, and the event is lost; other: on_message() sees it */
	}
}

static void on_message(struct rt_io *io, bool readable, bool writable)
{
	struct rt_trace_link *link = container_of(io, struct rt_trace_link, io);
	char on = 0;
	ssize_t n = recv(link->fd, &on, sizeof(on), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) /* softibd has ended */
		rt_io_watch(io, false, false);
	rt_trace_turn(link->rt, link->module, n > 0 && on);
}

/* Names, formats and sentences have no character that JSON wants to be quoted. Return: bytes; 0:
 * too long */
static size_t build(char request[REQUEST_BYTES], const char *node, enum rt_trace_module module,
		    const struct rt_trace_point *points, size_t num)
{
	FILE *out = fmemopen(request, REQUEST_BYTES, "w");
	bool fits;
	long len;

	if (!out)
		return 0;
	fprintf(out, "{\"op\":\"trace_provide\",\"module\":\"%s\",\"points\":[",
		rt_trace_module_name(module));
	for (size_t i = 0; i < num; i++)
		fprintf(out, "%s{\"event\":\"%s\",\"format\":\"%s\",\"doc\":\"%s\"}", i ? "," : "",
			points[i].name, points[i].format, points[i].doc);
	fprintf(out, "]%s%s%s}", node ? ",\"node\":\"" : "", node ? node : "", node ? "\"" : "");
	len = ftell(out);
	fits = !ferror(out) && len > 0 && len < REQUEST_BYTES;
	fclose(out);
	return fits ? (size_t)len : 0;
}

static int connect_to(const char *dir)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	const struct timeval second = {.tv_sec = 1};
	int fd, len = snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/control", dir);

	if (len < 0 || (size_t)len >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof(second));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &second, sizeof(second));
	if (!connect(fd, (struct sockaddr *)&addr, sizeof(addr)))
		return fd;
	len = -errno;
	close(fd);
	return len;
}

/* Return: the socket that came with the answer; -errno; -EOPNOTSUPP it is an error */
static int receive_fd(int control_fd)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {0};
	char answer[1024];
	struct iovec part = {answer, sizeof(answer)};
	struct msghdr msg = {.msg_iov = &part,
			     .msg_iovlen = 1,
			     .msg_control = control.bytes,
			     .msg_controllen = sizeof(control.bytes)};
	struct cmsghdr *c;
	int fd;

	if (recvmsg(control_fd, &msg, MSG_CMSG_CLOEXEC) <= 0)
		return errno ? -errno : -ECONNRESET;
	c = CMSG_FIRSTHDR(&msg);
	if (!c || c->cmsg_type != SCM_RIGHTS || c->cmsg_len != CMSG_LEN(sizeof(int)))
		return -EOPNOTSUPP;
	memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

int rt_trace_link_open(struct rt *rt, const char *dir, const char *node, enum rt_trace_module module,
		       const struct rt_trace_point *points, size_t num,
		       struct rt_trace_link **out)
{
	char request[REQUEST_BYTES];
	size_t len = build(request, node, module, points, num);
	int control_fd = len ? connect_to(dir) : -E2BIG, fd = -1;
	struct rt_trace_link *link = control_fd < 0 ? NULL : rt_zalloc(sizeof(*link));

	if (control_fd < 0)
		return control_fd;
	if (link)
		fd = send(control_fd, request, len, MSG_NOSIGNAL) < 0 ? -errno
								      : receive_fd(control_fd);
	if (fd < 0) {
		rt_free(link);
		close(control_fd);
		return link ? fd : -ENOMEM;
	}
	link->rt = rt;
	link->module = module;
	link->control_fd = control_fd;
	link->fd = fd;
	link->sink.event = see;
	rt_trace_set_sink(rt, &link->sink);
	rt_io_init(rt, &link->io, fd, on_message);
	rt_io_watch(&link->io, true, false);
	on_message(&link->io, true, false); /* somebody may be waiting already: nothing is missed */
	*out = link;
	return 0;
}

void rt_trace_link_close(struct rt_trace_link *link)
{
	if (!link)
		return;
	rt_trace_set_sink(link->rt, NULL);
	rt_io_watch(&link->io, false, false);
	close(link->fd);
	close(link->control_fd);
	rt_free(link);
}
