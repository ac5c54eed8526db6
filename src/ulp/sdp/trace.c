/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The table of trace points. */
#include "ulp/sdp/trace.h"

const struct rt_trace_point sdp_trace_points[SDP_NUM_TRACE_POINTS] = {
	SDP_TRACE_POINTS(RT_TRACE_ROW)
};
