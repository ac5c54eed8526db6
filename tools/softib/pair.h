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
	bool asked; /* softib has ended it, so its status is ignored */
};

/** struct pair - the arguments of `softib pair` */
struct pair {
	struct pair_side server, client;
	const char *ready_text; /* NULL: the server is ready when it listens */
	bool no_wait, end_server, quiet;
	long timeout_s; /* until the server is ready; 0: no limit */
};

/** pair_run() - start the server, wait until it is ready, start the client, and wait for
 *  both. If the client fails, the server is ended; signals are forwarded to both.
 *  Return: the larger of the two exit statuses; EXIT_FAILURE if the server did not get ready */
int pair_run(struct pair *pair);

#endif
