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
	int progress_ms;      /* the interval of calls of @idle; -1: only after packets */
	/** one packet, @len bytes of it from its LRH on */
	void (*put)(struct capture_reader *r, const struct abi_capture_record *record,
		    const uint8_t *bytes, size_t len);
	/** called when all available packets have been passed to @put */
	void (*idle)(struct capture_reader *r);
	/* --- to be read --- */
	bool ended;	  /* capture_reader_end() was called */
	uint64_t dropped; /* packets for which the ring had no room */
	/* --- private --- */
	int control_fd, doorbell_fd;
	struct abi_capture *shared;
	size_t shared_bytes;
	struct abi_ring_rx rx;
};

/** capture_reader_start() - begin the capture on the fabric of @dir. From now on SIGINT,
 *  SIGTERM and SIGHUP end the capture, and a second signal ends the program.
 *  Return: 0; EXIT_FAILURE, after printing a message */
int capture_reader_start(struct capture_reader *r, const char *dir);
/** capture_reader_run() - pass packets to @put until a signal, capture_reader_end() or the
 *  end of softibd; packets that were captured before that are still passed */
void capture_reader_run(struct capture_reader *r);
/** capture_reader_end() - end the capture; @put is not called after this
 *  Context: @put or @idle */
void capture_reader_end(struct capture_reader *r);
/** capture_reader_close() - free a reader, even if it was not started */
void capture_reader_close(struct capture_reader *r);

/** capture_nodes() - the fabric's nodes from the control socket's "topo", in the order of
 *  abi_capture_record.node
 *  Return: owned by the caller; NULL, after printing a message */
struct json_object *capture_nodes(const char *dir);

#endif
