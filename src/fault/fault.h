/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Faults: rules of what shall go wrong, and the verdict on each packet, each
 * object's creation and each completion. Pure: time, names of nodes and the
 * room for rules and log are the caller's; chance comes from seeds alone.
 *
 * A rule has a place, an action, conditions and a trigger (flt_parse() reads
 * its text; softib-fault(5) describes the words). There are three families:
 *
 *   packet   drop, duplicate, reorder, delay, corrupt, bandwidth, rnr, errors,
 *            note: flt_packet() for each packet on each link
 *   object   fail, completion, overrun: flt_object(), flt_completion() where
 *            an object is made or a request ends
 *   state    down, death, remove, event: something is so while the rule
 *            stands, or again and again; their holder keeps the timers
 *            (flt_state_next())
 *
 * Each rule counts what matches it and draws its chances from its own seed and
 * that count: the same packets give the same verdicts, whatever other rules
 * there are. The caller serialises per set.
 */
#ifndef SOFTIB_FAULT_FAULT_H
#define SOFTIB_FAULT_FAULT_H

#include "base/types.h"

#define FLT_RULES_MAX 128
#define FLT_TEXT_MAX  512 /* bytes of a rule's text, its end included */
#define FLT_PPM	      1000000u

enum flt_place {
	FLT_ANYWHERE, /* where a packet leaves its source; any node's objects */
	FLT_LINK,     /* a cable, named by one of its ends */
	FLT_PORT,     /* as a link, and what turns round inside the adapter */
	FLT_NODE,     /* any port of a node; of a switch, as packets come in */
	FLT_QP,	      /* packets from or to a queue pair; its completions */
};

/** enum flt_direction - seen from the place */
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

/** enum flt_field - what a condition can look at; numbers in host order */
enum flt_field {
	FLT_OPCODE,    /* BTH's; of a completion enum ibv_wc_opcode */
	FLT_TRANSPORT, /* enum wire_transport */
	FLT_OPERATION, /* enum flt_operation */
	FLT_DEST_QPN,
	FLT_SRC_QPN, /* of datagrams; of a completion its QP */
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

/** enum flt_operation - of a packet; FLT_RECV of a completion only */
enum flt_operation { FLT_SEND = 1, FLT_WRITE, FLT_READ, FLT_ATOMIC, FLT_ACK, FLT_RECV };

/** enum flt_crc - what becomes of the CRCs of a packet with a wrong bit */
enum flt_crc {
	FLT_CRC_BAD,  /* the next port finds it and drops the packet */
	FLT_CRC_VCRC, /* VCRC made anew, as by a bad switch: the destination
			 finds it, unless ICRC does not cover the bit */
	FLT_CRC_FIXED, /* both made anew: nobody finds it */
};

/** enum flt_object_kind - what "fail" can refuse */
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

/** enum flt_counter - what "errors" can count at a port */
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
	uint32_t low, high; /* both included */
};

/** struct flt_rule - as parsed, and what it has done since */
struct flt_rule {
	uint32_t id; /* given by flt_add(), never given again */
	uint8_t place, action, direction;
	uint8_t port;
	int32_t node; /* -1: anywhere */
	uint32_t qpn;

	/* --- conditions: fields of which the bit is set in @conditions --- */
	uint32_t conditions;
	struct flt_range field[FLT_NUM_FIELDS];

	/* --- trigger: of the packets that match; 0 is unlimited --- */
	uint32_t rate_ppm; /* FLT_PPM: each */
	uint32_t after, first, every, count;

	/* --- what the action needs --- */
	uint64_t delay_ns, jitter_ns, hold_ns;
	uint64_t for_ns, period_ns; /* state: 0 for good, 0 once */
	uint64_t bytes_per_s;
	uint32_t packets, copies, add;
	uint32_t offset, mask;	    /* corrupt: of a byte, or FLT_RANDOM_BIT */
	uint32_t crc;		    /* enum flt_crc */
	uint32_t timer_enc;	    /* rnr: 5 bits; FLT_RNR_OWN the responder's */
	uint32_t what;		    /* counter, object, status or event */
	uint32_t error;		    /* fail: errno */
	uint64_t seed;		    /* 0 when parsed: of the set and the id */

	/* --- since it was added --- */
	uint64_t matched, hits;
	mono_t free_at[2];  /* bandwidth, delay: of in, out */
	uint64_t passed[2]; /* matching packets, of in, out: for reorder */
};

#define FLT_RANDOM_BIT 0xffffffffu
#define FLT_RNR_OWN    0xffffffffu

/** struct flt_end - a port, as the topology numbers nodes */
struct flt_end {
	int32_t node;
	uint8_t port;
	bool is_switch;
};

/** struct flt_event - a packet crosses a link, or turns round in an adapter
 *  (@from equals @to) */
struct flt_event {
	mono_t now;
	struct flt_end from, to;
	bool first;	     /* it leaves its source by this link */
	uint32_t from_qpn;   /* of connected services, where known; else 0 */
	uint32_t present;    /* bits of the fields that it has */
	uint32_t field[FLT_NUM_FIELDS];
};

/** struct flt_hit - a line of the log */
struct flt_hit {
	uint64_t serial; /* of the log, from 1 */
	mono_t when;
	uint32_t rule;
	uint8_t action;
	uint32_t what;	/* the object refused, or the rule's status, event, counter */
	uint32_t qpn;	/* of an event; 0 of a port */
	struct flt_end from, to;
	uint32_t present; /* the packet's identity: slid, dlid, opcode, qpns, psn */
	uint32_t field[FLT_NUM_FIELDS];
};

/** struct flt_verdict - what shall happen to a packet on this link */
struct flt_verdict {
	bool drop, corrupt, rnr;
	uint32_t rule; /* that dropped, corrupted, held or delayed it; 0 none */
	uint32_t copies;	/* more of it than one */
	mono_t now;		/* the event's: what follows counts from it */
	uint64_t delay_ns;	/* it arrives so much later; 0 at once */
	/* reorder: until so many packets passed the rule, or @hold_ns */
	uint64_t hold_until;
	uint64_t hold_ns;
	uint8_t hold_way; /* 0 in, 1 out: for flt_hold_over() */
	uint32_t corrupt_offset, corrupt_mask, crc;
	uint32_t timer_enc;
	uint32_t errors[FLT_NUM_COUNTERS]; /* to add where it arrives */
	bool counts;			   /* any of @errors is set */
};

/** struct flt_set - the rules; zeroed, then flt_set_init() */
struct flt_set {
	uint64_t seed;
	uint32_t next_id;
	unsigned int num_rules;
	struct flt_rule rule[FLT_RULES_MAX]; /* [0..num_rules), by id */
	struct flt_hit *log; /* a ring, the owner's */
	uint32_t log_room;
	uint64_t logged; /* hits in all; the last log_room are kept */
	bool spent;	 /* a rule had its last hit: see flt_take_spent() */
};

/** flt_set_init() - @log: room for @room hits, may be none */
void flt_set_init(struct flt_set *set, uint64_t seed, struct flt_hit *log, uint32_t room);
/** flt_add() - a copy of @rule joins. Return: its id; -ENOSPC */
int flt_add(struct flt_set *set, const struct flt_rule *rule);
/** flt_remove() - Return: 0; -ENOENT */
int flt_remove(struct flt_set *set, uint32_t id);
/** flt_find() - the rule of an id; NULL. Valid until one is added or removed */
struct flt_rule *flt_find(struct flt_set *set, uint32_t id);
/** flt_log_at() - of the hits that are kept the @i-th, oldest first; NULL */
const struct flt_hit *flt_log_at(const struct flt_set *set, uint32_t i);

/**
 * flt_event_packet() - fill @ev's fields from a packet
 * @bytes: LRH to pad
 * Return: 0; -EINVAL not a packet
 */
int flt_event_packet(struct flt_event *ev, const void *bytes, size_t len);
/**
 * flt_packet() - what the rules say of a packet on a link
 * Every rule that matches counts it; one that drops or spoils the packet
 * leaves nothing to do for those after it.
 * Return: true when there is something to do, all of it in @verdict
 */
bool flt_packet(struct flt_set *set, const struct flt_event *ev, struct flt_verdict *verdict);
/**
 * flt_busy() - must the sender hold this packet back? A limited bandwidth has
 * no room: asked before flt_packet(), of every link that it will cross
 */
bool flt_busy(const struct flt_set *set, const struct flt_event *ev);
/** flt_hold_over() - have as many packets passed @rule as a held one waits
 *  for? True as well when the rule is gone */
bool flt_hold_over(struct flt_set *set, uint32_t rule, uint8_t way, uint64_t until);
/**
 * flt_watches() - can a rule want packets between two ports that are no MADs?
 * If so they must not go past the fabric.
 */
bool flt_watches(const struct flt_set *set, struct flt_end from, struct flt_end to);
/** flt_take_spent() - true once after a rule had the last hit that it can
 *  have: packets that it watched may take short cuts again */
bool flt_take_spent(struct flt_set *set);

/** struct flt_object_event - an object is to be made, or a request ended */
struct flt_object_event {
	mono_t now;
	int32_t node;
	uint32_t qpn;	 /* of a completion */
	uint32_t kind;	 /* enum flt_object_kind, when made */
	uint32_t opcode; /* enum ibv_wc_opcode of a completion */
};

/** flt_object() - Return: 0, or the positive errno that it shall fail with */
int flt_object(struct flt_set *set, const struct flt_object_event *ev);
/** flt_completion() - Return: enum ibv_wc_status that a successful completion
 *  shall have instead; 0 leave it; FLT_OVERRUN_CQ its queue is full */
int flt_completion(struct flt_set *set, const struct flt_object_event *ev);
#define FLT_OVERRUN_CQ (-1)
/** flt_has_action() - does any rule have it? The short way to "no" */
bool flt_has_action(const struct flt_set *set, enum flt_action action);

/** flt_is_state() - is it of the family that stands and has timers? */
bool flt_is_state(enum flt_action action);
/**
 * flt_state_hit() - a state rule takes effect: log and count it
 * Return: false when its count is used up
 */
bool flt_state_hit(struct flt_set *set, struct flt_rule *rule, mono_t now);

/** struct flt_names - how texts name nodes; all return -1 or NULL: no such */
struct flt_names {
	int (*find)(void *ctx, const char *name);
	const char *(*name)(void *ctx, int node);
	/** num_ports() - @is_switch is set as well */
	int (*num_ports)(void *ctx, int node, bool *is_switch);
	bool (*has_cable)(void *ctx, int node, int port);
	/** has_qp() - NULL: any QPN is accepted */
	bool (*has_qp)(void *ctx, int node, uint32_t qpn);
	void *ctx;
};

/**
 * flt_parse() - a rule from its text
 * @err: on failure a message that says what is wrong and what is accepted
 * Return: 0; -EINVAL
 */
int flt_parse(const char *text, const struct flt_names *names, struct flt_rule *rule, char *err,
	      size_t err_bytes);
/** flt_print() - the text that flt_parse() makes @rule from. Return: length */
size_t flt_print(const struct flt_rule *rule, const struct flt_names *names, char *text,
		 size_t bytes);
/** flt_action_name() - "drop", ... */
const char *flt_action_name(enum flt_action action);
/** flt_hit_what() - the object, status, event or counter of a hit; NULL: its
 *  action says all */
const char *flt_hit_what(const struct flt_hit *hit);
/** flt_time_parse() - "250us", "1.5s". Return: 0 and *@ns; -EINVAL */
int flt_time_parse(const char *text, uint64_t *ns);

#endif
