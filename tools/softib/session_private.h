/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Shared by session.c and session_manager.c: child processes and their output and end. */
#ifndef SOFTIB_TOOLS_SESSION_PRIVATE_H
#define SOFTIB_TOOLS_SESSION_PRIVATE_H

#include "children.h"
#include "softib.h"

enum event {
	EVENT_TIMEOUT,
	EVENT_READABLE,
	EVENT_STOP,
	EVENT_DAEMON_ENDED,
	EVENT_COMMAND_ENDED
};

/** session_file() - set @path to @dir/@name. Return: 0; -1 too long */
int session_file(char path[PATH_MAX], const char *dir, const char *name);
/** session_cannot_start() - print a message with errno. Return: -1 */
int session_cannot_start(const char *what);
/** session_child_output() - redirect a child's output to the log @log */
void session_child_output(struct session *s, const char *log);
/** session_next_event() - wait for an event, at most until @deadline_ms (0: no limit)
 *  @fd: EVENT_READABLE means that this descriptor is readable; -1: none */
enum event session_next_event(struct session *s, int fd, uint64_t deadline_ms);

/** session_start_manager() - start s->sm on the first node
 *  Return: 0; -1, after printing a message */
int session_start_manager(struct session *s);
/** session_wait_active() - wait until all ports are Active, with progress messages if it
 *  takes long. Return: 0; -1, after printing a message */
int session_wait_active(struct session *s);

/** session_end_programs() - end the programs in the network namespaces of @dir's nodes;
 *  softibd must still run, because it knows these namespaces */
void session_end_programs(const char *dir);

#endif
