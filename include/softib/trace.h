/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Trace points of a module: `softib trace NODE --modules NAME` prints their events live, and
 * `softib trace --list` lists them while the module is loaded. In a file of the module, or in a
 * header of several:
 *
 *	TRACE_POINT(echo_received, (u32 qpn, size_t bytes), (qpn, bytes),
 *		    "qpn=0x%06x bytes=%zu", "A message arrived.")
 *	...
 *	trace_echo_received(qp->device, qp->port, qp->qp_num, wc->byte_len);
 *
 * The format consists of name=value pairs, one space between them and none inside. While nobody
 * traces the module, a trace point reads a byte of the module's memory and does nothing else.
 */
#ifndef SOFTIB_TRACE_H
#define SOFTIB_TRACE_H

#include "softib/module.h"

#pragma GCC visibility push(default)

/** softib_trace() - report an event of @point, which is on
 *  @device, @port: where it happened; NULL and 0: at the node
 *  Context: any, but no thread that the module has made by itself */
__attribute__((format(printf, 5, 6)))
void softib_trace(const struct module *module, const struct softib_trace_point *point,
		  const struct ib_device *device, u32 port, const char *fmt, ...);

#pragma GCC visibility pop

#define SOFTIB_TRACE_UNPAREN_(...)    __VA_ARGS__
#define SOFTIB_TRACE_UNPAREN(list)    SOFTIB_TRACE_UNPAREN_ list

/** TRACE_POINT() - declare trace_NAME(device, port, ...)
 *  @proto, @args: the further parameters in parentheses, one at least, and what @format prints
 *  @doc: one sentence: what has happened */
#define TRACE_POINT(point, proto, args, fmt, text)                                       \
	static struct softib_trace_point softib_trace_##point                            \
		__attribute__((used, aligned(8), section("softib_tracepoint"))) = {           \
			.name = #point, .format = (fmt), .doc = (text)};                 \
	static inline void trace_##point(const struct ib_device *device, u32 port,       \
					 SOFTIB_TRACE_UNPAREN(proto))                    \
	{                                                                                \
		if (unlikely(softib_trace_##point.on))                                   \
			softib_trace(THIS_MODULE, &softib_trace_##point, device, port,   \
				     fmt, SOFTIB_TRACE_UNPAREN(args));                   \
	}

#endif
