/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The shell's parts.
 *
 *  socket.c	sockets that are bound, listen or connect; events of the RDMA CM
 *  conn.c	connections: beginning, the work of a turn, ending
 *  queue.c	the queue pair: slots, sends, receives, RDMA READs
 *  memory.c	memory that is lent to the peer
 *  stream.c	bytes between the program's socket and the state machine
 */
#ifndef SOFTIB_ULP_SDP_PRIVATE_H
#define SOFTIB_ULP_SDP_PRIVATE_H

#define SOFTIB_CLIENT_NAME "sdp"

#include "runtime/posix/rt_posix.h"
#include "sdp/sdp.h"
#include "ulp/sdp/socket.h"

#define SDP_SLOTS	16
#define SDP_SLOT_BYTES	(32768 + WIRE_SDP_BSDH_BYTES)
#define SDP_SEND_BYTES	(32768 + WIRE_SDP_HEADER_MAX) /* of a message's buffer: headers end... */
#define SDP_PAYLOAD_AT	WIRE_SDP_HEADER_MAX	      /* ...where the payload begins */
#define SDP_SENDS	8
#define SDP_READ_BYTES	(128 * 1024) /* of the peer's memory at once */
#define SDP_TURN_BYTES	(512 * 1024) /* to or from the program in a turn */
#define SDP_REGIONS	  2	       /* that may be lent at once */
#define SDP_SINKS	  2
#define SDP_REGION_BYTES  (256 * 1024) /* of each region and sink */
#define SDP_ADVERT_BYTES  (64 * 1024)  /* worth an advertisement */

struct sdp_conn;

/** struct sdp_handle - what the context of an rdma_cm_id points to. @event: Return: 0;
 *  other: the id is destroyed */
struct sdp_handle {
	int (*event)(struct sdp_handle *handle, struct rdma_cm_id *id,
		     struct rdma_cm_event *event);
};

struct sdp_socket {
	struct sdp_handle handle;
	struct rt *rt;
	struct rdma_cm_id *id; /* NULL: a connection has taken it */
	struct sdp_conn *conn; /* that is being made */
	const struct sdp_socket_ops *ops;
	void *ctx;
	bool listens;
};

/** struct sdp_buffer - one of a queue pair's: a slot to receive, or a message to send */
struct sdp_buffer {
	struct ib_cqe cqe;
	struct sdp_conn *conn;
	u16 index;
	u8 *bytes;
};

/** struct sdp_region - the program's bytes [@at, @end) of a piece of the lent memory.
 *  @writes: RDMA WRITEs from there that are not complete; @advertised: the peer reads it */
struct sdp_region {
	struct ib_cqe cqe;
	struct sdp_conn *conn;
	u32 at, end;
	bool advertised;
	unsigned int writes;
};

/** struct sdp_lent - memory.c: the memory, and the ring of regions */
struct sdp_lent {
	u8 *bytes; /* NULL: not made yet */
	struct ib_mr *mr;
	struct sdp_region region[SDP_REGIONS];
	u32 first, num_regions;
};

/** struct sdp_conn - @socket: the one that wants to know when it is made: it connects, or
 *  listened */
struct sdp_conn {
	struct sdp_handle handle;
	struct list_head node; /* of all connections */
	struct rt *rt;
	struct rdma_cm_id *id;
	struct sdp_socket *socket;
	struct sdp sdp;
	struct rt_work turn;
	bool established, cm_gone, qp_failed;
	/* --- queue.c --- */
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_qp *qp;
	u8 *memory;
	struct sdp_buffer slot[SDP_SLOTS], send[SDP_SENDS];
	u16 free_send[SDP_SENDS];
	unsigned int num_free_sends;
	struct ib_cqe read_cqe;
	u8 *read_memory; /* of SDP_READ_BYTES, made when the peer first advertises */
	u32 read_bytes, read_at; /* in there: how many, and how many are delivered */
	bool reading;
	struct sdp_lent lent;
	/* --- stream.c --- */
	int fd;		/* this side's end of the stream */
	int program_fd; /* the program's, until it is handed over; -1 */
	struct rt_io io;
	bool readable, writable; /* as far as is known */
	bool bulk;		 /* the program's last bytes filled a message */
	bool tx_eof, rx_eof;	 /* the program has closed; was told that the peer has */
	struct sdp_buffer *pending; /* data for which there is no message yet */
	u32 pending_bytes;
	bool pending_oob; /* it is out-of-band data */
};

extern struct sdp_stats sdp_stats;

/* --- conn.c --- */

/** sdp_conn_create() - @fd: consumed in any case. Return: NULL: no memory */
struct sdp_conn *sdp_conn_create(struct rt *rt, struct sdp_socket *socket, int fd);
void sdp_conn_destroy(struct sdp_conn *c);
/** sdp_conn_wake() - have a turn soon */
void sdp_conn_wake(struct sdp_conn *c);
/** sdp_conn_forget() - @socket ends: connections that it has not got yet are given up */
void sdp_conn_forget(const struct sdp_socket *socket);
/** sdp_conn_begin() - both ends are in RTS: the stream flows */
void sdp_conn_begin(struct sdp_conn *c);

/* --- queue.c --- */

/** sdp_queue_open() - queue pair in INIT, all slots posted. 0; -errno */
int sdp_queue_open(struct sdp_conn *c);
/** sdp_queue_connect() - the CM knows the peer: to RTR, then to RTS. 0; -errno */
int sdp_queue_connect(struct sdp_conn *c);
void sdp_queue_close(struct sdp_conn *c);
/** sdp_queue_poll() - handle completions. Return: more may be there */
bool sdp_queue_poll(struct sdp_conn *c);
/** sdp_queue_free() - a slot is free: post it again */
void sdp_queue_free(struct sdp_conn *c, u16 slot);
/** sdp_sge() - @length bytes of the connection's own memory */
struct ib_sge sdp_sge(struct sdp_conn *c, void *bytes, u32 length,
		      enum dma_data_direction direction);
/** sdp_queue_send() - headers of @msg, and its payload, which is in @b already */
void sdp_queue_send(struct sdp_conn *c, struct sdp_buffer *b, struct wire_sdp_msg *msg);
/** sdp_queue_read() - read @bytes of what @item describes */
void sdp_queue_read(struct sdp_conn *c, const struct sdp_item *item, u32 bytes);

/* --- memory.c --- */

/** sdp_memory_open() - Return: is there memory to be lent? */
bool sdp_memory_open(struct sdp_conn *c);
/** sdp_memory_close() - when the queue pair is gone */
void sdp_memory_close(struct sdp_conn *c);
/** sdp_memory_input() - a message has arrived: what became of the memory that is lent */
void sdp_memory_input(struct sdp_conn *c, const struct sdp_input *input);

/** sdp_region_free() - room for SDP_REGION_BYTES of the program's; NULL: none, or there is
 *  a region that waits to be sent */
u8 *sdp_region_free(struct sdp_conn *c);
void sdp_region_filled(struct sdp_conn *c, u32 bytes);
/** sdp_region_offer() - Return: does a region wait to be sent? Then @offer is about it */
bool sdp_region_offer(struct sdp_conn *c, struct sdp_offer *offer);
/** sdp_region_bytes() - what is left of that region */
u8 *sdp_region_bytes(struct sdp_conn *c);
/** sdp_region_sent() - @msg has its first bytes as payload, or advertises it */
void sdp_region_sent(struct sdp_conn *c, const struct wire_sdp_msg *msg);
/** sdp_region_write() - its first @bytes go to the sink sdp.target */
void sdp_region_write(struct sdp_conn *c, u32 bytes);

/** sdp_sink_offer() - lend the peer room for what it sends next, if it can use that. The
 *  program has got everything */
void sdp_sink_offer(struct sdp_conn *c);

/* --- stream.c --- */

/** sdp_stream_deliver() - to the program, what it takes. Return: more could be done */
bool sdp_stream_deliver(struct sdp_conn *c);
/** sdp_stream_send() - from the program, what there are credits for. Return: the same */
bool sdp_stream_send(struct sdp_conn *c);
/** sdp_stream_watch() - for what can be done next */
void sdp_stream_watch(struct sdp_conn *c);
void sdp_stream_open(struct sdp_conn *c);

#endif
