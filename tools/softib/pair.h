/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A server and its client, each on a node: from the first's start to the last's end. */
#ifndef SOFTIB_TOOLS_PAIR_H
#define SOFTIB_TOOLS_PAIR_H

#include "softib.h"

/** struct pair_side - one of the two programs */
struct pair_side {
	struct node_place at;
	char **argv;
	/* --- private to pair.c --- */
	pid_t pid; /* 0: not running */
	int status;
	bool asked; /* by us to end: its status counts no more */
};

/** struct pair - what `softib pair` is told */
struct pair {
	struct pair_side server, client;
	const char *ready_text; /* NULL: ready when it listens */
	bool no_wait, end_server, quiet;
	long timeout_s; /* for the server to be ready; 0: no limit */
};

/** pair_run() - start the server, wait until it is ready, start the client, wait
 *  for both. A client that fails ends the server; signals reach both.
 *  Return: the worse of the two exit statuses */
int pair_run(struct pair *pair);

#endif
