/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* One command on every node at the same time: 'softib exec --all'. */
#ifndef SOFTIB_TOOLS_EVERYWHERE_H
#define SOFTIB_TOOLS_EVERYWHERE_H

#include "softib.h"

/** everywhere_run() - run @argv on every node of @at->dir that has an adapter, print the
 *  output line by line after the node's name, and forward signals
 *  @at: without a node; its other settings apply to each
 *  Return: the largest of their exit statuses; EXIT_FAILURE, after printing a message */
int everywhere_run(const struct node_place *at, char **argv);

#endif
