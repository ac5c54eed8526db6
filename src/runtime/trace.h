/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Trace points: what the layers of a stack report to whoever debugs a protocol on it,
 * `softib trace`.
 *
 * A layer declares its trace points in one table, in its header trace.h:
 *
 *	#define CORE_TRACE_POINTS(P)						\
 *		P(CM, cm_send, (const char *message, uint32_t id), (message, id),	\
 *		  "message=%s id=0x%08x", "A message of a connection leaves.")
 *
 * From each row follow the function trace_cm_send(at, message, id) and a row of the array
 * by which users list the trace points. Formats consist of name=value pairs with spaces
 * between them and none inside, so that a program can read each line.
 *
 * A module is on or off for a whole fabric: a byte in struct rt, which a trace point that
 * is off reads and does nothing else. Two fabrics in a process thus have switches of their
 * own. What reads the events (the sink) is set by the owner of the runtime: softibd has
 * readers of its control socket, tests their own.
 *
 * Pure layers have no runtime: they call a function of their owner, if it has set one and
 * the byte that the owner points to is on.
 */
#ifndef SOFTIB_RUNTIME_TRACE_H
#define SOFTIB_RUNTIME_TRACE_H

#include "base/list.h"
#include "base/types.h"

struct rt;

#define RT_TRACE_TEXT_BYTES 384 /* of an event's name=value pairs; longer ones are cut */

/** enum rt_trace_module - the modules of the stack, as users select them; their names are
 *  in trace.c */
enum rt_trace_module {
	RT_TRACE_CM,
	RT_TRACE_RDMA_CM,
	RT_TRACE_SA,
	RT_TRACE_MAD,
	RT_TRACE_QP,
	RT_TRACE_HCA,
	RT_TRACE_ETH,
	RT_TRACE_IPOIB,
	RT_TRACE_SDP,
	RT_TRACE_SRP,
	RT_TRACE_SRPT,
	RT_TRACE_SM,
	RT_TRACE_MODULES,
	RT_TRACE_OWN = RT_TRACE_MODULES, /* of a struct rt_trace_source */
};

/** struct rt_trace_point - a row of a table of trace points
 *  @format: of its name=value pairs, as printf() has them
 *  @doc: one sentence: what has happened */
struct rt_trace_point {
	enum rt_trace_module module;
	const char *name, *format, *doc;
};

/** struct rt_trace_at - where something happened
 *  @node: NULL: nowhere in particular; @device: NULL, @port: 0: no certain one */
struct rt_trace_at {
	struct rt *rt;
	const char *node, *device;
	uint32_t port;
};

/** RT_TRACE_AT() - of a struct ib_device, which this layer does not know */
#define RT_TRACE_AT(dev, port_)                                                          \
	((struct rt_trace_at){                                                           \
		.rt = (dev)->rt, .node = (dev)->node_name, .device = (dev)->name, .port = (port_)})

/** struct rt_trace_event - what a sink gets; valid until it returns */
struct rt_trace_event {
	const char *module, *name;
	const char *node, *device; /* "" where there is none */
	uint32_t port;
	const char *text; /* name=value pairs */
};

/** struct rt_trace_source - trace points of a loaded module, or of a program that is part
 *  of the stack; the owner embeds it */
struct rt_trace_source {
	struct list_head node;	/* struct rt_trace.sources */
	const char *module;	/* its name for users */
	const char *node_name;	/* the node that it belongs to */
	const struct rt_trace_point *points;
	size_t num_points;
	/** turn() - somebody wants its events, or nobody any more */
	void (*turn)(struct rt_trace_source *source, bool on);
};

/** struct rt_trace_sink - who reads the events of a runtime; the owner embeds it */
struct rt_trace_sink {
	void (*event)(struct rt_trace_sink *sink, const struct rt_trace_event *event);
	/** added() - @source is new, and off; may be NULL */
	void (*added)(struct rt_trace_sink *sink, struct rt_trace_source *source);
};

/** struct rt_trace - the beginning of every struct rt */
struct rt_trace {
	uint8_t on[RT_TRACE_MODULES];
	struct rt_trace_sink *sink; /* NULL: nobody */
	struct list_head sources;   /* struct rt_trace_source */
};

static inline struct rt_trace *rt_trace(struct rt *rt)
{
	return (struct rt_trace *)rt;
}

/** rt_traced() - is @module on? @rt may be NULL. Context: any */
static inline bool rt_traced(const struct rt *rt, enum rt_trace_module module)
{
	return __builtin_expect(rt && ((const struct rt_trace *)rt)->on[module], 0);
}

/** rt_trace_emit() - pass an event to the sink. Context: the loop's; @point is on */
__attribute__((format(printf, 3, 4)))
void rt_trace_emit(struct rt_trace_at at, const struct rt_trace_point *point, const char *fmt, ...);
/** rt_trace_emit_own() - the same for a point of @source, at its node
 *  @text: name=value pairs, cut at RT_TRACE_TEXT_BYTES */
void rt_trace_emit_own(struct rt *rt, const struct rt_trace_source *source, struct rt_trace_at at,
		       const char *name, const char *text);

/** rt_trace_word() - @text as a value: its spaces become '_'. Return: @word */
const char *rt_trace_word(const char *text, char *word, size_t bytes);

/** rt_trace_set_sink() - let @sink read; NULL: nobody, and everything is turned off */
void rt_trace_set_sink(struct rt *rt, struct rt_trace_sink *sink);
/** rt_trace_turn() - turn a module of the stack on or off */
void rt_trace_turn(struct rt *rt, enum rt_trace_module module, bool on);
void rt_trace_add_source(struct rt *rt, struct rt_trace_source *source);
void rt_trace_del_source(struct rt_trace_source *source);

/** rt_trace_module_name() - "cm" of RT_TRACE_CM */
const char *rt_trace_module_name(enum rt_trace_module module);
/** rt_trace_module_find() - Return: RT_TRACE_MODULES if the stack has no module of this name */
enum rt_trace_module rt_trace_module_find(const char *name);

/* --- what follows from a layer's table --- */

#define RT_TRACE_UNPAREN_(...) __VA_ARGS__
#define RT_TRACE_UNPAREN(list) RT_TRACE_UNPAREN_ list

#define RT_TRACE_ID(module, name, proto, args, format, doc) TRACE_ID_##name,
#define RT_TRACE_ROW(module, name, proto, args, format, doc)                             \
	[TRACE_ID_##name] = {RT_TRACE_##module, #name, format, doc},
#define RT_TRACE_FUNCTION(module, name, proto, args, format, doc)                        \
	static inline void trace_##name(struct rt_trace_at at, RT_TRACE_UNPAREN(proto))  \
	{                                                                                \
		if (rt_traced(at.rt, RT_TRACE_##module))                                 \
			rt_trace_emit(at, &RT_TRACE_TABLE[TRACE_ID_##name], format,      \
				      RT_TRACE_UNPAREN(args));                           \
	}

#endif
