/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The rules of every table of trace points (runtime/trace.h). */
#ifndef SOFTIB_TESTS_TRACE_RULES_H
#define SOFTIB_TESTS_TRACE_RULES_H

#include "test.h"

#include "runtime/trace.h"

/* name=value pairs with one space between them; "%s" behind a value stands for more pairs */
static inline void check_trace_format(const char *format)
{
	while (*format) {
		size_t len = strcspn(format, " "), name = strcspn(format, "=");

		assert_true(name > 0 && name < len);
		format += len;
		if (*format)
			assert_true(format[0] == ' ' && format[1] && format[1] != ' ');
		format += *format == ' ';
	}
}

static inline void check_trace_table(const struct rt_trace_point *points, size_t num)
{
	for (size_t i = 0; i < num; i++) {
		const struct rt_trace_point *p = &points[i];
		size_t doc = strlen(p->doc);

		assert_non_null(p->name);
		assert_true(p->module < RT_TRACE_MODULES);
		/* a name says of which module it is */
		assert_memory_equal(p->name, rt_trace_module_name(p->module),
				    strlen(rt_trace_module_name(p->module)));
		check_trace_format(p->format);
		assert_true(doc > 0 && p->doc[doc - 1] == '.');
		assert_null(strpbrk(p->doc, "\"\\"));
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(points[j].name, p->name);
	}
}

#endif
