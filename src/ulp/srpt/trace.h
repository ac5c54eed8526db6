/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The trace points of the SRP target (runtime/trace.h). An initiator is identified by its port
 * identifier. */
#ifndef SOFTIB_ULP_SRPT_TRACE_H
#define SOFTIB_ULP_SRPT_TRACE_H

#include <inttypes.h>

#include "base/bytes.h"
#include "runtime/trace.h"

/** SRPT_TRACE_AT() - the place of a struct srpt_channel; one that is closed has no device any more */
#define SRPT_TRACE_AT(ch)                                                                \
	((ch)->srpt ? RT_TRACE_AT((ch)->srpt->device, (ch)->port_num)                    \
		    : (struct rt_trace_at){.rt = (ch)->rt})

/* clang-format off */
#define SRPT_TRACE_POINTS(P) \
	P(SRPT, srpt_login, (const uint8_t *initiator, unsigned int channels, uint32_t reject), \
	  (get_be64(initiator), get_be64(initiator + 8), channels, reject), \
	  "initiator=%016" PRIx64 "%016" PRIx64 " channels=%u reject=0x%08x", \
	  "An initiator asks to log in; it is accepted if reject is 0.") \
	P(SRPT, srpt_close, (uint32_t qpn, uint64_t commands), (qpn, commands), \
	  "qpn=0x%06x commands=%" PRIu64, "A channel is closed, after so many commands.") \
	P(SRPT, srpt_logout, (uint32_t qpn, uint32_t reason), (qpn, reason), "qpn=0x%06x reason=0x%08x", \
	  "The target logs an initiator out.") \
	P(SRPT, srpt_command, (uint32_t qpn, uint64_t tag, unsigned int opcode, int lun), \
	  (qpn, tag, opcode, lun), "qpn=0x%06x tag=0x%016" PRIx64 " opcode=0x%02x lun=%d", \
	  "A SCSI command arrived; lun is -1 if there is no such unit.") \
	P(SRPT, srpt_response, (uint32_t qpn, uint64_t tag, unsigned int status), \
	  (qpn, tag, status), "qpn=0x%06x tag=0x%016" PRIx64 " status=0x%02x", "A SCSI command is answered.") \
	P(SRPT, srpt_task, (uint32_t qpn, uint64_t tag, unsigned int function, bool aborts), \
	  (qpn, tag, function, aborts), "qpn=0x%06x tag=0x%016" PRIx64 " function=0x%02x aborts=%d", \
	  "Task management is asked for; aborts is 1 if commands are aborted by it.") \
	P(SRPT, srpt_task_done, (uint32_t qpn, uint64_t tag, unsigned int code), (qpn, tag, code), \
	  "qpn=0x%06x tag=0x%016" PRIx64 " code=%u", "A request for task management is answered.")
/* clang-format on */

enum { SRPT_TRACE_POINTS(RT_TRACE_ID) SRPT_NUM_TRACE_POINTS };
extern const struct rt_trace_point srpt_trace_points[SRPT_NUM_TRACE_POINTS];

#define RT_TRACE_TABLE srpt_trace_points
SRPT_TRACE_POINTS(RT_TRACE_FUNCTION)
#undef RT_TRACE_TABLE

#endif
