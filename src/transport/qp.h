/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The state of a queue pair. Only src/transport uses it; fast.h has what the engine's fast path
 * may ask of it.
 *
 * The send queue is a ring of requests between four free-running indices
 *
 *   tail <= next <= fresh <= head,   next <= end <= head
 *
 *   tail    oldest request without an outcome
 *   next    request that the next packet belongs to; goes back to tail when
 *           packets have to be sent again
 *   fresh   first request that has no PSNs yet
 *   head    where the next post goes
 *   end     where sending stops: head in RTS, fresh in SQD, a failed request
 *
 * and, for the packets of those requests (RC), between three PSNs
 *
 *   una     oldest PSN that is not acknowledged
 *   nxt     PSN of the next packet
 *   sent    one past the highest PSN ever sent
 *
 * PSNs are compared by their distance from una, which stays below 2^23, half
 * of the PSN space (9.7.1): the requester never has more outstanding.
 *
 * A request owns the PSNs of its packets, or none: a local operation (LOCAL_INV, BIND_MW)
 * carries no packet and is not known to the peer. It is executed when its turn to be sent
 * comes, and once: next passes it by when packets are sent again. It completes in order,
 * when tail comes to it. So the request at tail is never one that was executed.
 */
#ifndef SOFTIB_TRANSPORT_QP_H
#define SOFTIB_TRANSPORT_QP_H

#include <string.h>

#include "transport/transport.h"

/* request packets that may be in flight before an ACK must come; inside a long message, a packet
 * of each quarter of the window has AckReq */
#define TP_WINDOW 256
#define TP_SEGMENT_WINDOW 8192 /* the same for segments, whose number the lane's ring limits */
#define TP_ACK_PACKETS 64      /* an ACK may be delayed until it acknowledges so many packets */
#define TP_STREAM_MESSAGES 8   /* a QP with more outstanding messages streams: latency is unimportant */
#define TP_STREAM_ACKED 16     /* an ACK of so many messages is part of such a stream */
#define TP_PSN_HALF (1u << 23)
#define TP_MESSAGE_MAX (1u << 31) /* bytes (9.7.7.1) */

/* 9.7.7.2: an ACK without credits. The responder does not count receives, because they may be
 * shared or posted late; an RNR NAK reports a missing one. */
#define TP_ACK_NO_CREDITS (WIRE_AETH_ACK | WIRE_AETH_CREDIT_INVALID)

/* --- the table of send operations (opcode.c) --- */

enum tp_op_flags {
	TP_OP_READ = 1 << 0,
	TP_OP_ATOMIC = 1 << 1,
	TP_OP_RETH = 1 << 2,
	TP_OP_RECEIVES = 1 << 3, /* consumes a receive at the peer */
	TP_OP_LOCAL = 1 << 4,	 /* owns no PSN */
	TP_OP_ATOMIC_WRITE = 1 << 5,
	TP_OP_FLUSH = 1 << 6,
	TP_OP_CUT = 1 << 7, /* a message for each mss_bytes of its payload */
	TP_OP_EMPTY = TP_OP_ATOMIC_WRITE | TP_OP_FLUSH, /* their responses have no data */
	/* ends by a response of its own, and counts against max_rd_atomic */
	TP_OP_RESPONDS = TP_OP_READ | TP_OP_ATOMIC | TP_OP_EMPTY,
};

/** struct tp_op - what a work request's opcode means for its packets */
struct tp_op {
	uint8_t first, middle, last, only; /* enum wire_operation */
	uint8_t transport_mask;		   /* 1 << enum tp_type */
	uint8_t flags;			   /* enum tp_op_flags */
};

/* --- the table of transport types (opcode.c) --- */

enum tp_can {
	TP_ACKNOWLEDGED = 1 << 0, /* requests wait for their answers, and are sent again */
	TP_CONNECTED = 1 << 1,	  /* one peer */
	TP_FAST = 1 << 2,	  /* its SENDs of one packet may take the fast path */
	TP_ADDRESSED = 1 << 3,	  /* each request names the QP that it is for */
	TP_RDMA = 1 << 4,	  /* messages of many packets, RDMA and atomics */
	TP_HELD = 1 << 5,	  /* its requests wait for the engine to take them (hold.c) */
	TP_EE_CONTEXT = 1 << 6,	  /* it is an EE context, which carries the messages of RD QPs */
	TP_SRQ_NUMBER = 1 << 7,	  /* its requests name the SRQ that receives them (A14) */
	TP_DATAGRAM = 1 << 8,	  /* each packet is a message of its own, and has a DETH */
	TP_BY_WINDOW = 1 << 9,	  /* its RDMA and atomics may be performed through a window */
};

/** struct tp_kind - what a transport type is capable of. A new type is a row */
struct tp_kind {
	uint8_t transport; /* enum wire_transport */
	uint16_t can;	   /* enum tp_can */
};
extern const struct tp_kind tp_kinds[];

#define TP_OPS (TP_WR_RESYNC + 1)
extern const struct tp_op tp_ops_table[TP_OPS];
/* the row of IBV_WR_SEND, which is a constant on the fast path (fast.h) */
#define TP_OP_SEND                                                                         \
	{                                                                                  \
		WIRE_SEND_FIRST, WIRE_SEND_MIDDLE, WIRE_SEND_LAST, WIRE_SEND_ONLY,         \
			1 << TP_RC | 1 << TP_UC | 1 << TP_XRC | 1 << TP_RD | 1 << TP_EE |  \
				1 << TP_UD | 1 << TP_RAW,                                  \
			TP_OP_RECEIVES                                                     \
	}
/** tp_wc_opcode() - the opcode of the completion of a request with @opcode (11.4.2.1), which is a
 *  constant if @opcode is one */
static inline uint8_t tp_wc_opcode(unsigned opcode)
{
	static const uint8_t completed_as[TP_OPS] = {
		[IBV_WR_SEND] = IBV_WC_SEND,
		[IBV_WR_SEND_WITH_IMM] = IBV_WC_SEND,
		[IBV_WR_SEND_WITH_INV] = IBV_WC_SEND,
		[IBV_WR_TSO] = IBV_WC_TSO,
		[IBV_WR_RDMA_WRITE] = IBV_WC_RDMA_WRITE,
		[IBV_WR_RDMA_WRITE_WITH_IMM] = IBV_WC_RDMA_WRITE,
		[IBV_WR_LOCAL_INV] = IBV_WC_LOCAL_INV,
		[IBV_WR_BIND_MW] = IBV_WC_BIND_MW,
		[TP_WR_REG_MR] = TP_WC_REG_MR,
		[IBV_WR_RDMA_READ] = IBV_WC_RDMA_READ,
		[IBV_WR_ATOMIC_CMP_AND_SWP] = IBV_WC_COMP_SWAP,
		[IBV_WR_ATOMIC_FETCH_AND_ADD] = IBV_WC_FETCH_ADD,
		[TP_WR_FLUSH] = TP_WC_FLUSH,
		[IBV_WR_ATOMIC_WRITE] = IBV_WC_ATOMIC_WRITE,
	};

	return completed_as[opcode];
}
/** tp_credits - receives that an AETH credit code promises (table 45) */
extern const uint16_t tp_credits[32];

/* --- the send queue --- */

/** struct tp_sqe - a posted request: one cache line */
struct tp_sqe {
	uint64_t wr_id;
	uint64_t remote_addr;
	uint32_t length_bytes;
	uint32_t imm_or_rkey;
	union {
		uint32_t rkey;
		struct {
			uint16_t header_bytes, mss_bytes; /* TP_OP_CUT */
		};
	};
	psn_t first_psn, last_psn; /* of its packets, or of its responses */
	uint16_t flags;		   /* enum ibv_send_flags, TP_SQE_KIND */
	uint8_t opcode;
	uint8_t num_sge;
	union {
		struct {
			uint64_t compare_add, swap; /* atomics */
		};
		struct tp_bind bind;
		struct tp_flush flush;
		uint8_t brief[sizeof(struct tp_sge)]; /* others: tp_data() */
	};
	uint32_t srqn; /* XRC */
} __attribute__((aligned(64)));
_Static_assert(sizeof(struct tp_sqe) == 64 && offsetof(struct tp_sqe, brief) % 8 == 0,
	       "a request is a cache line, and a piece is aligned in it");

/* in the flags of a request that ends by a response of its own (TP_OP_RESPONDS), and of one
 * that owns no PSN (TP_OP_LOCAL): no acknowledgement of packets completes these */
#define TP_SQE_RESPONDS (1u << 15)
#define TP_SQE_LOCAL (1u << 14)
#define TP_SQE_KIND (TP_SQE_RESPONDS | TP_SQE_LOCAL)

/** struct tp_destination - where a request goes, if it names that itself (TP_ADDRESSED) */
struct tp_destination {
	struct tp_av av; /* UD */
	uint32_t qpn, qkey;
	uint32_t ee_context, src_qpn; /* RD */
};

/** struct tp_cursor - a place in a list of pieces of memory */
struct tp_cursor {
	uint32_t sge, offset;
};

/* why nothing can be sent although requests wait */
enum tp_block {
	TP_BLOCK_WINDOW = 1 << 0,
	TP_BLOCK_READS = 1 << 1, /* max_rd_atomic reached, or a fence */
	TP_BLOCK_CREDIT = 1 << 2,
	TP_BLOCK_RNR = 1 << 3, /* waits for the RNR timer */
	TP_BLOCK_PROGRESS = TP_BLOCK_WINDOW | TP_BLOCK_READS | TP_BLOCK_CREDIT,
};

/* what happens when tail reaches end */
enum tp_stop {
	TP_STOP_NONE,
	TP_STOP_DRAIN, /* SQD: tell that the queue is drained */
	TP_STOP_HOLD,  /* what is posted waits for tp_qp_release() */
	TP_STOP_FAIL,  /* the request at end completes with sq.fail_status */
};

struct tp_sq {
	/* --- indices --- */
	uint32_t head, end, next, fresh; /* side by side, since a SEND of the fast path advances all */
	uint32_t tail;
	/* The number of SENDs that the fast path may still send from their posts without checking
	 * the queue again (tp_fast_look()). 0: it has to be checked. Everything that may make the
	 * queue unfit for the fast path sets it to 0, and so does a post by the general path */
	uint32_t fast_left;
	uint8_t block; /* enum tp_block */
	uint8_t stop;  /* enum tp_stop */
	bool executed; /* there may be executed local operations in [tail, fresh) */
	uint8_t fail_status;
	bool held_begun; /* the oldest request is being done another way (hold.c) */
	bool recovering; /* packets are being sent again; no progress yet */
	/* --- packets --- */
	psn_t nxt, sent, una;
	psn_t asked; /* inside a message (next < fresh): behind the last packet sent that
			has AckReq, or what is sent again from una */
	uint32_t read_psns; /* PSNs of READ responses in [una, nxt) */
	uint32_t responses; /* READs and atomics in [tail, next) */
	psn_t cursor_psn;   /* where the cursor stands */
	struct tp_cursor cursor;
	mono_t timer; /* acknowledgement, or RNR while blocked by it */
	bool half_waited; /* the first half of the wait is over */
	uint8_t retries_left, rnr_left;
	/* --- end-to-end credits (9.7.7.2) --- */
	bool limited;
	uint32_t limit_ssn; /* last message that has a receive waiting */
	/* requests that the peer does not count, ever: before tail, and before next */
	uint32_t uncounted_tail, uncounted_next;
	/* --- geometry, immutable after init --- */
	uint32_t mask, depth, slot_bytes, max_sge, max_inline, own_depth, max_header;
	uint32_t own; /* requests with TP_SEND_OWN in [tail, head) */
	struct tp_sqe *ring;
	uint8_t *slots;	  /* per request: its sge list or its inline data, when they are long */
	uint8_t *headers; /* per request: the header, if it is cut; NULL: tp_qp_give_headers() */
	struct tp_destination *destinations; /* of TP_ADDRESSED */
};

/* --- the responder --- */

/* what waits to be sent back */
enum tp_response {
	TP_RESPONSE_RESOURCE = 1 << 0,
	TP_RESPONSE_ACK = 1 << 1,
	TP_RESPONSE_NAK = 1 << 2,
	/* an ACK that may be delayed, for a request that carries it or for further messages to
	 * acknowledge */
	TP_RESPONSE_OWED = 1 << 3,
};

enum tp_message { TP_MESSAGE_NONE, TP_MESSAGE_SEND, TP_MESSAGE_WRITE };

enum tp_resource_kind {
	TP_RESOURCE_READ,
	TP_RESOURCE_ATOMIC,
	TP_RESOURCE_ATOMIC_WRITE,
	TP_RESOURCE_FLUSH,
};

/** struct tp_resource - an RDMA READ, atomic, ATOMIC WRITE or FLUSH, kept for its duplicates */
struct tp_resource {
	psn_t first_psn, last_psn; /* as first received */
	uint8_t kind;  /* enum tp_resource_kind */
	bool pending;  /* responses have to be sent */
	bool replayed; /* because of a duplicate, or were the last time */
	uint32_t msn;
	/* --- READ --- */
	uint64_t va;
	uint32_t rkey, length_bytes;	   /* as first received */
	psn_t start_psn, nxt_psn, end_psn; /* responses to be sent */
	uint32_t stop_bytes;		   /* where they end, counted from va */
	/* --- atomic --- */
	uint64_t original;
};

struct tp_responder {
	uint8_t pending; /* enum tp_response */
	uint8_t message; /* enum tp_message: the one in progress */
	bool has_recv;	 /* recv holds a request without completion */
	bool nak_sent;	 /* quiet until the expected PSN comes */
	uint8_t owed, owed_packets; /* messages since the last acknowledgement, and how long */
	psn_t epsn;
	uint32_t msn;
	uint8_t nak_syndrome;
	psn_t nak_psn;
	uint32_t src_qpn; /* EE context: the QP that the last request came from */
	bool established; /* TP_EVENT_COMM_EST was raised */
	/* --- the message in progress --- */
	uint32_t received_bytes, length_bytes; /* length: WRITE, from the RETH */
	uint64_t va;
	uint32_t rkey;
	struct tp_cursor cursor; /* in recv */
	/* --- resources: a ring, res_head - 1 the youngest --- */
	uint64_t res_head, res_scan; /* no pending one is older than res_scan */
	uint32_t res_size; /* in use: max_dest_rd_atomic, when it was last looked at */
	uint32_t res_capacity;	     /* immutable after init */
	struct tp_resource *res;
	struct tp_recv_wr recv;
};

struct tp_qp {
	/* --- hot --- */
	uint8_t state;	   /* enum ibv_qp_state */
	uint8_t type;	   /* enum tp_type */
	uint8_t transport; /* enum wire_transport */
	uint8_t mtu_shift;
	bool has_srq;
	uint16_t can; /* enum tp_can, of the type */
	uint16_t sig_all_flag; /* IBV_SEND_SIGNALED when all requests are; else 0 */
	uint32_t qpn;
	uint64_t ack_half_ns; /* twice the ACK time-out; UINT64_MAX: for ever */
	const struct tp_ops *ops;
	void *ctx;
	struct tp_sq sq;
	struct tp_responder resp;
	struct tp_stats stats; /* its end and the beginning of attr share a cache line */
	struct tp_attr attr;
	uint64_t min_ack_ns; /* tp_qp_init's; immutable */
} __attribute__((aligned(64)));

static inline uint32_t tp_psn_distance(psn_t to, psn_t from)
{
	return (to.v - from.v) & 0xffffff;
}

static inline uint32_t tp_mtu(const struct tp_qp *qp)
{
	return 1u << qp->mtu_shift;
}

/** tp_packets() - packets of a message: one even when it is empty */
static inline uint32_t tp_packets(const struct tp_qp *qp, uint32_t length_bytes)
{
	if (likely(length_bytes <= tp_mtu(qp)))
		return 1;
	return (uint32_t)(((uint64_t)length_bytes + tp_mtu(qp) - 1) >> qp->mtu_shift);
}

static inline struct tp_sqe *tp_sqe(const struct tp_qp *qp, uint32_t index)
{
	return &qp->sq.ring[index & qp->sq.mask];
}

static inline const struct tp_op *tp_op(const struct tp_sqe *sqe)
{
	return &tp_ops_table[sqe->opcode];
}

/** tp_is_brief() - do the pieces of a request, or its inline data, fit into its entry? @op_flags:
 *  enum tp_op_flags of its opcode */
static inline bool tp_is_brief(const struct tp_sqe *sqe, unsigned op_flags)
{
	return sqe->num_sge <= 1 && !(op_flags & TP_OP_ATOMIC) &&
	       (!(sqe->flags & IBV_SEND_INLINE) || sqe->length_bytes <= sizeof(sqe->brief));
}

/** tp_slot() - where the pieces of the request @index, or its inline data, are: in the entry
 *  itself, if they are brief, so that a short request costs one cache line */
static inline uint8_t *tp_slot(const struct tp_qp *qp, uint32_t index, unsigned op_flags)
{
	struct tp_sqe *sqe = tp_sqe(qp, index);

	if (likely(tp_is_brief(sqe, op_flags)))
		return sqe->brief;
	return qp->sq.slots + (size_t)(index & qp->sq.mask) * qp->sq.slot_bytes;
}

/** tp_header() - where the header of the request @index is, which is cut (TP_OP_CUT) */
static inline uint8_t *tp_header(const struct tp_qp *qp, uint32_t index)
{
	return qp->sq.headers + (size_t)(index & qp->sq.mask) * qp->sq.max_header;
}

/** tp_data() - tp_slot() of a request that is in the send queue */
static inline uint8_t *tp_data(const struct tp_qp *qp, uint32_t index)
{
	return tp_slot(qp, index, tp_op(tp_sqe(qp, index))->flags);
}

static inline struct tp_sge *tp_sges(const struct tp_qp *qp, uint32_t index)
{
	return (struct tp_sge *)tp_data(qp, index);
}

/** tp_comm_est() - does the next packet that the QP receives raise TP_EVENT_COMM_EST? */
static inline bool tp_comm_est(const struct tp_qp *qp)
{
	return unlikely(qp->state == IBV_QPS_RTR && !qp->resp.established);
}

/** tp_ack_wait() - start to wait for an acknowledgement
 *
 * 9.7.6.1.3 lets the wait last from one to four times the encoded time. Four:
 * a peer here is a process that may have to wait for a core, and its silence
 * is not yet a loss. It lasts two halves, since @now may be some time ago:
 * nobody reads a clock for each packet. The second half is by a fresh clock.
 */
static inline void tp_ack_wait(struct tp_qp *qp, mono_t now)
{
	qp->sq.half_waited = false;
	qp->sq.timer = qp->ack_half_ns == UINT64_MAX ? MONO_NEVER :
						       mono_add(now, qp->ack_half_ns);
}

/** tp_has_request() - is there a request that may be sent now? */
static inline bool tp_has_request(const struct tp_qp *qp)
{
	return qp->sq.next != qp->sq.end && !qp->sq.block;
}

/** tp_wants_transmit() - tp_qp_wants_transmit() */
static inline bool tp_wants_transmit(const struct tp_qp *qp)
{
	return qp->resp.pending || tp_has_request(qp);
}

/** tp_can_wait() - does the QP have nothing to send but an ACK that may be delayed, until a
 *  request carries it (tp_take_ack()) or there is more to acknowledge? */
static inline bool tp_can_wait(const struct tp_qp *qp)
{
	return qp->resp.pending == TP_RESPONSE_OWED && !tp_has_request(qp);
}

/** tp_owes_nothing() - everything that was received has been acknowledged */
static inline void tp_owes_nothing(struct tp_responder *r)
{
	r->owed = r->owed_packets = 0;
}

/** tp_acked_psn() - the PSN of an ACK that is sent now: it acknowledges all packets before the
 *  expected one */
static inline psn_t tp_acked_psn(const struct tp_responder *r)
{
	return psn_add(r->epsn, 0xffffff);
}

/** tp_take_ack() - take the delayed ACK, if there is one, to be piggybacked on the packet of this
 *  QP that leaves now
 * @flags: of wire_opcodes[] of that packet. A response carries no ACK: it may answer a request that
 *  was received before those to be acknowledged, and must arrive before their ACK (9.7.5.1.2)
 * Return: true, and *@at is the PSN of the ACK */
static inline bool tp_take_ack(struct tp_qp *qp, uint32_t flags, psn_t *at)
{
	struct tp_responder *r = &qp->resp;

	if (flags & WIRE_IS_RESPONSE || !(r->pending & TP_RESPONSE_OWED))
		return false;
	r->pending &= (uint8_t)~TP_RESPONSE_OWED;
	tp_owes_nothing(r);
	*at = tp_acked_psn(r);
	return true;
}

/** tp_acknowledge_messages() - queue an ACK of @n whole messages, the last of which ended with
 *  @packets. The ACK may be delayed while it acknowledges fewer than TP_ACK_PACKETS packets, or
 *  one message only */
static inline void tp_acknowledge_messages(struct tp_responder *r, unsigned n, unsigned packets)
{
	unsigned owed = r->owed + n, length = r->owed_packets + packets;

	r->owed = (uint8_t)MIN(owed, UINT8_MAX);
	r->owed_packets = (uint8_t)MIN(length, UINT8_MAX);
	r->pending |= owed == 1 || length < TP_ACK_PACKETS ? TP_RESPONSE_OWED : TP_RESPONSE_ACK;
}

/** tp_expect_next() - move ePSN and MSN on: @packets were received in order, and completed
 *  @messages (9.7.4.1, 9.7.7.1) */
static inline void tp_expect_next(struct tp_responder *r, uint32_t packets,
				  uint32_t messages)
{
	r->epsn = psn_add(r->epsn, packets);
	r->msn = (r->msn + messages) & 0xffffff;
}

/** tp_received() - tp_expect_next() for packets of SENDs and WRITEs, and queue an ACK if the last
 *  packet has @ack_req. The ACK of whole messages may be delayed */
static inline void tp_received(struct tp_responder *r, uint32_t packets, uint32_t messages,
			       bool ack_req)
{
	tp_expect_next(r, packets, messages);
	if (!ack_req)
		return;
	if (messages)
		tp_acknowledge_messages(r, messages, packets);
	else
		r->pending |= TP_RESPONSE_ACK;
}

/** tp_take_all_acks() - take everything that waits to be acknowledged, because an ACK or a NAK
 *  leaves. Return: the PSN, and in *@aeth the AETH, of an ACK */
static inline psn_t tp_take_all_acks(struct tp_responder *r, struct wire_aeth *aeth)
{
	r->pending = 0;
	tp_owes_nothing(r);
	*aeth = (struct wire_aeth){TP_ACK_NO_CREDITS, r->msn};
	return tp_acked_psn(r);
}

/** tp_trim() - @to is @pkt without its first @done packets; its flags are
 *  those of @pkt without WIRE_IS_FIRST */
static inline void tp_trim(const struct tp_qp *qp, const struct wire_packet *pkt,
			   uint32_t done, struct wire_packet *to)
{
	*to = *pkt;
	to->bth.psn = psn_add(pkt->bth.psn, done);
	to->packets = (uint16_t)(pkt->packets - done);
	to->payload += (size_t)done << qp->mtu_shift;
	to->payload_bytes -= done << qp->mtu_shift;
}

/** tp_least_payload() - how much payload have so many packets of a message at least? All are
 *  full, but for the last (9.7.4.1.6). @flags: of wire_opcodes[] */
static inline uint32_t tp_least_payload(const struct tp_qp *qp, uint32_t packets, uint32_t flags)
{
	uint32_t full = packets << qp->mtu_shift;

	if (!(flags & WIRE_IS_LAST))
		return full;
	return packets == 1 && flags & WIRE_IS_FIRST ? 0 : full - tp_mtu(qp) + 1;
}

/** tp_follows() - does a packet of a message of @kind continue what the QP receives (9.7.4.1.2)?
 *  @first: it is the message's first */
static inline bool tp_follows(const struct tp_responder *r, enum tp_message kind, bool first)
{
	return r->message == (first ? TP_MESSAGE_NONE : kind);
}

/** tp_refuses_nothing() - has the responder sent no NAK since the last packet that it expected, and
 *  is none to be sent? The next such packet revokes both (expected() in responder.c) */
static inline bool tp_refuses_nothing(const struct tp_responder *r)
{
	return !r->nak_sent && !(r->pending & TP_RESPONSE_NAK);
}

/** tp_fits() - has a packet or segment the payload that so many packets of a message have? */
static inline bool tp_fits(const struct tp_qp *qp, const struct wire_packet *pkt,
			   uint32_t flags)
{
	return pkt->packets > 0 &&
	       pkt->payload_bytes >= tp_least_payload(qp, pkt->packets, flags) &&
	       pkt->payload_bytes <= (uint32_t)pkt->packets << qp->mtu_shift;
}

/* --- qp.c --- */

/** tp_qp_fail() - to ERR (RC) after an error: flushes both queues */
void tp_qp_fail(struct tp_qp *qp);

/* --- sq.c: outcomes of send requests --- */

/** tp_sq_complete() - the oldest request has its outcome; a success that
 *  nobody asked to be told is silent (10.8.6) */
void tp_sq_complete(struct tp_qp *qp, enum ibv_wc_status status);
/** tp_sq_complete_uncounted() - the same of one that the peer never knew of */
void tp_sq_complete_uncounted(struct tp_qp *qp);
/** tp_sq_complete_executed() - tail moved: so do the executed local operations behind it */
void tp_sq_complete_executed(struct tp_qp *qp);
/** tp_sq_report() - the completion of a request */
void tp_sq_report(struct tp_qp *qp, const struct tp_sqe *sqe, enum ibv_wc_status status);
/** tp_sq_retire() - the @n oldest requests are done */
static inline void tp_sq_retire(struct tp_sq *sq, uint32_t n)
{
	/* of those that are being sent again, next may not be as far */
	if (sq->next - sq->tail < n) {
		sq->next = sq->tail + n;
		sq->uncounted_next = sq->uncounted_tail;
	}
	sq->tail += n;
}

/** tp_count() - count an event, of the QP and of its port */
static inline void tp_count(struct tp_qp *qp, enum tp_counter counter)
{
	qp->stats.count[counter]++;
	if (qp->ops->count)
		qp->ops->count(qp->ctx, counter);
}

/** tp_sq_progressed() - una moved on: the counters of attempts begin afresh */
static inline void tp_sq_progressed(struct tp_qp *qp)
{
	qp->sq.retries_left = qp->attr.retry_cnt;
	qp->sq.rnr_left = qp->attr.rnr_retry;
	qp->sq.recovering = false;
}

/** tp_sq_fail_next() - the request at sq.next cannot be sent: it completes
 *  with @status when those before it are done */
void tp_sq_fail_next(struct tp_qp *qp, enum ibv_wc_status status);
/** tp_sq_fail_oldest() - the oldest request ends with @status, now */
void tp_sq_fail_oldest(struct tp_qp *qp, enum ibv_wc_status status);
/** tp_sq_at_end() - tail moved: act when it reached sq.end */
void tp_sq_at_end(struct tp_qp *qp);
void tp_sq_flush(struct tp_qp *qp);

/* --- memory.c --- */

enum tp_copy { TP_COPY_OK, TP_COPY_TOO_SHORT, TP_COPY_VIOLATION };

/** tp_piece_left() - how many bytes of a piece of memory follow its first @offset bytes? */
static inline uint32_t tp_piece_left(const struct tp_sge *piece, uint32_t offset)
{
	return piece->length_bytes - offset;
}
/** tp_cursor_advance() - move @at behind @bytes more of the piece @sge that it is in */
static inline void tp_cursor_advance(struct tp_cursor *at, const struct tp_sge *sge, uint32_t bytes)
{
	at->offset += bytes;
	if (!tp_piece_left(sge, at->offset))
		*at = (struct tp_cursor){at->sge + 1, 0};
}
/** tp_scatter() - copy into a list of pieces, at @at, which moves on */
enum tp_copy tp_scatter(struct tp_qp *qp, enum tp_key whose, const struct tp_sge *sge,
			unsigned num_sge, struct tp_cursor *at, const void *data,
			uint32_t length_bytes);
/** tp_add_pieces() - add the host addresses of @length_bytes under a key to the pieces of @out.
 *  Return: false on a violation */
bool tp_add_pieces(struct tp_qp *qp, enum tp_key whose, uint32_t key, uint64_t va,
		   uint32_t length_bytes, int access, struct tp_packet_out *out);
/** tp_key_of() - whose key names the local memory of a request */
enum tp_key tp_key_of(const struct tp_sqe *sqe);
/** tp_gather() - the host addresses of @length_bytes of the request @index
 *  from @at, which moves on. Return: false on a violation */
bool tp_gather(struct tp_qp *qp, uint32_t index, struct tp_cursor *at,
	       uint32_t length_bytes, struct tp_packet_out *out);
/** tp_may_access() - may the peer use the memory that @reth names so? A request of no bytes needs
 *  no key (C9-88) */
bool tp_may_access(const struct tp_qp *qp, const struct wire_reth *reth, int access);
/** tp_cursor_at() - the place @offset bytes into a list */
struct tp_cursor tp_cursor_at(const struct tp_sge *sge, unsigned num_sge,
			      uint32_t offset);

/* --- requester.c --- */
/** tp_requester_transmit() - @most: packets that a segment may stand for; 1 on
 *  the wire */
bool tp_requester_transmit(struct tp_qp *qp, struct tp_packet_out *out, uint32_t most,
			   mono_t now);
/** tp_requester_rewind() - send again from the oldest unacknowledged PSN */
void tp_requester_rewind(struct tp_qp *qp);

/* --- completer.c --- */
void tp_completer_receive(struct tp_qp *qp, const struct wire_packet *pkt, uint32_t flags,
			  mono_t now);
/** tp_completer_expire() - sq.timer has come */
void tp_completer_expire(struct tp_qp *qp, mono_t now);

/* --- message.c: SEND and WRITE packets into memory, for RC and UC --- */

/* on a request packet */
enum tp_verdict {
	TP_ACCEPT,
	TP_NO_RECEIVE,	      /* RNR */
	TP_INVALID_REQUEST,   /* opcode, its order, length */
	TP_REMOTE_ACCESS,     /* R_Key, bounds, rights */
	TP_RECV_TOO_SHORT,    /* local: the receive's length */
	TP_RECV_VIOLATION,    /* local: the receive's keys */
	TP_INVALIDATE_FAILED, /* SEND with Invalidate of a key it may not */
	TP_INVALID_RD,	      /* RD: no such QP, domain or Q_Key */
};

enum tp_verdict tp_message_receive(struct tp_qp *qp, const struct wire_packet *pkt,
				   uint32_t flags);
/** tp_message_abandon() - forget a half received message; its receive
 *  request stays first in line for the next one */
void tp_message_abandon(struct tp_qp *qp);
/** tp_recv_take() - make resp.recv hold a receive for the message of @pkt. One that a
 *  lost message had taken serves the next. Return: false: none */
bool tp_recv_take(struct tp_qp *qp, const struct wire_packet *pkt);
void tp_recv_complete(struct tp_qp *qp, struct tp_wc *wc);
/** tp_recv_done() - resp.recv completes: @pkt was the last of its message of @length_bytes */
void tp_recv_done(struct tp_qp *qp, const struct wire_packet *pkt, uint32_t flags,
		  uint32_t length_bytes);
/** tp_recv_fail() - resp.recv, when it holds one, ends with @status */
void tp_recv_fail(struct tp_qp *qp, enum ibv_wc_status status);

/* --- responder.c (RC) --- */
void tp_responder_receive(struct tp_qp *qp, const struct wire_packet *pkt,
			  uint32_t flags);
bool tp_responder_transmit(struct tp_qp *qp, struct tp_packet_out *out, uint32_t most);
/** tp_responder_fault() - answer @verdict and go to the error state */
void tp_responder_fault(struct tp_qp *qp, enum tp_verdict verdict, psn_t at);
/** tp_queue_nak() - a NAK of @syndrome for the packet @at is to be sent */
void tp_queue_nak(struct tp_responder *r, uint8_t syndrome, psn_t at);
/** tp_fill_response() - the BTH of a response, without payload */
void tp_fill_response(const struct tp_qp *qp, struct tp_packet_out *out,
		      uint8_t operation, psn_t at);

/* --- rd.c --- */
/** tp_ee_abandon() - nothing is sent of the request under way any more */
void tp_ee_abandon(struct tp_qp *qp);
void tp_ee_receive(struct tp_qp *qp, const struct wire_packet *pkt, uint32_t flags);
/** tp_ee_fault() - tp_responder_fault() of an EE context, which goes on */
void tp_ee_fault(struct tp_qp *qp, uint8_t syndrome, uint8_t recv_status, psn_t at);
/** tp_ee_address() - RDETH, DETH and destination of a packet of the request @index */
void tp_ee_address(const struct tp_qp *qp, uint32_t index, struct tp_packet_out *out);

/* --- resource.c: RDMA READ and atomics at the responder --- */
enum tp_verdict tp_resource_request(struct tp_qp *qp, const struct wire_packet *pkt,
				    uint32_t flags);
void tp_resource_duplicate(struct tp_qp *qp, const struct wire_packet *pkt,
			   uint32_t flags);
/** tp_resource_unsent() - tp_qp_unsent(), of a READ's response with the PSN @at */
void tp_resource_unsent(struct tp_qp *qp, psn_t at);
bool tp_resource_transmit(struct tp_qp *qp, struct tp_packet_out *out, uint32_t most);

/* --- uc.c, ud.c --- */
/** tp_unreliable_fault() - drop the message of @verdict; the QP fails only
 *  when its receive cannot serve another */
void tp_unreliable_fault(struct tp_qp *qp, enum tp_verdict verdict);
void tp_uc_receive(struct tp_qp *qp, const struct wire_packet *pkt, uint32_t flags);
void tp_ud_receive(struct tp_qp *qp, const struct wire_packet *pkt, uint32_t flags);
void tp_raw_receive(struct tp_qp *qp, const struct wire_packet *pkt, uint32_t flags);
/** tp_ud_fill() - DETH and destination of the request @index */
void tp_ud_fill(struct tp_qp *qp, uint32_t index, struct tp_packet_out *out);

#endif
