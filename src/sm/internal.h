/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the files of the manager share: the manager itself, its calls (requests
 * that want an answer), its jobs, and the tables of the administrator.
 */
#ifndef SOFTIB_SM_INTERNAL_H
#define SOFTIB_SM_INTERNAL_H

#include "base/bytes.h"
#include "sm/lid.h"
#include "sm/sm.h"
#include "sm/subnet.h"

/* --- calls (mad.c): requests in flight, with time-outs and retries --- */

/** struct sm_reply - the end of a call
 * @status: 0; a MAD status; -ETIMEDOUT
 * @mad:    the whole answer, and @data its attribute; NULL without answer */
struct sm_reply {
	int status;
	const uint8_t *mad, *data;
	void *obj; /* the caller's, with arg and mod as in the request */
	uint32_t arg, mod;
};
typedef void (*sm_reply_fn)(struct sm *sm, const struct sm_reply *r);

/** struct sm_call - a request, queued or in flight */
struct sm_call {
	struct list_head node;
	sm_reply_fn fn;
	void *obj;
	uint32_t arg, mod;
	mono_t deadline;
	uint32_t tries;
	uint32_t tid;
	enum sm_agent agent;
	struct sm_addr to;
	uint8_t mad[WIRE_MAD_BYTES];
};

/** struct sm_call_window - calls that share a queue and a window */
struct sm_call_window {
	struct list_head queue;
	uint32_t n_flight;
	uint32_t size;	   /* calls in flight at most, now */
	uint32_t answered; /* since it last grew */
	mono_t shrunk_until; /* it does not shrink again before */
};

/** struct sm_calls - queued, and in flight in order of deadline
 * @smps:    the calls of phases
 * @reports: to subscribers. No phase waits for them: a subscriber whose port is down
 *           must not delay the sweep that brings it up again. */
struct sm_calls {
	struct sm_call_window smps, reports;
	struct list_head flight;
	struct rt_timer timer;
	uint32_t next_tid;
	struct sm_call **by_slot; /* by the TID, modulo their number */
};

int sm_calls_init(struct sm *sm);
void sm_calls_close(struct sm *sm);

/**
 * sm_get(), sm_set() - a directed-route SMP to the node at the end of @path
 * @fn: called once, later, never from within; may be NULL
 * Out of memory counts as a request that was not answered.
 */
void sm_get(struct sm *sm, const struct sm_path *path, uint16_t attr, uint32_t mod,
	    sm_reply_fn fn, void *obj, uint32_t arg);
void sm_set(struct sm *sm, const struct sm_path *path, uint16_t attr, uint32_t mod,
	    const struct wire_codec *codec, const void *value, sm_reply_fn fn, void *obj,
	    uint32_t arg);
/** sm_call_report() - a report to a subscriber, by LID; @mad is a whole MAD but for the TID */
void sm_call_report(struct sm *sm, const struct sm_addr *to, const void *mad, sm_reply_fn fn,
		    uint32_t arg);
/** sm_calls_are_done() - have all calls of phases ended? */
bool sm_calls_are_done(const struct sm *sm);
/** sm_calls_have_room() - would another SMP leave at once? */
bool sm_calls_have_room(const struct sm *sm);
/** sm_calls_answer() - match an answer, or a send that came back unanswered */
void sm_calls_answer(struct sm *sm, int status, const void *mad, size_t len);
/** sm_calls_launch() - move queued calls into flight while there is room */
void sm_calls_launch(struct sm *sm);
/** sm_respond() - send a response */
void sm_respond(struct sm *sm, enum sm_agent agent, const struct sm_addr *to,
		const void *mad, size_t len);

/* --- jobs (sweep.c): sequences of phases, one at a time --- */

/** struct sm_phase - a step of a job; the next one begins when every SMP of
 *  this one has ended
 * @begin: once; may be NULL
 * @more:  makes the next few calls; false when there are none left. Asked
 *         only while there is room in the window. May be NULL. */
struct sm_phase {
	const char *name;
	void (*begin)(struct sm *sm);
	bool (*more)(struct sm *sm);
};

enum sm_job { SM_JOB_HEAVY, SM_JOB_LIGHT, SM_JOB_SELF, SM_JOB_MCAST, SM_JOB_POLL, SM_N_JOBS };

/** sm_want() - run a job when those before it are done; once is enough */
void sm_want(struct sm *sm, enum sm_job job);
/** sm_abort_job() - the running job ends after the calls in flight */
void sm_abort_job(struct sm *sm);
void sm_pump(struct sm *sm);
void sm_sweep_due(struct rt_timer *t);
void sm_rest_ends(struct rt_timer *t);

/* phases, each in the file of its subject */
void sm_discover_begin(struct sm *sm);
void sm_elect_begin(struct sm *sm);
void sm_elect_decide(struct sm *sm);
void sm_lids_begin(struct sm *sm);
bool sm_ports_more(struct sm *sm);
bool sm_switch_info_more(struct sm *sm);
bool sm_pkeys_more(struct sm *sm);
void sm_qos_begin(struct sm *sm);
bool sm_qos_more(struct sm *sm);
void sm_route_begin(struct sm *sm);
bool sm_lft_more(struct sm *sm);
void sm_mcast_begin(struct sm *sm);
bool sm_mft_more(struct sm *sm);
bool sm_arm_more(struct sm *sm);
bool sm_activate_more(struct sm *sm);
void sm_up_begin(struct sm *sm);
bool sm_clients_more(struct sm *sm);
void sm_self_begin(struct sm *sm);
bool sm_light_more(struct sm *sm);
void sm_poll_begin(struct sm *sm);
void sm_poll_decide(struct sm *sm);
void sm_mcast_done(struct sm *sm);
void sm_handover_begin(struct sm *sm);

/** struct sm_cursor - where a phase that walks ports or tables stands */
struct sm_cursor {
	uint32_t node, port, block, position;
};

/* --- the administrator's own data --- */

/** struct sm_group - a multicast group (groups.c) */
struct sm_group {
	struct list_head node;
	struct list_head members;
	struct wire_mcmember_record rec; /* what all members share */
	uint64_t by;			 /* port GUID of who created it */
	bool permanent;
};

struct sm_member {
	struct list_head node;
	union wire_gid port_gid;
	uint8_t join_state;
	bool proxy;
};

/** struct sm_service - a registered service (sa_service.c) */
struct sm_service {
	struct list_head node;
	struct wire_service_record rec;
	uint64_t by; /* port GUID of who registered it */
	mono_t expiry;
};

/** struct sm_subscription - who wants to hear of what (notice.c) */
struct sm_subscription {
	struct list_head node;
	struct wire_inform_info info;
	struct sm_addr to;
	union wire_gid gid;
	uint16_t number; /* SubscriberEnum of InformInfoRecord */
};

/** struct sm_peer - another manager on the subnet (elect.c) */
struct sm_peer {
	struct list_head node;
	uint64_t port_guid;
	uint16_t lid;
	struct sm_path path;
	struct wire_sm_info info;
	bool answered;
};

/** struct sm_deferred - a response that waits for tables to be programmed */
struct sm_deferred {
	struct list_head node;
	struct sm_addr to;
	uint8_t mad[WIRE_MAD_BYTES];
};

struct sm {
	struct rt *rt;
	struct sm_io *io;
	struct sm_options opt;
	struct sm_calls calls;
	struct rt_work work; /* runs sm_pump() */
	struct rt_timer sweep_timer;
	mono_t sweep_at; /* the next light sweep or poll */

	/* --- jobs --- */
	bool wanted[SM_N_JOBS];
	const struct sm_phase *phase; /* NULL: idle */
	enum sm_job job;
	bool phase_begun, aborted;
	/* of heavy sweeps that follow one another closely: the pause behind the last one, and
	 * when it ended and the pause ends */
	uint64_t rest_ns;
	mono_t swept_at, rest_until;
	struct rt_timer rest_timer;
	struct sm_cursor cursor;
	uint32_t unanswered; /* of this job */

	/* --- the subnet --- */
	struct sm_subnet *subnet; /* answers queries; NULL before the first */
	struct sm_subnet *next;	  /* being discovered */
	struct sm_lids lids;
	bool first_sweep;    /* no heavy sweep as master ended yet */
	bool incomplete;     /* the last one ended early, or not all answered */
	bool distrust;	     /* another master may have written any table */
	bool reregister;     /* clients must register again (14.4.11) */
	struct route_graph graph;
	struct route_work route_work;
	uint64_t sweeps;

	/* --- election --- */
	uint8_t state; /* enum wire_sm_state */
	struct list_head peers;
	uint64_t master_guid; /* in standby: whom to poll */
	uint32_t missed_polls;
	uint32_t act_count;

	/* --- administrator --- */
	struct list_head groups, services, subscriptions, deferred;
	struct rt_timer lease_timer;
	uint16_t next_subscription;
	uint32_t n_mlids; /* MLIDs ever used: the size of MFTs */
};

/** sm_model() - the subnet that jobs work on: the new one in a heavy sweep */
static inline struct sm_subnet *sm_model(const struct sm *sm)
{
	return sm->next ?: sm->subnet;
}

/** sm_log() - one line for the owner */
__attribute__((format(printf, 3, 4)))
void sm_log(const struct sm *sm, enum sm_log_level level, const char *fmt, ...);
/** sm_node_name() - description and GUID for messages; a static buffer */
const char *sm_node_name(const struct sm_node *n);

/* lid.c */
bool sm_lids_assign(struct sm *sm);

/* activate.c */
/** sm_port_mtu(), sm_port_vls() - of a link: what both ends can do */
uint8_t sm_port_mtu(const struct sm_port *p);
uint8_t sm_port_vls(const struct sm *sm, const struct sm_port *p);

/* route.c */
void sm_route_close(struct sm *sm);
/** sm_next_hop() - the port by which switch @n sends @lid, or ROUTE_NO_PORT */
uint8_t sm_next_hop(const struct sm_node *n, uint16_t lid);

/* elect.c */
void sm_info_fill(const struct sm *sm, struct wire_sm_info *info);
void sm_info_receive(struct sm *sm, enum sm_agent agent, const struct sm_addr *from,
		     const uint8_t *mad);
void sm_peers_clear(struct sm *sm);

/* groups.c */
void sm_groups_init(struct sm *sm);
void sm_groups_close(struct sm *sm);
/** sm_groups_expel() - ports that left the subnet leave their groups */
void sm_groups_expel(struct sm *sm);
struct sm_group *sm_group_find(const struct sm *sm, const union wire_gid *mgid);

/* notice.c */
void sm_trap_receive(struct sm *sm, enum sm_agent agent, const struct sm_addr *from,
		     const uint8_t *mad);
/** sm_notify_gid() - traps 64..67 to whoever subscribed (14.2.5.1) */
void sm_notify_gid(struct sm *sm, uint16_t trap, const union wire_gid *gid);
/** sm_notify_changes() - notices of ports that came and went between sweeps */
void sm_notify_changes(struct sm *sm, const struct sm_subnet *old);
void sm_subscriptions_close(struct sm *sm);

/* sa_service.c */
void sm_services_close(struct sm *sm);
void sm_lease_expired(struct rt_timer *t);

/* sa.c */
void sm_sa_receive(struct sm *sm, const struct sm_addr *from, const uint8_t *mad, size_t len);

static inline union wire_gid sm_gid(uint64_t prefix, uint64_t guid)
{
	union wire_gid g;

	put_be64(g.raw, prefix);
	put_be64(g.raw + 8, guid);
	return g;
}

static inline uint64_t sm_gid_guid(const union wire_gid *g)
{
	return get_be64(g->raw + 8);
}

#endif
