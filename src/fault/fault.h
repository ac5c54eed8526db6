/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Faults: rules that describe failures, and the verdict on each packet, each
 * creation of an object and each completion. Pure: the caller provides time,
 * names of nodes and memory for rules and log; random choices depend on seeds
 * only.
 *
 * A rule has a place, an action, conditions and a trigger (flt_parse() reads
 * its text; softib-fault(5) describes the words). There are three families:
 *
 *   packet   drop, duplicate, reorder, delay, corrupt, bandwidth, rnr, errors,
 *            note: flt_packet() for each packet on each link
 *   object   fail, completion, overrun: flt_object(), flt_completion() when
 *            an object is created or a request completes
 *   state    down, death, remove, event: a state lasts until the rule is
 *            cleared, or is repeated; the caller has the timers
 *            (flt_state_hit())
 *
 * Each rule counts what matches it, and its random choices depend on its own
 * seed and this count only: the same packets give the same verdicts, whatever
 * other rules exist. The caller serialises access per set.
 */
#ifndef SOFTIB_FAULT_FAULT_H
#define SOFTIB_FAULT_FAULT_H

#include "base/types.h"

#define FLT_RULES_MAX 128
#define FLT_TEXT_MAX  512 /* bytes of a rule's text, including the terminating NUL */
#define FLT_PPM	      1000000u

enum flt_place {
	FLT_ANYWHERE, /* packets where they leave their source; objects of any node */
	FLT_LINK,     /* a cable, identified by one of its ends */
	FLT_PORT,     /* like FLT_LINK, and packets that do not leave the adapter */
	FLT_NODE,     /* any port of a node; for a switch, packets as they arrive */
	FLT_QP,	      /* packets to and from a queue pair, and its completions */
};

/** enum flt_direction - direction of a packet as seen from the place */
enum flt_direction { FLT_IN = 1, FLT_OUT = 2, FLT_BOTH = FLT_IN | FLT_OUT };

enum flt_action {
	FLT_DROP,
	FLT_DUPLICATE,
	FLT_REORDER,
	FLT_DELAY,
	FLT_CORRUPT,
	FLT_BANDWIDTH,
	FLT_RNR,
	FLT_ERRORS,
	FLT_NOTE,
	FLT_FAIL,
	FLT_COMPLETION,
	FLT_OVERRUN,
	FLT_DOWN,
	FLT_DEATH,
	FLT_REMOVE,
	FLT_EVENT,
	FLT_NUM_ACTIONS
};

/** enum flt_field - fields that conditions can test; numbers are in host order */
enum flt_field {
	FLT_OPCODE,    /* of the BTH; for a completion enum ibv_wc_opcode */
	FLT_TRANSPORT, /* enum wire_transport */
	FLT_OPERATION, /* enum flt_operation */
	FLT_DEST_QPN,
	FLT_SRC_QPN, /* of datagrams; for a completion its QP */
	FLT_PSN,
	FLT_CLASS, /* of MADs, with method, attribute and modifier */
	FLT_METHOD,
	FLT_ATTRIBUTE,
	FLT_MODIFIER,
	FLT_VL,
	FLT_SL,
	FLT_SLID,
	FLT_DLID,
	FLT_PKEY,
	FLT_BYTES, /* LRH to pad */
	FLT_NUM_FIELDS
};

/** enum flt_operation - operation of a packet; FLT_RECV exists for completions only */
enum flt_operation { FLT_SEND = 1, FLT_WRITE, FLT_READ, FLT_ATOMIC, FLT_ACK, FLT_RECV };

/** enum flt_crc - the CRCs of a corrupted packet */
enum flt_crc {
	FLT_CRC_BAD,  /* the next port detects the corruption and drops the packet */
	FLT_CRC_VCRC, /* the VCRC is recomputed, as by a faulty switch: the destination
			     detects it, unless the ICRC does not cover the bit */
	FLT_CRC_FIXED, /* both CRCs are recomputed: the corruption is not detected */
};

/** enum flt_object_kind - objects whose creation "fail" can make fail */
enum flt_object_kind {
	FLT_OBJECT_ANY,
	FLT_OBJECT_CONTEXT,
	FLT_OBJECT_PD,
	FLT_OBJECT_CQ,
	FLT_OBJECT_QP,
	FLT_OBJECT_SRQ,
	FLT_OBJECT_MR,
	FLT_OBJECT_MW,
	FLT_OBJECT_MULTICAST,
	FLT_NUM_OBJECTS
};

/** enum flt_counter - counters of a port that "errors" can increase */
enum flt_counter {
	FLT_SYMBOL_ERRORS,
	FLT_LINK_RECOVERY,
	FLT_LINK_DOWNED,
	FLT_RCV_ERRORS,
	FLT_RCV_REMOTE_PHYSICAL,
	FLT_RCV_SWITCH_RELAY,
	FLT_XMIT_DISCARDS,
	FLT_XMIT_CONSTRAINT,
	FLT_RCV_CONSTRAINT,
	FLT_LOCAL_INTEGRITY,
	FLT_BUFFER_OVERRUN,
	FLT_VL15_DROPPED,
	FLT_XMIT_WAIT,
	FLT_NUM_COUNTERS
};

struct flt_range {
	uint32_t low, high; /* both are included in the range */
};

/** struct flt_rule - a rule as it was parsed, and its statistics */
struct flt_rule {
	uint32_t id; /* assigned by flt_add(), never reused */
	uint8_t place, action, direction;
	uint8_t port;
	int32_t node; /* -1: anywhere */
	uint32_t qpn;

	/* --- conditions: those fields whose bit is set in @conditions --- */
	uint32_t conditions;
	struct flt_range field[FLT_NUM_FIELDS];

	/* --- trigger: selects some of the packets that match; 0 is unlimited --- */
	uint32_t rate_ppm; /* FLT_PPM: each */
	uint32_t after, first, every, count;

	/* --- arguments of the action --- */
	uint64_t delay_ns, jitter_ns, hold_ns;
	uint64_t for_ns, period_ns; /* state: for_ns 0 without end; period_ns 0 not repeated */
	uint64_t bytes_per_s;
	uint32_t packets, copies, add;
	uint32_t offset, mask;	    /* corrupt: bits of the byte, or FLT_RANDOM_BIT */
	uint32_t crc;		    /* enum flt_crc */
	uint32_t timer_enc;	    /* rnr: 5 bits; FLT_RNR_OWN: that of the responder */
	uint32_t what;		    /* counter, object, status or event */
	uint32_t error;		    /* fail: errno */
	uint64_t seed;		    /* 0 after parsing: derived from those of the set and the id */

	/* --- since it was added --- */
	uint64_t matched, hits;
	mono_t free_at[2];  /* bandwidth, delay: for [0] in, [1] out */
	uint64_t passed[2]; /* reorder: packets that passed, [0] in, [1] out */
};

#define FLT_RANDOM_BIT 0xffffffffu
#define FLT_RNR_OWN    0xffffffffu

/** struct flt_end - a port, with the topology's index of its node */
struct flt_end {
	int32_t node;
	uint8_t port;
	bool is_switch;
};

/** struct flt_event - a packet crosses a link, or stays inside an adapter (@from equals
 *  @to) */
struct flt_event {
	mono_t now;
	struct flt_end from, to;
	bool first;	     /* this is the link by which it leaves its source */
	uint32_t from_qpn;   /* the source QPN if known, otherwise 0 */
	uint32_t present;    /* bits of the fields that it has */
	uint32_t field[FLT_NUM_FIELDS];
};

/** struct flt_hit - a line of the log */
struct flt_hit {
	uint64_t serial; /* number in the log, from 1 */
	mono_t when;
	uint32_t rule;
	uint8_t action;
	uint32_t what;	/* the object that was not created, or the rule's status, event or counter */
	uint32_t qpn;	/* of an event; 0 for an event of a port */
	struct flt_end from, to;
	uint32_t present; /* the packet's identity: slid, dlid, opcode, qpns, psn */
	uint32_t field[FLT_NUM_FIELDS];
};

/** struct flt_verdict - what has to be done with a packet on this link */
struct flt_verdict {
	bool drop, corrupt, rnr;
	uint32_t rule; /* the rule that drops, corrupts, reorders or delays it; 0 none */
	uint32_t copies;	/* additional copies */
	mono_t now;		/* time of the event, from which the delays count */
	uint64_t delay_ns;	/* how much later it arrives; 0 at once */
	/* reorder: until this number of packets has passed the rule, or until @hold_ns has elapsed */
	uint64_t hold_until;
	uint64_t hold_ns;
	uint8_t hold_way; /* 0 in, 1 out: for flt_hold_over() */
	uint32_t corrupt_offset, corrupt_mask, crc;
	uint32_t timer_enc;
	uint32_t errors[FLT_NUM_COUNTERS]; /* to add to the counters of the port where it arrives */
	bool counts;			   /* @errors are not all 0 */
};

/** struct flt_set - the rules; zeroed, then flt_set_init() */
struct flt_set {
	uint64_t seed;
	uint32_t next_id;
	unsigned int num_rules;
	struct flt_rule rule[FLT_RULES_MAX]; /* [0..num_rules), by id */
	struct flt_hit *log; /* a ring, owned by the caller */
	uint32_t log_room;
	uint64_t logged; /* the number of hits; the last log_room are kept */
	bool spent;	 /* a rule had its last hit: see flt_take_spent() */
};

/** flt_set_init() - initialise a zeroed set
 *  @log: memory for @room hits; @room may be 0 */
void flt_set_init(struct flt_set *set, uint64_t seed, struct flt_hit *log, uint32_t room);
/** flt_add() - add a copy of @rule. Return: its id; -ENOSPC */
int flt_add(struct flt_set *set, const struct flt_rule *rule);
/** flt_remove() - Return: 0; -ENOENT */
int flt_remove(struct flt_set *set, uint32_t id);
/** flt_find() - the rule with an id; NULL. The pointer is valid until a rule is added or
 *  removed */
struct flt_rule *flt_find(struct flt_set *set, uint32_t id);
/** flt_log_at() - the @i-th hit of those that are kept, oldest first; NULL */
const struct flt_hit *flt_log_at(const struct flt_set *set, uint32_t i);

/**
 * flt_event_packet() - fill @ev's fields from a packet
 * @bytes: LRH to pad
 * Return: 0; -EINVAL not a packet
 */
int flt_event_packet(struct flt_event *ev, const void *bytes, size_t len);
/**
 * flt_packet() - apply the rules to a packet on a link
 * Every rule that matches counts it. After a rule that drops or corrupts the
 * packet, later rules have no effect on it.
 * Return: true if there is something to do, which is in @verdict
 */
bool flt_packet(struct flt_set *set, const struct flt_event *ev, struct flt_verdict *verdict);
/**
 * flt_busy() - must the sender keep this packet, because a bandwidth limit has no
 * room for it? Called before flt_packet(), for every link that it will cross.
 */
bool flt_busy(const struct flt_set *set, const struct flt_event *ev);
/** flt_hold_over() - has the number of packets for which a reordered packet waits passed
 *  @rule? Also true if the rule was removed. */
bool flt_hold_over(struct flt_set *set, uint32_t rule, uint8_t way, uint64_t until);
/**
 * flt_watches() - may a rule match packets between two ports other than MADs?
 * If so, these packets must not bypass the fabric.
 */
bool flt_watches(const struct flt_set *set, struct flt_end from, struct flt_end to);
/** flt_take_spent() - returns true once after a rule had its last possible hit: the packets
 *  that it matched may bypass the fabric again */
bool flt_take_spent(struct flt_set *set);

/** struct flt_object_event - an object is to be created, or a request has completed */
struct flt_object_event {
	mono_t now;
	int32_t node;
	uint32_t qpn;	 /* of a completion */
	uint32_t kind;	 /* enum flt_object_kind of an object to be created */
	uint32_t opcode; /* enum ibv_wc_opcode of a completion */
};

/** flt_object() - apply the rules to the creation of an object
 *  Return: 0, or the positive errno with which it has to fail */
int flt_object(struct flt_set *set, const struct flt_object_event *ev);
/** flt_completion() - apply the rules to a successful completion
 *  Return: the enum ibv_wc_status that replaces its status; 0 no change; FLT_OVERRUN_CQ
 *  treat the completion queue as overrun */
int flt_completion(struct flt_set *set, const struct flt_object_event *ev);
#define FLT_OVERRUN_CQ (-1)
/** flt_has_action() - does any rule have this action? */
bool flt_has_action(const struct flt_set *set, enum flt_action action);

/** flt_is_state() - does the action belong to the state family? */
bool flt_is_state(enum flt_action action);
/**
 * flt_state_hit() - log and count that a state rule takes effect
 * Return: false if it has reached its count
 */
bool flt_state_hit(struct flt_set *set, struct flt_rule *rule, mono_t now);

/** struct flt_names - functions that map names of nodes; they return -1 or NULL if there is
 *  no such node */
struct flt_names {
	int (*find)(void *ctx, const char *name);
	const char *(*name)(void *ctx, int node);
	/** num_ports() - also sets @is_switch */
	int (*num_ports)(void *ctx, int node, bool *is_switch);
	bool (*has_cable)(void *ctx, int node, int port);
	/** has_qp() - NULL: any QPN is accepted */
	bool (*has_qp)(void *ctx, int node, uint32_t qpn);
	void *ctx;
};

/**
 * flt_parse() - parse a rule
 * @err: on failure a message with the error and what is accepted
 * Return: 0; -EINVAL
 */
int flt_parse(const char *text, const struct flt_names *names, struct flt_rule *rule, char *err,
	      size_t err_bytes);
/** flt_print() - print @rule as text that flt_parse() accepts. Return: length */
size_t flt_print(const struct flt_rule *rule, const struct flt_names *names, char *text,
		 size_t bytes);
/** flt_action_name() - "drop", ... */
const char *flt_action_name(enum flt_action action);
/** flt_hit_what() - the name of a hit's object, status, event or counter; NULL if its
 *  action has none */
const char *flt_hit_what(const struct flt_hit *hit);
/** flt_time_parse() - "250us", "1.5s". Return: 0 and *@ns; -EINVAL */
int flt_time_parse(const char *text, uint64_t *ns);

#endif
