/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The table of the manager's trace points. */
#include "sm/trace.h"

const struct rt_trace_point sm_trace_points[SM_NUM_TRACE_POINTS] = {
	SM_TRACE_POINTS(RT_TRACE_ROW)
};
