/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The events of a trace: records in the ring of a reader, and messages of a program that
 * has trace points of its own. */
#ifndef SOFTIB_ABI_TRACE_H
#define SOFTIB_ABI_TRACE_H

#include "abi/reader.h"

#define ABI_TRACE_STRINGS 5 /* module, event, node, device, name=value pairs */

/** struct abi_trace_record - heads each record; ABI_TRACE_STRINGS strings follow, each with a
 *  0 at its end and "" where there is none. Not aligned in the ring: copy it. */
struct abi_trace_record {
	uint64_t time_ns; /* since 1970 */
	uint64_t dropped; /* abi_reader.dropped as it was then */
	uint32_t port;	  /* 0: of no certain port */
	uint32_t reserved;
};

#endif
