/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The transport (IBA v1 chapter 9): what one queue pair does with work requests, packets and time. It is
 * pure: it has no clock, allocates no memory and performs no I/O. Four functions drive it, as in other
 * protocol engines without I/O:
 *
 *   tp_qp_receive()   a packet arrived for this QP
 *   tp_qp_transmit()  is there a packet to send? (responses first)
 *   tp_qp_expiry()    when does the next timer fire?
 *   tp_qp_expire()    time has come
 *
 * It calls nothing but the functions in struct tp_ops. The caller must not call it for one QP from two
 * threads at a time. All transport types consist of the same parts: the requester turns work requests
 * into packets, the responder stores packets into memory and completes receives, and the completer
 * turns acknowledgements into completions of send requests.
 *
 * Segments: in a lane, one struct wire_packet may stand for many consecutive packets (segmentation
 * offload). PSNs advance as if it had been cut to the path MTU. What is sent again may be cut into
 * other segments than before.
 */
#ifndef SOFTIB_TRANSPORT_H
#define SOFTIB_TRANSPORT_H

#include <infiniband/verbs.h> /* only enums: ibv_wc_status, ibv_wr_opcode,
				 ibv_qp_state, ibv_access_flags, send flags */

#include "base/types.h"
#include "wire/packet.h"

struct tp_qp;

/** struct tp_sge - a piece of local memory, as posted */
struct tp_sge {
	uint64_t addr;
	uint32_t length_bytes;
	uint32_t lkey;
};

/** struct tp_av - where to: an address vector, ready to become LRH and GRH */
struct tp_av {
	uint16_t dlid;
	uint8_t sl;
	uint8_t src_path_bits;
	uint8_t static_rate_enc;
	uint8_t port_num;
	bool is_global;
	uint8_t sgid_index, hop_limit, traffic_class;
	uint32_t flow_label;
	union wire_gid dgid;
};

/** struct tp_bind - what a memory window is bound to (10.6.6), or the rights that a region is
 *  registered with */
struct tp_bind {
	uint64_t length_bytes; /* 0: to nothing */
	uint32_t mr_key;       /* lkey of the region */
	int access;	       /* ibv_access_flags of the window, or of the region */
};

/* Fast registration of a region, a local operation like BIND_MW. It is the midlayer's alone:
 * enum ibv_wr_opcode and enum ibv_wc_opcode have no such values */
#define TP_WR_REG_MR 12
#define TP_WC_REG_MR 0x20

/* FLUSH and the access right that it needs (annex A19). The numbers are those of newer verbs:
 * Debian 12's have no names for them */
#define TP_WR_FLUSH 14
#define TP_WC_FLUSH 8
#define TP_ACCESS_FLUSH_GLOBAL (1 << 8)

/* RESYNC, by which an EE context begins anew after a message that was abandoned (9.7.8). Only
 * the engine posts it */
#define TP_WR_RESYNC 16

#define TP_MAX_SGE 32
/* of a packet: pages are no smaller than the largest packet (tp_ops.mem()), so that each piece
 * of a request's memory is on two at most */
#define TP_MAX_PIECES (2 * TP_MAX_SGE)
#define TP_MAX_INLINE 1024
/* of IBV_WR_TSO: the header that each packet begins with, and the payload, whose packets a segment
 * counts and whose memory TP_MAX_PIECES pieces describe */
#define TP_MAX_TSO_HEADER 192
#define TP_MAX_TSO_BYTES  65536

/* in the flags of a request that the engine posts for itself beside those of the program: it
 * takes none of the program's places in the send queue, and ends by tp_ops.complete_own() */
#define TP_SEND_OWN (1u << 13)

/** struct tp_flush - what a FLUSH is about, beside remote_addr and rkey */
struct tp_flush {
	uint32_t length_bytes; /* of the range */
	struct wire_feth feth;
};

/** struct tp_send_wr - one send request, as tp_qp_post_send() takes it */
struct tp_send_wr {
	uint64_t wr_id;
	uint8_t opcode; /* enum ibv_wr_opcode */
	uint16_t flags; /* enum ibv_send_flags, TP_SEND_OWN */
	uint8_t num_sge;
	/* immediate (host order), key to invalidate, or the window's or region's key from
	 * now on */
	uint32_t imm_or_rkey;
	uint64_t remote_addr; /* of a bind: where the window begins, in the region */
	uint32_t rkey;	      /* of a bind or registration: the key until now */
	uint64_t compare_add, swap;
	union {
		struct tp_bind bind;
		struct tp_flush flush;
	};
	uint32_t length_bytes; /* the sum over sge */
	uint32_t srqn;	       /* XRC: the target's SRQ */
	/* --- IBV_WR_TSO --- */
	const void *header; /* copied during the call, in front of each packet's payload */
	uint16_t header_bytes, mss_bytes; /* no packet has more payload than @mss_bytes */
	/* --- UD, RD --- */
	struct tp_av av; /* UD */
	uint32_t remote_qpn, remote_qkey;
	uint32_t ee_context; /* of an RD QP: the EE context that carries it */
	uint32_t src_qpn;    /* of an EE context: the RD QP whose request it is */
	/* num_sge entries, read during the call; with IBV_SEND_INLINE their
	 * addresses are host memory, copied during the call */
	const struct tp_sge *sge;
};

/** struct tp_recv_wr - one receive request, taken out of RQ or SRQ */
struct tp_recv_wr {
	uint64_t wr_id;
	uint32_t num_sge;
	const struct tp_sge *sge; /* owned by the engine; valid until the QP takes the next */
	/* a header that the engine has processed already: so many of the message's first bytes, all
	 * in its first packet, are not copied and do not count */
	uint32_t skip_bytes;
};

/** struct tp_wc - the outcome of a receive request; the caller adds it to the CQ */
struct tp_wc {
	uint64_t wr_id;
	uint8_t status; /* enum ibv_wc_status */
	uint8_t opcode; /* enum ibv_wc_opcode */
	uint32_t byte_len;
	uint32_t imm_or_rkey; /* host order */
	uint32_t src_qpn;
	uint32_t wc_flags; /* enum ibv_wc_flags */
	uint16_t pkey_index;
	uint16_t slid;
	uint8_t sl;
	uint8_t dlid_path_bits; /* DLID bits 6..0: the caller masks by LMC */
	bool solicited;		/* the sender asked for an event */
	union {
		uint32_t ee_context; /* RD: that the message came by; else 0 */
		uint32_t flow_tag;   /* raw: of the rule that steered the frame here */
	};
};

/* asynchronous, affiliated to the QP (11.6.3) */
enum tp_event {
	TP_EVENT_COMM_EST,
	TP_EVENT_SQ_DRAINED,
	TP_EVENT_LAST_WQE_REACHED,
	TP_EVENT_QP_FATAL,
	TP_EVENT_QP_REQ_ERR,	/* invalid request local work queue error */
	TP_EVENT_QP_ACCESS_ERR, /* local access violation work queue error */
};

/** struct tp_packet_out - a packet or segment to send: headers, and payload in
 *  pieces */
struct tp_packet_out {
	struct wire_packet hdr; /* payload_bytes set, payload NULL; LRH/GRH
				   addresses filled by the caller from av */
	const struct tp_av *av;
	struct {
		const void *ptr;
		uint32_t len;
	} piece[TP_MAX_PIECES];
	uint8_t num_pieces;
	bool ip_checksums; /* IBV_SEND_IP_CSUM: the caller computes those of the packet */
	/* IBV_WR_TSO: hdr.packets datagrams, each of @header, which the caller makes that packet's,
	 * and the next @mss_bytes of the payload. NULL: any other packet or segment */
	const uint8_t *header;
	uint16_t header_bytes, mss_bytes;
};

/** enum tp_key - where a key comes from, which decides what it has to be allowed to do */
enum tp_key {
	/* a send request of the QP's own program, by what the request does */
	TP_KEY_SEND,
	TP_KEY_WRITE,
	TP_KEY_READ,
	TP_KEY_ATOMIC,
	TP_KEY_REMOTE,	/* a request of the peer: it is an R_Key */
	TP_KEY_RECEIVE, /* a receive request, whose queue has a PD of its own */
};

/** enum tp_counter - what a QP counts, and its port with it (tp_ops.count()) */
enum tp_counter {
	TP_DUPLICATE_REQUEST,
	TP_OUT_OF_SEQUENCE, /* requests that came too early */
	TP_RNR_NAK_SENT,
	TP_RNR_NAK_RECEIVED,
	TP_SEQUENCE_NAK_RECEIVED,
	TP_TIMEOUT, /* of the ACK timer */
	TP_RETRY,   /* how often requests began to be sent again, RNR NAKs apart */
	TP_RETRY_EXCEEDED,
	TP_RNR_RETRY_EXCEEDED,
	TP_DUPLICATE_RESPONSE,
	TP_COUNTERS
};

/** struct tp_ops - what a QP needs from its engine; ctx is tp_qp.ctx */
struct tp_ops {
	/**
	 * mem() - memory under a key
	 * @key: lkey or rkey; @va: address in the key's own space
	 * @len: how many bytes are asked for, one at least; lowered to how many of them are
	 *  in one piece at the address returned. Of memory that is made of pages the caller
	 *  asks again for the rest; the whole range was checked
	 * @access: needed ibv_access_flags; 0 for a local read
	 * @whose: where the key comes from
	 * Return: the host address of @va, NULL on violation (unknown key, other PD,
	 * bounds, rights)
	 */
	void *(*mem)(void *ctx, uint32_t key, uint64_t va, uint64_t *len, int access,
		     enum tp_key whose);
	/** grants() - does @rkey give the peer the right @access, to whatever part of its memory? */
	bool (*grants)(void *ctx, uint32_t rkey, int access);
	/** put() - copy what was received to @to, which mem() gave, as guard_store() does
	 *  @offset: of @to in its piece. NULL: by guard_store() */
	void (*put)(void *ctx, void *to, const void *from, uint32_t len, uint32_t offset);
	/** invalidate() - let @rkey give no access any more, because of LOCAL_INV, or of
	 *  SEND_WITH_INV of the peer (@by_peer). Return: 0; -EACCES */
	int (*invalidate)(void *ctx, uint32_t rkey, bool by_peer);
	/** bind() - bind a memory window (BIND_MW) or register a region (TP_WR_REG_MR) as @wr
	 *  says. Return: 0; -EACCES */
	int (*bind)(void *ctx, const struct tp_send_wr *wr);
	/**
	 * recv_get() - take the next receive, of the queue that @pkt is for
	 * @pkt: the packet whose message needs one: the first of a SEND, the last of a
	 *  WRITE with immediate. Which queue serves a message may depend on its headers
	 *  (an SRQ number, a tag), and is decided by this packet for all of the message
	 * Return: false: there is none
	 */
	bool (*recv_get)(void *ctx, const struct wire_packet *pkt, struct tp_recv_wr *wr);
	/** recv_flush() - like recv_get(), but only of the QP's own RQ: what a
	 *  move to the error state completes with WR_FLUSH_ERR */
	bool (*recv_flush)(void *ctx, struct tp_recv_wr *wr);
	/** complete_send() - push the completion of a send request; never fails here.
	 *  @status: enum ibv_wc_status; @opcode: enum ibv_wc_opcode, TP_WC_REG_MR */
	void (*complete_send)(void *ctx, uint64_t wr_id, uint8_t status, uint8_t opcode,
			      uint32_t length_bytes);
	/** complete_own() - the oldest request with TP_SEND_OWN ended with @status. NULL:
	 *  the engine posts none */
	void (*complete_own)(void *ctx, uint8_t status);
	/** complete_recv() - push the completion of a receive; never fails here */
	void (*complete_recv)(void *ctx, const struct tp_wc *wc);
	void (*event)(void *ctx, enum tp_event event);
	/** failed() - the QP has moved to the error state. May be NULL */
	void (*failed)(void *ctx);
	/** path_failed() - packets have to be sent again; @exhausted: all retries have failed.
	 *  May be NULL. Return: true: the attributes are now those of another path
	 *  (tp_qp_path_changed()), so the retries begin anew */
	bool (*path_failed)(void *ctx, bool exhausted);
	/** suspend() - EE context: the peer has no receive for the current message, and wants no
	 *  other attempt before @until. Return: true: the message is abandoned, and the engine
	 *  posts it again; false: it has failed */
	bool (*suspend)(void *ctx, mono_t until);
	/** count() - the QP has counted an event. NULL: nobody else counts it */
	void (*count)(void *ctx, enum tp_counter counter);
};

/** struct tp_attr - attributes that ibv_modify_qp sets, as they stand */
struct tp_attr {
	uint32_t dest_qpn;
	uint16_t pkey; /* of pkey_index, kept fresh by the caller */
	uint16_t pkey_index;
	uint32_t qkey;
	struct tp_av av;
	psn_t sq_psn, rq_psn;
	uint8_t port_num;
	uint16_t mtu_bytes;
	uint8_t retry_cnt, rnr_retry; /* 7: for ever, rnr_retry only */
	uint8_t timeout_enc, min_rnr_timer_enc;
	uint8_t max_rd_atomic, max_dest_rd_atomic;
	int qp_access_flags;
};

/** tp_timeout_ns() - 4.096 us * 2^enc (9.7.6.1.3); 0: never, UINT64_MAX */
uint64_t tp_timeout_ns(uint8_t timeout_enc);
/** tp_rnr_ns() - the table of 9.7.5.2.8: 655.36 ms for 0, 0.01 ms for 1 ... */
uint64_t tp_rnr_ns(uint8_t rnr_enc);

/** enum tp_type - TP_XRC is RC whose requests name an SRQ of the target (A14): an initiator
 *  sends requests alone, a target receives them alone, which is the engine's to see to.
 *  TP_RAW is UD whose messages are Ethernet frames: without Q_Key, and without room for a GRH.
 *  TP_RD is a QP of reliable datagrams, TP_EE the end of a connection that carries their
 *  messages, one at a time (rd.c) */
enum tp_type { TP_RC, TP_UC, TP_UD, TP_XRC, TP_RAW, TP_RD, TP_EE };
/** tp_type_may_use_windows() - tp_may_use_windows() (fast.h) of a QP that another engine has */
bool tp_type_may_use_windows(enum tp_type type);

/** tp_qkey_of() - the Q_Key of the UD QP @qpn, whose attribute is @attr: that of QP1 is
 *  well known, whatever attribute it has (10.2.5) */
static inline uint32_t tp_qkey_of(uint32_t qpn, uint32_t attr)
{
	return unlikely(qpn == 1) ? WIRE_QKEY_GSI : attr;
}

/** tp_qkey_passes() - does that QP receive datagrams with @qkey? QP0 receives any */
static inline bool tp_qkey_passes(uint32_t qpn, uint32_t attr, uint32_t qkey)
{
	return qkey == tp_qkey_of(qpn, attr) || qpn == 0;
}

/** tp_qkey_sent() - what that QP sends when the request says @qkey: one with its high bit
 *  set is controlled, and the QP's own is sent instead (10.2.5) */
static inline uint32_t tp_qkey_sent(uint32_t qpn, uint32_t attr, uint32_t qkey)
{
	return qkey & 0x80000000u ? tp_qkey_of(qpn, attr) : qkey;
}

#define TP_MAX_DEST_RD 128

/** struct tp_stats - per-QP counters, for status and tests */
struct tp_stats {
	uint32_t count[TP_COUNTERS];
	uint64_t retransmits; /* packets */
	uint64_t tx_packets, rx_packets;
};

/**
 * tp_qp_size() - bytes of memory a QP needs, for the caller to allocate
 * @sq_depth: send requests it can hold, its engine's own with them (power of two not required)
 * @max_sge, @max_inline: per request. @max_dest_rd: read/atomic resources,
 *  TP_MAX_DEST_RD at most
 */
size_t tp_qp_size(uint32_t sq_depth, uint32_t max_sge, uint32_t max_inline,
		  uint32_t max_dest_rd);

struct tp_qp_init {
	enum tp_type type;
	uint32_t qpn;
	uint32_t sq_depth, max_sge, max_inline, max_dest_rd;
	uint32_t own_depth; /* requests with TP_SEND_OWN, beside sq_depth */
	uint32_t max_header; /* UD: bytes of the header of IBV_WR_TSO; 0: the QP takes none */
	bool sq_sig_all;
	bool has_srq;
	/* no ACK time-out is shorter, whatever attr.timeout_enc says. The encoding begins at 8 us,
	 * and a peer that is a process may wait for a core much longer than that, and than all
	 * its retries. 0: exact */
	uint64_t min_ack_ns;
	const struct tp_ops *ops;
	void *ctx;
};

/** tp_qp_init() - lay a QP in @mem (tp_qp_size() bytes, 64-byte aligned), in
 *  state RESET. Return: the QP, whose memory stays the caller's. */
struct tp_qp *tp_qp_init(void *mem, const struct tp_qp_init *init);

/** tp_qp_header_bytes() - memory for tp_qp_give_headers(). 0: the QP has it, or needs none */
size_t tp_qp_header_bytes(const struct tp_qp *qp);
/** tp_qp_give_headers() - before the first IBV_WR_TSO is posted. @memory stays the caller's;
 *  NULL: there is none, and the request is refused */
void tp_qp_give_headers(struct tp_qp *qp, void *memory);

/** tp_qp_attr() - the attributes, to be read and, by modify, written */
struct tp_attr *tp_qp_attr(struct tp_qp *qp);
enum ibv_qp_state tp_qp_state(const struct tp_qp *qp);
/** tp_state_receives() - does a QP in @state receive packets at all (10.3.1)? */
static inline bool tp_state_receives(enum ibv_qp_state state)
{
	const unsigned receiving = 1u << IBV_QPS_RTR | 1u << IBV_QPS_RTS | 1u << IBV_QPS_SQD |
				   1u << IBV_QPS_SQE;

	return receiving >> state & 1;
}
const struct tp_stats *tp_qp_stats(const struct tp_qp *qp);

/**
 * tp_qp_modify() - go to state @to; attributes are already in tp_qp_attr()
 *
 * The table of legal transitions and attributes is the midlayer's business
 * (core); this does what the transition means: RESET clears queues without
 * completions, ERR flushes both queues with IBV_WC_WR_FLUSH_ERR, SQD drains
 * then raises TP_EVENT_SQ_DRAINED, RTS resumes.
 * Spec: IBA v1 10.3.1
 */
void tp_qp_modify(struct tp_qp *qp, enum ibv_qp_state to, mono_t now);

/** tp_qp_path_changed() - apply the time-out of another path, whose attributes the caller has set
 *  in tp_qp_attr(), and count retries from 0 */
void tp_qp_path_changed(struct tp_qp *qp);

/** tp_qp_is_draining() - is the QP in SQD with requests that were begun and have not completed
 *  (10.3.1.5)? */
bool tp_qp_is_draining(const struct tp_qp *qp);

/**
 * tp_qp_post_send() - copy @wr into the send queue
 * @wr: sge points to num_sge entries, or with IBV_SEND_INLINE the entries
 *      are host memory that is copied now
 * Return: 0; -ENOMEM full; -EINVAL opcode, state (RESET, INIT, RTR), sge
 * count, inline size or length (2^31 RC/UC, MTU for UD); IBV_WR_TSO without payload, with a
 * header or MSS of 0 bytes, or whose packets would exceed the MTU. In ERR a request is accepted and
 * flushed.
 */
int tp_qp_post_send(struct tp_qp *qp, const struct tp_send_wr *wr);

/** tp_qp_check_send() - tp_qp_post_send()'s errors but -ENOMEM; posts nothing */
int tp_qp_check_send(const struct tp_qp *qp, const struct tp_send_wr *wr);

/** tp_qp_posted_recv() - a receive was posted while in ERR: flush it */
void tp_qp_posted_recv(struct tp_qp *qp);

/**
 * tp_qp_receive() - a packet for this QP; P_Key and existence of the QP were
 * checked by the caller, Q_Key (UD), transport version, opcode, PSN, MSN, rkey here.
 * @pkt: decoded, or a segment; its payload is read before return
 */
void tp_qp_receive(struct tp_qp *qp, const struct wire_packet *pkt, mono_t now);

/** tp_qp_refuse_rd() - answer the expected request @pkt with NAK Invalid RD Request, because
 *  there is no such RD QP, or its RD domain or Q_Key differs. The EE context stays in its state */
void tp_qp_refuse_rd(struct tp_qp *qp, const struct wire_packet *pkt);
/** tp_qp_drop_receive() - complete the receive of the current message, if there is one, with
 *  @status */
void tp_qp_drop_receive(struct tp_qp *qp, enum ibv_wc_status status);
/** tp_qp_refuse() - answer the expected request with NAK Invalid Request and move to the error
 *  state, because it names something that does not exist (XRC: no such SRQ, A14) */
void tp_qp_refuse(struct tp_qp *qp);

/** struct tp_responder_state - the state of a responder between two messages: the expected PSN,
 *  the message sequence number, and whether it has sent a NAK for the expected packet */
struct tp_responder_state {
	psn_t epsn;
	uint32_t msn;
	bool nak_sent, established; /* established: TP_EVENT_COMM_EST was raised */
};
/** tp_qp_responder() - copy the responder's state to @state. Return: false: responses wait to be
 *  sent, so the state may not be moved yet */
bool tp_qp_responder(const struct tp_qp *qp, struct tp_responder_state *state);
/** tp_qp_resume_responder() - continue with the responder state of another QP of the same
 *  connection. @at_least: ignore @state if this QP already expects a later PSN */
void tp_qp_resume_responder(struct tp_qp *qp, const struct tp_responder_state *state,
			    bool at_least);

/**
 * tp_qp_transmit() - the next packet that may go out now
 * @out: filled when true is returned; its pieces point into registered or
 *       inline memory and are valid until the next call on this QP
 * Once it returned true the packet counts as sent (a caller that has no
 * room does not ask). Return: false when there is nothing to send now.
 */
bool tp_qp_transmit(struct tp_qp *qp, struct tp_packet_out *out, mono_t now);
/** tp_qp_transmit_segment() - the same, with up to @segment_bytes of payload.
 *  Less than the path MTU: a packet */
bool tp_qp_transmit_segment(struct tp_qp *qp, struct tp_packet_out *out,
			    uint32_t segment_bytes, mono_t now);
/**
 * tp_qp_unsent() - @out, made by the call before, does not leave: its payload is gone
 *
 * The same is transmitted again; ops->mem() is to find that the memory is gone, and it ends
 * as any request or READ whose key is wrong. Of an unreliable QP it is lost: there ops->mem()
 * is to look before.
 */
void tp_qp_unsent(struct tp_qp *qp, const struct tp_packet_out *out);
/** tp_qp_wants_transmit() - cheap test: may tp_qp_transmit() return true? */
bool tp_qp_wants_transmit(const struct tp_qp *qp);
/** tp_qp_acked() - process a piggybacked ACK. Context: before the request that carried it is
 *  received */
void tp_qp_acked(struct tp_qp *qp, psn_t at, mono_t now);
/** tp_qp_destination() - where the next packet goes: the QP's peer, or for
 *  UD the next request's; its QPN in *@qpn */
const struct tp_av *tp_qp_destination(const struct tp_qp *qp, uint32_t *qpn);
/** tp_recv_wc() - the completion of a receive by the message of @length_bytes whose last
 *  packet is @pkt, all but its wr_id. @flags: of wire_opcodes[] */
void tp_recv_wc(const struct tp_qp *qp, const struct wire_packet *pkt, uint32_t flags,
		uint32_t length_bytes, struct tp_wc *wc);
/** tp_qp_next_bytes() - no packet or segment that comes next has more payload */
uint32_t tp_qp_next_bytes(const struct tp_qp *qp);

/** tp_qp_expiry() - MONO_NEVER when no timer runs */
mono_t tp_qp_expiry(const struct tp_qp *qp);
void tp_qp_expire(struct tp_qp *qp, mono_t now);

/* --- holding the send queue back (hold.c) --- */

enum tp_held {
	TP_HELD_NOT,	  /* not held, or no longer because the state changed */
	TP_HELD_DRAINING, /* requests that were begun have not completed */
	TP_HELD_EMPTY,	  /* no request waits */
	TP_HELD_READY,	  /* requests wait, and all before them have completed */
};
/** tp_qp_has_unbegun() - do requests wait behind others that were begun and have not completed? */
bool tp_qp_has_unbegun(const struct tp_qp *qp);
/** tp_qp_hold() - finish the requests that were begun, and begin no other. Return: false: not
 *  possible in this state */
bool tp_qp_hold(struct tp_qp *qp);
enum tp_held tp_qp_held(const struct tp_qp *qp);
/** tp_qp_held_request() - copy the oldest request. @wr->sge points into the QP; for inline data
 *  to *@inline_data. Context: TP_HELD_READY */
void tp_qp_held_request(const struct tp_qp *qp, struct tp_send_wr *wr, struct tp_sge *inline_data);
/** tp_qp_held_done() - complete that request, which was performed without packets */
void tp_qp_held_done(struct tp_qp *qp);
/** tp_qp_held_begin() - mark that request as begun: a QP in SQD is not drained before
 *  tp_qp_held_done() or tp_qp_held_failed() */
void tp_qp_held_begin(struct tp_qp *qp);
/** tp_qp_held_failed() - complete that request with @status, and stop the send queue as an error
 *  of an unreliable QP does */
void tp_qp_held_failed(struct tp_qp *qp, enum ibv_wc_status status);
/** tp_qp_release() - end the hold: the remaining requests are sent as packets */
void tp_qp_release(struct tp_qp *qp);

/** tp_qp_sq_free() - how many more requests fit */
uint32_t tp_qp_sq_free(const struct tp_qp *qp);

#endif
