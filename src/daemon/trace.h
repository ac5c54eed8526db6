/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Traces: events of trace points (runtime/trace.h), which are copied into the ring of each reader
 * that wants them. A module is switched on while a reader wants its events. Without a reader, all
 * modules are off.
 */
#ifndef SOFTIB_DAEMON_TRACE_H
#define SOFTIB_DAEMON_TRACE_H

#include "runtime/trace.h"

#define TRACE_RING_BYTES     (1u << 20) /* the default */
#define TRACE_RING_BYTES_MAX (1u << 28)
#define TRACE_MODULES_MAX    64 /* that a reader may name */

struct trace;
struct reader;

/** struct trace_config - which events a reader wants
 *  @node: NULL: of all nodes
 *  @modules: names, also of modules that are not loaded yet; num_modules 0: all
 *  @ring_bytes: a power of two */
struct trace_config {
	const char *node;
	const char *modules[TRACE_MODULES_MAX];
	size_t num_modules;
	uint32_t ring_bytes;
};

/** trace_create() - Return: the traces of the fabric whose loop is @rt; NULL: no memory */
struct trace *trace_create(struct rt *rt);
/** trace_destroy() - free @trace. Context: all readers have been stopped */
void trace_destroy(struct trace *trace);

/** trace_reader_start() - begin to copy events. @config: copied
 *  Return: 0 and *@reader, which its stop() ends; -errno */
int trace_reader_start(struct trace *trace, const struct trace_config *config,
		       struct reader **reader);
/** trace_knows() - has the stack, including loaded modules and programs, trace points of this
 *  module? */
bool trace_knows(const struct trace *trace, const char *module);
/** trace_each_point() - call @fn for every trace point there is; @node: "" of all */
void trace_each_point(struct trace *trace,
		      void (*fn)(void *ctx, const char *module, const char *node,
				 const struct rt_trace_point *point),
		      void *ctx);

#endif
