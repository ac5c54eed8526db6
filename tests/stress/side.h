/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the stress programs share: one side of a pair is a process (or a
 * thread) with a device of its own node, a PD, a buffer and QPs to its peer.
 * Everything here is plain libibverbs, so it runs on any adapter too. What
 * fails ends the program: fail() says where.
 */
#ifndef SOFTIB_TESTS_STRESS_SIDE_H
#define SOFTIB_TESTS_STRESS_SIDE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIDE_ACCESS                                                                           \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |           \
	 IBV_ACCESS_REMOTE_ATOMIC)

/** struct side_options - how a QP is made; zeros are sound */
struct side_options {
	enum ibv_qp_type type;	 /* 0: RC (which is 2: see side_qp_create()) */
	uint32_t depth;		 /* of both queues; 0: 128 */
	uint32_t inline_bytes;
	uint8_t timeout_enc;	 /* 0: 16, 0.27 s */
	uint8_t retries;	 /* 0: 7 */
	bool events;		 /* one completion channel for its CQ */
	bool unsignaled;	 /* only requests that say so complete */
};

/** struct side_address - what a peer must know, exchanged byte for byte */
struct side_address {
	uint64_t addr;
	uint32_t qpn, rkey;
	uint16_t lid;
};

struct side {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	uint8_t *buffer; /* page aligned */
	size_t bytes;
	uint16_t lid;
};

struct side_qp {
	struct side *side;
	struct side_options options;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq; /* of both queues */
	struct ibv_qp *qp;
	struct side_address peer;
	struct ibv_ah *ah; /* UD */
};

/** fail() - print and exit with status 1, whole process group of threads */
void fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

/** now_ns() - CLOCK_MONOTONIC */
uint64_t now_ns(void);

/** pin() - the calling thread, and those it will make, run on @cpu only */
void pin(int cpu);

/** struct rng - a small generator: the same seed, the same numbers */
struct rng {
	uint64_t state;
};
uint32_t rng_next(struct rng *rng);
/** rng_below() - 0 .. @limit - 1 */
uint32_t rng_below(struct rng *rng, uint32_t limit);

/** side_open() - the first device of @node, and a buffer registered for all */
void side_open(struct side *side, const char *node, size_t bytes);
/** side_open_at() - the same, with memory that is the caller's */
void side_open_at(struct side *side, const char *node, void *buffer, size_t bytes);
void side_close(struct side *side);

/** side_qp_create() - in the state INIT */
void side_qp_create(struct side_qp *q, struct side *side, const struct side_options *options);
/** side_qp_address() - what the peer's side_qp_connect() wants */
struct side_address side_qp_address(const struct side_qp *q);
/** side_qp_try_connect() - to the state RTS. Return: 0; errno */
int side_qp_try_connect(struct side_qp *q, const struct side_address *peer);
void side_qp_connect(struct side_qp *q, const struct side_address *peer);
void side_qp_destroy(struct side_qp *q);

/** meet() - give @mine to the peer at the other end of @fd, take @theirs.
 *  Return: false when the peer is gone */
bool meet(int fd, const void *mine, void *theirs, size_t bytes);
/** join() - meet() with the addresses of a QP, and connect it */
void join(struct side_qp *q, int fd);

/** post_recv() - a receive into @bytes at @offset of the buffer */
void post_recv(struct side_qp *q, uint64_t wr_id, size_t offset, uint32_t bytes);
/** send_wr() - a request of @opcode with one local segment; RDMA: to the same
 *  offset of the peer's buffer. @sge: room for the segment */
struct ibv_send_wr send_wr(struct side_qp *q, struct ibv_sge *sge, enum ibv_wr_opcode opcode,
			   uint64_t wr_id, size_t offset, uint32_t bytes);
/** post() - fails the program when the request is refused */
void post(struct side_qp *q, struct ibv_send_wr *wr);
/** poll_one() - Return: true and *@wc when there was a completion */
bool poll_one(struct side_qp *q, struct ibv_wc *wc);
/** await() - the next completion, which must be good; polls, @limit_s long */
struct ibv_wc await(struct side_qp *q, unsigned limit_s);

#endif
