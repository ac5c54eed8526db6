/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The namespaces of a node, as descriptors that travel over the control socket.
 *
 * softib makes them when the first program of a node is started and hands them to
 * softibd, which keeps them for the next programs: they last as long as softibd or
 * one of those programs does, whichever way it ends.
 */
#ifndef SOFTIB_ABI_NAMESPACES_H
#define SOFTIB_ABI_NAMESPACES_H

/** enum abi_node_fd - their order in a message */
enum abi_node_fd {
	ABI_NODE_NET,
	ABI_NODE_UTS,
	ABI_NODE_MNT,
	ABI_NODE_ROOT, /* "/" in that mount namespace: a chroot's own, in a chroot */
	ABI_NODE_USER, /* the one that owns them, which all nodes of a fabric share */
	ABI_NODE_FDS
};

#endif
