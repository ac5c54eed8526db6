/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The software adapter: one channel adapter of the fabric as a device of the
 * midlayer. It assigns QPNs and keys, and owns an engine for the midlayer's own
 * QPs (QP0, QP1, protocols). It passes a packet that arrives at a port to the
 * engine that owns its destination QP, and validates each packet that a
 * program's engine sends before it leaves by a port.
 */
#ifndef SOFTIB_HCA_H
#define SOFTIB_HCA_H

#include "abi/counters.h"
#include "fabric/fabric.h"
#include "rdma/ib_verbs.h"
#include "runtime/posix/rt_posix.h"

struct hca;
struct hca_set;
struct profile;

/**
 * hca_set_create() - create the state that all adapters of fabric @fab share, without any adapter
 * @rt: the loop of @fab and of all its adapters
 * Return: 0 and *@set; -ENOMEM
 */
int hca_set_create(struct rt *rt, struct fabric *fab, struct hca_set **set);
/** hca_set_profile() - let the adapters report the attributes of @profile
 *  @profile: the caller's; it has to outlive @set
 *  Context: before the first adapter is created */
void hca_set_profile(struct hca_set *set, const struct profile *profile);
/** hca_set_polled() - let the adapters of some nodes raise no interrupts (src/core/poll.c)
 *  @polled: [i]: is it so for node i? NULL: for no node. The caller's; it has to outlive @set
 *  Context: before the first adapter is created */
void hca_set_polled(struct hca_set *set, const bool *polled);
/** hca_set_destroy() - free @set. Context: after all adapters of @set, and before its fabric */
void hca_set_destroy(struct hca_set *set);

/**
 * hca_create() - create the adapter of CA @node and register it as "softib0", or with its number
 * if its host has several adapters
 * @node: index in the topology of the fabric of @set; its ports are attached
 * Context: softibd's loop. Return: 0 and *@hca; -ENOMEM, -EINVAL not a CA, what
 * ib_register_device() returned
 */
int hca_create(struct hca_set *set, int node, struct hca **hca);
/** hca_destroy() - unplug the adapter: remove() of the clients is called, and programs see
 *  DEVICE_FATAL */
void hca_destroy(struct hca *hca);

/** hca_set_min_ack_timeout() - raise shorter ACK time-outs of @hca's QPs to @us microseconds
 *  @us: 0, the default: time-outs are exact. Context: before the adapter is used */
void hca_set_min_ack_timeout(struct hca *hca, uint32_t us);

/** hca_windows_operations() - Return: the number of requests that all programs of the fabric have
 *  performed through windows */
uint64_t hca_windows_operations(struct hca_set *set);

/** hca_profile_less() - list the limits of the profile that @hca does not reach: profile_apply() */
unsigned hca_profile_less(const struct hca *hca, char *less, size_t bytes);

/** hca_counters() - events that the queue pairs of a port have counted since the start (enum tp_counter), also those of
 *  programs that have ended. The programs count, and softibd cannot check it */
void hca_counters(const struct hca *hca, unsigned port_num, uint64_t values[ABI_COUNTERS]);
/** hca_counter_name() - Return: the name of hw_counters in the kernel's drivers. @i: below ABI_COUNTERS */
const char *hca_counter_name(unsigned i);

/** hca_has_qp() - is there a queue pair of this number (2 and up)? */
bool hca_has_qp(const struct hca *hca, uint32_t qpn);
/** hca_source_qpn() - find the QP that is connected to (@dlid, @dest_qpn), because packets of
 *  connected services do not name their source QP. Return: its number; 0: there is none */
uint32_t hca_source_qpn(const struct hca *hca, uint16_t dlid, uint32_t dest_qpn);
/**
 * hca_raise() - raise an asynchronous event artificially, without its cause
 * @port: port of an unaffiliated event; 0: port 1
 * @qpn: not 0: the QP that the event is about, or whose (send) CQ or SRQ it is about
 * @type: enum ib_event_type
 * Return: 0; -EINVAL: there is no such QP, or @type is not an event of a QP, CQ or SRQ; if @qpn is 0,
 *	   @type is not an event of a port or the device
 */
int hca_raise(struct hca *hca, int port, uint32_t qpn, uint32_t type);

#endif
