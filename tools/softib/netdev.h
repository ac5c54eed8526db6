/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Network interfaces of a node, made in its network namespace. */
#ifndef SOFTIB_TOOLS_NETDEV_H
#define SOFTIB_TOOLS_NETDEV_H

#include "softib.h"

/** netdev_up() - bring @interface up. 0; -errno */
int netdev_up(const char *interface);

/** netdev_is_possible() - is there a /dev/net/tun that this process may open? */
bool netdev_is_possible(void);

/**
 * netdev_ipoib() - IP over InfiniBand on the adapter's port @port, as the interface
 * @interface of this process's network namespace, up and without addresses
 *
 * softibd holds the interface, which ends with the fabric, and hears from the namespace
 * which addresses it gets.
 * Return: 0; -errno of making it; -EPROTO softibd refused (said)
 */
int netdev_ipoib(const struct node_place *at, unsigned port, const char *interface);

#endif
