/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* One command on every node at the same time: 'softib exec --all'. */
#ifndef SOFTIB_TOOLS_EVERYWHERE_H
#define SOFTIB_TOOLS_EVERYWHERE_H

#include "softib.h"

/** everywhere_run() - run @argv on every node with an adapter of @at->dir, print what
 *  they print line by line behind the node's name, and pass signals on
 *  @at: without a node; its other choices are those of each
 *  Return: the worst of their exit statuses; EXIT_FAILURE (said) */
int everywhere_run(const struct node_place *at, char **argv);

#endif
