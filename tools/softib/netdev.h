/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Network interfaces of a node, made in its network namespace. */
#ifndef SOFTIB_TOOLS_NETDEV_H
#define SOFTIB_TOOLS_NETDEV_H

#include <linux/netlink.h>

#include "softib.h"

/** netdev_up() - bring @interface up. 0; -errno */
int netdev_up(const char *interface);

/** netdev_ask_kernel() - one request of rtnetlink(7) with NLM_F_ACK. 0; -errno */
int netdev_ask_kernel(const struct nlmsghdr *req);

/** netdev_delete() - @interface, which may be gone already. 0; -errno */
int netdev_delete(const char *interface);

/** netdev_is_possible() - is there a /dev/net/tun that this process may open? */
bool netdev_is_possible(void);

/**
 * netdev_ipoib() - IP over InfiniBand on the adapter's port @port in the partition of
 * @pkey, as the interface @interface of this process's network namespace, up and without
 * addresses
 *
 * softibd holds the interface, which ends with the fabric, and hears from the namespace
 * which addresses it gets.
 * Return: 0; -errno of making it; -EPROTO softibd refused (said)
 */
int netdev_ipoib(const struct node_place *at, unsigned port, unsigned pkey,
		 const char *interface);

/* --- node_child.c: interfaces of further partitions --- */

/** struct node_child - one: "ib0.8001"
 *  @at: a node with a network of its own
 *  @pkey: with the bit of full membership */
struct node_child {
	const struct node_place *at;
	unsigned port, pkey;
};

/** node_child_name() - of the interface whose parent is called @parent */
void node_child_name(char name[32], const char *parent, unsigned pkey);

/** node_child_act() - make it, or delete it. Return: 0; -1 (said) */
int node_child_act(const struct node_child *child, bool make);

#endif
