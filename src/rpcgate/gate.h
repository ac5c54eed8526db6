/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * softib-rpcrdma: a gateway between RPC over TCP and RPC over RDMA. One beside the
 * clients takes their TCP connections (it is the requester), one beside a server connects
 * to it by TCP (the responder); between them messages travel as src/rpcrdma has them.
 *
 * For each TCP connection there is one RDMA connection: they are one relay, and end
 * together. So whatever goes wrong looks to clients and servers like a TCP connection
 * that broke, after which NFS clients connect and send their calls again. A relay has
 * slots, one for each call under way. All is one thread and one libev loop. It is a
 * program of librdmacm and libibverbs, and runs on any adapter.
 */
#ifndef SOFTIB_RPCGATE_GATE_H
#define SOFTIB_RPCGATE_GATE_H

#include <ev.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "base/list.h"
#include "rpcrdma/rpcrdma.h"

struct gate_options {
	bool serves; /* it is the responder */
	struct sockaddr_storage
		tcp; /* the requester listens there, the responder connects there */
	struct sockaddr_storage rdma; /* the other way round */
	uint32_t credits;	      /* calls under way, of a relay */
	uint32_t longest;	      /* message, in bytes */
	uint32_t inline_bytes;	      /* of the longest SEND */
	bool is_verbose;
};

struct gate {
	struct gate_options opt;
	struct ev_loop *loop;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener; /* the responder's */
	int listen_fd;		     /* the requester's, or -1 */
	struct ev_io on_channel, on_listen;
	struct ev_timer on_pause; /* in listening */
	struct ev_prepare
		on_turn; /* frees what has ended, when nothing of it is on the stack */
	struct list_head relays, ended;
};

/* --- stream.c: the TCP side --- */

struct stream {
	int fd; /* -1: none yet */
	struct ev_loop *loop;
	struct ev_io in, out;
	struct list_head queue; /* of what could not be written yet */
	uint8_t buffer[65536];
	size_t at, bytes; /* in buffer, not used yet */
	bool at_end;	  /* the peer sends no more */
};

/** stream_open() - take ownership of @fd. relay_on_tcp() is called for @owner when it can
 * be written; for reading, after stream_want() */
void stream_open(struct stream *s, struct ev_loop *loop, int fd, void *owner);
void stream_close(struct stream *s);
/** stream_send() - queue a message as a record, and write as much as the socket takes.
 * Return: 0; -errno */
int stream_send(struct stream *s, const uint8_t *message, size_t bytes);
/** stream_flush() - write as much of the queue as the socket takes. Return: 0; -errno */
int stream_flush(struct stream *s);
/** stream_fill() - read, if the buffer is empty. Return: 0, also at the end; -EAGAIN;
 * -errno */
int stream_fill(struct stream *s);
/** stream_want() - shall relay_on_tcp() be called when there is something to read? */
void stream_want(struct stream *s, bool wanted);

/* --- relay.c --- */

struct memory {
	uint8_t *at;
	size_t bytes;
	struct ibv_mr *mr;
};

enum slot_state {
	SLOT_FREE,
	SLOT_FILLING,  /* requester: a call arrives by TCP */
	SLOT_FETCHING, /* responder: parts of the call are being read */
	SLOT_CALLED,   /* the reply is awaited */
	SLOT_SENDING,  /* the reply is there and passed on, but a SEND is not complete */
};

/** struct slot - a call */
struct slot {
	enum slot_state state;
	uint32_t xid;
	bool is_sending; /* its SEND is not complete */
	struct rpcrdma_header header;
	struct rpcrdma_plan
		plan; /* the responder's; and of its pieces, the next to fetch */
	uint32_t next;
	struct memory call, reply;
};

/** struct relay - a TCP connection, and the RDMA connection that carries its messages */
struct relay {
	struct list_head node;
	struct gate *gate;
	struct rdma_cm_id *id;
	struct ibv_pd *pd;
	struct ibv_comp_channel *completions;
	struct ibv_cq *cq;
	struct ev_io on_completions;
	bool is_up;	/* both connections are established */
	bool on_demand; /* the device has on-demand paging: no memory is locked */
	bool has_ended; /* gate->ended has it */
	struct stream tcp;
	struct rpc_record record;
	uint32_t limit; /* calls under way: granted by the responder, or granted to the
			   requester */
	uint32_t threshold; /* of a SEND to the peer */
	uint8_t reads; /* the responder's: RDMA READs at once that the requester allows */
	struct memory recvs, sends; /* opt.inline_bytes for each receive, for each slot */
	uint8_t *incoming;	    /* the responder's: a reply that arrives by TCP */
	struct slot *filling;	    /* the requester's: for the call that arrives */
	uint32_t slots;
	struct slot slot[];
};

/** relay_new() - Return: a relay without connections; NULL: no memory */
struct relay *relay_new(struct gate *gate);
/** relay_end() - end both connections; calls under way are lost. @why: what went wrong,
 * for the user; NULL: nothing did. @error: an errno that explains it; 0: none */
void relay_end(struct relay *relay, const char *why, int error);
/** relay_free() - free a relay that has ended, when nothing of it is on the stack */
void relay_free(struct relay *relay);
/** relay_make_qp() - make the queue pair, its memory and its receives, when relay->id has
 * a device. Return: 0; -errno */
int relay_make_qp(struct relay *relay);
/** relay_go() - begin to carry messages, since both connections are established */
void relay_go(struct relay *relay);
/** relay_on_tcp() - handle an event of the TCP socket. @events: EV_READ, EV_WRITE */
void relay_on_tcp(struct relay *relay, int events);
/** relay_feed() - take messages that arrived by TCP, as long as there are slots for them
 */
void relay_feed(struct relay *relay);
/** relay_agree() - set the length of the longest SEND by what the peer said when it
 * connected (RFC 8797) */
void relay_agree(struct relay *relay, const struct rdma_conn_param *param);
/** relay_find() - Return: a slot in @state with the transaction id @xid, which does not
 * matter for SLOT_FREE; NULL: there is none */
struct slot *relay_find(struct relay *relay, enum slot_state state, uint32_t xid);
/** relay_memory() - allocate and register @bytes, unless @memory has them already.
 * Return: 0; -errno */
int relay_memory(struct relay *relay, struct memory *memory, size_t bytes, int access);
/** relay_send() - send the header @h and, behind it, a message of @bytes. Return: false:
 * it failed, and the relay has ended */
bool relay_send(struct relay *relay, struct slot *slot, const struct rpcrdma_header *h,
		const uint8_t *message, size_t bytes);
/** relay_post() - post a list of requests. Return: false: it failed, and the relay has
 * ended */
bool relay_post(struct relay *relay, struct ibv_send_wr *wr);
/** relay_slot_id() - Return: the wr_id for a request of @slot */
uint64_t relay_slot_id(const struct relay *relay, const struct slot *slot,
		       enum ibv_wr_opcode opcode);
/** relay_say() - print a line if the user wants to know (--verbose) */
void relay_say(const struct relay *relay, const char *what);

/** struct relay_ops - what the requester and the responder do in different ways */
struct relay_ops {
	/** to_fill() - Return: memory for a message that arrives by TCP; NULL: not now */
	uint8_t *(*to_fill)(struct relay *relay);
	/** on_message() - a message has arrived by TCP, in the memory that to_fill() gave
	 */
	void (*on_message)(struct relay *relay, uint8_t *message, size_t bytes);
	/** on_recv() - a SEND has arrived. @body: what follows its header. @error: what
	 * rpcrdma_decode() returned, 0 if it succeeded */
	void (*on_recv)(struct relay *relay, const struct rpcrdma_header *h, int error,
			const uint8_t *body, size_t bytes);
	/** on_fetched() - an RDMA READ of @slot has completed. The requester makes none
	 */
	void (*on_fetched)(struct relay *relay, struct slot *slot);
};

extern const struct relay_ops requester_ops, responder_ops;

/* --- connect.c: how relays begin --- */

/** gate_open() - begin to listen. Return: 0; -errno, after a message that says what to do
 */
int gate_open(struct gate *gate);
/** gate_close() - end and free all relays */
void gate_close(struct gate *gate);
/** gate_on_server() - the responder's TCP connection of @relay is established, or has
 * failed: accept or refuse the requester */
void gate_on_server(struct relay *relay);
/** gate_say() - print a line on stderr */
void gate_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/** gate_name() - an address as text */
const char *gate_name(const struct sockaddr_storage *address, char name[80]);

#endif
