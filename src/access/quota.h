/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The quota of a node: the descriptors and the memory of softibd that all programs of the node may use
 * together. Limits per process would not stop a user who starts many processes. A session counts
 * against the quota of its node from its opening message on.
 */
#ifndef SOFTIB_ACCESS_QUOTA_H
#define SOFTIB_ACCESS_QUOTA_H

#include <stdbool.h>
#include <stddef.h>

#include "base/list.h"
#include "runtime/rt.h"

#define QUOTA_NODE_BYTES  ((size_t)256 << 20) /* of softibd's memory, for the programs of one node */
#define QUOTA_TOTAL_BYTES ((size_t)1 << 30)   /* for the programs of all nodes together */
#define QUOTA_FREE_BYTES  ((size_t)64 << 10)  /* a session may have these even if the quota is used up */

struct quota_node;

/** struct quota_share - the share of one session. It begins zeroed; quota_arrive() prepares it */
struct quota_share {
	struct list_head newcomer; /* in the list of sessions without an opening message */
	void (*drop)(struct quota_share *quota);
	struct rt *rt;
	struct quota_node *node; /* NULL: the opening message has not arrived */
	int fd;
	unsigned int fds;
	size_t bytes;
};

/**
 * quota_arrive() - count the descriptors of a connection that was accepted
 * @fd: descriptor of the connection; @fds: number of descriptors that such a session will have
 * @drop: closes the connection and calls quota_leave(). It is called for the oldest connections
 *        without an opening message when there are many of these and descriptors are scarce
 */
void quota_arrive(struct quota_share *quota, struct rt *rt, int fd, unsigned int fds,
		  void (*drop)(struct quota_share *quota));
/** quota_open() - charge the session to @node, which its opening message names
 *  Return: 0; -EMFILE: the node has no descriptors left in its quota; -ENOMEM */
int quota_open(struct quota_share *quota, const char *node);
/** quota_join() - charge @fds descriptors of @quota, which begins zeroed and ends by quota_leave(), to the
 *  node of @of, which it may outlive. @fd: one of these descriptors. Return: as quota_open() */
int quota_join(struct quota_share *quota, const struct quota_share *of, int fd, unsigned int fds);
/** quota_leave() - the session ends. Memory that it has taken stays charged to the node until
 *  quota_give() */
void quota_leave(struct quota_share *quota);
/** quota_take() - charge @bytes of memory that the session causes softibd to allocate
 *  Return: the node that is charged, for quota_give(); NULL: the quota is used up */
struct quota_node *quota_take(struct quota_share *quota, size_t bytes);
/** quota_give() - release a charge. @quota: NULL: the session has ended */
void quota_give(struct quota_node *node, struct quota_share *quota, size_t bytes);

#endif
