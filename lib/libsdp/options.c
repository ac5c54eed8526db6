/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Socket options of SDP sockets. Most options of SOL_SOCKET are those of the Unix socket. Options of TCP
 * and IP are supported if they have a meaning for SDP, or if ignoring them does no harm. */
#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <unistd.h>

#include "sdp_private.h"

/* of SO_BUF_LOCK; <linux/socket.h>, which cannot be included with <sys/socket.h>, defines them */
#define SNDBUF_LOCK 1
#define RCVBUF_LOCK 2

#define SEGMENT_BYTES 32768 /* data of an SDP message, reported as the maximum segment size of TCP */

static int put(void *value, socklen_t *len, const void *from, socklen_t bytes)
{
	return sdp_put(value, len, from, bytes, false);
}

static int put_int(void *value, socklen_t *len, int n)
{
	return put(value, len, &n, sizeof(n));
}

/* --- options of which softibd is told --- */

/** struct keep_option - an option of keepalive: its largest value, and what Linux begins with */
static const struct keep_option {
	int option;
	int max, standard;
} keep_options[SDP_KEEP_NUM] = {
	[SDP_KEEP_IDLE] = {TCP_KEEPIDLE, 32767, 7200},
	[SDP_KEEP_INTERVAL] = {TCP_KEEPINTVL, 32767, 75},
	[SDP_KEEP_COUNT] = {TCP_KEEPCNT, 127, 9},
};

static int int_of(int fd, int level, int option)
{
	int value = 0;
	socklen_t len = sizeof(value);

	return sdp_libc.getsockopt(fd, level, option, &value, &len) ? 0 : value;
}

/* Return: what the program has set SO_SNDBUF or SO_RCVBUF to; 0: it has not. The kernel reports the double */
static uint32_t buffer_of(int fd, int option)
{
	const int lock = option == SO_SNDBUF ? SNDBUF_LOCK : RCVBUF_LOCK;

	return int_of(fd, SOL_SOCKET, SO_BUF_LOCK) & lock ? (uint32_t)int_of(fd, SOL_SOCKET, option) / 2 : 0;
}

static uint32_t keep_of(int fd, enum sdp_keep which)
{
	const uint32_t value = sdp_memory_keep_of(fd, which);

	return value ? value : (uint32_t)keep_options[which].standard;
}

/* Tell softibd what it has to know of the options of connection @fd. */
static void tell(int fd)
{
	struct abi_sdp_request request = {.op = ABI_SDP_OPTIONS};
	struct abi_sdp_names names;
	int session = sdp_session_open();

	if (session < 0)
		return;
	if (int_of(fd, SOL_SOCKET, SO_KEEPALIVE)) {
		request.options.keep_idle_s = keep_of(fd, SDP_KEEP_IDLE);
		request.options.keep_interval_s = keep_of(fd, SDP_KEEP_INTERVAL);
		request.options.keep_count = keep_of(fd, SDP_KEEP_COUNT);
	}
	request.options.send_bytes = buffer_of(fd, SO_SNDBUF);
	request.options.receive_bytes = buffer_of(fd, SO_RCVBUF);
	sdp_session_ask(session, &request, &fd, 1, &names, NULL);
	close(session);
}

static void tell_if_connected(int fd)
{
	struct sdp_name name;

	if (sdp_name_get(fd, &name) && name.kind != SDP_BOUND)
		tell(fd);
}

static int set_keep(int fd, enum sdp_keep which, const void *value, socklen_t len)
{
	int n;

	if (len < sizeof(n) || sdp_copy_in(&n, value, sizeof(n))) {
		errno = len < sizeof(n) ? EINVAL : EFAULT;
		return -1;
	}
	if (n < 1 || n > keep_options[which].max) {
		errno = EINVAL;
		return -1;
	}
	sdp_memory_set_keep(fd, which, (uint32_t)n);
	if (int_of(fd, SOL_SOCKET, SO_KEEPALIVE))
		tell_if_connected(fd);
	return 0;
}

/* Return: the index in keep_options of an option of TCP; SDP_KEEP_NUM: it is none */
static enum sdp_keep keep_option(int option)
{
	enum sdp_keep which = 0;

	while (which < SDP_KEEP_NUM && keep_options[which].option != option)
		which++;
	return which;
}

static void copy_buffer(int from, int to, int option)
{
	const int bytes = (int)buffer_of(from, option);

	if (bytes)
		sdp_libc.setsockopt(to, SOL_SOCKET, option, &bytes, sizeof(bytes));
}

static bool is_told(int fd)
{
	return int_of(fd, SOL_SOCKET, SO_KEEPALIVE) || int_of(fd, SOL_SOCKET, SO_BUF_LOCK);
}

void sdp_save_options(int fd, struct sdp_connecting_options *saved)
{
	for (enum sdp_keep which = 0; which < SDP_KEEP_NUM; which++)
		saved->keep[which] = (uint32_t)int_of(fd, IPPROTO_TCP, keep_options[which].option);
}

void sdp_restore_options(int fd, const struct sdp_connecting_options *saved)
{
	for (enum sdp_keep which = 0; which < SDP_KEEP_NUM; which++)
		sdp_memory_set_keep(fd, which, saved->keep[which]);
	if (is_told(fd))
		tell(fd);
}

void sdp_inherit_options(int from, int to)
{
	const int on = 1;

	if (!is_told(from))
		return;
	copy_buffer(from, to, SO_SNDBUF);
	copy_buffer(from, to, SO_RCVBUF);
	if (int_of(from, SOL_SOCKET, SO_KEEPALIVE))
		sdp_libc.setsockopt(to, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	tell(to);
}

/* --- the options of each level --- */

static int get_tcp(int fd, int option, void *value, socklen_t *len)
{
	const struct tcp_info info = {.tcpi_state = TCP_ESTABLISHED,
				      .tcpi_snd_mss = SEGMENT_BYTES,
				      .tcpi_rcv_mss = SEGMENT_BYTES,
				      .tcpi_pmtu = SEGMENT_BYTES};

	if (keep_option(option) < SDP_KEEP_NUM)
		return put_int(value, len, (int)keep_of(fd, keep_option(option)));
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
		return get_tcp(fd, option, value, len);
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
	if (level == IPPROTO_TCP && keep_option(option) < SDP_KEEP_NUM)
		return set_keep(fd, keep_option(option), value, len);
	if (level == IPPROTO_TCP || level == IPPROTO_IP || level == IPPROTO_IPV6)
		return 0;
	if (level == SOL_SOCKET && (option == SO_REUSEPORT || option == SO_PRIORITY))
		return 0;
	if (sdp_libc.setsockopt(fd, level, option, value, len))
		return -1;
	if (level == SOL_SOCKET && option == SO_LINGER)
		sdp_memory_note_linger(fd);
	if (level == SOL_SOCKET && (option == SO_KEEPALIVE || option == SO_SNDBUF || option == SO_RCVBUF))
		tell_if_connected(fd);
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
	copy_buffer(from, to, SO_SNDBUF);
	copy_buffer(from, to, SO_RCVBUF);
}
