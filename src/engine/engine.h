/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The adapter's working half: tables of QPs, CQs, SRQs, MRs, and the loop
 * that moves packets between the QPs' transport and the links. One engine is
 * one opened device: in a program it is linked into libibverbs, in softibd
 * each adapter has one for QP0, QP1 and the upper-level protocols, in the
 * simulator the same. Numbers (QPN, keys) come from outside: the adapter
 * (src/hca) hands them out.
 *
 * Locking: every function takes the engine's one lock unless it says
 * otherwise; callbacks (eng_config) but unlocked() are called with it held and
 * must not call back in.
 */
#ifndef SOFTIB_ENGINE_H
#define SOFTIB_ENGINE_H

#include <infiniband/verbs.h>

#include "abi/devpage.h"
#include "abi/lane.h"
#include "base/copy.h"
#include "base/list.h"
#include "base/types.h"
#include "transport/transport.h"
#include "wire/address.h"

struct engine;
struct eng_cq;
struct eng_srq;
struct eng_qp;

/* how soon a packet for which the link had no room is sent again */
#define ENG_RETRY_NS (50 * NSEC_PER_USEC)
/* how long an acknowledgement is delayed for piggybacking while nobody polls */
#define ENG_ACK_NS (1 * NSEC_PER_MSEC)

#define ENG_CQ_OVERRUN (-1)

#define ENG_COPY_METHODS (2 * COPY_KERNELS) /* copy kernels into a narrow ring, then into a wide one */

/** struct eng_copy - how long payloads are copied into a lane (lane_copy.c) */
struct eng_copy {
	uint32_t ends_at; /* the current span ends at this value of the lane's bulk_tail */
	/* the current method: number of a copy kernel, plus COPY_KERNELS for a wide ring */
	uint8_t method;
	uint8_t num_methods; /* 0: the lane has carried too little to compare methods */
	uint8_t margin;	     /* another method is better if it saves 1/margin of the cost */
	uint8_t best, last_tried, to_try;
	bool settles;	     /* the current span is not timed */
	uint8_t spans;	     /* number of spans of which recent_ns is the shortest */
	uint16_t rested, rest_spans; /* spans since the last trial, and until the next one */
	uint64_t best_ns, recent_ns; /* duration of a span: by the best method, by the current method */
	mono_t since;		     /* when the current span began */
};

/** struct eng_lane_out - the sender's end of a lane */
struct eng_lane_out {
	struct abi_lane_tx tx;
	struct eng_copy copy;
	unsigned *wide; /* counter of the lanes that may be wide; NULL: this one may not */
	struct list_head dirty_node; /* in engine.dirty while the receiver may have to be woken */
	uint32_t xrc_requests; /* request packets of XRC that were sent: see struct eng_qp */
};

/** enum eng_predicted - the kinds of records that are predicted */
enum eng_predicted {
	ENG_MESSAGE,  /* a SEND, of RC */
	ENG_DATAGRAM, /* of UD */
	ENG_XRC_MESSAGE,
	ENG_TAGGED_MESSAGE, /* a SEND, of RC, to a QP whose SRQ matches tags */
	ENG_MIDDLE,	    /* of a SEND, of RC: without a completion */
	ENG_ACK,    /* a standalone ACK, of RC or XRC */
	ENG_UNPREDICTED,
};

/** struct eng_prediction - header prediction (fast.h): the header that the next record of a QP
 *  will have, and how it is received. It is derived from a record that passed all checks: a SEND
 *  of one record, the middle of a longer one, or an ACK */
struct eng_prediction {
	uint32_t target;	/* abi_record_target() */
	/* eng_lane_in.id; only records of this lane have passed the checks */
	uint32_t lane;
	uint64_t source, route; /* abi_record_source(), abi_record_route() */
	struct eng_qp *qp; /* NULL: none */
	uint32_t packets;		  /* packets that the record stands for */
	/* its length is in [least_bytes, least_bytes + span_bytes) */
	uint32_t least_bytes, span_bytes;
	enum eng_predicted kind;
	struct ibv_wc wc; /* the completion without wr_id and byte_len */
};

/** struct eng_lane_in - the receiver's end of a lane */
struct eng_lane_in {
	struct abi_lane_rx rx;
	struct wire_port_addrs source; /* addresses of the port whose packets the lane may carry */
	uint16_t pkey;		       /* the sender's P_Key of the lane's partition */
	uint32_t owner;		       /* the program that sends; 0: unknown */
	/* --- the engine's --- */
	struct list_head node;
	uint32_t id; /* never given to another lane */
	uint32_t head_then; /* rx.head at the last reading of the clock */
	uint16_t silent_looks; /* readings of the clock since the last record */
	bool is_quiet; /* the lane is in engine.quiet_lanes (lane_quiet.c) */
	/* the one that matched last: eng_qp.predicted, or datagram */
	struct eng_prediction *predicted;
	struct eng_prediction datagram;
};

/** struct eng_path - the addresses of a packet that decide by which medium it leaves */
struct eng_path {
	uint32_t dest_qpn;
	uint16_t dlid, pkey;
	uint8_t sl, port_num;
};

/** eng_same_path() - are packets by both paths of one flow? */
static inline bool eng_same_path(const struct eng_path *a, const struct eng_path *b)
{
	return a->dest_qpn == b->dest_qpn && a->dlid == b->dlid && a->pkey == b->pkey &&
	       a->sl == b->sl && a->port_num == b->port_num;
}

/** struct eng_flow - a path whose packets may use a lane. It belongs to the link, which changes
 *  @serial together with any other member. A QP that has got the flow from choose() may use it as
 *  long as @serial is the same and @epoch is the route epoch. */
struct eng_flow {
	struct eng_lane_out *lane;
	struct abi_flow_count *count;
	uint32_t serial, epoch, mtu_bytes;
};

/** enum eng_medium - by what a QP's next packet leaves, as choose() decides */
enum eng_medium {
	ENG_BY_PACKETS, /* the packet path: reserve() */
	ENG_BY_LANE,
	ENG_WAIT, /* neither has room now; ask again at the next eng_progress() */
	ENG_LOST, /* the packet has waited for the head-of-queue lifetime, and is dropped */
};

/**
 * struct eng_link_ops - where an engine's packets go. A packet is the bytes
 * from LRH to the last pad byte, without CRCs, in one piece.
 */
struct eng_link_ops {
	/** reserve() - room for @len bytes of a packet with the headers @pkt that leaves by
	 *  @port_num. NULL: the link has no room, ask again at the next eng_progress() */
	void *(*reserve)(void *link, const struct wire_packet *pkt, unsigned port_num, size_t len);
	/** commit() - the packet in the room just reserved is complete */
	void (*commit)(void *link, unsigned port_num, size_t len);
	/** flush() - no more packets for now: ring the doorbell */
	void (*flush)(void *link);
	/** receive() - the next incoming packet, or NULL. Valid until release(). @port_num: the
	 *  port that it was received by; 0 if the link does not know: then it is the port that
	 *  has the DLID (which a directed-route SMP's does not show) */
	const void *(*receive)(void *link, size_t *len, unsigned *port_num);
	void (*release)(void *link);

	/* --- what IPoIB's adapters compute; all NULL for a link whose QPs have no max_header --- */

	/** reserve_train() - room for packets in a row, @len bytes in all: each has @each bytes, and
	 *  the last one what remains. commit() as for one packet. NULL: no memory */
	void *(*reserve_train)(void *link, size_t each, size_t len);
	/** checked() - the IP checksums in the room just reserved are right: they were computed in it */
	void (*checked)(void *link);
	/** is_checked() - did the sender's engine say so of the packet that receive() returned, which
	 *  nobody could change since? */
	bool (*is_checked)(void *link);

	/* --- lanes; choose is NULL for a link that has none --- */

	/** choose() - by which medium does the next packet on @path leave, which has @bytes of
	 *  payload? ENG_BY_LANE: *@flow is set */
	enum eng_medium (*choose)(void *link, const struct eng_path *path, uint32_t bytes,
			       struct eng_flow **flow);
	/** stuck() - the lane of @flow has no room. Return: ENG_WAIT or ENG_LOST */
	enum eng_medium (*stuck)(void *link, struct eng_flow *flow);
	/** ring() - ring the doorbell of @lane, whose receiver sleeps */
	void (*ring)(void *link, struct eng_lane_out *lane);
	/** bad_qkey() - @lane carried a datagram with a wrong Q_Key, for which the port sends a
	 *  trap. (softibd itself sees those that come as packets.) May be NULL */
	void (*bad_qkey)(void *link, struct eng_lane_in *lane, const struct wire_packet *pkt);
};

/** struct eng_odp - what each transport may do with memory that is paged on demand: bits of
 *  enum ibv_odp_transport_cap_bits */
struct eng_odp {
	uint32_t rc, uc, ud, xrc;
};

/** struct eng_config - what an engine is made of; copied */
struct eng_config {
	/** the adapter's live port attributes: LID, tables, state */
	const struct abi_devpage *devpage;
	const struct eng_link_ops *link_ops;
	void *link;
	/** the ring that receive() reads from, so that the engine sees without a call that it is
	 *  empty; NULL: always call receive() */
	const struct abi_ring_rx *packets;
	mono_t (*now)(void *ctx);
	/** cq_event() - a CQ that was armed has a completion (called once per arm) */
	void (*cq_event)(void *ctx, void *cq_ctx);
	/** async_event() - @element_ctx is the QP's, CQ's or SRQ's ctx */
	void (*async_event)(void *ctx, enum ibv_event_type type, void *element_ctx);
	/** completion_fault() - called for each successful completion while
	 *  devpage->completion_faults is set. May be NULL. Return: the status that the completion
	 *  gets; ENG_CQ_OVERRUN: the CQ overruns */
	int (*completion_fault)(void *ctx, uint32_t qpn, enum ibv_wc_opcode opcode);
	/** barrier() - a memory barrier on every thread of this process. NULL: there
	 *  is none, and the engine's lock is never biased (lock.h) */
	void (*barrier)(void *ctx);
	/** no request and no record takes a fast path (docs/ARCHITECTURE.md, Fast paths). Packets
	 *  and completions are the same as with fast paths */
	bool general_only;
	/** capabilities of on-demand paging, which are enforced; NULL: all */
	const struct eng_odp *odp;
	/** kick() - call eng_tick() at @by, which is earlier than was known, because of a timer
	 *  or of a packet that waits for room. May be NULL */
	void (*kick)(void *ctx, mono_t by);
	/** count() - a QP of port @port_num has counted an event. May be NULL. Context: the engine's lock */
	void (*count)(void *ctx, unsigned port_num, enum tp_counter counter);
	/** unlocked() - called without the lock after it was released, if ring(), flush() or
	 *  cq_event() were called under it: do what these put off. May be NULL */
	void (*unlocked)(void *ctx);
	void *ctx;
};

int eng_create(const struct eng_config *config, struct engine **engine);
/** eng_destroy() - frees all objects that are left; nothing is completed */
void eng_destroy(struct engine *engine);
/** eng_in_child() - after fork(): no thread of this process has the lock, and what one of the
 *  parent's was about to do remains the parent's. The engine can be queried, and must not run */
void eng_in_child(struct engine *engine);

/**
 * eng_progress() - receive, run timers, transmit; bounded work per call
 * Return: true when something was done (call again soon)
 */
bool eng_progress(struct engine *engine);
/** eng_tick() - eng_progress() that looks at the clock: for owners that sleep
 *  until eng_expiry() rather than poll */
bool eng_tick(struct engine *engine);
/** eng_expiry() - the earliest timer of any QP; MONO_NEVER when none */
mono_t eng_expiry(struct engine *engine);
/** eng_wake_by() - the time by which an owner that sleeps must call eng_tick(), because of a
 *  timer, a packet that waits for room, or a delayed acknowledgement; @now if requests wait for a
 *  window. Context: eng_locked() */
mono_t eng_wake_by(const struct engine *engine, mono_t now);
/** eng_locked() - call @fn under the engine's lock: for a link that changes
 *  what its operations read */
void eng_locked(struct engine *engine, void (*fn)(void *arg), void *arg);
/** eng_lane_add() - receive from @lane, too. Context: eng_locked() */
void eng_lane_add(struct engine *engine, struct eng_lane_in *lane);
/** eng_lane_del() - stop receiving from @lane. Context: eng_locked() */
void eng_lane_del(struct engine *engine, struct eng_lane_in *lane);
/** eng_lane_out_init() - @lane sends into @memory; @no_fence: this process is
 *  registered with membarrier(2) */
void eng_lane_out_init(struct eng_lane_out *lane, struct abi_lane *memory, bool no_fence);
/** eng_lane_out_gone() - @lane is about to be freed. Context: eng_locked() */
void eng_lane_out_gone(struct eng_lane_out *lane);
/**
 * eng_settle() - send delayed acknowledgements, and packets that wait for room, before @qp,
 * or the whole engine if @qp is NULL, is destroyed
 * Return: false if there is still no room, or another thread holds the lock: call again, for
 * up to the head-of-queue lifetime
 */
bool eng_settle(struct engine *engine, const struct eng_qp *qp);
/** eng_moved() - did the last poll or turn send or receive anything? A hint: it is read without
 *  the lock */
bool eng_moved(const struct engine *engine);

/** eng_idle() - does no packet wait for room on the link? */
bool eng_idle(struct engine *engine);

/* --- memory (chapter 10.6). pd is a number that must match the QP's. --- */
struct eng_mr_attr {
	uint32_t key;	/* lkey = rkey */
	uint32_t pd;
	void *addr;	/* host address of the first byte */
	uint64_t length;
	uint64_t iova;	/* address in work requests and on the wire */
	int access;	/* ibv_access_flags */
	bool is_pinned; /* IBV_ACCESS_ON_DEMAND is not the program's wish: the memory is another
			 * process's, and is fetched when it is used */
};
/** eng_mr_add() - Return: 0; -EEXIST; -ENOMEM; -EINVAL (wraps, rights) */
int eng_mr_add(struct engine *engine, const struct eng_mr_attr *attr);
/** eng_mr_add_null() - a region of every address, for the program's own use alone: what is read
 *  there is zero, what is written is discarded. Freed by eng_mr_del(). Return: 0; -EEXIST; -ENOMEM */
int eng_mr_add_null(struct engine *engine, uint32_t key, uint32_t pd);
/** eng_mr_query() - the attributes of the region of @key. Return: 0; -ENOENT */
int eng_mr_query(struct engine *engine, uint32_t key, struct eng_mr_attr *attr);
/** eng_mr_del() - free a region; no packet touches the memory after return. Return: 0; -ENOENT;
 *  -EBUSY while a memory window is bound to it */
int eng_mr_del(struct engine *engine, uint32_t key);
/** eng_mr_is_bound() - is a memory window bound to the region of @key? */
bool eng_mr_is_bound(struct engine *engine, uint32_t key);

/* --- regions made of pages: of the midlayer's own consumers, by links without lanes --- */

#define ENG_PAGE_SHIFT_MIN 12 /* the largest packet */
#define ENG_PAGE_SHIFT_MAX 31

/** struct eng_mapping - pages of one size that make up one region. It begins in the first page,
 *  at the offset that @iova has in a page */
struct eng_mapping {
	uint64_t iova, length_bytes;
	unsigned page_shift;
	uint32_t num_pages;
	const uint64_t *page; /* host addresses, multiples of the size of a page */
};
/** eng_paged_add() - create a region of at most @max_pages, which gives access to nothing yet.
 *  Its keys are those whose upper 24 bits are those of @key. Freed by eng_mr_del(). Return: 0;
 *  -EEXIST; -ENOMEM */
int eng_paged_add(struct engine *engine, uint32_t key, uint32_t pd, uint32_t max_pages);
/** eng_paged_map() - let the region with the upper 24 bits of @key consist of @mapping from now
 *  on, accessed by @key and in @pd; NULL: it gives access to nothing. It gets more room if it
 *  needs that. Return: 0; -ENOENT; -EINVAL: the mapping, or the rights; -ENOMEM; -EBUSY: a memory
 *  window is bound to it */
int eng_paged_map(struct engine *engine, uint32_t key, uint32_t pd, int access,
		  const struct eng_mapping *mapping);
/** eng_paged_stage() - prepare the pages that the next eng_post_register() gives to the region
 *  with the upper 24 bits of @key. The region itself does not change. Return: 0; -ENOENT;
 *  -EINVAL: the mapping; -ENOMEM: more pages than it has room for */
int eng_paged_stage(struct engine *engine, uint32_t key, const struct eng_mapping *mapping);
struct eng_register {
	uint64_t wr_id;
	unsigned send_flags; /* enum ibv_send_flags */
	uint32_t key, new_key; /* of the region, which is free; differ in the last 8 bits at most */
	int access;
};
/** eng_post_register() - queue a request that registers a region with the staged pages. It
 *  completes with TP_WC_REG_MR; with IBV_WC_MW_BIND_ERR if the region is not free, belongs to
 *  another PD, or was not staged. Return: 0; -EINVAL; -ENOMEM the queue is full */
int eng_post_register(struct eng_qp *qp, const struct eng_register *reg);

/* --- memory windows (10.6.6, 10.6.7): bound and invalidated by send requests --- */

/** eng_mw_add() - create a memory window, which is not bound. Its keys are those whose upper 24
 *  bits are those of @key; each bind chooses the lower 8. Return: 0; -EEXIST; -ENOMEM */
int eng_mw_add(struct engine *engine, uint32_t key, uint32_t pd, enum ibv_mw_type type);
/** eng_mw_del() - free a memory window, bound or not, by any of its keys. Return: 0; -ENOENT */
int eng_mw_del(struct engine *engine, uint32_t key);

/* --- memory of queues --- */

/** enum eng_queue - for which object entries of a queue are allocated */
enum eng_queue { ENG_QUEUE_SEND, ENG_QUEUE_RECV, ENG_QUEUE_SRQ, ENG_QUEUE_CQ };

#define ENG_QUEUE_ALIGN_BYTES 64
#define ENG_QUEUE_FROM_HEAP   ((void *)-1)

/**
 * struct eng_memory - who gives the memory for the entries of queues. Where NULL stands in its
 * place, the heap does
 * @alloc: @bytes, aligned to ENG_QUEUE_ALIGN_BYTES and with any contents; NULL: there is none;
 *         ENG_QUEUE_FROM_HEAP: this time the heap shall give it
 * @free:  what @alloc gave. Context of both: the caller's of a creation, resize or destruction,
 *         never under the engine's lock
 */
struct eng_memory {
	void *(*alloc)(void *ctx, size_t bytes, enum eng_queue of);
	void (*free)(void *ctx, void *at, enum eng_queue of);
	void *ctx;
};

/* --- completion queues --- */
/** eng_cq_create() - @cqe entries in @memory, which outlives the CQ. ctx names it in callbacks */
int eng_cq_create_in(struct engine *engine, const struct eng_memory *memory, uint32_t cqe, void *ctx,
		     struct eng_cq **cq);
static inline int eng_cq_create(struct engine *engine, uint32_t cqe, void *ctx, struct eng_cq **cq)
{
	return eng_cq_create_in(engine, NULL, cqe, ctx, cq);
}
/** eng_cq_destroy() - 0; -EBUSY while a QP uses it */
int eng_cq_destroy(struct eng_cq *cq);
/** eng_cq_resize() - keeps entries. 0; -EINVAL when they do not fit; -ENOMEM */
int eng_cq_resize(struct eng_cq *cq, uint32_t cqe);
/** eng_cq_poll() - up to @n completions, progressing first when the CQ is
 *  empty. Return: how many; -EIO after overrun and when drained */
int eng_cq_poll(struct eng_cq *cq, int n, struct ibv_wc *wc);
/** eng_wc_ee_context() - of a completion of an RD QP: the EE context that the received message came
 *  by. struct ibv_wc has no member for it, and a receive's vendor_err is otherwise 0 */
static inline uint32_t eng_wc_ee_context(const struct ibv_wc *wc)
{
	return wc->vendor_err;
}
/** eng_wc_flow_tag() - of a completion of a raw packet QP: the tag of the rule that steered the
 *  frame to it, in the same member; else 0 */
static inline uint32_t eng_wc_flow_tag(const struct ibv_wc *wc)
{
	return wc->status == IBV_WC_SUCCESS ? wc->vendor_err : 0;
}
/** eng_cq_arm() - raise one event at the next completion; with @solicited_only at the next that
 *  is solicited or in error. The event is raised at once if the CQ has such a completion, unless
 *  the last event reported it and the CQ has not been polled since (cq.c) */
void eng_cq_arm(struct eng_cq *cq, bool solicited_only);
/** eng_cq_arm_for() - raise one event when @entries or more wait in @cq, at once if they do. If
 *  the CQ is armed already, the event is raised at the earlier of both conditions. A later
 *  eng_cq_arm() replaces this one */
void eng_cq_arm_for(struct eng_cq *cq, uint32_t entries);
/** eng_cq_moderate() - from now on, delay the event of an armed @cq until @entries have
 *  completed, but at most @ns after the first of them. Either is 0: no delay */
void eng_cq_moderate(struct eng_cq *cq, uint32_t entries, uint64_t ns);
/** eng_cq_pending() - the number of completions in the CQ */
uint32_t eng_cq_pending(const struct eng_cq *cq);
uint32_t eng_cq_depth(const struct eng_cq *cq);

/* --- shared receive queues --- */
int eng_srq_create_in(struct engine *engine, const struct eng_memory *memory, uint32_t pd,
		      uint32_t max_wr, uint32_t max_sge, uint32_t limit, void *ctx,
		      struct eng_srq **srq);
static inline int eng_srq_create(struct engine *engine, uint32_t pd, uint32_t max_wr,
				 uint32_t max_sge, uint32_t limit, void *ctx, struct eng_srq **srq)
{
	return eng_srq_create_in(engine, NULL, pd, max_wr, max_sge, limit, ctx, srq);
}
/** eng_srq_join_xrcd() - before its first use: targets of the XRC domain @xrcd find the
 *  SRQ by @srqn, and complete what they receive in @cq. 0; -ENOMEM; -EEXIST */
int eng_srq_join_xrcd(struct eng_srq *srq, uint32_t srqn, uint32_t xrcd, struct eng_cq *cq);
/** eng_srq_match_tags() - before its first use: RC QPs with @srq match the tags of messages
 *  against a list of @max_tags buffers at most, and what they receive completes in @cq.
 *  0; -ENOMEM */
int eng_srq_match_tags(struct eng_srq *srq, struct eng_cq *cq, uint32_t max_tags);
/** eng_srq_post_ops() - ibv_post_srq_ops(): add and delete tagged buffers, tell how many
 *  unexpected messages were handled. Return: 0; or -errno and *@bad: -EINVAL no such
 *  operation, buffer of more than ENG_TAG_SGES pieces, or no such SRQ; -ENOMEM list full */
int eng_srq_post_ops(struct eng_srq *srq, struct ibv_ops_wr *wr, struct ibv_ops_wr **bad);
#define ENG_TAG_SGES 4
#define ENG_TAGS_MAX 65536
#define ENG_RNDV_HEADER_BYTES 256 /* of a rendezvous request, with what its sender adds */
/** eng_wc_tm_info() - tag and private data of a message that matched; of any other completion
 *  zeros */
void eng_wc_tm_info(const struct ibv_wc *wc, struct ibv_wc_tm_info *info);
int eng_srq_modify(struct eng_srq *srq, const uint32_t *max_wr, const uint32_t *limit);
void eng_srq_query(struct eng_srq *srq, uint32_t *max_wr, uint32_t *max_sge, uint32_t *limit);
int eng_srq_destroy(struct eng_srq *srq);
/** eng_srq_post_recv() - 0 or -errno and *@bad */
int eng_srq_post_recv(struct eng_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/* --- queue pairs --- */
struct eng_qp_init {
	uint32_t qpn;
	/* RC, UC, UD, XRC_SEND, XRC_RECV; QPN 0 and 1 are UD with special rules */
	enum ibv_qp_type type;
	uint32_t pd;   /* XRC_RECV has none, the one of the SRQ is used */
	uint32_t xrcd; /* XRC_RECV: the number of its XRC domain */
	/* XRC_RECV has none, the SRQ's CQ is used. XRC_SEND: recv_cq is send_cq */
	struct eng_cq *send_cq, *recv_cq;
	struct eng_srq *srq; /* or NULL */
	uint32_t max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline;
	uint32_t max_sge_rd; /* of an RDMA READ; 0: as many as max_send_sge */
	/* UD: the longest header of IBV_WR_TSO, TP_MAX_TSO_HEADER at most; the QP takes IBV_SEND_IP_CSUM
	 * as well. 0: it takes neither */
	uint32_t max_header;
	bool sq_sig_all;
	bool blocks_own_multicast; /* UD: the QP does not receive its own multicast packets */
	/* RC: the QP is an RD QP, or an EE context, which has no CQs and no queues (rd.c) */
	bool is_rd, is_ee;
	uint32_t rdd; /* of both: the number of their RD domain */
	bool is_raw; /* UD: the QP sends and receives Ethernet frames (wire/frame.h) */
	uint8_t port_num; /* QP0, QP1 only; others get it by modify */
	void *ctx;
	const struct eng_memory *memory; /* of its queues, outlives the QP; NULL: the heap */
};
int eng_qp_create(struct engine *engine, const struct eng_qp_init *init, struct eng_qp **qp);
/** eng_target_open() - eng_qp_create() of one more handle of a target (XRC_RECV). The engine may
 *  have the target already, because the program has opened it before, or because softibd has made
 *  it receive for another program */
int eng_target_open(struct engine *engine, const struct eng_qp_init *init, struct eng_qp **qp);
/** eng_target_close() - eng_qp_destroy() of one handle of a target. @lives: other programs have
 *  it open, so the engine goes on receiving for it until softibd says that it is destroyed */
void eng_target_close(struct eng_qp *qp, bool lives);
/** eng_target_is_shared() - have other programs opened the target, too? Then only softibd knows
 *  its state */
bool eng_target_is_shared(const struct eng_qp *qp);
/** eng_qp_destroy() - its completions leave the CQs, as destroy demands */
void eng_qp_destroy(struct eng_qp *qp);
/**
 * eng_qp_modify() - apply @attr_mask of @attr (IBV_QP_* bits)
 * The caller has checked which attributes the transition needs (the midlayer's
 * table); the transition itself is checked here, against the true state.
 * Return: 0; -EINVAL and nothing changed. Spec: 10.3.1
 */
int eng_qp_modify(struct eng_qp *qp, const struct ibv_qp_attr *attr, int attr_mask);
/** eng_qp_may_modify() - what eng_qp_modify() would return, without the change */
int eng_qp_may_modify(struct eng_qp *qp, const struct ibv_qp_attr *attr, int attr_mask);
/** eng_qp_set_peer_owner() - the peer of @qp, which is connected, belongs to the program
 *  @owner: no other program's lane may bring its packets. 0: unknown. The next transition
 *  to RTR resets it to that */
void eng_qp_set_peer_owner(struct eng_qp *qp, uint32_t owner);
/**
 * eng_qp_pace() - the rate at which @qp, a raw packet QP, sends
 * @kbps:        thousands of bits of frames, without FCS, in a second; 0: no limit
 * @burst_bytes: what may leave at once when the QP was idle; 0: as much as the rate allows in 1 ms.
 *               One frame always may
 * @frame_bytes: the usual length of a frame; 0: the longest that the port carries
 *
 * Return: 0; -EINVAL another type, or a burst without a rate
 */
int eng_qp_pace(struct eng_qp *qp, uint32_t kbps, uint32_t burst_bytes, uint32_t frame_bytes);
void eng_qp_query(struct eng_qp *qp, struct ibv_qp_attr *attr);
/**
 * eng_flush_wr() - make @wr a FLUSH of @length bytes at @remote_addr, or of all that @rkey names
 * @placement: enum wire_placement; @selectivity: enum wire_selectivity
 *
 * struct ibv_send_wr has no members for a FLUSH. This function and the posting of requests
 * agree to use those of an atomic.
 */
void eng_flush_wr(struct ibv_send_wr *wr, uint32_t rkey, uint64_t remote_addr, uint32_t length,
		  uint8_t placement, uint8_t selectivity);
/**
 * eng_post_send() - @wr list, the caller's; wr.ud.ah is resolved by @av_of
 * Return: 0; -errno and *@bad the first request not queued
 */
int eng_post_send(struct eng_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad,
		  const struct tp_av *(*av_of)(struct ibv_ah *ah));
/** eng_post_send_all() - all of a list or nothing. Return: 0; -errno of the first
 *  request that could not be queued */
int eng_post_send_all(struct eng_qp *qp, struct ibv_send_wr *wr,
		      const struct tp_av *(*av_of)(struct ibv_ah *ah));
/** struct eng_rd_to - where a request of an RD QP goes */
struct eng_rd_to {
	uint32_t ee_context, qpn, qkey;
};
/** eng_post_rd() - one request of an RD QP. Return: 0; -errno as eng_post_send() */
int eng_post_rd(struct eng_qp *qp, const struct ibv_send_wr *wr, const struct eng_rd_to *to);
int eng_post_recv(struct eng_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
/** eng_qp_attach_mcast() - accept packets to @gid/@lid. 0; -ENOMEM */
int eng_qp_attach_mcast(struct eng_qp *qp, const union wire_gid *gid, uint16_t lid);
int eng_qp_detach_mcast(struct eng_qp *qp, const union wire_gid *gid, uint16_t lid);

/** eng_port_find_pkey() - Return: the index of the first P_Key in the table of @port that matches
 *  @pkey (10.9.3); -1: none does */
static inline int eng_port_find_pkey(const struct abi_devport *port, uint16_t pkey)
{
	for (int i = 0; i < ABI_PKEYS; i++)
		if (wire_pkeys_match(port->pkey[i], pkey))
			return i;
	return -1;
}

/** eng_port_accepts_pkey() - does a P_Key in the table of @port match @pkey? */
static inline bool eng_port_accepts_pkey(const struct abi_devport *port, uint16_t pkey)
{
	return eng_port_find_pkey(port, pkey) >= 0;
}

/** struct eng_stats - packets that were dropped, by reason */
struct eng_stats {
	uint64_t rx_no_qp, rx_bad_pkey, rx_malformed, link_full;
};
void eng_stats(struct engine *engine, struct eng_stats *stats);

#endif
