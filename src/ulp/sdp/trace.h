/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The trace points of the Sockets Direct Protocol (runtime/trace.h). A connection is told by its
 * queue pair and by the TCP ports of both ends. */
#ifndef SOFTIB_ULP_SDP_TRACE_H
#define SOFTIB_ULP_SDP_TRACE_H

#include <stdint.h>

#include "runtime/trace.h"

/* clang-format off */
#define SDP_TRACE_POINTS(P) \
	P(SDP, sdp_socket, (const char *what, unsigned int port, int error), (what, port, error), \
	  "what=%s port=%u error=%d", "A program binds a socket, listens at it, connects it or closes it.") \
	P(SDP, sdp_state, (uint32_t qpn, unsigned int sport, unsigned int dport, const char *from, \
	   const char *to, const char *end), (qpn, sport, dport, from, to, end), \
	  "qpn=0x%06x sport=%u dport=%u from=%s to=%s end=%s", \
	  "A connection changes its state; end says why it has ended.") \
	P(SDP, sdp_mode, (uint32_t qpn, unsigned int sport, unsigned int dport, bool sending, \
	   const char *from, const char *to), \
	  (qpn, sport, dport, sending ? "send" : "receive", from, to), \
	  "qpn=0x%06x sport=%u dport=%u direction=%s from=%s to=%s", \
	  "A direction of a connection changes its mode.") \
	P(SDP, sdp_send, (uint32_t qpn, const char *message, uint32_t bytes, uint32_t credits), \
	  (qpn, message, bytes, credits), "qpn=0x%06x message=%s payload=%u credits=%u", \
	  "A message is sent; credits are left for so many more.") \
	P(SDP, sdp_receive, (uint32_t qpn, const char *message, size_t bytes, int error), \
	  (qpn, message, bytes, error), "qpn=0x%06x message=%s bytes=%zu error=%d", \
	  "A message arrived; error is not 0 if it violates the protocol.") \
	P(SDP, sdp_connected, (uint32_t qpn, unsigned int sport, unsigned int dport, bool passive, \
	   int error), (qpn, sport, dport, passive, error), \
	  "qpn=0x%06x sport=%u dport=%u passive=%d error=%d", \
	  "A connection is made, or could not be made.")
/* clang-format on */

enum { SDP_TRACE_POINTS(RT_TRACE_ID) SDP_NUM_TRACE_POINTS };
extern const struct rt_trace_point sdp_trace_points[SDP_NUM_TRACE_POINTS];

#define RT_TRACE_TABLE sdp_trace_points
SDP_TRACE_POINTS(RT_TRACE_FUNCTION)
#undef RT_TRACE_TABLE

#endif
