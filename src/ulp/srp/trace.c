/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The table of trace points. */
#include "ulp/srp/trace.h"

const struct rt_trace_point srp_trace_points[SRP_NUM_TRACE_POINTS] = {
	SRP_TRACE_POINTS(RT_TRACE_ROW)
};
