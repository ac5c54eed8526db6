/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The trace points of IP over InfiniBand (runtime/trace.h). */
#ifndef SOFTIB_ULP_IPOIB_TRACE_H
#define SOFTIB_ULP_IPOIB_TRACE_H

#include <inttypes.h>
#include <netinet/in.h>

#include "base/bytes.h"
#include "runtime/trace.h"

/* an IPv4 address is mapped */
#define IPOIB_TRACE_IP_FORMAT "%04x:%04x:%04x:%04x:%04x:%04x:%04x:%04x"
#define IPOIB_TRACE_WORD(ip, n) get_be16((ip)->s6_addr + 2 * (n))
#define IPOIB_TRACE_IP(ip)                                                               \
	IPOIB_TRACE_WORD(ip, 0), IPOIB_TRACE_WORD(ip, 1), IPOIB_TRACE_WORD(ip, 2),       \
		IPOIB_TRACE_WORD(ip, 3), IPOIB_TRACE_WORD(ip, 4), IPOIB_TRACE_WORD(ip, 5), \
		IPOIB_TRACE_WORD(ip, 6), IPOIB_TRACE_WORD(ip, 7)

/** IPOIB_TRACE_AT() - of a struct ipoib */
#define IPOIB_TRACE_AT(p) RT_TRACE_AT((p)->device, (p)->port_num)

/* clang-format off */
#define IPOIB_TRACE_POINTS(P) \
	P(IPOIB, ipoib_interface, (unsigned int pkey, const char *what), (pkey, what), \
	  "pkey=0x%04x what=%s", "An interface is opened, closed, started, stopped or changes its mode.") \
	P(IPOIB, ipoib_neighbour, (const struct in6_addr *ip, const char *what, uint32_t qpn), \
	  (IPOIB_TRACE_IP(ip), what, qpn), "ip=" IPOIB_TRACE_IP_FORMAT " what=%s qpn=0x%06x", \
	  "A neighbour is asked for (ask), has told its link address (link), is looked up at the subnet administrator (path), can be sent to (ready), or is forgotten (forget).") \
	P(IPOIB, ipoib_connection, (uint32_t qpn, bool passive, const char *what), (qpn, passive, what), \
	  "qpn=0x%06x passive=%d what=%s", "A connection of connected mode is asked for, is up or ends.") \
	P(IPOIB, ipoib_group, (const uint8_t *mgid, bool member, const char *what, int status), \
	  (get_be64(mgid), get_be64(mgid + 8), member, what, status), \
	  "mgid=%016" PRIx64 "%016" PRIx64 " member=%d what=%s status=%d", \
	  "The interface joins a group, as a member or to send alone; it is joined, was refused or lost, or leaves.")
/* clang-format on */

enum { IPOIB_TRACE_POINTS(RT_TRACE_ID) IPOIB_NUM_TRACE_POINTS };
extern const struct rt_trace_point ipoib_trace_points[IPOIB_NUM_TRACE_POINTS];

#define RT_TRACE_TABLE ipoib_trace_points
IPOIB_TRACE_POINTS(RT_TRACE_FUNCTION)
#undef RT_TRACE_TABLE

#endif
