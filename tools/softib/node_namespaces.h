/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Creates, sets up and enters a node's network, UTS and mount namespace. */
#ifndef SOFTIB_TOOLS_NODE_NAMESPACES_H
#define SOFTIB_TOOLS_NODE_NAMESPACES_H

#include "abi/namespaces.h"
#include "softib.h"

/** node_join() - enter the namespaces of the node, which are created for its first
 *  program. This clears the parent-death signal (children_begin()).
 *  @files: of sysfs_prepare()
 *  Return: 0; -1, after printing a message; some may have been entered */
int node_join(const struct node_place *at, const char *files);
/** node_boot_all() - create those of all nodes of @dir, so that each node is reachable
 *  before a program runs on it. Return: 0; -1, after printing a message */
int node_boot_all(const char *dir);
/** node_try_network() - may this user create such namespaces? None is left.
 *  Return: 0; -errno, as of unshare(2) */
int node_try_network(void);
/** node_namespace_advice() - what to do about the @error (-errno) of a system call that creates or
 *  enters namespaces. Return: static text, a sentence without its full stop */
const char *node_namespace_advice(int error);
/** node_in_namespace() - is @fd this process's namespace of this @kind ("user")? */
bool node_in_namespace(int fd, const char *kind);

/** node_set_up() - set up new namespaces: the host name, interfaces and addresses, a /sys
 *  with the node's interfaces and adapters (@files), /etc/hosts (node_setup.c). The
 *  caller holds the lock of the fabric's namespaces. Return: 0; -errno */
int node_set_up(const struct node_place *at, const char *files);

/* --- node_addresses.c ---
 * @node is an element of softibd's answer to "nodes" */

/** node_add_addresses() - add the node's addresses to the interfaces of this network
 *  namespace. Return: 0; -errno */
int node_add_addresses(struct json_object *node);
/** node_add_address() - add @text ("10.1.0.7/16") to @interface; if that does not exist, add
 *  it to the loopback interface unless it is link-local. Return: 0; -errno */
int node_add_address(const char *interface, const char *text);
/** node_write_names() - write the fabric's hosts file with all nodes, and its gai.conf(5), unless
 *  they exist. Return: 0; -errno */
int node_write_names(const char *dir);
/** node_lay_names() - bind-mount them over those in /etc. Return: 0; -errno */
int node_lay_names(const char *dir);

#endif
