/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The subnet manager and administrator (IBA v1 chapters 14 and 15), as one
 * object that lives on a runtime and talks through an injected port: the same
 * code runs as a program on libibumad and inside a simulation.
 *
 * The caller serialises: everything here runs on the loop of one struct rt.
 */
#ifndef SOFTIB_SM_SM_H
#define SOFTIB_SM_SM_H

#include "routing/routing.h"
#include "runtime/rt.h"
#include "wire/sa.h"

struct sm;

/** enum sm_agent - the three registrations that a manager needs */
enum sm_agent {
	SM_AGENT_DIRECT, /* class 0x81 */
	SM_AGENT_LID,	 /* class 0x01 */
	SM_AGENT_SA,	 /* class 0x03, RMPP done by the port */
	SM_N_AGENTS,
};

/** struct sm_addr - the far side of a MAD. For directed routes all zero but
 *  lid 0xffff (the permissive LID). */
struct sm_addr {
	uint16_t lid;
	uint8_t sl;
	uint8_t path_bits;
	uint32_t qpn, qkey;
	uint16_t pkey_index;
	bool has_grh;
	uint8_t sgid_index;
	union wire_gid gid;
};

/**
 * struct sm_io - the port that MADs leave by; filled by its maker
 * @send: @len bytes of MAD, more than 256 only by SM_AGENT_SA with an active
 *        RMPP header (then segmented by the port). @timeout_ms: 0 for
 *        responses; else a response is expected, and the port may report its
 *        absence by sm_receive() with -ETIMEDOUT. Return: 0; -errno
 */
struct sm_io {
	int (*send)(struct sm_io *io, enum sm_agent agent, const struct sm_addr *to,
		    const void *mad, size_t len, unsigned int timeout_ms);
};

enum sm_log_level { SM_LOG_ERROR, SM_LOG_WARNING, SM_LOG_INFO, SM_LOG_DEBUG };

/** enum sm_event - what an owner may want to act on */
enum sm_event {
	SM_EVENT_SUBNET_UP, /* a heavy sweep ended with no error */
	SM_EVENT_SWEEP_ERRORS, /* ... ended, but something did not answer */
	SM_EVENT_STANDBY,   /* another manager is master */
};

/**
 * struct sm_options - what a user may choose; sm_options_default()
 * @port_guid:   the port the manager sits on; its priority tie-break too
 * @lid_cache:   file of GUIDs and LIDs kept across restarts, or NULL
 * @sm_key:      managers of one subnet share it: others are told it and are neither
 *               handed the subnet nor obeyed without it
 * @sa_key:      who knows it gets from the SA what is for the trusted (C15-0.1.5)
 * @window:      SMPs in flight
 * @sweep_ns:    time between light sweeps; 0: none
 * @ipoib:       create the IPv4 broadcast group of the default partition
 * @ipoib_mtu:   of that group, enum wire_mtu; ports with a smaller one cannot join it
 * @packet_life_enc: how long a packet is under way at most, 4.096 us << it, 0..31: path
 *               records say so, and an RC QP awaits an ACK for twice that (12.7.34)
 * @qos:         program SL to VL and VL arbitration tables
 * @check:       judge every set of tables before it is programmed
 */
struct sm_options {
	uint64_t port_guid;
	uint64_t gid_prefix;
	uint64_t mkey, sm_key, sa_key;
	const char *lid_cache;
	const struct route_engine *engine;
	struct route_params route;
	uint8_t priority; /* 0..15 */
	uint8_t lmc;
	uint8_t max_vls_enc;
	uint8_t ipoib_mtu;
	uint8_t subnet_timeout_enc, packet_life_enc;
	uint32_t window, timeout_ms, retries;
	uint64_t sweep_ns;
	bool ipoib, qos, check;
	enum sm_log_level log_level;
	void (*log)(void *ctx, enum sm_log_level level, const char *line);
	void (*event)(void *ctx, enum sm_event event);
	void *ctx; /* of log and event */
};

void sm_options_default(struct sm_options *o);

/**
 * sm_create() - make a manager; nothing is sent before sm_start()
 * @options: copied; what it points to stays the caller's, valid until
 *           sm_destroy()
 * Return: 0; -ENOMEM; -EINVAL an option is out of range
 */
int sm_create(struct rt *rt, struct sm_io *io, const struct sm_options *options,
	      struct sm **sm);
void sm_destroy(struct sm *sm);

/** sm_start() - discover the subnet and manage it from then on */
void sm_start(struct sm *sm);

/** sm_resweep() - discover the subnet again (the link of the own port moved) */
void sm_resweep(struct sm *sm);

/**
 * sm_receive() - a MAD came in, or a send of ours ended without answer
 * @status: 0; -ETIMEDOUT: @mad is ours, returned unanswered
 * Context: the loop of the runtime. May call io->send().
 */
void sm_receive(struct sm *sm, enum sm_agent agent, int status,
		const struct sm_addr *from, const void *mad, size_t len);

/** struct sm_summary - the subnet in numbers */
struct sm_summary {
	uint32_t switches, cas, routers, links, end_ports;
	uint32_t unanswered; /* requests of the last sweep that timed out */
	uint16_t lid_max;
	uint8_t state; /* enum wire_sm_state */
};

void sm_summarise(const struct sm *sm, struct sm_summary *s);

#endif
