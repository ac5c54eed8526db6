/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The messages between libsdp and softibd on a connection of the "sdp" socket, behind the
 * opening message (struct abi_open, ABI_OPEN_SDP), which is answered like all others.
 *
 * Each request is answered by struct abi_reply and struct abi_sdp_names. The connection is
 * an SDP socket: it ends when the last descriptor of it is closed. A program's listening
 * descriptor is the connection itself. Behind the answer to LISTEN, each message there is
 * struct abi_reply, struct abi_sdp_names and a descriptor: a connection for accept(). The
 * memory of the connection (abi/sdp_ring.h) may go with it as a second descriptor, and with an
 * answer to CONNECT that is no error.
 */
#ifndef SOFTIB_ABI_SDP_H
#define SOFTIB_ABI_SDP_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#define ABI_SDP_FAMILY 27 /* AF_INET_SDP */

/* A program's SDP socket is one of AF_UNIX, whose abstract name begins with these words and the kind.
 * One that listens has this priority (SO_PRIORITY). */
#define ABI_SDP_NAME	       "softib-sdp:"
#define ABI_SDP_KIND_BOUND     'b'
#define ABI_SDP_LISTENING_PRIO 1

enum abi_sdp_op {
	/* With or without a descriptor: a TCP socket that is bound to the same port. It
	 * listens along with this one, and comes back if CONNECT fails. */
	ABI_SDP_BIND = 1,
	ABI_SDP_LISTEN = 2,
	/* With a descriptor: softibd's end of the stream socket pair. The answer comes when
	 * the connection is made or refused; the request is the last one.
	 *
	 * With ABI_SDP_PENDING the answer comes as soon as the addresses are known, and softibd
	 * announces the outcome by the name of its end of the pair (abi_sdp_outcome_name()). The
	 * program's end has `number` bytes under way, so that poll(2) does not find it writable;
	 * softibd discards them when the connection is made, and closes its end if it is not.
	 * A second descriptor may go with the request: a TCP socket. If the peer has no SDP,
	 * softibd connects it, and carries its bytes. */
	ABI_SDP_CONNECT = 3,
	/* With a descriptor: a connection of the program's. Its options are these from now on. */
	ABI_SDP_OPTIONS = 4,
};

enum abi_sdp_flags {
	ABI_SDP_REUSE = 1 << 0,	  /* BIND */
	ABI_SDP_V6ONLY = 1 << 1,  /* BIND */
	ABI_SDP_PENDING = 1 << 2, /* CONNECT */
};

#define ABI_SDP_FILLER_MAX (1 << 20) /* bytes under way on a pending connection */

/** abi_sdp_outcome_name() - the abstract name of softibd's end: the outcome of a pending
 *  connection. @error: 0; an errno; @unique: differs for each socket of the network.
 *  Return: the length of the address */
static inline socklen_t abi_sdp_outcome_name(struct sockaddr_un *addr, int error,
					     uint64_t unique)
{
	memset(addr, 0, sizeof(*addr));
	addr->sun_family = AF_UNIX;
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			   (size_t)snprintf(addr->sun_path + 1, sizeof(addr->sun_path) - 1,
					    "softib-sdp-end:%d:%016llx", error,
					    (unsigned long long)unique));
}

/** abi_sdp_outcome_read() - Return: the error of such a name, of @len bytes, 0 if the connection
 *  was made; -1: it is no such name */
static inline int abi_sdp_outcome_read(const struct sockaddr_un *addr, socklen_t len)
{
	int error, end = 0;
	char text[sizeof(addr->sun_path)] = "";

	if (len <= offsetof(struct sockaddr_un, sun_path) + 1 || len > sizeof(*addr) ||
	    addr->sun_family != AF_UNIX || addr->sun_path[0])
		return -1;
	memcpy(text, addr->sun_path + 1, len - offsetof(struct sockaddr_un, sun_path) - 1);
	if (sscanf(text, "softib-sdp-end:%d:%*x%n", &error, &end) != 1 || !end || error < 0)
		return -1;
	return error;
}

/** union abi_sdp_address - AF_UNSPEC: none */
union abi_sdp_address {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

/** struct abi_sdp_options - what socket options say of a connection. Keepalive in seconds, off if
 *  @keep_idle_s is 0; @send_bytes, @receive_bytes: SO_SNDBUF and SO_RCVBUF, as the program has set them; 0: not */
struct abi_sdp_options {
	uint32_t keep_idle_s, keep_interval_s, keep_count;
	uint32_t send_bytes, receive_bytes;
};

struct abi_sdp_request {
	uint32_t op;	/* enum abi_sdp_op */
	uint32_t flags; /* BIND: enum abi_sdp_flags */
	int32_t number; /* LISTEN: backlog; CONNECT: bytes under way, with ABI_SDP_PENDING */
	union {
		union abi_sdp_address address; /* BIND, CONNECT */
		struct abi_sdp_options options; /* OPTIONS */
	};
};

/** struct abi_sdp_names - the addresses of both ends. Of a connection that a TCP socket has
 *  accepted, both are AF_UNSPEC: its descriptor knows them */
struct abi_sdp_names {
	union abi_sdp_address local, peer;
};

#endif
