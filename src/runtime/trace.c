/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Trace points: switches, sources, and the way of an event to the sink. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "runtime/rt_private.h"

static const char *const module_name[RT_TRACE_MODULES] = {
	[RT_TRACE_CM] = "cm",
	[RT_TRACE_RDMA_CM] = "rdma_cm",
	[RT_TRACE_SA] = "sa",
	[RT_TRACE_MAD] = "mad",
	[RT_TRACE_QP] = "qp",
	[RT_TRACE_HCA] = "hca",
	[RT_TRACE_ETH] = "eth",
	[RT_TRACE_IPOIB] = "ipoib",
	[RT_TRACE_SDP] = "sdp",
	[RT_TRACE_SRP] = "srp",
	[RT_TRACE_SRPT] = "srpt",
	[RT_TRACE_SM] = "sm",
};

const char *rt_trace_module_name(enum rt_trace_module module)
{
	return module_name[module];
}

enum rt_trace_module rt_trace_module_find(const char *name)
{
	enum rt_trace_module module = 0;

	while (module < RT_TRACE_MODULES && strcmp(module_name[module], name))
		module++;
	return module;
}

/* --- events ---------------------------------------------------------------- */

static const char *or_empty(const char *text)
{
	return text ? text : "";
}

static void pass(struct rt_trace_at at, const char *module, const char *name, const char *text)
{
	const struct rt_trace_event event = {
		.module = module,
		.name = name,
		.node = or_empty(at.node),
		.device = or_empty(at.device),
		.port = at.port,
		.text = text,
	};
	struct rt_trace_sink *sink = rt_trace(at.rt)->sink;

	if (sink)
		sink->event(sink, &event);
}

void rt_trace_emit(struct rt_trace_at at, const struct rt_trace_point *point, const char *fmt, ...)
{
	char text[RT_TRACE_TEXT_BYTES];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	pass(at, module_name[point->module], point->name, text);
}

void rt_trace_emit_own(struct rt *rt, const struct rt_trace_source *source, struct rt_trace_at at,
		       const char *name, const char *text)
{
	char cut[RT_TRACE_TEXT_BYTES];

	at.rt = rt;
	at.node = source->node_name;
	snprintf(cut, sizeof(cut), "%s", text);
	pass(at, source->module, name, cut);
}

const char *rt_trace_word(const char *text, char *word, size_t bytes)
{
	snprintf(word, bytes, "%s", text);
	for (char *at = word; *at; at++)
		if (*at == ' ')
			*at = '_';
	return word;
}

/* --- switches and sources -------------------------------------------------- */

void rt_trace_turn(struct rt *rt, enum rt_trace_module module, bool on)
{
	rt_trace(rt)->on[module] = on;
}

void rt_trace_set_sink(struct rt *rt, struct rt_trace_sink *sink)
{
	struct rt_trace *trace = rt_trace(rt);
	struct rt_trace_source *source;

	trace->sink = sink;
	if (sink)
		return;
	memset(trace->on, 0, sizeof(trace->on));
	list_for_each_entry(source, &trace->sources, node)
		source->turn(source, false);
}

void rt_trace_add_source(struct rt *rt, struct rt_trace_source *source)
{
	struct rt_trace *trace = rt_trace(rt);

	list_add_tail(&source->node, &trace->sources);
	if (trace->sink && trace->sink->added)
		trace->sink->added(trace->sink, source);
}

void rt_trace_del_source(struct rt_trace_source *source)
{
	list_del(&source->node);
}
