/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * RPC-over-RDMA version 1, pure: how calls and replies of ONC RPC (those of NFS, for
 * example) travel over a reliable connection. The requester is the client's end, the
 * responder the server's.
 *
 * A small message follows its transport header in one SEND. For a large one the requester
 * registers memory and describes it in the header: the responder fetches a call from
 * there by RDMA READ, and puts a reply there by RDMA WRITE. The responder says with each
 * reply how many calls it takes at a time (credits).
 *
 * Sources: RFC 8166 (the protocol), RFC 8797 (private data of the connection), RFC 5531
 * (RPC, section 9 the headers, section 11 record marking).
 */
#ifndef SOFTIB_RPCRDMA_RPCRDMA_H
#define SOFTIB_RPCRDMA_RPCRDMA_H

#include "base/types.h"

#define RPCRDMA_VERSION	  1
#define RPCRDMA_THRESHOLD 1024 /* bytes of a SEND unless the ends agree on more */
/* So many segments of a chunk, entries of a Read list, and chunks of a Write list are understood. */
#define RPCRDMA_SEGMENTS      16
#define RPCRDMA_WRITES	      4
#define RPCRDMA_PIECES	      (2 * RPCRDMA_SEGMENTS + 1)
#define RPCRDMA_PRIVATE_BYTES 8
/* The longest header that is understood or made */
#define RPCRDMA_HEADER_BYTES                                                             \
	(28 + RPCRDMA_SEGMENTS * 24 + RPCRDMA_WRITES * (8 + RPCRDMA_SEGMENTS * 16) + 4 + \
	 RPCRDMA_SEGMENTS * 16)

/** enum rpcrdma_proc - kinds of messages (RFC 8166, 4.2.4) */
enum rpcrdma_proc {
	RPCRDMA_MSG = 0,   /* the RPC message follows, but for what chunks hold */
	RPCRDMA_NOMSG = 1, /* chunks hold all of it */
	RPCRDMA_MSGP = 2,  /* obsolete */
	RPCRDMA_DONE = 3,  /* obsolete */
	RPCRDMA_ERROR = 4,
};

/** enum rpcrdma_error - what an RPCRDMA_ERROR says (RFC 8166, 4.5) */
enum rpcrdma_error {
	RPCRDMA_ERR_VERS = 1,
	RPCRDMA_ERR_CHUNK = 2,
};

/** struct rpcrdma_segment - memory of the requester */
struct rpcrdma_segment {
	uint32_t handle; /* R_Key */
	uint32_t bytes;
	uint64_t offset; /* address */
};

/** struct rpcrdma_read - an entry of a Read list; entries of one position are one chunk
 */
struct rpcrdma_read {
	uint32_t position; /* in the RPC message as if nothing had been taken out of it */
	struct rpcrdma_segment from;
};

/** struct rpcrdma_chunk - memory that the responder writes, segment after segment */
struct rpcrdma_chunk {
	uint32_t segments;
	struct rpcrdma_segment segment[RPCRDMA_SEGMENTS];
};

/** struct rpcrdma_header - a transport header (RFC 8166, 4.2) */
struct rpcrdma_header {
	uint32_t xid, version;
	uint32_t credits; /* of a call: wanted; of a reply: granted */
	enum rpcrdma_proc proc;
	enum rpcrdma_error error; /* of RPCRDMA_ERROR; the rest belongs to others */
	uint32_t lowest, highest; /* versions, of RPCRDMA_ERR_VERS */
	uint32_t reads, writes;
	bool has_reply; /* there is a Reply chunk */
	struct rpcrdma_read read[RPCRDMA_SEGMENTS];
	struct rpcrdma_chunk write[RPCRDMA_WRITES];
	struct rpcrdma_chunk reply;
};

/* --- headers on the wire --- */

/** rpcrdma_encode() - Return: bytes at @out; 0: more than @room */
size_t rpcrdma_encode(const struct rpcrdma_header *h, uint8_t *out, size_t room);
/**
 * rpcrdma_decode() - read the header that begins at @in
 *
 * Return: its bytes. -EPROTONOSUPPORT: a version that is not 1; -EBADMSG: a list that is
 * cut off, too long, or not as the protocol has it. With these two, @h has the
 * transaction id, version and kind, so that the message can be answered by an error.
 * -EPROTO: too short for that.
 */
int rpcrdma_decode(struct rpcrdma_header *h, const uint8_t *in, size_t bytes);

/** struct rpcrdma_private - what an end says when it connects */
struct rpcrdma_private {
	uint32_t send_bytes, recv_bytes; /* the longest SEND that it makes and takes */
};

/** rpcrdma_private_encode() - sizes are rounded down to 1 KiB, from 1 to 256 KiB */
void rpcrdma_private_encode(const struct rpcrdma_private *said,
			    uint8_t out[RPCRDMA_PRIVATE_BYTES]);
/** rpcrdma_private_decode() - what the peer said; RPCRDMA_THRESHOLD each if @in is of
 * something else */
struct rpcrdma_private rpcrdma_private_decode(const uint8_t *in, size_t bytes);

/* --- the requester --- */

/**
 * rpcrdma_call() - the header of a call
 * @bytes: of the RPC message
 * @threshold: of the longest SEND
 * @call: registered memory that holds the message; it is lent only if the message is too
 * long
 * @reply: registered memory for a reply that is too long for a SEND
 *
 * h->proc says whether the message follows the header.
 */
void rpcrdma_call(struct rpcrdma_header *h, uint32_t xid, uint32_t credits, size_t bytes,
		  size_t threshold, const struct rpcrdma_segment *call,
		  const struct rpcrdma_segment *reply);
/**
 * rpcrdma_reply_bytes() - where the reply to a call is
 * @h: its header
 * @offered: memory that the call offered
 *
 * Return: its bytes in @offered; 0: it follows the header; -EREMOTEIO: the responder
 * could not handle the call; -EBADMSG: it says it wrote what it was not offered
 */
int64_t rpcrdma_reply_bytes(const struct rpcrdma_header *h,
			    const struct rpcrdma_segment *offered);

/* --- the responder --- */

/** struct rpcrdma_piece - a part of a call */
struct rpcrdma_piece {
	uint32_t at, bytes; /* where in the RPC message */
	bool is_sent;	    /* it came with the header, from byte from.offset on */
	struct rpcrdma_segment from; /* else it is fetched from here */
};

/** struct rpcrdma_plan - how to put a call together. Bytes that no piece has are 0
 * (padding) */
struct rpcrdma_plan {
	uint32_t bytes, pieces;
	struct rpcrdma_piece piece[RPCRDMA_PIECES];
};

/**
 * rpcrdma_plan() - of a call with the header @h, which @sent bytes followed
 * @longest: call that is taken
 *
 * Chunks are inserted where their positions say, and padded to four bytes (RFC
 * 8166, 3.4.5). Return: 0; -EBADMSG: lists that make no message, or too long a one
 */
int rpcrdma_plan(const struct rpcrdma_header *h, size_t sent, size_t longest,
		 struct rpcrdma_plan *plan);
/**
 * rpcrdma_reply() - the header of the reply to a call
 * @to: the call's header
 * @bytes: of the RPC message
 * @threshold: of the longest SEND
 *
 * RPCRDMA_MSG: the message follows. RPCRDMA_NOMSG: the segments of h->reply are to be
 * written first, each with as many bytes as it has now. RPCRDMA_ERROR: the requester
 * offered too little.
 */
void rpcrdma_reply(struct rpcrdma_header *h, const struct rpcrdma_header *to,
		   uint32_t credits, size_t bytes, size_t threshold);
/** rpcrdma_refuse() - the header of an answer to a message that rpcrdma_decode() or
 * rpcrdma_plan() refused
 *  @why: what it returned */
void rpcrdma_refuse(struct rpcrdma_header *h, const struct rpcrdma_header *to,
		    uint32_t credits, int why);

/* --- RPC --- */

#define RPC_MARK_BYTES	4  /* before each fragment of a record */
#define RPC_SHORTEST	8  /* a message: transaction id and kind */
#define RPC_ERROR_BYTES 24 /* rpc_system_error() */

enum rpc_kind { RPC_CALL = 0, RPC_REPLY = 1 };

/** rpc_kind() - of a message of at least RPC_SHORTEST bytes. Return: enum rpc_kind, or
 * what else it says */
uint32_t rpc_kind(const uint8_t *message);
/** rpc_xid() - its transaction id */
uint32_t rpc_xid(const uint8_t *message);
/** rpc_system_error() - the reply of a server that could not perform a call (SYSTEM_ERR)
 */
void rpc_system_error(uint32_t xid, uint8_t out[RPC_ERROR_BYTES]);

/** struct rpc_record - a message that arrives by TCP, in fragments; zero but for @to and
 * @room before each */
struct rpc_record {
	uint8_t *to; /* the caller's */
	size_t room, bytes;
	uint8_t mark[RPC_MARK_BYTES];
	uint32_t mark_bytes;
	uint32_t left; /* of the fragment */
	bool is_last;  /* fragment */
};

enum rpc_record_state {
	RPC_RECORD_MORE,     /* is needed */
	RPC_RECORD_WHOLE,    /* record->bytes at record->to */
	RPC_RECORD_TOO_LONG, /* for record->room: the stream cannot go on */
};

/** rpc_record_take() - go on with bytes of the stream; @used: how many of them belong to
 * this record */
enum rpc_record_state rpc_record_take(struct rpc_record *record, const uint8_t *in,
				      size_t bytes, size_t *used);
/** rpc_record_mark() - what a message of @bytes, sent as one fragment, begins with */
void rpc_record_mark(uint8_t out[RPC_MARK_BYTES], uint32_t bytes);

#endif
