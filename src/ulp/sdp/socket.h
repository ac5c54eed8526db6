/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Sockets Direct Protocol (IBA v1 annex A4): an upper-level protocol on the midlayer's
 * interface alone. The state machine of a connection is the layer sdp; this is its shell:
 * the RDMA CM's ids, queue pairs, buffers, and the program's sockets.
 *
 * The program's end of a connection is one end of a Unix stream socket pair. Its other end
 * is here: bytes are moved between it and the queue pair, a limited number of them in each
 * turn of the loop. What the program sees of its descriptor is thus the kernel's matter.
 */
#ifndef SOFTIB_ULP_SDP_SOCKET_H
#define SOFTIB_ULP_SDP_SOCKET_H

#include <sys/un.h>

#include "rdma/rdma_cm.h"

/** SDP_CONN_BYTES - the memory of a connection that has not sent or received much */
#define SDP_CONN_BYTES ((size_t)256 << 10)

/** struct sdp_socket - bound, listening or connecting; connections live on their own */
struct sdp_socket;

/** struct sdp_socket_ops - what becomes of a socket. Called from the loop, never from
 *  within a function below */
struct sdp_socket_ops {
	/** resolved() - the addresses of both ends are known; connected() follows. @memory:
	 * abi/sdp_ring.h, not the callee's; -1: none. May be NULL */
	void (*resolved)(void *ctx, const struct rdma_addr *addr, int memory);
	/** connected() - the outcome of sdp_socket_connect(). @error: 0; -ECONNREFUSED,
	 * -ENETUNREACH, -EHOSTUNREACH, -ETIMEDOUT, -errno; @addr: both ends; @memory: as above */
	void (*connected)(void *ctx, int error, const struct rdma_addr *addr, int memory);
	/** accepted() - a listener has a connection. @fd: the program's end of it, the
	 * callee's from now on; @memory: as above. Return: 0; -errno: the connection ends */
	int (*accepted)(void *ctx, int fd, const struct rdma_addr *addr, int memory);
	/** charge() - a connection of this socket begins, one of whose descriptors is @fd. It may outlive
	 * the socket. Called within sdp_socket_connect() as well. May be NULL. Return: for release();
	 * NULL: there may be no further connection */
	void *(*charge)(void *ctx, int fd);
	/** take() - may the connection have @bytes of memory beyond SDP_CONN_BYTES? It keeps them until its
	 * end. Without charge() it is not called */
	bool (*take)(void *charged, size_t bytes);
	/** release() - the connection has ended */
	void (*release)(void *charged);
};

/** struct sdp_bypass_ops - the adapter's part of what programs exchange by shared memory */
struct sdp_bypass_ops {
	/** open() - may bytes between two QPs bypass the fabric? Return: a name for that; NULL:
	 *  no. @moved: called once when they may no longer; @fold: call count_reads() now */
	void *(*open)(struct ib_qp *const qp[2], void (*moved)(void *), void (*fold)(void *),
		      void *ctx);
	void (*close)(void *bypass);
	/** count_reads() - @bytes were read at QP number @from, in pieces of @bytes_of_each */
	void (*count_reads)(void *bypass, int from, u64 bytes, u32 bytes_of_each);
};

/** sdp_set_bypass() - before the first socket; @ops is the caller's, and stays. Without, all
 *  bytes pass the fabric */
void sdp_set_bypass(const struct sdp_bypass_ops *ops);

/** struct sdp_stats - of all connections of a fabric since its first socket. @shared_bytes: of @tx_bytes and
 *  @rx_bytes, those that programs exchanged by shared memory */
struct sdp_stats {
	u64 connections, open;
	u64 tx_bytes, rx_bytes, shared_bytes, tx_messages, rx_messages;
};

/** sdp_socket_create() - on node @node. Return: the socket; ERR_PTR(-ENOMEM, -ENODEV) */
struct sdp_socket *sdp_socket_create(struct rt *rt, const char *node,
				     const struct sdp_socket_ops *ops, void *ctx);
/** sdp_socket_destroy() - a connection that was being made is given up; accepted ones stay */
void sdp_socket_destroy(struct sdp_socket *s);

/** sdp_socket_bind() - as rdma_bind_addr(), rdma_set_reuseaddr(), rdma_set_afonly() */
int sdp_socket_bind(struct sdp_socket *s, const struct sockaddr *addr, bool reuse,
		    bool afonly);
/** sdp_socket_address() - what it is bound to; AF_UNSPEC: nothing */
const struct sockaddr_storage *sdp_socket_address(const struct sdp_socket *s);
/** sdp_socket_listen() - @backlog: of requests that wait for their handshake to end */
int sdp_socket_listen(struct sdp_socket *s, int backlog);
/**
 * sdp_socket_connect() - begin to connect; connected() follows
 * @fd: this side's end of the stream socket pair, in any case consumed
 * Return: 0; -EISCONN it was called before, or the socket listens; -ENOMEM, also if
 * sdp_socket_ops.charge() refuses; -errno as
 * rdma_resolve_addr()
 */
int sdp_socket_connect(struct sdp_socket *s, const struct sockaddr *addr, int fd);

/** struct sdp_options - of a connection. @keep_idle_s: seconds without a word of the peer until the first
 *  probe; 0: none; @keep_interval_s, @keep_count: of probes; @send_bytes, @receive_bytes: what the
 *  program has asked for by SO_SNDBUF and SO_RCVBUF; 0: nothing */
struct sdp_options {
	u32 keep_idle_s, keep_interval_s, keep_count;
	u32 send_bytes, receive_bytes;
};

/** sdp_set_options() - of the connection whose program's end has the abstract name @name, of @bytes. 0;
 *  -ENOTCONN: there is none */
int sdp_set_options(struct rt *rt, const struct sockaddr_un *name, socklen_t bytes,
		    const struct sdp_options *options);

/** sdp_move_all() - move the streams of the node @node's connections to new ones, by new paths. Their peers
 *  must agree within 10 s, or they end. Return: how many begin to move */
unsigned int sdp_move_all(struct rt *rt, const char *node);

/** sdp_stats_get() - of the fabric whose loop is @rt; zeros if it had no socket */
void sdp_stats_get(const struct rt *rt, struct sdp_stats *stats);
/** sdp_count() - Return: how many connections have an end on the node @node; both ends count */
u64 sdp_count(const struct rt *rt, const char *node);
/** sdp_close_all() - when no socket is left: end all connections of the fabric whose loop is @rt,
 *  and forget its statistics */
void sdp_close_all(struct rt *rt);

#endif
