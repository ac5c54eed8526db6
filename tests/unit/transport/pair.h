/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Two QPs, a link between them that misbehaves on command, and virtual time.
 *
 * Packets cross the link as wire bytes, one after the other: each has a
 * time of arrival, ties are broken by the order of sending. pair_run() hands
 * over all that arrives at one time, then lets both sides transmit (so that
 * ACKs coalesce as they do in an engine), then goes on to the next arrival or
 * timer, until nothing is left to happen.
 *
 * Each side has one memory region of its own and its completions and events
 * in arrays, in order.
 */
#ifndef SOFTIB_TEST_PAIR_H
#define SOFTIB_TEST_PAIR_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "transport/fast.h"

#define PAIR_MEMORY (1u << 20)
#define PAIR_KEY_A 0x1000u
#define PAIR_KEY_B 0x2000u
#define PAIR_KEY_RO 0x0100u	    /* added to a side's key: remote read only */
#define PAIR_KEY_LOCAL 0x0200u	    /* no remote rights */
#define PAIR_KEY_CONST 0x0300u	    /* not even local write */
#define PAIR_IOVA 0x7f0000000000ull /* address of a region's first byte */
#define PAIR_LINK_NS 1000
#define PAIR_QP0 0xff000000u
#define PAIR_MAX 8192

enum pair_side_id { A, B };

/** struct pair_packet - what the log keeps of each packet put on the link */
struct pair_packet {
	enum pair_side_id from;
	uint8_t opcode, syndrome;
	psn_t psn;
	bool ack_req, solicited, lost;
	uint32_t msn, payload_bytes;
	uint16_t packets; /* that it stands for */
	bool has_ack;	  /* an acknowledgement travels along */
	struct wire_reth reth;
	mono_t sent;
};

enum pair_fate { PASS, DROP, TWICE, LATE, REFUSE /* marked for RNR */ };

/** struct pair_bind - a bind that was executed */
struct pair_bind {
	uint32_t key;
	uint32_t logged; /* pair.logged at that time */
};

struct pair_side {
	struct tp_qp *qp;
	void *qp_memory, *header_memory;
	uint8_t *memory; /* PAIR_MEMORY bytes at PAIR_IOVA */
	uint32_t key;
	bool key_revoked;
	bool endless;	      /* any address is good and is its first page */
	uint32_t invalidated; /* by SEND with Invalidate, or locally */
	struct pair_bind bind[256];
	uint32_t binds;
	struct pair *pair;
	struct tp_recv_wr recv[PAIR_MAX];
	struct tp_sge recv_sge[PAIR_MAX];
	uint32_t recv_head, recv_tail;
	/** choose() - the receive for the message of @pkt; NULL: the oldest */
	bool (*choose)(struct pair_side *side, const struct wire_packet *pkt,
		       struct tp_recv_wr *wr);
	bool srq; /* receives are not flushed with the QP */
	struct tp_wc send_wc[PAIR_MAX], recv_wc[PAIR_MAX];
	uint32_t sends, recvs, send_seen, recv_seen;
	enum tp_event event[16];
	uint32_t events;
};

struct pair {
	struct pair_side side[2];
	mono_t now;
	/** fate() - what happens to a packet; NULL: all pass */
	enum pair_fate (*fate)(struct pair *pair, const struct pair_packet *pkt);
	void *fate_ctx;
	/** done() - called at each completion of @side, received or sent */
	void (*done)(struct pair *pair, enum pair_side_id side, const struct tp_wc *wc,
		     bool recv);
	void *done_ctx;
	uint32_t fate_count;
	uint64_t seed; /* of pair_random() */
	struct pair_packet log[65536];
	uint32_t logged;
	struct pair_flight *flight; /* sorted by arrival */
	bool corked;		    /* transmit nothing: the link is full */
	/** 0: the link is a wire of packets; else it carries segments of so much
	 *  payload, as they are, and acknowledgements along with them */
	uint32_t segment_bytes;
};

struct pair_options {
	enum tp_type type;
	uint32_t sq_psn[2]; /* 0: 0x100 and 0x200 */
	uint16_t mtu_bytes; /* 0: 1024 */
	uint8_t timeout_enc, retry_cnt, rnr_retry;
	uint64_t min_ack_ns;
	uint8_t max_rd_atomic;
	uint32_t sq_depth, max_sge, max_inline, max_header;
	bool sq_sig_all, srq, no_remote_access;
	uint32_t qpn[2]; /* 0: 0xa and 0xb; PAIR_QP0 for the QP number 0 */
};

/** pair_new() - both in RTS, connected; fails the test when it cannot */
struct pair *pair_new(const struct pair_options *options);
void pair_free(struct pair *pair);
/** pair_run() - until nothing can happen any more, or @until */
void pair_run(struct pair *pair);
void pair_run_until(struct pair *pair, mono_t until);
uint32_t pair_random(struct pair *pair, uint32_t below);

/** pair_recv() - post a receive of @len bytes at @offset */
void pair_recv(struct pair *pair, enum pair_side_id side, uint64_t wr_id, uint32_t offset,
	       uint32_t len);
/** pair_wr() - a signalled request of @len local bytes at @offset, remote
 *  address @remote in the other side's region */
struct tp_send_wr pair_wr(struct pair *pair, enum pair_side_id side,
			  enum ibv_wr_opcode opcode, uint64_t wr_id, uint32_t offset,
			  uint32_t len, uint32_t remote);
/** pair_send() - post pair_wr() */
void pair_send(struct pair *pair, enum pair_side_id side, enum ibv_wr_opcode opcode,
	       uint64_t wr_id, uint32_t offset, uint32_t len, uint32_t remote);
/** pair_fill() - pseudo random bytes, different for each @salt */
void pair_fill(uint8_t *at, uint32_t len, uint32_t salt);

/** pair_sent(), pair_received() - the next completion; fails when none */
const struct tp_wc *pair_sent(struct pair *pair, enum pair_side_id side);
const struct tp_wc *pair_received(struct pair *pair, enum pair_side_id side);
void pair_expect_sent(struct pair *pair, enum pair_side_id side, uint64_t wr_id,
		      enum ibv_wc_status status);
void pair_expect_received(struct pair *pair, enum pair_side_id side, uint64_t wr_id,
			  enum ibv_wc_status status);
/** pair_expect_quiet() - no completion is left unseen, nothing is in flight */
void pair_expect_quiet(struct pair *pair);
bool pair_had_event(const struct pair *pair, enum pair_side_id side, enum tp_event event);

/** pair_count() - logged packets of @side with @opcode, lost ones included */
uint32_t pair_count(const struct pair *pair, enum pair_side_id side, uint8_t opcode);
/** pair_find() - the @nth (from 0) of them; fails when there is none */
const struct pair_packet *pair_find(const struct pair *pair, enum pair_side_id side,
				    uint8_t opcode, uint32_t nth);
/** pair_deliver() - hand a packet made by the test to @to, now */
void pair_deliver(struct pair *pair, enum pair_side_id to, struct wire_packet *pkt);

#endif
