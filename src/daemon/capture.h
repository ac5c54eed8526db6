/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Captures: packets on cables, copied into a ring for one reader. */
#ifndef SOFTIB_DAEMON_CAPTURE_H
#define SOFTIB_DAEMON_CAPTURE_H

#include "fabric/filter.h"

#define CAPTURE_RING_BYTES     (8u << 20) /* unless asked otherwise */
#define CAPTURE_RING_BYTES_MAX (1u << 30)

struct capture;

/** struct capture_config - what is seen, and how much of it kept */
struct capture_config {
	int node;	     /* index; -1: all */
	int port;	     /* 0: all of the node */
	uint32_t snap_bytes; /* of a packet; 0: all */
	uint32_t ring_bytes; /* a power of two */
	struct fab_filter filter;
};

/**
 * capture_start() - copy from now on every packet that @config means
 * Return: 0 and *@capture; -ENOMEM, -errno of the system
 */
int capture_start(struct rt *rt, struct fabric *fab, const struct capture_config *config,
		  struct capture **capture);
/** capture_stop() - no more; what was copied stays readable */
void capture_stop(struct capture *capture);
/** capture_dup_fds() - the reader's: memfd, doorbell (abi/capture.h).
 *  Return: 0; -errno */
int capture_dup_fds(const struct capture *capture, int fd[2]);

#endif
