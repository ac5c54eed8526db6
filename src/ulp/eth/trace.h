/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The trace points of Ethernet interfaces (runtime/trace.h). */
#ifndef SOFTIB_ULP_ETH_TRACE_H
#define SOFTIB_ULP_ETH_TRACE_H

#include <inttypes.h>

#include "base/bytes.h"
#include "runtime/trace.h"

/** ETH_TRACE_AT() - of a struct eth */
#define ETH_TRACE_AT(eth) RT_TRACE_AT((eth)->device, (eth)->port_num)

/* clang-format off */
#define ETH_TRACE_POINTS(P) \
	P(ETH, eth_interface, (unsigned int mtu, const char *what), (mtu, what), \
	  "mtu=%u what=%s", "An interface is opened or closed, its device has another MTU (mtu), or its carrier is there (up) or lost (down).") \
	P(ETH, eth_queue, (const char *what), (what), \
	  "what=%s", "The send queue is full (full) and the host's packets wait, there is room again (resume), or the queue pair is restarted after an error (restart).") \
	P(ETH, eth_address, (const uint8_t *gid, unsigned int vlan), (get_be64(gid), get_be64(gid + 8), vlan), \
	  "gid=%016" PRIx64 "%016" PRIx64 " vlan=%u", "The kernel has told an address of the interface, or of a VLAN interface upon it, when anything has changed there.")
/* clang-format on */

enum { ETH_TRACE_POINTS(RT_TRACE_ID) ETH_NUM_TRACE_POINTS };
extern const struct rt_trace_point eth_trace_points[ETH_NUM_TRACE_POINTS];

#define RT_TRACE_TABLE eth_trace_points
ETH_TRACE_POINTS(RT_TRACE_FUNCTION)
#undef RT_TRACE_TABLE

#endif
