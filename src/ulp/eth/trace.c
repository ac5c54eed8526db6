/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The table of trace points. */
#include "ulp/eth/trace.h"

const struct rt_trace_point eth_trace_points[ETH_NUM_TRACE_POINTS] = {
	ETH_TRACE_POINTS(RT_TRACE_ROW)
};
