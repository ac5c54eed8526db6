/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What session.c and session_manager.c share: children, and what becomes of them. */
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

/** session_file() - @path becomes @dir/@name. Return: 0; -1 too long */
int session_file(char path[PATH_MAX], const char *dir, const char *name);
/** session_cannot_start() - complain of errno. Return: -1 */
int session_cannot_start(const char *what);
/** session_child_output() - into the log of this name */
void session_child_output(struct session *s, const char *log);
/** session_next_event() - at most until @deadline_ms (0: for ever)
 *  @fd: EVENT_READABLE is this one's; -1: none */
enum event session_next_event(struct session *s, int fd, uint64_t deadline_ms);

/** session_start_manager() - s->sm on the first node. Return: 0; -1 (said) */
int session_start_manager(struct session *s);
/** session_wait_active() - until it has brought all ports to Active, telling
 *  people when that lasts. Return: 0; -1 (said) */
int session_wait_active(struct session *s);

/** session_end_programs() - those in the networks of @dir's nodes; softibd still runs,
 *  or it is not known which they are */
void session_end_programs(const char *dir);

#endif
