/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The reader's side of records in shared memory (abi/reader.h): it sends a request to
 * softibd that is in effect as long as its connection, reads what softibd puts into the
 * ring, and passes each record to its user.
 */
#ifndef SOFTIB_TOOLS_RING_READER_H
#define SOFTIB_TOOLS_RING_READER_H

#include <json-c/json.h>

#include "abi/reader.h"

/** struct ring_reader - a reader; the user sets the first group and zeroes the rest */
struct ring_reader {
	int progress_ms; /* the interval of calls of @idle; -1: only after records */
	/** one record of @len bytes, not aligned */
	void (*put)(struct ring_reader *r, const uint8_t *record, size_t len);
	/** called when all available records have been passed to @put */
	void (*idle)(struct ring_reader *r);
	/* --- to be read --- */
	bool ended;	  /* ring_reader_end() was called */
	uint64_t dropped; /* records for which the ring had no room */
	struct json_object *answer; /* softibd's, until ring_reader_close() */
	/* --- private --- */
	int control_fd, doorbell_fd;
	struct abi_reader *shared;
	size_t shared_bytes;
	struct abi_ring_rx rx;
};

/** ring_reader_start() - send @req, which is freed, to the softibd of @dir. From now on SIGINT,
 *  SIGTERM and SIGHUP end the reader, and a second signal ends the program.
 *  Return: 0; EXIT_FAILURE, after printing a message */
int ring_reader_start(struct ring_reader *r, const char *dir, struct json_object *req);
/** ring_reader_run() - pass records to @put until a signal, ring_reader_end() or the
 *  end of softibd; records that came before that are still passed */
void ring_reader_run(struct ring_reader *r);
/** ring_reader_end() - end the request; @put is not called after this
 *  Context: @put or @idle */
void ring_reader_end(struct ring_reader *r);
/** ring_reader_end_after() - end as SIGINT does, in @seconds */
void ring_reader_end_after(struct ring_reader *r, unsigned int seconds);
/** ring_reader_close() - free a reader, even if it was not started */
void ring_reader_close(struct ring_reader *r);

#endif
