/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The messages between libsdp and softibd on a connection of the "sdp" socket, behind the
 * opening message (struct abi_open, ABI_OPEN_SDP), which is answered like all others.
 *
 * Each request is answered by struct abi_reply and struct abi_sdp_names. The connection is
 * an SDP socket: it ends when the last descriptor of it is closed. A program's listening
 * descriptor is the connection itself. Behind the answer to LISTEN, each message there is
 * struct abi_reply, struct abi_sdp_names and one descriptor: a connection for accept().
 */
#ifndef SOFTIB_ABI_SDP_H
#define SOFTIB_ABI_SDP_H

#include <netinet/in.h>
#include <stdint.h>

#define ABI_SDP_FAMILY 27 /* AF_INET_SDP */

enum abi_sdp_op {
	/* With or without a descriptor: a TCP socket that is bound to the same port. It
	 * listens along with this one, and comes back if CONNECT fails. */
	ABI_SDP_BIND = 1,
	ABI_SDP_LISTEN = 2,
	/* With a descriptor: softibd's end of the stream socket pair. The answer comes when
	 * the connection is made or refused; the request is the last one. */
	ABI_SDP_CONNECT = 3,
};

enum abi_sdp_flags { ABI_SDP_REUSE = 1 << 0, ABI_SDP_V6ONLY = 1 << 1 };

/** union abi_sdp_address - AF_UNSPEC: none */
union abi_sdp_address {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

struct abi_sdp_request {
	uint32_t op;	/* enum abi_sdp_op */
	uint32_t flags; /* BIND: enum abi_sdp_flags */
	int32_t backlog; /* LISTEN */
	union abi_sdp_address address; /* BIND, CONNECT */
};

/** struct abi_sdp_names - the addresses of both ends. Of a connection that a TCP socket has
 *  accepted, both are AF_UNSPEC: its descriptor knows them */
struct abi_sdp_names {
	union abi_sdp_address local, peer;
};

#endif
