/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The shell's parts.
 *
 *  socket.c	sockets that are bound, listen or connect; events of the RDMA CM
 *  conn.c	connections: beginning, the work of a turn, ending
 *  queue.c	the queue pair: slots, sends, receives, RDMA READs
 *  memory.c	memory that is lent to the peer
 *  stream.c	bytes between the program's socket and the state machine
 *  move.c	a stream that moves to a new connection
 *  options.c	keepalive, and other options of sockets
 *  channel.c	memory that the programs at both ends of a connection share
 *  ring.c	when they may use it
 */
#ifndef SOFTIB_ULP_SDP_PRIVATE_H
#define SOFTIB_ULP_SDP_PRIVATE_H

#define SOFTIB_CLIENT_NAME "sdp"

#include "abi/sdp_ring.h"
#include "runtime/posix/rt_posix.h"
#include "runtime/tree.h"
#include "sdp/keepalive.h"
#include "sdp/sdp.h"
#include "ulp/sdp/socket.h"

#define SDP_SLOTS	16
#define SDP_SLOT_BYTES	(8192 + WIRE_SDP_BSDH_BYTES)  /* at first... */
#define SDP_SLOT_MAX	(32768 + WIRE_SDP_BSDH_BYTES) /* ...and if the peer sends much */
#define SDP_SEND_BYTES	(32768 + WIRE_SDP_HEADER_MAX) /* of a message's buffer: headers end... */
#define SDP_PAYLOAD_AT	WIRE_SDP_HEADER_MAX	      /* ...where the payload begins */
#define SDP_SENDS	8
#define SDP_SENDS_FIRST 3 /* of these at first, before the program has written much */
#define SDP_READ_BYTES	(128 * 1024) /* of the peer's memory at once... */
#define SDP_READ_LEAST	(16 * 1024)  /* ...and if there may be no more memory */
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

/** struct sdp_buffer - one of a queue pair's: a slot to receive, or a message to send. @room: of a
 *  slot, whose memory is its own */
struct sdp_buffer {
	struct ib_cqe cqe;
	struct sdp_conn *conn;
	u16 index;
	u8 *bytes;
	u32 room;
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

enum sdp_ring_state { SDP_RING_OFF, SDP_RING_LEASED, SDP_RING_ENDING };

/** struct sdp_ring - one direction of a channel: from end[@side]. ring.c */
struct sdp_ring {
	struct sdp_channel *channel;
	int side;
	struct abi_sdp_half *half; /* the programs can write to it, as to @bytes */
	u8 *bytes;
	enum sdp_ring_state state;
	u32 lease;	/* what half->lease is */
	bool has_rest;	/* OFF: the ring may have bytes, to be sent */
	bool holds;	/* OFF: the writer waits for a lease */
	u64 first, counted; /* half->head when the lease began; up to which bytes are counted */
	u64 head_seen;	/* half->head at the last tick */
	unsigned int ticks;
	u64 wait_bytes, wait_more; /* until the next lease; and after one that does not help */
};

/** struct sdp_channel - of a connection between two ends in this softibd. channel.c */
struct sdp_channel {
	struct rt *rt;
	struct sdp_conn *end[2]; /* [0]: has connected; [1]: NULL at first */
	int fd;
	struct abi_sdp_memory *memory;
	struct sdp_ring ring[2];
	void *bypass; /* NULL: bytes may not bypass the fabric, as far as is known */
	bool moved;   /* it may not be used any more */
	struct rt_timer tick;
};

/** struct sdp_qp_key - a queue pair of the fabric */
struct sdp_qp_key {
	union ib_gid gid; /* of its port */
	u32 qpn;
};

/** struct sdp_conn - @socket: the one that wants to know when it is made: it connects, or
 *  listened */
struct sdp_conn {
	struct sdp_handle handle;
	struct list_head node; /* of the fabric's connections */
	struct rt *rt;
	struct sdp_fabric *fabric;
	struct rdma_cm_id *id;
	struct rt_tree_node by_qp; /* of the fabric's, while it connects */
	struct sdp_qp_key key;
	struct sdp_socket *socket;
	struct sdp sdp;
	struct rt_work turn;
	bool dials; /* this end connects, and has not the outcome yet */
	bool established, cm_gone, qp_failed;
	void *charged; /* sdp_socket_ops.charge() */
	const struct sdp_socket_ops *charges; /* take(), release() */
	/* --- move.c --- */
	struct sdp_conn *next, *before; /* that takes the stream over; from which it is taken over */
	bool ready;			/* it could be */
	struct rdma_cm_id *await;	/* where the peer is to connect; NULL: nowhere */
	struct sdp_handle await_handle;
	struct rt_timer move_timer;
	/* --- queue.c --- */
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_qp *qp;
	u8 *memory, *more_memory; /* of the first messages to send; of the others: NULL: not yet */
	struct sdp_buffer slot[SDP_SLOTS], send[SDP_SENDS];
	u16 free_send[SDP_SENDS];
	unsigned int num_free_sends;
	struct ib_cqe read_cqe;
	u8 *read_memory; /* made when the peer first advertises */
	u32 read_room;
	bool large_slots; /* they are paid for */
	u32 read_bytes, read_at; /* in there: how many, and how many are delivered */
	bool reading;
	struct sdp_lent lent;
	struct sdp_channel *channel; /* NULL: none */
	/* --- options.c --- */
	struct sdp_options options;
	struct sdp_keepalive keep;
	struct rt_timer keep_timer;
	struct ib_cqe probe_cqe;
	bool probing; /* one is under way */
	/* --- stream.c --- */
	int fd;		/* this side's end of the stream */
	int program_fd; /* the program's, until it is handed over; -1 */
	struct rt_io io;
	bool readable, writable; /* as far as is known */
	bool bulk;		 /* the program's last bytes filled a message */
	bool tx_eof, rx_eof;	 /* the program has closed; was told that the peer has */
	bool writes_ended;	 /* the program's writes fail, as the connection was reset */
	struct sdp_buffer *pending; /* data for which there is no message yet */
	u32 pending_bytes;
	bool pending_oob; /* it is out-of-band data */
};

/** struct sdp_fabric - the connections of a fabric */
struct sdp_fabric {
	struct list_head connections;
	struct rt_tree by_qp; /* those whose request is under way */
	struct sdp_stats stats;
};

/** sdp_fabric() - that of @rt, from its first socket to sdp_close_all(); NULL */
static inline struct sdp_fabric *sdp_fabric(const struct rt *rt)
{
	return rt_local(rt, RT_LOCAL_SDP);
}

/* --- conn.c --- */

/** sdp_fabric_open() - Return: is there one now, or was there? */
bool sdp_fabric_open(struct rt *rt);

/** sdp_conn_create() - @fd: consumed in any case. Return: NULL: no memory */
struct sdp_conn *sdp_conn_create(struct rt *rt, struct sdp_socket *socket, int fd);
void sdp_conn_destroy(struct sdp_conn *c);
/** sdp_conn_take() - may the connection have @bytes more of memory? It keeps them until its end */
bool sdp_conn_take(struct sdp_conn *c, size_t bytes);
/** sdp_conn_wake() - have a turn soon */
void sdp_conn_wake(struct sdp_conn *c);
/** sdp_conn_forget() - @socket ends: connections that it has not got yet are given up */
void sdp_conn_forget(const struct sdp_socket *socket);
/** sdp_conn_expect() - @c has its queue pair: sdp_conn_with_qp() finds it until it begins or ends */
void sdp_conn_expect(struct sdp_conn *c);
/** sdp_conn_with_qp() - the connection whose request by QP @qpn has become @id; NULL: none here */
struct sdp_conn *sdp_conn_with_qp(const struct rt *rt, const struct rdma_cm_id *id, u32 qpn);
/** sdp_conn_begin() - both ends are in RTS: the stream flows */
void sdp_conn_begin(struct sdp_conn *c);

/* --- socket.c --- */

/** sdp_on_cm_event() - the handler of every id: its context is a struct sdp_handle */
int sdp_on_cm_event(struct rdma_cm_id *id, struct rdma_cm_event *event);
/** sdp_conn_answer() - accept the request @event, whose id is @id. 0; -errno: @id is not the connection's */
int sdp_conn_answer(struct sdp_conn *c, struct rdma_cm_id *id, const struct rdma_cm_event *event);
/** sdp_conn_dial() - begin to connect by @id, which is the connection's in any case. @from: NULL: any */
int sdp_conn_dial(struct sdp_conn *c, struct rdma_cm_id *id, struct sockaddr *from,
		  const struct sockaddr *to);

/* --- move.c --- */

void sdp_move_init(struct sdp_conn *c);
/** sdp_move_step() - what a turn does for a stream that is to move. Return: @c is destroyed, as another
 *  connection has taken over */
bool sdp_move_step(struct sdp_conn *c);
/** sdp_move_ready() - @next, which has a connection before it, is established */
void sdp_move_ready(struct sdp_conn *next);
/** sdp_move_end() - @c is being destroyed */
void sdp_move_end(struct sdp_conn *c);

/* --- options.c --- */

void sdp_options_init(struct sdp_conn *c);
/** sdp_options_begin() - they are in effect from now on: both ends are in RTS */
void sdp_options_begin(struct sdp_conn *c);
/** sdp_options_heard() - a message of the peer has come */
void sdp_options_heard(struct sdp_conn *c);

/* --- note.c: events of the trace --- */

struct rt_trace_at;
struct rt_trace_at sdp_trace_at(const struct sdp_conn *c);
/** sdp_trace_qpn() - of its queue pair; 0: it has none yet */
u32 sdp_trace_qpn(const struct sdp_conn *c);
const char *sdp_trace_message(unsigned int mid);
/** sdp_conn_trace() - struct sdp_config */
void sdp_conn_trace(const struct sdp *sdp, enum sdp_trace what, int from, int to);
void sdp_note_connected(const struct sdp_conn *c, bool passive, int error);
void sdp_note_socket(const struct sdp_socket *s, const char *what, int error);

/* --- queue.c --- */

/** sdp_queue_open() - queue pair in INIT, all slots posted. 0; -errno */
int sdp_queue_open(struct sdp_conn *c);
/** sdp_queue_connect() - the CM knows the peer: to RTR, then to RTS. 0; -errno */
int sdp_queue_connect(struct sdp_conn *c);
void sdp_queue_close(struct sdp_conn *c);
/** sdp_queue_poll() - handle completions. Return: more may be there */
bool sdp_queue_poll(struct sdp_conn *c);
/** sdp_queue_more_sends() - when almost all messages to send are under way: the others, if there may be
 *  memory for them */
void sdp_queue_more_sends(struct sdp_conn *c);
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

/** sdp_regions_move() - @to, which has no regions, sends those of @from. 0; -ENOMEM */
int sdp_regions_move(struct sdp_conn *from, struct sdp_conn *to);

/** sdp_sink_offer() - lend the peer room for what it sends next, if it can use that. The
 *  program has got everything */
void sdp_sink_offer(struct sdp_conn *c);

/* --- channel.c --- */

/** sdp_channel_create() - for a connection that is being made. Without memory, there is none */
void sdp_channel_create(struct sdp_conn *c);
/** sdp_channel_join() - @from, which may be NULL, is the end that @c was connected by */
void sdp_channel_join(struct sdp_conn *c, struct sdp_conn *from);
/** sdp_channel_handed_over() - both programs have got its memory */
void sdp_channel_handed_over(struct sdp_conn *c);
/** sdp_channel_leave() - before the queue pair is destroyed */
void sdp_channel_leave(struct sdp_conn *c);
/** sdp_channel_move() - @to is its end now in place of @from */
void sdp_channel_move(struct sdp_conn *from, struct sdp_conn *to);
/** sdp_channel_fd() - its memory, for the program, the channel's; -1: there is none */
int sdp_channel_fd(const struct sdp_conn *c);
static inline int sdp_channel_side(const struct sdp_conn *c)
{
	return c->channel->end[1] == c;
}
/** sdp_channel_resets() - does the program want close() to be a reset? */
bool sdp_channel_resets(const struct sdp_conn *c);
/** sdp_channel_tell() - the program's next call returns @error, an errno, once: if both ends share
 *  memory */
void sdp_channel_tell(struct sdp_conn *c, u32 error);
/** sdp_channel_open_bypass() - both ends are there. Return: may bytes bypass the fabric? */
bool sdp_channel_open_bypass(struct sdp_channel *ch);
void sdp_channel_close_bypass(struct sdp_channel *ch);
/** sdp_channel_count() - the programs have moved @bytes from end @from */
void sdp_channel_count(struct sdp_channel *ch, int from, u64 bytes);

/* --- ring.c --- */

void sdp_ring_init(struct sdp_ring *r, struct sdp_channel *ch, int side);
/** sdp_ring_account() - count what the programs have moved */
void sdp_ring_account(struct sdp_ring *r);
/** sdp_ring_end_lease() - the programs stop to use the ring, as soon as they see it */
void sdp_ring_end_lease(struct sdp_ring *r);
/** sdp_ring_abandon() - an end of the connection goes */
void sdp_ring_abandon(struct sdp_ring *r);
/** sdp_channel_update() - at the end of a turn: grant leases, and end them */
void sdp_channel_update(struct sdp_conn *c);
/** sdp_channel_account() - sdp_ring_account() of both directions */
void sdp_channel_account(struct sdp_conn *c);
void sdp_channel_tick(struct rt_timer *timer);
/** sdp_ring_yields() - may bytes be taken from the program? As the ring is first, a lease ends if
 *  the socket has any */
bool sdp_ring_yields(struct sdp_conn *c);
/** sdp_ring_rest() - bytes that the program has left in the ring: before those of its socket */
u32 sdp_ring_rest(struct sdp_conn *c);
/** sdp_ring_take() - at most @room of them. Return: how many */
u32 sdp_ring_take(struct sdp_conn *c, void *to, u32 room);
/** sdp_ring_delivered() - the program's socket has got @bytes more, or the end of the stream */
void sdp_ring_delivered(struct sdp_conn *c, u32 bytes);

/* --- stream.c --- */

/** sdp_stream_deliver() - to the program, what it takes. Return: more could be done */
bool sdp_stream_deliver(struct sdp_conn *c);
/** sdp_stream_send() - from the program, what there are credits for. Return: the same */
bool sdp_stream_send(struct sdp_conn *c);
/** sdp_stream_watch() - for what can be done next */
void sdp_stream_watch(struct sdp_conn *c);
void sdp_stream_open(struct sdp_conn *c);
/** sdp_stream_hung_up() - has the program closed its descriptor, not only its sending half? */
bool sdp_stream_hung_up(const struct sdp_conn *c);

#endif
