/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The option --polled: the nodes whose adapters raise no interrupts (src/core/poll.c). */
#ifndef SOFTIB_DAEMON_POLLED_H
#define SOFTIB_DAEMON_POLLED_H

#include <stdbool.h>
#include <stddef.h>

#include "fabric/topology.h"

/** polled_nodes() - parse the argument of --polled
 *  @text: "all", or names of nodes, separated by commas
 *  @polled: set to an array, indexed by node, which the caller frees
 *  Return: 0; -EINVAL and a message in @err; -ENOMEM */
int polled_nodes(const struct topology *topo, const char *text, bool **polled, char *err,
		 size_t err_bytes);

#endif
