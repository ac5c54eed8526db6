/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The table of trace points. */
#include "ulp/ipoib/trace.h"

const struct rt_trace_point ipoib_trace_points[IPOIB_NUM_TRACE_POINTS] = {
	IPOIB_TRACE_POINTS(RT_TRACE_ROW)
};
