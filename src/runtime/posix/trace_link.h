/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A program that is part of a fabric's stack, such as the subnet manager, has trace points of
 * its own. It tells softibd of them by the control socket ("trace_provide" in docs/CONTROL.md)
 * and gets a socket: softibd sends a byte, 1 or 0, when somebody begins or ceases to trace the
 * module, and the program an event a message, its name and its name=value pairs, each with a 0 at
 * its end. Neither waits for the other.
 */
#ifndef SOFTIB_RUNTIME_TRACE_LINK_H
#define SOFTIB_RUNTIME_TRACE_LINK_H

#include "runtime/posix/rt_posix.h"
#include "runtime/trace.h"

struct rt_trace_link;

/**
 * rt_trace_link_open() - let users of the fabric in @dir trace @module of this program
 * @node: that the program is on
 * @points: @num of @module
 * Context: may wait for softibd for a second
 * Return: 0 and *@link; -errno: nobody is there, or a softibd that knows no such thing
 */
int rt_trace_link_open(struct rt *rt, const char *dir, const char *node, enum rt_trace_module module,
		       const struct rt_trace_point *points, size_t num,
		       struct rt_trace_link **link);
void rt_trace_link_close(struct rt_trace_link *link);

#endif
