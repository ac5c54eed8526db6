/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The opening message of every endpoint, and the list of devices that may be requested by it. */
#ifndef SOFTIB_ACCESS_DEVICES_H
#define SOFTIB_ACCESS_DEVICES_H

#include "abi/session.h"
#include "rdma/ib_verbs.h"

/**
 * devices_open_is_sound() - check that a message is a struct abi_open
 * @bytes: length of the message; @open: set to a copy of it
 * Return: 0; -EINVAL: it is none; -EPROTONOSUPPORT: it has another version of the ABI
 */
int devices_open_is_sound(const void *message, size_t bytes, struct abi_open *open);
/** devices_node() - Return: @name, or, if that is "", the name of the node of the first device; NULL:
 *  there is no device */
const char *devices_node(const struct rt *rt, const char *name);
/** devices_answer_list() - answer ABI_OPEN_LIST on @fd by the adapters of @node, or by -ENOENT if it
 *  has none. Never blocks. Return: 0; -errno of send() */
int devices_answer_list(const struct rt *rt, int fd, const char *node);

#endif
