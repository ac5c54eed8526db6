/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Windows: the initiator performs an RDMA WRITE, READ or atomic by itself, in
 * memory that both programs map. docs/WINDOWS.md describes the protocol.
 *
 * Each opened device has a window page. Only its program writes the page. Its peers
 * map it read-only, and so does softibd, which reads the counts. It has three parts:
 *
 *   section   as an initiator: the number of the target whose memory the program
 *             accesses at this moment, or 0
 *   token     as a target: what the program grants. A token stands for one QP (its
 *             state, peer and rights) or for one region (its keys, bounds and
 *             rights). A grant has the values of one token of each kind, and is
 *             valid while both are unchanged
 *   flow      counts of the packets, in both directions, that the requests through
 *             windows replaced
 *
 * An initiator writes its section and then reads the two tokens. A target changes a
 * token and then reads the sections of its peers. Thus either the initiator sees the
 * change, or the target sees the initiator and waits for it. The fence between the
 * initiator's two steps is executed by the target with membarrier(2). `section` becomes 0
 * with release after the initiator's accesses, and the target reads it with acquire, so that
 * the target finds in its memory whatever was written in the section
 * (tests/unit/engine/test_litmus.c).
 *
 * An initiator I requests memory of a target T as follows:
 *
 *   I -> softibd  ASK    an R_Key, an address and the QP that uses them
 *   softibd -> T  WANT   only if the QP is connected to T and has the right; with
 *                        I's window page
 *   T -> softibd  GIVE   with the memory, or DENY
 *   softibd -> I  GRANT  with the memory and T's window page, or DENY
 *
 * Nobody waits for these messages. Requests are sent as packets meanwhile.
 */
#ifndef SOFTIB_ABI_WINDOW_H
#define SOFTIB_ABI_WINDOW_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define ABI_WINDOW_FLOWS     4096  /* QPs that use windows, of one device */
#define ABI_WINDOW_TOKENS    65536 /* token 0 is nobody's */
#define ABI_WINDOW_MAX_BYTES (1ull << 34)
#define ABI_WINDOW_ASKS	     64 /* unanswered questions of one program */

/** struct abi_window_count - counts of requests, and of what differs between them.
 *  abi_window_add_up() derives the packets that they would have been */
struct abi_window_count {
	alignas(64) _Atomic uint64_t writes;
	_Atomic uint64_t write_dwords; /* payload */
	_Atomic uint64_t reads, read_dwords;
	_Atomic uint64_t atomics;
	_Atomic uint64_t write_more; /* packets beyond each WRITE's first */
	_Atomic uint64_t read_more;  /* responses beyond each READ's first */
	_Atomic uint64_t long_reads; /* that have more than one */
};

/** struct abi_window_flow - the counts of one QP, with and without a GRH */
struct abi_window_flow {
	struct abi_window_count of[2]; /* [1]: with a GRH */
};

struct abi_window_page {
	/* --- as an initiator --- */
	alignas(64) _Atomic uint64_t section; /* a target's number; 0: outside */
	alignas(64) struct abi_window_flow flow[ABI_WINDOW_FLOWS];
	/* --- as a target --- */
	alignas(64) _Atomic uint64_t token[ABI_WINDOW_TOKENS];
};

/** struct abi_window_total - packets of requests and of their responses; dwords as
 *  in the LRH's length */
struct abi_window_total {
	uint64_t requests;
	uint64_t packets, dwords;
	uint64_t answer_packets, answer_dwords;
};

/** abi_window_add_up() - add the present counts of @flow to @t. Each packet has LRH, BTH and
 *  ICRC (9.2), and perhaps a GRH; RETH 4 dwords, AETH 1, AtomicETH 7,
 *  AtomicAckETH 2 (9.3); one acknowledgement for a WRITE */
static inline void abi_window_add_up(const struct abi_window_flow *flow,
				     struct abi_window_total *t)
{
	static const unsigned headers[] = {6, 16};

	for (unsigned i = 0; i < 2; i++) {
		const struct abi_window_count *c = &flow->of[i];
		uint64_t writes = c->writes, reads = c->reads, atomics = c->atomics;
		uint64_t requests = writes + reads + atomics;
		uint64_t packets = requests + c->write_more, answers = requests + c->read_more;

		t->requests += requests;
		t->packets += packets;
		t->dwords += packets * headers[i] + 4 * (writes + reads) + 7 * atomics +
			     c->write_dwords;
		t->answer_packets += answers;
		t->answer_dwords += answers * headers[i] + requests + c->long_reads +
				    2 * atomics + c->read_dwords;
	}
}

enum abi_window_kind {
	ABI_WINDOW_ASK = 1,
	ABI_WINDOW_WANT,
	ABI_WINDOW_GIVE,
	ABI_WINDOW_GRANT,
	ABI_WINDOW_DENY,
	ABI_WINDOW_CLOSE,     /* T -> softibd: no peer may keep this memory */
	ABI_WINDOW_GONE,      /* softibd -> I: unmap this memory */
	ABI_WINDOW_PEER_GONE, /* softibd -> both: forget that program */
};

/** struct abi_window_msg - on ABI_FD_WINDOWS, each way */
struct abi_window_msg {
	uint32_t kind; /* enum abi_window_kind */
	uint32_t id;   /* of the question: WANT, GIVE, DENY by T */
	uint32_t qpn;  /* the receiver's own; ASK: the sender's */
	uint32_t rkey;
	uint32_t peer;	 /* number of the other program: WANT, GRANT, GONE */
	uint32_t window; /* the target's name for the memory; WANT: its number */
	uint64_t va;	 /* ASK, WANT: one that is wanted; else of the first byte */
	uint64_t length_bytes;
	uint64_t offset;		 /* of the first byte in the memfd */
	uint32_t access;		 /* ibv_access_flags: remote rights */
	uint32_t qp_token, window_token; /* indices */
	uint32_t flow;			 /* GRANT: index, in I's page */
	uint64_t qp_value, window_value;
	uint32_t epoch; /* GRANT: holds while this is the route epoch */
	uint32_t connection; /* ASK: I's own number of the QP's connection; GRANT: the same */
};

#endif
