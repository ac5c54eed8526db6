/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The lanes of a context: those that it sends on, with the flows that use them, and
 * those that it receives from (src/abi/lane.h has the rules). The engine's lock
 * protects everything except the requests to softibd, which lanes.ask_lock
 * serialises.
 */
#ifndef SOFTIB_LIBIBVERBS_LANES_H
#define SOFTIB_LIBIBVERBS_LANES_H

#include <pthread.h>

#include "abi/devpage.h"
#include "abi/lane.h"
#include "base/list.h"
#include "base/types.h"
#include "engine/engine.h"
#include "progress/limits.h"

#define LANES_FLOWS 65536 /* remembered; a power of two */
#define LANES_WAYS 4	  /* slots that a flow may have; LANES_FLOWS / 4 apart */
#define LANES_QUESTIONS 32
#define LANES_EXPECTED 64
#define LANES_HOQ_NS (1 * NSEC_PER_SEC) /* head-of-queue lifetime, as softibd's */

struct lane_out {
	struct eng_lane_out eng;
	struct list_head node;
	struct list_head flows; /* flows that use the lane */
	uint32_t id;
	int doorbell_fd;
	/* --- lanes_ring_overdue() --- */
	/* position up to which the receiver has read, or for which its doorbell was rung */
	uint32_t rung_for;
	uint32_t head_then; /* the receiver's position, unchanged since unread_since */
	mono_t unread_since;
};

struct lane_in {
	struct eng_lane_in eng;
	struct list_head node;
	uint32_t id;
	bool gone; /* the sender is gone */
	/* --- datagrams with wrong Q_Keys --- */
	struct abi_lane_event bad; /* the report that is sent to softibd next */
	bool told;		   /* a report was sent and is not confirmed yet */
};

/**
 * struct flow - states
 *   FLOW_SOFTIBD   packets take the packet path; a lane may have been requested
 *   FLOW_ENTERING  a lane is known. Packets take the packet path until the ring to
 *                  softibd is found empty. If it stays busy, the flow stops after
 *                  ENTER_PACKETS and waits until softibd has read its packets
 *   FLOW_LANE      packets take the lane. QPs keep this answer until eng.serial or
 *                  the route epoch changes
 *   FLOW_LEAVING   the route epoch has changed; the flow waits until the receiver has
 *                  read everything that it put into the lane
 * A packet waits for room or for such a transition at most LANES_HOQ_NS.
 */
enum flow_state { FLOW_SOFTIBD, FLOW_ENTERING, FLOW_LANE, FLOW_LEAVING };

struct flow {
	struct eng_flow eng; /* lane, count, epoch: of ENTERING and later */
	struct eng_path path;
	struct list_head on_lane; /* among the flows of eng.lane */
	bool used;
	uint8_t state; /* enum flow_state */
	uint32_t misses; /* packets by softibd since the request, or since a lane is known */
	uint64_t until;	 /* ENTERING, LEAVING: the position that the old ring must reach */
	mono_t since;	 /* when its packet began to wait; MONO_NEVER: none waits */
	uint32_t stuck_at; /* the lane's tail when it found no room */
};

struct lanes {
	bool off; /* SOFTIB_LANES=0: everything by softibd */
	bool has_membarrier;
	/* senders must fence, although membarrier(2) is available, because this program sleeps
	 * often */
	bool senders_fence;
	unsigned sleeps;    /* consecutive sleeps, each after few records */
	uint64_t slept_at;  /* lanes_position() */
	const struct abi_devpage *devpage;
	struct abi_ring_tx *by_softibd; /* the ring of the packet path */
	struct list_head out, in;
	unsigned num_gone;	 /* of in: their senders left */
	/* array of LANES_FLOWS entries, whose pages are allocated as they are used */
	struct flow *flow;
	unsigned next_victim; /* the slot to be reused next if none is free */
	struct abi_resolve question[LANES_QUESTIONS];
	unsigned num_questions;
	bool caller_asks; /* lanes_choose() leaves questions to its caller, and wakes nobody */
	void (*wake)(void *ctx); /* a thread must call lanes_answer() */
	void *ctx;
	mono_t (*now)(void *ctx);
	pthread_mutex_t ask_lock;
	/* what softibd has answered ahead, by the number of the destination QP; @owner is 0: nothing.
	 * --- protected by ask_lock --- */
	struct abi_flow_answer expected[LANES_EXPECTED];
};

struct soft_context;

/** lanes_init() - Return: 0 or -ENOMEM; either way lanes_exit() is due */
int lanes_init(struct lanes *lanes, const struct abi_devpage *page, struct abi_ring_tx *by_softibd,
	       mono_t (*now)(void *ctx), void (*wake)(void *ctx), void *ctx);
void lanes_exit(struct lanes *lanes);

/* --- the engine's side: under its lock --- */

/** lanes_choose(), lanes_stuck(), lanes_ring() - as struct eng_link_ops */
enum eng_medium lanes_choose(struct lanes *lanes, const struct eng_path *path, uint32_t bytes,
			  struct eng_flow **flow);
enum eng_medium lanes_stuck(struct lanes *lanes, struct eng_flow *flow);
void lanes_ring(struct lanes *lanes, struct eng_lane_out *lane);
/** lanes_ring_overdue() - ring the doorbells of receivers that seem to be awake and have
 *  read nothing for PROG_OVERDUE_NS. Return: true: some receiver has unread records */
bool lanes_ring_overdue(struct lanes *lanes, mono_t now);
/** lanes_known() - softibd has answered: the flow @key may use @lane */
void lanes_known(struct lanes *lanes, const struct abi_resolve *key,
		 const struct abi_resolve_resp *resp, struct lane_out *lane);
/** lanes_forget() - no flow uses @lane any more */
void lanes_forget(struct lane_out *lane);

/* --- the thread's side --- */

/** lanes_arm_sleep() - let senders ring for each record. Return: false: there are unread
 *  records, and nothing was armed.
 *  Context: under the engine's lock, as what changes the list of lanes */
bool lanes_arm_sleep(struct lanes *lanes);
void lanes_disarm_sleep(struct lanes *lanes);
/** lanes_announce_fence() - tell the lane's sender whether it must fence */
void lanes_announce_fence(const struct lanes *lanes, struct lane_in *lane);
/** lanes_position() - Return: the number of cells read of all lanes; sets *@waiting if any
 *  lane has unread records */
uint64_t lanes_position(struct lanes *lanes, bool *waiting);
/** lanes_events() - handle softibd's messages on @fd. Return: false: it is closed */
bool lanes_events(struct soft_context *ctx, int fd);
/** lanes_bad_qkey() - as struct eng_link_ops. Context: under the engine's lock */
void lanes_bad_qkey(struct soft_context *ctx, struct eng_lane_in *lane,
		    const struct wire_packet *pkt);
/** lanes_reap() - unmap lanes whose sender is gone and that are read to the end */
void lanes_reap(struct soft_context *ctx);
/** lanes_answer() - send the engine's questions to softibd and handle the answers */
void lanes_answer(struct soft_context *ctx);
/** lanes_prepare() - resolve the flow of a connected QP before its first packet. Context:
 *  may wait for softibd. Return: the program that owns its peer; 0: unknown */
uint32_t lanes_prepare(struct soft_context *ctx, const struct abi_resolve *key);
/** lanes_connect() - lanes_prepare() in one exchange with @modify, which takes the QP to RTR, and
 *  the owner in *@owner. Return: 0; -errno: what softibd says to @modify */
int lanes_connect(struct soft_context *ctx, const struct ib_uverbs_modify_qp *modify,
		  const struct abi_resolve *key, uint32_t *owner);
/** lanes_expect() - softibd has answered ahead about a flow (expect.h) */
void lanes_expect(struct soft_context *ctx, const struct abi_flow_answer *answer);
/** lanes_take_expected() - resolve the flow as lanes_connect() does, by what softibd has answered ahead
 *  Return: false: there is no such answer, or it names a lane that has gone; softibd must be asked */
bool lanes_take_expected(struct soft_context *ctx, const struct abi_resolve *key, uint32_t *owner);

#endif
