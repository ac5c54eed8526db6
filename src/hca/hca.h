/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The software adapter: one channel adapter of the fabric as a device of the
 * midlayer. It hands out QPNs and keys, owns an engine for the midlayer's own
 * QPs (QP0, QP1, protocols), and stands between the port and all engines: a
 * packet that arrives goes to the engine that owns its destination QP, a
 * packet that a program's engine sends is looked at before it may leave.
 */
#ifndef SOFTIB_HCA_H
#define SOFTIB_HCA_H

#include "fabric/fabric.h"
#include "rdma/ib_verbs.h"
#include "runtime/posix/rt_posix.h"

struct hca;
struct hca_set;
struct profile;

/**
 * hca_set_create() - make what all adapters of fabric @fab share; none is made yet
 * @rt: the loop of @fab and of all its adapters
 * Return: 0 and *@set; -ENOMEM
 */
int hca_set_create(struct rt *rt, struct fabric *fab, struct hca_set **set);
/** hca_set_profile() - its adapters report what @profile says, which is the caller's and stays.
 *  Context: before any is made */
void hca_set_profile(struct hca_set *set, const struct profile *profile);
/** hca_set_polled() - the adapters of the nodes @i with @polled[i] raise no interrupt (src/core/poll.c).
 *  @polled: the caller's, and stays; NULL: none is so. Context: before any is made */
void hca_set_polled(struct hca_set *set, const bool *polled);
/** hca_set_destroy() - when every adapter of @set is gone, and before its fabric */
void hca_set_destroy(struct hca_set *set);

/**
 * hca_create() - make the adapter of CA @node and register it as "softib0", or
 *  with the number that it has in its host
 * @node: index in the topology of the fabric of @set; its ports are attached
 * Context: softibd's loop. Return: 0 and *@hca; -ENOMEM, -EINVAL not a CA,
 * what ib_register_device() returned
 */
int hca_create(struct hca_set *set, int node, struct hca **hca);
/** hca_destroy() - unplug it: clients are told, programs see DEVICE_FATAL */
void hca_destroy(struct hca *hca);

/** hca_set_min_ack_timeout() - no ACK time-out of @hca's QPs shall be shorter; 0, as it is
 *  made: they are exact. Context: before anybody uses it */
void hca_set_min_ack_timeout(struct hca *hca, uint32_t us);

/** hca_windows_operations() - requests done by windows, by all programs of the fabric */
uint64_t hca_windows_operations(struct hca_set *set);

/** hca_profile_less() - what its profile has more of than @hca: profile_apply() */
unsigned hca_profile_less(const struct hca *hca, char *less, size_t bytes);

/** hca_has_qp() - is there a queue pair of this number (2 and up)? */
bool hca_has_qp(const struct hca *hca, uint32_t qpn);
/** hca_source_qpn() - the QP that is connected to (@dlid, @dest_qpn); 0 none:
 *  packets of connected services do not say who sent them */
uint32_t hca_source_qpn(const struct hca *hca, uint16_t dlid, uint32_t dest_qpn);
/**
 * hca_raise() - an asynchronous event without its cause
 * @port: of an event that no object has; 0: port 1
 * @qpn: not 0: of this QP, or of its (send) CQ or its SRQ, as the event says
 * @type: enum ib_event_type
 * Return: 0; -EINVAL no such QP, or the event is none of its; without @qpn:
 *	   the event is not a port's or the device's
 */
int hca_raise(struct hca *hca, int port, uint32_t qpn, uint32_t type);

#endif
