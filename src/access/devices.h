/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Which devices there are: what every endpoint answers before one is open. */
#ifndef SOFTIB_ACCESS_DEVICES_H
#define SOFTIB_ACCESS_DEVICES_H

#include "abi/session.h"
#include "rdma/ib_verbs.h"

/**
 * devices_open_is_sound() - is this message a struct abi_open?
 * @bytes: its length; @open: filled
 * Return: 0; -EINVAL; -EPROTONOSUPPORT another version
 */
int devices_open_is_sound(const void *message, size_t bytes, struct abi_open *open);
/** devices_node() - "" is the node of the first device. NULL: there is none */
const char *devices_node(const struct rt *rt, const char *name);
/** devices_answer_list() - ABI_OPEN_LIST on @fd: the adapters of @node, or
 *  -ENOENT. Never blocks. Return: 0; -errno of sending */
int devices_answer_list(const struct rt *rt, int fd, const char *node);

#endif
