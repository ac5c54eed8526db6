/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The quota of a node: the descriptors and the memory of softibd that all programs of the node may use
 * together. Limits per process would not stop a user who starts many processes. A session counts
 * against the quota of its node from its opening message on.
 */
#ifndef SOFTIB_ACCESS_GUEST_H
#define SOFTIB_ACCESS_GUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/list.h"
#include "runtime/rt.h"

#define GUEST_NODE_BYTES  ((size_t)256 << 20) /* of softibd's memory, for the programs of one node */
#define GUEST_TOTAL_BYTES ((size_t)1 << 30)   /* for the programs of all nodes together */
#define GUEST_FREE_BYTES  ((size_t)64 << 10)  /* a session may have these even if the quota is used up */

struct guest_node;

/** struct guest - the share of one session. It begins zeroed; guest_arrive() prepares it */
struct guest {
	struct list_head newcomer; /* in the list of sessions without an opening message */
	void (*drop)(struct guest *guest);
	struct rt *rt;
	struct guest_node *node; /* NULL: the opening message has not arrived */
	int fd;
	unsigned int fds;
	size_t bytes;
};

/**
 * guest_arrive() - count the descriptors of a connection that was accepted
 * @fd: descriptor of the connection; @fds: number of descriptors that such a session will have
 * @drop: closes the connection and calls guest_leave(). It is called for the oldest connections
 *        without an opening message when there are many of these and descriptors are scarce
 */
void guest_arrive(struct guest *guest, struct rt *rt, int fd, unsigned int fds,
		  void (*drop)(struct guest *guest));
/** guest_open() - charge the session to @node, which its opening message names
 *  Return: 0; -EMFILE: the node has no descriptors left in its quota; -ENOMEM */
int guest_open(struct guest *guest, const char *node);
/** guest_join() - charge @fds descriptors of @guest, which begins zeroed and ends by guest_leave(), to the
 *  node of @of, which it may outlive. @fd: one of these descriptors. Return: as guest_open() */
int guest_join(struct guest *guest, const struct guest *of, int fd, unsigned int fds);
/** guest_leave() - the session ends. Memory that it has taken stays charged to the node until
 *  guest_give() */
void guest_leave(struct guest *guest);
/** guest_take() - charge @bytes of memory that the session causes softibd to allocate
 *  Return: the node that is charged, for guest_give(); NULL: the quota is used up */
struct guest_node *guest_take(struct guest *guest, size_t bytes);
/** guest_give() - release a charge. @guest: NULL: the session has ended */
void guest_give(struct guest_node *node, struct guest *guest, size_t bytes);

#endif
