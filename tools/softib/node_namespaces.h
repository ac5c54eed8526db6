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
/** node_boot_all() - make those of all nodes of @dir, so that each is reached from
 *  another before a program runs on it. Return: 0; -1 (said) */
int node_boot_all(const char *dir);
/** node_can_have_network() - does the kernel let this user make such namespaces? */
bool node_can_have_network(void);
/** node_in_namespace() - is @fd this process's own of this @kind ("user")? */
bool node_in_namespace(int fd, const char *kind);

/** node_set_up() - in new namespaces: the host name, interfaces and addresses, a /sys
 *  that shows the node's interfaces and adapters (@files), /etc/hosts (node_setup.c).
 *  The caller has the lock of the fabric's namespaces. Return: 0; -errno */
int node_set_up(const struct node_place *at, const char *files);

/* --- node_addresses.c ---
 * a node is that of softibd's answer to "nodes" */

/** node_add_addresses() - to the interfaces of this network. Return: 0; -errno */
int node_add_addresses(struct json_object *node);
/** node_add_address() - @text ("10.1.0.7/16") to @interface of this network; what is no
 *  link-local one to the loopback interface if there is no such. Return: 0; -errno */
int node_add_address(const char *interface, const char *text);
/** node_write_hosts() - the fabric's file of all nodes, unless it is there.
 *  Return: 0; -errno */
int node_write_hosts(const char *dir);
/** node_lay_hosts() - that file over /etc/hosts. Return: 0; -errno */
int node_lay_hosts(const char *dir);

#endif
