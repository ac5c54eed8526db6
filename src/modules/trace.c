/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The trace points of a module (softib/trace.h), as a source of its node's trace. */
#include <errno.h>
#include <stdarg.h>

#include "modules/private.h"
#include "softib/trace.h"

static struct softib_trace_point *first(const struct module_state *state)
{
	return state->module->trace;
}

static struct softib_trace_point *end(const struct module_state *state)
{
	return state->module->trace_end;
}

/* each file that includes the header of a trace point has one of its own */
static void turn(struct rt_trace_source *source, bool on)
{
	struct module_state *state = container_of(source, struct module_state, trace);

	for (struct softib_trace_point *p = first(state); p < end(state); p++)
		p->on = on;
}

static bool is_listed(const struct rt_trace_source *source, const char *name)
{
	for (size_t i = 0; i < source->num_points; i++)
		if (!strcmp(source->points[i].name, name))
			return true;
	return false;
}

int module_trace_begin(struct module_state *state)
{
	struct rt_trace_source *source = &state->trace;
	struct rt_trace_point *points;

	if (first(state) == end(state))
		return 0;
	points = rt_zalloc((size_t)(end(state) - first(state)) * sizeof(*points));
	if (!points)
		return -ENOMEM;
	*source = (struct rt_trace_source){.module = state->name,
					   .node_name = state->node_name,
					   .points = points,
					   .turn = turn};
	for (const struct softib_trace_point *p = first(state); p < end(state); p++)
		if (!is_listed(source, p->name))
			points[source->num_points++] = (struct rt_trace_point){
				RT_TRACE_OWN, p->name, p->format, p->doc};
	rt_trace_add_source(state->loader->rt, source);
	return 0;
}

void module_trace_end(struct module_state *state)
{
	if (!state->trace.points)
		return;
	rt_trace_del_source(&state->trace);
	turn(&state->trace, false);
	rt_free((void *)state->trace.points);
	state->trace.points = NULL;
}

void softib_trace(const struct module *module, const struct softib_trace_point *point,
		  const struct ib_device *device, u32 port, const char *fmt, ...)
{
	const struct module_state *state = module->state;
	struct rt_trace_at at = {.device = device ? device->name : NULL, .port = port};
	char text[RT_TRACE_TEXT_BYTES];
	va_list ap;

	if (!state->trace.points)
		return; /* it has been unloaded, and its code has stayed */
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	rt_trace_emit_own(state->loader->rt, &state->trace, at, point->name, text);
}
