/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The reader of a capture (abi/capture.h): it requests the packets of some ports from
 * softibd, reads them from the ring in shared memory, and passes each to its caller.
 */
#ifndef SOFTIB_TOOLS_CAPTURE_READER_H
#define SOFTIB_TOOLS_CAPTURE_READER_H

#include <argp.h>
#include <json-c/json.h>
#include <limits.h>

#include "abi/capture.h"
#include "ring_reader.h"

#define CAPTURE_PORT_ALL LONG_MIN

/** struct capture_place - the ports whose packets are captured */
struct capture_place {
	const char *node; /* NULL: all */
	long port;	  /* CAPTURE_PORT_ALL: all of the node */
};

/** capture_place_parse() - "NODE:PORT", "NODE" or "all"; @arg is cut at the colon */
void capture_place_parse(struct capture_place *place, char *arg);
/** capture_amount_parse() - parse an option whose value is a number from 1 to @most; any
 *  other value ends the program with a message and exit status 64 */
long capture_amount_parse(struct argp_state *state, const char *option, const char *arg,
			  long most);

/** struct capture_reader - a reader; the caller sets the first group and zeroes the rest */
struct capture_reader {
	struct capture_place place;
	const char *filter;   /* NULL: every packet */
	uint32_t snap;	      /* bytes of a packet; 0: all */
	uint32_t ring_bytes;  /* a power of two; 0: softibd's choice */
	/** one packet, @len bytes of it from its LRH on */
	void (*put)(struct capture_reader *r, const struct abi_capture_record *record,
		    const uint8_t *bytes, size_t len);
	/** called when all available packets have been passed to @put */
	void (*idle)(struct capture_reader *r);
	/* --- run, end and close it by ring_reader_...(); the caller sets progress_ms --- */
	struct ring_reader ring;
};

/** capture_reader_start() - begin the capture on the fabric of @dir, as ring_reader_start() */
int capture_reader_start(struct capture_reader *r, const char *dir);

/** capture_nodes() - the fabric's nodes from the control socket's "topo", in the order of
 *  abi_capture_record.node
 *  Return: owned by the caller; NULL, after printing a message */
struct json_object *capture_nodes(const char *dir);

#endif
