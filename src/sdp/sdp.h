/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * One connection of the Sockets Direct Protocol (IBA v1 annex A4) as a state machine: no
 * I/O, no clock, no allocation. Its user, the shell, owns the queue pair, the buffers and
 * the program's socket. The shell reports what happens and asks what to do:
 *
 *   sdp_received()	a message arrived in a receive buffer (a slot)
 *   sdp_rx_head()	the next piece of the received stream, to be given to the program
 *   sdp_next()		the next message to send, given what the program has written
 *
 * States:	IDLE -> HELLO_SENT -> OPEN -> ENDED; the passive end goes from IDLE to OPEN.
 *		OPEN -> SUSPENDED -> ENDED if the stream moves to another connection (suspend.c).
 *
 * Closing:	each direction of an OPEN connection ends with a DisConn of its sender. The
 *		connection has ENDED when both have passed and the last own message has been
 *		acknowledged by the transport, or at once when either end aborts.
 *
 * Timers:	none. The reliable connection finds out that a peer is dead.
 *
 * Flow control (A4.5): each message says how many receive buffers its sender had posted
 * when it had received message mseq_ack. The peer may send up to number mseq_ack + bufs.
 * Messages with data leave SDP_RESERVED credits to the others; the very last credit is for
 * a message that grants credits. So two ends that are both out of credits for data can
 * always tell each other that buffers were freed (send.c).
 */
#ifndef SOFTIB_SDP_SDP_H
#define SOFTIB_SDP_SDP_H

#include "wire/sdp.h"

#define SDP_SLOTS_MIN	  8
#define SDP_SLOTS_MAX	  64
#define SDP_ADVERTS_MAX	  8
#define SDP_RCV_BYTES_MIN 256
#define SDP_RESERVED	  4 /* credits that messages with data leave */
#define SDP_ITEMS_MAX	  (SDP_SLOTS_MAX + 2 * SDP_ADVERTS_MAX)

enum sdp_state { SDP_IDLE, SDP_HELLO_SENT, SDP_OPEN, SDP_SUSPENDED, SDP_ENDED };

/** enum sdp_end - why a connection has ended */
enum sdp_end {
	SDP_NOT_ENDED,
	SDP_CLOSED,  /* both directions were closed in order */
	SDP_ABORTED, /* by this end */
	SDP_RESET,   /* by the peer */
	SDP_BROKEN,  /* the peer violated the protocol */
	SDP_LOST,    /* the transport failed */
};

/** struct sdp_config - @slots: receive buffers, all posted before the Hello; @rcv_bytes:
 *  of each, headers included, at first; @rcv_max: of each, if the peer asks for it; 0: they keep
 *  their size; @send_bytes: of the largest message with data that this end can send, headers
 *  included, however large the peer's buffers are; 0: no limit; @max_adverts: SrcAvails and
 *  SinkAvails of the peer that may be outstanding; @advert_bytes: advertise memory in place of sending at least so many
 *  bytes; 0: never; @pipelines: then have several advertisements outstanding */
struct sdp;

/** enum sdp_trace - what sdp_config.trace() reports: states, modes of a direction */
enum sdp_trace { SDP_TRACE_STATE, SDP_TRACE_TX_MODE, SDP_TRACE_RX_MODE };

struct sdp_config {
	uint16_t slots;
	uint32_t rcv_bytes;
	uint32_t rcv_max;
	uint32_t send_bytes;
	uint8_t max_adverts;
	uint32_t advert_bytes;
	bool pipelines;
	/** trace() - something is about to change, while *@traced is not 0; may be NULL */
	void (*trace)(const struct sdp *sdp, enum sdp_trace what, int from, int to);
	const uint8_t *traced; /* the owner's; NULL: never */
};

/** struct sdp_item - a piece of the received stream: @bytes at @offset of slot @slot, or of
 *  the sink at @address, then @left bytes that are still in the peer's
 *  memory (SrcAvail) */
struct sdp_item {
	uint16_t slot;
	bool holds_slot, in_sink;
	bool oob;	 /* the last of @bytes is out-of-band data */
	bool cancelled;	 /* the peer wants its memory back */
	bool read_noted; /* the last of sdp.read_due is about this item */
	uint32_t offset, bytes;
	uint32_t left, reading; /* reading: of @left, being read */
	uint32_t rkey;
	uint64_t address; /* of the first byte of @left; of the sink */
};

/** struct sdp_sink - memory that the other end may write to (SinkAvail) */
struct sdp_sink {
	uint32_t bytes, rkey;
	uint64_t address;
};

/** struct sdp - a connection; all fields are this layer's, to be read by anyone */
struct sdp {
	struct sdp_config config;
	enum sdp_state state;
	enum sdp_end end;
	/* --- sending --- */
	uint32_t tx_seq, tx_limit; /* last message sent; last that may be sent */
	uint32_t tx_unacked;	   /* messages whose send is not complete */
	uint32_t peer_rcv_bytes;
	uint8_t peer_adverts; /* SrcAvails that the peer allows */
	uint8_t tx_mode;      /* enum wire_sdp_mode */
	bool tx_shut;	      /* the program has nothing more to send */
	bool disconn_sent;
	bool abort_due, abort_sent;
	/* --- moving to another connection (suspend.c) --- */
	bool active; /* this end has sent the Hello */
	bool susp_due, susp_sent, susp_received, susp_ack_sent;
	uint64_t susp_service; /* where the connection that follows is awaited */
	uint32_t advert[SDP_ADVERTS_MAX]; /* SrcAvails, oldest first: bytes not read yet */
	uint32_t num_adverts;
	bool cancel_due, cancel_sent;		/* they are wanted back */
	struct sdp_sink sink[SDP_ADVERTS_MAX];	/* the peer's, oldest first */
	struct sdp_sink target;			/* of the last RdmaWrCompl */
	uint32_t num_sinks, tx_data;		/* tx_data: memory.c */
	uint32_t read_due[SDP_ADVERTS_MAX];	/* bytes, an RdmaRdCompl each */
	uint32_t num_reads_due;
	bool send_sm_due, rcv_buf_due, rcv_buf_ack_due, sink_cancel_ack_due, combined_due;
	bool rcv_buf_asked, combined_asked;
	/* --- the size of buffers (resize.c) --- */
	uint32_t rcv_buf_ask;	 /* of the request that is due or not answered */
	bool rcv_buf_refused;	 /* the peer has not granted a larger size */
	uint32_t full_run, small_run; /* messages with data in a row */
	uint32_t rcv_grant;	 /* own answer, due or sent */
	uint32_t slot_bytes;	 /* of slots that are posted from now on */
	uint32_t small_posted;	 /* slots in the receive queue that are smaller, while the answer waits */
	/* --- receiving --- */
	uint32_t rx_seq,
		rx_limit;      /* last received; last that the peer knows it may send */
	uint32_t posted;       /* slots in the receive queue */
	bool freed_by_message; /* one was freed by more than a grant of credits */
	uint8_t rx_mode;
	bool rx_shut; /* the program reads no more */
	bool disconn_received;
	bool oob_pending; /* the peer has announced out-of-band data */
	/* own sinks, oldest first: those that were advertised, then those that will be */
	struct sdp_sink own_sink[SDP_ADVERTS_MAX];
	uint32_t num_own_sinks, sinks_out, rx_data; /* rx_data: memory.c */
	bool sink_cancel_due, sink_cancel_sent;
	bool no_sinks; /* the peer has left the pipelined mode */
	uint32_t first, num_items;
	struct sdp_item item[SDP_ITEMS_MAX];
};

/** struct sdp_address - who connects to whom: IPv6 addresses, or IPv4-mapped ones */
struct sdp_address {
	uint8_t src[16], dst[16];
	uint16_t src_port;
};

/* --- beginning --- */

/** sdp_init() - Return: 0; -EINVAL a value of @config is beyond its limits above */
int sdp_init(struct sdp *sdp, const struct sdp_config *config);

/** sdp_hello() - begin actively. @buf: WIRE_SDP_HELLO_BYTES of private data for the REQ
 */
void sdp_hello(struct sdp *sdp, const struct sdp_address *address, uint8_t *buf);

/**
 * sdp_accept() - begin passively with the Hello of a REQ
 * @address: set on success, as the peer sees it
 * @ack: WIRE_SDP_HELLO_ACK_BYTES of private data for the REP
 * Return: 0; -EPROTO it is no Hello that this end can accept
 */
int sdp_accept(struct sdp *sdp, const uint8_t *hello, size_t len,
	       struct sdp_address *address, uint8_t *ack);

/** sdp_accepted() - the REP's private data has come. 0; -EPROTO no proper HelloAck */
int sdp_accepted(struct sdp *sdp, const uint8_t *ack, size_t len);

/* --- receiving --- */

/** struct sdp_input - what a message did. @holds_slot: it is part of the stream, and its
 *  slot is free only when sdp_rx_took() says so; else it is free now. @taken: the peer
 *  has read so many bytes of the oldest region that was advertised. @returned: all that was
 *  advertised and not taken is to be offered again, before anything else. @sinks_unused:
 *  so many sinks, the oldest that were advertised, will not be written to any more */
struct sdp_input {
	bool holds_slot, returned;
	uint32_t taken, sinks_unused;
};

/**
 * sdp_received() - a message has arrived
 * @slot: the shell's number for the buffer, returned in struct sdp_item
 * Return: 0; -EPROTO the connection has ended as SDP_BROKEN
 */
int sdp_received(struct sdp *sdp, uint16_t slot, const uint8_t *buf, size_t len,
		 struct sdp_input *input);

/** sdp_posted() - a free slot is in the receive queue again, with room for sdp->slot_bytes */
void sdp_posted(struct sdp *sdp);

/** sdp_rx_head() - the oldest piece that the program has not got; NULL: there is none */
struct sdp_item *sdp_rx_head(struct sdp *sdp);

/** sdp_rx_took() - the program has got @bytes of those in the head's slot or sink. Return:
 *  is the slot or sink, which was the head's, free now? */
bool sdp_rx_took(struct sdp *sdp, uint32_t bytes);

/** sdp_rx_reading() - an RDMA READ of the head's first @bytes in the peer's memory
 * begins. The head has none in its slot any more, and is not being read */
void sdp_rx_reading(struct sdp *sdp, uint32_t bytes);

/** sdp_rx_read() - it is complete; what was read is the shell's to deliver */
void sdp_rx_read(struct sdp *sdp);

/** sdp_rx_ended() - has the program got everything, and will nothing more come? */
bool sdp_rx_ended(const struct sdp *sdp);

/**
 * sdp_offer_sink() - memory for what the peer sends next, if it has not begun to send it
 * @sink: the peer may write to it from now on, until sdp_received() reports it written to
 *	  (an item of the stream) or unused, or the connection has ended
 * Return: false: there are as many already as the peer allows, or the mode of this
 *	   direction is not the pipelined one
 */
bool sdp_offer_sink(struct sdp *sdp, const struct sdp_sink *sink);

/** sdp_cancel_sinks() - all sinks are wanted back. Those that are not written to meanwhile
 *  will be reported as unused. Return: so many, the last ones offered, are free at once */
uint32_t sdp_cancel_sinks(struct sdp *sdp);

/* --- sending --- */

/** struct sdp_offer - what the program has written and was neither sent nor advertised yet.
 *  @oob: the last byte is out-of-band data. @region_bytes: the first so many can be read by
 *  the peer at @address by @rkey, and stay there until taken; 0: none */
struct sdp_offer {
	uint32_t bytes;
	bool oob;
	uint32_t region_bytes, rkey;
	uint64_t address;
};

/** sdp_room() - how many bytes the next message with data may carry now; 0: none may be
 *  sent, so the shell need not read from the program */
uint32_t sdp_room(const struct sdp *sdp);

/** sdp_may_advertise() - would a region be advertised now, if it were offered? */
bool sdp_may_advertise(const struct sdp *sdp);

/**
 * sdp_next() - the next message to send
 * @msg: set on success. Its payload is the first payload_bytes of the offer; its payload
 *	 pointer is not set. These bytes leave the offer with this call, and so does the
 *	 whole region of a SrcAvail, until sdp_received() says that it is taken or returned.
 *	 For an RdmaWrCompl, the first count.bytes of the offer are to be written to
 *	 sdp->target by RDMA WRITE before this message is sent, and leave the offer.
 * Return: false: there is nothing to send, or no credit to send it
 */
bool sdp_next(struct sdp *sdp, const struct sdp_offer *offer, struct wire_sdp_msg *msg);

/** sdp_ask_buffers() - ask the peer for receive buffers of @bytes, headers included; it may grant
 *  another size (A4.7). Return: false: an earlier request is not answered yet, or the stream has ended */
bool sdp_ask_buffers(struct sdp *sdp, uint32_t bytes);

/** sdp_sent() - the send of one message is complete */
void sdp_sent(struct sdp *sdp);

/** sdp_cancel_adverts() - the advertised memory is wanted back, to be sent as data */
void sdp_cancel_adverts(struct sdp *sdp);

/* --- moving --- */

/**
 * sdp_suspend() - ask the peer to leave this connection, and to make another one for the stream (SuspComm)
 * @service_id: of the CM, to which the peer is to connect
 * Both ends are SDP_SUSPENDED when the peer has agreed. Nothing is under way then: what either end has not sent is
 * still its shell's, and what was received still can be taken. The peer may have asked at the same time, and is
 * followed if it has sent the Hello: then susp_received is set, and susp_service is the peer's.
 * Return: false: this end or the peer has asked already, or there is no stream to be moved any more
 */
bool sdp_suspend(struct sdp *sdp, uint64_t service_id);

/** sdp_is_leaving() - has either end asked to suspend the communication? Then nothing new begins */
static inline bool sdp_is_leaving(const struct sdp *sdp)
{
	return sdp->susp_due || sdp->susp_sent || sdp->susp_received;
}

/** sdp_not_resumed() - the connection that was to follow could not be made: the stream ends as SDP_LOST */
void sdp_not_resumed(struct sdp *sdp);

/* --- ending --- */

/** sdp_shutdown() - the program sends nothing more: DisConn follows what is offered */
void sdp_shutdown(struct sdp *sdp);

/** sdp_close() - the program neither sends nor reads any more. As TCP does, abort if
 * there is something that it has not read, now or later; else sdp_shutdown() */
void sdp_close(struct sdp *sdp);

/** sdp_abort() - end at once. sdp_next() gives an AbortConn if there is a credit for it
 */
void sdp_abort(struct sdp *sdp);

/** sdp_lost() - the queue pair has failed */
void sdp_lost(struct sdp *sdp);

/** sdp_disconnected() - the peer's CM says that the connection is over, and everything
 * that arrived before was reported. A peer that has ended in order disconnects as soon as
 * it has our DisConn, even if the acknowledgement of that is lost */
void sdp_disconnected(struct sdp *sdp);

#endif
