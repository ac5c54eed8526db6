/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Captures: packets on cables, copied into a ring for one reader. */
#ifndef SOFTIB_DAEMON_CAPTURE_H
#define SOFTIB_DAEMON_CAPTURE_H

#include "fabric/filter.h"

#define CAPTURE_RING_BYTES     (8u << 20) /* the default */
#define CAPTURE_RING_BYTES_MAX (1u << 30)

struct reader;

/** struct capture_config - which packets are captured, and how much of each */
struct capture_config {
	int node;	     /* index; -1: all */
	int port;	     /* 0: all of the node */
	uint32_t snap_bytes; /* of a packet; 0: all */
	uint32_t ring_bytes; /* a power of two */
	struct fab_filter filter;
};

/**
 * capture_start() - begin to copy every packet that @config selects
 * Return: 0 and *@reader, which its stop() ends; -ENOMEM; -errno of the system
 */
int capture_start(struct rt *rt, struct fabric *fab, const struct capture_config *config,
		  struct reader **reader);

#endif
