/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The functions of libc that send and receive. Each looks up the descriptor in the table of memory.c.
 * If the table has no entry, or the call cannot use the ring, the function of libc is called.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <sys/uio.h>
#include <unistd.h>

#include "sdp_private.h"

#define EXPORT __attribute__((visibility("default")))

ssize_t __read_chk(int fd, void *bytes, size_t n, size_t room);
ssize_t __recv_chk(int fd, void *bytes, size_t n, size_t room, int flags);
void __chk_fail(void) __attribute__((noreturn));

/* Return: false: the function of libc is to be called */
static bool reads(int fd, const struct iovec *parts, size_t num_parts, int flags, ssize_t *n)
{
	const struct msghdr msg = {.msg_iov = (struct iovec *)parts, .msg_iovlen = num_parts};

	return sdp_begin() && sdp_read(fd, &msg, flags, n);
}

static bool writes(int fd, const struct iovec *parts, size_t num_parts, int flags, ssize_t *n)
{
	const struct msghdr msg = {.msg_iov = (struct iovec *)parts, .msg_iovlen = num_parts};

	return sdp_begin() && sdp_write(fd, &msg, flags, n);
}

static bool are_sound(const struct iovec *parts, int num_parts)
{
	return parts && num_parts > 0 && num_parts <= IOV_MAX;
}

/* Return: the result of a read that has got @n bytes. If it has reached the end of the stream, the
 * connection may have ended by an error, which is returned once. */
static ssize_t told(int fd, size_t n, ssize_t ret)
{
	int error = !ret && n ? sdp_memory_take_error(fd) : 0;

	if (!error)
		return ret;
	errno = error;
	return -1;
}

/* A socket that is bound is a session with softibd. The kernel would let a read of it wait for softibd, and
 * take what accept() is to find; what is written would be a request. */
static bool is_session(int fd)
{
	return sdp_begin() && !sdp_session_talks() && sdp_is_unconnected(fd);
}

static bool refuses_read(int fd)
{
	if (!is_session(fd))
		return false;
	errno = ENOTCONN;
	return true;
}

static bool refuses_write(int fd, int flags)
{
	if (!is_session(fd))
		return false;
	if (!(flags & MSG_NOSIGNAL))
		raise(SIGPIPE);
	errno = EPIPE;
	return true;
}

EXPORT ssize_t recv(int fd, void *bytes, size_t n, int flags)
{
	ssize_t ret;

	if (refuses_read(fd))
		return -1;
	if (!reads(fd, &(struct iovec){bytes, n}, 1, flags, &ret))
		ret = sdp_libc.recv(fd, bytes, n, flags);
	return told(fd, n, ret);
}

EXPORT ssize_t recvfrom(int fd, void *bytes, size_t n, int flags, struct sockaddr *addr,
			socklen_t *len)
{
	ssize_t ret;

	if (refuses_read(fd))
		return -1;
	if (addr || !reads(fd, &(struct iovec){bytes, n}, 1, flags, &ret))
		ret = sdp_libc.recvfrom(fd, bytes, n, flags, addr, len);
	return told(fd, n, ret);
}

EXPORT ssize_t read(int fd, void *bytes, size_t n)
{
	ssize_t ret;

	if (refuses_read(fd))
		return -1;
	if (!reads(fd, &(struct iovec){bytes, n}, 1, 0, &ret))
		ret = sdp_libc.read(fd, bytes, n);
	return told(fd, n, ret);
}

EXPORT ssize_t readv(int fd, const struct iovec *parts, int num_parts)
{
	ssize_t ret;

	if (refuses_read(fd))
		return -1;
	if (!are_sound(parts, num_parts) || !reads(fd, parts, (size_t)num_parts, 0, &ret))
		ret = sdp_libc.readv(fd, parts, num_parts);
	return told(fd, num_parts > 0, ret);
}

EXPORT ssize_t recvmsg(int fd, struct msghdr *msg, int flags)
{
	ssize_t ret;

	if (refuses_read(fd))
		return -1;
	if (!sdp_begin() || !sdp_read(fd, msg, flags, &ret))
		return told(fd, 1, sdp_libc.recvmsg(fd, msg, flags));
	if (ret >= 0)
		msg->msg_flags = 0;
	return told(fd, 1, ret);
}

EXPORT ssize_t send(int fd, const void *bytes, size_t n, int flags)
{
	ssize_t ret;

	if (refuses_write(fd, flags))
		return -1;
	return writes(fd, &(struct iovec){(void *)bytes, n}, 1, flags, &ret) ?
		       ret :
		       sdp_libc.send(fd, bytes, n, flags);
}

/* TCP ignores the address in a write to a connected socket. A Unix socket would refuse it. */
static bool ignores_address(int fd)
{
	struct sdp_name name;

	return sdp_begin() && sdp_name_get(fd, &name) && name.kind != SDP_BOUND;
}

EXPORT ssize_t sendto(int fd, const void *bytes, size_t n, int flags, const struct sockaddr *addr,
		      socklen_t len)
{
	ssize_t ret;

	if (refuses_write(fd, flags))
		return -1;
	if (addr && ignores_address(fd))
		return send(fd, bytes, n, flags);
	return !addr && writes(fd, &(struct iovec){(void *)bytes, n}, 1, flags, &ret) ?
		       ret :
		       sdp_libc.sendto(fd, bytes, n, flags, addr, len);
}

EXPORT ssize_t write(int fd, const void *bytes, size_t n)
{
	ssize_t ret;

	if (refuses_write(fd, 0))
		return -1;
	return writes(fd, &(struct iovec){(void *)bytes, n}, 1, 0, &ret) ?
		       ret :
		       sdp_libc.write(fd, bytes, n);
}

EXPORT ssize_t writev(int fd, const struct iovec *parts, int num_parts)
{
	ssize_t ret;

	if (refuses_write(fd, 0))
		return -1;
	return are_sound(parts, num_parts) && writes(fd, parts, (size_t)num_parts, 0, &ret) ?
		       ret :
		       sdp_libc.writev(fd, parts, num_parts);
}

EXPORT ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	ssize_t ret;

	if (refuses_write(fd, flags))
		return -1;
	return sdp_begin() && sdp_write(fd, msg, flags, &ret) ? ret :
								sdp_libc.sendmsg(fd, msg, flags);
}

EXPORT int close(int fd)
{
	if (sdp_begin()) {
		sdp_memory_forget(fd);
		sdp_epoll_forget(fd);
	}
	return sdp_libc.close(fd);
}

/* --- the functions that _FORTIFY_SOURCE calls in place of read() and recv() --- */

EXPORT ssize_t __read_chk(int fd, void *bytes, size_t n, size_t room)
{
	if (n > room)
		__chk_fail();
	return read(fd, bytes, n);
}

EXPORT ssize_t __recv_chk(int fd, void *bytes, size_t n, size_t room, int flags)
{
	if (n > room)
		__chk_fail();
	return recv(fd, bytes, n, flags);
}
