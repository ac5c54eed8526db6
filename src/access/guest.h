/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the programs of a node may take of softibd's descriptors and memory, together: a user who
 * starts many processes, each of which keeps within its own limits, takes no more than the share of
 * the nodes on which they are. A session is a guest of its node from its opening message on.
 */
#ifndef SOFTIB_ACCESS_GUEST_H
#define SOFTIB_ACCESS_GUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/list.h"
#include "runtime/rt.h"

#define GUEST_NODE_BYTES  ((size_t)256 << 20) /* of softibd's memory, for the programs of a node */
#define GUEST_TOTAL_BYTES ((size_t)1 << 30)   /* for the programs of all nodes */
#define GUEST_FREE_BYTES  ((size_t)64 << 10)  /* that each session may have beyond these */

struct guest_node;

/** struct guest - a session's part: zeroed, then guest_arrive() */
struct guest {
	struct list_head newcomer; /* in the list of those that have said nothing yet */
	void (*drop)(struct guest *guest);
	struct rt *rt;
	struct guest_node *node; /* NULL: it has said nothing yet */
	int fd;
	unsigned int fds;
	size_t bytes;
};

/**
 * guest_arrive() - a connection was accepted
 * @fd: its descriptor; @fds: how many a session of its kind has
 * @drop: close it; calls guest_leave(). It is called for the oldest newcomers when descriptors are
 *        scarce and many connections have said nothing
 */
void guest_arrive(struct guest *guest, struct rt *rt, int fd, unsigned int fds,
		  void (*drop)(struct guest *guest));
/** guest_open() - it is a session of a program on @node.
 *  Return: 0; -EMFILE the programs of the node have their share of the descriptors; -ENOMEM */
int guest_open(struct guest *guest, const char *node);
/** guest_leave() - the session ends. What it has taken of the memory remains the node's */
void guest_leave(struct guest *guest);
/** guest_take() - @bytes of memory for something of the session.
 *  Return: what guest_give() is called with; NULL: there is no room */
struct guest_node *guest_take(struct guest *guest, size_t bytes);
/** guest_give() - they are free again. @guest: NULL when the session has ended */
void guest_give(struct guest_node *node, struct guest *guest, size_t bytes);

#endif
