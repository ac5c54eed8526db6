/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The shared memory by which softibd passes records to one reader: the packets of a
 * capture (abi/capture.h), the events of a trace (abi/trace.h). It is a memfd with struct
 * abi_reader at its start and a struct abi_ring of records at ABI_READER_RING. The reader
 * also gets the reading end of a pipe, into which softibd writes a byte when the reader
 * sleeps. softibd never waits for the reader: records for which there is no room are
 * counted and dropped.
 */
#ifndef SOFTIB_ABI_READER_H
#define SOFTIB_ABI_READER_H

#include "abi/ring.h"

#define ABI_READER_RING 4096 /* where the ring begins */

/** struct abi_reader - counters; written by softibd */
struct abi_reader {
	_Atomic uint64_t matched; /* records that were meant for the reader */
	_Atomic uint64_t dropped; /* of these, for which there was no room */
};

#endif
