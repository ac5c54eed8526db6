/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A scenario: plain data that a seed determines. Everything that is drawn is
 * drawn here or from a stream of its own, so that leaving out a fault or a
 * request changes nothing else of the plan. */
#ifndef SOFTIB_SIM_PLAN_H
#define SOFTIB_SIM_PLAN_H

#include "base/types.h"

/** struct rng - splitmix64 */
struct rng {
	uint64_t state;
};

static inline uint64_t rng_next(struct rng *r)
{
	uint64_t z = r->state += 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

/** rng_below() - 0 .. n-1 */
static inline uint32_t rng_below(struct rng *r, uint32_t n)
{
	return (uint32_t)((rng_next(r) >> 32) * n >> 32);
}

static inline uint64_t rng_between(struct rng *r, uint64_t low, uint64_t high)
{
	return low + rng_next(r) % (high - low + 1);
}

static inline bool rng_chance(struct rng *r, uint32_t percent)
{
	return rng_below(r, 100) < percent;
}

#define PLAN_PROGRAMS 6
#define PLAN_CONNS    8
#define PLAN_FAULTS   12
#define PLAN_OPS      512 /* of one end of a connection */
#define PLAN_QUERIES  16  /* of one client */
#define PLAN_PORT_MTU 4096u /* of all ports */
#define PLAN_VIOLATIONS 4 /* of one end of a connection */
#define PLAN_PAIRS 4

/** enum plan_kind - what a scenario is about */
enum plan_kind {
	KIND_CALM,    /* no fault: nothing may fail */
	KIND_PACKETS, /* packets are lost, doubled, late, corrupt */
	KIND_LINKS,   /* links and switches go and come */
	KIND_MANAGER, /* the subnet manager dies, the standby takes over */
	KIND_DEATH,   /* programs die at any point, and come back */
	KIND_MEMORY,  /* the Nth allocation fails */
	KIND_CHAOS,   /* all of that */
	KIND_VIOLATIONS, /* no fault, but requests that break the rules; no seed draws it:
			  * a part of the seeds of every kind has such requests, too */
	KIND_NUM
};
extern const char *const plan_kind_names[KIND_NUM];

/** plan_is_faultless() - does only what programs ask for themselves fail? */
static inline bool plan_is_faultless(enum plan_kind kind)
{
	return kind == KIND_CALM || kind == KIND_VIOLATIONS;
}

enum plan_transport { PLAN_RC, PLAN_UC, PLAN_UD };

enum plan_verb {
	VERB_SEND,
	VERB_SEND_IMM,
	VERB_WRITE,
	VERB_WRITE_IMM,
	VERB_READ,
	VERB_FETCH_ADD,
	VERB_CMP_SWAP,
	VERB_NUM
};

/** struct plan_op - one request of one end */
struct plan_op {
	uint64_t at_ns; /* since traffic began */
	uint8_t verb;	/* enum plan_verb */
	uint8_t num_sge;
	bool inlined, signalled, solicited, fenced;
	uint32_t bytes;
};

/** enum plan_violation_kind - what a program does that it may not */
enum plan_violation_kind {
	VIOLATION_RKEY,	      /* a key that was not given out */
	VIOLATION_RIGHT,      /* memory whose key lacks the right */
	VIOLATION_BEYOND,     /* the last bytes are beyond the peer's region */
	VIOLATION_PD,	      /* a region of another protection domain */
	VIOLATION_UNALIGNED,  /* an atomic */
	VIOLATION_TOO_LONG,   /* for the peer's receive */
	VIOLATION_LKEY,	      /* its own key is none */
	VIOLATION_OWN_BEYOND, /* the last bytes are beyond its own region */
	VIOLATION_OWN_RIGHT,  /* an answer into memory that it may only read */
	VIOLATION_RECEIVE,    /* the peer posts a receive of memory that it may only read */
	VIOLATION_NO_RECEIVE, /* the peer posts no more receives */
	VIOLATION_NUM
};

/** struct plan_violation - @op is one that the kind applies to */
struct plan_violation {
	struct plan_op op;
	uint8_t kind; /* enum plan_violation_kind */
};

/** struct plan_conn - two QPs that talk */
struct plan_conn {
	enum plan_transport transport;
	int program[2];
	uint8_t path_bits[2]; /* which of its port's LIDs each end has */
	uint32_t mtu_bytes, start_psn[2];
	uint8_t timeout_enc, retry_cnt, rnr_retry, rnr_timer_enc, rd_atomic;
	uint32_t sq_depth, rq_depth;
	uint64_t repost_ns[2]; /* a receive is posted again so much later */
	bool sig_all, grh, srq[2];
	uint32_t slot_bytes; /* longest message */
	uint32_t num_ops[2];
	struct plan_op op[2][PLAN_OPS];
	uint32_t num_violations[2];
	struct plan_violation violation[2][PLAN_VIOLATIONS];
};

enum plan_fault_kind {
	FAULT_DROP,
	FAULT_DUPLICATE,
	FAULT_DELAY, /* of each packet its own: they overtake one another */
	FAULT_REORDER,
	FAULT_CORRUPT,
	FAULT_RNR, /* storms of "receiver not ready" */
	FAULT_LINK,
	FAULT_SWITCH,
	FAULT_MANAGER,
	FAULT_PROGRAM,
	FAULT_ALLOC,
	FAULT_CLOCK,
	FAULT_NUM
};
extern const char *const plan_fault_names[FAULT_NUM];

struct plan_fault {
	enum plan_fault_kind kind;
	uint64_t at_ns, for_ns; /* since traffic began; how long */
	uint32_t which;		/* node, cable, program ...: modulo their number */
	uint32_t permille;	/* of packets */
	uint64_t amount;	/* ns of delay, Nth allocation, clock jump */
	bool kept;
};

/** plan_spoils_vcrc() - FAULT_CORRUPT: does the next port notice it? Else the destination does */
static inline bool plan_spoils_vcrc(const struct plan_fault *fault)
{
	return fault->which & 1;
}

/** struct plan_query - a question to the administrator */
struct plan_query {
	uint64_t at_ns;
	bool path;   /* to the node of program @to; else all nodes */
	uint32_t to;
};

struct plan {
	uint64_t seed;
	enum plan_kind kind;
	char topology[64];
	int num_programs;
	uint32_t program_node[PLAN_PROGRAMS]; /* modulo the CAs */
	bool lanes;
	bool sleepy; /* programs sleep on their doorbell rather than poll */
	uint64_t think_ns; /* between two turns of a busy program, at most */
	uint64_t window_ns; /* of the traffic */
	bool standby;
	bool multicast; /* the programs are in a group */
	bool windows;
	bool violations;
	bool rd; /* nodes exchange reliable datagrams */
	bool sdp; /* nodes have connections of SDP */
	bool fast_registration; /* nodes register regions by requests */
	bool pair[PLAN_PAIRS]; /* programs use memory windows; XRC; ATOMIC WRITE and FLUSH; tag
			       * matching (pair.c) */
	uint8_t lmc; /* adapters' ports have 1 << lmc LIDs */
	uint32_t num_queries[PLAN_PROGRAMS];
	struct plan_query query[PLAN_PROGRAMS][PLAN_QUERIES];
	int num_conns;
	struct plan_conn conn[PLAN_CONNS];
	int num_faults;
	struct plan_fault fault[PLAN_FAULTS];
};

/** plan_make() - @kind: -1 leaves it to the seed */
void plan_make(struct plan *plan, uint64_t seed, int kind);
/** plan_keep() - of the faults only those that @list names ("0,2"; "" none) */
void plan_keep(struct plan *plan, const char *list);
/** plan_trim() - at most @max requests of each end */
void plan_trim(struct plan *plan, uint32_t max);
void plan_print(const struct plan *plan);

#endif
