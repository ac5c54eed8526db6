/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Trace points: what a sink gets, and what it does not. */
#include "../test.h"

#include "runtime/sim/rt_sim.h"
#include "runtime/trace.h"

/* the table of a layer that has two trace points */
#define TEST_TRACE_POINTS(P)                                                             \
	P(CM, test_sent, (const char *message, uint32_t id), (message, id),              \
	  "message=%s id=0x%x", "A message leaves.")                                     \
	P(SA, test_asked, (const char *what), (what), "what=%s", "Somebody asks.")

enum { TEST_TRACE_POINTS(RT_TRACE_ID) NUM_POINTS };
static const struct rt_trace_point points[] = {TEST_TRACE_POINTS(RT_TRACE_ROW)};
#define RT_TRACE_TABLE points
TEST_TRACE_POINTS(RT_TRACE_FUNCTION)

/** struct seen - a sink that remembers */
struct seen {
	struct rt_trace_sink sink;
	unsigned int events, added;
	char last[RT_TRACE_TEXT_BYTES + 128];
	bool turns_on; /* what is added */
};

static void see(struct rt_trace_sink *sink, const struct rt_trace_event *e)
{
	struct seen *seen = container_of(sink, struct seen, sink);

	seen->events++;
	snprintf(seen->last, sizeof(seen->last), "%s %s/%s/%u %s: %s", e->module, e->node,
		 e->device, e->port, e->name, e->text);
}

static void see_added(struct rt_trace_sink *sink, struct rt_trace_source *source)
{
	struct seen *seen = container_of(sink, struct seen, sink);

	seen->added++;
	if (seen->turns_on)
		source->turn(source, true);
}

static struct rt *make(struct seen *seen)
{
	struct rt *rt;

	*seen = (struct seen){.sink = {.event = see, .added = see_added}};
	assert_int_equal(rt_sim_create(1, &rt), 0);
	return rt;
}

static struct rt_trace_at at(struct rt *rt)
{
	return (struct rt_trace_at){.rt = rt, .node = "n1", .device = "softib0", .port = 1};
}

static void a_point_is_silent_until_its_module_is_on(void **state)
{
	struct seen seen;
	struct rt *rt = make(&seen);

	trace_test_sent(at(rt), "REQ", 1); /* nobody reads */
	rt_trace_set_sink(rt, &seen.sink);
	trace_test_sent(at(rt), "REQ", 2);
	assert_int_equal(seen.events, 0);
	rt_trace_turn(rt, RT_TRACE_CM, true);
	trace_test_sent(at(rt), "REQ", 0x12);
	trace_test_asked(at(rt), "path");
	assert_int_equal(seen.events, 1);
	assert_string_equal(seen.last, "cm n1/softib0/1 test_sent: message=REQ id=0x12");
	rt_trace_turn(rt, RT_TRACE_CM, false);
	trace_test_sent(at(rt), "REQ", 3);
	assert_int_equal(seen.events, 1);
	rt_sim_destroy(rt);
}

static void two_runtimes_have_switches_of_their_own(void **state)
{
	struct seen seen[2];
	struct rt *a = make(&seen[0]), *b = make(&seen[1]);

	rt_trace_set_sink(a, &seen[0].sink);
	rt_trace_set_sink(b, &seen[1].sink);
	rt_trace_turn(a, RT_TRACE_SA, true);
	trace_test_asked(at(a), "path");
	trace_test_asked(at(b), "group");
	assert_int_equal(seen[0].events, 1);
	assert_int_equal(seen[1].events, 0);
	rt_sim_destroy(a);
	rt_sim_destroy(b);
}

static void what_has_no_place_is_shown_without(void **state)
{
	struct seen seen;
	struct rt *rt = make(&seen);

	rt_trace_set_sink(rt, &seen.sink);
	rt_trace_turn(rt, RT_TRACE_SA, true);
	trace_test_asked((struct rt_trace_at){.rt = rt}, "path");
	assert_string_equal(seen.last, "sa //0 test_asked: what=path");
	trace_test_asked((struct rt_trace_at){0}, "path"); /* no runtime: nobody to tell */
	assert_int_equal(seen.events, 1);
	rt_sim_destroy(rt);
}

static void a_long_text_is_cut(void **state)
{
	char text[2 * RT_TRACE_TEXT_BYTES];
	struct seen seen;
	struct rt *rt = make(&seen);
	size_t head = strlen("sa n1/softib0/1 test_asked: ");

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	rt_trace_set_sink(rt, &seen.sink);
	rt_trace_turn(rt, RT_TRACE_SA, true);
	trace_test_asked(at(rt), text);
	assert_int_equal(strlen(seen.last), head + RT_TRACE_TEXT_BYTES - 1);
	rt_sim_destroy(rt);
}

/* --- sources of their own --- */

struct own {
	struct rt_trace_source source;
	bool on;
};

static void turn(struct rt_trace_source *source, bool on)
{
	container_of(source, struct own, source)->on = on;
}

static void a_source_is_offered_and_turned_off_with_the_sink(void **state)
{
	static const struct rt_trace_point own_points[] = {
		{RT_TRACE_OWN, "thing", "n=%d", "A thing happens."}};
	struct own own = {.source = {.module = "mine",
				     .node_name = "n2",
				     .points = own_points,
				     .num_points = 1,
				     .turn = turn}};
	struct seen seen;
	struct rt *rt = make(&seen);

	rt_trace_set_sink(rt, &seen.sink);
	seen.turns_on = true;
	rt_trace_add_source(rt, &own.source);
	assert_int_equal(seen.added, 1);
	assert_true(own.on);
	rt_trace_emit_own(rt, &own.source, (struct rt_trace_at){.node = "forged", .port = 2},
			  "thing", "n=3");
	assert_string_equal(seen.last, "mine n2//2 thing: n=3");
	rt_trace_set_sink(rt, NULL);
	assert_false(own.on);
	rt_trace_del_source(&own.source);
	rt_sim_destroy(rt);
}

static void modules_have_names(void **state)
{
	for (enum rt_trace_module m = 0; m < RT_TRACE_MODULES; m++)
		assert_int_equal(rt_trace_module_find(rt_trace_module_name(m)), m);
	assert_int_equal(rt_trace_module_find("no such module"), RT_TRACE_MODULES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_point_is_silent_until_its_module_is_on),
		cmocka_unit_test(two_runtimes_have_switches_of_their_own),
		cmocka_unit_test(what_has_no_place_is_shown_without),
		cmocka_unit_test(a_long_text_is_cut),
		cmocka_unit_test(a_source_is_offered_and_turned_off_with_the_sink),
		cmocka_unit_test(modules_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
