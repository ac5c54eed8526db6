/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the files of the engine share. Everything here is protected by engine.lock. */
#ifndef SOFTIB_ENGINE_PRIVATE_H
#define SOFTIB_ENGINE_PRIVATE_H

#include <stdatomic.h>

#include "engine/block.h"
#include "engine/engine.h"
#include "engine/lock.h"
#include "engine/table.h"

#define ENG_RX_BUDGET 64  /* packets, and records of each lane, that are received in a turn */
#define ENG_TX_BUDGET 32  /* packets a QP may send before the next QP's turn */
#define ENG_TX_BYTES (512u << 10) /* bytes of payload a QP may send by its lane before the next QP's turn */
#define ENG_PORTS_MAX 255
/* Reading the clock costs as much as an empty poll, so only every 64th poll reads it. */
#define ENG_POLLS_PER_CLOCK 64
#define ENG_RECENT_MRS 4 /* a power of two */

/** struct eng_mr - what a key gives access to: a memory region, or part of one */
struct eng_mr {
	struct eng_mr_attr attr;
	bool is_window; /* embedded in a struct eng_mw (mw.c); only peers may use its key */
	bool is_paged;	/* embedded in a struct eng_paged (paged.c) */
	bool is_null;	/* embedded in a struct null_mr (mr.c); has no pages, but @pages */
	uint32_t windows; /* memory windows that are bound to this region */
	/* --- of memory that is made of pages; else it is in one piece, at attr.addr --- */
	const struct eng_pages *pages;
	uint64_t offset_bytes; /* where the region begins in its first page */
};

/** struct eng_pages - host addresses of pages of one size */
struct eng_pages {
	unsigned shift;
	uint32_t num;
	uint64_t *addr;
};

/** struct eng_rq - receive requests in the order of posting */
struct eng_rq {
	uint8_t *ring; /* of eng_rq_wr */
	uint32_t stride_bytes;
	uint32_t mask, depth, max_sge;
	uint32_t head, tail;
	uint32_t limit; /* SRQ: the limit that raises an event; 0: none */
	/* protection domain of its memory; that of an SRQ may differ from its QPs' */
	uint32_t pd;
};

struct eng_rq_wr {
	uint64_t wr_id;
	uint32_t num_sge;
	struct tp_sge sge[]; /* there is always one; if num_sge is 0, its length is 0 */
};

struct eng_srq {
	struct engine *engine;
	struct list_head node; /* engine.srqs */
	void *ctx;
	struct eng_rq rq;
	unsigned users;
	/* --- of an XRC domain --- */
	uint32_t srqn, xrcd;
	struct eng_cq *cq; /* of an XRC domain or with tags; else NULL */
	struct eng_tags *tags; /* NULL: it matches none (tag.c) */
	struct eng_block block; /* has rq.ring */
	const struct eng_memory *memory;
};

struct eng_mcast {
	struct list_head in_engine;
	struct list_head in_qp;
	struct eng_qp *qp;
	union wire_gid gid;
	uint16_t lid;
};

/** struct eng_pace - the rate of a raw packet QP (pace.c) */
struct eng_pace {
	uint32_t kbps;
	uint64_t burst_ns; /* how far the QP may be ahead of its rate */
	mono_t paid_until; /* when everything that was sent would have left at the rate */
};

#define NO_LONE_ACK UINT32_MAX

/** struct eng_qp - a queue pair
 *
 * What the fast path of a SEND and of its acknowledgement needs comes first and takes few
 * cache lines: with many QPs, cache misses dominate the cost of a message.
 */
struct eng_qp {
	struct tp_qp *tp;
	struct engine *engine;
	/* --- the lane of its packets; valid: eng_flow_holds() --- */
	struct eng_flow *flow;
	uint32_t flow_serial;
	/* consecutive requests sent as packets that a window could have performed */
	uint32_t window_run;
	/* --- records by that flow --- */
	uint64_t record[3]; /* header words of a SEND Only, with 0 for what differs per record */
	uint32_t single_bytes[2]; /* longest SEND that the fast path takes; [1]: inline */
	uint32_t few_bytes[2]; /* the same, at most 8; 0: UD, or no flow */
	uint8_t flow_dwords;   /* length of the headers of a SEND Only, with ICRC; without XRCETH */
	uint8_t record_path_bits; /* UD: path bits of the source LID in record */
	bool is_paced;	       /* the rate is limited, see pace */
	bool in_window;	       /* a long copy has released the lock between two slices */
	/* requests were sent between the QP's last two standalone ACKs (requests_sent() in tx.c), so
	 * ACKs are delayed */
	bool sent_since_ack;
	uint32_t received_turn; /* the last turn of the engine in which this QP received */
	/* requests_sent() in tx.c when the last standalone ACK left, or NO_LONE_ACK */
	uint32_t lone_ack_sent;
	struct list_head ack_node; /* in engine.owed_acks or .piggyback_acks while its ACK is delayed */
	struct list_head tx_node; /* in engine.tx while it may have packets */
	size_t held_bytes; /* length of the packet that waits for room in the link; 0: none */
	struct eng_qp_init init; /* QPN, type and PD are its first members */
	struct eng_cq *send_cq, *recv_cq;
	struct eng_rq *recv_rq; /* rq or the SRQ's */
	const uint16_t *live_pkey; /* the QP's entry in the port's P_Key table */
	struct eng_prediction predicted; /* RC, XRC: the header of the next record */
	struct eng_rq rq; /* unused with an SRQ */
	/* --- UD --- */
	struct eng_path path; /* the path of flow, of any type of QP */
	uint32_t datagrams_run; /* datagrams posted since the QP last received a packet, */
	uint64_t datagrams_received; /* and how many it had received by then */
	struct eng_pace pace;	     /* raw: while is_paced */
	/* --- windows --- */
	const struct slot *slot; /* the slot that was used last; may belong to another QP now */
	/* number of the connection with the current peer, never used again */
	uint32_t connection;
	uint32_t window_token; /* token of what the peer was granted; 0: nothing */
	struct list_head held_node; /* in engine.held while its send queue is held */
	uint32_t peer_owner;   /* the program that owns its peer; 0: unknown */
	bool unquiesced;       /* a grant was revoked, and the peer may still be in a section */
	const struct eng_srq *xrc_srq; /* XRC_RECV, during a packet: the SRQ that it names */
	struct eng_ee *ee; /* EE context: its state; else NULL */
	struct list_head rd_node; /* RD: in eng_ee.waiting, or empty */
	struct eng_qp *rd_carrier; /* RD: the EE context that carries its oldest request; NULL */
	bool rd_begun;	   /* RD: an EE context has begun that request; it may be suspended */
	uint8_t rd_rnrs;   /* RD: number of RNR NAKs for that request */
	mono_t rd_resume;  /* RD: when a suspended request may begin again */
	/* --- XRC_RECV, in the hands of several programs (target.c) --- */
	/* handles of this program; 0: the engine only receives for other programs */
	unsigned handles;
	bool is_shared;	   /* other programs have the target open, and get its events */
	bool to_release;   /* softibd has asked for the state of the responder */
	uint32_t events;   /* bits of enum ibv_event_type that softibd does not know of yet */
	struct list_head tell_node; /* in engine.tellers */
	/* state of tag matching if the SRQ matches tags; else NULL */
	struct eng_matching *matching;
	/* --- of other requests, and of changes --- */
	struct list_head all_node;
	struct list_head mcast;
	struct ibv_qp_attr attr; /* attributes as ibv_modify_qp() set them, for queries */
	bool tells_drained; /* the owner requested the event at the transition to SQD */
	/* a completion failed, and the QP moves to ERR before the engine's turn ends */
	bool spoilt;
	/* --- path migration (migrate.c); its state is in attr --- */
	bool has_alternate;
	bool awaits_migration; /* every packet is shown to eng_path_watch() */
	bool migration_refused; /* the peer's migration was refused, and the event was raised */
	/* --- the packet that waits for room in the link (held_bytes) --- */
	struct wire_packet held;
	unsigned held_port;
	uint8_t *held_packet; /* WIRE_PACKET_MAX bytes, allocated when first needed */
	void *header_memory;  /* tp_qp_give_headers(); allocated when first needed */
	/* what was allocated; the QP and tp begin on a cache line in it */
	void *memory;
	struct eng_block tp_block, rq_block;
	struct tp_sge srq_sge[]; /* TP_MAX_SGE, if it shares_receives(): pieces of the one taken elsewhere */
};

#define ENG_PUT_CLASSES 4 /* classes of payload lengths: from 4, 8, 16 and 32 KiB */

/** struct eng_put - how received payloads of a class of lengths are copied (put.c) */
struct eng_put {
	struct eng_copy copy;
	unsigned copies, samples; /* copies: since the start; samples: of the current span */
	uint64_t ns, bytes;	  /* duration and length of these samples */
};

struct engine {
	struct eng_lock lock;
	struct eng_config cfg;
	struct list_head tx; /* QPs that may have something to send */
	struct list_head held; /* QPs whose requests wait for a window */
	struct list_head tellers; /* targets that have something to tell softibd */
	/* QPs whose ACK is delayed and that have no request to send with it soon */
	struct list_head owed_acks;
	/* QPs whose ACK is delayed and that are expected to send a request with it */
	struct list_head piggyback_acks;
	struct list_head lanes; /* struct eng_lane_in that are polled */
	struct list_head quiet_lanes; /* struct eng_lane_in that are skipped (lane_quiet.c) */
	unsigned num_lanes, num_quiet; /* lengths of these two lists */
	uint32_t lane_ids; /* the last eng_lane_in.id that was given to a lane */
	struct list_head dirty; /* struct eng_lane_out whose receivers may have to be woken */
	unsigned wide_lanes; /* lanes whose ring of payloads may be wide */
	mono_t next_expiry;  /* no timer of a QP and no event of a CQ is due before this */
	mono_t now;	     /* time of the current turn */
	uint32_t polls;	     /* polls so far; one of ENG_POLLS_PER_CLOCK reads the clock */
	bool more; /* a lane has more records than one turn receives */
	bool suffices; /* the last record that was received: eng_xrc_suffices() */
	uint32_t turn; /* number of turns that have read the lanes */
	_Atomic bool moved; /* the last turn did something */
	bool unflushed; /* packets committed since the last flush */
	bool spoilt;	/* a QP is spoilt, see eng_qp.spoilt */
	bool put_off;	/* something is to be done when the lock is given back */
	/* a window has stored into a peer's memory, and there was no fence since */
	bool in_windows;
	bool notified;	/* an armed CQ's event was raised in this turn */
	bool probes; /* eng_mem() checks that memory is mapped: some was unmapped, or is paged on
		      * demand */
	bool odp_is_limited; /* a bit is missing in @odp */
	struct eng_odp odp;
	struct eng_table qps, mrs, xrc_srqs;
	struct list_head mws; /* eng_mw */
	struct eng_mr *recent_mr[ENG_RECENT_MRS];
	struct eng_qp **special; /* QP0 and QP1 of all ports, at [port * 2 + qpn] */
	struct list_head all_qps, cqs, srqs, mcast;
	struct list_head moderated; /* eng_cq whose event waits for more entries */
	struct eng_put put[ENG_PUT_CLASSES];
	struct eng_stats stats;
	uint32_t connections; /* the last eng_qp.connection that was given to a QP */
	struct eng_windows *windows; /* NULL: all requests are sent as packets */
	/* memory windows that were unbound while peers had data-path windows into them, and how
	 * many of them eng_window_settle() has dealt with */
	uint32_t unbound, settled;
};

/* the engine's lock: lock.h */
static inline bool eng_trylock(struct engine *e)
{
	return eng_lock_try(&e->lock);
}

static inline void eng_lock(struct engine *e)
{
	eng_lock_take(&e->lock);
}

/** eng_unlock_later() - eng_unlock() when calls of the link were put off until the lock is free */
void eng_unlock_later(struct engine *e);

static inline void eng_unlock(struct engine *e)
{
	if (unlikely(e->put_off))
		eng_unlock_later(e);
	else
		eng_lock_give(&e->lock);
}

static inline void eng_ring(struct engine *e, struct eng_lane_out *lane)
{
	e->put_off = true;
	e->cfg.link_ops->ring(e->cfg.link, lane);
}

/** eng_lock_qp_wait() - eng_lock_qp() when another thread is between two slices of a copy for @qp */
void eng_lock_qp_wait(struct eng_qp *qp);

/** eng_lock_qp() - take the lock when no request of @qp is half performed */
static inline void eng_lock_qp(struct eng_qp *qp)
{
	eng_lock(qp->engine);
	if (unlikely(qp->in_window))
		eng_lock_qp_wait(qp);
}

static inline const struct abi_devport *eng_port(const struct engine *e, unsigned port_num)
{
	unsigned i = port_num ? port_num - 1 : 0;
	return &e->cfg.devpage->port[i < e->cfg.devpage->num_ports ? i : 0];
}

#include "engine/cq.h"

/* mr.c */
#define ENG_REMOTE_STORES (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)
#define ENG_REMOTE_RIGHTS (ENG_REMOTE_STORES | IBV_ACCESS_REMOTE_READ)
/** eng_key_index() - where the entry of @key is in engine.mrs. The program chooses the low eight bits
 *  of a key, and may change them */
static inline uint32_t eng_key_index(uint32_t key)
{
	return key >> 8;
}
/** eng_keys_match() - are both keys of one entry, whatever their low bits? */
static inline bool eng_keys_match(uint32_t a, uint32_t b)
{
	return eng_key_index(a) == eng_key_index(b);
}
/** eng_mr_of() - the entry of @key, whose key may have other low bits now: a region, or a memory
 *  window. NULL: there is none */
static inline struct eng_mr *eng_mr_of(const struct engine *e, uint32_t key)
{
	return eng_table_get(&e->mrs, eng_key_index(key));
}
/** eng_may_store() - are the rights sound? Memory that peers may store to by @remote must be
 *  writable for the program by @local (C10-59, C10-74) */
static inline bool eng_may_store(int remote, int local)
{
	return !(remote & ENG_REMOTE_STORES) || local & IBV_ACCESS_LOCAL_WRITE;
}
/** eng_odp_init() - @odp: eng_config.odp */
void eng_odp_init(struct engine *e, const struct eng_odp *odp);
/** eng_odp_depends() - do the capabilities decide about uses of @mr? */
static inline bool eng_odp_depends(const struct engine *e, const struct eng_mr *mr)
{
	return unlikely(e->odp_is_limited && mr->attr.access & IBV_ACCESS_ON_DEMAND &&
			!mr->attr.is_pinned);
}
/** eng_odp_serves() - may @qp use @mr so (odp.c)? */
bool eng_odp_serves(const struct eng_qp *qp, const struct eng_mr *mr, int access,
		    enum tp_key whose);
/** eng_mr_pd() - the protection domain of @key; that of no region when there is none */
uint32_t eng_mr_pd(struct engine *e, uint32_t key);
/** eng_mem_run() - the host address of memory that the program itself names by @key, in a
 *  request or receive of @qp, and in *@len how much of it is in one piece. @whose: what uses it.
 *  NULL: it may not be used so */
void *eng_mem_run(const struct eng_qp *qp, uint32_t pd, uint32_t key, uint64_t va, uint64_t *len,
		  int access, enum tp_key whose);
/** eng_mem() - as eng_mem_run(), of memory that must be in one piece, and for whatever QP. NULL:
 *  it may not be used so, it is in several pieces, or it depends on the QP */
void *eng_mem(struct engine *e, uint32_t pd, uint32_t key, uint64_t va, uint64_t len, int access);
/** eng_mem_remote() - eng_mem_run() of memory that the peer of @qp names by @key. @pd: the
 *  protection domain that the key must belong to */
void *eng_mem_remote(const struct eng_qp *qp, uint32_t pd, uint32_t key, uint64_t va,
		     uint64_t *len, int access);
/** eng_mem_grants() - does @key give the peer of @qp the right @access to any memory? */
bool eng_mem_grants(const struct eng_qp *qp, uint32_t pd, uint32_t key, int access);
/** eng_mr_used() - look @key up in the cache of regions used last. Return: its region, another
 *  region, or NULL. The cache holds no memory windows and no regions that are made of pages */
static inline const struct eng_mr *eng_mr_used(const struct engine *e, uint32_t key)
{
	return e->recent_mr[eng_key_index(key) & (ENG_RECENT_MRS - 1)];
}
/** eng_mr_at() - the host address of @va. NULL: not all of the range is inside the region */
static inline void *eng_mr_at(const struct eng_mr *mr, uint64_t va, uint64_t len)
{
	if (unlikely(!range_covers(mr->attr.iova, mr->attr.length, va, len)))
		return NULL;
	/* the region of the whole address space begins at NULL */
	return (void *)((uintptr_t)mr->attr.addr + (va - mr->attr.iova));
}
/** eng_mr_allows() - may @key, of the protection domain @pd, be used so on @mr (10.6.3)? */
static inline bool eng_mr_allows(const struct eng_mr *mr, uint32_t pd, uint32_t key, int access)
{
	return likely(mr && mr->attr.key == key && mr->attr.pd == pd &&
		      (mr->attr.access & access) == access);
}
/** eng_mem_used() - eng_mem() of a local key that is in the cache of regions used last. NULL: it
 *  is not, or it may not be used so */
static inline void *eng_mem_used(const struct engine *e, uint32_t pd, uint32_t key, uint64_t va,
				 uint64_t len, int access)
{
	const struct eng_mr *mr = eng_mr_used(e, key);

	return eng_mr_allows(mr, pd, key, access) ? eng_mr_at(mr, va, len) : NULL;
}
/** eng_mem_recent() - eng_mem() of a local key; a key in the cache costs no call */
static inline void *eng_mem_recent(struct engine *e, uint32_t pd, uint32_t key, uint64_t va,
				   uint64_t len, int access)
{
	void *at = eng_mem_used(e, pd, key, va, len, access);

	return likely(at) ? at : eng_mem(e, pd, key, va, len, access);
}
void eng_mr_free_all(struct engine *e);

/** eng_qp_clean_cqs() - remove the completions of @qp from its CQs; of an XRC target from the CQ
 *  of the SRQ that it received into last */
void eng_qp_clean_cqs(struct eng_qp *qp);

/* paged.c */
/** eng_paged_at() - the host address of @va in a region made of pages, and in *@len how much of
 *  it is in one piece. Context: the range is inside the region */
void *eng_paged_at(const struct eng_mr *mr, uint64_t va, uint64_t *len);
/** eng_paged_register() - register a region with the pages that were staged for it, and with the
 *  key and the rights of @wr. Return: 0; -EACCES and nothing changed */
int eng_paged_register(struct eng_qp *qp, const struct tp_send_wr *wr);
/** eng_paged_invalidate() - let the region of @key give no access any more. @by_peer: because of
 *  a SEND with Invalidate of the peer. Return: 0; -EACCES */
int eng_paged_invalidate(struct eng_qp *qp, uint32_t key, bool by_peer);

/** eng_qp_pd() - the protection domain whose keys a request of @qp may invalidate. An XRC target
 *  has none, so that of the SRQ counts which the request names */
static inline uint32_t eng_qp_pd(const struct eng_qp *qp)
{
	return qp->xrc_srq ? qp->xrc_srq->rq.pd : qp->init.pd;
}

/* mw.c */
/** eng_mw_serves() - may the peer of @qp use the window @mr? */
bool eng_mw_serves(const struct eng_mr *mr, const struct eng_qp *qp);
/** eng_mw_token() - where the window @mr keeps its token; 0: it has none */
uint32_t *eng_mw_token(struct eng_mr *mr);
/** eng_mw_bind() - bind a memory window as @wr says. Return: 0; -EACCES and nothing changed */
int eng_mw_bind(struct eng_qp *qp, const struct tp_send_wr *wr);
/** eng_mw_invalidate() - unbind the memory window of @key, which @qp has bound. Return: 0;
 *  -ENOENT @key is not of a window; -EACCES */
int eng_mw_invalidate(struct eng_qp *qp, uint32_t key);
/** eng_mw_leave() - unbind the memory windows that @qp has bound, because it goes away */
void eng_mw_leave(struct eng_qp *qp);

/** eng_qp_event() - tp_ops.event() of a QP */
void eng_qp_event(void *ctx, enum tp_event event);
/** eng_complete_recv() - add the completion @wc to the CQ of @qp's receives */
void eng_complete_recv(struct eng_qp *qp, const struct tp_wc *wc);
/** eng_av_of() - the transport's address vector */
struct tp_av eng_av_of(const struct ibv_ah_attr *ah);

/* migrate.c */
/** eng_path_may_be() - are the attributes of the alternate path and its state valid that @mask
 *  selects of @attr? */
bool eng_path_may_be(const struct eng_qp *qp, const struct ibv_qp_attr *attr, int mask);
/** eng_path_loaded() - adapt the migration state to the attributes in @mask, which have just been
 *  set */
void eng_path_loaded(struct eng_qp *qp, int mask);
/** eng_migrate() - make the alternate path, which must exist, the primary path */
void eng_migrate(struct eng_qp *qp);
/** eng_path_failed() - tp_ops.path_failed() of a QP */
bool eng_path_failed(void *ctx, bool exhausted);
/** eng_path_watch() - let a packet from the port @source change the migration state of @qp, which
 *  awaits_migration. Context: before the source is checked against the path, which a migration
 *  changes */
void eng_path_watch(struct eng_qp *qp, wire_addr_t source, uint16_t pkey, bool mig_req);

/* xrc.c */
/** eng_is_xrc() - is @qp an XRC initiator or target? */
static inline bool eng_is_xrc(const struct eng_qp *qp)
{
	return qp->init.type == IBV_QPT_XRC_SEND || qp->init.type == IBV_QPT_XRC_RECV;
}
/** eng_is_xrc_target() - is @qp an XRC target? The transport does not tell it from an initiator */
static inline bool eng_is_xrc_target(const struct eng_qp *qp)
{
	return qp->init.type == IBV_QPT_XRC_RECV;
}
/** eng_xrc_srq() - the SRQ that a request to the target @qp names by @srqn, if it is of the
 *  target's domain and its CQ has not overrun; NULL */
struct eng_srq *eng_xrc_srq(const struct eng_qp *qp, uint32_t srqn);
/** eng_xrc_receive_into() - the message that @qp receives has taken its receive from @srq */
static inline void eng_xrc_receive_into(struct eng_qp *qp, struct eng_srq *srq)
{
	qp->recv_rq = &srq->rq;
	qp->recv_cq = srq->cq;
}
/**
 * eng_xrc_suffices() - a message to the target @qp has a completion in @cq: is that all that a poll
 * had room for, of a program that answers messages (sent_since_ack)?
 *
 * If so, no more is read from the lane. What follows first is the ACK of the program's last answer,
 * which a poll can take while the program waits for the next message. To look for it now costs the
 * next answer a cache miss, because the peer writes it about now: the latency of a ping-pong of 64
 * bytes was 1.33 times that of RC, and is 1.05 times it.
 */
static inline bool eng_xrc_suffices(const struct eng_qp *qp, const struct eng_cq *cq)
{
	return cq->direct && !cq->direct_left && qp->sent_since_ack;
}
/** eng_xrc_receive() - tp_qp_receive() of an XRC QP */
void eng_xrc_receive(struct eng_qp *qp, const struct wire_packet *pkt);

/* rd.c */
/** eng_ee_init() - make @qp, which is new, an EE context. Return: 0; -ENOMEM */
int eng_ee_init(struct eng_qp *qp);
/** eng_rd_reset() - release what @qp, an RD QP or an EE context that is about to be reset,
 *  carries or waits for */
void eng_rd_reset(struct eng_qp *qp);
/** eng_rd_leave() - the same before it is destroyed, or when an RD QP fails */
void eng_rd_leave(struct eng_qp *qp);
/** eng_ee_receive() - tp_qp_receive() of an EE context */
void eng_ee_receive(struct eng_qp *qp, const struct wire_packet *pkt);
/** eng_ee_turn() - give an EE context its next request. Context: after anything that may have
 *  ended the one that it carries */
void eng_ee_turn(struct eng_qp *qp);
/** eng_rd_advance() - hand the oldest request of an RD QP to its EE context */
void eng_rd_advance(struct eng_qp *qp);
extern const struct tp_ops eng_ee_ops;

/* target.c */
/** eng_target_message() - process a message of softibd about a target, which came in the place of
 *  a packet */
void eng_target_message(struct engine *e, const void *bytes, size_t len);
/** eng_target_event() - report an asynchronous event of a shared target to softibd, which passes
 *  it to all programs */
void eng_target_event(struct eng_qp *qp, enum ibv_event_type type);
/** eng_targets_tell() - send softibd the messages of targets for which the ring has room */
void eng_targets_tell(struct engine *e);

/* tag.c */
struct ibv_tmh;
/** eng_has_tags() - does the SRQ of @qp match tags? */
static inline bool eng_has_tags(const struct eng_qp *qp)
{
	return qp->matching;
}
/** struct eng_buffer - a tagged buffer */
struct eng_buffer {
	uint64_t wr_id, tag, mask;
	uint32_t num_sge;
	struct tp_sge sge[ENG_TAG_SGES]; /* if num_sge is 0, the first has length 0 */
};
/* outstanding READs and SENDs that a QP posts itself, for rendezvous messages */
#define ENG_TAG_REQUESTS 16
/** eng_tag_qp_init() - allocate the state of tag matching of @qp. Return: 0; -ENOMEM */
int eng_tag_qp_init(struct eng_qp *qp);
void eng_tag_qp_free(struct eng_qp *qp);
/** eng_tags_free() - free the tagged buffers of an SRQ that is destroyed */
void eng_tags_free(struct eng_srq *srq);
/** eng_tag_recv_get() - tp_ops.recv_get() of a QP whose SRQ matches tags */
bool eng_tag_recv_get(void *ctx, const struct wire_packet *pkt, struct tp_recv_wr *wr);
/** eng_tag_received() - make @wc, the completion of a receive that eng_tag_recv_get() returned,
 *  that of a tagged message */
void eng_tag_received(struct eng_qp *qp, struct tp_wc *wc);
/** eng_tag_match() - find the buffer for the payload behind the header of a whole SEND
 * @payload: of the SEND: @len bytes; @header: is set to its header
 * Return: NULL: the general path has to decide */
const struct eng_buffer *eng_tag_match(struct eng_qp *qp, const uint8_t *payload, uint32_t len,
				       struct ibv_tmh *header);
/** eng_tag_matched() - that payload is in @buffer, which leaves the list. Note the tag in the
 *  completion @wc, which is otherwise filled as eng_tag_wc() says */
void eng_tag_matched(struct eng_qp *qp, const struct eng_buffer *buffer,
		     const struct ibv_tmh *header, struct ibv_wc *wc);
/** eng_tag_wc() - make the completion @wc of a SEND that of a message in a tagged buffer */
void eng_tag_wc(struct tp_wc *wc);
/** eng_tag_own_done() - the oldest request that the QP has posted itself ended with @status */
void eng_tag_own_done(struct eng_qp *qp, uint8_t status);
/** eng_tag_failed() - end the rendezvous that wait, because the QP is in the error state */
void eng_tag_failed(struct eng_qp *qp);
/** eng_tag_modified() - the QP moved to the state @to */
void eng_tag_modified(struct eng_qp *qp, enum ibv_qp_state to);
/** eng_tag_post() - post the requests of rendezvous that have a place in the send queue */
void eng_tag_post(struct eng_qp *qp);
/** eng_tag_receive() - tp_qp_receive() of a QP whose SRQ matches tags */
void eng_tag_receive(struct eng_qp *qp, const struct wire_packet *pkt);

/** eng_receive() - pass @pkt to the transport. Context: it passed all other checks */
static inline void eng_receive(struct eng_qp *qp, const struct wire_packet *pkt)
{
	if (unlikely(eng_is_xrc(qp)))
		eng_xrc_receive(qp, pkt);
	else if (unlikely(qp->ee))
		eng_ee_receive(qp, pkt);
	else if (unlikely(eng_has_tags(qp)))
		eng_tag_receive(qp, pkt);
	else
		tp_qp_receive(qp->tp, pkt, qp->engine->now);
}
/* those of struct tp_ops in which a target differs from other QPs */
void *eng_xrc_mem(void *ctx, uint32_t key, uint64_t va, uint64_t *len, int access,
		  enum tp_key whose);
bool eng_xrc_grants(void *ctx, uint32_t rkey, int access);
bool eng_xrc_recv_get(void *ctx, const struct wire_packet *pkt, struct tp_recv_wr *wr);
bool eng_xrc_recv_flush(void *ctx, struct tp_recv_wr *wr);
/** eng_xrc_srq_gone() - stop targets from receiving into @srq, which is destroyed */
void eng_xrc_srq_gone(struct eng_srq *srq);

/* rq.c */
/** eng_srq_take() - take the next receive of @srq for a message to @qp. Return: false: there is
 *  none */
bool eng_srq_take(struct eng_srq *srq, struct eng_qp *qp, struct tp_recv_wr *wr);

/* rq.c */
/** eng_rq_init() - @rq with room for @depth requests in @block, which is the caller's to free */
int eng_rq_init(struct eng_rq *rq, uint32_t pd, uint32_t depth, uint32_t max_sge,
		struct eng_block *block, const struct eng_memory *memory, enum eng_queue of);
/** eng_rq_pop() - take the oldest request. Its SGEs stay valid in the ring until one more than
 *  the queue's depth is posted after it */
bool eng_rq_pop(struct eng_rq *rq, struct tp_recv_wr *wr);
static inline struct eng_rq_wr *eng_rq_at(const struct eng_rq *rq, uint32_t position)
{
	return (struct eng_rq_wr *)(rq->ring + (size_t)(position & rq->mask) * rq->stride_bytes);
}
static inline uint32_t eng_rq_count(const struct eng_rq *rq)
{
	return rq->tail - rq->head;
}
/** eng_sge() - the transport's form of a scatter/gather entry */
static inline struct tp_sge eng_sge(const struct ibv_sge *sge)
{
	return (struct tp_sge){sge->addr, sge->length, sge->lkey};
}
/** eng_rq_push() - add a request. Return: 0; -EINVAL too many pieces; -ENOMEM the queue is full */
static inline int eng_rq_push(struct eng_rq *rq, const struct ibv_recv_wr *wr)
{
	struct eng_rq_wr *to = eng_rq_at(rq, rq->tail);

	if (unlikely(wr->num_sge < 0 || (uint32_t)wr->num_sge > rq->max_sge))
		return -EINVAL;
	if (unlikely(eng_rq_count(rq) >= rq->depth))
		return -ENOMEM;
	to->wr_id = wr->wr_id;
	to->num_sge = (uint32_t)wr->num_sge;
	to->sge[0] = likely(wr->num_sge) ? eng_sge(&wr->sg_list[0]) : (struct tp_sge){0};
	for (int s = 1; unlikely(s < wr->num_sge); s++)
		to->sge[s] = eng_sge(&wr->sg_list[s]);
	rq->tail++;
	return 0;
}
/** eng_rq_post() - add a list of requests. Return: 0; an error of eng_rq_push(), and in *@wr the
 *  request that failed */
static inline int eng_rq_post(struct eng_rq *rq, struct ibv_recv_wr **wr)
{
	int ret = 0;

	for (; *wr && likely(!(ret = eng_rq_push(rq, *wr))); *wr = (*wr)->next)
		;
	return ret;
}

/* engine.c */
/** eng_turn() - eng_progress() under the lock; @clock: as eng_tick() */
bool eng_turn(struct engine *e, bool clock);
/** eng_turn_on() - the rest of a turn after eng_rx(), which has @received so many packets and
 *  records. Context: a poll */
void eng_turn_on(struct engine *e, unsigned received);
/** eng_turn_ends() - end a turn in which nothing is left to do after eng_rx(), which is the usual
 *  case. Timers are only checked in one of ENG_POLLS_PER_CLOCK turns, because that takes a
 *  reading of the clock. Return: false: there is something to do, call eng_turn_on() */
static inline bool eng_turn_ends(struct engine *e, unsigned received)
{
	uint32_t polls = e->polls + 1;

	if (!list_empty(&e->tx) || !list_empty(&e->owed_acks) || !list_empty(&e->held) ||
	    (!received && !list_empty(&e->piggyback_acks)) || e->spoilt ||
	    e->next_expiry.ns <= e->now.ns || polls % ENG_POLLS_PER_CLOCK == 0)
		return false;
	e->polls = polls;
	atomic_store_explicit(&e->moved, received > 0, memory_order_relaxed);
	return true;
}

/* rx.c, tx.c */
/** eng_rx_packets() - receive the packets that the link has, up to @most */
unsigned eng_rx_packets(struct engine *e, unsigned most);
/** eng_addrs_of() - all addresses of the port with @lid in the subnet of our port @port_num. One LMC
 *  holds for a subnet */
struct wire_port_addrs eng_addrs_of(const struct eng_qp *qp, unsigned port_num, uint16_t lid);
/** eng_is_from_peer() - does @qp accept packets from the port with the addresses @sender? A connected
 *  QP accepts those of its peer's port alone. If it awaits_migration, the packet may change that:
 *  @source, @pkey and @mig_req are the packet's */
bool eng_is_from_peer(struct eng_qp *qp, struct wire_port_addrs sender, wire_addr_t source,
		      uint16_t pkey, bool mig_req);
/** eng_pkey_passes() - does @qp accept packets with @pkey? */
bool eng_pkey_passes(struct eng_qp *qp, uint16_t pkey);
bool eng_tx(struct engine *e);
/** eng_unsent() - tell the transport that @out, which it has just made, does not leave, because
 *  the memory of its payload is not mapped any more */
void eng_unsent(struct engine *e, struct eng_qp *qp, const struct tp_packet_out *out);
/** eng_tx_qp() - transmit for one QP, which is not in engine.tx */
void eng_tx_qp(struct engine *e, struct eng_qp *qp);
/** eng_fill_route() - fill the LRH and the GRH of a packet from an address vector. Return: the
 *  number of the port by which it leaves */
unsigned eng_fill_route(const struct eng_qp *qp, const struct tp_av *av, struct wire_packet *pkt);
/** eng_fill_grh() - fill the GRH only */
void eng_fill_grh(const struct engine *e, const struct tp_av *av, struct wire_grh *grh);
/** eng_flush_acks() - send delayed ACKs on their own
 * @all: those of every QP; else only of QPs from which no request is expected, and from
 *       whose peer this turn has read everything
 * Return: true when some left. Others may wait for eng_tx() */
bool eng_flush_acks(struct engine *e, bool all);
/** eng_acks_wait() - is an ACK of any QP delayed? */
static inline bool eng_acks_wait(const struct engine *e)
{
	return !list_empty(&e->owed_acks) || !list_empty(&e->piggyback_acks);
}

/* cut.c */
/** eng_describe_cut() - translate a request whose opcode is IBV_WR_TSO. 0; -ENOMEM; -EINVAL: @qp takes
 *  none, or its header is none of a TCP segment of IPoIB, or is longer or shorter than that */
int eng_describe_cut(struct eng_qp *qp, const struct ibv_send_wr *wr, struct tp_send_wr *out);
/** eng_finish_checksums() - compute the checksums of a datagram of IPoIB with TCP or UDP. Return:
 *  false: it is something else, and unchanged */
bool eng_finish_checksums(uint8_t *datagram, size_t bytes);
/** eng_send_train() - send the packets of a request that is cut (@out->header) */
void eng_send_train(struct engine *e, struct eng_qp *qp, struct tp_packet_out *out);

/* lane_tx.c, lane_rx.c */
/** eng_ext_encode() - write the extended headers of a record. Of a DETH only the Q_Key is
 *  written, in host byte order, because the record has the source QP; all others are as on the
 *  wire. Return: their length in bytes */
static inline size_t eng_ext_encode(const struct wire_packet *pkt, uint32_t flags, uint8_t *to)
{
	size_t at = flags & WIRE_HAS_DETH ? ABI_RECORD_QKEY_BYTES : 0;

	memcpy(to, &pkt->deth.qkey, at);
	return at + wire_ext_encode(pkt, flags & ~(uint32_t)WIRE_HAS_DETH, to + at);
}
/** eng_ext_decode() - read the extended headers of a record. A cell is longer than those of any
 *  opcode. Return: their length in bytes */
static inline size_t eng_ext_decode(const uint8_t *from, uint32_t flags, struct wire_packet *pkt)
{
	size_t at = flags & WIRE_HAS_DETH ? ABI_RECORD_QKEY_BYTES : 0;

	memcpy(&pkt->deth.qkey, from, at);
	return at + wire_ext_decode(from + at, flags & ~(uint32_t)WIRE_HAS_DETH, pkt);
}
/** eng_lane_medium() - does @qp's next packet leave by a lane or through softibd? */
enum eng_medium eng_lane_medium(struct engine *e, struct eng_qp *qp);
/** eng_lane_send() - transmit for @qp by its lane, up to @budget records. Return: true when it
 *  sent something; *@over: no more now, since there is no room or others have their turn */
bool eng_lane_send(struct engine *e, struct eng_qp *qp, unsigned budget, bool *over);
/** eng_lane_ack() - send a standalone ACK of @qp, if that is the next packet and its lane has room.
 *  Return: false: nothing has changed */
bool eng_lane_ack(struct engine *e, struct eng_qp *qp);
void eng_lane_flush(struct engine *e);
/** eng_lanes_rx() - receive up to @most records of each lane. Return: the number received;
 *  e->more: there are more */
unsigned eng_lanes_rx(struct engine *e, unsigned most);
/** eng_lane_listen() - poll @lane, which is in no list, from now on */
void eng_lane_listen(struct engine *e, struct eng_lane_in *lane);
/** eng_lane_leave() - remove @lane from the list that it is in */
void eng_lane_leave(struct engine *e, struct eng_lane_in *lane);
/** eng_lanes_mind() - move lanes between the polled and the quiet ones; called with each reading
 *  of the clock. @all: check all quiet lanes for a record, instead of a slice of them. Return:
 *  whether one of those checked has a record */
bool eng_lanes_mind(struct engine *e, bool all);
/** eng_lanes_forget() - forget the header predictions for @qp, whose attributes change */
void eng_lanes_forget(struct engine *e, struct eng_qp *qp);
/** eng_packets_waiting() - may the link have a packet? */
static inline bool eng_packets_waiting(const struct engine *e)
{
	const struct abi_ring_rx *rx = e->cfg.packets;

	return !rx || atomic_load_explicit(&rx->ring->tail, memory_order_acquire) != rx->head;
}
/** eng_rx_waits() - is there anything to receive? */
static inline bool eng_rx_waits(const struct engine *e)
{
	const struct eng_lane_in *lane;

	list_for_each_entry(lane, &e->lanes, node)
		if (abi_lane_stirs(&lane->rx))
			return true;
	return eng_packets_waiting(e);
}
/** eng_rx() - receive up to @most records of each lane, and packets. Packets that came before a
 *  record are received before it (lane_rx.c), so only if there was no record, packets are looked
 *  for here. Return: the number received; e->more: there are more */
static inline unsigned eng_rx(struct engine *e, unsigned most)
{
	unsigned n = eng_lanes_rx(e, most);

	if (unlikely(!n) && eng_packets_waiting(e))
		n = eng_rx_packets(e, ENG_RX_BUDGET);
	return n;
}

/** eng_flow_drop() - forget the flow of @qp, which then asks the link for one again */
static inline void eng_flow_drop(struct eng_qp *qp)
{
	qp->flow = NULL;
	memset(qp->few_bytes, 0, sizeof(qp->few_bytes));
}
/** eng_flow_lasts() - is @qp's flow, which must exist, still valid? */
static inline bool eng_flow_lasts(const struct engine *e, const struct eng_qp *qp)
{
	return qp->flow->serial == qp->flow_serial &&
	       qp->flow->epoch == atomic_load_explicit(&e->cfg.devpage->route_epoch,
						       memory_order_acquire);
}
static inline bool eng_flow_holds(const struct engine *e, const struct eng_qp *qp)
{
	return qp->flow && eng_flow_lasts(e, qp);
}
/** eng_note_expiry() - note a timer of a QP or a CQ, which may be the earliest one */
static inline void eng_note_expiry(struct engine *e, mono_t expiry)
{
	if (likely(!mono_before(expiry, e->next_expiry)))
		return;
	e->next_expiry = expiry;
	if (e->cfg.kick)
		e->cfg.kick(e->cfg.ctx, expiry);
}
/** eng_qp_touch() - queue @qp for transmission if it has something to send, and note its timer.
 *  Called after anything that may change either. eng_qp_owes() is enough if @qp only has an ACK
 *  that may be delayed */
void eng_qp_touch(struct eng_qp *qp);

/** eng_find_pkey() - find the QP's entry in the P_Key table after its index or port has changed */
void eng_find_pkey(struct eng_qp *qp);
/** eng_refresh_pkey() - read the QP's P_Key from the port's table, which softibd may change at
 *  any time */
void eng_refresh_pkey(struct eng_qp *qp);

/* window_slots.c */
/** eng_no_slot - the slot of a QP that never looked for a window; it allows nothing */
extern const struct slot eng_no_slot;
void eng_windows_free(struct engine *e);
/** eng_window_leave() - @qp is disconnected from its peer: drop what the peer has granted, or
 *  will still grant in answer to an earlier request */
void eng_window_leave(struct eng_qp *qp);

/* window.c */
/** eng_window_turn() - perform requests of held queues through windows; bounded work. Return:
 *  true when something was done */
bool eng_window_turn(struct engine *e);
/** eng_window_waits() - would eng_window_turn() find something to do? */
bool eng_window_waits(const struct engine *e);
/** eng_window_takes() - perform @wr in the peer's memory, if a window allows it. Return: true: it
 *  was performed and completed; false: it has to be queued */
bool eng_window_takes(struct eng_qp *qp, const struct tp_send_wr *wr);

/* window_target.c */
/** eng_window_revoke() - revoke all that was granted to the peer of @qp, so that it begins no
 *  further section */
void eng_window_revoke(struct eng_qp *qp);
/** eng_window_end() - eng_window_revoke() before a wait. Return: true: something had been granted
 *  since the last call, so eng_window_quiesce() has to wait for sections that have begun */
bool eng_window_end(struct eng_qp *qp);
/** eng_window_quiesce() - wait for the sections that began before a revocation. Context: without
 *  the engine's lock */
void eng_window_quiesce(struct engine *e);
/** eng_window_give_token() - eng_token_give() under the engine's lock */
void eng_window_give_token(struct engine *e, uint32_t token);
/** eng_window_unbound() - the memory window that has @token is bound to nothing any more: returns
 *  when no peer that saw the token is at work. Context: under the engine's lock */
void eng_window_unbound(struct engine *e, uint32_t token);
/** eng_window_settle() - no peer has a mapping, after return, of what was unbound before. Context:
 *  without the engine's lock; before the program learns that it was unbound */
void eng_window_settle(struct engine *e);
static inline bool eng_window_unsettled(const struct engine *e)
{
	return unlikely(e->unbound != e->settled);
}

/* spoil.c: QPs that fail because of a completion */
/** eng_spoil() - apply the fault rules to a completion, while devpage->completion_faults is set.
 *  Return: false: no completion, because a rule lets the CQ overrun */
bool eng_spoil(struct eng_qp *qp, struct eng_cq *cq, struct ibv_wc *wc);
/** eng_fail_users() - mark the QPs of @cq, which is in error, to be failed, and tell of them and of
 *  its SRQs */
void eng_fail_users(struct eng_cq *cq);
/** eng_fail_spoilt() - move the QPs that are marked to ERR */
void eng_fail_spoilt(struct engine *e);
static inline bool eng_spoils(const struct engine *e)
{
	return unlikely(atomic_load_explicit(&e->cfg.devpage->completion_faults,
					     memory_order_relaxed));
}
/** eng_needs_care() - may a fault rule change a completion of @qp in @cq, or is the CQ full? */
static inline bool eng_needs_care(const struct eng_qp *qp, const struct eng_cq *cq)
{
	return unlikely(eng_spoils(qp->engine) || eng_cq_is_full(cq));
}

/* qp.c */
extern const struct tp_ops eng_tp_ops;
/** eng_qp_count() - tp_ops.count() of all QPs and EE contexts */
void eng_qp_count(void *qp, enum tp_counter counter);
struct eng_qp *eng_qp_find(struct engine *e, uint32_t qpn, unsigned port_num);
/* The parts of eng_qp_create(), eng_qp_destroy() and eng_qp_modify(). Context: enter, leave and
 * set are called with the engine's lock held; prepare and free without. If leave or set report
 * that the access of a peer was @revoked, eng_window_quiesce() has to be called when the lock
 * has been released */
int eng_qp_prepare(struct engine *e, const struct eng_qp_init *init, struct eng_qp **qp);
int eng_qp_enter(struct eng_qp *qp);
bool eng_qp_leave(struct eng_qp *qp);
void eng_qp_free(struct eng_qp *qp);
int eng_qp_set(struct eng_qp *qp, const struct ibv_qp_attr *attr, int mask, bool *revoked);

/* lane_copy.c */
/** eng_copy() - memcpy() of a payload by the copy kernel that is in use */
void eng_copy(const struct eng_copy *copy, uint8_t *to, const uint8_t *from, uint32_t len);
/** eng_copy_begin() - initialise the copies of a new lane */
void eng_copy_begin(struct eng_copy *copy);
/** eng_copy_init() - begin to compare the first @num_methods copy methods
 *  @margin: another method is better if it saves 1/@margin of the cost */
void eng_copy_init(struct eng_copy *copy, unsigned num_methods, unsigned margin);
/** eng_copy_note() - a span, all of which was copied by the current method, took @ns: choose the
 *  method of the next span */
void eng_copy_note(struct eng_copy *copy, uint64_t ns);
/** eng_copy_span() - end the current span of @lane: time it and begin the next one */
void eng_copy_span(struct engine *e, struct eng_lane_out *lane);
/** eng_copy_span_ended() - is eng_copy_span() due? */
static inline bool eng_copy_span_ended(const struct eng_lane_out *lane)
{
	return unlikely((int32_t)(lane->tx.bulk_tail - lane->copy.ends_at) >= 0);
}

#include "engine/pace.h"
#include "engine/put.h"

#endif
