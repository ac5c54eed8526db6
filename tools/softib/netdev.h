/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Network interfaces of a node, created in its network namespace. */
#ifndef SOFTIB_TOOLS_NETDEV_H
#define SOFTIB_TOOLS_NETDEV_H

#include <linux/netlink.h>

#include "softib.h"

/** netdev_up() - bring @interface up. 0; -errno */
int netdev_up(const char *interface);

/** netdev_ask_kernel() - send a request of rtnetlink(7) with NLM_F_ACK. Return: 0; -errno */
int netdev_ask_kernel(const struct nlmsghdr *req);

/** netdev_delete() - delete @interface, which need not exist. Return: 0; -errno */
int netdev_delete(const char *interface);

/** netdev_is_possible() - may this process open /dev/net/tun? */
bool netdev_is_possible(void);

/**
 * netdev_ipoib() - create the interface @interface for IP over InfiniBand on port @port of
 * @adapter, one of the node's, in the partition of @pkey. It is in this process's network namespace, up and
 * without addresses.
 *
 * softibd holds the interface, which ends with the fabric, and is notified by the
 * namespace of its addresses.
 * Return: 0; -errno; -EPROTO softibd rejected the request, after printing a message
 */
int netdev_ipoib(const struct node_place *at, const char *adapter, unsigned port,
		 unsigned pkey, const char *interface);

/** netdev_ethernet() - the same for a port of Ethernet: a device with the port's MAC address
 *  @vlan: id of the VLAN whose frames it has; 0: the untagged ones */
int netdev_ethernet(const struct node_place *at, const char *adapter, unsigned port, unsigned vlan,
		    const char *interface);

/* --- node_child.c: interfaces of further partitions, and the modes of all --- */

/** struct node_child - an interface such as "ib0.8001"
 *  @at: a node with a network of its own
 *  @pkey: with the bit of full membership; 0xffff: of ib0 itself */
struct node_child {
	const struct node_place *at;
	unsigned port, pkey;
};

enum node_child_action { NODE_CHILD_CREATE, NODE_CHILD_DELETE, NODE_CHILD_CONNECTED,
			 NODE_CHILD_DATAGRAM };

/** node_child_name() - the name of the interface whose parent is @parent */
void node_child_name(char name[32], const char *parent, unsigned pkey);

/** node_child_act() - create or delete it, or set its mode and its MTU. Return: 0; -1, after
 *  printing a message */
int node_child_act(const struct node_child *child, enum node_child_action action);

#endif
