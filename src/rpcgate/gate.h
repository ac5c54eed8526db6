/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * softib-rpcrdma: a gateway between RPC over TCP and RPC over RDMA. One beside the clients takes
 * their TCP connections (it is the requester), one beside a server connects to it by TCP (the
 * responder); between them messages travel as src/rpcrdma has them.
 *
 * For each TCP connection there is one RDMA connection: they are one link, and end together. So
 * whatever goes wrong looks to clients and servers like a TCP connection that broke, after which
 * NFS clients connect and send their calls again. A link has slots, one for each call under
 * way. All is one thread and one libev loop. It is a program of librdmacm and libibverbs, and
 * runs on any adapter.
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
	struct sockaddr_storage tcp;  /* the requester listens there, the responder connects there */
	struct sockaddr_storage rdma; /* the other way round */
	uint32_t credits;	      /* calls under way, of a link */
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
	struct ev_prepare on_turn; /* frees what has ended, when nothing of it is on the stack */
	struct list_head links, ended;
};

/* --- stream.c: the TCP side --------------------------------------------------------- */

struct stream {
	int fd; /* -1: none yet */
	struct ev_loop *loop;
	struct ev_io in, out;
	struct list_head queue; /* of what could not be written yet */
	uint8_t buffer[65536];
	size_t at, bytes; /* in buffer, not used yet */
	bool at_end;	  /* the peer sends no more */
};

/** stream_open() - @fd is the stream's now; link_on_tcp() hears of it. Reading is off */
void stream_open(struct stream *s, struct ev_loop *loop, int fd, void *owner);
void stream_close(struct stream *s);
/** stream_send() - a message as a record. Return: 0; -errno */
int stream_send(struct stream *s, const uint8_t *message, size_t bytes);
/** stream_flush() - write what waits. Return: 0; -errno */
int stream_flush(struct stream *s);
/** stream_fill() - read, if the buffer is empty. Return: 0, also at the end; -EAGAIN; -errno */
int stream_fill(struct stream *s);
/** stream_want() - shall link_on_tcp() be called when there is something to read? */
void stream_want(struct stream *s, bool wanted);

/* --- link.c ------------------------------------------------------------------------- */

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
	struct rpcrdma_plan plan; /* the responder's; and of its pieces, the next to fetch */
	uint32_t next;
	struct memory call, reply;
};

/** struct link - a TCP connection and an RDMA connection */
struct link {
	struct list_head node;
	struct gate *gate;
	struct rdma_cm_id *id;
	struct ibv_pd *pd;
	struct ibv_comp_channel *completions;
	struct ibv_cq *cq;
	struct ev_io on_completions;
	bool is_up;	   /* both connections are */
	bool on_demand;	   /* the device has on-demand paging: no memory is locked */
	bool has_ended;	   /* gate->ended has it */
	struct stream tcp;
	struct rpc_record record;
	uint32_t limit;	   /* calls under way: granted by the responder, or granted to the requester */
	uint32_t threshold; /* of a SEND to the peer */
	uint8_t reads;	    /* the responder's: RDMA READs at once that the requester allows */
	struct memory recvs, sends; /* opt.inline_bytes for each receive, for each slot */
	uint8_t *incoming;	    /* the responder's: a reply that arrives by TCP */
	struct slot *filling;	    /* the requester's */
	uint32_t slots;
	struct slot slot[];
};

/** link_new() - Return: a link without connections; NULL: no memory */
struct link *link_new(struct gate *gate);
/** link_end() - the link ends: what is under way is lost. @why: NULL: as it should */
void link_end(struct link *link, const char *why, int error);
/** link_free() - of one that has ended */
void link_free(struct link *link);
/** link_make_qp() - when link->id has a device. Return: 0; -errno */
int link_make_qp(struct link *link);
/** link_go() - both connections are there */
void link_go(struct link *link);
/** link_on_tcp() - the TCP socket can be read (EV_READ) or written */
void link_on_tcp(struct link *link, int events);
/** link_feed() - go on with what came by TCP */
void link_feed(struct link *link);
/** link_agree() - on the length of a SEND: with what the peer said when it connected */
void link_agree(struct link *link, const struct rdma_conn_param *param);
struct slot *link_find(struct link *link, enum slot_state state, uint32_t xid);
/** link_memory() - registered memory of at least @bytes; what is there already is kept. Return: 0; -errno */
int link_memory(struct link *link, struct memory *memory, size_t bytes, int access);
/** link_send() - slot->header and, behind it, a message. Return: false: the link has ended */
bool link_send(struct link *link, struct slot *slot, const struct rpcrdma_header *h, const uint8_t *message,
	       size_t bytes);
/** link_post() - Return: false: the link has ended */
bool link_post(struct link *link, struct ibv_send_wr *wr);
/** link_slot_id() - a wr_id of requests of @slot */
uint64_t link_slot_id(const struct link *link, const struct slot *slot, enum ibv_wr_opcode opcode);
/** link_say() - to a user who wants to know */
void link_say(const struct link *link, const char *what);

/** struct link_ops - what the requester and the responder do in different ways */
struct link_ops {
	/** to_fill() - Return: memory for a message that arrives by TCP; NULL: not now */
	uint8_t *(*to_fill)(struct link *link);
	/** on_message() - it is there */
	void (*on_message)(struct link *link, uint8_t *message, size_t bytes);
	/** on_recv() - a message came by RDMA; @body: what follows its header. @error: of rpcrdma_decode() */
	void (*on_recv)(struct link *link, const struct rpcrdma_header *h, int error, const uint8_t *body,
			size_t bytes);
	/** on_fetched() - an RDMA READ of @slot is complete */
	void (*on_fetched)(struct link *link, struct slot *slot);
};

extern const struct link_ops requester_ops, responder_ops;

/* --- connect.c: how links begin ------------------------------------------------------ */

/** gate_open() - listen. Return: 0; -errno, after a message */
int gate_open(struct gate *gate);
/** gate_close() - end and free all links */
void gate_close(struct gate *gate);
/** gate_on_server() - the responder's TCP connection of @link is there, or failed */
void gate_on_server(struct link *link);
/** gate_say() - a line on stderr */
void gate_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/** gate_name() - an address as text */
const char *gate_name(const struct sockaddr_storage *address, char name[80]);

#endif
