/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The shared memory by which softibd passes captured packets to a reader. It is a
 * memfd with struct abi_capture at its start and a struct abi_ring of records at
 * ABI_CAPTURE_RING. The reader also gets the reading end of a pipe, into which softibd
 * writes a byte when the reader sleeps. softibd never waits for the reader: packets
 * for which there is no room are counted and dropped from the capture.
 */
#ifndef SOFTIB_ABI_CAPTURE_H
#define SOFTIB_ABI_CAPTURE_H

#include "abi/ring.h"

#define ABI_CAPTURE_RING 4096 /* where the ring begins */

/** struct abi_capture - counters; written by softibd */
struct abi_capture {
	_Atomic uint64_t matched; /* packets that the filter took */
	_Atomic uint64_t dropped; /* of these, for which there was no room */
};

#define ABI_CAPTURE_WRONG_ICRC 1
#define ABI_CAPTURE_WRONG_VCRC 2

/** struct abi_capture_record - heads each record; the packet's bytes follow,
 *  from the LRH, without CRCs, cut at the capture's limit. Not aligned in
 *  the ring: copy it. */
struct abi_capture_record {
	uint64_t time_ns; /* since 1970 */
	uint64_t dropped; /* abi_capture.dropped as it was then */
	uint32_t node;	  /* index in the topology, as "nodes" lists them */
	uint32_t bytes;	  /* of the whole packet, LRH to pad */
	uint16_t port;
	uint16_t sent;	     /* leaves through the port, else arrives */
	uint32_t wrong_crcs; /* ABI_CAPTURE_WRONG_...: spoilt on purpose */
};

#endif
