/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Plain libibverbs programs that measure: what perftest measures without
 * perftest's own loop and clock reads, and what perftest has no test for.
 * A client and a server run the same list of tests, with a socket between them.
 */
#ifndef SOFTIB_BENCH_VERBS_H
#define SOFTIB_BENCH_VERBS_H

#include <infiniband/verbs.h>
#include <stdalign.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/types.h"
#include "../measure.h"

#define PORT	  1
#define QKEY	  0x11111111u
#define GRH_BYTES 40u

/** struct shape - the objects that a test wants of each side */
struct shape {
	enum ibv_qp_type type; /* 0 is RC */
	unsigned depth;	       /* of each queue; 0 is 128 */
	size_t bytes;	       /* of registered memory; 0 is the test's size */
	bool events;	       /* a completion channel */
	bool on_stack;	       /* memory that no window can cover */
	bool cq_each;	       /* a completion queue for each queue pair */
	bool by_mw;	       /* peers use the key of a memory window, of type 1 */
	bool tagged;	       /* an SRQ that matches tags */
};

/** struct address - where a side's queue pairs and memory are */
struct address {
	uint64_t memory;
	uint32_t rkey, lid, qp_count;
	uint32_t srqn, initiator_qpn; /* XRC */
};

/** struct end - one side of a connection */
struct end {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq; /* of every queue, or of the last one with cq_of */
	struct ibv_cq **cq_of; /* each queue pair's, or NULL */
	struct ibv_qp **qp;
	struct ibv_mr *mr;
	struct ibv_mw *mw; /* or NULL */
	struct ibv_srq *srq;   /* or NULL */
	struct ibv_xrcd *xrcd; /* XRC: its domain, and the QP that receives; or NULL */
	struct ibv_qp *target;
	struct ibv_ah *ah; /* UD */
	char *memory;
	size_t bytes;
	size_t header_bytes; /* of each message, before its payload: 0 without tags */
	unsigned depth;
	struct address peer;
	uint32_t *peer_qpn;
};

/** struct bench - one test as the command line has it: KIND:SIZE:COUNT */
struct bench {
	const char *text; /* names its figures */
	const struct kind *kind;
	size_t size;
	unsigned count; /* of queue pairs, 1 when not given */
	int sock;	/* to the other side; -1 when this process is both */
	bool client;
	struct end end;
};

/** struct kind - a table row: what the two sides do; the client has the clock */
struct kind {
	const char *name;
	void (*client)(struct bench *b);
	void (*server)(struct bench *b);
	struct shape shape;
};

/* One table per file, each ended by a row without a name. */
extern const struct kind latency_kinds[], one_sided_kinds[], stream_kinds[], many_kinds[],
	registration_kinds[], count_kinds[];

/* --- end.c --- */
void end_open(struct end *e, const struct shape *shape, size_t size, unsigned count,
	      char *memory);
void end_connect(struct end *e);
void end_close(struct end *e);
uint32_t end_lid(struct end *e);
struct ibv_qp *end_create_qp(struct end *e, enum ibv_qp_type type);

/* --- srq.c --- */
void srq_open(struct end *e, const struct shape *shape);
uint32_t srq_number(struct end *e);
void srq_post(struct end *e, struct ibv_recv_wr *wr);
void srq_close(struct end *e);

/** struct request - one that is posted again and again, as programs do that care */
struct request {
	struct ibv_send_wr wr;
	struct ibv_sge sge;
};

/* --- work.c: requests and completions; a failure ends the program --- */
void prepare(struct end *e, struct request *r, unsigned qp, enum ibv_wr_opcode opcode,
	     size_t size);
void post_requests(struct end *e, struct request *r, size_t n, bool each);
void post(struct end *e, unsigned qp, struct ibv_send_wr *wr);
void post_send(struct end *e, unsigned qp, enum ibv_wr_opcode opcode, size_t size,
	       bool signaled);
void post_at(struct end *e, enum ibv_wr_opcode opcode, size_t at, size_t size);
void post_receives(struct end *e, unsigned qp, size_t size, unsigned n);
unsigned poll(struct end *e, struct ibv_wc *wc, int max);
void await(struct end *e, unsigned n);
bool done_at_once(struct end *e, enum ibv_wr_opcode opcode);
#define ALONE 16 /* requests running that are done at once: without the peer */

/* --- meet.c: the socket between the sides --- */
void tell(struct bench *b, const void *data, size_t size);
void hear(struct bench *b, void *data, size_t size);
void sync_sides(struct bench *b);
void exchange(struct bench *b);

/** figure() - print one; @part names it when a test has several, or is NULL */
void figure(struct bench *b, const char *part, double value, const char *unit);

/** memory_of() - bytes of a process, shared pages by their share; 0: nothing known */
size_t memory_of(pid_t pid);

/** The daemon's process, 0 when not given */
extern pid_t daemon_pid;

/** How many times fewer messages than usual: for ways that are slow */
extern unsigned fewer;

#endif
