/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The trace points of the SRP initiator (runtime/trace.h). */
#ifndef SOFTIB_ULP_SRP_TRACE_H
#define SOFTIB_ULP_SRP_TRACE_H

#include <stdint.h>

#include "runtime/trace.h"

#define SRP_TRACE_WHY_BYTES 160

/* clang-format off */
#define SRP_TRACE_POINTS(P) \
	P(SRP, srp_channel, (const char *target, unsigned int path, const char *from, const char *to), \
	  (target, path, from, to), "target=%s path=%u from=%s to=%s", \
	  "A channel of a session changes its state.") \
	P(SRP, srp_fail, (const char *target, unsigned int path, const char *why), \
	  (target, path, rt_trace_word(why, (char[SRP_TRACE_WHY_BYTES]){0}, SRP_TRACE_WHY_BYTES)), \
	  "target=%s path=%u why=%s", "A channel fails, and logs in again later.") \
	P(SRP, srp_session, (const char *target, const char *state, unsigned int channels), \
	  (target, state, channels), "target=%s state=%s channels=%u", \
	  "So many channels of a session are up now, and its state follows from that.") \
	P(SRP, srp_command, (const char *target, unsigned int path, unsigned int slot, unsigned int opcode, \
	   bool out, uint32_t bytes), (target, path, slot, opcode, out, bytes), \
	  "target=%s path=%u slot=%u opcode=0x%02x out=%d bytes=%u", "A SCSI command is sent.") \
	P(SRP, srp_response, (const char *target, unsigned int slot, unsigned int status, const char *verdict), \
	  (target, slot, status, verdict), "target=%s slot=%u status=0x%02x verdict=%s", \
	  "A command was answered, and is done, failed or repeated.") \
	P(SRP, srp_task, (const char *target, unsigned int slot, unsigned int function), \
	  (target, slot, function), "target=%s slot=%u function=0x%02x", \
	  "Task management is asked for, since a command was not answered in its time.") \
	P(SRP, srp_task_done, (const char *target, unsigned int slot, bool ok), (target, slot, ok), \
	  "target=%s slot=%u ok=%d", "The target has answered a request for task management.")
/* clang-format on */

enum { SRP_TRACE_POINTS(RT_TRACE_ID) SRP_NUM_TRACE_POINTS };
extern const struct rt_trace_point srp_trace_points[SRP_NUM_TRACE_POINTS];

#define RT_TRACE_TABLE srp_trace_points
SRP_TRACE_POINTS(RT_TRACE_FUNCTION)
#undef RT_TRACE_TABLE

#endif
