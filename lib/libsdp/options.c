/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Socket options of SDP sockets. Most options of SOL_SOCKET are those of the Unix socket. Options of TCP
 * and IP are supported if they have a meaning for SDP, or if ignoring them does no harm. */
#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>

#include "sdp_private.h"

#define SEGMENT_BYTES 32768 /* data of an SDP message, reported as the maximum segment size of TCP */

static int put(void *value, socklen_t *len, const void *from, socklen_t bytes)
{
	return sdp_put(value, len, from, bytes, false);
}

static int put_int(void *value, socklen_t *len, int n)
{
	return put(value, len, &n, sizeof(n));
}

static int get_tcp(int option, void *value, socklen_t *len)
{
	const struct tcp_info info = {.tcpi_state = TCP_ESTABLISHED,
				      .tcpi_snd_mss = SEGMENT_BYTES,
				      .tcpi_rcv_mss = SEGMENT_BYTES,
				      .tcpi_pmtu = SEGMENT_BYTES};

	switch (option) {
	case TCP_NODELAY: /* SDP never delays data */
	case TCP_QUICKACK:
		return put_int(value, len, 1);
	case TCP_MAXSEG:
		return put_int(value, len, SEGMENT_BYTES);
	case TCP_INFO:
		return put(value, len, &info, sizeof(info));
	case TCP_CONGESTION:
		return put(value, len, "sdp", sizeof("sdp"));
	default:
		return put_int(value, len, 0);
	}
}

static int get_ip(const struct sdp_name *name, int level, int option, void *value,
		  socklen_t *len)
{
	if (level == IPPROTO_IP && option == IP_OPTIONS)
		return put(value, len, "", 0);
	if (level == IPPROTO_IPV6 && option == IPV6_V6ONLY)
		return put_int(value, len, !!(name->flags & SDP_V6ONLY));
	return put_int(value, len, 0);
}

/* For a socket whose connection attempt failed, the kernel reports the error of a closed socket. Replace it
 * by the error of the attempt. Like SO_ERROR of TCP, it is reported once. */
static int get_error(int fd, const struct sdp_name *name, void *value, socklen_t *len)
{
	int error = 0;
	socklen_t bytes = sizeof(error);

	if (sdp_libc.getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes))
		return -1;
	if (error && name->kind == SDP_PENDING && sdp_outcome(fd))
		error = -sdp_outcome(fd);
	if (!error)
		error = sdp_memory_take_error(fd);
	return put_int(value, len, error);
}

int sdp_getsockopt(int fd, const struct sdp_name *name, int level, int option, void *value,
		   socklen_t *len)
{
	if (!value || !len) {
		errno = EFAULT;
		return -1;
	}
	if (level == IPPROTO_TCP)
		return get_tcp(option, value, len);
	if (level == IPPROTO_IP || level == IPPROTO_IPV6)
		return get_ip(name, level, option, value, len);
	if (level != SOL_SOCKET)
		return sdp_libc.getsockopt(fd, level, option, value, len);
	switch (option) {
	case SO_DOMAIN:
		return put_int(value, len, name->names.local.any.sa_family);
	case SO_PROTOCOL:
		return put_int(value, len, IPPROTO_TCP);
	case SO_TYPE:
		return put_int(value, len, SOCK_STREAM);
	case SO_ERROR:
		return get_error(fd, name, value, len);
	case SO_REUSEPORT:
		return put_int(value, len, !!(name->flags & SDP_REUSEPORT));
	case SO_ACCEPTCONN:
		return put_int(value, len, name->kind == SDP_BOUND && sdp_is_listening(fd));
	default:
		return sdp_libc.getsockopt(fd, level, option, value, len);
	}
}

int sdp_setsockopt(int fd, int level, int option, const void *value, socklen_t len)
{
	if (level == IPPROTO_TCP || level == IPPROTO_IP || level == IPPROTO_IPV6)
		return 0;
	if (level == SOL_SOCKET && (option == SO_REUSEPORT || option == SO_PRIORITY))
		return 0;
	if (sdp_libc.setsockopt(fd, level, option, value, len))
		return -1;
	if (level == SOL_SOCKET && option == SO_LINGER)
		sdp_memory_note_linger(fd);
	return 0;
}

void sdp_copy_options(int from, int to)
{
	static const int options[] = {SO_RCVTIMEO, SO_SNDTIMEO, SO_LINGER, SO_KEEPALIVE,
				      SO_REUSEADDR, SO_OOBINLINE};
	struct timeval value[2]; /* at least as long as the value of any option */

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		socklen_t len = sizeof(value);

		if (!sdp_libc.getsockopt(from, SOL_SOCKET, options[i], value, &len))
			sdp_libc.setsockopt(to, SOL_SOCKET, options[i], value, len);
	}
}
