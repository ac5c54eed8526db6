/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The trace points of kDAPL (softib/trace.h): end points, told by their queue pairs. */
#ifndef SOFTIB_ULP_KDAPL_TRACE_H
#define SOFTIB_ULP_KDAPL_TRACE_H

#include "softib/trace.h"

#include "ulp/kdapl/private.h"

TRACE_POINT(kdapl_state, (u32 qpn, const char *from, const char *to), (qpn, from, to),
	    "qpn=0x%06x from=%s to=%s", "An end point changes its state.")
TRACE_POINT(kdapl_event, (u32 qpn, unsigned int number), (qpn, number), "qpn=0x%06x number=0x%04x",
	    "A consumer is told of a connection by the DAT event of this number.")

/** kd_ep_enter() - set and trace the state of @ep */
void kd_ep_enter(struct kd_ep *ep, DAT_EP_STATE state);

#endif
