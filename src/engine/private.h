/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The engine's own view of itself. Everything here is under engine.lock. */
#ifndef SOFTIB_ENGINE_PRIVATE_H
#define SOFTIB_ENGINE_PRIVATE_H

#include <pthread.h>

#include "engine/engine.h"
#include "engine/table.h"

#define ENG_RX_BUDGET 64  /* packets taken from the link per progress */
#define ENG_TX_BUDGET 32  /* packets a QP may send before the next QP's turn */
#define ENG_PORTS_MAX 255

struct eng_mr {
	struct eng_mr_attr attr;
};

struct eng_cq {
	struct engine *engine;
	struct list_head node; /* engine.cqs */
	void *ctx;
	struct ibv_wc *ring;
	uint32_t mask;	/* ring size - 1 */
	uint32_t cqe;	/* entries promised */
	uint32_t head, tail; /* free running: tail - head entries wait */
	unsigned users; /* QPs */
	enum { ENG_DISARMED, ENG_ARMED_SOLICITED, ENG_ARMED } armed;
	bool overrun;
};

/** struct eng_rq - receive requests in the order of posting */
struct eng_rq {
	struct eng_rq_wr {
		uint64_t wr_id;
		uint32_t num_sge;
	} *wr;
	struct tp_sge *sge; /* max_sge per request */
	uint32_t mask, depth, max_sge;
	uint32_t head, tail;
};

struct eng_srq {
	struct engine *engine;
	struct list_head node; /* engine.srqs */
	void *ctx;
	struct eng_rq rq;
	uint32_t pd;
	uint32_t limit; /* 0: no event wanted */
	unsigned users;
};

struct eng_mcast {
	struct list_head in_engine;
	struct list_head in_qp;
	struct eng_qp *qp;
	union wire_gid gid;
	uint16_t lid;
};

struct eng_qp {
	struct tp_qp *tp;
	struct engine *engine;
	struct eng_cq *send_cq, *recv_cq;
	struct list_head tx_node; /* in engine.tx while it may have packets */
	struct eng_qp_init init;
	struct eng_rq rq; /* unused with an SRQ */
	struct list_head all_node;
	struct list_head mcast;
	struct ibv_qp_attr attr; /* as modify set it, for query */
	/* --- a packet that left the transport and found its way full --- */
	struct wire_packet held;
	unsigned held_port;
	size_t held_bytes; /* 0: none */
	uint8_t *held_packet; /* WIRE_PACKET_MAX; made when first needed */
	void *tp_memory;
};

struct engine {
	pthread_mutex_t lock;
	struct eng_config cfg;
	struct list_head tx; /* QPs that may have something to send */
	mono_t next_expiry;  /* no QP's timer is earlier */
	mono_t now;	     /* of the current progress */
	uint32_t polls;	     /* since the clock was looked at */
	bool unflushed; /* packets committed since the last flush */
	struct eng_table qps, mrs;
	struct eng_qp **special; /* [port * 2 + qpn]: QP0 and QP1 */
	struct list_head all_qps, cqs, srqs, mcast;
	struct eng_stats stats;
};

static inline void eng_lock(struct engine *e)
{
	pthread_mutex_lock(&e->lock);
}

static inline bool eng_trylock(struct engine *e)
{
	return pthread_mutex_trylock(&e->lock) == 0;
}

static inline void eng_unlock(struct engine *e)
{
	pthread_mutex_unlock(&e->lock);
}

static inline const struct abi_devport *eng_port(const struct engine *e, unsigned port_num)
{
	unsigned i = port_num ? port_num - 1 : 0;
	return &e->cfg.devpage->port[i < e->cfg.devpage->num_ports ? i : 0];
}

/* mr.c */
void *eng_mem(struct engine *e, uint32_t pd, uint32_t key, uint64_t va, uint64_t len, int access,
	      bool remote);
void eng_mr_free_all(struct engine *e);

/* cq.c */
void eng_cq_push(struct eng_cq *cq, const struct ibv_wc *wc, bool solicited);
/** eng_cq_clean() - forget the completions of a QP that goes away */
void eng_cq_clean(struct eng_cq *cq, uint32_t qpn);

/* rq.c */
int eng_rq_init(struct eng_rq *rq, uint32_t depth, uint32_t max_sge);
void eng_rq_free(struct eng_rq *rq);
bool eng_rq_push(struct eng_rq *rq, const struct ibv_recv_wr *wr);
bool eng_rq_pop(struct eng_rq *rq, struct tp_recv_wr *wr);
static inline uint32_t eng_rq_count(const struct eng_rq *rq)
{
	return rq->tail - rq->head;
}

/* engine.c */
/** eng_turn() - eng_progress() under the lock; @clock: as eng_tick() */
bool eng_turn(struct engine *e, bool clock);

/* rx.c, tx.c */
bool eng_rx(struct engine *e);
bool eng_tx(struct engine *e);
/** eng_qp_touch() - after anything that can make @qp send or set its timer */
void eng_qp_touch(struct eng_qp *qp);
/** eng_refresh_pkey() - the QP's P_Key from the live table */
void eng_refresh_pkey(struct eng_qp *qp);

/* qp.c */
extern const struct tp_ops eng_tp_ops;
struct eng_qp *eng_qp_find(struct engine *e, uint32_t qpn, unsigned port_num);

#endif
