/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* When to ask whether the peer is there, as SO_KEEPALIVE of TCP sockets (tcp(7)) does. */
#include "sdp/keepalive.h"

uint64_t sdp_keepalive_due(const struct sdp_keepalive *k)
{
	if (!k->idle_ns)
		return UINT64_MAX;
	return k->probes ? k->probed_ns + k->interval_ns : k->heard_ns + k->idle_ns;
}

void sdp_keepalive_heard(struct sdp_keepalive *k, uint64_t now_ns)
{
	k->heard_ns = now_ns;
	k->probes = 0;
}

enum sdp_keepalive_step sdp_keepalive_step(struct sdp_keepalive *k, uint64_t now_ns)
{
	if (now_ns < sdp_keepalive_due(k))
		return SDP_KEEPALIVE_WAIT;
	if (k->probes == k->count)
		return SDP_KEEPALIVE_DEAD;
	k->probes++;
	k->probed_ns = now_ns;
	return SDP_KEEPALIVE_PROBE;
}
