/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The simulator: a whole fabric in one process under a virtual clock. Below
 * the programs everything is the product's own code: switches and links
 * (src/fabric), adapters (src/hca), the midlayer and its MADs (src/core),
 * the subnet manager (src/sm), and each program's engine, rings and lanes
 * (src/engine, lib/libibverbs/link.c and lanes*.c). What a real run gets from
 * the kernel, the programs' code and chance comes from a seed here.
 *
 *   plan.c      a scenario from a seed: topology, programs, traffic, faults
 *   world.c     builds it, runs it phase by phase, takes it down
 *   manager.c   softib-sm on a node: its MADs by the midlayer
 *   program.c   a program: context, engine, rings; posts and polls
 *   conn.c      connections between programs, and their repair
 *   traffic.c   requests, their data, and what their completions must say
 *   violation.c requests that break rules, and what both ends must see of them
 *   client.c    questions to the administrator, by MADs and RMPP
 *   pair.c      pairs of programs that use memory windows, XRC, FLUSH, tags
 *   reg.c       regions that requests register
 *   sdp.c       connections of SDP
 *   group.c     programs in a multicast group
 *   fault.c     faults as they happen
 *   oracle.c    what must hold after every event, and how it is reported
 *   runner.c    one scenario in a child process; many; the shrinker
 *
 * docs/SIMULATION.md tells how to use and extend it.
 */
#ifndef SOFTIB_SIM_H
#define SOFTIB_SIM_H

#include <sys/types.h>

#include "base/list.h"
#include "base/types.h"
#include "fabric/fabric.h"
#include "plan.h"

struct sim;
struct program;
struct manager;

/* --- oracles (oracle.c) --- */

/** enum oracle - the rules; each has a saboteur that breaks it (--break) */
enum oracle {
	ORACLE_PSN,	   /* PSNs of requests go on without a gap */
	ORACLE_ORDER,	   /* completions in order, each once */
	ORACLE_DATA,	   /* bytes are those that were sent */
	ORACLE_GUARD,	   /* nothing is written outside a region */
	ORACLE_RELIABLE,   /* RC: delivered or reported */
	ORACLE_CREDIT,	   /* rings: never more in them than their size; MSNs */
	ORACLE_WAKE,	   /* who sleeps on a doorbell is woken */
	ORACLE_LEAK,	   /* nothing is left when all is gone */
	ORACLE_TABLES,	   /* every LID is reached, without a loop */
	ORACLE_RECOVERY,   /* ports are Active again after the last fault */
	ORACLE_PATHS,	   /* of a port's LIDs the one that was used is told */
	ORACLE_KEYS,	   /* what bears a wrong P_Key or Q_Key is dropped and counted */
	ORACLE_COUNT,	   /* ports count what their cables carried */
	ORACLE_VIOLATION,  /* who breaks a rule is told, and his peer, as they should be */
	ORACLE_BOUND,	   /* a memory window gives the access that it is bound for, until it is freed */
	ORACLE_XRC,	   /* a message takes a receive of the SRQ that it names */
	ORACLE_PLACED,	   /* what was before a flag, or a FLUSH that completed, is in memory */
	ORACLE_TAGS,	   /* a message goes into the first buffer that matches its tag */
	ORACLE_FENCE,	   /* a fenced request waits for the answers before it */
	ORACLE_SDP,	   /* streams of SDP arrive whole, and both ends agree on their end */
	ORACLE_NUM
};
extern const char *const oracle_names[ORACLE_NUM];

/** sim_fail() - an oracle says no: the run ends here, in the child process */
_Noreturn void sim_fail(struct sim *sim, enum oracle oracle, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/** sim_sabotage() - shall the harness break this rule now? */
bool sim_sabotage(const struct sim *sim, enum oracle oracle);
/** oracle_event() - what holds after every event */
void oracle_event(struct sim *sim);
/** oracle_tables() - no LID loops. Return: true when each is reached from
 *  everywhere */
bool oracle_tables(struct sim *sim);
/** oracle_guards() - the bytes around every region, all of them */
void oracle_guards(struct sim *sim);
/** oracle_losses() - of datagrams, against the log of faults */
void oracle_losses(struct sim *sim);
/** oracle_forgotten() - nothing of a program that died is tracked any more */
void oracle_forgotten(struct sim *sim, const struct program *p);
/** oracle_numbers() - no program is left: no QP number, no key is taken */
void oracle_numbers(struct sim *sim);
/** oracle_keys() - send datagrams with wrong keys, when all else is quiet */
void oracle_keys(struct sim *sim);
/** oracle_counters() - both ends of each cable agree, and adapters count what
 *  was sent; the counts of lanes are folded in */
void oracle_counters(struct sim *sim);
/** oracle_baseline(), oracle_leaks() - before all is made, after it is gone */
void oracle_baseline(struct sim *sim);
void oracle_leaks(struct sim *sim);

/* --- the world (world.c) --- */

/** struct sim_result - what a run tells its parent */
struct sim_result {
	bool failed;
	int oracle; /* enum oracle; -1: a signal, an assertion, the watchdog */
	char text[400];
	uint64_t digest, events, packets, completions, virtual_ns;
	uint64_t by_lane, by_window; /* packets, requests */
	uint32_t errors, reconnects, lost;
	uint32_t violations; /* that ended as they had to */
	uint64_t sdp_bytes;
	uint32_t sdp_closed, sdp_moves, sdp_lost; /* connections: closed in order, followed by others, lost */
};

struct sim {
	const struct plan *plan;
	const struct sim_options *options;
	struct sim_result *result;
	struct rt *rt;
	struct topology *topo;
	struct fabric *fab;
	struct hca_set *adapters;
	struct hca **hca; /* by node */
	struct program *program[PLAN_PROGRAMS];
	struct conn *conn;
	struct manager *manager[2]; /* the second stands by */
	int manager_node[2];
	struct faults *faults;
	bool calm;	    /* no fault acts any more */
	mono_t traffic_began;
	bool ended;
	bool ending; /* all is taken down */
	bool starved; /* a queue of receives for datagrams ran empty */
	struct rt_timer end;
	int64_t balance;
	int descriptors;
	uint64_t laned; /* packets that went by lanes, from node to node */
	uint32_t turn; /* for what looks at a part per event */
};

/** struct sim_options - of one run */
struct sim_options {
	uint64_t seed;
	const char *keep_faults; /* "0,3,4": the others do not happen; NULL: all */
	uint32_t max_ops;	 /* traffic: the first so many of each end */
	int sabotage;		 /* enum oracle, or -1 */
	int kind;		 /* enum plan_kind, or -1: by the seed */
	bool general_only;	 /* the programs' engines take no fast path */
	bool verbose;
};

/** sim_run() - one scenario, in this process: does not return on failure */
void sim_run(const struct sim_options *options, struct sim_result *result);
/** sim_note() - add to the run's digest: words in the order of events */
void sim_note(struct sim *sim, uint64_t a, uint64_t b);
void sim_note_bytes(struct sim *sim, const void *bytes, size_t len);
/** sim_log() - with --verbose, a line with the virtual time */
void sim_log(struct sim *sim, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* --- managers (manager.c) --- */

/** manager_start() - a subnet manager on CA @node. NULL: no memory */
struct manager *manager_start(struct sim *sim, int node, uint8_t priority);
/** manager_kill() - as the death of its process; NULL: none */
void manager_kill(struct manager *manager);
bool manager_is_master(const struct manager *manager);

/* --- fast registration (reg.c) --- */

void regs_start(struct sim *sim);
void regs_begin_calm(struct sim *sim);
bool regs_done(struct sim *sim);
void regs_stop(struct sim *sim);

/* --- reliable datagrams (rd.c) --- */

void rds_start(struct sim *sim);
void rds_begin_calm(struct sim *sim);
/** rds_done() - all messages have ended, and those that succeeded have arrived */
bool rds_done(struct sim *sim);
void rds_stop(struct sim *sim);

/* --- SDP (sdp.c) --- */

void sdps_start(struct sim *sim);
void sdps_begin_calm(struct sim *sim);
/** sdps_done() - all connections have begun and ended */
bool sdps_done(struct sim *sim);
void sdps_stop(struct sim *sim);

/* --- faults (fault.c) --- */

void faults_start(struct sim *sim);
/** faults_over() - each has begun and ended */
bool faults_over(const struct sim *sim);
/** faults_stop() - end those that act: all is well from here on */
void faults_stop(struct sim *sim);

/* --- runner.c --- */

/** run_child() - sim_run() in a child process, bounded in real time */
void run_child(const struct sim_options *options, struct sim_result *result);

/* A seed that runs beside others, in a process of its own. */
struct sim_job {
	pid_t pid; /* 0: none */
	struct sim_options options;
	struct sim_result *result; /* shared with the process */
};

/** job_start() - call @run, which fills in the result, in a process of its own */
void job_start(struct sim_job *job, const struct sim_options *options,
	       void (*run)(const struct sim_options *options, struct sim_result *result));
/** job_wait() - wait for one of @jobs and take its result: @result
 * Return: the job, which is free again; NULL if none runs */
struct sim_job *job_wait(struct sim_job *jobs, int num, struct sim_result *result);
/** shrink() - drop faults and traffic while the run fails the same way;
 *  @options->keep_faults is replaced by a static string */
void shrink(struct sim_options *options, struct sim_result *result);

#endif
