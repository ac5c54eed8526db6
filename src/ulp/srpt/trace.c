/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The table of trace points. */
#include "ulp/srpt/trace.h"

const struct rt_trace_point srpt_trace_points[SRPT_NUM_TRACE_POINTS] = {
	SRPT_TRACE_POINTS(RT_TRACE_ROW)
};
