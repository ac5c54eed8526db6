/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A node's own network, UTS and mount namespace: made, entered, and what is in them. */
#ifndef SOFTIB_TOOLS_NODE_NAMESPACES_H
#define SOFTIB_TOOLS_NODE_NAMESPACES_H

#include "abi/namespaces.h"
#include "softib.h"

/** node_join() - enter the namespaces of the node, which are made for its first
 *  program. The parent-death signal is lost (children_begin()).
 *  @files: of sysfs_prepare()
 *  Return: 0; -1 (said): some may have been entered */
int node_join(const struct node_place *at, const char *files);
/** node_can_have_network() - does the kernel let this user make such namespaces? */
bool node_can_have_network(void);
/** node_in_namespace() - is @fd this process's own of this @kind ("user")? */
bool node_in_namespace(int fd, const char *kind);

/** node_set_up() - in new namespaces: the host name, the loopback interface, a /sys
 *  that shows the node's network interfaces and adapters (@files), /etc/hosts
 *  (node_setup.c). Return: 0; -errno */
int node_set_up(const struct node_place *at, const char *files);

#endif
