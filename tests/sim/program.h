/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A program and what it talks by. Under the virtual clock a program is a
 * timer: each turn it runs its engine, takes completions, posts what is due,
 * and says when it wants its next turn. */
#ifndef SOFTIB_SIM_PROGRAM_H
#define SOFTIB_SIM_PROGRAM_H

#include "../../lib/libibverbs/soft.h"
#include "core/uobject.h"
#include "sim.h"

#define GUARD_BYTES 64

/** struct region - registered memory, with guards round it. Its address on
 *  the wire is @iova, the same in every run; the memory's is not. */
struct region {
	struct list_head node; /* program.regions */
	uint8_t *block, *bytes;
	size_t len;
	uint64_t iova;
	uint32_t key;
	uint32_t handle;
	uint8_t guard;
	uint32_t token; /* of windows; 0: never granted */
	uint64_t token_value;
};

/** struct lane_watch - how far a lane was looked at */
struct lane_watch {
	const struct lane_out *lane;
	uint32_t id, seen;
};

struct program {
	struct sim *sim;
	int index, node;
	uint32_t lives; /* how often it was started */
	bool alive;
	struct rng rng;
	struct ib_ucontext *context;
	struct soft_context soft; /* the library's; its link, lanes and engine */
	struct ib_pd *pd, *other_pd;
	struct ib_cq *cq;
	struct eng_cq *eng_cq;
	uint32_t pd_handle, other_pd_handle, cq_handle;
	struct rt_timer turn;
	bool asleep;	/* on its doorbell */
	bool cq_armed, cq_event;
	uint32_t news_seen; /* of lanes */
	uint64_t next_iova;
	struct list_head regions;
	struct lane_watch lane_watch[64];
	bool gave_up; /* a packet or segment that had no room for too long */
	struct sim_window *window; /* NULL: it takes no part */
};

void program_init(struct program *p);
/** program_start() - open the device. False: not now (no memory) */
bool program_start(struct program *p);
/** program_kill() - it dies: everything of it goes at once */
void program_kill(struct program *p);
/** program_kick() - it wants a turn soon: somebody outside changed its work */
void program_kick(struct program *p);
/** program_notice() - after every event: did something come for it? */
void program_notice(struct program *p);
/** program_pid() - as which the core knows it */
int program_pid(const struct program *p);
const struct abi_devport *program_port(const struct program *p);

/** program_modify_qp() - both sides of a QP, as ibv_modify_qp() does it: the core checks, then the
 *  engine acts */
int program_modify_qp(struct ib_qp *qp, struct eng_qp *eng, const struct ibv_qp_attr *attr, int mask);
/** program_prepare_way() - the library asks for the lane of a flow, and for the owner of its peer,
 *  before the first packet */
void program_prepare_way(struct program *p, struct eng_qp *eng, uint32_t dest_qpn, uint16_t dlid);

/** region_make() - @bytes of memory under a key. Return: 0; -errno */
int region_make(struct program *p, struct region *r, size_t bytes, int access);
/** region_make_foreign() - the same, in the program's other protection domain */
int region_make_foreign(struct program *p, struct region *r, size_t bytes, int access);
void region_free(struct program *p, struct region *r);

/* --- window.c --- */
/** struct window_flow - requests that windows may take over: from a QP to its peer */
struct window_flow {
	struct program *target;
	uint32_t peer_qpn;
	uint16_t dlid, dlid_back;
	unsigned index; /* of no other of the program */
};
int window_start(struct program *p);
/** window_stop() - @p dies: its peers forget its memory */
void window_stop(struct program *p);
/** window_region_gone() - nobody reaches it by a window after return */
void window_region_gone(struct program *p, struct region *r);
/** window_answer() - the questions that @p's engine had */
void window_answer(struct program *p);
void windows_free_pages(void);

/** program_object() - as an uverbs command makes it. NULL: it failed */
void *program_object(struct program *p, enum ib_uobject_type type, uint32_t *handle,
		     void *(*make)(struct ib_uobject *uobject, void *arg), void *arg);

#endif
