/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* --polled: the nodes whose adapters raise no interrupt. */
#ifndef SOFTIB_DAEMON_POLLED_H
#define SOFTIB_DAEMON_POLLED_H

#include <stdbool.h>
#include <stddef.h>

#include "fabric/topology.h"

/** polled_nodes() - @text: "all", or names of nodes with commas
 *  @polled: set to a list by the node's index, for free()
 *  Return: 0; -EINVAL and a message in @err; -ENOMEM */
int polled_nodes(const struct topology *topo, const char *text, bool **polled, char *err,
		 size_t err_bytes);

#endif
