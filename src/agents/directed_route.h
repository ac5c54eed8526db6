/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The subnet management interface's rules for directed-route SMPs (IBA v1
 * 14.2.2.2, C14-6 to C14-13): from the ingress port of an SMP they derive where
 * it goes next, and update the hop pointer and the return path in the MAD. The
 * switches of the fabric and the SMI of a channel adapter use the same functions.
 */
#ifndef SOFTIB_AGENTS_DIRECTED_ROUTE_H
#define SOFTIB_AGENTS_DIRECTED_ROUTE_H

#include "base/types.h"

#define AG_DR_MAX_HOPS 63

enum ag_dr_verdict {
	AG_DR_DISCARD,	/* drop it silently */
	AG_DR_LOCAL,	/* for this node's SMA, or its SM for a response */
	AG_DR_LID_ROUTE, /* leave by LID routing towards DrDLID (or DrSLID) */
	AG_DR_FORWARD,	/* leave through *out_port */
};

/**
 * struct ag_dr_at - where the SMP is
 * @is_switch: a switch forwards between ports, a CA or router never does
 * @num_ports: physical ports of the node
 * @port: its ingress port; 0: it was issued by this node
 */
struct ag_dr_at {
	bool is_switch;
	uint8_t num_ports;
	uint8_t port;
};

/**
 * ag_dr_receive() - an SMP of class 0x81 arrived at at->port
 * @smp: 256 bytes; hop pointer and return path are updated
 * @out_port: of AG_DR_FORWARD
 * Spec: C14-9 (requests), C14-13 (responses)
 */
enum ag_dr_verdict ag_dr_receive(const struct ag_dr_at *at, uint8_t *smp, uint8_t *out_port);

/**
 * ag_dr_send() - this node sends an SMP of class 0x81: a request that it issues,
 * or the answer of its SMA
 * @out_port: of AG_DR_FORWARD
 * Spec: C14-7 (requests), C14-11 (responses)
 */
enum ag_dr_verdict ag_dr_send(const struct ag_dr_at *at, uint8_t *smp, uint8_t *out_port);

#endif
