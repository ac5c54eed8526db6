/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The readers of traces. The modules that at least one reader wants are switched on. */
#include <errno.h>
#include <string.h>

#include "abi/trace.h"
#include "core/trace.h"
#include "daemon/reader.h"
#include "daemon/trace.h"
#include "ulp/eth/trace.h"
#include "ulp/ipoib/trace.h"
#include "ulp/sdp/trace.h"
#include "ulp/srp/trace.h"
#include "ulp/srpt/trace.h"

#define NAME_BYTES 32 /* size of the name of a node or a module, with the terminating 0 */

struct trace {
	struct rt *rt;
	struct rt_trace_sink sink;
	struct list_head readers;
};

struct trace_reader {
	struct list_head node; /* trace->readers */
	struct trace *trace;
	struct reader reader;
	char node_name[NAME_BYTES]; /* "": all */
	char (*modules)[NAME_BYTES];
	size_t num_modules; /* 0: all */
};

/* The trace points of the layers of the stack. */
static const struct {
	const struct rt_trace_point *points;
	size_t num;
} tables[] = {
	{core_trace_points, CORE_NUM_TRACE_POINTS},
	{eth_trace_points, ETH_NUM_TRACE_POINTS},
	{ipoib_trace_points, IPOIB_NUM_TRACE_POINTS},
	{sdp_trace_points, SDP_NUM_TRACE_POINTS},
	{srp_trace_points, SRP_NUM_TRACE_POINTS},
	{srpt_trace_points, SRPT_NUM_TRACE_POINTS},
};

static bool wants_module(const struct trace_reader *r, const char *module)
{
	bool found = !r->num_modules;

	for (size_t i = 0; i < r->num_modules && !found; i++)
		found = !strcmp(r->modules[i], module);
	return found;
}

/* An event without a node is of interest to every reader. */
static bool wants_node(const struct trace_reader *r, const char *node)
{
	return !r->node_name[0] || !node[0] || !strcmp(r->node_name, node);
}

/* --- events ---------------------------------------------------------------- */

static void put(struct trace_reader *r, const struct rt_trace_event *e)
{
	const char *const strings[ABI_TRACE_STRINGS] = {e->module, e->name, e->node, e->device,
							e->text};
	size_t bytes = sizeof(struct abi_trace_record);
	struct abi_trace_record record;
	uint8_t *at;

	for (size_t i = 0; i < ABI_TRACE_STRINGS; i++)
		bytes += strlen(strings[i]) + 1;
	at = reader_reserve(&r->reader, bytes);
	if (!at)
		return;
	record = (struct abi_trace_record){
		.time_ns = reader_time_ns(), .dropped = r->reader.dropped, .port = e->port};
	memcpy(at, &record, sizeof(record));
	at += sizeof(record);
	for (size_t i = 0; i < ABI_TRACE_STRINGS; i++) {
		memcpy(at, strings[i], strlen(strings[i]) + 1);
		at += strlen(strings[i]) + 1;
	}
	reader_commit(&r->reader, bytes);
}

static void see(struct rt_trace_sink *sink, const struct rt_trace_event *event)
{
	struct trace *trace = container_of(sink, struct trace, sink);
	struct trace_reader *r;

	list_for_each_entry(r, &trace->readers, node)
		if (wants_module(r, event->module) && wants_node(r, event->node))
			put(r, event);
}

/* --- switches -------------------------------------------------------------- */

static bool wanted(const struct trace *trace, const char *module, const char *node)
{
	const struct trace_reader *r;

	list_for_each_entry(r, &trace->readers, node)
		if (wants_module(r, module) && wants_node(r, node))
			return true;
	return false;
}

static void see_added(struct rt_trace_sink *sink, struct rt_trace_source *source)
{
	const struct trace *trace = container_of(sink, struct trace, sink);

	source->turn(source, wanted(trace, source->module, source->node_name));
}

static void turn_switches(struct trace *trace)
{
	struct rt_trace_source *source;

	for (enum rt_trace_module m = 0; m < RT_TRACE_MODULES; m++)
		rt_trace_turn(trace->rt, m, wanted(trace, rt_trace_module_name(m), ""));
	list_for_each_entry(source, &rt_trace(trace->rt)->sources, node)
		see_added(&trace->sink, source);
}

/* --- readers --------------------------------------------------------------- */

struct trace *trace_create(struct rt *rt)
{
	struct trace *trace = rt_zalloc(sizeof(*trace));

	if (!trace)
		return NULL;
	trace->rt = rt;
	trace->sink = (struct rt_trace_sink){.event = see, .added = see_added};
	INIT_LIST_HEAD(&trace->readers);
	rt_trace_set_sink(rt, &trace->sink);
	return trace;
}

void trace_destroy(struct trace *trace)
{
	rt_trace_set_sink(trace->rt, NULL);
	rt_free(trace);
}

static int copy_modules(struct trace_reader *r, const struct trace_config *config)
{
	r->num_modules = config->num_modules;
	r->modules = rt_zalloc((config->num_modules + 1) * sizeof(*r->modules));
	if (!r->modules)
		return -ENOMEM;
	for (size_t i = 0; i < r->num_modules; i++)
		strncpy(r->modules[i], config->modules[i], NAME_BYTES - 1);
	return 0;
}

static void stop(struct reader *reader)
{
	struct trace_reader *r = container_of(reader, struct trace_reader, reader);

	list_del(&r->node);
	turn_switches(r->trace);
	reader_close(&r->reader);
	rt_free(r->modules);
	rt_free(r);
}

int trace_reader_start(struct trace *trace, const struct trace_config *config,
		       struct reader **reader)
{
	struct trace_reader *r = rt_zalloc(sizeof(*r));
	int ret = r ? copy_modules(r, config) : -ENOMEM;

	if (!ret)
		ret = reader_open(trace->rt, &r->reader, "softib-trace", config->ring_bytes);
	if (ret) {
		if (r)
			rt_free(r->modules);
		rt_free(r);
		return ret;
	}
	r->trace = trace;
	if (config->node)
		strncpy(r->node_name, config->node, NAME_BYTES - 1);
	list_add_tail(&r->node, &trace->readers);
	turn_switches(trace);
	r->reader.stop = stop;
	*reader = &r->reader;
	return 0;
}

/* --- the list of trace points ---------------------------------------------- */

bool trace_knows(const struct trace *trace, const char *module)
{
	const struct rt_trace_source *source;

	list_for_each_entry(source, &rt_trace(trace->rt)->sources, node)
		if (!strcmp(source->module, module))
			return true;
	return rt_trace_module_find(module) != RT_TRACE_MODULES;
}

void trace_each_point(struct trace *trace,
		      void (*fn)(void *ctx, const char *module, const char *node,
				 const struct rt_trace_point *point),
		      void *ctx)
{
	const struct rt_trace_source *source;

	for (size_t t = 0; t < ARRAY_SIZE(tables); t++)
		for (size_t i = 0; i < tables[t].num; i++)
			fn(ctx, rt_trace_module_name(tables[t].points[i].module), "",
			   &tables[t].points[i]);
	list_for_each_entry(source, &rt_trace(trace->rt)->sources, node)
		for (size_t i = 0; i < source->num_points; i++)
			fn(ctx, source->module, source->node_name, &source->points[i]);
}
