/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The states of end points, as events of the trace. */
#include "ulp/kdapl/trace.h"

#define NAME(state) [DAT_EP_STATE_##state] = #state

static const char *state_name(DAT_EP_STATE state)
{
	static const char *const names[] = {
		NAME(UNCONNECTED),
		NAME(UNCONFIGURED_UNCONNECTED),
		NAME(RESERVED),
		NAME(UNCONFIGURED_RESERVED),
		NAME(PASSIVE_CONNECTION_PENDING),
		NAME(UNCONFIGURED_PASSIVE),
		NAME(ACTIVE_CONNECTION_PENDING),
		NAME(TENTATIVE_CONNECTION_PENDING),
		NAME(UNCONFIGURED_TENTATIVE),
		NAME(CONNECTED),
		NAME(DISCONNECT_PENDING),
		NAME(DISCONNECTED),
		NAME(COMPLETION_PENDING),
	};

	return (unsigned int)state < sizeof(names) / sizeof(names[0]) && names[state] ? names[state] : "?";
}

void kd_ep_enter(struct kd_ep *ep, DAT_EP_STATE state)
{
	const struct kd_ia *ia = ep->object.ia;

	if (ep->state != state)
		trace_kdapl_state(ia->device, ia->port, ep->qp ? ep->qp->qp_num : 0,
				  state_name(ep->state), state_name(state));
	ep->state = state;
}
