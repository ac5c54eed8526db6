/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The trace points of the subnet manager (runtime/trace.h). */
#ifndef SOFTIB_SM_TRACE_H
#define SOFTIB_SM_TRACE_H

#include <inttypes.h>

#include "runtime/trace.h"

#define SM_TRACE_WORD_BYTES 48

/* clang-format off */
#define SM_TRACE_POINTS(P)                                                               \
	P(SM, sm_job, (const char *job, const char *what), (job, what), "job=%s what=%s", \
	  "A job begins, ends, or is aborted: heavy is a whole sweep, light looks for changes, self looks at the own port, mcast programs groups, poll asks the master.") \
	P(SM, sm_phase, (const char *phase),                                             \
	  (rt_trace_word(phase, (char[SM_TRACE_WORD_BYTES]){0}, SM_TRACE_WORD_BYTES)),   \
	  "phase=%s", "A job goes on to its next phase.")                                \
	P(SM, sm_up, (unsigned int switches, unsigned int adapters, unsigned int links, unsigned int lid_max, \
	   unsigned int unanswered), (switches, adapters, links, lid_max, unanswered),   \
	  "switches=%u adapters=%u links=%u lid_max=%u unanswered=%u",                   \
	  "A whole sweep has ended, and what it has found answers queries from now on.") \
	P(SM, sm_state, (const char *from, const char *to), (from, to), "from=%s to=%s", \
	  "The manager changes its state among the managers of the subnet.")             \
	P(SM, sm_timeout, (unsigned int method, unsigned int attr, uint32_t mod, uint32_t left), \
	  (method, attr, mod, left), "method=0x%02x attr=0x%04x mod=0x%08x left=%u",     \
	  "A request was not answered in its time, and is sent again if left is not 0.") \
	P(SM, sm_trap, (unsigned int trap, unsigned int lid), (trap, lid), "trap=%u issuer_lid=%u", \
	  "A trap of an agent arrived.")                                                 \
	P(SM, sm_query, (unsigned int lid, unsigned int method, unsigned int attr, uint64_t mask), \
	  (lid, method, attr, mask), "lid=%u method=0x%02x attr=0x%04x mask=0x%" PRIx64, \
	  "Somebody asks the subnet administrator.")
/* clang-format on */

enum { SM_TRACE_POINTS(RT_TRACE_ID) SM_NUM_TRACE_POINTS };
extern const struct rt_trace_point sm_trace_points[SM_NUM_TRACE_POINTS];

#define RT_TRACE_TABLE sm_trace_points
SM_TRACE_POINTS(RT_TRACE_FUNCTION)
#undef RT_TRACE_TABLE

/** SM_TRACE_AT() - of a struct sm: whose node it is on, softibd knows */
#define SM_TRACE_AT(sm) ((struct rt_trace_at){.rt = (sm)->rt})

#endif
